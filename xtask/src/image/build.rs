// SPDX-License-Identifier: Apache-2.0
//! The images that the project makes. Files come from the workspace and from packages of the
//! Debian system that this runs on.

use std::path::{Path, PathBuf};

use super::{Entry, Image, Tree};
use crate::cluster::driver;
use crate::error::Error;
use crate::process::{output, stream};

/// Slicewright itself.
pub const SLICEWRIGHT: &str = "slicewright.dev/slicewright:dev";
/// Busybox: for the pods of tests, and, as its command only waits, for the sandboxes of all pods.
pub const BUSYBOX: &str = "slicewright.dev/busybox:dev";
/// The cluster's kubectl, for pods that speak to the API server.
pub const KUBECTL: &str = "slicewright.dev/kubectl:dev";

/// A workload that uses what it is given.
pub const VALIDATION: &str = "slicewright.dev/validation:dev";
/// The simulated driver, as the driver's container has it.
pub const DRIVER: &str = "slicewright.dev/driver:dev";

/// What a program of ours needs of Debian: the C library and the unwinder. The driver's library is
/// opened at run time, so a static program would not do.
const PACKAGES: &[&str] = &["libc6", "libgcc-s1"];

/// Folders of these packages that no program of ours uses.
const LEFT_OUT: &[&str] = &["gconv", "audit"];

/// `cargo xtask image`: builds Slicewright as it ships, and writes its image.
///
/// # Errors
/// If something cannot be built, read or written.
pub fn run(root: &Path, target: &Path) -> Result<bool, Error> {
    let path = target.join("images").join("slicewright.tar");
    let digest = slicewright(root, target, true)?.write(&path)?;
    println!("{SLICEWRIGHT} {digest}\n{}", path.display());
    Ok(true)
}

/// Slicewright on Debian's C library: as it ships, or as the tests have built it.
///
/// # Errors
/// If it cannot be built or a file cannot be read.
pub fn slicewright(root: &Path, target: &Path, release: bool) -> Result<Image, Error> {
    let words = [
        "cargo",
        "build",
        "--locked",
        "--release",
        "--package",
        "slicewright",
    ];
    if !release {
        driver::build(root)?;
    } else if !stream(root, &words, |_| {})? {
        return Err(Error::Image("slicewright does not build".to_owned()));
    }
    let profile = if release { "release" } else { "debug" };
    let binary = target.join(profile).join("slicewright");
    on_debian(root, SLICEWRIGHT, "usr/bin/slicewright", &binary)
}

/// A workload that uses what it is given.
///
/// # Errors
/// If it cannot be built or a file cannot be read.
pub fn validation(root: &Path, target: &Path) -> Result<Image, Error> {
    driver::build(root)?;
    let binary = target.join("debug").join("validation");
    on_debian(root, VALIDATION, "usr/bin/validation", &binary)
}

/// The driver container: its files, and a program that waits.
pub fn driver_container(mut files: Tree) -> Result<Image, Error> {
    files.insert(
        "bin/busybox".to_owned(),
        program(Path::new("/bin/busybox"))?,
    );
    let wait = "trap exit TERM INT; while :; do /bin/busybox sleep 3600 & wait; done";
    Ok(Image {
        name: DRIVER,
        files,
        command: ["/bin/busybox", "sh", "-c", wait]
            .map(str::to_owned)
            .to_vec(),
    })
}

/// A program of ours on Debian's C library.
fn on_debian(root: &Path, name: &'static str, path: &str, binary: &Path) -> Result<Image, Error> {
    let mut files = debian(root)?;
    files.insert(path.to_owned(), program(binary)?);
    Ok(Image {
        name,
        files,
        command: vec![format!("/{path}")],
    })
}

/// What programs of ours need of Debian.
///
/// # Errors
/// If a file cannot be read.
pub fn debian(root: &Path) -> Result<Tree, Error> {
    let mut files = Tree::new();
    for package in PACKAGES {
        for path in output(root, &["dpkg", "--listfiles", package])?.lines() {
            if wanted(Path::new(path)) {
                let name = path.trim_start_matches('/').to_owned();
                files.insert(name, copy(Path::new(path))?);
            }
        }
    }
    Ok(files)
}

/// Puts files where they belong below a folder.
///
/// # Errors
/// If one cannot be written.
pub fn unpack(files: &Tree, folder: &Path) -> Result<(), Error> {
    use std::os::unix::fs::{PermissionsExt, symlink};
    for (path, entry) in files {
        let path = folder.join(path);
        let put = || -> std::io::Result<()> {
            std::fs::create_dir_all(path.parent().unwrap_or(folder))?;
            match entry {
                Entry::File(mode, bytes) => {
                    std::fs::write(&path, bytes)?;
                    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(*mode))
                }
                Entry::Link(target) => symlink(target, &path),
                Entry::Folder(_) => std::fs::create_dir_all(&path),
            }
        };
        put().map_err(|source| Error::Write {
            path: path.clone(),
            source,
        })?;
    }
    Ok(())
}

/// Whether a file of a package goes into the image: libraries, and what their licences ask for.
fn wanted(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let mut folders = path.iter();
    let used = !folders.any(|folder| LEFT_OUT.iter().any(|unused| folder == *unused));
    used && !path.is_dir() && (name.contains(".so.") || name == "copyright")
}

/// Busybox with its applets as links.
///
/// # Errors
/// If there is no busybox, or it cannot be read.
pub fn busybox(root: &Path) -> Result<Image, Error> {
    let mut files = Tree::new();
    let path = Path::new("/bin/busybox");
    files.insert("bin/busybox".to_owned(), program(path)?);
    for applet in output(root, &["/bin/busybox", "--list"])?.lines() {
        let link = Entry::Link("busybox".to_owned());
        files.entry(format!("bin/{applet}")).or_insert(link);
    }
    files.insert("tmp".to_owned(), Entry::Folder(0o1777));
    // The first process of a container gets no signal that it does not ask for.
    let wait = "trap exit TERM INT; while :; do sleep 3600 & wait; done";
    Ok(Image {
        name: BUSYBOX,
        files,
        command: ["/bin/sh", "-c", wait].map(str::to_owned).to_vec(),
    })
}

/// A kubectl that needs no library, and nothing else.
///
/// # Errors
/// If it cannot be read.
pub fn kubectl(binary: &Path) -> Result<Image, Error> {
    let mut files = Tree::new();
    files.insert("bin/kubectl".to_owned(), program(binary)?);
    files.insert("tmp".to_owned(), Entry::Folder(0o1777));
    Ok(Image {
        name: KUBECTL,
        files,
        command: vec!["/bin/kubectl".to_owned()],
    })
}

/// A program of this system.
///
/// # Errors
/// If it cannot be read.
pub fn program(path: &Path) -> Result<Entry, Error> {
    Ok(Entry::File(0o755, read(path)?))
}

/// A file or link of this system.
fn copy(path: &Path) -> Result<Entry, Error> {
    let fail = |source| Error::Read {
        path: path.to_owned(),
        source,
    };
    let about = path.symlink_metadata().map_err(fail)?;
    if about.is_symlink() {
        let target: PathBuf = std::fs::read_link(path).map_err(fail)?;
        return Ok(Entry::Link(target.to_string_lossy().into_owned()));
    }
    use std::os::unix::fs::PermissionsExt;
    let mode = about.permissions().mode() & 0o777;
    Ok(Entry::File(mode, read(path)?))
}

fn read(path: &Path) -> Result<Vec<u8>, Error> {
    std::fs::read(path).map_err(|source| Error::Read {
        path: path.to_owned(),
        source,
    })
}
