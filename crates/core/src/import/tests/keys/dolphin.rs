//! The keys of DolphinScheduler's exports.

use super::{KeyCase, Sample};
use crate::import::System;
use crate::import::dolphin::keys;
use crate::import::keys::{KeyRule, KnownKey};
use crate::import::tests::{has_note, import_text, job, script};

const TASKS: &str = r#"[{"code": 1, "name": "a", "taskType": "SHELL", "taskParams": {"rawScript": "echo"}},
    {"code": 2, "name": "b", "taskType": "SHELL", "taskParams": {"rawScript": "echo"}}]"#;
const HEAD: &str = r#"{"code": 9, "name": "w"}"#;
const SCHEDULE: &str =
    r#"{"crontab": "0 0 2 * * ? *", "releaseState": "ONLINE", "timezoneId": "UTC"}"#;

/// Any value suits keys that are noted or recorded; keys that are read are given with a meaningful value.
fn with_any_value<'a>(tables: &[&'a [KnownKey]], read: &[Sample<'a>]) -> Vec<Sample<'a>> {
    let others = tables.iter().flat_map(|table| table.iter());
    let others = others.filter(|known| known.rule != KeyRule::Read);
    others.map(|known| (known.name, "\"77\"")).chain(read.iter().copied()).collect()
}

struct Place<'a> {
    around: &'a dyn Fn(&str) -> String,
    tables: &'a [&'a [KnownKey]],
    base: &'a [Sample<'a>],
    /// Values for the keys that are read.
    read: &'a [Sample<'a>],
    aliases: &'a [(&'a str, &'a str)],
}

fn assert_heard(place: &Place<'_>) {
    let samples = with_any_value(place.tables, place.read);
    KeyCase {
        system: System::DolphinScheduler,
        path: "d.json",
        tables: place.tables,
        around: place.around,
        base: place.base,
        samples: &samples,
        aliases: place.aliases,
    }
    .assert_each_key_is_heard();
}

#[test]
fn keys_of_an_export_and_a_workflow() {
    let relations = r#"[{"preTaskCode": 1, "postTaskCode": 2}]"#;
    let other = r#"{"code": 9, "name": "v"}"#;
    assert_heard(&Place {
        around: &str::to_owned,
        tables: &[keys::EXPORT],
        base: &[("processDefinition", HEAD), ("taskDefinitionList", TASKS)],
        read: &[
            ("processDefinition", other),
            ("workflowDefinition", other),
            ("processTaskRelationList", relations),
            ("workflowTaskRelationList", relations),
            ("taskDefinitionList", "[]"),
            ("schedule", SCHEDULE),
        ],
        aliases: &[("workflowDefinition", "processDefinition")],
    });
}

#[test]
fn the_workflow_of_newer_versions_is_read() {
    let text = format!(r#"{{"workflowDefinition": {HEAD}, "taskDefinitionList": {TASKS}}}"#);
    let made = import_text(System::DolphinScheduler, "d.json", &text);
    assert_eq!(made.definition.groups[0].code.as_str(), "w");
}

#[test]
fn keys_of_a_workflow_its_relations_and_schedule() {
    assert_heard(&Place {
        around: &|map| {
            format!(
                r#"[{{"processDefinition": {map}, "taskDefinitionList": {TASKS}, "schedule": {SCHEDULE}}},
                    {{"processDefinition": {{"name": "x", "code": 7}}, "taskDefinitionList": {TASKS}}}]"#
            )
        },
        tables: &[keys::WORKFLOW],
        base: &[("name", "w")],
        read: &[
            ("name", "v"),
            ("code", "7"),
            ("globalParams", r#"[{"prop": "x", "value": "1"}]"#),
            ("globalParamList", r#"[{"prop": "x", "value": "1"}]"#),
            ("timeout", "60"),
            ("executionType", "SERIAL_WAIT"),
        ],
        aliases: &[],
    });
    assert_heard(&Place {
        around: &|map| {
            format!(
                r#"{{"processDefinition": {HEAD}, "taskDefinitionList": {TASKS}, "processTaskRelationList": [{map}]}}"#
            )
        },
        tables: &[keys::RELATION],
        base: &[("preTaskCode", "1"), ("postTaskCode", "2")],
        read: &[("preTaskCode", "0"), ("postTaskCode", "3")],
        aliases: &[],
    });
    assert_heard(&Place {
        around: &|map| {
            format!(
                r#"{{"processDefinition": {HEAD}, "taskDefinitionList": {TASKS}, "schedule": {map}}}"#
            )
        },
        tables: &[keys::SCHEDULE],
        base: &[("crontab", "\"0 0 2 * * ? *\""), ("releaseState", "ONLINE")],
        read: &[
            ("crontab", "\"0 0 3 * * ? *\""),
            ("startTime", "\"2024-01-01 00:00:00\""),
            ("endTime", "1704067200000"),
            ("timezoneId", "UTC"),
            ("releaseState", "OFFLINE"),
            ("failureStrategy", "END"),
        ],
        aliases: &[],
    });
    assert_heard(&Place {
        around: &|map| {
            format!(
                r#"{{"processDefinition": {{"name": "w", "globalParams": [{map}]}}, "taskDefinitionList": {TASKS}}}"#
            )
        },
        tables: &[keys::PARAM],
        base: &[("prop", "x"), ("value", "1")],
        read: &[("prop", "y"), ("value", "2"), ("direct", "OUT")],
        aliases: &[],
    });
}

/// One task, and another without effect.
fn around_task(map: &str) -> String {
    format!(
        r#"[{{"processDefinition": {HEAD}, "taskDefinitionList": [{map}]}},
            {{"processDefinition": {{"code": 8, "name": "other"}}, "taskDefinitionList": {TASKS}}}]"#
    )
}

#[test]
fn keys_of_a_task() {
    assert_heard(&Place {
        around: &around_task,
        tables: &[keys::TASK],
        base: &[
            ("code", "5"),
            ("name", "t"),
            ("taskType", "SHELL"),
            ("taskParams", r#"{"rawScript": "echo"}"#),
            ("failRetryTimes", "1"),
            ("timeoutFlag", "OPEN"),
            ("timeout", "9"),
        ],
        read: &[
            ("code", "\"\""),
            ("name", "s"),
            ("taskType", "PYTHON"),
            ("taskParams", r#"{"rawScript": "echo b"}"#),
            ("flag", "NO"),
            ("taskPriority", "HIGH"),
            ("failRetryTimes", "2"),
            ("failRetryInterval", "3"),
            ("timeoutFlag", "CLOSE"),
            ("timeoutNotifyStrategy", "FAILED"),
            ("timeout", "8"),
            ("delayTime", "4"),
            ("workerGroup", "etl"),
        ],
        aliases: &[],
    });
}

/// Keys that any type of task may have.
const ANY: &[Sample<'_>] = &[
    ("localParams", r#"[{"prop": "out", "direct": "OUT", "value": ""}]"#),
    ("waitStartTimeout", r#"{"enable": true, "interval": 5}"#),
];
const FILES: Sample<'_> = ("resourceList", r#"[{"id": 7}]"#);

/// A type of task: the keys that it needs, and values for those that it reads.
struct TaskType<'a> {
    name: &'a str,
    table: &'a [KnownKey],
    base: &'a [Sample<'a>],
    read: &'a [Sample<'a>],
}

fn assert_task_heard(task: &TaskType<'_>) {
    let branches: &[KnownKey] =
        if task.name == "DEPENDENT" || task.name == "CONDITIONS" { &[] } else { keys::NO_BRANCHES };
    let read = [task.read, ANY].concat();
    assert_heard(&Place {
        around: &|map| {
            let prior = r#"{"code": 4, "name": "p", "taskType": "SHELL", "taskParams": {"rawScript": "echo"}}"#;
            let task = format!(
                r#"{prior}, {{"code": 5, "name": "t", "taskType": "{}", "taskParams": {map}}}"#,
                task.name
            );
            let relation = r#""processTaskRelationList": [{"preTaskCode": 4, "postTaskCode": 5}]"#;
            around_task(&task).replacen(
                "\"taskDefinitionList\"",
                &format!("{relation}, \"taskDefinitionList\""),
                1,
            )
        },
        tables: &[task.table, keys::ANY_TASK, branches],
        base: task.base,
        read: &read,
        aliases: &[],
    });
}

#[test]
fn keys_of_scripts_and_sql() {
    for name in ["SHELL", "PYTHON"] {
        assert_task_heard(&TaskType {
            name,
            table: keys::SCRIPT,
            base: &[("rawScript", "echo")],
            read: &[("rawScript", "echo b"), FILES],
        });
    }
    assert_task_heard(&TaskType {
        name: "SQL",
        table: keys::SQL,
        base: &[("type", "MYSQL"), ("datasource", "3"), ("sql", "\"SELECT 1\"")],
        read: &[
            ("type", "POSTGRESQL"),
            ("datasource", "4"),
            ("sql", "\"SELECT 2\""),
            ("preStatements", "[\"DELETE FROM t\"]"),
            ("postStatements", "[\"DELETE FROM t\"]"),
            ("sendEmail", "true"),
            ("receivers", "a@bank.example"),
            FILES,
        ],
    });
    assert_task_heard(&TaskType {
        name: "PROCEDURE",
        table: keys::PROCEDURE,
        base: &[("type", "MYSQL"), ("datasource", "3"), ("method", "\"call p(1)\"")],
        read: &[("type", "POSTGRESQL"), ("datasource", "4"), ("method", "\"call q(1)\""), FILES],
    });
}

#[test]
fn keys_of_calls_and_sub_workflows() {
    let param = r#"[{"prop": "x", "value": "1"}]"#;
    let url = ("url", "\"http://core.bank.example/a\"");
    let read: &[Sample<'_>] = &[
        ("url", "\"http://core.bank.example/b\""),
        ("httpMethod", "PUT"),
        ("httpRequestMethod", "PUT"),
        ("httpParams", param),
        ("httpRequestParams", param),
        ("httpBody", "\"{a: 1}\""),
        ("httpRequestBody", "\"{a: 1}\""),
        ("httpCheckCondition", "BODY_CONTAINS"),
        ("condition", "\"204\""),
        ("password", "x"),
        FILES,
    ];
    let base: &[Sample<'_>] = &[url, ("httpCheckCondition", "STATUS_CODE_CUSTOM")];
    assert_task_heard(&TaskType { name: "HTTP", table: keys::HTTP, base, read });
    for other in ["processDefinitionCode", "workflowDefinitionCode"] {
        let base: &[Sample<'_>] = &[(other, "8")];
        let samples = ["processDefinitionCode", "workflowDefinitionCode", "processDefinitionId"];
        let first = samples.iter().position(|name| *name == other).unwrap_or_default();
        // An older key comes before a newer one; only the keys up to it are read.
        let table: Vec<KnownKey> = keys::SUB_WORKFLOW
            .iter()
            .filter(|known| {
                samples.iter().position(|n| *n == known.name).is_none_or(|at| at <= first)
            })
            .copied()
            .collect();
        let read: Vec<Sample<'_>> =
            samples[..=first].iter().map(|name| (*name, "7")).chain([FILES]).collect();
        assert_task_heard(&TaskType { name: "SUB_PROCESS", table: &table, base, read: &read });
    }
}

const JAR: Sample<'_> = ("mainJar", r#"{"id": 1, "resourceName": "/jobs/close.jar"}"#);

/// Values for the keys of Spark, Flink and MapReduce programs.
const PROGRAM: &[Sample<'_>] = &[
    ("programType", "PYTHON"),
    ("mainClass", "com.bank.Other"),
    ("mainJar", r#"{"resourceName": "other.jar"}"#),
    ("mainArgs", "\"--day ${day}\""),
    ("others", "\"--conf a=b\""),
    ("appName", "close"),
    ("yarnQueue", "night"),
    ("queue", "night"),
    FILES,
];

#[test]
fn keys_of_programs() {
    let base: &[Sample<'_>] =
        &[("programType", "JAVA"), ("mainClass", "com.bank.Close"), JAR, ("deployMode", "cluster")];
    let spark: &[Sample<'_>] = &[
        ("deployMode", "client"),
        ("master", "\"spark://host:7077\""),
        ("driverCores", "3"),
        ("driverMemory", "3G"),
        ("numExecutors", "3"),
        ("executorCores", "3"),
        ("executorMemory", "3G"),
        ("rawScript", "\"SELECT 1\""),
        ("sqlExecutionType", "FILE"),
        ("namespace", "prod"),
    ];
    let flink: &[Sample<'_>] = &[
        ("deployMode", "local"),
        ("flinkVersion", "\">=1.12\""),
        ("slot", "3"),
        ("taskManager", "3"),
        ("jobManagerMemory", "3G"),
        ("taskManagerMemory", "3G"),
        ("parallelism", "3"),
        ("initScript", "\"SET a=b\""),
        ("rawScript", "\"SELECT 1\""),
    ];
    for (name, table, own) in
        [("SPARK", keys::SPARK, spark), ("FLINK", keys::FLINK, flink), ("MR", &[][..], &[][..])]
    {
        let table = [table, keys::PROGRAM].concat();
        let base: Vec<Sample<'_>> = base
            .iter()
            .filter(|(key, _)| table.iter().any(|known| known.name == *key))
            .copied()
            .collect();
        let read = [own, PROGRAM].concat();
        assert_task_heard(&TaskType { name, table: &table, base: &base, read: &read });
    }
}

#[test]
fn keys_of_hive_sqoop_and_datax() {
    let sql = ("hiveSqlScript", "\"SELECT 1\"");
    assert_task_heard(&TaskType {
        name: "HIVECLI",
        table: keys::HIVECLI,
        base: &[sql],
        read: &[
            ("hiveCliTaskExecutionType", "FILE"),
            ("hiveSqlScript", "\"SELECT 2\""),
            ("hiveCliOptions", "\"--silent\""),
            FILES,
        ],
    });
    assert_task_heard(&TaskType {
        name: "SQOOP",
        table: keys::SQOOP,
        base: &[("jobType", "CUSTOM"), ("customShell", "\"sqoop list\"")],
        read: &[("jobType", "TEMPLATE"), ("customShell", "\"sqoop eval\""), FILES],
    });
    assert_task_heard(&TaskType {
        name: "DATAX",
        table: keys::DATAX,
        base: &[("customConfig", "1"), ("json", "\"{\\\"job\\\": 1}\"")],
        read: &[
            ("customConfig", "0"),
            ("json", "\"{\\\"password\\\": 1}\""),
            ("xms", "2"),
            ("xmx", "2"),
            FILES,
        ],
    });
}

const ITEM: &str = r#"{"definitionCode": 8, "depTaskCode": 0, "dateValue": "today"}"#;

#[test]
fn keys_of_items_that_are_waited_for() {
    let dependence = |map: &str| {
        format!(r#"{{"dependence": {{"dependTaskList": [{{"dependItemList": [{map}]}}]}}}}"#)
    };
    let around = |params: &str| {
        around_task(&format!(
            r#"{{"code": 5, "name": "t", "taskType": "DEPENDENT", "taskParams": {params}}}"#
        ))
    };
    assert_heard(&Place {
        around: &|map| around(&dependence(map)),
        tables: &[keys::DEPEND_ITEM],
        base: &[
            ("definitionCode", "8"),
            ("depTaskCode", "1"),
            ("dateValue", "today"),
            ("status", "SUCCESS"),
        ],
        read: &[
            ("definitionCode", "7"),
            ("definitionId", "7"),
            ("depTaskCode", "2"),
            ("depTasks", "b"),
            ("dateValue", "last1Days"),
        ],
        aliases: &[("definitionId", "definitionCode"), ("depTasks", "depTaskCode")],
    });
    assert_heard(&Place {
        around: &|map| {
            let task = format!(
                r#"{{"code": 5, "name": "t", "taskType": "CONDITIONS", "taskParams": {}}}"#,
                dependence(map)
            );
            let prior = |code| {
                format!(
                    r#"{{"code": {code}, "name": "p{code}", "taskType": "SHELL", "taskParams": {{"rawScript": "echo"}}}}"#
                )
            };
            let relation = r#""processTaskRelationList": [{"preTaskCode": 4, "postTaskCode": 5}]"#;
            around_task(&format!("{}, {task}", prior(4))).replacen(
                "\"taskDefinitionList\"",
                &format!("{relation}, \"taskDefinitionList\""),
                1,
            )
        },
        tables: &[keys::CONDITION_ITEM],
        base: &[("depTaskCode", "4"), ("status", "SUCCESS")],
        read: &[("depTaskCode", "3"), ("depTasks", "3"), ("status", "FAILURE")],
        aliases: &[("depTasks", "depTaskCode")],
    });
}

#[test]
fn keys_of_waits_and_conditions() {
    let around = |params: &str| {
        around_task(&format!(
            r#"{{"code": 5, "name": "t", "taskType": "DEPENDENT", "taskParams": {params}}}"#
        ))
    };
    let two = format!("[{ITEM}, {}]", ITEM.replace("today", "last1Days"));
    assert_heard(&Place {
        around: &|map| around(&format!(r#"{{"dependence": {{"dependTaskList": [{map}]}}}}"#)),
        tables: &[keys::DEPEND_LIST],
        base: &[("dependItemList", &two)],
        read: &[("relation", "OR"), ("dependItemList", &format!("[{ITEM}]"))],
        aliases: &[],
    });
    let lists = format!(r#"[{{"dependItemList": [{ITEM}]}}, {{"dependItemList": {two}}}]"#);
    assert_heard(&Place {
        around: &|map| around(&format!(r#"{{"dependence": {map}}}"#)),
        tables: &[keys::DEPENDENCE],
        base: &[("dependTaskList", &lists), ("failurePolicy", "DEPENDENT_FAILURE_WAITING")],
        read: &[
            ("relation", "OR"),
            ("dependTaskList", "[]"),
            ("failurePolicy", "DEPENDENT_FAILURE_FAILURE"),
            ("failureWaitingTime", "30"),
        ],
        aliases: &[],
    });
    let wait = format!(r#"{{"dependTaskList": {lists}}}"#);
    assert_task_heard(&TaskType {
        name: "DEPENDENT",
        table: keys::DEPENDENT,
        base: &[("dependence", &wait)],
        read: &[("dependence", "{}"), FILES],
    });
    let asks = |status: &str| {
        format!(
            r#"{{"dependTaskList": [{{"dependItemList": [{{"depTaskCode": 4, "status": "{status}"}}]}}]}}"#
        )
    };
    assert_task_heard(&TaskType {
        name: "CONDITIONS",
        table: keys::CONDITIONS,
        base: &[("dependence", &asks("SUCCESS"))],
        read: &[
            ("dependence", &asks("FAILURE")),
            ("conditionResult", r#"{"successNode": [], "failedNode": [77]}"#),
            FILES,
        ],
    });
}

#[test]
fn keys_of_the_oldest_exports() {
    let task = r#"{"name": "a", "type": "SHELL", "params": {"rawScript": "echo"}}"#;
    let body = format!(r#"{{"tasks": [{task}]}}"#);
    assert_heard(&Place {
        around: &str::to_owned,
        tables: &[keys::OLD_EXPORT],
        base: &[
            ("name", "w"),
            ("processDefinitionJson", &body),
            ("scheduleCrontab", "\"0 0 2 * * ?\""),
        ],
        read: &[
            ("processDefinitionName", "v"),
            ("name", "v"),
            ("processDefinitionJson", &body.replace("echo", "echo b")),
            ("scheduleCrontab", "\"0 0 3 * * ?\""),
            ("scheduleStartTime", "\"2024-01-01 00:00:00\""),
            ("scheduleEndTime", "1704067200000"),
            ("scheduleReleaseState", "ONLINE"),
            ("scheduleFailureStrategy", "END"),
        ],
        aliases: &[],
    });
    let around = |body: &str| format!(r#"{{"name": "w", "processDefinitionJson": {body}}}"#);
    assert_heard(&Place {
        around: &around,
        tables: &[keys::OLD_WORKFLOW],
        base: &[("tasks", &format!("[{task}]"))],
        read: &[
            ("globalParams", r#"[{"prop": "x", "value": "1"}]"#),
            ("tasks", &format!("[{}]", task.replace("echo", "echo b"))),
            ("timeout", "60"),
        ],
        aliases: &[],
    });
}

#[test]
fn keys_of_the_oldest_tasks() {
    let task = r#"{"name": "a", "type": "SHELL", "params": {"rawScript": "echo"}}"#;
    let around = |body: &str| format!(r#"{{"name": "w", "processDefinitionJson": {body}}}"#);
    assert_heard(&Place {
        around: &|map| around(&format!(r#"{{"tasks": [{task}, {map}]}}"#)),
        tables: &[keys::OLD_TASK],
        base: &[
            ("name", "t"),
            ("type", "SHELL"),
            ("params", r#"{"rawScript": "echo"}"#),
            ("maxRetryTimes", "1"),
        ],
        read: &[
            ("name", "s"),
            ("type", "PYTHON"),
            ("params", r#"{"rawScript": "echo b"}"#),
            ("runFlag", "FORBIDDEN"),
            ("taskInstancePriority", "LOW"),
            ("maxRetryTimes", "2"),
            ("retryInterval", "3"),
            ("timeout", r#"{"enable": true, "interval": 5, "strategy": "FAILED"}"#),
            ("delayTime", "4"),
            ("workerGroup", "etl"),
            ("preTasks", "[a]"),
            ("dependence", r#"{"dependTaskList": [{"dependItemList": [{"depTasks": "x"}]}]}"#),
            ("conditionResult", r#"{"failedNode": [a]}"#),
            ("switchResult", r#"{"nextNode": a}"#),
            ("waitStartTimeout", r#"{"enable": true, "interval": 5}"#),
        ],
        aliases: &[],
    });
}

#[test]
fn a_delay_is_a_job_that_sleeps_before_it() {
    let text = r#"{"processDefinition": {"name": "w"}, "taskDefinitionList": [
        {"code": 1, "name": "a", "taskType": "SHELL", "taskParams": {"rawScript": "echo"}},
        {"code": 2, "name": "b", "taskType": "SHELL", "delayTime": 7, "taskParams": {"rawScript": "echo"}}],
        "processTaskRelationList": [{"preTaskCode": 1, "postTaskCode": 2}]}"#;
    let made = import_text(System::DolphinScheduler, "d.json", text);
    let edges: Vec<String> = made
        .definition
        .dependencies
        .iter()
        .map(|d| format!("{}>{}", d.depends_on, d.job_code))
        .collect();
    assert_eq!(edges, ["a>b_delay", "b_delay>b"]);
    assert_eq!(script(&made, "b_delay"), "sleep 420\n");
    assert_eq!(job(&made, "b_delay").timeout_sec, 480);
    assert!(has_note(&made, "b", "delayTime: 7 minutes"), "{:?}", made.notes);
    assert_eq!(made.items.len(), 2, "the delay is of the task: {:?}", made.items);
}
