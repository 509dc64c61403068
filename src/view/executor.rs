//! Executor groups, with their executors.

use crate::app::executor_groups::GroupSeen;
use crate::domain::executor::{Addressing, GONE_MS, GluePolicy, Registration, Spoken};
use crate::domain::time::Millis;
use crate::store::executor_run::RunSeen;
use schemars::JsonSchema;
use serde::Serialize;

/// An executor group. Its token is never shown.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ExecutorGroupDocument {
    /// The app name under which executors register.
    pub app_name: String,
    /// The display name.
    pub title: String,
    /// The addresses of its executors, when set by an administrator; null when they register
    /// themselves.
    pub addresses: Option<Vec<String>>,
    /// Whether scripts may be sent to them.
    pub allows_glue: bool,
    /// The group of jobs that owns it, which may always use it.
    pub owner_group: Option<String>,
    /// Other groups that may use it; null: no other when there is an owner, else every group.
    pub groups: Option<Vec<String>>,
    /// Registrations, including executors that are no longer alive.
    pub registrations: Vec<RegistrationDocument>,
    /// Number of living executors.
    pub alive: usize,
    /// Number of unfinished runs.
    pub open_runs: i64,
    /// When it was created, RFC 3339.
    pub create_time: String,
    /// When it was last changed.
    pub update_time: String,
}

/// A registration of an executor.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct RegistrationDocument {
    /// The URL.
    pub address: String,
    /// Whether it is alive: it registered within the last 90 seconds.
    pub is_alive: bool,
    /// The protocol dialect: `run` for XXL-JOB up to 3.4, `trigger` for 3.5.
    pub speaks: &'static str,
    /// Since when it has been registered without a gap.
    pub since: String,
    /// When it last registered.
    pub seen: String,
}

/// The document of a group.
pub fn document(seen: &GroupSeen, now: Millis) -> ExecutorGroupDocument {
    let group = &seen.stored.group;
    let groups = group.access.groups.as_ref();
    let registrations: Vec<_> = seen.registered.iter().map(|r| registration(r, now)).collect();
    ExecutorGroupDocument {
        app_name: group.app_name.to_string(),
        title: group.title.clone(),
        addresses: match &group.addressing {
            Addressing::Registered => None,
            Addressing::Fixed(all) => Some(all.clone()),
        },
        allows_glue: group.glue == GluePolicy::Allowed,
        owner_group: group.access.owner_group.as_ref().map(ToString::to_string),
        groups: groups.map(|all| all.iter().map(ToString::to_string).collect()),
        alive: registrations.iter().filter(|r| r.is_alive).count(),
        registrations,
        open_runs: seen.open_runs,
        create_time: seen.stored.create_time.to_string(),
        update_time: seen.stored.update_time.to_string(),
    }
}

fn registration(there: &Registration, now: Millis) -> RegistrationDocument {
    RegistrationDocument {
        address: there.address.clone(),
        is_alive: there.seen >= now.plus_ms(-GONE_MS),
        speaks: match there.dialect {
            Spoken::Run => "run",
            Spoken::Trigger => "trigger",
        },
        since: there.since.to_string(),
        seen: there.seen.to_string(),
    }
}

/// A run sent to an executor.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ExecutorRunDetail {
    /// The log id that its executor knows.
    pub log_id: i64,
    /// The key of its batch.
    pub batch_id: i64,
    /// The batch number.
    pub batch_no: String,
    /// The group of its job.
    pub group: String,
    /// The job code.
    pub job_code: String,
    /// The attempt number.
    pub attempt: i64,
    /// The executor.
    pub address: Option<String>,
    /// The handler; null for a script.
    pub handler: Option<String>,
    /// `BEAN`, or the language of a script.
    pub glue_type: String,
    /// Index of the part of a broadcast, from 0.
    pub shard_index: i64,
    /// Number of parts.
    pub shard_total: i64,
    /// WAITING, ASKED, RUNNING, TOLD, DONE or UNCONFIRMED.
    pub status: String,
    /// Why it is being stopped: KILLED, TIMED_OUT or COVERED.
    pub stopping: Option<String>,
    /// When it was sent, RFC 3339.
    pub trigger_time: Option<String>,
    /// The code that its executor reported at the end.
    pub handle_code: Option<i64>,
    /// The message of its executor.
    pub handle_msg: Option<String>,
    /// How it ended when its executor did not report it.
    pub result: Option<String>,
    /// When it was created.
    pub create_time: String,
    /// When its end was known.
    pub end_time: Option<String>,
}

/// The document of a run.
pub fn run_document(run: &RunSeen) -> ExecutorRunDetail {
    ExecutorRunDetail {
        log_id: run.log_id,
        batch_id: run.batch_id,
        batch_no: run.batch_no.clone(),
        group: run.group.clone(),
        job_code: run.job_code.clone(),
        attempt: run.attempt,
        address: run.address.clone(),
        handler: run.handler.clone(),
        glue_type: run.glue_type.clone(),
        shard_index: run.shard.0,
        shard_total: run.shard.1,
        status: run.status.clone(),
        stopping: run.stopping.clone(),
        trigger_time: run.trigger_time.map(|at| at.to_string()),
        handle_code: run.handle_code,
        handle_msg: run.handle_msg.clone(),
        result: run.result.clone(),
        create_time: run.create_time.to_string(),
        end_time: run.end_time.map(|at| at.to_string()),
    }
}
