//! SCRIPT: runs a script as a child process.
//!
//! What the script leaves behind: at its end everything still in its process group is killed and
//! named in the log, because a handler must not return while its body runs. A process that left
//! the group on purpose (`setsid`) is left alone after a success and only named; after a failure
//! or a stop it is killed too, so that a second start does not meet it.

use crate::domain::job::{BodyPart, JobKind};
use crate::domain::outcome::{End, Outcome, Outputs, Stream};
use crate::domain::retry::ErrorClass;
use crate::handler::child::{self, Reader};
use crate::handler::dir::Dir;
use crate::handler::earlier;
use crate::handler::family::{Family, Member};
use crate::handler::stopwatch::Stopwatch;
use crate::handler::target::end_of;
use crate::handler::{Context, StopReason, Task, WorkerHandler};
use futures_util::future::BoxFuture;
use nix::sys::signal::Signal;
use std::os::unix::process::ExitStatusExt;
use std::pin::pin;
use std::process::ExitStatus;
use std::time::Duration;
use tokio::process::Child;
use tokio::time::{sleep, timeout};

/// The SCRIPT handler.
pub(crate) struct Script;

/// How long to read on after the exit: a daemon that inherited the pipe never closes it.
const LAST_WORDS: Duration = Duration::from_millis(500);
/// Between two looks at the process table.
const LOOK: Duration = Duration::from_millis(50);

impl WorkerHandler for Script {
    fn kind(&self) -> JobKind {
        JobKind {
            name: "SCRIPT",
            about: "Runs a script with an interpreter of the allow-list.",
            needs: &[BodyPart::Script],
            may_have: &[BodyPart::Interpreter, BodyPart::WorkingDir, BodyPart::Params],
            ..JobKind::PLAIN
        }
    }

    fn run<'a>(&'a self, task: &'a Task, ctx: &'a Context) -> BoxFuture<'a, Outcome> {
        Box::pin(async move {
            match start(task, ctx).await {
                Ok(outcome) => outcome,
                Err(said) => Outcome::ended(End::Failed, said),
            }
        })
    }

    fn end_orphan<'a>(&'a self, task: &'a Task, ctx: &'a Context) -> BoxFuture<'a, Outcome> {
        Box::pin(earlier::end(task, ctx))
    }
}

async fn start(task: &Task, ctx: &Context) -> Result<Outcome, String> {
    tokio::select! {
        biased;
        reason = ctx.stopped() => {
            return Ok(Outcome::ended(end_of(reason), "stopped before it began"));
        }
        ready = get_ready(task, ctx) => ready?,
    }
    let dir = tokio::task::spawn_blocking(Dir::create).await.unwrap_or_else(|e| Err(e.into()));
    let dir = dir.map_err(|e| format!("cannot make a private folder: {e}"))?;
    let mut command = child::command(task, &ctx.options, &dir)?;
    let mut child = command
        .spawn()
        .map_err(|e| format!("cannot start {:?}: {e}", command.as_std().get_program()))?;
    let pid =
        child.id().and_then(|pid| i32::try_from(pid).ok()).ok_or("the child has no number")?;
    let leash = Leash(Some(Family::new(pid, &child::run_name(task))));
    ctx.log.line(Stream::System, format!("started as process {pid}"));
    let mut reader = Reader::new(&ctx.log);
    let outcome = watch(&mut child, pid, &leash, &mut reader, ctx).await;
    leash.done();
    Ok(outcome)
}

/// Asks for the claim; again when an earlier start had to end first, which may have taken long.
async fn get_ready(task: &Task, ctx: &Context) -> Result<(), String> {
    ctx.claimed().await?;
    if earlier::wait(task, ctx).await? { ctx.claimed().await } else { Ok(()) }
}

/// Kills the family when the handler is dropped in the middle: nobody else would.
struct Leash(Option<Family>);

impl Leash {
    fn done(mut self) {
        self.0 = None;
    }
}

impl Drop for Leash {
    fn drop(&mut self) {
        if let Some(family) = &self.0 {
            family.end_all();
        }
    }
}

async fn watch(
    child: &mut Child,
    pid: i32,
    leash: &Leash,
    reader: &mut Reader<'_>,
    ctx: &Context,
) -> Outcome {
    let Some(family) = &leash.0 else {
        return Outcome::ended(End::Failed, "the script has no process family");
    };
    let pipes = (child.stdout.take(), child.stderr.take());
    let (status, reason) = {
        let mut reading = pin!(reader.read(pipes));
        let mut is_read = false;
        let mut waiting = pin!(wait(child, family, ctx));
        let waited = loop {
            tokio::select! {
                biased;
                waited = &mut waiting => break waited,
                () = &mut reading, if !is_read => is_read = true,
            }
        };
        let is_good = matches!(&waited, (Ok(status), None) if status.success());
        tidy(family, ctx, is_good).await;
        if !is_read {
            let _a_daemon_holds_the_pipe = timeout(LAST_WORDS, reading).await;
        }
        waited
    };
    reader.finish();
    if let Some(reason) = reason {
        return confirm(family, pid, reason, ctx).await;
    }
    match status {
        Ok(status) => settle(status, reader),
        Err(error) => {
            Outcome::ended(End::Unknown, format!("cannot wait for process {pid}: {error}"))
        }
    }
}

/// Waits for the exit; asked to stop, sends TERM, and KILL when the grace is over.
async fn wait(
    child: &mut Child,
    family: &Family,
    ctx: &Context,
) -> (std::io::Result<ExitStatus>, Option<StopReason>) {
    let reason = tokio::select! {
        biased;
        status = child.wait() => return (status, None),
        reason = ctx.stopped() => reason,
    };
    ctx.log.line(
        Stream::System,
        match reason {
            StopReason::TimedOut => "its time is up: TERM sent to its process group",
            StopReason::Killed => "it is to stop: TERM sent to its process group",
            StopReason::HandedBack => "this process leaves: TERM sent to its process group",
            StopReason::Fenced => "this process lost its lease: TERM sent to its process group",
        },
    );
    family.signal(Signal::SIGTERM);
    if let Ok(status) = timeout(ctx.options.kill_grace, child.wait()).await {
        return (status, Some(reason));
    }
    ctx.log.line(Stream::System, "still there after the grace: KILL sent to its process group");
    family.signal(Signal::SIGKILL);
    match timeout(ctx.options.kill_confirm, child.wait()).await {
        Ok(status) => (status, Some(reason)),
        Err(_) => (Err(std::io::ErrorKind::TimedOut.into()), Some(reason)),
    }
}

/// Ends what the script left behind, see the head of this file.
async fn tidy(family: &Family, ctx: &Context, is_good: bool) {
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
        let Member { pid, name, is_in_group } = member;
        let fate = if is_in_group || !is_good { "killed" } else { "left alone: it left the group" };
        ctx.log.line(Stream::System, format!("left behind: process {pid} ({name}), {fate}"));
    }
}

/// Kills on until none of the family is to be seen.
async fn confirm(family: &Family, pid: i32, reason: StopReason, ctx: &Context) -> Outcome {
    let start = Stopwatch::start();
    loop {
        let look = family.clone();
        let left = tokio::task::spawn_blocking(move || look.end_all()).await.unwrap_or_default();
        let seconds = start.elapsed().as_secs_f64();
        let Some(first) = left.first() else {
            let line = format!("process {pid} and all it started are gone after {seconds:.1} s");
            ctx.log.line(Stream::System, line);
            let said = match reason {
                StopReason::TimedOut => "stopped with all that it started",
                StopReason::Killed => "stopped with all that it started, as was asked",
                StopReason::HandedBack => "stopped with all that it started, to be handed back",
                StopReason::Fenced => {
                    "stopped with all that it started, because this process lost its lease"
                }
            };
            return Outcome::ended(end_of(reason), said);
        };
        if start.elapsed() > ctx.options.kill_confirm {
            let said =
                format!("kill unconfirmed: process {} ({}) still runs", first.pid, first.name);
            return Outcome::ended(End::Unknown, said);
        }
        sleep(LOOK).await;
    }
}

fn settle(status: ExitStatus, reader: &mut Reader<'_>) -> Outcome {
    let values = std::mem::take(&mut reader.values);
    let outputs = Outputs { values, exit_code: status.code(), ..Outputs::default() };
    if status.success() {
        return Outcome::success(outputs);
    }
    let how = match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit code {code}"),
        (None, Some(number)) => match Signal::try_from(number) {
            Ok(signal) => format!("ended by signal {number} ({signal})"),
            Err(_) => format!("ended by signal {number}"),
        },
        (None, None) => "ended without an exit code".to_owned(),
    };
    let last = reader.last_error.as_deref().map_or(String::new(), |line| format!(": {line}"));
    let failed = Outcome::ended(End::Failed, how + &last).of_class(ErrorClass::ExitCode, None);
    Outcome { outputs, ..failed }
}
