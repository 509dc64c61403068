//! Jobs that executors of XXL-JOB run: each is asked for once, and its end is heard, whatever dies.

use crate::admin::TOKEN;
use crate::desk::{START, connect};
use crate::program_of_others::{Manner, Program};
use crate::util::with_scratch;
use procession::db::Db;
use procession::definition;
use procession::domain::batch::{BatchOrder, BatchStatus};
use procession::domain::executor::{Addressing, ExecutorGroup, Glue, LogId};
use procession::domain::id::{BatchId, BatchNo};
use procession::domain::job::Definition;
use procession::domain::source::DialectName;
use procession::domain::xxl_run::AppName;
use procession::engine::clock::Clock;
use procession::engine::dispatcher::QueueDispatcher;
use procession::store::executor_group::{self, KeptToken};
use procession::store::{self, executor_run};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const APP: &str = "pay-executor";
const SEALED: &str = "sealed";

struct Hall {
    db: Db,
    clock: Clock,
    defs: Definition,
    programs: Vec<Program>,
    process: QueueDispatcher,
}

async fn on<F, Fut>(dialect: DialectName, test: F)
where
    F: FnOnce(Hall) -> Fut,
    Fut: Future<Output = ()>,
{
    with_scratch(dialect, |scratch| async move {
        let db = connect(&scratch.url).await;
        db.migrate().await.expect("migrate");
        let clock = Clock::hand(START);
        let programs = vec![Program::begin().await];
        let process = process(&db, &clock).await;
        let defs = defs("");
        let hall = Hall { db, clock, defs, programs, process };
        hall.apply().await;
        hall.group(hall.programs.iter().map(Program::url).collect()).await;
        test(hall).await;
    })
    .await;
}

macro_rules! on_each {
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

on_each! {
    a_run_goes_its_way
    a_run_that_is_refused_fails
    runs_of_a_job_wait_for_each_other
    a_later_run_is_discarded
    a_later_run_covers_the_earlier
    another_executor_is_asked_when_one_is_away
    a_stopped_run_is_stopped_there_whatever_is_told_afterwards
    a_stop_that_is_not_seen_is_not_claimed
    a_run_whose_answer_is_lost_is_not_asked_for_again
    a_run_that_nobody_has_is_lost
    a_process_that_dies_is_gone_on_from
    an_end_that_was_told_while_nobody_lived_is_heard
    a_broadcast_ends_when_all_parts_have
    turns_go_round_among_executors
    a_run_that_nobody_waits_for_is_ended
    whoever_finds_a_run_that_was_asked_for_does_not_ask_again
    one_that_waits_is_sent_once_by_whoever_takes_it_over
    two_processes_send_runs_of_a_job_one_after_the_other
    a_beat_that_fails_loses_nothing
}

fn defs(call: &str) -> Definition {
    let text = format!(
        "
groups: {{ pay: {{}} }}
defaults: {{ group: pay }}
jobs:
  PAY:
    type: HANDLER
    executor: {{ app: {APP}, handler: payHandler{call} }}
    params: [{{ name: branch, value: SH }}]
    on_unknown: hold
  AFTER: {{ type: NOOP, depends_on: [PAY] }}
"
    );
    let read = |_: &Path| Ok(text.clone());
    let loaded = definition::load(Path::new("x.yaml"), &read, &procession::app::job_kinds());
    loaded.unwrap_or_else(|faults| panic!("{faults}")).definition
}

async fn process(db: &Db, clock: &Clock) -> QueueDispatcher {
    let handlers = procession::handler::Options {
        interpreters: BTreeMap::from([("sh".to_owned(), PathBuf::from("/bin/sh"))]),
        script_env: vec!["PATH".to_owned()],
        kill_grace: Duration::from_secs(5),
        kill_confirm: Duration::from_secs(10),
        connect_timeout: Duration::from_secs(10),
        away: Duration::ZERO,
        idle: Duration::from_secs(60),
        look_every: Duration::from_secs(5),
        script_lease: Duration::from_secs(60),
        keeper: None,
        script_processes: None,
    };
    let options = procession::engine::Options {
        max_parallel: 4,
        ageing_ms: 600_000,
        lease_ms: 15_000,
        log_flush_ms: 50,
        log_max_bytes: 100_000,
        park_after: 3,
        drain_ms: 60_000,
        node: procession::engine::NodeOptions::default(),
    };
    let process = QueueDispatcher::start(db.clone(), clock.clone(), &options, handlers, None);
    let process = process.await.expect("start");
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

    async fn with(&mut self, call: &str) {
        self.defs = defs(call);
        self.apply().await;
    }

    async fn group(&self, addresses: Vec<String>) {
        let group = ExecutorGroup {
            app_name: AppName::parse(APP).expect("name"),
            title: "pay".to_owned(),
            addressing: Addressing::Fixed(addresses),
            glue: Glue::Refused,
        };
        let token = KeptToken { sealed: SEALED.to_owned(), digest: "x".to_owned() };
        let mut tx = self.db.begin().await.expect("begin");
        executor_group::remove(&mut tx, &group.app_name).await.expect("remove");
        executor_group::add(&mut tx, &group, &token, self.clock.now()).await.expect("add");
        tx.commit().await.expect("commit");
    }

    /// So many executors, in the order of their addresses.
    async fn programs(&mut self, count: usize) {
        while self.programs.len() < count {
            self.programs.push(Program::begin().await);
        }
        self.programs.sort_by_key(Program::url);
        self.group(self.programs.iter().map(Program::url).collect()).await;
    }

    async fn open(&mut self, no: &str) -> BatchId {
        let order = BatchOrder {
            batch_no: BatchNo::parse(no).expect("no"),
            batch_type: None,
            group: Some(self.defs.groups[0].code.clone()),
            business_date: None,
            params: BTreeMap::new(),
        };
        self.process.open(&self.defs, &order, "test").await.expect("open")[0]
    }

    /// Beats until `so` is so.
    #[expect(clippy::disallowed_methods, reason = "whoever is asked answers in real time")]
    async fn until(&mut self, what: &str, mut so: impl AsyncFnMut(&Self) -> bool) {
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

    async fn beat(&mut self) {
        for _ in 0..1_000 {
            let dispatched = self.process.beat().await.expect("beat");
            if !self.process.executors().beat().await.expect("admin") && !dispatched {
                return;
            }
        }
        panic!("it never comes to rest");
    }

    async fn comes_to(&mut self, wanted: &[&str]) {
        let what = wanted.join(", ");
        self.until(&what, async |hall| hall.runs().await == wanted).await;
    }

    async fn ends(&mut self, id: BatchId) -> BatchStatus {
        self.until("ended", async |hall| hall.process.results().contains_key(&id)).await;
        self.process.results()[&id]
    }

    /// `1 RUNNING`, `1 TOLD KILLED`, `1 DONE 200` of each run.
    async fn runs(&self) -> Vec<String> {
        let sql = "SELECT log_id, status, result, handle_code FROM executor_run ORDER BY log_id";
        let mut tx = self.db.read().await.expect("read");
        let rows = tx.fetch_all(sql, &[]).await.expect("rows");
        let words = |row: &procession::db::Row| {
            let words = [
                Some(row.int("log_id").expect("int").to_string()),
                row.opt_text("status").expect("text"),
                row.opt_text("result").expect("text"),
                row.opt_int("handle_code").expect("int").map(|code| code.to_string()),
            ];
            words.into_iter().flatten().collect::<Vec<_>>().join(" ")
        };
        rows.iter().map(words).collect()
    }

    /// What the row of PAY says.
    async fn pay(&self, id: BatchId) -> (String, String) {
        let sql =
            "SELECT status, error_message FROM job_queue WHERE batch_id = ? AND job_code = 'PAY'";
        let mut tx = self.db.read().await.expect("read");
        let row = tx.fetch_optional(sql, &[id.0.into()]).await.expect("row").expect("a row");
        let said = row.opt_text("error_message").expect("text").unwrap_or_default();
        (row.text("status").expect("text"), said)
    }

    /// Lines in the log of PAY that came from executors.
    async fn lines(&self) -> Vec<String> {
        let sql =
            "SELECT line_text FROM job_log_line WHERE stream = 'stdout' ORDER BY queue_id, line_no";
        let mut tx = self.db.read().await.expect("read");
        let rows = tx.fetch_all(sql, &[]).await.expect("rows");
        rows.iter().map(|row| row.text("line_text").expect("text")).collect()
    }

    /// An executor tells the end of a run, as its door writes it.
    async fn tell(&self, log: i64, code: i32, msg: &str) {
        for program in &self.programs {
            program.ends(log);
        }
        let told = executor_run::Told { log_id: LogId(log), code, msg: Some(msg.to_owned()) };
        let mut tx = self.db.begin().await.expect("begin");
        executor_run::tell(&mut tx, &[told], self.clock.now()).await.expect("tell");
        tx.commit().await.expect("commit");
        self.process.executors().look_soon().await;
    }

    /// Time passes in steps of a second, in which everybody lives on.
    async fn pass(&mut self, seconds: u32) {
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
    async fn dies(&mut self) {
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

    async fn by_hand(&self, sql: &str) {
        let mut tx = self.db.begin().await.expect("begin");
        tx.execute(sql, &[]).await.expect(sql);
        tx.commit().await.expect("commit");
    }

    async fn first_log(&self) -> i64 {
        let mut tx = self.db.read().await.expect("read");
        let sql = "SELECT MIN(log_id) AS n FROM executor_run";
        tx.fetch_optional(sql, &[]).await.expect("row").expect("a row").int("n").expect("a number")
    }

    async fn stop(&mut self, id: BatchId) {
        let mut tx = self.db.begin().await.expect("begin");
        let now = self.clock.now();
        store::batch::request_kill(&mut tx, id, "no more", now).await.expect("kill");
        tx.commit().await.expect("commit");
        self.process.look().await.expect("look");
    }
}

async fn a_run_goes_its_way(mut hall: Hall) {
    let id = hall.open("202407").await;
    hall.comes_to(&["1 RUNNING"]).await;
    let asked = hall.programs[0].heard("/run");
    assert_eq!(asked.len(), 1);
    let ask = &asked[0];
    assert_eq!(ask.as_object().expect("an object").len(), 12, "{ask}");
    assert_eq!((ask["logId"].as_i64(), ask["glueType"].as_str()), (Some(1), Some("BEAN")));
    assert_eq!(ask["executorHandler"], "payHandler");
    assert_eq!(ask["executorBlockStrategy"], "SERIAL_EXECUTION");
    assert_eq!((&ask["broadcastIndex"], &ask["broadcastTotal"]), (&0.into(), &1.into()));
    let params: serde_json::Value =
        serde_json::from_str(ask["executorParams"].as_str().expect("text")).expect("json");
    assert_eq!((&params["batchNo"], &params["params"]["branch"]), (&"202407".into(), &"SH".into()));
    hall.programs[0].prints(1, "begun");
    hall.pass(3).await;
    hall.programs[0].prints(1, "paid 3 branches");
    hall.tell(1, 200, "done").await;
    assert_eq!(hall.ends(id).await, BatchStatus::Success);
    assert_eq!(hall.runs().await, ["1 DONE 200"]);
    assert_eq!(hall.lines().await, ["begun", "paid 3 branches"]);
    // What is told again, and otherwise, changes nothing.
    hall.tell(1, 500, "no").await;
    assert_eq!(hall.runs().await, ["1 DONE 200"]);
    assert_eq!(hall.programs[0].heard("/run").len(), 1);
}

async fn a_run_that_is_refused_fails(mut hall: Hall) {
    hall.programs[0].is(Manner::Refuses);
    let id = hall.open("202407").await;
    assert_eq!(hall.ends(id).await, BatchStatus::Failed);
    let (status, said) = hall.pay(id).await;
    assert_eq!(status, "FAILED");
    assert!(
        said.contains("was refused by its executor: code 500: job handler is not found"),
        "{said}"
    );
    assert_eq!(hall.runs().await, ["1 DONE REFUSED"]);
}

async fn runs_of_a_job_wait_for_each_other(mut hall: Hall) {
    let first = hall.open("202406").await;
    hall.comes_to(&["1 RUNNING"]).await;
    let second = hall.open("202407").await;
    hall.comes_to(&["1 RUNNING", "2 WAITING"]).await;
    hall.tell(1, 200, "").await;
    assert_eq!(hall.ends(first).await, BatchStatus::Success);
    hall.comes_to(&["1 DONE 200", "2 RUNNING"]).await;
    hall.tell(2, 500, "no money").await;
    assert_eq!(hall.ends(second).await, BatchStatus::Failed);
    let said = hall.pay(second).await.1;
    assert!(said.ends_with("ended with code 500: no money"), "{said}");
    assert_eq!(hall.programs[0].heard("/run").len(), 2);
}

async fn a_later_run_is_discarded(mut hall: Hall) {
    hall.with(", block: DISCARD_LATER").await;
    let first = hall.open("202406").await;
    hall.comes_to(&["1 RUNNING"]).await;
    let second = hall.open("202407").await;
    assert_eq!(hall.ends(second).await, BatchStatus::Failed);
    let said = hall.pay(second).await.1;
    assert!(
        said.contains("run 1 of this job is not over, and its block strategy is DISCARD"),
        "{said}"
    );
    hall.tell(1, 200, "").await;
    assert_eq!(hall.ends(first).await, BatchStatus::Success);
    assert_eq!(hall.programs[0].heard("/run").len(), 1);
}

async fn a_later_run_covers_the_earlier(mut hall: Hall) {
    hall.with(", block: COVER_EARLY").await;
    let first = hall.open("202406").await;
    hall.comes_to(&["1 RUNNING"]).await;
    let second = hall.open("202407").await;
    hall.until("killed", async |hall| {
        hall.clock.advance(300);
        hall.process.executors().look_soon().await;
        hall.process.results().contains_key(&first)
    })
    .await;
    assert_eq!(hall.pay(first).await.0, "KILLED");
    hall.comes_to(&["1 DONE COVERED", "2 RUNNING"]).await;
    assert_eq!(hall.programs[0].has(), [2]);
    hall.tell(2, 200, "").await;
    assert_eq!(hall.ends(second).await, BatchStatus::Success);
}

async fn another_executor_is_asked_when_one_is_away(mut hall: Hall) {
    hall.programs(2).await;
    hall.with(", route: FAILOVER").await;
    let away = hall.programs.remove(0);
    let gone = away.address;
    drop(away);
    // Its port is closed once its task has ended.
    while tokio::net::TcpStream::connect(gone).await.is_ok() {
        tokio::task::yield_now().await;
    }
    let id = hall.open("202407").await;
    hall.comes_to(&["1 RUNNING"]).await;
    assert_eq!(hall.programs[0].has(), [1]);
    hall.tell(1, 200, "").await;
    assert_eq!(hall.ends(id).await, BatchStatus::Success);
    hall.programs.clear();
    hall.group(vec![format!("http://{gone}")]).await;
    let id = hall.open("202408").await;
    assert_eq!(hall.ends(id).await, BatchStatus::Failed);
    let said = hall.pay(id).await.1;
    assert!(said.contains("no executor was reached") && said.contains("cannot connect"), "{said}");
}

async fn a_stopped_run_is_stopped_there_whatever_is_told_afterwards(mut hall: Hall) {
    let id = hall.open("202407").await;
    hall.comes_to(&["1 RUNNING"]).await;
    hall.stop(id).await;
    hall.until("killed", async |hall| {
        hall.clock.advance(300);
        hall.process.results().contains_key(&id)
    })
    .await;
    assert_eq!(hall.process.results()[&id], BatchStatus::Killed);
    assert_eq!(hall.pay(id).await.0, "KILLED");
    assert_eq!(hall.programs[0].heard("/kill").len(), 1);
    hall.tell(1, 200, "is killed").await;
    assert_eq!(hall.runs().await, ["1 DONE KILLED"]);
}

async fn a_stop_that_is_not_seen_is_not_claimed(mut hall: Hall) {
    hall.programs[0].obeys(false);
    let id = hall.open("202407").await;
    hall.comes_to(&["1 RUNNING"]).await;
    hall.stop(id).await;
    hall.until("given up", async |hall| {
        hall.clock.advance(300);
        hall.process.results().contains_key(&id)
    })
    .await;
    let (status, said) = hall.pay(id).await;
    assert_eq!(status, "UNKNOWN");
    assert!(said.contains("kill unconfirmed: run 1 at http://"), "{said}");
    assert_eq!(hall.runs().await, ["1 DONE UNCONFIRMED"]);
}

async fn a_run_whose_answer_is_lost_is_not_asked_for_again(mut hall: Hall) {
    hall.programs[0].is(Manner::TakesAndIsSilent);
    let id = hall.open("202407").await;
    hall.comes_to(&["1 RUNNING"]).await;
    hall.pass(70).await;
    assert_eq!(hall.programs[0].heard("/run").len(), 1);
    hall.tell(1, 200, "").await;
    assert_eq!(hall.ends(id).await, BatchStatus::Success);
}

async fn a_run_that_nobody_has_is_lost(mut hall: Hall) {
    hall.programs[0].is(Manner::Loses);
    let id = hall.open("202407").await;
    hall.comes_to(&["1 ASKED"]).await;
    hall.pass(100).await;
    let (status, said) = hall.pay(id).await;
    assert_eq!(status, "UNKNOWN", "{said}");
    assert!(said.contains("is lost: its executor gave no answer when it was asked"), "{said}");
    assert_eq!(hall.programs[0].heard("/run").len(), 1);
    // One that was busy and is not any more.
    hall.programs[0].is(Manner::Takes);
    let id = hall.open("202408").await;
    hall.comes_to(&["1 DONE LOST", "2 RUNNING"]).await;
    hall.pass(7).await;
    hall.programs[0].ends(2);
    hall.pass(130).await;
    let (status, said) = hall.pay(id).await;
    assert_eq!(status, "UNKNOWN", "{said}");
    assert!(said.contains("is lost: its executor ran it, does not any more"), "{said}");
}

async fn a_process_that_dies_is_gone_on_from(mut hall: Hall) {
    let id = hall.open("202407").await;
    hall.comes_to(&["1 RUNNING"]).await;
    hall.programs[0].prints(1, "first");
    hall.dies().await;
    hall.until("adopted", async |hall| {
        let me = "SELECT COUNT(DISTINCT node_id) AS n FROM executor_run";
        let mut tx = hall.db.read().await.expect("read");
        let row = tx.fetch_optional(me, &[]).await.expect("row").expect("a row");
        row.int("n").expect("n") == 1 && !hall.programs[0].heard("/idleBeat").is_empty()
    })
    .await;
    hall.tell(1, 200, "").await;
    assert_eq!(hall.ends(id).await, BatchStatus::Success);
    assert_eq!(hall.programs[0].heard("/run").len(), 1);
    assert_eq!(hall.runs().await, ["1 DONE 200"]);
    assert_eq!(hall.lines().await, ["first"]);
}

async fn an_end_that_was_told_while_nobody_lived_is_heard(mut hall: Hall) {
    let id = hall.open("202407").await;
    hall.comes_to(&["1 RUNNING"]).await;
    hall.tell(1, 200, "").await;
    // Before it has heard of it.
    hall.dies().await;
    assert_eq!(hall.ends(id).await, BatchStatus::Success);
    assert_eq!(hall.programs[0].heard("/run").len(), 1);
    assert_eq!(hall.runs().await, ["1 DONE 200"]);
}

async fn a_broadcast_ends_when_all_parts_have(mut hall: Hall) {
    hall.programs(3).await;
    hall.with(", route: SHARDING_BROADCAST").await;
    let id = hall.open("202407").await;
    hall.comes_to(&["1 RUNNING", "2 RUNNING", "3 RUNNING"]).await;
    for (n, program) in (0..).zip(&hall.programs) {
        let asked = &program.heard("/run")[0];
        assert_eq!((&asked["broadcastIndex"], &asked["broadcastTotal"]), (&n.into(), &3.into()));
    }
    hall.tell(1, 200, "").await;
    hall.tell(3, 200, "").await;
    hall.comes_to(&["1 TOLD 200", "2 RUNNING", "3 TOLD 200"]).await;
    hall.tell(2, 500, "no disk").await;
    assert_eq!(hall.ends(id).await, BatchStatus::Failed);
    let said = hall.pay(id).await.1;
    assert!(said.starts_with("1 of 3 parts did not end well: part 1: run 2 at "), "{said}");
    assert_eq!(hall.runs().await, ["1 DONE 200", "2 DONE 500", "3 DONE 200"]);
}

async fn turns_go_round_among_executors(mut hall: Hall) {
    hall.programs(3).await;
    for route in ["ROUND", "LEAST_FREQUENTLY_USED", "LEAST_RECENTLY_USED"] {
        hall.with(&format!(", route: {route}")).await;
        for n in 0..3 {
            hall.clock.advance(1_000);
            let before: i64 = hall.runs().await.len().try_into().expect("small");
            let year = 2000 + before;
            let id = hall.open(&format!("{year}0{}", n + 1)).await;
            let log = before + 1;
            hall.until("asked", async |hall| {
                hall.runs().await.last() == Some(&format!("{log} RUNNING"))
            })
            .await;
            hall.tell(log, 200, "").await;
            assert_eq!(hall.ends(id).await, BatchStatus::Success);
        }
        let counts: Vec<usize> = hall.programs.iter().map(|p| p.heard("/run").len()).collect();
        assert!(counts.iter().all(|n| *n == counts[0]), "{route}: {counts:?}");
    }
}

async fn a_run_that_nobody_waits_for_is_ended(mut hall: Hall) {
    let first = hall.open("202406").await;
    hall.comes_to(&["1 RUNNING"]).await;
    // An operator declares it done behind everybody's back.
    let mut tx = hall.db.begin().await.expect("begin");
    let sql = "UPDATE job_queue SET status = 'FORCED', owner = NULL WHERE batch_id = ? AND job_code = 'PAY'";
    tx.execute(sql, &[first.0.into()]).await.expect("force");
    tx.commit().await.expect("commit");
    hall.process = process(&hall.db, &hall.clock).await;
    hall.process.executors().tidy_now().await.expect("tidy");
    hall.until("stopped", async |hall| {
        hall.clock.advance(300);
        hall.runs().await == ["1 TOLD KILLED"]
    })
    .await;
    assert_eq!(hall.programs[0].has(), Vec::<i64>::new());
    assert_eq!(hall.first_log().await, 1);
}

async fn whoever_finds_a_run_that_was_asked_for_does_not_ask_again(mut hall: Hall) {
    for (manner, ended) in [(Manner::TakesAndIsSilent, "SUCCESS"), (Manner::Loses, "UNKNOWN")] {
        hall.programs[0].is(manner);
        let before: i64 = hall.runs().await.len().try_into().expect("small");
        let log = before + 1;
        let id = hall.open(&format!("20240{log}")).await;
        let asked = usize::try_from(log).expect("small");
        hall.until("asked for", async |hall| hall.programs[0].heard("/run").len() == asked).await;
        // It knows nothing of an answer.
        hall.dies().await;
        if manner == Manner::Loses {
            hall.pass(100).await;
        } else {
            let running = format!("{log} RUNNING");
            hall.until("found", async |hall| hall.runs().await.last() == Some(&running)).await;
            hall.tell(log, 200, "").await;
            assert_eq!(hall.ends(id).await, BatchStatus::Success);
        }
        let (status, said) = hall.pay(id).await;
        assert_eq!(status, ended, "{said}");
        assert_eq!(hall.programs[0].heard("/run").len(), asked);
    }
}

async fn one_that_waits_is_sent_once_by_whoever_takes_it_over(mut hall: Hall) {
    let first = hall.open("202406").await;
    hall.comes_to(&["1 RUNNING"]).await;
    let second = hall.open("202407").await;
    hall.comes_to(&["1 RUNNING", "2 WAITING"]).await;
    hall.dies().await;
    while hall.process.take_batches().await.expect("take") > 0 {}
    hall.tell(1, 200, "").await;
    assert_eq!(hall.ends(first).await, BatchStatus::Success);
    hall.comes_to(&["1 DONE 200", "2 RUNNING"]).await;
    hall.tell(2, 200, "").await;
    assert_eq!(hall.ends(second).await, BatchStatus::Success);
    assert_eq!(hall.programs[0].heard("/run").len(), 2);
}

async fn two_processes_send_runs_of_a_job_one_after_the_other(mut hall: Hall) {
    let mut other = process(&hall.db, &hall.clock).await;
    let first = hall.open("202406").await;
    hall.comes_to(&["1 RUNNING"]).await;
    std::mem::swap(&mut hall.process, &mut other);
    let second = hall.open("202407").await;
    hall.comes_to(&["1 RUNNING", "2 WAITING"]).await;
    hall.pass(3).await;
    assert_eq!(hall.programs[0].has(), [1]);
    std::mem::swap(&mut hall.process, &mut other);
    hall.process.heartbeat().await.expect("heartbeat");
    hall.tell(1, 200, "").await;
    assert_eq!(hall.ends(first).await, BatchStatus::Success);
    std::mem::swap(&mut hall.process, &mut other);
    // The other hears of it by a hint, or at the latest in a while.
    hall.pass(6).await;
    hall.comes_to(&["1 DONE 200", "2 RUNNING"]).await;
    hall.tell(2, 200, "").await;
    assert_eq!(hall.ends(second).await, BatchStatus::Success);
    assert_eq!(hall.programs[0].heard("/run").len(), 2);
}

#[expect(clippy::disallowed_methods, reason = "whoever is asked answers in real time")]
async fn a_beat_that_fails_loses_nothing(mut hall: Hall) {
    let away = "ALTER TABLE executor_run RENAME TO away";
    let back = "ALTER TABLE away RENAME TO executor_run";
    let id = hall.open("202407").await;
    hall.process.beat().await.expect("beat");
    hall.by_hand(away).await;
    // The try has asked, and nothing can be written.
    let end = Instant::now() + Duration::from_secs(30);
    while hall.process.executors().beat().await.is_ok() {
        hall.process.beat().await.expect("beat");
        assert!(Instant::now() < end, "it never asked");
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    assert_eq!(hall.programs[0].heard("/run").len(), 0);
    hall.by_hand(back).await;
    hall.comes_to(&["1 RUNNING"]).await;
    // Nor can it be read that it has ended.
    hall.tell(1, 200, "").await;
    hall.by_hand(away).await;
    assert!(hall.process.executors().beat().await.is_err());
    hall.by_hand(back).await;
    hall.process.executors().look_soon().await;
    assert_eq!(hall.ends(id).await, BatchStatus::Success);
    assert_eq!(hall.programs[0].heard("/run").len(), 1);
    assert_eq!(hall.runs().await, ["1 DONE 200"]);
}
