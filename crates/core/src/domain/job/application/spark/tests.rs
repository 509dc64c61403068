//! Tests of what is sent to Spark and read from it. The answers are those of Spark 4.3.0.

use super::*;

fn call(file: &str) -> ApplicationCall {
    ApplicationCall {
        host: Some("spark".to_owned()),
        file: file.to_owned(),
        main_class: Some("a.Main".to_owned()),
        args: Vec::new(),
        conf: BTreeMap::from([("spark.sql.ansi.enabled".to_owned(), "true".to_owned())]),
        parallelism: None,
        spark: SparkOptions {
            jars: vec!["/b.jar".to_owned()],
            py_files: vec!["/c.py".to_owned()],
            executor_memory: Some("512m".to_owned()),
            ..SparkOptions::default()
        },
        poll_sec: 1,
    }
}

const WHO: ApplicationIdentity<'_> = ApplicationIdentity { name: "i/202407/A/1", key: "0af1" };

#[test]
fn a_driver_is_created_with_its_name_and_its_key() {
    let sent = create_request(&call("/a.jar"), &["x".to_owned()], WHO, None);
    assert_eq!((&sent["appResource"], &sent["mainClass"]), (&json!("/a.jar"), &json!("a.Main")));
    assert_eq!(sent["appArgs"], json!(["x"]));
    let conf = &sent["sparkProperties"];
    for (name, value) in [
        ("spark.app.name", "i/202407/A/1"),
        (KEY_PROPERTY, "0af1"),
        ("spark.jars", "/a.jar,/b.jar"),
        ("spark.driver.supervise", "false"),
        ("spark.executor.memory", "512m"),
        ("spark.sql.ansi.enabled", "true"),
    ] {
        assert_eq!(conf[name], json!(value), "{name}");
    }
    let sent = create_request(&call("/a.py"), &["x".to_owned()], WHO, Some("spark://m:7077"));
    assert_eq!((&sent["appResource"], &sent["mainClass"]), (&json!(""), &json!(SUBMIT_CLASS)));
    let args = sent["appArgs"].as_array().expect("arguments");
    assert_eq!(args[..2], [json!("--master"), json!("spark://m:7077")]);
    assert_eq!(args[args.len() - 2..], [json!("/a.py"), json!("x")]);
    assert!(args.contains(&json!("spark.app.name=i/202407/A/1")), "{args:?}");
}

#[test]
fn a_command_names_class_file_and_arguments_last() {
    let mut call = call("/a.jar");
    (call.host, call.spark.master) = (None, Some("local[2]".to_owned()));
    let words = submit_command(&call, &["--x".to_owned()], WHO);
    assert_eq!(words[..4], ["--master", "local[2]", "--deploy-mode", "client"]);
    assert_eq!(words[words.len() - 4..], ["--class", "a.Main", "/a.jar", "--x"]);
    assert!(words.contains(&"spark.jars=/b.jar".to_owned()), "{words:?}");
}

#[test]
fn the_state_is_the_drivers_and_an_unknown_id_is_none() {
    use ApplicationState::{Active, Cancelled, Failed, Finished};
    let read = |body: &str| SubmissionAnswer::parse(200, body).expect("an answer").read_report();
    for (word, state) in [
        ("SUBMITTED", Active),
        ("RUNNING", Active),
        ("RELAUNCHING", Active),
        ("UNKNOWN", Active),
        ("FINISHED", Finished),
        ("FAILED", Failed),
        ("ERROR", Failed),
        ("KILLED", Cancelled),
    ] {
        let body =
            format!(r#"{{"driverState":"{word}","submissionId":"driver-1","success":true}}"#);
        let report = read(&body).expect("a report").expect("a driver");
        assert_eq!((report.state, report.word.as_str()), (state, word));
    }
    assert_eq!(read(r#"{"submissionId":"driver-x","success":false}"#), Ok(None));
    let standby = r#"{"success":false,"message":"Exception from the cluster:\njava.lang.Exception: Current state is not alive: STANDBY. Can only request driver status in ALIVE state.\n\torg.apache.spark.x"}"#;
    assert!(read(standby).is_err_and(|said| said.contains("not alive: STANDBY")));
    assert!(read(r#"{"driverState":"LOST","success":true}"#).is_err());
    assert!(SubmissionAnswer::parse(502, "<html>").is_err_and(|said| said.contains("status 502")));
}

#[test]
fn an_application_leads_to_its_driver_only_when_no_other_is_possible() {
    let driver = |id: &str, class: &str| {
        json!({"id": id, "starttime": "1795903747762", "state": "RUNNING", "mainclass": class,
            "worker": "worker-1"})
    };
    let listing = |drivers: Value| {
        let body = json!({"url": "spark://m:7077",
            "workers": [{"id": "worker-1", "webuiaddress": "http://w:8081"}],
            "activeapps": [{"id": "app-1", "name": "i/1", "starttime": 7}],
            "completedapps": [], "activedrivers": drivers, "completeddrivers": []});
        MasterListing::parse(&body.to_string()).expect("a listing")
    };
    let one = listing(json!([driver("driver-1", "A"), driver("driver-2", "B")]));
    assert_eq!(one.only_driver("i/1", "A").as_deref(), Some("driver-1"));
    assert_eq!(one.only_driver("i/2", "A"), None);
    assert_eq!(one.worker_address("worker-1"), Some("http://w:8081"));
    assert_eq!(one.active_application("i/1"), Some("app-1"));
    let two = listing(json!([driver("driver-1", "A"), driver("driver-2", "A")]));
    assert_eq!(two.only_driver("i/1", "A"), None);
    let newest: Vec<String> = two.drivers_of("A").into_iter().map(|d| d.id).collect();
    assert_eq!(newest, ["driver-2", "driver-1"]);
}

#[test]
fn logs_causes_and_stages_are_read() {
    let body = "==== Bytes 0-17 of 40 of /w/driver-1/stdout ====\n::output rows=10\n";
    let piece = read_log_piece(body).expect("a piece");
    assert_eq!((piece.text, piece.end, piece.total), ("::output rows=10\n", 17, 40));
    assert_eq!(read_log_piece("<html>"), None);
    let command = "Launch Command: \"java\" \"-Dspark.procession.key=0af1\" \"x\"\n=====\n";
    assert!(is_launched_with(command, "0af1") && !is_launched_with(command, "0af2"));
    let java = "26/11/28 INFO x\nException in thread \"main\" a.B: x\n\tat c.D\nCaused by: e.F: out of balance\n\tat g.H\n26/11/28 INFO Shutdown";
    assert_eq!(find_cause(java).as_deref(), Some("e.F: out of balance"));
    let plain = "Exception in thread \"main\" a.B: x\n\tat c.D\n";
    assert_eq!(find_cause(plain).as_deref(), Some("a.B: x"));
    let python =
        "Traceback (most recent call last):\n  File \"a.py\", line 1\n    f()\nValueError: no\n";
    assert_eq!(find_cause(python).as_deref(), Some("ValueError: no"));
    assert_eq!(find_cause("INFO fine"), None);
    let stages = r#"[{"status":"COMPLETE","numTasks":4,"numCompleteTasks":4,"inputRecords":9},
        {"status":"ACTIVE","numTasks":6,"numCompleteTasks":1,"shuffleReadBytes":70}]"#;
    let text = "1 of 2 stages, 5 of 10 tasks, 9 rows read, 70 bytes of shuffle read";
    assert_eq!(read_stages(stages).as_deref(), Some(text));
    assert_eq!(read_stages("[]"), None);
    let page = r#"<a href="/">x</a><a href="http://m:4041">Application Detail UI</a>"#;
    assert_eq!(read_application_link(page), Some("http://m:4041"));
}

#[test]
fn sizes_of_memory_have_a_unit() {
    for good in ["512m", "4g", "1T", "900K"] {
        assert!(is_memory_size(good), "{good}");
    }
    for bad in ["", "g", "512", "4gb", "4 g", "-1g", "0g", "1.5g", "4gg"] {
        assert!(!is_memory_size(bad), "{bad}");
    }
}
