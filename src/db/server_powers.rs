//! Privileges of a data source's user beyond the data (reading and writing the server's files,
//! running programs there), and what other users may do to it.

use crate::db::dialect::Dialect;
use crate::db::fault::SessionError;
use crate::db::session::Session;

/// `COPY … PROGRAM` runs programs as the server's user; superusers and members of these roles may
/// use it.
const READ_POSTGRES: &str = "SELECT power FROM (VALUES \
     ('superuser', (SELECT rolsuper FROM pg_catalog.pg_roles WHERE rolname = current_user)), \
     ('pg_execute_server_program', pg_has_role('pg_execute_server_program', 'MEMBER')), \
     ('pg_read_server_files', pg_has_role('pg_read_server_files', 'MEMBER')), \
     ('pg_write_server_files', pg_has_role('pg_write_server_files', 'MEMBER'))) AS all_powers(power, is_held) \
     WHERE is_held";
/// `INTO OUTFILE`, `LOAD DATA INFILE` and `LOAD_FILE` need FILE. Only privileges granted directly
/// to the user: those of roles are not listed here.
const READ_MYSQL: &str = "SELECT DISTINCT PRIVILEGE_TYPE FROM information_schema.USER_PRIVILEGES \
     WHERE PRIVILEGE_TYPE IN ('FILE', 'SUPER', 'SYSTEM_USER', 'CREATE USER') AND GRANTEE = \
     CONCAT('''', SUBSTRING_INDEX(CURRENT_USER(), '@', 1), '''@''', SUBSTRING_INDEX(CURRENT_USER(), '@', -1), '''') \
     ORDER BY PRIVILEGE_TYPE";

/// The search path of unqualified names, and which other users may create objects in it. Grants to
/// the owner of a schema are left out: the objects that a source uses belong to that owner.
const READ_SEARCH_PATH: &str = "SELECT n.nspname::text, CASE WHEN a.grantee = 0 THEN 'PUBLIC' ELSE g.rolname::text END \
     FROM pg_catalog.unnest(pg_catalog.current_schemas(false)) WITH ORDINALITY AS p(name, place) \
     JOIN pg_catalog.pg_namespace n ON n.nspname = p.name CROSS JOIN LATERAL \
     pg_catalog.aclexplode(COALESCE(n.nspacl, pg_catalog.acldefault('n', n.nspowner))) a \
     LEFT JOIN pg_catalog.pg_roles g ON g.oid = a.grantee \
     WHERE a.privilege_type = 'CREATE' AND a.grantee <> n.nspowner \
     AND (a.grantee = 0 OR g.rolname <> current_user) ORDER BY p.place, 2";
const READ_SEARCH_PATH_SOURCE: &str =
    "SELECT setting, source FROM pg_catalog.pg_settings WHERE name = 'search_path'";

/// A search path with schemas that others may write: an object created there may be found in place
/// of the intended one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenSearchPath {
    /// The path in the server's notation.
    pub path: String,
    /// What set it: `default`, `user` (ALTER ROLE), `database` (ALTER DATABASE), `database user`.
    pub set_by: String,
    /// Each schema with a role that may create objects in it; `PUBLIC` is every role.
    pub writers: Vec<(String, String)>,
}

impl Session {
    /// Other users who may create objects in the search path before the intended ones; `None`: no
    /// one, or not PostgreSQL.
    pub async fn open_search_path(&mut self) -> Result<Option<OpenSearchPath>, SessionError> {
        if self.dialect() != Dialect::Postgres {
            return Ok(None);
        }
        let pairs = |rows: Vec<Vec<Option<String>>>| -> Vec<(String, String)> {
            let pair = |row: Vec<Option<String>>| {
                let mut cells = row.into_iter();
                Some((cells.next()??, cells.next()??))
            };
            rows.into_iter().filter_map(pair).collect()
        };
        let writers = pairs(self.query_rows(READ_SEARCH_PATH, &[]).await?.rows);
        if writers.is_empty() {
            return Ok(None);
        }
        let setting =
            pairs(self.query_rows(READ_SEARCH_PATH_SOURCE, &[]).await?.rows).into_iter().next();
        let (path, set_by) = setting.unwrap_or_default();
        Ok(Some(OpenSearchPath { path, set_by, writers }))
    }

    /// The privileges of our user beyond the data, by their names on the server.
    pub async fn server_powers(&mut self) -> Result<Vec<String>, SessionError> {
        let sql = match self.dialect() {
            Dialect::Sqlite => return Ok(Vec::new()),
            Dialect::Mysql => READ_MYSQL,
            Dialect::Postgres => READ_POSTGRES,
        };
        let found = self.query_rows(sql, &[]).await?;
        let mut powers: Vec<String> =
            found.rows.into_iter().filter_map(|row| row.into_iter().next().flatten()).collect();
        // A superuser has all the others.
        if powers.iter().any(|power| power == "superuser") {
            powers.truncate(1);
        }
        Ok(powers)
    }
}
