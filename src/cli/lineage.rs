//! Output of lineage: conflicts between jobs through the tables they use.

use crate::app::lineage::{DefinitionLineage, GroupLineage};
use crate::cli::{VerbResult, out};
use crate::domain::text::lang::Lang;
use crate::lineage::{
    ConflictKind, ConflictSide, JobConflict, LineageCoverage, TextPlace, UnknownJob,
};
use anyhow::{Result, anyhow};

/// Maximum number of listed dependencies without data; the others are counted.
const ORDERS_SHOWN: usize = 30;

/// Which conflicts make a check fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Strictness {
    /// Certain conflicts.
    Certain,
    /// Also possible ones.
    Possible,
}

/// Prints the conflicts of all groups, what is unknown, and the coverage.
pub(super) fn print(found: &DefinitionLineage, lang: Lang) {
    for (source, why) in &found.unread_sources {
        out::eprint_line(&format!("{}: {source}: {why}", lang.select("not read", "未读取")));
    }
    for group in &found.groups {
        print_group(group, lang);
    }
}

fn print_group(group: &GroupLineage, lang: Lang) {
    let report = &group.report;
    for conflict in &report.conflicts {
        for line in describe_conflict(conflict, lang) {
            out::print_line(&line);
        }
    }
    for unknown in &report.unknown {
        for line in describe_unknown(unknown, lang) {
            out::print_line(&line);
        }
    }
    for one in report.without_data.iter().take(ORDERS_SHOWN) {
        out::print_line(&format!(
            "GATE      {} → {}: {}",
            one.depends_on,
            one.job,
            lang.select("an order without shared data", "仅为顺序依赖，无共享数据")
        ));
    }
    if let Some(rest) = report.without_data.len().checked_sub(ORDERS_SHOWN).filter(|n| *n > 0) {
        out::print_line(&match lang {
            Lang::En => format!("GATE      … and {rest} more"),
            Lang::Zh => format!("GATE      ……另有 {rest} 条"),
        });
    }
    out::print_line(&describe_coverage(&group.group.to_string(), &report.coverage, lang));
}

fn describe_conflict(conflict: &JobConflict, lang: Lang) -> Vec<String> {
    let (first, second) = (&conflict.first, &conflict.second);
    let (word, fix) = match conflict.kind {
        ConflictKind::Race => ("RACE", fix_order(first, second, lang)),
        ConflictKind::StagingTable => ("RACE", fix_staging(conflict, lang)),
        ConflictKind::Possible => ("POSSIBLE", fix_order(first, second, lang)),
    };
    let why = match (conflict.kind, lang) {
        (ConflictKind::Race, Lang::En) => "no path orders them, and both touch",
        (ConflictKind::Race, Lang::Zh) => "两者之间没有依赖路径，却都访问",
        (ConflictKind::StagingTable, Lang::En) => "each empties and fills the staging table",
        (ConflictKind::StagingTable, Lang::Zh) => "各自清空并写入同一中间表",
        (ConflictKind::Possible, Lang::En) => "SQL made at run time seems to touch",
        (ConflictKind::Possible, Lang::Zh) => "动态 SQL 似乎访问",
    };
    let head = format!(
        "{word:<9} {} {} {}: {why} {}",
        first.job,
        lang.select("and", "与"),
        second.job,
        conflict.table
    );
    let width = first.job.as_str().len().max(second.job.as_str().len());
    let mut lines = vec![head];
    lines.extend([first, second].map(|side| describe_side(side, &conflict.table, width, lang)));
    lines.push(format!("          → {fix}"));
    lines
}

fn describe_side(side: &ConflictSide, table: &str, width: usize, lang: Lang) -> String {
    let rows = match side.rows.as_str() {
        "" => lang.select(" (all rows)", "（全部行）").to_owned(),
        rows => format!(" [{rows}]"),
    };
    format!("          {:width$}  {} {table}{rows}  {}", side.job.as_str(), side.verb, side.place)
}

fn fix_order(first: &ConflictSide, second: &ConflictSide, lang: Lang) -> String {
    let (writer, other) = (&first.job, &second.job);
    match lang {
        Lang::En => format!(
            "{other}: depends_on: [{writer}], or the other way round; if the rows never meet, say which with \
             lineage: or leave the table out with lineage: {{ ignore: [...] }}"
        ),
        Lang::Zh => format!(
            "{other}: depends_on: [{writer}],或反向依赖；如两者的行不会相交，用 lineage: 说明，或用 \
             lineage: {{ ignore: [...] }} 忽略该表"
        ),
    }
}

fn fix_staging(conflict: &JobConflict, lang: Lang) -> String {
    let lock = conflict.table.rsplit('.').next().unwrap_or(&conflict.table);
    match lang {
        Lang::En => format!("give both jobs locks: [{lock}], or each a table of its own"),
        Lang::Zh => format!("两个作业都加 locks: [{lock}],或各用自己的表"),
    }
}

fn describe_unknown(unknown: &UnknownJob, lang: Lang) -> Vec<String> {
    let mut lines = Vec::new();
    let pairs = unknown.pairs.len();
    let cannot = match (pairs, lang) {
        (0, Lang::En) => "every other job is ordered against it".to_owned(),
        (0, Lang::Zh) => "与其他作业均有先后".to_owned(),
        (n, Lang::En) => format!("{} cannot be told", out::count(n, "pair")),
        (n, Lang::Zh) => format!("{n} 对作业无法判断"),
    };
    if !unknown.dynamic.is_empty() {
        let places =
            unknown.dynamic.iter().map(TextPlace::to_string).collect::<Vec<_>>().join(", ");
        let what = lang.select("SQL is made at run time at", "运行时拼接 SQL，位于");
        lines.push(format!("POSSIBLE  {}: {what} {places}; {cannot}", unknown.job));
    }
    for part in &unknown.opaque {
        lines
            .push(format!("OPAQUE    {}: {} ({}); {cannot}", unknown.job, part.reason, part.place));
    }
    lines
}

fn describe_coverage(group: &str, coverage: &LineageCoverage, lang: Lang) -> String {
    let LineageCoverage { jobs, whole_jobs, pairs, safe_pairs, conflicting_pairs, unknown_pairs } =
        coverage;
    match lang {
        Lang::En => format!(
            "{group}: read {whole_jobs} of {jobs} jobs wholly; {safe_pairs} of {pairs} pairs that no path orders are \
             safe, {conflicting_pairs} in conflict, {unknown_pairs} cannot be told"
        ),
        Lang::Zh => format!(
            "{group}:{jobs} 个作业中完整读取 {whole_jobs} 个；{pairs} 对无先后的作业中 {safe_pairs} 对安全，\
             {conflicting_pairs} 对冲突，{unknown_pairs} 对无法判断"
        ),
    }
}

/// The result of a check with these findings. A source that could not be read does not fail it.
pub(super) fn check_result(
    found: &DefinitionLineage,
    strictness: Strictness,
    lang: Lang,
) -> Result<VerbResult> {
    let is_bad = |kind: ConflictKind| match kind {
        ConflictKind::Race | ConflictKind::StagingTable => true,
        ConflictKind::Possible => strictness == Strictness::Possible,
    };
    let dynamic = |group: &GroupLineage| {
        let meets = |one: &UnknownJob| !one.dynamic.is_empty() && !one.pairs.is_empty();
        strictness == Strictness::Possible && group.report.unknown.iter().any(meets)
    };
    let conflicts = found.groups.iter().flat_map(|group| &group.report.conflicts);
    if conflicts.into_iter().any(|one| is_bad(one.kind)) || found.groups.iter().any(dynamic) {
        return Ok(VerbResult::Differs);
    }
    match found.unread_sources.len() {
        0 => Ok(VerbResult::Well),
        away => Err(match lang {
            Lang::En => anyhow!("{} could not be read", out::count(away, "source")),
            Lang::Zh => anyhow!("{away} 个数据源无法读取"),
        }),
    }
}
