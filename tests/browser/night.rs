//! What an operator does at three in the morning: log in, open the batch, look why it failed, run it again from
//! there, and see it end well.

use crate::browser::house::{House, NAME, PASSWORD};
use crate::browser::webdriver::Browser;
use fantoccini::key::Key;

const DEFINITION: &str = r#"
groups: { month_end: { name: Month-end close } }
defaults: { group: month_end, type: SCRIPT, interpreter: sh, timeout_sec: 30, idempotent: true }
jobs:
  LOAD: { name: Load rates, script: 'echo loaded 120 rates' }
  POST: { name: Post journals, depends_on: [LOAD], script: 'echo no period is open >&2; exit 3' }
  REPORT: { name: Report, depends_on: [POST], script: 'echo reported' }
"#;

#[tokio::test]
async fn a_batch_that_failed_is_looked_at_mended_and_run_again_to_success() {
    let house = House::with_admin(DEFINITION).await;
    house.does(&["batch", "open", "--group", "month_end", "--batch-no", "202407"]);
    assert_eq!(house.ended("month_end", "202407")["status"], "FAILED");

    let browser = Browser::open("en-GB").await;
    browser.log_in(&house.address, NAME, PASSWORD).await;
    browser.go("#/batches").await;
    let row = "[data-test=\"batch\"][data-group=\"month_end\"][data-no=\"202407\"]";
    browser.find(row).await;
    browser.click(&format!("{row} a[href*=\"#/batches/month_end/202407\"]")).await;
    browser.arrives_at("batch").await;
    let status = "return (s => s && (s.dataset.status || s.textContent))\
                  (document.querySelector('[data-test=\"batch-status\"]'))";
    let shown = browser.until("the status", status).await;
    assert!(shown.as_str().unwrap_or_default().to_uppercase().contains("FAILED"), "{shown}");

    // The log of what failed.
    browser.click("[data-test=\"tab-list\"]").await;
    let job = "[data-test=\"job\"][data-job=\"POST\"]";
    browser.find(&format!("{job}[data-status=\"FAILED\"]")).await;
    browser.click(job).await;
    browser.find("[data-test=\"job-panel\"][data-job=\"POST\"]").await;
    browser.click("[data-test=\"panel-log\"]").await;
    let log = "return document.querySelector('[data-test=\"log\"]')?.textContent.includes('no period is open')";
    browser.until("the log of POST", log).await;
    browser.must_be_accessible("the panel of a job").await;
    browser.press(&[Key::Escape.into()]).await;

    // The definition is mended; the rerun takes the present one.
    house.write("d.yaml", &DEFINITION.replace("echo no period is open >&2; exit 3", "echo posted"));
    house.does(&["apply", "d.yaml"]);
    browser.click("[data-action=\"rerun-from-failure\"]").await;
    browser.find("[data-test=\"confirm\"]").await;
    browser.click("[data-test=\"confirm\"] [data-test=\"opt-latest\"]").await;
    browser.find("[data-test=\"confirm-line\"]").await;
    let lines = "return document.querySelectorAll('[data-test=\"confirm-line\"]').length === 2";
    browser.until("the two rows that start over", lines).await;
    browser.must_be_accessible("the confirmation").await;
    browser.fill("[data-test=\"confirm\"] [name=\"reason\"]", "the period has been opened").await;
    browser.click("[data-test=\"confirm-yes\"]").await;

    // Live, without the page being loaded again.
    browser.ask("window.stayed = true").await;
    let success = "return /SUCCESS|Success/.test((s => s && (s.dataset.status || s.textContent))\
                   (document.querySelector('[data-test=\"batch-status\"]')))";
    browser.until("the batch ends well", success).await;
    assert_eq!(browser.ask("return window.stayed === true").await, true);
    browser.must_be_quiet("the night").await;
    let audit = house.does(&["audit", "--batch", "202407"]);
    assert!(audit.contains("the period has been opened") && audit.contains(NAME), "{audit}");
    browser.close().await;
}
