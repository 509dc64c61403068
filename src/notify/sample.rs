//! Sample notifications for testing templates before a real one is sent.

use crate::domain::notification::event::NotificationEvent;
use crate::domain::notification::{BilingualText, Notification};

/// A notification with a value in every field.
pub(super) fn full_notification(event: NotificationEvent) -> Notification {
    let subject =
        BilingualText::new("MONTH_END 202407: LOAD failed", "MONTH_END 202407：LOAD 执行失败");
    let headline =
        BilingualText::new("Job LOAD failed at its third try.", "作业 LOAD 第 3 次执行失败。");
    let mut letter = Notification::new(event, subject, headline)
        .with_note(BilingualText::new("Nothing was written.", "未写入任何数据。"))
        .with_fact("Group", "作业组", "MONTH_END")
        .with_fact("Took", "耗时", "4 min 05 s")
        .with_step("See its log", "查看日志", "procession logs 202407 LOAD")
        .with_step("Run it again", "重新执行", "procession job rerun 202407 LOAD");
    letter.error = Some("ERROR 1213 (40001): Deadlock found\nDETAIL: <row> & \"lock\"".to_owned());
    letter.blocked = (1..=53).map(|n| format!("REPORT_{n}")).collect();
    letter.items = vec![BilingualText::new("2024-07-30 18:00", "2024-07-30 18:00"); 2];
    letter.log = vec!["12:00:01 reading".to_owned(), "12:00:09 gave up".to_owned()];
    letter.link = Some("https://procession.bank.example/b/202407/LOAD?x=1&y=2".to_owned());
    let topic = &mut letter.topic;
    (topic.group, topic.batch_no) = (Some("MONTH_END".to_owned()), Some("202407".to_owned()));
    (topic.job, topic.attempt) = (Some("LOAD".to_owned()), Some(3));
    (topic.schedule, topic.node) = (Some("nightly".to_owned()), Some("batch-1".to_owned()));
    letter
}

/// A notification without any optional field.
pub(super) fn minimal_notification(event: NotificationEvent) -> Notification {
    Notification::new(
        event,
        BilingualText::new("Subject", "主题"),
        BilingualText::new("Headline.", "概要。"),
    )
}

/// A message for tests.
#[cfg(test)]
pub(super) fn message() -> crate::notify::Message {
    let letter = full_notification(NotificationEvent::Failed);
    crate::notify::Message {
        message_id: "procession-17-ab12@host".to_owned(),
        subject: letter.subject_line(crate::domain::text::lang::Lang::Zh),
        text: letter.plain(crate::domain::text::lang::Lang::Zh),
        html: "<p>作业 LOAD</p>".to_owned(),
        lang: crate::domain::text::lang::Lang::Zh,
        letter,
        at: crate::domain::time::Millis(1_722_448_800_000),
        now: crate::domain::time::Millis(1_722_448_860_000),
    }
}
