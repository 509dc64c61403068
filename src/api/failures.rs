//! The inbox of failures: which jobs failed, and what people say about each: that they have seen it,
//! who looks after it, a note.

use crate::api::authorize;
use crate::api::batch_jobs::BatchJobPath;
use crate::api::batches::seen_groups;
use crate::api::caller::{ApiRequest, CallerNeeds};
use crate::api::problem::Problem;
use crate::api::route::{Nothing, Noun};
use crate::domain::access::Permission;
use crate::domain::job::queue::{QueueEntry, QueueStatus};
use crate::store::failure::{self, FailedJob, FailureMark};
use crate::store::run_facts::FactScope;
use crate::store::{self, audit};
use crate::view::failure::FailureDetail;
use axum::http::Method;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

const DAY_MS: i64 = 86_400_000;
/// Maximum number of days that are looked back.
const DAYS: u32 = 400;
/// Maximum number of failures that are looked at.
const FAILURES: u32 = 5_000;
/// Maximum number of failures in an answer.
const LIMIT: u32 = 1_000;
/// Maximum length of an assignee, in characters.
const ASSIGNEE_MAX: usize = 100;

pub(super) fn routes() -> Noun {
    Noun::new("failures")
        .expensive()
        .get(
            "listFailures",
            "/failures",
            CallerNeeds::Somewhere(Permission::View),
            "List failed jobs of the last days, latest first, with who looks after each",
            list_failures,
        )
        .change(
            "markFailure",
            Method::POST,
            "/groups/{group}/batches/{batch_no}/jobs/{job}/failure",
            CallerNeeds::Somewhere(Permission::Run),
            "Acknowledge a failed job, say who looks after it, or leave a note; changes nothing of \
             the job",
            mark_failure,
        )
}

/// Which failures.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum FailureState {
    /// Not acknowledged.
    #[default]
    Open,
    /// Acknowledged.
    Acknowledged,
    /// Both.
    All,
}

/// Which failures.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
struct ListFailuresQuery {
    /// `open` (default), `acknowledged` or `all`.
    state: FailureState,
    /// Number of days since the batch was opened, 1 to 400; default 30.
    days: Option<u32>,
    /// Only these groups, separated by commas.
    group: Option<String>,
    /// Only those that this person looks after.
    assignee: Option<String>,
    /// Number of failures, 1 to 1000; default 200.
    limit: Option<u32>,
}

/// Failed jobs.
#[derive(Debug, Serialize, JsonSchema)]
struct FailureList {
    /// Batches opened since then are looked at.
    since: String,
    /// Number of failures that nobody has acknowledged, of the asked groups and days.
    open: usize,
    /// Number of failures before the limit.
    found: usize,
    /// Whether older failures of these days are left out, because there are more than 5,000.
    is_cut: bool,
    /// The failures, latest first.
    items: Vec<FailureDetail>,
}

async fn list_failures(
    ask: ApiRequest,
    _: Nothing,
    which: ListFailuresQuery,
) -> Result<FailureList, Problem> {
    let days = between("days", which.days, 30, DAYS)?;
    let limit = between("limit", which.limit, 200, LIMIT)? as usize;
    let groups = seen_groups(&ask, which.group.as_deref())?;
    let since = ask.house.app.server_now().await?.plus_ms(-i64::from(days) * DAY_MS);
    let scope = FactScope { groups: groups.as_deref(), since };
    let mut tx = authorize::open_read(&ask).await?;
    let all = failure::list_failed(&mut tx, scope, FAILURES).await?;
    drop(tx);
    let is_cut = all.len() == FAILURES as usize;
    let is_open = |one: &FailedJob| one.mark.as_ref().is_none_or(|m| m.acknowledged.is_none());
    let open = all.iter().filter(|one| is_open(one)).count();
    let is_asked = |one: &&FailedJob| {
        let is_in_state = match which.state {
            FailureState::Open => is_open(one),
            FailureState::Acknowledged => !is_open(one),
            FailureState::All => true,
        };
        let assignee = one.mark.as_ref().and_then(|mark| mark.assignee.as_deref());
        let wanted = which.assignee.as_deref().filter(|name| !name.is_empty());
        is_in_state && wanted.is_none_or(|name| assignee == Some(name))
    };
    let mut found: Vec<&FailedJob> = all.iter().filter(is_asked).collect();
    found.sort_by_key(|one| std::cmp::Reverse(one.ended));
    let items = found.iter().take(limit).map(|one| FailureDetail::from(*one)).collect();
    Ok(FailureList { since: since.to_string(), open, found: found.len(), is_cut, items })
}

fn between(name: &str, asked: Option<u32>, usual: u32, most: u32) -> Result<u32, Problem> {
    let n = asked.unwrap_or(usual);
    match (1..=most).contains(&n) {
        true => Ok(n),
        false => Err(Problem::unreadable(format!("{name} is {n}; it may be 1 to {most}"))),
    }
}

/// What is said about a failure; what is left out stays as it is.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct MarkFailureRequest {
    /// The attempt that failed, as it was seen; the change is refused once there is a later one.
    attempt: u32,
    /// Whether it is acknowledged.
    acknowledged: Option<bool>,
    /// Who looks after it, at most 100 characters; an empty text takes that back.
    assignee: Option<String>,
    /// A note for others; an empty text removes it.
    note: Option<String>,
}

/// A text that was given; an empty one is none.
fn replaced(given: Option<String>, before: Option<String>) -> Option<String> {
    match given {
        None => before,
        Some(text) => Some(text.trim().to_owned()).filter(|text| !text.is_empty()),
    }
}

fn check_texts(body: &MarkFailureRequest) -> Result<(), Problem> {
    if let Some(note) = &body.note {
        authorize::check_text("note", note)?;
    }
    let assignee = body.assignee.as_deref().unwrap_or_default();
    if assignee.contains(['\0', '\n']) || assignee.chars().count() > ASSIGNEE_MAX {
        let most = format!("assignee: write a name of at most {ASSIGNEE_MAX} characters");
        return Err(Problem::refused(most));
    }
    Ok(())
}

/// Refuses a mark on anything but the present attempt, which must have failed.
fn check_attempt(row: &QueueEntry, attempt: u32) -> Result<(), Problem> {
    let has_failed =
        matches!(row.status, QueueStatus::Failed | QueueStatus::Timeout | QueueStatus::Unknown);
    if has_failed && row.attempt == attempt {
        return Ok(());
    }
    let (code, status) = (&row.job_code, row.status.as_str());
    let why = format!("job {code} is {status} in attempt {} now; look at it again", row.attempt);
    Err(Problem::conflict("changed-meanwhile", why))
}

async fn mark_failure(
    ask: ApiRequest,
    of: BatchJobPath,
    body: MarkFailureRequest,
) -> Result<FailureDetail, Problem> {
    let (batch, seen) = of.find_row(&ask).await?;
    let group = batch.values.group.clone();
    ask.require(Permission::Run, &group, format!("group {group}"))?;
    let by = ask.operator()?;
    check_texts(&body)?;
    let now = authorize::now(&ask).await?;
    let mut tx = authorize::begin(&ask).await?;
    // First, so that a rerun in between is noticed, and of two who write at once neither takes away
    // what the other wrote.
    store::batch::lock_batch(&mut tx, batch.batch_id).await?;
    let code = seen.job_code;
    let row = store::queue::of_job(&mut tx, batch.batch_id, &code).await?;
    let row = row.ok_or_else(|| Problem::not_found(format!("job {code}")))?;
    check_attempt(&row, body.attempt)?;
    let known = failure::marks_of(&mut tx, &[row.queue_id]).await?.remove(&row.queue_id);
    let before = known.filter(|mark| mark.attempt == row.attempt).unwrap_or_default();
    let mark = FailureMark {
        attempt: row.attempt,
        assignee: replaced(body.assignee, before.assignee),
        note: replaced(body.note, before.note),
        acknowledged: match body.acknowledged {
            None => before.acknowledged,
            Some(true) => before.acknowledged.or_else(|| Some((by.actor.clone(), now))),
            Some(false) => None,
        },
    };
    failure::set_mark(&mut tx, (row.queue_id, batch.batch_id), &mark, now).await?;
    let detail = json!({
        "attempt": mark.attempt, "acknowledged": mark.acknowledged.is_some(),
        "assignee": mark.assignee, "note": mark.note,
    });
    let why = mark.note.clone().unwrap_or_default();
    let entry = audit::AuditEntry {
        group: Some(group.clone()),
        batch: Some((batch.batch_id, batch.values.batch_no.clone())),
        job: Some(code.clone()),
        ..authorize::entry("failure mark", detail, &why)
    };
    audit::record(&mut tx, &by, &[entry], now).await?;
    authorize::commit(tx, "mark a failure").await?;
    let failed = FailedJob {
        queue_id: row.queue_id,
        batch: batch.batch_id,
        group,
        batch_no: batch.values.batch_no.clone(),
        job: code,
        status: row.status,
        attempt: row.attempt,
        error: row.error_message,
        ended: row.end_time,
        mark: Some(mark),
    };
    Ok(FailureDetail::from(&failed))
}
