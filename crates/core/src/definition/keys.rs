//! The keys of definition files, and the limits of their numbers.

/// Keys of the whole definition.
pub(crate) const TOP: &[&str] = &[
    "sources",
    "groups",
    "defaults",
    "jobs",
    "dependencies",
    "params",
    "secrets",
    "pools",
    "include",
    "templates",
    "owners",
    "hosts",
    "schedules",
];
/// Keys of a data source.
pub(crate) const SOURCE: &[&str] = &[
    "name",
    "url",
    "password_env",
    "password_file",
    "password_secret",
    "max_parallel",
    "procedures",
    "procedures_file",
    "owner_group",
    "groups",
];
/// Keys of a group.
pub(crate) const GROUP: &[&str] = &[
    "code",
    "name",
    "type",
    "owner",
    "notify_email",
    "max_parallel",
    "time_zone",
    "calendar",
    "params",
    "on_failure",
    "fail_fast",
    "batch_timeout_sec",
    "warn_after_sec",
    "notify",
    "due",
    "slow_after",
    "held_after_sec",
];
/// Keys of a pool.
pub(crate) const POOL: &[&str] = &["name", "slots"];
/// Keys of an entry of a job's `pools`.
pub(crate) const POOL_USE: &[&str] = &["pool", "weight"];
/// Keys of an entry of a job's `locks`.
pub(crate) const LOCK_USE: &[&str] = &["lock", "mode"];
/// Keys of `lineage`.
pub(crate) const LINEAGE: &[&str] = &["reads", "writes", "opaque", "ignore"];
/// Keys of `retry`.
pub(crate) const RETRY: &[&str] = &[
    "backoff",
    "backoff_percent",
    "max_delay_sec",
    "jitter",
    "jitter_percent",
    "on",
    "on_sqlstate",
    "never_on_sqlstate",
];
/// Keys that `defaults` and jobs share.
pub(crate) const SETTINGS: &[&str] = &[
    "group",
    "source",
    "type",
    "timeout_sec",
    "retry_count",
    "retry_delay_sec",
    "priority",
    "idempotent",
    "tx",
    "on_unknown",
    "is_active",
    "schedule_time",
    "notify_email",
    "owner",
    "tags",
    "transaction",
    "interpreter",
    "working_dir",
    "trigger_rule",
    "success",
    "checks",
    "retry",
    "pools",
    "locks",
    "lineage",
    "worker",
    "warn_after_sec",
    "notify",
    "start_by",
    "due",
    "slow_after",
];
/// Keys of `notify`: the events about a job or a batch.
pub(crate) const NOTIFY: &[&str] = &[
    "failed",
    "timeout",
    "unknown",
    "parked",
    "retried",
    "kill_unconfirmed",
    "tx_breach",
    "checks_warned",
    "recovered",
    "held_long",
    "late_start",
    "running_long",
    "late_finish",
    "will_be_late",
    "approval_wanted",
    "batch_long",
    "batch_timeout",
    "batch_done",
    "batch_warned",
    "batch_failed",
    "batch_recovered",
];
/// Keys that only a job has.
pub(crate) const JOB: &[&str] = &[
    "code",
    "name",
    "depends_on",
    "if",
    "proc_name",
    "sql",
    "sql_file",
    "script",
    "script_file",
    "params",
    "template",
    "aliases",
    "http",
    "sensor",
    "sub_batch",
    "executor",
    "application",
    "approval",
    "for_each",
];
/// Keys of a schedule.
pub(crate) const SCHEDULE: &[&str] = &[
    "code",
    "name",
    "group",
    "type",
    "batch_no",
    "business_date",
    "params",
    "free_text",
    "handler",
    "handler_param",
    "cron",
    "every_sec",
    "delay_sec",
    "once_at",
    "rule",
    "at",
    "event",
    "manual",
    "after",
    "time_zone",
    "calendar",
    "shift",
    "start",
    "end",
    "blackouts",
    "misfire",
    "misfire_window_sec",
    "overlap",
    "retry_count",
    "retry_delay_sec",
    "timeout_sec",
    "notify_email",
    "owner",
    "paused",
];
/// Keys of a schedule's `after`, if it is not just a group.
pub(crate) const AFTER: &[&str] = &["group", "on"];
/// Keys of an entry of `blackouts`.
pub(crate) const BLACKOUT: &[&str] = &["from", "until", "daily", "days", "because"];
/// Keys of a schedule's `misfire`, if it is not just a word.
pub(crate) const NEWEST: &[&str] = &["newest"];
/// Keys of an owner.
pub(crate) const OWNER: &[&str] = &["code", "name", "email", "lang"];
/// A host that HTTP jobs may call.
pub(crate) const HOST: &[&str] = &["name", "base_url", "ui_url", "headers", "max_parallel"];
/// The call of an HTTP job.
pub(crate) const HTTP: &[&str] = &["host", "method", "path", "headers", "send", "expect_status"];
/// Keys of a SENSOR job's `sensor`.
pub(crate) const SENSOR: &[&str] = &["poll_sec"];
/// Keys of a BATCH job's `sub_batch`.
pub(crate) const SUB_BATCH: &[&str] = &["group", "batch"];
/// Keys of a HANDLER or GLUE job's `executor`.
pub(crate) const EXECUTOR: &[&str] = &["app", "handler", "language", "send", "route", "block"];
/// The application of a FLINK or SPARK job.
pub(crate) const APPLICATION: &[&str] = &[
    "host",
    "file",
    "main_class",
    "args",
    "conf",
    "parallelism",
    "poll_sec",
    "master",
    "spark_home",
    "jars",
    "py_files",
    "driver_memory",
    "driver_cores",
    "executor_memory",
    "executor_cores",
    "max_cores",
    "queue",
];
/// Who may approve an APPROVAL job.
pub(crate) const APPROVAL: &[&str] = &["role", "permission", "users", "four_eyes", "question"];
/// Keys of `for_each`.
pub(crate) const FOR_EACH: &[&str] = &["items", "param", "output", "max_parallel"];
/// Keys of `items` in a `for_each` whose list is computed.
pub(crate) const ITEMS: &[&str] = &["param", "output"];
/// Keys of a parameter of a job.
pub(crate) const PARAM: &[&str] = &["name", "mode", "type", "value", "required", "secret"];
/// Keys of a parameter of a group, or of all groups.
pub(crate) const DECLARED: &[&str] = &["name", "type", "value", "required", "secret"];
/// Keys of the source of a secret.
pub(crate) const SECRET: &[&str] = &["name", "env", "file", "sealed", "owner_group", "groups"];
/// Keys of an entry of `dependencies`.
pub(crate) const DEPENDENCY: &[&str] = &["job_code", "depends_on", "dependency_order", "when"];
/// Keys of an entry of `depends_on`.
pub(crate) const PARENT: &[&str] = &["job", "when", "group", "batch", "missing", "wait_sec"];
/// Keys of a success rule.
pub(crate) const RULE: &[&str] = &["rule", "else", "message"];
/// Keys of a check.
pub(crate) const CHECK: &[&str] = &["name", "source", "sql", "sql_file", "expect", "else"];
/// Keys of a check's `expect`, if it is not the word `zero_rows`.
pub(crate) const EXPECT: &[&str] = &["between", "min", "max", "equals", "drift"];
/// Keys of `between`.
pub(crate) const BETWEEN: &[&str] = &["min", "max"];
/// Keys of `drift`.
pub(crate) const DRIFT: &[&str] = &["max_percent"];
/// Keys of `equals`, the second query of a check.
pub(crate) const EQUALS: &[&str] = &["sql", "sql_file", "source", "tolerance"];

/// Maximum duration of a body: 30 days.
pub(crate) const TIMEOUT_MAX: u32 = 30 * 24 * 3_600;
/// Maximum number of retries; a hundred failures are an incident, not bad luck.
pub(crate) const RETRIES_MAX: u32 = 100;
/// Maximum wait for another batch: a year.
pub(crate) const WAIT_MAX: u32 = 366 * 24 * 3_600;
/// Maximum delay between two attempts: a day.
pub(crate) const DELAY_MAX: u32 = crate::domain::job::retry::LONGEST_DELAY_SEC;
/// Maximum interval between two polls of a sensor: a day.
pub(crate) const POLL_MAX: u32 = 24 * 3_600;
/// Maximum value of a concurrency limit.
pub(crate) const PARALLEL_MAX: u32 = 10_000;
/// Maximum absolute value of a priority.
pub(crate) const PRIORITY_MAX: i32 = 1_000_000;
