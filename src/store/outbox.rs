//! `email_notifications`: the outbox. A row is written in the transaction of the change it tells of.

use crate::domain::id::{BatchId, QueueId};
use crate::domain::notice::Notice;
use crate::domain::time::Millis;
use crate::store::Tx;
use anyhow::{Context as _, Result};

/// Puts notices about a batch, or one job of it, into the outbox.
pub async fn enqueue(
    tx: &mut Tx,
    batch: BatchId,
    queue_id: impl Into<Option<QueueId>>,
    notices: &[Notice],
    now: Millis,
) -> Result<()> {
    write(tx, (Some(batch), queue_id.into()), notices, now).await
}

/// Puts notices that are about no batch into the outbox.
pub async fn enqueue_plain(tx: &mut Tx, notices: &[Notice], now: Millis) -> Result<()> {
    write(tx, (None, None), notices, now).await
}

async fn write(
    tx: &mut Tx,
    (batch, queue_id): (Option<BatchId>, Option<QueueId>),
    notices: &[Notice],
    now: Millis,
) -> Result<()> {
    let columns = [
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
    ];
    let (batch, queue_id) = (batch.map(|id| id.0), queue_id.map(|id| id.0));
    let row = |notice: &Notice| {
        vec![
            notice.recipient.as_str().into(),
            notice.subject.as_str().into(),
            notice.body.as_str().into(),
            "pending".into(),
            now.to_utc().into(),
            now.to_utc().into(),
            notice.kind.into(),
            0i64.into(),
            true.into(),
            queue_id.into(),
            batch.into(),
        ]
    };
    let rows: Vec<_> = notices.iter().map(row).collect();
    tx.insert_many("email_notifications", &columns, rows).await.context("put mails into the outbox")
}
