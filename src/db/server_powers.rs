//! What the user of a data source may do on its server beyond the data: read and write the server's files,
//! run programs there.

use crate::db::dialect::Dialect;
use crate::db::fault::SessionError;
use crate::db::session::Session;

/// `COPY … PROGRAM` runs programs as the server's user; superusers and members of these roles may.
const READ_POSTGRES: &str = "SELECT power FROM (VALUES \
     ('superuser', (SELECT rolsuper FROM pg_catalog.pg_roles WHERE rolname = current_user)), \
     ('pg_execute_server_program', pg_has_role('pg_execute_server_program', 'MEMBER')), \
     ('pg_read_server_files', pg_has_role('pg_read_server_files', 'MEMBER')), \
     ('pg_write_server_files', pg_has_role('pg_write_server_files', 'MEMBER'))) AS all_powers(power, is_held) \
     WHERE is_held";
/// `INTO OUTFILE`, `LOAD DATA INFILE` and `LOAD_FILE` need FILE. Only what the user holds itself: rights of roles
/// are not listed here.
const READ_MYSQL: &str = "SELECT DISTINCT PRIVILEGE_TYPE FROM information_schema.USER_PRIVILEGES \
     WHERE PRIVILEGE_TYPE IN ('FILE', 'SUPER', 'SYSTEM_USER', 'CREATE USER') AND GRANTEE = \
     CONCAT('''', SUBSTRING_INDEX(CURRENT_USER(), '@', 1), '''@''', SUBSTRING_INDEX(CURRENT_USER(), '@', -1), '''') \
     ORDER BY PRIVILEGE_TYPE";

impl Session {
    /// The rights of our user that reach beyond the data, by their names on the server.
    pub async fn server_powers(&mut self) -> Result<Vec<String>, SessionError> {
        let sql = match self.dialect() {
            Dialect::Sqlite => return Ok(Vec::new()),
            Dialect::Mysql => READ_MYSQL,
            Dialect::Postgres => READ_POSTGRES,
        };
        let found = self.rows(sql, &[]).await?;
        let mut powers: Vec<String> =
            found.rows.into_iter().filter_map(|row| row.into_iter().next().flatten()).collect();
        // A superuser has all the others.
        if powers.iter().any(|power| power == "superuser") {
            powers.truncate(1);
        }
        Ok(powers)
    }
}
