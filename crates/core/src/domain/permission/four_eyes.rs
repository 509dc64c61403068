//! The four-eyes principle: some changes are carried out only after a second person has approved them. The settings say
//! which, per group; a change that waits is a change request.

use crate::domain::access::user::UserId;
use crate::domain::access::{Grants, Permission};
use crate::domain::id::GroupCode;
use crate::domain::permission::required_permissions::Demands;
use crate::domain::time::Millis;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// Key of a `change_request` row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ChangeRequestId(pub i64);

impl fmt::Display for ChangeRequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A kind of change that may need a second person.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum GuardedAction {
    /// Every action that requires the permission `force`.
    Force,
    /// Changes of schedules and calendars; it includes `Apply`.
    Edit,
    /// Storing or rolling back a definition.
    Apply,
}

impl GuardedAction {
    /// Every action, in order.
    pub const ALL: [Self; 3] = [Self::Force, Self::Edit, Self::Apply];

    /// The name in the settings, in tables and in the API.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Force => "force",
            Self::Edit => "edit",
            Self::Apply => "apply",
        }
    }

    /// Parses the name.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|action| action.as_str() == word)
    }
}

/// A rule of the settings, for one group or for all other groups.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FourEyesRule {
    /// Changes that need a second person.
    pub actions: BTreeSet<GuardedAction>,
    /// The only users who may approve, in lower case; empty: everyone who may make the change.
    pub approvers: BTreeSet<String>,
    /// How long a request waits for approval, in milliseconds.
    pub expire_ms: i64,
    /// Whether an administrator of all groups may carry out a request alone.
    pub break_glass: bool,
    /// Addresses to notify of requests, in addition to the recipients of the group.
    pub notify: Vec<String>,
}

impl FourEyesRule {
    fn covers(&self, action: GuardedAction) -> bool {
        // A rule for edits covers every way to edit, so it also covers applying a definition.
        let is_edit = action == GuardedAction::Apply && self.actions.contains(&GuardedAction::Edit);
        is_edit || self.actions.contains(&action)
    }
}

/// The rules of all groups.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FourEyesRules {
    /// For groups without a rule, and for changes that belong to no group.
    pub others: Option<FourEyesRule>,
    /// Rules of single groups, in place of `others`.
    pub groups: BTreeMap<GroupCode, FourEyesRule>,
}

/// The combined rule for one change, from the rules of all groups that it affects.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SecondPersonRule {
    /// The users who may approve: an approver must be in each of these sets.
    pub approvers: Vec<BTreeSet<String>>,
    /// How long a request waits, in milliseconds: the minimum of the rules.
    pub expire_ms: i64,
    /// Whether every rule permits an administrator of all groups to act alone.
    pub break_glass: bool,
    /// Addresses to notify.
    pub notify: BTreeSet<String>,
}

impl FourEyesRules {
    /// Whether any rule exists.
    pub fn is_on(&self) -> bool {
        self.others.iter().chain(self.groups.values()).any(|rule| !rule.actions.is_empty())
    }

    /// The rule for a change that requires these permissions; `None` if it needs no second person.
    pub fn of_change(&self, action: GuardedAction, demands: &Demands) -> Option<SecondPersonRule> {
        let changes = |permissions: &&BTreeSet<Permission>| permissions.iter().any(|p| p.changes());
        let groups = demands.groups.iter().filter(|(_, all)| changes(all));
        let of_groups = groups.map(|(group, _)| self.groups.get(group).or(self.others.as_ref()));
        let everywhere = (!demands.everywhere.is_empty()).then_some(self.others.as_ref());
        let rules = of_groups.chain(everywhere).flatten().filter(|rule| rule.covers(action));
        let mut found: Option<SecondPersonRule> = None;
        for rule in rules {
            let all = found.get_or_insert_with(|| SecondPersonRule {
                expire_ms: rule.expire_ms,
                break_glass: true,
                ..SecondPersonRule::default()
            });
            all.expire_ms = all.expire_ms.min(rule.expire_ms);
            all.break_glass &= rule.break_glass;
            all.notify.extend(rule.notify.iter().cloned());
            if !rule.approvers.is_empty() && !all.approvers.contains(&rule.approvers) {
                all.approvers.push(rule.approvers.clone());
            }
        }
        found
    }
}

/// State of a change request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum ChangeRequestStatus {
    /// No decision yet.
    Waiting,
    /// Approved, and not yet carried out.
    Approved,
    /// Approved and carried out.
    Done,
    /// Approved, but it could not be carried out: nothing was changed.
    Failed,
    /// Rejected by a second person.
    Rejected,
    /// Withdrawn by its author.
    Withdrawn,
    /// Not decided in time.
    Expired,
}

impl ChangeRequestStatus {
    /// Every state, in order.
    pub const ALL: [Self; 7] = [
        Self::Waiting,
        Self::Approved,
        Self::Done,
        Self::Failed,
        Self::Rejected,
        Self::Withdrawn,
        Self::Expired,
    ];

    /// The word in the `status` column.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Waiting => "WAITING",
            Self::Approved => "APPROVED",
            Self::Done => "DONE",
            Self::Failed => "FAILED",
            Self::Rejected => "REJECTED",
            Self::Withdrawn => "WITHDRAWN",
            Self::Expired => "EXPIRED",
        }
    }

    /// Parses the word in the `status` column.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.as_str() == word)
    }
}

impl fmt::Display for ChangeRequestStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// Decision about a change request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangeVerdict {
    /// Carry it out.
    Approve,
    /// Reject it; by its author, this withdraws it.
    Reject,
    /// An administrator of all groups carries it out without a second person.
    BreakGlass,
}

impl ChangeVerdict {
    /// The name in the API, on the command line and in the audit log.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Approve => "approve",
            Self::Reject => "reject",
            Self::BreakGlass => "break-glass",
        }
    }
}

/// The change request to decide about.
#[derive(Clone, Debug)]
pub struct DecidedChange<'a> {
    /// The account that made the request.
    pub author: UserId,
    /// Name of that account.
    pub author_name: &'a str,
    /// Current state.
    pub status: ChangeRequestStatus,
    /// End of the time for a decision.
    pub expires: Millis,
    /// The permissions that the change requires.
    pub demands: &'a Demands,
    /// The current rule of the settings; none if they no longer require a second person.
    pub rule: Option<&'a SecondPersonRule>,
}

/// The user who decides.
#[derive(Clone, Copy, Debug)]
pub struct ChangeDecider<'a> {
    /// The account and its grants; none for a user with direct access to the metadata database.
    pub account: Option<(UserId, &'a Grants)>,
    /// Name of the user.
    pub name: &'a str,
}

/// Why a decision is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChangeDecisionRefused {
    /// Authors may not approve their own requests.
    #[error("{0} asked for this change, and another person has to approve it")]
    OwnChange(String),
    /// An approver needs the permissions for the change itself.
    #[error(
        "deciding about this change needs what the change itself needs: the permission `{0}` in {1}; ask a user who has \
         it, or an administrator there to grant it"
    )]
    NotAllowed(Permission, String),
    /// The settings name the approvers, and this user is not among them.
    #[error(
        "only these may decide about this change: {0} (`approvers` in [four_eyes]); ask one of them"
    )]
    NotNamed(String),
    /// The request is already decided or withdrawn.
    #[error("change request does not wait any more: it is {0}")]
    Over(ChangeRequestStatus),
    /// The time for a decision is over.
    #[error("the change request has expired at {0}; ask for the change again")]
    Expired(Millis),
    /// A reason is needed.
    #[error("comment: say why; it is what others will read")]
    NoComment,
    /// The settings do not permit acting alone.
    #[error(
        "the settings let nobody carry out this change alone; ask a second person to approve it, or the administrator of the \
         server to set `break_glass = true` in [four_eyes]"
    )]
    NoBreakGlass,
    /// Only an administrator of all groups may act alone.
    #[error(
        "carrying out a change alone needs the permission `admin` for all groups; ask an administrator of all groups to do \
         it, or a second person to approve it"
    )]
    NotAdministrator,
}

impl DecidedChange<'_> {
    /// The state that a decision leads to.
    pub fn decide(
        &self,
        verdict: ChangeVerdict,
        by: ChangeDecider<'_>,
        comment: Option<&str>,
        now: Millis,
    ) -> Result<ChangeRequestStatus, ChangeDecisionRefused> {
        use ChangeDecisionRefused as Refused;
        let is_author = match by.account {
            Some((user, _)) => user == self.author,
            None => by.name.eq_ignore_ascii_case(self.author_name),
        };
        match verdict {
            ChangeVerdict::Approve if is_author => {
                return Err(Refused::OwnChange(self.author_name.to_owned()));
            }
            ChangeVerdict::Approve => self.check_approver(by)?,
            ChangeVerdict::Reject if is_author => {}
            ChangeVerdict::Reject => self.check_approver(by)?,
            ChangeVerdict::BreakGlass => self.check_break_glass(by)?,
        }
        if self.status != ChangeRequestStatus::Waiting {
            return Err(Refused::Over(self.status));
        }
        if now >= self.expires {
            return Err(Refused::Expired(self.expires));
        }
        let is_withdrawn = verdict == ChangeVerdict::Reject && is_author;
        if verdict != ChangeVerdict::Approve && !is_withdrawn && comment.is_none() {
            return Err(Refused::NoComment);
        }
        Ok(match verdict {
            ChangeVerdict::Approve | ChangeVerdict::BreakGlass => ChangeRequestStatus::Approved,
            ChangeVerdict::Reject if is_author => ChangeRequestStatus::Withdrawn,
            ChangeVerdict::Reject => ChangeRequestStatus::Rejected,
        })
    }

    /// Checks that the user could make the change, and is named if the settings name approvers.
    fn check_approver(&self, by: ChangeDecider<'_>) -> Result<(), ChangeDecisionRefused> {
        self.check_permissions(by)?;
        let name = by.name.to_lowercase();
        let named = self.rule.map_or(&[][..], |rule| &rule.approvers);
        match named.iter().find(|names| !names.contains(&name)) {
            None => Ok(()),
            Some(names) => {
                let names: Vec<&str> = names.iter().map(String::as_str).collect();
                Err(ChangeDecisionRefused::NotNamed(names.join(", ")))
            }
        }
    }

    fn check_permissions(&self, by: ChangeDecider<'_>) -> Result<(), ChangeDecisionRefused> {
        use ChangeDecisionRefused::NotAllowed;
        let Some((_, grants)) = by.account else { return Ok(()) };
        for (group, permissions) in &self.demands.groups {
            if let Some(missing) = permissions.iter().find(|p| !grants.allow(**p, group)) {
                return Err(NotAllowed(*missing, format!("group {group}")));
            }
        }
        let everywhere = &self.demands.everywhere;
        match everywhere.iter().find(|p| !grants.allow_everywhere(**p)) {
            None => Ok(()),
            Some(missing) => Err(NotAllowed(*missing, "all groups".to_owned())),
        }
    }

    fn check_break_glass(&self, by: ChangeDecider<'_>) -> Result<(), ChangeDecisionRefused> {
        if !self.rule.is_some_and(|rule| rule.break_glass) {
            return Err(ChangeDecisionRefused::NoBreakGlass);
        }
        let is_admin = |grants: &Grants| grants.allow_everywhere(Permission::Admin);
        if !by.account.is_none_or(|(_, grants)| is_admin(grants)) {
            return Err(ChangeDecisionRefused::NotAdministrator);
        }
        self.check_permissions(by)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::access::{Confines, Grant, Role, Where};

    fn group(code: &str) -> GroupCode {
        GroupCode::parse(code).expect("a code")
    }

    fn grants(place: &str, role: Role, rights: &[Permission]) -> Grants {
        let place = if place == "*" { Where::Everywhere } else { Where::Group(group(place)) };
        Grants::new(vec![Grant { place, role, rights: rights.iter().copied().collect() }])
    }

    fn demands(all: &[(&str, &[Permission])]) -> Demands {
        let one = |(code, permissions): &(&str, &[Permission])| {
            (group(code), permissions.iter().copied().collect())
        };
        Demands { groups: all.iter().map(one).collect(), everywhere: BTreeSet::new() }
    }

    fn rule(actions: &[GuardedAction], hours: i64) -> FourEyesRule {
        FourEyesRule {
            actions: actions.iter().copied().collect(),
            expire_ms: hours * 3_600_000,
            ..FourEyesRule::default()
        }
    }

    #[test]
    fn a_group_has_its_own_rule_or_that_of_all_others() {
        use GuardedAction as A;
        use Permission as P;
        let rules = FourEyesRules {
            others: Some(rule(&[A::Force], 24)),
            groups: [(group("gl"), rule(&[A::Edit], 1)), (group("free"), rule(&[], 1))].into(),
        };
        assert!(rules.is_on() && !FourEyesRules::default().is_on());
        for (action, demanded, expected) in [
            (A::Force, demands(&[("ar", &[P::Force])]), Some(24)),
            (A::Force, demands(&[("gl", &[P::Force])]), None),
            (A::Force, demands(&[("free", &[P::Force])]), None),
            (A::Edit, demands(&[("gl", &[P::Edit])]), Some(1)),
            (A::Apply, demands(&[("gl", &[P::Edit, P::Script])]), Some(1)),
            (A::Apply, demands(&[("ar", &[P::Edit])]), None),
            // Viewing and running change no definition.
            (A::Apply, demands(&[("free", &[P::Edit]), ("gl", &[P::View, P::Run])]), None),
            (A::Force, demands(&[("gl", &[P::Force]), ("ar", &[P::Force])]), Some(24)),
        ] {
            let found = rules.of_change(action, &demanded).map(|rule| rule.expire_ms / 3_600_000);
            assert_eq!(found, expected, "{action:?} {demanded:?}");
        }
        let shared = Demands { everywhere: [P::Edit].into(), ..Demands::default() };
        assert!(rules.of_change(A::Edit, &shared).is_none(), "others guard `force` alone");
        assert!(rules.of_change(A::Force, &shared).is_some());
    }

    #[test]
    fn rules_of_several_groups_hold_together() {
        use GuardedAction as A;
        let named = |name: &str, hours: i64, glass: bool| FourEyesRule {
            approvers: [name.to_owned()].into(),
            break_glass: glass,
            notify: vec![format!("{name}@bank.example")],
            ..rule(&[A::Apply], hours)
        };
        let groups = [(group("gl"), named("li", 8, true)), (group("ar"), named("zhao", 2, false))];
        let rules = FourEyesRules { others: None, groups: groups.into() };
        let edit = &[Permission::Edit][..];
        let both = rules.of_change(A::Apply, &demands(&[("gl", edit), ("ar", edit)]));
        let both = both.expect("both guard it");
        assert_eq!((both.expire_ms, both.break_glass), (2 * 3_600_000, false));
        assert_eq!((both.approvers.len(), both.notify.len()), (2, 2));
        let one = rules.of_change(A::Apply, &demands(&[("gl", edit)])).expect("it guards it");
        assert!(one.break_glass && one.approvers.len() == 1);
    }

    const AUTHOR: UserId = UserId(1);
    const OTHER: UserId = UserId(2);

    struct Case {
        status: ChangeRequestStatus,
        rule: Option<SecondPersonRule>,
        now: i64,
        comment: Option<&'static str>,
    }

    impl Case {
        fn usual() -> Self {
            let rule = Some(SecondPersonRule { expire_ms: 1_000, ..SecondPersonRule::default() });
            Self { status: ChangeRequestStatus::Waiting, rule, now: 999, comment: Some("agreed") }
        }

        fn decide(
            &self,
            verdict: ChangeVerdict,
            (user, name): (UserId, &str),
            grants: &Grants,
        ) -> Result<ChangeRequestStatus, ChangeDecisionRefused> {
            let demands = demands(&[("gl", &[Permission::Edit, Permission::Script])]);
            let change = DecidedChange {
                author: AUTHOR,
                author_name: "ann",
                status: self.status,
                expires: Millis(1_000),
                demands: &demands,
                rule: self.rule.as_ref(),
            };
            let by = ChangeDecider { account: Some((user, grants)), name };
            change.decide(verdict, by, self.comment, Millis(self.now))
        }
    }

    #[test]
    fn a_second_person_with_the_same_rights_decides() {
        use ChangeDecisionRefused as R;
        use {ChangeRequestStatus as S, ChangeVerdict as V};
        let full = grants("gl", Role::Author, &[Permission::Script]);
        let usual = Case::usual();
        let bob = (OTHER, "bob");
        assert_eq!(usual.decide(V::Approve, bob, &full), Ok(S::Approved));
        assert_eq!(usual.decide(V::Reject, bob, &full), Ok(S::Rejected));
        let own = usual.decide(V::Approve, (AUTHOR, "ann"), &full);
        assert_eq!(own, Err(R::OwnChange("ann".to_owned())));
        // Accounts are compared by key, not by name.
        assert_eq!(usual.decide(V::Reject, (AUTHOR, "ann"), &full), Ok(S::Withdrawn));
        let less = grants("gl", Role::Author, &[]);
        let refused = R::NotAllowed(Permission::Script, "group gl".to_owned());
        assert_eq!(usual.decide(V::Approve, bob, &less), Err(refused.clone()));
        assert_eq!(usual.decide(V::Reject, bob, &less), Err(refused));
        let elsewhere = grants("ar", Role::Author, &[Permission::Script]);
        assert!(usual.decide(V::Approve, bob, &elsewhere).is_err());
        let confines = Confines { permissions: [Permission::View].into(), groups: None };
        assert!(usual.decide(V::Approve, bob, &full.clone().within(confines)).is_err());
        let silent = Case { comment: None, ..Case::usual() };
        assert_eq!(silent.decide(V::Reject, bob, &full), Err(R::NoComment));
        assert_eq!(silent.decide(V::Approve, bob, &full), Ok(S::Approved));
        assert_eq!(silent.decide(V::Reject, (AUTHOR, "ann"), &full), Ok(S::Withdrawn));
    }

    #[test]
    fn what_is_over_or_expired_stays_so() {
        use ChangeDecisionRefused as R;
        use {ChangeRequestStatus as S, ChangeVerdict as V};
        let full = grants("*", Role::Admin, &[Permission::Script]);
        let late = Case { now: 1_000, ..Case::usual() };
        let refused = late.decide(V::Approve, (OTHER, "bob"), &full);
        assert_eq!(refused, Err(R::Expired(Millis(1_000))));
        for status in S::ALL.into_iter().filter(|s| *s != S::Waiting) {
            let over = Case { status, ..Case::usual() };
            for verdict in [V::Approve, V::Reject] {
                let refused = over.decide(verdict, (OTHER, "bob"), &full);
                assert_eq!(refused, Err(R::Over(status)));
            }
            assert_eq!(S::parse(status.as_str()), Some(status));
        }
    }

    #[test]
    fn settings_name_approvers_and_who_may_act_alone() {
        use ChangeDecisionRefused as R;
        use {ChangeRequestStatus as S, ChangeVerdict as V};
        let full = grants("gl", Role::Author, &[Permission::Script]);
        let admin = grants("*", Role::Admin, &[Permission::Script]);
        let mut case = Case::usual();
        let rule = case.rule.as_mut().expect("a rule");
        rule.approvers.push(["li".to_owned()].into());
        let refused = case.decide(V::Approve, (OTHER, "bob"), &full);
        assert_eq!(refused, Err(R::NotNamed("li".to_owned())));
        assert_eq!(case.decide(V::Approve, (OTHER, "Li"), &full), Ok(S::Approved));
        let alone = case.decide(V::BreakGlass, (AUTHOR, "ann"), &admin);
        assert_eq!(alone, Err(R::NoBreakGlass));
        case.rule.as_mut().expect("a rule").break_glass = true;
        assert_eq!(case.decide(V::BreakGlass, (AUTHOR, "ann"), &admin), Ok(S::Approved));
        let refused = case.decide(V::BreakGlass, (AUTHOR, "ann"), &full);
        assert_eq!(refused, Err(R::NotAdministrator));
        case.comment = None;
        assert_eq!(case.decide(V::BreakGlass, (AUTHOR, "ann"), &admin), Err(R::NoComment));
        let gone = Case { rule: None, ..Case::usual() };
        assert_eq!(gone.decide(V::BreakGlass, (AUTHOR, "ann"), &admin), Err(R::NoBreakGlass));
        assert_eq!(gone.decide(V::Approve, (OTHER, "bob"), &full), Ok(S::Approved));
    }
}
