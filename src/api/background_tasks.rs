//! Maintenance data of the installation: names of secrets, backfills, retention.

use crate::api::authorize;
use crate::api::caller::{ApiRequest, CallerNeeds};
use crate::api::page::{self, Page, PageQuery};
use crate::api::path_params::IdPath;
use crate::api::problem::Problem;
use crate::api::route::{Nothing, Noun};
use crate::app::secrets::AskStores;
use crate::domain::access::Permission;
use crate::domain::id::BackfillId;
use crate::engine::retention;
use crate::store;
use crate::view::backfill::{BackfillDetail, BackfillSummary, BackfillView};
use crate::view::retention::RetentionPreview;
use crate::view::secret::SecretDocument;

pub(super) fn routes() -> Noun {
    let (views, admin) =
        (CallerNeeds::Somewhere(Permission::View), CallerNeeds::Everywhere(Permission::Admin));
    Noun::new("administration")
        .get(
            "listSecrets",
            "/secrets",
            admin,
            "List secrets: where each comes from and whether it can be read; values are never \
             shown",
            names,
        )
        .get("listBackfills", "/backfills", views, "List backfills, newest first", list_backfills)
        .get(
            "getBackfill",
            "/backfills/{id}",
            views,
            "Get a backfill and its batches",
            get_backfill,
        )
        .get(
            "previewRetention",
            "/retention/preview",
            admin,
            "Preview which old rows retention would remove, and why it keeps others",
            preview,
        )
}

async fn names(ask: ApiRequest, _: Nothing, _: Nothing) -> Result<Page<SecretDocument>, Problem> {
    let all = ask.house.app.secrets(None, AskStores::No).await?;
    Ok(Page::whole(all.iter().map(SecretDocument::from).collect()))
}

async fn list_backfills(
    ask: ApiRequest,
    _: Nothing,
    which: PageQuery,
) -> Result<Page<BackfillSummary>, Problem> {
    let limit = page::limit(which.limit)?;
    let before: Option<i64> = page::read_cursor(which.cursor.as_deref())?;
    let seen = ask.caller()?.grants.places(Permission::View);
    let more = u32::try_from(limit + 1).unwrap_or(u32::MAX);
    let mut tx = ask.house.app.db.begin_read().await.map_err(anyhow::Error::from)?;
    let rows = store::backfill::list_page(&mut tx, seen.as_ref(), before, more).await?;
    let Page { items, next } = Page::from_items(rows, limit, |row| row.id.0);
    let mut summaries = Vec::new();
    for row in items {
        let counts = store::backfill::counts(&mut tx, row.id).await?;
        summaries.push(BackfillSummary::from_row(&row, &counts));
    }
    Ok(Page { items: summaries, next })
}

async fn get_backfill(ask: ApiRequest, at: IdPath, _: Nothing) -> Result<BackfillDetail, Problem> {
    let missing = || Problem::not_found(format!("backfill {}", at.id));
    let mut tx = ask.house.app.db.begin_read().await.map_err(anyhow::Error::from)?;
    let row =
        store::backfill::find_backfill(&mut tx, BackfillId(at.id)).await?.ok_or_else(missing)?;
    drop(tx);
    ask.require(Permission::View, &row.group, format!("backfill {}", at.id))?;
    Ok(BackfillView::read_view(&ask.house.app, row.id).await?.detail())
}

async fn preview(ask: ApiRequest, _: Nothing, _: Nothing) -> Result<RetentionPreview, Problem> {
    let app = &ask.house.app;
    let now = authorize::now(&ask).await?;
    let options = app.config.retention().map_err(anyhow::Error::from)?;
    let survey = retention::survey(&app.db, &options, now).await?;
    let mut tx = app.db.begin_read().await.map_err(anyhow::Error::from)?;
    let last = store::find_meta(&mut tx, retention::LAST_PASS).await?;
    Ok(RetentionPreview::new(&options, &survey, last.as_deref()))
}
