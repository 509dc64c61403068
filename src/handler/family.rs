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
        let Ok(entries) = fs::read_dir("/proc") else {
            return Vec::new();
        };
        let pids = entries.flatten().filter_map(|e| e.file_name().to_str()?.parse().ok());
        pids.filter_map(|pid| self.member(pid)).collect()
    }

    fn member(&self, pid: i32) -> Option<Member> {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // `pid (name) state ppid group …`; the name may hold anything, also `)`.
        let (head, tail) = stat.rsplit_once(')')?;
        let mut fields = tail.split_ascii_whitespace();
        let (state, _parent, group) = (fields.next()?, fields.next()?, fields.next()?);
        if matches!(state, "Z" | "X") {
            return None;
        }
        let is_in_group = group.parse() == Ok(self.group);
        if !is_in_group && !self.has_cookie(pid) {
            return None;
        }
        let name = head.split_once('(').map_or("", |(_, name)| name).to_owned();
        Some(Member { pid, name, is_in_group })
    }

    fn has_cookie(&self, pid: i32) -> bool {
        let environ = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environ.split(|b| *b == 0).any(|entry| entry == self.cookie.as_bytes())
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
