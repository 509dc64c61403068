//! An executor made of xxljob-sdk-rs: `host ADMIN APPNAME PORT`; the token is in `XXL_TOKEN`, what arrived goes to
//! `seen`. It listens on every address of the machine, which the crate has as it is; the token guards it.

use async_trait::async_trait;
use std::{io::Write as _, sync::Arc, time::Duration};
use tokio::signal::unix::{SignalKind, signal};
use xxljob_sdk_rs::{AsyncJobHandler, JobContext, XxlClientBuilder};

struct Job(&'static str);

fn seen(what: &str, run: &JobContext) -> anyhow::Result<()> {
    let line = serde_json::json!({"what": what, "job": run.job_id, "log": run.log_id,
        "param": run.job_param, "index": run.shard_index, "total": run.shard_total});
    let mut file = std::fs::OpenOptions::new().create(true).append(true).open("seen")?;
    Ok(writeln!(file, "{line}")?)
}

#[async_trait]
impl AsyncJobHandler for Job {
    async fn process(&self, run: JobContext) -> anyhow::Result<JobContext> {
        seen(self.0, &run)?;
        match self.0 {
            "fail" => anyhow::bail!("no rates today: 汇率缺失"),
            "sleep" => {
                let millis = run.job_param.as_deref().unwrap_or_default().parse()?;
                tokio::time::sleep(Duration::from_millis(millis)).await;
                seen("slept", &run)?;
            }
            _ => {}
        }
        Ok(run)
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [admin, app, port] = &args[..] else { anyhow::bail!("host ADMIN APPNAME PORT") };
    let client = XxlClientBuilder::new(admin.trim_end_matches('/').to_owned())
        .set_access_token(std::env::var("XXL_TOKEN")?)
        .set_app_name(app.clone())
        .set_ip("127.0.0.1".to_owned())
        .set_port(port.parse()?)
        .build()?;
    for name in ["ok", "fail", "sleep", "echo"] {
        client.register_async(Arc::new(name.to_owned()), Arc::new(Job(name)))?;
    }
    signal(SignalKind::terminate())?.recv().await;
    Ok(())
}
