//! Errors of parameter values, and type checks of texts.

use super::{PRECEDENCE, ValueOrigin};
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
    #[error("job {}, parameter {param} (type {}): {origin} cannot be handed on: {reason}", .origin.taker, .ty.as_str())]
    Unusable {
        /// The parameter.
        param: String,
        /// Type of the parameter.
        ty: ParamType,
        /// The output, and the job that takes it.
        origin: ValueOrigin,
        /// The reason and a hint.
        reason: String,
    },
    /// An output that is stored aside, where values are only previewed.
    #[error("job {}, parameter {param}: {origin} is not loaded: it is {what}", .origin.taker)]
    NotLoaded {
        /// The parameter.
        param: String,
        /// The output, and the job that takes it.
        origin: ValueOrigin,
        /// Type and length of the output.
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
    let (fits, expected) = form_of(ty, value.expose());
    if fits {
        return Ok(());
    }
    let text = value.shown().to_owned();
    Err(ParamError::WrongType { param: param.to_owned(), text, expected })
}

/// Whether a text from outside is of a type, and the type in words.
fn form_of(ty: ParamType, text: &str) -> (bool, &'static str) {
    match ty {
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
    }
}

/// The expected form, if a value returned by another job does not have the declared type of its
/// parameter. Beyond the forms accepted from outside, it may have any value that some server
/// supports in this type; whether the receiving server does is decided there.
pub(super) fn returned_fault(ty: ParamType, text: &str) -> Option<&'static str> {
    let is_extreme = match ty {
        ParamType::Decimal => matches!(text, "NaN" | "Infinity" | "-Infinity"),
        ParamType::Date => is_date_of_a_server(text),
        ParamType::Datetime => is_datetime_of_a_server(text),
        ParamType::Text | ParamType::Int | ParamType::Bool | ParamType::Bytes => false,
    };
    let (fits, expected) = form_of(ty, text);
    (!is_extreme && !fits).then_some(expected)
}

/// `infinity`, years BC and beyond 9999 of PostgreSQL, and dates of MySQL and MariaDB with zeros in
/// them.
fn is_date_of_a_server(text: &str) -> bool {
    let Some(day) = DateParts::parse(text) else { return matches!(text, "infinity" | "-infinity") };
    day.month <= 12 && day.day <= 31
}

/// Such a date with a time.
fn is_datetime_of_a_server(text: &str) -> bool {
    let (moment, era) = text.strip_suffix(" BC").map_or((text, ""), |moment| (moment, " BC"));
    let Some((day, time)) = moment.split_once(' ') else {
        return matches!(text, "infinity" | "-infinity");
    };
    is_date_of_a_server(&format!("{day}{era}")) && is_datetime(&format!("2000-01-01 {time}"))
}

/// A date as a server writes it, which need not exist in the calendar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DateParts {
    /// Year; negative for BC, where -1 is the year before the year 1.
    pub year: i32,
    /// Month, 0 if missing.
    pub month: u32,
    /// Day of the month, 0 if missing.
    pub day: u32,
}

impl DateParts {
    /// Parses `2024-02-29`, `5874897-12-31`, `0044-03-15 BC`, `0000-00-00`.
    pub fn parse(text: &str) -> Option<Self> {
        let (day, sign) = text.strip_suffix(" BC").map_or((text, 1), |day| (day, -1));
        let (year, rest) = day.split_once('-')?;
        let is_year = (4..=7).contains(&year.len()) && year.bytes().all(|b| b.is_ascii_digit());
        if !is_year || !has_form(rest, "00-00") {
            return None;
        }
        let (month, day) = rest.split_once('-')?;
        let year = year.parse::<i32>().ok()? * sign;
        Some(Self { year, month: month.parse().ok()?, day: day.parse().ok()? })
    }

    /// Whether the date exists in the calendar, for any year.
    pub fn exists(self) -> bool {
        // There is no year 0; leap years repeat every 400 years.
        let counted = if self.year < 0 { self.year + 1 } else { self.year };
        let like = 2000 + counted.rem_euclid(400);
        self.year != 0 && NaiveDate::from_ymd_opt(like, self.month, self.day).is_some()
    }
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
    let text = text.strip_suffix(" BC").unwrap_or(text);
    let Some(at) = text.rfind(['+', '-', 'Z']) else { return false };
    let (moment, zone) = text.split_at(at);
    is_datetime_of_a_server(moment)
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
    fn what_a_job_returned_may_be_whatever_a_server_holds() {
        use ParamType as P;
        for (ty, text) in [
            (P::Decimal, "NaN"),
            (P::Decimal, "-Infinity"),
            (P::Date, "infinity"),
            (P::Date, "0044-03-15 BC"),
            (P::Date, "5874897-12-31"),
            (P::Date, "0000-00-00"),
            (P::Date, "2024-02-00"),
            (P::Datetime, "-infinity"),
            (P::Datetime, "294276-12-31 23:59:59.999999"),
            (P::Datetime, "0001-01-01 00:00:00 BC"),
            (P::Datetime, "0000-00-00 00:00:00"),
        ] {
            assert_eq!(returned_fault(ty, text), None, "{text}");
            assert!(check_text("p", ty, text).is_err(), "{text} is no value from outside");
        }
        for (ty, text) in [
            (P::Decimal, "inf"),
            (P::Date, "2024-13-01"),
            (P::Date, "2024-2-9"),
            (P::Date, "-001-01-01"),
            (P::Date, "2024-02-29 00:00:00"),
            (P::Datetime, "2024-02-29"),
            (P::Datetime, "2024-02-29 24:00:00"),
            (P::Int, "NaN"),
        ] {
            assert!(returned_fault(ty, text).is_some(), "{text}");
        }
        for zoned in ["294276-12-31 23:59:59+00", "0001-01-01 00:00:00+00 BC"] {
            let said = returned_fault(P::Datetime, zoned).expect(zoned);
            assert!(said.contains("declare it type: text"), "{said}");
        }
    }

    #[test]
    fn days_that_exist_in_far_years() {
        for (text, exists) in [
            ("5874897-12-31", true),
            ("0001-02-29 BC", true),
            ("0002-02-29 BC", false),
            ("2023-02-29", false),
            ("0000-01-01", false),
            ("2024-02-00", false),
        ] {
            assert_eq!(DateParts::parse(text).map(DateParts::exists), Some(exists), "{text}");
        }
        assert_eq!(DateParts::parse("infinity"), None);
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
