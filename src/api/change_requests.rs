//! Change requests: listed, shown, approved, rejected. What is approved is carried out at once, as its author.

use crate::api::authorize;
use crate::api::caller::{ApiRequest, CallerNeeds};
use crate::api::page::{self, Page};
use crate::api::problem::Problem;
use crate::api::route::{Nothing, Noun};
use crate::app::task::as_task;
use crate::domain::access::Permission;
use crate::domain::access::user::UserId;
use crate::domain::permission::four_eyes::{
    ChangeDecider, ChangeDecisionRefused, ChangeRequestId, ChangeRequestStatus, ChangeVerdict,
};
use crate::domain::time::Millis;
use crate::engine::operate::change_requests::{ChangeDecisionRequest, NoChangeRequest, decide};
use crate::store::change_request::{self as store, ChangeFilter, ChangeRequest};
use crate::view::change_request::{ChangeReader, ChangeRequestDetail, ChangeRequestView};
use axum::http::{Method, StatusCode};
use schemars::JsonSchema;
use serde::Deserialize;

pub(super) fn routes() -> Noun {
    let needs = CallerNeeds::Somewhere(Permission::View);
    Noun::new("change requests")
        .get(
            "/change-requests",
            needs,
            "Changes that wait for a second person, and past ones; newest first",
            list_change_requests,
        )
        .get(
            "/change-requests/{change_request_id}",
            needs,
            "A change request with what it would change",
            get_change_request,
        )
        .change(
            Method::POST, "/change-requests/{change_request_id}/approve",
            needs,
            "Approve a change: it is carried out as its author, while it would still do the same",
            async |ask, of, body| give_decision(ask, of, body, ChangeVerdict::Approve).await,
        )
        .change(
            Method::POST, "/change-requests/{change_request_id}/reject",
            needs,
            "Reject a change; its author withdraws it",
            async |ask, of, body| give_decision(ask, of, body, ChangeVerdict::Reject).await,
        )
        .change(
            Method::POST, "/change-requests/{change_request_id}/break-glass",
            CallerNeeds::Everywhere(Permission::Admin),
            "Carry out a change without a second person, where the settings allow it; everybody concerned is told",
            async |ask, of, body| give_decision(ask, of, body, ChangeVerdict::BreakGlass).await,
        )
}

/// Which change request.
#[derive(Debug, Deserialize, JsonSchema)]
struct ChangeRequestPath {
    /// Its number.
    change_request_id: i64,
}

/// Which change requests.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
struct ListChangeRequestsQuery {
    /// Past ones too, and not only those that wait.
    all: bool,
    /// How many, 1 to 500; 50 when it is left out.
    limit: Option<u32>,
    /// Where to go on: `next` of the page before.
    cursor: Option<String>,
}

/// What is said with a decision.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ChangeDecisionBody {
    /// A remark; needed to reject, and to carry a change out alone. 1 to 10,000 characters.
    comment: Option<String>,
}

impl ApiRequest {
    /// As who the caller looks at change requests.
    pub(super) fn change_reader(&self, now: Millis) -> Result<ChangeReader<'_>, Problem> {
        let caller = self.caller()?;
        let account = Some((UserId(caller.user_id), &caller.grants));
        let decider = ChangeDecider { account, name: &caller.name };
        Ok(ChangeReader { decider, rules: &self.house.four_eyes, now })
    }
}

async fn list_change_requests(
    ask: ApiRequest,
    _: Nothing,
    query: ListChangeRequestsQuery,
) -> Result<Page<ChangeRequestView>, Problem> {
    let limit = page::limit(query.limit)?;
    let mut before: Option<ChangeRequestId> =
        page::read_cursor(query.cursor.as_deref())?.map(ChangeRequestId);
    let filter = if query.all { ChangeFilter::All } else { ChangeFilter::Waiting };
    let reader = ask.change_reader(authorize::now(&ask).await?)?;
    let most = u32::try_from(limit + 1).map_err(anyhow::Error::from)?;
    let mut tx = authorize::open_read(&ask).await?;
    let mut items = Vec::new();
    // Rights are not in the table: pages are read until enough of them may be seen.
    loop {
        let found = store::list_page(&mut tx, filter, before, most).await?;
        before = found.last().map(|request| request.id);
        let is_last = found.len() <= limit;
        let seen = found.iter().filter(|request| reader.may_see(request));
        items.extend(seen.map(|request| ChangeRequestView::from_request(request, reader)));
        if is_last || items.len() > limit {
            items.truncate(limit + 1);
            return Ok(Page::from_items(items, limit, |item| item.change_request_id));
        }
    }
}

/// A request that the caller sees.
async fn find_visible(
    ask: &ApiRequest,
    id: ChangeRequestId,
    reader: ChangeReader<'_>,
) -> Result<ChangeRequest, Problem> {
    let found = store::find_request(&mut authorize::open_read(ask).await?, id).await?;
    let missing = || Problem::not_found(format!("change request {id}"));
    found.filter(|request| reader.may_see(request)).ok_or_else(missing)
}

async fn get_change_request(
    ask: ApiRequest,
    of: ChangeRequestPath,
    _: Nothing,
) -> Result<ChangeRequestDetail, Problem> {
    let reader = ask.change_reader(authorize::now(&ask).await?)?;
    let request = find_visible(&ask, ChangeRequestId(of.change_request_id), reader).await?;
    let content = store::content(&mut authorize::open_read(&ask).await?, request.id).await?;
    Ok(ChangeRequestDetail::from_request(&request, content, reader))
}

async fn give_decision(
    ask: ApiRequest,
    of: ChangeRequestPath,
    body: ChangeDecisionBody,
    verdict: ChangeVerdict,
) -> Result<ChangeRequestView, Problem> {
    let id = ChangeRequestId(of.change_request_id);
    let now = authorize::now(&ask).await?;
    let reader = ask.change_reader(now)?;
    find_visible(&ask, id, reader).await?;
    let comment =
        body.comment.as_deref().map(|text| authorize::check_text("comment", text)).transpose()?;
    let by = ask.operator()?;
    let account = reader.decider.account;
    let request = ChangeDecisionRequest { id, verdict, comment, by: &by, account };
    let house = ask.house.clone();
    let decided = decide(&house.app.db, &house.four_eyes, &request, now).await;
    let after = match decided {
        Ok(after) => after,
        Err(error) => return refused(&ask, id, verdict, error).await,
    };
    if after.status != ChangeRequestStatus::Approved {
        return Ok(ChangeRequestView::from_request(&after, reader));
    }
    failpoint!("change_request.approved");
    // A task of its own: what is approved is carried out also when the approver hangs up.
    as_task(async move { house.carry_out(id).await }).await?;
    let after = find_visible(&ask, id, reader).await?;
    Ok(ChangeRequestView::from_request(&after, reader))
}

/// The same decision of the same person a second time is answered like the first.
async fn refused(
    ask: &ApiRequest,
    id: ChangeRequestId,
    verdict: ChangeVerdict,
    error: anyhow::Error,
) -> Result<ChangeRequestView, Problem> {
    use ChangeDecisionRefused as Refused;
    if error.is::<NoChangeRequest>() {
        return Err(Problem::not_found(format!("change request {id}")));
    }
    let Some(refusal) = error.downcast_ref::<Refused>() else { return Err(error.into()) };
    let detail = refusal.to_string();
    Err(match refusal {
        Refused::Over(status) => {
            let reader = ask.change_reader(authorize::now(ask).await?)?;
            let there = find_visible(ask, id, reader).await?;
            let name = &ask.caller()?.name;
            let is_own = there.decided_by.as_ref().is_some_and(|by| by.actor == *name);
            let is_approved = matches!(
                status,
                ChangeRequestStatus::Approved
                    | ChangeRequestStatus::Done
                    | ChangeRequestStatus::Failed
            );
            if is_own && is_approved == (verdict != ChangeVerdict::Reject) {
                return Ok(ChangeRequestView::from_request(&there, reader));
            }
            Problem::conflict("is-so", detail)
        }
        Refused::Expired(_) => Problem::conflict("expired", detail),
        Refused::NoComment => Problem::refused(detail),
        Refused::OwnChange(_)
        | Refused::NotAllowed(..)
        | Refused::NotNamed(_)
        | Refused::NoBreakGlass
        | Refused::NotAdministrator => {
            Problem::new(StatusCode::FORBIDDEN, "not-an-approver", detail)
        }
    })
}
