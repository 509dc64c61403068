//! Validates the body of a job: complete, suitable for its type, and executable on its source.

use crate::definition::fault::{FaultReport, Located, SourcePlace};
use crate::definition::files::DefinitionFiles;
use crate::definition::job::{JobContext, pick_setting};
use crate::definition::raw::{JobSettings, RawJob, RawSql, Setting};
use crate::definition::runs_on::{check_dialect, check_procedure, source};
use crate::domain::job::body::Sensor;
use crate::domain::job::{BodyPart, JobDef, JobKind, SqlText, TransactionMode};
use crate::domain::source::DialectName;
use std::collections::BTreeMap;

/// Sets the body of `def`, and reports parts that its type requires or ignores.
pub(crate) fn read_body(
    def: &mut JobDef,
    whose: &str,
    raw: &RawJob,
    kind: &JobKind,
    around: &JobContext<'_>,
    report: &mut FaultReport,
) {
    refuse_foreign_parts(whose, raw, kind, around.kinds, report);
    set_body(def, whose, raw, kind, around, report);
    require_parts(whose, raw, around.defaults, def, kind, report);
    check_procedure(whose, raw, def, around.sources, report);
    check_dialect(whose, raw, def, around.sources, report);
}

/// Whether a type requires or permits a part.
pub(crate) fn understands(kind: &JobKind, part: BodyPart) -> bool {
    kind.needs.contains(&part) || kind.may_have.contains(&part)
}

fn body_key(part: BodyPart) -> &'static str {
    match part {
        BodyPart::Source => "source",
        BodyPart::ProcName => "proc_name",
        BodyPart::Sql => "sql or sql_file",
        BodyPart::Transaction => "transaction",
        BodyPart::Tx => "tx",
        BodyPart::Script => "script or script_file",
        BodyPart::Interpreter => "interpreter",
        BodyPart::WorkingDir => "working_dir",
        BodyPart::Params => "params",
        BodyPart::Http => "http",
        BodyPart::Sensor => "sensor",
        BodyPart::SubBatch => "sub_batch",
        BodyPart::Executor => "executor",
        BodyPart::Approval => "approval",
        BodyPart::Application => "application",
    }
}

/// Rejects keys of the job that its type ignores. Defaults are not checked: they apply to the jobs whose type uses
/// them.
fn refuse_foreign_parts(
    whose: &str,
    raw: &RawJob,
    kind: &JobKind,
    kinds: &[JobKind],
    report: &mut FaultReport,
) {
    let own = &raw.settings;
    let place = |text: &Setting<String>| text.as_ref().map(|t| t.at.clone());
    // `one` is the default, and an exported definition states it for every job.
    let odd = |t: &&Located<TransactionMode>| t.value != TransactionMode::One;
    let transaction = own.transaction.as_deref().filter(odd).map(|t| t.at.clone());
    let recorded = own.tx.as_ref().filter(|tx| tx.value.is_recorded()).map(|tx| tx.at.clone());
    let said = [
        (BodyPart::Source, "source", place(&own.source)),
        (BodyPart::ProcName, "proc_name", place(&raw.proc_name)),
        (BodyPart::Sql, "sql", raw.sql.as_ref().map(|s| s.place().clone())),
        (BodyPart::Sql, "sql_file", place(&raw.sql_file)),
        (BodyPart::Transaction, "transaction", transaction),
        (BodyPart::Tx, "tx", recorded),
        (BodyPart::Script, "script", place(&raw.script)),
        (BodyPart::Script, "script_file", place(&raw.script_file)),
        (BodyPart::Interpreter, "interpreter", place(&own.interpreter)),
        (BodyPart::WorkingDir, "working_dir", place(&own.working_dir)),
        (BodyPart::Params, "params", raw.params.as_ref().map(|p| p.at.clone())),
        (BodyPart::Http, "http", raw.http.as_ref().map(|h| h.at.clone())),
        (BodyPart::Sensor, "sensor", raw.sensor.as_ref().map(|s| s.at.clone())),
        (BodyPart::SubBatch, "sub_batch", raw.sub_batch.as_ref().map(|s| s.at.clone())),
        (BodyPart::Executor, "executor", raw.executor.as_ref().map(|e| e.at.clone())),
        (BodyPart::Approval, "approval", raw.approval.as_ref().map(|a| a.at.clone())),
        (BodyPart::Application, "application", raw.application.as_ref().map(|a| a.at.clone())),
    ];
    for (part, key, at) in said {
        let Some(at) = at.filter(|_| !understands(kind, part)) else {
            continue;
        };
        let fit: Vec<&str> =
            kinds.iter().filter(|k| understands(k, part)).map(|k| k.name).collect();
        let cure = if fit.is_empty() {
            format!("remove {key}")
        } else {
            format!("remove {key}, or change the type to {}", fit.join(" or "))
        };
        let what = format!("{whose} is of type {}, which has no {key}", kind.name);
        report.fault(&at, what, cure);
    }
}

fn set_body(
    def: &mut JobDef,
    whose: &str,
    raw: &RawJob,
    kind: &JobKind,
    around: &JobContext<'_>,
    report: &mut FaultReport,
) {
    let (own, defaults) = (&raw.settings, around.defaults);
    if understands(kind, BodyPart::Source) {
        def.source = source(whose, raw, kind, around, report);
    }
    if understands(kind, BodyPart::ProcName) {
        def.proc_name = raw.proc_name.as_ref().map(|p| p.value.clone());
    }
    if understands(kind, BodyPart::Sql) {
        def.sql = read_sql(whose, raw, around.files, report);
    }
    if understands(kind, BodyPart::Transaction) {
        def.transaction = pick_setting(&own.transaction, &defaults.transaction).unwrap_or_default();
    }
    if understands(kind, BodyPart::Script) {
        def.script = script(whose, raw, around.files, report);
    }
    if understands(kind, BodyPart::Interpreter) {
        def.interpreter = pick_setting(&own.interpreter, &defaults.interpreter);
    }
    if understands(kind, BodyPart::WorkingDir) {
        def.working_dir = pick_setting(&own.working_dir, &defaults.working_dir);
    }
    set_kinds(def, raw, kind);
}

fn set_kinds(def: &mut JobDef, raw: &RawJob, kind: &JobKind) {
    let value = |part| understands(kind, part);
    if value(BodyPart::Http) {
        def.http = raw.http.as_ref().map(|h| Box::new(h.value.clone()));
    }
    if value(BodyPart::Sensor) {
        let asked = raw.sensor.as_ref().map(|s| s.value.clone());
        def.sensor = asked.or(Some(Sensor { poll_sec: Sensor::POLL_SEC }));
    }
    if value(BodyPart::SubBatch) {
        def.sub_batch = raw.sub_batch.as_ref().map(|s| Box::new(s.value.clone()));
    }
    if value(BodyPart::Executor) {
        def.executor = raw.executor.as_ref().map(|e| Box::new(e.value.clone()));
    }
    if value(BodyPart::Application) {
        def.application = raw.application.as_ref().map(|a| Box::new(a.value.clone()));
    }
    if value(BodyPart::Approval) {
        def.approval = raw.approval.as_ref().map(|a| Box::new(a.value.clone()));
    }
}

fn require_one(
    whose: &str,
    inline: Option<&SourcePlace>,
    file: Option<&Located<String>>,
    key: &str,
    report: &mut FaultReport,
) {
    if let (Some(_), Some(file)) = (inline, file) {
        let what = format!("{whose} has both {key} and {key}_file");
        report.fault(&file.at, what, "keep one of the two");
    }
}

fn read_sql(
    whose: &str,
    raw: &RawJob,
    files: &DefinitionFiles<'_>,
    report: &mut FaultReport,
) -> Option<SqlText> {
    sql_text(whose, raw.sql.as_deref(), raw.sql_file.as_deref(), files, report)
}

/// The text of `sql` or `sql_file`.
pub(crate) fn sql_text(
    whose: &str,
    sql: Option<&RawSql>,
    file: Option<&Located<String>>,
    files: &DefinitionFiles<'_>,
    report: &mut FaultReport,
) -> Option<SqlText> {
    require_one(whose, sql.map(RawSql::place), file, "sql", report);
    match sql {
        Some(RawSql::Same(text)) => Some(SqlText::Same(text.value.clone())),
        Some(RawSql::Per(_, texts)) => {
            let mut known = BTreeMap::new();
            for (word, text) in texts {
                match DialectName::ALL.into_iter().find(|d| d.as_str() == word.value) {
                    Some(dialect) => drop(known.insert(dialect, text.value.clone())),
                    None => {
                        let what = format!("{whose}: sql is given for {}, no dialect", word.value);
                        report.fault(&word.at, what, "use sqlite, mysql or postgres");
                    }
                }
            }
            Some(SqlText::Per(known))
        }
        None => files.read_sql(whose, file?, report),
    }
}

fn script(
    whose: &str,
    raw: &RawJob,
    files: &DefinitionFiles<'_>,
    report: &mut FaultReport,
) -> Option<String> {
    require_one(
        whose,
        raw.script.as_ref().map(|s| &s.at),
        raw.script_file.as_deref(),
        "script",
        report,
    );
    match (&raw.script, &raw.script_file) {
        (Some(text), _) => Some(text.value.clone()),
        (None, Some(file)) => files.read_text(whose, "script_file", file, report),
        (None, None) => None,
    }
}

/// Reports missing keys that the type requires. Keys that are present but wrong have been reported
/// already.
fn require_parts(
    whose: &str,
    raw: &RawJob,
    defaults: &JobSettings,
    def: &JobDef,
    kind: &JobKind,
    report: &mut FaultReport,
) {
    for part in kind.needs {
        let there = match part {
            BodyPart::Source => {
                let said = raw.settings.source.is_some() || defaults.source.is_some();
                def.source.is_some() || said
            }
            BodyPart::ProcName => def.proc_name.is_some(),
            BodyPart::Sql => raw.sql.is_some() || raw.sql_file.is_some(),
            BodyPart::Script => raw.script.is_some() || raw.script_file.is_some(),
            BodyPart::Interpreter => def.interpreter.is_some(),
            BodyPart::WorkingDir => def.working_dir.is_some(),
            BodyPart::Params => raw.params.is_some(),
            BodyPart::Transaction | BodyPart::Tx => true,
            BodyPart::Http => raw.http.is_some(),
            BodyPart::Sensor => def.sensor.is_some(),
            BodyPart::SubBatch => raw.sub_batch.is_some(),
            BodyPart::Executor => raw.executor.is_some(),
            BodyPart::Approval => raw.approval.is_some(),
            BodyPart::Application => raw.application.is_some(),
        };
        if !there {
            let what = format!("{whose} is of type {} and has no {}", kind.name, body_key(*part));
            report.fault(&raw.code.at, what, format!("add {}", body_key(*part)));
        }
    }
}
