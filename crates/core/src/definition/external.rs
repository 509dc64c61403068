//! Checks dependencies on other batches and groups: they exist where that can be known, and form no cycle.

use crate::definition::check::read_condition;
use crate::definition::fault::{FaultReport, Located, SourcePlace};
use crate::definition::job::CheckedJob;
use crate::definition::near::did_you_mean;
use crate::definition::numbering_check::Numbering;
use crate::definition::raw::RawParent;
use crate::domain::batch_no::{BatchExpr, Period};
use crate::domain::dag::{Dag, DagError};
use crate::domain::id::{GroupCode, JobCode};
use crate::domain::job::JobDependency;
use crate::domain::job::external::ExternalDependency;
use crate::domain::job::trigger_rule::EdgeCondition;
use std::collections::HashMap;
use std::sync::Arc;

/// A dependency on another batch as written by the user, with the waiting job.
pub(crate) struct RawExternalDependency {
    /// Group of the waiting job.
    pub group: Arc<str>,
    /// The waiting job.
    pub job: String,
    pub parent: RawParent,
}

/// Jobs by group and code.
type ByName<'a> = HashMap<(&'a str, &'a str), &'a CheckedJob>;

/// Whether an entry of `depends_on` refers to another batch or group.
pub(crate) fn is_external(parent: &RawParent) -> bool {
    parent.group().is_some() || parent.batch().is_some()
}

/// Dependencies on other batches, validated as far as this definition permits.
pub(crate) fn externals(
    outside: Vec<RawExternalDependency>,
    jobs: &[CheckedJob],
    dependencies: &[JobDependency],
    numbering: &Numbering<'_>,
    report: &mut FaultReport,
) -> Vec<ExternalDependency> {
    let groups: Vec<GroupCode> = numbering.groups.iter().map(|g| g.code.clone()).collect();
    let by_code: ByName<'_> =
        jobs.iter().map(|j| ((j.def.group.as_str(), j.def.code.as_str()), j)).collect();
    let mut found: Vec<Located<ExternalDependency>> = Vec::new();
    for RawExternalDependency { group, job: code, parent } in outside {
        let Some(job) = by_code.get(&(&*group, code.as_str())) else { continue };
        let Some(made) = external(job, &parent, &by_code, &groups, report) else { continue };
        if found.iter().any(|f| f.value == made) {
            let what = format!("job {code} lists the same dependency on {} twice", made.target());
            report.fault(parent.at(), what, "list it once");
            continue;
        }
        found.push(Located { at: parent.at().clone(), value: made });
    }
    rings(&found, jobs, dependencies, report);
    numbering.warn_of_mismatches(&found, report);
    found.into_iter().map(|f| f.value).collect()
}

fn external(
    job: &CheckedJob,
    parent: &RawParent,
    by_code: &ByName<'_>,
    groups: &[GroupCode],
    report: &mut FaultReport,
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
        && Period::from_batch_no(no).is_none()
    {
        let what = format!("{whose}: batch: {no} is taken as the batch number itself");
        report.add_warning(
            &text.at,
            what,
            "if it was to be an expression, see docs/batch-numbers.md",
        );
    }
    if group == job.def.group && batch == BatchExpr::Same {
        let what = format!("{whose} depends on its own batch as if it were another");
        report.fault(parent.at(), what, "remove batch and group, or name another batch (prev)");
        return None;
    }
    let depends_on = match parent.job() {
        None => None,
        Some(word) => Some(target(&whose, word, &group, is_ours, by_code, report)?),
    };
    let when = read_condition(job, parent.condition(), report);
    if let (None, EdgeCondition::Output(_), Some(text)) = (&depends_on, &when, parent.condition()) {
        let what = format!("{whose}: a whole batch has no outputs to compare");
        report.fault(&text.at, what, "name a job of it, or write success, failure or done");
    }
    let more = parent.more();
    Some(ExternalDependency {
        waiting_group: job.def.group.clone(),
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
    word: &Located<String>,
    group: &GroupCode,
    is_ours: bool,
    by_code: &ByName<'_>,
    report: &mut FaultReport,
) -> Option<JobCode> {
    let found = by_code.get(&(group.as_str(), word.value.as_str()));
    if is_ours && found.is_none() {
        let known = by_code.values().filter(|j| j.def.group == *group).map(|j| j.def.code.as_str());
        let hint = did_you_mean(&word.value, known);
        let what =
            format!("{whose} depends on {} of group {group}, which has no such job", word.value);
        report.fault(&word.at, what, format!("{hint}correct the code or the group"));
        return None;
    }
    if !is_ours {
        let what = format!("{whose} depends on group {group}, which this definition does not hold");
        report.add_warning(&word.at, what, "it is looked for when the batch runs");
    }
    JobCode::parse(&word.value)
        .map_err(|error| report.fault(&word.at, format!("{whose}: {error}"), ""))
        .ok()
}

/// Two groups whose jobs wait for each other in the same batch would wait forever. A dependency on a whole batch is a
/// dependency on an extra node that depends on all of its jobs.
fn rings(
    found: &[Located<ExternalDependency>],
    jobs: &[CheckedJob],
    dependencies: &[JobDependency],
    report: &mut FaultReport,
) {
    let same: Vec<&Located<ExternalDependency>> =
        found.iter().filter(|f| f.value.batch == BatchExpr::Same).collect();
    if same.is_empty() {
        return;
    }
    let mut graph = GroupsGraph::from_jobs(jobs, dependencies);
    let mut at: HashMap<(JobCode, JobCode), SourcePlace> = HashMap::new();
    for one in &same {
        let external = &one.value;
        let job = graph.place(&external.waiting_group, Some(&external.job_code));
        let parent = match &external.depends_on {
            Some(parent) => graph.place(&external.group, Some(parent)),
            None => Some(graph.end_of(&external.group, jobs)),
        };
        let (Some(job), Some(parent)) = (job, parent) else { continue };
        if at.insert((job.clone(), parent.clone()), one.at.clone()).is_none() {
            graph.edges.push(JobDependency::plain(&external.group, job, parent, 0));
        }
    }
    let codes: Vec<JobCode> = (0..graph.labels.len()).map(node_code).collect();
    if let Err(DagError::Cycle(ring)) = Dag::build(&codes, &graph.edges) {
        let pairs = ring.iter().zip(ring.iter().cycle().skip(1));
        let place = pairs.filter_map(|(a, b)| at.get(&(a.clone(), b.clone()))).next();
        let labels: HashMap<&JobCode, &String> = codes.iter().zip(&graph.labels).collect();
        let words: Vec<&str> =
            ring.iter().chain(ring.first()).map(|c| labels[c].as_str()).collect();
        // A cycle without such an edge is within one group and has been reported there.
        if let Some(place) = place {
            let what = format!(
                "these jobs of several groups wait for one another in a circle: {}",
                words.join(" -> ")
            );
            report.fault(place, what, "remove one of these dependencies");
        }
    }
}

/// The jobs of all groups of a file as one graph with numbered nodes, because codes are only unique within a group.
struct GroupsGraph<'a> {
    places: HashMap<(&'a GroupCode, Option<&'a JobCode>), usize>,
    /// Name of each node in messages.
    labels: Vec<String>,
    edges: Vec<JobDependency>,
}

fn node_code(place: usize) -> JobCode {
    JobCode::parse(&format!("_{place}")).expect("a number makes a code")
}

impl<'a> GroupsGraph<'a> {
    fn from_jobs(jobs: &'a [CheckedJob], dependencies: &[JobDependency]) -> Self {
        let mut graph = Self { places: HashMap::new(), labels: Vec::new(), edges: Vec::new() };
        let mut codes: HashMap<&JobCode, usize> = HashMap::new();
        jobs.iter().for_each(|job| *codes.entry(&job.def.code).or_default() += 1);
        for job in jobs {
            let is_alone = codes[&job.def.code] == 1;
            let label = if is_alone { job.def.code.to_string() } else { job.def.key().to_string() };
            graph.places.insert((&job.def.group, Some(&job.def.code)), graph.labels.len());
            graph.labels.push(label);
        }
        for d in dependencies {
            let (job, parent) = (
                graph.place(&d.group, Some(&d.job_code)),
                graph.place(&d.group, Some(&d.depends_on)),
            );
            if let (Some(job), Some(parent)) = (job, parent) {
                graph.edges.push(JobDependency::plain(&d.group, job, parent, 0));
            }
        }
        graph
    }

    fn place(&self, group: &GroupCode, job: Option<&JobCode>) -> Option<JobCode> {
        self.places.get(&(group, job)).copied().map(node_code)
    }

    /// The node that depends on all jobs of a group: its whole batch.
    fn end_of(&mut self, group: &'a GroupCode, jobs: &'a [CheckedJob]) -> JobCode {
        if let Some(end) = self.place(group, None) {
            return end;
        }
        let end = node_code(self.labels.len());
        self.places.insert((group, None), self.labels.len());
        self.labels.push(format!("the end of group {group}"));
        for job in jobs.iter().filter(|job| job.def.group == *group) {
            if let Some(parent) = self.place(group, Some(&job.def.code)) {
                self.edges.push(JobDependency::plain(group, end.clone(), parent, 0));
            }
        }
        end
    }
}
