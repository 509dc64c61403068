//! Validates success rules and checks: conditions parse, names are defined, queries fit their source.

use crate::definition::body::{sql_text, understands};
use crate::definition::fault::{FaultReport, Located, SourcePlace};
use crate::definition::job::JobContext;
use crate::definition::near::{did_you_mean, nearest};
use crate::definition::raw::{RawCheck, RawExpect, RawJob, RawQuery, RawRule, RawSql};
use crate::domain::job::check::{DataCheck, Expect, SuccessRule, decimal};
use crate::domain::job::success_rules::EXIT_CODE;
use crate::domain::job::{BodyPart, JobDef, JobKind, ParamMode, SqlText};
use crate::domain::source::statement::{bind_names, is_question, split, unfit};
use crate::domain::source::{DataSource, DialectName};
use crate::domain::value::expr::Expr;
use std::collections::HashSet;

/// Names that every check may use, in addition to the job's parameters.
const GIVEN: [&str; 4] = ["batch_no", "group", "job_code", "business_date"];
/// Maximum length of the name of a check, in characters.
const NAME_MAX: usize = 100;

/// Origin of a check: if it does not apply to the job, it is a fault in the job itself, and ignored in the defaults.
#[derive(Clone, Copy, PartialEq, Eq)]
enum CheckOrigin {
    Job,
    Defaults,
}

/// Sets the success rules and checks of `def`.
pub(crate) fn read_checks(
    def: &mut JobDef,
    whose: &str,
    raw: &RawJob,
    kind: &JobKind,
    around: &JobContext<'_>,
    report: &mut FaultReport,
) {
    let (own, defaults) = (&raw.settings, around.defaults);
    if let Some(rules) = &own.success {
        def.success = success(whose, rules, CheckOrigin::Job, def, kind, report);
    } else if let Some(rules) = &defaults.success {
        def.success = success("defaults", rules, CheckOrigin::Defaults, def, kind, report);
    }
    let default_source = defaults.source.as_deref();
    let maker = |whose, from| Maker { whose, from, def, around, default_source };
    if let Some(checks) = &own.checks {
        def.checks = maker(whose, CheckOrigin::Job).checks(checks, report);
    } else if let Some(checks) = &defaults.checks {
        def.checks = maker("defaults", CheckOrigin::Defaults).checks(checks, report);
    }
}

fn success(
    whose: &str,
    rules: &[RawRule],
    from: CheckOrigin,
    def: &JobDef,
    kind: &JobKind,
    report: &mut FaultReport,
) -> Vec<SuccessRule> {
    let mut made: Vec<SuccessRule> = Vec::new();
    for raw in rules {
        let at = &raw.rule.at;
        let rule = match Expr::parse(&raw.rule.value) {
            Ok(rule) => rule,
            Err(error) => {
                let what = format!("{whose}: success rule: {}", error.message());
                report.fault(at, what, error.hint_text());
                continue;
            }
        };
        let missing = rule.names().iter().find_map(|name| not_given(name, def, kind));
        match (missing, from) {
            (Some((what, cure)), CheckOrigin::Job) => {
                report.fault(at, format!("{whose}: success rule: {what}"), cure);
                continue;
            }
            (Some(_), CheckOrigin::Defaults) => continue,
            (None, CheckOrigin::Job | CheckOrigin::Defaults) => {}
        }
        if made.iter().any(|other| other.rule.to_string() == rule.to_string()) {
            let what = format!("{whose}: success rule '{rule}' is given twice");
            report.fault(at, what, "keep one of the two");
            continue;
        }
        made.push(SuccessRule {
            rule,
            grade: raw.grade.as_ref().map(|g| g.value).unwrap_or_default(),
            message: raw.message.as_ref().map(|m| m.value.clone()),
        });
    }
    made
}

/// The problem and the hint for a name in a rule that a job of this type never returns.
fn not_given(name: &str, def: &JobDef, kind: &JobKind) -> Option<(String, String)> {
    let is_script = understands(kind, BodyPart::Script);
    let has_results = understands(kind, BodyPart::ProcName) || understands(kind, BodyPart::Sql);
    let (of_results, exit) = (["rows_affected", "result_rows"], [EXIT_CODE]);
    let is_result = of_results.contains(&name) || name.starts_with("result.");
    let what = format!("{name} is nothing that a job of type {} hands back", kind.name);
    if is_script {
        // Its own outputs are lines that it prints, so they are only known after it has run.
        let cure = "use exit_code, or a NAME that it prints as ::output NAME=value";
        return is_result.then(|| (what, cure.to_owned()));
    }
    if !has_results {
        let has_body = !kind.needs.is_empty() || !kind.may_have.is_empty();
        return (!has_body).then(|| (what, "remove the rule, or write a check".to_owned()));
    }
    let outs = || def.params.iter().filter(|p| p.mode != ParamMode::In).map(|p| p.name.as_str());
    if is_result || outs().any(|out| out == name) {
        return None;
    }
    if def.params.iter().any(|p| p.name == name) {
        let what = format!("{name} is handed to the body and does not come back");
        return Some((what, "use an OUT parameter, or a check".to_owned()));
    }
    let known: Vec<&str> = outs().chain(of_results).collect();
    let hint = nearest(name, known.iter().copied()).map(|near| format!("did you mean {near}? "));
    let cure = if exit.contains(&name) {
        "only scripts have one".to_owned()
    } else {
        let known = known.join(", ");
        format!("{}use {known} or result.COLUMN", hint.unwrap_or_default())
    };
    Some((what, cure))
}

/// Builds the checks of one job.
struct Maker<'a> {
    whose: &'a str,
    from: CheckOrigin,
    def: &'a JobDef,
    around: &'a JobContext<'a>,
    default_source: Option<&'a Located<String>>,
}

impl Maker<'_> {
    fn checks(&self, raw: &[RawCheck], report: &mut FaultReport) -> Vec<DataCheck> {
        let mut seen = HashSet::new();
        let mut made = Vec::new();
        for check in raw {
            let whose = format!("{}: check {}", self.whose, check.name.value);
            let name = &check.name;
            let long = name.value.chars().count() > NAME_MAX;
            if long || name.value.trim().is_empty() || name.value.chars().any(char::is_control) {
                let cure = format!("give it a line of 1 to {NAME_MAX} characters");
                report.fault(&name.at, format!("{}: a check has no usable name", self.whose), cure);
            }
            if !seen.insert(&name.value) {
                report.fault(&name.at, format!("{whose} is given twice"), "rename one of the two");
                continue;
            }
            made.extend(self.check(&whose, check, report));
        }
        made
    }

    fn check(&self, whose: &str, raw: &RawCheck, report: &mut FaultReport) -> Option<DataCheck> {
        let own = self.source(whose, &raw.name.at, &raw.query, report)?;
        let sql = self.read_query(whose, &raw.name.at, &raw.query, own, report)?;
        let expect = self.expect(whose, raw.expect.as_ref()?, own, report)?;
        // The job's own source is not stored again, so that it can be changed in one place.
        let is_own = raw.query.source.is_none() && self.def.source.as_ref() == Some(&own.name);
        Some(DataCheck {
            name: raw.name.value.clone(),
            source: (!is_own).then(|| own.name.clone()),
            sql,
            expect,
            grade: raw.grade.as_ref().map(|g| g.value).unwrap_or_default(),
        })
    }

    /// The source of the check: its own, the job's, the default one, or the only one.
    fn source(
        &self,
        whose: &str,
        at: &SourcePlace,
        raw: &RawQuery,
        report: &mut FaultReport,
    ) -> Option<&DataSource> {
        let sources = self.around.sources;
        let by_name = |name: &str| sources.iter().find(|s| s.name.as_str() == name);
        let own = raw.source.as_ref().map(|word| (whose, word));
        if own.is_none()
            && let Some(name) = &self.def.source
        {
            return by_name(name.as_str());
        }
        if let Some((whose, word)) = own.or(self.default_source.map(|word| ("defaults", word))) {
            let found = by_name(&word.value);
            if found.is_none() {
                let hint = did_you_mean(&word.value, sources.iter().map(|s| s.name.as_str()));
                let what = format!("{whose}: source {} is not defined", word.value);
                report.fault(&word.at, what, format!("{hint}define it under sources"));
            }
            return found;
        }
        if let [only] = sources {
            return Some(only);
        }
        if self.from == CheckOrigin::Job {
            let known: Vec<&str> = sources.iter().map(|s| s.name.as_str()).collect();
            let cure = match &known[..] {
                [] => "define one under sources".to_owned(),
                known => format!("add source: to the check, one of {}", known.join(", ")),
            };
            report.fault(at, format!("{whose} has no source"), cure);
        }
        None
    }

    /// The text of a query: one statement in the dialect of its source, with all names defined.
    fn read_query(
        &self,
        whose: &str,
        at: &SourcePlace,
        raw: &RawQuery,
        source: &DataSource,
        report: &mut FaultReport,
    ) -> Option<SqlText> {
        if raw.sql.is_none() && raw.sql_file.is_none() {
            report.fault(at, format!("{whose} has no sql"), "add sql or sql_file, one query");
            return None;
        }
        let text =
            sql_text(whose, raw.sql.as_ref(), raw.sql_file.as_ref(), self.around.files, report)?;
        let at = raw.sql.as_ref().map(RawSql::place).or(raw.sql_file.as_ref().map(|f| &f.at))?;
        let dialect = DialectName::of_url(&source.url)?;
        if text.text_for(dialect).is_none() {
            let what =
                format!("{whose} has no SQL for {dialect}, the dialect of source {}", source.name);
            report.fault(at, what, format!("add the text for {dialect}"));
            return None;
        }
        let texts: Vec<(DialectName, &str)> = match &text {
            SqlText::Same(text) => vec![(dialect, text)],
            SqlText::Per(texts) => texts.iter().map(|(d, t)| (*d, t.as_str())).collect(),
        };
        for (dialect, sql) in texts {
            self.one_query(whose, at, sql, dialect, report)?;
        }
        Some(text)
    }

    fn one_query(
        &self,
        whose: &str,
        at: &SourcePlace,
        sql: &str,
        dialect: DialectName,
        report: &mut FaultReport,
    ) -> Option<()> {
        let statements = split(sql, dialect);
        let [statement] = &statements[..] else {
            let what = format!("{whose} is {} statements", statements.len());
            report.fault(at, what, "write one query; a check for each of the others");
            return None;
        };
        if let Some(why) = unfit(statement, dialect) {
            report.fault(at, format!("{whose}: {why}"), "");
            return None;
        }
        if !is_question(statement, dialect) {
            let what = format!("{whose} is no question");
            report.fault(
                at,
                what,
                "a check only reads: write SELECT, WITH, VALUES or SHOW, without INTO a file",
            );
            return None;
        }
        let known = || self.def.params.iter().map(|p| p.name.as_str()).chain(GIVEN);
        let bound = bind_names(&statement.text, dialect, |_| "text");
        let missing = bound.names.iter().find(|name| !known().any(|k| k == name.as_str()));
        match (missing, self.from) {
            (Some(name), CheckOrigin::Job) => {
                let hint = did_you_mean(name, known());
                let what = format!("{whose}: :{name} is not among the job's parameters");
                let given = GIVEN.map(|name| format!(":{name}")).join(", ");
                report.fault(at, what, format!("{hint}declare it, or use one of {given}"));
                None
            }
            (Some(_), CheckOrigin::Defaults) => None,
            (None, CheckOrigin::Job | CheckOrigin::Defaults) => Some(()),
        }
    }

    fn expect(
        &self,
        whose: &str,
        raw: &RawExpect,
        own: &DataSource,
        report: &mut FaultReport,
    ) -> Option<Expect> {
        match raw {
            RawExpect::ZeroRows => Some(Expect::ZeroRows),
            RawExpect::Between { at, min, max } => between(whose, at, min, max, report),
            RawExpect::Equals { at, query, tolerance } => {
                let whose = format!("{whose}: equals");
                let other = match &query.source {
                    Some(_) => self.source(&whose, at, query, report)?,
                    None => own,
                };
                let sql = self.read_query(&whose, at, query, other, report)?;
                let what = format!("{whose}: tolerance");
                let tolerance = match tolerance {
                    Some(text) => Some(positive(&what, text, report)?),
                    None => None,
                };
                let source = query.source.as_ref().map(|_| other.name.clone());
                Some(Expect::Equals { source, sql, tolerance })
            }
            RawExpect::Drift { max_percent } => {
                let what = format!("{whose}: max_percent");
                Some(Expect::Drift { max_percent: positive(&what, max_percent, report)? })
            }
        }
    }
}

fn between(
    whose: &str,
    at: &SourcePlace,
    min: &Option<Located<String>>,
    max: &Option<Located<String>>,
    report: &mut FaultReport,
) -> Option<Expect> {
    let mut end = |text: &Option<Located<String>>| match text {
        Some(text) => number(&format!("{whose}: expect"), text, report).map(Some),
        None => Some(None),
    };
    let (min, max) = (end(min), end(max));
    let (min, max) = (min?, max?);
    let is_empty = min.is_none() && max.is_none();
    if is_empty {
        report.fault(at, format!("{whose}: expect has no bound"), "write min, max or both");
    } else if let (Some(min), Some(max)) = (&min, &max)
        && decimal(min) > decimal(max)
    {
        let what = format!("{whose}: min {min} is greater than max {max}");
        report.fault(at, what, "exchange the two");
        return None;
    }
    (!is_empty).then_some(Expect::Between { min, max })
}

fn number(what: &str, text: &Located<String>, report: &mut FaultReport) -> Option<String> {
    let word = text.value.trim();
    if decimal(word).is_none() {
        let what = format!("{what}: {word:?} is not a number");
        report.fault(&text.at, what, "write a plain decimal, such as -1234.50");
        return None;
    }
    Some(word.to_owned())
}

fn positive(what: &str, text: &Located<String>, report: &mut FaultReport) -> Option<String> {
    let word = number(what, text, report)?;
    if word.starts_with('-') {
        let what = format!("{what} is {word}");
        report.fault(&text.at, what, "write 0 or a number above it");
        return None;
    }
    Some(word)
}
