// SPDX-License-Identifier: Apache-2.0
//! The command line, which has long options behind one dash.

use crate::failure::Failure;

/// What shall be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// The table that comes without any option.
    Overview,
    /// `-L`.
    List,
    /// `--query-gpu`.
    Query {
        /// Names of fields.
        fields: Vec<String>,
        /// How to print them.
        format: Format,
    },
    /// `-mig 0|1`.
    Mode(bool),
    /// `--gpu-reset`.
    Reset,
    /// `mig -lgip`.
    Profiles,
    /// `mig -lgipp`.
    Placements,
    /// `mig -lgi`.
    Instances,
    /// `mig -lci`.
    ComputeInstances,
    /// `mig -cgi`.
    Create {
        /// Names or ids, each perhaps with `:START`.
        profiles: Vec<String>,
        /// Whether also the compute instance that fills it.
        with_compute: bool,
    },
    /// `mig -cci`.
    CreateCompute {
        /// Names or ids; none for the one that fills the GPU instance.
        profiles: Vec<String>,
    },
    /// `mig -dci`.
    DestroyCompute,
    /// `mig -dgi`.
    Destroy,
}

/// How `--query-gpu` prints.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Format {
    /// Without the line of names.
    pub no_header: bool,
    /// Without units.
    pub no_units: bool,
}

/// The command line, understood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Args {
    /// What shall be done.
    pub action: Action,
    /// `-i`: indices, UUIDs or PCI addresses.
    pub gpus: Option<Vec<String>>,
    /// `-gi`: ids.
    pub instances: Option<Vec<u32>>,
    /// `-ci`: ids.
    pub compute: Option<Vec<u32>>,
}

/// Words taken one after the other.
struct Words {
    words: std::vec::IntoIter<String>,
    /// The value behind the `=` of the option before.
    value: Option<String>,
}

impl Words {
    /// The next option, without its value.
    fn option(&mut self) -> Result<Option<String>, Failure> {
        if let Some(value) = self.value.take() {
            return Err(Failure::Usage(format!(
                "the value {value} belongs to no option"
            )));
        }
        let Some(word) = self.words.next() else {
            return Ok(None);
        };
        Ok(Some(match word.split_once('=') {
            Some((option, value)) if option.starts_with("--") => {
                self.value = Some(value.to_owned());
                option.to_owned()
            }
            _ => word,
        }))
    }

    /// The option's value, if it has one.
    fn optional(&mut self) -> Option<String> {
        let next_is_value = || {
            self.words
                .as_slice()
                .first()
                .is_some_and(|word| !word.starts_with('-'))
        };
        match self.value.take() {
            None if next_is_value() => self.words.next(),
            value => value,
        }
    }

    fn value(&mut self, option: &str) -> Result<String, Failure> {
        let missing = || Failure::Usage(format!("Option {option} requires a value."));
        self.optional().ok_or_else(missing)
    }

    fn list(&mut self, option: &str) -> Result<Vec<String>, Failure> {
        Ok(split(&self.value(option)?))
    }

    fn ids(&mut self, option: &str) -> Result<Vec<u32>, Failure> {
        let parse = |text: String| {
            let wrong = || Failure::Usage(format!("Option {option} takes ids, not {text}."));
            text.parse().map_err(|_| wrong())
        };
        self.list(option)?.into_iter().map(parse).collect()
    }
}

fn split(text: &str) -> Vec<String> {
    text.split(',').map(|part| part.trim().to_owned()).collect()
}

impl Args {
    /// Understands the words behind the program's name.
    ///
    /// # Errors
    /// [`Failure::Usage`]; [`Failure::Help`] if that is what is wanted.
    pub fn parse(words: Vec<String>) -> Result<Self, Failure> {
        let mut words = Words {
            words: words.into_iter(),
            value: None,
        };
        let (mut action, mut query) = (None, None);
        let (mut format, mut with_compute) = (Format::default(), false);
        let (mut gpus, mut instances, mut compute) = (None, None, None);
        while let Some(option) = words.option()? {
            let found = match option.as_str() {
                "mig" => continue,
                "-i" | "--id" => {
                    gpus = Some(words.list(&option)?);
                    continue;
                }
                "-gi" | "--gpu-instance-id" => {
                    instances = Some(words.ids(&option)?);
                    continue;
                }
                "-ci" | "--compute-instance-id" => {
                    compute = Some(words.ids(&option)?);
                    continue;
                }
                "-C" | "--default-compute-instance" => {
                    with_compute = true;
                    continue;
                }
                "--query-gpu" => {
                    query = Some(words.list(&option)?);
                    continue;
                }
                "--format" => {
                    format = parse_format(&words.list(&option)?)?;
                    continue;
                }
                _ => parse_action(&option, &mut words)?,
            };
            action = Some(found);
        }
        let action = match (action, query) {
            (Some(Action::Create { profiles, .. }), _) => Action::Create {
                profiles,
                with_compute,
            },
            (Some(action), _) => action,
            (None, Some(fields)) => Action::Query { fields, format },
            (None, None) => Action::Overview,
        };
        Ok(Self {
            action,
            gpus,
            instances,
            compute,
        })
    }
}

fn parse_action(option: &str, words: &mut Words) -> Result<Action, Failure> {
    Ok(match option {
        "-h" | "--help" => return Err(Failure::Help),
        "-L" | "--list-gpus" => Action::List,
        "-r" | "--gpu-reset" => Action::Reset,
        "-mig" | "--multi-instance-gpu" => match words.value(option)?.as_str() {
            "0" | "DISABLED" => Action::Mode(false),
            "1" | "ENABLED" => Action::Mode(true),
            other => {
                return Err(Failure::Usage(format!(
                    "Option {option} takes 0 or 1, not {other}."
                )));
            }
        },
        "-lgip" | "--list-gpu-instance-profiles" => Action::Profiles,
        "-lgipp" | "--list-gpu-instance-possible-placements" => Action::Placements,
        "-lgi" | "--list-gpu-instances" => Action::Instances,
        "-lci" | "--list-compute-instances" => Action::ComputeInstances,
        "-cgi" | "--create-gpu-instance" => Action::Create {
            profiles: words.list(option)?,
            with_compute: false,
        },
        "-cci" | "--create-compute-instance" => Action::CreateCompute {
            profiles: words
                .optional()
                .map(|text| split(&text))
                .unwrap_or_default(),
        },
        "-dci" | "--destroy-compute-instance" => Action::DestroyCompute,
        "-dgi" | "--destroy-gpu-instance" => Action::Destroy,
        other => {
            return Err(Failure::Usage(format!(
                "Option {other} is not recognized. Please run 'nvidia-smi -h'."
            )));
        }
    })
}

fn parse_format(words: &[String]) -> Result<Format, Failure> {
    let mut format = Format::default();
    for word in words {
        match word.as_str() {
            "csv" => {}
            "noheader" => format.no_header = true,
            "nounits" => format.no_units = true,
            other => {
                return Err(Failure::Usage(format!(
                    "\"{other}\" is not a valid format."
                )));
            }
        }
    }
    Ok(format)
}
