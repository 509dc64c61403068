//! Due notifications: claimed by one process, sent outside of any transaction, marked.

use super::letter_of;
use crate::db::{Row, SqlValue};
use crate::domain::id::{BatchId, NodeId, QueueId};
use crate::domain::notification::Notification;
use crate::domain::notification::event::NotificationEvent;
use crate::domain::text::lang::Lang;
use crate::domain::time::Millis;
use crate::store::{Tx, log};
use anyhow::{Context as _, Result};

/// A notification that this process sends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClaimedNotification {
    /// Its key.
    pub id: i64,
    pub recipient: String,
    /// The language; the installation's if `None`.
    pub lang: Option<Lang>,
    pub event: NotificationEvent,
    /// The content.
    pub letter: Notification,
    /// The batch that it is about.
    pub batch: Option<BatchId>,
    /// The row of the job that it is about.
    pub queue_id: Option<QueueId>,
    /// When it was written.
    pub written: Millis,
    /// Number of failed attempts.
    pub failed: u32,
}

/// The result of a delivery attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeliveryMark {
    /// Accepted by its server.
    Sent {
        /// The subject as sent.
        subject: String,
        /// The text as sent.
        body: String,
    },
    /// Failed, to be retried at this time, with the reason.
    Again(Millis, String),
    /// Not attempted, waits until this time, with the reason.
    Wait(Millis, String),
    /// Given up, with the reason.
    Failed(String),
}

pub(super) const COLUMNS: &str = "id, recipient_email, lang, type, letter, subject, body, batch_id, \
     queue_id, created_at, retry_count";

pub(super) fn claimed(row: &Row) -> Result<ClaimedNotification> {
    let letter = letter_of(row)?;
    Ok(ClaimedNotification {
        id: row.get_int("id")?,
        recipient: row.get_text("recipient_email")?,
        lang: row.opt_text("lang")?.and_then(|code| Lang::from_code(&code)),
        event: letter.event,
        letter,
        batch: row.opt_int("batch_id")?.map(BatchId),
        queue_id: row.opt_int("queue_id")?.map(QueueId),
        written: row.get_time("created_at")?.into(),
        failed: u32::try_from(row.get_int("retry_count")?).unwrap_or(0),
    })
}

/// Claims up to `most` due notifications, the longest due first: until `until` no other process
/// claims them, and if this one dies they are due again.
pub async fn claim(
    tx: &mut Tx,
    me: &NodeId,
    now: Millis,
    until: Millis,
    most: u32,
) -> Result<Vec<ClaimedNotification>> {
    let lock = tx.dialect().for_update_of_free();
    let sql = format!(
        "SELECT {COLUMNS} FROM email_notifications WHERE status = 'pending' AND next_at <= ? \
         ORDER BY next_at, id LIMIT ?{lock}"
    );
    let rows = tx.fetch_all(&sql, &[now.to_utc().into(), most.into()]).await;
    let rows = rows.context("look for mails that are due")?;
    let claimed: Vec<ClaimedNotification> = rows.iter().map(claimed).collect::<Result<_>>()?;
    let ids: Vec<i64> = claimed.iter().map(|mail| mail.id).collect();
    let set = "UPDATE email_notifications SET claimed_by = ?, next_at = ?, updated_at = ? WHERE id";
    let values = [me.0.as_str().into(), until.to_utc().into(), now.to_utc().into()];
    tx.execute_in(set, &values, &ids, "", &[]).await.context("take mails to send")?;
    Ok(claimed)
}

/// Postpones claimed notifications without counting an attempt, because they are snoozed until
/// then.
pub async fn put_off(
    tx: &mut Tx,
    me: &NodeId,
    ids: &[i64],
    until: Millis,
    why: &str,
) -> Result<()> {
    let set =
        "UPDATE email_notifications SET claimed_by = NULL, next_at = ?, fail_reason = ? WHERE id";
    let values = [until.to_utc().into(), why.into()];
    let after = "AND status = 'pending' AND claimed_by = ?";
    tx.execute_in(set, &values, ids, after, &[me.0.as_str().into()]).await?;
    Ok(())
}

/// When the same event was last sent to the same recipient, if after `since`.
pub async fn last_told(
    tx: &mut Tx,
    mail: &ClaimedNotification,
    since: Millis,
) -> Result<Option<Millis>> {
    let topic = &mail.letter.topic;
    let sql = "SELECT send_time FROM email_notifications WHERE send_time > ? AND recipient_email = ? \
               AND type = ? AND status IN ('sent', 'digest') AND COALESCE(group_code, '') = ? \
               AND COALESCE(job_code, '') = ? ORDER BY send_time DESC LIMIT 1";
    let values = [
        since.to_utc().into(),
        mail.recipient.as_str().into(),
        mail.event.as_str().into(),
        topic.group.as_deref().unwrap_or_default().into(),
        topic.job.as_deref().unwrap_or_default().into(),
    ];
    let row = tx.fetch_optional(sql, &values).await.context("look for the same letter")?;
    Ok(row.map(|row| row.get_time("send_time")).transpose()?.map(Millis::from))
}

/// Postpones a repeat until then, to be sent with others.
pub async fn mute_notice(
    tx: &mut Tx,
    me: &NodeId,
    id: i64,
    until: Millis,
    why: &str,
) -> Result<()> {
    let sql = "UPDATE email_notifications SET told = 'mute', claimed_by = NULL, next_at = ?, \
               fail_reason = ? WHERE id = ? AND status = 'pending' AND claimed_by = ?";
    let values = [until.to_utc().into(), why.into(), id.into(), me.0.as_str().into()];
    tx.execute(sql, &values).await.context("mute a mail").map(drop)
}

/// Stores the result of an attempt; `false` when the row no longer belongs to this process.
pub async fn mark_notice(
    tx: &mut Tx,
    me: &NodeId,
    id: i64,
    mark: &DeliveryMark,
    now: Millis,
) -> Result<bool> {
    let (set, mut values): (&str, Vec<SqlValue>) = match mark {
        DeliveryMark::Sent { subject, body } => (
            "status = 'sent', send_time = ?, subject = ?, body = ?, fail_reason = NULL, next_at = NULL",
            vec![now.to_utc().into(), subject.as_str().into(), body.as_str().into()],
        ),
        DeliveryMark::Again(at, why) => (
            "next_at = ?, fail_reason = ?, retry_count = retry_count + 1",
            vec![at.to_utc().into(), why.as_str().into()],
        ),
        DeliveryMark::Wait(at, why) => {
            ("next_at = ?, fail_reason = ?", vec![at.to_utc().into(), why.as_str().into()])
        }
        DeliveryMark::Failed(why) => (
            "status = 'failed', fail_reason = ?, retry_count = retry_count + 1, next_at = NULL",
            vec![why.as_str().into()],
        ),
    };
    let sql = format!(
        "UPDATE email_notifications SET {set}, claimed_by = NULL, updated_at = ? \
         WHERE id = ? AND status = 'pending' AND claimed_by = ?"
    );
    values.extend([now.to_utc().into(), id.into(), me.0.as_str().into()]);
    let is_ours = tx.execute(&sql, &values).await.context("mark a mail")? == 1;
    if is_ours && matches!(mark, DeliveryMark::Sent { .. }) {
        let log_ids = reported_changes(tx, id).await?;
        log::note_notified(tx, &log_ids).await?;
    }
    Ok(is_ours)
}

/// The changes of status that a notification reports: its own, or those of the notifications in its
/// digest.
async fn reported_changes(tx: &mut Tx, id: i64) -> Result<Vec<i64>> {
    let sql = "SELECT log_id FROM email_notifications WHERE id = ? AND log_id IS NOT NULL \
               UNION ALL \
               SELECT log_id FROM email_notifications WHERE digest_id = ? AND log_id IS NOT NULL";
    let rows = tx.fetch_all(sql, &[id.into(), id.into()]).await;
    let rows = rows.context("read which changes a mail reports")?;
    rows.iter().map(|row| Ok(row.get_int("log_id")?)).collect()
}

/// Makes notifications due that waited for this reason, because their channel was missing.
pub async fn carried_now(tx: &mut Tx, reason: &str, now: Millis) -> Result<()> {
    let sql = "UPDATE email_notifications SET next_at = ?, fail_reason = NULL \
               WHERE status = 'pending' AND next_at > ? AND claimed_by IS NULL AND fail_reason = ?";
    let values = [now.to_utc().into(), now.to_utc().into(), reason.into()];
    tx.execute(sql, &values).await.context("take letters that waited").map(drop)
}

/// Releases all claims of this process at once.
pub async fn let_go(tx: &mut Tx, me: &NodeId, now: Millis) -> Result<()> {
    let sql = "UPDATE email_notifications SET claimed_by = NULL, next_at = ? \
               WHERE status = 'pending' AND next_at > ? AND claimed_by = ?";
    let values = [now.to_utc().into(), now.to_utc().into(), me.0.as_str().into()];
    tx.execute(sql, &values).await.context("give back mails").map(drop)
}

/// When the next notification is due; `None` when none waits.
pub async fn next_due(tx: &mut Tx) -> Result<Option<Millis>> {
    let sql = "SELECT next_at FROM email_notifications WHERE status = 'pending' \
               AND next_at IS NOT NULL ORDER BY next_at LIMIT 1";
    let row = tx.fetch_optional(sql, &[]).await.context("look when the next mail is due")?;
    Ok(row.map(|row| row.get_time("next_at")).transpose()?.map(Millis::from))
}

/// Whether notifications wait for a digest.
pub async fn waits_for_digest(tx: &mut Tx) -> Result<bool> {
    let sql =
        "SELECT id FROM email_notifications WHERE status = 'pending' AND next_at IS NULL LIMIT 1";
    Ok(tx.fetch_optional(sql, &[]).await.context("look for digests")?.is_some())
}
