//! Builds a job and validates it: its body is complete and suits its type, its parameters can be used.

use crate::definition::body::{read_body, understands};
use crate::definition::checks;
use crate::definition::classes;
use crate::definition::fault::{FaultReport, Located, SourcePlace};
use crate::definition::files::DefinitionFiles;
use crate::definition::group_access;
use crate::definition::job_kinds;
use crate::definition::limits;
use crate::definition::near::{did_you_mean, nearest};
use crate::definition::params::{Asks, check_params};
use crate::definition::raw::{JobSettings, RawJob, Setting};
use crate::definition::sqlite_bodies;
use crate::domain::id::{GroupCode, JobCode, JobType};
use crate::domain::job::body::HttpHost;
use crate::domain::job::pool::SlotPool;
use crate::domain::job::{BodyPart, DEFAULT_TIMEOUT_SEC, JobDef, JobKind};
use crate::domain::permission::access_rules::AccessRules;
use crate::domain::source::DataSource;
use crate::domain::value::expr::{Expr, ExprError};

/// Context in which a job is built.
pub(crate) struct JobContext<'a> {
    pub defaults: &'a JobSettings,
    pub kinds: &'a [JobKind],
    pub sources: &'a [DataSource],
    pub groups: &'a [GroupCode],
    pub pools: &'a [SlotPool],
    pub files: &'a DefinitionFiles<'a>,
    pub hosts: &'a [Located<HttpHost>],
    pub access: &'a AccessRules,
}

/// A job with the data for checks of the whole graph.
pub(crate) struct CheckedJob {
    pub def: JobDef,
    /// References of its parameters to other jobs.
    pub asks: Asks,
    /// Place of the job's own condition.
    pub condition: Option<SourcePlace>,
}

/// Builds a job. Faults are reported, but the job is still built if possible, so that the whole graph is checked.
pub(crate) fn make_job(
    raw: RawJob,
    around: &JobContext<'_>,
    report: &mut FaultReport,
) -> Option<CheckedJob> {
    let whose = format!("job {}", raw.code.value);
    let code = JobCode::parse(&raw.code.value)
        .map_err(|error| report.fault(&raw.code.at, error.to_string(), ""))
        .ok()?;
    let (kind, job_type) = job_type(&whose, &raw, around, report);
    let group = group(&whose, &raw, around, report);
    let mut def = JobDef::with_defaults(code, group?, job_type?);
    set_plain(&mut def, &raw, around.defaults);
    limits::set_limits(&mut def, &whose, &raw, around, report);
    if let Some(kind) = kind {
        read_body(&mut def, &whose, &raw, kind, around, report);
    }
    if let Some(kind) = kind {
        classes::read_class(&mut def, &whose, &raw, kind, around, report);
        sqlite_bodies::check_job(&def, &whose, &raw, around.sources, report);
    }
    let condition = raw.condition.as_ref().and_then(|text| condition(&whose, text, report));
    def.condition = condition.as_ref().map(|c| Box::new(c.value.clone()));
    let calls = kind.is_none_or(|k| understands(k, BodyPart::ProcName));
    let mut asks = Asks::default();
    if let Some(params) = &raw.params {
        def.params = check_params(&whose, &params.value, calls, &mut asks, report);
    }
    if let Some(kind) = kind {
        checks::read_checks(&mut def, &whose, &raw, kind, around, report);
    }
    job_kinds::check(&whose, &mut def, &raw, around, &mut asks.uses, report);
    group_access::report_uses(&around.access.forbidden_uses_of_job(&def), &raw.code.at, report);
    Some(CheckedJob { def, asks, condition: condition.map(|c| c.at) })
}

fn condition(
    whose: &str,
    text: &Located<String>,
    report: &mut FaultReport,
) -> Option<Located<Expr>> {
    let read = Expr::parse(&text.value);
    let said = |error: ExprError| {
        report.fault(&text.at, format!("{whose}: if: {}", error.message()), error.hint_text());
    };
    read.map_err(said).ok().map(|expr| text.with_value(expr))
}

/// The job's own value, else the default.
pub(crate) fn pick_setting<T: Clone>(own: &Setting<T>, default: &Setting<T>) -> Option<T> {
    own.as_ref().or(default.as_ref()).map(|found| found.value.clone())
}

/// The job's own value, else the default, with its origin.
pub(crate) fn given_place<'a, T>(
    whose: &'a str,
    own: &'a Setting<T>,
    default: &'a Setting<T>,
) -> Option<(&'a str, &'a Located<T>)> {
    let own = own.as_deref().map(|word| (whose, word));
    own.or_else(|| default.as_deref().map(|word| ("defaults", word)))
}

fn set_plain(def: &mut JobDef, raw: &RawJob, defaults: &JobSettings) {
    let own = &raw.settings;
    let texts = |own: &Option<Vec<Located<String>>>, default: &Option<Vec<Located<String>>>| {
        let found = own.as_ref().or(default.as_ref());
        found.map_or_else(Vec::new, |all| all.iter().map(|t| t.value.clone()).collect())
    };
    if let Some(name) = &raw.name {
        def.name.clone_from(&name.value);
    }
    def.timeout_sec =
        pick_setting(&own.timeout_sec, &defaults.timeout_sec).unwrap_or(DEFAULT_TIMEOUT_SEC);
    def.retry_count = pick_setting(&own.retry_count, &defaults.retry_count).unwrap_or(0);
    def.retry_delay_sec =
        pick_setting(&own.retry_delay_sec, &defaults.retry_delay_sec).unwrap_or(0);
    def.priority = pick_setting(&own.priority, &defaults.priority).unwrap_or(0);
    def.idempotent = pick_setting(&own.idempotent, &defaults.idempotent).unwrap_or(false);
    def.is_active = pick_setting(&own.is_active, &defaults.is_active).unwrap_or(true);
    def.trigger_rule = pick_setting(&own.trigger_rule, &defaults.trigger_rule).unwrap_or_default();
    def.schedule_time = pick_setting(&own.schedule_time, &defaults.schedule_time);
    def.owner = pick_setting(&own.owner, &defaults.owner);
    def.notify_email = texts(&own.notify_email, &defaults.notify_email);
    if let Some(notify) = pick_setting(&own.notify, &defaults.notify) {
        def.notify = (!notify.is_empty()).then(|| Box::new(notify));
    }
    def.start_by = pick_setting(&own.start_by, &defaults.start_by);
    def.due = pick_setting(&own.due, &defaults.due);
    def.slow_after = pick_setting(&own.slow_after, &defaults.slow_after);
    def.tags = texts(&own.tags, &defaults.tags);
    def.aliases = raw.aliases.iter().filter_map(|a| JobCode::parse(&a.value).ok()).collect();
}

fn job_type<'k>(
    whose: &str,
    raw: &RawJob,
    around: &JobContext<'k>,
    report: &mut FaultReport,
) -> (Option<&'k JobKind>, Option<JobType>) {
    let names = || around.kinds.iter().map(|k| k.name);
    let known = names().collect::<Vec<_>>().join(", ");
    let Some((whose, word)) = given_place(whose, &raw.settings.job_type, &around.defaults.job_type)
    else {
        let cure = format!("add type: to it or to defaults, one of {known}");
        report.fault(&raw.code.at, format!("{whose} has no type"), cure);
        return (None, JobType::parse("NOOP").ok());
    };
    let Some(kind) = around.kinds.iter().find(|k| k.name == word.value) else {
        let fix = match nearest(&word.value, names()) {
            Some(near) => format!("did you mean {near}? types are {known}"),
            None => format!("types are {known}"),
        };
        report.fault(&word.at, format!("{whose}: type {} does not exist", word.value), fix);
        return (None, JobType::parse("NOOP").ok());
    };
    (Some(kind), JobType::parse(kind.name).ok())
}

fn group(
    whose: &str,
    raw: &RawJob,
    around: &JobContext<'_>,
    report: &mut FaultReport,
) -> Option<GroupCode> {
    let codes = || around.groups.iter().map(GroupCode::as_str);
    let first = around.groups.first().cloned().or_else(|| GroupCode::parse("default").ok());
    match given_place(whose, &raw.settings.group, &around.defaults.group) {
        Some((whose, word)) => {
            let found = around.groups.iter().find(|g| g.as_str() == word.value);
            if found.is_none() {
                let what = format!("{whose}: group {} is not defined", word.value);
                let hint = did_you_mean(&word.value, codes());
                report.fault(&word.at, what, format!("{hint}define it under groups"));
            }
            found.cloned().or(first)
        }
        None if around.groups.len() == 1 => first,
        None => {
            let known = codes().collect::<Vec<_>>().join(", ");
            let cure = format!("add group: to it or to defaults, one of {known}");
            report.fault(&raw.code.at, format!("{whose} has no group"), cure);
            first
        }
    }
}
