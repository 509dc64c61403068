//! Looks up many routines at once, with the user whose privileges they run with and whether our
//! user may call them.

use crate::db::dialect::Dialect;
use crate::db::fault::SessionError;
use crate::db::results::{Results, Rows};
use crate::db::routine::{Routine, RoutineParam, RoutineParamMode};
use crate::db::session::{Arg, Session};
use crate::db::target::mysql::is_execute_denied;

/// A name to look up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WantedRoutine {
    /// Its schema; without one the search path is used.
    pub schema: Option<String>,
    pub name: String,
}

/// A routine that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CatalogueEntry {
    /// The index of the wanted name.
    pub wanted: usize,
    pub routine: Routine,
    /// The user who owns it.
    pub definer: String,
    /// Whether it runs with the privileges of its definer instead of its caller.
    pub runs_as_definer: bool,
    /// Whether our user may call it; `None` where the server does not show that.
    pub may_execute: Option<bool>,
}

/// Names per statement, each with up to four values. MariaDB reads a routine's parameters fast only
/// for constants, so each name is a SELECT of its own.
const NAMES_AT_ONCE: usize = 50;
/// Maximum number of parameter rows read.
const ROWS_MAX: usize = 100_000;

const MYSQL: &str = "\
SELECT $N AS wanted, r.routine_schema AS its_schema, r.routine_name AS its_name, \
       r.routine_type AS its_kind, '' AS oid, COALESCE(p.ordinal_position, 0) AS place,
       p.parameter_name AS param, p.parameter_mode AS mode, p.dtd_identifier AS ty, 0 AS has_default,
       r.definer AS definer, r.security_type = 'DEFINER' AS as_definer, NULL AS may
  FROM information_schema.routines r
  LEFT JOIN information_schema.parameters p
         ON p.specific_schema = r.routine_schema AND p.specific_name = r.specific_name
        AND p.routine_type = r.routine_type AND p.ordinal_position > 0
        AND p.specific_schema = COALESCE(?, DATABASE()) AND p.specific_name = ?
 WHERE r.routine_schema = COALESCE(?, DATABASE()) AND r.routine_name = ?
   AND r.routine_type IN ('PROCEDURE', 'FUNCTION')";

/// The names replace `$W` as a list of values. Defaults are counted from the end of the input
/// parameters.
const POSTGRES: &str = "\
SELECT w.n AS wanted, n.nspname::text, p.proname::text,
       CASE p.prokind WHEN 'f' THEN 'FUNCTION' ELSE 'PROCEDURE' END, p.oid::text, coalesce(a.i, 0)::int,
       coalesce(p.proargnames[a.i], ''), coalesce(p.proargmodes[a.i]::text, 'i'),
       pg_catalog.format_type(a.ty, -1),
       (coalesce(p.proargmodes[a.i]::text, 'i') IN ('i', 'b', 'v') AND (
           SELECT count(*) FROM generate_series(1, a.i) AS k
            WHERE coalesce(p.proargmodes[k]::text, 'i') IN ('i', 'b', 'v'))
        > p.pronargs - p.pronargdefaults)::int,
       pg_catalog.pg_get_userbyid(p.proowner)::text, p.prosecdef::int,
       (pg_catalog.has_function_privilege(p.oid, 'EXECUTE')
        AND pg_catalog.has_schema_privilege(n.oid, 'USAGE'))::int
  FROM (VALUES $W) AS w(n, s, name)
  JOIN pg_catalog.pg_proc p ON p.proname = w.name AND p.prokind IN ('p', 'f')
  JOIN pg_catalog.pg_namespace n ON n.oid = p.pronamespace
   AND (n.nspname = w.s OR (w.s IS NULL AND pg_catalog.pg_function_is_visible(p.oid)))
  LEFT JOIN LATERAL unnest(coalesce(p.proallargtypes, p.proargtypes::oid[]))
       WITH ORDINALITY AS a(ty, i) ON true
 ORDER BY 1, 5, 6";

impl Session {
    /// Looks up routines by name, in one round trip per fifty; none on SQLite.
    pub async fn find_routines(
        &mut self,
        wanted: &[WantedRoutine],
    ) -> Result<Vec<CatalogueEntry>, SessionError> {
        let mut found = Vec::new();
        for (chunk, names) in wanted.chunks(NAMES_AT_ONCE).enumerate() {
            let first = chunk * NAMES_AT_ONCE;
            let (sql, args) = match self.dialect() {
                Dialect::Sqlite => return Ok(Vec::new()),
                Dialect::Mysql => mysql_question(names, first),
                Dialect::Postgres => postgres_question(names, first),
            };
            let mut answer = Results::keeping(ROWS_MAX, 1);
            self.send_statement(&sql, &args, &mut answer).await?;
            found.extend(answer.sets.first().map(entries_in).unwrap_or_default());
        }
        Ok(found)
    }

    /// The definer of a package of MariaDB, and whether it runs with that user's privileges.
    pub async fn package_definer(
        &mut self,
        schema: &str,
        package: &str,
    ) -> Result<Option<(String, bool)>, SessionError> {
        let sql = "SELECT definer, security_type = 'DEFINER' FROM information_schema.routines \
                   WHERE routine_schema = ? AND routine_name = ? AND routine_type = 'PACKAGE'";
        let args = [schema, package].map(|text| Arg::Text(text.to_owned()));
        let found = self.query_rows(sql, &args).await?;
        Ok(found.first(0).map(|definer| (definer.to_owned(), found.first(1) == Some("1"))))
    }

    /// Whether MySQL or MariaDB refuses our user a call of a routine: it is called with one
    /// argument too many, which the server reports only to users who may call it. Nothing is run.
    pub async fn is_execute_refused(&mut self, routine: &Routine) -> Result<bool, SessionError> {
        let quote = |name: &str| Dialect::Mysql.quote(name);
        let count = 1 + routine
            .params
            .iter()
            .filter(|param| param.mode != RoutineParamMode::Column)
            .count();
        let (verb, nulls) =
            (if routine.is_function { "SELECT" } else { "CALL" }, vec!["NULL"; count].join(", "));
        let sql = format!("{verb} {}.{}({nulls})", quote(&routine.schema), quote(&routine.name));
        match self.run_statement(&sql, &[]).await {
            Ok(_) => Ok(false),
            Err(SessionError::Database(error)) => {
                Ok(is_execute_denied(&error, &routine.schema, &routine.name))
            }
            Err(error) => Err(error),
        }
    }
}

fn mysql_question(names: &[WantedRoutine], first: usize) -> (String, Vec<Arg>) {
    let (mut parts, mut args) = (Vec::new(), Vec::new());
    for (at, wanted) in names.iter().enumerate() {
        parts.push(MYSQL.replace("$N", &(first + at).to_string()));
        let schema = wanted.schema.clone().map_or(Arg::Null, Arg::Text);
        for _ in 0..2 {
            args.extend([schema.clone(), Arg::Text(wanted.name.clone())]);
        }
    }
    (format!("{} ORDER BY wanted, its_kind DESC, place", parts.join(" UNION ALL ")), args)
}

fn postgres_question(names: &[WantedRoutine], first: usize) -> (String, Vec<Arg>) {
    let (mut list, mut args) = (Vec::new(), Vec::new());
    for (at, wanted) in names.iter().enumerate() {
        args.push(wanted.schema.clone().map_or(Arg::Null, Arg::Text));
        args.push(Arg::Text(wanted.name.clone()));
        list.push(format!("({}, ${}::text, ${}::text)", first + at, args.len() - 1, args.len()));
    }
    (POSTGRES.replace("$W", &list.join(", ")), args)
}

/// One row per parameter.
fn entries_in(answer: &Rows) -> Vec<CatalogueEntry> {
    let mut found: Vec<((usize, String, String), CatalogueEntry)> = Vec::new();
    for row in &answer.rows {
        let text = |at: usize| row.get(at).cloned().flatten();
        let is_one = |at: usize| text(at).as_deref() == Some("1");
        let Some(wanted) = text(0).and_then(|text| text.parse::<usize>().ok()) else { continue };
        let key = (wanted, text(3).unwrap_or_default(), text(4).unwrap_or_default());
        if found.last().is_none_or(|(last, _)| *last != key) {
            let routine = Routine {
                schema: text(1).unwrap_or_default(),
                package: None,
                name: text(2).unwrap_or_default(),
                is_function: key.1 == "FUNCTION",
                params: Vec::new(),
            };
            let entry = CatalogueEntry {
                wanted,
                routine,
                definer: text(10).unwrap_or_default(),
                runs_as_definer: is_one(11),
                may_execute: text(12).map(|may| may == "1"),
            };
            found.push((key, entry));
        }
        if let (Some((_, entry)), Some(ty)) = (found.last_mut(), text(8)) {
            entry.routine.params.push(RoutineParam {
                name: text(6).unwrap_or_default(),
                mode: RoutineParamMode::of_catalogue(&text(7).unwrap_or_default()),
                ty,
                has_default: is_one(9),
                is_variadic: text(7).as_deref() == Some("v"),
            });
        }
    }
    found.into_iter().map(|(_, entry)| entry).collect()
}
