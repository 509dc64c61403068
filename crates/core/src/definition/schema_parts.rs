//! The rest of `schema_table`: maps inside jobs, groups and one another.

use crate::definition::keys::{DELAY_MAX, PARALLEL_MAX, POLL_MAX, WAIT_MAX};
use crate::definition::schema_form::Form::{
    Flag, Int, Map, Moment, NamedTexts, OrPair, OrTexts, OrWord, Sql, Text, Texts, Words,
};
use crate::definition::schema_form::{Form, Key, Section};
use crate::domain::params::http_call::METHODS;

const PARALLEL: Form = Int(1, PARALLEL_MAX as i64);
const TYPES: Form = Words(&["text", "int", "decimal", "date", "datetime", "bool", "bytes"]);
const LANGUAGES: [&str; 7] =
    ["groovy", "shell", "python", "python2", "php", "nodejs", "powershell"];
const ROUTES: [&str; 10] = [
    "FIRST",
    "LAST",
    "ROUND",
    "RANDOM",
    "CONSISTENT_HASH",
    "LEAST_FREQUENTLY_USED",
    "LEAST_RECENTLY_USED",
    "FAILOVER",
    "BUSYOVER",
    "SHARDING_BROADCAST",
];
const ROLES: [&str; 4] = ["viewer", "operator", "author", "admin"];
const PERMISSIONS: [&str; 6] = ["view", "run", "force", "edit", "script", "admin"];
const GRADES: Form = Words(&["warning", "error", "fatal"]);

/// The maps that stand inside others.
pub(crate) const PARTS: &[Section] = &[
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
            Key(
                "batch",
                "Which batch, seen from this one: prev, month(-1), last_day_of_month(-1), days_of_week(-1), latest, 202407.",
                Text,
            ),
            Key(
                "missing",
                "What to do when there is no such batch.",
                Words(&["wait", "fail", "pass"]),
            ),
            Key("wait_sec", "Seconds after which waiting fails.", Int(1, WAIT_MAX as i64)),
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
    Section {
        name: "notify",
        keys: &[
            Key("failed", "A job failed for good.", Moment),
            Key("timeout", "A job ran out of time for good.", Moment),
            Key("unknown", "Nobody can know how a job ended.", Moment),
            Key("parked", "A job is parked because its workers died.", Moment),
            Key("retried", "A try failed, and the job is tried again.", Moment),
            Key("kill_unconfirmed", "A job could not be seen to have stopped.", Moment),
            Key("tx_breach", "A job ended its transaction by itself.", Moment),
            Key("checks_warned", "A job ended well, with checks that warn.", Moment),
            Key("recovered", "A job succeeded after its failure was told.", Moment),
            Key("held_long", "A job is held back for long.", Moment),
            Key("late_start", "A job has not started at start_by.", Moment),
            Key("running_long", "A try runs longer than it should.", Moment),
            Key("late_finish", "A job or a batch has not ended at due.", Moment),
            Key("will_be_late", "A batch will not end by due, by its forecast.", Moment),
            Key("approval_wanted", "A job begins to wait for an approval.", Moment),
            Key("batch_long", "A batch runs longer than it should.", Moment),
            Key("batch_timeout", "A batch is stopped because its time is up.", Moment),
            Key("batch_done", "A batch ended well.", Moment),
            Key("batch_warned", "A batch ended well, with warnings.", Moment),
            Key("batch_failed", "A batch failed.", Moment),
            Key("batch_recovered", "A batch that had failed ended well.", Moment),
        ],
    },
    Section {
        name: "host",
        keys: &[
            Key("name", "Its name.", Text),
            Key("base_url", "https://host[:port][/path]; every call stays below it.", Text),
            Key("headers", "Headers of every call; a value may be ${secret.NAME}.", NamedTexts),
            Key("max_parallel", "How many calls at once.", PARALLEL),
        ],
    },
    Section {
        name: "http",
        keys: &[
            Key("host", "One of hosts.", Text),
            Key("method", "GET when absent.", Words(&METHODS)),
            Key("path", "Path and query; {name} is the parameter, escaped.", Text),
            Key("headers", "Headers; {name} as in the path.", NamedTexts),
            Key("send", "How the parameters travel in the body.", Words(&["none", "json", "form"])),
            Key("expect_status", "Statuses that are a success; 200 to 299 when absent.", Texts),
        ],
    },
    Section {
        name: "sensor",
        keys: &[Key("poll_sec", "Seconds between two questions.", Int(1, POLL_MAX as i64))],
    },
    Section {
        name: "sub_batch",
        keys: &[
            Key("group", "The group whose batch it opens.", Text),
            Key("batch", "Its number, seen from this batch; same when absent.", Text),
        ],
    },
    Section {
        name: "lineage",
        keys: &[
            Key("reads", "Tables it reads: t, or t[column=value].", Texts),
            Key("writes", "Tables it writes: t, or t[column=value].", Texts),
            Key(
                "opaque",
                "accepted: what is read and declared is all that it does.",
                Words(&["told", "accepted"]),
            ),
            Key("ignore", "Tables on which no conflict is told.", Texts),
        ],
    },
    Section {
        name: "approval",
        keys: &[
            Key("role", "Whoever has this role in the group may decide.", Words(&ROLES)),
            Key(
                "permission",
                "Whoever has this permission in the group may decide.",
                Words(&PERMISSIONS),
            ),
            Key("users", "These users may decide.", Texts),
            Key(
                "four_eyes",
                "Whether whoever started the batch is refused; true when absent.",
                Flag,
            ),
            Key("question", "What the approvers are asked.", Text),
        ],
    },
    Section {
        name: "application",
        keys: &[
            Key("host", "One of hosts: the REST address of the cluster.", Text),
            Key("file", "The jar, an absolute path on the node that runs the job.", Text),
            Key("main_class", "Its entry class; what the jar names when absent.", Text),
            Key("args", "Arguments; {name} is the parameter.", Texts),
            Key("conf", "Configuration of the application.", NamedTexts),
            Key("parallelism", "The cluster's own when absent.", PARALLEL),
            Key(
                "poll_sec",
                "Longest pause between two polls, in seconds; 5 when absent.",
                Int(1, POLL_MAX as i64),
            ),
        ],
    },
    Section {
        name: "executor",
        keys: &[
            Key("app", "The appname that the executors register under.", Text),
            Key("handler", "What is called, by the name that the executors know.", Text),
            Key("language", "What the script of a GLUE job is written in.", Words(&LANGUAGES)),
            Key(
                "send",
                "How the parameters travel: a JSON object, the text of the only one, or not at all.",
                Words(&["json", "text", "none"]),
            ),
            Key("route", "Which of the executors it goes to; FIRST when absent.", Words(&ROUTES)),
            Key(
                "block",
                "What is done while an earlier run of the job is not over.",
                Words(&["SERIAL_EXECUTION", "DISCARD_LATER", "COVER_EARLY"]),
            ),
        ],
    },
    Section {
        name: "for_each",
        keys: &[
            Key("items", "The items, or where they come from.", OrTexts("items")),
            Key("param", "A parameter that holds them, separated by commas.", Text),
            Key("output", "JOB.name: an output of a job above that holds them.", Text),
            Key("max_parallel", "How many of them run at once.", PARALLEL),
        ],
    },
    Section {
        name: "items",
        keys: &[
            Key("param", "A parameter that holds them, separated by commas.", Text),
            Key("output", "JOB.name: an output of a job above that holds them.", Text),
        ],
    },
    Section { name: "between", keys: &[Key("min", "Lowest.", Text), Key("max", "Highest.", Text)] },
    Section { name: "drift", keys: &[Key("max_percent", "In percent of the last value.", Text)] },
];
