//! Decides which executor of a group receives a run. Inputs: the strategy, the sorted addresses and the usage
//! statistics of the job.

use crate::domain::time::Millis;
use md5::{Digest as _, Md5};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// How an executor is chosen, with XXL-JOB's names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum RouteStrategy {
    /// The first address in alphabetical order.
    #[default]
    First,
    /// The last address.
    Last,
    /// Round robin.
    Round,
    /// A random one.
    Random,
    /// Always the same one for a job; for most jobs it does not change when an executor joins or leaves.
    ConsistentHash,
    /// The one that this job used least often during the last day.
    LeastFrequentlyUsed,
    /// The one that this job used least recently.
    LeastRecentlyUsed,
    /// The first one that answers.
    Failover,
    /// The first one that is not running this job.
    Busyover,
    /// All of them, each with one shard.
    ShardingBroadcast,
}

impl RouteStrategy {
    /// Every strategy.
    pub const ALL: [Self; 10] = [
        Self::First,
        Self::Last,
        Self::Round,
        Self::Random,
        Self::ConsistentHash,
        Self::LeastFrequentlyUsed,
        Self::LeastRecentlyUsed,
        Self::Failover,
        Self::Busyover,
        Self::ShardingBroadcast,
    ];

    /// XXL-JOB's name of the strategy.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::First => "FIRST",
            Self::Last => "LAST",
            Self::Round => "ROUND",
            Self::Random => "RANDOM",
            Self::ConsistentHash => "CONSISTENT_HASH",
            Self::LeastFrequentlyUsed => "LEAST_FREQUENTLY_USED",
            Self::LeastRecentlyUsed => "LEAST_RECENTLY_USED",
            Self::Failover => "FAILOVER",
            Self::Busyover => "BUSYOVER",
            Self::ShardingBroadcast => "SHARDING_BROADCAST",
        }
    }

    /// Parses a strategy.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|s| s.as_str() == word)
    }
}

impl fmt::Display for RouteStrategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// Usage statistics of a job, over all processes.
#[derive(Clone, Debug, Default)]
pub struct RouteState {
    /// The number by which executors identify the job.
    pub job_id: i64,
    /// Number of round-robin runs so far.
    pub rounds: i64,
    /// Uses of each address by the job.
    pub uses: BTreeMap<String, Use>,
    /// A random number.
    pub roll: u64,
}

/// Uses of one address by a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Use {
    /// Number of uses since the counter was reset.
    pub uses: i64,
    /// Time of the last use.
    pub used: Millis,
}

/// The request that tests an address before a run is sent there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Test {
    /// Whether the executor answers.
    Beats,
    /// Whether the executor is not running this job.
    IsIdle,
}

/// Where a run is sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Choice {
    /// Nowhere: there is no executor.
    Nowhere,
    /// To this address.
    To(String),
    /// To the first of these that passes the test.
    FirstThat(Test, Vec<String>),
    /// To all of these, each with one shard.
    ToAll(Vec<String>),
}

/// Chooses among sorted addresses.
pub fn choose(strategy: RouteStrategy, addresses: &[String], state: &RouteState) -> Choice {
    let Some(first) = addresses.first() else { return Choice::Nowhere };
    let count = addresses.len();
    let at = |place: usize| Choice::To(addresses[place % count].clone());
    let small = |n: u64| usize::try_from(n % count as u64).unwrap_or(0);
    // Of equal keys the first wins.
    let least = |key: &dyn Fn(&String) -> i64| {
        let least = addresses.iter().min_by_key(|address| key(address)).unwrap_or(first);
        Choice::To(least.clone())
    };
    match strategy {
        RouteStrategy::First => at(0),
        RouteStrategy::Last => at(count - 1),
        RouteStrategy::Round => at(small(state.rounds.unsigned_abs())),
        RouteStrategy::Random => at(small(state.roll)),
        RouteStrategy::ConsistentHash => Choice::To(on_ring(addresses, state.job_id).clone()),
        RouteStrategy::LeastFrequentlyUsed => {
            least(&|address| state.uses.get(address).map_or(0, |used| used.uses))
        }
        RouteStrategy::LeastRecentlyUsed => {
            least(&|address| state.uses.get(address).map_or(i64::MIN, |used| used.used.0))
        }
        RouteStrategy::Failover => Choice::FirstThat(Test::Beats, addresses.to_vec()),
        RouteStrategy::Busyover => Choice::FirstThat(Test::IsIdle, addresses.to_vec()),
        RouteStrategy::ShardingBroadcast => Choice::ToAll(addresses.to_vec()),
    }
}

/// Positions per address on the hash ring.
const NODES: u32 = 100;

/// The address at or after the job's position on the ring. XXL-JOB's algorithm, so that a job migrated under the same
/// number keeps its executor.
fn on_ring(addresses: &[String], job_id: i64) -> &String {
    let mut ring = BTreeMap::new();
    for address in addresses {
        for node in 0..NODES {
            ring.insert(place(&format!("SHARD-{address}-NODE-{node}")), address);
        }
    }
    let job = place(&job_id.to_string());
    let after = ring.range(job..).next().or_else(|| ring.iter().next());
    after.map_or(&addresses[0], |(_, address)| address)
}

/// The first four bytes of the MD5, little-endian.
fn place(key: &str) -> u32 {
    let digest = Md5::digest(key.as_bytes());
    u32::from_le_bytes([digest[0], digest[1], digest[2], digest[3]])
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn addresses(count: usize) -> Vec<String> {
        (0..count).map(|n| format!("http://10.0.0.{n}:9999")).collect()
    }

    fn used(all: &[(usize, i64, i64)]) -> BTreeMap<String, Use> {
        let of = |(n, uses, at): &(usize, i64, i64)| {
            (format!("http://10.0.0.{n}:9999"), Use { uses: *uses, used: Millis(*at) })
        };
        all.iter().map(of).collect()
    }

    #[test]
    fn each_strategy_chooses_its_own_way() {
        use RouteStrategy as S;
        let all = addresses(3);
        let uses = used(&[(0, 5, 30), (1, 2, 90), (2, 2, 10)]);
        let state = RouteState { job_id: 7, rounds: 4, uses, roll: 5 };
        let to = |n: usize| Choice::To(all[n].clone());
        for (strategy, wanted) in [
            (S::First, to(0)),
            (S::Last, to(2)),
            (S::Round, to(1)),
            (S::Random, to(2)),
            (S::LeastFrequentlyUsed, to(1)),
            (S::LeastRecentlyUsed, to(2)),
            (S::Failover, Choice::FirstThat(Test::Beats, all.clone())),
            (S::Busyover, Choice::FirstThat(Test::IsIdle, all.clone())),
            (S::ShardingBroadcast, Choice::ToAll(all.clone())),
        ] {
            assert_eq!(choose(strategy, &all, &state), wanted, "{strategy}");
        }
        for strategy in S::ALL {
            assert_eq!(choose(strategy, &[], &state), Choice::Nowhere, "{strategy}");
        }
        // An address that was never used comes first.
        let uses = used(&[(0, 5, 30), (1, 2, 90)]);
        let state = RouteState { uses, ..state };
        for strategy in [S::LeastFrequentlyUsed, S::LeastRecentlyUsed] {
            assert_eq!(choose(strategy, &all, &state), to(2), "{strategy}");
        }
    }

    /// Positions computed with another program: `printf %s KEY | md5sum`, first four bytes, little-endian.
    #[test]
    fn places_on_the_ring_are_those_of_md5() {
        for (key, wanted) in VECTORS {
            assert_eq!(place(key), *wanted, "{key}");
        }
    }

    const VECTORS: &[(&str, u32)] = &[
        ("", 0xd98c_1dd4),
        ("1", 0x3842_cac4),
        ("7", 0x5fe4_148f),
        ("SHARD-http://10.0.0.1:9999-NODE-0", 0x9296_eab3),
        ("SHARD-http://10.0.0.1:9999-NODE-99", 0x3c14_0cac),
    ];

    #[test]
    fn a_job_keeps_its_address_when_another_comes() {
        let (four, five) = (addresses(4), addresses(5));
        let mut moved = 0;
        let mut counts = BTreeMap::new();
        for job_id in 1..=1_000 {
            let (was, is) = (on_ring(&four, job_id), on_ring(&five, job_id));
            *counts.entry(was.clone()).or_insert(0) += 1;
            if was != is {
                assert_eq!(is, &five[4], "job {job_id} went to one that was there before");
                moved += 1;
            }
        }
        assert!((100..350).contains(&moved), "{moved}");
        assert!(counts.len() == 4 && counts.values().all(|n| *n > 100), "{counts:?}");
    }

    proptest! {
        #[test]
        fn what_is_chosen_is_there(
            strategy in proptest::sample::select(RouteStrategy::ALL.to_vec()),
            count in 1_usize..20,
            job_id in any::<i64>(),
            rounds in any::<i64>(),
            roll in any::<u64>(),
        ) {
            let all = addresses(count);
            let state = RouteState { job_id, rounds, roll, ..RouteState::default() };
            match choose(strategy, &all, &state) {
                Choice::Nowhere => prop_assert!(false, "there are executors"),
                Choice::To(one) => prop_assert!(all.contains(&one)),
                Choice::FirstThat(_, some) | Choice::ToAll(some) => prop_assert_eq!(some, all),
            }
        }

        #[test]
        fn turns_go_round(count in 1_usize..9, start in 0_i64..1_000_000) {
            let all = addresses(count);
            let mut seen = std::collections::BTreeSet::new();
            for rounds in start..start + i64::try_from(count).expect("small") {
                let state = RouteState { rounds, ..RouteState::default() };
                seen.insert(format!("{:?}", choose(RouteStrategy::Round, &all, &state)));
            }
            prop_assert_eq!(seen.len(), count);
        }
    }
}
