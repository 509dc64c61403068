//! What is read of groups, jobs, schedules and what the installation keeps: shapes, pages, and who sees what.

use crate::api::server::Server;
use axum::http::Method;
use procession::domain::access::Role;
use procession::domain::access::group_access::GroupAccess;
use procession::domain::id::GroupCode;
use procession::domain::time::Millis;
use procession::store::{self, secret::SealedSecret};
use serde_json::{Value, json};

/// Two groups, `ours` and `theirs`, with jobs whose codes alternate, and a schedule of each.
fn two_groups() -> String {
    let mut text = String::from(
        "sources:\n  - { name: dw, url: 'mysql://app@dbhost:3306/dw', password_env: DW_PASSWORD }\n\
         groups:\n  - { code: ours, name: Our group, type: monthly, owner: ann, time_zone: Asia/Shanghai }\n  \
         - { code: theirs, name: Their group, type: daily }\njobs:\n",
    );
    for i in 0..12 {
        let group = if i % 2 == 0 { "ours" } else { "theirs" };
        let after = if i >= 2 { format!(", depends_on: [J{:02}]", i - 2) } else { String::new() };
        let extra = match i {
            0 => ", tags: [gl], aliases: [OPEN_LEDGER]",
            10 => ", tags: [gl, eom], is_active: false",
            _ => "",
        };
        text.push_str(&format!(
            "  - {{ code: J{i:02}, name: Job {i}, group: {group}, type: NOOP{after}{extra} }}\n"
        ));
    }
    text.push_str(
        "  - { code: Q1, name: Query, group: ours, type: SQL, source: dw, sql: 'SELECT 1' }\n\
         schedules:\n  - { code: ours_monthly, group: ours, batch_no: month(-1), cron: '0 0 2 1 * ?', \
         time_zone: Asia/Shanghai }\n  - { code: theirs_daily, group: theirs, batch_no: day(0), \
         cron: '0 30 18 * * ?', time_zone: UTC }\n",
    );
    text
}

/// A server with both groups, an administrator's token, and that of somebody who sees `ours`.
async fn bench() -> (Server, String, String) {
    let server = Server::new().await;
    let admin = server.admin().await;
    let text = json!({ "text": two_groups(), "remark": "for a test" });
    server.send(Method::POST, "/definition/apply", &admin, &text).await.is(200);
    let ann = server.token(&[("ours", Role::Viewer, &[])]).await;
    (server, admin, ann)
}

/// What the items of all pages say of themselves.
async fn walked(server: &Server, path: &str, token: &str, name: &str) -> Vec<String> {
    let (mut found, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = server.get(&format!("{path}{cursor}"), token).await.is(200);
        let items = page["items"].as_array().expect("items");
        let word = |item: &Value| match &item[name] {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        found.extend(items.iter().map(word));
        let Some(next) = page["next"].as_str() else { return found };
        assert!(!items.is_empty(), "a page that is empty says that there are more");
        cursor = format!("&cursor={next}");
    }
}

fn codes(page: &Value) -> Vec<&str> {
    page["items"].as_array().expect("items").iter().filter_map(|i| i["code"].as_str()).collect()
}

#[tokio::test]
async fn pages_of_jobs_are_whole_however_many_foreign_ones_lie_between() {
    let (server, admin, ann) = bench().await;
    let ours = ["J00", "J02", "J04", "J06", "J08", "J10", "Q1"];
    assert_eq!(walked(&server, "/jobs?limit=2", &ann, "code").await, ours);
    assert_eq!(walked(&server, "/jobs?limit=5", &admin, "code").await.len(), 13);
    let first = server.get("/jobs?limit=3", &ann).await.is(200);
    assert_eq!(codes(&first), ["J00", "J02", "J04"]);
    for (query, wanted) in [
        ("q=job%201", &["J10"][..]),
        ("q=open_led", &["J00"]),
        ("tag=gl", &["J00", "J10"]),
        ("tag=g", &[]),
        ("active=false", &["J10"]),
        ("type=SQL", &["Q1"]),
        ("group=theirs", &[]),
        ("q=%25", &[]),
    ] {
        let page = server.get(&format!("/jobs?{query}"), &ann).await.is(200);
        assert_eq!(codes(&page), wanted, "{query}");
    }
    server.get("/jobs?limit=0", &ann).await.is(400);
    server.get("/jobs?cursor=nonsense!", &ann).await.is(400);
    server.get("/jobs?colour=red", &ann).await.is(400);
    server.get("/jobs", "").await.is(401);
}

#[tokio::test]
async fn a_job_of_a_foreign_group_is_not_there() {
    let (server, admin, ann) = bench().await;
    let job = server.get("/jobs/J02", &ann).await.is(200);
    assert_eq!(job["job"]["code"], "J02");
    assert_eq!(job["depends_on"], json!(["J00"]));
    assert_eq!(job["children"], json!(["J04"]));
    assert_eq!(job["dependencies"][0]["depends_on"], "J00");
    assert_eq!(job["group_version"], 1);
    assert_eq!(server.get("/jobs/OPEN_LEDGER", &ann).await.is(200)["job"]["code"], "J00");
    let stats = server.get("/jobs/J02/stats", &ann).await.is(200);
    assert_eq!((&stats["successful_attempts"], &stats["p50_ms"]), (&json!(0), &Value::Null));
    for path in ["/jobs/J01", "/jobs/J01/stats", "/jobs/NONE", "/jobs/a%20b", "/groups/theirs"] {
        let refused = server.get(path, &ann).await.is(404);
        assert_eq!(refused["type"], "urn:procession:problem:not-found", "{path}");
    }
    server.get("/jobs/J01", &admin).await.is(200);
    for path in [
        "/schedules/theirs_daily",
        "/schedules/theirs_daily/next",
        "/schedules/theirs_daily/firings",
        "/groups/theirs/versions",
        "/groups/theirs/versions/1",
        "/groups/theirs/versions/0/diff/1",
        "/definition/export?group=theirs",
        "/params?job=J01&batch_no=202407",
        "/calendar?from=2024-08-01&to=2024-08-31&group=theirs",
        "/backfills/1",
        "/outbox/1",
        "/calendars/none",
    ] {
        server.get(path, &ann).await.is(404);
    }
}

#[tokio::test]
async fn groups_are_told_with_counts_schedules_and_version() {
    let (server, admin, ann) = bench().await;
    let page = server.get("/groups", &ann).await.is(200);
    assert_eq!(codes(&page), ["ours"]);
    assert_eq!(page["items"][0]["jobs"], 7);
    assert_eq!(page["items"][0]["active_jobs"], 6);
    assert_eq!(page["items"][0]["last_batch"], Value::Null);
    assert_eq!(walked(&server, "/groups?limit=1", &admin, "code").await, ["ours", "theirs"]);
    let group = server.get("/groups/ours", &ann).await.is(200);
    assert_eq!(group["group"]["time_zone"], "Asia/Shanghai");
    assert_eq!(group["schedules"], json!(["ours_monthly"]));
    assert_eq!(group["version"], 1);
}

#[tokio::test]
async fn schedules_are_told_with_what_they_mean_and_when_they_fire() {
    let (server, admin, ann) = bench().await;
    let page = server.get("/schedules", &ann).await.is(200);
    let one = &page["items"][0];
    assert_eq!(page["items"].as_array().map(Vec::len), Some(1));
    assert_eq!(one["schedule"]["code"], "ours_monthly");
    assert_eq!(one["sentence"]["en"], "at 02:00 on the 1st of the month, time of Asia/Shanghai");
    assert_eq!(one["sentence"]["zh"], "每月 1 日 02:00，时区 Asia/Shanghai");
    let all = server.get("/schedules?limit=1", &admin).await.is(200);
    assert!(all["next"].is_string());
    let next = server.get("/schedules/ours_monthly/next?n=2", &ann).await.is(200);
    assert_eq!(next["next"][0]["planned_at"], "2024-08-31T18:00:00.000Z");
    assert_eq!(next["next"][0]["batch_no"], "202408");
    assert_eq!(next["next"].as_array().map(Vec::len), Some(2));
    server.get("/schedules/ours_monthly/next?n=0", &ann).await.is(400);
    let none = server.get("/schedules/ours_monthly/firings", &ann).await.is(200);
    assert_eq!(none, json!({"items": [], "next": null}));
    let tried = json!({"words": {"cron": "0 0/15 8-18 ? * MON-FRI", "group": "ours",
        "batch_no": "day(0)"}, "n": 1});
    let tried = server.send(Method::POST, "/schedules/preview", &ann, &tried).await.is(200);
    assert_eq!(tried["time_zone"], "Asia/Shanghai");
    assert_eq!(
        tried["sentence"]["en"],
        "every 15 minutes from 08:00 to 18:45, from Monday to Friday, time of Asia/Shanghai"
    );
    // The zone of a group that the caller does not see is not told.
    let foreign = json!({"words": {"manual": true, "group": "theirs"}});
    let foreign = server.send(Method::POST, "/schedules/preview", &ann, &foreign).await.is(200);
    assert_eq!(foreign["time_zone"], "UTC");
    let bad = json!({"words": {"cron": "0 0 25 * * ?"}});
    let bad = server.send(Method::POST, "/schedules/preview", &ann, &bad).await.is(422);
    assert!(bad["detail"].as_str().is_some_and(|d| d.contains("hour")), "{bad}");
    let path = "/cron/preview?expr=0%200%2018%20L%20*%20%3F&zone=Asia/Shanghai&n=1";
    let cron = server.get(path, &ann).await.is(200);
    assert_eq!(cron["cron_sentence"]["en"], "at 18:00 on the last day of the month");
    assert_eq!(cron["next"][0]["planned_local"], "2024-08-31 18:00:00 +08:00");
    server.get("/cron/preview?expr=nonsense", &ann).await.is(422);
}

#[tokio::test]
async fn what_belongs_to_no_group_is_told_to_who_may_know_it() {
    let (server, admin, ann) = bench().await;
    let nodes = server.get("/nodes", &ann).await.is(200);
    assert!(nodes["items"][0]["host"].is_string(), "{nodes}");
    let sources = server.get("/sources", &ann).await.is(200);
    assert_eq!(sources["items"][0]["name"], "dw");
    assert_eq!(sources["items"][0]["at"], Value::Null);
    assert_eq!(sources["items"][0]["password_from"], Value::Null);
    let sources = server.get("/sources", &admin).await.is(200);
    assert!(sources["items"][0]["at"].as_str().is_some_and(|at| at.contains("dbhost")));
    server.get("/calendars", &ann).await.is(200);
    server.get("/snoozes", &ann).await.is(200);
    assert_eq!(server.get("/outbox", &ann).await.is(200), json!({"items": [], "next": null}));
    assert_eq!(server.get("/backfills", &ann).await.is(200), json!({"items": [], "next": null}));
    for path in ["/settings", "/secrets", "/retention/preview", "/definition/export"] {
        // Of what belongs to groups she may have a part.
        let refused = if path == "/definition/export" { 422 } else { 403 };
        server.get(path, &ann).await.is(refused);
        server.get(path, "").await.is(401);
        let answer = server.get(path, &admin).await;
        assert_eq!(answer.status, 200, "{path}: {}", answer.text);
    }
}

#[tokio::test]
async fn settings_are_told_without_what_hides() {
    let server = Server::with("[http.oidc]\nclient_secret_env = 'OIDC_SECRET'\n").await;
    let admin = server.admin().await;
    let shown = server.get("/settings", &admin).await.is(200);
    assert_eq!(shown["settings"]["http"]["oidc"]["client_secret_env"], "OIDC_SECRET");
    assert_eq!(shown["settings"]["engine"]["lease_sec"], 15);
    assert!(
        shown["settings"]["database"]["url"].as_str().is_some_and(|u| u.starts_with("sqlite:"))
    );
}

#[tokio::test]
async fn secrets_are_listed_with_their_places_and_no_value() {
    let folder = tempfile::tempdir().expect("folder");
    std::fs::write(folder.path().join("pw"), "hunter-in-a-file\n").expect("file");
    let settings = format!(
        "[secret_stores.files]\ntype = 'folder'\npath = '{}'\nsecrets.A_PW = {{ key = 'pw', groups = ['gl'] }}\n\
         [secret_stores.corp]\ntype = 'vault'\naddress = 'http://127.0.0.1:1'\nauth = 'token'\n\
         secrets.B_PW = {{ key = 'batch/b#password', owner_group = 'gl' }}\n",
        folder.path().display()
    );
    let server = Server::with(&settings).await;
    let admin = server.admin().await;
    let shown = server.get("/secrets", &admin).await.is(200);
    let of = |at: usize, key: &str| shown["items"][at][key].clone();
    assert_eq!(of(0, "place"), "folder files, file pw");
    assert_eq!((of(0, "state"), of(0, "groups")), (json!("ready"), json!(["gl"])));
    // Another machine is not asked for a list.
    assert_eq!(of(1, "place"), "vault corp, batch/b#password");
    assert_eq!((of(1, "state"), of(1, "owner_group")), (json!("not_asked"), json!("gl")));
    assert!(!shown.to_string().contains("hunter"), "{shown}");
    let sent = json!({"value": "another-one", "reason": "why"});
    let refused = server.send(Method::PUT, "/secrets/A_PW", &admin, &sent).await.is(422);
    assert!(refused.to_string().contains("a stored one would not be used"), "{refused}");
}

#[tokio::test]
async fn a_stored_secret_is_given_to_groups_and_its_users_are_named() {
    let server = Server::with("").await;
    let admin = server.admin().await;
    let defs = "groups: { gl: {}, risk: {} }\nsecrets: { DB_PW: { env: HOME } }\n\
                sources: { ledger: { url: 'mysql://u@127.0.0.1/d', password_secret: DB_PW } }\n\
                jobs: { A: { group: gl, type: SCRIPT, script: 'true', params: [{ name: p, value: '${secret.FX}' }] } }\n";
    server.apply(defs).await;
    let db = crate::util::connect(&server.database_url()).await;
    let mut tx = db.begin().await.expect("a transaction");
    let access = GroupAccess { owner_group: GroupCode::parse("gl").ok(), groups: None };
    let sealed = SealedSecret { sealed: "sealed-text".to_owned(), access };
    let now = Millis(1_700_000_000_000);
    store::secret::put_secret(&mut tx, "FX", &sealed, "ann", now).await.expect("stored");
    tx.commit().await.expect("stored");
    let listed = async || server.get("/secrets", &admin).await.is(200)["items"].clone();
    let found = listed().await;
    assert_eq!(
        (&found[0]["name"], &found[0]["used_by"]),
        (&json!("DB_PW"), &json!(["source ledger"]))
    );
    assert_eq!((&found[1]["name"], &found[1]["used_by"]), (&json!("FX"), &json!(["job A (gl)"])));
    assert_eq!(found[1]["owner_group"], "gl");
    // Its value stays, and so does what it opens.
    let given = json!({"owner_group": "gl", "groups": ["risk"], "reason": "they book it"});
    server.send(Method::PATCH, "/secrets/FX", &admin, &given).await.is(200);
    let found = listed().await;
    assert_eq!(found[1]["groups"], json!(["risk"]));
    let mut tx = db.begin().await.expect("a transaction");
    let stored = store::secret::find_secret(&mut tx, "FX").await.expect("read").expect("there");
    assert_eq!(stored.sealed, "sealed-text");
    tx.rollback().await.expect("undone");
    let empty = json!({"reason": "they book it"});
    let nothing = server.send(Method::PATCH, "/secrets/FX", &admin, &empty).await.is(422);
    assert!(nothing.to_string().contains("say who may use it"), "{nothing}");
    server.send(Method::PATCH, "/secrets/NONE", &admin, &given).await.is(404);
    server.send(Method::PATCH, "/secrets/DB_PW", &admin, &given).await.is(404);
    let acts = format!("{:?}", server.audit().await);
    assert!(acts.contains("secret grant") && acts.contains("for_groups"), "{acts}");
    assert!(!acts.contains("sealed-text"), "{acts}");
}

#[tokio::test]
async fn a_month_has_its_firings_and_no_foreign_ones() {
    let (server, admin, ann) = bench().await;
    let path = "/calendar?from=2024-08-01&to=2024-09-01&zone=Asia/Shanghai";
    let month = server.get(path, &ann).await.is(200);
    let days = month["items"].as_array().expect("days");
    assert_eq!(days.len(), 32);
    assert_eq!(days[31]["date"], "2024-09-01");
    assert_eq!(days[31]["firings"][0]["schedule"], "ours_monthly");
    assert_eq!(days[31]["firings"][0]["batch_no"], "202408");
    assert!(days[..31].iter().all(|day| day["firings"] == json!([])), "{days:?}");
    let month = server.get(path, &admin).await.is(200);
    assert_eq!(month["items"][4]["firings"][0]["schedule"], "theirs_daily");
    assert_eq!(month["items"][4]["working"], Value::Null);
    server.get("/calendar?from=2024-08-01&to=2024-12-01", &ann).await.is(400);
    server.get("/calendar?from=2024-08-02&to=2024-08-01", &ann).await.is(400);
}

#[tokio::test]
async fn one_box_finds_the_best_first_and_nothing_foreign() {
    let (server, admin, ann) = bench().await;
    let found = server.get("/search?q=j0", &ann).await.is(200);
    assert_eq!(found["jobs"][0]["code"], "J00");
    assert_eq!(found["jobs"].as_array().map(Vec::len), Some(5));
    let found = server.get("/search?q=group", &admin).await.is(200);
    assert_eq!(found["groups"].as_array().map(Vec::len), Some(2));
    let found = server.get("/search?q=theirs", &ann).await.is(200);
    assert_eq!(found, json!({"jobs": [], "groups": [], "batches": [], "schedules": []}));
    let found = server.get("/search?q=ours", &ann).await.is(200);
    assert_eq!(found["groups"][0]["code"], "ours");
    assert_eq!(found["schedules"][0]["code"], "ours_monthly");
    assert_eq!(server.get("/search?q=open_l", &ann).await.is(200)["jobs"][0]["code"], "J00");
    server.get("/search?q=%20", &ann).await.is(400);
}

#[tokio::test]
async fn versions_are_files_and_what_differs() {
    let (server, admin, ann) = bench().await;
    let changed = two_groups().replace("name: Job 2,", "name: Second,");
    let body = json!({ "text": changed, "remark": "a name" });
    server.send(Method::POST, "/definition/apply", &admin, &body).await.is(200);
    let list = server.get("/groups/ours/versions", &ann).await.is(200);
    assert_eq!(list["items"][0]["version"], 2);
    assert_eq!(list["items"][0]["remark"], "a name");
    let diff = server.get("/groups/ours/versions/1/diff/2", &ann).await.is(200);
    assert_eq!(diff["changes"].as_array().map(Vec::len), Some(1));
    assert_eq!(diff["changes"][0]["fields"][0]["new"], "Second");
    assert_eq!(
        server.get("/groups/ours/versions/2/diff/now", &ann).await.is(200)["changes"],
        json!([])
    );
    let file = server.get("/groups/ours/versions/1", &ann).await;
    assert!(file.text.contains("Job 2") && !file.text.contains("dbhost"), "{}", file.text);
    let file = server.get("/definition/export?group=ours", &admin).await;
    assert_eq!(file.headers["content-type"], "application/yaml");
    assert!(file.text.contains("dbhost") && file.text.contains("ours_monthly"), "{}", file.text);
    assert!(!file.text.contains("J01"), "{}", file.text);
    server.get("/groups/ours/versions/9", &ann).await.is(404);
    server.get("/groups/ours/versions/9/diff/1", &ann).await.is(404);
    assert!(server.get("/definition/schema", &ann).await.is(200)["properties"].is_object());
}

#[tokio::test]
async fn parameters_are_told_by_layer_and_secrets_masked() {
    let server = Server::new().await;
    let admin = server.admin().await;
    let text = "groups:\n  - { code: g, name: G, params: { rate: '7' } }\njobs:\n  \
                - { code: A, name: A, group: g, type: SCRIPT, interpreter: sh, script: 'true', params: \
                [{ name: rate }, { name: day, value: '${batch_no}' }, \
                { name: pw, secret: true, value: '${secret.VAULT}' }] }\n";
    let body = json!({ "text": text, "remark": "for a test" });
    server.send(Method::POST, "/definition/apply", &admin, &body).await.is(200);
    let shown = server.get("/params?job=A&batch_no=202407", &admin).await.is(200);
    let of = |name: &str| {
        let all = shown["params"].as_array().expect("params");
        all.iter().find(|p| p["name"] == name).cloned().unwrap_or_default()
    };
    assert_eq!((&of("rate")["value"], &of("rate")["layer"]), (&json!("7"), &json!("group")));
    assert_eq!(of("day")["value"], "202407");
    assert_eq!(of("pw")["value"], "***");
    assert_eq!(shown["is_open"], false);
}
