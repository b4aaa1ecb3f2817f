// SPDX-License-Identifier: Apache-2.0
//! Telling the kubelet about a resource.

use std::path::Path;
use std::time::Duration;

use tokio::time::timeout;

use crate::error::Error;
use crate::sockets::{Identity, Sockets};
use crate::wire::deviceplugin::RegisterRequest;
use crate::wire::deviceplugin::registration_client::RegistrationClient;

/// Longest wait for the kubelet to take a registration. It dials back before it answers, for 10 s
/// at most; to give up earlier would leave it with half of one.
const REGISTER: Duration = Duration::from_secs(15);

/// Tells the kubelet whose socket is `kubelet` about a resource. Nothing is said to another one
/// that has taken its place meanwhile, so that each kubelet hears of a resource once.
///
/// # Errors
/// If it is not there, is another one, refuses, or does not answer.
pub(crate) async fn register(
    sockets: &Sockets,
    socket: &Path,
    kubelet: Identity,
    request: RegisterRequest,
) -> Result<(), Error> {
    let channel = sockets.dial(socket).await?;
    let socket = || socket.to_owned();
    if sockets.identity(&socket()) != Some(kubelet) {
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
