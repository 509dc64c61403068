//! A process with its database, a clock that is set by hand, and executors that it asks.

use crate::util::with_migrated_scratch;
use crate::xxl::desk::{START, connect, start};
use crate::xxl::program_of_others::{Program, TOKEN};
use procession::db::Db;
use procession::definition;
use procession::domain::access::group_access::GroupAccess;
use procession::domain::batch::{BatchOrder, BatchStatus};
use procession::domain::executor::run_wait::RunWait;
use procession::domain::executor::{Addressing, ExecutorGroup, GluePolicy, LogId};
use procession::domain::id::{BatchId, BatchNo, GroupCode};
use procession::domain::job::Definition;
use procession::domain::source::DialectName;
use procession::domain::xxl::xxl_run::AppName;
use procession::engine::clock::Clock;
use procession::engine::dispatch::dispatcher::QueueDispatcher;
use procession::engine::secrets::executor_token::digest;
use procession::store::executor_group::{self, KeptToken};
use procession::store::{self, executor_run};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

pub(super) const APP: &str = "pay-executor";
const SEALED: &str = "sealed";

pub(super) struct Hall {
    pub(super) db: Db,
    pub(super) clock: Clock,
    defs: Definition,
    pub(super) programs: Vec<Program>,
    pub(super) process: QueueDispatcher,
}

pub(super) async fn on<F, Fut>(dialect: DialectName, test: F)
where
    F: FnOnce(Hall) -> Fut,
    Fut: Future<Output = ()>,
{
    with_migrated_scratch(dialect, |scratch| async move {
        let db = connect(&scratch.url).await;
        let clock = Clock::set_by_hand(START);
        let programs = vec![Program::begin().await];
        let process = process(&db, &clock).await;
        let defs = defs(&handler(""));
        let hall = Hall { db, clock, defs, programs, process };
        hall.apply().await;
        hall.group(hall.programs.iter().map(Program::url).collect()).await;
        test(hall).await;
    })
    .await;
}

/// The lines of a job that calls a handler.
fn handler(call: &str) -> String {
    format!("type: HANDLER, executor: {{ app: {APP}, handler: payHandler{call} }}")
}

fn defs(pay: &str) -> Definition {
    let unknown = if pay.contains("on_unknown") { "" } else { ", on_unknown: hold" };
    let text = format!(
        "
groups: {{ pay: {{}} }}
defaults: {{ group: pay }}
jobs:
  PAY: {{ {pay}, params: [{{ name: branch, value: SH }}]{unknown} }}
  AFTER: {{ type: NOOP, depends_on: [PAY] }}
"
    );
    let read = |_: &Path| Ok(text.clone());
    let loaded =
        definition::load_definition(Path::new("x.yaml"), &read, &procession::app::job_kinds());
    loaded.unwrap_or_else(|faults| panic!("{faults}")).definition
}

pub(super) async fn process(db: &Db, clock: &Clock) -> QueueDispatcher {
    let process = start(db, clock, Duration::from_secs(5), None).await;
    let app = AppName::parse(APP).expect("name");
    process.executors().know_token(&app, SEALED, TOKEN.into());
    process
}

impl Hall {
    async fn apply(&self) {
        let mut tx = self.db.begin().await.expect("begin");
        let stored = store::job::definition(&mut tx).await.expect("stored");
        store::job::apply(&mut tx, &stored, &self.defs, self.clock.now()).await.expect("apply");
        tx.commit().await.expect("commit");
    }

    /// The job calls its handler so.
    pub(super) async fn with(&mut self, call: &str) {
        self.with_pay(&handler(call)).await;
    }

    /// The job has these lines.
    pub(super) async fn with_pay(&mut self, pay: &str) {
        self.defs = defs(pay);
        self.apply().await;
    }

    pub(super) async fn group(&self, addresses: Vec<String>) {
        self.group_with(Addressing::Fixed(addresses), GluePolicy::Refused).await;
    }

    pub(super) async fn group_with(&self, addressing: Addressing, glue: GluePolicy) {
        self.group_for(addressing, glue, GroupAccess::default()).await;
    }

    pub(super) async fn group_for(
        &self,
        addressing: Addressing,
        glue: GluePolicy,
        access: GroupAccess,
    ) {
        let app_name = AppName::parse(APP).expect("name");
        let title = "pay".to_owned();
        let group = ExecutorGroup { app_name, title, addressing, glue, access };
        let token = KeptToken { sealed: SEALED.to_owned(), digest: digest(TOKEN.as_bytes()) };
        let mut tx = self.db.begin().await.expect("begin");
        if !executor_group::update_group(&mut tx, &group, self.clock.now()).await.expect("set") {
            executor_group::add_group(&mut tx, &group, &token, self.clock.now())
                .await
                .expect("add");
        }
        tx.commit().await.expect("commit");
    }

    /// So many executors, in the order of their addresses.
    pub(super) async fn programs(&mut self, count: usize) {
        while self.programs.len() < count {
            self.programs.push(Program::begin().await);
        }
        self.programs.sort_by_key(Program::url);
        self.group(self.programs.iter().map(Program::url).collect()).await;
    }

    /// A second group has a job of the same code; gives its place among the groups.
    pub(super) async fn with_second_group(&mut self) -> usize {
        let mut second = defs(&handler(""));
        let code = GroupCode::parse("wages").expect("a code");
        second.groups[0].code = code.clone();
        second.jobs.iter_mut().for_each(|job| job.group = code.clone());
        second.dependencies.iter_mut().for_each(|edge| edge.group = code.clone());
        let first = std::mem::replace(&mut self.defs, second);
        self.defs.groups.insert(0, first.groups[0].clone());
        self.defs.jobs.splice(0..0, first.jobs);
        self.defs.dependencies.splice(0..0, first.dependencies);
        self.apply().await;
        1
    }

    pub(super) async fn open(&mut self, no: &str) -> BatchId {
        self.open_in(no, 0).await
    }

    /// Opens a batch of the group at this place.
    pub(super) async fn open_in(&mut self, no: &str, group: usize) -> BatchId {
        let order = BatchOrder {
            batch_no: BatchNo::parse(no).expect("no"),
            batch_type: None,
            group: Some(self.defs.groups[group].code.clone()),
            business_date: None,
            params: BTreeMap::new(),
            free_text: false,
        };
        self.process.open_batches(&self.defs, &order, "test").await.expect("open")[0]
    }

    /// Beats until `so` is so.
    #[expect(clippy::disallowed_methods, reason = "whoever is asked answers in real time")]
    pub(super) async fn until(&mut self, what: &str, mut so: impl AsyncFnMut(&Self) -> bool) {
        let end = Instant::now() + Duration::from_secs(30);
        loop {
            self.beat().await;
            if so(self).await {
                return;
            }
            assert!(Instant::now() < end, "not {what}: {:?}", self.runs().await);
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }

    /// Until the batch has ended, while time passes in steps in which its executor is asked on.
    pub(super) async fn until_given_up(&mut self, id: BatchId) {
        self.until("given up", async |hall| {
            hall.clock.advance(300);
            hall.process.executors().look_soon().await;
            hall.process.results().contains_key(&id)
        })
        .await;
    }

    pub(super) async fn beat(&mut self) {
        for _ in 0..1_000 {
            for program in &self.programs {
                for log in program.take_reports() {
                    self.tell(log, 500, "[job running, killed]").await;
                }
            }
            let dispatched = self.process.run_tick().await.expect("beat");
            if !self.process.executors().run_tick().await.expect("admin") && !dispatched {
                return;
            }
        }
        panic!("it never comes to rest");
    }

    pub(super) async fn comes_to(&mut self, wanted: &[&str]) {
        let what = wanted.join(", ");
        self.until(&what, async |hall| hall.runs().await == wanted).await;
    }

    pub(super) async fn ends(&mut self, id: BatchId) -> BatchStatus {
        self.until("ended", async |hall| hall.process.results().contains_key(&id)).await;
        self.process.results()[&id]
    }

    /// `1 RUNNING`, `1 TOLD KILLED`, `1 DONE 200` of each run.
    pub(super) async fn runs(&self) -> Vec<String> {
        let sql = "SELECT log_id, status, result, handle_code FROM executor_run ORDER BY log_id";
        let mut tx = self.db.begin_read().await.expect("read");
        let rows = tx.fetch_all(sql, &[]).await.expect("rows");
        let words = |row: &procession::db::Row| {
            let words = [
                Some(row.get_int("log_id").expect("int").to_string()),
                row.opt_text("status").expect("text"),
                row.opt_text("result").expect("text"),
                row.opt_int("handle_code").expect("int").map(|code| code.to_string()),
            ];
            words.into_iter().flatten().collect::<Vec<_>>().join(" ")
        };
        rows.iter().map(words).collect()
    }

    /// Where each run was sent.
    pub(super) async fn sent_to(&self) -> Vec<String> {
        let sql = "SELECT address FROM executor_run ORDER BY log_id";
        let mut tx = self.db.begin_read().await.expect("read");
        let rows = tx.fetch_all(sql, &[]).await.expect("rows");
        let at = |row: &procession::db::Row| row.opt_text("address").expect("text");
        rows.iter().map(|row| at(row).unwrap_or_default()).collect()
    }

    /// What the row of PAY says.
    pub(super) async fn pay(&self, id: BatchId) -> (String, String) {
        let sql =
            "SELECT status, error_message FROM job_queue WHERE batch_id = ? AND job_code = 'PAY'";
        let mut tx = self.db.begin_read().await.expect("read");
        let row = tx.fetch_optional(sql, &[id.0.into()]).await.expect("row").expect("a row");
        let said = row.opt_text("error_message").expect("text").unwrap_or_default();
        (row.get_text("status").expect("text"), said)
    }

    /// What the row of PAY says that it waits for.
    pub(super) async fn waits(&self, id: BatchId) -> Option<String> {
        let sql = "SELECT waits_on FROM job_queue WHERE batch_id = ? AND job_code = 'PAY'";
        let mut tx = self.db.begin_read().await.expect("read");
        let row = tx.fetch_optional(sql, &[id.0.into()]).await.expect("row").expect("a row");
        row.opt_text("waits_on").expect("text")
    }

    /// Until the row of PAY says that it waits for this.
    pub(super) async fn waits_for(&mut self, id: BatchId, wait: Option<RunWait>) {
        let wait = wait.map(|wait| wait.to_string());
        self.until("said", async |hall| hall.waits(id).await == wait).await;
    }

    /// Lines in the log of PAY that came from executors.
    pub(super) async fn lines(&self) -> Vec<String> {
        let sql =
            "SELECT line_text FROM job_log_line WHERE stream = 'stdout' ORDER BY queue_id, line_no";
        let mut tx = self.db.begin_read().await.expect("read");
        let rows = tx.fetch_all(sql, &[]).await.expect("rows");
        rows.iter().map(|row| row.get_text("line_text").expect("text")).collect()
    }

    /// An executor tells the end of a run, as its door writes it.
    pub(super) async fn tell(&self, log: i64, code: i32, msg: &str) {
        for program in &self.programs {
            program.ends(log);
        }
        let told =
            executor_run::ReportedRunEnd { log_id: LogId(log), code, msg: Some(msg.to_owned()) };
        let mut tx = self.db.begin().await.expect("begin");
        executor_run::report_ends(&mut tx, &[told], self.clock.now()).await.expect("tell");
        tx.commit().await.expect("commit");
        self.process.executors().look_soon().await;
    }

    /// Time passes in steps of a second, in which everybody lives on.
    pub(super) async fn pass(&mut self, seconds: u32) {
        for _ in 0..seconds {
            self.clock.advance(1_000);
            self.process.heartbeat().await.expect("heartbeat");
            self.beat().await;
            tokio::time::sleep(Duration::from_millis(5)).await;
            self.beat().await;
        }
    }

    /// The process dies; another takes over what it had.
    #[expect(clippy::disallowed_methods, reason = "whoever is asked answers in real time")]
    pub(super) async fn dies(&mut self) {
        self.process = process(&self.db, &self.clock).await;
        let end = Instant::now() + Duration::from_secs(20);
        loop {
            self.clock.advance(1_000);
            self.process.heartbeat().await.expect("heartbeat");
            if self.process.take_batches().await.expect("take") > 0 {
                return;
            }
            assert!(Instant::now() < end, "nothing was taken over");
        }
    }

    pub(super) async fn by_hand(&self, sql: &str) {
        let mut tx = self.db.begin().await.expect("begin");
        tx.execute(sql, &[]).await.expect(sql);
        tx.commit().await.expect("commit");
    }

    pub(super) async fn first_log(&self) -> i64 {
        let mut tx = self.db.begin_read().await.expect("read");
        let sql = "SELECT MIN(log_id) AS n FROM executor_run";
        tx.fetch_optional(sql, &[])
            .await
            .expect("row")
            .expect("a row")
            .get_int("n")
            .expect("a number")
    }

    pub(super) async fn stop(&mut self, id: BatchId) {
        let mut tx = self.db.begin().await.expect("begin");
        let now = self.clock.now();
        store::batch::request_kill(&mut tx, id, "no more", now).await.expect("kill");
        tx.commit().await.expect("commit");
        self.process.poll_changes().await.expect("look");
    }
}
