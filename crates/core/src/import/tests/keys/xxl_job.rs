//! The columns of XXL-JOB's tables.

use crate::domain::xxl::xxl_tables::{
    UnreadColumn, XxlGroup, XxlJob, XxlSchema, XxlTables, XxlUser,
};
use crate::import::tests::{KINDS, asked};
use crate::import::{Beyond, ChildJoin, XxlAsked, xxl_job};
use secrecy::SecretString;

fn tables(job: XxlJob) -> XxlTables {
    let next = XxlJob {
        id: 2,
        title: "child".to_owned(),
        schedule_type: "NONE".to_owned(),
        ..job.clone()
    };
    XxlTables {
        schema: XxlSchema::V3_4,
        groups: vec![XxlGroup {
            id: 1,
            app_name: "app-one".to_owned(),
            title: "one".to_owned(),
            address_type: 1,
            address_list: "http://10.0.0.1:9999".to_owned(),
            access_token: Some(SecretString::from("a-token-of-enough-letters")),
        }],
        jobs: vec![job, XxlJob { children: String::new(), ..next }],
        users: Some(vec![XxlUser {
            id: 1,
            name: "anna".to_owned(),
            password: None,
            role: 0,
            permission: "1".to_owned(),
        }]),
        server_zone: None,
        unread: Vec::new(),
    }
}

fn job() -> XxlJob {
    XxlJob {
        id: 1,
        job_group: 1,
        title: "close".to_owned(),
        schedule_type: "FIX_RATE".to_owned(),
        schedule_conf: "60".to_owned(),
        handler: "close".to_owned(),
        glue_type: "BEAN".to_owned(),
        trigger_status: 1,
        ..XxlJob::default()
    }
}

/// The definition, executors, users and notes.
fn heard(tables: &XxlTables) -> String {
    let wish = XxlAsked { children: ChildJoin::Any, beyond: Beyond::Written };
    match xxl_job(tables, &asked(), wish, KINDS) {
        Ok(made) => format!(
            "{}\n{:?}\n{:?}\n{:?}",
            made.imported.text, made.imported.notes, made.executors, made.users
        ),
        Err(error) => format!("refused: {error}"),
    }
}

/// A column and a change of it.
type JobChange = (&'static str, fn(&mut XxlJob));

#[test]
fn columns_of_a_job() {
    let changes: [JobChange; 18] = [
        ("job_group", |job| job.job_group = 7),
        ("title", |job| job.title = "open".to_owned()),
        ("author", |job| job.author = "anna".to_owned()),
        ("alarm_email", |job| job.alarm_email = "ops@bank.example".to_owned()),
        ("schedule_type", |job| job.schedule_type = "NONE".to_owned()),
        ("schedule_conf", |job| job.schedule_conf = "90".to_owned()),
        ("misfire", |job| job.misfire = "FIRE_ONCE_NOW".to_owned()),
        ("route", |job| job.route = "RANDOM".to_owned()),
        ("handler", |job| job.handler = "open".to_owned()),
        ("param", |job| job.param = "202407".to_owned()),
        ("block", |job| job.block = "COVER_EARLY".to_owned()),
        ("timeout", |job| job.timeout = 60),
        ("retries", |job| job.retries = 3),
        ("glue_type", |job| job.glue_type = "GLUE_SHELL".to_owned()),
        ("glue_source", |job| job.glue_source = "echo".to_owned()),
        ("children", |job| job.children = "2".to_owned()),
        ("trigger_status", |job| job.trigger_status = 0),
        ("next_time", |job| job.next_time = 1_795_284_000_000),
    ];
    let before = heard(&tables(job()));
    assert!(!before.starts_with("refused"), "{before}");
    for (column, change) in changes {
        let mut changed = job();
        change(&mut changed);
        assert_ne!(heard(&tables(changed)), before, "{column} is ignored");
    }
}

#[test]
fn the_handler_of_a_script_is_told_of() {
    let script = |handler: &str| XxlJob {
        handler: handler.to_owned(),
        glue_type: "GLUE_SHELL".to_owned(),
        glue_source: "echo".to_owned(),
        ..job()
    };
    assert!(heard(&tables(script("close"))).contains("its handler close is left out"));
    assert!(!heard(&tables(script(""))).contains("its handler"));
}

/// A column and a change of it.
type TableChange = (&'static str, fn(&mut XxlTables));

#[test]
fn columns_of_executors_and_users_and_those_that_are_not_read() {
    let changes: [TableChange; 10] = [
        ("app_name", |t| t.groups[0].app_name = "app-two".to_owned()),
        ("title", |t| t.groups[0].title = "two".to_owned()),
        ("address_type", |t| t.groups[0].address_type = 0),
        ("address_list", |t| t.groups[0].address_list = "http://10.0.0.2:9999".to_owned()),
        ("access_token", |t| t.groups[0].access_token = None),
        ("username", |t| t.users.iter_mut().flatten().for_each(|u| u.name = "bert".to_owned())),
        ("password", |t| {
            let digest = "0192023a7bbd73250516f069df18b500";
            t.users
                .iter_mut()
                .flatten()
                .for_each(|u| u.password = Some(SecretString::from(digest)));
        }),
        ("role", |t| t.users.iter_mut().flatten().for_each(|u| u.role = 1)),
        ("permission", |t| {
            t.users.iter_mut().flatten().for_each(|u| u.permission = "9".to_owned())
        }),
        ("users", |t| t.users = None),
    ];
    let before = heard(&tables(job()));
    for (column, change) in changes {
        let mut changed = tables(job());
        change(&mut changed);
        assert_ne!(heard(&changed), before, "{column} is ignored");
    }
    let unread = ["add_time", "token", "zz_unknown"];
    let mut more = tables(job());
    more.unread = unread
        .iter()
        .map(|column| UnreadColumn { table: "xxl_job_info", column: (*column).to_owned() })
        .collect();
    let after = heard(&more);
    assert!(after.contains("so nothing here has them: add_time, token"), "{after}");
    assert!(after.contains("key \\\"zz_unknown\\\" is left out"), "{after}");
}
