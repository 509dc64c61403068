//! Actions on batches and their jobs: preview, confirmation, and exactly the previewed change.

use crate::cli::server::client::ServerRefusal;
use crate::cli::server::{ServerVerb, shown};
use crate::cli::{BadInput, VerbResult, act, out};
use anyhow::Result;
use serde_json::{Value, json};

/// The columns of the changes.
const LINES: &[shown::TableColumn] = &[
    ("job_code", "JOB", "作业"),
    ("from", "NOW", "现在"),
    ("then", "THEN", "之后"),
    ("asked", "ASKED FOR", "操作指定"),
];

impl ServerVerb<'_> {
    /// `job hold | release | …`.
    pub(super) async fn act_on_jobs(&self, verb: &str) -> Result<VerbResult> {
        let arguments = self.arguments;
        if ["ice", "no-exec", "normal"].contains(&verb) {
            let words = arguments.values("words");
            if arguments.has_flag("every_batch") {
                let body = json!({"jobs": words, "mode": verb, "reason": arguments.value("reason"),
                    "dry_run": arguments.has_flag("dry_run")});
                return self.print_document(
                    &self.server.post_json(&["jobs", "run-modes"], &body).await?,
                    &[],
                );
            }
            let Some((no, jobs)) = words.split_first().filter(|(_, jobs)| !jobs.is_empty()) else {
                let message =
                    format!("job {verb}: name the batch and the jobs; or add --every-batch");
                return Err(BadInput(message).into());
            };
            let (group, no) = self.which_with_jobs(no.clone(), jobs).await?;
            return self.two_steps(&group, &no, json!({"action": verb, "jobs": jobs})).await;
        }
        let (no, jobs) = (arguments.required_value("batch_no"), arguments.values("jobs"));
        let (group, no) = self.which_with_jobs(no, &jobs).await?;
        let wish = json!({"action": verb, "jobs": jobs, "options": self.action_options()});
        self.two_steps(&group, &no, wish).await
    }

    /// `batch rerun`.
    pub(super) async fn rerun_batch(&self, group: &str, no: &str) -> Result<VerbResult> {
        let wish = json!({"action": "rerun", "jobs": self.arguments.values("jobs"), "options": self.action_options()});
        self.two_steps(group, no, wish).await
    }

    fn action_options(&self) -> Value {
        let arguments = self.arguments;
        let mut far = json!({});
        for flag in [
            "ignore_dependencies",
            "downstream",
            "upstream",
            "from_failure",
            "latest",
            "rerun_unknown",
        ] {
            if arguments.has_flag(flag) {
                far[flag] = json!(true);
            }
        }
        if let Some(to) = arguments.value("to").and_then(|to| to.parse::<i64>().ok()) {
            far["to"] = json!(to);
        }
        far
    }

    /// Shows exactly what would change, asks where more changes than was named, and does it.
    async fn two_steps(&self, group: &str, no: &str, mut wish: Value) -> Result<VerbResult> {
        let path = ["groups", group, "batches", no, "actions"];
        let ahead = self.server.post_json(&path, &wish).await?;
        for change in ahead["definition_changes"].as_array().into_iter().flatten() {
            out::eprint_line(change.as_str().unwrap_or_default());
        }
        if !self.global.json {
            shown::table(
                ahead["lines"].as_array().map_or(&[], Vec::as_slice),
                LINES,
                self.language(),
            );
        }
        if self.arguments.has_flag("dry_run") {
            if self.global.json {
                out::print_json(&ahead)?;
            } else {
                out::eprint_line(
                    self.language().select("nothing was written (--dry-run)", "未写入(--dry-run)"),
                );
            }
            return Ok(VerbResult::Well);
        }
        let named = wish["jobs"].as_array().map_or(0, Vec::len) as u64;
        let more = ahead["count"].as_u64().unwrap_or_default() > named;
        if more
            && !self.arguments.has_flag("yes")
            && !self.global.json
            && !act::agreed(self.language())?
        {
            return Ok(VerbResult::Well);
        }
        wish["seen"] = ahead["seen"].clone();
        wish["reason"] = json!(self.arguments.value("reason"));
        let done = match self.server.post_json(&path, &wish).await {
            Ok(done) => done,
            Err(error) => match error.downcast_ref::<ServerRefusal>() {
                Some(refused) if refused.kind() == "moved" => {
                    let message = "the batch went on meanwhile, and other rows would change than those in the \
                                list; nothing was changed. Run the command again";
                    return Err(BadInput(message.to_owned()).into());
                }
                Some(_) | None => return Err(error),
            },
        };
        if self.global.json {
            out::print_json(&done)?;
        } else {
            out::eprint_line(done["message"].as_str().unwrap_or_default());
        }
        Ok(VerbResult::Well)
    }

    /// `batch open`.
    pub(super) async fn open_batch(&self) -> Result<VerbResult> {
        let arguments = self.arguments;
        if let Some(file) = arguments.value("file") {
            let message = format!(
                "batch open with a file is not for a server: store it first (procession apply {file}), \
                 and leave it out here"
            );
            return Err(BadInput(message).into());
        }
        let mut body = match arguments.value("order") {
            Some(order) => {
                let order: Value = serde_json::from_str(&order)
                    .map_err(|error| BadInput(format!("--order: {error}")))?;
                json!({"batch_no": order["batchNo"], "type": order["type"], "group": order["group"],
                    "business_date": order["businessDate"],
                    "free_text": order.get("freeText").cloned().unwrap_or(json!(false)),
                    "params": order.get("params").cloned().unwrap_or(json!({}))})
            }
            None => json!({
                "batch_no": arguments.value("batch_no"), "type": arguments.value("batch_type"),
                "group": arguments.value("group"), "business_date": arguments.value("business_date"),
                "free_text": arguments.has_flag("free_text"),
                "params": crate::cli::order::pairs(&arguments.values("params"))?,
            }),
        };
        let reason =
            arguments.value("remark").unwrap_or_else(|| "opened from the command line".to_owned());
        body["reason"] = json!(reason);
        let opened = self.server.post_json(&["batches"], &body).await?;
        let batches = opened["batches"].as_array().cloned().unwrap_or_default();
        if self.global.json {
            let mut documents = Vec::new();
            for batch in &batches {
                let word = |name: &str| batch[name].as_str().unwrap_or_default();
                let path = ["groups", word("group"), "batches", word("batch_no")];
                documents.push(self.server.get(&path, &[]).await?);
            }
            out::print_json(&json!(documents))?;
        } else if !arguments.has_flag("quiet") {
            shown::table(&batches, OPENED, self.language());
            out::eprint_line(opened["message"].as_str().unwrap_or_default());
        }
        Ok(VerbResult::Well)
    }

    /// `batch kill`.
    pub(super) async fn kill_batch(&self, group: &str, no: &str) -> Result<VerbResult> {
        let path = ["groups", group, "batches", no, "kill"];
        let body = json!({"reason": self.arguments.value("reason")});
        let asked = self.server.post_json(&path, &body).await?;
        out::eprint_line(&match self.language() {
            crate::domain::text::lang::Lang::En => format!("batch {no} is being stopped"),
            crate::domain::text::lang::Lang::Zh => format!("正在停止批次 {no}"),
        });
        if self.arguments.has_flag("no_wait") {
            return if self.global.json {
                self.print_document(&asked, &[])
            } else {
                Ok(VerbResult::Well)
            };
        }
        self.wait_for_batch(group, no).await.map(|_| VerbResult::Well)
    }
}

/// The columns of opened batches.
const OPENED: &[shown::TableColumn] =
    &[("batch_no", "BATCH", "批次"), ("group", "GROUP", "作业组"), ("jobs", "JOBS", "作业")];
