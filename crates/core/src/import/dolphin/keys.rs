//! The keys of DolphinScheduler's exports, from 1.3 to 3.x: one table per kind of row and task.

use crate::import::keys::{Hint, KnownKey, hint, noted, read_key, record};

const NOTHING: Hint = hint("", "");
const COMMENT: Hint = hint("a comment in the file can keep it", "可写为文件中的注释");
const ENVIRONMENT: Hint = hint(
    "variables of that environment are not in an export: export them in the script, or run a node with them and \
     give the job worker: LABEL",
    "导出文件不含该环境的变量:请在脚本中 export,或用带这些变量的节点运行并设置 worker: 标签",
);
const TENANT: Hint = hint(
    "scripts run as the user of procession serve: run a node as that user and give its jobs worker: LABEL",
    "脚本以 procession serve 的用户运行:可用该用户运行节点,并设置 worker: 标签",
);
const POOL: Hint = hint(
    "make a pool of the size that the task group has and name it: pools: [NAME]",
    "请按任务组的容量建立资源池,并写 pools: [名称]",
);
const POOL_PRIORITY: Hint = hint(
    "priority of the job is the order here, in pools, too",
    "此处(包括资源池)按作业的 priority 排序",
);
const MEMORY: Hint = hint(
    "limit it in the script, or in the service that runs the node (systemd: CPUQuota, MemoryMax)",
    "请在脚本中限制,或在运行节点的服务中限制(systemd:CPUQuota、MemoryMax)",
);
const MAIL: Hint = hint(
    "notify_email of the group tells of failures, and notify of more",
    "作业组的 notify_email 通知失败,notify 可通知更多",
);
const WORKER: Hint = hint(
    "start nodes with --label and write worker: LABEL on the jobs",
    "请用 --label 启动节点,并在作业上写 worker: 标签",
);

/// Keys of an export of one workflow.
pub(in crate::import) const EXPORT: &[KnownKey] = &[
    read_key("processDefinition"),
    read_key("workflowDefinition"),
    read_key("processTaskRelationList"),
    read_key("workflowTaskRelationList"),
    read_key("taskDefinitionList"),
    read_key("schedule"),
];

pub(in crate::import) const WORKFLOW: &[KnownKey] = &[
    read_key("code"),
    read_key("name"),
    read_key("globalParams"),
    read_key("globalParamList"),
    read_key("timeout"),
    read_key("executionType"),
    record("id"),
    record("version"),
    record("projectCode"),
    record("projectId"),
    record("projectName"),
    record("createTime"),
    record("updateTime"),
    record("userId"),
    record("userName"),
    record("modifyBy"),
    record("operator"),
    record("operateTime"),
    record("locations"),
    record("connects"),
    record("globalParamMap"),
    record("scheduleReleaseState"),
    noted("description", &[], COMMENT),
    noted("desc", &[], COMMENT),
    noted(
        "releaseState",
        &["ONLINE"],
        hint("here it can be started by hand all the same", "此处仍可手动启动"),
    ),
    noted("flag", &["YES"], hint("it was deleted there", "原系统中已删除")),
    noted("warningGroupId", &["0", "-1", "1"], MAIL),
    noted("receivers", &[], MAIL),
    noted("receiversCc", &[], MAIL),
    noted("tenantId", &["-1", "0"], TENANT),
    noted("tenantCode", &["default"], TENANT),
    noted(
        "resourceIds",
        &[],
        hint("copy these files to the hosts that run scripts", "请将这些文件复制到运行脚本的主机"),
    ),
    noted("isParallel", &[], NOTHING),
];

pub(in crate::import) const RELATION: &[KnownKey] = &[
    read_key("preTaskCode"),
    read_key("postTaskCode"),
    record("id"),
    record("projectCode"),
    record("processDefinitionCode"),
    record("processDefinitionVersion"),
    record("workflowDefinitionCode"),
    record("workflowDefinitionVersion"),
    record("preTaskVersion"),
    record("postTaskVersion"),
    record("createTime"),
    record("updateTime"),
    record("operator"),
    record("operateTime"),
    noted("name", &[], COMMENT),
    noted(
        "conditionType",
        &["NONE", "0"],
        hint("the task before it decides, here as there", "由前置任务决定,与原系统一致"),
    ),
    noted(
        "conditionParams",
        &[],
        hint("the task before it decides, here as there", "由前置任务决定,与原系统一致"),
    ),
];

pub(in crate::import) const TASK: &[KnownKey] = &[
    read_key("code"),
    read_key("name"),
    read_key("taskType"),
    read_key("taskParams"),
    read_key("flag"),
    read_key("taskPriority"),
    read_key("failRetryTimes"),
    read_key("failRetryInterval"),
    read_key("timeoutFlag"),
    read_key("timeoutNotifyStrategy"),
    read_key("timeout"),
    read_key("delayTime"),
    read_key("workerGroup"),
    record("id"),
    record("version"),
    record("projectCode"),
    record("projectName"),
    record("userId"),
    record("userName"),
    record("createTime"),
    record("updateTime"),
    record("modifyBy"),
    record("operator"),
    record("operateTime"),
    record("taskParamList"),
    record("taskParamMap"),
    record("dependence"),
    record("processTaskRelationList"),
    noted("description", &[], COMMENT),
    noted("environmentCode", NO_CODE, ENVIRONMENT),
    noted("taskGroupId", NO_CODE, POOL),
    noted("taskGroupPriority", NO_CODE, POOL_PRIORITY),
    noted("cpuQuota", NO_CODE, MEMORY),
    noted("memoryMax", NO_CODE, MEMORY),
    noted("isCache", &["NO", "false"], hint("here it runs in each batch", "此处每个批次都会运行")),
    noted("taskExecuteType", &["BATCH"], hint("here it runs until it ends", "此处运行到结束为止")),
    noted(
        "resourceIds",
        &[],
        hint("copy these files to the hosts that run scripts", "请将这些文件复制到运行脚本的主机"),
    ),
    noted("remoteHostCode", NO_CODE, WORKER),
];
const NO_CODE: &[&str] = &["0", "-1"];

pub(in crate::import) const SCHEDULE: &[KnownKey] = &[
    read_key("crontab"),
    read_key("startTime"),
    read_key("endTime"),
    read_key("timezoneId"),
    read_key("releaseState"),
    record("id"),
    record("processDefinitionCode"),
    record("processDefinitionId"),
    record("processDefinitionName"),
    record("workflowDefinitionCode"),
    record("workflowDefinitionName"),
    record("projectName"),
    record("definitionDescription"),
    record("desc"),
    record("createTime"),
    record("updateTime"),
    record("userId"),
    record("userName"),
    record("operator"),
    record("operateTime"),
    read_key("failureStrategy"),
    noted("warningType", &["NONE"], MAIL),
    noted("warningGroupId", NO_CODE, MAIL),
    noted("processInstancePriority", &["MEDIUM"], PRIORITY),
    noted("workflowInstancePriority", &["MEDIUM"], PRIORITY),
    noted("workerGroup", &["default"], WORKER),
    noted("workerGroupId", NO_CODE, WORKER),
    noted("tenantCode", &["default"], TENANT),
    noted("environmentCode", NO_CODE, ENVIRONMENT),
    noted("environmentName", &[], ENVIRONMENT),
];
const PRIORITY: Hint = hint("write priority on the jobs", "请在作业上写 priority");

/// Keys of a parameter of a workflow or task.
pub(in crate::import) const PARAM: &[KnownKey] = &[
    read_key("prop"),
    read_key("value"),
    read_key("direct"),
    noted("type", &["VARCHAR"], hint("values are bound as texts here", "此处的值按文本绑定")),
];

/// Keys that any task may have among its parameters; some versions wrote them for every type.
pub(in crate::import) const ANY_TASK: &[KnownKey] = &[
    read_key("localParams"),
    noted("varPool", &[], hint("it is made while a task runs", "它在任务运行时产生")),
    read_key("waitStartTimeout"),
];

/// Keys of tasks other than CONDITIONS and SWITCH; they have values only in those two types.
pub(in crate::import) const NO_BRANCHES: &[KnownKey] = &[
    noted("dependence", &["{relation: AND, dependTaskList: []}"], BRANCHES),
    noted("conditionResult", &["{successNode: [], failedNode: []}"], BRANCHES),
    noted("switchResult", &[], BRANCHES),
];
const BRANCHES: Hint =
    hint("a task of this type does not branch, there, too", "该类型的任务没有分支,原系统亦然");

pub(in crate::import) const SCRIPT: &[KnownKey] =
    &[read_key("rawScript"), read_key("resourceList")];

pub(in crate::import) const SQL: &[KnownKey] = &[
    read_key("type"),
    read_key("datasource"),
    read_key("sql"),
    read_key("preStatements"),
    read_key("postStatements"),
    read_key("resourceList"),
    read_key("sendEmail"),
    read_key("receivers"),
    record("sqlType"),
    record("displayRows"),
    noted("receiversCc", &[], MAIL),
    noted("title", &[], MAIL),
    noted("groupId", NO_CODE, MAIL),
    noted("showType", &[], MAIL),
    noted(
        "limit",
        &["0", "10000"],
        hint(
            "all rows are read here; write LIMIT in the SQL",
            "此处读取全部行;请在 SQL 中写 LIMIT",
        ),
    ),
    noted("connParams", &[], hint("write them into the url of the source", "请写入数据源的 url")),
    noted("udfs", &[], hint("functions of Hive have no counterpart", "Hive 的函数没有对应")),
    noted(
        "segmentSeparator",
        &[";"],
        hint("statements are separated by ; here", "此处语句以 ; 分隔"),
    ),
    noted("dtType", &[], NOTHING),
    noted("dataTarget", NO_CODE, NOTHING),
    noted("targetTable", &[], NOTHING),
];

pub(in crate::import) const PROCEDURE: &[KnownKey] = &[
    read_key("type"),
    read_key("datasource"),
    read_key("method"),
    record("outProperty"),
    read_key("resourceList"),
];

pub(in crate::import) const HTTP: &[KnownKey] = &[
    read_key("url"),
    read_key("httpMethod"),
    read_key("httpRequestMethod"),
    read_key("httpParams"),
    read_key("httpRequestParams"),
    read_key("httpBody"),
    read_key("httpRequestBody"),
    read_key("httpCheckCondition"),
    read_key("condition"),
    read_key("resourceList"),
    noted("connectTimeout", &["60000"], WAITING),
    noted("socketTimeout", &["60000"], WAITING),
    noted("maxConnectionSeconds", &[], WAITING),
    noted("enableProxy", &["false"], PROXY),
    noted("proxy", &[], PROXY),
    noted("port", &[], PROXY),
    noted("user", &[], PROXY),
    read_key("password"),
    noted("enableSSL", &["false"], hint("https in its address says it", "由地址中的 https 决定")),
];
const WAITING: Hint =
    hint("timeout_sec of the job limits the whole call", "作业的 timeout_sec 限制整个调用的时间");
const PROXY: Hint =
    hint("hosts are called without a proxy of their own", "调用主机时不使用单独的代理");

pub(in crate::import) const HTTP_PARAM: &[KnownKey] =
    &[read_key("prop"), read_key("httpParametersType"), read_key("value")];

pub(in crate::import) const SUB_WORKFLOW: &[KnownKey] = &[
    read_key("processDefinitionCode"),
    read_key("workflowDefinitionCode"),
    read_key("processDefinitionId"),
    read_key("resourceList"),
];

pub(in crate::import) const DEPENDENT: &[KnownKey] =
    &[read_key("dependence"), read_key("resourceList")];

pub(in crate::import) const DEPENDENCE: &[KnownKey] = &[
    read_key("relation"),
    read_key("dependTaskList"),
    read_key("failurePolicy"),
    read_key("failureWaitingTime"),
    noted("checkInterval", &["10"], hint("it is told of ends at once here", "此处结束时立即得知")),
];

pub(in crate::import) const DEPEND_LIST: &[KnownKey] =
    &[read_key("relation"), read_key("dependItemList"), record("conditionStatus")];

pub(in crate::import) const DEPEND_ITEM: &[KnownKey] = &[
    read_key("definitionCode"),
    read_key("definitionId"),
    read_key("depTaskCode"),
    read_key("depTasks"),
    read_key("dateValue"),
    noted("status", &["SUCCESS"], hint("it waits for success, there, too", "原系统同样等待成功")),
    record("projectCode"),
    record("projectId"),
    record("cycle"),
    record("dependentType"),
    record("dependResult"),
    record("state"),
    record("key"),
    noted(
        "parameterPassing",
        &["false"],
        hint("outputs are not handed from batch to batch", "输出不会跨批次传递"),
    ),
];

/// Keys of a CONDITIONS task's item, which refers to a task of its own workflow.
pub(in crate::import) const CONDITION_ITEM: &[KnownKey] = &[
    read_key("depTaskCode"),
    read_key("depTasks"),
    read_key("status"),
    record("projectCode"),
    record("projectId"),
    record("definitionCode"),
    record("definitionId"),
    record("cycle"),
    record("dateValue"),
    record("dependentType"),
    record("dependResult"),
    record("state"),
    record("key"),
    record("parameterPassing"),
];

pub(in crate::import) const CONDITIONS: &[KnownKey] =
    &[read_key("dependence"), read_key("conditionResult"), read_key("resourceList")];

/// Keys of Spark, Flink and MapReduce tasks about the program that they start.
pub(in crate::import) const PROGRAM: &[KnownKey] = &[
    read_key("programType"),
    read_key("mainClass"),
    read_key("mainJar"),
    read_key("mainArgs"),
    read_key("others"),
    read_key("appName"),
    read_key("yarnQueue"),
    read_key("queue"),
    read_key("resourceList"),
];

pub(in crate::import) const SPARK: &[KnownKey] = &[
    read_key("deployMode"),
    read_key("master"),
    read_key("driverCores"),
    read_key("driverMemory"),
    read_key("numExecutors"),
    read_key("executorCores"),
    read_key("executorMemory"),
    read_key("rawScript"),
    read_key("sqlExecutionType"),
    read_key("namespace"),
    noted("sparkVersion", &["SPARK2", "SPARK3"], VERSION),
];
const VERSION: Hint =
    hint("the script starts what SPARK_HOME names", "脚本启动 SPARK_HOME 指向的版本");

pub(in crate::import) const FLINK: &[KnownKey] = &[
    read_key("deployMode"),
    read_key("flinkVersion"),
    read_key("slot"),
    read_key("taskManager"),
    read_key("jobManagerMemory"),
    read_key("taskManagerMemory"),
    read_key("parallelism"),
    read_key("initScript"),
    read_key("rawScript"),
];

pub(in crate::import) const HIVECLI: &[KnownKey] = &[
    read_key("hiveCliTaskExecutionType"),
    read_key("hiveSqlScript"),
    read_key("hiveCliOptions"),
    read_key("resourceList"),
];

/// The other keys have values only in tasks that refer to data sources; such a task becomes a job that fails with an
/// explanation.
pub(in crate::import) const SQOOP: &[KnownKey] = &[
    read_key("jobType"),
    read_key("customShell"),
    read_key("resourceList"),
    noted("jobName", &[], FROM_SOURCES),
    noted("modelType", &[], FROM_SOURCES),
    noted("concurrency", &["1"], FROM_SOURCES),
    noted("splitBy", &[], FROM_SOURCES),
    noted("sourceType", &[], FROM_SOURCES),
    noted("targetType", &[], FROM_SOURCES),
    noted("sourceParams", &[], FROM_SOURCES),
    noted("targetParams", &[], FROM_SOURCES),
    noted("hadoopCustomParams", &[], FROM_SOURCES),
    noted("sqoopAdvancedParams", &[], FROM_SOURCES),
];

pub(in crate::import) const DATAX: &[KnownKey] = &[
    read_key("customConfig"),
    read_key("json"),
    read_key("xms"),
    read_key("xmx"),
    read_key("resourceList"),
    noted("dsType", &[], FROM_SOURCES),
    noted("dataSource", NO_CODE, FROM_SOURCES),
    noted("dtType", &[], FROM_SOURCES),
    noted("dataTarget", NO_CODE, FROM_SOURCES),
    noted("sql", &[], FROM_SOURCES),
    noted("targetTable", &[], FROM_SOURCES),
    noted("preStatements", &[], FROM_SOURCES),
    noted("postStatements", &[], FROM_SOURCES),
    noted("jobSpeedByte", NO_CODE, FROM_SOURCES),
    noted("jobSpeedRecord", NO_CODE, FROM_SOURCES),
];
const FROM_SOURCES: Hint =
    hint("its own text says it all, there, too", "以其自定义文本为准,原系统亦然");

/// Keys of an export of 1.3.
pub(in crate::import) const OLD_EXPORT: &[KnownKey] = &[
    read_key("processDefinitionName"),
    read_key("name"),
    read_key("processDefinitionJson"),
    read_key("scheduleCrontab"),
    read_key("scheduleStartTime"),
    read_key("scheduleEndTime"),
    read_key("scheduleReleaseState"),
    record("projectName"),
    record("processDefinitionLocations"),
    record("processDefinitionConnects"),
    noted("processDefinitionDescription", &[], COMMENT),
    noted("scheduleWarningType", &["NONE"], MAIL),
    noted("scheduleWarningGroupId", NO_CODE, MAIL),
    noted("scheduleWarningGroupName", &[], MAIL),
    read_key("scheduleFailureStrategy"),
    noted("scheduleProcessInstancePriority", &["MEDIUM"], PRIORITY),
    noted("scheduleWorkerGroupId", NO_CODE, WORKER),
    noted("scheduleWorkerGroupName", &["default"], WORKER),
];

pub(in crate::import) const OLD_WORKFLOW: &[KnownKey] = &[
    read_key("globalParams"),
    read_key("tasks"),
    read_key("timeout"),
    noted("tenantId", &["-1", "0"], TENANT),
    noted("tenantCode", &["default"], TENANT),
];

pub(in crate::import) const OLD_TASK: &[KnownKey] = &[
    read_key("name"),
    read_key("type"),
    read_key("params"),
    read_key("runFlag"),
    read_key("taskInstancePriority"),
    read_key("maxRetryTimes"),
    read_key("retryInterval"),
    read_key("timeout"),
    read_key("delayTime"),
    read_key("workerGroup"),
    read_key("preTasks"),
    read_key("dependence"),
    read_key("conditionResult"),
    read_key("switchResult"),
    read_key("waitStartTimeout"),
    record("id"),
    record("code"),
    record("version"),
    record("loc"),
    record("depList"),
    record("preTaskNodeList"),
    record("preTaskDefinitionList"),
    record("extras"),
    noted("desc", &[], COMMENT),
    noted("description", &[], COMMENT),
    noted("workerGroupId", NO_CODE, WORKER),
    noted("environmentCode", NO_CODE, ENVIRONMENT),
    noted("taskGroupId", NO_CODE, POOL),
    noted("taskGroupPriority", NO_CODE, POOL_PRIORITY),
    noted("cpuQuota", NO_CODE, MEMORY),
    noted("memoryMax", NO_CODE, MEMORY),
];

/// The keys for the parameters of a task type; `None` for a type that is not supported at all.
pub(super) fn of_type(kind: &str) -> Option<[&'static [KnownKey]; 2]> {
    let of_program = if matches!(kind, "SPARK" | "FLINK" | "MR") { PROGRAM } else { &[] };
    let of_kind: &[KnownKey] = match kind {
        "SHELL" | "PYTHON" => SCRIPT,
        "SQL" => SQL,
        "PROCEDURE" => PROCEDURE,
        "HTTP" => HTTP,
        "SUB_PROCESS" | "SUB_WORKFLOW" => SUB_WORKFLOW,
        "DEPENDENT" => DEPENDENT,
        "CONDITIONS" => CONDITIONS,
        "SPARK" => SPARK,
        "FLINK" => FLINK,
        "MR" => &[],
        "HIVECLI" => HIVECLI,
        "SQOOP" => SQOOP,
        "DATAX" => DATAX,
        _ => return None,
    };
    Some([of_kind, of_program])
}
