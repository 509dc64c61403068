//! The output of `source`, in both languages.

use crate::app::sources::{
    DefinerStop, LedgerChange, LedgerState, Password, Prepared, ServerIdentity, SourceCheckResult,
    SourceFault, StopTrial, TrialBody, for_the_dba, place,
};
use crate::cli::out;
use crate::domain::id::SourceName;
use crate::domain::source::DialectName;
use crate::domain::source::transport::SourceTransport;
use crate::domain::text::lang::Lang;
use crate::view::source::SourceUses;

/// The sources as a table.
pub(super) fn render_sources(all: &[SourceUses<'_>], lang: Lang) -> String {
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
                Some((from, Password::Set | Password::NotAsked)) => from,
                Some((from, Password::Missing)) => {
                    format!("{from} {}", lang.select("NOT SET", "未设置"))
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

/// The result of checking a source.
pub(super) fn checked(
    uses: &SourceUses<'_>,
    checked: &Result<SourceCheckResult, SourceFault>,
    lang: Lang,
) -> Vec<String> {
    let name = &uses.source.name;
    let checked = match checked {
        Ok(checked) => checked,
        Err(fault) => return vec![fault.to_string()],
    };
    let yes = |of: &Result<(), String>| match of {
        Ok(()) => lang.select("yes", "是").to_owned(),
        Err(fault) => format!("{} ({fault})", lang.select("NO", "否")),
    };
    let ledger = match (&checked.ledger, &checked.writes) {
        (LedgerState::Absent, _) if uses.needs_ledger() => {
            lang.select("MISSING", "缺失").to_owned()
        }
        (LedgerState::Absent, _) => {
            lang.select("none, and none is needed", "无（不需要）").to_owned()
        }
        (LedgerState::Fits, Some(Err(fault))) => {
            format!("{} ({fault})", lang.select("there, but it cannot be written", "存在但不可写"))
        }
        (LedgerState::Fits, _) => lang.select("there", "存在").to_owned(),
        (LedgerState::Other(why), _) => {
            format!("{} ({why})", lang.select("of another shape", "结构不符"))
        }
    };
    let mut lines = vec![
        format!("{name}: {}", checked.whom),
        format!("  {} {}", lang.select("session lock:  ", "会话锁："), yes(&checked.lock)),
        format!(
            "  {} {}",
            lang.select("stops sessions:", "可终止会话："),
            describe_stop(&checked.stops, lang)
        ),
        format!("  {} {ledger}", lang.select("ledger:        ", "账本：")),
        format!("  {} {}", lang.select("jobs by class: ", "作业类别："), uses.classes()),
    ];
    lines.extend(describe_definers(&checked.stops.definers, lang));
    lines.extend(describe_keeping(checked, lang));
    lines.extend(describe_powers(checked, lang));
    lines.extend(describe_open_path(checked, lang));
    lines.extend(checked.transport.as_ref().and_then(|transport| describe_way(transport, lang)));
    lines
}

/// What protects the connection, if the server is on another machine.
fn describe_way(transport: &SourceTransport, lang: Lang) -> Option<String> {
    let message = match (transport, lang) {
        (SourceTransport::Local, _) => return None,
        (SourceTransport::Verified, Lang::En) => "encrypted, certificate verified".to_owned(),
        (SourceTransport::Verified, Lang::Zh) => "已加密，已验证服务器证书".to_owned(),
        (SourceTransport::Unverified(_) | SourceTransport::MaybeClear(_), Lang::En) => {
            format!("WARNING: {}", transport.weakness().unwrap_or_default())
        }
        (SourceTransport::Unverified(message), Lang::Zh) => {
            format!("警告：已加密，但未验证服务器身份（{message}）：中间人可冒充服务器并读取密码")
        }
        (SourceTransport::MaybeClear(message), Lang::Zh) => {
            format!("警告：连接可能为明文（{message}）：中间人可读取密码和全部数据")
        }
    };
    Some(format!("  {} {message}", lang.select("transport:     ", "传输：")))
}

/// What was tried to stop, and the result.
fn describe_stop(stops: &StopTrial, lang: Lang) -> String {
    let ran = match stops.ran {
        TrialBody::Statement => lang.select("a running statement", "运行中的语句"),
        TrialBody::DefinerFunction => lang.select(
            "a SECURITY DEFINER function that swallows cancels",
            "忽略取消的 SECURITY DEFINER 函数",
        ),
    };
    match (&stops.gone, lang) {
        (Ok(took), Lang::En) => {
            format!("yes (tried: {ran} was ended and gone after {:.1} s)", took.as_secs_f64())
        }
        (Ok(took), Lang::Zh) => {
            format!("是（实测：{ran}已终止，{:.1} 秒后消失）", took.as_secs_f64())
        }
        (Err(fault), Lang::En) => format!("NO (tried with {ran}: {fault})"),
        (Err(fault), Lang::Zh) => format!("否（用{ran}实测：{fault}）"),
    }
}

/// Whether procedures of other definers could be stopped, where that differs.
fn describe_definers(definers: &DefinerStop, lang: Lang) -> Option<String> {
    let label = lang.select("of definers:   ", "定义者过程：");
    let message = match (definers, lang) {
        (DefinerStop::AsOwn, _) => return None,
        (DefinerStop::Granted, Lang::En) => {
            "yes (by its rights, not tried: CONNECTION ADMIN or SUPER)".to_owned()
        }
        (DefinerStop::Granted, Lang::Zh) => {
            "是（依据权限，未实测：CONNECTION ADMIN 或 SUPER）".to_owned()
        }
        (DefinerStop::Denied(grant), Lang::En) => format!(
            "NO: a running procedure of another definer (SQL SECURITY DEFINER) could not be stopped and would end \
             UNKNOWN; by its rights, not tried. To allow it: {grant}"
        ),
        (DefinerStop::Denied(grant), Lang::Zh) => format!(
            "否：其他定义者的过程(SQL SECURITY DEFINER)运行时无法终止，结果为 UNKNOWN；依据权限判断，未实测。授权：{grant}"
        ),
        (DefinerStop::Unknown(why), Lang::En) => format!("not known ({why})"),
        (DefinerStop::Unknown(why), Lang::Zh) => format!("未知（{why}）"),
    };
    Some(format!("  {label} {message}"))
}

/// The note that each body opens a session of its own, if the user's privileges are the reason.
fn describe_keeping(checked: &SourceCheckResult, lang: Lang) -> Option<String> {
    let grant = checked.keeps_sessions.as_ref().err()?;
    Some(match lang {
        Lang::En => format!(
            "  sessions kept:  no, each job opens one of its own, which is slower; to keep them: {grant}"
        ),
        Lang::Zh => format!("  保留会话：否，每个作业都要新建会话，较慢；授权：{grant}"),
    })
}

/// A warning that the user has more privileges on the server than jobs need.
fn describe_powers(checked: &SourceCheckResult, lang: Lang) -> Option<String> {
    if checked.powers.is_empty() {
        return None;
    }
    let powers = checked.powers.join(", ");
    Some(match lang {
        Lang::En => format!(
            "  warning: its user has {powers} there: whoever writes a job for this source can reach the \
             server's files, programs or users; use a user with rights on the data alone (docs/security.md)"
        ),
        Lang::Zh => format!(
            "  警告：该用户在服务器上拥有 {powers}：为此数据源编写作业的人可访问服务器的文件、程序或用户；\
             请改用仅有数据权限的用户(docs/security.md)"
        ),
    })
}

/// A warning that other users may replace the objects that the user's statements refer to.
fn describe_open_path(checked: &SourceCheckResult, lang: Lang) -> Option<String> {
    let open = checked.open_path.as_ref()?;
    let word = |(schema, role): &(String, String)| match (role.as_str(), lang) {
        ("PUBLIC", Lang::En) => format!("{schema} (by everybody)"),
        ("PUBLIC", Lang::Zh) => format!("{schema}（所有用户）"),
        (role, Lang::En) => format!("{schema} (by {role})"),
        (role, Lang::Zh) => format!("{schema}({role})"),
    };
    let schemas: Vec<String> = open.writers.iter().map(word).collect();
    let (schemas, path) = (schemas.join(", "), &open.path);
    let set_by = match open.set_by.as_str() {
        "user" | "database user" => "ALTER ROLE … SET",
        "database" => "ALTER DATABASE … SET",
        _ => "",
    };
    let set_by = if set_by.is_empty() { String::new() } else { format!(", {set_by}") };
    Some(match lang {
        Lang::En => format!(
            "  warning: its search_path ({path}{set_by}) has schemas in which others may create: {schemas}; what they put \
             there runs with this user's rights in place of what a statement means: REVOKE CREATE ON SCHEMA … FROM …, \
             or ALTER ROLE … SET search_path to schemas of its own (docs/security.md)"
        ),
        Lang::Zh => format!(
            "  警告：其 search_path({path}{set_by})包含他人可创建对象的模式：{schemas}；他人放入的同名对象会以该用户的权限运行；\
             请 REVOKE CREATE ON SCHEMA …,或用 ALTER ROLE … SET search_path 限定为自己的模式(docs/security.md)"
        ),
    })
}

/// Hints for everything that the jobs of a source need and do not have.
pub(super) fn cures(
    uses: &SourceUses<'_>,
    checked: &Result<SourceCheckResult, SourceFault>,
    lang: Lang,
) -> Vec<String> {
    let name = &uses.source.name;
    if checked.as_ref().is_err_and(|fault| fault.is_away) {
        let en = "start the server, or mend its URL or the network; no job can run there";
        return vec![
            lang.select(en, "请启动服务器，或检查其 URL 或网络；作业无法在此运行").to_owned(),
        ];
    }
    let Ok(checked) = checked else {
        let en = "mend its URL, its password or the network; no job can run there";
        return vec![lang.select(en, "请检查其 URL、密码或网络；作业无法在此运行").to_owned()];
    };
    let mut cures = Vec::new();
    if checked.is_home == Some(false) {
        let en = "declare tx: ledger for its jobs of tx: same: it is not Procession's own database";
        cures.push(
            lang.select(
                en,
                "此库不是 Procession 自己的数据库，请将 tx: same 的作业改为 tx: ledger",
            )
            .to_owned(),
        );
    }
    if checked.lock.is_err() {
        let en = "connect to the server itself, not through a proxy that shares connections";
        cures.push(lang.select(en, "请直接连接数据库服务器，不要经过共享连接的代理").to_owned());
    }
    if checked.stops.gone.is_err() {
        let en = "let the user see and end its own sessions; a body that runs too long could not be \
                  stopped and would end UNKNOWN";
        let zh = "请允许该用户查看并终止自己的会话；否则超时的作业无法终止，结果为 UNKNOWN";
        cures.push(lang.select(en, zh).to_owned());
    }
    let prepare = format!("procession source prepare {name}");
    match (&checked.ledger, &checked.writes) {
        _ if !uses.needs_ledger() => {}
        (LedgerState::Absent, _) => cures.push(prepare + &maybe_hidden(uses, checked, lang)),
        (LedgerState::Other(_), _) => {
            let en = format!("rename that table, then: {prepare}");
            cures.push(match lang {
                Lang::En => en,
                Lang::Zh => format!("请先将该表改名，然后执行：{prepare}"),
            });
        }
        (LedgerState::Fits, Some(Err(_))) => {
            let dialect = place(uses.source).dialect;
            let user = checked.whom.user.as_deref();
            let all = dialect.map(|d| for_the_dba(d, user));
            cures.push(all.and_then(|all| all.into_iter().nth(1)).unwrap_or(prepare));
        }
        (LedgerState::Fits, Some(Ok(())) | None) => {}
    }
    cures
}

/// On MySQL a user does not see a table on which it has no privilege at all.
fn maybe_hidden(uses: &SourceUses<'_>, checked: &SourceCheckResult, lang: Lang) -> String {
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
        Lang::Zh => format!("；或该表已存在但 {user} 不可见（此时只需授权：{grant}）"),
    }
}

/// The note that no source needs a ledger.
pub(super) fn nothing_to_prepare(lang: Lang) -> &'static str {
    lang.select(
        "no stored job is tx: ledger, so no source needs a ledger; name one to prepare it all the same",
        "没有 tx: ledger 的作业，无需准备账本；如仍要准备，请写出数据源名称",
    )
}

/// The result of preparing a ledger.
pub(super) fn prepared(
    name: &SourceName,
    prepared: &Result<(Prepared, ServerIdentity), SourceFault>,
    lang: Lang,
) -> String {
    let message = match prepared {
        Err(fault) => return fault.to_string(),
        Ok((Prepared::WasThere, _)) => {
            lang.select("procession_ledger is there already", "procession_ledger 已存在").to_owned()
        }
        Ok((Prepared::Made, _)) => {
            lang.select("procession_ledger is made", "已创建 procession_ledger").to_owned()
        }
        Ok((Prepared::WouldMake, _)) => {
            let en = "procession_ledger would be made; a DBA may run this instead:";
            lang.select(en, "将创建 procession_ledger；也可由 DBA 执行：").to_owned()
        }
        Ok((Prepared::Other(why), _)) => match lang {
            Lang::En => format!(
                "there is another procession_ledger: {why}; rename it and prepare the source again"
            ),
            Lang::Zh => format!("已有结构不同的 procession_ledger:{why}；请改名后重新准备"),
        },
        Ok((Prepared::NotWritable(why), whom)) => match (lang, whom.user.as_deref()) {
            (Lang::En, Some(user)) => format!(
                "procession_ledger is there, but {user} cannot write it ({why}); let a DBA run this:"
            ),
            (Lang::En, None) => {
                format!("procession_ledger is there, but cannot be written ({why})")
            }
            (Lang::Zh, Some(user)) => {
                format!("procession_ledger 已存在，但 {user} 不能写入（{why}）；请由 DBA 执行：")
            }
            (Lang::Zh, None) => format!("procession_ledger 已存在，但不能写入（{why}）"),
        },
        Ok((Prepared::Refused(why), whom)) => {
            let user = whom.user.as_deref().unwrap_or("-");
            match lang {
                Lang::En => format!("{user} may not make it ({why}); let a DBA run this:"),
                Lang::Zh => format!("{user} 无权创建（{why}）；请由 DBA 执行："),
            }
        }
    };
    format!("{name}: {message}")
}

/// The number of removed rows.
pub(super) fn pruned(
    name: &SourceName,
    count: u64,
    days: u32,
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
        (Lang::Zh, LedgerChange::Make) => format!("{name}：已删除 {count} 行（{days} 天前）"),
        (Lang::Zh, LedgerChange::Look) => format!("{name}：将删除 {count} 行（{days} 天前）"),
    }
}
