//! `[executors]`: this installation as the admin of XXL-JOB's executors.

use super::{BadConfig, Config};
use crate::domain::access::network::Network;
use serde::Deserialize;
use std::path::PathBuf;

/// `[executors]`
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExecutorSettings {
    /// Addresses, or networks as `10.0.0.0/8`.
    pub networks: Vec<String>,
    /// A PEM file; empty is the machine's authorities.
    pub tls_ca: PathBuf,
    /// A PEM file; empty is no certificate.
    pub tls_cert: PathBuf,
    /// A PEM file.
    pub tls_key: PathBuf,
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
