//! The page about the API: Swagger UI on the description, with requests that can be tried with the console's session.

use crate::browser::house::{House, NAME, PASSWORD};
use crate::browser::webdriver::{Browser, Theme};

/// The names of operations in the description, sorted.
const DESCRIBED: &str = "const done = arguments[0]; fetch('/api/v1/openapi.json').then(r => r.json()).then(d => done(\
                         Object.values(d.paths).flatMap(p => Object.values(p).map(o => o.operationId)).sort()))";
/// Those that the viewer shows, sorted. It draws what is in the window alone, so the page is scrolled through.
const SHOWN: &str = "const done = arguments[0]; const found = new Set(); \
                     const step = () => { \
                       document.querySelectorAll('.opblock-summary-operation-id').forEach(e => found.add(e.textContent)); \
                       const end = scrollY + innerHeight >= document.documentElement.scrollHeight - 2; \
                       if (end) { done([...found].sort()); return; } \
                       scrollBy(0, 300); setTimeout(step, 60); }; \
                     scrollTo(0, 0); setTimeout(step, 200);";
/// Opens the first operations.
const OPEN: &str = "[...document.querySelectorAll('.opblock-summary-control')].slice(0, 3).forEach(b => b.click());";
const GROUPS: &str = "groups: { g: { name: G } }\njobs: { A: { group: g, type: NOOP } }\n";

#[tokio::test]
async fn the_page_about_the_api_shows_every_operation() {
    let house = House::open(GROUPS);
    let browser = Browser::open("en-GB").await;
    for theme in [Theme::Light, Theme::Dark] {
        browser.likes(theme).await;
        browser.client.goto(&format!("{}/api", house.address)).await.expect("the page");
        browser.arrives_at("api").await;
        browser.until("operations", "return !!document.querySelector('.opblock')").await;
        browser.must_be_accessible(&format!("/api ({theme:?})")).await;
        browser.ask(OPEN).await;
        let opened = "return !!document.querySelector('.opblock .opblock-body .responses-table')";
        browser.until("operations are open", opened).await;
        browser.must_be_accessible(&format!("/api, operations open ({theme:?})")).await;
        let names = async |script: &str| {
            browser.client.execute_async(script, Vec::new()).await.expect("names")
        };
        let described = names(DESCRIBED).await;
        assert!(described.as_array().is_some_and(|all| all.len() > 100), "{described}");
        assert_eq!(names(SHOWN).await, described);
    }
    browser.fill(".operation-filter-input", "approvals").await;
    let filtered = "const tags = [...document.querySelectorAll('.opblock-tag')].map(t => t.dataset.tag);\
                    return tags.length === 1 && tags[0] === 'approvals'";
    browser.until("the filter", filtered).await;
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
