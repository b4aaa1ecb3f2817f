// SPDX-License-Identifier: Apache-2.0
//! The files of a checkout.

use std::io::ErrorKind;
use std::path::Path;

use super::source;
use crate::error::Error;
use crate::process;

/// Text files that git knows or would add, by path. Binary files are left out.
pub struct Tree {
    /// By path.
    pub files: Vec<File>,
}

/// One text file.
pub struct File {
    /// Path relative to the root, with `/`.
    pub path: String,
    /// Content.
    pub text: String,
    /// Of a Rust file, the content without comments and strings; else empty.
    pub code: String,
    /// Whether the whole file is for tests: in a folder `tests` or `benches`, or a module that is
    /// declared with `#[cfg(test)]`.
    pub test: bool,
}

impl Tree {
    /// The checkout at `root`.
    ///
    /// # Errors
    /// If git cannot be asked or a file cannot be read.
    pub fn read(root: &Path) -> Result<Self, Error> {
        let listing = [
            "git",
            "-c",
            "safe.directory=*",
            "ls-files",
            "-z",
            "-co",
            "--exclude-standard",
        ];
        let listing = process::output(root, &listing)?;
        let mut paths: Vec<&str> = listing.split_terminator('\0').collect();
        paths.sort_unstable();
        let mut files = Vec::new();
        for path in paths {
            match std::fs::read(root.join(path)) {
                Ok(bytes) => files.extend(
                    String::from_utf8(bytes)
                        .ok()
                        .map(|text| File::new(path, text)),
                ),
                // Deleted but not yet in git's index; or a link to a folder.
                Err(error)
                    if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::IsADirectory) => {}
                Err(source) => {
                    let path = root.join(path);
                    return Err(Error::Read { path, source });
                }
            }
        }
        Ok(Self::from(files))
    }

    /// The file at that path.
    pub fn file(&self, path: &str) -> Option<&File> {
        self.files.iter().find(|file| file.path == path)
    }

    /// Whether there is such a file or folder.
    pub fn has(&self, path: &str) -> bool {
        let folder = format!("{path}/");
        let inside = |file: &File| file.path == path || file.path.starts_with(&folder);
        path.is_empty() || self.files.iter().any(inside)
    }

    /// The Rust files.
    pub fn rust(&self) -> impl Iterator<Item = &File> {
        self.files.iter().filter(|file| file.is_rust())
    }

    /// A tree for a test of a rule.
    #[cfg(test)]
    pub fn of(files: &[(&str, &str)]) -> Self {
        let file = |(path, text): &(&str, &str)| File::new(path, (*text).to_owned());
        Self::from(files.iter().map(file).collect::<Vec<_>>())
    }
}

impl From<Vec<File>> for Tree {
    fn from(mut files: Vec<File>) -> Self {
        let tests: Vec<String> = files.iter().flat_map(File::test_modules).collect();
        for file in &mut files {
            let path = file.path.trim_end_matches(".rs");
            let inside = |test: &String| {
                path.strip_prefix(test.as_str())
                    .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
            };
            file.test |= tests.iter().any(inside);
        }
        Self { files }
    }
}

impl File {
    fn new(path: &str, text: String) -> Self {
        let code = match path.ends_with(".rs") {
            true => source::code_only(&text),
            false => String::new(),
        };
        let test = path
            .split('/')
            .any(|part| matches!(part, "tests" | "benches"));
        let path = path.to_owned();
        Self {
            path,
            text,
            code,
            test,
        }
    }

    fn is_rust(&self) -> bool {
        self.path.ends_with(".rs")
    }

    /// The crate that the file belongs to: `units` of `crates/units/src/lib.rs`.
    pub fn crate_name(&self) -> Option<&str> {
        match self.path.strip_prefix("crates/") {
            Some(rest) => rest.split('/').next(),
            None => self.path.starts_with("xtask/").then_some("xtask"),
        }
    }

    /// The modules that this file declares for tests only, as paths without `.rs`.
    fn test_modules(&self) -> Vec<String> {
        let path = self.path.trim_end_matches(".rs");
        let (parent, name) = path.rsplit_once('/').unwrap_or(("", path));
        let folder = if matches!(name, "lib" | "main" | "mod") {
            parent
        } else {
            path
        };
        let modules = source::test_modules(&self.code).into_iter();
        modules.map(|module| format!("{folder}/{module}")).collect()
    }

    /// Whether a program wrote it: its module docs say so.
    pub fn is_generated(&self) -> bool {
        self.text
            .lines()
            .take(10)
            .any(|line| line.starts_with("//! Written by `cargo xtask codegen`"))
    }

    /// The code with the items of tests blanked out; nothing of a file that is a test.
    pub fn shipped_code(&self) -> String {
        self.keep(|inside| !inside)
    }

    /// The code of tests, with all else blanked out.
    pub fn test_code(&self) -> String {
        self.keep(|inside| inside)
    }

    fn keep(&self, wanted: impl Fn(bool) -> bool) -> String {
        let items = source::test_items(&self.code);
        let keep = |at: usize| wanted(self.test || items.iter().any(|item| item.contains(&at)));
        let blank = |(at, byte): (usize, u8)| {
            if byte == b'\n' || keep(at) {
                byte
            } else {
                b' '
            }
        };
        let bytes: Vec<u8> = self.code.bytes().enumerate().map(blank).collect();
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_for_tests_are_known() {
        let tree = Tree::of(&[
            ("crates/a/src/lib.rs", "#[cfg(test)]\nmod testing;\nmod b;"),
            ("crates/a/src/testing.rs", ""),
            ("crates/a/src/b.rs", "#[cfg(test)]\nmod tests;"),
            ("crates/a/src/b/tests.rs", ""),
            ("crates/a/src/b/tests/more.rs", ""),
            ("crates/a/tests/c.rs", ""),
        ]);
        let tests: Vec<bool> = tree.files.iter().map(|file| file.test).collect();
        assert_eq!(tests, [false, true, false, true, true, true]);
    }
}
