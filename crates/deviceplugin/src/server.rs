// SPDX-License-Identifier: Apache-2.0
//! A resource's socket and what answers on it.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tonic::transport::Server as Transport;

use crate::error::Error;
use crate::service::{Service, closed};
use crate::sockets::{Identity, Sockets};
use crate::wire::deviceplugin::Empty;
use crate::wire::deviceplugin::device_plugin_client::DevicePluginClient;
use crate::wire::deviceplugin::device_plugin_server::DevicePluginServer;

/// Longest wait for a server's own answer.
const OWN_ANSWER: Duration = Duration::from_secs(5);
/// Longest wait for connections to end after their streams were ended.
const CLOSE: Duration = Duration::from_secs(1);

/// A served socket. Dropped, it ends its streams like [`Server::close`], but leaves the file.
pub(crate) struct Server {
    sockets: Sockets,
    socket: PathBuf,
    identity: Identity,
    closing: watch::Sender<bool>,
    serving: JoinHandle<Result<(), tonic::transport::Error>>,
}

impl Server {
    /// Serves on `socket`, in place of what is there, and makes sure that it answers.
    ///
    /// # Errors
    /// If the socket cannot be made, or does not answer within 5 s.
    pub(crate) async fn open(
        sockets: &Sockets,
        socket: PathBuf,
        service: impl FnOnce(watch::Receiver<bool>) -> Service,
    ) -> Result<Self, Error> {
        let failed = |source| Error::Bind {
            socket: socket.clone(),
            source,
        };
        sockets.remove(&socket).map_err(failed)?;
        let listener = sockets.bind(&socket).map_err(failed)?;
        let gone = || failed(io::ErrorKind::NotFound.into());
        let identity = sockets.identity(&socket).ok_or_else(gone)?;
        let (closing, mut closes) = watch::channel(false);
        let service = DevicePluginServer::new(service(closes.clone()));
        // Connections are served by tasks of their own, which outlive this one. So they are ended
        // from inside: by the end of their streams.
        let serving = tokio::spawn(async move {
            Transport::builder()
                .add_service(service)
                .serve_with_incoming_shutdown(listener, async move {
                    closed(&mut closes).await;
                })
                .await
        });
        let server = Self {
            sockets: sockets.clone(),
            socket,
            identity,
            closing,
            serving,
        };
        match timeout(OWN_ANSWER, ask(sockets, &server.socket)).await {
            Ok(Ok(())) => Ok(server),
            Ok(Err(error)) => {
                server.close().await;
                Err(error)
            }
            Err(_) => {
                let socket = server.socket.clone();
                server.close().await;
                Err(Error::TimedOut {
                    socket,
                    bound: OWN_ANSWER,
                })
            }
        }
    }

    /// Whether the socket is still this one, and served.
    pub(crate) fn is_there(&self) -> bool {
        self.has_file() && !self.serving.is_finished()
    }

    fn has_file(&self) -> bool {
        let there = self.sockets.identity(&self.socket);
        there.is_some_and(|there| there.is_same_file(self.identity))
    }

    /// Ends the streams, then the connections, and removes the socket if it is still this one.
    pub(crate) async fn close(mut self) {
        self.closing.send_replace(true);
        // Connections that do not end by then have no streams that anybody writes to.
        if timeout(CLOSE, &mut self.serving).await.is_err() {
            self.serving.abort();
        }
        if self.has_file() {
            // If it cannot be removed, the next who serves here says so.
            let _ = self.sockets.remove(&self.socket);
        }
    }
}

/// Asks the server on the socket something that it must be able to answer.
async fn ask(sockets: &Sockets, socket: &Path) -> Result<(), Error> {
    let mut client = DevicePluginClient::new(sockets.dial(socket).await?);
    let answer = client.get_device_plugin_options(Empty {}).await;
    answer.map(|_| ()).map_err(|status| Error::Call {
        call: "GetDevicePluginOptions",
        socket: socket.to_owned(),
        message: status.message().to_owned(),
    })
}
