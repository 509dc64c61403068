//! `change_request`: changes that wait for the approval of a second person. A status changes only
//! by compare-and-set; that a change is carried out is written in the transaction of the change
//! itself.

use crate::db::{Row, SqlValue};
use crate::domain::access::user::UserId;
use crate::domain::permission::four_eyes::{ChangeRequestId, ChangeRequestStatus, GuardedAction};
use crate::domain::permission::required_permissions::Demands;
use crate::domain::time::Millis;
use crate::store::audit::Operator;
use crate::store::{Tx, packed};
use anyhow::{Context as _, Result};
use serde_json::{Value as Json, json};

/// Columns of a request except the potentially large ones.
const HEAD: &str = "change_request_id, status, user_id, author, author_host, token_id, action, demands_json, \
     method, path, summary, fingerprint, reason, create_time, expire_time, decided_by, decided_from, \
     decision_comment, decide_time, is_alone, carried_out_time, answer_status, answer";

/// After this many milliseconds another process may claim a request that is being carried out: the
/// first one died or hangs. What it still writes then is rolled back, because its claim is gone.
const CLAIM_MS: i64 = 120_000;

/// Maximum size of an effect that is kept after its request has ended, in bytes.
const EFFECT_KEPT: u32 = 16_384;

/// Number of requests carried out at a time.
const A_FEW: u32 = 20;

/// An approved change that is being carried out: the transaction that writes its audit record also
/// marks the request as carried out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApprovedChange {
    pub id: ChangeRequestId,
    /// The claim of the process that carries it out.
    pub claim: String,
    pub approved_by: String,
    /// Whether an administrator carries it out without a second person.
    pub is_alone: bool,
}

/// Another process carries this request out, or has done so.
#[derive(Debug, thiserror::Error)]
#[error(
    "change request {0} is carried out by another process, or has ended; nothing was changed here"
)]
pub struct ChangeTaken(ChangeRequestId);

/// A new change request.
#[derive(Clone, Debug)]
pub struct NewChangeRequest<'a> {
    pub author: (UserId, &'a Operator),
    /// The API token that was used; `None` for a session.
    pub token: Option<i64>,
    pub action: GuardedAction,
    /// The permissions that the change requires.
    pub demands: &'a Demands,
    /// The HTTP method of the request.
    pub method: &'a str,
    /// Path and query of the request.
    pub path: &'a str,
    /// The body of the request.
    pub body: &'a Json,
    /// The change in one line.
    pub summary: &'a str,
    /// What would change.
    pub effect: &'a Json,
    /// A digest of the present state and of the resulting one.
    pub fingerprint: &'a str,
    pub reason: &'a str,
    /// When it expires.
    pub expires: Millis,
}

/// A stored change request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangeRequest {
    pub id: ChangeRequestId,
    pub status: ChangeRequestStatus,
    /// The account that filed it.
    pub user: UserId,
    /// The name of that account, and the address it came from.
    pub author: Operator,
    /// The API token that was used.
    pub token: Option<i64>,
    pub action: GuardedAction,
    /// The permissions that the change requires.
    pub demands: Demands,
    /// The HTTP method of the request.
    pub method: String,
    /// Path and query of the request.
    pub path: String,
    /// The change in one line.
    pub summary: String,
    /// A digest of the present state and of the resulting one.
    pub fingerprint: String,
    pub reason: String,
    pub created: Millis,
    /// When it expires.
    pub expires: Millis,
    /// Who decided, and from where.
    pub decided_by: Option<Operator>,
    /// The comment of the decision.
    pub comment: Option<String>,
    /// When it was decided, withdrawn or expired.
    pub decided: Option<Millis>,
    /// Whether an administrator carried it out without a second person.
    pub is_alone: bool,
    pub carried_out: Option<Millis>,
    /// The answer when it was carried out: HTTP status and document.
    pub answer: Option<(u16, Json)>,
}

/// The large parts of a request. After its end the body is removed, and a large effect as well:
/// null.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangeContent {
    /// The body of the request.
    pub body: Json,
    /// What would change, as of the time of the request.
    pub effect: Json,
}

/// Inserts a pending request.
pub async fn insert(
    tx: &mut Tx,
    new: &NewChangeRequest<'_>,
    now: Millis,
) -> Result<ChangeRequestId> {
    let (user, by) = new.author;
    let (body, effect) = (packed::pack_value(new.body)?, packed::pack_value(new.effect)?);
    for text in [&body, &effect] {
        packed::check_fits(tx, "this change", text).await?;
    }
    let sql = "INSERT INTO change_request (status, user_id, author, author_host, token_id, action, \
               demands_json, method, path, body, summary, effect_json, fingerprint, reason, create_time, \
               expire_time) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)";
    let values = [
        ChangeRequestStatus::Waiting.as_str().into(),
        user.0.into(),
        by.actor.as_str().into(),
        by.host.as_str().into(),
        new.token.into(),
        new.action.as_str().into(),
        serde_json::to_string(new.demands)?.into(),
        new.method.into(),
        new.path.into(),
        body.into(),
        new.summary.into(),
        effect.into(),
        new.fingerprint.into(),
        new.reason.into(),
        now.to_utc().into(),
        new.expires.to_utc().into(),
    ];
    let id =
        tx.insert_id(sql, "change_request_id", &values).await.context("write change_request")?;
    Ok(ChangeRequestId(id))
}

pub async fn find_request(tx: &mut Tx, id: ChangeRequestId) -> Result<Option<ChangeRequest>> {
    let sql = format!("SELECT {HEAD} FROM change_request WHERE change_request_id = ?");
    Ok(read_requests(tx, &sql, &[id.0.into()]).await?.pop())
}

/// The large parts of a request.
pub async fn content(tx: &mut Tx, id: ChangeRequestId) -> Result<ChangeContent> {
    let sql = "SELECT body, effect_json FROM change_request WHERE change_request_id = ?";
    let row = tx.fetch_optional(sql, &[id.0.into()]).await.context("read change_request")?;
    let row = row.with_context(|| format!("change request {id} is gone"))?;
    let kept = |text: String| match text.as_str() {
        "" => Ok(Json::Null),
        _ => packed::unpack(&text),
    };
    Ok(ChangeContent {
        body: kept(row.get_text("body")?)?,
        effect: kept(row.get_text("effect_json")?)?,
    })
}

/// Removes the large parts of an ended request. A digest stays in `fingerprint`, the one-line text
/// in `summary`. Before this, six rounds of filing and withdrawing a definition of 5 MB left 27 MB
/// in the database.
async fn drop_content(tx: &mut Tx, id: ChangeRequestId) -> Result<()> {
    let sql = "UPDATE change_request SET body = '', \
               effect_json = CASE WHEN LENGTH(effect_json) > ? THEN '' ELSE effect_json END \
               WHERE change_request_id = ? AND status NOT IN ('WAITING', 'APPROVED')";
    let done = tx.execute(sql, &[EFFECT_KEPT.into(), id.0.into()]).await;
    done.map(drop).context("remove the content of a change request that has ended")
}

/// A filter for requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangeFilter {
    /// Pending requests.
    Waiting,
    /// All requests.
    All,
}

/// Requests, newest first, with keys below `before`.
pub async fn list_page(
    tx: &mut Tx,
    filter: ChangeFilter,
    before: Option<ChangeRequestId>,
    limit: u32,
) -> Result<Vec<ChangeRequest>> {
    let (mut wheres, mut values): (String, Vec<SqlValue>) = ("1 = 1".to_owned(), Vec::new());
    if filter == ChangeFilter::Waiting {
        wheres.push_str(" AND status = 'WAITING'");
    }
    if let Some(before) = before {
        wheres.push_str(" AND change_request_id < ?");
        values.push(before.0.into());
    }
    values.push(limit.into());
    let sql = format!(
        "SELECT {HEAD} FROM change_request WHERE {wheres} ORDER BY change_request_id DESC LIMIT ?"
    );
    read_requests(tx, &sql, &values).await
}

/// Number of pending requests of a user.
pub async fn count_waiting(tx: &mut Tx, user: UserId) -> Result<usize> {
    let sql =
        "SELECT COUNT(*) AS waiting FROM change_request WHERE status = 'WAITING' AND user_id = ?";
    let row = tx.fetch_optional(sql, &[user.0.into()]).await.context("count change requests")?;
    let waiting = row.map(|row| row.get_int("waiting")).transpose()?.unwrap_or_default();
    Ok(usize::try_from(waiting)?)
}

/// Number of requests a user has filed since then.
pub async fn count_since(tx: &mut Tx, user: UserId, since: Millis) -> Result<usize> {
    let sql = "SELECT COUNT(*) AS filed FROM change_request WHERE user_id = ? AND create_time > ?";
    let values = [user.0.into(), since.to_utc().into()];
    let row = tx.fetch_optional(sql, &values).await.context("count change requests")?;
    let filed = row.map(|row| row.get_int("filed")).transpose()?.unwrap_or_default();
    Ok(usize::try_from(filed)?)
}

/// A decision to be stored.
#[derive(Clone, Copy, Debug)]
pub struct ChangeDecision<'a> {
    /// The new status of the request.
    pub status: ChangeRequestStatus,
    pub by: &'a Operator,
    pub comment: Option<&'a str>,
    /// Whether an administrator carries it out without a second person.
    pub is_alone: bool,
}

/// Stores a decision; `false` when the request is no longer pending or has expired.
pub async fn decide(
    tx: &mut Tx,
    id: ChangeRequestId,
    decision: &ChangeDecision<'_>,
    now: Millis,
) -> Result<bool> {
    let sql = "UPDATE change_request SET status = ?, decided_by = ?, decided_from = ?, \
               decision_comment = ?, decide_time = ?, is_alone = ? \
               WHERE change_request_id = ? AND status = 'WAITING' AND expire_time > ?";
    let values = [
        decision.status.as_str().into(),
        decision.by.actor.as_str().into(),
        decision.by.host.as_str().into(),
        decision.comment.into(),
        now.to_utc().into(),
        decision.is_alone.into(),
        id.0.into(),
        now.to_utc().into(),
    ];
    let is_written =
        tx.execute(sql, &values).await.context("write a decision about a change")? == 1;
    drop_content(tx, id).await?;
    Ok(is_written)
}

/// Pending requests that have expired.
pub async fn overdue(tx: &mut Tx, now: Millis) -> Result<Vec<ChangeRequest>> {
    let sql = format!(
        "SELECT {HEAD} FROM change_request WHERE status = 'WAITING' AND expire_time <= ? \
         ORDER BY change_request_id LIMIT {A_FEW}"
    );
    read_requests(tx, &sql, &[now.to_utc().into()]).await
}

/// Ends an undecided request; `false` when it is no longer pending.
pub async fn expire(tx: &mut Tx, id: ChangeRequestId, now: Millis) -> Result<bool> {
    let sql = "UPDATE change_request SET status = 'EXPIRED', decide_time = ? \
               WHERE change_request_id = ? AND status = 'WAITING' AND expire_time <= ?";
    let values = [now.to_utc().into(), id.0.into(), now.to_utc().into()];
    let is_expired = tx.execute(sql, &values).await.context("let a change request expire")? == 1;
    drop_content(tx, id).await?;
    Ok(is_expired)
}

/// Approved requests that no living process carries out.
pub async fn unclaimed(tx: &mut Tx, now: Millis) -> Result<Vec<ChangeRequestId>> {
    let sql = format!(
        "SELECT change_request_id FROM change_request WHERE status = 'APPROVED' \
         AND (claim IS NULL OR claim_time < ?) ORDER BY change_request_id LIMIT {A_FEW}"
    );
    let rows = tx.fetch_all(&sql, &[now.plus_ms(-CLAIM_MS).to_utc().into()]).await;
    let rows = rows.context("look for approved changes")?;
    rows.iter().map(|row| Ok(ChangeRequestId(row.get_int("change_request_id")?))).collect()
}

/// Claims an approved request to carry it out; `false` when another process has it or it has ended.
pub async fn claim(tx: &mut Tx, id: ChangeRequestId, claim: &str, now: Millis) -> Result<bool> {
    let sql = "UPDATE change_request SET claim = ?, claim_time = ? WHERE change_request_id = ? \
               AND status = 'APPROVED' AND (claim IS NULL OR claim_time < ?)";
    let over = now.plus_ms(-CLAIM_MS).to_utc();
    let values = [claim.into(), now.to_utc().into(), id.0.into(), over.into()];
    Ok(tx.execute(sql, &values).await.context("take a change request")? == 1)
}

/// Releases a request that could not be carried out for now.
pub async fn release(tx: &mut Tx, id: ChangeRequestId, claim: &str) -> Result<()> {
    let sql = "UPDATE change_request SET claim = NULL, claim_time = NULL \
               WHERE change_request_id = ? AND status = 'APPROVED' AND claim = ?";
    let done = tx.execute(sql, &[id.0.into(), claim.into()]).await;
    done.map(drop).context("give a change request back")
}

/// Marks a request as carried out, in the transaction of its change. Several audit records of one
/// change mark it once.
pub async fn mark_carried_out(tx: &mut Tx, change: &ApprovedChange, now: Millis) -> Result<()> {
    let sql = "UPDATE change_request SET status = 'DONE', carried_out_time = ? \
               WHERE change_request_id = ? AND status = 'APPROVED' AND claim = ?";
    let values = [now.to_utc().into(), change.id.0.into(), change.claim.as_str().into()];
    if tx.execute(sql, &values).await.context("mark a change carried out")? == 1 {
        return Ok(());
    }
    let sql = "SELECT change_request_id FROM change_request \
               WHERE change_request_id = ? AND status = 'DONE' AND claim = ?";
    let values = [change.id.0.into(), change.claim.as_str().into()];
    match tx.fetch_optional(sql, &values).await.context("read change_request")? {
        Some(_) => Ok(()),
        None => Err(ChangeTaken(change.id).into()),
    }
}

/// Stores the result of carrying out a request: `status` if its change did not mark it, and the
/// answer.
pub async fn finish(
    tx: &mut Tx,
    change: &ApprovedChange,
    status: ChangeRequestStatus,
    code: u16,
    answer: &Json,
    now: Millis,
) -> Result<()> {
    let answer = packed::pack_value(answer)?;
    packed::check_fits(tx, "the answer to this change", &answer).await?;
    let sql = "UPDATE change_request SET status = CASE WHEN status = 'APPROVED' THEN ? ELSE status END, \
               carried_out_time = COALESCE(carried_out_time, ?), \
               answer_status = ?, answer = ? \
               WHERE change_request_id = ? AND claim = ? AND status IN ('APPROVED', 'DONE')";
    let done = (status == ChangeRequestStatus::Done).then_some(now);
    let values = [
        status.as_str().into(),
        done.map(Millis::to_utc).into(),
        i64::from(code).into(),
        answer.into(),
        change.id.0.into(),
        change.claim.as_str().into(),
    ];
    tx.execute(sql, &values).await.context("write what a change came to")?;
    drop_content(tx, change.id).await
}

/// The details of an audit record, with the request that it carries out.
pub(super) fn with_request(detail: Option<&Json>, change: &ApprovedChange) -> Json {
    let request = json!({
        "id": change.id.0, "approved_by": change.approved_by, "alone": change.is_alone,
    });
    match detail {
        Some(Json::Object(members)) => {
            let mut members = members.clone();
            members.insert("change_request".to_owned(), request);
            Json::Object(members)
        }
        None | Some(Json::Null) => json!({ "change_request": request }),
        Some(other) => json!({ "detail": other, "change_request": request }),
    }
}

async fn read_requests(tx: &mut Tx, sql: &str, values: &[SqlValue]) -> Result<Vec<ChangeRequest>> {
    let rows = tx.fetch_all(sql, values).await.context("read change_request")?;
    rows.iter().map(of_row).collect()
}

fn of_row(row: &Row) -> Result<ChangeRequest> {
    let (status, action) = (row.get_text("status")?, row.get_text("action")?);
    let status = ChangeRequestStatus::parse(&status)
        .with_context(|| format!("change_request.status holds {status:?}, which is no status"))?;
    let action = GuardedAction::parse(&action)
        .with_context(|| format!("change_request.action holds {action:?}, which is no action"))?;
    let operator = |actor: String, host: String| Operator { actor, host, change: None };
    let answer = row.opt_text("answer")?.map(|text| packed::unpack(&text)).transpose()?;
    let code = row.opt_int("answer_status")?.and_then(|code| u16::try_from(code).ok());
    Ok(ChangeRequest {
        id: ChangeRequestId(row.get_int("change_request_id")?),
        status,
        user: UserId(row.get_int("user_id")?),
        author: operator(row.get_text("author")?, row.get_text("author_host")?),
        token: row.opt_int("token_id")?,
        action,
        demands: serde_json::from_str(&row.get_text("demands_json")?)
            .context("read change_request.demands_json")?,
        method: row.get_text("method")?,
        path: row.get_text("path")?,
        summary: row.get_text("summary")?,
        fingerprint: row.get_text("fingerprint")?,
        reason: row.get_text("reason")?,
        created: row.get_time("create_time")?.into(),
        expires: row.get_time("expire_time")?.into(),
        decided_by: row
            .opt_text("decided_by")?
            .map(|actor| {
                Ok::<_, anyhow::Error>(operator(
                    actor,
                    row.opt_text("decided_from")?.unwrap_or_default(),
                ))
            })
            .transpose()?,
        comment: row.opt_text("decision_comment")?,
        decided: row.opt_time("decide_time")?.map(Millis::from),
        is_alone: row.get_flag("is_alone")?,
        carried_out: row.opt_time("carried_out_time")?.map(Millis::from),
        answer: code.zip(answer),
    })
}
