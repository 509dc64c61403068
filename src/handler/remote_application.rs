//! Runs an application on an external cluster: submitted once, followed to its end, cancelled with
//! proof, and found again after a crash of this process.
//!
//! An application has a key, derived from the idempotency key and the attempt. Its id on the cluster
//! is stored with the row as soon as it is known. What an attempt left behind, because its worker
//! died or shut down, is looked up by the stored id, else by the key, before anything is submitted.

use crate::domain::job::application::{
    ApplicationCall, ApplicationReport, ApplicationState, earlier_attempts,
};
use crate::domain::job::outcome::{AttemptEnd, AttemptOutcome, JobOutputs, Stream};
use crate::domain::params::http_call;
use crate::handler::application_log::{ApplicationLog, PrintedOutputs};
use crate::handler::cluster_api::ClusterApi;
use crate::handler::remote_engine::{ApplicationOrder, Lookup, RemoteEngine, Submission};
use crate::handler::run_on_source::end_of;
use crate::handler::stopwatch::Stopwatch;
use crate::handler::{
    AttemptTask, Context, NOTHING_RUNS, StopReason, StoredApplication, UNCONFIRMED,
};
use std::time::Duration;
use tokio::time::{sleep, timeout};

/// The first pause between two polls.
const FIRST_PAUSE: Duration = Duration::from_millis(200);
/// How long a submission whose answer was lost is looked for.
const LOOKUP: Duration = Duration::from_secs(30);
/// Number of lines of a stack trace that the log keeps.
const STACK_LINES: usize = 60;
/// Time limit of asking for the progress.
const PROGRESS: Duration = Duration::from_secs(5);

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
    let attempt = Attempt { engine, task, ctx, api: &api };
    if task.is_unresolved {
        match attempt.find_earlier(&order).await {
            Found::Application(earlier, id) => return attempt.follow(&earlier, &id).await,
            Found::Stopped(outcome) => return *outcome,
            Found::Nothing => {}
        }
        if !task.job.idempotent {
            return attempt.not_found();
        }
        // If the earlier submission is still under way, a cluster that knows keys refuses the second
        // of the two.
        order = attempt.order_of(&order, task.attempt.saturating_sub(1).max(1));
    }
    attempt.submit(&order).await
}

/// Ends what the last attempt, whose worker died, left on the cluster.
pub(crate) async fn end_orphan(
    engine: &dyn RemoteEngine,
    task: &AttemptTask,
    ctx: &Context,
) -> AttemptOutcome {
    let (call, api) = match open_cluster(task, ctx).await {
        Ok(opened) => opened,
        Err(cause) => return unconfirmed(engine, &cause),
    };
    let attempt = Attempt { engine, task, ctx, api: &api };
    for number in std::iter::once(task.attempt).chain(earlier_attempts(task.attempt)) {
        let order = ApplicationOrder::of_attempt(task, call, Vec::new(), number);
        let found = match attempt.find(&order).await {
            Ok(Lookup::Absent) => continue,
            Ok(Lookup::Found(id)) => engine.read_state(&api, &id).await.map(|state| (id, state)),
            Ok(Lookup::Undecidable(cause)) | Err(cause) => Err(cause),
        };
        match found {
            // The cluster has forgotten it since.
            Ok((id, None)) => return attempt.forgotten(&id),
            Ok((id, Some(report))) if report.state == ApplicationState::Active => {
                return attempt.cancel(&order, &id, StopReason::Killed).await;
            }
            Ok((id, Some(report))) => {
                let log = ApplicationLog::new(engine, ctx, &id);
                return attempt.settle(&id, &report, log).await;
            }
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
    let (call, api) = open_cluster(task, ctx).await?;
    let args = fill_arguments(call, task)?;
    let order = ApplicationOrder::of_attempt(task, call, args, task.attempt);
    engine.check_order(&api, &order).await?;
    Ok((api, order))
}

async fn open_cluster<'a>(
    task: &'a AttemptTask,
    ctx: &Context,
) -> Result<(&'a ApplicationCall, ClusterApi), String> {
    let call = task.job.application.as_deref().ok_or("the job has no application")?;
    let host = call.host.as_deref().ok_or("the application names no host")?;
    Ok((call, ClusterApi::open(host, task, ctx.options.connect_timeout).await?))
}

/// The arguments with the values of the parameters.
pub(crate) fn fill_arguments(
    call: &ApplicationCall,
    task: &AttemptTask,
) -> Result<Vec<String>, String> {
    let fill = |arg: &String| {
        let filled = http_call::fill_argument(arg, &task.params);
        filled.map_err(|fault| format!("argument {arg:?}: {fault}"))
    };
    call.args.iter().map(fill).collect()
}

fn longest_pause(order: &ApplicationOrder<'_>) -> Duration {
    Duration::from_secs(order.call.poll_sec.into())
}

/// What was found of earlier attempts.
enum Found<'a> {
    /// The order and the id of an application.
    Application(Box<ApplicationOrder<'a>>, String),
    Nothing,
    Stopped(Box<AttemptOutcome>),
}

/// One attempt with its cluster.
struct Attempt<'a> {
    engine: &'a dyn RemoteEngine,
    task: &'a AttemptTask,
    ctx: &'a Context,
    api: &'a ClusterApi,
}

impl Attempt<'_> {
    fn log(&self, line: impl Into<String>) {
        self.ctx.log.add_line(Stream::System, line.into());
    }

    fn order_of<'o>(&self, order: &ApplicationOrder<'o>, attempt: u32) -> ApplicationOrder<'o> {
        ApplicationOrder::of_attempt(self.task, order.call, order.args.clone(), attempt)
    }

    /// Looks for the application of an order: by the id that was stored, else by its key.
    async fn find(&self, order: &ApplicationOrder<'_>) -> Result<Lookup, String> {
        let stored = self.ctx.claim.stored_application().await;
        let stored = stored.map_err(|error| format!("cannot read its stored id: {error:#}"))?;
        match stored.filter(|stored| stored.key == order.key) {
            Some(stored) => Ok(Lookup::Found(stored.id)),
            None => self.engine.find(self.api, order).await,
        }
    }

    /// Looks for what earlier attempts submitted; an unavailable cluster is waited for.
    async fn find_earlier<'o>(&self, order: &ApplicationOrder<'o>) -> Found<'o> {
        for number in earlier_attempts(self.task.attempt) {
            let earlier = self.order_of(order, number);
            let longest = longest_pause(order);
            match self.query_patiently(longest, || self.find(&earlier)).await {
                Ok(Lookup::Found(id)) => {
                    self.log(format!("attempt {number} submitted {id}"));
                    return Found::Application(Box::new(earlier), id);
                }
                Ok(Lookup::Absent) => {}
                Ok(Lookup::Undecidable(cause)) => {
                    let said = format!(
                        "{cause}; whether attempt {number} submitted an application is not known"
                    );
                    let outcome = AttemptOutcome::ended(AttemptEnd::Unknown, said).for_good();
                    return Found::Stopped(Box::new(outcome));
                }
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
        self.log(format!("submits {} to {name} at {host} with key {}", order.call.file, order.key));
        match self.engine.submit(self.api, order, self.ctx).await {
            Submission::Accepted(id) => self.follow_new(order, &id).await,
            Submission::Refused(cause) => {
                let said = format!("{name} did not take the application: {cause}");
                AttemptOutcome::ended(AttemptEnd::Failed, said)
            }
            Submission::Lost(cause) => {
                self.log(format!("{cause}; looks for what was submitted"));
                self.look_for(order, &cause).await
            }
        }
    }

    async fn follow_new(&self, order: &ApplicationOrder<'_>, id: &str) -> AttemptOutcome {
        let made = StoredApplication { key: order.key.clone(), id: id.to_owned() };
        if let Err(error) = self.ctx.claim.store_application(made).await {
            self.log(format!("cannot store its id, after a crash it is looked up: {error:#}"));
        }
        self.follow(order, id).await
    }

    /// Follows a submission whose answer was lost, if it arrived.
    async fn look_for(&self, order: &ApplicationOrder<'_>, cause: &str) -> AttemptOutcome {
        let (since, mut why) = (Stopwatch::start(), String::new());
        while since.elapsed() < LOOKUP {
            match self.engine.find(self.api, order).await {
                Ok(Lookup::Found(id)) => {
                    self.log("the submission has arrived");
                    return self.follow_new(order, &id).await;
                }
                Ok(Lookup::Absent) => why.clear(),
                Ok(Lookup::Undecidable(unknown)) => {
                    why = format!("; {unknown}");
                    break;
                }
                Err(unknown) => why = format!("; {unknown}"),
            }
            sleep(FIRST_PAUSE * 5).await;
        }
        let said = format!("{cause}{why}; whether an application was started is not known");
        AttemptOutcome::ended(AttemptEnd::Unknown, said).for_good()
    }

    /// Repeats the query until the cluster answers; an error is the reason to stop.
    async fn query_patiently<T, Q>(
        &self,
        longest_pause: Duration,
        query: impl Fn() -> Q,
    ) -> Result<T, StopReason>
    where
        Q: Future<Output = Result<T, String>>,
    {
        let (mut pause, mut last) = (FIRST_PAUSE, None);
        loop {
            let answer = tokio::select! {
                biased;
                reason = self.ctx.stopped_for_good() => return Err(reason),
                answer = query() => answer,
            };
            let cause = match answer {
                Ok(answer) => {
                    if last.is_some() {
                        self.log(format!("{} answers again", self.engine.name()));
                        self.ctx.claim.waits_on(None).await;
                    }
                    return Ok(answer);
                }
                Err(cause) => cause,
            };
            if last.as_ref() != Some(&cause) {
                self.log(format!("cannot learn of its application: {cause}"));
                self.ctx.claim.waits_on(Some(cause.clone())).await;
                last = Some(cause);
            }
            tokio::select! {
                biased;
                reason = self.ctx.stopped_for_good() => return Err(reason),
                () = sleep(pause) => pause = (pause * 2).min(longest_pause),
            }
        }
    }

    /// Follows an application to its end.
    async fn follow(&self, order: &ApplicationOrder<'_>, id: &str) -> AttemptOutcome {
        let link = self.engine.link(self.api, id);
        self.log(format!("{} application {id}: {link}", self.engine.name()));
        let mut log = ApplicationLog::new(self.engine, self.ctx, id);
        let longest_pause = longest_pause(order);
        let (mut pause, mut last) = (FIRST_PAUSE, String::new());
        loop {
            let query = || self.engine.read_state(self.api, id);
            let mut report = match self.query_patiently(longest_pause, query).await {
                Ok(Some(report)) => report,
                Ok(None) => return self.forgotten(id),
                Err(reason) => return self.stop(order, id, reason).await,
            };
            if report.state == ApplicationState::Active {
                let stopped = tokio::select! {
                    biased;
                    reason = self.ctx.stopped_for_good() => Some(reason),
                    () = self.read_details(order, &mut report, &mut log) => None,
                };
                if let Some(reason) = stopped {
                    return self.stop(order, id, reason).await;
                }
            }
            let line = format!("{} {}", report.word, report.progress);
            if line != last {
                self.log(line.trim_end());
                last = line;
            }
            if report.state != ApplicationState::Active {
                log.copy_rest(self.api).await;
                return self.settle(id, &report, log).await;
            }
            tokio::select! {
                biased;
                reason = self.ctx.stopped_for_good() => return self.stop(order, id, reason).await,
                () = sleep(pause) => pause = (pause * 3 / 2).min(longest_pause),
            }
        }
    }

    /// Copies the log and adds the progress of a running application.
    async fn read_details(
        &self,
        order: &ApplicationOrder<'_>,
        report: &mut ApplicationReport,
        log: &mut ApplicationLog<'_>,
    ) {
        log.copy_new(self.api).await;
        if report.progress.is_empty() {
            let progress = timeout(PROGRESS, self.engine.read_progress(self.api, order)).await;
            report.progress = progress.ok().flatten().unwrap_or_default();
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

    async fn stop(
        &self,
        order: &ApplicationOrder<'_>,
        id: &str,
        reason: StopReason,
    ) -> AttemptOutcome {
        match reason {
            StopReason::TimedOut | StopReason::Killed => self.cancel(order, id, reason).await,
            // The next attempt looks it up.
            StopReason::HandedBack | StopReason::Fenced | StopReason::Disowned => {
                let said = format!("this process leaves; application {id} runs on");
                AttemptOutcome::ended(AttemptEnd::Unknown, said)
            }
        }
    }

    /// Requests its cancellation and waits until it is gone.
    async fn cancel(
        &self,
        order: &ApplicationOrder<'_>,
        id: &str,
        reason: StopReason,
    ) -> AttemptOutcome {
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
                        match self.engine.is_gone(self.api, order).await {
                            Ok(true) => {
                                let said = format!("application {id} was cancelled, and is gone");
                                return AttemptOutcome::ended(end_of(reason), said);
                            }
                            Ok(false) => cause = "parts of it still end".to_owned(),
                            Err(unreachable) => cause = unreachable,
                        }
                    }
                    ApplicationState::Active => {}
                    ApplicationState::Finished
                    | ApplicationState::Failed
                    | ApplicationState::Suspended => {
                        let mut log = ApplicationLog::new(self.engine, self.ctx, id);
                        log.copy_rest(self.api).await;
                        return self.settle(id, &report, log).await;
                    }
                },
                Ok(None) => return self.forgotten(id),
                Err(unreachable) => cause = unreachable,
            }
            sleep(FIRST_PAUSE).await;
        }
        unconfirmed(self.engine, &cause)
    }

    /// The outcome of an application that has ended.
    async fn settle(
        &self,
        id: &str,
        report: &ApplicationReport,
        log: ApplicationLog<'_>,
    ) -> AttemptOutcome {
        let error_log = log.last_lines();
        let printed = log.finish();
        let ended = match report.state {
            ApplicationState::Finished => match &printed {
                Ok(_) => AttemptOutcome::success(JobOutputs::default()),
                Err(why) => AttemptOutcome::ended(AttemptEnd::Failed, why.clone()).for_good(),
            },
            ApplicationState::Failed => self.failed(id, &error_log).await,
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
        AttemptOutcome { outputs: self.outputs(id, report, printed.ok()).await, ..ended }
    }

    async fn failed(&self, id: &str, error_log: &str) -> AttemptOutcome {
        let name = self.engine.name();
        let Some(cause) = self.engine.read_failure(self.api, id, error_log).await else {
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

    async fn outputs(
        &self,
        id: &str,
        report: &ApplicationReport,
        printed: Option<PrintedOutputs>,
    ) -> JobOutputs {
        let (limits, mut outputs) = (self.ctx.options.outputs, JobOutputs::default());
        if let Some(printed) = printed {
            (outputs.values, outputs.unusable) = (printed.values, printed.unusable);
        }
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
