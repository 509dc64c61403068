//! Delivery guarantees of a body: its transaction class, the policy for an unknown outcome, and the
//! idempotency key.

use crate::domain::id::{BatchNo, GroupCode, JobCode};
use ring::digest::{SHA256, digest};
use serde::{Deserialize, Serialize};
use std::fmt;

/// How the effect of a body is tied to the record that it happened.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, Default,
)]
#[serde(rename_all = "lowercase")]
pub enum TxClass {
    /// The body runs on Procession's own database: effect and state change are one transaction, so
    /// it happens exactly once.
    Same,
    /// The body runs in a transaction of another database, together with a row of
    /// `procession_ledger` there, which is read back after a crash: exactly once.
    Ledger,
    /// Not tied: at most once, or at least once when the job is declared idempotent.
    #[default]
    None,
}

impl TxClass {
    /// Every class, strongest first.
    pub const ALL: [Self; 3] = [Self::Same, Self::Ledger, Self::None];

    /// The word in definitions.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Same => "same",
            Self::Ledger => "ledger",
            Self::None => "none",
        }
    }

    /// Parses the word.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|class| class.as_str() == word)
    }

    /// Whether the body runs in one transaction with a record of it, so that its outcome can be
    /// looked up, and a repeated start has no second effect.
    pub fn is_recorded(self) -> bool {
        self != Self::None
    }

    /// For `skip_serializing_if`.
    pub fn is_none(&self) -> bool {
        *self == Self::None
    }
}

/// Policy for an attempt of unknown outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OnUnknown {
    /// It stays UNKNOWN until an operator decides.
    Hold,
    /// It is retried like a failure; permitted only for jobs that may run twice.
    Retry,
    /// It becomes FAILED at once.
    Fail,
}

impl OnUnknown {
    /// Every policy.
    pub const ALL: [Self; 3] = [Self::Hold, Self::Retry, Self::Fail];

    /// The word in definitions.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Hold => "hold",
            Self::Retry => "retry",
            Self::Fail => "fail",
        }
    }

    /// Parses the word.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|policy| policy.as_str() == word)
    }
}

/// Maximum length of a key in characters of any script: the width of `procession_ledger.idem_key`.
const LONGEST_KEY: usize = 190;

/// How the key of a row names its batch. A row keeps its form, because its effect is recorded in
/// the ledger under that key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyForm<'a> {
    /// `installation/group/batch_no/job_code/run`: two groups may have the same batch number and code.
    WithGroup(&'a GroupCode, &'a BatchNo),
    /// `installation/batch_no/job_code/run`: rows written when codes were unique over all groups.
    WithoutGroup(&'a BatchNo),
}

/// The idempotency key of a job in a batch: the same for every attempt of one run, and a new one
/// after a rerun of a job known to have ended. At most 190 characters, of any script.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct IdemKey(String);

impl IdemKey {
    /// The key of run `run_no` of a job. The installation part separates two Procession
    /// installations that work on the same data source.
    pub fn for_run(installation: &str, form: KeyForm<'_>, job: &JobCode, run_no: u32) -> Self {
        let key = match form {
            KeyForm::WithGroup(group, no) => format!("{installation}/{group}/{no}/{job}/{run_no}"),
            KeyForm::WithoutGroup(no) => format!("{installation}/{no}/{job}/{run_no}"),
        };
        if key.chars().count() <= LONGEST_KEY {
            return Self(key);
        }
        // The column of the ledger holds no more. No name contains a '#'.
        let digest = digest(&SHA256, key.as_bytes());
        let hex: String =
            digest.as_ref().iter().take(20).map(|byte| format!("{byte:02x}")).collect();
        Self(format!("{installation}/#{hex}/{run_no}"))
    }

    /// Its text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for IdemKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_round_trip() {
        for class in TxClass::ALL {
            assert_eq!(TxClass::parse(class.as_str()), Some(class));
        }
        for policy in OnUnknown::ALL {
            assert_eq!(OnUnknown::parse(policy.as_str()), Some(policy));
        }
        assert_eq!(TxClass::parse("both"), None);
    }

    #[test]
    fn a_key_names_installation_batch_job_and_run() {
        let no = BatchNo::parse("202407").expect("number");
        let group = GroupCode::parse("gl").expect("group");
        let job = JobCode::parse("LOAD_GL").expect("code");
        let key = |form| IdemKey::for_run("3f2a9c1b77de", form, &job, 2).to_string();
        assert_eq!(key(KeyForm::WithGroup(&group, &no)), "3f2a9c1b77de/gl/202407/LOAD_GL/2");
        assert_eq!(key(KeyForm::WithoutGroup(&no)), "3f2a9c1b77de/202407/LOAD_GL/2");
    }

    #[test]
    fn a_key_that_is_too_long_for_a_ledger_is_a_digest() {
        let no = BatchNo::parse(&"9".repeat(50)).expect("number");
        let job = JobCode::parse(&"账".repeat(100)).expect("code");
        let key = |group: &str| {
            let group = GroupCode::parse(&group.repeat(50)).expect("group");
            IdemKey::for_run("3f2a9c1b77de", KeyForm::WithGroup(&group, &no), &job, u32::MAX)
                .to_string()
        };
        let (a, b) = (key("a"), key("b"));
        assert!(a.starts_with("3f2a9c1b77de/#") && a.ends_with("/4294967295"), "{a}");
        assert!(a.chars().count() <= LONGEST_KEY && a != b, "{a} {b}");
    }
}
