//! Who hears that something is late, held for long or slower than usual, in which words. Each is told
//! under a key, so that whoever tells it again after a restart is not heard twice.

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

/// Longest list of jobs in a body, in characters.
const LIST_MAX: usize = 1_000;

/// A batch about which something is told.
#[derive(Clone, Copy, Debug)]
pub struct Of<'a> {
    /// The batch.
    pub batch: &'a Batch,
    /// What it runs.
    pub snapshot: &'a Snapshot,
    /// Now.
    pub now: Millis,
}

/// A job of it.
#[derive(Clone, Copy, Debug)]
pub struct LateJob<'a> {
    /// Its definition.
    pub def: &'a JobDef,
    /// Its row.
    pub row: &'a QueueEntry,
}

/// What is told: which event, under which key, in one line and in a few.
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

/// The same notices under a key.
pub fn keyed(mut notices: Vec<Notice>, key: &str) -> Vec<Notice> {
    notices.iter_mut().for_each(|notice| notice.event_key = Some(key.to_owned()));
    notices
}

/// The key of a try that runs long.
pub fn running_long_key(row: &QueueEntry) -> String {
    format!("running_long:{}:{}", row.queue_id.0, row.attempt)
}

/// A job that has not started when it should have; `why` is what it waits for.
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

/// A job that has not ended when it is due.
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

/// A batch that has not ended when it is due; `open` are its jobs that have not.
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

/// A batch that its forecast says will be late; told the `times`-th time.
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

/// A job that has been held since `since`, which is too long.
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

/// A try that has run for `took` milliseconds, which is longer than usual.
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

    /// How sure a forecast is.
    fn certainty(&self, forecast: &Forecast) -> BilingualText {
        let words = |lang| forecast.confidence.describe(self.snapshot, lang);
        BilingualText::new(
            format!("How sure this is: {}.", words(Lang::En)),
            format!("可靠程度：{}。", words(Lang::Zh)),
        )
    }

    /// What makes a batch late.
    fn delay(&self, why: &DelayReport, is: Punctuality) -> Vec<BilingualText> {
        let words = |lang| why.sentence(self.snapshot, is, lang);
        words(Lang::En)
            .zip(words(Lang::Zh))
            .map(|(en, zh)| BilingualText::new(en, zh))
            .into_iter()
            .collect()
    }

    /// Why a job stands where it does.
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
                // What has not started has no log, and no attempt to name.
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
