//! Converts events: a job that adds an event runs before the jobs that wait for it.

use crate::definition::SourceNode;
use crate::domain::batch_no::{BatchExpr, PeriodKind};
use crate::domain::job::external::{ExternalDependency, Missing};
use crate::domain::job::trigger_rule::EdgeCondition;
use crate::import::body::stand_in;
use crate::import::control_m::{ConvertedJob, CtmFolder, CtmJob, actions};
use crate::import::draft::Draft;
use crate::import::note::BilingualSentence;
use crate::import::tally::CountedKind;
use crate::import::tree::{entries, items, plain, word};
use std::collections::BTreeMap;

/// An event that a job waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct AwaitedEvent {
    pub(super) event: String,
    /// The day of the event: relative to the job's day, or any existing one.
    day: Option<i64>,
}

impl AwaitedEvent {
    /// An event of the same day.
    pub(super) fn same_day(event: &str) -> Self {
        Self { event: event.to_owned(), day: Some(0) }
    }
}

/// The events that a job waits for.
#[derive(Debug, Default)]
pub(super) struct AwaitedEvents {
    pub(super) list: Vec<AwaitedEvent>,
    /// Whether one of them is enough.
    pub(super) is_any: bool,
}

/// The jobs that add each event, with the required outcome.
pub(super) struct Adders(BTreeMap<String, Vec<(ConvertedJob, EdgeCondition)>>);

impl Adders {
    pub(super) fn read_adders(folders: &[CtmFolder<'_>], made: &[Vec<ConvertedJob>]) -> Self {
        let mut found: BTreeMap<String, Vec<(ConvertedJob, EdgeCondition)>> = BTreeMap::new();
        let jobs = folders.iter().zip(made).flat_map(|(folder, made)| folder.jobs.iter().zip(made));
        for (job, made) in jobs {
            let success = if actions::is_set_to_ok(job) {
                EdgeCondition::Done
            } else {
                EdgeCondition::Success
            };
            for event in added(job.node) {
                found.entry(event).or_default().push((made.clone(), success.clone()));
            }
            for condition in actions::conditions(job) {
                let Some(when) = actions::status(condition) else { continue };
                for (_, action) in entries(condition) {
                    let is_add =
                        matches!(word(action, "Type"), Some("Event:Add" | "Action:Event:Add"));
                    if let Some(event) = word(action, "Event").filter(|_| is_add) {
                        found
                            .entry(event.to_owned())
                            .or_default()
                            .push((made.clone(), when.clone()));
                    }
                }
            }
        }
        Self(found)
    }

    /// The jobs that add an event.
    pub(super) fn of_event(&self, event: &str) -> Vec<(&ConvertedJob, &EdgeCondition)> {
        self.0.get(event).into_iter().flatten().map(|(made, when)| (made, when)).collect()
    }
}

/// The events of all maps with a type.
fn events<'a>(node: &'a SourceNode, kind: &'a str) -> impl Iterator<Item = &'a SourceNode> {
    let all = entries(node).filter(move |(_, value)| word(value, "Type") == Some(kind));
    all.flat_map(|(_, value)| items(value, "Events"))
}

fn added(node: &SourceNode) -> Vec<String> {
    events(node, "AddEvents").filter_map(|one| word(one, "Event")).map(str::to_owned).collect()
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

/// The day of an event; an inner `None` means any existing one.
fn event_day(text: &str) -> Option<Option<i64>> {
    match text {
        "" | "OrderDate" | "ODAT" => Some(Some(0)),
        "PreviousOrderDate" | "PrevOrderDate" | "PREV" => Some(Some(-1)),
        "NextOrderDate" | "NEXT" => Some(Some(1)),
        "NoDate" | "STAT" | "AnyDate" | "****" | "$$$$" => Some(None),
        shift => shift
            .strip_prefix('+')
            .unwrap_or(shift)
            .parse()
            .ok()
            .filter(|n: &i64| n.abs() < 400)
            .map(Some),
    }
}

/// Lets `job` run after `adder`: in the same batch, or in a batch of another group or day.
pub(super) fn join_jobs(
    job: &ConvertedJob,
    adder: &ConvertedJob,
    when: &EdgeCondition,
    wait: &AwaitedEvent,
    draft: &mut Draft,
) {
    if job.group == adder.group && wait.day == Some(0) {
        draft.depends(&job.code, &adder.code, when.clone());
        return;
    }
    draft.waits(ExternalDependency {
        waiting_group: job.group.clone(),
        job_code: job.code.clone(),
        group: adder.group.clone(),
        depends_on: Some(adder.code.clone()),
        batch: wait.day.map_or(BatchExpr::Latest, |n| BatchExpr::Period(PeriodKind::Day, n)),
        when: when.clone(),
        missing: Missing::Wait,
        wait_sec: None,
    });
}

/// Adds a job that fails and names the awaited event, before a job whose event nothing here adds.
pub(super) fn wait_by_hand(
    job: &CtmJob<'_>,
    made: &ConvertedJob,
    wait: &AwaitedEvent,
    draft: &mut Draft,
) {
    let event = &wait.event;
    let why = BilingualSentence::new(
        format!(
            "{} waits for event {event}, which no job of these files adds once a day: write a SENSOR with a query that asks for it, \
             or import the folder that adds it as well",
            made.code
        ),
        format!(
            "{} 等待事件 {event},这些文件中没有每天添加它的作业:请改为查询它的 SENSOR,或同时导入添加它的文件夹",
            made.code
        ),
    );
    let title = format!("wait_{event}_{}", made.code);
    draft.begin_item(CountedKind::Job, &job.at, &title);
    let before = stand_in(draft, &job.at, &made.group, &title, &why);
    let code = before.code.clone();
    draft.push(before);
    draft.resume_item(job.item);
    draft.depends(&made.code, &code, EdgeCondition::Success);
}
