//! `approve`, `reject`, `approvals`: decisions about pending APPROVAL jobs.

use crate::app::{App, EmptyDatabase, whoami};
use crate::cli::{BadInput, BatchRef, Global, VerbResult, batch, out};
use crate::domain::access::approval::ApprovalVerdict;
use crate::domain::id::GroupCode;
use crate::domain::job::job_key::find_named;
use crate::domain::text::lang::Lang;
use crate::engine::operate::approvals::{DecisionRequest, decide, refusal};
use crate::engine::operate::operator_actions::operator_here;
use crate::store;
use crate::store::approval::{Approval, ApprovalFilter};
use crate::view::approval::ApprovalView;
use anyhow::{Context as _, Result};
use clap::Args;
use serde_json::json;

/// A job of a batch, and a remark.
#[derive(Args)]
pub(super) struct DecisionArgs {
    #[command(flatten)]
    pub(super) batch: BatchRef,
    /// The job that waits
    job: String,
    /// A remark, stored with the decision; needed to reject
    #[arg(long)]
    comment: Option<String>,
}

/// Which approvals are listed.
#[derive(Args)]
pub(super) struct ApprovalsArgs {
    /// Past ones too, and not only those that wait
    #[arg(long)]
    all: bool,
    /// Only of this group
    #[arg(long)]
    group: Option<String>,
    /// How many
    #[arg(long, default_value_t = 50)]
    limit: u32,
}

/// Approves or rejects.
pub(super) async fn decide_job(
    global: &Global,
    args: &DecisionArgs,
    verdict: ApprovalVerdict,
) -> Result<VerbResult> {
    let app = global.open_app(EmptyDatabase::Refuse).await?;
    let words = [args.job.clone()];
    let found = args.batch.find_with_jobs(&app, &words).await?;
    let row = {
        let mut tx = app.db.begin_read().await?;
        let snapshot = store::batch::snapshot(&mut tx, found.batch_id).await?;
        let code = &find_named(&snapshot.jobs, &args.job)?.code;
        store::queue::of_job(&mut tx, found.batch_id, code).await?.context("the row of a job")?
    };
    let by = operator_here(&whoami());
    let request = DecisionRequest {
        batch: &found,
        row: &row,
        verdict,
        comment: args.comment.as_deref(),
        by: &by,
        grants: None,
    };
    let now = batch::server_now(&app).await?;
    let decided = decide(&app.db, &request, now).await;
    let (approval, written) = decided.map_err(|error| match refusal(&error) {
        Some(refusal) => BadInput(refusal.to_string()).into(),
        None => error,
    })?;
    if global.json {
        let approval = shown(&app, &approval, global.language()).await?;
        out::print_json(&json!({"written": written, "approval": approval}))?;
        return Ok(VerbResult::Well);
    }
    let (job, no) = (&approval.job, &approval.batch_no);
    out::print_line(&match (global.language(), verdict) {
        (Lang::En, _) => format!("job {job} of batch {no} is {}", verdict.past_tense()),
        (Lang::Zh, ApprovalVerdict::Approve) => format!("批次 {no} 的作业 {job} 已批准"),
        (Lang::Zh, ApprovalVerdict::Reject) => format!("批次 {no} 的作业 {job} 已拒绝"),
    });
    Ok(VerbResult::Well)
}

/// Lists approvals.
pub(super) async fn approvals(global: &Global, args: &ApprovalsArgs) -> Result<VerbResult> {
    let app = global.open_app(EmptyDatabase::Refuse).await?;
    let group = args.group.as_deref().map(GroupCode::parse).transpose()?;
    let filter = ApprovalFilter { is_waiting: !args.all, group, batch_no: None };
    let found = {
        let mut tx = app.db.begin_read().await?;
        store::approval::list_page(&mut tx, &filter, None, None, args.limit).await?
    };
    let mut items = Vec::new();
    for one in &found {
        items.push(shown(&app, one, global.language()).await?);
    }
    if global.json {
        out::print_json(&json!(items))?;
        return Ok(VerbResult::Well);
    }
    if items.is_empty() {
        out::eprint_line(global.language().select("no approvals", "没有审批"));
        return Ok(VerbResult::Well);
    }
    let head = match global.language() {
        Lang::En => ["ID", "BATCH", "GROUP", "JOB", "STATUS", "APPROVERS", "UNTIL", "DECIDED BY"],
        Lang::Zh => ["编号", "批次", "作业组", "作业", "状态", "审批人", "截止时间", "决定人"],
    };
    let rows = items.into_iter().map(|item| {
        vec![
            item.approval_id.to_string(),
            item.batch_no,
            item.group,
            item.job_code,
            item.status,
            item.approvers,
            out::local_text(&item.deadline),
            item.decided_by.unwrap_or_default(),
        ]
    });
    out::print_line(&out::table(&head, rows.collect()));
    Ok(VerbResult::Well)
}

async fn shown(app: &App, approval: &Approval, lang: Lang) -> Result<ApprovalView> {
    let mut tx = app.db.begin_read().await?;
    ApprovalView::read_view(&mut tx, approval, &whoami(), None, lang).await
}
