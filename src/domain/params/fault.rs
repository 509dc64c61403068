//! Why a parameter has no usable value, and whether a text is of a type.

use super::PRECEDENCE;
use crate::domain::job::ParamType;
use crate::domain::reference;
use crate::domain::secret::Value;
use chrono::{NaiveDate, NaiveDateTime};

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
    #[error("parameter {param}: ${{{name}}} is not known; use {}", reference::FORMS)]
    UnknownName {
        /// The parameter.
        param: String,
        /// The name in its text.
        name: String,
    },
    /// A known function with something wrong in it.
    #[error("parameter {param}: ${{{name}}}: {said}")]
    WrongFunction {
        /// The parameter.
        param: String,
        /// The function in its text.
        name: String,
        /// What is wrong, and what to do.
        said: String,
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
    /// A name that a declared value may not use.
    #[error(
        "parameter {param}: ${{{name}}} cannot stand in a parameter of a group or of all groups, which \
         are worked out before any job; put it into the job's own value"
    )]
    NotHere {
        /// The parameter.
        param: String,
        /// The name in its text.
        name: String,
    },
    /// Several parents have an output of that name.
    #[error(
        "parameter {param}: {} have an output of that name; say which: value: ${{jobs.{}.{param}}}",
        .parents.join(" and "), .parents[0]
    )]
    SeveralParents {
        /// The parameter.
        param: String,
        /// The parents, at least two.
        parents: Vec<String>,
    },
    /// Required, and no layer has a value.
    #[error(
        "parameter {param} is required and no layer has a value for it ({PRECEDENCE}); give it to the \
         batch: --param {param}=VALUE"
    )]
    Missing {
        /// The parameter.
        param: String,
    },
    /// The text is not of the declared type.
    #[error("parameter {param}: {text:?} is not {expected}")]
    WrongType {
        /// The parameter.
        param: String,
        /// Its text; masked when it is secret.
        text: String,
        /// The type in words, with its form.
        expected: &'static str,
    },
}

/// Checks a text from outside against a type.
pub fn check_text(param: &str, ty: ParamType, text: &str) -> Result<(), ParamError> {
    check_type(param, ty, &Value::from(text))
}

pub(super) fn check_type(param: &str, ty: ParamType, value: &Value) -> Result<(), ParamError> {
    let text = value.expose();
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
    let text = value.shown().to_owned();
    Err(ParamError::WrongType { param: param.to_owned(), text, expected })
}

fn is_decimal(text: &str) -> bool {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, "0"));
    let numeric = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    numeric(whole) && numeric(fraction)
}
