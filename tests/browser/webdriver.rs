//! chromedriver and the one browser that it drives; both end with the value.

use fantoccini::wd::WebDriverCompatibleCommand;
use fantoccini::{Client, ClientBuilder};
use http::Method;
use hyper_util::client::legacy::connect::HttpConnector;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::MetadataExt as _;
use std::process::{Child, Command, Stdio};
use tempfile::TempDir;
use tokio::sync::{Mutex, MutexGuard};
use url::{ParseError, Url};

/// A browser and half a dozen processes of it at a time are enough for a machine that tests.
static ONE_AT_A_TIME: Mutex<()> = Mutex::const_new(());

/// A command of chromedriver's own.
#[derive(Debug)]
struct Own {
    path: &'static str,
    body: Value,
}

impl WebDriverCompatibleCommand for Own {
    fn endpoint(&self, base: &Url, session: Option<&str>) -> Result<Url, ParseError> {
        base.join(&format!("session/{}/{}", session.unwrap_or_default(), self.path))
    }

    fn method_and_body(&self, _: &Url) -> (Method, Option<String>) {
        (Method::POST, Some(self.body.to_string()))
    }
}

/// How a reader likes pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Theme {
    Light,
    Dark,
}

/// A browser without a window, with a profile of its own.
pub(crate) struct Browser {
    /// Tells it what to do.
    pub(crate) client: Client,
    driver: Child,
    profile: TempDir,
    _turn: MutexGuard<'static, ()>,
}

fn installed(names: &[&str], what: &str) -> String {
    let paths = std::env::var_os("PATH").unwrap_or_default();
    let found = names.iter().find_map(|name| {
        std::env::split_paths(&paths).map(|dir| dir.join(name)).find(|file| file.is_file())
    });
    match found {
        Some(file) => file.to_string_lossy().into_owned(),
        None => panic!("{what} is missing; run scripts/test-browser.sh, or install it"),
    }
}

impl Browser {
    /// Starts one, for a reader of this language (`en-GB`, `zh-CN`).
    pub(crate) async fn open(lang: &str) -> Self {
        let turn = ONE_AT_A_TIME.lock().await;
        let profile = tempfile::tempdir().expect("folder");
        let binary = installed(&["chromium", "chromium-browser", "google-chrome"], "Chromium");
        let driver = installed(&["chromedriver"], "chromedriver");
        let mut driver = Command::new(driver)
            .arg("--port=0")
            .env("LANGUAGE", lang)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("chromedriver runs");
        let mut lines = BufReader::new(driver.stdout.take().expect("stdout")).lines();
        let port = lines.find_map(|line| {
            let line = line.expect("text");
            let (_, port) = line.split_once("started successfully on port ")?;
            port.trim_end_matches('.').parse::<u16>().ok()
        });
        let port = port.expect("chromedriver says its port");
        let mut args = vec![
            "--headless=new".to_owned(),
            format!("--user-data-dir={}", profile.path().display()),
            format!("--lang={lang}"),
            format!("--accept-lang={lang}"),
            "--window-size=1400,900".to_owned(),
            "--no-first-run".to_owned(),
            "--disable-dev-shm-usage".to_owned(),
            "--disable-extensions".to_owned(),
            "--disable-background-networking".to_owned(),
            "--disable-component-update".to_owned(),
        ];
        // Chromium's sandbox refuses to work for root.
        if std::fs::metadata("/proc/self").is_ok_and(|me| me.uid() == 0) {
            args.push("--no-sandbox".to_owned());
        }
        let wishes = json!({
            "goog:chromeOptions": {
                "binary": binary, "args": args,
                "prefs": { "intl.accept_languages": lang, "intl.selected_languages": lang },
            },
            "goog:loggingPrefs": { "browser": "ALL" },
            // The usual 30 s are too short for axe while the machine compiles.
            "timeouts": { "script": 150_000 },
        });
        let Value::Object(wishes) = wishes else { unreachable!("an object was written") };
        let mut builder = ClientBuilder::new(HttpConnector::new());
        let client =
            builder.capabilities(wishes).connect(&format!("http://127.0.0.1:{port}")).await;
        let client = match client {
            Ok(client) => client,
            Err(error) => {
                let _gone = driver.kill();
                panic!("Chromium does not start: {error}");
            }
        };
        Self { client, driver, profile, _turn: turn }
    }

    /// Lets pages see a reader who likes this theme.
    pub(crate) async fn likes(&self, theme: Theme) {
        let value = match theme {
            Theme::Light => "light",
            Theme::Dark => "dark",
        };
        let params = json!({ "features": [{ "name": "prefers-color-scheme", "value": value }] });
        let body = json!({ "cmd": "Emulation.setEmulatedMedia", "params": params });
        let own = Own { path: "goog/cdp/execute", body };
        self.client.issue_cmd(own).await.expect("the theme is set");
    }

    /// Lets pages be seen on a telephone, 390 pixels wide.
    pub(crate) async fn is_a_phone(&self) {
        let params = json!({ "width": 390, "height": 844, "deviceScaleFactor": 2, "mobile": true });
        let body = json!({ "cmd": "Emulation.setDeviceMetricsOverride", "params": params });
        let own = Own { path: "goog/cdp/execute", body };
        self.client.issue_cmd(own).await.expect("the size is set");
    }

    /// What the console of the page has said since it was asked last, and what the policy forbade: errors
    /// and warnings.
    pub(crate) async fn complaints(&self) -> Vec<String> {
        let own = Own { path: "se/log", body: json!({ "type": "browser" }) };
        let said = self.client.issue_cmd(own).await.expect("the console is read");
        let all = said.as_array().cloned().unwrap_or_default();
        let bad = all.iter().filter(|line| line["level"] == "SEVERE" || line["level"] == "WARNING");
        let words = bad.map(|line| line["message"].as_str().unwrap_or_default().to_owned());
        words.filter(|words| !is_expected(words)).collect()
    }

    /// Fails when the page complained about anything.
    pub(crate) async fn must_be_quiet(&self, whose: &str) {
        let complaints = self.complaints().await;
        assert!(complaints.is_empty(), "{whose}: the browser says:\n{}", complaints.join("\n"));
    }

    /// A picture of what it shows, for people who look at a failure.
    pub(crate) async fn picture(&self, name: &str) {
        let Ok(png) = self.client.screenshot().await else { return };
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("target/test-browser");
        let _made = std::fs::create_dir_all(&folder);
        let _kept = std::fs::write(folder.join(format!("{name}.png")), png);
    }

    /// Closes it in order.
    pub(crate) async fn close(self) {
        let _closed = self.client.clone().close().await;
    }
}

/// Who asks whether somebody is logged in is told 401 while nobody is; the browser calls that an error.
fn is_expected(words: &str) -> bool {
    words.contains("/api/v1/session ") && words.contains("401")
}

impl Drop for Browser {
    fn drop(&mut self) {
        // A driver that is killed leaves its browser alone in the world: all that name the profile go with it.
        end_all_with(&self.profile.path().to_string_lossy());
        let _gone = self.driver.kill();
        let _seen = self.driver.wait();
    }
}

/// Ends every process whose command line names this folder.
fn end_all_with(folder: &str) {
    for entry in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        if String::from_utf8_lossy(&line).contains(folder) {
            // It may have ended by itself meanwhile.
            let _gone = kill(Pid::from_raw(pid), Signal::SIGKILL);
        }
    }
}
