//! Collapses many jobs into one node.

use crate::domain::job::queue::QueueStatus;
use crate::domain::time::Millis;
use crate::picture::view::{
    DagView, ForecastTiming, JobState, PictureEdge, PictureNode, PictureNodeKind, needed,
};
use petgraph::algo::kosaraju_scc;
use petgraph::graph::DiGraph;
use std::collections::{BTreeMap, BTreeSet};

/// What the jobs of one node share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Collapse {
    /// Their group.
    Group,
    /// Their first tag.
    Tag,
}

/// A node of the collapsed picture before it is known whether it must be split.
#[derive(Clone, Debug)]
struct CollapseClass {
    id: String,
    name: String,
    kind: PictureNodeKind,
    group: Option<String>,
}

impl DagView {
    /// The same view with one node per group or tag. Jobs without a tag are unchanged. If a tag's jobs come both before
    /// and after others, as in load → post → load, it becomes several nodes, `load` and `load (2)`, because a single
    /// node would form a cycle.
    pub fn collapsed(&self, by: Collapse) -> Self {
        let (classes, of) = self.classes(by);
        let ranks = self.class_ranks(classes.len(), &of);
        let mut stages = vec![0usize; self.nodes.len()];
        let children = self.children();
        for at in self.in_order() {
            for &child in &children[at] {
                // Stage and rank together never decrease along an edge, so no cycle can form.
                let next = stages[at] + usize::from(ranks[of[at]] > ranks[of[child]]);
                stages[child] = stages[child].max(next);
            }
        }
        let parts: BTreeSet<(usize, usize)> = of.iter().copied().zip(stages.clone()).collect();
        let mut members: BTreeMap<(usize, usize), Vec<&PictureNode>> = BTreeMap::new();
        for (i, item) in self.nodes.iter().enumerate() {
            members.entry((of[i], stages[i])).or_default().push(item);
        }
        let mut at = BTreeMap::new();
        let mut nodes = Vec::new();
        for part in &parts {
            let number = parts.range((part.0, 0)..=*part).count();
            at.insert(*part, nodes.len());
            nodes.push(group_item(&classes[part.0], number, &members[part]));
        }
        let mut edges: BTreeMap<(usize, usize), PictureEdge> = BTreeMap::new();
        for edge in &self.edges {
            let place = |i: usize| at[&(of[i], stages[i])];
            let ends = (place(edge.source), place(edge.target));
            if ends.0 != ends.1 {
                let moved = PictureEdge { source: ends.0, target: ends.1, ..edge.clone() };
                edges.entry(ends).and_modify(|e| merge(e, edge)).or_insert(moved);
            }
        }
        let mut view =
            Self { nodes, edges: edges.into_values().collect(), ..self.without_content() };
        view.groups = needed(&self.groups, &view.nodes);
        view.with_waves().sorted()
    }

    /// The classes by id, and the class of each node.
    fn classes(&self, by: Collapse) -> (Vec<CollapseClass>, Vec<usize>) {
        let found: Vec<CollapseClass> =
            self.nodes.iter().map(|item| self.class(item, by)).collect();
        let ids: BTreeMap<&str, &CollapseClass> =
            found.iter().map(|c| (c.id.as_str(), c)).collect();
        let at: BTreeMap<&str, usize> = ids.keys().enumerate().map(|(i, id)| (*id, i)).collect();
        let of = found.iter().map(|c| at[c.id.as_str()]).collect();
        (ids.into_values().cloned().collect(), of)
    }

    fn class(&self, item: &PictureNode, by: Collapse) -> CollapseClass {
        let alone = CollapseClass {
            id: item.code.clone(),
            name: item.name.clone(),
            kind: item.kind,
            group: item.group.clone(),
        };
        match (by, &item.group, item.tags.first()) {
            (Collapse::Group, Some(group), _) => {
                let cluster = self.groups.iter().find(|g| g.id == *group);
                CollapseClass {
                    id: format!("group/{group}"),
                    name: cluster.map_or_else(|| group.clone(), |g| g.label.clone()),
                    kind: PictureNodeKind::Group,
                    group: cluster.and_then(|g| g.parent.clone()),
                }
            }
            (Collapse::Tag, Some(group), Some(tag)) => CollapseClass {
                id: format!("tag/{group}/{tag}"),
                name: tag.clone(),
                kind: PictureNodeKind::Tag,
                group: item.group.clone(),
            },
            (Collapse::Group, None, _) | (Collapse::Tag, _, _) => alone,
        }
    }

    /// An order of the classes in which edges run forwards wherever possible: by strongly connected components of the
    /// classes, and within a component by the mean wave of their jobs.
    fn class_ranks(&self, count: usize, of: &[usize]) -> Vec<usize> {
        let mut graph: DiGraph<(), ()> = DiGraph::with_capacity(count, self.edges.len());
        let places: Vec<_> = (0..count).map(|_| graph.add_node(())).collect();
        let ends = self.edges.iter().map(|e| (of[e.source], of[e.target]));
        for (source, target) in ends.collect::<BTreeSet<_>>() {
            if source != target {
                graph.add_edge(places[source], places[target], ());
            }
        }
        let mut waves = vec![(0u64, 0u64); count];
        for (item, class) in self.nodes.iter().zip(of) {
            waves[*class] = (waves[*class].0 + u64::from(item.level), waves[*class].1 + 1);
        }
        let mean = |class: &usize| waves[*class].0 * 1_000 / waves[*class].1.max(1);
        let mut ranks = vec![0; count];
        let mut next = 0;
        // Kosaraju returns the components from last to first.
        for knot in kosaraju_scc(&graph).into_iter().rev() {
            let mut knot: Vec<usize> = knot.into_iter().map(|n| n.index()).collect();
            knot.sort_by_key(|class| (mean(class), *class));
            for class in knot {
                ranks[class] = next;
                next += 1;
            }
        }
        ranks
    }

    /// The same view with waves recomputed.
    fn with_waves(mut self) -> Self {
        let children = self.children();
        self.nodes.iter_mut().for_each(|item| item.level = 0);
        for at in self.in_order() {
            let next = self.nodes[at].level + 1;
            for &child in &children[at] {
                self.nodes[child].level = self.nodes[child].level.max(next);
            }
        }
        self
    }
}

fn merge(into: &mut PictureEdge, edge: &PictureEdge) {
    if !into.condition.split(", ").any(|word| word == edge.condition) {
        into.condition = format!("{}, {}", into.condition, edge.condition);
    }
    into.kind = into.kind.min(edge.kind);
}

fn group_item(class: &CollapseClass, number: usize, members: &[&PictureNode]) -> PictureNode {
    if let (PictureNodeKind::Job | PictureNodeKind::External, [one]) = (class.kind, members) {
        return (*one).clone();
    }
    let suffix = |mark: &str| {
        if number > 1 { mark.replace('N', &number.to_string()) } else { String::new() }
    };
    let mut counts = BTreeMap::new();
    for item in members {
        *counts.entry(item.state.as_ref().map(|s| s.status)).or_default() += 1;
    }
    let slack = members.iter().filter_map(|i| i.timing.slack_ms).min();
    let critical = members.iter().filter_map(|i| i.timing.critical).max();
    let tags: BTreeSet<&String> = members.iter().flat_map(|i| &i.tags).collect();
    PictureNode {
        code: format!("{}{}", class.id, suffix("#N")),
        name: format!("{}{}", class.name, suffix(" (N)")),
        kind: class.kind,
        job_type: String::new(),
        source: None,
        group: class.group.clone(),
        tags: tags.into_iter().cloned().collect(),
        level: 0,
        state: state(members),
        timing: ForecastTiming { slack_ms: slack, critical, ..ForecastTiming::default() },
        members: counts,
    }
}

/// The worst state first: it is the most important one in a small picture of a large DAG.
const WORST_FIRST: [QueueStatus; 16] = [
    QueueStatus::Failed,
    QueueStatus::Timeout,
    QueueStatus::Unknown,
    QueueStatus::Killed,
    QueueStatus::Killing,
    QueueStatus::UpstreamFailed,
    QueueStatus::Running,
    QueueStatus::RetryWait,
    QueueStatus::Queued,
    QueueStatus::Held,
    QueueStatus::Pending,
    QueueStatus::Warning,
    QueueStatus::Forced,
    QueueStatus::Skipped,
    QueueStatus::NotTaken,
    QueueStatus::Success,
];

/// The worst state, with the first start and the last end; no end while one of the jobs has not ended.
fn state(members: &[&PictureNode]) -> Option<JobState> {
    let states: Vec<&JobState> = members.iter().filter_map(|i| i.state.as_ref()).collect();
    let status = WORST_FIRST.into_iter().find(|s| states.iter().any(|j| j.status == *s))?;
    let over = states.iter().all(|s| s.status.is_final());
    let end: Option<Millis> = states.iter().filter_map(|s| s.end).max().filter(|_| over);
    Some(JobState {
        status,
        start: states.iter().filter_map(|s| s.start).min(),
        end,
        attempt: states.iter().map(|s| s.attempt).max().unwrap_or(0),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_state_has_its_place_among_the_worst() {
        let all: BTreeSet<QueueStatus> = WORST_FIRST.into_iter().collect();
        assert_eq!(all, QueueStatus::ALL.into_iter().collect());
    }
}
