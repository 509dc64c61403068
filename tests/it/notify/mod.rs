//! Messages to real receivers: a mail server in Python, and robots that check what they are sent as their
//! manuals say.

mod mail;
mod outbox;
mod robots;
mod server;

use procession::domain::notification::event::NotificationEvent;
use procession::domain::notification::{BilingualText, Notification};
use procession::domain::text::lang::Lang;
use procession::domain::time::Millis;
use procession::notify::{Message, MessageTemplates, NotSent};

/// When a message was written, and a minute later, when it is sent.
const AT: Millis = Millis(1_722_448_800_000);
const NOW: Millis = Millis(1_722_448_860_000);

/// A message in Chinese about a job, with every sign that means something somewhere.
fn message() -> Message {
    let subject = BilingualText::new("MONTH_END 202407: LOAD failed", "月末 202407：LOAD 执行失败");
    let headline = BilingualText::new("Job LOAD failed.", "作业 LOAD 执行失败。");
    let mut letter = Notification::new(NotificationEvent::Failed, subject, headline)
        .with_fact("Took", "耗时", "4 min 05 s")
        .with_step("Log", "日志", "procession logs 202407 LOAD");
    letter.error = Some("<b>ORA-00060</b> & `[x](http://evil.example)`\n.\n..two\n月末".to_owned());
    letter.blocked = vec!["REPORT".to_owned()];
    letter.log = vec!["last line".to_owned()];
    letter.link = Some("https://procession.bank.example/b/202407".to_owned());
    letter.topic.group = Some("月末".to_owned());
    letter.topic.batch_no = Some("202407".to_owned());
    letter.topic.job = Some("LOAD".to_owned());
    of(letter)
}

fn of(letter: Notification) -> Message {
    let id = "procession-17-ab12@host";
    let mail = MessageTemplates::built_in().render(&letter, Lang::Zh, AT, id);
    assert_eq!(mail.warning, None);
    Message {
        message_id: id.to_owned(),
        subject: mail.subject,
        text: mail.text,
        html: mail.html,
        lang: Lang::Zh,
        letter,
        at: AT,
        now: NOW,
    }
}

/// The reason, and whether another try is right.
fn later(sent: Result<(), NotSent>) -> String {
    match sent {
        Err(NotSent::Later(said)) => said,
        other => panic!("should be tried later: {other:?}"),
    }
}

fn never(sent: Result<(), NotSent>) -> String {
    match sent {
        Err(NotSent::Never(said)) => said,
        other => panic!("should never be tried again: {other:?}"),
    }
}
