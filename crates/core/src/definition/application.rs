//! Reads and checks the application of a job: `application: {host, file, …}`.

use crate::definition::fault::{FaultReport, Located};
use crate::definition::fields::Fields;
use crate::definition::job::JobContext;
use crate::definition::keys::{APPLICATION, PARALLEL_MAX, POLL_MAX};
use crate::definition::near::did_you_mean;
use crate::domain::job::application::ApplicationCall;
use crate::domain::job::application::spark::{self, SparkOptions, is_memory_size, is_python};
use crate::domain::job::{JobDef, Param, Secrecy};
use crate::domain::params::http_call::names;
use crate::domain::params::{Reference, references};

/// Keys of `conf` of a FLINK job that Procession sets itself.
const FLINK_CONF: [&str; 1] = ["pipeline.name"];

/// `application: {host, file, main_class, args, conf, …}`.
pub(crate) fn read_application(fields: &mut Fields<'_>) -> Option<Located<ApplicationCall>> {
    let node = fields.take_node("application")?;
    let at = node.at.clone();
    let whose = format!("{}: application", fields.whose);
    let mut fields = Fields::open_fields(whose, node, APPLICATION, fields.report);
    let main_class = fields.take_word("main_class").map(|word| word.value.trim().to_owned());
    let args = fields.texts("args").unwrap_or_default();
    let conf = fields.named_texts("conf");
    let parallelism = fields.number("parallelism", 1..=PARALLEL_MAX).map(|p| p.value);
    let poll = fields.number("poll_sec", 1..=POLL_MAX);
    let spark = read_spark(&mut fields);
    let (host, file) = (fields.take_word("host"), fields.take_word("file"));
    let is_placed = host.is_some() || spark.master.is_some();
    let Some(file) = file.filter(|_| is_placed) else {
        let what = format!("{} without host or file", fields.whose);
        let fix = "write application: { host: NAME, file: /path/to.jar }; \
                   a SPARK job may name a master instead of the host";
        fields.report.fault(&at, what, fix);
        return None;
    };
    Some(Located::new(
        &at,
        ApplicationCall {
            host: host.map(|host| host.value),
            file: file.value.trim().to_owned(),
            main_class,
            args: args.into_iter().map(|arg| arg.value).collect(),
            conf: conf.into_iter().map(|(key, text)| (key.value, text.value)).collect(),
            parallelism,
            spark,
            poll_sec: poll.map_or(ApplicationCall::POLL_SEC, |p| p.value),
        },
    ))
}

/// The keys of SPARK jobs.
fn read_spark(fields: &mut Fields<'_>) -> SparkOptions {
    let texts = |fields: &mut Fields<'_>, key| {
        let found = fields.texts(key).unwrap_or_default();
        found.into_iter().map(|text| text.value.trim().to_owned()).collect()
    };
    let word = |fields: &mut Fields<'_>, key| {
        fields.take_word(key).map(|word| word.value.trim().to_owned())
    };
    let cores =
        |fields: &mut Fields<'_>, key| fields.number(key, 1..=PARALLEL_MAX).map(|n| n.value);
    SparkOptions {
        master: word(fields, "master"),
        spark_home: word(fields, "spark_home"),
        jars: texts(fields, "jars"),
        py_files: texts(fields, "py_files"),
        driver_memory: memory(fields, "driver_memory"),
        driver_cores: cores(fields, "driver_cores"),
        executor_memory: memory(fields, "executor_memory"),
        executor_cores: cores(fields, "executor_cores"),
        max_cores: cores(fields, "max_cores"),
        queue: word(fields, "queue"),
    }
}

fn memory(fields: &mut Fields<'_>, key: &str) -> Option<String> {
    let found = fields.take_word(key)?;
    let size = found.value.trim().to_owned();
    if !is_memory_size(&size) {
        let what = format!("{}: {key} {size} is no size of memory", fields.whose);
        fields.report.fault(&found.at, what, "write a whole number with its unit, as 512m or 4g");
    }
    Some(size)
}

/// Checks what the type of the job requires and refuses.
fn check_engine(
    whose: &str,
    call: &Located<ApplicationCall>,
    def: &JobDef,
    report: &mut FaultReport,
) {
    let mut fault = |what: &str, fix: &str| {
        report.fault(&call.at, format!("{whose}: application: {what}"), fix);
    };
    let app = &call.value;
    let is_spark = def.job_type.as_str() == "SPARK";
    let own_conf: &[&str] = if is_spark { &spark::OWN_CONF } else { &FLINK_CONF };
    for key in app.conf.keys().filter(|key| own_conf.contains(&key.as_str())) {
        let fix = match is_spark {
            true => "remove it; sizes, jars, queue and master have keys of their own",
            false => "remove it",
        };
        fault(&format!("conf {key} is set by Procession itself"), fix);
    }
    if !is_spark {
        if let Some(key) = app.spark.any_key() {
            fault(&format!("{key} belongs to SPARK jobs"), "remove it");
        }
        if app.host.is_none() {
            fault("without host", "name the host of the cluster");
        }
        if !app.file.starts_with('/') {
            let what = format!("file {} is not an absolute path", app.file);
            fault(&what, "write the whole path of the jar on the nodes that run the job");
        }
        return;
    }
    check_spark(app, &mut fault);
}

fn check_spark(app: &ApplicationCall, fault: &mut dyn FnMut(&str, &str)) {
    if app.parallelism.is_some() {
        fault("parallelism belongs to FLINK jobs", "write conf: { spark.default.parallelism: N }");
    }
    let files = [&app.file].into_iter().chain(&app.spark.jars).chain(&app.spark.py_files);
    for file in files.filter(|file| !file.starts_with('/') && !file.contains(":/")) {
        let what = format!("file {file} is neither an absolute path nor a URL");
        fault(&what, "write the whole path on the hosts of the cluster, or hdfs://…");
    }
    if app.spark.jars.iter().chain(&app.spark.py_files).any(|file| file.contains(',')) {
        fault("a file has a comma in its name", "write one item of the list for each file");
    }
    if is_python(&app.file) && app.main_class.is_some() {
        fault("main_class of a Python file", "remove it");
    }
    match (&app.host, &app.spark.master) {
        (Some(_), Some(_)) => fault("host and master", "keep one of the two"),
        (Some(_), None) => {
            if app.main_class.is_none() && !is_python(&app.file) {
                fault("without main_class", "name the main class; the master reads no manifest");
            }
            for (key, is_set) in [
                ("spark_home", app.spark.spark_home.is_some()),
                ("queue", app.spark.queue.is_some()),
            ] {
                if is_set {
                    fault(&format!("{key} with a host"), "remove it, or write master");
                }
            }
        }
        (None, _) => check_submit(app, fault),
    }
}

/// What `spark-submit` on the node needs.
fn check_submit(app: &ApplicationCall, fault: &mut dyn FnMut(&str, &str)) {
    let master = app.spark.master.as_deref().unwrap_or_default();
    let is_known = ["spark://", "k8s://"].iter().any(|scheme| master.starts_with(scheme))
        || ["local", "yarn"].contains(&master)
        || (master.starts_with("local[") && master.ends_with(']'));
    if !is_known {
        let fix = "write spark://host:port, yarn, k8s://https://host:port, local or local[N]";
        fault(&format!("master {master} is none that Spark knows"), fix);
    }
    match &app.spark.spark_home {
        None => fault("master without spark_home", "name the folder of Spark on the nodes"),
        Some(home) if !home.starts_with('/') => {
            fault(&format!("spark_home {home} is not an absolute path"), "write the whole path");
        }
        Some(_) => {}
    }
    if app.spark.queue.is_some() && master != "yarn" {
        fault("queue without YARN", "remove it; only master: yarn has queues");
    }
}

/// Checks that the host exists and that every argument can be filled.
pub(crate) fn check_application(
    whose: &str,
    call: &Located<ApplicationCall>,
    def: &JobDef,
    around: &JobContext<'_>,
    report: &mut FaultReport,
) {
    check_engine(whose, call, def, report);
    let known = || around.hosts.iter().map(|h| h.value.name.as_str());
    let host = call.value.host.as_deref().filter(|host| !known().any(|name| name == *host));
    if let Some(host) = host {
        let hint = did_you_mean(host, known());
        let what = format!("{whose}: host {host} is not defined");
        let fix = format!("{hint}define it under hosts; no other host is ever called");
        report.fault(&call.at, what, fix);
    }
    for arg in &call.value.args {
        match names(arg) {
            Ok(names) => {
                for name in names {
                    check_name(whose, name, call, def, report);
                }
            }
            Err(fault) => {
                let what = format!("{whose}: argument {arg:?} {fault}");
                report.fault(&call.at, what, "write {name} for a parameter of the job");
            }
        }
    }
}

fn check_name(
    whose: &str,
    name: &str,
    call: &Located<ApplicationCall>,
    def: &JobDef,
    report: &mut FaultReport,
) {
    let Some(param) = def.params.iter().find(|param| param.name == name) else {
        let what =
            format!("{whose}: an argument uses {{{name}}}, which is no parameter of the job");
        let hint = did_you_mean(name, def.params.iter().map(|p| p.name.as_str()));
        report.fault(&call.at, what, format!("{hint}add it to params"));
        return;
    };
    if is_secret(param) {
        let what = format!(
            "{whose}: parameter {name} is secret, and the cluster shows arguments to all its users"
        );
        report.fault(&call.at, what, "remove it, and let the application read the secret itself");
    }
}

fn is_secret(param: &Param) -> bool {
    let names = references(param).unwrap_or_default();
    param.secrecy == Secrecy::Secret || names.iter().any(|r| matches!(r, Reference::Secret(_)))
}

#[cfg(test)]
mod tests {
    use crate::definition::load_definition;
    use crate::domain::job::{BodyPart, JobKind};
    use std::path::Path;

    const KIND: JobKind = JobKind {
        name: "FLINK",
        needs: &[BodyPart::Application],
        may_have: &[BodyPart::Params],
        ..JobKind::PLAIN
    };
    const KINDS: &[JobKind] = &[KIND, JobKind { name: "SPARK", ..KIND }];

    fn faults(job_type: &str, application: &str) -> String {
        let text = format!(
            "groups: {{g: {{name: G}}}}\nhosts: {{flink: 'https://flink.bank.example'}}\nsecrets: {{pw: {{env: PW}}}}\n\
             jobs:\n  A: {{type: {job_type}, params: [{{name: day, value: x}}, {{name: pass, value: '${{secret.pw}}'}}], \
             application: {application}}}\n"
        );
        let read = |_: &Path| Ok(text.clone());
        match load_definition(Path::new("dag.yaml"), &read, KINDS) {
            Ok(_) => String::new(),
            Err(faults) => faults.to_string(),
        }
    }

    #[test]
    fn what_cannot_be_submitted_is_refused_with_its_place() {
        assert_eq!(faults("FLINK", "{host: flink, file: /a.jar, args: ['{day}']}"), "");
        for (application, said) in [
            (
                "{host: flnk, file: /a.jar}",
                "dag.yaml:5: job A: host flnk is not defined; did you mean flink?",
            ),
            ("{host: flink}", "application without host or file"),
            ("{host: flink, file: a.jar}", "file a.jar is not an absolute path"),
            (
                "{host: flink, file: /a.jar, args: ['{dey}']}",
                "{dey}, which is no parameter of the job",
            ),
            ("{host: flink, file: /a.jar, args: ['{day']}", "has a '{' or '}'"),
            ("{host: flink, file: /a.jar, args: ['{pass}']}", "parameter pass is secret"),
            (
                "{host: flink, file: /a.jar, conf: {pipeline.name: x}}",
                "pipeline.name is set by Procession itself",
            ),
            ("{host: flink, file: /a.jar, parallelism: 0}", "parallelism"),
            ("{host: flink, file: /a.jar, jars: [/b.jar]}", "jars belongs to SPARK jobs"),
            ("{master: yarn, spark_home: /s, file: /a.jar}", "master belongs to SPARK jobs"),
        ] {
            let found = faults("FLINK", application);
            assert!(found.contains(said), "{application}: {found}");
        }
    }

    #[test]
    fn a_spark_job_runs_on_a_host_or_with_a_master() {
        for good in [
            "{host: flink, file: /a.jar, main_class: M, jars: [/b.jar], executor_memory: 2g}",
            "{host: flink, file: 'hdfs://n/a.py', py_files: [/b.py], max_cores: 4}",
            "{master: 'local[2]', spark_home: /opt/spark, file: /a.jar}",
            "{master: yarn, spark_home: /opt/spark, file: /a.py, queue: night}",
        ] {
            assert_eq!(faults("SPARK", good), "", "{good}");
        }
        for (application, said) in [
            ("{file: /a.py}", "without host or file"),
            ("{host: flink, file: /a.jar}", "without main_class"),
            ("{host: flink, file: a.py}", "neither an absolute path nor a URL"),
            ("{host: flink, file: /a.py, main_class: M}", "main_class of a Python file"),
            ("{host: flink, master: yarn, spark_home: /s, file: /a.py}", "host and master"),
            ("{master: sparkle, spark_home: /s, file: /a.py}", "master sparkle is none"),
            ("{master: yarn, file: /a.py}", "master without spark_home"),
            ("{master: local, spark_home: /s, file: /a.py, queue: q}", "queue without YARN"),
            ("{host: flink, file: /a.py, queue: q}", "queue with a host"),
            ("{host: flink, file: /a.py, executor_memory: 2gb}", "is no size of memory"),
            ("{host: flink, file: /a.py, conf: {spark.master: x}}", "conf spark.master is set by"),
            ("{host: flink, file: /a.py, parallelism: 2}", "parallelism belongs to FLINK"),
        ] {
            let found = faults("SPARK", application);
            assert!(found.contains(said), "{application}: {found}");
        }
    }
}
