//! What a definition declares for all its jobs: who answers for them, where secrets come from.

use crate::domain::access::group_access::GroupAccess;
use crate::domain::text::lang::Lang;
use serde::{Deserialize, Serialize};

/// Who answers for jobs, groups and batches.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Owner {
    /// Unique code, as `owner` names it.
    pub code: String,
    /// Name for people.
    pub name: String,
    /// Where mails to it go.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub email: Vec<String>,
    /// The language it is written to in; none: that of the settings.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lang: Option<Lang>,
}

/// Where the value of `${secret.NAME}` comes from; never the value itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SecretSource {
    /// Unique name.
    pub name: String,
    /// Where from.
    #[serde(flatten)]
    pub from: SecretFrom,
    /// Which groups may use it.
    #[serde(flatten)]
    pub access: GroupAccess,
}

/// Where a secret comes from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SecretFrom {
    /// An environment variable of Procession's process.
    Env(String),
    /// The first line of a file.
    File(String),
    /// Sealed by `procession secret`, opened with the installation's key.
    Sealed(String),
}
