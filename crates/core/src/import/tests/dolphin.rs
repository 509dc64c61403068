//! DolphinScheduler: programs of the Hadoop ecosystem keep their command lines.

use super::{has_note, import_text, job, jobs_that_run, script};
use crate::import::{Imported, Level, System};

fn task(kind: &str, params: &str) -> Imported {
    let text = format!(
        r#"{{"processDefinition": {{"name": "w", "globalParams": [{{"prop": "day", "value": "$[yyyyMMdd]"}}]}},
            "taskDefinitionList": [{{"code": 1, "name": "t", "taskType": "{kind}", "taskParams": {params}}}]}}"#
    );
    import_text(System::DolphinScheduler, "d.json", &text)
}

#[test]
fn spark_and_map_reduce_start_their_jar() {
    let made = task(
        "SPARK",
        r#"{"programType": "SCALA", "mainClass": "com.bank.Close", "mainJar": {"resourceName": "/jobs/close.jar"},
            "deployMode": "cluster", "driverCores": 1, "driverMemory": "512M", "numExecutors": 2, "executorCores": 2,
            "executorMemory": "2G", "appName": "month end", "yarnQueue": "night", "others": "--conf a=b",
            "mainArgs": "--day ${day}", "resourceList": [], "rawScript": "", "sqlExecutionType": "SCRIPT"}"#,
    );
    let wanted = "set -e\nday=\"$PROCESSION_PARAM_DAY\"\n\"${SPARK_HOME:?is not set}\"/bin/spark-submit --master yarn \
                  --deploy-mode cluster --class com.bank.Close --conf spark.driver.cores=1 --conf spark.driver.memory=512M \
                  --conf spark.executor.instances=2 --conf spark.executor.cores=2 --conf spark.executor.memory=2G --name \
                  'month end' --queue night --conf a=b \"${PROCESSION_PARAM_RESOURCE_DIR:?is not set: the folder of the files \
                  of the resource centre}\"/'jobs/close.jar' --day ${day}\n";
    assert_eq!(script(&made, "t"), wanted);
    let names: Vec<&str> = job(&made, "t").params.iter().map(|p| p.name.as_str()).collect();
    assert_eq!(names, ["day", "resource_dir"]);
    assert!(made.definition.groups[0].params.iter().any(|p| p.name == "resource_dir"));
    assert!(has_note(&made, "t", "needs SPARK_HOME"), "{:?}", made.notes);
    assert_eq!(made.count(Level::LeftOut), 0, "{:?}", made.notes);
    let made = task(
        "MR",
        r#"{"programType": "JAVA", "mainClass": "Count", "mainJar": {"resourceName": "c.jar"}, "mainArgs": "/in /out"}"#,
    );
    assert!(
        script(&made, "t").contains("hadoop jar \"${PROCESSION_PARAM_RESOURCE_DIR:?"),
        "{}",
        made.text
    );
    assert!(script(&made, "t").ends_with("/'c.jar' Count /in /out\n"), "{}", made.text);
}

#[test]
fn texts_stand_in_files_of_the_script() {
    let made = task(
        "HIVECLI",
        r#"{"hiveSqlScript": "SELECT '${day}', `a$` FROM t;", "hiveCliOptions": "-S"}"#,
    );
    let wanted = "set -e\nday=\"$PROCESSION_PARAM_DAY\"\ncat > task.sql <<END_OF_TEXT\nSELECT '${day}', \\`a\\$\\` FROM t;\n\
                  END_OF_TEXT\nhive -S -f task.sql\n";
    assert_eq!(script(&made, "t"), wanted);
    let made =
        task("SPARK", r#"{"programType": "SQL", "rawScript": "SELECT 1", "deployMode": "local"}"#);
    assert!(
        script(&made, "t").ends_with("/bin/spark-sql --master local -f task.sql\n"),
        "{}",
        made.text
    );
    let made = task(
        "DATAX",
        r#"{"customConfig": 1, "json": "{\"password\": \"x\"}", "xms": 2, "xmx": 4}"#,
    );
    assert!(script(&made, "t").contains("--jvm=\"-Xms2G -Xmx4G\" task.json\n"), "{}", made.text);
    assert!(has_note(&made, "t", "seems to hold a password"), "{:?}", made.notes);
    let made = task(
        "SQOOP",
        r#"{"jobType": "CUSTOM", "customShell": "sqoop import --where \"d = ${day}\""}"#,
    );
    assert!(script(&made, "t").contains("sqoop import --where \"d = "), "{}", made.text);
    let made = task(
        "FLINK",
        r#"{"programType": "SQL", "deployMode": "local", "parallelism": 2, "initScript": "SET x=1;", "rawScript": "SELECT 1"}"#,
    );
    let text = script(&made, "t");
    let init = "cat > init.sql <<END_OF_TEXT\nset execution.target=local;\nset parallelism.default=2;\nSET x=1;\nEND_OF_TEXT\n";
    assert!(
        text.contains(init) && text.ends_with("/bin/sql-client.sh -i init.sql -f task.sql\n"),
        "{text}"
    );
}

#[test]
fn what_is_made_of_data_sources_fails_and_says_so() {
    for (kind, params) in [
        ("SQOOP", r#"{"jobType": "TEMPLATE", "sourceType": "MYSQL"}"#),
        ("DATAX", r#"{"customConfig": 0, "dsType": "MYSQL", "sql": "SELECT 1"}"#),
        ("SPARK", r#"{"programType": "JAVA", "mainClass": "x"}"#),
        (
            "SPARK",
            r#"{"programType": "SQL", "rawScript": "SELECT 1", "namespace": "{\"name\": \"prod\"}"}"#,
        ),
        ("HIVECLI", r#"{"hiveCliTaskExecutionType": "FILE", "resourceList": []}"#),
        ("FLINK_STREAM", "{}"),
        ("K8S", "{}"),
    ] {
        let made = task(kind, params);
        assert!(script(&made, "t").ends_with("exit 1\n"), "{kind} {params}");
        assert_eq!(made.count(Level::LeftOut), 1, "{kind} {params}: {:?}", made.notes);
    }
}

/// A workflow that waits for `period` of another one with the schedule `cron`.
fn waits_for(period: &str, cron: &str) -> Imported {
    let text = format!(
        r#"[{{"processDefinition": {{"code": 1, "name": "ledger"}},
             "taskDefinitionList": [{{"code": 11, "name": "close", "taskType": "SHELL", "taskParams": {{"rawScript": "true"}}}}],
             "schedule": {{"timezoneId": "UTC", "crontab": "{cron}", "releaseState": "ONLINE"}}}},
            {{"processDefinition": {{"code": 2, "name": "report"}},
             "taskDefinitionList": [{{"code": 21, "name": "wait", "taskType": "DEPENDENT", "taskParams": {{"dependence":
               {{"dependTaskList": [{{"dependItemList": [
                 {{"definitionCode": 1, "depTaskCode": 0, "cycle": "day", "dateValue": "{period}"}}]}}]}}}}}}]}}]"#
    );
    import_text(System::DolphinScheduler, "d.json", &text)
}

#[test]
fn each_period_of_a_dependent_task_is_a_batch_expression() {
    for (period, batches) in [
        ("today", "day(0)"),
        ("last1Days", "day(-1)"),
        ("last3Days", "day(-1) day(-2) day(-3)"),
        ("thisWeek", "week_to_date"),
        ("lastWeek", "days_of_week(-1)"),
        ("lastMonday", "monday(-1)"),
        ("lastTuesday", "tuesday(-1)"),
        ("lastWednesday", "wednesday(-1)"),
        ("lastThursday", "thursday(-1)"),
        ("lastFriday", "friday(-1)"),
        ("lastSaturday", "saturday(-1)"),
        ("lastSunday", "sunday(-1)"),
        ("thisMonth", "month_to_date"),
        ("thisMonthBegin", "first_day_of_month(0)"),
        ("lastMonth", "days_of_month(-1)"),
        ("lastMonthBegin", "first_day_of_month(-1)"),
        ("lastMonthEnd", "last_day_of_month(-1)"),
    ] {
        let made = waits_for(period, "0 0 1 * * ?");
        let found: Vec<String> =
            made.definition.externals.iter().map(|external| external.batch.to_string()).collect();
        assert_eq!(found.join(" "), batches, "{period}");
        assert!(made.definition.externals.iter().all(|e| e.group.as_str() == "ledger"));
        assert!(!made.notes.iter().any(|note| note.message.en.contains("has no such batches")));
    }
}

#[test]
fn a_period_without_a_batch_number_is_a_job_that_fails() {
    for period in [
        "currentHour",
        "last1Hour",
        "last2Hours",
        "last24Hours",
        "last0Days",
        "last32Days",
        "lastday",
        "lastMonths",
        "",
    ] {
        let made = waits_for(period, "0 0 1 * * ?");
        assert_eq!(made.definition.externals.len(), 0, "{period}");
        assert!(script(&made, "wait").contains("exit 1"), "{period}: {}", made.text);
        assert!(has_note(&made, "wait", "for which there is no batch number"), "{period}");
    }
}

#[test]
fn days_of_a_workflow_that_is_not_numbered_by_day_are_noted() {
    let made = waits_for("lastMonthEnd", "0 0 * * * ?");
    let said = "batch last_day_of_month(-1) gives numbers of days, and schedule ledger numbers group ledger by \
                time(%Y%m%d-%H%M), as in 20240731-1234; it has no such batches";
    assert!(made.notes.iter().any(|note| note.message.en.contains(said)), "{:?}", made.notes);
}

/// A workflow of shell tasks `name: [parents]`, and CONDITIONS tasks `name: ([parents], relation, success, failure)`.
fn branches(
    shells: &[(&str, &[&str])],
    conditions: &[(&str, &[&str], &str, &str, &str)],
) -> Imported {
    let mut names: Vec<&str> = shells.iter().map(|(name, _)| *name).collect();
    names.extend(conditions.iter().map(|one| one.0));
    let code = |name: &str| 1 + names.iter().position(|known| *known == name).unwrap_or_default();
    let (mut tasks, mut relations) = (Vec::new(), Vec::new());
    let mut relate = |name: &str, parents: &[&str]| {
        for parent in parents {
            relations.push(format!(
                r#"{{"preTaskCode": {}, "postTaskCode": {}}}"#,
                code(parent),
                code(name)
            ));
        }
    };
    for (name, parents) in shells {
        relate(name, parents);
        tasks.push(format!(
            r#"{{"code": {}, "name": "{name}", "taskType": "SHELL", "taskParams": {{"rawScript": "x"}}}}"#,
            code(name)
        ));
    }
    for (name, parents, relation, success, failure) in conditions {
        relate(name, parents);
        relate(success, &[name]);
        relate(failure, &[name]);
        let items: Vec<String> = parents
            .iter()
            .map(|parent| format!(r#"{{"depTaskCode": {}, "status": "SUCCESS"}}"#, code(parent)))
            .collect();
        tasks.push(format!(
            r#"{{"code": {}, "name": "{name}", "taskType": "CONDITIONS", "taskParams": {{"dependence": {{"relation": "AND",
                "dependTaskList": [{{"relation": "{relation}", "dependItemList": [{}]}}]}},
                "conditionResult": {{"successNode": [{}], "failedNode": [{}]}}}}}}"#,
            code(name), items.join(","), code(success), code(failure)
        ));
    }
    let text = format!(
        r#"{{"processDefinition": {{"name": "w"}}, "processTaskRelationList": [{}], "taskDefinitionList": [{}]}}"#,
        relations.join(","),
        tasks.join(",")
    );
    import_text(System::DolphinScheduler, "d.json", &text)
}

#[test]
fn a_branch_for_failures_runs_after_tasks_that_ran() {
    let made = branches(
        &[("x", &[]), ("a", &["x"]), ("good", &[]), ("bad", &[]), ("join", &["good", "bad"])],
        &[("c", &["a"], "AND", "good", "bad")],
    );
    assert_eq!(jobs_that_run(&made, &[]), ["a", "good", "join", "x"], "{}", made.text);
    assert_eq!(jobs_that_run(&made, &["a"]), ["a", "bad", "join", "x"]);
    // There: a is not submitted, so the condition waits for it, and no branch runs.
    assert_eq!(jobs_that_run(&made, &["x"]), ["x"]);
}

#[test]
fn a_condition_on_several_tasks_is_false_once_all_have_run() {
    let shells: &[(&str, &[&str])] =
        &[("x", &[]), ("a", &["x"]), ("b", &[]), ("good", &[]), ("bad", &[])];
    let made = branches(shells, &[("c", &["a", "b"], "AND", "good", "bad")]);
    assert_eq!(jobs_that_run(&made, &[]), ["a", "b", "good", "x"], "{}", made.text);
    for failing in [&["a"][..], &["b"], &["a", "b"]] {
        assert_eq!(jobs_that_run(&made, failing), ["a", "b", "bad", "x"], "{failing:?}");
    }
    for failing in [&["x"][..], &["x", "b"]] {
        assert_eq!(jobs_that_run(&made, failing), ["b", "x"], "{failing:?}");
    }
    let made = branches(shells, &[("c", &["a", "b"], "OR", "good", "bad")]);
    for failing in [&[][..], &["a"], &["b"]] {
        assert_eq!(jobs_that_run(&made, failing), ["a", "b", "good", "x"], "{failing:?}");
    }
    assert_eq!(jobs_that_run(&made, &["a", "b"]), ["a", "b", "bad", "x"]);
    assert_eq!(jobs_that_run(&made, &["x", "b"]), ["b", "x"]);
}

#[test]
fn a_condition_behind_a_branch_is_left_out_with_it() {
    let made = branches(
        &[("a", &[]), ("good", &[]), ("bad", &[]), ("g2", &[]), ("b2", &[])],
        &[("c", &["a"], "AND", "good", "bad"), ("d", &["good"], "AND", "g2", "b2")],
    );
    assert_eq!(jobs_that_run(&made, &[]), ["a", "g2", "good"], "{}", made.text);
    assert_eq!(jobs_that_run(&made, &["good"]), ["a", "b2", "good"]);
    assert_eq!(jobs_that_run(&made, &["a"]), ["a", "bad"]);
    let made = branches(
        &[("a", &[]), ("b", &[]), ("good", &[]), ("bad", &[]), ("g2", &[]), ("b2", &[])],
        &[("c", &["a"], "AND", "good", "bad"), ("d", &["good", "b"], "AND", "g2", "b2")],
    );
    assert!(has_note(&made, "d", "left out by an earlier condition"), "{:?}", made.notes);
}
