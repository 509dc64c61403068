//! The content of a notification in both languages, independent of its form. Mails, chat messages
//! and terminal output are rendered from it elsewhere; the plain text is rendered here.

pub mod event;
pub mod outbox_schedule;
pub mod recipient;

use crate::domain::notification::event::{NotificationEvent, Severity};
use crate::domain::text::lang::Lang;
use crate::domain::text::truncate_text;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt::Write as _;

/// Maximum length of a subject in characters: `email_notifications.subject` holds 255, and mail
/// programs show fewer.
pub const SUBJECT_MAX: usize = 200;
/// Prefix of every subject, for mail filters.
pub const SUBJECT_PREFIX: &str = "[Procession]";

/// A text in English and Chinese.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "BilingualText")]
pub struct BilingualText {
    /// English.
    pub en: String,
    /// Chinese.
    pub zh: String,
}

/// A labelled value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "NotificationFact")]
pub struct LabelledFact {
    /// Label.
    pub label: BilingualText,
    /// Value, not translated.
    pub value: String,
}

/// A command that the reader may type to investigate or to act.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "NotificationStep")]
pub struct NextStep {
    /// Purpose of the command.
    pub label: BilingualText,
    /// The command.
    pub command: String,
}

/// The subject of a notification; for links, filters and programs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "NotificationTopic")]
pub struct NotificationTopic {
    /// The group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// The batch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub batch_no: Option<String>,
    /// The job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<String>,
    /// Attempt number of the job, counted from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempt: Option<u32>,
    /// The schedule.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schedule: Option<String>,
    /// The node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
}

/// A notification. Every text may contain characters from outside (names, error messages); each
/// renderer escapes them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "NotificationContent")]
pub struct Notification {
    /// The event.
    pub event: NotificationEvent,
    /// Severity, where it differs from the event's: for a digest, the highest severity in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worst: Option<Severity>,
    /// One line, without the prefix.
    pub subject: BilingualText,
    /// What happened, in one sentence.
    pub headline: BilingualText,
    /// Further sentences.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<BilingualText>,
    /// Times, durations, owners.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub facts: Vec<LabelledFact>,
    /// Error message of the job or its database.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Jobs that can no longer run because of it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub blocked: Vec<String>,
    /// List items: missed planned times, notifications of a digest.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub items: Vec<BilingualText>,
    /// The last lines of the job's log.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub log: Vec<String>,
    /// Commands for the reader.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<NextStep>,
    /// Link to the web interface.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link: Option<String>,
    /// The subject of the notification.
    #[serde(default)]
    pub topic: NotificationTopic,
}

impl BilingualText {
    /// A text in both languages.
    pub fn new(en: impl Into<String>, zh: impl Into<String>) -> Self {
        Self { en: en.into(), zh: zh.into() }
    }

    /// The same text for both languages.
    pub fn untranslated(text: impl Into<String>) -> Self {
        let en = text.into();
        Self { zh: en.clone(), en }
    }

    /// The text in one language.
    pub fn text_in(&self, lang: Lang) -> &str {
        lang.select(&self.en, &self.zh)
    }
}

impl Notification {
    /// A notification with an event, a subject and a headline only.
    pub fn new(event: NotificationEvent, subject: BilingualText, headline: BilingualText) -> Self {
        Self {
            event,
            worst: None,
            subject,
            headline,
            notes: Vec::new(),
            facts: Vec::new(),
            error: None,
            blocked: Vec::new(),
            items: Vec::new(),
            log: Vec::new(),
            steps: Vec::new(),
            link: None,
            topic: NotificationTopic::default(),
        }
    }

    /// Severity.
    pub fn severity(&self) -> Severity {
        self.worst.unwrap_or_else(|| self.event.severity())
    }

    /// Adds a labelled value.
    #[must_use]
    pub fn with_fact(mut self, en: &str, zh: &str, value: impl Into<String>) -> Self {
        self.facts.push(LabelledFact { label: BilingualText::new(en, zh), value: value.into() });
        self
    }

    /// Adds a command.
    #[must_use]
    pub fn with_step(mut self, en: &str, zh: &str, command: impl Into<String>) -> Self {
        self.steps.push(NextStep { label: BilingualText::new(en, zh), command: command.into() });
        self
    }

    /// Adds a sentence.
    #[must_use]
    pub fn with_note(mut self, note: BilingualText) -> Self {
        self.notes.push(note);
        self
    }

    /// The subject as a header: with the prefix, on one line, without line-ending characters.
    pub fn subject_line(&self, lang: Lang) -> String {
        one_line(&format!("{SUBJECT_PREFIX} {}", self.subject.text_in(lang)))
    }

    /// The whole notification as plain text.
    pub fn plain(&self, lang: Lang) -> String {
        let mut text = String::new();
        let colon = lang.select(": ", "：");
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{}", self.headline.text_in(lang));
        for note in &self.notes {
            let _ = writeln!(text, "\n{}", note.text_in(lang));
        }
        if !self.facts.is_empty() {
            text.push('\n');
        }
        for fact in &self.facts {
            let _ = writeln!(text, "{}{colon}{}", fact.label.text_in(lang), fact.value);
        }
        if let Some(error) = &self.error {
            let _ = writeln!(text, "\n{}\n{error}", lang.select("Error:", "错误："));
        }
        if !self.blocked.is_empty() {
            let (label, number) = (lang.select("Blocked", "受阻作业"), self.blocked.len());
            let codes = truncate_text(&self.blocked.join(", "), 2_000);
            let number = match lang {
                Lang::En => format!(" ({number})"),
                Lang::Zh => format!("（{number}）"),
            };
            let _ = writeln!(text, "\n{label}{number}{colon}{codes}");
        }
        if !self.items.is_empty() {
            text.push('\n');
        }
        for item in &self.items {
            let _ = writeln!(text, "- {}", item.text_in(lang));
        }
        if !self.log.is_empty() {
            let label = lang.select("Last lines of its log:", "日志末尾：");
            let _ = writeln!(text, "\n{label}\n{}", self.log.join("\n"));
        }
        if !self.steps.is_empty() {
            text.push('\n');
        }
        for step in &self.steps {
            let _ = writeln!(text, "{}{colon}{}", step.label.text_in(lang), step.command);
        }
        if let Some(link) = &self.link {
            let _ = writeln!(text, "\n{link}");
        }
        text
    }
}

/// Text from a job must not be able to start a second header line.
pub fn one_line(text: &str) -> String {
    truncate_text(&text.replace(|c: char| c.is_control(), " "), SUBJECT_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn letter() -> Notification {
        let subject = BilingualText::new("A failed\r\nBcc: x@y", "A 执行失败");
        let mut letter = Notification::new(
            NotificationEvent::Failed,
            subject,
            BilingualText::new("Job A failed.", "作业 A 失败。"),
        )
        .with_fact("Attempt", "次数", "3")
        .with_step("Log", "日志", "procession logs 202407 A")
        .with_note(BilingualText::new("Nothing was written.", "未写入。"));
        letter.error = Some("ORA-00060".to_owned());
        letter.blocked = vec!["B".to_owned(), "C".to_owned()];
        letter.log = vec!["last".to_owned()];
        letter
    }

    #[test]
    fn nothing_begins_a_second_header() {
        let line = letter().subject_line(Lang::En);
        assert_eq!(line, "[Procession] A failed  Bcc: x@y");
        let long = Notification::new(
            NotificationEvent::Test,
            BilingualText::untranslated("x".repeat(900)),
            BilingualText::default(),
        );
        assert!(long.subject_line(Lang::Zh).chars().count() <= SUBJECT_MAX);
    }

    #[test]
    fn the_plain_text_holds_everything_in_one_language() {
        let en = "Job A failed.\n\nNothing was written.\n\nAttempt: 3\n\nError:\nORA-00060\n\n\
                  Blocked (2): B, C\n\nLast lines of its log:\nlast\n\nLog: procession logs 202407 A\n";
        assert_eq!(letter().plain(Lang::En), en);
        let zh = letter().plain(Lang::Zh);
        assert!(zh.contains("受阻作业（2）：B, C") && !zh.contains("Attempt"), "{zh}");
    }

    #[test]
    fn it_comes_back_from_its_row_as_it_was() {
        let text = serde_json::to_string(&letter()).expect("json");
        assert_eq!(serde_json::from_str::<Notification>(&text).expect("letter"), letter());
    }
}
