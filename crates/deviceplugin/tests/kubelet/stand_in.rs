// SPDX-License-Identifier: Apache-2.0
//! A kubelet that does what the real one does with plugins, and tells everything.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use deviceplugin::Sockets;
use deviceplugin::wire::deviceplugin as wire;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::timeout;
use tonic::transport::{Channel, Server};
use tonic::{Request, Response, Status};
use wire::device_plugin_client::DevicePluginClient;
use wire::registration_server::{Registration, RegistrationServer};

/// Longest wait for something that must happen, in virtual time.
const SOON: Duration = Duration::from_secs(120);

/// What the kubelet sees.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// A registration, which was taken.
    Registered(wire::RegisterRequest),
    /// A list of a resource.
    Listed(String, Vec<wire::Device>),
    /// The plugin ended the stream of a resource.
    Ended(String),
}

/// A folder that is gone when it is dropped.
pub struct Folder {
    path: PathBuf,
    /// Where its sockets are.
    pub place: Sockets,
}

impl Folder {
    pub fn new() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("slicewright-kubelet-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).unwrap();
        Self {
            path,
            place: Sockets::unix(),
        }
    }

    /// One of each kind: of the file system, and a name in the process.
    pub fn both() -> [Self; 2] {
        let in_memory = Self {
            path: PathBuf::from("/in/memory"),
            place: Sockets::in_memory(),
        };
        [Self::new(), in_memory]
    }

    pub fn has(&self, socket: &str) -> bool {
        self.place.identity(&self.path.join(socket)).is_some()
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn kubelet_socket(&self) -> PathBuf {
        self.path.join("kubelet.sock")
    }

    /// Names of the plugins' sockets.
    pub fn sockets(&self) -> Vec<String> {
        let entries = std::fs::read_dir(&self.path).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<String> = names.filter(|name| name != "kubelet.sock").collect();
        names.sort();
        names
    }

    pub fn empty(&self) {
        self.place.clear(&self.path).unwrap();
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.path);
    }
}

/// A running kubelet.
pub struct Kubelet {
    events: mpsc::UnboundedReceiver<Event>,
    inner: Inner,
    serving: tokio::task::JoinHandle<()>,
    stop: Option<tokio::sync::oneshot::Sender<()>>,
}

#[derive(Clone)]
struct Inner {
    folder: PathBuf,
    place: Sockets,
    events: mpsc::UnboundedSender<Event>,
    plugins: Arc<Mutex<BTreeMap<String, DevicePluginClient<Channel>>>>,
    /// Sockets of plugins that are connected.
    connected: Arc<Mutex<BTreeSet<String>>>,
    streams: Arc<Mutex<JoinSet<()>>>,
}

impl Kubelet {
    /// Starts one, which replaces the socket of the one before.
    pub fn start(folder: &Folder) -> Self {
        let socket = folder.kubelet_socket();
        folder.place.remove(&socket).unwrap();
        let listener = folder.place.bind(&socket).unwrap();
        let (sender, events) = mpsc::unbounded_channel();
        let inner = Inner {
            folder: folder.path().to_owned(),
            place: folder.place.clone(),
            events: sender,
            plugins: Arc::default(),
            connected: Arc::default(),
            streams: Arc::default(),
        };
        let (stop, stopped) = tokio::sync::oneshot::channel();
        let service = RegistrationServer::new(inner.clone());
        let serving = tokio::spawn(async move {
            let stopped = async { drop(stopped.await) };
            Server::builder()
                .add_service(service)
                .serve_with_incoming_shutdown(listener, stopped)
                .await
                .unwrap();
        });
        Self {
            events,
            inner,
            serving,
            stop: Some(stop),
        }
    }

    /// Ends it as a killed one ends: connections break, and its socket's file stays.
    pub async fn crash(&mut self) {
        self.hang_up().await;
        self.stop = None;
        (&mut self.serving).await.unwrap();
    }

    /// Ends its side of all streams.
    pub async fn hang_up(&self) {
        let mut streams = std::mem::take(&mut *self.inner.streams.lock().unwrap());
        streams.shutdown().await;
        self.inner.plugins.lock().unwrap().clear();
        self.inner.connected.lock().unwrap().clear();
    }

    /// What happens next.
    pub async fn event(&mut self) -> Event {
        let event = timeout(SOON, self.events.recv()).await;
        event.expect("nothing happens").unwrap()
    }

    /// The next is a registration; the name of its resource.
    pub async fn registered(&mut self) -> String {
        match self.event().await {
            Event::Registered(request) => request.resource_name,
            other => panic!("no registration: {other:?}"),
        }
    }

    /// The next is a list of this resource; its devices, and whether each is healthy.
    pub async fn listed(&mut self, resource: &str) -> Vec<(String, bool)> {
        match self.event().await {
            Event::Listed(name, devices) if name == resource => {
                let devices = devices.into_iter();
                devices.map(|it| (it.id, it.health == "Healthy")).collect()
            }
            other => panic!("no list of {resource}: {other:?}"),
        }
    }

    /// The next is the end of a stream.
    pub async fn ended(&mut self, resource: &str) {
        let event = self.event().await;
        assert_eq!(event, Event::Ended(resource.to_owned()));
    }

    /// Nothing happens for so long.
    pub async fn quiet(&mut self, seconds: u64) {
        assert_eq!(self.events_until_quiet(seconds).await, []);
    }

    /// What happens until nothing does for so long.
    pub async fn events_until_quiet(&mut self, seconds: u64) -> Vec<Event> {
        let mut events = Vec::new();
        while let Ok(event) = timeout(Duration::from_secs(seconds), self.events.recv()).await {
            events.extend(event);
        }
        events
    }

    /// Believes that a plugin is connected there, as the real one does for ever after it has
    /// refused one.
    pub fn believe_in(&self, endpoint: &str) {
        let connected = &self.inner.connected;
        connected.lock().unwrap().insert(endpoint.to_owned());
    }

    /// Calls the plugin of a resource.
    pub fn plugin(&self, resource: &str) -> DevicePluginClient<Channel> {
        self.inner.plugins.lock().unwrap()[resource].clone()
    }
}

#[tonic::async_trait]
impl Registration for Inner {
    async fn register(
        &self,
        request: Request<wire::RegisterRequest>,
    ) -> Result<Response<wire::Empty>, Status> {
        let request = request.into_inner();
        let name = request.resource_name.clone();
        // As the real one: dials back, asks for options, then answers and opens the stream.
        let socket = self.folder.join(&request.endpoint);
        let refused = |error: deviceplugin::Error| Status::unavailable(error.to_string());
        let channel = self.place.dial(&socket).await.map_err(refused)?;
        let mut client = DevicePluginClient::new(channel);
        let options = client.get_device_plugin_options(wire::Empty {}).await?;
        assert_eq!(Some(options.into_inner()), request.options);
        let endpoint = request.endpoint.clone();
        if !self.connected.lock().unwrap().insert(endpoint.clone()) {
            return Err(Status::unknown(format!("already connected: {endpoint}")));
        }
        let plugins = &self.plugins;
        plugins.lock().unwrap().insert(name.clone(), client.clone());
        let _ = self.events.send(Event::Registered(request));
        let (events, connected) = (self.events.clone(), Arc::clone(&self.connected));
        self.streams.lock().unwrap().spawn(async move {
            let mut lists = client
                .list_and_watch(wire::Empty {})
                .await
                .unwrap()
                .into_inner();
            while let Ok(Some(list)) = lists.message().await {
                let _ = events.send(Event::Listed(name.clone(), list.devices));
            }
            connected.lock().unwrap().remove(&endpoint);
            let _ = events.send(Event::Ended(name));
        });
        Ok(Response::new(wire::Empty {}))
    }
}
