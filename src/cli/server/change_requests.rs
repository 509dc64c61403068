//! `change-request` through a server, and the output when a change waits for a second person.

use crate::cli::change_request::{print_list, verdict_line};
use crate::cli::server::{ServerVerb, USUAL};
use crate::cli::{VerbResult, out};
use crate::domain::text::lang::Lang;
use anyhow::Result;
use serde_json::{Value, json};

/// A change that was not made: it waits for a second person.
#[derive(Debug)]
pub(super) struct ChangeWaits(pub(super) Value);

impl std::fmt::Display for ChangeWaits {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let request = &self.0["change_request"];
        write!(f, "change {} waits for a second person", request["change_request_id"])
    }
}

impl std::error::Error for ChangeWaits {}

impl ChangeWaits {
    /// Prints that nothing is done yet, and the hint.
    pub(super) fn print(&self, lang: Lang, is_json: bool) -> Result<VerbResult> {
        if is_json {
            out::print_json(&self.0)?;
            return Ok(VerbResult::Waits);
        }
        let request = &self.0["change_request"];
        let id = &request["change_request_id"];
        let until = out::local_text(request["expires_at"].as_str().unwrap_or_default());
        let summary = request["summary"].as_str().unwrap_or_default();
        out::print_line(&match lang {
            Lang::En => format!(
                "nothing is done yet: change {id} ({summary}) waits until {until} for a second person; \
                 procession change-request show {id}"
            ),
            Lang::Zh => format!(
                "尚未执行：变更 {id}（{summary}）等待第二人审批，截止 {until};\
                 procession change-request show {id}"
            ),
        });
        Ok(VerbResult::Waits)
    }
}

impl ServerVerb<'_> {
    /// `change-request list | show | approve | reject | break-glass`.
    pub(super) async fn change_request(&self, verb: &str) -> Result<VerbResult> {
        if verb == "list" {
            let most = self.arguments.number("limit").unwrap_or(USUAL);
            let query: &[(&str, String)] =
                if self.arguments.has_flag("all") { &[("all", "true".to_owned())] } else { &[] };
            let items = self.server.list_items(&["change-requests"], query, most).await?;
            match self.global.json {
                true => out::print_json(&json!(items))?,
                false => print_list(&items, self.language()),
            }
            return Ok(VerbResult::Well);
        }
        let id = self.arguments.required_value("id");
        if verb == "show" {
            return self
                .print_document(&self.server.get(&["change-requests", &id], &[]).await?, &[]);
        }
        let body = json!({"comment": self.arguments.value("comment")});
        let after = self.server.post_json(&["change-requests", &id, verb], &body).await?;
        match self.global.json {
            true => out::print_json(&after)?,
            false => out::print_line(&verdict_line(&after, self.language())),
        }
        match after["status"].as_str() {
            Some("FAILED") => Ok(VerbResult::BatchFailed),
            _ => Ok(VerbResult::Well),
        }
    }
}
