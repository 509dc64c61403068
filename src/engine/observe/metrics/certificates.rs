//! Metrics of certificate expiry.

use super::{Seconds, add_metric};
use crate::domain::access::certificate_expiry::CertificateEnd;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;
use std::sync::{PoisonError, RwLock};

pub(super) struct Certificates {
    expiry: Family<[(&'static str, &'static str); 1], Seconds>,
    ends: RwLock<Vec<CertificateEnd>>,
}

impl Certificates {
    pub(super) fn register(to: &mut Registry) -> Self {
        let help =
            "When the certificate or revocation list of a setting ends, in seconds since 1970";
        let expiry =
            add_metric(to, "certificate_expiry_timestamp_seconds", help, Family::default());
        Self { expiry, ends: RwLock::default() }
    }

    /// Sets the values of the last check.
    pub(super) fn set(&self, ends: Vec<CertificateEnd>) {
        self.expiry.clear();
        for end in &ends {
            // Two secret stores share a setting: the first expiry counts.
            let gauge = self.expiry.get_or_create(&[("setting", end.setting)]);
            let (seconds, before) = (seconds(end), gauge.get());
            if before == 0.0 || seconds < before {
                gauge.set(seconds);
            }
        }
        *self.ends.write().unwrap_or_else(PoisonError::into_inner) = ends;
    }

    pub(super) fn list_ends(&self) -> Vec<CertificateEnd> {
        self.ends.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Exact for any date that a certificate can hold.
#[expect(clippy::cast_precision_loss, reason = "seconds until the year 9999 fit")]
fn seconds(end: &CertificateEnd) -> f64 {
    (end.ends_at.0 / 1_000) as f64
}
