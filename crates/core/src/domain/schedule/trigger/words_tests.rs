use super::*;

fn read(json: &str) -> Result<TriggerDef, WordFaults> {
    let words: TriggerWords = serde_json::from_str(json).expect("keys of a schedule");
    words.parse_trigger(Some(Tz::Asia__Shanghai))
}

#[test]
fn what_is_usual_is_left_out_and_comes_back() {
    for json in [
        r#"{"code":"M","group":"g","batch_no":"month(-1)","cron":"0 0 2 1 * ?"}"#,
        r#"{"code":"Q","type":"quarterly","batch_no":"quarter(0)","rule":"last working day of quarter",
            "at":"18:00","calendar":"cn","time_zone":"Asia/Shanghai","misfire":{"newest":3},
            "misfire_window_sec":3600,"overlap":"skip","retry_count":0,"owner":"o","paused":true,
            "notify_email":["a@b.c"],"params":{"x":"1"},"name":"Quarter"}"#,
        r#"{"code":"N","handler":"noopHandler","every_sec":5}"#,
        r#"{"code":"E","group":"g","batch_no":"adhoc","event":"closed","business_date":"2024-07-31"}"#,
        r#"{"code":"A","group":"g","batch_no":"same","after":{"group":"h","on":"end"}}"#,
    ] {
        let def = read(json).expect(json);
        let body = serde_json::to_string(&def).expect("written");
        assert_eq!(serde_json::from_str::<TriggerDef>(&body).expect(&body), def, "{body}");
        for usual in ["retry_delay_sec", "handler_param", "timeout_sec"] {
            assert!(!body.contains(usual), "{body}");
        }
    }
}

#[test]
fn xxl_job_parameters_become_the_same_order() {
    let raw = r#"{"code":"M","cron":"0 0 2 1 * ?","handler":"queueDispatcherHandler",
        "handler_param":"{\"batchNo\":\"month(-1)\",\"type\":\"monthly\"}"}"#;
    let keys = r#"{"code":"M","cron":"0 0 2 1 * ?","batch_no":"month(-1)","type":"monthly"}"#;
    assert_eq!(read(raw).expect("raw"), read(keys).expect("keys"));
}

#[test]
fn every_fault_is_found_at_its_key() {
    let json = r#"{"code":"a b","group":"g","batch_no":"last month","handler":"queueDispacherHandler",
        "cron":"0 0 2 32 * ?","time_zone":"Asia/Shangai","start":"soon","end":"2026-13-01",
        "misfire":{"newest":0},"misfire_window_sec":0}"#;
    let faults = read(json).expect_err("faulty").0;
    let mut keys: Vec<&str> = faults.iter().map(|f| f.key).collect();
    keys.sort_unstable();
    let wanted = [
        "batch_no",
        "code",
        "cron",
        "end",
        "handler",
        "misfire",
        "misfire_window_sec",
        "start",
        "time_zone",
    ];
    assert_eq!(keys, wanted, "{faults:#?}");
}

#[test]
fn each_fault_says_what_to_do() {
    for (json, key, said) in [
        (r#"{"code":"M","group":"g","cron":"0 0 2 1 * ?"}"#, "code", "add batch_no: month(-1)"),
        (r#"{"code":"M","batch_no":"day(0)","manual":true}"#, "code", "add group: CODE or type"),
        (r#"{"code":"M","group":"g","batch_no":"day(0)"}"#, "code", "none is here"),
        (
            r#"{"code":"M","group":"g","batch_no":"day(0)","manual":true,"handler_param":"{}"}"#,
            "batch_no",
            "both handler_param and batch_no",
        ),
        (
            r#"{"code":"M","manual":true,"handler_param":"{\"batchNo\":\"day(0)\"}"}"#,
            "handler_param",
            "neither group nor type",
        ),
        (
            r#"{"code":"M","manual":true,"handler_param":"month(-1)"}"#,
            "handler_param",
            "write JSON such as",
        ),
        (
            r#"{"code":"M","manual":true,"handler":"noopHandler","group":"g"}"#,
            "group",
            "noopHandler opens nothing",
        ),
        (
            r#"{"code":"M","group":"g","batch_no":"day(0)","rule":"last day of month"}"#,
            "rule",
            "add at:",
        ),
    ] {
        let faults = read(json).expect_err(json).0;
        let found = faults.iter().any(|f| f.key == key && f.to_string().contains(said));
        assert!(found, "{json}: {faults:#?}");
    }
}
