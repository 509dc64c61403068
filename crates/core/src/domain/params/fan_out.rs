//! Fan-outs: expands a job into one job per item of a list, followed by a milestone under the
//! original code.
//!
//! A fan-out changes only the graph of one batch. The new jobs are appended to the list, so that a
//! list which becomes known only while the batch is running moves no existing job.

use crate::domain::id::{JobCode, JobType};
use crate::domain::job::body::{FanOut, Items};
use crate::domain::job::external::ExternalDependency;
use crate::domain::job::pool::{PoolUse, SlotPool};
use crate::domain::job::queue::QueueStatus;
use crate::domain::job::trigger_rule::TriggerRule;
use crate::domain::job::{JobDef, JobDependency, Param};
use crate::domain::params::{BoundParam, Layers, ParamSources, resolve};
use std::collections::HashSet;

/// Maximum number of items of one job: a longer list is data, better processed by one job with a
/// loop.
pub const ITEMS_MAX: usize = 1_000;

/// Why a list cannot be expanded; `Display` is the sentence for the user.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FanOutError {
    /// Too many items.
    #[error(
        "job {0}: for_each has {1} items, and {ITEMS_MAX} is the most; let each job do several"
    )]
    TooMany(JobCode, usize),
    /// Two jobs would have the same code.
    #[error(
        "job {job}: for_each makes job {code} of item {item:?}, and there is one of that code already; \
         list each item once, and let items differ in letters and digits"
    )]
    Clash {
        /// The job with the list.
        job: JobCode,
        /// The item.
        item: String,
        /// The code it would have.
        code: String,
    },
    /// An item cannot be part of a job code.
    #[error(
        "job {job}: item {item:?} of for_each cannot end a job code; a code has at most 100 characters"
    )]
    NoCode {
        /// The job with the list.
        job: JobCode,
        /// The item, its beginning.
        item: String,
    },
    /// The parameter that holds the list has no value.
    #[error(
        "job {0}: for_each takes its items from the parameter {1}, which has no value; give it to the \
         group or to the batch (--param {1}=A,B)"
    )]
    NoParam(JobCode, String),
    /// The value cannot be resolved, or may not be shown.
    #[error("job {0}: for_each: {1}")]
    BadParam(JobCode, String),
}

/// The parts of a batch that a fan-out changes.
#[derive(Debug)]
pub struct FanOutParts<'a> {
    /// The jobs.
    pub jobs: &'a mut Vec<JobDef>,
    /// The dependencies between them.
    pub dependencies: &'a mut Vec<JobDependency>,
    /// Their dependencies on other batches.
    pub externals: &'a mut Vec<ExternalDependency>,
    /// The pools whose slots they occupy.
    pub pools: &'a mut Vec<SlotPool>,
}

/// Expands every job whose list is known when the batch is opened.
pub fn expand(parts: &mut FanOutParts<'_>, layers: Layers<'_>) -> Result<(), FanOutError> {
    let lists: Vec<(JobCode, Items)> = parts
        .jobs
        .iter()
        .filter_map(|job| Some((job.code.clone(), job.for_each.as_ref()?.items.clone())))
        .collect();
    for (code, items) in lists {
        match items {
            Items::List(items) => spread(parts, &code, &items)?,
            Items::Param(name) => {
                let items = given(&name, layers, &code)?;
                spread(parts, &code, &items)?;
            }
            Items::Output(..) => {}
        }
    }
    Ok(())
}

/// The list in a parameter of the batch, its group or all groups.
fn given(name: &str, layers: Layers<'_>, code: &JobCode) -> Result<Vec<String>, FanOutError> {
    let noop = JobType::parse("NOOP").expect("a word of capital letters is the name of a type");
    let mut asks = JobDef::with_defaults(code.clone(), layers.batch.group.clone(), noop);
    asks.params = vec![Param { name: name.to_owned(), ..Param::default() }];
    let outside = ParamSources { output: &|_, _| None, secret: None };
    let found = resolve(&asks, layers, outside)
        .map_err(|error| FanOutError::BadParam(code.clone(), error.to_string()))?;
    let value = found.into_iter().find_map(|param| param.value);
    match value {
        None => Err(FanOutError::NoParam(code.clone(), name.to_owned())),
        // The items become job codes, which are visible to everyone.
        Some(value) if value.is_secret() => {
            let said = format!("parameter {name} is secret, and the codes of jobs are not");
            Err(FanOutError::BadParam(code.clone(), said))
        }
        Some(value) => Ok(Items::split(value.expose())),
    }
}

/// Applies the expansions of `old` to a current definition: the same items, so that a batch can be
/// resumed with current bodies.
pub fn expand_like(parts: &mut FanOutParts<'_>, old: &[JobDef]) -> Result<(), FanOutError> {
    for job in old {
        if let Some(FanOut::Milestone { items }) = job.fan_out.as_deref() {
            spread(parts, &job.code, items)?;
        }
    }
    Ok(())
}

/// Adds a job for each of `items`, and the milestone after them; does nothing when the job does not
/// exist or is not a fan-out.
pub fn spread(
    parts: &mut FanOutParts<'_>,
    code: &JobCode,
    items: &[String],
) -> Result<(), FanOutError> {
    let Some(at) = parts.jobs.iter().position(|job| job.code == *code) else { return Ok(()) };
    let whole = parts.jobs[at].clone();
    let Some(for_each) = &whole.for_each else { return Ok(()) };
    if items.len() > ITEMS_MAX {
        return Err(FanOutError::TooMany(code.clone(), items.len()));
    }
    let codes = codes(parts.jobs, code, items)?;
    let pool = for_each
        .max_parallel
        .filter(|_| !items.is_empty())
        .map(|slots| SlotPool { name: format!("for_each:{code}"), slots });
    let uses = pool.as_ref().map(|pool| PoolUse { pool: pool.name.clone(), weight: 1 });
    let one = |(own, item): (&JobCode, &String)| JobDef {
        code: own.clone(),
        name: format!("{} [{item}]", whole.name),
        aliases: Vec::new(),
        for_each: None,
        // The deadline applies to the milestone after all items.
        due: None,
        pools: whole.pools.iter().cloned().chain(uses.clone()).collect(),
        fan_out: Some(Box::new(FanOut::Item { of: code.clone(), item: item.clone() })),
        ..whole.clone()
    };
    parts.jobs[at] = milestone(&whole, items);
    parts.jobs.extend(codes.iter().zip(items).map(one));
    parts.pools.extend(pool);
    if !codes.is_empty() {
        rewire(parts, &whole, &codes);
    }
    Ok(())
}

fn milestone(whole: &JobDef, items: &[String]) -> JobDef {
    let noop = JobType::parse("NOOP").expect("a word of capital letters is the name of a type");
    let bare = JobDef::with_defaults(whole.code.clone(), whole.group.clone(), noop);
    // Without items the milestone has the parents of the original job.
    let (trigger_rule, schedule_time, condition) = match items {
        [] => (whole.trigger_rule, whole.schedule_time, whole.condition.clone()),
        _ => (TriggerRule::AllDone, None, None),
    };
    JobDef {
        name: whole.name.clone(),
        priority: whole.priority,
        notify_email: whole.notify_email.clone(),
        notify: whole.notify.clone(),
        due: whole.due,
        owner: whole.owner.clone(),
        tags: whole.tags.clone(),
        aliases: whole.aliases.clone(),
        trigger_rule,
        schedule_time,
        condition,
        fan_out: Some(Box::new(FanOut::Milestone { items: items.to_vec() })),
        ..bare
    }
}

fn codes(jobs: &[JobDef], job: &JobCode, items: &[String]) -> Result<Vec<JobCode>, FanOutError> {
    let mut taken: HashSet<String> = jobs.iter().map(|job| job.code.to_string()).collect();
    let one = |item: &String| {
        let fits = |c: char| c.is_alphanumeric() || "_-.:".contains(c);
        let tail: String = item.chars().map(|c| if fits(c) { c } else { '_' }).collect();
        let shown = || item.chars().take(60).collect();
        let code = JobCode::parse(&format!("{job}.{tail}"))
            .map_err(|_| FanOutError::NoCode { job: job.clone(), item: shown() })?;
        if tail.is_empty() {
            return Err(FanOutError::NoCode { job: job.clone(), item: shown() });
        }
        if !taken.insert(code.to_string()) {
            let code = code.to_string();
            return Err(FanOutError::Clash { job: job.clone(), item: shown(), code });
        }
        Ok(code)
    };
    items.iter().map(one).collect()
}

/// Rewires dependencies: the parents of the original job precede each item, and the items precede
/// the milestone.
fn rewire(parts: &mut FanOutParts<'_>, whole: &JobDef, codes: &[JobCode]) {
    let (before, others): (Vec<_>, Vec<_>) =
        std::mem::take(parts.dependencies).into_iter().partition(|d| d.job_code == whole.code);
    *parts.dependencies = others;
    let (outside, others): (Vec<_>, Vec<_>) =
        std::mem::take(parts.externals).into_iter().partition(|e| e.job_code == whole.code);
    *parts.externals = others;
    for (order, code) in (1..).zip(codes) {
        let own = |d: &JobDependency| JobDependency { job_code: code.clone(), ..d.clone() };
        parts.dependencies.extend(before.iter().map(own));
        let own =
            |e: &ExternalDependency| ExternalDependency { job_code: code.clone(), ..e.clone() };
        parts.externals.extend(outside.iter().map(own));
        parts.dependencies.push(JobDependency::plain(
            &whole.group,
            whole.code.clone(),
            code.clone(),
            order,
        ));
    }
}

/// The outputs of the milestone: `items` and `failed`, separated by commas, and `count`; also the
/// sentence about items that did not succeed. `parents` are the jobs before it.
pub fn summary<'a>(
    items: &[String],
    parents: impl Iterator<Item = (&'a JobDef, QueueStatus)>,
) -> Vec<BoundParam> {
    let bad: Vec<(&str, QueueStatus)> = parents
        .filter(|(_, status)| status.blocks_children())
        .filter_map(|(job, status)| Some((job.fan_out_item()?, status)))
        .collect();
    let failed: Vec<&str> = bad.iter().map(|(item, _)| *item).collect();
    let words: Vec<String> =
        bad.iter().take(20).map(|(item, status)| format!("{item} ({status})")).collect();
    let said = format!(
        "{} of {} items did not end well: {}{}",
        bad.len(),
        items.len(),
        words.join(", "),
        if bad.len() > words.len() { ", …" } else { "" }
    );
    [
        ("items", Some(items.join(","))),
        ("failed", Some(failed.join(","))),
        ("count", Some(items.len().to_string())),
        ("said", (!bad.is_empty()).then_some(said)),
    ]
    .into_iter()
    .map(|(name, value)| BoundParam::public_text(name, value))
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::calendar::WorkingDays;
    use crate::domain::dag::Dag;
    use crate::domain::id::{BatchNo, GroupCode};
    use crate::domain::job::ParamDecl;
    use crate::domain::job::body::ForEach;
    use crate::domain::job::trigger_rule::EdgeCondition;
    use crate::domain::params::BatchValues;

    fn code(word: &str) -> JobCode {
        JobCode::parse(word).expect("code")
    }

    fn job(word: &str) -> JobDef {
        let group = GroupCode::parse("g").expect("group");
        JobDef::with_defaults(code(word), group, JobType::parse("SQL").expect("type"))
    }

    #[derive(Clone)]
    struct Graph {
        jobs: Vec<JobDef>,
        dependencies: Vec<JobDependency>,
        pools: Vec<SlotPool>,
    }

    impl Graph {
        /// FIRST -> LOAD -> LAST, the first edge with a condition.
        fn new(items: Items, max_parallel: Option<u32>) -> Self {
            let mut load = job("LOAD");
            load.for_each = Some(Box::new(ForEach { items, max_parallel }));
            load.trigger_rule = TriggerRule::OneSuccess;
            load.retry_count = 2;
            let mut first = JobDependency::plain(
                &GroupCode::parse("g").expect("group"),
                code("LOAD"),
                code("FIRST"),
                1,
            );
            first.when = EdgeCondition::Failure;
            let last = JobDependency::plain(
                &GroupCode::parse("g").expect("group"),
                code("LAST"),
                code("LOAD"),
                1,
            );
            let jobs = vec![job("FIRST"), load, job("LAST")];
            Self { jobs, dependencies: vec![first, last], pools: Vec::new() }
        }

        fn listed(items: &[&str]) -> Self {
            Self::new(Items::List(items.iter().map(|i| (*i).to_owned()).collect()), None)
        }

        fn expand(&mut self, params: &[(&str, &str)]) -> Result<(), String> {
            let own = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
            let batch = BatchValues {
                batch_no: BatchNo::parse("202407").expect("number"),
                group: GroupCode::parse("g").expect("group"),
                business_date: None,
                params: params.iter().map(own).collect(),
            };
            let declared = [ParamDecl::plain("months", "${batch_no}, ${batch(-1)}")];
            let layers = Layers {
                start: None,
                batch: &batch,
                parents: &[],
                group: &declared,
                global: &[],
                days: WorkingDays::NONE,
            };
            let mut externals = Vec::new();
            let mut parts = FanOutParts {
                jobs: &mut self.jobs,
                dependencies: &mut self.dependencies,
                externals: &mut externals,
                pools: &mut self.pools,
            };
            expand(&mut parts, layers).map_err(|e| e.to_string())
        }

        fn edges(&self) -> Vec<String> {
            let edge = |d: &JobDependency| format!("{}<-{}:{}", d.job_code, d.depends_on, d.when);
            let mut edges: Vec<String> = self.dependencies.iter().map(edge).collect();
            edges.sort();
            edges
        }
    }

    #[test]
    fn items_stand_between_the_parents_and_the_milestone() {
        let mut graph = Graph::new(Items::Param("branches".to_owned()), Some(2));
        graph.expand(&[("branches", "SH, BJ east")]).expect("fits");
        let codes: Vec<&str> = graph.jobs.iter().map(|j| j.code.as_str()).collect();
        assert_eq!(codes, ["FIRST", "LOAD", "LAST", "LOAD.SH", "LOAD.BJ_east"]);
        let edges = [
            "LAST<-LOAD:success",
            "LOAD.BJ_east<-FIRST:failure",
            "LOAD.SH<-FIRST:failure",
            "LOAD<-LOAD.BJ_east:success",
            "LOAD<-LOAD.SH:success",
        ];
        assert_eq!(graph.edges(), edges);
        let (milestone, item) = (&graph.jobs[1], &graph.jobs[4]);
        assert_eq!((milestone.job_type.as_str(), milestone.retry_count), ("NOOP", 0));
        assert_eq!(milestone.trigger_rule, TriggerRule::AllDone);
        assert_eq!((item.fan_out_item(), item.retry_count), (Some("BJ east"), 2));
        assert_eq!(item.trigger_rule, TriggerRule::OneSuccess);
        assert_eq!(graph.pools, [SlotPool { name: "for_each:LOAD".to_owned(), slots: 2 }]);
        assert_eq!(item.pools, [PoolUse { pool: "for_each:LOAD".to_owned(), weight: 1 }]);
        let all: Vec<JobCode> = graph.jobs.iter().map(|j| j.code.clone()).collect();
        Dag::build(&all, &graph.dependencies).expect("a DAG");
        // An existing milestone is not changed.
        let before = graph.clone();
        graph.expand(&[("branches", "X")]).expect("nothing to do");
        assert_eq!(graph.jobs, before.jobs);
    }

    #[test]
    fn a_group_may_declare_the_list() {
        let mut graph = Graph::new(Items::Param("months".to_owned()), None);
        graph.expand(&[]).expect("fits");
        let codes: Vec<&str> = graph.jobs[3..].iter().map(|j| j.code.as_str()).collect();
        assert_eq!(codes, ["LOAD.202407", "LOAD.202406"]);
    }

    #[test]
    fn an_empty_list_leaves_a_milestone_in_place() {
        let mut graph = Graph::listed(&[]);
        let edges = graph.edges();
        graph.expand(&[]).expect("fits");
        assert_eq!((graph.jobs.len(), graph.edges()), (3, edges));
        assert_eq!(graph.jobs[1].trigger_rule, TriggerRule::OneSuccess);
        assert_eq!(
            graph.jobs[1].fan_out.as_deref(),
            Some(&FanOut::Milestone { items: Vec::new() })
        );
    }

    #[test]
    fn what_is_refused_says_what_to_do() {
        let long = "x".repeat(100);
        let many = vec!["1"; ITEMS_MAX + 1];
        for (items, said) in [
            (&["A", "A"][..], "makes job LOAD.A of item \"A\", and there is one"),
            (&["A b", "A_b"], "list each item once"),
            (&[""], "cannot end a job code"),
            (&[&long], "at most 100 characters"),
            (&many, "has 1001 items, and 1000 is the most"),
        ] {
            let mut graph = Graph::listed(items);
            let before = graph.clone();
            let error = graph.expand(&[]).expect_err(said);
            assert!(error.contains(said), "{error}");
            assert_eq!(graph.jobs, before.jobs, "nothing half done");
        }
        let error =
            Graph::new(Items::Param("b".to_owned()), None).expand(&[]).expect_err("no value");
        assert!(error.contains("--param b=A,B"), "{error}");
    }

    #[test]
    fn a_batch_goes_on_with_present_bodies_for_the_same_items() {
        let mut old = Graph::listed(&["SH"]);
        old.expand(&[]).expect("fits");
        let mut present = Graph::listed(&["SH", "BJ"]);
        present.jobs[1].retry_count = 9;
        let mut externals = Vec::new();
        let mut parts = FanOutParts {
            jobs: &mut present.jobs,
            dependencies: &mut present.dependencies,
            externals: &mut externals,
            pools: &mut present.pools,
        };
        expand_like(&mut parts, &old.jobs).expect("fits");
        let codes = |g: &Graph| -> Vec<JobCode> { g.jobs.iter().map(|j| j.code.clone()).collect() };
        assert_eq!((codes(&present), present.edges()), (codes(&old), old.edges()));
        assert_eq!(present.jobs[3].retry_count, 9);
    }

    #[test]
    fn the_milestone_tells_who_failed() {
        let mut graph = Graph::listed(&["SH", "BJ", "GZ"]);
        graph.expand(&[]).expect("fits");
        let ends = [QueueStatus::Success, QueueStatus::Timeout, QueueStatus::Skipped];
        let items = ["SH".to_owned(), "BJ".to_owned(), "GZ".to_owned()];
        let summary = summary(&items, graph.jobs[3..].iter().zip(ends));
        let values: Vec<Option<&str>> = summary.iter().map(BoundParam::expose_text).collect();
        let said = "1 of 3 items did not end well: BJ (TIMEOUT)";
        assert_eq!(values, [Some("SH,BJ,GZ"), Some("BJ"), Some("3"), Some(said)]);
    }
}
