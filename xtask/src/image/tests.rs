// SPDX-License-Identifier: Apache-2.0
//! What is written is read again, by a reader of the format that others wrote.

use std::process::{Command, Stdio};

use super::*;

fn image() -> Image {
    let deep = format!("{}/file", "folder/".repeat(20).trim_end_matches('/'));
    let mut files = Tree::new();
    files.insert("usr/bin/tool".into(), Entry::File(0o755, vec![7; 700]));
    files.insert("bin".into(), Entry::Link("usr/bin".into()));
    files.insert("tmp".into(), Entry::Folder(0o1777));
    files.insert(deep, Entry::File(0o644, Vec::new()));
    Image {
        name: "example.org/a:1",
        files,
        command: vec!["/usr/bin/tool".into()],
    }
}

/// What tar says of an archive.
fn tar(arguments: &[&str], archive: &[u8]) -> Vec<u8> {
    use std::io::Write;
    let mut child = Command::new("tar")
        .args(arguments)
        .env("TZ", "UTC")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(archive).unwrap();
    drop(stdin);
    let result = child.wait_with_output().unwrap();
    assert!(result.status.success());
    result.stdout
}

#[test]
fn tar_reads_what_was_written() {
    let archive = tar::archive(&image().files).unwrap();
    let listing = String::from_utf8(tar(&["-tv", "--numeric-owner"], &archive)).unwrap();
    let lines: Vec<String> = listing
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
        .collect();
    assert_eq!(lines[0], "lrwxrwxrwx 0/0 0 1970-01-01 00:00 bin -> usr/bin");
    let has = |line: &str| lines.iter().any(|other| other == line);
    assert!(has("drwxrwxrwt 0/0 0 1970-01-01 00:00 tmp/"), "{listing}");
    assert!(
        has("drwxr-xr-x 0/0 0 1970-01-01 00:00 usr/bin/"),
        "{listing}"
    );
    assert!(
        has("-rwxr-xr-x 0/0 700 1970-01-01 00:00 usr/bin/tool"),
        "{listing}"
    );
    assert!(
        lines
            .iter()
            .any(|line| line.ends_with("folder/folder/file")),
        "{listing}"
    );
    assert_eq!(tar(&["-xO", "usr/bin/tool"], &archive), vec![7; 700]);
}

#[test]
fn a_path_that_is_too_long_is_refused() {
    let name = "x".repeat(101);
    let tree = Tree::from([(name, Entry::Folder(0o755))]);
    assert!(tar::archive(&tree).is_none());
}

#[test]
fn an_image_is_complete_and_always_the_same() {
    let (bytes, digest) = image().layout().unwrap();
    assert_eq!(image().layout().unwrap(), (bytes.clone(), digest.clone()));
    let read = |path: &str| -> Vec<u8> { tar(&["-xO", path], &bytes) };
    let json = |path: &str| -> Value { serde_json::from_slice(&read(path)).unwrap() };
    let blob = |value: &Value| format!("blobs/{}", value.as_str().unwrap().replace(':', "/"));
    let index = json("index.json");
    assert_eq!(index["manifests"][0]["digest"], digest);
    let name = &index["manifests"][0]["annotations"]["io.containerd.image.name"];
    assert_eq!(name, "example.org/a:1");
    let manifest = json(&blob(&index["manifests"][0]["digest"]));
    let layer = read(&blob(&manifest["layers"][0]["digest"]));
    assert_eq!(manifest["layers"][0]["size"], layer.len());
    let config = json(&blob(&manifest["config"]["digest"]));
    assert_eq!(config["rootfs"]["diff_ids"][0], super::digest(&layer));
    assert_eq!(config["config"]["Cmd"][0], "/usr/bin/tool");
}
