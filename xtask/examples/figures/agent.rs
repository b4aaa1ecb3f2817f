// SPDX-License-Identifier: Apache-2.0
//! The agent as a node meets it: the release binary on a simulated driver, with a local kubelet and
//! the config in a file, as the originals were measured.

use std::error::Error;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use deviceplugin::wire::deviceplugin as wire;
use nvmlsim::{Handle, INSTALLED_WORLD, Options, World};
use tokio::net::UnixListener;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio_stream::wrappers::UnixListenerStream;
use tonic::transport::{Endpoint, Server};
use tonic::{Request, Response, Status};
use wire::device_plugin_client::DevicePluginClient;
use wire::registration_server::{Registration, RegistrationServer};

use crate::figure::{Budget, Figure, median};
use crate::machine::binary;

const RUNS: usize = 9;
/// The longest that an agent may take to offer anything.
const OFFERED: Duration = Duration::from_secs(10);
/// Folder of libraries below a driver root.
const LIBRARIES: &str = "usr/lib/x86_64-linux-gnu";

/// Start and memory, with whole GPUs and with slices.
///
/// # Errors
/// If the agent does not serve.
pub fn measure() -> Result<Vec<Figure>, Box<dyn Error>> {
    let binary = binary()?;
    let release = binary.parent().unwrap_or(&binary);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let mut figures = Vec::new();
    for (name, layout, budget, original) in [
        ("8 GPUs", "off", 10.0, "30 ms"),
        ("56 slices", "7x1g.10gb", 12.0, "97 ms"),
    ] {
        let node = NodeFolder::new(release, layout)?;
        let (starts, resident) = runtime.block_on(node.start_often())?;
        figures.push(Figure {
            name: format!("agent with {name}, start to first list"),
            budget: Budget::AtMost(budget),
            runs: starts.len(),
            measured: median(starts).as_secs_f64() * 1e3,
            unit: "ms",
            original,
        });
        figures.push(Figure {
            name: format!("agent with {name}, resident"),
            budget: Budget::AtMost(15.0),
            runs: 1,
            measured: resident,
            unit: "MB",
            original: "110 MB",
        });
    }
    Ok(figures)
}

/// What the agent finds on a node, in a folder that is gone afterwards.
pub struct NodeFolder {
    root: PathBuf,
    binary: PathBuf,
}

impl NodeFolder {
    /// Eight H100 in that layout, and the programs in `release`.
    ///
    /// # Errors
    /// If files cannot be written, or the layout not be applied.
    pub fn new(release: &Path, layout: &str) -> Result<Self, Box<dyn Error>> {
        let name = format!("slicewright-node-{}", std::process::id());
        let root = std::env::temp_dir().join(name);
        let node = Self {
            binary: release.join("slicewright"),
            root,
        };
        let folder = node.root.join("driver").join(LIBRARIES);
        fs::create_dir_all(&folder)?;
        fs::create_dir_all(node.root.join("plugins"))?;
        let version = Options::default().driver_version;
        let library = format!("libnvidia-ml.so.{version}");
        fs::copy(release.join("libnvmlsim.so"), folder.join(&library))?;
        symlink(&library, folder.join("libnvidia-ml.so.1"))?;
        let world = node.root.join("driver").join(INSTALLED_WORLD);
        fs::create_dir_all(world.parent().unwrap_or(&world))?;
        let spec = "8xH100-80GB-SXM".parse()?;
        Handle::create(&world, &World::create(&spec, &Options::default()))?;
        let done = Command::new(&node.binary)
            .args(["host", "apply", "--layout", layout, "--sim"])
            .arg(&world)
            .stdout(Stdio::null())
            .status()?;
        if !done.success() {
            return Err(format!("the layout {layout} cannot be applied").into());
        }
        let config = "version: v1\nflags: {migStrategy: single}\n";
        fs::write(node.root.join("config.yaml"), config)?;
        Ok(node)
    }

    /// Times from start to the first list, and what the last agent has in memory, in MB.
    async fn start_often(&self) -> Result<(Vec<Duration>, f64), Box<dyn Error>> {
        let (sender, mut lists) = unbounded_channel();
        let plugins = self.root.join("plugins");
        let listener = UnixListener::bind(plugins.join("kubelet.sock"))?;
        let kubelet = RegistrationServer::new(Kubelet { plugins, sender });
        let served = Server::builder()
            .add_service(kubelet)
            .serve_with_incoming(UnixListenerStream::new(listener));
        let served = tokio::spawn(served);
        let mut starts = Vec::new();
        let mut resident = 0.0;
        for _ in 0..RUNS {
            let begun = Instant::now();
            let mut agent = self.agent()?;
            let listed = first_list(&mut lists).await;
            resident = resident_mb(agent.id())?;
            agent.kill()?;
            agent.wait()?;
            starts.push(listed?.duration_since(begun));
            while lists.try_recv().is_ok() {}
        }
        served.abort();
        Ok((starts, resident))
    }

    fn agent(&self) -> std::io::Result<Child> {
        let plugins = self.root.join("plugins");
        let mut command = self.command(&plugins);
        command.args(["--pod-resources-socket", ""]).spawn()
    }

    /// The folder.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The agent of this node, with a kubelet's folder of sockets.
    pub fn command(&self, plugins: &Path) -> Command {
        let path = |name: &str| self.root.join(name);
        let mut command = Command::new(&self.binary);
        command
            .arg("agent")
            .arg("--config-file")
            .arg(path("config.yaml"))
            .arg("--driver-root")
            .arg(path("driver"))
            .arg("--plugin-dir")
            .arg(plugins)
            .arg("--cdi-dir")
            .arg(path("cdi"))
            .arg("--state-dir")
            .arg(path("state"))
            .arg("--sys-root")
            .arg(path("sys"))
            .arg("--proc-driver")
            .arg(path("proc"))
            .args(["--listen", "none"])
            .stderr(Stdio::null());
        command
    }
}

impl Drop for NodeFolder {
    fn drop(&mut self) {
        // It is in the temporary folder: what is left goes with that.
        let _ = fs::remove_dir_all(&self.root);
    }
}

async fn first_list(lists: &mut UnboundedReceiver<Instant>) -> Result<Instant, Box<dyn Error>> {
    let listed = tokio::time::timeout(OFFERED, lists.recv()).await?;
    listed.ok_or_else(|| "the kubelet is gone".into())
}

/// What a process has in memory, in MB.
///
/// # Errors
/// If it is not there.
pub fn resident_mb(pid: u32) -> Result<f64, Box<dyn Error>> {
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib: f64 = line
        .and_then(|line| line.trim().strip_suffix(" kB"))
        .ok_or("no VmRSS")?
        .trim()
        .parse()?;
    Ok(kib * 1024.0 / 1e6)
}

/// As much of a kubelet as it takes: it asks for the list of what registers.
struct Kubelet {
    plugins: PathBuf,
    sender: UnboundedSender<Instant>,
}

#[tonic::async_trait]
impl Registration for Kubelet {
    async fn register(
        &self,
        request: Request<wire::RegisterRequest>,
    ) -> Result<Response<wire::Empty>, Status> {
        let socket = self.plugins.join(request.into_inner().endpoint);
        let sender = self.sender.clone();
        tokio::spawn(async move {
            let endpoint = Endpoint::from_shared(format!("unix:{}", socket.display())).ok()?;
            let mut client = DevicePluginClient::new(endpoint.connect().await.ok()?);
            let lists = client.list_and_watch(wire::Empty {}).await.ok()?;
            let mut lists = lists.into_inner();
            while let Ok(Some(list)) = lists.message().await {
                if !list.devices.is_empty() {
                    sender.send(Instant::now()).ok()?;
                }
            }
            Some(())
        });
        Ok(Response::new(wire::Empty {}))
    }
}
