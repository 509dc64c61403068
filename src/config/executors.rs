//! `[executors]`: this installation as the admin of XXL-JOB executors.

use super::{BadConfig, Config};
use crate::domain::access::network::Network;
use serde::Deserialize;
use std::path::PathBuf;

/// `[executors]`
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExecutorSettings {
    /// Addresses, or networks such as `10.0.0.0/8`.
    pub networks: Vec<String>,
    /// A PEM file; empty: the machine's authorities.
    pub tls_ca: PathBuf,
    /// A PEM file; empty: no certificate.
    pub tls_cert: PathBuf,
    /// A PEM file.
    pub tls_key: PathBuf,
}

impl Config {
    /// Networks in which executors may have addresses, besides the one they connect from.
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
