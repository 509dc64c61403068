//! Reads tables, views, triggers, foreign keys and routines from a data source's catalogue, as rows
//! of text.

use crate::db::dialect::Dialect;
use crate::db::fault::SessionError;
use crate::db::results::Results;
use crate::db::session::{Arg, Session};

/// Maximum number of rows read per query.
const ROWS_MAX: usize = 2_000_000;

/// A row of text values.
pub type TextRow = Vec<Option<String>>;

/// The content of a catalogue. The columns of each list are given with it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CatalogueRows {
    /// schema, table, kind (`table`, `view`, `materialized`, `foreign`), query text of a view
    pub tables: Vec<TextRow>,
    /// schema, table, column, 1 for a generated column
    pub columns: Vec<TextRow>,
    /// schema, table, key, column
    pub keys: Vec<TextRow>,
    /// schema, table, trigger, events (`INSERT UPDATE DELETE TRUNCATE`), `BEFORE`, `AFTER` or
    /// `INSTEAD`, its text, schema of the function it calls, that function
    pub triggers: Vec<TextRow>,
    /// schema and name of the parent, of the child, 1 on delete, 1 on update
    pub cascades: Vec<TextRow>,
    /// schema and name of the partition, of the partitioned table
    pub parts: Vec<TextRow>,
    /// id, schema, name, language, text, settings, 1 for a function
    pub routines: Vec<TextRow>,
    /// id of the routine, position, name, `IN`, `OUT`, `INOUT`, or `COLUMN` for a column of a
    /// function's result, which no call names; its type, 1 if it has a default
    pub params: Vec<TextRow>,
}

impl CatalogueRows {
    /// Appends the rows of another schema.
    pub fn extend(&mut self, other: Self) {
        self.tables.extend(other.tables);
        self.columns.extend(other.columns);
        self.keys.extend(other.keys);
        self.triggers.extend(other.triggers);
        self.cascades.extend(other.cascades);
        self.parts.extend(other.parts);
        self.routines.extend(other.routines);
        self.params.extend(other.params);
    }
}

/// Facts about a server that are needed before its tables are read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CatalogueScope {
    /// The search path of unqualified names, in order.
    pub search_path: Vec<String>,
    /// All schemas visible to our user, without system schemas.
    pub schemas: Vec<String>,
    /// Whether names of tables are case-insensitive.
    pub folds_tables: bool,
    /// Schemas whose triggers the server hides from our user.
    pub hidden_triggers: Vec<String>,
    /// Whether one reading gives the rows of all schemas; elsewhere those of one, and what other
    /// schemas its texts name is read too.
    pub is_read_at_once: bool,
    /// Whether the text of a trigger is its whole CREATE statement; its events and its time are in
    /// that alone.
    pub has_whole_triggers: bool,
    /// Whether a routine looks unqualified names up in its own schema, in which SQL modes may change
    /// the meaning of its text; elsewhere its settings tell where it does.
    pub looks_up_in_own_schema: bool,
}

const MYSQL_TABLES: &str = "\
SELECT t.table_schema, t.table_name, CASE WHEN t.table_type LIKE '%VIEW' THEN 'view' ELSE 'table' END,
       v.view_definition
  FROM information_schema.tables t
  LEFT JOIN information_schema.views v
         ON v.table_schema = t.table_schema AND v.table_name = t.table_name AND v.table_schema = ?
 WHERE t.table_schema = ?";
const MYSQL_COLUMNS: &str = "\
SELECT table_schema, table_name, LOWER(column_name),
       LOWER(extra) LIKE '%on update%' OR LOWER(extra) LIKE '%generated%'
  FROM information_schema.columns WHERE table_schema = ? ORDER BY table_name, ordinal_position";
const MYSQL_KEYS: &str = "\
SELECT table_schema, table_name, index_name, LOWER(column_name)
  FROM information_schema.statistics WHERE table_schema = ? AND non_unique = 0";
const MYSQL_TRIGGERS: &str = "\
SELECT event_object_schema, event_object_table, trigger_name, event_manipulation, action_timing, action_statement,
       NULL, NULL
  FROM information_schema.triggers WHERE event_object_schema = ?";
const MYSQL_CASCADES: &str = "\
SELECT unique_constraint_schema, referenced_table_name, constraint_schema, table_name,
       delete_rule IN ('CASCADE', 'SET NULL', 'SET DEFAULT'), update_rule IN ('CASCADE', 'SET NULL', 'SET DEFAULT')
  FROM information_schema.referential_constraints WHERE constraint_schema = ?";
const MYSQL_ROUTINES: &str = "\
SELECT CONCAT(routine_schema, ' ', routine_type, ' ', specific_name), routine_schema, routine_name, LOWER(routine_body),
       routine_definition, sql_mode, routine_type = 'FUNCTION'
  FROM information_schema.routines WHERE routine_schema = ? AND routine_type IN ('PROCEDURE', 'FUNCTION')";
const MYSQL_PARAMS: &str = "\
SELECT CONCAT(specific_schema, ' ', routine_type, ' ', specific_name), ordinal_position, parameter_name, COALESCE(parameter_mode, 'IN'),
       dtd_identifier, 0
  FROM information_schema.parameters WHERE specific_schema = ? AND ordinal_position > 0
 ORDER BY 1, ordinal_position";

/// Excludes system schemas.
const POSTGRES_OWN: &str =
    "n.nspname NOT IN ('pg_catalog', 'information_schema') AND n.nspname NOT LIKE 'pg\\_%'";
const POSTGRES_TABLES: &str = "\
SELECT n.nspname::text, c.relname::text,
       CASE c.relkind WHEN 'v' THEN 'view' WHEN 'm' THEN 'materialized' WHEN 'f' THEN 'foreign' ELSE 'table' END,
       CASE WHEN c.relkind IN ('v', 'm') THEN pg_catalog.pg_get_viewdef(c.oid) END
  FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
 WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND $OWN";
const POSTGRES_COLUMNS: &str = "\
SELECT n.nspname::text, c.relname::text, a.attname::text, (a.attgenerated <> '')::int
  FROM pg_catalog.pg_attribute a JOIN pg_catalog.pg_class c ON c.oid = a.attrelid
  JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
 WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND a.attnum > 0 AND NOT a.attisdropped AND $OWN
 ORDER BY c.oid, a.attnum";
const POSTGRES_KEYS: &str = "\
SELECT n.nspname::text, c.relname::text, i.indexrelid::text, a.attname::text
  FROM pg_catalog.pg_index i JOIN pg_catalog.pg_class c ON c.oid = i.indrelid
  JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
  JOIN pg_catalog.pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = ANY (i.indkey::int2[])
 WHERE i.indisunique AND $OWN";
const POSTGRES_TRIGGERS: &str = "\
SELECT n.nspname::text, c.relname::text, t.tgname::text,
       concat_ws(' ', CASE WHEN t.tgtype & 4 <> 0 THEN 'INSERT' END, CASE WHEN t.tgtype & 8 <> 0 THEN 'DELETE' END,
                 CASE WHEN t.tgtype & 16 <> 0 THEN 'UPDATE' END, CASE WHEN t.tgtype & 32 <> 0 THEN 'TRUNCATE' END),
       CASE WHEN t.tgtype & 64 <> 0 THEN 'INSTEAD' WHEN t.tgtype & 2 <> 0 THEN 'BEFORE' ELSE 'AFTER' END,
       NULL::text, fn.nspname::text, f.proname::text
  FROM pg_catalog.pg_trigger t JOIN pg_catalog.pg_class c ON c.oid = t.tgrelid
  JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
  JOIN pg_catalog.pg_proc f ON f.oid = t.tgfoid JOIN pg_catalog.pg_namespace fn ON fn.oid = f.pronamespace
 WHERE NOT t.tgisinternal AND t.tgenabled <> 'D' AND $OWN
UNION ALL
SELECT n.nspname::text, c.relname::text, 'rule ' || r.rulename::text,
       CASE r.ev_type WHEN '2' THEN 'UPDATE' WHEN '3' THEN 'INSERT' WHEN '4' THEN 'DELETE' ELSE '' END, 'AFTER',
       NULL::text, NULL::text, NULL::text
  FROM pg_catalog.pg_rewrite r JOIN pg_catalog.pg_class c ON c.oid = r.ev_class
  JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
 WHERE r.rulename <> '_RETURN' AND r.ev_enabled <> 'D' AND $OWN";
const POSTGRES_CASCADES: &str = "\
SELECT n.nspname::text, p.relname::text, cn.nspname::text, c.relname::text,
       (k.confdeltype IN ('c', 'n', 'd'))::int, (k.confupdtype IN ('c', 'n', 'd'))::int
  FROM pg_catalog.pg_constraint k JOIN pg_catalog.pg_class p ON p.oid = k.confrelid
  JOIN pg_catalog.pg_namespace n ON n.oid = p.relnamespace
  JOIN pg_catalog.pg_class c ON c.oid = k.conrelid JOIN pg_catalog.pg_namespace cn ON cn.oid = c.relnamespace
 WHERE k.contype = 'f' AND $OWN";
const POSTGRES_PARTS: &str = "\
SELECT n.nspname::text, c.relname::text, pn.nspname::text, p.relname::text
  FROM pg_catalog.pg_inherits i JOIN pg_catalog.pg_class c ON c.oid = i.inhrelid
  JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
  JOIN pg_catalog.pg_class p ON p.oid = i.inhparent JOIN pg_catalog.pg_namespace pn ON pn.oid = p.relnamespace
 WHERE c.relkind IN ('r', 'p', 'f') AND $OWN";
/// `$BODY` is replaced by the text of a SQL-standard body, which PostgreSQL 13 does not support.
const POSTGRES_ROUTINES: &str = "\
SELECT p.oid::text, n.nspname::text, p.proname::text, l.lanname::text, $BODY,
       array_to_string(p.proconfig, chr(10)), (p.prokind = 'f')::int
  FROM pg_catalog.pg_proc p JOIN pg_catalog.pg_namespace n ON n.oid = p.pronamespace
  JOIN pg_catalog.pg_language l ON l.oid = p.prolang
 WHERE p.prokind IN ('p', 'f') AND $OWN";
const POSTGRES_PARAMS: &str = "\
SELECT p.oid::text, a.i::text, coalesce(p.proargnames[a.i], ''),
       CASE coalesce(p.proargmodes[a.i]::text, 'i') WHEN 'o' THEN CASE p.prokind WHEN 'f' THEN 'COLUMN' ELSE 'OUT' END
            WHEN 'b' THEN 'INOUT' WHEN 't' THEN 'COLUMN' ELSE 'IN' END,
       pg_catalog.format_type(a.ty, -1),
       (coalesce(p.proargmodes[a.i]::text, 'i') IN ('i', 'b', 'v') AND (
           SELECT count(*) FROM generate_series(1, a.i) AS k
            WHERE coalesce(p.proargmodes[k]::text, 'i') IN ('i', 'b', 'v')) > p.pronargs - p.pronargdefaults)::int
  FROM pg_catalog.pg_proc p JOIN pg_catalog.pg_namespace n ON n.oid = p.pronamespace
  JOIN LATERAL unnest(coalesce(p.proallargtypes, p.proargtypes::oid[])) WITH ORDINALITY AS a(ty, i) ON true
 WHERE p.prokind IN ('p', 'f') AND $OWN
 ORDER BY p.oid, a.i";

const SQLITE_TABLES: &str = "\
SELECT 'main', name, type, sql FROM sqlite_schema WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'";
const SQLITE_COLUMNS: &str = "\
SELECT 'main', m.name, lower(p.name), p.hidden IN (2, 3)
  FROM sqlite_schema m JOIN pragma_table_xinfo(m.name) p
 WHERE m.type IN ('table', 'view') ORDER BY m.name, p.cid";
const SQLITE_KEYS: &str = "\
SELECT 'main', m.name, i.name, lower(c.name)
  FROM sqlite_schema m JOIN pragma_index_list(m.name) i JOIN pragma_index_info(i.name) c
 WHERE m.type = 'table' AND i.\"unique\" = 1
UNION ALL
SELECT 'main', m.name, 'primary key', lower(p.name)
  FROM sqlite_schema m JOIN pragma_table_info(m.name) p WHERE m.type = 'table' AND p.pk > 0";
const SQLITE_TRIGGERS: &str = "\
SELECT 'main', tbl_name, name, NULL, NULL, sql, NULL, NULL FROM sqlite_schema WHERE type = 'trigger'";
const SQLITE_CASCADES: &str = "\
SELECT 'main', f.\"table\", 'main', m.name, f.on_delete IN ('CASCADE', 'SET NULL', 'SET DEFAULT'),
       f.on_update IN ('CASCADE', 'SET NULL', 'SET DEFAULT')
  FROM sqlite_schema m JOIN pragma_foreign_key_list(m.name) f WHERE m.type = 'table'";

impl Session {
    /// Reads the search path, and the existing schemas.
    pub async fn catalogue_scope(&mut self) -> Result<CatalogueScope, SessionError> {
        match self.dialect() {
            Dialect::Sqlite => Ok(CatalogueScope {
                search_path: vec!["main".to_owned()],
                schemas: vec!["main".to_owned()],
                folds_tables: true,
                has_whole_triggers: true,
                is_read_at_once: true,
                ..CatalogueScope::default()
            }),
            Dialect::Postgres => {
                let path =
                    self.texts("SELECT unnest(pg_catalog.current_schemas(false))::text", &[]);
                let search_path = first_column(path.await?);
                let own = POSTGRES_OWN;
                let all =
                    format!("SELECT n.nspname::text FROM pg_catalog.pg_namespace n WHERE {own}");
                let schemas = first_column(self.texts(&all, &[]).await?);
                Ok(CatalogueScope {
                    search_path,
                    schemas,
                    is_read_at_once: true,
                    ..CatalogueScope::default()
                })
            }
            Dialect::Mysql => self.mysql_scope().await,
        }
    }

    async fn mysql_scope(&mut self) -> Result<CatalogueScope, SessionError> {
        let sql = "SELECT DATABASE(), @@lower_case_table_names <> 0";
        let found = self.texts(sql, &[]).await?;
        let first = found.into_iter().next().unwrap_or_default();
        let value = |at: usize| first.get(at).cloned().flatten();
        let all = "SELECT schema_name FROM information_schema.schemata WHERE schema_name NOT IN \
                   ('information_schema', 'mysql', 'performance_schema', 'sys')";
        let schemas = first_column(self.texts(all, &[]).await?);
        // Without the privilege TRIGGER the server shows none, and does not reveal that.
        let rights = "SELECT '*' FROM information_schema.user_privileges WHERE privilege_type = 'TRIGGER' \
                      UNION SELECT table_schema FROM information_schema.schema_privileges \
                             WHERE privilege_type = 'TRIGGER'";
        let allowed = first_column(self.texts(rights, &[]).await?);
        let is_hidden = |schema: &&String| !allowed.iter().any(|one| one == "*" || one == *schema);
        let hidden_triggers = schemas.iter().filter(is_hidden).cloned().collect();
        Ok(CatalogueScope {
            search_path: value(0).into_iter().collect(),
            folds_tables: value(1).as_deref() == Some("1"),
            schemas,
            hidden_triggers,
            looks_up_in_own_schema: true,
            ..CatalogueScope::default()
        })
    }

    /// The catalogue of one schema; of all schemas where they are read at once.
    pub async fn catalogue_rows(&mut self, schema: &str) -> Result<CatalogueRows, SessionError> {
        match self.dialect() {
            Dialect::Mysql => self.mysql_catalogue(schema).await,
            Dialect::Postgres => self.postgres_catalogue().await,
            Dialect::Sqlite => Ok(CatalogueRows {
                tables: with_view_queries(self.texts(SQLITE_TABLES, &[]).await?),
                columns: self.texts(SQLITE_COLUMNS, &[]).await?,
                keys: self.texts(SQLITE_KEYS, &[]).await?,
                triggers: self.texts(SQLITE_TRIGGERS, &[]).await?,
                cascades: self.texts(SQLITE_CASCADES, &[]).await?,
                ..CatalogueRows::default()
            }),
        }
    }

    async fn mysql_catalogue(&mut self, schema: &str) -> Result<CatalogueRows, SessionError> {
        let arg = || Arg::Text(schema.to_owned());
        Ok(CatalogueRows {
            tables: self.texts(MYSQL_TABLES, &[arg(), arg()]).await?,
            columns: self.texts(MYSQL_COLUMNS, &[arg()]).await?,
            keys: self.texts(MYSQL_KEYS, &[arg()]).await?,
            triggers: self.texts(MYSQL_TRIGGERS, &[arg()]).await?,
            cascades: self.texts(MYSQL_CASCADES, &[arg()]).await?,
            parts: Vec::new(),
            routines: self.texts(MYSQL_ROUTINES, &[arg()]).await?,
            params: self.texts(MYSQL_PARAMS, &[arg()]).await?,
        })
    }

    async fn postgres_catalogue(&mut self) -> Result<CatalogueRows, SessionError> {
        let own = |sql: &str| sql.replace("$OWN", POSTGRES_OWN);
        let version = self.texts("SHOW server_version_num", &[]).await?;
        let version = first_column(version).first().and_then(|text| text.parse::<u32>().ok());
        let body = if version.is_some_and(|version| version >= 140_000) {
            "coalesce(pg_catalog.pg_get_function_sqlbody(p.oid), p.prosrc)"
        } else {
            "p.prosrc"
        };
        let routines = own(POSTGRES_ROUTINES).replace("$BODY", body);
        Ok(CatalogueRows {
            tables: self.texts(&own(POSTGRES_TABLES), &[]).await?,
            columns: self.texts(&own(POSTGRES_COLUMNS), &[]).await?,
            keys: self.texts(&own(POSTGRES_KEYS), &[]).await?,
            triggers: self.texts(&own(POSTGRES_TRIGGERS), &[]).await?,
            cascades: self.texts(&own(POSTGRES_CASCADES), &[]).await?,
            parts: self.texts(&own(POSTGRES_PARTS), &[]).await?,
            routines: self.texts(&routines, &[]).await?,
            params: self.texts(&own(POSTGRES_PARAMS), &[]).await?,
        })
    }

    async fn texts(&mut self, sql: &str, args: &[Arg]) -> Result<Vec<TextRow>, SessionError> {
        let mut answer = Results::uncut(ROWS_MAX);
        self.send_statement(sql, args, &mut answer).await?;
        Ok(answer.sets.into_iter().next().unwrap_or_default().rows)
    }
}

/// The rows of tables with the queries of views in place of their whole statements.
fn with_view_queries(mut tables: Vec<TextRow>) -> Vec<TextRow> {
    let statements = tables.iter_mut().filter_map(|row| row.get_mut(3)?.as_mut());
    statements.for_each(|sql| *sql = view_query(sql).to_owned());
    tables
}

/// What stands behind the AS of a CREATE VIEW; the whole text where there is none.
fn view_query(sql: &str) -> &str {
    let lower = sql.to_ascii_lowercase();
    let words = [" as\n", " as ", "\nas ", "\nas\n", "\tas ", ")as "];
    let query = words.iter().filter_map(|word| lower.find(word).map(|at| at + word.len()));
    query.min().map_or(sql, |at| &sql[at..])
}

fn first_column(rows: Vec<TextRow>) -> Vec<String> {
    rows.into_iter().filter_map(|row| row.into_iter().next().flatten()).collect()
}
