//! The init process of a script's namespace, as seen by the supervisor that starts it.

use crate::handler::process_tree::{COOKIE, open_marker, processes};
use crate::handler::script_confinement::Confinement;
use crate::handler::script_launch::Reaped;
use crate::handler::script_namespace;
use crate::handler::supervisor_protocol::{
    INIT_WORD, SupervisorCommand, SupervisorOrder, SupervisorReport,
};
use nix::errno::Errno;
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use std::fs;
use std::io::{Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};

/// The first process of a namespace, which is the script's parent.
pub(crate) struct InitProcess {
    child: Child,
    leash: UnixStream,
    /// The part of a line read so far.
    unread: Vec<u8>,
}

/// Why there is no script.
pub(crate) enum NoScript {
    /// It was not started.
    Cannot(String),
    /// It may have run, and its result is unknown.
    Lost(String),
}

impl InitProcess {
    /// Starts an init process that is ready to start the script. Everything that this process
    /// starts from here on is in the namespace.
    pub(crate) fn start(
        order: &SupervisorOrder,
        confinement: &Confinement,
    ) -> Result<Self, String> {
        script_namespace::enter(confinement.user)?;
        let cannot = |e: std::io::Error| format!("cannot start the init process: {e}");
        let (ours, theirs) = UnixStream::pair().map_err(cannot)?;
        // For the search of a later attempt; the script inherits it.
        let marker = std::env::var(COOKIE).ok().and_then(|run| open_marker(&run));
        let child = Command::new("/proc/self/exe")
            .arg0("procession")
            .arg(INIT_WORD)
            .args(order.words())
            .stdin(OwnedFd::from(theirs))
            .spawn()
            .map_err(cannot)?;
        drop(marker);
        let mut init = Self { child, leash: ours, unread: Vec::new() };
        match init.next_report() {
            Some(SupervisorReport::Ready) => Ok(init),
            Some(SupervisorReport::Cannot(why)) => Err(why),
            _ => Err("the init process ended at once".to_owned()),
        }
    }

    /// Its process id on this machine.
    pub(crate) fn process_id(&self) -> i32 {
        i32::try_from(self.child.id()).unwrap_or(0)
    }

    /// Starts the script; returns its process id on this machine.
    pub(crate) fn start_script(&mut self) -> Result<i32, NoScript> {
        self.send_command(SupervisorCommand::Alive);
        let inside = match self.next_report() {
            Some(SupervisorReport::Started(inside)) => inside,
            Some(SupervisorReport::Cannot(why)) => return Err(NoScript::Cannot(why)),
            _ => return Err(NoScript::Lost("the init process was lost at the start".to_owned())),
        };
        let outside = self.find_script(inside).ok_or_else(|| {
            NoScript::Lost(format!("process {inside} of the namespace is not in /proc"))
        })?;
        self.send_command(SupervisorCommand::Alive);
        let _stays_blocking_only_if_the_socket_is_gone = self.leash.set_nonblocking(true);
        Ok(outside)
    }

    /// Finds the script by its process id in the namespace. It is found even after its end, because
    /// it has not been reaped yet.
    fn find_script(&self, inside: i32) -> Option<i32> {
        let init = self.process_id();
        let mut children = processes().into_iter().filter(|process| process.parent == init);
        children.find(|child| inner_number(child.pid) == Some(inside)).map(|child| child.pid)
    }

    /// Reaps children, and reads how the script ended.
    pub(crate) fn reap_children(&mut self) -> Reaped {
        // In this order: everything the init process sent before its end is readable once it has
        // ended.
        let is_anybody_left = !matches!(
            waitpid(None, Some(WaitPidFlag::WNOHANG)),
            Err(Errno::ECHILD) | Ok(WaitStatus::Exited(..) | WaitStatus::Signaled(..))
        );
        let mut ended = None;
        while let Some(said) = self.next_report() {
            if let SupervisorReport::Ended(status) = said {
                ended = Some(status);
            }
        }
        Reaped { ended, is_anybody_left }
    }

    /// Kills it, and with it every process in the namespace.
    pub(crate) fn kill_namespace(&mut self) {
        let _gone_by_itself = self.child.kill();
    }

    /// Lets it and the remaining processes continue after the supervisor. It confirms first;
    /// without that it would end with the supervisor.
    pub(crate) fn spare(&mut self) {
        self.send_command(SupervisorCommand::Spare);
        let _stays_as_it_is = self.leash.set_nonblocking(false);
        while !matches!(self.next_report(), Some(SupervisorReport::Ready) | None) {}
    }

    /// The descriptor to poll for its reports.
    pub(crate) fn as_fd(&self) -> BorrowedFd<'_> {
        self.leash.as_fd()
    }

    fn send_command(&mut self, told: SupervisorCommand) {
        let _it_has_ended = self.leash.write_all(&[told as u8]);
    }

    /// Its next report. `None`: nothing now, if the socket does not block, or it has ended.
    fn next_report(&mut self) -> Option<SupervisorReport> {
        loop {
            if let Some(end) = self.unread.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.unread.drain(..=end).collect();
                return SupervisorReport::parse_line(
                    String::from_utf8_lossy(&line).trim_end_matches('\n'),
                );
            }
            let mut bytes = [0; 512];
            match self.leash.read(&mut bytes) {
                Ok(0) => return None,
                Ok(count) => self.unread.extend_from_slice(&bytes[..count]),
                Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
                Err(_) => return None,
            }
        }
    }
}

/// The process id in the innermost namespace of the process.
fn inner_number(pid: i32) -> Option<i32> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let numbers = status.lines().find_map(|line| line.strip_prefix("NSpid:"))?;
    numbers.split_ascii_whitespace().next_back()?.parse().ok()
}

/// Tests whether this machine can isolate a script's processes; starts no script.
pub(crate) fn probe(order: &SupervisorOrder) -> Result<(), String> {
    let confinement = order.confinement.as_ref().ok_or("it is started to isolate a script")?;
    let mut init = InitProcess::start(order, confinement)?;
    let number = inner_number(init.process_id());
    init.kill_namespace();
    if number != Some(1) {
        return Err("/proc does not show the numbers of processes in namespaces".to_owned());
    }
    Ok(())
}
