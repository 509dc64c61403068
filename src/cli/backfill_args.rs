//! Arguments that start a backfill.

use crate::app::whoami;
use crate::cli::BadInput;
use crate::cli::order::pairs;
use crate::domain::backfill::{
    BackfillFailurePolicy, BackfillOptions, BackfillSelection, RangeOrder,
};
use crate::domain::batch_no::range;
use crate::domain::id::GroupCode;
use crate::domain::job::Definition;
use crate::engine::dispatch::backfill::Request;
use crate::engine::operate::operator_actions::operator_here;
use anyhow::Result;
use clap::{Args, ValueEnum};
use std::path::PathBuf;

/// How a process runs a backfill.
#[derive(Args)]
pub(super) struct HowArgs {
    /// Jobs at once over all batches, at most
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(super) max_parallel: Option<u32>,
    /// Show no progress, only the summary
    #[arg(short, long)]
    pub(super) quiet: bool,
}

/// Arguments that begin a backfill.
#[derive(Args)]
pub(super) struct StartArgs {
    /// Batch numbers: 202401..202412, 202412..202401, 2024Q1..2025Q2, a list A,B,C, or both
    #[arg(required = true)]
    range: Option<String>,
    /// Definition file (YAML, JSON) or folder with job_def.csv; without it, what is stored
    pub(super) file: Option<PathBuf>,
    /// Group whose batches are run; may be left out when there is only one
    #[arg(long)]
    group: Option<String>,
    /// Batches at once
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    parallel: u32,
    /// Oldest first or newest first [default: as the range names them]
    #[arg(long)]
    order: Option<OrderWord>,
    /// Which: missing, failed, or both; what ended well is never run again
    #[arg(long, default_value = "missing,failed", value_parser = parse_only)]
    only: BackfillSelection,
    /// Parameter of each batch, NAME=VALUE; may be given several times
    #[arg(long = "param", value_name = "NAME=VALUE")]
    params: Vec<String>,
    /// Open batches although their numbers do not fit the type of the group; that is put on record
    #[arg(long)]
    free_text: bool,
    /// After a batch that did not end well: open no further ones, or go on with the others
    #[arg(long, default_value = "stop")]
    on_failure: FailureWord,
    /// Show the list and do nothing
    #[arg(long)]
    pub(super) dry_run: bool,
    /// Why; stored with the backfill
    #[arg(long)]
    reason: Option<String>,
    #[command(flatten)]
    pub(super) how: HowArgs,
}

#[derive(Clone, Copy, ValueEnum)]
enum OrderWord {
    Asc,
    Desc,
}

#[derive(Clone, Copy, ValueEnum)]
enum FailureWord {
    Stop,
    GoOn,
}

fn parse_only(word: &str) -> Result<BackfillSelection, String> {
    BackfillSelection::parse(word)
        .ok_or_else(|| "write missing, failed, or missing,failed".to_owned())
}

impl StartArgs {
    /// The request, except for a group that the definition determines.
    pub(super) fn to_request(&self) -> Result<Request> {
        let text = self.range.as_deref().unwrap_or_default();
        let numbers = range(text).map_err(|e| BadInput(e.to_string()))?;
        let params = pairs(&self.params)?;
        let options = BackfillOptions {
            parallel: self.parallel,
            order: self.order.map(|order| match order {
                OrderWord::Asc => RangeOrder::Asc,
                OrderWord::Desc => RangeOrder::Desc,
            }),
            only: self.only,
            on_failure: match self.on_failure {
                FailureWord::Stop => BackfillFailurePolicy::Stop,
                FailureWord::GoOn => BackfillFailurePolicy::GoOn,
            },
            params,
            free_text: self.free_text,
        };
        let group = GroupCode::parse(self.group.as_deref().unwrap_or("default"))?;
        let (by, reason) = (operator_here(&whoami()), self.reason.clone());
        Ok(Request { group, range: text.trim().to_owned(), numbers, options, by, reason })
    }

    /// The group of the backfill.
    pub(super) fn group(&self, defs: &Definition, asked: GroupCode) -> Result<GroupCode> {
        if self.group.is_some() {
            return Ok(asked);
        }
        match &defs.groups[..] {
            [one] => Ok(one.code.clone()),
            several => {
                let codes: Vec<&str> = several.iter().map(|g| g.code.as_str()).collect();
                let codes = codes.join(", ");
                Err(BadInput(format!("which group? add --group, one of: {codes}")).into())
            }
        }
    }
}
