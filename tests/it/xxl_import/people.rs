//! `--apply`: executors and users, and the passwords with which they log in.

use super::tables::{Release, add_groups, add_jobs, add_users, make};
use super::{DEFAULT, Row, fill, notes, said, well};
use crate::util::with_scratch;
use procession::app::access::{NotIn, Stranger};
use procession::app::{App, EmptyDatabase};
use procession::config::Config;
use procession::domain::access::user::UserName;
use procession::domain::access::{Grants, Permission};
use procession::domain::id::GroupCode;
use procession::domain::source::DialectName;
use std::path::Path;

async fn open(url: &str) -> App {
    let mut config = Config::load_file(None).expect("settings");
    config.database.url = url.to_owned().into();
    App::open(config, EmptyDatabase::Refuse).await.expect("open")
}

fn apply(folder: &Path, from: &str, db: &str, out: &str) -> serde_json::Value {
    let args = [
        "--db",
        db,
        "--json",
        "import",
        "xxl-job",
        "--url",
        from,
        "--out",
        out,
        "--apply",
        "--executor-token-file",
        "token",
    ];
    serde_json::from_str(&well(folder, &args)).expect("JSON")
}

/// Executors and users are written once, whatever there was stays, and who had a password logs in with it.
async fn users_come_with_their_passwords(dialect: DialectName) {
    with_scratch(DialectName::Mysql, async |xxl| {
        fill(&xxl, Release::V3_4).await;
        add_users(
            &xxl,
            &[
                (3, "wang.wei", &sha("tuN9-glaze-orbit"), 0, "1,2"),
                (4, "zhao", &sha("sunshine9"), 0, "2"),
                (5, "李娜", DEFAULT[1], 0, "1"),
                (6, "plain", "123456", 0, "1"),
            ],
        )
        .await;
        with_scratch(dialect, async |ours| {
            let folder = tempfile::tempdir().expect("folder");
            let path = folder.path();
            std::fs::write(path.join("token"), "the-token-of-all-executors\n").expect("file");
            let db = ours.url.as_str();
            well(path, &["--db", db, "migrate"]);
            let without =
                ["--db", db, "import", "xxl-job", "--url", &xxl.url, "--out", "o", "--apply"];
            let (code, _, err) = said(path, &without);
            assert!(code == 2 && err.contains("ar-executor, pay-executor"), "{code} {err}");
            let document = apply(path, &xxl.url, db, "one");
            let applied = &document["applied"];
            assert_eq!(applied["executor_groups"].as_array().map(Vec::len), Some(2), "{applied}");
            assert_eq!(applied["users"].as_array().map(Vec::len), Some(5), "{applied}");
            assert_eq!(notes(&document, "cannot be a user name").len(), 1);
            let again = apply(path, &xxl.url, db, "two");
            assert_eq!(again["applied"]["users"].as_array().map(Vec::len), Some(0));
            assert_eq!(again["applied"]["users_there"].as_array().map(Vec::len), Some(5));
            assert_eq!(notes(&again, "is here already").len(), 7);
            logins(db).await;
        })
        .await;
    })
    .await;
}

fn sha(word: &str) -> String {
    let digest = ring::digest::digest(&ring::digest::SHA256, word.as_bytes());
    digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}

async fn logins(db: &str) {
    let app = open(db).await;
    let porter = app.porter();
    let from = Stranger { address: "10.1.2.3".to_owned(), agent: None };
    let log_in = async |name: &str, word: &str| {
        porter.log_in(name, secrecy::SecretString::from(word).into(), &from).await
    };
    let stored = async |name: &str| {
        let (user, grants) =
            porter.get_user(&UserName::parse(name).expect("name")).await.expect("there");
        let hash =
            user.password.as_ref().map(|h| secrecy::ExposeSecret::expose_secret(h).to_owned());
        (hash.unwrap_or_default(), user, Grants::new(grants))
    };
    let (before, _, grants) = stored("wang.wei").await;
    assert!(before.starts_with("$xxl-sha256$argon2id$"), "{before}");
    assert!(!before.contains(&sha("tuN9-glaze-orbit")), "no digest of XXL-JOB rests here");
    let group = GroupCode::parse("月末结账").expect("code");
    for (permission, may) in [
        (Permission::View, true),
        (Permission::Run, true),
        (Permission::Edit, true),
        (Permission::Script, false),
        (Permission::Admin, false),
    ] {
        assert_eq!(grants.allow(permission, &group), may, "{permission}");
    }
    // A wrong one changes nothing.
    let wrong = log_in("wang.wei", "tuN9-glaze-orbis").await.err().expect("refused");
    assert!(matches!(wrong.downcast_ref(), Some(NotIn::Wrong)));
    let digest = log_in("wang.wei", &sha("tuN9-glaze-orbit")).await.err().expect("refused");
    assert!(matches!(digest.downcast_ref(), Some(NotIn::Wrong)), "the digest is no password");
    assert_eq!(stored("wang.wei").await.0, before);
    // The right one, and the hash is ours from then on.
    let entered = log_in("wang.wei", "tuN9-glaze-orbit").await.expect("in");
    assert!(!entered.user.must_change);
    let (after, user, _) = stored("wang.wei").await;
    assert!(after.starts_with("$argon2id$") && !user.must_change, "{after}");
    log_in("wang.wei", "tuN9-glaze-orbit").await.expect("in again");
    assert_eq!(stored("wang.wei").await.0, after, "once");
    // One that is not good enough here lets in to be changed.
    let entered = log_in("zhao", "sunshine9").await.expect("in");
    assert!(entered.user.must_change && entered.user.password_until.is_some());
    assert!(stored("zhao").await.1.must_change);
    // The one that everybody knows.
    let (_, admin, grants) = stored("admin").await;
    assert!(admin.must_change && admin.password_until.is_some());
    assert!(grants.allow_everywhere(Permission::Admin));
    let entered = log_in("admin", "123456").await.expect("in");
    assert!(entered.user.must_change);
    let new = "quartz-lantern-orbit-7";
    let name = UserName::parse("admin").expect("name");
    let same = porter.change_password(&name, "123456".into(), "123456".into(), &from).await;
    assert!(same.is_err());
    let entered = porter.change_password(&name, "123456".into(), new.into(), &from).await;
    assert!(!entered.expect("changed").user.must_change);
    log_in("admin", new).await.expect("in");
    assert!(log_in("admin", "123456").await.is_err());
    // No digest: there is a user, whom nobody can be yet.
    assert!(log_in("plain", "123456").await.is_err());
    let sql = "SELECT COUNT(*) AS n FROM audit_log WHERE action = 'password renewed'";
    let rows = app.db.query_rows(sql, &[]).await.expect("rows");
    assert_eq!(rows[0].get_int("n").expect("n"), 3, "wang.wei, zhao, admin");
    app.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn users_come_with_their_passwords_sqlite() {
    users_come_with_their_passwords(DialectName::Sqlite).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn users_come_with_their_passwords_mysql() {
    users_come_with_their_passwords(DialectName::Mysql).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn users_come_with_their_passwords_postgres() {
    users_come_with_their_passwords(DialectName::Postgres).await;
}

/// A token of a group of 3.5 is that group's; one that everybody knows is not taken, and then nothing is
/// written at all.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_of_it_is_written_or_nothing() {
    with_scratch(DialectName::Mysql, async |xxl| {
        make(&xxl, Release::V3_5).await;
        let groups = [
            (1, "pay-executor", "支付", "", "a-token-of-its-own-1234"),
            (2, "ar-executor", "应收", "", "default_token"),
        ];
        add_groups(&xxl, Release::V3_5, &groups).await;
        add_jobs(&xxl, Release::V3_5, &[Row::new(1, "A")]).await;
        add_users(&xxl, &[(1, "admin", DEFAULT[1], 1, "")]).await;
        with_scratch(DialectName::Sqlite, async |ours| {
            let folder = tempfile::tempdir().expect("folder");
            let path = folder.path();
            let db = ours.url.as_str();
            well(path, &["--db", db, "migrate"]);
            let import = |more: &[&str]| {
                let args =
                    ["--db", db, "import", "xxl-job", "--url", &xxl.url, "--out", "out", "--apply"];
                said(path, &[&args[..], more].concat())
            };
            let (code, _, err) = import(&[]);
            assert!(code == 2 && err.contains("executors ar-executor:"), "{err}");
            std::fs::write(path.join("token"), "default_token").expect("file");
            let (code, _, err) = import(&["--executor-token-file", "token"]);
            assert!(code == 2 && err.contains("fewer than 16"), "{err}");
            assert!(!path.join("out").exists());
            assert_eq!(well(path, &["--db", db, "--json", "user", "list"]).trim(), "[]");
            std::fs::write(path.join("token"), "another-token-of-twenty").expect("file");
            let (code, _, err) = import(&["--executor-token-file", "token", "--dry-run"]);
            assert_eq!(code, 0, "{err}");
            assert_eq!(well(path, &["--db", db, "--json", "user", "list"]).trim(), "[]");
            let (code, _, err) = import(&["--executor-token-file", "token"]);
            assert_eq!(code, 0, "{err}");
            let groups = well(path, &["--db", db, "--json", "executor-group", "list"]);
            assert!(groups.contains("pay-executor") && groups.contains("ar-executor"), "{groups}");
        })
        .await;
    })
    .await;
}
