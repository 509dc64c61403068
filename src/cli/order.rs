//! The flags of an order: shared by `run` and `plan`.

use crate::cli::{BadInput, out};
use crate::domain::batch::{AskedOrder, BatchError, BatchOrder};
use crate::domain::batch_no::BatchExpr;
use crate::domain::id::GroupCode;
use crate::domain::job::Definition;
use crate::domain::time::Millis;
use anyhow::Result;
use chrono::NaiveDate;
use clap::Args;
use std::collections::BTreeMap;

/// Flags of an order.
#[derive(Args)]
pub(super) struct OrderArgs {
    /// Batch number that fits the type of the group: 202407, 2024Q3, 2024, 20240731; any text where it
    /// has none; or an expression for the business date, else for today: month(-1), quarter(0), …
    #[arg(long, required_unless_present = "order")]
    batch_no: Option<String>,
    /// Run the groups of this type (monthly, quarterly, …)
    #[arg(long = "type")]
    batch_type: Option<String>,
    /// Run this group only
    #[arg(long)]
    group: Option<String>,
    /// Accounting day, YYYY-MM-DD [default: last day of the period that the batch number names]
    #[arg(long)]
    business_date: Option<NaiveDate>,
    /// Parameter of the batch, NAME=VALUE; may be given several times. It wins over all other layers:
    /// batch > job > upstream outputs > group > global. A secret one: NAME=@secret:SECRET
    #[arg(long = "param", value_name = "NAME=VALUE")]
    params: Vec<String>,
    /// Open it although its number does not fit the type of the group; that is put on record
    #[arg(long)]
    free_text: bool,
    /// The same as JSON, as schedules hand it over: {"batchNo":"month(-1)","type":"monthly"}
    #[arg(long, conflicts_with_all = ["batch_no", "batch_type", "group", "business_date", "params", "free_text"])]
    order: Option<String>,
}

impl OrderArgs {
    /// The order from the flags; its batch number may still be an expression.
    pub(super) fn to_order(&self) -> Result<AskedOrder> {
        if let Some(json) = &self.order {
            return Ok(AskedOrder::parse_asked(json)?);
        }
        let batch_no = self.batch_no.as_deref().unwrap_or_default();
        Ok(AskedOrder {
            batch_no: BatchExpr::parse(batch_no).map_err(BatchError::from)?,
            batch_type: self.batch_type.clone(),
            group: self.group.as_deref().map(GroupCode::parse).transpose()?,
            business_date: self.business_date,
            params: pairs(&self.params)?,
            free_text: self.free_text,
        })
    }
}

/// The order with its batch number, which is printed when it came from an expression.
pub(super) fn work_out(asked: AskedOrder, defs: &Definition, now: Millis) -> Result<BatchOrder> {
    let expr = asked.batch_no.clone();
    let order = asked.resolve_order(defs, now)?;
    if !matches!(expr, BatchExpr::Literal(_)) {
        out::eprint_line(&format!("{expr} is batch {}", order.batch_no));
    }
    Ok(order)
}

/// The parameters of `--param NAME=VALUE`. A repeated name is refused as ambiguous.
pub(super) fn pairs(texts: &[String]) -> Result<BTreeMap<String, String>> {
    let mut params = BTreeMap::new();
    for pair in texts {
        // Without '=' it may be a value, and that may be a secret: it is not repeated.
        let (name, value) =
            pair.split_once('=').filter(|(name, _)| !name.is_empty()).ok_or_else(|| {
                BadInput("--param: write NAME=VALUE, e.g. --param rate=7.1".to_owned())
            })?;
        if params.insert(name.to_owned(), value.to_owned()).is_some() {
            return Err(BadInput(format!("--param {name} is given twice; keep one")).into());
        }
    }
    Ok(params)
}
