//! Decides for one job after the other which of its runs starts next, and on which executor.

use super::{CallDecision, DecidedCall, Fresh};
use crate::domain::executor::GluePolicy;
use crate::domain::executor::block::{BlockDecision as Enter, BlockStrategy, Busy};
use crate::domain::executor::route::{Choice, RouteStrategy, choose};
use crate::domain::executor::run_wait::RunWait;
use crate::domain::job::retry::jitter_seed;
use crate::domain::permission::access_rules::{ForbiddenUse, SharedResource};
use crate::domain::time::Millis;
use crate::domain::xxl::executor_run::{RunStatus, StopWhy, UnreportedEnd};
use crate::domain::xxl::xxl_run::AppName;
use crate::engine::xxl::admin::Admin;
use crate::engine::xxl::admin::run_state::{Candidates, ExecutorCallState, RunRegister};
use crate::handler::remote::{RemoteBody, RemoteCall};
use crate::remote::executors::ExecutorAddress;
use crate::store::Tx;
use crate::store::executor_run::{self as rows, ExecutorRunRow, RunExecutorGroup};
use anyhow::Result;
use std::collections::{BTreeSet, HashMap, VecDeque};

/// Data that are read once for all calls of a transaction.
pub(super) struct DispatchContext<'a> {
    pub(super) admin: &'a Admin,
    pub(super) now: Millis,
    pub(super) groups: HashMap<AppName, Option<RunExecutorGroup>>,
    /// How often each job has been routed, including this transaction.
    pub(super) rounds: HashMap<i64, i64>,
    /// Jobs that were routed in this transaction.
    pub(super) turned: BTreeSet<i64>,
}

/// The calls of one job that have just come, and the runs of the job that are not over.
pub(super) struct JobCalls<'r> {
    pub(super) job_id: i64,
    pub(super) fresh: Vec<Fresh>,
    pub(super) open: &'r [ExecutorRunRow],
}

/// What the calls of a job that were decided leave to those behind them.
#[derive(Clone, Copy, Debug, Default)]
struct JobTurn {
    /// One is being sent.
    is_taken: bool,
    /// One waits, and those behind it wait too.
    is_waiting: bool,
}

impl JobTurn {
    fn note(&mut self, decision: &CallDecision) {
        self.is_taken |= matches!(decision, CallDecision::Ask(_));
        self.is_waiting |= matches!(decision, CallDecision::Wait(_) | CallDecision::Test(_));
    }
}

impl<'a> DispatchContext<'a> {
    pub(super) fn new(admin: &'a Admin, now: Millis) -> Self {
        let (groups, rounds, turned) = (HashMap::new(), HashMap::new(), BTreeSet::new());
        Self { admin, now, groups, rounds, turned }
    }

    pub(super) async fn group(
        &mut self,
        tx: &mut Tx,
        app: &AppName,
    ) -> Result<Option<&RunExecutorGroup>> {
        if !self.groups.contains_key(app) {
            let group = rows::group(tx, app, self.now).await?;
            self.groups.insert(app.clone(), group);
        }
        Ok(self.groups.get(app).and_then(Option::as_ref))
    }

    pub(super) async fn with_targets(
        &mut self,
        tx: &mut Tx,
        runs: Vec<ExecutorRunRow>,
    ) -> Result<Vec<(ExecutorRunRow, Option<ExecutorAddress>)>> {
        let mut found = Vec::new();
        for run in runs {
            let admin = self.admin;
            let group = self.group(tx, &run.app_name).await?;
            let to = group.zip(run.address.as_deref());
            let to = to.and_then(|(group, at)| admin.target(&run.app_name, group, at).ok());
            found.push((run, to));
        }
        Ok(found)
    }

    /// Decides about the runs of one job: first those in the queue, then new ones.
    pub(super) async fn of_job<'b>(
        &mut self,
        tx: &mut Tx,
        book: &'b RunRegister,
        calls: JobCalls<'_>,
        decided: &mut Vec<DecidedCall<'b>>,
    ) -> Result<()> {
        let (job_id, open) = (calls.job_id, calls.open);
        let mut turn = JobTurn::default();
        for id in book.lines.get(&job_id).into_iter().flatten() {
            let Some(call) = book.calls.get(id) else { continue };
            let Some(ask) = &call.ask else { continue };
            let is_mine = |run: &&ExecutorRunRow| {
                run.queue_id == call.queue_id && run.run_no == call.run_no && !run.is_unconfirmed()
            };
            let sent = open.iter().find(|run| is_sent(run) && !is_mine(run));
            let busy = turn.is_taken || sent.is_some();
            if let Some(sent) = sent {
                book.waits_for(*id, Some(wait_for(ask.block, sent)));
            }
            let entry = (call.run_no, call.batch_id);
            let decision = match &call.candidates {
                _ if busy || turn.is_waiting => CallDecision::Wait(None),
                Some(Candidates { at: Some(to), is_fit: true, .. }) => {
                    CallDecision::Ask(vec![to.clone()])
                }
                Some(_) => CallDecision::Wait(None),
                None => self.route(tx, call, ask, job_id).await?,
            };
            turn.note(&decision);
            if !matches!(decision, CallDecision::Wait(_)) {
                decided.push(DecidedCall { id: *id, call, ask, entry, job_id, decision });
            }
            if turn.is_taken || turn.is_waiting {
                turn.is_waiting = true;
                break;
            }
        }
        self.of_fresh(tx, book, calls, turn, decided).await
    }

    /// The same for new calls, after those in the queue.
    async fn of_fresh<'b>(
        &mut self,
        tx: &mut Tx,
        book: &'b RunRegister,
        JobCalls { job_id, fresh, open }: JobCalls<'_>,
        mut turn: JobTurn,
        decided: &mut Vec<DecidedCall<'b>>,
    ) -> Result<()> {
        let covers = |one: &Fresh| {
            let ask = book.calls.get(&one.id).and_then(|call| call.ask.as_ref());
            ask.is_some_and(|ask| ask.block == BlockStrategy::Cover)
        };
        let last_cover = fresh.iter().rposition(covers);
        for (n, Fresh { id, entry, .. }) in fresh.into_iter().enumerate() {
            let Some(call) = book.calls.get(&id) else { continue };
            let Some(ask) = &call.ask else { continue };
            let is_mine = |run: &&ExecutorRunRow| {
                run.queue_id == call.queue_id && run.run_no == entry.run_no && !run.is_unconfirmed()
            };
            let others: Vec<&ExecutorRunRow> = open.iter().filter(|run| !is_mine(run)).collect();
            let sent = turn.is_taken || others.iter().any(|run| is_sent(run));
            let any = sent || turn.is_waiting || !others.is_empty();
            let decision = match ask.block.decide(if any { Busy::Busy } else { Busy::Idle }) {
                // It would have no row that the later run could stop.
                _ if last_cover.is_some_and(|last| n < last) => CallDecision::End(
                    UnreportedEnd::Stopped(StopWhy::Covered),
                    LATER_CAME.to_owned(),
                ),
                Enter::Refuse => CallDecision::End(UnreportedEnd::Discarded, discarded(&others)),
                Enter::StopAndTake => {
                    let ids: Vec<i64> = others.iter().map(|run| run.log_id.0).collect();
                    rows::stop_others(tx, &ids, LATER_CAME, self.now).await?;
                    match sent {
                        true => {
                            let earlier = others.iter().find(|run| is_sent(run));
                            CallDecision::Wait(earlier.map(|run| wait_for(ask.block, run)))
                        }
                        false => self.route(tx, call, ask, job_id).await?,
                    }
                }
                Enter::Take if sent || turn.is_waiting => {
                    let before = others.iter().max_by_key(|run| run.log_id);
                    CallDecision::Wait(before.map(|run| wait_for(ask.block, run)))
                }
                Enter::Take => self.route(tx, call, ask, job_id).await?,
            };
            turn.note(&decision);
            let entry = (entry.run_no, entry.batch_id);
            decided.push(DecidedCall { id, call, ask, entry, job_id, decision });
        }
        Ok(())
    }

    /// Chooses the executor of a run that may start.
    async fn route(
        &mut self,
        tx: &mut Tx,
        call: &ExecutorCallState,
        ask: &RemoteCall,
        job_id: i64,
    ) -> Result<CallDecision> {
        let (admin, now, app) = (self.admin, self.now, &ask.app);
        let rounds = self.rounds.get(&job_id).copied().unwrap_or(0);
        let Some(group) = self.group(tx, app).await? else {
            let cure = format!("add it: procession executor-group add {app}");
            let said = format!("there is no executor group {app}; {cure}");
            return Ok(CallDecision::End(UnreportedEnd::NotReached, said));
        };
        // Checked again here, because the permissions may have changed since the batch was opened.
        let resource = SharedResource::ExecutorGroup(app.to_string());
        if let Err(found) = ForbiddenUse::check(&ask.group, resource, &group.access) {
            let said = format!("{found}; {}", found.hint_text());
            return Ok(CallDecision::End(UnreportedEnd::Refused, said));
        }
        if matches!(ask.what, RemoteBody::Glue { .. }) && group.glue == GluePolicy::Refused {
            let said = format!(
                "scripts may not be sent to executor group {app}; whoever administers it can allow that: \
                 procession executor-group set {app} --allow-glue"
            );
            return Ok(CallDecision::End(UnreportedEnd::Refused, said));
        }
        let addresses = &group.addresses;
        let targets: Result<Vec<ExecutorAddress>, String> =
            addresses.iter().map(|at| admin.target(app, group, at)).collect();
        let targets = match targets {
            Ok(targets) => targets,
            Err(said) => return Ok(CallDecision::End(UnreportedEnd::NotReached, said)),
        };
        let roll = jitter_seed(call.queue_id.0, call.attempt);
        let state = rows::route_state(tx, job_id, ask.route, roll, rounds, now).await?;
        let at = |address: &String| targets.iter().find(|to| to.address == *address).cloned();
        Ok(match choose(ask.route, addresses, &state) {
            Choice::Nowhere => {
                let said = format!("no executor of group {app} is registered");
                CallDecision::End(UnreportedEnd::NotReached, said)
            }
            Choice::To(address) => {
                self.count(tx, job_id, ask.route, &address).await?;
                CallDecision::Ask(at(&address).into_iter().collect())
            }
            Choice::ToAll(all) => CallDecision::Ask(all.iter().filter_map(at).collect()),
            Choice::FirstThat(test, all) => {
                let mut left: VecDeque<ExecutorAddress> = all.iter().filter_map(at).collect();
                let first = left.pop_front();
                let said = Vec::new();
                CallDecision::Test(Candidates { test, left, at: first, is_fit: false, said })
            }
        })
    }

    async fn count(
        &mut self,
        tx: &mut Tx,
        job_id: i64,
        route: RouteStrategy,
        address: &str,
    ) -> Result<()> {
        match route {
            RouteStrategy::Round => {
                *self.rounds.entry(job_id).or_default() += 1;
                self.turned.insert(job_id);
                Ok(())
            }
            RouteStrategy::LeastFrequentlyUsed | RouteStrategy::LeastRecentlyUsed => {
                rows::note_use(tx, job_id, address, self.now).await
            }
            RouteStrategy::First | RouteStrategy::Last | RouteStrategy::Random => Ok(()),
            RouteStrategy::ConsistentHash | RouteStrategy::Failover => Ok(()),
            RouteStrategy::Busyover | RouteStrategy::ShardingBroadcast => Ok(()),
        }
    }
}

/// Message of a run that a later one covers.
const LATER_CAME: &str = "a later run came";

/// What a run that follows another waits for.
fn wait_for(block: BlockStrategy, earlier: &ExecutorRunRow) -> RunWait {
    match block {
        _ if earlier.is_unconfirmed() => RunWait::Confirmation(earlier.log_id),
        BlockStrategy::Cover => RunWait::Cover(earlier.log_id),
        BlockStrategy::Serial | BlockStrategy::Discard => RunWait::Turn(earlier.log_id),
    }
}

fn discarded(others: &[&ExecutorRunRow]) -> String {
    if let Some(run) = others.iter().find(|run| run.is_unconfirmed()) {
        return format!(
            "{}, and its block strategy is DISCARD_LATER",
            RunWait::Confirmation(run.log_id)
        );
    }
    let other = others.first().map(|run| format!("run {}", run.log_id));
    let other = other.unwrap_or_else(|| "an earlier run".to_owned());
    format!("{other} of this job is not over, and its block strategy is DISCARD_LATER")
}

/// Whether an executor may be running it, or is about to receive it.
fn is_sent(run: &ExecutorRunRow) -> bool {
    matches!(run.status, RunStatus::Asked | RunStatus::Running) || run.is_unconfirmed()
}
