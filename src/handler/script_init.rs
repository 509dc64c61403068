//! The init process of an isolated script: the first process of a PID namespace, and the parent of
//! the script.
//!
//! The kernel ends every process of the namespace with it, however they tried to hide. It ends with
//! its supervisor (PDEATHSIG), so `kill -9` of the worker and of the supervisor at once leaves
//! nothing behind; only when a script succeeded and left a process on purpose does it stay as that
//! process's parent.

use crate::handler::script_cgroup::CgroupDoor;
use crate::handler::script_confinement::Confinement;
use crate::handler::script_landlock;
use crate::handler::script_launch::{LaunchedScript, close_output, hear_of_children};
use crate::handler::script_mounts;
use crate::handler::script_namespace;
use crate::handler::supervisor_protocol::{
    SupervisorCommand, SupervisorOrder, SupervisorReport, send_report,
};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::prctl::{set_name, set_no_new_privs, set_pdeathsig};
use nix::sys::signal::Signal;
use nix::sys::signalfd::SignalFd;
use nix::unistd::setsid;
use std::ffi::OsString;
use std::fs;
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;

/// The main function of the process. `words` are the arguments after `INIT_WORD`.
pub fn run_init(words: impl Iterator<Item = OsString>) -> Result<(), String> {
    let order =
        SupervisorOrder::parse_order(words).ok_or("it is started by Procession for each script")?;
    let confinement = order.confinement.as_ref().ok_or("it is started to isolate a script")?;
    let leash = io::stdin().as_fd().try_clone_to_owned().map(UnixStream::from);
    let leash = leash.map_err(|e| format!("it has no supervisor: {e}"))?;
    // Before its directory becomes unreachable.
    let door = order.cgroup.as_ref().map(CgroupDoor::open_cgroup).transpose();
    let door = match door.and_then(|door| prepare(&order, confinement).map(|()| door)) {
        Ok(door) => door,
        Err(why) => {
            send_report(&leash, &SupervisorReport::Cannot(why));
            return Ok(());
        }
    };
    send_report(&leash, &SupervisorReport::Ready);
    if !is_told_to_go_on(&leash) {
        return Ok(());
    }
    let started = LaunchedScript::start(&order, door.as_ref())
        .and_then(|script| Ok(ScriptInit { script, children: hear_of_children()? }));
    match started {
        Err(why) => send_report(&leash, &SupervisorReport::Cannot(why)),
        Ok(mut init) => {
            close_output();
            send_report(&leash, &SupervisorReport::Started(init.script.pid));
            // Waits until the supervisor has found the script in its own process table, for which
            // the script must be in it.
            if is_told_to_go_on(&leash) {
                init.watch(leash);
            }
        }
    }
    Ok(())
}

fn prepare(order: &SupervisorOrder, confinement: &Confinement) -> Result<(), String> {
    let fault = |what: &'static str| move |e: nix::errno::Errno| format!("cannot {what}: {e}");
    let end_with_supervisor = || set_pdeathsig(Signal::SIGKILL);
    end_with_supervisor().map_err(fault("end with its supervisor"))?;
    let _a_nicety = set_name(c"script-init");
    setsid().map_err(fault("begin a session"))?;
    // Still the machine's /proc, with our process id there.
    let own = fs::read_link("/proc/self").ok();
    script_mounts::arrange(confinement, order.account)?;
    if let Some(number) = own.and_then(|own| own.to_str()?.parse().ok()) {
        script_namespace::number_from(number);
    }
    if let Some(user) = confinement.user {
        script_namespace::leave_root(user)?;
    }
    if confinement.user.is_some() || order.account.is_some() {
        set_no_new_privs().map_err(fault("forbid new privileges"))?;
    }
    if let Some(files) = &confinement.files {
        script_landlock::restrict(files)?;
    }
    // Again: the kernel resets it when a process's privileges change.
    end_with_supervisor().map_err(fault("end with its supervisor"))
}

/// `false` when the supervisor is gone.
fn is_told_to_go_on(mut leash: &UnixStream) -> bool {
    let mut word = [0];
    matches!(leash.read(&mut word), Ok(1))
}

struct ScriptInit {
    script: LaunchedScript,
    children: SignalFd,
}

impl ScriptInit {
    /// Waits until no child is left, or the supervisor is gone: the namespace ends with this
    /// process.
    fn watch(&mut self, leash: UnixStream) {
        let mut leash = Some(leash);
        loop {
            let reaped = self.script.reap_children();
            if let (Some(status), Some(leash)) = (reaped.ended, &leash) {
                send_report(leash, &SupervisorReport::Ended(status));
            }
            if !reaped.is_anybody_left {
                return;
            }
            let Some(supervisor) = &leash else {
                self.wait_for_event(None);
                continue;
            };
            if !self.wait_for_event(Some(supervisor)) {
                continue;
            }
            let mut words = [0; 64];
            match (&mut &*supervisor).read(&mut words) {
                Ok(count) if words[..count].contains(&(SupervisorCommand::Spare as u8)) => {
                    if set_pdeathsig(None).is_err() {
                        return;
                    }
                    send_report(supervisor, &SupervisorReport::Ready);
                    leash = None;
                }
                Ok(0) | Err(_) => return,
                Ok(_) => {}
            }
        }
    }

    /// Returns when a child has ended or the supervisor sends something; `true` for the supervisor.
    fn wait_for_event(&self, leash: Option<&UnixStream>) -> bool {
        let mut looks = vec![PollFd::new(self.children.as_fd(), PollFlags::POLLIN)];
        looks.extend(leash.map(|leash| PollFd::new(leash.as_fd(), PollFlags::POLLIN)));
        let _interrupted = poll(&mut looks, PollTimeout::NONE);
        while let Ok(Some(_)) = self.children.read_signal() {}
        looks.get(1).is_some_and(|leash| leash.any().unwrap_or(true))
    }
}
