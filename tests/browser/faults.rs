//! Faults that people met in the console: each was on a page that looked well to every other test.

use crate::browser::house::{House, NAME, PASSWORD};
use crate::browser::webdriver::Browser;
use serde_json::json;

const DEFINITION: &str = r#"
sources: { facts: { url: 'sqlite:facts.db', max_parallel: 2 } }
groups: { month_end: { name: Month-end close } }
defaults: { group: month_end, type: SQL, source: facts, idempotent: true }
jobs:
  LOAD: { name: Load rates, sql: 'select 1' }
  POST: { name: Post journals, sql: 'select * from no_such_table', depends_on: [LOAD] }
  REPORT: { name: Report, sql: 'select 2', depends_on: [LOAD, POST] }
schedules:
  yearly: { group: month_end, cron: '0 2 1 1 *', batch_no: day(0), time_zone: UTC }
"#;

/// The text of the page, or of a part of it.
async fn text(browser: &Browser, css: &str) -> String {
    let script = format!("return document.querySelector({})?.innerText ?? ''", json!(css));
    browser.ask(&script).await.as_str().unwrap_or_default().to_owned()
}

#[tokio::test]
async fn pages_show_values_and_not_what_a_program_calls_them() {
    let house = House::with_admin(DEFINITION).await;
    let browser = Browser::open("en-GB").await;
    browser.log_in(&house.address, NAME, PASSWORD).await;
    // A schedule that fires in months is coming too.
    let next = text(&browser, "[data-test=\"next\"]").await;
    assert!(next.contains("yearly"), "{next}");
    browser.go("#/nodes").await;
    browser.find("[data-test=\"source-jobs\"]").await;
    let sources = text(&browser, "[data-test=\"sources\"]").await;
    assert!(sources.contains("sqlite:facts.db") && sources.contains('3'), "{sources}");
    let whole = text(&browser, "body").await;
    assert!(!whole.contains("[object Object]"), "{whole}");
    let cut = "return [...document.querySelectorAll('main .table-scroll')]\
               .filter((el) => el.scrollWidth > el.clientWidth + 1).length";
    assert_eq!(browser.ask(cut).await, 0, "a table of the nodes page is wider than its place");
    browser.go("#/groups/month_end/jobs").await;
    let waits = "return [...document.querySelectorAll('[data-test=\"depends-on\"]')].map((e) => e.textContent)";
    let waits = browser.until("the jobs", waits).await;
    assert_eq!(waits, json!(["", "LOAD", "LOAD, POST"]));
    browser.must_be_accessible("the jobs of a group").await;
    browser.must_be_quiet("nodes and groups").await;
    browser.close().await;
}

#[tokio::test]
async fn a_batch_that_failed_is_not_done_and_its_log_says_why() {
    let house = House::with_admin(DEFINITION).await;
    house.does(&["batch", "open", "--group", "month_end", "--batch-no", "202407"]);
    assert_eq!(house.ended("month_end", "202407")["status"], "FAILED");
    let browser = Browser::open("en-GB").await;
    browser.log_in(&house.address, NAME, PASSWORD).await;
    browser.go("#/batches/month_end/202407/list?job=POST").await;
    let done = text(&browser, ".batch-progress .progress-n").await;
    assert_eq!(done, "1/3");
    browser.find("[data-test=\"job-panel\"][data-job=\"POST\"]").await;
    browser.click("[data-test=\"panel-log\"]").await;
    let logged = "return (l => l.includes('no such table') && l.includes('select * from no_such_table'))\
                  (document.querySelector('[data-test=\"log\"]')?.textContent ?? '')";
    browser.until("error and statement in the log", logged).await;

    // What an operator notes of a success that was forced is no error.
    let force =
        ["job", "force-success", "202407", "POST", "--group", "month_end", "--no-run", "--yes"];
    house.does(&[&force[..], &["--reason", "posted by hand"]].concat());
    browser.go("#/batches/month_end/202407/list").await;
    browser.go("#/batches/month_end/202407/list?job=POST").await;
    browser.click("[data-test=\"panel-now\"]").await;
    browser.find("[data-test=\"job-remark\"]").await;
    let red = browser.ask("return document.querySelectorAll('#job-panel .note-bad').length").await;
    assert_eq!(red, 0, "a note in a red box");
    browser.close().await;
}

#[tokio::test]
async fn back_closes_dialogs_and_a_wrong_password_says_so_at_its_field() {
    let house = House::with_admin(DEFINITION).await;
    let browser = Browser::open("en-GB").await;
    browser.log_in(&house.address, NAME, PASSWORD).await;
    browser.go("#/users").await;
    browser.click("[data-test=\"user-add\"]").await;
    browser.find("[data-test=\"user-dialog\"]").await;
    // In an English console a new user reads English.
    let lang =
        browser.ask("return document.querySelector('[data-test=\"user-lang\"]').value").await;
    assert_eq!(lang, "en");
    browser.client.back().await.expect("back");
    browser.arrives_at("dashboard").await;
    let open = browser.ask("return document.querySelectorAll('dialog[open]').length").await;
    assert_eq!(open, 0, "the dialog of a page that was left");

    browser.go("#/profile").await;
    browser.fill("[data-test=\"password-old\"]", "not my password").await;
    browser.fill("[data-test=\"password-new\"]", "another-harbour-43").await;
    browser.fill("[data-test=\"password-again\"]", "another-harbour-43").await;
    browser.ask("document.querySelector('[data-test=\"password-old\"]').closest('form').querySelector('[type=submit]').click()").await;
    browser.find("[data-test=\"password-old\"][aria-invalid=\"true\"]").await;
    browser.arrives_at("profile").await;
    browser.close().await;
}

#[tokio::test]
async fn an_empty_console_says_what_is_done_first_and_takes_a_file_of_days() {
    let house = House::empty_with_admin().await;
    let browser = Browser::open("en-GB").await;
    browser.log_in(&house.address, NAME, PASSWORD).await;
    browser.find("[data-test=\"first-step\"]").await;
    browser.must_be_accessible("an empty console").await;
    browser.click("[data-test=\"first-go\"]").await;
    browser.arrives_at("definition").await;
    browser.click("[data-test=\"definition-check\"]").await;
    browser.find("[data-test=\"definition-ok\"]").await;
    let seen = "return (b => b.top >= 0 && b.bottom <= innerHeight)\
                (document.querySelector('[data-test=\"definition-ok\"]').getBoundingClientRect())";
    browser.until("what the check found is in sight", seen).await;

    browser.go("#/calendars").await;
    browser.click("[data-test=\"calendar-import\"]").await;
    browser.fill("[data-test=\"calendar-code\"]", "cn").await;
    house.write("days.csv", "date,kind,label\n2026-10-01,off,National Day\n");
    let path = house.path("days.csv");
    browser.find("[data-test=\"calendar-file\"]").await.send_keys(&path).await.expect("a file");
    browser.click("[data-test=\"calendar-look\"]").await;
    let shown = "return document.querySelector('[data-test=\"calendar-changes\"]').textContent.includes('National Day')";
    browser.until("what would change", shown).await;
    browser.must_be_accessible("the import of a calendar").await;
    browser
        .fill("[data-test=\"calendar-dialog\"] [name=\"reason\"]", "the notice of the year")
        .await;
    browser.click("[data-test=\"calendar-store\"]").await;
    browser.find("[data-test=\"calendar-days\"]").await;
    browser.must_be_quiet("the first steps").await;
    browser.close().await;
}

#[tokio::test]
async fn on_a_phone_nothing_is_cut() {
    let house = House::with_admin(DEFINITION).await;
    for no in ["202406", "202407"] {
        house.does(&["batch", "open", "--group", "month_end", "--batch-no", no]);
        house.ended("month_end", no);
    }
    let browser = Browser::open("en-GB").await;
    browser.is_a_phone().await;
    browser.log_in(&house.address, NAME, PASSWORD).await;
    let cut = "return [...document.querySelectorAll('main .table-scroll, main .cal td')]\
               .filter((el) => el.scrollWidth > el.clientWidth + 1).map((el) => el.innerText.slice(0, 80))";
    let pages = [
        "#/batches/month_end/202407/compare",
        "#/batches/month_end/202407/list",
        "#/batches",
        "#/groups",
        "#/jobs",
        "#/schedules",
        "#/calendar",
        "#/nodes",
        "#/users",
    ];
    for page in pages {
        browser.go(page).await;
        browser
            .until("the page", "return !document.querySelector('main [data-test=\"loading\"]')")
            .await;
        assert_eq!(browser.ask(cut).await, json!([]), "{page}");
        let wide = "return document.documentElement.scrollWidth > document.documentElement.clientWidth + 1";
        assert_eq!(browser.ask(wide).await, false, "{page} is wider than the window");
        browser.must_be_accessible(page).await;
    }
    browser.close().await;
}
