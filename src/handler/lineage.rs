//! Reads the catalogue of a data source as the input of lineage. Changes nothing there.

use crate::db::catalogue_rows::{CatalogueRows, CatalogueScope, TextRow};
use crate::db::fault::SessionError;
use crate::db::session::Session;
use crate::db::sqlite_file::is_absent;
use crate::db::target::{self, TargetDatabase};
use crate::domain::source::{DataSource, DialectName};
use crate::handler::run_on_source::reach;
use crate::handler::{HandlerOptions, address, bind};
use crate::lineage::{
    BodyText, Cascade, Catalogue, CatalogueParam, CatalogueRoutine, CatalogueTrigger, ObjectName,
    RoutineLanguage, Table, TriggerAction, TriggerEvent, language_of, parse_routine,
};
use std::collections::{BTreeSet, HashMap};
use std::time::Duration;
use tokio::time::timeout;

/// Time limit for one source.
const PATIENCE: Duration = Duration::from_secs(60);

/// Reads a source's catalogue: the schemas in which names are looked up, and those named in `texts`
/// and in the bodies found there. The error is a message for the user.
pub async fn read_catalogue(
    source: &DataSource,
    options: &HandlerOptions,
    texts: &[String],
) -> Result<Catalogue, String> {
    let (target, at) = reach(source, "lineage".to_owned(), options)?;
    // Unlike a job, this must not create a missing file.
    if is_absent(&target.url) {
        let dialect = DialectName::of_url(&target.url).ok_or("its URL has no scheme")?;
        return Ok(Catalogue::new(dialect, vec!["main".to_owned()], true));
    }
    let mut session = Session::open_session(&target)
        .await
        .map_err(|none| format!("{at}: {}", address::opening(none.to_string())))?;
    let read = timeout(PATIENCE, read_session(&mut session, texts)).await;
    let catalogue = match read {
        Ok(Ok(catalogue)) => catalogue,
        Ok(Err(error)) => return Err(format!("{at}: the catalogue cannot be read: {error}")),
        Err(_) => return Err(format!("{at}: no answer within {PATIENCE:?}")),
    };
    session.close().await;
    Ok(catalogue)
}

async fn read_session(session: &mut Session, texts: &[String]) -> Result<Catalogue, SessionError> {
    let dialect = bind::dialect_name(session.database())?;
    let scope = session.catalogue_scope().await?;
    let mut open: Vec<String> = match scope.is_read_at_once {
        true => vec![String::new()],
        false => scope.search_path.clone(),
    };
    if !scope.is_read_at_once {
        open.extend(named_schemas(texts.iter().map(String::as_str), &scope.schemas));
    }
    let (mut rows, mut done) = (CatalogueRows::default(), BTreeSet::new());
    while let Some(schema) = open.pop() {
        if !done.insert(schema.clone()) {
            continue;
        }
        let found = session.catalogue_rows(&schema).await?;
        if !scope.is_read_at_once {
            let bodies = found.routines.iter().chain(&found.tables).chain(&found.triggers);
            let bodies = bodies.flat_map(|row| row.iter().flatten().map(String::as_str));
            open.extend(named_schemas(bodies, &scope.schemas));
        }
        rows.extend(found);
    }
    let user = session.server_identity().await?.user;
    let database = session.database();
    let user = user.as_deref().and_then(|user| database.quote_user(user)).unwrap_or_default();
    let grants = HiddenTextGrants { database, user };
    Ok(catalogue_of(dialect, &scope, &rows, &grants))
}

/// Schemas that a text names before a dot.
fn named_schemas<'t>(texts: impl Iterator<Item = &'t str>, schemas: &[String]) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for text in texts {
        for (at, _) in text.match_indices('.') {
            let before = text[..at].trim_end().trim_end_matches('`');
            let is_part = |c: char| c.is_alphanumeric() || c == '_' || c == '$';
            let start = before
                .rfind(|c| !is_part(c))
                .map_or(0, |at| at + before[at..].chars().next().map_or(1, char::len_utf8));
            let word = &before[start..];
            found.extend(schemas.iter().find(|one| one.eq_ignore_ascii_case(word)).cloned());
        }
    }
    found
}

/// The grants that would show a hidden text to our user.
struct HiddenTextGrants {
    database: &'static dyn TargetDatabase,
    user: String,
}

impl HiddenTextGrants {
    fn routine(&self, schema: &str) -> String {
        self.database.hidden_routine_grant(schema, &self.user)
    }

    fn view_grant(&self, schema: &str, view: &str) -> String {
        format!("GRANT SHOW VIEW ON `{schema}`.`{view}` TO {}", self.user)
    }

    fn triggers(&self, schema: &str) -> String {
        format!("GRANT TRIGGER ON `{schema}`.* TO {}", self.user)
    }
}

fn text_at(row: &TextRow, at: usize) -> Option<&str> {
    row.get(at)?.as_deref()
}

fn is_one(row: &TextRow, at: usize) -> bool {
    text_at(row, at) == Some("1")
}

fn name(row: &TextRow, at: usize) -> ObjectName {
    ObjectName::within(
        text_at(row, at).unwrap_or_default(),
        text_at(row, at + 1).unwrap_or_default(),
    )
}

fn catalogue_of(
    dialect: DialectName,
    scope: &CatalogueScope,
    rows: &CatalogueRows,
    grants: &HiddenTextGrants,
) -> Catalogue {
    let mut catalogue = Catalogue::new(dialect, scope.search_path.clone(), scope.folds_tables);
    let mut tables: HashMap<ObjectName, Table> = HashMap::new();
    for row in &rows.tables {
        tables.insert(name(row, 0), table_of(row, grants));
    }
    for row in &rows.columns {
        if let (Some(table), Some(column)) = (tables.get_mut(&name(row, 0)), text_at(row, 2)) {
            table.columns.push(column.to_owned());
            if is_one(row, 3) {
                table.derived_columns.insert(column.to_owned());
            }
        }
    }
    add_keys(&mut tables, rows);
    for row in &rows.triggers {
        if let Some(table) = tables.get_mut(&name(row, 0)) {
            table.triggers.push(trigger_of(row, dialect, scope));
        }
    }
    for (table, it) in &mut tables {
        let schema = table.schema.clone().unwrap_or_default();
        if scope.hidden_triggers.contains(&schema) && it.view.is_none() {
            it.triggers.push(hidden_triggers(&table.name, grants.triggers(&schema)));
        }
    }
    for row in &rows.cascades {
        if let Some(table) = tables.get_mut(&name(row, 0)) {
            table.cascades.push(Cascade {
                child: name(row, 2),
                on_delete: is_one(row, 4),
                on_update: is_one(row, 5),
            });
        }
    }
    for row in &rows.parts {
        if let Some(table) = tables.get_mut(&name(row, 0)) {
            table.partition_of = Some(name(row, 2));
        }
    }
    for (name, table) in tables {
        catalogue.add_table(name, table);
    }
    add_routines(&mut catalogue, rows, scope, grants);
    catalogue
}

fn table_of(row: &TextRow, grants: &HiddenTextGrants) -> Table {
    let (schema, table) =
        (text_at(row, 0).unwrap_or_default(), text_at(row, 1).unwrap_or_default());
    let body = match text_at(row, 3) {
        None | Some("") => BodyText::Hidden { grant: grants.view_grant(schema, table) },
        Some(sql) => BodyText::Text(sql.to_owned()),
    };
    let mut made = Table::default();
    match text_at(row, 2) {
        Some("view") => made.view = Some(body),
        Some("materialized") => made.materialized = Some(body),
        Some("foreign") => made.foreign = Some("another server".to_owned()),
        _ => {}
    }
    made
}

fn add_keys(tables: &mut HashMap<ObjectName, Table>, rows: &CatalogueRows) {
    let mut keys: HashMap<(ObjectName, &str), BTreeSet<String>> = HashMap::new();
    for row in &rows.keys {
        let key = (name(row, 0), text_at(row, 2).unwrap_or_default());
        keys.entry(key).or_default().extend(text_at(row, 3).map(str::to_owned));
    }
    for ((table, _), columns) in keys {
        if let Some(table) = tables.get_mut(&table) {
            table.unique_keys.push(columns);
        }
    }
}

fn trigger_of(row: &TextRow, dialect: DialectName, scope: &CatalogueScope) -> CatalogueTrigger {
    let name = text_at(row, 2).unwrap_or_default().to_owned();
    let mut timing = text_at(row, 4).unwrap_or_default().to_ascii_uppercase();
    let mut events = text_at(row, 3).unwrap_or_default().to_ascii_uppercase();
    let action = match (text_at(row, 7), text_at(row, 5)) {
        (Some(function), _) => {
            let schema = text_at(row, 6).map(str::to_owned);
            TriggerAction::Calls(ObjectName { schema, name: function.to_owned() })
        }
        (None, Some(sql)) if scope.has_whole_triggers => {
            let head = sql.to_ascii_uppercase();
            let head = head.split(" ON ").next().unwrap_or_default().to_owned();
            timing = head.clone();
            events = head;
            let body = parse_routine(sql, dialect).map(|made| made.routine.body);
            let hidden = BodyText::Hidden { grant: "its text is not understood".to_owned() };
            TriggerAction::Body(body.unwrap_or(hidden))
        }
        (None, Some(text)) => TriggerAction::Body(BodyText::Text(text.to_owned())),
        (None, None) => TriggerAction::Body(BodyText::Hidden {
            grant: "rewrite rules are not read; use a trigger".to_owned(),
        }),
    };
    let all = [
        ("INSERT", TriggerEvent::Insert),
        ("UPDATE", TriggerEvent::Update),
        ("DELETE", TriggerEvent::Delete),
        ("TRUNCATE", TriggerEvent::Truncate),
    ];
    let events = all.into_iter().filter(|(word, _)| events.contains(word)).map(|(_, event)| event);
    CatalogueTrigger {
        name,
        events: events.collect(),
        is_before: timing.contains("BEFORE"),
        is_instead: timing.contains("INSTEAD"),
        action,
    }
}

/// A placeholder for triggers of which the server does not even show whether they exist.
fn hidden_triggers(table: &str, grant: String) -> CatalogueTrigger {
    use TriggerEvent::{Delete, Insert, Update};
    CatalogueTrigger {
        name: format!("on {table}, if there is one,"),
        events: BTreeSet::from([Insert, Update, Delete]),
        is_before: false,
        is_instead: false,
        action: TriggerAction::Body(BodyText::Hidden { grant }),
    }
}

fn add_routines(
    catalogue: &mut Catalogue,
    rows: &CatalogueRows,
    scope: &CatalogueScope,
    grants: &HiddenTextGrants,
) {
    let mut params: HashMap<&str, Vec<CatalogueParam>> = HashMap::new();
    for row in &rows.params {
        let mode = text_at(row, 3).unwrap_or_default();
        if mode == "COLUMN" {
            continue;
        }
        params.entry(text_at(row, 0).unwrap_or_default()).or_default().push(CatalogueParam {
            name: text_at(row, 2).filter(|name| !name.is_empty()).map(str::to_owned),
            is_input: mode != "OUT",
            is_output: mode != "IN",
            type_name: text_at(row, 4).unwrap_or_default().to_owned(),
            has_default: is_one(row, 5),
        });
    }
    for row in &rows.routines {
        let id = text_at(row, 0).unwrap_or_default();
        let schema = text_at(row, 1).unwrap_or_default();
        let is_in_own = scope.looks_up_in_own_schema;
        let language = match (is_in_own, text_at(row, 3)) {
            (true, Some("sql")) => language_of_mode(text_at(row, 5).unwrap_or_default()),
            (true, other) => RoutineLanguage::Other(other.unwrap_or("another language").to_owned()),
            (false, other) => language_of(other.unwrap_or_default()),
        };
        let body = match text_at(row, 4) {
            Some(text) => BodyText::Text(text.to_owned()),
            None => BodyText::Hidden { grant: grants.routine(schema) },
        };
        let search_path =
            if is_in_own { Some(vec![schema.to_owned()]) } else { search_path_of(text_at(row, 5)) };
        catalogue.add_routine(CatalogueRoutine {
            name: name(row, 1),
            is_function: is_one(row, 6),
            params: params.get(id).cloned().unwrap_or_default(),
            language,
            body,
            search_path,
        });
    }
}

/// The SQL modes under which a body was created may change the meaning of its quotes and words.
fn language_of_mode(sql_mode: &str) -> RoutineLanguage {
    let changes = ["ANSI_QUOTES", "NO_BACKSLASH_ESCAPES", "ORACLE"];
    match sql_mode.split(',').find(|mode| changes.contains(mode)) {
        Some(mode) => RoutineLanguage::Other(format!("SQL of mode {mode}")),
        None => RoutineLanguage::Procedural,
    }
}

/// Finds `search_path=a, "b"` among a function's settings.
fn search_path_of(settings: Option<&str>) -> Option<Vec<String>> {
    let line = settings?.lines().find_map(|line| line.strip_prefix("search_path="))?;
    let parts = line.split(',').map(|part| part.trim().trim_matches('"').to_owned());
    Some(parts.filter(|part| !part.is_empty() && part != "pg_temp" && part != "$user").collect())
}

/// Identifies the server and database of a source: two sources on one database have the same value.
pub fn server_of(source: &DataSource) -> String {
    let url = std::env::var(source.url_env()).unwrap_or_else(|_| source.url.clone());
    let without_query = url.split(['?', '#']).next().unwrap_or_default();
    let is_file = |database: &dyn TargetDatabase| database.capabilities().is_file;
    match target::of_url(&url).filter(|database| !is_file(*database)) {
        None => without_query.to_owned(),
        Some(database) => {
            let rest = without_query.split_once("://").map_or(without_query, |(_, rest)| rest);
            let place = rest.rsplit_once('@').map_or(rest, |(_, place)| place);
            let (host, name) = place.split_once('/').unwrap_or((place, ""));
            // Where a connection spans databases, the names of tables include theirs.
            match database.capabilities().spans_databases {
                true => format!("{} {host}", database.name()),
                false => format!("{} {host}/{name}", database.name()),
            }
        }
    }
}
