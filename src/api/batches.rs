//! Batches: the list, and one with its jobs.

use crate::api::authorize;
use crate::api::caller::{ApiRequest, CallerNeeds};
use crate::api::page::{self, Page};
use crate::api::path_params::BatchPath;
use crate::api::problem::Problem;
use crate::api::route::{Nothing, Noun};
use crate::app;
use crate::domain::access::Permission;
use crate::domain::batch::{Batch, BatchStatus};
use crate::domain::id::{BatchId, BatchNo, GroupCode};
use crate::domain::time::Millis;
use crate::store::batch::BatchFilter;
use crate::view::batch::{BatchDetail, BatchView};
use crate::view::batches;
use crate::view::batches::{BatchSummary, Listed};
use crate::view::change::DefinitionChangeDetail;
use crate::view::delay::WhyLate;
use crate::view::eta::{BatchEta, EndForecast};
use crate::view::why::{self, JobReason};
use chrono::{DateTime, NaiveDate, NaiveTime, Utc};
use schemars::JsonSchema;
use serde::Deserialize;

pub(super) fn routes() -> Noun {
    let needs = CallerNeeds::Somewhere(Permission::View);
    Noun::new("batches")
        .get("listBatches", "/batches", needs, "List batches, newest first", list_batches)
        .expensive()
        .get(
            "getBatch",
            "/groups/{group}/batches/{batch_no}",
            needs,
            "Get a batch with its jobs, as `batch show --json` prints it",
            get_batch,
        )
        .expensive()
        .get(
            "listBatchReasons",
            "/groups/{group}/batches/{batch_no}/why",
            needs,
            "List for each unfinished or failed job what it waits for or why it ended so",
            reasons,
        )
        .expensive()
        .get(
            "getBatchEta",
            "/groups/{group}/batches/{batch_no}/eta",
            needs,
            "Get the expected end of a batch and the jobs that decide it",
            get_eta,
        )
        .expensive()
        .get(
            "getBatchDelay",
            "/groups/{group}/batches/{batch_no}/why-late",
            needs,
            "Get why a batch is late: the chain of jobs that decides its end, and what delayed it",
            why_late,
        )
        .expensive()
        .get(
            "getBatchDifferences",
            "/groups/{group}/batches/{batch_no}/differences",
            needs,
            "Get what changed in the definition since the batch was opened",
            differences,
        )
}

/// Filter for batches.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(super) struct ListBatchesQuery {
    /// Of these groups, separated by commas.
    group: Option<String>,
    /// In one of these states, separated by commas: `RUNNING,KILLING`.
    status: Option<String>,
    /// With this number.
    batch_no: Option<String>,
    /// A text contained in the number or group.
    q: Option<String>,
    /// Opened at or after this time: `2024-07-31T18:00:00Z`, or a day, which begins at midnight
    /// UTC.
    from: Option<String>,
    /// Opened before this time; for a day: before its end.
    to: Option<String>,
    /// Of groups of this type.
    r#type: Option<String>,
    /// Page size, 1 to 500; default 50.
    limit: Option<u32>,
    /// `next` of the previous page.
    cursor: Option<String>,
}

impl ListBatchesQuery {
    fn asked(&self, ask: &ApiRequest) -> Result<BatchFilter, Problem> {
        let statuses = words(self.status.as_deref()).map(|word| {
            let refused = || {
                let known = BatchStatus::ALL.map(BatchStatus::as_str).join(", ");
                Problem::unreadable(format!("status: {word} is none of {known}"))
            };
            BatchStatus::parse(&word.to_uppercase()).ok_or_else(refused)
        });
        let batch_no = self.batch_no.as_deref().map(BatchNo::parse).transpose();
        Ok(BatchFilter {
            groups: seen_groups(ask, self.group.as_deref())?,
            batch_no: batch_no.map_err(|e| Problem::unreadable(format!("batch_no: {e}")))?,
            text: self.q.clone().filter(|q| !q.trim().is_empty()),
            statuses: statuses.collect::<Result<_, _>>()?,
            batch_type: self.r#type.clone(),
            from: self.from.as_deref().map(|at| moment("from", at, DayEdge::Begin)).transpose()?,
            to: self.to.as_deref().map(|at| moment("to", at, DayEdge::End)).transpose()?,
            before: page::read_cursor::<i64>(self.cursor.as_deref())?.map(BatchId),
        })
    }
}

fn words(list: Option<&str>) -> impl Iterator<Item = &str> {
    list.unwrap_or_default().split(',').map(str::trim).filter(|word| !word.is_empty())
}

/// Which end of a day.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DayEdge {
    /// The start of the day.
    Begin,
    /// The start of the next day.
    End,
}

/// Parses a time, or the edge of a day.
pub(super) fn moment(name: &str, message: &str, edge: DayEdge) -> Result<Millis, Problem> {
    if let Ok(at) = DateTime::parse_from_rfc3339(message) {
        return Ok(at.with_timezone(&Utc).into());
    }
    let refused = || {
        let how = "give a moment, 2024-07-31T18:00:00Z, or a day, 2024-07-31";
        Problem::unreadable(format!("{name}: {message} is no time; {how}"))
    };
    let day: NaiveDate = message.parse().map_err(|_| refused())?;
    let begin = Millis::from(day.and_time(NaiveTime::MIN).and_utc());
    Ok(match edge {
        DayEdge::Begin => begin,
        DayEdge::End => begin.plus_ms(86_400_000),
    })
}

/// The groups of a list that the caller sees; `None` means all groups.
pub(super) fn seen_groups(
    ask: &ApiRequest,
    named: Option<&str>,
) -> Result<Option<Vec<GroupCode>>, Problem> {
    let seen = ask.caller()?.grants.places(Permission::View);
    let Some(named) = named.filter(|list| !list.trim().is_empty()) else {
        return Ok(seen.map(|groups| groups.into_iter().collect()));
    };
    // A text that cannot be a code names no group.
    let named = words(Some(named)).filter_map(|word| GroupCode::parse(word).ok());
    let allowed = |g: &GroupCode| seen.as_ref().is_none_or(|groups| groups.contains(g));
    Ok(Some(named.filter(allowed).collect()))
}

async fn list_batches(
    ask: ApiRequest,
    _: Nothing,
    which: ListBatchesQuery,
) -> Result<Page<BatchSummary>, Problem> {
    let limit = page::limit(which.limit)?;
    let app = &ask.house.app;
    let asked = which.asked(&ask)?;
    let listed =
        batches::list_page(app, &asked, u32::try_from(limit + 1).unwrap_or(u32::MAX)).await?;
    let briefs = briefs(&ask, &listed).await?;
    Ok(Page::from_items(briefs, limit, |brief| brief.batch_id))
}

/// Batches of a list, with the expected ends of open ones.
pub(super) async fn briefs(
    ask: &ApiRequest,
    listed: &[Listed],
) -> Result<Vec<BatchSummary>, Problem> {
    let app = &ask.house.app;
    let now = app.server_now().await?;
    let known = ask.house.reads.prospects(app, listed, now).await?;
    Ok(listed
        .iter()
        .map(|l| BatchSummary::from_listed(l, known.get(&l.batch.batch_id), now))
        .collect())
}

impl BatchPath {
    /// The batch, if the caller may see it.
    pub(super) async fn find_visible(&self, ask: &ApiRequest) -> Result<Batch, Problem> {
        authorize::batch(ask, Permission::View, &self.group, &self.batch_no).await
    }
}

/// How much of a batch to return.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
struct GetBatchQuery {
    /// Include the outputs of its jobs: values, result sets, checks. That may be megabytes.
    outputs: bool,
}

async fn get_batch(
    ask: ApiRequest,
    of: BatchPath,
    extent: GetBatchQuery,
) -> Result<BatchDetail, Problem> {
    let batch = of.find_visible(&ask).await?;
    let app = &ask.house.app;
    let view = match extent.outputs {
        true => BatchView::read_view(app, batch.batch_id).await?,
        false => BatchView::without_outputs(app, batch.batch_id).await?,
    };
    let mut document = view.document();
    document.eta = Some(EndForecast::read_outlook(app, &view).await?.document(&view));
    Ok(document)
}

async fn reasons(ask: ApiRequest, of: BatchPath, _: Nothing) -> Result<Vec<JobReason>, Problem> {
    let batch = of.find_visible(&ask).await?;
    let view = BatchView::without_outputs(&ask.house.app, batch.batch_id).await?;
    let found = why::reasons(&ask.house.app, &view).await?;
    Ok(found.iter().map(|reason| JobReason::from_reason(reason, ask.lang, view.now)).collect())
}

async fn get_eta(ask: ApiRequest, of: BatchPath, _: Nothing) -> Result<BatchEta, Problem> {
    let batch = of.find_visible(&ask).await?;
    let view = BatchView::without_outputs(&ask.house.app, batch.batch_id).await?;
    Ok(EndForecast::read_outlook(&ask.house.app, &view).await?.document(&view))
}

async fn why_late(ask: ApiRequest, of: BatchPath, _: Nothing) -> Result<WhyLate, Problem> {
    let batch = of.find_visible(&ask).await?;
    let app = &ask.house.app;
    let view = BatchView::without_outputs(app, batch.batch_id).await?;
    let outlook = EndForecast::read_outlook(app, &view).await?;
    Ok(WhyLate::explain(app, &view, &outlook, ask.lang).await?)
}

async fn differences(
    ask: ApiRequest,
    of: BatchPath,
    _: Nothing,
) -> Result<Page<DefinitionChangeDetail>, Problem> {
    let batch = of.find_visible(&ask).await?;
    let view = BatchView::without_outputs(&ask.house.app, batch.batch_id).await?;
    let defs = ask.house.app.definition().await?;
    let changes = app::differences(&view.snapshot, &defs);
    Ok(Page::whole(changes.iter().map(DefinitionChangeDetail::from_change).collect()))
}
