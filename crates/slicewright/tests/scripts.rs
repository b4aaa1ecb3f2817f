// SPDX-License-Identifier: Apache-2.0
//! Scripts of commands as a person would type them, with the recorded answers beside them.
//!
//! `scripts/NAME.txt` has comments, and commands after `$ `. Each script runs in a folder of its
//! own, with the repository's `examples` in it. What the commands print on both streams, and exit
//! codes other than 0, must be what `scripts/NAME.out` says; `UPDATE_EXPECT=1 cargo test` writes it.
//!
//! - A command that ends in ` &` runs until `$ wait`; its first line of output is awaited.
//! - Times, process ids, numbers of reads and the script's folder are replaced by fixed words.

#![allow(clippy::unwrap_used)] // The helpers of a test: what goes wrong here fails it.

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::os::unix::fs::symlink;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};

#[test]
fn scripts_answer_as_recorded() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scripts");
    let mut scripts: Vec<PathBuf> = fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|end| end == "txt"))
        .collect();
    scripts.sort();
    assert!(!scripts.is_empty());
    let failed: Vec<String> = scripts.iter().filter_map(|path| check(path)).collect();
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

/// Runs a script; what differs from the record, if anything does.
fn check(script: &Path) -> Option<String> {
    let record = script.with_extension("out");
    let answer = normal(&run(script));
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        fs::write(&record, answer).unwrap();
        return None;
    }
    let expected = fs::read_to_string(&record).unwrap_or_default();
    (answer != expected).then(|| {
        let line = answer
            .lines()
            .zip(expected.lines())
            .take_while(|(a, b)| a == b)
            .count();
        let show = |text: &str| {
            text.lines()
                .skip(line.saturating_sub(3))
                .take(15)
                .collect::<Vec<_>>()
                .join("\n")
        };
        format!(
            "{} line {} differs (UPDATE_EXPECT=1 records anew)\n--- expected\n{}\n--- found\n{}\n",
            record.display(),
            line + 1,
            show(&expected),
            show(&answer),
        )
    })
}

/// A folder that goes away at the end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path =
            Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        symlink(
            root.join("examples").canonicalize().unwrap(),
            path.join("examples"),
        )
        .unwrap();
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn run(script: &Path) -> String {
    let folder = Folder::new(script.file_stem().unwrap().to_str().unwrap());
    let mut text = String::new();
    let mut background = Vec::new();
    for line in fs::read_to_string(script).unwrap().lines() {
        text.push_str(line);
        text.push('\n');
        let Some(command) = line.strip_prefix("$ ") else {
            continue;
        };
        if command == "wait" {
            background.drain(..).for_each(end);
        } else if let Some(command) = command.strip_suffix(" &") {
            let (child, first_line) = start(command, &folder.0);
            text.push_str(&first_line);
            background.push(child);
        } else {
            text.push_str(&answer(command, &folder.0));
        }
    }
    background.drain(..).for_each(end);
    text.replace(folder.0.canonicalize().unwrap().to_str().unwrap(), "FOLDER")
}

fn shell(command: &str, folder: &Path) -> Command {
    let program = Path::new(env!("CARGO_BIN_EXE_slicewright"));
    let mut shell = Command::new("/bin/sh");
    shell.arg("-c").arg(command).current_dir(folder).env_clear();
    shell.env(
        "PATH",
        format!("{}:/usr/bin:/bin", program.parent().unwrap().display()),
    );
    shell
}

/// What a command prints on both streams, as it comes, and its exit code.
fn answer(command: &str, folder: &Path) -> String {
    let path = folder.join(".answer");
    let file = File::create(&path).unwrap();
    let mut shell = shell(command, folder);
    shell
        .stdin(Stdio::null())
        .stdout(file.try_clone().unwrap())
        .stderr(file);
    let status = shell.status().unwrap();
    fs::read_to_string(&path).unwrap() + &ended(status)
}

fn ended(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(0), _) => String::new(),
        (Some(code), _) => format!("[exit code {code}]\n"),
        (None, signal) => format!("[killed by signal {}]\n", signal.unwrap_or_default()),
    }
}

/// A command that runs until its input ends, and its first line.
fn start(command: &str, folder: &Path) -> (Child, String) {
    let mut shell = shell(&format!("exec {command}"), folder);
    let mut child = shell
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    let out = child.stdout.as_mut().unwrap();
    BufReader::new(out).read_line(&mut line).unwrap();
    (child, line)
}

fn end(mut child: Child) {
    drop(child.stdin.take());
    child.wait().unwrap();
}

/// The text without what differs from run to run. Progress is told only where a machine is slow.
fn normal(text: &str) -> String {
    let lines = text.lines().filter(|line| !line.contains(" steps begun, "));
    lines.map(|line| normal_line(line) + "\n").collect()
}

fn normal_line(line: &str) -> String {
    const GAPS: [char; 4] = [' ', '(', ')', ','];
    let words: Vec<&str> = line.split_inclusive(GAPS).collect();
    let bare = |word: &str| {
        word.trim_end_matches(GAPS)
            .trim_end_matches([':', ';', '.'])
            .to_owned()
    };
    let mut text = String::new();
    let mut before = String::new();
    for (at, word) in words.iter().enumerate() {
        let this = bare(word);
        let is_number = !this.is_empty() && this.bytes().all(|byte| byte.is_ascii_digit());
        let after = words.get(at + 1).map(|word| bare(word)).unwrap_or_default();
        let fixed = match before.trim_matches('"') {
            _ if is_time(&this) => Some("TIME"),
            "pid" | "process" if is_number => Some("PID"),
            "reading" if is_number => Some("READS"),
            _ if is_number && after == "reads" => Some("READS"),
            _ => None,
        };
        text.push_str(
            &fixed.map_or_else(|| (*word).to_owned(), |fixed| word.replace(&this, fixed)),
        );
        if !this.is_empty() {
            before = this;
        }
    }
    text
}

/// `0.04s`, or a moment such as `2026-01-31T12:00:00Z`.
fn is_time(word: &str) -> bool {
    let seconds = word.strip_suffix("ms").or_else(|| word.strip_suffix('s'));
    let is_seconds =
        seconds.is_some_and(|number| number.contains('.') && number.parse::<f64>().is_ok());
    let moment = word.trim_matches('"').as_bytes();
    is_seconds
        || (moment.len() >= 20 && moment[4] == b'-' && moment[10] == b'T' && moment.ends_with(b"Z"))
}
