//! The server's counters, on one session, of statements whose effect outlives them.

use crate::db::results::Rows;

/// MariaDB's counters, also within procedures, functions and triggers, as one value.
pub(in crate::db) const MARIADB_COUNTS: &str = "SELECT GROUP_CONCAT(variable_value ORDER BY variable_name) \
    FROM information_schema.session_status WHERE variable_name IN ('COM_CHANGE_DB', 'COM_CREATE_SEQUENCE', \
    'COM_CREATE_TEMPORARY_TABLE', 'COM_FLUSH', 'COM_HA_OPEN', 'COM_LOCK_TABLES', 'COM_PREPARE_SQL', \
    'COM_SET_OPTION', 'COM_XA_START')";

/// The position of the SET counter among them.
const MARIADB_SETS: usize = 7;

/// MySQL's counters, as rows of name and count: statements that can be part of a query have none.
/// Temporary tables are not counted separately.
pub(in crate::db) const MYSQL_COUNTS: &str = "SHOW SESSION STATUS WHERE Variable_name IN ('Com_change_db', \
    'Com_create_table', 'Com_flush', 'Com_ha_open', 'Com_lock_instance', 'Com_lock_tables', 'Com_prepare_sql', \
    'Com_set_option', 'Com_set_resource_group', 'Com_set_role', 'Com_xa_start')";

/// The counters of one session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::db) struct StatementCounts {
    sets: u64,
    others: Vec<u64>,
}

impl StatementCounts {
    /// From the result of `MARIADB_COUNTS`.
    pub(in crate::db) fn from_mariadb(text: &str) -> Option<Self> {
        let mut others: Vec<u64> =
            text.split(',').map(|number| number.parse().ok()).collect::<Option<_>>()?;
        let sets = (others.len() > MARIADB_SETS).then(|| others.remove(MARIADB_SETS))?;
        Some(Self { sets, others })
    }

    /// From the result of `MYSQL_COUNTS`.
    pub(in crate::db) fn from_mysql(rows: &Rows) -> Option<Self> {
        let (mut sets, mut others) = (None, Vec::new());
        for row in &rows.rows {
            let [Some(name), Some(count)] = &row[..] else { return None };
            let count = count.parse().ok()?;
            match name.eq_ignore_ascii_case("Com_set_option") {
                true => sets = Some(count),
                false => others.push(count),
            }
        }
        Some(Self { sets: sets?, others })
    }

    /// Whether `now` differs only by this many SETs, which were ours.
    pub(in crate::db) fn is_only_followed_by_sets(&self, now: &Self, own_sets: u32) -> bool {
        self.sets + u64::from(own_sets) == now.sets && self.others == now.others
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_sets_of_ours_may_have_been_counted() {
        for (then, now, sets, is_so) in [
            ("0,0,0,0,0,0,0,2,0,0", "0,0,0,0,0,0,0,2,0,0", 0, true),
            ("0,0,0,0,0,0,0,2,0,0", "0,0,0,0,0,0,0,5,0,0", 3, true),
            ("0,0,0,0,0,0,0,2,0,0", "0,0,0,0,0,0,0,5,0,0", 2, false),
            ("0,0,0,0,0,0,0,2,0,0", "0,0,1,0,0,0,0,2,0,0", 0, false),
        ] {
            let counts = |text| StatementCounts::from_mariadb(text).expect("counts");
            let is = counts(then).is_only_followed_by_sets(&counts(now), sets);
            assert_eq!(is, is_so, "{then} {now} {sets}");
        }
        for bad in ["0,0", "", "0,0,0,0,0,0,0,x,0"] {
            assert_eq!(StatementCounts::from_mariadb(bad), None, "{bad}");
        }
    }

    #[test]
    fn mysql_gives_a_row_for_each_count() {
        let rows = |counts: &[(&str, &str)]| Rows {
            rows: counts.iter().map(|(n, c)| vec![Some((*n).into()), Some((*c).into())]).collect(),
            ..Rows::default()
        };
        let counts = |rows: &Rows| StatementCounts::from_mysql(rows);
        let then = counts(&rows(&[("Com_change_db", "0"), ("Com_set_option", "2")])).expect("then");
        let now = counts(&rows(&[("Com_change_db", "0"), ("Com_set_option", "4")])).expect("now");
        assert!(then.is_only_followed_by_sets(&now, 2) && !then.is_only_followed_by_sets(&now, 1));
        let moved =
            counts(&rows(&[("Com_change_db", "1"), ("Com_set_option", "2")])).expect("moved");
        assert!(!then.is_only_followed_by_sets(&moved, 0));
        assert_eq!(counts(&rows(&[("Com_change_db", "0")])), None, "SETs are not among them");
    }
}
