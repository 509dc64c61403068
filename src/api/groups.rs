//! Groups: their definition, and their state.

use crate::api::authorize;
use crate::api::caller::{ApiRequest, CallerNeeds};
use crate::api::page::{self, Page};
use crate::api::path_params::GroupPath;
use crate::api::problem::Problem;
use crate::api::route::{Nothing, Noun};
use crate::domain::access::Permission;
use crate::view::group::{GroupDetail, GroupSummary, Groups};
use schemars::JsonSchema;
use serde::Deserialize;

pub(super) fn routes() -> Noun {
    let needs = CallerNeeds::Somewhere(Permission::View);
    Noun::new("groups")
        .get(
            "listGroups",
            "/groups",
            needs,
            "List the groups that the caller may see, by code",
            list_groups,
        )
        .get(
            "getGroup",
            "/groups/{group}",
            needs,
            "Get a group: definition, counts, latest batches",
            get_group,
        )
}

/// Filter for groups.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ListGroupsQuery {
    /// A text contained in code, name or owner.
    q: Option<String>,
    /// Of this type.
    #[serde(rename = "type")]
    batch_type: Option<String>,
    /// Page size, 1 to 500; default 50.
    limit: Option<u32>,
    /// `next` of the previous page.
    cursor: Option<String>,
}

async fn list_groups(
    ask: ApiRequest,
    _: Nothing,
    which: ListGroupsQuery,
) -> Result<Page<GroupSummary>, Problem> {
    let limit = page::limit(which.limit)?;
    let after: Option<String> = page::read_cursor(which.cursor.as_deref())?;
    let mut tx = ask.house.app.db.begin_read().await.map_err(anyhow::Error::from)?;
    let mut groups = Groups::read_groups(&mut tx).await?;
    let text = which.q.map(|q| q.to_lowercase());
    let of_type = |of: Option<&str>| which.batch_type.as_deref().is_none_or(|w| of == Some(w));
    groups.retain(|g| {
        ask.allows(Permission::View, &g.code)
            && after.as_deref().is_none_or(|after| g.code.as_str() > after)
            && of_type(g.batch_type.as_deref())
            && text.as_deref().is_none_or(|text| Groups::holds(g, text))
    });
    let items = groups.read_page(&mut tx, limit + 1).await?;
    Ok(Page::from_items(items, limit, |group| group.code.clone()))
}

async fn get_group(ask: ApiRequest, at: GroupPath, _: Nothing) -> Result<GroupDetail, Problem> {
    let code = authorize::group(&ask, Permission::View, &at.group)?;
    let mut tx = ask.house.app.db.begin_read().await.map_err(anyhow::Error::from)?;
    let found = GroupDetail::read_page(&mut tx, &code).await?;
    found.ok_or_else(|| Problem::not_found(format!("group {code}")))
}
