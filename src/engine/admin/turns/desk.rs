//! One job after the other: whose turn it is, and which executor it is sent to.

use super::{Decided, Decision, Fresh};
use crate::domain::block::{Busy, Entry as Enter};
use crate::domain::executor::Glue;
use crate::domain::executor_run::{Ended, RunStatus};
use crate::domain::retry::roll;
use crate::domain::route::{Choice, RouteStrategy, choose};
use crate::domain::time::Millis;
use crate::domain::xxl_run::AppName;
use crate::engine::admin::Admin;
use crate::engine::admin::book::{Book, Call, Candidates};
use crate::handler::remote::{RemoteBody, RemoteCall};
use crate::remote::executors::To;
use crate::store::Tx;
use crate::store::executor_run::{self as rows, Group, Run};
use anyhow::Result;
use std::collections::{HashMap, VecDeque};

/// What is read once for all calls of a transaction.
pub(super) struct Desk<'a> {
    pub(super) admin: &'a Admin,
    pub(super) now: Millis,
    pub(super) groups: HashMap<AppName, Option<Group>>,
}

impl Desk<'_> {
    pub(super) async fn group(&mut self, tx: &mut Tx, app: &AppName) -> Result<Option<&Group>> {
        if !self.groups.contains_key(app) {
            let group = rows::group(tx, app, self.now).await?;
            self.groups.insert(app.clone(), group);
        }
        Ok(self.groups.get(app).and_then(Option::as_ref))
    }

    pub(super) async fn with_targets(
        &mut self,
        tx: &mut Tx,
        runs: Vec<Run>,
    ) -> Result<Vec<(Run, Option<To>)>> {
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

    /// Gives the turns of one job: first to those in line, then to those that have just come.
    pub(super) async fn of_job<'b>(
        &mut self,
        tx: &mut Tx,
        book: &'b Book,
        (job_id, fresh, open): (i64, Vec<Fresh>, &[Run]),
        decided: &mut Vec<Decided<'b>>,
    ) -> Result<()> {
        let mut taken = false;
        let mut waiting = false;
        for id in book.lines.get(&job_id).into_iter().flatten() {
            let Some(call) = book.calls.get(id) else { continue };
            let Some(ask) = &call.ask else { continue };
            let is_mine = |run: &Run| run.queue_id == call.queue_id && run.run_no == call.run_no;
            let busy = taken || open.iter().any(|run| is_sent(run) && !is_mine(run));
            let entry = (call.run_no, call.batch_id);
            let decision = match &call.candidates {
                _ if busy || waiting => Decision::Wait,
                Some(Candidates { at: Some(to), is_fit: true, .. }) => {
                    Decision::Ask(vec![to.clone()])
                }
                Some(_) => Decision::Wait,
                None => self.route(tx, (call, ask), job_id).await?,
            };
            taken |= matches!(decision, Decision::Ask(_));
            waiting |= matches!(decision, Decision::Wait | Decision::Test(_));
            if !matches!(decision, Decision::Wait) {
                decided.push(Decided { id: *id, call, ask, entry, job_id, decision });
            }
            if taken || waiting {
                waiting = true;
                break;
            }
        }
        self.of_fresh(tx, book, (job_id, fresh, open), (taken, waiting), decided).await
    }

    /// The same for calls that have just come, behind those in line.
    async fn of_fresh<'b>(
        &mut self,
        tx: &mut Tx,
        book: &'b Book,
        (job_id, fresh, open): (i64, Vec<Fresh>, &[Run]),
        (mut taken, mut waiting): (bool, bool),
        decided: &mut Vec<Decided<'b>>,
    ) -> Result<()> {
        for Fresh { id, entry, .. } in fresh {
            let Some(call) = book.calls.get(&id) else { continue };
            let Some(ask) = &call.ask else { continue };
            let is_mine = |run: &&Run| run.queue_id == call.queue_id && run.run_no == entry.run_no;
            let others: Vec<&Run> = open.iter().filter(|run| !is_mine(run)).collect();
            let sent = taken || others.iter().any(|run| is_sent(run));
            let any = sent || waiting || !others.is_empty();
            let decision = match ask.block.decide(if any { Busy::Busy } else { Busy::Idle }) {
                Enter::Refuse => Decision::End(Ended::Discarded, discarded(&others)),
                Enter::StopAndTake => {
                    let ids: Vec<i64> = others.iter().map(|run| run.log_id.0).collect();
                    rows::stop_others(tx, &ids, "a later run came", self.now).await?;
                    match sent {
                        true => Decision::Wait,
                        false => self.route(tx, (call, ask), job_id).await?,
                    }
                }
                Enter::Take if sent || waiting => Decision::Wait,
                Enter::Take => self.route(tx, (call, ask), job_id).await?,
            };
            taken |= matches!(decision, Decision::Ask(_));
            waiting |= matches!(decision, Decision::Wait | Decision::Test(_));
            let entry = (entry.run_no, entry.batch_id);
            decided.push(Decided { id, call, ask, entry, job_id, decision });
        }
        Ok(())
    }

    /// Where a run goes whose turn has come.
    pub(super) async fn route(
        &mut self,
        tx: &mut Tx,
        (call, ask): (&Call, &RemoteCall),
        job_id: i64,
    ) -> Result<Decision> {
        let (admin, now, app) = (self.admin, self.now, &ask.app);
        let Some(group) = self.group(tx, app).await? else {
            let cure = format!("add it: procession executor-group add {app}");
            let said = format!("there is no executor group {app}; {cure}");
            return Ok(Decision::End(Ended::NotReached, said));
        };
        if matches!(ask.what, RemoteBody::Glue { .. }) && group.glue == Glue::Refused {
            let said = format!(
                "scripts may not be sent to executor group {app}; whoever administers it can allow that: \
                 procession executor-group set {app} --allow-glue"
            );
            return Ok(Decision::End(Ended::Refused, said));
        }
        let addresses: Vec<String> = group.addresses.iter().map(|(at, _)| at.clone()).collect();
        let targets: Result<Vec<To>, String> =
            addresses.iter().map(|at| admin.target(app, group, at)).collect();
        let targets = match targets {
            Ok(targets) => targets,
            Err(said) => return Ok(Decision::End(Ended::NotReached, said)),
        };
        let roll = roll(call.queue_id.0, call.attempt);
        let state = rows::route_state(tx, (job_id, ask.route), roll, now).await?;
        let at = |address: &String| targets.iter().find(|to| to.address == *address).cloned();
        Ok(match choose(ask.route, &addresses, &state) {
            Choice::Nowhere => {
                let said = format!("no executor of group {app} is registered");
                Decision::End(Ended::NotReached, said)
            }
            Choice::To(address) => {
                self.count(tx, (job_id, ask.route), &address).await?;
                Decision::Ask(at(&address).into_iter().collect())
            }
            Choice::ToAll(all) => Decision::Ask(all.iter().filter_map(at).collect()),
            Choice::FirstThat(test, all) => {
                let mut left: VecDeque<To> = all.iter().filter_map(at).collect();
                let first = left.pop_front();
                let said = Vec::new();
                Decision::Test(Candidates { test, left, at: first, is_fit: false, said })
            }
        })
    }

    pub(super) async fn count(
        &self,
        tx: &mut Tx,
        (job_id, route): (i64, RouteStrategy),
        address: &str,
    ) -> Result<()> {
        match route {
            RouteStrategy::Round => rows::took_turn(tx, job_id).await,
            RouteStrategy::LeastFrequentlyUsed | RouteStrategy::LeastRecentlyUsed => {
                rows::used(tx, job_id, address, self.now).await
            }
            RouteStrategy::First | RouteStrategy::Last | RouteStrategy::Random => Ok(()),
            RouteStrategy::ConsistentHash | RouteStrategy::Failover => Ok(()),
            RouteStrategy::Busyover | RouteStrategy::ShardingBroadcast => Ok(()),
        }
    }
}

fn discarded(others: &[&Run]) -> String {
    let other = others.first().map(|run| format!("run {}", run.log_id));
    let other = other.unwrap_or_else(|| "an earlier run".to_owned());
    format!("{other} of this job is not over, and its block strategy is DISCARD_LATER")
}

/// Whether an executor has it, or is asked for it.
fn is_sent(run: &Run) -> bool {
    matches!(run.status, RunStatus::Asked | RunStatus::Running)
}
