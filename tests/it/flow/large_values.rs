//! Values that are stored aside: on their way from job to job, through crashes, other nodes and reruns.

use crate::flow::cluster::{BOTH, node, until_states};
use crate::flow::{Bench, defs, finish, on, on_each_database, order};
use procession::domain::action::OperatorAction;
use procession::domain::action::rerun::{RerunScope, UnknownJobs};
use procession::domain::batch::{BatchOrder, BatchStatus};
use procession::domain::cluster::node_placement::NodeRole;
use procession::domain::id::{BatchId, JobCode};
use procession::domain::job::Definition;
use procession::domain::job::outcome::OutputValue;
use procession::domain::source::DialectName;
use procession::domain::source::tx_class::TxClass;
use procession::domain::value::ValueType;
use procession::engine::operate::operator_actions::{self, Command};
use procession::store;
use procession::store::audit::Operator;

/// An expression for a text of `4 * count` bytes, with a character of three bytes and a control character.
fn document(bench: &Bench, count: usize) -> String {
    match bench.db.dialect() {
        store::Dialect::Postgres => format!("repeat('月' || chr(1), {count})"),
        store::Dialect::Mysql => format!("REPEAT(CONCAT('月', CHAR(1 USING utf8mb4)), {count})"),
        store::Dialect::Sqlite => {
            format!("replace(hex(zeroblob({count})), '00', '月' || char(1))")
        }
    }
}

/// BIG returns a document; it is a parameter, a success rule, a check, two conditions and a list of
/// others.
const USES: &str = "
defaults: { type: SQL, source: here }
jobs:
  BIG:
    sql: \"SELECT {doc} AS doc, CONCAT('SH,', {doc}, ',BJ') AS items, 7 AS n\"
    success: [\"result.doc is not null and result.n == 7\"]
  PARAM:
    depends_on: [BIG]
    sql: \"SELECT CASE WHEN :p = {doc} THEN 'same' ELSE 'other' END AS v\"
    params: [{ name: p, value: '${jobs.BIG.doc}' }]
    success: [\"result.v == 'same'\"]
  WHEN: { depends_on: [{ job: BIG, when: \"doc != 'x'\" }], type: NOOP }
  NEVER: { depends_on: [{ job: BIG, when: \"doc == 'x'\" }], type: NOOP }
  IF: { depends_on: [BIG], if: \"BIG.doc != 'x'\", type: NOOP }
  SMALL:
    depends_on: [BIG]
    sql: 'SELECT :p AS v'
    params: [{ name: p, value: '${jobs.BIG.n}' }]
";

const ALL_WELL: &str =
    "BIG=SUCCESS PARAM=SUCCESS WHEN=SUCCESS NEVER=SKIPPED IF=SUCCESS SMALL=SUCCESS";

fn definition(bench: &Bench, tx: TxClass, text: &str, count: usize) -> Definition {
    let head = format!("sources: {{ here: {{ url: \"{}\" }} }}\n", bench.url);
    let text = head + &text.replace("{doc}", &document(bench, count));
    let text = match bench.db.dialect() {
        store::Dialect::Sqlite => {
            text.replace("CONCAT('SH,', ", "('SH,' || ").replace(", ',BJ')", " || ',BJ')")
        }
        store::Dialect::Mysql | store::Dialect::Postgres => text,
    };
    let mut defs = defs(&text);
    let on_source = defs.jobs.iter_mut().filter(|job| job.source.is_some());
    on_source.for_each(|job| job.tx = tx);
    defs
}

async fn rerun(bench: &Bench, id: BatchId, job: &str) {
    let by = Operator::new("li".to_owned(), "desk".to_owned());
    let jobs = [JobCode::parse(job).expect("code")];
    let action = OperatorAction::Rerun(RerunScope::These, UnknownJobs::Leave);
    let command =
        Command { batch: id, action, jobs: &jobs, latest: None, by: &by, reason: "again" };
    let now = bench.clock.now();
    let ahead = operator_actions::look_ahead(&bench.db, &command, now).await.expect("look");
    operator_actions::carry_out(&bench.db, &command, &ahead.lines, now).await.expect("act");
}

async fn stored_rows(bench: &Bench) -> i64 {
    bench.number("SELECT COUNT(*) AS n FROM job_output_value").await
}

/// The text that is stored for an output.
async fn stored_text(bench: &Bench, id: BatchId, name: &str) -> String {
    let outputs = bench.outputs(id, "BIG").await;
    let Some(OutputValue::Stored(reference)) = outputs.output(name) else {
        panic!("{name} is not stored aside: {:?}", outputs.output(name));
    };
    assert_eq!(reference.value_type, Some(ValueType::Text));
    let mut tx = bench.db.begin_read().await.expect("read");
    let text = store::output_value::load_value(&mut tx, &reference).await.expect("load");
    text.expect("as it was stored")
}

/// Of a mebibyte and of five, in each class of transactions.
async fn a_large_value_is_stored_aside_and_reaches_its_consumers(bench: Bench) {
    for (number, tx, count) in [
        (1, TxClass::None, 262_144),
        (2, TxClass::Ledger, 262_144),
        (3, TxClass::Same, 262_144),
        (4, TxClass::None, 1_310_720),
    ] {
        let before = stored_rows(&bench).await;
        let mut process = bench.process().await;
        let no = BatchOrder::parse(&format!(r#"{{"batchNo":"{number}"}}"#)).expect("order");
        let defs = definition(&bench, tx, USES, count);
        let id = process.open_batches(&defs, &no, "test").await.expect("open")[0];
        finish(&bench, &mut process).await;
        assert_eq!(bench.states(id).await, ALL_WELL, "{tx:?}");
        let document = "月\u{1}".repeat(count);
        assert!(stored_text(&bench, id, "doc").await == document, "{tx:?}: another text");
        assert!(stored_text(&bench, id, "items").await == format!("SH,{document},BJ"));
        let json = serde_json::to_string(&bench.outputs(id, "BIG").await).expect("JSON");
        assert!(json.len() < 3_000, "the row holds references: {} bytes", json.len());
        let chunks =
            document.len().div_ceil(512 * 1024) + (document.len() + 6).div_ceil(512 * 1024);
        let chunks = i64::try_from(chunks).expect("few");
        // A chunk ends at a character, so that one more may be needed.
        let found = stored_rows(&bench).await - before;
        assert!((chunks..=chunks + 2).contains(&found), "{found} rows, not {chunks}");
    }
}

async fn a_large_list_makes_jobs(bench: Bench) {
    let text = "
defaults: { type: SQL, source: here }
jobs:
  BIG: { sql: \"SELECT 1 AS n, CONCAT('SH,', REPEAT(',', 1000000), 'BJ') AS items\" }
  EACH: { depends_on: [BIG], type: NOOP, for_each: { output: BIG.items } }
";
    let sqlite = "('SH,' || replace(hex(zeroblob(1000000)), '00', ',') || 'BJ')";
    let text = match bench.db.dialect() {
        store::Dialect::Sqlite => text.replace("CONCAT('SH,', REPEAT(',', 1000000), 'BJ')", sqlite),
        store::Dialect::Mysql | store::Dialect::Postgres => text.to_owned(),
    };
    let mut process = bench.process().await;
    let defs = definition(&bench, TxClass::None, &text, 1);
    let id = process.open_batches(&defs, &order(), "test").await.expect("open")[0];
    finish(&bench, &mut process).await;
    let states = "BIG=SUCCESS EACH=SUCCESS EACH.SH=SUCCESS EACH.BJ=SUCCESS";
    assert_eq!(bench.states(id).await, states);
    assert!(stored_rows(&bench).await > 0);
}

/// Whoever resumes the batch finds the value with the outcome that refers to it, or neither.
async fn a_process_that_dies_leaves_a_value_with_its_reference_or_neither(bench: Bench) {
    for tx in [TxClass::None, TxClass::Same] {
        let mut was_open = true;
        for beats in 0..40 {
            if !was_open {
                break;
            }
            assert!(beats < 39, "the batch never ended");
            let no = format!(r#"{{"batchNo":"{}-{beats}"}}"#, tx.as_str());
            let mut text = USES.replace("jobs:\n", "jobs:\n  FIRST: { type: NOOP }\n");
            text = text.replace("  BIG:\n", "  BIG:\n    depends_on: [FIRST]\n");
            let text = text.replace("source: here }", "source: here, idempotent: true }");
            let defs = definition(&bench, tx, &text, 50_000);
            let mut first = bench.process().await;
            let order = BatchOrder::parse(&no).expect("order");
            let id = first.open_batches(&defs, &order, "test").await.expect("open")[0];
            was_open = true;
            for _ in 0..beats {
                if first.is_idle() {
                    was_open = false;
                    break;
                }
                if !first.run_tick().await.expect("beat") {
                    first.wait_for_report().await;
                }
            }
            was_open = was_open && !first.is_idle();
            drop(first);
            if !was_open {
                break;
            }
            bench.clock.advance(16_000);
            let mut read = bench.db.begin_read().await.expect("read");
            let there = store::batch::get(&mut read, id).await.expect("batch");
            drop(read);
            let mut second = bench.process().await;
            second.resume(&there, UnknownJobs::Rerun, None).await.expect("resume");
            finish(&bench, &mut second).await;
            let result = second.results()[&id];
            assert_eq!(
                result,
                BatchStatus::Success,
                "{tx:?} after {beats}: {}",
                bench.states(id).await
            );
            assert!(stored_text(&bench, id, "doc").await == "月\u{1}".repeat(50_000));
            let attempts = "SELECT COUNT(DISTINCT attempt) AS n FROM job_output_value \
                            WHERE queue_id = (SELECT MAX(queue_id) FROM job_output_value)";
            assert_eq!(bench.number(attempts).await, 1);
        }
    }
}

/// The end of a job of another node: its value is stored with its report, and read by conditions of the
/// node that has the batch and by parameters of a third.
async fn a_value_of_another_node_is_stored_with_its_report(bench: Bench) {
    let text = USES
        .replace("  BIG:\n", "  BIG:\n    worker: etl\n")
        .replace("  PARAM:\n", "  PARAM:\n    worker: web\n");
    let mut dispatcher = node(&bench, "o", &[NodeRole::Scheduler], &[], 4).await;
    let mut etl = node(&bench, "w", &[NodeRole::Worker], &["etl"], 4).await;
    let mut web = node(&bench, "x", BOTH, &["web"], 4).await;
    let defs = definition(&bench, TxClass::None, &text, 262_144);
    let id = dispatcher.open_batches(&defs, &order(), "test").await.expect("open")[0];
    until_states(&bench, &mut [&mut dispatcher, &mut etl, &mut web], id, ALL_WELL).await;
    assert!(stored_text(&bench, id, "doc").await == "月\u{1}".repeat(262_144));
    assert_eq!(bench.number("SELECT COUNT(*) AS n FROM job_report").await, 0);
}

async fn a_rerun_removes_the_values_of_the_run_before(bench: Bench) {
    let mut process = bench.process().await;
    let defs = definition(&bench, TxClass::None, USES, 262_144);
    let id = process.open_batches(&defs, &order(), "test").await.expect("open")[0];
    finish(&bench, &mut process).await;
    let stored = stored_rows(&bench).await;
    drop(process);
    rerun(&bench, id, "BIG").await;
    assert_eq!(stored_rows(&bench).await, 0, "nothing refers to them any more");
    let mut read = bench.db.begin_read().await.expect("read");
    let there = store::batch::get(&mut read, id).await.expect("batch");
    drop(read);
    let mut second = bench.process().await;
    second.resume(&there, UnknownJobs::Leave, None).await.expect("resume");
    finish(&bench, &mut second).await;
    assert_eq!(bench.states(id).await, ALL_WELL);
    assert_eq!(stored_rows(&bench).await, stored);
}

/// What was changed behind our back is no value.
async fn a_value_that_was_changed_is_refused(bench: Bench) {
    let mut process = bench.process().await;
    let defs = definition(&bench, TxClass::None, USES, 262_144);
    let id = process.open_batches(&defs, &order(), "test").await.expect("open")[0];
    finish(&bench, &mut process).await;
    drop(process);
    bench.by_hand("DELETE FROM job_output_value WHERE chunk_no = 1").await;
    rerun(&bench, id, "PARAM").await;
    let mut read = bench.db.begin_read().await.expect("read");
    let there = store::batch::get(&mut read, id).await.expect("batch");
    drop(read);
    let mut second = bench.process().await;
    second.resume(&there, UnknownJobs::Leave, None).await.expect("resume");
    finish(&bench, &mut second).await;
    let rows = bench.rows(id).await;
    let row = rows.iter().find(|row| row.job_code.as_str() == "PARAM").expect("a row");
    let said = row.error_message.as_deref().unwrap_or_default();
    assert!(said.contains("${jobs.BIG.doc} cannot be handed on"), "{said}");
    assert!(said.contains("run the job that returned it again"), "{said}");
}

on_each_database! {
    a_large_value_is_stored_aside_and_reaches_its_consumers
    a_large_list_makes_jobs
    a_process_that_dies_leaves_a_value_with_its_reference_or_neither
    a_value_of_another_node_is_stored_with_its_report
    a_rerun_removes_the_values_of_the_run_before
    a_value_that_was_changed_is_refused
}
