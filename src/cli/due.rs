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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::id::{GroupCode, JobCode, JobType};
    use crate::domain::job::{Group, JobDef, Shared};

    fn snapshot() -> Snapshot {
        let group = GroupCode::parse("g").expect("group");
        let job = |code: &str, due: &str| {
            let code = JobCode::parse(code).expect("code");
            let job_type = JobType::parse("NOOP").expect("type");
            let bare = JobDef::bare(code, group.clone(), job_type);
            JobDef { due: due.parse().ok(), start_by: "1s".parse().ok(), ..bare }
        };
        Snapshot {
            jobs: vec![job("A", "10s"), job("B", "20s")],
            group: Group { due: "30s".parse().ok(), ..Group::bare(group.clone()) },
            dependencies: vec![],
            sources: vec![],
            externals: vec![],
            shared: Shared::default(),
            calendars: Default::default(),
        }
    }

    /// Late by so much when it is over at this moment.
    fn at(snapshot: &Snapshot, end: i64) -> Dues {
        Dues::of(snapshot, Millis(0), |due, _| Lateness::of(due, Some(Millis(end))).late_by)
    }

    #[test]
    fn what_is_late_and_what_will_be_is_said_in_both_languages() {
        let snapshot = snapshot();
        let (now, later) = (at(&snapshot, 15_000), at(&snapshot, 42_000));
        let said = lines(&snapshot, Some(&now), Some(&later), Lang::En);
        let wanted = [
            "Due: 1970-01-01T00:00:30.000Z; expected to be late by 12.0 s",
            "Late: A (14.0 s), B (14.0 s)",
        ];
        assert_eq!(said, wanted);
        let none = Dues::planned(&snapshot, Millis(0));
        let said = lines(&snapshot, Some(&none), Some(&later), Lang::Zh);
        let wanted = [
            "应完成:1970-01-01T00:00:30.000Z;预计晚 12.0 s",
            "预计会晚的作业:A (41.0 s), B (41.0 s)",
        ];
        assert_eq!(said, wanted);
        let said = lines(&snapshot, Some(&later), None, Lang::En);
        assert_eq!(said[0], "Due: 1970-01-01T00:00:30.000Z; late by 12.0 s");
        let said = lines(&snapshot, Some(&none), None, Lang::En);
        assert_eq!(said, ["Due: 1970-01-01T00:00:30.000Z; not late"]);
        let mut document = json!({});
        now.jobs[0].put(&mut document);
        let wanted = json!({
            "start_by": "1970-01-01T00:00:01.000Z", "due": "1970-01-01T00:00:10.000Z",
            "is_late": true, "late_by_ms": 14_000,
        });
        assert_eq!(document, wanted);
        none.batch.put_end(&mut document);
        assert_eq!((&document["is_late"], &document["late_by_ms"]), (&json!(false), &Value::Null));
    }
}
