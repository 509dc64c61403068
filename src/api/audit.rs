//! The audit log: who did what, when and why.

use crate::api::authorize;
use crate::api::caller::{ApiRequest, CallerNeeds};
use crate::api::page::{self, Page};
use crate::api::problem::Problem;
use crate::api::route::{Nothing, Noun};
use crate::domain::access::Permission;
use crate::domain::id::{BatchNo, GroupCode};
use crate::domain::job::job_key::JobFilter;
use crate::domain::time::Millis;
use crate::store::audit::{AuditFilter, AuditRecord, list_page as acts};
use crate::view::audit::{AuditEntryDetail, AuditFormat};
use axum::http::HeaderValue;
use axum::http::header::{CONTENT_DISPOSITION, CONTENT_TYPE, HeaderName};
use axum::response::{IntoResponse as _, Response};
use schemars::JsonSchema;
use serde::Deserialize;

pub(super) fn routes() -> Noun {
    let needs = CallerNeeds::Somewhere(Permission::View);
    Noun::new("audit")
        .get("listAuditEntries", "/audit", needs, "List audit entries, newest first", list_acts)
        .media(
            "exportAuditEntries",
            "/audit/export",
            "text/csv, application/x-ndjson",
            needs,
            "Export audit entries as CSV or NDJSON, 5,000 per request; the header X-Next-Cursor \
             is the next page's cursor",
            export,
        )
}

/// Filter for audit records; omitted fields do not restrict.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ListAuditQuery {
    /// By this user.
    actor: Option<String>,
    /// The name of the action: force-success, schedule pause.
    action: Option<String>,
    /// About this group and what belongs to it.
    group: Option<String>,
    /// About batches with this number.
    batch_no: Option<String>,
    /// About this job: `CODE` in every group, or `group.CODE`.
    job: Option<String>,
    /// Not before this time: 2026-07-01, 2026-07-01T08:00:00+08:00; UTC without an offset.
    from: Option<String>,
    /// Before this time.
    to: Option<String>,
    /// Page size, 1 to 500; default 50.
    limit: Option<u32>,
    /// `next` of the previous page.
    cursor: Option<String>,
}

/// Filter and format of an export; omitted fields do not restrict.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ExportAuditQuery {
    /// csv or jsonl.
    format: Option<String>,
    /// By this user.
    actor: Option<String>,
    /// The name of the action: force-success, schedule pause.
    action: Option<String>,
    /// About this group and what belongs to it.
    group: Option<String>,
    /// About batches with this number.
    batch_no: Option<String>,
    /// About this job: `CODE` in every group, or `group.CODE`.
    job: Option<String>,
    /// Not before this time: 2026-07-01, 2026-07-01T08:00:00+08:00; UTC without an offset.
    from: Option<String>,
    /// Before this time.
    to: Option<String>,
    /// X-Next-Cursor of the previous file, which this one continues, without a heading.
    cursor: Option<String>,
}

/// Records per file. Their details may be long, and all are held in memory at once.
const IN_A_FILE: usize = 5_000;

impl ListAuditQuery {
    fn filter(&self) -> Result<AuditFilter, Problem> {
        fn parse_word<T, E: std::fmt::Display>(
            name: &str,
            word: Option<&String>,
            parse: fn(&str) -> Result<T, E>,
        ) -> Result<Option<T>, Problem> {
            let refused = |e: E| Problem::unreadable(format!("{name}: {e}"));
            word.map(|word| parse(word).map_err(refused)).transpose()
        }
        fn moment(word: &str) -> Result<Millis, &'static str> {
            Millis::parse(word).ok_or("write 2026-07-01, or 2026-07-01T08:00:00+08:00")
        }
        Ok(AuditFilter {
            actor: self.actor.clone(),
            action: self.action.clone(),
            batch_no: parse_word("batch_no", self.batch_no.as_ref(), BatchNo::parse)?,
            group: parse_word("group", self.group.as_ref(), GroupCode::parse)?,
            job: parse_word("job", self.job.as_ref(), JobFilter::parse)?,
            from: parse_word("from", self.from.as_ref(), moment)?,
            to: parse_word("to", self.to.as_ref(), moment)?,
        })
    }
}

async fn read_acts(
    ask: &ApiRequest,
    which: &ListAuditQuery,
    limit: usize,
) -> Result<Page<AuditEntryDetail>, Problem> {
    let before: Option<i64> = page::read_cursor(which.cursor.as_deref())?;
    let (filter, told) = (which.filter()?, authorize::audit_scope(ask)?);
    let more = u32::try_from(limit + 1).unwrap_or(u32::MAX);
    let mut tx = ask.house.app.db.begin_read().await.map_err(anyhow::Error::from)?;
    let found: Vec<AuditRecord> = acts(&mut tx, &filter, (&told, before), more).await?;
    Ok(Page::from_items(
        found.iter().map(AuditEntryDetail::from).collect(),
        limit,
        |act: &AuditEntryDetail| act.audit_id,
    ))
}

async fn list_acts(
    ask: ApiRequest,
    _: Nothing,
    which: ListAuditQuery,
) -> Result<Page<AuditEntryDetail>, Problem> {
    let limit = page::limit(which.limit)?;
    read_acts(&ask, &which, limit).await
}

async fn export(ask: ApiRequest, _: Nothing, file: ExportAuditQuery) -> Result<Response, Problem> {
    let (form, media, name) = match file.format.as_deref() {
        None | Some("csv") => (AuditFormat::Csv, "text/csv; charset=utf-8", "audit.csv"),
        Some("jsonl") => (AuditFormat::Jsonl, "application/x-ndjson", "audit.jsonl"),
        Some(_) => return Err(Problem::unreadable("format: write csv or jsonl")),
    };
    let ExportAuditQuery { actor, action, group, batch_no, job, from, to, cursor, .. } = file;
    let is_first = cursor.is_none();
    let which =
        ListAuditQuery { actor, action, group, batch_no, job, from, to, limit: None, cursor };
    let page = read_acts(&ask, &which, IN_A_FILE).await?;
    let head = if is_first { form.header() } else { String::new() };
    let lines = page.items.iter().map(|act| form.act_line(act));
    let text: String = std::iter::once(Ok(head)).chain(lines).collect::<anyhow::Result<_>>()?;
    let disposition = format!("attachment; filename=\"{name}\"");
    let headers = [(CONTENT_TYPE, media.to_owned()), (CONTENT_DISPOSITION, disposition)];
    let mut response = (headers, text).into_response();
    if let Some(next) = page.next {
        let next = HeaderValue::from_str(&next).map_err(anyhow::Error::from)?;
        response.headers_mut().insert(HeaderName::from_static("x-next-cursor"), next);
    }
    Ok(response)
}
