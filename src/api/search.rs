//! The search over jobs, groups, batches and schedules.

use crate::api::caller::{ApiRequest, CallerNeeds};
use crate::api::problem::Problem;
use crate::api::route::{Nothing, Noun};
use crate::domain::access::Permission;
use crate::view::search::{SearchResult, find_all};
use schemars::JsonSchema;
use serde::Deserialize;

pub(super) fn routes() -> Noun {
    Noun::new("search").expensive().get(
        "search",
        "/search",
        CallerNeeds::Somewhere(Permission::View),
        "Search jobs, groups, batches and schedules; at most 20 of each, best matches first",
        search,
    )
}

/// The search text.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SearchQuery {
    /// Searched in codes, names, tags and aliases of jobs, codes and names of groups and schedules,
    /// and at the beginning of batch numbers. 1 to 100 characters.
    q: String,
}

async fn search(ask: ApiRequest, _: Nothing, which: SearchQuery) -> Result<SearchResult, Problem> {
    let text = which.q.trim();
    if text.is_empty() || text.chars().count() > 100 || text.contains('\0') {
        return Err(Problem::unreadable("q: write 1 to 100 characters"));
    }
    let seen = ask.caller()?.grants.places(Permission::View);
    let everywhere = ask.caller()?.grants.allow_everywhere(Permission::View);
    let mut tx = ask.house.app.db.begin_read().await.map_err(anyhow::Error::from)?;
    let mut found = find_all(&mut tx, text, seen.as_ref()).await?;
    // A schedule that opens nothing is shown to users who see all groups.
    found.schedules.retain(|schedule| everywhere || !schedule.groups.is_empty());
    Ok(found)
}
