//! Converts the work of a job: a handler that is called, or a script that is sent.

use crate::domain::executor::block::BlockStrategy;
use crate::domain::executor::route::RouteStrategy;
use crate::domain::executor::{ExecutorCall, ExecutorSend, GlueLanguage};
use crate::domain::id::JobType;
use crate::domain::job::{JobDef, Param, ParamDecl, ParamNeed};
use crate::domain::notification::recipient::Recipient;
use crate::domain::xxl::xxl_tables::XxlJob;
use crate::import::draft::Draft;
use crate::import::note::{BilingualSentence, Level};
use crate::import::xxl_job::executors::ImportedExecutors;
use crate::import::xxl_job::{origin, title};
use std::collections::BTreeMap;

/// Maximum number of retries of a job.
const RETRIES: u32 = 100;
/// XXL-JOB checks for failures every ten seconds.
const RETRY_DELAY_SEC: u32 = 10;
/// Maximum number of addresses of a job.
const ADDRESSES: usize = 50;
/// The name of a job's only parameter.
const PARAM: &str = "param";
/// The handler name for a job that names none: executors refuse it, as they did.
const NOBODY: &str = "(none)";
/// The handler of Procession's own executor, which opens batches.
const OURS: &str = "queueDispatcherHandler";

/// The owner.
pub(super) fn owner(job: &XxlJob) -> Option<String> {
    let line = job.author.split_whitespace().collect::<Vec<_>>().join(" ");
    let line: String = line.chars().filter(|c| !c.is_control()).take(100).collect();
    (!line.is_empty()).then_some(line)
}

/// Recipients of notifications: first the words that are not addresses, then the addresses.
pub(super) fn recipients(job: &XxlJob) -> (Vec<String>, Vec<String>) {
    let words =
        job.alarm_email.split([',', ';', '，']).map(str::trim).filter(|word| !word.is_empty());
    let (good, mut bad): (Vec<String>, Vec<String>) =
        words.map(str::to_owned).partition(|word| Recipient::parse(word).is_ok());
    let mut all: Vec<String> = Vec::new();
    for word in good {
        if all.contains(&word) {
            continue;
        }
        if all.len() < ADDRESSES { all.push(word) } else { bad.push(word) }
    }
    (bad, all)
}

/// Completes a job. A parameter value that a definition cannot express goes into `fixed`, by the name of the batch
/// parameter that replaces it.
pub(super) fn fill_job(
    mut def: JobDef,
    job: &XxlJob,
    executors: &ImportedExecutors,
    fixed: &mut BTreeMap<String, String>,
    draft: &mut Draft,
) -> JobDef {
    let mut say = |level, said: BilingualSentence, cure: BilingualSentence| {
        draft.note(level, &origin(job), def.code.as_str(), said, cure);
    };
    let body = read_body(job, &mut say);
    let route = route(job, &mut say);
    let block = block(job, &mut say);
    say_misfire(job, &mut say);
    let (bad, notify_email) = recipients(job);
    if !bad.is_empty() {
        let list = bad.join(", ");
        let said = BilingualSentence::new(
            format!("is not written to: {list}"),
            format!("以下不是有效的邮件地址,已忽略:{list}"),
        );
        say(Level::LeftOut, said, BilingualSentence::default());
    }
    let retries = u32::try_from(job.retries.max(0)).unwrap_or(u32::MAX);
    if retries > RETRIES {
        let said = BilingualSentence::new(
            format!("{retries} retries are cut to {RETRIES}"),
            format!("失败重试次数 {retries} 改为 {RETRIES}"),
        );
        say(Level::Differs, said, BilingualSentence::default());
    }
    let about = def.code.to_string();
    def.timeout_sec =
        draft.timeout(&origin(job), &about, u64::try_from(job.timeout.max(0)).unwrap_or(0));
    def.retry_count = retries.min(RETRIES);
    def.retry_delay_sec = if retries > 0 { RETRY_DELAY_SEC } else { 0 };
    def.notify_email = notify_email;
    def.owner = owner(job);
    def.params = param(job, fixed).into_iter().collect();
    let send = if def.params.is_empty() { ExecutorSend::None } else { ExecutorSend::Text };
    let (handler, language) = match body {
        XxlJobBody::Bean(handler) => (Some(handler), None),
        XxlJobBody::Script(language) => {
            def.job_type = JobType::parse("GLUE").expect("a job type");
            def.script = Some(job.glue_source.clone());
            (None, Some(language))
        }
    };
    let app = executors.app_of(job.job_group);
    def.executor = Some(Box::new(ExecutorCall { app, handler, language, send, route, block }));
    def
}

enum XxlJobBody {
    Bean(String),
    Script(GlueLanguage),
}

fn read_body(
    job: &XxlJob,
    say: &mut dyn FnMut(Level, BilingualSentence, BilingualSentence),
) -> XxlJobBody {
    let (kind, handler) = (job.glue_type.trim(), job.handler.trim());
    let cure = BilingualSentence::new(
        "it would fail here as it did there; write what it is to do",
        "它在这里会像原来一样失败;请补充要执行的内容",
    );
    if matches!(kind, "" | "BEAN") {
        if handler.is_empty() {
            let said = BilingualSentence::new("it names no handler", "没有 JobHandler");
            say(Level::Look, said, cure);
            return XxlJobBody::Bean(NOBODY.to_owned());
        }
        if handler == OURS {
            say_ours(job, say);
        }
        if !job.glue_source.trim().is_empty() {
            let said = BilingualSentence::new(
                "its script is left out: a BEAN does not run it, there, too",
                "其脚本未迁移:BEAN 模式不运行脚本,原系统亦然",
            );
            say(Level::LeftOut, said, BilingualSentence::default());
        }
        return XxlJobBody::Bean(handler.chars().take(255).collect());
    }
    let language = GlueLanguage::ALL.into_iter().find(|language| language.glue_type() == kind);
    match language {
        Some(language) if !job.glue_source.trim().is_empty() => {
            if !handler.is_empty() {
                let said = BilingualSentence::new(
                    format!("its handler {handler} is left out: a script calls none, there, too"),
                    format!("其 JobHandler {handler} 未迁移:脚本不调用它,原系统亦然"),
                );
                say(Level::LeftOut, said, BilingualSentence::default());
            }
            XxlJobBody::Script(language)
        }
        Some(_) => {
            say(Level::Look, BilingualSentence::new("its script is empty", "脚本为空"), cure);
            XxlJobBody::Bean(NOBODY.to_owned())
        }
        None => {
            let word: String = kind.chars().take(40).collect();
            let said = BilingualSentence::new(
                format!("its kind {word} is none of XXL-JOB's; its script is left out"),
                format!("运行模式 {word} 无法识别;脚本未迁移"),
            );
            say(Level::LeftOut, said, cure);
            XxlJobBody::Bean(NOBODY.to_owned())
        }
    }
}

/// A job that orders batches of a Procession installation, which may be this one.
fn say_ours(job: &XxlJob, say: &mut dyn FnMut(Level, BilingualSentence, BilingualSentence)) {
    let param: String = job.param.split_whitespace().collect::<Vec<_>>().join(" ");
    let said = BilingualSentence::new(
        "it opens batches of Procession, which was an executor there",
        "它触发 Procession(作为执行器)的批次",
    );
    let cure = BilingualSentence::new(
        format!(
            "a schedule does that without a way around: handler: {OURS}, handler_param: '{param}', in place of this group"
        ),
        format!("可直接改为调度:handler: {OURS},handler_param: '{param}',不再需要本作业组"),
    );
    say(Level::Look, said, cure);
}

/// The block strategy; XXL-JOB replaces an unknown word by its first strategy.
fn block(
    job: &XxlJob,
    say: &mut dyn FnMut(Level, BilingualSentence, BilingualSentence),
) -> BlockStrategy {
    let word = job.block.trim();
    if !word.is_empty() && BlockStrategy::ALL.iter().all(|block| block.as_str() != word) {
        let word: String = word.chars().take(40).collect();
        let said = BilingualSentence::new(
            format!(
                "its block strategy {word} is none of XXL-JOB's; SERIAL_EXECUTION stands in its place"
            ),
            format!("阻塞处理策略 {word} 无法识别,改为 SERIAL_EXECUTION"),
        );
        say(Level::Look, said, BilingualSentence::default());
    }
    BlockStrategy::parse(word)
}

/// An unknown misfire strategy does nothing in XXL-JOB, like a missing one.
fn say_misfire(job: &XxlJob, say: &mut dyn FnMut(Level, BilingualSentence, BilingualSentence)) {
    let word = job.misfire.trim();
    if !matches!(word, "" | "DO_NOTHING" | "FIRE_ONCE_NOW") {
        let word: String = word.chars().take(40).collect();
        let said = BilingualSentence::new(
            format!(
                "its misfire strategy {word} is none of XXL-JOB's; DO_NOTHING stands in its place"
            ),
            format!("调度过期策略 {word} 无法识别,改为 DO_NOTHING"),
        );
        say(Level::Look, said, BilingualSentence::default());
    }
}

fn route(
    job: &XxlJob,
    say: &mut dyn FnMut(Level, BilingualSentence, BilingualSentence),
) -> RouteStrategy {
    let word = job.route.trim();
    let route = RouteStrategy::parse(word).unwrap_or_else(|| {
        if !word.is_empty() {
            let word: String = word.chars().take(40).collect();
            let said = BilingualSentence::new(
                format!("its route {word} is none of XXL-JOB's; FIRST stands in its place"),
                format!("路由策略 {word} 无法识别,改为 FIRST"),
            );
            say(Level::Look, said, BilingualSentence::default());
        }
        RouteStrategy::default()
    });
    if route == RouteStrategy::ShardingBroadcast && !job.children.trim().is_empty() {
        let said = BilingualSentence::new(
            "each of its shards started its children there; here they start once, when all shards have succeeded",
            "原系统中每个分片都会触发子任务;这里在全部分片成功后只触发一次",
        );
        say(Level::Differs, said, BilingualSentence::default());
    }
    route
}

/// The only parameter of a job. `${` is a reference in a definition, and plain text in XXL-JOB: such a text is passed
/// by the batch, where it is taken verbatim.
fn param(job: &XxlJob, fixed: &mut BTreeMap<String, String>) -> Option<Param> {
    let text = job.param.as_str();
    if text.is_empty() {
        return None;
    }
    let value = if text.contains("${") {
        let name = format!("xxl_param_{}", job.id);
        fixed.insert(name.clone(), text.replace('$', "$$"));
        format!("${{params.{name}}}")
    } else {
        text.to_owned()
    };
    Some(Param { name: PARAM.to_owned(), value: Some(value), ..Param::default() })
}

/// A parameter that every batch of the group must provide.
pub(super) fn required(name: &str) -> ParamDecl {
    ParamDecl { value: None, need: ParamNeed::Required, ..ParamDecl::plain(name, "") }
}

/// Reports a text that must be provided when a batch is started.
pub(super) fn say_fixed(job: &XxlJob, names: &[&str], draft: &mut Draft) {
    let list = names.join(", ");
    let said = (
        format!(
            "a parameter of its pipeline holds ${{, which would mean something here, and no schedule hands it over: {list}"
        ),
        format!("参数中含有 ${{,在这里有特殊含义,且没有调度传入:{list}"),
    );
    let cure = (
        format!(
            "start it with --param {}=…, with the text of XXL-JOB",
            names.first().unwrap_or(&"")
        ),
        format!("启动时用 --param {}=… 传入原参数", names.first().unwrap_or(&"")),
    );
    draft.note(Level::Look, &origin(job), &title(job), said, cure);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_that_nobody_knows_are_said() {
        for (block, misfire, said) in [
            ("SERIAL_EXECUTION", "DO_NOTHING", &[][..]),
            ("", "", &[]),
            (" COVER_EARLY ", "FIRE_ONCE_NOW", &[]),
            ("CONCURRENT", "DO_NOTHING", &["CONCURRENT"]),
            ("cover_early", "LATER", &["cover_early", "LATER"]),
        ] {
            let job = XxlJob {
                block: block.to_owned(),
                misfire: misfire.to_owned(),
                ..XxlJob::default()
            };
            let mut notes = Vec::new();
            let mut say = |level, words: BilingualSentence, _| notes.push((level, words));
            let is = super::block(&job, &mut say);
            say_misfire(&job, &mut say);
            assert_eq!(is == BlockStrategy::Cover, block.trim() == "COVER_EARLY", "{block}");
            assert_eq!(notes.len(), said.len(), "{notes:?}");
            for ((level, words), word) in notes.iter().zip(said) {
                assert_eq!(*level, Level::Look);
                assert!(words.en.contains(word) && words.zh.contains(word), "{words:?}");
            }
        }
    }
}
