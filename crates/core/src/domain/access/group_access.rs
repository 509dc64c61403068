//! Which groups may use a data source, a secret or an executor group. These belong to the
//! installation, so without a list an author of one group could run SQL on another group's
//! database, print its passwords and call its handlers.

use crate::domain::id::GroupCode;
use serde::{Deserialize, Serialize};

/// Access list of one data source, secret or executor group.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroupAccess {
    /// The owning group, which always has access.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner_group: Option<GroupCode>,
    /// Other groups with access. If absent: none when there is an owner, otherwise every group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub groups: Option<Vec<GroupCode>>,
}

impl GroupAccess {
    /// Whether jobs of a group may use it.
    pub fn allows(&self, group: &GroupCode) -> bool {
        self.owner_group.as_ref() == Some(group)
            || match &self.groups {
                Some(groups) => groups.contains(group),
                None => self.owner_group.is_none(),
            }
    }

    /// Whether it names a group that the user may not view.
    pub fn names_unseen_group(&self, sees: &dyn Fn(&GroupCode) -> bool) -> bool {
        let named = self.owner_group.iter().chain(self.groups.iter().flatten());
        named.into_iter().any(|group| !sees(group))
    }

    /// Whether every group has access, including future ones.
    pub fn is_for_every_group(&self) -> bool {
        self.owner_group.is_none() && self.groups.is_none()
    }

    /// `every group`, or the groups with access, the owner first.
    pub fn describe(&self) -> String {
        if self.is_for_every_group() {
            return "every group".to_owned();
        }
        let owner = self.owner_group.iter().map(|owner| format!("{owner} (owner)"));
        let others = self.groups.iter().flatten().filter(|g| Some(*g) != self.owner_group.as_ref());
        let names: Vec<String> = owner.chain(others.map(ToString::to_string)).collect();
        if names.is_empty() { "no group".to_owned() } else { names.join(", ") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group(code: &str) -> GroupCode {
        GroupCode::parse(code).expect("a code")
    }

    fn access(owner: Option<&str>, groups: Option<&[&str]>) -> GroupAccess {
        GroupAccess {
            owner_group: owner.map(group),
            groups: groups.map(|codes| codes.iter().map(|code| group(code)).collect()),
        }
    }

    #[test]
    fn an_owner_makes_it_private_and_a_list_opens_it() {
        for (owner, groups, for_a, for_b, words) in [
            (None, None, true, true, "every group"),
            (Some("a"), None, true, false, "a (owner)"),
            (Some("a"), Some(&["b"][..]), true, true, "a (owner), b"),
            (None, Some(&["b"][..]), false, true, "b"),
            (None, Some(&[][..]), false, false, "no group"),
        ] {
            let access = access(owner, groups);
            assert_eq!(access.allows(&group("a")), for_a, "{words}");
            assert_eq!(access.allows(&group("b")), for_b, "{words}");
            assert_eq!(access.describe(), words);
        }
    }
}
