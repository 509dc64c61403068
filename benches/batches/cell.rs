//! One scene with one body on one database: the product between two measurements of the floors.

use crate::Options;
use crate::body::{Body, Data};
use crate::capture::Seen;
use crate::figures::Run;
use crate::floor::{self, Floor};
use crate::history;
use crate::machine::{self, quantile};
use crate::nodes::{self, Nodes};
use crate::place::{Database, Place};
use crate::product;
use crate::scene::Scene;
use crate::shape::Shape;
use crate::trust::Trusted;
use anyhow::{Result, ensure};
use procession::domain::job::Definition;
use procession::domain::time::Millis;
use procession::engine::opening::create_batch::open_for_anyone;
use std::time::Duration;

/// Commits of one row, before and after each run.
const COMMITS: usize = 100;
/// Jobs up to which a scene is run several times: of a tenth of a second one run says little.
const SMALL: usize = 300;
/// Jobs from which on the floors that nothing is promised by are measured only before.
const LARGE: usize = 3_000;

/// What one cell came to.
pub(crate) struct Cell {
    pub(crate) scene: Scene,
    pub(crate) body: Body,
    pub(crate) database: Database,
    pub(crate) jobs: usize,
    pub(crate) edges: usize,
    pub(crate) batches: usize,
    /// At once.
    pub(crate) tasks: usize,
    pub(crate) runs: Vec<Run>,
    pub(crate) bare: Vec<Duration>,
    pub(crate) apart: Vec<Duration>,
    pub(crate) fused: Vec<Duration>,
    pub(crate) trusted: Vec<Duration>,
    /// Microseconds of one commit: p50 and p99.
    pub(crate) commit: (i64, i64),
    /// Of the machine, before and after.
    pub(crate) load: (String, String),
    /// What a commit of this database is good for.
    pub(crate) durability: String,
}

/// All that a cell is measured on.
struct Bench<'a> {
    place: Place,
    /// Where the floors have their rows.
    beside: Place,
    data: Data,
    /// The processes of a scene that has more than this one.
    nodes: Option<Nodes>,
    options: &'a Options,
    seen: &'a Seen,
    cell: Cell,
    shape: Shape,
    commits: Vec<i64>,
}

pub(crate) async fn measure(
    scene: Scene,
    body: Body,
    database: Database,
    (options, seen): (&Options, &Seen),
) -> Result<Cell> {
    let (shape, batches) = scene.shape();
    let shape = shape.times(batches);
    let tasks = if scene.is_chain() { 1 } else { usize::try_from(options.max_parallel)? };
    let mut bench = Bench {
        place: Place::make(database).await?,
        beside: Place::make(database).await?,
        data: Data::make(database).await?,
        nodes: None,
        options,
        seen,
        cell: Cell {
            scene,
            body,
            database,
            jobs: shape.jobs,
            edges: shape.edges.len(),
            batches,
            tasks,
            runs: Vec::new(),
            bare: Vec::new(),
            apart: Vec::new(),
            fused: Vec::new(),
            trusted: Vec::new(),
            commit: (0, 0),
            load: (machine::load(), String::new()),
            durability: String::new(),
        },
        shape,
        commits: Vec::new(),
    };
    let measured = bench.measure().await;
    let Bench { place, beside, data, cell, nodes, .. } = bench;
    drop(nodes);
    data.remove().await?;
    beside.remove().await?;
    place.remove().await?;
    measured.map(|()| cell)
}

impl Bench<'_> {
    async fn measure(&mut self) -> Result<()> {
        floor::prepare(&self.beside.db).await?;
        self.cell.durability = durability(&self.beside.db, self.cell.database).await?;
        let defs = product::define(self.cell.scene, self.cell.body, &self.data)?;
        product::apply(&self.place, &defs).await?;
        history::write(&self.place.db, self.options.finished_rows).await?;
        if self.cell.scene == Scene::Nodes {
            self.nodes = Some(Nodes::start(&self.place, self.options.max_parallel).await?);
        }
        self.floors(0).await?;
        let is_once = self.options.smoke || self.cell.jobs > SMALL;
        let rounds = if is_once { 1 } else { self.options.rounds };
        for round in 1..=rounds {
            let run = self.product(&defs, round).await?;
            self.cell.runs.push(run);
            self.floors(round).await?;
        }
        if matches!(self.cell.body, Body::Call | Body::CallWith) {
            let cell = &self.cell;
            let floors = [&cell.bare, &cell.apart, &cell.fused, &cell.trusted];
            let ran = cell.runs.len() + floors.iter().map(|runs| runs.len()).sum::<usize>();
            let (there, wanted) = (self.data.rows().await?, ran * self.cell.jobs);
            ensure!(there == i64::try_from(wanted)?, "{there} effects, not {wanted}");
        }
        self.cell.load.1 = machine::load();
        self.cell.commit = (quantile(&mut self.commits, 500), quantile(&mut self.commits, 990));
        Ok(())
    }

    async fn product(&self, defs: &Definition, round: usize) -> Result<Run> {
        let most = self.options.max_parallel;
        match &self.nodes {
            Some(_) => nodes::run(&self.place, defs, round).await,
            None => product::run(&self.place, defs, round, self.seen, (&self.shape, most)).await,
        }
    }

    async fn floors(&mut self, round: usize) -> Result<()> {
        self.commits.extend(floor::commits(&self.beside.db, COMMITS).await?);
        for floor in [Floor::Bare, Floor::Apart, Floor::Trusted, Floor::Fused] {
            let is_compared = matches!(floor, Floor::Fused | Floor::Trusted);
            if round > 0 && self.cell.jobs > LARGE && !is_compared {
                continue;
            }
            if floor == Floor::Trusted && !Trusted::is_for(self.cell.body) {
                continue;
            }
            let ids = self.rows(&format!("{floor:?}{round}")).await?;
            let clients = self.data.clients(self.cell.body, self.cell.tasks).await?;
            let took = floor::run(&self.beside.db, ids, &self.shape, clients, floor).await?;
            match floor {
                Floor::Bare => &mut self.cell.bare,
                Floor::Apart => &mut self.cell.apart,
                Floor::Fused => &mut self.cell.fused,
                Floor::Trusted => &mut self.cell.trusted,
            }
            .push(took);
        }
        Ok(())
    }

    /// Rows as the product makes them, of which nobody else knows.
    async fn rows(&self, number: &str) -> Result<Vec<i64>> {
        let mut defs = product::define(Scene::Smoke, Body::Noop, &self.data)?;
        defs.dependencies.clear();
        let (job, group) = (defs.jobs[0].clone(), defs.groups[0].clone());
        (defs.jobs, defs.groups) = (Vec::new(), vec![group]);
        for n in 0..self.shape.jobs {
            let mut one = job.clone();
            one.code = procession::domain::id::JobCode::parse(&format!("J{n:06}"))?;
            defs.jobs.push(one);
        }
        let mut order = product::order(0)?;
        order.batch_no = procession::domain::id::BatchNo::parse(number)?;
        let db = &self.beside.db;
        let ids = open_for_anyone(db, &defs, &order, "bench", Millis(0)).await?;
        let mut tx = db.begin_read().await?;
        let sql = "SELECT queue_id FROM job_queue WHERE batch_id = ? ORDER BY queue_id";
        let rows = tx.fetch_all(sql, &[ids[0].0.into()]).await?;
        rows.iter().map(|row| Ok(row.get_int("queue_id")?)).collect()
    }
}

/// What the server says of its commits, or, of SQLite, what our door asks of it.
async fn durability(db: &procession::db::Db, database: Database) -> Result<String> {
    let sql = match database {
        Database::Sqlite => {
            "SELECT 'journal ' || (SELECT journal_mode FROM pragma_journal_mode) || ', synchronous ' \
             || (SELECT synchronous FROM pragma_synchronous) AS said"
        }
        Database::Mysql => {
            "SELECT CONCAT(VERSION(), ', flush_log_at_trx_commit ', \
             @@innodb_flush_log_at_trx_commit, ', binlog ', @@log_bin) AS said"
        }
        Database::Postgres => {
            "SELECT 'PostgreSQL ' || current_setting('server_version') || ', fsync ' || \
             current_setting('fsync') || ', synchronous_commit ' || \
             current_setting('synchronous_commit') AS said"
        }
    };
    // On SQLite the writer, whose settings count.
    let mut tx = db.begin().await?;
    let row = tx.fetch_optional(sql, &[]).await?;
    let said = row.map(|row| row.get_text("said")).transpose()?;
    tx.rollback().await?;
    Ok(said.unwrap_or_default())
}
