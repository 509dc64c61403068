//! The picture of a DAG: names that can be read when all is seen, failures that are found, and a job that stays in
//! sight when its panel opens.

use crate::browser::house::{House, NAME, PASSWORD};
use crate::browser::webdriver::{Browser, Theme};
use fantoccini::key::Key;
use std::fmt::Write as _;

/// 70 jobs in seven layers, their names as long as those of real pipelines; one fails in the middle.
fn definition() -> String {
    let mut text = String::from(
        "groups: { close: { name: Period close } }\n\
         defaults: { group: close, type: NOOP }\njobs:\n",
    );
    let layers = [23, 22, 8, 8, 6, 1, 2];
    for (layer, wide) in layers.into_iter().enumerate() {
        let family = if layer < 2 { "stg_ledger__" } else { "int_ledger__" };
        for at in 0..wide {
            let _ = write!(text, "  {family}consolidated_rates_{layer}_{at}: {{ ");
            if (layer, at) == (2, 3) {
                text.push_str("type: SCRIPT, interpreter: sh, script: 'exit 3', ");
            }
            if let Some(above) = layer.checked_sub(1) {
                let family = if above < 2 { "stg_ledger__" } else { "int_ledger__" };
                let parent = at % layers[above];
                let _ = write!(text, "depends_on: [{family}consolidated_rates_{above}_{parent}], ");
            }
            text.push_str("timeout_sec: 30 }\n");
        }
    }
    text
}

#[tokio::test]
async fn names_are_read_failures_are_found_and_the_chosen_job_stays_in_sight() {
    let house = House::with_admin(&definition()).await;
    house.does(&["batch", "open", "--group", "close", "--batch-no", "202407"]);
    assert_eq!(house.ended("close", "202407")["status"], "FAILED");
    let browser = Browser::open("en-GB").await;
    browser.log_in(&house.address, NAME, PASSWORD).await;
    browser.go("#/batches/close/202407/dag").await;
    browser.find("[data-test=\"dag\"][data-drawn=\"true\"][data-letters]").await;
    let letters = "return Number(document.querySelector('[data-test=\"dag\"]').dataset.letters)";
    let letters = browser.ask(letters).await.as_f64().unwrap_or_default();
    assert!(letters >= 8.5, "letters of {letters} pixels when 70 jobs are seen");
    browser.picture("dag-70").await;

    browser.click("[data-test=\"dag-next-failure\"]").await;
    let failed = "[data-test=\"dag\"][data-focus=\"int_ledger__consolidated_rates_2_3\"]";
    browser.find(&format!("{failed}[data-chosen=\"seen\"]")).await;
    browser.ask("document.querySelector('[data-test=\"dag\"]').focus()").await;
    browser.press(&[Key::Enter.into()]).await;
    browser.find("[data-test=\"job-panel\"]").await;
    // The page makes way for the panel, and the picture follows.
    let narrow = "return document.querySelector('[data-test=\"dag\"]').clientWidth < 700";
    browser.until("the picture makes way", narrow).await;
    browser.find(&format!("{failed}[data-chosen=\"seen\"]")).await;
    browser.must_be_accessible("a picture beside a panel").await;
    browser.press(&[Key::Escape.into()]).await;

    // The direction that one chooses holds; both can be drawn.
    for direction in ["LR", "TB"] {
        let choose = format!(
            "const s = document.querySelector('[data-test=\"dag-direction\"]'); \
             s.value = '{direction}'; s.dispatchEvent(new Event('change'))"
        );
        browser.ask(&choose).await;
        browser.find(&format!("[data-test=\"dag\"][data-direction=\"{direction}\"]")).await;
    }
    browser.must_be_quiet("the picture").await;
    browser.close().await;
}

#[tokio::test]
async fn a_picture_in_the_dark_and_on_a_phone() {
    let house = House::with_admin(&definition()).await;
    house.does(&["batch", "open", "--group", "close", "--batch-no", "202407"]);
    house.ended("close", "202407");
    let browser = Browser::open("zh-CN").await;
    browser.likes(Theme::Dark).await;
    browser.is_a_phone().await;
    browser.log_in(&house.address, NAME, PASSWORD).await;
    browser.go("#/batches/close/202407/dag").await;
    browser.find("[data-test=\"dag\"][data-drawn=\"true\"]").await;
    browser.find("[data-test=\"dag-next-failure\"]").await;
    browser.must_be_accessible("a picture on a phone").await;
    let wide =
        "return document.documentElement.scrollWidth > document.documentElement.clientWidth + 1";
    assert_eq!(browser.ask(wide).await, false, "the page is wider than the window");
    browser.must_be_quiet("a picture on a phone").await;
    browser.close().await;
}
