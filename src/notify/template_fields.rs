//! The fields that a template may use: a closed set, so that a misspelt name is found before a mail
//! is sent.

use crate::domain::notification::{BilingualText, Notification};
use crate::domain::text::lang::Lang;
use crate::domain::time::Millis;
use minijinja::Value;

/// Every field, in the order of the documentation.
pub(super) const FIELDS: [&str; 16] = [
    "event",
    "severity",
    "subject",
    "headline",
    "notes",
    "facts",
    "error",
    "blocked",
    "items",
    "log",
    "steps",
    "link",
    "topic",
    "lang",
    "at",
    "message_id",
];
/// The fields of `topic`.
pub(super) const TOPIC: [&str; 6] = ["group", "batch_no", "job", "attempt", "schedule", "node"];

/// The fields of one message. An absent value is empty, never missing.
pub(super) fn values(letter: &Notification, lang: Lang, at: Millis, message_id: &str) -> Value {
    let both = |text: &BilingualText| Value::from(text.text_in(lang));
    let list = |texts: &[BilingualText]| Value::from_iter(texts.iter().map(both));
    let facts = letter.facts.iter().map(|fact| {
        Value::from_pairs([("label", both(&fact.label)), ("value", (&fact.value).into())])
    });
    let steps = letter.steps.iter().map(|step| {
        Value::from_pairs([("label", both(&step.label)), ("command", (&step.command).into())])
    });
    Value::from_pairs([
        ("event", Value::from(letter.event.as_str())),
        ("severity", letter.severity().as_str().into()),
        ("subject", both(&letter.subject)),
        ("headline", both(&letter.headline)),
        ("notes", list(&letter.notes)),
        ("facts", Value::from_iter(facts)),
        ("error", optional(&letter.error)),
        ("blocked", Value::from_iter(letter.blocked.iter())),
        ("items", list(&letter.items)),
        ("log", Value::from_iter(letter.log.iter())),
        ("steps", Value::from_iter(steps)),
        ("link", optional(&letter.link)),
        ("topic", topic(letter)),
        ("lang", lang.select("en", "zh").into()),
        ("at", at.to_string().into()),
        ("message_id", message_id.into()),
    ])
}

fn topic(letter: &Notification) -> Value {
    let topic = &letter.topic;
    Value::from_pairs([
        ("group", optional(&topic.group)),
        ("batch_no", optional(&topic.batch_no)),
        ("job", optional(&topic.job)),
        ("attempt", topic.attempt.map_or_else(|| "".into(), Value::from)),
        ("schedule", optional(&topic.schedule)),
        ("node", optional(&topic.node)),
    ])
}

/// Empty rather than `none`, which would be printed.
fn optional(text: &Option<String>) -> Value {
    Value::from(text.as_deref().unwrap_or(""))
}
