//! Starts a script from the process that is to be its parent: its supervisor, or the init process
//! of its namespace.

use crate::domain::job::script_limits::ProcessLimits;
use crate::handler::script_account::AccountIds;
use crate::handler::script_cgroup::CgroupDoor;
use crate::handler::script_confinement::FileAccess;
use crate::handler::supervisor_protocol::SupervisorOrder;
use nix::errno::Errno;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::{dup2_stderr, dup2_stdout};
use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::fchown;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus, Stdio};

/// A script that this process started.
pub(crate) struct LaunchedScript {
    child: Child,
    /// Its process id, which is also its process group.
    pub(crate) pid: i32,
    has_ended: bool,
}

/// The state of this process's children after reaping.
pub(crate) struct Reaped {
    /// How the script ended, if that was learnt just now.
    pub(crate) ended: Option<ExitStatus>,
    /// Whether a child is left.
    pub(crate) is_anybody_left: bool,
}

impl LaunchedScript {
    /// `door` leads to its control group, if it has one.
    pub(crate) fn start(
        order: &SupervisorOrder,
        door: Option<&CgroupDoor>,
    ) -> Result<Self, String> {
        refuse_folder(order)?;
        let mut command = Command::new(&order.interpreter);
        command.arg(&order.file).current_dir(&order.folder).stdin(Stdio::null()).process_group(0);
        if let Some(account) = order.account {
            // The library drops the supplementary groups of root with this.
            command.uid(account.user).gid(account.group);
            give_pipes(account);
        }
        limit_processes(order.process_limits).map_err(|e| format!("cannot limit it: {e}"))?;
        let mut spawn = || command.spawn().map_err(|e| describe(order, &e));
        let child = match door {
            Some(door) => door.start_inside(spawn)?,
            None => spawn()?,
        };
        let pid = i32::try_from(child.id()).unwrap_or(0);
        Ok(Self { child, pid, has_ended: false })
    }

    /// Reaps children.
    pub(crate) fn reap_children(&mut self) -> Reaped {
        let mut ended = None;
        loop {
            // First and by the library, which knows every signal number.
            if !self.has_ended
                && let Ok(Some(status)) = self.child.try_wait()
            {
                self.note_end(status, &mut ended);
            }
            match waitpid(None, Some(WaitPidFlag::WNOHANG)) {
                Ok(WaitStatus::StillAlive) => return Reaped { ended, is_anybody_left: true },
                Ok(WaitStatus::Exited(pid, code)) if pid.as_raw() == self.pid => {
                    self.note_end(ExitStatus::from_raw(code << 8), &mut ended);
                }
                Ok(WaitStatus::Signaled(pid, signal, _)) if pid.as_raw() == self.pid => {
                    self.note_end(ExitStatus::from_raw(signal as i32), &mut ended);
                }
                Err(Errno::ECHILD) => return Reaped { ended, is_anybody_left: false },
                // EINVAL: a child that ended by a real-time signal.
                Ok(_) | Err(_) => {}
            }
        }
    }

    fn note_end(&mut self, status: ExitStatus, ended: &mut Option<ExitStatus>) {
        if !std::mem::replace(&mut self.has_ended, true) {
            *ended = Some(status);
        }
    }
}

/// Applies these limits to this process and everything it starts; the limit on processes was
/// computed before this process was isolated. Memory means writable private memory (RLIMIT_DATA):
/// reserved addresses, of which some runtimes take gigabytes, do not count.
fn limit_processes(limits: ProcessLimits) -> Result<(), Errno> {
    let lower = |resource, soft: u64, hard: u64| {
        let (_, most) = getrlimit(resource)?;
        setrlimit(resource, soft.min(most), hard.min(most))
    };
    if let Some(mib) = limits.memory_mib {
        let bytes = u64::from(mib) * 1024 * 1024;
        lower(Resource::RLIMIT_DATA, bytes, bytes)?;
    }
    if let Some(seconds) = limits.cpu_sec {
        // SIGXCPU, which tells the reason; a process that ignores it is killed.
        lower(Resource::RLIMIT_CPU, seconds, seconds + 2)?;
    }
    Ok(())
}

/// With isolated files a definition must not choose the working directory. The kernel would allow
/// it, and the script would find that it may read nothing.
fn refuse_folder(order: &SupervisorOrder) -> Result<(), String> {
    let files = files_of(order).filter(|files| !files.covers(&order.folder));
    files.map_or(Ok(()), |_| {
        Err(format!(
            "cannot work in {}: scripts' files are isolated, and that folder is not in [script] read or write of \
             procession.toml",
            order.folder.display()
        ))
    })
}

fn files_of(order: &SupervisorOrder) -> Option<&FileAccess> {
    order.confinement.as_ref()?.files.as_ref()
}

fn describe(order: &SupervisorOrder, error: &io::Error) -> String {
    let interpreter = &order.interpreter;
    match files_of(order) {
        Some(files) if !files.covers(interpreter) => format!(
            "cannot start {interpreter:?}: {error}; its files are isolated, and the interpreter is not below a folder \
             of [script] read of procession.toml"
        ),
        _ => format!("cannot start {interpreter:?}: {error}"),
    }
}

/// Lets the account open its own output by name: `/dev/stdout` checks the permissions of the pipe.
fn give_pipes(account: AccountIds) {
    let (user, group) = (Some(account.user), Some(account.group));
    let _only_the_name_fails =
        (fchown(io::stdout().as_fd(), user, group), fchown(io::stderr().as_fd(), user, group));
}

/// Blocks and receives SIGCHLD from now on. Not before the script is started, which would inherit
/// the mask; a child that ends meanwhile is found by the first check.
pub(crate) fn hear_of_children() -> Result<SignalFd, String> {
    let made = SigSet::all().thread_set_mask().and_then(|()| {
        let deaths = SigSet::from_iter([Signal::SIGCHLD]);
        SignalFd::with_flags(&deaths, SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC)
    });
    made.map_err(|e| format!("cannot hear of its end: {e}"))
}

/// Closes the pipes, which belong to the script: they must be closed at its end.
pub(crate) fn close_output() {
    if let Ok(nowhere) = File::options().write(true).open("/dev/null") {
        let _is_open = (dup2_stdout(&nowhere), dup2_stderr(&nowhere));
    }
}
