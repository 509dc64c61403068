//! `migrate`: make or update Procession's own tables.

use crate::app::{EmptyDatabase, Schema, known_schema};
use crate::cli::{Global, VerbResult, out};
use anyhow::Result;
use clap::Args;
use serde_json::json;
use std::time::Duration;

/// Arguments of `migrate`.
#[derive(Args)]
pub(super) struct MigrateArgs {
    /// Only say how the schema stands; exit code 2 unless it is current
    #[arg(long)]
    status: bool,
    /// Wait up to so long for the processes that work on the tables to end
    #[arg(long, value_name = "SECONDS", default_value_t = 0)]
    wait: u32,
}

pub(super) async fn migrate(global: &Global, args: &MigrateArgs) -> Result<VerbResult> {
    let app = global.open_app(EmptyDatabase::Accept).await?;
    if args.status {
        if app.db.schema().await? == Schema::Current {
            print_applied(
                global,
                &[],
                &format!("the schema is current (version {})", known_schema()),
            )?;
        }
        app.db.require_current().await?;
        return Ok(VerbResult::Well);
    }
    let applied = app.migrate(Duration::from_secs(args.wait.into())).await?;
    app.close().await;
    let words: Vec<String> = applied.iter().map(ToString::to_string).collect();
    let text = match words.is_empty() {
        true => format!("the schema is current already (version {})", known_schema()),
        false => {
            format!("applied {}; the schema is at version {}", words.join(", "), known_schema())
        }
    };
    print_applied(global, &applied, &text)?;
    Ok(VerbResult::Well)
}

fn print_applied(global: &Global, applied: &[i64], text: &str) -> Result<()> {
    if global.json {
        return out::print_json(&json!({"applied": applied, "version": known_schema()}));
    }
    out::print_line(text);
    Ok(())
}
