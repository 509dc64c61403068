//! Jobs that were caught committing by themselves: messages about them, and `job trust`.

use crate::app::{App, whoami};
use crate::cli::{BadInput, Global, VerbResult, batch, four_eyes, out};
use crate::domain::id::JobCode;
use crate::domain::job::job_key::{JobKey, find_named};
use crate::domain::job::{Definition, JobDef};
use crate::domain::text::lang::Lang;
use crate::engine::host_name;
use crate::engine::operate::pause;
use crate::store;
use crate::store::audit::Operator;
use crate::store::breach::Breach;
use crate::view::batch::BatchView;
pub(super) use crate::view::breach::find_mark;
use anyhow::Result;
use serde_json::json;

/// What happened, the consequence, and the hint.
pub(super) fn sentence(job: &JobDef, mark: &Breach, lang: Lang) -> String {
    let (code, class) = (&mark.job.code, job.tx.as_str());
    let Breach { job: key, batch_no, attempt, said: sentence, .. } = mark;
    match lang {
        Lang::En => format!(
            "{code} is declared tx: {class} but was caught committing by itself (batch {batch_no}, \
             attempt {attempt}: {sentence}), and is refused until that is settled: declare tx: none, or \
             mend it and: procession job trust {key} --reason …"
        ),
        Lang::Zh => format!(
            "{code} 声明为 tx: {class}，但被发现自行提交（批次 {batch_no}，第 {attempt} 次启动：{sentence}），\
             处理前将拒绝运行：请改为 tx: none，或修复后执行 procession job trust {key} --reason …"
        ),
    }
}

/// Warns of the jobs of a definition that will be refused.
pub(super) async fn warn_breaches(app: &App, defs: &Definition, lang: Lang) -> Result<()> {
    if defs.jobs.iter().all(|job| !job.tx.is_recorded()) {
        return Ok(());
    }
    let marks = store::breach::list_marks(&mut app.db.begin_read().await?).await?;
    for job in &defs.jobs {
        if let Some(mark) = find_mark(job, &marks) {
            let word = lang.select("warning", "警告");
            out::eprint_line(&format!("{word}: {}", sentence(job, mark, lang)));
        }
    }
    Ok(())
}

/// Messages about the jobs that were caught in this batch.
pub(super) async fn describe_breaches(
    app: &App,
    view: &BatchView,
    lang: Lang,
) -> Result<Vec<String>> {
    let marks = store::breach::list_marks(&mut app.db.begin_read().await?).await?;
    let here = |mark: &&Breach| view.rows.iter().any(|row| row.queue_id == mark.queue_id);
    let jobs = view.snapshot.jobs.iter();
    let caught = jobs.filter_map(|job| Some((job, find_mark(job, &marks).filter(here)?)));
    Ok(caught.map(|(job, mark)| sentence(job, mark, lang)).collect())
}

/// Warns of marked jobs in a file, else in the stored definition.
pub(super) async fn warn_of(app: &App, file: Option<&Definition>, lang: Lang) -> Result<()> {
    match file {
        Some(defs) => warn_breaches(app, defs, lang).await,
        None => warn_breaches(app, &app.definition().await?, lang).await,
    }
}

/// `job trust`.
pub(super) async fn trust(
    global: &Global,
    app: &App,
    jobs: &[String],
    reason: &str,
) -> Result<VerbResult> {
    if reason.trim().is_empty() {
        let message = "--reason: say what was fixed; others will read it";
        return Err(BadInput(message.to_owned()).into());
    }
    let defs = app.definition().await?;
    let jobs: Vec<JobKey> =
        jobs.iter().map(|word| Ok(find_named(&defs.jobs, word)?.key())).collect::<Result<_>>()?;
    let by = Operator::new(whoami(), host_name());
    let now = batch::server_now(app).await?;
    let change = four_eyes::forced(jobs.iter().map(|job| &job.group));
    let summary = "trust jobs again that committed by themselves";
    four_eyes::record(app, change, summary, Some(reason), global.language()).await?;
    let unmarked = pause::trust(&app.db, &jobs, &by, reason.trim(), now).await?;
    if !unmarked.is_empty() {
        let codes: Vec<&str> = unmarked.iter().map(|job| job.code.as_str()).collect();
        return Err(BadInput(format!(
            "{}: not caught committing by itself, so there is nothing to trust it with; procession \
             job list shows those that are; nothing was changed",
            codes.join(", ")
        ))
        .into());
    }
    if global.json {
        let codes: Vec<&JobCode> = jobs.iter().map(|job| &job.code).collect();
        out::print_json(&json!({"trusted": codes}))?;
        return Ok(VerbResult::Well);
    }
    for job in jobs.iter().map(|job| &job.code) {
        out::print_line(&match global.language() {
            Lang::En => format!("{job} is trusted again; it is caught again if it still commits"),
            Lang::Zh => format!("{job} 已恢复信任；若仍自行提交，会再次被发现"),
        });
    }
    Ok(VerbResult::Well)
}
