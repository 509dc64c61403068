//! What may run, and after what: the rows of `job_def` and `job_dependency`.

pub mod application;
pub mod body;
pub mod borrowed;
pub mod check;
pub mod dependency;
pub mod external;
pub mod job_key;
pub mod job_kind;
pub mod lineage_declaration;
pub mod outcome;
pub mod output_limits;
pub mod param;
pub mod part;
pub mod pool;
pub mod preflight;
pub mod queue;
pub mod retry;
pub mod script_isolation;
pub mod script_limits;
pub mod secret;
pub mod shared_definitions;
pub mod success_rules;
pub mod trigger_rule;

use crate::domain::access::approval::ApprovalRule;
use crate::domain::access::group_access::GroupAccess;
use crate::domain::calendar::Calendars;
use crate::domain::executor::ExecutorCall;
use crate::domain::id::{CalendarCode, GroupCode, JobCode, JobType, SourceName};
use crate::domain::job::application::ApplicationCall;
use crate::domain::job::body::{FanOut, ForEach, HttpCall, HttpHost, Sensor, SubBatch};
use crate::domain::job::check::{DataCheck, SuccessRule};
use crate::domain::job::external::ExternalDependency;
use crate::domain::job::lineage_declaration::LineageDeclaration;
use crate::domain::job::pool::{LockUse, PoolUse, SlotPool};
use crate::domain::job::retry::RetryPolicy;
use crate::domain::job::shared_definitions::{Owner, SecretSource};
use crate::domain::job::trigger_rule::TriggerRule;
use crate::domain::notification::event::{NotificationEvent, NotifyRules, NotifyWhen};
use crate::domain::schedule::due::{DueRule, Factor};
use crate::domain::schedule::trigger::TriggerDef;
use crate::domain::source::tx_class::{OnUnknown, TxClass};
use crate::domain::value::expr::Expr;
use chrono::NaiveTime;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashSet};

pub use crate::domain::job::dependency::JobDependency;
pub use crate::domain::job::job_kind::{AfterCrash, BodyPart, JobKind, Takes};
pub use crate::domain::job::param::{Param, ParamDecl, ParamMode, ParamNeed, ParamType, Secrecy};
pub use crate::domain::source::sql_text::{SqlText, TransactionMode};

/// Seconds a body may run when its definition does not say (`job_def.timeout_sec`).
pub const DEFAULT_TIMEOUT_SEC: u32 = 1_800;

/// A job: one procedure call, SQL text or script.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobDef {
    /// Unique code.
    pub code: JobCode,
    /// Name for people.
    pub name: String,
    /// The group (pipeline) it belongs to.
    pub group: GroupCode,
    /// PROC, SQL, SCRIPT or NOOP; checked against the handlers that exist.
    #[serde(rename = "type")]
    pub job_type: JobType,
    /// The data source its body runs on; none for scripts and no-ops.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<SourceName>,
    /// `[schema.]procedure` for PROC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proc_name: Option<String>,
    /// Text of a SQL body.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sql: Option<SqlText>,
    /// How a SQL body's statements are grouped.
    #[serde(default)]
    pub transaction: TransactionMode,
    /// Text of a script body.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub script: Option<String>,
    /// Which interpreter of the allow-list runs the script.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interpreter: Option<String>,
    /// Folder a script starts in; none: a private temporary folder, removed afterwards.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub working_dir: Option<String>,
    /// Parameters, in the procedure's order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub params: Vec<Param>,
    /// Not before this time of day on the batch's day, in the group's time zone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schedule_time: Option<NaiveTime>,
    /// Seconds a body may run.
    pub timeout_sec: u32,
    /// How many times it is tried again after a failure or time-out.
    pub retry_count: u32,
    /// Seconds between the end of a try and the start of the next.
    pub retry_delay_sec: u32,
    /// Higher goes first when slots are short; 0 is ordinary.
    pub priority: i32,
    /// May be started again when the outcome of a try could not be learnt.
    pub idempotent: bool,
    /// What ties its effect to the record that it happened.
    #[serde(default, skip_serializing_if = "TxClass::is_none")]
    pub tx: TxClass,
    /// What is done when its outcome cannot be learnt; `when_unknown` has the default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_unknown: Option<OnUnknown>,
    /// An inactive job is left out of batches.
    pub is_active: bool,
    /// Addresses that hear of a final failure or time-out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notify_email: Vec<String>,
    /// Who answers for it; free text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    /// Free labels.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// Other codes by which dependencies and people may call it; unique within its group.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub aliases: Vec<JobCode>,
    /// How its parents together let it start.
    #[serde(default)]
    pub trigger_rule: TriggerRule,
    /// Beyond its parents: it runs only if this holds of outputs of jobs above it (`CODE.NAME`),
    /// else its branch is not taken.
    #[serde(rename = "if", default, skip_serializing_if = "Option::is_none")]
    pub condition: Option<Box<Expr>>,
    /// How its retries wait, and for which errors there are any.
    #[serde(default, skip_serializing_if = "RetryPolicy::is_plain")]
    pub retry: RetryPolicy,
    /// Pools it takes slots from while it runs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pools: Vec<PoolUse>,
    /// Locks it holds while it runs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub locks: Vec<LockUse>,
    /// What its owner says of the tables it reads and writes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lineage: Option<Box<LineageDeclaration>>,
    /// It runs only on a node with this label.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker: Option<String>,
    /// Seconds after which its owners hear that it still runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warn_after_sec: Option<u32>,
    /// When which of its events is told; `told_when` asks the group for those it does not name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notify: Option<Box<NotifyRules>>,
    /// By when it should have started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_by: Option<DueRule>,
    /// By when it should have ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub due: Option<DueRule>,
    /// A try that takes so many times the usual is told of; the group's when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slow_after: Option<Factor>,
    /// What must hold of its outputs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub success: Vec<SuccessRule>,
    /// What must hold of the data afterwards.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub checks: Vec<DataCheck>,
    /// The call of an HTTP job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub http: Option<Box<HttpCall>>,
    /// How a SENSOR job asks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sensor: Option<Sensor>,
    /// The batch that a BATCH job opens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sub_batch: Option<Box<SubBatch>>,
    /// What it asks of an executor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub executor: Option<Box<ExecutorCall>>,
    /// The application that it submits to a cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub application: Option<Box<ApplicationCall>>,
    /// Who may approve an APPROVAL job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval: Option<Box<ApprovalRule>>,
    /// The list for each of whose items it runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub for_each: Option<Box<ForEach>>,
    /// What a fan-out made of it; only in the snapshot of a batch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fan_out: Option<Box<FanOut>>,
}

impl JobDef {
    /// Whether this is its code or one of its aliases.
    pub fn is_called(&self, name: &JobCode) -> bool {
        self.code == *name || self.aliases.contains(name)
    }

    /// A job with every default of the spec and no body: what tests and readers of bare CSV start
    /// from.
    pub fn with_defaults(code: JobCode, group: GroupCode, job_type: JobType) -> Self {
        Self {
            name: code.to_string(),
            code,
            group,
            job_type,
            source: None,
            proc_name: None,
            sql: None,
            transaction: TransactionMode::One,
            script: None,
            interpreter: None,
            working_dir: None,
            params: Vec::new(),
            schedule_time: None,
            timeout_sec: DEFAULT_TIMEOUT_SEC,
            retry_count: 0,
            retry_delay_sec: 0,
            priority: 0,
            idempotent: false,
            tx: TxClass::None,
            on_unknown: None,
            is_active: true,
            notify_email: Vec::new(),
            owner: None,
            tags: Vec::new(),
            aliases: Vec::new(),
            trigger_rule: TriggerRule::AllSuccess,
            condition: None,
            retry: RetryPolicy::default(),
            pools: Vec::new(),
            locks: Vec::new(),
            lineage: None,
            worker: None,
            warn_after_sec: None,
            notify: None,
            start_by: None,
            due: None,
            slow_after: None,
            success: Vec::new(),
            checks: Vec::new(),
            http: None,
            sensor: None,
            sub_batch: None,
            executor: None,
            application: None,
            approval: None,
            for_each: None,
            fan_out: None,
        }
    }

    /// What is done when the outcome of a try cannot be learnt: what it says itself, else another
    /// try if it is idempotent. Of no weight where the outcome can be looked up.
    pub fn when_unknown(&self) -> OnUnknown {
        let default = if self.idempotent { OnUnknown::Retry } else { OnUnknown::Hold };
        self.on_unknown.unwrap_or(default)
    }

    /// When one of its events is told.
    pub fn told_when(&self, event: NotificationEvent, group: &Group) -> NotifyWhen {
        let own = self.notify.as_deref().unwrap_or(NotifyRules::NONE);
        own.notify_when(event, &group.notify)
    }

    /// Name of the host that it calls.
    pub fn called_host(&self) -> Option<&str> {
        let of_call = self.http.as_ref().map(|call| call.host.as_str());
        of_call.or(self.application.as_ref().map(|call| call.host.as_str()))
    }

    /// Whether the next attempt can look up an outcome that is not known: in the ledger, or in the cluster.
    pub fn is_looked_up(&self) -> bool {
        self.tx.is_recorded() || self.application.is_some()
    }

    /// The code under which it is defined: its own, or that of the job a fan-out made it from.
    pub fn defined_as(&self) -> &JobCode {
        match self.fan_out.as_deref() {
            Some(FanOut::Item { of, .. }) => of,
            Some(FanOut::Milestone { .. }) | None => &self.code,
        }
    }

    /// `${item}`: what it was made for, when a fan-out made it.
    pub fn fan_out_item(&self) -> Option<&str> {
        match self.fan_out.as_deref() {
            Some(FanOut::Item { item, .. }) => Some(item),
            Some(FanOut::Milestone { .. }) | None => None,
        }
    }
}

/// Splits `CODE.NAME` into job and output. Both may hold dots: the shortest code that `is_job` knows
/// counts.
pub fn output_of<'n>(name: &'n str, is_job: &dyn Fn(&str) -> bool) -> Option<(&'n str, &'n str)> {
    let dots = name.match_indices('.').map(|(at, _)| at);
    dots.map(|at| (&name[..at], &name[at + 1..])).find(|(code, _)| is_job(code))
}

/// A group of jobs that run together as a batch: a pipeline.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Group {
    /// Unique code.
    pub code: GroupCode,
    /// Name for people.
    pub name: String,
    /// The batch type it answers to: `monthly`, `quarterly`, `yearly`, or any word of the team's.
    #[serde(rename = "type", default, skip_serializing_if = "Option::is_none")]
    pub batch_type: Option<String>,
    /// Who answers for it; free text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    /// Addresses that hear of failures of any of its jobs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notify_email: Vec<String>,
    /// How many of its jobs may run at once; `None` leaves it to the limit in total.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_parallel: Option<u32>,
    /// IANA zone in which `schedule_time` is read; UTC when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_zone: Option<String>,
    /// The calendar that its dates and schedules ask for working days.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calendar: Option<CalendarCode>,
    /// Parameters of every batch of the group; the batch's own win.
    #[serde(
        default,
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "crate::domain::job::param::decls"
    )]
    pub params: Vec<ParamDecl>,
    /// What a final failure does to the rest of the batch.
    #[serde(default, skip_serializing_if = "is_go_on")]
    pub on_failure: GroupFailurePolicy,
    /// Seconds a batch may take, from its opening or resuming; then it is stopped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub batch_timeout_sec: Option<u32>,
    /// Seconds after which the owners hear that a batch still runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warn_after_sec: Option<u32>,
    /// When which event of its jobs and batches is told.
    #[serde(default, skip_serializing_if = "NotifyRules::is_empty")]
    pub notify: NotifyRules,
    /// By when its batches should have ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub due: Option<DueRule>,
    /// Of its jobs, a try that takes so many times the usual is told of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slow_after: Option<Factor>,
    /// Seconds after which it is told that a job is still held.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held_after_sec: Option<u32>,
}

/// What a final failure does to the rest of the batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(rename_all = "snake_case")]
pub enum GroupFailurePolicy {
    /// Branches that do not hang on it go on.
    #[default]
    GoOn,
    /// Nothing new starts (`fail_fast`).
    Stop,
}

fn is_go_on(on_failure: &GroupFailurePolicy) -> bool {
    *on_failure == GroupFailurePolicy::GoOn
}

impl Group {
    /// A group that says nothing but its code.
    pub fn with_defaults(code: GroupCode) -> Self {
        Self {
            name: code.to_string(),
            code,
            batch_type: None,
            owner: None,
            notify_email: Vec::new(),
            max_parallel: None,
            time_zone: None,
            calendar: None,
            params: Vec::new(),
            on_failure: GroupFailurePolicy::GoOn,
            batch_timeout_sec: None,
            warn_after_sec: None,
            notify: NotifyRules::default(),
            due: None,
            slow_after: None,
            held_after_sec: None,
        }
    }
}

/// A checked set of definitions: what a file says, what `apply` stores, what a batch snapshots.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Definition {
    /// Data sources, by name.
    pub sources: Vec<crate::domain::source::DataSource>,
    /// Groups, by code.
    pub groups: Vec<Group>,
    /// Jobs, in the order written.
    pub jobs: Vec<JobDef>,
    /// Dependencies, in the order written.
    pub dependencies: Vec<JobDependency>,
    /// Dependencies on other batches and groups.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub externals: Vec<ExternalDependency>,
    /// What all groups share.
    #[serde(flatten)]
    pub shared: Shared,
    /// When which of the groups are opened, in the order written. Kept beside the definition: no
    /// version and no snapshot has them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub schedules: Vec<TriggerDef>,
    /// The calendars of the installation. No file says them, no version holds them; a batch keeps those
    /// that it needs.
    #[serde(skip)]
    pub calendars: Calendars,
    /// Which groups may use the secrets that are stored sealed, by name. No file says it; like the
    /// calendars it is the installation's.
    #[serde(skip)]
    pub stored_secrets: BTreeMap<String, GroupAccess>,
    /// Which groups may use the secrets that the settings name, by name. They go before those of the same names that are
    /// declared or stored.
    #[serde(skip)]
    pub configured_secrets: BTreeMap<String, GroupAccess>,
    /// Which groups may use which executor group, by its app name. No file says it; it is the installation's.
    #[serde(skip)]
    pub executor_groups: BTreeMap<String, GroupAccess>,
}

impl Definition {
    /// Codes that jobs of several groups have.
    pub fn codes_of_several_groups(&self) -> HashSet<&JobCode> {
        let mut seen = HashSet::new();
        self.jobs.iter().map(|job| &job.code).filter(|code| !seen.insert(*code)).collect()
    }
}

/// What a definition declares for all its groups; a batch's snapshot keeps it too.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Shared {
    /// Who answers for jobs and groups.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub owners: Vec<Owner>,
    /// Resource pools.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pools: Vec<SlotPool>,
    /// Hosts that HTTP jobs may call.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<HttpHost>,
    /// Where secrets come from.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub secrets: Vec<SecretSource>,
    /// Parameters of every batch of every group.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub params: Vec<ParamDecl>,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A process that holds a batch of 100,000 jobs holds so many of each.
    #[test]
    fn what_a_waiting_job_is_kept_in_is_small() {
        use crate::domain::job::queue::QueueEntry;
        let sizes = [
            ("JobDef", size_of::<JobDef>(), 680),
            ("JobDependency", size_of::<JobDependency>(), 56),
            ("QueueEntry", size_of::<QueueEntry>(), 208),
        ];
        for (what, bytes, most) in sizes {
            assert!(
                bytes <= most,
                "{what} has {bytes} bytes; a field that is seldom set goes in a box"
            );
        }
    }
}
