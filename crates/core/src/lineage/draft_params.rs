//! Drafts the parameters of jobs: names, directions and types from the catalogue, with the known values.

use crate::domain::id::JobCode;
use crate::domain::job::{Param, ParamDecl, ParamMode, ParamNeed, ParamType, Secrecy};
use crate::domain::params::check_declared;
use crate::domain::source::DialectName;
use crate::lineage::access::CatalogueParam;
use crate::lineage::catalogue::CatalogueRoutine;
use crate::lineage::draft_note::DraftMatter;
use crate::lineage::draft_outputs::is_only_handed_back;
use crate::lineage::master_plan::StatementValue;
use crate::lineage::master_value::MasterValue;
use std::collections::BTreeMap;

/// The parameters of one job.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct DraftedParams {
    pub(super) params: Vec<Param>,
    pub(super) matters: Vec<DraftMatter>,
    /// Steps whose outputs the job uses.
    pub(super) steps: Vec<usize>,
}

/// Assigns values to the parameters of jobs.
#[derive(Debug)]
pub(super) struct ParamDrafter {
    dialect: DialectName,
    /// Parameters that each batch must provide.
    asked: BTreeMap<String, ParamType>,
    /// Codes of the steps of a master; none for a step that did not become a call.
    pub(super) codes: Vec<Option<JobCode>>,
    /// Types of a master's own parameters, by name in lower case.
    pub(super) master_types: BTreeMap<String, ParamType>,
}

impl ParamDrafter {
    /// A drafter without any parameters.
    pub(super) fn new(dialect: DialectName) -> Self {
        Self { dialect, asked: BTreeMap::new(), codes: Vec::new(), master_types: BTreeMap::new() }
    }

    /// The parameters that each batch must provide, as declarations of the group.
    pub(super) fn declared(&self) -> Vec<ParamDecl> {
        let one = |(name, ty): (&String, &ParamType)| ParamDecl {
            name: name.clone(),
            ty: *ty,
            value: None,
            need: ParamNeed::Required,
            secrecy: Secrecy::Open,
        };
        self.asked.iter().map(one).collect()
    }

    /// The parameters of a routine with the values that a master passes; without a master only names are known.
    pub(super) fn draft(
        &mut self,
        code: &JobCode,
        routine: &CatalogueRoutine,
        handed_in: impl Fn(&CatalogueParam) -> HandedIn,
    ) -> Result<DraftedParams, String> {
        let mut made = DraftedParams::default();
        for (place, param) in routine.params.iter().enumerate() {
            let name = param.name.clone().unwrap_or_else(|| format!("arg_{}", place + 1));
            if !is_usable(&name) {
                return Err(format!(
                    "its parameter {name} has a name that no job can bind: use ASCII letters, digits and _"
                ));
            }
            let mode = match (param.is_input, param.is_output) {
                (true, true) if is_only_handed_back(routine, &name, self.dialect) => ParamMode::Out,
                (true, true) => ParamMode::InOut,
                (false, true) => ParamMode::Out,
                (_, false) => ParamMode::In,
            };
            let ty = param_type(&param.type_name);
            let mut drafted = Param { name, mode, ty, ..Param::default() };
            if mode != ParamMode::Out {
                let value = match handed_in(param) {
                    HandedIn::Default => continue,
                    HandedIn::ByName if param.has_default => continue,
                    HandedIn::ByName => self.value_by_name(code, &drafted, &mut made),
                    HandedIn::Value(value) => self.value(code, &mut drafted, &value, &mut made),
                };
                drafted.value = value;
            }
            made.params.push(drafted);
        }
        Ok(made)
    }

    fn value_by_name(
        &mut self,
        code: &JobCode,
        param: &Param,
        made: &mut DraftedParams,
    ) -> Option<String> {
        if is_batch_no(&param.name) {
            made.matters.push(DraftMatter::TakenForBatchNo { param: param.name.clone() });
            return Some("${batch_no}".to_owned());
        }
        Some(self.ask_for(code, param, None, made))
    }

    fn ask_for(
        &mut self,
        code: &JobCode,
        param: &Param,
        from: Option<(String, u32)>,
        made: &mut DraftedParams,
    ) -> String {
        let stem: String = code
            .as_str()
            .chars()
            .map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '_' })
            .collect();
        let asked_as = match from {
            // The same name in several procedures is assumed to mean the same value.
            None => param.name.to_lowercase(),
            Some(_) => format!("{stem}_{}", param.name.to_lowercase()),
        };
        let asked_as = if is_usable(&asked_as) { asked_as } else { format!("_{asked_as}") };
        self.declare(&asked_as, param.ty);
        made.matters.push(DraftMatter::UnknownValue {
            param: param.name.clone(),
            asked_as: asked_as.clone(),
            from,
            offered: None,
        });
        format!("${{params.{asked_as}}}")
    }

    /// Declares a parameter of the batch; two uses with different types make it a text.
    fn declare(&mut self, name: &str, ty: ParamType) {
        let known = self.asked.entry(name.to_owned()).or_insert(ty);
        if *known != ty {
            *known = ParamType::Text;
        }
    }

    fn value(
        &mut self,
        code: &JobCode,
        param: &mut Param,
        value: &MasterValue,
        made: &mut DraftedParams,
    ) -> Option<String> {
        match value {
            MasterValue::Constant(text) if !text.contains("${") && !text.contains('\0') => {
                let decl = ParamDecl { ty: param.ty, ..ParamDecl::plain(&param.name, text) };
                if check_declared(&decl).is_err() {
                    // The server converts the text to the parameter's type, as it does in the master.
                    param.ty = ParamType::Text;
                }
                Some(text.clone())
            }
            MasterValue::Constant(text) => {
                Some(self.ask_for(code, param, Some((text.clone(), 0)), made))
            }
            MasterValue::Boolean(yes) => Some(match param.ty {
                ParamType::Bool => yes.to_string(),
                _ => u8::from(*yes).to_string(),
            }),
            MasterValue::Null => {
                made.matters.push(DraftMatter::NullValue { param: param.name.clone() });
                None
            }
            MasterValue::Param(name) if is_batch_no(name) => {
                made.matters.push(DraftMatter::TakenForBatchNo { param: param.name.clone() });
                Some("${batch_no}".to_owned())
            }
            MasterValue::Param(name) if is_usable(name) => {
                let asked_as = name.to_lowercase();
                let ty = self.master_types.get(&asked_as).copied().unwrap_or(param.ty);
                self.declare(&asked_as, ty);
                Some(format!("${{params.{asked_as}}}"))
            }
            MasterValue::Param(name) => {
                Some(self.ask_for(code, param, Some((name.clone(), 1)), made))
            }
            MasterValue::Output { step, param: output } => {
                let source = self.codes.get(*step).cloned().flatten();
                let usable = output.clone().filter(|output| is_usable(output));
                match (source, usable) {
                    (Some(job), Some(output)) => {
                        made.steps.push(*step);
                        Some(format!("${{jobs.{job}.{output}}}"))
                    }
                    _ => {
                        let text = "what an earlier step hands back".to_owned();
                        Some(self.ask_for(code, param, Some((text, 0)), made))
                    }
                }
            }
            MasterValue::Unknown { text, line } => {
                Some(self.ask_for(code, param, Some((text.clone(), *line)), made))
            }
        }
    }

    /// The values of a statement's variables.
    pub(super) fn draft_values(
        &mut self,
        code: &JobCode,
        values: &[StatementValue],
    ) -> Result<DraftedParams, String> {
        let mut made = DraftedParams::default();
        for StatementValue { name, type_name, value } in values {
            if !is_usable(name) {
                return Err(format!("its variable {name} has a name that no job can bind"));
            }
            let ty = param_type(type_name);
            let mut param = Param { name: name.clone(), ty, ..Param::default() };
            param.value = self.value(code, &mut param, value, &mut made);
            made.params.push(param);
        }
        Ok(made)
    }
}

/// What a caller passes for a parameter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum HandedIn {
    /// Nothing: the routine's default.
    Default,
    /// There is no caller.
    ByName,
    /// A value.
    Value(MasterValue),
}

/// Whether a job can bind a parameter with this name.
pub(super) fn is_usable(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// Whether a name suggests the batch number.
pub(super) fn is_batch_no(name: &str) -> bool {
    let name = name.to_lowercase();
    let stem = ["p_", "in_", "i_", "v_", "pi_", "par_", "_"]
        .iter()
        .find_map(|prefix| name.strip_prefix(prefix))
        .unwrap_or(&name);
    ["batch_no", "batchno", "batch_number", "batch_num", "batch"].contains(&stem)
}

/// The type of a job's parameter for a type of the server.
#[must_use]
pub fn param_type(type_name: &str) -> ParamType {
    let lower = type_name.to_ascii_lowercase();
    let head = lower.split(['(', ' ']).next().unwrap_or_default();
    if lower.ends_with("[]") {
        return ParamType::Text;
    }
    match head {
        "tinyint" | "smallint" | "mediumint" | "int" | "integer" | "bigint" | "year" => {
            ParamType::Int
        }
        "decimal" | "numeric" | "float" | "double" | "real" => ParamType::Decimal,
        "date" => ParamType::Date,
        "datetime" | "timestamp" => ParamType::Datetime,
        "bool" | "boolean" => ParamType::Bool,
        "bytea" | "binary" | "varbinary" | "blob" | "tinyblob" | "mediumblob" | "longblob" => {
            ParamType::Bytes
        }
        _ => ParamType::Text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_of_servers_are_types_of_jobs() {
        for (server, job) in [
            ("bigint(20) unsigned", ParamType::Int),
            ("decimal(18,2)", ParamType::Decimal),
            ("double precision", ParamType::Decimal),
            ("timestamp without time zone", ParamType::Datetime),
            ("date", ParamType::Date),
            ("boolean", ParamType::Bool),
            ("character varying", ParamType::Text),
            ("integer[]", ParamType::Text),
            ("json", ParamType::Text),
        ] {
            assert_eq!(param_type(server), job, "{server}");
        }
    }

    #[test]
    fn only_a_name_that_says_so_is_the_batch_number() {
        for name in ["p_batch_no", "BATCH_NO", "in_batchno", "p_batch", "_batch_number"] {
            assert!(is_batch_no(name), "{name}");
        }
        for name in ["p_batch_size", "batches", "p_no", "p_batch_date"] {
            assert!(!is_batch_no(name), "{name}");
        }
    }
}
