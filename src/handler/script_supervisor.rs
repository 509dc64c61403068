//! The keeper of a script: a small process of our own between the worker and the script.
//!
//! A worker that is killed (`kill -9`, out of memory) cannot clean up, and one that is stopped does not
//! know that its lease runs out. So it holds one end of a socket, the leash, and the keeper the other.
//! The kernel closes the leash with the worker; a renewal of the lease is a byte on it. No worker, no
//! byte for too long: the keeper ends all that the script started. It is their sub-reaper, so a
//! double fork, `setsid` or a cleared environment takes nobody away from it, and it is done when the
//! kernel says that it has no child left. PDEATHSIG would end the keeper before it had done that.
//!
//! `handler::supervisor_protocol` is what they say to each other, `handler::script_supervised` the other side.

use crate::handler::process_tree::{COOKIE, Hunt, Process, below, open_marker, pids, processes};
use crate::handler::script_account::AccountIds;
use crate::handler::script_exit::Fate;
use crate::handler::stopwatch::Stopwatch;
use crate::handler::supervisor_protocol::{Order, Said, Told};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::prctl::{set_child_subreaper, set_name, set_no_new_privs};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::sys::signal::{SigSet, Signal, killpg};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::{Pid, dup2_stderr, dup2_stdout, setsid};
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::fchown;
use std::os::unix::net::UnixStream;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

/// Processes left behind that are named, at most; what the leash takes without being read is bounded.
const NAMED: usize = 50;
/// Between two blows at a tree that does not go: the first, and the longest.
const BLOWS: (Duration, Duration) = (Duration::from_millis(2), Duration::from_millis(500));

/// Keeps a script to its end: the whole life of the process. `words` are the arguments behind `WORD`.
pub fn keep(words: impl Iterator<Item = OsString>) -> Result<(), String> {
    let order = Order::read(words).ok_or("it is started by Procession for each script")?;
    let leash = io::stdin().as_fd().try_clone_to_owned().map(UnixStream::from);
    let leash = leash.map_err(|e| format!("it has no leash: {e}"))?;
    match prepare(&order) {
        Ok(()) => say(&leash, &Said::Ready),
        Err(why) => {
            say(&leash, &Said::Unfit(why));
            return Ok(());
        }
    }
    let mut word = [0];
    if !matches!((&leash).read(&mut word), Ok(1)) {
        return Ok(());
    }
    match Keeper::start(&order, leash) {
        Ok(mut keeper) => keeper.watch(),
        Err((leash, why)) => say(&leash, &Said::Cannot(why)),
    }
    Ok(())
}

/// Becomes what a keeper must be. In a session of its own, so that a key pressed in the worker's
/// terminal does not reach it; under a name of its own, so that `pkill procession` does not either.
fn prepare(order: &Order) -> Result<(), String> {
    let fault = |what: &'static str| move |e: Errno| format!("cannot {what}: {e}");
    set_child_subreaper(true).map_err(fault("become the reaper of its descendants"))?;
    let _a_nicety = set_name(c"script-keeper");
    setsid().map_err(fault("begin a session"))?;
    setrlimit(Resource::RLIMIT_CORE, 0, 0).map_err(fault("forbid core files"))?;
    if order.account.is_some() {
        // No set-user-id program gives back what the account is without.
        set_no_new_privs().map_err(fault("forbid new privileges"))?;
    }
    if let Some(processes) = order.processes {
        let (_, most) = getrlimit(Resource::RLIMIT_NPROC).map_err(fault("read its limits"))?;
        let limit = (threads_of_user(order) + u64::from(processes)).min(most);
        setrlimit(Resource::RLIMIT_NPROC, limit, limit).map_err(fault("limit processes"))?;
    }
    Ok(())
}

/// Threads that this user has now: the system limits the user's, not the script's.
fn threads_of_user(order: &Order) -> u64 {
    let number = |status: &str, key: &str| -> Option<u64> {
        let rest = status.lines().find_map(|line| line.strip_prefix(key))?;
        rest.split_ascii_whitespace().next()?.parse().ok()
    };
    let read = |pid: String| fs::read_to_string(format!("/proc/{pid}/status")).ok();
    let own = || read("self".to_owned()).and_then(|status| number(&status, "Uid:"));
    let own = order.account.map(|account| account.user.into()).or_else(own);
    let all = pids().into_iter().filter_map(|pid| read(pid.to_string()));
    all.filter(|status| number(status, "Uid:") == own)
        .filter_map(|status| number(&status, "Threads:"))
        .sum()
}

/// A worker that is gone hears nothing, and then the leash says so.
fn say(mut leash: &UnixStream, said: &Said) {
    let _nobody_hears = leash.write_all(format!("{}\n", said.line()).as_bytes());
}

/// A script and its leash.
struct Keeper {
    leash: UnixStream,
    lease: Duration,
    /// Since the last renewal, or the start.
    since: Stopwatch,
    /// How long that may be.
    time: Duration,
    script: Child,
    /// Its process group.
    group: i32,
    /// It is known how the script ended.
    has_ended: bool,
    births_and_deaths: SignalFd,
}

/// Why the watch is over.
enum Over {
    LetGo,
    Lapsed,
    Spared,
}

impl Keeper {
    fn start(order: &Order, leash: UnixStream) -> Result<Self, (UnixStream, String)> {
        let mut command = Command::new(&order.interpreter);
        command.arg(&order.file).current_dir(&order.folder).stdin(Stdio::null()).process_group(0);
        if let Some(account) = order.account {
            // The library gives up the groups of root with it.
            command.uid(account.user).gid(account.group);
            give_pipes(account);
        }
        // For a try to come, should this process be killed with its worker.
        let marker = std::env::var(COOKIE).ok().and_then(|run| open_marker(&run));
        let script = match command.spawn() {
            Ok(script) => script,
            Err(e) => return Err((leash, format!("cannot start {:?}: {e}", order.interpreter))),
        };
        drop(marker);
        let group = i32::try_from(script.id()).unwrap_or(0);
        // Not before: the script would inherit the mask. Who ends meanwhile is found by the first look.
        let signals = SigSet::all();
        let made = signals.thread_set_mask().and_then(|()| {
            let deaths = SigSet::from_iter([Signal::SIGCHLD]);
            SignalFd::with_flags(&deaths, SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC)
        });
        let births_and_deaths = match made {
            Ok(made) => made,
            Err(e) => {
                let _gone_by_itself = killpg(Pid::from_raw(group), Signal::SIGKILL);
                return Err((leash, format!("cannot hear of its end: {e}")));
            }
        };
        // The pipes belong to the script: at its end they must be closed.
        if let Ok(nowhere) = File::options().write(true).open("/dev/null") {
            let _is_open = (dup2_stdout(&nowhere), dup2_stderr(&nowhere));
        }
        say(&leash, &Said::Started(group));
        // The worker's last renewal may be a third of a lease old already.
        let (lease, since, time) = (order.lease, Stopwatch::start(), order.lease * 2 / 3);
        Ok(Self { leash, lease, since, time, script, group, has_ended: false, births_and_deaths })
    }

    fn watch(&mut self) {
        match self.wait() {
            Over::Spared => self.tidy(),
            Over::LetGo => self.end_all(),
            Over::Lapsed => {
                if !self.has_ended {
                    say(&self.leash, &Said::Lapsed);
                }
                self.end_all();
            }
        }
    }

    fn wait(&mut self) -> Over {
        loop {
            self.reap();
            // Before the leash is read: a byte that came in time for a keeper that was not there to
            // read it (a frozen machine) renews nothing.
            let left = self.time.saturating_sub(self.since.elapsed());
            if left.is_zero() {
                return Over::Lapsed;
            }
            if !self.rest(left + Duration::from_millis(1)) {
                continue;
            }
            let mut words = [0; 64];
            match self.leash.read(&mut words) {
                Ok(0) => return Over::LetGo,
                Ok(_) if self.since.elapsed() >= self.time => return Over::Lapsed,
                Ok(count) if words[..count].contains(&(Told::Spare as u8)) => return Over::Spared,
                Ok(_) => (self.since, self.time) = (Stopwatch::start(), self.lease),
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return Over::LetGo,
            }
        }
    }

    /// Returns when the leash has something to read, somebody has ended or the time is over; whether
    /// it is the leash.
    fn rest(&self, time: Duration) -> bool {
        let signals = self.births_and_deaths.as_fd();
        let mut looks = [
            PollFd::new(self.leash.as_fd(), PollFlags::POLLIN),
            PollFd::new(signals, PollFlags::POLLIN),
        ];
        let time = PollTimeout::try_from(time).unwrap_or(PollTimeout::MAX);
        let _or_time_is_over = poll(&mut looks, time);
        while let Ok(Some(_)) = self.births_and_deaths.read_signal() {}
        looks[0].any().unwrap_or(true)
    }

    /// Takes the dead off the table; whether anybody is left. Says how the script ended.
    fn reap(&mut self) -> bool {
        loop {
            // First and by the library, which knows every signal by number.
            if !self.has_ended
                && let Ok(Some(status)) = self.script.try_wait()
            {
                self.ended(status);
            }
            match waitpid(None, Some(WaitPidFlag::WNOHANG)) {
                Ok(WaitStatus::StillAlive) => return true,
                Ok(WaitStatus::Exited(pid, code)) if pid.as_raw() == self.group => {
                    self.ended(ExitStatus::from_raw(code << 8));
                }
                Ok(WaitStatus::Signaled(pid, signal, _)) if pid.as_raw() == self.group => {
                    self.ended(ExitStatus::from_raw(signal as i32));
                }
                Err(Errno::ECHILD) => return false,
                // EINVAL: one that ended by a real-time signal.
                Ok(_) | Err(_) => {}
            }
        }
    }

    fn ended(&mut self, status: ExitStatus) {
        if !std::mem::replace(&mut self.has_ended, true) {
            say(&self.leash, &Said::Ended(status));
        }
    }

    fn tell_left<'a>(&self, left: impl Iterator<Item = &'a Process>, fate: Fate) {
        for process in left.filter(|p| p.pid != self.group).take(NAMED) {
            say(&self.leash, &Said::Left(process.pid, fate, process.name.clone()));
        }
    }

    /// Ends everything, however long it takes: done when the kernel knows no child of ours.
    fn end_all(&mut self) {
        if !self.reap() {
            return;
        }
        let (mut hunt, own) = (Hunt::default(), own());
        let all_of_it = |all: &[Process]| below(all, &BTreeSet::from([own]), 0);
        hunt.freeze(&all_of_it);
        let (mut pause, longest) = BLOWS;
        loop {
            hunt.strike(&all_of_it);
            if !self.reap() {
                break;
            }
            self.rest_from_blows(pause);
            pause = (pause * 2).min(longest);
        }
        self.tell_left(hunt.found(), Fate::Killed);
    }

    /// Ends what is in the script's group still, and names what left it.
    fn tidy(&mut self) {
        if !self.reap() {
            return;
        }
        let (mut hunt, own, group) = (Hunt::default(), own(), self.group);
        let tree = |all: &[Process]| below(all, &BTreeSet::from([own]), 0);
        let grouped = |all: &[Process]| -> BTreeSet<i32> {
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
            self.reap();
            pause = (pause * 2).min(longest);
        }
        self.tell_left(hunt.found(), Fate::Killed);
        let all = processes();
        let tree = tree(&all);
        let away = all.iter().filter(|p| p.is_living && tree.contains(&p.pid));
        self.tell_left(away, Fate::LeftAlone);
    }

    /// Until somebody has ended, at most so long. The leash says nothing new any more.
    fn rest_from_blows(&self, time: Duration) {
        let mut look = [PollFd::new(self.births_and_deaths.as_fd(), PollFlags::POLLIN)];
        let time = PollTimeout::try_from(time).unwrap_or(PollTimeout::MAX);
        let _or_time_is_over = poll(&mut look, time);
        while let Ok(Some(_)) = self.births_and_deaths.read_signal() {}
    }
}

/// Lets the account open its own output by name: `/dev/stdout` asks for the rights of the pipe.
fn give_pipes(account: AccountIds) {
    let (user, group) = (Some(account.user), Some(account.group));
    let _only_the_name_fails =
        (fchown(io::stdout().as_fd(), user, group), fchown(io::stderr().as_fd(), user, group));
}

fn own() -> i32 {
    i32::try_from(std::process::id()).unwrap_or(0)
}
