// SPDX-License-Identifier: Apache-2.0
//! Publishing: device lists, CDI specifications, labels and status, all from one reading.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use deviceplugin::Offer;
use kubeapi::names;
use plan::Warning;
use publish::{Allocated, Resource};
use snapshot::Reading;
use tokio::time::Instant;
use units::Code;

use crate::agent::{Agent, Layout};
use crate::cluster::NodeSeen;
use crate::decide::{self, Desired, State, Told};
use crate::serve::Figures;
use crate::status;

/// Longest text of the annotation that says why.
const LONGEST_REASON: usize = 2000;
/// How often GpuNode and ConfigMap are written though they are as they were: the API server is not
/// troubled by what changes nothing.
const AGAIN: Duration = Duration::from_secs(300);

impl Agent {
    /// Publishes a reading; whether something is awaited that sends no event.
    pub(crate) async fn publish(
        &mut self,
        told: &Told,
        node: Option<&NodeSeen>,
        desired: Desired,
        reading: Reading,
        layout: &Layout,
    ) -> bool {
        let reading = self.as_published(reading, &desired);
        let (wanted, mut findings) = publish::resources(&reading.node);
        let freed = self.free_of_old_names(&reading, &wanted).await;
        let allocated = self.allocated();
        let (resources, withheld) = publish::withhold(&reading.node, wanted, &allocated);
        let mut waits = !withheld.is_empty();
        findings.extend(desired.findings.iter().cloned());
        findings.extend(reading.findings.iter().cloned());
        findings.extend(withheld);
        findings.extend(self.stranded());
        if !self.waits_for_its_layout(node, layout) {
            // Before they are offered, devices must be free and containers able to have them.
            let ready = freed.and_then(|()| self.write_cdi(&reading, &desired));
            match ready {
                Ok(notes) => {
                    findings.extend(notes);
                    self.offer(&resources, &reading, &desired);
                }
                Err(finding) => {
                    findings.push(finding);
                    waits = true;
                }
            }
        }
        let (labels, notes) = publish::labels(&reading.node);
        findings.extend(notes);
        findings.extend(only_slices(&resources));
        let findings = distinct(findings);
        if let Some(node) = node {
            self.write_node(told, node, labels, &reading, layout).await;
            let mut status = status::of(
                &reading, &desired, layout, &resources, &allocated, &findings,
            );
            let now = self.surroundings.clock.now().to_string();
            status::set_times(&mut status, self.memory.status.as_ref(), &now);
            self.write_status(node, status, &reading).await;
        }
        self.tell_findings(&findings, layout).await;
        self.show(&reading, &resources, &findings, layout);
        waits
    }

    /// Frees devices of the names that they are offered under, if they are to have others.
    async fn free_of_old_names(
        &mut self,
        reading: &Reading,
        wanted: &[Resource],
    ) -> Result<(), Warning> {
        let allocated = self.allocated();
        let next = publish::withhold(&reading.node, wanted.to_vec(), &allocated).0;
        let moving = decide::moves(self.offered(), &next);
        if moving.is_empty() {
            return Ok(());
        }
        let fenced = self.fence(&moving, "it gets another name").await;
        fenced.map_err(|refusal| Warning {
            code: refusal.code,
            message: refusal.message,
        })
    }

    /// Whether this is a node that was born with a layout it does not have yet: nothing is offered
    /// before, or pods would get whole GPUs. One that offered devices before goes on.
    fn waits_for_its_layout(&self, node: Option<&NodeSeen>, layout: &Layout) -> bool {
        let is_new = node.is_some_and(|node| !node.capacity.keys().any(|name| is_gpu(name)));
        let missing = layout.wanted.is_some() && layout.state != Some(State::Success);
        is_new && missing && !self.memory.has_published
    }

    fn allocated(&self) -> Vec<Allocated> {
        let mut by_name: BTreeMap<&str, Vec<String>> = BTreeMap::new();
        for it in &self.memory.allocated {
            by_name.entry(&it.resource).or_default().push(it.id.clone());
        }
        let allocated = by_name.into_iter();
        let allocated = allocated.map(|(resource, ids)| Allocated {
            resource: resource.to_owned(),
            ids,
        });
        allocated.collect()
    }

    fn write_cdi(&self, reading: &Reading, desired: &Desired) -> Result<Vec<Warning>, Warning> {
        let paths = &self.settings.paths;
        let held: BTreeSet<String> = self
            .memory
            .allocated
            .iter()
            .map(|it| publish::device_uuid(&it.id).to_owned())
            .collect();
        crate::cdi_files::write(paths, reading, &desired.config, &held)
    }

    fn offer(&mut self, resources: &[Resource], reading: &Reading, desired: &Desired) {
        self.memory.has_published = true;
        // What was in force until now stays if the next one cannot be used.
        if self.memory.kept != desired.kept {
            crate::kept::keep_in_force(&self.settings.paths.state, &desired.kept);
            self.memory.kept = desired.kept.clone();
        }
        let offer = Offer {
            resources: resources.to_vec(),
            links: reading.links.clone(),
            config: Arc::new(desired.config.clone()),
            control_nodes: reading.control_nodes.clone(),
            has_imex_channel_0: reading.node.has_imex_channel_0,
            cdi_extras: Vec::new(),
            fenced: BTreeMap::new(),
        };
        self.plugins.offer(offer.clone());
        self.memory.offer = Some(offer);
    }

    async fn write_node(
        &mut self,
        told: &Told,
        node: &NodeSeen,
        described: BTreeMap<String, String>,
        reading: &Reading,
        layout: &Layout,
    ) {
        // Labels in a file are Node Feature Discovery's to set and to take away.
        let in_file = self.label_file(&described);
        let described = if in_file { BTreeMap::new() } else { described };
        let is_ours = |key: &str| !in_file && publish::is_ours(key);
        let given = self.settings.kubernetes.as_ref();
        let default = given.and_then(|given| given.mig_default.as_deref());
        let policy = told.policy.as_ref();
        let mut wanted =
            decide::node_labels(described, &reading.node, &node.labels, policy, default);
        let mut reasons = BTreeMap::new();
        if let Some(state) = layout.state {
            wanted.insert(names::MIG_CONFIG_STATE.to_owned(), state.to_string());
        }
        if let Some((code, reason)) = &layout.reason {
            let text: String = format!("{reason} [{code}]")
                .chars()
                .take(LONGEST_REASON)
                .collect();
            reasons.insert(names::MIG_CONFIG_REASON.to_owned(), text);
        }
        let labels = decide::change(&node.labels, &wanted, is_ours);
        let is_reason = |key: &str| key == names::MIG_CONFIG_REASON;
        let annotations = decide::change(&node.annotations, &reasons, is_reason);
        let Some(cluster) = &self.cluster else { return };
        let written = cluster.patch_node(&labels, &annotations).await;
        let mut failed = written.err();
        if self.memory.has_published && layout.reason.is_none() {
            failed = cluster.remove_taint(node).await.err().or(failed);
        }
        let gone = self.gone(node);
        failed = cluster.forget_resources(&gone).await.err().or(failed);
        if let Some(error) = failed {
            tracing::warn!("{error}");
        }
    }

    /// Names that the node still counts, at 0, and nobody offers any more.
    fn gone(&self, node: &NodeSeen) -> Vec<String> {
        let offered = |name: &String| self.offered().iter().any(|it| it.name == *name);
        let left = node.capacity.iter();
        let left = left.filter(|(name, amount)| is_gpu(name) && *amount == "0" && !offered(name));
        let left = left.map(|(name, _)| name.clone());
        left.filter(|_| self.memory.has_published).collect()
    }

    /// Writes the labels to a file for Node Feature Discovery where that is asked for; whether it
    /// is.
    fn label_file(&self, labels: &BTreeMap<String, String>) -> bool {
        let Some(path) = &self.settings.overrides.label_file else {
            return false;
        };
        if let Err(error) = snapshot::write_features(Path::new(path), labels) {
            tracing::warn!("cannot write labels to {path}: {error}");
        }
        true
    }

    /// Takes the file with labels away at the end, as the original does: nobody answers for them.
    pub(crate) fn remove_label_file(&self) {
        if let Some(path) = &self.settings.overrides.label_file
            && let Err(error) = snapshot::remove_features(Path::new(path))
        {
            tracing::warn!("cannot remove {path}: {error}");
        }
    }

    async fn write_status(
        &mut self,
        node: &NodeSeen,
        status: kubeapi::GpuNodeStatus,
        reading: &Reading,
    ) {
        let again = self.is_due();
        let Some(cluster) = &self.cluster else { return };
        let inventory = reading.node.inventory.as_ref();
        let file = inventory.map(plan::generated);
        let capable = inventory.is_some_and(|it| it.gpus.iter().any(|gpu| gpu.mode.is_some()));
        let text = file.filter(|_| capable).map(|file| {
            let yaml = config::mig::print(&file, config::mig::Format::Yaml);
            format!("{}{yaml}", config::generate::HEADER)
        });
        let is_new = |text: &String| again || self.memory.generated.as_ref() != Some(text);
        if let Some(text) = text.filter(is_new) {
            match cluster.write_generated(node, &text).await {
                Ok(()) => self.memory.generated = Some(text),
                Err(error) => tracing::warn!("{error}"),
            }
        }
        self.write_gpu_node(node, status, again).await;
    }

    /// Whether what is known to be there is written again: somebody may have deleted it.
    fn is_due(&mut self) -> bool {
        let written = self.memory.written;
        let is_due = written.is_none_or(|written| written.elapsed() >= AGAIN);
        if is_due {
            self.memory.written = Some(Instant::now());
        }
        is_due
    }

    /// Writes to the node's GpuNode that nothing is offered to new pods, and why.
    pub(crate) async fn write_idle(&mut self, node: Option<&NodeSeen>, why: &Warning) {
        let Some(node) = node else { return };
        let mut status = status::idle(self.memory.status.as_ref(), why);
        let now = self.surroundings.clock.now().to_string();
        status::set_times(&mut status, self.memory.status.as_ref(), &now);
        self.write_gpu_node(node, status, false).await;
    }

    async fn write_gpu_node(
        &mut self,
        node: &NodeSeen,
        status: kubeapi::GpuNodeStatus,
        again: bool,
    ) {
        let Some(cluster) = &self.cluster else { return };
        if again || self.memory.status.as_ref() != Some(&status) {
            match cluster.write_gpu_node(node, &status).await {
                Ok(()) => self.memory.status = Some(status),
                Err(error) => tracing::warn!("{error}"),
            }
        }
    }

    /// Tells what is new and forgets what is over, so that it is told again if it comes back.
    async fn tell_findings(&mut self, findings: &[Warning], layout: &Layout) {
        let mut now = BTreeSet::new();
        for finding in findings {
            now.insert(format!("{} [{}]", finding.message, finding.code));
            self.tell("Finding", finding.code, &finding.message).await;
        }
        match (&layout.reason, &layout.wanted, layout.state) {
            (Some((code, reason)), wanted, _) => {
                let name = wanted.as_deref().unwrap_or("the last change");
                let note = format!("{name}: {reason}");
                now.insert(format!("{note} [{code}]"));
                self.tell("MigConfigFailed", *code, &note).await;
            }
            (None, Some(name), Some(State::Success)) => {
                let note = format!("the layout is as {name} wants it");
                now.insert(note.clone());
                if self.memory.told.insert(note.clone()) {
                    tracing::info!("{note}");
                    self.event(false, "MigConfigApplied", note).await;
                }
            }
            _ => {}
        }
        self.memory.told = now;
        self.write_events().await;
    }

    fn show(
        &self,
        reading: &Reading,
        resources: &[Resource],
        findings: &[Warning],
        layout: &Layout,
    ) {
        let inventory = reading.node.inventory.as_ref();
        let gpus = inventory.map_or(&[][..], |inventory| &inventory.gpus);
        let mut by_code: BTreeMap<String, usize> = BTreeMap::new();
        for finding in findings {
            *by_code.entry(finding.code.to_string()).or_default() += 1;
        }
        let figures = Figures {
            resources: resources.iter().map(|it| self.counts(it)).collect(),
            gpus: gpus.len(),
            slices: gpus
                .iter()
                .flat_map(|gpu| &gpu.instances)
                .map(|instance| instance.compute.len())
                .sum(),
            findings: by_code.into_iter().collect(),
            layout_applied: layout
                .wanted
                .as_ref()
                .map(|_| layout.state == Some(State::Success)),
        };
        if self.memory.has_published {
            return self.shown.serving(figures);
        }
        let reason = layout.reason.as_ref().map(|(_, reason)| reason);
        let reason = reason.or(findings.first().map(|finding| &finding.message));
        let unknown = || "nothing is offered yet".to_owned();
        self.shown.waiting(reason.cloned().unwrap_or_else(unknown));
    }

    fn counts(&self, resource: &Resource) -> (String, usize, usize, usize) {
        let healthy = resource.devices.iter().filter(|it| it.is_healthy()).count();
        let held = self.memory.allocated.iter();
        let held = held.filter(|it| it.resource == resource.name).count();
        let name = resource.name.clone();
        (name, healthy, resource.devices.len() - healthy, held)
    }
}

/// Whether a resource name is one of those that GPUs and slices have.
fn is_gpu(name: &str) -> bool {
    let short = name.strip_prefix(names::RESOURCE_PREFIX);
    short.is_some_and(|short| {
        short == "gpu" || short.starts_with("gpu.") || short.starts_with("mig-")
    })
}

/// Why a pod that asks for a whole GPU finds none here though there are GPUs.
fn only_slices(resources: &[Resource]) -> Option<Warning> {
    let whole = resources
        .iter()
        .any(|it| it.short_name().starts_with("gpu") && !it.devices.is_empty());
    let slices: Vec<&str> = resources
        .iter()
        .filter(|it| !it.devices.is_empty())
        .map(|it| it.name.as_str())
        .collect();
    (!whole && !slices.is_empty()).then(|| Warning {
        code: Code::OnlySlices,
        message: format!(
            "a pod that asks for nvidia.com/gpu finds none on this node: its GPUs are cut into \
             slices; it can ask for {}",
            slices.join(", ")
        ),
    })
}

/// What the findings say, each once.
fn distinct(findings: Vec<Warning>) -> Vec<Warning> {
    let set: BTreeSet<Warning> = findings.into_iter().collect();
    set.into_iter().collect()
}
