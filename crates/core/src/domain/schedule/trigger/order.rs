//! The batch request of a firing: the schedule's template, evaluated for one planned time.

use crate::domain::batch_no::{BatchExpr, BatchExprError};
use crate::domain::id::{BadName, BatchNo};
use crate::domain::schedule::order::BatchOrder;
use crate::domain::time::Millis;
use chrono::NaiveDate;
use chrono::format::{Item, StrftimeItems};
use chrono_tz::Tz;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt::{self, Write as _};

/// A batch request as a schedule defines it.
pub type ScheduledOrder = BatchOrder<NumberRule>;

/// How a schedule numbers its batches.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum NumberRule {
    /// From the day of the planned time, or from the batch that ended: `month(-1)`, `same`.
    Expr(BatchExpr),
    /// From the planned time itself in the schedule's zone, for schedules that fire more often than
    /// daily: `time(%Y%m%d-%H%M)`.
    Time(String),
}

/// Why a request cannot be evaluated; `Display` is the sentence for the user.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OrderError {
    /// Not an expression.
    #[error(
        "{0}, or time(FORMAT), as in time(%Y%m%d-%H%M), for a schedule that fires oftener than daily"
    )]
    Expr(#[from] BatchExprError),
    /// Not a format.
    #[error("time({0}): the format is not understood; write it as in time(%Y%m%d-%H%M%S)")]
    Format(String),
    /// The result is not a batch number.
    #[error("time({0}): {1}")]
    Number(String, BadName),
    /// An unknown placeholder.
    #[error("parameter {param}: ${{{name}}} is not known here; known are {known}", known = KNOWN.join(", "))]
    Unknown {
        /// The parameter.
        param: String,
        /// The placeholder's name.
        name: String,
    },
    /// A placeholder without an end.
    #[error("parameter {0}: '${{' without '}}'; write $$ for a dollar sign")]
    Open(String),
    /// The firing's parameters are not a JSON object of the expected shape.
    #[error("the parameters of this firing cannot be read: {0}")]
    Given(String),
}

/// Placeholders allowed in the parameters of a schedule.
pub const KNOWN: [&str; 5] =
    ["planned_at", "planned_local", "nominal_date", "schedule", "parent_batch_no"];

/// Values given for one firing: they take precedence over the schedule's.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct FiringOverrides {
    /// The batch number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub batch_no: Option<BatchNo>,
    /// The accounting date.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub business_date: Option<NaiveDate>,
    /// Parameters.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub params: BTreeMap<String, String>,
    /// Opens the batch although its number does not fit the group's type.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub free_text: bool,
}

impl FiringOverrides {
    /// Parses the parameters in a firing's row.
    pub fn parse(json: Option<&str>) -> Result<Self, OrderError> {
        let Some(json) = json else { return Ok(Self::default()) };
        serde_json::from_str(json).map_err(|e| OrderError::Given(e.to_string()))
    }
}

/// One planned time, as input of the evaluation.
#[derive(Clone, Copy, Debug)]
pub struct PlannedInstant<'a> {
    /// Code of the schedule.
    pub schedule: &'a str,
    /// The planned time.
    pub planned: Millis,
    /// The day of the schedule before it was moved.
    pub nominal: NaiveDate,
    /// Zone of the schedule.
    pub zone: Tz,
    /// The batch whose end made the firing, and its business date.
    pub parent: Option<(&'a BatchNo, Option<NaiveDate>)>,
}

impl NumberRule {
    /// The batch number for one planned time.
    pub fn number(&self, at: PlannedInstant<'_>) -> Result<BatchNo, OrderError> {
        match (self, at.parent) {
            (Self::Expr(expr), Some((base, date))) => Ok(expr.one_from(base, date)?),
            (Self::Expr(expr), None) => Ok(expr.batch_no_on(at.nominal)?),
            (Self::Time(format), _) => {
                let local = at.planned.to_utc().with_timezone(&at.zone);
                let mut text = String::new();
                // `%Z` and similar specifiers cannot fail on a zoned time; others were refused when
                // the format was parsed.
                write!(text, "{}", local.format(format))
                    .map_err(|_| OrderError::Format(format.clone()))?;
                BatchNo::parse(&text).map_err(|e| OrderError::Number(format.clone(), e))
            }
        }
    }

    /// Parses a rule.
    pub fn parse(text: &str) -> Result<Self, OrderError> {
        let inner = text.trim().strip_prefix("time(").and_then(|rest| rest.strip_suffix(')'));
        let Some(format) = inner else { return Ok(Self::Expr(text.parse()?)) };
        let is_bad = |item: Item<'_>| matches!(item, Item::Error);
        if format.is_empty() || StrftimeItems::new(format).any(is_bad) {
            return Err(OrderError::Format(format.to_owned()));
        }
        Ok(Self::Time(format.to_owned()))
    }
}

impl TryFrom<String> for NumberRule {
    type Error = OrderError;
    fn try_from(text: String) -> Result<Self, OrderError> {
        Self::parse(&text)
    }
}

impl From<NumberRule> for String {
    fn from(rule: NumberRule) -> Self {
        rule.to_string()
    }
}

impl fmt::Display for NumberRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Expr(expr) => expr.fmt(f),
            Self::Time(format) => write!(f, "time({format})"),
        }
    }
}

impl ScheduledOrder {
    /// The request for one planned time; values of the firing itself take precedence. These are
    /// used verbatim: they come from outside.
    pub fn resolve_order(
        &self,
        at: PlannedInstant<'_>,
        given: FiringOverrides,
    ) -> Result<BatchOrder, OrderError> {
        let batch_no = match given.batch_no {
            Some(no) => no,
            None => self.batch_no.number(at)?,
        };
        let mut params = BTreeMap::new();
        for (name, text) in &self.params {
            params.insert(name.clone(), filled(name, text, at)?);
        }
        params.extend(given.params);
        Ok(BatchOrder {
            batch_no,
            batch_type: self.batch_type.clone(),
            group: self.group.clone(),
            business_date: given.business_date.or(self.business_date),
            params,
            free_text: self.free_text || given.free_text,
        })
    }
}

/// `text` with `${…}` replaced; `$$` is a dollar sign.
fn filled(param: &str, text: &str, at: PlannedInstant<'_>) -> Result<String, OrderError> {
    let (mut out, mut rest) = (String::new(), text);
    while let Some((before, after)) = rest.split_once('$') {
        out.push_str(before);
        if let Some(after) = after.strip_prefix('$') {
            out.push('$');
            rest = after;
        } else if let Some(inner) = after.strip_prefix('{') {
            let end = inner.split_once('}').ok_or_else(|| OrderError::Open(param.to_owned()))?;
            out.push_str(&value(end.0, at).ok_or_else(|| OrderError::Unknown {
                param: param.to_owned(),
                name: end.0.to_owned(),
            })?);
            rest = end.1;
        } else {
            out.push('$');
            rest = after;
        }
    }
    out.push_str(rest);
    Ok(out)
}

fn value(name: &str, at: PlannedInstant<'_>) -> Option<String> {
    Some(match name {
        "planned_at" => at.planned.to_string(),
        "planned_local" => {
            let local = at.planned.to_utc().with_timezone(&at.zone);
            local.format("%Y-%m-%dT%H:%M:%S%:z").to_string()
        }
        "nominal_date" => at.nominal.to_string(),
        "schedule" => at.schedule.to_owned(),
        "parent_batch_no" => at.parent.map(|(no, _)| no.to_string()).unwrap_or_default(),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(planned: &str, nominal: &str) -> PlannedInstant<'static> {
        PlannedInstant {
            schedule: "S",
            planned: planned.parse::<chrono::DateTime<chrono::Utc>>().expect("time").into(),
            nominal: nominal.parse().expect("day"),
            zone: chrono_tz::Asia::Shanghai,
            parent: None,
        }
    }

    fn order(json: &str) -> Result<ScheduledOrder, String> {
        serde_json::from_str(json).map_err(|e| e.to_string())
    }

    #[test]
    fn a_number_comes_from_the_day_before_the_shift_from_the_parent_or_from_the_time() {
        // The first of the month was shifted to the last day of the month before.
        let shifted = at("2024-07-31T18:30:05Z", "2024-08-01");
        let base = BatchNo::parse("2024Q2").expect("no");
        let child = PlannedInstant { parent: Some((&base, None)), ..shifted };
        for (rule, at, wanted) in [
            ("month(-1)", shifted, "202407"),
            ("quarter(0)", shifted, "2024Q3"),
            ("adhoc", shifted, "adhoc"),
            ("time(%Y%m%d-%H%M%S)", shifted, "20240801-023005"),
            ("same", child, "2024Q2"),
            ("prev", child, "2024Q1"),
        ] {
            let rule = NumberRule::parse(rule).expect(rule);
            assert_eq!(rule.number(at).expect("number").as_str(), wanted, "{rule}");
            assert_eq!(NumberRule::parse(&rule.to_string()), Ok(rule));
        }
        for (rule, said) in [
            ("last month", "or time(FORMAT)"),
            ("time(%Q)", "the format is not understood"),
            ("time()", "the format is not understood"),
        ] {
            let error = NumberRule::parse(rule).expect_err(rule).to_string();
            assert!(error.contains(said), "{rule}: {error}");
        }
        let error = NumberRule::parse("time(%H:%M)").expect("a format").number(shifted);
        assert!(error.expect_err("a colon").to_string().contains("batch number"));
        let error = NumberRule::parse("prev").expect("an expression").number(shifted);
        assert!(error.expect_err("no batch").to_string().contains("counted from another batch"));
    }

    #[test]
    fn what_the_firing_gives_wins_and_is_taken_as_it_is() {
        let json = r#"{"batchNo":"month(-1)","type":"monthly","params":{"at":"${planned_at}","d":"$$5 ${nominal_date}"}}"#;
        let order = order(json).expect("order");
        let now = at("2024-07-31T18:30:05Z", "2024-08-01");
        let plain = order.resolve_order(now, FiringOverrides::default()).expect("worked out");
        assert_eq!(plain.batch_no.as_str(), "202407");
        assert_eq!(plain.params["at"], "2024-07-31T18:30:05.000Z");
        assert_eq!(plain.params["d"], "$5 2024-08-01");
        let json = r#"{"batchNo":"202312","params":{"at":"${x}"}}"#;
        let given = FiringOverrides::parse(Some(json)).expect("given");
        let other = order.resolve_order(now, given).expect("worked out");
        assert_eq!((other.batch_no.as_str(), other.params["at"].as_str()), ("202312", "${x}"));
        assert!(FiringOverrides::parse(Some(r#"{"batch":"1"}"#)).is_err());
    }

    #[test]
    fn placeholders_that_nobody_knows_are_named() {
        for (text, said) in [
            ("${plannd}", "${plannd} is not known here; known are planned_at"),
            ("${x", "without '}'"),
        ] {
            let error = filled("p", text, at("2024-07-31T18:30:05Z", "2024-08-01"));
            let error = error.expect_err(text).to_string();
            assert!(error.contains(said), "{error}");
        }
        let same = filled("p", "a$b", at("2024-07-31T18:30:05Z", "2024-08-01"));
        assert_eq!(same.as_deref(), Ok("a$b"));
    }
}
