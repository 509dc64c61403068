//! What the keys of a definition file mean, for editors: one entry per key of `keys.rs`.
//!
//! A test compares the two files both ways: a key that is read and not listed here is found, and so
//! is one that is listed and not read.

use crate::definition::keys::{
    DELAY_MAX, PARALLEL_MAX, PRIORITY_MAX, RETRIES_MAX, TIMEOUT_MAX, WAIT_MAX,
};
use crate::domain::job::BodyPart;

/// A map of known keys; `name` is the list in `keys.rs` in lower case.
pub(crate) struct Section {
    pub(crate) name: &'static str,
    pub(crate) keys: &'static [Key],
}

/// A key: its name, one sentence, and what its value may be.
pub(crate) struct Key(pub(crate) &'static str, pub(crate) &'static str, pub(crate) Form);

/// What a value may be.
pub(crate) enum Form {
    /// A single value.
    Text,
    /// A whole number.
    Int(i64, i64),
    /// A truth value.
    Flag,
    /// A time of day.
    Time,
    /// One of these words.
    Words(&'static [&'static str]),
    /// A job type.
    JobType,
    /// A list of single values, or one.
    Texts,
    /// Names and texts.
    NamedTexts,
    /// SQL: one text, or one per dialect.
    Sql,
    /// A list of maps of this section.
    List(&'static str),
    /// A list of single values or maps of this section, or one of either.
    Mixed(&'static str),
    /// Maps of this section by name, or a list of them with their names inside, under this key.
    By(&'static str, &'static str),
    /// The same; a single value may stand for the map.
    Short(&'static str, &'static str),
    /// One map of this section.
    Map(&'static str),
    /// What a job takes: names with single values, or a list of names or maps of this section.
    Uses(&'static str),
    /// One map of this section, or one of these words.
    OrWord(&'static str, &'static [&'static str]),
    /// One map of this section, or a list of two values.
    OrPair(&'static str),
}

use Form::{
    By, Flag, Int, JobType, List, Map, Mixed, NamedTexts, OrPair, OrWord, Short, Sql, Text, Texts,
    Time, Uses, Words,
};

const PARALLEL: Form = Int(1, PARALLEL_MAX as i64);
const TYPES: Form = Words(&["text", "int", "decimal", "date", "datetime", "bool"]);

const GRADES: Form = Words(&["warning", "error", "fatal"]);

/// The keys of jobs that belong to a part of the body; a type that does not understand the part
/// refuses them.
pub(crate) const PARTS: &[(BodyPart, &[&str])] = &[
    (BodyPart::Source, &["source"]),
    (BodyPart::ProcName, &["proc_name"]),
    (BodyPart::Sql, &["sql", "sql_file"]),
    (BodyPart::Script, &["script", "script_file"]),
    (BodyPart::Interpreter, &["interpreter"]),
    (BodyPart::WorkingDir, &["working_dir"]),
    (BodyPart::Params, &["params"]),
    (BodyPart::Http, &["http"]),
    (BodyPart::Sensor, &["sensor"]),
    (BodyPart::SubBatch, &["sub_batch"]),
];

/// Every map of a definition file.
pub(crate) const SECTIONS: &[Section] = &[
    Section {
        name: "top",
        keys: &[
            Key("sources", "Databases on which bodies run.", By("source", "name")),
            Key("groups", "Pipelines: jobs that run together as a batch.", By("group", "code")),
            Key(
                "defaults",
                "For every job of this file that does not say otherwise.",
                Map("settings"),
            ),
            Key("jobs", "What may run.", By("job", "code")),
            Key(
                "dependencies",
                "What waits for what, where it does not stand with the job.",
                List("dependency"),
            ),
            Key(
                "params",
                "Parameters of every batch of every group, by name.",
                Short("declared", "name"),
            ),
            Key(
                "secrets",
                "Where ${secret.NAME} comes from, by name; never the value.",
                By("secret", "name"),
            ),
            Key("include", "Other files of this definition, relative to this one.", Texts),
            Key("templates", "What several jobs have in common, by name.", By("template", "name")),
            Key("owners", "Who answers for groups and jobs.", By("owner", "code")),
            Key("pools", "Slots that jobs of all groups share, by name.", Short("pool", "name")),
        ],
    },
    Section {
        name: "source",
        keys: &[
            Key("name", "Its name.", Text),
            Key(
                "url",
                "sqlite:FILE, mysql://user@host:3306/db or postgres://user@host:5432/db; never with a password.",
                Text,
            ),
            Key("password_env", "Environment variable that holds the password.", Text),
            Key("password_file", "File whose first line is the password.", Text),
            Key("max_parallel", "How many bodies may run on it at once.", PARALLEL),
            Key(
                "procedures",
                "Named SQL bodies, where the database has no procedures (SQLite).",
                NamedTexts,
            ),
            Key("procedures_file", "The same map in a file of its own.", Text),
        ],
    },
    Section {
        name: "group",
        keys: &[
            Key("code", "Its code.", Text),
            Key("name", "Name for people.", Text),
            Key("type", "The batch type it answers to, such as monthly.", Text),
            Key("owner", "Who answers for it; one of owners, where there are any.", Text),
            Key("notify_email", "Who hears of failures of any of its jobs.", Texts),
            Key("max_parallel", "How many of its jobs may run at once.", PARALLEL),
            Key("time_zone", "IANA zone in which schedule_time is read; UTC when absent.", Text),
            Key("params", "Parameters of each of its batches, by name.", Short("declared", "name")),
            Key(
                "on_failure",
                "What a final failure does to the rest of the batch.",
                Words(&["go_on", "stop"]),
            ),
            Key("fail_fast", "The same as on_failure: stop.", Flag),
            Key(
                "batch_timeout_sec",
                "Seconds a batch may take before it is stopped.",
                Int(1, TIMEOUT_MAX as i64),
            ),
            Key(
                "warn_after_sec",
                "Seconds after which the owners hear that a batch still runs.",
                Int(1, TIMEOUT_MAX as i64),
            ),
        ],
    },
    Section {
        name: "settings",
        keys: &[
            Key("group", "The group it belongs to.", Text),
            Key("source", "The database its body runs on.", Text),
            Key("type", "What kind of job it is.", JobType),
            Key(
                "timeout_sec",
                "Seconds a body may run; 1800 when absent.",
                Int(1, TIMEOUT_MAX as i64),
            ),
            Key("retry_count", "How many times it is tried again.", Int(0, RETRIES_MAX as i64)),
            Key("retry_delay_sec", "Seconds between two tries.", Int(0, DELAY_MAX as i64)),
            Key(
                "priority",
                "Higher goes first when slots are short.",
                Int(-(PRIORITY_MAX as i64), PRIORITY_MAX as i64),
            ),
            Key("idempotent", "May be started again when the outcome of a try is not known.", Flag),
            Key("is_active", "An inactive job is left out of batches.", Flag),
            Key("schedule_time", "Not before this time of day, HH:MM.", Time),
            Key("notify_email", "Who hears of its failures; without it the owner.", Texts),
            Key("owner", "Who answers for it; one of owners, where there are any.", Text),
            Key("tags", "Free labels.", Texts),
            Key(
                "transaction",
                "How the statements of a SQL body are grouped.",
                Words(&["one", "each", "none"]),
            ),
            Key("interpreter", "What runs the script, from the list in the settings.", Text),
            Key("working_dir", "Folder the script starts in.", Text),
            Key(
                "trigger_rule",
                "How its parents together let it start.",
                Words(&[
                    "all_success",
                    "all_done",
                    "one_success",
                    "all_failed",
                    "one_failed",
                    "none_failed",
                ]),
            ),
            Key("success", "What must hold of what the body hands back.", Mixed("rule")),
            Key("checks", "Queries on the data it leaves, by name.", By("check", "name")),
            Key(
                "retry",
                "How the delay between tries grows, and which errors are tried again.",
                Map("retry"),
            ),
            Key("pools", "Slots it takes while it runs: names, or NAME: slots.", Uses("pool_use")),
            Key(
                "locks",
                "Locks it holds while it runs: names, or NAME: exclusive | shared.",
                Uses("lock_use"),
            ),
            Key(
                "warn_after_sec",
                "Seconds after which its owners hear that it still runs.",
                Int(1, TIMEOUT_MAX as i64),
            ),
        ],
    },
    Section {
        name: "job",
        keys: &[
            Key("code", "Its code.", Text),
            Key("name", "Name for people.", Text),
            Key(
                "depends_on",
                "The jobs it waits for, each by its code or an alias.",
                Mixed("parent"),
            ),
            Key("proc_name", "The procedure that is called: [schema.]name.", Text),
            Key("sql", "The statements; one text, or one per dialect.", Sql),
            Key("sql_file", "A file with the statements; {dialect} in its name is replaced.", Text),
            Key("script", "The text of the script.", Text),
            Key("script_file", "A file with the script.", Text),
            Key("params", "Parameters, in the procedure's order.", List("param")),
            Key("template", "A template whose keys it takes where it has none of its own.", Text),
            Key(
                "if",
                "Whether it runs, by outputs of jobs above it: CODE.NAME > 0; otherwise it is skipped.",
                Text,
            ),
            Key("aliases", "Other codes by which it may be called.", Texts),
        ],
    },
    Section {
        name: "param",
        keys: &[
            Key("name", "Its name: the procedure's parameter, :name in SQL.", Text),
            Key("mode", "Which way it travels.", Words(&["in", "out", "inout"])),
            Key("type", "What its value must be; text when absent.", TYPES),
            Key(
                "value",
                "Its value; may hold ${batch_no}, ${params.NAME}, ${jobs.CODE.NAME} and the like.",
                Text,
            ),
            Key("required", "Whether the job is refused without a value.", Flag),
            Key("secret", "Whether its value is never shown.", Flag),
        ],
    },
    Section {
        name: "declared",
        keys: &[
            Key("name", "Its name.", Text),
            Key("type", "What its value must be; text when absent.", TYPES),
            Key("value", "Its value where the batch gives none.", Text),
            Key("required", "Whether a batch without it is refused.", Flag),
            Key("secret", "Whether its value is never shown.", Flag),
        ],
    },
    Section {
        name: "dependency",
        keys: &[
            Key("job_code", "The job that waits.", Text),
            Key("depends_on", "The job it waits for.", Text),
            Key("dependency_order", "Its place in the list, for display.", Int(0, i32::MAX as i64)),
            Key(
                "when",
                "success, failure, done, skipped, or an expression on the parent's outputs.",
                Text,
            ),
        ],
    },
    Section {
        name: "parent",
        keys: &[
            Key("job", "The job it waits for.", Text),
            Key(
                "when",
                "success, failure, done, skipped, or an expression on the parent's outputs.",
                Text,
            ),
            Key("group", "The group of another batch; its own when absent.", Text),
            Key("batch", "Which batch, seen from this one: prev, month(-1), latest, 202407.", Text),
            Key(
                "missing",
                "What to do when there is no such batch.",
                Words(&["wait", "fail", "pass"]),
            ),
            Key("wait_sec", "Seconds after which waiting fails.", Int(1, WAIT_MAX as i64)),
        ],
    },
    Section {
        name: "secret",
        keys: &[
            Key("name", "Its name.", Text),
            Key("env", "An environment variable of Procession.", Text),
            Key("file", "The first line of a file.", Text),
            Key("sealed", "Sealed by `procession secret`, under this name.", Text),
        ],
    },
    Section {
        name: "owner",
        keys: &[
            Key("code", "Its code, as owner names it.", Text),
            Key("name", "Name for people.", Text),
            Key("email", "Where mails to it go.", Texts),
        ],
    },
    Section {
        name: "rule",
        keys: &[
            Key("rule", "What must be true: p_status == 0, rows_affected >= 1.", Text),
            Key("else", "How grave it is when it is not; error when absent.", GRADES),
            Key("message", "What to say then.", Text),
        ],
    },
    Section {
        name: "check",
        keys: &[
            Key("name", "Its name.", Text),
            Key("source", "Where the query runs; the job's source when absent.", Text),
            Key("sql", "One query; the job's parameters are bound as :name.", Sql),
            Key("sql_file", "A file with the query.", Text),
            Key("expect", "What its result must be.", OrWord("expect", &["zero_rows"])),
            Key("else", "How grave it is when it is not; error when absent.", GRADES),
        ],
    },
    Section {
        name: "expect",
        keys: &[
            Key("between", "One value between these two, both included.", OrPair("between")),
            Key("min", "Lowest.", Text),
            Key("max", "Highest.", Text),
            Key("equals", "The same one row as another query gives.", Map("equals")),
            Key("drift", "How far the value may be from the last batch's.", Map("drift")),
        ],
    },
    Section { name: "between", keys: &[Key("min", "Lowest.", Text), Key("max", "Highest.", Text)] },
    Section { name: "drift", keys: &[Key("max_percent", "In percent of the last value.", Text)] },
    Section {
        name: "equals",
        keys: &[
            Key("sql", "The other query.", Sql),
            Key("sql_file", "A file with the other query.", Text),
            Key("source", "Where it runs; the check's source when absent.", Text),
            Key("tolerance", "Numbers may differ by this much.", Text),
        ],
    },
    Section {
        name: "pool",
        keys: &[Key("name", "Its name.", Text), Key("slots", "How many there are.", PARALLEL)],
    },
    Section {
        name: "pool_use",
        keys: &[
            Key("pool", "The pool.", Text),
            Key("weight", "How many slots it takes.", PARALLEL),
        ],
    },
    Section {
        name: "lock_use",
        keys: &[
            Key("lock", "The lock.", Text),
            Key(
                "mode",
                "Alone, or together with others that share it.",
                Words(&["exclusive", "shared"]),
            ),
        ],
    },
    Section {
        name: "retry",
        keys: &[
            Key("backoff", "The delay is multiplied by this after each try: 1.5.", Text),
            Key("backoff_percent", "The same in percent.", Int(100, 1_000)),
            Key("max_delay_sec", "Longest delay in seconds.", Int(1, DELAY_MAX as i64)),
            Key("jitter", "The delay varies by up to this share of itself: 0.2.", Text),
            Key("jitter_percent", "The same in percent.", Int(0, 100)),
            Key("on", "Only errors of these classes are tried again.", Texts),
            Key("on_sqlstate", "Or those with one of these SQLSTATE codes.", Texts),
            Key("never_on_sqlstate", "Never those with one of these SQLSTATE codes.", Texts),
        ],
    },
];
