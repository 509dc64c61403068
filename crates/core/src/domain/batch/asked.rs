//! A batch request whose number may be an expression, and its resolution to a number.

use super::{AskedOrder, BatchError, BatchOrder, groups_of, no_group, zone_of};
use crate::domain::batch_no::BatchExpr;
use crate::domain::id::BatchNo;
use crate::domain::job::{Definition, Group};
use crate::domain::time::{Millis, day_in};

impl AskedOrder {
    /// Parses the JSON parameters of `queueDispatcherHandler`; the batch number may be an
    /// expression.
    pub fn parse_asked(json: &str) -> Result<Self, BatchError> {
        serde_json::from_str(json).map_err(|e| BatchError::BadOrder(e.to_string()))
    }

    /// The request with a resolved batch number: by the business date if given, otherwise by the
    /// day of `now` in the time zone of the groups.
    pub fn resolve_order(self, defs: &Definition, now: Millis) -> Result<BatchOrder, BatchError> {
        let batch_no = match (&self.batch_no, self.business_date) {
            (BatchExpr::Literal(no), _) => no.clone(),
            (expr, Some(date)) => expr.batch_no_on(date)?,
            (expr, None) => self.number_now(expr, defs, now)?,
        };
        let Self { batch_type, group, business_date, params, free_text, .. } = self;
        Ok(BatchOrder { batch_no, batch_type, group, business_date, params, free_text })
    }

    fn number_now(
        &self,
        expr: &BatchExpr,
        defs: &Definition,
        now: Millis,
    ) -> Result<BatchNo, BatchError> {
        let mut found: Option<(&Group, BatchNo)> = None;
        for group in groups_of(defs, self) {
            let no = expr.batch_no_on(day_in(now, zone_of(group)?))?;
            match &found {
                Some((first, other)) if *other != no => {
                    return Err(BatchError::TwoDays {
                        expr: expr.clone(),
                        one: format!("{other} for group {}", first.code),
                        other: format!("{no} for group {}", group.code),
                    });
                }
                Some(_) => {}
                None => found = Some((group, no)),
            }
        }
        found.map(|(_, no)| no).ok_or_else(|| no_group(defs, self))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::batch::tests::defs;

    #[test]
    fn an_asked_number_is_worked_out_for_a_day() {
        let mut defs = defs();
        defs.groups[1].time_zone = None;
        let at = |defs: &Definition, json: &str, now: &str| -> Result<String, String> {
            let now = chrono::DateTime::parse_from_rfc3339(now).expect("time").to_utc();
            let asked = AskedOrder::parse_asked(json).map_err(|e| e.to_string())?;
            asked
                .resolve_order(defs, now.into())
                .map(|o| o.batch_no.to_string())
                .map_err(|e| e.to_string())
        };
        // Already 1 August in Shanghai, the zone of month_end; the other group uses UTC.
        let late = "2024-07-31T18:00:00Z";
        for (json, number) in [
            (r#"{"batchNo":"month(-1)","group":"month_end"}"#, "202407"),
            (r#"{"batchNo":"month(-1)","type":"quarterly"}"#, "202406"),
            (r#"{"batchNo":"month(-1)","businessDate":"2024-03-31"}"#, "202402"),
            (r#"{"batchNo":"quarter(-1)"}"#, "2024Q2"),
            (r#"{"batchNo":"202407"}"#, "202407"),
            (r#"{"batchNo":"adhoc","businessDate":"2024-03-31"}"#, "adhoc"),
        ] {
            assert_eq!(at(&defs, json, late), Ok(number.to_owned()), "{json}");
        }
        for (json, said) in [
            (
                r#"{"batchNo":"month(-1)"}"#,
                "month(-1) is 202407 for group month_end and 202406 for group quarter_end, because \
                 it is not the same day now in their time zones; add --business-date",
            ),
            (r#"{"batchNo":"month(-1)","type":"daily"}"#, "no group of type daily; groups that"),
            (r#"{"batchNo":"prev"}"#, "prev is counted from another batch"),
            (r#"{"batchNo":"last month"}"#, "is not a batch number and not an expression for one"),
        ] {
            let error = at(&defs, json, late).expect_err(json);
            assert!(error.contains(said), "{json}: {error}");
        }
        defs.groups[0].time_zone = Some("Mars/Olympus".to_owned());
        let error = at(&defs, r#"{"batchNo":"month(-1)"}"#, late).expect_err("zone");
        assert!(error.contains("time zone \"Mars/Olympus\" is not known"), "{error}");
    }
}
