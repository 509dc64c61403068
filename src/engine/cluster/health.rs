//! Liveness and readiness of this process, with reasons. The HTTP server asks, and gets an answer
//! within a second whatever the state of the database.

use crate::domain::access::certificate_expiry::{CertificateEnd, due_ends};
use crate::domain::cluster::lease::Uptime;
use crate::domain::cluster::skew::ClockVerdict;
use crate::domain::schedule::misfire::LATE_MS;
use crate::domain::time::Millis;
use crate::engine::clock::Clock;
use crate::engine::cluster::heartbeat::Heart;
use crate::engine::cluster::process::ClusterProcess;
use crate::engine::observe::metrics::{AuditChainState, Meter};
use crate::store::{self, Db, claim};
use anyhow::Result;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;

/// Time limit of a database check; the answer itself must be there within a second.
const PING: Duration = Duration::from_millis(700);
/// How long a database answer is reused, in milliseconds: however often clients ask, the database
/// is queried once per second.
const FRESH_MS: i64 = 1_000;
/// How long facts that rarely change are reused, in milliseconds: the schema, which changes with a
/// release, and the server's settings.
const SLOW_FRESH_MS: i64 = 30_000;

/// Checks the health of this process on request.
pub struct HealthMonitor {
    db: Db,
    clock: Clock,
    meter: Arc<Meter>,
    heart: Arc<Heart>,
    /// Cancelled when this process is to shut down.
    leaves: CancellationToken,
    stalled_ms: i64,
    seen: Mutex<DatabaseHealth>,
}

/// One health check and its result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HealthReason {
    /// `database`, `schema`, `batches`, `writes`, `dispatch`, `durability`, `lease`, `clock`,
    /// `draining`, `history`, `firing`, `certificates`, `audit_chain`, or the name of a loop.
    pub name: &'static str,
    /// Whether the check passed.
    pub ok: bool,
    /// The process does its work, but an operator should look into the matter.
    pub is_degraded: bool,
    /// The explanation, without addresses, paths or secret values.
    pub detail: String,
}

impl HealthReason {
    fn new(name: &'static str, ok: bool, detail: impl Into<String>) -> Self {
        Self { name, ok, is_degraded: false, detail: detail.into() }
    }
}

/// The last answer of the database.
#[derive(Default)]
struct DatabaseHealth {
    answer: Option<(Uptime, HealthCheckResult)>,
    /// How long the batch that has waited longest for a process has waited; as of the last answer.
    waited_ms: Option<i64>,
    slow: Option<(Uptime, SlowFacts)>,
}

/// The answer of the database to one check.
struct Answered {
    /// Duration of the first query, in milliseconds.
    after_ms: i64,
    /// How long the batch that has waited longest for a process has waited.
    waited_ms: Option<i64>,
    facts: SlowFacts,
}

/// Facts that change only with a release or by an administrator.
#[derive(Clone, Copy)]
struct SlowFacts {
    /// Whether the schema has the version that this binary knows.
    is_current: bool,
    /// Whether commits that the database has acknowledged survive a crash of its server.
    is_durable: bool,
}

#[derive(Clone, Copy)]
enum HealthCheckResult {
    After(i64),
    Refused,
    Late,
}

impl HealthMonitor {
    /// The monitor of this process. `leaves` is the shutdown token; `stalled` is the maximum
    /// duration of one turn of a loop, and must be longer than the database may take for two
    /// answers.
    pub(in crate::engine) fn new(
        process: &ClusterProcess,
        leaves: &CancellationToken,
        stalled: Duration,
    ) -> Self {
        Self {
            db: process.db.clone(),
            clock: process.clock.clone(),
            meter: process.meter.clone(),
            heart: process.heart.clone(),
            leaves: leaves.clone(),
            stalled_ms: i64::try_from(stalled.as_millis()).unwrap_or(i64::MAX),
            seen: Mutex::default(),
        }
    }

    /// Whether the loops of this process still run, one reason for each.
    pub fn alive(&self) -> Vec<HealthReason> {
        let ages = self.meter.loop_ages(self.clock.uptime());
        ages.into_iter().map(|(name, age)| turns(name, age, self.stalled_ms)).collect()
    }

    /// Whether this process can do its work.
    pub async fn ready(&self) -> Vec<HealthReason> {
        let mut reasons = self.check_database().await;
        let (age_ms, obstacle) = self.heart.last_write();
        reasons.push(writes(age_ms, self.heart.lease_ms() / 2, obstacle));
        reasons.extend([self.lease(), self.clocks(), self.stays(), self.history()]);
        let failing = self.meter.dispatch_failure();
        let failing = failing.map(|one| (self.clock.uptime().since(one.since), one.obstacle));
        reasons.push(dispatches(failing));
        reasons.extend(self.meter.firing_delay_sec().map(fires));
        reasons.extend(certificates(&self.meter.certificates(), self.clock.now()));
        reasons.extend(self.meter.audit_chain().map(chain));
        reasons.extend(self.alive());
        reasons
    }

    /// The metrics in the Prometheus text format.
    pub fn metrics(&self) -> String {
        self.meter.render_text(&self.db.counts())
    }

    /// Checks the database and its schema. One check at a time; concurrent callers get its result.
    async fn check_database(&self) -> Vec<HealthReason> {
        let mut seen = self.seen.lock().await;
        let now = self.clock.uptime();
        let fresh = |at: Uptime, ms: i64| now.since(at) < ms;
        let answer = match seen.answer {
            Some((at, answer)) if fresh(at, FRESH_MS) => answer,
            _ => {
                let known = seen.slow.filter(|(at, _)| fresh(*at, SLOW_FRESH_MS));
                // A connection that is dropped with a query in flight is closed (docs/adr/0011).
                let asked =
                    tokio::time::timeout(PING, self.ping_database(known.map(|(_, facts)| facts)));
                let asked = asked.await;
                let now = self.clock.uptime();
                let answer = match asked {
                    Ok(Ok(answered)) => {
                        seen.slow = known.or(Some((now, answered.facts)));
                        seen.waited_ms = answered.waited_ms;
                        HealthCheckResult::After(answered.after_ms)
                    }
                    Ok(Err(error)) => {
                        tracing::debug!("the database does not answer: {error:#}");
                        HealthCheckResult::Refused
                    }
                    Err(_) => HealthCheckResult::Late,
                };
                seen.answer = Some((now, answer));
                answer
            }
        };
        let facts = seen.slow.map(|(_, facts)| facts);
        let mut reasons = vec![answers(answer), schema(facts.map(|facts| facts.is_current))];
        reasons.extend(facts.map(|facts| durability(facts.is_durable)));
        if matches!(answer, HealthCheckResult::After(_)) {
            reasons.push(batches_are_taken(seen.waited_ms));
        }
        reasons
    }

    /// Measures the answer time and reads which batches wait, and the slow facts if they are
    /// unknown.
    async fn ping_database(&self, known: Option<SlowFacts>) -> Result<Answered> {
        let asked = self.clock.uptime();
        let mut tx = self.db.begin_read().await?;
        let now = Millis::from(tx.server_time().await?);
        let after_ms = self.clock.uptime().since(asked);
        let facts = match known {
            Some(facts) => facts,
            None => SlowFacts {
                is_durable: tx.durability_warnings().await?.is_empty(),
                is_current: self.is_schema_current().await?,
            },
        };
        // The tables of another schema version may lack a column.
        let waits_since = match facts.is_current {
            true => claim::waits_since(&mut tx, now).await?,
            false => None,
        };
        tx.rollback().await?;
        Ok(Answered { after_ms, waited_ms: waits_since.map(|since| now.since(since)), facts })
    }

    async fn is_schema_current(&self) -> Result<bool> {
        match self.db.require_current().await.map_err(anyhow::Error::from) {
            Ok(()) => Ok(true),
            Err(error) if store::is_transient(&error) => Err(error),
            Err(_) => Ok(false),
        }
    }

    fn lease(&self) -> HealthReason {
        let ok = !self.heart.lease_state().is_fenced;
        let detail = match ok {
            true => "held",
            false => "could not be renewed in time; nothing is started here until it is",
        };
        HealthReason::new("lease", ok, detail)
    }

    fn clocks(&self) -> HealthReason {
        let Some(skew) = self.heart.clock_skew() else {
            return HealthReason::new("clock", true, "set by hand");
        };
        let last = skew.last_measurement();
        let detail = match skew.verdict() {
            ClockVerdict::Steady | ClockVerdict::Skewed(_) => format!(
                "the database's is {} ms ahead of this machine's (± {} ms) and is gone by",
                last.skew_ms, last.slack_ms
            ),
            ClockVerdict::Jumped(ms) => {
                format!("jumped by {ms} ms; nothing is scheduled here until two measurements agree")
            }
        };
        HealthReason::new("clock", skew.verdict().is_sure(), detail)
    }

    fn history(&self) -> HealthReason {
        let Some(gap) = self.heart.metadata_gap() else {
            return HealthReason::new("history", true, "the database holds what was committed");
        };
        let detail = format!(
            "the database has gone back to {}, and {} was committed: nothing is fired or started until an \
             operator decides: procession metadata show",
            gap.restored_to, gap.known_until
        );
        HealthReason::new("history", false, detail)
    }

    fn stays(&self) -> HealthReason {
        // A shutdown is known at once; an operator's `node drain` with the next heartbeat.
        let is_drained = self.heart.is_resting() && !self.heart.is_suspended();
        let (ok, detail) = match (self.leaves.is_cancelled(), is_drained) {
            (true, _) => (false, "yes: told to stop, starts nothing more"),
            (false, true) => {
                (false, "yes: an operator lets it take nothing new, until: procession node undrain")
            }
            (false, false) => (true, "no"),
        };
        HealthReason::new("draining", ok, detail)
    }
}

/// Whether certificates expire soon. An expired one keeps clients away, and a restart would not
/// help.
fn certificates(ends: &[CertificateEnd], now: Millis) -> Option<HealthReason> {
    let last = ends.iter().map(|end| end.ends_at).min()?;
    let due = due_ends(ends, now);
    let detail = match due[..] {
        [] => format!("the first ends on {}", last.to_utc().format("%Y-%m-%d")),
        [first] => first.describe(now),
        [first, ..] => {
            format!("{}, and {} more end soon", first.describe(now), due.len() - 1)
        }
    };
    let is_degraded = !due.is_empty();
    Some(HealthReason { is_degraded, ..HealthReason::new("certificates", true, detail) })
}

/// Whether the hash chain of the audit log is intact. A break needs people; the process does its
/// work nevertheless.
fn chain(found: AuditChainState) -> HealthReason {
    let day = found.at.to_utc().format("%Y-%m-%d %H:%M");
    let detail = match found.is_broken {
        true => format!("does not hold (found at {day} UTC): procession audit verify says where"),
        false => format!("holds, verified at {day} UTC"),
    };
    HealthReason { is_degraded: found.is_broken, ..HealthReason::new("audit_chain", true, detail) }
}

/// Whether schedules fire on time, by the planned time that has waited longest. Beyond the time
/// after which the misfire policy applies, firings are missed.
fn fires(delay_sec: f64) -> HealthReason {
    let allowed_sec = LATE_MS / 1_000;
    let ok = delay_sec <= f64::from(u16::try_from(allowed_sec).unwrap_or(u16::MAX));
    let detail = match ok {
        true => "on time".to_owned(),
        false => format!(
            "overdue by {delay_sec:.0} s; beyond {allowed_sec} s the misfire policy of each schedule \
             decides what still fires"
        ),
    };
    HealthReason::new("firing", ok, detail)
}

fn turns(name: &'static str, age_ms: i64, stalled_ms: i64) -> HealthReason {
    let ok = age_ms <= stalled_ms;
    let detail = match ok {
        true => format!("turned {age_ms} ms ago"),
        false => format!("has not turned for {age_ms} ms; {stalled_ms} are allowed"),
    };
    HealthReason::new(name, ok, detail)
}

fn answers(answer: HealthCheckResult) -> HealthReason {
    let (ok, detail) = match answer {
        HealthCheckResult::After(ms) => (true, format!("answered in {ms} ms")),
        HealthCheckResult::Refused => {
            (false, "cannot be asked; the log of this process says why".to_owned())
        }
        HealthCheckResult::Late => (false, format!("no answer within {} ms", PING.as_millis())),
    };
    HealthReason::new("database", ok, detail)
}

fn schema(is_current: Option<bool>) -> HealthReason {
    let detail = match is_current {
        Some(true) => "current",
        Some(false) => "not the one that this program knows; run: procession migrate",
        None => "not known yet",
    };
    HealthReason::new("schema", is_current == Some(true), detail)
}

/// Whether a write succeeded recently. A renewal is due every third of a lease and retried within a
/// second, so half a lease without one is no accident.
fn writes(age_ms: i64, allowed_ms: i64, obstacle: Option<&str>) -> HealthReason {
    let ok = age_ms <= allowed_ms;
    let why = obstacle.unwrap_or("no answer has come yet");
    let detail = match (ok, obstacle) {
        (true, None) => format!("written {age_ms} ms ago"),
        _ => format!("nothing could be written for {age_ms} ms: {why}"),
    };
    HealthReason {
        is_degraded: ok && obstacle.is_some(),
        ..HealthReason::new("writes", ok, detail)
    }
}

/// How long the dispatcher may fail before the process counts as not ready, in milliseconds. A lock
/// that another session holds briefly does not matter: each step waits about ten seconds for it.
const DISPATCH_FAILS_MS: i64 = 30_000;

/// Whether steps of batches can be written. `failing` is how long they could not, and the reason of
/// the last failure. A row of one batch that another session has locked blocks all batches of this
/// process, and `writes` does not detect that.
fn dispatches(failing: Option<(i64, &'static str)>) -> HealthReason {
    let Some((ms, obstacle)) = failing else {
        return HealthReason::new("dispatch", true, "the last step of batches is written");
    };
    let detail = format!("no step of any batch could be written for {} s: {obstacle}", ms / 1_000);
    let ok = ms < DISPATCH_FAILS_MS;
    HealthReason { is_degraded: ok, ..HealthReason::new("dispatch", ok, detail) }
}

/// How long an open batch may wait for a process, in milliseconds. Serving processes poll every
/// second, and every five where hints announce new batches.
const UNTAKEN_MS: i64 = 60_000;

/// Whether open batches find a process: `waited_ms` is how long the oldest unowned batch has
/// waited. Batches wait when every process has reached its limit (16 batches for each of its
/// `engine.max_parallel` jobs at once), is drained, or could not read them; at 1,000 firings a
/// second and eight jobs at once 8,000 piled up in 20 s without any warning.
fn batches_are_taken(waited_ms: Option<i64>) -> HealthReason {
    let waited_ms = waited_ms.unwrap_or(0);
    let is_degraded = waited_ms > UNTAKEN_MS;
    let detail = match is_degraded {
        false => "open ones are taken".to_owned(),
        true => format!(
            "an open one has waited for {} s and no process takes it: more processes or a greater \
             engine.max_parallel are needed, or the logs say why they leave it",
            waited_ms / 1_000
        ),
    };
    HealthReason { is_degraded, ..HealthReason::new("batches", true, detail) }
}

/// Whether committed data survive a crash of the server. Work continues without that; the log warns
/// at the start of the process.
fn durability(is_durable: bool) -> HealthReason {
    let detail = match is_durable {
        true => "as the database's settings say, what it acknowledges outlives a crash",
        false => {
            "the database may lose what it has acknowledged in a crash; the log of this process says which setting"
        }
    };
    HealthReason { is_degraded: !is_durable, ..HealthReason::new("durability", true, detail) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn firing_is_overdue_when_the_misfire_policy_decides() {
        assert!(fires(5.0).ok);
        let overdue = fires(17.4);
        assert!(!overdue.ok && overdue.detail.contains("overdue by 17 s"), "{overdue:?}");
    }

    #[test]
    fn a_loop_is_stalled_after_its_time_and_not_before() {
        assert!(turns("dispatcher", 120_000, 120_000).ok);
        let late = turns("dispatcher", 120_001, 120_000);
        assert!(!late.ok && late.detail.contains("120001 ms"), "{late:?}");
    }

    #[test]
    fn what_is_not_written_is_degraded_at_once_and_not_ready_after_half_a_lease() {
        let full = Some("the database has no space left");
        let state = |reason: HealthReason| (reason.ok, reason.is_degraded);
        assert_eq!(state(writes(9_000, 15_000, None)), (true, false));
        assert_eq!(state(writes(9_000, 15_000, full)), (true, true));
        assert_eq!(state(writes(15_001, 15_000, full)), (false, false));
        // A renewal that hangs reports nothing.
        assert_eq!(state(writes(15_001, 15_000, None)), (false, false));
        assert!(writes(15_001, 15_000, full).detail.contains("no space left"));
        assert_eq!(state(durability(false)), (true, true));
    }

    #[test]
    fn a_dispatcher_that_cannot_write_is_degraded_at_once_and_not_ready_after_half_a_minute() {
        let state = |failing| {
            let reason = dispatches(failing);
            (reason.ok, reason.is_degraded)
        };
        assert_eq!(state(None), (true, false));
        assert_eq!(state(Some((0, "locked"))), (true, true));
        assert_eq!(state(Some((DISPATCH_FAILS_MS, "locked"))), (false, false));
        assert!(dispatches(Some((41_000, "locked"))).detail.contains("for 41 s: locked"));
    }

    #[test]
    fn a_batch_that_no_process_takes_degrades() {
        let state = |waited| {
            let reason = batches_are_taken(waited);
            (reason.ok, reason.is_degraded)
        };
        assert_eq!(state(None), (true, false));
        assert_eq!(state(Some(UNTAKEN_MS)), (true, false));
        assert_eq!(state(Some(UNTAKEN_MS + 1)), (true, true));
        assert!(batches_are_taken(Some(92_000)).detail.contains("for 92 s"));
    }

    #[test]
    fn what_is_not_known_is_not_ready() {
        assert!(!schema(None).ok && !schema(Some(false)).ok && schema(Some(true)).ok);
        assert!(!answers(HealthCheckResult::Late).ok && !answers(HealthCheckResult::Refused).ok);
        assert!(answers(HealthCheckResult::After(3)).ok);
    }
}
