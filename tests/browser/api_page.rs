//! The page about the API: Swagger UI on the description, with requests that can be tried with the console's session.

use crate::browser::house::{House, NAME, PASSWORD};
use crate::browser::webdriver::{Browser, Theme};

/// The operations that the viewer shows.
const SHOWN: &str = "document.querySelectorAll('.opblock').length";
/// Those of the description.
const DESCRIBED: &str = "const done = arguments[0]; fetch('/api/v1/openapi.json').then(r => r.json()).then(d => done(\
                         Object.values(d.paths).reduce((n, p) => n + Object.keys(p).length, 0)))";
const GROUPS: &str = "groups: { g: { name: G } }\njobs: { A: { group: g, type: NOOP } }\n";

#[tokio::test]
async fn the_page_about_the_api_shows_every_operation() {
    let house = House::open(GROUPS);
    let browser = Browser::open("en-GB").await;
    for theme in [Theme::Light, Theme::Dark] {
        browser.likes(theme).await;
        browser.client.goto(&format!("{}/api", house.address)).await.expect("the page");
        browser.arrives_at("api").await;
        let all = browser.client.execute_async(DESCRIBED, Vec::new()).await.expect("a number");
        assert!(all.as_u64() > Some(100), "{all}");
        browser.until("all operations are shown", &format!("return {SHOWN} === {all}")).await;
        browser.must_be_accessible(&format!("/api ({theme:?})")).await;
    }
    browser.fill(".operation-filter-input", "backfills").await;
    browser.until("the filter", &format!("return {SHOWN} > 0 && {SHOWN} < 20")).await;
    browser.must_be_quiet("/api").await;
    browser.close().await;
}

#[tokio::test]
async fn an_operation_is_tried_with_the_session_of_the_console() {
    let house = House::with_admin(GROUPS).await;
    let browser = Browser::open("en-GB").await;
    browser.log_in(&house.address, NAME, PASSWORD).await;
    let open = "/api#/groups/listGroups";
    browser.client.goto(&format!("{}{open}", house.address)).await.expect("the page");
    browser.arrives_at("api").await;
    browser.click("#operations-groups-listGroups .try-out__btn").await;
    browser.click("#operations-groups-listGroups .execute").await;
    let answered = "const block = document.querySelector('#operations-groups-listGroups .live-responses-table');\
                    return !!block && /\\b200\\b/.test(block.innerText) && block.innerText.includes('\"code\": \"g\"')";
    browser.until("the answer", answered).await;
    // A change has to show that this page sent it.
    let open = "/api#/session/logOut";
    browser.client.goto(&format!("{}{open}", house.address)).await.expect("the page");
    browser.client.refresh().await.expect("the page again");
    browser.arrives_at("api").await;
    browser.click("#operations-session-logOut .try-out__btn").await;
    browser.click("#operations-session-logOut .execute").await;
    let answered = "const block = document.querySelector('#operations-session-logOut .live-responses-table');\
                    return !!block && /\\b200\\b/.test(block.innerText)";
    browser.until("the log-out", answered).await;
    browser.must_be_quiet("/api").await;
    browser.close().await;
}
