//! Templates: render a notification as a subject, a text and HTML, with the built-in files or a
//! team's own.
//!
//! A team's file is tested with notifications of every event in both languages before it is used.
//! If it fails nevertheless, the built-in one is used: a mail that looks wrong is better than none.

use crate::domain::notification::event::NotificationEvent;
use crate::domain::notification::{self, Notification};
use crate::domain::text::lang::Lang;
use crate::domain::time::Millis;
use crate::notify::sample;
use crate::notify::template_fields::{FIELDS, TOPIC, values};
use minijinja::syntax::SyntaxConfig;
use minijinja::{Environment, Error, ErrorKind, Template, UndefinedBehavior, Value};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Maximum number of steps of one rendering; the built-in ones need less than a twentieth. An
/// endless loop stops here.
const FUEL: u64 = 500_000;
/// The parts to render, with their built-in templates.
const PARTS: [(&str, &str); 3] = [
    ("subject.txt", include_str!("templates/subject.txt")),
    ("text.txt", include_str!("templates/text.txt")),
    ("mail.html", include_str!("templates/mail.html")),
];
/// Prefix of the names of built-in templates; no file has such a name.
const BUILT_IN: &str = "built-in/";

/// A faulty template: file, line and fault.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct BadTemplate(String);

/// A rendered notification.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rendered {
    /// The subject line.
    pub subject: String,
    /// The plain text.
    pub text: String,
    /// The HTML.
    pub html: String,
    /// The fault of a team's file, for which the built-in one was used.
    pub warning: Option<String>,
}

/// The templates in use.
#[derive(Clone, Debug)]
pub struct MessageTemplates {
    environment: Environment<'static>,
    folder: PathBuf,
    own: BTreeSet<String>,
}

impl MessageTemplates {
    /// Only the built-in templates.
    pub fn built_in() -> Self {
        let mut environment = Environment::new();
        environment.set_undefined_behavior(UndefinedBehavior::Strict);
        environment.set_fuel(Some(FUEL));
        // Makes errors name the field, by its position in the source.
        environment.set_debug(true);
        let syntax = SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build();
        environment.set_syntax(syntax.expect("the usual marks do not collide"));
        for (part, text) in PARTS {
            let added = environment.add_template_owned(format!("{BUILT_IN}{part}"), text);
            added.expect("a test renders the built-in templates");
        }
        Self { environment, folder: PathBuf::new(), own: BTreeSet::new() }
    }

    /// The built-in templates, replaced by files in `folder`. Every file is tested.
    pub fn load_from(folder: Option<&Path>) -> Result<Self, BadTemplate> {
        let mut templates = Self::built_in();
        let Some(folder) = folder else {
            return Ok(templates);
        };
        folder.clone_into(&mut templates.folder);
        let unread = |error| BadTemplate(format!("cannot read {}: {error}", folder.display()));
        for entry in std::fs::read_dir(folder).map_err(unread)? {
            let entry = entry.map_err(unread)?;
            let name = entry.file_name().to_string_lossy().into_owned();
            if !(name.ends_with(".txt") || name.ends_with(".html")) {
                continue;
            }
            let fault =
                |message: String| BadTemplate(format!("{}: {message}", entry.path().display()));
            check_name(&name).map_err(fault)?;
            let text = std::fs::read_to_string(entry.path());
            templates.add_template(name, text.map_err(|error| fault(error.to_string()))?)?;
        }
        templates.own.iter().try_for_each(|name| templates.try_out(name))?;
        Ok(templates)
    }

    /// Renders a notification.
    pub fn render(
        &self,
        letter: &Notification,
        lang: Lang,
        at: Millis,
        message_id: &str,
    ) -> Rendered {
        let values = values(letter, lang, at, message_id);
        let mut warnings = Vec::new();
        let mut part = |part: &str| {
            let by_event = format!("{}.{part}", letter.event.as_str());
            let own = [by_event.as_str(), part].into_iter().find(|name| self.own.contains(*name));
            let built_in = format!("{BUILT_IN}{part}");
            for name in own.into_iter().chain([built_in.as_str()]) {
                match self.rendered(name, &values) {
                    Ok(text) => return Some(text),
                    Err(error) => warnings.push(format!("{error}; the next best is used")),
                }
            }
            None
        };
        let subject = part("subject.txt").unwrap_or_else(|| letter.subject_line(lang));
        let text = part("text.txt").unwrap_or_else(|| letter.plain(lang));
        let html = part("mail.html").unwrap_or_else(|| preformatted(&letter.plain(lang)));
        let warning = Some(warnings.join("; ")).filter(|message| !message.is_empty());
        // Mail filters and keywords of chat bots depend on it, whatever a team's own file contains.
        let subject = match subject.trim() {
            "" => letter.subject_line(lang),
            message if message.starts_with(notification::SUBJECT_PREFIX) => {
                notification::one_line(message)
            }
            message => {
                notification::one_line(&format!("{} {message}", notification::SUBJECT_PREFIX))
            }
        };
        Rendered { subject, text, html, warning }
    }

    fn add_template(&mut self, name: String, text: String) -> Result<(), BadTemplate> {
        let added = self.environment.add_template_owned(name.clone(), text);
        added.map_err(|error| self.fault(&name, &error))?;
        self.own.insert(name);
        Ok(())
    }

    /// Renders a file for every event it is for, with all optional fields and with none.
    fn try_out(&self, name: &str) -> Result<(), BadTemplate> {
        let template = self.environment.get_template(name);
        let template = template.map_err(|error| self.fault(name, &error))?;
        if let Some((field, line)) = self.unknown(&template) {
            return Err(self.unknown_field(name, line, &field));
        }
        let is_for =
            |event: &NotificationEvent| event_of(name).is_none_or(|word| word == event.as_str());
        for event in NotificationEvent::ALL.into_iter().filter(is_for) {
            for letter in [sample::full_notification(event), sample::minimal_notification(event)] {
                for lang in [Lang::En, Lang::Zh] {
                    self.rendered(name, &values(&letter, lang, Millis(0), "sample@host"))?;
                }
            }
        }
        Ok(())
    }

    /// A name that is used and does not exist, whether or not a rendering reaches it.
    fn unknown(&self, template: &Template<'_, '_>) -> Option<(String, usize)> {
        let globals: BTreeSet<&str> = self.environment.globals().map(|(name, _)| name).collect();
        let is_known = |path: &String| match path.split('.').collect::<Vec<_>>()[..] {
            ["topic", field, ..] => TOPIC.contains(&field),
            [first, ..] => FIELDS.contains(&first) || globals.contains(first),
            [] => true,
        };
        let used: BTreeSet<String> = template.undeclared_variables(true).into_iter().collect();
        let field = used.into_iter().find(|path| !is_known(path))?;
        let line = template.source().lines().position(|line| line.contains(&field));
        Some((field, line.map_or(1, |line| line + 1)))
    }

    fn rendered(&self, name: &str, values: &Value) -> Result<String, BadTemplate> {
        let template = self.environment.get_template(name);
        let rendered = template.and_then(|template| template.render(values.clone()));
        rendered.map_err(|error| self.fault(name, &error))
    }

    fn fault(&self, name: &str, error: &Error) -> BadTemplate {
        let line = error.line().unwrap_or(1);
        let source = error.template_source().zip(error.range());
        let at = source.and_then(|(source, range)| source.get(range)).unwrap_or("?");
        if error.kind() == ErrorKind::UndefinedError {
            return self.unknown_field(name, line, at.trim());
        }
        let message = match error.kind() {
            ErrorKind::OutOfFuel => format!("it does not end within {FUEL} steps"),
            kind => error.detail().map_or_else(|| kind.to_string(), str::to_owned),
        };
        BadTemplate(format!("{} line {line}: {message}", self.path(name)))
    }

    fn unknown_field(&self, name: &str, line: usize, field: &str) -> BadTemplate {
        BadTemplate(format!(
            "{} line {line}: there is no field {field}; there are {}; facts have label and value, \
             steps have label and command, topic has {}",
            self.path(name),
            FIELDS.join(", "),
            TOPIC.join(", "),
        ))
    }

    fn path(&self, name: &str) -> String {
        match name.strip_prefix(BUILT_IN) {
            Some(part) => format!("built-in {part}"),
            None => self.folder.join(name).display().to_string(),
        }
    }
}

/// The event that a file is for, from the prefix of its name.
fn event_of(name: &str) -> Option<&str> {
    let ends = PARTS.iter().filter_map(|(part, _)| name.strip_suffix(part));
    ends.filter_map(|start| start.strip_suffix('.')).next()
}

/// A misspelt name would be a file that is never read.
fn check_name(name: &str) -> Result<(), String> {
    let parts = PARTS.map(|(part, _)| part);
    if parts.contains(&name) {
        return Ok(());
    }
    match event_of(name) {
        Some(word) if NotificationEvent::parse(word).is_some() => Ok(()),
        Some(word) => {
            let words: Vec<&str> =
                NotificationEvent::ALL.iter().map(|event| event.as_str()).collect();
            Err(format!("{word} is no event; there are {}", words.join(", ")))
        }
        None => Err(format!("a template is {}, or one of them behind EVENT.", parts.join(", "))),
    }
}

fn preformatted(text: &str) -> String {
    let text = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    format!("<!DOCTYPE html><html><body><pre>{text}</pre></body></html>")
}

#[cfg(test)]
#[path = "template_tests.rs"]
mod tests;
