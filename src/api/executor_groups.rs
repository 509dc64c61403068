//! Groups of executors of XXL-JOB.

use crate::api::authorize;
use crate::api::caller::{Ask, Needs};
use crate::api::group_access::requested_access;
use crate::api::page::{self, Page, Part};
use crate::api::problem::Problem;
use crate::api::route::{Nothing, Noun};
use crate::api::secret_route::AnswerWithCookies;
use crate::api::session::Done;
use crate::app::executor_groups::GroupChange;
use crate::domain::access::Permission;
use crate::domain::executor::{Addressing, ExecutorGroup, Glue};
use crate::domain::xxl::xxl_run::AppName;
use crate::store::executor_run::{self, RunSeen};
use crate::view::executor::{ExecutorGroupDocument, RunDocument, document, run};
use axum::http::Method;
use schemars::JsonSchema;
use secrecy::{ExposeSecret as _, SecretString};
use serde::{Deserialize, Serialize};

/// What executors are told to run, and may tell us, is the whole installation's affair.
const ADMINISTERS: Needs = Needs::Everywhere(Permission::Admin);

pub(super) fn noun() -> Noun {
    Noun::new("executor-groups")
        .get(
            "/executor-groups",
            ADMINISTERS,
            "Groups of executors of XXL-JOB, with who of each is there",
            list,
        )
        .get("/executor-groups/{app_name}", ADMINISTERS, "A group of executors", show)
        .get(
            "/executor-groups/{app_name}/runs",
            ADMINISTERS,
            "What the executors of a group were asked to run, newest first",
            runs,
        )
        .secret(
            (Method::POST, "/executor-groups"),
            ADMINISTERS,
            "Add a group of executors; a token that is made is shown in this answer and never again",
            add,
        )
        .secret(
            (Method::PATCH, "/executor-groups/{app_name}"),
            ADMINISTERS,
            "Change a group of executors",
            set,
        )
        .secret(
            (Method::POST, "/executor-groups/{app_name}/token"),
            ADMINISTERS,
            "Give a group of executors another token; the old one works no more",
            renew,
        )
        .secret(
            (Method::DELETE, "/executor-groups/{app_name}"),
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
    fn app(&self) -> Result<AppName, Problem> {
        let gone = |_| Problem::not_found(format!("executor group {}", self.app_name));
        AppName::parse(&self.app_name).map_err(gone)
    }
}

async fn list(ask: Ask, _: Nothing, part: Part) -> Result<Page<ExecutorGroupDocument>, Problem> {
    let limit = page::limit(part.limit)?;
    let last: Option<String> = page::read_cursor(part.cursor.as_deref())?;
    authorize::now(&ask).await?;
    // There are a few; all of them are read for each page.
    let (all, now) = ask.house.app.executor_groups().await?;
    let after = |name: &str| last.as_deref().is_none_or(|last| name > last);
    let mut all: Vec<ExecutorGroupDocument> =
        all.iter().map(|seen| document(seen, now)).filter(|group| after(&group.app_name)).collect();
    all.sort_by(|a, b| a.app_name.cmp(&b.app_name));
    Ok(Page::of(all, limit, |group| group.app_name.clone()))
}

async fn show(
    ask: Ask,
    which: ExecutorGroupPath,
    _: Nothing,
) -> Result<ExecutorGroupDocument, Problem> {
    shown(&ask, &which.app()?).await
}

async fn shown(ask: &Ask, app: &AppName) -> Result<ExecutorGroupDocument, Problem> {
    authorize::now(ask).await?;
    let (seen, now) = ask.house.app.executor_group(app).await?;
    Ok(document(&seen, now))
}

async fn runs(
    ask: Ask,
    which: ExecutorGroupPath,
    part: Part,
) -> Result<Page<RunDocument>, Problem> {
    let (app, limit) = (which.app()?, page::limit(part.limit)?);
    let before: Option<i64> = page::read_cursor(part.cursor.as_deref())?;
    // One that is not there has no runs, and says so.
    ask.house.app.executor_group(&app).await?;
    let mut tx = ask.house.app.db.read().await.map_err(anyhow::Error::from)?;
    let found: Vec<RunSeen> =
        executor_run::of_group(&mut tx, &app, before, limit.saturating_add(1)).await?;
    let Page { items, next } = Page::of(found, limit, |run| run.log_id);
    Ok(Page { items: items.iter().map(run).collect(), next })
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

async fn add(
    ask: Ask,
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
        glue: glue(wanted.allows_glue),
        app_name: app.clone(),
    };
    let chosen = wanted.token.map(SecretString::from);
    let made = ask.house.app.add_executor_group(&ask.operator()?, group, chosen).await?;
    ask.house.executors.forget_tokens();
    told(&ask, &app, made.as_ref()).await
}

/// What is to change; what is left out stays.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Changed {
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

async fn set(
    ask: Ask,
    which: ExecutorGroupPath,
    changed: Changed,
) -> Result<AnswerWithCookies<ExecutorGroupDocument>, Problem> {
    let app = which.app()?;
    let (owner_group, groups) = (changed.owner_group.as_ref(), changed.groups.as_ref());
    let change = GroupChange {
        access: requested_access(owner_group, groups, changed.every_group)?,
        title: changed.title,
        addressing: changed.addresses.map(Addressing::Fixed),
        glue: changed.allows_glue.map(glue),
    };
    ask.house.app.set_executor_group(&ask.operator()?, &app, change).await?;
    Ok(shown(&ask, &app).await?.into())
}

/// A token that is wanted.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Token {
    /// 16 to 200 visible ASCII characters; one is made when it is left out.
    token: Option<String>,
}

async fn renew(
    ask: Ask,
    which: ExecutorGroupPath,
    token: Token,
) -> Result<AnswerWithCookies<CreatedExecutorGroup>, Problem> {
    let app = which.app()?;
    let chosen = token.token.map(SecretString::from);
    let made = ask.house.app.renew_executor_token(&ask.operator()?, &app, chosen).await?;
    ask.house.executors.forget_tokens();
    told(&ask, &app, made.as_ref()).await
}

async fn told(
    ask: &Ask,
    app: &AppName,
    made: Option<&SecretString>,
) -> Result<AnswerWithCookies<CreatedExecutorGroup>, Problem> {
    let token = made.map(|made| made.expose_secret().to_owned());
    Ok(CreatedExecutorGroup { token, group: shown(ask, app).await? }.into())
}

async fn remove(
    ask: Ask,
    which: ExecutorGroupPath,
    _: Nothing,
) -> Result<AnswerWithCookies<Done>, Problem> {
    ask.house.app.remove_executor_group(&ask.operator()?, &which.app()?).await?;
    ask.house.executors.forget_tokens();
    Ok(Done { done: true }.into())
}

fn glue(allowed: bool) -> Glue {
    if allowed { Glue::Allowed } else { Glue::Refused }
}
