//! Responses, in the envelope that both sides use.

use super::{FAIL, OK};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// A response. Its HTTP status is always 200; only the code tells success from failure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    /// 200, or an error code.
    pub code: i32,
    /// Message.
    pub msg: Option<String>,
    /// The result: `content` up to 3.2, `data` since 3.3.
    pub content: Value,
}

/// A page of the log of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LogPage {
    /// The number of the first line, from 1.
    pub from_line_num: i64,
    /// The number of the last line; less than that of the first if there are no lines.
    pub to_line_num: i64,
    /// Text of the lines.
    pub log_content: String,
    /// Whether the log is complete.
    pub is_end: bool,
}

impl LogPage {
    /// Whether the executor has no log file of the run, so that the text is a notice and not a log line. Java executors
    /// (2.2 to 3.5) answer this case with last line 0 and the end flag set.
    pub fn is_file_missing(&self) -> bool {
        self.is_end && self.to_line_num == 0 && self.from_line_num > 0
    }
}

#[derive(Deserialize)]
struct Envelope {
    code: i32,
    msg: Option<String>,
    content: Option<Value>,
    data: Option<Value>,
}

impl Reply {
    /// A successful response.
    pub fn success(content: Value) -> Self {
        Self { code: OK, msg: None, content }
    }

    /// A successful response with a message.
    pub fn noted(words: impl Into<String>) -> Self {
        Self { code: OK, msg: Some(words.into()), content: Value::Null }
    }

    /// A failure with its message.
    pub fn failure(words: impl Into<String>) -> Self {
        Self { code: FAIL, msg: Some(words.into()), content: Value::Null }
    }

    /// Serializes the response so that every known peer can read it: the result appears under both names.
    pub fn to_json(&self) -> String {
        let Self { code, msg, content } = self;
        json!({"code": code, "msg": msg, "content": content, "data": content}).to_string()
    }

    /// Parses a response of any version. Java executors send it as `text/html`, so the content type is ignored.
    pub fn parse_body(body: &[u8]) -> Result<Self, serde_json::Error> {
        let Envelope { code, msg, content, data } = serde_json::from_slice(body)?;
        Ok(Self { code, msg, content: content.or(data).unwrap_or_default() })
    }

    /// Whether the code means success.
    pub fn is_ok(&self) -> bool {
        self.code == OK
    }
}

/// Parses the log page in a response to `/log`; `None` if it has none.
pub fn read_log(reply: &Reply) -> Option<LogPage> {
    serde_json::from_value(reply.content.clone()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_written_under_both_names_and_read_under_either() {
        let page =
            LogPage { from_line_num: 1, to_line_num: 2, log_content: "a\nb".into(), is_end: false };
        let reply = Reply::success(serde_json::to_value(&page).expect("value"));
        let inner = r#"{"fromLineNum":1,"isEnd":false,"logContent":"a\nb","toLineNum":2}"#;
        let text = reply.to_json();
        assert_eq!(text, format!(r#"{{"code":200,"content":{inner},"data":{inner},"msg":null}}"#));
        for name in ["content", "data"] {
            let text = format!(r#"{{"code":200,"msg":null,"{name}":{inner},"success":true}}"#);
            let read = Reply::parse_body(text.as_bytes()).expect("read");
            assert_eq!(read_log(&read), Some(page.clone()), "{name}");
        }
    }

    /// Responses captured from real admins and executors.
    #[test]
    fn answers_of_real_peers_are_read() {
        for (text, code) in [
            (r#"{"code":200,"msg":null,"content":null}"#, 200),
            (r#"{"code":200,"msg":"Success","data":null,"success":true}"#, 200),
            (r#"{"code": 200, "msg": "Running"}"#, 200),
            (r#"{"code":500,"msg":"The access token is wrong.","content":null}"#, 500),
        ] {
            let read = Reply::parse_body(text.as_bytes()).expect(text);
            assert_eq!((read.code, read.content), (code, Value::Null), "{text}");
        }
        for bad in ["", "<html>", r#"{"msg":"x"}"#, r#"{"code":"200"}"#] {
            assert!(Reply::parse_body(bad.as_bytes()).is_err(), "{bad}");
        }
        let refused = r#"{"code":500,"content":null,"data":null,"msg":"no"}"#;
        assert_eq!(Reply::failure("no").to_json(), refused);
        assert_eq!(read_log(&Reply::success(Value::Null)), None);
    }
}
