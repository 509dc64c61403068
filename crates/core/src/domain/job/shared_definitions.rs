//! Declarations shared by all jobs of a definition: owners and sources of secrets.

use crate::domain::access::group_access::GroupAccess;
use crate::domain::text::lang::Lang;
use serde::{Deserialize, Serialize};

/// An owner of jobs, groups and batches.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Owner {
    /// Unique code, the value of `owner`.
    pub code: String,
    /// Display name.
    pub name: String,
    /// Mail addresses of the owner.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub email: Vec<String>,
    /// Language of its mails; none: the language of the settings.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lang: Option<Lang>,
}

/// The origin of the value of `${secret.NAME}`; never the value itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SecretSource {
    /// Unique name.
    pub name: String,
    /// Origin of the value.
    #[serde(flatten)]
    pub from: SecretFrom,
    /// Groups that may use it.
    #[serde(flatten)]
    pub access: GroupAccess,
}

/// Origin of a secret.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SecretFrom {
    /// An environment variable of Procession's process.
    Env(String),
    /// The first line of a file.
    File(String),
    /// Encrypted by `procession secret`, decrypted with the installation's key.
    Sealed(String),
}
