//! Converts executor groups.

use crate::domain::access::group_access::GroupAccess;
use crate::domain::executor::address::ExecutorUrl;
use crate::domain::executor::token::validate_token;
use crate::domain::executor::{Addressing, ExecutorGroup, GluePolicy};
use crate::domain::xxl::xxl_run::AppName;
use crate::domain::xxl::xxl_tables::{XxlGroup, XxlTables};
use crate::import::draft::Draft;
use crate::import::note::{ImportOrigin, Level};
use crate::import::tally::CountedKind;
use crate::import::xxl_job::Beyond;
use secrecy::{ExposeSecret as _, SecretString};
use std::collections::{BTreeMap, BTreeSet};

const GROUPS: &str = "xxl_job_group";
/// Maximum number of addresses of one group.
const ADDRESSES: usize = 200;

/// An executor group to be created.
#[derive(Clone, Debug)]
pub struct NewExecutors {
    /// The executor group.
    pub group: ExecutorGroup,
    /// The token in the source; none if all use the one in the admin's settings.
    pub token: Option<SecretString>,
}

/// All executor groups, and the group for each key.
#[derive(Debug)]
pub(super) struct ImportedExecutors {
    beyond: Beyond,
    by_id: BTreeMap<i64, AppName>,
    made: BTreeMap<AppName, NewExecutors>,
}

impl ImportedExecutors {
    pub(super) fn from_tables(tables: &XxlTables, beyond: Beyond, draft: &mut Draft) -> Self {
        let mut all = Self { beyond, by_id: BTreeMap::new(), made: BTreeMap::new() };
        let scripted: BTreeSet<i64> = tables
            .jobs
            .iter()
            .filter(|job| job.glue_type.trim().starts_with("GLUE_"))
            .map(|job| job.job_group)
            .collect();
        for group in &tables.groups {
            let glue = if scripted.contains(&group.id) {
                GluePolicy::Allowed
            } else {
                GluePolicy::Refused
            };
            all.add_group(group, glue, draft);
        }
        draft.end_item();
        all.strays(tables, draft);
        all
    }

    fn add_group(&mut self, row: &XxlGroup, glue: GluePolicy, draft: &mut Draft) {
        let at = ImportOrigin::new(GROUPS, u64::try_from(row.id).unwrap_or(0));
        let word = row.app_name.trim();
        draft.begin_item(CountedKind::ExecutorGroup, &at, word);
        match self.beyond {
            Beyond::Written => draft.carry_item(),
            // The note about manual steps says it.
            Beyond::Told => draft.leave_item_out(),
        }
        let app = AppName::parse(word).unwrap_or_else(|_| {
            let app = fitting(word, row.id);
            let said = (
                format!("the appname {word:?} cannot be one here; it is {app}, so its executors have to register under that"),
                format!("AppName {word:?} 不符合规则,改为 {app};执行器需改用该名称注册"),
            );
            draft.note(Level::Look, &at, app.as_str(), said, ("", ""));
            app
        });
        self.by_id.insert(row.id, app.clone());
        let addressing = addressing(row, &at, &app, draft);
        if let Some(known) = self.made.get_mut(&app) {
            let said = ("its appname is there twice; both are one here", "AppName 重复,合并为一个");
            draft.note(Level::Differs, &at, app.as_str(), said, ("", ""));
            if glue == GluePolicy::Allowed {
                known.group.glue = glue;
            }
            return;
        }
        let token =
            row.access_token.clone().filter(|token| match validate_token(token.expose_secret()) {
                Ok(()) => true,
                Err(fault) => {
                    let said =
                        (format!("its token is not taken: {fault}"), format!("令牌不可用:{fault}"));
                    let cure = (
                        "give its executors another one (xxl.job.accessToken)",
                        "请为其执行器更换令牌(xxl.job.accessToken)",
                    );
                    draft.note(Level::Look, &at, app.as_str(), said, cure);
                    false
                }
            });
        let title: String = row.title.split_whitespace().collect::<Vec<_>>().join(" ");
        let title: String = title.chars().filter(|c| !c.is_control()).take(100).collect();
        let title = if title.is_empty() { app.to_string() } else { title };
        // In XXL-JOB any user with the permission for the job may use them.
        let access = GroupAccess::default();
        let group = ExecutorGroup { app_name: app.clone(), title, addressing, glue, access };
        self.made.insert(app, NewExecutors { group, token });
    }

    /// Keys of groups that do not exist: their jobs fail here, as they did.
    fn strays(&mut self, tables: &XxlTables, draft: &mut Draft) {
        for job in &tables.jobs {
            if self.by_id.contains_key(&job.job_group) {
                continue;
            }
            let app = fitting("missing", job.job_group);
            let at = ImportOrigin::new("xxl_job_info", u64::try_from(job.id).unwrap_or(0));
            let said = (
                format!(
                    "there is no group {} of executors; its jobs fail here as they did, at {app}",
                    job.job_group
                ),
                format!("执行器组 {} 不存在;其任务在这里同样会失败({app})", job.job_group),
            );
            let cure = (
                "write executors that are there as executor: { app }",
                "请在 executor: { app } 中填写存在的执行器",
            );
            draft.note(Level::Look, &at, app.as_str(), said, cure);
            self.by_id.insert(job.job_group, app);
        }
    }

    /// The executor group of a job.
    pub(super) fn app_of(&self, id: i64) -> AppName {
        self.by_id.get(&id).cloned().unwrap_or_else(|| fitting("missing", id))
    }

    /// Reports the manual steps.
    pub(super) fn report_executors(&self, draft: &mut Draft) {
        for NewExecutors { group, token } in self.made.values() {
            let at = ImportOrigin::new(GROUPS, 0);
            let app = group.app_name.as_str();
            if group.glue == GluePolicy::Allowed {
                let said = (
                    "scripts are sent to these executors, which run whatever they are sent",
                    "会向这些执行器下发脚本(GLUE)",
                );
                draft.note(Level::Look, &at, app, said, ("", ""));
            }
            if self.beyond == Beyond::Told {
                let said = ("these executors are not in the definition", "执行器不在定义文件中");
                let command = command(group, token.is_some());
                let cure = (
                    format!("import with --apply, or: {command}"),
                    format!("请用 --apply 导入,或执行:{command}"),
                );
                draft.note(Level::Look, &at, app, said, cure);
            }
        }
    }

    pub(super) fn into_new(self) -> Vec<NewExecutors> {
        self.made.into_values().collect()
    }
}

/// The command that creates a group.
fn command(group: &ExecutorGroup, has_token: bool) -> String {
    let mut text = format!(
        "procession executor-group add {} --title {}",
        group.app_name,
        quoted(&group.title)
    );
    if let Addressing::Fixed(addresses) = &group.addressing {
        for address in addresses {
            text.push_str(" --address ");
            text.push_str(&quoted(address));
        }
    }
    if group.glue == GluePolicy::Allowed {
        text.push_str(" --allow-glue");
    }
    text.push_str(" --from-file FILE");
    if has_token {
        text.push_str(" (FILE: its access_token)");
    }
    text
}

/// Quotes a word for a shell.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// A valid app name, derived from a word.
fn fitting(word: &str, id: i64) -> AppName {
    let fits = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    let near: String = word.chars().filter(|c| fits(*c)).take(40).collect();
    let near = near.trim_start_matches(|c: char| !c.is_ascii_alphanumeric());
    let near = if near.is_empty() { "executor" } else { near };
    AppName::parse(&format!("{near}-{id}"))
        .or_else(|_| AppName::parse(&format!("group-{}", id.unsigned_abs())))
        .expect("letters and digits, more than four")
}

fn addressing(row: &XxlGroup, at: &ImportOrigin, app: &AppName, draft: &mut Draft) -> Addressing {
    if row.address_type != 1 {
        return Addressing::Registered;
    }
    let words = row.address_list.split([',', '，']).map(str::trim).filter(|word| !word.is_empty());
    let mut good = BTreeSet::new();
    let mut bad = Vec::new();
    for (place, word) in (1..).zip(words) {
        // The address may contain a password; its index identifies it.
        match ExecutorUrl::parse(word) {
            Ok(url) if good.len() < ADDRESSES => drop(good.insert(url)),
            Ok(_) => bad.push(format!("{place}: too many")),
            Err(fault) => bad.push(format!("{place}: {fault}")),
        }
    }
    if !bad.is_empty() {
        let list = bad.join("; ");
        let said = (
            format!("these of its addresses are left out: {list}"),
            format!("以下地址未迁移:{list}"),
        );
        draft.note(Level::LeftOut, at, app.as_str(), said, ("", ""));
    }
    if good.is_empty() {
        let said = (
            "its addresses were to be written by hand, and there are none; here they are those that register",
            "地址为手动录入但为空;这里改为自动注册",
        );
        draft.note(Level::Look, at, app.as_str(), said, ("", ""));
        return Addressing::Registered;
    }
    Addressing::Fixed(good.into_iter().map(String::from).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_word_becomes_an_appname() {
        for (word, app) in [
            ("支付执行器", "executor-7"),
            ("pay executor!", "payexecutor-7"),
            ("-xy", "xy-7"),
            ("", "executor-7"),
            // `a-7` has three characters.
            ("a", "group-7"),
        ] {
            assert_eq!(fitting(word, 7).as_str(), app, "{word}");
        }
        assert_eq!(fitting("missing", -3).as_str(), "missing--3");
    }
}
