//! What admins of each version ask an executor, at the door of this installation as one.

use crate::xxl::admin::TOKEN;
use crate::xxl::desk::{APP, Bench, raw};
use procession::wire::xxl::XxlDialect;

/// The headers of Java's own client; 3.5 says a name as well.
fn java(dialect: XxlDialect) -> String {
    let named = match dialect {
        XxlDialect::D3 => format!("XXL-JOB-APPNAME: {APP}\r\n"),
        XxlDialect::D0 | XxlDialect::D1 | XxlDialect::D2 => String::new(),
    };
    format!(
        "User-Agent: Java/17.0.9\r\nHost: executor:9999\r\nAccept: text/html, image/gif, image/jpeg, */*; q=0.2\r\n\
         Accept-Charset: application/json;charset=UTF-8\r\nConnection: keep-alive\r\n\
         Content-Type: application/json;charset=UTF-8\r\nXXL-JOB-ACCESS-TOKEN: {TOKEN}\r\n{named}"
    )
}

/// The answer to a body, or to a request that has none and says nothing of its length.
async fn said(bench: &Bench, dialect: XxlDialect, path: &str, body: Option<&str>) -> String {
    let (length, body) = match body {
        Some(body) => (format!("Content-Length: {}\r\n", body.len()), body),
        None => (String::new(), ""),
    };
    let request = format!("POST {path} HTTP/1.1\r\n{}{length}\r\n{body}", java(dialect));
    let answer = raw(bench.door, request.as_bytes()).await;
    assert!(answer.starts_with("HTTP/1.1 200 "), "{dialect:?} {path}: {answer}");
    answer.split_once("\r\n\r\n").expect("a body").1.to_owned()
}

/// `/run` as each writes it: absent where nothing is set; up to 3.2 with what HTML would mind escaped.
fn run(dialect: XxlDialect) -> (&'static str, &'static str) {
    match dialect {
        XxlDialect::D0 | XxlDialect::D1 => (
            "/run",
            r#"{"jobId":7,"executorHandler":"queueDispatcherHandler","executorParams":"{\"batchNo\":\"202407\",\"type\":\"monthly\",\"params\":{\"mark\":\"a\u003db\u0026c\u0027\"}}","executorBlockStrategy":"SERIAL_EXECUTION","executorTimeout":0,"logId":101,"logDateTime":1722470400000,"glueType":"BEAN","glueUpdatetime":1722470400000,"broadcastIndex":0,"broadcastTotal":1}"#,
        ),
        XxlDialect::D2 => (
            "/run",
            r#"{"jobId":7,"executorHandler":"queueDispatcherHandler","executorParams":"{\"batchNo\":\"202407\",\"type\":\"monthly\",\"params\":{\"mark\":\"a=b&c'\"}}","executorBlockStrategy":"SERIAL_EXECUTION","executorTimeout":0,"logId":101,"logDateTime":1722470400000,"glueType":"BEAN","glueSource":"","glueUpdatetime":1722470400000,"broadcastIndex":0,"broadcastTotal":1}"#,
        ),
        XxlDialect::D3 => (
            "/trigger",
            r#"{"jobId":7,"executorHandler":"queueDispatcherHandler","executorParams":"{\"batchNo\":\"202407\",\"type\":\"monthly\",\"params\":{\"mark\":\"a=b&c'\"}}","executorBlockStrategy":"SERIAL_EXECUTION","executorTimeout":0,"logId":101,"logDateTime":1722470400000,"glueType":"BEAN","glueSource":"","glueUpdatetime":1722470400000,"broadcastIndex":0,"broadcastTotal":1}"#,
        ),
    }
}

const YES: &str = r#"{"code":200,"content":null,"data":null,"msg":null}"#;

#[tokio::test]
async fn every_question_of_every_version_is_answered() {
    for dialect in XxlDialect::ALL {
        let (bench, _dir) = Bench::sqlite(dialect).await;
        // The older ones send two quotation marks, the newer ones no body and no length.
        let beat = match dialect {
            XxlDialect::D0 | XxlDialect::D1 => Some(r#""""#),
            XxlDialect::D2 | XxlDialect::D3 => None,
        };
        assert_eq!(said(&bench, dialect, "/beat", beat).await, YES, "{dialect:?}");
        let job = Some(r#"{"jobId":7}"#);
        assert_eq!(said(&bench, dialect, "/idleBeat", job).await, YES, "{dialect:?}");
        let (path, body) = run(dialect);
        let taken = r#"{"code":200,"content":null,"data":null,"msg":"taken"}"#;
        assert_eq!(said(&bench, dialect, path, Some(body)).await, taken, "{dialect:?}");
        assert!(said(&bench, dialect, "/idleBeat", job).await.contains(r#""code":500"#));
        bench.follow().await;
        let sql = "SELECT COUNT(*) AS n FROM xxl_run WHERE params LIKE '%\"mark\":\"a=b&c''\"%'";
        assert_eq!(bench.number(sql).await, 1, "{dialect:?}");
        assert!(bench.batch("202407", "month_end").await.is_some(), "{dialect:?}");
        let log = match dialect {
            XxlDialect::D0 | XxlDialect::D1 | XxlDialect::D2 => {
                r#"{"logDateTim":1722470400000,"logId":101,"fromLineNum":1}"#
            }
            XxlDialect::D3 => r#"{"logDateTime":1722470400000,"logId":101,"fromLineNum":1}"#,
        };
        let page = said(&bench, dialect, "/log", Some(log)).await;
        assert!(page.contains(r#""fromLineNum":1"#) && page.contains("run 101 of job 7"), "{page}");
        assert!(said(&bench, dialect, "/kill", job).await.contains(r#""code":200"#));
        assert_eq!(bench.runs().await, ["101 RUNNING KILLED"], "{dialect:?}");
    }
}
