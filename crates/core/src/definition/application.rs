//! Reads and checks the application of a job: `application: {host, file, …}`.

use crate::definition::fault::{FaultReport, Located};
use crate::definition::fields::Fields;
use crate::definition::job::JobContext;
use crate::definition::keys::{APPLICATION, PARALLEL_MAX, POLL_MAX};
use crate::definition::near::did_you_mean;
use crate::domain::job::application::ApplicationCall;
use crate::domain::job::{JobDef, Param, Secrecy};
use crate::domain::params::http_call::names;
use crate::domain::params::{Reference, references};

/// Keys of `conf` that Procession sets itself.
const OWN_CONF: [&str; 1] = ["pipeline.name"];

/// `application: {host, file, main_class, args, conf, parallelism, poll_sec}`.
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
    let (host, file) = (fields.take_word("host"), fields.take_word("file"));
    let (Some(host), Some(file)) = (host, file) else {
        let what = format!("{} without host or file", fields.whose);
        fields.report.fault(&at, what, "write application: { host: NAME, file: /path/to.jar }");
        return None;
    };
    let path = file.value.trim();
    if !path.starts_with('/') {
        let what = format!("{}: file {path} is not an absolute path", fields.whose);
        let fix = "write the whole path of the jar on the nodes that run the job";
        fields.report.fault(&file.at, what, fix);
    }
    for (key, _) in conf.iter().filter(|(key, _)| OWN_CONF.contains(&key.value.as_str())) {
        let what = format!("{}: conf {} is set by Procession itself", fields.whose, key.value);
        fields.report.fault(&key.at, what, "remove it");
    }
    Some(Located::new(
        &at,
        ApplicationCall {
            host: host.value,
            file: path.to_owned(),
            main_class,
            args: args.into_iter().map(|arg| arg.value).collect(),
            conf: conf.into_iter().map(|(key, text)| (key.value, text.value)).collect(),
            parallelism,
            poll_sec: poll.map_or(ApplicationCall::POLL_SEC, |p| p.value),
        },
    ))
}

/// Checks that the host exists and that every argument can be resolved.
pub(crate) fn check_application(
    whose: &str,
    call: &Located<ApplicationCall>,
    def: &JobDef,
    around: &JobContext<'_>,
    report: &mut FaultReport,
) {
    let known = || around.hosts.iter().map(|h| h.value.name.as_str());
    if !known().any(|name| name == call.value.host) {
        let hint = did_you_mean(&call.value.host, known());
        let what = format!("{whose}: host {} is not defined", call.value.host);
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

    const KINDS: &[JobKind] = &[JobKind {
        name: "FLINK",
        needs: &[BodyPart::Application],
        may_have: &[BodyPart::Params],
        ..JobKind::PLAIN
    }];

    fn faults(application: &str) -> String {
        let text = format!(
            "groups: {{g: {{name: G}}}}\nhosts: {{flink: 'https://flink.bank.example'}}\nsecrets: {{pw: {{env: PW}}}}\n\
             jobs:\n  A: {{type: FLINK, params: [{{name: day, value: x}}, {{name: pass, value: '${{secret.pw}}'}}], \
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
        assert_eq!(faults("{host: flink, file: /a.jar, args: ['{day}']}"), "");
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
        ] {
            let found = faults(application);
            assert!(found.contains(said), "{application}: {found}");
        }
    }
}
