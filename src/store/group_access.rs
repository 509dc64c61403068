//! `owner_group` and `allowed_groups`: which groups may use a row of `data_source`, `sealed_secret`
//! or `executor_group`.

use crate::db::Row;
use crate::domain::access::group_access::GroupAccess;
use crate::domain::id::GroupCode;
use anyhow::{Context as _, Result};

/// The access rule of a row.
pub(super) fn access_of_row(row: &Row) -> Result<GroupAccess> {
    let owner_group =
        row.opt_text("owner_group")?.map(|code| GroupCode::parse(&code)).transpose()?;
    let groups = row.opt_text("allowed_groups")?.map(|text| serde_json::from_str(&text));
    Ok(GroupAccess { owner_group, groups: groups.transpose().context("read allowed_groups")? })
}

/// The text of the column `allowed_groups`.
pub(super) fn allowed_groups_text(access: &GroupAccess) -> Result<Option<String>> {
    Ok(access.groups.as_ref().map(serde_json::to_string).transpose()?)
}
