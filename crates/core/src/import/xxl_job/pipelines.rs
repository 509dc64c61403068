//! Jobs with child ids become pipelines: which jobs belong to which pipeline, and their
//! dependencies there. In XXL-JOB the success of a job starts each of its children, regardless of
//! their other parents; there is no join, and cycles run forever.

use crate::domain::xxl::xxl_tables::XxlJob;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// The join of a child with several parents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChildJoin {
    /// The first parent to succeed, which is the closest to XXL-JOB within one run.
    Any,
    /// All parents: XXL-JOB cannot express this, but it is usually intended.
    All,
}

/// An invalid child id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Stray {
    /// No such job.
    Missing(i64),
    /// Not a number.
    Word(String),
    /// The job itself.
    Itself,
    /// A repetition.
    Twice(i64),
}

/// Jobs, by their index, and the children that the success of each starts.
#[derive(Debug)]
pub(super) struct Links {
    pub(super) children: Vec<Vec<usize>>,
    pub(super) parents: Vec<Vec<usize>>,
    /// Invalid child ids by the index of their job.
    pub(super) strays: Vec<(usize, Stray)>,
}

/// Jobs that run in one batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Pipeline {
    /// Its roots; the first gives the pipeline its name and schedule.
    pub(super) roots: Vec<usize>,
    /// Its jobs, roots first.
    pub(super) members: Vec<usize>,
    /// Pairs of parent and child.
    pub(super) edges: Vec<(usize, usize)>,
    /// The join of children.
    pub(super) join: ChildJoin,
}

/// All pipelines, and the links that could not be kept.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct PipelinePlan {
    pub(super) pipelines: Vec<Pipeline>,
    /// Parent and child of each edge that was dropped because it closes a cycle.
    pub(super) circles: BTreeSet<(usize, usize)>,
    /// First roots of pipelines that could not be combined because their schedules differ.
    pub(super) apart: Vec<usize>,
}

/// Maximum number of jobs, counted in each pipeline that contains them.
pub(super) const MOST: usize = 100_000;

/// The maximum is exceeded.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TooMany;

impl Links {
    pub(super) fn from_jobs(jobs: &[XxlJob]) -> Self {
        let places: HashMap<i64, usize> =
            jobs.iter().enumerate().map(|(at, j)| (j.id, at)).collect();
        let mut links = Self {
            children: vec![Vec::new(); jobs.len()],
            parents: vec![Vec::new(); jobs.len()],
            strays: Vec::new(),
        };
        for (at, job) in jobs.iter().enumerate() {
            let words =
                job.children.split([',', '，']).map(str::trim).filter(|word| !word.is_empty());
            for word in words {
                if let Err(stray) = links.add_link(at, word, &places) {
                    links.strays.push((at, stray));
                }
            }
        }
        links
    }

    fn add_link(
        &mut self,
        at: usize,
        word: &str,
        places: &HashMap<i64, usize>,
    ) -> Result<(), Stray> {
        let id: i64 = word.parse().map_err(|_| Stray::Word(word.to_owned()))?;
        let child = *places.get(&id).ok_or(Stray::Missing(id))?;
        if child == at {
            return Err(Stray::Itself);
        }
        if self.children[at].contains(&child) {
            return Err(Stray::Twice(id));
        }
        self.children[at].push(child);
        self.parents[child].push(at);
        Ok(())
    }

    /// Jobs that start by themselves, or by hand because nothing else starts them; of a cycle that nothing leads into,
    /// the job with the smallest id.
    fn roots(&self, jobs: &[XxlJob]) -> Vec<usize> {
        let starts = |at: &usize| is_scheduled(&jobs[*at]) || self.parents[*at].is_empty();
        let mut roots: Vec<usize> = (0..jobs.len()).filter(starts).collect();
        let mut reached = vec![false; jobs.len()];
        self.reach(&roots, &mut reached);
        for at in 0..jobs.len() {
            if !reached[at] {
                roots.push(at);
                self.reach(&[at], &mut reached);
            }
        }
        roots
    }

    fn reach(&self, from: &[usize], reached: &mut [bool]) {
        let mut todo = from.to_vec();
        while let Some(at) = todo.pop() {
            if !std::mem::replace(&mut reached[at], true) {
                todo.extend(&self.children[at]);
            }
        }
    }

    /// The jobs reachable from these, in depth-first order, without the edges that lead back onto the current path.
    fn walk_links(
        &self,
        roots: &[usize],
        join: ChildJoin,
        circles: &mut BTreeSet<(usize, usize)>,
    ) -> Pipeline {
        let mut state: HashMap<usize, VisitState> = HashMap::new();
        let mut made =
            Pipeline { roots: roots.to_vec(), members: Vec::new(), edges: Vec::new(), join };
        for &root in roots {
            if state.contains_key(&root) {
                continue;
            }
            state.insert(root, VisitState::OnTheWay);
            made.members.push(root);
            // A job and the number of its children visited so far.
            let mut way = vec![(root, 0)];
            while let Some((at, next)) = way.last_mut() {
                let (at, found) = (*at, self.children[*at].get(*next).copied());
                *next += 1;
                let Some(child) = found else {
                    state.insert(at, VisitState::Done);
                    way.pop();
                    continue;
                };
                match state.get(&child) {
                    Some(VisitState::OnTheWay) => {
                        circles.insert((at, child));
                    }
                    Some(VisitState::Done) => made.edges.push((at, child)),
                    None => {
                        made.edges.push((at, child));
                        made.members.push(child);
                        state.insert(child, VisitState::OnTheWay);
                        way.push((child, 0));
                    }
                }
            }
        }
        made
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum VisitState {
    OnTheWay,
    Done,
}

/// Whether a job has a schedule, including a disabled one.
pub(super) fn is_scheduled(job: &XxlJob) -> bool {
    !matches!(job.schedule_type.trim(), "" | "NONE") && !job.schedule_conf.trim().is_empty()
}

/// The settings that two jobs share if they start at the same moments.
fn start_settings(job: &XxlJob) -> Option<(&str, &str, &str, bool)> {
    let (ty, conf) = (job.schedule_type.trim(), job.schedule_conf.trim());
    is_scheduled(job).then(|| (ty, conf, job.misfire.trim(), job.trigger_status == 1))
}

/// The pipelines of all jobs.
pub(super) fn plan_links(
    jobs: &[XxlJob],
    links: &Links,
    children: ChildJoin,
) -> Result<PipelinePlan, TooMany> {
    let mut plan = PipelinePlan::default();
    let roots = links.roots(jobs);
    let together = match children {
        ChildJoin::Any => roots.iter().map(|&root| vec![root]).collect(),
        ChildJoin::All => components(links, &roots),
    };
    let mut count = 0;
    for roots in together {
        let first = roots[0];
        let one_time =
            roots.iter().all(|&at| start_settings(&jobs[at]) == start_settings(&jobs[first]));
        let made: Vec<Pipeline> = if one_time {
            vec![links.walk_links(&roots, children, &mut plan.circles)]
        } else {
            plan.apart.push(first);
            let one = |&root: &usize| links.walk_links(&[root], ChildJoin::Any, &mut plan.circles);
            roots.iter().map(one).collect()
        };
        count += made.iter().map(|p| p.members.len()).sum::<usize>();
        if count > MOST {
            return Err(TooMany);
        }
        plan.pipelines.extend(made);
    }
    Ok(plan)
}

/// Groups roots that share a descendant or reach each other.
fn components(links: &Links, roots: &[usize]) -> Vec<Vec<usize>> {
    let mut of = vec![usize::MAX; links.children.len()];
    for start in 0..of.len() {
        if of[start] != usize::MAX {
            continue;
        }
        let mut todo = vec![start];
        while let Some(at) = todo.pop() {
            if of[at] == usize::MAX {
                of[at] = start;
                todo.extend(&links.children[at]);
                todo.extend(&links.parents[at]);
            }
        }
    }
    let mut together: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for &root in roots {
        together.entry(of[root]).or_default().push(root);
    }
    // A root that another one reaches starts nothing by itself here; roots without parents come first.
    for roots in together.values_mut() {
        roots.sort_by_key(|&at| (!links.parents[at].is_empty(), at));
    }
    together.into_values().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// One job per line: `id schedule children`.
    fn jobs(lines: &[(i64, &str, &str)]) -> Vec<XxlJob> {
        let one = |(id, conf, children): &(i64, &str, &str)| XxlJob {
            id: *id,
            schedule_type: if conf.is_empty() { "NONE" } else { "CRON" }.to_owned(),
            schedule_conf: (*conf).to_owned(),
            children: (*children).to_owned(),
            trigger_status: 1,
            ..XxlJob::default()
        };
        lines.iter().map(one).collect()
    }

    /// Roots, members, and edges by id, of each pipeline.
    fn shown(lines: &[(i64, &str, &str)], children: ChildJoin) -> (Vec<String>, PipelinePlan) {
        let jobs = jobs(lines);
        let links = Links::from_jobs(&jobs);
        let plan = plan_links(&jobs, &links, children).expect("few");
        let id = |at: &usize| jobs[*at].id.to_string();
        let line = |p: &Pipeline| {
            let list = |all: &[usize]| all.iter().map(id).collect::<Vec<_>>().join(" ");
            let edges: Vec<String> =
                p.edges.iter().map(|(a, b)| format!("{}>{}", id(a), id(b))).collect();
            format!("{} | {} | {}", list(&p.roots), list(&p.members), edges.join(" "))
        };
        (plan.pipelines.iter().map(line).collect(), plan)
    }

    #[test]
    fn each_root_is_a_pipeline_of_what_it_starts() {
        let lines = [
            (1, "0 0 2 * * ?", "3,4"),
            (2, "0 0 3 * * ?", "4"),
            (3, "", "5"),
            (4, "", "5"),
            (5, "", ""),
            (6, "", ""),
        ];
        let (any, plan) = shown(&lines, ChildJoin::Any);
        assert_eq!(any, ["1 | 1 3 5 4 | 1>3 3>5 1>4 4>5", "2 | 2 4 5 | 2>4 4>5", "6 | 6 | "]);
        assert!(plan.circles.is_empty() && plan.apart.is_empty());
        // Two schedules: no pipeline can have both.
        let (all, plan) = shown(&lines, ChildJoin::All);
        assert_eq!(all, any);
        assert_eq!(plan.apart, [0]);
        // One schedule: one pipeline, in which 4 waits for both.
        let mut same = lines;
        same[1].1 = "0 0 2 * * ?";
        let (all, plan) = shown(&same, ChildJoin::All);
        assert_eq!(all, ["1 2 | 1 3 5 4 2 | 1>3 3>5 1>4 4>5 2>4", "6 | 6 | "]);
        assert!(plan.apart.is_empty());
    }

    #[test]
    fn circles_are_cut_and_never_followed() {
        // A > B > A, both started by hand; and a cycle that a schedule leads into.
        let (any, plan) = shown(
            &[(1, "", "2"), (2, "", "1"), (3, "0 0 2 * * ?", "4"), (4, "", "5"), (5, "", "4,3")],
            ChildJoin::Any,
        );
        assert_eq!(any, ["3 | 3 4 5 | 3>4 4>5", "1 | 1 2 | 1>2"]);
        assert_eq!(plan.circles.into_iter().collect::<Vec<_>>(), [(1, 0), (4, 2), (4, 3)]);
    }

    #[test]
    fn ids_that_lead_nowhere_are_told() {
        let jobs = jobs(&[(1, "", "1, 7,x,2,2，3"), (2, "", ","), (3, "", "")]);
        let links = Links::from_jobs(&jobs);
        let word = Stray::Word("x".to_owned());
        let strays = [Stray::Itself, Stray::Missing(7), word, Stray::Twice(2)];
        assert_eq!(links.strays, strays.map(|stray| (0, stray)));
        assert_eq!(links.children[0], [1, 2]);
    }

    #[test]
    fn a_net_that_would_be_copied_a_thousand_times_is_refused() {
        let mut lines: Vec<XxlJob> = Vec::new();
        for id in 1..=2_000 {
            let mut job = jobs(&[(id, "0 0 2 * * ?", "")]).remove(0);
            job.children = (id + 1).to_string();
            lines.push(job);
        }
        let links = Links::from_jobs(&lines);
        assert_eq!(plan_links(&lines, &links, ChildJoin::Any), Err(TooMany));
        assert!(plan_links(&lines, &links, ChildJoin::All).is_ok());
    }

    proptest! {
        /// For any links: it terminates, every job is in a pipeline, and no pipeline has a cycle.
        #[test]
        fn any_ids_become_pipelines_without_circles(
            rows in prop::collection::vec((any::<bool>(), prop::collection::vec(0_i64..14, 0..4)), 1..12),
            all: bool,
        ) {
            let jobs: Vec<XxlJob> = rows.iter().enumerate().map(|(at, (scheduled, children))| XxlJob {
                id: i64::try_from(at).expect("small"),
                schedule_type: if *scheduled { "CRON" } else { "NONE" }.to_owned(),
                schedule_conf: "0 0 2 * * ?".to_owned(),
                children: children.iter().map(ToString::to_string).collect::<Vec<_>>().join(","),
                ..XxlJob::default()
            }).collect();
            let links = Links::from_jobs(&jobs);
            let children = if all { ChildJoin::All } else { ChildJoin::Any };
            let plan = plan_links(&jobs, &links, children).expect("few");
            let everywhere: BTreeSet<usize> =
                plan.pipelines.iter().flat_map(|p| p.members.clone()).collect();
            prop_assert_eq!(everywhere.len(), jobs.len());
            for p in &plan.pipelines {
                let members: BTreeSet<usize> = p.members.iter().copied().collect();
                prop_assert_eq!(members.len(), p.members.len(), "each once");
                // Repeatedly remove jobs without parents until nothing is left.
                let mut left = members.clone();
                while !left.is_empty() {
                    let free: Vec<usize> = left.iter().copied()
                        .filter(|at| !p.edges.iter().any(|(a, b)| b == at && left.contains(a)))
                        .collect();
                    prop_assert!(!free.is_empty(), "a circle: {:?}", p);
                    free.iter().for_each(|at| { left.remove(at); });
                }
            }
        }
    }
}
