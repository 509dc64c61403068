//! `event send`: fires the schedules that wait for an event.

use crate::cli::define::remark;
use crate::cli::schedule_act::{GivenArgs, ScheduleOperator};
use crate::cli::schedule_nodes::Fires;
use crate::cli::{BadInput, Global, VerbResult, out};
use crate::domain::text::lang::Lang;
use crate::domain::time::Millis;
use crate::engine::trigger::schedule_actions::{self, EventFiringResult, Fired};
use crate::store::event_key::KEY_MAX;
use anyhow::Result;
use clap::{Args, Subcommand};
use serde_json::json;

/// Verbs of `event`.
#[derive(Subcommand)]
pub(super) enum EventVerb {
    /// Fire every schedule that waits for this event
    Send(SendArgs),
}

/// Arguments of `send`.
#[derive(Args)]
pub(super) struct SendArgs {
    /// Name of the event
    name: String,
    #[command(flatten)]
    given: GivenArgs,
    /// The same event under the same key fires once, however often it is sent within a month
    #[arg(long)]
    key: Option<String>,
    /// Why; stored in the audit log
    #[arg(long, value_parser = remark)]
    reason: Option<String>,
}

pub(super) async fn event(global: &Global, verb: &EventVerb) -> Result<VerbResult> {
    let EventVerb::Send(args) = verb;
    let given = args.given.to_given()?;
    let fits = |key: &str| {
        let length = key.chars().count();
        (1..=KEY_MAX).contains(&length) && !key.contains(char::is_control)
    };
    if args.key.as_deref().is_some_and(|key| !fits(key)) {
        let message = format!("--key: write 1 to {KEY_MAX} characters on one line");
        return Err(BadInput(message).into());
    }
    let desk = ScheduleOperator::open(global).await?;
    let deed = desk.to_operation(args.reason.as_deref());
    let event =
        schedule_actions::event(&desk.app.db, &args.name, &given, args.key.as_deref(), deed)
            .await?;
    let fires = desk.fires().await?;
    desk.app.close().await;
    let fired = match &event {
        EventFiringResult::Before(at) => return before(global, args, *at),
        EventFiringResult::Fired(fired) => fired,
    };
    if global.json {
        let all: Vec<_> = fired
            .iter()
            .map(|f| {
                json!({"schedule": f.code, "planned_at": f.planned.to_string(), "left_out": f.left_out})
            })
            .collect();
        return out::print_json(
            &json!({"event": args.name, "fired": all, "served": fires == Fires::Now}),
        )
        .map(|()| VerbResult::Well);
    }
    fired.iter().for_each(|f| out::print_line(&words(f, fires, global.language())));
    Ok(VerbResult::Well)
}

fn words(fired: &Fired, fires: Fires, lang: Lang) -> String {
    let (code, at) = (&fired.code, out::local_time(fired.planned));
    let when = fires.words(lang);
    match (&fired.left_out, lang) {
        (None, Lang::En) => format!("{code}: {when}, planned at {at}"),
        (None, Lang::Zh) => format!("{code}：{when}，计划时间 {at}"),
        (Some(why), Lang::En) => format!("{code}: left out ({at}): {why}"),
        (Some(why), Lang::Zh) => format!("{code}：不触发（{at}）：{why}"),
    }
}

fn before(global: &Global, args: &SendArgs, at: Millis) -> Result<VerbResult> {
    let key = args.key.as_deref().unwrap_or_default();
    if global.json {
        let document =
            json!({"event": args.name, "key": key, "sent_before": at.to_string(), "fired": []});
        return out::print_json(&document).map(|()| VerbResult::Well);
    }
    let at = out::local_time(at);
    out::print_line(&match global.language() {
        Lang::En => {
            format!("event {} was sent under key {key} before ({at}); nothing fires", args.name)
        }
        Lang::Zh => format!("事件 {} 的键 {key} 此前已发送（{at}），不再触发", args.name),
    });
    Ok(VerbResult::Well)
}
