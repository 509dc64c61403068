//! `notify`: tests of channels, previews of notifications, and snoozes.

use crate::app::outbox::NotSent;
use crate::app::{self, EmptyDatabase, whoami};
use crate::cli::{BadInput, Global, VerbResult, out};
use crate::domain::id::{GroupCode, JobCode};
use crate::domain::job::job_key::find_named;
use crate::domain::notification::event::NotificationEvent;
use crate::domain::notification::outbox_schedule::Snooze;
use crate::domain::text::did_you_mean;
use crate::domain::text::lang::Lang;
use crate::engine::clock::Clock;
use crate::engine::host_name;
use crate::engine::operate::operator_actions::operator_here;
use crate::store::{audit, outbox};
use crate::view::outbox::SnoozeDetail;
use anyhow::{Context as _, Result};
use clap::{Args, Subcommand};
use serde_json::json;
use std::path::PathBuf;

/// Verbs of `notify`.
#[derive(Subcommand)]
pub(super) enum NotifyVerb {
    /// Send a test at once to each channel of the settings and to the addresses given
    Test {
        /// Addresses, or channel:NAME; without any: every channel, and notify.operators
        recipients: Vec<String>,
    },
    /// Show what a notice of an event looks like, with the templates of the settings
    Preview {
        /// See `notify events`
        #[arg(value_parser = event)]
        event: NotificationEvent,
        /// Also write its HTML into this file
        #[arg(long, value_name = "FILE")]
        html: Option<PathBuf>,
    },
    /// Everything that people may hear of, how bad it is, and when it is told by default
    Events,
    /// Do not tell of a group, or a job of it, for a while; what happens meanwhile is told afterwards
    Snooze(SnoozeArgs),
    /// What is not told at the moment, and who wanted that
    Snoozes,
    /// End a snooze now
    Wake {
        /// Its number in `notify snoozes`
        id: i64,
    },
}

/// Arguments of `snooze`.
#[derive(Args)]
pub(super) struct SnoozeArgs {
    /// Group
    group: String,
    /// Job; all of the group without it
    #[arg(long)]
    job: Option<String>,
    /// Event, see `notify events`; all without it
    #[arg(long, value_parser = event)]
    event: Option<NotificationEvent>,
    /// For how long: 30m, 2h, 3d; 30 days at most
    #[arg(long = "for", value_name = "SPAN", value_parser = parse_span)]
    span: i64,
    /// Why; it is what others will read
    #[arg(long)]
    reason: String,
}

/// Maximum duration of a snooze, in milliseconds.
const LONGEST: i64 = 30 * 86_400_000;

/// The event with this name, or a hint.
pub(super) fn event(word: &str) -> Result<NotificationEvent, String> {
    NotificationEvent::parse(word).ok_or_else(|| {
        let words = NotificationEvent::ALL.map(NotificationEvent::as_str);
        let near = did_you_mean::nearest(word, words);
        let near = near.map_or_else(String::new, |near| format!("did you mean {near}? "));
        format!("{word:?} is no event; {near}procession notify events lists them")
    })
}

fn parse_span(text: &str) -> Result<i64, String> {
    let bad = || format!("{text:?} is no span; write 30m, 2h or 3d");
    let unit = match text.chars().last() {
        Some('m') => 60_000,
        Some('h') => 3_600_000,
        Some('d') => 86_400_000,
        Some(_) | None => return Err(bad()),
    };
    let number: i64 = text[..text.len() - 1].parse().map_err(|_| bad())?;
    let ms = number.checked_mul(unit).filter(|ms| *ms > 0).ok_or_else(bad)?;
    if ms > LONGEST {
        return Err("30d is the longest; set the event to off where it is never wanted".to_owned());
    }
    Ok(ms)
}

pub(super) async fn notify(global: &Global, verb: NotifyVerb) -> Result<VerbResult> {
    match verb {
        NotifyVerb::Test { recipients } => send_test(global, recipients).await,
        NotifyVerb::Preview { event, html } => preview(global, event, html),
        NotifyVerb::Events => events(global),
        NotifyVerb::Snooze(args) => snooze(global, &args).await,
        NotifyVerb::Snoozes => snoozes(global).await,
        NotifyVerb::Wake { id } => end_snooze(global, id).await,
    }
}

async fn send_test(global: &Global, mut recipients: Vec<String>) -> Result<VerbResult> {
    let app = global.open_app(EmptyDatabase::Accept).await?;
    let lang = global.language();
    if recipients.is_empty() {
        recipients.extend(app.config.notify.channels.keys().map(|name| format!("channel:{name}")));
        recipients.extend(app.config.notify.operators.iter().cloned());
    }
    for to in &recipients {
        crate::domain::notification::recipient::Recipient::parse(to)
            .map_err(|fault| BadInput(fault.to_string()))?;
    }
    if recipients.is_empty() {
        let message =
            "nobody to send to: give an address, or set notify.channels or notify.operators";
        return Err(BadInput(message.to_owned()).into());
    }
    let (mut all, mut failed, mut is_input) = (Vec::new(), 0, false);
    for to in &recipients {
        let sent = app.send_test(to, lang, &host_name()).await?;
        let (kind, failure) = (sent.kind.unwrap_or("-"), sent.ended.as_ref().err());
        failed += usize::from(failure.is_some());
        is_input |= failure.is_some_and(|why| !matches!(why, NotSent::Later(_)));
        if global.json {
            let message = failure.map(ToString::to_string);
            all.push(json!({"to": to, "kind": kind, "ok": message.is_none(), "reason": message,
                "message_id": sent.message_id}));
            continue;
        }
        match failure {
            None => out::print_line(&format!("{to} ({kind}): {}", lang.select("sent", "已发送"))),
            Some(why) => {
                out::print_line(&format!(
                    "{to} ({kind}): {}: {why}",
                    lang.select("NOT sent", "未发送")
                ));
            }
        }
    }
    if global.json {
        out::print_json(&json!(all))?;
    }
    app.close().await;
    match failed {
        0 => Ok(VerbResult::Well),
        _ => {
            let message = match lang {
                Lang::En => format!("{failed} of {} could not be sent", recipients.len()),
                Lang::Zh => format!("{} 个收件人中有 {failed} 个发送失败", recipients.len()),
            };
            // A failure of a server that is unavailable or busy is not a fault of the input.
            Err(if is_input { BadInput(message).into() } else { anyhow::anyhow!(message) })
        }
    }
}

fn preview(global: &Global, event: NotificationEvent, html: Option<PathBuf>) -> Result<VerbResult> {
    let config = global.config()?;
    let drawn = app::outbox::preview(&config, event, global.language(), Clock::system().now())?;
    if let Some(warning) = &drawn.warning {
        out::eprint_line(&format!("warning: {warning}"));
    }
    if let Some(path) = &html {
        let written = std::fs::write(path, &drawn.html);
        written.map_err(|error| BadInput(format!("--html {}: {error}", path.display())))?;
    }
    if global.json {
        return out::print_json(
            &json!({"subject": drawn.subject, "text": drawn.text, "html": drawn.html}),
        )
        .map(|()| VerbResult::Well);
    }
    out::print_line(&format!("{}\n\n{}", drawn.subject, drawn.text));
    if let Some(path) = html {
        out::eprint_line(&format!("{}", path.display()));
    }
    Ok(VerbResult::Well)
}

fn events(global: &Global) -> Result<VerbResult> {
    let lang = global.language();
    if global.json {
        let all = NotificationEvent::ALL.map(|event| {
            json!({"event": event.as_str(), "severity": event.severity().as_str(),
                "default": event.by_default().as_str(), "by_job_or_group": event.is_of_batch(),
                "about": lang.select(event.sentences().0, event.sentences().1)})
        });
        return out::print_json(&json!(all)).map(|()| VerbResult::Well);
    }
    let header = match lang {
        Lang::En => ["EVENT", "SEVERITY", "DEFAULT", "WHAT HAPPENED"],
        Lang::Zh => ["事件", "级别", "默认", "含义"],
    };
    let rows = NotificationEvent::ALL.map(|event| {
        let (en, zh) = event.sentences();
        let default = if event.is_of_batch() { event.by_default().as_str() } else { "now (fixed)" };
        let [word, severity] = [event.as_str(), event.severity().as_str()];
        [word, severity, default, lang.select(en, zh)].map(str::to_owned).to_vec()
    });
    out::print_line(&out::table(&header, rows.to_vec()));
    Ok(VerbResult::Well)
}

/// Refuses an empty reason.
pub(super) fn require_reason(reason: &str) -> Result<(), BadInput> {
    match reason.trim() {
        "" => Err(BadInput("--reason: say why; it is what others will read".to_owned())),
        _ => Ok(()),
    }
}

async fn snooze(global: &Global, args: &SnoozeArgs) -> Result<VerbResult> {
    let group = GroupCode::parse(&args.group)?;
    require_reason(&args.reason)?;
    if let Some(event) = args.event.filter(|event| !event.is_of_batch()) {
        let message = format!("{} is not about a group; it cannot be snoozed", event.as_str());
        return Err(BadInput(message).into());
    }
    let app = global.open_app(EmptyDatabase::Refuse).await?;
    let defs = app.definition().await?;
    if defs.groups.iter().all(|g| g.code != group) {
        return Err(BadInput(format!("there is no group {group}")).into());
    }
    let job = match &args.job {
        Some(word) => {
            let found = find_named(defs.jobs.iter().filter(|j| j.group == group), word);
            let missing = |_| BadInput(format!("group {group} has no job {word}"));
            Some(found.map_err(missing)?.code.clone())
        }
        None => None,
    };
    let now = app.clock.now();
    let who = operator_here(&whoami());
    let row = Snooze {
        id: 0,
        group: group.to_string(),
        job: job.as_ref().map(ToString::to_string),
        event: args.event,
        until: now.plus_ms(args.span),
        by: who.actor.clone(),
        reason: args.reason.clone(),
    };
    let mut tx = app.db.begin().await?;
    let id = outbox::snooze(&mut tx, &row, now).await?;
    let entry = audit::AuditEntry {
        action: "notify snooze".to_owned(),
        group: Some(group),
        batch: None,
        job,
        detail: Some(json!({"snooze": id, "event": args.event, "until": row.until.to_string()})),
        reason: Some(args.reason.clone()),
    };
    audit::record(&mut tx, &who, &[entry], now).await?;
    tx.commit().await.context("write a snooze")?;
    if global.json {
        out::print_json(&json!({"id": id, "until": row.until.to_string()}))?;
    } else {
        let until = out::local_time(row.until);
        out::print_line(&match global.language() {
            Lang::En => {
                format!("snooze {id} until {until}; earlier: procession notify wake {id}")
            }
            Lang::Zh => {
                format!("静默 {id}，至 {until}；提前结束：procession notify wake {id}")
            }
        });
    }
    app.close().await;
    Ok(VerbResult::Well)
}

async fn snoozes(global: &Global) -> Result<VerbResult> {
    let app = global.open_app(EmptyDatabase::Refuse).await?;
    let mut tx = app.db.begin_read().await?;
    let all = outbox::snoozes(&mut tx, app.clock.now()).await?;
    drop(tx);
    if global.json {
        let all: Vec<_> = all.iter().map(SnoozeDetail::from_snooze).collect();
        return out::print_json(&json!(all)).map(|()| VerbResult::Well);
    }
    let header = match global.language() {
        Lang::En => ["ID", "GROUP", "JOB", "EVENT", "UNTIL", "WHO", "WHY"],
        Lang::Zh => ["编号", "作业组", "作业", "事件", "截止", "操作人", "原因"],
    };
    let any = |text: Option<&str>| text.unwrap_or("*").to_owned();
    let rows = all.iter().map(|s| {
        vec![
            s.id.to_string(),
            s.group.clone(),
            any(s.job.as_deref()),
            any(s.event.map(NotificationEvent::as_str)),
            out::local_time(s.until),
            s.by.clone(),
            s.reason.clone(),
        ]
    });
    out::print_line(&out::table(&header, rows.collect()));
    app.close().await;
    Ok(VerbResult::Well)
}

async fn end_snooze(global: &Global, id: i64) -> Result<VerbResult> {
    let app = global.open_app(EmptyDatabase::Refuse).await?;
    let now = app.clock.now();
    let mut tx = app.db.begin().await?;
    let Some(ended) = outbox::end_snooze(&mut tx, id, now).await? else {
        let message =
            format!("there is no snooze {id} that lasts; procession notify snoozes lists them");
        return Err(BadInput(message).into());
    };
    let entry = audit::AuditEntry {
        action: "notify wake".to_owned(),
        group: GroupCode::parse(&ended.group).ok(),
        batch: None,
        job: ended.job.as_deref().and_then(|job| JobCode::parse(job).ok()),
        detail: Some(json!({"snooze": id})),
        reason: None,
    };
    audit::record(&mut tx, &operator_here(&whoami()), &[entry], now).await?;
    tx.commit().await.context("end a snooze")?;
    if global.json {
        out::print_json(&json!({"ended": id}))?;
    } else {
        out::print_line(global.language().select("told again from now on", "已恢复通知"));
    }
    app.close().await;
    Ok(VerbResult::Well)
}
