//! A letter: what somebody is told, in both languages, before anybody has decided what it looks like. Mails,
//! chat messages and the terminal are drawn from it; the plain text is drawn here.

pub mod event;
pub mod outbox_schedule;
pub mod recipient;

use crate::domain::notification::event::{Event, Severity};
use crate::domain::text::clip;
use crate::domain::text::lang::Lang;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt::Write as _;

/// Most characters of a subject: `email_notifications.subject` holds 255, and mail programs show fewer.
pub const SUBJECT_MAX: usize = 200;
/// What every subject begins with, for filters.
pub const SUBJECT_PREFIX: &str = "[Procession]";

/// A text in both languages.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "BilingualText")]
pub struct Both {
    /// English.
    pub en: String,
    /// Chinese.
    pub zh: String,
}

/// A labelled value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "NotificationFact")]
pub struct Fact {
    /// What it is.
    pub label: Both,
    /// As it stands; not translated.
    pub value: String,
}

/// What a reader may type to look or to act.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "NotificationStep")]
pub struct Step {
    /// What for.
    pub label: Both,
    /// The command.
    pub command: String,
}

/// What it is about; for links, for filters and for machines that read it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "NotificationTopic")]
pub struct Topic {
    /// The group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// The batch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub batch_no: Option<String>,
    /// The job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<String>,
    /// Which start of the job, counted from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempt: Option<u32>,
    /// The schedule.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schedule: Option<String>,
    /// The node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
}

/// What somebody is told. Every text may hold characters from outside (names, error messages); whoever
/// draws it escapes them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "NotificationContent")]
pub struct Letter {
    /// What happened.
    pub event: Event,
    /// How bad it is, where that is not the event's own: of a digest, what the worst in it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worst: Option<Severity>,
    /// One line, without the prefix.
    pub subject: Both,
    /// What happened, in one sentence.
    pub headline: Both,
    /// More sentences.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<Both>,
    /// When, how long, whose.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub facts: Vec<Fact>,
    /// What the job or its database said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Jobs that can no longer run because of it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub blocked: Vec<String>,
    /// Lines of a list: planned times that were missed, letters of a digest.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub items: Vec<Both>,
    /// The last lines of the job's log.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub log: Vec<String>,
    /// What to type.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<Step>,
    /// Where it is shown in a browser.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link: Option<String>,
    /// What it is about.
    #[serde(default)]
    pub topic: Topic,
}

impl Both {
    /// Both texts.
    pub fn new(en: impl Into<String>, zh: impl Into<String>) -> Self {
        Self { en: en.into(), zh: zh.into() }
    }

    /// The same text in both.
    pub fn same(text: impl Into<String>) -> Self {
        let en = text.into();
        Self { zh: en.clone(), en }
    }

    /// The text in one language.
    pub fn pick(&self, lang: Lang) -> &str {
        lang.pick(&self.en, &self.zh)
    }
}

impl Letter {
    /// A letter that says only what happened.
    pub fn new(event: Event, subject: Both, headline: Both) -> Self {
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
            topic: Topic::default(),
        }
    }

    /// How bad it is.
    pub fn severity(&self) -> Severity {
        self.worst.unwrap_or_else(|| self.event.severity())
    }

    /// The same with one more labelled value.
    #[must_use]
    pub fn fact(mut self, en: &str, zh: &str, value: impl Into<String>) -> Self {
        self.facts.push(Fact { label: Both::new(en, zh), value: value.into() });
        self
    }

    /// The same with one more command.
    #[must_use]
    pub fn step(mut self, en: &str, zh: &str, command: impl Into<String>) -> Self {
        self.steps.push(Step { label: Both::new(en, zh), command: command.into() });
        self
    }

    /// The same with one more sentence.
    #[must_use]
    pub fn note(mut self, note: Both) -> Self {
        self.notes.push(note);
        self
    }

    /// The subject as a header: the prefix, one line, no character that ends one.
    pub fn subject_line(&self, lang: Lang) -> String {
        one_line(&format!("{SUBJECT_PREFIX} {}", self.subject.pick(lang)))
    }

    /// The whole letter as plain text.
    pub fn plain(&self, lang: Lang) -> String {
        let mut text = String::new();
        let colon = lang.pick(": ", "：");
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{}", self.headline.pick(lang));
        for note in &self.notes {
            let _ = writeln!(text, "\n{}", note.pick(lang));
        }
        if !self.facts.is_empty() {
            text.push('\n');
        }
        for fact in &self.facts {
            let _ = writeln!(text, "{}{colon}{}", fact.label.pick(lang), fact.value);
        }
        if let Some(error) = &self.error {
            let _ = writeln!(text, "\n{}\n{error}", lang.pick("Error:", "错误："));
        }
        if !self.blocked.is_empty() {
            let (label, number) = (lang.pick("Blocked", "受阻作业"), self.blocked.len());
            let codes = clip(&self.blocked.join(", "), 2_000);
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
            let _ = writeln!(text, "- {}", item.pick(lang));
        }
        if !self.log.is_empty() {
            let label = lang.pick("Last lines of its log:", "日志末尾：");
            let _ = writeln!(text, "\n{label}\n{}", self.log.join("\n"));
        }
        if !self.steps.is_empty() {
            text.push('\n');
        }
        for step in &self.steps {
            let _ = writeln!(text, "{}{colon}{}", step.label.pick(lang), step.command);
        }
        if let Some(link) = &self.link {
            let _ = writeln!(text, "\n{link}");
        }
        text
    }
}

/// Nothing from a job may begin a second header line.
pub fn one_line(text: &str) -> String {
    clip(&text.replace(|c: char| c.is_control(), " "), SUBJECT_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn letter() -> Letter {
        let subject = Both::new("A failed\r\nBcc: x@y", "A 执行失败");
        let mut letter =
            Letter::new(Event::Failed, subject, Both::new("Job A failed.", "作业 A 失败。"))
                .fact("Attempt", "次数", "3")
                .step("Log", "日志", "procession logs 202407 A")
                .note(Both::new("Nothing was written.", "未写入。"));
        letter.error = Some("ORA-00060".to_owned());
        letter.blocked = vec!["B".to_owned(), "C".to_owned()];
        letter.log = vec!["last".to_owned()];
        letter
    }

    #[test]
    fn nothing_begins_a_second_header() {
        let line = letter().subject_line(Lang::En);
        assert_eq!(line, "[Procession] A failed  Bcc: x@y");
        let long = Letter::new(Event::Test, Both::same("x".repeat(900)), Both::default());
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
        assert_eq!(serde_json::from_str::<Letter>(&text).expect("letter"), letter());
    }
}
