//! Output of retention, as tables and as JSON.

use crate::cli::out;
use crate::domain::text::lang::Lang;
use crate::domain::time::Millis;
use crate::engine::retention::{
    AgedGoes, ByTable, DAY_MS, EndedBadly, GroupRetentionRule, GroupSurvey, RetentionOptions,
    RetentionSurvey,
};

/// `1,234,567`.
fn digits(n: u64) -> String {
    let plain = n.to_string();
    let mut grouped = String::new();
    for (at, digit) in plain.chars().enumerate() {
        if at > 0 && (plain.len() - at).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// `1,234 rows`.
pub(super) fn row_count(n: u64, lang: Lang) -> String {
    match (lang, n) {
        (Lang::En, 1) => "1 row".to_owned(),
        (Lang::En, n) => format!("{} rows", digits(n)),
        (Lang::Zh, n) => format!("{} 行", digits(n)),
    }
}

pub(super) fn disabled_notice(lang: Lang) -> &'static str {
    lang.select(
        "nothing is ever to go: all ages in [retention] are 0. Set batches_days in procession.toml, and \
         look at: procession retention preview",
        "未启用：[retention] 中的期限均为 0。请在 procession.toml 中设置 batches_days，\
         再运行 procession retention preview 查看",
    )
}

pub(super) fn so_far(done: u64, of: u64, lang: Lang) -> String {
    match lang {
        Lang::En => format!("{} of {} rows are gone", digits(done), digits(of)),
        Lang::Zh => format!("已删除 {}/{} 行", digits(done), digits(of)),
    }
}

pub(super) fn removed(by: &ByTable, lang: Lang) -> String {
    let total: u64 = by.values().sum();
    if total == 0 {
        return lang.select("Nothing to remove", "没有可删除的行").to_owned();
    }
    let each: Vec<String> = by.iter().map(|(table, n)| format!("{} {table}", digits(*n))).collect();
    match lang {
        Lang::En => format!("Removed {}: {}", row_count(total, lang), each.join(", ")),
        Lang::Zh => format!("已删除 {}：{}", row_count(total, lang), each.join("，")),
    }
}

fn format_day(at: Option<Millis>) -> String {
    at.map_or_else(|| "-".to_owned(), |at| out::local_time(at)[..10].to_owned())
}

/// The rule of a group in one line.
fn rule_words(rule: GroupRetentionRule, lang: Lang) -> String {
    let days = |ms: Option<i64>| ms.map(|ms| ms / DAY_MS);
    let mut words = vec![match (days(rule.batches_ms), lang) {
        (None, _) => lang.select("no batch goes", "不删除批次").to_owned(),
        (Some(days), Lang::En) => format!("batches that ended over {days} days ago"),
        (Some(days), Lang::Zh) => format!("结束超过 {days} 天的批次"),
    }];
    if rule.batches_ms.is_some() {
        words.push(match lang {
            Lang::En => format!("but the newest {} that ended well", rule.keep),
            Lang::Zh => format!("保留最近成功的 {} 个", rule.keep),
        });
    }
    words.push(
        match rule.badly {
            EndedBadly::Stay => lang.select("all that failed stay", "保留所有失败的"),
            EndedBadly::Go => lang.select("also those that failed", "包括失败的"),
        }
        .to_owned(),
    );
    if let Some(days) = days(rule.lines_ms) {
        words.push(match lang {
            Lang::En => format!("lines after {days} days"),
            Lang::Zh => format!("日志行保留 {days} 天"),
        });
    }
    words.join(lang.select(", ", "，"))
}

pub(super) fn print(
    options: &RetentionOptions,
    survey: &RetentionSurvey,
    last: Option<&str>,
    lang: Lang,
) {
    if !options.is_on() {
        out::print_line(disabled_notice(lang));
    }
    print_groups(survey, lang);
    print_kept(survey, lang);
    print_totals(survey, lang);
    print_rules(options, survey, lang);
    if let Some(last) = last {
        out::print_line(&format!("{}{last}", lang.select("Last pass: ", "上次清理：")));
    }
}

fn print_groups(survey: &RetentionSurvey, lang: Lang) {
    let header = match lang {
        Lang::En => ["GROUP", "BATCHES GO", "ENDED FROM", "TO", "ROWS", "LINES GO EARLIER"],
        Lang::Zh => ["作业组", "删除批次", "最早结束", "最晚结束", "行数", "提前删除的日志行"],
    };
    let line = |g: &GroupSurvey| {
        let n: u64 = g.goes.rows.values().sum();
        let lines: u64 = g.lines.rows.values().sum();
        vec![
            g.group.to_string(),
            digits(g.goes.batches),
            format_day(g.goes.oldest),
            format_day(g.goes.newest),
            digits(n),
            digits(lines),
        ]
    };
    out::print_line(&out::table(&header, survey.groups.iter().map(line).collect()));
}

fn print_kept(survey: &RetentionSurvey, lang: Lang) {
    let mut rows = Vec::new();
    for g in &survey.groups {
        for (kept, n) in &g.kept {
            rows.push(vec![g.group.to_string(), digits(*n), kept.words(lang).to_owned()]);
        }
    }
    for AgedGoes { kind, needed, .. } in survey.aged.iter().filter(|a| a.needed > 0) {
        let why = lang.select(
            "old enough, and needed: by a batch that stays, or as the newest of a schedule",
            "已到期限但仍需要：被保留的批次引用，或为调度的最新一次触发",
        );
        rows.push(vec![kind.table().to_owned(), digits(*needed), why.to_owned()]);
    }
    let header = match lang {
        Lang::En => ["OF", "STAY", "WHY"],
        Lang::Zh => ["所属", "保留", "原因"],
    };
    out::print_line(&out::table(&header, rows));
}

fn print_totals(survey: &RetentionSurvey, lang: Lang) {
    let totals = survey.totals();
    let header = match lang {
        Lang::En => ["TABLE", "ROWS GO"],
        Lang::Zh => ["表", "删除行数"],
    };
    let lines = totals.iter().map(|(table, n)| vec![(*table).to_owned(), digits(*n)]).collect();
    out::print_line(&out::table(&header, lines));
    if survey.leftover.batches > 0 {
        let n = digits(survey.leftover.batches);
        out::print_line(&match lang {
            Lang::En => {
                format!("{n} of the batches are being removed already; the next pass finishes them")
            }
            Lang::Zh => format!("其中 {n} 个批次已在删除中，下次清理会完成"),
        });
    }
}

fn print_rules(options: &RetentionOptions, survey: &RetentionSurvey, lang: Lang) {
    if options.is_on() {
        out::print_line(&format!(
            "{}{}",
            lang.select("What goes: ", "规则："),
            rule_words(options.rule, lang)
        ));
    }
    for g in survey.groups.iter().filter(|g| g.rule != options.rule) {
        out::print_line(&format!("  {}: {}", g.group, rule_words(g.rule, lang)));
    }
    if let Some(window) = options.window {
        out::print_line(&format!(
            "{}{window}",
            lang.select("When, in `serve`: ", "serve 执行时段：")
        ));
    }
}
