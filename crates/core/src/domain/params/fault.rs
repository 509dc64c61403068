//! Errors of parameter values, and type checks of texts.

use super::PRECEDENCE;
use crate::domain::job::ParamType;
use crate::domain::job::secret::MaskedValue;
use crate::domain::params::param_expressions;
use crate::domain::value::parse_bytes;
use chrono::{NaiveDate, NaiveTime};

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
    /// A name that is not one of the supported references.
    #[error("parameter {param}: ${{{name}}} is not known; use {}", param_expressions::FORMS)]
    UnknownName {
        /// The parameter.
        param: String,
        /// The name in its text.
        name: String,
    },
    /// A known function with wrong arguments.
    #[error("parameter {param}: ${{{name}}}: {said}")]
    WrongFunction {
        /// The parameter.
        param: String,
        /// The function in its text.
        name: String,
        /// The problem and a hint.
        said: String,
    },
    /// A known name without a value in this batch.
    #[error("parameter {param}: ${{{name}}} has no value in this batch; {cure}")]
    NoValue {
        /// The parameter.
        param: String,
        /// The name in its text.
        name: String,
        /// A hint.
        cure: String,
    },
    /// An output that was returned and is not usable.
    #[error("parameter {param}: output {output} of job {job} cannot be handed on: {reason}")]
    Unusable {
        /// The parameter.
        param: String,
        /// The job that returned it.
        job: String,
        /// Name of the output.
        output: String,
        /// The reason and a hint.
        reason: String,
    },
    /// An output that is stored aside, where values are only previewed.
    #[error("parameter {param}: output {output} of job {job} is not loaded: it is {what}")]
    NotLoaded {
        /// The parameter.
        param: String,
        /// The job that returned it.
        job: String,
        /// Name of the output.
        output: String,
        /// Its type and length.
        what: String,
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
    /// Several parents have an output of this name.
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
    check_type(param, ty, &MaskedValue::from(text))
}

pub(super) fn check_type(
    param: &str,
    ty: ParamType,
    value: &MaskedValue,
) -> Result<(), ParamError> {
    let text = value.expose();
    let (fits, expected) = match ty {
        ParamType::Text => (true, "text"),
        ParamType::Int => (is_int(text), "a whole number (int)"),
        ParamType::Decimal => (is_decimal(text), "a decimal number such as 1234.50"),
        ParamType::Date => (is_date(text), "a date (YYYY-MM-DD)"),
        ParamType::Datetime if has_zone(text) => {
            (false, "a date and time without a zone; declare it type: text to hand the zone on")
        }
        ParamType::Datetime => (is_datetime(text), "a date and time (YYYY-MM-DD HH:MM:SS)"),
        ParamType::Bool => (matches!(text, "true" | "false"), "true or false"),
        ParamType::Bytes => (
            parse_bytes(text).is_some(),
            "bytes (0x and two hexadecimal digits for each, or base64: and base64)",
        ),
    };
    if fits {
        return Ok(());
    }
    let text = value.shown().to_owned();
    Err(ParamError::WrongType { param: param.to_owned(), text, expected })
}

/// An existing date in exactly this form: servers read `2024-2-9` and `-001-01-01` each in their
/// own way.
fn is_date(text: &str) -> bool {
    has_form(text, "0000-00-00") && !text.starts_with("0000") && text.parse::<NaiveDate>().is_ok()
}

/// 64 bits, signed or unsigned: BIGINT UNSIGNED of MySQL and MariaDB reaches twice as far.
fn is_int(text: &str) -> bool {
    text.parse::<i64>().is_ok() || text.parse::<u64>().is_ok()
}

/// A date and time followed by an offset, the form in which a `timestamptz` is returned. A server
/// that read it as a value without a zone would silently drop the offset.
fn has_zone(text: &str) -> bool {
    let Some(at) = text.rfind(['+', '-', 'Z']) else { return false };
    let (moment, zone) = text.split_at(at);
    is_datetime(moment)
        && ["Z", "+00", "+0000", "+00:00", "+00:00:00"].iter().any(|form| {
            let form = form.replacen('+', &zone[..1], 1);
            has_form(zone, &form)
        })
}

/// A day, a blank, a time, and up to six digits of a second.
fn is_datetime(text: &str) -> bool {
    let Some((day, time)) = text.split_once(' ') else { return false };
    let (time, fraction) = time.split_once('.').unwrap_or((time, "0"));
    let is_fraction = (1..=6).contains(&fraction.len());
    is_date(day)
        && has_form(time, "00:00:00")
        && NaiveTime::parse_from_str(time, "%H:%M:%S").is_ok_and(|_| !time.ends_with("60"))
        && is_fraction
        && fraction.bytes().all(|b| b.is_ascii_digit())
}

/// Whether the text has a digit for each `0` of the form, and otherwise the form's characters.
fn has_form(text: &str, form: &str) -> bool {
    let fits = |(have, want): (u8, u8)| match want {
        b'0' => have.is_ascii_digit(),
        other => have == other,
    };
    text.len() == form.len() && text.bytes().zip(form.bytes()).all(fits)
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

    #[test]
    fn whole_numbers_have_64_bits_with_or_without_a_sign() {
        for good in ["-9223372036854775808", "0", "18446744073709551615"] {
            assert_eq!(check_text("p", ParamType::Int, good), Ok(()), "{good}");
        }
        for bad in ["18446744073709551616", "-9223372036854775809", "1.0", ""] {
            assert!(check_text("p", ParamType::Int, bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_moment_with_a_zone_is_told_how_to_go_on() {
        for zoned in
            ["2024-02-29 02:11:12.5+00", "2024-02-29 02:11:12-05:30", "2024-02-29 02:11:12Z"]
        {
            let error = check_text("p", ParamType::Datetime, zoned).expect_err(zoned).to_string();
            assert!(error.contains("declare it type: text"), "{error}");
        }
        for other in ["2024-02-29 02:11", "x+00", "2024-02-29"] {
            let error = check_text("p", ParamType::Datetime, other).expect_err(other).to_string();
            assert!(error.contains("YYYY-MM-DD HH:MM:SS"), "{error}");
        }
    }

    #[test]
    fn only_days_that_exist_in_one_form() {
        for good in ["2024-02-29", "0001-01-01", "9999-12-31"] {
            assert_eq!(check_text("p", ParamType::Date, good), Ok(()), "{good}");
        }
        for bad in ["2024-2-9", "-001-01-01", "0000-01-01", "2023-02-29", "20240229", "2024-02-29 "]
        {
            assert!(check_text("p", ParamType::Date, bad).is_err(), "{bad}");
        }
        for good in ["2024-02-29 00:00:00", "2024-02-29 23:59:59.999999"] {
            assert_eq!(check_text("p", ParamType::Datetime, good), Ok(()), "{good}");
        }
        for bad in [
            "2024-02-29",
            "2024-02-29 24:00:00",
            "2024-02-29 23:59:60",
            "2024-02-29 1:00:00",
            "2024-2-29 01:00:00",
            "2024-02-29 01:00:00.",
            "2024-02-29 01:00:00.1234567",
            "2024-02-29T01:00:00",
        ] {
            assert!(check_text("p", ParamType::Datetime, bad).is_err(), "{bad}");
        }
    }
}
