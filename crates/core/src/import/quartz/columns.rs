//! The columns of Quartz's tables, of 2.0 to 2.5.

use crate::import::keys::{KnownKey, hint, noted, read_key, record};

const NO: &[&str] = &["0", "f", "false", "n"];

/// `QRTZ_JOB_DETAILS`
pub(in crate::import) const JOB_COLUMNS: &[KnownKey] = &[
    read_key("sched_name"),
    read_key("job_name"),
    read_key("job_group"),
    read_key("description"),
    read_key("job_class_name"),
    record("is_durable"),
    read_key("is_nonconcurrent"),
    noted(
        "is_update_data",
        NO,
        hint(
            "a run changes its data for the next one (@PersistJobDataAfterExecution): keep that state in a table of its own",
            "每次运行会为下次修改数据（@PersistJobDataAfterExecution）：请将该状态存入自己的表",
        ),
    ),
    noted(
        "requests_recovery",
        NO,
        hint(
            "there it ran again after a crash: set idempotent: true if it may run twice",
            "原系统在崩溃后会重新执行：如可重复执行，请设置 idempotent: true",
        ),
    ),
    read_key("job_data"),
];

/// `QRTZ_TRIGGERS`
pub(in crate::import) const TRIGGER_COLUMNS: &[KnownKey] = &[
    read_key("sched_name"),
    read_key("trigger_name"),
    read_key("trigger_group"),
    read_key("job_name"),
    read_key("job_group"),
    read_key("description"),
    read_key("next_fire_time"),
    record("prev_fire_time"),
    noted(
        "priority",
        &["5", "0"],
        hint(
            "of firings at the same moment it came earlier or later: set priority on the job",
            "同一时刻触发时决定先后：请在作业上设置 priority",
        ),
    ),
    read_key("trigger_state"),
    read_key("trigger_type"),
    read_key("start_time"),
    read_key("end_time"),
    read_key("calendar_name"),
    read_key("misfire_instr"),
    record("misfire_orig_fire_time"),
    noted(
        "execution_group",
        &[],
        hint("a pool limits how many run at once", "可用资源池限制同时运行的数量"),
    ),
    read_key("job_data"),
];

/// `QRTZ_CRON_TRIGGERS`
pub(in crate::import) const CRON_COLUMNS: &[KnownKey] = &[
    read_key("sched_name"),
    read_key("trigger_name"),
    read_key("trigger_group"),
    read_key("cron_expression"),
    read_key("time_zone_id"),
];

/// `QRTZ_SIMPLE_TRIGGERS`
pub(in crate::import) const SIMPLE_COLUMNS: &[KnownKey] = &[
    read_key("sched_name"),
    read_key("trigger_name"),
    read_key("trigger_group"),
    read_key("repeat_count"),
    read_key("repeat_interval"),
    read_key("times_triggered"),
];

/// `QRTZ_SIMPROP_TRIGGERS`: triggers with calendar intervals and daily times.
pub(in crate::import) const PROPERTY_COLUMNS: &[KnownKey] = &[
    read_key("sched_name"),
    read_key("trigger_name"),
    read_key("trigger_group"),
    read_key("str_prop_1"),
    read_key("str_prop_2"),
    read_key("str_prop_3"),
    read_key("int_prop_1"),
    record("int_prop_2"),
    read_key("long_prop_1"),
    record("long_prop_2"),
    record("dec_prop_1"),
    record("dec_prop_2"),
    record("bool_prop_1"),
    noted(
        "bool_prop_2",
        NO,
        hint(
            "a day without that hour is skipped there (skipDayIfHourDoesNotExist); here it fires after the gap",
            "原系统跳过没有该时刻的日期（skipDayIfHourDoesNotExist）；此处在时钟跳过之后触发",
        ),
    ),
    read_key("time_zone_id"),
];

/// `QRTZ_CALENDARS`
pub(in crate::import) const CALENDAR_COLUMNS: &[KnownKey] = &[
    record("sched_name"),
    noted(
        "calendar_name",
        &[],
        hint(
            "its days are a serialised Java object: write them as a calendar here, and name it in the schedules that are left out",
            "其日期是 Java 序列化对象：请在此处建立日历，并在未迁移的调度中引用",
        ),
    ),
    record("calendar"),
];
