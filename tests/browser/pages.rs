//! Every page that the navigation leads to: it has its data, says nothing in the console, and axe finds nothing
//! serious, in both themes.

use crate::browser::house::{House, NAME, PASSWORD};
use crate::browser::webdriver::{Browser, Theme};
use serde_json::Value;

const DEFINITION: &str = r#"
groups: { month_end: { name: Month-end close }, daily: { name: 日终 }, release: {} }
defaults: { group: month_end, type: SCRIPT, interpreter: sh, timeout_sec: 30, idempotent: true }
jobs:
  LOAD: { name: Load rates, tags: [fx], script: 'echo loaded' }
  POST: { name: Post journals, depends_on: [LOAD], script: 'exit 1' }
  REPORT: { depends_on: [POST], script: 'echo reported' }
  RELEASE: { group: release, type: APPROVAL, approval: { role: operator, question: Post the month? } }
  EOD: { group: daily, name: 日终汇总, script: 'echo 完成' }
schedules:
  nightly: { group: daily, cron: '0 2 * * *', batch_no: day(0), time_zone: Asia/Shanghai }
"#;

/// Pages that the navigation does not lead to.
const MORE: [&str; 8] = [
    "#/batches/month_end/202407",
    "#/batches/month_end/202407/list",
    "#/batches/month_end/202407/gantt",
    "#/groups/month_end",
    "#/groups/month_end/grid",
    "#/jobs/POST",
    "#/approvals?all=true",
    "#/profile",
];

async fn walk(lang: &str, theme: Theme) {
    let house = House::with_admin(DEFINITION).await;
    house.does(&["batch", "open", "--group", "month_end", "--batch-no", "202407"]);
    house.does(&["batch", "open", "--group", "daily", "--batch-no", "20240731"]);
    house.does(&["batch", "open", "--group", "release", "--batch-no", "202407"]);
    house.ended("month_end", "202407");
    house.ended("daily", "20240731");
    let browser = Browser::open(lang).await;
    browser.likes(theme).await;
    browser.client.goto(&house.address).await.expect("the console");
    browser.find("[data-test=\"login\"]").await;
    browser.must_be_accessible("log-in").await;
    browser.log_in(&house.address, NAME, PASSWORD).await;
    let links = "return [...document.querySelectorAll('nav[data-test=\"nav\"] a')].map(a => a.getAttribute('href'))";
    let links = browser.until("the navigation", links).await;
    let links: Vec<String> = links
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .map(str::to_owned)
        .collect();
    assert!(links.len() >= 8, "{links:?}");
    let mut faults = Vec::new();
    let pages = links.iter().map(String::as_str).filter(|l| l.starts_with("#/")).chain(MORE);
    for page in pages {
        if page != "#/" {
            browser.go(page).await;
        }
        let whose = format!("{page} ({lang}, {theme:?})");
        faults.extend(browser.barriers().await.into_iter().map(|b| format!("{whose}: {b}")));
        faults.extend(browser.complaints().await.into_iter().map(|c| format!("{whose}: {c}")));
        let wide = "return document.documentElement.scrollWidth > document.documentElement.clientWidth + 1";
        if browser.ask(wide).await == true {
            faults.push(format!("{whose}: is wider than the window"));
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    browser.close().await;
}

#[tokio::test]
async fn all_pages_in_english_and_light() {
    walk("en-GB", Theme::Light).await;
}

#[tokio::test]
async fn all_pages_in_chinese_and_dark() {
    walk("zh-CN", Theme::Dark).await;
}
