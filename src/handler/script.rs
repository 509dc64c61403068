//! SCRIPT: runs a script, under a supervisor where there is one, else as a child process.
//!
//! Processes left by the script: at its end everything still in its process group is killed and
//! named in the log, because a handler must not return while its body runs. A process that left the
//! group on purpose (`setsid`) is left alone after a success and only named; after a failure or a
//! stop it is killed too, so that a second start does not meet it.

use crate::domain::job::outcome::{AttemptEnd, AttemptOutcome, JobOutputs, Stream};
use crate::domain::job::retry::ErrorClass;
use crate::domain::job::script_isolation::{IsolationLevel, IsolationPolicy, describe_start};
use crate::domain::job::script_limits::ScriptLimits;
use crate::domain::job::{BodyPart, JobKind};
use crate::handler::child::{self, Hold, LaunchPlan, OutputReader, Pipes};
use crate::handler::earlier_attempts;
use crate::handler::held_limits::HeldLimits;
use crate::handler::run_on_source::end_of;
use crate::handler::script_exit::ScriptEnding;
use crate::handler::script_supervised::{self, NoStart, SupervisedScript};
use crate::handler::script_unsupervised::UnsupervisedScript;
use crate::handler::script_workdir::Dir;
use crate::handler::{AttemptTask, Context, StopReason, WorkerHandler};
use futures_util::future::BoxFuture;
use nix::sys::signal::Signal;
use std::os::unix::process::ExitStatusExt;
use std::pin::pin;
use std::process::ExitStatus;
use std::time::Duration;
use tokio::time::timeout;

/// The SCRIPT handler.
pub(crate) struct ScriptHandler;

/// How long to read on after the exit: a daemon that inherited the pipe never closes it.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// Only the supervisor drops the privileges that our own user could give the script.
const UNSUPERVISED: &str = "a script that is isolated or has a user of its own ([script] isolation, run_as) runs under \
                            its supervisor alone, and there is none";

impl WorkerHandler for ScriptHandler {
    fn kind(&self) -> JobKind {
        JobKind {
            name: "SCRIPT",
            about: "Runs a script with an interpreter of the allow-list.",
            needs: &[BodyPart::Script],
            may_have: &[BodyPart::Interpreter, BodyPart::WorkingDir, BodyPart::Params],
            ..JobKind::PLAIN
        }
    }

    fn run<'a>(&'a self, task: &'a AttemptTask, ctx: &'a Context) -> BoxFuture<'a, AttemptOutcome> {
        Box::pin(run_script(task, ctx, |_| None))
    }

    fn end_orphan<'a>(
        &'a self,
        task: &'a AttemptTask,
        ctx: &'a Context,
    ) -> BoxFuture<'a, AttemptOutcome> {
        Box::pin(earlier_attempts::end_left(task, ctx))
    }
}

/// Finds the cause of a failure in the end of standard error.
type FindCause = fn(&str) -> Option<String>;

/// Runs the script of a task. Where `find_cause` finds none, the last line of standard error is the
/// cause.
pub(crate) async fn run_script(
    task: &AttemptTask,
    ctx: &Context,
    find_cause: FindCause,
) -> AttemptOutcome {
    match start(task, ctx, find_cause).await {
        Ok(outcome) => outcome,
        Err(said) => AttemptOutcome::ended(AttemptEnd::Failed, said).before_it_began(),
    }
}

/// Runs it; an error is the reason why nothing was started.
async fn start(
    task: &AttemptTask,
    ctx: &Context,
    find_cause: FindCause,
) -> Result<AttemptOutcome, String> {
    tokio::select! {
        biased;
        reason = ctx.stopped() => return Ok(stopped_before(reason)),
        ready = get_ready(task, ctx) => ready?,
    }
    let dir = tokio::task::spawn_blocking(Dir::create).await.unwrap_or_else(|e| Err(e.into()));
    let dir = dir.map_err(|e| format!("cannot make a private folder: {e}"))?;
    let limits = HeldLimits::find_limits(task, ctx).await?;
    let hold = Hold { level: find_level(ctx).await?, limits };
    let plan = child::plan_launch(task, &ctx.options, &dir, hold)?;
    let mut runner = match ScriptRunner::start(&plan, &child::run_name(task), ctx).await {
        Ok(runner) => runner,
        Err(NoStart::Unfit(said) | NoStart::Failed(said)) => return Err(said),
        Err(NoStart::Stopped(reason)) => return Ok(stopped_before(reason)),
        Err(NoStart::Lost(said)) => return Ok(AttemptOutcome::ended(AttemptEnd::Unknown, said)),
    };
    let how = runner.describe(&plan);
    ctx.log.add_line(Stream::System, describe_start(runner.process_id(), &how));
    let mut reader = OutputReader::new(&ctx.log, ctx.options.outputs);
    let ending = watch(&mut runner, &mut reader, ctx).await;
    if let Some(cause) = find_cause(&reader.error_tail()) {
        reader.last_error = Some(cause);
    }
    Ok(match ending {
        ScriptEnding::Own(status) => settle(status, reader),
        ScriptEnding::OutOfMemory(status) => {
            let why = plan.limits.limits.describe_memory_kill();
            AttemptOutcome { message: Some(why), ..settle(status, reader) }
        }
        ScriptEnding::Stopped(reason) => AttemptOutcome::ended(end_of(reason), said_of(reason)),
        ScriptEnding::Lapsed => AttemptOutcome::ended(
            AttemptEnd::Returned,
            "ended by its keeper with all that it started, because this process did not renew its \
             lease in time",
        ),
        ScriptEnding::Unknown(said) => AttemptOutcome::ended(AttemptEnd::Unknown, said),
    })
}

/// The level of isolation for the script. If it is lower than requested, the log explains why.
async fn find_level(ctx: &Context) -> Result<IsolationLevel, String> {
    let options = &ctx.options;
    if options.script_users.policy == IsolationPolicy::Off {
        return Ok(IsolationLevel::None);
    }
    let means =
        options.isolation_probe.find_means(options.keeper.as_deref(), &options.script_files).await;
    let level = options.script_users.choose_level(&means).map_err(|refusal| refusal.to_string())?;
    if let (IsolationLevel::None, Err(why)) = (level, &means.processes) {
        ctx.log.add_line(Stream::System, format!("not isolated from other processes: {why}"));
    }
    Ok(level)
}

fn stopped_before(reason: StopReason) -> AttemptOutcome {
    AttemptOutcome::ended(end_of(reason), "stopped before it began").before_it_began()
}

fn said_of(reason: StopReason) -> &'static str {
    match reason {
        StopReason::TimedOut => "stopped with all that it started",
        StopReason::Killed => "stopped with all that it started, as was asked",
        StopReason::HandedBack => "stopped with all that it started, to be handed back",
        StopReason::Fenced => {
            "stopped with all that it started, because this process lost its lease"
        }
        StopReason::Disowned => {
            "stopped with all that it started, because its row is another process's by now"
        }
    }
}

/// Ends an earlier start, which may take long, and checks the claim after it.
async fn get_ready(task: &AttemptTask, ctx: &Context) -> Result<(), String> {
    earlier_attempts::end_earlier(task, ctx).await?;
    ctx.claimed().await
}

/// Who watches over the script.
enum ScriptRunner {
    Kept(Box<SupervisedScript>),
    Alone(Box<UnsupervisedScript>),
}

impl ScriptRunner {
    async fn start(plan: &LaunchPlan, run: &str, ctx: &Context) -> Result<Self, NoStart> {
        if let Some(program) = &ctx.options.keeper {
            match SupervisedScript::start(program, plan, run, ctx).await {
                Ok(kept) => return Ok(Self::Kept(Box::new(kept))),
                Err(NoStart::Unfit(why)) if plan.needs_supervisor() => {
                    return Err(NoStart::Failed(format!("{why}; {UNSUPERVISED}")));
                }
                Err(NoStart::Unfit(why)) => {
                    script_supervised::complain(&why);
                    ctx.log.add_line(Stream::System, script_supervised::without(&why));
                }
                Err(other) => return Err(other),
            }
        }
        if plan.needs_supervisor() {
            return Err(NoStart::Failed(UNSUPERVISED.to_owned()));
        }
        let alone = UnsupervisedScript::start(plan, run).map_err(NoStart::Failed)?;
        Ok(Self::Alone(Box::new(alone)))
    }

    /// How it runs, for the log.
    fn describe(&self, plan: &LaunchPlan) -> String {
        match self {
            Self::Kept(_) => plan.describe(),
            Self::Alone(_) if plan.limits.limits == ScriptLimits::default() => String::new(),
            Self::Alone(_) => ", its limits are not held without a keeper".to_owned(),
        }
    }

    fn process_id(&self) -> i32 {
        match self {
            Self::Kept(kept) => kept.process_id(),
            Self::Alone(alone) => alone.process_id(),
        }
    }

    fn pipes(&mut self) -> Pipes {
        match self {
            Self::Kept(kept) => kept.pipes(),
            Self::Alone(alone) => alone.pipes(),
        }
    }

    async fn run_script(&mut self, ctx: &Context) -> ScriptEnding {
        match self {
            Self::Kept(kept) => kept.run_script(ctx).await,
            Self::Alone(alone) => alone.run_script(ctx).await,
        }
    }
}

/// Reads the output until the script has ended and its remaining processes are handled.
async fn watch(
    runner: &mut ScriptRunner,
    reader: &mut OutputReader<'_>,
    ctx: &Context,
) -> ScriptEnding {
    let pipes = runner.pipes();
    let ending = {
        let mut reading = pin!(reader.read_pipes(pipes));
        let mut is_read = false;
        let mut running = pin!(runner.run_script(ctx));
        let ending = loop {
            tokio::select! {
                biased;
                ending = &mut running => break ending,
                () = &mut reading, if !is_read => is_read = true,
            }
        };
        if !is_read {
            let _a_daemon_holds_the_pipe = timeout(LAST_WORDS, reading).await;
        }
        ending
    };
    reader.finish();
    ending
}

fn settle(status: ExitStatus, reader: OutputReader<'_>) -> AttemptOutcome {
    let values = match reader.outputs.finish() {
        Ok(values) => values,
        // Without its exit code: no rule may turn this into a success.
        Err(why) => {
            let how = status.code().map_or(String::new(), |code| format!(" (exit code {code})"));
            return AttemptOutcome::ended(AttemptEnd::Failed, format!("{why}{how}")).for_good();
        }
    };
    let outputs = JobOutputs { values, exit_code: status.code(), ..JobOutputs::default() };
    if status.success() {
        return AttemptOutcome::success(outputs);
    }
    let how = match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit code {code}"),
        (None, Some(number)) => match Signal::try_from(number) {
            Ok(Signal::SIGXCPU) => format!(
                "ended by signal {number} (SIGXCPU): it used the processor time that script.max_cpus gives a process \
                 until the job's time limit"
            ),
            Ok(signal) => format!("ended by signal {number} ({signal})"),
            Err(_) => format!("ended by signal {number}"),
        },
        (None, None) => "ended without an exit code".to_owned(),
    };
    let last = reader.last_error.as_deref().map_or(String::new(), |line| format!(": {line}"));
    let failed =
        AttemptOutcome::ended(AttemptEnd::Failed, how + &last).of_class(ErrorClass::ExitCode, None);
    AttemptOutcome { outputs, ..failed }
}
