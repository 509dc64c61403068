//! P-18: a process dies around what it writes of a run of an executor, around the question to run, and while it
//! is told an end. The executor is asked at most once for each try, an end is taken once, and a run of which
//! nobody can know whether the executor was asked is UNKNOWN.

use crate::trust::clockwork::{ALL, on, together};
use crate::trust::nodes::{Life, Worker};
use crate::trust::oracle::rows;
use crate::trust::scene::{PATIENCE, Scene};
use crate::util::port::free_port;
use crate::xxl::program_of_others::{Program, TOKEN};
use nix::sys::signal::Signal;
use std::collections::BTreeSet;
use std::time::Duration;
use tokio::time::{Instant, sleep};

const SETTINGS: &str = "
[engine]
lease_sec = 3
";
/// To seal the token with; of no other use.
const KEY: (&str, &str) = ("PROCESSION_SECRET_KEY", "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=");
/// A lease, a minute in which the executor is idle, and what busy machines take.
const LONG: Duration = Duration::from_secs(180);

/// The first commit of a run says that an executor is asked for it, the second that it has taken it.
const FIRST: &str = "1*return(abort)";
const SECOND: &str = "1*off->1*return(abort)";

/// An executor, its group, and a job that it runs.
struct Stage {
    scene: Scene,
    program: Program,
    door: String,
}

impl Stage {
    /// `more` is what the job has beside its executor.
    async fn on(home: &str, more: &str) -> Self {
        let (scene, program) = (Scene::on(home, SETTINGS), Program::begin().await);
        let yaml = format!(
            "groups: {{ story: {{ type: adhoc }} }}\ndefaults: {{ group: story }}\njobs:\n\
             \x20 PAY: {{ type: HANDLER, executor: {{ app: pay-executor, handler: payHandler }}{more} }}\n"
        );
        scene.house.write("story.yaml", &yaml);
        scene.house.write("token", TOKEN);
        let url = program.url();
        let add =
            ["executor-group", "add", "pay-executor", "--from-file", "token", "--address", &url];
        for args in [&["apply", "story.yaml"][..], &add] {
            let done = scene.house.command(args).env(KEY.0, KEY.1).output().expect("it runs");
            assert!(done.status.success(), "{args:?}: {}", String::from_utf8_lossy(&done.stderr));
        }
        Self { scene, program, door: free_address() }
    }

    /// A process that serves and hears executors at this door; each of its lives dies where `places` say, and
    /// those that have no place live on.
    fn serve(&self, name: &str, door: &str, places: &[&str]) -> Worker {
        let life = Life::of(&["serve", "--name", name, "--http", door]).with(KEY.0, KEY.1);
        let places: Vec<String> = places.iter().copied().map(str::to_owned).collect();
        let mut lives = places.into_iter().map({
            let life = life.clone();
            move |place| life.clone().with("FAILPOINTS", &place)
        });
        let next = move |_| Some(lives.next().unwrap_or_else(|| life.clone()));
        Worker::start(&self.scene.house, name, Box::new(next))
    }

    /// Its runs: by which start of the job, how far, how ended, with which code.
    async fn runs(&self) -> Vec<String> {
        let sql = "SELECT attempt, status, COALESCE(result, '-'), COALESCE(handle_code, 0) \
                   FROM executor_run ORDER BY log_id";
        let line = |row: Vec<Option<String>>| {
            row.into_iter().map(Option::unwrap_or_default).collect::<Vec<_>>().join(" ")
        };
        rows(&self.scene.home, sql).await.into_iter().map(line).collect()
    }

    /// The keys of the runs that the executor was asked for.
    fn asked(&self) -> Vec<i64> {
        let key = |ask: &serde_json::Value| ask["logId"].as_i64().expect("a key");
        self.program.heard("/run").iter().map(key).collect()
    }

    /// Returns when so many lives of a process have ended.
    async fn until_dead(&self, worker: &Worker, lives: usize) {
        let limit = Instant::now() + PATIENCE;
        while worker.exits().len() < lives {
            assert!(Instant::now() < limit, "it lives: {:?}\n{}", self.runs().await, worker.said());
            sleep(Duration::from_millis(20)).await;
        }
        assert_eq!(worker.exits()[lives - 1], None, "by a signal: {}", worker.said());
    }

    /// Returns when whoever goes on has asked for the first run, or looked for each of the others.
    async fn until_found(&self, run: usize, worker: &Worker) {
        let limit = Instant::now() + PATIENCE;
        let heard = |path| self.program.heard(path).len();
        while heard("/idleBeat") < run || heard("/run") <= run {
            assert!(Instant::now() < limit, "{:?}\n{}", self.runs().await, worker.said());
            sleep(Duration::from_millis(20)).await;
        }
    }

    /// The executor tells the end of each run that it was asked for, again and again until it is taken; returns
    /// the end of the batch.
    async fn until_ended(&self, number: &str, worker: &Worker) -> String {
        let sql = format!(
            "SELECT status FROM job_batch WHERE batch_no = '{number}' AND end_time IS NOT NULL"
        );
        let (limit, mut told) = (Instant::now() + LONG, BTreeSet::new());
        loop {
            for log in self.asked() {
                if !told.contains(&log)
                    && self.program.tells(&self.door, log, 200).await == Some(200)
                {
                    told.insert(log);
                }
            }
            if let Some(end) = self.scene.ask(&sql).await {
                return end;
            }
            let said = || format!("{}\n{told:?}", worker.said());
            assert!(Instant::now() < limit, "{:?}\n{}", self.runs().await, said());
            sleep(Duration::from_millis(100)).await;
        }
    }
}

fn free_address() -> String {
    format!("127.0.0.1:{}", free_port())
}

/// The executor has it, or nothing of it is on record: whoever comes next asks, or goes on.
async fn gone_on_with(home: String) {
    let mut stage = Stage::on(&home, "").await;
    // With the start that wrote the run: where that was not yet on record, it is the second.
    let places = [
        (format!("admin.before_commit={FIRST}"), "2"),
        (format!("admin.after_post={FIRST}"), "1"),
        (format!("admin.before_commit={SECOND}"), "1"),
        (format!("admin.after_commit={SECOND}"), "1"),
    ];
    // Whoever goes on is not to die itself.
    let lives: Vec<&str> = places.iter().flat_map(|(place, _)| [place.as_str(), ""]).collect();
    let worker = stage.serve("victim", &stage.door, &lives);
    for (n, (place, attempt)) in places.iter().enumerate() {
        if n > 0 {
            assert!(worker.signal(Signal::SIGKILL), "{}", worker.said());
            stage.until_dead(&worker, 2 * n).await;
        }
        let number = format!("20240{}", n + 1);
        stage.scene.open(&number);
        stage.until_dead(&worker, 2 * n + 1).await;
        stage.until_found(n, &worker).await;
        let end = stage.until_ended(&number, &worker).await;
        assert_eq!(end, "SUCCESS", "{place}: {:?}\n{}", stage.runs().await, worker.said());
        assert_eq!(stage.asked().len(), n + 1, "{place}: {:?}", stage.runs().await);
        assert_eq!(stage.runs().await[n], format!("{attempt} DONE - 200"), "{place}");
    }
    assert_eq!(stage.program.most(), 1);
}

/// It is on record that the executor is asked, and nobody was: that cannot be known, so it is not asked again.
async fn not_known(home: String, place: &'static str) {
    let mut stage = Stage::on(&home, "").await;
    let worker = stage.serve("victim", &stage.door, &[&format!("{place}={FIRST}")]);
    stage.scene.open("202401");
    stage.until_dead(&worker, 1).await;
    let end = stage.until_ended("202401", &worker).await;
    assert_eq!(end, "FAILED", "{place}: {:?}\n{}", stage.runs().await, worker.said());
    assert_eq!(stage.runs().await, ["1 DONE LOST 0"], "{place}");
    assert_eq!(stage.scene.of("202401", "PAY", "status").await, "UNKNOWN");
    let said = stage.scene.of("202401", "PAY", "error_message").await;
    assert!(said.contains("gave no answer when it was asked, does not run it"), "{place}: {said}");
    assert_eq!(stage.asked(), [0; 0], "{place}");
}

/// What may be done twice is asked for once more, as a run of its own.
async fn not_known_and_tried_again(home: String) {
    let more = ", idempotent: true, retry_count: 1, retry_delay_sec: 1";
    let mut stage = Stage::on(&home, more).await;
    let place = format!("admin.before_post={FIRST}");
    let worker = stage.serve("victim", &stage.door, &[&place]);
    stage.scene.open("202401");
    stage.until_dead(&worker, 1).await;
    let end = stage.until_ended("202401", &worker).await;
    assert_eq!(end, "SUCCESS", "{:?}\n{}", stage.runs().await, worker.said());
    assert_eq!(stage.runs().await, ["1 DONE LOST 0", "3 DONE - 200"]);
    assert_eq!(stage.asked(), [2]);
}

/// An end is told to a process that dies of it, beside the one whose run it is.
async fn told_to_one_that_dies(home: String, place: &'static str, written: &'static str) {
    let mut stage = Stage::on(&home, "").await;
    let steady = stage.serve("steady", &stage.door, &[]);
    stage.scene.open("202401");
    let running = "SELECT COUNT(*) FROM executor_run WHERE status = 'RUNNING'";
    stage.scene.until(running, "1", || steady.said()).await;
    let door = free_address();
    let victim = stage.serve("victim", &door, &[&format!("{place}={FIRST}")]);
    let limit = Instant::now() + PATIENCE;
    while tokio::net::TcpStream::connect(&door).await.is_err() {
        assert!(Instant::now() < limit, "it does not listen: {}", victim.said());
        sleep(Duration::from_millis(20)).await;
    }
    let [log] = stage.asked()[..] else { panic!("{:?}", stage.asked()) };
    assert_eq!(stage.program.tells(&door, log, 200).await, None, "{}", victim.said());
    stage.until_dead(&victim, 1).await;
    let codes = "SELECT COALESCE(MAX(handle_code), 0) FROM executor_run";
    assert_eq!(stage.scene.ask(codes).await.as_deref(), Some(written), "{place}");
    // It got no answer, and says it again.
    let said = || format!("{}\n{}", steady.said(), victim.said());
    let end = stage.until_ended("202401", &steady).await;
    assert_eq!(end, "SUCCESS", "{place}: {:?}\n{}", stage.runs().await, said());
    let everything = "SELECT * FROM executor_run";
    let before = rows(&stage.scene.home, everything).await;
    for (door, code) in [(&stage.door, 200), (&stage.door, 500), (&door, 500)] {
        let limit = Instant::now() + PATIENCE;
        while stage.program.tells(door, log, code).await != Some(200) {
            assert!(Instant::now() < limit, "{place}: {}", said());
            sleep(Duration::from_millis(50)).await;
        }
    }
    assert_eq!(rows(&stage.scene.home, everything).await, before, "{place}");
    assert_eq!(stage.runs().await, ["1 DONE - 200"], "{place}");
    assert_eq!((stage.asked().len(), steady.starts()), (1, 1), "{place}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_that_an_executor_has_is_gone_on_with() {
    together(ALL.map(|dialect| on(dialect, |_, url| gone_on_with(url))).into()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_of_which_it_is_not_known_is_not_asked_for_again() {
    let places = ["admin.after_commit", "admin.before_post"];
    let each = |dialect| places.map(|place| on(dialect, move |_, url| not_known(url, place)));
    let again = ALL.map(|dialect| on(dialect, |_, url| not_known_and_tried_again(url)));
    together(ALL.into_iter().flat_map(each).chain(again).collect()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_end_is_taken_once_whoever_dies_of_it() {
    // Whether it is on record when its answer does not come.
    let places = [("admin.before_commit", "0"), ("admin.after_commit", "200")];
    let each = |dialect| {
        places.map(|(place, written)| {
            on(dialect, move |_, url| told_to_one_that_dies(url, place, written))
        })
    };
    together(ALL.into_iter().flat_map(each).collect()).await;
}
