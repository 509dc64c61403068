//! Reads events: those that a job adds, and those that it waits for.

use crate::definition::SourceNode;
use crate::import::control_m::{CtmJob, actions};
use crate::import::note::BilingualSentence;
use crate::import::step_flow::StepEnd;
use crate::import::tree::{entries, items, plain, word};

/// The day of an awaited event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum AwaitedDay {
    /// Any that exists.
    Any,
    /// So many days after the job's.
    Days(i64),
}

impl AwaitedDay {
    pub(super) fn is_same(self) -> bool {
        self == Self::Days(0)
    }
}

/// An event that a job waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct AwaitedEvent {
    pub(super) event: String,
    pub(super) day: AwaitedDay,
}

/// The events that a job waits for.
#[derive(Debug, Default)]
pub(super) struct AwaitedEvents {
    pub(super) list: Vec<AwaitedEvent>,
    /// Whether one of them is enough.
    pub(super) is_any: bool,
}

/// The events that a job adds, each with the end after which it does.
pub(super) fn added_events(job: &CtmJob<'_>) -> Vec<(String, StepEnd)> {
    let good = actions::good_end(job);
    let mut found: Vec<(String, StepEnd)> = events(job.node, "AddEvents")
        .filter_map(|one| word(one, "Event"))
        .map(|event| (event.to_owned(), good))
        .collect();
    for condition in actions::conditions(job) {
        let Some(end) = actions::status(condition) else { continue };
        for (_, action) in entries(condition) {
            let is_add = matches!(word(action, "Type"), Some("Event:Add" | "Action:Event:Add"));
            if let Some(event) = word(action, "Event").filter(|_| is_add) {
                found.push((event.to_owned(), end));
            }
        }
    }
    found
}

/// The events of all maps with a type.
fn events<'a>(node: &'a SourceNode, kind: &'a str) -> impl Iterator<Item = &'a SourceNode> {
    let all = entries(node).filter(move |(_, value)| word(value, "Type") == Some(kind));
    all.flat_map(|(_, value)| items(value, "Events"))
}

/// The events that a job, its sub-folders and its folder wait for, or why that cannot be expressed.
pub(super) fn waits(job: &CtmJob<'_>) -> Result<AwaitedEvents, BilingualSentence> {
    let mut found = AwaitedEvents::default();
    let (mut ors, mut ands) = (0, 0);
    // Defaults contain no events; the other scopes are the job and its folders.
    for scope in &job.scopes {
        for one in events(scope, "WaitForEvents") {
            match plain(one).map(str::trim) {
                Some("OR") => ors += 1,
                Some("AND") => ands += 1,
                Some(_) => {}
                None => {
                    let Some(event) = word(one, "Event") else { continue };
                    let text = word(one, "Date").unwrap_or("OrderDate").trim().to_owned();
                    let day = event_day(&text).ok_or_else(|| {
                        BilingualSentence::new(
                            format!("it waits for event {event} of {text:?}, for which there is no batch number"),
                            format!("它等待 {text:?} 的事件 {event},没有对应的批次号"),
                        )
                    })?;
                    let wait = AwaitedEvent { event: event.to_owned(), day };
                    if !found.list.contains(&wait) {
                        found.list.push(wait);
                    }
                }
            }
        }
    }
    if ors > 0 && (ands > 0 || ors + 1 != found.list.len()) {
        return Err(BilingualSentence::from((
            "what it waits for is joined by AND and OR; here all must be there, or one is enough (trigger_rule: one_success)",
            "其等待条件混用 AND 与 OR;此处只能全部满足,或其一即可(trigger_rule: one_success)",
        )));
    }
    found.is_any = ors > 0;
    Ok(found)
}

/// The day of an event; none for one that no batch number says.
fn event_day(text: &str) -> Option<AwaitedDay> {
    Some(match text {
        "" | "OrderDate" | "ODAT" => AwaitedDay::Days(0),
        "PreviousOrderDate" | "PrevOrderDate" | "PREV" => AwaitedDay::Days(-1),
        "NextOrderDate" | "NEXT" => AwaitedDay::Days(1),
        "NoDate" | "STAT" | "AnyDate" | "****" | "$$$$" => AwaitedDay::Any,
        shift => {
            let days = shift.strip_prefix('+').unwrap_or(shift).parse().ok();
            AwaitedDay::Days(days.filter(|n: &i64| n.abs() < 400)?)
        }
    })
}

/// Why a job waits for an event in vain.
pub(super) fn nothing_adds(code: &str, event: &str) -> BilingualSentence {
    BilingualSentence::new(
        format!(
            "{code} waits for event {event}, which no job of these files adds once a day: write a SENSOR with a query that asks for it, \
             or import the folder that adds it as well"
        ),
        format!(
            "{code} 等待事件 {event},这些文件中没有每天添加它的作业:请改为查询它的 SENSOR,或同时导入添加它的文件夹"
        ),
    )
}
