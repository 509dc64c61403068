//! What somebody from outside may try against `serve`: each attack, and what others see of it meanwhile.

use crate::api::server::{Browser, Server, Words};
use axum::body::Body;
use axum::http::Method;
use futures_util::StreamExt as _;
use futures_util::future::join_all;
use procession::api::{Attended, Front};
use procession::app::access::{Initial, NewAccount, UserChange};
use procession::config::ListeningOptions;
use procession::domain::access::user::UserName;
use procession::domain::access::{Permission, Role};
use procession::engine::clock::Clock;
use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::Instant;

const PASSWORD: &str = "canary-tuN9-glaze-orbit";
const OTHER: &str = "canary-wool-98-harvest-lamp";
const PROXY: &str = "[http]\ntrusted_proxies = ['127.0.0.1']\n";

/// 446 bytes of YAML that aliases blow up to 10 million values.
fn alias_bomb() -> String {
    let mut text = "a: &a [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for (last, next) in ["a", "b", "c", "d", "e", "f"].iter().zip(["b", "c", "d", "e", "f", "g"]) {
        let all = vec![format!("*{last}"); 10].join(", ");
        text.push_str(&format!("{next}: &{next} [{all}]\n"));
    }
    text
}

/// A job for each of so many items.
fn long_for_each(items: usize) -> String {
    let items = vec!["x"; items].join(", ");
    format!(
        "groups: {{gl: {{}}}}\njobs:\n  A:\n    type: NOOP\n    group: gl\n    for_each: [{items}]\n"
    )
}

/// A listener on a port, on a runtime of its own, as `serve` has it.
async fn listen(server: &Server) -> (SocketAddr, Attended) {
    let listening = ListeningOptions {
        listen: Some(([127, 0, 0, 1], 0).into()),
        probes: None,
        stalled: Duration::from_secs(120),
    };
    let front = Front::open_listeners(&listening).await.expect("a listener");
    let address = front.address().expect("an address");
    (address, front.attend(server.house.clone()).expect("a runtime"))
}

/// Sends a request on a connection of its own; gives all that is answered, and the time it took.
async fn send(address: SocketAddr, head: &str, body: &str) -> (String, Duration) {
    let begun = Instant::now();
    let exchange = async {
        let mut stream = TcpStream::connect(address).await?;
        let length = body.len();
        let request = format!(
            "{head}\r\nHost: x\r\nConnection: close\r\nContent-Type: application/json\r\n\
             Content-Length: {length}\r\n\r\n{body}"
        );
        stream.write_all(request.as_bytes()).await?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).await?;
        Ok::<_, std::io::Error>(String::from_utf8_lossy(&answer).into_owned())
    };
    let answer = tokio::time::timeout(Duration::from_secs(60), exchange).await;
    let answer = answer.unwrap_or_else(|_| Ok("no answer".to_owned()));
    (answer.unwrap_or_else(|error| error.to_string()), begun.elapsed())
}

async fn probe(address: SocketAddr) -> Duration {
    let (answer, took) = send(address, "GET /healthz HTTP/1.1", "").await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    took
}

#[tokio::test]
async fn definitions_have_budgets_that_name_limit_setting_and_place() {
    let server = Server::with(
        "[limits]\ndefinition_jobs = 2\ndefinition_bytes = 400_000\ndefinition_nodes = 40_000\n\
         definition_aliases = 5_000\n",
    )
    .await;
    let token = server.token(&[("gl", Role::Viewer, &[])]).await;
    let check = async |text: String| {
        let body = json!({ "text": text });
        server.send(Method::POST, "/definition/check", &token, &body).await.is(200)
    };
    let deep = format!("a: {}x{}\n", "[".repeat(30), "]".repeat(30));
    let jobs = "groups: {gl: {}}\njobs:\n  A: {type: NOOP, group: gl}\n  B: {type: NOOP, group: gl}\n  \
                C: {type: NOOP, group: gl}\n";
    for (text, line, setting) in [
        (alias_bomb(), 4, "definition_aliases"),
        (long_for_each(10_001), 6, "definition_for_each_items"),
        (long_for_each(300_000), 0, "definition_bytes"),
        (format!("a: [{}]\n", "x, ".repeat(40_000)), 1, "definition_nodes"),
        (deep, 1, "definition_depth"),
        (jobs.to_owned(), 2, "definition_jobs"),
    ] {
        let begun = Instant::now();
        let answer = check(text).await;
        assert!(begun.elapsed() < Duration::from_secs(15), "{setting}: {:?}", begun.elapsed());
        assert_eq!(answer["ok"], false, "{setting}");
        let fault = &answer["faults"][0];
        assert!(
            fault["fix"].as_str().is_some_and(|hint| hint.contains(&format!("limits.{setting}"))),
            "{setting}: {fault}"
        );
        assert_eq!(fault["line"], line, "{setting}: {fault}");
        assert!(
            fault["what"].as_str().is_some_and(|what| what.starts_with("more than")),
            "{fault}"
        );
    }
}

#[tokio::test]
async fn a_template_or_a_file_cannot_multiply_what_is_sent() {
    let settings = "[limits]\ndefinition_nodes = 1_000\ndefinition_bytes = 50_000\n";
    let server = Server::with(settings).await;
    let token = server.token(&[("gl", Role::Viewer, &[])]).await;
    let tags = vec!["x"; 500].join(", ");
    let jobs: String = (0..20).map(|n| format!("  J{n}: {{template: t}}\n")).collect();
    let text = format!(
        "groups: {{gl: {{}}}}\ntemplates: {{t: {{type: NOOP, group: gl, tags: [{tags}]}}}}\njobs:\n{jobs}"
    );
    let body = json!({ "text": text });
    let answer = server.send(Method::POST, "/definition/check", &token, &body).await.is(200);
    assert!(answer["faults"].to_string().contains("limits.definition_nodes"), "{answer}");
    let jobs: String = (0..20)
        .map(|n| {
            format!("  J{n}: {{type: SCRIPT, group: gl, interpreter: bash, script_file: s.sh}}\n")
        })
        .collect();
    let script = "#".repeat(10_000);
    let main = format!("groups: {{gl: {{}}}}\njobs:\n{jobs}");
    let body = json!({ "files": { "dag.yaml": main, "s.sh": script } });
    let answer = server.send(Method::POST, "/definition/check", &token, &body).await.is(200);
    assert!(answer["faults"].to_string().contains("limits.definition_bytes"), "{answer}");
}

#[tokio::test]
async fn one_user_has_so_many_expensive_requests_at_once() {
    let settings = "[limits]\nexpensive_reads_per_user = 1\ndefinition_aliases = 20_000\n";
    let server = Server::with(settings).await;
    let eve = server.token(&[("gl", Role::Viewer, &[])]).await;
    let body = json!({ "text": alias_bomb() });
    let check = async || server.send(Method::POST, "/definition/check", &eve, &body).await;
    // One has its turn and four wait for it; of those some may wait too long.
    let answers = join_all((0..12).map(|_| check())).await;
    let refused: Vec<_> = answers.iter().filter(|a| a.status.as_u16() == 429).collect();
    assert!((7..12).contains(&refused.len()), "{} were refused", refused.len());
    for answer in refused {
        assert_eq!(answer.headers["retry-after"], "2");
        assert!(answer.text.contains("limits.expensive_reads_per_user"), "{}", answer.text);
    }
    check().await.is(200);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn idle_connections_keep_nobody_from_a_probe() {
    let server = Server::new().await;
    let (address, attended) = listen(&server).await;
    let mut idle = Vec::new();
    for _ in 0..300 {
        idle.push(TcpStream::connect(address).await.expect("connect"));
    }
    for _ in 0..3 {
        let took = probe(address).await;
        assert!(took < Duration::from_secs(1), "{took:?}");
    }
    // Those that began a request and never end it are no better.
    for stream in &mut idle {
        let _gone = stream.write_all(b"GET /healthz HTT").await;
    }
    let took = probe(address).await;
    assert!(took < Duration::from_secs(1), "{took:?}");
    attended.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_survives_a_refused_change_or_is_told_to_close() {
    let server = Server::new().await;
    let (address, attended) = listen(&server).await;
    let mut stream = TcpStream::connect(address).await.expect("connect");
    let body = "x".repeat(100_000);
    let length = body.len();
    let refused = format!(
        "POST /api/v1/batches HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n\
         Content-Length: {length}\r\n\r\n{body}"
    );
    for _ in 0..2 {
        stream.write_all(refused.as_bytes()).await.expect("it is still open");
        let head = read_answer(&mut stream).await;
        assert!(head.starts_with("HTTP/1.1 401"), "{head}");
        assert!(!head.to_ascii_lowercase().contains("connection: close"), "{head}");
    }
    // What is too long to read for nothing is announced.
    let long = "POST /api/v1/batches HTTP/1.1\r\nHost: x\r\nContent-Length: 9000000\r\n\r\n";
    stream.write_all(long.as_bytes()).await.expect("it is still open");
    let head = read_answer(&mut stream).await;
    assert!(head.starts_with("HTTP/1.1 401"), "{head}");
    assert!(head.to_ascii_lowercase().contains("connection: close"), "{head}");
    attended.close().await;
}

/// The head of one answer; its body is read as well.
async fn read_answer(stream: &mut TcpStream) -> String {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        let read = tokio::time::timeout(Duration::from_secs(10), stream.read(&mut byte)).await;
        assert_eq!(read.expect("in time").expect("readable"), 1, "closed unannounced");
        head.push(byte[0]);
    }
    let head = String::from_utf8(head).expect("text");
    let length = head.to_ascii_lowercase();
    let length =
        length.split("content-length: ").nth(1).and_then(|l| l.lines().next()?.parse().ok());
    let mut body = vec![0; length.expect("a length")];
    stream.read_exact(&mut body).await.expect("the body");
    head
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn log_ins_at_once_are_bounded_and_starve_nobody() {
    let server = Server::with(PROXY).await;
    let wanted = NewAccount {
        name: UserName::parse("ada").expect("a name"),
        display_name: "Ada".to_owned(),
        lang: None,
        grants: Vec::new(),
        initial: Initial::Password(PASSWORD.into()),
    };
    server.house.porter.add_user(&server.owner(), wanted).await.expect("ada");
    let (address, attended) = listen(&server).await;
    let guess = async |n: u32| {
        let from = format!("10.{}.{}.7", n / 250, n % 250);
        let head = format!("POST /api/v1/session HTTP/1.1\r\nX-Forwarded-For: {from}");
        let body = json!({ "name": format!("user{n}"), "password": OTHER }).to_string();
        send(address, &head, &body).await.0
    };
    let operator = async {
        let mut worst = Duration::ZERO;
        for _ in 0..20 {
            let (answer, took) = send(address, "GET /api/v1/session/options HTTP/1.1", "").await;
            assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
            worst = worst.max(took);
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        worst
    };
    let (answers, worst) = tokio::join!(join_all((0..300).map(guess)), operator);
    assert!(worst < Duration::from_secs(5), "{worst:?}");
    let busy = answers.iter().filter(|a| a.starts_with("HTTP/1.1 429")).count();
    let wrong = answers.iter().filter(|a| a.starts_with("HTTP/1.1 401")).count();
    assert_eq!(busy + wrong, 300, "{:?}", answers.iter().find(|a| !a.contains(" 4")));
    assert!(wrong >= 16 && busy > 0, "{wrong} were looked at, {busy} refused");
    for answer in answers.iter().filter(|a| a.starts_with("HTTP/1.1 429")) {
        assert!(
            answer.contains("retry-after: 2") && answer.contains("limits.logins_at_once"),
            "{answer}"
        );
    }
    server.log_in("ada", PASSWORD, "9.9.9.9").await.is(200);
    attended.close().await;
}

#[tokio::test]
async fn guesses_from_many_addresses_are_slowed_and_the_user_is_not() {
    let server = Server::with(PROXY).await;
    let wanted = NewAccount {
        name: UserName::parse("ada").expect("a name"),
        display_name: "Ada".to_owned(),
        lang: None,
        grants: Vec::new(),
        initial: Initial::Password(PASSWORD.into()),
    };
    server.house.porter.add_user(&server.owner(), wanted).await.expect("ada");
    server.log_in("ada", PASSWORD, "9.9.9.9").await.is(200);
    let mut looked_at = 0;
    for n in 0..60 {
        let answer = server.log_in("ada", OTHER, &format!("10.0.{n}.1")).await;
        looked_at += u32::from(answer.status.as_u16() == 401);
    }
    assert_eq!(looked_at, 30, "then the name rests between two guesses");
    server.log_in("ada", PASSWORD, "9.9.9.9").await.is(200);
    server.log_in("ada", PASSWORD, "10.1.1.1").await.is(429);
    server.later(2_000);
    server.log_in("ada", PASSWORD, "10.1.1.1").await.is(200);
    // One customer has a /64 of IPv6.
    let mut looked_at = 0;
    for n in 0..40 {
        let from = format!("fd00:1:2:3::{n:x}");
        let answer = server.log_in(&format!("user{}", n % 3), OTHER, &from).await;
        looked_at += u32::from(answer.status.as_u16() == 401);
    }
    assert_eq!(looked_at, 30, "ten for each name, though each came from another address");
}

/// A user with a password and a session.
async fn session_of(server: &Server, name: &str, words: &[Words<'_>]) -> (UserName, Browser) {
    let name = UserName::parse(name).expect("a name");
    let wanted = NewAccount {
        name: name.clone(),
        display_name: name.to_string(),
        lang: None,
        grants: crate::api::server::grants(words),
        initial: Initial::Password(PASSWORD.into()),
    };
    server.house.porter.add_user(&server.owner(), wanted).await.expect("a user");
    // It was chosen by somebody else, so it is changed first.
    let first = Browser::of(&server.log_in(name.as_str(), PASSWORD, "9.9.9.9").await);
    let sent = json!({ "old": PASSWORD, "new": OTHER });
    let changed = server.sent(Method::POST, "/session/password", &first.headers(), &sent).await;
    (name, Browser::of(&changed))
}

/// Whether the stream ends now.
async fn has_ended(body: Body) -> bool {
    let mut stream = body.into_data_stream();
    let read = async { while stream.next().await.is_some() {} };
    tokio::time::timeout(Duration::from_millis(500), read).await.is_ok()
}

#[tokio::test]
async fn a_stream_ends_with_the_access_that_opened_it() {
    let server = Server::with(PROXY).await;
    let viewer: &[Words<'_>] = &[("gl", Role::Viewer, &[]), ("ar", Role::Viewer, &[])];
    let (porter, owner) = (server.app.porter(), server.owner());
    let listen = async |browser: &Browser| {
        server.listen("/events", &[("cookie", browser.cookie.as_str())]).await
    };
    // Nothing happened: it goes on.
    let (_, browser) = session_of(&server, "none", viewer).await;
    let body = listen(&browser).await;
    server.house.end_revoked_streams().await.expect("a look");
    assert!(!has_ended(body).await, "a stream that nobody revoked ended");
    for (number, what) in ["logout", "disabled", "grant", "password", "reset", "ended", "removed"]
        .into_iter()
        .enumerate()
    {
        let (name, browser) = session_of(&server, &format!("user{number}"), viewer).await;
        let body = listen(&browser).await;
        match what {
            "logout" => {
                let headers = browser.headers();
                server.sent(Method::DELETE, "/session", &headers, &Value::Null).await.is(200);
            }
            "disabled" => {
                let change = UserChange { is_active: Some(false), ..UserChange::default() };
                porter.change_user(&owner, &name, change).await.expect("disable");
            }
            "grant" => {
                let grants = crate::api::server::grants(&[("gl", Role::Viewer, &[])]);
                let change = UserChange { grants: Some(grants), ..UserChange::default() };
                porter.change_user(&owner, &name, change).await.expect("grant");
            }
            "password" => {
                let sent = json!({ "old": OTHER, "new": PASSWORD });
                let path = "/session/password";
                server.sent(Method::POST, path, &browser.headers(), &sent).await.is(200);
            }
            "reset" => {
                porter.reset_password(&owner, &name, None).await.expect("reset");
            }
            "ended" => {
                porter.end_sessions(&owner, &name, None).await.expect("end");
            }
            _ => porter.remove_user(&owner, &name).await.expect("remove"),
        }
        ends(&server, what, body).await;
    }
}

/// Looks as a node does that did not make the change, and expects that the stream is over.
async fn ends(server: &Server, what: &str, body: Body) {
    server.house.end_revoked_streams().await.expect("a look");
    assert!(has_ended(body).await, "{what}: the stream goes on");
}

#[tokio::test]
async fn a_stream_of_a_token_ends_with_it_and_with_other_grants() {
    let server = Server::new().await;
    let viewer: &[Words<'_>] = &[("gl", Role::Viewer, &[])];
    let (porter, owner) = (server.app.porter(), server.owner());
    for what in ["token removed", "token over", "more grants"] {
        let name = server.user(&what.replace(' ', "."), viewer).await;
        let token = server.token_of(&name, 1).await;
        let bearer = format!("Bearer {token}");
        let body = server.listen("/events", &[("authorization", &bearer)]).await;
        match what {
            "token removed" => {
                let id = porter.tokens_of(&name).await.expect("tokens")[0].id;
                assert!(porter.remove_token(&owner, id).await.expect("remove"));
            }
            "token over" => server.later(86_400_000),
            _ => {
                let grants = crate::api::server::grants(&[("*", Role::Viewer, &[])]);
                let change = UserChange { grants: Some(grants), ..UserChange::default() };
                porter.change_user(&owner, &name, change).await.expect("grant");
            }
        }
        ends(&server, what, body).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_on_a_port_ends_within_a_second() {
    let server = Server::new().await;
    let (address, attended) = listen(&server).await;
    let name = server.user("bob", &[("gl", Role::Viewer, &[])]).await;
    let token = server.token_of(&name, 1).await;
    let mut stream = TcpStream::connect(address).await.expect("connect");
    let head =
        format!("GET /api/v1/events HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n\r\n");
    stream.write_all(head.as_bytes()).await.expect("ask");
    let mut begin = vec![0; 12];
    stream.read_exact(&mut begin).await.expect("an answer");
    assert_eq!(begin, b"HTTP/1.1 200");
    tokio::time::sleep(Duration::from_millis(300)).await;
    server.app.porter().remove_user(&server.owner(), &name).await.expect("remove");
    let removed = Instant::now();
    let mut rest = Vec::new();
    while !String::from_utf8_lossy(&rest).ends_with("0\r\n\r\n") {
        let mut piece = [0; 4_096];
        let read = tokio::time::timeout(Duration::from_secs(5), stream.read(&mut piece)).await;
        let read = read.expect("the stream goes on").expect("readable");
        if read == 0 {
            break;
        }
        rest.extend_from_slice(&piece[..read]);
    }
    assert!(removed.elapsed() < Duration::from_secs(1), "{:?}", removed.elapsed());
    attended.close().await;
}

#[tokio::test]
async fn a_token_ends_no_other_token_and_no_session() {
    let server = Server::with(PROXY).await;
    let (name, browser) = session_of(&server, "bob", &[("gl", Role::Viewer, &[])]).await;
    let (first, second) = (server.token_of(&name, 1).await, server.token_of(&name, 1).await);
    let ids: Vec<i64> = {
        let mut all = server.app.porter().tokens_of(&name).await.expect("tokens");
        all.sort_by_key(|token| token.id);
        all.iter().map(|token| token.id).collect()
    };
    let nothing = json!({});
    for path in [format!("/session/tokens/{}", ids[1]), format!("/tokens/{}", ids[1])] {
        let refused = server.send(Method::DELETE, &path, &first, &nothing).await.is(403);
        assert_eq!(refused["type"], "urn:procession:problem:not-with-a-token");
    }
    let sessions = server.get("/session/sessions", &first).await.is(200);
    let path = format!("/session/sessions/{}", sessions["items"][0]["session_id"]);
    server.send(Method::DELETE, &path, &first, &nothing).await.is(403);
    server.get("/session", &second).await.is(200);
    // Itself it may end, and a session all of them.
    let path = format!("/session/tokens/{}", ids[0]);
    server.send(Method::DELETE, &path, &first, &nothing).await.is(200);
    let path = format!("/session/tokens/{}", ids[1]);
    server.sent(Method::DELETE, &path, &browser.headers(), &nothing).await.is(200);
}

#[tokio::test]
async fn a_stored_answer_is_not_shown_again_when_rights_have_changed() {
    let server = Server::new().await;
    server.apply("groups: {gl: {}, ar: {}}\njobs: [{code: A, group: gl, type: NOOP}]\n").await;
    let words: &[Words<'_>] = &[("gl", Role::Operator, &[]), ("ar", Role::Operator, &[])];
    let name = server.user("bob", words).await;
    let bearer = format!("Bearer {}", server.token_of(&name, 1).await);
    let headers = [("authorization", bearer.as_str()), ("idempotency-key", "k1")];
    let order = json!({ "group": "gl", "batch_no": "202409", "reason": "once" });
    let open = async || server.sent(Method::POST, "/batches", &headers, &order).await;
    open().await.is(200);
    open().await.is(200);
    let left = crate::api::server::grants(&[("ar", Role::Operator, &[])]);
    let change = UserChange { grants: Some(left), ..UserChange::default() };
    server.app.porter().change_user(&server.owner(), &name, change).await.expect("grant");
    let refused = open().await.is(403);
    assert_eq!(refused["type"], "urn:procession:problem:rights-changed");
    assert!(!refused.to_string().contains("202409"), "{refused}");
}

#[tokio::test]
async fn a_nul_is_refused_and_fails_nothing() {
    let server = Server::new().await;
    let root = server.admin().await;
    for path in
        ["/batches?batch_no=%00", "/search?q=a%00b", "/audit?actor=%00", "/groups/g%00l/dag"]
    {
        let answer = server.get(path, &root).await;
        assert_eq!(answer.status.as_u16(), 400, "{path}: {}", answer.text);
    }
    let request = axum::http::Request::post("/api/v1/batches")
        .header("authorization", format!("Bearer {root}"))
        .header("content-type", "application/json")
        .body(Body::from(r#"{"group": "g\u0000l", "batch_no": "1", "reason": "x"}"#));
    assert_eq!(server.request(request.expect("a request")).await.status.as_u16(), 400);
    let request = axum::http::Request::post("/api/v1/definition/check")
        .header("authorization", format!("Bearer {root}"))
        .header("content-type", "application/json")
        .body(Body::from(r#"{"text": "a: '\\u0000'"}"#));
    assert_eq!(server.request(request.expect("a request")).await.status.as_u16(), 200);
}

#[tokio::test]
async fn refusals_are_on_record_and_few() {
    let server = Server::with(PROXY).await;
    server.apply("groups: {gl: {}}\njobs: [{code: A, group: gl, type: NOOP}]\n").await;
    let name = server.user("eve", &[("gl", Role::Viewer, &[])]).await;
    let bearer = format!("Bearer {}", server.token_of(&name, 1).await);
    let headers = [("authorization", bearer.as_str()), ("x-forwarded-for", "9.9.9.9")];
    let order = json!({ "group": "gl", "batch_no": "202409", "reason": "x" });
    for _ in 0..20 {
        server.sent(Method::POST, "/batches", &headers, &order).await.is(403);
    }
    let denied = |all: Vec<(String, String, String)>| -> Vec<(String, String, String)> {
        all.into_iter().filter(|(action, ..)| action == "request denied").collect()
    };
    let written = denied(server.audit().await);
    assert_eq!(written.len(), 1, "{written:?}");
    assert_eq!(written[0].1, "eve");
    assert!(
        written[0].2.contains("/api/v1/batches") && written[0].2.contains("POST"),
        "{written:?}"
    );
    server.later(60_000);
    server.sent(Method::POST, "/batches", &headers, &order).await.is(403);
    let written = denied(server.audit().await);
    assert_eq!(written.len(), 2);
    assert!(written[1].2.contains("\"earlier_refusals_not_recorded\":19"), "{written:?}");
    // Of a group that she does not see, whether it is there or not; a path that is none is no attempt.
    server.sent(Method::GET, "/groups/fin/versions", &headers, &json!({})).await.is(404);
    server.sent(Method::GET, "/nothing", &headers, &json!({})).await.is(404);
    let written = denied(server.audit().await);
    assert_eq!((written.len(), written[2].1.as_str()), (3, "eve"), "{written:?}");
    assert!(written[2].2.contains("\"status\":404"), "{written:?}");
    // Guesses of a token are one entry, and use up nothing of what is kept of users.
    for guess in 0..100 {
        let bearer = format!("Bearer prc_guess{guess}");
        let headers = [("authorization", bearer.as_str()), ("x-forwarded-for", "9.9.9.9")];
        let path = format!("/groups/g{guess}/versions");
        server.sent(Method::GET, &path, &headers, &json!({})).await.is(401);
    }
    let written = denied(server.audit().await);
    assert_eq!((written.len(), written[3].1.as_str()), (4, "(unknown token)"), "{written:?}");
}

/// `procession serve` on a file of its own; killed when it is dropped.
struct Program(Child);

impl Program {
    /// The processor time that it has used, in steps of 10 ms (Linux counts in hundredths of a second).
    fn processor_time(&self) -> Duration {
        let stat =
            std::fs::read_to_string(format!("/proc/{}/stat", self.0.id())).expect("its counters");
        let (_name, counters) = stat.rsplit_once(')').expect("a name in brackets");
        // Behind the name: state is the first, utime the 12th and stime the 13th.
        let ticks = counters.split_whitespace().skip(11).take(2).map(|n| n.parse::<u64>());
        Duration::from_millis(10 * ticks.map(|n| n.expect("a number")).sum::<u64>())
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _gone = self.0.kill();
        let _ended = self.0.wait();
    }
}

/// Starts `procession serve` with a short lease on the server's file; gives its log and where it answers.
async fn serve(server: &Server) -> (Program, UnboundedReceiver<String>, SocketAddr) {
    let settings = server.folder().join("serve.toml");
    std::fs::write(&settings, "[engine]\nlease_sec = 5\n").expect("settings");
    let mut program = Command::new(env!("CARGO_BIN_EXE_procession"));
    program.args(["serve", "--http", "127.0.0.1:0", "--config"]).arg(&settings);
    program.env("PROCESSION_DB", server.database_url()).env("LC_ALL", "C");
    program.current_dir(server.folder()).stdin(Stdio::null()).stdout(Stdio::null());
    let mut program = Program(program.stderr(Stdio::piped()).spawn().expect("serve"));
    let log = program.0.stderr.take().expect("its log");
    let (sender, mut lines) = tokio::sync::mpsc::unbounded_channel();
    std::thread::spawn(move || {
        for line in BufReader::new(log).lines().map_while(Result::ok) {
            let _heard = sender.send(line);
        }
    });
    let mut address: Option<SocketAddr> = None;
    while address.is_none() {
        let line = tokio::time::timeout(Duration::from_secs(30), lines.recv()).await;
        let line = line.expect("in time").expect("it says where it is");
        address = line.split("http://").nth(1).and_then(|rest| {
            rest.split('/').next().and_then(|address| address.trim().parse().ok())
        });
    }
    (program, lines, address.expect("an address"))
}

/// A viewer of one group attacks a process with a short lease: probes and an operator are answered, and the
/// lease holds throughout.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_viewer_cannot_make_a_node_lose_its_lease() {
    let server = Server::new().await;
    server.apply("groups: {gl: {}}\njobs: [{code: A, group: gl, type: NOOP}]\n").await;
    let now = Clock::system().now();
    server.later(now.since(crate::api::server::START));
    let eve = server.token(&[("gl", Role::Viewer, &[])]).await;
    let operator = server.token(&[("gl", Role::Operator, &[Permission::Force])]).await;
    let (program, mut lines, address) = serve(&server).await;
    while !send(address, "GET /readyz HTTP/1.1", "").await.0.starts_with("HTTP/1.1 200") {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let bomb = json!({ "text": alias_bomb() }).to_string();
    let list = json!({ "text": long_for_each(300_000) }).to_string();
    let is_over = AtomicBool::new(false);
    let head = format!("POST /api/v1/definition/check HTTP/1.1\r\nAuthorization: Bearer {eve}");
    let bodies = (0..19).map(|n| if n % 3 == 0 { list.as_str() } else { bomb.as_str() });
    let attacks = bodies.map(|body| attack(address, &head, body, &is_over));
    let (answers, ()) =
        tokio::join!(join_all(attacks), operate_under_attack(address, &operator, &is_over));
    // Which of the two is read is chance while both are sent; alone, each names its limit.
    assert!(answers.iter().flatten().any(|answer| answer.contains("limits.definition_")));
    let bodies = [(&bomb, "definition_aliases"), (&list, "definition_for_each_items")];
    each_names_its_limit((&program, address), &eve, bodies).await;
    for answer in answers.iter().flatten() {
        let is_bounded =
            answer.contains("limits.definition_") || answer.starts_with("HTTP/1.1 429");
        assert!(is_bounded, "{}", answer.chars().take(300).collect::<String>());
    }
    while let Ok(line) = lines.try_recv() {
        assert!(!line.contains("lease"), "{line}");
    }
}

/// Sends one request after the other until it is over; gives the answers.
async fn attack(address: SocketAddr, head: &str, body: &str, is_over: &AtomicBool) -> Vec<String> {
    let mut answers = Vec::new();
    while !is_over.load(Ordering::Relaxed) {
        answers.push(send(address, head, body).await.0);
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    answers
}

/// An operator and a watcher of probes, a hundred times each; prints how long the operator waited. Then it is over.
async fn operate_under_attack(address: SocketAddr, operator: &str, is_over: &AtomicBool) {
    let head = format!("GET /api/v1/groups HTTP/1.1\r\nAuthorization: Bearer {operator}");
    let mut times = Vec::new();
    for _ in 0..100 {
        let (answer, took) = send(address, &head, "").await;
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        times.push(took);
        let (ready, took) = send(address, "GET /readyz HTTP/1.1", "").await;
        assert!(ready.starts_with("HTTP/1.1 200"), "{ready}");
        assert!(took < Duration::from_secs(3), "a probe took {took:?}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    is_over.store(true, Ordering::Relaxed);
    times.sort();
    let (median, p99) = (times[times.len() / 2], times[times.len() * 99 / 100]);
    let figures = format!("an operator under attack: median {median:?}, p99 {p99:?}\n");
    std::io::stdout().write_all(figures.as_bytes()).expect("standard output");
    assert!(p99 < Duration::from_secs(3), "{p99:?}");
}

/// Reading is enough for an attack where what is read is large: a version of a group of 5,000 jobs is written out anew
/// for each request.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_viewer_cannot_keep_a_node_busy_with_plain_reads() {
    let server = Server::new().await;
    let jobs: String = (0..5_000)
        .map(|n| format!("  - {{code: J{n:04}, group: gl, type: NOOP, name: 'job number {n}'}}\n"))
        .collect();
    server.apply(&format!("groups: {{gl: {{}}}}\njobs:\n{jobs}")).await;
    let now = Clock::system().now();
    server.later(now.since(crate::api::server::START));
    let eve = server.token(&[("gl", Role::Viewer, &[])]).await;
    let operator = server.token(&[("gl", Role::Operator, &[Permission::Force])]).await;
    let (_program, mut lines, address) = serve(&server).await;
    while !send(address, "GET /readyz HTTP/1.1", "").await.0.starts_with("HTTP/1.1 200") {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let is_over = AtomicBool::new(false);
    let heads: Vec<String> = ["versions/1", "dag"]
        .iter()
        .map(|what| format!("GET /api/v1/groups/gl/{what} HTTP/1.1\r\nAuthorization: Bearer {eve}"))
        .collect();
    let attacks = (0..30).map(|n| attack(address, &heads[n % 2], "", &is_over));
    let (answers, ()) =
        tokio::join!(join_all(attacks), operate_under_attack(address, &operator, &is_over));
    let answers: Vec<&String> = answers.iter().flatten().collect();
    assert!(answers.iter().any(|answer| answer.starts_with("HTTP/1.1 200")));
    assert!(answers.iter().any(|answer| answer.starts_with("HTTP/1.1 429")));
    while let Ok(line) = lines.try_recv() {
        assert!(!line.contains("lease"), "{line}");
    }
}

/// Sent alone, each body is refused by its limit, after a few seconds of work.
async fn each_names_its_limit(
    (program, address): (&Program, SocketAddr),
    eve: &str,
    bodies: [(&String, &str); 2],
) {
    for (body, setting) in bodies {
        let head = format!("POST /api/v1/definition/check HTTP/1.1\r\nAuthorization: Bearer {eve}");
        let before = program.processor_time();
        let (answer, _took) = send(address, &head, body).await;
        assert!(answer.contains(&format!("limits.{setting}")), "{answer}");
        // Not by the clock: on CI's busy machine 3 s of work once took 16 s. Without the limits it was 16 s of work.
        let spent = program.processor_time() - before;
        assert!(spent < Duration::from_secs(8), "{setting}: {spent:?} of processor time");
    }
}
