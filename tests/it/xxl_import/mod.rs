//! `import xxl-job`: the databases of its admins, of every release whose tables differ, become definitions,
//! executors and users.

mod people;
pub(crate) mod tables;

use crate::cli::procession;
use crate::util::{Scratch, query, with_scratch};
use procession::domain::source::DialectName;
use serde_json::Value;
use std::path::Path;
use std::process::Output;
use tables::{DEFAULT, Release, Row, add_groups, add_jobs, add_users, make};

/// What the program says, with a key to seal with.
pub(crate) fn said(folder: &Path, args: &[&str]) -> (i32, String, String) {
    let mut command = procession(folder);
    command.env("PROCESSION_SECRET_KEY", format!("{}=", "A".repeat(43))).args(args);
    let Output { status, stdout, stderr } = command.output().expect("the program runs");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("UTF-8");
    (status.code().expect("an exit code"), text(stdout), text(stderr))
}

fn well(folder: &Path, args: &[&str]) -> String {
    let (code, out, err) = said(folder, args);
    assert_eq!(code, 0, "{args:?}\n{out}\n{err}");
    out
}

/// Imports a database into `out` of a folder; the document that is printed.
fn imported(folder: &Path, scratch: &Scratch, more: &[&str]) -> Value {
    let args = ["--json", "import", "xxl-job", "--url", &scratch.url, "--out", "out"];
    serde_json::from_str(&well(folder, &[&args, more].concat())).expect("JSON")
}

fn text(folder: &Path, file: &str) -> String {
    std::fs::read_to_string(folder.join(file)).expect(file)
}

/// Notes whose sentence holds a word.
fn notes<'a>(document: &'a Value, word: &str) -> Vec<&'a Value> {
    let all = document["notes"].as_array().expect("notes").iter();
    all.filter(|n| n["message"]["en"].as_str().is_some_and(|said| said.contains(word))).collect()
}

/// What a bank has.
fn jobs(release: Release) -> Vec<Row> {
    let shell = "#!/bin/bash\necho \"param $1\"\nexit 0\n";
    let mut all = vec![
        Row {
            children: "2,3",
            param: "202407,'quoted' \\ back",
            retries: 3,
            timeout: 600,
            email: "ops@bank.example,not an address",
            // 2026-11-22 02:00 in Shanghai.
            next: 1_795_284_000_000,
            ..Row::new(1, "月末结账").cron("0 0 2 * * ?")
        },
        Row {
            handler: "glHandler",
            route: "CONSISTENT_HASH",
            children: "4",
            ..Row::new(2, "总账过账")
        },
        Row {
            group: 2,
            handler: "arHandler",
            route: "SHARDING_BROADCAST",
            children: "4",
            ..Row::new(3, "AR post")
        },
        Row { block: "DISCARD_LATER", ..Row::new(4, "报表") },
        Row {
            glue: ("GLUE_SHELL", shell),
            handler: "",
            ..Row::new(5, "clean up").cron("0 0 0 L * ? *")
        },
        Row { status: 0, ..Row::new(6, "stopped").cron("0 0/5 * * * ?") },
        Row { misfire: "FIRE_ONCE_NOW", ..Row::new(7, "every second").cron("* * * * * ?") },
    ];
    if release != Release::V2_2 {
        all.push(Row {
            schedule: ("FIX_RATE", "300"),
            status: 1,
            next: 1_795_284_000_000,
            ..Row::new(8, "five minutes")
        });
        all.push(Row { param: "{\"a\":\"${b}\"}", ..Row::new(9, "by hand") });
    }
    all
}

async fn fill(scratch: &Scratch, release: Release) {
    make(scratch, release).await;
    let tokens = "a-token-of-eighteen-and-more";
    add_groups(
        scratch,
        release,
        &[
            (1, "pay-executor", "支付执行器", "", tokens),
            (2, "ar-executor", "应收", "http://10.0.0.7:9999/,http://10.0.0.8:9999", tokens),
        ],
    )
    .await;
    add_jobs(scratch, release, &jobs(release)).await;
    let hash = usize::from(release >= Release::V3_2);
    add_users(scratch, &[(1, "admin", DEFAULT[hash], 1, ""), (2, "li.na", DEFAULT[hash], 0, "1")])
        .await;
}

/// Every release, on the servers where its tables are.
async fn each<F>(test: F)
where
    F: AsyncFn(Release, std::sync::Arc<Scratch>),
{
    for release in Release::ALL {
        with_scratch(DialectName::Mysql, |scratch| test(release, scratch)).await;
    }
    for release in [Release::V2_4, Release::V3_4] {
        with_scratch(DialectName::Postgres, |scratch| test(release, scratch)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tables_of_every_release_become_a_definition_that_is_sound() {
    each(async |release, scratch| {
        fill(&scratch, release).await;
        let folder = tempfile::tempdir().expect("folder");
        let path = folder.path();
        let document = imported(path, &scratch, &[]);
        let version = ["2.2", "2.3 … 3.1", "2.3 … 3.1", "3.2 … 3.3", "3.4", "3.5"];
        let at = Release::ALL.iter().position(|r| *r == release).expect("known");
        assert_eq!(document["version"], version[at]);
        let of_2_2 = release == Release::V2_2;
        // In 2.2 every job has a cron, so an empty one is by hand alone.
        assert_eq!(document["groups"], if of_2_2 { 4 } else { 6 });
        assert_eq!(document["dependencies"], 4);
        assert_eq!(document["schedules"], if of_2_2 { 4 } else { 5 });
        assert_eq!((&document["executor_groups"], &document["users"]), (&2.into(), &2.into()));
        let yaml = text(path, "out/definition.yaml");
        for line in [
            "月末结账:",
            "app: pay-executor",
            "handler: glHandler",
            "route: CONSISTENT_HASH",
            "route: SHARDING_BROADCAST",
            "block: DISCARD_LATER",
            "language: shell",
            "trigger_rule: one_success",
            "send: text",
            r#"value: "202407,'quoted' \\ back""#,
            "cron: 0 0 2 * * ?",
            "cron: 0 0 0 L * ? *",
            "cron: '* * * * * ?'",
            "manual: true",
            "Asia/Shanghai",
            "owner: 李娜",
        ] {
            let plain = line.replace('\'', "\"");
            assert!(yaml.contains(line) || yaml.contains(&plain), "{release:?}: {line}\n{yaml}");
        }
        if !of_2_2 {
            assert!(yaml.contains("every_sec: 300"), "{yaml}");
            assert!(
                yaml.contains("start: \"2026-11-22T02:00:00\"")
                    || yaml.contains("start: 2026-11-22T02:00:00"),
                "{yaml}"
            );
            assert!(yaml.contains("${params.xxl_param_9}"), "{yaml}");
        }
        assert_eq!(notes(&document, "as there").len(), 0);
        assert_eq!(notes(&document, "each of its 2 parents").len(), 1);
        assert_eq!(notes(&document, "each of its shards").len(), 1);
        assert_eq!(notes(&document, "is not written to").len(), 1);
        assert_eq!(notes(&document, "switched off").len(), 1);
        assert_eq!(notes(&document, "times of day").len(), 0, "the next times agree with Shanghai");
        assert_eq!(notes(&document, "password that everybody knows").len(), 2);
        well(path, &["check", "out/definition.yaml"]);
        let report = text(path, "out/import-report.md");
        assert!(report.contains("executor-group add pay-executor"), "{report}");
        let (code, _, err) =
            said(path, &["import", "xxl-job", "--url", &scratch.url, "--out", "out"]);
        assert!(code == 2 && err.contains("not empty"), "{code} {err}");
        assert_eq!(text(path, "out/definition.yaml"), yaml);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn circles_and_ids_that_lead_nowhere_are_left_out_and_told() {
    with_scratch(DialectName::Mysql, async |scratch| {
        make(&scratch, Release::V3_4).await;
        add_groups(&scratch, Release::V3_4, &[(1, "pay-executor", "pay", "", "")]).await;
        let jobs = [
            Row { children: "2", ..Row::new(1, "A").cron("0 0 2 * * ?") },
            Row { children: "1, 2 ,77,x", ..Row::new(2, "B") },
            Row { children: "4", ..Row::new(3, "C") },
            Row { children: "3", group: 9, ..Row::new(4, "D") },
        ];
        add_jobs(&scratch, Release::V3_4, &jobs).await;
        let folder = tempfile::tempdir().expect("folder");
        let document = imported(folder.path(), &scratch, &["--children", "all"]);
        assert_eq!(document["groups"], 2, "{document}");
        assert_eq!(document["dependencies"], 2);
        for (word, count) in [
            ("run for ever", 2),
            ("no such job", 1),
            ("is no number", 1),
            ("names itself", 1),
            ("no group 9", 1),
        ] {
            assert_eq!(notes(&document, word).len(), count, "{word}: {document}");
        }
        well(folder.path(), &["check", "out/definition.yaml"]);
        assert!(text(folder.path(), "out/definition.yaml").contains("app: missing-9"));
    })
    .await;
}

/// What comes out is applied, and its schedules are there; a second time changes nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_comes_out_is_applied() {
    with_scratch(DialectName::Mysql, async |scratch| {
        fill(&scratch, Release::V3_4).await;
        let long: &'static str = Box::leak("echo 一行\n".repeat(60).into_boxed_str());
        let script = Row { glue: ("GLUE_PYTHON", long), ..Row::new(20, "long: script") };
        add_jobs(&scratch, Release::V3_4, &[script]).await;
        let folder = tempfile::tempdir().expect("folder");
        let path = folder.path();
        imported(path, &scratch, &["--group", "xxl", "--zone", "UTC"]);
        assert_eq!(text(path, "out/scripts/long__script.py"), long);
        well(path, &["--db", "sqlite:ours.db", "migrate"]);
        well(path, &["--db", "sqlite:ours.db", "apply", "out/definition.yaml"]);
        let all = well(path, &["--db", "sqlite:ours.db", "--json", "schedule", "list"]);
        let all: Value = serde_json::from_str(&all).expect("JSON");
        assert_eq!(all.as_array().map(Vec::len), Some(5), "{all}");
        let again =
            well(path, &["--db", "sqlite:ours.db", "--json", "diff", "out/definition.yaml"]);
        let again: Value = serde_json::from_str(&again).expect("JSON");
        assert_eq!(again["changes"].as_array().map(Vec::len), Some(0), "{again}");
    })
    .await;
}

/// A thousand jobs in chains of ten, some of them shared; two ways to read what children wait for.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_jobs_come_over() {
    with_scratch(DialectName::Mysql, async |scratch| {
        make(&scratch, Release::V3_2).await;
        add_groups(&scratch, Release::V3_2, &[(1, "pay-executor", "pay", "", "")]).await;
        let name = |id: i64| -> &'static str { Box::leak(format!("作业 {id}").into_boxed_str()) };
        let row = |id: i64| {
            let next: &'static str =
                if id % 10 == 0 { "" } else { Box::leak((id + 1).to_string().into_boxed_str()) };
            let row = Row { children: next, param: "x", ..Row::new(id, name(id)) };
            if id % 10 == 1 { row.cron("0 30 2 * * ?") } else { row }
        };
        let jobs: Vec<Row> = (1..=1_000).map(row).collect();
        add_jobs(&scratch, Release::V3_2, &jobs).await;
        let folder = tempfile::tempdir().expect("folder");
        let document = imported(folder.path(), &scratch, &[]);
        assert_eq!((&document["groups"], &document["jobs"]), (&100.into(), &1_000.into()));
        assert_eq!((&document["dependencies"], &document["schedules"]), (&900.into(), &100.into()));
        assert_eq!(document["left_out"], 0, "{}", document["notes"]);
        let count = |kind: &str, read: u64| {
            serde_json::json!({"kind": kind, "read": read, "carried": read, "changed": 0, "left_out": 0})
        };
        assert_eq!(document["counts"][0], count("job", 1_000));
        assert_eq!(document["counts"][1], count("schedule", 100));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_user_who_may_only_read_is_enough_and_nothing_is_written_there() {
    with_scratch(DialectName::Mysql, async |scratch| {
        fill(&scratch, Release::V2_5).await;
        let reader = format!("xxl_{}", &scratch.name[scratch.name.len() - 12..]);
        let server = crate::util::server(DialectName::Mysql);
        for sql in [
            format!("CREATE USER '{reader}'@'127.0.0.1' IDENTIFIED BY 'only-reads'"),
            format!("GRANT SELECT ON {}.xxl_job_group TO '{reader}'@'127.0.0.1'", scratch.name),
            format!("GRANT SELECT ON {}.xxl_job_info TO '{reader}'@'127.0.0.1'", scratch.name),
        ] {
            query(&server, &sql).await;
        }
        let folder = tempfile::tempdir().expect("folder");
        let path = folder.path();
        std::fs::write(path.join("password"), "only-reads\n").expect("file");
        let port = url::Url::parse(&server).expect("URL").port().unwrap_or(3306);
        let url = format!("mysql://{reader}@127.0.0.1:{port}/{}", scratch.name);
        let args = ["--json", "import", "xxl-job", "--url", &url, "--dry-run"];
        let (code, out, err) = said(path, &[&args[..], &["--password-file", "password"]].concat());
        assert_eq!(code, 0, "{err}");
        let document: Value = serde_json::from_str(&out).expect("JSON");
        assert_eq!(document["users"], 0);
        assert_eq!(notes(&document, "users are left out").len(), 1);
        assert!(!path.join("out").exists());
        let (code, _, err) = said(path, &args);
        assert!(code != 0 && !err.contains("only-reads"), "without the password: {err}");
        let wrong = url.replacen('@', ":only-reads@", 1);
        let (code, _, err) = said(path, &["import", "xxl-job", "--url", &wrong, "--dry-run"]);
        assert!(
            code == 2 && err.contains("--password-file") && !err.contains("only-reads"),
            "{err}"
        );
        query(&server, &format!("DROP USER '{reader}'@'127.0.0.1'")).await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_no_admins_database_is_refused_with_a_sentence() {
    let folder = tempfile::tempdir().expect("folder");
    let refused = |url: &str| {
        let (code, _, err) = said(folder.path(), &["import", "xxl-job", "--url", url, "--dry-run"]);
        assert_eq!(code, 2, "{err}");
        err
    };
    assert!(refused("sqlite:x.db").contains("mysql://user@host:3306/xxl_job"));
    assert!(!folder.path().join("x.db").exists());
    with_scratch(DialectName::Mysql, async |scratch| {
        assert!(refused(&scratch.url).contains("no table xxl_job_group"));
        make(&scratch, Release::V3_4).await;
        query(&scratch.url, "ALTER TABLE xxl_job_info DROP COLUMN child_jobid").await;
        assert!(refused(&scratch.url).contains("no column child_jobid"));
    })
    .await;
}
