//! `store::job`: definitions go in and come out.

use super::{Place, T0, all_of, chain, code, group, job, later};
use procession::domain::id::{JobType, SourceName};
use procession::domain::job::part;
use procession::domain::job::trigger_rule::EdgeCondition;
use procession::domain::job::{
    Definition, GroupFailurePolicy, JobDef, JobDependency, Param, ParamDecl, ParamMode, ParamType,
    SqlText, TransactionMode,
};
use procession::domain::source::{DataSource, DialectName};
use procession::domain::time::Millis;
use procession::store;
use serde_json::json;
use std::collections::BTreeMap;

/// All that a name or text may hold and a database may spoil.
const HARD: &str = "月末结账 🧾 'single' \"double\" `tick` \\back $1 ? :x %s _";

async fn apply(place: &Place, wanted: &Definition, now: Millis) {
    let mut tx = place.db.begin().await.expect("begin");
    let stored = store::job::definition(&mut tx).await.expect("read");
    store::job::apply(&mut tx, &stored, wanted, now).await.expect("apply");
    tx.commit().await.expect("commit");
}

async fn stored(place: &Place) -> Definition {
    let mut tx = place.db.begin_read().await.expect("read");
    store::job::definition(&mut tx).await.expect("definition")
}

async fn value(place: &Place, sql: &str) -> String {
    place.scratch.value(sql).await
}

fn full_job() -> JobDef {
    let per_dialect = BTreeMap::from([
        (DialectName::Sqlite, "SELECT 'sqlite ?'".to_owned()),
        (DialectName::Mysql, "SELECT `x` /* 中文 */".to_owned()),
        (DialectName::Postgres, "SELECT $$body$$, $1".to_owned()),
    ]);
    let mut full = JobDef {
        name: HARD.to_owned(),
        job_type: JobType::parse("SQL").expect("type"),
        source: SourceName::parse("ledger").ok(),
        proc_name: Some("fin.sp_post".to_owned()),
        sql: Some(SqlText::Per(per_dialect)),
        transaction: TransactionMode::Each,
        script: Some("#!/bin/sh\r\necho \"${x}\"\ttab\n".to_owned()),
        interpreter: Some("sh".to_owned()),
        working_dir: Some("/tmp/a b".to_owned()),
        params: vec![
            Param {
                name: "p_in".to_owned(),
                mode: ParamMode::In,
                ty: ParamType::Decimal,
                value: Some("1.50".to_owned()),
                ..Param::default()
            },
            Param {
                name: "p_out".to_owned(),
                mode: ParamMode::Out,
                ty: ParamType::Text,
                value: None,
                ..Param::default()
            },
        ],
        schedule_time: "18:30:05".parse().ok(),
        timeout_sec: u32::try_from(i32::MAX).expect("fits"),
        retry_count: 7,
        retry_delay_sec: 90,
        priority: -3,
        idempotent: true,
        is_active: false,
        notify_email: vec!["a@bank.example".to_owned(), "b@bank.example".to_owned()],
        owner: Some("财务部 O'Neil".to_owned()),
        tags: vec!["月末".to_owned(), "gl".to_owned()],
        ..job("month_end", "总账过账-1")
    };
    extras(&mut full);
    full
}

fn source(name: &str) -> DataSource {
    DataSource {
        name: SourceName::parse(name).expect("source"),
        url: "mysql://u@h:3306/数据".to_owned(),
        password_env: None,
        password_file: None,
        password_secret: None,
        read_password: Default::default(),
        max_parallel: None,
        procedures: BTreeMap::new(),
        access: Default::default(),
    }
}

fn full() -> Definition {
    let long = format!("SELECT '{}';\n", HARD.replace('\'', "''")).repeat(900);
    assert!(long.len() > 60_000, "{}", long.len());
    let mut month_end = group("month_end");
    month_end.name = HARD.to_owned();
    month_end.batch_type = Some("monthly".to_owned());
    month_end.owner = Some("GL team".to_owned());
    month_end.notify_email = vec!["gl@bank.example".to_owned(), "ops@bank.example".to_owned()];
    month_end.max_parallel = Some(8);
    month_end.on_failure = GroupFailurePolicy::Stop;
    month_end.batch_timeout_sec = Some(7_200);
    month_end.warn_after_sec = Some(3_600);
    month_end.time_zone = Some("Asia/Shanghai".to_owned());
    month_end.calendar = Some(from_json(json!("中国")));
    month_end.params = vec![ParamDecl::plain("note", HARD)];
    let ledger = DataSource {
        password_env: Some("LEDGER_PASSWORD".to_owned()),
        password_file: Some("/run/secrets/it's".to_owned()),
        password_secret: Some("LEDGER_DB".to_owned()),
        max_parallel: Some(4),
        procedures: BTreeMap::from([("sp_post".to_owned(), long.clone())]),
        access: from_json(json!({"owner_group": "month_end", "groups": ["other", "later"]})),
        ..source("ledger")
    };
    let big = JobDef { sql: Some(SqlText::Same(long)), ..job("month_end", "BIG") };
    let waits = |on: &str, order| JobDependency {
        group: super::group_code("month_end"),
        job_code: code("LAST"),
        depends_on: code(on),
        dependency_order: order,
        when: EdgeCondition::Success,
    };
    Definition {
        sources: vec![ledger, source("bare")],
        groups: vec![month_end, group("other")],
        jobs: vec![full_job(), big, job("month_end", "LAST"), job("other", "ALONE")],
        dependencies: vec![waits("BIG", 2), waits("总账过账-1", 1)],
        externals: vec![from_json(json!({
            "waiting_group": "month_end", "job_code": "LAST", "group": "other", "depends_on": "ALONE", "batch": "month(-1)",
            "when": "n > 0", "missing": "pass", "wait_sec": 60
        }))],
        shared: from_json(json!({
            "owners": [{"code": "gl", "name": HARD, "email": ["gl@bank.example"]}],
            "pools": [{"name": "ORA_DW", "slots": 4}],
            "hosts": [{"name": "api", "base_url": "https://api.bank.example",
                       "headers": {"X": HARD}, "max_parallel": 2}],
            "secrets": [{"name": "pw", "env": "PW"},
                        {"name": "key", "file": "/k", "owner_group": "other", "groups": ["month_end"]}],
            "params": [{"name": "rate", "type": "decimal", "value": "7.1", "required": true,
                        "secret": true}],
        })),
        ..Definition::default()
    }
}

fn from_json<T: serde::de::DeserializeOwned>(value: serde_json::Value) -> T {
    serde_json::from_value(value).expect("fits the type")
}

/// What a job may say beyond its body: every field is set, so that one that is not stored is seen.
fn extras(job: &mut JobDef) {
    job.aliases = vec![code("GL_ALIAS")];
    job.trigger_rule = from_json(json!("none_failed"));
    job.retry = from_json(json!({
        "backoff_percent": 200, "max_delay_sec": 600, "jitter_percent": 10,
        "on": ["deadlock", "lock_wait"], "on_sqlstate": ["40001"], "never_on_sqlstate": ["23"]
    }));
    job.pools = from_json(json!([{"pool": "ORA_DW", "weight": 2}]));
    job.locks = from_json(json!([{"lock": "GL", "mode": "shared"}]));
    job.warn_after_sec = Some(900);
    job.success = from_json(json!([{"rule": "p_status == 0", "else": "fatal", "message": HARD}]));
    job.checks = from_json(json!([
        {"name": "a", "sql": "SELECT 1", "expect": "zero_rows", "else": "warning"},
        {"name": "b", "source": "bare", "sql": "SELECT 2", "expect": {"between": {"min": "0"}}},
        {"name": "c", "sql": "SELECT 3", "expect": {"equals": {"sql": "SELECT 4", "tolerance": "0.01"}}},
        {"name": "d", "sql": "SELECT 5", "expect": {"drift": {"max_percent": "10"}}}
    ]));
    job.http = from_json(json!({
        "host": "api", "method": "POST", "path": "/x/{a}", "headers": {"A": HARD},
        "send": "json", "expect_status": [200, 202]
    }));
    job.sensor = from_json(json!({"poll_sec": 5}));
    job.sub_batch = from_json(json!({"group": "other", "batch": "same"}));
    job.executor = from_json(json!({
        "app": "pay-executor", "handler": HARD, "language": "shell", "send": "text",
        "route": "LEAST_RECENTLY_USED", "block": "DISCARD_LATER"
    }));
    job.for_each = from_json(json!({"items": ["SH", "BJ"], "max_parallel": 2}));
}

pub(super) async fn definition_comes_back_as_it_went_in(place: Place) {
    apply(&place, &full(), T0).await;
    assert_eq!(stored(&place).await, full());
    let depends = "SELECT COUNT(*) FROM job_def WHERE is_depend = 1 AND job_code = 'LAST'";
    assert_eq!(value(&place, depends).await, "1");
    let depends = "SELECT COUNT(*) FROM job_def WHERE is_depend = 1";
    assert_eq!(value(&place, depends).await, "1");
}

const TABLES: [&str; 4] = ["data_source", "job_group", "job_def", "job_dependency"];

pub(super) async fn applying_the_same_again_changes_no_row(place: Place) {
    apply(&place, &full(), T0).await;
    let mut before = Vec::new();
    for table in TABLES {
        before.push(all_of(&place, table).await);
    }
    apply(&place, &full(), later(60_000)).await;
    for (table, before) in TABLES.iter().zip(before) {
        assert_eq!(all_of(&place, table).await, before, "{table}");
    }
}

/// Keys of the rows that were written at `now`.
async fn written_at(place: &Place, table: &str, key: &str, now: Millis) -> Vec<String> {
    let mut tx = place.db.begin_read().await.expect("read");
    let sql = format!("SELECT {key} AS k FROM {table} WHERE update_time = ? ORDER BY {key}");
    let rows = tx.fetch_all(&sql, &[now.to_utc().into()]).await.expect("rows");
    rows.iter().map(|row| row.get_text("k").expect("key")).collect()
}

pub(super) async fn only_what_differs_is_written(place: Place) {
    apply(&place, &full(), T0).await;
    let mut wanted = full();
    wanted.sources[1].max_parallel = Some(1);
    wanted.groups[0].max_parallel = None;
    wanted.jobs[1].sql = Some(SqlText::Same("SELECT 1".to_owned()));
    wanted.jobs.push(job("month_end", "NEW"));
    apply(&place, &wanted, later(1_000)).await;
    assert_eq!(written_at(&place, "data_source", "source_name", later(1_000)).await, ["bare"]);
    assert_eq!(written_at(&place, "job_group", "group_code", later(1_000)).await, ["month_end"]);
    assert_eq!(written_at(&place, "job_def", "job_code", later(1_000)).await, ["BIG", "NEW"]);
    let mut tx = place.db.begin_read().await.expect("read");
    let created = "SELECT create_time FROM job_def WHERE job_code = 'BIG'";
    let row = tx.fetch_optional(created, &[]).await.expect("query").expect("row");
    assert_eq!(Millis::from(row.get_time("create_time").expect("time")), T0);
    drop(tx);
    let mut found = stored(&place).await;
    // NEW was written last, so it comes last.
    assert_eq!(found.jobs.pop(), wanted.jobs.pop());
    assert_eq!(found, wanted);
}

pub(super) async fn jobs_that_are_gone_are_removed_and_other_groups_left_alone(place: Place) {
    apply(&place, &chain("other", &["X", "Y"]), T0).await;
    apply(&place, &chain("month_end", &["A", "B", "C", "D"]), T0).await;
    let theirs = all_of(&place, "job_group").await;
    apply(&place, &chain("month_end", &["A", "C"]), later(5)).await;
    let found = stored(&place).await;
    let codes: Vec<&str> = found.jobs.iter().map(|j| j.code.as_str()).collect();
    assert_eq!(codes, ["X", "Y", "A", "C"]);
    let edges: Vec<String> =
        found.dependencies.iter().map(|d| format!("{}<{}", d.depends_on, d.job_code)).collect();
    assert_eq!(edges, ["X<Y", "A<C"]);
    assert_eq!(all_of(&place, "job_group").await, theirs);
    assert_eq!(written_at(&place, "job_def", "job_code", T0).await, ["A", "C", "X", "Y"]);
}

pub(super) async fn a_job_moves_between_groups_and_dependencies_change(place: Place) {
    let mut wanted = chain("month_end", &["A", "B", "C"]);
    wanted.groups.push(group("other"));
    apply(&place, &wanted, T0).await;
    wanted.jobs[2].group = super::group_code("other");
    wanted.dependencies = vec![JobDependency {
        group: super::group_code("month_end"),
        job_code: code("B"),
        depends_on: code("A"),
        dependency_order: 9,
        when: EdgeCondition::Success,
    }];
    apply(&place, &wanted, later(5)).await;
    assert_eq!(stored(&place).await, wanted);
    assert_eq!(written_at(&place, "job_def", "job_code", T0).await, ["A", "B"], "C is another job");
    // C lost its dependency, which its row says too.
    let waits = "SELECT is_depend FROM job_def WHERE job_code = 'C'";
    assert_eq!(value(&place, waits).await, "0");
    assert_eq!(written_at(&place, "job_def", "job_code", later(5)).await, ["C"]);
}

pub(super) async fn groups_have_the_same_codes(place: Place) {
    apply(&place, &chain("other", &["A", "B", "C"]), T0).await;
    let mut wanted = chain("month_end", &["A", "B", "C"]);
    wanted.externals = vec![procession::domain::job::external::ExternalDependency {
        waiting_group: super::group_code("month_end"),
        job_code: code("A"),
        group: super::group_code("other"),
        depends_on: Some(code("A")),
        batch: procession::domain::batch_no::BatchExpr::parse("same").expect("expression"),
        when: EdgeCondition::Success,
        missing: procession::domain::job::external::Missing::Wait,
        wait_sec: None,
    }];
    apply(&place, &wanted, later(5)).await;
    let found = stored(&place).await;
    let shown = |defs: &Definition| {
        let jobs = defs.jobs.iter().map(|j| j.key().to_string());
        let edges = defs.dependencies.iter();
        let edges = edges.map(|d| format!("{}:{}<{}", d.group, d.depends_on, d.job_code));
        let externals =
            defs.externals.iter().map(|e| format!("{}.{}", e.waiting_group, e.job_code));
        jobs.chain(edges).chain(externals).collect::<Vec<_>>().join(" ")
    };
    let theirs = "other.A other.B other.C month_end.A month_end.B month_end.C other:A<B other:B<C";
    assert_eq!(shown(&found), format!("{theirs} month_end:A<B month_end:B<C month_end.A"));
    // What one group gives up, the other keeps.
    apply(&place, &chain("month_end", &["C"]), later(6)).await;
    let theirs = "other.A other.B other.C month_end.C other:A<B other:B<C";
    assert_eq!(shown(&stored(&place).await), theirs);
    let word = "SELECT COUNT(*) FROM job_external_dependency";
    assert_eq!(value(&place, word).await, "0");
    let mut tx = place.db.begin_read().await.expect("read");
    let mut named = async |word: &str, seen: Option<&str>| {
        let seen = seen.map(|group| [super::group_code(group)].into());
        let found = store::job_list::find_named(&mut tx, word, seen.as_ref()).await.expect("read");
        found.map_or_else(|error| error.to_string(), |job| job.key().to_string())
    };
    assert_eq!(named("A", None).await, "other.A");
    assert_eq!(named("month_end.C", None).await, "month_end.C");
    let several = "C is in groups month_end and other; write month_end.C or other.C";
    assert_eq!(named("C", None).await, several);
    assert_eq!(named("C", Some("other")).await, "other.C", "what is not seen is no candidate");
    assert!(named("month_end.C", Some("other")).await.starts_with("there is no job"));
}

pub(super) async fn codes_differ_by_case(place: Place) {
    let wanted = chain("month_end", &["post", "POST", "Post", "pöst"]);
    apply(&place, &wanted, T0).await;
    assert_eq!(stored(&place).await, wanted);
}

/// A version is made of what was said to be stored, which nobody reads back.
pub(super) async fn what_is_said_to_be_stored_is_stored(place: Place) {
    apply(&place, &chain("other", &["X", "Y"]), T0).await;
    apply(&place, &chain("month_end", &["A", "B", "C", "D"]), T0).await;
    let before = stored(&place).await;
    // A job less, one between, another order, a dependency that says something else.
    let mut wanted = chain("month_end", &["D", "N", "B", "A"]);
    wanted.jobs[1].timeout_sec = 7;
    wanted.dependencies.push(JobDependency {
        group: super::group_code("month_end"),
        job_code: code("A"),
        depends_on: code("D"),
        dependency_order: 3,
        when: EdgeCondition::Success,
    });
    let said = part::merged(&before, &wanted).to_definition();
    apply(&place, &wanted, later(5)).await;
    let found = stored(&place).await;
    assert_eq!(found.jobs, said.jobs);
    assert_eq!(found.dependencies, said.dependencies);
    assert_eq!(found, Definition { schedules: found.schedules.clone(), ..said });
    // The same in another order changes nothing.
    let mut turned = wanted.clone();
    turned.jobs.reverse();
    turned.dependencies.reverse();
    assert_eq!(part::merged(&found, &turned), part::merged(&found, &wanted));
}
