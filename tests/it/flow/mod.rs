//! The whole engine on a scratch metadata database, beat by beat, with a clock set by hand.

mod approvals;
mod backfill;
mod checks;
mod children;
mod clock;
mod cluster;
mod crash;
mod dependencies;
mod due;
mod eta;
mod large_values;
pub(super) mod lease;
mod ledger;
mod limits;
mod lists;
mod log_lines;
mod opening;
mod operators;
mod recovery;
mod restored;
mod retries;
mod rules;
mod same_codes;
mod schedules;
mod serving;
mod slack;
mod triggers;

use crate::util::{Scratch, with_migrated_scratch};
use procession::db::Db;
use procession::db::sqlite_file::ProtectedFiles;
use procession::definition;
use procession::domain::batch::{Batch, BatchOrder};
use procession::domain::id::{BatchId, BatchNo, GroupCode};
use procession::domain::job::Definition;
use procession::domain::job::outcome::JobOutputs;
use procession::domain::job::queue::QueueEntry;
use procession::domain::job::script_isolation::{IsolationPolicy, ScriptUsers};
use procession::domain::source::DialectName;
use procession::domain::time::Millis;
use procession::engine::EngineOptions;
use procession::engine::clock::Clock;
use procession::engine::dispatch::dispatcher::QueueDispatcher;
use procession::store;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// 2024-08-01T00:00:00Z.
pub(super) const START: Millis = Millis(1_722_470_400_000);

/// Each named test on each database.
macro_rules! on_each_database {
    ($($name:ident)*) => {
        mod sqlite { $(#[tokio::test] async fn $name() {
            super::on(super::DialectName::Sqlite, super::$name).await;
        })* }
        mod mariadb { $(#[tokio::test] async fn $name() {
            super::on(super::DialectName::Mysql, super::$name).await;
        })* }
        mod postgres { $(#[tokio::test] async fn $name() {
            super::on(super::DialectName::Postgres, super::$name).await;
        })* }
    };
}

pub(super) use on_each_database;

/// A migrated metadata database and a clock.
pub(super) struct Bench {
    pub(super) db: Db,
    pub(super) clock: Clock,
    pub(super) options: EngineOptions,
    /// Its database, for bodies that run on the same server.
    pub(super) url: String,
}

/// Runs `test` on a fresh metadata database of each dialect.
pub(super) async fn on<F, Fut>(dialect: DialectName, test: F)
where
    F: FnOnce(Bench) -> Fut,
    Fut: Future<Output = ()>,
{
    let body = |scratch: Arc<Scratch>| async move { test(Bench::open(&scratch).await).await };
    with_migrated_scratch(dialect, body).await;
}

impl Bench {
    async fn open(scratch: &Scratch) -> Self {
        let db = crate::util::connect(&scratch.url).await;
        Self::of(db, Clock::set_by_hand(START), &scratch.url)
    }

    /// On a database that is migrated.
    pub(super) fn of(db: Db, clock: Clock, url: &str) -> Self {
        let options = EngineOptions {
            max_parallel: 4,
            ageing_ms: 600_000,
            lease_ms: 15_000,
            log_flush_ms: 50,
            log_max_bytes: 100_000,
            park_after: 3,
            drain_ms: 60_000,
            executor_tls: procession::outbound::ClientTlsFiles::default(),
            node: procession::engine::NodeOptions::default(),
            secret_stores: Default::default(),
        };
        Self { db, clock, options, url: url.to_owned() }
    }

    /// A new process: a dispatcher with a node of its own.
    pub(super) async fn process(&self) -> QueueDispatcher {
        let handlers = procession::handler::HandlerOptions {
            interpreters: BTreeMap::from([("sh".to_owned(), PathBuf::from("/bin/sh"))]),
            script_env: vec!["PATH".to_owned()],
            kill_grace: Duration::from_millis(500),
            kill_confirm: Duration::from_secs(10),
            connect_timeout: Duration::from_secs(10),
            away: Duration::ZERO,
            idle: Duration::from_secs(60),
            look_every: Duration::from_secs(5),
            script_lease: Duration::from_secs(60),
            keeper: Some(env!("CARGO_BIN_EXE_procession").into()),
            script_limits: Default::default(),
            script_cgroups: Default::default(),
            // These tests look at scripts by the numbers that they write, which are others in a namespace.
            script_users: ScriptUsers { policy: IsolationPolicy::Off, ..ScriptUsers::default() },
            script_files: Default::default(),
            isolation_probe: Default::default(),
            secrets_in_files: false,
            protected_files: ProtectedFiles::default(),
            verify_tls: true,
            outputs: procession::domain::job::output_limits::OutputLimits::default(),
        };
        let (db, clock) = (self.db.clone(), self.clock.clone());
        QueueDispatcher::start(db, clock, &self.options, handlers, None).await.expect("start")
    }

    /// All rows of a batch.
    pub(super) async fn rows(&self, id: BatchId) -> Vec<QueueEntry> {
        let mut tx = self.db.begin_read().await.expect("read");
        store::queue::of_batch(&mut tx, id).await.expect("rows")
    }

    /// `A=SUCCESS B=FAILED …`, in the order of the batch.
    pub(super) async fn states(&self, id: BatchId) -> String {
        let rows = self.rows(id).await;
        let words: Vec<String> =
            rows.iter().map(|r| format!("{}={}", r.job_code, r.status)).collect();
        words.join(" ")
    }

    /// The states a job went through, in order.
    pub(super) async fn history(&self, id: BatchId, code: &str) -> Vec<String> {
        let rows = self.rows(id).await;
        let row = rows.iter().find(|r| r.job_code.as_str() == code).expect("job");
        let mut tx = self.db.begin_read().await.expect("read");
        let changes = store::log::of_entry(&mut tx, row.queue_id).await.expect("logs");
        changes.iter().map(|c| format!("{}#{}", c.log.status, c.log.attempt)).collect()
    }

    /// Stores a definition, as `apply` does.
    pub(super) async fn apply(&self, defs: &Definition) {
        let mut tx = self.db.begin().await.expect("begin");
        let stored = store::job::definition(&mut tx).await.expect("stored");
        store::job::apply(&mut tx, &stored, defs, self.clock.now()).await.expect("apply");
        tx.commit().await.expect("commit");
    }

    /// The batch of a group under number 202407.
    pub(super) async fn batch(&self, group: &str) -> Batch {
        self.batch_of("202407", group).await.expect("the batch")
    }

    /// The batch of a number and group.
    pub(super) async fn batch_of(&self, no: &str, group: &str) -> Option<Batch> {
        let no = BatchNo::parse(no).expect("number");
        let group = GroupCode::parse(group).expect("group");
        let mut tx = self.db.begin_read().await.expect("read");
        store::batch::find_batch(&mut tx, &no, &group).await.expect("find")
    }

    /// What the job of a row handed on.
    pub(super) async fn outputs(&self, id: BatchId, code: &str) -> JobOutputs {
        let rows = self.rows(id).await;
        let row = rows.iter().find(|r| r.job_code.as_str() == code).expect("job");
        let mut tx = self.db.begin_read().await.expect("read");
        let found = store::queue::outputs(&mut tx, &[row.queue_id]).await.expect("outputs");
        found
            .first()
            .map_or_else(JobOutputs::default, |(_, json)| serde_json::from_str(json).expect("JSON"))
    }

    /// Runs a statement by hand, as an operator might.
    pub(super) async fn by_hand(&self, sql: &str) {
        let mut tx = self.db.begin().await.expect("begin");
        tx.execute(sql, &[]).await.expect(sql);
        tx.commit().await.expect("commit");
    }

    /// One number of a query `SELECT … AS n`.
    pub(super) async fn number(&self, sql: &str) -> i64 {
        let mut tx = self.db.begin_read().await.expect("read");
        let row = tx.fetch_optional(sql, &[]).await.expect(sql).expect("a row");
        row.get_int("n").expect("a number")
    }
}

/// A definition from YAML.
pub(super) fn defs(yaml: &str) -> Definition {
    let text = yaml.to_owned();
    let read = move |_: &Path| Ok(text.clone());
    let loaded =
        definition::load_definition(Path::new("flow.yaml"), &read, &procession::app::job_kinds());
    loaded.unwrap_or_else(|faults| panic!("{faults}")).definition
}

/// An order for batch 202407.
pub(super) fn order() -> BatchOrder {
    BatchOrder::parse(r#"{"batchNo":"202407"}"#).expect("order")
}

/// Beats until nothing is open; moves the clock to the next not-before when all is quiet.
pub(super) async fn finish(bench: &Bench, process: &mut QueueDispatcher) {
    for _ in 0..10_000 {
        if process.is_idle() {
            return;
        }
        if process.run_tick().await.expect("beat") {
            continue;
        }
        match process.next_wake() {
            Some(at) if process.running() == 0 => bench.clock.advance(at.since(bench.clock.now())),
            _ => process.wait_for_report().await,
        }
    }
    panic!("the batch does not end");
}
