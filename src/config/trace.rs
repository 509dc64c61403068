//! `[trace]`: the collector of traces.

use super::notify::secret;
use super::{BadConfig, Config};
use crate::engine::host_name;
use crate::trace::{Exporter, TraceOptions};
use secrecy::SecretString;
use serde::Deserialize;
use std::path::PathBuf;
use std::time::Duration;

/// The environment variable with headers for the collector, if no file is named.
const HEADERS: &str = "PROCESSION_TRACE_HEADERS";
/// The environment variable with the password of the metadata database.
const PASSWORD: &str = "PROCESSION_DB_PASSWORD";

/// `[trace]`
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Trace {
    /// Address of a collector; empty: none.
    pub endpoint: String,
    /// The file with headers; empty: the environment.
    pub headers_file: PathBuf,
    /// The service name of the installation.
    pub service: String,
    /// Time limit in seconds.
    pub timeout_sec: u32,
}

impl Trace {
    pub(super) fn check(&self) -> Result<(), BadConfig> {
        if self.timeout_sec == 0 {
            return Err(BadConfig("trace.timeout_sec is 0; it must be 1 or more".to_owned()));
        }
        if self.service.trim().is_empty() {
            return Err(BadConfig("trace.service is empty; say \"procession\"".to_owned()));
        }
        Ok(())
    }
}

impl Config {
    /// The exporter to the collector; `None` without one.
    pub fn exporter(&self) -> Result<Option<Exporter>, BadConfig> {
        if self.trace.endpoint.trim().is_empty() {
            return Ok(None);
        }
        let node = match self.node.name.as_str() {
            "" => host_name(),
            name => name.to_owned(),
        };
        let exporter = Exporter::open_exporter(TraceOptions {
            endpoint: self.trace.endpoint.clone(),
            headers: secret("trace.headers_file", &self.trace.headers_file, HEADERS)?,
            service: self.trace.service.clone(),
            node,
            timeout: Duration::from_secs(self.trace.timeout_sec.into()),
        });
        exporter.map(Some).map_err(|error| BadConfig(error.to_string()))
    }

    /// The password of the metadata database, from its file or from the environment.
    pub fn find_password(&self) -> Result<Option<SecretString>, BadConfig> {
        secret("database.password_file", &self.database.password_file, PASSWORD)
    }
}
