//! picture: draws a DAG for people and front ends. In: a snapshot and states. Out: JSON or DOT text.
//! May name: domain. Never: a database, a clock.
//! Invariant: the same DAG gives the same bytes, so that a diff of two pictures is a diff of two DAGs.

mod dot;
mod native;

pub use dot::dot;
pub use native::native;

use crate::domain::batch::Snapshot;
use crate::domain::dag::{Dag, Node};
use crate::domain::job::JobDef;
use crate::domain::queue::{QueueEntry, QueueStatus};
use crate::domain::time::Millis;
use std::collections::HashMap;

/// Where a job of a batch stands, as a picture shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobState {
    /// Its state.
    pub status: QueueStatus,
    /// Start of the present or last try.
    pub start: Option<Millis>,
    /// End of the last try.
    pub end: Option<Millis>,
    /// Which start this is, counted from 1; 0 before the first.
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

/// A DAG ready to be drawn: what every shape of picture is made of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct View {
    title: String,
    group: Cluster,
    nodes: Vec<Item>,
    edges: Vec<(String, String)>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Cluster {
    code: String,
    label: String,
}

/// A job in the picture.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Item {
    code: String,
    name: String,
    job_type: String,
    source: Option<String>,
    level: u32,
    state: Option<JobState>,
}

impl View {
    /// The jobs of `snapshot` as `dag` orders them. `title` is the batch number, or the group's
    /// code when no batch is meant; `statuses`, where there is a batch, run parallel to the jobs.
    pub fn of(title: &str, snapshot: &Snapshot, dag: &Dag, statuses: Option<&[JobState]>) -> Self {
        let places: HashMap<&str, usize> =
            snapshot.jobs.iter().enumerate().map(|(i, j)| (j.code.as_str(), i)).collect();
        let mut nodes: Vec<Item> = Vec::with_capacity(dag.len());
        let mut edges = Vec::new();
        for node in dag.in_order() {
            let code = dag.code(*node).as_str();
            let place = places.get(code).copied();
            let state = place.and_then(|i| statuses?.get(i).cloned());
            nodes.push(item(*node, dag, place.and_then(|i| snapshot.jobs.get(i)), state));
            let children = dag.children(*node).map(|child| dag.code(child).to_string());
            edges.extend(children.map(|child| (code.to_owned(), child)));
        }
        // By wave and code, which is an order of running too, and does not change with the order
        // in which jobs happen to be written.
        nodes.sort_by(|a, b| (a.level, &a.code).cmp(&(b.level, &b.code)));
        edges.sort();
        let group =
            Cluster { code: snapshot.group.code.to_string(), label: snapshot.group.name.clone() };
        Self { title: title.to_owned(), group, nodes, edges }
    }
}

fn item(node: Node, dag: &Dag, job: Option<&JobDef>, state: Option<JobState>) -> Item {
    let code = dag.code(node).to_string();
    Item {
        name: job.map_or_else(|| code.clone(), |j| j.name.clone()),
        job_type: job.map_or_else(String::new, |j| j.job_type.to_string()),
        source: job.and_then(|j| j.source.as_ref().map(ToString::to_string)),
        level: dag.level(node),
        code,
        state,
    }
}

#[cfg(test)]
mod tests;
