//! The snapshot with which a batch continues when it takes over the present definition
//! (`--latest`).

use crate::domain::batch::{Batch, Snapshot, as_opened};
use crate::domain::id::JobCode;
use crate::domain::job::external::ExternalDependency;
use crate::domain::job::queue::{QueueEntry, QueueStatus};
use crate::domain::job::{Definition, JobDef, JobDependency};
use crate::engine::opening::refused::OpeningRefusal;
use anyhow::Result;
use std::collections::HashSet;

/// A snapshot with the present bodies and settings of the same jobs; a different shape is refused,
/// because rows and readiness were made for the old one.
pub(in crate::engine) fn renewed(
    snapshot: &Snapshot,
    latest: &Definition,
    there: &Batch,
    rows: &[QueueEntry],
) -> Result<Snapshot> {
    let latest = &as_opened(snapshot, latest)?;
    let mut renewed = snapshot.clone();
    let mut differs = Vec::new();
    for job in &mut renewed.jobs {
        match latest.jobs.iter().find(|j| j.key() == job.key() && j.is_active) {
            Some(present) => *job = present.clone(),
            None => differs.push(format!("- {}", job.code)),
        }
    }
    let codes: HashSet<&JobCode> = snapshot.jobs.iter().map(|j| &j.code).collect();
    let group = &snapshot.group.code;
    let added = latest.jobs.iter().filter(|j| j.group == *group && j.is_active);
    differs.extend(added.filter(|j| !codes.contains(&j.code)).map(|j| format!("+ {}", j.code)));
    let edges = |all: &[JobDependency]| -> HashSet<(JobCode, JobCode)> {
        let ours = all.iter().filter(|d| d.group == *group && codes.contains(&d.job_code));
        ours.map(|d| (d.job_code.clone(), d.depends_on.clone())).collect()
    };
    let (old, new) = (edges(&snapshot.dependencies), edges(&latest.dependencies));
    differs.extend(old.symmetric_difference(&new).map(|(job, on)| format!("{job} <- {on}")));
    let outside = |all: &[ExternalDependency]| -> Vec<ExternalDependency> {
        let ours = all.iter().filter(|e| e.waiting_group == *group);
        ours.filter(|e| codes.contains(&e.job_code)).cloned().collect()
    };
    let (old, new) = (outside(&snapshot.externals), outside(&latest.externals));
    let changed =
        old.iter().filter(|e| !new.contains(e)).chain(new.iter().filter(|e| !old.contains(e)));
    differs
        .extend(changed.map(|e| format!("{} <- {} in batch {}", e.job_code, e.target(), e.batch)));
    if !differs.is_empty() {
        differs.sort();
        return Err(OpeningRefusal::OtherShape(group.to_string(), differs.join(", ")).into());
    }
    let present = latest.groups.iter().find(|g| g.code == *group);
    renewed.group = present.cloned().unwrap_or(renewed.group);
    // The same edges, with the present conditions.
    let ours = latest.dependencies.iter().filter(|d| d.group == *group);
    let ours = ours.filter(|d| codes.contains(&d.job_code));
    renewed.dependencies = ours.cloned().collect();
    renewed.sources.clone_from(&latest.sources);
    renewed.shared.clone_from(&latest.shared);
    renewed.calendars =
        renewed.kept_calendars(&latest.calendars, there.values.business_date, there.create_time)?;
    let lost: Vec<&str> = rows
        .iter()
        .filter(|row| is_open(row) && would_not_be_found(&row.job_code, snapshot, &renewed))
        .map(|row| row.job_code.as_str())
        .collect();
    if !lost.is_empty() {
        return Err(OpeningRefusal::OpenOutcome(group.to_string(), lost.join(", ")).into());
    }
    Ok(renewed)
}

/// Whether the outcome of an attempt of a row is still to be looked up.
fn is_open(row: &QueueEntry) -> bool {
    match row.status {
        QueueStatus::Running | QueueStatus::Killing => true,
        QueueStatus::Unknown => row.unresolved > 0,
        _ => row.waits_unresolved(),
    }
}

/// Whether the outcome of a recorded job would be looked up by another rule, or in another place.
fn would_not_be_found(code: &JobCode, old: &Snapshot, new: &Snapshot) -> bool {
    let job_of = |s: &Snapshot| s.jobs.iter().find(|j| j.code == *code).cloned();
    let (Some(before), Some(after)) = (job_of(old), job_of(new)) else { return false };
    let place = |s: &Snapshot, job: &JobDef| {
        s.sources.iter().find(|source| Some(&source.name) == job.source.as_ref()).cloned()
    };
    let url = |s: &Snapshot, job: &JobDef| place(s, job).map(|source| source.url);
    before.tx.is_recorded() && (before.tx != after.tx || url(old, &before) != url(new, &after))
}
