//! What a script is shut in with, as its supervisor is told.

use crate::domain::job::script_isolation::IsolationLevel;
use crate::handler::script_account::AccountIds;
use nix::unistd::{getegid, geteuid};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// Folders that programs of any system read to run at all.
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
/// Devices that everybody may write.
const OPEN_DEVICES: [&str; 5] = ["/dev/null", "/dev/zero", "/dev/full", "/dev/tty", "/dev/ptmx"];
/// Folders that everybody may write, which a script with files of its own has for itself.
pub(crate) const SHARED_FOLDERS: [&str; 2] = ["/tmp", "/var/tmp"];
/// Memory that everybody may share by name.
pub(crate) const SHARED_MEMORY: &str = "/dev/shm";

/// The operator's part of it.
#[derive(Clone, Debug, Default)]
pub struct ScriptFiles {
    /// Procession's own files and folders, which no script sees.
    pub hidden: Vec<PathBuf>,
    /// What scripts may read beside the system's folders, where their files are isolated.
    pub read: Vec<PathBuf>,
    /// What they may also write.
    pub write: Vec<PathBuf>,
}

/// What a script is shut in with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Confinement {
    /// Procession's own user, unless that is root: the script runs as it, without the rights that made its walls.
    pub(crate) user: Option<AccountIds>,
    /// The script's own folder, in a folder of all such folders.
    pub(crate) folder: PathBuf,
    /// What is not there for it.
    pub(crate) hidden: Vec<PathBuf>,
    /// The mount of control groups, where it has one: it may not write there, or it could leave its own.
    pub(crate) cgroups: Option<PathBuf>,
    /// The files it may use; whatever its user may when `None`.
    pub(crate) files: Option<FileAccess>,
}

/// Files and folders, each with what is below it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FileAccess {
    pub(crate) read: Vec<PathBuf>,
    pub(crate) write: Vec<PathBuf>,
    /// Those of both that the operator named.
    named: Vec<PathBuf>,
}

impl Confinement {
    /// What `level` comes to for a script with this folder.
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

    /// What a script's log says of it.
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

    /// Whether the operator lets scripts write it.
    pub(crate) fn may_write(&self, path: &Path) -> bool {
        self.write.iter().any(|allowed| allowed == path)
    }

    /// The files and folders that the operator named.
    pub(crate) fn named(&self) -> impl Iterator<Item = &Path> {
        self.named.iter().map(PathBuf::as_path)
    }

    /// Whether a folder may be read at all.
    pub(crate) fn covers(&self, folder: &Path) -> bool {
        self.read.iter().chain(&self.write).any(|allowed| folder.starts_with(allowed))
    }
}
