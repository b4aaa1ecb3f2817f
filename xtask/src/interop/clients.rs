// SPDX-License-Identifier: Apache-2.0
//! Building the simulated library and the clients, and running them.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde::Deserialize;

use crate::error::Error;
use crate::process::{output, stream};
use crate::tools::{self, Tool};

const PYTHON: Tool = Tool {
    name: "Python 3 with venv",
    probe: &["python3", "-c", "import ensurepip, venv"],
    install: &["apt-get", "install", "--yes", "python3-venv"],
};

const GO: Tool = Tool {
    name: "Go",
    probe: &["go", "version"],
    install: &["apt-get", "install", "--yes", "golang-go"],
};

/// The C compiler, for the layout of structs and for cgo.
const CC: Tool = Tool {
    name: "a C compiler",
    probe: &["cc", "--version"],
    install: &["apt-get", "install", "--yes", "gcc", "libc6-dev"],
};

/// A client, by its command line.
pub struct Client {
    /// What it is called.
    pub name: &'static str,
    words: Vec<OsString>,
}

/// Variables that make a client see the simulated machine.
pub type Environment = [(&'static str, OsString)];

impl Client {
    /// Runs it with these arguments; what it printed.
    ///
    /// # Errors
    /// If it cannot be started, or ends with an error.
    pub fn run(&self, arguments: &[String], environment: &Environment) -> Result<String, Error> {
        let mut command = Command::new("timeout");
        command.arg("60").args(&self.words).args(arguments);
        command.envs(environment.iter().cloned());
        let line = || format!("{} {}", self.name, arguments.join(" "));
        let result = command.output().map_err(|source| Error::Run {
            command: line(),
            source,
        })?;
        if result.status.success() {
            return Ok(String::from_utf8_lossy(&result.stdout).into_owned());
        }
        let stderr = String::from_utf8_lossy(&result.stderr);
        Err(Error::Failed {
            command: line(),
            stderr: stderr.trim().to_owned(),
        })
    }
}

/// The Python clients, installed from PyPI in a virtual environment in `work`: the one that prints
/// JSON, and `nvitop`. None where that cannot be done.
///
/// # Errors
/// With `CI=true`, if it cannot be done.
pub fn python(root: &Path, work: &Path) -> Result<Option<[Client; 2]>, Error> {
    if !tools::have(root, &PYTHON)? {
        return Ok(None);
    }
    let venv = work.join("venv");
    let [program, nvitop] = ["python", "nvitop"].map(|name| venv.join("bin").join(name));
    let wanted = root.join("interop/python/requirements.txt");
    let installed = venv.join("requirements.txt");
    let read = |path: &Path| std::fs::read(path).ok();
    if read(&wanted) != read(&installed) {
        let [venv, program, wanted] = [&venv, &program, &wanted].map(|path| path.to_string_lossy());
        let create = ["python3", "-m", "venv", "--clear", &venv];
        let install = [
            "pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
            "--requirement",
        ];
        let install = [&[&*program, "-m"], install.as_slice(), &[&*wanted]].concat();
        if !stream(root, &create, |_| {})? || !stream(root, &install, |_| {})? {
            return unavailable("the Python clients cannot be installed", &install.join(" "));
        }
        std::fs::copy(&*wanted, &installed)
            .map_err(|error| Error::interop("note what was installed", error))?;
    }
    Ok(Some([
        Client {
            name: "nvidia-ml-py",
            words: vec![program.into(), root.join("interop/python/client.py").into()],
        },
        Client {
            name: "nvitop",
            words: vec![nvitop.into(), "--once".into()],
        },
    ]))
}

/// The Go clients, built in `work`: the one of NVML, the reader of CDI specifications, and the schema
/// of these. None where that cannot be done.
///
/// # Errors
/// With `CI=true`, if it cannot be done.
pub fn go(root: &Path, work: &Path) -> Result<Option<[Client; 3]>, Error> {
    if !tools::have(root, &GO)? || !tools::have(root, &CC)? {
        return Ok(None);
    }
    let programs = [
        ("go-nvml", "interop/go", "."),
        ("container-device-interface", "interop/go", "./cdi"),
        ("cdi-schema", "interop/cdi-schema", "."),
    ];
    let program = |name: &str| work.join(name);
    for (name, module, package) in programs {
        let to = program(name);
        let build = [
            "env",
            "CGO_CFLAGS=-O1 -Wno-deprecated-declarations",
            "go",
            "-C",
            module,
            "build",
            "-o",
            &to.to_string_lossy(),
            package,
        ];
        if !stream(root, &build, |_| {})? {
            return unavailable("the Go clients cannot be built", &build.join(" "));
        }
    }
    Ok(Some(programs.map(|(name, ..)| Client {
        name,
        words: vec![program(name).into()],
    })))
}

/// Says that something cannot be had, and is left out.
///
/// # Errors
/// With `CI=true`, always.
pub fn unavailable<T>(what: &str, command: &str) -> Result<Option<T>, Error> {
    if std::env::var("CI").as_deref() == Ok("true") {
        return Err(Error::Failed {
            command: command.to_owned(),
            stderr: what.to_owned(),
        });
    }
    println!("{what}: left out");
    Ok(None)
}

#[derive(Deserialize)]
struct Artifact {
    #[serde(default)]
    filenames: Vec<PathBuf>,
}

/// Builds the simulated library; where it is.
///
/// # Errors
/// If it cannot be built.
pub fn build_library(root: &Path) -> Result<PathBuf, Error> {
    let words = [
        "cargo",
        "build",
        "--locked",
        "--package=nvmlsim",
        "--message-format=json-render-diagnostics",
    ];
    let messages = output(root, &words)?;
    let artifacts = messages
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok());
    artifacts
        .flat_map(|artifact: Artifact| artifact.filenames)
        .find(|file| file.ends_with("libnvmlsim.so"))
        .ok_or_else(|| Error::interop("build the simulated library", "cargo names no such file"))
}
