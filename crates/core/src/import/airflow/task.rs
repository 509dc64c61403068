//! Translates a task of Airflow: what its operator does, and when it runs.

use super::template::{Language, Rendered, render};
use super::timetable::DataDay;
use super::{SerializedDag, bare, default_params, keys, seconds};
use crate::definition::{NodeValue, SourceNode};
use crate::domain::id::JobType;
use crate::domain::job::JobDef;
use crate::domain::job::retry::LONGEST_DELAY_SEC;
use crate::domain::job::trigger_rule::TriggerRule;
use crate::domain::notification::recipient::Recipient;
use crate::domain::source::DialectName;
use crate::domain::source::sql_text::{SqlText, TransactionMode};
use crate::domain::source::transaction_scan::breaks_transaction;
use crate::import::body::failing;
use crate::import::draft::Draft;
use crate::import::keys::check_keys;
use crate::import::note::{BilingualSentence, ImportOrigin, Level};
use crate::import::sql_statement::SqlForm;
use crate::import::tree::{any, entries, get, list, origin, plain};

/// Maximum number of retries of a job.
const RETRIES_MAX: u32 = 100;
/// Maximum number of addresses of a job.
const ADDRESSES_MAX: usize = 50;
/// Maximum length of the owner of a job.
const OWNER_MAX: usize = 100;
/// Airflow's default delay between two attempts, in seconds.
const RETRY_DELAY_SEC: u64 = 300;
/// Airflow's default pool, which is not carried over.
const DEFAULT_POOL: &str = "default_pool";

/// A task with its context.
pub(super) struct Task<'a> {
    pub(super) node: &'a SourceNode,
    pub(super) dag: &'a SerializedDag,
    pub(super) data_day: DataDay,
}

impl<'a> Task<'a> {
    /// The task's own value, else the default for all tasks of the DAG.
    fn value(&self, key: &str) -> Option<&'a SourceNode> {
        let shared = self.dag.defaults.as_ref().and_then(|all| get(all, key));
        get(self.node, key).or(shared).map(bare)
    }

    fn word(&self, key: &str) -> &'a str {
        self.value(key).and_then(plain).unwrap_or_default()
    }

    fn at(&self) -> ImportOrigin {
        origin(self.node)
    }

    /// The keys whose values the operator renders.
    fn template_fields(&self) -> Vec<&'a str> {
        self.value("template_fields")
            .map(list)
            .unwrap_or_default()
            .iter()
            .filter_map(plain)
            .collect()
    }

    pub(super) fn fill(&self, mut job: JobDef, draft: &mut Draft) -> JobDef {
        let code = job.code.to_string();
        self.check_keys(&code, draft);
        self.fill_attempts(&mut job, draft);
        job.owner = self.owner(&code, draft);
        job.notify_email = self.addresses(&code, draft);
        let pool = self.word("pool");
        if !pool.is_empty() && pool != DEFAULT_POOL {
            let slots = self.word("pool_slots");
            draft.note(
                Level::LeftOut,
                &self.at(), &code,
                (
                    format!("pool: {pool} ({} slots) is left out: how many slots it has is in Airflow's database", if slots.is_empty() { "1" } else { slots }),
                    format!("pool：{pool} 未迁移：其槽位数在 Airflow 数据库中"),
                ),
                ("declare the pool with its slots, and write pools on the job", "请声明资源池及槽位，并在作业上写 pools"),
            );
        }
        let made = self.rule().and_then(|rule| {
            job.trigger_rule = rule;
            self.body(job.clone(), draft)
        });
        match made {
            Ok(job) => job,
            Err(why) => failing(draft, &self.at(), job, &why),
        }
    }

    fn check_keys(&self, about: &str, draft: &mut Draft) {
        let fields = self.template_fields();
        let mut node = self.node.clone();
        if let NodeValue::Map(all) = &mut node.value {
            // Rendered keys are reported with the body.
            all.retain(|(key, _)| !fields.contains(&key.value.as_str()));
        }
        check_keys(&node, &[keys::TASK], about, draft);
        let own = self.own_params();
        if !own.is_empty() {
            let names = own.join(", ");
            draft.note(
                Level::LeftOut,
                &self.at(),
                about,
                (
                    format!("params of its own, other than the DAG's, are left out: {names}"),
                    format!("与 DAG 不同的任务参数未迁移：{names}"),
                ),
                ("write them as params of the job", "请写为作业的 params"),
            );
        }
        if self.word("is_teardown") == "true" {
            draft.note(
                Level::Look,
                &self.at(), about,
                (
                    "it is a teardown: there it runs whenever its setup succeeded, and its failure does not count; here its trigger rule alone counts",
                    "它是 teardown：原系统在 setup 成功后总会运行且失败不计；此处只看触发规则",
                ),
                ("write trigger_rule: all_done", "请写 trigger_rule: all_done"),
            );
        }
    }

    /// Names of parameters that its DAG lacks, or has with another value.
    fn own_params(&self) -> Vec<String> {
        let shared = default_params(&self.dag.dag);
        let own = default_params(self.node).into_iter().filter(|pair| !shared.contains(pair));
        own.map(|(name, _)| name).collect()
    }

    /// Renders a text; the batch provides the parameters with the values of the task.
    fn rendered(&self, text: &str, language: Language) -> Result<Rendered, BilingualSentence> {
        let made = render(text, language, self.data_day)?;
        let shared = default_params(&self.dag.dag);
        let own = self.own_params();
        let of_batch = made.params.iter().filter(|param| {
            param.value.as_deref().is_some_and(|value| value.starts_with("${params."))
        });
        for param in of_batch {
            let name = &param.name;
            if own.contains(name) || shared.iter().all(|(known, _)| known != name) {
                return Err(BilingualSentence::new(
                    format!(
                        "{{{{ params.{name} }}}} is no parameter of the DAG, or has another value in this task"
                    ),
                    format!("{{{{ params.{name} }}}} 不是 DAG 的参数，或在该任务中取值不同"),
                ));
            }
        }
        Ok(made)
    }

    fn fill_attempts(&self, job: &mut JobDef, draft: &mut Draft) {
        let number = |key: &str| self.value(key).and_then(seconds);
        let retries = number("retries").and_then(|n| u32::try_from(n).ok()).unwrap_or(0);
        job.retry_count = retries.min(RETRIES_MAX);
        if retries > RETRIES_MAX {
            draft.note(
                Level::Differs,
                &self.at(),
                job.code.as_str(),
                (
                    format!("{retries} retries are cut to {RETRIES_MAX}"),
                    format!("重试次数 {retries} 改为 {RETRIES_MAX}"),
                ),
                ("", ""),
            );
        }
        if retries > 0 {
            let delay = number("retry_delay").unwrap_or(RETRY_DELAY_SEC);
            job.retry_delay_sec = u32::try_from(delay).unwrap_or(u32::MAX).min(LONGEST_DELAY_SEC);
            if delay > u64::from(LONGEST_DELAY_SEC) {
                draft.note(
                    Level::Differs,
                    &self.at(),
                    job.code.as_str(),
                    (
                        format!("the {delay} s between its retries are cut to {LONGEST_DELAY_SEC}"),
                        format!("重试间隔 {delay} 秒改为 {LONGEST_DELAY_SEC}"),
                    ),
                    ("", ""),
                );
            }
        }
        let limit = number("execution_timeout").unwrap_or(0);
        job.timeout_sec = draft.timeout(&self.at(), job.code.as_str(), limit);
    }

    /// The owner; `airflow` is the default for a task without one.
    fn owner(&self, code: &str, draft: &mut Draft) -> Option<String> {
        let written = self.word("owner");
        let owner: String = written.chars().filter(|c| !c.is_control()).take(OWNER_MAX).collect();
        if owner != written {
            draft.note(
                Level::Differs,
                &self.at(),
                code,
                (
                    format!(
                        "owner: {OWNER_MAX} characters of it are kept, and no control characters"
                    ),
                    format!("owner：仅保留 {OWNER_MAX} 个字符，且不含控制字符"),
                ),
                ("give the job a shorter owner", "请为作业设置较短的 owner"),
            );
        }
        (!owner.is_empty() && owner != "airflow").then_some(owner)
    }

    /// The addresses that receive failures.
    fn addresses(&self, code: &str, draft: &mut Draft) -> Vec<String> {
        if self.word("email_on_failure") == "false" {
            return Vec::new();
        }
        let Some(node) = self.value("email") else { return Vec::new() };
        let words: Vec<&str> = match plain(node) {
            Some(text) => text.split([',', ';']).map(str::trim).collect(),
            None => list(node).iter().filter_map(plain).collect(),
        };
        let (fit, unfit): (Vec<&str>, Vec<&str>) =
            words.into_iter().partition(|word| Recipient::parse(word).is_ok());
        let beyond = fit.iter().skip(ADDRESSES_MAX).copied();
        let left: Vec<&str> =
            unfit.into_iter().chain(beyond).filter(|word| !word.is_empty()).collect();
        if !left.is_empty() {
            let left = left.join(", ");
            draft.note(
                Level::LeftOut,
                &self.at(), code,
                (
                    format!("email: these are left out, because they are no addresses or more than {ADDRESSES_MAX}: {left}"),
                    format!("email：以下内容不是地址或超过 {ADDRESSES_MAX} 个，已略去：{left}"),
                ),
                ("add those that should be written to", "请补充需要通知的地址"),
            );
        }
        fit.into_iter().map(str::to_owned).take(ADDRESSES_MAX).collect()
    }

    fn rule(&self) -> Result<TriggerRule, BilingualSentence> {
        match self.word("trigger_rule") {
            "" => Ok(TriggerRule::AllSuccess),
            "always" => Ok(TriggerRule::AllDone),
            word => TriggerRule::parse(word).ok_or_else(|| {
                BilingualSentence::new(
                    format!("its trigger rule {word} has no like here"),
                    format!("其触发规则 {word} 在此处没有对应"),
                )
            }),
        }
    }

    fn body(&self, mut job: JobDef, draft: &mut Draft) -> Result<JobDef, BilingualSentence> {
        if self.word("_is_mapped") == "true" {
            return Err(BilingualSentence::from((
                "it is mapped: how many of it there are is known when the DAG runs; write a job with for_each",
                "它是动态映射任务，数量在运行时才确定；请用 for_each 编写作业",
            )));
        }
        let kind = self
            .value("task_type")
            .or_else(|| self.value("_task_type"))
            .and_then(plain)
            .unwrap_or_default();
        match kind {
            "EmptyOperator" | "DummyOperator" => Ok(job),
            "BashOperator" | "_BashDecoratedOperator" if !self.word("bash_command").is_empty() => {
                let rendered = self.shell()?;
                job.job_type = JobType::parse("SCRIPT").expect("a job type");
                job.interpreter = Some("bash".to_owned());
                job.script = Some(format!("{}\n", rendered.text.trim_end()));
                job.params = rendered.params;
                let folder = self.word("cwd");
                if !folder.is_empty() && (!folder.starts_with('/') || folder.contains("{{")) {
                    return Err(BilingualSentence::new(
                        format!("its folder {folder} is not absolute, or a template"),
                        format!("其目录 {folder} 不是绝对路径，或是模板"),
                    ));
                }
                job.working_dir = (!folder.is_empty()).then(|| folder.to_owned());
                Ok(job)
            }
            _ if get(self.node, "sql").is_some() => self.sql(job, kind, draft),
            _ => Err(self.needs(kind)),
        }
    }

    fn shell(&self) -> Result<Rendered, BilingualSentence> {
        let text = self.word("bash_command");
        // A trailing space keeps Airflow from treating the text as a file name.
        if text.ends_with(".sh") || text.ends_with(".bash") {
            return Err(BilingualSentence::new(
                format!(
                    "its command is in file {text} beside the DAG, which Airflow renders as a template"
                ),
                format!("其命令在 DAG 旁的文件 {text} 中，由 Airflow 作为模板渲染"),
            ));
        }
        let names: Vec<&str> = self
            .value("env")
            .map(|env| entries(env).map(|(name, _)| name).collect())
            .unwrap_or_default();
        if !names.is_empty() {
            return Err(BilingualSentence::new(
                format!(
                    "it has an environment of its own (env), which may hold passwords: {}",
                    names.join(", ")
                ),
                format!("它有自己的环境变量（env），其中可能有密码：{}", names.join("、")),
            ));
        }
        self.rendered(text, Language::Shell)
    }

    /// The statements, if the DAG contains them.
    fn sql_text(&self) -> Result<String, BilingualSentence> {
        let node = self.value("sql").expect("it was asked for");
        let text = match plain(node) {
            Some(text) => text.to_owned(),
            None => {
                let all = list(node).iter().filter_map(plain);
                all.map(|one| one.trim().trim_end_matches(';')).collect::<Vec<_>>().join(";\n")
            }
        };
        if text.ends_with(".sql") {
            return Err(BilingualSentence::new(
                format!("its SQL is in file {text} beside the DAG, and not in the serialised DAG"),
                format!("其 SQL 在 DAG 旁的文件 {text} 中，不在序列化的 DAG 里"),
            ));
        }
        let is_full = |node: &SourceNode| !list(node).is_empty() || entries(node).next().is_some();
        if self.value("parameters").is_some_and(is_full) {
            return Err(BilingualSentence::from((
                "its SQL has parameters that the driver of Python binds (%s): write them as :name with params",
                "其 SQL 含有由 Python 驱动绑定的参数（%s）：请改为 :name 并写 params",
            )));
        }
        Ok(text)
    }

    fn sql(
        &self,
        mut job: JobDef,
        kind: &str,
        draft: &mut Draft,
    ) -> Result<JobDef, BilingualSentence> {
        let text = self.sql_text()?;
        let keys = ["conn_id", "postgres_conn_id", "mysql_conn_id"];
        let connection = keys.into_iter().map(|key| self.word(key)).find(|word| !word.is_empty());
        let known = dialect_of(kind, connection.unwrap_or_default());
        let SqlDialect { dialect, is_guess } = known.ok_or_else(|| {
            let name = connection.unwrap_or("-");
            BilingualSentence::new(
                format!("it runs SQL by {kind} on a connection ({name}) of which the DAG does not say what it is"),
                format!("它用 {kind} 在连接（{name}）上执行 SQL，而 DAG 未说明连接的类型"),
            )
        })?;
        let rendered = self.rendered(&text, Language::Sql)?;
        // Parameters in the original text would be confused with those that replace templates.
        if let Some(why) = SqlForm::read(&text, dialect).fault() {
            return Err(why);
        }
        let title = connection.map_or_else(|| dialect.to_string().to_lowercase(), str::to_owned);
        job.job_type = JobType::parse("SQL").expect("a job type");
        job.source = Some(draft.source(&self.at(), &title, dialect));
        if is_guess {
            draft.note(
                Level::Look,
                &self.at(),
                job.code.as_str(),
                (
                    format!(
                        "its connection {title} is taken for one of {dialect}, because of its name"
                    ),
                    format!("根据名称，其连接 {title} 视为 {dialect}"),
                ),
                ("look at the connection's type in Airflow", "请在 Airflow 中核对连接类型"),
            );
        }
        let is_bare = breaks_transaction(&rendered.text, dialect).is_some();
        job.transaction = if is_bare { TransactionMode::None } else { TransactionMode::One };
        job.sql = Some(SqlText::Same(format!("{}\n", rendered.text.trim_end())));
        job.params = rendered.params;
        Ok(job)
    }

    /// What a user has to write in place of an operator that is Python code.
    fn needs(&self, kind: &str) -> BilingualSentence {
        let fields = self.template_fields().join(", ");
        let module = self.word("_task_module");
        let file = any(&self.dag.dag, &["fileloc"]).and_then(plain).unwrap_or_default();
        BilingualSentence::new(
            format!(
                "it is a {kind} of {module}, which is Python code ({file}); its templates: {fields}"
            ),
            format!("它是 {module} 的 {kind}，即 Python 代码（{file}）；其模板字段：{fields}"),
        )
    }
}

/// The SQL dialect of an operator.
struct SqlDialect {
    dialect: DialectName,
    /// Whether only the name of the connection suggests it.
    is_guess: bool,
}

fn dialect_of(kind: &str, connection: &str) -> Option<SqlDialect> {
    let sure = |dialect| Some(SqlDialect { dialect, is_guess: false });
    match kind {
        "PostgresOperator" => return sure(DialectName::Postgres),
        "MySqlOperator" => return sure(DialectName::Mysql),
        "SQLExecuteQueryOperator" => {}
        _ => return None,
    }
    let name = connection.to_lowercase();
    let is_guess = true;
    if name.contains("mysql") || name.contains("mariadb") {
        return Some(SqlDialect { dialect: DialectName::Mysql, is_guess });
    }
    name.contains("postgres").then_some(SqlDialect { dialect: DialectName::Postgres, is_guess })
}
