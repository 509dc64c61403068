//! Every example is loaded, drawn and run to its end on every database its README names, and gives
//! the figures it promises. An example that does not work is worse than none.

use crate::util::host::{Host, Reply};
use crate::util::{query, session, with_scratch};
use procession::app::{self, App, Apply, Authorship, EmptyDatabase};
use procession::domain::access::approval::ApprovalVerdict;
use procession::domain::batch::{Batch, BatchOrder, BatchStatus, Snapshot, plan};
use procession::domain::executor::{Addressing, ExecutorGroup, GluePolicy, LogId};
use procession::domain::id::{BatchId, BatchNo, CalendarCode, GroupCode};
use procession::domain::job::Definition;
use procession::domain::job::outcome::JobOutputs;
use procession::domain::job::queue::{QueueEntry, QueueStatus};
use procession::domain::schedule::Anchor;
use procession::domain::schedule::trigger::PlannedInstant;
use procession::domain::source::DialectName;
use procession::domain::source::tx_class::TxClass;
use procession::domain::time::Millis;
use procession::engine::dispatch::dispatcher::QueueDispatcher;
use procession::engine::operate::approvals::{DecisionRequest, decide};
use procession::picture::{self, DagView, Drawn, JobState, Wishes};
use procession::store;
use procession::store::approval::ApprovalFilter;
use procession::store::audit::Operator;
use procession::store::executor_group::{self, KeptToken};
use procession::store::executor_run::{self, ReportedRunEnd};
use secrecy::SecretString;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// An example and what becomes of it.
struct Example {
    path: &'static str,
    batch_no: &'static str,
    ends: BatchStatus,
    /// Words of `place`.
    runs_on: &'static [&'static str],
}

/// One test per example and database, and the table of all of them.
macro_rules! examples {
    ($($name:ident: $path:literal, $batch_no:literal, $ends:ident, $($place:ident)*;)*) => {
        const EXAMPLES: &[Example] = &[$(Example {
            path: $path,
            batch_no: $batch_no,
            ends: BatchStatus::$ends,
            runs_on: &[$(stringify!($place)),*],
        }),*];
        $(mod $name {$(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $place() {
                super::works(super::example($path), stringify!($place)).await;
            }
        )*})*
    };
}

examples! {
    month_end_close: "month-end-close.yaml", "202407", Success, sqlite mysql postgres;
    quarter_end_consolidation:
        "quarter-end-consolidation.yaml", "2024Q3", Success, sqlite mysql postgres;
    fan_out_fan_in: "fan-out-fan-in.yaml", "202407", Success, sqlite mysql postgres;
    script_pipeline: "script-pipeline.yaml", "202407", Success, no_database;
    retry_that_succeeds: "retry-that-succeeds.yaml", "202407", Success, no_database;
    pools_and_locks: "pools-and-locks.yaml", "202407", Success, sqlite mysql postgres;
    time_out: "time-out.yaml", "202407", Failed, no_database;
    time_out_procedure: "time-out-procedure.yaml", "202407", Failed, mysql postgres;
    netsuite_period_close: "netsuite-period-close.yaml", "202407", Success, no_database;
    sensor_wait: "sensor-wait.yaml", "202407", Success, sqlite mysql postgres;
    sub_batch: "sub-batch.yaml", "202407", Success, no_database;
    for_each: "for-each.yaml", "202407", Success, no_database;
    http_call: "http-call.yaml", "202407", Success, no_database;
    csv: "csv/job_def.csv", "202407", Success, no_database;
    success_and_checks: "success-and-checks.yaml", "202407", Warning, sqlite mysql postgres;
    exactly_once: "exactly-once.yaml", "202407", Success, sqlite mysql postgres;
    executor_handler: "executor-handler.yaml", "202407", Success, sqlite mysql postgres;
    approval: "approval.yaml", "202407", Success, no_database;
    quarter_of_months: "quarter-of-months.yaml", "2024Q3", Success, sqlite mysql postgres;
}

/// The group that an example's command names, when its file has several.
fn group_of(path: &str) -> Option<&'static str> {
    match path {
        "quarter-of-months.yaml" => Some("premium_quarter"),
        "sub-batch.yaml" => Some("region_close"),
        _ => None,
    }
}

/// Batches of other groups that run beside an example's own, which waits for them; opened after it.
fn beside(path: &str) -> &'static [(&'static str, &'static str)] {
    match path {
        "quarter-of-months.yaml" => {
            &[("202407", "premium_month"), ("202408", "premium_month"), ("202409", "premium_month")]
        }
        _ => &[],
    }
}

fn example(path: &str) -> &'static Example {
    EXAMPLES.iter().find(|e| e.path == path).expect("in the table")
}

fn dialect(place: &str) -> Option<DialectName> {
    DialectName::ALL.into_iter().find(|d| d.as_str() == place)
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("dag-examples")
}

fn load(path: &str) -> Definition {
    let loaded =
        app::load_definition(&folder().join(path)).unwrap_or_else(|e| panic!("{path}: {e}"));
    let warnings: Vec<String> = loaded.warnings.iter().map(ToString::to_string).collect();
    assert!(warnings.is_empty(), "{path}: {warnings:?}");
    loaded.definition
}

fn order(batch_no: &str, group: Option<&str>) -> BatchOrder {
    BatchOrder {
        batch_no: BatchNo::parse(batch_no).expect("batch number"),
        batch_type: None,
        group: group.map(|g| GroupCode::parse(g).expect("group")),
        business_date: None,
        params: BTreeMap::new(),
        free_text: false,
    }
}

// --- running -----------------------------------------------------------------------------------------

/// A batch that has ended, with all that was stored of it.
struct Ran {
    batch: Batch,
    snapshot: Snapshot,
    rows: Vec<QueueEntry>,
    outputs: BTreeMap<String, JobOutputs>,
    /// Recipient, type and job of each mail, in order.
    mails: Vec<String>,
    /// Starts of each job, counted in its log.
    starts: BTreeMap<String, usize>,
}

impl Ran {
    fn states(&self) -> BTreeMap<&str, &str> {
        self.rows.iter().map(|r| (r.job_code.as_str(), r.status.as_str())).collect()
    }

    fn value(&self, name: &str) -> String {
        let (code, output) = name.split_once('.').expect("JOB.name");
        let value = self.outputs.get(code).and_then(|o| o.value(output));
        value.unwrap_or_else(|| panic!("{name} has no value: {:?}", self.states()))
    }
}

/// Applies a definition and runs it to its end as `procession run` does, on the metadata database
/// `url`.
async fn run(defs: &Definition, path: &str, batch_no: &str, url: &str) -> Ran {
    let defs = &Definition { schedules: Vec::new(), ..defs.clone() };
    let empty = tempfile::NamedTempFile::new().expect("a settings file");
    let mut config = crate::util::config(empty.path());
    config.database.url = SecretString::from(url);
    let app = App::open(config, EmptyDatabase::Accept).await.expect("open");
    app.db.migrate().await.expect("migrate");
    assert!(!app.apply(defs, Apply::Write).await.expect("apply").is_empty());
    assert_eq!(app.apply(defs, Apply::DryRun).await.expect("again"), []);
    assert_eq!(&app.definition().await.expect("stored"), defs);

    let mut dispatcher = app.dispatcher(None).await.expect("dispatcher");
    let _executor = executor(&app, defs, &dispatcher).await;
    let order_of_it = order(batch_no, group_of(path));
    let ids = dispatcher.open_batches(defs, &order_of_it, "test").await.expect("open a batch");
    for (other, group) in beside(path) {
        dispatcher
            .open_batches(defs, &order(other, Some(group)), "test")
            .await
            .expect("open beside it");
    }
    let [id] = ids[..] else { panic!("an example is one group: {ids:?}") };
    let stop = CancellationToken::new();
    let work = dispatcher.run_until_done(&stop);
    let work = tokio::time::timeout(Duration::from_secs(180), work);
    tokio::select! {
        done = work => done.expect("in time").expect("run"),
        () = approve_all(&app), if defs.jobs.iter().any(|job| job.approval.is_some()) => {}
    }
    dispatcher.leave().await.expect("leave");
    let ran = read(&app, id).await;
    app.db.close().await;
    ran
}

/// Approves whatever waits, as a second person; never returns.
async fn approve_all(app: &App) {
    loop {
        tokio::time::sleep(Duration::from_millis(200)).await;
        let mut tx = app.db.begin_read().await.expect("read");
        let filter = ApprovalFilter { is_waiting: true, ..ApprovalFilter::default() };
        let waiting = store::approval::list_page(&mut tx, &filter, None, None, 10).await;
        for one in waiting.expect("approvals") {
            let batch = store::batch::get(&mut tx, one.batch_id).await.expect("batch");
            let row = store::queue::of_job(&mut tx, one.batch_id, &one.job).await;
            let row = row.expect("read").expect("the job");
            let by = Operator::new("controller.zhao".to_owned(), "h".to_owned());
            let request = DecisionRequest {
                batch: &batch,
                row: &row,
                verdict: ApprovalVerdict::Approve,
                comment: None,
                by: &by,
                grants: None,
            };
            decide(&app.db, &request, app.server_now().await.expect("now")).await.expect("decide");
        }
    }
}

/// The executor of an example, when it has one: it has done at once what it is asked for, which is to say
/// how many payments it was given, and its end is written as the door for executors writes it.
async fn executor(app: &App, defs: &Definition, dispatcher: &QueueDispatcher) -> Option<Host> {
    let call = defs.jobs.iter().find_map(|job| job.executor.clone())?;
    let db = app.db.clone();
    let host = Host::start(move |request: &str| {
        let (head, body) = request.split_once("\r\n\r\n").unwrap_or((request, ""));
        if head.starts_with("POST /run ") {
            let asked: Value = serde_json::from_str(body).expect("JSON");
            let sent = asked["executorParams"].as_str().expect("parameters");
            let sent: Value = serde_json::from_str(sent).expect("JSON");
            let log_id = LogId(asked["logId"].as_i64().expect("a number"));
            let msg = Some(sent["params"]["due"].to_string());
            let (db, told) = (db.clone(), ReportedRunEnd { log_id, code: 200, msg });
            tokio::spawn(async move {
                let mut tx = db.begin().await.expect("begin");
                executor_run::report_ends(&mut tx, &[told], Millis(0)).await.expect("tell");
                tx.commit().await.expect("commit");
            });
        }
        Reply::text(200, r#"{"code":200,"msg":null,"content":null}"#)
    })
    .await;
    let group = ExecutorGroup {
        app_name: call.app.clone(),
        title: "支付".to_owned(),
        addressing: Addressing::Fixed(vec![host.url.clone()]),
        glue: GluePolicy::Refused,
        access: Default::default(),
    };
    let token = KeptToken { sealed: "sealed".to_owned(), digest: "digest".to_owned() };
    let mut tx = app.db.begin().await.expect("begin");
    executor_group::add_group(&mut tx, &group, &token, Millis(0)).await.expect("add");
    tx.commit().await.expect("commit");
    let secret = SecretString::from("a token of sixteen or more");
    dispatcher.executors().know_token(&call.app, &token.sealed, secret);
    Some(host)
}

async fn read(app: &App, id: BatchId) -> Ran {
    let mut tx = app.db.begin_read().await.expect("read");
    let batch = store::batch::get(&mut tx, id).await.expect("batch");
    let snapshot = store::batch::snapshot(&mut tx, id).await.expect("snapshot");
    let rows = store::queue::of_batch(&mut tx, id).await.expect("rows");
    let (mut outputs, mut starts) = (BTreeMap::new(), BTreeMap::new());
    for row in &rows {
        let code = row.job_code.to_string();
        for (_, json) in store::queue::outputs(&mut tx, &[row.queue_id]).await.expect("outputs") {
            outputs.insert(code.clone(), serde_json::from_str(&json).expect("JSON"));
        }
        let changes = store::log::of_entry(&mut tx, row.queue_id).await.expect("log");
        let count = changes.iter().filter(|c| c.log.status == QueueStatus::Running).count();
        starts.insert(code, count);
    }
    let sql = "SELECT m.recipient_email, m.type, q.job_code FROM email_notifications m \
               JOIN job_queue q ON q.queue_id = m.queue_id ORDER BY m.id";
    let mails = tx.fetch_all(sql, &[]).await.expect("mails");
    let words = |row: &procession::db::Row| {
        let text = |column: &str| row.get_text(column).expect("text");
        format!("{} {} {}", text("job_code"), text("type"), text("recipient_email"))
    };
    Ran { batch, snapshot, rows, outputs, mails: mails.iter().map(words).collect(), starts }
}

/// Runs an example on a database of its own, the metadata in another one of the same server.
async fn works(example: &'static Example, place: &'static str) {
    let server = dialect(place).unwrap_or(DialectName::Sqlite);
    with_scratch(server, |meta| async move {
        with_scratch(server, |data| async move {
            let mut defs = load(example.path);
            defs.sources.iter_mut().for_each(|source| source.url.clone_from(&data.url));
            if defs.jobs.iter().any(|job| job.tx == TxClass::Ledger) {
                let mut session = session(&data.url).await;
                session.make_ledger().await.expect("as source prepare does");
                session.close().await;
            }
            let answer = |_: &str| Reply::text(200, r#"{"rows": 12}"#);
            let host = Host::start(answer).await;
            defs.shared.hosts.iter_mut().for_each(|h| h.base_url.clone_from(&host.url));
            let ran = run(&defs, example.path, example.batch_no, &meta.url).await;
            let said: Vec<_> = ran.rows.iter().filter_map(|r| r.error_message.as_ref()).collect();
            assert_eq!(ran.batch.status, example.ends, "{:?} {said:?}", ran.states());
            assert_drawn(&ran);
            assert_mailed(&ran);
            as_promised(example.path, &ran, &data.url).await;
        })
        .await;
    })
    .await;
}

fn native(view: &DagView) -> serde_json::Value {
    match picture::format("native").expect("native").draw_view(view, Wishes::default()).drawn() {
        Drawn::Json(document) => serde_json::to_value(&document).expect("JSON"),
        Drawn::Text(text) => panic!("not JSON: {text}"),
    }
}

fn dot(view: &DagView) -> String {
    match picture::format("dot").expect("dot").draw_view(view, Wishes::default()).drawn() {
        Drawn::Json(document) => panic!("not text: {document:?}"),
        Drawn::Text(text) => text,
    }
}

fn assert_drawn(ran: &Ran) {
    let dag = ran.snapshot.build_dag().expect("a DAG");
    let states: Vec<JobState> = ran.rows.iter().map(JobState::from).collect();
    let view =
        DagView::of_batch(ran.batch.values.batch_no.as_str(), &ran.snapshot, &dag, Some(&states));
    let native = native(&view);
    assert_eq!(native["nodes"].as_array().map(Vec::len), Some(ran.snapshot.jobs.len()));
    assert_eq!(native["edges"].as_array().map(Vec::len), Some(ran.snapshot.dependencies.len()));
    let drawn: BTreeMap<&str, &str> = native["nodes"]
        .as_array()
        .expect("nodes")
        .iter()
        .map(|n| (n["code"].as_str().expect("code"), n["status"].as_str().expect("status")))
        .collect();
    assert_eq!(drawn, ran.states());
    let dot = dot(&view);
    assert!(dot.starts_with("digraph ") && dot.trim_end().ends_with('}'), "{dot}");
    assert_eq!(dot.matches(" -> ").count(), ran.snapshot.dependencies.len(), "{dot}");
}

/// A mail for each address of a job that failed for good or waited for an approval, and no other.
fn assert_mailed(ran: &Ran) {
    let group = &ran.snapshot.group.notify_email;
    let mut expected = Vec::new();
    for (row, job) in ran.rows.iter().zip(&ran.snapshot.jobs) {
        if job.approval.is_some() {
            expected.push(format!("{} approval_wanted controllers@bank.example", job.code));
        }
        let kind = match row.status {
            QueueStatus::Failed => "failed",
            QueueStatus::Timeout => "timeout",
            QueueStatus::Unknown => "unknown",
            _ => continue,
        };
        let to = job.notify_email.iter().chain(group);
        expected.extend(to.map(|address| format!("{} {kind} {address}", job.code)));
    }
    assert_eq!(ran.mails, expected);
}

/// The state in which each job of an example ends.
fn assert_states(path: &str, ran: &Ran) {
    let (success, timeout, upstream) = ("SUCCESS", "TIMEOUT", "UPSTREAM_FAILED");
    let warning = "WARNING";
    match path {
        "time-out.yaml" => {
            let expected = [
                ("SLOW_EXTRACT", timeout),
                ("LOAD", upstream),
                ("LOAD_REPORT", upstream),
                ("OTHER_EXTRACT", success),
                ("OTHER_REPORT", success),
            ];
            assert_eq!(ran.states(), expected.into());
        }
        "time-out-procedure.yaml" => {
            let expected = [
                ("TIMEOUT_SETUP", success),
                ("SLOW_PROCEDURE", timeout),
                ("AFTER_SLOW", upstream),
                ("QUICK_PROCEDURE", success),
            ];
            assert_eq!(ran.states(), expected.into());
        }
        "success-and-checks.yaml" => {
            let expected = [
                ("DELIVERY_LOAD", success),
                ("DELIVERY_POST", warning),
                ("DELIVERY_REMARKS", warning),
                ("DELIVERY_DONE", success),
            ];
            assert_eq!(ran.states(), expected.into());
        }
        _ => assert!(ran.states().values().all(|s| *s == success), "{:?}", ran.states()),
    }
}

/// What `exactly-once.yaml` leaves behind.
async fn posted_once(ran: &Ran, url: &str) {
    assert_eq!(ran.value("GL_CHECK.postings"), "1");
    let keys = query(url, "SELECT idem_key FROM gl_posting").await;
    let key = keys[0][0].as_deref().unwrap_or_default();
    assert!(keys.len() == 1 && key.ends_with("/202407/GL_POST/1"), "{keys:?}");
}

/// What `retry-that-succeeds.yaml` took.
fn fetched_at_the_third_attempt(ran: &Ran) {
    let starts: Vec<_> = ran.starts.iter().map(|(code, n)| (code.as_str(), *n)).collect();
    assert_eq!(starts, [("FETCH_RATES", 3), ("RATES_READY", 1), ("STORE_RATES", 1)]);
    assert_eq!((ran.rows[0].attempt, ran.rows[0].try_count), (3, 2));
    assert_eq!(ran.value("FETCH_RATES.usd_cny"), "7.1346");
}

/// What each example says of itself.
async fn as_promised(path: &str, ran: &Ran, url: &str) {
    assert_states(path, ran);
    match path {
        "month-end-close.yaml" => as_written(&folder().join("month-end-close"), ran, url).await,
        "quarter-end-consolidation.yaml" => {
            as_written(&folder().join("quarter-end-consolidation"), ran, url).await;
        }
        "retry-that-succeeds.yaml" => fetched_at_the_third_attempt(ran),
        "pools-and-locks.yaml" => {
            assert_eq!(ran.starts["POOL_RATES"], 3);
            assert_eq!(ran.value("POOL_REPORT_BALANCE.balance"), "130");
            assert_eq!(ran.value("POOL_REPORT_LOADS.loads"), "3");
        }
        "script-pipeline.yaml" => assert_eq!(ran.value("REPORT.total"), "2940607"),
        "time-out.yaml" => assert_eq!(ran.value("OTHER_EXTRACT.rows"), "42"),
        "fan-out-fan-in.yaml" => {
            assert_eq!(ran.value("JOIN.branches"), "20");
            assert_eq!(ran.value("JOIN.amount"), "210");
        }
        "sensor-wait.yaml" => assert_eq!(ran.value("ARRIVAL_WAIT.row_cnt"), "1200"),
        "sub-batch.yaml" => assert_eq!(ran.value("REGION_REPORT.branch_batch"), "202406"),
        "exactly-once.yaml" => posted_once(ran, url).await,
        "approval.yaml" => assert_eq!(ran.value("CLOSE_RELEASE.decided_by"), "controller.zhao"),
        "executor-handler.yaml" => {
            assert_eq!(ran.value("PAY_SEND.handle_code"), "200");
            assert_eq!(ran.value("PAY_BOOK.sent_cnt"), "12");
        }
        "http-call.yaml" => assert_eq!(ran.value("CALL_NEIGHBOUR.rows"), "12"),
        "for-each.yaml" => {
            assert_eq!(ran.value("LIST_DONE.branches"), "4");
            assert_eq!(ran.value("LIST_REGIONS.items"), "north,south");
            assert_eq!(ran.rows.len(), 5 + 3 + 2 + 4);
        }
        "quarter-of-months.yaml" => {
            assert_eq!(ran.value("QUARTER_SUM.months"), "3");
            // 1007 + 1008 + 1009
            assert_eq!(ran.value("QUARTER_SUM.written"), "3024");
        }
        "success-and-checks.yaml" => {
            let checks = &ran.outputs["DELIVERY_POST"].checks;
            let words = checks
                .iter()
                .map(|(name, f)| format!("{name}={} {}", f.value.as_deref().unwrap_or("-"), f.ok));
            let expected = [
                "amounts in range=0 true",
                "as last month=3 true",
                "ledger is the load=285, 3 true",
                "smallest branch=75 false",
            ];
            assert_eq!(words.collect::<Vec<_>>(), expected);
        }
        "netsuite-period-close.yaml" => {
            assert_eq!((ran.rows.len(), ran.snapshot.dependencies.len()), (69, 89));
        }
        _ => {}
    }
}

/// Compares with the `expected.json` of an example: `checks` are queries, `outputs` are values.
async fn as_written(folder: &Path, ran: &Ran, url: &str) {
    let text = std::fs::read_to_string(folder.join("expected.json")).expect("expected.json");
    let expected: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(expected["batch_no"], ran.batch.values.batch_no.as_str());
    let checks = expected["checks"].as_array().expect("checks");
    assert!(!checks.is_empty());
    for check in checks {
        let rows = query(url, check["sql"].as_str().expect("sql")).await;
        let rows = serde_json::to_value(&rows).expect("rows");
        assert_eq!(rows, check["rows"], "{}", check["name"]);
    }
    let outputs = expected["outputs"].as_object().expect("outputs");
    assert!(!outputs.is_empty());
    for (name, value) in outputs {
        assert_eq!(ran.value(name), value.as_str().expect("a text"), "{name}");
    }
}

// --- the table ---------------------------------------------------------------------------------------

#[test]
fn every_file_is_in_the_table() {
    let files = std::fs::read_dir(folder()).expect("dag-examples");
    let names = files.map(|f| f.expect("file").file_name().into_string().expect("a plain name"));
    let yaml = names.filter(|n| [".yaml", ".yml", ".json"].iter().any(|end| n.ends_with(end)));
    for name in yaml {
        let known = EXAMPLES.iter().any(|e| e.path == name);
        assert!(known, "dag-examples/{name} is run by no test; add it to examples! here");
    }
}

/// Whoever tries one example after another has them all in one database, where job codes are unique.
#[test]
fn all_examples_fit_into_one_database() {
    let mut codes: BTreeMap<String, &str> = BTreeMap::new();
    for example in EXAMPLES {
        let loaded = app::load_definition(&folder().join(example.path)).expect(example.path);
        for job in loaded.definition.jobs {
            let other = codes.insert(job.code.to_string(), example.path);
            assert_eq!(
                other,
                None,
                "{} and {} both have job {}",
                example.path,
                other.unwrap_or(""),
                job.code
            );
        }
    }
}

/// The README's table: example, what it shows, runs on, command, exit code.
#[test]
fn the_readme_says_what_is_tested() {
    let readme = std::fs::read_to_string(folder().join("README.md")).expect("README");
    let rows: Vec<Vec<&str>> = readme
        .lines()
        .map(|line| line.split('|').map(str::trim).collect())
        .filter(|cells: &Vec<&str>| cells.len() == 7 && cells[1].starts_with('`'))
        .collect();
    assert_eq!(rows.len(), EXAMPLES.len(), "one row for each example");
    for example in EXAMPLES {
        let group = group_of(example.path).map_or(String::new(), |g| format!(" --group {g}"));
        let command = format!(
            "`procession run dag-examples/{} --batch-no {}{group}`",
            example.path, example.batch_no
        );
        let row = rows.iter().find(|cells| cells[4] == command);
        let row = row.unwrap_or_else(|| panic!("no row says {command}"));
        let words = [
            ("sqlite", "SQLite"),
            ("mysql", "MySQL"),
            ("mysql", "MariaDB"),
            ("postgres", "PostgreSQL"),
            ("no_database", "no database"),
        ];
        for (place, word) in words {
            let said = row[3].contains(word);
            assert_eq!(said, example.runs_on.contains(&place), "{}: {word}", example.path);
        }
        let code = if example.ends.is_success() { "0" } else { "1" };
        assert!(row[5].starts_with(code), "{}: exit code {}", example.path, row[5]);
    }
}

#[test]
fn every_example_is_drawn_before_it_runs() {
    for example in EXAMPLES {
        let defs = load(example.path);
        let plans = plan(&defs, &order(example.batch_no, group_of(example.path)), Millis(0))
            .expect("a plan");
        for plan in plans {
            let dag = plan.snapshot.build_dag().expect("a DAG");
            let view = DagView::of_batch("definition", &plan.snapshot, &dag, None);
            let (first, second) = (native(&view), native(&view));
            assert_eq!(first, second, "{}", example.path);
            assert!(first["nodes"][0].get("status").is_none(), "nothing has run");
            assert_eq!(first["nodes"].as_array().map(Vec::len), Some(dag.len()));
            for job in &plan.snapshot.jobs {
                assert!(dot(&view).contains(job.code.as_str()), "{}", job.code);
            }
        }
    }
}

/// No example fails with an address to tell; so one is made to.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failure_is_mailed_to_the_addresses_of_the_example() {
    with_scratch(DialectName::Sqlite, |meta| async move {
        let mut defs = load("csv/job_def.csv");
        defs.groups[0].notify_email = vec!["ops@insurer.example".to_owned()];
        let job = defs.jobs.iter_mut().find(|j| j.code.as_str() == "CSV_RESERVES");
        job.expect("CSV_RESERVES").script = Some("echo no reserves >&2; exit 3".to_owned());
        let ran = run(&defs, "csv/job_def.csv", "202407", &meta.url).await;
        assert_eq!(ran.batch.status, BatchStatus::Failed);
        let expected = [
            "CSV_RESERVES failed actuary@insurer.example",
            "CSV_RESERVES failed ops@insurer.example",
        ];
        assert_eq!(ran.mails, expected);
        assert_mailed(&ran);
        assert_eq!(ran.starts["CSV_RESERVES"], 3);
    })
    .await;
}

/// Checked, stored, and previewed for two years: `CODE local-time number`.
async fn scheduled(path: &str, url: &str) -> Vec<String> {
    let empty = tempfile::NamedTempFile::new().expect("a settings file");
    let mut config = crate::util::config(empty.path());
    config.database.url = SecretString::from(url);
    let app = App::open(config, EmptyDatabase::Accept).await.expect("open");
    app.db.migrate().await.expect("migrate");
    let loaded = app::load_definition(&folder().join(path)).expect("sound");
    store_calendar(&app).await;
    assert_eq!(app.look_at_schedules(&loaded).await.expect("sound"), [], "{path}");
    let (defs, by) = (&loaded.definition, Authorship::of_user());
    assert!(!app.apply_all(defs, Apply::Write, &by).await.expect("apply").is_empty());
    assert_eq!(app.apply_all(defs, Apply::DryRun, &by).await.expect("again"), []);
    let calendars = app.calendars().await.expect("calendars");
    let mut tx = app.db.begin_read().await.expect("read");
    let all = store::trigger::list_triggers(&mut tx).await.expect("schedules");
    drop(tx);
    app.close().await;
    // 2025-01-01 in Shanghai.
    let from = Millis(1_735_660_800_000);
    let mut lines = Vec::new();
    for t in &all {
        assert!(t.next_time.is_some(), "{path}: {}", t.def.code);
        let (zone, order) = (t.def.timing.zone, t.def.order.as_ref().expect("an order"));
        for o in t.def.timing.preview(&calendars, from, Anchor::new(from)).take(8) {
            let o = o.expect("planned");
            let (schedule, planned, nominal) = (t.def.code.as_str(), o.planned, o.nominal);
            let at = PlannedInstant { schedule, planned, nominal, zone, parent: None };
            let no = order.batch_no.number(at).expect("number");
            let local = planned.to_utc().with_timezone(&zone).format("%Y-%m-%d %H:%M");
            lines.push(format!("{schedule} {local} {no}"));
        }
    }
    lines
}

async fn store_calendar(app: &App) {
    use procession::definition::{CalendarForm, read_calendar};
    let path = folder().join("calendars/cn.json");
    let text = std::fs::read_to_string(&path).expect("calendar");
    let read = read_calendar(&path, &text, CalendarForm::Json, &BTreeSet::new());
    let cn = CalendarCode::parse("cn").expect("code");
    let mut tx = app.db.begin().await.expect("begin");
    let calendar = read.expect("a calendar").calendar(&cn, None);
    store::calendar::put_calendar(&mut tx, &calendar, Millis(0)).await.expect("put");
    tx.commit().await.expect("commit");
}

async fn schedules_fire_when_they_say(server: DialectName) {
    with_scratch(server, |meta| async move {
        let lines = scheduled("quarter-end-consolidation.yaml", &meta.url).await;
        let wanted = [
            "QUARTER_END 2025-03-31 18:00 2025Q1",
            "QUARTER_END 2025-06-30 18:00 2025Q2",
            "QUARTER_END 2025-09-30 18:00 2025Q3",
            "QUARTER_END 2025-12-31 18:00 2025Q4",
            "QUARTER_END 2026-03-31 18:00 2026Q1",
            "QUARTER_END 2026-06-30 18:00 2026Q2",
            "QUARTER_END 2026-09-30 18:00 2026Q3",
            "QUARTER_END 2026-12-31 18:00 2026Q4",
        ];
        assert_eq!(lines, wanted);
    })
    .await;
    with_scratch(server, |meta| async move {
        let lines = scheduled("month-end-close.yaml", &meta.url).await;
        assert_eq!(lines[0], "MONTH_END_CLOSE 2025-01-01 02:00 202412");
        assert_eq!(lines[7], "MONTH_END_CLOSE 2025-08-01 02:00 202507");
    })
    .await;
}

#[tokio::test]
async fn schedules_fire_when_they_say_on_sqlite() {
    schedules_fire_when_they_say(DialectName::Sqlite).await;
}

#[tokio::test]
async fn schedules_fire_when_they_say_on_mysql() {
    schedules_fire_when_they_say(DialectName::Mysql).await;
}

#[tokio::test]
async fn schedules_fire_when_they_say_on_postgres() {
    schedules_fire_when_they_say(DialectName::Postgres).await;
}

// --- by command --------------------------------------------------------------------------------------

/// A folder with a copy of the examples, as somebody who cloned the repository has it.
fn clone_of_examples() -> tempfile::TempDir {
    let home = tempfile::tempdir().expect("temporary folder");
    copy(&folder(), &home.path().join("dag-examples"));
    home
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir(to).expect("folder");
    for entry in std::fs::read_dir(from).expect("folder") {
        let entry = entry.expect("entry");
        let to = to.join(entry.file_name());
        if entry.file_type().expect("type").is_dir() {
            copy(&entry.path(), &to);
        } else {
            std::fs::copy(entry.path(), to).expect("copy");
        }
    }
}

fn procession(home: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_procession"));
    // Nothing of the developer's own settings.
    for (name, _) in std::env::vars() {
        if name.starts_with("PROCESSION_") || name == "RUST_LOG" {
            command.env_remove(name);
        }
    }
    command.current_dir(home).args(args).output().expect("procession starts")
}

fn said(output: &Output) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    format!("{}\n{}", text(&output.stdout), text(&output.stderr))
}

#[test]
fn the_main_demo_runs_by_command() {
    let home = clone_of_examples();
    let args = ["run", "dag-examples/month-end-close.yaml", "--batch-no", "202407", "--json"];
    let output = procession(home.path(), &args);
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    let summary: Value = serde_json::from_slice(&output.stdout).expect("JSON alone on stdout");
    let batch = &summary[0];
    assert_eq!((&batch["batch_no"], &batch["status"]), (&"202407".into(), &"SUCCESS".into()));
    let jobs = batch["jobs"].as_array().expect("jobs");
    assert_eq!(jobs.len(), 24);
    assert!(jobs.iter().all(|job| job["status"] == "SUCCESS"), "{batch:#}");
    let income = jobs.iter().find(|job| job["job_code"] == "INCOME_STATEMENT").expect("the job");
    assert_eq!(income["outputs"]["values"]["p_net_income"], "623405.35");
}

#[test]
fn the_same_batch_does_not_run_twice_by_command() {
    let home = clone_of_examples();
    let twice = [
        ("netsuite-period-close.yaml", 0, "give another batch number"),
        ("time-out.yaml", 1, "--resume"),
    ];
    for (file, code, cure) in twice {
        let file = format!("dag-examples/{file}");
        let args = ["run", &file, "--batch-no", "202407"];
        let first = procession(home.path(), &args);
        assert_eq!(first.status.code(), Some(code), "{}", said(&first));
        let again = procession(home.path(), &args);
        assert_eq!(again.status.code(), Some(2), "{}", said(&again));
        let words = String::from_utf8_lossy(&again.stderr);
        assert!(words.contains("202407") && words.contains(cure), "{words}");
    }
}
