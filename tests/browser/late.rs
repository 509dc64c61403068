//! A batch that runs: when it is expected to end, how sure that is, and why it is late.

use crate::browser::house::{House, NAME, PASSWORD};
use crate::browser::webdriver::{Browser, Theme};

const DEFINITION: &str = r#"
groups: { close: { name: Close, due: "00:00", max_parallel: 1 } }
defaults: { group: close, type: SCRIPT, interpreter: sh, timeout_sec: 900 }
jobs:
  LOAD: { priority: 9, script: 'sleep 1.2' }
  POST: { script: 'test -e go && sleep 0.1 || sleep 40' }
"#;

#[tokio::test]
async fn a_late_batch_says_why_and_its_end_is_no_guess_in_disguise() {
    let house = House::with_admin(DEFINITION).await;
    house.does(&["batch", "open", "--group", "close", "--batch-no", "202407"]);
    let browser = Browser::open("en-GB").await;
    browser.log_in(&house.address, NAME, PASSWORD).await;
    browser.go("#/batches/close/202407/list").await;
    browser.arrives_at("batch").await;
    // A first run: nobody knows.
    let unknown = "return document.querySelector('[data-test=\"expected-end\"]')?.textContent.includes('unknown')";
    browser.until("an end that is not known", unknown).await;
    let late = "[data-test=\"why-late\"]";
    let slot = "return document.querySelector('[data-test=\"why-late\"]')?.textContent.includes('for a slot, in use by LOAD')";
    browser.until("the slot that POST waited for", slot).await;
    for theme in [Theme::Light, Theme::Dark] {
        browser.likes(theme).await;
        browser.must_be_accessible("a late batch").await;
    }
    browser.click(&format!("{late} button.link")).await;
    browser.find("[data-test=\"job-panel\"][data-job=\"POST\"]").await;
}
