use super::*;
use crate::domain::batch::history::History;
use crate::domain::forecast::eta::of_plan;
use serde_json::json;

const TYPES: &[&str] = &["NOOP", "SQL"];

fn defs(value: serde_json::Value) -> Definition {
    let mut value = value;
    for job in value["jobs"].as_array_mut().expect("jobs") {
        let plain = json!({
            "name": "n", "group": "g", "type": "NOOP", "timeout_sec": 60, "retry_count": 0,
            "retry_delay_sec": 0, "priority": 0, "idempotent": false, "is_active": true,
        });
        for (key, fresh) in plain.as_object().expect("object") {
            if job.get(key).is_none() {
                job[key.as_str()] = fresh.clone();
            }
        }
    }
    for (key, fresh) in [("sources", json!([])), ("dependencies", json!([]))] {
        if value.get(key).is_none() {
            value[key] = fresh;
        }
    }
    serde_json::from_value(value).expect("definition")
}

fn order(json: &str) -> BatchOrder {
    BatchOrder::parse(json).expect("order")
}

fn waits(job: &str, on: &str) -> serde_json::Value {
    json!({"group": "g", "job_code": job, "depends_on": on, "dependency_order": 0})
}

fn refused(found: &DryRun) -> Vec<String> {
    found.refusals.iter().map(ToString::to_string).collect()
}

#[test]
fn everything_that_is_refused_is_told_at_once() {
    let defs = defs(json!({
        "groups": [{"code": "g", "name": "g", "time_zone": "Mars/Base"}, {"code": "empty", "name": "e"}],
        "jobs": [
            {"code": "A"}, {"code": "OFF", "is_active": false}, {"code": "OFF2", "is_active": false},
            {"code": "B", "type": "SPARK", "source": "nowhere"},
            {"code": "C", "params": [
                {"name": "p", "type": "int", "value": "${params.fx}"},
                {"name": "q", "type": "date", "value": "${business_date}"},
                {"name": "r", "value": "fine"},
            ]},
        ],
        "dependencies": [waits("B", "A"), waits("B", "OFF"), waits("C", "OFF2")],
    }));
    let found = dry_run(&defs, &order(r#"{"batchNo":"free"}"#), TYPES, Millis(0));
    let said = refused(&found);
    let about = [
        "job B depends on OFF, which is not active",
        "job C depends on OFF2, which is not active",
        "time zone \"Mars/Base\" is not known",
        "job B has the type SPARK, which this binary cannot run; it knows NOOP, SQL",
        "job B runs on source nowhere, which is not defined",
        "job C: parameter p: ${params.fx} has no value in this batch; give it to the group",
        "job C: parameter q: ${business_date} has no value in this batch",
        "group empty has no active job",
    ];
    assert_eq!(said.len(), about.len(), "{said:#?}");
    for (said, about) in said.iter().zip(about) {
        assert!(said.contains(about), "{said}");
    }
    // The rest of the group is planned all the same.
    assert_eq!(found.batches.len(), 1);
    let jobs = &found.batches[0].plan.snapshot.jobs;
    assert_eq!(jobs.iter().map(|j| j.code.as_str()).collect::<Vec<_>>(), ["A", "B", "C"]);
    let job_of = |i: usize| found.refusals[i].job.as_ref().map(JobCode::as_str);
    assert_eq!((job_of(0), job_of(2), job_of(5)), (Some("B"), None, Some("C")));
}

#[test]
fn an_order_for_nothing_is_refused() {
    let defs = defs(
        json!({"groups": [{"code": "g", "name": "g", "type": "monthly"}], "jobs": [{"code": "A"}]}),
    );
    for (json, about) in [
        (r#"{"batchNo":"1","group":"x"}"#, "no group x; groups that exist: g (monthly)"),
        (r#"{"batchNo":"1","type":"daily"}"#, "no group of type daily"),
        (r#"{"batchNo":"1","type":"daily","group":"g"}"#, "no group g of type daily"),
    ] {
        let found = dry_run(&defs, &order(json), TYPES, Millis(0));
        let said = refused(&found);
        assert!(said.len() == 1 && said[0].contains(about), "{said:?}");
        assert!(found.batches.is_empty());
    }
    let fits = order(r#"{"batchNo":"202407","type":"monthly"}"#);
    let found = dry_run(&defs, &fits, TYPES, Millis(0));
    assert!(found.refusals.is_empty() && found.batches.len() == 1);
    // Of a wrong period nothing else is told.
    let found = dry_run(&defs, &order(r#"{"batchNo":"1","type":"monthly"}"#), TYPES, Millis(0));
    assert!(found.batches.is_empty() && refused(&found)[0].contains("write it as in 202407"));
}

#[test]
fn values_are_shown_as_they_would_be_bound() {
    let defs = defs(json!({
        "groups": [{"code": "g", "name": "g"}],
        "jobs": [{"code": "A"}, {"code": "B", "params": [
            {"name": "no", "value": "${batch_no}/${job_code}"},
            {"name": "given", "type": "decimal", "value": "${params.rate}"},
            {"name": "rows", "type": "int", "value": "${jobs.A.rows}"},
            {"name": "back", "mode": "out", "type": "int"},
            {"name": "pin", "value": "1234", "secret": true},
        ]}],
        "dependencies": [waits("B", "A")],
    }));
    let asked = order(r#"{"batchNo":"202407","params":{"rate":"7.10"}}"#);
    let found = dry_run(&defs, &asked, TYPES, Millis(0));
    assert_eq!(refused(&found), Vec::<String>::new());
    let shown: Vec<(&str, Option<&str>)> =
        found.batches[0].params[1].iter().map(|p| (p.name.as_str(), p.value.as_deref())).collect();
    assert_eq!(
        shown,
        [
            ("no", Some("202407/B")),
            ("given", Some("7.10")),
            ("rows", Some("(output rows of A)")),
            ("back", None),
            ("pin", Some("***")),
        ]
    );
}

#[test]
fn a_plan_reads_all_layers_and_no_secret() {
    let defs = defs(json!({
        "groups": [{"code": "g", "name": "g", "params": [{"name": "region", "value": "EU"}]}],
        "jobs": [{"code": "A", "params": [{"name": "rows", "mode": "out"}]}, {"code": "B", "params": [
            {"name": "rows", "type": "int", "required": true},
            {"name": "maybe", "type": "int", "required": true},
            {"name": "region"},
            {"name": "url", "value": "https://x:${secret.API}@y"},
            {"name": "day", "type": "date", "value": "${last_day(-1)}"},
        ]}],
        "dependencies": [waits("B", "A")],
    }));
    let asked = order(r#"{"batchNo":"202407"}"#);
    let found = dry_run(&defs, &asked, TYPES, Millis(0));
    // `maybe` may come from A's result; only the try can tell.
    assert_eq!(refused(&found), Vec::<String>::new());
    let shown: Vec<Option<&str>> =
        found.batches[0].params[1].iter().map(|p| p.value.as_deref()).collect();
    let values = [Some("(output rows of A)"), None, Some("EU"), Some("***"), Some("2024-06-30")];
    assert_eq!(shown, values);
    let wrong = order(r#"{"batchNo":"1","params":{"day":"x","rows":"y"}}"#);
    let refusals = refused(&dry_run(&defs, &wrong, TYPES, Millis(0)));
    assert_eq!(refusals.len(), 2, "{refusals:?}");
    assert!(refusals[0].contains("parameter day: \"x\" is not a date"), "{refusals:?}");
}

#[test]
fn waves_are_in_the_order_of_starting() {
    let defs = defs(json!({
        "groups": [{"code": "g", "name": "g", "max_parallel": 1}],
        "jobs": [{"code": "LAST"}, {"code": "A"}, {"code": "B", "priority": 9}, {"code": "C"}],
        "dependencies": [waits("LAST", "C")],
    }));
    let found = dry_run(&defs, &order(r#"{"batchNo":"1"}"#), TYPES, Millis(0));
    let batch = &found.batches[0];
    let names = |waves: Vec<Vec<Node>>| -> Vec<String> {
        let wave = |w: Vec<Node>| {
            w.iter().map(|n| batch.dag.job_code(*n).to_string()).collect::<Vec<_>>().join(" ")
        };
        waves.into_iter().map(wave).collect()
    };
    assert_eq!(names(batch.waves(None)), ["B A C", "LAST"]);
    let history = History::from_tries([(JobCode::parse("A").expect("code"), 5)]);
    let forecast = of_plan(&batch.plan, &batch.dag, &history, 8, Millis(0)).expect("forecast");
    // C is followed by LAST, and A has slack.
    assert_eq!(names(batch.waves(Some(&forecast))), ["B C A", "LAST"]);
    assert_eq!(forecast.remaining(), 20);
}

#[test]
fn parameters_are_compared_by_what_they_come_to() {
    let with = |rate: &str, extra: serde_json::Value| {
        let mut jobs = vec![json!({"code": "A", "params": [
            {"name": "no", "value": "${batch_no}"},
            {"name": "rate", "value": rate},
            {"name": "fx", "value": "${params.fx}"},
        ]})];
        jobs.extend(extra.as_array().cloned().unwrap_or_default());
        defs(json!({"groups": [{"code": "g", "name": "g"}], "jobs": jobs}))
    };
    let dry = |defs: &Definition, json: &str| {
        dry_run(defs, &order(json), TYPES, Millis(0)).batches.remove(0)
    };
    let old = dry(&with("1", json!([])), r#"{"batchNo":"202406","params":{"fx":"7.0"}}"#);
    let new = dry(
        &with("2", json!([{"code": "NEW", "params": [{"name": "x", "value": "1"}]}])),
        r#"{"batchNo":"202407","params":{"fx":"7.1"}}"#,
    );
    let found = param_changes(&old.plan.snapshot, &old.plan.values, &new);
    let said: Vec<String> = found
        .iter()
        .map(|c| format!("{}.{} {:?} {:?}", c.job_code, c.param, c.old, c.new))
        .collect();
    assert_eq!(said, [r#"A.rate Some("1") Some("2")"#, r#"A.fx Some("7.0") Some("7.1")"#]);
    assert!(param_changes(&new.plan.snapshot, &new.plan.values, &new).is_empty());
}
