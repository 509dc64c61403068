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

/// Default body timeout in seconds, used when the definition gives none (`job_def.timeout_sec`).
pub const DEFAULT_TIMEOUT_SEC: u32 = 1_800;

/// A job: one procedure call, SQL text or script.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobDef {
    /// Unique within the group.
    pub code: JobCode,
    /// Display name.
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
    /// Text of a SQL body; SQL jobs only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sql: Option<SqlText>,
    /// How the statements of a SQL body are grouped into transactions.
    #[serde(default)]
    pub transaction: TransactionMode,
    /// Text of a script body.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub script: Option<String>,
    /// Interpreter of the script, from the configured allow-list.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interpreter: Option<String>,
    /// Working directory of a script; none: a private temporary directory, removed afterwards.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub working_dir: Option<String>,
    /// Parameters, in the procedure's order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub params: Vec<Param>,
    /// Earliest start: a time of day on the batch's date, in the group's time zone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schedule_time: Option<NaiveTime>,
    /// Seconds a body may run.
    pub timeout_sec: u32,
    /// Maximum number of retries after a failure or timeout.
    pub retry_count: u32,
    /// Seconds between the end of an attempt and the start of its retry.
    pub retry_delay_sec: u32,
    /// Higher starts first when slots are scarce; the default is 0.
    pub priority: i32,
    /// Safe to start again when the outcome of an attempt is unknown.
    pub idempotent: bool,
    /// How the body's effect is tied to the record that it happened.
    #[serde(default, skip_serializing_if = "TxClass::is_none")]
    pub tx: TxClass,
    /// Policy for an unknown outcome; `when_unknown` applies the default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_unknown: Option<OnUnknown>,
    /// An inactive job is left out of batches.
    pub is_active: bool,
    /// Addresses notified of a final failure or timeout.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notify_email: Vec<String>,
    /// Who is responsible for the job; free text or the code of an owner.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    /// Free labels.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// Other codes by which dependencies and users may name the job; unique within its group.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub aliases: Vec<JobCode>,
    /// How the results of the parents combine into permission to start.
    #[serde(default)]
    pub trigger_rule: TriggerRule,
    /// Beside its parents: the job runs only if this expression over outputs of its ancestors
    /// (`CODE.NAME`) is true; otherwise its branch is not taken.
    #[serde(rename = "if", default, skip_serializing_if = "Option::is_none")]
    pub condition: Option<Box<Expr>>,
    /// Delay between retries, and which errors are retried at all.
    #[serde(default, skip_serializing_if = "RetryPolicy::is_plain")]
    pub retry: RetryPolicy,
    /// Pool slots occupied while the job runs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pools: Vec<PoolUse>,
    /// Locks held while the job runs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub locks: Vec<LockUse>,
    /// The owner's declaration of the tables that the job reads and writes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lineage: Option<Box<LineageDeclaration>>,
    /// The job runs only on a node with this label.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker: Option<String>,
    /// Running time in seconds after which the owners are notified.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warn_after_sec: Option<u32>,
    /// Which events of the job are notified, and when; `told_when` falls back to the group for the
    /// others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notify: Option<Box<NotifyRules>>,
    /// Deadline of the start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_by: Option<DueRule>,
    /// Deadline of the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub due: Option<DueRule>,
    /// An attempt that takes this multiple of its usual duration is reported; none: the group's
    /// factor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slow_after: Option<Factor>,
    /// Conditions on the outputs that make the job a success.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub success: Vec<SuccessRule>,
    /// Queries that must hold after the body has ended.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub checks: Vec<DataCheck>,
    /// The call of an HTTP job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub http: Option<Box<HttpCall>>,
    /// Polling of a SENSOR job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sensor: Option<Sensor>,
    /// The batch that a BATCH job opens and waits for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sub_batch: Option<Box<SubBatch>>,
    /// The call of an executor job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub executor: Option<Box<ExecutorCall>>,
    /// The application that the job submits to a cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub application: Option<Box<ApplicationCall>>,
    /// Who may approve an APPROVAL job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval: Option<Box<ApprovalRule>>,
    /// The list of a fan-out: the job runs once per item.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub for_each: Option<Box<ForEach>>,
    /// The job's part in a fan-out; present only in the snapshot of a batch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fan_out: Option<Box<FanOut>>,
}

impl JobDef {
    /// Whether `name` is the job's code or one of its aliases.
    pub fn is_called(&self, name: &JobCode) -> bool {
        self.code == *name || self.aliases.contains(name)
    }

    /// A job with every default of the specification and no body: the starting point of tests and
    /// of readers of bare CSV.
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

    /// Policy for an attempt of unknown outcome: the declared one, otherwise retry when the job is
    /// idempotent. Irrelevant where the outcome can be looked up.
    pub fn when_unknown(&self) -> OnUnknown {
        let default = if self.idempotent { OnUnknown::Retry } else { OnUnknown::Hold };
        self.on_unknown.unwrap_or(default)
    }

    /// When an event of this job is notified: the job's rule, otherwise the group's.
    pub fn told_when(&self, event: NotificationEvent, group: &Group) -> NotifyWhen {
        let own = self.notify.as_deref().unwrap_or(NotifyRules::NONE);
        own.notify_when(event, &group.notify)
    }

    /// Name of the registered host that the job calls, if any.
    pub fn called_host(&self) -> Option<&str> {
        let of_call = self.http.as_ref().map(|call| call.host.as_str());
        of_call.or(self.application.as_ref().and_then(|call| call.host.as_deref()))
    }

    /// Whether its application runs on a cluster that it is submitted to, and not below this
    /// program.
    pub fn is_submitted(&self) -> bool {
        self.application.as_ref().is_some_and(|call| call.host.is_some())
    }

    /// Whether the next attempt can look up an unknown outcome: in the ledger, or in the cluster.
    pub fn is_looked_up(&self) -> bool {
        self.tx.is_recorded() || self.is_submitted()
    }

    /// The code under which the job is defined: for an item of a fan-out, the code of the original
    /// job.
    pub fn defined_as(&self) -> &JobCode {
        match self.fan_out.as_deref() {
            Some(FanOut::Item { of, .. }) => of,
            Some(FanOut::Milestone { .. }) | None => &self.code,
        }
    }

    /// Value of `${item}`, for an item of a fan-out.
    pub fn fan_out_item(&self) -> Option<&str> {
        match self.fan_out.as_deref() {
            Some(FanOut::Item { item, .. }) => Some(item),
            Some(FanOut::Milestone { .. }) | None => None,
        }
    }
}

/// Splits `CODE.NAME` into job and output. Both may contain dots: the shortest prefix that `is_job`
/// accepts is the code.
pub fn output_of<'n>(name: &'n str, is_job: &dyn Fn(&str) -> bool) -> Option<(&'n str, &'n str)> {
    let dots = name.match_indices('.').map(|(at, _)| at);
    dots.map(|at| (&name[..at], &name[at + 1..])).find(|(code, _)| is_job(code))
}

/// A group of jobs that run together as a batch: one pipeline.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Group {
    /// Unique code.
    pub code: GroupCode,
    /// Display name.
    pub name: String,
    /// The batch type that opens the group: `monthly`, `quarterly`, `yearly`, or any word of the
    /// team's.
    #[serde(rename = "type", default, skip_serializing_if = "Option::is_none")]
    pub batch_type: Option<String>,
    /// Who is responsible for the group; free text or the code of an owner.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    /// Addresses notified of failures of any of its jobs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notify_email: Vec<String>,
    /// Maximum number of its jobs running at once; `None`: only the global limit applies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_parallel: Option<u32>,
    /// IANA zone in which `schedule_time` is read; UTC when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_zone: Option<String>,
    /// The calendar that decides working days for its dates and schedules.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calendar: Option<CalendarCode>,
    /// Parameters of every batch of the group; the batch's own values take precedence.
    #[serde(
        default,
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "crate::domain::job::param::decls"
    )]
    pub params: Vec<ParamDecl>,
    /// What a final failure does to the rest of the batch.
    #[serde(default, skip_serializing_if = "is_go_on")]
    pub on_failure: GroupFailurePolicy,
    /// Seconds that a batch may take, counted from its opening or resuming; after that it is
    /// stopped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub batch_timeout_sec: Option<u32>,
    /// Seconds after which the owners are notified that a batch is still running.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warn_after_sec: Option<u32>,
    /// Which events of its jobs and batches are notified, and when.
    #[serde(default, skip_serializing_if = "NotifyRules::is_empty")]
    pub notify: NotifyRules,
    /// Deadline by which its batches should have ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub due: Option<DueRule>,
    /// An attempt of one of its jobs that takes this multiple of the usual duration is reported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slow_after: Option<Factor>,
    /// Seconds after which a job that is still held is reported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held_after_sec: Option<u32>,
}

/// Effect of a final failure on the rest of the batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(rename_all = "snake_case")]
pub enum GroupFailurePolicy {
    /// Branches that do not depend on the failed job continue.
    #[default]
    GoOn,
    /// Nothing new starts (`fail_fast`).
    Stop,
}

fn is_go_on(on_failure: &GroupFailurePolicy) -> bool {
    *on_failure == GroupFailurePolicy::GoOn
}

impl Group {
    /// A group with this code and every default.
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

/// A checked set of definitions: the content of a file, what `apply` stores, and what a batch
/// snapshots.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Definition {
    /// Data sources, by name.
    pub sources: Vec<crate::domain::source::DataSource>,
    /// Groups, by code.
    pub groups: Vec<Group>,
    /// Jobs, in file order.
    pub jobs: Vec<JobDef>,
    /// Dependencies, in file order.
    pub dependencies: Vec<JobDependency>,
    /// Dependencies on other batches and groups.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub externals: Vec<ExternalDependency>,
    /// Declarations shared by all groups.
    #[serde(flatten)]
    pub shared: Shared,
    /// Schedules that open these groups, in file order. Kept beside the definition: neither
    /// versions nor snapshots contain them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub schedules: Vec<TriggerDef>,
    /// The calendars of the installation. They are not part of a file or a version; a batch
    /// snapshots those that it needs.
    #[serde(skip)]
    pub calendars: Calendars,
    /// Which groups may use each stored (sealed) secret, by name. Like the calendars, this belongs
    /// to the installation and not to a file.
    #[serde(skip)]
    pub stored_secrets: BTreeMap<String, GroupAccess>,
    /// Which groups may use each secret of the settings, by name. These take precedence over
    /// declared and stored secrets of the same name.
    #[serde(skip)]
    pub configured_secrets: BTreeMap<String, GroupAccess>,
    /// Which groups may use each executor group, by app name. Belongs to the installation and not
    /// to a file.
    #[serde(skip)]
    pub executor_groups: BTreeMap<String, GroupAccess>,
}

impl Definition {
    /// Codes that occur in more than one group.
    pub fn codes_of_several_groups(&self) -> HashSet<&JobCode> {
        let mut seen = HashSet::new();
        self.jobs.iter().map(|job| &job.code).filter(|code| !seen.insert(*code)).collect()
    }
}

/// Declarations of a definition that all its groups share; a batch's snapshot includes them.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Shared {
    /// Owners of jobs and groups.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub owners: Vec<Owner>,
    /// Resource pools.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pools: Vec<SlotPool>,
    /// Hosts that HTTP jobs are allowed to call.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<HttpHost>,
    /// Sources of secrets.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub secrets: Vec<SecretSource>,
    /// Parameters of every batch of every group.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub params: Vec<ParamDecl>,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A process that holds a batch of 100,000 jobs holds that many of each.
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
