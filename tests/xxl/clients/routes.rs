//! Which of two processes of one group runs a job, by each route but the broadcast, which `parts` has.

use super::{Client, Ground, with_each};
use std::collections::BTreeSet;
use std::fmt::Write as _;

with_each! {
    pyxxl Pyxxl:
        each_route_leads_where_it_says one_that_is_busy_is_passed_over one_that_is_away_is_passed_over;
    flask Flask:
        each_route_leads_where_it_says one_that_is_busy_is_passed_over one_that_is_away_is_passed_over;
    npm Npm:
        each_route_leads_where_it_says one_that_is_busy_is_passed_over one_that_is_away_is_passed_over;
    rust Rust:
        each_route_leads_where_it_says one_that_is_busy_is_passed_over one_that_is_away_is_passed_over;
}

/// Each in a group of its own, with the executor of each of three runs; none where it may be any.
const ROUTES: [(&str, Option<[usize; 3]>); 9] = [
    ("FIRST", Some([0, 0, 0])),
    ("LAST", Some([1, 1, 1])),
    ("ROUND", Some([0, 1, 0])),
    ("RANDOM", None),
    ("CONSISTENT_HASH", None),
    ("LEAST_FREQUENTLY_USED", Some([0, 1, 0])),
    ("LEAST_RECENTLY_USED", Some([0, 1, 0])),
    ("FAILOVER", Some([0, 0, 0])),
    ("BUSYOVER", Some([0, 0, 0])),
];

const NUMBERS: [&str; 3] = ["202406", "202407", "202408"];
/// Of a run that this installation knows nothing of.
const ELSEWHERE: i64 = 4_611;

/// Two clients in the order of their addresses, and a job for each route; the first also says where it ran.
fn two(ground: &Ground, one: Client) -> [Client; 2] {
    let two = ground.client(one.kind);
    let mut both = [one, two];
    both.sort_by_key(Client::address);
    assert_eq!(ground.registered(), both.each_ref().map(Client::address));
    let (mut groups, mut jobs) = (String::new(), String::new());
    for (route, _) in ROUTES {
        let group = route.to_lowercase();
        let _ = writeln!(groups, "  {group}: {{}}");
        // One that can be kept busy: Rust's crate says it of handlers, and not of jobs.
        let handler = if route == "BUSYOVER" { "sleep" } else { "echo" };
        let call = format!("app: host-app, handler: {handler}, send: text, route: {route}");
        let param = "params: [{ name: millis, value: '1' }]";
        let _ = writeln!(jobs, "  {route}: {{ group: {group}, executor: {{ {call} }}, {param} }}");
    }
    let said = "  SAID: { group: first, depends_on: [FIRST], executor: { app: host-app, handler: echo, \
                send: text, route: LAST }, params: [{ name: at, value: '${jobs.FIRST.address}' }] }\n";
    let yaml = format!("groups:\n{groups}defaults: {{ type: HANDLER }}\njobs:\n{jobs}{said}");
    ground.change_file("routes.yaml", &yaml);
    ground.does(&["apply", "routes.yaml"]);
    both
}

/// Which of the two had the runs of a job, one after the other.
fn ran(ground: &Ground, both: &[Client; 2], job: &str) -> Vec<usize> {
    let sql = format!("SELECT address FROM executor_run WHERE job_code = '{job}' ORDER BY log_id");
    let which = |row: Vec<String>| both.iter().position(|client| client.address() == row[0]);
    ground.rows(&sql).into_iter().map(|row| which(row).expect("one of the two")).collect()
}

fn each_route_leads_where_it_says(ground: Ground, one: Client) {
    let both = two(&ground, one);
    for no in NUMBERS {
        for (route, _) in ROUTES {
            ground.open(&route.to_lowercase(), no);
        }
    }
    for (route, wanted) in ROUTES {
        for no in NUMBERS {
            assert_eq!(ground.until_end(&route.to_lowercase(), no).batch, "SUCCESS", "{route}");
        }
        let ran = ran(&ground, &both, route);
        match (wanted, route) {
            (Some(wanted), _) => assert_eq!(ran, wanted, "{route}"),
            (None, "CONSISTENT_HASH") => assert_eq!(ran, [ran[0]; 3]),
            (None, _) => assert_eq!(ran.len(), 3, "{route}"),
        }
    }
    // Whoever is on record as its executor is the one that it reached, and once.
    for client in &both {
        let sql = format!(
            "SELECT log_id FROM executor_run WHERE address = '{}' ORDER BY log_id",
            client.address()
        );
        let sent: Vec<String> = ground.rows(&sql).concat();
        let mut seen = client.seen();
        seen.retain(|line| line["what"] != "slept");
        let mut seen: Vec<i64> =
            seen.iter().map(|line| line["log"].as_i64().expect("a key")).collect();
        seen.sort_unstable();
        assert_eq!(seen.iter().map(i64::to_string).collect::<Vec<_>>(), sent);
    }
    let seen = both[1].seen();
    let told: BTreeSet<&str> = seen.iter().filter_map(|line| line["param"].as_str()).collect();
    assert!(told.contains(both[0].address().as_str()), "{told:?}");
}

fn one_that_is_busy_is_passed_over(ground: Ground, one: Client) {
    let both = two(&ground, one);
    assert_eq!(ground.run("busyover", "202406").batch, "SUCCESS");
    // Another admin has asked for a run of what it knows by the same number.
    let number = ground.rows("SELECT job_id FROM executor_job WHERE job_code = 'BUSYOVER'");
    let job: i64 = number[0][0].parse().expect("a number");
    both[0].is_asked_elsewhere(job, ELSEWHERE, 60_000);
    both[0].until_names(&["sleep", "slept", "sleep"]);
    assert_eq!(ground.run("busyover", "202407").batch, "SUCCESS");
    assert_eq!(ran(&ground, &both, "BUSYOVER"), [0, 1]);
    both[1].is_asked_elsewhere(job, ELSEWHERE + 1, 60_000);
    both[1].until_names(&["sleep", "slept", "sleep"]);
    let ended = ground.run("busyover", "202408");
    assert_eq!((ended.batch.as_str(), ended.job.as_str()), ("FAILED", "FAILED"), "{ended:?}");
    assert!(ended.words.starts_with("no executor could take it: "), "{ended:?}");
    for client in &both {
        assert!(ended.words.contains(&format!("{}: code 500", client.address())), "{ended:?}");
    }
    let sent = "SELECT COUNT(*) FROM executor_run WHERE trigger_time IS NOT NULL";
    assert_eq!(ground.rows(sent), [["2"]]);
}

fn one_that_is_away_is_passed_over(ground: Ground, one: Client) {
    let mut both = two(&ground, one);
    assert_eq!(ground.run("failover", "202406").batch, "SUCCESS");
    both[0].kill();
    // It still counts as there.
    assert_eq!(ground.registered(), both.each_ref().map(Client::address));
    assert_eq!(ground.run("failover", "202407").batch, "SUCCESS");
    assert_eq!(ran(&ground, &both, "FAILOVER"), [0, 1]);
    assert_eq!(both.each_ref().map(Client::names), [["echo"], ["echo"]]);
    both[1].kill();
    let ended = ground.run("failover", "202408");
    assert_eq!((ended.batch.as_str(), ended.job.as_str()), ("FAILED", "FAILED"), "{ended:?}");
    for client in &both {
        assert!(
            ended.words.contains(&format!("{}: cannot connect", client.address())),
            "{ended:?}"
        );
    }
}
