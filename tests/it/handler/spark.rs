//! SPARK against a real standalone cluster: `make test-engines` starts it and names its folder in PROCESSION_TEST_SPARK.

use crate::handler::engine_contract::{
    Engine, assert_failed, assert_ten_rows, call, engine_contract, http_get, next_attempt,
    with_params,
};
use crate::util::bench::Bench;
use procession::domain::job::application::spark::SparkOptions;
use procession::domain::job::application::{ApplicationCall, application_key};
use procession::domain::job::body::HttpHost;
use procession::domain::job::outcome::AttemptEnd;
use procession::handler::{StopReason, StoredApplication};
use std::collections::BTreeMap;
use std::process::Command;
use std::time::Duration;

const NOT_HERE: &str = "make test-engines names the folder of a cluster in PROCESSION_TEST_SPARK";

/// The cluster of scripts/test-engines.sh.
struct Cluster {
    folder: String,
    url: String,
    ui: String,
    home: String,
}

impl Engine for Cluster {
    const SUBMISSION: &'static str = "/submissions/create ";
    const FORGET: &'static str = "restart-master";

    fn find() -> Self {
        let folder = std::env::var("PROCESSION_TEST_SPARK").expect(NOT_HERE);
        let read = |name: &str| {
            let text = std::fs::read_to_string(format!("{folder}/{name}")).expect(NOT_HERE);
            text.trim().to_owned()
        };
        Self { url: read("url"), ui: read("ui"), home: read("home"), folder }
    }

    fn url(&self) -> &str {
        &self.url
    }

    fn folder(&self) -> &str {
        &self.folder
    }

    /// Its rows are in two tasks.
    fn probe(&self, how: &str, millis: u32) -> Bench {
        let file = format!("{}/probe.jar", self.folder);
        with_params(task(&self.url, Some(&self.ui), &file), how, millis)
    }

    async fn is_running(&self, key: &str) {
        for _ in 0..900 {
            if self.applications(key).await == ["RUNNING"] {
                return;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        panic!("{key} does not run: {:?}", self.applications(key).await);
    }

    async fn count(&self, key: &str) -> usize {
        self.applications(key).await.len()
    }

    async fn is_stopped(&self, key: &str, stored: Option<&str>) -> bool {
        let state = self.state(stored.expect("its id")).await;
        state == "KILLED" && self.applications(key).await != ["RUNNING"]
    }
}

impl Cluster {
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

    async fn state(&self, id: &str) -> String {
        let all = self.listing().await;
        let lists = [&all["activedrivers"], &all["completeddrivers"]];
        let mut drivers = lists.into_iter().filter_map(|list| list.as_array()).flatten();
        let found = drivers.find(|driver| driver["id"] == id).expect("the driver");
        found["state"].as_str().expect("a state").to_owned()
    }
}

engine_contract!(Cluster, "needs a Spark cluster: make test-engines");

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
async fn a_file_that_is_no_jar_fails_with_the_words_of_java() {
    let cluster = Cluster::find();
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
async fn without_a_web_page_a_driver_is_found_by_its_stored_id_alone() {
    let cluster = Cluster::find();
    let bench = cluster.probe("ok", 1_500);
    let (key, claim) = (bench.task.idem_key.clone(), bench.claim.clone());
    tokio::select! {
        ran = bench.run() => panic!("it ended: {}", ran.message()),
        () = cluster.is_running(&key) => {}
    }
    let stored = claim.3.lock().expect("a lock").clone().expect("an id");
    // By its id, where no web page can be read.
    let mut last = next_attempt(&cluster, &key, 1_500);
    last.task.host.as_mut().expect("a host").ui_url = None;
    *last.claim.3.lock().expect("a lock") = Some(stored.clone());
    let ran = last.run().await;
    assert_eq!(ran.outcome.end, AttemptEnd::Success, "{}", ran.message());
    assert_eq!(ran.value("application_id"), stored.id);
    // Without its id: then it is not known, also when it may run again.
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
