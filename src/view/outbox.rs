//! Notifications and snoozes.

use crate::domain::notification::event::NotificationEvent;
use crate::domain::notification::outbox_schedule::Snooze;
use crate::domain::notification::{Notification, NotificationTopic};
use crate::store::outbox::NotificationRow;
use schemars::JsonSchema;
use serde::Serialize;

/// A notification in a list.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct NotificationSummary {
    /// The number of the notification.
    pub id: i64,
    /// When it was written, UTC.
    pub created: String,
    /// The event: `failed`, `batch_late` …
    pub event: String,
    /// An address, or `channel:NAME`.
    pub to: String,
    /// The language; null for a channel that gets both.
    pub lang: Option<String>,
    /// `pending`, `sent`, `failed`, `digest` or `acked`.
    pub status: &'static str,
    /// When it is sent: at once, or in a digest.
    pub delivery: String,
    /// The subject line.
    pub subject: String,
    /// When it was sent, UTC.
    pub sent: Option<String>,
    /// When it is next attempted, UTC.
    pub next: Option<String>,
    /// Number of failed delivery attempts.
    pub failed_attempts: u32,
    /// The error of the last one.
    pub reason: Option<String>,
    /// The number of the digest that it was sent in.
    pub digest: Option<i64>,
    /// The subject of the notification.
    pub topic: NotificationTopic,
}

/// A notification as it is or was sent.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct NotificationDetail {
    #[serde(flatten)]
    summary: NotificationSummary,
    /// The text.
    body: String,
    /// The content from which the text was rendered.
    notification: Notification,
}

impl NotificationSummary {
    /// The document of a notification.
    pub fn from_row(row: &NotificationRow) -> Self {
        Self {
            id: row.id,
            created: row.created.to_string(),
            event: row.event.clone(),
            to: row.recipient.clone(),
            lang: row.lang.clone(),
            status: row.status.as_str(),
            delivery: row.told.clone(),
            subject: row.subject.clone(),
            sent: row.sent.map(|at| at.to_string()),
            next: row.next_at.map(|at| at.to_string()),
            failed_attempts: row.failed,
            reason: row.reason.clone(),
            digest: row.digest,
            topic: row.letter.topic.clone(),
        }
    }
}

impl NotificationDetail {
    /// The document of a notification, with its text.
    pub fn from_row(row: &NotificationRow) -> Self {
        let (body, letter) = (row.body.clone(), row.letter.clone());
        Self { summary: NotificationSummary::from_row(row), body, notification: letter }
    }
}

/// A snooze.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct SnoozeDetail {
    /// The number of the snooze.
    id: i64,
    /// The group code.
    group: String,
    /// The job; null for the whole group.
    job: Option<String>,
    /// The event; null for all events.
    event: Option<NotificationEvent>,
    /// When it ends, UTC.
    until: String,
    /// Who set it.
    by: String,
    /// The reason.
    reason: String,
}

impl SnoozeDetail {
    /// The document of a snooze.
    pub fn from_snooze(s: &Snooze) -> Self {
        Self {
            id: s.id,
            group: s.group.clone(),
            job: s.job.clone(),
            event: s.event,
            until: s.until.to_string(),
            by: s.by.clone(),
            reason: s.reason.clone(),
        }
    }
}
