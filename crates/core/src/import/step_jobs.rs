//! The jobs, junctions and dependencies of a planned flow of steps.

use crate::domain::id::{GroupCode, JobCode};
use crate::domain::job::JobDef;
use crate::domain::job::external::ExternalDependency;
use crate::import::body::stand_in;
use crate::import::draft::Draft;
use crate::import::note::{BilingualSentence, ImportOrigin, Level};
use crate::import::step_flow::{FlowFault, FlowNode, FlowPlan, StepEnd, StepFlow};

/// The job of a step, to be pushed once it is known when it runs.
#[derive(Clone, Debug)]
pub(crate) struct StepJob {
    pub(crate) job: JobDef,
    pub(crate) at: ImportOrigin,
    /// The name of the step in its flow.
    pub(crate) name: String,
}

/// A step of a flow.
#[derive(Clone, Debug)]
pub(crate) enum FlowStep {
    Job(Box<StepJob>),
    /// Conditions on other batches, for each job that waits for it.
    Outside(Vec<ExternalDependency>),
}

/// The group in which a flow runs, and where its source stood.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FlowPlace<'a> {
    pub(crate) group: &'a GroupCode,
    pub(crate) at: &'a ImportOrigin,
    pub(crate) title: &'a str,
}

/// Pushes jobs one after the other: each after this end of the one before it, if that one ran.
pub(crate) fn push_chain(steps: Vec<(StepJob, StepEnd)>, place: FlowPlace<'_>, draft: &mut Draft) {
    let (jobs, ends): (Vec<StepJob>, Vec<StepEnd>) = steps.into_iter().unzip();
    match StepFlow::of_chain(&ends).plan() {
        Ok(plan) => push_plan(plan, jobs, place, draft),
        Err(fault) => push_blocked(&describe_fault(&fault, &jobs), jobs, place, draft),
    }
}

/// Pushes the jobs of a plan with their dependencies.
pub(crate) fn push_plan(
    plan: FlowPlan,
    mut jobs: Vec<StepJob>,
    place: FlowPlace<'_>,
    draft: &mut Draft,
) {
    for step in &plan.never {
        let StepJob { job, at, .. } = &mut jobs[*step];
        draft.resume_job(&job.code);
        job.is_active = false;
        let said =
            ("no action leads to it, so it is not active here", "没有动作指向该步骤,此处为未启用");
        draft.note(Level::Differs, at, job.code.as_str(), said, ("", ""));
        draft.push(job.clone());
    }
    let steps = jobs.into_iter().map(|job| FlowStep::Job(Box::new(job))).collect();
    push_nodes(&plan.nodes, steps, place.group, draft);
}

/// Pushes the jobs of nodes with their dependencies: the code of each node that is a job.
pub(crate) fn push_nodes(
    nodes: &[FlowNode],
    steps: Vec<FlowStep>,
    group: &GroupCode,
    draft: &mut Draft,
) -> Vec<Option<JobCode>> {
    let mut codes: Vec<Option<JobCode>> = Vec::new();
    for node in nodes {
        let mut job = match (&steps[node.of_step], node.step) {
            (FlowStep::Outside(_), _) => {
                codes.push(None);
                continue;
            }
            (FlowStep::Job(step), Some(_)) => {
                draft.resume_job(&step.job.code);
                step.job.clone()
            }
            (FlowStep::Job(step), None) => {
                // A junction is no step of the source, so it is not counted apart.
                draft.resume_job(&step.job.code);
                draft.job(&step.at, group, &format!("{group}_before_{}", step.name), "NOOP")
            }
        };
        job.trigger_rule = node.rule;
        let code = job.code.clone();
        draft.push(job);
        codes.push(Some(code.clone()));
        for edge in &node.edges {
            match (&codes[edge.node], &steps[nodes[edge.node].of_step]) {
                (Some(parent), _) => draft.depends(&code, parent, edge.end.condition()),
                (None, FlowStep::Outside(externals)) => {
                    for external in externals {
                        draft.waits(ExternalDependency {
                            waiting_group: group.clone(),
                            job_code: code.clone(),
                            ..external.clone()
                        });
                    }
                }
                (None, FlowStep::Job(_)) => {}
            }
        }
    }
    draft.end_item();
    codes
}

/// Pushes a job that fails and says why, and all jobs one after the other behind it, so that none of them runs.
pub(crate) fn push_blocked(
    why: &BilingualSentence,
    jobs: Vec<StepJob>,
    place: FlowPlace<'_>,
    draft: &mut Draft,
) {
    let title = format!("{}_flow", place.title);
    draft.begin_item(crate::import::tally::CountedKind::Job, place.at, &title);
    let before = stand_in(draft, place.at, place.group, &title, why);
    let mut parent = before.code.clone();
    draft.push(before);
    for StepJob { job, .. } in jobs {
        draft.resume_job(&job.code);
        let code = job.code.clone();
        draft.push(job);
        draft.depends(&code, &parent, StepEnd::Succeeded.condition());
        parent = code;
    }
    draft.end_item();
}

/// Why a flow has no plan, for a report.
pub(crate) fn describe_fault(fault: &FlowFault, jobs: &[StepJob]) -> BilingualSentence {
    let name = |at: usize| jobs.get(at).map_or_else(|| at.to_string(), |job| job.name.clone());
    match fault {
        FlowFault::Circle(steps) => {
            let all: Vec<String> = steps.iter().map(|at| name(*at)).collect();
            let all = all.join(", ");
            BilingualSentence::new(
                format!(
                    "its steps go round in a circle ({all}); a job here runs once in a batch: write the repetition as retry_count"
                ),
                format!("其步骤形成循环({all});此处每个作业在批次中只运行一次:请改用 retry_count"),
            )
        }
        FlowFault::NotSayable(at) => BilingualSentence::new(
            format!("when its step {} runs cannot be said by dependencies here", name(*at)),
            format!("步骤 {} 的运行条件无法用此处的依赖表达", name(*at)),
        ),
        FlowFault::TooMany => BilingualSentence::from((
            "there are too many ways through its steps to be sure that the same ones run",
            "其步骤的走法过多,无法确认运行的步骤一致",
        )),
    }
}
