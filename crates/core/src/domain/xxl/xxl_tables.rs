//! Rows of an XXL-JOB admin's tables, unchecked: words in any spelling, keys that may point
//! nowhere.

use secrecy::SecretString;
use std::fmt;

/// The XXL-JOB release of the tables, as far as their columns tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum XxlSchema {
    /// `job_cron` in place of a schedule type.
    V2_2,
    /// Schedules of several types, passwords as MD5.
    V2_3,
    /// Passwords as SHA-256.
    V3_2,
    /// Parameters of any length.
    V3_4,
    /// A token per executor group; `name` in place of `title` and `job_desc`.
    V3_5,
}

/// The columns that distinguish releases.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Signs {
    /// `xxl_job_info.job_cron`
    pub job_cron: bool,
    /// `xxl_job_info.name`
    pub job_name: bool,
    /// `xxl_job_user.token`
    pub user_token: bool,
    /// `xxl_job_info.executor_param` is of type `text`.
    pub long_param: bool,
}

impl XxlSchema {
    /// The release of tables that have these columns.
    pub fn from_columns(signs: Signs) -> Self {
        match signs {
            Signs { job_cron: true, .. } => Self::V2_2,
            Signs { job_name: true, .. } => Self::V3_5,
            Signs { long_param: true, user_token: true, .. } => Self::V3_4,
            Signs { user_token: true, .. } => Self::V3_2,
            _ => Self::V2_3,
        }
    }
}

impl fmt::Display for XxlSchema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::V2_2 => "2.2",
            Self::V2_3 => "2.3 … 3.1",
            Self::V3_2 => "3.2 … 3.3",
            Self::V3_4 => "3.4",
            Self::V3_5 => "3.5",
        })
    }
}

/// Everything that is read.
#[derive(Clone, Debug)]
pub struct XxlTables {
    /// Release of the tables.
    pub schema: XxlSchema,
    /// `xxl_job_group`, by key.
    pub groups: Vec<XxlGroup>,
    /// `xxl_job_info`, by key.
    pub jobs: Vec<XxlJob>,
    /// `xxl_job_user`, by key; none when it may not be read.
    pub users: Option<Vec<XxlUser>>,
    /// IANA zone of the database server, if known.
    pub server_zone: Option<String>,
    /// Columns of these tables that are not read: of the release, or added by a fork.
    pub unread: Vec<UnreadColumn>,
}

/// A column that is not read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnreadColumn {
    /// Its table.
    pub table: &'static str,
    /// Its name, in lower case.
    pub column: String,
}

/// A row of `xxl_job_group`: executors.
#[derive(Clone, Debug)]
pub struct XxlGroup {
    /// Key.
    pub id: i64,
    /// Under what they register.
    pub app_name: String,
    /// For people.
    pub title: String,
    /// 0: where they say that they are; 1: where somebody wrote.
    pub address_type: i64,
    /// URLs with commas between.
    pub address_list: String,
    /// The token that they share with the admin; from 3.5 on.
    pub access_token: Option<SecretString>,
}

/// A row of `xxl_job_info`: a job.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct XxlJob {
    /// Key.
    pub id: i64,
    /// The key of its executors.
    pub job_group: i64,
    /// For people.
    pub title: String,
    /// Who answers for it.
    pub author: String,
    /// Addresses with commas between.
    pub alarm_email: String,
    /// `NONE`, `CRON`, `FIX_RATE`.
    pub schedule_type: String,
    /// A cron expression or seconds.
    pub schedule_conf: String,
    /// `DO_NOTHING`, `FIRE_ONCE_NOW`.
    pub misfire: String,
    /// Which executor.
    pub route: String,
    /// What is called.
    pub handler: String,
    /// With what.
    pub param: String,
    /// What is done while an earlier run goes on.
    pub block: String,
    /// Seconds; 0 is none.
    pub timeout: i64,
    /// Tries after the first.
    pub retries: i64,
    /// `BEAN`, or what its script is written in.
    pub glue_type: String,
    /// Its script.
    pub glue_source: String,
    /// Keys of the jobs that its success starts, with commas between.
    pub children: String,
    /// Whether its schedule fires: 1.
    pub trigger_status: i64,
    /// When it fires next; milliseconds, 0 where that is not known.
    pub next_time: i64,
}

/// A row of `xxl_job_user`.
#[derive(Clone, Debug)]
pub struct XxlUser {
    /// Key.
    pub id: i64,
    /// Its name.
    pub name: String,
    /// The password's digest; none when it may not be read.
    pub password: Option<SecretString>,
    /// 1: everything; 0: the groups of `permission`.
    pub role: i64,
    /// Keys of groups of executors, with commas between.
    pub permission: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_are_told_by_their_columns() {
        let none = Signs::default();
        let token = Signs { user_token: true, ..none };
        let long = Signs { long_param: true, ..none };
        for (signs, schema) in [
            (none, XxlSchema::V2_3),
            (Signs { job_cron: true, ..none }, XxlSchema::V2_2),
            (token, XxlSchema::V3_2),
            (Signs { long_param: true, ..token }, XxlSchema::V3_4),
            (Signs { job_name: true, ..token }, XxlSchema::V3_5),
            // A fork that made every column text.
            (long, XxlSchema::V2_3),
        ] {
            assert_eq!(XxlSchema::from_columns(signs), schema, "{signs:?}");
        }
    }
}
