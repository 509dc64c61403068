//! What past runs and deadlines say: the board, the tables, charts that are walked by keys, the wallboard; the inbox of
//! failures; and a long log.

use crate::browser::house::{House, NAME, PASSWORD};
use crate::browser::webdriver::{Browser, Theme};
use fantoccini::key::Key;

/// POST fails in the last batch alone, RATES takes two attempts.
const DEFINITION: &str = r#"
groups: { month_end: { name: Month-end close, due: "23:59:59", time_zone: UTC } }
defaults: { group: month_end, type: SCRIPT, interpreter: sh, timeout_sec: 60, idempotent: true }
jobs:
  RATES: { name: Load rates, retry_count: 1, retry_delay_sec: 1, script: 'test "$PROCESSION_ATTEMPT" -gt 1' }
  POST: { name: Post journals, script: 'test "$PROCESSION_BATCH_NO" != 202407 || { echo period 7 is closed >&2; exit 3; }' }
schedules:
  nightly: { group: month_end, cron: '0 0 3 * * ?', batch_no: day(0), time_zone: UTC }
"#;
const WIDE: &str =
    "return document.documentElement.scrollWidth > document.documentElement.clientWidth + 1";
const VIEWS: [&str; 6] = [
    "#/runs?status=FAILED",
    "#/insights",
    "#/insights?view=jobs&order=flakiest",
    "#/insights?view=groups",
    "#/groups/month_end/trend",
    "#/inbox",
];

async fn house() -> House {
    let house = House::with_admin(DEFINITION).await;
    for no in ["202401", "202402", "202403", "202404", "202405", "202406", "202407"] {
        house.does(&["batch", "open", "--group", "month_end", "--batch-no", no]);
        let status = if no == "202407" { "FAILED" } else { "SUCCESS" };
        assert_eq!(house.ended("month_end", no)["status"], status, "{no}");
    }
    house
}

#[tokio::test]
async fn a_trend_is_walked_by_keys_and_leads_to_its_batches() {
    let house = house().await;
    let browser = Browser::open("en-GB").await;
    browser.log_in(&house.address, NAME, PASSWORD).await;
    browser.go("#/insights?view=groups").await;
    let rate = "return document.querySelector('[data-test=\"in-groups-table\"]')?.innerText.includes('85.7 %')";
    browser.until("the rate of success", rate).await;
    browser.click("[data-test=\"in-groups-table\"] a[href=\"#/groups/month_end/trend\"]").await;
    browser.find("[data-test=\"chart\"][data-drawn=\"true\"]").await;
    browser.picture("trend").await;
    browser.tab_to("[data-test=\"chart\"]").await;
    let says = async |key: Key, words: &str| {
        browser.press(&[key.into()]).await;
        let said = format!(
            "return document.querySelector('[data-test=\"chart-now\"]').textContent.startsWith('{words}')"
        );
        browser.until(words, &said).await;
    };
    says(Key::End, "202407 · Failed").await;
    says(Key::Left, "202406 · Success").await;
    let usual = "return document.querySelector('[data-test=\"chart-now\"]').textContent.includes('usually')";
    assert_eq!(browser.ask(usual).await, true);
    says(Key::Home, "202401 · Success").await;
    browser.press(&[Key::Enter.into()]).await;
    browser.arrives_at("batch").await;
    let there = "return location.hash.startsWith('#/batches/month_end/202401')";
    assert_eq!(browser.ask(there).await, true);

    // The same of a job, with what it says in numbers.
    browser.go("#/jobs/month_end.RATES").await;
    browser.find("[data-test=\"chart\"][data-drawn=\"true\"]").await;
    let rows = "return document.querySelectorAll('[data-test=\"trend-table\"] tbody tr').length";
    assert_eq!(browser.until("the table", rows).await, 7);
    browser.must_be_accessible("a job with its trend").await;
    browser.must_be_quiet("trends").await;
    browser.close().await;
}

#[tokio::test]
async fn the_board_and_the_tables_say_what_is_so() {
    let house = house().await;
    let browser = Browser::open("en-GB").await;
    browser.log_in(&house.address, NAME, PASSWORD).await;
    browser.go("#/insights").await;
    let standings = "return [...document.querySelectorAll('[data-test=\"in-deadlines-table\"] [data-standing]')]\
                     .map(e => e.dataset.standing).join()";
    assert_eq!(browser.until("the board", standings).await, "failed,on_time,met,met");
    browser.picture("insights-board").await;
    browser.click("[data-test=\"in-view-jobs\"]").await;
    browser
        .ask(
            "const s = document.querySelector('[data-test=\"in-order\"]'); s.value = 'flakiest'; \
                 s.dispatchEvent(new Event('change'))",
        )
        .await;
    let first = "const row = document.querySelector('[data-test=\"in-jobs-table\"] tbody tr'); \
                 return !!row && /^RATES/.test(row.innerText) && row.innerText.includes('100 %')";
    browser.until("the flakiest job", first).await;
    assert_eq!(browser.ask("return location.hash.includes('order=flakiest')").await, true);
    browser.click("[data-test=\"in-wall\"]").await;
    browser.arrives_at("wall").await;
    let counted = "return document.querySelector('[data-test=\"wall-counts\"] [data-standing=\"failed\"] strong')\
                   ?.textContent === '1'";
    browser.until("the wallboard", counted).await;
    browser.must_be_accessible("the wallboard").await;
    assert_eq!(
        browser.ask("return document.querySelector('nav.rail').checkVisibility()").await,
        false
    );
    browser.picture("wall").await;
    browser.click("[data-test=\"wall-leave\"]").await;
    browser.arrives_at("insights").await;
    assert_eq!(
        browser.ask("return document.querySelector('nav.rail').checkVisibility()").await,
        true
    );
    browser.must_be_quiet("insights").await;
    browser.close().await;
}

#[tokio::test]
async fn a_failure_is_assigned_noted_and_acknowledged() {
    let house = house().await;
    let browser = Browser::open("en-GB").await;
    browser.log_in(&house.address, NAME, PASSWORD).await;
    let badge = |n: &str| {
        format!(
            "return document.querySelector('[data-test=\"nav-failures\"]').textContent === '{n}'"
        )
    };
    browser.until("the badge", &badge("1")).await;
    browser.click("[data-test=\"nav-inbox\"]").await;
    browser.arrives_at("inbox").await;
    browser.click("[data-test=\"inbox-edit-POST\"]").await;
    browser.fill("[data-test=\"inbox-edit-assignee\"]", "Li Na").await;
    browser.fill("[data-test=\"inbox-edit-note\"]", "the ledger team opens the period").await;
    browser.must_be_accessible("a failure that is noted").await;
    browser.click("[data-test=\"inbox-save\"]").await;
    let noted = "return /Li Na[^]*opens the period/.test(document.querySelector('[data-test=\"inbox\"]')?.innerText ?? '')";
    browser.until("the note", noted).await;
    browser.picture("inbox").await;

    // By keys alone.
    browser.tab_to("[data-test=\"inbox\"] tbody input[type=\"checkbox\"]").await;
    browser.press(&[' ']).await;
    browser.find("[data-test=\"inbox-ack\"]").await;
    browser.ask("document.querySelector('[data-test=\"inbox-assignee\"]').focus()").await;
    browser.tab_to("[data-test=\"inbox-ack\"]").await;
    browser.press(&[Key::Enter.into()]).await;
    let empty =
        "return !document.querySelector('[data-test=\"inbox\"] tbody input[type=\"checkbox\"]')";
    browser.until("the inbox is empty", empty).await;
    let gone = "return !document.querySelector('[data-test=\"nav-failures\"]').checkVisibility()";
    browser.until("the badge is gone", gone).await;
    browser.click("[data-test=\"inbox-state-acknowledged\"]").await;
    let by = format!(
        "return document.querySelector('[data-test=\"inbox\"]')?.innerText.includes('{NAME}')"
    );
    browser.until("who acknowledged it", &by).await;
    // It needs nobody any more, though its job has not run.
    browser.go("#/").await;
    browser.find("[data-test=\"needs\"].calm").await;
    browser.must_be_quiet("the inbox").await;
    let audit = house.does(&["audit", "--group", "month_end"]);
    assert!(audit.contains("failure mark"), "{audit}");
    browser.close().await;
}

#[tokio::test]
async fn runs_are_filtered_and_lead_to_their_logs() {
    let house = house().await;
    let browser = Browser::open("en-GB").await;
    browser.log_in(&house.address, NAME, PASSWORD).await;
    browser.click("[data-test=\"nav-runs\"]").await;
    browser.arrives_at("runs").await;
    let rows = "return document.querySelectorAll('[data-test=\"runs\"] tbody tr').length";
    assert_eq!(browser.until("the runs", rows).await, 14);
    browser.fill("[data-test=\"runs-q\"]", "post").await;
    browser.until("the runs of POST", &format!("{rows} === 7")).await;
    browser
        .ask(
            "const s = document.querySelector('[data-test=\"runs-status\"]'); s.value = 'FAILED'; \
                 s.dispatchEvent(new Event('change'))",
        )
        .await;
    browser.until("the failed one", &format!("{rows} === 1")).await;
    assert_eq!(browser.ask("return location.hash").await, "#/runs?q=post&status=FAILED");
    browser.must_be_accessible("the list of runs").await;
    browser.picture("runs").await;
    browser.click("[data-test=\"runs-log-POST\"]").await;
    let log = "return document.querySelector('[data-test=\"log\"]')?.textContent.includes('period 7 is closed')";
    browser.until("its log", log).await;
    browser.must_be_quiet("the list of runs").await;
    browser.close().await;
}

async fn walk(lang: &str, theme: Theme) {
    let house = house().await;
    let browser = Browser::open(lang).await;
    browser.likes(theme).await;
    browser.is_a_phone().await;
    browser.log_in(&house.address, NAME, PASSWORD).await;
    for view in VIEWS.into_iter().chain(["#/wall"]) {
        browser.go(view).await;
        if view.ends_with("/trend") {
            browser.find("[data-test=\"chart\"][data-drawn=\"true\"]").await;
        }
        let whose = format!("{view} on a phone ({lang}, {theme:?})");
        browser.must_be_accessible(&whose).await;
        assert_eq!(browser.ask(WIDE).await, false, "{whose}: wider than the window");
        browser.must_be_quiet(&whose).await;
    }
    browser.close().await;
}

#[tokio::test]
async fn insights_on_a_phone_in_chinese_and_dark() {
    walk("zh-CN", Theme::Dark).await;
}

#[tokio::test]
async fn insights_on_a_phone_in_english_and_light() {
    walk("en-GB", Theme::Light).await;
}

/// 12,000 lines, of which line 3,001 tells of an error.
const LONG: &str = r#"
groups: { logs: {} }
jobs:
  LONG:
    group: logs
    type: SCRIPT
    interpreter: sh
    timeout_sec: 100
    script: |
      seq -f 'line %.0f of a long report' 1 2999
      echo 'ERROR 4711: no period is open'
      seq -f 'line %.0f of a long report' 3001 12000
"#;

#[tokio::test]
async fn a_long_log_is_read_from_its_end_and_from_error_to_error() {
    let house = House::with_admin(LONG).await;
    house.does(&["batch", "open", "--group", "logs", "--batch-no", "1"]);
    assert_eq!(house.ended("logs", "1")["status"], "SUCCESS");
    let browser = Browser::open("en-GB").await;
    browser.log_in(&house.address, NAME, PASSWORD).await;
    browser.go("#/batches/logs/1/list?job=LONG").await;
    browser.click("[data-test=\"panel-log\"]").await;
    let last = "return [...document.querySelectorAll('.log-line')].at(-1)?.textContent.includes('line 12000')";
    browser.until("the last line", last).await;
    let shown = "return document.querySelectorAll('.log-line').length";
    assert_eq!(browser.ask(shown).await, 1_000, "not the whole log");
    let at_end = "const log = document.querySelector('[data-test=\"log\"]'); \
                  return log.scrollTop + log.clientHeight > log.scrollHeight - 30";
    browser.until("the end of the log is seen", at_end).await;
    browser.click("[data-test=\"log-prev_error\"]").await;
    let found = "return document.querySelector('.log-current')?.textContent.includes('ERROR 4711')";
    browser.until("the error", found).await;
    let in_sight = "const [line, log] = ['.log-current', '[data-test=\"log\"]'].map(s => document.querySelector(s)\
                    .getBoundingClientRect()); return line.top >= log.top && line.bottom <= log.bottom";
    browser.until("the error is in sight", in_sight).await;
    assert_eq!(browser.ask("return document.activeElement.dataset.test").await, "log-prev_error");
    // With the 9,000 lines that are loaded by now, axe takes longer than five minutes; a short log is checked with the
    // other pages.
    browser.picture("log-error").await;
    browser.click("[data-test=\"log-wrap\"]").await;
    browser.find("[data-test=\"log\"].log-nowrap").await;

    // A line has an address.
    browser.click(".log-current .log-no").await;
    let address = "return location.hash.match(/line=1%3A(\\d+)/)?.[1] ?? false";
    let number = browser.until("the address of the line", address).await;
    browser.client.refresh().await.expect("again");
    browser.until("the line again", found).await;
    let same = format!("return document.querySelector('.log-current').dataset.line === {number}");
    assert_eq!(browser.ask(&same).await, true);
    browser.must_be_quiet("a long log").await;
    browser.close().await;
}
