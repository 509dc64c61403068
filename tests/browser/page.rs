//! What a reader does with a page, and waits for.

use crate::browser::webdriver::Browser;
use fantoccini::Locator;
use fantoccini::actions::{InputSource as _, KeyAction, KeyActions};
use fantoccini::elements::Element;
use serde_json::Value;
use std::time::{Duration, Instant};

/// More than any page takes on a machine that is busy with other tests.
const PATIENCE: Duration = Duration::from_secs(30);
const LOOK: Duration = Duration::from_millis(50);

impl Browser {
    /// The element, once it is there.
    pub(crate) async fn find(&self, css: &str) -> Element {
        let wait = self.client.wait().at_most(PATIENCE).every(LOOK);
        match wait.for_element(Locator::Css(css)).await {
            Ok(element) => element,
            Err(error) => self.give_up(&format!("there is no {css}: {error}")).await,
        }
    }

    /// All elements that are there now.
    pub(crate) async fn all(&self, css: &str) -> Vec<Element> {
        self.client.find_all(Locator::Css(css)).await.expect("elements")
    }

    /// Clicks on it, once it is there and can be clicked on.
    pub(crate) async fn click(&self, css: &str) {
        let begun = Instant::now();
        loop {
            match self.find(css).await.click().await {
                Ok(()) => return,
                // Drawn anew at this very moment, or something is still above it.
                Err(_) if begun.elapsed() < PATIENCE => tokio::task::yield_now().await,
                Err(error) => self.give_up(&format!("cannot click on {css}: {error}")).await,
            }
        }
    }

    /// Types into a field, in place of what stands there.
    pub(crate) async fn fill(&self, css: &str, text: &str) {
        let field = self.find(css).await;
        field.clear().await.expect("a field");
        field.send_keys(text).await.expect("a field");
    }

    /// What a script of the test's own finds in the page.
    pub(crate) async fn ask(&self, script: &str) -> Value {
        match self.client.execute(script, Vec::new()).await {
            Ok(value) => value,
            Err(error) => {
                self.give_up(&format!("the page does not answer {script}: {error}")).await
            }
        }
    }

    /// Waits until a script finds something that is true, and gives it.
    pub(crate) async fn until(&self, what: &str, script: &str) -> Value {
        let begun = Instant::now();
        loop {
            let found = self.client.execute(script, Vec::new()).await.unwrap_or(Value::Null);
            if !matches!(found, Value::Null | Value::Bool(false)) && found != 0 && found != "" {
                return found;
            }
            if begun.elapsed() > PATIENCE {
                self.give_up(&format!("{what}: not within {} s", PATIENCE.as_secs())).await;
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    /// The page of this name, with its data.
    pub(crate) async fn arrives_at(&self, page: &str) {
        self.find(&format!("main[data-page=\"{page}\"][data-ready=\"true\"]")).await;
    }

    /// Any page, with its data.
    pub(crate) async fn is_ready(&self) {
        self.find("main[data-ready=\"true\"]").await;
    }

    /// Presses keys together and lets them go.
    pub(crate) async fn press(&self, keys: &[char]) {
        let mut actions = KeyActions::new("keys".to_owned());
        for value in keys {
            actions = actions.then(KeyAction::Down { value: *value });
        }
        for value in keys.iter().rev() {
            actions = actions.then(KeyAction::Up { value: *value });
        }
        self.client.perform_actions(actions).await.expect("keys");
    }

    /// Logs in at `address` and arrives at the dashboard.
    pub(crate) async fn log_in(&self, address: &str, name: &str, password: &str) {
        self.client.goto(address).await.expect("the console");
        self.fill("[data-test=\"login\"] [name=\"name\"]", name).await;
        self.fill("[data-test=\"login\"] [name=\"password\"]", password).await;
        self.click("[data-test=\"login\"] [type=\"submit\"]").await;
        self.arrives_at("dashboard").await;
    }

    /// Goes to a page of the console by its address behind the `#`.
    pub(crate) async fn go(&self, hash: &str) {
        // Whoever listens hears it before this test does, and is not ready any more if it is another page.
        let script = "const done = arguments[1]; \
                      addEventListener('hashchange', () => setTimeout(done), { once: true }); \
                      location.hash = arguments[0];";
        let went = self.client.execute_async(script, vec![Value::from(hash)]).await;
        went.expect("the page hears where it goes");
        self.is_ready().await;
    }

    async fn give_up(&self, why: &str) -> ! {
        let complaints = self.complaints().await;
        let script = "return [location.href, document.body.innerText.slice(0, 1500)].join('\\n')";
        let shown = self.client.execute(script, Vec::new()).await.unwrap_or_default();
        let shown = shown.as_str().unwrap_or_default().to_owned();
        self.picture("failure").await;
        panic!(
            "{why}\n(target/test-browser/failure.png)\n{}\nthe page: {shown}",
            complaints.join("\n")
        );
    }
}
