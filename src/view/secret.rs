//! Secrets, of which nothing of the value is shown.

use crate::app::secrets::SecretListing;
use schemars::JsonSchema;
use serde::Serialize;

/// A secret.
#[derive(Debug, Serialize, JsonSchema)]
pub struct SecretDocument {
    /// Its name, as in `${secret.NAME}`.
    pub name: String,
    /// What names its place: `secret_store` (the settings), `definition` or `stored`.
    pub origin: &'static str,
    /// Where it comes from, in words.
    pub place: String,
    /// How it stands as the process sees it that answers: `ready`, `previous_key`, `not_asked`, `overridden`, `fault`, `away`.
    pub state: &'static str,
    /// Why it cannot be read.
    pub fault: Option<String>,
    /// What is known of it there, such as its version.
    pub remark: Option<String>,
    /// Who else may read it where it is.
    pub warning: Option<String>,
    /// Who sealed it; null of one that is not stored.
    pub sealed_by: Option<String>,
    /// When; null of one that is not stored.
    pub update_time: Option<String>,
    /// What uses it, in words: `job LOAD (month_end)`, `source ledger`.
    pub used_by: Vec<String>,
    /// The group it belongs to, which may always use it.
    pub owner_group: Option<String>,
    /// The other groups that may use it; none: no other when there is an owner, else every group.
    pub groups: Option<Vec<String>>,
}

impl From<&SecretListing> for SecretDocument {
    fn from(listing: &SecretListing) -> Self {
        let groups = listing.access.groups.as_ref();
        Self {
            name: listing.name.clone(),
            origin: listing.origin.as_str(),
            place: listing.place.clone(),
            state: listing.state.as_str(),
            fault: listing.state.fault().map(str::to_owned),
            remark: listing.remark.clone(),
            warning: listing.warning.clone(),
            sealed_by: listing.sealed_by.clone(),
            update_time: listing.sealed_at.map(|at| at.to_string()),
            used_by: listing.used_by.clone(),
            owner_group: listing.access.owner_group.as_ref().map(ToString::to_string),
            groups: groups.map(|all| all.iter().map(ToString::to_string).collect()),
        }
    }
}
