//! Chooses the node on which a startable job runs.
//!
//! A job without a label runs on the dispatching node while that has capacity, otherwise on the
//! node with the most capacity; a job with a label only on nodes with that label, because what it
//! needs is there. Capacities are those known to the dispatching process: a node that receives one
//! job too many queues it.

use crate::domain::id::NodeId;
use crate::domain::job::job_kind::Takes;
use crate::domain::text::lang::Lang;
use std::cmp::Reverse;
use std::collections::BTreeSet;

/// Role of a node. A node without any role runs the requests of its own process and receives no
/// other work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum NodeRole {
    /// Fires schedules, opens batches and dispatches them.
    Scheduler,
    /// Runs bodies.
    Worker,
}

impl NodeRole {
    /// Every role, in display order.
    pub const ALL: [Self; 2] = [Self::Scheduler, Self::Worker];

    /// The word in settings and in the column.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Scheduler => "scheduler",
            Self::Worker => "worker",
        }
    }

    /// Parses the word for a role.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|role| role.as_str() == word)
    }
}

/// Roles of a node.
pub type Roles = BTreeSet<NodeRole>;

/// Whether a node with these roles runs bodies of the batches that it dispatches: a worker does,
/// and so does a node without roles.
pub fn runs_own(roles: &Roles) -> Bodies {
    let runs = roles.is_empty() || roles.contains(&NodeRole::Worker);
    if runs { Bodies::Run } else { Bodies::Elsewhere }
}

/// Whether a node runs bodies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bodies {
    /// It runs bodies.
    Run,
    /// It does not: it lacks the role, or accepts no new work.
    Elsewhere,
}

/// Requirements of a job on its node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Want<'a> {
    /// The label that the node must have.
    pub label: Option<&'a str>,
    /// Whether the job occupies a slot of the node.
    pub takes: Takes,
}

/// A node as a place to run jobs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Site {
    /// Id of the node.
    pub node: NodeId,
    /// Its name.
    pub name: String,
    /// Its labels.
    pub labels: Vec<String>,
    /// Whether it runs bodies at present.
    pub bodies: Bodies,
    /// Free capacity: how many more jobs it can run at once.
    pub room: u32,
}

impl Site {
    /// Whether jobs with this label requirement may run there at all.
    pub fn accepts_label(&self, label: Option<&str>) -> bool {
        self.bodies == Bodies::Run
            && label.is_none_or(|label| self.labels.iter().any(|l| l == label))
    }

    fn has_room(&self, takes: Takes) -> bool {
        match takes {
            Takes::Slots => self.room > 0,
            Takes::Nothing | Takes::Elsewhere => true,
        }
    }
}

/// Where a job goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JobPlacement {
    /// The node that dispatches its batch.
    Here,
    /// Another node.
    There(NodeId),
    /// None at present.
    Nowhere(PlacementFailure),
}

/// Why no node can run a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlacementFailure {
    /// No live node may run it.
    Node,
    /// The nodes that may run it have no free capacity.
    Room,
}

/// Chooses the node of a job.
pub fn place(want: Want<'_>, here: &Site, others: &[Site]) -> JobPlacement {
    let takes_it = |site: &&Site| site.accepts_label(want.label) && site.has_room(want.takes);
    if takes_it(&here) {
        return JobPlacement::Here;
    }
    // Ties are broken by name, so that every process decides alike.
    let best = others.iter().filter(takes_it).max_by_key(|s| (s.room, Reverse((&s.name, &s.node))));
    match best {
        Some(site) => JobPlacement::There(site.node.clone()),
        None if all_sites(here, others).any(|site| site.accepts_label(want.label)) => {
            JobPlacement::Nowhere(PlacementFailure::Room)
        }
        None => JobPlacement::Nowhere(PlacementFailure::Node),
    }
}

fn all_sites<'a>(here: &'a Site, others: &'a [Site]) -> impl Iterator<Item = &'a Site> {
    std::iter::once(here).chain(others)
}

/// Free capacity for jobs with this label requirement, over all nodes.
pub fn room_for(label: Option<&str>, here: &Site, others: &[Site]) -> u32 {
    let fitting = all_sites(here, others).filter(|site| site.accepts_label(label));
    fitting.fold(0, |sum, site| sum.saturating_add(site.room))
}

/// Number of nodes that may run jobs with this label requirement.
pub fn sites_for(label: Option<&str>, here: &Site, others: &[Site]) -> u32 {
    let fitting = all_sites(here, others).filter(|site| site.accepts_label(label)).count();
    u32::try_from(fitting).unwrap_or(u32::MAX)
}

/// Load of a node: what it reported, and what the asking process knows beyond that.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NodeLoad {
    /// Maximum number of jobs that it runs at once.
    pub max_parallel: u32,
    /// Number of running jobs in its last report.
    pub said: u32,
    /// Number of jobs that this process assigned to it and that have not ended.
    pub ours: u32,
    /// Number of these that were assigned after its last report.
    pub since: u32,
}

impl NodeLoad {
    /// How many more jobs it can run.
    pub fn free_slots(self) -> u32 {
        let load = self.said.saturating_add(self.since).max(self.ours);
        self.max_parallel.saturating_sub(load)
    }
}

/// Why no node can run a job that requires `label`, as a sentence. `nodes` are the live ones, with
/// their labels.
pub fn words(label: Option<&str>, lack: PlacementFailure, nodes: &[String], lang: Lang) -> String {
    let nodes = if nodes.is_empty() { "-".to_owned() } else { nodes.join(", ") };
    match (lack, label, lang) {
        (PlacementFailure::Node, Some(label), Lang::En) => {
            format!("no living node has the label {label} and takes work; nodes: {nodes}")
        }
        (PlacementFailure::Node, None, Lang::En) => {
            format!("no living node is a worker and takes work; nodes: {nodes}")
        }
        (PlacementFailure::Room, Some(label), Lang::En) => {
            format!("every node with the label {label} is full; nodes: {nodes}")
        }
        (PlacementFailure::Room, None, Lang::En) => format!("every node is full; nodes: {nodes}"),
        (PlacementFailure::Node, Some(label), Lang::Zh) => {
            format!("没有带标签 {label} 且接受作业的存活节点；节点：{nodes}")
        }
        (PlacementFailure::Node, None, Lang::Zh) => {
            format!("没有接受作业的存活工作节点；节点：{nodes}")
        }
        (PlacementFailure::Room, Some(label), Lang::Zh) => {
            format!("带标签 {label} 的节点均已满；节点：{nodes}")
        }
        (PlacementFailure::Room, None, Lang::Zh) => format!("所有节点均已满；节点：{nodes}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn site(name: &str, labels: &[&str], room: u32) -> Site {
        Site {
            node: NodeId(format!("id-{name}")),
            name: name.to_owned(),
            labels: labels.iter().map(|l| (*l).to_owned()).collect(),
            bodies: Bodies::Run,
            room,
        }
    }

    fn there(name: &str) -> JobPlacement {
        JobPlacement::There(NodeId(format!("id-{name}")))
    }

    #[test]
    fn the_table() {
        let closed = |site: Site| Site { bodies: Bodies::Elsewhere, ..site };
        let (plain, etl) = (None, Some("etl"));
        let (slots, nothing) = (Takes::Slots, Takes::Nothing);
        let no_room = || JobPlacement::Nowhere(PlacementFailure::Room);
        let no_node = || JobPlacement::Nowhere(PlacementFailure::Node);
        for (label, takes, here, others, expected) in [
            (plain, slots, site("o", &[], 1), vec![site("w", &[], 9)], JobPlacement::Here),
            (plain, slots, site("o", &[], 0), vec![site("w", &[], 9)], there("w")),
            (
                plain,
                slots,
                site("o", &[], 0),
                vec![site("w", &[], 1), site("x", &["etl"], 2)],
                there("x"),
            ),
            (
                plain,
                slots,
                site("o", &[], 0),
                vec![site("x", &[], 2), site("w", &[], 2)],
                there("w"),
            ),
            (plain, slots, site("o", &[], 0), vec![site("w", &[], 0)], no_room()),
            (plain, slots, site("o", &[], 0), vec![], no_room()),
            (plain, slots, closed(site("o", &[], 8)), vec![], no_node()),
            (plain, slots, closed(site("o", &[], 8)), vec![site("w", &[], 1)], there("w")),
            (plain, slots, closed(site("o", &[], 8)), vec![closed(site("w", &[], 1))], no_node()),
            (etl, slots, site("o", &[], 8), vec![site("w", &["etl"], 1)], there("w")),
            (etl, slots, site("o", &["etl"], 1), vec![site("w", &["etl"], 9)], JobPlacement::Here),
            (etl, slots, site("o", &["etl"], 0), vec![site("w", &["gpu", "etl"], 1)], there("w")),
            (etl, slots, site("o", &[], 8), vec![site("w", &["etl"], 0)], no_room()),
            (etl, slots, site("o", &[], 8), vec![site("w", &["etl2"], 8)], no_node()),
            (etl, slots, site("o", &[], 8), vec![closed(site("w", &["etl"], 8))], no_node()),
            // A job that only waits occupies no capacity.
            (plain, nothing, site("o", &[], 0), vec![site("w", &[], 9)], JobPlacement::Here),
            (etl, nothing, site("o", &[], 8), vec![site("w", &["etl"], 0)], there("w")),
            (etl, nothing, site("o", &[], 8), vec![], no_node()),
        ] {
            let found = place(Want { label, takes }, &here, &others);
            assert_eq!(found, expected, "{label:?} {takes:?} {here:?} {others:?}");
        }
    }

    #[test]
    fn room_is_never_counted_twice_nor_forgotten() {
        for (max_parallel, said, ours, since, room) in [
            (4, 0, 0, 0, 4),
            (4, 3, 0, 0, 1),
            // The report includes them.
            (4, 3, 3, 0, 1),
            // The report is older than their assignment.
            (4, 1, 2, 2, 1),
            (4, 0, 3, 0, 1),
            (4, 9, 0, 0, 0),
        ] {
            let load = NodeLoad { max_parallel, said, ours, since };
            assert_eq!(load.free_slots(), room, "{load:?}");
        }
    }

    fn any_site() -> impl Strategy<Value = Site> {
        let labels = prop::collection::btree_set(0usize..3, 0..3);
        (0u32..99, labels, prop::bool::weighted(0.8), 0u32..3).prop_map(
            |(id, labels, open, room)| {
                let names = ["a", "b", "c"];
                Site {
                    node: NodeId(id.to_string()),
                    name: format!("n{}", id % 7),
                    labels: labels.into_iter().map(|l| names[l].to_owned()).collect(),
                    bodies: if open { Bodies::Run } else { Bodies::Elsewhere },
                    room,
                }
            },
        )
    }

    proptest! {
        /// A job is placed only on a permitted node with capacity, and always when there is one;
        /// the totals from which limits are computed agree.
        #[test]
        fn a_job_goes_where_it_may_whenever_it_can(
            here in any_site(),
            others in prop::collection::vec(any_site(), 0..6),
            label in prop::option::of(prop::sample::select(vec!["a", "b", "c"])),
            waits in prop::bool::ANY,
        ) {
            let takes = if waits { Takes::Nothing } else { Takes::Slots };
            let may = |s: &Site| s.accepts_label(label) && (waits || s.room > 0);
            let found = place(Want { label, takes }, &here, &others);
            match &found {
                JobPlacement::Here => prop_assert!(may(&here)),
                JobPlacement::There(id) => {
                    prop_assert!(!may(&here));
                    prop_assert!(others.iter().any(|s| s.node == *id && may(s)));
                }
                JobPlacement::Nowhere(lack) => {
                    prop_assert!(!may(&here) && !others.iter().any(may));
                    let fits = here.accepts_label(label) || others.iter().any(|s| s.accepts_label(label));
                    prop_assert_eq!(*lack == PlacementFailure::Room, fits);
                }
            }
            let is_placed = !matches!(found, JobPlacement::Nowhere(_));
            let sum = match takes {
                Takes::Slots => room_for(label, &here, &others),
                Takes::Nothing | Takes::Elsewhere => sites_for(label, &here, &others),
            };
            prop_assert_eq!(is_placed, sum > 0);
            let mut turned = others.clone();
            turned.reverse();
            let again = place(Want { label, takes }, &here, &turned);
            let room = |p: &JobPlacement, all: &[Site]| match p {
                JobPlacement::There(id) => all.iter().filter(|s| s.node == *id).map(|s| s.room).max(),
                JobPlacement::Here | JobPlacement::Nowhere(_) => None,
            };
            prop_assert_eq!(room(&again, &turned), room(&found, &others), "in whatever order they come");
        }
    }
}
