//! A script without a supervisor: a child of this process, which survives if this process is
//! killed.

use crate::domain::job::outcome::Stream;
use crate::handler::child::{LaunchPlan, Pipes};
use crate::handler::process_tree::{Family, TreeProcess};
use crate::handler::script_exit::{self, LeftProcessOutcome, ScriptEnding};
use crate::handler::stopwatch::Stopwatch;
use crate::handler::{Context, StopReason, UNCONFIRMED};
use nix::sys::signal::Signal;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;
use tokio::process::{Child, Command};
use tokio::time::{sleep, timeout};

/// Poll interval of the process table.
const LOOK: Duration = Duration::from_millis(50);

/// A script that runs as our own child.
pub(crate) struct UnsupervisedScript {
    child: Child,
    pid: i32,
    /// `None` once its end has been handled.
    family: Option<Family>,
}

impl UnsupervisedScript {
    /// Starts the plan; `run` is the value of its cookie.
    pub(crate) fn start(plan: &LaunchPlan, run: &str) -> Result<Self, String> {
        let mut command = Command::new(&plan.interpreter);
        command
            .arg(&plan.file)
            .current_dir(&plan.folder)
            .env_clear()
            .envs(&plan.variables)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0);
        let child =
            command.spawn().map_err(|e| format!("cannot start {:?}: {e}", plan.interpreter))?;
        let pid = child.id().and_then(|pid| i32::try_from(pid).ok());
        let pid = pid.ok_or("the child has no number")?;
        Ok(Self { child, pid, family: Some(Family::new(pid, run)) })
    }

    pub(crate) fn process_id(&self) -> i32 {
        self.pid
    }

    /// The script's output.
    pub(crate) fn pipes(&mut self) -> Pipes {
        (self.child.stdout.take(), self.child.stderr.take())
    }

    /// Waits for its end, or stops it; handles its remaining processes.
    pub(crate) async fn run_script(&mut self, ctx: &Context) -> ScriptEnding {
        let Some(family) = self.family.clone() else {
            return ScriptEnding::Unknown("the script has no process family".to_owned());
        };
        let (status, reason) = self.wait_for_exit(&family, ctx).await;
        let is_good = matches!(&status, Ok(status) if status.success()) && reason.is_none();
        end_left_overs(&family, ctx, is_good).await;
        let ending = match (status, reason) {
            (_, Some(reason)) => confirm(&family, self.pid, reason, ctx).await,
            (Ok(status), None) => ScriptEnding::Own(status),
            (Err(error), None) => {
                ScriptEnding::Unknown(format!("cannot wait for process {}: {error}", self.pid))
            }
        };
        self.family = None;
        ending
    }

    /// Waits for the exit; on a stop request sends TERM, and KILL after the grace period.
    async fn wait_for_exit(
        &mut self,
        family: &Family,
        ctx: &Context,
    ) -> (std::io::Result<ExitStatus>, Option<StopReason>) {
        let reason = tokio::select! {
            biased;
            status = self.child.wait() => return (status, None),
            reason = ctx.stopped() => reason,
        };
        ctx.log.add_line(Stream::System, script_exit::stopping(reason));
        if !matches!(reason, StopReason::Fenced | StopReason::Disowned) {
            family.signal(Signal::SIGTERM);
            if let Ok(status) = timeout(ctx.options.kill_grace, self.child.wait()).await {
                return (status, Some(reason));
            }
            ctx.log.add_line(Stream::System, script_exit::FORCED);
        }
        family.signal(Signal::SIGKILL);
        match timeout(ctx.options.kill_confirm, self.child.wait()).await {
            Ok(status) => (status, Some(reason)),
            Err(_) => (Err(std::io::ErrorKind::TimedOut.into()), Some(reason)),
        }
    }
}

impl Drop for UnsupervisedScript {
    /// Kills the process tree when the handler is dropped in the middle: no one else would.
    fn drop(&mut self) {
        if let Some(family) = &self.family {
            family.end_all();
        }
    }
}

/// Ends what the script left behind, see the header of `handler::script`.
async fn end_left_overs(family: &Family, ctx: &Context, is_good: bool) {
    let look = family.clone();
    let left = tokio::task::spawn_blocking(move || {
        let members = look.members();
        if is_good {
            look.signal(Signal::SIGKILL);
            members
        } else {
            look.end_all()
        }
    });
    for member in left.await.unwrap_or_default() {
        let is_killed = member.is_in_group || !is_good;
        let fate =
            if is_killed { LeftProcessOutcome::Killed } else { LeftProcessOutcome::LeftAlone };
        ctx.log.add_line(Stream::System, script_exit::left_words(member.pid, &member.name, fate));
    }
}

/// Kills repeatedly until no process of the tree is visible.
async fn confirm(family: &Family, pid: i32, reason: StopReason, ctx: &Context) -> ScriptEnding {
    let start = Stopwatch::start();
    match end_family(family, ctx).await {
        None => {
            let seconds = start.elapsed().as_secs_f64();
            ctx.log.add_line(Stream::System, script_exit::ended_words(pid, seconds));
            ScriptEnding::Stopped(reason)
        }
        Some(TreeProcess { pid, name, .. }) => {
            ScriptEnding::Unknown(format!("{UNCONFIRMED}: process {pid} ({name}) still runs"))
        }
    }
}

/// Kills the processes of a tree until none is found; returns one that is still there after the
/// time limit.
pub(crate) async fn end_family(family: &Family, ctx: &Context) -> Option<TreeProcess> {
    let start = Stopwatch::start();
    loop {
        let look = family.clone();
        let left = tokio::task::spawn_blocking(move || look.end_all()).await.unwrap_or_default();
        let first = left.into_iter().next()?;
        if start.elapsed() > ctx.options.kill_confirm {
            return Some(first);
        }
        sleep(LOOK).await;
    }
}
