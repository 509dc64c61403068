//! Tables of an XXL-JOB admin from JSON, with the columns' names; what is missing is as in a bare row.

use procession::domain::xxl::xxl_tables::{XxlGroup, XxlJob, XxlSchema, XxlTables, XxlUser};
use secrecy::SecretString;
use serde_json::Value;

/// Rows of a table, at most: an input repeats no more of use.
const ROWS_MAX: usize = 60;

/// The tables; `None` when the text is no JSON object.
pub(super) fn parse(text: &str) -> Option<XxlTables> {
    let document: Value = serde_json::from_str(text).ok()?;
    document.as_object()?;
    let schema = match document["schema"].as_str() {
        Some("2.2") => XxlSchema::V2_2,
        Some("3.2") => XxlSchema::V3_2,
        Some("3.4") => XxlSchema::V3_4,
        Some("3.5") => XxlSchema::V3_5,
        _ => XxlSchema::V2_3,
    };
    Some(XxlTables {
        schema,
        groups: rows(&document["groups"]).map(group).collect(),
        jobs: rows(&document["jobs"]).map(job).collect(),
        users: document["users"].is_array().then(|| rows(&document["users"]).map(user).collect()),
        server_zone: document["server_zone"].as_str().map(str::to_owned),
        unread: Vec::new(),
    })
}

fn rows(table: &Value) -> impl Iterator<Item = &Value> {
    table.as_array().into_iter().flatten().take(ROWS_MAX)
}

fn number(row: &Value, column: &str) -> i64 {
    row[column].as_i64().unwrap_or_default()
}

fn text(row: &Value, column: &str) -> String {
    row[column].as_str().unwrap_or_default().to_owned()
}

fn secret(row: &Value, column: &str) -> Option<SecretString> {
    row[column].as_str().map(SecretString::from)
}

fn group(row: &Value) -> XxlGroup {
    XxlGroup {
        id: number(row, "id"),
        app_name: text(row, "app_name"),
        title: text(row, "title"),
        address_type: number(row, "address_type"),
        address_list: text(row, "address_list"),
        access_token: secret(row, "access_token"),
    }
}

fn job(row: &Value) -> XxlJob {
    XxlJob {
        id: number(row, "id"),
        job_group: number(row, "job_group"),
        title: text(row, "job_desc"),
        author: text(row, "author"),
        alarm_email: text(row, "alarm_email"),
        schedule_type: text(row, "schedule_type"),
        schedule_conf: text(row, "schedule_conf"),
        misfire: text(row, "misfire_strategy"),
        route: text(row, "executor_route_strategy"),
        handler: text(row, "executor_handler"),
        param: text(row, "executor_param"),
        block: text(row, "executor_block_strategy"),
        timeout: number(row, "executor_timeout"),
        retries: number(row, "executor_fail_retry_count"),
        glue_type: text(row, "glue_type"),
        glue_source: text(row, "glue_source"),
        children: text(row, "child_jobid"),
        trigger_status: number(row, "trigger_status"),
        next_time: number(row, "trigger_next_time"),
    }
}

fn user(row: &Value) -> XxlUser {
    XxlUser {
        id: number(row, "id"),
        name: text(row, "username"),
        password: secret(row, "password"),
        role: number(row, "role"),
        permission: text(row, "permission"),
    }
}
