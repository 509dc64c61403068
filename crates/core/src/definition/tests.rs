//! Definitions with mistakes and the resulting messages; the form of every key; both file formats.

mod file_tests;
mod same_codes;

use crate::definition::{DefinitionFormat, Faults, Loaded, export, load_definition};
use crate::domain::access::Role;
use crate::domain::executor::block::BlockStrategy;
use crate::domain::executor::route::RouteStrategy;
use crate::domain::executor::{ExecutorSend, GlueLanguage};
use crate::domain::job::shared_definitions::SecretFrom;
use crate::domain::job::{
    BodyPart, JobKind, ParamDecl, ParamMode, ParamNeed, Secrecy, SqlText, TransactionMode,
};
use crate::domain::source::DialectName;
use proptest::prelude::*;
use std::collections::HashMap;
use std::io::{Error, ErrorKind};
use std::path::Path;

const KINDS: &[JobKind] = &[
    JobKind {
        name: "PROC",
        about: "Calls a procedure.",
        needs: &[BodyPart::Source, BodyPart::ProcName],
        may_have: &[BodyPart::Tx, BodyPart::Params],
        ..JobKind::PLAIN
    },
    JobKind {
        name: "SQL",
        about: "Runs statements.",
        needs: &[BodyPart::Source, BodyPart::Sql],
        may_have: &[BodyPart::Transaction, BodyPart::Tx, BodyPart::Params],
        ..JobKind::PLAIN
    },
    JobKind {
        name: "SCRIPT",
        about: "Runs a script.",
        needs: &[BodyPart::Script, BodyPart::Interpreter],
        may_have: &[BodyPart::WorkingDir, BodyPart::Params],
        ..JobKind::PLAIN
    },
    JobKind { name: "NOOP", about: "Does nothing.", ..JobKind::PLAIN },
    JobKind {
        name: "HTTP",
        about: "Calls a host.",
        needs: &[BodyPart::Http],
        may_have: &[BodyPart::Params],
        ..JobKind::PLAIN
    },
    JobKind {
        name: "SENSOR",
        about: "Asks until it is true.",
        needs: &[BodyPart::Source, BodyPart::Sql],
        may_have: &[BodyPart::Sensor, BodyPart::Params],
        ..JobKind::PLAIN
    },
    JobKind {
        name: "BATCH",
        about: "Opens a batch.",
        needs: &[BodyPart::SubBatch],
        may_have: &[BodyPart::Params],
        ..JobKind::PLAIN
    },
    JobKind {
        name: "HANDLER",
        about: "Calls a handler.",
        needs: &[BodyPart::Executor],
        may_have: &[BodyPart::Params],
        ..JobKind::PLAIN
    },
    JobKind {
        name: "FLINK",
        about: "Submits an application.",
        needs: &[BodyPart::Application],
        may_have: &[BodyPart::Params],
        ..JobKind::PLAIN
    },
    JobKind {
        name: "SPARK",
        about: "Submits an application.",
        needs: &[BodyPart::Application],
        may_have: &[BodyPart::Params],
        ..JobKind::PLAIN
    },
    JobKind {
        name: "APPROVAL",
        about: "Waits for a decision.",
        needs: &[BodyPart::Approval],
        ..JobKind::PLAIN
    },
    JobKind {
        name: "GLUE",
        about: "Sends a script.",
        needs: &[BodyPart::Executor, BodyPart::Script],
        may_have: &[BodyPart::Params],
        ..JobKind::PLAIN
    },
];

/// A text, or a part of one, and a fragment of each expected fault.
type Case = (&'static str, &'static [&'static str]);

fn load_files(path: &str, files: &[(&str, &str)]) -> Result<Loaded, Faults> {
    let files: HashMap<&str, &str> = files.iter().copied().collect();
    let read = |path: &Path| {
        let name = path.to_str().expect("UTF-8 in tests").replace('\\', "/");
        let found = files.get(name.as_str()).map(|text| (*text).to_owned());
        found.ok_or_else(|| Error::from(ErrorKind::NotFound))
    };
    load_definition(Path::new(path), &read, KINDS)
}

fn faults(text: &str) -> Vec<String> {
    let files = [("dag.yaml", text), ("empty.sql", " \n"), ("a.mysql.sql", "SELECT 1")];
    match load_files("dag.yaml", &files) {
        Ok(_) => Vec::new(),
        Err(faults) => faults.to_string().lines().map(str::to_owned).collect(),
    }
}

/// Asserts that exactly these faults are found, each by the fragments that it must contain.
fn assert_faults(text: &str, wanted: &[&str]) {
    let found = faults(text);
    assert_eq!(found.len(), wanted.len(), "{text}\n{found:#?}");
    for (found, wanted) in found.iter().zip(wanted) {
        assert!(found.contains(wanted), "{text}\nwanted {wanted:?}\nfound  {found:?}");
    }
}

/// Dependencies.
const GRAPH: &[Case] = &[
    (
        "jobs:\n  A: {type: NOOP, depends_on: [GL_LAOD, X, A]}\n  GL_LOAD: {type: NOOP, depends_on: [A, A]}\n",
        &[
            "dag.yaml:2: job A depends on GL_LAOD, which is not defined; did you mean GL_LOAD? otherwise define it or remove the dependency",
            "dag.yaml:2: job A depends on X, which is not defined; define it or remove the dependency",
            "dag.yaml:2: job A depends on itself; remove",
            "dag.yaml:3: job GL_LOAD lists its dependency on A twice",
        ],
    ),
    (
        "defaults: {type: NOOP}\njobs:\n  A:\n    depends_on:\n      - C\n  B: {depends_on: [A]}\n  C: {depends_on: [B]}\n  D: {depends_on: [E]}\n  E: {depends_on: [D]}\n",
        &[
            "dag.yaml:5: these jobs wait for one another in a circle: A -> C -> B -> A; remove one",
            "dag.yaml:8: these jobs wait for one another in a circle: D -> E -> D",
        ],
    ),
    (
        "jobs:\n  - {code: A, type: NOOP}\n  - code: A\n    type: NOOP\n  - {type: NOOP}\n",
        &[
            "dag.yaml:3: job A is defined twice, first on line 2; rename",
            "dag.yaml:5: a job without code; add code:",
        ],
    ),
    (
        "jobs:\n  A: {type: NOOP}\n  A: {type: NOPE}\n  B: {type: NOOPS}\n",
        &[
            "dag.yaml:3: A is defined twice in the same map",
            "dag.yaml:4: job B: type NOOPS does not exist; did you mean NOOP? types are PROC, SQL, SCRIPT, NOOP, HTTP, SENSOR, BATCH",
        ],
    ),
    ("jobs: {}\n", &["dag.yaml: no job is defined; add jobs:"]),
    ("{}", &["dag.yaml: no job is defined"]),
    ("", &["dag.yaml: "]),
    (
        "groups: {g: {}, h: {}}\ndefaults: {type: NOOP}\njobs:\n  A: {group: g}\n  B: {group: h, depends_on: [A]}\n  C: {}\n  D: {group: gg}\n",
        &[
            "dag.yaml:5: job B of group h depends on A of group g; a plain code means the same group: write g.A, or move one of the jobs",
            "dag.yaml:6: job C has no group; add group: to it or to defaults, one of g, h",
            "dag.yaml:7: job D: group gg is not defined; define it under groups",
        ],
    ),
    (
        "defaults: {type: NOOP}\ndependencies:\n  - {job_code: B, depends_on: A}\n  - {job_code: Z, depends_on: A}\n  - {depends_on: A}\njobs: {A: , B: }\n",
        &[
            "dag.yaml:4: job Z is not defined, yet it depends on A",
            "dag.yaml:5: a dependency without job_code or depends_on",
        ],
    ),
    ("jobs: {a b: {type: NOOP}}\n", &["job code 'a b' is not usable"]),
];

#[test]
fn the_graph() {
    for (text, wanted) in GRAPH {
        assert_faults(text, wanted);
    }
}

/// Declared parameters, secrets, and which parent provides a value.
const DECLARATIONS: &[Case] = &[
    (
        "params:\n  rate: {type: decimal, value: x}\n  2x: 1\n  day: {type: dat}\n  r: {value: '${params.x}'}\n  s: {secret: true, value: hunter22}\n  t: [1]\njobs: {A: {type: NOOP}}\n",
        &[
            "dag.yaml:2: parameter rate: \"x\" is not a decimal number such as 1234.50; change the value",
            "dag.yaml:3: parameter \"2x\" has a name that cannot be used; use ASCII letters",
            "dag.yaml:4: parameter day: type is \"dat\"; use one of text, int, decimal",
            "dag.yaml:5: parameter r: ${params.x} cannot stand in a parameter of a group or of all",
            "dag.yaml:6: parameter s is secret, and its value stands in the file for all to read; write value: \"${secret.NAME}\"",
            "dag.yaml:7: parameter t is a list, not a map; write its keys below it: name, type, value",
        ],
    ),
    (
        "groups:\n  g:\n    params:\n      - {name: a, value: '${nope}'}\n      - {name: a, required: maybe}\n      - {value: 1}\njobs: {A: {type: NOOP, group: g}}\n",
        &[
            "dag.yaml:4: group g: parameter a: ${nope} is not known; use ${batch_no}",
            "dag.yaml:5: group g: parameter a: required is \"maybe\"; use true or false",
            "dag.yaml:5: group g: parameter a is declared twice; keep one",
            "dag.yaml:6: a parameter without name; add name: to this parameter",
        ],
    ),
    (
        "secrets:\n  A: {env: X, file: y}\n  B: {}\n  C: {sealed: plain}\n  'a b': {env: X}\n  E: {evn: X}\n  F: X\njobs: {A: {type: NOOP}}\n",
        &[
            "dag.yaml:2: secret A comes from several places; keep one of env, file and sealed",
            "dag.yaml:3: secret B comes from nowhere; write env: VARIABLE, file: PATH or sealed: TEXT",
            "dag.yaml:4: secret C: sealed holds no sealed text; make one with: procession secret seal C",
            "dag.yaml:5: secret \"a b\" has a name that cannot be used",
            "dag.yaml:6: secret E has an unknown key evn; did you mean env?",
            "dag.yaml:6: secret E comes from nowhere",
            "dag.yaml:7: secret F is a single value, not a map; write its keys below it: name, env",
            "dag.yaml:7: secret F comes from nowhere",
        ],
    ),
    (
        "sources: {s: {url: 'sqlite:x', procedures: {p: SELECT 1}}}\ndefaults: {type: PROC, source: s}\njobs:\n  A: {proc_name: p, params: [{name: rows, mode: out}]}\n  B: {proc_name: p, params: [{name: rows, mode: inout}]}\n  C:\n    proc_name: p\n    depends_on: [A, B]\n    params:\n      - {name: rows}\n      - {name: pw, secret: true, value: hunter22}\n      - {name: d, value: '${last_day(x)}'}\n",
        &[
            "dag.yaml:10: job C: parameter rows has no value, and A and B hand out an output of that name; say which: value: ${jobs.A.rows}",
            "dag.yaml:11: job C: parameter pw is secret, and its value stands in the file",
            "dag.yaml:12: job C: parameter d: ${last_day(x)}: \"x\" must be a whole number from -100000 to 100000; mend it",
        ],
    ),
];

#[test]
fn declarations() {
    for (text, wanted) in DECLARATIONS {
        assert_faults(text, wanted);
    }
}

#[test]
fn declared_parameters_and_secrets_come_back_from_json() {
    let text = "params:\n  region: EU\n  pw: {secret: true, value: '${secret.LEDGER}'}\ngroups:\n  g:\n    params: {day: {type: date, required: true}}\nsecrets:\n  LEDGER: {env: LEDGER_PASSWORD}\n  F: {file: /run/secrets/f}\n  S: {sealed: 'v1:AAAA'}\nsources: {s: {url: 'sqlite:x'}}\njobs:\n  A: {group: g, type: SQL, source: s, sql: SELECT 1, params: [{name: p, required: true, secret: true}]}\n";
    let load = |name, text: &str| load_files(name, &[(name, text)]).expect("sound").definition;
    let first = load("dag.yaml", text);
    let job = &first.jobs[0].params[0];
    assert_eq!((job.need, job.secrecy), (ParamNeed::Required, Secrecy::Secret));
    assert_eq!(first.groups[0].params[0].need, ParamNeed::Required);
    assert_eq!(first.shared.params[1].secrecy, Secrecy::Secret);
    assert_eq!(first.shared.secrets[0].from, SecretFrom::Env("LEDGER_PASSWORD".to_owned()));
    let json = serde_json::to_string_pretty(&first).expect("json");
    assert_eq!(load("dag.json", &json), first, "{json}");
}

#[test]
fn a_wrong_default_is_reported_once() {
    let head = "groups: {g: }\ndefaults: {group: h, source: s, type: TYPE}\n";
    let jobs = "jobs: {A: {sql: x}, B: {sql: y}}\n";
    let text = format!("{head}{jobs}").replace("TYPE", "SLQ");
    assert_faults(
        &text,
        &["defaults: type SLQ does not exist; did you mean SQL?", "defaults: group h is not"],
    );
    let text = format!("{head}{jobs}").replace("TYPE", "SQL");
    assert_faults(
        &text,
        &[
            "dag.yaml:2: defaults: group h is not defined; define it under groups",
            "defaults: source s is not",
        ],
    );
}

/// Keys and the forms of their values.
const KEYS: &[Case] = &[
    (
        "jbos: {}\njobs:\n  A:\n    type: NOOP\n    timeout_secs: 5\n    colour: red\n",
        &[
            "dag.yaml:1: the definition has an unknown key jbos; did you mean jobs?",
            "dag.yaml:5: job A has an unknown key timeout_secs; did you mean timeout_sec?",
            "dag.yaml:6: job A has an unknown key colour; known keys are code,",
        ],
    ),
    (
        "jobs:\n  A:\n    type: NOOP\n    timeout_sec: 0\n    retry_count: 101\n    retry_delay_sec: 86401\n    priority: high\n    is_active: maybe\n    schedule_time: 25:00\n    tags: {a: b}\n    name: [x]\n    owner: ''\n",
        &[
            "dag.yaml:4: job A: timeout_sec is \"0\"; use a whole number from 1 to 2592000",
            "dag.yaml:5: job A: retry_count is \"101\"; use a whole number from 0 to 100",
            "dag.yaml:6: job A: retry_delay_sec is \"86401\"",
            "dag.yaml:7: job A: priority is \"high\"",
            "dag.yaml:8: job A: is_active is \"maybe\"; use true or false",
            "dag.yaml:9: job A: schedule_time is \"25:00\", not a time of day; write HH:MM",
            "dag.yaml:10: job A: tags is a map, not a single value",
            "dag.yaml:11: job A: name is a list, not a single value",
            "dag.yaml:12: job A: owner is empty",
        ],
    ),
    (
        "jobs: {A: {type: NOOP, timeout_sec: -5, retry_count: -1, timeout_sec2: }}\n",
        &["unknown key timeout_sec2", "timeout_sec is \"-5\"", "retry_count is \"-1\""],
    ),
    ("jobs: {A: {type: NOOP, timeout_sec: 2592001}}\n", &["from 1 to 2592000"]),
    ("jobs: {A: {type: NOOP, schedule_time: '9'}}\n", &["not a time of day"]),
    ("jobs: text\n", &["dag.yaml:1: jobs is a single value, not a map", "no job is defined"]),
    ("- jobs\n", &["the definition is a list, not a map", "no job"]),
    ("jobs: {A: NOOP}\n", &["job A is a single value, not a map", "job A has no type"]),
    ("jobs: {A: {code: B, type: NOOP}}\n", &["job A says code: B"]),
    (
        "groups:\n  g: {time_zone: Asia/Shangai, max_parallel: 0, notify_email: 'gl@bank.example; nobody', params: {a-b: 1}}\ndefaults: {notify_email: [a@b@c]}\njobs: {A: {type: NOOP}}\n",
        &[
            "group g: \"nobody\" is not an e-mail address",
            "group g: max_parallel is \"0\"",
            "group g: parameter \"a-b\"",
            "group g: time zone \"Asia/Shangai\" is not known",
            "dag.yaml:3: defaults: \"a@b@c\" is not an e-mail address",
        ],
    ),
    ("jobs:\n\tA: 1\n", &["dag.yaml:2: this is not readable as YAML or JSON"]),
    (
        "jobs: {A: {type: proc}}\n",
        &["job A: type proc does not exist; did you mean PROC? types are"],
    ),
    (
        "jobs: {A: {}}\n",
        &["job A has no type; add type: to it or to defaults, one of PROC, SQL, SCRIPT, NOOP"],
    ),
];

#[test]
fn keys_and_values() {
    for (text, wanted) in KEYS {
        let mut wanted = wanted.to_vec();
        let found = faults(text);
        assert_eq!(found.len(), wanted.len(), "{text}\n{found:#?}");
        wanted.retain(|w| !found.iter().any(|f| f.contains(w)));
        assert!(wanted.is_empty(), "{text}\nmissing {wanted:#?}\nfound {found:#?}");
    }
}

/// What a job waits for.
const WAITS: &[Case] = &[
    (
        "jobs:\n  A: {type: NOOP}\n  B: {type: NOOP, depends_on: [{job: A, when: sucess}]}",
        &["dag.yaml:3: job B: when: \"sucess\" is not a condition; did you mean success?"],
    ),
    (
        "jobs:\n  A: {type: NOOP}\n  B: {type: NOOP, depends_on: [{job: A, when: 'n >'}]}",
        &[
            "dag.yaml:3: job B: when: condition, column 4",
            "or write success, failure, done or skipped",
        ],
    ),
    (
        "jobs:\n  A: {type: NOOP}\n  B: {type: NOOP, trigger_rule: all_done, depends_on: [{job: A, when: failure}]}",
        &[
            "dag.yaml:3: job B: a dependency has a condition, which rule all_done ignores; remove when",
        ],
    ),
    (
        "jobs:\n  A: {type: NOOP, trigger_rule: all_sucess}",
        &["dag.yaml:2: job A: trigger_rule is \"all_sucess\""],
    ),
    (
        "jobs:\n  A: {type: NOOP}\n  B: {type: NOOP, depends_on: [{when: done}]}",
        &["dag.yaml:3: job B: a dependency without job; add job: CODE, or group: and batch:"],
    ),
    (
        "jobs:\n  A: {type: NOOP}\n  B: {type: NOOP, depends_on: [{job: A, missing: pass}]}",
        &["dag.yaml:3: job B: missing and wait_sec are for other batches; add batch:"],
    ),
    (
        "jobs:\n  A: {type: NOOP}\n  B: {type: NOOP, depends_on: [{job: A, batch: same}]}",
        &[
            "dag.yaml:3: job B depends on its own batch as if it were another; remove batch and group",
        ],
    ),
    (
        "jobs:\n  A: {type: NOOP}\n  B: {type: NOOP, depends_on: [{job: A, batch: prev(x)}]}",
        &["dag.yaml:3: job B: batch: 'prev(x)': x must be a whole number"],
    ),
    (
        "jobs:\n  CLOSE: {type: NOOP}\n  B: {type: NOOP, depends_on: [{job: CLOS, batch: prev}]}",
        &[
            "dag.yaml:3: job B depends on CLOS of group default, which has no such job; did you mean CLOSE?",
        ],
    ),
    (
        "jobs:\n  B: {type: NOOP, depends_on: [{job: B, batch: prev}, {job: B, batch: prev}]}",
        &["dag.yaml:2: job B lists the same dependency on job B of group default twice"],
    ),
    (
        "jobs:\n  B: {type: NOOP, depends_on: [{group: g2, batch: prev, when: 'n > 0'}]}",
        &["dag.yaml:2: job B: a whole batch has no outputs to compare; name a job of it"],
    ),
    (
        "groups: {g: {}, h: {}}\njobs:\n  A: {type: NOOP, group: g}\n  B: {type: NOOP, group: h, depends_on: [A]}",
        &[
            "dag.yaml:4: job B of group h depends on A of group g; a plain code means the same group: write g.A, or move one of the jobs",
        ],
    ),
    (
        "groups: {g: {}, h: {}}\njobs:\n  A: {type: NOOP, group: g, depends_on: [{group: h, job: B}]}\n  B: {type: NOOP, group: h, depends_on: [{group: g}]}",
        &["dag.yaml:3: these jobs of several groups wait for one another in a circle: "],
    ),
    (
        "jobs:\n  A: {type: NOOP}\n  B: {type: NOOP, if: 'A.n > 0'}",
        &[
            "dag.yaml:3: job B: if asks for A.n, and A does not run before it; add A to its depends_on",
        ],
    ),
    (
        "jobs:\n  A: {type: NOOP}\n  B: {type: NOOP, depends_on: [A], if: 'n > 0'}",
        &["dag.yaml:3: job B: if asks for n, which is no output of a job; write CODE.NAME"],
    ),
    ("jobs:\n  A: {type: NOOP, if: 'x ='}", &["dag.yaml:2: job A: if: condition, column 4"]),
];

#[test]
fn what_is_waited_for() {
    for (text, wanted) in WAITS {
        let found = faults(text);
        assert_eq!(found.len(), 1, "{text}\n{found:#?}");
        for fragment in *wanted {
            assert!(found[0].contains(fragment), "{text}\nmissing {fragment}\nfound {found:#?}");
        }
    }
}

#[test]
fn dependencies_of_every_form_reach_the_definition() {
    let text = "groups: {g: {}, h: {}}\ndefaults: {type: NOOP, group: g}\njobs:\n  A: {}\n  B:\n    trigger_rule: one_success\n    if: A.n > 0\n    depends_on:\n      - A\n      - {job: C, group: h, batch: month(-1), missing: pass, wait_sec: 60}\n      - {group: h, batch: months, when: done}\n      - {job: A, batch: prev(2), when: 'n > 0'}\n  C: {group: h}\n";
    let d = load_files("dag.yaml", &[("dag.yaml", text)]).expect("sound").definition;
    assert_eq!(d.dependencies.len(), 1);
    let b = &d.jobs[1];
    assert_eq!(b.trigger_rule.as_str(), "one_success");
    assert_eq!(b.condition.as_ref().map(ToString::to_string).as_deref(), Some("A.n > 0"));
    let said: Vec<String> = d
        .externals
        .iter()
        .map(|e| format!("{} {} {} {:?} {:?}", e.target(), e.batch, e.when, e.missing, e.wait_sec))
        .collect();
    assert_eq!(
        said,
        [
            "job C of group h month(-1) success Pass Some(60)",
            "group h months done Wait None",
            "job A of group g prev(2) n > 0 Wait None",
        ]
    );
}

#[test]
fn an_output_that_a_procedure_does_not_declare_is_warned_of() {
    let text = "sources: {s: {url: 'mysql://db.bank.example/a'}}\njobs:\n  A: {type: PROC, source: s, proc_name: p, \
                params: [{name: y, mode: out}]}\n  B: {type: SQL, source: s, depends_on: [A], \
                sql: 'SELECT :t', params: [{name: t, value: '${jobs.A.total}'}]}\n";
    let loaded = load_files("dag.yaml", &[("dag.yaml", text)]).expect(text);
    let warnings: Vec<String> = loaded.warnings.iter().map(ToString::to_string).collect();
    let [warning] = warnings.as_slice() else { panic!("{warnings:?}") };
    assert!(warning.contains("uses the output total of A, which A does not declare"), "{warning}");
    assert!(warning.contains("A declares y; use one of these"), "{warning}");
}

/// The warnings of a definition in which job B of group g waits for `batch` of group h.
fn warnings_of_wait(batch: &str, g: &str, h: &str, schedules: &str) -> Vec<String> {
    let text = format!(
        "groups: {{g: {g}, h: {h}}}\njobs:\n  A: {{type: NOOP, group: h}}\n  B: {{type: NOOP, group: g, \
         depends_on: [{{group: h, batch: {batch}}}]}}\n{schedules}"
    );
    let loaded = load_files("dag.yaml", &[("dag.yaml", &text)]).expect(&text);
    loaded.warnings.iter().map(ToString::to_string).collect()
}

#[test]
fn a_batch_that_the_other_group_never_has_is_warned_of() {
    let daily = "{type: daily}";
    let monthly = "{type: monthly}";
    for (batch, g, h) in [
        ("last_day_of_month(-1)", monthly, daily),
        ("days_of_month(-1)", monthly, daily),
        ("monday(-1)", daily, "{}"),
        ("month(-1)", daily, monthly),
        ("prev", daily, daily),
        ("same", "{}", monthly),
        ("months", "{type: quarterly}", monthly),
    ] {
        assert_eq!(warnings_of_wait(batch, g, h, ""), [""; 0], "{batch}");
    }
    for (batch, g, h, said) in [
        (
            "last_day_of_month(-1)",
            "{}",
            monthly,
            "dag.yaml:4: job B: batch last_day_of_month(-1) gives numbers of days, and group h is monthly; \
             it has no such batches; write month(n), months or months_of_quarter, or name a group that",
        ),
        ("week_to_date", daily, "{type: yearly}", "gives numbers of days, and group h is yearly"),
        ("month(0)", daily, daily, "gives numbers of months, and group h is daily"),
        ("months", daily, "{type: quarterly}", "write quarter(n) or quarters_of_year, or name"),
        ("prev", daily, monthly, "batch prev gives numbers of days, and group h is monthly"),
        ("202407", daily, daily, "batch 202407 gives numbers of months, and group h is daily"),
    ] {
        let found = warnings_of_wait(batch, g, h, "");
        assert_eq!(found.len(), 1, "{batch} {found:?}");
        assert!(found[0].contains(said), "{batch} {found:?}");
    }
}

#[test]
fn schedules_say_which_batches_a_group_without_a_type_has() {
    let schedule = |code: &str, batch_no: &str| {
        format!("  {code}: {{cron: '0 0 1 * * ?', group: h, batch_no: '{batch_no}'}}\n")
    };
    let of = |numbers: &[&str]| {
        let lines = numbers.iter().enumerate().map(|(i, no)| schedule(&format!("s{i}"), no));
        let text = format!("schedules:\n{}", lines.collect::<String>());
        warnings_of_wait("day(-1)", "{}", "{}", &text)
    };
    assert_eq!(of(&["day(0)"]), [""; 0]);
    assert_eq!(of(&["time(%Y%m%d)"]), [""; 0]);
    assert_eq!(of(&["last_day_of_month(-1)"]), [""; 0]);
    assert_eq!(of(&["month(-1)", "day(0)"]), [""; 0]);
    let said = "job B: batch day(-1) gives numbers of days, and schedule s0 numbers group h by";
    let found = of(&["time(%Y%m%d-%H%M)"]);
    assert!(found[0].contains(said), "{found:?}");
    let said =
        "by time(%Y%m%d-%H%M), as in 20240731-1234; it has no such batches; give its schedule";
    assert!(found[0].contains(said), "{found:?}");
    let found = of(&["month(-1)"]);
    assert!(found[0].contains("by month(-1), as in 202406; it has no"), "{found:?}");
}

/// Bodies of the job A.
const BODIES: &[Case] = &[
    ("{type: PROC}", &["job A is of type PROC and has no source; add source", "has no proc_name"]),
    (
        "{type: PROC, source: led, proc_name: sp_laod}",
        &[
            "dag.yaml:3: job A calls sp_laod, which is not among the procedures of source led (SQLite has none of its own); did you mean sp_load? otherwise add it",
        ],
    ),
    (
        "{type: PROC, source: lde, proc_name: sp_load}",
        &["job A: source lde is not defined; did you mean led?"],
    ),
    ("{type: PROC, source: my, proc_name: 'f(1); DROP'}", &["is not the name of a procedure"]),
    ("{type: PROC, source: my, proc_name: a.b.c.d}", &["is not the name of a procedure"]),
    ("{type: PROC, source: my, proc_name: 'post(integer'}", &["is not the name of a procedure"]),
    ("{type: SQL, source: led}", &["is of type SQL and has no sql or sql_file"]),
    (
        "{type: SQL, source: led, sql: x, sql_file: a.sql}",
        &["job A has both sql and sql_file; keep one"],
    ),
    ("{type: SQL, source: led, sql: '  '}", &["sql is empty", "has no sql"]),
    (
        "{type: SQL, source: led, sql_file: no.sql}",
        &["job A: sql_file no.sql does not exist; create it"],
    ),
    ("{type: SQL, source: led, sql_file: empty.sql}", &["sql_file empty.sql is empty"]),
    (
        "{type: SQL, source: led, sql_file: 'b.{dialect}.sql'}",
        &["no file b.{dialect}.sql exists for any dialect"],
    ),
    (
        "{type: SQL, source: led, sql_file: 'a.{dialect}.sql'}",
        &["job A has no SQL for sqlite, the dialect of its source led; add"],
    ),
    (
        "{type: SQL, source: led, sql: {oracle: x, sqlite: y}}",
        &["sql is given for oracle, no dialect; use sqlite, mysql or postgres"],
    ),
    (
        "{type: SQL, source: led, sql: x, transaction: two}",
        &["transaction is \"two\"; use one of one, each, none"],
    ),
    ("{type: SCRIPT, script: x}", &["is of type SCRIPT and has no interpreter"]),
    (
        "{type: SCRIPT, script: x, interpreter: sh, source: led, sql: y}",
        &[
            "job A is of type SCRIPT, which has no source; remove source, or change the type to PROC or SQL or SENSOR",
            "which has no sql; remove sql, or change the type to SQL",
        ],
    ),
    ("{type: NOOP, params: []}", &["is of type NOOP, which has no params"]),
    (
        "{type: SCRIPT, script: x, script_file: y, interpreter: sh}",
        &["both script and script_file"],
    ),
];

#[test]
fn bodies() {
    let head = "sources: {led: {url: 'sqlite:x.db', procedures: {sp_load: SELECT 1}}, my: {url: 'mysql://u@h/d'}}\njobs:\n";
    for (job, wanted) in BODIES {
        assert_faults(&format!("{head}  A: {job}\n"), wanted);
    }
}

#[test]
fn texts_fit_their_columns_and_a_line() {
    let name = "名".repeat(256);
    assert_faults(
        &format!("jobs:\n  A: {{ type: NOOP, name: {name} }}\n"),
        &[
            "dag.yaml:2: job A: name is not a short line of text; shorten it to 255 characters; it has 256",
        ],
    );
    assert_faults(
        "jobs:\n  A: { type: NOOP, name: \"Post\\r\\nBcc: x\", tags: ['a,b'] }\n",
        &["name is not a short line of text; write it on one line", "\"a,b\" is not a tag"],
    );
    let many: Vec<String> = (0..51).map(|i| format!("a{i}@b.example")).collect();
    assert_faults(
        &format!("jobs:\n  A: {{ type: NOOP, notify_email: [{}] }}\n", many.join(", ")),
        &["notify_email has 51 addresses; 50 is the most"],
    );
}

/// Hosts, calls, sensors, sub-batches and lists.
const KINDS_FAULTS: &[Case] = &[
    (
        "hosts:\n  a: ftp://h\n  b: {base_url: 'https://u:geheim@h'}\n  c: {base_url: https://h, headers: {Host: x, Idempotency-Key: k, 'a b': y, T: \"x\\ny\", P: '{p}'}}\n  A: https://h\n  d e: https://h\n  f: {}\njobs: {A: {type: NOOP}}\n",
        &[
            "dag.yaml:2: host a: base_url has to begin with https:// or http://; write base_url",
            "dag.yaml:3: host b: base_url holds a user or a password",
            "dag.yaml:4: host c: header Host is set by Procession itself; remove it",
            "dag.yaml:4: host c: header Idempotency-Key would be the same for all calls; remove it; each",
            "dag.yaml:4: host c: header T holds a line break",
            "dag.yaml:4: host c: \"a b\" is not the name of a header",
            "dag.yaml:4: host c: header P uses a parameter",
            "dag.yaml:5: host A is defined twice (upper and lower case",
            "dag.yaml:6: host d e has a name that cannot be used",
            "dag.yaml:7: host f has no base_url; add base_url: https://host",
        ],
    ),
    (
        "hosts: {core: https://h}\ndefaults: {type: HTTP}\njobs:\n  A:\n    http: {host: cor, path: /x}\n  B:\n    http: {host: core, path: '/{p}/../x', method: FETCH, send: xml, expect_status: [20, x]}\n  C:\n    http: {host: core}\n  D:\n    http: {host: core, path: '/{q', headers: {X: '{r}', Connection: k}}\n  E:\n    http: {host: core, path: /, send: json}\n  F: {}\n  G: {type: NOOP, http: {host: core, path: /}}\n",
        &[
            "dag.yaml:5: job A: host cor is not defined; did you mean core? otherwise define it under hosts",
            "dag.yaml:7: job B: http: method is \"FETCH\"; use one of GET, HEAD, POST",
            "dag.yaml:7: job B: http: send is \"xml\"; use one of none, json, form",
            "dag.yaml:7: job B: http: expect_status has \"20\"; use statuses from 200 to 599",
            "dag.yaml:7: job B: http: expect_status has \"x\"",
            "dag.yaml:7: job B: path leads above the host's own URL",
            "dag.yaml:7: job B: path uses {p}, which is no parameter of it; add it to params",
            "dag.yaml:9: job C: http without host or path",
            "dag.yaml:11: job D: header Connection is set by Procession itself",
            "dag.yaml:11: job D: path has a '{' or '}' that is not part of {name}",
            "dag.yaml:11: job D: header X uses {r}, which is no parameter",
            "dag.yaml:13: job E: http: GET sends no body; remove send, or use method: POST",
            "is of type HTTP and has no http; add http",
            "dag.yaml:14: job F is of type HTTP and has no http",
            "dag.yaml:15: job G is of type NOOP, which has no http; remove http, or change the type to HTTP",
        ],
    ),
    (
        "sources: {s: {url: 'sqlite:x'}}\njobs:\n  A: {type: SENSOR, source: s}\n  B: {type: SENSOR, source: s, sensor: {poll_sec: 0}, sql: 'SELECT 1; SELECT 2'}\n  C: {type: SQL, source: s, sql: SELECT 1, sensor: {}}\n  D: {type: SENSOR, source: s, sql: SELECT 1, transaction: each}\n",
        &[
            "dag.yaml:3: job A is of type SENSOR and has no sql or sql_file",
            "dag.yaml:4: job B: sensor: poll_sec is \"0\"; use a whole number from 1 to 86400",
            "dag.yaml:4: job B: a sensor asks one query, and its sql has 2 statements; write one SELECT",
            "dag.yaml:5: job C is of type SQL, which has no sensor; remove sensor, or change the type to SENSOR",
            "dag.yaml:6: job D is of type SENSOR, which has no transaction",
        ],
    ),
    (
        "groups: {a: , b: , c: }\ndefaults: {type: BATCH}\njobs:\n  A: {group: a, sub_batch: {group: b}}\n  B: {group: b, sub_batch: {group: c, batch: months}}\n  C: {group: c, sub_batch: {group: a, batch: prev}}\n  D: {group: a, sub_batch: {group: a, batch: prevv}}\n  E: {group: a, sub_batch: {}}\n  F: {group: a}\n",
        &[
            "dag.yaml:4: job A: batches would open one another in a ring: a -> b -> c -> a; remove one",
            "dag.yaml:5: job B: sub_batch: batch months does not give one batch number; write same,",
            "dag.yaml:7: job D: batches would open one another in a ring: a -> a",
            "dag.yaml:8: job E: sub_batch names no group",
            "dag.yaml:8: job E is of type BATCH and has no sub_batch",
            "dag.yaml:9: job F is of type BATCH and has no sub_batch; add sub_batch",
        ],
    ),
    (
        "defaults: {type: NOOP}\njobs:\n  A: {for_each: [x, x]}\n  B: {for_each: {param: 'a b', output: A.x}}\n  C: {for_each: {output: A.x}}\n  D: {for_each: {output: A}}\n  E: {for_each: {max_parallel: 0}}\n  F: {for_each: text}\n  G: {for_each: {items: [a], param: b}}\n  H: {type: HTTP, params: [{name: p, value: '${item}'}], http: {host: h, path: /}}\nhosts: {h: https://h}\n",
        &[
            "dag.yaml:3: job A: for_each makes job A.x of item \"x\", and there is one of that code already",
            "dag.yaml:4: job B: for_each has both param and output; keep one of the two",
            "dag.yaml:4: job B: for_each: \"a b\" is not the name of a parameter",
            "dag.yaml:5: job C: parameter for_each uses an output of A, which does not run before it; add A",
            "dag.yaml:6: job D: for_each: output: \"A\" is not JOB.name; write output: JOB.name",
            "dag.yaml:6: job D: for_each has 0 lists; write one of items: [A, B], param: NAME or output",
            "dag.yaml:7: job E: for_each: max_parallel is \"0\"",
            "dag.yaml:7: job E: for_each has 0 lists",
            "dag.yaml:8: job F: for_each is a single value, not a map",
            "dag.yaml:8: job F: for_each has 0 lists",
            "dag.yaml:9: job G: for_each has 2 lists",
            "dag.yaml:10: job H: parameter p uses ${item} without a list; add for_each to the job",
        ],
    ),
    (
        "defaults: {type: HANDLER}\njobs:\n  A: {executor: {app: pay, handler: h}}\n  B: {executor: {handler: h}}\n  C: {executor: {app: pay-x, handler: h, route: FAILVER, block: WAIT, send: xml, rout: x}}\n  D: {executor: {app: pay-x}}\n  E: {executor: {app: pay-x, handler: h, language: shell}}\n  F: {executor: {app: pay-x, language: shell}}\n  G: {executor: {app: pay-x, handler: h, send: text}}\n  H: {executor: {app: pay-x, handler: h, send: text}, params: [{name: a, value: x}, {name: b, value: y}]}\n  I: {executor: {app: pay-x, handler: h}, script: ls}\n  J: {executor: pay-x}\n  K: {}\n  L: {type: NOOP, executor: {app: pay-x, handler: h}}\n",
        &[
            "dag.yaml:3: job A: executor: app: appname 'pay' is not usable: use 4 to 64 ASCII letters",
            "dag.yaml:3: job A is of type HANDLER and has no executor",
            "dag.yaml:4: job B: executor names no app; add app: the appname that the executors register under",
            "dag.yaml:4: job B is of type HANDLER and has no executor",
            "dag.yaml:5: job C: executor: route is \"FAILVER\"; did you mean FAILOVER? otherwise use one of FIRST, LAST",
            "dag.yaml:5: job C: executor: block is \"WAIT\"; use one of SERIAL_EXECUTION, DISCARD_LATER, COVER_EARLY",
            "dag.yaml:5: job C: executor: send is \"xml\"; use one of json, text, none",
            "dag.yaml:5: job C: executor has an unknown key rout; did you mean route?",
            "dag.yaml:6: job D is of type HANDLER, and its executor has no handler; add handler:",
            "dag.yaml:7: job E is of type HANDLER, which sends no script; remove language, or change the type to GLUE",
            "dag.yaml:8: job F is of type HANDLER, which sends no script; remove language, or change the type to GLUE",
            "dag.yaml:8: job F is of type HANDLER, and its executor has no handler",
            "dag.yaml:9: job G: send: text sends the text of one parameter, and the job has 0; give the job one",
            "dag.yaml:10: job H: send: text sends the text of one parameter, and the job has 2; give the job one",
            "dag.yaml:11: job I is of type HANDLER, which has no script; remove script, or change the type to SCRIPT or GLUE",
            "dag.yaml:12: job J: executor is a single value, not a map",
            "dag.yaml:12: job J: executor names no app",
            "dag.yaml:12: job J is of type HANDLER and has no executor",
            "dag.yaml:13: job K is of type HANDLER and has no executor; add executor",
            "dag.yaml:14: job L is of type NOOP, which has no executor; remove executor, or change the type to HANDLER or GLUE",
        ],
    ),
    (
        "defaults: {type: GLUE}\nsecrets: {S: {env: S}}\njobs:\n  A: {executor: {app: pay-x, language: bash}, script: ls}\n  B: {executor: {app: pay-x, language: shell, handler: h}, script: ls}\n  C: {executor: {app: pay-x, language: shell}}\n  D: {executor: {app: pay-x, language: shell}, script: ls, params: [{name: a, value: '${secret.S}'}, {name: b, required: true, secret: true}]}\n  E: {executor: {app: pay-x, language: PYTHON, send: none, block: cover_early, route: round}, script: ls, interpreter: sh}\n  F: {executor: {app: pay-x, language: shell}, script: ls, script_file: a.sh}\n",
        &[
            "dag.yaml:4: job A: executor: language is \"bash\"; use one of groovy, shell, python",
            "dag.yaml:4: job A is of type GLUE, and its executor has no language",
            "dag.yaml:5: job B is of type GLUE, which sends a script; remove handler, or change the type to HANDLER",
            "dag.yaml:6: job C is of type GLUE and has no script or script_file",
            "dag.yaml:7: job D: parameter a is secret, and what is sent to an executor is stored as it is; remove it",
            "dag.yaml:7: job D: parameter b is secret",
            "dag.yaml:8: job E is of type GLUE, which has no interpreter",
            "dag.yaml:9: job F has both script and script_file; keep one of the two",
        ],
    ),
    (
        "jobs:\n  A: {type: APPROVAL}\n  B: {type: APPROVAL, approval: {four_eyes: false}}\n  C: {type: APPROVAL, approval: {role: boss}}\n  D: {type: APPROVAL, approval: {users: ['a b'], permission: run}}\n  E: {type: NOOP, approval: {role: admin}}\n  F: {type: APPROVAL, approval: {roles: admin, permission: run}}",
        &[
            "job A is of type APPROVAL and has no approval; add approval",
            "dag.yaml:3: job B: approval names nobody who may approve; add role: operator",
            "dag.yaml:4: job C: approval: role is \"boss\"; use one of viewer, operator, author, admin",
            "dag.yaml:4: job C: approval names nobody who may approve",
            "dag.yaml:5: job D: approval: users has \"a b\"; a user name has 1 to 64",
            "dag.yaml:6: job E is of type NOOP, which has no approval; remove approval, or change the type to APPROVAL",
            "dag.yaml:7: job F: approval has an unknown key roles; did you mean role?",
        ],
    ),
];

#[test]
fn further_kinds_of_jobs() {
    let mut odd = Vec::new();
    for (text, wanted) in KINDS_FAULTS {
        let mut found = faults(text);
        for part in *wanted {
            match found.iter().position(|fault| fault.contains(part)) {
                Some(at) => drop(found.remove(at)),
                None => odd.push(format!("missing: {part}")),
            }
        }
        odd.extend(found.into_iter().map(|fault| format!("unwanted: {fault}")));
    }
    assert!(odd.is_empty(), "{odd:#?}");
}

#[test]
fn what_the_further_kinds_mean_round_trips_as_json() {
    let text = "
hosts:
  plain: https://h
  core: { base_url: https://h/api, headers: { Authorization: 'Bearer ${secret.TOKEN}' }, max_parallel: 2 }
sources: { s: { url: 'sqlite:x' } }
groups: { g: {}, other: {} }
defaults: { group: g }
jobs:
  FIND: { type: NOOP }
  CALL: { type: HTTP, http: { host: core, method: post, path: '/x/{a}', send: json, expect_status: [200, 404] }, params: [{ name: a, value: '${item}' }], for_each: [x, y] }
  ASK: { type: SENSOR, source: s, sql: SELECT 1 }
  SUB: { type: BATCH, sub_batch: { group: other, batch: 'month(-1)' }, for_each: { param: p, max_parallel: 3 } }
  MANY: { type: NOOP, depends_on: [FIND], for_each: { output: FIND.rows } }
  PAY: { type: HANDLER, executor: { app: pay-executor, handler: payHandler, send: text, route: failover, block: COVER_EARLY }, params: [{ name: a, value: '${item}' }], for_each: [x, y] }
  CLEAN: { type: GLUE, executor: { app: pay-executor, language: python }, script: 'print(1)' }
  RELEASE: { type: APPROVAL, approval: { role: operator, users: [Li.Na], question: 'Post it?' } }
  SIGN: { type: APPROVAL, approval: { permission: force, four_eyes: false } }
  O: { type: NOOP, group: other }
";
    let first = load_files("dag.yaml", &[("dag.yaml", text)]).unwrap_or_else(|f| panic!("{f}"));
    let job = |code: &str| {
        first.definition.jobs.iter().find(|j| j.code.as_str() == code).expect("job").clone()
    };
    assert_eq!(job("CALL").http.expect("call").method, "POST");
    assert_eq!(job("ASK").sensor.expect("sensor").poll_sec, 30);
    assert_eq!(job("SUB").sub_batch.expect("batch").batch.to_string(), "month(-1)");
    let pay = job("PAY").executor.expect("executor");
    assert_eq!((pay.route, pay.block), (RouteStrategy::Failover, BlockStrategy::Cover));
    let clean = job("CLEAN").executor.expect("executor");
    assert_eq!((clean.language, clean.send), (Some(GlueLanguage::Python), ExecutorSend::Json));
    let release = job("RELEASE").approval.expect("approval");
    assert_eq!((release.role, release.users[0].as_str()), (Some(Role::Operator), "li.na"));
    assert!(release.four_eyes && !job("SIGN").approval.expect("approval").four_eyes);
    let json = serde_json::to_string(&first.definition).expect("JSON");
    let again = load_files("dag.json", &[("dag.json", &json)]).unwrap_or_else(|f| panic!("{f}"));
    assert_eq!(again.definition, first.definition);
    let yaml =
        export(&first.definition, KINDS, DefinitionFormat::Yaml).unwrap_or_else(|f| panic!("{f}"));
    let wanted = "app: pay-executor\n      language: python\n";
    assert!(yaml.contains(wanted), "{yaml}");
}

/// Parameters of the job A, which depends on B and not on X.
const PARAMETERS: &[Case] = &[
    ("{name: a}\n      - {name: A}", &["dag.yaml:12: job A: parameter A is given twice"]),
    ("{name: 1a}", &["dag.yaml:11: job A: parameter 1a has a name that cannot be bound"]),
    ("{value: x}", &["job A: a parameter without name"]),
    ("{name: a, kind: out}", &["a parameter has an unknown key kind"]),
    ("{name: a, mode: back}", &["parameter a: mode is \"back\"; use one of in, out, inout"]),
    ("{name: a, type: number}", &["type is \"number\"; use one of text, int"]),
    (
        "{name: a, value: '${env.HOME}'}",
        &["job A: parameter a: ${env.HOME} is not known; use ${batch_no}"],
    ),
    ("{name: a, value: '${batch_no'}", &["'${' without '}'"]),
    (
        "{name: a, type: int, value: 1.5}",
        &["parameter a: \"1.5\" is not a whole number (int); change"],
    ),
    ("{name: a, type: date, value: 31.07.2024}", &["is not a date"]),
    ("{name: a, mode: out, value: 1}", &["parameter a is out, so its value would never be used"]),
    (
        "{name: a, value: '${jobs.X.n}'}",
        &[
            "job A: parameter a uses an output of X, which does not run before it; add X to its depends_on",
        ],
    ),
    ("{name: a, value: '${jobs.A.n}'}", &["uses an output of A, which does not run before it"]),
    ("{name: a, value: '${jobs.Y.n}'}", &["uses an output of Y, which is not defined"]),
    (
        "{name: a, value: '${jobs.B.}'}",
        &["parameter a uses an output of B without its name; write ${jobs.B.NAME}"],
    ),
    ("{name: a, value: '${jobs.B.n}'}", &[]),
    ("{name: a, mode: out, type: int}", &[]),
];

#[test]
fn parameters() {
    let head = "sources: {led: {url: 'mysql://u@h/d'}}\ndefaults: {source: led}\njobs:\n  X: {type: NOOP}\n  B: {type: SQL, sql: SELECT 1 AS n}\n  A:\n    depends_on: [B]\n    type: PROC\n    proc_name: p\n    params:\n";
    for (params, wanted) in PARAMETERS {
        assert_faults(&format!("{head}      - {params}\n"), wanted);
    }
    assert_faults(
        "jobs: {A: {type: SCRIPT, script: x, interpreter: sh, params: [{name: a, mode: out}]}}",
        &["parameter a is handed back, which only procedures can do; remove mode"],
    );
    assert_faults(
        "jobs: {A: {type: SCRIPT, script: x, interpreter: sh, params: {a: 1}}}",
        &["job A: params is a map, not a list"],
    );
}

/// A source on line 2.
const SOURCES: &[Case] = &[
    (
        "{url: 'mysql://u:s3cret@h/d'}",
        &[
            "dag.yaml:2: source s: url holds a password, which everyone who reads the file would see; remove it, and name where it is: password_env",
        ],
    ),
    ("{url: 'postgres://u@h/d?password=s3cret'}", &["url holds a password"]),
    (
        "{url: 'postgres://u@h/d?options=-c%20x'}",
        &["url has the option \"options\", which is not allowed; remove it; allowed are ssl-mode"],
    ),
    ("{url: 'mysql://u@h/d?allowLoadLocalInfile=true&sslmode=x'}", &["allowLoadLocalInfile"]),
    (
        "{url: 'oracle://u:s3cret@h/d'}",
        &["url has the scheme \"oracle\", which is not supported; use sqlite:"],
    ),
    ("{url: month-end.db}", &["url has no scheme"]),
    ("{url: 'mysql:///d'}", &["names no host"]),
    ("{url: 'postgres://h:99999/d'}", &["url is not readable: invalid port number"]),
    ("{url: 'postgres://u@h/d#x'}", &["holds a '#'"]),
    ("{url: 'sqlite:'}", &["names no file"]),
    ("{url: 'sqlite:a.db?mode=rw&vfs=x'}", &["url has the option \"vfs\""]),
    ("{url: 'sqlite:a.db?mode=all'}", &["unknown mode"]),
    ("{password_env: P}", &["source s has no url"]),
    (
        "{url: 'mysql://u@h/d', password_env: P, password_file: /run/p}",
        &["both password_env and password_file"],
    ),
    (
        "{url: 'mysql://u@h/d', password_env: 's3cret!'}",
        &["password_env is not the name of an environment variable"],
    ),
    ("{url: 'sqlite:a.db', password_file: /run/p}", &["is SQLite, which has no password"]),
    ("{url: 'sqlite:a.db', procedures: {p: ''}}", &["procedure p is empty"]),
    ("{url: 'sqlite:a.db', procedures_file: no.yaml}", &["procedures_file no.yaml does not exist"]),
    ("{url: 'sqlite:a.db?mode=ro'}", &[]),
    ("{url: 'postgres://u@[::1]:5432/d?sslmode=verify-full', password_file: /run/p}", &[]),
];

#[test]
fn sources_hold_no_secret_and_no_odd_option() {
    for (source, wanted) in SOURCES {
        let text = format!("sources:\n  s: {source}\njobs: {{A: {{type: NOOP}}}}\n");
        assert_faults(&text, wanted);
        let said = faults(&text).join("\n");
        assert!(!said.contains("s3cret"), "a password is repeated: {said}");
    }
    assert_faults(
        "sources: {a b: {url: 'sqlite:x'}}\njobs: {A: {type: NOOP}}",
        &["source name 'a b' is not usable"],
    );
}

#[test]
fn a_source_that_may_be_spoken_to_in_clear_is_warned_of_at_its_line() {
    for (url, weakness) in [
        ("postgres://u@db.bank.example/books", None),
        ("postgres://u@db.bank.example/books?sslmode=verify-full", None),
        ("postgres://u@127.0.0.1/books?sslmode=disable", None),
        (
            "postgres://u@db.bank.example/books?sslmode=prefer",
            Some("may be in clear (sslmode=prefer)"),
        ),
        ("mysql://u@db.bank.example/books?ssl-mode=REQUIRED", Some("is not verified (ssl-mode=")),
    ] {
        let text = format!("sources:\n  s: {{url: '{url}'}}\njobs: {{A: {{type: NOOP}}}}\n");
        let loaded = load_files("dag.yaml", &[("dag.yaml", &text)]).expect(&text);
        let said: Vec<String> = loaded.warnings.iter().map(ToString::to_string).collect();
        let said: Vec<&String> = said.iter().filter(|line| line.contains("source s: ")).collect();
        assert_eq!(said.len(), usize::from(weakness.is_some()), "{url}: {said:?}");
        if let Some(weakness) = weakness {
            assert!(said[0].contains(weakness) && said[0].starts_with("dag.yaml:2:"), "{said:?}");
        }
    }
}

const WHOLE: &str = r#"
sources:
  ledger:
    url: sqlite:month-end.db
    max_parallel: 4
    procedures:
      sp_load_fx: SELECT 1
    procedures_file: sub/procedures.yaml
groups:
  month_end:
    name: Month-end close
    type: monthly
    owner: GL team
    notify_email: [gl-team@bank.example]
    max_parallel: 8
    time_zone: Asia/Shanghai
    params: { base_currency: CNY, rate: 007.10 }
defaults:
  group: month_end
  source: ledger
  type: PROC
  timeout_sec: 600
  retry_count: 2
  retry_delay_sec: 5
  idempotent: true
jobs:
  FX_LOAD:
    name: Load month-end FX rates
    proc_name: sp_load_fx
    schedule_time: 22:30
    params:
      - { name: p_batch_no, value: "${batch_no}" }
      - { name: p_rows, mode: out, type: int }
  GL_REVALUE:
    type: SQL
    depends_on: FX_LOAD
    transaction: each
    sql: |
      INSERT INTO journal VALUES (:batch_no);
    params:
      - { name: expected, type: int, value: "${jobs.FX_LOAD.p_rows}" }
  SETUP:
    type: SQL
    transaction: none
    sql_file: sub/setup.{dialect}.sql
    is_active: no
  REPORT:
    type: SCRIPT
    depends_on: [GL_REVALUE, SETUP]
    interpreter: sh
    script_file: sub/report.sh
    working_dir: /srv/reports
    tags: [close, report]
  CLOSED: { type: NOOP, depends_on: [REPORT], timeout_sec: 60 }
"#;

fn whole() -> Loaded {
    let files = [
        ("close/dag.yaml", WHOLE),
        ("close/sub/procedures.yaml", "sp_other: SELECT 2\n"),
        ("close/sub/setup.sqlite.sql", "CREATE TABLE t (a)"),
        ("close/sub/setup.mysql.sql", "CREATE TABLE t (a INT)"),
        ("close/sub/report.sh", "\u{FEFF}echo 月末\n"),
    ];
    load_files("close/dag.yaml", &files).unwrap_or_else(|faults| panic!("{faults}"))
}

#[test]
fn every_key_reaches_the_definition() {
    let Loaded { definition: d, warnings, places: _ } = whole();
    assert_eq!(warnings.len(), 1);
    assert_eq!(
        warnings[0].to_string(),
        "close/dag.yaml:49: job REPORT depends on SETUP, which is not active; activate it, or remove the dependency; a batch of this group will be refused"
    );
    assert_eq!(d.sources[0].procedures.len(), 2);
    assert_eq!(
        d.groups[0].params,
        [ParamDecl::plain("base_currency", "CNY"), ParamDecl::plain("rate", "007.10")]
    );
    assert_eq!(d.groups[0].batch_type.as_deref(), Some("monthly"));
    let [fx, gl, setup, report, closed] = &d.jobs[..] else { panic!("five jobs") };
    assert_eq!(fx.schedule_time.map(|t| t.to_string()).as_deref(), Some("22:30:00"));
    assert_eq!((fx.params[1].mode, fx.retry_count, fx.idempotent), (ParamMode::Out, 2, true));
    assert_eq!(gl.transaction, TransactionMode::Each);
    assert_eq!(gl.name, "GL_REVALUE");
    let Some(SqlText::Per(texts)) = &setup.sql else { panic!("a text per dialect") };
    assert_eq!(
        texts.keys().copied().collect::<Vec<_>>(),
        [DialectName::Sqlite, DialectName::Mysql]
    );
    assert!(!setup.is_active);
    assert_eq!(report.script.as_deref(), Some("echo 月末\n"));
    assert_eq!((&report.source, &closed.source), (&None, &None), "defaults of another type");
    assert_eq!(closed.timeout_sec, 60);
    let edges: Vec<String> = d
        .dependencies
        .iter()
        .map(|e| format!("{}<{} {}", e.job_code, e.depends_on, e.dependency_order))
        .collect();
    assert_eq!(
        edges,
        ["GL_REVALUE<FX_LOAD 1", "REPORT<GL_REVALUE 1", "REPORT<SETUP 2", "CLOSED<REPORT 1"]
    );
}

#[test]
fn a_definition_as_json_is_a_definition_file() {
    let first = whole().definition;
    let json = serde_json::to_string_pretty(&first).expect("JSON").replace("  ", "\t");
    let again = load_files("x.json", &[("x.json", &json)]).unwrap_or_else(|f| panic!("{f}"));
    assert_eq!(again.definition, first);
}

#[test]
fn a_bare_file_has_one_group_and_uses_the_only_source() {
    let text =
        "sources: {a: {url: 'mysql://h/d', procedures: {x: y}}}\njobs: {A: {type: SQL, sql: x}}\n";
    let loaded = load_files("dag.yml", &[("dag.yml", text)]).unwrap_or_else(|f| panic!("{f}"));
    assert_eq!(loaded.definition.groups[0].code.as_str(), "default");
    assert_eq!(loaded.definition.jobs[0].source.as_ref().map(|s| s.as_str()), Some("a"));
    assert!(loaded.warnings[0].what.contains("used on SQLite only"));
    let text = "groups:\n  g:\n  h:\ndefaults: {group: g}\njobs: {A: {type: NOOP}}\n";
    let loaded = load_files("dag.yml", &[("dag.yml", text)]).unwrap_or_else(|f| panic!("{f}"));
    assert_eq!(
        loaded.warnings[0].to_string(),
        "dag.yml:3: group h has no job; give it one or remove it"
    );
}

const JOBS: &str = "\u{FEFF}JOB_ID,Job_Code,job_name,proc_name,job_type,schedule_time,status,timeout_sec,retry_count,notify_email,is_depend,is_active,last_run_time,next_run_time,create_time,update_time,group_code,sql,params,tags\r\n\
1,FX,\"Load, FX\",sp_fx,,22:30:00,ok,600,,a@b.example; c@d.example,0,1,,,2024-01-01,,close,,\"[{name: p, value: \"\"007\"\"}]\",x;y\r\n\
2,GL,,,SQL,NULL,,,3,,1,,,,,,close,\"SELECT 1;\nSELECT 2\",,\r\n\
3,END,,,NOOP,,,,,,,0,,,,,close,,,\r\n";

#[test]
fn a_pair_of_csv_files_beside_sources() {
    let sources = ("m/sources.yaml", "sources: {led: {url: 'mysql://u@h/d'}}\n");
    let edges =
        ("m/job_dependency.csv", "id,job_code,depends_on,dependency_order\n1,GL,FX,7\n2,END,GL,\n");
    let files = [("m/job_def.csv", JOBS), edges, sources];
    for path in ["m/job_def.csv", "m/job_dependency.csv", "m"] {
        let loaded = load_files(path, &files).unwrap_or_else(|f| panic!("{f}"));
        assert_eq!(loaded.warnings, []);
        let d = loaded.definition;
        assert_eq!((d.groups.len(), d.groups[0].code.as_str()), (1, "close"));
        assert_eq!((d.jobs[0].name.as_str(), d.jobs[0].job_type.as_str()), ("Load, FX", "PROC"));
        assert_eq!(d.jobs[0].params[0].value.as_deref(), Some("007"));
        assert_eq!(d.jobs[0].notify_email, ["a@b.example", "c@d.example"]);
        assert_eq!(d.jobs[0].tags, ["x", "y"]);
        assert_eq!(d.jobs[1].retry_count, 3);
        assert!(!d.jobs[2].is_active);
        assert_eq!(d.dependencies[0].dependency_order, 7);
        assert_eq!(d.dependencies[1].dependency_order, 2);
    }
}

#[test]
fn faults_of_csv_name_the_line_of_the_record() {
    let jobs = "job_code,job_type,sql,timeout,timeout_sec,job_code\nA,SQL,\"x\ny\",,0,A\nB,NOOP,,,,\nB,NOOP,,,,\n,NOOP,,,,\nC,NOOP\nD,WHAT,,,,\n";
    let edges = "job_code,depends_on\nB,X\nB,A\n";
    let found = load_files("job_def.csv", &[("job_def.csv", jobs), ("job_dependency.csv", edges)]);
    let found = found.expect_err("faulty").to_string();
    for wanted in [
        "job_def.csv:1: unknown column \"timeout\"; ",
        "job_def.csv:1: column job_code occurs twice",
        "job_def.csv:2: job A: timeout_sec is \"0\"",
        "job_def.csv:2: job A is of type SQL and has no source",
        "job_def.csv:5: job B is defined twice, first on line 4",
        "job_def.csv:6: a job without code",
        "job_def.csv:7: this record has 2 cells and the header 6",
        "job_def.csv:8: job D: type WHAT does not exist",
        "job_dependency.csv:2: job B depends on X, which is not defined",
    ] {
        assert!(found.contains(wanted), "wanted {wanted}\nfound\n{found}");
    }
    assert_eq!(found.lines().count(), 9, "{found}");
    for (path, wanted) in [
        (
            "nothing",
            "nothing/job_def.csv: this file does not exist; create it or correct the path; a definition is",
        ),
        ("no.yaml", "no.yaml: this file does not exist"),
        ("a.csv", "a.csv: this file does not exist"),
    ] {
        let found = load_files(path, &[]).expect_err(path).to_string();
        assert!(found.starts_with(wanted), "{found}");
    }
    let alone = load_files("job_def.csv", &[("job_def.csv", "job_code,job_type\nA,NOOP\n")]);
    let alone = alone.unwrap_or_else(|f| panic!("{f}"));
    assert!(alone.warnings[0].to_string().contains("job_dependency.csv: this file does not exist"));
    let odd =
        load_files("m", &[("m/job_def.csv", "job_name\nx\n"), ("m/sources.yaml", "jobs: {}\n")]);
    let odd = odd.expect_err("faulty").to_string();
    assert!(odd.contains("m/job_def.csv:1: there is no column job_code"), "{odd}");
    assert!(odd.contains("m/sources.yaml:1: jobs is not for sources.yaml"), "{odd}");
}

#[test]
fn five_thousand_jobs_are_read_whole() {
    let mut text = String::from("defaults: {type: NOOP}\njobs:\n");
    for i in 0..5_000 {
        text.push_str(&format!("  J{i}:\n    name: Job {i}\n    timeout_sec: 60\n"));
        if i > 0 {
            text.push_str(&format!(
                "    depends_on: [J{}, J{}]\n",
                i - 1,
                if i > 1 { i / 2 - 1 } else { i + 1 }
            ));
        }
    }
    let found = load_files("dag.yaml", &[("dag.yaml", &text)]).expect_err("J1 waits for J2");
    assert_eq!(found.as_slice().len(), 1, "{found}");
    let text =
        text.replace("[J0, J2]", "[J0]").replace("[J1, J0]", "[J1]").replace("[J2, J0]", "[J2]");
    let loaded = load_files("dag.yaml", &[("dag.yaml", &text)]).unwrap_or_else(|f| panic!("{f}"));
    assert_eq!(loaded.definition.jobs.len(), 5_000);
}

#[test]
fn aliases_are_for_saving_lines_and_not_for_bombs() {
    let mut text = String::from("jobs:\n  J: {type: NOOP, tags: &t [a, b]}\n");
    (0..300).for_each(|i| text.push_str(&format!("  J{i}: {{type: NOOP, tags: *t}}\n")));
    let loaded = load_files("a.yaml", &[("a.yaml", &text)]).unwrap_or_else(|f| panic!("{f}"));
    assert_eq!(loaded.definition.jobs[300].tags, ["a", "b"]);
    let mut bomb = String::from("a0: &a0 [x, x]\n");
    (1..30).for_each(|i| bomb.push_str(&format!("a{i}: &a{i} [*a{0}, *a{0}]\n", i - 1)));
    assert_faults(
        &bomb,
        &["more than 400000 values repeated by aliases (*name); write fewer aliases"],
    );
    let found = faults(&bomb);
    assert!(
        !found[0].contains("limits."),
        "no setting holds the limits of a file of ours: {found:?}"
    );
}

proptest! {
    /// Any file content gives either a definition or a list of faults.
    #[test]
    fn no_text_panics(text: String, csv in "[a-z_,\"\n;]{0,80}") {
        let _ = load_files("a.yaml", &[("a.yaml", &text)]);
        let _ = load_files("a.csv", &[("a.csv", &text), ("job_dependency.csv", &text)]);
        let csv = format!("job_code,depends_on,params\n{csv}");
        let _ = load_files("a.csv", &[("a.csv", &csv), ("job_dependency.csv", &csv)]);
    }

    /// Nearly valid text reaches every check.
    #[test]
    fn no_nearly_right_text_panics(
        keys in prop::collection::vec("type|sql|params|depends_on|source|proc_name|tags|schedule_time|group", 0..5),
        values in prop::collection::vec("NOOP|SQL|PROC|\\[A, B\\]|\\{a: b\\}|\\[\\{name: x, value: '\\$\\{jobs.A.x\\}'\\}\\]|~|-1|2:3|[ -~]{0,6}", 5),
    ) {
        let lines: String = keys.iter().zip(&values).map(|(k, v)| format!("    {k}: {v}\n")).collect();
        let text = format!("sources: {{s: {{url: 'sqlite:x'}}}}\njobs:\n  A:\n{lines}  B:\n{lines}");
        if let Err(faults) = load_files("a.yaml", &[("a.yaml", &text)]) {
            prop_assert!(!faults.as_slice().is_empty());
            prop_assert!(faults.as_slice().iter().all(|f| f.file == "a.yaml"));
        }
    }
}

// --- success rules and checks ------------------------------------------------------------------------

/// Faults of rules and checks.
const CHECKS: &[Case] = &[
    (
        "sources: {s: {url: 'sqlite:a'}}\njobs:\n  A:\n    type: SQL\n    sql: SELECT 1\n    success:\n      - rule: result_row == 0\n      - total > 1\n      - {rule: rows_affected >>= 1}\n      - {rule: result_rows == 1, else: fatel}\n      - {else: error}\n      - result_rows == 1\n      - exit_code == 0\n",
        &[
            "dag.yaml:7: job A: success rule: result_row is nothing that a job of type SQL hands back; did you mean result_rows? use rows_affected, result_rows or result.COLUMN",
            "dag.yaml:8: job A: success rule: total is nothing that a job of type SQL hands back; use",
            "dag.yaml:9: job A: success rule: condition, column 16: ",
            "dag.yaml:10: job A: success: else is \"fatel\"; use one of warning, error, fatal",
            "dag.yaml:11: job A: success: a rule is missing; add rule:",
            "dag.yaml:12: job A: success rule 'result_rows == 1' is given twice; keep one",
            "dag.yaml:13: job A: success rule: exit_code is nothing that a job of type SQL hands back; only scripts",
        ],
    ),
    (
        "sources: {s: {url: 'mysql://h/d'}}\ndefaults: {type: PROC, proc_name: p}\njobs:\n  A:\n    params: [{name: p_no, value: '1'}, {name: p_status, mode: out}]\n    success: [p_statsu == 0, p_no == 1, p_status == 0]\n  B: {type: NOOP, success: rows_affected == 1}\n  C: {type: SCRIPT, interpreter: sh, script: x, success: [rows_affected == 1, rows == 1, exit_code == 0]}\n",
        &[
            "dag.yaml:2: defaults has an unknown key proc_name",
            "dag.yaml:4: job A is of type PROC and has no proc_name",
            "dag.yaml:6: job A: success rule: p_statsu is nothing that a job of type PROC hands back; did you mean p_status?",
            "dag.yaml:6: job A: success rule: p_no is handed to the body and does not come back; use an OUT",
            "dag.yaml:7: job B: success rule: rows_affected is nothing that a job of type NOOP hands back; remove",
            "dag.yaml:8: job C: success rule: rows_affected is nothing that a job of type SCRIPT hands back; use exit_code",
        ],
    ),
    (
        "sources: {s: {url: 'sqlite:a'}, t: {url: 'mysql://h/d'}}\njobs:\n  A:\n    type: NOOP\n    checks:\n      - {name: a, sql: SELECT 1, expect: zero_rows}\n      - {name: b, source: u, sql: SELECT 1, expect: zero_rows}\n      - {name: c, source: s, sql: SELECT 1, expect: {between: [5, 1]}}\n      - {name: c, source: s, sql: SELECT 1, expect: zero_rows}\n      - {name: d, source: s, sql: SELECT 1, expect: {min: ten}}\n      - {name: e, source: s, sql: SELECT 1; SELECT 2, expect: zero_rows}\n      - {name: f, source: s, sql: 'SELECT :batchno', expect: zero_rows}\n      - {name: g, source: s, sql: {mysql: SELECT 1}, expect: zero_rows}\n      - {name: h, source: s, expect: zero_rows}\n      - {name: i, source: s, sql: SELECT 1}\n      - {source: s, sql: SELECT 1, expect: zero_rows}\n",
        &[
            "dag.yaml:6: job A: check a has no source; add source: to the check, one of s, t",
            "dag.yaml:7: job A: check b: source u is not defined; define it under sources",
            "dag.yaml:8: job A: check c: min 5 is greater than max 1; exchange the two",
            "dag.yaml:9: job A: check c is given twice; rename one of the two",
            "dag.yaml:10: job A: check d: expect: \"ten\" is not a number; write a plain decimal",
            "dag.yaml:11: job A: check e is 2 statements; write one query",
            "dag.yaml:12: job A: check f: :batchno is not among the job's parameters; did you mean batch_no? otherwise declare it, or use one of :batch_no",
            "dag.yaml:13: job A: check g has no SQL for sqlite, the dialect of source s; add the text for sqlite",
            "dag.yaml:14: job A: check h has no sql; add sql or sql_file",
            "dag.yaml:15: job A: check i expects nothing; add expect: use zero_rows",
            "dag.yaml:16: a check without name; add name:",
        ],
    ),
    (
        "sources: {s: {url: 'sqlite:a'}}\ndefaults:\n  checks:\n    - {name: a, sql: SELECT 1, expect: zero-rows}\njobs:\n  A:\n    type: NOOP\n    checks:\n      a: {sql: SELECT 1, expect: {between: [1, 2, 3]}}\n      b: {sql: SELECT 1, expect: {min: 1, drift: {max_percent: 1}}}\n      c: {sql: SELECT 1, expect: {drift: {max_percent: -1}}}\n      d: {sql: SELECT 1, expect: {equals: {sql: SELECT 1, source: x, tolerance: -0.1}}}\n      e: {sql: SELECT 1, expect: {equals: {sql: SELECT 1, tolerance: -0.1}}}\n      f: {sql: SELECT 1, expect: {drift: {}}}\n      g: {sql: SELECT 1, expect: {between: [~, ~]}}\n      h: {sql: SELECT 1, expect: [1], sqll: x}\n      i: {sql_file: no.sql, expect: zero_rows}\n",
        &[
            "dag.yaml:4: defaults: check a: expect is \"zero-rows\"; use zero_rows",
            "dag.yaml:9: job A: check a: expect: between is not a pair; write [min, max]",
            "dag.yaml:10: job A: check b: expect says several things; keep one",
            "dag.yaml:11: job A: check c: max_percent is -1; write 0 or a number above",
            "dag.yaml:12: job A: check d: equals: source x is not defined",
            "dag.yaml:13: job A: check e: equals: tolerance is -0.1",
            "dag.yaml:14: job A: check f: expect: drift has no max_percent; add",
            "dag.yaml:15: job A: check g: expect has no bound; write min, max or both",
            "dag.yaml:16: job A: check h has an unknown key sqll",
            "dag.yaml:16: job A: check h: expect is a list; use zero_rows",
            "dag.yaml:17: job A: check i: sql_file no.sql does not exist",
        ],
    ),
];

#[test]
fn faults_of_rules_and_checks() {
    for (text, wanted) in CHECKS {
        assert_faults(text, wanted);
    }
}

const JUDGED: &str = r#"
sources: {s: {url: "sqlite:a", procedures: {p: SELECT 1}}, t: {url: "mysql://h/d"}}
defaults:
  source: s
  success: { rule: p_status == 0, else: fatal, message: the procedure says no }
  checks: { tb: { sql: "SELECT 1 WHERE :p_rows > 0", expect: zero_rows, else: warning } }
jobs:
  A:
    type: PROC
    proc_name: p
    params: [{name: p_status, mode: out}, {name: p_rows, mode: out}]
  B: { type: NOOP }
  C:
    type: SCRIPT
    interpreter: sh
    script: exit 3
    success: ["exit_code in (0, 3)", { rule: exit_code == 0, else: warning }]
    checks:
      - { name: a, sql: SELECT 1, expect: { between: [~, 5.00] } }
      - { name: b, source: t, sql: "SELECT :batch_no", expect: { max: 7 } }
      - { name: c, sql: SELECT 1, expect: { equals: { source: t, sql: SELECT 1, tolerance: 0.01 } } }
      - { name: d, sql: { sqlite: SELECT 1, mysql: SELECT 2 }, expect: { drift: { max_percent: 10 } } }
"#;

#[test]
fn rules_and_checks_mean_what_they_say() {
    let loaded = load_files("dag.yaml", &[("dag.yaml", JUDGED)]).expect("sound");
    let [a, b, c] = &loaded.definition.jobs[..] else { panic!("three jobs") };
    let json = |value: serde_json::Result<String>| value.expect("JSON");
    // Defaults that do not apply to a job are meant for other jobs.
    assert_eq!(
        json(serde_json::to_string(&a.success)),
        r#"[{"rule":"p_status == 0","else":"fatal","message":"the procedure says no"}]"#
    );
    assert_eq!(
        json(serde_json::to_string(&a.checks)),
        r#"[{"name":"tb","sql":"SELECT 1 WHERE :p_rows > 0","expect":"zero_rows","else":"warning"}]"#
    );
    assert_eq!((b.success.len(), b.checks.len()), (0, 0));
    assert_eq!(
        json(serde_json::to_string(&c.success)),
        r#"[{"rule":"exit_code in (0, 3)","else":"error"},{"rule":"exit_code == 0","else":"warning"}]"#
    );
    let checks = [
        r#"{"name":"a","source":"s","sql":"SELECT 1","expect":{"between":{"max":"5.00"}},"else":"error"}"#,
        r#"{"name":"b","source":"t","sql":"SELECT :batch_no","expect":{"between":{"max":"7"}},"else":"error"}"#,
        r#"{"name":"c","source":"s","sql":"SELECT 1","expect":{"equals":{"source":"t","sql":"SELECT 1","tolerance":"0.01"}},"else":"error"}"#,
        r#"{"name":"d","source":"s","sql":{"sqlite":"SELECT 1","mysql":"SELECT 2"},"expect":{"drift":{"max_percent":"10"}},"else":"error"}"#,
    ];
    assert_eq!(json(serde_json::to_string(&c.checks)), format!("[{}]", checks.join(",")));
}

#[test]
fn rules_and_checks_that_are_written_out_are_read_back() {
    let loaded = load_files("dag.yaml", &[("dag.yaml", JUDGED)]).expect("sound");
    let text = serde_json::to_string(&loaded.definition).expect("JSON");
    let again = load_files("dag.json", &[("dag.json", &text)]).expect("sound again");
    assert_eq!(again.definition, loaded.definition);
}
