//! Without a mouse: log in, find the batch, look at a job, go back.

use crate::browser::house::{House, NAME, PASSWORD};
use crate::browser::webdriver::Browser;
use fantoccini::key::Key;

const DEFINITION: &str = r#"
groups: { g: { name: G } }
defaults: { group: g, type: SCRIPT, interpreter: sh }
jobs: { A: { script: 'echo first' }, B: { depends_on: [A], script: 'exit 1' } }
"#;

impl Browser {
    /// Types a text where the focus is.
    pub(crate) async fn types(&self, text: &str) {
        for c in text.chars() {
            self.press(&[c]).await;
        }
    }

    /// Presses Tab until what has the focus fits; every stop must be seen to have it. Of fields for days the
    /// browser marks the part that has it.
    pub(crate) async fn tab_to(&self, css: &str) {
        let fits = format!(
            "let at = document.activeElement; if (!at?.matches) return false; \
             while (at.shadowRoot?.activeElement) at = at.shadowRoot.activeElement; \
             const style = getComputedStyle(at.closest('.cm-editor.cm-focused') ?? at); \
             window.unseen = at !== document.body && style.outlineStyle === 'none' && style.boxShadow === 'none' \
                 && !at.matches('h1, main, [type=date], [type=datetime-local]') ? at.outerHTML.slice(0, 200) : ''; \
             return at.matches({})",
            serde_json::Value::from(css)
        );
        for _ in 0..200 {
            let mut unseen = serde_json::Value::Null;
            // The editor of texts marks that it has the focus a moment later.
            for _ in 0..20 {
                if self.ask(&fits).await == true {
                    return;
                }
                unseen = self.ask("return window.unseen").await;
                if unseen == "" {
                    break;
                }
                tokio::time::sleep(std::time::Duration::from_millis(50)).await;
            }
            assert_eq!(unseen, "", "the focus cannot be seen");
            self.press(&[Key::Tab.into()]).await;
        }
        self.picture("keyboard").await;
        panic!("Tab does not lead to {css}");
    }
}

#[tokio::test]
async fn everything_on_the_way_to_a_log_can_be_done_with_keys() {
    let house = House::with_admin(DEFINITION).await;
    house.does(&["batch", "open", "--group", "g", "--batch-no", "202407"]);
    house.ended("g", "202407");
    let browser = Browser::open("en-GB").await;
    browser.client.goto(&house.address).await.expect("the console");
    browser.find("[data-test=\"login\"]").await;
    browser.tab_to("[name=\"name\"]").await;
    browser.types(NAME).await;
    browser.tab_to("[name=\"password\"]").await;
    browser.types(PASSWORD).await;
    browser.press(&[Key::Enter.into()]).await;
    browser.arrives_at("dashboard").await;

    // The first stop of a page leads past the navigation.
    browser.client.refresh().await.expect("again");
    browser.arrives_at("dashboard").await;
    browser.ask("document.activeElement.blur()").await;
    browser.press(&[Key::Tab.into()]).await;
    assert_eq!(
        browser.ask("return document.activeElement.matches('[data-test=\"skip\"]')").await,
        true
    );
    browser.tab_to("nav a[href=\"#/batches\"]").await;
    browser.press(&[Key::Enter.into()]).await;
    browser.arrives_at("batches").await;
    browser.tab_to("a[href*=\"#/batches/g/202407\"]").await;
    browser.press(&[Key::Enter.into()]).await;
    browser.arrives_at("batch").await;
    let in_page = "return document.querySelector('main').contains(document.activeElement)";
    browser.until("the focus comes into the page", in_page).await;

    browser.click("[data-test=\"tab-list\"]").await;
    browser.find("[data-test=\"job\"][data-job=\"B\"]").await;
    browser.ask("document.querySelector('[data-test=\"job\"][data-job=\"B\"]').focus()").await;
    browser
        .tab_to("[data-test=\"job\"][data-job=\"B\"], [data-test=\"job\"][data-job=\"B\"] *")
        .await;
    browser.press(&[Key::Enter.into()]).await;
    browser.find("[data-test=\"job-panel\"][data-job=\"B\"]").await;
    let inside = "return document.querySelector('[data-test=\"job-panel\"]').contains(document.activeElement)";
    browser.until("the focus is in the panel", inside).await;
    browser.press(&[Key::Escape.into()]).await;
    let gone = "return !document.querySelector('[data-test=\"job-panel\"]')?.checkVisibility()";
    browser.until("Escape closes the panel", gone).await;
    browser.must_be_quiet("the keyboard").await;
    browser.close().await;
}
