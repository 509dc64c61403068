//! Approvals: a job waits, the page says for whom, one is approved there and another rejected from the panel.

use crate::browser::house::{House, NAME, PASSWORD};
use crate::browser::webdriver::{Browser, Theme};

const DEFINITION: &str = r#"
groups: { close: { name: 月结 Month-end close } }
defaults: { group: close }
jobs:
  DRAFT: { type: NOOP }
  RELEASE:
    type: APPROVAL
    depends_on: [DRAFT]
    approval: { role: operator, users: [controller.zhao], question: 'Post the close? 过账吗?' }
  POST: { type: NOOP, depends_on: [RELEASE] }
"#;

const ROWS: &str = "return document.querySelectorAll('[data-test=\"approvals\"] tbody tr').length";

async fn look(browser: &Browser, name: &str) {
    browser.picture(name).await;
    assert_eq!(browser.barriers().await, Vec::<String>::new(), "{name}");
    let wide =
        "return document.documentElement.scrollWidth > document.documentElement.clientWidth + 1";
    assert_eq!(browser.ask(wide).await, false, "{name} is wider than the window");
    browser.must_be_quiet(name).await;
}

async fn decided(lang: &str, theme: Theme) {
    let house = House::with_admin(DEFINITION).await;
    for no in ["202406", "202407"] {
        house.does(&["batch", "open", "--group", "close", "--batch-no", no]);
    }
    let browser = Browser::open(lang).await;
    browser.likes(theme).await;
    browser.client.goto(&house.address).await.expect("the console");
    browser.log_in(&house.address, NAME, PASSWORD).await;
    // The page reads anew by itself.
    browser.go("#/approvals").await;
    browser.until("both wait", &format!("{ROWS} === 2 || null")).await;
    look(&browser, &format!("approvals-{lang}")).await;
    // Which of the two asks first is chance, and so is the order of the rows.
    let row = "[data-test=\"approvals\"] tbody tr:has(a[href*=\"202406\"])";
    browser.click(&format!("{row} [data-test=\"approval-approve\"]")).await;
    browser.find("[data-test=\"reason\"]").await;
    look(&browser, &format!("approval-approve-{lang}")).await;
    browser.fill("[data-test=\"reason\"]", "agrees with the ledger 与总账一致").await;
    browser.click("[data-test=\"confirm-yes\"]").await;
    browser.until("one waits", &format!("{ROWS} === 1 || null")).await;
    assert_eq!(house.ended("close", "202406")["status"], "SUCCESS");
    browser.go("#/batches/close/202407/list?job=RELEASE").await;
    browser.find("[data-test=\"job-panel\"] [data-test=\"approval-reject\"]").await;
    look(&browser, &format!("approval-panel-{lang}")).await;
    browser.click("[data-test=\"job-panel\"] [data-test=\"approval-reject\"]").await;
    browser.fill("[data-test=\"reason\"]", "wrong rates 汇率有误").await;
    browser.click("[data-test=\"confirm-yes\"]").await;
    assert_eq!(house.ended("close", "202407")["status"], "FAILED");
    browser.go("#/approvals?all=true").await;
    let text = "return document.querySelector('[data-test=\"approvals\"]')?.innerText || null";
    let text = browser.until("past ones", text).await.to_string();
    for words in ["wrong rates 汇率有误", "agrees with the ledger 与总账一致", NAME] {
        assert!(text.contains(words), "{words}: {text}");
    }
    look(&browser, &format!("approvals-past-{lang}")).await;
    browser.close().await;
}

#[tokio::test]
async fn approvals_in_english() {
    decided("en-GB", Theme::Light).await;
}

#[tokio::test]
async fn approvals_in_chinese() {
    decided("zh-CN", Theme::Dark).await;
}
