//! `store::version` and `store::audit`, as `app` writes them: what was defined, and going back to it.

use super::{Place, T0, all_of, chain, group, group_code, job, later};
use procession::app::{App, Apply, Authorship};
use procession::definition::DefinitionDifference;
use procession::domain::id::SourceName;
use procession::domain::job::borrowed::BorrowedDefinition;
use procession::domain::job::{Definition, SqlText};
use procession::domain::source::DataSource;
use procession::engine::clock::Clock;
use procession::store::{self, version};
use std::collections::BTreeMap;

/// Beyond what a column of 255 characters or one byte per character could hold.
const REMARK: &str = "月末结账 🧾 it's \"new\"\nsecond line";

fn app(place: &Place) -> App {
    let empty = tempfile::NamedTempFile::new().expect("a settings file");
    let config = crate::util::config(empty.path());
    App {
        config,
        db: place.db.clone(),
        clock: Clock::set_by_hand(T0),
        secret_stores: Default::default(),
    }
}

fn by(author: &str, remark: Option<&str>) -> Authorship {
    Authorship {
        by: procession::store::audit::Operator::new(author, "here"),
        remark: remark.map(str::to_owned),
    }
}

async fn apply(app: &App, wanted: &Definition, by: &Authorship) -> Vec<String> {
    let changes = app.apply_all(wanted, Apply::Write, by).await.expect("apply");
    changes.iter().map(DefinitionDifference::to_string).collect()
}

/// Number, author and remark of each version of a group.
async fn versions(app: &App, group: &str) -> Vec<String> {
    let all = app.versions(&group_code(group)).await.expect("versions");
    let line = |v: &version::Version| {
        format!("{} {} {}", v.no, v.author, v.remark.as_deref().unwrap_or("-"))
    };
    all.iter().map(line).collect()
}

fn source(name: &str, url: &str) -> DataSource {
    DataSource {
        name: SourceName::parse(name).expect("name"),
        url: url.to_owned(),
        password_env: None,
        password_file: None,
        password_secret: None,
        read_password: Default::default(),
        max_parallel: None,
        procedures: BTreeMap::new(),
        access: procession::domain::access::group_access::GroupAccess::default(),
    }
}

/// Two groups on one source.
fn shared() -> Definition {
    let mut defs = chain("month_end", &["A", "B"]);
    defs.groups.push(group("other"));
    defs.jobs.push(job("other", "X"));
    defs.sources.push(source("ledger", "sqlite:a.db"));
    for job in &mut defs.jobs {
        job.source = SourceName::parse("ledger").ok();
    }
    defs
}

pub(super) async fn each_change_of_a_group_is_a_version(place: Place) {
    let app = app(&place);
    apply(&app, &shared(), &by("li", Some(REMARK))).await;
    assert_eq!(versions(&app, "month_end").await, [format!("1 li {REMARK}")]);
    assert_eq!(versions(&app, "other").await, [format!("1 li {REMARK}")]);
    // Nothing changes, nothing is written.
    assert_eq!(apply(&app, &shared(), &by("wang", None)).await, [""; 0]);
    // One group changes.
    let mut wanted = shared();
    wanted.jobs[1].sql = Some(SqlText::Same("SELECT '月'".to_owned()));
    apply(&app, &wanted, &by("wang", None)).await;
    assert_eq!(versions(&app, "month_end").await.last().map(String::as_str), Some("2 wang -"));
    assert_eq!(versions(&app, "other").await.len(), 1);
    // What both stand on changes both, also when only one of them is in the file.
    let mut one = chain("other", &["X"]);
    one.jobs[0].source = SourceName::parse("ledger").ok();
    one.sources.push(source("ledger", "sqlite:b.db"));
    apply(&app, &one, &by("zhao", Some("moved"))).await;
    assert_eq!(versions(&app, "month_end").await.len(), 3);
    let all = app.versions(&group_code("other")).await.expect("versions");
    assert_eq!((all[1].no, all[1].at, all[1].author.as_str()), (2, T0, "zhao"));
    assert_eq!(all[1].definition.sources, one.sources);
    assert_eq!(all[1].definition.jobs, one.jobs);
}

pub(super) async fn a_dry_run_and_a_refusal_leave_no_version(place: Place) {
    let app = app(&place);
    app.apply(&shared(), Apply::DryRun).await.expect("dry run");
    apply(&app, &chain("other", &["X"]), &by("li", None)).await;
    let mut foreign = chain("month_end", &["A"]);
    foreign.jobs[0].source = SourceName::parse("ledger").ok();
    let mut ledger = source("ledger", "sqlite:b.db");
    ledger.access.owner_group = Some(group_code("other"));
    foreign.sources.push(ledger);
    let error = app.apply(&foreign, Apply::Write).await.expect_err("a source of another group");
    let wanted =
        "job A of group month_end may not use data source ledger, which is for other (owner)";
    assert!(error.to_string().contains(wanted), "{error}");
    assert_eq!(versions(&app, "month_end").await, [""; 0]);
    assert_eq!(all_of(&place, "definition_version").await.len(), 1);
}

/// The record of what was taken back; what was applied is on record too.
const ROLLBACKS: &str = "audit_log WHERE action = 'rollback'";

pub(super) async fn a_rollback_is_a_new_version_and_is_written_down(place: Place) {
    let app = app(&place);
    apply(&app, &shared(), &by("li", None)).await;
    let mut wanted = chain("month_end", &["A", "NEW"]);
    wanted.groups[0].max_parallel = Some(2);
    apply(&app, &wanted, &by("wang", None)).await;
    let first = app.versions(&group_code("month_end")).await.expect("versions").remove(0);
    let before = all_of(&place, "audit_log").await.len();
    let changes = app.rollback(&first, Apply::DryRun, &by("zhao", None), "x").await.expect("dry");
    let words: Vec<String> = changes.iter().map(DefinitionDifference::to_string).collect();
    let wanted_words = [
        "~ group month_end\n    max_parallel: 2 -> (none)",
        "~ job A\n    source: (none) -> ledger",
        "+ job B",
        "- job NEW",
        "+ dependency B <- A",
        "- dependency NEW <- A",
    ];
    assert_eq!(words, wanted_words);
    assert_eq!(versions(&app, "month_end").await.len(), 2);
    assert_eq!(all_of(&place, "audit_log").await.len(), before, "a dry run does nothing");

    app.rollback(&first, Apply::Write, &by("zhao", None), REMARK).await.expect("rollback");
    let last = format!("3 zhao rollback to version 1: {REMARK}");
    assert_eq!(versions(&app, "month_end").await.last(), Some(&last));
    let mut found = app.definition().await.expect("stored");
    found.jobs.sort_by(|a, b| a.code.cmp(&b.code));
    assert_eq!(found.jobs, shared().jobs);
    assert_eq!(all_of(&place, "audit_log").await.len(), before + 1, "one act, one record");
    let mut tx = place.db.begin_read().await.expect("read");
    let rows = tx.fetch_all(&format!("SELECT * FROM {ROLLBACKS}"), &[]).await.expect("rows");
    drop(tx);
    let text = |column: &str| rows[0].get_text(column).expect("text");
    assert_eq!((rows.len(), text("actor"), text("action")), (1, "zhao".into(), "rollback".into()));
    assert_eq!((text("group_code"), text("reason")), ("month_end".into(), REMARK.into()));
    let detail: serde_json::Value = serde_json::from_str(&text("detail")).expect("JSON");
    assert_eq!(detail["version"], 1);
    let first_change = detail["changes"][0].as_str().expect("a change");
    assert!(first_change.starts_with("~ group month_end"), "{detail}");
    // To where it is already: nothing to do.
    let again = app.rollback(&first, Apply::Write, &by("zhao", None), "x").await.expect("again");
    assert!(again.is_empty());
    assert_eq!(versions(&app, "month_end").await.len(), 3);
    assert_eq!(all_of(&place, "audit_log").await.len(), before + 1, "nothing was done");
}

pub(super) async fn what_was_there_before_versions_can_be_gone_back_to(place: Place) {
    let app = app(&place);
    let mut tx = place.db.begin().await.expect("begin");
    let nothing = Definition::default();
    store::job::apply(&mut tx, &nothing, &chain("month_end", &["OLD"]), T0).await.expect("apply");
    tx.commit().await.expect("commit");
    apply(&app, &chain("month_end", &["NEW"]), &by("li", None)).await;
    let all = app.versions(&group_code("month_end")).await.expect("versions");
    let codes: Vec<&str> = all.iter().map(|v| v.definition.jobs[0].code.as_str()).collect();
    assert_eq!(codes, ["OLD", "NEW"]);
    assert_eq!(all[0].remark.as_deref(), Some("as it was before its first change under versions"));
}

pub(super) async fn a_version_number_is_given_once(place: Place) {
    let definition = chain("month_end", &["A"]);
    let month_end = group_code("month_end");
    let new = version::NewVersion {
        group: &month_end,
        author: "li",
        remark: None,
        definition: &BorrowedDefinition::from_definition(&definition),
    };
    let mut tx = place.db.begin().await.expect("begin");
    assert_eq!(version::last_number(&mut tx, &month_end).await.expect("last"), 0);
    assert_eq!(version::add_version(&mut tx, &new, T0).await.expect("add"), 1);
    assert_eq!(version::add_version(&mut tx, &new, later(1)).await.expect("add"), 2);
    tx.commit().await.expect("commit");
    let twice = "UPDATE definition_version SET version_no = 2";
    let mut tx = place.db.begin().await.expect("begin");
    assert!(tx.execute(twice, &[]).await.is_err(), "the number is unique within its group");
}
