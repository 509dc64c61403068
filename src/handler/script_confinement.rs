//! The isolation of a script, as passed to its supervisor.

use crate::domain::job::script_isolation::IsolationLevel;
use crate::handler::script_account::AccountIds;
use nix::unistd::{getegid, geteuid};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// Directories that programs of any system read in order to run.
const SYSTEM_FOLDERS: [&str; 13] = [
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/etc",
    "/opt",
    "/proc",
    "/sys",
    "/dev",
    "/run/systemd/resolve",
    "/run/resolvconf",
];
/// Devices that every user may write.
const OPEN_DEVICES: [&str; 5] = ["/dev/null", "/dev/zero", "/dev/full", "/dev/tty", "/dev/ptmx"];
/// Directories that every user may write, and of which a script with isolated files gets its own.
pub(crate) const SHARED_FOLDERS: [&str; 2] = ["/tmp", "/var/tmp"];
/// Shared memory by name, open to every user.
pub(crate) const SHARED_MEMORY: &str = "/dev/shm";

/// The configured part of the isolation.
#[derive(Clone, Debug, Default)]
pub struct ScriptFiles {
    /// Procession's own files and directories, hidden from every script.
    pub hidden: Vec<PathBuf>,
    /// What scripts may read besides the system directories, where their files are isolated.
    pub read: Vec<PathBuf>,
    /// What they may also write.
    pub write: Vec<PathBuf>,
}

/// The isolation of a script.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Confinement {
    /// Procession's own user, unless that is root: the script runs as this user, without the
    /// privileges that set up the isolation.
    pub(crate) user: Option<AccountIds>,
    /// The script's own directory, inside the directory of all such directories.
    pub(crate) folder: PathBuf,
    /// Hidden paths.
    pub(crate) hidden: Vec<PathBuf>,
    /// The mount point of control groups, if it has one: it must not be writable, or the script
    /// could leave its group.
    pub(crate) cgroups: Option<PathBuf>,
    /// The files it may use; `None`: everything its user may use.
    pub(crate) files: Option<FileAccess>,
}

/// Readable and writable paths, each with everything below it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FileAccess {
    pub(crate) read: Vec<PathBuf>,
    pub(crate) write: Vec<PathBuf>,
    /// The paths among both that the operator named.
    named: Vec<PathBuf>,
}

impl Confinement {
    /// The isolation at `level` for a script with this directory.
    pub(crate) fn new(level: IsolationLevel, files: &ScriptFiles, folder: &Path) -> Option<Self> {
        let user = AccountIds { user: geteuid().as_raw(), group: getegid().as_raw() };
        let access = match level {
            IsolationLevel::None => return None,
            IsolationLevel::Processes => None,
            IsolationLevel::Files => Some(FileAccess::new(files, folder)),
        };
        Some(Self {
            user: (user.user != 0).then_some(user),
            folder: folder.to_owned(),
            hidden: files.hidden.clone(),
            cgroups: None,
            files: access,
        })
    }

    /// The isolation, for the script's log.
    pub(crate) fn describe(&self) -> &'static str {
        if self.files.is_some() { "isolated: processes, files" } else { "isolated: processes" }
    }
}

impl FileAccess {
    fn new(files: &ScriptFiles, folder: &Path) -> Self {
        let system = SYSTEM_FOLDERS.iter().map(PathBuf::from);
        let shared = SHARED_FOLDERS.iter().chain([&SHARED_MEMORY]).chain(&OPEN_DEVICES);
        let write = shared.map(PathBuf::from).chain(files.write.iter().cloned());
        Self {
            read: system.chain(files.read.iter().cloned()).collect(),
            write: write.chain([folder.to_owned()]).collect(),
            named: files.read.iter().chain(&files.write).cloned().collect(),
        }
    }

    /// Whether the operator lets scripts write this path.
    pub(crate) fn may_write(&self, path: &Path) -> bool {
        self.write.iter().any(|allowed| allowed == path)
    }

    /// The paths that the operator named.
    pub(crate) fn named(&self) -> impl Iterator<Item = &Path> {
        self.named.iter().map(PathBuf::as_path)
    }

    /// Whether a directory may be read at all.
    pub(crate) fn covers(&self, folder: &Path) -> bool {
        self.read.iter().chain(&self.write).any(|allowed| folder.starts_with(allowed))
    }
}
