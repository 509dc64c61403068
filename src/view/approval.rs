//! Approvals of jobs for display.

use crate::domain::access::Grants;
use crate::domain::access::approval::{ApprovalStatus, Approver};
use crate::domain::text::lang::Lang;
use crate::store::Tx;
use crate::store::approval::{Approval, starters};
use anyhow::Result;
use schemars::JsonSchema;
use serde::Serialize;

/// An approval that a job requested.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ApprovalView {
    /// The number of the approval.
    pub approval_id: i64,
    /// The group of the job.
    pub group: String,
    /// The batch number.
    pub batch_no: String,
    /// The job code.
    pub job_code: String,
    /// `WAITING`, `APPROVED`, `REJECTED`, `EXPIRED` or `WITHDRAWN`.
    pub status: String,
    /// The question to the approvers.
    pub question: Option<String>,
    /// Who may decide, as text.
    pub approvers: String,
    /// Whether those who started the batch may not decide.
    pub four_eyes: bool,
    /// Who started the batch; only while it is pending.
    pub started_by: Vec<String>,
    /// Whether the caller may decide now.
    pub may_decide: bool,
    /// Why the caller may not decide, while it is pending.
    pub refusal: Option<String>,
    /// When it was requested.
    pub asked_at: String,
    /// When it expires.
    pub deadline: String,
    /// Who decided.
    pub decided_by: Option<String>,
    /// The address or host of the decision.
    pub decided_from: Option<String>,
    /// The approver's comment.
    pub comment: Option<String>,
    /// When it was decided, expired or was withdrawn.
    pub ended_at: Option<String>,
}

impl ApprovalView {
    /// The document of an approval, as `approver` sees it.
    pub async fn read_view(
        tx: &mut Tx,
        approval: &Approval,
        approver: &str,
        grants: Option<&Grants>,
        lang: Lang,
    ) -> Result<Self> {
        let is_waiting = approval.decision.status == ApprovalStatus::Waiting;
        let started_by = match is_waiting {
            true => starters(tx, approval.batch_id).await?,
            false => Vec::new(),
        };
        let checked =
            approval.rule.check(&approval.group, Approver { name: approver, grants }, &started_by);
        Ok(Self {
            approval_id: approval.id.0,
            group: approval.group.to_string(),
            batch_no: approval.batch_no.to_string(),
            job_code: approval.job.to_string(),
            status: approval.decision.status.to_string(),
            question: approval.rule.question.clone(),
            approvers: approval.rule.describe(&approval.group, lang),
            four_eyes: approval.rule.four_eyes,
            may_decide: is_waiting && checked.is_ok(),
            refusal: checked.err().filter(|_| is_waiting).map(|refused| refused.to_string()),
            started_by,
            asked_at: approval.asked.to_string(),
            deadline: approval.deadline.to_string(),
            decided_by: approval.decision.by.clone(),
            decided_from: approval.decided_from.clone(),
            comment: approval.decision.comment.clone(),
            ended_at: approval.decision.at.map(|at| at.to_string()),
        })
    }
}
