//! Columns of the tables of msdb in which SQL Server Agent keeps its jobs.

use crate::import::keys::{Hint, KnownKey, hint, noted, read_key, record};

const OUTPUT: Hint = hint("output is kept in the log of the job", "输出保存在作业日志中");
const NET_SEND: Hint = hint(
    "notify_email and notify tell of failures; other ways are notification channels",
    "失败可用 notify_email 与 notify 通知,其他方式请用通知渠道",
);

/// `sysjobs`.
pub(in crate::import) const JOBS: &[KnownKey] = &[
    read_key("job_id"),
    read_key("name"),
    read_key("enabled"),
    read_key("description"),
    read_key("start_step_id"),
    read_key("category_id"),
    read_key("notify_level_email"),
    read_key("notify_email_operator_id"),
    noted("notify_level_eventlog", &["0", "2"], NET_SEND),
    noted("notify_level_netsend", &["0"], NET_SEND),
    noted("notify_level_page", &["0"], NET_SEND),
    noted(
        "delete_level",
        &["0"],
        hint("a job is never removed by its end here", "此处作业不会因结束而被删除"),
    ),
    record("notify_netsend_operator_id"),
    record("notify_page_operator_id"),
    record("originating_server_id"),
    record("originating_server"),
    record("master_server"),
    record("owner_sid"),
    record("date_created"),
    record("date_modified"),
    record("version_number"),
];

/// `sysjobsteps`.
pub(in crate::import) const STEPS: &[KnownKey] = &[
    read_key("job_id"),
    read_key("step_id"),
    read_key("step_name"),
    read_key("subsystem"),
    read_key("command"),
    read_key("cmdexec_success_code"),
    read_key("on_success_action"),
    read_key("on_success_step_id"),
    read_key("on_fail_action"),
    read_key("on_fail_step_id"),
    read_key("database_name"),
    read_key("database_user_name"),
    read_key("retry_attempts"),
    read_key("retry_interval"),
    noted("additional_parameters", &[], hint("", "")),
    noted(
        "server",
        &[],
        hint(
            "write it as value of the parameter sql_server of the job",
            "请填入作业参数 sql_server",
        ),
    ),
    noted("os_run_priority", &["0"], hint("", "")),
    noted("output_file_name", &[], OUTPUT),
    noted(
        "proxy_id",
        &["0"],
        hint(
            "it ran as the account of that proxy; here scripts run as the user of procession serve, or of [script.run_as]",
            "原以该代理账户运行;此处脚本以 procession serve 或 [script.run_as] 的用户运行",
        ),
    ),
    record("flags"),
    record("step_uid"),
    record("last_run_outcome"),
    record("last_run_duration"),
    record("last_run_retries"),
    record("last_run_date"),
    record("last_run_time"),
];

/// `sysschedules`.
pub(in crate::import) const SCHEDULES: &[KnownKey] = &[
    read_key("schedule_id"),
    read_key("name"),
    read_key("enabled"),
    read_key("freq_type"),
    read_key("freq_interval"),
    read_key("freq_subday_type"),
    read_key("freq_subday_interval"),
    read_key("freq_relative_interval"),
    read_key("freq_recurrence_factor"),
    read_key("active_start_date"),
    read_key("active_end_date"),
    read_key("active_start_time"),
    read_key("active_end_time"),
    record("schedule_uid"),
    record("originating_server_id"),
    record("owner_sid"),
    record("date_created"),
    record("date_modified"),
    record("version_number"),
];

/// `sysjobschedules`.
pub(in crate::import) const JOB_SCHEDULES: &[KnownKey] = &[
    read_key("schedule_id"),
    read_key("job_id"),
    read_key("next_run_date"),
    read_key("next_run_time"),
];

/// `sysjobservers`.
pub(in crate::import) const JOB_SERVERS: &[KnownKey] = &[
    read_key("job_id"),
    read_key("server_id"),
    record("last_run_outcome"),
    record("last_outcome_message"),
    record("last_run_date"),
    record("last_run_time"),
    record("last_run_duration"),
];

/// `syscategories`.
pub(in crate::import) const CATEGORIES: &[KnownKey] =
    &[read_key("category_id"), read_key("name"), record("category_class"), record("category_type")];

/// `sysoperators`.
pub(in crate::import) const OPERATORS: &[KnownKey] = &[
    read_key("id"),
    read_key("name"),
    read_key("enabled"),
    read_key("email_address"),
    record("last_email_date"),
    record("last_email_time"),
    record("pager_address"),
    record("last_pager_date"),
    record("last_pager_time"),
    record("weekday_pager_start_time"),
    record("weekday_pager_end_time"),
    record("saturday_pager_start_time"),
    record("saturday_pager_end_time"),
    record("sunday_pager_start_time"),
    record("sunday_pager_end_time"),
    record("pager_days"),
    record("netsend_address"),
    record("last_netsend_date"),
    record("last_netsend_time"),
    record("category_id"),
];
