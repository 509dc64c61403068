//! The texts around the boxes of a drawing.

use crate::domain::job::queue::QueueStatus;
use crate::domain::text::lang::Lang;
use crate::domain::time::span_words;
use crate::picture::PictureScene;
use crate::picture::measure::BoxText;
use crate::picture::view::{PictureNode, PictureNodeKind, PictureSubject};
use std::collections::BTreeMap;

/// The heading.
pub(super) fn title(scene: &PictureScene<'_>) -> String {
    let view = scene.view;
    let groups: Vec<&str> = view.groups.iter().map(|g| g.label.as_str()).collect();
    let name = match groups.as_slice() {
        [one] => (*one).to_owned(),
        _ => String::new(),
    };
    let head = match view.subject {
        PictureSubject::Batch => {
            format!("{} {}", scene.wishes.lang.select("Batch", "批次"), view.title)
        }
        PictureSubject::Definition => view.title.clone(),
    };
    if name.is_empty() || name == view.title { head } else { format!("{head} · {name}") }
}

/// `24 jobs · 31 dependencies · 20 SUCCESS · 1 FAILED · critical path 3 min 05 s`
pub(super) fn summary(scene: &PictureScene<'_>) -> String {
    let (view, lang) = (scene.view, scene.wishes.lang);
    let jobs: usize = view
        .nodes
        .iter()
        .filter(|item| item.kind != PictureNodeKind::External)
        .map(|item| item.members.values().sum::<usize>().max(1))
        .sum();
    let count = |n: usize, one: &str, many: &str, zh: &str| match (lang, n) {
        (Lang::Zh, n) => format!("{n} {zh}"),
        (Lang::En, 1) => format!("1 {one}"),
        (Lang::En, n) => format!("{n} {many}"),
    };
    let mut parts = vec![
        count(jobs, "job", "jobs", "个作业"),
        count(view.edges.len(), "dependency", "dependencies", "条依赖"),
    ];
    for (status, n) in statuses(scene) {
        parts.push(format!("{n} {status}"));
    }
    let critical = view.nodes.iter().filter(|item| item.timing.critical == Some(true));
    let times = critical
        .filter_map(|item| item.state.as_ref().and_then(|s| s.time_taken()).or(item.timing.est_ms));
    let total: i64 = times.sum();
    if total > 0 {
        parts.push(format!("{} {}", lang.select("critical path", "关键路径"), span_words(total)));
    }
    parts.join(" · ")
}

/// The number of jobs per state, in the order of the states.
fn statuses(scene: &PictureScene<'_>) -> Vec<(&'static str, usize)> {
    let mut counts: BTreeMap<QueueStatus, usize> = BTreeMap::new();
    for item in scene.view.nodes.iter().filter(|item| item.kind != PictureNodeKind::External) {
        if let (true, Some(state)) = (item.members.is_empty(), &item.state) {
            *counts.entry(state.status).or_default() += 1;
        }
        for (status, n) in &item.members {
            if let Some(status) = status {
                *counts.entry(*status).or_default() += n;
            }
        }
    }
    let mut words: Vec<(&'static str, usize)> = Vec::new();
    for (status, n) in counts {
        match words.iter_mut().find(|(word, _)| *word == status.as_str()) {
            Some((_, sum)) => *sum += n,
            None => words.push((status.as_str(), n)),
        }
    }
    words
}

/// The tooltip of a box: every value in full.
pub(super) fn hover_text(item: &PictureNode) -> String {
    let mut lines: Vec<String> = BoxText::of_item(item).all_lines().map(str::to_owned).collect();
    let time = |word: &str, ms: Option<i64>| ms.map(|ms| format!("{word} {}", span_words(ms)));
    lines.extend([&item.job_type].into_iter().filter(|t| !t.is_empty()).cloned());
    lines.extend(time("expected", item.timing.est_ms));
    lines.extend(time("slack", item.timing.slack_ms));
    if !item.tags.is_empty() {
        lines.push(item.tags.join(", "));
    }
    lines.join("\n")
}
