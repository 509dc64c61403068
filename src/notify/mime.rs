//! Formats a message as an e-mail. Every value from outside is stripped of control characters and
//! encoded for headers.

use crate::domain::text::truncate_text;
use crate::domain::time::Millis;
use crate::notify::Message;
use lettre::Address;
use lettre::error::Error;
use lettre::message::header::{ContentType, HeaderName, HeaderValue};
use lettre::message::{Mailbox, MultiPart, SinglePart};
use std::time::{Duration, SystemTime};

/// Maximum length of one of our header values, in bytes.
const VALUE_MAX: usize = 200;

const AUTO_SUBMITTED: HeaderName = HeaderName::new_from_ascii_str("Auto-Submitted");
const EVENT: HeaderName = HeaderName::new_from_ascii_str("X-Procession-Event");
const GROUP: HeaderName = HeaderName::new_from_ascii_str("X-Procession-Group");
const BATCH: HeaderName = HeaderName::new_from_ascii_str("X-Procession-Batch");
const JOB: HeaderName = HeaderName::new_from_ascii_str("X-Procession-Job");

/// The mail to one address.
pub(super) fn build_mail(
    from: &Mailbox,
    reply_to: Option<&Mailbox>,
    to: Address,
    message: &Message,
) -> Result<lettre::Message, Error> {
    let topic = &message.letter.topic;
    let mut mail = lettre::Message::builder()
        .from(from.clone())
        .to(Mailbox::new(None, to))
        .date(to_system_time(message.at))
        .message_id(Some(format!("<{}>", id(&message.message_id))))
        .subject(value(&message.subject))
        // RFC 3834: absence notes do not answer.
        .raw_header(HeaderValue::new(AUTO_SUBMITTED, "auto-generated".to_owned()))
        .raw_header(HeaderValue::new(EVENT, message.letter.event.as_str().to_owned()));
    if let Some(reply_to) = reply_to {
        mail = mail.reply_to(reply_to.clone());
    }
    for (name, text) in [(GROUP, &topic.group), (BATCH, &topic.batch_no), (JOB, &topic.job)] {
        if let Some(text) = text {
            mail = mail.raw_header(HeaderValue::new(name, value(text)));
        }
    }
    let part =
        |kind: ContentType, text: &str| SinglePart::builder().header(kind).body(text.to_owned());
    // Mail programs prefer the last part.
    let parts = MultiPart::alternative()
        .singlepart(part(ContentType::TEXT_PLAIN, &message.text))
        .singlepart(part(ContentType::TEXT_HTML, &message.html));
    mail.multipart(parts)
}

fn value(text: &str) -> String {
    truncate_text(&text.replace(|c: char| c.is_control(), " "), VALUE_MAX * 4)
}

/// Characters allowed between the brackets of an id.
fn id(text: &str) -> String {
    let fits = |c: char| c.is_ascii_graphic() && !matches!(c, '<' | '>');
    let id: String = text.chars().filter(|c| fits(*c)).collect();
    truncate_text(&id, VALUE_MAX)
}

fn to_system_time(at: Millis) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_millis(u64::try_from(at.0).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::notify::sample;

    fn made(message: &Message) -> String {
        let from: Mailbox = "月末 <batch@bank.example>".parse().expect("from");
        let to = "ops@bank.example".parse().expect("to");
        let mail = build_mail(&from, Some(&from), to, message).expect("a mail");
        String::from_utf8(mail.formatted()).expect("ASCII")
    }

    #[test]
    fn it_has_the_headers_that_filters_and_threads_need() {
        let mail = made(&sample::message());
        for line in [
            "Message-ID: <procession-17-ab12@host>\r\n",
            "To: ops@bank.example\r\n",
            "Date: Wed, 31 Jul 2024 18:00:00 +0000\r\n",
            "Auto-Submitted: auto-generated\r\n",
            "X-Procession-Event: failed\r\n",
            "X-Procession-Job: LOAD\r\n",
            "Content-Type: multipart/alternative;",
        ] {
            assert!(mail.contains(line), "{line} in {mail}");
        }
    }

    #[test]
    fn nothing_begins_a_header_of_its_own() {
        let mut message = sample::message();
        let evil = "X\r\nBcc: thief@evil.example\r\n\r\n<b>\u{2028}\u{85}".to_owned();
        message.letter.topic.job = Some(evil.clone());
        message.letter.topic.group = Some(format!("月{evil}"));
        message.subject = evil.clone();
        message.message_id = format!("a>{evil}");
        let mail = made(&message);
        let (head, _) = mail.split_once("\r\n\r\n").expect("a head");
        let names: Vec<&str> = head
            .split("\r\n")
            .filter(|line| !line.starts_with([' ', '\t']))
            .map(|line| line.split_once(':').expect("a header").0)
            .collect();
        assert!(!names.contains(&"Bcc"), "{head}");
        assert_eq!(names.len(), 13, "{head}");
        assert!(mail.is_ascii(), "{mail}");
    }
}
