//! What each job of a batch waits for.

use crate::app::App;
use crate::domain::batch::Batch;
use crate::domain::cluster::node_placement::{Bodies, Role, Site, runs_own};
use crate::domain::dag::Dag;
use crate::domain::dispatch::deferral;
use crate::domain::dispatch::slots::Resource;
use crate::domain::dispatch::why::{Load, Opened, Situation, Whose, Why, explain};
use crate::domain::id::{JobCode, QueueId};
use crate::domain::job::queue::{QueueEntry, QueueStatus};
use crate::domain::text::lang::Lang;
use crate::domain::time::Millis;
use crate::engine;
use crate::store::node::Member;
use crate::store::{self, Tx};
use crate::view::batch::View;
use anyhow::Result;
use serde_json::{Value, json};
use std::collections::HashMap;

/// A job that is not done well, its state, and why.
pub type Reason = (JobCode, QueueStatus, Why);

/// One for each job that is not done well; whatever is not over has one.
pub async fn reasons(app: &App, view: &View) -> Result<Vec<Reason>> {
    let now = view.now;
    let load = load_of_process(app, view, now).await?;
    let dag = view.snapshot.dag()?;
    let mut tx = app.db.read().await?;
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

/// A reason for scripts and front ends, with its sentence.
pub fn document((code, status, why): &Reason, lang: Lang, now: Millis) -> Value {
    let words = why.words(lang, now);
    json!({
        "job_code": code, "status": status, "kind": why.kind(), "why": words, "detail": detail(why),
    })
}

/// The same for programs, where there is more than the kind.
fn detail(why: &Why) -> Value {
    let jobs = |jobs: &[(JobCode, QueueStatus)]| -> Vec<Value> {
        jobs.iter().map(|(code, status)| json!({"job_code": code, "status": status})).collect()
    };
    match why {
        Why::Parents(all) | Why::Upstream(all) => json!({ "jobs": jobs(all) }),
        Why::Outside(waits) => {
            let each = waits.iter().map(|(external, _)| external.target());
            json!({ "targets": each.collect::<Vec<_>>() })
        }
        Why::Time(at, tries) => json!({ "at": at.to_string(), "tries": tries }),
        Why::Slot(full, holders) => json!({
            "resource": resource(&full.what), "used": full.used, "limit": full.limit,
            "needed": full.needed, "holders": holders,
        }),
        Why::KeptFor(what, job) => json!({ "resource": resource(what), "job_code": job }),
        Why::Node(label, _, nodes) => json!({ "label": label, "nodes": nodes }),
        Why::Held(said) => json!({ "said": said }),
        Why::Parked(workers, _) => json!({ "workers": workers }),
        Why::Runs(attempt, since) => {
            json!({ "attempt": attempt, "since": since.map(|t| t.to_string()) })
        }
        Why::BeforeBody(what) => json!({ "waits_on": what }),
        Why::NodeSilent(silent) => json!({ "node": silent.node, "session": silent.session }),
        Why::Open { attempt, next, said, .. } => json!({
            "attempt": attempt, "said": said, "next": { "kind": next.kind(), "detail": detail(next) },
        }),
        Why::Stopping { attempt, since, who } => json!({
            "attempt": attempt, "since": since.map(|t| t.to_string()), "who": who,
        }),
        Why::Ended(status, said) => json!({ "status": status, "said": said }),
        Why::Unknown(_, _, said) => json!({ "said": said }),
        Why::NextTurn | Why::NoProcess(_) | Why::Paused => Value::Null,
    }
}

fn resource(what: &Resource) -> Value {
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
    json!({ "kind": kind, "name": name })
}

/// Since when jobs that are being stopped are.
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

/// Through what a batch is gone on with: one that a job opened has no process of its own but that of
/// the batch of this job.
async fn opened(tx: &mut Tx, batch: &Batch) -> Result<Opened> {
    let mut first = batch.clone();
    while let Some(row) = store::batch::parent_of(tx, first.batch_id).await? {
        first = store::batch::of_entry(tx, row).await?;
    }
    let backfill = store::backfill::opened_by(tx, first.batch_id).await?;
    let ordered = || Opened::Ordered(first.values.batch_no.clone(), first.values.group.clone());
    Ok(backfill.map_or_else(ordered, Opened::Backfilled))
}

/// By how much each job steps back for those with less slack, as the process that has the batch sees it.
async fn deferrals(app: &App, tx: &mut Tx, view: &View, dag: &Dag) -> Result<Vec<i64>> {
    let engine = app.config.engine();
    if !deferral::is_worth_it(&view.snapshot, engine.max_parallel) {
        return Ok(Vec::new());
    }
    let history = store::history::of_recent_batches(tx, &view.snapshot.group.code).await?;
    Ok(deferral::deferrals_by_history(&view.snapshot, dag, &history, engine.ageing_ms))
}

/// What runs in the process that has the batch: its own jobs and those of the other batches there,
/// which share the limits.
async fn load_of_process(app: &App, view: &View, now: Millis) -> Result<Load> {
    let engine = app.config.engine();
    let mut load = Load::new(engine.max_parallel, engine.ageing_ms);
    if let Some(owner) = &view.batch.owner {
        let mut tx = app.db.read().await?;
        for other in store::batch::of_owner(&mut tx, owner).await? {
            if other.batch_id != view.batch.batch_id {
                let snapshot = store::batch::snapshot(&mut tx, other.batch_id).await?;
                let rows = store::queue::of_batch(&mut tx, other.batch_id).await?;
                load.add(&other, &snapshot, &rows, Whose::Other);
            }
        }
    }
    load.add(&view.batch, &view.snapshot, &view.rows, Whose::This);
    let mut tx = app.db.read().await?;
    let members = store::node::members(&mut tx, now).await?;
    let is_owner = |m: &&Member| Some(&m.node.node_id) == view.batch.owner.as_ref();
    let Some(here) = members.iter().find(is_owner).map(own_site) else { return Ok(load) };
    let offered = members.iter().filter(|m| !is_owner(m) && !m.offer.roles.is_empty());
    Ok(load.on(here, offered.map(site).collect()))
}

/// A node as a place for the jobs of other nodes, as it described itself last.
fn site(member: &Member) -> Site {
    let works = member.offer.roles.contains(&Role::Worker) && !member.is_draining;
    Site {
        node: member.node.node_id.clone(),
        name: member.offer.name.clone(),
        labels: member.offer.labels.clone(),
        bodies: if works { Bodies::Run } else { Bodies::Elsewhere },
        room: member.offer.max_parallel.saturating_sub(member.said.running),
    }
}

/// The same of the one that dispatches the batch.
fn own_site(member: &Member) -> Site {
    let rests = member.is_draining;
    let bodies = if rests { Bodies::Elsewhere } else { runs_own(&member.offer.roles) };
    Site { bodies, ..site(member) }
}
