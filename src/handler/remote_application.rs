//! Runs an application on an external cluster: submitted once, followed to its end, cancelled with
//! proof, and found again after a crash of this process. An engine is one implementation of
//! `RemoteEngine`.
//!
//! The id of an application is derived from the idempotency key and the attempt. What an attempt
//! left behind, because its worker died or shut down, is looked up by that id before anything is
//! submitted.

use crate::domain::job::application::{
    ApplicationCall, ApplicationReport, ApplicationState, earlier_attempts,
};
use crate::domain::job::outcome::{AttemptEnd, AttemptOutcome, JobOutputs, Stream};
use crate::domain::params::http_call;
use crate::handler::cluster_api::ClusterApi;
use crate::handler::run_on_source::end_of;
use crate::handler::stopwatch::Stopwatch;
use crate::handler::{AttemptTask, Context, NOTHING_RUNS, StopReason, UNCONFIRMED};
use futures_util::future::BoxFuture;
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::time::sleep;

/// The first pause between two polls.
const FIRST_PAUSE: Duration = Duration::from_millis(200);
/// How long a submission whose answer was lost is looked for.
const LOOKUP: Duration = Duration::from_secs(30);
/// Number of lines of a stack trace that the log keeps.
const STACK_LINES: usize = 60;

/// What to submit.
pub(crate) struct ApplicationOrder<'a> {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) args: Vec<String>,
    pub(crate) call: &'a ApplicationCall,
}

/// The result of a submission.
pub(crate) enum Submission {
    /// The cluster has it, perhaps since an earlier submission with the same id.
    Accepted,
    /// The cluster does not run it, and why.
    Refused(String),
    /// The answer was lost: the cluster may run it.
    Lost(String),
}

/// Why an application failed.
pub(crate) struct FailureCause {
    pub(crate) sentence: String,
    pub(crate) stack: String,
}

/// A kind of cluster. It must refuse a second application with an id that it remembers.
pub(crate) trait RemoteEngine: Send + Sync {
    /// The display name.
    fn name(&self) -> &'static str;

    /// The id of the application of an attempt.
    fn application_id(&self, task: &AttemptTask, attempt: u32) -> String;

    /// The link to its page in the cluster's user interface.
    fn link(&self, api: &ClusterApi, id: &str) -> String;

    /// Submits it once.
    fn submit<'a>(
        &'a self,
        api: &'a ClusterApi,
        order: &'a ApplicationOrder<'a>,
        ctx: &'a Context,
    ) -> BoxFuture<'a, Submission>;

    /// The cluster's report on it; `None` when it knows none with this id.
    fn read_state<'a>(
        &'a self,
        api: &'a ClusterApi,
        id: &'a str,
    ) -> BoxFuture<'a, Result<Option<ApplicationReport>, String>>;

    /// Requests its cancellation; whether it is gone is read from its state.
    fn cancel<'a>(&'a self, api: &'a ClusterApi, id: &'a str) -> BoxFuture<'a, Result<(), String>>;

    /// Why it failed, as far as the cluster knows.
    fn read_failure<'a>(
        &'a self,
        api: &'a ClusterApi,
        id: &'a str,
    ) -> BoxFuture<'a, Option<FailureCause>>;

    /// Its outputs besides its state.
    fn read_results<'a>(
        &'a self,
        api: &'a ClusterApi,
        id: &'a str,
    ) -> BoxFuture<'a, BTreeMap<String, String>>;
}

/// Runs one attempt.
pub(crate) async fn run(
    engine: &dyn RemoteEngine,
    task: &AttemptTask,
    ctx: &Context,
) -> AttemptOutcome {
    let refused = |cause: String| {
        AttemptOutcome::ended(AttemptEnd::Failed, format!("{cause}; nothing was submitted"))
            .before_it_began()
    };
    let (api, mut order) = match prepare(engine, task, ctx).await {
        Ok(prepared) => prepared,
        Err(cause) => return refused(cause),
    };
    tokio::select! {
        biased;
        reason = ctx.stopped() => {
            return AttemptOutcome::ended(end_of(reason), "stopped before it began").before_it_began();
        }
        claimed = ctx.claimed() => if let Err(cause) = claimed { return refused(cause); }
    }
    let attempt = Attempt { engine, task, ctx, api: &api, longest_pause: longest_pause(&order) };
    if task.is_unresolved {
        match attempt.find_earlier().await {
            Found::Application(id) => return attempt.follow(&id).await,
            Found::Stopped(outcome) => return *outcome,
            Found::Nothing => {}
        }
        if !task.job.idempotent {
            return attempt.not_found();
        }
        // If the earlier submission is still under way, the cluster refuses the second of the two.
        order.id = engine.application_id(task, task.attempt.saturating_sub(1).max(1));
    }
    attempt.submit(&order).await
}

/// Ends what the last attempt, whose worker died, left on the cluster.
pub(crate) async fn end_orphan(
    engine: &dyn RemoteEngine,
    task: &AttemptTask,
    ctx: &Context,
) -> AttemptOutcome {
    let opened = match &task.job.application {
        Some(call) => ClusterApi::open(&call.host, task, ctx.options.connect_timeout).await,
        None => Err("the job has no application".to_owned()),
    };
    let api = match opened {
        Ok(api) => api,
        Err(cause) => return unconfirmed(engine, &cause),
    };
    let attempt = Attempt { engine, task, ctx, api: &api, longest_pause: FIRST_PAUSE };
    for number in std::iter::once(task.attempt).chain(earlier_attempts(task.attempt)) {
        let id = engine.application_id(task, number);
        match engine.read_state(&api, &id).await {
            Ok(None) => {}
            Ok(Some(report)) if report.state == ApplicationState::Active => {
                return attempt.cancel(&id, StopReason::Killed).await;
            }
            Ok(Some(report)) => return attempt.settle(&id, &report).await,
            Err(cause) => return unconfirmed(engine, &cause),
        }
    }
    let said = format!("{NOTHING_RUNS}: {} knows no application of this job", engine.name());
    AttemptOutcome::ended(AttemptEnd::Unknown, said)
}

fn unconfirmed(engine: &dyn RemoteEngine, cause: &str) -> AttemptOutcome {
    let said =
        format!("{UNCONFIRMED}: {cause}; its application may still run on {}", engine.name());
    AttemptOutcome::ended(AttemptEnd::Unknown, said)
}

async fn prepare<'a>(
    engine: &dyn RemoteEngine,
    task: &'a AttemptTask,
    ctx: &Context,
) -> Result<(ClusterApi, ApplicationOrder<'a>), String> {
    let call = task.job.application.as_deref().ok_or("the job has no application")?;
    let fill = |arg: &String| {
        let filled = http_call::fill_argument(arg, &task.params);
        filled.map_err(|fault| format!("argument {arg:?}: {fault}"))
    };
    let args = call.args.iter().map(fill).collect::<Result<_, _>>()?;
    let api = ClusterApi::open(&call.host, task, ctx.options.connect_timeout).await?;
    let id = engine.application_id(task, task.attempt);
    Ok((api, ApplicationOrder { id, name: task.idem_key.clone(), args, call }))
}

fn longest_pause(order: &ApplicationOrder<'_>) -> Duration {
    Duration::from_secs(order.call.poll_sec.into())
}

/// What was found of earlier attempts.
enum Found {
    Application(String),
    Nothing,
    Stopped(Box<AttemptOutcome>),
}

/// One attempt with its cluster.
struct Attempt<'a> {
    engine: &'a dyn RemoteEngine,
    task: &'a AttemptTask,
    ctx: &'a Context,
    api: &'a ClusterApi,
    longest_pause: Duration,
}

impl Attempt<'_> {
    fn log(&self, line: impl Into<String>) {
        self.ctx.log.add_line(Stream::System, line.into());
    }

    /// Looks for what earlier attempts submitted; an unavailable cluster is waited for.
    async fn find_earlier(&self) -> Found {
        for number in earlier_attempts(self.task.attempt) {
            let id = self.engine.application_id(self.task, number);
            match self.query_patiently(&id).await {
                Ok(Some(report)) => {
                    self.log(format!("attempt {number} submitted {id}, which is {}", report.word));
                    return Found::Application(id);
                }
                Ok(None) => {}
                Err(reason) => {
                    let said = "stopped while its earlier application was looked up; what became of \
                                it is not known";
                    let end = match reason {
                        StopReason::TimedOut | StopReason::Killed => AttemptEnd::Unknown,
                        StopReason::HandedBack | StopReason::Fenced | StopReason::Disowned => {
                            end_of(reason)
                        }
                    };
                    return Found::Stopped(Box::new(
                        AttemptOutcome::ended(end, said).before_it_began(),
                    ));
                }
            }
        }
        Found::Nothing
    }

    fn not_found(&self) -> AttemptOutcome {
        let name = self.engine.name();
        let said = format!(
            "{name} knows no application of an earlier attempt: none was submitted, or {name} was \
             started anew and forgot it; look at what it wrote, then rerun the job or mark it done \
             (a job that is idempotent is submitted again)"
        );
        AttemptOutcome::ended(AttemptEnd::Unknown, said).for_good()
    }

    async fn submit(&self, order: &ApplicationOrder<'_>) -> AttemptOutcome {
        let (name, host) = (self.engine.name(), &self.api.host);
        self.log(format!("submits {} to {name} at {host} as {}", order.call.file, order.id));
        match self.engine.submit(self.api, order, self.ctx).await {
            Submission::Accepted => self.follow(&order.id).await,
            Submission::Refused(cause) => {
                let said = format!("{name} did not take the application: {cause}");
                AttemptOutcome::ended(AttemptEnd::Failed, said)
            }
            Submission::Lost(cause) => {
                self.log(format!("{cause}; looks for {}", order.id));
                self.look_for(&order.id, &cause).await
            }
        }
    }

    /// Follows a submission whose answer was lost, if it arrived.
    async fn look_for(&self, id: &str, cause: &str) -> AttemptOutcome {
        let since = Stopwatch::start();
        while since.elapsed() < LOOKUP {
            if let Ok(Some(_)) = self.engine.read_state(self.api, id).await {
                self.log("the submission has arrived");
                return self.follow(id).await;
            }
            sleep(FIRST_PAUSE * 5).await;
        }
        let said = format!("{cause}; whether application {id} was started is not known");
        AttemptOutcome::ended(AttemptEnd::Unknown, said)
    }

    /// Repeats the query until the cluster answers; an error is the reason to stop.
    async fn query_patiently(&self, id: &str) -> Result<Option<ApplicationReport>, StopReason> {
        let (mut pause, mut last) = (FIRST_PAUSE, None);
        loop {
            let answer = tokio::select! {
                biased;
                reason = self.ctx.stopped_for_good() => return Err(reason),
                answer = self.engine.read_state(self.api, id) => answer,
            };
            let cause = match answer {
                Ok(report) => {
                    if last.is_some() {
                        self.log(format!("{} answers again", self.engine.name()));
                        self.ctx.claim.waits_on(None).await;
                    }
                    return Ok(report);
                }
                Err(cause) => cause,
            };
            if last.as_ref() != Some(&cause) {
                self.log(format!("cannot ask for {id}: {cause}"));
                self.ctx.claim.waits_on(Some(cause.clone())).await;
                last = Some(cause);
            }
            tokio::select! {
                biased;
                reason = self.ctx.stopped_for_good() => return Err(reason),
                () = sleep(pause) => pause = (pause * 2).min(self.longest_pause),
            }
        }
    }

    /// Follows an application to its end.
    async fn follow(&self, id: &str) -> AttemptOutcome {
        self.log(format!(
            "{} application {id}: {}",
            self.engine.name(),
            self.engine.link(self.api, id)
        ));
        let (mut pause, mut last) = (FIRST_PAUSE, String::new());
        loop {
            let report = match self.query_patiently(id).await {
                Ok(Some(report)) => report,
                Ok(None) => return self.forgotten(id),
                Err(reason) => return self.stop(id, reason).await,
            };
            let line = format!("{} {}", report.word, report.progress);
            if line != last {
                self.log(line.trim_end());
                last = line;
            }
            if report.state != ApplicationState::Active {
                return self.settle(id, &report).await;
            }
            tokio::select! {
                biased;
                reason = self.ctx.stopped_for_good() => return self.stop(id, reason).await,
                () = sleep(pause) => pause = (pause * 3 / 2).min(self.longest_pause),
            }
        }
    }

    fn forgotten(&self, id: &str) -> AttemptOutcome {
        let name = self.engine.name();
        let said = format!(
            "{name} does not know application {id} any more: it was started anew; what the \
             application did is not known"
        );
        AttemptOutcome::ended(AttemptEnd::Unknown, said).for_good()
    }

    async fn stop(&self, id: &str, reason: StopReason) -> AttemptOutcome {
        match reason {
            StopReason::TimedOut | StopReason::Killed => self.cancel(id, reason).await,
            // The next attempt looks it up.
            StopReason::HandedBack | StopReason::Fenced | StopReason::Disowned => {
                let said = format!("this process leaves; application {id} runs on");
                AttemptOutcome::ended(AttemptEnd::Unknown, said)
            }
        }
    }

    /// Requests its cancellation and waits until it is gone.
    async fn cancel(&self, id: &str, reason: StopReason) -> AttemptOutcome {
        self.log(format!("cancels application {id}"));
        let since = Stopwatch::start();
        let mut cause = "it did not end".to_owned();
        while since.elapsed() < self.ctx.options.kill_confirm {
            if let Err(refused) = self.engine.cancel(self.api, id).await {
                cause = refused;
            }
            match self.engine.read_state(self.api, id).await {
                Ok(Some(report)) => match report.state {
                    ApplicationState::Cancelled => {
                        let said = format!("application {id} was cancelled, and is gone");
                        return AttemptOutcome::ended(end_of(reason), said);
                    }
                    ApplicationState::Active => {}
                    ApplicationState::Finished
                    | ApplicationState::Failed
                    | ApplicationState::Suspended => return self.settle(id, &report).await,
                },
                Ok(None) => return self.forgotten(id),
                Err(unreachable) => cause = unreachable,
            }
            sleep(FIRST_PAUSE).await;
        }
        unconfirmed(self.engine, &cause)
    }

    /// The outcome of an application that has ended.
    async fn settle(&self, id: &str, report: &ApplicationReport) -> AttemptOutcome {
        let ended = match report.state {
            ApplicationState::Finished => AttemptOutcome::success(JobOutputs::default()),
            ApplicationState::Failed => self.failed(id).await,
            ApplicationState::Cancelled => {
                let said =
                    format!("application {id} was cancelled on the cluster by another client");
                AttemptOutcome::ended(AttemptEnd::Failed, said)
            }
            ApplicationState::Suspended | ApplicationState::Active => {
                let said = format!("application {id} is {}; what it did is not known", report.word);
                AttemptOutcome::ended(AttemptEnd::Unknown, said)
            }
        };
        AttemptOutcome { outputs: self.outputs(id, report).await, ..ended }
    }

    async fn failed(&self, id: &str) -> AttemptOutcome {
        let name = self.engine.name();
        let Some(cause) = self.engine.read_failure(self.api, id).await else {
            let said = format!("application {id} failed, and {name} gives no cause");
            return AttemptOutcome::ended(AttemptEnd::Failed, said);
        };
        for line in cause.stack.lines().take(STACK_LINES) {
            self.ctx.log.add_line(Stream::Stderr, line);
        }
        AttemptOutcome::ended(
            AttemptEnd::Failed,
            format!("application {id} failed: {}", cause.sentence),
        )
    }

    async fn outputs(&self, id: &str, report: &ApplicationReport) -> JobOutputs {
        let (limits, mut outputs) = (self.ctx.options.outputs, JobOutputs::default());
        let results = self.engine.read_results(self.api, id).await;
        for (at, (name, value)) in results.into_iter().enumerate() {
            if at >= limits.max_count {
                let reason = "there are more results than outputs.max_count; raise it".to_owned();
                outputs.unusable.insert(name, reason);
            } else if value.len() > limits.max_value_bytes {
                let reason = limits.too_long(&format!("result {name}"), value.len());
                outputs.unusable.insert(name, reason);
            } else {
                outputs.values.insert(name, Some(value));
            }
        }
        let own = [
            ("application_id", Some(id.to_owned())),
            ("application_state", Some(report.word.clone())),
            ("application_url", Some(self.engine.link(self.api, id))),
            ("application_ms", report.duration_ms.map(|ms| ms.to_string())),
        ];
        outputs.values.extend(own.map(|(name, value)| (name.to_owned(), value)));
        outputs
    }
}
