// SPDX-License-Identifier: Apache-2.0
//! Simulated machines and settings.

use std::collections::BTreeMap;
use std::sync::Arc;

use agent::decide::Told;
use agent::{Kubernetes, Overrides, Paths, Settings};
use geometry::inventory::Inventory;
use gpu::{Driver, ReadGpus};
use host::{Host, Intent, StateDir, SystemClock};
use nvmlsim::{Handle, Options, Simulated, World};
use plan::{Policy, Wish};
use publish::XidPolicy;

/// A simulated machine.
pub struct Machine {
    driver: Driver,
    handle: Handle,
}

impl Machine {
    pub fn new(spec: &str) -> Self {
        let world = World::create(&spec.parse().unwrap(), &Options::default());
        let handle = Handle::in_memory(world);
        let driver = Driver::new(Arc::new(Simulated::new(handle.clone()))).unwrap();
        Self { driver, handle }
    }

    pub fn inventory(&self) -> Inventory {
        self.driver.inventory().unwrap()
    }

    /// Cuts every GPU like that.
    pub fn cut(&self, layout: &str) -> Inventory {
        let inventory = self.inventory();
        let gpus: Vec<u32> = inventory.gpus.iter().map(|gpu| gpu.index).collect();
        let layout = plan::parse_layout(layout).unwrap();
        let wish = plan::resolve_layout(&gpus, &layout, &inventory).unwrap();
        self.apply(&wish);
        self.inventory()
    }

    pub fn apply(&self, wish: &Wish) {
        let plan = plan::plan(&self.inventory(), wish, &Policy::default()).unwrap();
        let reset = Simulated::new(self.handle.clone());
        let host = Host {
            driver: &self.driver,
            reset: &gpu::ClosedReset::new(&self.driver, &reset),
            state: &StateDir::temporary(),
            clock: &SystemClock,
            boot_id: "",
        };
        host.apply(&plan, &Intent::apply("test")).unwrap();
    }
}

/// Settings of an agent in a cluster with nothing else set.
pub fn settings() -> Settings {
    Settings {
        kubernetes: Some(Kubernetes {
            node: "node".to_owned(),
            namespace: "gpu-operator".to_owned(),
            kubeconfig: None,
            sharing_config_map: None,
            sharing_default: None,
            mig_default: None,
        }),
        plugin_file: None,
        mig_file: None,
        overrides: Overrides::default(),
        paths: Paths {
            driver_root: "/".into(),
            driver_root_here: "/".into(),
            dev_root: "/".into(),
            dev_root_here: "/".into(),
            plugins: "/plugins".into(),
            kubelet: None,
            pod_resources: None,
            cdi: "/cdi".into(),
            cdi_hooks: agent::CdiHooks::default(),
            state: "/state".into(),
            sys: "/sys".into(),
            proc_driver: "/proc/driver".into(),
            proc: "/proc".into(),
        },
        listen: None,
        xids: XidPolicy::default(),
        may_disrupt: false,
        may_reboot: false,
        services: None,
    }
}

pub fn map(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    let own = |(key, value): &(&str, &str)| ((*key).to_owned(), (*value).to_owned());
    pairs.iter().map(own).collect()
}

/// A node with these labels.
pub fn labelled(labels: &[(&str, &str)]) -> Told {
    Told {
        labels: map(labels),
        ..Told::default()
    }
}
