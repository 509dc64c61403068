//! Approvals of jobs: who may decide whether a batch continues, and the recorded decision.

use crate::domain::access::user::UserName;
use crate::domain::access::{Grants, Permission, Role};
use crate::domain::id::GroupCode;
use crate::domain::text::lang::Lang;
use crate::domain::time::Millis;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Primary key of a `job_approval` row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ApprovalId(pub i64);

/// Who may approve an APPROVAL job, and the question. Matching one of `role`, `permission` and
/// `users` is sufficient.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApprovalRule {
    /// This role in the group of the job. An administrator of the group holds every role.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<Role>,
    /// This permission in the group of the job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub permission: Option<Permission>,
    /// These users.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub users: Vec<UserName>,
    /// Whether the users who started the batch are refused.
    #[serde(default = "yes", skip_serializing_if = "is_yes")]
    pub four_eyes: bool,
    /// The question to the approvers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub question: Option<String>,
}

fn yes() -> bool {
    true
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn is_yes(flag: &bool) -> bool {
    *flag
}

/// State of an approval.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum ApprovalStatus {
    /// The job waits for a decision.
    Waiting,
    /// Approved.
    Approved,
    /// Rejected.
    Rejected,
    /// No decision before the timeout of the job.
    Expired,
    /// The job was stopped, forced or rerun before a decision.
    Withdrawn,
}

impl ApprovalStatus {
    /// Every status, in order.
    pub const ALL: [Self; 5] =
        [Self::Waiting, Self::Approved, Self::Rejected, Self::Expired, Self::Withdrawn];

    /// The word in the `status` column.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Waiting => "WAITING",
            Self::Approved => "APPROVED",
            Self::Rejected => "REJECTED",
            Self::Expired => "EXPIRED",
            Self::Withdrawn => "WITHDRAWN",
        }
    }

    /// Parses the word.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.as_str() == word)
    }
}

impl fmt::Display for ApprovalStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// The decision on an approval.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApprovalDecision {
    /// Resulting status.
    pub status: ApprovalStatus,
    /// Who decided; none when it expired or was withdrawn by the system.
    pub by: Option<String>,
    /// The approver's comment.
    pub comment: Option<String>,
    /// When.
    pub at: Option<Millis>,
}

impl ApprovalDecision {
    /// Text for logs: `approved by li.na: checked against the ledger`.
    pub fn describe(&self) -> String {
        let by = self.by.as_deref().unwrap_or("-");
        let comment = self.comment.as_ref().map_or_else(String::new, |text| format!(": {text}"));
        match self.status {
            ApprovalStatus::Waiting => "waits for a decision".to_owned(),
            ApprovalStatus::Approved => format!("approved by {by}{comment}"),
            ApprovalStatus::Rejected => format!("rejected by {by}{comment}"),
            ApprovalStatus::Expired => "nobody decided in time".to_owned(),
            ApprovalStatus::Withdrawn => "stopped before a decision".to_owned(),
        }
    }
}

/// An approver's decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ApprovalVerdict {
    /// The batch continues.
    Approve,
    /// The job fails.
    Reject,
}

impl ApprovalVerdict {
    /// The resulting status.
    pub fn status(self) -> ApprovalStatus {
        match self {
            Self::Approve => ApprovalStatus::Approved,
            Self::Reject => ApprovalStatus::Rejected,
        }
    }

    /// The word in the audit log.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Approve => "approve",
            Self::Reject => "reject",
        }
    }

    /// Past tense for messages.
    pub fn past_tense(self) -> &'static str {
        match self {
            Self::Approve => "approved",
            Self::Reject => "rejected",
        }
    }
}

/// The user who decides.
#[derive(Clone, Copy, Debug)]
pub struct Approver<'a> {
    /// Account name; on the command line the user of the operating system.
    pub name: &'a str,
    /// The account's grants; none on the command line, where access to the database implies every
    /// permission.
    pub grants: Option<&'a Grants>,
}

/// Why a user may not decide.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ApproverRefused {
    /// The rule does not include the user.
    #[error("{0} may decide about this job; ask one of them")]
    NotNamed(String),
    /// The user started the batch.
    #[error(
        "{0} started this batch, and its approval takes a second person (four_eyes); ask another approver"
    )]
    OwnBatch(String),
}

impl ApprovalRule {
    /// Whether a rule names any approver.
    pub fn names_approvers(&self) -> bool {
        self.role.is_some() || self.permission.is_some() || !self.users.is_empty()
    }

    /// Succeeds when this user may decide about a job of `group` in a batch started by `starters`.
    pub fn check(
        &self,
        group: &GroupCode,
        approver: Approver<'_>,
        starters: &[String],
    ) -> Result<(), ApproverRefused> {
        if !self.allows(group, approver) {
            return Err(ApproverRefused::NotNamed(self.describe(group, Lang::En)));
        }
        let is_starter = starters.iter().any(|name| name.eq_ignore_ascii_case(approver.name));
        if self.four_eyes && is_starter {
            return Err(ApproverRefused::OwnBatch(approver.name.to_owned()));
        }
        Ok(())
    }

    fn allows(&self, group: &GroupCode, approver: Approver<'_>) -> bool {
        let Some(grants) = approver.grants else { return true };
        let by_role = self.role.is_some_and(|role| grants.has_role(role, group));
        let by_permission = self.permission.is_some_and(|p| grants.allow(p, group));
        // A read-only token decides nothing, even if its owner is named.
        let may_act = grants.confines().is_none_or(|only| {
            only.permissions.iter().any(|p| *p != Permission::View)
                && only.groups.as_ref().is_none_or(|groups| groups.contains(group))
        });
        let by_name = self.users.iter().any(|user| user.as_str() == approver.name) && may_act;
        by_role || by_permission || by_name
    }

    /// The possible approvers in words: `an operator of month_end, or li.na`.
    pub fn describe(&self, group: &GroupCode, lang: Lang) -> String {
        let mut parts = Vec::new();
        if let Some(role) = self.role {
            let article = if matches!(role, Role::Viewer) { "a" } else { "an" };
            parts.push(match lang {
                Lang::En => format!("{article} {role} of {group}"),
                Lang::Zh => format!("{group} 的 {role}"),
            });
        }
        if let Some(permission) = self.permission {
            parts.push(match lang {
                Lang::En => format!("a user who may {permission} in {group}"),
                Lang::Zh => format!("在 {group} 拥有 {permission} 权限的用户"),
            });
        }
        if !self.users.is_empty() {
            let names: Vec<&str> = self.users.iter().map(UserName::as_str).collect();
            parts.push(names.join(", "));
        }
        parts.join(lang.select(", or ", " 或 "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::access::{Confines, Grant, Where};
    use std::collections::BTreeSet;

    fn group(code: &str) -> GroupCode {
        GroupCode::parse(code).expect("a code")
    }

    fn grants(place: &str, role: Role, rights: &[Permission]) -> Grants {
        let place = if place == "*" { Where::Everywhere } else { Where::Group(group(place)) };
        Grants::new(vec![Grant { place, role, rights: rights.iter().copied().collect() }])
    }

    fn rule(role: Option<Role>, permission: Option<Permission>, users: &[&str]) -> ApprovalRule {
        let users = users.iter().map(|name| UserName::parse(name).expect("a name")).collect();
        ApprovalRule { role, permission, users, four_eyes: true, question: None }
    }

    #[test]
    fn roles_permissions_and_names_let_people_decide() {
        use {Permission as P, Role as R};
        let operators = rule(Some(R::Operator), None, &[]);
        let forcers = rule(None, Some(P::Force), &[]);
        let named = rule(None, None, &["li.na"]);
        let either = rule(Some(R::Author), None, &["li.na"]);
        for (rule, name, granted, may) in [
            (&operators, "wang", grants("gl", R::Operator, &[]), true),
            (&operators, "wang", grants("*", R::Operator, &[]), true),
            (&operators, "wang", grants("ar", R::Operator, &[]), false),
            (&operators, "wang", grants("gl", R::Author, &[]), false),
            (&operators, "wang", grants("gl", R::Admin, &[]), true),
            (&forcers, "wang", grants("gl", R::Operator, &[]), false),
            (&forcers, "wang", grants("gl", R::Operator, &[P::Force]), true),
            (&named, "li.na", grants("gl", R::Viewer, &[]), true),
            (&named, "wang", grants("*", R::Admin, &[]), false),
            (&either, "wang", grants("gl", R::Author, &[]), true),
        ] {
            let approver = Approver { name, grants: Some(&granted) };
            let checked = rule.check(&group("gl"), approver, &[]);
            assert_eq!(checked.is_ok(), may, "{rule:?} {name} {granted:?}");
        }
        let words = either.describe(&group("gl"), Lang::En);
        assert_eq!(words, "an author of gl, or li.na");
        let local = Approver { name: "root", grants: None };
        assert_eq!(named.check(&group("gl"), local, &[]), Ok(()), "it opened the database");
    }

    #[test]
    fn a_starter_does_not_approve_the_own_batch() {
        let granted = grants("gl", Role::Operator, &[]);
        let approver = Approver { name: "li.na", grants: Some(&granted) };
        let starters = ["Li.Na".to_owned()];
        let mut rule = rule(Some(Role::Operator), None, &[]);
        let refused = rule.check(&group("gl"), approver, &starters);
        assert_eq!(refused, Err(ApproverRefused::OwnBatch("li.na".to_owned())));
        rule.four_eyes = false;
        assert_eq!(rule.check(&group("gl"), approver, &starters), Ok(()));
    }

    #[test]
    fn a_token_decides_only_with_what_it_may_do() {
        let token = |permissions: &[Permission], groups: Option<&str>| {
            let groups = groups.map(|code| BTreeSet::from([group(code)]));
            let permissions = permissions.iter().copied().collect();
            grants("*", Role::Admin, &[]).within(Confines { permissions, groups })
        };
        let rule = rule(Some(Role::Operator), None, &["li.na"]);
        use Permission as P;
        for (granted, may) in [
            (token(&[P::View], None), false),
            (token(&[P::View, P::Run], None), true),
            (token(&[P::View, P::Run], Some("ar")), false),
            (token(&[P::View, P::Run], Some("gl")), true),
        ] {
            let approver = Approver { name: "li.na", grants: Some(&granted) };
            assert_eq!(rule.check(&group("gl"), approver, &[]).is_ok(), may, "{granted:?}");
        }
    }

    #[test]
    fn rules_are_stored_without_what_is_usual() {
        let text = serde_json::to_string(&rule(Some(Role::Operator), None, &[])).expect("JSON");
        assert_eq!(text, r#"{"role":"operator"}"#);
        let read: ApprovalRule = serde_json::from_str(r#"{"users":["Li.Na"]}"#).expect("a rule");
        assert_eq!(read, rule(None, None, &["li.na"]));
        assert!(read.names_approvers());
        for status in ApprovalStatus::ALL {
            assert_eq!(ApprovalStatus::parse(status.as_str()), Some(status));
        }
    }
}
