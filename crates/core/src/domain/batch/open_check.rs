//! Checks before a batch is opened: a number of the wrong period, and parameters without a value.
//! Found later, they would stop a batch of which some procedures have run already.

use crate::domain::batch::param_preview::ParamPreview;
use crate::domain::batch::{BatchError, BatchOrder, BatchPlan, groups_of, plan, plan_moved};
use crate::domain::batch_no::NumberGrammar;
use crate::domain::id::BatchNo;
use crate::domain::job::{Definition, Group, JobDef};
use crate::domain::time::Millis;

/// Maximum number of faults of one batch that are listed; the others are counted.
const FAULTS_SHOWN: usize = 20;

/// Plans the batches that a request opens, or returns why it is refused. Code that only inspects a
/// definition uses `plan`.
pub fn plan_opening(
    defs: &Definition,
    order: &BatchOrder,
    now: Millis,
) -> Result<Vec<BatchPlan>, BatchError> {
    check_batch_no(defs, order)?;
    let plans = plan(defs, order, now)?;
    plans.iter().try_for_each(|plan| check_values(defs, plan))?;
    Ok(plans)
}

/// As [`plan_opening`], for a definition that the caller does not need afterwards.
pub fn plan_opening_moved(
    mut defs: Definition,
    order: &BatchOrder,
    now: Millis,
) -> Result<Vec<BatchPlan>, BatchError> {
    check_batch_no(&defs, order)?;
    let plans = plan_moved(&mut defs, order, now)?;
    plans.iter().try_for_each(|plan| check_values(&defs, plan))?;
    Ok(plans)
}

/// Refuses a number that does not match the type of a group of the request, unless the request
/// permits free text.
pub fn check_batch_no(defs: &Definition, order: &BatchOrder) -> Result<(), BatchError> {
    if order.free_text {
        return Ok(());
    }
    groups_of(defs, order).into_iter().try_for_each(|group| check_number(group, &order.batch_no))
}

/// Refuses a number that does not match the type of its group.
pub fn check_number(group: &Group, batch_no: &BatchNo) -> Result<(), BatchError> {
    let batch_type = group.batch_type.as_deref();
    NumberGrammar::of_type(batch_type).check(batch_no).map_err(|mismatch| BatchError::WrongNumber {
        group: group.code.clone(),
        batch_type: batch_type.unwrap_or_default().to_owned(),
        mismatch,
    })
}

fn check_values(defs: &Definition, plan: &BatchPlan) -> Result<(), BatchError> {
    let preview = ParamPreview::new(&plan.snapshot, &plan.values);
    let mut faults = Vec::new();
    let mut more = 0;
    for job in &plan.snapshot.jobs {
        let of_job = preview.faults(job).into_iter().chain(sub_batch_faults(defs, plan, job));
        for fault in of_job {
            if faults.len() < FAULTS_SHOWN {
                faults.push(format!("job {}: {fault}", job.code));
            } else {
                more += 1;
            }
        }
    }
    if more > 0 {
        faults.push(format!("and {more} more (procession plan shows all)"));
    }
    let (batch_no, group) = (plan.values.batch_no.clone(), plan.values.group.clone());
    if faults.is_empty() { Ok(()) } else { Err(BatchError::Values { batch_no, group, faults }) }
}

/// Why a BATCH job could not open its batch.
pub fn sub_batch_faults(defs: &Definition, plan: &BatchPlan, job: &JobDef) -> Option<String> {
    let sub = job.sub_batch.as_ref()?;
    let own = &plan.values;
    let batch_no = match sub.batch.one_from(&own.batch_no, own.business_date) {
        Ok(batch_no) => batch_no,
        Err(error) => return Some(format!("sub_batch: {error}")),
    };
    // A free-text batch also opens its sub-batches as free text.
    if plan.is_free_text() {
        return None;
    }
    let group = defs.groups.iter().find(|group| group.code == sub.group)?;
    check_number(group, &batch_no).err().map(|error| format!("sub_batch: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::batch::tests::defs;
    use crate::domain::job::Param;
    use crate::domain::job::body::SubBatch;

    fn opened(defs: &Definition, json: &str) -> Result<Vec<BatchPlan>, String> {
        let order = BatchOrder::parse(json).expect("order");
        plan_opening(defs, &order, Millis(0)).map_err(|error| error.to_string())
    }

    #[test]
    fn a_wrong_period_is_refused_with_what_was_meant() {
        let defs = defs();
        let error = opened(&defs, r#"{"batchNo":"2024-07","type":"monthly"}"#).expect_err("form");
        assert_eq!(
            error,
            "group month_end is monthly, and 2024-07 is not the number of a month; did you mean \
             202407? A batch that stands for no period is opened with --free-text (free_text in the \
             API and in schedules, freeText in JSON orders), which is put on record"
        );
        let free = r#"{"batchNo":"2024-07","type":"monthly","freeText":true}"#;
        let plans = opened(&defs, free).expect("on record");
        assert!(plans[0].is_free_text() && plans[0].values.business_date.is_none());
        // Of several groups the first mismatch is named.
        let error = opened(&defs, r#"{"batchNo":"202407"}"#).expect_err("a quarter");
        assert!(error.starts_with("group quarter_end is quarterly, and 202407"), "{error}");
    }

    #[test]
    fn a_repeated_run_has_the_dates_of_its_period() {
        let mut defs = defs();
        let last = Param {
            name: "d".to_owned(),
            value: Some("${last_day}".to_owned()),
            ..Param::default()
        };
        defs.jobs[1].params = vec![last];
        let plans = opened(&defs, r#"{"batchNo":"202402-rerun2","group":"month_end"}"#);
        let plans = plans.expect("a repeated run");
        assert_eq!(plans[0].values.business_date, "2024-02-29".parse().ok());
        assert!(!plans[0].is_free_text());
    }

    #[test]
    fn a_value_that_is_missing_is_found_before_the_first_job() {
        let mut defs = defs();
        let last = Param {
            name: "d".to_owned(),
            value: Some("${last_day}".to_owned()),
            ..Param::default()
        };
        defs.jobs[1].params = vec![last];
        let free = r#"{"batchNo":"close","group":"month_end","freeText":true}"#;
        let error = opened(&defs, free).expect_err("no last day");
        assert!(
            error.starts_with("batch close of group month_end cannot run, so nothing was started:"),
            "{error}"
        );
        assert!(error.contains("job B: parameter d: ${last_day} has no value"), "{error}");
    }

    #[test]
    fn a_sub_batch_of_a_wrong_period_is_refused_with_its_parent() {
        let mut defs = defs();
        defs.jobs[0].sub_batch = Some(Box::new(SubBatch {
            group: defs.groups[1].code.clone(),
            batch: "same".parse().expect("expression"),
        }));
        let error =
            opened(&defs, r#"{"batchNo":"202407","group":"month_end"}"#).expect_err("a month");
        assert!(
            error.contains("job A: sub_batch: group quarter_end is quarterly, and 202407"),
            "{error}"
        );
        let free = r#"{"batchNo":"x","group":"month_end","freeText":true}"#;
        assert!(opened(&defs, free).is_ok(), "free text goes down to sub-batches");
    }
}
