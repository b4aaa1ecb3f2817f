// SPDX-License-Identifier: Apache-2.0
//! What can go wrong between a plugin and the kubelet.

use std::error::Error as _;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

/// An operation that failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A socket cannot be made.
    #[error("cannot serve on {}: {source}", socket.display())]
    Bind {
        /// The socket.
        socket: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Nobody answers on a socket.
    #[error("cannot connect to {}: {reason}", socket.display())]
    Dial {
        /// The socket.
        socket: PathBuf,
        /// Why.
        reason: String,
    },
    /// The kubelet restarted in the middle of a registration.
    #[error("the kubelet restarted behind {}", socket.display())]
    Replaced {
        /// The kubelet's socket.
        socket: PathBuf,
    },
    /// A call was answered with an error.
    #[error("{call} on {} failed: {message}", socket.display())]
    Call {
        /// Name of the call.
        call: &'static str,
        /// The socket.
        socket: PathBuf,
        /// The answer.
        message: String,
    },
    /// No answer in time.
    #[error("no answer on {} within {} s", socket.display(), bound.as_secs())]
    TimedOut {
        /// The socket.
        socket: PathBuf,
        /// How long was waited.
        bound: Duration,
    },
}

impl Error {
    /// Whether a call was answered with an error of these words.
    pub(crate) fn says(&self, words: &str) -> bool {
        matches!(self, Self::Call { message, .. } if message.contains(words))
    }
}

/// What a transport error is about: the last of its causes, since it calls itself "transport
/// error" only.
pub(crate) fn cause(error: &tonic::transport::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(inner) = source {
        text = inner.to_string();
        source = inner.source();
    }
    text
}
