//! The validated graph of a batch's jobs, on petgraph.

use crate::domain::id::JobCode;
use crate::domain::job::JobDependency;
use petgraph::algo::{kosaraju_scc, toposort};
use petgraph::graph::{DiGraph, NodeIndex};
use std::collections::{HashMap, HashSet, VecDeque};

/// Index of a job in its `Dag`: 0 … `len - 1`, in the order the jobs were given.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Node(pub u32);

impl Node {
    /// The index as `usize`, for slices parallel to the jobs.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// Why jobs and dependencies do not form a DAG; `Display` is the sentence for the user.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DagError {
    /// Jobs that wait for one another in a cycle; the message repeats the first at the end.
    #[error("these jobs wait for one another in a circle: {}; remove one of these dependencies",
        circle(.0))]
    Cycle(Vec<JobCode>),
    /// A dependency on a job that does not exist.
    #[error(
        "job {job} depends on {depends_on}, which is not defined; define it or remove the dependency"
    )]
    Dangling {
        /// The dependent job.
        job: JobCode,
        /// The missing job.
        depends_on: JobCode,
    },
    /// A job that depends on itself.
    #[error("job {0} depends on itself; remove that dependency")]
    SelfDependency(JobCode),
    /// The same code twice.
    #[error("job code {0} is defined twice; codes are unique")]
    DuplicateJob(JobCode),
    /// The same dependency twice.
    #[error("job {job} lists its dependency on {depends_on} twice; list it once")]
    DuplicateDependency {
        /// The dependent job.
        job: JobCode,
        /// The job listed twice.
        depends_on: JobCode,
    },
}

fn circle(codes: &[JobCode]) -> String {
    let mut words: Vec<&str> = codes.iter().map(JobCode::as_str).collect();
    words.extend(codes.first().map(JobCode::as_str));
    words.join(" -> ")
}

/// An acyclic graph of jobs; an edge runs from a job to each job that waits for it.
#[derive(Clone, Debug)]
pub struct Dag {
    /// Each edge carries the index of its dependency in the list from which the graph was built.
    graph: DiGraph<JobCode, u32>,
    order: Vec<Node>,
    levels: Vec<u32>,
}

impl Dag {
    /// Builds the graph of `jobs` and `dependencies`, or returns the first fault. Costs time
    /// proportional to jobs plus dependencies.
    pub fn build<'d>(
        jobs: &[JobCode],
        dependencies: impl IntoIterator<Item = &'d JobDependency, IntoIter: ExactSizeIterator>,
    ) -> Result<Self, DagError> {
        let dependencies = dependencies.into_iter();
        let mut graph = DiGraph::with_capacity(jobs.len(), dependencies.len());
        let mut places: HashMap<&JobCode, NodeIndex> = HashMap::with_capacity(jobs.len());
        for code in jobs {
            let place = graph.add_node(code.clone());
            if places.insert(code, place).is_some() {
                return Err(DagError::DuplicateJob(code.clone()));
            }
        }
        let mut seen = HashSet::with_capacity(dependencies.len());
        for (place, dependency) in (0..).zip(dependencies) {
            let (job, parent) = resolve_edge(dependency, &places)?;
            if !seen.insert((parent, job)) {
                return Err(DagError::DuplicateDependency {
                    job: dependency.job_code.clone(),
                    depends_on: dependency.depends_on.clone(),
                });
            }
            graph.add_edge(parent, job, place);
        }
        let Ok(order) = toposort(&graph, None) else {
            return Err(DagError::Cycle(shortest_cycle(&graph)));
        };
        let levels = levels(&graph, &order);
        let order = order.into_iter().map(|n| Node(n.index() as u32)).collect();
        Ok(Self { graph, order, levels })
    }

    /// Number of jobs.
    pub fn len(&self) -> usize {
        self.graph.node_count()
    }

    /// Whether there are no jobs.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The job at an index.
    pub fn job_code(&self, node: Node) -> &JobCode {
        &self.graph[NodeIndex::new(node.index())]
    }

    /// All indexes, parents before children.
    pub fn in_order(&self) -> &[Node] {
        &self.order
    }

    /// The wave of a job: 0 without dependencies, otherwise one more than its deepest parent.
    pub fn level(&self, node: Node) -> u32 {
        self.levels[node.index()]
    }

    /// The direct children of a job.
    pub fn children(&self, node: Node) -> impl Iterator<Item = Node> + '_ {
        self.graph.neighbors(NodeIndex::new(node.index())).map(|n| Node(n.index() as u32))
    }

    /// As `children`, each with the index of the dependency in the list from which the graph was
    /// built.
    pub fn arrows(&self, node: Node) -> impl Iterator<Item = (Node, usize)> + '_ {
        use petgraph::visit::EdgeRef as _;
        let edges = self.graph.edges(NodeIndex::new(node.index()));
        edges.map(|e| (Node(e.target().index() as u32), *e.weight() as usize))
    }

    /// As `parents`, each with the index of the dependency.
    pub fn arrows_in(&self, node: Node) -> impl Iterator<Item = (Node, usize)> + '_ {
        use petgraph::visit::EdgeRef as _;
        let edges =
            self.graph.edges_directed(NodeIndex::new(node.index()), petgraph::Direction::Incoming);
        edges.map(|e| (Node(e.source().index() as u32), *e.weight() as usize))
    }

    /// The direct parents of a job.
    pub fn parents(&self, node: Node) -> impl Iterator<Item = Node> + '_ {
        self.graph
            .neighbors_directed(NodeIndex::new(node.index()), petgraph::Direction::Incoming)
            .map(|n| Node(n.index() as u32))
    }
}

fn resolve_edge(
    dependency: &JobDependency,
    places: &HashMap<&JobCode, NodeIndex>,
) -> Result<(NodeIndex, NodeIndex), DagError> {
    let JobDependency { job_code, depends_on, .. } = dependency;
    if job_code == depends_on {
        return Err(DagError::SelfDependency(job_code.clone()));
    }
    match (places.get(job_code), places.get(depends_on)) {
        (Some(job), Some(parent)) => Ok((*job, *parent)),
        _ => Err(DagError::Dangling { job: job_code.clone(), depends_on: depends_on.clone() }),
    }
}

fn levels(graph: &DiGraph<JobCode, u32>, order: &[NodeIndex]) -> Vec<u32> {
    let mut levels = vec![0; graph.node_count()];
    for &node in order {
        for child in graph.neighbors(node) {
            levels[child.index()] = levels[child.index()].max(levels[node.index()] + 1);
        }
    }
    levels
}

/// A shortest cycle within the smallest strongly connected component, so that the user reads three
/// names and not three hundred. `kosaraju_scc`, because petgraph's `tarjan_scc` recurses and
/// overflowed a 2 MiB stack on a chain of some 4,000 jobs.
fn shortest_cycle(graph: &DiGraph<JobCode, u32>) -> Vec<JobCode> {
    let knots = kosaraju_scc(graph);
    let knot = knots.iter().filter(|k| k.len() > 1).min_by_key(|k| k.len());
    let Some(knot) = knot else { return Vec::new() };
    let inside: HashSet<NodeIndex> = knot.iter().copied().collect();
    // Every node of the component is on a cycle; starting at the first given one makes the message
    // stable.
    let Some(&start) = inside.iter().min() else { return Vec::new() };
    let mut came_from: HashMap<NodeIndex, NodeIndex> = HashMap::new();
    let mut wave = VecDeque::from([start]);
    while let Some(node) = wave.pop_front() {
        for child in graph.neighbors(node).filter(|c| inside.contains(c)) {
            if child == start {
                return walk_back(graph, &came_from, start, node);
            }
            if let std::collections::hash_map::Entry::Vacant(slot) = came_from.entry(child) {
                slot.insert(node);
                wave.push_back(child);
            }
        }
    }
    Vec::new()
}

fn walk_back(
    graph: &DiGraph<JobCode, u32>,
    came_from: &HashMap<NodeIndex, NodeIndex>,
    start: NodeIndex,
    mut node: NodeIndex,
) -> Vec<JobCode> {
    let mut ring = vec![node];
    while node != start {
        node = came_from[&node];
        ring.push(node);
    }
    ring.reverse();
    // Edges run parent -> child; a user reads "A waits for B", the opposite direction.
    ring.rotate_left(1);
    ring.reverse();
    ring.into_iter().map(|n| graph[n].clone()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::id::GroupCode;
    use crate::domain::job::trigger_rule::EdgeCondition;
    use proptest::prelude::*;

    fn code(word: &str) -> JobCode {
        JobCode::parse(word).expect("code")
    }

    fn dag(jobs: &str, edges: &str) -> Result<Dag, DagError> {
        let jobs: Vec<JobCode> = jobs.split_whitespace().map(code).collect();
        let edges: Vec<JobDependency> = edges
            .split_whitespace()
            .map(|e| e.split_once('<').expect("child<parent"))
            .map(|(c, p)| JobDependency {
                group: GroupCode::parse("g").expect("group"),
                job_code: code(c),
                depends_on: code(p),
                dependency_order: 0,
                when: EdgeCondition::Success,
            })
            .collect();
        Dag::build(&jobs, &edges)
    }

    #[test]
    fn each_fault_is_named() {
        let said = |jobs, edges| dag(jobs, edges).expect_err("faulty").to_string();
        assert_eq!(
            said("A B C D", "B<A A<C C<B D<A"),
            "these jobs wait for one another in a circle: A -> C -> B -> A; remove one of these dependencies"
        );
        assert!(said("A", "A<B").contains("job A depends on B, which is not defined"));
        assert!(said("A", "A<A").contains("job A depends on itself"));
        assert!(said("A A", "").contains("job code A is defined twice"));
        assert!(said("A B", "B<A B<A").contains("lists its dependency on A twice"));
    }

    #[test]
    fn a_long_chain_and_a_long_ring_do_not_overflow_the_stack() {
        let jobs: Vec<JobCode> = (0..50_000).map(|i| code(&format!("J{i}"))).collect();
        let mut edges: Vec<JobDependency> = jobs
            .windows(2)
            .map(|w| JobDependency {
                group: GroupCode::parse("g").expect("group"),
                job_code: w[1].clone(),
                depends_on: w[0].clone(),
                dependency_order: 0,
                when: EdgeCondition::Success,
            })
            .collect();
        let dag = Dag::build(&jobs, &edges).expect("chain");
        assert_eq!(dag.level(Node(49_999)), 49_999);
        edges.push(JobDependency {
            group: GroupCode::parse("g").expect("group"),
            job_code: jobs[0].clone(),
            depends_on: jobs[49_999].clone(),
            dependency_order: 0,
            when: EdgeCondition::Success,
        });
        let Err(DagError::Cycle(ring)) = Dag::build(&jobs, &edges) else { panic!("a ring") };
        assert_eq!(ring.len(), 50_000);
    }

    proptest! {
        /// Accepted exactly when acyclic; a refused graph names existing edges.
        #[test]
        fn refuses_exactly_the_cyclic(pairs in prop::collection::hash_set((0usize..8, 0usize..8), 0..20)) {
            let jobs: Vec<JobCode> = (0..8).map(|i| code(&format!("J{i}"))).collect();
            let pairs: Vec<(usize, usize)> = pairs.into_iter().filter(|(a, b)| a != b).collect();
            let edges: Vec<JobDependency> = pairs.iter().map(|(c, p)| JobDependency {
                group: GroupCode::parse("g").expect("group"),
                job_code: jobs[*c].clone(), depends_on: jobs[*p].clone(), dependency_order: 0, when: EdgeCondition::Success
            }).collect();
            // Warshall's closure is the independent reference.
            let mut reach = [[false; 8]; 8];
            for (c, p) in &pairs { reach[*c][*p] = true; }
            for k in 0..8 { for i in 0..8 { for j in 0..8 {
                reach[i][j] |= reach[i][k] && reach[k][j];
            } } }
            let cyclic = (0..8).any(|i| reach[i][i]);
            match Dag::build(&jobs, &edges) {
                Ok(dag) => {
                    prop_assert!(!cyclic);
                    for (c, p) in &pairs {
                        prop_assert!(dag.level(Node(*c as u32)) > dag.level(Node(*p as u32)));
                    }
                }
                Err(DagError::Cycle(ring)) => {
                    prop_assert!(cyclic);
                    for i in 0..ring.len() {
                        let waits = (&ring[i], &ring[(i + 1) % ring.len()]);
                        prop_assert!(edges.iter().any(|e| (&e.job_code, &e.depends_on) == waits));
                    }
                }
                Err(other) => prop_assert!(false, "{other}"),
            }
        }
    }
}
