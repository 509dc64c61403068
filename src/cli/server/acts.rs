//! What is done to batches and their jobs: shown, asked, done as it was shown.

use crate::cli::server::client::Refused;
use crate::cli::server::{ServerVerb, shown};
use crate::cli::{BadInput, VerbResult, act, out};
use anyhow::Result;
use serde_json::{Value, json};

/// What changes.
const LINES: &[shown::Column] = &[
    ("job_code", "JOB", "作业"),
    ("from", "NOW", "现在"),
    ("then", "THEN", "之后"),
    ("asked", "ASKED FOR", "操作指定"),
];

impl ServerVerb<'_> {
    /// `job hold | release | …`.
    pub(super) async fn act(&self, verb: &str) -> Result<VerbResult> {
        let said = self.said;
        if ["ice", "no-exec", "normal"].contains(&verb) {
            let words = said.all("words");
            if said.is("every_batch") {
                let body = json!({"jobs": words, "mode": verb, "reason": said.one("reason"),
                    "dry_run": said.is("dry_run")});
                return self.show(&self.server.post(&["jobs", "run-modes"], &body).await?, &[]);
            }
            let Some((no, jobs)) = words.split_first().filter(|(_, jobs)| !jobs.is_empty()) else {
                let said = format!("job {verb}: name the batch and the jobs; or add --every-batch");
                return Err(BadInput(said).into());
            };
            let (group, no) = self.which_with_jobs(no.clone(), jobs).await?;
            return self.two_steps((&group, &no), json!({"action": verb, "jobs": jobs})).await;
        }
        let (no, jobs) = (said.must("batch_no"), said.all("jobs"));
        let (group, no) = self.which_with_jobs(no, &jobs).await?;
        let wish = json!({"action": verb, "jobs": jobs, "options": self.far()});
        self.two_steps((&group, &no), wish).await
    }

    /// `batch rerun`.
    pub(super) async fn rerun_batch(&self, batch: (&str, &str)) -> Result<VerbResult> {
        let wish = json!({"action": "rerun", "jobs": self.said.all("jobs"), "options": self.far()});
        self.two_steps(batch, wish).await
    }

    fn far(&self) -> Value {
        let said = self.said;
        let mut far = json!({});
        for flag in [
            "ignore_dependencies",
            "downstream",
            "upstream",
            "from_failure",
            "latest",
            "rerun_unknown",
        ] {
            if said.is(flag) {
                far[flag] = json!(true);
            }
        }
        if let Some(to) = said.one("to").and_then(|to| to.parse::<i64>().ok()) {
            far["to"] = json!(to);
        }
        far
    }

    /// Shows exactly what would change, asks where more changes than was named, and does it.
    async fn two_steps(&self, (group, no): (&str, &str), mut wish: Value) -> Result<VerbResult> {
        let path = ["groups", group, "batches", no, "actions"];
        let ahead = self.server.post(&path, &wish).await?;
        for change in ahead["definition_changes"].as_array().into_iter().flatten() {
            out::note(change.as_str().unwrap_or_default());
        }
        if !self.global.json {
            shown::table(ahead["lines"].as_array().map_or(&[], Vec::as_slice), LINES, self.lang());
        }
        if self.said.is("dry_run") {
            if self.global.json {
                out::json(&ahead)?;
            } else {
                out::note(self.lang().pick("nothing was written (--dry-run)", "未写入(--dry-run)"));
            }
            return Ok(VerbResult::Well);
        }
        let named = wish["jobs"].as_array().map_or(0, Vec::len) as u64;
        let more = ahead["count"].as_u64().unwrap_or_default() > named;
        if more && !self.said.is("yes") && !self.global.json && !act::agreed(self.lang())? {
            return Ok(VerbResult::Well);
        }
        wish["seen"] = ahead["seen"].clone();
        wish["reason"] = json!(self.said.one("reason"));
        let done = match self.server.post(&path, &wish).await {
            Ok(done) => done,
            Err(error) => match error.downcast_ref::<Refused>() {
                Some(refused) if refused.kind() == "moved" => {
                    let said = "the batch went on meanwhile, and other rows would change than those in the \
                                list; nothing was changed. Run the command again";
                    return Err(BadInput(said.to_owned()).into());
                }
                Some(_) | None => return Err(error),
            },
        };
        if self.global.json {
            out::json(&done)?;
        } else {
            out::note(done["said"].as_str().unwrap_or_default());
        }
        Ok(VerbResult::Well)
    }

    /// `batch open`.
    pub(super) async fn open(&self) -> Result<VerbResult> {
        let said = self.said;
        if let Some(file) = said.one("file") {
            let said = format!(
                "batch open with a file is not for a server: store it first (procession apply {file}), \
                 and leave it out here"
            );
            return Err(BadInput(said).into());
        }
        let mut body = match said.one("order") {
            Some(order) => {
                let order: Value = serde_json::from_str(&order)
                    .map_err(|error| BadInput(format!("--order: {error}")))?;
                json!({"batch_no": order["batchNo"], "type": order["type"], "group": order["group"],
                    "business_date": order["businessDate"],
                    "free_text": order.get("freeText").cloned().unwrap_or(json!(false)),
                    "params": order.get("params").cloned().unwrap_or(json!({}))})
            }
            None => json!({
                "batch_no": said.one("batch_no"), "type": said.one("batch_type"),
                "group": said.one("group"), "business_date": said.one("business_date"),
                "free_text": said.is("free_text"),
                "params": crate::cli::order::pairs(&said.all("params"))?,
            }),
        };
        let reason =
            said.one("remark").unwrap_or_else(|| "opened from the command line".to_owned());
        body["reason"] = json!(reason);
        let opened = self.server.post(&["batches"], &body).await?;
        let batches = opened["batches"].as_array().cloned().unwrap_or_default();
        if self.global.json {
            let mut documents = Vec::new();
            for batch in &batches {
                let word = |name: &str| batch[name].as_str().unwrap_or_default();
                let path = ["groups", word("group"), "batches", word("batch_no")];
                documents.push(self.server.get(&path, &[]).await?);
            }
            out::json(&json!(documents))?;
        } else if !said.is("quiet") {
            shown::table(&batches, OPENED, self.lang());
            out::note(opened["said"].as_str().unwrap_or_default());
        }
        Ok(VerbResult::Well)
    }

    /// `batch kill`.
    pub(super) async fn kill(&self, (group, no): (&str, &str)) -> Result<VerbResult> {
        let path = ["groups", group, "batches", no, "kill"];
        let body = json!({"reason": self.said.one("reason")});
        let asked = self.server.post(&path, &body).await?;
        out::note(&match self.lang() {
            crate::domain::text::lang::Lang::En => format!("batch {no} is being stopped"),
            crate::domain::text::lang::Lang::Zh => format!("正在停止批次 {no}"),
        });
        if self.said.is("no_wait") {
            return if self.global.json { self.show(&asked, &[]) } else { Ok(VerbResult::Well) };
        }
        self.wait((group, no)).await.map(|_| VerbResult::Well)
    }
}

/// Batches that were opened.
const OPENED: &[shown::Column] =
    &[("batch_no", "BATCH", "批次"), ("group", "GROUP", "作业组"), ("jobs", "JOBS", "作业")];
