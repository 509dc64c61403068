//! Who may do what to which group: permissions, the roles that hold them, and grants of roles.

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

/// One kind of thing that people do. Each route of the API names the one it needs.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Permission {
    /// To see definitions, batches, logs and pictures.
    View,
    /// To open batches and fire schedules; to pause, resume, kill, hold, release, start and start over.
    Run,
    /// To say that something is so which did not happen: force, skip, ice, no-exec, start without parents.
    Force,
    /// To change definitions, schedules and calendars.
    Edit,
    /// To change what is executed: scripts, SQL, names of procedures, HTTP calls.
    Script,
    /// Of one group: to grant roles in it. Of all groups: users, secrets, settings, processes, old rows.
    Admin,
}

impl Permission {
    /// All, in order.
    pub const ALL: [Self; 6] =
        [Self::View, Self::Run, Self::Force, Self::Edit, Self::Script, Self::Admin];

    /// Its word in the API.
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

    /// The permission of this word.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|p| p.as_str() == word)
    }

    /// Whether it is to change what a group is, or what is said of its jobs; not to look and not to run.
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

/// What somebody is in a group. Roles are no ladder: an author does not run, an operator does not edit,
/// so that who writes a month-end job and who forces it are two people.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Sees.
    Viewer,
    /// Sees and runs.
    Operator,
    /// Sees and edits.
    Author,
    /// Sees, runs, forces, edits and grants; in all groups, administers the installation.
    Admin,
}

impl Role {
    /// All, in order.
    pub const ALL: [Self; 4] = [Self::Viewer, Self::Operator, Self::Author, Self::Admin];

    /// Its word in the API and in tables.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Viewer => "viewer",
            Self::Operator => "operator",
            Self::Author => "author",
            Self::Admin => "admin",
        }
    }

    /// The role of this word.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|r| r.as_str() == word)
    }

    /// What a token must be confined to, at least, to act in this role of its owner.
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

/// Where a grant holds.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Where {
    /// In every group, also those to come, and in what belongs to no group.
    Everywhere,
    /// In one group.
    Group(GroupCode),
}

impl Where {
    /// Its word in tables: `*` is everywhere.
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

/// A role somewhere, and rights beside it: forcing for an operator, executable text for an author.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Grant {
    /// Where.
    pub place: Where,
    /// As what.
    pub role: Role,
    /// `Force` or `Script`, given one by one; no role holds `Script` by itself.
    pub rights: BTreeSet<Permission>,
}

impl Grant {
    /// Whether it lets somebody do this.
    pub fn holds(&self, permission: Permission) -> bool {
        self.role.holds(permission) || self.rights.contains(&permission)
    }
}

/// Everything that somebody may do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Grants {
    grants: Vec<Grant>,
    /// What a token is confined to; none is no confinement.
    only: Option<Confines>,
}

/// What a token is confined to, within what its owner may do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Confines {
    /// These permissions.
    pub permissions: BTreeSet<Permission>,
    /// These groups; none is wherever its owner may.
    pub groups: Option<BTreeSet<GroupCode>>,
}

impl Grants {
    /// Of somebody who has these.
    pub fn new(grants: Vec<Grant>) -> Self {
        Self { grants, only: None }
    }

    /// No more than these confines let through.
    pub fn within(self, confines: Confines) -> Self {
        Self { only: Some(confines), ..self }
    }

    /// Whether something may be done in a group.
    pub fn allow(&self, permission: Permission, group: &GroupCode) -> bool {
        let inside = self.only.as_ref().is_none_or(|only| {
            only.permissions.contains(&permission)
                && only.groups.as_ref().is_none_or(|groups| groups.contains(group))
        });
        inside && self.grants.iter().any(|g| g.place.covers(group) && g.holds(permission))
    }

    /// Whether somebody has a role in a group; an administrator has each of them. A token has it that may
    /// do what the role is for.
    pub fn has_role(&self, role: Role, group: &GroupCode) -> bool {
        let is_held =
            |g: &Grant| g.place.covers(group) && (g.role == role || g.role == Role::Admin);
        let inside = self.only.as_ref().is_none_or(|only| {
            only.permissions.contains(&role.acts_by())
                && only.groups.as_ref().is_none_or(|groups| groups.contains(group))
        });
        inside && self.grants.iter().any(is_held)
    }

    /// Whether something may be done to what belongs to no group.
    pub fn allow_everywhere(&self, permission: Permission) -> bool {
        let inside = self
            .only
            .as_ref()
            .is_none_or(|only| only.permissions.contains(&permission) && only.groups.is_none());
        let everywhere = |g: &&Grant| g.place == Where::Everywhere;
        inside && self.grants.iter().filter(everywhere).any(|g| g.holds(permission))
    }

    /// Whether something may be done in at least one group.
    pub fn allow_somewhere(&self, permission: Permission) -> bool {
        self.allow_everywhere(permission)
            || self.places(permission).is_none_or(|groups| !groups.is_empty())
    }

    /// The groups in which something may be done; `None` when that is all of them.
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

    /// What they are confined to.
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
