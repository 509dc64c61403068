//! Reads and checks the executor call of a job: `executor: {app, handler, …}`.

use crate::definition::body::understands;
use crate::definition::fault::{FaultReport, Located};
use crate::definition::fields::Fields;
use crate::definition::keys::EXECUTOR;
use crate::definition::near::did_you_mean;
use crate::domain::executor::block::BlockStrategy;
use crate::domain::executor::route::RouteStrategy;
use crate::domain::executor::{ExecutorCall, ExecutorSend, GlueLanguage};
use crate::domain::job::{BodyPart, JobDef, JobKind, Param, Secrecy};
use crate::domain::params::{Reference, references};
use crate::domain::xxl::xxl_run::AppName;

/// Maximum length of a handler's name: the limit of an XXL-JOB admin's column.
const HANDLER_MAX: usize = 255;

/// `executor: {app, handler, send, route, block}`, or with `language` for a script.
pub(crate) fn read_call(fields: &mut Fields<'_>) -> Option<Located<ExecutorCall>> {
    let node = fields.take_node("executor")?;
    let at = node.at.clone();
    let whose = format!("{}: executor", fields.whose);
    let mut fields = Fields::open_fields(whose, node, EXECUTOR, fields.report);
    let handler = fields.take_line("handler", HANDLER_MAX).map(|word| word.value.trim().to_owned());
    let languages = GlueLanguage::ALL.map(|language| (language.as_str(), language));
    let language = strict(&mut fields, "language", &languages);
    let sends = ExecutorSend::ALL.map(|send| (send.as_str(), send));
    let send = strict(&mut fields, "send", &sends);
    let routes = RouteStrategy::ALL.map(|route| (route.as_str(), route));
    let route = strict(&mut fields, "route", &routes);
    let blocks = BlockStrategy::ALL.map(|block| (block.as_str(), block));
    let block = strict(&mut fields, "block", &blocks);
    let Some(app) = fields.take_word("app") else {
        let what = format!("{} names no app", fields.whose);
        fields.report.fault(&at, what, "add app: the appname that the executors register under");
        return None;
    };
    let name = AppName::parse(app.value.trim());
    let name = name.map_err(|error| {
        fields.report.fault(&app.at, format!("{}: app: {error}", fields.whose), "");
    });
    Some(Located::new(
        &at,
        ExecutorCall {
            app: name.ok()?,
            handler,
            language,
            send: send.unwrap_or_default(),
            route: route.unwrap_or_default(),
            block: block.unwrap_or_default(),
        },
    ))
}

/// One of a set of words in any case. An unknown word is refused: an XXL-JOB admin would use its
/// default instead, and run something else than was requested.
fn strict<T: Copy>(fields: &mut Fields<'_>, key: &str, words: &[(&str, T)]) -> Option<T> {
    let text = fields.take_word(key)?;
    let word = text.value.trim();
    if let Some((_, value)) = words.iter().find(|(known, _)| known.eq_ignore_ascii_case(word)) {
        return Some(*value);
    }
    let known: Vec<&str> = words.iter().map(|(known, _)| *known).collect();
    let hint = did_you_mean(word, known.iter().copied());
    let what = format!("{}: {key} is {:?}", fields.whose, text.value);
    fields.report.fault(&text.at, what, format!("{hint}use one of {}", known.join(", ")));
    None
}

/// Checks that a call fits the type of its job and the job's parameters.
pub(crate) fn check(
    whose: &str,
    call: &Located<ExecutorCall>,
    def: &JobDef,
    kind: &JobKind,
    report: &mut FaultReport,
) {
    if understands(kind, BodyPart::Script) {
        check_glue(whose, call, kind, report);
    } else {
        check_handler(whose, call, kind, report);
    }
    let count = def.params.len();
    if call.value.send == ExecutorSend::Text && count != 1 {
        let what =
            format!("{whose}: send: text sends the text of one parameter, and the job has {count}");
        report.fault(&call.at, what, "give the job one parameter, or write send: json or none");
    }
    if call.value.send == ExecutorSend::None {
        return;
    }
    for param in def.params.iter().filter(|param| is_secret(param)) {
        let what = format!(
            "{whose}: parameter {} is secret, and what is sent to an executor is stored as it is",
            param.name
        );
        let cure = "remove it, and let the executor take the secret from its own settings";
        report.fault(&call.at, what, cure);
    }
}

fn is_secret(param: &Param) -> bool {
    let names = references(param).unwrap_or_default();
    param.secrecy == Secrecy::Secret || names.iter().any(|r| matches!(r, Reference::Secret(_)))
}

fn check_glue(whose: &str, call: &Located<ExecutorCall>, kind: &JobKind, report: &mut FaultReport) {
    if call.value.handler.is_some() {
        let what = format!("{whose} is of type {}, which sends a script", kind.name);
        report.fault(&call.at, what, "remove handler, or change the type to HANDLER");
    }
    if call.value.language.is_none() {
        let known = GlueLanguage::ALL.map(GlueLanguage::as_str).join(", ");
        let what = format!("{whose} is of type {}, and its executor has no language", kind.name);
        report.fault(&call.at, what, format!("add language: one of {known}"));
    }
}

fn check_handler(
    whose: &str,
    call: &Located<ExecutorCall>,
    kind: &JobKind,
    report: &mut FaultReport,
) {
    if call.value.language.is_some() {
        let what = format!("{whose} is of type {}, which sends no script", kind.name);
        report.fault(&call.at, what, "remove language, or change the type to GLUE");
    }
    if call.value.handler.is_none() {
        let what = format!("{whose} is of type {}, and its executor has no handler", kind.name);
        report.fault(&call.at, what, "add handler: the name that the executors know it by");
    }
}
