//! P-11 and P-09 for the process that plans: it dies, it is stopped (SIGSTOP) while it holds the schedule
//! lock, it is cut off from the database. Another goes on, in time; what it comes back with is refused.

use crate::trust::clockwork::{Clockwork, SERVERS, SETTINGS, on, together};
use crate::trust::judge::fires::Late;
use crate::trust::nodes::{Life, Worker};
use crate::trust::proxy::{Orders, Proxy};
use crate::trust::targets::session;
use crate::trust::ticks::{LATE, STALLED, Tick, mixed, unhurried};
use nix::sys::signal::Signal;
use procession::domain::source::DialectName;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// How the leader is lost, and for how long.
#[derive(Clone, Copy, Debug)]
enum Loss {
    Dies,
    Stops(Duration),
}

/// Three processes serve; the one that leads is lost, several times.
async fn lost(
    dialect: DialectName,
    home: String,
    ticks: Vec<Tick>,
    losses: Vec<Loss>,
    patience: fn(Late) -> Late,
) {
    let mut clockwork = Clockwork::on(dialect, &home, SETTINGS, ticks).await;
    let mut workers: Vec<Worker> =
        ["one", "two", "three"].map(|name| clockwork.serve_plainly(name)).into();
    clockwork.until_serving(&workers).await;
    clockwork.ticks.schedule().await;
    for loss in &losses {
        sleep(Duration::from_secs(3)).await;
        let leader = clockwork.leader(&workers).await.expect("somebody leads");
        match loss {
            Loss::Dies => assert!(workers[leader].signal(Signal::SIGKILL)),
            Loss::Stops(time) => {
                assert!(workers[leader].signal(Signal::SIGSTOP));
                sleep(*time).await;
                assert!(workers[leader].signal(Signal::SIGCONT));
            }
        }
    }
    sleep(Duration::from_secs(3)).await;
    let is_stall = losses.iter().any(|loss| matches!(loss, Loss::Stops(_)));
    let name = format!("leader lost: {losses:?}");
    clockwork.end(&name, &mut workers, patience(if is_stall { STALLED } else { LATE })).await;
}

/// The leader is stopped while it has the lock, which it is made to keep long enough for that. The server
/// takes the lock from it after 5 s; what it comes back with is refused, and it says so.
async fn under_the_lock(dialect: DialectName, home: String, time: Duration) {
    let mut clockwork = Clockwork::on(dialect, &home, SETTINGS, mixed(20)).await;
    let slow =
        |_| Life::of(&["serve"]).with("FAILPOINTS", "lock.before_commit=2*off->1*sleep(3000)");
    let mut workers = vec![clockwork.serve("leader", slow)];
    clockwork.until_serving(&workers).await;
    clockwork.ticks.schedule().await;
    let limit = Instant::now() + Duration::from_secs(20);
    loop {
        // Held at both ends of a while, so it is the long one.
        let before = is_held(&clockwork).await;
        sleep(Duration::from_millis(300)).await;
        if before && is_held(&clockwork).await {
            break;
        }
        assert!(Instant::now() < limit, "the lock is never held long: {}", workers[0].said());
    }
    assert!(workers[0].signal(Signal::SIGSTOP));
    workers.push(clockwork.serve_plainly("heir"));
    sleep(time).await;
    let fired = "SELECT COUNT(*) FROM job_firing WHERE status = 'FIRED'";
    let before: i64 = clockwork.ask(fired).await.parse().expect("a count");
    assert!(before > 0, "nobody fires while the leader is stopped: {}", workers[1].said());
    assert!(workers[0].signal(Signal::SIGCONT));
    sleep(Duration::from_secs(3)).await;
    let said = workers[0].all_said();
    assert!(said.contains("not all that is due was planned"), "its pass was not refused: {said}");
    assert_eq!((workers[0].starts(), workers[1].starts()), (1, 1), "{said}");
    clockwork
        .end(
            &format!("leader stopped under the lock for {time:?}"),
            &mut workers,
            unhurried(STALLED),
        )
        .await;
}

/// Whether somebody holds the lock row just now.
async fn is_held(clockwork: &Clockwork) -> bool {
    let mut session = session(&clockwork.home).await;
    let begin =
        if clockwork.dialect == DialectName::Postgres { "BEGIN" } else { "START TRANSACTION" };
    session.run_statement(begin, &[]).await.expect("a transaction");
    let row = "SELECT epoch FROM job_lock WHERE lock_name = 'schedule_lock' FOR UPDATE NOWAIT";
    let is_held = session.run_statement(row, &[]).await.is_err();
    session.close().await;
    is_held
}

/// P-09: whoever leads is cut off from the database for a while without a word, several times.
async fn cut_off(dialect: DialectName, home: String, times: usize, time: Duration) {
    let mut clockwork = Clockwork::on(dialect, &home, SETTINGS, mixed(20)).await;
    let (mut proxies, mut workers) = (Vec::new(), Vec::new());
    for name in ["one", "two"] {
        let (proxy, through) = Proxy::of_url(&home).await;
        let life = move |_| Life::of(&["serve"]).with("PROCESSION_DB", &through);
        workers.push(clockwork.serve(name, life));
        proxies.push(proxy);
    }
    clockwork.until_serving(&workers).await;
    clockwork.ticks.schedule().await;
    for _ in 0..times {
        sleep(Duration::from_secs(3)).await;
        let leader = clockwork.leader(&workers).await.expect("somebody leads");
        proxies[leader].order(Orders::black_hole());
        sleep(time).await;
        let other = clockwork.leader(&workers).await.expect("somebody leads");
        assert_ne!(leader, other, "nobody took over in {time:?}\n{}", workers[1 - leader].said());
        proxies[leader].heal();
    }
    sleep(Duration::from_secs(3)).await;
    for worker in &workers {
        assert_eq!(worker.exits(), [], "a cut is no reason to end: {}", worker.said());
    }
    clockwork
        .end(
            &format!("leader cut off {times} times for {time:?}"),
            &mut workers,
            unhurried(STALLED),
        )
        .await;
    drop(proxies);
}

/// P-08: answers come 200 ms later each way, then much later, then as always.
async fn slow(
    dialect: DialectName,
    home: String,
    (some, much): (Duration, Duration),
    delay: Duration,
) {
    let settings = "[engine]\nlease_sec = 8\n";
    let mut clockwork = Clockwork::on(dialect, &home, settings, mixed(20)).await;
    let (proxy, through) = Proxy::of_url(&home).await;
    let mut workers = Vec::new();
    for name in ["one", "two"] {
        let through = through.clone();
        let life = move |_| Life::of(&["serve"]).with("PROCESSION_DB", &through);
        workers.push(clockwork.serve(name, life));
    }
    clockwork.until_serving(&workers).await;
    clockwork.ticks.schedule().await;
    sleep(Duration::from_secs(2)).await;
    for (time, latency) in [(some, Duration::from_millis(200)), (much, delay)] {
        proxy.order(Orders { latency, ..Orders::pass() });
        sleep(time).await;
    }
    proxy.heal();
    // Behind it: what is planned from now on is on time again.
    sleep(Duration::from_secs(8)).await;
    let healed = clockwork.ticks.now().await;
    sleep(Duration::from_secs(6)).await;
    let firings = clockwork.ticks.firings().await;
    let late = firings.iter().map(|(row, _)| row).filter(|row| row.planned > healed);
    let late: Vec<i64> = late.filter_map(|row| Some(row.fired? - row.planned)).collect();
    let latest = late.iter().max().copied().unwrap_or(i64::MAX);
    assert!(latest <= 2_000, "still {latest} ms late: {}", workers[0].said());
    let most = i64::try_from((some + much).as_millis()).expect("milliseconds") + 15_000;
    let late = Late { fires: most, made_up: most, body: most };
    clockwork.end(&format!("database slow by {delay:?}"), &mut workers, late).await;
}

const SHORT: Duration = Duration::from_secs(7);

fn seconds(number: u64) -> Duration {
    Duration::from_secs(number)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_leads_when_a_leader_dies_or_stops() {
    let stop = |d, url| lost(d, url, mixed(20), vec![Loss::Dies, Loss::Stops(SHORT)], unhurried);
    let die = |d, url| lost(d, url, mixed(20), vec![Loss::Dies, Loss::Dies], unhurried);
    let stories = [on(DialectName::Sqlite, die), on(DialectName::Mysql, stop)];
    together(stories.into_iter().chain([on(DialectName::Postgres, stop)]).collect()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_leader_brings_that_was_stopped_under_the_lock_is_refused() {
    together(SERVERS.map(|d| on(d, |d, url| under_the_lock(d, url, SHORT))).into()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_leader_that_is_cut_off_and_a_slow_database_lose_nothing() {
    together(vec![
        on(DialectName::Mysql, |d, url| cut_off(d, url, 2, SHORT)),
        on(DialectName::Postgres, |d, url| slow(d, url, (seconds(4), seconds(5)), seconds(1))),
    ])
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "takes twenty minutes; make chaos runs it"]
async fn long_triggers_leaders() {
    for dialect in SERVERS {
        let losses = || [3, 10, 30].map(|s| Loss::Stops(seconds(s))).to_vec();
        on(dialect, |d, url| lost(d, url, mixed(20), vec![Loss::Dies; 3], |late| late)).await;
        on(dialect, move |d, url| lost(d, url, mixed(20), losses(), |late| late)).await;
        on(dialect, |d, url| under_the_lock(d, url, seconds(30))).await;
        on(dialect, |d, url| cut_off(d, url, 10, seconds(20))).await;
        on(dialect, |d, url| slow(d, url, (seconds(60), seconds(30)), seconds(8))).await;
    }
}

/// Three processes under load: the leader dies, and then another is stalled.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "for its table; make chaos runs it"]
async fn long_triggers_three_nodes() {
    let losses = || vec![Loss::Dies, Loss::Stops(seconds(12))];
    for dialect in SERVERS {
        on(dialect, move |d, url| lost(d, url, mixed(90), losses(), |late| late)).await;
    }
}
