//! Finds the processes of a script and ends them, including those that left its process group.
//!
//! The process group alone misses processes that called `setsid` or forked twice; those still carry
//! the cookie in the environment they were started with. A process that cleared its environment
//! *and* left the group is found from above, by its supervisor: it stays a descendant of that,
//! whatever it does. Where the supervisor was killed too, it is found by an open file that all of
//! them inherit (`open_marker`). A process that clears the environment, leaves the group and closes
//! every file is not found then.

use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::Pid;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;

/// The environment variable that marks the processes of one attempt.
pub(crate) const COOKIE: &str = "PROCESSION_RUN";

/// Prefix of the name of the inherited file; the run follows, as in the cookie.
const MARKER: &str = "procession-run:";
/// How the kernel shows such a file in /proc/PID/fd.
const SHOWN: (&str, &str) = ("/memfd:", " (deleted)");

/// An empty file in memory named after the run, inherited by everything this process starts from
/// here on. `None` where the kernel has no such files, or the name is too long: then the cookie
/// alone marks the run.
#[cfg(target_os = "linux")]
pub(crate) fn open_marker(run: &str) -> Option<std::os::fd::OwnedFd> {
    use nix::sys::memfd::{MFdFlags, memfd_create};
    memfd_create(format!("{MARKER}{run}").as_str(), MFdFlags::empty()).ok()
}

/// What the processes of one script have in common.
#[derive(Clone, Debug)]
pub(crate) struct Family {
    group: i32,
    run: String,
}

/// One living process of the tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TreeProcess {
    pub(crate) pid: i32,
    pub(crate) name: String,
    /// Whether it is in the script's own process group.
    pub(crate) is_in_group: bool,
}

impl Family {
    /// The tree of the group leader `pid`.
    pub(crate) fn new(pid: i32, run: &str) -> Self {
        Self { group: pid, run: run.to_owned() }
    }

    /// Sends a signal to the script's process group; an empty group is no error.
    pub(crate) fn signal(&self, signal: Signal) {
        let _nobody_is_left = killpg(Pid::from_raw(self.group), signal);
    }

    /// All living processes, without zombies.
    pub(crate) fn members(&self) -> Vec<TreeProcess> {
        list_pids().into_iter().filter_map(|pid| self.member(pid)).collect()
    }

    fn member(&self, pid: i32) -> Option<TreeProcess> {
        let (name, group) = living(pid)?;
        let is_in_group = group == self.group;
        if !is_in_group && !is_of_run(pid, |run| run == self.run) {
            return None;
        }
        Some(TreeProcess { pid, name, is_in_group })
    }

    /// KILLs the process group and all processes with the mark of the run; returns those found.
    pub(crate) fn end_all(&self) -> Vec<TreeProcess> {
        self.signal(Signal::SIGKILL);
        let members = self.members();
        for member in &members {
            let _gone_by_itself = kill(Pid::from_raw(member.pid), Signal::SIGKILL);
        }
        members
    }
}

/// One entry of the system's process table.
#[derive(Clone, Debug)]
pub(crate) struct OsProcess {
    pub(crate) pid: i32,
    /// Process id of its parent.
    pub(crate) parent: i32,
    /// Its process group.
    pub(crate) group: i32,
    pub(crate) name: String,
    /// Start time in ticks since boot: unique together with the process id.
    started: u64,
    /// Whether it runs; a zombie does not.
    pub(crate) is_living: bool,
}

/// All visible processes of the system.
pub(crate) fn processes() -> Vec<OsProcess> {
    list_pids().into_iter().filter_map(process).collect()
}

/// The descendants of `roots`, without them, and without `except` and its descendants.
pub(crate) fn below(all: &[OsProcess], roots: &BTreeSet<i32>, except: i32) -> BTreeSet<i32> {
    let mut children: BTreeMap<i32, Vec<i32>> = BTreeMap::new();
    for process in all {
        children.entry(process.parent).or_default().push(process.pid);
    }
    let (mut found, mut open) = (BTreeSet::new(), Vec::from_iter(roots.iter().copied()));
    while let Some(pid) = open.pop() {
        for child in children.get(&pid).into_iter().flatten() {
            if *child != except && found.insert(*child) {
                open.push(*child);
            }
        }
    }
    found
}

/// What attempts of `run` before `attempt` left here: processes with their mark, and the
/// descendants of those. Never this process, although such a script may have started it.
pub(crate) fn earlier(all: &[OsProcess], run: &str, attempt: u32) -> BTreeSet<i32> {
    let start = format!("{run}:");
    let is_earlier = |run: &str| {
        let number = run.strip_prefix(&start).and_then(|n| n.parse::<u32>().ok());
        number.is_some_and(|n| n < attempt)
    };
    let own = i32::try_from(std::process::id()).unwrap_or(0);
    let carries = |p: &&OsProcess| p.is_living && p.pid != own && is_of_run(p.pid, is_earlier);
    let carriers: BTreeSet<i32> = all.iter().filter(carries).map(|p| p.pid).collect();
    below(all, &carriers, own).union(&carriers).copied().collect()
}

/// Ends a process tree whose members start others meanwhile.
#[derive(Debug, Default)]
pub(crate) struct Hunt {
    seen: BTreeMap<i32, OsProcess>,
}

impl Hunt {
    /// Maximum number of rounds of `freeze`. Two are enough for anything but a fork bomb without a
    /// limit.
    const LOOKS: usize = 50;

    /// Stops (SIGSTOP) the processes that `find` returns until it returns no new one. A killed
    /// process frees capacity for the next ones of a fork bomb; a stopped one does not, and starts
    /// nothing.
    pub(crate) fn freeze(&mut self, find: &impl Fn(&[OsProcess]) -> BTreeSet<i32>) {
        for _ in 0..Self::LOOKS {
            let all = processes();
            let found = find(&all);
            let is_new = |p: &&OsProcess| p.is_living && !self.seen.contains_key(&p.pid);
            let fresh: Vec<OsProcess> =
                all.iter().filter(|p| found.contains(&p.pid)).filter(is_new).cloned().collect();
            if fresh.is_empty() {
                return;
            }
            send_signal(&all, &found, Signal::SIGSTOP);
            self.seen.extend(fresh.into_iter().map(|p| (p.pid, p)));
        }
    }

    /// KILLs the stopped processes, and those that `find` returns now; returns whether there were
    /// any.
    pub(crate) fn strike(&mut self, find: &impl Fn(&[OsProcess]) -> BTreeSet<i32>) -> bool {
        let all = processes();
        let mut found = find(&all);
        let is_same =
            |p: &&OsProcess| self.seen.get(&p.pid).is_some_and(|s| s.started == p.started);
        found.extend(all.iter().filter(is_same).map(|p| p.pid));
        send_signal(&all, &found, Signal::SIGKILL);
        let mut living =
            all.into_iter().filter(|p| p.is_living && found.contains(&p.pid)).peekable();
        let is_anybody = living.peek().is_some();
        self.seen.extend(living.map(|p| (p.pid, p)));
        is_anybody
    }

    /// All processes that were found alive.
    pub(crate) fn found(&self) -> impl Iterator<Item = &OsProcess> {
        self.seen.values()
    }
}

/// Sends a signal to these processes; to a whole process group at once if all of it is included,
/// because no child that is being born can escape that.
fn send_signal(all: &[OsProcess], to: &BTreeSet<i32>, signal: Signal) {
    let others: BTreeSet<i32> =
        all.iter().filter(|p| !to.contains(&p.pid)).map(|p| p.group).collect();
    let groups: BTreeSet<i32> =
        all.iter().filter(|p| to.contains(&p.pid)).map(|p| p.group).collect();
    for group in groups.difference(&others).filter(|group| **group > 1) {
        let _nobody_is_left = killpg(Pid::from_raw(*group), signal);
    }
    for process in all.iter().filter(|p| to.contains(&p.pid) && others.contains(&p.group)) {
        let _gone_by_itself = kill(Pid::from_raw(process.pid), signal);
    }
}

pub(crate) fn list_pids() -> Vec<i32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|e| e.file_name().to_str()?.parse().ok()).collect()
}

/// Name and group of a process; `None` when there is none or it is a zombie.
fn living(pid: i32) -> Option<(String, i32)> {
    process(pid).filter(|p| p.is_living).map(|p| (p.name, p.group))
}

fn process(pid: i32) -> Option<OsProcess> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // `pid (name) state ppid group …`; the name may contain anything, also `)`.
    let (head, tail) = stat.rsplit_once(')')?;
    let fields: Vec<&str> = tail.split_ascii_whitespace().collect();
    Some(OsProcess {
        pid,
        parent: fields.get(1)?.parse().ok()?,
        group: fields.get(2)?.parse().ok()?,
        name: head.split_once('(').map_or("", |(_, name)| name).to_owned(),
        // The 22nd field; the state, which follows the name, is the third.
        started: fields.get(19)?.parse().ok()?,
        is_living: !matches!(*fields.first()?, "Z" | "X"),
    })
}

/// Start time of a process in the kernel's ticks since boot: unique together with the process id.
pub(crate) fn started(pid: i32) -> Option<u64> {
    process(pid).map(|p| p.started)
}

/// Whether a process carries the mark of a run: in the environment that it was started with, or as
/// an open file.
fn is_of_run(pid: i32, is_it: impl Fn(&str) -> bool) -> bool {
    let environ = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    let mut entries = environ.split(|b| *b == 0).filter_map(|entry| str::from_utf8(entry).ok());
    let mut runs =
        entries.by_ref().filter_map(|entry| entry.strip_prefix(COOKIE)?.strip_prefix('='));
    runs.any(&is_it) || open_markers(pid).any(|run| is_it(&run))
}

/// The runs whose marker files a process has open.
fn open_markers(pid: i32) -> impl Iterator<Item = String> {
    let files = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    files.filter_map(|file| {
        let shown = fs::read_link(file.path()).ok()?;
        let name = shown.to_str()?.strip_prefix(SHOWN.0)?.strip_prefix(MARKER)?;
        Some(name.strip_suffix(SHOWN.1).unwrap_or(name).to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(pid: i32, parent: i32) -> OsProcess {
        OsProcess { pid, parent, group: pid, name: String::new(), started: 0, is_living: true }
    }

    #[test]
    fn a_tree_is_all_that_descends_whatever_the_order_of_numbers() {
        // 1 ─ 10 ┬ 30 ─ 5
        //        └ 20 ─ 40       1 ─ 11 ─ 12
        let pairs = [(1, 0), (10, 1), (30, 10), (5, 30), (20, 10), (40, 20), (11, 1), (12, 11)];
        let all: Vec<OsProcess> = pairs.map(|(pid, parent)| process(pid, parent)).into();
        let of = |roots: &[i32], except| -> Vec<i32> {
            below(&all, &roots.iter().copied().collect(), except).into_iter().collect()
        };
        assert_eq!(of(&[10], 0), [5, 20, 30, 40]);
        assert_eq!(of(&[10], 20), [5, 30]);
        assert_eq!(of(&[30, 11], 0), [5, 12]);
        assert_eq!(of(&[40, 99], 0), Vec::<i32>::new());
    }

    #[test]
    fn this_process_is_in_the_table_with_its_parent() {
        let own = i32::try_from(std::process::id()).expect("a number");
        let all = processes();
        let this = all.iter().find(|p| p.pid == own).expect("this process");
        assert!(this.is_living && this.started > 0, "{this:?}");
        assert!(below(&all, &BTreeSet::from([this.parent]), 0).contains(&own));
    }
}
