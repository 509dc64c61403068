//! A backfill as text, as a table and as JSON.

use crate::cli::out;
use crate::domain::backfill::{
    BackfillAction, BackfillFailurePolicy, BackfillSelection, BackfillStatus, BackfillStep,
    EntryStatus, ExistingBatchState,
};
use crate::domain::id::BackfillId;
use crate::domain::text::lang::Lang;
use crate::domain::time::span_words;
use crate::engine::dispatch::backfill::{BackfillSurvey, Request};
use crate::store::backfill::{Backfill, BackfillBatchRow};
use crate::view::backfill::{BackfillView, done_of};
use serde_json::{Value, json};
use std::collections::BTreeMap;

impl BackfillView {
    /// Prints the backfill.
    pub(super) fn print(&self, lang: Lang) {
        let header = match lang {
            Lang::En => ["BATCH", "STATUS", "TOOK", "JOBS DONE", "NOT WELL"],
            Lang::Zh => ["批次", "状态", "耗时", "已完成作业", "异常"],
        };
        let rows = self.batches.iter().map(|one| self.cells(one, lang)).collect();
        out::print_line(&out::table(&header, rows));
        self.print_end(lang);
    }

    fn cells(&self, one: &BackfillBatchRow, lang: Lang) -> Vec<String> {
        let BackfillBatchRow { entry, batch } = one;
        let status = match (entry.status, batch) {
            (EntryStatus::Left, Some(batch)) => {
                format!("{} ({})", lang.select("left alone", "未动"), batch.status)
            }
            (EntryStatus::Left, None) => lang.select("left alone", "未动").to_owned(),
            (EntryStatus::Open, Some(batch)) => batch.status.to_string(),
            (status, _) => status.to_string(),
        };
        let mut words: Vec<String> = entry.message.clone().into_iter().collect();
        let ours = entry.status != EntryStatus::Left;
        let (mut took, mut jobs) = ("-".to_owned(), "-".to_owned());
        if let Some(batch) = batch.as_ref().filter(|_| ours) {
            took = span_words(self.time_taken(batch));
            let (done, total) = done_of(&batch.jobs);
            jobs = match lang {
                Lang::En => format!("{done} of {total}"),
                Lang::Zh => format!("{done}/{total}"),
            };
            words.extend(batch.failed.iter().map(|(code, status)| format!("{code} {status}")));
        }
        let words = out::brief(&words.join(", "), 100);
        vec![entry.batch_no.to_string(), status, took, jobs, words]
    }

    fn print_end(&self, lang: Lang) {
        let row = &self.row;
        let (id, group, range, status) = (row.id, &row.group, &row.range, row.status);
        let took = span_words(row.end_time.unwrap_or(self.now).since(row.create_time));
        let (done, total) = self.count_final();
        let mut counts: BTreeMap<EntryStatus, usize> = BTreeMap::new();
        self.batches.iter().for_each(|b| *counts.entry(b.entry.status).or_default() += 1);
        let counts: Vec<String> = counts.iter().map(|(s, n)| format!("{n} {s}")).collect();
        let counts = counts.join(", ");
        out::print_line(&match lang {
            Lang::En => format!(
                "Backfill {id} of {group}, {range}: {status} in {took}, {done} of {total} batches ({counts})"
            ),
            Lang::Zh => format!(
                "补跑 {id}（作业组 {group}，{range}）：{status}，耗时 {took}，{done}/{total} 个批次（{counts}）"
            ),
        });
        if let Some(reason) = &row.reason {
            out::print_line(&format!("{}{reason}", lang.select("Reason: ", "原因：")));
        }
        match (row.status, &self.owner) {
            (BackfillStatus::Success, _) => {}
            (BackfillStatus::Running | BackfillStatus::Stopping, Some(owner))
                if self.is_alive() =>
            {
                let (host, pid) = (&owner.host, owner.pid);
                out::print_line(&match lang {
                    Lang::En => format!("In the hands of {host}, pid {pid}"),
                    Lang::Zh => format!("由 {host} 的进程 {pid} 执行"),
                });
            }
            _ => out::print_line(&match lang {
                Lang::En => format!("To go on: procession backfill resume {id}"),
                Lang::Zh => format!("继续：procession backfill resume {id}"),
            }),
        }
    }
}

pub(super) fn print_list(all: &[(Backfill, BTreeMap<EntryStatus, u64>)], lang: Lang) {
    let header = match lang {
        Lang::En => ["ID", "GROUP", "RANGE", "STATUS", "BATCHES", "BEGUN", "ENDED", "BY"],
        Lang::Zh => ["编号", "作业组", "范围", "状态", "批次", "开始", "结束", "操作人"],
    };
    let cells = |(row, counts): &(Backfill, BTreeMap<EntryStatus, u64>)| {
        let words: Vec<String> = counts.iter().map(|(s, n)| format!("{n} {s}")).collect();
        vec![
            row.id.to_string(),
            row.group.to_string(),
            out::brief(&row.range, 40),
            row.status.to_string(),
            words.join(", "),
            out::local_time(row.create_time),
            out::moment(row.end_time),
            row.started_by.clone(),
        ]
    };
    out::print_line(&out::table(&header, all.iter().map(cells).collect()));
}

pub(super) fn begun(id: BackfillId, lang: Lang) -> String {
    match lang {
        Lang::En => {
            format!("backfill {id} begins; to stop it: Ctrl-C, or procession backfill stop {id}")
        }
        Lang::Zh => format!("补跑 {id} 开始；停止：Ctrl-C 或 procession backfill stop {id}"),
    }
}

pub(super) fn stopping(id: BackfillId, lang: Lang) -> String {
    match lang {
        Lang::En => format!("backfill {id} is being stopped; jobs that run end first"),
        Lang::Zh => format!("正在停止补跑 {id}；等待正在运行的作业结束"),
    }
}

/// Prints the planned steps.
pub(super) fn print_steps(request: &Request, survey: &BackfillSurvey, lang: Lang) {
    let header = match lang {
        Lang::En => ["#", "BATCH", "NOW", "ACTION"],
        Lang::Zh => ["#", "批次", "现状", "动作"],
    };
    let only = request.options.only;
    let row = |(i, step): (usize, &BackfillStep)| {
        let (now, action) = (found_words(&step.found, lang), action_words(step, only, lang));
        vec![(i + 1).to_string(), step.batch_no.to_string(), now, action]
    };
    out::print_line(&out::table(&header, survey.steps.iter().enumerate().map(row).collect()));
    let (total, group) = (survey.steps.len(), &request.group);
    let runs = survey.steps.iter().filter(|step| step.action.runs_batch()).count();
    let n = request.options.parallel;
    let stops = request.options.on_failure == BackfillFailurePolicy::Stop;
    let after = match (stops, lang) {
        (true, Lang::En) => "stops after the first failure",
        (false, Lang::En) => "continues after a failure",
        (true, Lang::Zh) => "失败后不再开新批次",
        (false, Lang::Zh) => "失败后其他批次继续",
    };
    out::print_line(&match lang {
        Lang::En => {
            format!("{runs} of {total} batches of {group} are run, {n} at a time; {after}")
        }
        Lang::Zh => format!("作业组 {group}:{total} 个批次中运行 {runs} 个，同时 {n} 个；{after}"),
    });
}

fn found_words(found: &ExistingBatchState, lang: Lang) -> String {
    match found {
        ExistingBatchState::Missing => lang.select("missing", "缺失").to_owned(),
        ExistingBatchState::Ended(status) => status.to_string(),
        ExistingBatchState::Interrupted(status) => {
            format!("{status}{}", lang.select(", nobody has it", "，无进程执行"))
        }
        ExistingBatchState::Held(status, holder) => {
            format!("{status} ({}, pid {})", holder.host, holder.pid)
        }
    }
}

fn action_words(step: &BackfillStep, only: BackfillSelection, lang: Lang) -> String {
    let words = match (step.action, &step.found) {
        (BackfillAction::Open, _) => lang.select("open", "新开"),
        (BackfillAction::Resume, _) => lang.select("resume from its failures", "从失败处继续"),
        (BackfillAction::GoOn, _) => lang.select("go on where it was left", "从中断处继续"),
        (BackfillAction::Refuse, _) => {
            lang.select("refused: in the hands of a living process", "拒绝：正由其他进程执行")
        }
        (BackfillAction::Leave, ExistingBatchState::Ended(status)) if status.is_success() => {
            lang.select("left alone: done", "不动：已完成")
        }
        (BackfillAction::Leave, _) => {
            let words = lang.select("left alone: --only", "不动：--only");
            return format!("{words} {}", only.as_str());
        }
    };
    words.to_owned()
}

fn found_word(found: &ExistingBatchState) -> &'static str {
    match found {
        ExistingBatchState::Missing => "missing",
        ExistingBatchState::Ended(status)
        | ExistingBatchState::Interrupted(status)
        | ExistingBatchState::Held(status, _) => status.as_str(),
    }
}

/// The planned steps for scripts.
pub(super) fn steps_as_json(request: &Request, survey: &BackfillSurvey) -> Value {
    let step = |step: &BackfillStep| {
        let holder = match &step.found {
            ExistingBatchState::Held(_, holder) => {
                Some(json!({"host": holder.host, "pid": holder.pid}))
            }
            ExistingBatchState::Missing
            | ExistingBatchState::Ended(_)
            | ExistingBatchState::Interrupted(_) => None,
        };
        json!({
            "batch_no": step.batch_no, "now": found_word(&step.found),
            "action": step.action.as_str(), "owner": holder,
        })
    };
    json!({
        "group": request.group, "range": request.range, "parallel": request.options.parallel,
        "only": request.options.only, "on_failure": request.options.on_failure,
        "refused": survey.refused.as_ref().map(ToString::to_string),
        "batches": survey.steps.iter().map(step).collect::<Vec<_>>(),
    })
}
