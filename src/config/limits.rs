//! `[limits]`: what one client, one user and all of them together may take of `serve`.

use super::{BadConfig, Config};
use serde::Deserialize;
use std::time::Duration;

/// `[limits]`
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LimitSettings {
    /// Connections at once of one listener.
    pub connections: usize,
    /// Connections at once of one address.
    pub connections_per_address: usize,
    /// Connections at once on which nobody has logged in.
    pub connections_without_login: usize,
    /// Seconds for the head of a request.
    pub header_timeout_sec: u64,
    /// Seconds between two requests.
    pub idle_timeout_sec: u64,
    /// Seconds for which a client may leave an answer unread.
    pub stalled_timeout_sec: u64,
    /// Log-ins at once.
    pub logins_at_once: usize,
    /// Expensive reads at once.
    pub expensive_reads: usize,
    /// Expensive reads at once of one user.
    pub expensive_reads_per_user: usize,
    /// Definitions read at once.
    pub definitions_at_once: usize,
    /// Bytes of one definition.
    pub definition_bytes: usize,
    /// Levels of nesting.
    pub definition_depth: usize,
    /// Values of one file.
    pub definition_nodes: usize,
    /// Values that aliases of one file repeat.
    pub definition_aliases: usize,
    /// Jobs.
    pub definition_jobs: usize,
    /// Items of one `for_each`.
    pub definition_for_each_items: usize,
    /// Seconds that reading may take.
    pub definition_sec: u64,
}

/// What connections of one listener may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionLimits {
    /// Connections at once.
    pub total: usize,
    /// Connections at once of one address; of IPv6, of one /64.
    pub per_address: usize,
    /// Connections at once on which nobody has proved who asks.
    pub without_login: usize,
    /// How long the head of a request may take.
    pub header_timeout: Duration,
    /// How long a connection may wait between two requests.
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

    /// What connections may take.
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
    /// Connections of the listener that answers probes alone.
    pub fn probe_connections(&self) -> ConnectionLimits {
        ConnectionLimits {
            total: 64,
            per_address: 32,
            without_login: 64,
            ..self.limits.connections()
        }
    }
}
