//! `[four_eyes]`: changes that need the approval of a second person, by group.

use super::{BadConfig, Config};
use crate::domain::access::user::UserName;
use crate::domain::id::GroupCode;
use crate::domain::permission::four_eyes::{FourEyesRule, FourEyesRules, GuardedAction};
use anyhow::Result;
use serde::Deserialize;

/// Maximum number of hours a request may wait: a state reviewed a month ago is no longer the
/// present one.
const EXPIRE_HOURS_MAX: u32 = 720;

/// `[four_eyes.GROUP]`
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FourEyesSettings {
    /// `force`, `edit`, `apply`.
    pub actions: Vec<String>,
    /// The only users who may approve.
    #[serde(default)]
    pub approvers: Vec<String>,
    /// Hours until a request expires.
    #[serde(default = "one_day")]
    pub expire_hours: u32,
    /// Whether an administrator of all groups may carry out a request alone.
    #[serde(default)]
    pub break_glass: bool,
    /// Addresses that are notified of requests.
    #[serde(default)]
    pub notify: Vec<String>,
}

fn one_day() -> u32 {
    24
}

impl FourEyesSettings {
    fn parse_rule(&self, key: &str) -> Result<FourEyesRule> {
        let bad = |text: String| BadConfig(format!("four_eyes.{key}.{text}"));
        let mut actions = std::collections::BTreeSet::new();
        for word in &self.actions {
            let action = GuardedAction::parse(word).ok_or_else(|| {
                bad(format!("actions has {word:?}; the actions are force, edit and apply"))
            })?;
            actions.insert(action);
        }
        for name in &self.approvers {
            UserName::parse(name).map_err(|error| bad(format!("approvers: {error}")))?;
        }
        if !(1..=EXPIRE_HOURS_MAX).contains(&self.expire_hours) {
            let message = format!(
                "expire_hours is {}; it must be 1 to {EXPIRE_HOURS_MAX}",
                self.expire_hours
            );
            return Err(bad(message).into());
        }
        let is_address = |to: &&String| to.contains('@') || to.starts_with("channel:");
        if let Some(to) = self.notify.iter().find(|to| !is_address(to)) {
            let message = format!("notify has {to:?}; write an email address, or channel:NAME");
            return Err(bad(message).into());
        }
        Ok(FourEyesRule {
            actions,
            approvers: self.approvers.iter().map(|name| name.to_lowercase()).collect(),
            expire_ms: i64::from(self.expire_hours) * 3_600_000,
            break_glass: self.break_glass,
            notify: self.notify.clone(),
        })
    }
}

impl Config {
    /// Which changes need a second person.
    pub fn four_eyes(&self) -> Result<FourEyesRules> {
        let mut rules = FourEyesRules::default();
        for (key, settings) in &self.four_eyes {
            let rule = settings.parse_rule(key)?;
            if key == "*" {
                rules.others = Some(rule);
                continue;
            }
            let group = GroupCode::parse(key)
                .map_err(|error| BadConfig(format!("four_eyes.{key}: {error}")))?;
            rules.groups.insert(group, rule);
        }
        Ok(rules)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_name_groups_or_all_others() {
        let text = "[four_eyes.finance]\nactions = ['force', 'apply']\napprovers = ['Li.Na']\n\
                    [four_eyes.'*']\nactions = ['edit']\nexpire_hours = 2\nbreak_glass = true\n\
                    notify = ['risk@bank.example', 'channel:ops']\n";
        let rules = Config::parse_text(text).expect("settings").four_eyes().expect("rules");
        let finance = &rules.groups[&GroupCode::parse("finance").expect("a code")];
        assert_eq!((finance.expire_ms, finance.break_glass), (86_400_000, false));
        assert!(finance.approvers.contains("li.na") && finance.actions.len() == 2);
        let others = rules.others.expect("a rule");
        assert!(others.break_glass && others.expire_ms == 7_200_000 && others.notify.len() == 2);
        assert!(!Config::parse_text("").expect("defaults").four_eyes().expect("rules").is_on());
    }

    #[test]
    fn faults_name_the_table_and_the_cure() {
        for (text, wanted) in [
            ("[four_eyes.gl]\nactions = ['run']\n", "four_eyes.gl.actions has \"run\""),
            ("[four_eyes.gl]\nactions = []\nexpire_hours = 0\n", "must be 1 to 720"),
            ("[four_eyes.gl]\nactions = []\nnotify = ['li']\n", "channel:NAME"),
            ("[four_eyes.gl]\nactions = []\napprovers = ['']\n", "four_eyes.gl.approvers"),
            ("[four_eyes.'a b c!']\nactions = []\n", "four_eyes.a b c!"),
            ("[four_eyes.gl]\nactions = []\nexpires = '1d'\n", "unknown field"),
        ] {
            let refused = Config::parse_text(text).expect_err(text);
            assert!(format!("{refused:#}").contains(wanted), "{text}: {refused:#}");
        }
    }
}
