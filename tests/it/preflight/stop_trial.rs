//! `source check` runs a statement, stops it, and looks.

use crate::cli::said;
use crate::preflight::{is_mariadb, make_login};
use crate::util::with_scratch;
use procession::domain::source::DialectName;
use serde_json::{Value, json};

/// What `source check --json` says of the one source, as the user of `url`.
async fn checked(url: &str) -> Value {
    let folder = tempfile::tempdir().expect("folder");
    let yaml = format!(
        "sources: {{s: {{url: '{url}'}}}}\njobs: {{A: {{type: SQL, source: s, sql: SELECT 1}}}}\n"
    );
    std::fs::write(folder.path().join("dag.yaml"), yaml).expect("file");
    let path = folder.path().to_owned();
    let text = tokio::task::spawn_blocking(move || {
        let (code, _, error) = said(&path, &["apply", "dag.yaml"]);
        assert_eq!(code, 0, "{error}");
        said(&path, &["source", "check", "--json"]).1
    })
    .await
    .expect("ran");
    let all: Value = serde_json::from_str(&text).unwrap_or_else(|e| panic!("{e}: {text}"));
    assert_eq!(all[0]["stops_sessions"], true, "{text}");
    assert!(all[0]["stopped_after_ms"].as_u64().is_some_and(|ms| ms < 10_000), "{text}");
    all[0].clone()
}

#[tokio::test]
async fn mariadb_procedures_of_definers_are_judged_by_rights() {
    with_scratch(DialectName::Mysql, |db| async move {
        let login = make_login(&db).await;
        let is_mariadb = is_mariadb(&db).await;
        let right = if is_mariadb { "CONNECTION ADMIN" } else { "CONNECTION_ADMIN" };
        let found = checked(&login.url).await;
        let grant = format!("GRANT {right} ON *.* TO {}", login.name);
        assert_eq!(
            (&found["stops_definers"], &found["ok"]),
            (&json!(false), &json!(true)),
            "{found}"
        );
        assert_eq!(found["stops_definers_grant"], grant);
        // MariaDB lets everybody see what a session has on it.
        assert_eq!(found["keeps_sessions"], is_mariadb, "{found}");
        // As the check says it, and then nothing is left to say.
        db.setup(&[&grant]).await;
        if !is_mariadb {
            let grant = found["keeps_sessions_grant"].as_str().expect("a statement");
            db.setup(&[grant]).await;
        }
        let found = checked(&login.url).await;
        let yes = json!(true);
        assert_eq!((&found["stops_definers"], &found["keeps_sessions"]), (&yes, &yes), "{found}");
        // By a role, which has to be active when a session begins.
        let role = format!("r{}", &db.name[db.name.len() - 12..]);
        let default = if is_mariadb { "FOR" } else { "TO" };
        db.setup(&[
            &format!("REVOKE {right} ON *.* FROM {}", login.name),
            &format!("CREATE ROLE {role}"),
            &format!("GRANT {right} ON *.* TO {role}"),
            &format!("GRANT {role} TO {}", login.name),
        ])
        .await;
        assert_eq!(checked(&login.url).await["stops_definers"], false, "a role that is not active");
        db.setup(&[&format!("SET DEFAULT ROLE {role} {default} {}", login.name)]).await;
        assert_eq!(checked(&login.url).await["stops_definers"], true);
        db.setup(&[&format!("DROP ROLE {role}")]).await;
        login.drop(&db).await;
    })
    .await;
}

#[tokio::test]
async fn postgres_a_definers_function_is_stopped_and_nothing_is_left() {
    with_scratch(DialectName::Postgres, |db| async move {
        let login = make_login(&db).await;
        let found = checked(&login.url).await;
        assert_eq!(found["stop_trial"], "definer_function", "{found}");
        assert_eq!(found["stops_definers"], true, "{found}");
        db.setup(&[&format!("REVOKE TEMPORARY ON DATABASE {} FROM PUBLIC", db.name)]).await;
        assert_eq!(checked(&login.url).await["stop_trial"], "statement");
        let left = "SELECT count(*) FROM pg_proc WHERE proname LIKE '%stop_trial%'";
        db.wait_for(left, "0").await;
        login.drop(&db).await;
    })
    .await;
}

#[tokio::test]
async fn sqlite_a_long_query_is_interrupted() {
    with_scratch(DialectName::Sqlite, |db| async move {
        let found = checked(&db.url).await;
        assert_eq!(
            (&found["stop_trial"], &found["stops_definers"]),
            (&json!("statement"), &json!(true))
        );
    })
    .await;
}
