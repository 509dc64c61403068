//! Completes the schedules of an import: with batch numbers that suit them, and none that `check` would refuse.

use crate::domain::id::GroupCode;
use crate::domain::job::Definition;
use crate::domain::schedule::overlap::Overlap;
use crate::domain::schedule::read_zone;
use crate::domain::schedule::trigger::{TriggerDef, TriggerWords, WordFault};
use crate::domain::time::Millis;
use crate::domain::trigger_check::{self, TriggerCheckContext, TriggerGrade};
use crate::import::note::{BilingualSentence, ImportOrigin, Level, Note};
use crate::import::tally::ItemId;
use chrono_tz::Tz;
use std::collections::BTreeMap;

/// Whether a schedule was enabled in the other system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SourceScheduleState {
    /// Enabled.
    On,
    /// Disabled.
    Off,
}

/// A schedule that was read.
#[derive(Clone, Debug)]
pub struct Pending {
    pub(crate) item: ItemId,
    pub origin: ImportOrigin,
    pub words: TriggerWords,
    pub firing: SourceScheduleState,
}

/// The schedule for the definition, and the notes about it; none if it would be refused.
pub(crate) fn settled(
    pending: Pending,
    rules: &[String],
    defs: &Definition,
    now: Millis,
) -> (Option<TriggerDef>, Vec<Note>) {
    let Pending { origin, words, firing, .. } = pending;
    let about = words.code.clone();
    let note = |level, message: BilingualSentence, fix: BilingualSentence| Note {
        level,
        origin: origin.clone(),
        about: about.clone(),
        message,
        fix,
    };
    let mut notes = Vec::new();
    let made: Result<TriggerDef, WordFault> = numbered(&words, rules, defs, now).or_else(|fault| {
        let made = skipping(&words, rules, defs, now).ok_or(fault)?;
        notes.push(note(Level::Differs, NO_QUEUE.into(), NO_QUEUE_FIX.into()));
        Ok(made)
    });
    let made = match made {
        Ok(made) => made,
        Err(fault) => {
            let why = one_line(&fault.what);
            let said = BilingualSentence::new(
                format!("its schedule is left out: {why}"),
                format!("其调度未迁移:{why}"),
            );
            let add = format!("procession schedule add {about} --group CODE …");
            let cure = BilingualSentence::new(
                format!("{}write it anew: {add}", lead_words(&fault.cure)),
                format!("请另行添加:{add}"),
            );
            return (None, vec![note(Level::LeftOut, said, cure)]);
        }
    };
    if firing == SourceScheduleState::Off {
        let (kind, conf) = (made.timing.schedule.kind(), made.schedule_conf());
        let span = span_keys(&words);
        let said = BilingualSentence::new(
            format!("it was switched off there, so here it fires by hand only ({kind}: {conf})"),
            format!("原系统中已停用,因此这里只能手动触发({kind}: {conf})"),
        );
        let cure = BilingualSentence::new(
            format!("to switch it on, write {kind}: \"{conf}\"{span} in place of manual: true"),
            format!("启用时,将 manual: true 改为 {kind}: \"{conf}\"{span}"),
        );
        notes.push(note(Level::Differs, said, cure));
        return (Some(by_hand(made)), notes);
    }
    for warned in findings(&made, defs, now) {
        let said = format!("{} (batch_no: {})", one_line(&warned.what), number(&made));
        notes.push(note(Level::Look, BilingualSentence::new(said.clone(), said), {
            BilingualSentence::new(warned.cure.clone(), warned.cure.clone())
        }));
    }
    (Some(made), notes)
}

const NO_QUEUE: (&str, &str) = (
    "there a firing waits while the run before it goes on; here it is left out (overlap: skip), because a queue behind a batch \
     that may take so long could grow without end",
    "原系统在上一次未结束时排队;此处跳过(overlap: skip),因为批次可能运行很久,队列可能无限增长",
);
const NO_QUEUE_FIX: (&str, &str) = (
    "set timeout_sec to what a run may take, and overlap: queue, if each firing has to run",
    "如每次触发都必须执行,请设置合理的 timeout_sec 并改为 overlap: queue",
);

/// The same schedule with `overlap: skip`, where its queue would be refused.
fn skipping(
    words: &TriggerWords,
    rules: &[String],
    defs: &Definition,
    now: Millis,
) -> Option<TriggerDef> {
    if words.overlap != Some(Overlap::Queue) {
        return None;
    }
    let words = TriggerWords { overlap: Some(Overlap::Skip), ..words.clone() };
    numbered(&words, rules, defs, now).ok()
}

/// Applies the first rule that gives each firing a distinct number.
fn numbered(
    words: &TriggerWords,
    rules: &[String],
    defs: &Definition,
    now: Millis,
) -> Result<TriggerDef, WordFault> {
    let zone = group_zone(words.group.as_ref(), defs);
    let mut refused = WordFault::new("batch_no", "no rule numbers its batches apart", "");
    for rule in rules {
        let words = TriggerWords { batch_no: Some(rule.clone()), ..words.clone() };
        let made = words.clone().parse_trigger(Some(zone)).map_err(|faults| {
            let first = faults.0.into_iter().next();
            first.unwrap_or_else(|| WordFault::new("code", "it cannot be read", ""))
        })?;
        let first = check(&made, defs, now, TriggerGrade::Refused).into_iter().next();
        match first.or_else(|| repeated_number(&made, &words, defs, now)) {
            None => return Ok(made),
            Some(fault) if fault.key == "batch_no" => refused = fault,
            Some(fault) => return Err(fault),
        }
    }
    Err(refused)
}

/// A number that occurs twice. With `overlap: skip`, checks only warn of it, for users who want one batch however often
/// it fires; in another system each firing ran.
fn repeated_number(
    made: &TriggerDef,
    words: &TriggerWords,
    defs: &Definition,
    now: Millis,
) -> Option<WordFault> {
    if made.overlap != Overlap::Skip {
        return None;
    }
    let words = TriggerWords { overlap: Some(Overlap::Parallel), ..words.clone() };
    let made = words.parse_trigger(Some(made.timing.zone)).ok()?;
    check(&made, defs, now, TriggerGrade::Refused).into_iter().find(|fault| fault.key == "batch_no")
}

pub(crate) fn group_zone(group: Option<&GroupCode>, defs: &Definition) -> Tz {
    let found = defs.groups.iter().find(|g| Some(&g.code) == group);
    let zone = found.and_then(|g| g.time_zone.as_deref());
    zone.and_then(|z| read_zone(z).ok()).unwrap_or(Tz::UTC)
}

fn findings(made: &TriggerDef, defs: &Definition, now: Millis) -> Vec<WordFault> {
    check(made, defs, now, TriggerGrade::Warned)
}

fn check(made: &TriggerDef, defs: &Definition, now: Millis, grade: TriggerGrade) -> Vec<WordFault> {
    let expected = BTreeMap::new();
    let around = TriggerCheckContext { defs, calendars: None, now, expected: &expected };
    let found = trigger_check::check(made, &around);
    found.into_iter().filter(|f| f.grade == grade).map(|f| f.fault).collect()
}

/// The same schedule without firings, to be started by hand.
fn by_hand(mut made: TriggerDef) -> TriggerDef {
    made.timing.schedule = crate::domain::schedule::FiringRule::Manual;
    made.timing.start = None;
    made.timing.end = None;
    made
}

/// The keys of its start and end.
fn span_keys(words: &TriggerWords) -> String {
    let keys = [("start", &words.timing.start), ("end", &words.timing.end)];
    let said = keys.into_iter().filter_map(|(key, value)| Some((key, value.as_ref()?)));
    said.map(|(key, value)| format!(", {key}: {value}")).collect()
}

fn number(made: &TriggerDef) -> String {
    made.order.as_ref().map_or_else(String::new, |order| order.batch_no.to_string())
}

fn lead_words(cure: &str) -> String {
    if cure.is_empty() { String::new() } else { format!("{cure}; or ") }
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
