//! The rest of `schema_table`: schedules.

use crate::definition::keys::{DELAY_MAX, RETRIES_MAX, TIMEOUT_MAX};
use crate::definition::schema_form::Form::{
    Flag, Int, List, NamedTexts, OrText, OrWord, Text, Texts, Words,
};
use crate::definition::schema_form::{Key, Section};
use crate::domain::schedule::misfire::WINDOW_MAX_SEC;

const SECONDS: i64 = 315_619_200;

/// A schedule, and the maps inside one.
pub(crate) const SCHEDULES: &[Section] = &[
    Section {
        name: "schedule",
        keys: &[
            Key("code", "Its code.", Text),
            Key("name", "Name for people.", Text),
            Key("group", "The group it opens.", Text),
            Key("type", "The type of the groups it opens, such as monthly.", Text),
            Key(
                "batch_no",
                "Number of its batches: month(-1), quarter(-1), day(0), time(%Y%m%d-%H%M); after another batch also same, prev.",
                Text,
            ),
            Key("business_date", "Accounting day of all its batches.", Text),
            Key(
                "params",
                "Parameters of its batches; may hold ${planned_at}, ${nominal_date} and the like.",
                NamedTexts,
            ),
            Key(
                "free_text",
                "Its batch numbers need not fit the type of the group; each one that does not is put on record.",
                Flag,
            ),
            Key("handler", "queueDispatcherHandler, or noopHandler for a trial.", Text),
            Key(
                "handler_param",
                "The order as XXL-JOB has it: {\"batchNo\":\"month(-1)\",\"type\":\"monthly\"}.",
                Text,
            ),
            Key("cron", "Quartz (6 or 7 fields) or classic cron (5 fields).", Text),
            Key("every_sec", "Fixed rate: seconds from one firing to the next.", Int(1, SECONDS)),
            Key(
                "delay_sec",
                "Fixed delay: seconds from the end of a batch to the next firing.",
                Int(1, SECONDS),
            ),
            Key("once_at", "Once, at this time of its zone: 2026-12-31T18:00.", Text),
            Key("rule", "Days counted in a period: last working day of quarter; with at.", Text),
            Key("at", "Time of day of rule: 18:00.", Text),
            Key("event", "Fires when this event is sent.", Text),
            Key("manual", "Fires by hand alone.", Flag),
            Key("after", "Fires when a batch of another group ends well.", OrText("after")),
            Key("time_zone", "IANA zone of all its times; that of its group when absent.", Text),
            Key("calendar", "Code of the calendar that says which days are worked.", Text),
            Key(
                "shift",
                "What becomes of a firing on a day off of the calendar; run when absent.",
                Words(&["run", "skip", "next", "previous"]),
            ),
            Key("start", "Nothing fires before: 2026-01-01 or 2026-01-01T08:00.", Text),
            Key("end", "Nothing fires from here on.", Text),
            Key("blackouts", "Times in which nothing fires.", List("blackout")),
            Key(
                "misfire",
                "Which missed times fire after all; once when absent.",
                OrWord("newest", &["skip", "once", "all"]),
            ),
            Key(
                "misfire_window_sec",
                "Seconds for which a missed time is worth firing; a day when absent.",
                Int(1, WINDOW_MAX_SEC as i64),
            ),
            Key(
                "overlap",
                "What a firing does while a batch before it still runs; queue when absent.",
                Words(&["queue", "skip", "parallel", "replace"]),
            ),
            Key(
                "retry_count",
                "Tries after the first to open its batches; 3 when absent.",
                Int(0, RETRIES_MAX as i64),
            ),
            Key(
                "retry_delay_sec",
                "Seconds between two of them; 10 when absent.",
                Int(1, DELAY_MAX as i64),
            ),
            Key(
                "timeout_sec",
                "Seconds one of them may take; 60 when absent.",
                Int(1, TIMEOUT_MAX as i64),
            ),
            Key("notify_email", "Who hears of misses and failures of its firings.", Texts),
            Key("owner", "Who answers for it; one of owners, where there are any.", Text),
        ],
    },
    Section {
        name: "after",
        keys: &[
            Key("group", "That group.", Text),
            Key("on", "Which ends count; success when absent.", Words(&["success", "end"])),
        ],
    },
    Section {
        name: "blackout",
        keys: &[
            Key("from", "First moment of one that is once: 2026-12-31T18:00.", Text),
            Key("until", "First moment behind it.", Text),
            Key("daily", "Times of day of one that comes again: 22:00-06:00.", Text),
            Key("days", "Days of the week on which it begins: mon-fri; all when absent.", Text),
            Key("because", "What it is for.", Text),
        ],
    },
    Section {
        name: "newest",
        keys: &[Key("newest", "How many of the newest fire.", Int(1, u32::MAX as i64))],
    },
];
