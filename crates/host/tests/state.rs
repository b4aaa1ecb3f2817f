// SPDX-License-Identifier: Apache-2.0
//! The state folder: one owner, private, refused where it cannot be written, versions checked.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use host::{Error, Folder, Memory, StateDir, Storage, history, open_change};
use units::Code;

/// A folder that is removed at the end of the test.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        let folder = format!("slicewright-{name}-{}", std::process::id());
        let path = std::env::temp_dir().join(folder);
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn the_second_owner_is_told_who_the_first_is() {
    let scratch = Scratch::new("lock");
    let path = scratch.0.join("state");
    let first = StateDir::open(&path).unwrap();
    let Err(error) = StateDir::open(&path) else {
        panic!("a second owner got in");
    };
    assert_eq!(error.code(), Code::Locked);
    let owner = format!("process {},", std::process::id());
    assert!(error.to_string().contains(&owner), "{error}");
    drop(first);
    StateDir::open(&path).unwrap();
}

#[test]
fn the_folder_is_private_and_reading_it_needs_no_lock() {
    let scratch = Scratch::new("private");
    let path = scratch.0.join("deep/state");
    let state = StateDir::open(&path).unwrap();
    assert_eq!(
        fs::metadata(&path).unwrap().permissions().mode() & 0o777,
        0o700
    );
    state.storage().replace("journal.jsonl", "{}\n").unwrap();
    let journal = fs::metadata(path.join("journal.jsonl")).unwrap();
    assert_eq!(journal.permissions().mode() & 0o777, 0o600);
    assert_eq!(history(&Folder::at(&path)).unwrap(), []);
    assert_eq!(history(&Folder::at(scratch.0.join("none"))).unwrap(), []);
}

#[test]
fn a_folder_that_cannot_be_made_is_refused() {
    let scratch = Scratch::new("refused");
    let file = scratch.0.join("file");
    fs::write(&file, "").unwrap();
    let Err(error) = StateDir::open(file.join("state")) else {
        panic!("a folder inside a file");
    };
    assert_eq!(error.code(), Code::StateUnwritable);
    assert!(error.to_string().contains("file/state"), "{error}");
}

#[test]
fn both_storages_keep_what_they_are_given() {
    let scratch = Scratch::new("storage");
    let folder = Folder::at(&scratch.0);
    let memory = Memory::default();
    for storage in [&folder as &dyn Storage, &memory] {
        assert_eq!(storage.read("x").unwrap(), None);
        storage.remove("x").unwrap();
        storage.replace("x", "one\n").unwrap();
        storage.append("x", "two").unwrap();
        assert_eq!(storage.read("x").unwrap().unwrap(), b"one\ntwo\n");
        storage.replace("x", "three\n").unwrap();
        assert_eq!(storage.read("x").unwrap().unwrap(), b"three\n");
        storage.remove("x").unwrap();
        assert_eq!(storage.read("x").unwrap(), None);
    }
}

fn journal_error(text: &str) -> String {
    let memory = Memory::default();
    memory.replace("journal.jsonl", text).unwrap();
    let error = open_change(&memory).unwrap_err();
    assert_eq!(error.code(), Code::JournalDamaged);
    error.to_string()
}

const HEADER: &str = r#"{"format":1,"id":7,"time":"2026-01-02T03:04:05Z","boot_id":"b","kind":"apply","text":"all-balanced","gpus":[]}"#;

#[test]
fn a_journal_says_what_was_begun() {
    let memory = Memory::default();
    assert_eq!(open_change(&memory).unwrap(), None);
    memory
        .replace("journal.jsonl", &format!("{HEADER}\n"))
        .unwrap();
    let open = open_change(&memory).unwrap().unwrap();
    assert_eq!(
        (open.id(), open.intent().text.as_str()),
        (7, "all-balanced")
    );
    assert_eq!(open.time().to_string(), "2026-01-02T03:04:05Z");
    assert_eq!(open.undoing(), None);
    memory
        .append(
            "journal.jsonl",
            r#"{"record":"undoing","cause":{"code":"in-use","message":"m"}}"#,
        )
        .unwrap();
    let open = open_change(&memory).unwrap().unwrap();
    assert_eq!(open.undoing().unwrap().code, Code::InUse);
}

#[test]
fn a_torn_last_line_is_left_out_and_any_other_damage_is_told() {
    let memory = Memory::default();
    let torn = format!("{HEADER}\n{}", r#"{"record":"undoing","cau"#);
    memory.replace("journal.jsonl", &torn).unwrap();
    let open = open_change(&memory).unwrap().unwrap();
    assert_eq!(open.undoing(), None);

    let broken = format!("{HEADER}\n{{\"record\":\n{{}}\n");
    assert!(journal_error(&broken).contains("journal.jsonl, line 2"));
    assert!(journal_error("").contains("no whole line"));
    assert!(journal_error("\u{0}\n").contains("line 1"));
    let unknown = format!("{HEADER}\n{{\"record\":\"other\"}}\n");
    assert!(journal_error(&unknown).contains("other"));
}

#[test]
fn lines_of_another_version_are_refused_with_both_versions() {
    let newer = HEADER.replace("\"format\":1", "\"format\":2");
    let message = journal_error(&format!("{newer}\n"));
    assert!(
        message.contains("it has format 2, this Slicewright knows format 1 only"),
        "{message}"
    );
    let memory = Memory::default();
    memory.replace("history.jsonl", "{\"format\":9}\n").unwrap();
    let error: Error = history(&memory).unwrap_err();
    assert!(error.to_string().contains("it has format 9"), "{error}");
}

#[test]
fn damage_names_the_file_by_its_path() {
    let scratch = Scratch::new("damage");
    fs::write(scratch.0.join("journal.jsonl"), "x\n").unwrap();
    let error = open_change(&Folder::at(&scratch.0)).unwrap_err();
    let place = format!("{}/journal.jsonl, line 1:", scratch.0.display());
    assert!(error.to_string().starts_with(&place), "{error}");
}
