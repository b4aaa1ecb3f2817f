// SPDX-License-Identifier: Apache-2.0
//! This node as the API server has it: watched object by object, so that a cluster of thousands of
//! nodes sends each agent its own node, three more objects, and the names and labels of its own pods.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::{StreamExt, pin_mut};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind};
use kube::core::PartialObjectMeta;
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{self, watch_object, watcher};
use kube::{Client, Config, Resource};
use kubeapi::ClusterPolicySpec;
use serde::de::DeserializeOwned;
use tokio::sync::Notify;
use tokio::task::JoinHandle;

use crate::decide::{self, Told};
use crate::objects::{self, Node, Pod, Taint};
use crate::settings::{Kubernetes, Settings};
use crate::write::pod_on_node;

/// The API server, seen from this node.
pub struct Cluster {
    pub(crate) client: Client,
    pub(crate) about: Kubernetes,
    seen: Arc<Seen>,
    tasks: Vec<JoinHandle<()>>,
    maps: BTreeMap<String, JoinHandle<()>>,
}

/// What has been seen so far, and who is woken when it changes.
#[derive(Default)]
struct Seen {
    state: Mutex<State>,
    wake: Arc<Notify>,
}

#[derive(Default)]
struct State {
    node: Option<NodeSeen>,
    /// `None`: not known yet.
    policy: Option<Option<ClusterPolicySpec>>,
    maps: BTreeMap<String, Option<BTreeMap<String, String>>>,
    /// NVIDIA's programs that do the agent's work here, as phrases by pod; `None`: not known yet.
    rivals: Option<BTreeMap<String, String>>,
    /// What the API server answered last, if it was an error.
    trouble: Option<String>,
}

/// The node, as far as the agent looks at it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NodeSeen {
    /// UID of the object.
    pub uid: String,
    /// Labels.
    pub labels: BTreeMap<String, String>,
    /// Annotations.
    pub annotations: BTreeMap<String, String>,
    /// Taints in their order.
    pub taints: Vec<Taint>,
    /// Names of resources in its capacity, with their amounts.
    pub capacity: BTreeMap<String, String>,
}

impl Cluster {
    /// Begins to watch, by this client or the one that the settings name; `wake` is notified at
    /// every change. Nothing is waited for.
    ///
    /// # Errors
    /// If there is neither a client nor a kubeconfig nor a service account. That the API server does not answer
    /// is no error.
    pub async fn watch(
        about: Kubernetes,
        client: Option<Client>,
        wake: Arc<Notify>,
    ) -> Result<Self, ConnectError> {
        let client = match client {
            Some(client) => client,
            None => connect(&about).await?,
        };
        let seen = Arc::new(Seen {
            state: Mutex::default(),
            wake,
        });
        let mut cluster = Self {
            client,
            about,
            seen,
            tasks: Vec::new(),
            maps: BTreeMap::new(),
        };
        cluster.watch_node();
        cluster.watch_policy();
        cluster.watch_pods();
        Ok(cluster)
    }

    fn watch_node(&mut self) {
        let api = objects::nodes(&self.client);
        let name = self.about.node.clone();
        self.tasks
            .push(follow(api, &name, &self.seen, |state, node| {
                set(&mut state.node, node.map(NodeSeen::from))
            }));
    }

    fn watch_policy(&mut self) {
        let kind = GroupVersionKind::gvk("nvidia.com", "v1", "ClusterPolicy");
        let resource = ApiResource::from_gvk_with_plural(&kind, "clusterpolicies");
        let api: Api<DynamicObject> = Api::all_with(self.client.clone(), &resource);
        self.tasks.push(follow(
            api,
            "cluster-policy",
            &self.seen,
            |state, object| {
                let spec = |object: DynamicObject| ClusterPolicySpec::from_json(&object.data);
                set(&mut state.policy, Some(object.map(spec)))
            },
        ));
    }

    fn watch_pods(&mut self) {
        let fields = format!("spec.nodeName={}", self.about.node);
        let config = watcher::Config::default().fields(&fields);
        let stream = watcher(objects::pods_by_name(&self.client), config).default_backoff();
        let seen = Arc::clone(&self.seen);
        self.tasks.push(tokio::spawn(async move {
            pin_mut!(stream);
            let mut listed = BTreeMap::new();
            while let Some(answer) = stream.next().await {
                let mut state = seen.state();
                let changed = match answer {
                    Ok(event) => note_pod(&mut state.rivals, &mut listed, event),
                    Err(error) => set(&mut state.trouble, Some(error.to_string())),
                };
                drop(state);
                if changed {
                    seen.wake.notify_one();
                }
            }
        }));
    }

    /// NVIDIA's programs that do the agent's work on this node, each as a phrase with its pod.
    pub fn rivals(&self) -> Vec<String> {
        let state = self.seen.state();
        let rivals = state.rivals.iter().flatten();
        rivals.map(|(_, phrase)| phrase.clone()).collect()
    }

    /// What is missing before it is known what is wanted of the node.
    pub fn awaited(&self) -> String {
        let state = self.seen.state();
        let what = match (&state.node, &state.policy, &state.rivals) {
            (None, ..) => format!("the node {}", self.about.node),
            (_, None, _) => "the ClusterPolicy".to_owned(),
            (.., None) => "the pods of this node".to_owned(),
            _ => "a ConfigMap that ClusterPolicy names".to_owned(),
        };
        match &state.trouble {
            Some(trouble) => format!("waiting for the API server to show {what}: {trouble}"),
            None => format!("waiting for the API server to show {what}"),
        }
    }

    /// The node; `None` until it was seen, and if it is gone.
    pub fn node(&self) -> Option<NodeSeen> {
        self.seen.state().node.clone()
    }

    /// What is wanted of the node; `None` until all that it depends on has been seen. Begins to
    /// watch the ConfigMaps that are named, and ends the watch of others.
    pub fn told(&mut self, settings: &Settings) -> Option<Told> {
        let (node, policy) = {
            let state = self.seen.state();
            state.rivals.as_ref()?;
            (state.node.clone()?, state.policy.clone()?)
        };
        let names = decide::config_maps(policy.as_ref(), settings);
        self.watch_maps(&names);
        let state = self.seen.state();
        let mut config_maps = BTreeMap::new();
        for name in names {
            if let Some(data) = state.maps.get(&name)?.clone() {
                config_maps.insert(name, data);
            }
        }
        Some(Told {
            labels: node.labels,
            annotations: node.annotations,
            config_maps,
            policy,
        })
    }

    fn watch_maps(&mut self, names: &[String]) {
        let seen = &self.seen;
        self.maps.retain(|name, task| {
            let keep = names.contains(name);
            if !keep {
                task.abort();
                seen.state().maps.remove(name);
            }
            keep
        });
        for name in names {
            if self.maps.contains_key(name) {
                continue;
            }
            let api: Api<ConfigMap> = Api::namespaced(self.client.clone(), &self.about.namespace);
            let key = name.clone();
            let task = follow(api, name, &self.seen, move |state, map| {
                let data = map.map(|map| map.data.unwrap_or_default());
                let before = state.maps.insert(key.clone(), data.clone());
                before != Some(data)
            });
            self.maps.insert(name.clone(), task);
        }
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        for task in self.tasks.iter().chain(self.maps.values()) {
            task.abort();
        }
    }
}

impl Seen {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A client as the settings say.
async fn connect(about: &Kubernetes) -> Result<Client, ConnectError> {
    let config = match &about.kubeconfig {
        Some(path) => {
            let file = kube::config::Kubeconfig::read_from(path).map_err(fail)?;
            Config::from_custom_kubeconfig(file, &Default::default())
                .await
                .map_err(fail)?
        }
        None => Config::infer().await.map_err(fail)?,
    };
    Client::try_from(config).map_err(fail)
}

/// Why the API server cannot be spoken to at all.
#[derive(Debug, thiserror::Error)]
#[error("there is no way to the API server: {0}")]
pub struct ConnectError(String);

fn fail(error: impl std::fmt::Display) -> ConnectError {
    ConnectError(error.to_string())
}

/// Sets a value; whether it is another than before.
fn set<T: PartialEq>(to: &mut T, new: T) -> bool {
    let changed = *to != new;
    *to = new;
    changed
}

/// Follows one object for as long as the task lives, and wakes the agent when `note` says that
/// something is different: most changes of a node are of no interest.
fn follow<K>(
    api: Api<K>,
    name: &str,
    seen: &Arc<Seen>,
    mut note: impl FnMut(&mut State, Option<K>) -> bool + Send + 'static,
) -> JoinHandle<()>
where
    K: Resource + Clone + DeserializeOwned + Debug + Send + 'static,
{
    let stream = watch_object(api, name).default_backoff();
    let seen = Arc::clone(seen);
    tokio::spawn(async move {
        pin_mut!(stream);
        while let Some(answer) = stream.next().await {
            let mut state = seen.state();
            let changed = match answer {
                Ok(object) => {
                    state.trouble = None;
                    note(&mut state, object)
                }
                // The kind of object is not known there, so there is none.
                Err(error) if is_not_found(&error) => note(&mut state, None),
                Err(error) => set(&mut state.trouble, Some(error.to_string())),
            };
            drop(state);
            if changed {
                seen.wake.notify_one();
            }
        }
    })
}

/// Notes a pod of the node that does the agent's work; whether something is different. `listed` is
/// what has come so far of a list.
fn note_pod(
    rivals: &mut Option<BTreeMap<String, String>>,
    listed: &mut BTreeMap<String, String>,
    event: watcher::Event<PartialObjectMeta<Pod>>,
) -> bool {
    use watcher::Event::{Apply, Delete, Init, InitApply, InitDone};
    match event {
        Init => {
            listed.clear();
            false
        }
        InitApply(pod) => {
            let pod = pod_on_node(pod.metadata);
            listed.extend(decide::rival(&pod).map(|phrase| (pod.name, phrase)));
            false
        }
        InitDone => set(rivals, Some(std::mem::take(listed))),
        Apply(pod) => {
            let pod = pod_on_node(pod.metadata);
            let phrase = decide::rival(&pod);
            note_rival(rivals, pod.name, phrase)
        }
        // What it was is not asked: its labels may have changed meanwhile.
        Delete(pod) => note_rival(rivals, pod_on_node(pod.metadata).name, None),
    }
}

/// Notes what a pod is now; whether something is different.
fn note_rival(
    rivals: &mut Option<BTreeMap<String, String>>,
    name: String,
    phrase: Option<String>,
) -> bool {
    let Some(rivals) = rivals else { return false };
    match phrase {
        Some(phrase) => rivals.insert(name, phrase).is_none(),
        None => rivals.remove(&name).is_some(),
    }
}

fn is_not_found(error: &watcher::Error) -> bool {
    match error {
        // By number: where no kind of the group is known, the answer is a bare page without a
        // reason, which kube's `is_not_found` does not take for one.
        watcher::Error::InitialListFailed(kube::Error::Api(status))
        | watcher::Error::WatchStartFailed(kube::Error::Api(status)) => status.code == 404,
        _ => false,
    }
}

impl From<Node> for NodeSeen {
    fn from(node: Node) -> Self {
        Self {
            uid: node.metadata.uid.unwrap_or_default(),
            labels: node.metadata.labels.unwrap_or_default(),
            annotations: node.metadata.annotations.unwrap_or_default(),
            taints: node.spec.taints,
            capacity: node
                .status
                .map(|status| status.capacity)
                .unwrap_or_default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
    use kube::core::{PartialObjectMetaExt, Status};

    use super::*;

    #[test]
    fn a_group_of_kinds_that_nobody_knows_is_no_trouble() {
        let bare = Status::failure("404 page not found", "Failed to parse error data");
        let answer = |code| {
            let status = Box::new(bare.clone().with_code(code));
            watcher::Error::InitialListFailed(kube::Error::Api(status))
        };
        assert!(is_not_found(&answer(404)));
        assert!(!is_not_found(&answer(503)));
    }

    #[test]
    fn rivals_are_those_of_the_last_list_and_of_what_came_since() {
        use watcher::Event::{Apply, Delete, Init, InitApply, InitDone};
        let pod = |name: &str, app: &str| {
            let labels = Some([("app".to_owned(), app.to_owned())].into());
            let metadata = ObjectMeta {
                name: Some(name.to_owned()),
                labels,
                ..ObjectMeta::default()
            };
            metadata.into_response_partial::<Pod>()
        };
        let theirs = |name| pod(name, "nvidia-mig-manager");
        let (mut rivals, mut listed) = (None, BTreeMap::new());
        let mut note = |event| {
            let changed = note_pod(&mut rivals, &mut listed, event);
            let names = rivals.iter().flat_map(|it| it.keys().cloned());
            (changed, names.collect::<Vec<_>>().join(" "))
        };
        note(Init);
        assert_eq!(note(InitApply(theirs("a"))), (false, String::new()));
        assert_eq!(note(InitDone), (true, "/a".to_owned()));
        assert_eq!(note(Apply(theirs("a"))), (false, "/a".to_owned()));
        assert_eq!(note(Apply(pod("web", "web"))), (false, "/a".to_owned()));
        assert_eq!(note(Apply(theirs("b"))), (true, "/a /b".to_owned()));
        assert_eq!(note(Delete(theirs("a"))), (true, "/b".to_owned()));
        // One that is given other labels is none any more, and one that is gone is gone.
        assert_eq!(note(Apply(pod("b", "web"))), (true, String::new()));
        assert_eq!(note(Apply(theirs("b"))), (true, "/b".to_owned()));
        assert_eq!(note(Delete(pod("b", "web"))), (true, String::new()));
        assert_eq!(note(Apply(theirs("c"))), (true, "/c".to_owned()));
        note(Init);
        assert_eq!(note(InitDone), (true, String::new()));
    }
}
