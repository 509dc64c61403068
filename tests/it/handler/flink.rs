//! FLINK against a real session cluster: `make test-engines` starts it and names its folder in PROCESSION_TEST_FLINK.

use crate::handler::engine_contract::{
    Engine, assert_failed, assert_ten_rows, call, engine_contract, http_get, next_attempt,
    with_params,
};
use crate::util::bench::Bench;
use procession::domain::job::application::spark::SparkOptions;
use procession::domain::job::application::{ApplicationCall, flink::job_id};
use procession::domain::job::body::HttpHost;
use procession::domain::job::outcome::Stream;
use std::collections::BTreeMap;
use std::time::Duration;

const NOT_HERE: &str = "make test-engines names the folder of a cluster in PROCESSION_TEST_FLINK";

/// The cluster of scripts/test-engines.sh.
struct Cluster {
    folder: String,
    url: String,
}

impl Engine for Cluster {
    const SUBMISSION: &'static str = "/run ";
    const FORGET: &'static str = "restart-jobmanager";

    fn find() -> Self {
        let folder = std::env::var("PROCESSION_TEST_FLINK").expect(NOT_HERE);
        let url = std::fs::read_to_string(format!("{folder}/url")).expect(NOT_HERE);
        Self { folder, url: url.trim().to_owned() }
    }

    fn url(&self) -> &str {
        &self.url
    }

    fn folder(&self) -> &str {
        &self.folder
    }

    fn probe(&self, how: &str, millis: u32) -> Bench {
        let file = format!("{}/probe.jar", self.folder);
        with_params(task(&self.url, &file), how, millis)
    }

    async fn is_running(&self, key: &str) {
        let id = job_id(key, 1);
        for _ in 0..300 {
            if self.state(&id).await.as_deref() == Some("RUNNING") {
                return;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        panic!("{id} is {:?} and does not run", self.state(&id).await);
    }

    /// The name of a job is its idempotency key.
    async fn count(&self, key: &str) -> usize {
        let all = self.get("jobs/overview").await.expect("the jobs");
        let jobs = all["jobs"].as_array().expect("a list");
        jobs.iter().filter(|job| job["name"] == key).count()
    }

    async fn is_stopped(&self, key: &str, _: Option<&str>) -> bool {
        self.state(&job_id(key, 1)).await.as_deref() == Some("CANCELED")
    }
}

impl Cluster {
    /// `GET path`, or nothing when it is not found.
    async fn get(&self, path: &str) -> Option<serde_json::Value> {
        let answer = http_get(&format!("{}/{path}", self.url)).await;
        answer.map(|text| serde_json::from_str(&text).expect("JSON"))
    }

    async fn state(&self, id: &str) -> Option<String> {
        let job = self.get(&format!("jobs/{id}")).await?;
        job["state"].as_str().map(str::to_owned)
    }
}

engine_contract!(Cluster, "needs a Flink cluster: make test-engines");

fn task(url: &str, file: &str) -> Bench {
    let mut bench = Bench::new("FLINK");
    bench.task.host = Some(HttpHost {
        name: "flink".to_owned(),
        base_url: url.to_owned(),
        ui_url: None,
        headers: BTreeMap::new(),
        max_parallel: None,
    });
    // Unlike a number that counts from 1 in each process, it is new to a cluster that remembers.
    bench.task.idem_key = format!("{}/{}", bench.task.idem_key, uuid::Uuid::new_v4());
    bench.task.job.application = Some(Box::new(ApplicationCall {
        host: Some("flink".to_owned()),
        file: file.to_owned(),
        main_class: Some("Probe".to_owned()),
        args: vec!["{how}".to_owned(), "{millis}".to_owned()],
        conf: BTreeMap::new(),
        parallelism: Some(1),
        spark: SparkOptions::default(),
        poll_sec: 1,
    }));
    bench
}

#[tokio::test]
async fn what_is_wrong_before_anything_is_sent_is_found_here() {
    let mut bench = task("http://127.0.0.1:1", "/no/such.jar");
    call(&mut bench).args = vec!["{nobody}".to_owned()];
    let ran = bench.run().await;
    assert_failed(&ran, "{nobody} is not among the job's parameters; nothing was submitted");
    let mut bench = task("http://127.0.0.1:1", "/no/such.jar");
    call(&mut bench).args.clear();
    assert_failed(&bench.run().await, "file /no/such.jar cannot be read");
    let jar = tempfile::NamedTempFile::new().expect("a file");
    let mut bench = task("http://127.0.0.1:1", &jar.path().display().to_string());
    call(&mut bench).args.clear();
    assert_failed(&bench.run().await, "host flink cannot be reached");
}

#[tokio::test]
#[ignore = "needs a Flink cluster: make test-engines"]
async fn a_job_runs_and_hands_on_what_it_counted() {
    let cluster = Cluster::find();
    let bench = cluster.probe("ok", 10);
    let (id, key) = (job_id(&bench.task.idem_key, 1), bench.task.idem_key.clone());
    let ran = bench.run().await;
    assert_ten_rows(&ran);
    assert_eq!(ran.value("application_id"), id);
    assert_eq!(ran.value("application_state"), "FINISHED");
    assert!(ran.text().contains(&format!("/#/job/completed/{id}/overview")), "{}", ran.text());
    assert_eq!(cluster.count(&key).await, 1);
    let jars = cluster.get("jars").await.expect("the jars");
    assert_eq!(jars["files"].as_array().map(Vec::len), Some(0), "the jar is removed: {jars}");
}

#[tokio::test]
#[ignore = "needs a Flink cluster: make test-engines"]
async fn what_cannot_run_is_refused_with_the_words_of_the_cluster() {
    let cluster = Cluster::find();
    let mut bench = cluster.probe("ok", 10);
    let key = bench.task.idem_key.clone();
    call(&mut bench).args.pop();
    assert_failed(&bench.run().await, "java.lang.ArrayIndexOutOfBoundsException");
    let jar = tempfile::NamedTempFile::with_suffix(".jar").expect("a file");
    std::fs::write(jar.path(), "no jar").expect("a file");
    let mut bench = cluster.probe("ok", 10);
    call(&mut bench).file = jar.path().display().to_string();
    assert_failed(&bench.run().await, "Flink did not take the application");
    assert_eq!(cluster.count(&key).await, 0);
}

#[tokio::test]
#[ignore = "needs a Flink cluster: make test-engines"]
async fn the_stack_of_a_failure_is_in_the_log() {
    let ran = Cluster::find().probe("fail", 10).run().await;
    let stack = ran.of(Stream::Stderr).join("\n");
    assert!(stack.contains("at Probe$Slow.map(Probe.java"), "{stack}");
}

#[tokio::test]
#[ignore = "needs a Flink cluster: make test-engines"]
async fn what_may_run_again_takes_the_id_that_may_be_on_its_way() {
    let cluster = Cluster::find();
    let key = format!("never/{}", uuid::Uuid::new_v4());
    let mut bench = next_attempt(&cluster, &key, 10);
    bench.task.job.idempotent = true;
    // Flink refuses the second submission of an id.
    assert_eq!(bench.run().await.value("application_id"), job_id(&key, 1));
}
