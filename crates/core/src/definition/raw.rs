//! What the user said, key by key, nothing looked up yet.

use crate::definition::fault::{At, Place};
use crate::definition::job_names::QualifiedName;
use crate::definition::read_schedules::RawSchedule;
use crate::domain::access::approval::ApprovalRule;
use crate::domain::executor::ExecutorCall;
use crate::domain::job::application::ApplicationCall;
use crate::domain::job::body::{ForEach, HttpCall, HttpHost, Sensor, SubBatch};
use crate::domain::job::check::Grade;
use crate::domain::job::external::Missing;
use crate::domain::job::lineage_declaration::LineageDeclaration;
use crate::domain::job::pool::LockMode;
use crate::domain::job::retry::RetryPolicy;
use crate::domain::job::trigger_rule::TriggerRule;
use crate::domain::job::{OnFailure, ParamMode, ParamType, TransactionMode};
use crate::domain::notification::event::NotifyRules;
use crate::domain::schedule::due::{Due, Factor};
use crate::domain::source::tx_class::{OnUnknown, TxClass};
use crate::domain::text::lang::Lang;
use chrono::NaiveTime;
use std::collections::HashMap;
use std::sync::Arc;

/// An entry of a list of its own: which job waits for which, as it was written.
#[derive(Debug)]
pub(crate) struct RawListed {
    pub job: At<String>,
    pub depends_on: At<String>,
    pub order: i32,
    pub when: Option<Box<At<String>>>,
}

/// A whole definition.
#[derive(Debug, Default)]
pub(crate) struct Raw {
    pub sources: Vec<RawSource>,
    pub groups: Vec<RawGroup>,
    /// Of the file itself.
    pub defaults: Settings,
    /// Of the files it includes; each for the jobs written there.
    pub own_defaults: HashMap<Arc<str>, Settings>,
    pub jobs: Vec<RawJob>,
    /// Those that stand in a list of their own, not with their job.
    pub dependencies: Vec<RawListed>,
    pub hosts: Vec<At<HttpHost>>,
    /// Of all groups.
    pub params: Vec<RawDecl>,
    pub secrets: Vec<RawSecret>,
    pub pools: Vec<RawPool>,
    pub owners: Vec<RawOwner>,
    pub schedules: Vec<RawSchedule>,
}

impl Raw {
    /// The defaults of the file itself and of those it includes.
    pub(crate) fn all_defaults(&self) -> impl Iterator<Item = &Settings> {
        std::iter::once(&self.defaults).chain(self.own_defaults.values())
    }
}

/// An owner.
#[derive(Debug)]
pub(crate) struct RawOwner {
    pub code: At<String>,
    pub name: Option<At<String>>,
    pub email: Vec<At<String>>,
    pub lang: Option<At<Lang>>,
}

/// A data source.
#[derive(Debug)]
pub(crate) struct RawSource {
    pub name: At<String>,
    pub url: Option<At<String>>,
    pub password_env: Option<At<String>>,
    pub password_file: Option<At<String>>,
    pub password_secret: Option<At<String>>,
    pub max_parallel: Option<At<u32>>,
    pub procedures: Vec<(At<String>, At<String>)>,
    pub procedures_file: Option<At<String>>,
    pub access: RawGroupAccess,
}

/// Which groups may use a data source or a secret.
#[derive(Debug)]
pub(crate) struct RawGroupAccess {
    pub owner_group: Option<At<String>>,
    pub groups: Option<Vec<At<String>>>,
}

/// A group.
#[derive(Debug)]
pub(crate) struct RawGroup {
    pub code: At<String>,
    pub name: Option<At<String>>,
    pub batch_type: Option<At<String>>,
    pub owner: Option<At<String>>,
    pub notify_email: Vec<At<String>>,
    pub max_parallel: Option<At<u32>>,
    pub time_zone: Option<At<String>>,
    pub calendar: Option<At<String>>,
    pub params: Vec<RawDecl>,
    pub on_failure: OnFailure,
    pub batch_timeout_sec: Option<At<u32>>,
    pub warn_after_sec: Option<At<u32>>,
    pub notify: NotifyRules,
    pub due: Option<At<Due>>,
    pub slow_after: Option<At<Factor>>,
    pub held_after_sec: Option<At<u32>>,
}

/// A pool.
#[derive(Debug)]
pub(crate) struct RawPool {
    pub name: At<String>,
    pub slots: u32,
}

/// Pools or locks that a job uses, and how.
pub(crate) type Uses<T> = Vec<(At<String>, At<T>)>;

/// A key that most jobs leave out: eight bytes where it is not there. As values the keys made each job 2.2 KB, which
/// was 220 MB for 100,000 of them.
pub(crate) type Setting<T> = Option<Box<At<T>>>;

/// What a job may say itself or leave to `defaults`.
#[derive(Debug, Default)]
pub(crate) struct Settings {
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
    pub notify_email: Option<Vec<At<String>>>,
    pub owner: Setting<String>,
    pub tags: Option<Vec<At<String>>>,
    pub transaction: Setting<TransactionMode>,
    pub interpreter: Setting<String>,
    pub working_dir: Setting<String>,
    pub trigger_rule: Setting<TriggerRule>,
    pub success: Option<Vec<RawRule>>,
    pub checks: Option<Vec<RawCheck>>,
    pub retry: Setting<RetryPolicy>,
    pub pools: Option<Uses<u32>>,
    pub locks: Option<Uses<LockMode>>,
    pub lineage: Setting<LineageDeclaration>,
    pub worker: Setting<String>,
    pub warn_after_sec: Setting<u32>,
    pub notify: Setting<NotifyRules>,
    pub start_by: Setting<Due>,
    pub due: Setting<Due>,
    pub slow_after: Setting<Factor>,
}

/// A job.
#[derive(Debug)]
pub(crate) struct RawJob {
    /// The group that it belongs to, by the job itself or the defaults of its file.
    pub group: Arc<str>,
    pub code: At<String>,
    pub name: Setting<String>,
    pub settings: Settings,
    pub depends_on: Vec<RawParent>,
    pub condition: Setting<String>,
    pub proc_name: Setting<String>,
    pub sql: Option<Box<RawSql>>,
    pub sql_file: Setting<String>,
    pub script: Setting<String>,
    pub script_file: Setting<String>,
    pub params: Setting<Vec<RawParam>>,
    pub aliases: Vec<At<String>>,
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
    Same(At<String>),
    Per(Place, Vec<(At<String>, At<String>)>),
}

impl RawSql {
    pub(crate) fn at(&self) -> &Place {
        match self {
            Self::Same(text) => &text.at,
            Self::Per(at, _) => at,
        }
    }
}

/// A parameter of a job.
#[derive(Debug)]
pub(crate) struct RawParam {
    pub name: At<String>,
    pub mode: Option<At<ParamMode>>,
    pub ty: ParamType,
    pub value: Option<At<String>>,
    pub required: Option<At<bool>>,
    pub secret: Option<At<bool>>,
}

/// A parameter of a group, or of all groups.
#[derive(Debug)]
pub(crate) struct RawDecl {
    /// For messages: `group month_end: parameter rate`.
    pub whose: String,
    pub name: At<String>,
    pub ty: ParamType,
    pub value: Option<At<String>>,
    pub required: Option<At<bool>>,
    pub secret: Option<At<bool>>,
}

/// Where a secret comes from.
#[derive(Debug)]
pub(crate) struct RawSecret {
    pub name: At<String>,
    pub env: Option<At<String>>,
    pub file: Option<At<String>>,
    pub sealed: Option<At<String>>,
    pub access: RawGroupAccess,
}

/// What a job waits for: an entry of `depends_on`.
#[derive(Debug)]
pub(crate) struct RawParent {
    /// Where the entry begins.
    pub at: Place,
    /// None: the batch of `group` as a whole.
    pub job: Option<At<String>>,
    /// Apart, because of a million entries most say nothing more.
    pub more: Option<Box<RawMore>>,
}

/// What an entry of `depends_on` says beside the job.
#[derive(Debug)]
pub(crate) struct RawMore {
    pub when: Option<At<String>>,
    pub group: Option<At<String>>,
    pub batch: Option<At<String>>,
    pub missing: Option<At<Missing>>,
    pub wait_sec: Option<At<u32>>,
}

impl RawParent {
    /// A job of the same group and batch.
    pub(crate) fn plain(job: At<String>) -> Self {
        Self { at: job.at.clone(), job: Some(job), more: None }
    }

    /// Makes it name a job of another group in the same batch.
    pub(crate) fn point_to(&mut self, at: &Place, name: QualifiedName) {
        self.job = Some(At::new(at, name.code));
        let group = Some(At::new(at, name.group.to_string()));
        match &mut self.more {
            Some(more) => more.group = group,
            None => {
                let (when, batch, missing, wait_sec) = Default::default();
                self.more = Some(Box::new(RawMore { when, group, batch, missing, wait_sec }));
            }
        }
    }

    pub(crate) fn when(&self) -> Option<&At<String>> {
        self.more.as_ref()?.when.as_ref()
    }

    pub(crate) fn group(&self) -> Option<&At<String>> {
        self.more.as_ref()?.group.as_ref()
    }

    pub(crate) fn batch(&self) -> Option<&At<String>> {
        self.more.as_ref()?.batch.as_ref()
    }
}

/// `job` waits for `depends_on`.
#[derive(Debug)]
pub(crate) struct RawDependency {
    /// The group of both.
    pub group: Arc<str>,
    pub job: Arc<str>,
    pub depends_on: At<String>,
    pub order: i32,
    pub when: Option<Box<At<String>>>,
}

/// A success rule.
#[derive(Debug)]
pub(crate) struct RawRule {
    pub rule: At<String>,
    pub grade: Option<At<Grade>>,
    pub message: Option<At<String>>,
}

/// A query of a check.
#[derive(Debug)]
pub(crate) struct RawQuery {
    pub source: Option<At<String>>,
    pub sql: Option<RawSql>,
    pub sql_file: Option<At<String>>,
}

/// A check.
#[derive(Debug)]
pub(crate) struct RawCheck {
    pub name: At<String>,
    pub query: RawQuery,
    pub expect: Option<RawExpect>,
    pub grade: Option<At<Grade>>,
}

/// What a check expects.
#[derive(Debug)]
pub(crate) enum RawExpect {
    ZeroRows,
    Between { at: Place, min: Option<At<String>>, max: Option<At<String>> },
    Equals { at: Place, query: RawQuery, tolerance: Option<At<String>> },
    Drift { max_percent: At<String> },
}
