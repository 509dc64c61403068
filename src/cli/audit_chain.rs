//! `audit verify` and `audit export`: the hash chain over the audit log.

use crate::app::{App, EmptyDatabase};
use crate::cli::audit::moment;
use crate::cli::{BadInput, Global, VerbResult, out};
use crate::domain::access::audit_chain::AuditHead;
use crate::domain::text::lang::Lang;
use crate::domain::time::Millis;
use crate::engine::operate::audit_chain::{self, ChainReport};
use crate::view::audit::ChainedActLine;
use anyhow::Result;
use clap::Args;
use serde_json::json;
use std::time::Duration;

/// Arguments of `audit verify`.
#[derive(Args)]
pub(super) struct VerifyArgs {
    /// A head that was kept elsewhere, NUMBER:HASH; the chain must still hold it. May be given several times
    #[arg(long = "head", value_name = "HEAD")]
    heads: Vec<String>,
}

/// Arguments of `audit export`.
#[derive(Args)]
pub(super) struct AuditExportArgs {
    /// Acts at this time or later: 2026-07-01, 2026-07-01T08:00 (UTC), or with an offset
    #[arg(long, value_name = "TIME")]
    since: Option<String>,
    /// Acts after this number of the chain: `seal_no` of the head that the export before ended with
    #[arg(long, value_name = "SEAL_NO", default_value_t = 0)]
    after: i64,
    /// Go on with acts as they come, until this program is ended; a head follows each lot of them
    #[arg(short, long)]
    follow: bool,
}

/// Poll interval for new records.
const FOLLOW: Duration = Duration::from_secs(2);

pub(super) async fn verify(global: &Global, args: &VerifyArgs) -> Result<VerbResult> {
    let read = |text: &String| {
        AuditHead::parse(text).ok_or_else(|| {
            BadInput(format!(
                "--head {text}: write NUMBER:HASH, as audit verify and audit export print it"
            ))
        })
    };
    let heads: Vec<AuditHead> = args.heads.iter().map(read).collect::<Result<_, _>>()?;
    let app = global.open_app(EmptyDatabase::Refuse).await?;
    let report = audit_chain::verify(&app.db, &heads).await?;
    app.close().await;
    print_report(global, &report)?;
    Ok(if report.first_break.is_some() { VerbResult::Broken } else { VerbResult::Well })
}

fn print_report(global: &Global, report: &ChainReport) -> Result<()> {
    let ChainReport { verified, removed, waiting, head, first_break } = report;
    if global.json {
        let fault = first_break.as_ref().map(ToString::to_string);
        return out::print_json(&json!({
            "holds": fault.is_none(), "break": fault, "verified": verified, "removed_by_retention": removed,
            "not_sealed_yet": waiting, "head": { "seal_no": head.seal_no, "hash": head.hash.to_string() },
        }));
    }
    let counts = match global.language() {
        Lang::En => format!(
            "{verified} acts verified, {removed} removed by retention, {waiting} not sealed yet"
        ),
        Lang::Zh => {
            format!(
                "已校验 {verified} 条操作记录，按保留策略删除 {removed} 条，尚未入链 {waiting} 条"
            )
        }
    };
    match first_break {
        None => out::print_line(&match global.language() {
            Lang::En => format!("the chain holds: {counts}\nhead {head}"),
            Lang::Zh => format!("哈希链完整：{counts}\n链头 {head}"),
        }),
        Some(fault) => out::print_line(&match global.language() {
            Lang::En => format!("the chain is BROKEN: {fault}\nup to there: {counts}\nhead {head}"),
            Lang::Zh => format!("哈希链已断裂：{fault}\n此前：{counts}\n链头 {head}"),
        }),
    }
    Ok(())
}

pub(super) async fn export(global: &Global, args: &AuditExportArgs) -> Result<VerbResult> {
    let since = args.since.as_deref().map(moment).transpose()?;
    let app = global.open_app(EmptyDatabase::Refuse).await?;
    let (mut after, mut is_first) = (args.after, true);
    loop {
        // Where no process serves, no other process does it.
        audit_chain::seal_acts(&app.db, &app.clock).await?;
        let last = write_acts(&app, after, since).await?;
        let Some(last) = last else { break };
        let is_new = last.seal_no > after;
        after = last.seal_no.max(after);
        if (is_first || is_new) && !out::print_text(&head_line(last)?) {
            break;
        }
        is_first = false;
        if !args.follow {
            break;
        }
        tokio::time::sleep(FOLLOW).await;
    }
    app.close().await;
    Ok(VerbResult::Well)
}

/// Writes all records after a seal. Returns the head of what was written; `None` when the reader
/// has closed the output.
async fn write_acts(app: &App, after: i64, since: Option<Millis>) -> Result<Option<AuditHead>> {
    let Some(mut head) = audit_chain::head_at(&app.db, after).await? else {
        let message = "the chain does not reach so far; was its end cut off (audit verify --head), or an earlier state restored?";
        return Err(BadInput(format!("--after {after}: {message}")).into());
    };
    loop {
        let page = audit_chain::acts_after(&app.db, head.seal_no, since).await?;
        let lines = page
            .acts
            .iter()
            .map(|act| Ok(serde_json::to_string(&ChainedActLine::from(act))? + "\n"));
        if !out::print_text(&lines.collect::<Result<String>>()?) {
            return Ok(None);
        }
        match page.last {
            Some(last) => head = last,
            None => return Ok(Some(head)),
        }
    }
}

fn head_line(head: AuditHead) -> Result<String> {
    let line = json!({"audit_head": { "seal_no": head.seal_no, "hash": head.hash.to_string() }});
    Ok(serde_json::to_string(&line)? + "\n")
}
