//! Renders the report of an import as text: for the terminal, and as a file next to the definition.

use crate::domain::id::TriggerCode;
use crate::domain::text::lang::Lang;
use crate::import::finish::Imported;
use crate::import::note::{Level, Note};
use crate::import::tally::{ItemOutcome, ReadItem};
use std::fmt::Write as _;

/// The result in one line: counts of definitions and notes.
pub fn summary(made: &Imported, lang: Lang) -> String {
    let defs = &made.definition;
    let (groups, jobs) = (defs.groups.len(), defs.jobs.len());
    let (edges, schedules) = (defs.dependencies.len(), defs.schedules.len());
    let others = match (defs.externals.len(), lang) {
        (0, _) => String::new(),
        (n, Lang::En) => format!(" and {n} on other groups"),
        (n, Lang::Zh) => format!("(另有 {n} 个跨作业组)"),
    };
    let notes: Vec<String> = Level::ALL
        .iter()
        .filter(|level| made.count(**level) > 0)
        .map(|level| format!("{} {}", made.count(*level), level.words(lang)))
        .collect();
    let notes = match (notes.is_empty(), lang) {
        (true, Lang::En) => "everything was carried over as it was".to_owned(),
        (true, Lang::Zh) => "全部按原样迁移".to_owned(),
        (false, Lang::En) => format!("notes: {}", notes.join(", ")),
        (false, Lang::Zh) => format!("说明:{}", notes.join(",")),
    };
    match lang {
        Lang::En => format!(
            "groups {groups}, jobs {jobs}, dependencies {edges}{others}, schedules {schedules}; {notes}"
        ),
        Lang::Zh => {
            format!("作业组 {groups},作业 {jobs},依赖 {edges}{others},调度 {schedules};{notes}")
        }
    }
}

/// A note on one line.
pub fn line(note: &Note, lang: Lang) -> String {
    let mut text = format!("{}: ", note.origin);
    if !note.about.is_empty() {
        let _ = write!(text, "{}: ", note.about);
    }
    text.push_str(note.message.pick(lang));
    let fix = note.fix.pick(lang);
    if !fix.is_empty() {
        text.push_str(lang.select("; ", ";"));
        text.push_str(fix);
    }
    text
}

/// The report as Markdown. `from` names the source.
pub fn markdown(made: &Imported, from: &str, lang: Lang) -> String {
    let title = match lang {
        Lang::En => format!("# Imported from {from}"),
        Lang::Zh => format!("# 导入报告:{from}"),
    };
    let mut text = format!("{title}\n\n{}\n", summary(made, lang));
    for level in Level::ALL {
        let notes: Vec<&Note> = made.notes.iter().filter(|n| n.level == level).collect();
        if notes.is_empty() {
            continue;
        }
        let _ = write!(text, "\n## {} ({})\n\n", capital(level.words(lang)), notes.len());
        for note in notes {
            let _ = writeln!(text, "- {}", escaped(&line(note, lang)));
        }
    }
    text.push_str(&counted(made, lang));
    text.push_str(&numbered(made, lang));
    text.push_str(&next_steps(made, lang));
    text
}

/// What to do with the definition. Paused schedules have a command each.
fn next_steps(made: &Imported, lang: Lang) -> String {
    let mut text = lang
        .select(
            "\n## Next\n\n`procession check definition.yaml`, then `procession plan definition.yaml`, then \
             `procession apply definition.yaml`. ",
            "\n## 后续步骤\n\n依次执行 `procession check definition.yaml`、`procession plan definition.yaml`、\
             `procession apply definition.yaml`。",
        )
        .to_owned();
    let codes: Vec<&TriggerCode> = made.paused().collect();
    if codes.is_empty() {
        text.push_str(lang.select(
            "Schedules fire once a `procession serve` runs: switch the old system's off first.\n",
            "`procession serve` 运行后调度即会触发:请先停用原系统的调度。\n",
        ));
        return text;
    }
    text.push_str(lang.select(
        "All schedules are created paused, and nothing fires. Switch each off in the old system, then resume it here:\n\n```sh\n",
        "所有调度创建后均为暂停状态,不会触发。请逐个在原系统停用,再在此处恢复:\n\n```sh\n",
    ));
    for command in codes.into_iter().map(resume_command) {
        let _ = writeln!(text, "{command}");
    }
    text.push_str("```\n");
    text
}

/// The command that lets a paused schedule fire.
pub fn resume_command(schedule: &TriggerCode) -> String {
    format!("procession schedule resume {schedule} --reason 'moved here'")
}

/// What was read, by outcome, with the names of all items that are not unchanged.
fn counted(made: &Imported, lang: Lang) -> String {
    let mut text = lang.select("\n## What was read\n\n", "\n## 读取情况\n\n").to_owned();
    for count in made.item_counts() {
        let _ = writeln!(text, "- {}", escaped(&count.line(lang)));
        for outcome in [ItemOutcome::Changed, ItemOutcome::LeftOut] {
            let is_of = |i: &&ReadItem| i.kind == count.kind && i.outcome == outcome;
            let list: Vec<String> = made
                .items
                .iter()
                .filter(is_of)
                .map(|item| format!("{} ({})", item.title, item.origin))
                .collect();
            if !list.is_empty() {
                let names = escaped(&list.join(lang.select(", ", "、")));
                let _ = writeln!(text, "  - {}: {names}", outcome.words(lang));
            }
        }
    }
    text
}

/// The rules by which schedules number their batches, with the schedules of each.
fn numbered(made: &Imported, lang: Lang) -> String {
    let all = made.batch_numbers();
    if all.is_empty() {
        return String::new();
    }
    let mut text = lang.select("\n## Batch numbers\n\n", "\n## 批次号\n\n").to_owned();
    for one in all {
        let codes = one.schedules.join(lang.select(", ", "、"));
        let count = one.schedules.len();
        let colon = lang.select(": ", ":");
        let _ = writeln!(text, "- `{}` ({count}){colon}{}", one.batch_no, escaped(&codes));
    }
    text
}

fn capital(word: &str) -> String {
    let mut chars = word.chars();
    chars.next().map_or_else(String::new, |c| c.to_uppercase().collect::<String>() + chars.as_str())
}

/// Escapes text for Markdown, on one line.
fn escaped(text: &str) -> String {
    let mut said = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\\' | '`' | '*' | '_' | '[' | ']' | '<' | '>' | '|' | '#' => {
                said.push('\\');
                said.push(c);
            }
            '\n' | '\r' | '\t' => said.push(' '),
            c if c.is_control() => said.push('\u{FFFD}'),
            c => said.push(c),
        }
    }
    said
}
