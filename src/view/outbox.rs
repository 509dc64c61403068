//! What people are told, and what they do not want to hear for a while.

use crate::domain::notification::event::NotificationEvent;
use crate::domain::notification::outbox_schedule::Snooze;
use crate::domain::notification::{Notification, NotificationTopic};
use crate::store::outbox::NotificationRow;
use schemars::JsonSchema;
use serde::Serialize;

/// A notification of a list.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct NotificationSummary {
    /// Its number.
    pub id: i64,
    /// When it was written, UTC.
    pub created: String,
    /// What happened: `failed`, `batch_late` …
    pub event: String,
    /// An address, or `channel:NAME`.
    pub to: String,
    /// In which language it is; null for a channel that takes both.
    pub lang: Option<String>,
    /// `pending`, `sent`, `failed`, `digest` or `acked`.
    pub status: &'static str,
    /// How the recipient came to hear of it.
    pub told: String,
    /// One line.
    pub subject: String,
    /// When it was sent, UTC.
    pub sent: Option<String>,
    /// When it is tried next, UTC.
    pub next: Option<String>,
    /// Attempts to send it that failed.
    pub failed_tries: u32,
    /// What the last of them said.
    pub reason: Option<String>,
    /// The digest that took its place, by its number.
    pub digest: Option<i64>,
    /// What it is about.
    pub topic: NotificationTopic,
}

/// A notification as it is or was sent.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct NotificationDetail {
    #[serde(flatten)]
    summary: NotificationSummary,
    /// Its text.
    body: String,
    /// What the text was drawn from.
    letter: Notification,
}

impl NotificationSummary {
    /// A row of the outbox.
    pub fn from_row(row: &NotificationRow) -> Self {
        Self {
            id: row.id,
            created: row.created.to_string(),
            event: row.event.clone(),
            to: row.recipient.clone(),
            lang: row.lang.clone(),
            status: row.status.as_str(),
            told: row.told.clone(),
            subject: row.subject.clone(),
            sent: row.sent.map(|at| at.to_string()),
            next: row.next_at.map(|at| at.to_string()),
            failed_tries: row.failed,
            reason: row.reason.clone(),
            digest: row.digest,
            topic: row.letter.topic.clone(),
        }
    }
}

impl NotificationDetail {
    /// A row of the outbox, with its text.
    pub fn from_row(row: &NotificationRow) -> Self {
        let (body, letter) = (row.body.clone(), row.letter.clone());
        Self { summary: NotificationSummary::from_row(row), body, letter }
    }
}

/// What is not sent for a while.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct SnoozeDetail {
    /// Its number.
    id: i64,
    /// The group.
    group: String,
    /// The job; all of the group where it is null.
    job: Option<String>,
    /// The event; all where it is null.
    event: Option<NotificationEvent>,
    /// Until when, UTC.
    until: String,
    /// Who wants it.
    by: String,
    /// Why.
    reason: String,
}

impl SnoozeDetail {
    /// As it is stored.
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
