//! The data source of jobs that another scheduler ran in its own database, and the notes about all such jobs.

use crate::domain::id::SourceName;
use crate::domain::job::JobDef;
use crate::domain::source::DialectName;
use crate::domain::source::scheduler_tables::SchedulerServer;
use crate::domain::source::sql_text::{SqlText, TransactionMode};
use crate::domain::source::statement::{split, words};
use crate::domain::source::transaction_scan::breaks_transaction;
use crate::import::draft::Draft;
use crate::import::note::{ImportOrigin, Level};
use url::Url;

/// A database on the server whose tables were imported.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ServerDatabase<'a> {
    pub(crate) server: &'a SchedulerServer,
    pub(crate) dialect: DialectName,
    pub(crate) database: &'a str,
    /// The user that the jobs ran as, if known.
    pub(crate) user: Option<&'a str>,
}

impl ServerDatabase<'_> {
    /// The data source, created on first use: the address is known, the password is not.
    pub(crate) fn source(&self, at: &ImportOrigin, draft: &mut Draft) -> SourceName {
        let title = match self.user {
            Some(user) => format!("{}_{user}", self.database),
            None => self.database.to_owned(),
        };
        let Some(url) = self.url() else { return draft.source(at, &title, self.dialect) };
        let is_first = draft.is_first("source of a server", &title);
        let name = draft.source_at(&title, &url);
        if is_first {
            draft.end_item_for(|draft| {
                draft.note(
                    Level::Look,
                    at, name.as_str(),
                    (
                        format!("source {name} is {url}, without a password"),
                        format!("数据源 {name} 为 {url},不含密码"),
                    ),
                    (
                        "check that its user may do what the jobs do, and name where its password is: \
                         password_env: VARIABLE",
                        "请确认其用户有作业所需的权限,并用 password_env: 变量名 指定密码",
                    ),
                );
            });
        }
        name
    }

    fn url(&self) -> Option<String> {
        let mut url = Url::parse(self.server.url.as_deref()?).ok()?;
        url.set_path(self.database);
        if let Some(user) = self.user {
            url.set_username(user).ok()?;
        }
        url.set_password(None).ok()?;
        Some(url.to_string())
    }
}

/// Sets a SQL text that the scheduler ran with autocommit, and keeps its transaction behaviour.
pub(crate) fn set_sql(job: &mut JobDef, text: &str, dialect: DialectName) {
    let statements = split(text, dialect);
    // A procedure and a DO block may commit, which PostgreSQL permits only outside of a transaction.
    let may_commit = |text: &str| {
        let first = words(text, dialect, 1);
        first.first().is_some_and(|w| ["CALL", "DO"].iter().any(|c| w.eq_ignore_ascii_case(c)))
    };
    let is_bare = breaks_transaction(text, dialect).is_some()
        || (dialect == DialectName::Postgres && statements.iter().any(|s| may_commit(&s.text)));
    job.transaction = match (is_bare, statements.len()) {
        (true, _) => TransactionMode::None,
        // PostgreSQL runs several statements of one message as one transaction.
        (false, 2..) if dialect == DialectName::Postgres => TransactionMode::One,
        (false, _) => TransactionMode::Each,
    };
    job.sql = Some(SqlText::Same(format!("{}\n", text.trim_end())));
}

/// Adds one note about all jobs of a scheduler without time limits.
pub(crate) fn note_no_limits(table: &str, system: &str, draft: &mut Draft) {
    draft.end_item();
    draft.note(
        Level::Differs,
        &ImportOrigin::new(table, 0), "",
        (
            format!(
                "{system}: no run is limited there; time-outs are 30 days here, the longest there is; a time that was missed is not \
                 made up for (misfire: skip), and runs may overlap (overlap: parallel), as there"
            ),
            format!(
                "{system}:原系统不限制运行时长;此处超时设为上限 30 天;错过的时间不补跑(misfire: skip),\
                 允许同时运行(overlap: parallel),与原系统一致"
            ),
        ),
        (
            "set timeout_sec to what a run may take, and overlap: skip or queue where two at once do harm",
            "请将 timeout_sec 设为合理时长;不宜并行的请改用 overlap: skip 或 queue",
        ),
    );
}
