//! Procession itself, in this process, as `run` has it: applied, opened, dispatched to the end.

use crate::body::{Body, Data};
use crate::capture::Seen;
use crate::figures::Run;
use crate::floor::now;
use crate::machine;
use crate::place::{Database, Place};
use crate::scene::Scene;
use crate::shape::Shape;
use anyhow::{Context as _, Result, ensure};
use procession::app::{App, EmptyDatabase};
use procession::definition;
use procession::domain::batch::{BatchOrder, BatchStatus};
use procession::domain::id::{BatchId, BatchNo, GroupCode, JobCode};
use procession::domain::job::trigger_rule::EdgeCondition;
use procession::domain::job::{Definition, JobDependency};
use procession::domain::time::Millis;
use procession::store;
use std::path::Path;
use tokio_util::sync::CancellationToken;

/// The definition of a scene: its batches are groups beside each other.
pub(crate) fn define(scene: Scene, body: Body, data: &Data) -> Result<Definition> {
    let (shape, count) = scene.shape();
    let yaml = format!(
        "{}groups: {{ G0: {{ type: bench }} }}\njobs:\n  J: {{ group: G0, {} }}\n",
        data.yaml(),
        body.keys()
    );
    let read = move |_: &Path| Ok(yaml.clone());
    let loaded =
        definition::load_definition(Path::new("bench.yaml"), &read, &procession::app::job_kinds())?;
    let mut defs = loaded.definition;
    let (job, group) = (defs.jobs.remove(0), defs.groups.remove(0));
    let code = |batch: usize, n: usize| JobCode::parse(&format!("J{batch}_{n:05}"));
    for batch in 0..count {
        let named = GroupCode::parse(&format!("G{batch}"))?;
        for n in 0..shape.jobs {
            let mut one = job.clone();
            (one.code, one.group) = (code(batch, n)?, named.clone());
            defs.jobs.push(one);
        }
        let mut one = group.clone();
        one.code = named.clone();
        defs.groups.push(one);
        for (place, (parent, child)) in shape.edges.iter().enumerate() {
            defs.dependencies.push(JobDependency {
                group: named.clone(),
                job_code: code(batch, *child)?,
                depends_on: code(batch, *parent)?,
                dependency_order: i32::try_from(place)?,
                when: EdgeCondition::Success,
            });
        }
    }
    Ok(defs)
}

/// As `procession apply`.
pub(crate) async fn apply(place: &Place, defs: &Definition) -> Result<()> {
    let mut tx = place.db.begin().await?;
    let stored = store::job::definition(&mut tx).await?;
    store::job::apply(&mut tx, &stored, defs, Millis(0)).await?;
    Ok(tx.commit().await?)
}

/// The order for all of its batches.
pub(crate) fn order(number: usize) -> Result<BatchOrder> {
    Ok(BatchOrder {
        batch_no: BatchNo::parse(&format!("B{number}"))?,
        batch_type: Some("bench".to_owned()),
        group: None,
        business_date: None,
        params: std::collections::BTreeMap::new(),
        free_text: false,
    })
}

/// Opens and dispatches, from a process's start to its end.
pub(crate) async fn run(
    place: &Place,
    defs: &Definition,
    number: usize,
    seen: &Seen,
    (shape, parallel): (&Shape, u32),
) -> Result<Run> {
    let mut config = place.config.clone();
    config.engine.max_parallel = parallel;
    let app = App::open(config, EmptyDatabase::Refuse).await?;
    let mut dispatcher = app.dispatcher(None).await?;
    machine::forget_peak();
    let (resident, began) = (machine::memory_kib("VmRSS"), now());
    let ids = dispatcher.open_batches(defs, &order(number)?, "bench").await?;
    let opened = began.elapsed();
    seen.clear();
    let server = server_of(place.database);
    let server_cpu = server.and_then(machine::cpu_of_all);
    let (counts, cpu, began) = (app.db.counts(), machine::cpu_of("self"), now());
    // As a task, as the program has it, and the floors.
    let run = tokio::spawn(async move {
        let ended = dispatcher.run_until_done(&CancellationToken::new()).await;
        (dispatcher, ended)
    });
    let (dispatcher, ended) = run.await?;
    ended?;
    let took = began.elapsed();
    let (after, cpu) = (app.db.counts(), machine::cpu_of("self").saturating_sub(cpu));
    let server_cpu =
        server_cpu.and_then(|before| Some(machine::cpu_of_all(server?)?.saturating_sub(before)));
    let peak_kib = machine::memory_kib("VmHWM");
    for id in &ids {
        let ended = dispatcher.results().get(id).copied().context("a batch did not end")?;
        ensure!(ended == BatchStatus::Success, "a batch ended {ended}");
    }
    dispatcher.leave().await?;
    app.close().await;
    let slots = usize::try_from(parallel)?;
    Ok(Run {
        took,
        opened: Some(opened),
        statements: Some(after.statements - counts.statements),
        commits: Some(after.commits - counts.commits),
        cpu: Some(cpu),
        server_cpu,
        peak_kib,
        grown_kib: peak_kib.zip(resident).map(|(peak, before)| peak - before),
        hops: seen.hops(shape, &rows(place, &ids).await?, slots),
        unfairness: unfairness(place, &ids).await?,
    })
}

/// Whose processes serve it on this machine.
fn server_of(database: Database) -> Option<&'static str> {
    match database {
        Database::Sqlite => None,
        Database::Mysql => Some("mariadbd"),
        Database::Postgres => Some("postgres"),
    }
}

/// The rows of batches, in the order of their jobs.
async fn rows(place: &Place, batches: &[BatchId]) -> Result<Vec<i64>> {
    let mut all = Vec::new();
    let mut tx = place.db.begin_read().await?;
    for id in batches {
        let sql = "SELECT queue_id FROM job_queue WHERE batch_id = ? ORDER BY queue_id";
        for row in tx.fetch_all(sql, &[id.0.into()]).await? {
            all.push(row.get_int("queue_id")?);
        }
    }
    Ok(all)
}

/// Of several batches: how long the slowest took, of what the fastest took, since the first job of any.
async fn unfairness(place: &Place, batches: &[BatchId]) -> Result<Option<f64>> {
    if batches.len() < 2 {
        return Ok(None);
    }
    let mut tx = place.db.begin_read().await?;
    let sql = "SELECT MIN(start_time) AS first, MAX(end_time) AS last FROM job_queue \
               WHERE batch_id = ?";
    let mut spans = Vec::new();
    for id in batches {
        let row = tx.fetch_optional(sql, &[id.0.into()]).await?.context("a batch without rows")?;
        spans.push((row.get_time("first")?, row.get_time("last")?));
    }
    let first = spans.iter().map(|(first, _)| *first).min().context("no batch")?;
    let took = spans.iter().map(|(_, last)| (*last - first).as_seconds_f64());
    let (least, most) =
        took.fold((f64::MAX, 0.0_f64), |(least, most), took| (least.min(took), most.max(took)));
    Ok(Some(most / least))
}
