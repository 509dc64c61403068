//! What steps of SQL Server Agent run. Procession has no source for SQL Server: T-SQL is run by sqlcmd, as a script.

use super::columns;
use crate::domain::access::group_access::GroupAccess;
use crate::domain::id::GroupCode;
use crate::domain::job::shared_definitions::{SecretFrom, SecretSource};
use crate::domain::job::{JobDef, Param, ParamDecl};
use crate::import::body::{failing, in_comment, quoted};
use crate::import::columns::{RowPlace, check_columns};
use crate::import::draft::Draft;
use crate::import::exported_rows::ExportedRow;
use crate::import::note::{BilingualSentence, ImportOrigin, Level};

/// Most retries that a job may have here.
const RETRIES: u32 = 100;
/// Longest time between two attempts.
const LONGEST_DELAY_SEC: u32 = 86_400;
/// The secret with the password of sqlcmd's user.
const SECRET: &str = "SQLCMDPASSWORD";

/// The job of a step, to be pushed once it is known when it runs.
pub(super) fn make_step(
    step: &ExportedRow,
    group: &GroupCode,
    title: &str,
    draft: &mut Draft,
) -> JobDef {
    let ExportedRow { at, row } = step;
    check_columns(row, columns::STEPS, RowPlace { at, about: title }, draft);
    let mut job = draft.job(at, group, title, "SCRIPT");
    job.timeout_sec = draft.timeout(at, title, 0);
    set_retries(step, &mut job, draft);
    let code = job.code.to_string();
    let text = row.value("command").unwrap_or_default().replace("\r\n", "\n");
    let made = if text.trim().is_empty() {
        Err(BilingualSentence::from(("its command is empty", "其命令为空")))
    } else if let Some(token) = agent_token(&text) {
        Err(BilingualSentence::new(
            format!(
                "it uses the token {token}, which SQL Server Agent fills in: write a parameter in its place"
            ),
            format!("它使用由 SQL Server Agent 替换的标记 {token}:请改为参数"),
        ))
    } else {
        match row.trimmed_value("subsystem").to_ascii_uppercase().as_str() {
            "TSQL" => t_sql(step, &text, job.clone(), draft),
            "CMDEXEC" => command(step, &text, job.clone()),
            "POWERSHELL" => Ok(power_shell(at, &text, job.clone(), draft)),
            other => Err(other_subsystem(other)),
        }
    };
    match made {
        Ok(made) => made,
        Err(why) => {
            let mut job = failing(draft, at, job, &why);
            // What it ran stands below, for whoever writes it anew.
            if let Some(script) = &mut job.script {
                script.push_str("# ");
                script.push_str(&in_comment(row.trimmed_value("subsystem")));
                for line in text.lines() {
                    script.push_str("\n# ");
                    script.push_str(&in_comment(line));
                }
                script.push('\n');
            }
            debug_assert_eq!(job.code.as_str(), code);
            job
        }
    }
}

fn set_retries(step: &ExportedRow, job: &mut JobDef, draft: &mut Draft) {
    let number =
        |column: &str| step.row.number(column).and_then(|n| u32::try_from(n).ok()).unwrap_or(0);
    let (count, minutes) = (number("retry_attempts"), number("retry_interval"));
    job.retry_count = count.min(RETRIES);
    job.retry_delay_sec = minutes.saturating_mul(60).min(LONGEST_DELAY_SEC);
    if count > RETRIES || minutes > LONGEST_DELAY_SEC / 60 {
        let said = (
            format!(
                "{count} retries {minutes} minutes apart are more than there are here: {RETRIES}, a day apart"
            ),
            format!("重试 {count} 次、间隔 {minutes} 分钟超过上限:{RETRIES} 次、间隔一天"),
        );
        draft.note(Level::Differs, &step.at, job.code.as_str(), said, ("", ""));
    }
    if count == 0 && minutes > 0 {
        job.retry_delay_sec = 0;
    }
}

/// `$(ESCAPE_NONE(JOBID))`, `$(DATE)`
fn agent_token(text: &str) -> Option<String> {
    let at = text.find("$(")?;
    let rest = &text[at..];
    let is_word = rest[2..].starts_with(|c: char| c.is_ascii_alphabetic());
    let end = rest.find(')').unwrap_or(rest.len() - 1);
    is_word.then(|| rest[..=end].chars().take(60).collect())
}

/// A file with the text, by a word that no line of it is.
fn here_file(name: &str, text: &str) -> String {
    let mut end = "END_OF_STEP".to_owned();
    while text.lines().any(|line| line == end) {
        end.push('_');
    }
    format!("cat > {name} <<'{end}'\n{}\n{end}\n", text.trim_end_matches('\n'))
}

fn t_sql(
    step: &ExportedRow,
    text: &str,
    mut job: JobDef,
    draft: &mut Draft,
) -> Result<JobDef, BilingualSentence> {
    if let Some(line) = text.lines().map(str::trim).find(|line| is_sqlcmd_command(line)) {
        return Err(BilingualSentence::new(
            format!(
                "its line {:?} is a command of sqlcmd, which would not send it to the server",
                in_comment(line)
            ),
            format!("其中的行 {:?} 会被 sqlcmd 当作命令", in_comment(line)),
        ));
    }
    let database = step.row.trimmed_value("database_name");
    let database = if database.is_empty() { "master" } else { database };
    let user = step.row.trimmed_value("database_user_name");
    let text = if user.is_empty() {
        text.to_owned()
    } else {
        format!("EXECUTE AS USER = N'{}';\n{text}", user.replace('\'', "''"))
    };
    job.interpreter = Some("sh".to_owned());
    job.script = Some(format!(
        "set -e\n{}export SQLCMDPASSWORD=\"${{PROCESSION_PARAM_SQL_PASSWORD:?is not set}}\"\n\
         sqlcmd -S \"${{PROCESSION_PARAM_SQL_SERVER:?is not set: the address of the SQL Server}}\" \
         -U \"${{PROCESSION_PARAM_SQL_USER:?is not set}}\" -d {} -b -x -i step.sql\n",
        here_file("step.sql", &text),
        quoted(database)
    ));
    let param = |name: &str, value: Option<&str>| Param {
        name: name.to_owned(),
        value: value.map(str::to_owned),
        ..Param::default()
    };
    job.params = vec![
        param("sql_server", None),
        param("sql_user", None),
        param("sql_password", Some("${secret.SQLCMDPASSWORD}")),
    ];
    declare_server(&step.at, draft);
    Ok(job)
}

/// The address and user of the server, once for all jobs.
fn declare_server(at: &ImportOrigin, draft: &mut Draft) {
    if !draft.is_first("sqlcmd", "") {
        return;
    }
    for name in ["sql_server", "sql_user"] {
        let decl = ParamDecl { value: None, ..ParamDecl::plain(name, "") };
        draft.defs.shared.params.push(decl);
    }
    let (from, access) = (SecretFrom::Env(SECRET.to_owned()), GroupAccess::default());
    draft.defs.shared.secrets.push(SecretSource { name: SECRET.to_owned(), from, access });
    draft.end_item_for(|draft| {
        draft.note(
            Level::Look,
            &ImportOrigin::new(&at.file, 0),
            "sqlcmd",
            (
                "Procession has no source for SQL Server: T-SQL steps are scripts that run the same text with sqlcmd, in the same \
                 database; its address, user and password are not in msdb",
                "Procession 没有 SQL Server 数据源:T-SQL 步骤是用 sqlcmd 在同一数据库中执行相同文本的脚本;msdb 中没有地址、用户和密码",
            ),
            (
                format!(
                    "install sqlcmd where scripts run, write values of the parameters sql_server and sql_user under params, and set \
                     {SECRET} in the environment of procession serve"
                ),
                format!(
                    "请在运行脚本的主机上安装 sqlcmd,在 params 中填写 sql_server 和 sql_user,并在 procession serve 的环境中设置 {SECRET}"
                ),
            ),
        );
    });
}

/// A line that sqlcmd carries out itself. `GO` is one for SQL Server Agent as well.
fn is_sqlcmd_command(line: &str) -> bool {
    let word = line.split([' ', '\t', '(', ';']).next().unwrap_or_default();
    line.starts_with(':')
        || line.starts_with("!!")
        || ["exit", "quit", "reset", "ed"].iter().any(|known| word.eq_ignore_ascii_case(known))
}

/// A command line of Windows: what no shell here would take as it was meant is refused.
fn command(step: &ExportedRow, text: &str, mut job: JobDef) -> Result<JobDef, BilingualSentence> {
    const BUILT_IN: &[&str] = &[
        "assoc", "call", "cd", "chdir", "cls", "cmd", "copy", "del", "dir", "dtexec", "echo",
        "erase", "for", "forfiles", "goto", "if", "md", "mkdir", "mklink", "move", "net", "pause",
        "pushd", "popd", "rd", "rem", "ren", "rename", "rmdir", "robocopy", "sc", "schtasks",
        "set", "start", "taskkill", "title", "type", "wscript", "cscript", "xcopy",
    ];
    let lower = text.to_ascii_lowercase();
    let first = lower.split_whitespace().next().unwrap_or_default().trim_matches('"');
    let has_drive =
        lower.as_bytes().windows(2).any(|pair| pair[0].is_ascii_alphabetic() && pair[1] == b':');
    let is_windows = text.contains(['\\', '%', '^'])
        || has_drive
        || [".exe", ".bat", ".cmd", ".vbs", ".ps1"].iter().any(|end| lower.contains(end))
        || BUILT_IN.contains(&first)
        || text.trim().contains('\n');
    if is_windows {
        return Err(BilingualSentence::from((
            "its command line is one of Windows, which no interpreter here runs as it was meant",
            "其命令行属于 Windows,此处的解释器无法照原意执行",
        )));
    }
    job.interpreter = Some("sh".to_owned());
    let line = text.trim();
    job.script = Some(match step.row.number("cmdexec_success_code").unwrap_or(0) {
        0 => format!("{line}\n"),
        code => {
            format!("{line}\nended=$?\necho \"ended with $ended\"\n[ \"$ended\" -eq {code} ]\n")
        }
    });
    Ok(job)
}

fn power_shell(at: &ImportOrigin, text: &str, mut job: JobDef, draft: &mut Draft) -> JobDef {
    job.interpreter = Some("sh".to_owned());
    job.script = Some(format!(
        "set -e\n{}pwsh -NoProfile -NonInteractive -File step.ps1\n",
        here_file("step.ps1", &format!("$ErrorActionPreference = 'Stop'\n{text}"))
    ));
    let said = (
        "it runs with pwsh here, and with Windows PowerShell and its SQLSERVER: drive there",
        "此处用 pwsh 运行,原系统使用带 SQLSERVER: 驱动器的 Windows PowerShell",
    );
    let cure = (
        "install pwsh where scripts run, and try the script there",
        "请在运行脚本的主机上安装 pwsh 并试运行",
    );
    draft.note(Level::Look, at, job.code.as_str(), said, cure);
    job
}

fn other_subsystem(name: &str) -> BilingualSentence {
    let name = in_comment(name).chars().take(40).collect::<String>();
    match name.as_str() {
        "SSIS" => BilingualSentence::from((
            "it runs a package of Integration Services, which needs dtexec on a Windows host",
            "它运行 Integration Services 包,需要 Windows 主机上的 dtexec",
        )),
        "ACTIVESCRIPTING" => BilingualSentence::from((
            "it is an ActiveX script, which SQL Server itself no longer runs",
            "它是 ActiveX 脚本,SQL Server 自身也已不再支持",
        )),
        _ => BilingualSentence::new(
            format!("its subsystem {name} has no counterpart"),
            format!("其子系统 {name} 没有对应"),
        ),
    }
}
