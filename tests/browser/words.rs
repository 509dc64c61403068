//! Chinese: for who comes with a Chinese browser, and for who says so; nothing is left in English or in boxes.

use crate::browser::house::{House, NAME, PASSWORD};
use crate::browser::webdriver::Browser;

const DEFINITION: &str = "groups: { daily: { name: 日终 } }\n\
                          jobs: { EOD: { group: daily, name: 日终汇总, type: NOOP } }\n";

#[tokio::test]
async fn a_chinese_reader_reads_chinese_and_may_change_to_english() {
    let house = House::with_admin(DEFINITION).await;
    house.does(&["batch", "open", "--group", "daily", "--batch-no", "20240731"]);
    house.ended("daily", "20240731");
    let browser = Browser::open("zh-CN").await;
    browser.log_in(&house.address, NAME, PASSWORD).await;
    let lang = "return document.documentElement.lang";
    assert_eq!(browser.ask(lang).await.as_str().map(|l| &l[..2]), Some("zh"));
    let han = "return [...document.querySelectorAll('nav[data-test=\"nav\"] a')]\
               .map(a => (a.textContent || a.getAttribute('aria-label')).trim())\
               .filter(w => w && !/\\p{Script=Han}/u.test(w))";
    assert_eq!(browser.ask(han).await, serde_json::json!([]), "links without a Chinese word");
    for page in [
        "#/batches",
        "#/batches/daily/20240731",
        "#/jobs",
        "#/schedules",
        "#/audit",
        "#/runs",
        "#/inbox",
        "#/insights",
        "#/insights?view=jobs",
        "#/groups/daily/trend",
        "#/wall",
    ] {
        browser.go(page).await;
        let heading =
            browser.ask("return document.querySelector('main h1')?.textContent ?? ''").await;
        let buttons = "return [...document.querySelectorAll('main button')].map(b => b.textContent.trim())\
                       .filter(w => /^[A-Z][a-z]+( [a-z]+)+$/.test(w))";
        assert_eq!(browser.ask(buttons).await, serde_json::json!([]), "{page}: English buttons");
        assert_ne!(heading, "", "{page}");
        // Keys of words that have no words.
        let keys = "return (document.querySelector('main').innerText.match(/\\b[a-z]+\\.[a-z_]+\\b/g) ?? [])\
                    .filter(k => !/\\.(db|yaml|com|example|sh)$/.test(k))";
        assert_eq!(browser.ask(keys).await, serde_json::json!([]), "{page}: keys without words");
    }
    browser.must_be_quiet("Chinese").await;
    browser.picture("chinese").await;
    browser.close().await;
}

#[test]
fn every_word_is_there_in_both_languages() {
    let check = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/node/console_words.mjs");
    let said = std::process::Command::new("node").arg(check).output();
    let said = said.expect("node runs; scripts/test-node.sh says what is missing");
    let words = [said.stdout, said.stderr].map(|b| String::from_utf8_lossy(&b).into_owned());
    assert!(said.status.success(), "{}", words.concat());
}
