// SPDX-License-Identifier: Apache-2.0
//! The sockets between kubelet and plugins: files of the machine, or a table in the process, which
//! needs no file system and gives the same run each time.

use std::collections::BTreeMap;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite, DuplexStream, ReadBuf, duplex};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_stream::Stream;
use tonic::transport::server::Connected;
use tonic::transport::{Channel, Endpoint};

use crate::error::{Error, cause};

/// Longest wait for a connection.
const DIAL: Duration = Duration::from_secs(5);
/// Bytes that are on their way in one direction of a connection in memory.
const ON_THE_WAY: usize = 16 << 10;

/// Where sockets are. Clones are the same place.
#[derive(Clone, Debug)]
pub struct Sockets(Place);

#[derive(Clone, Debug)]
enum Place {
    Unix,
    Memory(Arc<Mutex<Table>>),
}

#[derive(Debug, Default)]
struct Table {
    /// How many sockets there ever were.
    made: u64,
    by_path: BTreeMap<PathBuf, Entry>,
}

#[derive(Debug)]
struct Entry {
    number: u64,
    listener: mpsc::UnboundedSender<DuplexStream>,
}

/// Which socket it is. A restarted kubelet makes its socket anew; the time of change tells that
/// from the last one where the file system gives it the same number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    device: u64,
    inode: u64,
    changed: (i64, i64),
}

impl Identity {
    /// Whether the two are one socket as long as somebody serves it: its number is not given away
    /// then, and the time of change only says that rights or labels were set.
    pub(crate) fn is_same_file(self, other: Self) -> bool {
        (self.device, self.inode) == (other.device, other.inode)
    }

    pub(crate) const fn numbered(inode: u64, changed: i64) -> Self {
        Self {
            device: 0,
            inode,
            changed: (changed, 0),
        }
    }
}

fn lock(table: &Mutex<Table>) -> MutexGuard<'_, Table> {
    // Nothing that is done under the lock can leave half of it behind.
    table.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Sockets {
    /// Unix sockets of the machine.
    pub const fn unix() -> Self {
        Self(Place::Unix)
    }

    /// A new place in the process, with nothing in it. Paths are names only.
    pub fn in_memory() -> Self {
        Self(Place::Memory(Arc::default()))
    }

    /// Makes a socket. Dropped, the listener leaves it behind, and nobody answers on it.
    ///
    /// # Errors
    /// If there is one already, or the file cannot be made.
    pub fn bind(&self, path: &Path) -> io::Result<Listener> {
        let table = match &self.0 {
            Place::Unix => return UnixListener::bind(path).map(Listener::Unix),
            Place::Memory(table) => table,
        };
        let mut table = lock(table);
        if table.by_path.contains_key(path) {
            return Err(io::ErrorKind::AddrInUse.into());
        }
        table.made += 1;
        let (listener, connections) = mpsc::unbounded_channel();
        let entry = Entry {
            number: table.made,
            listener,
        };
        table.by_path.insert(path.to_owned(), entry);
        Ok(Listener::Memory(connections))
    }

    /// Connects to a socket.
    ///
    /// # Errors
    /// If it is not there, or nobody listens.
    pub async fn connect(&self, path: &Path) -> io::Result<Connection> {
        let table = match &self.0 {
            Place::Unix => return UnixStream::connect(path).await.map(Connection::Unix),
            Place::Memory(table) => table,
        };
        let table = lock(table);
        let entry = table.by_path.get(path).ok_or(io::ErrorKind::NotFound)?;
        let (ours, theirs) = duplex(ON_THE_WAY);
        let taken = entry.listener.send(theirs);
        taken.map_err(|_| io::ErrorKind::ConnectionRefused)?;
        Ok(Connection::Memory(ours))
    }

    /// Which socket is there now; `None`: there is none.
    pub fn identity(&self, path: &Path) -> Option<Identity> {
        match &self.0 {
            Place::Unix => {
                let found = std::fs::symlink_metadata(path).ok()?;
                Some(Identity {
                    device: found.dev(),
                    inode: found.ino(),
                    changed: (found.ctime(), found.ctime_nsec()),
                })
            }
            Place::Memory(table) => {
                let table = lock(table);
                let entry = table.by_path.get(path)?;
                Some(Identity::numbered(entry.number, 0))
            }
        }
    }

    /// Takes a socket away, if there is one. Connections that there are stay.
    ///
    /// # Errors
    /// If the file cannot be removed.
    pub fn remove(&self, path: &Path) -> io::Result<()> {
        match &self.0 {
            Place::Unix => match std::fs::remove_file(path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
                _ => Ok(()),
            },
            Place::Memory(table) => {
                lock(table).by_path.remove(path);
                Ok(())
            }
        }
    }

    /// Takes away everything in a folder, as a kubelet does at its start. Folders in it stay.
    ///
    /// # Errors
    /// If the folder cannot be read, or a file cannot be removed.
    pub fn clear(&self, folder: &Path) -> io::Result<()> {
        match &self.0 {
            Place::Unix => {
                for entry in std::fs::read_dir(folder)? {
                    let entry = entry?;
                    if !entry.file_type()?.is_dir() {
                        self.remove(&entry.path())?;
                    }
                }
            }
            Place::Memory(table) => {
                let is_elsewhere = |path: &PathBuf, _: &mut Entry| path.parent() != Some(folder);
                lock(table).by_path.retain(is_elsewhere);
            }
        }
        Ok(())
    }

    /// A connection for calls to a socket.
    ///
    /// # Errors
    /// If nobody answers within 5 s.
    pub async fn dial(&self, socket: &Path) -> Result<Channel, Error> {
        let (sockets, path) = (self.clone(), socket.to_owned());
        let connector = tower::service_fn(move |_| {
            let (sockets, path) = (sockets.clone(), path.clone());
            async move { sockets.connect(&path).await.map(TokioIo::new) }
        });
        // Where it leads is the connector's business; the name is what the kubelet itself says.
        let endpoint = Endpoint::from_static("http://localhost");
        match timeout(DIAL, endpoint.connect_with_connector(connector)).await {
            Ok(connected) => connected.map_err(|error| Error::Dial {
                socket: socket.to_owned(),
                reason: cause(&error),
            }),
            Err(_) => Err(Error::TimedOut {
                socket: socket.to_owned(),
                bound: DIAL,
            }),
        }
    }
}

/// Those who connect to a socket, as a stream for a server.
#[derive(Debug)]
pub enum Listener {
    /// To a unix socket.
    Unix(UnixListener),
    /// In the process.
    Memory(mpsc::UnboundedReceiver<DuplexStream>),
}

impl Stream for Listener {
    type Item = io::Result<Connection>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        match self.get_mut() {
            Self::Unix(listener) => listener
                .poll_accept(context)
                .map(|accepted| Some(accepted.map(|(stream, _)| Connection::Unix(stream)))),
            // The entry may be gone and with it the last sender: nobody comes then, which is not
            // the end of those who are there.
            Self::Memory(connections) => match connections.poll_recv(context) {
                Poll::Ready(Some(stream)) => Poll::Ready(Some(Ok(Connection::Memory(stream)))),
                _ => Poll::Pending,
            },
        }
    }
}

/// One end of a connection.
#[derive(Debug)]
pub enum Connection {
    /// Over a unix socket.
    Unix(UnixStream),
    /// In the process.
    Memory(DuplexStream),
}

impl Connected for Connection {
    type ConnectInfo = ();

    fn connect_info(&self) {}
}

impl AsyncRead for Connection {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Unix(stream) => Pin::new(stream).poll_read(context, buffer),
            Self::Memory(stream) => Pin::new(stream).poll_read(context, buffer),
        }
    }
}

impl AsyncWrite for Connection {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Unix(stream) => Pin::new(stream).poll_write(context, bytes),
            Self::Memory(stream) => Pin::new(stream).poll_write(context, bytes),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Unix(stream) => Pin::new(stream).poll_flush(context),
            Self::Memory(stream) => Pin::new(stream).poll_flush(context),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Unix(stream) => Pin::new(stream).poll_shutdown(context),
            Self::Memory(stream) => Pin::new(stream).poll_shutdown(context),
        }
    }
}
