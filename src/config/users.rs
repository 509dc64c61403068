//! `[users]`: requirements on users with a password.

use super::BadConfig;
use anyhow::Result;
use serde::Deserialize;

/// `[users]`
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Users {
    /// optional or required.
    pub mfa: String,
}

impl Users {
    pub(super) fn check(&self) -> Result<()> {
        match self.mfa.as_str() {
            "optional" | "required" => Ok(()),
            other => {
                Err(BadConfig(format!("users.mfa is {other:?}; write optional or required")).into())
            }
        }
    }

    /// Whether every user with a password needs a second factor.
    pub fn requires_second_factor(&self) -> bool {
        self.mfa == "required"
    }
}
