//! How often a body's effect may happen: its class, what is done when nobody can tell whether it
//! did, and the key by which it is known.

use crate::domain::id::{BatchNo, JobCode};
use serde::{Deserialize, Serialize};
use std::fmt;

/// What ties a body's effect to the record that it happened.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, Default,
)]
#[serde(rename_all = "lowercase")]
pub enum TxClass {
    /// It runs on Procession's own database: effect and state change are one transaction, so it
    /// happens exactly once.
    Same,
    /// It runs in a transaction of another database, together with a row of `procession_ledger`
    /// there, which is read back after a crash: exactly once.
    Ledger,
    /// Nothing: at most once, or at least once when it is declared idempotent.
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

    /// The class a word means.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|class| class.as_str() == word)
    }

    /// Whether the body runs in one transaction with a record of it, so that what became of it can
    /// be looked up, and starting it again does nothing twice.
    pub fn is_recorded(self) -> bool {
        self != Self::None
    }

    /// For `skip_serializing_if`.
    pub(crate) fn is_none(&self) -> bool {
        *self == Self::None
    }
}

/// What is done when the outcome of a try cannot be learnt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OnUnknown {
    /// It stays UNKNOWN until an operator decides.
    Hold,
    /// It is tried again as a failure would be; only what may happen twice can say so.
    Retry,
    /// It is FAILED at once.
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

    /// The policy a word means.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|policy| policy.as_str() == word)
    }
}

/// The idempotency key of a job in a batch: the same for every try of one run, another one after a
/// rerun of something that is known to have ended. At most 190 characters, in any script.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct IdemKey(String);

impl IdemKey {
    /// `installation/batch_no/job_code/run`; the installation keeps two Processions apart that work
    /// on the same data source.
    pub fn of(installation: &str, batch_no: &BatchNo, job: &JobCode, run_no: u32) -> Self {
        Self(format!("{installation}/{batch_no}/{job}/{run_no}"))
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
        let (no, job) = (BatchNo::parse("202407"), JobCode::parse("LOAD_GL"));
        let key = IdemKey::of("3f2a9c1b77de", &no.expect("number"), &job.expect("code"), 2);
        assert_eq!(key.as_str(), "3f2a9c1b77de/202407/LOAD_GL/2");
    }
}
