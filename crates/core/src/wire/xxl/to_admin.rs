//! Requests from an executor to its admin: registrations, and results of runs.

use super::XxlDialect;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// Registration of an executor, or its removal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Registry {
    /// Always `EXECUTOR`.
    pub registry_group: String,
    /// App name of the executor.
    pub registry_key: String,
    /// URL of the executor.
    pub registry_value: String,
}

/// Result of one run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Callback {
    /// Id of the run in the admin; the only identification of the run.
    pub log_id: i64,
    /// Time at which the admin triggered the run; some clients send their own time.
    pub log_date_time: i64,
    /// Result code: 200, 500 or 502.
    pub handle_code: i32,
    /// Message.
    pub handle_msg: Option<String>,
}

/// The body of a callback with results of runs.
pub fn callbacks(dialect: XxlDialect, items: &[Callback]) -> Value {
    let item = |told: &Callback| {
        let Callback { log_id, log_date_time, handle_code, handle_msg } = told;
        let mut value = match dialect {
            XxlDialect::D0 => json!({"logId": log_id, "logDateTim": log_date_time}),
            XxlDialect::D1 | XxlDialect::D2 => {
                json!({"logId": log_id, "logDateTim": log_date_time, "handleCode": handle_code})
            }
            XxlDialect::D3 => {
                json!({"logId": log_id, "logDateTime": log_date_time, "handleCode": handle_code})
            }
        };
        // Absent instead of null, as Java's own client omits it.
        if dialect == XxlDialect::D0 {
            value["executeResult"] = json!({"code": handle_code});
        }
        if let Some(words) = handle_msg {
            let place = match dialect {
                XxlDialect::D0 => &mut value["executeResult"]["msg"],
                XxlDialect::D1 | XxlDialect::D2 | XxlDialect::D3 => &mut value["handleMsg"],
            };
            *place = json!(words);
        }
        value
    };
    let items: Vec<Value> = items.iter().map(item).collect();
    match dialect {
        XxlDialect::D0 | XxlDialect::D1 | XxlDialect::D2 => Value::Array(items),
        XxlDialect::D3 => json!({"callbackList": items}),
    }
}

#[derive(Deserialize)]
#[serde(untagged)]
enum CallbackBody {
    List(Vec<CallbackItem>),
    Object {
        #[serde(rename = "callbackList")]
        list: Vec<CallbackItem>,
    },
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct CallbackItem {
    log_id: i64,
    log_date_tim: Option<i64>,
    log_date_time: Option<i64>,
    handle_code: Option<i32>,
    handle_msg: Option<String>,
    execute_result: Option<ExecuteResult>,
}

#[derive(Deserialize)]
struct ExecuteResult {
    code: i32,
    msg: Option<String>,
}

impl CallbackItem {
    fn into_callback(self) -> Callback {
        let (code, words) = match self.execute_result {
            Some(old) => (Some(old.code), old.msg),
            None => (None, None),
        };
        Callback {
            log_id: self.log_id,
            log_date_time: self.log_date_tim.or(self.log_date_time).unwrap_or_default(),
            // 0 is the code of a run without a result; an item without a code has none either.
            handle_code: self.handle_code.or(code).unwrap_or_default(),
            handle_msg: self.handle_msg.or(words),
        }
    }
}

/// Parses a callback body in any dialect.
pub fn read_callbacks(body: &[u8]) -> Result<Vec<Callback>, serde_json::Error> {
    let items = match serde_json::from_slice(body)? {
        CallbackBody::List(items) | CallbackBody::Object { list: items } => items,
    };
    Ok(items.into_iter().map(CallbackItem::into_callback).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told() -> [Callback; 2] {
        let first = Callback {
            log_id: 101,
            log_date_time: 1_795_219_433_671,
            handle_code: 200,
            handle_msg: Some("成功".to_owned()),
        };
        [first.clone(), Callback { log_id: 102, handle_code: 502, handle_msg: None, ..first }]
    }

    /// The bytes that each dialect sends.
    const SENT: [(XxlDialect, &str); 4] = [
        (
            XxlDialect::D0,
            r#"[{"executeResult":{"code":200,"msg":"成功"},"logDateTim":1795219433671,"logId":101},{"executeResult":{"code":502},"logDateTim":1795219433671,"logId":102}]"#,
        ),
        (
            XxlDialect::D1,
            r#"[{"handleCode":200,"handleMsg":"成功","logDateTim":1795219433671,"logId":101},{"handleCode":502,"logDateTim":1795219433671,"logId":102}]"#,
        ),
        (
            XxlDialect::D2,
            r#"[{"handleCode":200,"handleMsg":"成功","logDateTim":1795219433671,"logId":101},{"handleCode":502,"logDateTim":1795219433671,"logId":102}]"#,
        ),
        (
            XxlDialect::D3,
            r#"{"callbackList":[{"handleCode":200,"handleMsg":"成功","logDateTime":1795219433671,"logId":101},{"handleCode":502,"logDateTime":1795219433671,"logId":102}]}"#,
        ),
    ];

    #[test]
    fn each_dialect_is_written_byte_by_byte_and_read_again() {
        for (dialect, bytes) in SENT {
            let text = callbacks(dialect, &told()).to_string();
            assert_eq!(text, bytes, "{dialect:?}");
            assert_eq!(read_callbacks(text.as_bytes()).expect("read"), told(), "{dialect:?}");
        }
    }

    /// Requests captured from real clients.
    #[test]
    fn callbacks_of_real_clients_are_read() {
        for (body, code, words) in [
            (
                r#"[{"logId": 101, "logDateTim": 1795219433671, "handleCode": 200, "handleMsg": "\u6210\u529f ok", "executeResult": {"code": 200, "msg": "\u6210\u529f ok"}}]"#,
                200,
                Some("成功 ok"),
            ),
            (
                r#"[{"logId":101,"logDateTim":1795219588668,"handleCode":200,"handleMsg":"{\"ok\":1}"}]"#,
                200,
                Some("{\"ok\":1}"),
            ),
            (
                r#"[{"logId":101,"logDateTim":1795219835486,"handleCode":200,"handleMsg":null}]"#,
                200,
                None,
            ),
            (
                r#"[{"logId":101,"logDateTim":1,"executeResult":{"code":500,"msg":"broken","content":null}}]"#,
                500,
                Some("broken"),
            ),
            (r#"{"callbackList":[{"logId":101,"handleCode":502}]}"#, 502, None),
        ] {
            let read = read_callbacks(body.as_bytes()).expect(body);
            assert_eq!((read[0].log_id, read[0].handle_code), (101, code), "{body}");
            assert_eq!(read[0].handle_msg.as_deref(), words, "{body}");
        }
        for bad in ["", "{}", "[1]", r#"[{"handleCode":200}]"#, r#"[{"logId":"x"}]"#] {
            assert!(read_callbacks(bad.as_bytes()).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_registration_is_three_words() {
        let pyxxl = r#"{"registryGroup": "EXECUTOR", "registryKey": "px-sample", "registryValue": "http://127.0.0.1:19991"}"#;
        let read: Registry = serde_json::from_str(pyxxl).expect("read");
        assert_eq!(
            serde_json::to_string(&read).expect("text"),
            r#"{"registryGroup":"EXECUTOR","registryKey":"px-sample","registryValue":"http://127.0.0.1:19991"}"#
        );
    }
}
