//! The second part of `schema_table`: maps inside jobs, groups and other maps.

use crate::definition::keys::{DELAY_MAX, PARALLEL_MAX, POLL_MAX, WAIT_MAX};
use crate::definition::schema_form::SchemaValue::{
    Flag, Int, Map, Moment, NamedTexts, OrPair, OrTexts, OrWord, Sql, Text, Texts, Words,
};
use crate::definition::schema_form::{SchemaKey, SchemaValue, Section};
use crate::domain::params::http_call::METHODS;

const PARALLEL: SchemaValue = Int(1, PARALLEL_MAX as i64);
const TYPES: SchemaValue = Words(&["text", "int", "decimal", "date", "datetime", "bool", "bytes"]);
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
const GRADES: SchemaValue = Words(&["warning", "error", "fatal"]);

/// The nested maps.
pub(crate) const PARTS: &[Section] = &[
    Section {
        name: "param",
        keys: &[
            SchemaKey("name", "Its name: the procedure's parameter, :name in SQL.", Text),
            SchemaKey("mode", "Which way it travels.", Words(&["in", "out", "inout"])),
            SchemaKey("type", "What its value must be; text when absent.", TYPES),
            SchemaKey(
                "value",
                "Its value; may hold ${batch_no}, ${params.NAME}, ${jobs.CODE.NAME} and the like.",
                Text,
            ),
            SchemaKey("required", "Whether the job is refused without a value.", Flag),
            SchemaKey("secret", "Whether its value is never shown.", Flag),
        ],
    },
    Section {
        name: "declared",
        keys: &[
            SchemaKey("name", "Its name.", Text),
            SchemaKey("type", "What its value must be; text when absent.", TYPES),
            SchemaKey("value", "Its value where the batch gives none.", Text),
            SchemaKey("required", "Whether a batch without it is refused.", Flag),
            SchemaKey("secret", "Whether its value is never shown.", Flag),
        ],
    },
    Section {
        name: "dependency",
        keys: &[
            SchemaKey("job_code", "The job that waits.", Text),
            SchemaKey("depends_on", "The job it waits for.", Text),
            SchemaKey(
                "dependency_order",
                "Its place in the list, for display.",
                Int(0, i32::MAX as i64),
            ),
            SchemaKey(
                "when",
                "success, failure, done, skipped, or an expression on the parent's outputs.",
                Text,
            ),
        ],
    },
    Section {
        name: "parent",
        keys: &[
            SchemaKey("job", "The job it waits for.", Text),
            SchemaKey(
                "when",
                "success, failure, done, skipped, or an expression on the parent's outputs.",
                Text,
            ),
            SchemaKey("group", "The group of another batch; its own when absent.", Text),
            SchemaKey(
                "batch",
                "Which batch, seen from this one: prev, month(-1), last_day_of_month(-1), days_of_week(-1), latest, 202407.",
                Text,
            ),
            SchemaKey(
                "missing",
                "What to do when there is no such batch.",
                Words(&["wait", "fail", "pass"]),
            ),
            SchemaKey("wait_sec", "Seconds after which waiting fails.", Int(1, WAIT_MAX as i64)),
        ],
    },
    Section {
        name: "rule",
        keys: &[
            SchemaKey("rule", "What must be true: p_status == 0, rows_affected >= 1.", Text),
            SchemaKey("else", "How grave it is when it is not; error when absent.", GRADES),
            SchemaKey("message", "What to say then.", Text),
        ],
    },
    Section {
        name: "check",
        keys: &[
            SchemaKey("name", "Its name.", Text),
            SchemaKey("source", "Where the query runs; the job's source when absent.", Text),
            SchemaKey("sql", "One query; the job's parameters are bound as :name.", Sql),
            SchemaKey("sql_file", "A file with the query.", Text),
            SchemaKey("expect", "What its result must be.", OrWord("expect", &["zero_rows"])),
            SchemaKey("else", "How grave it is when it is not; error when absent.", GRADES),
        ],
    },
    Section {
        name: "expect",
        keys: &[
            SchemaKey("between", "One value between these two, both included.", OrPair("between")),
            SchemaKey("min", "Lowest.", Text),
            SchemaKey("max", "Highest.", Text),
            SchemaKey("equals", "The same one row as another query gives.", Map("equals")),
            SchemaKey("drift", "How far the value may be from the last batch's.", Map("drift")),
        ],
    },
    Section {
        name: "equals",
        keys: &[
            SchemaKey("sql", "The other query.", Sql),
            SchemaKey("sql_file", "A file with the other query.", Text),
            SchemaKey("source", "Where it runs; the check's source when absent.", Text),
            SchemaKey("tolerance", "Numbers may differ by this much.", Text),
        ],
    },
    Section {
        name: "pool_use",
        keys: &[
            SchemaKey("pool", "The pool.", Text),
            SchemaKey("weight", "How many slots it takes.", PARALLEL),
        ],
    },
    Section {
        name: "lock_use",
        keys: &[
            SchemaKey("lock", "The lock.", Text),
            SchemaKey(
                "mode",
                "Alone, or together with others that share it.",
                Words(&["exclusive", "shared"]),
            ),
        ],
    },
    Section {
        name: "retry",
        keys: &[
            SchemaKey("backoff", "The delay is multiplied by this after each try: 1.5.", Text),
            SchemaKey("backoff_percent", "The same in percent.", Int(100, 1_000)),
            SchemaKey("max_delay_sec", "Longest delay in seconds.", Int(1, DELAY_MAX as i64)),
            SchemaKey("jitter", "The delay varies by up to this share of itself: 0.2.", Text),
            SchemaKey("jitter_percent", "The same in percent.", Int(0, 100)),
            SchemaKey("on", "Only errors of these classes are tried again.", Texts),
            SchemaKey("on_sqlstate", "Or those with one of these SQLSTATE codes.", Texts),
            SchemaKey("never_on_sqlstate", "Never those with one of these SQLSTATE codes.", Texts),
        ],
    },
    Section {
        name: "notify",
        keys: &[
            SchemaKey("failed", "A job failed for good.", Moment),
            SchemaKey("timeout", "A job ran out of time for good.", Moment),
            SchemaKey("unknown", "Nobody can know how a job ended.", Moment),
            SchemaKey("parked", "A job is parked because its workers died.", Moment),
            SchemaKey("retried", "A try failed, and the job is tried again.", Moment),
            SchemaKey("kill_unconfirmed", "A job could not be seen to have stopped.", Moment),
            SchemaKey("tx_breach", "A job ended its transaction by itself.", Moment),
            SchemaKey("checks_warned", "A job ended well, with checks that warn.", Moment),
            SchemaKey("recovered", "A job succeeded after its failure was told.", Moment),
            SchemaKey("held_long", "A job is held back for long.", Moment),
            SchemaKey("late_start", "A job has not started at start_by.", Moment),
            SchemaKey("running_long", "A try runs longer than it should.", Moment),
            SchemaKey("late_finish", "A job or a batch has not ended at due.", Moment),
            SchemaKey("will_be_late", "A batch will not end by due, by its forecast.", Moment),
            SchemaKey("approval_wanted", "A job begins to wait for an approval.", Moment),
            SchemaKey("batch_long", "A batch runs longer than it should.", Moment),
            SchemaKey("batch_timeout", "A batch is stopped because its time is up.", Moment),
            SchemaKey("batch_done", "A batch ended well.", Moment),
            SchemaKey("batch_warned", "A batch ended well, with warnings.", Moment),
            SchemaKey("batch_failed", "A batch failed.", Moment),
            SchemaKey("batch_recovered", "A batch that had failed ended well.", Moment),
        ],
    },
    Section {
        name: "host",
        keys: &[
            SchemaKey("name", "Its name.", Text),
            SchemaKey("base_url", "https://host[:port][/path]; every call stays below it.", Text),
            SchemaKey("ui_url", "SPARK: the address of the master's web page.", Text),
            SchemaKey(
                "headers",
                "Headers of every call; a value may be ${secret.NAME}.",
                NamedTexts,
            ),
            SchemaKey("max_parallel", "How many calls at once.", PARALLEL),
        ],
    },
    Section {
        name: "http",
        keys: &[
            SchemaKey("host", "One of hosts.", Text),
            SchemaKey("method", "GET when absent.", Words(&METHODS)),
            SchemaKey("path", "Path and query; {name} is the parameter, escaped.", Text),
            SchemaKey("headers", "Headers; {name} as in the path.", NamedTexts),
            SchemaKey(
                "send",
                "How the parameters travel in the body.",
                Words(&["none", "json", "form"]),
            ),
            SchemaKey(
                "expect_status",
                "Statuses that are a success; 200 to 299 when absent.",
                Texts,
            ),
        ],
    },
    Section {
        name: "sensor",
        keys: &[SchemaKey("poll_sec", "Seconds between two questions.", Int(1, POLL_MAX as i64))],
    },
    Section {
        name: "sub_batch",
        keys: &[
            SchemaKey("group", "The group whose batch it opens.", Text),
            SchemaKey("batch", "Its number, seen from this batch; same when absent.", Text),
        ],
    },
    Section {
        name: "lineage",
        keys: &[
            SchemaKey("reads", "Tables it reads: t, or t[column=value].", Texts),
            SchemaKey("writes", "Tables it writes: t, or t[column=value].", Texts),
            SchemaKey(
                "opaque",
                "accepted: what is read and declared is all that it does.",
                Words(&["told", "accepted"]),
            ),
            SchemaKey("ignore", "Tables on which no conflict is told.", Texts),
        ],
    },
    Section {
        name: "approval",
        keys: &[
            SchemaKey("role", "Whoever has this role in the group may decide.", Words(&ROLES)),
            SchemaKey(
                "permission",
                "Whoever has this permission in the group may decide.",
                Words(&PERMISSIONS),
            ),
            SchemaKey("users", "These users may decide.", Texts),
            SchemaKey(
                "four_eyes",
                "Whether whoever started the batch is refused; true when absent.",
                Flag,
            ),
            SchemaKey("question", "What the approvers are asked.", Text),
        ],
    },
    Section {
        name: "application",
        keys: &[
            SchemaKey("host", "One of hosts: the REST address of the cluster.", Text),
            SchemaKey(
                "file",
                "FLINK: the jar, an absolute path on the node that runs the job. SPARK: a jar or a Python \
                 file that the driver's host can read.",
                Text,
            ),
            SchemaKey("main_class", "Its entry class; what the jar names when absent.", Text),
            SchemaKey("args", "Arguments; {name} is the parameter.", Texts),
            SchemaKey("conf", "Configuration of the application.", NamedTexts),
            SchemaKey("parallelism", "FLINK: the cluster's own when absent.", PARALLEL),
            SchemaKey("master", "SPARK: spark-submit runs on the node, with this master.", Text),
            SchemaKey(
                "spark_home",
                "SPARK: the folder of the Spark whose spark-submit runs.",
                Text,
            ),
            SchemaKey("jars", "SPARK: further jars.", Texts),
            SchemaKey("py_files", "SPARK: Python files for the search path.", Texts),
            SchemaKey("driver_memory", "SPARK: as 2g.", Text),
            SchemaKey("driver_cores", "SPARK: cores of the driver.", PARALLEL),
            SchemaKey("executor_memory", "SPARK: as 4g, for each executor.", Text),
            SchemaKey("executor_cores", "SPARK: cores of each executor.", PARALLEL),
            SchemaKey("max_cores", "SPARK: cores of all executors together.", PARALLEL),
            SchemaKey("queue", "SPARK: the queue of YARN.", Text),
            SchemaKey(
                "poll_sec",
                "Longest pause between two polls, in seconds; 5 when absent.",
                Int(1, POLL_MAX as i64),
            ),
        ],
    },
    Section {
        name: "executor",
        keys: &[
            SchemaKey("app", "The appname that the executors register under.", Text),
            SchemaKey("handler", "What is called, by the name that the executors know.", Text),
            SchemaKey(
                "language",
                "What the script of a GLUE job is written in.",
                Words(&LANGUAGES),
            ),
            SchemaKey(
                "send",
                "How the parameters travel: a JSON object, the text of the only one, or not at all.",
                Words(&["json", "text", "none"]),
            ),
            SchemaKey(
                "route",
                "Which of the executors it goes to; FIRST when absent.",
                Words(&ROUTES),
            ),
            SchemaKey(
                "block",
                "What is done while an earlier run of the job is not over.",
                Words(&["SERIAL_EXECUTION", "DISCARD_LATER", "COVER_EARLY"]),
            ),
        ],
    },
    Section {
        name: "for_each",
        keys: &[
            SchemaKey("items", "The items, or where they come from.", OrTexts("items")),
            SchemaKey("param", "A parameter that holds them, separated by commas.", Text),
            SchemaKey("output", "JOB.name: an output of a job above that holds them.", Text),
            SchemaKey("max_parallel", "How many of them run at once.", PARALLEL),
        ],
    },
    Section {
        name: "items",
        keys: &[
            SchemaKey("param", "A parameter that holds them, separated by commas.", Text),
            SchemaKey("output", "JOB.name: an output of a job above that holds them.", Text),
        ],
    },
    Section {
        name: "between",
        keys: &[SchemaKey("min", "Lowest.", Text), SchemaKey("max", "Highest.", Text)],
    },
    Section {
        name: "drift",
        keys: &[SchemaKey("max_percent", "In percent of the last value.", Text)],
    },
];
