//! Checks references between jobs: dependencies, and uses of outputs.

use crate::definition::fault::{FaultReport, Located, SourcePlace};
use crate::definition::job::CheckedJob;
use crate::definition::job_names::JobNames;
use crate::definition::near::{did_you_mean, nearest};
use crate::definition::raw::RawDependency;
use crate::domain::dag::{Dag, DagError};
use crate::domain::id::{GroupCode, JobCode};
use crate::domain::job::trigger_rule::EdgeCondition;
use crate::domain::job::{JobDef, JobDependency, Param, ParamMode, output_of};
use crate::domain::params::{Reference, references};
use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};

/// Number of unknown names after which suggestions stop: such a file is of another kind, and suggestions take time.
const HINTS: usize = 50;
/// Maximum number of cycles reported.
const CIRCLES: usize = 20;

/// Outputs that every job has.
const ALWAYS: [&str; 3] = ["exit_code", "rows_affected", "result_rows"];
/// Outputs of a job that opens a batch.
const SUB_BATCH_OUTPUTS: [&str; 6] =
    ["batch_no", "batch_id", "status", "jobs", "ended_well", "failed"];

/// A dependency with its line.
type PlacedDependency = Located<JobDependency>;

/// The dependencies between existing jobs, each once; all others are reported. `names` are all names in the file,
/// including those of jobs that could not be built.
pub(crate) fn dependencies(
    raw: Vec<RawDependency>,
    jobs: &[CheckedJob],
    names: &JobNames,
    report: &mut FaultReport,
) -> Vec<JobDependency> {
    let by_code = (0..)
        .zip(jobs)
        .map(|(i, j)| ((j.def.group.as_str(), j.def.code.as_str()), (i, j)))
        .collect();
    let seen = HashSet::with_capacity(raw.len());
    let mut check = DependencyCheck { by_code, seen, names, unknown: 0 };
    // Only places: the list of a million dependencies takes 100 MB.
    let found: Vec<PlacedDependency> =
        raw.into_iter().filter_map(|one| check.place(one, report)).collect();
    drop(check);
    circles(jobs, &found, report);
    let mut found: Vec<JobDependency> = found.into_iter().map(|d| d.value).collect();
    found.shrink_to_fit();
    found
}

/// What dependencies are checked against.
struct DependencyCheck<'a> {
    by_code: HashMap<(&'a str, &'a str), (u32, &'a CheckedJob)>,
    seen: HashSet<(u32, u32)>,
    names: &'a JobNames,
    /// Number of unknown names so far.
    unknown: usize,
}

impl DependencyCheck<'_> {
    /// The dependency, if both of its jobs exist and it is not a duplicate.
    fn place(&mut self, one: RawDependency, report: &mut FaultReport) -> Option<PlacedDependency> {
        let (group, job, parent) = (&*one.group, &*one.job, one.depends_on.value.as_str());
        let (is_job, is_parent) =
            (self.by_code.get(&(group, job)), self.by_code.get(&(group, parent)));
        let are_there = is_job.is_some() && is_parent.is_some();
        let mut both = [job, parent].into_iter().filter(|_| !are_there);
        if let Some(missing) = both.find(|c| !self.names.has_code(group, c)) {
            if missing == parent && in_another_group(&one, self.names, report) {
                return None;
            }
            self.unknown += 1;
            let hints = if self.unknown > HINTS { 0 } else { usize::MAX };
            let hint = did_you_mean(missing, self.names.codes(group).take(hints));
            let what = if missing == parent {
                format!("job {job} depends on {parent}, which is not defined")
            } else {
                format!("job {job} is not defined, yet it depends on {parent}")
            };
            let cure = format!("{hint}define it or remove the dependency");
            report.fault(&one.depends_on.at, what, cure);
            return None;
        }
        let (&(at, job), &(above, parent)) = (is_job?, is_parent?);
        if let Err((what, cure)) = check_edge(at, job, above, parent, &mut self.seen) {
            report.fault(&one.depends_on.at, what, cure);
            return None;
        }
        warn_of_inactive(job, parent, &one.depends_on.at, report);
        let value = JobDependency {
            group: job.def.group.clone(),
            job_code: job.def.code.clone(),
            depends_on: parent.def.code.clone(),
            dependency_order: one.order,
            when: read_condition(job, one.when.as_deref(), report),
        };
        Some(one.depends_on.with_value(value))
    }
}

/// The condition of an edge; a condition that is invalid, or that the job's rule would ignore, is reported.
pub(crate) fn read_condition(
    job: &CheckedJob,
    text: Option<&Located<String>>,
    report: &mut FaultReport,
) -> EdgeCondition {
    let Some(text) = text else { return EdgeCondition::Success };
    let (code, rule) = (&job.def.code, job.def.trigger_rule);
    if !rule.takes_conditions() {
        let what = format!("job {code}: a dependency has a condition, which rule {rule} ignores");
        let cure = "remove when, or use trigger_rule all_success or one_success";
        report.fault(&text.at, what, cure);
    }
    const WORDS: [&str; 4] = ["success", "failure", "done", "skipped"];
    let word = text.value.trim();
    let is_name = word.chars().all(|c| c.is_alphanumeric() || c == '_');
    if is_name && !WORDS.contains(&word) {
        // As an expression it would be a boolean output of that name. Far more likely it is a misspelt condition word,
        // and the branch would silently never be taken.
        let what = format!("job {code}: when: {word:?} is not a condition");
        let hint = did_you_mean(word, WORDS);
        let cure = format!("{hint}write success, failure, done, skipped, or {word} == true");
        report.fault(&text.at, what, cure);
        return EdgeCondition::Success;
    }
    EdgeCondition::parse(&text.value).unwrap_or_else(|error| {
        let what = format!("job {code}: when: {}", error.message());
        let cure = format!("{}; or write success, failure, done or skipped", error.hint_text());
        report.fault(&text.at, what, cure);
        EdgeCondition::Success
    })
}

/// Reports a plain code that only other groups have.
fn in_another_group(one: &RawDependency, names: &JobNames, report: &mut FaultReport) -> bool {
    let word = one.depends_on.value.as_str();
    let groups = names.groups_with(word);
    if groups.is_empty() {
        return false;
    }
    let (job, group) = (&one.job, &one.group);
    let kind = if groups.len() == 1 { "group" } else { "groups" };
    let what =
        format!("job {job} of group {group} depends on {word} of {kind} {}", groups.join(" and "));
    let full: Vec<String> = groups.iter().map(|other| format!("{other}.{word}")).collect();
    let cure = format!(
        "a plain code means the same group: write {}, or move one of the jobs",
        full.join(" or ")
    );
    report.fault(&one.depends_on.at, what, cure);
    true
}

fn check_edge(
    at: u32,
    job: &CheckedJob,
    above: u32,
    parent: &CheckedJob,
    seen: &mut HashSet<(u32, u32)>,
) -> Result<(), (String, String)> {
    let (code, other) = (&job.def.code, &parent.def.code);
    if code == other {
        return Err((format!("job {code} depends on itself"), "remove that dependency".to_owned()));
    }
    if !seen.insert((at, above)) {
        let what = format!("job {code} lists its dependency on {other} twice");
        return Err((what, "list it once".to_owned()));
    }
    Ok(())
}

fn warn_of_inactive(
    job: &CheckedJob,
    parent: &CheckedJob,
    at: &SourcePlace,
    report: &mut FaultReport,
) {
    if job.def.is_active && !parent.def.is_active {
        let what =
            format!("job {} depends on {}, which is not active", job.def.code, parent.def.code);
        report.add_warning(
            at,
            what,
            "activate it, or remove the dependency; a batch of this group will be refused",
        );
    }
}

/// Reports each cycle once, on the line of one of its dependencies.
fn circles(jobs: &[CheckedJob], found: &[PlacedDependency], report: &mut FaultReport) {
    let mut by_group: BTreeMap<&GroupCode, (Vec<JobCode>, Vec<&PlacedDependency>)> =
        BTreeMap::new();
    for job in jobs {
        by_group.entry(&job.def.group).or_default().0.push(job.def.code.clone());
    }
    for dependency in found {
        by_group.entry(&dependency.value.group).or_default().1.push(dependency);
    }
    for (codes, found) in by_group.values() {
        circles_in_group(codes, found, report);
    }
}

fn circles_in_group(codes: &[JobCode], found: &[&PlacedDependency], report: &mut FaultReport) {
    let mut edges: Vec<&JobDependency> = found.iter().map(|d| &d.value).collect();
    for _ in 0..CIRCLES {
        let Err(DagError::Cycle(ring)) = Dag::build(codes, edges.iter().copied()) else {
            return;
        };
        let next = ring.iter().cycle().skip(1);
        let steps: HashSet<(&JobCode, &JobCode)> = ring.iter().zip(next).collect();
        let first = |d: &&&PlacedDependency| {
            ring.first() == Some(&d.value.job_code)
                && steps.contains(&(&d.value.job_code, &d.value.depends_on))
        };
        let Some(place) = found.iter().find(first).map(|d| &d.at) else {
            return;
        };
        let words: Vec<&str> = ring.iter().chain(ring.first()).map(JobCode::as_str).collect();
        let what = format!("these jobs wait for one another in a circle: {}", words.join(" -> "));
        report.fault(place, what, "remove one of these dependencies");
        edges.retain(|e| !steps.contains(&(&e.job_code, &e.depends_on)));
    }
}

/// Reports parameters that use the output of a job that does not come before theirs. They name jobs of their own group.
pub(crate) fn outputs(
    jobs: &[CheckedJob],
    dependencies: &[JobDependency],
    report: &mut FaultReport,
) {
    let mut by_group: BTreeMap<&GroupCode, (Vec<&CheckedJob>, ParentsOf<'_>)> = BTreeMap::new();
    for job in jobs {
        by_group.entry(&job.def.group).or_default().0.push(job);
    }
    for d in dependencies {
        let (_, parents) = by_group.entry(&d.group).or_default();
        parents.entry(&d.job_code).or_default().push(&d.depends_on);
    }
    for (jobs, parents) in by_group.values() {
        outputs_in_group(jobs, parents, report);
    }
}

/// The parents of each job of a group.
type ParentsOf<'a> = HashMap<&'a JobCode, Vec<&'a JobCode>>;

fn outputs_in_group(jobs: &[&CheckedJob], parents: &ParentsOf<'_>, report: &mut FaultReport) {
    let codes: HashSet<&JobCode> = jobs.iter().map(|j| &j.def.code).collect();
    several_parents(jobs, parents, report);
    let by_code: HashMap<&JobCode, &CheckedJob> = jobs.iter().map(|j| (&j.def.code, *j)).collect();
    let ordered = OrderedUses::new(jobs, parents);
    for job in jobs {
        let code = &job.def.code;
        for Located { at, value: (param, used) } in &job.asks.uses {
            let head = format!("job {code}: parameter {param} uses an output of {used}");
            if !codes.contains(used) {
                let hint = did_you_mean(used.as_str(), codes.iter().map(|c| c.as_str()));
                let what = format!("{head}, which is not defined");
                report.fault(at, what, format!("{hint}define it or change the value"));
            } else if !ordered.contains(used, code) {
                let what = format!("{head}, which does not run before it");
                report.fault(at, what, format!("add {used} to its depends_on"));
            } else if let Some(giver) = by_code.get(used) {
                undeclared(job, param, &giver.def, at, report);
            }
        }
    }
    for job in jobs.iter().filter(|j| j.condition.is_some()) {
        condition(job, &codes, parents, report);
    }
}

/// The uses of an output in which the producing job comes before the using job.
///
/// The search starts at each producer and goes no further than the jobs that use it. A search upwards from each using
/// job took 26 times as long for 8,000 jobs as for 1,000.
struct OrderedUses<'a>(HashSet<(&'a JobCode, &'a JobCode)>);

impl<'a> OrderedUses<'a> {
    fn new(jobs: &[&'a CheckedJob], parents: &ParentsOf<'a>) -> Self {
        let mut ordered = HashSet::new();
        let mut users: HashMap<&JobCode, HashSet<&JobCode>> = HashMap::new();
        for job in jobs {
            let code = &job.def.code;
            let own = parents.get(code).map(Vec::as_slice).unwrap_or_default();
            for Located { value: (_, used), .. } in &job.asks.uses {
                if own.contains(&used) {
                    ordered.insert((used, code));
                } else {
                    users.entry(used).or_default().insert(code);
                }
            }
        }
        if !users.is_empty() {
            let children = children_of(parents);
            for (giver, users) in users {
                let found = found_along(giver, &children, users);
                ordered.extend(found.into_iter().map(|user| (giver, user)));
            }
        }
        Self(ordered)
    }

    fn contains(&self, giver: &'a JobCode, user: &'a JobCode) -> bool {
        self.0.contains(&(giver, user))
    }
}

fn children_of<'a>(parents: &ParentsOf<'a>) -> ParentsOf<'a> {
    let mut children: ParentsOf<'_> = HashMap::new();
    for (code, parents) in parents {
        for parent in parents {
            children.entry(parent).or_default().push(code);
        }
    }
    children
}

/// Which of `wanted` are reachable along `next` from a job, nearest first; the search stops at the last of them.
fn found_along<'a>(
    from: &'a JobCode,
    next: &ParentsOf<'a>,
    mut wanted: HashSet<&'a JobCode>,
) -> Vec<&'a JobCode> {
    let (mut found, mut seen) = (Vec::new(), HashSet::from([from]));
    let mut open = VecDeque::from([from]);
    while !wanted.is_empty()
        && let Some(at) = open.pop_front()
    {
        for code in next.get(at).into_iter().flatten() {
            if seen.insert(*code) {
                found.extend(wanted.take(code));
                open.push_back(code);
            }
        }
    }
    found
}

/// Reports an output that the producing job can never have: its type has other outputs, or it is a typing error for a
/// declared one. The columns of result sets are not known here.
fn undeclared(
    job: &CheckedJob,
    param: &str,
    giver: &JobDef,
    at: &SourcePlace,
    report: &mut FaultReport,
) {
    let own = job.def.params.iter().find(|p| p.name == param);
    for reference in own.and_then(|p| references(p).ok()).unwrap_or_default() {
        let Reference::Output(code, name) = reference else { continue };
        if code != giver.code || name.is_empty() || ALWAYS.contains(&name.as_str()) {
            continue;
        }
        let fixed: Option<&[&str]> = match giver.job_type.as_str() {
            "NOOP" if giver.for_each.is_none() => Some(&[]),
            "BATCH" if giver.for_each.is_none() => Some(&SUB_BATCH_OUTPUTS),
            _ => None,
        };
        let declared = giver.params.iter().filter(|p| p.mode != ParamMode::In);
        let declared: Vec<&str> = declared.map(|p| p.name.as_str()).collect();
        let handed_out = fixed.unwrap_or(&declared);
        if handed_out.contains(&name.as_str()) {
            continue;
        }
        let is_part =
            |known: &&&str| known.to_lowercase().ends_with(&format!("_{}", name.to_lowercase()));
        let near = handed_out.iter().find(is_part).copied();
        let near = near.or_else(|| nearest(&name, handed_out.iter().copied()));
        let what = format!(
            "job {}: parameter {param} uses the output {name} of {code}, which {code} does not declare",
            job.def.code
        );
        match (near, fixed) {
            (Some(near), _) => report.fault(at, what, format!("did you mean {near}?")),
            (None, Some([])) => {
                report.fault(
                    at,
                    what,
                    format!("a job of type {} hands out nothing", giver.job_type),
                );
            }
            (None, Some(known)) => report.fault(at, what, format!("it has {}", known.join(", "))),
            // It may still be a column of the last result set, which is not known here.
            (None, None) if giver.job_type.as_str() == "PROC" && !declared.is_empty() => {
                let known = declared.join(", ");
                let hint = format!(
                    "{code} declares {known}; use one of these, declare {name} with mode: out, or see to it that its last \
                     result set has a column {name}"
                );
                report.add_warning(at, what, hint);
            }
            (None, None) => {}
        }
    }
}

/// Checks that every name in a job's own condition is an output of an upstream job.
fn condition<'a>(
    job: &'a CheckedJob,
    codes: &HashSet<&'a JobCode>,
    parents: &ParentsOf<'a>,
    report: &mut FaultReport,
) {
    let (Some(at), Some(expr)) = (&job.condition, &job.def.condition) else { return };
    let head = format!("job {}: if", job.def.code);
    let known = |code: &str| JobCode::parse(code).ok().and_then(|code| codes.get(&code).copied());
    let is_above = |code: &str| {
        let wanted = |code| !found_along(&job.def.code, parents, HashSet::from([code])).is_empty();
        known(code).is_some_and(wanted)
    };
    for name in expr.names() {
        if output_of(name, &is_above).is_some() {
            continue;
        }
        let (what, cure) = match output_of(name, &|code| known(code).is_some()) {
            Some((code, _)) => (
                format!("{head} asks for {name}, and {code} does not run before it"),
                format!("add {code} to its depends_on"),
            ),
            None => (
                format!("{head} asks for {name}, which is no output of a job"),
                "write CODE.NAME, the code that of a job above it".to_owned(),
            ),
        };
        report.fault(at, what, cure);
    }
}

/// Reports parameters without a value that two parents provide.
fn several_parents(jobs: &[&CheckedJob], parents: &ParentsOf<'_>, report: &mut FaultReport) {
    let by_code: HashMap<&JobCode, &CheckedJob> = jobs.iter().map(|j| (&j.def.code, *j)).collect();
    for job in jobs {
        let own = parents.get(&job.def.code).map(Vec::as_slice).unwrap_or_default();
        for Located { at, value: name } in &job.asks.takes {
            let hands_out = |code: &&&JobCode| {
                let params = by_code.get(**code).map(|made| &made.def.params);
                let out = |p: &Param| p.mode != ParamMode::In && p.name == *name;
                params.is_some_and(|params| params.iter().any(out))
            };
            let found: Vec<&str> = own.iter().filter(hands_out).map(|code| code.as_str()).collect();
            if let [first, _, ..] = found[..] {
                let what = format!(
                    "job {}: parameter {name} has no value, and {} hand out an output of that name",
                    job.def.code,
                    found.join(" and ")
                );
                report.fault(at, what, format!("say which: value: ${{jobs.{first}.{name}}}"));
            }
        }
    }
}
