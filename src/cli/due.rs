//! When a batch and its jobs are due, and how late they are or will be: for `batch show`, `batch
//! eta` and `plan`.

use crate::cli::out;
use crate::domain::batch::Snapshot;
use crate::domain::text::lang::Lang;
use crate::domain::time::span_words;
use crate::view::due::Dues;

/// Maximum length of a list of late jobs, in characters.
const LIST_MAX: usize = 300;

/// Due times and lateness in a few lines; none where nothing is due.
pub(super) fn lines(
    snapshot: &Snapshot,
    now: Option<&Dues>,
    expected: Option<&Dues>,
    lang: Lang,
) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(due) = now.or(expected).and_then(|dues| dues.batch.due).map(out::local_time) {
        let is = now.and_then(|dues| dues.batch.late_by);
        let will = expected.and_then(|dues| dues.batch.late_by);
        let words = match (is.map(span_words), will.map(span_words), lang) {
            (Some(by), _, Lang::En) => format!("Due: {due}; late by {by}"),
            (Some(by), _, Lang::Zh) => format!("应完成：{due}；已晚 {by}"),
            (None, Some(by), Lang::En) => format!("Due: {due}; expected to be late by {by}"),
            (None, Some(by), Lang::Zh) => format!("应完成：{due}；预计晚 {by}"),
            (None, None, Lang::En) => format!("Due: {due}; not late"),
            (None, None, Lang::Zh) => format!("应完成：{due}；未晚"),
        };
        lines.push(words);
    }
    let is_late = |i: usize| now.and_then(|dues| dues.jobs.get(i)?.late_by);
    let late = listed(snapshot, now, |_| true);
    let soon = listed(snapshot, expected, |i| is_late(i).is_none());
    if !late.is_empty() {
        lines.push(format!("{}{late}", lang.select("Late: ", "已晚作业：")));
    }
    if !soon.is_empty() {
        lines.push(format!("{}{soon}", lang.select("Expected to be late: ", "预计会晚的作业：")));
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
    use crate::domain::forecast::lateness::Lateness;
    use crate::domain::id::{GroupCode, JobCode, JobType};
    use crate::domain::job::{Group, JobDef, Shared};
    use crate::domain::time::Millis;
    use serde_json::json;

    fn snapshot() -> Snapshot {
        let group = GroupCode::parse("g").expect("group");
        let job = |code: &str, due: &str| {
            let code = JobCode::parse(code).expect("code");
            let job_type = JobType::parse("NOOP").expect("type");
            let bare = JobDef::with_defaults(code, group.clone(), job_type);
            JobDef { due: due.parse().ok(), start_by: "1s".parse().ok(), ..bare }
        };
        Snapshot {
            jobs: vec![job("A", "10s"), job("B", "20s")],
            group: Group { due: "30s".parse().ok(), ..Group::with_defaults(group.clone()) },
            dependencies: vec![],
            sources: vec![],
            externals: vec![],
            shared: Shared::default(),
            calendars: Default::default(),
        }
    }

    /// The lateness if everything ends at this time.
    fn at(snapshot: &Snapshot, end: i64) -> Dues {
        Dues::with_lateness(snapshot, Millis(0), |due, _| {
            Lateness::new(due, Some(Millis(end))).late_by
        })
    }

    #[test]
    fn what_is_late_and_what_will_be_is_said_in_both_languages() {
        let snapshot = snapshot();
        let (now, later) = (at(&snapshot, 15_000), at(&snapshot, 42_000));
        let shown = lines(&snapshot, Some(&now), Some(&later), Lang::En);
        let due = out::local_time(Millis(30_000));
        let wanted = [
            format!("Due: {due}; expected to be late by 12.0 s"),
            "Late: A (14.0 s), B (14.0 s)".to_owned(),
        ];
        assert_eq!(shown, wanted);
        let none = Dues::planned(&snapshot, Millis(0));
        let shown = lines(&snapshot, Some(&none), Some(&later), Lang::Zh);
        let wanted = [
            format!("应完成：{due}；预计晚 12.0 s"),
            "预计会晚的作业：A (41.0 s), B (41.0 s)".to_owned(),
        ];
        assert_eq!(shown, wanted);
        let shown = lines(&snapshot, Some(&later), None, Lang::En);
        assert_eq!(shown[0], format!("Due: {due}; late by 12.0 s"));
        let shown = lines(&snapshot, Some(&none), None, Lang::En);
        assert_eq!(shown, [format!("Due: {due}; not late")]);
        let document = serde_json::to_value(now.jobs[0].job_times()).expect("a document");
        let wanted = json!({
            "start_by": "1970-01-01T00:00:01.000Z", "due": "1970-01-01T00:00:10.000Z",
            "is_late": true, "late_by_ms": 14_000,
        });
        assert_eq!(document, wanted);
        let end = none.batch.end_time();
        assert_eq!((end.is_late, end.late_by_ms), (false, None));
    }
}
