//! The control group of one script, as seen by its supervisor: created with its limits, entered by
//! the script alone, ended as a whole and removed.

use crate::domain::job::script_limits::read_event;
use crate::handler::cgroup_tree::{
    CgroupOrder, make_attempt_group, process_folder, remove_group, write_setting,
};
use std::fs::{self, File};
use std::io::Write as _;
use std::path::PathBuf;
use std::time::Duration;

/// The kernel releases a group a moment after its last process was reaped.
const REMOVALS: (u32, Duration) = (20, Duration::from_millis(5));

/// Removed when this is dropped, unless a process is still in it.
pub(crate) struct ScriptCgroup {
    folder: PathBuf,
}

/// How often the kernel enforced a limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct LimitEvents {
    /// Processes killed for lack of memory.
    pub(crate) memory_kills: u64,
    /// Processes that were not started.
    pub(crate) refused_processes: u64,
}

impl ScriptCgroup {
    pub(crate) fn create(order: &CgroupOrder) -> Result<Self, String> {
        let cgroup = Self { folder: order.folder.clone() };
        make_attempt_group(order).map(|_| cgroup)
    }

    /// Kills all its processes at once; supported by Linux 5.14 and later.
    pub(crate) fn kill_all(&self) {
        let _each_is_killed_by_itself_then = write_setting(&self.folder, "cgroup.kill", "1");
    }

    pub(crate) fn read_events(&self) -> LimitEvents {
        let read = |file: &str, key| {
            read_event(&fs::read_to_string(self.folder.join(file)).unwrap_or_default(), key)
        };
        LimitEvents {
            memory_kills: read("memory.events", "oom_kill"),
            refused_processes: read("pids.events", "max"),
        }
    }
}

impl Drop for ScriptCgroup {
    fn drop(&mut self) {
        let (times, pause) = REMOVALS;
        for _ in 0..times {
            let is_populated = fs::read_to_string(self.folder.join("cgroup.events"))
                .is_ok_and(|events| read_event(&events, "populated") > 0);
            // A process that a script left behind on purpose keeps its limits; the next start of
            // `serve` cleans up.
            if is_populated || remove_group(&self.folder).is_ok() {
                return;
            }
            std::thread::sleep(pause);
        }
    }
}

/// Entry to a script's group and back, opened while the files are reachable.
pub(crate) struct CgroupDoor {
    into: File,
    back: File,
}

impl CgroupDoor {
    pub(crate) fn open_cgroup(order: &CgroupOrder) -> Result<Self, String> {
        let open = |folder: PathBuf| {
            let path = folder.join("cgroup.procs");
            let opened = File::options().write(true).open(&path);
            opened.map_err(|e| format!("cannot open {}: {e}", path.display()))
        };
        Ok(Self { into: open(process_folder(order))?, back: open(order.home.clone())? })
    }

    /// Starts a process in the group. This process moves in for that moment, because a child is
    /// born in its parent's group.
    pub(crate) fn start_inside<T>(
        &self,
        start: impl FnOnce() -> Result<T, String>,
    ) -> Result<T, String> {
        let enter = (&self.into).write_all(b"0");
        enter.map_err(|e| format!("cannot enter the script's control group: {e}"))?;
        let started = start();
        // If that fails, this process ends with the script, and the worker reports an unknown
        // outcome.
        let _stays_inside = (&self.back).write_all(b"0");
        started
    }
}
