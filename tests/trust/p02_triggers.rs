//! P-02 of the trigger core: a process that serves dies, stalls or fails at each place where it matters,
//! beside another that does not. Each planned time is fired once all the same, in time.

use crate::trust::clockwork::{ALL, Clockwork, SETTINGS, on, together};
use crate::trust::judge::fires::Late;
use crate::trust::nodes::{Life, Worker};
use crate::trust::ticks::{LATE, STALLED, mixed, unhurried};
use nix::sys::signal::Signal;
use procession::domain::source::DialectName;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// How long the victim may do nothing.
const TURN: Duration = Duration::from_secs(4);
/// By how much each turn is longer than the one before.
const SHIFT: Duration = Duration::from_millis(170);

/// Places from the lock to the batch that is open.
const PLACES: [&str; 8] = [
    "lock.acquired",
    "fire.inserted",
    "lock.before_commit",
    "lock.after_commit",
    "ring.tick",
    "fire.cas",
    "batch.mid",
    "batch.done",
];

/// What each life of the victim meets, one after the other. Each ends in death, so that a life that has
/// ended has met it.
fn deaths(places: &[&str]) -> Vec<String> {
    places.iter().map(|place| format!("{place}=1*return(abort)")).collect()
}

/// The same after a stall: longer than the 5 s for which the server keeps what a silent session holds.
fn stalls(places: &[&str]) -> Vec<String> {
    places.iter().map(|place| format!("{place}=1*sleep(7000)->1*return(abort)")).collect()
}

/// Statements and commits fail, and some that failed were done; then death.
fn errors() -> Vec<String> {
    [
        "db.statement=2%return(error)",
        "db.commit.before=5%return(error)",
        "db.commit.after=5%return(error)",
    ]
    .map(|what| format!("{what};fire.inserted=2*return(error)->3*off->1*return(abort)"))
    .to_vec()
}

/// Two processes serve twenty schedules; the lives of one of them end as `lives` say.
async fn story(name: &str, dialect: DialectName, home: String, lives: Vec<String>, late: Late) {
    let mut clockwork = Clockwork::on(dialect, &home, SETTINGS, mixed(20)).await;
    let all = lives.len();
    let of_life = move |number: usize| match lives.get(number) {
        Some(what) => Life::of(&["serve"]).with("FAILPOINTS", what),
        None => Life::of(&["serve"]),
    };
    let mut workers = vec![clockwork.serve_plainly("steady")];
    clockwork.until_serving(&workers).await;
    clockwork.ticks.schedule().await;
    workers.push(clockwork.serve("victim", of_life));
    for life in 1..=all {
        until_dead(&workers, life).await;
    }
    // A while in which nothing happens, so that what is behind is caught up with.
    sleep(Duration::from_secs(3)).await;
    let (victim, mut ends) = (&workers[1], workers[1].exits());
    ends.truncate(all);
    // A life whose first statements fail does not come to serve, and says so with 3.
    let is_met = ends.iter().all(|end| matches!(end, None | Some(3))) && ends.contains(&None);
    assert!(is_met, "by a signal, each: {ends:?} {}", victim.said());
    clockwork.end(name, &mut workers, late).await;
}

/// Returns when this life of the victim is over. While the other is always the first to plan, the victim has
/// nothing to do; then the other dies.
async fn until_dead(workers: &[Worker], life: usize) {
    let (steady, victim) = (&workers[0], &workers[1]);
    for round in 0..20 {
        // Both look once a second, and each life of the other looks as it begins: with turns of whole
        // seconds the one that is first stays first in all of them (one run in three, all 20 turns).
        let limit = Instant::now() + TURN + SHIFT * round;
        while Instant::now() < limit {
            if victim.exits().len() >= life {
                return;
            }
            sleep(Duration::from_millis(20)).await;
        }
        steady.signal(Signal::SIGKILL);
    }
    panic!("life {life} did not end\n{}\n{}", victim.said(), steady.said());
}

/// Who stalls in a transaction on SQLite holds the one write lock of the file, and nobody can take that from
/// it.
fn stalled(dialect: DialectName) -> Late {
    match dialect {
        DialectName::Sqlite => Late { fires: 30_000, made_up: 30_000, body: 30_000 },
        DialectName::Mysql | DialectName::Postgres => STALLED,
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn deaths_lose_and_double_nothing() {
    let of = |dialect| {
        on(dialect, |d, url| story("P-02 deaths", d, url, deaths(&PLACES), unhurried(LATE)))
    };
    together(ALL.map(of).into()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn errors_and_stalls_lose_and_double_nothing() {
    let of = |dialect| {
        on(dialect, |d, url| {
            let lives = [errors()[2..].to_vec(), stalls(&["lock.before_commit"])].concat();
            story("P-02 errors and stalls", d, url, lives, unhurried(stalled(d)))
        })
    };
    together(ALL.map(of).into()).await;
}

/// A process that stops in the middle of opening a batch holds the rows of its schedules. The server ends that session
/// after 10 s; it was 30 s, and the schedules were 30 to 39 s late.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stall_while_a_batch_is_opened_is_short_for_its_schedules() {
    let of = |dialect| {
        on(dialect, |d, url| {
            // Longer than what is allowed, so that whoever waits for its end fails.
            let lives = vec!["batch.done=1*sleep(24000)->1*return(abort)".to_owned()];
            let late = Late { fires: 19_000, made_up: 19_000, body: 45_000 };
            story("P-02 a stall in a firing", d, url, lives, late)
        })
    };
    together([DialectName::Mysql, DialectName::Postgres].map(of).into()).await;
}

/// One database after the other, so that times mean something.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "takes eight minutes; make chaos runs it"]
async fn long_triggers_places() {
    for dialect in ALL {
        on(dialect, |d, url| story("P-02 deaths", d, url, deaths(&PLACES), LATE)).await;
        on(dialect, |d, url| story("P-02 errors", d, url, errors(), LATE)).await;
        on(dialect, |d, url| story("P-02 stalls", d, url, stalls(&PLACES), stalled(d))).await;
    }
}
