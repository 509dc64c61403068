//! Data sources, and the settings of this process.

use crate::api::caller::{Ask, Needs};
use crate::api::page::Page;
use crate::api::problem::Problem;
use crate::api::route::{Nothing, Noun};
use crate::domain::access::Permission;
use crate::store;
use crate::view::source::{Uses, as_json, brief};
use serde_json::{Value, json};

pub(super) fn noun() -> Noun {
    Noun::new("sources and settings")
        .expensive()
        .get(
            "/sources",
            Needs::Somewhere(Permission::View),
            "The data sources that the caller's groups may use, and the jobs on each; where each is, only for who administers all",
            list,
        )
        .get(
            "/settings",
            Needs::Everywhere(Permission::Admin),
            "The settings in force in the process that answers; what hides is masked",
            settings,
        )
}

async fn list(ask: Ask, _: Nothing, _: Nothing) -> Result<Page<Value>, Problem> {
    let mut tx = ask.house.app.db.read().await.map_err(anyhow::Error::from)?;
    let defs = store::job::without_dependencies(&mut tx).await?;
    let knows = ask.caller()?.grants.allow_everywhere(Permission::Admin);
    let one = |uses: &Uses<'_>| match knows {
        true => as_json(uses),
        false => brief(uses, |group| ask.allows(Permission::View, group)),
    };
    let seen = ask.caller()?.grants.places(Permission::View);
    let may_be_used = |uses: &&Uses<'_>| match &seen {
        Some(groups) => groups.iter().any(|group| uses.source.access.allows(group)),
        None => true,
    };
    Ok(Page::whole(Uses::all(&defs).iter().filter(may_be_used).map(one).collect()))
}

async fn settings(ask: Ask, _: Nothing, _: Nothing) -> Result<Value, Problem> {
    Ok(json!({ "settings": ask.house.app.config.shown() }))
}
