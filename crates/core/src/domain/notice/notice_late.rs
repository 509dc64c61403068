//! Builds the notifications that a job or batch is late, held for long or slower than usual. Each has an event key, so
//! that a detection after a restart sends no second notification.

use crate::domain::batch::history::Durations;
use crate::domain::batch::{Batch, Snapshot};
use crate::domain::dispatch::why::WaitReason;
use crate::domain::forecast::delay::DelayReport;
use crate::domain::forecast::delay_words::Punctuality;
use crate::domain::forecast::eta::Forecast;
use crate::domain::job::JobDef;
use crate::domain::job::queue::QueueEntry;
use crate::domain::notice::{About, Notice};
use crate::domain::notification::event::NotificationEvent;
use crate::domain::notification::{BilingualText, Notification};
use crate::domain::text::lang::Lang;
use crate::domain::text::truncate_text;
use crate::domain::time::{Millis, span_words};

/// Maximum length of a list of jobs in a notification, in characters.
const LIST_MAX: usize = 1_000;

/// The batch that a lateness notification is about.
#[derive(Clone, Copy, Debug)]
pub struct Of<'a> {
    pub batch: &'a Batch,
    /// The definition that the batch runs.
    pub snapshot: &'a Snapshot,
    pub now: Millis,
}

/// A job of that batch.
#[derive(Clone, Copy, Debug)]
pub struct LateJob<'a> {
    /// Definition of the job.
    pub def: &'a JobDef,
    pub row: &'a QueueEntry,
}

/// Content of a lateness notification: event, key, subject, headline and further sentences.
struct LatenessText<'a> {
    event: NotificationEvent,
    key: String,
    job: Option<&'a JobDef>,
    subject: BilingualText,
    headline: BilingualText,
    facts: Vec<((&'static str, &'static str), String)>,
    notes: Vec<BilingualText>,
    release: Option<String>,
}

/// The same notices with an event key.
pub fn keyed(mut notices: Vec<Notice>, key: &str) -> Vec<Notice> {
    notices.iter_mut().for_each(|notice| notice.event_key = Some(key.to_owned()));
    notices
}

/// The event key of an attempt that runs long.
pub fn running_long_key(row: &QueueEntry) -> String {
    format!("running_long:{}:{}", row.queue_id.0, row.attempt)
}

/// Reports a job that has not started by its latest start; `why` is what it waits for.
pub fn late_start(
    of: Of<'_>,
    job: LateJob<'_>,
    start_by: Millis,
    why: Option<&WaitReason>,
) -> Vec<Notice> {
    let code = &job.def.code;
    let status = job.row.status;
    let mut facts = vec![(("Start by", "应开始"), start_by.to_string())];
    facts.push((("State", "状态"), status.to_string()));
    let headline = BilingualText::new(
        format!("Job {code} ({}) has not started; it should have by {start_by}.", job.def.name),
        format!("作业 {code} 应于 {start_by} 前开始，至今未开始。"),
    );
    of.build_notices(LatenessText {
        event: NotificationEvent::LateStart,
        key: format!("late_start:{}:{}", job.row.queue_id.0, start_by.0),
        job: Some(job.def),
        subject: BilingualText::new(
            format!("{code} has not started in batch {}", of.named()),
            format!("{code} 未按时启动，批次 {}", of.named()),
        ),
        headline,
        facts,
        notes: of.because(why),
        release: None,
    })
}

/// Reports a job that has not ended by its due time.
pub fn late_finish(
    of: Of<'_>,
    job: LateJob<'_>,
    due: Millis,
    why: Option<&WaitReason>,
) -> Vec<Notice> {
    let code = &job.def.code;
    let mut facts = vec![(("Due", "应完成"), due.to_string())];
    facts.push((("State", "状态"), job.row.status.to_string()));
    let headline = BilingualText::new(
        format!("Job {code} ({}) has not ended; it was due at {due}.", job.def.name),
        format!("作业 {code} 应于 {due} 前完成，至今未结束。"),
    );
    of.build_notices(LatenessText {
        event: NotificationEvent::LateFinish,
        key: format!("late_finish:{}:{}", job.row.queue_id.0, due.0),
        job: Some(job.def),
        subject: BilingualText::new(
            format!("{code} is late in batch {}", of.named()),
            format!("{code} 逾期未完成，批次 {}", of.named()),
        ),
        headline,
        facts,
        notes: of.because(why),
        release: None,
    })
}

/// Reports a batch that has not ended by its due time; `open` are the jobs that have not ended.
pub fn batch_late(of: Of<'_>, due: Millis, open: &[&str], why: &DelayReport) -> Vec<Notice> {
    let (no, group) = (&of.batch.values.batch_no, &of.snapshot.group);
    let headline = BilingualText::new(
        format!(
            "Batch {no} of group {} ({}) has not ended; it was due at {due}.",
            group.code, group.name
        ),
        format!("批次 {no}（作业组 {}）应于 {due} 前完成，至今未结束。", group.code),
    );
    of.build_notices(LatenessText {
        event: NotificationEvent::LateFinish,
        key: format!("late_finish:b{}:{}", of.batch.batch_id.0, due.0),
        job: None,
        subject: BilingualText::new(
            format!("batch {} is late", of.named()),
            format!("批次 {} 逾期未完成", of.named()),
        ),
        headline,
        facts: vec![
            (("Due", "应完成"), due.to_string()),
            (("Open jobs", "未结束作业"), format!("{}: {}", open.len(), open.join(", "))),
        ],
        notes: of.delay(why, Punctuality::Late(of.now.since(due))),
        release: None,
    })
}

/// Reports a batch whose forecast is later than its due time, for the `times`-th time.
pub fn will_be_late(
    of: Of<'_>,
    due: Millis,
    forecast: &Forecast,
    why: &DelayReport,
    times: u32,
) -> Vec<Notice> {
    let late = forecast.end.since(due);
    let (no, group) = (&of.batch.values.batch_no, &of.snapshot.group);
    let by = span_words(forecast.end.since(due));
    let codes: Vec<&str> =
        forecast.path.iter().map(|n| of.snapshot.jobs[n.index()].code.as_str()).collect();
    let headline = BilingualText::new(
        format!(
            "Batch {no} of group {} ({}) is expected to be late by {by}.",
            group.code, group.name
        ),
        format!("批次 {no}（作业组 {}）预计晚 {by} 完成。", group.code),
    );
    of.build_notices(LatenessText {
        event: NotificationEvent::WillBeLate,
        key: format!("will_be_late:{}:{}:{times}", of.batch.batch_id.0, due.0),
        job: None,
        subject: BilingualText::new(
            format!("batch {} will be late by {by}", of.named()),
            format!("批次 {} 预计晚 {by} 完成", of.named()),
        ),
        headline,
        facts: vec![
            (("Due", "应完成"), due.to_string()),
            (("Expected end", "预计结束"), forecast.end.to_string()),
            (("In a bad case", "较坏情况"), forecast.bad_end.to_string()),
            (("Critical path", "关键路径"), codes.join(" -> ")),
        ],
        notes: [vec![of.certainty(forecast)], of.delay(why, Punctuality::WillBeLate(late))]
            .concat(),
        release: None,
    })
}

/// Reports a job that has been held since `since`, which is longer than allowed.
pub fn held_long(of: Of<'_>, job: LateJob<'_>, since: Millis) -> Vec<Notice> {
    let (code, held) = (&job.def.code, span_words(of.now.since(since)));
    let headline = BilingualText::new(
        format!("Job {code} ({}) has been held for {held}.", job.def.name),
        format!("作业 {code} 已挂起 {held}。"),
    );
    let said = job.row.error_message.clone().unwrap_or_else(|| "-".to_owned());
    of.build_notices(LatenessText {
        event: NotificationEvent::HeldLong,
        key: format!("held_long:{}:{}", job.row.queue_id.0, since.0),
        job: Some(job.def),
        subject: BilingualText::new(
            format!("{code} is still held in batch {}", of.named()),
            format!("{code} 仍被挂起，批次 {}", of.named()),
        ),
        headline,
        facts: vec![(("Since", "挂起时间"), since.to_string()), (("Said", "说明"), said)],
        notes: Vec::new(),
        release: Some(format!(
            "procession job release {} {code} --group {} --reason WHY",
            of.batch.values.batch_no, of.batch.values.group
        )),
    })
}

/// Reports an attempt that has run for `took` milliseconds, which is longer than usual.
pub fn running_long_notices(
    of: Of<'_>,
    job: LateJob<'_>,
    usual: &Durations,
    took: i64,
) -> Vec<Notice> {
    let (code, took) = (&job.def.code, span_words(took));
    let (p50, p95) = (span_words(usual.p50), span_words(usual.p95));
    let headline = BilingualText::new(
        format!("Job {code} ({}) has run for {took}, which is longer than usual.", job.def.name),
        format!("作业 {code} 已运行 {took}，长于往常。"),
    );
    of.build_notices(LatenessText {
        event: NotificationEvent::RunningLong,
        key: running_long_key(job.row),
        job: Some(job.def),
        subject: BilingualText::new(
            format!("{code} still runs after {took} in batch {}", of.named()),
            format!("{code} 已运行 {took}，批次 {}", of.named()),
        ),
        headline,
        facts: vec![
            (("Usual", "往常"), format!("{p50} (p95 {p95}, {} tries)", usual.tries)),
            (("Attempt", "次数"), job.row.attempt.to_string()),
            (("Time limit", "时限"), format!("{} s", job.def.timeout_sec)),
        ],
        notes: Vec::new(),
        release: None,
    })
}

impl Of<'_> {
    /// `202407 (month_end)`
    fn named(&self) -> String {
        format!("{} ({})", self.batch.values.batch_no, self.snapshot.group.code)
    }

    /// How certain a forecast is.
    fn certainty(&self, forecast: &Forecast) -> BilingualText {
        let words = |lang| forecast.confidence.describe(self.snapshot, lang);
        BilingualText::new(
            format!("How sure this is: {}.", words(Lang::En)),
            format!("可靠程度：{}。", words(Lang::Zh)),
        )
    }

    /// The reasons why a batch is late.
    fn delay(&self, why: &DelayReport, is: Punctuality) -> Vec<BilingualText> {
        let words = |lang| why.sentence(self.snapshot, is, lang);
        words(Lang::En)
            .zip(words(Lang::Zh))
            .map(|(en, zh)| BilingualText::new(en, zh))
            .into_iter()
            .collect()
    }

    /// The reason why a job waits.
    fn because(&self, why: Option<&WaitReason>) -> Vec<BilingualText> {
        let words = |why: &WaitReason| {
            BilingualText::new(why.words(Lang::En, self.now), why.words(Lang::Zh, self.now))
        };
        why.map(words).into_iter().collect()
    }

    fn build_notices(&self, told_of: LatenessText<'_>) -> Vec<Notice> {
        let LatenessText { event, key, job, subject, headline, facts, notes, release } = told_of;
        let (no, group) = (&self.batch.values.batch_no, &self.snapshot.group);
        let mut letter = Notification { notes, ..Notification::new(event, subject, headline) };
        letter = letter.with_fact("Batch", "批次", self.named());
        for ((en, zh), value) in facts {
            letter = letter.with_fact(en, zh, truncate_text(&value, LIST_MAX));
        }
        if let Some(command) = release {
            letter = letter.with_step("Release", "释放", command);
        }
        let why = format!("procession batch why {no} --group {}", group.code);
        letter = letter.with_step("Why", "原因", why);
        let about = About { batch: self.batch, group, owners: &self.snapshot.shared.owners };
        keyed(
            match job {
                // A job that has not started has no log and no attempt number.
                Some(job) => about.of_job(job, 0, letter),
                None => about.of_batch(letter),
            },
            &key,
        )
    }
}

#[cfg(test)]
#[path = "notice_late_tests.rs"]
mod tests;
