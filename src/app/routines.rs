//! The catalogue of routines of a data source: what a new job could call, and with which parameters. Reads only.

use crate::app::App;
use crate::domain::job::param::{ParamMode, ParamType};
use crate::domain::source::{DataSource, DialectName};
use crate::handler::lineage::read_catalogue;
use crate::lineage::{CatalogueRoutine, param_type};
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
        params: params_of(routine),
        has_outputs: true,
    }
}

/// The parameters of a routine. One without a name (PostgreSQL) gets one here: arguments are then
/// passed by position. The columns that a function returns are none of its parameters; a job has
/// them as outputs without declaring them.
fn params_of(routine: &CatalogueRoutine) -> Vec<RoutineParam> {
    let is_by_position = routine.params.iter().any(|param| param.name.is_none());
    let mut made: Vec<RoutineParam> = Vec::new();
    for (place, param) in routine.params.iter().enumerate() {
        let name = param.name.clone().unwrap_or_else(|| format!("arg_{}", place + 1));
        let mode = match (param.is_input, param.is_output) {
            (true, true) => ParamMode::InOut,
            (false, true) => ParamMode::Out,
            (_, false) => ParamMode::In,
        };
        let has_default = param.has_default;
        made.push(RoutineParam { name, mode, ty: param_type(&param.type_name), has_default });
    }
    if is_by_position {
        // Only the last arguments can be left out of a list of positions.
        let mut is_last = true;
        for (param, kept) in routine.params.iter().zip(&mut made).rev() {
            is_last &= param.has_default;
            kept.has_default &= is_last;
        }
    }
    made
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
    use crate::lineage::{BodyText, CatalogueParam, ObjectName, RoutineLanguage};

    #[test]
    fn placeholders_are_those_of_the_statement() {
        let sql =
            "DELETE FROM t WHERE a = :b -- :c\n AND d = ':e' /* :f */ AND g::text = :h_2 OR i = :b";
        assert_eq!(placeholders(sql), ["b", "h_2"]);
        assert_eq!(placeholders("SELECT 'open :x"), Vec::<String>::new());
    }

    fn unnamed(is_input: bool, is_output: bool, has_default: bool) -> CatalogueParam {
        let type_name = "integer".to_owned();
        CatalogueParam { name: None, is_input, is_output, type_name, has_default }
    }

    fn names_of(is_function: bool, params: Vec<CatalogueParam>) -> Vec<(String, bool)> {
        let routine = CatalogueRoutine {
            name: ObjectName { schema: None, name: "f_rate".to_owned() },
            is_function,
            params,
            language: RoutineLanguage::Procedural,
            body: BodyText::Text(String::new()),
            search_path: None,
        };
        params_of(&routine).into_iter().map(|param| (param.name, param.has_default)).collect()
    }

    #[test]
    fn parameters_without_names_are_passed_by_position() {
        let (input, out) = (unnamed(true, false, false), unnamed(false, true, false));
        let has_default = unnamed(true, false, true);
        let named = CatalogueParam { name: Some("p_no".to_owned()), ..has_default.clone() };
        let made = names_of(false, vec![input.clone(), named.clone(), out.clone(), named]);
        let wanted = [("arg_1", false), ("p_no", false), ("arg_3", false), ("p_no", true)];
        assert_eq!(made, wanted.map(|(name, may)| (name.to_owned(), may)));
        let function = names_of(true, vec![input, has_default]);
        let wanted = [("arg_1", false), ("arg_2", true)];
        assert_eq!(function, wanted.map(|(name, may)| (name.to_owned(), may)));
    }

    #[test]
    fn a_stand_in_declares_its_inputs_alone() {
        let all = stand_ins(&BTreeMap::from([("sp_a".to_owned(), "SELECT :p_no".to_owned())]));
        assert_eq!(all.len(), 1);
        assert_eq!((all[0].params[0].name.as_str(), all[0].has_outputs), ("p_no", false));
    }
}
