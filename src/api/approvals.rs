//! Approvals that APPROVAL jobs wait for: listed, approved, rejected.

use crate::api::authorize;
use crate::api::batch_jobs::OfJob;
use crate::api::caller::{ApiRequest, CallerNeeds};
use crate::api::page::{self, Page};
use crate::api::problem::Problem;
use crate::api::route::{Nothing, Noun};
use crate::domain::access::Permission;
use crate::domain::access::approval::ApprovalVerdict;
use crate::domain::id::{BatchNo, GroupCode};
use crate::engine::operate::approvals::{DecisionRefused, DecisionRequest, decide, refusal};
use crate::store::approval::{self, ApprovalFilter};
use crate::view::approval::ApprovalView;
use axum::http::{Method, StatusCode};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub(super) fn routes() -> Noun {
    let needs = CallerNeeds::Somewhere(Permission::View);
    Noun::new("approvals")
        .get(
            "/approvals",
            needs,
            "Approvals that jobs wait for, and past ones; newest first",
            list_approvals,
        )
        .change(
            Method::POST,
            "/groups/{group}/batches/{batch_no}/jobs/{job}/approve",
            needs,
            "Approve an APPROVAL job that waits: its batch goes on",
            async |ask, of, body| give_decision(ask, of, body, ApprovalVerdict::Approve).await,
        )
        .change(
            Method::POST,
            "/groups/{group}/batches/{batch_no}/jobs/{job}/reject",
            needs,
            "Reject an APPROVAL job that waits: it fails and is not tried again",
            async |ask, of, body| give_decision(ask, of, body, ApprovalVerdict::Reject).await,
        )
}

/// Which approvals.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
struct ListApprovalsQuery {
    /// Past ones too, and not only those that wait.
    all: bool,
    /// Only of this group.
    group: Option<String>,
    /// Only of batches of this number.
    batch_no: Option<String>,
    /// How many, 1 to 500; 50 when it is left out.
    limit: Option<u32>,
    /// Where to go on: `next` of the page before.
    cursor: Option<String>,
}

async fn list_approvals(
    ask: ApiRequest,
    _: Nothing,
    query: ListApprovalsQuery,
) -> Result<Page<ApprovalView>, Problem> {
    let limit = page::limit(query.limit)?;
    let before: Option<i64> = page::read_cursor(query.cursor.as_deref())?;
    let group = query.group.as_deref().map(GroupCode::parse).transpose();
    let batch_no = query.batch_no.as_deref().map(BatchNo::parse).transpose();
    let filter = ApprovalFilter {
        is_waiting: !query.all,
        group: group.map_err(|error| Problem::unreadable(format!("group: {error}")))?,
        batch_no: batch_no.map_err(|error| Problem::unreadable(format!("batch_no: {error}")))?,
    };
    let caller = ask.caller()?;
    let seen = caller.grants.places(Permission::View);
    let mut tx = authorize::open_read(&ask).await?;
    let most = u32::try_from(limit + 1).map_err(anyhow::Error::from)?;
    let found = approval::list_page(&mut tx, &filter, seen.as_ref(), before, most).await?;
    let (approver, grants) = (caller.name.as_str(), Some(&caller.grants));
    let mut items = Vec::new();
    for one in &found {
        items.push(ApprovalView::read_view(&mut tx, one, approver, grants, ask.lang).await?);
    }
    Ok(Page::from_items(items, limit, |item| item.approval_id))
}

/// What an approver remarks.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct DecisionBody {
    /// A remark; needed to reject. 1 to 10,000 characters.
    comment: Option<String>,
}

/// A decision that was taken.
#[derive(Debug, Serialize, JsonSchema)]
struct DecisionAnswer {
    /// Whether something was changed; not when the caller had decided the same before.
    written: bool,
    /// The approval.
    approval: ApprovalView,
}

async fn give_decision(
    ask: ApiRequest,
    of: OfJob,
    body: DecisionBody,
    verdict: ApprovalVerdict,
) -> Result<DecisionAnswer, Problem> {
    let (batch, row) = of.find_row(&ask).await?;
    let comment =
        body.comment.as_deref().map(|text| authorize::check_text("comment", text)).transpose()?;
    let by = ask.operator()?;
    let caller = ask.caller()?;
    let request = DecisionRequest {
        batch: &batch,
        row: &row,
        verdict,
        comment,
        by: &by,
        grants: Some(&caller.grants),
    };
    let now = authorize::now(&ask).await?;
    let decided = decide(&ask.house.app.db, &request, now).await;
    let (approval, written) = decided.map_err(refused)?;
    let mut tx = authorize::open_read(&ask).await?;
    let (approver, grants) = (caller.name.as_str(), Some(&caller.grants));
    let approval = ApprovalView::read_view(&mut tx, &approval, approver, grants, ask.lang).await?;
    Ok(DecisionAnswer { written, approval })
}

fn refused(error: anyhow::Error) -> Problem {
    let Some(refusal) = refusal(&error) else { return error.into() };
    let detail = refusal.to_string();
    match refusal {
        DecisionRefused::NoApproval(_) | DecisionRefused::Over { .. } => {
            Problem::conflict("is-so", detail)
        }
        DecisionRefused::NoComment => Problem::refused(detail),
        DecisionRefused::Approver(_) => {
            Problem::new(StatusCode::FORBIDDEN, "not-an-approver", detail)
        }
    }
}
