//! Keys of the Automation API's JSON. Maps with a type (jobs, events, resources, actions) are read separately.

use crate::import::keys::{Hint, KnownKey, hint, noted, read_key, record};

const AFTER: Hint = hint(
    "limits on when it may start have no counterpart; start_by tells of a late start",
    "没有对应的最晚提交时间;start_by 可在启动过晚时通知",
);
const SITE: Hint = hint("it is about Control-M's own site", "仅与 Control-M 站点有关");
const CONFIRM: Hint = hint(
    "a job of type APPROVAL before it waits for a person",
    "可在其前增加 APPROVAL 作业等待人工确认",
);
const NO_RERUNS: Hint = hint(
    "retry_count with retry_delay_sec runs a failed job again",
    "可用 retry_count 与 retry_delay_sec 重试失败的作业",
);
const NONE: Hint = hint("", "");

/// Keys that jobs inherit from their scopes.
pub(in crate::import) const INHERITED: &[KnownKey] = &[
    read_key("When"),
    read_key("RunAs"),
    read_key("Host"),
    read_key("Application"),
    read_key("SubApplication"),
    read_key("Variables"),
    read_key("Priority"),
    read_key("TimeZone"),
];

/// Keys of the defaults of a file, besides the inherited keys and those of each type of job.
pub(in crate::import) const DEFAULTS: &[KnownKey] =
    &[record("Server"), record("ControlmServer"), record("Comment")];

/// Keys of a folder and of a sub-folder.
pub(in crate::import) const FOLDER: &[KnownKey] = &[
    read_key("Type"),
    read_key("Jobs"),
    read_key("Description"),
    read_key("OrderMethod"),
    record("Comment"),
    record("ControlmServer"),
    record("Server"),
    record("CreatedBy"),
    record("ActiveRetentionPolicy"),
    record("DaysKeepActive"),
    record("DaysKeepActiveIfNotOk"),
    record("BusinessFields"),
    record("Library"),
    noted("SiteStandard", &[], SITE),
    noted("Confirm", &["false"], CONFIRM),
    noted(
        "Critical",
        &["false"],
        hint("priority above 0 goes first here", "可用大于 0 的 priority 优先运行"),
    ),
    noted("Rerun", &[], NO_RERUNS),
    noted("RerunLimit", &[], NO_RERUNS),
    noted("AdjustEvents", &[], NONE),
    noted("EnforceValidation", &["false"], SITE),
    noted("FolderOrderMethod", &[], SITE),
];

/// Keys of any job, besides the inherited keys.
pub(in crate::import) const JOB: &[KnownKey] = &[
    read_key("Type"),
    read_key("Name"),
    read_key("Description"),
    read_key("RunAsDummy"),
    read_key("Rerun"),
    read_key("RerunIntervals"),
    read_key("RerunSpecificTimes"),
    read_key("RerunLimit"),
    record("Comment"),
    record("CreatedBy"),
    record("ControlmServer"),
    record("Server"),
    record("DocumentationFile"),
    record("DocumentationUrl"),
    record("Documentation"),
    record("ActiveRetentionPolicy"),
    record("DaysKeepActive"),
    record("DaysKeepActiveIfNotOk"),
    record("KeepActiveIfNotOk"),
    record("BusinessFields"),
    record("CreationUser"),
    noted("Confirm", &["false"], CONFIRM),
    noted(
        "Critical",
        &["false"],
        hint("priority above 0 goes first here", "可用大于 0 的 priority 优先运行"),
    ),
    noted("OverridePath", &[], NONE),
    noted(
        "OutputHandling",
        &[],
        hint("output is kept in the log of the job", "输出保存在作业日志中"),
    ),
    noted("EndFolder", &["false"], NONE),
    noted(
        "RunOnAllAgentsInGroup",
        &["false"],
        hint("a job of its own for each node does so", "可为每个节点各建一个作业"),
    ),
];

/// Keys of a type of job; `None` for a type without an equivalent.
pub(in crate::import) fn of_kind(kind: &str) -> Option<&'static [KnownKey]> {
    Some(match kind {
        "Job:Command" => COMMAND,
        "Job:Script" => SCRIPT,
        "Job:EmbeddedScript" => EMBEDDED_SCRIPT,
        "Job:Database:EmbeddedQuery" => QUERY,
        "Job:Database:StoredProcedure" => PROCEDURE,
        "Job:Dummy" => &[],
        _ => return None,
    })
}

pub(in crate::import) const COMMAND: &[KnownKey] = &[
    read_key("Command"),
    read_key("PreCommand"),
    read_key("PostCommand"),
    record("FileName"),
    record("FilePath"),
];
pub(in crate::import) const SCRIPT: &[KnownKey] = &[
    read_key("FileName"),
    read_key("FilePath"),
    read_key("Arguments"),
    read_key("PreCommand"),
    read_key("PostCommand"),
];
pub(in crate::import) const EMBEDDED_SCRIPT: &[KnownKey] = &[
    read_key("Script"),
    read_key("PreCommand"),
    read_key("PostCommand"),
    record("FileName"),
    record("FilePath"),
    noted("Arguments", &[], hint("write them into the script", "请写入脚本")),
];
pub(in crate::import) const QUERY: &[KnownKey] =
    &[read_key("ConnectionProfile"), read_key("Query")];
pub(in crate::import) const PROCEDURE: &[KnownKey] = &[
    read_key("ConnectionProfile"),
    read_key("StoredProcedure"),
    read_key("Schema"),
    read_key("Parameters"),
    noted("Package", &[], hint("write it into proc_name", "请写入 proc_name")),
    noted("ReturnValue", &[], NONE),
];

/// Keys of `When` for a cyclic job: they are the hours of its cycle.
pub(in crate::import) const CYCLE_WHEN: &[KnownKey] = &[read_key("ToTime")];

/// Keys of `When`.
pub(in crate::import) const WHEN: &[KnownKey] = &[
    read_key("Schedule"),
    read_key("WeekDays"),
    read_key("MonthDays"),
    read_key("Months"),
    read_key("DaysRelation"),
    read_key("SpecificDates"),
    read_key("FromTime"),
    read_key("StartDate"),
    read_key("EndDate"),
    read_key("WeekDaysCalendar"),
    read_key("MonthDaysCalendar"),
    read_key("ConfirmationCalendars"),
    read_key("RuleBasedCalendars"),
    noted("ToTime", &[">", ""], AFTER),
];
