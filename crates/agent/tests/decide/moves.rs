// SPDX-License-Identifier: Apache-2.0
//! Which devices must be free of their old name first.

use agent::decide::moves;
use config::deviceplugin::{Config, MigStrategy, parse};
use geometry::inventory::Inventory;
use publish::{Node, Resource, resources};

use crate::support::Machine;

fn offer(
    inventory: &Inventory,
    strategy: MigStrategy,
    replicas: u32,
    rename: bool,
) -> Vec<Resource> {
    let mut config = Config::default();
    if replicas > 1 {
        let text = format!(
            "sharing: {{timeSlicing: {{renameByDefault: {rename}, resources: [{{name: \
             nvidia.com/gpu, replicas: {replicas}}}]}}}}"
        );
        config = parse("test", &text).into_config().unwrap();
    }
    config.flags.mig_strategy = strategy;
    let node = Node {
        inventory: Some(inventory.clone()),
        config,
        ..Node::default()
    };
    resources(&node).0
}

#[test]
fn devices_move_when_their_name_or_manner_changes() {
    let whole = Machine::new("2xH100-80GB-SXM").inventory();
    let exclusive = offer(&whole, MigStrategy::None, 1, false);
    let renamed = offer(&whole, MigStrategy::None, 4, true);
    let shared = offer(&whole, MigStrategy::None, 4, false);
    let more = offer(&whole, MigStrategy::None, 8, false);
    for (old, new, moving) in [
        (&exclusive, &exclusive, 0),
        (&exclusive, &renamed, 2),
        (&exclusive, &shared, 2),
        (&renamed, &shared, 2),
        (&shared, &more, 0),
        (&more, &shared, 0),
        (&shared, &exclusive, 2),
        (&Vec::new(), &exclusive, 0),
        (&exclusive, &Vec::new(), 0),
    ] {
        assert_eq!(moves(old, new).len(), moving);
    }
}

#[test]
fn slices_move_between_single_and_mixed_and_against_the_whole_gpu() {
    let cut = Machine::new("1xH100-80GB-SXM").cut("7x1g.10gb");
    let none = offer(&cut, MigStrategy::None, 1, false);
    let single = offer(&cut, MigStrategy::Single, 1, false);
    let mixed = offer(&cut, MigStrategy::Mixed, 1, false);
    assert_eq!(moves(&single, &mixed).len(), 7);
    assert_eq!(moves(&mixed, &single).len(), 7);
    assert_eq!(moves(&none, &single).len(), 1);
    assert_eq!(moves(&single, &none).len(), 7);
}

#[test]
fn slices_that_are_gone_do_not_come_back_while_others_move() {
    let machine = Machine::new("2xH100-80GB-SXM");
    let layout = plan::parse_layout("7x1g.10gb").unwrap();
    let first = plan::resolve_layout(&[0], &layout, &machine.inventory()).unwrap();
    machine.apply(&first);
    let before = offer(&machine.inventory(), MigStrategy::Mixed, 1, false);
    let after = offer(&machine.cut("3x2g.20gb"), MigStrategy::Mixed, 1, false);
    // GPU 1 is cut, and the seven slices of GPU 0 are no more.
    assert_eq!(moves(&before, &after).len(), 1 + 7);
}
