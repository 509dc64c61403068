//! `[executors]`: this installation as the admin of XXL-JOB's executors.

use super::{BadConfig, Config};
use crate::domain::network::Network;
use serde::Deserialize;

/// `[executors]`
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Executors {
    /// Addresses, or networks as `10.0.0.0/8`.
    pub networks: Vec<String>,
}

impl Config {
    /// Where executors may say that they are, beside where they ask from.
    pub fn executor_networks(&self) -> Result<Vec<Network>, BadConfig> {
        let read = |text: &String| {
            Network::parse(text).ok_or_else(|| {
                BadConfig(format!(
                    "executors.networks has {text:?}; write an IP address or a network such as \
                     10.1.0.0/16"
                ))
            })
        };
        self.executors.networks.iter().map(read).collect()
    }
}
