//! The names of routines that a user may see, for suggestions after a wrong name.

use crate::db::dialect::Dialect;
use crate::db::fault::SessionError;
use crate::db::results::Results;
use crate::db::session::{Arg, Session};

/// Maximum number of names read.
const NAMES_MAX: usize = 5_000;

/// The routines of a schema, and those of the name in any other.
const MYSQL: &str = "\
SELECT routine_schema, routine_name FROM information_schema.routines
 WHERE (routine_schema = COALESCE(?, DATABASE()) OR LOWER(routine_name) = LOWER(?))
   AND routine_schema NOT IN ('sys', 'mysql', 'information_schema', 'performance_schema')
 ORDER BY routine_schema, routine_name LIMIT ";
const POSTGRES: &str = "\
SELECT DISTINCT n.nspname::text, p.proname::text
  FROM pg_catalog.pg_proc p JOIN pg_catalog.pg_namespace n ON n.oid = p.pronamespace
 WHERE p.prokind IN ('p', 'f') AND n.nspname NOT IN ('pg_catalog', 'information_schema')
   AND (n.nspname = $1::text OR ($1::text IS NULL AND n.nspname = ANY (current_schemas(false)))
        OR lower(p.proname) = lower($2::text))
 ORDER BY 1, 2 LIMIT ";

impl Session {
    /// Schema and name of each routine in `schema` (or in the search path), and of those called
    /// `name` elsewhere.
    pub async fn routine_names(
        &mut self,
        schema: Option<&str>,
        name: &str,
    ) -> Result<Vec<(String, String)>, SessionError> {
        let sql = match self.dialect() {
            Dialect::Sqlite => return Ok(Vec::new()),
            Dialect::Mysql => MYSQL,
            Dialect::Postgres => POSTGRES,
        };
        let schema = schema.map_or(Arg::Null, |schema| Arg::Text(schema.to_owned()));
        let args = [schema, Arg::Text(name.to_owned())];
        let mut found = Results::keeping(NAMES_MAX, 1);
        self.send_statement(&format!("{sql}{NAMES_MAX}"), &args, &mut found).await?;
        let text = |cell: Option<&Option<String>>| cell.cloned().flatten().unwrap_or_default();
        let rows = found.sets.into_iter().flat_map(|set| set.rows);
        Ok(rows.map(|row| (text(row.first()), text(row.get(1)))).collect())
    }
}
