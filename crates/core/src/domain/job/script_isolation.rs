//! Decides which operating-system user runs the scripts of a group, and how far the kernel isolates
//! them.
//!
//! A script that runs as Procession's own user can read the secret key, write the metadata file and
//! see the environment of other groups' scripts: the right to edit one script would then be the
//! right to everything.

use crate::domain::id::GroupCode;
use crate::domain::text::lang::Lang;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Key of the user for groups without a user of their own.
pub const ANY_GROUP: &str = "*";

/// The operator's setting `script.isolation`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IsolationPolicy {
    /// No isolation beyond a separate user.
    Off,
    /// Process isolation where the machine supports it; a warning where it does not.
    #[default]
    Auto,
    /// Process and file isolation; scripts are refused where the machine does not support it.
    Required,
}

impl IsolationPolicy {
    /// The word in the settings.
    pub fn name(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Auto => "auto",
            Self::Required => "required",
        }
    }

    /// Parses the word in the settings.
    pub fn parse(word: &str) -> Option<Self> {
        match word {
            "off" => Some(Self::Off),
            "auto" => Some(Self::Auto),
            "required" => Some(Self::Required),
            _ => None,
        }
    }
}

/// Whether this process may start a program as another user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UserSwitching {
    /// It may: it runs as root.
    Possible,
    /// It may not.
    Impossible,
}

/// Kernel isolation of a script, beside the permissions of its user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IsolationLevel {
    /// None.
    None,
    /// No access to other processes, to Procession's own files and to the directories of other
    /// scripts.
    Processes,
    /// In addition, no files except those of the system and those that the operator names; a
    /// private `/tmp`.
    Files,
}

/// Isolation mechanisms of this machine; an error is the reason why one is missing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IsolationMeans {
    /// Linux namespaces.
    pub processes: Result<(), String>,
    /// Landlock.
    pub files: Result<(), String>,
}

impl IsolationMeans {
    /// A machine without any mechanism, for the given reason.
    pub fn unavailable(why: &str) -> Self {
        Self { processes: Err(why.to_owned()), files: Err(why.to_owned()) }
    }
}

/// The users that run scripts, from the settings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScriptUsers {
    /// User by group, and for all other groups under `ANY_GROUP`.
    pub by_group: BTreeMap<String, String>,
    /// Isolation policy.
    pub policy: IsolationPolicy,
}

/// Script isolation of one node, for display.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ScriptIsolationReport {
    /// `script.isolation`: off, auto or required.
    pub isolation: String,
    /// Effective isolation: `files`, `processes`, `none`, or `refused` where no script runs.
    pub holds: String,
    /// Why a stronger isolation is not available; none if it is.
    pub obstacle: Option<String>,
    /// Operating-system user of the scripts by group; `*` is all other groups.
    pub run_as: BTreeMap<String, String>,
    /// Whether scripts of groups without a user of their own have the same permissions as the
    /// service.
    pub equals_service: bool,
    /// `script.cgroups`: off, auto or required.
    pub cgroups: String,
    /// Control-group controllers available here; none where there are no control groups.
    pub controllers: Vec<String>,
    /// Why control groups are not available; none if they are.
    pub cgroup_obstacle: Option<String>,
    /// Limits of the scripts by group, `*` is all other groups: `memory 512 MiB, 64 processes`.
    pub limits: BTreeMap<String, String>,
}

/// What the permission `script` in some groups amounts to on the nodes that run scripts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScriptRightWarning {
    /// The groups; none: all groups.
    pub groups: Option<Vec<String>>,
    /// Nodes on which a script of one of them has the permissions of the service; none: no node has
    /// reported yet.
    pub nodes: Vec<String>,
}

impl ScriptRightWarning {
    /// Derives the warning for these groups (none: all) from the nodes' reports; none where every
    /// script is isolated from the service.
    pub fn from_reports(
        groups: Option<Vec<String>>,
        nodes: &[(String, Option<ScriptIsolationReport>)],
    ) -> Option<Self> {
        let has_user = |report: &ScriptIsolationReport| {
            let has = |group: &String| report.run_as.contains_key(group);
            report.run_as.contains_key(ANY_GROUP)
                || groups.as_ref().is_some_and(|groups| groups.iter().all(has))
        };
        let tried = nodes.iter().filter_map(|(name, report)| Some((name, report.as_ref()?)));
        let open = tried.clone().filter(|(_, report)| report.equals_service && !has_user(report));
        let mut names: Vec<String> = open.map(|(name, _)| name.clone()).collect();
        names.sort();
        names.dedup();
        let is_unknown = tried.count() == 0;
        (is_unknown || !names.is_empty()).then_some(Self { groups, nodes: names })
    }

    /// The warning as a sentence.
    pub fn describe(&self, lang: Lang) -> String {
        let groups = self.groups.as_ref().map(|groups| groups.join(", "));
        let (en, zh) = match &groups {
            None => ("all groups".to_owned(), "所有组".to_owned()),
            Some(groups) => (format!("group {groups}"), format!("组 {groups}")),
        };
        let nodes = self.nodes.join(", ");
        match (lang, self.nodes.is_empty()) {
            (Lang::En, false) => format!(
                "the right script in {en} is the right to all that Procession may do on {nodes}, where scripts are not \
                 kept from it: its database, its files, the secrets of all groups; set script.isolation = \"required\" \
                 or a user of the group in [script.run_as] there (docs/security.md)"
            ),
            (Lang::En, true) => format!(
                "the right script in {en} is the right to all that Procession may do, on nodes that cannot keep scripts \
                 from it; no node has tried yet (procession node scripts shows it once one serves)"
            ),
            (Lang::Zh, false) => format!(
                "{zh}的 script 权限在节点 {nodes} 上等同于 Procession 自身的权限（数据库、文件、所有组的密钥），因为其脚本未被隔离；请设置 \
                 script.isolation = \"required\"，或在 [script.run_as] 中为该组指定用户"
            ),
            (Lang::Zh, true) => format!(
                "在无法隔离脚本的节点上，{zh}的 script 权限等同于 Procession 自身的权限；尚无节点检测过（procession node scripts）"
            ),
        }
    }
}

/// Prefix of the log line that records the start of a script.
const STARTED: &str = "started as process ";

/// Writes that line: the script's process id, and its isolation.
pub fn describe_start(pid: i32, holds: &str) -> String {
    format!("{STARTED}{pid}{holds}")
}

/// Reads the isolation from that line; none for any other line.
pub fn read_start(line: &str) -> Option<&str> {
    let rest = line.strip_prefix(STARTED)?;
    let (number, holds) = rest.split_once(", ").unwrap_or((rest, ""));
    number.parse::<i32>().ok().map(|_| holds)
}

/// Why a script is not started.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ScriptRefusal {
    /// The group has no configured user.
    #[error(
        "scripts of group {0} have no user of their own and would run as root, and script.isolation is \"required\"; \
         add {0} = \"USER\" to [script.run_as] of procession.toml"
    )]
    NoUser(GroupCode),
    /// The machine does not support the required isolation.
    #[error(
        "script.isolation is \"required\", and a script cannot be isolated on this machine: {0}; docs/security.md says \
         what it takes"
    )]
    NoMeans(String),
    /// This process may not switch to that user.
    #[error(
        "scripts of group {group} run as {user} (script.run_as), which only root can start; run serve as root, or \
         on a node that does"
    )]
    CannotSwitch {
        /// Group of the script.
        group: GroupCode,
        /// The configured user.
        user: String,
    },
}

impl ScriptUsers {
    /// The user that runs scripts of this group; `None` is the service's own user.
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
            (None, UserSwitching::Possible, IsolationPolicy::Required) => {
                Err(ScriptRefusal::NoUser(group.clone()))
            }
            (None, _, _) => Ok(None),
        }
    }

    /// The isolation level of a script on a machine with these mechanisms.
    pub fn choose_level(&self, means: &IsolationMeans) -> Result<IsolationLevel, ScriptRefusal> {
        let refuse = |why: &String| ScriptRefusal::NoMeans(why.clone());
        match self.policy {
            IsolationPolicy::Off => Ok(IsolationLevel::None),
            IsolationPolicy::Auto if means.processes.is_err() => Ok(IsolationLevel::None),
            IsolationPolicy::Auto => Ok(IsolationLevel::Processes),
            IsolationPolicy::Required => {
                means.processes.as_ref().and(means.files.as_ref()).map_err(refuse)?;
                Ok(IsolationLevel::Files)
            }
        }
    }

    /// The report for a machine with these mechanisms; limits and control groups are filled in
    /// elsewhere.
    pub fn report(
        &self,
        means: &IsolationMeans,
        switching: UserSwitching,
    ) -> ScriptIsolationReport {
        let level = self.choose_level(means);
        let holds = match &level {
            Ok(IsolationLevel::None) => "none",
            Ok(IsolationLevel::Processes) => "processes",
            Ok(IsolationLevel::Files) => "files",
            Err(_) => "refused",
        };
        let obstacle = match self.policy {
            IsolationPolicy::Off => None,
            IsolationPolicy::Auto => means.processes.as_ref().err(),
            IsolationPolicy::Required => means.processes.as_ref().and(means.files.as_ref()).err(),
        };
        ScriptIsolationReport {
            isolation: self.policy.name().to_owned(),
            holds: holds.to_owned(),
            obstacle: obstacle.cloned(),
            run_as: self.by_group.clone(),
            equals_service: level.is_ok() && self.warning(means, switching).is_some(),
            ..ScriptIsolationReport::default()
        }
    }

    /// Warning for the operator at start-up: what scripts can do to the service.
    pub fn warning(&self, means: &IsolationMeans, switching: UserSwitching) -> Option<String> {
        let is_covered = self.by_group.contains_key(ANY_GROUP);
        let who = "scripts of groups without a user in [script.run_as]";
        match (self.policy, &means.processes, switching) {
            (IsolationPolicy::Required, ..) => {
                let refusal = self.choose_level(means).err()?;
                Some(format!("every script is refused: {refusal}"))
            }
            _ if is_covered => None,
            (IsolationPolicy::Off, ..) => Some(format!(
                "script.isolation is \"off\": {who} run with the rights of Procession's own user. {FULL_RIGHTS}"
            )),
            (IsolationPolicy::Auto, Err(why), _) => Some(format!(
                "{who} run with the rights of Procession's own user, because this machine cannot isolate them ({why}). \
                 {FULL_RIGHTS}"
            )),
            (IsolationPolicy::Auto, Ok(()), UserSwitching::Possible) => {
                Some(format!("{who} run as root, whom nothing isolates. {FULL_RIGHTS}"))
            }
            (IsolationPolicy::Auto, Ok(()), UserSwitching::Impossible) => None,
        }
    }
}

/// Consequence of a missing isolation.
const FULL_RIGHTS: &str = "Who may edit them can do what Procession can, and reads its secrets and its database; \
                           script.isolation = \"required\" refuses them";

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
        let strict = users(&[("ar", "etl_ar")], IsolationPolicy::Required);
        let said = strict.choose(&group("gl"), yes).expect_err("nobody runs it").to_string();
        assert!(said.contains("add gl = \"USER\" to [script.run_as]"), "{said}");
        assert_eq!(strict.choose(&group("ar"), yes), Ok(Some("etl_ar")));
        assert_eq!(strict.choose(&group("gl"), no), Ok(None), "namespaces and Landlock isolate it");
    }

    #[test]
    fn what_holds_a_script_is_read_from_its_first_line() {
        let line = describe_start(4_711, ", user etl, isolated: processes");
        assert_eq!(read_start(&line), Some("user etl, isolated: processes"));
        assert_eq!(read_start(&describe_start(1, "")), Some(""));
        assert_eq!(read_start("started as process of a batch"), None);
    }

    #[test]
    fn the_level_is_what_the_policy_asks_and_the_machine_can() {
        let users = |policy, all: bool| ScriptUsers {
            by_group: all.then(|| (ANY_GROUP.to_owned(), "etl".to_owned())).into_iter().collect(),
            policy,
        };
        let (off, auto, required) =
            (IsolationPolicy::Off, IsolationPolicy::Auto, IsolationPolicy::Required);
        let whole = IsolationMeans { processes: Ok(()), files: Ok(()) };
        let no_landlock = IsolationMeans { files: Err("no Landlock".to_owned()), ..whole.clone() };
        let nothing = IsolationMeans::unavailable("unshare: EPERM");
        let level = |policy, means| users(policy, false).choose_level(means);
        assert_eq!(level(off, &whole), Ok(IsolationLevel::None));
        assert_eq!(level(auto, &whole), Ok(IsolationLevel::Processes));
        assert_eq!(level(auto, &no_landlock), Ok(IsolationLevel::Processes));
        assert_eq!(level(auto, &nothing), Ok(IsolationLevel::None));
        assert_eq!(level(required, &whole), Ok(IsolationLevel::Files));
        for (means, why) in [(&no_landlock, "no Landlock"), (&nothing, "unshare: EPERM")] {
            let said = level(required, means).expect_err("it is required").to_string();
            assert!(said.contains(why), "{said}");
        }
        let (root, user) = (UserSwitching::Possible, UserSwitching::Impossible);
        let report = |policy, means, who| {
            let report = users(policy, false).report(means, who);
            (report.holds, report.equals_service, report.obstacle)
        };
        let said = |holds: &str, equals, why: Option<&str>| {
            (holds.to_owned(), equals, why.map(str::to_owned))
        };
        assert_eq!(report(auto, &whole, user), said("processes", false, None));
        assert_eq!(report(auto, &whole, root), said("processes", true, None));
        assert_eq!(report(auto, &nothing, user), said("none", true, Some("unshare: EPERM")));
        assert_eq!(report(off, &nothing, user), said("none", true, None));
        assert_eq!(report(required, &whole, user), said("files", false, None));
        let refused = said("refused", false, Some("no Landlock"));
        assert_eq!(report(required, &no_landlock, user), refused);
        let warned = |policy, all, means, who| users(policy, all).warning(means, who).is_some();
        assert!(!warned(auto, false, &whole, user) && warned(auto, false, &whole, root));
        assert!(warned(auto, false, &nothing, user) && !warned(auto, true, &nothing, root));
        assert!(warned(off, false, &whole, user) && !warned(off, true, &whole, root));
        assert!(
            warned(required, true, &no_landlock, root) && !warned(required, false, &whole, user)
        );
    }

    #[test]
    fn the_right_script_is_warned_of_where_scripts_equal_the_service() {
        let report = |equals_service, users: &[&str]| ScriptIsolationReport {
            equals_service,
            run_as: users.iter().map(|group| ((*group).to_owned(), "etl".to_owned())).collect(),
            ..ScriptIsolationReport::default()
        };
        let nodes = |all: Vec<(&str, Option<ScriptIsolationReport>)>| -> Vec<_> {
            all.into_iter().map(|(name, report)| (name.to_owned(), report)).collect()
        };
        let of_fin = || Some(vec!["fin".to_owned()]);
        let open = nodes(vec![
            ("one", Some(report(true, &[]))),
            ("two", Some(report(false, &[]))),
            ("three", Some(report(true, &["fin"]))),
            ("four", None),
        ]);
        let found = ScriptRightWarning::from_reports(of_fin(), &open).expect("a warning");
        assert_eq!(found.nodes, ["one"]);
        let words =
            "the right script in group fin is the right to all that Procession may do on one,";
        assert!(found.describe(Lang::En).starts_with(words), "{}", found.describe(Lang::En));
        let everywhere = ScriptRightWarning::from_reports(None, &open).expect("a warning");
        assert_eq!(everywhere.nodes, ["one", "three"]);
        let shut =
            nodes(vec![("two", Some(report(false, &[]))), ("six", Some(report(true, &["*"])))]);
        assert_eq!(ScriptRightWarning::from_reports(of_fin(), &shut), None);
        let unknown = ScriptRightWarning::from_reports(of_fin(), &nodes(vec![("four", None)]));
        assert!(
            unknown.expect("nobody knows").describe(Lang::En).contains("no node has tried yet")
        );
    }
}
