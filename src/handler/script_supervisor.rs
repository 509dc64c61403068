//! The supervisor of a script: a small process of this program between the worker and the script.
//!
//! A worker that is killed (`kill -9`, out of memory) cannot clean up, and a stopped one does not
//! know that its lease expires. So the worker holds one end of a control socket, and the supervisor
//! the other. The kernel closes the socket with the worker; a renewal of the lease is a byte on it.
//! Without a worker, or without a byte for too long, the supervisor ends everything that the script
//! started. It is their sub-reaper, so a double fork, `setsid` or a cleared environment lets no
//! process escape, and it is done when the kernel reports that it has no child left. PDEATHSIG
//! would end the supervisor before it had done that.
//!
//! `handler::supervisor_protocol` is the protocol, `handler::script_supervised` the worker's side.

use crate::handler::init_process::{self, InitProcess, NoScript};
use crate::handler::process_tree::{
    COOKIE, Hunt, OsProcess, below, list_pids, open_marker, processes,
};
use crate::handler::script_cgroup::{CgroupDoor, LimitEvents, ScriptCgroup};
use crate::handler::script_exit::LeftProcessOutcome;
use crate::handler::script_launch::{LaunchedScript, Reaped, close_output, hear_of_children};
use crate::handler::stopwatch::Stopwatch;
use crate::handler::supervisor_protocol::{
    SupervisorCommand, SupervisorOrder, SupervisorReport, send_report,
};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::prctl::{set_child_subreaper, set_name, set_no_new_privs};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::sys::signal::{Signal, killpg};
use nix::sys::signalfd::SignalFd;
use nix::unistd::{Pid, setsid};
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;
use std::time::Duration;

/// Maximum number of remaining processes that are named; the socket buffer is bounded.
const NAMED: usize = 50;
/// Pauses between two kills of a tree that does not end: the first, and the longest.
const BLOWS: (Duration, Duration) = (Duration::from_millis(2), Duration::from_millis(500));

/// The main function of the process: supervises a script to its end. `words` are the arguments
/// after `WORD`.
pub fn run_supervisor(words: impl Iterator<Item = OsString>) -> Result<(), String> {
    let order =
        SupervisorOrder::parse_order(words).ok_or("it is started by Procession for each script")?;
    let leash = io::stdin().as_fd().try_clone_to_owned().map(UnixStream::from);
    let leash = leash.map_err(|e| format!("it has no leash: {e}"))?;
    if let Err(why) = prepare(&order) {
        send_report(&leash, &SupervisorReport::Unfit(why));
        return Ok(());
    }
    let cgroup = match order.cgroup.as_ref().map(ScriptCgroup::create).transpose() {
        Ok(cgroup) => cgroup,
        Err(why) => {
            send_report(&leash, &SupervisorReport::Cannot(why));
            return Ok(());
        }
    };
    let init = order.confinement.as_ref().map(|shut| InitProcess::start(&order, shut)).transpose();
    let init = match init {
        Ok(init) => init,
        Err(why) => {
            send_report(&leash, &SupervisorReport::Cannot(format!("cannot isolate it: {why}")));
            return Ok(());
        }
    };
    send_report(&leash, &SupervisorReport::Ready);
    let mut word = [0];
    if !matches!((&leash).read(&mut word), Ok(1)) {
        return Ok(());
    }
    let script = match SupervisedChild::start(&order, init) {
        Ok(script) => script,
        Err(NoScript::Cannot(why)) => {
            send_report(&leash, &SupervisorReport::Cannot(why));
            return Ok(());
        }
        Err(NoScript::Lost(why)) => return Err(why),
    };
    Keeper::new(&order, leash, script, cgroup)?.watch()
}

/// Tests whether this machine can isolate scripts as ordered.
pub fn probe(words: impl Iterator<Item = OsString>) -> Result<(), String> {
    let order = SupervisorOrder::parse_order(words).ok_or("it is started by Procession itself")?;
    init_process::probe(&order)
}

/// Prepares the process: a session of its own, so that a key pressed in the worker's terminal does
/// not reach it; and a name of its own, so that `pkill procession` does not either.
fn prepare(order: &SupervisorOrder) -> Result<(), String> {
    let fault = |what: &'static str| move |e: Errno| format!("cannot {what}: {e}");
    set_child_subreaper(true).map_err(fault("become the reaper of its descendants"))?;
    let _a_nicety = set_name(c"script-keeper");
    setsid().map_err(fault("begin a session"))?;
    setrlimit(Resource::RLIMIT_CORE, 0, 0).map_err(fault("forbid core files"))?;
    if order.account.is_some() {
        // No set-user-id program may restore privileges that the account lacks.
        set_no_new_privs().map_err(fault("forbid new privileges"))?;
    }
    if let Some(processes) = order.process_limits.processes {
        let (_, most) = getrlimit(Resource::RLIMIT_NPROC).map_err(fault("read its limits"))?;
        let limit = (threads_of_user(order) + u64::from(processes)).min(most);
        setrlimit(Resource::RLIMIT_NPROC, limit, limit).map_err(fault("limit processes"))?;
    }
    Ok(())
}

/// Number of threads this user has now: the system limits the user, not the script.
fn threads_of_user(order: &SupervisorOrder) -> u64 {
    let number = |status: &str, key: &str| -> Option<u64> {
        let rest = status.lines().find_map(|line| line.strip_prefix(key))?;
        rest.split_ascii_whitespace().next()?.parse().ok()
    };
    let read = |pid: String| fs::read_to_string(format!("/proc/{pid}/status")).ok();
    let own = || read("self".to_owned()).and_then(|status| number(&status, "Uid:"));
    let own = order.account.map(|account| account.user.into()).or_else(own);
    let all = list_pids().into_iter().filter_map(|pid| read(pid.to_string()));
    all.filter(|status| number(status, "Uid:") == own)
        .filter_map(|status| number(&status, "Threads:"))
        .sum()
}

/// A script, with the process between it and the supervisor.
enum SupervisedChild {
    Direct(LaunchedScript),
    /// In a namespace, with the script's process id outside of it.
    Isolated(InitProcess, i32),
}

impl SupervisedChild {
    fn start(order: &SupervisorOrder, init: Option<InitProcess>) -> Result<Self, NoScript> {
        if let Some(mut init) = init {
            let pid = init.start_script()?;
            return Ok(Self::Isolated(init, pid));
        }
        // For the search of a later attempt, should this process be killed with its worker.
        let marker = std::env::var(COOKIE).ok().and_then(|run| open_marker(&run));
        let door = order.cgroup.as_ref().map(CgroupDoor::open_cgroup).transpose();
        let script = door.and_then(|door| LaunchedScript::start(order, door.as_ref()));
        let script = script.map_err(NoScript::Cannot);
        drop(marker);
        script.map(Self::Direct)
    }

    /// The process id and group of the script.
    fn group(&self) -> i32 {
        match self {
            Self::Direct(script) => script.pid,
            Self::Isolated(_, pid) => *pid,
        }
    }

    fn reap_children(&mut self) -> Reaped {
        match self {
            Self::Direct(script) => script.reap_children(),
            Self::Isolated(init, _) => init.reap_children(),
        }
    }

    /// The process id of the init process, or one that no process has.
    fn init_pid(&self) -> i32 {
        match self {
            Self::Direct(_) => 0,
            Self::Isolated(init, _) => init.process_id(),
        }
    }
}

/// A script and its control socket.
struct Keeper {
    leash: UnixStream,
    lease: Duration,
    /// Time since the last renewal, or the start.
    since: Stopwatch,
    /// Maximum time between renewals.
    time: Duration,
    script: SupervisedChild,
    cgroup: Option<ScriptCgroup>,
    /// The script's process group.
    group: i32,
    /// Whether the result of the script is known.
    has_ended: bool,
    births_and_deaths: SignalFd,
}

/// Why supervision ends.
enum Over {
    LetGo,
    Lapsed,
    Spared,
    /// The namespace was ended from outside, and the result of the script is unknown.
    InitLost,
}

impl Keeper {
    fn new(
        order: &SupervisorOrder,
        leash: UnixStream,
        script: SupervisedChild,
        cgroup: Option<ScriptCgroup>,
    ) -> Result<Self, String> {
        let group = script.group();
        let births_and_deaths = match hear_of_children() {
            Ok(made) => made,
            Err(why) => {
                let _gone_by_itself = killpg(Pid::from_raw(group), Signal::SIGKILL);
                send_report(&leash, &SupervisorReport::Cannot(why.clone()));
                return Err(why);
            }
        };
        close_output();
        send_report(&leash, &SupervisorReport::Started(group));
        // The worker's last renewal may be a third of a lease old already.
        let (lease, since, time) = (order.lease, Stopwatch::start(), order.lease * 2 / 3);
        let has_ended = false;
        Ok(Self { leash, lease, since, time, script, cgroup, group, has_ended, births_and_deaths })
    }

    fn watch(&mut self) -> Result<(), String> {
        match self.wait_for_end() {
            Over::Spared => self.end_left_overs(),
            Over::LetGo => self.end_all(),
            Over::Lapsed => {
                if !self.has_ended {
                    send_report(&self.leash, &SupervisorReport::Lapsed);
                }
                self.end_all();
            }
            Over::InitLost => return Err("the init process of the script is gone".to_owned()),
        }
        Ok(())
    }

    fn wait_for_end(&mut self) -> Over {
        loop {
            if !self.reap_children() && !self.has_ended {
                return Over::InitLost;
            }
            // Before the socket is read: a byte that arrived in time for a supervisor that was not
            // there to read it (a frozen machine) renews nothing.
            let left = self.time.saturating_sub(self.since.elapsed());
            if left.is_zero() {
                return Over::Lapsed;
            }
            if !self.wait_for_event(left + Duration::from_millis(1)) {
                continue;
            }
            let mut words = [0; 64];
            match self.leash.read(&mut words) {
                Ok(0) => return Over::LetGo,
                Ok(_) if self.since.elapsed() >= self.time => return Over::Lapsed,
                Ok(count) if words[..count].contains(&(SupervisorCommand::Spare as u8)) => {
                    return Over::Spared;
                }
                Ok(_) => (self.since, self.time) = (Stopwatch::start(), self.lease),
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return Over::LetGo,
            }
        }
    }

    /// Returns when the socket is readable, a child has ended or the time is over; `true` for the
    /// socket.
    fn wait_for_event(&self, time: Duration) -> bool {
        let mut looks = vec![
            PollFd::new(self.leash.as_fd(), PollFlags::POLLIN),
            PollFd::new(self.births_and_deaths.as_fd(), PollFlags::POLLIN),
        ];
        // After the end of the script the init process sends nothing more, and its closed socket
        // would always be ready.
        if let (SupervisedChild::Isolated(init, _), false) = (&self.script, self.has_ended) {
            looks.push(PollFd::new(init.as_fd(), PollFlags::POLLIN));
        }
        let time = PollTimeout::try_from(time).unwrap_or(PollTimeout::MAX);
        let _or_time_is_over = poll(&mut looks, time);
        while let Ok(Some(_)) = self.births_and_deaths.read_signal() {}
        looks[0].any().unwrap_or(true)
    }

    /// Reaps children; returns whether any is left. Reports how the script ended.
    fn reap_children(&mut self) -> bool {
        let reaped = self.script.reap_children();
        if let Some(status) = reaped.ended {
            self.has_ended = true;
            self.tell_limits();
            send_report(&self.leash, &SupervisorReport::Ended(status));
        }
        reaped.is_anybody_left
    }

    /// Reports which limits the kernel enforced.
    fn tell_limits(&self) {
        let events = self.cgroup.as_ref().map(ScriptCgroup::read_events).unwrap_or_default();
        let LimitEvents { memory_kills, refused_processes } = events;
        if memory_kills > 0 {
            send_report(&self.leash, &SupervisorReport::OutOfMemory);
        }
        if refused_processes > 0 {
            send_report(&self.leash, &SupervisorReport::OutOfProcesses(refused_processes));
        }
    }

    fn tell_left<'a>(&self, left: impl Iterator<Item = &'a OsProcess>, fate: LeftProcessOutcome) {
        let ours = [self.group, self.script.init_pid()];
        for process in left.filter(|p| !ours.contains(&p.pid)).take(NAMED) {
            send_report(
                &self.leash,
                &SupervisorReport::Left(process.pid, fate, process.name.clone()),
            );
        }
    }

    /// Ends everything, however long it takes: done when the kernel knows no child of this process.
    fn end_all(&mut self) {
        if !self.reap_children() {
            return;
        }
        let (mut hunt, own) = (Hunt::default(), own_pid());
        let all_of_it = |all: &[OsProcess]| below(all, &BTreeSet::from([own]), 0);
        // All at once, whatever they are doing: a control group needs no search.
        if let Some(cgroup) = &self.cgroup {
            cgroup.kill_all();
        }
        hunt.freeze(&all_of_it);
        let (mut pause, longest) = BLOWS;
        loop {
            if let Some(cgroup) = &self.cgroup {
                cgroup.kill_all();
            }
            if let SupervisedChild::Isolated(init, _) = &mut self.script {
                init.kill_namespace();
            }
            hunt.strike(&all_of_it);
            if !self.reap_children() {
                break;
            }
            self.rest_from_blows(pause);
            pause = (pause * 2).min(longest);
        }
        // With its namespace: no process was left to report how it ended, and this is how.
        if !std::mem::replace(&mut self.has_ended, true) {
            send_report(
                &self.leash,
                &SupervisorReport::Ended(ExitStatus::from_raw(Signal::SIGKILL as i32)),
            );
        }
        self.tell_left(hunt.found(), LeftProcessOutcome::Killed);
    }

    /// Kills what is still in the script's process group, and names what left it.
    fn end_left_overs(&mut self) {
        if !self.reap_children() {
            return;
        }
        let (mut hunt, own, group) = (Hunt::default(), own_pid(), self.group);
        let tree = |all: &[OsProcess]| below(all, &BTreeSet::from([own]), 0);
        let grouped = |all: &[OsProcess]| -> BTreeSet<i32> {
            let tree = tree(all);
            all.iter()
                .filter(|p| p.group == group && tree.contains(&p.pid))
                .map(|p| p.pid)
                .collect()
        };
        hunt.freeze(&grouped);
        let (mut pause, longest) = BLOWS;
        while hunt.strike(&grouped) {
            self.rest_from_blows(pause);
            self.reap_children();
            pause = (pause * 2).min(longest);
        }
        self.tell_left(hunt.found(), LeftProcessOutcome::Killed);
        let all = processes();
        let tree = tree(&all);
        let away = all.iter().filter(|p| p.is_living && tree.contains(&p.pid));
        self.tell_left(away, LeftProcessOutcome::LeftAlone);
        if let SupervisedChild::Isolated(init, _) = &mut self.script {
            init.spare();
        }
    }

    /// Waits until a child has ended, for a limited time. The socket has no news any more.
    fn rest_from_blows(&self, time: Duration) {
        let mut look = [PollFd::new(self.births_and_deaths.as_fd(), PollFlags::POLLIN)];
        let time = PollTimeout::try_from(time).unwrap_or(PollTimeout::MAX);
        let _or_time_is_over = poll(&mut look, time);
        while let Ok(Some(_)) = self.births_and_deaths.read_signal() {}
    }
}

fn own_pid() -> i32 {
    i32::try_from(std::process::id()).unwrap_or(0)
}
