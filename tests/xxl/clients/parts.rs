//! A broadcast over two processes: each has a part, and the job ends once.

use super::{Client, Ground, with_each};
use serde_json::Value;

with_each! {
    pyxxl Pyxxl: all_parts_run_and_the_job_ends_once parts_that_fail_are_named;
    flask Flask: all_parts_run_and_the_job_ends_once parts_that_fail_are_named;
    npm Npm: all_parts_run_and_the_job_ends_once parts_that_fail_are_named;
    rust Rust: all_parts_run_and_the_job_ends_once parts_that_fail_are_named;
}

fn all_parts_run_and_the_job_ends_once(ground: Ground, one: Client) {
    let two = ground.client(one.kind);
    let mut addresses = [one.address(), two.address()];
    addresses.sort();
    assert_eq!(ground.registered(), addresses);
    assert_eq!(ground.run("parts", "202407").batch, "SUCCESS");
    let mut parts: Vec<(Value, Value)> = Vec::new();
    for client in [&one, &two] {
        let [seen] = &client.seen()[..] else { panic!("{:?}", client.seen()) };
        parts.push((seen["index"].clone(), seen["total"].clone()));
        // Part 0 is the first address of the alphabet.
        assert_eq!(seen["index"], usize::from(addresses[0] != client.address()));
    }
    parts.sort_by_key(|part| part.0.as_i64());
    assert_eq!(parts, [(0.into(), 2.into()), (1.into(), 2.into())]);
    let sql = "SELECT COUNT(*), COUNT(DISTINCT trigger_time) FROM executor_run";
    assert_eq!(ground.rows(sql), [["2", "1"]]);
}

fn parts_that_fail_are_named(ground: Ground, one: Client) {
    let _two = ground.client(one.kind);
    let ended = ground.run("parts_fail", "202407");
    assert_eq!(ended.batch, "FAILED", "{ended:?}");
    assert!(ended.words.contains("汇率缺失"), "{ended:?}");
}
