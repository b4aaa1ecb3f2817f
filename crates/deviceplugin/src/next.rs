// SPDX-License-Identifier: Apache-2.0
//! What a plugin does next, from what it sees.

use std::time::Duration;

use tokio::time::Instant;

use crate::sockets::Identity;

/// How long a withdrawn resource is served, so that the kubelet has read that it counts 0.
const LINGER: Duration = Duration::from_secs(5);
/// How long a kubelet that has taken a registration may be without a stream before it is told again.
/// It refuses to be told twice (kubelet 1.37: "already connected", and forgets the first), so not
/// before it has surely failed to call: it opens the stream at once.
const SILENCE: Duration = Duration::from_secs(30);
/// How long after the end of a stream the same kubelet is told again, since it needs a moment to
/// let go of the old one.
pub(crate) const SETTLE: Duration = Duration::from_secs(1);
/// Longest time between two tries with the same kubelet.
const LONGEST: Duration = Duration::from_secs(30);

/// What to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// Serve, in place of what was served before.
    Serve,
    /// Tell this kubelet.
    Register(Identity),
    /// The kubelet has let go: it does not count as told any more.
    Lost,
    /// End everything.
    Close,
    /// Look again later.
    Wait,
}

/// A kubelet that was told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Told {
    /// Which one.
    pub(crate) kubelet: Identity,
    /// When.
    pub(crate) at: Instant,
}

/// A kubelet that is not to be told for a while.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Hold {
    /// Which one.
    pub(crate) kubelet: Identity,
    /// Until when.
    pub(crate) until: Instant,
}

/// What a plugin sees.
#[derive(Clone, Copy, Debug)]
pub(crate) struct View {
    /// Whether its socket is there and served.
    pub(crate) served: bool,
    /// The kubelet that is there.
    pub(crate) kubelet: Option<Identity>,
    /// The kubelet that was told.
    pub(crate) told: Option<Told>,
    /// Whether that one has opened a stream.
    pub(crate) heard: bool,
    /// Whether a stream is open.
    pub(crate) listens: bool,
    /// The kubelet that is not to be told yet.
    pub(crate) hold: Option<Hold>,
    /// When the resource was withdrawn, if it is.
    pub(crate) withdrawn: Option<Instant>,
    /// Now.
    pub(crate) now: Instant,
}

/// The next thing to do.
pub(crate) fn next(view: &View) -> Next {
    if let Some(since) = view.withdrawn {
        // Without a stream nobody reads the empty list; a kubelet that starts later has no devices
        // of this name.
        let known = !view.served || !view.listens || view.now >= since + LINGER;
        return if known { Next::Close } else { Next::Wait };
    }
    if !view.served {
        return Next::Serve;
    }
    let silent = |told: &Told| view.heard || view.now >= told.at + SILENCE;
    if !view.listens && view.told.as_ref().is_some_and(silent) {
        return Next::Lost;
    }
    let Some(kubelet) = view.kubelet else {
        return Next::Wait;
    };
    let is_told =
        |told: Told| told.kubelet == kubelet || view.listens && told.kubelet.is_same_file(kubelet);
    if view.told.is_some_and(is_told) {
        return Next::Wait;
    }
    let held = |hold: Hold| hold.kubelet == kubelet && view.now < hold.until;
    if view.hold.is_some_and(held) {
        return Next::Wait;
    }
    Next::Register(kubelet)
}

/// How long to wait after so many failures in a row, from 1.
pub(crate) fn back_off(failures: u32) -> Duration {
    let doubled = 1_u64 << failures.saturating_sub(1).min(5);
    Duration::from_secs(doubled).min(LONGEST)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(number: u64) -> Duration {
        Duration::from_secs(number)
    }

    /// A plugin that a kubelet listens to.
    fn well(now: Instant) -> View {
        View {
            served: true,
            kubelet: Some(Identity::numbered(1, 0)),
            told: Some(Told {
                kubelet: Identity::numbered(1, 0),
                at: now,
            }),
            heard: true,
            listens: true,
            hold: None,
            withdrawn: None,
            now,
        }
    }

    #[test]
    fn the_next_thing_follows_from_what_is_seen() {
        let now = Instant::now();
        let start = View {
            told: None,
            heard: false,
            listens: false,
            ..well(now)
        };
        let hold = |until| {
            Some(Hold {
                kubelet: Identity::numbered(1, 0),
                until,
            })
        };
        let (first, second) = (Identity::numbered(1, 0), Identity::numbered(2, 0));
        let served = false;
        let kubelet = Some(second);
        let at = |now| View { now, ..well(now) };
        for (what, view, expected) in [
            ("all is well", well(now), Next::Wait),
            ("a start", start, Next::Register(first)),
            ("nothing is served", View { served, ..start }, Next::Serve),
            (
                "the socket is gone",
                View {
                    served,
                    ..well(now)
                },
                Next::Serve,
            ),
            (
                "no kubelet",
                View {
                    kubelet: None,
                    ..start
                },
                Next::Wait,
            ),
            (
                "the kubelet went",
                View {
                    kubelet: None,
                    listens: false,
                    ..well(now)
                },
                Next::Lost,
            ),
            (
                "rights of the kubelet's socket were set",
                View {
                    kubelet: Some(Identity::numbered(1, 9)),
                    ..well(now)
                },
                Next::Wait,
            ),
            (
                "another kubelet has the number of the last one",
                View {
                    kubelet: Some(Identity::numbered(1, 9)),
                    listens: false,
                    heard: false,
                    ..well(now)
                },
                Next::Register(Identity::numbered(1, 9)),
            ),
            (
                "another kubelet",
                View {
                    kubelet,
                    ..well(now)
                },
                Next::Register(second),
            ),
            (
                "held",
                View {
                    hold: hold(now + SETTLE),
                    ..start
                },
                Next::Wait,
            ),
            (
                "held no longer",
                View {
                    hold: hold(now),
                    ..start
                },
                Next::Register(first),
            ),
            (
                "held, but another kubelet is there",
                View {
                    hold: hold(now + SETTLE),
                    kubelet,
                    ..start
                },
                Next::Register(second),
            ),
            (
                "the stream was lost",
                View {
                    listens: false,
                    ..well(now)
                },
                Next::Lost,
            ),
            (
                "no stream yet",
                View {
                    heard: false,
                    listens: false,
                    ..well(now)
                },
                Next::Wait,
            ),
            (
                "no stream for long",
                View {
                    heard: false,
                    listens: false,
                    told: well(now).told,
                    ..at(now + SILENCE)
                },
                Next::Lost,
            ),
            (
                "withdrawn",
                View {
                    withdrawn: Some(now),
                    ..well(now)
                },
                Next::Wait,
            ),
            (
                "withdrawn, and nobody listens",
                View {
                    withdrawn: Some(now),
                    listens: false,
                    ..well(now)
                },
                Next::Close,
            ),
            (
                "withdrawn, and not served",
                View {
                    withdrawn: Some(now),
                    served,
                    ..start
                },
                Next::Close,
            ),
            (
                "withdrawn long ago",
                View {
                    withdrawn: Some(now),
                    ..at(now + LINGER)
                },
                Next::Close,
            ),
        ] {
            assert_eq!(next(&view), expected, "{what}");
        }
    }

    #[test]
    fn tries_become_rare() {
        let waits: Vec<Duration> = (1..9).map(back_off).collect();
        assert_eq!(waits, [1, 2, 4, 8, 16, 30, 30, 30].map(seconds));
        assert_eq!(back_off(u32::MAX), seconds(30));
    }
}
