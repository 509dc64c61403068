//! Expiry of certificates and revocation lists, and when to warn about it.

use crate::domain::time::Millis;

/// Milliseconds per day.
const DAY_MS: i64 = 86_400_000;
/// How long before expiry a warning is given: long enough for a certificate that is ordered on
/// paper.
pub const WARN_BEFORE_MS: i64 = 30 * DAY_MS;
/// The same for a revocation list, which is renewed automatically every few days.
const WARN_OF_LIST_MS: i64 = DAY_MS;

/// What a certificate file contains.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CertificateRole {
    /// A certificate that this process presents.
    Own,
    /// A certificate authority.
    Authority,
    /// A revocation list, whose end is the announced time of the next one.
    RevocationList,
}

/// A file and the earliest expiry in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertificateEnd {
    /// The setting that names the file.
    pub setting: &'static str,
    /// Its content.
    pub role: CertificateRole,
    /// Subject: `CN=batch.bank.example`.
    pub subject: String,
    /// Expiry.
    pub ends_at: Millis,
}

impl CertificateEnd {
    /// Whether a warning is due.
    pub fn is_due(&self, now: Millis) -> bool {
        let before = match self.role {
            CertificateRole::Own | CertificateRole::Authority => WARN_BEFORE_MS,
            CertificateRole::RevocationList => WARN_OF_LIST_MS,
        };
        self.ends_at.since(now) < before
    }

    /// The warning, without a path or a name: `the certificate of http.tls_cert ends in 12 days`.
    pub fn describe(&self, now: Millis) -> String {
        let what = match self.role {
            CertificateRole::Own => "the certificate",
            CertificateRole::Authority => "an authority",
            CertificateRole::RevocationList => "the revocation list",
        };
        let left_ms = self.ends_at.since(now);
        let days = left_ms.abs() / DAY_MS;
        let span = match days {
            0 => "less than a day".to_owned(),
            1 => "1 day".to_owned(),
            days => format!("{days} days"),
        };
        let end = match (left_ms < 0, self.role) {
            (true, CertificateRole::RevocationList) => {
                format!("should have been replaced {span} ago")
            }
            (true, _) => format!("ended {span} ago"),
            (false, CertificateRole::RevocationList) => format!("should be replaced within {span}"),
            (false, _) => format!("ends in {span}"),
        };
        format!("{what} of {} {end}", self.setting)
    }
}

/// The files for which a warning is due, earliest expiry first.
pub fn due_ends(ends: &[CertificateEnd], now: Millis) -> Vec<&CertificateEnd> {
    let mut due: Vec<&CertificateEnd> = ends.iter().filter(|end| end.is_due(now)).collect();
    due.sort_by_key(|end| end.ends_at);
    due
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_told_thirty_days_before_and_after_the_end() {
        let now = Millis(1_700_000_000_000);
        let end = |role, days: i64| CertificateEnd {
            setting: "http.tls_cert",
            role,
            subject: "CN=batch".to_owned(),
            ends_at: now.plus_ms(days * DAY_MS + 1),
        };
        let own = |days| end(CertificateRole::Own, days);
        assert!(!own(30).is_due(now) && own(29).is_due(now) && own(-3).is_due(now));
        let said = |end: CertificateEnd| end.describe(now);
        assert_eq!(said(own(12)), "the certificate of http.tls_cert ends in 12 days");
        assert_eq!(said(own(0)), "the certificate of http.tls_cert ends in less than a day");
        assert_eq!(said(own(-4)), "the certificate of http.tls_cert ended 3 days ago");
        let list = |days| end(CertificateRole::RevocationList, days);
        assert!(!list(1).is_due(now) && list(0).is_due(now), "lists are made anew every few days");
        assert!(said(list(1)).ends_with("should be replaced within 1 day"), "{}", said(list(1)));
        assert!(
            said(list(-3)).contains("should have been replaced 2 days ago"),
            "{}",
            said(list(-3))
        );
        let all = [own(40), own(20), end(CertificateRole::Authority, 2)];
        let due: Vec<i64> = due_ends(&all, now).iter().map(|end| end.ends_at.since(now)).collect();
        assert_eq!(due, [2 * DAY_MS + 1, 20 * DAY_MS + 1]);
    }
}
