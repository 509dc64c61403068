//! The page about the API: Swagger UI on the description, with requests that can be tried with the console's session.

use crate::browser::house::{House, NAME, PASSWORD};
use crate::browser::webdriver::Browser;

const GROUPS: &str = "groups: { g: { name: G } }\njobs: { A: { group: g, type: NOOP } }\n";

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
