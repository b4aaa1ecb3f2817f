// SPDX-License-Identifier: Apache-2.0
//! The crates and their dependencies, as `cargo metadata` tells them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde_json::Value;

use super::Finding;
use super::purity::PURE;
use super::source::words;
use super::tree::Tree;
use crate::error::Error;
use crate::process;

/// Which crate of the workspace may use which, and what its tests may use besides. The picture in
/// `ARCHITECTURE.md` is drawn after it.
const MAY_USE: &[(&str, &[&str], &[&str])] = &[
    ("units", &[], &[]),
    ("geometry", &["units"], &[]),
    ("config", &["geometry", "units"], &[]),
    ("plan", &["config", "geometry", "units"], &[]),
    ("lint", &["geometry", "plan", "units"], &[]),
    ("publish", &["config", "geometry", "plan", "units"], &[]),
    (
        "deviceplugin",
        &["config", "plan", "publish", "units"],
        &["geometry"],
    ),
    ("gpu", &["geometry", "units"], &[]),
    ("nvmlsim", &["geometry", "gpu", "units"], &[]),
    (
        "host",
        &["geometry", "gpu", "lint", "plan", "units"],
        &["nvmlsim"],
    ),
    ("kubeapi", &[], &[]),
    ("cdi", &["publish"], &["config", "geometry", "units"]),
    (
        "snapshot",
        &["geometry", "gpu", "plan", "publish", "units"],
        &["config", "nvmlsim"],
    ),
    ("simcluster", &[], &[]),
    (
        "agent",
        &[
            "cdi",
            "config",
            "deviceplugin",
            "geometry",
            "gpu",
            "host",
            "kubeapi",
            "plan",
            "publish",
            "snapshot",
            "units",
        ],
        &["nvmlsim"],
    ),
    (
        "cli",
        &[
            "agent", "config", "geometry", "host", "kubeapi", "lint", "nvmlsim", "plan", "publish",
            "units",
        ],
        &[],
    ),
    ("slicewright", &["cli"], &[]),
    ("nvidia-smi", &["geometry", "gpu", "nvmlsim", "units"], &[]),
    (
        "xtask",
        &[
            "cdi",
            "deviceplugin",
            "geometry",
            "gpu",
            "nvmlsim",
            "publish",
            "snapshot",
            "units",
        ],
        &["kubeapi", "plan", "simcluster"],
    ),
];

/// What pure crates may take from outside; what that brings along is looked at too.
const PURE_MAY_TAKE: &[&str] = &[
    "granit-parser",
    "serde",
    "serde-saphyr",
    "serde_json",
    "thiserror",
];

/// What must not come with a pure crate by any way.
const NEVER_PURE: &[&str] = &[
    "chrono",
    "getrandom",
    "hyper",
    "jiff",
    "kube",
    "mio",
    "nvml-wrapper-sys",
    "rand",
    "rustix",
    "socket2",
    "tokio",
    "tonic",
];

const MANIFEST: &str = "Cargo.toml";

/// Every package of the build, with what it uses.
#[derive(Default)]
pub struct Workspace {
    /// By cargo's id.
    packages: BTreeMap<String, Package>,
}

/// One package.
pub struct Package {
    /// Name.
    pub name: String,
    /// SPDX expression; empty if it names none.
    pub licence: String,
    /// Registry; `None` for a crate of the workspace.
    pub source: Option<String>,
    /// Ids of what its programs use.
    uses: BTreeSet<String>,
    /// Ids of what its tests use besides.
    tests_use: BTreeSet<String>,
}

impl Workspace {
    /// What cargo says of the checkout at `root`, for the platform that this runs on.
    ///
    /// # Errors
    /// If cargo cannot be asked or is not understood.
    pub fn read(root: &Path) -> Result<Self, Error> {
        let version = process::output(root, &["rustc", "-vV"])?;
        let host = version.lines().find_map(|line| line.strip_prefix("host: "));
        let host = host.ok_or_else(|| Error::Metadata("rustc names no host".to_owned()))?;
        let words = [
            "cargo",
            "metadata",
            "--locked",
            "--format-version=1",
            "--filter-platform",
            host,
        ];
        Self::parse(&process::output(root, &words)?)
    }

    fn parse(text: &str) -> Result<Self, Error> {
        let value: Value =
            serde_json::from_str(text).map_err(|error| Error::Metadata(error.to_string()))?;
        let mut workspace = Self::default();
        for package in list(&value["packages"])? {
            workspace.packages.insert(
                string(&package["id"])?,
                Package {
                    name: string(&package["name"])?,
                    licence: package["license"].as_str().unwrap_or_default().to_owned(),
                    source: package["source"].as_str().map(str::to_owned),
                    uses: BTreeSet::new(),
                    tests_use: BTreeSet::new(),
                },
            );
        }
        for node in list(&value["resolve"]["nodes"])? {
            let package = workspace.packages.get_mut(&string(&node["id"])?);
            let package =
                package.ok_or_else(|| Error::Metadata("a node without a package".to_owned()))?;
            for dependency in list(&node["deps"])? {
                let id = string(&dependency["pkg"])?;
                let mut kinds = list(&dependency["dep_kinds"])?.iter();
                match kinds.all(|kind| kind["kind"] == "dev") {
                    true => package.tests_use.insert(id),
                    false => package.uses.insert(id),
                };
            }
        }
        Ok(workspace)
    }

    /// The names of the workspace's own crates.
    pub fn crates(&self) -> Vec<&str> {
        self.own().map(|package| package.name.as_str()).collect()
    }

    fn own(&self) -> impl Iterator<Item = &Package> {
        self.packages
            .values()
            .filter(|package| package.source.is_none())
    }

    /// The packages that come from elsewhere.
    pub fn outside(&self) -> impl Iterator<Item = &Package> {
        self.packages
            .values()
            .filter(|package| package.source.is_some())
    }

    fn named<'a>(&'a self, ids: &'a BTreeSet<String>) -> impl Iterator<Item = &'a Package> {
        ids.iter().filter_map(|id| self.packages.get(id))
    }

    /// Uses between the workspace's crates that the table does not allow. Two crates that use
    /// each other, if only in tests, are found too: the table is in order, and each crate may use
    /// only what stands above it.
    pub fn check_directions(&self) -> Vec<Finding> {
        let mut findings = Vec::new();
        for package in self.own() {
            let row = MAY_USE.iter().find(|(name, ..)| *name == package.name);
            let Some((_, may, tests_may)) = row else {
                findings.push(package.finding("is not in xtask's table of directions"));
                continue;
            };
            let inside = |used: &&Package| used.source.is_none();
            let used = self
                .named(&package.uses)
                .filter(inside)
                .map(|used| (used, false));
            let in_tests = self
                .named(&package.tests_use)
                .filter(inside)
                .map(|used| (used, true));
            for (used, in_test) in used.chain(in_tests) {
                let name = used.name.as_str();
                let allowed = may.contains(&name) || in_test && tests_may.contains(&name);
                if !allowed {
                    findings.push(package.finding(&format!(
                        "may not use {name}: that is against the direction"
                    )));
                }
            }
        }
        findings
    }

    /// What pure crates take from outside, directly or by way of others, that is not pure.
    pub fn check_purity(&self) -> Vec<Finding> {
        let mut findings = Vec::new();
        for package in self
            .own()
            .filter(|package| PURE.contains(&package.name.as_str()))
        {
            let direct = self
                .named(&package.uses)
                .filter(|used| used.source.is_some());
            for used in direct.filter(|used| !PURE_MAY_TAKE.contains(&used.name.as_str())) {
                findings.push(package.finding(&format!("a pure crate may not take {}", used.name)));
            }
            for id in self.closure(package) {
                let name = self.packages.get(id).map_or("", |package| &package.name);
                if NEVER_PURE.contains(&name) {
                    findings
                        .push(package.finding(&format!("{name} comes along with a pure crate")));
                }
            }
        }
        findings
    }

    /// Dependencies that no source of the crate names, and entries of the workspace's table that no
    /// crate takes.
    pub fn check_needed(&self, tree: &Tree) -> Vec<Finding> {
        let mut findings = Vec::new();
        let mut taken = BTreeSet::new();
        for package in self.own() {
            for used in self
                .named(&package.uses)
                .chain(self.named(&package.tests_use))
            {
                taken.insert(used.name.as_str());
                let word = used.name.replace('-', "_");
                let mut sources = tree
                    .rust()
                    .filter(|file| file.crate_name() == Some(&package.name));
                if !sources.any(|file| !words(&file.code, &word).is_empty()) {
                    findings.push(package.finding(&format!("{} is not used", used.name)));
                }
            }
        }
        let manifest = tree.file(MANIFEST).map_or("", |file| &file.text);
        let table = manifest
            .lines()
            .skip_while(|line| *line != "[workspace.dependencies]")
            .skip(1);
        for line in table.take_while(|line| !line.starts_with('[')) {
            // A crate of ours may be there before the first that takes it.
            if let Some((name, what)) = line.split_once(" = ")
                && !name.starts_with('#')
                && !what.contains("path = ")
                && !taken.contains(name)
            {
                findings.push(Finding::new(MANIFEST, 0, format!("no crate takes {name}")));
            }
        }
        findings
    }

    /// Ids of everything that the package's programs use, by any way.
    fn closure<'a>(&'a self, package: &'a Package) -> BTreeSet<&'a String> {
        let mut found = BTreeSet::new();
        let mut open: Vec<&String> = package.uses.iter().collect();
        while let Some(id) = open.pop() {
            if found.insert(id) {
                open.extend(
                    self.packages
                        .get(id)
                        .into_iter()
                        .flat_map(|package| &package.uses),
                );
            }
        }
        found
    }

    /// A workspace for a test of a rule: name, licence (empty for a crate of the workspace),
    /// what its programs use, what its tests use besides.
    #[cfg(test)]
    pub fn of(packages: &[(&str, &str, &[&str], &[&str])]) -> Self {
        let ids = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let package = |(name, licence, uses, tests_use): &(&str, &str, &[&str], &[&str])| {
            let package = Package {
                name: (*name).to_owned(),
                licence: (*licence).to_owned(),
                source: (!licence.is_empty())
                    .then(|| "registry+https://example.org/index".to_owned()),
                uses: ids(uses),
                tests_use: ids(tests_use),
            };
            ((*name).to_owned(), package)
        };
        Self {
            packages: packages.iter().map(package).collect(),
        }
    }
}

impl Package {
    fn finding(&self, message: &str) -> Finding {
        let path = match self.name.as_str() {
            "xtask" => "xtask/Cargo.toml".to_owned(),
            name => format!("crates/{name}/Cargo.toml"),
        };
        Finding::new(path, 0, message)
    }
}

fn list(value: &Value) -> Result<&Vec<Value>, Error> {
    value
        .as_array()
        .ok_or_else(|| Error::Metadata(format!("no list: {value}")))
}

fn string(value: &Value) -> Result<String, Error> {
    let text = value.as_str().map(str::to_owned);
    text.ok_or_else(|| Error::Metadata(format!("no text: {value}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(findings: &[Finding]) -> Vec<String> {
        findings.iter().map(ToString::to_string).collect()
    }

    /// What each crate may use stands above it, so no circle can be allowed.
    #[test]
    fn the_table_has_no_circle() {
        for (at, (name, may, tests_may)) in MAY_USE.iter().enumerate() {
            for used in may.iter().chain(*tests_may) {
                let above = MAY_USE[..at].iter().any(|(above, ..)| above == used);
                assert!(
                    above,
                    "{name} may use {used}, which does not stand above it"
                );
            }
        }
    }

    #[test]
    fn a_use_against_the_direction_is_found() {
        let workspace = Workspace::of(&[
            ("units", "", &[], &["geometry"]),
            ("geometry", "", &["units"], &[]),
            ("host", "", &["geometry"], &["nvmlsim"]),
            ("nvmlsim", "", &["plan"], &[]),
            ("plan", "", &[], &[]),
            ("novel", "", &[], &[]),
        ]);
        assert_eq!(
            lines(&workspace.check_directions()),
            [
                "crates/novel/Cargo.toml: is not in xtask's table of directions",
                "crates/nvmlsim/Cargo.toml: may not use plan: that is against the direction",
                "crates/units/Cargo.toml: may not use geometry: that is against the direction",
            ]
        );
    }

    #[test]
    fn an_impure_dependency_of_a_pure_crate_is_found() {
        let workspace = Workspace::of(&[
            ("plan", "", &["serde", "tokio"], &["rand"]),
            ("lint", "", &["plan"], &[]),
            ("host", "", &["tokio"], &[]),
            ("serde", "MIT", &["getrandom"], &[]),
            ("tokio", "MIT", &[], &[]),
            ("getrandom", "MIT", &[], &[]),
            ("rand", "MIT", &[], &[]),
        ]);
        assert_eq!(
            lines(&workspace.check_purity()),
            [
                "crates/lint/Cargo.toml: getrandom comes along with a pure crate",
                "crates/lint/Cargo.toml: tokio comes along with a pure crate",
                "crates/plan/Cargo.toml: a pure crate may not take tokio",
                "crates/plan/Cargo.toml: getrandom comes along with a pure crate",
                "crates/plan/Cargo.toml: tokio comes along with a pure crate",
            ]
        );
    }

    #[test]
    fn a_needless_dependency_is_found() {
        let workspace = Workspace::of(&[
            ("plan", "", &["serde", "some-crate"], &["proptest"]),
            ("serde", "MIT", &[], &[]),
            ("some-crate", "MIT", &[], &[]),
            ("proptest", "MIT", &[], &[]),
        ]);
        let tree = Tree::of(&[
            (
                "Cargo.toml",
                "[workspace.dependencies]\n# why\nplan = { path = \"crates/plan\" }\nserde = \"1\"\nclap = \"4\"\n\n[profile.dev]\nx = 1\n",
            ),
            (
                "crates/plan/src/lib.rs",
                "use serde::Serialize;\n// proptest\n",
            ),
            (
                "crates/lint/src/lib.rs",
                "use proptest::prelude;\nuse some_crate::a;\n",
            ),
        ]);
        assert_eq!(
            lines(&workspace.check_needed(&tree)),
            [
                "crates/plan/Cargo.toml: some-crate is not used",
                "crates/plan/Cargo.toml: proptest is not used",
                "Cargo.toml: no crate takes clap",
            ]
        );
    }
}
