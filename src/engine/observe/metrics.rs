//! The metrics of this process, for Prometheus. Other parts record plain values; the HTTP server
//! renders the text.
//!
//! No label value comes from users: each set is closed, so that a year of batches creates no more
//! series than a day of them.

mod audit_chain;
mod certificates;
mod cluster;
mod database;
mod outbox;
mod process;
mod retention;
mod spans;

use crate::domain::access::certificate_expiry::CertificateEnd;
use crate::domain::cluster::lease::Uptime;
use crate::store::Counts;
use audit_chain::AuditChain;
pub use audit_chain::AuditChainState;
use certificates::Certificates;
use cluster::ClusterMetrics;
use database::DatabaseMetrics;
use outbox::Outbox;
use process::ProcessMetrics;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Metric, Registry};
use retention::RetentionMetrics;
use spans::SpanMetrics;
use std::collections::BTreeMap;
use std::fmt::{Debug, Formatter};
use std::sync::atomic::AtomicU64;
use std::sync::{Mutex, MutexGuard, PoisonError};

type Seconds = Gauge<f64, AtomicU64>;

/// The name of the loop that plans firings, in metrics.
pub const PLANNER: &str = "planner";
type MetricLabels<const N: usize> = [(&'static str, &'static str); N];
type Counters<const N: usize> = Family<MetricLabels<N>, Counter>;
type Histograms<const N: usize> = Family<MetricLabels<N>, Histogram, fn() -> Histogram>;

/// Histogram buckets from a millisecond to an hour: delay of a firing, or duration of a job.
const LONG: [f64; 16] = [
    0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 15.0, 60.0, 300.0, 900.0,
    3600.0,
];
/// Histogram buckets from half a millisecond to ten seconds, the longest wait for a lock.
const SHORT: [f64; 14] =
    [0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0];
const STATEMENTS: [f64; 8] = [1.0, 2.0, 4.0, 6.0, 8.0, 12.0, 20.0, 50.0];

/// The metrics of one process.
pub struct Meter {
    registry: Registry,
    triggers: TriggerMetrics,
    batches: BatchMetrics,
    jobs: JobMetrics,
    cluster: ClusterMetrics,
    outbox: Outbox,
    retention: RetentionMetrics,
    spans: SpanMetrics,
    database: DatabaseMetrics,
    process: ProcessMetrics,
    certificates: Certificates,
    audit_chain: AuditChain,
    /// When each loop of this process last completed a turn, by name.
    loops: Mutex<BTreeMap<&'static str, Uptime>>,
    /// Since when the dispatcher has failed, and the reason of the last failure.
    dispatch_failure: Mutex<Option<DispatchFailure>>,
}

/// A series of failed steps of the dispatcher.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DispatchFailure {
    /// When the first of them failed.
    pub since: Uptime,
    /// The reason of the last failure, without a name or value.
    pub obstacle: &'static str,
}

struct TriggerMetrics {
    firings: Counters<2>,
    lateness: Histograms<1>,
    misfires: Counter,
    lock_wait: Histogram,
    lock_hold: Histogram,
    passes: Counter,
    due: Counter,
    fired: Counter,
    statements: Histogram,
    ring: Gauge,
    overdue: Gauge,
    waiting: Gauge,
    delay: Seconds,
}

struct BatchMetrics {
    open: Gauge,
    taken: Counters<1>,
    ended: Counters<1>,
}

struct JobMetrics {
    running: Gauge,
    ready: Gauge,
    reports: Gauge,
    starts: Counters<1>,
    ends: Counters<2>,
    duration: Histograms<1>,
}

impl Default for Meter {
    fn default() -> Self {
        let mut registry = Registry::with_prefix("procession");
        Self {
            triggers: TriggerMetrics::register(&mut registry),
            batches: BatchMetrics::register(&mut registry),
            jobs: JobMetrics::register(&mut registry),
            cluster: ClusterMetrics::register(&mut registry),
            outbox: Outbox::register(&mut registry),
            retention: RetentionMetrics::register(&mut registry),
            spans: SpanMetrics::register(&mut registry),
            database: DatabaseMetrics::register(&mut registry),
            process: ProcessMetrics::register(&mut registry),
            certificates: Certificates::register(&mut registry),
            audit_chain: AuditChain::register(&mut registry),
            loops: Mutex::default(),
            dispatch_failure: Mutex::default(),
            registry,
        }
    }
}

impl Debug for Meter {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        f.write_str("meter")
    }
}

impl Meter {
    /// Records a decided firing: its result (`fired`, `skipped`, `failed`, …), its source (`cron`,
    /// `manual`, …), and how many milliseconds after its planned time.
    pub fn fired(&self, result: &'static str, source: &'static str, lateness_ms: i64) {
        let labels = [("result", result), ("source", source)];
        self.triggers.firings.get_or_create(&labels).inc();
        let lateness = self.triggers.lateness.get_or_create(&[("source", source)]);
        lateness.observe(seconds(lateness_ms));
    }

    /// Records missed planned times.
    pub fn misfired(&self, count: u64) {
        self.triggers.misfires.inc_by(count);
    }

    /// Records how long the schedule lock was waited for and held, in milliseconds.
    pub fn record_lock(&self, wait_ms: i64, hold_ms: i64) {
        self.triggers.lock_wait.observe(seconds(wait_ms));
        self.triggers.lock_hold.observe(seconds(hold_ms));
    }

    /// Records a pass of the planner: due schedules, inserted firings, statements.
    pub fn record_pass(&self, due: u64, fired: u64, statements: u64) {
        self.triggers.passes.inc();
        self.triggers.due.inc_by(due);
        self.triggers.fired.inc_by(fired);
        self.triggers.statements.observe(u32::try_from(statements).unwrap_or(u32::MAX).into());
    }

    /// Sets the number of firings on the timer ring.
    pub fn record_ring(&self, len: usize) {
        set_gauge(&self.triggers.ring, len);
    }

    /// Sets the number of firings that are written, due, and not fired.
    pub fn overdue(&self, count: usize) {
        set_gauge(&self.triggers.overdue, count);
    }

    /// Sets the number of due firings that wait in this process for a place in a pool.
    pub fn firings_waiting(&self, count: usize) {
        set_gauge(&self.triggers.waiting, count);
    }

    /// Sets the delay of the planned time or firing of the installation that has waited longest, in
    /// milliseconds.
    pub fn firing_delay(&self, ms: i64) {
        self.triggers.delay.set(seconds(ms));
    }

    /// The last recorded delay in seconds; `None` in a process that fires no schedules.
    pub fn firing_delay_sec(&self) -> Option<f64> {
        self.loops().contains_key(PLANNER).then(|| self.triggers.delay.get())
    }

    /// Notes that a loop of this process completed a turn; from the first call on the loop is
    /// expected to run.
    pub fn loop_turned(&self, name: &'static str, now: Uptime) {
        self.loops().insert(name, now);
    }

    /// Notes that a loop of this process has ended in order.
    pub fn loop_ended(&self, name: &'static str) {
        self.loops().remove(name);
    }

    /// Milliseconds since each loop last completed a turn.
    pub fn loop_ages(&self, now: Uptime) -> BTreeMap<&'static str, i64> {
        self.loops().iter().map(|(name, at)| (*name, now.since(*at).max(0))).collect()
    }

    /// Sets the number of batches open in this process.
    pub fn batches(&self, open: usize) {
        set_gauge(&self.batches.open, open);
    }

    /// Counts a claimed batch; `how` is `taken` or `taken_over`.
    pub fn batch_taken(&self, how: &'static str) {
        self.batches.taken.get_or_create(&[("how", how)]).inc();
    }

    /// Counts a batch that has left this process: ended with this result, or given back, lost, cast
    /// out.
    pub fn batch_ended(&self, result: &'static str) {
        self.batches.ended.get_or_create(&[("result", result)]).inc();
    }

    /// Sets the numbers of running jobs, of ready jobs that wait for a slot, and of reports that
    /// wait to be written.
    pub fn record_jobs(&self, running: usize, ready: usize, reports: usize) {
        set_gauge(&self.jobs.running, running);
        set_gauge(&self.jobs.ready, ready);
        set_gauge(&self.jobs.reports, reports);
    }

    /// Counts a started attempt of this job type.
    pub fn job_started(&self, job_type: &'static str) {
        self.jobs.starts.get_or_create(&[("type", job_type)]).inc();
    }

    /// Records an ended attempt of this job type, its result and its duration in milliseconds.
    pub fn job_ended(&self, job_type: &'static str, result: &'static str, took_ms: i64) {
        self.jobs.ends.get_or_create(&[("type", job_type), ("result", result)]).inc();
        self.jobs.duration.get_or_create(&[("type", job_type)]).observe(seconds(took_ms));
    }

    /// Counts a failed lease renewal of this process.
    pub fn renewal_failed(&self) {
        self.cluster.renewals_failed.inc();
    }

    /// Counts a fence: everything here was stopped, because the lease could not be renewed in time.
    pub fn fenced(&self) {
        self.cluster.fences.inc();
    }

    /// Counts a failed tick that is retried; `why` is `database`, `stale` or `other`.
    pub fn beat_failed(&self, why: &'static str) {
        self.cluster.beats_failed.get_or_create(&[("why", why)]).inc();
    }

    /// Notes that a step of the dispatcher has failed for this reason.
    pub fn dispatch_failed(&self, obstacle: &'static str, now: Uptime) {
        let mut failure = self.dispatch_failure.lock().unwrap_or_else(PoisonError::into_inner);
        let since = failure.map_or(now, |failure| failure.since);
        *failure = Some(DispatchFailure { since, obstacle });
    }

    /// Notes that a step of the dispatcher has succeeded.
    pub fn dispatch_succeeded(&self) {
        *self.dispatch_failure.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// The present series of failed steps of the dispatcher.
    pub fn dispatch_failure(&self) -> Option<DispatchFailure> {
        *self.dispatch_failure.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets the number of processes with a valid lease.
    pub fn nodes(&self, alive: usize) {
        set_gauge(&self.cluster.nodes, alive);
    }

    /// Sets how many milliseconds the database's clock is ahead of this machine's, with the
    /// uncertainty.
    pub fn record_skew(&self, ms: i64, uncertainty_ms: i64) {
        self.cluster.skew.set(seconds(ms));
        self.cluster.uncertainty.set(seconds(uncertainty_ms));
    }

    /// Sets when the certificates of this process expire.
    pub fn set_certificates(&self, ends: Vec<CertificateEnd>) {
        self.certificates.set(ends);
    }

    /// When the certificates expire, as of the last check.
    pub(in crate::engine) fn certificates(&self) -> Vec<CertificateEnd> {
        self.certificates.list_ends()
    }

    /// Sets the result of the last verification of the audit chain.
    pub(in crate::engine) fn set_audit_chain(&self, state: AuditChainState) {
        self.audit_chain.set(state);
    }

    /// The result of the last verification; `None` before the first.
    pub(in crate::engine) fn audit_chain(&self) -> Option<AuditChainState> {
        self.audit_chain.last_state()
    }

    /// All metrics in the OpenMetrics text format, with values that are read at this moment.
    pub fn render_text(&self, counts: &Counts) -> String {
        self.database.set(counts);
        self.process.read_process();
        let mut text = String::new();
        encode(&mut text, &self.registry).expect("a string takes any text");
        text
    }

    fn loops(&self) -> MutexGuard<'_, BTreeMap<&'static str, Uptime>> {
        self.loops.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl TriggerMetrics {
    fn register(to: &mut Registry) -> Self {
        let lateness: Histograms<1> = Family::new_with_constructor(|| Histogram::new(LONG));
        Self {
            firings: add_metric(to, "firings", "Firings that were decided", Family::default()),
            lateness: add_metric(
                to,
                "firing_lateness_seconds",
                "How long after its planned time a firing was decided",
                lateness,
            ),
            misfires: put_counter(to, "misfires", "Planned times that were missed"),
            lock_wait: add_metric(
                to,
                "schedule_lock_wait_seconds",
                "How long the lock of the schedules was waited for",
                Histogram::new(SHORT),
            ),
            lock_hold: add_metric(
                to,
                "schedule_lock_hold_seconds",
                "How long the lock of the schedules was held",
                Histogram::new(SHORT),
            ),
            passes: put_counter(to, "scheduler_passes", "Passes of the scheduler"),
            due: put_counter(
                to,
                "scheduler_due",
                "Schedules that passes of the scheduler found due",
            ),
            fired: put_counter(
                to,
                "scheduler_firings_written",
                "Firings that passes of the scheduler wrote",
            ),
            statements: add_metric(
                to,
                "scheduler_pass_statements",
                "Statements that a pass of the scheduler took",
                Histogram::new(STATEMENTS),
            ),
            ring: put_gauge(to, "ring_firings", "Firings on the time ring"),
            overdue: put_gauge(
                to,
                "overdue_firings",
                "Firings that are written, due, and not fired",
            ),
            waiting: put_gauge(
                to,
                "firings_waiting",
                "Firings of this process whose time has come and that wait for a place in a pool",
            ),
            delay: add_metric(
                to,
                "firing_delay_seconds",
                "For how long the planned time that has waited longest is overdue",
                Seconds::default(),
            ),
        }
    }
}

impl BatchMetrics {
    fn register(to: &mut Registry) -> Self {
        Self {
            open: add_metric(
                to,
                "batches_open",
                "Batches in the hands of this process",
                Gauge::default(),
            ),
            taken: add_metric(to, "batches_taken", "Batches that were taken", Family::default()),
            ended: add_metric(
                to,
                "batches_ended",
                "Batches that ended here or left this process, by how",
                Family::default(),
            ),
        }
    }
}

impl JobMetrics {
    fn register(to: &mut Registry) -> Self {
        let duration: Histograms<1> = Family::new_with_constructor(|| Histogram::new(LONG));
        Self {
            running: add_metric(
                to,
                "jobs_running",
                "Jobs that run in this process",
                Gauge::default(),
            ),
            ready: add_metric(
                to,
                "jobs_ready",
                "Jobs that are ready and wait for a slot",
                Gauge::default(),
            ),
            reports: add_metric(
                to,
                "reports_pending",
                "Reports of workers that are not written yet",
                Gauge::default(),
            ),
            starts: add_metric(to, "job_starts", "Tries of jobs that started", Family::default()),
            ends: add_metric(to, "job_ends", "Tries of jobs that ended", Family::default()),
            duration: add_metric(
                to,
                "job_duration_seconds",
                "How long tries of jobs took",
                duration,
            ),
        }
    }
}

/// Registers a metric and returns it.
fn add_metric<M: Metric + Clone>(to: &mut Registry, name: &str, help: &str, meter: M) -> M {
    to.register(name, help, meter.clone());
    meter
}

fn put_counter(to: &mut Registry, name: &str, help: &str) -> Counter {
    add_metric(to, name, help, Counter::default())
}

/// Registers a gauge that starts with 0.
fn put_gauge(to: &mut Registry, name: &str, help: &str) -> Gauge {
    add_metric(to, name, help, Gauge::default())
}

fn set_gauge(gauge: &Gauge, value: usize) {
    gauge.set(i64::try_from(value).unwrap_or(i64::MAX));
}

#[expect(clippy::cast_precision_loss, reason = "2^53 ms are 285,000 years")]
fn seconds(ms: i64) -> f64 {
    ms as f64 / 1_000.0
}
