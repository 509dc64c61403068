//! P-19, a batch of many jobs on a slow SQLite: its opening and its reading take longer than the lease, and the lease is
//! kept all the same. A lost lease would have the batch read again, which loses the next: counted are readings and lost
//! leases, and no time.

use crate::trust::nodes::House;
use crate::trust::oracle::rows;
use std::fmt::Write as _;

/// Each of seven steps takes 0.6 s with the database's one writer, twice the lease in all. The first reading takes twice
/// the lease as well; a second one ends the process.
const SLOW: &str = "batch.step=sleep(600);recover.read=1*sleep(4000)->1*return(abort)";

const SETTINGS: &str = "[engine]\nlease_sec = 2\n";

/// A wave of jobs after the first, so that all of them are in the memory of the dispatcher.
fn yaml() -> String {
    let mut text = "defaults: { type: NOOP }\njobs:\n  FIRST: {}\n".to_owned();
    for number in 1..14_000 {
        writeln!(text, "  J{number}: {{ depends_on: [FIRST] }}").expect("text");
    }
    text
}

#[tokio::test]
async fn a_large_batch_on_a_slow_database_keeps_its_lease() {
    let folder = tempfile::tempdir().expect("folder");
    let home = format!("sqlite:{}", folder.path().join("home.db").display());
    let house = House::on(&home, SETTINGS);
    house.write("large.yaml", &yaml());
    let mut command = house.command(&["run", "large.yaml", "--batch-no", "202407"]);
    let ran = command.env("FAILPOINTS", SLOW).output().expect("it runs");
    let text = String::from_utf8_lossy(&ran.stderr).into_owned();
    assert_eq!(ran.status.code(), Some(0), "{text}");
    // What the process logs when the lease has run out (`heartbeat.rs`).
    assert!(!text.contains("the lease could not be renewed"), "{text}");
    let ended = "SELECT status, COUNT(*), MAX(attempt) FROM job_queue GROUP BY status";
    let ended = rows(&home, ended).await;
    let of = |text: &str| Some(text.to_owned());
    assert_eq!(ended, [vec![of("SUCCESS"), of("14000"), of("1")]]);
    for tenth in [2_000, 4_000, 12_000] {
        assert!(text.contains(&format!("{tenth} of 14000 jobs")), "{text}");
    }
}
