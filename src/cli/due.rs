//! By when a batch and its jobs are due, and how late they are or will be: for `batch show`, `batch eta` and
//! `plan`.

use crate::cli::batch::View;
use crate::cli::out;
use crate::domain::batch::Snapshot;
use crate::domain::dag::Node;
use crate::domain::eta::Forecast;
use crate::domain::lang::Lang;
use crate::domain::lateness::{Alarm, Lateness, is_missed, moments};
use crate::domain::time::{Millis, span_words};
use serde_json::{Value, json};

/// Longest list of late jobs, in characters.
const LIST_MAX: usize = 300;

/// The times of a batch, and how they are kept.
pub(super) struct Dues {
    pub(super) batch: Due,
    /// Parallel to its jobs.
    pub(super) jobs: Vec<Due>,
}

/// The times of a job or of the batch.
#[derive(Clone, Copy, Default)]
pub(super) struct Due {
    start_by: Option<Millis>,
    due: Option<Millis>,
    late_by: Option<i64>,
}

impl Dues {
    fn of(
        snapshot: &Snapshot,
        opened: Millis,
        late_by: impl Fn(Millis, Alarm) -> Option<i64>,
    ) -> Self {
        let (batch, jobs) = (Due::default(), vec![Due::default(); snapshot.jobs.len()]);
        let mut this = Self { batch, jobs };
        for (at, alarm) in moments(snapshot, opened) {
            let entry = match alarm {
                Alarm::Batch => Some(&mut this.batch),
                Alarm::Start(node) | Alarm::Finish(node) | Alarm::Release(node) => {
                    this.jobs.get_mut(node.at())
                }
            };
            let Some(entry) = entry else { continue };
            match alarm {
                Alarm::Start(_) => entry.start_by = Some(at),
                Alarm::Finish(_) | Alarm::Batch => entry.due = Some(at),
                Alarm::Release(_) => {}
            }
            entry.late_by = entry.late_by.max(late_by(at, alarm));
        }
        this
    }

    /// As a batch stands now.
    pub(super) fn of_view(view: &View) -> Self {
        let (rows, now) = (&view.rows, view.now);
        Self::of(&view.snapshot, view.batch.create_time, |at, alarm| match alarm {
            Alarm::Start(_) => is_missed(alarm, rows).then(|| now.since(at)).filter(|ms| *ms > 0),
            Alarm::Finish(node) => Lateness::of_job(at, rows.get(node.at())?, now).late_by,
            Alarm::Batch => Lateness::of_batch(at, &view.batch, now).late_by,
            Alarm::Release(_) => None,
        })
    }

    /// As a forecast has it, of a batch that was opened at `opened`.
    pub(super) fn expected(snapshot: &Snapshot, forecast: &Forecast, opened: Millis) -> Self {
        let job = |node: Node| forecast.jobs.get(node.at());
        Self::of(snapshot, opened, |at, alarm| {
            let end = match alarm {
                Alarm::Start(node) => job(node)?.start,
                Alarm::Finish(node) => job(node)?.end,
                Alarm::Batch => Some(forecast.end),
                Alarm::Release(_) => None,
            };
            Lateness::of(at, end).late_by
        })
    }

    /// Of a plan without a forecast: the times alone.
    pub(super) fn planned(snapshot: &Snapshot, opened: Millis) -> Self {
        Self::of(snapshot, opened, |_, _| None)
    }
}

impl Due {
    /// Adds `due`, `is_late` and `late_by_ms` to a document, of a job `start_by` as well.
    pub(super) fn put(self, document: &mut Value) {
        let moment = |at: Option<Millis>| at.map(|at| at.to_string());
        document["start_by"] = json!(moment(self.start_by));
        self.put_end(document);
    }

    /// The same without `start_by`, which a batch does not have.
    pub(super) fn put_end(self, document: &mut Value) {
        document["due"] = json!(self.due.map(|at| at.to_string()));
        document["is_late"] = json!(self.late_by.is_some());
        document["late_by_ms"] = json!(self.late_by);
    }
}

/// What is due and what of it is late, in a few lines; none where nothing is due.
pub(super) fn lines(
    snapshot: &Snapshot,
    now: Option<&Dues>,
    expected: Option<&Dues>,
    lang: Lang,
) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(due) = now.or(expected).and_then(|dues| dues.batch.due) {
        let is = now.and_then(|dues| dues.batch.late_by);
        let will = expected.and_then(|dues| dues.batch.late_by);
        let words = match (is.map(span_words), will.map(span_words), lang) {
            (Some(by), _, Lang::En) => format!("Due: {due}; late by {by}"),
            (Some(by), _, Lang::Zh) => format!("应完成:{due};已晚 {by}"),
            (None, Some(by), Lang::En) => format!("Due: {due}; expected to be late by {by}"),
            (None, Some(by), Lang::Zh) => format!("应完成:{due};预计晚 {by}"),
            (None, None, Lang::En) => format!("Due: {due}; not late"),
            (None, None, Lang::Zh) => format!("应完成:{due};未晚"),
        };
        lines.push(words);
    }
    let is_late = |i: usize| now.and_then(|dues| dues.jobs.get(i)?.late_by);
    let late = listed(snapshot, now, |_| true);
    let soon = listed(snapshot, expected, |i| is_late(i).is_none());
    if !late.is_empty() {
        lines.push(format!("{}{late}", lang.pick("Late: ", "已晚作业:")));
    }
    if !soon.is_empty() {
        lines.push(format!("{}{soon}", lang.pick("Expected to be late: ", "预计会晚的作业:")));
    }
    lines
}

/// `A (12 min 00 s), B (3.0 s)`
fn listed(snapshot: &Snapshot, dues: Option<&Dues>, counts: impl Fn(usize) -> bool) -> String {
    let jobs = snapshot.jobs.iter().zip(dues.iter().flat_map(|dues| &dues.jobs)).enumerate();
    let late = jobs
        .filter(|(i, _)| counts(*i))
        .filter_map(|(_, (job, due))| Some(format!("{} ({})", job.code, span_words(due.late_by?))));
    out::brief(&late.collect::<Vec<_>>().join(", "), LIST_MAX)
}
