//! The certainty of a forecast, and what limits it.

use crate::domain::batch::Snapshot;
use crate::domain::batch::history::TRIES_NEEDED;
use crate::domain::dag::Node;
use crate::domain::forecast::remaining::Remaining;
use crate::domain::job::queue::QueueStatus;
use crate::domain::text::lang::Lang;
use crate::domain::time::span_words;
use schemars::JsonSchema;
use serde::Serialize;

/// A forecast is rough when its bad case takes more than this many times as long, and a minute
/// more.
const WIDE: i64 = 2;
const WIDE_LEAST_MS: i64 = 60_000;

/// Reliability of a forecast.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Certainty {
    /// Every decisive job has a history, and runs as usual.
    Sure,
    /// Something is assumed, or varies much between batches.
    Rough,
    /// There is no history to rely on; times are guesses.
    Unknown,
}

/// What limits the certainty of a forecast.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DoubtReason {
    /// A job has run much longer than each of its past attempts.
    Overran,
    /// Jobs have never succeeded yet.
    NoHistory,
    /// An operator holds jobs, for an unknown time.
    Held,
    /// Jobs wait for other batches, which have forecasts of their own.
    OtherBatch,
    /// A job has run slightly longer than each of its past attempts.
    LongerThanUsual,
    /// Decisive jobs have succeeded too rarely.
    FewTries,
    /// Past durations vary widely.
    WideSpread,
}

/// A doubt about a forecast.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Doubt {
    /// What it is.
    pub reason: DoubtReason,
    /// The jobs concerned.
    pub jobs: Vec<Node>,
    /// Milliseconds that the first of them has run; its longest past attempt, and the number of
    /// attempts.
    elapsed: i64,
    longest: i64,
    tries: usize,
}

/// The certainty of a forecast with its main doubt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Confidence {
    /// In one word.
    pub certainty: Certainty,
    /// The most serious doubt.
    pub doubt: Option<Doubt>,
}

/// The inputs of the judgement. Lists are parallel to the jobs unless they contain nodes.
#[derive(Clone, Copy, Debug)]
pub struct JudgedForecast<'a> {
    /// What the batch runs.
    pub snapshot: &'a Snapshot,
    /// The states of its jobs.
    pub statuses: &'a [QueueStatus],
    /// Whether each is open and counted.
    pub is_open: &'a [bool],
    /// Remaining duration of each.
    pub rests: &'a [Remaining<'a>],
    /// Open jobs without history.
    pub assumed: &'a [Node],
    /// Open jobs held by an operator.
    pub held: &'a [Node],
    /// The decisive jobs.
    pub path: &'a [Node],
    /// Remaining time in milliseconds, in the median and in the bad case.
    pub remaining_ms: i64,
    pub bad_remaining_ms: i64,
}

impl Confidence {
    /// The judgement when no job has a history.
    pub const NO_HISTORY: (Certainty, DoubtReason) = (Certainty::Unknown, DoubtReason::NoHistory);

    /// Judges a forecast.
    pub fn judge(forecast: &JudgedForecast<'_>) -> Self {
        let JudgedForecast { snapshot, rests, assumed, path, .. } = *forecast;
        let open = |test: &dyn Fn(usize) -> bool| -> Vec<Node> {
            let all = (0..rests.len()).filter(|i| forecast.is_open[*i] && test(*i));
            all.map(|i| Node(i as u32)).collect()
        };
        let waits = |i: usize| {
            let status = forecast.statuses[i];
            let is_before = matches!(status, QueueStatus::Pending | QueueStatus::Held);
            is_before && snapshot.externals.iter().any(|e| e.job_code == snapshot.jobs[i].code)
        };
        // One new job in a batch of seventy is different from seventy new ones.
        let number = forecast.is_open.iter().filter(|is| **is).count();
        let most_are_new = assumed.len() * 2 >= number.max(1);
        let few =
            |node: &Node| rests[node.index()].tries() < TRIES_NEEDED && !assumed.contains(node);
        let few = path.iter().copied().filter(few).collect();
        let (left, bad) = (forecast.remaining_ms, forecast.bad_remaining_ms);
        let is_wide = bad > left.saturating_mul(WIDE) && bad - left > WIDE_LEAST_MS;
        let wide = if is_wide { path.to_vec() } else { Vec::new() };
        use {Certainty::*, DoubtReason::*};
        let doubts = [
            (Unknown, Overran, open(&|i| rests[i].has_overrun())),
            (if most_are_new { Unknown } else { Rough }, NoHistory, assumed.to_vec()),
            (Rough, Held, forecast.held.to_vec()),
            (Rough, OtherBatch, open(&waits)),
            (Rough, LongerThanUsual, open(&|i| rests[i].is_beyond_all())),
            (Rough, FewTries, few),
            (Rough, WideSpread, wide),
        ];
        let Some((certainty, reason, jobs)) = doubts.into_iter().find(|d| !d.2.is_empty()) else {
            return Self { certainty: Sure, doubt: None };
        };
        let first = &rests[jobs[0].index()];
        let (elapsed, longest, tries) = (first.elapsed(), first.longest(), first.tries());
        Self { certainty, doubt: Some(Doubt { reason, jobs, elapsed, longest, tries }) }
    }

    /// As a line of text: `unknown: LOAD has run for 51 s, …`.
    pub fn describe(&self, snapshot: &Snapshot, lang: Lang) -> String {
        let certainty = self.certainty.label(lang);
        match &self.doubt {
            Some(doubt) => {
                let colon = lang.select(": ", ":");
                format!("{certainty}{colon}{}", doubt.describe(snapshot, lang))
            }
            None => certainty.to_owned(),
        }
    }
}

impl Certainty {
    /// The word for it.
    pub fn label(self, lang: Lang) -> &'static str {
        match self {
            Self::Sure => lang.select("sure", "可靠"),
            Self::Rough => lang.select("rough", "粗略"),
            Self::Unknown => lang.select("unknown", "未知"),
        }
    }
}

impl Doubt {
    /// In words.
    pub fn describe(&self, snapshot: &Snapshot, lang: Lang) -> String {
        let code = |node: &Node| snapshot.jobs[node.index()].code.as_str();
        let first = self.jobs.first().map(code).unwrap_or_default();
        let more = self.jobs.len().saturating_sub(1);
        let jobs = match (more, lang) {
            (0, _) => first.to_owned(),
            (_, Lang::En) => format!("{first} and {more} more"),
            (_, Lang::Zh) => format!("{first} 等 {} 个作业", more + 1),
        };
        let (elapsed, longest, tries) =
            (span_words(self.elapsed), span_words(self.longest), self.tries);
        match (self.reason, lang) {
            (DoubtReason::Overran | DoubtReason::LongerThanUsual, Lang::En) if tries < 2 => {
                format!("{first} has run for {elapsed}; its only try before took {longest}")
            }
            (DoubtReason::Overran | DoubtReason::LongerThanUsual, Lang::En) => format!(
                "{first} has run for {elapsed}; the longest of its {tries} tries took {longest}"
            ),
            (DoubtReason::Overran | DoubtReason::LongerThanUsual, Lang::Zh) => {
                format!("{first} 已运行 {elapsed}；以往 {tries} 次中最长为 {longest}")
            }
            (DoubtReason::NoHistory, Lang::En) => format!("no history of {jobs}"),
            (DoubtReason::NoHistory, Lang::Zh) => format!("{jobs} 无历史耗时"),
            (DoubtReason::Held, Lang::En) => format!("{jobs} held, nobody knows until when"),
            (DoubtReason::Held, Lang::Zh) => format!("{jobs} 已挂起，释放时间不明"),
            (DoubtReason::OtherBatch, Lang::En) => format!("other batches are waited for: {jobs}"),
            (DoubtReason::OtherBatch, Lang::Zh) => format!("{jobs} 在等待其他批次"),
            (DoubtReason::FewTries, Lang::En) => {
                format!("fewer than {TRIES_NEEDED} good tries of {jobs}")
            }
            (DoubtReason::FewTries, Lang::Zh) => format!("{jobs} 的成功次数少于 {TRIES_NEEDED} 次"),
            (DoubtReason::WideSpread, Lang::En) => "durations of the past lie far apart".to_owned(),
            (DoubtReason::WideSpread, Lang::Zh) => "以往耗时相差很大".to_owned(),
        }
    }
}
