//! Reads the outbox for people.

use super::letter_of;
use crate::db::{Row, SqlValue};
use crate::domain::id::{BatchId, QueueId};
use crate::domain::job::job_key::JobFilter;
use crate::domain::notification::Notification;
use crate::domain::notification::outbox_schedule::MailStatus;
use crate::domain::time::Millis;
use crate::store::seen::AuditScope;
use crate::store::{Tx, job_condition};
use anyhow::{Context as _, Result};

/// A filter for notifications; a `None` field does not restrict.
#[derive(Clone, Debug, Default)]
pub struct OutboxFilter {
    pub status: Option<MailStatus>,
    pub to: Option<String>,
    pub group: Option<String>,
    pub job: Option<JobFilter>,
    /// The name of the event.
    pub event: Option<String>,
}

/// A notification for display.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotificationRow {
    pub id: i64,
    pub recipient: String,
    /// The language code; the installation's if `None`.
    pub lang: Option<String>,
    /// The name of the event.
    pub event: String,
    pub status: MailStatus,
    /// `now`, `batch` or `day`.
    pub told: String,
    /// The subject line.
    pub subject: String,
    /// The text; as sent, once it was sent.
    pub body: String,
    /// The content.
    pub letter: Notification,
    pub created: Millis,
    /// When its server accepted it.
    pub sent: Option<Millis>,
    /// When it is next attempted.
    pub next_at: Option<Millis>,
    /// Number of failed attempts.
    pub failed: u32,
    /// Why the last attempt failed, or why it waits.
    pub reason: Option<String>,
    /// The process that is sending it.
    pub claimed_by: Option<String>,
    /// The digest in which it was sent.
    pub digest: Option<i64>,
}

impl OutboxFilter {
    /// The condition on rows, and its values.
    pub(super) fn condition(&self) -> (String, Vec<SqlValue>) {
        let status = self.status.map(|status| status.as_str().to_owned());
        let wanted = [
            ("status", status.as_ref()),
            ("recipient_email", self.to.as_ref()),
            ("group_code", self.group.as_ref()),
            ("type", self.event.as_ref()),
        ];
        let said = wanted.into_iter().filter_map(|(column, text)| Some((column, text?)));
        let (mut texts, mut values): (Vec<String>, Vec<SqlValue>) =
            said.map(|(column, text)| (format!("{column} = ?"), text.as_str().into())).unzip();
        if let Some((condition, its)) = self.job.as_ref().map(job_condition) {
            texts.push(condition);
            values.extend(its);
        }
        match texts.is_empty() {
            true => ("1 = 1".to_owned(), values),
            false => (texts.join(" AND "), values),
        }
    }
}

const COLUMNS: &str = "id, recipient_email, lang, type, status, told, subject, body, letter, created_at, \
     send_time, next_at, retry_count, fail_reason, claimed_by, digest_id";

fn shown(row: &Row) -> Result<NotificationRow> {
    let word = row.get_text("status")?;
    Ok(NotificationRow {
        id: row.get_int("id")?,
        recipient: row.get_text("recipient_email")?,
        lang: row.opt_text("lang")?,
        event: row.get_text("type")?,
        status: MailStatus::parse(&word)
            .with_context(|| format!("email_notifications.status holds {word:?}"))?,
        told: row.get_text("told")?,
        subject: row.get_text("subject")?,
        body: row.get_text("body")?,
        letter: letter_of(row)?,
        created: row.get_time("created_at")?.into(),
        sent: row.opt_time("send_time")?.map(Millis::from),
        next_at: row.opt_time("next_at")?.map(Millis::from),
        failed: u32::try_from(row.get_int("retry_count")?).unwrap_or(0),
        reason: row.opt_text("fail_reason")?,
        claimed_by: row.opt_text("claimed_by")?,
        digest: row.opt_int("digest_id")?,
    })
}

/// The latest rows, newest first.
pub async fn list_notifications(
    tx: &mut Tx,
    filter: &OutboxFilter,
    limit: u32,
) -> Result<Vec<NotificationRow>> {
    let (wanted, mut values) = filter.condition();
    let sql = format!(
        "SELECT {COLUMNS} FROM email_notifications WHERE {wanted} ORDER BY id DESC LIMIT ?"
    );
    values.push(limit.into());
    let rows = tx.fetch_all(&sql, &values).await.context("read the outbox")?;
    rows.iter().map(shown).collect()
}

/// The latest rows about one job of a batch, newest first.
pub async fn of_row(
    tx: &mut Tx,
    batch: BatchId,
    row: QueueId,
    limit: u32,
) -> Result<Vec<NotificationRow>> {
    let sql = format!(
        "SELECT {COLUMNS} FROM email_notifications WHERE batch_id = ? AND queue_id = ? \
         ORDER BY id DESC LIMIT ?"
    );
    let rows = tx.fetch_all(&sql, &[batch.0.into(), row.0.into(), limit.into()]).await;
    rows.context("read the mails about a job")?.iter().map(shown).collect()
}

/// Rows that the caller may see, newest first, older than the row `before`.
pub async fn list_page(
    tx: &mut Tx,
    filter: &OutboxFilter,
    told: &AuditScope,
    before: Option<i64>,
    limit: u32,
) -> Result<Vec<NotificationRow>> {
    let (mut wanted, mut values) = filter.condition();
    let (whose, its) = told.condition("group_code");
    wanted.push_str(&whose);
    values.extend(its);
    if let Some(before) = before {
        wanted.push_str(" AND id < ?");
        values.push(before.into());
    }
    let sql = format!(
        "SELECT {COLUMNS} FROM email_notifications WHERE {wanted} ORDER BY id DESC LIMIT ?"
    );
    values.push(limit.into());
    let rows = tx.fetch_all(&sql, &values).await.context("read the outbox")?;
    rows.iter().map(shown).collect()
}

pub async fn find_notification(tx: &mut Tx, id: i64) -> Result<Option<NotificationRow>> {
    let sql = format!("SELECT {COLUMNS} FROM email_notifications WHERE id = ?");
    let row = tx.fetch_optional(&sql, &[id.into()]).await.context("read a mail")?;
    row.as_ref().map(shown).transpose()
}

/// Number of rows that wait, and that were given up. The sent ones may be millions and are not
/// counted.
pub async fn counts(tx: &mut Tx) -> Result<Vec<(MailStatus, i64)>> {
    let mut all = Vec::new();
    for status in [MailStatus::Pending, MailStatus::Failed] {
        let sql = "SELECT COUNT(*) AS n FROM email_notifications WHERE status = ?";
        let row = tx.fetch_optional(sql, &[status.as_str().into()]).await;
        let row = row.context("count the outbox")?;
        all.push((status, row.map_or(Ok(0), |row| row.get_int("n"))?));
    }
    Ok(all)
}
