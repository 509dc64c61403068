//! The private directory of a script, and the removal of those left by killed processes.

use crate::handler::process_tree::{list_pids, started};
use std::fs::{self, DirBuilder, Metadata, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Once;

/// Prefix of the directory names; `<pid>-<start>-<id>` follows.
const NAME: &str = "procession-";

/// A private directory, removed when this is dropped.
#[derive(Debug)]
pub(crate) struct Dir {
    path: PathBuf,
    /// Held for the lifetime of this process and by no later process, also after `kill -9`.
    _lock: Option<fs::File>,
}

impl Dir {
    /// Creates one that only this user can enter: scripts may contain secrets. The first one of
    /// this process removes those of dead processes.
    pub(crate) fn create() -> io::Result<Self> {
        static SWEEP: Once = Once::new();
        let root = folder_of_folders(&std::env::temp_dir())?;
        SWEEP.call_once(|| sweep(&root));
        Self::create_in(&root)
    }

    fn create_in(root: &Path) -> io::Result<Self> {
        let pid = std::process::id();
        let start = i32::try_from(pid).ok().and_then(started).unwrap_or(0);
        let id = uuid::Uuid::new_v4().simple();
        let path = root.join(format!("{NAME}{pid}-{start}-{id}"));
        DirBuilder::new().mode(0o700).create(&path)?;
        let lock = fs::File::open(&path).ok().filter(|folder| folder.try_lock().is_ok());
        Ok(Self { path, _lock: lock })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

/// The parent directory of all scripts' directories, which an isolated script sees without those of
/// others. Named after our user id: two installations on one machine may have different users.
/// Every user may pass through it to a directory of theirs, so that scripts with a user of their
/// own can; no other user may list it.
fn folder_of_folders(temporary: &Path) -> io::Result<PathBuf> {
    let own = fs::metadata("/proc/self")?.uid();
    let path = temporary.join(format!("{NAME}scripts-{own}"));
    match DirBuilder::new().mode(0o711).create(&path) {
        Ok(()) => fs::set_permissions(&path, Permissions::from_mode(0o711))?,
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
        Err(e) => return Err(e),
    }
    let found = fs::symlink_metadata(&path)?;
    // Other users may create names in /tmp, and could remove a directory of theirs from below a
    // script.
    if found.is_dir() && found.uid() == own && found.mode() & 0o022 == 0 {
        return Ok(path);
    }
    let said =
        format!("{} belongs to somebody else, or others may write it; remove it", path.display());
    Err(io::Error::other(said))
}

impl Drop for Dir {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.path) {
            tracing::warn!(path = %self.path.display(), %error, "a script's folder stays behind");
        }
    }
}

/// Removes directories in `root` whose process is gone: ours by name and by owner, and unused. An
/// error here does not concern the script, so it is only logged.
fn sweep(root: &Path) {
    let Some(own) = fs::metadata("/proc/self").ok().map(|own| own.uid()) else {
        return;
    };
    let entries = fs::read_dir(root).into_iter().flatten().flatten();
    for path in entries.map(|entry| entry.path()) {
        // A script with a user of its own owns its directory.
        let is_ours = |data: &Metadata| data.uid() == own || own == 0;
        let is_left = |data: Metadata| data.is_dir() && is_ours(&data) && is_abandoned(&path);
        if !fs::symlink_metadata(&path).is_ok_and(is_left) {
            continue;
        }
        match fs::remove_dir_all(&path) {
            Ok(()) => tracing::info!(path = %path.display(), "removed a killed process's folder"),
            Err(error) => {
                tracing::warn!(path = %path.display(), %error, "a script's folder stays behind");
            }
        }
    }
}

/// Whether the process in the directory's name is gone, its lock is free (that process may run in
/// another container, with its own process ids), and no script of it still runs there.
fn is_abandoned(path: &Path) -> bool {
    let Some((pid, start)) = path.file_name().and_then(|name| maker(name.to_str()?)) else {
        return false;
    };
    started(pid) != Some(start)
        && fs::File::open(path).is_ok_and(|folder| folder.try_lock().is_ok())
        && !list_pids().into_iter().any(|pid| uses_folder(pid, path))
}

/// Process id and start time of the creator, from a directory's name.
fn maker(name: &str) -> Option<(i32, u64)> {
    let mut parts = name.strip_prefix(NAME)?.split('-');
    let maker = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
    let id = parts.next()?;
    (uuid::Uuid::try_parse(id).is_ok() && parts.next().is_none()).then_some(maker)
}

/// Whether a process works in a directory, or runs a script in it.
fn uses_folder(pid: i32, folder: &Path) -> bool {
    let is_there = |at: PathBuf| at.starts_with(folder);
    let words = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let script = folder.join("script");
    fs::read_link(format!("/proc/{pid}/cwd")).is_ok_and(is_there)
        || words.split(|b| *b == 0).any(|word| word == script.as_os_str().as_encoded_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    /// The process id of a dead process.
    fn dead() -> u32 {
        let mut child = Command::new("true").spawn().expect("true");
        child.wait().expect("its end");
        child.id()
    }

    #[test]
    fn the_folder_of_folders_is_ours_or_an_error() {
        let root = tempfile::tempdir().expect("folder");
        let made = folder_of_folders(root.path()).expect("a folder");
        assert_eq!(fs::metadata(&made).expect("it").mode() & 0o777, 0o711);
        assert_eq!(folder_of_folders(root.path()).expect("the same"), made);
        fs::set_permissions(&made, Permissions::from_mode(0o777)).expect("mode");
        let said = folder_of_folders(root.path()).expect_err("others may write it").to_string();
        assert!(said.contains("others may write it; remove it"), "{said}");
        fs::remove_dir(&made).expect("gone");
        std::os::unix::fs::symlink(root.path(), &made).expect("a link");
        assert!(folder_of_folders(root.path()).is_err(), "a link is not ours");
    }

    #[test]
    fn only_folders_of_processes_that_are_gone_are_swept() {
        let root = tempfile::tempdir().expect("folder");
        let make = |name: String| {
            let path = root.path().join(name);
            fs::create_dir(&path).expect("a folder");
            fs::write(path.join("script"), "secret").expect("a script");
            path
        };
        let (dead, own) = (dead(), std::process::id());
        let id = || uuid::Uuid::new_v4().simple();
        let left = [
            make(format!("procession-{dead}-7-{}", id())),
            // The process id was reused since.
            make(format!("procession-{own}-1-{}", id())),
        ];
        let ours = Dir::create_in(root.path()).expect("a folder");
        let locked = make(format!("procession-{dead}-8-{}", id()));
        let lock = fs::File::open(&locked).expect("a folder");
        lock.try_lock().expect("a lock");
        let used = make(format!("procession-{dead}-9-{}", id()));
        let mut user = Command::new("sleep").arg("60").current_dir(&used).spawn().expect("sleep");
        let others = [
            make("procession-of-somebody".to_owned()),
            make(format!("procession-{dead}-7-notes")),
            make(format!("other-{dead}-7-{}", id())),
        ];
        let link = root.path().join(format!("procession-{dead}-7-{}", id()));
        std::os::unix::fs::symlink(&others[2], &link).expect("a link");
        sweep(root.path());
        assert!(left.iter().all(|path| !path.exists()), "{left:?}");
        assert!(ours.path().exists() && locked.exists() && used.exists() && link.exists());
        assert!(others.iter().all(|path| path.join("script").exists()));
        user.kill().and_then(|()| user.wait()).expect("its end");
        drop(lock);
        sweep(root.path());
        assert!(!locked.exists() && !used.exists());
    }
}
