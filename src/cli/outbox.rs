//! `outbox`: notifications sent, pending and failed.

use crate::app::{EmptyDatabase, whoami};
use crate::cli::notify::require_reason;
use crate::cli::{BadInput, Global, VerbResult, out};
use crate::domain::job::job_key::JobFilter;
use crate::domain::notification::outbox_schedule::MailStatus;
use crate::domain::text::lang::Lang;
use crate::engine::operate::operator_actions::operator_here;
use crate::store::outbox::{self, NotificationRow, OutboxFilter};
use crate::store::{Tx, audit};
use crate::view::outbox::{NotificationDetail, NotificationSummary};
use anyhow::{Context as _, Result};
use clap::{Args, Subcommand};
use serde_json::{Value as Json, json};

/// Verbs of `outbox`.
#[derive(Subcommand)]
pub(super) enum OutboxVerb {
    /// The latest notices: to whom, what, whether they went
    List {
        #[command(flatten)]
        which: NotificationFilterArgs,
        /// How many, the latest first
        #[arg(short = 'n', long, default_value_t = 50)]
        limit: u32,
    },
    /// One notice, as it is or was sent
    Show {
        /// Its number in `outbox list`
        id: i64,
    },
    /// Send what is due now, once; `serve` and `run` do it by themselves
    Send,
    /// Send notices again, with the Message-ID they had
    Resend {
        #[command(flatten)]
        whom: NoticeSelection,
    },
    /// Take notices off the way that wait: somebody knows already
    Ack {
        #[command(flatten)]
        whom: NoticeSelection,
        /// Why; it is what others will read
        #[arg(long)]
        reason: String,
    },
    /// Remove old notices that went, or were given up; those that wait stay
    Purge {
        #[command(flatten)]
        which: NotificationFilterArgs,
        /// Only those that are older than so many days
        #[arg(long, value_name = "DAYS")]
        older_than: u32,
        /// Why; stored in the audit log
        #[arg(long)]
        reason: String,
    },
}

/// Which notices.
#[derive(Args)]
pub(super) struct NotificationFilterArgs {
    /// In this state: pending, sent, failed, digest, acked
    #[arg(long, value_parser = status)]
    status: Option<MailStatus>,
    /// To this address, or channel:NAME
    #[arg(long, value_name = "RECIPIENT")]
    to: Option<String>,
    /// About this group
    #[arg(long)]
    group: Option<String>,
    /// About this job: CODE in every group, or group.CODE
    #[arg(long)]
    job: Option<String>,
    /// Of this event, see `notify events`
    #[arg(long)]
    event: Option<String>,
}

/// Notices by number, or all of a kind.
#[derive(Args)]
pub(super) struct NoticeSelection {
    /// Numbers in `outbox list`
    #[arg(required_unless_present = "all")]
    ids: Vec<i64>,
    /// All that the filters leave
    #[arg(long, conflicts_with = "ids")]
    all: bool,
    #[command(flatten)]
    which: NotificationFilterArgs,
}

fn status(word: &str) -> Result<MailStatus, String> {
    MailStatus::parse(word).ok_or_else(|| {
        let words: Vec<&str> = MailStatus::ALL.iter().map(|s| s.as_str()).collect();
        format!("{word:?} is no state; the states are {}", words.join(", "))
    })
}

impl NotificationFilterArgs {
    fn filter(&self) -> Result<OutboxFilter> {
        if let Some(word) = &self.event {
            super::notify::event(word).map_err(BadInput)?;
        }
        Ok(OutboxFilter {
            status: self.status,
            to: self.to.clone(),
            group: self.group.clone(),
            job: self.job.as_deref().map(JobFilter::parse).transpose()?,
            event: self.event.clone(),
        })
    }
}

/// Maximum number of notifications changed by one command.
const MOST: u32 = 100_000;

pub(super) async fn outbox(global: &Global, verb: OutboxVerb) -> Result<VerbResult> {
    match verb {
        OutboxVerb::List { which, limit } => list_notifications(global, &which, limit).await,
        OutboxVerb::Show { id } => show_notification(global, id).await,
        OutboxVerb::Send => send_notifications(global).await,
        OutboxVerb::Resend { whom } => {
            change(global, &whom, None, "outbox resend", MailStatus::Failed).await
        }
        OutboxVerb::Ack { whom, reason } => {
            require_reason(&reason)?;
            change(global, &whom, Some(reason), "outbox ack", MailStatus::Pending).await
        }
        OutboxVerb::Purge { which, older_than, reason } => {
            require_reason(&reason)?;
            purge(global, &which, older_than, &reason).await
        }
    }
}

async fn list_notifications(
    global: &Global,
    which: &NotificationFilterArgs,
    limit: u32,
) -> Result<VerbResult> {
    let (filter, lang) = (which.filter()?, global.language());
    let app = global.open_app(EmptyDatabase::Refuse).await?;
    let mut tx = app.db.begin_read().await?;
    let rows = outbox::list_notifications(&mut tx, &filter, limit).await?;
    let counts = outbox::counts(&mut tx).await?;
    drop(tx);
    if global.json {
        return out::document(&rows.iter().map(NotificationSummary::from_row).collect::<Vec<_>>())
            .map(|()| VerbResult::Well);
    }
    let header = match lang {
        Lang::En => ["ID", "WHEN", "EVENT", "TO", "STATUS", "SUBJECT", "WHY, OR WHEN NEXT"],
        Lang::Zh => ["编号", "时间", "事件", "收件人", "状态", "主题", "原因或下次时间"],
    };
    out::print_line(&out::table(&header, rows.iter().map(|row| cells(row, lang)).collect()));
    let counted: Vec<String> =
        counts.iter().map(|(status, n)| format!("{} {n}", status.as_str())).collect();
    out::eprint_line(&counted.join(" · "));
    let waits = counts.iter().any(|(status, n)| *status == MailStatus::Pending && *n > 0);
    if waits && !app.config.notify.is_on() {
        out::eprint_line(lang.select(
            "nothing is set up to carry notices: add [notify.mail] or [notify.channels] to procession.toml",
            "尚未配置任何通知渠道：请在 procession.toml 中添加 [notify.mail] 或 [notify.channels]",
        ));
    }
    app.close().await;
    Ok(VerbResult::Well)
}

fn cells(row: &NotificationRow, lang: Lang) -> Vec<String> {
    let waits = match (row.told.as_str(), row.next_at) {
        (_, Some(at)) => Some(out::local_time(at)),
        ("batch", None) => Some(lang.select("the end of its batch", "批次结束时").to_owned()),
        ("day", None) => Some(lang.select("the day's digest", "每日汇总").to_owned()),
        (_, None) => None,
    };
    let waits = waits.filter(|_| row.status == MailStatus::Pending);
    let digest = row.digest.map(|id| match lang {
        Lang::En => format!("in {id}"),
        Lang::Zh => format!("并入 {id}"),
    });
    let why: Vec<String> = [waits, digest, row.reason.clone()].into_iter().flatten().collect();
    vec![
        row.id.to_string(),
        out::local_time(row.created),
        row.event.clone(),
        row.recipient.clone(),
        row.status.as_str().to_owned(),
        out::brief(row.subject.trim_start_matches("[Procession] "), 60),
        out::brief(&why.join("; "), 60),
    ]
}

async fn show_notification(global: &Global, id: i64) -> Result<VerbResult> {
    let app = global.open_app(EmptyDatabase::Refuse).await?;
    let mut tx = app.db.begin_read().await?;
    let row = outbox::find_notification(&mut tx, id).await?;
    drop(tx);
    let Some(row) = row else { return Err(no_such(id).into()) };
    if global.json {
        return out::document(&NotificationDetail::from_row(&row)).map(|()| VerbResult::Well);
    }
    let lang = global.language();
    let head = |en: &str, zh: &str, value: Option<String>| {
        if let Some(value) = value {
            out::print_line(&format!("{}: {value}", lang.select(en, zh)));
        }
    };
    head("To", "收件人", Some(row.recipient.clone()));
    head("Status", "状态", Some(row.status.as_str().to_owned()));
    head("Event", "事件", Some(row.event.clone()));
    head("Written", "生成时间", Some(out::local_time(row.created)));
    head("Sent", "发送时间", row.sent.map(out::local_time));
    head("Next", "下次时间", row.next_at.map(out::local_time));
    head("Failed tries", "失败次数", (row.failed > 0).then(|| row.failed.to_string()));
    head("Reason", "原因", row.reason.clone());
    head("Digest", "汇总", row.digest.map(|id| id.to_string()));
    head("Subject", "主题", Some(row.subject.clone()));
    out::print_line(&format!("\n{}", row.body));
    app.close().await;
    Ok(VerbResult::Well)
}

fn no_such(id: i64) -> BadInput {
    BadInput(format!("there is no notice {id}; procession outbox list shows the latest"))
}

async fn send_notifications(global: &Global) -> Result<VerbResult> {
    let app = global.open_app(EmptyDatabase::Refuse).await?;
    if !app.config.notify.is_on() {
        let message = "nothing is set up to carry notices; add [notify.mail] or [notify.channels] to \
                    procession.toml";
        return Err(BadInput(message.to_owned()).into());
    }
    let sent = app.sender_by_hand()?.flush().await?;
    if global.json {
        out::print_json(&json!({"sent": sent.sent, "again": sent.again, "failed": sent.failed}))?;
    } else {
        let (ok, again, failed) = (sent.sent, sent.again, sent.failed);
        out::print_line(&match global.language() {
            Lang::En => format!("{ok} sent, {again} tried again later, {failed} given up"),
            Lang::Zh => format!("已发送 {ok}，稍后重试 {again}，放弃 {failed}"),
        });
    }
    app.close().await;
    Ok(VerbResult::Well)
}

/// Resends or acknowledges, with an audit record.
async fn change(
    global: &Global,
    whom: &NoticeSelection,
    reason: Option<String>,
    action: &str,
    usual: MailStatus,
) -> Result<VerbResult> {
    let app = global.open_app(EmptyDatabase::Refuse).await?;
    let now = app.clock.now();
    let who = operator_here(&whoami());
    let mut tx = app.db.begin().await?;
    let ids = chosen(&mut tx, whom, usual).await?;
    let done = match &reason {
        None => outbox::resend(&mut tx, &ids, now).await?,
        Some(reason) => {
            let message = format!("acknowledged by {}: {reason}", who.actor);
            outbox::acknowledge(&mut tx, &ids, &message, now).await?
        }
    };
    record(&mut tx, &who, action, reason, json!({"notices": ids, "changed": done}), now).await?;
    tx.commit().await.with_context(|| action.to_owned())?;
    let left = u64::try_from(ids.len()).unwrap_or(u64::MAX).saturating_sub(done);
    if global.json {
        out::print_json(&json!({"changed": done, "left": left}))?;
    } else {
        out::print_line(&match global.language() {
            Lang::En => format!("{done} changed, {left} left as they are"),
            Lang::Zh => format!("已变更 {done}，未变更 {left}"),
        });
    }
    app.close().await;
    Ok(VerbResult::Well)
}

async fn record(
    tx: &mut Tx,
    who: &audit::Operator,
    action: &str,
    reason: Option<String>,
    detail: Json,
    now: crate::domain::time::Millis,
) -> Result<()> {
    let entry = audit::AuditEntry {
        action: action.to_owned(),
        group: None,
        batch: None,
        job: None,
        detail: Some(detail),
        reason,
    };
    audit::record(tx, who, &[entry], now).await
}

/// The notifications of a command: those named, or all that match its filters, by default in the
/// state that the command is for.
async fn chosen(tx: &mut Tx, whom: &NoticeSelection, usual: MailStatus) -> Result<Vec<i64>> {
    if whom.all {
        let mut filter = whom.which.filter()?;
        filter.status = filter.status.or(Some(usual));
        let rows = outbox::list_notifications(tx, &filter, MOST).await?;
        return Ok(rows.iter().map(|row| row.id).collect());
    }
    for id in &whom.ids {
        if outbox::find_notification(tx, *id).await?.is_none() {
            return Err(no_such(*id).into());
        }
    }
    Ok(whom.ids.clone())
}

async fn purge(
    global: &Global,
    which: &NotificationFilterArgs,
    days: u32,
    reason: &str,
) -> Result<VerbResult> {
    let filter = which.filter()?;
    if filter.status == Some(MailStatus::Pending) {
        let message = "what waits is not purged; acknowledge it first: procession outbox ack";
        return Err(BadInput(message.to_owned()).into());
    }
    let app = global.open_app(EmptyDatabase::Refuse).await?;
    let now = app.clock.now();
    let before = now.plus_ms(-i64::from(days) * 86_400_000);
    let (mut removed, mut after) = (0, Some(0));
    while let Some(from) = after {
        let mut tx = app.db.begin().await?;
        let (n, next) = outbox::purge(&mut tx, &filter, before, from).await?;
        (removed, after) = (removed + n, next);
        if next.is_none() {
            let detail = json!({"older_than_days": days, "removed": removed});
            let (by, reason) = (operator_here(&whoami()), Some(reason.to_owned()));
            record(&mut tx, &by, "outbox purge", reason, detail, now).await?;
        }
        tx.commit().await.context("remove old notices")?;
    }
    if global.json {
        out::print_json(&json!({"removed": removed}))?;
    } else {
        out::print_line(&match global.language() {
            Lang::En => format!("{removed} removed"),
            Lang::Zh => format!("已删除 {removed}"),
        });
    }
    app.close().await;
    Ok(VerbResult::Well)
}
