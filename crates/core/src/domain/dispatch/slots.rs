//! Accounting of the resources that running jobs occupy: slots in total, per group, source, host
//! and pool, and locks.

use crate::domain::batch::Snapshot;
use crate::domain::id::{GroupCode, SourceName};
use crate::domain::job::JobDef;
use crate::domain::job::pool::LockMode;
use std::collections::HashMap;

/// A limited resource.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Resource {
    /// Slots of all nodes that run jobs without a label.
    Total,
    /// Slots of all nodes with a label.
    Label(String),
    /// Nodes that run jobs with this label, or without one, regardless of their slots.
    Node(Option<String>),
    /// Slots of a group.
    Group(GroupCode),
    /// Slots of a data source.
    Source(SourceName),
    /// Slots of a host that HTTP jobs call.
    Host(String),
    /// Slots of a pool.
    Pool(String),
    /// A lock: an exclusive holder takes all of it, a shared holder one part.
    Lock(String),
}

/// Parts of a lock: more than there can be jobs that share it.
const LOCK_PARTS: u32 = u32::MAX;

/// The resources that a job occupies while it runs; computed once per job.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SlotNeeds(Vec<(Resource, u32)>);

impl Resource {
    /// Whether it is capacity of nodes rather than something used there. Such capacity is never
    /// reserved: its use is decided when it is free.
    pub fn is_place(&self) -> bool {
        match self {
            Self::Total | Self::Label(_) | Self::Node(_) => true,
            Self::Group(_) | Self::Source(_) | Self::Host(_) | Self::Pool(_) | Self::Lock(_) => {
                false
            }
        }
    }
}

impl SlotNeeds {
    /// No resources: a job that only waits.
    pub fn empty() -> Self {
        Self::default()
    }

    /// Only presence on a node: a job that waits there for something.
    pub fn node_only(label: Option<&str>) -> Self {
        Self(vec![(Resource::Node(label.map(str::to_owned)), 1)])
    }

    /// The node resource among the needs, if any.
    pub fn place(&self) -> Option<&Resource> {
        self.0.iter().map(|(what, _)| what).find(|what| what.is_place())
    }

    /// The needs of `job`: one slot of all nodes or of those with its label, of its group, source
    /// and host, the weights of its pools, its locks. An executor job needs only presence on a
    /// node.
    pub fn for_job(job: &JobDef) -> Self {
        let is_elsewhere = job.executor.is_some() || job.is_submitted();
        let place = match (is_elsewhere, job.worker.clone()) {
            (true, label) => Resource::Node(label),
            (false, Some(label)) => Resource::Label(label),
            (false, None) => Resource::Total,
        };
        let mut all = vec![(place, 1), (Resource::Group(job.group.clone()), 1)];
        all.extend(job.source.clone().map(|s| (Resource::Source(s), 1)));
        all.extend(job.called_host().map(|host| (Resource::Host(host.to_owned()), 1)));
        all.extend(job.pools.iter().map(|p| (Resource::Pool(p.pool.clone()), p.weight)));
        all.extend(job.locks.iter().map(|l| {
            let parts = match l.mode {
                LockMode::Exclusive => LOCK_PARTS,
                LockMode::Shared => 1,
            };
            (Resource::Lock(l.lock.clone()), parts)
        }));
        Self(all)
    }

    /// Each resource with its amount.
    pub fn iter(&self) -> impl Iterator<Item = (&Resource, u32)> {
        self.0.iter().map(|(what, amount)| (what, *amount))
    }

    /// The needed amount of `what`.
    pub fn amount_of(&self, what: &Resource) -> u32 {
        self.0.iter().find(|(w, _)| w == what).map_or(0, |(_, amount)| *amount)
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct SlotUsage {
    limit: Option<u32>,
    used: u64,
}

/// A limit that is reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Full {
    /// The resource.
    pub what: Resource,
    /// Slots in use.
    pub used: u64,
    /// The limit.
    pub limit: u32,
    /// Slots that the job needs.
    pub needed: u32,
}

/// Slots in use and their limits.
#[derive(Clone, Debug)]
pub struct Slots {
    slots: HashMap<Resource, SlotUsage>,
}

impl Slots {
    /// Starts with the limit `total` on all running jobs.
    pub fn new(total: u32) -> Self {
        let total = SlotUsage { limit: Some(total), used: 0 };
        Self { slots: HashMap::from([(Resource::Total, total)]) }
    }

    /// Sets a limit; when several batches set it, the last one wins.
    pub fn limit(&mut self, what: Resource, limit: Option<u32>) {
        self.slots.entry(what).or_default().limit = limit;
    }

    /// Sets the limit of a node resource so that `room` slots are free, whatever is in use.
    pub fn offer(&mut self, what: Resource, room: u32) {
        let slot = self.slots.entry(what).or_default();
        slot.limit = Some(u32::try_from(slot.used).unwrap_or(u32::MAX).saturating_add(room));
    }

    /// Sets the limits that a batch's definition names.
    pub fn limit_as(&mut self, snapshot: &Snapshot) {
        let group = &snapshot.group;
        self.limit(Resource::Group(group.code.clone()), group.max_parallel);
        for source in &snapshot.sources {
            self.limit(Resource::Source(source.name.clone()), source.max_parallel);
        }
        for host in &snapshot.shared.hosts {
            self.limit(Resource::Host(host.name.clone()), host.max_parallel);
        }
        for pool in &snapshot.shared.pools {
            self.limit(Resource::Pool(pool.name.clone()), Some(pool.slots));
        }
    }

    fn slot_for(&self, what: &Resource) -> SlotUsage {
        let mut slot = self.slots.get(what).copied().unwrap_or_default();
        if matches!(what, Resource::Lock(_)) {
            slot.limit = Some(LOCK_PARTS);
        }
        slot
    }

    /// Whether `amount` more of `what` may be taken while `aside` is reserved for others. A job
    /// that needs more than the limit (the pool was reduced since) needs all of it; otherwise it
    /// would wait forever.
    pub fn has_room(&self, what: &Resource, amount: u32, aside: u64) -> bool {
        let slot = self.slot_for(what);
        slot.limit.is_none_or(|limit| {
            let amount = if what.is_place() { amount } else { amount.min(limit) };
            slot.used + aside + u64::from(amount) <= u64::from(limit)
        })
    }

    /// Whether a job with these needs could start now.
    pub fn is_free(&self, needs: &SlotNeeds) -> bool {
        needs.iter().all(|(what, amount)| self.has_room(what, amount, 0))
    }

    /// Takes everything that a job needs.
    pub fn acquire(&mut self, needs: &SlotNeeds) {
        for (what, amount) in needs.iter() {
            match self.slots.get_mut(what) {
                Some(slot) => slot.used += u64::from(amount),
                None => self.slots.entry(what.clone()).or_default().used = amount.into(),
            }
        }
    }

    /// Releases it.
    pub fn give_back(&mut self, needs: &SlotNeeds) {
        for (what, amount) in needs.iter() {
            if let Some(slot) = self.slots.get_mut(what) {
                slot.used = slot.used.saturating_sub(amount.into());
            }
        }
    }

    /// Releases everything; limits are kept.
    pub fn clear(&mut self) {
        self.slots.values_mut().for_each(|slot| slot.used = 0);
    }

    /// The resource that blocks a ready job; `None` when it could start. Specific resources come
    /// first: a lock or a pool explains more than "in total".
    pub fn what_is_full(&self, needs: &SlotNeeds) -> Option<Full> {
        let full = |(what, needed): (&Resource, u32)| {
            let slot = self.slot_for(what);
            let limit = slot.limit.filter(|_| !self.has_room(what, needed, 0))?;
            Some(Full { what: what.clone(), used: slot.used, limit, needed })
        };
        needs.0.iter().rev().find_map(|(what, amount)| full((what, *amount)))
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use crate::domain::id::{JobCode, JobType};
    use crate::domain::job::pool::{LockUse, PoolUse};
    use proptest::prelude::*;

    /// A job that uses pools and locks.
    pub fn user(pools: &[(&str, u32)], locks: &[(&str, LockMode)]) -> JobDef {
        let mut job = JobDef::with_defaults(
            JobCode::parse("J").expect("code"),
            GroupCode::parse("g").expect("group"),
            JobType::parse("NOOP").expect("type"),
        );
        let pool = |(pool, weight): &(&str, u32)| PoolUse { pool: (*pool).into(), weight: *weight };
        job.pools = pools.iter().map(pool).collect();
        let lock = |(lock, mode): &(&str, LockMode)| LockUse { lock: (*lock).into(), mode: *mode };
        job.locks = locks.iter().map(lock).collect();
        job
    }

    #[test]
    fn what_an_executor_runs_takes_pools_and_no_slot_of_a_process() {
        let mut job = user(&[("P", 2)], &[("A", LockMode::Shared)]);
        let call = serde_json::json!({"app": "pay-executor", "handler": "h"});
        job.executor = serde_json::from_value(call).expect("a call");
        let needs = SlotNeeds::for_job(&job);
        assert_eq!(needs.place(), Some(&Resource::Node(None)));
        assert_eq!(needs.amount_of(&Resource::Total), 0);
        for (what, amount) in [
            (Resource::Pool("P".into()), 2),
            (Resource::Lock("A".into()), 1),
            (Resource::Group(job.group.clone()), 1),
        ] {
            assert_eq!(needs.amount_of(&what), amount, "{what:?}");
        }
        job.worker = Some("gpu".to_owned());
        assert_eq!(SlotNeeds::for_job(&job).place(), Some(&Resource::Node(Some("gpu".to_owned()))));
    }

    #[test]
    fn a_lock_is_held_alone_or_shared() {
        let [alone, shared] = [LockMode::Exclusive, LockMode::Shared]
            .map(|mode| SlotNeeds::for_job(&user(&[], &[("GL", mode)])));
        let other = SlotNeeds::for_job(&user(&[], &[("AP", LockMode::Exclusive)]));
        let mut slots = Slots::new(9);
        slots.acquire(&shared);
        assert!(slots.is_free(&shared) && slots.is_free(&other) && !slots.is_free(&alone));
        slots.acquire(&shared);
        slots.give_back(&shared);
        assert!(!slots.is_free(&alone), "one of the two is left");
        slots.give_back(&shared);
        slots.acquire(&alone);
        assert!(!slots.is_free(&shared) && !slots.is_free(&alone) && slots.is_free(&other));
        let full = slots.what_is_full(&shared).expect("full");
        assert_eq!(full.what, Resource::Lock("GL".into()));
    }

    #[test]
    fn a_weight_above_a_pool_that_shrank_takes_all_of_it() {
        let (heavy, light) = (
            SlotNeeds::for_job(&user(&[("P", 4)], &[])),
            SlotNeeds::for_job(&user(&[("P", 1)], &[])),
        );
        let mut slots = Slots::new(9);
        slots.limit(Resource::Pool("P".into()), Some(2));
        assert!(slots.is_free(&heavy));
        slots.acquire(&light);
        assert!(slots.is_free(&light) && !slots.is_free(&heavy));
        slots.give_back(&light);
        slots.acquire(&heavy);
        assert!(!slots.is_free(&light));
        slots.give_back(&heavy);
        assert!(slots.is_free(&heavy));
    }

    #[test]
    fn what_is_full_names_the_narrowest() {
        let mut slots = Slots::new(1);
        slots.limit(Resource::Pool("P".into()), Some(4));
        let needs = SlotNeeds::for_job(&user(&[("P", 3)], &[]));
        slots.acquire(&needs);
        let full = slots.what_is_full(&needs).expect("full");
        let pool = Resource::Pool("P".into());
        assert_eq!(full, Full { what: pool, used: 3, limit: 4, needed: 3 });
        let full = slots.what_is_full(&SlotNeeds::for_job(&user(&[], &[]))).expect("full");
        assert_eq!((full.what, full.used, full.limit), (Resource::Total, 1, 1));
        assert_eq!(slots.what_is_full(&SlotNeeds::empty()), None);
    }

    proptest! {
        /// Releasing what was taken restores the state, in any order.
        #[test]
        fn giving_back_undoes_taking(
            weights in prop::collection::vec((0usize..3, 1u32..5, prop::bool::ANY), 1..8),
            order in prop::collection::vec(0usize..8, 8),
        ) {
            let names = ["P", "Q", "R"];
            let all: Vec<SlotNeeds> = weights.iter().map(|(pool, weight, alone)| {
                let mode = if *alone { LockMode::Exclusive } else { LockMode::Shared };
                SlotNeeds::for_job(&user(&[(names[*pool], *weight)], &[(names[*pool], mode)]))
            }).collect();
            let mut slots = Slots::new(100);
            all.iter().for_each(|needs| slots.acquire(needs));
            let mut left: Vec<&SlotNeeds> = all.iter().collect();
            for pick in order {
                if left.is_empty() { break; }
                slots.give_back(left.remove(pick % left.len()));
            }
            left.into_iter().for_each(|needs| slots.give_back(needs));
            prop_assert!(slots.slots.values().all(|slot| slot.used == 0));
        }
    }
}
