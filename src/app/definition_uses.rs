//! Checks what a definition uses of shared objects (data sources, secrets, executors, calendars)
//! against what is stored.

use crate::app::App;
use crate::app::calendars::refuse_absent;
use crate::config::Config;
use crate::domain::id::GroupCode;
use crate::domain::job::Definition;
use crate::domain::permission::access_rules::{AccessRules, ForbiddenUse, SharedResource};
use crate::domain::source::DataSource;
use crate::engine::attempt::secret_reader::refuse_foreign_source;
use crate::secret_store::SecretStores;
use crate::store;
use anyhow::Result;
use std::collections::{BTreeMap, BTreeSet};

/// Whether a group may be named to the author.
pub(super) type GroupFilter<'a> = dyn Fn(&GroupCode) -> bool + Sync + 'a;

/// A definition uses data sources, secrets or executors of other groups.
#[derive(Debug, thiserror::Error)]
#[error(
    "the definition uses what is not for its groups:\n  {}",
    .0.iter().map(|each| format!("{each}; {}", each.hint_text())).collect::<Vec<_>>().join("\n  ")
)]
pub struct ForbiddenUses(Vec<ForbiddenUse>);

impl ForbiddenUses {
    /// The forbidden uses.
    pub fn uses(&self) -> &[ForbiddenUse] {
        &self.0
    }
}

/// A definition uses what its author cannot see: it does not exist, or belongs to other groups.
#[derive(Debug, thiserror::Error)]
#[error(
    "these are not there, or are not for the group that uses them: {}; store them, or ask an administrator of all groups \
     to let the group use them",
    .0.iter().map(|(group, used)| format!("{used} in group {group}")).collect::<Vec<_>>().join(", ")
)]
pub struct UnknownUses(pub(in crate::app) BTreeSet<(GroupCode, SharedResource)>);

impl App {
    /// Checks what a definition uses against what is stored, like `apply`, without writing. `sees`:
    /// which groups may be named to the author; `None`: all.
    ///
    /// # Errors
    ///
    /// What `apply` refuses: [`ForbiddenUses`], [`UnknownUses`], [`ForeignPassword`], missing
    /// calendars.
    pub async fn look_at_uses(
        &self,
        wanted: &Definition,
        sees: Option<&GroupFilter<'_>>,
    ) -> Result<Vec<UnknownSecret>> {
        let stored = {
            let mut tx = self.db.begin_read().await?;
            self.secret_stores.add_access(store::job::shared_alone(&mut tx).await?)
        };
        refuse_uses(&stored, wanted, sees)?;
        refuse_foreign_passwords(&self.secret_stores, wanted)?;
        let mut rules = AccessRules::collect(&stored);
        rules.merge_definition(wanted);
        let unknown = rules.unknown_secrets(wanted).into_iter();
        Ok(unknown.map(|(name, used_by)| UnknownSecret { name, used_by }).collect())
    }

    /// Refuses parameters of an order that name missing secrets, or secrets that these groups may
    /// not use and whose rule names a group that the caller does not see.
    pub async fn refuse_unknown_secrets(
        &self,
        groups: &[&GroupCode],
        params: &BTreeMap<String, String>,
        sees: &(dyn Fn(&GroupCode) -> bool + Sync),
    ) -> Result<()> {
        let stored = self.definition().await?;
        let rules = AccessRules::collect(&stored);
        let unknown: BTreeSet<_> =
            groups.iter().flat_map(|group| rules.unknown_params(group, params, sees)).collect();
        match unknown.is_empty() {
            true => Ok(()),
            false => Err(UnknownUses(unknown).into()),
        }
    }
}

/// Refuses missing calendars, and data sources, secrets and executors that belong to groups of
/// other files.
pub(super) fn refuse_uses(
    stored: &Definition,
    wanted: &Definition,
    sees: Option<&GroupFilter<'_>>,
) -> Result<()> {
    refuse_absent(&stored.calendars, wanted)?;
    let mut rules = AccessRules::collect(stored);
    rules.merge_definition(wanted);
    if let Some(sees) = sees {
        let unknown = rules.unknown_uses(wanted, sees);
        if !unknown.is_empty() {
            return Err(UnknownUses(unknown).into());
        }
    }
    Ok(refuse_forbidden_uses(&rules, wanted)?)
}

/// The data sources and secrets of a file may belong to groups of other files.
fn refuse_forbidden_uses(rules: &AccessRules, wanted: &Definition) -> Result<(), ForbiddenUses> {
    let uses = rules.forbidden_uses(wanted);
    if uses.is_empty() { Ok(()) } else { Err(ForbiddenUses(uses)) }
}

/// Refuses uses that the settings alone forbid, before there is a database.
pub fn refuse_uses_by_settings(config: &Config, defs: &Definition) -> Result<()> {
    let defs = config.secret_stores()?.add_access(defs.clone());
    let mut rules = AccessRules::collect(&defs);
    rules.merge_definition(&defs);
    Ok(refuse_forbidden_uses(&rules, &defs)?)
}

/// A source would read its password from a secret of a store that is not for it.
#[derive(Debug, thiserror::Error)]
#[error("{}", .0.join("\n"))]
pub struct ForeignPassword(Vec<String>);

/// Refuses sources whose password is a secret of a store that is not for them: an attempt would be
/// refused too.
pub(super) fn refuse_foreign_passwords(stores: &SecretStores, wanted: &Definition) -> Result<()> {
    let refused = |source: &DataSource| {
        let name = source.password_secret.as_deref()?;
        refuse_foreign_source(name, stores.find_secret(name)?, source).err()
    };
    let refused: Vec<String> = wanted.sources.iter().filter_map(refused).collect();
    if refused.is_empty() { Ok(()) } else { Err(ForeignPassword(refused).into()) }
}

/// A secret that a definition names and that does not exist yet; its uses fail until it does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownSecret {
    pub name: String,
    /// Descriptions of its uses.
    pub used_by: BTreeSet<String>,
}

impl UnknownSecret {
    /// What is missing, and for whom.
    pub fn describe(&self) -> String {
        let users: Vec<&str> = self.used_by.iter().map(String::as_str).take(5).collect();
        let more = self.used_by.len().saturating_sub(users.len());
        let more = if more == 0 { String::new() } else { format!(" and {more} more") };
        format!("secret {} is not known; it is used by {}{more}", self.name, users.join(", "))
    }

    /// The hint for the user.
    pub fn fix(&self) -> String {
        format!(
            "store it before they run (procession secret set {}), define it under secrets:, or name it under \
             [secret_stores] in procession.toml of every node",
            self.name
        )
    }
}
