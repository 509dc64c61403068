//! Finds the holder of a session lock.

use crate::db::dialect::Dialect;
use crate::db::fault::SessionError;
use crate::db::session::{Arg, Session, SessionId};

/// The session that holds a lock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LockHolder {
    /// The session id in the form of the caller's own.
    pub id: SessionId,
    /// The server's description of its state: `active for 12 s`; empty when it is hidden from us.
    pub state: String,
}

impl Session {
    /// The session that holds lock `name`; `None` when none does, and on SQLite, which has no
    /// locks.
    pub async fn lock_holder(&mut self, name: &str) -> Result<Option<LockHolder>, SessionError> {
        let sql = match self.dialect() {
            Dialect::Sqlite => return Ok(None),
            Dialect::Mysql => {
                "SELECT h.id, CONCAT(p.command, ' for ', p.time, ' s'), NULL \
                 FROM (SELECT IS_USED_LOCK(?) AS id) h \
                 LEFT JOIN information_schema.processlist p ON p.id = h.id WHERE h.id IS NOT NULL"
            }
            // A bigint key is stored in two halves, which `objsubid` 1 indicates.
            Dialect::Postgres => {
                "SELECT l.pid, a.state || ' for ' || greatest(0, round(extract(epoch FROM \
                 clock_timestamp() - a.state_change)))::bigint || ' s', extract(epoch FROM a.backend_start)::text \
                 FROM (SELECT hashtextextended($1::text, 0) AS key) k \
                 JOIN pg_catalog.pg_locks l ON l.classid::bigint = (k.key >> 32) & 4294967295 \
                 AND l.objid::bigint = k.key & 4294967295 \
                 JOIN pg_catalog.pg_database d ON d.oid = l.database \
                 LEFT JOIN pg_catalog.pg_stat_activity a ON a.pid = l.pid \
                 WHERE l.locktype = 'advisory' AND l.objsubid = 1 AND l.granted \
                 AND d.datname = current_database()"
            }
        };
        let answer = self.query_rows(sql, &[Arg::Text(name.to_owned())]).await?;
        let number = answer.first(0).and_then(|id| id.parse().ok());
        let our_stamp = self.id().map_or("", |own| own.stamp.as_str());
        let stamp = match (our_stamp.split_once('@'), answer.first(2)) {
            (Some((server, _)), Some(start)) => format!("{server}@{start}"),
            // On MySQL the stamp is the server's start, and it is the same server.
            _ => our_stamp.to_owned(),
        };
        let state = answer.first(1).unwrap_or_default().to_owned();
        Ok(number.map(|number| LockHolder { id: SessionId { number, stamp }, state }))
    }
}
