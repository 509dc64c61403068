//! Data sources, and the settings of this process.

use crate::api::caller::{ApiRequest, CallerNeeds};
use crate::api::page::Page;
use crate::api::problem::Problem;
use crate::api::route::{Nothing, Noun};
use crate::domain::access::Permission;
use crate::store;
use crate::view::source::{SourceDetail, SourceUses};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;

pub(super) fn routes() -> Noun {
    Noun::new("sources and settings")
        .expensive()
        .get(
            "listSources",
            "/sources",
            CallerNeeds::Somewhere(Permission::View),
            "List the data sources that the caller's groups may use and the jobs on each; \
             addresses only for administrators of all groups",
            list_sources,
        )
        .get(
            "getSettings",
            "/settings",
            CallerNeeds::Everywhere(Permission::Admin),
            "Get the settings in force in the process that answers; secrets are masked",
            settings,
        )
}

async fn list_sources(
    ask: ApiRequest,
    _: Nothing,
    _: Nothing,
) -> Result<Page<SourceDetail>, Problem> {
    let mut tx = ask.house.app.db.begin_read().await.map_err(anyhow::Error::from)?;
    let defs = store::job::without_dependencies(&mut tx).await?;
    let knows = ask.caller()?.grants.allow_everywhere(Permission::Admin);
    let one = |uses: &SourceUses<'_>| match knows {
        true => SourceDetail::from_uses(uses),
        false => SourceDetail::brief(uses, |group| ask.allows(Permission::View, group)),
    };
    let seen = ask.caller()?.grants.places(Permission::View);
    let may_be_used = |uses: &&SourceUses<'_>| match &seen {
        Some(groups) => groups.iter().any(|group| uses.source.access.allows(group)),
        None => true,
    };
    Ok(Page::whole(SourceUses::all_sources(&defs).iter().filter(may_be_used).map(one).collect()))
}

/// The settings of a process.
#[derive(Debug, Serialize, JsonSchema)]
struct ProcessSettings {
    /// By section and key, as in `procession.toml`.
    #[schemars(with = "BTreeMap<String, BTreeMap<String, Value>>")]
    settings: Value,
}

async fn settings(ask: ApiRequest, _: Nothing, _: Nothing) -> Result<ProcessSettings, Problem> {
    Ok(ProcessSettings { settings: ask.house.app.config.shown() })
}
