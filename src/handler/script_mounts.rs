//! The mounts of an isolated script: a `/proc` with its own processes, its own directory alone
//! among those of all scripts, nothing of Procession, and, where its files are isolated, a `/tmp`
//! of its own.

use crate::handler::script_account::AccountIds;
use crate::handler::script_confinement::{Confinement, FileAccess, SHARED_FOLDERS, SHARED_MEMORY};
use nix::errno::Errno;
use nix::fcntl::{OFlag, open};
use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};
use nix::sys::stat::Mode;
use nix::sys::statvfs::{FsFlags, statvfs};
use std::fs::{self, File};
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, chown};
use std::path::{Path, PathBuf};

/// Sets up the mounts for this process and what it starts. `account` is the script's account, if
/// that is not ours.
pub(crate) fn arrange(
    confinement: &Confinement,
    account: Option<AccountIds>,
) -> Result<(), String> {
    unshare(CloneFlags::CLONE_NEWNS).map_err(|e| format!("cannot make a mount namespace: {e}"))?;
    // Later mounts outside appear here, and none of ours appears outside.
    change(Path::new("/"), MsFlags::MS_REC | MsFlags::MS_SLAVE)?;
    let plain = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
    mount(Some("proc"), "/proc", Some("proc"), plain, None::<&str>)
        .map_err(|e| format!("cannot mount /proc: {e}"))?;
    let own = open_folder(&confinement.folder)?;
    confinement.cgroups.as_deref().map_or(Ok(()), make_read_only)?;
    if let Some(files) = &confinement.files {
        let named = open_named(files);
        give_own_temporaries(&confinement.folder, account)?;
        for (path, file) in &named {
            show_again(path, file)?;
            // A path below /tmp would be writable like /tmp.
            if !files.may_write(path) {
                make_read_only(path)?;
            }
        }
    }
    let walls = show_own_folder_alone(&confinement.folder, &own)?;
    confinement.hidden.iter().try_for_each(|path| hide_path(path, &walls.nothing))?;
    let flags = MsFlags::MS_RDONLY | MsFlags::MS_NOSUID | MsFlags::MS_NODEV;
    change(&walls.folder, MsFlags::MS_REMOUNT | flags)
}

/// A directory in memory that replaces the directory of all scripts' directories.
struct Walls {
    folder: PathBuf,
    /// A file in it without any permissions.
    nothing: PathBuf,
}

/// Remounts an existing mount with other flags.
fn change(path: &Path, flags: MsFlags) -> Result<(), String> {
    mount(None::<&str>, path, None::<&str>, flags, None::<&str>)
        .map_err(|e| format!("cannot change the mount {}: {e}", path.display()))
}

fn bind_mount(source: &Path, target: &Path) -> Result<(), String> {
    mount(Some(source), target, None::<&str>, MsFlags::MS_BIND, None::<&str>)
        .map_err(|e| format!("cannot mount over {}: {e}", target.display()))
}

fn mount_memory(target: &Path, flags: MsFlags, options: &str) -> Result<(), String> {
    let flags = flags | MsFlags::MS_NOSUID | MsFlags::MS_NODEV;
    mount(Some("tmpfs"), target, Some("tmpfs"), flags, Some(options))
        .map_err(|e| format!("cannot mount over {}: {e}", target.display()))
}

fn open_folder(path: &Path) -> Result<OwnedFd, String> {
    open(path, OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC, Mode::empty())
        .map_err(|e| format!("cannot open {}: {e}", path.display()))
}

/// A `/tmp` on disk, in the script's directory, removed with it.
fn give_own_temporaries(folder: &Path, account: Option<AccountIds>) -> Result<(), String> {
    let own = folder.join("tmp");
    let fault = |e: std::io::Error| format!("cannot make {}: {e}", own.display());
    fs::DirBuilder::new().mode(0o700).create(&own).map_err(fault)?;
    if let Some(account) = account {
        chown(&own, Some(account.user), Some(account.group)).map_err(fault)?;
    }
    // By its descriptor: the path is invalid once /tmp is replaced.
    let own = open_folder(&own)?;
    for shared in SHARED_FOLDERS.map(Path::new).iter().filter(|path| path.is_dir()) {
        bind_mount(&by_descriptor(&own), shared)?;
    }
    if Path::new(SHARED_MEMORY).is_dir() {
        mount_memory(Path::new(SHARED_MEMORY), MsFlags::MS_NOEXEC, "mode=1777")?;
    }
    Ok(())
}

/// Paths below replaced directories that the operator named; missing ones cannot be used anyway.
fn open_named(files: &FileAccess) -> Vec<(&Path, OwnedFd)> {
    let replaced = SHARED_FOLDERS.into_iter().chain([SHARED_MEMORY]).map(Path::new);
    let replaced: Vec<&Path> = replaced.collect();
    let is_below =
        |path: &&Path| replaced.iter().any(|folder| path.starts_with(folder) && path != folder);
    let named = files.named().filter(is_below);
    let flags = OFlag::O_PATH | OFlag::O_CLOEXEC;
    named.filter_map(|path| Some((path, open(path, flags, Mode::empty()).ok()?))).collect()
}

/// Mounts a file or directory at its old path again.
fn show_again(path: &Path, file: &OwnedFd) -> Result<(), String> {
    let source = by_descriptor(file);
    let fault = |e: std::io::Error| format!("cannot make {}: {e}", path.display());
    if source.is_dir() {
        fs::create_dir_all(path).map_err(fault)?;
    } else if !path.exists() {
        // Never replaces an existing file: below a directory that was mounted again it is the
        // operator's own.
        path.parent().map_or(Ok(()), fs::create_dir_all).map_err(fault)?;
        File::create_new(path).map_err(fault)?;
    }
    bind_mount(&source, path)
}

/// A remount cannot clear the original flags, so they are repeated.
fn make_read_only(path: &Path) -> Result<(), String> {
    let found = statvfs(path).map_err(|e| format!("cannot look at {}: {e}", path.display()))?;
    let kept = [
        (FsFlags::ST_NOSUID, MsFlags::MS_NOSUID),
        (FsFlags::ST_NODEV, MsFlags::MS_NODEV),
        (FsFlags::ST_NOEXEC, MsFlags::MS_NOEXEC),
        (FsFlags::ST_NOATIME, MsFlags::MS_NOATIME),
        (FsFlags::ST_NODIRATIME, MsFlags::MS_NODIRATIME),
        (FsFlags::ST_RELATIME, MsFlags::MS_RELATIME),
    ];
    let kept = kept.into_iter().filter(|(has, _)| found.flags().contains(*has));
    let flags = kept.fold(MsFlags::MS_REMOUNT | MsFlags::MS_BIND, |flags, (_, keep)| flags | keep);
    change(path, flags | MsFlags::MS_RDONLY)
}

/// Mounts an empty directory over that of all scripts, with this script's own in it. It is still
/// writable.
fn show_own_folder_alone(folder: &Path, own: &OwnedFd) -> Result<Walls, String> {
    let all = folder.parent().ok_or_else(|| format!("{} is in no folder", folder.display()))?;
    let fault = |e: std::io::Error| format!("cannot make {}: {e}", folder.display());
    fs::create_dir_all(all).map_err(fault)?;
    mount_memory(all, MsFlags::empty(), "size=64k,mode=0711")?;
    fs::create_dir(folder).map_err(fault)?;
    bind_mount(&by_descriptor(own), folder)?;
    let nothing = all.join("hidden");
    let made = File::options().write(true).create_new(true).mode(0o000).open(&nothing);
    made.map_err(|e| format!("cannot make {}: {e}", nothing.display()))?;
    Ok(Walls { folder: all.to_owned(), nothing })
}

fn by_descriptor(folder: &OwnedFd) -> PathBuf {
    format!("/proc/self/fd/{}", folder.as_raw_fd()).into()
}

/// Mounts an empty file over a path. A missing or unreachable path needs no hiding.
fn hide_path(path: &Path, nothing: &Path) -> Result<(), String> {
    let found = match fs::metadata(path) {
        Ok(found) => found,
        Err(e) if is_out_of_reach(&e) => return Ok(()),
        Err(e) => return Err(format!("cannot hide {}: {e}", path.display())),
    };
    if found.is_dir() {
        mount_memory(path, MsFlags::MS_RDONLY, "size=4k,mode=0000")
    } else {
        bind_mount(nothing, path)
    }
}

fn is_out_of_reach(error: &std::io::Error) -> bool {
    let known = [Errno::ENOENT, Errno::EACCES, Errno::ENOTDIR, Errno::ELOOP];
    error.raw_os_error().is_some_and(|code| known.contains(&Errno::from_raw(code)))
}
