//! The keys of serialized DAGs, of Airflow 2.0 to 3.1.

use crate::import::keys::{KnownKey, hint, noted, read_key, record};

const NO: &[&str] = &["false", "0", "0.0"];

/// Keys of a row of `serialized_dag` as JSON.
pub(in crate::import) const ROW: &[KnownKey] = &[
    record("dag_id"),
    read_key("data"),
    record("id"),
    record("fileloc"),
    record("fileloc_hash"),
    record("data_compressed"),
    record("last_updated"),
    record("created_at"),
    record("dag_hash"),
    record("dag_version_id"),
    record("processor_subdir"),
];

/// Keys of a serialized DAG with its version.
pub(in crate::import) const DOCUMENT: &[KnownKey] =
    &[record("__version"), read_key("dag"), read_key("client_defaults")];

/// Keys of a DAG.
pub(in crate::import) const DAG: &[KnownKey] = &[
    read_key("dag_id"),
    read_key("_dag_id"),
    read_key("tasks"),
    read_key("params"),
    read_key("timezone"),
    read_key("schedule_interval"),
    read_key("timetable"),
    read_key("catchup"),
    read_key("start_date"),
    read_key("end_date"),
    read_key("description"),
    read_key("_description"),
    read_key("max_active_tasks"),
    read_key("_max_active_tasks"),
    read_key("_concurrency"),
    read_key("max_active_runs"),
    read_key("dagrun_timeout"),
    read_key("fail_fast"),
    read_key("fail_stop"),
    read_key("is_paused_upon_creation"),
    record("fileloc"),
    record("relative_fileloc"),
    record("_processor_dags_folder"),
    record("dag_display_name"),
    record("_dag_display_property_value"),
    record("orientation"),
    record("_default_view"),
    record("owner_links"),
    record("doc_md"),
    record("_task_group"),
    record("task_group"),
    record("edge_info"),
    // The tasks already contain them.
    record("default_args"),
    record("disable_bundle_versioning"),
    record("rerun_with_latest_version"),
    record("is_subdag"),
    // Two tasks contain them: the one that triggers, and the one that waits.
    record("dag_dependencies"),
    noted("tags", &["[]"], hint("tags are the jobs' here", "此处标签写在作业上")),
    noted("deadline", &[], hint("write due on the group", "请在作业组上写 due")),
    noted(
        "allowed_run_types",
        &[],
        hint("permissions say who may start a batch", "由权限决定谁可启动批次"),
    ),
    noted(
        "max_consecutive_failed_dag_runs",
        NO,
        hint("nothing here pauses a schedule after failures", "此处不会在多次失败后暂停调度"),
    ),
    noted(
        "access_control",
        &[],
        hint(
            "give users their rights: procession user grant",
            "请为用户授权：procession user grant",
        ),
    ),
    noted(
        "_access_control",
        &[],
        hint(
            "give users their rights: procession user grant",
            "请为用户授权：procession user grant",
        ),
    ),
    noted(
        "has_on_success_callback",
        NO,
        hint(
            "its Python function is in no serialised DAG: write a job or a notification",
            "其 Python 函数不在序列化的 DAG 中：请写作业或通知规则",
        ),
    ),
    noted(
        "has_on_failure_callback",
        NO,
        hint(
            "its Python function is in no serialised DAG: write notify_email, or a job with when: failure",
            "其 Python 函数不在序列化的 DAG 中：请写 notify_email，或 when: failure 的作业",
        ),
    ),
    noted(
        "render_template_as_native_obj",
        NO,
        hint("values of parameters are texts here", "此处参数值均为文本"),
    ),
];

/// Keys of every task.
pub(in crate::import) const TASK: &[KnownKey] = &[
    read_key("task_id"),
    read_key("task_type"),
    read_key("_task_type"),
    read_key("_task_module"),
    read_key("downstream_task_ids"),
    read_key("_downstream_task_ids"),
    read_key("template_fields"),
    read_key("owner"),
    read_key("trigger_rule"),
    read_key("retries"),
    read_key("retry_delay"),
    read_key("execution_timeout"),
    read_key("email"),
    read_key("email_on_failure"),
    read_key("pool"),
    read_key("pool_slots"),
    read_key("_is_mapped"),
    read_key("is_teardown"),
    record("_operator_name"),
    record("_operator_extra_links"),
    record("_task_display_name"),
    record("_task_display_property_value"),
    record("label"),
    record("ui_color"),
    record("ui_fgcolor"),
    record("template_ext"),
    record("template_fields_renderers"),
    record("_logger_name"),
    record("_log_config_logger_name"),
    record("_is_empty"),
    record("_is_dummy"),
    record("_is_sensor"),
    record("is_setup"),
    record("doc"),
    record("doc_md"),
    record("doc_json"),
    record("doc_yaml"),
    record("doc_rst"),
    record("deps"),
    record("weight_rule"),
    record("_can_skip_downstream"),
    record("start_trigger_args"),
    record("start_from_trigger"),
    record("allow_nested_operators"),
    record("map_index_template"),
    record("multiple_outputs"),
    record("email_on_retry"),
    record("do_xcom_push"),
    record("ignore_first_depends_on_past"),
    record("wait_for_past_depends_before_skipping"),
    record("on_failure_fail_dagrun"),
    read_key("params"),
    record("_needs_expansion"),
    record("partial_kwargs"),
    record("expand_input"),
    record("_expand_input_attr"),
    record("_disallow_kwargs_override"),
    record("render_template_as_native_obj"),
    record("start_date"),
    noted(
        "end_date",
        &[],
        hint("the schedule has an end here, tasks have none", "此处只有调度有结束时间"),
    ),
    noted(
        "depends_on_past",
        NO,
        hint(
            "there it waits for itself in the run before: write a dependency on the group's batch day(-1), or overlap: queue",
            "原系统等待上一次运行中的同一任务：请写对本组批次 day(-1) 的依赖，或 overlap: queue",
        ),
    ),
    noted(
        "depends_on_previous_tasks",
        &[],
        hint("write a dependency on the group's batch day(-1)", "请写对本组批次 day(-1) 的依赖"),
    ),
    noted(
        "wait_for_downstream",
        NO,
        hint("write overlap: queue on the schedule", "请在调度上写 overlap: queue"),
    ),
    noted(
        "queue",
        &["default"],
        hint(
            "start nodes with --label and write worker: LABEL",
            "请用 --label 启动节点并写 worker: 标签",
        ),
    ),
    noted(
        "executor",
        &[],
        hint(
            "start nodes with --label and write worker: LABEL",
            "请用 --label 启动节点并写 worker: 标签",
        ),
    ),
    noted(
        "executor_config",
        &["{}"],
        hint("write what the job needs in its body", "请在作业内容中写明所需"),
    ),
    noted("priority_weight", &["1", "1.0"], hint("write priority", "请写 priority")),
    noted(
        "retry_exponential_backoff",
        NO,
        hint("write retry: with a backoff", "请用 retry: 写明退避策略"),
    ),
    noted("max_retry_delay", &[], hint("write retry: with a backoff", "请用 retry: 写明退避策略")),
    noted(
        "max_active_tis_per_dag",
        &[],
        hint("write a lock or a pool on the job", "请在作业上写锁或资源池"),
    ),
    noted(
        "max_active_tis_per_dagrun",
        &[],
        hint("write a lock or a pool on the job", "请在作业上写锁或资源池"),
    ),
    noted("inlets", &["[]"], hint("write reads on the job", "请在作业上写 reads")),
    noted(
        "outlets",
        &["[]"],
        hint(
            "write writes on the job; DAGs that wait for them need an event",
            "请在作业上写 writes；等待它们的 DAG 需要事件",
        ),
    ),
    noted("has_on_execute_callback", NO, CALLBACK),
    noted("has_on_failure_callback", NO, CALLBACK),
    noted("has_on_success_callback", NO, CALLBACK),
    noted("has_on_retry_callback", NO, CALLBACK),
    noted("has_on_skipped_callback", NO, CALLBACK),
];

const CALLBACK: crate::import::keys::Hint = hint(
    "its Python function is in no serialised DAG: write a job or a notification",
    "其 Python 函数不在序列化的 DAG 中：请写作业或通知规则",
);
