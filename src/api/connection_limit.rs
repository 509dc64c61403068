//! Limits connections, so that anonymous clients cannot exhaust them: a maximum number in total and
//! per address, and time limits for each.
//!
//! No authentication is needed here. At the limit, the connection that has waited longest without a
//! request is evicted; one with a request in flight is never closed for another.

use crate::config::{ConnectionLimits, Doorway};
use crate::domain::access::network::address_block;
use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// The address of a connection.
#[derive(Clone, Copy, Debug)]
pub struct Peer(pub SocketAddr);

/// How long a connection waits for a slot before it is refused.
const WAIT_LIMIT: Duration = Duration::from_secs(5);
/// How long a connection without a request is protected: its request may be under way, or unread
/// while this process is busy.
const GRACE: Duration = Duration::from_millis(250);
/// Maximum number of connections that wait for a slot.
const WAITING_MAX: usize = 1_024;

/// One connection, as seen by its task and its requests.
#[derive(Debug)]
pub(super) struct TrackedConnection {
    block: IpAddr,
    /// Whether it is exempt from the limit per address.
    is_proxy: bool,
    /// Whether a request on it was authenticated.
    is_known: AtomicBool,
    activity: Mutex<Activity>,
    /// Cancelled to evict it.
    pub(super) evicted: CancellationToken,
}

/// The activity of a connection.
#[derive(Clone, Copy, Debug)]
struct Activity {
    requests: u64,
    in_flight: u32,
    /// Since when no request is in flight.
    idle_since: Instant,
    /// When the first byte of the next request arrived.
    head_since: Option<Instant>,
    /// Since when the client accepts no bytes of an answer.
    blocked_since: Option<Instant>,
}

impl TrackedConnection {
    fn activity(&self) -> MutexGuard<'_, Activity> {
        self.activity.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that a request on it was authenticated.
    pub(super) fn mark_known(&self) {
        self.is_known.store(true, Ordering::Relaxed);
    }

    fn is_known(&self) -> bool {
        self.is_known.load(Ordering::Relaxed)
    }

    /// Notes received bytes.
    pub(super) fn note_read(&self) {
        let mut activity = self.activity();
        if activity.in_flight == 0 && activity.head_since.is_none() {
            activity.head_since = Some(Instant::now());
        }
    }

    /// Notes whether the client accepts bytes of an answer.
    pub(super) fn note_write(&self, is_blocked: bool) {
        let mut activity = self.activity();
        match is_blocked {
            true if activity.blocked_since.is_none() => {
                activity.blocked_since = Some(Instant::now());
            }
            true => {}
            false => activity.blocked_since = None,
        }
    }

    /// Marks a request as in flight until the guard is dropped.
    pub(super) fn begin_request(self: &Arc<Self>) -> InFlight {
        let mut activity = self.activity();
        activity.requests += 1;
        activity.in_flight += 1;
        activity.head_since = None;
        InFlight(self.clone())
    }

    /// Whether it has exceeded a time limit.
    pub(super) fn is_overdue(&self, limits: &ConnectionLimits, now: Instant) -> bool {
        let activity = *self.activity();
        let over = |since: Instant, most: Duration| now.duration_since(since) >= most;
        if activity.blocked_since.is_some_and(|at| over(at, limits.stalled_timeout)) {
            return true;
        }
        if activity.in_flight > 0 {
            return false;
        }
        let is_first = activity.requests == 0;
        activity.head_since.is_some_and(|at| over(at, limits.header_timeout))
            || (is_first && over(activity.idle_since, limits.header_timeout))
            || over(activity.idle_since, limits.idle_timeout)
    }
}

/// A request in flight on a connection.
#[derive(Debug)]
pub(super) struct InFlight(Arc<TrackedConnection>);

impl Drop for InFlight {
    fn drop(&mut self) {
        let mut activity = self.0.activity();
        activity.in_flight = activity.in_flight.saturating_sub(1);
        activity.idle_since = Instant::now();
    }
}

/// The connections of one listener.
#[derive(Debug)]
pub(super) struct ConnectionTable {
    limits: ConnectionLimits,
    doorway: Doorway,
    open: Mutex<OpenConnections>,
    room: Notify,
}

#[derive(Debug, Default)]
struct OpenConnections {
    last_key: u64,
    waiting: usize,
    all: HashMap<u64, Arc<TrackedConnection>>,
}

/// A slot in the table, until it is dropped.
#[derive(Debug)]
pub(super) struct ConnectionPlace {
    table: Arc<ConnectionTable>,
    key: u64,
    pub(super) connection: Arc<TrackedConnection>,
}

impl Drop for ConnectionPlace {
    fn drop(&mut self) {
        self.table.lock_open().all.remove(&self.key);
        self.table.room.notify_one();
    }
}

impl OpenConnections {
    /// Frees a slot for a connection of this address block, if possible.
    fn make_room(&mut self, limits: &ConnectionLimits, block: IpAddr, is_proxy: bool) -> bool {
        let same = |c: &TrackedConnection| !is_proxy && !c.is_proxy && c.block == block;
        let stranger = |c: &TrackedConnection| !c.is_known();
        let count =
            |of: &dyn Fn(&TrackedConnection) -> bool| self.all.values().filter(|c| of(c)).count();
        let victims: &dyn Fn(&TrackedConnection) -> bool = if count(&same) >= limits.per_address {
            &same
        } else if count(&stranger) >= limits.without_login {
            &stranger
        } else if self.all.len() >= limits.total {
            &|_: &TrackedConnection| true
        } else {
            return true;
        };
        let idle = self.all.iter().filter(|(_, c)| victims(c)).filter_map(|(key, c)| {
            let activity = *c.activity();
            let is_idle = activity.in_flight == 0 && activity.idle_since.elapsed() >= GRACE;
            is_idle.then_some(((c.is_known(), activity.idle_since), *key))
        });
        let Some((_, key)) = idle.min_by_key(|(order, _)| *order) else { return false };
        if let Some(victim) = self.all.remove(&key) {
            victim.evicted.cancel();
        }
        true
    }
}

impl ConnectionTable {
    pub(super) fn new(limits: ConnectionLimits, doorway: Doorway) -> Arc<Self> {
        let (open, room) = (Mutex::default(), Notify::new());
        Arc::new(Self { limits, doorway, open, room })
    }

    fn lock_open(&self) -> MutexGuard<'_, OpenConnections> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn limits(&self) -> &ConnectionLimits {
        &self.limits
    }

    /// A slot for a connection; `None` when all stay in use for some seconds.
    pub(super) async fn enter(self: &Arc<Self>, address: IpAddr) -> Option<ConnectionPlace> {
        if let Some(place) = self.try_enter(address) {
            return Some(place);
        }
        {
            let mut open = self.lock_open();
            if open.waiting >= WAITING_MAX {
                return None;
            }
            open.waiting += 1;
        }
        let wait = async {
            loop {
                let room = self.room.notified();
                if let Some(place) = self.try_enter(address) {
                    return place;
                }
                // The end of a request is not signalled, and the signalled waiter may be of another
                // address.
                let _either = tokio::time::timeout(Duration::from_millis(100), room).await;
            }
        };
        let entered = tokio::time::timeout(WAIT_LIMIT, wait).await.ok();
        self.lock_open().waiting -= 1;
        entered
    }

    fn try_enter(self: &Arc<Self>, address: IpAddr) -> Option<ConnectionPlace> {
        let (block, is_proxy) = (address_block(address), self.doorway.trusts(address));
        let mut open = self.lock_open();
        if !open.make_room(&self.limits, block, is_proxy) {
            return None;
        }
        open.last_key += 1;
        let key = open.last_key;
        let activity = Activity {
            requests: 0,
            in_flight: 0,
            idle_since: Instant::now(),
            head_since: None,
            blocked_since: None,
        };
        let connection = Arc::new(TrackedConnection {
            block,
            is_proxy,
            is_known: AtomicBool::new(false),
            activity: Mutex::new(activity),
            evicted: CancellationToken::new(),
        });
        open.all.insert(key, connection.clone());
        Some(ConnectionPlace { table: self.clone(), key, connection })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(total: usize, per_address: usize, without_login: usize) -> ConnectionLimits {
        ConnectionLimits {
            total,
            per_address,
            without_login,
            header_timeout: Duration::from_secs(10),
            idle_timeout: Duration::from_secs(60),
            stalled_timeout: Duration::from_secs(30),
        }
    }

    fn address(text: &str) -> IpAddr {
        text.parse().expect("an address")
    }

    #[tokio::test]
    async fn the_longest_idle_connection_of_the_address_makes_room() {
        let table = ConnectionTable::new(limits(10, 2, 10), Doorway::default());
        let enter = async |text: &str| table.enter(address(text)).await;
        let first = enter("10.0.0.1").await.expect("room");
        let other = enter("10.0.0.2").await.expect("room");
        tokio::time::sleep(Duration::from_millis(5)).await;
        let second = enter("10.0.0.1").await.expect("room");
        let busy = second.connection.begin_request();
        let third = enter("10.0.0.1").await.expect("the first makes room");
        let evicted = |place: &ConnectionPlace| place.connection.evicted.is_cancelled();
        assert!(evicted(&first) && !evicted(&other) && !evicted(&second) && !evicted(&third));
        let third_busy = third.connection.begin_request();
        assert!(table.try_enter(address("10.0.0.1")).is_none(), "both have a request under way");
        assert!(table.try_enter(address("10.0.0.2")).is_some());
        assert!(!evicted(&second) && !evicted(&third));
        drop((busy, third_busy));
        assert!(enter("10.0.0.1").await.is_some());
    }

    #[tokio::test]
    async fn a_connection_that_has_just_come_makes_no_room() {
        let table = ConnectionTable::new(limits(10, 1, 10), Doorway::default());
        let first = table.try_enter(address("10.0.0.1")).expect("room");
        assert!(table.try_enter(address("10.0.0.1")).is_none(), "its request may be on the way");
        assert!(!first.connection.evicted.is_cancelled());
        let second = table.enter(address("10.0.0.1")).await.expect("room a moment later");
        assert!(
            first.connection.evicted.is_cancelled() && !second.connection.evicted.is_cancelled()
        );
    }

    #[tokio::test]
    async fn strangers_make_room_before_those_who_are_known() {
        let table = ConnectionTable::new(limits(2, 2, 2), Doorway::default());
        let known = table.enter(address("10.0.0.1")).await.expect("room");
        known.connection.mark_known();
        tokio::time::sleep(Duration::from_millis(5)).await;
        let stranger = table.enter(address("10.0.0.2")).await.expect("room");
        let third = table.enter(address("10.0.0.3")).await.expect("the stranger makes room");
        assert!(stranger.connection.evicted.is_cancelled());
        assert!(!known.connection.evicted.is_cancelled());
        drop(third);
    }

    #[tokio::test]
    async fn one_network_of_ipv6_counts_as_one_address() {
        let table = ConnectionTable::new(limits(10, 1, 10), Doorway::default());
        let first = table.enter(address("fd00:1:2:3::1")).await.expect("room");
        let _second = table.enter(address("fd00:1:2:3:ffff::9")).await.expect("room");
        assert!(first.connection.evicted.is_cancelled());
        assert_eq!(address_block(address("::ffff:10.0.0.1")), address("10.0.0.1"));
    }

    #[tokio::test]
    async fn time_runs_out_for_a_head_and_between_requests_and_not_in_one() {
        let limits = limits(4, 4, 4);
        let table = ConnectionTable::new(limits, Doorway::default());
        let place = table.enter(address("10.0.0.1")).await.expect("room");
        let is_overdue = |seconds: u64| {
            place.connection.is_overdue(&limits, Instant::now() + Duration::from_secs(seconds))
        };
        assert!(!is_overdue(9) && is_overdue(10), "nothing was asked");
        let request = place.connection.begin_request();
        assert!(!is_overdue(3_600), "a stream may last");
        drop(request);
        assert!(!is_overdue(59) && is_overdue(60), "idle");
        place.connection.note_read();
        assert!(!is_overdue(9) && is_overdue(10), "a head that does not end");
        let request = place.connection.begin_request();
        place.connection.note_write(true);
        assert!(!is_overdue(29) && is_overdue(30), "the client reads nothing");
        place.connection.note_write(false);
        assert!(!is_overdue(30));
        drop(request);
    }
}
