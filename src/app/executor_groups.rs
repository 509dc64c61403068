//! Executor groups: added, changed and removed by administrators, each change recorded.

use crate::app::App;
use crate::domain::access::group_access::GroupAccess;
use crate::domain::executor::address::{BadAddress, ExecutorUrl, HostPattern};
use crate::domain::executor::{Addressing, ExecutorGroup, GluePolicy, Registration};
use crate::domain::time::Millis;
use crate::domain::xxl::xxl_run::AppName;
use crate::engine::secrets::executor_token::{self, TokenError};
use crate::engine::xxl::admin::registry_api::refuse_own_port;
use crate::store::audit::{Operator, record_one as record};
use crate::store::executor_group::{self as groups, ADDRESSES_MOST, KeptToken, StoredGroup};
use crate::store::{self, Tx, executor_registry, executor_run};
use anyhow::{Context as _, Result};
use secrecy::SecretString;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr};

/// Maximum length of a title, in characters.
const TITLE_MAX: usize = 100;

/// Why a change of an executor group is refused; the message contains a hint.
#[derive(Debug, thiserror::Error)]
pub enum BadGroup {
    /// No group has this name.
    #[error("there is no executor group {0}; procession executor-group list shows them")]
    NotThere(AppName),
    /// The name is taken.
    #[error("there is an executor group {0} already; change it with procession executor-group set")]
    Taken(AppName),
    /// The title is invalid.
    #[error("the title has no character, a control character, or more than 100; use 1 to 100")]
    Title,
    /// An address is invalid.
    #[error("{0}: {1}")]
    Address(String, BadAddress),
    /// Too many addresses.
    #[error(
        "an executor group has {ADDRESSES_MOST} addresses at most; let executors register instead"
    )]
    Addresses,
    /// The group has unfinished runs.
    #[error(
        "executor group {app} has {open} runs that are not over; wait for them, or stop their jobs first"
    )]
    Busy {
        app: AppName,
        /// Number of unfinished runs.
        open: i64,
    },
    /// The token is invalid.
    #[error(transparent)]
    Token(#[from] TokenError),
}

/// A change to a group; `None` fields stay unchanged.
#[derive(Clone, Debug, Default)]
pub struct GroupChange {
    pub title: Option<String>,
    /// How its executors are found.
    pub addressing: Option<Addressing>,
    /// Whether scripts may be sent to them.
    pub glue: Option<GluePolicy>,
    /// Which groups of jobs may use them.
    pub access: Option<GroupAccess>,
}

/// A group for display.
#[derive(Clone, Debug)]
pub struct GroupSeen {
    pub stored: StoredGroup,
    /// Its executors, including those no longer alive.
    pub registered: Vec<Registration>,
    /// Number of its unfinished runs.
    pub open_runs: i64,
}

impl App {
    /// Every executor group, with its executors.
    pub async fn executor_groups(&self) -> Result<(Vec<GroupSeen>, Millis)> {
        let now = self.clock.now();
        let mut tx = self.db.begin_read().await?;
        let mut seen = Vec::new();
        let all = groups::list_groups(&mut tx).await?;
        let registered = executor_registry::list_executors(&mut tx, None).await?;
        for stored in all {
            let own = |there: &&Registration| there.app_name == stored.group.app_name;
            let registered = registered.iter().filter(own).cloned().collect();
            let open_runs = executor_run::open_runs(&mut tx, &stored.group.app_name).await?;
            seen.push(GroupSeen { stored, registered, open_runs });
        }
        Ok((seen, now))
    }

    /// One of them.
    pub async fn executor_group(&self, app: &AppName) -> Result<(GroupSeen, Millis)> {
        let now = self.clock.now();
        let mut tx = self.db.begin_read().await?;
        let stored = there(&mut tx, app).await?;
        let registered = executor_registry::list_executors(&mut tx, Some(app)).await?;
        let open_runs = executor_run::open_runs(&mut tx, app).await?;
        Ok((GroupSeen { stored, registered, open_runs }, now))
    }

    /// Adds a group with this token; returns a generated token.
    pub async fn add_executor_group(
        &self,
        by: &Operator,
        group: ExecutorGroup,
        chosen: Option<SecretString>,
    ) -> Result<Option<SecretString>> {
        let group = checked(group, &self.config.own_ports()?)?;
        let (made, token) = token_of(chosen)?;
        let kept = executor_token::seal_token(&group.app_name, &token).map_err(BadGroup::Token)?;
        let now = self.clock.now();
        let mut tx = self.db.begin().await?;
        if groups::find_group(&mut tx, &group.app_name).await?.is_some() {
            return Err(BadGroup::Taken(group.app_name).into());
        }
        match groups::add_group(&mut tx, &group, &kept, now).await {
            Err(error) if store::is_taken(&error) => {
                return Err(BadGroup::Taken(group.app_name).into());
            }
            added => added?,
        };
        let detail = json!({ "app_name": group.app_name, "after": shown(&group) });
        record(&mut tx, by, "executor-group add", detail, now).await?;
        tx.commit().await.context("add the executor group")?;
        Ok(made)
    }

    /// Changes a group; returns its new state.
    pub async fn set_executor_group(
        &self,
        by: &Operator,
        app: &AppName,
        change: GroupChange,
    ) -> Result<ExecutorGroup> {
        let now = self.clock.now();
        let mut tx = self.db.begin().await?;
        let before = there(&mut tx, app).await?.group;
        let after = ExecutorGroup {
            app_name: app.clone(),
            title: change.title.unwrap_or_else(|| before.title.clone()),
            addressing: change.addressing.unwrap_or_else(|| before.addressing.clone()),
            glue: change.glue.unwrap_or(before.glue),
            access: change.access.unwrap_or_else(|| before.access.clone()),
        };
        let after = checked(after, &self.config.own_ports()?)?;
        if after != before {
            groups::update_group(&mut tx, &after, now).await?;
            let detail =
                json!({ "app_name": app, "before": shown(&before), "after": shown(&after) });
            record(&mut tx, by, "executor-group set", detail, now).await?;
            tx.commit().await.context("change the executor group")?;
        }
        Ok(after)
    }

    /// Replaces the token of a group, generated unless given; the old one is invalid from then on.
    pub async fn renew_executor_token(
        &self,
        by: &Operator,
        app: &AppName,
        chosen: Option<SecretString>,
    ) -> Result<Option<SecretString>> {
        let (made, token) = token_of(chosen)?;
        let kept = executor_token::seal_token(app, &token).map_err(BadGroup::Token)?;
        let now = self.clock.now();
        let mut tx = self.db.begin().await?;
        if !groups::set_token(&mut tx, app, &kept, now).await? {
            return Err(BadGroup::NotThere(app.clone()).into());
        }
        record(&mut tx, by, "executor-group token", json!({ "app_name": app }), now).await?;
        tx.commit().await.context("change the token of the executor group")?;
        Ok(made)
    }

    /// Removes a group with its registrations. Its runs are kept with their batches.
    pub async fn remove_executor_group(&self, by: &Operator, app: &AppName) -> Result<()> {
        let now = self.clock.now();
        let mut tx = self.db.begin().await?;
        let before = there(&mut tx, app).await?.group;
        let open = executor_run::open_runs(&mut tx, app).await?;
        if open > 0 {
            return Err(BadGroup::Busy { app: app.clone(), open }.into());
        }
        groups::remove(&mut tx, app).await?;
        let detail = json!({ "app_name": app, "before": shown(&before) });
        record(&mut tx, by, "executor-group remove", detail, now).await?;
        tx.commit().await.context("remove the executor group")
    }
}

/// Adds a group with its token within a transaction; returns whether the name was free. An existing
/// group is not changed.
pub(super) async fn bring(
    tx: &mut Tx,
    by: &Operator,
    group: &ExecutorGroup,
    kept: &KeptToken,
    now: Millis,
) -> Result<bool> {
    // It was valid in another admin, whose ports are its own.
    let group = checked(group.clone(), &[])?;
    if groups::find_group(tx, &group.app_name).await?.is_some() {
        return Ok(false);
    }
    groups::add_group(tx, &group, kept, now).await?;
    let detail = json!({ "app_name": group.app_name, "after": shown(&group), "from": "xxl-job" });
    record(tx, by, "executor-group add", detail, now).await?;
    Ok(true)
}

async fn there(tx: &mut Tx, app: &AppName) -> Result<StoredGroup> {
    Ok(groups::find_group(tx, app).await?.ok_or_else(|| BadGroup::NotThere(app.clone()))?)
}

/// The generated token, if one was generated, and the token.
fn token_of(chosen: Option<SecretString>) -> Result<(Option<SecretString>, SecretString)> {
    match chosen {
        Some(chosen) => Ok((None, chosen)),
        None => {
            let made = executor_token::fresh().map_err(BadGroup::Token)?;
            Ok((Some(made.clone()), made))
        }
    }
}

/// A group in its stored form: addresses sorted, without duplicates, normalised.
fn checked(group: ExecutorGroup, own_ports: &[u16]) -> Result<ExecutorGroup, BadGroup> {
    let title = group.title.trim().to_owned();
    let length = title.chars().count();
    if length == 0 || length > TITLE_MAX || title.contains(char::is_control) {
        return Err(BadGroup::Title);
    }
    let addressing = match group.addressing {
        Addressing::Registered => Addressing::Registered,
        Addressing::Fixed(all) => {
            let read = |(at, text): (usize, &String)| {
                // The address may contain a password; its position identifies it.
                let which = format!("address {}", at + 1);
                let url = ExecutorUrl::parse(text).and_then(|url| {
                    refuse_own_port(&url, place_of(&url), own_ports)?;
                    Ok(url)
                });
                url.map_err(|fault| BadGroup::Address(which, fault))
            };
            let all: BTreeSet<ExecutorUrl> =
                all.iter().enumerate().map(read).collect::<Result<_, _>>()?;
            match all.len() {
                0 => Addressing::Registered,
                1..=ADDRESSES_MOST => {
                    Addressing::Fixed(all.into_iter().map(String::from).collect())
                }
                _ => return Err(BadGroup::Addresses),
            }
        }
    };
    Ok(ExecutorGroup { title, addressing, ..group })
}

/// The address in a URL; for a host name, which is looked up later, one that belongs to no machine.
fn place_of(url: &ExecutorUrl) -> IpAddr {
    match url.place() {
        HostPattern::At(address) => address,
        HostPattern::Named(name, _) if name == "localhost" => Ipv4Addr::LOCALHOST.into(),
        HostPattern::Named(..) => Ipv4Addr::BROADCAST.into(),
    }
}

/// A group for the audit log.
fn shown(group: &ExecutorGroup) -> Value {
    let addresses = match &group.addressing {
        Addressing::Registered => Value::Null,
        Addressing::Fixed(all) => json!(all),
    };
    let allows_glue = group.glue == GluePolicy::Allowed;
    let for_groups = group.access.describe();
    json!({
        "title": group.title, "addresses": addresses, "allows_glue": allows_glue,
        "for_groups": for_groups,
    })
}
