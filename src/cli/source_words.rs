//! What `source` says, in both languages.

use crate::app::sources::{
    Checked, Ledger, LedgerChange, Password, Prepared, Whom, for_the_dba, place,
};
use crate::cli::out;
use crate::domain::id::SourceName;
use crate::domain::lang::Lang;
use crate::domain::source::DialectName;
use crate::view::source::Uses;

/// The sources as a table.
pub(super) fn list(all: &[Uses<'_>], lang: Lang) -> String {
    let rows = all
        .iter()
        .map(|uses| {
            let place = place(uses.source);
            let mut at = place.at.unwrap_or_else(|fault| fault);
            if let Some(variable) = place.replaced_by {
                at = format!("{at} ({variable})");
            }
            let password = match place.password {
                None => "-".to_owned(),
                Some((from, Password::Set)) => from,
                Some((from, Password::Missing)) => {
                    format!("{from} {}", lang.pick("NOT SET", "未设置"))
                }
            };
            let codes: Vec<&str> = uses.jobs.iter().map(|j| j.code.as_str()).collect();
            vec![
                uses.source.name.to_string(),
                place.dialect.map_or("?", DialectName::as_str).to_owned(),
                at,
                password,
                uses.classes(),
                out::brief(&codes.join(", "), 60),
            ]
        })
        .collect();
    let header = match lang {
        Lang::En => ["SOURCE", "DIALECT", "AT", "PASSWORD FROM", "CLASSES", "JOBS"],
        Lang::Zh => ["数据源", "类型", "地址", "密码来源", "事务类别", "作业"],
    };
    out::table(&header, rows)
}

/// What was found of a source.
pub(super) fn checked(
    uses: &Uses<'_>,
    checked: &Result<Checked, String>,
    lang: Lang,
) -> Vec<String> {
    let name = &uses.source.name;
    let checked = match checked {
        Ok(checked) => checked,
        Err(fault) => return vec![fault.clone()],
    };
    let yes = |of: &Result<(), String>| match of {
        Ok(()) => lang.pick("yes", "是").to_owned(),
        Err(fault) => format!("{} ({fault})", lang.pick("NO", "否")),
    };
    let ledger = match (&checked.ledger, &checked.writes) {
        (Ledger::Absent, _) if uses.needs_ledger() => lang.pick("MISSING", "缺失").to_owned(),
        (Ledger::Absent, _) => lang.pick("none, and none is needed", "无(不需要)").to_owned(),
        (Ledger::Fits, Some(Err(fault))) => {
            format!("{} ({fault})", lang.pick("there, but it cannot be written", "存在但不可写"))
        }
        (Ledger::Fits, _) => lang.pick("there", "存在").to_owned(),
        (Ledger::Other(why), _) => {
            format!("{} ({why})", lang.pick("of another shape", "结构不符"))
        }
    };
    vec![
        format!("{name}: {}", checked.whom),
        format!("  {} {}", lang.pick("session lock:  ", "会话锁:"), yes(&checked.lock)),
        format!("  {} {}", lang.pick("stops sessions:", "可终止会话:"), yes(&checked.stops)),
        format!("  {} {ledger}", lang.pick("ledger:        ", "账本:")),
        format!("  {} {}", lang.pick("jobs by class: ", "作业类别:"), uses.classes()),
    ]
}

/// What to do about each thing that the jobs of a source need and do not have.
pub(super) fn cures(uses: &Uses<'_>, checked: &Result<Checked, String>, lang: Lang) -> Vec<String> {
    let name = &uses.source.name;
    let Ok(checked) = checked else {
        let en = "mend its URL, its password or the network; no job can run there";
        return vec![lang.pick(en, "请检查其 URL、密码或网络;作业无法在此运行").to_owned()];
    };
    let mut cures = Vec::new();
    if checked.is_home == Some(false) {
        let en = "declare tx: ledger for its jobs of tx: same: it is not Procession's own database";
        cures.push(
            lang.pick(en, "此库不是 Procession 自己的数据库,请将 tx: same 的作业改为 tx: ledger")
                .to_owned(),
        );
    }
    if checked.lock.is_err() {
        let en = "connect to the server itself, not through a proxy that shares connections";
        cures.push(lang.pick(en, "请直接连接数据库服务器,不要经过共享连接的代理").to_owned());
    }
    if checked.stops.is_err() {
        let en = "let the user see and end its own sessions; a body that runs too long could not be \
                  stopped and would end UNKNOWN";
        let zh = "请允许该用户查看并终止自己的会话;否则超时的作业无法终止,结果为 UNKNOWN";
        cures.push(lang.pick(en, zh).to_owned());
    }
    let prepare = format!("procession source prepare {name}");
    match (&checked.ledger, &checked.writes) {
        _ if !uses.needs_ledger() => {}
        (Ledger::Absent, _) => cures.push(prepare + &maybe_hidden(uses, checked, lang)),
        (Ledger::Other(_), _) => {
            let en = format!("rename that table, then: {prepare}");
            cures.push(match lang {
                Lang::En => en,
                Lang::Zh => format!("请先将该表改名,然后执行:{prepare}"),
            });
        }
        (Ledger::Fits, Some(Err(_))) => {
            let dialect = place(uses.source).dialect;
            let user = checked.whom.user.as_deref();
            let all = dialect.map(|d| for_the_dba(d, user));
            cures.push(all.and_then(|all| all.into_iter().nth(1)).unwrap_or(prepare));
        }
        (Ledger::Fits, Some(Ok(())) | None) => {}
    }
    cures
}

/// On MySQL a user does not see a table on which it has no right at all.
fn maybe_hidden(uses: &Uses<'_>, checked: &Checked, lang: Lang) -> String {
    let Some(dialect @ DialectName::Mysql) = place(uses.source).dialect else {
        return String::new();
    };
    let user = checked.whom.user.as_deref();
    let Some(grant) = for_the_dba(dialect, user).into_iter().nth(1) else { return String::new() };
    let user = user.unwrap_or("-");
    match lang {
        Lang::En => {
            format!("; or it is there and {user} may not see it (then the GRANT alone: {grant})")
        }
        Lang::Zh => format!(";或该表已存在但 {user} 不可见(此时只需授权:{grant})"),
    }
}

/// That no source needs a ledger.
pub(super) fn nothing_to_prepare(lang: Lang) -> &'static str {
    lang.pick(
        "no stored job is tx: ledger, so no source needs a ledger; name one to prepare it all the same",
        "没有 tx: ledger 的作业,无需准备账本;如仍要准备,请写出数据源名称",
    )
}

/// What became of a ledger.
pub(super) fn prepared(
    name: &SourceName,
    prepared: &Result<(Prepared, Whom), String>,
    lang: Lang,
) -> String {
    let said = match prepared {
        Err(fault) => return fault.clone(),
        Ok((Prepared::WasThere, _)) => {
            lang.pick("procession_ledger is there already", "procession_ledger 已存在").to_owned()
        }
        Ok((Prepared::Made, _)) => {
            lang.pick("procession_ledger is made", "已创建 procession_ledger").to_owned()
        }
        Ok((Prepared::WouldMake, _)) => {
            let en = "procession_ledger would be made; a DBA may run this instead:";
            lang.pick(en, "将创建 procession_ledger;也可由 DBA 执行:").to_owned()
        }
        Ok((Prepared::Other(why), _)) => match lang {
            Lang::En => format!(
                "there is another procession_ledger: {why}; rename it and prepare the source again"
            ),
            Lang::Zh => format!("已有结构不同的 procession_ledger:{why};请改名后重新准备"),
        },
        Ok((Prepared::NotWritable(why), whom)) => match (lang, whom.user.as_deref()) {
            (Lang::En, Some(user)) => format!(
                "procession_ledger is there, but {user} cannot write it ({why}); let a DBA run this:"
            ),
            (Lang::En, None) => {
                format!("procession_ledger is there, but cannot be written ({why})")
            }
            (Lang::Zh, Some(user)) => {
                format!("procession_ledger 已存在,但 {user} 不能写入({why});请由 DBA 执行:")
            }
            (Lang::Zh, None) => format!("procession_ledger 已存在,但不能写入({why})"),
        },
        Ok((Prepared::Refused(why), whom)) => {
            let user = whom.user.as_deref().unwrap_or("-");
            match lang {
                Lang::En => format!("{user} may not make it ({why}); let a DBA run this:"),
                Lang::Zh => format!("{user} 无权创建({why});请由 DBA 执行:"),
            }
        }
    };
    format!("{name}: {said}")
}

/// How many rows went.
pub(super) fn pruned(
    name: &SourceName,
    (count, days): (u64, u32),
    change: LedgerChange,
    lang: Lang,
) -> String {
    match (lang, change) {
        (Lang::En, LedgerChange::Make) => {
            format!("{name}: {count} rows of effects known for more than {days} days are removed")
        }
        (Lang::En, LedgerChange::Look) => {
            format!("{name}: {count} rows of effects known for more than {days} days would go")
        }
        (Lang::Zh, LedgerChange::Make) => format!("{name}:已删除 {count} 行({days} 天前)"),
        (Lang::Zh, LedgerChange::Look) => format!("{name}:将删除 {count} 行({days} 天前)"),
    }
}
