//! Looks up the parameter names of procedures: a CALL of another scheduler passes values by position, and a PROC job by
//! name.

use crate::domain::source::DialectName;
use crate::domain::source::routine_name::RoutineName;
use crate::domain::source::scheduler_tables::{
    SchedulerRow, SchedulerServer, SchedulerTables, TablePresence, WantedTable,
};
use crate::import::sql_statement::SqlForm;
use std::collections::BTreeMap;

/// The parameters of all procedures that the user may see, in MySQL and MariaDB.
pub(crate) const OF_MYSQL: WantedTable = WantedTable {
    schema: "information_schema",
    table: "PARAMETERS",
    order: &["specific_schema", "specific_name", "ordinal_position"],
    condition: "routine_type = 'PROCEDURE'",
    presence: TablePresence::Optional,
};

/// The parameters of all procedures of one PostgreSQL database.
pub(crate) const OF_POSTGRES: WantedTable = WantedTable {
    table: "parameters",
    condition: "specific_schema NOT IN ('pg_catalog', 'information_schema')",
    ..OF_MYSQL
};

/// The context of a CALL.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CallPlace<'a> {
    pub(crate) dialect: DialectName,
    /// The schema of unqualified names; none if there are several.
    pub(crate) schema: Option<&'a str>,
}

/// Assigns the parameter names of the procedure to the values of a CALL. If they are unknown, or several procedures
/// match, the CALL stays a statement.
pub(crate) fn name_parameters(
    form: SqlForm,
    tables: &SchedulerTables,
    home: CallPlace<'_>,
) -> SqlForm {
    let SqlForm::Call { name, mut params } = form else { return form };
    if params.is_empty() {
        return SqlForm::Call { name, params };
    }
    let Some(parsed) = RoutineName::parse(&name) else { return SqlForm::Statements };
    let names = parameter_names(&parsed.parts, params.len(), tables, home);
    let Some(names) = names else { return SqlForm::Statements };
    for (param, name) in params.iter_mut().zip(names) {
        param.name = name;
    }
    SqlForm::Call { name, params }
}

/// A CALL with unknown parameter names: a statement, unless it has no values.
pub(crate) fn without_names(form: SqlForm) -> SqlForm {
    match form {
        SqlForm::Call { params, .. } if !params.is_empty() => SqlForm::Statements,
        other => other,
    }
}

/// Whether the routines were read from this database.
pub(crate) fn is_of_database(server: &SchedulerServer, database: &str) -> bool {
    let url = server.url.as_deref().and_then(|url| url::Url::parse(url).ok());
    url.is_some_and(|url| url.path().trim_start_matches('/') == database)
}

/// The parameter names of the only procedure with this name and number of parameters.
fn parameter_names(
    parts: &[String],
    count: usize,
    tables: &SchedulerTables,
    CallPlace { dialect, schema }: CallPlace<'_>,
) -> Option<Vec<String>> {
    let own = parts.len().checked_sub(2).and_then(|at| parts.get(at)).map(String::as_str);
    let (routine, schema) = (parts.last()?, own.or(schema));
    let wanted = if dialect == DialectName::Mysql { OF_MYSQL } else { OF_POSTGRES };
    let is_named = |row: &&SchedulerRow| {
        let specific = row.trimmed_value("specific_name");
        // PostgreSQL appends a number to the name.
        let name = match dialect {
            DialectName::Mysql => specific,
            DialectName::Postgres | DialectName::Sqlite => {
                specific.rsplit_once('_').map_or(specific, |(name, _)| name)
            }
        };
        let of_schema =
            |schema: &str| row.trimmed_value("specific_schema").eq_ignore_ascii_case(schema);
        name.eq_ignore_ascii_case(routine) && schema.is_none_or(of_schema)
    };
    let mut found: BTreeMap<(&str, &str), Vec<String>> = BTreeMap::new();
    let table = format!("{}.{}", wanted.schema, wanted.table);
    for row in tables.table_rows(&table).iter().filter(is_named) {
        let key = (row.trimmed_value("specific_schema"), row.trimmed_value("specific_name"));
        found.entry(key).or_default().push(row.trimmed_value("parameter_name").to_owned());
    }
    let mut fitting = found.into_values().filter(|names| names.len() == count);
    let names = fitting.next().filter(|names| names.iter().all(|name| !name.is_empty()))?;
    fitting.next().is_none().then_some(names)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::source::scheduler_tables::SchedulerTable;

    fn tables(name: &str, rows: &[[&str; 3]]) -> SchedulerTables {
        let row = |[schema, routine, parameter]: &[&str; 3]| {
            let pairs = [
                ("specific_schema", *schema),
                ("specific_name", *routine),
                ("parameter_name", *parameter),
            ];
            SchedulerRow::from_pairs(&pairs)
        };
        let table = SchedulerTable {
            name: name.to_owned(),
            columns: Vec::new(),
            rows: rows.iter().map(row).collect(),
        };
        SchedulerTables { tables: vec![table], ..SchedulerTables::default() }
    }

    fn names(text: &str, tables: &SchedulerTables, dialect: DialectName) -> Option<Vec<String>> {
        match name_parameters(
            SqlForm::read(text, dialect),
            tables,
            CallPlace { dialect, schema: None },
        ) {
            SqlForm::Call { params, .. } => Some(params.into_iter().map(|p| p.name).collect()),
            _ => None,
        }
    }

    #[test]
    fn values_get_the_names_of_the_one_procedure_that_is_meant() {
        let mysql = tables(
            "information_schema.PARAMETERS",
            &[["bank", "close_day", "n"], ["bank", "close_day", "b"], ["gl", "close_day", "x"]],
        );
        let find = |text: &str| names(text, &mysql, DialectName::Mysql);
        assert_eq!(find("CALL close_day(1, 'x')"), Some(vec!["n".to_owned(), "b".to_owned()]));
        assert_eq!(find("CALL gl.close_day(1)"), Some(vec!["x".to_owned()]));
        assert_eq!(find("CALL bank.close_day(1)"), None);
        assert_eq!(find("CALL unknown(1)"), None);
        assert_eq!(find("CALL unknown()"), Some(Vec::new()));
        let postgres = tables(
            "information_schema.parameters",
            &[["public", "post_1", "a"], ["public", "post_2", "b"], ["gl", "close_day_77", "n"]],
        );
        let find = |text: &str| names(text, &postgres, DialectName::Postgres);
        assert_eq!(find("CALL close_day(1)"), Some(vec!["n".to_owned()]));
        assert_eq!(find("CALL post(1)"), None, "two have this name and one parameter");
    }
}
