//! The protocol between a worker and the supervisor of its script: first the arguments, then a
//! control socket whose end tells each side that the other is gone.

use crate::domain::job::script_limits::ProcessLimits;
use crate::handler::cgroup_tree::CgroupOrder;
use crate::handler::script_account::AccountIds;
use crate::handler::script_confinement::Confinement;
use crate::handler::script_exit::LeftProcessOutcome;
use std::ffi::OsString;
use std::io::Write as _;
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::time::Duration;

/// The first argument that selects the supervisor.
pub const WORD: &str = "script-keeper";
/// The first argument that selects the init process of a script's namespace.
pub const INIT_WORD: &str = "script-init";
/// The first argument that selects the isolation test.
pub const PROBE_WORD: &str = "script-probe";

/// A command of a worker to its supervisor, one byte each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SupervisorCommand {
    /// Start, or: the lease was renewed. To an init process: continue.
    Alive = b'.' as isize,
    /// The script succeeded: processes that left its group on purpose may continue.
    Spare = b's' as isize,
}

/// A report of a supervisor to its worker, or of an init process to its supervisor; one line each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum SupervisorReport {
    /// Ready to start the script on the first `Alive`.
    Ready,
    /// It cannot supervise a script here; nothing was started.
    Unfit(String),
    /// The script cannot be started.
    Cannot(String),
    /// The script runs as this process id.
    Started(i32),
    /// The script ended by itself, with this wait status. The supervisor waits for
    /// `SupervisorCommand::Spare` or the end of the socket.
    Ended(ExitStatus),
    /// A process that was still running at the end.
    Left(i32, LeftProcessOutcome, String),
    /// The lease expired before the script ended; all processes are being ended.
    Lapsed,
    /// The kernel killed processes of the script for lack of memory.
    OutOfMemory,
    /// Number of processes that were not started because of the limit.
    OutOfProcesses(u64),
}

impl SupervisorReport {
    /// The line, without its newline.
    pub(crate) fn to_line(&self) -> String {
        let flat = |text: &str| text.replace(['\n', '\r'], " ");
        match self {
            Self::Ready => "ready".to_owned(),
            Self::Unfit(why) => format!("unfit {}", flat(why)),
            Self::Cannot(why) => format!("cannot {}", flat(why)),
            Self::Started(pid) => format!("started {pid}"),
            Self::Ended(status) => format!("ended {}", status.into_raw()),
            Self::Left(pid, LeftProcessOutcome::Killed, name) => {
                format!("killed {pid} {}", flat(name))
            }
            Self::Left(pid, LeftProcessOutcome::LeftAlone, name) => {
                format!("spared {pid} {}", flat(name))
            }
            Self::Lapsed => "lapsed".to_owned(),
            Self::OutOfMemory => "out-of-memory".to_owned(),
            Self::OutOfProcesses(times) => format!("out-of-processes {times}"),
        }
    }

    /// Parses a line.
    pub(crate) fn parse_line(line: &str) -> Option<Self> {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        let left = |fate| {
            let (pid, name) = rest.split_once(' ')?;
            Some(Self::Left(pid.parse().ok()?, fate, name.to_owned()))
        };
        Some(match word {
            "ready" => Self::Ready,
            "unfit" => Self::Unfit(rest.to_owned()),
            "cannot" => Self::Cannot(rest.to_owned()),
            "started" => Self::Started(rest.parse().ok()?),
            "ended" => Self::Ended(ExitStatus::from_raw(rest.parse().ok()?)),
            "killed" => left(LeftProcessOutcome::Killed)?,
            "spared" => left(LeftProcessOutcome::LeftAlone)?,
            "lapsed" => Self::Lapsed,
            "out-of-memory" => Self::OutOfMemory,
            "out-of-processes" => Self::OutOfProcesses(rest.parse().ok()?),
            _ => return None,
        })
    }
}

/// Sends a report. If the peer is gone, the socket reports that later.
pub(crate) fn send_report(mut leash: &UnixStream, said: &SupervisorReport) {
    let _nobody_hears = leash.write_all(format!("{}\n", said.to_line()).as_bytes());
}

/// What a supervisor is to start. The environment of the script is the supervisor's own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SupervisorOrder {
    /// How long the script may continue without a renewal.
    pub(crate) lease: Duration,
    /// The limits of each process.
    pub(crate) process_limits: ProcessLimits,
    /// Its account, if that is not the supervisor's user.
    pub(crate) account: Option<AccountIds>,
    /// Its isolation.
    pub(crate) confinement: Option<Confinement>,
    /// Its control group.
    pub(crate) cgroup: Option<CgroupOrder>,
    /// The working directory.
    pub(crate) folder: PathBuf,
    pub(crate) interpreter: PathBuf,
    /// The script file.
    pub(crate) file: PathBuf,
}

impl SupervisorOrder {
    /// The arguments after `WORD`.
    pub(crate) fn words(&self) -> [OsString; 9] {
        let id = |of: fn(&AccountIds) -> u32| self.account.as_ref().map_or(0, of).to_string();
        [
            self.lease.as_millis().to_string().into(),
            serde_json::to_string(&self.process_limits).unwrap_or_default().into(),
            id(|account| account.user).into(),
            id(|account| account.group).into(),
            // Paths that are not UTF-8 are refused when the settings are read.
            serde_json::to_string(&self.confinement).unwrap_or_default().into(),
            serde_json::to_string(&self.cgroup).unwrap_or_default().into(),
            self.folder.clone().into(),
            self.interpreter.clone().into(),
            self.file.clone().into(),
        ]
    }

    pub(crate) fn parse_order(words: impl Iterator<Item = OsString>) -> Option<Self> {
        let words: Vec<OsString> = words.collect();
        let [lease, limits, user, group, confinement, cgroup, folder, interpreter, file] =
            &words[..]
        else {
            return None;
        };
        let number = |word: &OsString| word.to_str()?.parse::<u32>().ok();
        // A script never runs as root by this, so 0 can mean that it has no account.
        let account = AccountIds { user: number(user)?, group: number(group)? };
        Some(Self {
            lease: Duration::from_millis(lease.to_str()?.parse().ok()?),
            process_limits: serde_json::from_str(limits.to_str()?).ok()?,
            account: (account.user > 0).then_some(account),
            confinement: serde_json::from_str(confinement.to_str()?).ok()?,
            cgroup: serde_json::from_str(cgroup.to_str()?).ok()?,
            folder: folder.into(),
            interpreter: interpreter.into(),
            file: file.into(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::job::script_limits::{CgroupController, ScriptLimits};
    use crate::handler::script_confinement::FileAccess;

    #[test]
    fn what_is_said_is_understood() {
        for said in [
            SupervisorReport::Ready,
            SupervisorReport::Unfit("no /proc".to_owned()),
            SupervisorReport::Cannot("cannot start \"/bin/sh\"".to_owned()),
            SupervisorReport::Started(4_711),
            SupervisorReport::Ended(ExitStatus::from_raw(3 << 8)),
            // Exit code 137 is not signal 9, and 34 is a signal without a name.
            SupervisorReport::Ended(ExitStatus::from_raw(137 << 8)),
            SupervisorReport::Ended(ExitStatus::from_raw(9)),
            SupervisorReport::Ended(ExitStatus::from_raw(34)),
            SupervisorReport::Left(7, LeftProcessOutcome::Killed, "a (b) c".to_owned()),
            SupervisorReport::Left(8, LeftProcessOutcome::LeftAlone, String::new()),
            SupervisorReport::Lapsed,
            SupervisorReport::OutOfMemory,
            SupervisorReport::OutOfProcesses(12),
        ] {
            assert_eq!(SupervisorReport::parse_line(&said.to_line()), Some(said));
        }
        let two_lines =
            SupervisorReport::Left(7, LeftProcessOutcome::Killed, "a\nended 0".to_owned());
        assert!(!two_lines.to_line().contains('\n'));
        for line in ["", "ended", "ended x", "killed 7", "hello"] {
            assert_eq!(SupervisorReport::parse_line(line), None, "{line}");
        }
    }

    #[test]
    fn an_order_is_understood() {
        let order = SupervisorOrder {
            lease: Duration::from_millis(13_500),
            process_limits: ProcessLimits {
                memory_mib: Some(512),
                processes: Some(64),
                cpu_sec: Some(900),
            },
            account: Some(AccountIds { user: 1_001, group: 100 }),
            confinement: Some(Confinement {
                user: None,
                folder: "/tmp/a folder".into(),
                hidden: vec!["/etc/procession/\"key\"".into()],
                cgroups: Some("/sys/fs/cgroup".into()),
                files: Some(FileAccess::default()),
            }),
            cgroup: Some(CgroupOrder {
                mount: "/sys/fs/cgroup".into(),
                home: "/sys/fs/cgroup/procession-serve".into(),
                folder: "/sys/fs/cgroup/procession-scripts/1-2-x".into(),
                limits: ScriptLimits { memory_mib: Some(512), ..ScriptLimits::default() },
                controllers: vec![CgroupController::Memory],
            }),
            folder: "/tmp/a folder".into(),
            interpreter: "/bin/sh".into(),
            file: "/tmp/a folder/script".into(),
        };
        assert_eq!(SupervisorOrder::parse_order(order.words().into_iter()), Some(order.clone()));
        let process_limits = ProcessLimits::default();
        let free = SupervisorOrder {
            process_limits,
            account: None,
            confinement: None,
            cgroup: None,
            ..order
        };
        assert_eq!(SupervisorOrder::parse_order(free.words().into_iter()), Some(free.clone()));
        assert_eq!(SupervisorOrder::parse_order(free.words().into_iter().skip(1)), None);
    }
}
