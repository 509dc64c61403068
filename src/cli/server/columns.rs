//! The columns of each verb's list: the position in the API's documents, and the heading.

use crate::cli::server::shown::TableColumn;

pub(super) const BATCHES: &[TableColumn] = &[
    ("batch_no", "BATCH", "批次"),
    ("group", "GROUP", "作业组"),
    ("status", "STATUS", "状态"),
    ("jobs", "JOBS", "作业"),
    ("create_time", "OPENED", "创建时间"),
    ("end_time", "ENDED", "结束时间"),
];
pub(super) const BATCH_JOBS: &[TableColumn] = &[
    ("job_code", "JOB", "作业"),
    ("job_type", "TYPE", "类型"),
    ("status", "STATUS", "状态"),
    ("attempt", "STARTS", "启动次数"),
    ("duration_ms", "MS", "毫秒"),
    ("error_message", "RESULT", "结果"),
];
pub(super) const REASONS: &[TableColumn] =
    &[("job_code", "JOB", "作业"), ("status", "STATUS", "状态"), ("why", "WHY", "原因")];
pub(super) const JOBS: &[TableColumn] = &[
    ("code", "JOB", "作业"),
    ("group", "GROUP", "作业组"),
    ("type", "TYPE", "类型"),
    ("name", "NAME", "名称"),
    ("owner", "OWNER", "负责人"),
];
pub(super) const SCHEDULES: &[TableColumn] = &[
    ("schedule.code", "SCHEDULE", "调度"),
    ("status", "STATUS", "状态"),
    ("next_local", "NEXT", "下次"),
    ("last.planned_local", "LAST", "上次"),
    ("last.status", "BECAME", "结果"),
    ("reason", "REASON", "原因"),
];
pub(super) const FIRINGS: &[TableColumn] = &[
    ("planned_local", "PLANNED", "计划时间"),
    ("source", "SOURCE", "来源"),
    ("status", "STATUS", "状态"),
    ("batch_no", "BATCH", "批次"),
    ("reason", "REASON", "原因"),
];
pub(super) const NODES: &[TableColumn] = &[
    ("name", "NODE", "节点"),
    ("id", "ID", "标识"),
    ("host", "HOST", "主机"),
    ("roles", "ROLES", "角色"),
    ("labels", "LABELS", "标签"),
    ("running", "RUNS", "运行"),
    ("batches", "BATCHES", "批次"),
    ("state", "STATE", "状态"),
    ("version", "VERSION", "版本"),
];
pub(super) const NOTICES: &[TableColumn] = &[
    ("id", "ID", "编号"),
    ("created", "WHEN", "时间"),
    ("event", "EVENT", "事件"),
    ("to", "TO", "收件人"),
    ("status", "STATUS", "状态"),
    ("subject", "SUBJECT", "主题"),
    ("reason", "WHY", "原因"),
];
pub(super) const ACTS: &[TableColumn] = &[
    ("at", "WHEN", "时间"),
    ("actor", "WHO", "操作人"),
    ("action", "DID", "操作"),
    ("group", "GROUP", "作业组"),
    ("batch_no", "BATCH", "批次"),
    ("job_code", "JOB", "作业"),
    ("reason", "WHY", "原因"),
];
pub(super) const APPROVALS: &[TableColumn] = &[
    ("approval_id", "ID", "编号"),
    ("batch_no", "BATCH", "批次"),
    ("group", "GROUP", "作业组"),
    ("job_code", "JOB", "作业"),
    ("status", "STATUS", "状态"),
    ("approvers", "APPROVERS", "审批人"),
    ("deadline", "UNTIL", "截止时间"),
    ("decided_by", "DECIDED BY", "决定人"),
];
pub(super) const BACKFILLS: &[TableColumn] = &[
    ("backfill_id", "ID", "编号"),
    ("group", "GROUP", "作业组"),
    ("range", "RANGE", "范围"),
    ("status", "STATUS", "状态"),
    ("started_by", "BY", "发起人"),
    ("create_time", "BEGUN", "开始时间"),
];
pub(super) const ENTRIES: &[TableColumn] =
    &[("batch_no", "BATCH", "批次"), ("status", "STATUS", "状态"), ("message", "MESSAGE", "说明")];
pub(super) const VERSIONS: &[TableColumn] = &[
    ("version", "VERSION", "版本"),
    ("at", "WHEN", "时间"),
    ("author", "AUTHOR", "作者"),
    ("remark", "REMARK", "备注"),
];

/// Firings caused by an event.
pub(super) const FIRED: &[TableColumn] = &[
    ("schedule", "SCHEDULE", "调度"),
    ("planned_at", "PLANNED", "计划时间"),
    ("left_out", "LEFT OUT", "未触发原因"),
];
