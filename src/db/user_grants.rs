//! A user's privileges on a data source, as its server shows them to the user.

use crate::db::dialect::Dialect;
use crate::db::fault::SessionError;
use crate::db::session::Session;

impl Session {
    /// The lines of SHOW GRANTS, including active roles; none where the server has no such
    /// statement. They must not be shown: MariaDB includes the hash of the password.
    pub async fn grant_lines(&mut self) -> Result<Vec<String>, SessionError> {
        if self.dialect() != Dialect::Mysql {
            return Ok(Vec::new());
        }
        let found = self.query_rows("SHOW GRANTS", &[]).await?;
        Ok(found.rows.into_iter().filter_map(|row| row.into_iter().next().flatten()).collect())
    }
}
