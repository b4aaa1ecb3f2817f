// SPDX-License-Identifier: Apache-2.0
//! Capability devices of MIG instances: `/proc/driver/nvidia-caps/mig-minors`.

use std::collections::BTreeMap;

/// Indices of a GPU, a GPU instance and a compute instance (`None`: the GPU instance itself).
pub type CapPlace = (u32, u32, Option<u32>);

/// Minor numbers of `/dev/nvidia-caps/nvidia-capN`, by what they are
/// for.
pub type CapMinors = BTreeMap<CapPlace, u32>;

/// Reads the kernel's list: lines such as `gpu0/gi1/access 12` and `gpu0/gi1/ci0/access 13`. Other
/// lines (`config 1`, `monitor 2`, ones that nobody knows) say nothing about instances.
pub fn parse(text: &str) -> CapMinors {
    text.lines().filter_map(line).collect()
}

fn line(line: &str) -> Option<(CapPlace, u32)> {
    let (path, minor) = line.trim().split_once(char::is_whitespace)?;
    let minor = minor.trim().parse().ok()?;
    let mut parts = path.split('/');
    let mut number = |prefix: &str| -> Option<Option<u32>> {
        let part = parts.next()?;
        if part == "access" {
            return Some(None);
        }
        part.strip_prefix(prefix)?.parse().ok().map(Some)
    };
    let gpu = number("gpu")??;
    let instance = number("gi")??;
    let compute = number("ci")?;
    Some(((gpu, instance, compute), minor))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_list_is_read_and_odd_lines_are_skipped() {
        let text = "config 1\nmonitor 2\ngpu0/gi1/access 12\ngpu0/gi1/ci0/access 13\n\
                    gpu1/gi2/ci3/access 300\ngpu/gi/access 5\ngpu0/gi1/ciX/access 4\nrubbish\n";
        let expected = [
            ((0, 1, None), 12),
            ((0, 1, Some(0)), 13),
            ((1, 2, Some(3)), 300),
        ];
        assert_eq!(parse(text), expected.into());
    }
}
