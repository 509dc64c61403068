//! What somebody of one group hears of the codes of another: nothing. Each request is sent with a code that another
//! group has and with one that nobody has, and both answers are alike but for the code.

use crate::api::server::Server;
use axum::http::Method;
use procession::domain::access::group_access::GroupAccess;
use procession::domain::access::{Permission, Role};
use procession::domain::executor::{Addressing, ExecutorGroup, GluePolicy};
use procession::domain::id::GroupCode;
use procession::domain::xxl::xxl_run::AppName;
use procession::store::executor_group::{self, KeptToken};
use procession::store::secret::{self, SealedSecret};
use serde_json::{Value, json};

const DEFINITION: &str = "
groups:
  ours: { type: monthly }
  theirs: { type: monthly, params: { P: 1 } }
sources:
  theirs_source: { url: 'sqlite:theirs.db', owner_group: theirs }
secrets:
  THEIRS_SECRET: { env: THEIRS, owner_group: theirs }
jobs:
  A: { group: ours, type: NOOP }
  THEIRS_JOB: { group: theirs, type: NOOP }
  SQL: { group: theirs, type: SQL, source: theirs_source, sql: SELECT 1 }
schedules:
  THEIRS_SCHEDULE: { group: theirs, manual: true, batch_no: month(-1) }
";

/// A definition of our group with these lines in its job, and with these below it.
fn sent(job: &str, more: &str) -> Value {
    let text = format!(
        "groups: {{ours: {{type: monthly}}}}\njobs:\n  A: {{group: ours, type: NOOP{job}}}\n{more}"
    );
    json!({ "text": text, "remark": "test", "dry_run": true })
}

/// A request with `{}` in place of a code.
struct Probe {
    /// The code that another group has.
    theirs: &'static str,
    path: &'static str,
    body: Value,
}

fn probe(theirs: &'static str, path: &'static str, body: Value) -> Probe {
    Probe { theirs, path, body }
}

/// Definitions that use a code, or have it.
fn definitions() -> Vec<Probe> {
    let source = "sources: {{}: {url: 'sqlite:theirs.db'}}\n";
    let sub_batch = "  B: {group: ours, type: BATCH, sub_batch: {group: '{}'}}\n";
    let handler =
        "  C: {group: ours, type: HANDLER, executor: {app: '{}', handler: h}, on_unknown: hold}\n";
    let given = "schedules: {S: {group: ours, manual: true, batch_no: month(-1), params: {P: '@secret:{}'}}}\n";
    let after = "schedules: {S: {group: ours, after: '{}', batch_no: same}}\n";
    let uses = [
        ("theirs_source", sent(", depends_on: []", source)),
        ("THEIRS_SECRET", sent(", params: {P: '${secret.{}}'}", "")),
        ("THEIRS_STORED", sent(", params: {P: '${secret.{}}'}", "")),
        ("THEIRS_JOB", sent(", depends_on: [{group: theirs, job: '{}', batch: prev}]", "")),
        ("theirs", sent(", depends_on: [{group: '{}', batch: prev}]", "")),
        ("theirs", sent(", depends_on: [{group: '{}', batch: day(-1)}]", "")),
        ("theirs", sent("", sub_batch)),
        ("theirs", sent("", after)),
        ("THEIRS_JOB", sent("", "  '{}': {group: ours, type: NOOP}\n")),
        ("THEIRS_STORED", sent("", given)),
        ("theirs-executor", sent("", handler)),
    ];
    let paths = ["/definition/check", "/definition/diff", "/definition/apply"];
    let all =
        uses.iter().flat_map(|(theirs, body)| paths.map(|path| probe(theirs, path, body.clone())));
    let text =
        "groups: {ours: {type: monthly}}\njobs: {A: {group: ours, type: NOOP, priority: 3}}\n";
    let versions =
        json!({ "text": text, "remark": "r", "dry_run": true, "if_versions": {"{}": 7} });
    all.chain([probe("theirs", "/definition/apply", versions)]).collect()
}

/// Orders of batches, and schedules.
fn orders() -> Vec<Probe> {
    let order = |group: &str, params: Option<&Value>| {
        let mut order =
            json!({ "group": group, "batch_no": "202407", "reason": "r", "dry_run": true });
        if let Some(params) = params {
            order["params"] = params.clone();
        }
        order
    };
    let secret = json!({ "P": "@secret:{}" });
    let words =
        |words: Value| json!({ "code": "S1", "words": words, "reason": "r", "dry_run": true });
    let theirs = words(json!({ "group": "{}", "manual": true, "batch_no": "month(-1)" }));
    let after = words(json!({ "group": "ours", "after": "{}", "batch_no": "same" }));
    let given = json!({ "group": "ours", "manual": true, "batch_no": "month(-1)", "params": secret.clone() });
    let backfill = json!({ "group": "{}", "range": "202401..202403" });
    vec![
        probe("theirs", "/batches", order("{}", None)),
        probe("theirs", "/batches/plan", order("{}", None)),
        probe("THEIRS_SECRET", "/batches", order("ours", Some(&secret))),
        probe("THEIRS_SECRET", "/batches/plan", order("ours", Some(&secret))),
        probe("THEIRS_STORED", "/batches", order("ours", Some(&secret))),
        probe("THEIRS_STORED", "/batches/plan", order("ours", Some(&secret))),
        probe("theirs", "/schedules", theirs),
        probe("theirs", "/schedules", after),
        probe("THEIRS_SECRET", "/schedules", words(given)),
        probe("theirs", "/backfills/preview", backfill),
    ]
}

/// Actions on a job or a schedule.
fn actions() -> Vec<Probe> {
    let ice = |job: &str| json!({ "jobs": [job], "mode": "ice", "reason": "r" });
    let why = json!({ "reason": "r" });
    vec![
        probe("THEIRS_JOB", "/jobs/run-modes", ice("{}")),
        probe("THEIRS_JOB", "/jobs/run-modes", ice("theirs.{}")),
        probe("THEIRS_SCHEDULE", "/schedules/{}/pause", why.clone()),
        probe("THEIRS_SCHEDULE", "/schedules/{}/fire-now", why),
    ]
}

async fn bench() -> (Server, String) {
    let server = Server::new().await;
    let admin = server.admin().await;
    let body = json!({ "text": DEFINITION, "remark": "test" });
    server.send(Method::POST, "/definition/apply", &admin, &body).await.is(200);
    let access = GroupAccess { owner_group: GroupCode::parse("theirs").ok(), groups: None };
    let mut tx = server.app.db.begin().await.expect("begin");
    let now = server.app.clock.now();
    let secret = SealedSecret { sealed: "never opened".to_owned(), access };
    secret::put_secret(&mut tx, "THEIRS_STORED", &secret, "test", now).await.expect("secret");
    let owner_group = GroupCode::parse("theirs").ok();
    let group = ExecutorGroup {
        app_name: AppName::parse("theirs-executor").expect("a name"),
        title: "theirs".to_owned(),
        addressing: Addressing::Registered,
        glue: GluePolicy::Refused,
        access: GroupAccess { owner_group, groups: None },
    };
    let kept = KeptToken { sealed: "never opened".to_owned(), digest: "0".repeat(64) };
    executor_group::add_group(&mut tx, &group, &kept, now).await.expect("executors");
    tx.commit().await.expect("commit");
    let rights = [Permission::Script, Permission::Force];
    let token = server.token(&[("ours", Role::Author, &rights)]).await;
    (server, token)
}

#[tokio::test]
async fn a_code_of_another_group_is_answered_like_one_that_nobody_has() {
    let (server, token) = bench().await;
    let mut differ = Vec::new();
    for Probe { theirs, path, body } in definitions().into_iter().chain(orders()).chain(actions()) {
        // As long as theirs, so that places in a line are the same.
        let nobodys: String = "nobody_has_it_at_all".chars().take(theirs.len()).collect();
        let mut answers = Vec::new();
        for code in [theirs, &nobodys] {
            let body = serde_json::from_str(&body.to_string().replace("{}", code)).expect("JSON");
            let answer = server.send(Method::POST, &path.replace("{}", code), &token, &body).await;
            answers.push((answer.status, answer.text.replace(code, "CODE")));
        }
        // A request that cannot be read proves nothing.
        let status = answers[0].0.as_u16();
        assert!(!matches!(status, 400 | 500), "{path} {body}: {answers:?}");
        if answers[0] != answers[1] {
            let (theirs, nobodys) = (&answers[0], &answers[1]);
            differ.push(format!("{path} {body}\n   theirs:  {theirs:?}\n   nobodys: {nobodys:?}"));
        }
    }
    assert!(differ.is_empty(), "{} differ:\n{}", differ.len(), differ.join("\n"));
}

/// The code of a schedule is the installation's, so that it is taken has to be said; whose it is, is not.
#[tokio::test]
async fn a_taken_code_of_a_schedule_names_no_group() {
    let (server, token) = bench().await;
    let schedule =
        "schedules: {THEIRS_SCHEDULE: {group: ours, manual: true, batch_no: month(-1)}}\n";
    let body = sent("", schedule);
    let refused = server.send(Method::POST, "/definition/apply", &token, &body).await;
    assert!(refused.text.contains("has a code that is taken"), "{}", refused.text);
    assert!(!refused.text.contains("group theirs"), "{}", refused.text);
    let admin = server.admin().await;
    let refused = server.send(Method::POST, "/definition/apply", &admin, &body).await;
    assert!(refused.text.contains("belongs to group theirs"), "{}", refused.text);
}

/// Who may not administer sources is not shown what is stored of one.
#[tokio::test]
async fn a_diff_shows_no_source_of_another_group() {
    let (server, token) = bench().await;
    let source = "sources: {theirs_source: {url: 'sqlite:mine.db', owner_group: ours}}\n";
    let body = sent("", source);
    let shown = server.send(Method::POST, "/definition/diff", &token, &body).await;
    assert!(shown.status.is_success() && !shown.text.contains("theirs.db"), "{}", shown.text);
    let admin = server.admin().await;
    let shown = server.send(Method::POST, "/definition/diff", &admin, &body).await;
    assert!(shown.text.contains("theirs.db"), "{}", shown.text);
}
