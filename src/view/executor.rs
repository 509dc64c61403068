//! Groups of executors, and who of each is there.

use crate::app::executor_groups::GroupSeen;
use crate::domain::executor::{Addressing, GONE_MS, Glue, Registration, Spoken};
use crate::domain::time::Millis;
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
    let registrations: Vec<_> = seen.registered.iter().map(|r| registration(r, now)).collect();
    ExecutorGroupDocument {
        app_name: group.app_name.to_string(),
        title: group.title.clone(),
        addresses: match &group.addressing {
            Addressing::Registered => None,
            Addressing::Fixed(all) => Some(all.clone()),
        },
        allows_glue: group.glue == Glue::Allowed,
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
        is_alive: there.seen >= now.plus(-GONE_MS),
        speaks: match there.dialect {
            Spoken::Run => "run",
            Spoken::Trigger => "trigger",
        },
        since: there.since.to_string(),
        seen: there.seen.to_string(),
    }
}
