//! The graph of a batch or a group in any format, and the job states that update a drawn one.

use crate::api::authorize;
use crate::api::caller::{ApiRequest, CallerNeeds};
use crate::api::path_params::{BatchPath, GroupPath};
use crate::api::problem::Problem;
use crate::api::route::{self, Noun};
use crate::app::task::on_busy_thread;
use crate::domain::access::Permission;
use crate::picture::{
    ArrowDirection, Collapse, DagView, Drawn, FORMATS, PictureFormat, Placing, Wishes,
    format as shape,
};
use crate::view::dag::{self, DagPart, Reduce};
use crate::view::states::BatchJobStates;
use axum::response::Response;
use schemars::JsonSchema;
use serde::Deserialize;

pub(super) fn routes() -> Noun {
    let needs = CallerNeeds::Somewhere(Permission::View);
    Noun::new("dag")
        .expensive()
        .media(
            "getBatchDag",
            "/groups/{group}/batches/{batch_no}/dag",
            "application/json",
            needs,
            "Get the DAG of a batch with its states, in any format of `dag --format`",
            of_batch,
        )
        .expensive()
        .get(
            "listJobStates",
            "/groups/{group}/batches/{batch_no}/states",
            needs,
            "List the states of a batch's jobs: all, or those that changed since a cursor",
            states,
        )
        .expensive()
        .media(
            "getGroupDag",
            "/groups/{group}/dag",
            "application/json",
            needs,
            "Get the DAG of a group as it is defined now",
            of_group,
        )
}

/// How a graph is drawn.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
struct DrawDagQuery {
    /// The format: `native` (default), or one of `dag --format`.
    format: Option<String>,
    /// Only this job with its upstream and downstream jobs.
    focus: Option<String>,
    /// With `focus`: number of steps upstream; default all.
    up: Option<u32>,
    /// With `focus`: number of steps downstream; default all.
    down: Option<u32>,
    /// One node for many jobs.
    collapse: Option<CollapseBy>,
    /// Fewer edges.
    reduce: Option<EdgeReduction>,
    /// Whether positions are computed here.
    layout: LayoutRequest,
    /// The direction of the edges.
    direction: DagDirection,
}

/// What the jobs of one node have in common.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum CollapseBy {
    /// Their group.
    Group,
    /// Their first tag; jobs without one keep their own node.
    Tag,
}

/// Which edges are omitted.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum EdgeReduction {
    /// A -> C where there is A -> B -> C.
    Transitive,
}

/// Whether positions are computed here.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum LayoutRequest {
    /// In layers along the edges; nodes keep their positions when job states change.
    #[default]
    Layered,
    /// No positions; formats that need some get 0, 0.
    None,
}

/// The direction of the edges.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema)]
enum DagDirection {
    /// From left to right.
    #[default]
    #[serde(rename = "LR", alias = "lr")]
    Lr,
    /// From top to bottom.
    #[serde(rename = "TB", alias = "tb")]
    Tb,
}

impl DrawDagQuery {
    fn shape(&self) -> Result<&'static PictureFormat, Problem> {
        let name = self.format.as_deref().unwrap_or("native");
        let shape = shape(name).ok_or_else(|| {
            let known: Vec<&str> = FORMATS.iter().map(|f| f.name).collect();
            Problem::unreadable(format!("format: {name} is none of {}", known.join(", ")))
        })?;
        if matches!(self.layout, LayoutRequest::None) && shape.needs_positions() {
            let message = format!("layout: {name} needs positions; leave out layout=none");
            return Err(Problem::unreadable(message));
        }
        if self.focus.is_none() && (self.up.is_some() || self.down.is_some()) {
            return Err(Problem::unreadable("up and down count from a job: say focus=JOB too"));
        }
        Ok(shape)
    }

    fn wanted_part(&self) -> DagPart<'_> {
        DagPart {
            focus: self.focus.as_deref().map(|job| (job, self.up, self.down)),
            collapse: self.collapse.map(|by| match by {
                CollapseBy::Group => Collapse::Group,
                CollapseBy::Tag => Collapse::Tag,
            }),
            reduce: self.reduce.map(|EdgeReduction::Transitive| Reduce::Transitive),
        }
    }

    /// Draws the graph on a blocking thread.
    async fn drawn(self, ask: ApiRequest, whole: DagView) -> Result<Response, Problem> {
        on_busy_thread(move || self.draw_dag(&ask, whole)).await?
    }

    fn draw_dag(&self, ask: &ApiRequest, whole: DagView) -> Result<Response, Problem> {
        let shape = self.shape()?;
        let view = self.wanted_part().select_part(whole).map_err(|error| {
            let message = error.describe("see all jobs without focus");
            Problem::unreadable(format!("focus: {message}"))
        })?;
        let wishes = Wishes {
            placing: match self.layout {
                LayoutRequest::Layered => Placing::Steady,
                LayoutRequest::None => Placing::None,
            },
            direction: match self.direction {
                DagDirection::Lr => ArrowDirection::Lr,
                DagDirection::Tb => ArrowDirection::Tb,
            },
            lang: ask.lang,
            generated_at: None,
        };
        let drawing = match shape.places(wishes) {
            true => shape.draw_at(&view, wishes, &ask.house.reads.places(&view, wishes.direction)),
            false => shape.draw_view(&view, wishes),
        };
        match drawing.drawn() {
            Drawn::Json(document) => route::tagged(&ask.headers, &document),
            Drawn::Text(text) => route::tagged_as(&ask.headers, media(shape), text.as_bytes()),
        }
    }
}

/// The media type of a format other than JSON.
fn media(shape: &PictureFormat) -> &'static str {
    match shape.name {
        "svg" => "image/svg+xml",
        "dot" => "text/vnd.graphviz; charset=utf-8",
        _ => "text/plain; charset=utf-8",
    }
}

async fn of_batch(ask: ApiRequest, of: BatchPath, draw: DrawDagQuery) -> Result<Response, Problem> {
    draw.shape()?;
    let batch = of.find_visible(&ask).await?;
    let whole = dag::of_batch(&ask.house.app, &batch).await?;
    draw.drawn(ask, whole).await
}

async fn of_group(ask: ApiRequest, of: GroupPath, draw: DrawDagQuery) -> Result<Response, Problem> {
    draw.shape()?;
    let code = authorize::group(&ask, Permission::View, &of.group)?;
    let app = &ask.house.app;
    let defs = app.definition().await?;
    if !defs.groups.iter().any(|g| g.code == code) {
        return Err(Problem::not_found(format!("group {code}")));
    }
    let whole = dag::of_stored(app, &defs, Some(code)).await?;
    draw.drawn(ask, whole).await
}

/// Which states.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
struct StatesQuery {
    /// `at` of an earlier answer: only jobs that may have changed since; default all.
    since: Option<i64>,
}

async fn states(
    ask: ApiRequest,
    of: BatchPath,
    since: StatesQuery,
) -> Result<BatchJobStates, Problem> {
    let batch = of.find_visible(&ask).await?;
    Ok(BatchJobStates::read_states(&ask.house.app, batch.batch_id, since.since).await?)
}
