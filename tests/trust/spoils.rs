//! Ways to spoil a true history in one place, for the judges to find.

use crate::trust::judge::{
    Class, Crime, Effect, History, LogRow, Mail, Name, Phase, Promise, QueueRow,
};
use procession::domain::job::queue::QueueStatus as S;

/// Spoils the history at a job; `None` when that job has nothing to spoil in this way.
type Spoil = fn(&mut History, usize) -> Option<()>;

/// Each with what it must be found as.
pub(crate) const SPOILS: &[(&str, Crime, Spoil)] = &[
    ("the effect of a success is dropped", Crime::Lost, drop_effect),
    ("an effect is there twice", Crime::Doubled, double_effect),
    ("a begin is dropped", Crime::Mislabelled, drop_begin),
    ("half of a transaction is there", Crime::Doubled, tear_apart),
    ("what may start once starts twice", Crime::Doubled, start_again),
    ("a failed job has an effect", Crime::Unexpected, effect_of_a_failure),
    ("an effect of nobody", Crime::Unexpected, effect_of_nobody),
    ("a try has another key", Crime::Mislabelled, change_key),
    ("two jobs share a key", Crime::Mislabelled, share_key),
    ("an attempt that there never was", Crime::Mislabelled, odd_attempt),
    ("a child before its parent", Crime::Disordered, run_early),
    ("a claim before the parent is done", Crime::Disordered, claim_early),
    ("a start below a failure", Crime::Disordered, run_below),
    ("two lives at once", Crime::Overlapping, overlap),
    ("a row twice", Crime::BadRow, double_row),
    ("a row of nobody", Crime::BadRow, row_of_nobody),
    ("a row is gone", Crime::BadRow, drop_row),
    ("a log row twice", Crime::BadRow, double_log),
    ("a log row is gone", Crime::BadRow, drop_log),
    ("an attempt is left out", Crime::BadRow, skip_attempt),
    ("a row says another end", Crime::BadRow, other_end),
    ("a mail is gone", Crime::BadRow, drop_mail),
    ("a mail twice", Crime::BadRow, double_mail),
    ("a log row denies its mail", Crime::BadRow, deny_mail),
    ("a row is left running", Crime::Unexplained, leave_running),
    ("what is recorded is in doubt", Crime::Unexplained, doubt_what_is_recorded),
    ("a failure that nobody caused", Crime::Unexplained, fail_without_reason),
];

fn name(h: &History, at: usize) -> Name {
    h.wanted[at].name.clone()
}

fn class(h: &History, at: usize) -> Class {
    h.wanted[at].class
}

/// The row of a job, which is there once in a true history.
fn row(h: &mut History, at: usize) -> Option<&mut QueueRow> {
    let name = name(h, at);
    h.rows.iter_mut().find(|row| row.name == name)
}

fn status(h: &mut History, at: usize) -> Option<S> {
    row(h, at).map(|row| row.status)
}

/// Places of a job's effects, earliest first.
fn effects(h: &History, at: usize, phase: Phase) -> Vec<usize> {
    let name = name(h, at);
    let is_it = |e: &Effect| e.name == name && e.phase == phase;
    (0..h.effects.len()).filter(|i| is_it(&h.effects[*i])).collect()
}

/// Places of a job's log rows.
fn logs(h: &mut History, at: usize) -> Vec<usize> {
    let id = row(h, at).map(|row| row.queue_id);
    (0..h.logs.len()).filter(|i| Some(h.logs[*i].queue_id) == id).collect()
}

fn drop_effect(h: &mut History, at: usize) -> Option<()> {
    let ends = effects(h, at, Phase::End);
    (status(h, at)? == S::Success).then_some(())?;
    ends.into_iter().rev().for_each(|end| drop(h.effects.remove(end)));
    Some(())
}

fn double_effect(h: &mut History, at: usize) -> Option<()> {
    let end = *effects(h, at, Phase::End).first()?;
    let double = h.effects[end].clone();
    h.effects.push(double);
    Some(())
}

fn drop_begin(h: &mut History, at: usize) -> Option<()> {
    effects(h, at, Phase::End).first()?;
    effects(h, at, Phase::Begin).into_iter().rev().for_each(|begin| drop(h.effects.remove(begin)));
    Some(())
}

fn tear_apart(h: &mut History, at: usize) -> Option<()> {
    (class(h, at).promise() == Promise::Exactly).then_some(())?;
    let end = *effects(h, at, Phase::End).first()?;
    h.effects.remove(end);
    Some(())
}

fn start_again(h: &mut History, at: usize) -> Option<()> {
    (class(h, at).promise() == Promise::AtMost).then_some(())?;
    let begin = *effects(h, at, Phase::Begin).first()?;
    for _ in 0..=h.wanted[at].failing {
        let again = Effect { life: "another".to_owned(), ..h.effects[begin].clone() };
        h.effects.push(Effect { at: again.at + 1_000_000, ..again });
    }
    Some(())
}

fn effect_of_a_failure(h: &mut History, at: usize) -> Option<()> {
    let is_exact = class(h, at).promise() == Promise::Exactly;
    (is_exact && status(h, at)? == S::Failed).then_some(())?;
    add_effects(h, at, &[Phase::Begin, Phase::End]);
    Some(())
}

fn add_effects(h: &mut History, at: usize, phases: &[Phase]) {
    for phase in phases {
        let (name, phase) = (name(h, at), *phase);
        let (key, life) = (format!("here/{}/{}/1", name.0, name.1), "late".to_owned());
        h.effects.push(Effect { phase, key, name, attempt: None, life, at: 2_000_000 });
    }
}

fn effect_of_nobody(h: &mut History, at: usize) -> Option<()> {
    let effect = h.effects.get(at)?.clone();
    h.effects.push(Effect { name: ("B0".to_owned(), "NOBODY".to_owned()), ..effect });
    Some(())
}

fn change_key(h: &mut History, at: usize) -> Option<()> {
    let two = *effects(h, at, Phase::Begin).get(1)?;
    h.effects[two].key.push_str("/other");
    Some(())
}

fn share_key(h: &mut History, at: usize) -> Option<()> {
    let (mine, theirs) = (name(h, at), name(h, at.checked_sub(1)?));
    let key = h.effects.iter().find(|e| e.name == theirs)?.key.clone();
    h.effects.iter().find(|e| e.name == mine)?;
    h.effects.iter_mut().filter(|e| e.name == mine).for_each(|e| e.key.clone_from(&key));
    Some(())
}

fn odd_attempt(h: &mut History, at: usize) -> Option<()> {
    let begin = *effects(h, at, Phase::Begin).first()?;
    h.effects[begin].attempt = if at.is_multiple_of(2) { Some(0) } else { Some(9) };
    Some(())
}

fn run_early(h: &mut History, at: usize) -> Option<()> {
    let parent = (h.wanted[at].name.0.clone(), h.wanted[at].parents.first()?.clone());
    let ends = h.effects.iter().filter(|e| e.name == parent && e.phase == Phase::End);
    let ended = ends.map(|e| e.at).max()?;
    let begin = *effects(h, at, Phase::Begin).first()?;
    h.effects[begin].at = ended - 1;
    Some(())
}

fn claim_early(h: &mut History, at: usize) -> Option<()> {
    let (mine, code) = (logs(h, at), h.wanted[at].parents.first()?.clone());
    let batch = h.wanted[at].name.0.clone();
    let parent = h.wanted.iter().position(|w| w.name == (batch.clone(), code.clone()))?;
    let done = logs(h, parent).into_iter().find(|i| h.logs[*i].status == S::Success)?;
    let claimed = mine.into_iter().find(|i| h.logs[*i].status == S::Running)?;
    // A claim belongs to its moment, and everything of the row after it moves along.
    h.logs[done].log_id = h.logs[claimed].log_id * 1_000;
    Some(())
}

fn run_below(h: &mut History, at: usize) -> Option<()> {
    (status(h, at)? == S::UpstreamFailed).then_some(())?;
    add_effects(h, at, &[Phase::Begin]);
    Some(())
}

fn overlap(h: &mut History, at: usize) -> Option<()> {
    let (begins, ends) = (effects(h, at, Phase::Begin), effects(h, at, Phase::End));
    let (two, one) = (*begins.get(1)?, *ends.first()?);
    (h.effects[one].life != h.effects[two].life).then_some(())?;
    h.effects[two].at = h.effects[one].at - 1;
    Some(())
}

fn double_row(h: &mut History, at: usize) -> Option<()> {
    let row = row(h, at)?.clone();
    h.rows.push(QueueRow { queue_id: 999_999, ..row });
    Some(())
}

fn row_of_nobody(h: &mut History, at: usize) -> Option<()> {
    let row = row(h, at)?.clone();
    h.rows.push(QueueRow { name: ("B0".to_owned(), "NOBODY".to_owned()), ..row });
    Some(())
}

fn drop_row(h: &mut History, at: usize) -> Option<()> {
    (h.wanted[at].answer == crate::trust::judge::Answer::Came).then_some(())?;
    let name = name(h, at);
    h.rows.retain(|row| row.name != name);
    Some(())
}

fn double_log(h: &mut History, at: usize) -> Option<()> {
    let last = *logs(h, at).last()?;
    let double = h.logs[last].clone();
    h.logs.push(LogRow { log_id: 999_999, ..double });
    Some(())
}

/// Not QUEUED: PENDING may be followed by RUNNING as well, so nobody can miss it.
fn drop_log(h: &mut History, at: usize) -> Option<()> {
    let mine = logs(h, at);
    let one = *mine.get(at % mine.len().max(1))?;
    (h.logs[one].status != S::Queued).then_some(())?;
    h.logs.remove(one);
    Some(())
}

fn skip_attempt(h: &mut History, at: usize) -> Option<()> {
    for log in logs(h, at).into_iter().filter(|i| *i > 0) {
        h.logs[log].attempt += 1;
    }
    let has_run = row(h, at)?.attempt > 0;
    row(h, at)?.attempt += 1;
    has_run.then_some(())
}

fn other_end(h: &mut History, at: usize) -> Option<()> {
    let row = row(h, at)?;
    row.status = if row.status == S::Success { S::Warning } else { S::Success };
    Some(())
}

fn mail(h: &mut History, at: usize) -> Option<usize> {
    let id = row(h, at)?.queue_id;
    h.mails.iter().position(|mail: &Mail| mail.queue_id == id)
}

fn drop_mail(h: &mut History, at: usize) -> Option<()> {
    let mail = mail(h, at)?;
    h.mails.remove(mail);
    Some(())
}

fn double_mail(h: &mut History, at: usize) -> Option<()> {
    let mail = mail(h, at)?;
    let double = h.mails[mail].clone();
    h.mails.push(double);
    Some(())
}

fn deny_mail(h: &mut History, at: usize) -> Option<()> {
    let log = logs(h, at).into_iter().find(|i| h.logs[*i].is_notified)?;
    h.logs[log].is_notified = false;
    Some(())
}

/// Makes `end` the end of a job that succeeded, in its row and its log alike.
fn end_as(h: &mut History, at: usize, end: S) -> Option<()> {
    (status(h, at)? == S::Success).then_some(())?;
    let last = *logs(h, at).last()?;
    h.logs[last].status = end;
    row(h, at)?.status = end;
    Some(())
}

fn leave_running(h: &mut History, at: usize) -> Option<()> {
    (status(h, at)? == S::Success).then_some(())?;
    let last = *logs(h, at).last()?;
    h.logs.remove(last);
    row(h, at)?.status = S::Running;
    Some(())
}

fn doubt_what_is_recorded(h: &mut History, at: usize) -> Option<()> {
    (class(h, at).promise() == Promise::Exactly).then_some(())?;
    end_as(h, at, S::Unknown)
}

fn fail_without_reason(h: &mut History, at: usize) -> Option<()> {
    (h.wanted[at].failing == 0).then_some(())?;
    end_as(h, at, S::Failed)
}
