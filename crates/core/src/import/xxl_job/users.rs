//! Converts users: administrators everywhere, others in the pipelines that use their executors.

use crate::domain::access::legacy_password::Legacy;
use crate::domain::access::user::UserName;
use crate::domain::access::{Grant, Role, Where};
use crate::domain::id::GroupCode;
use crate::domain::xxl::xxl_tables::{XxlTables, XxlUser};
use crate::import::draft::Draft;
use crate::import::note::{ImportOrigin, Level};
use crate::import::tally::CountedKind;
use crate::import::xxl_job::Beyond;
use std::collections::{BTreeMap, BTreeSet};

const USERS: &str = "xxl_job_user";

/// A user to be created.
#[derive(Clone, Debug)]
pub struct ImportedUser {
    /// The name to log in with.
    pub name: UserName,
    /// The stored form of the password.
    pub password: Option<Legacy>,
    /// The permissions.
    pub grants: Vec<Grant>,
}

/// The users of the table. `reached` are the executors that each group uses.
pub(super) fn users(
    tables: &XxlTables,
    reached: &BTreeMap<GroupCode, BTreeSet<i64>>,
    beyond: Beyond,
    draft: &mut Draft,
) -> Vec<ImportedUser> {
    let Some(rows) = &tables.users else {
        let said = (
            "users are left out: this table may not be read, or is not there",
            "未迁移用户:该表不存在或无权读取",
        );
        draft.note(Level::LeftOut, &ImportOrigin::new(USERS, 0), "", said, ("", ""));
        return Vec::new();
    };
    let mut made: BTreeMap<UserName, ImportedUser> = BTreeMap::new();
    for row in rows {
        let at = ImportOrigin::new(USERS, u64::try_from(row.id).unwrap_or(0));
        draft.begin_item(CountedKind::User, &at, row.name.trim());
        let Some(user) = read_user(row, reached, &at, draft) else { continue };
        if made.contains_key(&user.name) {
            let said = (
                "left out: another user has this name in other letters, and names are one in any case here",
                "未迁移:用户名不区分大小写,已有同名用户",
            );
            draft.note(Level::LeftOut, &at, user.name.as_str(), said, ("", ""));
            continue;
        }
        match beyond {
            Beyond::Written => draft.carry_item(),
            // The note about all users says it.
            Beyond::Told => draft.leave_item_out(),
        }
        made.insert(user.name.clone(), user);
    }
    draft.end_item();
    if beyond == Beyond::Told && !made.is_empty() {
        let said = (
            format!("{} users are not in the definition", made.len()),
            format!("{} 个用户不在定义文件中", made.len()),
        );
        let cure = (
            "import with --apply, which keeps their passwords, or make them with procession user add",
            "请用 --apply 导入(保留密码),或用 procession user add 添加",
        );
        draft.note(Level::Look, &ImportOrigin::new(USERS, 0), "", said, cure);
    }
    made.into_values().collect()
}

fn read_user(
    row: &XxlUser,
    reached: &BTreeMap<GroupCode, BTreeSet<i64>>,
    at: &ImportOrigin,
    draft: &mut Draft,
) -> Option<ImportedUser> {
    let word = row.name.trim();
    let Ok(name) = UserName::parse(word) else {
        let said = (
            format!("left out: {word:?} cannot be a user name here"),
            format!("未迁移:{word:?} 不能作为用户名"),
        );
        let cure = (
            "make the user with procession user add, under a name of ASCII letters and digits",
            "请用 procession user add 以英文字母和数字命名添加",
        );
        draft.note(Level::LeftOut, at, word, said, cure);
        return None;
    };
    let password = row.password.as_ref().and_then(Legacy::parse);
    match &password {
        None => {
            let said = (
                "comes without a password: there is no MD5 or SHA-256 that can be read",
                "没有可识别的密码(MD5 或 SHA-256)",
            );
            let cure = (
                format!("procession user reset-password {name}"),
                format!("请执行:procession user reset-password {name}"),
            );
            draft.note(Level::Look, at, name.as_str(), said, cure);
        }
        Some(known) if known.is_known(name.as_str()) => {
            let said = (
                "has a password that everybody knows; it must be changed at the first login and works for 72 hours",
                "密码是众所周知的默认密码;首次登录必须修改,72 小时内有效",
            );
            draft.note(Level::Look, at, name.as_str(), said, ("", ""));
        }
        Some(_) => {}
    }
    let grants = grants(row, reached, at, draft);
    Some(ImportedUser { name, password, grants })
}

fn grants(
    row: &XxlUser,
    reached: &BTreeMap<GroupCode, BTreeSet<i64>>,
    at: &ImportOrigin,
    draft: &mut Draft,
) -> Vec<Grant> {
    let grant = |place, role| Grant { place, role, rights: BTreeSet::new() };
    if row.role == 1 {
        return vec![grant(Where::Everywhere, Role::Admin)];
    }
    let own: BTreeSet<i64> =
        row.permission.split([',', '，']).filter_map(|word| word.trim().parse().ok()).collect();
    let mut grants = Vec::new();
    let mut partly = Vec::new();
    for (code, executors) in reached {
        let place = || Where::Group(code.clone());
        if executors.is_subset(&own) {
            grants.push(grant(place(), Role::Operator));
            grants.push(grant(place(), Role::Author));
        } else if !executors.is_disjoint(&own) {
            grants.push(grant(place(), Role::Viewer));
            partly.push(code.as_str());
        }
    }
    if !partly.is_empty() {
        let said = (
            format!(
                "sees these groups and no more, because only some of their executors were the user's: {}",
                partly.join(", ")
            ),
            format!("对以下作业组只有查看权限(其中部分执行器不属于该用户):{}", partly.join("、")),
        );
        draft.note(Level::Differs, at, &row.name, said, ("", ""));
    }
    if grants.is_empty() {
        let said = (
            "may see nothing: none of the user's executors has a job",
            "没有任何权限:其执行器没有任务",
        );
        draft.note(Level::Look, at, &row.name, said, ("", ""));
    }
    grants
}
