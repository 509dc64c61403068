//! What executors answer their admin, byte by byte as each answers, and what becomes of the run.

use super::scripted::{Answer, Scripted};
use crate::xxl::clients::Ground;
use crate::xxl::clients::client::until;
use serde_json::{Value, json};
use std::time::Duration;

fn with_executor() -> (Ground, Scripted) {
    let (ground, executor) = (Ground::new(), Scripted::start());
    ground.register(&executor.address());
    (ground, executor)
}

/// The last run that was asked for, and when it was triggered.
fn run_of(executor: &Scripted, count: usize) -> Value {
    until(Duration::from_secs(40), || {
        let asked = executor.asked("/run");
        match asked.last() {
            Some(last) if asked.len() == count => {
                Ok(serde_json::from_str(&last.body).expect("JSON"))
            }
            _ => Err(format!("{count} runs, but {}", asked.len())),
        }
    })
}

fn tell(ground: &Ground, run: &Value, code: i64) {
    let end =
        json!([{"logId": run["logId"], "logDateTim": 0, "handleCode": code, "handleMsg": "told"}]);
    assert_eq!(ground.told_well("callback", &end.to_string())["code"], 200);
}

#[test]
fn every_yes_to_a_run_is_a_yes() {
    let (ground, executor) = with_executor();
    for (at, (who, yes)) in [
        ("Java to 3.2", r#"{"code":200}"#),
        ("Java to 3.2 with nulls", r#"{"code":200,"msg":null,"content":null}"#),
        ("Java from 3.3", r#"{"code":200,"msg":"Success","data":null,"success":true}"#),
        ("pyxxl", r#"{"code": 200, "msg": "Running"}"#),
        (
            "pyxxl, queued",
            r#"{"code": 200, "msg": "job 4 is in queue, logId 9 ranked 1th [max=30]..."}"#,
        ),
        ("Flask-XXLJob", "{\"code\":200,\"content\":\"job received\",\"msg\":null}\n"),
        ("xxl-job of npm", r#"{"code":200,"msg":"Success"}"#),
        ("xxljob-sdk-rs", r#"{"content":null,"code":200,"msg":null}"#),
    ]
    .into_iter()
    .enumerate()
    {
        executor.says("/run", Answer::body(yes));
        let no = (202_001 + at).to_string();
        ground.open("ok", &no);
        tell(&ground, &run_of(&executor, at + 1), 200);
        let ended = ground.until_end("ok", &no);
        assert_eq!(ended.batch, "SUCCESS", "{who}: {ended:?}");
    }
}

#[test]
fn every_no_to_a_run_fails_it_with_its_words() {
    let (ground, executor) = with_executor();
    for (at, (answer, words)) in [
        (Answer::body(r#"{"code":500,"msg":"job handler [x] not found."}"#), "not found"),
        (
            Answer::body(r#"{"code":500,"msg":"The access token is wrong.","data":null}"#),
            "token is wrong",
        ),
        (Answer::body(r#"{"code": 500, "msg": "handler nobody not found."}"#), "nobody"),
        (
            Answer::body(r#"{"code":500,"content":null,"msg":"Unsupported JobHandler: x"}"#),
            "Unsupported",
        ),
        (
            Answer::body(r#"{"code":500,"msg":"There is already have a same job is running."}"#),
            "same job",
        ),
        (Answer::Status(400, "<!DOCTYPE html><pre>Bad Request</pre>".to_owned()), "400"),
        (Answer::Status(404, "<html>nothing here</html>".to_owned()), "404"),
        (Answer::Status(500, "{\"code\":200}".to_owned()), "500"),
        (Answer::Status(302, String::new()), "302"),
    ]
    .into_iter()
    .enumerate()
    {
        executor.says("/run", answer);
        let no = (202_001 + at).to_string();
        let ended = ground.run("ok", &no);
        assert_eq!(ended.batch, "FAILED", "{words}: {ended:?}");
        assert!(ended.words.contains(words), "{words}: {ended:?}");
        assert_eq!(executor.asked("/run").len(), at + 1);
    }
}

#[test]
fn nobody_at_the_address_fails_the_run_at_once() {
    let (ground, executor) = with_executor();
    drop(executor);
    let ended = ground.run("ok", "202407");
    assert_eq!(ended.batch, "FAILED", "{ended:?}");
}

/// It may have taken the run: it is not asked for twice, and its end counts.
#[test]
fn silence_to_a_run_is_not_known_and_not_asked_again() {
    for answer in
        [Answer::Silence, Answer::HangUp, Answer::body("<html>what?</html>"), Answer::body("")]
    {
        let (ground, executor) = with_executor();
        executor.says("/run", answer);
        ground.open("ok", "202407");
        let run = run_of(&executor, 1);
        // It says that it is busy, and so it has taken it.
        until(Duration::from_secs(40), || match executor.asked("/idleBeat").len() {
            0 => Err("whether it has taken it".to_owned()),
            _ => Ok(()),
        });
        tell(&ground, &run, 200);
        assert_eq!(ground.until_end("ok", "202407").batch, "SUCCESS");
        assert_eq!(executor.asked("/run").len(), 1);
    }
}

/// Answers to `/log` from the line asked for: of a log of four lines, as each pages it.
fn page(who: &str, from: usize) -> String {
    let lines = ["one", "二", "three", "four"];
    // npm counts from 0, all others from 1.
    let skipped = if who == "npm" { from } else { from.saturating_sub(1) };
    let rest: String = lines.iter().skip(skipped).map(|line| format!("{line}\n")).collect();
    let is_new = !rest.is_empty();
    match who {
        "Java to 2.5" => {
            json!({"code": 200, "content": {"fromLineNum": from, "toLineNum": 4, "logContent": rest, "isEnd": false}})
        }
        "Java from 3.3" => {
            let to = if is_new { 4 } else { 0 };
            json!({"code": 200, "msg": "Success", "data": {"fromLineNum": from, "toLineNum": to, "logContent": rest, "isEnd": false}})
        }
        "pyxxl" => {
            let to = if is_new { 4 } else { from };
            let page = json!({"fromLineNum": from, "toLineNum": to, "logContent": rest, "isEnd": true});
            json!({"code": 200, "msg": null, "content": page, "data": page})
        }
        "npm" => {
            json!({"code": 200, "msg": null, "content": {"fromLineNum": from, "toLineNum": 4, "logContent": rest, "isEnd": true}})
        }
        _ => panic!("{who}"),
    }
    .to_string()
}

#[test]
fn logs_of_every_client_are_archived_line_by_line() {
    for who in ["Java to 2.5", "Java from 3.3", "pyxxl", "npm"] {
        let (ground, executor) = with_executor();
        let of_executor = std::sync::Arc::new(executor);
        let asked = of_executor.clone();
        // It answers what it is asked for, so the answer is made anew for each question.
        let port = std::sync::Arc::downgrade(&asked);
        let act = move |question: &super::scripted::Asked| {
            let body: Value = serde_json::from_str(&question.body).expect("JSON");
            let from = body["fromLineNum"].as_u64().expect("a line");
            let from = usize::try_from(from).expect("a line");
            if let Some(executor) = port.upgrade() {
                executor.says("/log as asked", Answer::body(&page(who, from)));
            }
        };
        let then = Answer::As("/log as asked".to_owned());
        of_executor.says("/log", Answer::First(std::sync::Arc::new(act), Box::new(then)));
        ground.open("ok", "202407");
        let run = run_of(&of_executor, 1);
        until(Duration::from_secs(40), || match of_executor.asked("/log").len() {
            0 | 1 => Err("its log, more than once".to_owned()),
            _ => Ok(()),
        });
        tell(&ground, &run, 200);
        assert_eq!(ground.until_end("ok", "202407").batch, "SUCCESS", "{who}");
        let log = ground.log("ok", "202407");
        let printed: Vec<&str> = log
            .lines()
            .filter_map(|line| line.split_once("stdout | ").map(|(_, text)| text))
            .collect();
        // The first line of npm's client is its own and says that the job runs; who asks from 1 passes it over.
        let all = ["one", "二", "three", "four"];
        let expected = if who == "npm" { &all[1..] } else { &all[..] };
        assert_eq!(printed, expected, "{who}: {log}");
    }
}

#[test]
fn whoever_has_no_log_has_none() {
    for answer in [
        Answer::body(r#"{"content":null,"code":200,"msg":null}"#),
        Answer::body(r#"{"code":500,"msg":"No local logger found."}"#),
        Answer::Status(404, String::new()),
        Answer::HangUp,
        Answer::body(
            r#"{"code":200,"content":{"fromLineNum":1,"toLineNum":0,"logContent":"","isEnd":true}}"#,
        ),
    ] {
        let (ground, executor) = with_executor();
        executor.says("/log", answer);
        ground.open("ok", "202407");
        tell(&ground, &run_of(&executor, 1), 200);
        assert_eq!(ground.until_end("ok", "202407").batch, "SUCCESS");
    }
}
