//! Describes the keys of a definition file for editors: one entry per key of `keys.rs`.
//!
//! A test compares the two files in both directions, and so finds a key that is read and not listed here, or listed and
//! not read.

use crate::definition::keys::{DELAY_MAX, PARALLEL_MAX, PRIORITY_MAX, RETRIES_MAX, TIMEOUT_MAX};
use crate::definition::schema_form::SchemaValue::{
    By, Due, Factor, Flag, Int, JobType, List, Map, Mixed, NamedTexts, OrTexts, Short, Sql, Text,
    Texts, Time, Uses, Words,
};
use crate::definition::schema_form::{SchemaKey, SchemaValue, Section};
use crate::definition::schema_parts::PARTS;
use crate::definition::schema_schedules::SCHEDULES;

const PARALLEL: SchemaValue = Int(1, PARALLEL_MAX as i64);

const OWNER_GROUP: &str = "The group it belongs to, which may always use it.";
const ALLOWED_GROUPS: &str = "The other groups that may use it; without a list none when there is an owner_group, else every group.";

/// The top-level maps.
const MAIN: &[Section] = &[
    Section {
        name: "top",
        keys: &[
            SchemaKey("sources", "Databases on which bodies run.", By("source", "name")),
            SchemaKey(
                "groups",
                "Pipelines: jobs that run together as a batch.",
                By("group", "code"),
            ),
            SchemaKey(
                "defaults",
                "For every job of this file that does not say otherwise.",
                Map("settings"),
            ),
            SchemaKey("jobs", "What may run.", By("job", "code")),
            SchemaKey(
                "dependencies",
                "What waits for what, where it does not stand with the job.",
                List("dependency"),
            ),
            SchemaKey(
                "params",
                "Parameters of every batch of every group, by name.",
                Short("declared", "name"),
            ),
            SchemaKey(
                "secrets",
                "Where ${secret.NAME} comes from, by name; never the value.",
                By("secret", "name"),
            ),
            SchemaKey("include", "Other files of this definition, relative to this one.", Texts),
            SchemaKey(
                "templates",
                "What several jobs have in common, by name.",
                By("template", "name"),
            ),
            SchemaKey("owners", "Who answers for groups and jobs.", By("owner", "code")),
            SchemaKey(
                "pools",
                "Slots that jobs of all groups share, by name.",
                Short("pool", "name"),
            ),
            SchemaKey("hosts", "Hosts that HTTP jobs may call, by name.", Short("host", "name")),
            SchemaKey("schedules", "When which groups are opened.", By("schedule", "code")),
        ],
    },
    Section {
        name: "source",
        keys: &[
            SchemaKey("name", "Its name.", Text),
            SchemaKey(
                "url",
                "sqlite:FILE, mysql://user@host:3306/db or postgres://user@host:5432/db; never with a password.",
                Text,
            ),
            SchemaKey("password_env", "Environment variable that holds the password.", Text),
            SchemaKey("password_file", "File whose first line is the password.", Text),
            SchemaKey(
                "password_secret",
                "Secret that is the password, read anew for each attempt.",
                Text,
            ),
            SchemaKey("max_parallel", "How many bodies may run on it at once.", PARALLEL),
            SchemaKey(
                "procedures",
                "Named SQL bodies, where the database has no procedures (SQLite).",
                NamedTexts,
            ),
            SchemaKey("procedures_file", "The same map in a file of its own.", Text),
            SchemaKey("owner_group", OWNER_GROUP, Text),
            SchemaKey("groups", ALLOWED_GROUPS, Texts),
        ],
    },
    Section {
        name: "group",
        keys: &[
            SchemaKey("code", "Its code.", Text),
            SchemaKey("name", "Name for people.", Text),
            SchemaKey("type", "The batch type it answers to, such as monthly.", Text),
            SchemaKey("owner", "Who answers for it; one of owners, where there are any.", Text),
            SchemaKey(
                "notify_email",
                "Who hears of its jobs and batches: addresses, or channel:NAME.",
                Texts,
            ),
            SchemaKey("max_parallel", "How many of its jobs may run at once.", PARALLEL),
            SchemaKey(
                "time_zone",
                "IANA zone in which schedule_time is read; UTC when absent.",
                Text,
            ),
            SchemaKey(
                "calendar",
                "The calendar that its dates and schedules ask for working days.",
                Text,
            ),
            SchemaKey(
                "params",
                "Parameters of each of its batches, by name.",
                Short("declared", "name"),
            ),
            SchemaKey(
                "on_failure",
                "What a final failure does to the rest of the batch.",
                Words(&["go_on", "stop"]),
            ),
            SchemaKey("fail_fast", "The same as on_failure: stop.", Flag),
            SchemaKey(
                "batch_timeout_sec",
                "Seconds a batch may take before it is stopped.",
                Int(1, TIMEOUT_MAX as i64),
            ),
            SchemaKey(
                "warn_after_sec",
                "Seconds after which the owners hear that a batch still runs.",
                Int(1, TIMEOUT_MAX as i64),
            ),
            SchemaKey("notify", "When which event of its jobs and batches is told.", Map("notify")),
            SchemaKey(
                "due",
                "By when a batch should have ended: 08:00, +1d 08:00, workday(3) 08:00, 2h.",
                Due,
            ),
            SchemaKey(
                "slow_after",
                "A try of a job that takes so many times the usual is told of: 2.0.",
                Factor,
            ),
            SchemaKey(
                "held_after_sec",
                "Seconds after which it is told that a job is still held; a day when absent.",
                Int(1, TIMEOUT_MAX as i64),
            ),
        ],
    },
    Section {
        name: "settings",
        keys: &[
            SchemaKey("group", "The group it belongs to.", Text),
            SchemaKey("source", "The database its body runs on.", Text),
            SchemaKey("type", "What kind of job it is.", JobType),
            SchemaKey(
                "timeout_sec",
                "Seconds a body may run; 1800 when absent.",
                Int(1, TIMEOUT_MAX as i64),
            ),
            SchemaKey(
                "retry_count",
                "How many times it is tried again.",
                Int(0, RETRIES_MAX as i64),
            ),
            SchemaKey("retry_delay_sec", "Seconds between two tries.", Int(0, DELAY_MAX as i64)),
            SchemaKey(
                "priority",
                "Higher goes first when slots are short.",
                Int(-(PRIORITY_MAX as i64), PRIORITY_MAX as i64),
            ),
            SchemaKey(
                "idempotent",
                "May be started again when the outcome of a try is not known.",
                Flag,
            ),
            SchemaKey(
                "tx",
                "What ties its effect to the record that it happened: same and ledger are exactly once.",
                Words(&["same", "ledger", "none"]),
            ),
            SchemaKey(
                "on_unknown",
                "What is done when the outcome of a try is not known.",
                Words(&["hold", "retry", "fail"]),
            ),
            SchemaKey("is_active", "An inactive job is left out of batches.", Flag),
            SchemaKey("schedule_time", "Not before this time of day, HH:MM.", Time),
            SchemaKey(
                "notify_email",
                "Who hears of it: addresses, or channel:NAME; without it the owner.",
                Texts,
            ),
            SchemaKey("owner", "Who answers for it; one of owners, where there are any.", Text),
            SchemaKey("tags", "Free labels.", Texts),
            SchemaKey(
                "transaction",
                "How the statements of a SQL body are grouped.",
                Words(&["one", "each", "none"]),
            ),
            SchemaKey("interpreter", "What runs the script, from the list in the settings.", Text),
            SchemaKey("working_dir", "Folder the script starts in.", Text),
            SchemaKey(
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
            SchemaKey("success", "What must hold of what the body hands back.", Mixed("rule")),
            SchemaKey("checks", "Queries on the data it leaves, by name.", By("check", "name")),
            SchemaKey(
                "retry",
                "How the delay between tries grows, and which errors are tried again.",
                Map("retry"),
            ),
            SchemaKey(
                "pools",
                "Slots it takes while it runs: names, or NAME: slots.",
                Uses("pool_use"),
            ),
            SchemaKey(
                "locks",
                "Locks it holds while it runs: names, or NAME: exclusive | shared.",
                Uses("lock_use"),
            ),
            SchemaKey(
                "lineage",
                "What its owner says of the tables it reads and writes.",
                Map("lineage"),
            ),
            SchemaKey("worker", "Only on a node with this label (serve --label).", Text),
            SchemaKey(
                "warn_after_sec",
                "Seconds after which its owners hear that it still runs.",
                Int(1, TIMEOUT_MAX as i64),
            ),
            SchemaKey(
                "notify",
                "When which of its events is told; else as the group says.",
                Map("notify"),
            ),
            SchemaKey(
                "start_by",
                "By when it should have started: 08:00, +1d 08:00, workday(3) 08:00, 2h.",
                Due,
            ),
            SchemaKey("due", "By when it should have ended, in the same forms.", Due),
            SchemaKey(
                "slow_after",
                "A try that takes so many times the usual is told of: 2.0.",
                Factor,
            ),
        ],
    },
    Section {
        name: "job",
        keys: &[
            SchemaKey("code", "Its code.", Text),
            SchemaKey("name", "Name for people.", Text),
            SchemaKey(
                "depends_on",
                "The jobs it waits for, each by its code or an alias.",
                Mixed("parent"),
            ),
            SchemaKey("proc_name", "The procedure that is called: [schema.]name.", Text),
            SchemaKey("sql", "The statements; one text, or one per dialect.", Sql),
            SchemaKey(
                "sql_file",
                "A file with the statements; {dialect} in its name is replaced.",
                Text,
            ),
            SchemaKey("script", "The text of the script.", Text),
            SchemaKey("script_file", "A file with the script.", Text),
            SchemaKey("params", "Parameters, in the procedure's order.", List("param")),
            SchemaKey(
                "template",
                "A template whose keys it takes where it has none of its own.",
                Text,
            ),
            SchemaKey(
                "if",
                "Whether it runs, by outputs of jobs above it: CODE.NAME > 0; otherwise it is skipped.",
                Text,
            ),
            SchemaKey("aliases", "Other codes by which it may be called.", Texts),
            SchemaKey("http", "The call of an HTTP job.", Map("http")),
            SchemaKey("sensor", "How a SENSOR job asks.", Map("sensor")),
            SchemaKey(
                "sub_batch",
                "The batch that a BATCH job opens and waits for.",
                Map("sub_batch"),
            ),
            SchemaKey(
                "executor",
                "What a HANDLER or GLUE job asks of an executor.",
                Map("executor"),
            ),
            SchemaKey(
                "application",
                "What a FLINK or SPARK job submits to a cluster.",
                Map("application"),
            ),
            SchemaKey("approval", "Who may approve an APPROVAL job.", Map("approval")),
            SchemaKey("for_each", "The list for each of whose items it runs.", OrTexts("for_each")),
        ],
    },
    Section {
        name: "secret",
        keys: &[
            SchemaKey("name", "Its name.", Text),
            SchemaKey("env", "An environment variable of Procession.", Text),
            SchemaKey("file", "The first line of a file.", Text),
            SchemaKey("sealed", "Sealed by `procession secret`, under this name.", Text),
            SchemaKey("owner_group", OWNER_GROUP, Text),
            SchemaKey("groups", ALLOWED_GROUPS, Texts),
        ],
    },
    Section {
        name: "owner",
        keys: &[
            SchemaKey("code", "Its code, as owner names it.", Text),
            SchemaKey("name", "Name for people.", Text),
            SchemaKey("email", "Where what it hears goes: addresses, or channel:NAME.", Texts),
            SchemaKey("lang", "The language it is written to in.", Words(&["en", "zh"])),
        ],
    },
    Section {
        name: "pool",
        keys: &[
            SchemaKey("name", "Its name.", Text),
            SchemaKey("slots", "How many there are.", PARALLEL),
        ],
    },
];

/// Every map of a definition file.
pub(crate) fn sections() -> impl Iterator<Item = &'static Section> {
    MAIN.iter().chain(PARTS).chain(SCHEDULES)
}
