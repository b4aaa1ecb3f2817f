// SPDX-License-Identifier: Apache-2.0
//! kubectl as a person types it, on the embedded server. `script.txt` has the lines with what they
//! print against a real cluster of Kubernetes 1.37; here they must print the same.
//!
//! `KUBECTL` names another kubectl than the installed one. With `RULES_KUBECONFIG` set to a file, as
//! `cargo xtask e2e` does, the lines run against the cluster behind it, and `UPDATE_EXPECT=1` records.
//! Without a kubectl the test says so and proves nothing.

#![allow(clippy::unwrap_used)]

use std::path::{Path, PathBuf};
use std::process::Command;

use regex::Regex;
use simcluster::{ApiServer, Settings};

/// The real cluster, if one is given.
const REAL: &str = "RULES_KUBECONFIG";

/// Starts an embedded server and writes the file that leads kubectl to it.
fn serve(folder: &Path) -> PathBuf {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = { runtime }.enable_all().build().unwrap();
        runtime.block_on(async {
            let listener = tokio::net::TcpListener::from_std(listener).unwrap();
            ApiServer::new(&Settings::default())
                .serve(listener)
                .await
                .unwrap();
        });
    });
    let path = folder.join("kubeconfig");
    let text = format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: slicewright\n\
         clusters: [{{name: sim, cluster: {{server: 'http://{address}'}}}}]\n\
         contexts: [{{name: slicewright, context: {{cluster: sim, user: sim}}}}]\n\
         users: [{{name: sim, user: {{}}}}]\n"
    );
    std::fs::write(&path, text).unwrap();
    path
}

/// The script again, with what this server makes kubectl print.
fn run(script: &str, kubectl: &str, kubeconfig: &Path, folder: &Path) -> String {
    let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/kubectl");
    let mut said = String::new();
    for line in script.lines() {
        let Some(words) = line.strip_prefix("$ ") else {
            if line.starts_with('#') || line.is_empty() {
                said.push_str(&format!("{line}\n"));
            }
            continue;
        };
        let words = words.replace("kubectl ", &format!("{kubectl} --cache-dir $CACHE "));
        let output = Command::new("sh")
            .args(["-c", &format!("{words} 2>&1")])
            .current_dir(&here)
            .env("KUBECONFIG", kubeconfig)
            .env("CACHE", folder.join("cache"))
            .output()
            .unwrap();
        said.push_str(&format!("{line}\n"));
        said.push_str(&neutral(&String::from_utf8_lossy(&output.stdout)));
        if let Some(code) = output.status.code().filter(|code| *code != 0) {
            said.push_str(&format!("[{code}]\n"));
        }
    }
    said
}

/// What was printed, without what differs from run to run.
fn neutral(printed: &str) -> String {
    let marks = [
        (
            r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}",
            "UID",
        ),
        (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", "TIME"),
        (r"[A-Z][a-z]{2}, \d\d [A-Z][a-z]{2} \d{4} \S+ \S+", "TIME"),
        (r"\b\d+[smhd](\d+[smh])?\b", "AGE"),
        (r"(Resource Version: +|resourceVersion: )\S+", "${1}VERSION"),
        // Words in which kubectl 1.32 differs.
        (r" deleted from \S+ namespace", " deleted"),
        (r"cannot delete cannot delete", "cannot delete"),
        (r"(?m) +$", ""),
        (r" {2,}(\S)", "  $1"),
    ];
    let mut text = printed.to_owned();
    for (pattern, mark) in marks {
        text = Regex::new(pattern)
            .unwrap()
            .replace_all(&text, mark)
            .into_owned();
    }
    // A line that is empty would end the answer.
    text.lines()
        .filter(|line| !line.is_empty())
        .map(|line| format!("  {line}\n"))
        .collect()
}

#[test]
fn kubectl_prints_what_it_prints_on_a_real_cluster() {
    let kubectl = std::env::var("KUBECTL").unwrap_or_else(|_| "kubectl".to_owned());
    if Command::new(&kubectl)
        .args(["version", "--client"])
        .output()
        .is_err()
    {
        println!("{kubectl} is not installed: left out");
        return;
    }
    let folder =
        Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("kubectl-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let real = std::env::var_os(REAL).map(PathBuf::from);
    let is_real = real.is_some();
    let kubeconfig = real.unwrap_or_else(|| serve(&folder));
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/kubectl/script.txt");
    let recorded = std::fs::read_to_string(&path).unwrap();
    let said = run(&recorded, &kubectl, &kubeconfig, &folder);
    std::fs::remove_dir_all(&folder).unwrap();
    if is_real && std::env::var_os("UPDATE_EXPECT").is_some() {
        std::fs::write(&path, said).unwrap();
        return;
    }
    let differences: Vec<String> = recorded
        .split("\n$ ")
        .zip(said.split("\n$ "))
        .filter(|(recorded, said)| recorded != said)
        .map(|(recorded, said)| format!("--- recorded\n$ {recorded}\n+++ said\n$ {said}\n"))
        .collect();
    assert!(differences.is_empty(), "\n{}", differences.join("\n"));
    assert_eq!(recorded, said);
}
