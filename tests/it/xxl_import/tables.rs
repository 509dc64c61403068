//! The tables of an admin of XXL-JOB as its releases make them, with rows as people have them. Written from
//! the documented columns.

use crate::util::{Scratch, query};
use procession::domain::source::DialectName;

/// A release whose tables differ from those of the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Release {
    V2_2,
    V2_4,
    V2_5,
    V3_2,
    V3_4,
    V3_5,
}

impl Release {
    pub(crate) const ALL: [Self; 6] =
        [Self::V2_2, Self::V2_4, Self::V2_5, Self::V3_2, Self::V3_4, Self::V3_5];
}

/// A job of the table; what is not said is as the console writes it.
#[derive(Clone)]
pub(crate) struct Row {
    pub(crate) id: i64,
    pub(crate) group: i64,
    pub(crate) title: &'static str,
    pub(crate) schedule: (&'static str, &'static str),
    pub(crate) handler: &'static str,
    pub(crate) param: &'static str,
    pub(crate) glue: (&'static str, &'static str),
    pub(crate) route: &'static str,
    pub(crate) block: &'static str,
    pub(crate) misfire: &'static str,
    pub(crate) timeout: i64,
    pub(crate) retries: i64,
    pub(crate) children: &'static str,
    pub(crate) status: i64,
    pub(crate) next: i64,
    pub(crate) email: &'static str,
}

impl Row {
    pub(crate) fn new(id: i64, title: &'static str) -> Self {
        Self {
            id,
            group: 1,
            title,
            schedule: ("NONE", ""),
            handler: "demoJobHandler",
            param: "",
            glue: ("BEAN", ""),
            route: "FIRST",
            block: "SERIAL_EXECUTION",
            misfire: "DO_NOTHING",
            timeout: 0,
            retries: 0,
            children: "",
            status: 0,
            next: 0,
            email: "",
        }
    }

    pub(crate) fn cron(mut self, cron: &'static str) -> Self {
        (self.schedule, self.status) = (("CRON", cron), 1);
        self
    }
}

/// MD5 and SHA-256 of `123456`.
pub(crate) const DEFAULT: [&str; 2] = [
    "e10adc3949ba59abbe56e057f20f883e",
    "8d969eef6ecad3c29a3a629280e686cf0c3f5d5a86aff3ca12020c923adc6c92",
];

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\\', "\\\\").replace('\'', "''"))
}

/// The columns of each table, in the types of MySQL.
fn columns(release: Release) -> [(&'static str, String); 4] {
    let at_least = |since: Release, then: &'static str, before: &'static str| {
        if release >= since { then } else { before }
    };
    let title = match release {
        Release::V3_5 => "name varchar(64) NOT NULL",
        Release::V3_4 => "title varchar(64) NOT NULL",
        _ => "title varchar(12) NOT NULL",
    };
    let addresses = at_least(Release::V2_4, "address_list text", "address_list varchar(512)");
    let group = format!(
        "id int NOT NULL PRIMARY KEY, app_name varchar(64) NOT NULL, {title}, \
         address_type tinyint NOT NULL DEFAULT 0, {addresses}{}{}",
        at_least(Release::V2_4, ", update_time datetime", ""),
        at_least(Release::V3_5, ", access_token varchar(255)", ""),
    );
    let schedule = at_least(
        Release::V2_4,
        "schedule_type varchar(50) NOT NULL DEFAULT 'NONE', schedule_conf varchar(128), \
         misfire_strategy varchar(50) NOT NULL DEFAULT 'DO_NOTHING'",
        "job_cron varchar(128) NOT NULL",
    );
    let info = format!(
        "id int NOT NULL PRIMARY KEY, job_group int NOT NULL, {} varchar(255) NOT NULL, \
         add_time datetime, update_time datetime, author varchar(64), alarm_email varchar(255), \
         {schedule}, executor_route_strategy varchar(50), executor_handler varchar(255), \
         executor_param {}, executor_block_strategy varchar(50), \
         executor_timeout int NOT NULL DEFAULT 0, executor_fail_retry_count int NOT NULL DEFAULT 0, \
         glue_type varchar(50) NOT NULL, glue_source mediumtext, glue_remark varchar(128), \
         glue_updatetime datetime, child_jobid varchar(255), trigger_status tinyint NOT NULL DEFAULT 0, \
         trigger_last_time bigint NOT NULL DEFAULT 0, trigger_next_time bigint NOT NULL DEFAULT 0",
        at_least(Release::V3_5, "name", "job_desc"),
        at_least(Release::V3_4, "text", "varchar(512)"),
    );
    let user = format!(
        "id int NOT NULL PRIMARY KEY, username varchar(50) NOT NULL UNIQUE, {}, \
         role tinyint NOT NULL, permission varchar(255)",
        at_least(
            Release::V3_2,
            "password varchar(100) NOT NULL, token varchar(100)",
            "password varchar(50) NOT NULL"
        ),
    );
    let registry = format!(
        "id {} NOT NULL PRIMARY KEY, registry_group varchar(50) NOT NULL, \
         registry_key varchar(255) NOT NULL, registry_value varchar(255) NOT NULL, update_time datetime",
        at_least(Release::V3_4, "bigint", "int"),
    );
    [
        ("xxl_job_group", group),
        ("xxl_job_info", info),
        ("xxl_job_user", user),
        ("xxl_job_registry", registry),
    ]
}

/// Makes the tables of a release in a database.
pub(crate) async fn make(scratch: &Scratch, release: Release) {
    for (table, columns) in columns(release) {
        let columns = match scratch.dialect {
            // As the forks that speak to PostgreSQL have it.
            DialectName::Postgres => columns
                .replace("tinyint", "smallint")
                .replace("mediumtext", "text")
                .replace("datetime", "timestamp"),
            _ => columns,
        };
        let end = match scratch.dialect {
            DialectName::Mysql => " ENGINE = InnoDB DEFAULT CHARSET = utf8mb4",
            _ => "",
        };
        query(&scratch.url, &format!("CREATE TABLE {table} ({columns}){end}")).await;
    }
}

/// Adds groups of executors: key, appname, title, addresses; a token from 3.5 on.
pub(crate) async fn add_groups(
    scratch: &Scratch,
    release: Release,
    rows: &[(i64, &str, &str, &str, &str)],
) {
    for (id, app, title, addresses, token) in rows {
        let name = if release >= Release::V3_5 { "name" } else { "title" };
        let (more, value) = match release >= Release::V3_5 {
            true => (", access_token", format!(", {}", quoted(token))),
            false => ("", String::new()),
        };
        let manual = i32::from(!addresses.is_empty());
        let sql = format!(
            "INSERT INTO xxl_job_group (id, app_name, {name}, address_type, address_list{more}) \
             VALUES ({id}, {}, {}, {manual}, {}{value})",
            quoted(app),
            quoted(title),
            quoted(addresses),
        );
        query(&scratch.url, &sql).await;
    }
}

fn values(release: Release, row: &Row, author: &str) -> String {
    let schedule = match release {
        Release::V2_2 => quoted(row.schedule.1),
        _ => format!(
            "{}, {}, {}",
            quoted(row.schedule.0),
            quoted(row.schedule.1),
            quoted(row.misfire)
        ),
    };
    format!(
        "({}, {}, {}, {}, {}, {schedule}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {})",
        row.id,
        row.group,
        quoted(row.title),
        quoted(author),
        quoted(row.email),
        quoted(row.route),
        quoted(row.handler),
        quoted(row.param),
        quoted(row.block),
        row.timeout,
        row.retries,
        quoted(row.glue.0),
        quoted(row.glue.1),
        quoted(row.children),
        row.status,
        row.next,
    )
}

/// Adds jobs.
pub(crate) async fn add_jobs(scratch: &Scratch, release: Release, rows: &[Row]) {
    let schedule = match release {
        Release::V2_2 => "job_cron",
        _ => "schedule_type, schedule_conf, misfire_strategy",
    };
    let name = if release >= Release::V3_5 { "name" } else { "job_desc" };
    for some in rows.chunks(200) {
        let all: Vec<String> = some.iter().map(|row| values(release, row, "李娜")).collect();
        let sql = format!(
            "INSERT INTO xxl_job_info (id, job_group, {name}, author, alarm_email, {schedule}, \
             executor_route_strategy, executor_handler, executor_param, executor_block_strategy, \
             executor_timeout, executor_fail_retry_count, glue_type, glue_source, child_jobid, \
             trigger_status, trigger_next_time) VALUES {}",
            all.join(", ")
        );
        // PostgreSQL takes a backslash as it is.
        let sql = match scratch.dialect {
            DialectName::Postgres => sql.replace("\\\\", "\\"),
            _ => sql,
        };
        query(&scratch.url, &sql).await;
    }
}

/// Adds users: key, name, password's digest, role, permission.
pub(crate) async fn add_users(scratch: &Scratch, rows: &[(i64, &str, &str, i64, &str)]) {
    for (id, name, password, role, permission) in rows {
        let sql = format!(
            "INSERT INTO xxl_job_user (id, username, password, role, permission) \
             VALUES ({id}, {}, {}, {role}, {})",
            quoted(name),
            quoted(password),
            quoted(permission)
        );
        query(&scratch.url, &sql).await;
    }
}
