//! SPARK against a real standalone cluster: `make test-engines` starts it and names its folder in PROCESSION_TEST_SPARK.

use crate::handler::flink::{http_get, proxy_without_answers};
use crate::util::bench::{Bench, Ran};
use procession::domain::job::application::spark::SparkOptions;
use procession::domain::job::application::{ApplicationCall, application_key};
use procession::domain::job::body::HttpHost;
use procession::domain::job::outcome::{AttemptEnd, Stream};
use procession::domain::job::{ParamMode, ParamType};
use procession::handler::{StopReason, StoredApplication};
use std::collections::BTreeMap;
use std::process::Command;
use std::sync::atomic::Ordering;
use std::time::Duration;

const NOT_HERE: &str = "make test-engines names the folder of a cluster in PROCESSION_TEST_SPARK";

/// The cluster of scripts/test-engines.sh.
struct Cluster {
    folder: String,
    url: String,
    ui: String,
    home: String,
}

impl Cluster {
    fn find() -> Self {
        let folder = std::env::var("PROCESSION_TEST_SPARK").expect(NOT_HERE);
        let read = |name: &str| {
            let text = std::fs::read_to_string(format!("{folder}/{name}")).expect(NOT_HERE);
            text.trim().to_owned()
        };
        Self { url: read("url"), ui: read("ui"), home: read("home"), folder }
    }

    /// A task that runs the probe: ten rows in two tasks, so many milliseconds each row.
    fn probe(&self, how: &str, millis: u32) -> Bench {
        let file = format!("{}/probe.jar", self.folder);
        with_params(task(&self.url, Some(&self.ui), &file), how, millis)
    }

    /// The probe by `spark-submit` on this machine.
    fn submit(&self, how: &str, millis: u32) -> Bench {
        let mut bench = self.probe(how, millis).not_isolated();
        let call = call(&mut bench);
        call.host = None;
        call.spark = SparkOptions {
            master: Some("local[2]".to_owned()),
            spark_home: Some(self.home.clone()),
            driver_memory: Some("512m".to_owned()),
            ..SparkOptions::default()
        };
        bench.task.host = None;
        bench
    }

    async fn listing(&self) -> serde_json::Value {
        let text = http_get(&format!("{}/json/", self.ui)).await.expect("the listing");
        serde_json::from_str(&text).expect("JSON")
    }

    /// The states of the applications of this name: the idempotency key.
    async fn applications(&self, name: &str) -> Vec<String> {
        let all = self.listing().await;
        let lists = [&all["activeapps"], &all["completedapps"]];
        let apps = lists.into_iter().filter_map(|list| list.as_array()).flatten();
        let named = apps.filter(|app| app["name"] == name);
        named.filter_map(|app| app["state"].as_str().map(str::to_owned)).collect()
    }

    async fn is_running(&self, name: &str) {
        for _ in 0..900 {
            if self.applications(name).await == ["RUNNING"] {
                return;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        panic!("{name} does not run: {:?}", self.applications(name).await);
    }

    async fn state(&self, id: &str) -> String {
        let all = self.listing().await;
        let lists = [&all["activedrivers"], &all["completeddrivers"]];
        let mut drivers = lists.into_iter().filter_map(|list| list.as_array()).flatten();
        let found = drivers.find(|driver| driver["id"] == id).expect("the driver");
        found["state"].as_str().expect("a state").to_owned()
    }
}

fn with_params(bench: Bench, how: &str, millis: u32) -> Bench {
    let millis = millis.to_string();
    bench.param("how", ParamMode::In, ParamType::Text, Some(how)).param(
        "millis",
        ParamMode::In,
        ParamType::Int,
        Some(&millis),
    )
}

fn task(url: &str, ui: Option<&str>, file: &str) -> Bench {
    let mut bench = Bench::new("SPARK");
    bench.task.host = Some(HttpHost {
        name: "spark".to_owned(),
        base_url: url.to_owned(),
        ui_url: ui.map(str::to_owned),
        headers: BTreeMap::new(),
        max_parallel: None,
    });
    // Unlike a number that counts from 1 in each process, it is new to a cluster that remembers.
    bench.task.idem_key = format!("{}/{}", bench.task.idem_key, uuid::Uuid::new_v4());
    bench.task.job.application = Some(Box::new(ApplicationCall {
        host: Some("spark".to_owned()),
        file: file.to_owned(),
        main_class: (!file.ends_with(".py")).then(|| "SparkProbe".to_owned()),
        args: vec!["{how}".to_owned(), "{millis}".to_owned()],
        conf: BTreeMap::new(),
        parallelism: None,
        spark: SparkOptions {
            driver_memory: Some("512m".to_owned()),
            executor_memory: Some("512m".to_owned()),
            executor_cores: Some(1),
            max_cores: Some(2),
            ..SparkOptions::default()
        },
        poll_sec: 1,
    }));
    bench
}

fn call(bench: &mut Bench) -> &mut ApplicationCall {
    bench.task.job.application.as_mut().expect("a call")
}

/// The same run as the next attempt, after the worker of the last one died.
fn next_attempt(cluster: &Cluster, key: &str, millis: u32) -> Bench {
    let mut bench = cluster.probe("ok", millis);
    bench.task.idem_key = key.to_owned();
    (bench.task.attempt, bench.task.is_unresolved) = (2, true);
    bench
}

fn assert_failed(ran: &Ran, cause: &str) {
    assert_eq!(ran.outcome.end, AttemptEnd::Failed, "{}\n{}", ran.message(), ran.text());
    assert!(ran.message().contains(cause), "{cause} in {}", ran.message());
}

fn assert_ten_rows(ran: &Ran) {
    assert_eq!(ran.outcome.end, AttemptEnd::Success, "{}\n{}", ran.message(), ran.text());
    assert_eq!(ran.value("rows"), "10");
}

#[tokio::test]
async fn what_is_wrong_before_anything_is_sent_is_found_here() {
    let url = "http://127.0.0.1:1";
    let mut bench = task(url, None, "/");
    call(&mut bench).args = vec!["{nobody}".to_owned()];
    let ran = bench.run().await;
    assert_failed(&ran, "{nobody} is not among the job's parameters; nothing was submitted");
    let missing = with_params(task(url, None, "/no/such.jar"), "ok", 1);
    let said = "file /no/such.jar is not on this machine, where Spark is; nothing was submitted";
    assert_failed(&missing.run().await, said);
    let python = with_params(task(url, None, "/a.py"), "ok", 1);
    assert_failed(&python.run().await, "needs the ui_url of host spark");
    assert_failed(&with_params(task(url, None, "/"), "ok", 1).run().await, "cannot be reached");
    let mut bench = with_params(task(url, None, "/"), "ok", 1).not_isolated();
    (call(&mut bench).host, bench.task.host) = (None, None);
    call(&mut bench).spark.spark_home = Some("/no/spark".to_owned());
    let said = "/no/spark/bin/spark-submit is not on this node; correct spark_home; nothing was";
    assert_failed(&bench.run().await, said);
}

#[tokio::test]
#[ignore = "needs a Spark cluster: make test-engines"]
async fn a_job_runs_and_hands_on_what_it_printed() {
    let cluster = Cluster::find();
    let bench = cluster.probe("ok", 300);
    let (key, claim) = (bench.task.idem_key.clone(), bench.claim.clone());
    let ran = bench.run().await;
    assert_ten_rows(&ran);
    assert_eq!(ran.value("application_state"), "FINISHED");
    assert!(ran.text().contains("tasks"), "progress: {}", ran.text());
    assert_eq!(cluster.applications(&key).await, ["FINISHED"]);
    let id = ran.value("application_id");
    let stored = claim.3.lock().expect("a lock").clone();
    assert_eq!(stored, Some(StoredApplication { key: application_key(&key, 1), id }));
}

#[tokio::test]
#[ignore = "needs a Spark cluster: make test-engines"]
async fn a_failure_says_its_cause_and_a_retry_is_another_driver() {
    let cluster = Cluster::find();
    let bench = cluster.probe("fail", 10);
    let key = bench.task.idem_key.clone();
    let ran = bench.run().await;
    assert_failed(&ran, "java.lang.IllegalStateException: ledger out of balance: 0.01");
    assert_eq!(ran.value("application_state"), "FAILED");
    let log = ran.of(Stream::Stderr).join("\n");
    assert!(log.contains("at SparkProbe."), "{log}");
    let mut retry = next_attempt(&cluster, &key, 10);
    retry.task.is_unresolved = false;
    assert_ten_rows(&retry.run().await);
    assert_eq!(cluster.applications(&key).await.len(), 2);
}

#[tokio::test]
#[ignore = "needs a Spark cluster: make test-engines"]
async fn a_wrong_class_and_a_file_that_is_no_jar_fail_with_the_words_of_java() {
    let cluster = Cluster::find();
    let mut bench = cluster.probe("ok", 10);
    call(&mut bench).main_class = Some("Nope".to_owned());
    assert_failed(&bench.run().await, "java.lang.ClassNotFoundException: Nope");
    let text = tempfile::NamedTempFile::with_suffix(".jar").expect("a file");
    std::fs::write(text.path(), "no jar").expect("a file");
    let mut bench = cluster.probe("ok", 10);
    call(&mut bench).file = text.path().display().to_string();
    assert_failed(&bench.run().await, "java.lang.ClassNotFoundException: SparkProbe");
}

#[tokio::test]
#[ignore = "needs a Spark cluster: make test-engines"]
async fn a_python_file_runs_as_a_driver() {
    let cluster = Cluster::find();
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/engines/spark_probe.py");
    let bench = with_params(task(&cluster.url, Some(&cluster.ui), file), "ok", 10);
    let key = bench.task.idem_key.clone();
    assert_ten_rows(&bench.run().await);
    assert_eq!(cluster.applications(&key).await, ["FINISHED"]);
    let bench = with_params(task(&cluster.url, Some(&cluster.ui), file), "fail", 10);
    assert_failed(&bench.run().await, "ValueError: ledger out of balance: 0.01");
}

#[tokio::test]
#[ignore = "needs a Spark cluster: make test-engines"]
async fn a_job_that_is_stopped_is_proven_gone() {
    let cluster = Cluster::find();
    for (reason, end) in
        [(StopReason::Killed, AttemptEnd::Killed), (StopReason::TimedOut, AttemptEnd::TimedOut)]
    {
        let bench = cluster.probe("ok", 60_000);
        let (key, claim) = (bench.task.idem_key.clone(), bench.claim.clone());
        let ran = bench.stop_when(reason, cluster.is_running(&key)).await;
        assert_eq!(ran.outcome.end, end, "{}", ran.message());
        let stored = claim.3.lock().expect("a lock").clone().expect("an id");
        assert_eq!(cluster.state(&stored.id).await, "KILLED");
        assert_ne!(cluster.applications(&key).await, ["RUNNING"]);
    }
}

#[tokio::test]
#[ignore = "needs a Spark cluster: make test-engines"]
async fn what_no_worker_has_room_for_waits_and_can_be_stopped() {
    let cluster = Cluster::find();
    let mut bench = cluster.probe("ok", 10);
    call(&mut bench).spark.driver_memory = Some("900g".to_owned());
    let (key, claim) = (bench.task.idem_key.clone(), bench.claim.clone());
    let submitted = async {
        while claim.3.lock().expect("a lock").is_none() {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        tokio::time::sleep(Duration::from_secs(2)).await;
    };
    let ran = bench.stop_when(StopReason::TimedOut, submitted).await;
    assert_eq!(ran.outcome.end, AttemptEnd::TimedOut, "{}", ran.message());
    assert!(ran.text().contains("SUBMITTED waits for a worker"), "{}", ran.text());
    assert!(cluster.applications(&key).await.is_empty());
}

#[tokio::test]
#[ignore = "needs a Spark cluster: make test-engines"]
async fn after_a_crash_the_next_attempt_goes_on_with_the_same_driver() {
    let cluster = Cluster::find();
    let bench = cluster.probe("ok", 1_500);
    let (key, claim) = (bench.task.idem_key.clone(), bench.claim.clone());
    tokio::select! {
        ran = bench.run() => panic!("it ended: {}", ran.message()),
        () = cluster.is_running(&key) => {}
    }
    // Its id was not stored: the crash came before. It is found by its key.
    let ran = next_attempt(&cluster, &key, 1_500).run().await;
    assert_ten_rows(&ran);
    let stored = claim.3.lock().expect("a lock").clone().expect("an id");
    assert_eq!(ran.value("application_id"), stored.id);
    // By its id, where no web page can be read.
    let mut last = next_attempt(&cluster, &key, 1_500);
    last.task.host.as_mut().expect("a host").ui_url = None;
    *last.claim.3.lock().expect("a lock") = Some(stored.clone());
    let ran = last.run().await;
    assert_eq!(ran.outcome.end, AttemptEnd::Success, "{}", ran.message());
    assert_eq!(ran.value("application_id"), stored.id);
    // Neither: then it is not known, also when it may run again.
    let mut blind = next_attempt(&cluster, &key, 1_500);
    blind.task.host.as_mut().expect("a host").ui_url = None;
    blind.task.job.idempotent = true;
    let ran = blind.run().await;
    assert_eq!(ran.outcome.end, AttemptEnd::Unknown, "{}", ran.message());
    assert!(ran.message().contains("has no ui_url"), "{}", ran.message());
    assert_eq!(cluster.applications(&key).await.len(), 1);
}

#[tokio::test]
#[ignore = "needs a Spark cluster: make test-engines"]
async fn what_a_dead_worker_left_is_ended() {
    let cluster = Cluster::find();
    let bench = cluster.probe("ok", 60_000);
    let (key, claim) = (bench.task.idem_key.clone(), bench.claim.clone());
    tokio::select! {
        ran = bench.run() => panic!("it ended: {}", ran.message()),
        () = cluster.is_running(&key) => {}
    }
    let mut orphan = cluster.probe("ok", 1);
    orphan.task.idem_key = key;
    let ran = orphan.end_orphan().await;
    assert_eq!(ran.outcome.end, AttemptEnd::Killed, "{}", ran.message());
    let stored = claim.3.lock().expect("a lock").clone().expect("an id");
    assert_eq!(cluster.state(&stored.id).await, "KILLED");
}

#[tokio::test]
#[ignore = "needs a Spark cluster: make test-engines"]
async fn what_is_not_found_after_a_crash_is_unknown_unless_it_may_run_again() {
    let cluster = Cluster::find();
    let bench = next_attempt(&cluster, &format!("never/{}", uuid::Uuid::new_v4()), 10);
    let key = bench.task.idem_key.clone();
    let ran = bench.run().await;
    assert_eq!(ran.outcome.end, AttemptEnd::Unknown, "{}", ran.message());
    assert!(ran.message().contains("knows no application of an earlier attempt"));
    assert!(cluster.applications(&key).await.is_empty());
    let mut bench = next_attempt(&cluster, &key, 10);
    bench.task.job.idempotent = true;
    assert_ten_rows(&bench.run().await);
    assert_eq!(cluster.applications(&key).await.len(), 1);
}

#[tokio::test]
#[ignore = "needs a Spark cluster: make test-engines"]
async fn a_submission_whose_answer_is_lost_is_found_and_not_made_twice() {
    let cluster = Cluster::find();
    let (proxy, was_cut) = proxy_without_answers(&cluster.url, "/submissions/create ").await;
    let mut bench = cluster.probe("ok", 10);
    bench.task.host.as_mut().expect("a host").base_url = proxy;
    let key = bench.task.idem_key.clone();
    let ran = bench.run().await;
    assert!(was_cut.load(Ordering::SeqCst), "no answer was lost");
    assert_ten_rows(&ran);
    assert!(ran.text().contains("the submission has arrived"), "{}", ran.text());
    assert_eq!(cluster.applications(&key).await, ["FINISHED"]);
}

#[tokio::test]
#[ignore = "needs a Spark cluster: make test-engines"]
async fn spark_submit_on_this_machine_ends_with_its_attempt() {
    let cluster = Cluster::find();
    assert_ten_rows(&cluster.submit("ok", 10).run().await);
    let ran = cluster.submit("fail", 10).run().await;
    assert_failed(&ran, "exit code 1: java.lang.IllegalStateException: ledger out of balance");
    let bench = cluster.submit("ok", 60_000);
    let key = application_key(&bench.task.idem_key, 1);
    let is_there = || {
        let found = Command::new("pgrep").args(["-f", &key]).output().expect("pgrep");
        found.status.success()
    };
    let started = async {
        while !is_there() {
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    };
    let ran = bench.stop_when(StopReason::Killed, started).await;
    assert_eq!(ran.outcome.end, AttemptEnd::Killed, "{}", ran.message());
    assert!(!is_there(), "the driver is gone");
}

#[tokio::test]
#[ignore = "needs a Spark cluster: make test-engines"]
async fn zz_a_driver_that_the_master_forgot_is_unknown() {
    let cluster = Cluster::find();
    let bench = cluster.probe("ok", 60_000);
    let key = bench.task.idem_key.clone();
    let restarted = async {
        cluster.is_running(&key).await;
        let folder = cluster.folder.clone();
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/scripts/test-engines.sh");
        let restart = move || Command::new(script).args(["restart-master", &folder]).status();
        let status = tokio::task::spawn_blocking(restart).await.expect("a thread");
        assert!(status.expect("the script").success());
    };
    let (ran, ()) = tokio::join!(bench.run(), restarted);
    assert_eq!(ran.outcome.end, AttemptEnd::Unknown, "{}\n{}", ran.message(), ran.text());
    assert!(ran.message().contains("it was started anew"), "{}", ran.message());
}
