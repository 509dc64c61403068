//! Who goes next when more jobs are ready than may run: slots per source, per group and in total.

use crate::domain::dag::Node;
use crate::domain::id::{GroupCode, SourceName};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};

#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    limit: Option<u32>,
    used: u32,
}

impl Slot {
    fn is_free(self) -> bool {
        self.limit.is_none_or(|limit| self.used < limit)
    }
}

/// Which limit is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FullKind {
    /// That of a data source.
    Source,
    /// That of a group.
    Group,
    /// That of the process.
    Total,
}

/// A limit that is reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Full {
    /// Which.
    pub kind: FullKind,
    /// Of which source or group; empty for the total.
    pub name: String,
    /// Slots in use.
    pub used: u32,
    /// Slots there are.
    pub limit: u32,
}

/// Slots in use and their limits.
#[derive(Clone, Debug)]
pub struct Slots {
    total: Slot,
    sources: HashMap<SourceName, Slot>,
    groups: HashMap<GroupCode, Slot>,
}

impl Slots {
    /// `total` jobs at most run at once.
    pub fn new(total: u32) -> Self {
        Self {
            total: Slot { limit: Some(total), used: 0 },
            sources: HashMap::new(),
            groups: HashMap::new(),
        }
    }

    /// Sets the limit of a source; with several batches the last word counts.
    pub fn limit_source(&mut self, source: &SourceName, limit: Option<u32>) {
        self.sources.entry(source.clone()).or_default().limit = limit;
    }

    /// Sets the limit of a group.
    pub fn limit_group(&mut self, group: &GroupCode, limit: Option<u32>) {
        self.groups.entry(group.clone()).or_default().limit = limit;
    }

    /// Whether a job of this group on this source could start now.
    pub fn is_free(&self, group: &GroupCode, source: Option<&SourceName>) -> bool {
        self.total.is_free()
            && self.groups.get(group).is_none_or(|s| s.is_free())
            && source.and_then(|s| self.sources.get(s)).is_none_or(|s| s.is_free())
    }

    /// Takes a slot of each kind.
    pub fn take(&mut self, group: &GroupCode, source: Option<&SourceName>) {
        self.total.used += 1;
        self.groups.entry(group.clone()).or_default().used += 1;
        if let Some(source) = source {
            self.sources.entry(source.clone()).or_default().used += 1;
        }
    }

    /// Gives them back.
    pub fn give_back(&mut self, group: &GroupCode, source: Option<&SourceName>) {
        let less = |slot: &mut Slot| slot.used = slot.used.saturating_sub(1);
        less(&mut self.total);
        self.groups.get_mut(group).map(less);
        source.and_then(|s| self.sources.get_mut(s)).map(less);
    }

    /// Gives everything back; limits stay.
    pub fn clear(&mut self) {
        self.total.used = 0;
        self.sources.values_mut().chain(self.groups.values_mut()).for_each(|slot| slot.used = 0);
    }

    /// What a ready job waits for; `None` when a slot is free.
    pub fn what_is_full(&self, group: &GroupCode, source: Option<&SourceName>) -> Option<Full> {
        let full = |kind, name: &str, slot: Slot| Full {
            kind,
            name: name.to_owned(),
            used: slot.used,
            limit: slot.limit.unwrap_or_default(),
        };
        if let Some(name) = source
            && let Some(slot) = self.sources.get(name).filter(|s| !s.is_free())
        {
            return Some(full(FullKind::Source, name.as_str(), *slot));
        }
        if let Some(slot) = self.groups.get(group).filter(|s| !s.is_free()) {
            return Some(full(FullKind::Group, group.as_str(), *slot));
        }
        (!self.total.is_free()).then(|| full(FullKind::Total, "", self.total))
    }
}

/// Ready jobs of one batch, in a lane per source, so that a full source costs nothing and blocks
/// nobody else: higher priority first, then the order of the batch.
#[derive(Clone, Debug, Default)]
pub struct ReadyList {
    lanes: BTreeMap<Option<SourceName>, BTreeSet<(Reverse<i32>, Node)>>,
}

impl ReadyList {
    /// Adds a ready job.
    pub fn push(&mut self, source: Option<&SourceName>, priority: i32, node: Node) {
        self.lanes.entry(source.cloned()).or_default().insert((Reverse(priority), node));
    }

    /// Takes the best job whose lane is free. Costs the number of sources, not of jobs.
    pub fn pick(&mut self, is_free: impl Fn(Option<&SourceName>) -> bool) -> Option<Node> {
        let best = self
            .lanes
            .iter()
            .filter(|(source, _)| is_free(source.as_ref()))
            .filter_map(|(source, lane)| lane.first().map(|first| (*first, source)))
            .min()?;
        let (first, source) = (best.0, best.1.clone());
        self.lanes.get_mut(&source)?.remove(&first);
        Some(first.1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(word: &str) -> SourceName {
        SourceName::parse(word).expect("source")
    }

    #[test]
    fn a_full_source_blocks_nobody_else() {
        let group = GroupCode::parse("g").expect("group");
        let (slow, fast) = (source("slow"), source("fast"));
        let mut slots = Slots::new(3);
        slots.limit_source(&slow, Some(1));
        let mut ready = ReadyList::default();
        for node in 0..3 {
            ready.push(Some(&slow), 9, Node(node));
        }
        ready.push(Some(&fast), 0, Node(3));
        ready.push(None, 1, Node(4));
        let mut order = Vec::new();
        while let Some(node) = ready.pick(|s| slots.is_free(&group, s)) {
            let lane = [&slow, &slow, &slow, &fast].get(node.at()).copied();
            slots.take(&group, lane);
            order.push(node.0);
        }
        assert_eq!(order, [0, 4, 3]);
        let full = slots.what_is_full(&group, Some(&slow)).expect("full");
        assert_eq!((full.kind, full.used, full.limit), (FullKind::Source, 1, 1));
        let full = slots.what_is_full(&group, None).expect("full");
        assert_eq!((full.kind, full.used, full.limit), (FullKind::Total, 3, 3));
        slots.give_back(&group, Some(&slow));
        assert_eq!(ready.pick(|s| slots.is_free(&group, s)), Some(Node(1)));
    }
}
