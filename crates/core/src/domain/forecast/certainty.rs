//! How sure a forecast is, and why it is no surer.

use crate::domain::batch::Snapshot;
use crate::domain::batch::history::TRIES_NEEDED;
use crate::domain::dag::Node;
use crate::domain::forecast::remaining::Remaining;
use crate::domain::job::queue::QueueStatus;
use crate::domain::text::lang::Lang;
use crate::domain::time::span_words;
use schemars::JsonSchema;
use serde::Serialize;

/// A forecast whose bad case takes more than so many times as long, and a minute more, is rough.
const WIDE: i64 = 2;
const WIDE_LEAST_MS: i64 = 60_000;

/// How far a forecast can be relied on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Certainty {
    /// Every job that decides it has a past, and goes on as usual.
    Sure,
    /// Something is assumed, or differs much from batch to batch.
    Rough,
    /// The past says nothing about it. Times are guesses.
    Unknown,
}

/// Why a forecast is no surer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DoubtReason {
    /// A job has run longer than each of its tries, and by much.
    Overran,
    /// Jobs have never ended well.
    NoHistory,
    /// An operator holds jobs back, nobody knows for how long.
    Held,
    /// Jobs wait for other batches, which have forecasts of their own.
    OtherBatch,
    /// A job has run longer than each of its tries, by little.
    LongerThanUsual,
    /// Jobs that decide the end have ended well too seldom.
    FewTries,
    /// The durations of the past lie far apart.
    WideSpread,
}

/// What stands against a forecast.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Doubt {
    /// What it is.
    pub reason: DoubtReason,
    /// The jobs that it is about.
    pub jobs: Vec<Node>,
    /// How long the first of them runs already, and the longest of how many tries it had.
    elapsed: i64,
    longest: i64,
    tries: usize,
}

/// How sure a forecast is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Confidence {
    /// In one word.
    pub certainty: Certainty,
    /// The weightiest thing against it.
    pub doubt: Option<Doubt>,
}

/// What of a forecast is judged. Lists run parallel to the jobs where they are not of nodes.
#[derive(Clone, Copy, Debug)]
pub struct JudgedForecast<'a> {
    /// What the batch runs.
    pub snapshot: &'a Snapshot,
    /// The states of its jobs.
    pub statuses: &'a [QueueStatus],
    /// Whether they are open and counted.
    pub is_open: &'a [bool],
    /// What is known of the rest of each.
    pub rests: &'a [Remaining<'a>],
    /// Open jobs without history.
    pub assumed: &'a [Node],
    /// Open jobs that an operator holds back.
    pub held: &'a [Node],
    /// The jobs that decide the end.
    pub path: &'a [Node],
    /// How long it takes, ordinarily and in a bad case.
    pub remaining_ms: i64,
    pub bad_remaining_ms: i64,
}

impl Confidence {
    /// Nothing is known of any job.
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
        // A new job in a batch of seventy is one thing, seventy new ones are another.
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

    /// In words, for a line: `unknown: LOAD has run for 51 s, …`.
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
