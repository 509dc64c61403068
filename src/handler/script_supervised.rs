//! A script with a supervisor, as seen by the worker: its start, the control socket, the
//! supervisor's reports.

use crate::domain::job::outcome::Stream;
use crate::handler::child::{LaunchPlan, Pipes};
use crate::handler::process_tree::Family;
use crate::handler::script_exit::{self, ScriptEnding};
use crate::handler::script_unsupervised::end_family;
use crate::handler::stopwatch::Stopwatch;
use crate::handler::supervisor_protocol::{
    SupervisorCommand, SupervisorOrder, SupervisorReport, WORD,
};
use crate::handler::{Context, StopReason, UNCONFIRMED};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::process::{Child, Command};
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

/// Interval between two attempts to wake a supervisor that does not report whether its script runs.
const WAKE_EVERY: Duration = Duration::from_millis(200);

/// A script and its supervisor. Dropping this closes the control socket, and the supervisor ends
/// everything.
pub(crate) struct SupervisedScript {
    keeper: Child,
    /// `None` when it was closed.
    leash: Option<OwnedWriteHalf>,
    lines: Lines<BufReader<OwnedReadHalf>>,
    pulse: watch::Receiver<u64>,
    pid: i32,
    family: Family,
    is_lapsed: bool,
    is_out_of_memory: bool,
}

/// Why a script does not run under a supervisor.
pub(crate) enum NoStart {
    /// No supervisor is possible here; nothing was started.
    Unfit(String),
    /// The script cannot be started.
    Failed(String),
    /// It was stopped before it began.
    Stopped(StopReason),
    /// The supervisor was lost while it started the script.
    Lost(String),
}

/// A message from the supervisor of a running script.
enum SupervisorMessage {
    Ended(ExitStatus),
    /// The supervisor has ended, or does not speak the protocol.
    Nothing,
}

impl SupervisedScript {
    /// Starts `program` as supervisor of the plan; `run` is the value of the script's cookie.
    pub(crate) async fn start(
        program: &Path,
        plan: &LaunchPlan,
        run: &str,
        ctx: &Context,
    ) -> Result<Self, NoStart> {
        let mut kept = Self::spawn(program, plan, run, ctx).map_err(NoStart::Unfit)?;
        let first = tokio::select! {
            biased;
            reason = ctx.stopped() => return Err(NoStart::Stopped(reason)),
            said = timeout(ctx.options.kill_confirm, kept.heard()) => said.ok().flatten(),
        };
        match first {
            Some(SupervisorReport::Ready) => {}
            Some(SupervisorReport::Unfit(why)) => return Err(NoStart::Unfit(why)),
            Some(SupervisorReport::Cannot(why)) => return Err(NoStart::Failed(why)),
            _ => {
                let _it_has_ended = kept.keeper.start_kill();
                return Err(NoStart::Unfit(format!("{} is none", program.display())));
            }
        }
        // From here on the script may run, whatever is reported.
        kept.send_command(SupervisorCommand::Alive);
        match kept.first_word(ctx).await {
            Some(SupervisorReport::Started(pid)) => {
                kept.pid = pid;
                kept.family = Family::new(pid, run);
                Ok(kept)
            }
            Some(SupervisorReport::Cannot(why)) => Err(NoStart::Failed(why)),
            _ => Err(NoStart::Lost(kept.supervisor_lost(ctx).await)),
        }
    }

    fn spawn(program: &Path, plan: &LaunchPlan, run: &str, ctx: &Context) -> Result<Self, String> {
        let cannot = |e: std::io::Error| format!("cannot start {}: {e}", program.display());
        let order = SupervisorOrder {
            lease: ctx.options.script_lease,
            process_limits: plan.limits.of_each_process,
            account: plan.account.as_ref().map(|account| account.ids),
            confinement: plan.confinement.clone(),
            cgroup: plan.limits.cgroup.clone(),
            folder: plan.folder.clone(),
            interpreter: plan.interpreter.clone(),
            file: plan.file.clone(),
        };
        // Both ends close at an exec, so no other process ever holds ours.
        let (ours, theirs) = std::os::unix::net::UnixStream::pair().map_err(cannot)?;
        ours.set_nonblocking(true).map_err(cannot)?;
        let (reading, leash) = UnixStream::from_std(ours).map_err(cannot)?.into_split();
        let keeper = Command::new(program)
            .arg0("procession")
            .arg(WORD)
            .args(order.words())
            .env_clear()
            .envs(&plan.variables)
            .stdin(OwnedFd::from(theirs))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(cannot)?;
        let pid = keeper.id().and_then(|pid| i32::try_from(pid).ok()).unwrap_or(0);
        Ok(Self {
            keeper,
            leash: Some(leash),
            lines: BufReader::new(reading).lines(),
            pulse: ctx.pulse.clone(),
            pid,
            family: Family::new(pid, run),
            is_lapsed: false,
            is_out_of_memory: false,
        })
    }

    /// The result of the start. A script may have stopped its supervisor (SIGSTOP) before it could
    /// report; so it is woken until it reports.
    async fn first_word(&mut self, ctx: &Context) -> Option<SupervisorReport> {
        let waking = async {
            loop {
                sleep(WAKE_EVERY).await;
                wake_process(self.keeper.id());
            }
        };
        let too_long = async {
            ctx.stopped().await;
            sleep(ctx.options.kill_confirm).await;
        };
        tokio::select! {
            biased;
            line = self.lines.next_line() => line.ok().flatten().and_then(|line| SupervisorReport::parse_line(&line)),
            () = too_long => None,
            never = waking => never,
        }
    }

    /// The script's process id.
    pub(crate) fn process_id(&self) -> i32 {
        self.pid
    }

    /// The script's output.
    pub(crate) fn pipes(&mut self) -> Pipes {
        (self.keeper.stdout.take(), self.keeper.stderr.take())
    }

    /// Waits for its end, or stops it; handles its remaining processes.
    pub(crate) async fn run_script(&mut self, ctx: &Context) -> ScriptEnding {
        let reason = tokio::select! {
            biased;
            heard = self.wait_for_end(ctx) => return self.by_itself(heard, ctx).await,
            reason = ctx.stopped() => reason,
        };
        ctx.log.add_line(Stream::System, script_exit::stopping(reason));
        let start = Stopwatch::start();
        if !matches!(reason, StopReason::Fenced | StopReason::Disowned) {
            self.family.signal(Signal::SIGTERM);
            if timeout(ctx.options.kill_grace, self.wait_for_end(ctx)).await.is_err() {
                ctx.log.add_line(Stream::System, script_exit::FORCED);
                self.family.signal(Signal::SIGKILL);
            }
        }
        self.let_go();
        match self.wait_until_gone(ctx).await {
            Ok(()) => {
                let seconds = start.elapsed().as_secs_f64();
                ctx.log.add_line(Stream::System, script_exit::ended_words(self.pid, seconds));
                ScriptEnding::Stopped(reason)
            }
            Err(said) => ScriptEnding::Unknown(said),
        }
    }

    /// After an end that was not requested.
    async fn by_itself(&mut self, heard: SupervisorMessage, ctx: &Context) -> ScriptEnding {
        let SupervisorMessage::Ended(status) = heard else {
            return ScriptEnding::Unknown(self.supervisor_lost(ctx).await);
        };
        let is_lapsed = self.is_lapsed;
        if status.success() && !is_lapsed {
            self.send_command(SupervisorCommand::Spare);
        } else {
            self.let_go();
        }
        match self.wait_until_gone(ctx).await {
            Ok(()) if is_lapsed => ScriptEnding::Lapsed,
            Ok(()) if self.is_out_of_memory && !status.success() => {
                ScriptEnding::OutOfMemory(status)
            }
            Ok(()) => ScriptEnding::Own(status),
            Err(said) => ScriptEnding::Unknown(said),
        }
    }

    /// Waits for the end of the script, renewing its lease until then.
    async fn wait_for_end(&mut self, ctx: &Context) -> SupervisorMessage {
        let mut has_pulse = true;
        loop {
            tokio::select! {
                biased;
                line = self.lines.next_line() => match line {
                    Ok(Some(line)) => {
                        if let Some(SupervisorReport::Ended(status)) = self.parse_report(&line, ctx) {
                            return SupervisorMessage::Ended(status);
                        }
                    }
                    Ok(None) | Err(_) => return SupervisorMessage::Nothing,
                },
                beat = self.pulse.changed(), if has_pulse => match beat {
                    Ok(()) => self.send_command(SupervisorCommand::Alive),
                    Err(_) => has_pulse = false,
                },
            }
        }
    }

    /// Waits for the end of the supervisor, which means that all processes are gone.
    async fn wait_until_gone(&mut self, ctx: &Context) -> Result<(), String> {
        let end = async {
            while let Ok(Some(line)) = self.lines.next_line().await {
                self.parse_report(&line, ctx);
            }
            self.keeper.wait().await
        };
        match timeout(ctx.options.kill_confirm, end).await {
            Ok(Ok(status)) if status.success() => Ok(()),
            Ok(_) => Err(self.supervisor_lost(ctx).await),
            Err(_) => {
                let keeper = format!("the keeper of process {}", self.pid);
                Err(format!("{UNCONFIRMED}: {keeper} still finds something of it"))
            }
        }
    }

    /// The message for a supervisor that ended too early; kills everything that can be found.
    async fn supervisor_lost(&mut self, ctx: &Context) -> String {
        self.let_go();
        let how = match timeout(ctx.options.kill_confirm, self.keeper.wait()).await {
            Ok(Ok(status)) => format!("ended early ({status})"),
            Ok(Err(error)) => format!("cannot be waited for: {error}"),
            Err(_) => "does not answer".to_owned(),
        };
        let rest = match end_family(&self.family, ctx).await {
            None => "what could be found of it was killed".to_owned(),
            Some(left) => format!("process {} ({}) still runs", left.pid, left.name),
        };
        format!("how the script ended is not known: its keeper {how}; {rest}")
    }

    /// The next report of the supervisor; `None` when it has ended.
    async fn heard(&mut self) -> Option<SupervisorReport> {
        self.lines
            .next_line()
            .await
            .ok()
            .flatten()
            .and_then(|line| SupervisorReport::parse_line(&line))
    }

    fn parse_report(&mut self, line: &str, ctx: &Context) -> Option<SupervisorReport> {
        let said = SupervisorReport::parse_line(line);
        match &said {
            Some(SupervisorReport::Left(pid, fate, name)) => {
                ctx.log.add_line(Stream::System, script_exit::left_words(*pid, name, *fate));
            }
            Some(SupervisorReport::Lapsed) => self.is_lapsed = true,
            Some(SupervisorReport::OutOfMemory) => {
                self.is_out_of_memory = true;
                ctx.log.add_line(Stream::System, script_exit::OUT_OF_MEMORY);
            }
            Some(SupervisorReport::OutOfProcesses(times)) => {
                ctx.log.add_line(Stream::System, script_exit::out_of_processes(*times));
            }
            _ => {}
        }
        said
    }

    /// Never waits: a supervisor that does not read is as good as none.
    fn send_command(&self, told: SupervisorCommand) {
        if let Some(leash) = &self.leash {
            let _it_has_ended = leash.try_write(&[told as u8]);
        }
    }

    /// Closes the control socket. A stopped supervisor is continued, or it would not notice.
    fn let_go(&mut self) {
        self.leash = None;
        wake_process(self.keeper.id());
    }
}

/// Continues a stopped process of this program.
fn wake_process(pid: Option<u32>) {
    if let Some(pid) = pid.and_then(|pid| i32::try_from(pid).ok()) {
        let _it_has_ended = kill(Pid::from_raw(pid), Signal::SIGCONT);
    }
}

/// Logged once per process, for its operator; each job's log mentions it too.
pub(crate) fn complain(why: &str) {
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {
        tracing::warn!("scripts run without a keeper and outlive a kill -9 of this process: {why}");
    });
}

/// The line in a script's log when there is no supervisor.
pub(crate) fn without(why: &str) -> String {
    format!("runs without a keeper, so it would outlive a kill -9 of this process: {why}")
}
