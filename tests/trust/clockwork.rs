//! A stage for schedules: groups of one job each, whose body writes which planned time it is for; schedules
//! that open their batches, or need nothing but rows; processes that serve; and J1 to J5 at the end.

use crate::trust::judge::fires::{Late, Timings};
use crate::trust::judge::{History, Verdict, judged};
use crate::trust::nodes::{House, Life, Next, Worker};
use crate::trust::oracle::{self, rows};
use crate::trust::records;
use crate::trust::scene::report;
use crate::trust::scene::sqlite;
use crate::trust::targets::with_database;
use crate::trust::ticks::{Tick, Ticks, yaml};
use futures_util::FutureExt as _;
use futures_util::future::{LocalBoxFuture, join_all};
use procession::domain::source::DialectName;
use std::panic::{AssertUnwindSafe, resume_unwind};
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// Leases are short, as elsewhere here.
pub(crate) const SETTINGS: &str = "
[database]
max_connections = 5
[engine]
lease_sec = 3
[source]
allow_metadata_file = true
";

/// How far ahead rows are written.
const AHEAD: Duration = Duration::from_secs(5);

/// The stage.
pub(crate) struct Clockwork {
    pub(crate) house: House,
    pub(crate) home: String,
    pub(crate) dialect: DialectName,
    pub(crate) ticks: Ticks,
}

/// What all judges say.
pub(crate) struct Judged {
    pub(crate) times: Timings,
    pub(crate) rest: Verdict,
}

impl std::fmt::Display for Judged {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}\n{}", self.times, self.rest)
    }
}

impl Clockwork {
    /// On a metadata database, with groups and jobs for `ticks`; nothing is scheduled yet.
    pub(crate) async fn on(
        dialect: DialectName,
        home: &str,
        settings: &str,
        ticks: Vec<Tick>,
    ) -> Self {
        let house = House::on(home, settings);
        oracle::prepare(dialect, home).await;
        let (groups, jobs) = yaml(&ticks, dialect);
        if !jobs.is_empty() {
            let yaml = format!(
                "sources: {{ home: {{ url: \"{home}\" }} }}\ngroups:\n{groups}\
                 defaults: {{ timeout_sec: 120, retry_count: 50, retry_delay_sec: 1 }}\njobs:\n{jobs}"
            );
            house.write("clockwork.yaml", &yaml);
            let (code, _, told) = house.said(&["apply", "clockwork.yaml"]);
            assert_eq!(code, 0, "apply: {told}\n{yaml}");
        }
        let ticks = Ticks::of(dialect, home, ticks);
        Self { house, home: home.to_owned(), dialect, ticks }
    }

    /// Returns when nothing is left to do.
    pub(crate) async fn until_done(&self, said: impl Fn() -> String) {
        // No promise is kept by this: on a machine that stood still for a while 60 s were not enough.
        let limit = Instant::now() + Duration::from_secs(150);
        let rows_open = "SELECT COUNT(*) FROM job_firing WHERE status IN ('PENDING', 'WAITING')";
        let batches = "SELECT COUNT(*) FROM job_batch WHERE end_time IS NULL";
        let mut left = (String::new(), String::new());
        while Instant::now() < limit {
            left = (self.ask(rows_open).await, self.ask(batches).await);
            if left == ("0".to_owned(), "0".to_owned()) {
                return;
            }
            sleep(Duration::from_millis(100)).await;
        }
        panic!("{} firings and {} batches are still open\n{}", left.0, left.1, said());
    }

    /// The first value of a statement; empty when there is none.
    pub(crate) async fn ask(&self, sql: &str) -> String {
        let all = rows(&self.home, sql).await;
        all.into_iter().next().and_then(|row| row.into_iter().next().flatten()).unwrap_or_default()
    }

    /// A process that serves; `life` says how each of its lives is begun.
    pub(crate) fn serve(
        &self,
        name: &str,
        life: impl FnMut(usize) -> Life + Send + 'static,
    ) -> Worker {
        let (mut number, mut life) = (0, life);
        let own = name.to_owned();
        let next: Next = Box::new(move |_| {
            number += 1;
            let mut life = life(number - 1);
            life.args.extend(["--name".to_owned(), own.clone()]);
            Some(life)
        });
        Worker::start(&self.house, name, next)
    }

    /// One that is served by nothing special.
    pub(crate) fn serve_plainly(&self, name: &str) -> Worker {
        self.serve(name, |_| Life::of(&["serve"]))
    }

    /// Returns when all of these serve.
    pub(crate) async fn until_serving(&self, workers: &[Worker]) {
        for worker in workers {
            let limit = Instant::now() + Duration::from_secs(60);
            loop {
                let sql = format!("SELECT COUNT(*) FROM cluster_node WHERE pid = {}", worker.pid());
                if self.ask(&sql).await == "1" {
                    break;
                }
                assert!(Instant::now() < limit, "it does not serve: {}", worker.said());
                sleep(Duration::from_millis(20)).await;
            }
        }
    }

    /// Which of these held the schedule lock last.
    pub(crate) async fn leader(&self, workers: &[Worker]) -> Option<usize> {
        let sql = "SELECT n.pid FROM job_lock l JOIN cluster_node n ON n.node_id = l.owner \
                   WHERE l.lock_name = 'schedule_lock'";
        let pid: i32 = self.ask(sql).await.parse().ok()?;
        workers.iter().position(|worker| worker.pid() == pid)
    }

    /// Returns when a statement gives this number or more, within two minutes.
    pub(crate) async fn until_at_least(&self, sql: &str, least: i64, said: impl Fn() -> String) {
        let limit = Instant::now() + Duration::from_secs(120);
        let mut last = String::new();
        while Instant::now() < limit {
            last = self.ask(sql).await;
            if last.parse::<i64>().is_ok_and(|n| n >= least) {
                return;
            }
            sleep(Duration::from_millis(50)).await;
        }
        panic!("{sql}: {least} never came, it is {last}\n{}", said());
    }

    /// J1 over schedules, J2 to J5 over the batches they opened; `late` as in [`Times`].
    pub(crate) async fn judged(&self, late: Late) -> Judged {
        let firings = self.ticks.firings().await;
        let mut history: History = records::read(&self.home).await;
        history.wanted = self.ticks.wanted(&firings);
        history.effects = oracle::effects(&self.home).await;
        Judged { times: self.ticks.judged(firings, late).await, rest: judged(&history) }
    }

    /// Ends it: no schedule any more, nothing left to do, all judges content. Says what they found.
    pub(crate) async fn end(&mut self, name: &str, workers: &mut [Worker], late: Late) -> Judged {
        self.ticks.retire().await;
        // What has a row already is up to this far ahead.
        sleep(AHEAD + Duration::from_millis(500)).await;
        let said = || workers.iter().map(Worker::said).collect::<Vec<_>>().join("\n");
        self.until_done(said).await;
        let judged = self.judged(late).await;
        report(&format!("{name} on {:?}\n{judged}", self.dialect));
        assert!(judged.times.is_clean() && judged.rest.is_clean(), "{judged}\n{}", said());
        assert!(judged.times.fired > 0, "nothing fired\n{}", said());
        for worker in workers {
            worker.leave(Duration::from_secs(60)).await;
        }
        judged
    }
}

/// A story on a database of its own.
pub(crate) fn on<F, Fut>(dialect: DialectName, story: F) -> LocalBoxFuture<'static, ()>
where
    F: FnOnce(DialectName, String) -> Fut + 'static,
    Fut: Future<Output = ()> + 'static,
{
    async move {
        let folder = tempfile::tempdir().expect("a folder");
        match dialect {
            DialectName::Sqlite => story(dialect, sqlite(folder.path(), "home.db")).await,
            DialectName::Mysql | DialectName::Postgres => {
                with_database(dialect, |url| story(dialect, url)).await;
            }
        }
    }
    .boxed_local()
}

/// All at once, because they mostly wait; each to its end, so that each cleans up.
pub(crate) async fn together(stories: Vec<LocalBoxFuture<'static, ()>>) {
    let to_its_end = stories.into_iter().map(|story| AssertUnwindSafe(story).catch_unwind());
    for ended in join_all(to_its_end).await {
        ended.unwrap_or_else(|panic| resume_unwind(panic));
    }
}

/// Every database.
pub(crate) const ALL: [DialectName; 3] =
    [DialectName::Sqlite, DialectName::Mysql, DialectName::Postgres];
/// Those that are servers.
pub(crate) const SERVERS: [DialectName; 2] = [DialectName::Mysql, DialectName::Postgres];
