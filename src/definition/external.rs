//! Checks dependencies on other batches and groups: known where they can be known, and no ring.

use crate::definition::check::when;
use crate::definition::fault::{At, Place, Report};
use crate::definition::job::Made;
use crate::definition::near::did_you_mean;
use crate::definition::raw::RawParent;
use crate::domain::batch_no::{BatchExpr, Period};
use crate::domain::dag::{Dag, DagError};
use crate::domain::external::ExternalDependency;
use crate::domain::id::{GroupCode, JobCode};
use crate::domain::job::JobDependency;
use crate::domain::trigger_rule::When;
use std::collections::HashMap;

/// A dependency on another batch as the user wrote it, with the job that waits.
pub(crate) type Outside = (String, RawParent);

/// Whether an entry of `depends_on` speaks of another batch or group.
pub(crate) fn is_external(parent: &RawParent) -> bool {
    parent.group().is_some() || parent.batch().is_some()
}

/// Dependencies on other batches, each sound as far as this definition can know.
pub(crate) fn externals(
    outside: Vec<Outside>,
    jobs: &[Made],
    dependencies: &[JobDependency],
    groups: &[GroupCode],
    report: &mut Report,
) -> Vec<ExternalDependency> {
    let by_code: HashMap<&str, &Made> = jobs.iter().map(|j| (j.def.code.as_str(), j)).collect();
    let mut found: Vec<At<ExternalDependency>> = Vec::new();
    for (code, parent) in outside {
        let Some(job) = by_code.get(code.as_str()) else { continue };
        let Some(made) = external(job, &parent, &by_code, groups, report) else { continue };
        if found.iter().any(|f| f.value == made) {
            let what = format!("job {code} lists the same dependency on {} twice", made.target());
            report.fault(&parent.at, what, "list it once");
            continue;
        }
        found.push(At { at: parent.at, value: made });
    }
    rings(&found, jobs, dependencies, report);
    found.into_iter().map(|f| f.value).collect()
}

fn external(
    job: &Made,
    parent: &RawParent,
    by_code: &HashMap<&str, &Made>,
    groups: &[GroupCode],
    report: &mut Report,
) -> Option<ExternalDependency> {
    let code = &job.def.code;
    let whose = format!("job {code}");
    let (group, is_ours) = match parent.group() {
        None => (job.def.group.clone(), true),
        Some(word) => {
            let group = GroupCode::parse(&word.value)
                .map_err(|error| report.fault(&word.at, format!("{whose}: {error}"), ""))
                .ok()?;
            let is_ours = groups.contains(&group);
            (group, is_ours)
        }
    };
    let batch = match parent.batch() {
        None => BatchExpr::Same,
        Some(text) => BatchExpr::parse(&text.value)
            .map_err(|error| report.fault(&text.at, format!("{whose}: batch: {error}"), ""))
            .ok()?,
    };
    if let (BatchExpr::Literal(no), Some(text)) = (&batch, parent.batch())
        && Period::of(no).is_none()
    {
        let what = format!("{whose}: batch: {no} is taken as the batch number itself");
        report.warn(&text.at, what, "if it was to be an expression, see docs/batch-numbers.md");
    }
    if group == job.def.group && batch == BatchExpr::Same {
        let what = format!("{whose} depends on its own batch as if it were another");
        report.fault(&parent.at, what, "remove batch and group, or name another batch (prev)");
        return None;
    }
    let depends_on = match &parent.job {
        None => None,
        Some(word) => Some(target(&whose, word, &group, is_ours, by_code, report)?),
    };
    let when = when(job, parent.when(), report);
    if let (None, When::Output(_), Some(text)) = (&depends_on, &when, parent.when()) {
        let what = format!("{whose}: a whole batch has no outputs to compare");
        report.fault(&text.at, what, "name a job of it, or write success, failure or done");
    }
    let more = parent.more.as_ref();
    Some(ExternalDependency {
        job_code: code.clone(),
        group,
        depends_on,
        batch,
        when,
        missing: more.and_then(|m| m.missing.as_ref()).map(|m| m.value).unwrap_or_default(),
        wait_sec: more.and_then(|m| m.wait_sec.as_ref()).map(|w| w.value),
    })
}

fn target(
    whose: &str,
    word: &At<String>,
    group: &GroupCode,
    is_ours: bool,
    by_code: &HashMap<&str, &Made>,
    report: &mut Report,
) -> Option<JobCode> {
    let found = by_code.get(word.value.as_str());
    if is_ours && found.is_none_or(|j| j.def.group != *group) {
        let known = by_code.values().filter(|j| j.def.group == *group).map(|j| j.def.code.as_str());
        let hint = did_you_mean(&word.value, known);
        let what =
            format!("{whose} depends on {} of group {group}, which has no such job", word.value);
        report.fault(&word.at, what, format!("{hint}correct the code or the group"));
        return None;
    }
    if !is_ours {
        let what = format!("{whose} depends on group {group}, which this definition does not hold");
        report.warn(&word.at, what, "it is looked for when the batch runs");
    }
    JobCode::parse(&word.value)
        .map_err(|error| report.fault(&word.at, format!("{whose}: {error}"), ""))
        .ok()
}

/// Two groups that wait for each other in the same batch would wait for ever. A whole batch is
/// waited for through a place of its own, below all of its jobs.
fn rings(
    found: &[At<ExternalDependency>],
    jobs: &[Made],
    dependencies: &[JobDependency],
    report: &mut Report,
) {
    let same: Vec<&At<ExternalDependency>> =
        found.iter().filter(|f| f.value.batch == BatchExpr::Same).collect();
    if same.is_empty() {
        return;
    }
    // So long a name that no job has it by chance; were it so, a ring would be named wrongly.
    let end = |group: &GroupCode| JobCode::parse(&format!("_end.of.group.{group}")).ok();
    let mut codes: Vec<JobCode> = jobs.iter().map(|j| j.def.code.clone()).collect();
    let mut edges: Vec<JobDependency> = dependencies.to_vec();
    let mut ended: Vec<&GroupCode> = Vec::new();
    let mut at: HashMap<(JobCode, JobCode), Place> = HashMap::new();
    for one in &same {
        let external = &one.value;
        let parent = match &external.depends_on {
            Some(job) if codes.contains(job) => job.clone(),
            Some(_) => continue,
            None => {
                let Some(end) = end(&external.group) else { continue };
                if !ended.contains(&&external.group) {
                    ended.push(&external.group);
                    let ours = jobs.iter().filter(|j| j.def.group == external.group);
                    edges.extend(
                        ours.map(|j| JobDependency::plain(end.clone(), j.def.code.clone(), 0)),
                    );
                    codes.push(end.clone());
                }
                end
            }
        };
        let edge = (external.job_code.clone(), parent.clone());
        if at.insert(edge, one.at.clone()).is_none() {
            edges.push(JobDependency::plain(external.job_code.clone(), parent, 0));
        }
    }
    if let Err(DagError::Cycle(ring)) = Dag::build(&codes, &edges) {
        let pairs = ring.iter().zip(ring.iter().cycle().skip(1));
        let place = pairs.filter_map(|(a, b)| at.get(&(a.clone(), b.clone()))).next();
        let words: Vec<String> = ring
            .iter()
            .chain(ring.first())
            .map(|c| c.as_str().replace("_end.of.group.", "the end of group "))
            .collect();
        // A ring without such an edge has been reported as one of its group.
        if let Some(place) = place {
            let what = format!(
                "these jobs of several groups wait for one another in a circle: {}",
                words.join(" -> ")
            );
            report.fault(place, what, "remove one of these dependencies");
        }
    }
}
