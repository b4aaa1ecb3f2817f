// SPDX-License-Identifier: Apache-2.0
//! The kubelet's side: which one is there, and telling it about a resource.

use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

use tokio::time::timeout;
use tonic::transport::{Channel, Endpoint};

use crate::error::{Error, cause};
use crate::wire::deviceplugin::RegisterRequest;
use crate::wire::deviceplugin::registration_client::RegistrationClient;

/// Longest wait for a connection.
const DIAL: Duration = Duration::from_secs(5);
/// Longest wait for the kubelet to take a registration. It dials back before it answers, for 10 s
/// at most; to give up earlier would leave it with half of one.
const REGISTER: Duration = Duration::from_secs(15);

/// Which file a socket is. A restarted kubelet makes its socket anew; the time of change tells that
/// from the last one where the file system gives it the same number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Identity {
    device: u64,
    inode: u64,
    changed: (i64, i64),
}

impl Identity {
    /// That of the file at `path`; `None`: there is none.
    pub(crate) fn of(path: &Path) -> Option<Self> {
        let found = std::fs::symlink_metadata(path).ok()?;
        Some(Self {
            device: found.dev(),
            inode: found.ino(),
            changed: (found.ctime(), found.ctime_nsec()),
        })
    }

    /// Whether the two are one file as long as somebody serves it: its number is not given away
    /// then, and the time of change only says that rights or labels were set.
    pub(crate) fn is_same_file(self, other: Self) -> bool {
        (self.device, self.inode) == (other.device, other.inode)
    }

    /// One for a test of what follows from it.
    #[cfg(test)]
    pub(crate) const fn numbered(inode: u64, changed: i64) -> Self {
        Self {
            device: 0,
            inode,
            changed: (changed, 0),
        }
    }
}

/// A connection to a socket.
///
/// # Errors
/// If nobody answers within 5 s.
pub(crate) async fn dial(socket: &Path) -> Result<Channel, Error> {
    let failed = |reason: String| Error::Dial {
        socket: socket.to_owned(),
        reason,
    };
    let endpoint = Endpoint::from_shared(format!("unix:{}", socket.display()))
        .map_err(|error| failed(cause(&error)))?;
    match timeout(DIAL, endpoint.connect()).await {
        Ok(connected) => connected.map_err(|error| failed(cause(&error))),
        Err(_) => Err(Error::TimedOut {
            socket: socket.to_owned(),
            bound: DIAL,
        }),
    }
}

/// Tells the kubelet whose socket is `kubelet` about a resource. Nothing is said to another one
/// that has taken its place meanwhile, so that each kubelet hears of a resource once.
///
/// # Errors
/// If it is not there, is another one, refuses, or does not answer.
pub(crate) async fn register(
    socket: &Path,
    kubelet: Identity,
    request: RegisterRequest,
) -> Result<(), Error> {
    let channel = dial(socket).await?;
    let socket = || socket.to_owned();
    if Identity::of(&socket()) != Some(kubelet) {
        return Err(Error::Replaced { socket: socket() });
    }
    let mut client = RegistrationClient::new(channel);
    match timeout(REGISTER, client.register(request)).await {
        Ok(Ok(_)) => Ok(()),
        Ok(Err(status)) => Err(Error::Call {
            call: "Register",
            socket: socket(),
            message: status.message().to_owned(),
        }),
        Err(_) => Err(Error::TimedOut {
            socket: socket(),
            bound: REGISTER,
        }),
    }
}
