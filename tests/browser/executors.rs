//! Executors of XXL-JOB: a group is added, its token is shown once, who is there is seen, and what ran.

use crate::browser::house::{House, NAME, PASSWORD};
use crate::browser::webdriver::{Browser, Theme};
use serde_json::json;

const DEFINITION: &str = "groups: { pay: {} }\njobs: { PAY: { group: pay, type: NOOP } }\n";

const RUNS: &str = "INSERT INTO executor_run (log_id, queue_id, run_no, attempt, batch_id, job_code, job_id, app_name, \
    address, handler, glue_type, params, block_strategy, shard_index, shard_total, status, stopping, node_id, \
    handle_code, handle_msg, result, create_time, update_time, end_time) VALUES \
    (101, 1, 1, 1, 1, 'PAY', 1, 'pay-executor', 'http://127.0.0.1:9999', 'payHandler', 'BEAN', '{}', 'SERIAL_EXECUTION', \
     0, 1, 'DONE', NULL, 'n', 200, '成功', NULL, '2026-07-01T00:00:00.000Z', '2026-07-01T00:00:00.000Z', '2026-07-01T00:00:09.000Z'), \
    (102, 2, 1, 1, 1, 'PAY', 1, 'pay-executor', 'http://127.0.0.1:9999', 'payHandler', 'BEAN', '{}', 'SERIAL_EXECUTION', \
     0, 1, 'DONE', NULL, 'n', 500, 'no rates today', NULL, '2026-07-02T00:00:00.000Z', '2026-07-02T00:00:00.000Z', '2026-07-02T00:00:09.000Z'), \
    (103, 3, 1, 1, 1, 'PAY', 1, 'pay-executor', 'http://127.0.0.1:9998', NULL, 'GLUE_SHELL', '{}', 'SERIAL_EXECUTION', \
     1, 2, 'DONE', NULL, 'n', NULL, NULL, 'LOST', '2026-07-03T00:00:00.000Z', '2026-07-03T00:00:00.000Z', '2026-07-03T00:00:09.000Z'), \
    (104, 4, 1, 1, 1, 'PAY', 1, 'pay-executor', 'http://127.0.0.1:9999', 'payHandler', 'BEAN', '{}', 'SERIAL_EXECUTION', \
     0, 1, 'RUNNING', NULL, 'n', NULL, NULL, NULL, '2026-07-04T00:00:00.000Z', '2026-07-04T00:00:00.000Z', NULL)";

/// The batch of these runs.
const BATCH: &str = "INSERT INTO job_batch (batch_id, batch_no, group_code, status, params, snapshot, started_by, \
    create_time, update_time) VALUES (1, '202407', 'pay', 'FAILED', '{}', '{}', 'x', '2026-07-01T00:00:00.000Z', \
    '2026-07-01T00:00:00.000Z')";

async fn seen(lang: &str, theme: Theme) {
    let house = House::with_admin(DEFINITION).await;
    house.does(&[
        "executor-group",
        "add",
        "stock-executor",
        "--address",
        "http://10.0.0.7:9999",
        "--allow-glue",
    ]);
    let browser = Browser::open(lang).await;
    browser.likes(theme).await;
    browser.client.goto(&house.address).await.expect("the console");
    browser.log_in(&house.address, NAME, PASSWORD).await;
    browser.go("#/executors").await;
    browser.click("[data-test=\"executor-add\"]").await;
    browser.fill("[data-test=\"executor-name\"]", "pay-executor").await;
    browser.fill("[data-test=\"executor-title\"]", "支付 Payments").await;
    browser.must_be_accessible("adding a group").await;
    browser.picture(&format!("executor-add-{lang}")).await;
    browser.click("[data-test=\"executor-save\"]").await;
    let token = browser
        .until(
            "the token",
            "return document.querySelector('[data-test=\"secret-text\"]')?.textContent",
        )
        .await;
    let token = token.as_str().expect("a token").to_owned();
    assert_eq!(token.len(), 43);
    browser.click("[data-test=\"secret-kept\"]").await;
    for (port, forged) in [(9999, false), (9998, false), (9997, true)] {
        let address = format!("http://127.0.0.1:{port}/");
        let body = json!({"registryGroup": "EXECUTOR", "registryKey": "pay-executor", "registryValue": address});
        let shown = if forged { "a-token-that-is-nobodys" } else { &token };
        let answer = house.hears("registry", shown, &body).await;
        assert_eq!(answer["code"], if forged { 500 } else { 200 }, "{answer}");
    }
    house.writes(BATCH).await;
    house.writes(RUNS).await;
    house.writes("UPDATE executor_registry SET update_time = '2026-07-01T00:00:00.000Z' WHERE address LIKE '%9998'").await;
    for page in ["#/executors", "#/executors/pay-executor"] {
        browser.go("#/").await;
        browser.go(page).await;
        let rows = "return document.querySelectorAll('tbody tr').length >= 2 || null";
        browser.until("rows", rows).await;
        let name = page.trim_start_matches("#/").replace('/', "-");
        browser.picture(&format!("{name}-{lang}")).await;
        assert_eq!(browser.barriers().await, Vec::<String>::new(), "{page}");
        let wide = "return document.documentElement.scrollWidth > document.documentElement.clientWidth + 1";
        assert_eq!(browser.ask(wide).await, false, "{page} is wider than the window");
        browser.must_be_quiet(page).await;
    }
    let text = browser.ask("return document.body.innerText").await.to_string();
    for words in ["http://127.0.0.1:9999", "pay.PAY", "202407", "no rates today", "payHandler"] {
        assert!(text.contains(words), "{words}: {text}");
    }
    assert!(!text.contains(&token), "it is shown once");
    browser.close().await;
}

#[tokio::test]
async fn executors_in_english() {
    seen("en-GB", Theme::Light).await;
}

#[tokio::test]
async fn executors_in_chinese() {
    seen("zh-CN", Theme::Dark).await;
}
