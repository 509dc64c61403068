//! Decides how notifications leave the outbox: the states of a row, the time of the next attempt to send, the contents
//! of a digest, and when a daily digest is due.

use crate::domain::notification::event::NotificationEvent;
use crate::domain::notification::{BilingualText, Notification, NotificationTopic};
use crate::domain::text::truncate_text;
use crate::domain::time::{Millis, at_wall_clock, day_in};
use chrono::{Days, NaiveTime};
use chrono_tz::Tz;
use std::collections::{BTreeMap, BTreeSet};

/// State of an `email_notifications` row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MailStatus {
    /// Waits to be sent, or to be sent again.
    Pending,
    /// The server accepted it.
    Sent,
    /// Given up; `fail_reason` holds the reason.
    Failed,
    /// Sent as part of a digest.
    Digest,
    /// Acknowledged by a user, so it is not sent any more.
    Acked,
}

impl MailStatus {
    /// Every state.
    pub const ALL: [Self; 5] = [Self::Pending, Self::Sent, Self::Failed, Self::Digest, Self::Acked];

    /// The word in the `status` column.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Sent => "sent",
            Self::Failed => "failed",
            Self::Digest => "digest",
            Self::Acked => "acked",
        }
    }

    /// Parses the word in the `status` column.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.as_str() == word)
    }
}

/// Waits between attempts to send, in seconds; the last one applies to all further attempts.
const BACK_OFF_SEC: [i64; 8] = [30, 60, 120, 300, 600, 1_200, 1_800, 3_600];

/// When to send again after `failed` failures, the last of them now; `None` once `give_up_ms` have passed since the
/// notification was written.
pub fn next_try(failed: u32, written: Millis, now: Millis, give_up_ms: i64) -> Option<Millis> {
    let at = usize::try_from(failed.saturating_sub(1)).unwrap_or(usize::MAX);
    let wait = BACK_OFF_SEC.get(at).or(BACK_OFF_SEC.last()).copied().unwrap_or(3_600);
    let next = now.plus_ms(wait * 1_000);
    (next.since(written) <= give_up_ms).then_some(next)
}

/// The last moment, not after `now`, at which a day's digest was due.
pub fn last_digest(now: Millis, at: NaiveTime, zone: Tz) -> Millis {
    let today = day_in(now, zone);
    let due = at_wall_clock(today, at, zone);
    match today.checked_sub_days(Days::new(1)) {
        Some(yesterday) if due > now => at_wall_clock(yesterday, at, zone),
        Some(_) | None => due,
    }
}

/// Maximum number of subjects that a digest lists; of the rest it gives the number.
const LISTED: usize = 200;

/// Combines several notifications to one recipient into one. There is at least one.
pub fn digest(letters: &[&Notification]) -> Notification {
    let number = letters.len();
    let of = |pick: fn(&NotificationTopic) -> &Option<String>| -> Option<String> {
        let all: BTreeSet<_> = letters.iter().map(|l| pick(&l.topic)).collect();
        (all.len() == 1).then(|| all.into_iter().next().cloned().flatten()).flatten()
    };
    let topic = NotificationTopic {
        group: of(|t| &t.group),
        batch_no: of(|t| &t.batch_no),
        job: of(|t| &t.job),
        ..NotificationTopic::default()
    };
    let mut counts: BTreeMap<NotificationEvent, usize> = BTreeMap::new();
    for letter in letters {
        *counts.entry(letter.event).or_default() += 1;
    }
    let counted: Vec<String> = counts.iter().map(|(e, n)| format!("{} {n}", e.as_str())).collect();
    let counted = counted.join(", ");
    let (en, zh) = match (&topic.batch_no, &topic.group) {
        (Some(no), Some(group)) => {
            (format!(" about batch {no} ({group})"), format!("，批次 {no}（{group}）"))
        }
        (None, Some(group)) => (format!(" about group {group}"), format!("，作业组 {group}")),
        (_, None) => (String::new(), String::new()),
    };
    let subject = BilingualText::new(
        format!("{number} notices{en}: {counted}"),
        format!("{number} 条通知{zh}:{counted}"),
    );
    let headline = BilingualText::new(
        format!("{number} notices{en}, the oldest first."),
        format!("共 {number} 条通知{zh}，按时间排列。"),
    );
    let mut whole = Notification::new(NotificationEvent::Digest, subject, headline);
    let lines: Vec<BilingualText> = letters.iter().flat_map(|letter| lines_of(letter)).collect();
    whole.worst = letters.iter().map(|letter| letter.severity()).max();
    whole.items = lines.iter().take(LISTED).cloned().collect();
    if lines.len() > LISTED {
        let more = lines.len() - LISTED;
        whole.items.push(BilingualText::new(format!("… {more} more"), format!("… 另有 {more} 条")));
    }
    for step in letters.iter().flat_map(|l| &l.steps).filter(|s| s.label.en == "Look") {
        if !whole.steps.contains(step) && whole.steps.len() < 10 {
            whole.steps.push(step.clone());
        }
    }
    Notification { topic, ..whole }
}

/// Maximum length in a digest line of an error message and of the list of blocked jobs, in characters.
const ERROR_MAX: usize = 160;
const BLOCKED_MAX: usize = 5;

/// The lines of one notification in a digest: its subject, error and blocked jobs. A nested digest gives its own lines.
fn lines_of(letter: &Notification) -> Vec<BilingualText> {
    if letter.event == NotificationEvent::Digest {
        return letter.items.clone();
    }
    let mut line = letter.subject.clone();
    if let Some(error) = letter.error.as_deref().and_then(|said| said.lines().next()) {
        let error = truncate_text(error, ERROR_MAX);
        line.en.push_str(&format!(": {error}"));
        line.zh.push_str(&format!(":{error}"));
    }
    let codes = letter.blocked.iter().take(BLOCKED_MAX).cloned().collect::<Vec<_>>().join(", ");
    let dots = if letter.blocked.len() > BLOCKED_MAX { ", …" } else { "" };
    let number = letter.blocked.len();
    if number > 0 {
        line.en.push_str(&format!(" (blocked, {number}: {codes}{dots})"));
        line.zh.push_str(&format!("（受阻 {number} 个：{codes}{dots}）"));
    }
    vec![line]
}

/// A user's request to suppress notifications for a while.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snooze {
    pub id: i64,
    pub group: String,
    /// The job; none: every job of the group.
    pub job: Option<String>,
    /// The event; none: every event.
    pub event: Option<NotificationEvent>,
    /// End of the snooze.
    pub until: Millis,
    /// The user who set it.
    pub by: String,
    pub reason: String,
}

impl Snooze {
    /// Whether notifications of this event about this job of this group are suppressed.
    pub fn covers(&self, group: Option<&str>, job: Option<&str>, event: NotificationEvent) -> bool {
        group == Some(self.group.as_str())
            && self.job.as_deref().is_none_or(|wanted| job == Some(wanted))
            && self.event.is_none_or(|wanted| wanted == event)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: i64 = 3_600_000;

    #[test]
    fn tries_come_further_apart_and_end() {
        let waits: Vec<i64> = (1..=10)
            .map(|failed| {
                next_try(failed, Millis(0), Millis(0), 100 * HOUR).expect("next").0 / 1_000
            })
            .collect();
        assert_eq!(waits, [30, 60, 120, 300, 600, 1_200, 1_800, 3_600, 3_600, 3_600]);
        assert_eq!(next_try(9, Millis(0), Millis(71 * HOUR), 72 * HOUR), Some(Millis(72 * HOUR)));
        assert_eq!(next_try(9, Millis(0), Millis(71 * HOUR + 1), 72 * HOUR), None);
    }

    #[test]
    fn a_days_digest_is_due_once_a_day_by_the_wall_clock() {
        let at =
            |text: &str| Millis::from(text.parse::<chrono::DateTime<chrono::Utc>>().expect("time"));
        let eight = NaiveTime::from_hms_opt(8, 0, 0).expect("time");
        let zone = chrono_tz::Asia::Shanghai;
        for (now, due) in [
            ("2026-11-21T00:00:00Z", "2026-11-21T00:00:00Z"),
            ("2026-11-20T23:59:59Z", "2026-11-20T00:00:00Z"),
            ("2026-11-21T12:00:00Z", "2026-11-21T00:00:00Z"),
        ] {
            assert_eq!(last_digest(at(now), eight, zone), at(due), "{now}");
        }
    }

    #[test]
    fn a_digest_lists_what_it_stands_for() {
        let letter = |event: NotificationEvent, job: &str, no: &str| {
            let mut letter = Notification::new(
                event,
                BilingualText::untranslated(format!("{job} x")),
                BilingualText::untranslated("h"),
            )
            .with_step("Look", "查看", format!("procession batch show {no} --group g"));
            letter.topic = NotificationTopic {
                group: Some("g".to_owned()),
                batch_no: Some(no.to_owned()),
                job: Some(job.to_owned()),
                ..NotificationTopic::default()
            };
            letter
        };
        let (mut a, b) = (
            letter(NotificationEvent::Failed, "A", "202407"),
            letter(NotificationEvent::Timeout, "B", "202407"),
        );
        a.error = Some("disk full\nand more".to_owned());
        a.blocked = (1..=7).map(|n| format!("K{n}")).collect();
        let whole = digest(&[&a, &b]);
        assert_eq!(whole.subject.en, "2 notices about batch 202407 (g): failed 1, timeout 1");
        let first = "A x: disk full (blocked, 7: K1, K2, K3, K4, K5, …)";
        assert_eq!(
            (whole.items[0].en.as_str(), &whole.items[1]),
            (first, &BilingualText::untranslated("B x"))
        );
        assert_eq!(whole.severity(), crate::domain::notification::event::Severity::Bad);
        let again = digest(&[&whole, &b]);
        assert_eq!(
            (again.items.len(), again.items[0].en.as_str()),
            (3, first),
            "none is swallowed"
        );
        assert_eq!((whole.topic.batch_no.as_deref(), whole.topic.job), (Some("202407"), None));
        assert_eq!(whole.steps.len(), 1);
        let other = letter(NotificationEvent::Failed, "A", "202408");
        let whole = digest(&[&a, &other]);
        assert_eq!(whole.subject.zh, "2 条通知，作业组 g:failed 2");
        let many = vec![&a; 250];
        assert_eq!(digest(&many).items.len(), LISTED + 1);
    }

    #[test]
    fn a_snooze_covers_what_it_names() {
        let snooze = |job: Option<&str>, event| Snooze {
            id: 1,
            group: "g".to_owned(),
            job: job.map(str::to_owned),
            event,
            until: Millis(0),
            by: "me".to_owned(),
            reason: "known".to_owned(),
        };
        for (snooze, group, job, event, wanted) in [
            (snooze(None, None), Some("g"), Some("A"), NotificationEvent::Failed, true),
            (snooze(None, None), Some("g"), None, NotificationEvent::BatchLong, true),
            (snooze(None, None), Some("h"), Some("A"), NotificationEvent::Failed, false),
            (snooze(None, None), None, None, NotificationEvent::NodeLost, false),
            (snooze(Some("A"), None), Some("g"), Some("A"), NotificationEvent::Failed, true),
            (snooze(Some("A"), None), Some("g"), Some("B"), NotificationEvent::Failed, false),
            (snooze(Some("A"), None), Some("g"), None, NotificationEvent::BatchLong, false),
            (
                snooze(None, Some(NotificationEvent::Failed)),
                Some("g"),
                Some("B"),
                NotificationEvent::Timeout,
                false,
            ),
        ] {
            assert_eq!(snooze.covers(group, job, event), wanted, "{snooze:?} {job:?} {event:?}");
        }
    }
}
