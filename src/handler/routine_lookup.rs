//! Finds the routine that a job names, in the server's catalogue or in the text of a package.

use crate::db::fault::SessionError;
use crate::db::routine::{PackageRoutines, Routine};
use crate::db::session::Session;
use crate::db::target::{Capabilities, TargetDatabase};
use crate::domain::params::BoundParam;
use crate::domain::text::did_you_mean::nearest;
use crate::handler::signature::{Name, arrange, choose, list_signatures, parse_name, written};

/// Why there is none.
#[derive(Debug)]
pub(crate) enum LookupError {
    /// The server has no routine of that name that this user may see.
    Missing {
        /// The complete message.
        why: String,
        /// The routine that was probably meant.
        meant: Option<String>,
    },
    /// The name is invalid, or no routine of that name fits the parameters.
    Misfit(String),
    /// The query failed.
    Asking(SessionError),
}

/// The routine for `proc_name` and these parameters, or why there is none, with the existing
/// signatures.
pub(crate) async fn find_routine(
    session: &mut Session,
    proc_name: &str,
    params: &[BoundParam],
) -> Result<Routine, LookupError> {
    let name = parse_name(proc_name).map_err(LookupError::Misfit)?;
    if name.package.is_none() {
        let shown = session.shown_procedure(name.schema.as_deref(), &name.name).await;
        // If it does not fit, the catalogue is searched, which decides.
        if let Some(shown) = shown.map_err(LookupError::Asking)?
            && arrange(&shown, params).is_ok()
        {
            return Ok(shown);
        }
        if let Some(found) = find_in_catalogue(session, &name, params).await? {
            return Ok(found);
        }
    }
    if let Some(found) = find_in_package(session, &name, params).await? {
        return Ok(found);
    }
    Err(missing(session, &name).await)
}

/// What does not exist, and what was probably meant.
async fn missing(session: &mut Session, name: &Name) -> LookupError {
    let place = match (&name.schema, &name.package) {
        (Some(schema), None) => format!("in schema '{schema}'"),
        (schema, Some(package)) => {
            let schema = schema.as_deref().unwrap_or_default();
            format!("in a package '{schema}.{package}' (only MariaDB has packages)")
        }
        (None, None) => "where the connection looks for it (name it schema.procedure?)".to_owned(),
    };
    let meant = match session.routine_names(name.schema.as_deref(), &name.name).await {
        Ok(there) => suggest(name, &there, session.database()),
        Err(error) => return LookupError::Asking(error),
    };
    let question = meant.as_ref().map_or(String::new(), |meant| format!("; did you mean {meant}?"));
    let right = session.database().missing_routine_hint();
    let why = format!("there is no procedure '{}' {place}{right}{question}", name.name);
    LookupError::Missing { why, meant }
}

/// The routine that a wrong name probably means: one of that name in another schema, else one with
/// a similar name.
fn suggest(
    name: &Name,
    there: &[(String, String)],
    database: &dyn TargetDatabase,
) -> Option<String> {
    let part = |part: &str| written(part, database);
    let is_same = |found: &str| found.to_lowercase() == name.name.to_lowercase();
    if let Some((schema, found)) = there.iter().find(|(_, found)| is_same(found)) {
        return Some(format!("{}.{}", part(schema), part(found)));
    }
    let names = there.iter().map(|(_, found)| found.as_str());
    let meant = nearest(&name.name, names)?;
    let schema = name.schema.as_ref().map_or(String::new(), |schema| format!("{}.", part(schema)));
    Some(format!("{schema}{}", part(meant)))
}

/// The names under which the catalogue may have a routine.
pub(crate) fn spellings(name: &Name, can: &Capabilities) -> Vec<Name> {
    match can.folds_names {
        true => vec![name.clone(), name.folded()],
        false => vec![name.clone()],
    }
}

/// Leaves functions out where one may have the name of a procedure, and there is a procedure.
pub(crate) fn prefer_procedures(found: &mut Vec<Routine>, can: &Capabilities) {
    let is_procedure = |routine: &Routine| !routine.is_function;
    if can.has_functions_named_as_procedures && found.iter().any(is_procedure) {
        found.retain(is_procedure);
    }
}

async fn find_in_catalogue(
    session: &mut Session,
    name: &Name,
    params: &[BoundParam],
) -> Result<Option<Routine>, LookupError> {
    let can = session.database().capabilities();
    for name in spellings(name, can) {
        let found = session.routines(name.schema.as_deref(), &name.name).await;
        let mut found = found.map_err(LookupError::Asking)?;
        if found.is_empty() {
            continue;
        }
        prefer_procedures(&mut found, can);
        let there = list_signatures(&found);
        name.retain_types(&mut found);
        if found.is_empty() {
            let reason = format!("none has the types that the job names: {there}");
            return Err(LookupError::Misfit(reason));
        }
        return choose(found, params).map(Some).map_err(LookupError::Misfit);
    }
    Ok(None)
}

/// On MariaDB `a.b` may be procedure b of package a.
async fn find_in_package(
    session: &mut Session,
    name: &Name,
    params: &[BoundParam],
) -> Result<Option<Routine>, LookupError> {
    let (schema, package) = match (&name.package, &name.schema) {
        (Some(package), schema) => (schema.as_deref(), package),
        (None, Some(package)) => (None, package),
        (None, None) => return Ok(None),
    };
    let found = session.routines_in_package(schema, package, &name.name).await;
    match found.map_err(LookupError::Asking)? {
        None => Ok(None),
        Some(PackageRoutines::Found(found)) if found.is_empty() => {
            let why = format!("package '{package}' declares no '{}'", name.name);
            Err(LookupError::Missing { why, meant: None })
        }
        Some(PackageRoutines::Found(found)) => {
            choose(found, params).map(Some).map_err(LookupError::Misfit)
        }
        Some(PackageRoutines::Hidden) => Err(LookupError::Misfit(format!(
            "this user may not see the text of package '{package}', which alone has its parameters; \
             GRANT SHOW CREATE ROUTINE, or call it by a SQL job"
        ))),
        Some(PackageRoutines::NotUnderstood) => Err(LookupError::Misfit(format!(
            "the declarations of package '{package}' are not understood; call it by a SQL job: CALL \
             {package}.{}(…)",
            name.name
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::db::target::of_url;

    #[test]
    fn a_wrong_name_finds_the_one_that_was_meant() {
        let there = [("fin", "sp_close"), ("fin", "sp_open"), ("old", "sp_archive")];
        let there = there.map(|(schema, name)| (schema.to_owned(), name.to_owned()));
        for (wrong, meant) in [
            ("fin.sp_clsoe", Some("fin.sp_close")),
            ("sp_clsoe", Some("sp_close")),
            ("fin.SP_ARCHIVE", Some("old.sp_archive")),
            ("fin.something_else", None),
        ] {
            let name = parse_name(wrong).expect(wrong);
            let postgres = of_url("postgres:").expect("its family");
            assert_eq!(suggest(&name, &there, postgres).as_deref(), meant, "{wrong}");
        }
    }
}
