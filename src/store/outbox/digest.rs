//! Notifications that wait to be sent as one.

use super::due_notices::{COLUMNS, ClaimedNotification, claimed};
use super::{BODY_MAX, COLUMNS as NEW};
use crate::domain::batch::BatchStatus;
use crate::domain::id::BatchId;
use crate::domain::notification::Notification;
use crate::domain::text::lang::Lang;
use crate::domain::text::truncate_text;
use crate::domain::time::Millis;
use crate::store::Tx;
use anyhow::{Context as _, Result};

/// Number of notifications read at once. The rest is combined at the next tick.
const MOST: u32 = 2_000;

/// Notifications to one recipient to be sent as one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DigestCandidate {
    pub recipient: String,
    pub lang: Option<Lang>,
    /// The batch, if all are about the same.
    pub batch: Option<BatchId>,
    /// The notifications, oldest first.
    pub letters: Vec<ClaimedNotification>,
}

/// Notifications that waited for the end of a batch that has ended, and those that waited for the
/// daily digest and were written before `day`.
pub async fn due_digests(tx: &mut Tx, day: Millis) -> Result<Vec<DigestCandidate>> {
    let (lock, mut all) = (tx.dialect().for_update_of_free(), Vec::new());
    for batch in ended_batches(tx).await? {
        let sql = format!(
            "SELECT {COLUMNS} FROM email_notifications WHERE batch_id = ? AND status = 'pending' \
             AND next_at IS NULL AND told = 'batch' ORDER BY id LIMIT ?{lock}"
        );
        let rows = tx.fetch_all(&sql, &[batch.0.into(), MOST.into()]).await;
        for row in &rows.context("take letters of an ended batch")? {
            gather(&mut all, claimed(row)?, Some(batch));
        }
    }
    let sql = format!(
        "SELECT {COLUMNS} FROM email_notifications WHERE status = 'pending' AND next_at IS NULL \
         AND told = 'day' AND created_at < ? ORDER BY id LIMIT ?{lock}"
    );
    let of_day = tx.fetch_all(&sql, &[day.to_utc().into(), MOST.into()]).await;
    let of_day = of_day.context("look for letters of the day")?;
    let mut days = Vec::new();
    for row in &of_day {
        gather(&mut days, claimed(row)?, None);
    }
    all.extend(days);
    Ok(all)
}

/// Ended batches with notifications that wait for their end.
async fn ended_batches(tx: &mut Tx) -> Result<Vec<BatchId>> {
    let sql = "SELECT DISTINCT batch_id FROM email_notifications WHERE status = 'pending' \
               AND next_at IS NULL AND told = 'batch' AND batch_id IS NOT NULL";
    let rows = tx.fetch_all(sql, &[]).await.context("look for letters of batches")?;
    let ids: Vec<i64> = rows.iter().map(|row| row.get_int("batch_id")).collect::<Result<_, _>>()?;
    let select = "SELECT batch_id, status FROM job_batch WHERE batch_id";
    let mut ended = Vec::new();
    for row in tx.fetch_in(select, &ids, "").await.context("look which batches have ended")? {
        if BatchStatus::parse(&row.get_text("status")?).is_some_and(BatchStatus::is_final) {
            ended.push(BatchId(row.get_int("batch_id")?));
        }
    }
    Ok(ended)
}

/// Due notifications to recipients with more than `over` of them.
pub async fn crowds(tx: &mut Tx, over: usize, now: Millis) -> Result<Vec<DigestCandidate>> {
    let sql = "SELECT recipient_email FROM email_notifications WHERE status = 'pending' \
               AND next_at <= ? GROUP BY recipient_email HAVING COUNT(*) > ?";
    let over = i64::try_from(over).unwrap_or(i64::MAX);
    let found = tx.fetch_all(sql, &[now.to_utc().into(), over.into()]).await;
    let lock = tx.dialect().for_update_of_free();
    let sql = format!(
        "SELECT {COLUMNS} FROM email_notifications WHERE status = 'pending' AND next_at <= ? \
         AND recipient_email = ? ORDER BY id LIMIT ?{lock}"
    );
    let mut all = Vec::new();
    for row in found.context("look for many letters to one")? {
        let to = row.get_text("recipient_email")?;
        let values = [now.to_utc().into(), to.as_str().into(), MOST.into()];
        let rows = tx.fetch_all(&sql, &values).await.context("take many letters to one")?;
        let letters: Vec<ClaimedNotification> = rows.iter().map(claimed).collect::<Result<_>>()?;
        all.extend(of_one(letters));
    }
    Ok(all)
}

/// Muted notifications that are due, by recipient.
pub async fn due_repeats(tx: &mut Tx, now: Millis) -> Result<Vec<DigestCandidate>> {
    let lock = tx.dialect().for_update_of_free();
    let sql = format!(
        "SELECT {COLUMNS} FROM email_notifications WHERE status = 'pending' AND next_at <= ? \
         AND told = 'mute' ORDER BY id LIMIT ?{lock}"
    );
    let rows = tx.fetch_all(&sql, &[now.to_utc().into(), MOST.into()]).await;
    let mut all = Vec::new();
    for row in &rows.context("look for letters that were muted")? {
        gather(&mut all, claimed(row)?, None);
    }
    Ok(all)
}

/// Notifications to one recipient, with the batch that all of them are about.
fn of_one(letters: Vec<ClaimedNotification>) -> Option<DigestCandidate> {
    let first = letters.first()?;
    let (recipient, lang, batch) = (first.recipient.clone(), first.lang, first.batch);
    let batch = batch.filter(|id| letters.iter().all(|l| l.batch == Some(*id)));
    Some(DigestCandidate { recipient, lang, batch, letters })
}

fn gather(all: &mut Vec<DigestCandidate>, letter: ClaimedNotification, batch: Option<BatchId>) {
    let same = |w: &&mut DigestCandidate| w.recipient == letter.recipient && w.batch == batch;
    match all.iter_mut().find(same) {
        Some(waiting) => waiting.letters.push(letter),
        None => all.push(DigestCandidate {
            recipient: letter.recipient.clone(),
            lang: letter.lang,
            batch,
            letters: vec![letter],
        }),
    }
}

/// Writes the one notification that is sent in place of several, and marks those; a single one is
/// sent as it is.
pub async fn put_together(
    tx: &mut Tx,
    waiting: &DigestCandidate,
    whole: &Notification,
    now: Millis,
) -> Result<()> {
    let ids: Vec<i64> = waiting.letters.iter().map(|letter| letter.id).collect();
    if let [alone] = ids.as_slice() {
        let sql = "UPDATE email_notifications SET next_at = ?, updated_at = ?, claimed_by = NULL, \
                   told = 'now' WHERE id = ?";
        tx.execute(sql, &[now.to_utc().into(), now.to_utc().into(), (*alone).into()]).await?;
        return Ok(());
    }
    let lang = waiting.lang.unwrap_or_default();
    let places = vec!["?"; NEW.len()].join(", ");
    let sql = format!("INSERT INTO email_notifications ({}) VALUES ({places})", NEW.join(", "));
    let values = [
        waiting.recipient.as_str().into(),
        whole.subject_line(lang).into(),
        truncate_text(&whole.plain(lang), BODY_MAX).into(),
        "pending".into(),
        now.to_utc().into(),
        now.to_utc().into(),
        whole.event.as_str().into(),
        0i64.into(),
        true.into(),
        None::<i64>.into(),
        waiting.batch.map(|id| id.0).into(),
        waiting.lang.map(Lang::as_str).into(),
        serde_json::to_string(whole).context("write a letter as JSON")?.into(),
        None::<&str>.into(),
        "now".into(),
        now.to_utc().into(),
        whole.topic.group.as_deref().into(),
        whole.topic.job.as_deref().into(),
        None::<i64>.into(),
    ];
    let digest = tx.insert_id(&sql, "id", &values).await.context("write a digest")?;
    let set = "UPDATE email_notifications SET status = 'digest', digest_id = ?, send_time = ?, \
               updated_at = ?, next_at = NULL, claimed_by = NULL WHERE id";
    let values = [digest.into(), now.to_utc().into(), now.to_utc().into()];
    tx.execute_in(set, &values, &ids, "AND status = 'pending'", &[]).await?;
    Ok(())
}
