//! `batch no`: evaluates an expression or a range of batch numbers.

use crate::cli::{BadInput, Global, VerbResult, out};
use crate::domain::batch_no::{BatchExpr, BatchExprError, Period, RelativeBatch, range};
use crate::domain::id::BatchNo;
use crate::domain::text::lang::Lang;
use crate::domain::time::day_in;
use crate::engine::clock::Clock;
use anyhow::Result;
use chrono::NaiveDate;
use chrono_tz::Tz;
use clap::Args;
use serde_json::json;

/// Arguments of `batch no`.
#[derive(Args)]
pub(super) struct NoArgs {
    /// Expression or range: 'month(-1)', 'last_day_of_month(-1)', months_of_quarter, 202401..202412, A,B,C
    expr: String,
    /// The day it is worked out for; with --from, the business date of that batch
    /// [default: today in UTC]
    #[arg(long, value_name = "YYYY-MM-DD")]
    at: Option<NaiveDate>,
    /// Seen from this batch, as a dependency sees it: prev, months, latest
    #[arg(long, value_name = "BATCH_NO")]
    from: Option<String>,
}

pub(super) fn preview(global: &Global, args: &NoArgs) -> Result<VerbResult> {
    match wanted(args)? {
        RelativeBatch::These(numbers) if global.json => {
            out::print_json(&numbers.iter().map(document).collect())?;
        }
        RelativeBatch::These(numbers) => {
            let header = match global.language() {
                Lang::En => ["BATCH", "PERIOD", "FIRST DAY", "LAST DAY"],
                Lang::Zh => ["批次", "周期", "首日", "末日"],
            };
            out::print_line(&out::table(&header, numbers.iter().map(render_row).collect()));
        }
        RelativeBatch::LatestUpTo(base) if global.json => {
            out::print_json(&json!({"latest_up_to": base}))?
        }
        RelativeBatch::LatestUpTo(base) => out::print_line(&match global.language() {
            Lang::En => format!("the newest batch there is of the same kind, up to {base}"),
            Lang::Zh => format!("不晚于 {base} 的同类最新批次"),
        }),
    }
    Ok(VerbResult::Well)
}

fn wanted(args: &NoArgs) -> Result<RelativeBatch> {
    let bad = |error: String| BadInput(error);
    if args.expr.contains("..") || args.expr.contains(',') {
        if args.at.is_some() || args.from.is_some() {
            let message = "a range names its batch numbers itself; leave out --at and --from";
            return Err(BadInput(message.to_owned()).into());
        }
        return Ok(RelativeBatch::These(range(&args.expr).map_err(|e| bad(e.to_string()))?));
    }
    let expr = BatchExpr::parse(&args.expr).map_err(|e| bad(e.to_string()))?;
    let found = match &args.from {
        Some(base) => expr.from(&BatchNo::parse(base)?, args.at),
        None => {
            let today = || day_in(Clock::system().now(), Tz::UTC);
            expr.all_at(args.at.unwrap_or_else(today)).map(RelativeBatch::These)
        }
    };
    Ok(found.map_err(|e| match e {
        BatchExprError::NeedsBatch(expr) => {
            bad(format!("{expr} is counted from another batch; name that batch: --from 202407"))
        }
        other @ (BatchExprError::Unknown(_)
        | BatchExprError::BadCount { .. }
        | BatchExprError::NoCount { .. }
        | BatchExprError::FreeText { .. }
        | BatchExprError::TooLong { .. }
        | BatchExprError::OutOfTime(_)
        | BatchExprError::NotOne(_)
        | BatchExprError::SeveralDays(_)) => bad(other.to_string()),
    })?)
}

fn document(no: &BatchNo) -> serde_json::Value {
    let period = Period::from_batch_no(no);
    json!({
        "batch_no": no,
        "period": period.map(Period::kind),
        "first_day": period.map(Period::first_day),
        "last_day": period.map(Period::last_day),
    })
}

fn render_row(no: &BatchNo) -> Vec<String> {
    let period = Period::from_batch_no(no);
    let day = |day: Option<NaiveDate>| day.map_or_else(|| "-".to_owned(), |d| d.to_string());
    vec![
        no.to_string(),
        period.map_or_else(|| "-".to_owned(), |p| p.kind().to_string()),
        day(period.map(Period::first_day)),
        day(period.map(Period::last_day)),
    ]
}
