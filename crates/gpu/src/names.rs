// SPDX-License-Identifier: Apache-2.0
//! Names of profiles: the driver's own where it gives one, else computed as NVIDIA's tools do.

use units::{Attributes, ProfileName};

use crate::sys::*;

/// The name in a driver's `MIG 1g.10gb+me`; `None` if it is not of that form.
pub(crate) fn from_driver(text: &str) -> Option<ProfileName> {
    text.strip_prefix("MIG ").unwrap_or(text).parse().ok()
}

/// The name of the GPU instance profile with that NVML enum; `None` for an enum that is not known,
/// whose attributes nobody can tell. `total_mib` is the memory of the whole GPU.
///
/// Memory is the share of the GPU in eighths, rounded up, of its memory in GiB, rounded up (source:
/// go-nvlib).
pub(crate) fn computed(
    nvml_enum: u32,
    slices: u8,
    memory_mib: u64,
    total_mib: u64,
) -> Option<ProfileName> {
    let attributes = match nvml_enum {
        NVML_GPU_INSTANCE_PROFILE_1_SLICE
        | NVML_GPU_INSTANCE_PROFILE_2_SLICE
        | NVML_GPU_INSTANCE_PROFILE_3_SLICE
        | NVML_GPU_INSTANCE_PROFILE_4_SLICE
        | NVML_GPU_INSTANCE_PROFILE_6_SLICE
        | NVML_GPU_INSTANCE_PROFILE_7_SLICE
        | NVML_GPU_INSTANCE_PROFILE_8_SLICE
        | NVML_GPU_INSTANCE_PROFILE_1_SLICE_REV2 => Attributes::None,
        NVML_GPU_INSTANCE_PROFILE_1_SLICE_REV1 | NVML_GPU_INSTANCE_PROFILE_2_SLICE_REV1 => {
            Attributes::plus("me")
        }
        NVML_GPU_INSTANCE_PROFILE_1_SLICE_GFX
        | NVML_GPU_INSTANCE_PROFILE_2_SLICE_GFX
        | NVML_GPU_INSTANCE_PROFILE_4_SLICE_GFX => Attributes::plus("gfx"),
        NVML_GPU_INSTANCE_PROFILE_1_SLICE_NO_ME | NVML_GPU_INSTANCE_PROFILE_2_SLICE_NO_ME => {
            Attributes::minus("me")
        }
        NVML_GPU_INSTANCE_PROFILE_1_SLICE_ALL_ME | NVML_GPU_INSTANCE_PROFILE_2_SLICE_ALL_ME => {
            Attributes::plus("me.all")
        }
        _ => return None,
    };
    if slices == 0 || total_mib == 0 {
        return None;
    }
    let eighths = (8 * memory_mib).div_ceil(total_mib);
    // Half an eighth of a GiB more, so that the division rounds to the nearest.
    let memory_gb = (eighths * total_mib.div_ceil(1024) + 4) / 8;
    let memory_gb = u16::try_from(memory_gb).ok()?;
    Some(ProfileName::whole(slices, memory_gb, attributes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn computed_names_are_those_that_nvidia_prints() {
        for (nvml_enum, slices, memory_mib, total_mib, name) in [
            (0, 1, 4864, 40960, "1g.5gb"),
            (7, 1, 4864, 40960, "1g.5gb+me"),
            (9, 1, 9856, 40960, "1g.10gb"),
            (2, 3, 19968, 40960, "3g.20gb"),
            (4, 7, 40192, 40960, "7g.40gb"),
            (0, 1, 9984, 81559, "1g.10gb"),
            (2, 3, 40448, 81559, "3g.40gb"),
            (0, 1, 11008, 95830, "1g.12gb"),
            (2, 3, 47488, 95830, "3g.47gb"),
            (0, 1, 5952, 24576, "1g.6gb"),
            (13, 1, 24192, 97887, "1g.24gb-me"),
            (16, 2, 48384, 97887, "2g.48gb+me.all"),
            (12, 4, 97280, 97887, "4g.96gb+gfx"),
        ] {
            let computed = computed(nvml_enum, slices, memory_mib, total_mib).unwrap();
            assert_eq!(computed.to_string(), name);
        }
    }

    #[test]
    fn a_profile_that_cannot_be_named_is_left_alone() {
        assert_eq!(computed(17, 3, 1000, 81559), None);
        assert_eq!(computed(0, 0, 1000, 81559), None);
        assert_eq!(computed(0, 1, 1000, 0), None);
    }

    #[test]
    fn the_driver_names_profiles_with_a_prefix() {
        let name = from_driver("MIG 1g.10gb+me").unwrap();
        assert_eq!(name.to_string(), "1g.10gb+me");
        assert_eq!(from_driver("\u{fffd}\u{fffd}"), None);
    }
}
