//! J4: nothing before what it waits for, nothing below what failed, never two lives of one row at once.

use super::{Crime, Effect, Judge, LogRow, Name, Phase, Records, Violation, Wanted};
use procession::domain::job::queue::QueueStatus;

/// What this judge finds.
pub(super) fn judge(records: &Records<'_>) -> Vec<Violation> {
    let mut found = Vec::new();
    for wanted in &records.history.wanted {
        let mut report = |crime, said| {
            let name = wanted.name.clone();
            found.push(Violation { judge: Judge::Order, crime, class: wanted.class, name, said });
        };
        if let Some(said) = overlapping(records, wanted) {
            report(Crime::Overlapping, said);
        }
        for parent in records.parents(wanted) {
            if let Some(said) = too_early(records, wanted, &parent) {
                report(Crime::Disordered, said);
            }
        }
        if let Some(said) = below_a_failure(records, wanted) {
            report(Crime::Disordered, said);
        }
    }
    found
}

/// From when to when a try's body is known to have lived. A body whose end is not there lived at
/// least at its begin.
fn life(records: &Records<'_>, name: &Name, begin: &Effect) -> (i64, i64) {
    let of_it = |end: &&&Effect| (&end.key, &end.life) == (&begin.key, &begin.life);
    let ends = records.of_phase(name, Phase::End);
    let last = ends.iter().filter(of_it).map(|end| end.at).max();
    (begin.at, last.unwrap_or(begin.at).max(begin.at))
}

fn overlapping(records: &Records<'_>, wanted: &Wanted) -> Option<String> {
    let begins = records.of_phase(&wanted.name, Phase::Begin);
    let lives: Vec<_> = begins.iter().map(|b| (&b.life, life(records, &wanted.name, b))).collect();
    lives.windows(2).find_map(|two| {
        let [(one, (_, until)), (other, (from, _))] = two else { return None };
        (from < until)
            .then(|| format!("life {other} began {} µs before life {one} ended", until - from))
    })
}

fn too_early(records: &Records<'_>, wanted: &Wanted, parent: &Name) -> Option<String> {
    let code = &parent.1;
    if let Some(begin) = records.of_phase(&wanted.name, Phase::Begin).first() {
        match records.of_phase(parent, Phase::End).last() {
            None => return Some(format!("it ran, and {code} above it has no effect")),
            Some(end) if end.at > begin.at => {
                return Some(format!("it began {} µs before {code} ended", end.at - begin.at));
            }
            Some(_) => {}
        }
    }
    let claimed = first(records, &wanted.name, |status| status == QueueStatus::Running)?;
    match first(records, parent, QueueStatus::lets_children_run) {
        Some(done) if done.log_id < claimed.log_id => None,
        _ => Some(format!("it was claimed before {code} was done")),
    }
}

fn first<'a>(
    records: &Records<'a>,
    name: &Name,
    is_it: impl Fn(QueueStatus) -> bool,
) -> Option<&'a LogRow> {
    let row = records.rows.get(name)?;
    records.logs.get(&row.queue_id)?.iter().copied().find(|log| is_it(log.status))
}

/// Anything above it that keeps it from running; the workload has no loops.
pub(super) fn blocked_by(records: &Records<'_>, wanted: &Wanted) -> Option<Name> {
    let mut open: Vec<Name> = records.parents(wanted).collect();
    while let Some(name) = open.pop() {
        let status = records.rows.get(&name).map(|row| row.status);
        if status.is_none_or(|s| s.blocks_children() || s == QueueStatus::Held) {
            return Some(name);
        }
        open.extend(records.wanted.get(&name).into_iter().flat_map(|w| records.parents(w)));
    }
    None
}

fn below_a_failure(records: &Records<'_>, wanted: &Wanted) -> Option<String> {
    let above = blocked_by(records, wanted)?;
    let status = records.rows.get(&above).map(|row| row.status.as_str()).unwrap_or("not there");
    let effects = records.effects.get(&wanted.name).map_or(0, Vec::len);
    (effects > 0).then(|| format!("{effects} effects, and {} above it is {status}", above.1))
}
