//! Audit records as documents and as lines of a file.

use crate::domain::id::{BatchNo, GroupCode, JobCode};
use crate::engine::operate::audit_chain::ChainedAct;
use crate::store::audit::AuditRecord;
use crate::view::csv;
use anyhow::Result;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;

/// An audit record.
#[derive(Debug, Serialize, JsonSchema)]
pub struct AuditEntryDetail {
    /// Its key; greater than those of earlier records.
    pub audit_id: i64,
    /// The time.
    pub at: String,
    /// Who: an account, or the user of the machine for an action on the command line.
    pub actor: String,
    /// The address or machine.
    pub host: String,
    /// The action.
    pub action: String,
    /// The group concerned, directly or through what belongs to it.
    pub group: Option<String>,
    /// The batch number.
    pub batch_no: Option<String>,
    /// The job code.
    pub job_code: Option<String>,
    /// Before and after, and what else is worth knowing.
    #[schemars(with = "Option<BTreeMap<String, Value>>")]
    pub detail: Option<Value>,
    /// The reason.
    pub reason: Option<String>,
    /// Its number in the hash chain; null until it is sealed, some seconds after its commit.
    pub seal_no: Option<i64>,
    /// Hash of the chain up to it, in hexadecimal digits.
    pub chain_hash: Option<String>,
}

/// A record in the order of the chain, with what a verification needs.
#[derive(Debug, Serialize)]
pub struct ChainedActLine {
    #[serde(flatten)]
    act: AuditEntryDetail,
    /// Key of the batch, which is hashed too.
    batch_id: Option<i64>,
    /// The time in milliseconds since 1970, as it is hashed.
    at_ms: i64,
    /// SHA-256 of the record alone.
    row_hash: String,
}

impl From<&ChainedAct> for ChainedActLine {
    fn from(chained: &ChainedAct) -> Self {
        Self {
            act: AuditEntryDetail::from(&chained.act),
            batch_id: chained.act.entry.batch.as_ref().map(|(id, _)| id.0),
            at_ms: chained.act.at.0,
            row_hash: chained.row_hash.to_string(),
        }
    }
}

impl From<&AuditRecord> for AuditEntryDetail {
    fn from(record: &AuditRecord) -> Self {
        let AuditRecord { audit_id, at, by, entry, seal } = record;
        Self {
            audit_id: *audit_id,
            at: at.to_string(),
            actor: by.actor.clone(),
            host: by.host.clone(),
            action: entry.action.clone(),
            group: entry.group.as_ref().map(GroupCode::to_string),
            batch_no: entry.batch.as_ref().map(|(_, no)| BatchNo::to_string(no)),
            job_code: entry.job.as_ref().map(JobCode::to_string),
            detail: entry.detail.clone(),
            reason: entry.reason.clone(),
            seal_no: seal.map(|seal| seal.seal_no),
            chain_hash: seal.map(|seal| seal.hash.to_string()),
        }
    }
}

/// A file format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuditFormat {
    /// Comma-separated, with a heading; no cell is a formula.
    Csv,
    /// One document per line.
    Jsonl,
}

impl AuditFormat {
    /// The heading.
    pub fn header(self) -> String {
        match self {
            Self::Csv => csv::csv_line(COLUMNS),
            Self::Jsonl => String::new(),
        }
    }

    /// A record as a line.
    pub fn act_line(self, act: &AuditEntryDetail) -> Result<String> {
        match self {
            Self::Jsonl => Ok(serde_json::to_string(act)? + "\n"),
            Self::Csv => {
                let text = |of: &Option<String>| of.clone().unwrap_or_default();
                Ok(csv::csv_line([
                    act.audit_id.to_string().as_str(),
                    &act.at,
                    &act.actor,
                    &act.host,
                    &act.action,
                    &text(&act.group),
                    &text(&act.batch_no),
                    &text(&act.job_code),
                    &text(&act.reason),
                    &text(&act.detail.as_ref().map(Value::to_string)),
                ]))
            }
        }
    }
}

const COLUMNS: [&str; 10] = [
    "audit_id", "at", "actor", "host", "action", "group", "batch_no", "job_code", "reason",
    "detail",
];
