//! What the user said, key by key, nothing looked up yet.

use crate::definition::fault::{At, Place};
use crate::definition::job_names::QualifiedName;
use crate::definition::read_schedules::RawSchedule;
use crate::domain::body::{ForEach, HttpCall, HttpHost, Sensor, SubBatch};
use crate::domain::check::Grade;
use crate::domain::due::{Due, Factor};
use crate::domain::event::NotifyRules;
use crate::domain::executor::ExecutorCall;
use crate::domain::external::Missing;
use crate::domain::job::{OnFailure, ParamMode, ParamType, TransactionMode};
use crate::domain::lang::Lang;
use crate::domain::pool::LockMode;
use crate::domain::retry::RetryPolicy;
use crate::domain::trigger_rule::TriggerRule;
use crate::domain::tx_class::{OnUnknown, TxClass};
use chrono::NaiveTime;
use std::collections::HashMap;
use std::sync::Arc;

/// An entry of a list of its own: which job waits for which, as it was written.
#[derive(Debug)]
pub(crate) struct RawListed {
    pub(crate) job: At<String>,
    pub(crate) depends_on: At<String>,
    pub(crate) order: i32,
    pub(crate) when: Option<Box<At<String>>>,
}

/// A whole definition.
#[derive(Debug, Default)]
pub(crate) struct Raw {
    pub(crate) sources: Vec<RawSource>,
    pub(crate) groups: Vec<RawGroup>,
    /// Of the file itself.
    pub(crate) defaults: Settings,
    /// Of the files it includes; each for the jobs written there.
    pub(crate) own_defaults: HashMap<Arc<str>, Settings>,
    pub(crate) jobs: Vec<RawJob>,
    /// Those that stand in a list of their own, not with their job.
    pub(crate) dependencies: Vec<RawListed>,
    pub(crate) hosts: Vec<At<HttpHost>>,
    /// Of all groups.
    pub(crate) params: Vec<RawDecl>,
    pub(crate) secrets: Vec<RawSecret>,
    pub(crate) pools: Vec<RawPool>,
    pub(crate) owners: Vec<RawOwner>,
    pub(crate) schedules: Vec<RawSchedule>,
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
    pub(crate) code: At<String>,
    pub(crate) name: Option<At<String>>,
    pub(crate) email: Vec<At<String>>,
    pub(crate) lang: Option<At<Lang>>,
}

/// A data source.
#[derive(Debug)]
pub(crate) struct RawSource {
    pub(crate) name: At<String>,
    pub(crate) url: Option<At<String>>,
    pub(crate) password_env: Option<At<String>>,
    pub(crate) password_file: Option<At<String>>,
    pub(crate) max_parallel: Option<At<u32>>,
    pub(crate) procedures: Vec<(At<String>, At<String>)>,
    pub(crate) procedures_file: Option<At<String>>,
    pub(crate) access: RawGroupAccess,
}

/// Which groups may use a data source or a secret.
#[derive(Debug)]
pub(crate) struct RawGroupAccess {
    pub(crate) owner_group: Option<At<String>>,
    pub(crate) groups: Option<Vec<At<String>>>,
}

/// A group.
#[derive(Debug)]
pub(crate) struct RawGroup {
    pub(crate) code: At<String>,
    pub(crate) name: Option<At<String>>,
    pub(crate) batch_type: Option<At<String>>,
    pub(crate) owner: Option<At<String>>,
    pub(crate) notify_email: Vec<At<String>>,
    pub(crate) max_parallel: Option<At<u32>>,
    pub(crate) time_zone: Option<At<String>>,
    pub(crate) calendar: Option<At<String>>,
    pub(crate) params: Vec<RawDecl>,
    pub(crate) on_failure: OnFailure,
    pub(crate) batch_timeout_sec: Option<At<u32>>,
    pub(crate) warn_after_sec: Option<At<u32>>,
    pub(crate) notify: NotifyRules,
    pub(crate) due: Option<At<Due>>,
    pub(crate) slow_after: Option<At<Factor>>,
    pub(crate) held_after_sec: Option<At<u32>>,
}

/// A pool.
#[derive(Debug)]
pub(crate) struct RawPool {
    pub(crate) name: At<String>,
    pub(crate) slots: u32,
}

/// Pools or locks that a job uses, and how.
pub(crate) type Uses<T> = Vec<(At<String>, At<T>)>;

/// What a job may say itself or leave to `defaults`.
#[derive(Debug, Default)]
pub(crate) struct Settings {
    pub(crate) group: Option<At<String>>,
    pub(crate) source: Option<At<String>>,
    pub(crate) job_type: Option<At<String>>,
    pub(crate) timeout_sec: Option<At<u32>>,
    pub(crate) retry_count: Option<At<u32>>,
    pub(crate) retry_delay_sec: Option<At<u32>>,
    pub(crate) priority: Option<At<i32>>,
    pub(crate) idempotent: Option<At<bool>>,
    pub(crate) tx: Option<At<TxClass>>,
    pub(crate) on_unknown: Option<At<OnUnknown>>,
    pub(crate) is_active: Option<At<bool>>,
    pub(crate) schedule_time: Option<At<NaiveTime>>,
    pub(crate) notify_email: Option<Vec<At<String>>>,
    pub(crate) owner: Option<At<String>>,
    pub(crate) tags: Option<Vec<At<String>>>,
    pub(crate) transaction: Option<At<TransactionMode>>,
    pub(crate) interpreter: Option<At<String>>,
    pub(crate) working_dir: Option<At<String>>,
    pub(crate) trigger_rule: Option<At<TriggerRule>>,
    pub(crate) success: Option<Vec<RawRule>>,
    pub(crate) checks: Option<Vec<RawCheck>>,
    pub(crate) retry: Option<At<RetryPolicy>>,
    pub(crate) pools: Option<Uses<u32>>,
    pub(crate) locks: Option<Uses<LockMode>>,
    pub(crate) worker: Option<At<String>>,
    pub(crate) warn_after_sec: Option<At<u32>>,
    pub(crate) notify: Option<At<NotifyRules>>,
    pub(crate) start_by: Option<At<Due>>,
    pub(crate) due: Option<At<Due>>,
    pub(crate) slow_after: Option<At<Factor>>,
}

/// A job.
#[derive(Debug)]
pub(crate) struct RawJob {
    /// The group that it belongs to, by the job itself or the defaults of its file.
    pub(crate) group: Arc<str>,
    pub(crate) code: At<String>,
    pub(crate) name: Option<At<String>>,
    pub(crate) settings: Settings,
    pub(crate) depends_on: Vec<RawParent>,
    pub(crate) condition: Option<At<String>>,
    pub(crate) proc_name: Option<At<String>>,
    pub(crate) sql: Option<RawSql>,
    pub(crate) sql_file: Option<At<String>>,
    pub(crate) script: Option<At<String>>,
    pub(crate) script_file: Option<At<String>>,
    pub(crate) params: Option<At<Vec<RawParam>>>,
    pub(crate) aliases: Vec<At<String>>,
    pub(crate) http: Option<At<HttpCall>>,
    pub(crate) sensor: Option<At<Sensor>>,
    pub(crate) sub_batch: Option<At<SubBatch>>,
    pub(crate) executor: Option<At<ExecutorCall>>,
    pub(crate) for_each: Option<At<ForEach>>,
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
    pub(crate) name: At<String>,
    pub(crate) mode: Option<At<ParamMode>>,
    pub(crate) ty: ParamType,
    pub(crate) value: Option<At<String>>,
    pub(crate) required: Option<At<bool>>,
    pub(crate) secret: Option<At<bool>>,
}

/// A parameter of a group, or of all groups.
#[derive(Debug)]
pub(crate) struct RawDecl {
    /// For messages: `group month_end: parameter rate`.
    pub(crate) whose: String,
    pub(crate) name: At<String>,
    pub(crate) ty: ParamType,
    pub(crate) value: Option<At<String>>,
    pub(crate) required: Option<At<bool>>,
    pub(crate) secret: Option<At<bool>>,
}

/// Where a secret comes from.
#[derive(Debug)]
pub(crate) struct RawSecret {
    pub(crate) name: At<String>,
    pub(crate) env: Option<At<String>>,
    pub(crate) file: Option<At<String>>,
    pub(crate) sealed: Option<At<String>>,
    pub(crate) access: RawGroupAccess,
}

/// What a job waits for: an entry of `depends_on`.
#[derive(Debug)]
pub(crate) struct RawParent {
    /// Where the entry begins.
    pub(crate) at: Place,
    /// None: the batch of `group` as a whole.
    pub(crate) job: Option<At<String>>,
    /// Apart, because of a million entries most say nothing more.
    pub(crate) more: Option<Box<RawMore>>,
}

/// What an entry of `depends_on` says beside the job.
#[derive(Debug)]
pub(crate) struct RawMore {
    pub(crate) when: Option<At<String>>,
    pub(crate) group: Option<At<String>>,
    pub(crate) batch: Option<At<String>>,
    pub(crate) missing: Option<At<Missing>>,
    pub(crate) wait_sec: Option<At<u32>>,
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
    pub(crate) group: Arc<str>,
    pub(crate) job: Arc<str>,
    pub(crate) depends_on: At<String>,
    pub(crate) order: i32,
    pub(crate) when: Option<Box<At<String>>>,
}

/// A success rule.
#[derive(Debug)]
pub(crate) struct RawRule {
    pub(crate) rule: At<String>,
    pub(crate) grade: Option<At<Grade>>,
    pub(crate) message: Option<At<String>>,
}

/// A query of a check.
#[derive(Debug)]
pub(crate) struct RawQuery {
    pub(crate) source: Option<At<String>>,
    pub(crate) sql: Option<RawSql>,
    pub(crate) sql_file: Option<At<String>>,
}

/// A check.
#[derive(Debug)]
pub(crate) struct RawCheck {
    pub(crate) name: At<String>,
    pub(crate) query: RawQuery,
    pub(crate) expect: Option<RawExpect>,
    pub(crate) grade: Option<At<Grade>>,
}

/// What a check expects.
#[derive(Debug)]
pub(crate) enum RawExpect {
    ZeroRows,
    Between { at: Place, min: Option<At<String>>, max: Option<At<String>> },
    Equals { at: Place, query: RawQuery, tolerance: Option<At<String>> },
    Drift { max_percent: At<String> },
}
