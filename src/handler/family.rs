//! Finds the processes of a script and ends them, those that left its group included.
//!
//! A group alone misses what called `setsid` or forked twice; those still carry the cookie in the
//! environment they were started with. What cleared its environment *and* left the group is not
//! found: only a cgroup would hold that, which needs rights we do not ask for.

use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::Pid;
use std::fs;

/// The environment variable that marks the processes of one try.
pub(crate) const COOKIE: &str = "PROCESSION_RUN";

/// What binds the processes of one script together.
#[derive(Clone, Debug)]
pub(crate) struct Family {
    group: i32,
    cookie: String,
}

/// One living process of a family.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Member {
    /// Its number.
    pub(crate) pid: i32,
    /// Its name.
    pub(crate) name: String,
    /// Whether it is in the script's own group.
    pub(crate) is_in_group: bool,
}

impl Family {
    /// The family of the group leader `pid`.
    pub(crate) fn new(pid: i32, run: &str) -> Self {
        Self { group: pid, cookie: format!("{COOKIE}={run}") }
    }

    /// Sends a signal to the script's group; nobody there is no fault.
    pub(crate) fn signal(&self, signal: Signal) {
        let _nobody_is_left = killpg(Pid::from_raw(self.group), signal);
    }

    /// All that live now; zombies do not.
    pub(crate) fn members(&self) -> Vec<Member> {
        pids().into_iter().filter_map(|pid| self.member(pid)).collect()
    }

    fn member(&self, pid: i32) -> Option<Member> {
        let (name, group) = living(pid)?;
        let is_in_group = group == self.group;
        if !is_in_group && !has_variable(pid, |entry| entry == self.cookie.as_bytes()) {
            return None;
        }
        Some(Member { pid, name, is_in_group })
    }

    /// KILLs the group and whoever carries the cookie; who was found.
    pub(crate) fn end_all(&self) -> Vec<Member> {
        self.signal(Signal::SIGKILL);
        let members = self.members();
        for member in &members {
            let _gone_by_itself = kill(Pid::from_raw(member.pid), Signal::SIGKILL);
        }
        members
    }
}

/// A living process of a try of `run` before `attempt`.
pub(crate) fn earlier(run: &str, attempt: u32) -> Option<Member> {
    let start = format!("{COOKIE}={run}:");
    let is_earlier = |entry: &[u8]| {
        let number = entry.strip_prefix(start.as_bytes()).and_then(|n| str::from_utf8(n).ok());
        number.and_then(|n| n.parse::<u32>().ok()).is_some_and(|n| n < attempt)
    };
    pids().into_iter().find_map(|pid| {
        let is_one = has_variable(pid, is_earlier);
        let (name, _) = is_one.then(|| living(pid))??;
        Some(Member { pid, name, is_in_group: false })
    })
}

/// The numbers of all processes.
pub(crate) fn pids() -> Vec<i32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|e| e.file_name().to_str()?.parse().ok()).collect()
}

/// Name and group of a process; `None` when there is none or it is a zombie.
fn living(pid: i32) -> Option<(String, i32)> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // `pid (name) state ppid group …`; the name may hold anything, also `)`.
    let (head, tail) = stat.rsplit_once(')')?;
    let mut fields = tail.split_ascii_whitespace();
    let (state, _parent, group) = (fields.next()?, fields.next()?, fields.next()?);
    if matches!(state, "Z" | "X") {
        return None;
    }
    let name = head.split_once('(').map_or("", |(_, name)| name).to_owned();
    Some((name, group.parse().ok()?))
}

/// When a process started, in the kernel's ticks since boot: with its number, its name for good.
pub(crate) fn started(pid: i32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The 22nd field; the state, which comes behind the name, is the third.
    stat.rsplit_once(')')?.1.split_ascii_whitespace().nth(19)?.parse().ok()
}

/// Whether the environment a process was started with has such an entry.
fn has_variable(pid: i32, is_it: impl Fn(&[u8]) -> bool) -> bool {
    let environ = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    environ.split(|b| *b == 0).any(is_it)
}
