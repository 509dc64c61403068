//! Carries out approved changes: the author's request passes through the router again, with the
//! author's present permissions. The action itself marks the change request as carried out, in its
//! own transaction: after a crash it is either done and marked, or neither, and another process
//! continues.

use crate::api::router;
use crate::api::state::ApiState;
use crate::domain::permission::four_eyes::{ChangeRequestId, ChangeRequestStatus};
use crate::engine::operate::change_requests::{act_on, expire_overdue};
use crate::engine::operate::operator_actions::operator_here;
use crate::store::audit;
use crate::store::change_request::{self as store, ApprovedChange, ChangeRequest};
use anyhow::{Context as _, Result};
use axum::body::{Body, to_bytes};
use axum::http::header::CONTENT_TYPE;
use axum::http::{Request, StatusCode};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt as _;

/// Interval between two polls for approved changes whose process died.
const LOOK: Duration = Duration::from_secs(5);

/// Maximum size of a stored answer, in bytes.
const ANSWER_MAX: usize = 64 * 1024 * 1024;

/// An approved change that passes through the router; no request from outside can carry one.
#[derive(Debug)]
pub(super) struct ReplayedChange {
    /// The original request.
    pub(super) request: ChangeRequest,
    /// The mark for the audit transaction.
    pub(super) change: ApprovedChange,
    /// The digest that the change must still have.
    pub(super) fingerprint: String,
}

/// Carries out approved changes until it is stopped; queries nothing while the settings require no
/// second person.
pub(super) async fn attend(house: Arc<ApiState>, stop: CancellationToken) {
    while house.four_eyes.is_on() {
        tokio::select! {
            () = tokio::time::sleep(LOOK) => {}
            () = stop.cancelled() => return,
        }
        if let Err(error) = house.carry_out_approved().await {
            tracing::warn!(error = format!("{error:#}"), "could not carry out approved changes");
        }
    }
}

impl ApiState {
    /// Carries out approved changes that no living process carries out, and expires undecided ones.
    /// Called every few seconds while the listener is open and the settings require second persons.
    pub async fn carry_out_approved(self: &Arc<Self>) -> Result<()> {
        let now = self.app.server_now().await?;
        let by = operator_here("serve");
        expire_overdue(&self.app.db, &by, now).await?;
        let ids = store::unclaimed(&mut self.app.db.begin_read().await?, now).await?;
        for id in ids {
            self.carry_out(id).await?;
        }
        Ok(())
    }

    /// Carries out one approved change; does nothing when another process does so.
    pub(super) async fn carry_out(self: &Arc<Self>, id: ChangeRequestId) -> Result<()> {
        let (db, now) = (&self.app.db, self.app.server_now().await?);
        let claim = uuid::Uuid::new_v4().simple().to_string();
        let mut tx = db.begin().await?;
        let is_ours = store::claim(&mut tx, id, &claim, now).await?;
        tx.commit().await.context("take a change request")?;
        if !is_ours {
            return Ok(());
        }
        failpoint!("change_request.claimed");
        let mut tx = db.begin_read().await?;
        let request =
            store::find_request(&mut tx, id).await?.context("the change request is gone")?;
        let body = store::content(&mut tx, id).await?.body;
        drop(tx);
        let approved_by = request.decided_by.as_ref().map(|by| by.actor.clone());
        let change = ApprovedChange {
            id,
            claim,
            approved_by: approved_by.unwrap_or_default(),
            is_alone: request.is_alone,
        };
        let fingerprint = request.fingerprint.clone();
        let replayed =
            ReplayedChange { request: request.clone(), change: change.clone(), fingerprint };
        let answered = self.replay(replayed, &body).await;
        failpoint!("change_request.answered");
        self.finish(&request, &change, answered).await
    }

    /// Sends the request through the router.
    async fn replay(
        self: &Arc<Self>,
        replayed: ReplayedChange,
        body: &Value,
    ) -> Result<(StatusCode, Value)> {
        let request = Request::builder()
            .method(replayed.request.method.as_str())
            .uri(replayed.request.path.as_str())
            .header(CONTENT_TYPE, "application/json")
            .extension(Arc::new(replayed))
            .body(Body::from(body.to_string()))
            .context("make the request of a change once more")?;
        let response = match router(self.clone()).oneshot(request).await {
            Ok(response) => response,
            Err(never) => match never {},
        };
        let status = response.status();
        let bytes = to_bytes(response.into_body(), ANSWER_MAX).await.context("read the answer")?;
        Ok((status, serde_json::from_slice(&bytes).unwrap_or(Value::Null)))
    }

    /// Stores the result of a change. While its action is not committed the row is APPROVED, so a
    /// failure there has changed nothing, and a transient one is retried.
    async fn finish(
        &self,
        request: &ChangeRequest,
        change: &ApprovedChange,
        answered: Result<(StatusCode, Value)>,
    ) -> Result<()> {
        let (db, now) = (&self.app.db, self.app.server_now().await?);
        let (code, answer) = match answered {
            Ok(answered) => answered,
            Err(error) => {
                tracing::error!(id = %change.id, error = format!("{error:#}"), "a change failed");
                let detail = "Procession failed; the reason is in its log";
                (StatusCode::INTERNAL_SERVER_ERROR, json!({ "detail": detail }))
            }
        };
        let mut tx = db.begin().await?;
        if matches!(code, StatusCode::SERVICE_UNAVAILABLE | StatusCode::TOO_MANY_REQUESTS) {
            store::release(&mut tx, change.id, &change.claim).await?;
            return tx.commit().await.context("give a change request back");
        }
        let status = match code.is_success() {
            true => ChangeRequestStatus::Done,
            false => ChangeRequestStatus::Failed,
        };
        store::finish(&mut tx, change, status, code.as_u16(), &answer, now).await?;
        let after = store::find_request(&mut tx, change.id).await?;
        if after.is_some_and(|after| after.status == ChangeRequestStatus::Failed) {
            let why = answer["detail"].as_str();
            let entry = act_on(request, "change-request failed", why);
            audit::record(&mut tx, &operator_here("serve"), &[entry], now).await?;
        }
        tx.commit().await.context("write what a change came to")
    }
}
