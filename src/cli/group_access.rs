//! Options that set which groups may use a secret or an executor group.

use crate::domain::access::group_access::GroupAccess;
use crate::domain::id::GroupCode;
use anyhow::Result;
use clap::Args;

/// Which groups may use a secret or executors; when nothing is said, what is stored stays as it is.
#[derive(Args)]
pub(super) struct AccessArgs {
    /// The group it belongs to, which may always use it
    #[arg(long, value_name = "GROUP")]
    owner_group: Option<String>,
    /// Another group that may use it; may be repeated
    #[arg(long = "group", value_name = "GROUP")]
    groups: Vec<String>,
    /// Every group may use it, those of later too
    #[arg(long, conflicts_with_all = ["owner_group", "groups"])]
    every_group: bool,
}

impl AccessArgs {
    /// The access rule; `None` when no option is given.
    pub(super) fn access(self) -> Result<Option<GroupAccess>> {
        let owner_group = self.owner_group.as_deref().map(GroupCode::parse).transpose()?;
        let groups: Vec<GroupCode> =
            self.groups.iter().map(|code| GroupCode::parse(code)).collect::<Result<_, _>>()?;
        let groups = (!groups.is_empty()).then_some(groups);
        let is_given = self.every_group || owner_group.is_some() || groups.is_some();
        Ok(is_given.then_some(GroupAccess { owner_group, groups }))
    }
}
