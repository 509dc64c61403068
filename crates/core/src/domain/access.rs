//! Authorization rules: permissions, the roles that contain them, and grants of roles in groups.

pub mod approval;
pub mod audit_chain;
pub mod certificate_expiry;
pub mod directory_account;
pub mod group_access;
pub mod legacy_password;
pub mod network;
pub mod second_factor;
pub mod user;

use crate::domain::id::GroupCode;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fmt;

/// A permission. Each route of the API names the one it requires.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Permission {
    /// View definitions, batches, logs and pictures.
    View,
    /// Open batches and fire schedules; pause, resume, kill, hold, release, start and rerun.
    Run,
    /// Record something that did not happen: force, skip, ice, no-exec, start without parents.
    Force,
    /// Change definitions, schedules and calendars.
    Edit,
    /// Change what is executed: scripts, SQL, names of procedures, HTTP calls.
    Script,
    /// In one group: grant roles. In all groups: administer users, secrets, settings, nodes and
    /// retention.
    Admin,
}

impl Permission {
    /// Every permission, in order.
    pub const ALL: [Self; 6] =
        [Self::View, Self::Run, Self::Force, Self::Edit, Self::Script, Self::Admin];

    /// The word in the API.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::View => "view",
            Self::Run => "run",
            Self::Force => "force",
            Self::Edit => "edit",
            Self::Script => "script",
            Self::Admin => "admin",
        }
    }

    /// Parses the word.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|p| p.as_str() == word)
    }

    /// Whether it changes a group or records statements about its jobs, as opposed to viewing and
    /// running.
    pub fn changes(self) -> bool {
        match self {
            Self::Force | Self::Edit | Self::Script | Self::Admin => true,
            Self::View | Self::Run => false,
        }
    }
}

impl fmt::Display for Permission {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// A user's role in a group. Roles are not a hierarchy: an author does not run, an operator does
/// not edit, so that writing a month-end job and forcing it take two people.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// May view.
    Viewer,
    /// May view and run.
    Operator,
    /// May view and edit.
    Author,
    /// May view, run, force, edit and grant; in all groups, administers the installation.
    Admin,
}

impl Role {
    /// Every role, in order.
    pub const ALL: [Self; 4] = [Self::Viewer, Self::Operator, Self::Author, Self::Admin];

    /// The word in the API and in tables.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Viewer => "viewer",
            Self::Operator => "operator",
            Self::Author => "author",
            Self::Admin => "admin",
        }
    }

    /// Parses the word.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|r| r.as_str() == word)
    }

    /// The permission that a token needs to act in this role of its owner.
    fn acts_by(self) -> Permission {
        match self {
            Self::Viewer => Permission::View,
            Self::Operator => Permission::Run,
            Self::Author => Permission::Edit,
            Self::Admin => Permission::Admin,
        }
    }

    fn holds(self, permission: Permission) -> bool {
        use Permission as P;
        match self {
            Self::Viewer => permission == P::View,
            Self::Operator => matches!(permission, P::View | P::Run),
            Self::Author => matches!(permission, P::View | P::Edit),
            Self::Admin => permission != P::Script,
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// Scope of a grant.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Where {
    /// Every group, including future ones, and everything outside groups.
    Everywhere,
    /// One group.
    Group(GroupCode),
}

impl Where {
    /// The word in tables: `*` is everywhere.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Everywhere => "*",
            Self::Group(code) => code.as_str(),
        }
    }

    fn covers(&self, group: &GroupCode) -> bool {
        match self {
            Self::Everywhere => true,
            Self::Group(code) => code == group,
        }
    }
}

/// A role in a scope, with additional rights: forcing for an operator, executable text for an
/// author.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Grant {
    /// Scope.
    pub place: Where,
    /// Role.
    pub role: Role,
    /// `Force` or `Script`, granted individually; no role includes `Script`.
    pub rights: BTreeSet<Permission>,
}

impl Grant {
    /// Whether it includes a permission.
    pub fn holds(&self, permission: Permission) -> bool {
        self.role.holds(permission) || self.rights.contains(&permission)
    }
}

/// All grants of a user, and the restrictions of the token in use.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Grants {
    grants: Vec<Grant>,
    /// Restrictions of the token; none: unrestricted.
    only: Option<Confines>,
}

/// Restrictions of a token, within what its owner may do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Confines {
    /// Only these permissions.
    pub permissions: BTreeSet<Permission>,
    /// Only these groups; none: every group of its owner.
    pub groups: Option<BTreeSet<GroupCode>>,
}

impl Grants {
    /// The grants of a user, unrestricted.
    pub fn new(grants: Vec<Grant>) -> Self {
        Self { grants, only: None }
    }

    /// The same grants restricted to `confines`.
    pub fn within(self, confines: Confines) -> Self {
        Self { only: Some(confines), ..self }
    }

    /// Whether a permission is held in a group.
    pub fn allow(&self, permission: Permission, group: &GroupCode) -> bool {
        let inside = self.only.as_ref().is_none_or(|only| {
            only.permissions.contains(&permission)
                && only.groups.as_ref().is_none_or(|groups| groups.contains(group))
        });
        inside && self.grants.iter().any(|g| g.place.covers(group) && g.holds(permission))
    }

    /// Whether a role is held in a group; an administrator holds each of them. A token holds a role
    /// if it may do what the role is for.
    pub fn has_role(&self, role: Role, group: &GroupCode) -> bool {
        let is_held =
            |g: &Grant| g.place.covers(group) && (g.role == role || g.role == Role::Admin);
        let inside = self.only.as_ref().is_none_or(|only| {
            only.permissions.contains(&role.acts_by())
                && only.groups.as_ref().is_none_or(|groups| groups.contains(group))
        });
        inside && self.grants.iter().any(is_held)
    }

    /// Whether a permission is held for things outside groups.
    pub fn allow_everywhere(&self, permission: Permission) -> bool {
        let inside = self
            .only
            .as_ref()
            .is_none_or(|only| only.permissions.contains(&permission) && only.groups.is_none());
        let everywhere = |g: &&Grant| g.place == Where::Everywhere;
        inside && self.grants.iter().filter(everywhere).any(|g| g.holds(permission))
    }

    /// Whether a permission is held in at least one group.
    pub fn allow_somewhere(&self, permission: Permission) -> bool {
        self.allow_everywhere(permission)
            || self.places(permission).is_none_or(|groups| !groups.is_empty())
    }

    /// The groups in which a permission is held; `None`: all of them.
    pub fn places(&self, permission: Permission) -> Option<BTreeSet<GroupCode>> {
        let confined = self.only.as_ref();
        if confined.is_some_and(|only| !only.permissions.contains(&permission)) {
            return Some(BTreeSet::new());
        }
        let within = confined.and_then(|only| only.groups.clone());
        let holding = || self.grants.iter().filter(|g| g.holds(permission));
        if holding().any(|g| g.place == Where::Everywhere) {
            return within;
        }
        let named = holding().filter_map(|g| match &g.place {
            Where::Everywhere => None,
            Where::Group(code) => Some(code.clone()),
        });
        let kept = named.filter(|code| within.as_ref().is_none_or(|groups| groups.contains(code)));
        Some(kept.collect())
    }

    /// The restrictions.
    pub fn confines(&self) -> Option<&Confines> {
        self.only.as_ref()
    }

    /// The grants themselves.
    pub fn as_slice(&self) -> &[Grant] {
        &self.grants
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group(code: &str) -> GroupCode {
        GroupCode::parse(code).expect("a code")
    }

    fn grant(place: &str, role: Role, rights: &[Permission]) -> Grant {
        let place = if place == "*" { Where::Everywhere } else { Where::Group(group(place)) };
        Grant { place, role, rights: rights.iter().copied().collect() }
    }

    #[test]
    fn each_role_holds_its_own_and_none_holds_script() {
        use Permission as P;
        for (role, held) in [
            (Role::Viewer, &[P::View][..]),
            (Role::Operator, &[P::View, P::Run]),
            (Role::Author, &[P::View, P::Edit]),
            (Role::Admin, &[P::View, P::Run, P::Force, P::Edit, P::Admin]),
        ] {
            let grants = Grants::new(vec![grant("gl", role, &[])]);
            for permission in P::ALL {
                let may = grants.allow(permission, &group("gl"));
                assert_eq!(may, held.contains(&permission), "{role} {permission}");
                assert!(!grants.allow(permission, &group("ar")), "{role} elsewhere");
                assert!(!grants.allow_everywhere(permission), "{role} of one group");
            }
        }
    }

    #[test]
    fn rights_stand_beside_the_role_and_only_where_they_were_given() {
        let grants = Grants::new(vec![
            grant("gl", Role::Operator, &[Permission::Force]),
            grant("*", Role::Viewer, &[]),
        ]);
        assert!(grants.allow(Permission::Force, &group("gl")));
        assert!(!grants.allow(Permission::Force, &group("ar")));
        assert!(grants.allow(Permission::View, &group("ar")));
        assert_eq!(grants.places(Permission::Force), Some([group("gl")].into()));
        assert_eq!(grants.places(Permission::View), None);
    }

    #[test]
    fn a_token_never_may_more_than_its_owner_nor_than_it_says() {
        let owner = Grants::new(vec![grant("*", Role::Operator, &[])]);
        let confines = Confines {
            permissions: [Permission::View, Permission::Edit].into(),
            groups: Some([group("gl")].into()),
        };
        let token = owner.within(confines);
        assert!(token.allow(Permission::View, &group("gl")));
        assert!(!token.allow(Permission::View, &group("ar")));
        assert!(!token.allow(Permission::Run, &group("gl")), "not said");
        assert!(!token.allow(Permission::Edit, &group("gl")), "not its owner's");
        assert!(!token.allow_everywhere(Permission::View));
        assert_eq!(token.places(Permission::View), Some([group("gl")].into()));
        assert!(!token.allow_somewhere(Permission::Run));
    }
}
