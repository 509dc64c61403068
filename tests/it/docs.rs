//! Documents that are drawn from the program itself: compared here, written by `make docs`. Pages whose commands
//! are run, and the pages of the documentation site.

mod cli;
mod site;
mod translations;
mod walkthrough;

use procession::definition::{CalendarForm, read_calendar};
use procession::domain::batch_no::{BatchExpr, Period, RelativeBatch};
use procession::domain::calendar::{Calendars, WorkingDays};
use procession::domain::id::{BatchNo, GroupCode, JobCode, JobType};
use procession::domain::job::queue::{QueueEvent, QueueStatus};
use procession::domain::job::trigger_rule::{
    Edge, EdgeCondition, EdgeTally, TriggerDecision, TriggerRule, evaluate_edge,
};
use procession::domain::job::{JobDef, Param, Takes};
use procession::domain::params::{BatchValues, Layers, PRECEDENCE, ParamSources, Start, resolve};
use procession::domain::source::tx_class::{IdemKey, KeyForm};
use procession::picture::FORMATS;
use sqlx::sqlite::SqliteConnection;
use sqlx::{AssertSqlSafe, Connection, Row};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::{Path, PathBuf};

const GENERATED: &str = "<!-- Written by `make docs`; changes by hand are lost. -->\n";

fn root(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// Compares a document with what it should be, or writes it when `make docs` asks for that.
fn check(path: &str, wanted: &str) {
    let file = root(path);
    if std::env::var_os("PROCESSION_UPDATE_DOCS").is_some() {
        std::fs::write(&file, wanted).expect("docs can be written");
        return;
    }
    let found = std::fs::read_to_string(&file).unwrap_or_default().replace("\r\n", "\n");
    let at = found.lines().zip(wanted.lines()).take_while(|(a, b)| a == b).count();
    assert!(
        found == wanted,
        "{path} is out of date from line {}; run `make docs` and commit the result\n  has:  {}\n  must: {}",
        at + 1,
        found.lines().nth(at).unwrap_or("(end)"),
        wanted.lines().nth(at).unwrap_or("(end)"),
    );
}

// --- the state machine -----------------------------------------------------------------------------

#[test]
fn state_machine() {
    let source =
        std::fs::read_to_string(root("crates/core/src/domain/job/queue.rs")).expect("source");
    check("docs/state-machine.md", &state_machine_page(&source));
}

/// The forms of values are those that the tests of values find on the servers.
#[test]
fn values() {
    let page = std::fs::read_to_string(root("docs/values.md")).unwrap_or_default();
    let (introduction, _) =
        page.split_once(GENERATED).expect("docs/values.md has a generated part");
    check("docs/values.md", &format!("{introduction}{GENERATED}{}", crate::values::page::tables()));
}

/// The two tables by which a batch decides stand in the documents as the code has them.
#[test]
fn trigger_rules() {
    let page = std::fs::read_to_string("docs/dependencies.md").expect("docs/dependencies.md");
    for table in [edge_table(), rule_table()] {
        assert!(page.contains(&table), "docs/dependencies.md must hold this table:\n{table}");
    }
}

fn edge_table() -> String {
    let expr = EdgeCondition::parse("n > 0").expect("expression");
    let mut table = String::from(
        "| parent | success | failure | done | skipped | expression true | expression false |\n\
         |---|---|---|---|---|---|---|\n",
    );
    for parent in QueueStatus::ALL.into_iter().filter(|s| s.is_final()) {
        let _ = write!(table, "| `{}` |", parent.drawn_as());
        let whens = [
            EdgeCondition::Success,
            EdgeCondition::Failure,
            EdgeCondition::Done,
            EdgeCondition::Skipped,
            expr.clone(),
        ];
        let cells = whens.iter().map(|w| evaluate_edge(w, parent, |_| true));
        for cell in cells.chain([evaluate_edge(&expr, parent, |_| false)]) {
            let word = match cell.expect("the parent is final") {
                Edge::Met => "met",
                Edge::Failed => "failed",
                Edge::Unmet => "not met",
                Edge::Neutral => "neutral",
                Edge::Lost => "lost",
            };
            let _ = write!(table, " {word} |");
        }
        table.push('\n');
    }
    table
}

fn rule_table() -> String {
    let edges = [
        ("all met", [2, 0, 0, 0, 0]),
        ("met and failed", [1, 1, 0, 0, 0]),
        ("met and not met", [1, 0, 1, 0, 0]),
        ("met and neutral", [1, 0, 0, 1, 0]),
        ("met and lost", [1, 0, 0, 0, 1]),
        ("all failed", [0, 2, 0, 0, 0]),
        ("failed and not met", [0, 1, 1, 0, 0]),
        ("failed and neutral", [0, 1, 0, 1, 0]),
        ("all not met", [0, 0, 2, 0, 0]),
        ("not met and neutral", [0, 0, 1, 1, 0]),
        ("all neutral", [0, 0, 0, 2, 0]),
        ("all lost", [0, 0, 0, 0, 2]),
    ];
    let names = TriggerRule::ALL.map(|rule| format!(" {rule} |"));
    let mut table = format!("| edges |{}\n|---|---|---|---|---|---|---|\n", names.concat());
    for (name, [met, failed, unmet, neutral, lost]) in edges {
        let tally = EdgeTally { open: 0, met, failed, unmet, neutral, lost };
        let _ = write!(table, "| {name} |");
        for rule in TriggerRule::ALL {
            let word = match tally.decide(rule) {
                Some(TriggerDecision::Run) => "runs",
                Some(TriggerDecision::Fail) => "UPSTREAM_FAILED",
                Some(TriggerDecision::NotTaken) => "SKIPPED",
                None => "waits",
            };
            let _ = write!(table, " {word} |");
        }
        table.push('\n');
    }
    table
}

fn state_machine_page(source: &str) -> String {
    let mut page = String::from("# States of a job in a batch\n\n");
    page.push_str(GENERATED);
    page.push_str(
        "\nThe `status` column of `job_queue`. The page is drawn from `QueueStatus::after` in\n\
         `crates/core/src/domain/job/queue.rs`, the one function that says what may follow what; an event that is not\n\
         listed for a state is refused there. Final states are drawn with a way to the end: nothing\n\
         more happens to them unless an operator acts.\n\n```mermaid\nstateDiagram-v2\n    [*] --> PENDING\n",
    );
    for from in QueueStatus::ALL {
        for (to, events) in ways(from) {
            let names: Vec<String> = events.iter().map(|e| format!("{e:?}")).collect();
            let _ = writeln!(
                page,
                "    {} --> {}: {}",
                from.drawn_as(),
                to.drawn_as(),
                names.join(", ")
            );
        }
    }
    for last in QueueStatus::ALL.into_iter().filter(|s| s.is_final()) {
        let _ = writeln!(page, "    {} --> [*]", last.drawn_as());
    }
    page.push_str("```\n\n## States\n\n| state | final | for its children | meaning | event → next state |\n|---|---|---|---|---|\n");
    for state in QueueStatus::ALL {
        let children = match (state.is_final(), state.lets_children_run()) {
            (_, true) => "go on",
            (true, false) if state.blocks_children() => "never run",
            (true, false) => "left out when all parents were",
            (false, false) => "wait",
        };
        let next: Vec<String> = QueueEvent::ALL
            .into_iter()
            .filter_map(|e| state.after(e).ok().map(|to| format!("{e:?} → {}", to.drawn_as())))
            .collect();
        let last = if state.is_final() { "final" } else { "" };
        let meaning = doc_of(source, &format!("{state:?},"));
        let _ = writeln!(
            page,
            "| `{}` | {last} | {children} | {meaning} | {} |",
            state.drawn_as(),
            next.join("; ")
        );
    }
    page.push_str("\n## Events\n\n| event | meaning | legal in |\n|---|---|---|\n");
    for event in QueueEvent::ALL {
        let legal: Vec<String> = QueueStatus::ALL
            .into_iter()
            .filter(|s| s.after(event).is_ok())
            .map(|s| format!("`{}`", s.drawn_as()))
            .collect();
        let meaning = doc_of(source, &format!("{event:?},"));
        let _ = writeln!(page, "| {event:?} | {meaning} | {} |", legal.join(", "));
    }
    page
}

/// Where a state can go, and by which events.
fn ways(from: QueueStatus) -> BTreeMap<QueueStatus, Vec<QueueEvent>> {
    let mut ways: BTreeMap<QueueStatus, Vec<QueueEvent>> = BTreeMap::new();
    for event in QueueEvent::ALL {
        if let Ok(to) = from.after(event) {
            ways.entry(to).or_default().push(event);
        }
    }
    ways
}

/// The doc comment that stands over a line of the source, as one line.
fn doc_of(source: &str, line: &str) -> String {
    let lines: Vec<&str> = source.lines().map(str::trim).collect();
    let at = lines.iter().position(|l| *l == line).unwrap_or(0);
    let mut words: Vec<&str> =
        lines[..at].iter().rev().map_while(|l| l.strip_prefix("/// ")).collect();
    words.reverse();
    words.join(" ")
}

// --- the schema of definition files ------------------------------------------------------------------

#[test]
fn definition_schema() {
    let schema = procession::definition::schema(&procession::app::job_kinds());
    let text = serde_json::to_string_pretty(&schema).expect("JSON");
    check("docs/procession.schema.json", &(text + "\n"));
}

// --- job types ---------------------------------------------------------------------------------------

/// The table of job types is written by hand; each type that there is has its row, with what it needs
/// and may have.
#[test]
fn every_job_type_is_documented() {
    let page = std::fs::read_to_string(root("docs/job-types.md")).expect("docs/job-types.md");
    for kind in procession::app::job_kinds() {
        let row = page.lines().find(|line| line.starts_with(&format!("| {} |", kind.name)));
        let row = row.unwrap_or_else(|| panic!("docs/job-types.md has no row for {}", kind.name));
        let slot = match kind.takes {
            Takes::Slots => "| yes |",
            Takes::Nothing | Takes::Elsewhere => "| no |",
        };
        assert!(row.contains(slot), "{}: {row}", kind.name);
        for part in kind.needs.iter().chain(kind.may_have) {
            // `ProcName` is the key `proc_name`.
            let key: String = format!("{part:?}")
                .chars()
                .map(|c| {
                    if c.is_uppercase() { format!("_{}", c.to_lowercase()) } else { c.to_string() }
                })
                .collect();
            let key = format!("`{}`", key.trim_start_matches('_'));
            assert!(row.contains(&key), "{}: {key} is missing", kind.name);
        }
    }
}

// --- shapes of pictures ----------------------------------------------------------------------------

/// docs/dag-formats.md lists every shape in the program's own words, with the version that is tested.
#[test]
fn shapes_of_pictures() {
    let page = std::fs::read_to_string(root("docs/dag-formats.md")).expect("page");
    let package = std::fs::read_to_string(root("tests/node/package.json")).expect("package.json");
    let package: serde_json::Value = serde_json::from_str(&package).expect("JSON");
    let (table, _) = page.split_once("## Which part").expect("the table comes first");
    let rows: Vec<Vec<&str>> = table
        .lines()
        .filter(|line| line.starts_with("| `") && !line.starts_with("| `--"))
        .map(|line| line.trim_matches('|').split('|').map(str::trim).collect())
        .collect();
    assert_eq!(rows.len(), FORMATS.len(), "a row per shape");
    for (row, format) in rows.iter().zip(FORMATS) {
        assert_eq!(row[..2], [format!("`{}`", format.name).as_str(), format.about]);
        let versions = row[2].split(", ").filter_map(|word| word.split_once(' '));
        for (library, version) in versions.filter(|(library, _)| *library != "Node.js") {
            assert_eq!(package["dependencies"][library], version, "{}: {library}", format.name);
        }
    }
}

// --- batch numbers ---------------------------------------------------------------------------------

/// The rows of the table under `heading`, without the back-ticks.
fn table_rows(page: &str, heading: &str) -> Vec<Vec<String>> {
    let start = page.find(heading).unwrap_or_else(|| panic!("no {heading:?}"));
    page[start..]
        .lines()
        .skip_while(|line| !line.starts_with("|---"))
        .skip(1)
        .take_while(|line| line.starts_with('|'))
        .map(|line| line.trim_matches('|').split('|').map(|c| c.trim().replace('`', "")).collect())
        .collect()
}

#[test]
fn batch_numbers() {
    let page = std::fs::read_to_string(root("docs/batch-numbers.md")).expect("page");
    let no = |text: &str| BatchNo::parse(text).expect("a batch number");
    let forms = table_rows(&page, "| form | period");
    for row in &forms {
        let said = Period::from_batch_no(&no(&row[0]))
            .map(|p| [p.kind().to_string(), p.first_day().to_string(), p.last_day().to_string()]);
        assert_eq!(row[1..], said.unwrap_or(["-"; 3].map(str::to_owned)), "{row:?}");
    }
    let days = table_rows(&page, "On a day:");
    for row in &days {
        let expr = BatchExpr::parse(&row[0]).expect("an expression");
        assert_eq!(expr.batch_no_on(row[1].parse().expect("a day")), Ok(no(&row[2])), "{row:?}");
    }
    let seen = table_rows(&page, "Seen from a batch:");
    for row in &seen {
        let wanted = RelativeBatch::These(row[2].split(' ').map(no).collect());
        let expr = BatchExpr::parse(&row[0]).expect("an expression");
        assert_eq!(expr.from(&no(&row[1]), None), Ok(wanted), "{row:?}");
    }
    assert!(forms.len() == 5 && days.len() == 9 && seen.len() == 9, "a table was not found");
    for word in procession::domain::batch_no::FORMS.split(&[' ', ','][..]) {
        let is_form = word.contains('_') || word.contains("(n)");
        assert!(
            !is_form || word.starts_with('\'') || page.contains(&format!("`{word}`")),
            "{word}"
        );
    }
}

// --- parameters ------------------------------------------------------------------------------------

/// The calendar of which the page speaks.
fn cn() -> Calendars {
    let path = root("dag-examples/calendars/cn.json");
    let text = std::fs::read_to_string(&path).expect("example");
    let file = read_calendar(&path, &text, CalendarForm::Json, &BTreeSet::new()).expect("sound");
    let code = file.code.clone().expect("a code");
    Calendars::new(vec![file.calendar(&code, None)]).expect("sound")
}

#[test]
fn parameters() {
    let page = std::fs::read_to_string(root("docs/parameters.md")).expect("page");
    let layers = table_rows(&page, "## Layers");
    let words: Vec<&str> = layers.iter().map(|row| row[0].as_str()).collect();
    assert_eq!(words.join(" > "), PRECEDENCE);
    assert!(page.contains(&format!("**{PRECEDENCE}**")));

    let group = GroupCode::parse("month_end").expect("group");
    let job = JobType::parse("SQL").expect("type");
    let mut job = JobDef::with_defaults(JobCode::parse("POST").expect("code"), group.clone(), job);
    let (batch_no, business_date) = (BatchNo::parse("202402").expect("no"), "2024-02-29".parse());
    let business_date = Some(business_date.expect("day"));
    let batch = BatchValues { batch_no, group, business_date, params: BTreeMap::new() };
    let idem_key = IdemKey::for_run(
        "3f2a9c1b77de",
        KeyForm::WithGroup(&batch.group, &batch.batch_no),
        &job.code,
        1,
    );
    let start = Start { idem_key, attempt: 2 };
    let calendars = cn();
    let own = calendars.iter().next().map(|c| &c.code);
    let days = WorkingDays::new(&calendars, own);
    let layers =
        Layers { start: Some(&start), batch: &batch, parents: &[], group: &[], global: &[], days };
    let forms = table_rows(&page, "## Forms in a value");
    let known = forms.iter().filter(|row| !row[2].is_empty());
    let mut seen = 0;
    for row in known {
        let value = Some(row[0].clone());
        job.params = vec![Param { name: "p".to_owned(), value, ..Param::default() }];
        let outside = ParamSources { output: &|_, _| None, secret: None };
        let found = resolve(&job, layers, outside).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(found[0].expose_text(), Some(row[2].as_str()), "{row:?}");
        seen += 1;
    }
    assert_eq!((seen, forms.len()), (22, 25), "rows were added or lost");

    let blocks: Vec<&str> = page.split("```yaml\n").skip(1).collect();
    let yaml = |i: usize| blocks[i].split("```").next().expect("an end").to_owned();
    let whole = format!("{}{}", yaml(0), yaml(1));
    let read = |_: &Path| Ok(whole.clone());
    let loaded = procession::definition::load_definition(
        Path::new("dag.yaml"),
        &read,
        &procession::app::job_kinds(),
    );
    let loaded = loaded.unwrap_or_else(|faults| panic!("{faults}"));
    assert_eq!(loaded.definition.shared.secrets.len(), 2);
}

// --- the schema ------------------------------------------------------------------------------------

#[tokio::test]
async fn schema() {
    let texts = migrations();
    assert!(!texts.is_empty(), "no migrations in migrations/sqlite");
    let mut db = SqliteConnection::connect("sqlite::memory:").await.expect("SQLite in memory");
    for (name, text) in &texts {
        let text = AssertSqlSafe(text.as_str());
        sqlx::raw_sql(text).execute(&mut db).await.unwrap_or_else(|e| panic!("{name}: {e}"));
    }
    let page = schema_page(&mut db, &texts.values().cloned().collect::<Vec<_>>().join("\n"))
        .await
        .expect("SQLite describes itself");
    check("docs/schema.md", &page);
}

/// File name and text of the migrations, in order.
fn migrations() -> BTreeMap<String, String> {
    let folder =
        std::fs::read_dir(root("migrations/sqlite")).expect("migrations/sqlite can be listed");
    folder
        .map(|entry| entry.expect("migrations/sqlite can be listed").path())
        .filter(|path| path.extension().is_some_and(|e| e == "sql"))
        .map(|path| {
            let name = path.file_name().expect("name").to_string_lossy().into_owned();
            (name, std::fs::read_to_string(&path).expect("a migration is text"))
        })
        .collect()
}

async fn schema_page(db: &mut SqliteConnection, text: &str) -> sqlx::Result<String> {
    let mut page = String::from("# Tables\n\n");
    page.push_str(GENERATED);
    page.push_str(
        "\nRead from an SQLite database after all of `migrations/sqlite`. MySQL and PostgreSQL have the\n\
         same tables and columns, each in its own best type (`migrations/README.md`). Times are UTC with\n\
         milliseconds, truth values are 0 and 1, structured values are JSON text.\n",
    );
    let mut meanings = crate::migrations::column_meanings();
    let tables = sqlx::query(
        "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'",
    );
    let mut tables: Vec<String> =
        tables.fetch_all(&mut *db).await?.iter().map(|row| row.get("name")).collect();
    // Where a later migration makes a table anew, it keeps its place.
    tables.sort_by_key(|table| text.find(&format!("\nCREATE TABLE {table} (")));
    for table in tables {
        let _ = write!(page, "\n## {table}\n\n");
        // `-- job_def: what may run.` stands over the table in the migration.
        if let Some(words) = text.lines().find_map(|l| l.strip_prefix(&format!("-- {table}: "))) {
            let _ = write!(page, "{}{}\n\n", words[..1].to_uppercase(), &words[1..]);
        }
        columns(db, &table, &mut meanings, &mut page).await?;
        indexes(db, &table, &mut page).await?;
    }
    assert!(meanings.is_empty(), "migrations/columns.txt has lines of no column: {meanings:?}");
    Ok(page)
}

async fn columns(
    db: &mut SqliteConnection,
    table: &str,
    meanings: &mut BTreeMap<String, String>,
    page: &mut String,
) -> sqlx::Result<()> {
    let mut refers = BTreeMap::new();
    let keys = sqlx::query("SELECT \"from\", \"table\", \"to\" FROM pragma_foreign_key_list(?)");
    for key in keys.bind(table).fetch_all(&mut *db).await? {
        let target: String = key.get("table");
        let column: Option<String> = key.get("to");
        refers.insert(key.get::<String, _>("from"), (target, column));
    }
    page.push_str(
        "| column | type | null | default | key | what it holds |\n|---|---|---|---|---|---|\n",
    );
    let info =
        sqlx::query("SELECT name, type, \"notnull\", dflt_value, pk FROM pragma_table_xinfo(?)");
    for column in info.bind(table).fetch_all(&mut *db).await? {
        let name: String = column.get("name");
        let in_key = column.get::<i64, _>("pk") > 0;
        let null = if in_key || column.get::<i64, _>("notnull") == 1 { "" } else { "null" };
        let default: Option<String> = column.get("dflt_value");
        let default = default.map_or(String::new(), |d| format!("`{d}`"));
        let mut key = if in_key { "primary".to_owned() } else { String::new() };
        if let Some((target, column)) = refers.get(&name) {
            let comma = if in_key { ", " } else { "" };
            let _ = write!(key, "{comma}→ {target}.{}", column.as_deref().unwrap_or("?"));
        }
        let ty: String = column.get("type");
        let line = format!("{table}.{name}");
        let meaning = meanings.remove(&line);
        let meaning =
            meaning.unwrap_or_else(|| panic!("no line `{line}: …` in migrations/columns.txt"));
        let _ = writeln!(page, "| `{name}` | {ty} | {null} | {default} | {key} | {meaning} |");
    }
    Ok(())
}

async fn indexes(db: &mut SqliteConnection, table: &str, page: &mut String) -> sqlx::Result<()> {
    let mut lines = Vec::new();
    let list = sqlx::query(
        "SELECT name, \"unique\", origin FROM pragma_index_list(?) WHERE origin <> 'pk'",
    );
    for index in list.bind(table).fetch_all(&mut *db).await? {
        let name: String = index.get("name");
        let parts = sqlx::query("SELECT name FROM pragma_index_info(?) ORDER BY seqno");
        let parts = parts.bind(&name).fetch_all(&mut *db).await?;
        let parts: Vec<Option<String>> = parts.iter().map(|p| p.get("name")).collect();
        let parts: Vec<&str> =
            parts.iter().map(|p| p.as_deref().unwrap_or("(expression)")).collect();
        let unique = if index.get::<i64, _>("unique") == 1 { "unique" } else { "index" };
        // SQLite forgets the names of UNIQUE constraints.
        let named = if index.get::<String, _>("origin") == "c" {
            format!(" `{name}`")
        } else {
            String::new()
        };
        lines.push(format!("- {unique}{named}: {}\n", parts.join(", ")));
    }
    lines.sort();
    if !lines.is_empty() {
        let _ = write!(page, "\n{}", lines.concat());
    }
    Ok(())
}

// --- examples in documents ---------------------------------------------------------------------------

#[test]
fn the_example_of_success_and_checks_is_a_definition() {
    let page = std::fs::read_to_string(root("docs/success-and-checks.md")).expect("the page");
    let (_, after) = page.split_once("```yaml\n").expect("an example");
    let (yaml, _) = after.split_once("```").expect("its end");
    let read = |_: &Path| Ok(yaml.to_owned());
    let kinds = procession::app::job_kinds();
    let loaded = procession::definition::load_definition(Path::new("doc.yaml"), &read, &kinds);
    let job = loaded.unwrap_or_else(|faults| panic!("{faults}")).definition.jobs.remove(0);
    assert_eq!((job.success.len(), job.checks.len()), (2, 3));
}
