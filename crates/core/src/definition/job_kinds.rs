//! Validates the job types with keys of their own: hosts exist, paths can be filled in, a sensor has one query, lists
//! give valid jobs, and sub-batches do not open each other in a cycle.

use crate::definition::application;
use crate::definition::body::understands;
use crate::definition::executor;
use crate::definition::fault::{FaultReport, Located, SourcePlace};
use crate::definition::job::{CheckedJob, JobContext};
use crate::definition::near::did_you_mean;
use crate::definition::params::usable_name;
use crate::definition::raw::{RawJob, RawSql};
use crate::domain::id::{GroupCode, JobCode};
use crate::domain::job::body::{HttpCall, HttpHost, Items};
use crate::domain::job::{BodyPart, JobDef};
use crate::domain::params::fan_out::{self, FanOutParts};
use crate::domain::params::http_call::{self, KEY_HEADER, OWN_HEADERS};
use crate::domain::params::{Reference, references};
use crate::domain::source::DialectName;
use crate::domain::source::statement::{is_question, split};
use std::collections::{BTreeMap, HashSet};

/// The declared hosts, each once and with a base URL that a call cannot leave.
pub(crate) fn hosts(
    raw: Vec<Located<HttpHost>>,
    report: &mut FaultReport,
) -> Vec<Located<HttpHost>> {
    let mut names = HashSet::new();
    for Located { at, value: host } in &raw {
        let whose = format!("host {}", host.name);
        if !usable_name(&host.name.replace('-', "_")) {
            let cure = "use ASCII letters, digits, '_' and '-', the first no digit";
            report.fault(at, format!("{whose} has a name that cannot be used"), cure);
        }
        if !names.insert(host.url_env()) {
            let what = format!("{whose} is defined twice (upper and lower case count as the same)");
            report.fault(at, what, "rename one of the two or remove it");
        }
        if let Err(fault) = http_call::parse_base_url(&host.base_url) {
            let cure = "write base_url: https://host[:port][/path]";
            report.fault(at, format!("{whose}: base_url {fault}"), cure);
        }
        if let Some(Err(fault)) = host.ui_url.as_deref().map(http_call::parse_base_url) {
            let cure = "write ui_url: https://host[:port][/path]";
            report.fault(at, format!("{whose}: ui_url {fault}"), cure);
        }
        let headers: Vec<(&String, &String)> = host.headers.iter().collect();
        check_headers(&whose, &headers, at, report);
        for (name, text) in headers {
            let head = format!("{whose}: header {name}");
            if name.eq_ignore_ascii_case(KEY_HEADER) {
                let cure = "remove it; each call has a key of its own, and a job may set another";
                report.fault(at, format!("{head} would be the same for all calls"), cure);
            }
            match http_call::header_names(text) {
                Ok(names) if names.is_empty() => {}
                Ok(_) => {
                    let cure = "write that header in the http of the job";
                    report.fault(at, format!("{head} uses a parameter"), cure);
                }
                Err(fault) => {
                    let cure = "a header of a host is plain text and ${secret.NAME}";
                    report.fault(at, format!("{head} {fault}"), cure);
                }
            }
        }
    }
    raw
}

fn check_headers(
    whose: &str,
    headers: &[(&String, &String)],
    at: &SourcePlace,
    report: &mut FaultReport,
) {
    for (name, text) in headers {
        let token = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c);
        if name.is_empty() || !name.chars().all(token) {
            let what = format!("{whose}: {name:?} is not the name of a header");
            report.fault(at, what, "use ASCII letters, digits and '-'");
        } else if OWN_HEADERS.contains(&name.to_ascii_lowercase().as_str()) {
            let what = format!("{whose}: header {name} is set by Procession itself");
            report.fault(at, what, "remove it");
        }
        if text.chars().any(char::is_control) {
            let what = format!("{whose}: header {name} holds a line break or a control character");
            report.fault(at, what, "write it on one line");
        }
    }
}

/// Checks the keys of a job's type, and sets its list.
pub(crate) fn check(
    whose: &str,
    def: &mut JobDef,
    raw: &RawJob,
    around: &JobContext<'_>,
    uses: &mut Vec<Located<(String, JobCode)>>,
    report: &mut FaultReport,
) {
    let kind = around.kinds.iter().find(|k| k.name == def.job_type.as_str());
    if let (Some(http), Some(_)) = (&raw.http, &def.http) {
        check_call(whose, &http.value, &http.at, def, around, report);
    }
    if kind.is_some_and(|k| understands(k, BodyPart::Sensor)) {
        check_query(whose, def, raw, around, report);
    }
    if let (Some(call), Some(_), Some(kind)) = (&raw.executor, &def.executor, kind) {
        executor::check(whose, call, def, kind, report);
    }
    if let (Some(call), Some(_)) = (&raw.application, &def.application) {
        application::check_application(whose, call, def, around, report);
    }
    check_list(whose, def, raw, uses, report);
    let used = def.params.iter().filter(|p| {
        references(p).is_ok_and(|all| all.iter().any(|r| matches!(r, Reference::Item)))
    });
    if let (Some(param), None, Some(params)) = (used.into_iter().next(), &def.for_each, &raw.params)
    {
        let what = format!("{whose}: parameter {} uses ${{item}} without a list", param.name);
        report.fault(&params.at, what, "add for_each to the job, or change the value");
    }
}

fn check_call(
    whose: &str,
    call: &HttpCall,
    at: &SourcePlace,
    def: &JobDef,
    around: &JobContext<'_>,
    report: &mut FaultReport,
) {
    let known = || around.hosts.iter().map(|h| h.value.name.as_str());
    if !known().any(|name| name == call.host) {
        let hint = did_you_mean(&call.host, known());
        let what = format!("{whose}: host {} is not defined", call.host);
        let cure = format!("{hint}define it under hosts; no other host is ever called");
        report.fault(at, what, cure);
    }
    if let Some(fault) = http_call::path_fault(&call.path) {
        report.fault(at, format!("{whose}: path {fault}"), "");
    }
    let headers: Vec<(&String, &String)> = call.headers.iter().collect();
    check_headers(whose, &headers, at, report);
    let in_path = http_call::names(&call.path);
    let in_path = in_path.map(|names| names.into_iter().map(str::to_owned).collect());
    let mut places: Vec<(String, Result<Vec<String>, String>)> = vec![("path".to_owned(), in_path)];
    places.extend(
        headers
            .iter()
            .map(|(name, text)| (format!("header {name}"), http_call::header_names(text))),
    );
    for (place, names) in places {
        match names {
            Ok(names) => {
                for name in names.into_iter().filter(|n| def.params.iter().all(|p| p.name != *n)) {
                    let what =
                        format!("{whose}: {place} uses {{{name}}}, which is no parameter of it");
                    report.fault(at, what, "add it to params, or write %7B and %7D for braces");
                }
            }
            Err(fault) => {
                let cure = "write {NAME} for a parameter, or %7B and %7D for braces";
                report.fault(at, format!("{whose}: {place} {fault}"), cure);
            }
        }
    }
}

/// Checks that a sensor has exactly one query.
fn check_query(
    whose: &str,
    def: &JobDef,
    raw: &RawJob,
    around: &JobContext<'_>,
    report: &mut FaultReport,
) {
    let source = around.sources.iter().find(|s| Some(&s.name) == def.source.as_ref());
    let dialect = source.and_then(|s| DialectName::of_url(&s.url));
    let (Some(sql), Some(dialect)) = (&def.sql, dialect) else { return };
    let statements = sql.text_for(dialect).map(|text| split(text, dialect)).unwrap_or_default();
    let at = raw.sql.as_deref().map(RawSql::place).or(raw.sql_file.as_ref().map(|f| &f.at));
    let count = if sql.text_for(dialect).is_some() { statements.len() } else { 1 };
    if statements.len() == 1 && !is_question(&statements[0], dialect) {
        let what = format!("{whose}: the sql of a sensor is no question");
        let cure = "write SELECT, WITH, VALUES or SHOW, without INTO a file";
        report.fault(at.unwrap_or(&raw.code.at), what, cure);
    }
    if count != 1 {
        let what = format!("{whose}: a sensor asks one query, and its sql has {count} statements");
        let cure = "write one SELECT that gives one row, such as SELECT COUNT(*) FROM …";
        report.fault(at.unwrap_or(&raw.code.at), what, cure);
    }
}

/// Copies the list, and validates it if it is written out.
fn check_list(
    whose: &str,
    def: &mut JobDef,
    raw: &RawJob,
    uses: &mut Vec<Located<(String, JobCode)>>,
    report: &mut FaultReport,
) {
    let Some(Located { at, value: for_each }) = raw.for_each.as_deref() else { return };
    def.for_each = Some(Box::new(for_each.clone()));
    match &for_each.items {
        Items::List(items) => {
            let mut parts = FanOutParts {
                jobs: &mut vec![def.clone()],
                dependencies: &mut Vec::new(),
                externals: &mut Vec::new(),
                pools: &mut Vec::new(),
            };
            if let Err(error) = fan_out::spread(&mut parts, &def.code, items) {
                report.fault(at, error.to_string(), "");
            }
        }
        Items::Param(name) if !usable_name(name) => {
            let what = format!("{whose}: for_each: {name:?} is not the name of a parameter");
            report.fault(at, what, "write the name of a parameter of the group or the batch");
        }
        Items::Param(_) => {}
        Items::Output(job, _) => uses.push(Located::new(at, ("for_each".to_owned(), job.clone()))),
    }
}

/// Which job opens a batch of which group, with its place.
pub(crate) struct Opens(BTreeMap<OpensKey, Located<GroupCode>>);

/// Group and code of a job.
type OpensKey = (String, String);

impl Opens {
    pub(crate) fn from_jobs(jobs: &[RawJob]) -> Self {
        let one = |job: &RawJob| {
            let sub = job.sub_batch.as_ref()?;
            let key = (job.group.to_string(), job.code.value.clone());
            Some((key, Located::new(&sub.at, sub.value.group.clone())))
        };
        Self(jobs.iter().filter_map(one).collect())
    }

    /// Reports groups whose batches would open each other endlessly, each cycle once.
    pub(crate) fn refuse_rings(&self, jobs: &[CheckedJob], report: &mut FaultReport) {
        let arrows: Vec<(&JobCode, &GroupCode, &Located<GroupCode>)> = jobs
            .iter()
            .filter(|job| job.def.sub_batch.is_some())
            .filter_map(|job| {
                let key = (job.def.group.to_string(), job.def.code.to_string());
                Some((&job.def.code, &job.def.group, self.0.get(&key)?))
            })
            .collect();
        let mut reported: HashSet<Vec<&GroupCode>> = HashSet::new();
        for (code, group, opened) in &arrows {
            let Some(ring) = path(&opened.value, group, &arrows) else { continue };
            let mut key = ring.clone();
            key.sort();
            if !reported.insert(key) {
                continue;
            }
            let words: Vec<&str> =
                std::iter::once(*group).chain(ring).map(GroupCode::as_str).collect();
            let what = format!(
                "job {code}: batches would open one another in a ring: {}",
                words.join(" -> ")
            );
            report.fault(&opened.at, what, "remove one of these sub-batches");
        }
    }
}

/// The path from one group to the other along opened batches, including both.
fn path<'a>(
    from: &'a GroupCode,
    to: &GroupCode,
    arrows: &[(&'a JobCode, &'a GroupCode, &'a Located<GroupCode>)],
) -> Option<Vec<&'a GroupCode>> {
    let mut ways = vec![vec![from]];
    let mut seen = HashSet::from([from]);
    while let Some(way) = ways.pop() {
        let last = way.last().copied()?;
        if last == to {
            return Some(way);
        }
        for (_, _, next) in arrows.iter().filter(|(_, group, _)| *group == last) {
            if seen.insert(&next.value) {
                ways.push(way.iter().copied().chain([&next.value]).collect());
            }
        }
    }
    None
}
