//! Checks that run within the transaction of a definition change, before it is made.

use crate::app::its_part;
use crate::domain::id::GroupCode;
use crate::domain::job::Definition;
use crate::domain::permission::required_permissions::Demands;
use crate::domain::time::Millis;
use crate::store::{Tx, version};
use anyhow::Result;
use std::collections::BTreeMap;

/// A definition change that is about to be made.
#[derive(Clone, Copy, Debug)]
pub struct DefinitionChange<'a> {
    /// The permissions that it requires.
    pub demands: &'a Demands,
    /// The stored part that the new definition covers.
    pub was: &'a Definition,
    /// The new definition.
    pub is: &'a Definition,
}

/// Checks within the transaction, which may refuse.
#[derive(Clone, Copy)]
pub struct Guard<'a> {
    /// Refuses what the author may not do, or did not intend.
    pub allow: &'a (dyn Fn(DefinitionChange<'_>) -> Result<()> + Sync),
    /// The versions that the author has seen.
    pub seen: &'a BTreeMap<GroupCode, u32>,
    /// Which groups may be named to the author; `None`: all. A name of another group is refused in
    /// the same way as an unknown one.
    pub sees: Option<&'a (dyn Fn(&GroupCode) -> bool + Sync)>,
}

/// A group was changed by another author since the version that was seen.
#[derive(Clone, Debug, thiserror::Error)]
#[error(
    "group {group} is version {is} now, and not {seen}: {author} changed it at {at}{}; look at it again, \
     and then make the change", .remark.as_ref().map(|r| format!(" ({r})")).unwrap_or_default()
)]
pub struct LostUpdate {
    pub group: GroupCode,
    /// The version that was seen.
    pub seen: u32,
    /// The present version.
    pub is: u32,
    /// The author of the last change.
    pub author: String,
    pub at: Millis,
    /// The remark on the last change.
    pub remark: Option<String>,
}

impl Guard<'_> {
    /// For a caller with all permissions.
    pub(in crate::app) fn unrestricted() -> Self {
        static NOTHING: BTreeMap<GroupCode, u32> = BTreeMap::new();
        Self { allow: &|_| Ok(()), seen: &NOTHING, sees: None }
    }

    /// Checks the stored and the new definition.
    pub(in crate::app) async fn check_change(
        &self,
        tx: &mut Tx,
        stored: &Definition,
        wanted: &Definition,
    ) -> Result<()> {
        let was = its_part(stored, wanted);
        let demands = Demands::for_change(stored, &was, wanted);
        (self.allow)(DefinitionChange { demands: &demands, was: &was, is: wanted })?;
        for (group, seen) in self.seen {
            let is = version::last_number(tx, group).await?;
            if is != *seen {
                return Err(lost_update(tx, group, *seen).await?.into());
            }
        }
        Ok(())
    }
}

async fn lost_update(tx: &mut Tx, group: &GroupCode, seen: u32) -> Result<LostUpdate> {
    let last = version::of_group(tx, group).await?.pop();
    let last = last.map(|v| (v.no, v.author, v.at, v.remark));
    let (is, author, at, remark) =
        last.unwrap_or((0, "nobody".to_owned(), Millis::default(), None));
    Ok(LostUpdate { group: group.clone(), seen, is, author, at, remark })
}
