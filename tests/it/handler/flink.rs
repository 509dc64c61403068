//! FLINK against a real session cluster: `make test-engines` starts it and names its folder in PROCESSION_TEST_FLINK.

use crate::util::bench::{Bench, Ran};
use procession::domain::job::application::spark::SparkOptions;
use procession::domain::job::application::{ApplicationCall, flink::job_id};
use procession::domain::job::body::HttpHost;
use procession::domain::job::outcome::{AttemptEnd, Stream};
use procession::domain::job::{ParamMode, ParamType};
use procession::handler::StopReason;
use std::collections::BTreeMap;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

const NOT_HERE: &str = "make test-engines names the folder of a cluster in PROCESSION_TEST_FLINK";

/// The cluster of scripts/test-engines.sh.
struct Cluster {
    folder: String,
    url: String,
}

impl Cluster {
    fn find() -> Self {
        let folder = std::env::var("PROCESSION_TEST_FLINK").expect(NOT_HERE);
        let url = std::fs::read_to_string(format!("{folder}/url")).expect(NOT_HERE);
        Self { folder, url: url.trim().to_owned() }
    }

    /// A task that runs the probe: ten rows, so many milliseconds each.
    fn probe(&self, how: &str, millis: u32) -> Bench {
        let file = format!("{}/probe.jar", self.folder);
        task(&self.url, &file).param("how", ParamMode::In, ParamType::Text, Some(how)).param(
            "millis",
            ParamMode::In,
            ParamType::Int,
            Some(&millis.to_string()),
        )
    }

    /// `GET path`, or nothing when it is not found.
    async fn get(&self, path: &str) -> Option<serde_json::Value> {
        let answer = http_get(&format!("{}/{path}", self.url)).await;
        answer.map(|text| serde_json::from_str(&text).expect("JSON"))
    }

    async fn state(&self, id: &str) -> Option<String> {
        let job = self.get(&format!("jobs/{id}")).await?;
        job["state"].as_str().map(str::to_owned)
    }

    async fn is_in_state(&self, id: &str, state: &str) {
        for _ in 0..300 {
            if self.state(id).await.as_deref() == Some(state) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        panic!("{id} is {:?} and not {state}", self.state(id).await);
    }

    /// How many jobs have this name: the idempotency key.
    async fn count_jobs(&self, name: &str) -> usize {
        let all = self.get("jobs/overview").await.expect("the jobs");
        let jobs = all["jobs"].as_array().expect("a list");
        jobs.iter().filter(|job| job["name"] == name).count()
    }
}

pub(super) async fn http_get(url: &str) -> Option<String> {
    let rest = url.strip_prefix("http://").expect("plain HTTP");
    let (address, path) = rest.split_once('/').expect("a path");
    let mut stream = TcpStream::connect(address).await.expect("the cluster");
    let ask = format!("GET /{path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    stream.write_all(ask.as_bytes()).await.expect("a request");
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).await.expect("an answer");
    let text = String::from_utf8(bytes).expect("UTF-8");
    let (head, body) = text.split_once("\r\n\r\n").expect("a head");
    (!head.starts_with("HTTP/1.1 404")).then(|| {
        // A small answer in chunks: a length, the answer, a length of 0.
        match head.to_lowercase().contains("transfer-encoding: chunked") {
            true => body.split("\r\n").skip(1).step_by(2).collect(),
            false => body.to_owned(),
        }
    })
}

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
    assert_eq!(ran.outcome.end, AttemptEnd::Failed, "{}", ran.message());
    assert!(ran.message().contains(cause), "{cause} in {}", ran.message());
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
    assert_eq!(ran.outcome.end, AttemptEnd::Success, "{}", ran.message());
    assert_eq!((ran.value("rows"), ran.value("application_id")), ("10".into(), id.clone()));
    assert_eq!(ran.value("application_state"), "FINISHED");
    assert!(ran.text().contains(&format!("/#/job/completed/{id}/overview")), "{}", ran.text());
    assert_eq!(cluster.count_jobs(&key).await, 1);
    let jars = cluster.get("jars").await.expect("the jars");
    assert_eq!(jars["files"].as_array().map(Vec::len), Some(0), "the jar is removed: {jars}");
}

#[tokio::test]
#[ignore = "needs a Flink cluster: make test-engines"]
async fn a_failure_says_its_cause_and_a_retry_is_another_job() {
    let cluster = Cluster::find();
    let bench = cluster.probe("fail", 10);
    let key = bench.task.idem_key.clone();
    let ran = bench.run().await;
    assert_failed(&ran, "java.lang.IllegalStateException: ledger out of balance: 0.01");
    let stack = ran.of(Stream::Stderr).join("\n");
    assert!(stack.contains("at Probe$Slow.map(Probe.java"), "{stack}");
    let mut retry = next_attempt(&cluster, &key, 10);
    retry.task.is_unresolved = false;
    let ran = retry.run().await;
    assert_eq!(ran.outcome.end, AttemptEnd::Success, "{}", ran.message());
    assert_eq!(ran.value("application_id"), job_id(&key, 2));
}

#[tokio::test]
#[ignore = "needs a Flink cluster: make test-engines"]
async fn what_cannot_run_is_refused_with_the_words_of_the_cluster() {
    let cluster = Cluster::find();
    let mut bench = cluster.probe("ok", 10);
    let key = bench.task.idem_key.clone();
    call(&mut bench).main_class = Some("Nope".to_owned());
    assert_failed(&bench.run().await, "java.lang.ClassNotFoundException: Nope");
    let mut bench = cluster.probe("ok", 10);
    call(&mut bench).args.pop();
    assert_failed(&bench.run().await, "java.lang.ArrayIndexOutOfBoundsException");
    let jar = tempfile::NamedTempFile::with_suffix(".jar").expect("a file");
    std::fs::write(jar.path(), "no jar").expect("a file");
    let mut bench = cluster.probe("ok", 10);
    call(&mut bench).file = jar.path().display().to_string();
    assert_failed(&bench.run().await, "Flink did not take the application");
    assert_eq!(cluster.count_jobs(&key).await, 0);
}

#[tokio::test]
#[ignore = "needs a Flink cluster: make test-engines"]
async fn a_job_that_is_stopped_is_proven_gone() {
    let cluster = Cluster::find();
    for (reason, end) in
        [(StopReason::Killed, AttemptEnd::Killed), (StopReason::TimedOut, AttemptEnd::TimedOut)]
    {
        let bench = cluster.probe("ok", 60_000);
        let id = job_id(&bench.task.idem_key, 1);
        let ran = bench.stop_when(reason, cluster.is_in_state(&id, "RUNNING")).await;
        assert_eq!(ran.outcome.end, end, "{}", ran.message());
        assert_eq!(cluster.state(&id).await.as_deref(), Some("CANCELED"));
    }
}

#[tokio::test]
#[ignore = "needs a Flink cluster: make test-engines"]
async fn after_a_crash_the_next_attempt_goes_on_with_the_same_job() {
    let cluster = Cluster::find();
    let bench = cluster.probe("ok", 300);
    let (id, key) = (job_id(&bench.task.idem_key, 1), bench.task.idem_key.clone());
    tokio::select! {
        ran = bench.run() => panic!("it ended: {}", ran.message()),
        () = cluster.is_in_state(&id, "RUNNING") => {}
    }
    let ran = next_attempt(&cluster, &key, 300).run().await;
    assert_eq!(ran.outcome.end, AttemptEnd::Success, "{}", ran.message());
    assert_eq!((ran.value("application_id"), ran.value("rows")), (id.clone(), "10".into()));
    // It has ended by now: the one after that reads how.
    let ran = next_attempt(&cluster, &key, 300).run().await;
    assert_eq!(ran.value("application_id"), id);
    assert_eq!(cluster.count_jobs(&key).await, 1);
}

#[tokio::test]
#[ignore = "needs a Flink cluster: make test-engines"]
async fn a_process_that_leaves_lets_the_job_run_on() {
    let cluster = Cluster::find();
    let bench = cluster.probe("ok", 300);
    let (id, key) = (job_id(&bench.task.idem_key, 1), bench.task.idem_key.clone());
    let left = bench.stop_when(StopReason::HandedBack, cluster.is_in_state(&id, "RUNNING")).await;
    assert_eq!(left.outcome.end, AttemptEnd::Unknown);
    assert!(left.message().ends_with("runs on"), "{}", left.message());
    let ran = next_attempt(&cluster, &key, 300).run().await;
    assert_eq!((ran.outcome.end.clone(), ran.value("rows")), (AttemptEnd::Success, "10".into()));
    assert_eq!(cluster.count_jobs(&key).await, 1);
}

#[tokio::test]
#[ignore = "needs a Flink cluster: make test-engines"]
async fn what_a_dead_worker_left_is_ended() {
    let cluster = Cluster::find();
    let bench = cluster.probe("ok", 60_000);
    let (id, key) = (job_id(&bench.task.idem_key, 1), bench.task.idem_key.clone());
    tokio::select! {
        ran = bench.run() => panic!("it ended: {}", ran.message()),
        () = cluster.is_in_state(&id, "RUNNING") => {}
    }
    let mut orphan = cluster.probe("ok", 1);
    orphan.task.idem_key = key;
    let ran = orphan.end_orphan().await;
    assert_eq!(ran.outcome.end, AttemptEnd::Killed, "{}", ran.message());
    assert_eq!(cluster.state(&id).await.as_deref(), Some("CANCELED"));
}

#[tokio::test]
#[ignore = "needs a Flink cluster: make test-engines"]
async fn what_is_not_found_after_a_crash_is_unknown_unless_it_may_run_again() {
    let cluster = Cluster::find();
    let bench = next_attempt(&cluster, &format!("never/{}", std::process::id()), 10);
    let key = bench.task.idem_key.clone();
    let ran = bench.run().await;
    assert_eq!(ran.outcome.end, AttemptEnd::Unknown, "{}", ran.message());
    assert!(ran.message().contains("knows no application of an earlier attempt"));
    assert_eq!(cluster.count_jobs(&key).await, 0);
    let mut bench = next_attempt(&cluster, &key, 10);
    bench.task.job.idempotent = true;
    let ran = bench.run().await;
    assert_eq!(ran.outcome.end, AttemptEnd::Success, "{}", ran.message());
    // The id of the attempt whose submission may still be on its way: Flink refuses the second.
    assert_eq!(ran.value("application_id"), job_id(&key, 1));
}

#[tokio::test]
#[ignore = "needs a Flink cluster: make test-engines"]
async fn a_submission_whose_answer_is_lost_is_found_and_not_made_twice() {
    let cluster = Cluster::find();
    let (proxy, was_cut) = proxy_without_answers(&cluster.url, "/run ").await;
    let mut bench = cluster.probe("ok", 10);
    bench.task.host.as_mut().expect("a host").base_url = proxy;
    let key = bench.task.idem_key.clone();
    let ran = bench.run().await;
    assert!(was_cut.load(Ordering::SeqCst), "no answer was lost");
    assert_eq!(ran.outcome.end, AttemptEnd::Success, "{}\n{}", ran.message(), ran.text());
    assert!(ran.text().contains("the submission has arrived"), "{}", ran.text());
    assert_eq!(cluster.count_jobs(&key).await, 1);
}

#[tokio::test]
#[ignore = "needs a Flink cluster: make test-engines"]
async fn zz_a_job_that_the_cluster_forgot_is_unknown() {
    let cluster = Cluster::find();
    let bench = cluster.probe("ok", 60_000);
    let id = job_id(&bench.task.idem_key, 1);
    let restarted = async {
        cluster.is_in_state(&id, "RUNNING").await;
        let folder = cluster.folder.clone();
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/scripts/test-engines.sh");
        let restart = move || Command::new(script).args(["restart-jobmanager", &folder]).status();
        let status = tokio::task::spawn_blocking(restart).await.expect("a thread");
        assert!(status.expect("the script").success());
    };
    let (ran, ()) = tokio::join!(bench.run(), restarted);
    assert_eq!(ran.outcome.end, AttemptEnd::Unknown, "{}\n{}", ran.message(), ran.text());
    assert!(ran.message().contains("it was started anew"), "{}", ran.message());
    assert!(ran.text().contains("answers again"), "{}", ran.text());
}

/// A proxy that lets everything through but the answers to submissions: there it closes the connection.
pub(super) async fn proxy_without_answers(
    url: &str,
    submission: &'static str,
) -> (String, Arc<AtomicBool>) {
    let there = url.trim_start_matches("http://").to_owned();
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = format!("http://{}", listener.local_addr().expect("an address"));
    let was_cut = Arc::new(AtomicBool::new(false));
    let mark = was_cut.clone();
    tokio::spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            let (there, mark) = (there.clone(), mark.clone());
            tokio::spawn(async move { pass(client, &there, submission, &mark).await });
        }
    });
    (address, was_cut)
}

async fn pass(mut client: TcpStream, there: &str, submission: &str, was_cut: &AtomicBool) {
    let mut server = TcpStream::connect(there).await.expect("the cluster");
    let mut first = vec![0; 4096];
    let count = client.read(&mut first).await.unwrap_or_default();
    server.write_all(&first[..count]).await.expect("a request");
    let head = String::from_utf8_lossy(&first[..count]);
    if !head.lines().next().unwrap_or_default().contains(submission) {
        // Either end closes when it likes.
        let _ends = tokio::io::copy_bidirectional(&mut client, &mut server).await;
        return;
    }
    let (mut from_client, _to_client) = client.split();
    let (mut from_server, mut to_server) = server.split();
    let mut answer = [0; 1024];
    tokio::select! {
        _ = tokio::io::copy(&mut from_client, &mut to_server) => {}
        // The cluster has answered, so it has the job.
        _ = from_server.read(&mut answer) => was_cut.store(true, Ordering::SeqCst),
    }
}
