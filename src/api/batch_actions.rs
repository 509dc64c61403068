//! What operators do to jobs of a batch. A preview shows each row that would change; the action is applied only if
//! the preview is still accurate.

use crate::api::authorize;
use crate::api::caller::{ApiRequest, CallerNeeds};
use crate::api::path_params::BatchPath;
use crate::api::problem::Problem;
use crate::api::route::Noun;
use crate::api::second_person::{GuardedChange, demands_in, fingerprint_of};
use crate::app;
use crate::domain::access::Permission;
use crate::domain::action::rerun::{RerunScope, UnknownJobs};
use crate::domain::action::{OperatorAction, Parents};
use crate::domain::batch::Batch;
use crate::domain::id::JobCode;
use crate::domain::job::Definition;
use crate::domain::job::job_key::parse_code_within;
use crate::domain::job::queue::QueueStatus;
use crate::domain::permission::four_eyes::GuardedAction;
use crate::engine::operate::operator_actions::{self, Acted, ActionRow, Command, Moved};
use crate::store;
use crate::store::audit::Operator;
use crate::view::act::ActionRowDetail;
use axum::http::Method;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub(super) fn routes() -> Noun {
    Noun::new("batches")
        .expensive()
        .change(
            "actOnJobs",
            Method::POST,
            "/groups/{group}/batches/{batch_no}/actions",
            CallerNeeds::Somewhere(Permission::View),
            "Hold, release, skip, rerun or otherwise act on jobs of a batch; previewed first, \
             then done",
            act_on_batch,
        )
        .guarded()
}

/// An action on jobs of a batch.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct BatchActionRequest {
    /// The action.
    action: ActionWord,
    /// The jobs, by code or alias.
    #[serde(default)]
    jobs: Vec<String>,
    /// Selects the jobs that match and that allow the action; in place of `jobs`.
    filter: Option<JobSelection>,
    /// Extent and details of the action.
    #[serde(default)]
    options: BatchActionOptions,
    /// The reason; stored with the jobs, their logs and the audit log. Required except for a
    /// preview.
    reason: Option<String>,
    /// The `seen` of the preview: the action is applied only if that preview is still accurate.
    seen: Option<String>,
    /// Only preview.
    #[serde(default)]
    dry_run: bool,
}

/// The actions of operators.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum ActionWord {
    /// Hold waiting jobs until they are released.
    Hold,
    /// Release held jobs.
    Release,
    /// Skip jobs: their children run.
    Skip,
    /// Ignore jobs, as if they were not in the graph (on ice).
    Ice,
    /// Take jobs off ice.
    Thaw,
    /// Dry-run jobs: mark each successful, in its turn, without running it.
    NoExec,
    /// End ice and no-exec.
    Normal,
    /// Mark jobs as successful.
    ForceSuccess,
    /// Mark jobs as failed.
    ForceFailure,
    /// Stop jobs.
    Kill,
    /// Change the priority of waiting jobs, which matters when slots are short.
    Priority,
    /// Start jobs without waiting for their time.
    StartNow,
    /// Rerun jobs.
    Rerun,
}

/// Selects jobs of a batch by their properties.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct JobSelection {
    /// In one of these states, `FAILED,TIMEOUT`.
    status: Option<String>,
    /// A text contained in the code or name.
    q: Option<String>,
    /// With this tag.
    tag: Option<String>,
}

/// Extent and details of an action.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
struct BatchActionOptions {
    /// `priority`: higher runs first; 0 is the default.
    to: Option<i32>,
    /// `start-now`: do not wait for parents either.
    ignore_dependencies: bool,
    /// `rerun`: including all jobs downstream.
    downstream: bool,
    /// `rerun`: including all jobs upstream.
    upstream: bool,
    /// `rerun`: failed jobs and everything downstream that has not succeeded; without `jobs`.
    from_failure: bool,
    /// `rerun`: with the present bodies and settings, not with those of the batch's snapshot.
    latest: bool,
    /// `rerun`: also jobs of unknown outcome, which may have taken effect already.
    rerun_unknown: bool,
}

/// The changes of an action, planned or made.
#[derive(Debug, Serialize, JsonSchema)]
struct BatchActionResult {
    /// Whether the action is done.
    written: bool,
    /// The rows that change, named or consequential.
    lines: Vec<ActionRowDetail>,
    /// Number of rows.
    count: usize,
    /// Send this as `seen` to do exactly this.
    seen: String,
    /// The permissions that the action requires.
    needs: Vec<&'static str>,
    /// Whether the batch has ended and is reopened by this: then a serving process claims it.
    reopens: bool,
    /// With `latest`: how the present definition differs from the batch's snapshot.
    definition_changes: Vec<String>,
    /// The living process that owns the batch and will apply the change.
    picked_up_by: Option<ProcessHolder>,
    /// Who continues the batch, as a sentence.
    message: String,
}

/// A server process.
#[derive(Debug, Serialize, JsonSchema)]
struct ProcessHolder {
    /// Its host.
    host: String,
    /// Its process id.
    pid: i64,
}

impl BatchActionRequest {
    fn action(&self) -> Result<OperatorAction, Problem> {
        use ActionWord as W;
        let o = &self.options;
        Ok(match self.action {
            W::Hold => OperatorAction::Hold,
            W::Release => OperatorAction::Release,
            W::Skip => OperatorAction::Skip,
            W::Ice => OperatorAction::Ice,
            W::Thaw => OperatorAction::Thaw,
            W::NoExec => OperatorAction::NoExec,
            W::Normal => OperatorAction::Normal,
            W::ForceSuccess => OperatorAction::ForceSuccess,
            W::ForceFailure => OperatorAction::ForceFailure,
            W::Kill => OperatorAction::Kill,
            W::Priority => {
                let to = o.to.ok_or_else(|| Problem::refused("options.to: give the priority"))?;
                OperatorAction::Priority(to)
            }
            W::StartNow if o.ignore_dependencies => OperatorAction::StartNow(Parents::Ignore),
            W::StartNow => OperatorAction::StartNow(Parents::Wait),
            W::Rerun => {
                let unknown = if o.rerun_unknown { UnknownJobs::Rerun } else { UnknownJobs::Leave };
                OperatorAction::Rerun(self.scope()?, unknown)
            }
        })
    }

    fn scope(&self) -> Result<RerunScope, Problem> {
        let o = &self.options;
        match (o.from_failure, o.downstream, o.upstream) {
            (true, false, false) => Ok(RerunScope::FromFailure),
            (false, true, false) => Ok(RerunScope::Downstream),
            (false, false, true) => Ok(RerunScope::Upstream),
            (false, false, false) => Ok(RerunScope::These),
            _ => Err(Problem::refused(
                "options: from_failure, downstream and upstream exclude each other; keep one",
            )),
        }
    }

    /// The selected jobs.
    async fn select_jobs(
        &self,
        ask: &ApiRequest,
        batch: &Batch,
        act: OperatorAction,
    ) -> Result<Vec<JobCode>, Problem> {
        let names_nobody = matches!(act, OperatorAction::Rerun(RerunScope::FromFailure, _));
        match (&self.filter, self.jobs.is_empty()) {
            (None, true) if names_nobody => Ok(Vec::new()),
            (None, false) if !names_nobody => {
                let code = |word: &String| parse_code_within(&batch.values.group, word);
                let codes: Result<Vec<JobCode>, _> = self.jobs.iter().map(code).collect();
                Ok(codes.map_err(anyhow::Error::from)?)
            }
            (Some(which), true) if !names_nobody => which.select_jobs(ask, batch, act).await,
            _ if names_nobody => {
                Err(Problem::refused("options.from_failure takes the jobs by itself; name none"))
            }
            _ => Err(Problem::refused("name the jobs: either jobs or filter")),
        }
    }
}

impl JobSelection {
    async fn select_jobs(
        &self,
        ask: &ApiRequest,
        batch: &Batch,
        act: OperatorAction,
    ) -> Result<Vec<JobCode>, Problem> {
        let mut tx = ask.house.app.db.begin_read().await.map_err(anyhow::Error::from)?;
        let snapshot = store::batch::snapshot(&mut tx, batch.batch_id).await?;
        let rows = store::queue::of_batch(&mut tx, batch.batch_id).await?;
        let states = match &self.status {
            None => None,
            Some(words) => Some(words.split(',').map(state).collect::<Result<Vec<_>, _>>()?),
        };
        let can: Vec<QueueStatus> = act.legal_in().collect();
        let q = self.q.as_deref().map(str::to_lowercase);
        let found: Vec<JobCode> = rows
            .iter()
            .zip(&snapshot.jobs)
            .filter(|(row, _)| can.contains(&row.status))
            .filter(|(row, _)| states.as_ref().is_none_or(|s| s.contains(&row.status)))
            .filter(|(_, job)| self.tag.as_ref().is_none_or(|tag| job.tags.contains(tag)))
            .filter(|(_, job)| {
                let has = |text: &str, q: &String| text.to_lowercase().contains(q.as_str());
                q.as_ref().is_none_or(|q| has(job.code.as_str(), q) || has(&job.name, q))
            })
            .map(|(row, _)| row.job_code.clone())
            .collect();
        if found.is_empty() {
            let sentence = format!(
                "no job of batch {} fits the filter and can be treated so ({})",
                batch.values.batch_no,
                act.as_str()
            );
            return Err(Problem::refused(sentence));
        }
        Ok(found)
    }
}

fn state(word: &str) -> Result<QueueStatus, Problem> {
    let word = word.trim();
    let is = |s: &QueueStatus| s.to_string().eq_ignore_ascii_case(word);
    QueueStatus::ALL.into_iter().find(is).ok_or_else(|| {
        let words: Vec<String> = QueueStatus::ALL.iter().map(ToString::to_string).collect();
        Problem::refused(format!("{word} is no state; the states are {}", words.join(", ")))
    })
}

async fn act_on_batch(
    ask: ApiRequest,
    at: BatchPath,
    wish: BatchActionRequest,
) -> Result<BatchActionResult, Problem> {
    let action = wish.action()?;
    let batch =
        authorize::batch(&ask, action.permission(), at.group.as_str(), at.batch_no.as_str())
            .await?;
    let jobs = wish.select_jobs(&ask, &batch, action).await?;
    if wish.options.latest && !matches!(action, OperatorAction::Rerun(..)) {
        return Err(Problem::refused("options.latest is for rerun alone"));
    }
    let app = &ask.house.app;
    let latest = if wish.options.latest { Some(app.definition().await?) } else { None };
    let by = ask.operator()?;
    let reason = match &wish.seen {
        Some(_) if !wish.dry_run => authorize::reason(wish.reason.as_deref())?,
        Some(_) | None => "",
    };
    let plan = BatchActionPlan {
        batch: &batch,
        action,
        jobs: &jobs,
        latest: latest.as_ref(),
        by: &by,
        reason,
    };
    let ahead = plan.preview(&ask).await?;
    let Some(seen) = wish.seen.as_ref().filter(|_| !wish.dry_run) else {
        return Ok(ahead.1);
    };
    if *seen != ahead.1.seen {
        return moved(ahead.1);
    }
    if action.permission() == Permission::Force {
        ask.pass_four_eyes(plan.guarded_change(&ahead.1)?)?;
    }
    let now = authorize::now(&ask).await?;
    match operator_actions::carry_out(&app.db, &plan.command(), &ahead.0.lines, now).await {
        Ok(acted) => Ok(plan.describe(&acted, ahead.1.definition_changes, ActionOutcome::Yes)),
        Err(error) if error.is::<Moved>() => moved(plan.preview(&ask).await?.1),
        Err(error) => Err(error.into()),
    }
}

/// 409: other rows would change than those of the preview, and which.
fn moved(preview: BatchActionResult) -> Result<BatchActionResult, Problem> {
    let problem = Problem::conflict(
        "moved",
        "the batch went on meanwhile, and other rows would change than those that were seen; nothing \
         was changed. Look at `preview`, and send its `seen`",
    );
    let preview = serde_json::to_value(preview).map_err(anyhow::Error::from)?;
    Err(problem.with_member("preview", preview))
}

/// A planned action.
struct BatchActionPlan<'a> {
    batch: &'a Batch,
    action: OperatorAction,
    jobs: &'a [JobCode],
    latest: Option<&'a Definition>,
    by: &'a Operator,
    reason: &'a str,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum ActionOutcome {
    Yes,
    No,
}

impl BatchActionPlan<'_> {
    fn command(&self) -> Command<'_> {
        Command {
            batch: self.batch.batch_id,
            action: self.action,
            jobs: self.jobs,
            latest: self.latest,
            by: self.by,
            reason: self.reason,
        }
    }

    async fn preview(&self, ask: &ApiRequest) -> Result<(Acted, BatchActionResult), Problem> {
        let app = &ask.house.app;
        let now = authorize::now(ask).await?;
        let ahead = operator_actions::look_ahead(&app.db, &self.command(), now).await?;
        let mut changes = Vec::new();
        if let Some(latest) = self.latest {
            let mut tx = app.db.begin_read().await.map_err(anyhow::Error::from)?;
            let own = store::batch::snapshot(&mut tx, self.batch.batch_id).await?;
            changes.extend(app::differences(&own, latest).iter().map(ToString::to_string));
        }
        let deed = self.describe(&ahead, changes, ActionOutcome::No);
        Ok((ahead, deed))
    }

    fn describe(
        &self,
        acted: &Acted,
        definition_changes: Vec<String>,
        written: ActionOutcome,
    ) -> BatchActionResult {
        let lines: Vec<ActionRowDetail> =
            acted.lines.iter().map(ActionRowDetail::from_line).collect();
        let reopens = acted.batch.status.is_final();
        let holder = acted.holder.as_ref();
        let sentence = match (holder, reopens) {
            (Some(h), _) => format!(
                "the process that has the batch ({}, pid {}) picks it up within a second",
                h.host, h.pid
            ),
            (None, true) => {
                "the batch is open again and nobody's; a process that serves takes it".to_owned()
            }
            (None, false) => {
                "no living process has the batch; a process that serves takes it".to_owned()
            }
        };
        BatchActionResult {
            written: written == ActionOutcome::Yes,
            count: lines.len(),
            seen: self.digest(&acted.lines, &definition_changes),
            needs: vec![self.action.permission().as_str()],
            reopens,
            definition_changes,
            picked_up_by: holder.map(|h| ProcessHolder { host: h.host.clone(), pid: h.pid }),
            message: sentence,
            lines,
        }
    }

    /// The action for the approval by a second person. The present owner of the batch is not part
    /// of it.
    fn guarded_change(&self, ahead: &BatchActionResult) -> Result<GuardedChange, Problem> {
        let values = &self.batch.values;
        let codes: Vec<&str> = ahead.lines.iter().map(|line| line.job_code.as_str()).collect();
        let lines = serde_json::to_value(&ahead.lines).map_err(anyhow::Error::from)?;
        Ok(GuardedChange {
            action: GuardedAction::Force,
            demands: demands_in(Permission::Force, [&values.group]),
            summary: format!(
                "{} in batch {} of group {}: {}",
                self.action.as_str(),
                values.batch_no,
                values.group,
                codes.join(", ")
            ),
            reason: self.reason.to_owned(),
            effect: serde_json::json!({
                "group": values.group, "batch_no": values.batch_no, "lines": lines,
                "definition_changes": ahead.definition_changes,
            }),
            fingerprint: fingerprint_of(&[self.action.as_str(), &ahead.seen]),
        })
    }

    /// A digest of the action and of everything that it changes.
    fn digest(&self, lines: &[ActionRow], changes: &[String]) -> String {
        let all = format!("{:?} {lines:?} {changes:?}", self.action);
        let digest = ring::digest::digest(&ring::digest::SHA256, all.as_bytes());
        URL_SAFE_NO_PAD.encode(&digest.as_ref()[..18])
    }
}
