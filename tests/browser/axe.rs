//! axe-core: what keeps people with other eyes and hands from using a page.

use crate::browser::webdriver::Browser;
use serde_json::Value;

const SCRIPT: &str = "target/test-axe/node_modules/axe-core/axe.min.js";

impl Browser {
    /// Fails when axe finds something serious on the page as it is now.
    pub(crate) async fn must_be_accessible(&self, whose: &str) {
        let serious = self.barriers().await;
        if !serious.is_empty() {
            self.picture("axe").await;
        }
        assert!(serious.is_empty(), "{whose}: axe finds\n{}", serious.join("\n"));
    }

    /// What axe finds that is serious, on the page as it is now.
    pub(crate) async fn barriers(&self) -> Vec<String> {
        let file = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(SCRIPT);
        let axe = std::fs::read_to_string(&file);
        let axe = axe.unwrap_or_else(|e| panic!("{SCRIPT}: {e}; run scripts/test-browser.sh"));
        self.client.execute(&axe, Vec::new()).await.expect("axe is loaded");
        let run = "const done = arguments[arguments.length - 1]; \
                   axe.run(document, { resultTypes: ['violations'] }) \
                      .then((r) => done(r.violations), (e) => done([{ id: String(e), impact: 'critical', nodes: [] }]));";
        let found = self.client.execute_async(run, Vec::new()).await.expect("axe answers");
        let found = found.as_array().cloned().unwrap_or_default();
        found
            .iter()
            .filter(|f| f["impact"] == "serious" || f["impact"] == "critical")
            .map(|f| {
                let nodes = f["nodes"].as_array().into_iter().flatten().take(4);
                let nodes = nodes.map(|n| {
                    let why = n["failureSummary"].as_str().unwrap_or_default().replace('\n', " ");
                    format!("\n    {} — {why}", n["html"].as_str().unwrap_or_default())
                });
                format!("  {} ({}){}", word(f, "id"), word(f, "impact"), nodes.collect::<String>())
            })
            .collect()
    }
}

fn word<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_default()
}
