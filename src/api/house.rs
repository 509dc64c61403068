//! What requests are answered from.

use crate::api::ask::Caller;
use crate::api::description;
use crate::api::problem::Problem;
use crate::app::App;
use crate::engine::vitals::Vitals;
use anyhow::Result;
use axum::http::request::Parts;
use serde_json::Value;
use std::sync::Arc;

/// Connections to a database server that requests share.
const CONNECTIONS: u32 = 6;

/// What requests are answered from: an open database with connections of its own, and how this process is.
pub struct House {
    /// The database, the settings and the clock.
    pub app: App,
    /// How this process is.
    pub vitals: Arc<Vitals>,
    /// The description of the API, made once.
    pub(super) described: Value,
}

impl House {
    /// A house of an open database; with connections of its own on a server, so that whoever asks much
    /// takes none from the work.
    pub async fn open(app: &App, vitals: Vitals) -> Result<Self> {
        let app = app.beside(CONNECTIONS).await?;
        Ok(Self { app, vitals: Arc::new(vitals), described: description() })
    }

    /// Who sent a request.
    pub(super) async fn who(&self, _parts: &Parts) -> Result<Caller, Problem> {
        Err(Problem::stranger())
    }
}
