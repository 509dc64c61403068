//! Which job of Control-M starts after which: events, flows and their outcomes, as flows of steps, one for each group.
//! Story order: what each job waits for, which jobs may be left out, the flow of a group, its jobs and dependencies.

use crate::domain::batch_no::{BatchExpr, PeriodKind};
use crate::domain::id::GroupCode;
use crate::domain::job::JobDef;
use crate::domain::job::external::{ExternalDependency, Missing};
use crate::domain::job::trigger_rule::EdgeCondition;
use crate::import::body::stand_in;
use crate::import::control_m::events::{AwaitedDay, waits};
use crate::import::control_m::{ConvertedJob, CtmFolder, CtmJob, actions, events};
use crate::import::draft::Draft;
use crate::import::note::{BilingualSentence, Level};
use crate::import::step_flow::{
    FlowFault, OutsideStep, StartWay, StepCondition, StepEnd, StepFlow,
};
use crate::import::step_jobs::{FlowStep, StepJob, push_nodes};
use crate::import::tally::CountedKind;
use std::collections::BTreeMap;

/// Most ways in which a job may start; more are nothing that dependencies should say.
const WAYS_MAX: usize = 16;

/// What a job waits for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Wait {
    /// A job, by its place among all jobs.
    Job { job: usize, end: StepEnd, day: AwaitedDay },
    /// What nothing here does: why it fails, by its place among the blocks of the job.
    Block(usize),
}

/// A job with what has to be there before it starts.
struct FlowJob<'a> {
    job: &'a CtmJob<'a>,
    made: ConvertedJob,
    def: JobDef,
    /// Sets of which one must be there.
    ways: Vec<Vec<Wait>>,
    /// Jobs before it that fail and say why: their titles and reasons.
    blocks: Vec<(String, BilingualSentence)>,
    /// Whether its branch may not be taken, because it waits for a failure.
    may_skip: bool,
}

/// All jobs of all folders.
pub(super) struct CtmFlows<'a> {
    jobs: Vec<FlowJob<'a>>,
}

impl<'a> CtmFlows<'a> {
    /// Reads what each job waits for.
    pub(super) fn read_flows(
        folders: &'a [CtmFolder<'a>],
        made: Vec<Vec<(ConvertedJob, JobDef)>>,
        draft: &mut Draft,
    ) -> Self {
        let mut all = Self { jobs: Vec::new() };
        for (folder, made) in folders.iter().zip(made) {
            for (job, (made, def)) in folder.jobs.iter().zip(made) {
                let (ways, blocks) = (vec![Vec::new()], Vec::new());
                all.jobs.push(FlowJob { job, made, def, ways, blocks, may_skip: false });
            }
        }
        let adders = all.adders();
        for at in 0..all.jobs.len() {
            draft.resume_item(all.jobs[at].job.item);
            all.read_waits(at, &adders, draft);
        }
        draft.end_item();
        let mut first = 0;
        for folder in folders {
            all.read_sequences(folder, first, draft);
            first += folder.jobs.len();
        }
        all.find_skips();
        all
    }

    /// The jobs that add each event, and the end after which they do.
    fn adders(&self) -> BTreeMap<String, Vec<(usize, StepEnd)>> {
        let mut found: BTreeMap<String, Vec<(usize, StepEnd)>> = BTreeMap::new();
        for (at, one) in self.jobs.iter().enumerate() {
            for (event, end) in events::added_events(one.job) {
                let adders = found.entry(event).or_default();
                if !adders.contains(&(at, end)) {
                    adders.push((at, end));
                }
            }
        }
        found
    }

    fn read_waits(
        &mut self,
        at: usize,
        adders: &BTreeMap<String, Vec<(usize, StepEnd)>>,
        draft: &mut Draft,
    ) {
        let code = self.jobs[at].made.code.to_string();
        let waits = match waits(self.jobs[at].job) {
            Ok(waits) if self.jobs[at].made.is_cyclic && !waits.list.is_empty() => {
                return self.block(at, BilingualSentence::from((
                    "it runs several times a day and waits for events: here such a job is a group of its own, whose batches have no day",
                    "循环作业同时等待事件:此处循环作业单独成组,其批次没有日期,无法等待",
                )));
            }
            Ok(waits) => waits,
            Err(why) => return self.block(at, why),
        };
        let mut alternatives: Vec<Vec<Wait>> = Vec::new();
        for wait in &waits.list {
            let found = adders.get(&wait.event).map_or(&[][..], Vec::as_slice);
            let daily: Vec<Wait> = found
                .iter()
                .filter(|(job, _)| !self.jobs[*job].made.is_cyclic)
                .map(|(job, end)| Wait::Job { job: *job, end: *end, day: wait.day })
                .collect();
            if daily.is_empty() {
                let title = format!("wait_{}_{code}", wait.event);
                let why = events::nothing_adds(&code, &wait.event);
                alternatives.push(vec![self.add_block(at, title, why)]);
            } else {
                alternatives.push(daily);
            }
        }
        if waits.is_any {
            alternatives = vec![alternatives.concat()];
        }
        let count = alternatives.iter().try_fold(1_usize, |n, one| n.checked_mul(one.len()));
        if count.is_none_or(|count| count > WAYS_MAX) {
            let said = (
                format!(
                    "it may start in more than {WAYS_MAX} ways; here all jobs that add its events must end"
                ),
                format!("其启动方式超过 {WAYS_MAX} 种;此处须等待添加这些事件的所有作业"),
            );
            draft.note(Level::Look, &self.jobs[at].job.at, &code, said, ("", ""));
            alternatives = alternatives.concat().into_iter().map(|one| vec![one]).collect();
        }
        let mut ways: Vec<Vec<Wait>> = vec![Vec::new()];
        for one in alternatives {
            let with = |way: &Vec<Wait>| {
                one.iter()
                    .map(|wait| [&way[..], std::slice::from_ref(wait)].concat())
                    .collect::<Vec<_>>()
            };
            ways = ways.iter().flat_map(with).collect();
        }
        self.jobs[at].ways = ways;
    }

    /// The jobs of a flow, one after the other; `first` is the place of the folder's first job.
    fn read_sequences(&mut self, folder: &CtmFolder<'_>, first: usize, draft: &mut Draft) {
        let place = |name: &str| folder.jobs.iter().position(|job| job.name == name);
        for (before, after) in &folder.flows {
            let (Some(before), Some(after)) = (place(before), place(after)) else {
                let said = (
                    format!("its flow names {before} and {after}, of which one is not there"),
                    format!("流程引用了 {before} 和 {after},其中之一不存在"),
                );
                draft.note(Level::LeftOut, &folder.at, folder.name, said, ("", ""));
                continue;
            };
            let end = actions::good_end(self.jobs[first + before].job);
            let wait = Wait::Job { job: first + before, end, day: AwaitedDay::Days(0) };
            for way in &mut self.jobs[first + after].ways {
                if !way.contains(&wait) {
                    way.push(wait.clone());
                }
            }
        }
    }

    /// Lets a job wait for one that fails and says why.
    fn block(&mut self, at: usize, why: BilingualSentence) {
        let title = format!("wait_{}", self.jobs[at].made.code);
        let wait = self.add_block(at, title, why);
        self.jobs[at].ways = vec![vec![wait]];
    }

    fn add_block(&mut self, at: usize, title: String, why: BilingualSentence) -> Wait {
        let blocks = &mut self.jobs[at].blocks;
        blocks.push((title, why));
        Wait::Block(blocks.len() - 1)
    }

    /// Finds the jobs whose branch may not be taken: they wait for a failure, or for such a job.
    fn find_skips(&mut self) {
        loop {
            let skips: Vec<bool> = self.jobs.iter().map(|one| one.may_skip).collect();
            let mut is_more = false;
            for one in &mut self.jobs {
                let may_skip = one.ways.iter().flatten().any(|wait| match wait {
                    Wait::Job { job, end, .. } => *end == StepEnd::Failed || skips[*job],
                    Wait::Block(_) => false,
                });
                is_more |= may_skip && !one.may_skip;
                one.may_skip |= may_skip;
            }
            if !is_more {
                return;
            }
        }
    }

    /// Ends of jobs for which jobs of other groups or days wait, and which need a job that says that they ran.
    fn relays(&self) -> BTreeMap<(usize, StepEnd), String> {
        let mut found = BTreeMap::new();
        for one in &self.jobs {
            for wait in one.ways.iter().flatten() {
                let Wait::Job { job, end, day } = wait else { continue };
                let is_inside = self.jobs[*job].made.group == one.made.group && day.is_same();
                let word = match end {
                    StepEnd::Succeeded => continue,
                    StepEnd::Failed => "failed",
                    StepEnd::Ended => "ended",
                };
                if !is_inside {
                    let title = format!("{}_{word}", self.jobs[*job].made.code);
                    found.insert((*job, *end), title);
                }
            }
        }
        found
    }

    /// Pushes all jobs with their dependencies.
    pub(super) fn push_jobs(mut self, draft: &mut Draft) {
        let mut relays = BTreeMap::new();
        for ((job, end), title) in self.relays() {
            let one = &self.jobs[job];
            draft.resume_item(one.job.item);
            relays.insert((job, end), draft.job(&one.job.at, &one.made.group, &title, "NOOP"));
        }
        draft.end_item();
        let mut groups: Vec<GroupCode> = Vec::new();
        for one in &self.jobs {
            if !groups.contains(&one.made.group) {
                groups.push(one.made.group.clone());
            }
        }
        for group in &groups {
            self.push_group(group, &relays, draft);
        }
    }

    fn push_group(
        &mut self,
        group: &GroupCode,
        relays: &BTreeMap<(usize, StepEnd), JobDef>,
        draft: &mut Draft,
    ) {
        let jobs: Vec<usize> =
            (0..self.jobs.len()).filter(|at| self.jobs[*at].made.group == *group).collect();
        loop {
            let flow = GroupFlow::read_flow(self, &jobs, relays);
            let plan = match flow.flow.plan_junctions() {
                Ok(plan) => plan,
                Err(FlowFault::Circle(steps)) => return flow.refuse_circle(self, &steps, draft),
                Err(FlowFault::NotSayable(_) | FlowFault::TooMany) => return,
            };
            let unproven: Vec<usize> =
                plan.unproven.iter().filter_map(|step| flow.job_of(*step)).collect();
            if unproven.is_empty() {
                let steps = flow.steps(self, relays, draft);
                push_nodes(&plan.nodes, steps, group, draft);
                return;
            }
            for at in unproven {
                self.block(at, BilingualSentence::from((
                    "it waits for a job that does not run each day, because that one follows a failure, and for others: here it \
                     would run without it",
                    "它等待的作业之一只在失败后运行,同时还等待其他作业:此处会在该作业未运行时启动",
                )));
            }
        }
    }
}

/// A step of a group's flow.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum GroupStep {
    Job(usize),
    /// A block of a job, by their places.
    Block(usize, usize),
    /// Says that a job of this group ran and ended so.
    Relay(usize, StepEnd),
    /// A job of another group or day.
    Outside(Wait),
}

/// The flow of a group, and what its steps are.
struct GroupFlow {
    steps: Vec<GroupStep>,
    flow: StepFlow,
}

impl GroupFlow {
    fn read_flow(
        all: &CtmFlows<'_>,
        jobs: &[usize],
        relays: &BTreeMap<(usize, StepEnd), JobDef>,
    ) -> Self {
        let mut steps: BTreeMap<GroupStep, usize> = BTreeMap::new();
        let mut made = Self { steps: Vec::new(), flow: StepFlow::default() };
        for at in jobs {
            made.step(GroupStep::Job(*at), &mut steps);
        }
        for at in jobs {
            let one = &all.jobs[*at];
            let mut ways: Vec<StartWay> = Vec::new();
            for way in &one.ways {
                let condition = |wait: &Wait| {
                    let (step, end) = match wait {
                        Wait::Block(block) => (GroupStep::Block(*at, *block), StepEnd::Succeeded),
                        Wait::Job { job, end, day }
                            if all.jobs[*job].made.group == one.made.group && day.is_same() =>
                        {
                            (GroupStep::Job(*job), *end)
                        }
                        Wait::Job { .. } => (GroupStep::Outside(wait.clone()), StepEnd::Succeeded),
                    };
                    StepCondition { step: made.step(step, &mut steps), end }
                };
                ways.push(way.iter().map(condition).collect());
            }
            let step = steps[&GroupStep::Job(*at)];
            made.flow.ways[step] = ways;
        }
        for (job, end) in relays.keys().filter(|(job, _)| jobs.contains(job)) {
            let relay = made.step(GroupStep::Relay(*job, *end), &mut steps);
            let step = steps[&GroupStep::Job(*job)];
            made.flow.ways[relay] = vec![vec![StepCondition { step, end: *end }]];
        }
        for (step, what) in made.steps.iter().enumerate() {
            let GroupStep::Outside(Wait::Job { job, end, .. }) = what else { continue };
            let awaited = all.jobs[*job].may_skip;
            let may_skip = awaited || *end == StepEnd::Failed;
            made.flow.outside.insert(step, OutsideStep { may_skip, blocks: !awaited });
        }
        made
    }

    /// The place of a step, which starts at once until its ways are set.
    fn step(&mut self, step: GroupStep, known: &mut BTreeMap<GroupStep, usize>) -> usize {
        *known.entry(step.clone()).or_insert_with(|| {
            self.steps.push(step);
            self.flow.ways.push(vec![Vec::new()]);
            self.steps.len() - 1
        })
    }

    /// The job of a step; of one that says how a job ended, that job.
    fn job_of(&self, step: usize) -> Option<usize> {
        match &self.steps[step] {
            GroupStep::Job(at) | GroupStep::Block(at, _) | GroupStep::Relay(at, _) => Some(*at),
            GroupStep::Outside(_) => None,
        }
    }

    fn steps(
        &self,
        all: &CtmFlows<'_>,
        relays: &BTreeMap<(usize, StepEnd), JobDef>,
        draft: &mut Draft,
    ) -> Vec<FlowStep> {
        let step = |what: &GroupStep| {
            let at = match what {
                GroupStep::Outside(wait) => return FlowStep::Outside(externals(all, wait, relays)),
                GroupStep::Job(at) | GroupStep::Block(at, _) | GroupStep::Relay(at, _) => *at,
            };
            let one = &all.jobs[at];
            let job = match what {
                GroupStep::Relay(_, end) => relays[&(at, *end)].clone(),
                GroupStep::Block(_, block) => {
                    let (title, why) = &one.blocks[*block];
                    draft.begin_item(CountedKind::Job, &one.job.at, title);
                    stand_in(draft, &one.job.at, &one.made.group, title, why)
                }
                GroupStep::Job(_) | GroupStep::Outside(_) => one.def.clone(),
            };
            let (at, name) = (one.job.at.clone(), one.job.name.clone());
            FlowStep::Job(Box::new(StepJob { job, at, name }))
        };
        let steps = self.steps.iter().map(step).collect();
        draft.end_item();
        steps
    }

    fn refuse_circle(&self, all: &CtmFlows<'_>, steps: &[usize], draft: &mut Draft) {
        let jobs: Vec<usize> = steps.iter().filter_map(|step| self.job_of(*step)).collect();
        let names: Vec<&str> = jobs.iter().map(|at| all.jobs[*at].job.name.as_str()).collect();
        let Some(first) = jobs.first() else { return };
        draft.fault(
            &all.jobs[*first].job.at,
            format!("these jobs wait for one another, or for one that does: {}", names.join(", ")),
            "take one of the events out, there, and import again",
        );
    }
}

/// Dependencies on the batch of another group or day: on the job, and on the one that says that it ran.
fn externals(
    all: &CtmFlows<'_>,
    wait: &Wait,
    relays: &BTreeMap<(usize, StepEnd), JobDef>,
) -> Vec<ExternalDependency> {
    let Wait::Job { job, end, day } = wait else { return Vec::new() };
    let ConvertedJob { code, group, .. } = &all.jobs[*job].made;
    let relay = relays.get(&(*job, *end)).map(|relay| (&relay.code, EdgeCondition::Success));
    let own = (*end != StepEnd::Ended).then(|| (code, end.condition()));
    let external =
        |(code, when): (&crate::domain::id::JobCode, EdgeCondition)| ExternalDependency {
            waiting_group: group.clone(),
            job_code: code.clone(),
            group: group.clone(),
            depends_on: Some(code.clone()),
            batch: match day {
                AwaitedDay::Any => BatchExpr::Latest,
                AwaitedDay::Days(days) => BatchExpr::Period(PeriodKind::Day, *days),
            },
            when,
            missing: Missing::Wait,
            wait_sec: None,
        };
    own.into_iter().chain(relay).map(external).collect()
}
