//! Groups of executors of XXL-JOB.

use crate::api::authorize;
use crate::api::caller::{ApiRequest, CallerNeeds};
use crate::api::group_access::requested_access;
use crate::api::page::{self, Page, PageQuery};
use crate::api::problem::Problem;
use crate::api::route::{Nothing, Noun};
use crate::api::secret_route::AnswerWithCookies;
use crate::api::session::Done;
use crate::app::executor_groups::GroupChange;
use crate::domain::access::Permission;
use crate::domain::executor::{Addressing, ExecutorGroup, GluePolicy};
use crate::domain::xxl::xxl_run::AppName;
use crate::store::executor_run::{self, RunSeen};
use crate::view::executor::{ExecutorGroupDocument, RunDocument, document, run_document};
use axum::http::Method;
use schemars::JsonSchema;
use secrecy::{ExposeSecret as _, SecretString};
use serde::{Deserialize, Serialize};

/// What executors are told to run, and may tell us, is the whole installation's affair.
const ADMINISTERS: CallerNeeds = CallerNeeds::Everywhere(Permission::Admin);

pub(super) fn routes() -> Noun {
    Noun::new("executor-groups")
        .get(
            "/executor-groups",
            ADMINISTERS,
            "Groups of executors of XXL-JOB, with who of each is there",
            list_groups,
        )
        .get("/executor-groups/{app_name}", ADMINISTERS, "A group of executors", get_group)
        .get(
            "/executor-groups/{app_name}/runs",
            ADMINISTERS,
            "What the executors of a group were asked to run, newest first",
            list_runs,
        )
        .secret(
            Method::POST, "/executor-groups",
            ADMINISTERS,
            "Add a group of executors; a token that is made is shown in this answer and never again",
            add_group,
        )
        .secret(
            Method::PATCH, "/executor-groups/{app_name}",
            ADMINISTERS,
            "Change a group of executors",
            change_group,
        )
        .secret(
            Method::POST, "/executor-groups/{app_name}/token",
            ADMINISTERS,
            "Give a group of executors another token; the old one works no more",
            renew,
        )
        .secret(
            Method::DELETE, "/executor-groups/{app_name}",
            ADMINISTERS,
            "Remove a group of executors; what they ran stays with its batches",
            remove,
        )
}

/// A group.
#[derive(Debug, Deserialize, JsonSchema)]
struct ExecutorGroupPath {
    /// Its name.
    app_name: String,
}

impl ExecutorGroupPath {
    fn app_name(&self) -> Result<AppName, Problem> {
        let gone = |_| Problem::not_found(format!("executor group {}", self.app_name));
        AppName::parse(&self.app_name).map_err(gone)
    }
}

async fn list_groups(
    ask: ApiRequest,
    _: Nothing,
    part: PageQuery,
) -> Result<Page<ExecutorGroupDocument>, Problem> {
    let limit = page::limit(part.limit)?;
    let last: Option<String> = page::read_cursor(part.cursor.as_deref())?;
    authorize::now(&ask).await?;
    // There are a few; all of them are read for each page.
    let (all, now) = ask.house.app.executor_groups().await?;
    let after = |name: &str| last.as_deref().is_none_or(|last| name > last);
    let mut all: Vec<ExecutorGroupDocument> =
        all.iter().map(|seen| document(seen, now)).filter(|group| after(&group.app_name)).collect();
    all.sort_by(|a, b| a.app_name.cmp(&b.app_name));
    Ok(Page::from_items(all, limit, |group| group.app_name.clone()))
}

async fn get_group(
    ask: ApiRequest,
    which: ExecutorGroupPath,
    _: Nothing,
) -> Result<ExecutorGroupDocument, Problem> {
    shown(&ask, &which.app_name()?).await
}

async fn shown(ask: &ApiRequest, app: &AppName) -> Result<ExecutorGroupDocument, Problem> {
    authorize::now(ask).await?;
    let (seen, now) = ask.house.app.executor_group(app).await?;
    Ok(document(&seen, now))
}

async fn list_runs(
    ask: ApiRequest,
    which: ExecutorGroupPath,
    part: PageQuery,
) -> Result<Page<RunDocument>, Problem> {
    let (app, limit) = (which.app_name()?, page::limit(part.limit)?);
    let before: Option<i64> = page::read_cursor(part.cursor.as_deref())?;
    // One that is not there has no runs, and says so.
    ask.house.app.executor_group(&app).await?;
    let mut tx = ask.house.app.db.begin_read().await.map_err(anyhow::Error::from)?;
    let found: Vec<RunSeen> =
        executor_run::of_group(&mut tx, &app, before, limit.saturating_add(1)).await?;
    let Page { items, next } = Page::from_items(found, limit, |run| run.log_id);
    Ok(Page { items: items.iter().map(run_document).collect(), next })
}

/// A group that is wanted.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct NewExecutorGroupRequest {
    /// Its name, 4 to 64 letters, digits, `-`, `_` or `.`: xxl.job.executor.appname of its executors.
    app_name: String,
    /// Its name for people; `app_name` when it is left out.
    title: Option<String>,
    /// Where its executors are; they say it themselves when it is left out.
    addresses: Option<Vec<String>>,
    /// Whether scripts may be sent to them.
    #[serde(default)]
    allows_glue: bool,
    /// The group of jobs that they belong to, which may always use them. When nothing is said of groups, every group may.
    owner_group: Option<String>,
    /// The other groups of jobs that may use them.
    groups: Option<Vec<String>>,
    /// Every group may use them, those of later too.
    #[serde(default)]
    every_group: bool,
    /// Its token, 16 to 200 visible ASCII characters; one is made when it is left out.
    token: Option<String>,
}

/// A group, and its token when one was made.
#[derive(Serialize, JsonSchema)]
struct CreatedExecutorGroup {
    /// The token: xxl.job.accessToken of its executors. It is shown here and never again; none when the
    /// request said one.
    token: Option<String>,
    /// All the rest.
    #[serde(flatten)]
    group: ExecutorGroupDocument,
}

async fn add_group(
    ask: ApiRequest,
    _: Nothing,
    wanted: NewExecutorGroupRequest,
) -> Result<AnswerWithCookies<CreatedExecutorGroup>, Problem> {
    let app = AppName::parse(&wanted.app_name).map_err(|e| Problem::refused(e.to_string()))?;
    let access =
        requested_access(wanted.owner_group.as_ref(), wanted.groups.as_ref(), wanted.every_group)?;
    let group = ExecutorGroup {
        access: access.unwrap_or_default(),
        title: wanted.title.unwrap_or_else(|| app.to_string()),
        addressing: wanted.addresses.map_or(Addressing::Registered, Addressing::Fixed),
        glue: glue_mode(wanted.allows_glue),
        app_name: app.clone(),
    };
    let chosen = wanted.token.map(SecretString::from);
    let made = ask.house.app.add_executor_group(&ask.operator()?, group, chosen).await?;
    ask.house.executors.forget_tokens();
    answer_group(&ask, &app, made.as_ref()).await
}

/// What is to change; what is left out stays.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ExecutorGroupChangeRequest {
    /// Its name for people.
    title: Option<String>,
    /// Where its executors are; with an empty list they say it themselves.
    addresses: Option<Vec<String>>,
    /// Whether scripts may be sent to them.
    allows_glue: Option<bool>,
    /// The group of jobs that they belong to, which may always use them. When nothing is said of groups, who may use them stays as it is.
    owner_group: Option<String>,
    /// The other groups of jobs that may use them.
    groups: Option<Vec<String>>,
    /// Every group may use them, those of later too.
    #[serde(default)]
    every_group: bool,
}

async fn change_group(
    ask: ApiRequest,
    which: ExecutorGroupPath,
    changed: ExecutorGroupChangeRequest,
) -> Result<AnswerWithCookies<ExecutorGroupDocument>, Problem> {
    let app = which.app_name()?;
    let (owner_group, groups) = (changed.owner_group.as_ref(), changed.groups.as_ref());
    let change = GroupChange {
        access: requested_access(owner_group, groups, changed.every_group)?,
        title: changed.title,
        addressing: changed.addresses.map(Addressing::Fixed),
        glue: changed.allows_glue.map(glue_mode),
    };
    ask.house.app.set_executor_group(&ask.operator()?, &app, change).await?;
    Ok(shown(&ask, &app).await?.into())
}

/// A token that is wanted.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct TokenRequest {
    /// 16 to 200 visible ASCII characters; one is made when it is left out.
    token: Option<String>,
}

async fn renew(
    ask: ApiRequest,
    which: ExecutorGroupPath,
    token: TokenRequest,
) -> Result<AnswerWithCookies<CreatedExecutorGroup>, Problem> {
    let app = which.app_name()?;
    let chosen = token.token.map(SecretString::from);
    let made = ask.house.app.renew_executor_token(&ask.operator()?, &app, chosen).await?;
    ask.house.executors.forget_tokens();
    answer_group(&ask, &app, made.as_ref()).await
}

async fn answer_group(
    ask: &ApiRequest,
    app: &AppName,
    made: Option<&SecretString>,
) -> Result<AnswerWithCookies<CreatedExecutorGroup>, Problem> {
    let token = made.map(|made| made.expose_secret().to_owned());
    Ok(CreatedExecutorGroup { token, group: shown(ask, app).await? }.into())
}

async fn remove(
    ask: ApiRequest,
    which: ExecutorGroupPath,
    _: Nothing,
) -> Result<AnswerWithCookies<Done>, Problem> {
    ask.house.app.remove_executor_group(&ask.operator()?, &which.app_name()?).await?;
    ask.house.executors.forget_tokens();
    Ok(Done { done: true }.into())
}

fn glue_mode(allowed: bool) -> GluePolicy {
    if allowed { GluePolicy::Allowed } else { GluePolicy::Refused }
}
