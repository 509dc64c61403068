//! One delivery attempt of a notification: complete, render, send, judge the result.

use super::Sender;
use crate::domain::notification::outbox_schedule;
use crate::domain::notification::{Notification, NotificationTopic};
use crate::domain::time::{Millis, span_words};
use crate::notify::{Message, NotSent};
use crate::store;
use crate::store::outbox::{ClaimedNotification, DeliveryMark};

/// How long notifications whose channel is not configured wait before the next check, in
/// milliseconds.
const NOT_CONFIGURED_MS: i64 = 600_000;

impl Sender {
    /// Renders and sends one notification.
    pub(super) async fn send_notification(
        &self,
        mail: ClaimedNotification,
        installation: String,
        now: Millis,
    ) -> (i64, DeliveryMark) {
        let lang = self.options.lang_of(&mail);
        let id = format!("procession-{}-{installation}@{}", mail.id, self.options.id_host);
        let letter = self.complete(&mail).await;
        let drawn = self.templates.render(&letter, lang, mail.written, &id);
        if let Some(warning) = &drawn.warning {
            tracing::warn!(mail = mail.id, warning, "a template failed; the built-in one was used");
        }
        let message = Message {
            message_id: id,
            subject: drawn.subject,
            text: drawn.text,
            html: drawn.html,
            lang,
            letter,
            at: mail.written,
            now: self.clock.now(),
        };
        failpoint!("mail.before");
        let ended = self.carriers.send_message(&mail.recipient, &message).await;
        failpoint!("mail.after_dot");
        (mail.id, self.judge(&mail, message, ended, now))
    }

    fn judge(
        &self,
        mail: &ClaimedNotification,
        message: Message,
        ended: Result<(), NotSent>,
        now: Millis,
    ) -> DeliveryMark {
        match ended {
            Ok(()) => DeliveryMark::Sent { subject: message.subject, body: message.text },
            Err(NotSent::Never(why)) => {
                tracing::warn!(mail = mail.id, why, "a mail is given up");
                DeliveryMark::Failed(why)
            }
            Err(NotSent::NotConfigured(why)) => {
                DeliveryMark::Wait(now.plus_ms(NOT_CONFIGURED_MS), why)
            }
            Err(NotSent::Later(why)) => {
                let at = self.clock.now().max(now);
                let next = outbox_schedule::next_try(
                    mail.failed + 1,
                    mail.written,
                    at,
                    self.options.give_up_ms,
                );
                match next {
                    Some(next) => DeliveryMark::Again(next, why),
                    None => {
                        tracing::warn!(mail = mail.id, why, "a mail is given up: it is too old");
                        DeliveryMark::Failed(format!("given up after many tries; the last: {why}"))
                    }
                }
            }
        }
    }

    /// The notification with data that are known only at delivery: the end of the job's log, and
    /// links.
    async fn complete(&self, mail: &ClaimedNotification) -> Notification {
        let mut letter = mail.letter.clone();
        let topic = &letter.topic;
        if !self.options.links.is_empty() {
            letter.link = page_link(&self.options.links, topic);
        }
        let (Some(queue_id), Some(attempt)) = (mail.queue_id, letter.topic.attempt) else {
            return letter;
        };
        let known = async {
            let mut tx = self.db.begin_read().await?;
            let lines = self.options.log_lines;
            let lines = store::log::last_lines(&mut tx, queue_id, attempt, lines).await?;
            let (group, job) = (letter.topic.group.as_deref(), letter.topic.job.as_deref());
            let usual = match group.zip(job) {
                Some((group, job)) => store::history::of_job(&mut tx, group, job).await?,
                None => None,
            };
            anyhow::Ok((lines, usual))
        };
        match known.await {
            Ok((lines, usual)) => {
                letter.log = lines;
                if let Some(usual) = usual {
                    let words = format!("{} (≤ {})", span_words(usual.p50), span_words(usual.p95));
                    letter = letter.with_fact("Usually", "通常耗时", words);
                }
            }
            // A notification without the end of the log is better than none.
            Err(error) => {
                let error = format!("{error:#}");
                tracing::debug!(mail = mail.id, error, "sent without the end of the log");
            }
        }
        letter
    }
}

/// The URL of the page about the subject of a notification: from the first pattern whose
/// placeholders are all known.
pub fn page_link(patterns: &[String], topic: &NotificationTopic) -> Option<String> {
    patterns.iter().find_map(|pattern| filled(pattern, topic))
}

fn filled(pattern: &str, topic: &NotificationTopic) -> Option<String> {
    use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
    let mut text = pattern.to_owned();
    for (name, value) in
        [("{group}", &topic.group), ("{batch_no}", &topic.batch_no), ("{job}", &topic.job)]
    {
        if text.contains(name) {
            let value = utf8_percent_encode(value.as_deref()?, NON_ALPHANUMERIC).to_string();
            text = text.replace(name, &value);
        }
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_needs_all_that_it_names() {
        let topic = NotificationTopic {
            group: Some("month end/x".to_owned()),
            batch_no: Some("202407".to_owned()),
            ..NotificationTopic::default()
        };
        let of = |patterns: &[&str], topic| {
            page_link(&patterns.iter().map(|p| (*p).to_owned()).collect::<Vec<_>>(), topic)
        };
        let (job, batch) = ("https://p/j/{job}", "https://p/b/{group}/{batch_no}");
        let page = Some("https://p/b/month%20end%2Fx/202407".to_owned());
        assert_eq!(of(&[batch], &topic), page);
        assert_eq!(
            of(&[job, batch, "https://p/"], &topic),
            page,
            "the first that can be filled in"
        );
        assert_eq!(of(&[job], &topic), None);
        let nothing = NotificationTopic::default();
        assert_eq!(of(&["https://p/"], &nothing).as_deref(), Some("https://p/"));
        assert_eq!(of(&[], &topic), None);
    }
}
