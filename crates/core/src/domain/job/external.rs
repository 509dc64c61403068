//! A dependency on a job or a whole batch of another batch number or group.

use crate::domain::batch_no::{BatchExpr, RelativeBatch};
use crate::domain::id::{BatchNo, GroupCode, JobCode};
use crate::domain::job::queue::QueueStatus;
use crate::domain::job::trigger_rule::{Edge, EdgeCondition, evaluate_edge};
use crate::domain::text::lang::Lang;
use serde::{Deserialize, Serialize};

/// Policy when the awaited batch does not exist.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, Default,
)]
#[serde(rename_all = "lowercase")]
pub enum Missing {
    /// Wait until it exists.
    #[default]
    Wait,
    /// The job cannot start: UPSTREAM_FAILED.
    Fail,
    /// Continue as if it had succeeded.
    Pass,
}

/// `job_code` runs after a job, or all of a batch, of another batch number or group.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExternalDependency {
    /// The group of the waiting job. The stored form belongs to one group and omits it.
    #[serde(skip_serializing, default = "GroupCode::not_read")]
    pub waiting_group: GroupCode,
    /// The waiting job.
    pub job_code: JobCode,
    /// The awaited group.
    pub group: GroupCode,
    /// The awaited job; none: the batch as a whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub depends_on: Option<JobCode>,
    /// The awaited batch numbers, relative to the waiting batch.
    pub batch: BatchExpr,
    /// Condition on each of the awaited batches.
    #[serde(default)]
    pub when: EdgeCondition,
    /// Policy when a batch does not exist.
    #[serde(default)]
    pub missing: Missing,
    /// Longest wait in seconds, counted from the opening of the batch, after which the dependency
    /// fails; none: unlimited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait_sec: Option<u32>,
}

/// Why a dependency on other batches does not let its job start; shown by `why`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExternalWait {
    /// The batch does not exist yet, or has no such job.
    NotThere(BatchNo),
    /// It exists and has not ended, or it failed and may be rerun.
    NotYet(BatchNo, QueueStatus),
    /// No batch with this number or a lower one exists (`latest`).
    NoneYet,
}

impl ExternalWait {
    /// The awaited thing, as a part of a sentence.
    pub fn words(&self, lang: Lang) -> String {
        match lang {
            Lang::En => wait_in_english(self),
            Lang::Zh => wait_in_chinese(self),
        }
    }
}

fn wait_in_english(wait: &ExternalWait) -> String {
    match wait {
        ExternalWait::NotThere(no) => format!("batch {no} is not there yet"),
        ExternalWait::NotYet(no, status) if status.is_final() => {
            format!("batch {no} ended {status} (run it again or force it)")
        }
        ExternalWait::NotYet(no, status) => format!("batch {no} is {status}"),
        ExternalWait::NoneYet => "no batch is there yet".to_owned(),
    }
}

fn wait_in_chinese(wait: &ExternalWait) -> String {
    match wait {
        ExternalWait::NotThere(no) => format!("批次 {no} 尚不存在"),
        ExternalWait::NotYet(no, status) if status.is_final() => {
            format!("批次 {no} 已结束 {status}（请重跑或强制成功）")
        }
        ExternalWait::NotYet(no, status) => format!("批次 {no} 为 {status}"),
        ExternalWait::NoneYet => "尚无批次".to_owned(),
    }
}

/// Current state of one awaited batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AwaitedBatch {
    /// Its number.
    pub batch_no: BatchNo,
    /// State of the job, or of the batch mapped to a job's states; none: it does not exist.
    pub status: Option<QueueStatus>,
    /// Whether the condition's expression is true of the job's outputs.
    pub holds: bool,
}

/// A dependency of one running batch on other batches, with resolved batch numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CrossBatchDependency {
    /// The definition.
    pub external: ExternalDependency,
    /// The resolved numbers.
    pub wanted: RelativeBatch,
    /// The evaluated edge; none while undecided.
    pub edge: Option<Edge>,
    /// What it waits for, as of the last look-up.
    pub waits: Vec<ExternalWait>,
}

/// Evaluates a dependency on other batches from the state of each of them; `expired` when
/// `wait_sec` has passed. Returns the list of things still awaited while it is undecided.
///
/// All the batches must satisfy the condition. A failed batch may be rerun, so `missing: wait`
/// keeps waiting for it; `fail` does not, and `pass` skips only batches that do not exist.
pub fn judge(
    external: &ExternalDependency,
    seen: &[AwaitedBatch],
    expired: Expired,
) -> Result<Edge, Vec<ExternalWait>> {
    let mut worst = Edge::Met;
    let mut waits = Vec::new();
    if seen.is_empty() {
        match external.missing {
            Missing::Wait => waits.push(ExternalWait::NoneYet),
            Missing::Fail => worst = Edge::Failed,
            Missing::Pass => {}
        }
    }
    for one in seen {
        let Some(status) = one.status else {
            match external.missing {
                Missing::Wait => waits.push(ExternalWait::NotThere(one.batch_no.clone())),
                Missing::Fail => worst = Edge::Failed,
                Missing::Pass => {}
            }
            continue;
        };
        let edge = evaluate_edge(&external.when, status, |_| one.holds);
        match edge {
            Some(Edge::Met) => {}
            Some(Edge::Failed | Edge::Lost) if external.missing == Missing::Wait => {
                waits.push(ExternalWait::NotYet(one.batch_no.clone(), status));
            }
            Some(edge) => worst = worse(worst, edge),
            None => waits.push(ExternalWait::NotYet(one.batch_no.clone(), status)),
        }
    }
    match (waits.is_empty(), expired) {
        (true, _) => Ok(worst),
        (false, Expired::Yes) => Ok(Edge::Failed),
        // A final failure decides without the other batches.
        (false, Expired::No) if worst == Edge::Failed => Ok(worst),
        (false, Expired::No) => Err(waits),
    }
}

/// Whether `wait_sec` has passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expired {
    /// It has passed.
    Yes,
    /// It has not, or there is no limit.
    No,
}

fn worse(a: Edge, b: Edge) -> Edge {
    let rank = |edge| match edge {
        Edge::Met => 0,
        Edge::Neutral => 1,
        Edge::Unmet => 2,
        Edge::Lost => 3,
        Edge::Failed => 4,
    };
    if rank(b) > rank(a) { b } else { a }
}

impl ExternalDependency {
    /// The awaited thing in words: `job CLOSE of group month_end`.
    pub fn target(&self) -> String {
        match &self.depends_on {
            Some(job) => format!("job {job} of group {}", self.group),
            None => format!("group {}", self.group),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(word: &str) -> AwaitedBatch {
        let batch_no = BatchNo::parse("202407").expect("no");
        let (status, holds) = match word {
            "-" => (None, false),
            "runs" => (Some(QueueStatus::Running), false),
            "well" => (Some(QueueStatus::Success), false),
            "true" => (Some(QueueStatus::Success), true),
            "bad" => (Some(QueueStatus::Failed), false),
            "lost" => (Some(QueueStatus::Unknown), false),
            "left" => (Some(QueueStatus::NotTaken), false),
            other => panic!("{other}"),
        };
        AwaitedBatch { batch_no, status, holds }
    }

    fn said(missing: Missing, when: &str, seen: &str, expired: Expired) -> String {
        let external = ExternalDependency {
            waiting_group: GroupCode::parse("w").expect("group"),
            job_code: JobCode::parse("A").expect("code"),
            group: GroupCode::parse("g").expect("group"),
            depends_on: None,
            batch: BatchExpr::parse("same").expect("expression"),
            when: EdgeCondition::parse(when).expect("condition"),
            missing,
            wait_sec: None,
        };
        let seen: Vec<AwaitedBatch> = seen.split_whitespace().map(one).collect();
        match judge(&external, &seen, expired) {
            Ok(edge) => format!("{edge:?}"),
            Err(waits) => format!("waits {}", waits.len()),
        }
    }

    #[test]
    fn the_table() {
        use Missing::{Fail, Pass, Wait};
        for (missing, when, seen, expected) in [
            (Wait, "success", "well well", "Met"),
            (Wait, "success", "well -", "waits 1"),
            (Wait, "success", "runs - well", "waits 2"),
            (Wait, "success", "bad", "waits 1"),
            (Wait, "success", "lost", "waits 1"),
            (Wait, "success", "", "waits 1"),
            (Wait, "failure", "bad", "Met"),
            (Wait, "failure", "well", "Unmet"),
            (Wait, "done", "bad well", "Met"),
            (Wait, "n > 0", "true", "Met"),
            (Wait, "n > 0", "well", "Unmet"),
            (Wait, "success", "left", "Neutral"),
            (Fail, "success", "-", "Failed"),
            (Fail, "success", "- runs", "Failed"),
            (Fail, "success", "bad", "Failed"),
            (Fail, "success", "lost", "Lost"),
            (Fail, "success", "", "Failed"),
            (Fail, "success", "runs", "waits 1"),
            (Pass, "success", "-", "Met"),
            (Pass, "success", "", "Met"),
            (Pass, "success", "- well", "Met"),
            (Pass, "success", "- runs", "waits 1"),
            (Pass, "success", "bad", "Failed"),
        ] {
            assert_eq!(
                said(missing, when, seen, Expired::No),
                expected,
                "{missing:?} {when} {seen}"
            );
        }
        assert_eq!(said(Wait, "success", "well -", Expired::Yes), "Failed");
        assert_eq!(said(Wait, "success", "well", Expired::Yes), "Met");
    }
}
