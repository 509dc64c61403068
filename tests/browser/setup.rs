//! The first log-in: nobody is known yet, and the process has said a secret to whoever started it.

use crate::browser::house::{House, NAME, PASSWORD};
use crate::browser::webdriver::Browser;

#[tokio::test]
async fn the_first_log_in_takes_the_secret_of_the_process_and_makes_an_account() {
    let house = House::open("groups: { g: { name: G } }\njobs: { A: { group: g, type: NOOP } }\n");
    let browser = Browser::open("en-GB").await;
    browser.client.goto(&house.address).await.expect("the console");
    browser.find("[data-test=\"setup\"]").await;
    browser.must_be_accessible("set-up").await;
    browser.fill("[data-test=\"setup\"] [name=\"secret\"]", "wrong-secret").await;
    browser.fill("[data-test=\"setup\"] [name=\"name\"]", NAME).await;
    for field in
        browser.all("[data-test=\"setup\"] [type=\"password\"]:not([name=\"secret\"])").await
    {
        field.send_keys(PASSWORD).await.expect("a field");
    }
    browser.click("[data-test=\"setup\"] [type=\"submit\"]").await;
    let refused = "return document.querySelector('[data-test=\"error\"]')?.checkVisibility()";
    browser.until("the refusal", refused).await;
    // The browser tells of the refusal; nothing else is wrong.
    let complaints = browser.complaints().await;
    let others: Vec<_> = complaints.iter().filter(|c| !c.contains("/api/v1/setup ")).collect();
    assert!(others.is_empty(), "{others:?}");

    browser.fill("[data-test=\"setup\"] [name=\"secret\"]", &house.secret).await;
    browser.click("[data-test=\"setup\"] [type=\"submit\"]").await;
    browser.arrives_at("dashboard").await;
    browser.must_be_quiet("the first log-in").await;

    // Out and in again, by the name and the password.
    browser.click("[data-test=\"me\"]").await;
    browser.click("[data-test=\"logout\"]").await;
    browser.find("[data-test=\"login\"]").await;
    browser.log_in(&house.address, NAME, PASSWORD).await;
    browser.must_be_quiet("the second log-in").await;
    browser.close().await;
}
