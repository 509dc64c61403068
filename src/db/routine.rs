//! Procedures and functions as described by the server's catalogue.

mod create_text;

use crate::db::dialect::Dialect;
use crate::db::fault::SessionError;
use crate::db::results::Rows;
use crate::db::session::{Arg, Session};
use std::fmt;

/// The direction of a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RoutineParamMode {
    /// Input.
    In,
    /// Output.
    Out,
    /// Input and output.
    InOut,
    /// A column of the rows returned by a PostgreSQL function.
    Column,
}

impl RoutineParamMode {
    /// From the catalogue's word.
    pub(in crate::db) fn of_catalogue(word: &str) -> Self {
        match word {
            "OUT" | "o" => Self::Out,
            "INOUT" | "b" => Self::InOut,
            "t" => Self::Column,
            _ => Self::In,
        }
    }
}

/// One parameter of a routine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoutineParam {
    /// Its name; empty for an unnamed parameter of PostgreSQL.
    pub name: String,
    pub mode: RoutineParamMode,
    /// Its type in the server's notation.
    pub ty: String,
    /// Whether it may be omitted.
    pub has_default: bool,
    /// Whether it takes the remaining values as one array; only PostgreSQL.
    pub is_variadic: bool,
}

impl RoutineParam {
    fn takes_in(&self) -> bool {
        matches!(self.mode, RoutineParamMode::In | RoutineParamMode::InOut)
    }
}

/// A procedure or function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Routine {
    /// Its schema (on MySQL: database).
    pub schema: String,
    /// Its package; only MariaDB.
    pub package: Option<String>,
    /// Its name in the server's spelling.
    pub name: String,
    pub is_function: bool,
    /// Its parameters, in order.
    pub params: Vec<RoutineParam>,
}

impl fmt::Display for Routine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = if self.is_function { "function" } else { "procedure" };
        let package = self.package.as_ref().map_or(String::new(), |package| format!("{package}."));
        write!(f, "{kind} {}.{package}{}(", self.schema, self.name)?;
        for (at, param) in
            self.params.iter().filter(|p| p.mode != RoutineParamMode::Column).enumerate()
        {
            let mode = match param.mode {
                RoutineParamMode::In | RoutineParamMode::Column if param.is_variadic => "VARIADIC",
                RoutineParamMode::In | RoutineParamMode::Column => "IN",
                RoutineParamMode::Out => "OUT",
                RoutineParamMode::InOut => "INOUT",
            };
            let comma = if at > 0 { ", " } else { "" };
            let default = if param.has_default { " DEFAULT" } else { "" };
            write!(f, "{comma}{mode} {} {}{default}", param.name, param.ty)?;
        }
        f.write_str(")")
    }
}

/// MySQL shows only routines on which the user has a privilege. The parameters are selected by
/// constants as well as by the join: with the join alone MariaDB reads those of every routine (5.6
/// ms instead of 1.1).
const MYSQL: &str = "\
SELECT r.routine_schema, r.routine_name, r.routine_type = 'FUNCTION', r.routine_type,
       p.parameter_name, p.parameter_mode, p.dtd_identifier
  FROM information_schema.routines r
  LEFT JOIN information_schema.parameters p
         ON p.specific_schema = r.routine_schema AND p.specific_name = r.specific_name
        AND p.routine_type = r.routine_type AND p.ordinal_position > 0
        AND p.specific_schema = COALESCE(?, DATABASE()) AND p.specific_name = ?
 WHERE r.routine_schema = COALESCE(?, DATABASE()) AND r.routine_name = ?
 ORDER BY r.routine_type DESC, p.ordinal_position";

/// Types are formatted with the modifier -1 (none): with NULL one becomes `character`, which in a
/// CAST means character(1). The number of input parameters is included, of which the last so many
/// have defaults. Which those are is computed here, because querying that for each took half of the
/// server's time. `$S` and `$N` are replaced by the schema and the name.
const POSTGRES: &str = "\
SELECT n.nspname, p.proname, (p.prokind = 'f')::int, p.oid::text,
       coalesce(p.proargnames[a.i], ''), coalesce(p.proargmodes[a.i]::text, 'i'),
       pg_catalog.format_type(a.ty, -1), p.pronargs, p.pronargdefaults
  FROM pg_catalog.pg_proc p
  JOIN pg_catalog.pg_namespace n ON n.oid = p.pronamespace
  LEFT JOIN LATERAL unnest(coalesce(p.proallargtypes, p.proargtypes::oid[]))
       WITH ORDINALITY AS a(ty, i) ON true
 WHERE p.prokind IN ('p', 'f')
   AND (n.nspname = $S::text OR ($S::text IS NULL AND pg_catalog.pg_function_is_visible(p.oid)))
   AND p.proname = $N::text
 ORDER BY p.oid, a.i";

/// The query to PostgreSQL for routines, with the numbers of the placeholders for schema and name.
pub(in crate::db) fn postgres_routines(schema: usize, name: usize) -> String {
    POSTGRES.replace("$S", &format!("${schema}")).replace("$N", &format!("${name}"))
}

impl Session {
    /// All routines called `name` in `schema`, or in the search path; more than one where the
    /// server supports overloads.
    pub async fn routines(
        &mut self,
        schema: Option<&str>,
        name: &str,
    ) -> Result<Vec<Routine>, SessionError> {
        let sql = match self.dialect() {
            Dialect::Sqlite => return Ok(Vec::new()),
            Dialect::Mysql => MYSQL.to_owned(),
            Dialect::Postgres => postgres_routines(1, 2),
        };
        let schema = schema.map_or(Arg::Null, |s| Arg::Text(s.to_owned()));
        let mut args = vec![schema, Arg::Text(name.to_owned())];
        if self.dialect() == Dialect::Mysql {
            args.extend(args.clone());
        }
        Ok(routines_in(&self.query_rows(&sql, &args).await?, 0))
    }

    /// A procedure of MySQL parsed from its own text, with types as written: if this user may see
    /// the text and it is understood. It takes MariaDB a twentieth of the time of `routines`.
    pub async fn shown_procedure(
        &mut self,
        schema: Option<&str>,
        name: &str,
    ) -> Result<Option<Routine>, SessionError> {
        let schema = schema.or(self.default_schema.as_deref()).map(str::to_owned);
        let (Dialect::Mysql, Some(schema)) = (self.dialect(), schema) else { return Ok(None) };
        let quote = |name: &str| Dialect::Mysql.quote(name);
        let sql = format!("SHOW CREATE PROCEDURE {}.{}", quote(&schema), quote(name));
        let shown = match self.query_rows(&sql, &[]).await {
            Ok(shown) => shown,
            // It does not exist, or this user may not see it.
            Err(SessionError::Database(_)) => return Ok(None),
            Err(error) => return Err(error),
        };
        let params = shown.first(2).and_then(create_text::parse_procedure);
        let name = shown.first(0).map(str::to_owned);
        Ok(params.zip(name).map(|(params, name)| Routine {
            schema,
            package: None,
            name,
            is_function: false,
            params,
        }))
    }

    /// The routines called `name` in a package of MariaDB, parsed from its text: no catalogue
    /// contains them. `None` where there is no such package.
    pub async fn routines_in_package(
        &mut self,
        schema: Option<&str>,
        package: &str,
        name: &str,
    ) -> Result<Option<PackageRoutines>, SessionError> {
        let schema = schema.or(self.default_schema.as_deref()).map(str::to_owned);
        let (true, Some(schema)) = (self.is_mariadb(), schema) else { return Ok(None) };
        let quote = |name: &str| Dialect::Mysql.quote(name);
        let sql = format!("SHOW CREATE PACKAGE {}.{}", quote(&schema), quote(package));
        let shown = match self.query_rows(&sql, &[]).await {
            Ok(shown) => shown,
            // It does not exist, or this user may not see it.
            Err(SessionError::Database(_)) => return Ok(None),
            Err(error) => return Err(error),
        };
        let package = shown.first(0).unwrap_or(package).to_owned();
        let Some(text) = shown.first(2) else { return Ok(Some(PackageRoutines::Hidden)) };
        let Some(declared) = create_text::parse_package(text) else {
            return Ok(Some(PackageRoutines::NotUnderstood));
        };
        let found = declared.into_iter().filter(|routine| routine.name.eq_ignore_ascii_case(name));
        let found = found.map(|routine| Routine {
            schema: schema.clone(),
            package: Some(package.clone()),
            name: routine.name,
            is_function: routine.is_function,
            params: routine.params,
        });
        Ok(Some(PackageRoutines::Found(found.collect())))
    }
}

/// The routines of a name in a package, as far as they can be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PackageRoutines {
    /// Those of the name.
    Found(Vec<Routine>),
    /// This user may not see the text of the package.
    Hidden,
    /// The text contains comments or other things between the declarations.
    NotUnderstood,
}

/// The routines in a result, from column `from` on: one row per parameter.
pub(in crate::db) fn routines_in(answer: &Rows, from: usize) -> Vec<Routine> {
    let mut found: Vec<(String, Routine)> = Vec::new();
    for row in &answer.rows {
        let text = |at: usize| row.get(from + at).cloned().flatten();
        let Some(key) = text(3) else { continue };
        if found.last().is_none_or(|(last, _)| *last != key) {
            let routine = Routine {
                schema: text(0).unwrap_or_default(),
                package: None,
                name: text(1).unwrap_or_default(),
                is_function: text(2).as_deref() == Some("1"),
                params: Vec::new(),
            };
            found.push((key, routine));
        }
        if let (Some((_, routine)), Some(ty)) = (found.last_mut(), text(6)) {
            let mut param = RoutineParam {
                name: text(4).unwrap_or_default(),
                mode: RoutineParamMode::of_catalogue(&text(5).unwrap_or_default()),
                ty,
                has_default: false,
                is_variadic: text(5).as_deref() == Some("v"),
            };
            let number = |at: usize| text(at).and_then(|text| text.parse::<usize>().ok());
            if let (Some(inputs), Some(defaults)) = (number(7), number(8)) {
                let before = routine.params.iter().filter(|p| p.takes_in()).count();
                param.has_default = param.takes_in() && before + defaults >= inputs;
            }
            routine.params.push(param);
        }
    }
    found.into_iter().map(|(_, routine)| routine).collect()
}
