//! The comments on a draft: what users must decide or should know.

use crate::domain::id::JobCode;
use crate::domain::text::lang::Lang;
use crate::lineage::reading::{OpaqueReason, TextPlace};
use serde::Serialize;

/// A comment on a job or on the whole draft.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DraftNote {
    /// The job; none for the whole draft.
    pub job: Option<JobCode>,
    /// Its subject.
    #[serde(flatten)]
    pub matter: DraftMatter,
}

/// The subject of a comment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum DraftMatter {
    /// Dynamic SQL.
    Dynamic {
        /// Its places.
        places: Vec<TextPlace>,
    },
    /// A part that cannot be analysed.
    Opaque { place: TextPlace, reason: OpaqueReason },
    /// A parameter with an unknown value; each batch provides it.
    UnknownValue {
        /// Parameter of the job.
        param: String,
        /// Parameter of the group that provides it.
        asked_as: String,
        /// What a master passes: text and line.
        from: Option<(String, u32)>,
        /// An output with the same name: job and output.
        offered: Option<(JobCode, String)>,
    },
    /// A parameter is assumed to be the batch number because of its name.
    TakenForBatchNo {
        /// Parameter of the job.
        param: String,
    },
    /// NULL is passed.
    NullValue {
        /// Parameter of the job.
        param: String,
    },
    /// The data does not decide the order of two jobs; the draft chooses one.
    OpenOrder {
        /// The job that comes first in the draft.
        other: JobCode,
        /// The table on which they conflict.
        table: String,
    },
    /// The other job changes rows that this one reads.
    LikelyOrder {
        /// The job that comes first in the draft.
        other: JobCode,
        /// The table on which they conflict.
        table: String,
    },
    /// More undecided orders than are listed.
    MoreOrders {
        /// Their number.
        count: usize,
    },
    /// A cycle in which each job produces the input of the next.
    Cycle {
        /// The jobs of the cycle.
        jobs: Vec<JobCode>,
    },
    /// A procedure that others call: it is part of their jobs.
    CalledByOthers {
        /// The procedure.
        routine: String,
        /// Its callers.
        callers: Vec<String>,
    },
    /// A procedure that does nothing but call others.
    OnlyCalls {
        /// The procedure.
        routine: String,
        /// Number of its calls.
        calls: usize,
    },
    /// A procedure that cannot become a job.
    NoJob {
        /// The procedure.
        routine: String,
        why: String,
    },
    /// A step of a master that runs only under a condition.
    Conditional {
        /// The condition.
        text: String,
        /// Its line in the master.
        line: u32,
    },
    /// A step of a master in a loop.
    Looped {
        /// The head of the loop.
        text: String,
        /// Its line in the master.
        line: u32,
    },
    /// A step of a master in a block with a handler.
    Guarded {
        /// The line of the block.
        line: u32,
    },
    /// An action of the master itself, kept as a placeholder in the order.
    Gate {
        /// Kind of the action.
        what: GateMatter,
        /// Its text.
        text: String,
        /// Its line in the master.
        line: u32,
    },
    /// A handler of a master.
    Handler {
        /// Its line.
        line: u32,
        /// The routines that it calls.
        calls: Vec<String>,
    },
    /// A session variable that another job, or the master, sets: a job has a separate session.
    SessionVariable {
        /// The variable.
        variable: String,
        /// The jobs that set it; none if only the master does.
        set_by: Vec<JobCode>,
    },
    /// A master that runs as one transaction, or controls transactions.
    Transaction {
        /// The line that controls them; none if the server does.
        line: Option<u32>,
    },
}

/// The kind of action that a placeholder represents.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum GateMatter {
    /// Dynamic SQL.
    Dynamic,
    /// An error is raised.
    Abort,
    /// The master ends.
    EarlyEnd,
    /// A statement that cannot be converted, with the reason.
    Statement(String),
}

impl DraftMatter {
    /// Whether the user must decide; otherwise it is information.
    pub fn is_question(&self) -> bool {
        !matches!(
            self,
            Self::TakenForBatchNo { .. } | Self::CalledByOthers { .. } | Self::Opaque { .. }
        )
    }

    /// The comment as a sentence.
    pub fn describe(&self, lang: Lang) -> String {
        match lang {
            Lang::En => self.in_english(),
            Lang::Zh => self.in_chinese(),
        }
    }

    fn in_english(&self) -> String {
        match self {
            Self::Dynamic { places } => format!(
                "SQL is made at run time at {}: what it touches is not known; say it with lineage:, and check the order",
                list_places(places)
            ),
            Self::Opaque { place, reason } => format!("{place}: {reason}"),
            Self::UnknownValue { param, asked_as, from, offered } => {
                describe_unknown(param, asked_as, (from, offered), Lang::En)
            }
            Self::TakenForBatchNo { param } => {
                format!("{param} is taken for the batch number because of its name")
            }
            Self::NullValue { param } => format!(
                "{param} is NULL in the master; here it is NULL only while no job before and no group has a value {param}"
            ),
            Self::OpenOrder { other, table } => format!(
                "which comes first, this or {other}? Both change what the other reads or writes in {table}; for now \
                 {other} does"
            ),
            Self::LikelyOrder { other, table } => format!(
                "{other} changes rows of {table} that this reads, and comes first for now; turn it round if this has \
                 to see them as they were"
            ),
            Self::MoreOrders { count } => format!("{count} more orders of this kind are open"),
            Self::Cycle { jobs } => {
                let jobs: Vec<&str> = jobs.iter().map(JobCode::as_str).collect();
                format!(
                    "each of these makes what the next one reads, in a circle: {}; where does it begin?",
                    jobs.join(" → ")
                )
            }
            Self::CalledByOthers { routine, callers } => {
                format!("{routine} is no job: {} call it", first_few(callers))
            }
            Self::OnlyCalls { routine, calls } => format!(
                "{routine} is no job: it only calls {calls} procedures, which are; --from-master {routine} keeps its order"
            ),
            Self::NoJob { routine, why } => format!("{routine} is no job: {why}"),
            Self::Conditional { text, line } => format!(
                "the master runs this only under a condition: {text} (line {line}); here it always runs: write if:, or \
                 leave it out"
            ),
            Self::Looped { text, line } => format!(
                "the master runs this in a loop: {text} (line {line}); here it runs once: write for_each:"
            ),
            Self::Guarded { line } => format!(
                "the master goes on when this fails (handler in the block at line {line}); here what waits for it does \
                 not: write trigger_rule: where that is meant"
            ),
            Self::Gate { what, text, line } => describe_gate(what, text, *line, Lang::En),
            Self::Handler { line, calls } => describe_handler(*line, calls, Lang::En),
            Self::SessionVariable { variable, set_by } => {
                describe_session_variable(variable, set_by, Lang::En)
            }
            Self::Transaction { line } => describe_transaction(*line, Lang::En),
        }
    }

    fn in_chinese(&self) -> String {
        match self {
            Self::Dynamic { places } => format!(
                "{} 处在运行时拼接 SQL:访问哪些表未知；请用 lineage: 说明，并核对先后顺序",
                list_places(places)
            ),
            Self::Opaque { place, reason } => format!("{place}:{reason}"),
            Self::UnknownValue { param, asked_as, from, offered } => {
                describe_unknown(param, asked_as, (from, offered), Lang::Zh)
            }
            Self::TakenForBatchNo { param } => format!("按名称把 {param} 视为批次号"),
            Self::NullValue { param } => {
                format!(
                    "{param} 在主过程中为 NULL；此处仅当前置作业和组都没有 {param} 的值时才为 NULL"
                )
            }
            Self::OpenOrder { other, table } => {
                format!("与 {other} 谁在前?两者在 {table} 上互相影响；暂定 {other} 在前")
            }
            Self::LikelyOrder { other, table } => format!(
                "{other} 修改本作业读取的 {table} 的行，暂定 {other} 在前；如本作业须读取修改前的行，请反过来"
            ),
            Self::MoreOrders { count } => format!("另有 {count} 处顺序待定"),
            Self::Cycle { jobs } => {
                let jobs: Vec<&str> = jobs.iter().map(JobCode::as_str).collect();
                format!(
                    "以下作业依次写入下一个读取的数据，形成环：{}；从哪里开始?",
                    jobs.join(" → ")
                )
            }
            Self::CalledByOthers { routine, callers } => {
                format!("{routine} 不单独成为作业：由 {} 调用", first_few(callers))
            }
            Self::OnlyCalls { routine, calls } => format!(
                "{routine} 不是作业：它只调用 {calls} 个已成为作业的过程；用 --from-master {routine} 可保留其顺序"
            ),
            Self::NoJob { routine, why } => format!("{routine} 不是作业：{why}"),
            Self::Conditional { text, line } => {
                format!(
                    "主过程仅在条件成立时运行：{text}（第 {line} 行）；此处总是运行：请写 if: 或删去"
                )
            }
            Self::Looped { text, line } => {
                format!(
                    "主过程在循环中运行：{text}（第 {line} 行）；此处只运行一次：请写 for_each:"
                )
            }
            Self::Guarded { line } => format!(
                "主过程在其失败后继续（第 {line} 行的块有异常处理）；此处等待它的作业不会运行：如需继续请写 trigger_rule:"
            ),
            Self::Gate { what, text, line } => describe_gate(what, text, *line, Lang::Zh),
            Self::Handler { line, calls } => describe_handler(*line, calls, Lang::Zh),
            Self::SessionVariable { variable, set_by } => {
                describe_session_variable(variable, set_by, Lang::Zh)
            }
            Self::Transaction { line } => describe_transaction(*line, Lang::Zh),
        }
    }
}

/// What a master passes, and what a job returns under that name.
type Origins<'a> = (&'a Option<(String, u32)>, &'a Option<(JobCode, String)>);

fn describe_unknown(param: &str, asked_as: &str, origins: Origins<'_>, lang: Lang) -> String {
    let (from, offered) = origins;
    let from = from.as_ref().map_or(String::new(), |(text, line)| {
        let line = at_line(*line, lang);
        match lang {
            Lang::En => format!("; the master hands in: {text}{line}"),
            Lang::Zh => format!("；主过程传入：{text}{line}"),
        }
    });
    let offered = offered.as_ref().map_or(String::new(), |(job, output)| match lang {
        Lang::En => format!("; is it what {job} hands back, ${{jobs.{job}.{output}}}?"),
        Lang::Zh => format!("；是否为 {job} 的输出 ${{jobs.{job}.{output}}}?"),
    });
    match lang {
        Lang::En => {
            format!("the value of {param} is not known: each batch gives {asked_as}{from}{offered}")
        }
        Lang::Zh => format!("{param} 的值未知：由每个批次给出 {asked_as}{from}{offered}"),
    }
}

fn describe_gate(what: &GateMatter, text: &str, line: u32, lang: Lang) -> String {
    let what = match (what, lang) {
        (GateMatter::Dynamic, Lang::En) => "runs SQL that is made at run time".to_owned(),
        (GateMatter::Dynamic, Lang::Zh) => "执行运行时拼接的 SQL".to_owned(),
        (GateMatter::Abort, Lang::En) => {
            "may stop with an error, as a rule of success: would".to_owned()
        }
        (GateMatter::Abort, Lang::Zh) => "可能报错终止（可用 success: 规则代替）".to_owned(),
        (GateMatter::EarlyEnd, Lang::En) => "may end early".to_owned(),
        (GateMatter::EarlyEnd, Lang::Zh) => "可能提前结束".to_owned(),
        (GateMatter::Statement(why), Lang::En) => {
            format!("runs a statement that no job can take over ({why})")
        }
        (GateMatter::Statement(why), Lang::Zh) => format!("执行无法转为作业的语句（{why}）"),
    };
    match lang {
        Lang::En => format!(
            "the master {what} (line {line}): {text}; this job does nothing and only keeps the place: replace it"
        ),
        Lang::Zh => {
            format!("主过程{what}（第 {line} 行）：{text}；本作业不做任何事，只保留位置：请替换")
        }
    }
}

fn describe_handler(line: u32, calls: &[String], lang: Lang) -> String {
    let calls = match (calls, lang) {
        ([], _) => String::new(),
        (calls, Lang::En) => format!(", and calls {}", first_few(calls)),
        (calls, Lang::Zh) => format!("，并调用 {}", first_few(calls)),
    };
    match lang {
        Lang::En => format!(
            "the master handles failures (line {line}){calls}; here a failed job stops what waits for it: see retry:, \
             trigger_rule: and notify:"
        ),
        Lang::Zh => format!(
            "主过程处理失败（第 {line} 行）{calls}；此处作业失败后等待它的作业不运行：见 retry:、trigger_rule:、notify:"
        ),
    }
}

fn describe_session_variable(variable: &str, set_by: &[JobCode], lang: Lang) -> String {
    let by = match (set_by, lang) {
        ([], Lang::En) => "the master".to_owned(),
        ([], Lang::Zh) => "主过程".to_owned(),
        (jobs, _) => first_few(&jobs.iter().map(JobCode::to_string).collect::<Vec<_>>()),
    };
    match lang {
        Lang::En => format!(
            "it reads {variable}, which {by} sets; each job has a session of its own, where it is NULL: hand it on as a \
             parameter"
        ),
        Lang::Zh => format!(
            "读取由 {by} 设置的会话变量 {variable}；每个作业有自己的会话，其中为 NULL:请改为参数传递"
        ),
    }
}

fn describe_transaction(line: Option<u32>, lang: Lang) -> String {
    match (line, lang) {
        (Some(line), Lang::En) => format!(
            "the master says itself where transactions begin and end (line {line}); here each job commits for itself"
        ),
        (Some(line), Lang::Zh) => {
            format!("主过程自行控制事务（第 {line} 行）；此处每个作业各自提交")
        }
        (None, Lang::En) => "the master runs as one transaction, so a failure undoes all of it; here each job commits \
                             for itself"
            .to_owned(),
        (None, Lang::Zh) => {
            "主过程在一个事务中运行，失败则全部回滚；此处每个作业各自提交".to_owned()
        }
    }
}

fn at_line(line: u32, lang: Lang) -> String {
    match (line, lang) {
        (0, _) => String::new(),
        (line, Lang::En) => format!(" (line {line})"),
        (line, Lang::Zh) => format!("（第 {line} 行）"),
    }
}

fn list_places(places: &[TextPlace]) -> String {
    first_few(&places.iter().map(TextPlace::to_string).collect::<Vec<_>>())
}

/// The first few items of a list.
fn first_few(all: &[String]) -> String {
    const SHOWN: usize = 5;
    let shown = all.iter().take(SHOWN).map(String::as_str).collect::<Vec<_>>().join(", ");
    match all.len().checked_sub(SHOWN).filter(|rest| *rest > 0) {
        Some(rest) => format!("{shown} … (+{rest})"),
        None => shown,
    }
}
