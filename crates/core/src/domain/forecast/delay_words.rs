//! The explanation of a delay as one sentence.

use crate::domain::batch::Snapshot;
use crate::domain::dag::Node;
use crate::domain::forecast::delay::{DelayCause, DelayKind, DelayReport};
use crate::domain::text::lang::Lang;
use crate::domain::time::span_words;

/// Maximum number of causes in the sentence.
const NAMED: usize = 3;

/// Whether a batch meets its deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Punctuality {
    /// It is late, or was when it ended, by this many milliseconds.
    Late(i64),
    /// It will be late according to its forecast.
    WillBeLate(i64),
    /// It is in time, or has no deadline.
    InTime,
}

impl DelayReport {
    /// The sentence; `None` when there is no chain and no lateness.
    pub fn sentence(&self, snapshot: &Snapshot, is: Punctuality, lang: Lang) -> Option<String> {
        if self.chain.is_empty() {
            return None;
        }
        let head = match (is, lang) {
            (Punctuality::Late(ms), Lang::En) => format!("Late by {}: ", span_words(ms)),
            (Punctuality::Late(ms), Lang::Zh) => format!("已晚 {}:", span_words(ms)),
            (Punctuality::WillBeLate(ms), Lang::En) => {
                format!("Expected to be late by {}: ", span_words(ms))
            }
            (Punctuality::WillBeLate(ms), Lang::Zh) => format!("预计晚 {}:", span_words(ms)),
            (Punctuality::InTime, Lang::En) => "What decides the end: ".to_owned(),
            (Punctuality::InTime, Lang::Zh) => "决定结束时间的作业：".to_owned(),
        };
        let more = self.causes.len().saturating_sub(NAMED);
        let named = self.causes.iter().take(NAMED).map(|cause| cause.describe(snapshot, lang));
        let mut parts: Vec<String> = named.collect();
        if more > 0 {
            parts.push(match lang {
                Lang::En => format!("and {more} more"),
                Lang::Zh => format!("另有 {more} 项"),
            });
        }
        if parts.is_empty() {
            let codes: Vec<&str> =
                self.chain.iter().map(|link| job_code(snapshot, link.job)).collect();
            let chain = crate::domain::text::truncate_text(&codes.join(" -> "), 300);
            parts.push(match lang {
                Lang::En => format!("{chain}, none of which took longer than usual or waited"),
                Lang::Zh => format!("{chain}，均未超过往常耗时，也未等待"),
            });
        }
        let (between, end) = (lang.select("; ", ";"), lang.select(".", "。"));
        Some(format!("{head}{}{end}", parts.join(between)))
    }
}

fn job_code(snapshot: &Snapshot, job: Node) -> &str {
    snapshot.jobs[job.index()].code.as_str()
}

impl DelayCause {
    /// One clause: `GL_POST took 41 min, usually 18 min (+23 min)`.
    pub fn describe(&self, snapshot: &Snapshot, lang: Lang) -> String {
        match lang {
            Lang::En => self.in_english(snapshot),
            Lang::Zh => self.in_chinese(snapshot),
        }
    }

    fn in_english(&self, snapshot: &Snapshot) -> String {
        let (job, span) = (job_code(snapshot, self.job), span_words(self.ms));
        let (took, usual) = self.took.unwrap_or_default();
        let (took, usual) = (span_words(took), span_words(usual));
        let name = self.resource.as_deref().unwrap_or_default();
        let by = self.held_by.map(|node| format!(", in use by {}", job_code(snapshot, node)));
        let by = by.unwrap_or_default();
        match self.kind {
            DelayKind::TookLonger => format!("{job} took {took}, usually {usual} (+{span})"),
            DelayKind::Approval => {
                format!("{job} waited {took} for approval, usually {usual} (+{span})")
            }
            DelayKind::Retries => format!("{job} was retried for {span}"),
            DelayKind::Held => format!("{job} was held for {span}"),
            DelayKind::StartedOver => format!("{job} was started over after {span}"),
            DelayKind::OtherBatch => format!("{job} waited {span} for {name}"),
            DelayKind::Lock => format!("{job} waited {span} for lock {name}{by}"),
            DelayKind::Pool => format!("{job} waited {span} for room in {name}{by}"),
            DelayKind::Slot => format!("{job} waited {span} for a slot{by}"),
            DelayKind::LateStart => format!("{job} started {span} late"),
        }
    }

    fn in_chinese(&self, snapshot: &Snapshot) -> String {
        let (job, span) = (job_code(snapshot, self.job), span_words(self.ms));
        let (took, usual) = self.took.unwrap_or_default();
        let (took, usual) = (span_words(took), span_words(usual));
        let name = self.resource.as_deref().unwrap_or_default();
        let by = self.held_by.map(|node| format!("（{} 占用）", job_code(snapshot, node)));
        let by = by.unwrap_or_default();
        match self.kind {
            DelayKind::TookLonger => format!("{job} 耗时 {took}，往常 {usual}（多 {span}）"),
            DelayKind::Approval => format!("{job} 等待审批 {took}，往常 {usual}（多 {span}）"),
            DelayKind::Retries => format!("{job} 因重试多用 {span}"),
            DelayKind::Held => format!("{job} 被挂起 {span}"),
            DelayKind::StartedOver => format!("{job} 在 {span} 后才被重跑"),
            DelayKind::OtherBatch => format!("{job} 等待 {name} {span}"),
            DelayKind::Lock => format!("{job} 等待锁 {name} {span}{by}"),
            DelayKind::Pool => format!("{job} 等待 {name} 的名额 {span}{by}"),
            DelayKind::Slot => format!("{job} 等待并发名额 {span}{by}"),
            DelayKind::LateStart => format!("{job} 晚启动 {span}"),
        }
    }
}
