//! A batch of 2,000 jobs and 6,000 dependencies as a picture: it appears, and it can be moved.

use crate::browser::house::{House, NAME, PASSWORD};
use crate::browser::webdriver::Browser;
use std::fmt::Write as _;
use std::time::Instant;

const LAYERS: usize = 40;
const WIDE: usize = 50;

/// Layers of jobs that do nothing; each but the first waits for three or four of the layer above it, 6,000 in all.
fn definition() -> String {
    let mut text = String::from(
        "groups: { big: { name: Big } }\ndefaults: { group: big, type: NOOP }\njobs:\n",
    );
    let mut left = 6_000 - 3 * WIDE * (LAYERS - 1);
    for layer in 0..LAYERS {
        for at in 0..WIDE {
            let code = |layer: usize, at: usize| format!("J{layer:02}_{:02}", at % WIDE);
            let _ = write!(text, "  {}: {{ name: Step {at} of layer {layer}", code(layer, at));
            if layer > 0 {
                let more = usize::from(left > 0);
                left -= more;
                let parents =
                    (0..3 + more).map(|n| code(layer - 1, at + n * 7)).collect::<Vec<_>>();
                let _ = write!(text, ", depends_on: [{}]", parents.join(", "));
            }
            text.push_str(" }\n");
        }
    }
    text
}

#[tokio::test]
async fn two_thousand_jobs_are_drawn_and_can_be_moved() {
    let house = House::with_admin(&definition()).await;
    house.does(&["batch", "open", "--group", "big", "--batch-no", "202407"]);
    house.ended("big", "202407");
    let browser = Browser::open("en-GB").await;
    browser.log_in(&house.address, NAME, PASSWORD).await;
    let begun = Instant::now();
    browser
        .ask("window.asked = performance.now(); location.hash = '#/batches/big/202407/dag'")
        .await;
    let drawn =
        "return document.querySelector('[data-test=\"dag\"][data-drawn=\"true\"]') !== null";
    browser.until("the picture", drawn).await;
    let seen = begun.elapsed();
    let counts = "return (d => [Number(d.nodes), Number(d.edges)])(document.querySelector('[data-test=\"dag\"]').dataset)";
    let counts = browser.ask(counts).await;
    assert_eq!(counts, serde_json::json!([2_000, 6_000]));
    let marked =
        "return performance.getEntriesByName('dag-first-picture').at(-1)?.startTime - window.asked";
    let marked = browser.ask(marked).await.as_f64();

    // The picture is dragged to and fro in every frame, and the frames are counted.
    let pan = r#"
        const done = arguments[arguments.length - 1];
        const el = document.querySelector('[data-test="dag"] canvas') ?? document.querySelector('[data-test="dag"]');
        const box = el.getBoundingClientRect();
        const x = box.left + box.width / 2, y = box.top + box.height / 2;
        const tell = (type, at, buttons) => el.dispatchEvent(new PointerEvent(type, {
            pointerId: 1, pointerType: 'mouse', isPrimary: true, bubbles: true, cancelable: true,
            button: type === 'pointermove' ? -1 : 0, buttons, clientX: x + at, clientY: y + at / 2 }));
        tell('pointerdown', 0, 1);
        let last = performance.now(), begun = last, n = 0, longest = 0;
        const step = () => {
            const now = performance.now();
            longest = Math.max(longest, now - last);
            last = now;
            n += 1;
            tell('pointermove', 200 * Math.sin(n / 12), 1);
            if (now - begun < 2000) requestAnimationFrame(step);
            else { tell('pointerup', 0, 0); done([n / (now - begun) * 1000, longest]); }
        };
        requestAnimationFrame(step);
    "#;
    let panned = browser.client.execute_async(pan, Vec::new()).await.expect("frames");
    println!(
        "2,000 jobs, 6,000 dependencies: first picture after {marked:.0?} ms (seen after {} ms); panning {:.0} frames/s, \
         the longest {:.0} ms",
        seen.as_millis(),
        panned[0].as_f64().unwrap_or_default(),
        panned[1].as_f64().unwrap_or_default()
    );
    assert!(panned[0].as_f64().is_some_and(|frames| frames > 1.0), "{panned}");
    browser.picture("dag-2000").await;
    browser.must_be_accessible("a DAG of 2,000").await;
    browser.must_be_quiet("a DAG of 2,000").await;
    browser.close().await;
}
