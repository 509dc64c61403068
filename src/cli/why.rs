//! `batch why`: what each job waits for.

use crate::app::App;
use crate::cli::{BatchRef, Global, VerbResult, out};
use crate::domain::text::lang::Lang;
use crate::view::batch::BatchView;
use crate::view::why::{self, JobReason};
use anyhow::Result;
use serde_json::json;

pub(super) async fn print_reasons(
    global: &Global,
    app: &App,
    which: &BatchRef,
) -> Result<VerbResult> {
    let found = which.find_batch(app).await?;
    let view = BatchView::read_view(app, found.batch_id).await?;
    let now = view.now;
    let answers = why::reasons(app, &view).await?;
    let lang = global.language();
    if global.json {
        let answers: Vec<_> =
            answers.iter().map(|r| JobReason::from_reason(r, lang, now)).collect();
        out::print_json(&json!(answers))?;
    } else if answers.is_empty() {
        let (no, status) = (&view.batch.values.batch_no, view.batch.status);
        out::print_line(&match lang {
            Lang::En => format!("Nothing waits: batch {no} is {status}"),
            Lang::Zh => format!("没有作业在等待：批次 {no} 为 {status}"),
        });
    } else {
        let rows = answers
            .iter()
            .map(|(code, status, why)| {
                vec![code.to_string(), status.to_string(), why.words(lang, now)]
            })
            .collect();
        out::print_line(&out::table(&lang_header(lang), rows));
    }
    Ok(VerbResult::Well)
}

fn lang_header(lang: Lang) -> [&'static str; 3] {
    match lang {
        Lang::En => ["JOB", "STATUS", "WHY"],
        Lang::Zh => ["作业", "状态", "原因"],
    }
}
