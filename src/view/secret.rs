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
}

impl From<&Stored> for Named {
    fn from(stored: &Stored) -> Self {
        let Stored { name, by, at } = stored;
        Self { name: name.clone(), sealed_by: by.clone(), update_time: at.to_string() }
    }
}
