//! The page about the API: every route that programs read of, in both languages, without a log-in.

use crate::browser::house::House;
use crate::browser::webdriver::{Browser, Theme};

#[tokio::test]
async fn the_page_about_the_api_shows_every_route() {
    let house = House::open("groups: { g: { name: G } }\njobs: { A: { group: g, type: NOOP } }\n");
    let browser = Browser::open("en-GB").await;
    for theme in [Theme::Light, Theme::Dark] {
        browser.likes(theme).await;
        browser.client.goto(&format!("{}/api", house.address)).await.expect("the page");
        browser.arrives_at("api").await;
        let all = "const done = arguments[0]; fetch('/api/v1/openapi.json').then(r => r.json()).then(d => done(\
                   Object.values(d.paths).reduce((n, p) => n + Object.keys(p).filter(v => \
                   ['get', 'post', 'put', 'patch', 'delete'].includes(v)).length, 0)))";
        let all = browser.client.execute_async(all, Vec::new()).await.expect("a number");
        let shown = "return document.querySelectorAll('[data-test=\"route\"]').length";
        assert_eq!(browser.ask(shown).await, all);
        // All of them open, so that axe sees everything.
        browser.ask("document.querySelectorAll('[data-test=\"route\"]').forEach(d => { d.open = true; })").await;
        let opened = "return [...document.querySelectorAll('[data-test=\"route\"]')].every(d => d.querySelector('.ap-body'))";
        browser.until("the routes are open", opened).await;
        browser.must_be_accessible(&format!("/api ({theme:?})")).await;
    }
    let missing = "return document.querySelector('main').innerText.includes('undefined')";
    assert_eq!(browser.ask(missing).await, false);
    browser.fill("[data-test=\"filter\"]", "batches").await;
    let fewer = "return [...document.querySelectorAll('[data-test=\"route\"] summary')].every(s => /batches/i.test(s.textContent))";
    browser.until("the filter", fewer).await;
    browser.click("[data-test=\"lang\"]").await;
    assert_eq!(browser.ask("return document.documentElement.lang").await, "zh");
    let heading = browser.ask("return document.querySelector('h1').textContent").await;
    assert_eq!(heading, "Procession 接口");
    browser.must_be_quiet("/api").await;
    browser.close().await;
}
