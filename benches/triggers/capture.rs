//! Picks up what the trigger core says of its passes and firings, which is finer than its meters.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;
use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber};
use tracing_subscriber::layer::{Context, SubscriberExt as _};
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{EnvFilter, Layer};

/// One pass under the lock.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Pass {
    pub(crate) rows: i64,
    pub(crate) statements: i64,
    pub(crate) wait_ms: i64,
    pub(crate) hold_ms: i64,
}

#[derive(Default)]
struct Log {
    passes: Vec<Pass>,
    /// How long after the moment in its rows each group was durable.
    groups: HashMap<i64, i64>,
}

/// What was picked up.
#[derive(Clone)]
pub(crate) struct Seen {
    log: Arc<Mutex<Log>>,
    /// Firings that were durable so far.
    fired: Arc<watch::Sender<i64>>,
}

impl Seen {
    fn log(&self) -> MutexGuard<'_, Log> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn clear(&self) {
        *self.log() = Log::default();
        self.fired.send_replace(0);
    }

    pub(crate) fn passes(&self) -> Vec<Pass> {
        self.log().passes.clone()
    }

    /// How many milliseconds after `fired_at` a row with that moment was durable, at most.
    pub(crate) fn commit_ms(&self, fired_at: i64) -> i64 {
        self.log().groups.get(&fired_at).copied().unwrap_or(0)
    }

    /// Returns when so many firings are durable.
    pub(crate) async fn fired(&self, count: u32) {
        let mut fired = self.fired.subscribe();
        if fired.wait_for(|n| *n >= i64::from(count)).await.is_err() {
            std::future::pending().await
        }
    }
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Seen {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        if !event.metadata().target().starts_with("procession::engine::trigger") {
            return;
        }
        let mut said = Said::default();
        event.record(&mut said);
        let of = |name: &str| said.numbers.get(name).copied().unwrap_or(0);
        match said.message.as_str() {
            "a pass" => self.log().passes.push(Pass {
                rows: of("rows"),
                statements: of("statements"),
                wait_ms: of("wait_ms"),
                hold_ms: of("hold_ms"),
            }),
            "fired together" => {
                let took = of("took_ms");
                let mut log = self.log();
                let known = log.groups.entry(of("at")).or_default();
                *known = took.max(*known);
                drop(log);
                self.fired.send_modify(|n| *n += of("found"));
            }
            _ => {}
        }
    }
}

#[derive(Default)]
struct Said {
    message: String,
    numbers: HashMap<&'static str, i64>,
}

impl Visit for Said {
    fn record_i64(&mut self, field: &Field, value: i64) {
        self.numbers.insert(field.name(), value);
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.numbers.insert(field.name(), i64::try_from(value).unwrap_or(i64::MAX));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        if field.name() == "message" {
            self.message = format!("{value:?}");
        }
    }
}

/// Listens from now on; warnings go to stderr.
pub(crate) fn install() -> Seen {
    let seen = Seen { log: Arc::default(), fired: Arc::new(watch::Sender::new(0)) };
    let text = tracing_subscriber::fmt::layer()
        .with_writer(std::io::stderr)
        .with_filter(EnvFilter::new("warn"));
    let core = EnvFilter::new("procession::engine::trigger=debug");
    tracing_subscriber::registry().with(text).with(seen.clone().with_filter(core)).init();
    seen
}
