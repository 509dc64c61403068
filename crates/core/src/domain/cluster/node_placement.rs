//! On which node a job that may start is run.
//!
//! One without a label runs where its batch is dispatched as long as there is room, else on the node
//! with most; one with a label only on nodes that have it, because what it needs is there. Rooms are
//! what the process that dispatches knows of them: whoever gets one job too many lets it wait.

use crate::domain::id::NodeId;
use crate::domain::job::job_kind::Takes;
use crate::domain::text::lang::Lang;
use std::cmp::Reverse;
use std::collections::BTreeSet;

/// What a node is for. One with no role at all does its own order and is offered nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum NodeRole {
    /// Fires schedules, opens batches and dispatches them.
    Scheduler,
    /// Runs bodies.
    Worker,
}

impl NodeRole {
    /// Every role, as it is listed.
    pub const ALL: [Self; 2] = [Self::Scheduler, Self::Worker];

    /// The word in settings and in the column.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Scheduler => "scheduler",
            Self::Worker => "worker",
        }
    }

    /// The role a word means.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|role| role.as_str() == word)
    }
}

/// Roles of a node.
pub type Roles = BTreeSet<NodeRole>;

/// Whether a node with these roles runs bodies of the batches that it dispatches: a worker does, and
/// whoever has no role does its own work.
pub fn runs_own(roles: &Roles) -> Bodies {
    let runs = roles.is_empty() || roles.contains(&NodeRole::Worker);
    if runs { Bodies::Run } else { Bodies::Elsewhere }
}

/// Whether a node runs bodies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bodies {
    /// It does.
    Run,
    /// It does not: it has not the role, or takes no new work.
    Elsewhere,
}

/// What a job asks of the node that runs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Want<'a> {
    /// Only a node with this label.
    pub label: Option<&'a str>,
    /// Whether it takes room there.
    pub takes: Takes,
}

/// A node as a place to run jobs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Site {
    /// Its identity.
    pub node: NodeId,
    /// Its name.
    pub name: String,
    /// Its labels.
    pub labels: Vec<String>,
    /// Whether it runs bodies now.
    pub bodies: Bodies,
    /// How many more jobs it can run at once.
    pub room: u32,
}

impl Site {
    /// Whether jobs that ask for this label may run there at all.
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
    /// To the node that dispatches its batch.
    Here,
    /// To another.
    There(NodeId),
    /// Nowhere for now.
    Nowhere(PlacementFailure),
}

/// Why a job has no node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlacementFailure {
    /// No living node may run it.
    Node,
    /// Those that may have no room.
    Room,
}

/// Where a job goes.
pub fn place(want: Want<'_>, here: &Site, others: &[Site]) -> JobPlacement {
    let takes_it = |site: &&Site| site.accepts_label(want.label) && site.has_room(want.takes);
    if takes_it(&here) {
        return JobPlacement::Here;
    }
    // The name after the room, so that every process decides alike.
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

/// Room for jobs that ask for this label, on all nodes together.
pub fn room_for(label: Option<&str>, here: &Site, others: &[Site]) -> u32 {
    let fitting = all_sites(here, others).filter(|site| site.accepts_label(label));
    fitting.fold(0, |sum, site| sum.saturating_add(site.room))
}

/// Nodes that jobs which ask for this label may run on.
pub fn sites_for(label: Option<&str>, here: &Site, others: &[Site]) -> u32 {
    let fitting = all_sites(here, others).filter(|site| site.accepts_label(label)).count();
    u32::try_from(fitting).unwrap_or(u32::MAX)
}

/// What a node has said of itself, and what the one that asks knows beside it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NodeLoad {
    /// Jobs it runs at once, at most.
    pub max_parallel: u32,
    /// How many it said that it runs.
    pub said: u32,
    /// How many of those that dispatch here have given it and not heard of.
    pub ours: u32,
    /// How many of ours it cannot have counted when it said so.
    pub since: u32,
}

impl NodeLoad {
    /// How many more it can run.
    pub fn free_slots(self) -> u32 {
        let load = self.said.saturating_add(self.since).max(self.ours);
        self.max_parallel.saturating_sub(load)
    }
}

/// Why a job that asks for `label` has no node, for people. `nodes` are the living ones, with their
/// labels.
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
            // What only waits takes no room.
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
            // It counted them already.
            (4, 3, 3, 0, 1),
            // It said so before they were given to it.
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
        /// A job goes only where it may and where there is room, and is placed whenever it can be; the
        /// sums that limits are made of say the same.
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
