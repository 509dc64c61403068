//! Parses which groups may use a secret or an executor group from requests.

use crate::api::problem::Problem;
use crate::domain::access::group_access::GroupAccess;
use crate::domain::id::GroupCode;

/// The access rule of a request; `None` when it mentions no groups.
pub(super) fn requested_access(
    owner_group: Option<&String>,
    groups: Option<&Vec<String>>,
    every_group: bool,
) -> Result<Option<GroupAccess>, Problem> {
    let is_limited = owner_group.is_some() || groups.is_some();
    if every_group && is_limited {
        return Err(Problem::refused("every_group: leave it out, or owner_group and groups"));
    }
    if !every_group && !is_limited {
        return Ok(None);
    }
    let code = |text: &String| GroupCode::parse(text).map_err(anyhow::Error::from);
    let owner_group = owner_group.map(code).transpose()?;
    let groups = groups.map(|all| all.iter().map(code).collect());
    Ok(Some(GroupAccess { owner_group, groups: groups.transpose()? }))
}
