//! Output before and after an action: the exact list of changes, and who continues the batch.

use crate::cli::out;
use crate::domain::action::OperatorAction;
use crate::domain::action::action_plan::Cause;
use crate::domain::batch::Batch;
use crate::domain::text::lang::Lang;
use crate::engine::operate::operator_actions::Acted;
use crate::view::act::{ActionRowDetail, state_after};
use serde_json::json;

/// The list of changes as a table.
pub(super) fn render_changes(action: OperatorAction, acted: &Acted, lang: Lang) -> String {
    let header = match lang {
        Lang::En => ["JOB", "NOW", "THEN", "BECAUSE"],
        Lang::Zh => ["作业", "现在", "之后", "缘由"],
    };
    let because = |cause: Cause| match (lang, cause) {
        (Lang::En, Cause::Asked) => "asked for",
        (Lang::Zh, Cause::Asked) => "操作指定",
        (Lang::En, Cause::Follows) => "follows",
        (Lang::Zh, Cause::Follows) => "随之改变",
    };
    let rows = acted
        .lines
        .iter()
        .map(|line| {
            vec![
                line.job_code.to_string(),
                out::state(line.from, line.mode),
                state_after(line),
                because(line.cause).to_owned(),
            ]
        })
        .collect();
    let table = out::table(&header, rows);
    let values = &acted.batch.values;
    let (no, group, word) = (&values.batch_no, &values.group, action.as_str());
    let count = acted.lines.len();
    match lang {
        Lang::En => {
            let count = out::count(count, "row");
            format!("{table}\n{word} in batch {no} of {group}: {count}")
        }
        Lang::Zh => format!("{table}\n批次 {no}（作业组 {group}）{word}:{count} 行"),
    }
}

/// The list of changes for scripts.
pub(super) fn lines(acted: &Acted) -> serde_json::Value {
    json!(acted.lines.iter().map(ActionRowDetail::from_line).collect::<Vec<_>>())
}

/// Who continues the batch, when this process does not.
pub(super) fn who_goes_on(acted: &Acted, lang: Lang) -> String {
    match &acted.holder {
        Some(holder) => match lang {
            Lang::En => format!(
                "written; the process that has the batch ({}, pid {}) picks it up within a second",
                holder.host, holder.pid
            ),
            Lang::Zh => {
                format!(
                    "已写入；持有该批次的进程（{},pid {}）将在一秒内生效",
                    holder.host, holder.pid
                )
            }
        },
        None => nobody(&acted.batch, lang),
    }
}

/// The message when no process dispatches the batch, with the commands to continue.
pub(super) fn nobody(batch: &Batch, lang: Lang) -> String {
    let (no, group) = (&batch.values.batch_no, &batch.values.group);
    let how = format!("procession run --batch-no {no} --group {group} --resume");
    match lang {
        Lang::En => format!("written; no living process has the batch. Go on with: {how}"),
        Lang::Zh => format!("已写入；没有存活的进程持有该批次。继续请用：{how}"),
    }
}
