//! The processes that share the database.

use crate::api::authorize;
use crate::api::caller::{Ask, Needs};
use crate::api::page::Page;
use crate::api::problem::Problem;
use crate::api::route::{Nothing, Noun};
use crate::domain::access::Permission;
use crate::view::node::{ENDED_MS, Members};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

pub(super) fn noun() -> Noun {
    let needs = Needs::Somewhere(Permission::View);
    Noun::new("nodes").get("/nodes", needs, "The processes: what they are for, what they run", list)
}

/// Which processes.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Which {
    /// Those that ended within the last day as well.
    #[serde(default)]
    all: bool,
}

async fn list(ask: Ask, _: Nothing, which: Which) -> Result<Page<Value>, Problem> {
    let now = authorize::now(&ask).await?;
    let mut tx = ask.house.app.db.read().await.map_err(anyhow::Error::from)?;
    let members = Members::read(&mut tx, if which.all { ENDED_MS } else { 0 }, now).await?;
    Ok(Page::whole(members.as_json()))
}
