// SPDX-License-Identifier: Apache-2.0
//! A line that shows where instances sit on a GPU.

use geometry::{InstanceSpec, Layout};

/// The layout drawn to the scale of the board's placement units:
/// `[1g.10gb|1g.10gb|2g.20gb        |3g.40gb                        ]`. A `-` is a free unit.
pub fn picture(layout: &Layout, placement_units: u8) -> String {
    let labels = layout
        .instances
        .iter()
        .map(|instance| (instance, label(instance)));
    let labels: Vec<(&InstanceSpec, String)> = labels.collect();
    let width = labels.iter().map(|(instance, label)| {
        let size = usize::from(instance.placement.size.max(1));
        (label.chars().count() + 1).div_ceil(size)
    });
    let width = width.max().unwrap_or(0).max(2);
    let mut line = String::from("[");
    let mut unit = 0;
    while unit < placement_units {
        let here = labels
            .iter()
            .find(|(instance, _)| instance.placement.start == unit);
        let (label, size) = here.map_or(("-", 1), |(instance, label)| {
            (label.as_str(), instance.placement.size.max(1))
        });
        let cell = usize::from(size) * width - 1;
        line.push_str(&format!("{label:cell$}"));
        unit = unit.saturating_add(size);
        line.push(if unit < placement_units { '|' } else { ']' });
    }
    line
}

/// What an instance is called: its slices, or in brackets its profile if it has none.
pub fn label(instance: &InstanceSpec) -> String {
    let slices = Layout {
        instances: vec![instance.clone()],
    }
    .slices();
    if slices.is_empty() {
        return format!("({})", instance.profile);
    }
    let parts = slices.iter().map(|(profile, count)| match count {
        1 => profile.to_string(),
        _ => format!("{count}x{profile}"),
    });
    parts.collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use geometry::ComputeSpec;
    use units::Placement;

    use super::*;

    fn layout(instances: &[(u8, u8, &str, &[&str])]) -> Layout {
        let compute = |profile: &&str| ComputeSpec {
            profile: profile.parse().unwrap(),
            driver_id: 0,
            placement: None,
        };
        let instance = |&(start, size, profile, slices): &(u8, u8, &str, &[&str])| InstanceSpec {
            placement: Placement::new(start, size),
            profile: profile.parse().unwrap(),
            driver_id: 0,
            compute: slices.iter().map(compute).collect(),
        };
        Layout {
            instances: instances.iter().map(instance).collect(),
        }
    }

    #[test]
    fn instances_are_drawn_to_scale() {
        let balanced = layout(&[
            (0, 1, "1g.10gb", &["1g.10gb"]),
            (2, 2, "2g.20gb", &["2g.20gb"]),
            (4, 4, "3g.40gb", &["1c.3g.40gb", "2c.3g.40gb"]),
        ]);
        assert_eq!(
            picture(&balanced, 8),
            "[1g.10gb|-      |2g.20gb        |1c.3g.40gb,2c.3g.40gb          ]"
        );
        assert_eq!(picture(&layout(&[]), 4), "[-|-|-|-]");
        assert_eq!(
            picture(&layout(&[(0, 4, "4g.24gb", &[])]), 4),
            "[(4g.24gb)  ]"
        );
    }
}
