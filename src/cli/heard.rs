//! Checks whether any process receives the results of executor runs.

use crate::app::App;
use crate::cli::{batch, out};
use crate::domain::id::GroupCode;
use crate::domain::job::{Definition, JobDef};
use crate::domain::text::lang::Lang;
use crate::store::node;
use anyhow::Result;

/// Warns of jobs that call executors of XXL-JOB when no process has a listener to which executors
/// could report the ends of runs: `run` has none.
pub(super) async fn warn_executors(
    app: &App,
    defs: &Definition,
    group: Option<&GroupCode>,
    lang: Lang,
) -> Result<()> {
    let is_meant = |of: &GroupCode| group.is_none_or(|group| group == of);
    let calls = |job: &&JobDef| job.executor.is_some() && is_meant(&job.group);
    let Some(job) = defs.jobs.iter().find(calls) else { return Ok(()) };
    let now = batch::server_now(app).await?;
    let members = node::members(&mut app.db.begin_read().await?, now).await?;
    if members.iter().any(|member| member.offer.address.is_some()) {
        return Ok(());
    }
    let code = &job.code;
    out::eprint_line(&match lang {
        Lang::En => format!(
            "warning: {code} calls an executor of XXL-JOB, and nobody hears how its run ends: start \
             procession serve on this database, at the address that the executors have as their \
             admin's. Without it the job waits until its time-out"
        ),
        Lang::Zh => format!(
            "警告：{code} 调用 XXL-JOB 执行器，但没有进程接收其运行结果：请在本数据库上启动 procession \
             serve，地址须与执行器配置的调度中心地址一致。否则该作业将一直等到超时"
        ),
    });
    Ok(())
}
