//! The DAG editor: a month-end is built from nothing, by pointer in the picture and by keyboard in the list, and runs.

use crate::browser::house::{House, NAME, PASSWORD};
use crate::browser::webdriver::{Browser, Theme};
use fantoccini::actions::{InputSource as _, MOUSE_BUTTON_LEFT, MouseActions, PointerAction};
use fantoccini::key::Key;
use serde_json::Value;
use std::time::Duration;

/// A ledger with the procedures of a close, and a group that makes its tables.
const LEDGER: &str = r#"
sources:
  ledger:
    url: sqlite:ledger.db
    procedures:
      sp_period_open: "INSERT INTO period VALUES (:p_batch_no, 'OPEN')"
      sp_fx_load: "INSERT INTO rate VALUES (:p_batch_no, :p_currency, 7.1)"
      sp_sl_payable: "INSERT INTO posting SELECT :p_batch_no, 'AP', 100 * rate FROM rate WHERE batch_no = :p_batch_no"
      sp_sl_receivable: "INSERT INTO posting VALUES (:p_batch_no, 'AR', 200)"
      sp_depreciation: "INSERT INTO posting VALUES (:p_batch_no, 'FA', 50)"
      sp_post_gl: "INSERT INTO gl SELECT batch_no, SUM(amount) FROM posting WHERE batch_no = :p_batch_no GROUP BY 1"
      sp_trial_balance: "INSERT INTO tb SELECT batch_no, total FROM gl WHERE batch_no = :p_batch_no"
      sp_period_lock: "UPDATE period SET status = (SELECT total FROM tb WHERE batch_no = :p_batch_no) WHERE batch_no = :p_batch_no"
groups: { demo: { name: Demo tables } }
jobs:
  TABLES:
    group: demo
    type: SQL
    source: ledger
    sql: |
      CREATE TABLE period (batch_no TEXT PRIMARY KEY, status TEXT);
      CREATE TABLE rate (batch_no TEXT, currency TEXT, rate REAL);
      CREATE TABLE posting (batch_no TEXT, ledger TEXT, amount REAL);
      CREATE TABLE gl (batch_no TEXT, total REAL);
      CREATE TABLE tb (batch_no TEXT, total REAL);
"#;

/// Every job of the close with the jobs that it waits for.
const CLOSE: [(&str, &[&str]); 8] = [
    ("PERIOD_OPEN", &[]),
    ("FX_LOAD", &["PERIOD_OPEN"]),
    ("SL_PAYABLE", &["FX_LOAD"]),
    ("SL_RECEIVABLE", &["PERIOD_OPEN"]),
    ("DEPRECIATION", &["PERIOD_OPEN"]),
    ("POST_GL", &["DEPRECIATION", "SL_PAYABLE", "SL_RECEIVABLE"]),
    ("TRIAL_BALANCE", &["POST_GL"]),
    ("PERIOD_LOCK", &["TRIAL_BALANCE"]),
];

const TEXT: &str =
    "document.querySelector('.ed-text-host').shadowRoot.querySelector('.cm-content').innerText";

impl Browser {
    async fn opens_the_editor(&self, hash: &str) {
        self.go(hash).await;
        self.find("[data-test=\"ed-canvas\"]").await;
    }

    /// Waits until so many jobs and dependencies are counted.
    async fn counts(&self, words: &str) {
        let script = format!(
            "return document.querySelector('[data-test=\"ed-state\"]').textContent === '{words}'"
        );
        self.until(words, &script).await;
    }

    /// Adds a job from the catalogue of procedures.
    async fn adds(&self, routine: &str) {
        self.click("[data-test=\"ed-add-job\"]").await;
        self.fill("[data-test=\"ed-find\"]", routine).await;
        self.click(&format!("[data-test=\"ed-routine-{routine}\"]")).await;
        self.click("[data-test=\"ed-add-ok\"]").await;
        let gone = "return !document.querySelector('[data-test=\"ed-add\"]')";
        self.until("the dialog closes", gone).await;
    }

    /// Where a job's box is in the window, once it rests there. The picture is a canvas, so the page is asked for the
    /// place of the job that is chosen.
    async fn place_of(&self, job: &str) -> (f64, f64) {
        let choose = format!(
            "document.querySelector('[data-test=\"ed-job-{job}\"]').click(); window.lastPlace = ''; \
             document.querySelector('[data-test=\"ed-canvas\"]')\
             .scrollIntoView({{ block: 'nearest', behavior: 'instant' }})"
        );
        self.ask(&choose).await;
        let script = format!(
            "const stage = document.querySelector('[data-test=\"ed-canvas\"]'); \
             if (stage.dataset.placed !== '{job}') return false; \
             const [x, y] = stage.dataset.at.split(' ').map(Number); \
             const box = stage.getBoundingClientRect(); \
             const place = [Math.round(box.x + x), Math.round(box.y + y)]; \
             const rests = window.lastPlace === String(place); window.lastPlace = String(place); \
             const [vx, vy, scale] = stage.dataset.view.split(' ').map(Number); \
             (window.boxes ??= {{}})['{job}'] = [x / scale + vx, y / scale + vy]; \
             return rests && place"
        );
        point(&self.until(&format!("the place of {job}"), &script).await)
    }

    /// Where a job's box, whose place was asked for before, is now: choosing another may have moved the picture.
    async fn place_again(&self, job: &str) -> (f64, f64) {
        let script = format!(
            "const stage = document.querySelector('[data-test=\"ed-canvas\"]'); \
             const [vx, vy, scale] = stage.dataset.view.split(' ').map(Number); \
             const box = stage.getBoundingClientRect(); const [x, y] = window.boxes['{job}']; \
             return [Math.round(box.x + (x - vx) * scale), Math.round(box.y + (y - vy) * scale)]"
        );
        point(&self.ask(&script).await)
    }

    async fn pointer(&self, actions: Vec<PointerAction>) {
        let mut mouse = MouseActions::new("mouse".to_owned());
        for action in actions {
            mouse = mouse.then(action);
        }
        self.client.perform_actions(mouse).await.expect("the pointer");
    }

    async fn clicks_at(&self, at: (f64, f64), times: usize) {
        let mut actions = vec![move_to(at)];
        for _ in 0..times {
            actions.push(PointerAction::Down { button: MOUSE_BUTTON_LEFT });
            actions.push(PointerAction::Up { button: MOUSE_BUTTON_LEFT });
        }
        self.pointer(actions).await;
    }

    /// Draws a dependency from box to box.
    async fn draws(&self, parent: &str, job: &str) {
        self.place_of(job).await;
        let from = self.place_of(parent).await;
        let to = self.place_again(job).await;
        self.pointer(vec![
            move_to(from),
            PointerAction::Down { button: MOUSE_BUTTON_LEFT },
            move_to(((from.0 + to.0) / 2.0, (from.1 + to.1) / 2.0)),
            move_to(to),
            PointerAction::Up { button: MOUSE_BUTTON_LEFT },
        ])
        .await;
    }

    /// Types over a word of the YAML.
    async fn replaces_word(&self, word: &str, with: &str) {
        let script = format!(
            "const root = document.querySelector('.ed-text-host').shadowRoot; \
             const walk = document.createTreeWalker(root.querySelector('.cm-content'), NodeFilter.SHOW_TEXT); \
             for (let node; (node = walk.nextNode());) {{ \
               const at = node.data.indexOf('{word}'); if (at < 0) continue; \
               const range = document.createRange(); \
               range.setStart(node, at); range.setEnd(node, at + '{word}'.length); \
               const box = range.getBoundingClientRect(); \
               return [Math.round(box.x + box.width / 2), Math.round(box.y + box.height / 2)]; }} \
             return false"
        );
        let at = point(&self.until(word, &script).await);
        self.clicks_at(at, 2).await;
        self.types(with).await;
    }

    /// Checks, compares and stores, with pointer or keys as `press` says.
    async fn checks_and_stores(&self, press: impl AsyncFn(&str)) {
        press("[data-test=\"ed-check\"]").await;
        let said = self.find("[data-test=\"ed-ok\"]").await.text().await.expect("a text");
        assert_eq!(said, "No faults: 1 group, 8 jobs, 9 dependencies");
        press("[data-test=\"ed-preflight\"]").await;
        let asked = "return /Sources asked: 1; calls found: 0; faults: 0/.test(\
                     document.querySelector('[data-test=\"ed-result\"]').innerText)";
        self.until("the check against the source", asked).await;
        press("[data-test=\"ed-diff\"]").await;
        let changes = "return document.querySelector('[data-test=\"ed-result\"]').innerText.includes('PERIOD_LOCK')";
        self.until("the changes", changes).await;
        self.must_be_accessible("the editor with its changes").await;
        press("[data-test=\"ed-remark\"]").await;
        self.types("the close, built by hand").await;
        press("[data-test=\"ed-apply\"]").await;
        self.find("[data-test=\"ed-applied\"]").await;
    }
}

fn move_to((x, y): (f64, f64)) -> PointerAction {
    PointerAction::MoveTo { duration: Some(Duration::from_millis(20)), x, y }
}

fn point(value: &Value) -> (f64, f64) {
    (value[0].as_f64().expect("x"), value[1].as_f64().expect("y"))
}

/// What is stored is the close, and it runs.
async fn the_close_runs(house: &House, browser: &Browser) {
    let script = "const done = arguments[0]; \
                  fetch('/api/v1/definition/export?group=month_end&format=json').then(r => r.json()).then(done)";
    let stored = browser.client.execute_async(script, Vec::new()).await.expect("an export");
    let jobs = stored["jobs"].as_object().expect("jobs by code");
    assert_eq!(jobs.len(), CLOSE.len(), "{stored}");
    for (job, parents) in CLOSE {
        let mut waits: Vec<&str> = match &jobs[job]["depends_on"] {
            Value::Array(list) => list.iter().filter_map(Value::as_str).collect(),
            one => one.as_str().into_iter().collect(),
        };
        waits.sort_unstable();
        assert_eq!(waits, parents, "{job}: {stored}");
    }
    house.does(&["batch", "open", "--group", "month_end", "--batch-no", "202407"]);
    assert_eq!(house.ended("month_end", "202407")["status"], "SUCCESS");
}

async fn house_with_tables() -> House {
    let house = House::with_admin(LEDGER).await;
    house.does(&["batch", "open", "--group", "demo", "--batch-no", "1"]);
    assert_eq!(house.ended("demo", "1")["status"], "SUCCESS");
    house
}

async fn adds_and_connects_by_pointer(browser: &Browser) {
    // A new job waits for the chosen one, which is the one that was added last.
    browser.adds("sp_period_open").await;
    browser.counts("1 job, 0 dependencies").await;
    browser.adds("sp_fx_load").await;
    browser.counts("2 jobs, 1 dependency").await;
    browser.fill("[data-test=\"ed-param-p_currency\"]", "CNY").await;
    browser.adds("sp_sl_payable").await;
    let is_written = format!("return /name: p_currency, value: CNY/.test({TEXT})");
    browser.until("the parameter is in the YAML", &is_written).await;
    for routine in ["sp_sl_receivable", "sp_depreciation"] {
        browser.clicks_at(browser.place_of("PERIOD_OPEN").await, 1).await;
        browser.adds(routine).await;
    }
    for routine in ["sp_post_gl", "sp_trial_balance", "sp_period_lock"] {
        browser.adds(routine).await;
    }
    browser.counts("8 jobs, 7 dependencies").await;
    browser.picture("editor-2-jobs").await;
    browser.draws("SL_PAYABLE", "POST_GL").await;
    browser.counts("8 jobs, 8 dependencies").await;
    browser.draws("SL_RECEIVABLE", "POST_GL").await;
    browser.counts("8 jobs, 9 dependencies").await;
}

async fn deletes_an_arrow_by_pointer(browser: &Browser) {
    // An arrow is chosen and deleted, and comes back.
    browser.place_of("POST_GL").await;
    browser.place_of("TRIAL_BALANCE").await;
    let (a, b) = (browser.place_again("POST_GL").await, browser.place_again("TRIAL_BALANCE").await);
    browser.clicks_at(((a.0 + b.0) / 2.0, (a.1 + b.1) / 2.0), 1).await;
    browser.press(&[Key::Delete.into()]).await;
    browser.counts("8 jobs, 8 dependencies").await;
    browser.click("[data-test=\"ed-undo\"]").await;
    browser.counts("8 jobs, 9 dependencies").await;
    browser.click("[data-test=\"ed-redo\"]").await;
    browser.counts("8 jobs, 8 dependencies").await;
    browser.clicks_at(browser.place_of("POST_GL").await, 1).await;
    browser.press(&[Key::Control.into(), 'z']).await;
    browser.counts("8 jobs, 9 dependencies").await;
}

#[tokio::test]
async fn a_month_end_is_built_from_nothing_by_pointer() {
    let house = house_with_tables().await;
    let browser = Browser::open("en-GB").await;
    browser.log_in(&house.address, NAME, PASSWORD).await;
    browser.opens_the_editor("#/editor").await;
    browser.counts("0 jobs, 0 dependencies").await;
    browser.must_be_accessible("an empty editor").await;
    browser.picture("editor-1-empty").await;
    // The group has its name in the YAML, where it stands twice.
    browser.replaces_word("new_group", "month_end").await;
    browser.replaces_word("new_group", "month_end").await;
    browser.replaces_word("New", "Monthly").await;

    adds_and_connects_by_pointer(&browser).await;

    // A circle is refused; nothing is changed.
    browser.draws("PERIOD_LOCK", "PERIOD_OPEN").await;
    browser
        .counts("PERIOD_OPEN cannot wait for PERIOD_LOCK: PERIOD_LOCK waits for PERIOD_OPEN")
        .await;
    browser.picture("editor-3-refused").await;

    deletes_an_arrow_by_pointer(&browser).await;

    // A job that is written in the YAML is in the picture, and goes from the YAML when it is deleted there.
    browser.clicks_at(browser.place_of("PERIOD_OPEN").await, 1).await;
    browser.click("[data-test=\"ed-goto\"]").await;
    browser.press(&[Key::Home.into()]).await;
    browser.types("EXTRA: { type: NOOP, depends_on: [FX_LOAD] }").await;
    // What completes a word would take the Enter for itself.
    browser.press(&[Key::Escape.into()]).await;
    browser.press(&[Key::Enter.into()]).await;
    browser.counts("9 jobs, 10 dependencies").await;
    // The YAML was shown alone.
    browser.click("[data-test=\"ed-view-picture\"]").await;
    browser.clicks_at(browser.place_of("EXTRA").await, 1).await;
    browser.press(&[Key::Delete.into()]).await;
    browser.counts("8 jobs, 9 dependencies").await;
    let is_gone = format!("return !/EXTRA/.test({TEXT})");
    browser.until("EXTRA is gone from the YAML", &is_gone).await;

    // The schema completes a word.
    browser.replaces_word("PROC", "NO").await;
    let offered = "return [...document.querySelector('.ed-text-host').shadowRoot\
                   .querySelectorAll('.cm-tooltip-autocomplete li')].some(li => li.textContent === 'NOOP')";
    browser.until("NOOP is offered", offered).await;
    browser.picture("editor-4-completion").await;
    // For a moment a list that has just opened takes no keys, lest one that was meant for the text chooses.
    tokio::time::sleep(Duration::from_millis(200)).await;
    browser.press(&[Key::Enter.into()]).await;
    browser.until("NOOP is written", &format!("return /type: NOOP/.test({TEXT})")).await;
    browser.press(&[Key::Control.into(), 'z']).await;
    browser.press(&[Key::Control.into(), 'z']).await;
    browser.until("PROC is back", &format!("return !/type: NO/.test({TEXT})")).await;

    for theme in [Theme::Dark, Theme::Light] {
        browser.likes(theme).await;
        browser.must_be_accessible(&format!("the editor ({theme:?})")).await;
        browser.picture(&format!("editor-5-{theme:?}").to_lowercase()).await;
    }
    browser.checks_and_stores(async |css: &str| browser.click(css).await).await;
    browser.picture("editor-6-stored").await;
    browser.must_be_quiet("the editor").await;
    the_close_runs(&house, &browser).await;
    browser.close().await;
}

async fn connects_and_cuts_by_keyboard(browser: &Browser) {
    let press = async |css: &str| {
        browser.tab_to(css).await;
        browser.press(&[Key::Enter.into()]).await;
    };
    // Each waits for the job that was chosen when it was added: the one before.
    browser.counts("8 jobs, 7 dependencies").await;
    for (job, parents) in CLOSE {
        for parent in parents {
            let has_it =
                format!("return !!document.querySelector('[data-test=\"ed-cut-{parent}-{job}\"]')");
            if browser.ask(&has_it).await == true {
                continue;
            }
            browser.tab_to(&format!("[data-test=\"ed-connect-{job}\"]")).await;
            // Typed letters count as one word only while they come fast, which a busy machine does not promise.
            let is_chosen = format!("return document.activeElement.value === '{parent}'");
            for _ in 0..CLOSE.len() {
                if browser.ask(&is_chosen).await == true {
                    break;
                }
                browser.press(&[Key::Down.into()]).await;
            }
            press(&format!("[data-test=\"ed-link-{job}\"]")).await;
            browser.until(&format!("{job} waits for {parent}"), &has_it).await;
            let stays = format!("return document.activeElement.dataset.test === 'ed-link-{job}'");
            assert_eq!(browser.ask(&stays).await, true, "the focus stays in the row of {job}");
        }
    }
    browser.counts("8 jobs, 11 dependencies").await;
    for (parent, job) in [("SL_PAYABLE", "SL_RECEIVABLE"), ("SL_RECEIVABLE", "DEPRECIATION")] {
        press(&format!("[data-test=\"ed-cut-{parent}-{job}\"]")).await;
        let in_list = "return document.querySelector('[data-test=\"ed-list\"]').contains(document.activeElement)";
        assert_eq!(browser.ask(in_list).await, true, "the focus stays in the list");
    }
    browser.counts("8 jobs, 9 dependencies").await;
    press("[data-test=\"ed-delete-PERIOD_LOCK\"]").await;
    browser.counts("7 jobs, 8 dependencies").await;
    press("[data-test=\"ed-undo\"]").await;
    browser.counts("8 jobs, 9 dependencies").await;
    press("[data-test=\"ed-redo\"]").await;
    browser.counts("7 jobs, 8 dependencies").await;
    press("[data-test=\"ed-undo\"]").await;
    browser.counts("8 jobs, 9 dependencies").await;
}

/// In the list twin, with keys alone. The first job of each pair is added; the second is what it waits for.
#[tokio::test]
async fn a_month_end_is_built_from_nothing_by_keyboard() {
    let house = house_with_tables().await;
    let browser = Browser::open("en-GB").await;
    browser.log_in(&house.address, NAME, PASSWORD).await;
    browser.opens_the_editor("#/editor").await;
    let press = async |css: &str| {
        browser.tab_to(css).await;
        browser.press(&[Key::Enter.into()]).await;
    };
    press("[data-test=\"ed-view-list\"]").await;
    for (job, _) in CLOSE {
        press("[data-test=\"ed-add-job\"]").await;
        browser.find("[data-test=\"ed-add\"]").await;
        browser.tab_to("[data-test=\"ed-find\"]").await;
        let routine = format!("sp_{}", job.to_lowercase());
        browser.types(&routine).await;
        press(&format!("[data-test=\"ed-routine-{routine}\"]")).await;
        press("[data-test=\"ed-add-ok\"]").await;
        let gone = "return !document.querySelector('[data-test=\"ed-add\"]')";
        browser.until("the dialog closes", gone).await;
        if job == "FX_LOAD" {
            browser.tab_to("[data-test=\"ed-param-p_currency\"]").await;
            browser.types("CNY").await;
            browser.press(&[Key::Tab.into()]).await;
        }
    }
    connects_and_cuts_by_keyboard(&browser).await;
    for theme in [Theme::Dark, Theme::Light] {
        browser.likes(theme).await;
        browser.must_be_accessible(&format!("the list ({theme:?})")).await;
        browser.picture(&format!("editor-list-{theme:?}").to_lowercase()).await;
    }
    // The group gets its name in the text, which is reached by Tab like everything else.
    browser.tab_to(".cm-content").await;
    browser.press(&[Key::Control.into(), Key::Home.into()]).await;
    for _ in 0..2 {
        browser.press(&[Key::Control.into(), 'f']).await;
        browser.types("new_group").await;
        browser.press(&[Key::Enter.into()]).await;
        browser.press(&[Key::Escape.into()]).await;
        browser.types("month_end").await;
    }
    let named = format!("return !/new_group/.test({TEXT}) && /month_end/.test({TEXT})");
    browser.until("the group has its name", &named).await;
    browser
        .checks_and_stores(async |css: &str| {
            browser.tab_to(css).await;
            if !css.contains("remark") {
                browser.press(&[Key::Enter.into()]).await;
            }
        })
        .await;
    browser.must_be_quiet("the editor by keyboard").await;
    the_close_runs(&house, &browser).await;
    browser.close().await;
}

#[tokio::test]
async fn a_stored_group_is_edited_in_chinese_and_on_a_phone() {
    let house = House::with_admin(LEDGER).await;
    let browser = Browser::open("zh-CN").await;
    browser.likes(Theme::Dark).await;
    browser.is_a_phone().await;
    browser.log_in(&house.address, NAME, PASSWORD).await;
    browser.opens_the_editor("#/editor?group=demo").await;
    browser.counts("1 个作业，0 条依赖").await;
    let wide =
        "return document.documentElement.scrollWidth > document.documentElement.clientWidth + 1";
    for view in ["list", "text", "picture"] {
        browser.click(&format!("[data-test=\"ed-view-{view}\"]")).await;
        assert_eq!(browser.ask(wide).await, false, "{view}: the page is wider than the window");
        browser.must_be_accessible(&format!("{view} of the editor on a phone")).await;
        browser.picture(&format!("editor-phone-{view}")).await;
    }
    browser.click("[data-test=\"ed-add-job\"]").await;
    browser.find("[data-test=\"ed-routine-sp_post_gl\"]").await;
    browser.must_be_accessible("a new job on a phone").await;
    assert_eq!(browser.ask(wide).await, false, "the dialog is wider than the window");
    browser.picture("editor-phone-add").await;
    browser.click("[data-test=\"ed-routine-sp_post_gl\"]").await;
    browser.click("[data-test=\"ed-add-ok\"]").await;
    browser.counts("2 个作业，0 条依赖").await;
    browser.must_be_quiet("the editor on a phone").await;
    browser.close().await;
}
