//! Groups of executors, and who of each is there.

use crate::app::executor_groups::GroupSeen;
use crate::domain::executor::{Addressing, GONE_MS, GluePolicy, Registration, Spoken};
use crate::domain::time::Millis;
use crate::store::executor_run::RunSeen;
use schemars::JsonSchema;
use serde::Serialize;

/// A group of executors. Its token is never shown.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ExecutorGroupDocument {
    /// Its name; what executors register under.
    pub app_name: String,
    /// Its name for people.
    pub title: String,
    /// Where its executors are, when an administrator says so; none when they say it themselves.
    pub addresses: Option<Vec<String>>,
    /// Whether scripts may be sent to them.
    pub allows_glue: bool,
    /// The group of jobs that they belong to, which may always use them.
    pub owner_group: Option<String>,
    /// The other groups that may use them; none: no other when there is an owner, else every group.
    pub groups: Option<Vec<String>>,
    /// Who registered, also those not heard of any more.
    pub registrations: Vec<RegistrationDocument>,
    /// How many of them are there.
    pub alive: usize,
    /// Runs that are not over.
    pub open_runs: i64,
    /// Since when it is there, RFC 3339.
    pub create_time: String,
    /// When it was changed last.
    pub update_time: String,
}

/// Where an executor said that it is.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct RegistrationDocument {
    /// Its URL.
    pub address: String,
    /// Whether it is there: it was heard of within 90 seconds.
    pub is_alive: bool,
    /// `run` as XXL-JOB up to 3.4 has it, `trigger` as 3.5.
    pub speaks: &'static str,
    /// Since when it has been there without a gap.
    pub since: String,
    /// When it was heard of last.
    pub seen: String,
}

/// A group as it is shown.
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

/// A run that an executor was asked for.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ExecutorRunDetail {
    /// The key by which its executor knows it.
    pub log_id: i64,
    /// The batch of its job.
    pub batch_id: i64,
    /// The number of that batch.
    pub batch_no: String,
    /// The group of its job.
    pub group: String,
    /// Its job.
    pub job_code: String,
    /// Which start of the job.
    pub attempt: i64,
    /// Where it was sent.
    pub address: Option<String>,
    /// The handler; none of a script.
    pub handler: Option<String>,
    /// `BEAN`, or the language of a script.
    pub glue_type: String,
    /// Which part of a broadcast, from 0.
    pub shard_index: i64,
    /// Of how many.
    pub shard_total: i64,
    /// WAITING, ASKED, RUNNING, TOLD, DONE or UNCONFIRMED.
    pub status: String,
    /// Why it is being stopped: KILLED, TIMED_OUT or COVERED.
    pub stopping: Option<String>,
    /// When it was sent, RFC 3339.
    pub trigger_time: Option<String>,
    /// What its executor told of its end.
    pub handle_code: Option<i64>,
    /// Its words.
    pub handle_msg: Option<String>,
    /// How it ended when its executor did not tell.
    pub result: Option<String>,
    /// When it was written.
    pub create_time: String,
    /// When its end was known.
    pub end_time: Option<String>,
}

/// A run as it is shown.
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
