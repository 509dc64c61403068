//! Translates HTTP tasks.

use super::keys;
use super::read::DolphinTask;
use super::value::{ParamScope, Turned, value, variable};
use crate::domain::job::body::{HttpBody, HttpCall, HttpHost};
use crate::domain::job::{JobDef, Param};
use crate::domain::params::http_call::{METHODS, parse_base_url};
use crate::import::draft::Draft;
use crate::import::keys::{KeyNote, check_keys, hint};
use crate::import::note::{BilingualSentence, Level};
use crate::import::tree::{get, items, word};
use std::collections::BTreeMap;
use url::Url;

/// Sets the HTTP call of a job.
pub(super) fn fill_http(
    task: &DolphinTask,
    job: &mut JobDef,
    scope: &ParamScope,
    draft: &mut Draft,
) -> Result<(), BilingualSentence> {
    let unreadable = || {
        BilingualSentence::from((
            "its URL cannot be read, or holds placeholders",
            "其 URL 无法读取或含有占位符",
        ))
    };
    let text = word(&task.params, "url").unwrap_or_default().trim();
    if text.contains(['$', '{', '}']) {
        return Err(unreadable());
    }
    let url = Url::parse(text).map_err(|_| unreadable())?;
    let origin = url.origin().ascii_serialization();
    parse_base_url(&origin).map_err(|_| unreadable())?;
    let method = first_key(task, ["httpMethod", "httpRequestMethod"]);
    let method =
        method.and_then(|key| word(&task.params, key)).unwrap_or("GET").to_ascii_uppercase();
    refuse_own_body(task)?;
    if !METHODS.contains(&method.as_str()) {
        let why = (
            format!("method {method} is not among those of HTTP jobs"),
            format!("HTTP 作业不支持方法 {method}"),
        );
        return Err(BilingualSentence::from(why));
    }
    let mut path = url[url::Position::BeforePath..url::Position::AfterQuery].to_owned();
    let mut headers = BTreeMap::new();
    let mut send = HttpBody::None;
    let params = first_key(task, ["httpParams", "httpRequestParams"]).unwrap_or("httpParams");
    for one in items(&task.params, params) {
        check_keys(one, &[keys::HTTP_PARAM], job.code.as_str(), draft);
        let Some(prop) = word(one, "prop").map(str::trim).filter(|p| !p.is_empty()) else {
            continue;
        };
        let name = variable(prop);
        let known = |n: &str| scope.own.contains_key(n);
        let Turned::Value(given) = value(word(one, "value").unwrap_or_default(), &known) else {
            return Err(BilingualSentence::new(
                format!("the value of its parameter {prop} has no form here"),
                format!("其参数 {prop} 的值没有对应的写法"),
            ));
        };
        match word(one, "httpParametersType").unwrap_or("PARAMETER") {
            "HEADERS" => drop(headers.insert(prop.to_owned(), format!("{{{name}}}"))),
            "BODY" => send = HttpBody::Json,
            _ => {
                let sign = if path.contains('?') { '&' } else { '?' };
                path.push_str(&format!("{sign}{name}={{{name}}}"));
            }
        }
        job.params.push(Param { name, value: Some(given), ..Param::default() });
    }
    if send != HttpBody::None && ["GET", "HEAD"].contains(&method.as_str()) {
        return Err(body_without_place(&method));
    }
    let expect_status = expected(task, job, draft);
    note_password(task, job, draft);
    let host = make_host(&origin, url.host_str().unwrap_or_default(), draft);
    job.http = Some(Box::new(HttpCall { host, method, path, headers, send, expect_status }));
    Ok(())
}

/// The first of two key names that exists, because versions differ.
fn first_key(task: &DolphinTask, names: [&'static str; 2]) -> Option<&'static str> {
    names.into_iter().find(|name| get(&task.params, name).is_some())
}

fn refuse_own_body(task: &DolphinTask) -> Result<(), BilingualSentence> {
    let body = first_key(task, ["httpBody", "httpRequestBody"]);
    let body = body.and_then(|key| word(&task.params, key)).unwrap_or_default();
    if body.trim().is_empty() {
        return Ok(());
    }
    Err(BilingualSentence::from((
        "its body is a text of its own; here a body is made of parameters (http: send: json)",
        "其请求体是自定义文本;此处请求体由参数生成(http: send: json)",
    )))
}

fn note_password(task: &DolphinTask, job: &JobDef, draft: &mut Draft) {
    if get(&task.params, "password").is_some() {
        let note = KeyNote { at: &task.at, about: job.code.as_str(), key: "password", value: None };
        draft.note_key(note, hint("passwords are never taken over", "密码不会迁移"));
    }
}

/// Why this method cannot send a body.
fn body_without_place(method: &str) -> BilingualSentence {
    BilingualSentence::new(
        format!("it has a parameter of type BODY, and {method} sends no body"),
        format!("其参数类型为 BODY,而 {method} 不发送请求体"),
    )
}

/// The status codes that count as success.
fn expected(task: &DolphinTask, job: &JobDef, draft: &mut Draft) -> Vec<u16> {
    let check = word(&task.params, "httpCheckCondition").unwrap_or("STATUS_CODE_DEFAULT");
    let asked = word(&task.params, "condition").unwrap_or_default().trim();
    match (check, asked.parse::<u16>()) {
        ("STATUS_CODE_CUSTOM", Ok(status)) => vec![status],
        ("STATUS_CODE_DEFAULT", _) => vec![200],
        _ => {
            draft.note(
                Level::Look,
                &task.at,
                job.code.as_str(),
                (
                    format!(
                        "there its answer is checked by {check} {asked:?}; here by its status alone"
                    ),
                    format!("原系统按 {check} {asked:?} 检查应答;此处只看状态码"),
                ),
                ("write success: with a rule on body", "请用 success: 对 body 写规则"),
            );
            Vec::new()
        }
    }
}

/// The host of a URL; each is created once.
fn make_host(origin: &str, title: &str, draft: &mut Draft) -> String {
    let hosts = &mut draft.defs.shared.hosts;
    if let Some(known) = hosts.iter().find(|h| h.base_url == origin) {
        return known.name.clone();
    }
    let mut name = variable(title).trim_start_matches('_').to_owned();
    if name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) {
        name = format!("host_{name}");
    }
    let fresh = name.clone();
    let mut count = 1;
    while hosts.iter().any(|h| h.name.eq_ignore_ascii_case(&name)) {
        count += 1;
        name = format!("{fresh}_{count}");
    }
    let made = HttpHost {
        name: name.clone(),
        base_url: origin.to_owned(),
        ui_url: None,
        headers: BTreeMap::new(),
        max_parallel: None,
    };
    hosts.push(made);
    name
}
