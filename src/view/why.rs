//! Why each job of a batch waits, or did not succeed.

use crate::app::App;
use crate::domain::batch::Batch;
use crate::domain::cluster::node_placement::{Bodies, NodeRole, Site, runs_own};
use crate::domain::dag::Dag;
use crate::domain::dispatch::deferral;
use crate::domain::dispatch::slots::Resource;
use crate::domain::dispatch::why::{
    BatchRelation, ProcessLoad, ResumePath, Situation, WaitReason, explain,
};
use crate::domain::id::{JobCode, QueueId};
use crate::domain::job::queue::{QueueEntry, QueueStatus};
use crate::domain::text::lang::Lang;
use crate::domain::time::Millis;
use crate::engine;
use crate::store::node::NodeMember;
use crate::store::{self, Tx};
use crate::view::batch::BatchView;
use anyhow::Result;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::HashMap;

/// A job that has not succeeded, its state, and why.
pub type JobWaitReason = (JobCode, QueueStatus, WaitReason);

/// A reason for each job that has not succeeded; every unfinished job has one.
pub async fn reasons(app: &App, view: &BatchView) -> Result<Vec<JobWaitReason>> {
    let now = view.now;
    let load = load_of_process(app, view, now).await?;
    let dag = view.snapshot.build_dag()?;
    let mut tx = app.db.begin_read().await?;
    let load = load.deferring(deferrals(app, &mut tx, view, &dag).await?);
    let outside = engine::outside(&mut tx, &view.batch, &view.snapshot, now).await?;
    let stops = stops(&mut tx, &view.rows).await?;
    let opened = opened(&mut tx, &view.batch).await?;
    drop(tx);
    let situation = Situation {
        batch: &view.batch,
        snapshot: &view.snapshot,
        dag: &dag,
        rows: &view.rows,
        load: &load,
        outside: &outside,
        dispatched: view.is_dispatched(),
        opened: &opened,
        stopping_since: &|row| stops.get(&row.queue_id).copied(),
    };
    Ok(explain(situation, now))
}

/// Why a job of a batch has not succeeded.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct JobReason {
    /// The job code.
    pub job_code: String,
    /// The state.
    pub status: &'static str,
    /// The kind of reason: `parents`, `time`, `slot` …
    pub kind: &'static str,
    /// The reason as a sentence, in the caller's language.
    pub why: String,
    /// The same for programs; null where the kind is sufficient.
    pub detail: Option<Box<ReasonDetail>>,
}

/// The details of a reason. Its kind determines which members are present.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct ReasonDetail {
    /// Jobs that are waited for, or that failed upstream.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jobs: Option<Vec<WaitedJob>>,
    /// Dependencies on other batches.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub targets: Option<Vec<String>>,
    /// Until when it waits, UTC.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<String>,
    /// Number of failed attempts so far.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attempts: Option<u32>,
    /// The resource that is exhausted, or reserved for another job.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource: Option<ResourceName>,
    /// Number of slots in use.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub used: Option<u64>,
    /// Number of slots.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
    /// Number of slots that the job needs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub needed: Option<u32>,
    /// The holders.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub holders: Option<Vec<String>>,
    /// The job that a resource is reserved for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub job_code: Option<String>,
    /// The label that a node must have.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// The living nodes, with their labels.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nodes: Option<Vec<String>>,
    /// Who held it and why; or the message at its end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Number of consecutive worker deaths while it ran.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workers: Option<u32>,
    /// The attempt number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attempt: Option<u32>,
    /// Since when, UTC.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<String>,
    /// What a running attempt waits for before its body.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waits_on: Option<String>,
    /// A node that does not send heartbeats.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// The session on the data source that still holds the lock of the job.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<i64>,
    /// What the next attempt waits for, which looks up the outcome of the last one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<NextReason>,
    /// The operator who requested it, and why.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub who: Option<String>,
    /// How it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<&'static str>,
}

/// A job and its state.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct WaitedJob {
    /// The job code.
    pub job_code: String,
    /// The state.
    pub status: &'static str,
}

/// What the next attempt waits for.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct NextReason {
    /// The kind of reason.
    pub kind: &'static str,
    /// The details.
    pub detail: Option<Box<ReasonDetail>>,
}

/// A resource with a limited number of slots.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ResourceName {
    /// `total`, `label`, `node`, `group`, `source`, `host`, `pool` or `lock`.
    pub kind: &'static str,
    /// Its name; null for the total of the process.
    pub name: Option<String>,
}

impl JobReason {
    /// The document of a reason, with its sentence.
    pub fn from_reason((code, status, why): &JobWaitReason, lang: Lang, now: Millis) -> Self {
        Self {
            job_code: code.to_string(),
            status: status.as_str(),
            kind: why.kind(),
            why: why.words(lang, now),
            detail: detail(why).map(Box::new),
        }
    }
}

/// The details for programs, where there is more than the kind.
fn detail(why: &WaitReason) -> Option<ReasonDetail> {
    let none = ReasonDetail::default();
    let jobs = |all: &[(JobCode, QueueStatus)]| {
        let job = |(code, status): &(JobCode, QueueStatus)| WaitedJob {
            job_code: code.to_string(),
            status: status.as_str(),
        };
        Some(all.iter().map(job).collect())
    };
    Some(match why {
        WaitReason::Parents(all) | WaitReason::Upstream(all) => {
            ReasonDetail { jobs: jobs(all), ..none }
        }
        WaitReason::Outside(waits) => {
            let each = waits.iter().map(|(external, _)| external.target());
            ReasonDetail { targets: Some(each.collect()), ..none }
        }
        WaitReason::Time(at, tries) => {
            ReasonDetail { at: Some(at.to_string()), attempts: *tries, ..none }
        }
        WaitReason::Slot(full, holders) => ReasonDetail {
            resource: Some(resource(&full.what)),
            used: Some(full.used),
            limit: Some(full.limit),
            needed: Some(full.needed),
            holders: Some(holders.clone()),
            ..none
        },
        WaitReason::KeptFor(what, job) => {
            ReasonDetail { resource: Some(resource(what)), job_code: Some(job.to_string()), ..none }
        }
        WaitReason::Node(label, _, nodes) => {
            ReasonDetail { label: label.clone(), nodes: Some(nodes.clone()), ..none }
        }
        WaitReason::Held(said) => ReasonDetail { message: said.clone(), ..none },
        WaitReason::Parked(workers, _) => ReasonDetail { workers: Some(*workers), ..none },
        WaitReason::Runs(attempt, since) => {
            ReasonDetail { attempt: Some(*attempt), since: since.map(|t| t.to_string()), ..none }
        }
        WaitReason::BeforeBody(what) => ReasonDetail { waits_on: Some(what.clone()), ..none },
        WaitReason::NodeSilent(silent) => {
            ReasonDetail { node: Some(silent.node.clone()), session: Some(silent.session), ..none }
        }
        WaitReason::Open { attempt, next, said, .. } => ReasonDetail {
            attempt: Some(*attempt),
            message: Some(said.clone()),
            next: Some(NextReason { kind: next.kind(), detail: detail(next).map(Box::new) }),
            ..none
        },
        WaitReason::Stopping { attempt, since, who } => ReasonDetail {
            attempt: Some(*attempt),
            since: since.map(|t| t.to_string()),
            who: who.clone(),
            ..none
        },
        WaitReason::Ended(status, said) => {
            ReasonDetail { status: Some(status.as_str()), message: Some(said.clone()), ..none }
        }
        WaitReason::Unknown(_, _, said) => ReasonDetail { message: Some(said.clone()), ..none },
        WaitReason::NextTurn | WaitReason::NoProcess(_) | WaitReason::Paused => return None,
    })
}

fn resource(what: &Resource) -> ResourceName {
    let (kind, name) = match what {
        Resource::Total => ("total", None),
        Resource::Label(label) => ("label", Some(label.as_str())),
        Resource::Node(label) => ("node", label.as_deref()),
        Resource::Group(code) => ("group", Some(code.as_str())),
        Resource::Source(name) => ("source", Some(name.as_str())),
        Resource::Host(name) => ("host", Some(name.as_str())),
        Resource::Pool(name) => ("pool", Some(name.as_str())),
        Resource::Lock(name) => ("lock", Some(name.as_str())),
    };
    ResourceName { kind, name: name.map(str::to_owned) }
}

/// Since when the jobs that are being stopped have been.
async fn stops(tx: &mut Tx, rows: &[QueueEntry]) -> Result<HashMap<QueueId, Millis>> {
    let mut since = HashMap::new();
    for row in rows.iter().filter(|r| r.status == QueueStatus::Killing) {
        let changes = store::log::of_entry(tx, row.queue_id).await?;
        let of_try = changes.iter().filter(|c| c.log.attempt == row.attempt);
        let stopping = of_try.filter(|c| c.log.status == QueueStatus::Killing).map(|c| c.at);
        since.extend(stopping.min().map(|at| (row.queue_id, at)));
    }
    Ok(since)
}

/// How a batch is resumed: one that a job opened is continued by the process of that job's batch.
async fn opened(tx: &mut Tx, batch: &Batch) -> Result<ResumePath> {
    let mut first = batch.clone();
    while let Some(row) = store::batch::parent_of(tx, first.batch_id).await? {
        first = store::batch::of_entry(tx, row).await?;
    }
    let backfill = store::backfill::opened_by(tx, first.batch_id).await?;
    let ordered = || ResumePath::Ordered(first.values.batch_no.clone(), first.values.group.clone());
    Ok(backfill.map_or_else(ordered, ResumePath::Backfilled))
}

/// By how much each job is deferred in favour of those with less slack, as the owner of the batch
/// computes it.
async fn deferrals(app: &App, tx: &mut Tx, view: &BatchView, dag: &Dag) -> Result<Vec<i64>> {
    let engine = app.config.engine();
    if !deferral::is_worth_it(&view.snapshot, engine.max_parallel) {
        return Ok(Vec::new());
    }
    let history = store::history::of_recent_batches(tx, &view.snapshot.group.code).await?;
    Ok(deferral::deferrals_by_history(&view.snapshot, dag, &history, engine.ageing_ms))
}

/// The load of the process that owns the batch: its own jobs and those of its other batches, which
/// share the limits.
async fn load_of_process(app: &App, view: &BatchView, now: Millis) -> Result<ProcessLoad> {
    let engine = app.config.engine();
    let mut load = ProcessLoad::new(engine.max_parallel, engine.ageing_ms);
    if let Some(owner) = &view.batch.owner {
        let mut tx = app.db.begin_read().await?;
        for other in store::batch::of_owner(&mut tx, owner).await? {
            if other.batch_id != view.batch.batch_id {
                let snapshot = store::batch::snapshot(&mut tx, other.batch_id).await?;
                let rows = store::queue::of_batch(&mut tx, other.batch_id).await?;
                load.count_running(&other, &snapshot, &rows, BatchRelation::Other);
            }
        }
    }
    load.count_running(&view.batch, &view.snapshot, &view.rows, BatchRelation::This);
    let mut tx = app.db.begin_read().await?;
    let members = store::node::members(&mut tx, now).await?;
    let is_owner = |m: &&NodeMember| Some(&m.node.node_id) == view.batch.owner.as_ref();
    let Some(here) = members.iter().find(is_owner).map(own_site) else { return Ok(load) };
    let offered = members.iter().filter(|m| !is_owner(m) && !m.offer.roles.is_empty());
    Ok(load.with_sites(here, offered.map(site_of).collect()))
}

/// A node as a place for jobs of other nodes, from its last report.
fn site_of(member: &NodeMember) -> Site {
    let works = member.offer.roles.contains(&NodeRole::Worker) && !member.is_draining;
    Site {
        node: member.node.node_id.clone(),
        name: member.offer.name.clone(),
        labels: member.offer.labels.clone(),
        bodies: if works { Bodies::Run } else { Bodies::Elsewhere },
        room: member.offer.max_parallel.saturating_sub(member.said.running),
    }
}

/// The same for the node that dispatches the batch.
fn own_site(member: &NodeMember) -> Site {
    let rests = member.is_draining;
    let bodies = if rests { Bodies::Elsewhere } else { runs_own(&member.offer.roles) };
    Site { bodies, ..site_of(member) }
}
