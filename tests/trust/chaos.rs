//! The chaos run: two worker processes, batches of jobs of all classes, a nemesis by seed, and at the end
//! the judges. The long form is `make chaos`, the short one a test per database.

use crate::trust::dice::Dice;
use crate::trust::judge::fires::{Late, Timings};
use crate::trust::judge::{Answer, Verdict, Wanted, judged};
use crate::trust::nemesis::{Nemesis, Temper, Trouble};
use crate::trust::nodes::{House, Life, Next, Worker};
use crate::trust::oracle::{self, Keys, rows};
use crate::trust::proxy::Proxy;
use crate::trust::records;
use crate::trust::servers::Server;
use crate::trust::targets::{make, try_session};
use crate::trust::ticks::{Ticks, mixed, yaml};
use crate::trust::workload::{Place, Workload};
use procession::domain::source::DialectName;
use std::collections::{BTreeMap, VecDeque};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// How large and how rough.
pub(crate) struct Plan {
    pub(crate) seed: u64,
    /// Where Procession keeps its tables. Bodies run on a server of the same kind; on MariaDB with SQLite.
    pub(crate) home: DialectName,
    /// Jobs in all, each of which is to have one effect.
    pub(crate) effects: usize,
    pub(crate) jobs_per_batch: usize,
    /// Batches that may be open at once.
    pub(crate) at_once: usize,
    pub(crate) temper: Temper,
    /// How long the end may take once everything is healed.
    pub(crate) drain: Duration,
}

/// What came of it.
pub(crate) struct Report {
    pub(crate) verdict: Verdict,
    pub(crate) times: Timings,
    pub(crate) troubles: BTreeMap<Trouble, usize>,
    pub(crate) starts: usize,
    pub(crate) ran: Duration,
    pub(crate) drained: Duration,
    /// The last words of the workers, for a report that is not clean.
    pub(crate) said: String,
}

/// What may be late here: both processes may be dead, and the server away, for some time.
const ROUGH: Late = Late { fires: 60_000, made_up: 600_000, body: 120_000 };

/// Settings of the workers: what takes seconds elsewhere is short here.
const SETTINGS: &str = "
[database]
connect_timeout_sec = 5
statement_timeout_sec = 15
[engine]
lease_sec = 2
park_after = 100
[stop]
grace_sec = 1
confirm_sec = 10
drain_sec = 3
[source]
allow_metadata_file = true
connect_timeout_sec = 5
away_sec = 60
idle_sec = 10
look_sec = 1
[script.interpreters]
sh = \"/bin/sh\"
";

/// Batches that were opened by hand.
const OPENED: &str = "SELECT COUNT(*) FROM job_batch WHERE group_code = 'chaos'";
/// Firings and their batches to which something is still to happen.
const UNDONE: &str = "SELECT (SELECT COUNT(*) FROM job_firing WHERE status IN ('PENDING', 'WAITING')) + \
     (SELECT COUNT(*) FROM job_batch WHERE end_time IS NULL AND group_code <> 'chaos')";

/// Everything a run stands on.
struct Stage {
    proxy: Proxy,
    home: String,
    target: String,
    house: House,
    fx_file: PathBuf,
    workload: Workload,
    way: Way,
    ticks: Ticks,
    _folder: tempfile::TempDir,
}

/// How batches are run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// `serve` twice, and `batch open` beside it.
    Serve,
    /// Each worker runs its own batches with `run`, one after the other, for binaries without `serve`.
    Run,
}

impl Stage {
    async fn set(plan: &Plan, dice: &mut Dice) -> (Self, Server) {
        let folder = tempfile::tempdir().expect("a folder");
        let kind = match plan.home {
            DialectName::Sqlite => DialectName::Mysql,
            server => server,
        };
        let server = Server::start(kind).await;
        let (target, _dropped_with_the_server) = make(kind, &server.url).await;
        let home = match plan.home {
            DialectName::Sqlite => format!("sqlite:{}", folder.path().join("home.db").display()),
            _ => make(kind, &server.url).await.0,
        };
        oracle::prepare(kind, &target).await;
        let house = House::on(&home, SETTINGS);
        oracle::prepare(plan.home, &home).await;
        let (proxy, through) = Proxy::of_url(&target).await;
        let schema = house.said(&["schema"]).1;
        let keys = if schema.contains("\"ledger\"") { Keys::Given } else { Keys::Made };
        let way = if house.knows(&["serve"]) { Way::Serve } else { Way::Run };
        let fx_file = house.path().join("effects");
        let place = Place {
            target: &through,
            target_dialect: kind,
            home: &home,
            home_dialect: plan.home,
            fx_file: &fx_file,
            keys,
        };
        let workload = Workload::of(dice, plan.jobs_per_batch, &place);
        house.write("chaos.yaml", &workload.yaml);
        let (code, _, told) = house.said(&["apply", "chaos.yaml"]);
        assert_eq!(code, 0, "apply: {told}\n{}", workload.yaml);
        let ticks = mixed(9);
        let (groups, jobs) = yaml(&ticks, plan.home);
        let more = format!(
            "sources: {{ home: {{ url: \"{home}\" }} }}\ngroups:\n{groups}\
             defaults: {{ timeout_sec: 120, retry_count: 50, retry_delay_sec: 1 }}\njobs:\n{jobs}"
        );
        house.write("ticks.yaml", &more);
        let (code, _, told) = house.said(&["apply", "ticks.yaml"]);
        assert_eq!(code, 0, "apply: {told}\n{more}");
        let ticks = Ticks::of(plan.home, &home, ticks);
        if keys == Keys::Given {
            let (code, _, told) = house.said(&["source", "prepare", "target"]);
            assert_eq!(code, 0, "source prepare: {told}");
        }
        (
            Self { proxy, home, target, house, fx_file, workload, way, ticks, _folder: folder },
            server,
        )
    }

    fn workers(&self, numbers: &[String]) -> Vec<Worker> {
        let of = |n: usize| -> Next {
            match self.way {
                Way::Serve => Box::new(|_| Some(Life::of(&["serve"]))),
                Way::Run => run_each(numbers.iter().skip(n).step_by(2).cloned().collect()),
            }
        };
        (0..2).map(|n| Worker::start(&self.house, &format!("worker{n}"), of(n))).collect()
    }

    /// Rows that something is still to happen to; `None` when the database is away.
    async fn open_rows(&self) -> Option<usize> {
        let sql = "SELECT COUNT(*) FROM job_queue q JOIN job_batch b ON b.batch_id = q.batch_id \
                   WHERE b.end_time IS NULL AND b.group_code = 'chaos' AND q.status IN \
                   ('PENDING', 'QUEUED', 'RUNNING', 'RETRY_WAIT', 'KILLING')";
        self.count(sql).await
    }

    async fn count(&self, sql: &str) -> Option<usize> {
        let mut session = try_session(&self.home).await.ok()?;
        let done = session.run_statement(sql, &[]).await.ok()?;
        done.sets.first()?.rows.first()?[0].as_ref()?.parse().ok()
    }
}

/// Runs batches one after the other; one whose process died is gone on with.
fn run_each(mut numbers: VecDeque<String>) -> Next {
    let mut again = false;
    let mut is_first = true;
    Box::new(move |last| {
        match last {
            _ if is_first => {}
            Some(0 | 1) => {
                numbers.pop_front();
                again = false;
            }
            // Whether it was opened before its process died, nobody knows: the other way then.
            Some(2) => again = !again,
            _ => again = true,
        }
        is_first = false;
        let number = numbers.front()?.clone();
        let mut args = vec!["run", "--group", "chaos", "-q", "--batch-no", &number];
        args.extend(again.then_some("--resume"));
        Some(Life::of(&args))
    })
}

/// Opens batches as there is room for them; says whether each call had an answer.
async fn open(stage: &Stage, plan: &Plan, numbers: &[String], wanted: &Mutex<Vec<Wanted>>) {
    for number in numbers {
        let mut answer = Answer::Came;
        if stage.way == Way::Serve {
            let most = plan.at_once * plan.jobs_per_batch;
            while stage.open_rows().await.is_none_or(|open| open >= most) {
                sleep(Duration::from_millis(100)).await;
            }
            let args = ["batch", "open", "chaos.yaml", "--batch-no", number];
            let mut command = tokio::process::Command::from(stage.house.command(&args));
            loop {
                let said = command.output().await.expect("it runs");
                let told = String::from_utf8_lossy(&said.stderr).into_owned();
                match said.status.code() {
                    Some(0) => break,
                    Some(2) if answer == Answer::Lost => break, // it is there: the answer was lost
                    Some(2) => panic!("batch open {number}: {told}"),
                    _ => answer = Answer::Lost,
                }
                sleep(Duration::from_millis(200)).await;
            }
        }
        let jobs = stage.workload.wanted(number, answer);
        wanted.lock().expect("the list").extend(jobs);
    }
}

/// Runs it from begin to end.
pub(crate) async fn run(plan: &Plan) -> Report {
    let mut dice = Dice::of(plan.seed);
    let (mut stage, mut server) = Stage::set(plan, &mut dice).await;
    let batches = plan.effects.div_ceil(plan.jobs_per_batch);
    let numbers: Vec<String> = (0..batches).map(|n| format!("C{n:05}")).collect();
    let mut workers = stage.workers(&numbers);
    stage.ticks.schedule().await;
    let (start, wanted) = (Instant::now(), Mutex::new(Vec::new()));
    let is_on = Arc::new(AtomicBool::new(true));
    let mut temper = plan.temper.clone();
    temper.leaves = stage.way == Way::Serve;
    let counts = BTreeMap::new();
    let proxy = &stage.proxy;
    let mut nemesis =
        Nemesis { dice, temper, workers: &workers, proxy, server: &mut server, counts };
    let work = async {
        open(&stage, plan, &numbers, &wanted).await;
        until_nothing_is_open(&stage, plan, &workers, batches).await;
        is_on.store(false, SeqCst);
    };
    tokio::join!(work, nemesis.rage(|| is_on.load(SeqCst)));
    let troubles = nemesis.counts;
    let (ran, healed) = (start.elapsed(), Instant::now());
    stage.ticks.retire().await;
    let is_drained = drain(&stage, plan, &workers, batches).await;
    let drained = healed.elapsed();
    for worker in &mut workers {
        worker.leave(Duration::from_secs(60)).await;
    }
    let mut history = records::read(&stage.home).await;
    history.wanted = wanted.into_inner().expect("the list");
    let firings = stage.ticks.firings().await;
    history.wanted.extend(stage.ticks.wanted(&firings));
    history.effects = oracle::effects(&stage.target).await;
    history.effects.extend(oracle::effects(&stage.home).await);
    history.effects.extend(oracle::effects_in(&stage.fx_file));
    let said = workers.iter().map(Worker::said).collect::<Vec<_>>().join("\n");
    let left =
        rows(&stage.home, "SELECT batch_no, status FROM job_batch WHERE end_time IS NULL").await;
    let said = if is_drained { said } else { format!("still open: {left:?}\n{said}") };
    let starts = workers.iter().map(Worker::starts).sum();
    let times = stage.ticks.judged(firings, ROUGH).await;
    Report { verdict: judged(&history), times, troubles, starts, ran, drained, said }
}

/// Returns when most of the work is done, so that there is trouble to the end.
async fn until_nothing_is_open(stage: &Stage, plan: &Plan, workers: &[Worker], batches: usize) {
    let few = plan.jobs_per_batch;
    let limit = Instant::now() + Duration::from_secs(3_600);
    while Instant::now() < limit && !workers.iter().all(Worker::is_done) {
        let opened = stage.count(OPENED).await;
        if opened == Some(batches) && stage.open_rows().await.is_some_and(|open| open <= few) {
            return;
        }
        sleep(Duration::from_millis(250)).await;
    }
}

async fn drain(stage: &Stage, plan: &Plan, workers: &[Worker], batches: usize) -> bool {
    let limit = Instant::now() + plan.drain;
    while Instant::now() < limit {
        let opened = stage.count(OPENED).await;
        let is_done = workers.iter().all(Worker::is_done);
        let is_ended = opened == Some(batches)
            && stage.open_rows().await == Some(0)
            && stage.count(UNDONE).await == Some(0);
        if is_done || is_ended {
            return true;
        }
        sleep(Duration::from_millis(100)).await;
    }
    false
}

impl std::fmt::Display for Report {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let troubles: Vec<String> =
            self.troubles.iter().map(|(what, count)| format!("{what:?} {count}")).collect();
        writeln!(
            f,
            "ran {:.1} s, drained in {:.1} s",
            self.ran.as_secs_f32(),
            self.drained.as_secs_f32()
        )?;
        writeln!(f, "{} lives of two workers; trouble: {}", self.starts, troubles.join(", "))?;
        writeln!(f, "{}", self.times)?;
        write!(f, "{}", self.verdict)
    }
}
