//! A dependency on a job or a whole batch of another batch number or group.

use crate::domain::batch_no::{BatchExpr, RelativeBatch};
use crate::domain::id::{BatchNo, GroupCode, JobCode};
use crate::domain::job::queue::QueueStatus;
use crate::domain::job::trigger_rule::{Edge, EdgeCondition, evaluate_edge};
use crate::domain::text::lang::Lang;
use serde::{Deserialize, Serialize};

/// What to do when the batch that is waited for does not exist.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, Default,
)]
#[serde(rename_all = "lowercase")]
pub enum Missing {
    /// Wait until it is there.
    #[default]
    Wait,
    /// The job cannot start: UPSTREAM_FAILED.
    Fail,
    /// Go on as if it had ended well.
    Pass,
}

/// `job_code` runs after a job, or all of a batch, of another batch number or group.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExternalDependency {
    /// The group of the one that waits. What is stored is of one group and does not repeat it.
    #[serde(skip_serializing, default = "GroupCode::not_read")]
    pub waiting_group: GroupCode,
    /// The one that waits.
    pub job_code: JobCode,
    /// The group waited for.
    pub group: GroupCode,
    /// The job waited for; none: the batch as a whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub depends_on: Option<JobCode>,
    /// Which batch numbers, seen from the batch that waits.
    pub batch: BatchExpr,
    /// What is asked of each of them.
    #[serde(default)]
    pub when: EdgeCondition,
    /// When there is no such batch.
    #[serde(default)]
    pub missing: Missing,
    /// Seconds after the opening of the batch beyond which waiting fails; none: for ever.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait_sec: Option<u32>,
}

/// Why a dependency on other batches has not let its job go; what `why` tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExternalWait {
    /// There is no such batch yet, or it has no such job.
    NotThere(BatchNo),
    /// It is there and has not ended, or ended badly and may be run again.
    NotYet(BatchNo, QueueStatus),
    /// No batch is that old or older (`latest`).
    NoneYet,
}

impl ExternalWait {
    /// What is waited for, as a part of a sentence.
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

/// One batch that is waited for, as it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AwaitedBatch {
    /// Its number.
    pub batch_no: BatchNo,
    /// The state of the job, or of the batch in a job's words; none: it is not there.
    pub status: Option<QueueStatus>,
    /// Whether the condition's expression holds of the job's outputs.
    pub holds: bool,
}

/// A dependency on other batches of one running batch, its numbers worked out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CrossBatchDependency {
    /// What was defined.
    pub external: ExternalDependency,
    /// Which numbers.
    pub wanted: RelativeBatch,
    /// What it says; none while it is open.
    pub edge: Option<Edge>,
    /// What it waits for, as it was last seen.
    pub waits: Vec<ExternalWait>,
}

/// What a dependency on other batches says, given each of them as it stands; `expired` when
/// `wait_sec` is over. Gives what it still waits for while it says nothing.
///
/// All of the batches are asked for. One that ended badly may be run again, so `missing: wait` waits
/// for that too; `fail` does not, and `pass` passes only over what does not exist.
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
        // What has failed for good need not wait for the others.
        (false, Expired::No) if worst == Edge::Failed => Ok(worst),
        (false, Expired::No) => Err(waits),
    }
}

/// Whether `wait_sec` is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expired {
    /// It is.
    Yes,
    /// It is not, or there is none.
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
    /// What is waited for, in words: `job CLOSE of group month_end`.
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
