//! P-03, unknown outcome: the way to the database is cut before a CALL, behind it, in the middle of it and
//! behind a COMMIT, for each class of job; and the black hole. The whole program, one cell of the
//! table per job, each with a proxy of its own.

use crate::trust::judge::{Class, Crime, History, Name, Phase, judged};
use crate::trust::proxy::{End, Moment, Orders, Proxy};
use crate::trust::scene::{Plot, Scene, prepare, until_mid};
use crate::trust::targets::with_database;
use procession::domain::source::DialectName;
use std::collections::BTreeSet;
use std::time::Duration;

/// `look_sec` is short, so that the black hole is seen soon.
const SETTINGS: &str = "
[engine]
max_parallel = 10
[stop]
grace_sec = 1
confirm_sec = 10
[source]
allow_metadata_file = true
connect_timeout_sec = 2
away_sec = 90
look_sec = 1
";

/// Where the way is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cut {
    /// The server never sees the CALL.
    BeforeSend,
    /// It has it; the connection ends at once.
    AfterSend,
    /// The body has begun, and all connections end.
    MidCall,
    /// The server has committed, and its answer never comes: of COMMIT where Procession says it, of the
    /// CALL where the body does.
    AnswerLost,
    /// The body has begun, and nothing passes any more, and nobody is told.
    BlackHole,
}

const CUTS: [(Cut, &str); 5] = [
    (Cut::BeforeSend, "BEFORE"),
    (Cut::AfterSend, "SENT"),
    (Cut::MidCall, "MID"),
    (Cut::AnswerLost, "ANSWER"),
    (Cut::BlackHole, "HOLE"),
];

const CLASSES: [(Class, &str); 4] = [
    (Class::Same, "SAME"),
    (Class::Ledger, "LEDGER"),
    (Class::Once, "NONE"),
    (Class::Repeat, "AGAIN"),
];

/// One place of the table.
struct Cell {
    code: String,
    class: Class,
    cut: Cut,
    proxy: Proxy,
    /// Where its body runs, by no proxy.
    place: String,
}

impl Cell {
    fn is_recorded(&self) -> bool {
        matches!(self.class, Class::Same | Class::Ledger)
    }

    /// What is ordered before the batch begins.
    fn orders(&self, dialect: DialectName) -> Option<Orders> {
        // Not `commit` alone: that is in `SET autocommit` as well.
        let (call, commit) = match dialect {
            // Its values went with the lock (ADR 23): the text is the CALL.
            DialectName::Postgres => ("call \"".to_owned(), "commit\0"),
            _ => ("call `".to_owned(), "\u{3}commit"),
        };
        let cut = |text: &str, moment| Some(Orders::cut(text, moment, End::Reset));
        match self.cut {
            Cut::BeforeSend => cut(&call, Moment::Before),
            Cut::AfterSend => cut(&call, Moment::Forwarded),
            Cut::AnswerLost if self.is_recorded() => cut(commit, Moment::Answered),
            Cut::AnswerLost => cut(&call, Moment::Answered),
            Cut::MidCall | Cut::BlackHole => None,
        }
    }

    /// Makes the trouble that needs to be made while the body runs.
    async fn trouble(&self, dialect: DialectName, scene: &Scene, said: impl Fn() -> String) {
        match self.cut {
            Cut::MidCall => {
                until_mid(dialect, &self.place, BATCH, &self.code).await;
                self.proxy.cut_all(End::Reset);
            }
            Cut::BlackHole => {
                until_mid(dialect, &self.place, BATCH, &self.code).await;
                self.proxy.order(Orders::black_hole());
                // Noticed, and in the row, while nothing passes.
                let sql = format!(
                    "SELECT COUNT(*) FROM job_execution_logs l JOIN job_queue q ON q.queue_id = l.queue_id \
                     WHERE q.job_code = '{}' AND l.status IN ('RETRY_WAIT', 'UNKNOWN')",
                    self.code
                );
                scene.until(&sql, "1", said).await;
                self.proxy.heal();
            }
            _ => {}
        }
    }
}

const BATCH: &str = "202407";

async fn table(dialect: DialectName, home: String, target: String) {
    let mut scene = Scene::on(&home, SETTINGS);
    prepare(dialect, &home).await;
    prepare(dialect, &target).await;
    let (mut plot, mut cells) = (Plot::default(), Vec::new());
    for (class, word) in CLASSES {
        for (cut, when) in CUTS {
            let place = if class == Class::Same { &home } else { &target };
            let (proxy, through) = Proxy::of_url(place).await;
            let code = format!("{word}_{when}");
            let source = format!("S_{code}");
            plot.source(&source, &through);
            let is_seen = matches!(cut, Cut::MidCall | Cut::BlackHole);
            plot.mid(&code, class, &source, if is_seen { 3_000 } else { 200 });
            cells.push(Cell { code, class, cut, proxy, place: place.clone() });
        }
    }
    scene.stage(plot);
    for cell in &cells {
        if let Some(orders) = cell.orders(dialect) {
            cell.proxy.order(orders);
        }
    }
    let mut worker = scene.serve("worker");
    scene.open(BATCH);
    let trouble = cells.iter().map(|cell| cell.trouble(dialect, &scene, || worker.said()));
    futures_util::future::join_all(trouble).await;
    let end = scene.until_ended(BATCH, || worker.said()).await;
    assert_eq!(worker.starts(), 1, "it lives: {}", worker.said());
    // What an orphan still does is waited for, so that it is judged as well.
    for cell in &cells {
        idle(dialect, cell).await;
    }
    assert_eq!(worker.leave(Duration::from_secs(60)).await, Some(0), "{}", worker.said());
    let mut history = scene.history(&[&home, &target]).await;
    let verdict = judged(&history);
    assert!(verdict.is_clean(), "{verdict}\n{}\n{}", scene.rows().await, worker.said());
    assert_eq!(end, "FAILED", "five of it are in doubt");
    for cell in &cells {
        of_cell(&scene, &history, cell).await;
    }
    why(&scene, &cells);
    // The judge would have seen one that is lost, and one that is doubled.
    let of_job = |code: &str| (BATCH.to_owned(), code.to_owned());
    let is_end =
        |name: Name| move |e: &crate::trust::judge::Effect| e.name == name && e.phase == Phase::End;
    let twice = history.effects.iter().find(|e| is_end(of_job("LEDGER_ANSWER"))(e)).cloned();
    history.effects.extend(twice);
    history.effects.retain(|e| !is_end(of_job("SAME_MID"))(e));
    let verdict = judged(&history);
    assert!(verdict.count(Crime::Doubled) > 0 && verdict.count(Crime::Lost) == 1, "{verdict}");
}

/// No body of the cell runs on the server any more.
async fn idle(dialect: DialectName, cell: &Cell) {
    let sql = match dialect {
        DialectName::Postgres => format!(
            "SELECT COUNT(*) FROM pg_locks WHERE locktype = 'advisory' AND objid = 77 AND objsubid = 2 \
             AND classid::bigint = hashtext('mid:{BATCH}/{}')::bigint & 4294967295",
            cell.code
        ),
        _ => format!("SELECT IS_USED_LOCK('mid:{BATCH}/{}') IS NOT NULL", cell.code),
    };
    crate::trust::targets::wait_for(&cell.place, &sql, "0").await;
}

/// What the judges cannot know: that there was trouble, and what each class makes of just this one.
async fn of_cell(scene: &Scene, history: &History, cell: &Cell) {
    let (code, class) = (cell.code.as_str(), cell.class);
    let count =
        |phase| history.effects.iter().filter(|e| e.name.1 == code && e.phase == phase).count();
    let (begins, ends) = (count(Phase::Begin), count(Phase::End));
    let row = history.rows.iter().find(|row| row.name.1 == code).expect("its row");
    let (status, attempts) = (row.status.as_str(), row.attempt);
    let said = || {
        let log = scene.log(BATCH, code);
        format!("{code}: {status}, {attempts} attempts, {begins} begins, {ends} ends\n{log}")
    };
    if cell.orders(DialectName::Mysql).is_some() {
        assert_eq!(cell.proxy.cuts(), 1, "the cut was not met; {}", said());
    }
    match class {
        Class::Same | Class::Ledger => {
            assert_eq!((status, begins, ends), ("SUCCESS", 1, 1), "{}", said());
            assert_eq!(scene.of(BATCH, code, "try_count").await, "0", "{}", said());
            match cell.cut {
                Cut::AnswerLost if class == Class::Same && attempts == 1 => {}
                Cut::AnswerLost => {
                    let told = "took effect in try 1 (ledger); not run again";
                    assert!(scene.log(BATCH, code).contains(told), "{}", said());
                }
                _ => assert_eq!(attempts, 2, "{}", said()),
            }
        }
        Class::Repeat => {
            assert_eq!(status, "SUCCESS", "{}", said());
            assert!(ends >= 1 && attempts >= 2, "{}", said());
            let of_it = history.effects.iter().filter(|e| e.name.1 == code);
            let keys: BTreeSet<_> = of_it.map(|e| &e.key).collect();
            assert_eq!(keys.len(), 1, "{}", said());
        }
        _ => {
            assert_eq!((status, attempts), ("UNKNOWN", 1), "{}", said());
            assert_eq!(begins, usize::from(cell.cut != Cut::BeforeSend), "{}", said());
            if matches!(cell.cut, Cut::BeforeSend | Cut::AnswerLost) {
                assert_eq!(ends, begins, "{}", said());
            }
            let mails = history.mails.iter().filter(|mail| mail.queue_id == row.queue_id);
            let kinds: Vec<&str> = mails.map(|mail| mail.kind.as_str()).collect();
            assert_eq!(kinds, ["unknown"], "{}", said());
        }
    }
}

/// `batch why` names what is in doubt and what helps, and nothing else.
fn why(scene: &Scene, cells: &[Cell]) {
    let (code, text, told) = scene.house.said(&["batch", "why", BATCH, "--json"]);
    assert_eq!(code, 0, "{told}");
    for cell in cells {
        assert_eq!(text.contains(&cell.code), cell.class == Class::Once, "{}: {text}", cell.code);
    }
    assert_eq!(text.matches("\"unknown\"").count(), CUTS.len(), "{text}");
    let (_, text, _) = scene.house.said(&["batch", "why", BATCH]);
    assert!(text.contains("rerun") || text.contains("force-success"), "{text}");
}

async fn on(dialect: DialectName) {
    with_database(dialect, |home| async move {
        with_database(dialect, |target| async move { table(dialect, home, target).await }).await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_cut_of_each_class_on_mariadb() {
    on(DialectName::Mysql).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_cut_of_each_class_on_postgres() {
    on(DialectName::Postgres).await;
}
