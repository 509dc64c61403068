//! Builds the notifications about the end of a batch, and about a success after reported failures.

use crate::domain::batch::BatchStatus;
use crate::domain::job::JobDef;
use crate::domain::job::queue::QueueStatus;
use crate::domain::notice::{About, Addressee, Notice, to_each};
use crate::domain::notification::event::{NotificationEvent, NotifyWhen};
use crate::domain::notification::{BilingualText, Notification};
use crate::domain::time::{Millis, span_words};

/// Facts about the end of a batch.
#[derive(Clone, Debug)]
pub struct BatchEndFacts<'a> {
    /// Final status of the batch.
    pub status: BatchStatus,
    /// End of the batch.
    pub ended: Millis,
    /// Number of jobs per final state.
    pub counts: &'a [(QueueStatus, usize)],
    /// Jobs that did not end well, with their states: `GL_POST FAILED`.
    pub bad: &'a [String],
}

/// A notification whose recipients are found in the outbox: everyone who received the failure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecoveryNotice {
    /// When it is sent.
    pub when: NotifyWhen,
    /// Content.
    pub letter: Notification,
}

impl RecoveryNotice {
    /// One notice per recipient.
    pub fn address_to(&self, all: Vec<Addressee>) -> Vec<Notice> {
        to_each(all, self.when, &self.letter)
    }
}

/// Maximum number of jobs that a notification lists; of the rest it gives the number.
const LISTED: usize = 50;

impl About<'_> {
    /// Reports a job that succeeded after a failure. Its recipients are those who received the failure, so the
    /// notification has no addresses; `None` when nobody wants it.
    pub fn recovered(&self, job: &JobDef, attempt: u32, ended: Millis) -> Option<RecoveryNotice> {
        let (code, no, group) = (&job.code, &self.batch.values.batch_no, &self.group.code);
        let when = self.notify_when(NotificationEvent::Recovered, Some(job));
        let subject = BilingualText::new(
            format!("{code} succeeded after its failure in batch {no} ({group})"),
            format!("{code} 失败后已恢复，批次 {no}（{group}）"),
        );
        let headline = BilingualText::new(
            format!("Job {code} ({}) has succeeded; its failure was told before.", job.name),
            format!("作业 {code}（{}）已成功，此前曾通知其失败。", job.name),
        );
        let letter = Notification::new(NotificationEvent::Recovered, subject, headline)
            .with_fact("Batch", "批次", self.batch_label())
            .with_fact("Attempt", "次数", attempt.to_string())
            .with_fact("Ended", "结束时间", ended.to_string());
        let letter = Notification { topic: self.topic(Some((job, attempt))), ..letter };
        let letter = self.where_to_look(letter, Some(job));
        (when != NotifyWhen::Off).then_some(RecoveryNotice { when, letter })
    }

    /// Reports the end of a batch. A stopped batch is not reported, because its operator knows.
    pub fn batch_ended(&self, end: &BatchEndFacts<'_>) -> Vec<Notice> {
        let (event, en, zh) = match end.status {
            BatchStatus::Success => (NotificationEvent::BatchDone, "is done", "成功完成"),
            BatchStatus::Warning => {
                (NotificationEvent::BatchWarned, "is done, with warnings", "完成，但有警告")
            }
            BatchStatus::Failed => (NotificationEvent::BatchFailed, "failed", "失败"),
            BatchStatus::Running | BatchStatus::Killing | BatchStatus::Killed => return Vec::new(),
        };
        if self.notify_when(event, None) == NotifyWhen::Off {
            return Vec::new();
        }
        self.of_batch(self.end_letter(event, en, zh, end))
    }

    /// Reports a batch that ended well after failures in it were reported, to the recipients of those failures.
    pub fn batch_recovered(&self, end: &BatchEndFacts<'_>) -> Option<RecoveryNotice> {
        let when = self.notify_when(NotificationEvent::BatchRecovered, None);
        if !end.status.is_success() || when == NotifyWhen::Off {
            return None;
        }
        let (en, zh) = ("is done after failures in it", "在失败后已完成");
        let letter = self.end_letter(NotificationEvent::BatchRecovered, en, zh, end);
        let letter = Notification { topic: self.topic(None), ..letter };
        Some(RecoveryNotice { when, letter: self.where_to_look(letter, None) })
    }

    fn end_letter(
        &self,
        event: NotificationEvent,
        en: &str,
        zh: &str,
        end: &BatchEndFacts<'_>,
    ) -> Notification {
        let (no, group, name) = (&self.batch.values.batch_no, &self.group.code, &self.group.name);
        let subject = BilingualText::new(
            format!("batch {no} ({group}) {en}"),
            format!("批次 {no}（{group}）{zh}"),
        );
        let headline = BilingualText::new(
            format!("Batch {no} of group {group} ({name}) {en}."),
            format!("批次 {no}（作业组 {group}，{name}）{zh}。"),
        );
        let counts: Vec<String> = end.counts.iter().map(|(s, n)| format!("{s} {n}")).collect();
        let took = span_words(end.ended.since(self.batch.create_time));
        let mut letter = Notification::new(event, subject, headline)
            .with_fact("Opened", "开始时间", self.batch.create_time.to_string())
            .with_fact("Ended", "结束时间", end.ended.to_string())
            .with_fact("Duration", "耗时", took)
            .with_fact("Jobs", "作业", counts.join(", "));
        letter.items = end
            .bad
            .iter()
            .take(LISTED)
            .map(|line| BilingualText::untranslated(line.as_str()))
            .collect();
        if let Some(more) = end.bad.len().checked_sub(LISTED).filter(|n| *n > 0) {
            letter
                .items
                .push(BilingualText::new(format!("… {more} more"), format!("… 另有 {more} 个")));
        }
        letter
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::batch::Batch;
    use crate::domain::id::{GroupCode, JobCode, JobType};
    use crate::domain::job::Group;
    use crate::domain::notification::event::NotifyRules;
    use crate::domain::text::lang::Lang;

    fn setting(rules: &[(NotificationEvent, NotifyWhen)]) -> (Batch, Group, JobDef) {
        let code = GroupCode::parse("g").expect("group");
        let group = Group {
            notify_email: vec!["a@b.example".to_owned()],
            notify: NotifyRules(rules.iter().copied().collect()),
            ..Group::with_defaults(code.clone())
        };
        let job = JobDef::with_defaults(
            JobCode::parse("A").expect("code"),
            code.clone(),
            JobType::parse("NOOP").expect("type"),
        );
        let batch = Batch::sample("202407", &code);
        (batch, group, job)
    }

    fn told(
        status: BatchStatus,
        rules: &[(NotificationEvent, NotifyWhen)],
    ) -> (Option<NotificationEvent>, Option<NotificationEvent>) {
        let (batch, group, _) = setting(rules);
        let about = About { batch: &batch, group: &group, owners: &[] };
        let counts = [(QueueStatus::Success, 3), (QueueStatus::Failed, 1)];
        let bad = ["A FAILED".to_owned()];
        let end = BatchEndFacts { status, ended: Millis(60_000), counts: &counts, bad: &bad };
        let ended = about.batch_ended(&end).first().map(|n| n.letter.event);
        (ended, about.batch_recovered(&end).map(|told| told.letter.event))
    }

    #[test]
    fn the_end_of_a_batch_is_told_to_who_asks_and_that_it_is_mended_by_itself() {
        use BatchStatus as S;
        let all = [
            NotificationEvent::BatchDone,
            NotificationEvent::BatchWarned,
            NotificationEvent::BatchFailed,
        ]
        .map(|e| (e, NotifyWhen::Now));
        let recovered = Some(NotificationEvent::BatchRecovered);
        for (status, rules, wanted) in [
            (S::Success, &[][..], (None, recovered)),
            (S::Success, &all, (Some(NotificationEvent::BatchDone), recovered)),
            (S::Warning, &all, (Some(NotificationEvent::BatchWarned), recovered)),
            (S::Failed, &all, (Some(NotificationEvent::BatchFailed), None)),
            (S::Failed, &[], (None, None)),
            (S::Killed, &all, (None, None)),
            (S::Success, &[(NotificationEvent::BatchRecovered, NotifyWhen::Off)], (None, None)),
        ] {
            assert_eq!(told(status, rules), wanted, "{status:?} {rules:?}");
        }
    }

    #[test]
    fn the_end_says_what_did_not_end_well() {
        let (batch, group, job) = setting(&[(NotificationEvent::BatchFailed, NotifyWhen::Day)]);
        let about = About { batch: &batch, group: &group, owners: &[] };
        let bad: Vec<String> = (0..60).map(|n| format!("J{n} FAILED")).collect();
        let counts = [(QueueStatus::Failed, 60)];
        let ended = Millis(3_661_000);
        let end = BatchEndFacts { status: BatchStatus::Failed, ended, counts: &counts, bad: &bad };
        let told = about.batch_ended(&end);
        assert_eq!((told.len(), told[0].when), (1, NotifyWhen::Day));
        let text = told[0].letter.plain(Lang::En);
        for part in ["FAILED 60", "1 h 01 min", "J49 FAILED", "… 10 more"] {
            assert!(text.contains(part), "{part} in {text}");
        }
        assert!(!text.contains("J50 "), "{text}");
        let told = about.recovered(&job, 2, ended).expect("told");
        assert_eq!(
            told.address_to(vec![Addressee::plain("x@y.example")])[0].letter.event,
            NotificationEvent::Recovered
        );
    }
}
