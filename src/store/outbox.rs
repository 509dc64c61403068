//! `email_notifications`: the outbox. A row is written in the transaction of the change that it
//! reports, and sent after the commit.

mod digest;
mod due_notices;
mod notice_actions;
mod outbox_query;

pub use digest::{DigestCandidate, crowds, due_digests, due_repeats, put_together};
pub use due_notices::{
    ClaimedNotification, DeliveryMark, carried_now, claim, last_told, let_go, mark_notice,
    mute_notice, next_due, put_off, waits_for_digest,
};
pub use notice_actions::{acknowledge, end_snooze, purge, resend, snooze, snoozes};
pub use outbox_query::{
    NotificationRow, OutboxFilter, counts, find_notification, list_notifications, list_page, of_row,
};

use crate::domain::id::{BatchId, QueueId};
use crate::domain::notice::{Addressee, Notice};
use crate::domain::notification::Notification;
use crate::domain::notification::event::NotifyWhen;
use crate::domain::text::lang::Lang;
use crate::domain::text::truncate_text;
use crate::domain::time::Millis;
use crate::store::Tx;
use anyhow::{Context as _, Result};
use std::collections::HashSet;

/// Maximum length of a body in characters: MySQL's column holds 65,535 bytes, and a character has
/// up to four.
const BODY_MAX: usize = 16_000;

/// Puts notices about a batch, or about one of its jobs, into the outbox.
pub async fn enqueue(
    tx: &mut Tx,
    batch: BatchId,
    queue_id: impl Into<Option<QueueId>>,
    notices: &[Notice],
    now: Millis,
) -> Result<()> {
    let subject =
        NotificationSubject { batch: Some(batch), queue_id: queue_id.into(), log_id: None };
    write(tx, subject, notices, now).await
}

/// The subject of notifications.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NotificationSubject {
    pub batch: Option<BatchId>,
    /// The job of the batch.
    pub queue_id: Option<QueueId>,
    /// The row of `job_execution_logs` that is marked NOTIFIED once they are sent.
    pub log_id: Option<i64>,
}

/// Puts notices about a subject into the outbox.
pub async fn enqueue_about(
    tx: &mut Tx,
    subject: NotificationSubject,
    notices: &[Notice],
    now: Millis,
) -> Result<()> {
    write(tx, subject, notices, now).await
}

/// Puts notices about no batch into the outbox.
pub async fn enqueue_plain(tx: &mut Tx, notices: &[Notice], now: Millis) -> Result<()> {
    write(tx, NotificationSubject::default(), notices, now).await
}

const COLUMNS: [&str; 19] = [
    "recipient_email",
    "subject",
    "body",
    "status",
    "created_at",
    "updated_at",
    "type",
    "retry_count",
    "is_system",
    "queue_id",
    "batch_id",
    "lang",
    "letter",
    "event_key",
    "told",
    "next_at",
    "group_code",
    "job_code",
    "log_id",
];

async fn write(
    tx: &mut Tx,
    subject: NotificationSubject,
    notices: &[Notice],
    now: Millis,
) -> Result<()> {
    let known = told_before(tx, notices).await?;
    let is_new = |notice: &&Notice| match &notice.event_key {
        Some(key) => !known.contains(&(key.clone(), notice.to.address.clone())),
        None => true,
    };
    let mut rows = Vec::new();
    for notice in notices.iter().filter(is_new) {
        rows.push(row_values(notice, subject, now)?);
    }
    tx.insert_many("email_notifications", &COLUMNS, rows).await.context("put mails into the outbox")
}

fn row_values(
    notice: &Notice,
    subject: NotificationSubject,
    now: Millis,
) -> Result<Vec<crate::db::SqlValue>> {
    let letter = &notice.letter;
    let lang = notice.to.lang.unwrap_or_default();
    let next_at = match notice.when {
        NotifyWhen::Now => Some(now.to_utc()),
        NotifyWhen::Batch | NotifyWhen::Day | NotifyWhen::Off => None,
    };
    Ok(vec![
        notice.to.address.as_str().into(),
        letter.subject_line(lang).into(),
        truncate_text(&letter.plain(lang), BODY_MAX).into(),
        "pending".into(),
        now.to_utc().into(),
        now.to_utc().into(),
        letter.event.as_str().into(),
        0i64.into(),
        true.into(),
        subject.queue_id.map(|id| id.0).into(),
        subject.batch.map(|id| id.0).into(),
        notice.to.lang.map(Lang::as_str).into(),
        serde_json::to_string(letter).context("write a letter as JSON")?.into(),
        notice.event_key.as_deref().into(),
        notice.when.as_str().into(),
        next_at.into(),
        letter.topic.group.as_deref().into(),
        letter.topic.job.as_deref().into(),
        subject.log_id.into(),
    ])
}

/// Of notices that may be sent only once, those that were: key and recipient.
async fn told_before(tx: &mut Tx, notices: &[Notice]) -> Result<HashSet<(String, String)>> {
    let keys: HashSet<&String> = notices.iter().filter_map(|n| n.event_key.as_ref()).collect();
    let mut known = HashSet::new();
    for key in keys {
        let sql = "SELECT recipient_email FROM email_notifications WHERE event_key = ?";
        let rows = tx.fetch_all(sql, &[key.as_str().into()]).await.context("look for notices")?;
        for row in rows {
            known.insert((key.clone(), row.get_text("recipient_email")?));
        }
    }
    Ok(known)
}

/// The recipients of a failure of a row, each with its language. Not those whose notification still
/// waits for a digest.
pub async fn told_of_failure(
    tx: &mut Tx,
    batch: BatchId,
    queue_id: Option<QueueId>,
) -> Result<Vec<Addressee>> {
    let of_row = if queue_id.is_some() { "AND queue_id = ?" } else { "" };
    let sql = format!(
        "SELECT DISTINCT recipient_email, lang FROM email_notifications WHERE batch_id = ? \
         AND type IN ('failed', 'timeout', 'unknown', 'parked', 'kill_unconfirmed', 'batch_failed') \
         AND (status IN ('sent', 'digest') OR (status = 'pending' AND told = 'now')) \
         {of_row} ORDER BY recipient_email"
    );
    let mut values = vec![batch.0.into()];
    values.extend(queue_id.map(|id| id.0.into()));
    let rows = tx.fetch_all(&sql, &values).await.context("look who was told of a failure")?;
    let to = |row: &crate::db::Row| -> Result<Addressee> {
        let lang = row.opt_text("lang")?.and_then(|code| Lang::from_code(&code));
        Ok(Addressee { address: row.get_text("recipient_email")?, lang })
    };
    rows.iter().map(to).collect()
}

/// The notification in a row. One in the format of an earlier or newer version is built from its
/// columns: it must not block the others.
fn letter_of(row: &crate::db::Row) -> Result<Notification> {
    use crate::domain::notification::BilingualText;
    use crate::domain::notification::event::NotificationEvent;
    let text = row.opt_text("letter")?;
    if let Some(letter) = text.and_then(|text| serde_json::from_str(&text).ok()) {
        return Ok(letter);
    }
    let subject = row.get_text("subject")?;
    let subject = subject.trim_start_matches(crate::domain::notification::SUBJECT_PREFIX).trim();
    let event = NotificationEvent::parse(&row.get_text("type")?).unwrap_or(NotificationEvent::Test);
    Ok(Notification::new(
        event,
        BilingualText::untranslated(subject),
        BilingualText::untranslated(row.get_text("body")?),
    ))
}
