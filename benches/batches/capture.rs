//! Picks up the moments of a hop that the engine and the handlers say at level trace, and what they
//! come to.

use crate::floor::now;
use crate::machine::quantile;
use crate::shape::Shape;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;
use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::filter::{LevelFilter, filter_fn};
use tracing_subscriber::layer::{Context, SubscriberExt as _};
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::SubscriberInitExt as _;

/// What the target of their events is.
const TARGET: &str = "procession::moment";

/// When which row was where.
#[derive(Clone, Default)]
pub(crate) struct Seen(Arc<Mutex<Vec<Moment>>>);

#[derive(Clone)]
struct Moment {
    at: Instant,
    id: i64,
    what: String,
}

/// The moments of one body, in microseconds since the first of all.
#[derive(Clone, Debug, Default)]
struct Body {
    handed: i64,
    claimed: Option<i64>,
    connected: Option<i64>,
    locked: Option<i64>,
    begun: Option<i64>,
    ended: Option<i64>,
    returned: i64,
}

impl Body {
    /// When its handler had it and its claim was committed: a session may be got ready sooner.
    fn start(&self) -> i64 {
        self.claimed.unwrap_or(self.handed)
    }

    /// When its own work was over; what comes after is ours.
    fn end(&self) -> i64 {
        self.ended.unwrap_or(self.returned)
    }
}

/// p50, p99 and the greatest, in microseconds.
pub(crate) type Spread = [i64; 3];

/// What the moments of one run come to; all in microseconds.
#[derive(Clone, Debug, Default)]
pub(crate) struct Hops {
    /// From the end of the last parent's body, or the moment a slot was free if that was later, to the
    /// moment the child's body was handed to its handler.
    pub(crate) latency: Spread,
    /// What that consists of, and what the ways of a body are; p50.
    pub(crate) parts: Vec<(&'static str, Option<i64>)>,
    /// What session, lock and fence take of a body; none where it has no session.
    pub(crate) trust: Option<Spread>,
}

impl Seen {
    /// Listens from now on; warnings go to stderr.
    pub(crate) fn install() -> Self {
        let seen = Self::default();
        let text = tracing_subscriber::fmt::layer()
            .with_writer(std::io::stderr)
            .with_filter(LevelFilter::WARN);
        let moments = seen.clone().with_filter(filter_fn(|meta| meta.target() == TARGET));
        tracing_subscriber::registry().with(text).with(moments).init();
        seen
    }

    fn all(&self) -> MutexGuard<'_, Vec<Moment>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn clear(&self) {
        self.all().clear();
    }

    /// What was seen of a run of `shape`, whose jobs are the rows `ids`, with so many slots.
    pub(crate) fn hops(&self, shape: &Shape, ids: &[i64], slots: usize) -> Hops {
        let moments = std::mem::take(&mut *self.all());
        let Some(origin) = moments.iter().map(|m| m.at).min() else { return Hops::default() };
        let mut bodies: HashMap<i64, Body> = HashMap::new();
        let mut commits = Vec::new();
        for moment in &moments {
            let at = moment.at.saturating_duration_since(origin).as_micros();
            let at = i64::try_from(at).unwrap_or(i64::MAX);
            let body = bodies.entry(moment.id).or_default();
            match moment.what.as_str() {
                "handed" => body.handed = at,
                "claimed" if body.claimed.is_none() => body.claimed = Some(at),
                "connected" => body.connected = Some(at),
                "locked" => body.locked = Some(at),
                "begun" => body.begun = Some(at),
                "ended" => body.ended = Some(at),
                "returned" => body.returned = at,
                "committed" => commits.push(at),
                _ => {}
            }
        }
        commits.sort_unstable();
        let bodies: Vec<Body> =
            ids.iter().map(|id| bodies.get(id).cloned().unwrap_or_default()).collect();
        let mut hops = Hops { trust: trust(&bodies), ..Hops::default() };
        let starts = starts(shape, &bodies, slots);
        let latency: Vec<i64> =
            starts.iter().map(|(body, free)| body.start() - free.end()).collect();
        hops.latency = spread(latency);
        hops.parts = parts(&bodies, &starts, &commits);
        hops
    }
}

/// Every start but the first ones, with the body whose end it had to wait for: the last of its parents,
/// or whoever freed a slot for it later than that.
fn starts<'a>(shape: &Shape, bodies: &'a [Body], slots: usize) -> Vec<(&'a Body, &'a Body)> {
    let mut last: Vec<Option<&Body>> = vec![None; bodies.len()];
    for (parent, child) in &shape.edges {
        let parent = &bodies[*parent];
        if last[*child].is_none_or(|there| there.end() < parent.end()) {
            last[*child] = Some(parent);
        }
    }
    let mut ends: Vec<&Body> = bodies.iter().collect();
    ends.sort_by_key(|body| body.end());
    let mut order: Vec<usize> = (0..bodies.len()).collect();
    order.sort_by_key(|n| bodies[*n].start());
    let waited = order.iter().enumerate().filter_map(|(at, n)| {
        let slot = at.checked_sub(slots).map(|at| ends[at]);
        let free = match (last[*n], slot) {
            (Some(parent), Some(slot)) if slot.end() > parent.end() => slot,
            (Some(parent), _) => parent,
            (None, slot) => slot?,
        };
        Some((&bodies[*n], free))
    });
    waited.collect()
}

fn trust(bodies: &[Body]) -> Option<Spread> {
    // Without what it waited for the commit of its claim, lock in hand.
    let of = |b: &Body| {
        let ready = b.locked? - b.handed;
        Some(ready + b.begun? - b.start().max(b.locked?) + (b.returned - b.ended?))
    };
    let all: Vec<i64> = bodies.iter().filter_map(of).collect();
    (!all.is_empty()).then(|| spread(all))
}

/// The way of a hop, piece by piece.
fn parts(
    bodies: &[Body],
    starts: &[(&Body, &Body)],
    commits: &[i64],
) -> Vec<(&'static str, Option<i64>)> {
    let middle = |mut all: Vec<i64>| (!all.is_empty()).then(|| quantile(&mut all, 500));
    let of =
        |piece: &dyn Fn(&Body) -> Option<i64>| middle(bodies.iter().filter_map(piece).collect());
    let before = |at: i64| commits[..commits.partition_point(|c| *c <= at)].last().copied();
    let commit = |(child, free): &(&Body, &Body)| Some(before(child.start())? - free.returned);
    let start = |(child, _): &(&Body, &Body)| Some(child.start() - before(child.start())?);
    vec![
        ("connect", of(&|b| Some(b.connected? - b.handed))),
        ("lock", of(&|b| Some(b.locked? - b.connected?))),
        ("fence", of(&|b| Some(b.begun? - b.start().max(b.locked?)))),
        ("body", of(&|b| Some(b.end() - b.begun.unwrap_or(b.start())))),
        ("close", of(&|b| Some(b.returned - b.end()))),
        ("commit", middle(starts.iter().filter_map(commit).collect())),
        ("start", middle(starts.iter().filter_map(start).collect())),
    ]
}

fn spread(mut all: Vec<i64>) -> Spread {
    [500, 990, 1_000].map(|at| quantile(&mut all, at))
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Seen {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let mut moment = Moment { at: now(), id: 0, what: String::new() };
        event.record(&mut moment);
        self.all().push(moment);
    }
}

impl Visit for Moment {
    fn record_i64(&mut self, field: &Field, value: i64) {
        if field.name() == "id" {
            self.id = value;
        }
    }

    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        if field.name() == "message" {
            self.what = format!("{value:?}");
        }
    }
}
