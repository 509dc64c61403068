//! What people hear of the end of a batch, and that a failure is mended.

use crate::domain::batch::BatchStatus;
use crate::domain::job::JobDef;
use crate::domain::job::queue::QueueStatus;
use crate::domain::notice::{About, Addressee, Notice, to_each};
use crate::domain::notification::event::{Event, When};
use crate::domain::notification::{Both, Letter};
use crate::domain::time::{Millis, span_words};

/// What a notice about the end of a batch tells.
#[derive(Clone, Debug)]
pub struct BatchEnd<'a> {
    /// Its result.
    pub status: BatchStatus,
    /// When.
    pub ended: Millis,
    /// How many of its jobs ended in which state.
    pub counts: &'a [(QueueStatus, usize)],
    /// Jobs that did not end well, with their states: `GL_POST FAILED`.
    pub bad: &'a [String],
}

/// A letter whose addresses only the rows know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecoveryNotice {
    /// When it goes out.
    pub when: When,
    /// What it says.
    pub letter: Letter,
}

impl RecoveryNotice {
    /// The same to each of them.
    pub fn to(&self, all: Vec<Addressee>) -> Vec<Notice> {
        to_each(all, self.when, &self.letter)
    }
}

/// Jobs that a letter lists; of more their number is given.
const LISTED: usize = 50;

impl About<'_> {
    /// About a job that succeeded. Those hear who were told of its failure, so the letter comes without
    /// addresses; none when nobody wants it.
    pub fn recovered(&self, job: &JobDef, attempt: u32, ended: Millis) -> Option<RecoveryNotice> {
        let (code, no, group) = (&job.code, &self.batch.values.batch_no, &self.group.code);
        let when = self.when(Event::Recovered, Some(job));
        let subject = Both::new(
            format!("{code} succeeded after its failure in batch {no} ({group})"),
            format!("{code} 失败后已恢复，批次 {no}（{group}）"),
        );
        let headline = Both::new(
            format!("Job {code} ({}) has succeeded; its failure was told before.", job.name),
            format!("作业 {code}（{}）已成功，此前曾通知其失败。", job.name),
        );
        let letter = Letter::new(Event::Recovered, subject, headline)
            .fact("Batch", "批次", self.no())
            .fact("Attempt", "次数", attempt.to_string())
            .fact("Ended", "结束时间", ended.to_string());
        let letter = Letter { topic: self.topic(Some((job, attempt))), ..letter };
        let letter = self.where_to_look(letter, Some(job));
        (when != When::Off).then_some(RecoveryNotice { when, letter })
    }

    /// About a batch that has ended. Of one that was stopped, its operator knows.
    pub fn batch_ended(&self, end: &BatchEnd<'_>) -> Vec<Notice> {
        let (event, en, zh) = match end.status {
            BatchStatus::Success => (Event::BatchDone, "is done", "成功完成"),
            BatchStatus::Warning => {
                (Event::BatchWarned, "is done, with warnings", "完成，但有警告")
            }
            BatchStatus::Failed => (Event::BatchFailed, "failed", "失败"),
            BatchStatus::Running | BatchStatus::Killing | BatchStatus::Killed => return Vec::new(),
        };
        if self.when(event, None) == When::Off {
            return Vec::new();
        }
        self.of_batch(self.end_letter(event, (en, zh), end))
    }

    /// About a batch that ended well after failures in it were told: for those who were.
    pub fn batch_recovered(&self, end: &BatchEnd<'_>) -> Option<RecoveryNotice> {
        let when = self.when(Event::BatchRecovered, None);
        if !end.status.is_success() || when == When::Off {
            return None;
        }
        let words = ("is done after failures in it", "在失败后已完成");
        let letter = self.end_letter(Event::BatchRecovered, words, end);
        let letter = Letter { topic: self.topic(None), ..letter };
        Some(RecoveryNotice { when, letter: self.where_to_look(letter, None) })
    }

    fn end_letter(&self, event: Event, (en, zh): (&str, &str), end: &BatchEnd<'_>) -> Letter {
        let (no, group, name) = (&self.batch.values.batch_no, &self.group.code, &self.group.name);
        let subject =
            Both::new(format!("batch {no} ({group}) {en}"), format!("批次 {no}（{group}）{zh}"));
        let headline = Both::new(
            format!("Batch {no} of group {group} ({name}) {en}."),
            format!("批次 {no}（作业组 {group}，{name}）{zh}。"),
        );
        let counts: Vec<String> = end.counts.iter().map(|(s, n)| format!("{s} {n}")).collect();
        let took = span_words(end.ended.since(self.batch.create_time));
        let mut letter = Letter::new(event, subject, headline)
            .fact("Opened", "开始时间", self.batch.create_time.to_string())
            .fact("Ended", "结束时间", end.ended.to_string())
            .fact("Duration", "耗时", took)
            .fact("Jobs", "作业", counts.join(", "));
        letter.items = end.bad.iter().take(LISTED).map(|line| Both::same(line.as_str())).collect();
        if let Some(more) = end.bad.len().checked_sub(LISTED).filter(|n| *n > 0) {
            letter.items.push(Both::new(format!("… {more} more"), format!("… 另有 {more} 个")));
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

    fn setting(rules: &[(Event, When)]) -> (Batch, Group, JobDef) {
        let code = GroupCode::parse("g").expect("group");
        let group = Group {
            notify_email: vec!["a@b.example".to_owned()],
            notify: NotifyRules(rules.iter().copied().collect()),
            ..Group::bare(code.clone())
        };
        let job = JobDef::bare(
            JobCode::parse("A").expect("code"),
            code.clone(),
            JobType::parse("NOOP").expect("type"),
        );
        let batch = Batch::sample("202407", &code);
        (batch, group, job)
    }

    fn told(status: BatchStatus, rules: &[(Event, When)]) -> (Option<Event>, Option<Event>) {
        let (batch, group, _) = setting(rules);
        let about = About { batch: &batch, group: &group, owners: &[] };
        let counts = [(QueueStatus::Success, 3), (QueueStatus::Failed, 1)];
        let bad = ["A FAILED".to_owned()];
        let end = BatchEnd { status, ended: Millis(60_000), counts: &counts, bad: &bad };
        let ended = about.batch_ended(&end).first().map(|n| n.letter.event);
        (ended, about.batch_recovered(&end).map(|told| told.letter.event))
    }

    #[test]
    fn the_end_of_a_batch_is_told_to_who_asks_and_that_it_is_mended_by_itself() {
        use BatchStatus as S;
        let all =
            [Event::BatchDone, Event::BatchWarned, Event::BatchFailed].map(|e| (e, When::Now));
        let recovered = Some(Event::BatchRecovered);
        for (status, rules, wanted) in [
            (S::Success, &[][..], (None, recovered)),
            (S::Success, &all, (Some(Event::BatchDone), recovered)),
            (S::Warning, &all, (Some(Event::BatchWarned), recovered)),
            (S::Failed, &all, (Some(Event::BatchFailed), None)),
            (S::Failed, &[], (None, None)),
            (S::Killed, &all, (None, None)),
            (S::Success, &[(Event::BatchRecovered, When::Off)], (None, None)),
        ] {
            assert_eq!(told(status, rules), wanted, "{status:?} {rules:?}");
        }
    }

    #[test]
    fn the_end_says_what_did_not_end_well() {
        let (batch, group, job) = setting(&[(Event::BatchFailed, When::Day)]);
        let about = About { batch: &batch, group: &group, owners: &[] };
        let bad: Vec<String> = (0..60).map(|n| format!("J{n} FAILED")).collect();
        let counts = [(QueueStatus::Failed, 60)];
        let ended = Millis(3_661_000);
        let end = BatchEnd { status: BatchStatus::Failed, ended, counts: &counts, bad: &bad };
        let told = about.batch_ended(&end);
        assert_eq!((told.len(), told[0].when), (1, When::Day));
        let text = told[0].letter.plain(Lang::En);
        for part in ["FAILED 60", "1 h 01 min", "J49 FAILED", "… 10 more"] {
            assert!(text.contains(part), "{part} in {text}");
        }
        assert!(!text.contains("J50 "), "{text}");
        let told = about.recovered(&job, 2, ended).expect("told");
        assert_eq!(
            told.to(vec![Addressee::plain("x@y.example")])[0].letter.event,
            Event::Recovered
        );
    }
}
