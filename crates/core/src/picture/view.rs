//! The view of a DAG from which every shape of picture is rendered.

use crate::domain::batch::Snapshot;
use crate::domain::dag::{Dag, Node};
use crate::domain::id::{GroupCode, JobCode};
use crate::domain::job::JobDef;
use crate::domain::job::queue::{QueueEntry, QueueStatus};
use crate::domain::time::Millis;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt::Write as _;

/// State of a job in a batch, as a picture shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobState {
    pub status: QueueStatus,
    /// Start of the current or last attempt.
    pub start: Option<Millis>,
    /// End of the last attempt.
    pub end: Option<Millis>,
    /// Number of the attempt, counted from 1; 0 before the first.
    pub attempt: u32,
}

impl From<&QueueEntry> for JobState {
    fn from(entry: &QueueEntry) -> Self {
        Self {
            status: entry.status,
            start: entry.start_time,
            end: entry.end_time,
            attempt: entry.attempt,
        }
    }
}

impl JobState {
    /// Duration of the last finished attempt in milliseconds; `None` while an attempt runs.
    pub(super) fn time_taken(&self) -> Option<i64> {
        let (start, end) = self.start.zip(self.end)?;
        (end >= start).then(|| end.since(start))
    }
}

/// Forecast of a job; every part may be unknown.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct ForecastTiming {
    /// Expected duration in milliseconds.
    pub est_ms: Option<i64>,
    /// Whether the duration is assumed: the job has no history, while others of the batch have.
    pub is_assumed: bool,
    /// Slack in milliseconds: how much later the job may end without delaying the batch.
    pub slack_ms: Option<i64>,
    /// Whether the job is on the critical path.
    pub critical: Option<bool>,
}

/// A DAG with states and timings, ready to be rendered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DagView {
    pub(super) title: String,
    pub(super) subject: PictureSubject,
    pub(super) groups: Vec<PictureFrame>,
    pub(super) nodes: Vec<PictureNode>,
    pub(super) edges: Vec<PictureEdge>,
}

/// What the picture shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PictureSubject {
    /// A batch; its jobs have states.
    Batch,
    /// A definition; nothing has run.
    Definition,
}

/// A group frame around jobs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PictureFrame {
    pub(super) id: String,
    pub(super) label: String,
    pub(super) parent: Option<String>,
}

/// What a node stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PictureNodeKind {
    /// A job.
    Job,
    /// A job of another batch that a job of this batch depends on.
    External,
    /// All jobs of a group, collapsed.
    Group,
    /// All jobs with a tag, collapsed.
    Tag,
}

/// A node: a job, or several collapsed jobs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PictureNode {
    pub(super) code: String,
    pub(super) name: String,
    pub(super) kind: PictureNodeKind,
    pub(super) job_type: String,
    pub(super) source: Option<String>,
    pub(super) group: Option<String>,
    pub(super) tags: Vec<String>,
    pub(super) level: u32,
    pub(super) state: Option<JobState>,
    pub(super) timing: ForecastTiming,
    /// For a collapsed node: the number of jobs per state, or without one.
    pub(super) members: BTreeMap<Option<QueueStatus>, usize>,
}

/// The meaning of an edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum LinkKind {
    /// A dependency within the batch.
    Dependency,
    /// A dependency on another batch.
    External,
}

/// An edge: indexes into `DagView::nodes`, and its condition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PictureEdge {
    pub(super) source: usize,
    pub(super) target: usize,
    pub(super) kind: LinkKind,
    pub(super) condition: String,
}

/// The default condition of a dependency.
pub(super) const SUCCESS: &str = "success";

impl DagView {
    /// The view of the jobs of `snapshot` in the order of `dag`. `title` is the batch number, or the code of the group
    /// for a definition; `statuses`, if there is a batch, are parallel to the jobs.
    pub fn of_batch(
        title: &str,
        snapshot: &Snapshot,
        dag: &Dag,
        statuses: Option<&[JobState]>,
    ) -> Self {
        let places: HashMap<&str, usize> =
            snapshot.jobs.iter().enumerate().map(|(i, j)| (j.code.as_str(), i)).collect();
        let group = snapshot.group.code.to_string();
        let mut nodes: Vec<PictureNode> = Vec::with_capacity(dag.len());
        let mut edges = Vec::new();
        for node in dag.in_order() {
            let place = places.get(dag.job_code(*node).as_str()).copied();
            let state = place.and_then(|i| statuses?.get(i).cloned());
            nodes.push(make_item(
                *node,
                dag,
                place.and_then(|i| snapshot.jobs.get(i)),
                state,
                &group,
            ));
            edges.extend(dag.children(*node).map(|child| (node.index(), child.index())));
        }
        let mut at = vec![0; dag.len()];
        for (i, node) in dag.in_order().iter().enumerate() {
            at[node.index()] = i;
        }
        let link = |(source, target): (usize, usize)| PictureEdge {
            source: at[source],
            target: at[target],
            kind: LinkKind::Dependency,
            condition: SUCCESS.to_owned(),
        };
        let view = Self {
            title: title.to_owned(),
            subject: if statuses.is_some() {
                PictureSubject::Batch
            } else {
                PictureSubject::Definition
            },
            groups: vec![PictureFrame {
                id: group,
                label: snapshot.group.name.clone(),
                parent: None,
            }],
            edges: edges.into_iter().map(link).collect(),
            nodes,
        };
        let conditions = snapshot
            .dependencies
            .iter()
            .map(|d| ((d.depends_on.clone(), d.job_code.clone()), d.when.to_string()));
        view.conditioned(&conditions.collect()).sorted()
    }

    /// Several views in one, with a frame each. A code shared by jobs of several groups becomes `group.CODE`.
    pub fn join_views(title: &str, views: Vec<Self>) -> Self {
        let mut all = Self {
            title: title.to_owned(),
            subject: PictureSubject::Definition,
            groups: vec![],
            nodes: vec![],
            edges: vec![],
        };
        let mut shared: HashMap<String, usize> = HashMap::new();
        for view in views {
            if view.subject == PictureSubject::Batch {
                all.subject = PictureSubject::Batch;
            }
            // A job of another batch that jobs of several groups depend on is one node.
            let mut at = Vec::with_capacity(view.nodes.len());
            for item in view.nodes {
                let next = all.nodes.len();
                let place = match item.kind {
                    PictureNodeKind::External => *shared.entry(item.code.clone()).or_insert(next),
                    PictureNodeKind::Job | PictureNodeKind::Group | PictureNodeKind::Tag => next,
                };
                at.push(place);
                if place == next {
                    all.nodes.push(item);
                }
            }
            let moved =
                |e: PictureEdge| PictureEdge { source: at[e.source], target: at[e.target], ..e };
            all.edges.extend(view.edges.into_iter().map(moved));
            all.groups.extend(view.groups);
        }
        all.with_unique_codes().sorted()
    }

    /// The same view with unique codes, because shapes identify nodes by code.
    fn with_unique_codes(mut self) -> Self {
        let own: Vec<String> = self.nodes.iter().map(|item| item.code.clone()).collect();
        let in_full = |group: &str, code: &str| format!("{group}.{code}");
        // A code may contain dots and look like another job's full name; no code contains a slash.
        let by_path = |group: &str, code: &str| format!("job/{group}/{code}");
        for form in [in_full as fn(&str, &str) -> String, by_path] {
            let shared = shared_codes(&self.nodes);
            let jobs = self.nodes.iter_mut().zip(&own);
            for (item, own) in jobs.filter(|(item, _)| item.kind == PictureNodeKind::Job) {
                let Some(group) = item.group.as_deref().filter(|_| shared.contains(&item.code))
                else {
                    continue;
                };
                let code = form(group, own);
                if item.name == item.code {
                    item.name.clone_from(&code);
                }
                item.code = code;
            }
        }
        self
    }

    /// The same view with the forecast of each job; jobs without one keep what they have.
    pub fn timed(mut self, timings: &BTreeMap<JobCode, ForecastTiming>) -> Self {
        let of: HashMap<&str, &ForecastTiming> =
            timings.iter().map(|(c, t)| (c.as_str(), t)).collect();
        for item in self.nodes.iter_mut().filter(|item| item.kind == PictureNodeKind::Job) {
            if let Some(timing) = of.get(item.code.as_str()) {
                item.timing = (*timing).clone();
            }
        }
        self
    }

    /// The same view with other conditions, by parent and child.
    pub fn conditioned(mut self, conditions: &BTreeMap<(JobCode, JobCode), String>) -> Self {
        let of: HashMap<(&str, &str), &String> =
            conditions.iter().map(|((p, c), text)| ((p.as_str(), c.as_str()), text)).collect();
        for edge in &mut self.edges {
            let ends =
                (self.nodes[edge.source].code.as_str(), self.nodes[edge.target].code.as_str());
            if let Some(text) = of.get(&ends) {
                edge.condition = (*text).clone();
            }
        }
        self
    }

    /// The same view with an additional frame around the frames of some groups. `id` is not a group code.
    pub fn framed(mut self, id: &str, label: &str, inner: &[GroupCode]) -> Self {
        for group in &mut self.groups {
            if inner.iter().any(|code| code.as_str() == group.id) {
                group.parent = Some(id.to_owned());
            }
        }
        self.groups.push(PictureFrame { id: id.to_owned(), label: label.to_owned(), parent: None });
        self
    }

    /// Codes of the jobs, for suggestions after a typing error.
    pub fn codes(&self) -> impl Iterator<Item = &str> {
        self.nodes.iter().filter(|i| i.kind == PictureNodeKind::Job).map(|i| i.code.as_str())
    }

    /// Everything that decides the positions in a steady picture: views with equal outlines have equal positions.
    pub fn outline(&self) -> String {
        let mut text = String::with_capacity(64 * self.nodes.len() + 12 * self.edges.len());
        for node in &self.nodes {
            let group = node.group.as_deref().unwrap_or_default();
            let jobs: usize = node.members.values().sum();
            let name = (&node.code, &node.name, node.kind.as_word(), group, node.level, jobs);
            let _never_fails = writeln!(text, "{name:?}");
        }
        for edge in &self.edges {
            let arrow = (edge.source, edge.target, edge.kind.as_word(), &edge.condition);
            let _never_fails = writeln!(text, "{arrow:?}");
        }
        for group in &self.groups {
            let frame = (&group.id, &group.label, &group.parent);
            let _never_fails = writeln!(text, "{frame:?}");
        }
        text
    }

    /// Sorts nodes by wave and code, which is also a possible order of execution and does not depend on the order in
    /// the definition; sorts edges by the codes of their ends.
    pub(super) fn sorted(mut self) -> Self {
        let mut order: Vec<usize> = (0..self.nodes.len()).collect();
        order.sort_by(|a, b| {
            let key = |i: &usize| (self.nodes[*i].level, &self.nodes[*i].code);
            key(a).cmp(&key(b))
        });
        let mut at = vec![0; order.len()];
        for (new, old) in order.iter().enumerate() {
            at[*old] = new;
        }
        let mut nodes: Vec<Option<PictureNode>> = self.nodes.into_iter().map(Some).collect();
        self.nodes = order.iter().filter_map(|old| nodes[*old].take()).collect();
        for edge in &mut self.edges {
            (edge.source, edge.target) = (at[edge.source], at[edge.target]);
        }
        let nodes = &self.nodes;
        self.edges.sort_by(|a, b| {
            let key = |e: &PictureEdge| (e.source, e.target);
            let codes =
                |e: &PictureEdge| (nodes[e.source].code.as_str(), nodes[e.target].code.as_str());
            codes(a).cmp(&codes(b)).then(key(a).cmp(&key(b)))
        });
        self
    }

    /// The nodes for which `keep` holds, the edges between them, and the groups still needed.
    pub(super) fn keep_only(&self, keep: &[bool]) -> Self {
        let mut at = vec![usize::MAX; self.nodes.len()];
        let mut nodes = Vec::new();
        for (i, item) in self.nodes.iter().enumerate().filter(|(i, _)| keep[*i]) {
            at[i] = nodes.len();
            nodes.push(item.clone());
        }
        let edges = self.edges.iter().filter(|e| keep[e.source] && keep[e.target]);
        let edges = edges
            .map(|e| PictureEdge { source: at[e.source], target: at[e.target], ..e.clone() })
            .collect();
        let mut view = Self { nodes, edges, ..self.without_content() };
        view.groups = needed(&self.groups, &view.nodes);
        view
    }

    pub(super) fn without_content(&self) -> Self {
        Self {
            title: self.title.clone(),
            subject: self.subject,
            groups: self.groups.clone(),
            nodes: vec![],
            edges: vec![],
        }
    }
}

/// Codes shared by several nodes.
fn shared_codes(nodes: &[PictureNode]) -> BTreeSet<String> {
    let mut seen = BTreeSet::new();
    let again = nodes.iter().filter(|item| !seen.insert(item.code.as_str()));
    again.map(|item| item.code.clone()).collect()
}

/// Groups that contain a node, and the groups around them.
pub(super) fn needed(groups: &[PictureFrame], nodes: &[PictureNode]) -> Vec<PictureFrame> {
    let mut ids: BTreeSet<&str> = nodes.iter().filter_map(|n| n.group.as_deref()).collect();
    // A parent may have a parent; each iteration adds one level.
    for _ in groups {
        let more: Vec<&str> = groups
            .iter()
            .filter(|g| ids.contains(g.id.as_str()))
            .filter_map(|g| g.parent.as_deref())
            .collect();
        ids.extend(more);
    }
    groups.iter().filter(|g| ids.contains(g.id.as_str())).cloned().collect()
}

fn make_item(
    node: Node,
    dag: &Dag,
    job: Option<&JobDef>,
    state: Option<JobState>,
    group: &str,
) -> PictureNode {
    let code = dag.job_code(node).to_string();
    PictureNode {
        name: job.map_or_else(|| code.clone(), |j| j.name.clone()),
        kind: PictureNodeKind::Job,
        job_type: job.map_or_else(String::new, |j| j.job_type.to_string()),
        source: job.and_then(|j| j.source.as_ref().map(ToString::to_string)),
        group: Some(group.to_owned()),
        tags: job.map_or_else(Vec::new, |j| j.tags.clone()),
        level: dag.level(node),
        code,
        state,
        timing: ForecastTiming::default(),
        members: BTreeMap::new(),
    }
}
