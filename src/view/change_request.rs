//! Change requests for display.

use crate::domain::access::{Grants, Permission};
use crate::domain::permission::four_eyes::{
    ChangeDecider, ChangeRequestStatus, ChangeVerdict, FourEyesRules, GuardedAction,
};
use crate::domain::time::Millis;
use crate::engine::operate::change_requests::may_decide;
use crate::store::change_request::{ChangeContent, ChangeRequest};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;

/// A change that waits for a second person, or did.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ChangeRequestView {
    /// The number of the change request.
    pub change_request_id: i64,
    /// The status.
    pub status: ChangeRequestStatus,
    /// The kind of change.
    pub action: GuardedAction,
    /// The groups that it changes; empty when it concerns none.
    pub groups: Vec<String>,
    /// The permissions that the change requires, also from its approver: `edit in month_end`.
    pub needs: Vec<String>,
    /// The change in one line.
    pub summary: String,
    /// The author's reason.
    pub reason: String,
    /// The author.
    pub author: String,
    /// The address of the author.
    pub author_from: String,
    /// Whether it was filed with an API token.
    pub by_token: bool,
    /// When it was filed.
    pub created_at: String,
    /// When it expires.
    pub expires_at: String,
    /// Whether the caller may approve or reject it now.
    pub may_decide: bool,
    /// Why the caller may not, while it is pending.
    pub refusal: Option<String>,
    /// Whether the caller may withdraw it now.
    pub may_withdraw: bool,
    /// Whether the caller may carry it out without a second person.
    pub may_break_glass: bool,
    /// Who decided.
    pub decided_by: Option<String>,
    /// The address or host of the decision.
    pub decided_from: Option<String>,
    /// The comment on the decision.
    pub comment: Option<String>,
    /// When it was decided, withdrawn or expired.
    pub decided_at: Option<String>,
    /// Whether an administrator carried it out without a second person.
    pub without_second_person: bool,
    /// When it was carried out.
    pub carried_out_at: Option<String>,
    /// The HTTP status of the answer when it was carried out.
    pub answer_status: Option<u16>,
    /// Why it could not be carried out.
    pub failure: Option<String>,
}

/// A change request with everything that its approver needs.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ChangeRequestDetail {
    /// The request.
    #[serde(flatten)]
    pub request: ChangeRequestView,
    /// The HTTP method of the request.
    pub method: String,
    /// The path of the request.
    pub path: String,
    /// Its body; only for its author and for who could make the change.
    #[schemars(with = "Option<BTreeMap<String, Value>>")]
    pub body: Option<Value>,
    /// What it changes, as it was when it was asked for; for the same people. It is carried out only while this is
    /// still so.
    #[schemars(with = "Option<BTreeMap<String, Value>>")]
    pub effect: Option<Value>,
    /// What carrying it out was answered; for the same people.
    #[schemars(with = "Option<BTreeMap<String, Value>>")]
    pub answer: Option<Value>,
}

/// The reader of a request.
#[derive(Clone, Copy, Debug)]
pub struct ChangeReader<'a> {
    /// The account; none on the command line.
    pub decider: ChangeDecider<'a>,
    pub rules: &'a FourEyesRules,
    pub now: Millis,
}

impl ChangeReader<'_> {
    /// Whether a request is visible: to its author, and to users who see all its groups.
    pub fn may_see(&self, request: &ChangeRequest) -> bool {
        let Some((user, grants)) = self.decider.account else { return true };
        user == request.user || sees_groups(grants, request)
    }

    /// Whether the content of a request is visible: it may contain what is hidden from users who
    /// may only view.
    pub fn sees_content(&self, request: &ChangeRequest) -> bool {
        let Some((user, grants)) = self.decider.account else { return true };
        let demands = &request.demands;
        let may = |permission: &Permission| grants.allow_everywhere(*permission);
        let in_groups = demands
            .groups
            .iter()
            .all(|(group, all)| all.iter().all(|permission| grants.allow(*permission, group)));
        user == request.user || (in_groups && demands.everywhere.iter().all(may))
    }

    fn refusal(&self, request: &ChangeRequest, verdict: ChangeVerdict) -> Option<String> {
        let decided = may_decide(request, self.rules, verdict, self.decider, self.now);
        decided.err().map(|refused| refused.to_string())
    }
}

fn sees_groups(grants: &Grants, request: &ChangeRequest) -> bool {
    let demands = &request.demands;
    let mut groups = demands.groups.keys();
    match demands.groups.is_empty() {
        true => grants.allow_everywhere(Permission::View),
        false => groups.all(|group| grants.allow(Permission::View, group)),
    }
}

impl ChangeRequestView {
    /// The document of a request, as the reader sees it.
    pub fn from_request(request: &ChangeRequest, reader: ChangeReader<'_>) -> Self {
        let is_waiting = request.status == ChangeRequestStatus::Waiting;
        let is_author = reader.decider.account.is_some_and(|(user, _)| user == request.user);
        let why_not = reader.refusal(request, ChangeVerdict::Approve);
        let rejects = reader.refusal(request, ChangeVerdict::Reject).is_none();
        let breaks = reader.refusal(request, ChangeVerdict::BreakGlass).is_none();
        let demands = &request.demands;
        let in_group = |(group, all): (_, &std::collections::BTreeSet<Permission>)| {
            all.iter().map(|p| format!("{p} in {group}")).collect::<Vec<_>>()
        };
        let needs = demands
            .groups
            .iter()
            .flat_map(in_group)
            .chain(demands.everywhere.iter().map(|p| format!("{p} in all groups")));
        let failure = request.answer.as_ref().filter(|(code, _)| *code >= 400);
        let failure = failure.and_then(|(_, answer)| answer["detail"].as_str());
        Self {
            change_request_id: request.id.0,
            status: request.status,
            action: request.action,
            groups: demands.groups.keys().map(ToString::to_string).collect(),
            needs: needs.collect(),
            summary: request.summary.clone(),
            reason: request.reason.clone(),
            author: request.author.actor.clone(),
            author_from: request.author.host.clone(),
            by_token: request.token.is_some(),
            created_at: request.created.to_string(),
            expires_at: request.expires.to_string(),
            may_decide: why_not.is_none(),
            refusal: why_not.filter(|_| is_waiting),
            may_withdraw: is_author && rejects,
            may_break_glass: breaks,
            decided_by: request.decided_by.as_ref().map(|by| by.actor.clone()),
            decided_from: request.decided_by.as_ref().map(|by| by.host.clone()),
            comment: request.comment.clone(),
            decided_at: request.decided.map(|at| at.to_string()),
            without_second_person: request.is_alone,
            carried_out_at: request.carried_out.map(|at| at.to_string()),
            answer_status: request.answer.as_ref().map(|(code, _)| *code),
            failure: failure.map(str::to_owned),
        }
    }
}

impl ChangeRequestDetail {
    /// The document of a request with its content, as the reader sees it.
    pub fn from_request(
        request: &ChangeRequest,
        content: ChangeContent,
        reader: ChangeReader<'_>,
    ) -> Self {
        let content = reader.sees_content(request).then_some(content);
        let answer = request.answer.as_ref().map(|(_, answer)| answer.clone());
        Self {
            request: ChangeRequestView::from_request(request, reader),
            method: request.method.clone(),
            path: request.path.clone(),
            answer: answer.filter(|_| content.is_some()),
            body: content.as_ref().map(|content| content.body.clone()),
            effect: content.map(|content| content.effect),
        }
    }
}
