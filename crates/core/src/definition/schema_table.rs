//! What the keys of a definition file mean, for editors: one entry per key of `keys.rs`.
//!
//! A test compares the two files both ways: a key that is read and not listed here is found, and so
//! is one that is listed and not read.

use crate::definition::keys::{DELAY_MAX, PARALLEL_MAX, PRIORITY_MAX, RETRIES_MAX, TIMEOUT_MAX};
use crate::definition::schema_form::Form::{
    By, Due, Factor, Flag, Int, JobType, List, Map, Mixed, NamedTexts, OrTexts, Short, Sql, Text,
    Texts, Time, Uses, Words,
};
use crate::definition::schema_form::{Form, Key, Section};
use crate::definition::schema_parts::PARTS;
use crate::definition::schema_schedules::SCHEDULES;

const PARALLEL: Form = Int(1, PARALLEL_MAX as i64);

const OWNER_GROUP: &str = "The group it belongs to, which may always use it.";
const ALLOWED_GROUPS: &str = "The other groups that may use it; without a list none when there is an owner_group, else every group.";

/// The maps that stand for themselves.
const MAIN: &[Section] = &[
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
            Key("hosts", "Hosts that HTTP jobs may call, by name.", Short("host", "name")),
            Key("schedules", "When which groups are opened.", By("schedule", "code")),
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
            Key(
                "password_secret",
                "Secret that is the password, read anew for each attempt.",
                Text,
            ),
            Key("max_parallel", "How many bodies may run on it at once.", PARALLEL),
            Key(
                "procedures",
                "Named SQL bodies, where the database has no procedures (SQLite).",
                NamedTexts,
            ),
            Key("procedures_file", "The same map in a file of its own.", Text),
            Key("owner_group", OWNER_GROUP, Text),
            Key("groups", ALLOWED_GROUPS, Texts),
        ],
    },
    Section {
        name: "group",
        keys: &[
            Key("code", "Its code.", Text),
            Key("name", "Name for people.", Text),
            Key("type", "The batch type it answers to, such as monthly.", Text),
            Key("owner", "Who answers for it; one of owners, where there are any.", Text),
            Key(
                "notify_email",
                "Who hears of its jobs and batches: addresses, or channel:NAME.",
                Texts,
            ),
            Key("max_parallel", "How many of its jobs may run at once.", PARALLEL),
            Key("time_zone", "IANA zone in which schedule_time is read; UTC when absent.", Text),
            Key(
                "calendar",
                "The calendar that its dates and schedules ask for working days.",
                Text,
            ),
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
            Key("notify", "When which event of its jobs and batches is told.", Map("notify")),
            Key(
                "due",
                "By when a batch should have ended: 08:00, +1d 08:00, workday(3) 08:00, 2h.",
                Due,
            ),
            Key(
                "slow_after",
                "A try of a job that takes so many times the usual is told of: 2.0.",
                Factor,
            ),
            Key(
                "held_after_sec",
                "Seconds after which it is told that a job is still held; a day when absent.",
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
            Key(
                "tx",
                "What ties its effect to the record that it happened: same and ledger are exactly once.",
                Words(&["same", "ledger", "none"]),
            ),
            Key(
                "on_unknown",
                "What is done when the outcome of a try is not known.",
                Words(&["hold", "retry", "fail"]),
            ),
            Key("is_active", "An inactive job is left out of batches.", Flag),
            Key("schedule_time", "Not before this time of day, HH:MM.", Time),
            Key(
                "notify_email",
                "Who hears of it: addresses, or channel:NAME; without it the owner.",
                Texts,
            ),
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
                "lineage",
                "What its owner says of the tables it reads and writes.",
                Map("lineage"),
            ),
            Key("worker", "Only on a node with this label (serve --label).", Text),
            Key(
                "warn_after_sec",
                "Seconds after which its owners hear that it still runs.",
                Int(1, TIMEOUT_MAX as i64),
            ),
            Key(
                "notify",
                "When which of its events is told; else as the group says.",
                Map("notify"),
            ),
            Key(
                "start_by",
                "By when it should have started: 08:00, +1d 08:00, workday(3) 08:00, 2h.",
                Due,
            ),
            Key("due", "By when it should have ended, in the same forms.", Due),
            Key("slow_after", "A try that takes so many times the usual is told of: 2.0.", Factor),
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
            Key("http", "The call of an HTTP job.", Map("http")),
            Key("sensor", "How a SENSOR job asks.", Map("sensor")),
            Key("sub_batch", "The batch that a BATCH job opens and waits for.", Map("sub_batch")),
            Key("executor", "What a HANDLER or GLUE job asks of an executor.", Map("executor")),
            Key("application", "What a FLINK job submits to a cluster.", Map("application")),
            Key("approval", "Who may approve an APPROVAL job.", Map("approval")),
            Key("for_each", "The list for each of whose items it runs.", OrTexts("for_each")),
        ],
    },
    Section {
        name: "secret",
        keys: &[
            Key("name", "Its name.", Text),
            Key("env", "An environment variable of Procession.", Text),
            Key("file", "The first line of a file.", Text),
            Key("sealed", "Sealed by `procession secret`, under this name.", Text),
            Key("owner_group", OWNER_GROUP, Text),
            Key("groups", ALLOWED_GROUPS, Texts),
        ],
    },
    Section {
        name: "owner",
        keys: &[
            Key("code", "Its code, as owner names it.", Text),
            Key("name", "Name for people.", Text),
            Key("email", "Where what it hears goes: addresses, or channel:NAME.", Texts),
            Key("lang", "The language it is written to in.", Words(&["en", "zh"])),
        ],
    },
    Section {
        name: "pool",
        keys: &[Key("name", "Its name.", Text), Key("slots", "How many there are.", PARALLEL)],
    },
];

/// Every map of a definition file.
pub(crate) fn sections() -> impl Iterator<Item = &'static Section> {
    MAIN.iter().chain(PARTS).chain(SCHEDULES)
}
