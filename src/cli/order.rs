//! The flags that name a batch to be: what `run` and `plan` have in common.

use crate::cli::BadInput;
use crate::domain::batch::BatchOrder;
use crate::domain::id::{BatchNo, GroupCode};
use anyhow::Result;
use chrono::NaiveDate;
use clap::Args;
use std::collections::BTreeMap;

/// Flags of an order.
#[derive(Args)]
pub(super) struct OrderArgs {
    /// Batch number: 202407, 2024Q3, 2024, 20240731 or free text
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
    /// Parameter of the batch, NAME=VALUE; may be given several times
    #[arg(long = "param", value_name = "NAME=VALUE")]
    params: Vec<String>,
    /// The same as JSON, as schedules hand it over: {"batchNo":"202407","type":"monthly"}
    #[arg(long, conflicts_with_all = ["batch_no", "batch_type", "group", "business_date", "params"])]
    order: Option<String>,
}

impl OrderArgs {
    /// The order that the flags make.
    pub(super) fn read(&self) -> Result<BatchOrder> {
        if let Some(json) = &self.order {
            return Ok(BatchOrder::parse(json)?);
        }
        let mut params = BTreeMap::new();
        for pair in &self.params {
            let (name, value) =
                pair.split_once('=').filter(|(name, _)| !name.is_empty()).ok_or_else(|| {
                    BadInput(format!("--param {pair}: write NAME=VALUE, e.g. --param rate=7.1"))
                })?;
            params.insert(name.to_owned(), value.to_owned());
        }
        let batch_no = self.batch_no.as_deref().unwrap_or_default();
        Ok(BatchOrder {
            batch_no: BatchNo::parse(batch_no)?,
            batch_type: self.batch_type.clone(),
            group: self.group.as_deref().map(GroupCode::parse).transpose()?,
            business_date: self.business_date,
            params,
        })
    }
}
