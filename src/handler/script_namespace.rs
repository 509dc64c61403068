//! Namespaces of a script's own: it sees only its own processes, and the kernel ends all of them
//! with the first.

use crate::handler::script_account::AccountIds;
use nix::sched::{CloneFlags, unshare};
use std::fs;

/// Root within a user namespace, with all privileges in it.
const ROOT: AccountIds = AccountIds { user: 0, group: 0 };

/// Puts the children of this process into a PID namespace of their own. `user` is our user, unless
/// that is root: then a user namespace is created first, in which we are root.
pub(crate) fn enter(user: Option<AccountIds>) -> Result<(), String> {
    let flags = CloneFlags::CLONE_NEWPID;
    let Some(user) = user else {
        return unshare(flags).map_err(|e| format!("cannot make a PID namespace: {e}"));
    };
    unshare(flags | CloneFlags::CLONE_NEWUSER).map_err(|e| {
        format!("cannot make a namespace of users and processes without being root: {e}")
    })?;
    map_ids(ROOT, user)
}

/// Changes from root back to `user`, in one more user namespace: root of the first one could undo
/// its mounts.
pub(crate) fn leave_root(user: AccountIds) -> Result<(), String> {
    unshare(CloneFlags::CLONE_NEWUSER)
        .map_err(|e| format!("cannot make a second namespace of users: {e}"))?;
    map_ids(user, ROOT)
}

/// Maps `outside` into the namespace that was entered last.
fn map_ids(inside: AccountIds, outside: AccountIds) -> Result<(), String> {
    let write = |name: &str, text: String| {
        let path = format!("/proc/self/{name}");
        fs::write(&path, text).map_err(|e| format!("cannot write {path}: {e}"))
    };
    // The kernel requires it before a process without privileges outside may map a group.
    write("setgroups", "deny".to_owned())?;
    write("uid_map", format!("{} {} 1", inside.user, outside.user))?;
    write("gid_map", format!("{} {} 1", inside.group, outside.group))
}

/// Gives the next process a process id that no other script has: scripts use names like
/// `/tmp/report.$$`, and in a namespace of its own each would be number 2. Optional: the kernel may
/// refuse it.
pub(crate) fn number_from(own: u32) {
    let _as_the_kernel_likes = fs::write("/proc/sys/kernel/ns_last_pid", own.to_string());
}
