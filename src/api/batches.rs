//! Batches.

use crate::api::ask::{Ask, Needs};
use crate::api::page::{self, Page};
use crate::api::problem::Problem;
use crate::api::route::{Nothing, Noun};
use crate::domain::access::Permission;
use crate::store;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub(super) fn noun() -> Noun {
    Noun::new("batches").get(
        "/batches",
        Needs::Somewhere(Permission::View),
        "The latest batches",
        list,
    )
}

/// Which batches.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Which {
    /// How many, 1 to 500; 50 when it is left out.
    limit: Option<u32>,
}

/// A batch in a list.
#[derive(Debug, Serialize, JsonSchema)]
struct Brief {
    /// Its number.
    batch_no: String,
    /// Its group.
    group: String,
}

async fn list(ask: Ask, _: Nothing, which: Which) -> Result<Page<Brief>, Problem> {
    let limit = page::limit(which.limit)?;
    let mut tx = ask.house.app.db.read().await.map_err(anyhow::Error::from)?;
    let all = store::batch::list(&mut tx, None, u32::try_from(limit).unwrap_or(u32::MAX)).await?;
    let seen = all.into_iter().filter(|b| ask.allows(Permission::View, &b.values.group));
    Ok(Page::whole(
        seen.map(|b| Brief {
            batch_no: b.values.batch_no.to_string(),
            group: b.values.group.to_string(),
        })
        .collect(),
    ))
}
