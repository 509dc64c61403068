//! The keys of a definition file, and how large its numbers may be.

/// A whole definition.
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
/// A data source.
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
/// A group.
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
/// A pool.
pub(crate) const POOL: &[&str] = &["name", "slots"];
/// An entry of a job's `pools`.
pub(crate) const POOL_USE: &[&str] = &["pool", "weight"];
/// An entry of a job's `locks`.
pub(crate) const LOCK_USE: &[&str] = &["lock", "mode"];
/// `lineage`.
pub(crate) const LINEAGE: &[&str] = &["reads", "writes", "opaque", "ignore"];
/// `retry`.
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
/// What `defaults` and jobs share.
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
/// `notify`: the events that are about a job or a batch.
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
/// What only a job has.
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
/// A schedule.
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
];
/// `after` of a schedule, beside the group alone.
pub(crate) const AFTER: &[&str] = &["group", "on"];
/// An entry of `blackouts`.
pub(crate) const BLACKOUT: &[&str] = &["from", "until", "daily", "days", "because"];
/// `misfire` of a schedule, beside its words.
pub(crate) const NEWEST: &[&str] = &["newest"];
/// An owner.
pub(crate) const OWNER: &[&str] = &["code", "name", "email", "lang"];
/// A host that HTTP jobs may call.
pub(crate) const HOST: &[&str] = &["name", "base_url", "ui_url", "headers", "max_parallel"];
/// The call of an HTTP job.
pub(crate) const HTTP: &[&str] = &["host", "method", "path", "headers", "send", "expect_status"];
/// How a SENSOR job asks.
pub(crate) const SENSOR: &[&str] = &["poll_sec"];
/// The batch that a BATCH job opens.
pub(crate) const SUB_BATCH: &[&str] = &["group", "batch"];
/// What a HANDLER or GLUE job asks of an executor.
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
/// The list of a fan-out.
pub(crate) const FOR_EACH: &[&str] = &["items", "param", "output", "max_parallel"];
/// A list that is not written down.
pub(crate) const ITEMS: &[&str] = &["param", "output"];
/// A parameter of a job.
pub(crate) const PARAM: &[&str] = &["name", "mode", "type", "value", "required", "secret"];
/// A parameter of a group, or of all groups.
pub(crate) const DECLARED: &[&str] = &["name", "type", "value", "required", "secret"];
/// Where a secret comes from.
pub(crate) const SECRET: &[&str] = &["name", "env", "file", "sealed", "owner_group", "groups"];
/// An entry of `dependencies`.
pub(crate) const DEPENDENCY: &[&str] = &["job_code", "depends_on", "dependency_order", "when"];
/// An entry of `depends_on`.
pub(crate) const PARENT: &[&str] = &["job", "when", "group", "batch", "missing", "wait_sec"];
/// A success rule.
pub(crate) const RULE: &[&str] = &["rule", "else", "message"];
/// A check.
pub(crate) const CHECK: &[&str] = &["name", "source", "sql", "sql_file", "expect", "else"];
/// What a check expects, beside the word `zero_rows`.
pub(crate) const EXPECT: &[&str] = &["between", "min", "max", "equals", "drift"];
/// The ends of `between`.
pub(crate) const BETWEEN: &[&str] = &["min", "max"];
/// What `drift` allows.
pub(crate) const DRIFT: &[&str] = &["max_percent"];
/// The other query of `equals`.
pub(crate) const EQUALS: &[&str] = &["sql", "sql_file", "source", "tolerance"];

/// Longest a body may run: 30 days.
pub(crate) const TIMEOUT_MAX: u32 = 30 * 24 * 3_600;
/// Most tries after the first; a hundred failures are an incident and not bad luck.
pub(crate) const RETRIES_MAX: u32 = 100;
/// Longest wait for another batch: a year.
pub(crate) const WAIT_MAX: u32 = 366 * 24 * 3_600;
/// Longest wait between two tries: a day.
pub(crate) const DELAY_MAX: u32 = crate::domain::job::retry::LONGEST_DELAY_SEC;
/// Longest wait between two questions of a sensor: a day.
pub(crate) const POLL_MAX: u32 = 24 * 3_600;
/// Highest limit of things at once.
pub(crate) const PARALLEL_MAX: u32 = 10_000;
/// Priorities run from minus to plus this.
pub(crate) const PRIORITY_MAX: i32 = 1_000_000;
