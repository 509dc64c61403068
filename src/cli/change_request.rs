//! `change-request`: changes that wait for a second person. With direct access to the database a
//! decision is that of the user of this machine; a serving process carries out what is approved.

use crate::app::{EmptyDatabase, whoami};
use crate::cli::{BadInput, Global, VerbResult, batch, out};
use crate::domain::permission::four_eyes::{
    ChangeDecider, ChangeDecisionRefused, ChangeRequestId, ChangeVerdict,
};
use crate::domain::text::lang::Lang;
use crate::engine::operate::change_requests::{ChangeDecisionRequest, NoChangeRequest, decide};
use crate::engine::operate::operator_actions::operator_here;
use crate::store::change_request::{self, ChangeFilter};
use crate::view::change_request::{ChangeReader, ChangeRequestDetail, ChangeRequestView};
use anyhow::{Context as _, Result};
use clap::{Args, Subcommand};
use serde_json::{Value, json};

/// Verbs of `change-request`.
#[derive(Subcommand)]
pub(super) enum ChangeRequestVerb {
    /// Changes that wait for a second person, and with --all past ones
    List(ChangeRequestListArgs),
    /// A change with what it would do
    Show(IdArgs),
    /// Approve a change that somebody else asked for: it is carried out as its author
    Approve(DecideArgs),
    /// Reject a change; one's own is withdrawn
    Reject(DecideArgs),
    /// Carry a change out without a second person, where the settings allow it; everybody concerned is told
    BreakGlass(DecideArgs),
}

/// Which changes are listed.
#[derive(Args)]
pub(super) struct ChangeRequestListArgs {
    /// Past ones too, and not only those that wait
    #[arg(long)]
    all: bool,
    /// How many
    #[arg(long, default_value_t = 50)]
    limit: u32,
}

/// A change.
#[derive(Args)]
pub(super) struct IdArgs {
    /// Its number
    id: i64,
}

/// A change, and what is said about it.
#[derive(Args)]
pub(super) struct DecideArgs {
    /// Its number
    id: i64,
    /// A remark, stored with the decision; needed to reject and to break the glass
    #[arg(long)]
    comment: Option<String>,
}

pub(super) async fn change_request(
    global: &Global,
    verb: &ChangeRequestVerb,
) -> Result<VerbResult> {
    match verb {
        ChangeRequestVerb::List(args) => list_requests(global, args).await,
        ChangeRequestVerb::Show(args) => show_request(global, args).await,
        ChangeRequestVerb::Approve(args) => {
            decide_request(global, args, ChangeVerdict::Approve).await
        }
        ChangeRequestVerb::Reject(args) => {
            decide_request(global, args, ChangeVerdict::Reject).await
        }
        ChangeRequestVerb::BreakGlass(args) => {
            decide_request(global, args, ChangeVerdict::BreakGlass).await
        }
    }
}

async fn list_requests(global: &Global, args: &ChangeRequestListArgs) -> Result<VerbResult> {
    let app = global.open_app(EmptyDatabase::Refuse).await?;
    let (rules, now) = (app.config.four_eyes()?, batch::server_now(&app).await?);
    let name = whoami();
    let decider = ChangeDecider { account: None, name: &name };
    let reader = ChangeReader { decider, rules: &rules, now };
    let filter = if args.all { ChangeFilter::All } else { ChangeFilter::Waiting };
    let found =
        change_request::list_page(&mut app.db.begin_read().await?, filter, None, args.limit)
            .await?;
    let items = found.iter().map(|request| {
        serde_json::to_value(ChangeRequestView::from_request(request, reader))
            .context("make a document")
    });
    let items: Vec<Value> = items.collect::<Result<_>>()?;
    match global.json {
        true => out::print_json(&json!(items))?,
        false => print_list(&items, global.language()),
    }
    Ok(VerbResult::Well)
}

/// Change requests as a table.
pub(super) fn print_list(items: &[Value], lang: Lang) {
    if items.is_empty() {
        out::eprint_line(lang.select("no change requests", "没有变更申请"));
        return;
    }
    let head = match lang {
        Lang::En => ["ID", "STATUS", "KIND", "CHANGE", "AUTHOR", "UNTIL", "DECIDED BY", "REASON"],
        Lang::Zh => ["编号", "状态", "类型", "变更", "申请人", "截止时间", "决定人", "原因"],
    };
    let keys = ["status", "action", "summary", "author", "expires_at", "decided_by", "reason"];
    let row = |item: &Value| {
        let id = item["change_request_id"].to_string();
        let text = |key: &&str| out::local_text(item[*key].as_str().unwrap_or_default());
        [id].into_iter().chain(keys.iter().map(text)).collect()
    };
    out::print_line(&out::table(&head, items.iter().map(row).collect()));
}

async fn show_request(global: &Global, args: &IdArgs) -> Result<VerbResult> {
    let app = global.open_app(EmptyDatabase::Refuse).await?;
    let (rules, now) = (app.config.four_eyes()?, batch::server_now(&app).await?);
    let name = whoami();
    let decider = ChangeDecider { account: None, name: &name };
    let reader = ChangeReader { decider, rules: &rules, now };
    let mut tx = app.db.begin_read().await?;
    let id = ChangeRequestId(args.id);
    let found = change_request::find_request(&mut tx, id).await?;
    let request = found.ok_or_else(|| BadInput(NoChangeRequest(id).to_string()))?;
    let content = change_request::content(&mut tx, id).await?;
    let document =
        serde_json::to_value(ChangeRequestDetail::from_request(&request, content, reader))?;
    if global.json {
        out::print_json(&document)?;
        return Ok(VerbResult::Well);
    }
    for (key, value) in document.as_object().into_iter().flatten() {
        match value {
            Value::Null => {}
            Value::String(text) => {
                out::print_line(&format!("{key}: {}", out::local_text(text)));
            }
            other => out::print_line(&format!("{key}: {}", serde_json::to_string_pretty(other)?)),
        }
    }
    Ok(VerbResult::Well)
}

async fn decide_request(
    global: &Global,
    args: &DecideArgs,
    verdict: ChangeVerdict,
) -> Result<VerbResult> {
    let app = global.open_app(EmptyDatabase::Refuse).await?;
    let (rules, now) = (app.config.four_eyes()?, batch::server_now(&app).await?);
    let (name, id) = (whoami(), ChangeRequestId(args.id));
    let by = operator_here(&name);
    let comment = args.comment.as_deref();
    let request = ChangeDecisionRequest { id, verdict, comment, by: &by, account: None };
    let after = decide(&app.db, &rules, &request, now).await.map_err(|error| {
        let refused = error.is::<ChangeDecisionRefused>() || error.is::<NoChangeRequest>();
        if refused { BadInput(error.to_string()).into() } else { error }
    })?;
    let decider = ChangeDecider { account: None, name: &name };
    let reader = ChangeReader { decider, rules: &rules, now };
    let document = serde_json::to_value(ChangeRequestView::from_request(&after, reader))?;
    match global.json {
        true => out::print_json(&document)?,
        false => out::print_line(&verdict_line(&document, global.language())),
    }
    Ok(VerbResult::Well)
}

/// The state of a change, as a sentence.
pub(super) fn verdict_line(request: &Value, lang: Lang) -> String {
    let id = &request["change_request_id"];
    let failure = request["failure"].as_str().unwrap_or_default();
    let (en, zh) = match request["status"].as_str().unwrap_or_default() {
        "APPROVED" => (
            "is approved; a process that serves carries it out within seconds".to_owned(),
            "已批准，服务进程将在数秒内执行".to_owned(),
        ),
        "DONE" => ("is approved and carried out".to_owned(), "已批准并执行".to_owned()),
        "FAILED" => (
            format!("is approved and could not be carried out: {failure}"),
            format!("已批准但无法执行：{failure}"),
        ),
        "REJECTED" => ("is rejected".to_owned(), "已拒绝".to_owned()),
        "WITHDRAWN" => ("is withdrawn".to_owned(), "已撤回".to_owned()),
        other => (format!("is {other}"), format!("状态为 {other}")),
    };
    match lang {
        Lang::En => format!("change {id} {en}"),
        Lang::Zh => format!("变更 {id} {zh}"),
    }
}
