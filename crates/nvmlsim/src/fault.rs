// SPDX-License-Identifier: Apache-2.0
//! Faults by script: what shall go wrong, when, as text and as data in the world.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use gpu::NvmlCode;
use serde::{Deserialize, Serialize};

use crate::world::{EventKind, World};

/// How long a `hang` lasts where no `ms=` is given.
const HANG: Duration = Duration::from_secs(60);

/// A fault to come: the n-th matching call goes wrong.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// Name of an NVML function, or one of [`KINDS`].
    pub call: String,
    /// Only calls on this GPU; `None` for any.
    pub gpu: Option<u32>,
    /// Which matching call, from 1.
    pub nth: u32,
    /// Whether all later ones too.
    pub every: bool,
    /// What happens.
    pub effect: Effect,
    /// Matching calls so far.
    pub seen: u32,
}

/// What a fault does to a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Effect {
    /// It answers with this code and does nothing.
    Fail(u32),
    /// It does its work and answers with this code.
    FailAfter(u32),
    /// It does not come back for so many milliseconds, then answers `UNKNOWN` and did nothing.
    Hang(u64),
    /// It takes so many milliseconds longer.
    Slow(u64),
    /// The calling process is killed before it does anything.
    KillBefore,
    /// The calling process is killed after it did its work.
    KillAfter,
}

/// One line of a fault script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// A call will go wrong.
    Rule(Rule),
    /// A critical error is reported to those who wait for events.
    Xid {
        /// Index of the GPU.
        gpu: u32,
        /// GPU and compute instance, if it is about one.
        instance: Option<(u32, u32)>,
        /// The number.
        xid: u32,
    },
    /// The GPU falls off the bus; every call on it answers `GPU_IS_LOST` until a reboot.
    Lose {
        /// Index of the GPU.
        gpu: u32,
    },
    /// Handles of instances on the GPU that were given out are no longer valid.
    Stale {
        /// Index of the GPU.
        gpu: u32,
    },
    /// All rules are forgotten.
    Clear,
}

/// Groups of functions that a rule can name.
pub const KINDS: [&str; 9] = [
    "any",
    "change",
    "read",
    "set-mode",
    "create-gi",
    "destroy-gi",
    "create-ci",
    "destroy-ci",
    "reset",
];

/// What a rule calls the reset of a GPU, which is no NVML function.
pub const RESET: &str = "reset";

/// The kind of a function that changes something; `None` for one that reads.
pub fn kind_of_change(function: &str) -> Option<&'static str> {
    Some(match function {
        "nvmlDeviceSetMigMode" => "set-mode",
        "nvmlDeviceCreateGpuInstance" | "nvmlDeviceCreateGpuInstanceWithPlacement" => "create-gi",
        "nvmlGpuInstanceDestroy" => "destroy-gi",
        "nvmlGpuInstanceCreateComputeInstance"
        | "nvmlGpuInstanceCreateComputeInstanceWithPlacement" => "create-ci",
        "nvmlComputeInstanceDestroy" => "destroy-ci",
        RESET => RESET,
        _ => return None,
    })
}

macro_rules! names {
    ($($name:ident($($argument:ident: $kind:ty),* $(,)?);)*) => {
        /// Names of the functions that the simulator serves.
        pub const FUNCTIONS: &[&str] = &[$(stringify!($name)),*];
    };
}
gpu::nvml_functions!(names);

impl Rule {
    fn matches(&self, function: &str, gpu: Option<u32>) -> bool {
        let change = kind_of_change(function);
        let call = match self.call.as_str() {
            "any" => true,
            "change" => change.is_some(),
            "read" => change.is_none(),
            call => call == function || change == Some(call),
        };
        call && (self.gpu.is_none() || self.gpu == gpu)
    }

    fn is_due(&self) -> bool {
        self.seen == self.nth || self.every && self.seen > self.nth
    }
}

impl World {
    /// Whether a rule counts this call.
    pub fn is_watched(&self, function: &str, gpu: Option<u32>) -> bool {
        self.rules.iter().any(|rule| rule.matches(function, gpu))
    }

    /// Counts the call; answers what goes wrong with it by the first rule that is due.
    pub fn fault_of(&mut self, function: &str, gpu: Option<u32>) -> Option<Effect> {
        let mut due = None;
        for rule in self
            .rules
            .iter_mut()
            .filter(|rule| rule.matches(function, gpu))
        {
            rule.seen = rule.seen.saturating_add(1);
            if rule.is_due() {
                due = due.or(Some(rule.effect));
            }
        }
        due
    }

    /// Whether the fault is about something that the world has.
    ///
    /// # Errors
    /// [`FaultError::NoGpu`].
    pub fn knows(&self, fault: &Fault) -> Result<(), FaultError> {
        let gpu = match fault {
            Fault::Rule(rule) => rule.gpu,
            Fault::Xid { gpu, .. } | Fault::Lose { gpu } | Fault::Stale { gpu } => Some(*gpu),
            Fault::Clear => None,
        };
        let count = self.gpus.len();
        match gpu {
            Some(gpu) if gpu as usize >= count => Err(FaultError::NoGpu { gpu, count }),
            _ => Ok(()),
        }
    }

    /// Does what a line of a fault script says. What is about a GPU that is not there does nothing
    /// ([`World::knows`]).
    pub fn inject(&mut self, fault: &Fault) {
        match fault {
            Fault::Rule(rule) => self.rules.push(rule.clone()),
            Fault::Xid { gpu, instance, xid } => {
                self.tell(*gpu, *instance, EventKind::Xid(*xid));
            }
            Fault::Lose { gpu } => {
                if let Some(device) = self.gpus.get_mut(*gpu as usize) {
                    device.lost = true;
                    self.tell(*gpu, None, EventKind::Xid(LOST));
                }
            }
            Fault::Stale { gpu } => self.renumber(*gpu),
            Fault::Clear => self.rules.clear(),
        }
    }
}

/// "GPU has fallen off the bus" (NVIDIA's list of XIDs).
const LOST: u32 = 79;

/// Why a line is no fault, or does not apply to a world.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FaultError {
    /// The line does not begin with a known word.
    #[error("{word:?} is no fault; there are: {}", VERBS.join(", "))]
    Verb {
        /// The word found.
        word: String,
    },
    /// The line names no such call.
    #[error(
        "{call:?} is no NVML function that is served, nor a kind of call ({})",
        KINDS.join(", ")
    )]
    Call {
        /// The word found.
        call: String,
    },
    /// A setting is missing or wrong.
    #[error("{verb}: {found}; expected {expected}")]
    Setting {
        /// What the line wants.
        verb: String,
        /// What is wrong.
        found: String,
        /// What is allowed.
        expected: String,
    },
    /// There is no such GPU in the world.
    #[error("there is no GPU {gpu}: the world has {count}")]
    NoGpu {
        /// The index.
        gpu: u32,
        /// How many there are.
        count: usize,
    },
}

const VERBS: [&str; 10] = [
    "fail",
    "fail-after",
    "hang",
    "slow",
    "kill-before",
    "kill-after",
    "xid",
    "lose",
    "stale",
    "clear",
];

impl FromStr for Fault {
    type Err = FaultError;

    fn from_str(line: &str) -> Result<Self, Self::Err> {
        let mut words = line.split_whitespace();
        let verb = words.next().unwrap_or_default();
        let mut line = Line {
            verb,
            words: words.collect(),
        };
        let fault = match verb {
            "xid" => Self::Xid {
                gpu: line.required("gpu", "the index of a GPU")?,
                instance: line.number("gi")?.zip(line.number("ci")?.or(Some(0))),
                xid: line.bare("the XID, a number")?,
            },
            "lose" => Self::Lose {
                gpu: line.required("gpu", "the index of a GPU")?,
            },
            "stale" => Self::Stale {
                gpu: line.required("gpu", "the index of a GPU")?,
            },
            "clear" => Self::Clear,
            _ => Self::Rule(line.rule()?),
        };
        line.end(fault)
    }
}

/// A line under reading: words are taken out as they are understood.
struct Line<'a> {
    verb: &'a str,
    words: Vec<&'a str>,
}

impl<'a> Line<'a> {
    fn rule(&mut self) -> Result<Rule, FaultError> {
        if !VERBS.contains(&self.verb) {
            return Err(FaultError::Verb {
                word: self.verb.to_owned(),
            });
        }
        let call = self.call()?;
        let every = self.words.iter().position(|word| *word == "every");
        let every = every.map(|at| self.words.remove(at)).is_some();
        let millis = |duration: Duration| duration.as_millis() as u64;
        let effect = match self.verb {
            "fail" => Effect::Fail(self.code()?),
            "fail-after" => Effect::FailAfter(self.code()?),
            "hang" => Effect::Hang(self.number("ms")?.map_or(millis(HANG), u64::from)),
            "slow" => Effect::Slow(self.required("ms", "milliseconds")?.into()),
            "kill-before" => Effect::KillBefore,
            _ => Effect::KillAfter,
        };
        let nth = self.number("nth")?.unwrap_or(1);
        if nth == 0 {
            return Err(self.wrong("nth=0", "nth=N, counted from 1"));
        }
        let gpu = match self.take("gpu") {
            None | Some("any") => None,
            Some(text) => Some(self.parse("gpu", text)?),
        };
        Ok(Rule {
            call,
            gpu,
            nth,
            every,
            effect,
            seen: 0,
        })
    }

    fn call(&mut self) -> Result<String, FaultError> {
        if self.words.is_empty() {
            return Err(self.wrong("no call is named", "the name of an NVML function or a kind"));
        }
        let call = self.words.remove(0);
        if KINDS.contains(&call) || FUNCTIONS.contains(&call) {
            Ok(call.to_owned())
        } else {
            Err(FaultError::Call {
                call: call.to_owned(),
            })
        }
    }

    fn code(&mut self) -> Result<u32, FaultError> {
        let codes = || (1..=30).chain([999]).map(NvmlCode);
        let found = self.take("code").unwrap_or("no code=");
        let code = codes()
            .find(|code| name(*code).eq_ignore_ascii_case(found) || found.parse() == Ok(code.0));
        code.map(|code| code.0).ok_or_else(|| {
            let names: Vec<String> = codes().map(name).collect();
            self.wrong(found, &format!("code= one of {}", names.join(", ")))
        })
    }

    /// The value of `key=value`, taken out.
    fn take(&mut self, key: &str) -> Option<&'a str> {
        let value = |word: &&str| word.split_once('=').is_some_and(|(found, _)| found == key);
        let at = self.words.iter().position(value)?;
        self.words
            .remove(at)
            .split_once('=')
            .map(|(_, value)| value)
    }

    fn number(&mut self, key: &str) -> Result<Option<u32>, FaultError> {
        let text = self.take(key);
        text.map(|text| self.parse(key, text)).transpose()
    }

    fn parse(&self, key: &str, text: &str) -> Result<u32, FaultError> {
        text.parse()
            .map_err(|_| self.wrong(&format!("{key}={text}"), &format!("{key}= a number")))
    }

    fn required(&mut self, key: &str, what: &str) -> Result<u32, FaultError> {
        let number = self.number(key)?;
        number.ok_or_else(|| self.wrong(&format!("no {key}="), &format!("{key}= {what}")))
    }

    fn bare(&mut self, what: &str) -> Result<u32, FaultError> {
        let at = self
            .words
            .iter()
            .position(|word| word.parse::<u32>().is_ok());
        let number = at.and_then(|at| self.words.remove(at).parse().ok());
        number.ok_or_else(|| self.wrong("nothing", what))
    }

    fn end(&self, fault: Fault) -> Result<Fault, FaultError> {
        match self.words.first() {
            None => Ok(fault),
            Some(word) => {
                Err(self.wrong(word, "gpu=, nth=, every, code= or ms= as the fault takes"))
            }
        }
    }

    fn wrong(&self, found: &str, expected: &str) -> FaultError {
        FaultError::Setting {
            verb: self.verb.to_owned(),
            found: found.to_owned(),
            expected: expected.to_owned(),
        }
    }
}

/// The name of a code, without its number.
fn name(code: NvmlCode) -> String {
    let text = code.to_string();
    text.split(' ').next().unwrap_or_default().to_owned()
}

/// The line that makes the rule.
impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (verb, setting) = match self.effect {
            Effect::Fail(code) => ("fail", format!(" code={}", name(NvmlCode(code)))),
            Effect::FailAfter(code) => ("fail-after", format!(" code={}", name(NvmlCode(code)))),
            Effect::Hang(ms) => ("hang", format!(" ms={ms}")),
            Effect::Slow(ms) => ("slow", format!(" ms={ms}")),
            Effect::KillBefore => ("kill-before", String::new()),
            Effect::KillAfter => ("kill-after", String::new()),
        };
        let gpu = self.gpu.map_or("any".to_owned(), |gpu| gpu.to_string());
        let every = if self.every { " every" } else { "" };
        write!(
            f,
            "{verb} {} gpu={gpu} nth={}{every}{setting}",
            self.call, self.nth
        )
    }
}
