//! A batch: one run of a group for one batch number.

mod asked;
mod error;
pub mod history;
pub mod open_check;
pub mod param_preview;
pub mod run_record;
mod snapshot;
pub mod span;
mod status;

pub use crate::domain::schedule::order::AskedOrder;
pub use crate::domain::schedule::order::BatchOrder;
pub use error::BatchError;
pub use snapshot::{Snapshot, as_opened};
pub use status::BatchStatus;

use crate::domain::batch_no::{NumberGrammar, Period};
use crate::domain::calendar::{Calendars, WorkingDays};
use crate::domain::id::{BatchId, BatchNo, JobCode, NodeId};
use crate::domain::job::check::DataCheck;
use crate::domain::job::external::ExternalDependency;
use crate::domain::job::{Definition, Group, JobDef, JobDependency};
use crate::domain::params::fan_out;
use crate::domain::params::order_params::{self, DeclaredParams, Findings};
use crate::domain::params::{BatchValues, Layers};
use crate::domain::permission::access_rules::AccessRules;
use crate::domain::time::{Millis, at_wall_clock, day_in};
use chrono::NaiveDate;
use chrono_tz::Tz;
use std::collections::HashSet;

/// A `job_batch` row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batch {
    /// Key.
    pub batch_id: BatchId,
    /// Number, group, business date and parameters.
    pub values: BatchValues,
    /// The requested batch type, or the group's.
    pub batch_type: Option<String>,
    /// State.
    pub status: BatchStatus,
    /// The node that dispatches it, if any.
    pub owner: Option<NodeId>,
    /// Who requested it.
    pub started_by: String,
    /// When it was opened.
    pub create_time: Millis,
    /// When it ended.
    pub end_time: Option<Millis>,
    /// Reason of a kill, in the operator's words.
    pub reason: Option<String>,
    /// When it is stopped if it is still running.
    pub deadline: Option<Millis>,
    /// Number of changes by operators to the batch or its rows; in-memory state built from an older
    /// revision is stale.
    pub revision: i64,
    /// Whether no job of it may be started.
    pub is_paused: bool,
    /// When the removal of its rows began: some may be gone already.
    pub removing: Option<Millis>,
    /// Number of jobs without a queue row yet; 0 once the batch is completely opened.
    pub unwritten_jobs: u32,
}

#[cfg(test)]
impl Batch {
    /// A batch that runs, for tests.
    pub(in crate::domain) fn sample(no: &str, group: &crate::domain::id::GroupCode) -> Self {
        Self {
            batch_id: BatchId(1),
            values: BatchValues {
                batch_no: BatchNo::parse(no).expect("no"),
                group: group.clone(),
                business_date: None,
                params: Default::default(),
            },
            batch_type: None,
            status: BatchStatus::Running,
            owner: None,
            started_by: "t".to_owned(),
            create_time: Millis(0),
            end_time: None,
            reason: None,
            deadline: None,
            revision: 0,
            is_paused: false,
            removing: None,
            unwritten_jobs: 0,
        }
    }
}

impl Batch {
    /// The deadline when a user resumes the batch at `now`. A batch that had ended gets its full
    /// time again. One whose process died keeps its deadline, because it is the same run; if that
    /// has passed meanwhile it gets its full time, or it would be stopped before doing anything.
    pub fn deadline_resumed(&self, timeout_sec: Option<u32>, now: Millis) -> Option<Millis> {
        let kept = self.deadline.filter(|at| !self.status.is_final() && *at > now);
        let fresh = deadline(timeout_sec, now)?;
        Some(kept.unwrap_or(fresh))
    }
}

/// The deadline of a batch that is opened at `now`.
pub fn deadline(timeout_sec: Option<u32>, now: Millis) -> Option<Millis> {
    timeout_sec.map(|sec| now.plus_ms(i64::from(sec) * 1_000))
}

/// A batch to be inserted: what `plan` made of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BatchPlan {
    /// Number, group, business date and parameters.
    pub values: BatchValues,
    /// Type.
    pub batch_type: Option<String>,
    /// The definitions it runs.
    pub snapshot: Snapshot,
    /// Warnings about the request that are no reason to refuse it.
    pub warnings: Vec<String>,
    /// Earliest start of each job, parallel to `snapshot.jobs`.
    pub not_before: Vec<Option<Millis>>,
}

fn is_free_text(batch_type: Option<&str>, batch_no: &BatchNo) -> bool {
    NumberGrammar::of_type(batch_type).check(batch_no).is_err()
}

impl BatchPlan {
    /// Whether its number names no period, though its type asks for one.
    pub fn is_free_text(&self) -> bool {
        is_free_text(self.batch_type.as_deref(), &self.values.batch_no)
    }
}

impl Batch {
    /// Whether its number names no period, though its type asks for one.
    pub fn is_free_text(&self) -> bool {
        is_free_text(self.batch_type.as_deref(), &self.values.batch_no)
    }
}

impl BatchOrder {
    /// Parses the JSON parameters of `queueDispatcherHandler`; the batch number must be a literal.
    pub fn parse(json: &str) -> Result<Self, BatchError> {
        serde_json::from_str(json).map_err(|e| BatchError::BadOrder(e.to_string()))
    }
}

/// The last day of the period that a batch number means: day `20240731`, month `202407`, quarter
/// `2024Q3`, year `2024`; `None` for free text.
pub fn implied_business_date(batch_no: &BatchNo) -> Option<NaiveDate> {
    Period::from_batch_no(batch_no).map(Period::last_day)
}

/// The same within a group: there a repeated run has the date of its period (`202407-rerun2`).
fn business_date_of(group: &Group, batch_no: &BatchNo) -> Option<NaiveDate> {
    match NumberGrammar::of_type(group.batch_type.as_deref()) {
        NumberGrammar::Free => implied_business_date(batch_no),
        grammar @ NumberGrammar::Period(_) => grammar.period(batch_no).map(Period::last_day),
    }
}

/// Plans the batches of a request: one per group that it names. Pure; `now` only places
/// `schedule_time` on the batch's day, the day on which it is opened.
pub fn plan(
    defs: &Definition,
    order: &BatchOrder,
    now: Millis,
) -> Result<Vec<BatchPlan>, BatchError> {
    let groups = groups_of(defs, order);
    if groups.is_empty() {
        return Err(no_group(defs, order));
    }
    let plan = |group| plan_snapshot(defs, order, snapshot(defs, group)?, now);
    groups.into_iter().map(plan).collect()
}

/// As [`plan`], of a definition that nobody needs any more: where the order means one group, its jobs are not copied.
/// The definition keeps what is not of that group alone.
pub fn plan_moved(
    defs: &mut Definition,
    order: &BatchOrder,
    now: Millis,
) -> Result<Vec<BatchPlan>, BatchError> {
    let groups = groups_of(defs, order);
    let [group] = groups[..] else { return plan(defs, order, now) };
    let group = group.clone();
    let snapshot = moved_snapshot(defs, &group)?;
    Ok(vec![plan_snapshot(defs, order, snapshot, now)?])
}

pub(in crate::domain) fn groups_of<'a, N>(
    defs: &'a Definition,
    order: &BatchOrder<N>,
) -> Vec<&'a Group> {
    let wanted = |g: &&Group| {
        order.group.as_ref().is_none_or(|code| *code == g.code)
            && order.batch_type.as_ref().is_none_or(|t| g.batch_type.as_ref() == Some(t))
    };
    defs.groups.iter().filter(wanted).collect()
}

fn no_group<N>(defs: &Definition, order: &BatchOrder<N>) -> BatchError {
    let words = match (&order.group, &order.batch_type) {
        (Some(code), Some(ty)) => format!("{code} of type {ty}"),
        (Some(code), None) => code.to_string(),
        (None, Some(ty)) => format!("of type {ty}"),
        (None, None) => "at all".to_owned(),
    };
    let known: Vec<String> = defs
        .groups
        .iter()
        .map(|g| format!("{} ({})", g.code, g.batch_type.as_deref().unwrap_or("no type")))
        .collect();
    let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
    BatchError::NoGroup(words, known)
}

/// Refuses data sources and secrets that the jobs or parameters use and the group may not use.
fn refuse_forbidden_uses(
    defs: &Definition,
    group: &Group,
    jobs: &[JobDef],
    order: &BatchOrder,
) -> Result<(), BatchError> {
    let rules = AccessRules::collect(defs);
    let mut uses = rules.forbidden_uses_of_group(group);
    uses.extend(jobs.iter().flat_map(|job| rules.forbidden_uses_of_job(job)));
    uses.extend(rules.forbidden_params(&group.code, &order.params));
    if uses.is_empty() {
        return Ok(());
    }
    Err(BatchError::Forbidden { group: group.code.clone(), uses })
}

fn plan_snapshot(
    defs: &Definition,
    order: &BatchOrder,
    mut snapshot: Snapshot,
    now: Millis,
) -> Result<BatchPlan, BatchError> {
    let group = &snapshot.group.clone();
    let Snapshot { jobs, dependencies, shared, .. } = &snapshot;
    let (group_code, global) = (&group.code, &shared.params);
    let declared = DeclaredParams { group_code, group: &group.params, global, jobs, dependencies };
    let Findings { faults, warnings } = order_params::check(&order.params, declared);
    if !faults.is_empty() {
        return Err(BatchError::Params { group: group.code.clone(), faults });
    }
    refuse_forbidden_uses(defs, group, &snapshot.jobs, order)?;
    let values = BatchValues {
        batch_no: order.batch_no.clone(),
        group: group.code.clone(),
        business_date: order.business_date.or_else(|| business_date_of(group, &order.batch_no)),
        params: order.params.clone(),
    };
    let global = snapshot.shared.params.clone();
    let (group_params, global) = (&group.params[..], &global[..]);
    let kept = snapshot.kept_calendars(&defs.calendars, values.business_date, now)?;
    let days = WorkingDays::new(&kept, group.calendar.as_ref());
    let layers =
        Layers { start: None, batch: &values, parents: &[], group: group_params, global, days };
    fan_out::expand(&mut snapshot.parts(), layers)?;
    snapshot.calendars = kept;
    snapshot.build_dag()?;
    Ok(BatchPlan {
        values,
        warnings,
        batch_type: order.batch_type.clone().or_else(|| group.batch_type.clone()),
        not_before: start_times(&snapshot, now)?,
        snapshot,
    })
}

/// Earliest start of each job of a batch opened at `now`, parallel to its jobs.
pub fn start_times(snapshot: &Snapshot, now: Millis) -> Result<Vec<Option<Millis>>, BatchError> {
    let zone = zone_of(&snapshot.group)?;
    let day = day_in(now, zone);
    let of_job = |job: &JobDef| job.schedule_time.map(|time| at_wall_clock(day, time, zone));
    Ok(snapshot.jobs.iter().map(of_job).collect())
}

/// The time zone of a group's times of day.
pub fn zone_of(group: &Group) -> Result<Tz, BatchError> {
    let name = group.time_zone.as_deref().unwrap_or("UTC");
    name.parse().map_err(|_| BatchError::BadZone(group.code.clone(), name.to_owned()))
}

fn snapshot(defs: &Definition, group: &Group) -> Result<Snapshot, BatchError> {
    let active: HashSet<&JobCode> =
        defs.jobs.iter().filter(|j| is_active_in(group, j)).map(|j| &j.code).collect();
    let jobs = defs.jobs.iter().filter(|j| is_active_in(group, j)).cloned().collect();
    let waits = |d: &&JobDependency| d.group == group.code && active.contains(&d.job_code);
    let dependencies = defs.dependencies.iter().filter(waits).cloned().collect();
    assemble_snapshot(defs, group, &inactive_of(defs, group), jobs, dependencies)
}

/// The same, with the jobs and the dependencies of the definition taken out of it.
fn moved_snapshot(defs: &mut Definition, group: &Group) -> Result<Snapshot, BatchError> {
    let inactive = inactive_of(defs, group);
    let (mut jobs, mut dependencies) =
        (std::mem::take(&mut defs.jobs), std::mem::take(&mut defs.dependencies));
    jobs.retain(|j| is_active_in(group, j));
    let active: HashSet<&JobCode> = jobs.iter().map(|j| &j.code).collect();
    dependencies.retain(|d| d.group == group.code && active.contains(&d.job_code));
    assemble_snapshot(defs, group, &inactive, jobs, dependencies)
}

fn is_active_in(group: &Group, job: &JobDef) -> bool {
    job.group == group.code && job.is_active
}

fn inactive_of(defs: &Definition, group: &Group) -> HashSet<JobCode> {
    let in_group = defs.jobs.iter().filter(|j| j.group == group.code);
    in_group.filter(|j| !j.is_active).map(|j| j.code.clone()).collect()
}

fn assemble_snapshot(
    defs: &Definition,
    group: &Group,
    inactive: &HashSet<JobCode>,
    jobs: Vec<JobDef>,
    dependencies: Vec<JobDependency>,
) -> Result<Snapshot, BatchError> {
    if jobs.is_empty() {
        return Err(BatchError::Empty(group.code.clone()));
    }
    if let Some(on) = dependencies.iter().find(|d| inactive.contains(&d.depends_on)) {
        let (job, inactive) = (on.job_code.clone(), on.depends_on.clone());
        return Err(BatchError::Inactive { job, inactive });
    }
    let of_checks = jobs.iter().flat_map(|j| j.checks.iter().flat_map(DataCheck::sources));
    let used: HashSet<_> = jobs.iter().filter_map(|j| j.source.as_ref()).chain(of_checks).collect();
    let sources = defs.sources.iter().filter(|s| used.contains(&s.name)).cloned().collect();
    let active: HashSet<&JobCode> = jobs.iter().map(|j| &j.code).collect();
    let waits =
        |e: &&ExternalDependency| e.waiting_group == group.code && active.contains(&e.job_code);
    let externals = defs.externals.iter().filter(waits).cloned().collect();
    let shared = defs.shared.clone();
    let calendars = Calendars::default();
    Ok(Snapshot { group: group.clone(), dependencies, sources, externals, shared, jobs, calendars })
}

#[cfg(test)]
pub(in crate::domain) mod tests {
    use super::*;
    use crate::domain::id::GroupCode;
    use crate::domain::id::JobType;
    use crate::domain::job::trigger_rule::EdgeCondition;
    use crate::domain::job::{JobDependency, ParamDecl, ParamType};

    pub(in crate::domain) fn defs() -> Definition {
        let group = |code: &str, ty: &str| Group {
            batch_type: Some(ty.to_owned()),
            time_zone: Some("Asia/Shanghai".to_owned()),
            params: vec![ParamDecl::plain("rate", "7.0")],
            ..Group::with_defaults(GroupCode::parse(code).expect("group"))
        };
        let job = |code: &str, group: &str| {
            JobDef::with_defaults(
                JobCode::parse(code).expect("code"),
                GroupCode::parse(group).expect("group"),
                JobType::parse("NOOP").expect("type"),
            )
        };
        let mut late = job("B", "month_end");
        late.schedule_time = "22:30:00".parse().ok();
        Definition {
            sources: vec![],
            groups: vec![group("month_end", "monthly"), group("quarter_end", "quarterly")],
            jobs: vec![job("A", "month_end"), late, job("Q", "quarter_end")],
            dependencies: vec![JobDependency {
                group: GroupCode::parse("month_end").expect("group"),
                job_code: JobCode::parse("B").expect("code"),
                depends_on: JobCode::parse("A").expect("code"),
                dependency_order: 1,
                when: EdgeCondition::Success,
            }],
            ..Definition::default()
        }
    }

    fn order(json: &str) -> BatchOrder {
        BatchOrder::parse(json).expect("order")
    }

    #[test]
    fn type_and_group_pick_the_jobs() {
        let now = Millis::from(
            "2024-08-01T01:00:00Z".parse::<chrono::DateTime<chrono::Utc>>().expect("now"),
        );
        let planned = |json: &str| plan(&defs(), &order(json), now);
        let monthly = planned(r#"{"batchNo":"202407","type":"monthly","params":{"rate":"7.1"}}"#);
        let monthly = monthly.expect("plan");
        assert_eq!(monthly.len(), 1);
        assert_eq!(monthly[0].snapshot.jobs.len(), 2);
        assert_eq!(monthly[0].values.params["rate"], "7.1");
        assert_eq!(monthly[0].values.business_date, "2024-07-31".parse().ok());
        // 22:30 in Shanghai on the day the batch is opened there, 1 August.
        assert_eq!(monthly[0].not_before[1].expect("time").to_string(), "2024-08-01T14:30:00.000Z");
        assert_eq!(planned(r#"{"batchNo":"x"}"#).expect("all groups").len(), 2);
        let none = planned(r#"{"batchNo":"x","type":"daily"}"#).expect_err("no such type");
        assert_eq!(
            none.to_string(),
            "no group of type daily; groups that exist: month_end (monthly), quarter_end (quarterly)"
        );
    }

    #[test]
    fn parameters_that_do_not_fit_are_refused_together() {
        let mut defs = defs();
        let int = |name: &str| ParamDecl { ty: ParamType::Int, ..ParamDecl::plain(name, "1") };
        defs.groups[0].params = vec![int("a"), int("b")];
        let json = r#"{"batchNo":"1","group":"month_end","params":{"a":"x","b":"y","c":"z"}}"#;
        let error = plan(&defs, &order(json), Millis(0)).expect_err("types").to_string();
        assert_eq!(
            error,
            "the parameters of this batch of group month_end are not usable:\n  \
             parameter a: \"x\" is not a whole number (int)\n  \
             parameter b: \"y\" is not a whole number (int)"
        );
        let json = r#"{"batchNo":"1","group":"month_end","params":{"c":"z"}}"#;
        let plans = plan(&defs, &order(json), Millis(0)).expect("fits");
        assert!(plans[0].warnings[0].starts_with("parameter c is not declared by group month_end"));
        assert_eq!(plans[0].values.params.len(), 1, "a batch keeps its own parameters only");
    }

    #[test]
    fn an_inactive_parent_is_refused_by_name() {
        let mut defs = defs();
        defs.jobs[0].is_active = false;
        let error = plan(&defs, &order(r#"{"batchNo":"1","group":"month_end"}"#), Millis(0));
        assert!(
            error
                .expect_err("inactive")
                .to_string()
                .contains("B depends on A, which is not active")
        );
    }

    #[test]
    fn orders_are_checked() {
        for (json, said) in [
            ("{}", "missing field `batchNo`"),
            (r#"{"batchNo":"2024 07"}"#, "batch number '2024 07' is not usable"),
            (r#"{"batchNo":"1","batchType":"x"}"#, "unknown field `batchType`"),
            ("", "EOF"),
        ] {
            let error = BatchOrder::parse(json).expect_err(json).to_string();
            assert!(error.contains(said), "{error}");
        }
    }

    #[test]
    fn batch_numbers_imply_a_business_date() {
        for (no, date) in [
            ("202402", Some("2024-02-29")),
            ("202312", Some("2023-12-31")),
            ("2024Q1", Some("2024-03-31")),
            ("2024Q4", Some("2024-12-31")),
            ("2024", Some("2024-12-31")),
            ("20240731", Some("2024-07-31")),
            ("20240732", None),
            ("202413", None),
            ("2024Q5", None),
            ("202400", None),
            ("rerun-7", None),
            ("adhoc", None),
        ] {
            let expected = date.map(|d| d.parse::<NaiveDate>().expect("date"));
            assert_eq!(implied_business_date(&BatchNo::parse(no).expect("no")), expected, "{no}");
        }
    }

    #[test]
    fn the_result_keeps_the_worst() {
        use crate::domain::job::queue::QueueStatus as Q;
        for (jobs, result) in [
            (vec![Q::Success, Q::Success], BatchStatus::Success),
            (vec![Q::Success, Q::Forced], BatchStatus::Warning),
            (vec![Q::Failed, Q::Skipped], BatchStatus::Failed),
            (vec![Q::Unknown], BatchStatus::Failed),
            (vec![Q::Failed, Q::Killed], BatchStatus::Killed),
            (vec![Q::Killed, Q::Pending], BatchStatus::Running),
        ] {
            assert_eq!(BatchStatus::from_job_statuses(jobs.into_iter()), result);
        }
    }
}
