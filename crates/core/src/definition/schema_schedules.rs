//! The third part of `schema_table`: schedules.

use crate::definition::keys::{DELAY_MAX, RETRIES_MAX, TIMEOUT_MAX};
use crate::definition::schema_form::SchemaValue::{
    Flag, Int, List, NamedTexts, OrText, OrWord, Text, Texts, Words,
};
use crate::definition::schema_form::{SchemaKey, Section};
use crate::domain::schedule::misfire::WINDOW_MAX_SEC;

const SECONDS: i64 = 315_619_200;

/// The maps of a schedule.
pub(crate) const SCHEDULES: &[Section] = &[
    Section {
        name: "schedule",
        keys: &[
            SchemaKey("code", "Its code.", Text),
            SchemaKey("name", "Name for people.", Text),
            SchemaKey("group", "The group it opens.", Text),
            SchemaKey("type", "The type of the groups it opens, such as monthly.", Text),
            SchemaKey(
                "batch_no",
                "Number of its batches: month(-1), quarter(-1), day(0), time(%Y%m%d-%H%M); after another batch also same, prev.",
                Text,
            ),
            SchemaKey("business_date", "Accounting day of all its batches.", Text),
            SchemaKey(
                "params",
                "Parameters of its batches; may hold ${planned_at}, ${nominal_date} and the like.",
                NamedTexts,
            ),
            SchemaKey(
                "free_text",
                "Its batch numbers need not fit the type of the group; each one that does not is put on record.",
                Flag,
            ),
            SchemaKey("handler", "queueDispatcherHandler, or noopHandler for a trial.", Text),
            SchemaKey(
                "handler_param",
                "The order as XXL-JOB has it: {\"batchNo\":\"month(-1)\",\"type\":\"monthly\"}.",
                Text,
            ),
            SchemaKey("cron", "Quartz (6 or 7 fields) or classic cron (5 fields).", Text),
            SchemaKey(
                "every_sec",
                "Fixed rate: seconds from one firing to the next.",
                Int(1, SECONDS),
            ),
            SchemaKey(
                "delay_sec",
                "Fixed delay: seconds from the end of a batch to the next firing.",
                Int(1, SECONDS),
            ),
            SchemaKey("once_at", "Once, at this time of its zone: 2026-12-31T18:00.", Text),
            SchemaKey(
                "rule",
                "Days counted in a period: last working day of quarter; with at.",
                Text,
            ),
            SchemaKey("at", "Time of day of rule: 18:00.", Text),
            SchemaKey("event", "Fires when this event is sent.", Text),
            SchemaKey("manual", "Fires by hand alone.", Flag),
            SchemaKey("after", "Fires when a batch of another group ends well.", OrText("after")),
            SchemaKey(
                "time_zone",
                "IANA zone of all its times; that of its group when absent.",
                Text,
            ),
            SchemaKey("calendar", "Code of the calendar that says which days are worked.", Text),
            SchemaKey(
                "shift",
                "What becomes of a firing on a day off of the calendar; run when absent.",
                Words(&["run", "skip", "next", "previous"]),
            ),
            SchemaKey("start", "Nothing fires before: 2026-01-01 or 2026-01-01T08:00.", Text),
            SchemaKey("end", "Nothing fires from here on.", Text),
            SchemaKey("blackouts", "Times in which nothing fires.", List("blackout")),
            SchemaKey(
                "misfire",
                "Which missed times fire after all; once when absent.",
                OrWord("newest", &["skip", "once", "all"]),
            ),
            SchemaKey(
                "misfire_window_sec",
                "Seconds for which a missed time is worth firing; a day when absent.",
                Int(1, WINDOW_MAX_SEC as i64),
            ),
            SchemaKey(
                "overlap",
                "What a firing does while a batch before it still runs; queue when absent.",
                Words(&["queue", "skip", "parallel", "replace"]),
            ),
            SchemaKey(
                "retry_count",
                "Tries after the first to open its batches; 3 when absent.",
                Int(0, RETRIES_MAX as i64),
            ),
            SchemaKey(
                "retry_delay_sec",
                "Seconds between two of them; 10 when absent.",
                Int(1, DELAY_MAX as i64),
            ),
            SchemaKey(
                "timeout_sec",
                "Seconds one of them may take; 60 when absent.",
                Int(1, TIMEOUT_MAX as i64),
            ),
            SchemaKey("notify_email", "Who hears of misses and failures of its firings.", Texts),
            SchemaKey("owner", "Who answers for it; one of owners, where there are any.", Text),
            SchemaKey(
                "paused",
                "It is created paused and fires after schedule resume; one that exists already stays as it is.",
                Flag,
            ),
        ],
    },
    Section {
        name: "after",
        keys: &[
            SchemaKey("group", "That group.", Text),
            SchemaKey("on", "Which ends count; success when absent.", Words(&["success", "end"])),
        ],
    },
    Section {
        name: "blackout",
        keys: &[
            SchemaKey("from", "First moment of one that is once: 2026-12-31T18:00.", Text),
            SchemaKey("until", "First moment behind it.", Text),
            SchemaKey("daily", "Times of day of one that comes again: 22:00-06:00.", Text),
            SchemaKey(
                "days",
                "Days of the week on which it begins: mon-fri; all when absent.",
                Text,
            ),
            SchemaKey("because", "What it is for.", Text),
        ],
    },
    Section {
        name: "newest",
        keys: &[SchemaKey("newest", "How many of the newest fire.", Int(1, u32::MAX as i64))],
    },
];
