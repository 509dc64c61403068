//! S-07: what strangers, and executors of others, can do at the desk. Each thing is refused and on record,
//! and changes no row.

use crate::xxl::admin_bench::{Desk, FORGED, OTHER, TEAM, WELL, code, end, on_with, registry};
use crate::xxl::at_each_desk;
use procession::domain::executor::LogId;
use procession::domain::source::DialectName;
use procession::store::executor_group;
use procession::store::executor_run::ReportedRunEnd;
use serde_json::json;
use std::collections::BTreeSet;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

at_each_desk! {
    what_is_forged_is_refused_and_changes_nothing
    what_was_held_back_comes_on_record
    a_stop_between_the_commit_and_the_answer_changes_nothing
    a_token_that_was_changed_is_worth_nothing_at_once
}

const PATH: &str = "/xxl-job-admin/api";

fn token(token: &str) -> String {
    format!("XXL-JOB-ACCESS-TOKEN: {token}\r\n")
}

/// No token, and nothing of one, is in what is kept or answered.
async fn says_no_token(desk: &Desk) {
    let mut tx = desk.db.begin_read().await.expect("read");
    let rows = tx.fetch_all("SELECT actor, host, detail FROM audit_log", &[]).await.expect("rows");
    for row in rows {
        let text = format!("{row:?}");
        for token in [TEAM, OTHER, FORGED] {
            assert!(!text.contains(&token[..16]), "{text}");
        }
    }
}

/// What is sent: the reason it is refused for, its headers, the word of its path, its body, and what is answered.
type Forgery = (&'static str, String, &'static str, String, &'static str);

const WRONG: &str = "The access token is wrong.";

/// Whoever shows no token, not all of one, or one that is not his name's.
fn strangers(well: &str, here: &str) -> Vec<Forgery> {
    let team = token(TEAM);
    let named = |name: &str| format!("{team}XXL-JOB-APPNAME: {name}\r\n");
    let shown = [
        (String::new(), "callback"),
        (token(""), "callback"),
        (token("default_token"), "callback"),
        (token(FORGED), "callback"),
        (token(&TEAM[..TEAM.len() - 1]), "callback"),
        (token(&format!("{TEAM}x")), "callback"),
        (format!("XXL-RPC-ACCESS-TOKEN: {TEAM}\r\n"), "callback"),
        (token(FORGED), "registry"),
        (token(FORGED), "registryRemove"),
        (token(FORGED), "anything"),
        (named("other-executor"), "callback"),
        (named("nobody"), "registry"),
    ];
    let body = |word| if word == "callback" { well.to_owned() } else { here.to_owned() };
    shown.into_iter().map(|(headers, word)| ("token", headers, word, body(word), WRONG)).collect()
}

/// Another group's run, with one's own token; and a run that no executor was asked for.
fn thieves((own, others, not_asked): (i64, i64, i64)) -> Vec<Forgery> {
    let named = format!("{}XXL-JOB-APPNAME: stock-executor\r\n", token(TEAM));
    let ends = |run| end(run, 200, "x");
    let not_his = "is not one of this executor's";
    vec![
        ("other-run", token(TEAM), "callback", ends(others), not_his),
        ("other-run", token(OTHER), "callback", ends(own), not_his),
        ("other-run", named, "callback", ends(own), not_his),
        ("not-asked", token(TEAM), "callback", ends(not_asked), "has not been asked for"),
    ]
}

/// What is too much, or nothing that could be read.
fn broken(own: i64, here: &str) -> Vec<Forgery> {
    let item = |id: i64| json!({"logId": id, "handleCode": 200});
    let many = json!((0..5_001).map(item).collect::<Vec<_>>()).to_string();
    let large = end(own, 200, &"x".repeat(400_000));
    let text = r#"[{"logId":"9","handleCode":200}]"#.to_owned();
    let place = "line 1, column";
    let bodies = [
        ("too-many", "callback", many, "5001 ends of runs at once; send 5000 at most"),
        ("too-long", "callback", large, "more than 300000 bytes"),
        ("unreadable", "callback", "[{\"logId\":".to_owned(), place),
        ("unreadable", "callback", String::new(), place),
        ("unreadable", "callback", text, "cannot be read"),
        ("unreadable", "registry", "{}".to_owned(), "cannot be read"),
        ("unreadable", "registry", here.replace("EXECUTOR", "ADMIN"), "not EXECUTOR"),
        ("path", "addJob", here.to_owned(), "uri-mapping"),
        ("path", "registry/else", here.to_owned(), "uri-mapping"),
        ("path", "", here.to_owned(), "uri-mapping"),
    ];
    bodies.into_iter().map(|(why, word, body, said)| (why, token(TEAM), word, body, said)).collect()
}

/// Names that are not the token's.
fn misnamed() -> Vec<Forgery> {
    let names = [
        ("other-executor", "registry", "no executor group"),
        ("nobody-at-all", "registry", "no executor group"),
        ("", "registry", "no executor group"),
        ("other-executor", "registryRemove", "no executor"),
    ];
    let body = |name| registry(name, "http://127.0.0.1:9998");
    let row = |(name, word, said)| ("group", token(TEAM), word, body(name), said);
    names.into_iter().map(row).collect()
}

async fn what_is_forged_is_refused_and_changes_nothing(desk: Desk) {
    let own = desk.run("pay-executor", "RUNNING", None).await;
    let others = desk.run("other-executor", "RUNNING", None).await;
    let not_asked = desk.run("pay-executor", "WAITING", None).await;
    assert_eq!(desk.register("pay-executor", "http://127.0.0.1:9999", TEAM).await.0, 200);
    let before = desk.everything().await;
    desk.clock.advance(1_000);
    let (well, here) = (end(own, 200, "done"), registry("pay-executor", "http://127.0.0.1:9998"));
    let forgeries = [
        strangers(&well, &here),
        thieves((own, others, not_asked)),
        broken(own, &here),
        misnamed(),
    ];
    let mut why = Vec::new();
    for (reason, headers, word, body, said) in forgeries.into_iter().flatten() {
        let answer = desk.send("127.0.0.1", &format!("{PATH}/{word}"), &headers, &body).await;
        let (code, words) = code(&answer);
        assert!(code == 500 && words.contains(said), "{reason} {word}: {answer}");
        assert!(!answer.contains(&TEAM[..16]) && !answer.contains(FORGED), "{answer}");
        assert_eq!(desk.everything().await, before, "{reason} {word}");
        why.push(reason);
    }
    why.extend(what_is_no_post_or_comes_slowly(&desk).await);
    assert_eq!(desk.everything().await, before);
    // Each reason is on record once; the rest of the minute is counted.
    let is_first = |at: usize, reason: &&str| !why[..at].contains(reason);
    let firsts = why.iter().enumerate().filter(|(at, reason)| is_first(*at, reason));
    let firsts: Vec<String> = firsts.map(|(_, reason)| format!("{reason} 1")).collect();
    assert_eq!(desk.refusals().await, firsts);
    desk.clock.advance(60_000);
    desk.post("callback", FORGED, &well).await;
    assert_eq!(desk.refusals().await.last().map(String::as_str), Some("token 13"));
    says_no_token(&desk).await;
    // Nobody was hindered by it.
    assert_eq!(desk.post("callback", TEAM, &well).await.0, 200);
    assert_eq!(desk.state(own).await, "TOLD 200 done");
}

/// Nobody knocks any more, a record fails, the process ends: each refusal is counted once all the same.
async fn what_was_held_back_comes_on_record(desk: Desk) {
    let knocks = async |times: u32| {
        for _ in 0..times {
            assert_eq!(desk.post("callback", FORGED, "[]").await.0, 500);
        }
    };
    let door = &desk.house.executors;
    knocks(3).await;
    door.say_refused().await;
    assert_eq!(desk.refusals().await, ["token 1"]);
    desk.clock.advance(60_000);
    door.say_refused().await;
    assert_eq!(desk.refusals().await, ["token 1", "token 2"]);
    desk.clock.advance(60_000);
    desk.by_hand("ALTER TABLE audit_log RENAME TO away").await;
    knocks(2).await;
    desk.by_hand("ALTER TABLE away RENAME TO audit_log").await;
    desk.clock.advance(60_000);
    door.say_refused().await;
    assert_eq!(desk.refusals().await, ["token 1", "token 2", "token 2"]);
    knocks(4).await;
    door.close().await;
    door.close().await;
    assert_eq!(desk.refusals().await, ["token 1", "token 2", "token 2", "token 4"]);
}

/// A question, a body that comes slowly, and one that a stranger announces and never sends.
async fn what_is_no_post_or_comes_slowly(desk: &Desk) -> [&'static str; 2] {
    let (team, forged) = (token(TEAM), token(FORGED));
    let get = format!("GET {PATH}/callback HTTP/1.1\r\nHost: x\r\n{team}\r\n");
    let answer = desk.raw("127.0.0.1", get.as_bytes()).await;
    assert!(answer.starts_with("HTTP/1.1 200 ") && answer.contains("only POST"), "{answer}");
    let slow =
        format!("POST {PATH}/callback HTTP/1.1\r\nHost: x\r\n{team}Content-Length: 100\r\n\r\n[{{");
    let answer = desk.raw("127.0.0.1", slow.as_bytes()).await;
    assert!(answer.contains("took too long to come"), "{answer}");
    let huge = format!(
        "POST {PATH}/callback HTTP/1.1\r\nHost: x\r\n{forged}Content-Length: 1000000000\r\n\r\n"
    );
    let answer = desk.raw("127.0.0.1", huge.as_bytes()).await;
    assert!(answer.contains(WRONG), "{answer}");
    ["method", "too-slow"]
}

async fn a_stop_between_the_commit_and_the_answer_changes_nothing(desk: Desk) {
    let run = desk.run("pay-executor", "RUNNING", None).await;
    let ends = vec![ReportedRunEnd { log_id: LogId(run), code: 200, msg: Some("done".to_owned()) }];
    let executors = &desk.house.executors;
    let pass = executors.admit(TEAM.as_bytes(), None).await.expect("a look").expect("a pass");
    // Who asked goes away before he is answered; what he said is written all the same.
    {
        let asked = std::pin::pin!(executors.callback(&pass, ends.clone()));
        assert!(futures_util::poll!(asked).is_pending());
    }
    // Whether it was is found out by saying it again.
    assert_eq!(executors.callback(&pass, ends).await.expect("written"), Ok(()));
    assert_eq!(desk.state(run).await, "TOLD 200 done");
    let before = desk.everything().await;
    desk.clock.advance(30_000);
    let mut stream = TcpStream::connect(desk.door).await.expect("connect");
    let body = end(run, 500, "other");
    let request = format!(
        "POST {PATH}/callback HTTP/1.1\r\nHost: x\r\n{}Content-Length: {}\r\n\r\n{body}",
        token(TEAM),
        body.len()
    );
    stream.write_all(request.as_bytes()).await.expect("send");
    drop(stream);
    assert_eq!(desk.post("callback", TEAM, &end(run, 200, "done")).await.0, 200);
    assert_eq!(desk.everything().await, before);
}

async fn a_token_that_was_changed_is_worth_nothing_at_once(desk: Desk) {
    let executors = &desk.house.executors;
    let pass = executors.admit(OTHER.as_bytes(), None).await.expect("a look").expect("a pass");
    let run = desk.run("other-executor", "RUNNING", None).await;
    // Another process changes it; this one believes the old one for some seconds, but writes nothing for it.
    let fresh = "another-token-of-the-team";
    let kept = executor_group::KeptToken {
        sealed: "v1:BBBB".to_owned(),
        digest: procession::engine::secrets::executor_token::digest(fresh.as_bytes()),
    };
    let mut tx = desk.db.begin().await.expect("begin");
    let other = crate::xxl::admin_bench::app("other-executor");
    assert!(
        executor_group::set_token(&mut tx, &other, &kept, desk.clock.now()).await.expect("set")
    );
    tx.commit().await.expect("commit");
    let ends = vec![ReportedRunEnd { log_id: LogId(run), code: 200, msg: None }];
    let refused = executors.callback(&pass, ends).await.expect("an answer").expect_err("refused");
    assert_eq!(refused.to_string(), format!("run {run} is not one of this executor's"));
    let (code, _) = desk.register("other-executor", "http://127.0.0.1:9999", OTHER).await;
    assert_eq!((code, desk.alive("other-executor").await), (500, Vec::new()));
    assert_eq!(desk.state(run).await, "RUNNING");
    // The new one is known soon.
    desk.clock.advance(501);
    assert_eq!(desk.post("callback", fresh, &end(run, 200, "done")).await.0, 200);
    let mut tx = desk.db.begin_read().await.expect("read");
    let none = executor_group::of_tokens(&mut tx, &BTreeSet::new()).await.expect("none");
    assert!(none.is_empty());
}

/// What an address may be, from where: nothing that leads Procession to somebody else.
#[tokio::test]
async fn an_executor_cannot_send_us_elsewhere() {
    on_with(DialectName::Sqlite, "", |desk| async move {
        for address in [
            "http://169.254.169.254/latest/meta-data",
            "http://127.0.0.2:9999",
            "http://10.0.0.1:9999",
            "http://localhost:9999",
            "http://example.invalid:9999",
            "http://user:pw@127.0.0.1:9999",
            "http://127.0.0.1@169.254.169.254/",
            "http://0.0.0.0:9999",
            "http://[::1]:9999",
            "http://[::ffff:169.254.169.254]:80",
            "http://2852039166/",
            "file:///etc/passwd",
            "ftp://127.0.0.1/",
            "javascript:alert(1)",
            "127.0.0.1:9999",
            "http://127.0.0.1:9999?x=1",
            "http://127.0.0.1:9999#x",
            "http://127.0.0.1:9999,http://169.254.169.254",
            "",
        ] {
            let (code, words) = desk.register("pay-executor", address, TEAM).await;
            assert_eq!(code, 500, "{address}: {words}");
            assert!(!words.contains("pw@"), "{words}");
        }
        assert_eq!(desk.alive("pay-executor").await, [""; 0]);
        assert_eq!(desk.refusals().await, ["address 1"]);
        // From elsewhere our own door is somebody else's, whoever says what about the way.
        let headers = format!("{}X-Forwarded-For: 127.0.0.1\r\n", token(TEAM));
        let body = registry("pay-executor", "http://127.0.0.1:9999");
        let answer = desk.send("127.0.0.2", &format!("{PATH}/registry"), &headers, &body).await;
        assert!(answer.contains("is not where the executor asks from (127.0.0.2)"), "{answer}");
        let body = registry("pay-executor", "http://127.0.0.2:9999");
        let answer = desk.send("127.0.0.2", &format!("{PATH}/registry"), &headers, &body).await;
        assert_eq!(answer, WELL);
        assert_eq!(desk.alive("pay-executor").await, ["http://127.0.0.2:9999"]);
        // And nobody takes another's away.
        let body = registry("pay-executor", "http://127.0.0.2:9999");
        assert_eq!(desk.post("registryRemove", TEAM, &body).await.0, 500);
        assert_eq!(desk.alive("pay-executor").await, ["http://127.0.0.2:9999"]);
    })
    .await;
}

#[tokio::test]
async fn networks_and_names_that_an_administrator_allows_are_taken() {
    let settings = "[executors]\nnetworks = ['127.0.0.0/8', '::1', '10.1.0.0/16', '0.0.0.0/0']\n";
    on_with(DialectName::Sqlite, settings, |desk| async move {
        for (address, is) in [
            ("http://127.0.0.2:9999", 200),
            ("http://10.1.2.3:9999", 200),
            ("http://localhost:9999", 200),
            ("http://169.254.169.254:9999", 500),
            ("http://224.0.0.1:9999", 500),
            ("http://[fe80::1]:9999", 500),
            ("http://name-that-is-not-there.invalid:9999", 500),
        ] {
            let (code, words) = desk.register("pay-executor", address, TEAM).await;
            assert_eq!(code, is, "{address}: {words}");
        }
        // A name in clear text is where it was found.
        let there = ["http://10.1.2.3:9999", "http://127.0.0.1:9999", "http://127.0.0.2:9999"];
        assert_eq!(desk.alive("pay-executor").await, there);
    })
    .await;
}

/// Some clients take a refusal for the end of the matter. So while the database is away nothing is said.
#[tokio::test]
async fn without_a_database_there_is_no_answer() {
    on_with(DialectName::Sqlite, "", |desk| async move {
        let run = desk.run("pay-executor", "RUNNING", None).await;
        let mut tx = desk.db.begin().await.expect("begin");
        tx.execute("ALTER TABLE executor_group RENAME TO hidden", &[]).await.expect("hide");
        tx.commit().await.expect("commit");
        desk.house.executors.forget_tokens();
        let body = end(run, 200, "done");
        let request = format!(
            "POST {PATH}/callback HTTP/1.1\r\nHost: x\r\n{}Content-Length: {}\r\n\r\n{body}",
            token(TEAM),
            body.len()
        );
        let mut stream = TcpStream::connect(desk.door).await.expect("connect");
        stream.write_all(request.as_bytes()).await.expect("send");
        let mut answer = Vec::new();
        let _cut = stream.read_to_end(&mut answer).await;
        assert_eq!(String::from_utf8_lossy(&answer), "", "not a byte");
        let mut tx = desk.db.begin().await.expect("begin");
        tx.execute("ALTER TABLE hidden RENAME TO executor_group", &[]).await.expect("show");
        tx.commit().await.expect("commit");
        assert_eq!(desk.post("callback", TEAM, &body).await.0, 200);
        assert_eq!(desk.state(run).await, "TOLD 200 done");
    })
    .await;
}
