// SPDX-License-Identifier: Apache-2.0
//! Offers for tests.

use std::ops::Range;
use std::sync::Arc;

use deviceplugin::Offer;
use publish::{Device, Hardware, Resource};
use units::GpuUuid;

/// Whole GPUs of these indices.
pub fn gpus(name: &str, indices: Range<u32>) -> Resource {
    let device = |index| {
        let hardware = gpu(index);
        Device {
            id: hardware.uuid().to_owned(),
            replica: None,
            hardware: Arc::new(hardware),
        }
    };
    Resource {
        name: name.to_owned(),
        devices: indices.map(device).collect(),
        one_replica_a_container: false,
    }
}

/// One GPU, shared.
pub fn shared(name: &str, replicas: u32) -> Resource {
    let hardware = Arc::new(gpu(0));
    let device = |replica| Device {
        id: format!("{}::{replica}", hardware.uuid()),
        replica: Some(replica),
        hardware: Arc::clone(&hardware),
    };
    Resource {
        name: name.to_owned(),
        devices: (0..replicas).map(device).collect(),
        one_replica_a_container: true,
    }
}

/// UUID of the GPU of that index.
pub fn uuid(index: u32) -> String {
    gpu(index).uuid().to_owned()
}

fn gpu(index: u32) -> Hardware {
    Hardware {
        gpu: GpuUuid::from_bits(index.into()),
        gpu_index: index,
        slice: None,
        numa_node: Some(index / 2),
        nodes: vec![format!("/dev/nvidia{index}")],
        fault: None,
    }
}

/// An offer of these resources.
pub fn offer(resources: impl IntoIterator<Item = Resource>) -> Offer {
    Offer {
        resources: resources.into_iter().collect(),
        ..Offer::default()
    }
}
