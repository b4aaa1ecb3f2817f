// SPDX-License-Identifier: Apache-2.0
//! Names, places and identities: what always holds.

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use units::{Attributes, Code, GpuUuid, MigUuid, Mode, PciDevice, Placement, ProfileName};

    fn attributes() -> impl Strategy<Value = Attributes> {
        let names = prop::collection::btree_set("[A-Za-z][A-Za-z0-9.]{0,5}[A-Za-z0-9]", 1..4);
        prop_oneof![
            Just(Attributes::None),
            names.clone().prop_map(Attributes::Plus),
            names.prop_map(Attributes::Minus),
        ]
    }

    fn profile() -> impl Strategy<Value = ProfileName> {
        (1..=u8::MAX, any::<u16>(), attributes(), any::<u8>()).prop_map(
            |(slices, memory, attributes, compute)| {
                let whole = ProfileName::whole(slices, memory, attributes);
                whole.with_compute(compute).unwrap_or(whole)
            },
        )
    }

    proptest! {
        #[test]
        fn a_name_reads_back_as_itself(name in profile()) {
            let text = name.to_string();
            prop_assert_eq!(&text.parse::<ProfileName>().unwrap(), &name);
            let json = serde_json::to_string(&name).unwrap();
            prop_assert_eq!(serde_json::from_str::<ProfileName>(&json).unwrap(), name);
        }

        #[test]
        fn any_text_is_a_canonical_name_or_refused(text in "\\PC{0,24}|[0-9cgb.+,me-]{0,24}") {
            if let Ok(name) = text.parse::<ProfileName>() {
                let canonical = name.to_string();
                prop_assert_eq!(canonical.parse::<ProfileName>().unwrap(), name);
            }
        }

        #[test]
        fn order_agrees_with_equality(one in profile(), other in profile()) {
            prop_assert_eq!(one.cmp(&other).is_eq(), one == other);
            prop_assert_eq!(one.cmp(&other), other.cmp(&one).reverse());
        }

        #[test]
        fn a_label_form_is_a_label_value(name in profile()) {
            let label = name.label_form();
            let good = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
            prop_assert!(label.chars().all(good), "{label}");
            prop_assert!(label.ends_with(|c: char| c.is_ascii_alphanumeric()));
        }

        #[test]
        fn places_overlap_when_their_units_do(a in 0..40_u8, x in 1..20_u8, b in 0..40_u8, y in 1..20_u8) {
            let (one, other) = (Placement::new(a, x), Placement::new(b, y));
            prop_assert_eq!(one.overlaps(other), one.mask() & other.mask() != 0);
            prop_assert_eq!(one.mask().count_ones(), u32::from(x));
            prop_assert_eq!(one.overlaps(other), other.overlaps(one));
        }

        #[test]
        fn places_at_the_end_of_the_range_do_not_wrap(start in any::<u8>(), size in any::<u8>()) {
            let place = Placement::new(start, size);
            prop_assert!(place.mask().count_ones() <= u32::from(size));
            prop_assert_eq!(place.overlaps(place), size > 0);
        }

        #[test]
        fn any_text_is_a_uuid_or_refused(text in "\\PC{0,60}|(GPU|MIG)-[0-9a-f-]{30,40}(/[0-9]{1,3}){0,2}") {
            if let Ok(uuid) = text.parse::<GpuUuid>() {
                prop_assert_eq!(uuid.as_str(), &text);
                prop_assert!(text.parse::<MigUuid>().is_err());
            }
            if let Ok(uuid) = text.parse::<MigUuid>() {
                prop_assert_eq!(uuid.to_string(), text);
            }
        }
    }

    #[test]
    fn uuids_of_gpus_and_slices_are_told_apart() {
        let uuid = "5c89852c-d268-c3f3-1b07-005d5ae1dc3f";
        let (gpu, mig) = (format!("GPU-{uuid}"), format!("MIG-{uuid}"));
        let old = format!("MIG-GPU-{uuid}/3/0");
        assert!(gpu.parse::<GpuUuid>().is_ok() && gpu.parse::<MigUuid>().is_err());
        assert!(mig.parse::<MigUuid>().is_ok() && mig.parse::<GpuUuid>().is_err());
        assert!(old.parse::<MigUuid>().is_ok());
        for bad in [
            "GPU-",
            "GPU-5c89852c",
            "gpu-5c89852c-d268-c3f3-1b07-005d5ae1dc3f",
            "0",
        ] {
            let error = bad.parse::<GpuUuid>().unwrap_err().to_string();
            assert!(error.contains("is not a GPU UUID"), "{error}");
        }
        for bad in [
            format!("{old}/1"),
            format!("MIG-GPU-{uuid}/300/0"),
            format!("MIG-GPU-{uuid}"),
        ] {
            assert!(bad.parse::<MigUuid>().is_err(), "{bad}");
        }
    }

    #[test]
    fn pci_devices_are_printed_as_filters_write_them() {
        let device = PciDevice(0x2330_10DE);
        assert_eq!(device.to_string(), "0x233010DE");
        assert_eq!(device.device(), 0x2330);
    }

    #[test]
    fn modes_follow_current_and_pending() {
        for (current, pending) in [(false, false), (false, true), (true, false), (true, true)] {
            let mode = Mode::from_states(current, pending);
            assert_eq!((mode.is_on(), mode.will_be_on()), (current, pending));
            assert_eq!(mode.is_pending(), current != pending);
        }
    }

    #[test]
    fn codes_are_unique_sorted_and_read_back() {
        let names: Vec<&str> = Code::ALL.iter().map(|code| code.as_str()).collect();
        assert!(names.is_sorted_by(|one, other| one < other), "{names:?}");
        for code in Code::ALL {
            assert_eq!(code.as_str().parse::<Code>().unwrap(), *code);
            assert!(code.exit_status() <= 5);
        }
        assert!("no-such-code".parse::<Code>().is_err());
    }
}
