//! Checks that hold between jobs: what waits for what, and what uses whose output.

use crate::definition::fault::{At, Place, Report};
use crate::definition::job::Made;
use crate::definition::near::did_you_mean;
use crate::definition::raw::RawDependency;
use crate::domain::dag::{Dag, DagError};
use crate::domain::id::JobCode;
use crate::domain::job::{JobDependency, Param, ParamMode, output_of};
use crate::domain::trigger_rule::When;
use std::collections::{HashMap, HashSet};

/// Beyond so many unknown names a file is of another kind, and looking for near ones costs time.
const HINTS: usize = 50;
/// Circles reported at most.
const CIRCLES: usize = 20;

/// A dependency with the line it stands on.
type Placed = At<JobDependency>;

/// Dependencies between jobs that exist, each once; everything else is in the report. `codes` are
/// all codes the user wrote, also those of jobs that could not be made.
pub(crate) fn dependencies(
    raw: Vec<RawDependency>,
    jobs: &[Made],
    codes: &HashSet<String>,
    report: &mut Report,
) -> Vec<JobDependency> {
    let by_code: HashMap<&str, (u32, &Made)> =
        (0..).zip(jobs).map(|(i, j)| (j.def.code.as_str(), (i, j))).collect();
    let mut found: Vec<Placed> = Vec::with_capacity(raw.len());
    let mut seen = HashSet::with_capacity(raw.len());
    let mut unknown = 0;
    for one in raw {
        let (job, parent) = (&*one.job, one.depends_on.value.as_str());
        let (is_job, is_parent) = (by_code.get(job), by_code.get(parent));
        let are_there = is_job.is_some() && is_parent.is_some();
        let mut both = [job, parent].into_iter().filter(|_| !are_there);
        if let Some(missing) = both.find(|c| !codes.contains(*c)) {
            unknown += 1;
            let known =
                codes.iter().map(String::as_str).take(if unknown > HINTS { 0 } else { usize::MAX });
            let hint = did_you_mean(missing, known);
            let what = if missing == parent {
                format!("job {job} depends on {parent}, which is not defined")
            } else {
                format!("job {job} is not defined, yet it depends on {parent}")
            };
            report.fault(
                &one.depends_on.at,
                what,
                format!("{hint}define it or remove the dependency"),
            );
            continue;
        }
        let (Some(job), Some(parent)) = (is_job, is_parent) else {
            continue;
        };
        if let Err((what, cure)) = fits(job, parent, &mut seen) {
            report.fault(&one.depends_on.at, what, cure);
            continue;
        }
        let ((_, job), (_, parent)) = (job, parent);
        warn_of_inactive(job, parent, &one.depends_on.at, report);
        found.push(one.depends_on.with(JobDependency {
            job_code: job.def.code.clone(),
            depends_on: parent.def.code.clone(),
            dependency_order: one.order,
            when: when(job, one.when.as_deref(), report),
        }));
    }
    circles(jobs, &found, report);
    let mut found: Vec<JobDependency> = found.into_iter().map(|d| d.value).collect();
    found.shrink_to_fit();
    found
}

/// The condition of an edge; one that cannot be read, or that the job's rule would ignore, is in the
/// report.
pub(crate) fn when(job: &Made, text: Option<&At<String>>, report: &mut Report) -> When {
    let Some(text) = text else { return When::Success };
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
        // As an expression it would be an output of that name, true or false; far more likely it is
        // one of the four, misspelt, and the branch would silently never be taken.
        let what = format!("job {code}: when: {word:?} is not a condition");
        let hint = did_you_mean(word, WORDS);
        let cure = format!("{hint}write success, failure, done, skipped, or {word} == true");
        report.fault(&text.at, what, cure);
        return When::Success;
    }
    When::parse(&text.value).unwrap_or_else(|error| {
        let what = format!("job {code}: when: {}", error.what());
        let cure = format!("{}; or write success, failure, done or skipped", error.cure());
        report.fault(&text.at, what, cure);
        When::Success
    })
}

fn fits(
    (at, job): &(u32, &Made),
    (above, parent): &(u32, &Made),
    seen: &mut HashSet<(u32, u32)>,
) -> Result<(), (String, String)> {
    let (code, other) = (&job.def.code, &parent.def.code);
    if code == other {
        return Err((format!("job {code} depends on itself"), "remove that dependency".to_owned()));
    }
    if !seen.insert((*at, *above)) {
        let what = format!("job {code} lists its dependency on {other} twice");
        return Err((what, "list it once".to_owned()));
    }
    if job.group_known && parent.group_known && job.def.group != parent.def.group {
        let what = format!(
            "job {code} of group {} depends on {other} of group {}",
            job.def.group, parent.def.group
        );
        let cure = "a bare code means the same group: write { job: CODE, group: GROUP }, or move one of the two jobs";
        return Err((what, cure.to_owned()));
    }
    Ok(())
}

fn warn_of_inactive(job: &Made, parent: &Made, at: &Place, report: &mut Report) {
    if job.def.is_active && !parent.def.is_active {
        let what =
            format!("job {} depends on {}, which is not active", job.def.code, parent.def.code);
        report.warn(
            at,
            what,
            "activate it, or remove the dependency; a batch of this group will be refused",
        );
    }
}

/// Reports each circle once, on the line of one of its dependencies.
fn circles(jobs: &[Made], found: &[Placed], report: &mut Report) {
    let codes: Vec<JobCode> = jobs.iter().map(|j| j.def.code.clone()).collect();
    let mut edges: Vec<&JobDependency> = found.iter().map(|d| &d.value).collect();
    for _ in 0..CIRCLES {
        let Err(DagError::Cycle(ring)) = Dag::build(&codes, edges.iter().copied()) else {
            return;
        };
        let next = ring.iter().cycle().skip(1);
        let steps: HashSet<(&JobCode, &JobCode)> = ring.iter().zip(next).collect();
        let first = |d: &&Placed| {
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

/// Reports parameters that use the output of a job which does not come before theirs.
pub(crate) fn outputs(jobs: &[Made], dependencies: &[JobDependency], report: &mut Report) {
    let mut parents: HashMap<&JobCode, Vec<&JobCode>> = HashMap::new();
    for d in dependencies {
        parents.entry(&d.job_code).or_default().push(&d.depends_on);
    }
    let codes: HashSet<&JobCode> = jobs.iter().map(|j| &j.def.code).collect();
    several_parents(jobs, &parents, report);
    for job in jobs.iter().filter(|j| !j.asks.uses.is_empty()) {
        let code = &job.def.code;
        let above = above(code, &parents);
        for At { at, value: (param, used) } in &job.asks.uses {
            let head = format!("job {code}: parameter {param} uses an output of {used}");
            if !codes.contains(used) {
                let hint = did_you_mean(used.as_str(), codes.iter().map(|c| c.as_str()));
                let what = format!("{head}, which is not defined");
                report.fault(at, what, format!("{hint}define it or change the value"));
            } else if !above.contains(used) {
                let what = format!("{head}, which does not run before it");
                report.fault(at, what, format!("add {used} to its depends_on"));
            }
        }
    }
    for job in jobs.iter().filter(|j| j.condition.is_some()) {
        condition(job, &codes, &above(&job.def.code, &parents), report);
    }
}

/// Every name of a job's own condition is an output of a job above it.
fn condition(
    job: &Made,
    codes: &HashSet<&JobCode>,
    above: &HashSet<&JobCode>,
    report: &mut Report,
) {
    let (Some(at), Some(expr)) = (&job.condition, &job.def.condition) else { return };
    let head = format!("job {}: if", job.def.code);
    let is = |all: &HashSet<&JobCode>, code: &str| all.iter().any(|c| c.as_str() == code);
    for name in expr.names() {
        if output_of(name, &|code| is(above, code)).is_some() {
            continue;
        }
        let (what, cure) = match output_of(name, &|code| is(codes, code)) {
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

/// Reports parameters without a value that two parents are known to hand out.
fn several_parents(jobs: &[Made], parents: &HashMap<&JobCode, Vec<&JobCode>>, report: &mut Report) {
    let by_code: HashMap<&JobCode, &Made> = jobs.iter().map(|j| (&j.def.code, j)).collect();
    for job in jobs {
        let own = parents.get(&job.def.code).map(Vec::as_slice).unwrap_or_default();
        for At { at, value: name } in &job.asks.takes {
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

fn above<'a>(
    code: &'a JobCode,
    parents: &HashMap<&'a JobCode, Vec<&'a JobCode>>,
) -> HashSet<&'a JobCode> {
    let mut found = HashSet::new();
    let mut open = vec![code];
    while let Some(at) = open.pop() {
        for parent in parents.get(at).into_iter().flatten() {
            if found.insert(*parent) {
                open.push(parent);
            }
        }
    }
    found
}
