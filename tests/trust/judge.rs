//! Five judges (J1 to J5, after Jepsen's test of Chronos) over plain records of what happened. Pure: no
//! I/O, no clock, and nothing of the engine but the picture of its states.
//!
//! J1 `time` matches runs with the instants of a schedule, and `fires` judges schedules by it, by labels
//! and by rows. The other four read one [`History`]:
//! J2 `labels`, J3 `effects`, J4 `order`, J5 `rows`. [`judged`] asks these four.

mod effects;
pub(crate) mod fires;
mod labels;
mod order;
mod rows;
pub(crate) mod time;
mod verdict;

pub(crate) use verdict::{Crime, Judge, Verdict, Violation};

use procession::domain::job::queue::QueueStatus;
use std::collections::BTreeMap;

/// A job in a batch: batch number and code.
pub(crate) type Name = (String, String);

/// What a job promises of its effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Class {
    /// `tx: same`: exactly once.
    Same,
    /// `tx: ledger`: exactly once.
    Ledger,
    /// `tx: none`: at most once.
    Once,
    /// `tx: none`, `idempotent: true`: at least once.
    Repeat,
    /// A script: at most once.
    Script,
    /// A script that is idempotent: at least once.
    ScriptRepeat,
}

/// What a class promises.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Promise {
    /// SUCCESS if and only if there is one effect.
    Exactly,
    /// No second effect, and none where an earlier start may have had it.
    AtMost,
    /// SUCCESS only with an effect; each start may add one.
    AtLeast,
}

impl Class {
    pub(crate) const ALL: [Self; 6] =
        [Self::Same, Self::Ledger, Self::Once, Self::Repeat, Self::Script, Self::ScriptRepeat];

    pub(crate) fn promise(self) -> Promise {
        match self {
            Self::Same | Self::Ledger => Promise::Exactly,
            Self::Once | Self::Script => Promise::AtMost,
            Self::Repeat | Self::ScriptRepeat => Promise::AtLeast,
        }
    }

    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Same => "same",
            Self::Ledger => "ledger",
            Self::Once => "none",
            Self::Repeat => "none, idempotent",
            Self::Script => "script",
            Self::ScriptRepeat => "script, idempotent",
        }
    }
}

/// What was asked for: one job of one batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Wanted {
    pub(crate) name: Name,
    pub(crate) class: Class,
    /// Codes of the jobs it waits for, all of which must succeed.
    pub(crate) parents: Vec<String>,
    /// How many addresses hear of its end when it is a bad one.
    pub(crate) told: usize,
    /// How many of its tries end in a failure that its own body reports.
    pub(crate) failing: usize,
    /// Whether the call that opened its batch had an answer.
    pub(crate) answer: Answer,
}

/// Whether a request was heard to have been done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    Came,
    Lost,
}

/// Begin or end of a body, as the body wrote it down.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Phase {
    Begin,
    End,
}

/// A row of the effect table, or a line of the effect file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Effect {
    pub(crate) phase: Phase,
    /// The idempotency key that the body was given.
    pub(crate) key: String,
    pub(crate) name: Name,
    /// The try that the body was told it is, where bodies are told.
    pub(crate) attempt: Option<u32>,
    /// What tells one start of a body from another: its server session, or its process.
    pub(crate) life: String,
    /// Microseconds of the machine's clock when it was written.
    pub(crate) at: i64,
}

/// A row of `job_queue`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct QueueRow {
    pub(crate) queue_id: i64,
    pub(crate) name: Name,
    pub(crate) status: QueueStatus,
    pub(crate) attempt: u32,
    pub(crate) run_no: u32,
}

/// A row of `job_execution_logs`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LogRow {
    pub(crate) log_id: i64,
    pub(crate) queue_id: i64,
    pub(crate) status: QueueStatus,
    pub(crate) attempt: u32,
    pub(crate) is_notified: bool,
}

/// A row of `email_notifications` about a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mail {
    pub(crate) queue_id: i64,
    pub(crate) kind: String,
}

/// All that is left after a run.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub(crate) struct History {
    pub(crate) wanted: Vec<Wanted>,
    pub(crate) rows: Vec<QueueRow>,
    pub(crate) logs: Vec<LogRow>,
    pub(crate) mails: Vec<Mail>,
    pub(crate) effects: Vec<Effect>,
}

/// A history by job, as the judges read it.
pub(crate) struct Records<'a> {
    pub(crate) history: &'a History,
    /// The first row of each job that was asked for or is there.
    pub(crate) rows: BTreeMap<&'a Name, &'a QueueRow>,
    pub(crate) wanted: BTreeMap<&'a Name, &'a Wanted>,
    /// Oldest first.
    pub(crate) logs: BTreeMap<i64, Vec<&'a LogRow>>,
    /// Earliest first.
    pub(crate) effects: BTreeMap<&'a Name, Vec<&'a Effect>>,
}

impl<'a> Records<'a> {
    fn of(history: &'a History) -> Self {
        let mut logs = BTreeMap::<i64, Vec<&LogRow>>::new();
        for log in &history.logs {
            logs.entry(log.queue_id).or_default().push(log);
        }
        logs.values_mut().for_each(|logs| logs.sort_by_key(|log| log.log_id));
        let mut effects = BTreeMap::<&Name, Vec<&Effect>>::new();
        for effect in &history.effects {
            effects.entry(&effect.name).or_default().push(effect);
        }
        effects.values_mut().for_each(|of_one| of_one.sort_by_key(|e| (e.at, e.phase)));
        Self {
            history,
            // Backwards, so that of two rows the first stays.
            rows: history.rows.iter().rev().map(|row| (&row.name, row)).collect(),
            wanted: history.wanted.iter().map(|wanted| (&wanted.name, wanted)).collect(),
            logs,
            effects,
        }
    }

    /// Begins or ends of a job, earliest first.
    pub(crate) fn of_phase(&self, name: &Name, phase: Phase) -> Vec<&'a Effect> {
        let all = self.effects.get(name).map_or(&[][..], Vec::as_slice);
        all.iter().copied().filter(|effect| effect.phase == phase).collect()
    }

    /// The parents of a job, in its own batch.
    pub(crate) fn parents(&self, wanted: &'a Wanted) -> impl Iterator<Item = Name> + 'a {
        wanted.parents.iter().map(|code| (wanted.name.0.clone(), code.clone()))
    }
}

/// What judges J2 to J5 find in a history.
pub(crate) fn judged(history: &History) -> Verdict {
    let records = Records::of(history);
    let found = [
        labels::judge(&records),
        effects::judge(&records),
        order::judge(&records),
        rows::judge(&records),
    ];
    let mut verdict = Verdict::of(&records);
    found.into_iter().flatten().for_each(|violation| verdict.add(violation));
    verdict
}
