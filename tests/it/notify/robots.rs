//! Webhooks and robots, against receivers that check what they are sent as the manuals say.

use super::{AT, NOW, later, message, never};
use crate::util::host::{Host, Reply};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use procession::notify::{Carriers, ChannelOptions, NotSent, NotifyOptions};
use ring::hmac;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::Duration;

const SECRET: &str = "SEC-geheim";
const TOKEN: &str = "tok3n-0123456789";

/// Carriers that know one channel, `ops`.
fn carriers(kind: &str, url: &str) -> Carriers {
    let channel =
        ChannelOptions { kind: kind.to_owned(), url: url.into(), secret: Some(SECRET.into()) };
    let channels = BTreeMap::from([("ops".to_owned(), channel)]);
    let timeout = Duration::from_secs(20);
    Carriers::from_options(&NotifyOptions { channels, timeout, ..NotifyOptions::default() })
        .expect("good settings")
}

/// Where the robot of a kind listens on `host`, with its token as each has it.
fn url(kind: &str, host: &str) -> String {
    match kind {
        "dingtalk" => format!("{host}/robot/send?access_token={TOKEN}"),
        "wecom" => format!("{host}/cgi-bin/webhook/send?key={TOKEN}"),
        "feishu" => format!("{host}/open-apis/bot/v2/hook/{TOKEN}"),
        "slack" => format!("{host}/services/T000/B000/{TOKEN}"),
        _ => format!("{host}/hooks/{TOKEN}"),
    }
}

/// Sends the message to a robot that answers so; gives what came of it and what the robot was asked.
async fn send(kind: &str, status: u16, answer: &str) -> (Result<(), NotSent>, String) {
    let text = answer.to_owned();
    let host = Host::start(move |_| Reply::text(status, &text)).await;
    let carriers = carriers(kind, &url(kind, &host.url));
    assert_eq!(carriers.kind_of("channel:ops"), Some(kind));
    let sent = carriers.send_message("channel:ops", &message()).await;
    if let Err(said) = &sent {
        let said = said.to_string();
        assert!(!said.contains(TOKEN) && !said.contains(SECRET), "{said}");
        assert!(said.starts_with(&format!("{kind}: ")) && !said.contains('\n'), "{said}");
    }
    (sent, host.asked().pop().unwrap_or_default())
}

fn first_line(asked: &str) -> &str {
    asked.lines().next().unwrap_or_default()
}

fn header<'a>(asked: &'a str, name: &str) -> Option<&'a str> {
    let (head, _) = asked.split_once("\r\n\r\n")?;
    let mut headers = head.lines().filter_map(|line| line.split_once(": "));
    headers.find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value)
}

fn body(asked: &str) -> &str {
    asked.split_once("\r\n\r\n").expect("a body").1
}

fn json_of(asked: &str) -> Value {
    assert_eq!(header(asked, "content-type"), Some("application/json; charset=utf-8"));
    serde_json::from_str(body(asked)).expect("JSON")
}

fn hmac(key: &str, signed: &str) -> Vec<u8> {
    let key = hmac::Key::new(hmac::HMAC_SHA256, key.as_bytes());
    hmac::sign(&key, signed.as_bytes()).as_ref().to_vec()
}

#[tokio::test]
async fn a_webhook_gets_everything_and_can_tell_who_sent_it() {
    let (sent, asked) = send("webhook", 204, "").await;
    assert_eq!(sent, Ok(()));
    assert_eq!(first_line(&asked), format!("POST /hooks/{TOKEN} HTTP/1.1"));
    assert_eq!(header(&asked, "idempotency-key"), Some("procession-17-ab12@host"));
    let signature = header(&asked, "x-procession-signature").expect("a signature");
    let (t, v1) = signature.split_once(",v1=").expect("two parts");
    let t = t.strip_prefix("t=").expect("a time");
    assert_eq!(t, (NOW.0 / 1_000).to_string());
    let hex: String =
        hmac(SECRET, &format!("{t}.{}", body(&asked))).iter().map(|b| format!("{b:02x}")).collect();
    assert_eq!(v1, hex);
    let (told, message) = (json_of(&asked), message());
    assert_eq!(told["event"], "failed");
    assert_eq!(told["severity"], "bad");
    assert_eq!(told["subject"], message.subject);
    assert_eq!(told["text"], message.text);
    assert_eq!(told["lang"], "zh");
    assert_eq!(told["message_id"], message.message_id);
    assert_eq!(told["at"], AT.to_string());
    assert_eq!(told["notification"], serde_json::to_value(&message.letter).expect("json"));
}

#[tokio::test]
async fn dingtalk() {
    let (sent, asked) = send("dingtalk", 200, r#"{"errcode":0,"errmsg":"ok"}"#).await;
    assert_eq!(sent, Ok(()));
    let path = first_line(&asked).split(' ').nth(1).expect("a path");
    let url = url::Url::parse(&format!("http://robot{path}")).expect("a URL");
    let query: BTreeMap<String, String> = url.query_pairs().into_owned().collect();
    assert_eq!(query["access_token"], TOKEN);
    assert_eq!(query["timestamp"], NOW.0.to_string());
    let sign = STANDARD.encode(hmac(SECRET, &format!("{}\n{SECRET}", NOW.0)));
    assert_eq!(query["sign"], sign);
    let told = json_of(&asked);
    assert_eq!(told["msgtype"], "markdown");
    assert_eq!(told["markdown"]["title"], message().subject);
    let text = told["markdown"]["text"].as_str().expect("text");
    for wanted in [
        "#### 🔴 ［Procession］ 月末 202407：LOAD 执行失败\n\n作业 LOAD 执行失败。",
        "- **耗时**: 4 min 05 s",
        "> ＜b＞ORA-00060＜/b＞",
        "[打开](https://procession.bank.example/b/202407)",
    ] {
        assert!(text.contains(wanted), "{wanted} in {text}");
    }
}

#[tokio::test]
async fn wecom() {
    let (sent, asked) = send("wecom", 200, r#"{"errcode":0,"errmsg":"ok"}"#).await;
    assert_eq!(sent, Ok(()));
    assert_eq!(first_line(&asked), format!("POST /cgi-bin/webhook/send?key={TOKEN} HTTP/1.1"));
    let told = json_of(&asked);
    assert_eq!(told["msgtype"], "markdown");
    let text = told["markdown"]["content"].as_str().expect("text");
    let start = "🔴 **<font color=\"warning\">［Procession］ 月末 202407：LOAD 执行失败</font>**\n";
    assert!(text.starts_with(start) && text.len() <= 4_096, "{text}");
    assert!(text.contains("\n> ＜b＞ORA-00060＜/b＞"), "{text}");
}

#[tokio::test]
async fn feishu() {
    let answer = r#"{"StatusCode":0,"StatusMessage":"success","code":0,"data":{},"msg":"success"}"#;
    let (sent, asked) = send("feishu", 200, answer).await;
    assert_eq!(sent, Ok(()));
    let told = json_of(&asked);
    let timestamp = (NOW.0 / 1_000).to_string();
    assert_eq!(told["timestamp"], timestamp);
    assert_eq!(told["sign"], STANDARD.encode(hmac(&format!("{timestamp}\n{SECRET}"), "")));
    assert_eq!(told["msg_type"], "interactive");
    let card = &told["card"];
    assert_eq!(card["header"]["template"], "red");
    assert_eq!(card["header"]["title"]["content"], message().subject);
    let elements = card["elements"].as_array().expect("elements");
    let error = message().letter.error.expect("an error");
    let shown = json!({ "tag": "div", "text": { "tag": "plain_text", "content": error } });
    assert!(elements.contains(&shown), "{card}");
    let button = elements.last().expect("elements");
    assert_eq!(button["actions"][0]["url"], "https://procession.bank.example/b/202407");
}

#[tokio::test]
async fn slack() {
    let (sent, asked) = send("slack", 200, "ok").await;
    assert_eq!(sent, Ok(()));
    let told = json_of(&asked);
    assert_eq!(told["text"], format!("🔴 {}", message().subject));
    assert_eq!(told["blocks"][0]["type"], "header");
    let blocks = told["blocks"].as_array().expect("blocks");
    let texts: Vec<&str> = blocks.iter().filter_map(|b| b["text"]["text"].as_str()).collect();
    assert!(texts.iter().any(|t| t.contains("```&lt;b&gt;ORA-00060&lt;/b&gt; &amp;")), "{texts:?}");
    assert_eq!(texts.last(), Some(&"<https://procession.bank.example/b/202407|打开>"));
}

/// Kind, status, answer, whether another try is right, and what is said.
const FAULTS: &[(&str, u16, &str, bool, &str)] = &[
    ("webhook", 500, "oops", true, "answered 500: oops"),
    ("webhook", 429, "", true, "answered 429 (too many messages"),
    ("webhook", 408, "", true, "answered 408"),
    ("webhook", 404, "", false, "answered 404"),
    ("webhook", 401, "", false, "answered 401"),
    ("webhook", 302, "", false, "answered 302 (redirects are not followed)"),
    ("dingtalk", 200, r#"{"errcode":310000,"errmsg":"sign not match"}"#, false, "clock"),
    ("dingtalk", 200, r#"{"errcode":130101,"errmsg":"send too fast"}"#, true, "130101: send too"),
    ("dingtalk", 200, r#"{"errcode":410100,"errmsg":"too fast"}"#, true, "errcode 410100"),
    ("dingtalk", 200, r#"{"errcode":-1,"errmsg":"busy"}"#, true, "errcode -1: busy"),
    ("dingtalk", 200, r#"{"errcode":300001,"errmsg":"token is not exist"}"#, false, "at the url"),
    ("dingtalk", 503, r#"{"errcode":310000}"#, true, "answered 503"),
    ("dingtalk", 200, "<html>portal</html>", true, "the answer has no errcode"),
    ("wecom", 200, r#"{"errcode":45009,"errmsg":"freq out of limit"}"#, true, "errcode 45009"),
    ("wecom", 200, r#"{"errcode":93000,"errmsg":"invalid webhook url"}"#, false, "at the url"),
    ("wecom", 200, r#"{"errcode":40058,"errmsg":"too long tok3n-0123456789"}"#, false, "***"),
    ("feishu", 200, r#"{"code":11232,"msg":"frequency limited"}"#, true, "code 11232"),
    ("feishu", 400, r#"{"code":11232,"msg":"frequency limited"}"#, true, "code 11232"),
    ("feishu", 200, r#"{"code":19021,"msg":"sign match fail"}"#, false, "look at secret"),
    ("feishu", 400, r#"{"code":9499,"msg":"Bad Request"}"#, false, "code 9499"),
    ("slack", 429, "rate_limited", true, "answered 429"),
    ("slack", 500, "rollup_error", true, "answered 500"),
    ("slack", 400, "invalid_payload", false, "answered 400: invalid_payload"),
    ("slack", 404, "no_service", false, "answered 404: no_service"),
    ("slack", 410, "channel_is_archived", false, "answered 410"),
];

#[tokio::test]
async fn what_answers_mean() {
    for (kind, status, answer, is_passing, wanted) in FAULTS {
        let (sent, _) = send(kind, *status, answer).await;
        let said = if *is_passing { later(sent) } else { never(sent) };
        assert!(said.contains(wanted), "{kind} {status} {answer}: {said}");
    }
}

#[tokio::test]
async fn a_lost_connection_is_tried_again_and_shows_no_token() {
    for kind in ["webhook", "dingtalk", "wecom", "feishu", "slack"] {
        let raw = b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{".to_vec();
        let host = Host::start(move |_| Reply::Raw(raw.clone())).await;
        let cut =
            carriers(kind, &url(kind, &host.url)).send_message("channel:ops", &message()).await;
        let nobody = url(kind, "http://127.0.0.1:1");
        let none = carriers(kind, &nobody).send_message("channel:ops", &message()).await;
        for (sent, wanted) in [(cut, "the connection was lost"), (none, "cannot connect")] {
            let said = later(sent);
            assert!(said.starts_with(&format!("{kind}: {wanted}")), "{said}");
            assert!(!said.contains(TOKEN) && !said.contains("127.0.0.1:1/"), "{said}");
        }
    }
}

#[tokio::test]
async fn silence_is_cut() {
    let host = Host::start(|_| Reply::Hang).await;
    let channel =
        ChannelOptions { kind: "slack".to_owned(), url: host.url.as_str().into(), secret: None };
    let channels = BTreeMap::from([("ops".to_owned(), channel)]);
    let timeout = Duration::from_millis(300);
    let options = NotifyOptions { channels, timeout, ..NotifyOptions::default() };
    let carriers = Carriers::from_options(&options).expect("good settings");
    let said = later(carriers.send_message("channel:ops", &message()).await);
    assert_eq!(said, "slack: no answer within 0.3 s");
}

#[tokio::test]
async fn settings_that_cannot_work_are_found_at_once() {
    for (kind, url, wanted) in [
        (
            "teams",
            "https://x.example/tok3n-0123456789",
            "\"teams\" is no kind of channel; say webhook",
        ),
        ("slack", "http://x.example/tok3n-0123456789", "http only to this machine"),
        ("slack", "tok3n-0123456789", "the url is not one"),
    ] {
        let channel = ChannelOptions { kind: kind.to_owned(), url: url.into(), secret: None };
        let channels = BTreeMap::from([("ops".to_owned(), channel)]);
        let said = Carriers::from_options(&NotifyOptions { channels, ..NotifyOptions::default() });
        let said = said.expect_err("a fault").to_string();
        assert!(said.starts_with("notify.channels.ops: ") && said.contains(wanted), "{said}");
        assert!(!said.contains(TOKEN), "{said}");
    }
}
