//! The definition as the user wrote it, key by key and unresolved.

use crate::definition::fault::{Located, SourcePlace};
use crate::definition::job_names::QualifiedName;
use crate::definition::read_schedules::RawSchedule;
use crate::domain::access::approval::ApprovalRule;
use crate::domain::executor::ExecutorCall;
use crate::domain::job::application::ApplicationCall;
use crate::domain::job::body::{ForEach, HttpCall, HttpHost, Sensor, SubBatch};
use crate::domain::job::check::CheckGrade;
use crate::domain::job::external::Missing;
use crate::domain::job::lineage_declaration::LineageDeclaration;
use crate::domain::job::pool::LockMode;
use crate::domain::job::retry::RetryPolicy;
use crate::domain::job::trigger_rule::TriggerRule;
use crate::domain::job::{GroupFailurePolicy, ParamMode, ParamType, TransactionMode};
use crate::domain::notification::event::NotifyRules;
use crate::domain::schedule::due::{DueRule, Factor};
use crate::domain::source::tx_class::{OnUnknown, TxClass};
use crate::domain::text::lang::Lang;
use chrono::NaiveTime;
use std::collections::HashMap;
use std::sync::Arc;

/// An entry of the separate list of dependencies, as the user wrote it.
#[derive(Debug)]
pub(crate) struct RawListed {
    pub job: Located<String>,
    pub depends_on: Located<String>,
    pub order: i32,
    pub when: Option<Box<Located<String>>>,
}

/// A whole definition.
#[derive(Debug, Default)]
pub(crate) struct Raw {
    pub sources: Vec<RawSource>,
    pub groups: Vec<RawGroup>,
    /// Defaults of the file itself.
    pub defaults: JobSettings,
    /// Defaults of the included files, each for the jobs written there.
    pub own_defaults: HashMap<Arc<str>, JobSettings>,
    pub jobs: Vec<RawJob>,
    /// Dependencies of the separate list, not those written with their job.
    pub dependencies: Vec<RawListed>,
    pub hosts: Vec<Located<HttpHost>>,
    /// Parameters of all groups.
    pub params: Vec<RawDecl>,
    pub secrets: Vec<RawSecret>,
    pub pools: Vec<RawPool>,
    pub owners: Vec<RawOwner>,
    pub schedules: Vec<RawSchedule>,
}

impl Raw {
    /// The defaults of the file itself and of the included files.
    pub(crate) fn all_defaults(&self) -> impl Iterator<Item = &JobSettings> {
        std::iter::once(&self.defaults).chain(self.own_defaults.values())
    }
}

/// An owner.
#[derive(Debug)]
pub(crate) struct RawOwner {
    pub code: Located<String>,
    pub name: Option<Located<String>>,
    pub email: Vec<Located<String>>,
    pub lang: Option<Located<Lang>>,
}

/// A data source.
#[derive(Debug)]
pub(crate) struct RawSource {
    pub name: Located<String>,
    pub url: Option<Located<String>>,
    pub password_env: Option<Located<String>>,
    pub password_file: Option<Located<String>>,
    pub password_secret: Option<Located<String>>,
    pub max_parallel: Option<Located<u32>>,
    pub procedures: Vec<(Located<String>, Located<String>)>,
    pub procedures_file: Option<Located<String>>,
    pub access: RawGroupAccess,
}

/// Which groups may use a data source or a secret.
#[derive(Debug)]
pub(crate) struct RawGroupAccess {
    pub owner_group: Option<Located<String>>,
    pub groups: Option<Vec<Located<String>>>,
}

/// A group.
#[derive(Debug)]
pub(crate) struct RawGroup {
    pub code: Located<String>,
    pub name: Option<Located<String>>,
    pub batch_type: Option<Located<String>>,
    pub owner: Option<Located<String>>,
    pub notify_email: Vec<Located<String>>,
    pub max_parallel: Option<Located<u32>>,
    pub time_zone: Option<Located<String>>,
    pub calendar: Option<Located<String>>,
    pub params: Vec<RawDecl>,
    pub on_failure: GroupFailurePolicy,
    pub batch_timeout_sec: Option<Located<u32>>,
    pub warn_after_sec: Option<Located<u32>>,
    pub notify: NotifyRules,
    pub due: Option<Located<DueRule>>,
    pub slow_after: Option<Located<Factor>>,
    pub held_after_sec: Option<Located<u32>>,
}

/// A pool.
#[derive(Debug)]
pub(crate) struct RawPool {
    pub name: Located<String>,
    pub slots: u32,
}

/// Pools or locks that a job uses, and how.
pub(crate) type RawUses<T> = Vec<(Located<String>, Located<T>)>;

/// An optional key that most jobs omit: eight bytes if absent. As plain values the keys made each job 2.2 KB, which was
/// 220 MB for 100,000 jobs.
pub(crate) type Setting<T> = Option<Box<Located<T>>>;

/// Settings of a job or of `defaults`.
#[derive(Debug, Default)]
pub(crate) struct JobSettings {
    pub group: Setting<String>,
    pub source: Setting<String>,
    pub job_type: Setting<String>,
    pub timeout_sec: Setting<u32>,
    pub retry_count: Setting<u32>,
    pub retry_delay_sec: Setting<u32>,
    pub priority: Setting<i32>,
    pub idempotent: Setting<bool>,
    pub tx: Setting<TxClass>,
    pub on_unknown: Setting<OnUnknown>,
    pub is_active: Setting<bool>,
    pub schedule_time: Setting<NaiveTime>,
    pub notify_email: Option<Vec<Located<String>>>,
    pub owner: Setting<String>,
    pub tags: Option<Vec<Located<String>>>,
    pub transaction: Setting<TransactionMode>,
    pub interpreter: Setting<String>,
    pub working_dir: Setting<String>,
    pub trigger_rule: Setting<TriggerRule>,
    pub success: Option<Vec<RawRule>>,
    pub checks: Option<Vec<RawCheck>>,
    pub retry: Setting<RetryPolicy>,
    pub pools: Option<RawUses<u32>>,
    pub locks: Option<RawUses<LockMode>>,
    pub lineage: Setting<LineageDeclaration>,
    pub worker: Setting<String>,
    pub warn_after_sec: Setting<u32>,
    pub notify: Setting<NotifyRules>,
    pub start_by: Setting<DueRule>,
    pub due: Setting<DueRule>,
    pub slow_after: Setting<Factor>,
}

/// A job.
#[derive(Debug)]
pub(crate) struct RawJob {
    /// The job's group: its own, or the default of its file.
    pub group: Arc<str>,
    pub code: Located<String>,
    pub name: Setting<String>,
    pub settings: JobSettings,
    pub depends_on: Vec<RawParent>,
    pub condition: Setting<String>,
    pub proc_name: Setting<String>,
    pub sql: Option<Box<RawSql>>,
    pub sql_file: Setting<String>,
    pub script: Setting<String>,
    pub script_file: Setting<String>,
    pub params: Setting<Vec<RawParam>>,
    pub aliases: Vec<Located<String>>,
    pub http: Setting<HttpCall>,
    pub sensor: Setting<Sensor>,
    pub sub_batch: Setting<SubBatch>,
    pub executor: Setting<ExecutorCall>,
    pub application: Setting<ApplicationCall>,
    pub approval: Setting<ApprovalRule>,
    pub for_each: Setting<ForEach>,
}

/// SQL in the definition itself.
#[derive(Debug)]
pub(crate) enum RawSql {
    Same(Located<String>),
    Per(SourcePlace, Vec<(Located<String>, Located<String>)>),
}

impl RawSql {
    pub(crate) fn place(&self) -> &SourcePlace {
        match self {
            Self::Same(text) => &text.at,
            Self::Per(at, _) => at,
        }
    }
}

/// A parameter of a job.
#[derive(Debug)]
pub(crate) struct RawParam {
    pub name: Located<String>,
    pub mode: Option<Located<ParamMode>>,
    pub ty: ParamType,
    pub value: Option<Located<String>>,
    pub required: Option<Located<bool>>,
    pub secret: Option<Located<bool>>,
}

/// A parameter of a group, or of all groups.
#[derive(Debug)]
pub(crate) struct RawDecl {
    /// The subject of messages: `group month_end: parameter rate`.
    pub whose: String,
    pub name: Located<String>,
    pub ty: ParamType,
    pub value: Option<Located<String>>,
    pub required: Option<Located<bool>>,
    pub secret: Option<Located<bool>>,
}

/// Source of a secret.
#[derive(Debug)]
pub(crate) struct RawSecret {
    pub name: Located<String>,
    pub env: Option<Located<String>>,
    pub file: Option<Located<String>>,
    pub sealed: Option<Located<String>>,
    pub access: RawGroupAccess,
}

/// An entry of `depends_on`. It is no larger than a `SourceNode`, so that a list of a million entries is converted in
/// place.
#[derive(Debug)]
pub(crate) enum RawParent {
    /// A job of the same group and batch.
    Plain(Located<String>),
    /// An entry with further keys.
    Full(Box<RawFullParent>),
}

/// An entry of `depends_on` with further keys.
#[derive(Debug)]
pub(crate) struct RawFullParent {
    /// Start of the entry.
    pub at: SourcePlace,
    /// None: the batch of `group` as a whole.
    pub job: Option<Located<String>>,
    pub more: RawMore,
}

/// The keys of an entry of `depends_on` besides the job.
#[derive(Debug, Default)]
pub(crate) struct RawMore {
    pub when: Option<Located<String>>,
    pub group: Option<Located<String>>,
    pub batch: Option<Located<String>>,
    pub missing: Option<Located<Missing>>,
    pub wait_sec: Option<Located<u32>>,
}

impl RawParent {
    /// Lets it name a job of another group in the same batch.
    pub(crate) fn point_to(&mut self, at: &SourcePlace, name: QualifiedName) {
        let job = Some(Located::new(at, name.code));
        let group = Some(Located::new(at, name.group.to_string()));
        match self {
            Self::Full(full) => (full.job, full.more.group) = (job, group),
            Self::Plain(word) => {
                let more = RawMore { group, ..RawMore::default() };
                *self = Self::Full(Box::new(RawFullParent { at: word.at.clone(), job, more }));
            }
        }
    }

    /// Start of the entry.
    pub(crate) fn at(&self) -> &SourcePlace {
        match self {
            Self::Plain(word) => &word.at,
            Self::Full(full) => &full.at,
        }
    }

    /// The job, unless the entry names a whole batch.
    pub(crate) fn job(&self) -> Option<&Located<String>> {
        match self {
            Self::Plain(word) => Some(word),
            Self::Full(full) => full.job.as_ref(),
        }
    }

    pub(crate) fn job_mut(&mut self) -> Option<&mut Located<String>> {
        match self {
            Self::Plain(word) => Some(word),
            Self::Full(full) => full.job.as_mut(),
        }
    }

    /// The keys besides the job.
    pub(crate) fn more(&self) -> Option<&RawMore> {
        match self {
            Self::Plain(_) => None,
            Self::Full(full) => Some(&full.more),
        }
    }

    pub(crate) fn more_mut(&mut self) -> Option<&mut RawMore> {
        match self {
            Self::Plain(_) => None,
            Self::Full(full) => Some(&mut full.more),
        }
    }

    pub(crate) fn condition(&self) -> Option<&Located<String>> {
        self.more()?.when.as_ref()
    }

    pub(crate) fn group(&self) -> Option<&Located<String>> {
        self.more()?.group.as_ref()
    }

    pub(crate) fn batch(&self) -> Option<&Located<String>> {
        self.more()?.batch.as_ref()
    }
}

/// `job` depends on `depends_on`.
#[derive(Debug)]
pub(crate) struct RawDependency {
    /// Group of both jobs.
    pub group: Arc<str>,
    pub job: Arc<str>,
    pub depends_on: Located<String>,
    pub order: i32,
    pub when: Option<Box<Located<String>>>,
}

/// A success rule.
#[derive(Debug)]
pub(crate) struct RawRule {
    pub rule: Located<String>,
    pub grade: Option<Located<CheckGrade>>,
    pub message: Option<Located<String>>,
}

/// A query of a check.
#[derive(Debug)]
pub(crate) struct RawQuery {
    pub source: Option<Located<String>>,
    pub sql: Option<RawSql>,
    pub sql_file: Option<Located<String>>,
}

/// A check.
#[derive(Debug)]
pub(crate) struct RawCheck {
    pub name: Located<String>,
    pub query: RawQuery,
    pub expect: Option<RawExpect>,
    pub grade: Option<Located<CheckGrade>>,
}

/// What a check expects.
#[derive(Debug)]
pub(crate) enum RawExpect {
    ZeroRows,
    Between { at: SourcePlace, min: Option<Located<String>>, max: Option<Located<String>> },
    Equals { at: SourcePlace, query: RawQuery, tolerance: Option<Located<String>> },
    Drift { max_percent: Located<String> },
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::definition::node::SourceNode;

    #[test]
    fn a_list_becomes_parents_where_it_stands() {
        assert!(size_of::<RawParent>() <= size_of::<SourceNode>());
    }
}
