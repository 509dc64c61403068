//! Definitions of several files: includes, templates, aliases, owners, and the export to a file.

use super::{KINDS, assert_faults, load_files};
use crate::definition::schema_form::SchemaKey;
use crate::definition::schema_table::sections;
use crate::definition::{DefinitionFormat, Loaded, export, export_source};
use crate::domain::job::{Definition, JobDef, ParamMode, ParamType, SqlText};
use proptest::prelude::*;

fn loaded(files: &[(&str, &str)]) -> Loaded {
    load_files(files[0].0, files).unwrap_or_else(|faults| panic!("{faults}"))
}

fn job<'a>(defs: &'a Definition, code: &str) -> &'a JobDef {
    defs.jobs.iter().find(|j| j.code.as_str() == code).unwrap_or_else(|| panic!("no {code}"))
}

/// Asserts that exactly these faults are found in a definition of several files.
fn assert_faults_of(files: &[(&str, &str)], wanted: &[&str]) {
    let Err(found) = load_files(files[0].0, files) else { panic!("{files:?} is accepted") };
    let found: Vec<String> = found.as_slice().iter().map(ToString::to_string).collect();
    assert_eq!(found.len(), wanted.len(), "{found:#?}");
    for (found, wanted) in found.iter().zip(wanted) {
        assert!(found.contains(wanted), "wanted {wanted:?}\nfound  {found:?}");
    }
}

// --- includes --------------------------------------------------------------------------------------

#[test]
fn a_definition_of_several_files_is_one() {
    let root = "\
include: [shared/sources.yaml, gl/jobs.yaml, ./fx.json]
groups: {close: {owner: gl}}
defaults: {type: SQL, retry_count: 3, source: ledger}
jobs:
  - {code: A, sql: 'SELECT 1', depends_on: [GL_LOAD]}
";
    let sources = "\
sources:
  ledger: {url: 'sqlite:l.db', procedures_file: procs.yaml}
owners: {gl: {email: [gl@bank.example]}}
";
    // Found relative to the file that names them; a file included twice is read once.
    let jobs = "\
include: ../shared/sources.yaml
defaults: {type: SQL, timeout_sec: 60}
jobs: {GL_LOAD: {sql_file: load.sql, source: ledger}}
dependencies: [{job_code: GL_LOAD, depends_on: FX}]
";
    let fx = r#"{"jobs": {"FX": {"type": "PROC", "proc_name": "sp_fx", "source": "ledger"}}}"#;
    let found = loaded(&[
        ("dag.yaml", root),
        ("shared/sources.yaml", sources),
        ("shared/procs.yaml", "sp_fx: SELECT 1"),
        ("gl/jobs.yaml", jobs),
        ("gl/../shared/sources.yaml", sources),
        ("gl/load.sql", "SELECT 'gl'"),
        ("./fx.json", fx),
    ]);
    let defs = &found.definition;
    assert_eq!(found.warnings, []);
    let codes: Vec<&str> = defs.jobs.iter().map(|j| j.code.as_str()).collect();
    assert_eq!(codes, ["A", "GL_LOAD", "FX"]);
    assert_eq!(job(defs, "GL_LOAD").sql, Some(SqlText::Same("SELECT 'gl'".to_owned())));
    // The defaults of each file apply to its own jobs only.
    let said = |code: &str| (job(defs, code).retry_count, job(defs, code).timeout_sec);
    assert_eq!(said("A"), (3, 1_800));
    assert_eq!(said("GL_LOAD"), (0, 60));
    assert_eq!(said("FX"), (0, 1_800));
    assert_eq!(defs.dependencies.len(), 2);
    assert_eq!(defs.shared.owners[0].email, ["gl@bank.example"]);
}

#[test]
fn the_tables_may_have_included_company() {
    let found = loaded(&[
        ("job_def.csv", "job_code,template,group_code,aliases\nA,quiet,g,OLD;OLDER\n"),
        ("job_dependency.csv", "job_code,depends_on\n"),
        ("sources.yaml", "include: [more.yaml]\ntemplates: {quiet: {type: NOOP, priority: 7}}\n"),
        ("more.yaml", "groups: {g: {name: G}}\njobs: {B: {type: NOOP, depends_on: OLDER}}\n"),
    ]);
    let defs = &found.definition;
    assert_eq!((job(defs, "A").priority, defs.groups[0].name.as_str()), (7, "G"));
    assert_eq!(defs.dependencies[0].depends_on.as_str(), "A");
}

#[test]
fn faults_of_includes_name_the_file_and_the_line() {
    let a = "jobs: {A: {type: NOOP}}\n";
    assert_faults_of(
        &[("dag.yaml", "include:\n  - gone.yaml\n  - jobs.csv\n  - {}\njobs: {A: {type: NOOP}}\n")],
        &[
            "dag.yaml:2: include gone.yaml does not exist; create it or correct the path",
            "dag.yaml:3: include jobs.csv is neither YAML nor JSON; include a .yaml",
            "dag.yaml:4: include is a map, not a single value",
        ],
    );
    assert_faults_of(
        &[
            ("dag.yaml", "include: a/b.yaml\njobs: {A: {type: NOOP}}\n"),
            ("a/b.yaml", "include: [c.yaml]\n"),
            ("a/c.yaml", "\ninclude: [../dag.yaml]\n"),
        ],
        &[
            "a/c.yaml:2: these files include one another in a ring: dag.yaml -> a/b.yaml -> a/c.yaml -> dag.yaml; remove one",
        ],
    );
    assert_faults_of(
        &[("dag.yaml", &format!("include: [b.yaml]\n{a}")), ("b.yaml", "- 1\n")],
        &["b.yaml:1: this file is a list, not a map"],
    );
    // Faults of form and meaning in included files, and names defined in two files.
    assert_faults_of(
        &[
            ("dag.yaml", &format!("include: [b.yaml]\ngroups: {{g: }}\n{a}")),
            (
                "b.yaml",
                "jbos: {}\ngroups: {g: {}}\njobs:\n  A: {type: NOOP}\n  B: {type: NOPE, sql_file: gone.sql}\n  C:\n    type: NOOP\n    depends_on: [AA]\n",
            ),
        ],
        &[
            "b.yaml:1: the definition has an unknown key jbos; did you mean jobs?",
            "b.yaml:2: group g is defined twice, first in dag.yaml:2; rename",
            "b.yaml:4: job A is defined twice, first in dag.yaml:3; rename",
            "b.yaml:5: job B: type NOPE does not exist; types are PROC,",
            "b.yaml:8: job C depends on AA, which is not defined",
        ],
    );
    assert_faults_of(
        &[
            ("dag.yaml", &format!("include: [b.yaml]\n{a}")),
            (
                "b.yaml",
                "jobs:\n  - {type: NOOP}\n  - 5\n  - {code: A, type: NOOP}\ndependencies: 3\n",
            ),
        ],
        &[
            "b.yaml:2: a job without a name; give it one",
            "b.yaml:3: a job is a single value, not a map",
            "b.yaml:4: job A is defined twice, first in dag.yaml:2",
            "b.yaml:5: dependencies is a single value, not a list",
        ],
    );
}

// --- templates -------------------------------------------------------------------------------------

#[test]
fn a_jobs_own_word_wins_over_its_templates_and_that_over_the_defaults() {
    let defs = loaded(&[(
        "dag.yaml",
        "\
sources: {s: {url: 'sqlite:x'}}
defaults: {type: SQL, timeout_sec: 10, priority: 1, retry_count: 1}
templates:
  base: {timeout_sec: 20, priority: 2, tags: [a, b], sql_file: gone.sql}
  load:
    template: base
    name: From a template
    priority: 3
    params:
      - {name: p_one, type: int, value: 1}
      - {name: p_two, type: date, value: 2024-07-31}
    depends_on: [FIRST]
jobs:
  FIRST: {type: NOOP}
  A: {template: load, sql: 'SELECT 1', priority: 4, tags: [c], timeout_sec: }
  B:
    template: load
    sql: SELECT 2
    params:
      - {name: extra, value: x}
      - {name: P_TWO, value: 2024-08-31, required: true}
",
    )])
    .definition;
    let (a, b) = (job(&defs, "A"), job(&defs, "B"));
    assert_eq!((a.priority, a.timeout_sec, a.retry_count), (4, 20, 1));
    assert_eq!((b.priority, b.timeout_sec, b.retry_count), (3, 20, 1));
    assert_eq!((a.name.as_str(), &a.tags[..]), ("From a template", &["c".to_owned()][..]));
    // The job's own text replaces the template's file, which does not even exist.
    assert_eq!(a.sql, Some(SqlText::Same("SELECT 1".to_owned())));
    let names = |job: &JobDef| -> Vec<String> {
        job.params
            .iter()
            .map(|p| format!("{}={}", p.name, p.value.as_deref().unwrap_or("-")))
            .collect()
    };
    assert_eq!(names(a), ["p_one=1", "p_two=2024-07-31"]);
    assert_eq!(names(b), ["p_one=1", "P_TWO=2024-08-31", "extra=x"]);
    assert_eq!((b.params[1].ty, b.params[1].mode), (ParamType::Date, ParamMode::In));
    assert!(bool::from(b.params[1].need));
    assert_eq!(defs.dependencies.len(), 2);
}

#[test]
fn faults_of_templates_are_reported_once() {
    assert_faults(
        "\
templates:
  a: {timeout_sec: soon, colour: red, code: X, type: NOOP}
  b: {template: c}
  c: {template: b}
  d: {template: aa}
  e: 5
jobs:
  A: {template: a}
  B: {template: a}
  C: {template: loda, type: NOOP}
  D: {template: [a], type: NOOP}
",
        &[
            "dag.yaml:2: template a: timeout_sec is \"soon\"; use a whole number",
            "dag.yaml:2: template a has an unknown key colour",
            "dag.yaml:2: template a has a code, which belongs to one job; remove it",
            "dag.yaml:4: these templates extend one another in a ring: b -> c -> b; remove one",
            "dag.yaml:5: template d: template aa is not defined; define it under templates",
            "dag.yaml:6: template e is a single value, not a map",
            "dag.yaml:10: job C: template loda is not defined; define it under templates",
            "dag.yaml:11: job D: template is a list, not a single value",
        ],
    );
    assert_faults(
        "templates: {load: {type: NOOP}}\njobs:\n  A: {template: laod}\n",
        &[
            "dag.yaml:3: job A: template laod is not defined; did you mean load? otherwise define it",
            "dag.yaml:3: job A has no type",
        ],
    );
}

// --- aliases ---------------------------------------------------------------------------------------

#[test]
fn an_alias_is_as_good_as_the_code() {
    let text = "\
groups: {g: , h: }
sources: {s: {url: 'mysql://u@h/d'}}
defaults: {group: g, type: SQL, source: s}
jobs:
  GL_LOAD: {type: PROC, proc_name: p, aliases: [OLD, OLDER], params: [{name: o, mode: out}]}
  B: {sql: x, depends_on: [OLD], params: [{name: v, value: 'a ${jobs.OLDER.o}'}]}
  C: {sql: x, group: h, depends_on: [{job: OLD, group: g, batch: prev}]}
  D: {sql: x}
dependencies: [{job_code: OLDER, depends_on: D}]
";
    let defs = loaded(&[("dag.yaml", text)]).definition;
    let edges: Vec<String> =
        defs.dependencies.iter().map(|d| format!("{} <- {}", d.job_code, d.depends_on)).collect();
    assert_eq!(edges, ["B <- GL_LOAD", "GL_LOAD <- D"]);
    assert_eq!(job(&defs, "B").params[0].value.as_deref(), Some("a ${jobs.GL_LOAD.o}"));
    let outside = defs.externals[0].depends_on.as_ref().map(|c| c.as_str());
    assert_eq!(outside, Some("GL_LOAD"));
    let aliases: Vec<&str> = job(&defs, "GL_LOAD").aliases.iter().map(|a| a.as_str()).collect();
    assert_eq!(aliases, ["OLD", "OLDER"]);
}

#[test]
fn faults_of_aliases() {
    assert_faults(
        "\
defaults: {type: NOOP}
jobs:
  A: {aliases: [A, B, X, 'a b']}
  B: {aliases: X}
",
        &[
            "dag.yaml:3: job A: alias A is its own code; remove it",
            "dag.yaml:3: job A: alias B is the code of another job; choose another alias",
            "dag.yaml:3: job A: alias: job code 'a b' is not usable",
            "dag.yaml:4: job B: alias X is an alias of job A already; an alias names one job",
        ],
    );
    assert_faults(
        "defaults: {type: NOOP}\njobs:\n  A: {aliases: X}\n  B: {depends_on: [A, X]}\n",
        &["dag.yaml:4: job B lists its dependency on A twice"],
    );
}

// --- owners ----------------------------------------------------------------------------------------

#[test]
fn owners_that_are_declared_are_meant() {
    let files = |owners: &str| {
        format!(
            "{owners}groups: {{g: {{owner: GL team}}}}\ndefaults: {{type: NOOP, owner: fx_taem}}\njobs:\n  A:\n    owner: nobody\n"
        )
    };
    let free = files("");
    let defs = loaded(&[("dag.yaml", &free)]).definition;
    assert_eq!(job(&defs, "A").owner.as_deref(), Some("nobody"));
    assert_faults(
        &files("owners: {fx_team: {email: 'a@b.c, d@e.f'}, g: }\n"),
        &[
            "dag.yaml:2: group g: owner GL team is not defined; define it under owners",
            "dag.yaml:3: defaults: owner fx_taem is not defined; did you mean fx_team? otherwise define",
            "dag.yaml:6: job A: owner nobody is not defined; define it under owners",
        ],
    );
    assert_faults(
        "owners: {o: {mail: x, email: [nobody]}, 'x\ty': }\njobs: {A: {type: NOOP}}\n",
        &[
            "dag.yaml:1: owner o has an unknown key mail; did you mean email?",
            "dag.yaml:1: owner o: \"nobody\" is not an e-mail address",
            "dag.yaml:1: owner \"x\\ty\" is not a short line of text",
        ],
    );
}

// --- export ----------------------------------------------------------------------------------------

/// Every form of every key.
const RICH: &str = r##"
pools: {ORA: 4, SAP: {slots: 1}}
secrets: {PW: {env: PW}, K: {file: /run/k}, S: {sealed: "v1:abc"}}
params: {rate: {type: decimal, value: 7.10, required: true}, url: 2024-07-31, base: CNY}
hosts: {api: {base_url: 'https://api.bank.example/v1', ui_url: 'https://ui.bank.example', headers: {Authorization: 'Bearer ${secret.PW}'}, max_parallel: 2}, bare: 'https://bare.bank.example'}
owners: {gl: {name: 总账组, email: [gl@bank.example], lang: zh}, fx: }
sources:
  zeta: {url: 'sqlite:z.db', max_parallel: 3, procedures: {sp: "SELECT 1;\nSELECT 2;\n"}}
  alpha: {url: 'mysql://u@h/d', password_env: PW, owner_group: month, groups: [day]}
  omega: {url: 'postgres://u@h/d', password_file: /run/pw}
  theta: {url: 'postgres://u@h/e', password_secret: PW}
groups:
  month: {name: 月结, type: monthly, owner: gl, max_parallel: 2, on_failure: stop, batch_timeout_sec: 90, warn_after_sec: 60, params: {z: 007, a: "no", m: {type: int, value: 3, required: true}}}
  day: {time_zone: Asia/Shanghai, due: workday(+2) 08:00, slow_after: 2, held_after_sec: 3600, notify_email: [a@b.c, 'channel:ops'], notify: {failed: now, timeout: batch,
      unknown: day, parked: off, retried: day, kill_unconfirmed: now, tx_breach: now, checks_warned: off, recovered: day,
      held_long: now, late_start: now, running_long: off, late_finish: now, will_be_late: day, approval_wanted: now, batch_long: off,
      batch_timeout: now, batch_done: batch, batch_warned: now, batch_failed: now, batch_recovered: now}, params: {a: 1, b: {secret: true}}}
jobs:
  Z: {group: month, type: PROC, source: zeta, proc_name: sp, owner: fx, aliases: [ZZ],
      params: [{name: p, mode: inout, type: int, value: 1}, {name: q, mode: out}, {name: t, value: '${secret.PW}', required: true, secret: true}]}
  A: {group: month, type: SQL, source: alpha, transaction: each, depends_on: [Z],
      sql: "-- 月末\nSELECT 'it''s';\r\n", trigger_rule: none_failed, tags: [x, y]}
  R: {group: month, type: SQL, source: alpha, sql: SELECT 1, params: [{name: v, value: x}],
      success: [rows_affected > 0, {rule: result.n == 1, else: fatal, message: 不平}],
      checks: {
        a: {sql: SELECT 1, expect: zero_rows, else: warning},
        b: {source: zeta, sql: {sqlite: SELECT 2}, expect: {between: [~, 1.50]}},
        d: {sql: SELECT 2, expect: {min: 007, max: 9}},
        c: {sql: SELECT 3, expect: {equals: {source: zeta, sql: "SELECT 4\nFROM x\n", tolerance: 0.01}}},
        e: {sql: SELECT 5, expect: {drift: {max_percent: 10}}}}}
  L: {group: month, type: NOOP, pools: {ORA: 2}, locks: [GL, {lock: FX, mode: shared}],
    lineage: {reads: [fx_rate], writes: ["journal_line[journal_code=AP|AR]"], opaque: accepted, ignore: [etl_log]}, retry_count: 3, retry_delay_sec: 2,
      retry: {backoff: 1.5, max_delay_sec: 60, jitter: 0.2, on: [deadlock], on_sqlstate: ["40001"], never_on_sqlstate: ["23"]}}
  X: {group: month, type: PROC, source: alpha, proc_name: sp, tx: ledger}
  Y: {group: month, type: SCRIPT, interpreter: sh, script: 'true', on_unknown: fail, worker: etl}
  P: {group: month, type: SQL, source: alpha, schedule_time: "22:30", is_active: false,
      sql: {sqlite: "SELECT 1", mysql: "\tSELECT `x`\n\n"}, priority: -3, idempotent: true}
  S: {group: day, type: SCRIPT, interpreter: sh, script: "#!/bin/sh\n  echo \"$x\"  \n",
      working_dir: /tmp/a b, timeout_sec: 5, retry_count: 2, retry_delay_sec: 9,
      depends_on: [{group: month, batch: prev, missing: pass, wait_sec: 60}, {job: A, group: month}]}
  T: {group: day, type: NOOP, if: 'S.n > 0', notify_email: x@y.z, depends_on: [S, {job: U, when: 'rows > 1'}]}
  U: {group: day, type: NOOP, name: "U: 'u' #1", timeout_sec: 60, warn_after_sec: 30, start_by: 1h30m, due: '+1d 08:00', slow_after: 1.25}
  "007": {group: day, type: NOOP}
  "NO": {group: day, type: NOOP, depends_on: ["007"], aliases: ["1e3"]}
  H: {group: day, type: HTTP, params: [{name: a, value: x}],
      http: {host: api, method: POST, path: '/post/{a}', headers: {X-Who: '{a}'}, send: json, expect_status: [200, 202]}}
  W: {group: day, type: SENSOR, source: zeta, sql: SELECT 1, sensor: {poll_sec: 5}}
  B: {group: day, type: BATCH, sub_batch: {group: month, batch: prev}}
  PAY: {group: day, type: HANDLER, params: [{name: a, value: x}],
      executor: {app: pay-executor, handler: payHandler, send: text, route: ROUND, block: COVER_EARLY}}
  CLEAN: {group: day, type: GLUE, script: ls, executor: {app: pay-executor, language: shell}}
  FL: {group: day, type: FLINK, params: [{name: a, value: x}], application: {host: api, file: /srv/a.jar, main_class: bank.A,
      args: [--day, '{a}'], conf: {execution.runtime-mode: BATCH}, parallelism: 4, poll_sec: 9}}
  SP: {group: day, type: SPARK, application: {master: yarn, spark_home: /opt/spark, file: /srv/a.jar, main_class: bank.A,
      jars: [/srv/b.jar], driver_memory: 1g, driver_cores: 2, executor_memory: 2g, executor_cores: 3, queue: eom}}
  PY: {group: day, type: SPARK, application: {host: api, file: /srv/a.py, py_files: [/srv/b.zip], max_cores: 8}}
  OK: {group: day, type: APPROVAL, approval: {role: author, permission: force, users: [li.na, wang], four_eyes: no, question: "Post: 'it'?"}}
  E: {group: day, type: NOOP, for_each: [SH, "007"]}
  F: {group: day, type: NOOP, depends_on: [S], for_each: {output: S.list, max_parallel: 2}}
  G: {group: day, type: NOOP, for_each: {items: {param: a}}}
dependencies: [{job_code: U, depends_on: S, dependency_order: 7}]
schedules:
  LAST: {name: 季末, type: monthly, batch_no: quarter(0), rule: last working day of quarter, at: "18:00", calendar: cn,
      shift: previous, time_zone: Asia/Shanghai, start: 2026-01-01, end: "2030-01-01T08:00", misfire: {newest: 3}, misfire_window_sec: 60,
      overlap: replace, retry_count: 0, retry_delay_sec: 5, timeout_sec: 7, notify_email: [a@b.c], owner: fx, paused: true,
      params: {d: "${nominal_date}"}, business_date: 2024-07-31,
      blackouts: [{from: "2026-12-31T18:00", until: "2027-01-02", because: freeze}, {daily: "22:00-06:00", days: mon-fri}]}
  C: {group: day, batch_no: day(-1), cron: "0 0 2 * * ?"}
  I: {handler: noopHandler, every_sec: 5}
  D: {group: day, batch_no: "time(%Y%m%d-%H%M)", delay_sec: 600}
  O: {group: day, batch_no: adhoc, free_text: yes, once_at: 2026-12-31}
  E: {group: day, batch_no: adhoc, event: closed}
  M: {handler_param: '{"batchNo":"adhoc","group":"day"}', manual: yes}
  A: {group: day, batch_no: same, after: {group: month, on: end}, misfire: skip}
"##;

#[test]
fn what_is_exported_is_read_as_the_same() {
    let defs = loaded(&[("dag.yaml", RICH)]).definition;
    for format in [DefinitionFormat::Yaml, DefinitionFormat::Json] {
        let text = export(&defs, KINDS, format).unwrap_or_else(|e| panic!("{e}"));
        let name = if format == DefinitionFormat::Yaml { "dag.yaml" } else { "dag.json" };
        let again = loaded(&[(name, &text)]).definition;
        assert_eq!(export(&again, KINDS, format).expect("again"), text, "stable");
        assert_eq!(again.jobs, defs.jobs);
    }
}

#[test]
fn a_source_alone_is_written_as_in_a_whole_file() {
    let defs = loaded(&[("dag.yaml", RICH)]).definition;
    assert!(!defs.sources.is_empty());
    for source in &defs.sources {
        let text = export_source(source, DefinitionFormat::Yaml).expect("text");
        let jobs = "groups: {g: {}}\njobs: {A: {group: g, type: NOOP}}\n";
        let again = loaded(&[("dag.yaml", &format!("{text}{jobs}"))]).definition;
        assert_eq!(again.sources, vec![source.clone()], "{text}");
        let json = export_source(source, DefinitionFormat::Json).expect("text");
        let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
        assert_eq!(json.as_object().expect("a map").len(), 1, "{json}");
        assert!(json["sources"][source.name.as_str()]["url"].is_string(), "{json}");
    }
}

/// Keys of a file that a definition does not store, or stores under another name.
const NOT_KEPT: &[&str] = &[
    "include",
    "templates",
    "template",
    "defaults",
    "sql_file",
    "script_file",
    "procedures_file",
    "code",
    "fail_fast",
    "backoff",
    "jitter",
    "handler_param",
];

#[test]
fn every_key_is_exported() {
    let defs = loaded(&[("dag.yaml", RICH)]).definition;
    let text = export(&defs, KINDS, DefinitionFormat::Yaml).expect("text");
    for SchemaKey(key, ..) in sections().flat_map(|s| s.keys) {
        assert!(
            NOT_KEPT.contains(key)
                || text.contains(&format!("{key}: "))
                || text.contains(&format!("{key}:\n")),
            "no {key}: in what is exported; say it in RICH, so that its way out and back is tested"
        );
    }
}

#[test]
fn what_is_exported_is_short_and_readable() {
    let defs = loaded(&[("dag.yaml", RICH)]).definition;
    let text = export(&defs, KINDS, DefinitionFormat::Yaml).expect("text");
    for part in [
        "sources:\n  zeta:\n    url: sqlite:z.db\n    max_parallel: 3\n    procedures:\n      sp: |\n        SELECT 1;\n",
        "    params:\n    - {name: z, value: \"007\"}\n    - {name: a, value: \"no\"}\n",
        "    params:\n      a: \"1\"\n      b:\n        secret: true\n",
        "  T:\n    group: day\n    type: NOOP\n    depends_on:\n    - S\n    - {job: U, when: rows > 1}\n    if: S.n > 0\n",
        "    - {group: month, batch: prev, missing: pass, wait_sec: 60}\n",
        "    script: |\n      #!/bin/sh\n        echo \"$x\"  \n",
        "dependencies:\n- {job_code: U, depends_on: S, dependency_order: 7}\n",
    ] {
        assert!(text.contains(part), "{part}\nis not in\n{text}");
    }
    for part in ["timeout_sec: 1800", "transaction: one", "mode: in\n", "is_active: true", "null"] {
        assert!(!text.contains(part), "{part}\nis in\n{text}");
    }
}

#[test]
fn what_would_not_be_accepted_is_not_exported() {
    let mut defs = loaded(&[("dag.yaml", RICH)]).definition;
    let text =
        |defs: &Definition| export(defs, KINDS, DefinitionFormat::Yaml).map_err(|e| e.to_string());
    defs.jobs[0].owner = Some("free text".to_owned());
    let error = text(&defs).expect_err("an owner that is not declared");
    assert!(error.contains("job Z: owner free text is not defined"), "{error}");
    let error = text(&Definition::default()).expect_err("nothing");
    assert!(error.contains("no job is defined"), "{error}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn any_text_goes_out_and_comes_back(text: String, hard in "[ \\n\\r\\t:#'\"|>&*{}\\[\\],~\\\\a0月]{0,20}") {
        let mut defs = loaded(&[("dag.yaml", RICH)]).definition;
        for text in [text, hard] {
            // A text that would be refused as empty, or as a reference, could not have been stored.
            let (body, value) = (format!("{text};"), text.replace("${", "$ {"));
            for job in &mut defs.jobs {
                // A sensor has one query; not every text is one.
                if matches!(job.sql, Some(SqlText::Same(_))) && job.sensor.is_none() {
                    job.sql = Some(SqlText::Same(body.clone()));
                }
                if job.script.is_some() {
                    job.script = Some(body.clone());
                }
                if let Some(param) = job.params.iter_mut().find(|p| p.name == "v") {
                    param.value = Some(value.clone());
                }
            }
            defs.sources[0].procedures.insert("sp".to_owned(), body.clone());
            for format in [DefinitionFormat::Yaml, DefinitionFormat::Json] {
                let said = export(&defs, KINDS, format);
                prop_assert!(said.is_ok(), "{:?}", said.err().map(|e| e.to_string()));
            }
        }
    }
}
