//! `[limits]`: resource limits of `serve` for one client, for one user and in total.

use super::{BadConfig, Config};
use serde::Deserialize;
use std::time::Duration;

/// `[limits]`
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LimitSettings {
    /// Maximum number of connections of one listener.
    pub connections: usize,
    /// Maximum number of connections from one address.
    pub connections_per_address: usize,
    /// Maximum number of connections without a login.
    pub connections_without_login: usize,
    /// Time limit for the head of a request, in seconds.
    pub header_timeout_sec: u64,
    /// Idle time between two requests, in seconds.
    pub idle_timeout_sec: u64,
    /// Seconds for which a client may leave an answer unread.
    pub stalled_timeout_sec: u64,
    /// Maximum number of concurrent logins.
    pub logins_at_once: usize,
    /// Maximum number of concurrent expensive reads.
    pub expensive_reads: usize,
    /// Maximum number of concurrent expensive reads of one user.
    pub expensive_reads_per_user: usize,
    /// Maximum number of definitions parsed concurrently.
    pub definitions_at_once: usize,
    /// Maximum size of one definition, in bytes.
    pub definition_bytes: usize,
    /// Maximum nesting depth.
    pub definition_depth: usize,
    /// Maximum number of values in one file.
    pub definition_nodes: usize,
    /// Maximum number of values repeated by aliases in one file.
    pub definition_aliases: usize,
    /// Maximum number of jobs.
    pub definition_jobs: usize,
    /// Maximum number of items of one `for_each`.
    pub definition_for_each_items: usize,
    /// Time limit of parsing, in seconds.
    pub definition_sec: u64,
}

/// Limits of the connections of one listener.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionLimits {
    /// Maximum number of connections.
    pub total: usize,
    /// Maximum number of connections from one address; for IPv6, from one /64.
    pub per_address: usize,
    /// Maximum number of unauthenticated connections.
    pub without_login: usize,
    /// Time limit for the head of a request.
    pub header_timeout: Duration,
    /// Idle time between two requests.
    pub idle_timeout: Duration,
    /// How long a client may leave an answer unread.
    pub stalled_timeout: Duration,
}

impl LimitSettings {
    pub(super) fn check(&self) -> Result<(), BadConfig> {
        let most = 1_000_000_000_u64;
        let number = |value: usize| u64::try_from(value).unwrap_or(u64::MAX);
        for (key, value, least, most) in [
            ("connections", number(self.connections), 8, 100_000),
            ("connections_per_address", number(self.connections_per_address), 2, 100_000),
            ("connections_without_login", number(self.connections_without_login), 2, 100_000),
            ("header_timeout_sec", self.header_timeout_sec, 1, 3_600),
            ("idle_timeout_sec", self.idle_timeout_sec, 1, 86_400),
            ("stalled_timeout_sec", self.stalled_timeout_sec, 1, 3_600),
            ("logins_at_once", number(self.logins_at_once), 1, 1_000),
            ("expensive_reads", number(self.expensive_reads), 1, 1_000),
            ("expensive_reads_per_user", number(self.expensive_reads_per_user), 1, 1_000),
            ("definitions_at_once", number(self.definitions_at_once), 1, 100),
            ("definition_bytes", number(self.definition_bytes), 1_000, most),
            // Deeper texts would overflow the stack.
            ("definition_depth", number(self.definition_depth), 8, 100),
            ("definition_nodes", number(self.definition_nodes), 1_000, most),
            ("definition_aliases", number(self.definition_aliases), 1, most),
            ("definition_jobs", number(self.definition_jobs), 1, most),
            ("definition_for_each_items", number(self.definition_for_each_items), 1, most),
            ("definition_sec", self.definition_sec, 1, 3_600),
        ] {
            if !(least..=most).contains(&value) {
                return Err(BadConfig(format!(
                    "limits.{key} is {value}; it may be {least} to {most}"
                )));
            }
        }
        Ok(())
    }

    /// The limits of connections.
    pub fn connections(&self) -> ConnectionLimits {
        ConnectionLimits {
            total: self.connections,
            per_address: self.connections_per_address,
            without_login: self.connections_without_login,
            header_timeout: Duration::from_secs(self.header_timeout_sec),
            idle_timeout: Duration::from_secs(self.idle_timeout_sec),
            stalled_timeout: Duration::from_secs(self.stalled_timeout_sec),
        }
    }
}

impl Config {
    /// The limits of the listener for probes.
    pub fn probe_connections(&self) -> ConnectionLimits {
        ConnectionLimits {
            total: 64,
            per_address: 32,
            without_login: 64,
            ..self.limits.connections()
        }
    }
}
