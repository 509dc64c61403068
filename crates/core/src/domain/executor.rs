//! Executors of XXL-JOB for which this installation is the admin, and the call that a job makes.

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

/// Primary key of an `executor_run` row, sent to executors as `logId`. Never above 2^53, because a JavaScript executor
/// would answer with another number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LogId(pub i64);

impl fmt::Display for LogId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

/// A group of executors with one name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExecutorGroup {
    /// App name, under which executors register.
    pub app_name: AppName,
    /// Display name.
    pub title: String,
    /// How their addresses are known.
    pub addressing: Addressing,
    /// Whether scripts may be sent to them.
    pub glue: GluePolicy,
    /// Which groups of jobs may use them.
    pub access: GroupAccess,
}

/// How the addresses of an executor group are known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Addressing {
    /// By registration of the executors.
    Registered,
    /// By an operator's fixed list.
    Fixed(Vec<String>),
}

/// Whether scripts may be sent to the executors of a group, which run whatever they receive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GluePolicy {
    /// Permitted.
    Allowed,
    /// Forbidden.
    Refused,
}

/// Registration of an executor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Registration {
    /// Its executor group.
    pub app_name: AppName,
    /// Its URL, without a slash at the end.
    pub address: String,
    /// Protocol version: 3.5 sends its name in a header, and accepts `/trigger` for `/run`.
    pub dialect: Spoken,
    /// Start of its current uninterrupted registration.
    pub since: Millis,
    /// Its last registration.
    pub seen: Millis,
}

impl Registration {
    /// Whether it counts as available.
    pub fn is_there(&self, now: Millis) -> bool {
        now.since(self.seen) <= GONE_MS
    }
}

/// Protocol of an executor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spoken {
    /// 2.2 to 3.4.
    Run,
    /// 3.5.
    Trigger,
}

/// Milliseconds without a registration after which an executor counts as gone.
pub const GONE_MS: i64 = 90_000;

/// The call of an executor job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExecutorCall {
    /// The executor group.
    pub app: AppName,
    /// The handler to call; none when a script is sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handler: Option<String>,
    /// Language of the script.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub language: Option<GlueLanguage>,
    /// How parameters are sent.
    #[serde(default)]
    pub send: ExecutorSend,
    /// Which executor of the group is called.
    #[serde(default)]
    pub route: RouteStrategy,
    /// Policy while an earlier run of the job has not ended.
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

/// How the parameters of a job are sent to its executor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(rename_all = "lowercase")]
pub enum ExecutorSend {
    /// As a JSON object of the batch's number and date, the idempotency key, and the parameters.
    #[default]
    Json,
    /// The text of the job's only parameter, verbatim.
    Text,
    /// Nothing.
    None,
}

impl ExecutorSend {
    /// Every form.
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

/// Language of a script sent to an executor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum GlueLanguage {
    /// Groovy; compiled inside the executor.
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
