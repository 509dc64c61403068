//! Actions of people on notifications: resend, acknowledge, snooze, remove.

use super::OutboxFilter;
use crate::domain::notification::event::NotificationEvent;
use crate::domain::notification::outbox_schedule::Snooze;
use crate::domain::time::Millis;
use crate::store::Tx;
use anyhow::{Context as _, Result};

/// Maximum number of rows changed by one statement.
const STEP: u32 = 1_000;

/// Makes rows of `ids` due again, with their Message-ID; returns their number. Those sent in a
/// digest, or being sent, are skipped.
pub async fn resend(tx: &mut Tx, ids: &[i64], now: Millis) -> Result<u64> {
    let set = "UPDATE email_notifications SET status = 'pending', next_at = ?, updated_at = ?, \
               retry_count = 0, fail_reason = NULL, claimed_by = NULL, told = 'now' WHERE id";
    let at = now.to_utc();
    let after = "AND status IN ('sent', 'failed', 'acked', 'pending') AND claimed_by IS NULL";
    tx.execute_in(set, &[at.into(), at.into()], ids, after, &[]).await.context("send mails again")
}

/// Acknowledges waiting rows, so that they are not sent.
pub async fn acknowledge(tx: &mut Tx, ids: &[i64], who_and_why: &str, now: Millis) -> Result<u64> {
    let set = "UPDATE email_notifications SET status = 'acked', send_time = ?, updated_at = ?, \
               fail_reason = ?, next_at = NULL, claimed_by = NULL WHERE id";
    let at = now.to_utc();
    let values = [at.into(), at.into(), who_and_why.into()];
    let after = "AND status IN ('pending', 'failed') AND claimed_by IS NULL";
    tx.execute_in(set, &values, ids, after, &[]).await.context("acknowledge mails")
}

/// Removes rows after `after`, oldest first, that are sent, acknowledged or given up and older than
/// `before`: one step. Returns their number, and the row after which the next step begins; `None`
/// after the last.
pub async fn purge(
    tx: &mut Tx,
    filter: &OutboxFilter,
    before: Millis,
    after: i64,
) -> Result<(u64, Option<i64>)> {
    let sql =
        "SELECT id FROM email_notifications WHERE id > ? AND created_at < ? ORDER BY id LIMIT ?";
    let values = [after.into(), before.to_utc().into(), STEP.into()];
    let rows = tx.fetch_all(sql, &values).await.context("look for old mails")?;
    let ids: Vec<i64> = rows.iter().map(|row| row.get_int("id")).collect::<Result<_, _>>()?;
    let (wanted, values) = filter.condition();
    let sql = "DELETE FROM email_notifications WHERE id";
    let rest = format!("AND status <> 'pending' AND {wanted}");
    let gone = tx.execute_in(sql, &[], &ids, &rest, &values).await.context("remove old mails")?;
    Ok((gone, ids.last().copied()))
}

/// Stores a snooze; removes those that ended long ago.
pub async fn snooze(tx: &mut Tx, snooze: &Snooze, now: Millis) -> Result<i64> {
    let sql = "DELETE FROM notify_snooze WHERE until_time < ?";
    tx.execute(sql, &[now.plus_ms(-30 * 86_400_000).to_utc().into()]).await?;
    let sql = "INSERT INTO notify_snooze (group_code, job_code, type, until_time, actor, reason, \
               create_time) VALUES (?, ?, ?, ?, ?, ?, ?)";
    let values = [
        snooze.group.as_str().into(),
        snooze.job.as_deref().into(),
        snooze.event.map(NotificationEvent::as_str).into(),
        snooze.until.to_utc().into(),
        snooze.by.as_str().into(),
        snooze.reason.as_str().into(),
        now.to_utc().into(),
    ];
    tx.insert_id(sql, "snooze_id", &values).await.context("write a snooze")
}

/// The snoozes in effect.
pub async fn snoozes(tx: &mut Tx, now: Millis) -> Result<Vec<Snooze>> {
    let sql = "SELECT snooze_id, group_code, job_code, type, until_time, actor, reason \
               FROM notify_snooze WHERE until_time > ? ORDER BY snooze_id";
    let rows = tx.fetch_all(sql, &[now.to_utc().into()]).await.context("read snoozes")?;
    let mut all = Vec::new();
    for row in &rows {
        all.push(Snooze {
            id: row.get_int("snooze_id")?,
            group: row.get_text("group_code")?,
            job: row.opt_text("job_code")?,
            event: row.opt_text("type")?.and_then(|word| NotificationEvent::parse(&word)),
            until: row.get_time("until_time")?.into(),
            by: row.get_text("actor")?,
            reason: row.get_text("reason")?,
        });
    }
    Ok(all)
}

/// Ends a snooze now; notifications that waited for its end are due. Returns it, or `None` when no
/// such snooze is in effect.
pub async fn end_snooze(tx: &mut Tx, id: i64, now: Millis) -> Result<Option<Snooze>> {
    let known = snoozes(tx, now).await?.into_iter().find(|snooze| snooze.id == id);
    let Some(snooze) = known else { return Ok(None) };
    let at = now.to_utc();
    tx.execute("DELETE FROM notify_snooze WHERE snooze_id = ?", &[id.into()]).await?;
    let sql = "UPDATE email_notifications SET next_at = ?, updated_at = ? WHERE status = 'pending' \
               AND next_at = ? AND claimed_by IS NULL";
    tx.execute(sql, &[at.into(), at.into(), snooze.until.to_utc().into()]).await?;
    Ok(Some(snooze))
}
