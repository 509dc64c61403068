//! Many windows of one browser: they share one stream of events, so that none waits for a connection.

use crate::browser::house::{House, NAME, PASSWORD};
use crate::browser::webdriver::Browser;

/// More than a browser keeps connections to one server.
const WINDOWS: usize = 8;

#[tokio::test]
async fn eight_windows_hear_what_happens() {
    let house =
        House::with_admin("groups: { g: {} }\njobs: { A: { group: g, type: NOOP } }\n").await;
    house.does(&["batch", "open", "--group", "g", "--batch-no", "1"]);
    house.ended("g", "1");
    let browser = Browser::open("en-GB").await;
    browser.log_in(&house.address, NAME, PASSWORD).await;
    let mut windows = vec![browser.client.window().await.expect("a window")];
    for _ in 1..WINDOWS {
        let window = browser.client.new_window(false).await.expect("a window").handle;
        browser.client.switch_to_window(window.clone()).await.expect("the window");
        browser.client.goto(&format!("{}/#/batches", house.address)).await.expect("the console");
        browser.arrives_at("batches").await;
        windows.push(window);
    }
    browser.client.switch_to_window(windows[0].clone()).await.expect("the first window");
    browser.go("#/batches").await;
    for window in &windows {
        browser.client.switch_to_window(window.clone()).await.expect("the window");
        browser.find("[data-test=\"live\"]:not(.is-lost)").await;
    }
    house.does(&["batch", "open", "--group", "g", "--batch-no", "2"]);
    house.ended("g", "2");
    for window in &windows {
        browser.client.switch_to_window(window.clone()).await.expect("the window");
        let heard = "return !!document.querySelector('[data-test=\"batch\"][data-no=\"2\"][data-status=\"SUCCESS\"]')";
        browser.until("the other batch", heard).await;
    }
    browser.must_be_quiet("eight windows").await;
    browser.close().await;
}
