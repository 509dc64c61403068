//! The processes that share the database.

use crate::api::authorize;
use crate::api::caller::{ApiRequest, CallerNeeds};
use crate::api::page::Page;
use crate::api::problem::Problem;
use crate::api::route::{Nothing, Noun};
use crate::domain::access::Permission;
use crate::domain::id::GroupCode;
use crate::domain::job::script_isolation::ANY_GROUP;
use crate::view::node::{ENDED_MS, Members, NodeDetail};
use schemars::JsonSchema;
use serde::Deserialize;

pub(super) fn routes() -> Noun {
    let needs = CallerNeeds::Somewhere(Permission::View);
    Noun::new("nodes").get(
        "listNodes",
        "/nodes",
        needs,
        "List the nodes: their roles and what each runs",
        list_nodes,
    )
}

/// Filter for processes.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ListNodesQuery {
    /// Include those that ended within the last day.
    #[serde(default)]
    all: bool,
}

async fn list_nodes(
    ask: ApiRequest,
    _: Nothing,
    which: ListNodesQuery,
) -> Result<Page<NodeDetail>, Problem> {
    let now = authorize::now(&ask).await?;
    let mut tx = ask.house.app.db.begin_read().await.map_err(anyhow::Error::from)?;
    let members = Members::read_members(&mut tx, if which.all { ENDED_MS } else { 0 }, now).await?;
    let mut nodes = members.details();
    nodes.iter_mut().for_each(|node| hide_other_groups(&ask, node));
    Ok(Page::whole(nodes))
}

/// Removes script users and limits of groups that the caller does not see.
fn hide_other_groups(ask: &ApiRequest, node: &mut NodeDetail) {
    let Some(report) = &mut node.scripts else { return };
    for by_group in [&mut report.run_as, &mut report.limits] {
        by_group.retain(|code, _| {
            let group = GroupCode::parse(code);
            code == ANY_GROUP || group.is_ok_and(|group| ask.allows(Permission::View, &group))
        });
    }
}
