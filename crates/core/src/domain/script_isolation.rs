//! Which user of the system runs the scripts of a group.
//!
//! A script that runs as Procession's own user reads the secret key, writes the metadata file and sees the
//! environment of other groups' scripts: the right to edit one is then the right to everything.

use crate::domain::id::GroupCode;
use std::collections::BTreeMap;

/// The key of the user for groups that have none of their own.
pub const ANY_GROUP: &str = "*";

/// Whether a script may run as Procession's own user.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IsolationPolicy {
    /// It may where nothing else is set.
    #[default]
    Auto,
    /// It may not.
    Required,
}

impl IsolationPolicy {
    /// The policy that a setting names.
    pub fn parse(word: &str) -> Option<Self> {
        match word {
            "auto" => Some(Self::Auto),
            "required" => Some(Self::Required),
            _ => None,
        }
    }
}

/// Whether this process may start a program as another user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UserSwitching {
    /// It is root.
    Possible,
    /// It is not.
    Impossible,
}

/// The users of scripts, as the operator set them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScriptUsers {
    /// By group, or for all others under `ANY_GROUP`.
    pub by_group: BTreeMap<String, String>,
    /// Whether a group may be without.
    pub policy: IsolationPolicy,
}

/// Why a script is not started.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ScriptRefusal {
    /// Nobody said who runs it.
    #[error(
        "scripts of group {0} have no user of their own, and script.isolation is \"required\"; add {0} = \"USER\" \
         to [script.run_as] of procession.toml"
    )]
    NoUser(GroupCode),
    /// This process cannot become that user.
    #[error(
        "scripts of group {group} run as {user} (script.run_as), which only root can start; run serve as root, or \
         on a node that does"
    )]
    CannotSwitch {
        /// Whose script.
        group: GroupCode,
        /// Who should run it.
        user: String,
    },
}

impl ScriptUsers {
    /// The user that runs scripts of this group; `None` is Procession's own.
    pub fn choose(
        &self,
        group: &GroupCode,
        switching: UserSwitching,
    ) -> Result<Option<&str>, ScriptRefusal> {
        let user = self.by_group.get(group.as_str()).or_else(|| self.by_group.get(ANY_GROUP));
        match (user, switching, self.policy) {
            (Some(user), UserSwitching::Possible, _) => Ok(Some(user)),
            (Some(user), UserSwitching::Impossible, _) => {
                Err(ScriptRefusal::CannotSwitch { group: group.clone(), user: user.clone() })
            }
            (None, _, IsolationPolicy::Auto) => Ok(None),
            (None, _, IsolationPolicy::Required) => Err(ScriptRefusal::NoUser(group.clone())),
        }
    }

    /// What an operator should know at the start: that scripts have the rights of the service.
    pub fn warning(&self) -> Option<&'static str> {
        let is_covered =
            self.policy == IsolationPolicy::Required || self.by_group.contains_key(ANY_GROUP);
        (!is_covered).then_some(
            "scripts of groups without a user in [script.run_as] run as Procession's own user: who may edit them can \
             do what Procession can, and reads its secrets and its database; script.isolation = \"required\" \
             refuses them",
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_has_its_user_or_that_of_all_or_none() {
        let group = |code: &str| GroupCode::parse(code).expect("a group");
        let users = |pairs: &[(&str, &str)], policy| ScriptUsers {
            by_group: pairs
                .iter()
                .map(|(group, user)| ((*group).to_owned(), (*user).to_owned()))
                .collect(),
            policy,
        };
        let (yes, no) = (UserSwitching::Possible, UserSwitching::Impossible);
        let both = users(&[("ar", "etl_ar"), ("*", "etl")], IsolationPolicy::Auto);
        assert_eq!(both.choose(&group("ar"), yes), Ok(Some("etl_ar")));
        assert_eq!(both.choose(&group("gl"), yes), Ok(Some("etl")));
        let said = both.choose(&group("ar"), no).expect_err("not root").to_string();
        assert!(
            said.contains("group ar run as etl_ar") && said.contains("run serve as root"),
            "{said}"
        );
        let one = users(&[("ar", "etl_ar")], IsolationPolicy::Auto);
        assert_eq!(one.choose(&group("gl"), no), Ok(None));
        assert!(one.warning().is_some() && both.warning().is_none());
        let strict = users(&[("ar", "etl_ar")], IsolationPolicy::Required);
        let said = strict.choose(&group("gl"), yes).expect_err("nobody runs it").to_string();
        assert!(said.contains("add gl = \"USER\" to [script.run_as]"), "{said}");
        assert_eq!(strict.choose(&group("ar"), yes), Ok(Some("etl_ar")));
        assert_eq!(strict.warning(), None);
    }
}
