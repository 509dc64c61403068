//! Documents that are drawn from the program itself: compared here, written by `make docs`.

use procession::domain::job::Takes;
use procession::domain::queue::{Event, QueueStatus};
use sqlx::sqlite::SqliteConnection;
use sqlx::{AssertSqlSafe, Connection, Row};
use std::collections::BTreeMap;
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
    let source = std::fs::read_to_string(root("src/domain/queue.rs")).expect("source");
    check("docs/state-machine.md", &state_machine_page(&source));
}

fn state_machine_page(source: &str) -> String {
    let mut page = String::from("# States of a job in a batch\n\n");
    page.push_str(GENERATED);
    page.push_str(
        "\nThe `status` column of `job_queue`. The page is drawn from `QueueStatus::after` in\n\
         `src/domain/queue.rs`, the one function that says what may follow what; an event that is not\n\
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
        let next: Vec<String> = Event::ALL
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
    for event in Event::ALL {
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
fn ways(from: QueueStatus) -> BTreeMap<QueueStatus, Vec<Event>> {
    let mut ways: BTreeMap<QueueStatus, Vec<Event>> = BTreeMap::new();
    for event in Event::ALL {
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
            Takes::Nothing => "| no |",
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
    let tables = sqlx::query(
        "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY rowid",
    );
    for table in tables.fetch_all(&mut *db).await? {
        let table: String = table.get("name");
        let _ = write!(page, "\n## {table}\n\n");
        // `-- job_def: what may run.` stands over the table in the migration.
        if let Some(words) = text.lines().find_map(|l| l.strip_prefix(&format!("-- {table}: "))) {
            let _ = write!(page, "{}{}\n\n", words[..1].to_uppercase(), &words[1..]);
        }
        columns(db, &table, &mut page).await?;
        indexes(db, &table, &mut page).await?;
    }
    Ok(page)
}

async fn columns(db: &mut SqliteConnection, table: &str, page: &mut String) -> sqlx::Result<()> {
    let mut refers = BTreeMap::new();
    let keys = sqlx::query("SELECT \"from\", \"table\", \"to\" FROM pragma_foreign_key_list(?)");
    for key in keys.bind(table).fetch_all(&mut *db).await? {
        let target: String = key.get("table");
        let column: Option<String> = key.get("to");
        refers.insert(key.get::<String, _>("from"), (target, column));
    }
    page.push_str("| column | type | null | default | key |\n|---|---|---|---|---|\n");
    let info =
        sqlx::query("SELECT name, type, \"notnull\", dflt_value, pk FROM pragma_table_info(?)");
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
        let _ = writeln!(page, "| `{name}` | {ty} | {null} | {default} | {key} |");
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
