//! A data source: a named database on which bodies run.

pub mod routine_name;
pub mod scheduler_tables;
pub mod sql_text;
pub mod sqlite_confinement;
pub mod statement;
pub(crate) mod token;
pub mod transaction_scan;
pub mod transport;
pub mod tx_class;

use crate::domain::access::group_access::GroupAccess;
use crate::domain::id::SourceName;
use schemars::JsonSchema;
use secrecy::SecretString;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// SQL dialect of a database, metadata store or data source.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
#[schemars(rename = "Dialect")]
pub enum DialectName {
    /// SQLite, a file.
    Sqlite,
    /// MySQL 8 or MariaDB 10.6 and later.
    Mysql,
    /// PostgreSQL 13 and later.
    Postgres,
}

impl DialectName {
    /// All dialects, in the order of the documentation.
    pub const ALL: [Self; 3] = [Self::Sqlite, Self::Mysql, Self::Postgres];

    /// The word used in files, URLs and directory names.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Sqlite => "sqlite",
            Self::Mysql => "mysql",
            Self::Postgres => "postgres",
        }
    }

    /// The dialect of a URL's scheme; `None` for any scheme but `sqlite`, `mysql`, `mariadb`,
    /// `postgres` and `postgresql`.
    pub fn of_url(url: &str) -> Option<Self> {
        match url.split_once(':')?.0 {
            "sqlite" => Some(Self::Sqlite),
            "mysql" | "mariadb" => Some(Self::Mysql),
            "postgres" | "postgresql" => Some(Self::Postgres),
            _ => None,
        }
    }
}

impl std::fmt::Display for DialectName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.as_str())
    }
}

/// The password of a source as just read from a secret store. It is in no table and no text, and
/// does not take part in comparisons of sources.
#[derive(Clone, Debug, Default)]
pub struct ReadPassword(pub Option<SecretString>);

impl PartialEq for ReadPassword {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for ReadPassword {}

/// A data source as defined. `url` never contains a password: that is read when a connection is
/// opened, so that no table, export or log can show it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DataSource {
    /// Name; `PROCESSION_SOURCE_<NAME>` (upper case, `-` as `_`) may replace the URL.
    pub name: SourceName,
    /// `sqlite:file.db`, `mysql://user@host:3306/db` or `postgres://user@host:5432/db`.
    pub url: String,
    /// Environment variable that holds the password, if one is needed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub password_env: Option<String>,
    /// File whose first line is the password, if one is needed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub password_file: Option<String>,
    /// Name of the secret that is the password, if one is needed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub password_secret: Option<String>,
    /// The value of that secret, once this process has read it.
    #[serde(skip)]
    pub read_password: ReadPassword,
    /// Maximum number of concurrent bodies; `None`: only the global limit applies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_parallel: Option<u32>,
    /// Named SQL bodies that replace procedures where the database has none (SQLite).
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub procedures: BTreeMap<String, String>,
    /// Groups that may use it.
    #[serde(flatten)]
    pub access: GroupAccess,
}

impl DataSource {
    /// The environment variable that may replace this source's URL.
    pub fn url_env(&self) -> String {
        format!("PROCESSION_SOURCE_{}", self.name.as_str().to_ascii_uppercase().replace('-', "_"))
    }
}
