//! Parameters: one closed set of `${…}` names, replaced in values that are then bound.
//!
//! There is no template engine, no nesting and no code: the text of a parameter's value is the
//! only place where `${…}` means anything, and what comes out of it reaches SQL as a bound value
//! and a script as an environment variable, never as text of either.

use crate::domain::id::{BatchNo, GroupCode, JobCode};
use crate::domain::job::{JobDef, Param, ParamMode, ParamType};
use chrono::{NaiveDate, NaiveDateTime};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Values that the jobs of one batch share.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BatchValues {
    /// `${batch_no}`
    pub batch_no: BatchNo,
    /// `${group}`
    pub group: GroupCode,
    /// `${business_date}`, `YYYY-MM-DD`; none when the batch number does not imply one and none
    /// was given.
    pub business_date: Option<NaiveDate>,
    /// `${params.NAME}`: the group's parameters overlaid by the batch's own.
    pub params: BTreeMap<String, String>,
}

/// A parameter with its value worked out, ready to be bound.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BoundParam {
    /// Name, as in the definition.
    pub name: String,
    /// Which way it travels.
    pub mode: ParamMode,
    /// Its type.
    pub ty: ParamType,
    /// Its text; `None` is NULL.
    pub value: Option<String>,
}

impl BoundParam {
    /// A text of ours.
    pub fn text(name: &str, value: Option<String>) -> Self {
        Self { name: name.to_owned(), mode: ParamMode::In, ty: ParamType::Text, value }
    }
}

/// Why a parameter has no usable value; `Display` is the sentence for the user.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParamError {
    /// `${` without `}`.
    #[error("parameter {param}: '${{' without '}}' in {text:?}")]
    Unclosed {
        /// The parameter.
        param: String,
        /// Its text.
        text: String,
    },
    /// A name outside the closed set.
    #[error(
        "parameter {param}: ${{{name}}} is not known; use ${{batch_no}}, ${{group}}, ${{job_code}}, \
         ${{business_date}}, ${{item}}, ${{params.NAME}} or ${{jobs.CODE.NAME}}"
    )]
    UnknownName {
        /// The parameter.
        param: String,
        /// The name in its text.
        name: String,
    },
    /// A known name that has no value in this batch.
    #[error("parameter {param}: ${{{name}}} has no value in this batch; {cure}")]
    NoValue {
        /// The parameter.
        param: String,
        /// The name in its text.
        name: String,
        /// What to do about it.
        cure: String,
    },
    /// The text is not of the declared type.
    #[error("parameter {param}: {text:?} is not {expected}")]
    WrongType {
        /// The parameter.
        param: String,
        /// Its text.
        text: String,
        /// The type in words, with its form.
        expected: &'static str,
    },
}

/// A name between `${` and `}`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reference {
    /// `batch_no`
    BatchNo,
    /// `group`
    Group,
    /// `job_code`
    JobCode,
    /// `business_date`
    BusinessDate,
    /// `item`: what a fan-out made the job for.
    Item,
    /// `params.NAME`
    Param(String),
    /// `jobs.CODE.NAME`: an output of a job above this one.
    Output(JobCode, String),
}

fn reference(param: &str, name: &str) -> Result<Reference, ParamError> {
    let unknown = || ParamError::UnknownName { param: param.to_owned(), name: name.to_owned() };
    match name {
        "batch_no" => Ok(Reference::BatchNo),
        "group" => Ok(Reference::Group),
        "job_code" => Ok(Reference::JobCode),
        "business_date" => Ok(Reference::BusinessDate),
        "item" => Ok(Reference::Item),
        _ => {
            if let Some(key) = name.strip_prefix("params.").filter(|k| !k.is_empty()) {
                return Ok(Reference::Param(key.to_owned()));
            }
            // A job code may hold dots itself, an output's name may not.
            let (code, output) =
                name.strip_prefix("jobs.").and_then(|r| r.rsplit_once('.')).ok_or_else(unknown)?;
            let code = JobCode::parse(code).map_err(|_| unknown())?;
            Ok(Reference::Output(code, output.to_owned()))
        }
    }
}

enum Piece {
    Text(String),
    Name(String, Reference),
}

fn pieces(param: &str, text: &str) -> Result<Vec<Piece>, ParamError> {
    let mut found = Vec::new();
    let mut rest = text;
    while let Some(start) = rest.find("${") {
        if start > 0 {
            found.push(Piece::Text(rest[..start].to_owned()));
        }
        let after = &rest[start + 2..];
        let end = after.find('}').ok_or_else(|| ParamError::Unclosed {
            param: param.to_owned(),
            text: text.to_owned(),
        })?;
        let name = after[..end].trim();
        found.push(Piece::Name(name.to_owned(), reference(param, name)?));
        rest = &after[end + 1..];
    }
    if !rest.is_empty() {
        found.push(Piece::Text(rest.to_owned()));
    }
    Ok(found)
}

/// The names a parameter's value refers to; what `check` looks at without any batch.
pub fn references(param: &Param) -> Result<Vec<Reference>, ParamError> {
    let pieces = pieces(&param.name, param.value.as_deref().unwrap_or_default())?;
    Ok(pieces
        .into_iter()
        .filter_map(|p| match p {
            Piece::Name(_, reference) => Some(reference),
            Piece::Text(_) => None,
        })
        .collect())
}

/// Checks a value that refers to nothing against the declared type; values with `${…}` can only
/// be checked when they are known.
pub fn check_literal(param: &Param) -> Result<(), ParamError> {
    match &param.value {
        Some(text) if references(param)?.is_empty() => check_type(&param.name, param.ty, text),
        _ => Ok(()),
    }
}

/// Works out every parameter of `job`. `output` answers for `${jobs.CODE.NAME}`.
pub fn resolve(
    job: &JobDef,
    batch: &BatchValues,
    output: &dyn Fn(&JobCode, &str) -> Option<String>,
) -> Result<Vec<BoundParam>, ParamError> {
    job.params.iter().map(|param| resolve_one(param, job, batch, output)).collect()
}

fn resolve_one(
    param: &Param,
    job: &JobDef,
    batch: &BatchValues,
    output: &dyn Fn(&JobCode, &str) -> Option<String>,
) -> Result<BoundParam, ParamError> {
    let mut bound =
        BoundParam { name: param.name.clone(), mode: param.mode, ty: param.ty, value: None };
    let Some(text) = &param.value else { return Ok(bound) };
    let mut value = String::new();
    for piece in pieces(&param.name, text)? {
        match piece {
            Piece::Text(text) => value.push_str(&text),
            Piece::Name(name, reference) => {
                value.push_str(&look_up(&param.name, name, &reference, job, batch, output)?);
            }
        }
    }
    check_type(&param.name, param.ty, &value)?;
    bound.value = Some(value);
    Ok(bound)
}

fn look_up(
    param: &str,
    name: String,
    reference: &Reference,
    job: &JobDef,
    batch: &BatchValues,
    output: &dyn Fn(&JobCode, &str) -> Option<String>,
) -> Result<String, ParamError> {
    let (value, cure) = match reference {
        Reference::BatchNo => (Some(batch.batch_no.to_string()), String::new()),
        Reference::Group => (Some(batch.group.to_string()), String::new()),
        Reference::JobCode => (Some(job.code.to_string()), String::new()),
        Reference::BusinessDate => (
            batch.business_date.map(|d| d.to_string()),
            "give the batch a business date (--business-date YYYY-MM-DD)".to_owned(),
        ),
        Reference::Item => {
            (job.item().map(str::to_owned), "only a job with for_each has one".to_owned())
        }
        Reference::Param(key) => (
            batch.params.get(key).cloned(),
            format!("give it to the group or to the batch (--param {key}=VALUE)"),
        ),
        Reference::Output(code, key) => {
            (output(code, key), format!("job {code} ended without an output named {key}"))
        }
    };
    value.ok_or(ParamError::NoValue { param: param.to_owned(), name, cure })
}

fn check_type(param: &str, ty: ParamType, text: &str) -> Result<(), ParamError> {
    let (fits, expected) = match ty {
        ParamType::Text => (true, "text"),
        ParamType::Int => (text.parse::<i64>().is_ok(), "a whole number (int)"),
        ParamType::Decimal => (is_decimal(text), "a decimal number such as 1234.50"),
        ParamType::Date => (text.parse::<NaiveDate>().is_ok(), "a date (YYYY-MM-DD)"),
        ParamType::Datetime => (
            NaiveDateTime::parse_from_str(text, "%Y-%m-%d %H:%M:%S%.f").is_ok(),
            "a date and time (YYYY-MM-DD HH:MM:SS)",
        ),
        ParamType::Bool => (matches!(text, "true" | "false"), "true or false"),
    };
    if fits {
        return Ok(());
    }
    Err(ParamError::WrongType { param: param.to_owned(), text: text.to_owned(), expected })
}

fn is_decimal(text: &str) -> bool {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, "0"));
    let numeric = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    numeric(whole) && numeric(fraction)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::id::JobType;

    fn resolved(ty: ParamType, text: &str) -> Result<Option<String>, String> {
        let code = |c| JobCode::parse(c).expect("code");
        let group = GroupCode::parse("month_end").expect("group");
        let mut job =
            JobDef::bare(code("GL"), group.clone(), JobType::parse("PROC").expect("type"));
        job.params =
            vec![Param { name: "p".into(), ty, value: Some(text.to_owned()), ..Param::default() }];
        let batch = BatchValues {
            batch_no: BatchNo::parse("202407").expect("no"),
            group,
            business_date: "2024-07-31".parse().ok(),
            params: BTreeMap::from([
                ("rate".to_owned(), "7.10".to_owned()),
                ("trick".to_owned(), "${batch_no}".to_owned()),
            ]),
        };
        let output = |code: &JobCode, name: &str| {
            (code.as_str() == "FX.LOAD" && name == "rows").then(|| "12".to_owned())
        };
        resolve(&job, &batch, &output).map(|p| p[0].value.clone()).map_err(|e| e.to_string())
    }

    #[test]
    fn the_closed_set_of_names() {
        for (ty, text, value) in [
            (ParamType::Text, "plain $ {} }", "plain $ {} }"),
            (ParamType::Text, "${batch_no}/${group}/${job_code}", "202407/month_end/GL"),
            (ParamType::Date, "${business_date}", "2024-07-31"),
            (ParamType::Decimal, "${params.rate}", "7.10"),
            (ParamType::Int, "${jobs.FX.LOAD.rows}", "12"),
            // What comes out of a name is not looked at again.
            (ParamType::Text, "${params.trick}", "${batch_no}"),
        ] {
            assert_eq!(resolved(ty, text), Ok(Some(value.to_owned())), "{text}");
        }
    }

    #[test]
    fn faults_say_what_to_do() {
        for (ty, text, said) in [
            (ParamType::Text, "${batch_no", "without '}'"),
            (ParamType::Text, "${env.HOME}", "is not known; use ${batch_no}"),
            (ParamType::Text, "${params.fx}", "--param fx=VALUE"),
            (ParamType::Text, "${jobs.FX.LOAD.cols}", "ended without an output named cols"),
            (ParamType::Int, "12.5", "is not a whole number"),
            (ParamType::Decimal, "1e5", "is not a decimal number"),
            (ParamType::Decimal, ".", "is not a decimal number"),
            (ParamType::Date, "31.07.2024", "YYYY-MM-DD"),
            (ParamType::Bool, "yes", "true or false"),
        ] {
            let error = resolved(ty, text).expect_err(text);
            assert!(error.contains(said), "{text}: {error}");
        }
    }
}
