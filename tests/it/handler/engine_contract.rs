//! What holds for every engine that runs applications of jobs: each case once, run against each real cluster.
//!
//! A new engine implements [`Engine`] and says `engine_contract!(ItsCluster, "what it needs");`. What only one engine
//! has (another way to submit, room on workers, files that it removes) is tested beside its `Engine`.

use crate::util::bench::{Bench, Ran, Says};
use procession::domain::job::application::ApplicationCall;
use procession::domain::job::outcome::AttemptEnd;
use procession::domain::job::{ParamMode, ParamType};
use procession::handler::StopReason;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// A real cluster of scripts/test-engines.sh, and how a test looks at it without Procession.
pub(super) trait Engine {
    /// The part of the request line that submits an application.
    const SUBMISSION: &'static str;
    /// The verb of scripts/test-engines.sh that makes the cluster forget its applications.
    const FORGET: &'static str;

    fn find() -> Self;
    fn url(&self) -> &str;
    fn folder(&self) -> &str;
    /// A task that runs the probe: ten rows, so many milliseconds each, and then ends well or fails with
    /// `ledger out of balance: 0.01`.
    fn probe(&self, how: &str, millis: u32) -> Bench;
    /// Waits until the first attempt with this idempotency key runs.
    async fn is_running(&self, key: &str);
    /// How many applications with this idempotency key the cluster has or had.
    async fn count(&self, key: &str) -> usize;
    /// Whether the cluster says that the first attempt was stopped, and nothing of it runs. `stored` is the id that
    /// its row got, for an engine that makes the ids itself.
    async fn is_stopped(&self, key: &str, stored: Option<&str>) -> bool;
}

/// Adds the parameters of the probe.
pub(super) fn with_params(bench: Bench, how: &str, millis: u32) -> Bench {
    let millis = millis.to_string();
    let bench = bench.param("how", ParamMode::In, ParamType::Text, Some(how));
    bench.param("millis", ParamMode::In, ParamType::Int, Some(&millis))
}

pub(super) fn call(bench: &mut Bench) -> &mut ApplicationCall {
    bench.task.job.application.as_mut().expect("a call")
}

/// The same run as the next attempt, after the worker of the last one died.
pub(super) fn next_attempt(engine: &impl Engine, key: &str, millis: u32) -> Bench {
    let mut bench = engine.probe("ok", millis);
    bench.task.idem_key = key.to_owned();
    (bench.task.attempt, bench.task.is_unresolved) = (2, true);
    bench
}

/// The id of the application that an attempt stored in its row.
fn stored_id(claim: &Says) -> Option<String> {
    claim.3.lock().expect("a lock").as_ref().map(|stored| stored.id.clone())
}

pub(super) fn assert_failed(ran: &Ran, cause: &str) {
    assert_eq!(ran.outcome.end, AttemptEnd::Failed, "{}\n{}", ran.message(), ran.text());
    assert!(ran.message().contains(cause), "{cause} in {}", ran.message());
}

pub(super) fn assert_ten_rows(ran: &Ran) {
    assert_eq!(ran.outcome.end, AttemptEnd::Success, "{}\n{}", ran.message(), ran.text());
    assert_eq!(ran.value("rows"), "10");
}

pub(super) async fn a_failure_says_its_cause_and_a_retry_is_another_application<E: Engine>() {
    let engine = E::find();
    let bench = engine.probe("fail", 10);
    let key = bench.task.idem_key.clone();
    let failed = bench.run().await;
    assert_failed(&failed, "java.lang.IllegalStateException: ledger out of balance: 0.01");
    let mut retry = next_attempt(&engine, &key, 10);
    retry.task.is_unresolved = false;
    let ran = retry.run().await;
    assert_ten_rows(&ran);
    assert_ne!(ran.value("application_id"), failed.value("application_id"));
    assert_eq!(engine.count(&key).await, 2);
}

pub(super) async fn a_wrong_class_fails_with_the_words_of_java<E: Engine>() {
    let engine = E::find();
    let mut bench = engine.probe("ok", 10);
    call(&mut bench).main_class = Some("Nope".to_owned());
    assert_failed(&bench.run().await, "java.lang.ClassNotFoundException: Nope");
}

pub(super) async fn an_application_that_is_stopped_is_proven_gone<E: Engine>() {
    let engine = E::find();
    for (reason, end) in
        [(StopReason::Killed, AttemptEnd::Killed), (StopReason::TimedOut, AttemptEnd::TimedOut)]
    {
        let bench = engine.probe("ok", 60_000);
        let (key, claim) = (bench.task.idem_key.clone(), bench.claim.clone());
        let ran = bench.stop_when(reason, engine.is_running(&key)).await;
        assert_eq!(ran.outcome.end, end, "{}", ran.message());
        assert!(engine.is_stopped(&key, stored_id(&claim).as_deref()).await);
    }
}

pub(super) async fn after_a_crash_the_next_attempt_goes_on_with_it<E: Engine>() {
    let engine = E::find();
    let bench = engine.probe("ok", 1_500);
    let key = bench.task.idem_key.clone();
    tokio::select! {
        ran = bench.run() => panic!("it ended: {}", ran.message()),
        () = engine.is_running(&key) => {}
    }
    // What it stored of the application is lost with the first attempt: it is found by its key.
    let ran = next_attempt(&engine, &key, 1_500).run().await;
    assert_ten_rows(&ran);
    // It has ended by now: the attempt after that reads how.
    let last = next_attempt(&engine, &key, 1_500).run().await;
    assert_ten_rows(&last);
    assert_eq!(last.value("application_id"), ran.value("application_id"));
    assert_eq!(engine.count(&key).await, 1);
}

pub(super) async fn a_process_that_leaves_lets_it_run_on<E: Engine>() {
    let engine = E::find();
    let bench = engine.probe("ok", 1_500);
    let key = bench.task.idem_key.clone();
    let left = bench.stop_when(StopReason::HandedBack, engine.is_running(&key)).await;
    assert_eq!(left.outcome.end, AttemptEnd::Unknown);
    assert!(left.message().ends_with("runs on"), "{}", left.message());
    assert_ten_rows(&next_attempt(&engine, &key, 1_500).run().await);
    assert_eq!(engine.count(&key).await, 1);
}

pub(super) async fn what_a_dead_worker_left_is_ended<E: Engine>() {
    let engine = E::find();
    let bench = engine.probe("ok", 60_000);
    let (key, claim) = (bench.task.idem_key.clone(), bench.claim.clone());
    tokio::select! {
        ran = bench.run() => panic!("it ended: {}", ran.message()),
        () = engine.is_running(&key) => {}
    }
    let mut orphan = engine.probe("ok", 1);
    orphan.task.idem_key = key.clone();
    let ran = orphan.end_orphan().await;
    assert_eq!(ran.outcome.end, AttemptEnd::Killed, "{}", ran.message());
    assert!(engine.is_stopped(&key, stored_id(&claim).as_deref()).await);
}

pub(super) async fn what_is_not_found_after_a_crash_is_unknown_unless_it_may_run_again<
    E: Engine,
>() {
    let engine = E::find();
    let bench = next_attempt(&engine, &format!("never/{}", uuid::Uuid::new_v4()), 10);
    let key = bench.task.idem_key.clone();
    let ran = bench.run().await;
    assert_eq!(ran.outcome.end, AttemptEnd::Unknown, "{}", ran.message());
    assert!(ran.message().contains("knows no application of an earlier attempt"));
    assert_eq!(engine.count(&key).await, 0);
    let mut bench = next_attempt(&engine, &key, 10);
    bench.task.job.idempotent = true;
    assert_ten_rows(&bench.run().await);
    assert_eq!(engine.count(&key).await, 1);
}

pub(super) async fn a_submission_whose_answer_is_lost_is_found_and_not_made_twice<E: Engine>() {
    let engine = E::find();
    let (proxy, was_cut) = proxy_without_answers(engine.url(), E::SUBMISSION).await;
    let mut bench = engine.probe("ok", 10);
    bench.task.host.as_mut().expect("a host").base_url = proxy;
    let key = bench.task.idem_key.clone();
    let ran = bench.run().await;
    assert!(was_cut.load(Ordering::SeqCst), "no answer was lost");
    assert_ten_rows(&ran);
    assert!(ran.text().contains("the submission has arrived"), "{}", ran.text());
    assert_eq!(engine.count(&key).await, 1);
}

pub(super) async fn what_the_cluster_forgot_is_unknown<E: Engine>() {
    let engine = E::find();
    let bench = engine.probe("ok", 60_000);
    let key = bench.task.idem_key.clone();
    let restarted = async {
        engine.is_running(&key).await;
        let folder = engine.folder().to_owned();
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/scripts/test-engines.sh");
        let restart = move || Command::new(script).args([E::FORGET, &folder]).status();
        let status = tokio::task::spawn_blocking(restart).await.expect("a thread");
        assert!(status.expect("the script").success());
    };
    let (ran, ()) = tokio::join!(bench.run(), restarted);
    assert_eq!(ran.outcome.end, AttemptEnd::Unknown, "{}\n{}", ran.message(), ran.text());
    assert!(ran.message().contains("it was started anew"), "{}", ran.message());
    assert!(ran.text().contains("answers again"), "{}", ran.text());
}

/// The tests of the contract for one engine. The last one makes the cluster forget what the others look for: tests
/// run in the order of their names.
macro_rules! engine_contract {
    ($engine:ty, $needs:literal) => {
        $crate::handler::engine_contract::engine_contract! { @each $engine, $needs;
            a_failure_says_its_cause_and_a_retry_is_another_application:
                a_failure_says_its_cause_and_a_retry_is_another_application,
            a_wrong_class_fails_with_the_words_of_java: a_wrong_class_fails_with_the_words_of_java,
            an_application_that_is_stopped_is_proven_gone: an_application_that_is_stopped_is_proven_gone,
            after_a_crash_the_next_attempt_goes_on_with_it: after_a_crash_the_next_attempt_goes_on_with_it,
            a_process_that_leaves_lets_it_run_on: a_process_that_leaves_lets_it_run_on,
            what_a_dead_worker_left_is_ended: what_a_dead_worker_left_is_ended,
            what_is_not_found_after_a_crash_is_unknown_unless_it_may_run_again:
                what_is_not_found_after_a_crash_is_unknown_unless_it_may_run_again,
            a_submission_whose_answer_is_lost_is_found_and_not_made_twice:
                a_submission_whose_answer_is_lost_is_found_and_not_made_twice,
            zz_what_the_cluster_forgot_is_unknown: what_the_cluster_forgot_is_unknown,
        }
    };
    (@each $engine:ty, $needs:literal; $($name:ident: $case:ident,)*) => {$(
        #[tokio::test]
        #[ignore = $needs]
        async fn $name() {
            $crate::handler::engine_contract::$case::<$engine>().await;
        }
    )*};
}
pub(super) use engine_contract;

/// `GET url`, or nothing when it is not found.
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

/// A proxy that lets everything through but the answers to submissions: there it closes the connection.
async fn proxy_without_answers(url: &str, submission: &'static str) -> (String, Arc<AtomicBool>) {
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
