//! Decisions of people on APPROVAL jobs. The process that runs the job polls for the decision once
//! a second.

use crate::domain::access::Grants;
use crate::domain::access::approval::{ApprovalStatus, ApprovalVerdict, Approver, ApproverRefused};
use crate::domain::batch::Batch;
use crate::domain::id::JobCode;
use crate::domain::job::queue::QueueEntry;
use crate::domain::text::{MESSAGE_MAX, storable};
use crate::domain::time::Millis;
use crate::store::approval::Approval;
use crate::store::audit::{AuditEntry, Operator};
use crate::store::{Db, approval, audit};
use anyhow::{Context as _, Result};
use serde_json::json;

/// A decision about an APPROVAL job.
#[derive(Clone, Copy, Debug)]
pub struct DecisionRequest<'a> {
    pub batch: &'a Batch,
    /// The row of the job.
    pub row: &'a QueueEntry,
    pub verdict: ApprovalVerdict,
    /// A comment; required to reject.
    pub comment: Option<&'a str>,
    pub by: &'a Operator,
    /// The permissions of the account; `None` on the command line.
    pub grants: Option<&'a Grants>,
}

/// Why a decision is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecisionRefused {
    /// The job awaits no approval.
    #[error("job {0} waits for no approval; only a job of type APPROVAL that is RUNNING does")]
    NoApproval(JobCode),
    /// The person is not among the approvers.
    #[error(transparent)]
    Approver(#[from] ApproverRefused),
    /// A comment is required.
    #[error("comment: say why it is rejected; it is what others will read")]
    NoComment,
    /// The approval is no longer pending: it was decided, has expired or has ended.
    #[error("the approval of job {job} does not wait any more: {state}")]
    Over {
        job: JobCode,
        /// Its present state.
        state: String,
    },
}

/// Stores a decision, and returns the approval afterwards; `false` when the same person had made
/// the same decision already. The process that runs the job ends it within a second.
pub async fn decide(
    db: &Db,
    request: &DecisionRequest<'_>,
    now: Millis,
) -> Result<(Approval, bool)> {
    let job = &request.row.job_code;
    let comment = request.comment.map(str::trim).filter(|text| !text.is_empty());
    let comment = comment.map(|text| storable(text.as_bytes(), MESSAGE_MAX));
    let mut tx = db.begin().await?;
    let found = approval::latest(&mut tx, request.row.queue_id).await?;
    let there = found.ok_or_else(|| DecisionRefused::NoApproval(job.clone()))?;
    let starters = approval::starters(&mut tx, there.batch_id).await?;
    let approver = Approver { name: &request.by.actor, grants: request.grants };
    there.rule.check(&there.group, approver, &starters).map_err(DecisionRefused::from)?;
    if request.verdict == ApprovalVerdict::Reject && comment.is_none() {
        return Err(DecisionRefused::NoComment.into());
    }
    let (verdict, text) = (request.verdict, comment.as_deref());
    if !approval::decide(&mut tx, there.id, verdict, text, request.by, now).await? {
        let after = approval::get(&mut tx, there.id).await?;
        tx.rollback().await?;
        let is_same = after.decision.status == request.verdict.status()
            && after.decision.by.as_ref() == Some(&request.by.actor);
        return if is_same {
            Ok((after, false))
        } else {
            Err(decided_already(job, &after, now).into())
        };
    }
    let entry = AuditEntry {
        action: request.verdict.as_str().to_owned(),
        group: Some(there.group.clone()),
        batch: Some((there.batch_id, there.batch_no.clone())),
        job: Some(job.clone()),
        detail: Some(json!({
            "approval_id": there.id.0, "rule": there.rule, "started_by": starters,
        })),
        reason: comment,
    };
    audit::record(&mut tx, request.by, &[entry], now).await?;
    let after = approval::get(&mut tx, there.id).await?;
    tx.commit().await.context("write a decision")?;
    Ok((after, true))
}

fn decided_already(job: &JobCode, after: &Approval, now: Millis) -> DecisionRefused {
    let at = after.decision.at.map_or_else(String::new, |at| format!(" at {at}"));
    let state = match after.decision.status {
        ApprovalStatus::Waiting if after.deadline <= now => {
            format!("its time was over at {}", after.deadline)
        }
        ApprovalStatus::Waiting => "its job is being stopped".to_owned(),
        _ => format!("{}{at}", after.decision.describe()),
    };
    DecisionRefused::Over { job: job.clone(), state }
}

/// Whether an error is an answer to the decision, and not a database error.
pub fn refusal(error: &anyhow::Error) -> Option<&DecisionRefused> {
    error.downcast_ref()
}
