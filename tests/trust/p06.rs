//! P-06: the clock of the machine of one of two processes jumps, while they run: an hour and a day ahead, an
//! hour back, and three seconds to and fro. Nothing is early, nothing twice, nothing missed: what
//! counts is the database's clock, and the machine's count in between, which nobody can set.
//!
//! The jumps are compiled in with the failpoints (`PROCESSION_WALL_FILE`), because libfaketime is not on
//! every machine that runs these tests. On SQLite the database's clock is the machine's as well; it is
//! left alone here, and its jumps are those of `domain/cluster/skew.rs`.

use crate::trust::clockwork::{ALL, Clockwork, SETTINGS, on, together};
use crate::trust::nodes::Life;
use crate::trust::ticks::{LATE, mixed, unhurried};
use procession::domain::source::DialectName;
use std::time::Duration;
use tokio::time::sleep;

const HOUR: i64 = 3_600_000;

async fn jumps(dialect: DialectName, home: String) {
    let mut clockwork = Clockwork::on(dialect, &home, SETTINGS, mixed(20)).await;
    let file = clockwork.house.path().join("wall");
    let set = |ms: i64| std::fs::write(&file, ms.to_string()).expect("a file");
    set(0);
    let name = file.display().to_string();
    let life = move |_| Life::of(&["serve"]).with("PROCESSION_WALL_FILE", &name);
    let mut workers = vec![clockwork.serve("jumper", life), clockwork.serve_plainly("steady")];
    clockwork.until_serving(&workers).await;
    clockwork.ticks.schedule().await;
    sleep(Duration::from_secs(2)).await;
    for ms in [HOUR, -HOUR, 24 * HOUR] {
        set(ms);
        sleep(Duration::from_secs(2)).await;
    }
    for strobe in 0..4 {
        set(if strobe % 2 == 0 { 3_000 } else { -3_000 });
        sleep(Duration::from_secs(1)).await;
    }
    // Alone with it: whatever the other one would have saved.
    set(HOUR);
    workers[1].leave(Duration::from_secs(30)).await;
    sleep(Duration::from_secs(4)).await;
    let said = workers[0].all_said();
    assert!(said.contains("the clock of this machine differs"), "no jump was seen: {said}");
    clockwork.end("clock jumps", &mut workers[..1], unhurried(LATE)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn jumps_of_the_clock_change_nothing() {
    together(ALL.map(|dialect| on(dialect, jumps)).into()).await;
}
