//! A second factor is enrolled in the profile, with a QR code, and asked for at the next log-in.

use crate::browser::house::{House, NAME, PASSWORD};
use crate::browser::webdriver::{Browser, Theme};
use totp_rs::{Builder, Secret};

const DEFINITION: &str =
    "groups: { close: {} }\ndefaults: { group: close }\njobs: { A: { type: NOOP } }\n";

async fn look(browser: &Browser, name: &str) {
    browser.picture(name).await;
    assert_eq!(browser.barriers().await, Vec::<String>::new(), "{name}");
    browser.must_be_quiet(name).await;
}

/// The code of a secret at this moment.
fn code_of(secret: &str) -> String {
    let secret = Secret::try_from_base32(secret).expect("base 32");
    let totp = Builder::new().with_secret(secret).build().expect("TOTP");
    let since = std::time::UNIX_EPOCH.elapsed().expect("after 1970");
    totp.generate(since.as_secs()).to_string()
}

async fn enrolled(lang: &str, theme: Theme) {
    let house = House::with_admin(DEFINITION).await;
    let browser = Browser::open(lang).await;
    browser.likes(theme).await;
    browser.client.goto(&house.address).await.expect("the console");
    browser.log_in(&house.address, NAME, PASSWORD).await;
    browser.go("#/profile").await;
    browser.click("[data-test=\"factor-enrol\"]").await;
    browser.fill("[data-test=\"factor-password\"]", PASSWORD).await;
    browser.click("[data-test=\"factor-begin\"]").await;
    let text = |test: &str| {
        format!("return document.querySelector('[data-test=\"{test}\"]')?.textContent || null")
    };
    let secret = browser.until("the secret", &text("factor-secret")).await;
    let drawn = "const qr = document.querySelector('img.qr'); return (qr?.naturalWidth > 100 && qr.offsetWidth > 100) || null";
    browser.until("the QR code is drawn", drawn).await;
    look(&browser, &format!("factor-enrol-{lang}")).await;
    let code = code_of(secret.as_str().expect("a text"));
    browser.fill("[data-test=\"factor-code\"]", &code).await;
    browser.click("[data-test=\"factor-confirm\"]").await;
    let codes = browser.until("the recovery codes", &text("recovery-codes")).await;
    let codes = codes.as_str().expect("a text").lines().map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(codes.len(), 10);
    look(&browser, &format!("factor-codes-{lang}")).await;
    browser.click("[data-test=\"factor-kept\"]").await;
    browser.find("[data-test=\"factor-disable\"]").await;
    browser.click("[data-test=\"me\"]").await;
    browser.click("[data-test=\"logout\"]").await;
    browser.fill("[data-test=\"login-name\"]", NAME).await;
    browser.fill("[data-test=\"login-password\"]", PASSWORD).await;
    browser.click("[data-test=\"login-go\"]").await;
    let asked =
        "return document.querySelector('[data-test=\"login-code\"]')?.checkVisibility() || null";
    browser.until("it is asked for", asked).await;
    browser.picture(&format!("factor-login-{lang}")).await;
    browser.fill("[data-test=\"login-code\"]", &codes[0]).await;
    browser.click("[data-test=\"login-go\"]").await;
    browser.find("[data-test=\"nav\"]").await;
    browser.close().await;
}

#[tokio::test]
async fn second_factor_in_english() {
    enrolled("en-GB", Theme::Light).await;
}

#[tokio::test]
async fn second_factor_in_chinese() {
    enrolled("zh-CN", Theme::Dark).await;
}
