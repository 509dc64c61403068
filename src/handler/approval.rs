//! APPROVAL: waits until a person approves or rejects.
//!
//! It holds no slot and no connection while it waits. The request is a row, so a second start
//! continues it, and a decision made while no process runs counts.

use crate::domain::access::approval::{ApprovalDecision, ApprovalId, ApprovalRule, ApprovalStatus};
use crate::domain::job::outcome::{AttemptEnd, AttemptOutcome, JobOutputs, Stream};
use crate::domain::job::{AfterCrash, BodyPart, JobKind, Takes};
use crate::domain::text::lang::Lang;
use crate::domain::time::Millis;
use crate::handler::{AttemptTask, Context, StopReason, WorkerHandler};
use futures_util::future::BoxFuture;
use std::collections::BTreeMap;
use std::time::Duration;

/// The APPROVAL handler.
pub(crate) struct ApprovalHandler;

/// An approval that an attempt has requested.
#[derive(Clone, Debug)]
pub struct AskedApproval {
    pub id: ApprovalId,
    /// When it expires.
    pub deadline: Millis,
    /// Time until it expires.
    pub left: Duration,
    /// Number of addresses that were notified; `None` when an earlier start of the attempt did
    /// that.
    pub notified: Option<usize>,
    /// The decision.
    pub decision: ApprovalDecision,
}

/// Approvals of one attempt. Errors are messages for the user.
pub trait Approvals: Send + Sync {
    /// Requests an approval, or continues the request of an earlier start of the same attempt.
    fn request_approval<'a>(
        &'a self,
        rule: &'a ApprovalRule,
    ) -> BoxFuture<'a, Result<AskedApproval, String>>;

    /// Returns when the approval is no longer pending.
    fn ended(&self, id: ApprovalId) -> BoxFuture<'_, Result<ApprovalDecision, String>>;

    /// Closes the approval unless it was decided first, and returns the decision.
    fn close(
        &self,
        id: ApprovalId,
        to: ApprovalStatus,
    ) -> BoxFuture<'_, Result<ApprovalDecision, String>>;
}

impl WorkerHandler for ApprovalHandler {
    fn kind(&self) -> JobKind {
        JobKind {
            name: "APPROVAL",
            about: "Waits until a person approves or rejects.",
            needs: &[BodyPart::Approval],
            may_have: &[],
            takes: Takes::Nothing,
            after_crash: AfterCrash::StartsAgain,
            holds_session_lock: false,
        }
    }

    fn run<'a>(&'a self, task: &'a AttemptTask, ctx: &'a Context) -> BoxFuture<'a, AttemptOutcome> {
        Box::pin(async move {
            match ask_and_wait(task, ctx).await {
                Ok(outcome) => outcome,
                Err(message) => AttemptOutcome::ended(AttemptEnd::Failed, message),
            }
        })
    }
}

async fn ask_and_wait(task: &AttemptTask, ctx: &Context) -> Result<AttemptOutcome, String> {
    let rule = task.job.approval.as_deref().ok_or("the job has no approval")?;
    ctx.claimed().await?;
    let asked = tokio::select! {
        biased;
        reason = ctx.stopped() => return Ok(stopped_before(reason)),
        asked = ctx.approvals.request_approval(rule) => asked?,
    };
    if asked.decision.status != ApprovalStatus::Waiting {
        return Ok(outcome(asked.id, &asked.decision));
    }
    let approvers = rule.describe(&task.job.group, Lang::En);
    let notified = match asked.notified {
        None => "the approvers were notified before".to_owned(),
        Some(0) => "no address is named to be notified".to_owned(),
        Some(1) => "notified 1 address".to_owned(),
        Some(many) => format!("notified {many} addresses"),
    };
    let line = format!(
        "approval {} waits until {} for {approvers}; {notified}",
        asked.id.0, asked.deadline
    );
    ctx.log.add_line(Stream::System, line);
    ctx.claim.waits_on(Some(format!("approval by {approvers}, until {}", asked.deadline))).await;
    let reason = tokio::select! {
        biased;
        decision = ctx.approvals.ended(asked.id) => {
            return Ok(outcome(asked.id, &decision?));
        }
        reason = ctx.stopped() => reason,
        () = tokio::time::sleep(asked.left) => StopReason::TimedOut,
    };
    let to = match reason {
        StopReason::TimedOut => ApprovalStatus::Expired,
        StopReason::Killed => ApprovalStatus::Withdrawn,
        StopReason::HandedBack | StopReason::Fenced | StopReason::Disowned => {
            return Ok(stopped_before(reason));
        }
    };
    // If it was decided at this moment, the decision counts.
    let decision = ctx.approvals.close(asked.id, to).await?;
    Ok(outcome(asked.id, &decision))
}

/// A stop that leaves the approval pending for the next start.
fn stopped_before(reason: StopReason) -> AttemptOutcome {
    let (end, message) = match reason {
        StopReason::TimedOut => (AttemptEnd::TimedOut, "stopped before it asked"),
        StopReason::Killed => (AttemptEnd::Killed, "stopped before it asked"),
        StopReason::HandedBack | StopReason::Fenced | StopReason::Disowned => (
            AttemptEnd::Returned,
            "the approval waits on; this process does not wait for it any more",
        ),
    };
    AttemptOutcome::ended(end, message).before_it_began()
}

fn outcome(id: ApprovalId, decision: &ApprovalDecision) -> AttemptOutcome {
    let mut values = BTreeMap::from([
        ("approval_id".to_owned(), Some(id.0.to_string())),
        ("decision".to_owned(), Some(decision.status.to_string())),
    ]);
    if decision.by.is_some() {
        values.insert("decided_by".to_owned(), decision.by.clone());
        values.insert("comment".to_owned(), decision.comment.clone());
        values.insert("decided_at".to_owned(), decision.at.map(|at| at.to_string()));
    }
    let outputs = JobOutputs { values, ..JobOutputs::default() };
    let end = match decision.status {
        ApprovalStatus::Approved => AttemptEnd::Success,
        ApprovalStatus::Rejected | ApprovalStatus::Waiting => AttemptEnd::Failed,
        ApprovalStatus::Expired => AttemptEnd::TimedOut,
        ApprovalStatus::Withdrawn => AttemptEnd::Killed,
    };
    let ended = AttemptOutcome { outputs, ..AttemptOutcome::ended(end, decision.describe()) };
    match decision.status {
        // A retry would repeat the request until the answer is yes.
        ApprovalStatus::Rejected => ended.for_good(),
        _ => ended,
    }
}
