//! Which permissions a definition or a change requires, and when a second person must agree.

pub mod access_rules;
pub mod four_eyes;
pub mod required_permissions;
