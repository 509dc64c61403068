//! What people are told, and what they do not want to hear for a while.

use crate::domain::notification::outbox_schedule::Snooze;
use crate::store::outbox::NotificationRow;
use anyhow::{Context as _, Result};
use serde_json::{Value as Json, json};

/// A notice in a list.
pub fn as_json(row: &NotificationRow) -> Json {
    json!({
        "id": row.id, "created": row.created.to_string(), "event": row.event, "to": row.recipient,
        "lang": row.lang, "status": row.status.as_str(), "told": row.told, "subject": row.subject,
        "sent": row.sent.map(|at| at.to_string()), "next": row.next_at.map(|at| at.to_string()),
        "failed_tries": row.failed, "reason": row.reason, "digest": row.digest,
        "topic": row.letter.topic,
    })
}

/// A notice as it is or was sent.
pub fn whole(row: &NotificationRow) -> Result<Json> {
    let mut all = as_json(row);
    all["body"] = json!(row.body);
    all["letter"] = serde_json::to_value(&row.letter).context("write a letter as JSON")?;
    Ok(all)
}

/// What nobody wants to hear of.
pub fn snooze(s: &Snooze) -> Json {
    json!({
        "id": s.id, "group": s.group, "job": s.job, "event": s.event,
        "until": s.until.to_string(), "by": s.by, "reason": s.reason,
    })
}
