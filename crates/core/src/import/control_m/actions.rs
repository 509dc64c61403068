//! Converts what follows the end of a job: maps with a type that begins with `If`, and their actions.

use crate::definition::SourceNode;
use crate::domain::job::JobDef;
use crate::domain::notification::recipient::Recipient;
use crate::import::control_m::CtmJob;
use crate::import::draft::Draft;
use crate::import::note::{BilingualSentence, Level};
use crate::import::step_flow::StepEnd;
use crate::import::tree::{entries, get, origin, word};

/// Maximum number of retries of a job.
const RETRIES: u32 = 100;

/// When the actions of a condition run; `None` if there is no equivalent.
pub(super) fn status(condition: &SourceNode) -> Option<StepEnd> {
    let kind = word(condition, "Type").unwrap_or_default();
    if !matches!(kind, "If" | "If:CompletionStatus") {
        return None;
    }
    match word(condition, "CompletionStatus").unwrap_or_default().trim() {
        "OK" => Some(StepEnd::Succeeded),
        "NOTOK" | "!=0" => Some(StepEnd::Failed),
        "ANY" => Some(StepEnd::Ended),
        _ => None,
    }
}

/// The conditions of a job.
pub(super) fn conditions<'a>(job: &CtmJob<'a>) -> impl Iterator<Item = &'a SourceNode> {
    let all = entries(job.node).map(|(_, node)| node);
    all.filter(|node| word(node, "Type").is_some_and(|kind| kind.starts_with("If")))
}

/// The end with which a job is OK in Control-M: with `SetToOK`, a failure as well.
pub(super) fn good_end(job: &CtmJob<'_>) -> StepEnd {
    let is_failure = |one: &&SourceNode| is_of_failure(status(one));
    let is_set = conditions(job).filter(is_failure).any(|one| {
        entries(one)
            .any(|(_, action)| word(action, "Type").is_some_and(|kind| kind.ends_with("SetToOK")))
    });
    if is_set { StepEnd::Ended } else { StepEnd::Succeeded }
}

fn is_of_failure(status: Option<StepEnd>) -> bool {
    matches!(status, Some(StepEnd::Failed | StepEnd::Ended))
}

/// Converts the actions of a job that have an equivalent; events are read where they are joined.
pub(super) fn read_actions(job: &CtmJob<'_>, def: &mut JobDef, draft: &mut Draft) {
    for condition in conditions(job) {
        let status = status(condition);
        for (name, action) in entries(condition) {
            let Some(kind) = word(action, "Type") else {
                if !matches!(name, "Type" | "CompletionStatus") {
                    draft.note_unknown_key(&origin(condition), def.code.as_str(), name);
                }
                continue;
            };
            read_action(kind, action, status, job, def, draft);
        }
    }
    rerun_limit(job, def, draft);
}

fn read_action(
    kind: &str,
    action: &SourceNode,
    status: Option<StepEnd>,
    job: &CtmJob<'_>,
    def: &mut JobDef,
    draft: &mut Draft,
) {
    let at = origin(action);
    match (kind.trim_start_matches("Action:"), status) {
        ("Mail", Some(StepEnd::Failed)) => {
            for address in word(action, "To").unwrap_or_default().split([';', ',']).map(str::trim) {
                if Recipient::parse(address).is_ok() {
                    if !def.notify_email.iter().any(|known| known == address) {
                        def.notify_email.push(address.to_owned());
                    }
                } else if !address.is_empty() {
                    let said = (
                        format!("is not written to: {address}"),
                        format!("不是有效的邮件地址:{address}"),
                    );
                    draft.note(Level::LeftOut, &at, def.code.as_str(), said, ("", ""));
                }
            }
        }
        ("SetToOK", Some(StepEnd::Failed | StepEnd::Ended)) => {
            let said = (
                "there its failure counts as a success: what waits for it runs once it has run, however it ended (when: done), and the batch \
                 ends FAILED",
                "原系统将其失败视为成功:只要它运行过,依赖它的作业照常运行(when: done),但批次以 FAILED 结束",
            );
            draft.note(Level::Differs, &at, def.code.as_str(), said, ("", ""));
        }
        ("Rerun", Some(StepEnd::Failed)) => {
            let times = get(job.node, "RerunLimit").and_then(|limit| word(limit, "Times"));
            def.retry_count =
                times.and_then(|text| text.trim().parse().ok()).unwrap_or(1).min(RETRIES);
        }
        ("Event:Add" | "Event:Delete", Some(_)) => {}
        (kind, _) => {
            let kind: String = kind.chars().take(60).collect();
            let when = status
                .map_or_else(|| "its own condition".to_owned(), |end| end.condition().to_string());
            let said = BilingualSentence::new(
                format!("{kind} on {when} is left out: it has no counterpart here"),
                format!("{kind}({when})未迁移:此处没有对应"),
            );
            let cure = (
                "success: with a rule on its outputs decides its end; jobs with trigger_rule: one_failed follow a failure",
                "可用 success: 规则决定结果;trigger_rule: one_failed 的作业可在失败后运行",
            );
            draft.note(Level::LeftOut, &at, def.code.as_str(), said, cure);
        }
    }
}

/// The delay of a rerun; a limit without a rerun action applies to manual reruns.
fn rerun_limit(job: &CtmJob<'_>, def: &mut JobDef, draft: &mut Draft) {
    let Some(limit) = get(job.node, "RerunLimit") else { return };
    let number =
        |key: &str| word(limit, key).and_then(|text| text.trim().parse::<u32>().ok()).unwrap_or(0);
    if def.retry_count == 0 {
        if number("Times") > 0 {
            let said = (
                format!(
                    "RerunLimit {} is left out: nothing there reruns it by itself",
                    number("Times")
                ),
                format!("RerunLimit {} 未迁移:原系统不会自动重跑", number("Times")),
            );
            draft.note(Level::Differs, &job.at, def.code.as_str(), said, ("", ""));
        }
        return;
    }
    let unit = match word(limit, "Units").unwrap_or("Minutes") {
        "Seconds" => 1,
        "Hours" => 3_600,
        _ => 60,
    };
    def.retry_delay_sec = number("Every").saturating_mul(unit).min(86_400);
}
