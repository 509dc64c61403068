//! Changes that need a second person: one asks on the command line, the other is shown what it would do and approves;
//! and what is done in the console waits in the same way.

use crate::browser::house::{House, NAME, PASSWORD};
use crate::browser::webdriver::{Browser, Theme};

const DEFINITION: &str = r#"
groups: { close: { name: 月结 Month-end close } }
defaults: { group: close }
jobs:
  DRAFT: { type: NOOP }
  POST: { type: NOOP, depends_on: [DRAFT] }
schedules:
  nightly: { group: close, cron: '0 2 * * *', batch_no: day(0), time_zone: Asia/Shanghai }
"#;

const SETTINGS: &str = "[four_eyes.close]\nactions = ['force', 'edit']\n";

const ROWS: &str = "return document.querySelectorAll('[data-test=\"change-requests\"] tbody [data-test=\"change-look\"]').length";

async fn look(browser: &Browser, name: &str) {
    browser.picture(name).await;
    assert_eq!(browser.barriers().await, Vec::<String>::new(), "{name}");
    let wide =
        "return document.documentElement.scrollWidth > document.documentElement.clientWidth + 1";
    assert_eq!(browser.ask(wide).await, false, "{name} is wider than the window");
    browser.must_be_quiet(name).await;
}

/// A token of somebody who forces and edits, beside who looks at the console.
fn token_of_ann(house: &House) -> String {
    let add =
        ["user", "add", "ann", "--grant", "operator+force@close", "--grant", "author+script@close"];
    house.does(&add);
    let mut args =
        vec!["user", "token", "ann", "--name", "test", "--days", "2", "--group", "close"];
    for permission in ["view", "run", "force", "edit", "script"] {
        args.extend(["--permission", permission]);
    }
    let said = house.does(&args);
    let token = said.split_whitespace().find(|word| word.starts_with("pcs_"));
    token.unwrap_or_else(|| panic!("no token in {said}")).to_owned()
}

async fn decided(lang: &str, theme: Theme) {
    let house = House::with_admin_and(DEFINITION, SETTINGS).await;
    let ann = token_of_ann(&house);
    let remove = ["schedule", "remove", "nightly", "--reason", "not needed any more"];
    let (code, said) = house.asks(&ann, &remove);
    assert_eq!(code, Some(4), "{said}");
    assert!(said.contains("nothing is done yet"), "{said}");
    assert!(said.contains("change-request show 1"), "{said}");
    let (code, said) = house.asks(&ann, &["change-request", "approve", "1"]);
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("another person"), "{said}");
    let browser = Browser::open(lang).await;
    browser.likes(theme).await;
    browser.client.goto(&house.address).await.expect("the console");
    browser.log_in(&house.address, NAME, PASSWORD).await;
    let count = "return document.querySelector('[data-test=\"nav-waiting\"]')?.textContent || null";
    assert_eq!(browser.until("the count", count).await, "1");
    // What is done in the console waits as well, and nobody is told that it is done.
    browser.go("#/schedules/nightly").await;
    browser.click("[data-test=\"schedule-more\"]").await;
    browser.click("[data-test=\"schedule-remove\"]").await;
    browser.fill("[data-test=\"reason\"]", "also this 还有这个").await;
    browser.click("[data-test=\"confirm-yes\"]").await;
    let toast = "return document.body.innerText.includes('nightly') && !document.querySelector('dialog[open]') || null";
    browser.until("it waits", toast).await;
    browser.go("#/approvals").await;
    browser.until("both wait", &format!("{ROWS} === 2 || null")).await;
    look(&browser, &format!("changes-{lang}")).await;
    let first = "[data-test=\"change-requests\"] tbody tr:last-child";
    browser.click(&format!("{first} [data-test=\"change-look\"]")).await;
    let effect =
        "return document.querySelector('[data-test=\"change-effect\"]')?.innerText || null";
    let effect = browser.until("what it changes", effect).await.to_string();
    assert!(effect.contains("nightly") || effect.contains("0 2 * * *"), "{effect}");
    look(&browser, &format!("change-{lang}")).await;
    browser.click("[data-test=\"change-dialog-approve\"]").await;
    browser.fill("[data-test=\"reason\"]", "agreed 同意").await;
    browser.click("[data-test=\"confirm-yes\"]").await;
    browser.until("one waits", &format!("{ROWS} === 1 || null")).await;
    assert!(!house.does(&["schedule", "list"]).contains("nightly"), "it is removed");
    // One's own can be withdrawn, and not approved.
    let own = "return document.querySelectorAll('[data-test=\"change-approve\"]').length";
    assert_eq!(browser.ask(own).await, 0);
    browser.click("[data-test=\"change-withdraw\"]").await;
    browser.click("[data-test=\"confirm-yes\"]").await;
    browser.until("none waits", &format!("{ROWS} === 0 || null")).await;
    browser.go("#/approvals?all=true").await;
    let text =
        "return document.querySelector('[data-test=\"change-requests\"]')?.innerText || null";
    let text = browser.until("past ones", text).await.to_string();
    for words in ["agreed 同意", "also this 还有这个", NAME] {
        assert!(text.contains(words), "{words}: {text}");
    }
    look(&browser, &format!("changes-past-{lang}")).await;
    browser.close().await;
}

#[tokio::test]
async fn four_eyes_in_english() {
    decided("en-GB", Theme::Light).await;
}

#[tokio::test]
async fn four_eyes_in_chinese() {
    decided("zh-CN", Theme::Dark).await;
}

/// The request of this number, as the tables have it.
fn request_of(house: &House, id: &str) -> serde_json::Value {
    let show = house.does(&["change-request", "show", id, "--json"]);
    serde_json::from_str(&show).unwrap_or_else(|e| panic!("{e}: {show}"))
}

/// How often a job was put on ice, by the audit log.
fn acts(house: &House) -> usize {
    let acts = house.does(&["audit", "--action", "ice", "--json"]);
    let acts: serde_json::Value = serde_json::from_str(&acts).expect("JSON");
    acts.as_array().expect("a list").len()
}

/// The real program, killed between the approval and the change, and between the change and the answer to it.
#[tokio::test]
async fn an_approved_change_is_carried_out_once_over_a_kill() {
    let mut house = House::with_admin_and(DEFINITION, SETTINGS).await;
    let ann = token_of_ann(&house);
    let add = ["user", "add", "bob", "--grant", "operator+force@close"];
    house.does(&add);
    let token =
        ["user", "token", "bob", "--name", "t", "--days", "2", "--permission", "view"].into_iter();
    let token: Vec<&str> = token.chain(["--permission", "force"]).collect();
    let said = house.does(&token);
    let bob = said.split_whitespace().find(|word| word.starts_with("pcs_")).expect("a token");
    for (id, place, job) in [
        ("1", "change_request.approved", "DRAFT"),
        ("2", "change_request.claimed", "POST"),
        ("3", "change_request.answered", "DRAFT"),
    ] {
        house.kill();
        house.serve_again(&format!("{place}=return(abort)"));
        let verb = if id == "3" { "no-exec" } else { "ice" };
        let ice = ["job", verb, job, "--every-batch", "--reason", "not this month"];
        let (code, said) = house.asks(&ann, &ice);
        assert_eq!(code, Some(4), "{said}");
        let before = acts(&house);
        let (code, said) = house.asks(bob, &["change-request", "approve", id]);
        assert_ne!(code, Some(0), "the process died: {said}");
        let status = request_of(&house, id)["status"].clone();
        let is_done = place == "change_request.answered";
        assert_eq!(status, if is_done { "DONE" } else { "APPROVED" }, "{place}");
        house.serve_again("");
        // One that was taken is left to its process for two minutes; it is not known whether that has died.
        if place == "change_request.claimed" {
            house.writes("UPDATE change_request SET claim_time = '2000-01-01 00:00:00.000'").await;
        }
        for _ in 0..300 {
            if request_of(&house, id)["status"] == "DONE" {
                break;
            }
            tokio::time::sleep(std::time::Duration::from_millis(100)).await;
        }
        assert_eq!(request_of(&house, id)["status"], "DONE", "{place}");
        assert_eq!(acts(&house), before + usize::from(id != "3"), "{place}");
    }
}
