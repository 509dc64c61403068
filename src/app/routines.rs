//! The catalogue of routines of a data source: what a new job could call, and with which parameters. Reads only.

use crate::app::App;
use crate::domain::job::param::{ParamMode, ParamType};
use crate::domain::source::{DataSource, DialectName};
use crate::handler::lineage::read_catalogue;
use crate::lineage::{CatalogueParam, CatalogueRoutine, param_type};
use std::collections::BTreeMap;

/// A procedure or function that a job may call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoutineSignature {
    /// Its schema; none where the search path finds it, and for bodies in place of procedures.
    pub schema: Option<String>,
    pub name: String,
    pub is_function: bool,
    pub params: Vec<RoutineParam>,
    /// Whether `params` has its outputs too: a body in place of a procedure declares none.
    pub has_outputs: bool,
}

/// One parameter of a routine, as a job declares it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoutineParam {
    pub name: String,
    pub mode: ParamMode,
    pub ty: ParamType,
    /// Whether a job may leave it out.
    pub has_default: bool,
}

impl App {
    /// The routines of a stored source, by name. The error is a message for the user.
    pub async fn list_routines(
        &self,
        source: &DataSource,
    ) -> Result<Vec<RoutineSignature>, String> {
        let source = self.with_password(source).await.map_err(|fault| fault.to_string())?;
        let catalogue = read_catalogue(&source, &self.config.handlers(), &[]).await?;
        let mut found = match catalogue.dialect {
            DialectName::Sqlite => stand_ins(&source.procedures),
            DialectName::Mysql | DialectName::Postgres => {
                let path = &catalogue.search_path;
                catalogue.routines().map(|one| signature_of(one, path)).collect()
            }
        };
        found.sort_by(|a, b| (&a.schema, &a.name).cmp(&(&b.schema, &b.name)));
        Ok(found)
    }
}

fn signature_of(routine: &CatalogueRoutine, path: &[String]) -> RoutineSignature {
    let is_found = |schema: &String| path.contains(schema);
    RoutineSignature {
        schema: routine.name.schema.clone().filter(|schema| !is_found(schema)),
        name: routine.name.name.clone(),
        is_function: routine.is_function,
        params: routine.params.iter().filter_map(param_of).collect(),
        has_outputs: true,
    }
}

/// A parameter without a name cannot be declared by a job.
fn param_of(param: &CatalogueParam) -> Option<RoutineParam> {
    let mode = match (param.is_input, param.is_output) {
        (true, true) => ParamMode::InOut,
        (false, true) => ParamMode::Out,
        (_, false) => ParamMode::In,
    };
    Some(RoutineParam {
        name: param.name.clone()?,
        mode,
        ty: param_type(&param.type_name),
        has_default: param.has_default,
    })
}

/// Bodies in place of procedures: their parameters are the placeholders, in the order of the text.
fn stand_ins(procedures: &BTreeMap<String, String>) -> Vec<RoutineSignature> {
    let of = |(name, body): (&String, &String)| RoutineSignature {
        schema: None,
        name: name.clone(),
        is_function: false,
        params: placeholders(body)
            .into_iter()
            .map(|name| RoutineParam {
                name,
                mode: ParamMode::In,
                ty: ParamType::Text,
                has_default: false,
            })
            .collect(),
        has_outputs: false,
    };
    procedures.iter().map(of).collect()
}

/// The names behind `:` in a statement, each once; those in texts and comments are none.
fn placeholders(sql: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let mut rest = sql;
    while let Some(first) = rest.chars().next() {
        let end = match first {
            '\'' | '"' | '`' => rest[1..].find(first).map_or(rest.len(), |at| at + 2),
            '-' if rest.starts_with("--") => rest.find('\n').unwrap_or(rest.len()),
            '/' if rest.starts_with("/*") => rest.find("*/").map_or(rest.len(), |at| at + 2),
            ':' if rest.starts_with("::") => 2,
            ':' => {
                let name: String =
                    rest[1..].chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
                let long = name.len();
                if !name.is_empty() && !found.contains(&name) {
                    found.push(name);
                }
                1 + long
            }
            _ => first.len_utf8(),
        };
        rest = &rest[end..];
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders_are_those_of_the_statement() {
        let sql =
            "DELETE FROM t WHERE a = :b -- :c\n AND d = ':e' /* :f */ AND g::text = :h_2 OR i = :b";
        assert_eq!(placeholders(sql), ["b", "h_2"]);
        assert_eq!(placeholders("SELECT 'open :x"), Vec::<String>::new());
    }

    #[test]
    fn a_stand_in_declares_its_inputs_alone() {
        let all = stand_ins(&BTreeMap::from([("sp_a".to_owned(), "SELECT :p_no".to_owned())]));
        assert_eq!(all.len(), 1);
        assert_eq!((all[0].params[0].name.as_str(), all[0].has_outputs), ("p_no", false));
    }
}
