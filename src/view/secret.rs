//! Stored secrets, of which nothing but the names is shown.

use crate::store::secret::Stored;
use schemars::JsonSchema;
use serde::Serialize;

/// A stored secret.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Named {
    /// Its name, as in `${secret.NAME}`.
    pub name: String,
    /// Who sealed it.
    pub sealed_by: String,
    /// When.
    pub update_time: String,
    /// The group it belongs to, which may always use it.
    pub owner_group: Option<String>,
    /// The other groups that may use it; none: no other when there is an owner, else every group.
    pub groups: Option<Vec<String>>,
}

impl From<&Stored> for Named {
    fn from(stored: &Stored) -> Self {
        let Stored { name, by, at, access } = stored;
        let groups = access.groups.as_ref();
        Self {
            name: name.clone(),
            sealed_by: by.clone(),
            update_time: at.to_string(),
            owner_group: access.owner_group.as_ref().map(ToString::to_string),
            groups: groups.map(|all| all.iter().map(ToString::to_string).collect()),
        }
    }
}
