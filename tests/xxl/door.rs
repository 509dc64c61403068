//! The port of the executor: who is answered, and what strangers can take from it.

use crate::xxl::admin::TOKEN;
use crate::xxl::desk::{APP, Bench, JULY, asked, post, raw};
use procession::wire::xxl::XxlDialect;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

fn code(text: &str) -> (i64, String) {
    let reply: Value = serde_json::from_str(text).unwrap_or_else(|e| panic!("{e}: {text}"));
    (reply["code"].as_i64().expect("code"), reply["msg"].as_str().unwrap_or_default().to_owned())
}

#[tokio::test]
async fn nobody_is_heard_without_the_token() {
    let (bench, _dir) = Bench::sqlite(XxlDialect::D1).await;
    let ask = asked(7, 101, JULY).to_string();
    let one_less = &TOKEN[..TOKEN.len() - 1];
    for headers in [
        String::new(),
        "XXL-JOB-ACCESS-TOKEN:\r\n".to_owned(),
        "XXL-JOB-ACCESS-TOKEN: default_token\r\n".to_owned(),
        format!("XXL-JOB-ACCESS-TOKEN: {one_less}\r\n"),
        format!("XXL-JOB-ACCESS-TOKEN: {TOKEN}x\r\n"),
        format!("XXL-RPC-ACCESS-TOKEN: {TOKEN}\r\n"),
        format!("XXL-JOB-ACCESS-TOKEN: {TOKEN}\r\nXXL-JOB-APPNAME: another-executor\r\n"),
    ] {
        for path in ["/run", "/trigger", "/kill", "/log", "/idleBeat", "/beat", "/else"] {
            let said = code(&post(bench.door, path, &headers, &ask).await);
            assert_eq!(said, (500, "The access token is wrong.".to_owned()), "{path} {headers}");
        }
    }
    assert_eq!(bench.runs().await, Vec::<String>::new());
    // On record, and not once for each.
    let sql =
        "SELECT COUNT(*) AS n FROM audit_log WHERE action = 'xxl-refused' AND host = '127.0.0.1'";
    assert_eq!(bench.number(sql).await, 1);
    bench.clock.advance(60_000);
    post(bench.door, "/run", "", &ask).await;
    let sql = "SELECT COUNT(*) AS n FROM audit_log WHERE detail LIKE '%\"times\":49%'";
    assert_eq!(bench.number(sql).await, 1);
}

#[tokio::test]
async fn the_token_is_asked_for_before_a_body_is_read() {
    let (bench, _dir) = Bench::sqlite(XxlDialect::D1).await;
    // It announces a gigabyte and sends none of it.
    let request = b"POST /run HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000000\r\n\r\n";
    let answer = raw(bench.door, request).await;
    assert!(answer.contains("The access token is wrong."), "{answer}");
}

#[tokio::test]
async fn a_body_that_is_large_or_slow_is_cut_off() {
    let (bench, _dir) = Bench::sqlite(XxlDialect::D1).await;
    let token = format!("XXL-JOB-ACCESS-TOKEN: {TOKEN}\r\n");
    let large = asked(7, 101, &"x".repeat(20_000)).to_string();
    let (500, said) = code(&post(bench.door, "/run", &token, &large).await) else {
        panic!("large")
    };
    assert!(said.contains("more than 10000 bytes"), "{said}");
    let head =
        format!("POST /run HTTP/1.1\r\nHost: x\r\n{token}Content-Length: 100\r\n\r\n{{\"jobId\"");
    let mut slow = TcpStream::connect(bench.door).await.expect("connect");
    slow.write_all(head.as_bytes()).await.expect("send");
    let mut answer = String::new();
    slow.read_to_string(&mut answer).await.expect("an answer");
    assert!(answer.contains("took too long to come"), "{answer}");
    assert_eq!(bench.runs().await, Vec::<String>::new());
}

#[tokio::test]
async fn every_way_to_ask_that_peers_have_is_answered() {
    let (bench, _dir) = Bench::sqlite(XxlDialect::D1).await;
    let token = format!("xxl-job-access-token: {TOKEN}\r\n");
    // Two quotation marks, nothing, an object: `/beat` differs from version to version.
    for body in ["\"\"", "", "{}"] {
        let text = post(bench.door, "/beat", &token, body).await;
        assert_eq!(text, r#"{"code":200,"content":null,"data":null,"msg":null}"#, "{body}");
    }
    let named = format!("{token}XXL-JOB-APPNAME: {APP}\r\n");
    let run = asked(7, 101, JULY).to_string();
    assert_eq!(code(&post(bench.door, "/trigger", &named, &run).await).0, 200);
    // A proxy before it, and a slash too many.
    let idle = json!({"jobId": 7}).to_string();
    for path in ["/idleBeat", "//idleBeat", "/xxl/idleBeat"] {
        assert_eq!(code(&post(bench.door, path, &token, &idle).await).0, 500, "{path}");
    }
    assert!(code(&post(bench.door, "/nothing", &token, "{}").await).1.contains("uri-mapping"));
    let get = format!("GET /beat HTTP/1.1\r\nHost: x\r\n{token}\r\n");
    let answer = raw(bench.door, get.as_bytes()).await;
    assert!(answer.starts_with("HTTP/1.1 200 ") && answer.contains("only POST"), "{answer}");
    assert!(answer.to_lowercase().contains("connection: close"), "{answer}");
}
