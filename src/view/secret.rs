//! Secrets without their values.

use crate::app::secrets::SecretListing;
use schemars::JsonSchema;
use serde::Serialize;

/// A secret.
#[derive(Debug, Serialize, JsonSchema)]
pub struct SecretDocument {
    /// The name, as in `${secret.NAME}`.
    pub name: String,
    /// Where its place is set: `secret_store` (the settings), `definition` or `stored`.
    pub origin: &'static str,
    /// A description of the place.
    pub place: String,
    /// Its state as seen by the answering process: `ready`, `previous_key`, `not_asked`,
    /// `overridden`, `fault`, `away`.
    pub state: &'static str,
    /// Why it cannot be read.
    pub fault: Option<String>,
    /// A remark, such as its version.
    pub remark: Option<String>,
    /// Who else may read it in its place.
    pub warning: Option<String>,
    /// Who sealed it; null if it is not stored.
    pub sealed_by: Option<String>,
    /// When it was sealed; null if it is not stored.
    pub update_time: Option<String>,
    /// Its uses: `job LOAD (month_end)`, `source ledger`.
    pub used_by: Vec<String>,
    /// The group that owns it, which may always use it.
    pub owner_group: Option<String>,
    /// Other groups that may use it; null: no other when there is an owner, else every group.
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
