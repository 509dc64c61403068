//! Checks when the certificates of this process expire, so that operators know a month before.

use crate::app::App;
use crate::config::Config;
use crate::domain::access::certificate_expiry::{CertificateEnd, CertificateRole, due_ends};
use crate::domain::time::Millis;
use crate::engine::clock::Clock;
use crate::engine::observe::metrics::Meter;
use crate::outbound::NamedFile;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// Check interval. A listener loads a new certificate within 5 s; metrics are read every 15 to 60
/// s.
const EVERY: Duration = Duration::from_secs(60);
/// Minimum interval between two warnings of the same expiry, in milliseconds.
const WARN_AGAIN_MS: i64 = 86_400_000;

/// Checks the certificates while this process serves.
pub struct CertificateWatch {
    config: Config,
    clock: Clock,
    meter: Arc<Meter>,
}

impl App {
    /// The certificate watch of a process with these metrics.
    pub fn certificate_watch(&self, meter: Arc<Meter>) -> CertificateWatch {
        CertificateWatch { config: self.config.clone(), clock: self.clock.clone(), meter }
    }
}

impl CertificateWatch {
    /// Runs until `stop` is cancelled.
    pub async fn run(self, stop: CancellationToken) {
        let files = self.config.certificate_files();
        if files.is_empty() {
            return;
        }
        let mut warned_at: Option<Millis> = None;
        let mut warned: Vec<CertificateEnd> = Vec::new();
        loop {
            let files = files.clone();
            let ends = tokio::task::spawn_blocking(move || read_ends(&files)).await;
            let (ends, now) = (ends.unwrap_or_default(), self.clock.now());
            let due: Vec<CertificateEnd> = due_ends(&ends, now).into_iter().cloned().collect();
            if due != warned || warned_at.is_none_or(|at| now.since(at) >= WARN_AGAIN_MS) {
                for end in &due {
                    tracing::warn!("{} ({}); renew it", end.describe(now), end.subject);
                }
                (warned, warned_at) = (due, Some(now));
            }
            self.meter.set_certificates(ends);
            tokio::select! {
                () = stop.cancelled() => return,
                () = tokio::time::sleep(EVERY) => {}
            }
        }
    }
}

/// The first expiry in each file. Unreadable files are reported by the part that uses them.
fn read_ends(files: &[(NamedFile, CertificateRole)]) -> Vec<CertificateEnd> {
    let end = |(file, role): &(NamedFile, CertificateRole)| {
        let pem = file.read_bytes().ok()?;
        let ends = match role {
            CertificateRole::RevocationList => file.list_ends(&pem),
            CertificateRole::Own | CertificateRole::Authority => file.certificate_ends(&pem),
        };
        let (subject, seconds) = ends.ok()?.into_iter().min_by_key(|(_, seconds)| *seconds)?;
        let ends_at = Millis(seconds.saturating_mul(1_000));
        Some(CertificateEnd { setting: file.setting, role: *role, subject, ends_at })
    };
    files.iter().filter_map(end).collect()
}
