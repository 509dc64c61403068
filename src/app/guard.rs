//! What is looked at once more where nobody else writes, before a definition is changed.

use crate::app::its_part;
use crate::domain::id::GroupCode;
use crate::domain::job::Definition;
use crate::domain::permission::required_permissions::Demands;
use crate::domain::time::Millis;
use crate::store::{Tx, version};
use anyhow::Result;
use std::collections::BTreeMap;

/// A change of a definition, as it is about to be made.
#[derive(Clone, Copy, Debug)]
pub struct DefinitionChange<'a> {
    /// The permissions that it takes.
    pub demands: &'a Demands,
    /// What is stored of what the new definition speaks about.
    pub was: &'a Definition,
    /// The new definition.
    pub is: &'a Definition,
}

/// What is looked at once more, and refuses.
#[derive(Clone, Copy)]
pub struct Guard<'a> {
    /// Refuses what the author may not do, or did not mean.
    pub allow: &'a (dyn Fn(DefinitionChange<'_>) -> Result<()> + Sync),
    /// The versions that the author has looked at.
    pub seen: &'a BTreeMap<GroupCode, u32>,
    /// Of which groups the author hears; none: of all. What others have is refused to an author like what nobody has.
    pub sees: Option<&'a (dyn Fn(&GroupCode) -> bool + Sync)>,
}

/// A group was changed by somebody else since its version was looked at.
#[derive(Clone, Debug, thiserror::Error)]
#[error(
    "group {group} is version {is} now, and not {seen}: {author} changed it at {at}{}; look at it again, \
     and then make the change", .remark.as_ref().map(|r| format!(" ({r})")).unwrap_or_default()
)]
pub struct LostUpdate {
    /// The group.
    pub group: GroupCode,
    /// The version that was looked at.
    pub seen: u32,
    /// The version that it is.
    pub is: u32,
    /// Who changed it last.
    pub author: String,
    /// When.
    pub at: Millis,
    /// What was said about it.
    pub remark: Option<String>,
}

impl Guard<'_> {
    /// Of whoever may do everything, and knows what is there.
    pub(in crate::app) fn unrestricted() -> Self {
        static NOTHING: BTreeMap<GroupCode, u32> = BTreeMap::new();
        Self { allow: &|_| Ok(()), seen: &NOTHING, sees: None }
    }

    /// Looks at what is stored and at what shall be.
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
