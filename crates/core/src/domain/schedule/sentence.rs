//! Describes a schedule as a sentence for users.

use super::rule::{Counted, DayPosition};
use super::{BatchEndFilter, DayRule, FiringRule, Timing, TimingWords};
use crate::domain::batch_no::PeriodKind;
use crate::domain::calendar::Shift;
use crate::domain::text::lang::Lang;
use crate::domain::time::span_words;

impl Timing {
    /// The meaning, without a full stop: `at 18:00 on the last working day of the quarter, time of
    /// Asia/Shanghai`.
    pub fn sentence(&self, lang: Lang) -> String {
        let mut parts = vec![self.describe_timing(lang)];
        if self.schedule.is_clocked() {
            let zone = self.zone.name();
            parts.push(match lang {
                Lang::En => format!("time of {zone}"),
                Lang::Zh => format!("时区 {zone}"),
            });
        }
        parts.extend(self.on_days_off(lang));
        let words = TimingWords::from(self.clone());
        if let Some(start) = words.start {
            parts.push(format!("{} {start}", lang.select("not before", "不早于")));
        }
        if let Some(end) = words.end {
            parts.push(match lang {
                Lang::En => format!("until {end}"),
                Lang::Zh => format!("到 {end} 为止"),
            });
        }
        for blackout in &self.blackouts {
            parts.push(format!("{} {}", lang.select("not in", "除外"), blackout.time));
        }
        parts.join(lang.select(", ", "，"))
    }

    fn describe_timing(&self, lang: Lang) -> String {
        match &self.schedule {
            FiringRule::Cron(cron) => cron.sentence(lang),
            FiringRule::FixedRate { every_sec } => {
                format!("{} {}", lang.select("every", "每"), span_words(every_sec * 1_000))
            }
            FiringRule::FixedDelay { every_sec } => {
                let span = span_words(every_sec * 1_000);
                match lang {
                    Lang::En => format!("{span} after its batch before has ended"),
                    Lang::Zh => format!("上一个批次结束后 {span}"),
                }
            }
            FiringRule::Once { at } => match lang {
                Lang::En => format!("once, at {}", at.format("%H:%M:%S on %Y-%m-%d")),
                Lang::Zh => format!("一次，{}", at.format("%Y-%m-%d %H:%M:%S")),
            },
            FiringRule::Rule { rule, at } => {
                let at = super::words::time_text(*at);
                match lang {
                    Lang::En => format!("at {at} on {}", rule.sentence(lang)),
                    Lang::Zh => format!("{} {at}", rule.sentence(lang)),
                }
            }
            FiringRule::Event { name } => match lang {
                Lang::En => format!("when the event {name} is sent"),
                Lang::Zh => format!("收到事件 {name} 时"),
            },
            FiringRule::Manual => lang.select("by hand alone", "仅手动触发").to_owned(),
            FiringRule::After { group, on } => match (on, lang) {
                (BatchEndFilter::Success, Lang::En) => format!("when a batch of {group} ends well"),
                (BatchEndFilter::End, Lang::En) => {
                    format!("when a batch of {group} ends, however it ends")
                }
                (BatchEndFilter::Success, Lang::Zh) => format!("作业组 {group} 的批次成功结束时"),
                (BatchEndFilter::End, Lang::Zh) => {
                    format!("作业组 {group} 的批次结束时（无论成败）")
                }
            },
        }
    }

    fn on_days_off(&self, lang: Lang) -> Option<String> {
        let code = self.calendar.as_ref()?;
        Some(match (self.shift, lang) {
            (Shift::Run, Lang::En) => format!("working days by calendar {code}"),
            (Shift::Skip, Lang::En) => format!("not on days off of calendar {code}"),
            (Shift::Next, Lang::En) => {
                format!("on a day off of calendar {code} on the next working day instead")
            }
            (Shift::Previous, Lang::En) => {
                format!("on a day off of calendar {code} on the working day before instead")
            }
            (Shift::Run, Lang::Zh) => format!("工作日按日历 {code}"),
            (Shift::Skip, Lang::Zh) => format!("日历 {code} 的休息日不触发"),
            (Shift::Next, Lang::Zh) => format!("遇日历 {code} 的休息日顺延到下一个工作日"),
            (Shift::Previous, Lang::Zh) => format!("遇日历 {code} 的休息日提前到上一个工作日"),
        })
    }
}

impl DayRule {
    /// `the last working day of the quarter`.
    pub fn sentence(self, lang: Lang) -> String {
        let day = match (self.counted, lang) {
            (Counted::Days, Lang::En) => "day",
            (Counted::WorkingDays, Lang::En) => "working day",
            (Counted::Days, Lang::Zh) => "天",
            (Counted::WorkingDays, Lang::Zh) => "个工作日",
        };
        let within = match (self.within, lang) {
            (kind, Lang::En) => kind.as_str(),
            (PeriodKind::Day, Lang::Zh) => "日",
            (PeriodKind::Month, Lang::Zh) => "月",
            (PeriodKind::Quarter, Lang::Zh) => "季度",
            (PeriodKind::Year, Lang::Zh) => "年",
        };
        match (self.which, lang) {
            (DayPosition::BeforeLast(0), Lang::En) => format!("the last {day} of the {within}"),
            (DayPosition::BeforeLast(n), Lang::En) => {
                format!("the {day} {n} before the last of the {within}")
            }
            (which @ DayPosition::Nth(_), Lang::En) => format!("the {which} {day} of the {within}"),
            (DayPosition::BeforeLast(0), Lang::Zh) => format!("每{within}最后一{day}"),
            (DayPosition::BeforeLast(n), Lang::Zh) => format!("每{within}倒数第 {} {day}", n + 1),
            (DayPosition::Nth(n), Lang::Zh) => format!("每{within}第 {n} {day}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::domain::schedule::TimingWords;
    use crate::domain::text::lang::Lang;

    #[test]
    fn schedules_are_said_in_both_languages() {
        for (words, en, zh) in [
            (
                r#"{"rule": "last working day of quarter", "at": "18:00", "calendar": "cn"}"#,
                "at 18:00 on the last working day of the quarter, time of UTC, working days by calendar cn",
                "每季度最后一个工作日 18:00，时区 UTC，工作日按日历 cn",
            ),
            (
                r#"{"rule": "3rd working day of month", "at": "09:30", "time_zone": "Asia/Shanghai"}"#,
                "at 09:30 on the 3rd working day of the month, time of Asia/Shanghai",
                "每月第 3 个工作日 09:30，时区 Asia/Shanghai",
            ),
            (
                r#"{"rule": "last-2 day of year", "at": "09:30"}"#,
                "at 09:30 on the day 2 before the last of the year, time of UTC",
                "每年倒数第 3 天 09:30，时区 UTC",
            ),
            (
                r#"{"rule": "last day of month", "at": "09:30"}"#,
                "at 09:30 on the last day of the month, time of UTC",
                "每月最后一天 09:30，时区 UTC",
            ),
            (
                r#"{"cron": "0 0 9 ? * MON", "calendar": "cn", "shift": "next", "start": "2026-01-01"}"#,
                "at 09:00 on Monday, time of UTC, on a day off of calendar cn on the next working day \
                 instead, not before 2026-01-01T00:00:00",
                "每周一 09:00，时区 UTC，遇日历 cn 的休息日顺延到下一个工作日，不早于 2026-01-01T00:00:00",
            ),
            (r#"{"event": "closed"}"#, "when the event closed is sent", "收到事件 closed 时"),
            (r#"{"manual": true}"#, "by hand alone", "仅手动触发"),
            (r#"{"after": "gl"}"#, "when a batch of gl ends well", "作业组 gl 的批次成功结束时"),
        ] {
            let timing: TimingWords = serde_json::from_str(words).expect(words);
            let timing = timing.parse_timing(Some(chrono_tz::UTC)).expect(words);
            assert_eq!(timing.sentence(Lang::En), en);
            assert_eq!(timing.sentence(Lang::Zh), zh);
        }
    }
}
