//! Builds the sender of the outbox: opens its channels, checks its templates.

use crate::app::App;
use crate::domain::id::NodeId;
use crate::domain::notification::event::{NotificationEvent, Severity};
use crate::domain::notification::outbox_schedule;
use crate::domain::notification::{BilingualText, Notification};
use crate::domain::text::lang::Lang;
use crate::domain::time::Millis;
use crate::engine::dispatch::dispatcher::QueueDispatcher;
use crate::engine::outbox::{self, Sender};
use crate::notify::{self, Carriers, Message, MessageTemplates, Rendered};
use anyhow::Result;

pub use crate::notify::NotSent;

/// Settings or templates with which nothing can be sent.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct NoCarrier(String);

impl App {
    /// Refuses settings with which no notification could be sent.
    pub fn can_tell(&self) -> Result<()> {
        self.notification_sender().map(drop)
    }

    /// The configured channels and templates; `None` when no channel is set up. Faults of the
    /// settings are reported here, before anything is started.
    pub(in crate::app) fn notification_sender(&self) -> Result<Option<NotificationSender>> {
        if !self.config.notify.is_on() {
            return Ok(None);
        }
        let (carriers, templates) = self.carriers()?;
        Ok(Some(NotificationSender { carriers, templates, options: self.config.outbox()? }))
    }

    /// The sender for an operator's command, in a process that does nothing else.
    pub fn sender_by_hand(&self) -> Result<Sender> {
        let (carriers, templates) = self.carriers()?;
        let id: String = uuid::Uuid::new_v4().simple().to_string().chars().take(8).collect();
        let me = NodeId(format!("outbox-send-{}-{id}", std::process::id()));
        let (db, clock) = (self.db.clone(), self.clock.clone());
        Ok(Sender::new(db, clock, me, carriers, templates, self.config.outbox()?))
    }

    fn carriers(&self) -> Result<(Carriers, MessageTemplates)> {
        let options = self.config.carriers()?;
        let templates = templates(&options)?;
        let carriers =
            Carriers::from_options(&options).map_err(|error| NoCarrier(error.to_string()))?;
        Ok((carriers, templates))
    }

    /// Sends a notification at once, without the outbox, to test a channel.
    pub async fn send_test(
        &self,
        recipient: &str,
        lang: Lang,
        host: &str,
    ) -> Result<ChannelTestResult> {
        let (carriers, templates) = self.carriers()?;
        let now = self.clock.now();
        let letter = test_letter(host, now);
        let id = uuid::Uuid::new_v4().simple().to_string();
        let id = format!("procession-test-{id}@{}", self.config.outbox()?.id_host);
        let drawn = templates.render(&letter, lang, now, &id);
        let Rendered { subject, text, html, .. } = drawn;
        let message = Message { message_id: id, subject, text, html, lang, letter, at: now, now };
        let ended = carriers.send_message(recipient, &message).await;
        Ok(ChannelTestResult {
            kind: carriers.kind_of(recipient),
            message_id: message.message_id,
            ended,
        })
    }
}

/// The configured channels and templates.
pub(in crate::app) struct NotificationSender {
    carriers: Carriers,
    templates: MessageTemplates,
    options: outbox::OutboxOptions,
}

impl App {
    /// The sender of the dispatcher's process; `None` when no channel is set up.
    pub fn sender(&self, dispatcher: &QueueDispatcher) -> Result<Option<Sender>> {
        Ok(self
            .notification_sender()?
            .map(|post| dispatcher.sender(post.carriers, post.templates, post.options)))
    }
}

/// The result of a channel test.
#[derive(Debug)]
pub struct ChannelTestResult {
    /// The channel: `email`, `dingtalk`, …; `None` if none would be used.
    pub kind: Option<&'static str>,
    pub message_id: String,
    pub ended: Result<(), NotSent>,
}

/// A notification of this event as rendered with the templates of these settings.
pub fn preview(
    config: &crate::config::Config,
    event: NotificationEvent,
    lang: Lang,
    now: Millis,
) -> Result<Rendered> {
    let templates = match config.notify.templates.as_os_str().is_empty() {
        true => MessageTemplates::built_in(),
        false => MessageTemplates::load_from(Some(&config.notify.templates))
            .map_err(|error| NoCarrier(error.to_string()))?,
    };
    let mut letter = sample(event, now);
    letter.link = outbox::page_link(&config.outbox()?.links, &letter.topic);
    Ok(templates.render(&letter, lang, now, "procession-17-preview@bank.example"))
}

fn templates(options: &notify::NotifyOptions) -> Result<MessageTemplates> {
    let opened = MessageTemplates::load_from(options.templates.as_deref());
    opened.map_err(|error| NoCarrier(error.to_string()).into())
}

fn test_letter(host: &str, now: Millis) -> Notification {
    let subject = BilingualText::new("test: notices arrive here", "测试：通知可以送达");
    let headline = BilingualText::new(
        "This is a test. Whoever reads it will hear of batches.",
        "这是一条测试通知。能看到它，就能收到批次通知。",
    );
    Notification::new(NotificationEvent::Test, subject, headline)
        .with_fact("Sent from", "发送主机", host)
        .with_fact("At", "时间", now.to_string())
        .with_step("Settings", "设置", "procession.toml, [notify]")
}

/// A sample notification of this event, for testing templates.
fn sample(event: NotificationEvent, now: Millis) -> Notification {
    let (en, zh) = event.sentences();
    let sentence = BilingualText::new(
        "This is a preview; nothing of it happened.",
        "这是预览，并未真实发生。",
    );
    if event.is_of_batch() {
        return of_a_job(event, now).with_note(sentence);
    }
    let letter = Notification::new(event, BilingualText::new(en, zh), BilingualText::new(en, zh))
        .with_note(sentence);
    match event {
        NotificationEvent::NodeLost => letter
            .with_fact("Process", "进程", "batch-1")
            .with_fact("Lease ended", "租约到期", now.to_string())
            .with_step("Look", "查看", "procession node list"),
        NotificationEvent::Digest => {
            let of = |event| of_a_job(event, now);
            outbox_schedule::digest(&[
                &of(NotificationEvent::Failed),
                &of(NotificationEvent::LateFinish),
                &of(NotificationEvent::Recovered),
            ])
        }
        // Events of schedules; a test has a notification of its own.
        NotificationEvent::Misfire
        | NotificationEvent::ScheduleEnded
        | NotificationEvent::FiringSkipped
        | NotificationEvent::FiringFailed => letter
            .with_fact("Schedule", "调度", "month_end_close")
            .with_fact("Planned", "计划时间", now.to_string())
            .with_step("Look", "查看", "procession schedule show month_end_close"),
        _ => letter.with_fact("At", "时间", now.to_string()),
    }
}

fn of_a_job(event: NotificationEvent, now: Millis) -> Notification {
    let (en, zh) = event.sentences();
    let about = BilingualText::new(en, zh);
    let subject = BilingualText::new(
        format!("GL_POST in batch 202407 (month_end): {}", about.en),
        format!("GL_POST，批次 202407(month_end):{}", about.zh),
    );
    let mut letter = Notification::new(event, subject, about)
        .with_fact("Batch", "批次", "202407 (month_end)")
        .with_fact("Attempt", "次数", "3")
        .with_fact("Ended", "结束时间", now.to_string())
        .with_fact("Duration", "耗时", "12 min 31 s")
        .with_fact("Usually", "通常耗时", "4 min 05 s (≤ 5 min 20 s)")
        .with_step("Look", "查看", "procession batch show 202407 --group month_end")
        .with_step("Log", "日志", "procession logs 202407 GL_POST --group month_end");
    if event.severity() != Severity::Good {
        letter.error = Some("ORA-00060: deadlock detected while waiting for resource".to_owned());
        letter.blocked = ["TRIAL_BALANCE", "PNL", "REPORT_PACK"].map(str::to_owned).to_vec();
        letter.log =
            vec!["posting 1,204,331 entries".to_owned(), "ORA-00060: deadlock detected".to_owned()];
    }
    letter.topic.group = Some("month_end".to_owned());
    letter.topic.batch_no = Some("202407".to_owned());
    letter.topic.job = Some("GL_POST".to_owned());
    letter.topic.attempt = Some(3);
    letter
}
