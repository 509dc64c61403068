//! Data sources, and the settings of this process.

use crate::api::caller::{ApiRequest, CallerNeeds};
use crate::api::page::Page;
use crate::api::path_params::NamePath;
use crate::api::problem::Problem;
use crate::api::route::{Nothing, Noun};
use crate::domain::access::Permission;
use crate::domain::job::Definition;
use crate::domain::source::DataSource;
use crate::store;
use crate::view::source::{SourceDetail, SourceRoutine, SourceUses};
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
        .expensive()
        .get(
            "listSourceRoutines",
            "/sources/{name}/routines",
            CallerNeeds::Somewhere(Permission::Edit),
            "List the procedures and functions of a stored data source with their parameters, for \
             callers who may change a group that may use it",
            list_routines,
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

/// A stored source, for callers who may change a group that may use it.
pub(super) fn source_for_author<'a>(
    ask: &ApiRequest,
    stored: &'a Definition,
    name: &str,
) -> Result<&'a DataSource, Problem> {
    let edits = ask.caller()?.grants.places(Permission::Edit);
    let may_be_used = |source: &DataSource| match &edits {
        Some(groups) => groups.iter().any(|group| source.access.allows(group)),
        None => true,
    };
    let source = stored.sources.iter().find(|one| one.name.as_str() == name && may_be_used(one));
    source.ok_or_else(|| Problem::not_found(format!("data source {name}")))
}

async fn list_routines(
    ask: ApiRequest,
    at: NamePath,
    _: Nothing,
) -> Result<Page<SourceRoutine>, Problem> {
    let app = &ask.house.app;
    let stored = app.definition().await?;
    let source = source_for_author(&ask, &stored, &at.name)?;
    let found = app.list_routines(source).await.map_err(Problem::refused)?;
    Ok(Page::whole(found.iter().map(SourceRoutine::from_signature).collect()))
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
