//! Executors of XXL-JOB that this installation is the admin of, and what a job asks of one.

pub mod address;
pub mod app_name;
pub mod block;
pub mod route;
pub mod run_wait;
pub mod token;

use crate::domain::access::group_access::GroupAccess;
use crate::domain::executor::app_name::AppName;
use crate::domain::executor::block::BlockStrategy;
use crate::domain::executor::route::RouteStrategy;
use crate::domain::time::Millis;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Key of an `executor_run` row, and the `logId` that executors know it by. Never above 2^53, beyond
/// which a JavaScript executor would answer another number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LogId(pub i64);

impl fmt::Display for LogId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

/// Executors of one name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExecutorGroup {
    /// Its name; what executors register under.
    pub app_name: AppName,
    /// Its name for people.
    pub title: String,
    /// Where they are.
    pub addressing: Addressing,
    /// Whether scripts may be sent to them.
    pub glue: GluePolicy,
    /// Which groups of jobs may use them.
    pub access: GroupAccess,
}

/// Where the executors of a group are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Addressing {
    /// Where they said that they are.
    Registered,
    /// Where an operator said.
    Fixed(Vec<String>),
}

/// Whether scripts may be sent to the executors of a group, which run whatever they are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GluePolicy {
    /// They may.
    Allowed,
    /// They may not.
    Refused,
}

/// Where an executor said that it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Registration {
    /// Its group.
    pub app_name: AppName,
    /// Its URL, without a slash at the end.
    pub address: String,
    /// Whether it speaks as 3.5 does: it says its name in a header, and takes `/trigger` for `/run`.
    pub dialect: Spoken,
    /// When it said so first, in a row without a gap.
    pub since: Millis,
    /// When it said so last.
    pub seen: Millis,
}

impl Registration {
    /// Whether it counts as there.
    pub fn is_there(&self, now: Millis) -> bool {
        now.since(self.seen) <= GONE_MS
    }
}

/// What an executor speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spoken {
    /// 2.2 to 3.4.
    Run,
    /// 3.5.
    Trigger,
}

/// After so long without a word an executor counts as gone.
pub const GONE_MS: i64 = 90_000;

/// What a job asks of an executor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExecutorCall {
    /// The executor group.
    pub app: AppName,
    /// What is to be called; none when a script is sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handler: Option<String>,
    /// What the script that is sent is written in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub language: Option<GlueLanguage>,
    /// How parameters travel.
    #[serde(default)]
    pub send: ExecutorSend,
    /// Which of them.
    #[serde(default)]
    pub route: RouteStrategy,
    /// What is done while an earlier run of the job is not over.
    #[serde(default)]
    pub block: BlockStrategy,
}

impl ExecutorCall {
    /// What is called: the handler, or a script of a language.
    pub fn describe(&self) -> String {
        match (&self.handler, self.language) {
            (Some(handler), _) => handler.clone(),
            (None, Some(language)) => format!("a script ({})", language.as_str()),
            (None, None) => String::new(),
        }
    }
}

impl fmt::Display for ExecutorCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { app, send, route, block, .. } = self;
        let (what, send) = (self.describe(), send.as_str());
        write!(f, "{what} on {app}, route {route}, block {block}, send {send}")
    }
}

/// How the parameters of a job travel to its executor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(rename_all = "lowercase")]
pub enum ExecutorSend {
    /// As a JSON object of the batch's number and date, the idempotency key, and the parameters.
    #[default]
    Json,
    /// The text of the job's one parameter, as it is.
    Text,
    /// Nothing.
    None,
}

impl ExecutorSend {
    /// Every way.
    pub const ALL: [Self; 3] = [Self::Json, Self::Text, Self::None];

    /// The word in definitions.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Json => "json",
            Self::Text => "text",
            Self::None => "none",
        }
    }
}

/// What a script that is sent to an executor is written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum GlueLanguage {
    /// Java's; compiled inside the executor.
    Groovy,
    /// `bash`
    Shell,
    /// Python 3.
    Python,
    /// Python 2.
    Python2,
    /// PHP.
    Php,
    /// Node.js.
    Nodejs,
    /// PowerShell.
    Powershell,
}

impl GlueLanguage {
    /// Every language.
    pub const ALL: [Self; 7] = [
        Self::Groovy,
        Self::Shell,
        Self::Python,
        Self::Python2,
        Self::Php,
        Self::Nodejs,
        Self::Powershell,
    ];

    /// The word in definitions.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Groovy => "groovy",
            Self::Shell => "shell",
            Self::Python => "python",
            Self::Python2 => "python2",
            Self::Php => "php",
            Self::Nodejs => "nodejs",
            Self::Powershell => "powershell",
        }
    }

    /// XXL-JOB's `glueType`.
    pub fn glue_type(self) -> &'static str {
        match self {
            Self::Groovy => "GLUE_GROOVY",
            Self::Shell => "GLUE_SHELL",
            Self::Python => "GLUE_PYTHON",
            Self::Python2 => "GLUE_PYTHON2",
            Self::Php => "GLUE_PHP",
            Self::Nodejs => "GLUE_NODEJS",
            Self::Powershell => "GLUE_POWERSHELL",
        }
    }
}
