use crate::domain::schedule::cron::Cron;
use crate::domain::text::lang::Lang;

/// Expression, English, Chinese.
const TABLE: &[(&str, &str, &str)] = &[
    ("0 0 2 * * ?", "at 02:00 every day", "每天 02:00"),
    ("0 0 2 1 * ?", "at 02:00 on the 1st of the month", "每月 1 日 02:00"),
    ("0 30 18 L * ?", "at 18:30 on the last day of the month", "每月最后一天 18:30"),
    ("30 0 6 * * ?", "at 06:00:30 every day", "每天 06:00:30"),
    ("0 0 8,12,18 * * ?", "at 08:00, 12:00 and 18:00 every day", "每天 08:00、12:00、18:00"),
    ("0 0 9 ? * MON-FRI", "at 09:00 from Monday to Friday", "每周一至周五 09:00"),
    ("0 0 9 ? * MON,WED", "at 09:00 on Monday and Wednesday", "每周一、周三 09:00"),
    ("0 0 9 ? * SUN,SAT", "at 09:00 on Saturday and Sunday", "每周六、周日 09:00"),
    ("0 0 9 ? * FRI#3", "at 09:00 on the 3rd Friday of the month", "每月第 3 个周五 09:00"),
    ("0 0 9 ? * 6L", "at 09:00 on the last Friday of the month", "每月最后一个周五 09:00"),
    (
        "0 0 9 L-3 * ?",
        "at 09:00 on the day 3 days before the last of the month",
        "每月倒数第 4 天 09:00",
    ),
    (
        "0 0 9 15W * ?",
        "at 09:00 on the weekday (Monday to Friday) nearest to the 15th of the month",
        "每月最接近 15 日的平日（周一至周五） 09:00",
    ),
    (
        "0 0 9 LW * ?",
        "at 09:00 on the last weekday (Monday to Friday) of the month",
        "每月最后一个平日（周一至周五） 09:00",
    ),
    ("0 0 9 1,15 * ?", "at 09:00 on the 1st and 15th of the month", "每月 1 日、15 日 09:00"),
    ("0 0 9 1-5 * ?", "at 09:00 on the 1st to 5th of the month", "每月 1 日至 5 日 09:00"),
    (
        "0 0 2 1 1,4,7,10 ?",
        "at 02:00 on the 1st of January, April, July and October",
        "每年 1 月、4 月、7 月、10 月的 1 日 02:00",
    ),
    ("0 0 2 1 1 ?", "at 02:00 on the 1st of January", "每年 1 月的 1 日 02:00"),
    ("0 0 2 ? 6-8 *", "at 02:00 every day in June to August", "每年 6 月至 8 月每天 02:00"),
    (
        "0 0 2 1 1 ? 2026",
        "at 02:00 on the 1st of January in 2026",
        "2026 年 每年 1 月的 1 日 02:00",
    ),
    ("0 0/15 * * * ?", "every 15 minutes", "每 15 分钟"),
    ("0 */15 * * * ?", "every 15 minutes", "每 15 分钟"),
    ("0 0,15,30,45 * * * ?", "every 15 minutes", "每 15 分钟"),
    ("0 * * * * ?", "every minute", "每分钟"),
    ("0 0 * * * ?", "every hour, on the hour", "每小时整点"),
    ("0 5 * * * ?", "every hour at minute 5", "每小时第 5 分"),
    ("0 0/5 8-18 * * ?", "every 5 minutes from 08:00 to 18:55", "8 点至 18 点每 5 分钟"),
    ("0 0 8-18 * * ?", "every hour from 08:00 to 18:00", "8 点至 18 点每小时整点"),
    ("0 0 0/2 * * ?", "every 2 hours from 00:00 on", "0 点起每 2 小时整点"),
    ("0 0/10 22-2 * * ?", "every 10 minutes from 22:00 to 02:50", "22 点至 2 点每 10 分钟"),
    ("* * * * * ?", "every second", "每秒"),
    ("0/10 * * * * ?", "every 10 seconds", "每 10 秒"),
    (
        "0/10 0/5 8-9 * * ?",
        "every 10 seconds, every 5 minutes of the hours 08 and 09",
        "8 点、9 点每 5 分钟的每 10 秒",
    ),
];

#[test]
fn expressions_are_said_in_both_languages() {
    let mut said = String::new();
    for (text, en, zh) in TABLE {
        let cron = Cron::parse(text).expect(text);
        for (lang, wanted) in [(Lang::En, en), (Lang::Zh, zh)] {
            let sentence = cron.sentence(lang);
            if sentence != *wanted {
                said.push_str(&format!("{text}: {sentence}\n"));
            }
        }
    }
    assert!(said.is_empty(), "\n{said}");
}

#[test]
fn classic_cron_says_how_its_day_fields_go_together() {
    for (text, en, zh) in [
        ("0 2 * * *", "at 02:00 every day", "每天 02:00"),
        (
            "0 2 1 * MON",
            "at 02:00 on the 1st of the month and on Monday",
            "每月 1 日以及每周一 02:00",
        ),
        ("0 2 * * 1-5", "at 02:00 from Monday to Friday", "每周一至周五 02:00"),
        (
            "0 2 */2 * MON",
            "at 02:00 on every 2nd day from the 1st on of the month where it is Monday",
            "每月 1 日起每 2 天且为周一 02:00",
        ),
    ] {
        let cron = Cron::parse(text).expect(text);
        assert_eq!((cron.sentence(Lang::En).as_str(), cron.sentence(Lang::Zh).as_str()), (en, zh));
    }
}
