//! Which of several executors is asked.

use super::hall::Hall;
use super::on_each;
use crate::xxl::program_of_others::Program;
use procession::domain::batch::BatchStatus;
use serde_json::json;

on_each! {
    another_executor_is_asked_when_one_is_away
    a_broadcast_ends_when_all_parts_have
    parts_of_a_broadcast_that_was_covered_do_not_begin_alone
    turns_go_round_among_executors
    each_route_leads_where_it_says
    one_that_is_busy_is_passed_over
    a_run_that_all_are_too_busy_for_is_tried_again
}

/// A port that nobody listens at; the first of the alphabet among those of this machine.
const AWAY: &str = "http://127.0.0.1:1";

impl Hall {
    /// Four runs by this route, each after the one before has ended; which of these addresses each was sent to.
    async fn four_by(&mut self, route: &str, urls: &[String]) -> Vec<usize> {
        self.with(&format!(", route: {route}")).await;
        let before = self.sent_to().await.len();
        for n in before..before + 4 {
            self.clock.advance(1_000);
            let id = self.open(&format!("2024-{n:03}")).await;
            let log = i64::try_from(n + 1).expect("small");
            let running = format!("{log} RUNNING");
            self.until("sent", async |hall| hall.runs().await.last() == Some(&running)).await;
            self.tell(log, 200, "").await;
            assert_eq!(self.ends(id).await, BatchStatus::Success);
        }
        let sent = self.sent_to().await;
        let which = |at: &String| urls.iter().position(|url| url == at);
        sent[before..].iter().map(|at| which(at).expect("one of them")).collect()
    }
}

async fn another_executor_is_asked_when_one_is_away(mut hall: Hall) {
    hall.programs(2).await;
    hall.with(", route: FAILOVER").await;
    let away = hall.programs.remove(0);
    let gone = away.address;
    drop(away);
    // Its port is closed once its task has ended.
    while tokio::net::TcpStream::connect(gone).await.is_ok() {
        tokio::task::yield_now().await;
    }
    let id = hall.open("202407").await;
    hall.comes_to(&["1 RUNNING"]).await;
    assert_eq!(hall.programs[0].has(), [1]);
    hall.tell(1, 200, "").await;
    assert_eq!(hall.ends(id).await, BatchStatus::Success);
    hall.programs.clear();
    hall.group(vec![format!("http://{gone}")]).await;
    let id = hall.open("202408").await;
    assert_eq!(hall.ends(id).await, BatchStatus::Failed);
    let said = hall.pay(id).await.1;
    assert!(
        said.contains("no executor could take it") && said.contains("cannot connect"),
        "{said}"
    );
}

async fn a_broadcast_ends_when_all_parts_have(mut hall: Hall) {
    hall.programs(3).await;
    hall.with(", route: SHARDING_BROADCAST").await;
    let id = hall.open("202407").await;
    hall.comes_to(&["1 RUNNING", "2 RUNNING", "3 RUNNING"]).await;
    for (n, program) in (0..).zip(&hall.programs) {
        let asked = &program.heard("/run")[0];
        assert_eq!((&asked["broadcastIndex"], &asked["broadcastTotal"]), (&n.into(), &3.into()));
    }
    hall.tell(1, 200, "").await;
    hall.tell(3, 200, "").await;
    hall.comes_to(&["1 TOLD 200", "2 RUNNING", "3 TOLD 200"]).await;
    hall.tell(2, 500, "no disk").await;
    assert_eq!(hall.ends(id).await, BatchStatus::Failed);
    let said = hall.pay(id).await.1;
    assert!(said.starts_with("1 of 3 parts did not end well: part 1: run 2 at "), "{said}");
    assert_eq!(hall.runs().await, ["1 DONE 200", "2 DONE 500", "3 DONE 200"]);
}

async fn parts_of_a_broadcast_that_was_covered_do_not_begin_alone(mut hall: Hall) {
    hall.programs(2).await;
    hall.with(", route: SHARDING_BROADCAST").await;
    let first = hall.open("202406").await;
    hall.comes_to(&["1 RUNNING", "2 RUNNING"]).await;
    hall.open("202407").await;
    hall.comes_to(&["1 RUNNING", "2 RUNNING", "3 WAITING"]).await;
    // As another process covers it, before this one has looked.
    let covered = "UPDATE executor_run SET status = 'TOLD', stopping = 'COVERED', result = 'COVERED', \
                   node_id = 'other', end_time = create_time WHERE log_id = 3";
    hall.by_hand(covered).await;
    hall.tell(1, 200, "").await;
    hall.tell(2, 200, "").await;
    assert_eq!(hall.ends(first).await, BatchStatus::Success);
    hall.pass(3).await;
    assert_eq!(hall.runs().await, ["1 DONE 200", "2 DONE 200", "3 TOLD COVERED"]);
    for program in &hall.programs {
        assert_eq!(program.heard("/run").len(), 1);
    }
}

async fn turns_go_round_among_executors(mut hall: Hall) {
    hall.programs(3).await;
    for route in ["ROUND", "LEAST_FREQUENTLY_USED", "LEAST_RECENTLY_USED"] {
        hall.with(&format!(", route: {route}")).await;
        for n in 0..3 {
            hall.clock.advance(1_000);
            let before: i64 = hall.runs().await.len().try_into().expect("small");
            let year = 2000 + before;
            let id = hall.open(&format!("{year}0{}", n + 1)).await;
            let log = before + 1;
            hall.until("asked", async |hall| {
                hall.runs().await.last() == Some(&format!("{log} RUNNING"))
            })
            .await;
            hall.tell(log, 200, "").await;
            assert_eq!(hall.ends(id).await, BatchStatus::Success);
        }
        let counts: Vec<usize> = hall.programs.iter().map(|p| p.heard("/run").len()).collect();
        assert!(counts.iter().all(|n| *n == counts[0]), "{route}: {counts:?}");
    }
}

async fn each_route_leads_where_it_says(mut hall: Hall) {
    hall.programs(3).await;
    let mut urls: Vec<String> = hall.programs.iter().map(Program::url).collect();
    for (route, wanted) in [
        ("FIRST", [0, 0, 0, 0]),
        ("LAST", [2, 2, 2, 2]),
        ("ROUND", [0, 1, 2, 0]),
        ("LEAST_FREQUENTLY_USED", [0, 1, 2, 0]),
        // Whoever was used last is used last.
        ("LEAST_RECENTLY_USED", [1, 2, 0, 1]),
    ] {
        assert_eq!(hall.four_by(route, &urls).await, wanted, "{route}");
    }
    assert!(hall.four_by("RANDOM", &urls).await.iter().all(|at| *at < 3));
    let hashed = hall.four_by("CONSISTENT_HASH", &urls).await;
    assert!(hashed.iter().all(|at| *at == hashed[0]), "{hashed:?}");
    // Another admin has asked for a run of the job, whose number is 1 because it is the first here.
    hall.programs[0].takes(1, 900);
    assert_eq!(hall.four_by("BUSYOVER", &urls).await, [1, 1, 1, 1]);
    let sent = hall.sent_to().await.len();
    hall.with(", route: SHARDING_BROADCAST").await;
    let id = hall.open("202407").await;
    hall.until("sent", async |hall| hall.sent_to().await.len() == sent + 3).await;
    for log in (1..).skip(sent).take(3) {
        hall.until("taken", async |hall| hall.runs().await.contains(&format!("{log} RUNNING")))
            .await;
        hall.tell(log, 200, "").await;
    }
    assert_eq!(hall.ends(id).await, BatchStatus::Success);
    assert_eq!(hall.sent_to().await[sent..], urls);
    let part = |program: &Program| {
        let asked = program.heard("/run").pop().expect("a run");
        (asked["broadcastIndex"].clone(), asked["broadcastTotal"].clone())
    };
    let parts: Vec<_> = hall.programs.iter().map(part).collect();
    assert_eq!(parts, [0, 1, 2].map(|index| (json!(index), json!(3))));
    urls[0] = AWAY.to_owned();
    hall.group(urls.clone()).await;
    assert_eq!(hall.four_by("FAILOVER", &urls).await, [1, 1, 1, 1]);
}

async fn one_that_is_busy_is_passed_over(mut hall: Hall) {
    hall.programs(2).await;
    hall.with(", route: BUSYOVER").await;
    // Another admin has asked for a run of the job, whose number is 1 because it is the first here.
    hall.programs[0].takes(1, 900);
    let id = hall.open("202406").await;
    hall.comes_to(&["1 RUNNING"]).await;
    assert_eq!(hall.programs[1].has(), [1]);
    assert_eq!(hall.programs[0].heard("/idleBeat"), [json!({"jobId": 1})]);
    assert!(hall.programs[0].heard("/run").is_empty());
    hall.tell(1, 200, "").await;
    assert_eq!(hall.ends(id).await, BatchStatus::Success);
    hall.programs[1].takes(1, 901);
    let id = hall.open("202407").await;
    assert_eq!(hall.ends(id).await, BatchStatus::Failed);
    let (status, said) = hall.pay(id).await;
    assert_eq!(status, "FAILED");
    let [first, second] = [0, 1].map(|n| hall.programs[n].url());
    let busy = "code 500: job thread is running";
    assert_eq!(said, format!("no executor could take it: {first}: {busy}; {second}: {busy}"));
    assert_eq!(hall.runs().await, ["1 DONE 200", "2 DONE NOT_REACHED"]);
    assert_eq!(hall.programs.iter().map(|p| p.heard("/run").len()).sum::<usize>(), 1);
    // It keeps nobody from it.
    hall.programs[0].ends(900);
    let id = hall.open("202408").await;
    hall.comes_to(&["1 DONE 200", "2 DONE NOT_REACHED", "3 RUNNING"]).await;
    assert_eq!(hall.programs[0].has(), [3]);
    hall.tell(3, 200, "").await;
    assert_eq!(hall.ends(id).await, BatchStatus::Success);
}

async fn a_run_that_all_are_too_busy_for_is_tried_again(mut hall: Hall) {
    hall.programs(2).await;
    let call = "executor: { app: pay-executor, handler: payHandler, route: BUSYOVER }";
    hall.with_pay(&format!("type: HANDLER, {call}, retry_count: 1, retry_delay_sec: 5")).await;
    for (program, log) in hall.programs.iter().zip([900, 901]) {
        program.takes(1, log);
    }
    let id = hall.open("202407").await;
    hall.comes_to(&["1 DONE NOT_REACHED"]).await;
    hall.programs[1].ends(901);
    hall.pass(3).await;
    assert_eq!(hall.pay(id).await.0, "RETRY_WAIT");
    hall.pass(3).await;
    hall.comes_to(&["1 DONE NOT_REACHED", "2 RUNNING"]).await;
    assert_eq!(hall.programs[1].has(), [2]);
    hall.tell(2, 200, "").await;
    assert_eq!(hall.ends(id).await, BatchStatus::Success);
}
