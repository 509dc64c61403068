//! Notifications: sent, pending, and snoozes.

use crate::api::authorize;
use crate::api::caller::{ApiRequest, CallerNeeds};
use crate::api::page::{self, Page};
use crate::api::path_params::IdPath;
use crate::api::problem::Problem;
use crate::api::route::{Nothing, Noun};
use crate::domain::access::Permission;
use crate::domain::id::GroupCode;
use crate::domain::job::job_key::JobFilter;
use crate::domain::notification::outbox_schedule::MailStatus;
use crate::store::outbox::{self, OutboxFilter};
use crate::view::outbox::{NotificationDetail, NotificationSummary, SnoozeDetail};
use schemars::JsonSchema;
use serde::Deserialize;

pub(super) fn routes() -> Noun {
    let needs = CallerNeeds::Somewhere(Permission::View);
    Noun::new("notifications")
        .get(
            "listNotifications",
            "/outbox",
            needs,
            "List notifications, newest first",
            list_notifications,
        )
        .get(
            "getNotification",
            "/outbox/{id}",
            needs,
            "Get a notification as it is or was sent",
            get_notification,
        )
        .get("listSnoozes", "/snoozes", needs, "List the snoozes in force", snoozes)
}

/// Filter for notifications; omitted fields do not restrict.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ListNotificationsQuery {
    /// pending, sent, failed, digest or acked.
    status: Option<String>,
    /// To this address, or channel:NAME.
    to: Option<String>,
    /// About this group.
    group: Option<String>,
    /// About this job: `CODE` in every group, or `group.CODE`.
    job: Option<String>,
    /// Of this event.
    event: Option<String>,
    /// Page size, 1 to 500; default 50.
    limit: Option<u32>,
    /// `next` of the previous page.
    cursor: Option<String>,
}

async fn list_notifications(
    ask: ApiRequest,
    _: Nothing,
    which: ListNotificationsQuery,
) -> Result<Page<NotificationSummary>, Problem> {
    let limit = page::limit(which.limit)?;
    let before: Option<i64> = page::read_cursor(which.cursor.as_deref())?;
    let status = which.status.as_deref().map(|word| {
        let refused =
            || Problem::unreadable("status: write pending, sent, failed, digest or acked");
        MailStatus::parse(word).ok_or_else(refused)
    });
    let ListNotificationsQuery { to, group, job, event, .. } = which;
    let job = job.as_deref().map(JobFilter::parse).transpose();
    let job = job.map_err(|error| Problem::unreadable(format!("job: {error}")))?;
    let filter = OutboxFilter { status: status.transpose()?, to, group, job, event };
    let told = authorize::audit_scope(&ask)?;
    let more = u32::try_from(limit + 1).unwrap_or(u32::MAX);
    let mut tx = ask.house.app.db.begin_read().await.map_err(anyhow::Error::from)?;
    let rows = outbox::list_page(&mut tx, &filter, (&told, before), more).await?;
    let Page { items, next } = Page::from_items(rows, limit, |row| row.id);
    Ok(Page { items: items.iter().map(NotificationSummary::from_row).collect(), next })
}

async fn get_notification(
    ask: ApiRequest,
    at: IdPath,
    _: Nothing,
) -> Result<NotificationDetail, Problem> {
    let missing = || Problem::not_found(format!("notice {}", at.id));
    let mut tx = ask.house.app.db.begin_read().await.map_err(anyhow::Error::from)?;
    let row = outbox::find_notification(&mut tx, at.id).await?.ok_or_else(missing)?;
    match row.letter.topic.group.as_deref().map(GroupCode::parse) {
        Some(Ok(group)) => ask.require(Permission::View, &group, format!("notice {}", at.id))?,
        // Notifications without a group concern the installation.
        Some(Err(_)) | None if ask.caller()?.grants.allow_everywhere(Permission::Admin) => {}
        Some(Err(_)) | None => return Err(missing()),
    }
    Ok(NotificationDetail::from_row(&row))
}

async fn snoozes(ask: ApiRequest, _: Nothing, _: Nothing) -> Result<Page<SnoozeDetail>, Problem> {
    let now = authorize::now(&ask).await?;
    let mut tx = ask.house.app.db.begin_read().await.map_err(anyhow::Error::from)?;
    let all = outbox::snoozes(&mut tx, now).await?;
    let sees =
        |code: &str| GroupCode::parse(code).is_ok_and(|group| ask.allows(Permission::View, &group));
    Ok(Page::whole(all.iter().filter(|s| sees(&s.group)).map(SnoozeDetail::from_snooze).collect()))
}
