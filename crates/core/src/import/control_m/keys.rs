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

/// Keys of folders, sub-folders and jobs, besides the inherited keys.
pub(in crate::import) const ANY: &[KnownKey] = &[
    read_key("Type"),
    read_key("Description"),
    record("Comment"),
    record("ControlmServer"),
    record("Server"),
    record("CreatedBy"),
    record("ActiveRetentionPolicy"),
    record("DaysKeepActive"),
    record("DaysKeepActiveIfNotOk"),
    record("BusinessFields"),
    noted("Confirm", &["false"], CONFIRM),
    noted(
        "Critical",
        &["false"],
        hint("priority above 0 goes first here", "可用大于 0 的 priority 优先运行"),
    ),
];

/// Further keys of a folder and of a sub-folder.
pub(in crate::import) const FOLDER: &[KnownKey] = &[
    read_key("Jobs"),
    read_key("OrderMethod"),
    record("Library"),
    noted("SiteStandard", &[], SITE),
    noted("Rerun", &[], NO_RERUNS),
    noted("RerunLimit", &[], NO_RERUNS),
    noted("AdjustEvents", &[], NONE),
    noted("EnforceValidation", &["false"], SITE),
    noted("FolderOrderMethod", &[], SITE),
];

/// Further keys of any job.
pub(in crate::import) const JOB: &[KnownKey] = &[
    read_key("Name"),
    read_key("RunAsDummy"),
    read_key("Rerun"),
    read_key("RerunIntervals"),
    read_key("RerunSpecificTimes"),
    read_key("RerunLimit"),
    record("DocumentationFile"),
    record("DocumentationUrl"),
    record("Documentation"),
    record("KeepActiveIfNotOk"),
    record("CreationUser"),
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

/// Attributes of folders and jobs.
const XML_ANY: &[KnownKey] = &[
    read_key("JOBNAME"),
    read_key("DESCRIPTION"),
    read_key("APPLICATION"),
    read_key("SUB_APPLICATION"),
    read_key("RUN_AS"),
    read_key("OWNER"),
    read_key("TIMEZONE"),
    read_key("DAYS"),
    read_key("WEEKDAYS"),
    read_key("DAYS_AND_OR"),
    read_key("DAYSCAL"),
    read_key("WEEKSCAL"),
    read_key("CONFCAL"),
    read_key("DATE"),
    record("CREATED_BY"),
    record("JOBISN"),
    read_key("JAN"),
    read_key("FEB"),
    read_key("MAR"),
    read_key("APR"),
    read_key("MAY"),
    read_key("JUN"),
    read_key("JUL"),
    read_key("AUG"),
    read_key("SEP"),
    read_key("OCT"),
    read_key("NOV"),
    read_key("DEC"),
    record("MAXWAIT"),
    record("AUTOARCH"),
    record("MAXDAYS"),
    record("MAXRUNS"),
    record("SYSDB"),
    record("CREATION_USER"),
    record("CREATION_DATE"),
    record("CREATION_TIME"),
    record("CHANGE_USERID"),
    record("CHANGE_DATE"),
    record("CHANGE_TIME"),
    record("VERSION_OPCODE"),
    record("IS_CURRENT_VERSION"),
    record("VERSION_SERIAL"),
    record("VERSION_HOST"),
    record("CYCLIC_TOLERANCE"),
    record("CYCLIC_TYPE"),
    record("PARENT_FOLDER"),
    record("JOB_VERSION"),
    noted("SHIFTNUM", &["+00", "0"], NONE),
];

/// Attributes of FOLDER and of what it was called before.
pub(in crate::import) const XML_FOLDER: &[&[KnownKey]] = &[XML_ANY, XML_FOLDER_ALONE];

const XML_FOLDER_ALONE: &[KnownKey] = &[
    read_key("FOLDER_NAME"),
    read_key("TABLE_NAME"),
    read_key("FOLDER_ORDER_METHOD"),
    read_key("TABLE_USERDAILY"),
    record("DATACENTER"),
    record("VERSION"),
    record("PLATFORM"),
    record("MODIFIED"),
    record("LAST_UPLOAD"),
    record("REAL_FOLDER_ID"),
    record("REAL_TABLE_ID"),
    record("TYPE"),
    record("USED_BY_CODE"),
    record("ENFORCE_VALIDATION"),
    record("FOLDER_DSN"),
    record("TABLE_DSN"),
    record("TASKTYPE"),
    record("INTERVAL"),
    record("JOBS_IN_GROUP"),
    record("IND_CYCLIC"),
    record("APPL_TYPE"),
    record("USE_INSTREAM_JCL"),
    record("REMOVEATONCE"),
    record("DAYSKEEPINNOTOK"),
    noted("PRIORITY", &[], hint("write priority at its jobs", "请在其作业上填写 priority")),
    noted(
        "CRITICAL",
        &["0"],
        hint("priority above 0 goes first here", "可用大于 0 的 priority 优先运行"),
    ),
    noted("CONFIRM", &["0"], CONFIRM),
    noted("CYCLIC", &["0"], hint("write a schedule that fires more often", "请编写更频繁的调度")),
    noted("MAXRERUN", &["0"], NO_RERUNS),
    noted("RETRO", &["0", "N"], NONE),
    noted(
        "TIMEFROM",
        &[],
        hint("write schedule_time at its first jobs", "请在其首批作业上填写 schedule_time"),
    ),
    noted("TIMETO", &[], AFTER),
    noted("SHIFT", &["Ignore Job", "IGNOREJOB"], NONE),
    noted("SITE_STANDARD_NAME", &[], SITE),
    noted("ADJUST_COND", &["N", "0"], NONE),
];

/// Attributes of JOB.
pub(in crate::import) const XML_JOB: &[&[KnownKey]] = &[XML_ANY, XML_JOB_ALONE];

const XML_JOB_ALONE: &[KnownKey] = &[
    read_key("MEMNAME"),
    read_key("MEMLIB"),
    read_key("CMDLINE"),
    read_key("TASKTYPE"),
    read_key("APPL_TYPE"),
    read_key("USE_INSTREAM_JCL"),
    read_key("INSTREAM_JCL"),
    read_key("NODEID"),
    read_key("GROUP"),
    read_key("PRIORITY"),
    read_key("CONFIRM"),
    read_key("CRITICAL"),
    read_key("TIMEFROM"),
    read_key("TIMETO"),
    read_key("ACTIVE_FROM"),
    read_key("ACTIVE_TILL"),
    read_key("CYCLIC"),
    read_key("INTERVAL"),
    read_key("IND_CYCLIC"),
    read_key("CYCLIC_TIMES_SEQUENCE"),
    read_key("CYCLIC_INTERVAL_SEQUENCE"),
    read_key("MAXRERUN"),
    record("RULE_BASED_CALENDAR_RELATIONSHIP"),
    record("AUTHOR"),
    record("DOCLIB"),
    record("DOCMEM"),
    record("PARENT_TABLE"),
    record("APPL_FORM"),
    record("APPL_VER"),
    record("CM_VER"),
    record("PREVENTNCT2"),
    record("END_FOLDER"),
    noted(
        "SHIFT",
        &["Ignore Job", "IGNOREJOB"],
        hint(
            "shift: next or previous with a calendar moves a firing",
            "带日历的 shift: next 或 previous 可移动触发日",
        ),
    ),
    noted(
        "RETRO",
        &["0", "N"],
        hint("misfire: all makes up for every day", "misfire: all 可补跑每一天"),
    ),
    noted(
        "MULTIAGENT",
        &["0", "N"],
        hint("a job of its own for each node does so", "可为每个节点各建一个作业"),
    ),
    noted("MULTY_AGENT", &["0", "N"], NONE),
    noted("OVERLIB", &[], NONE),
    noted("OVERRIDE_PATH", &[], NONE),
    noted("OPTION", &[], NONE),
    noted("PAR", &[], NONE),
    noted("FROM", &[], NONE),
];
