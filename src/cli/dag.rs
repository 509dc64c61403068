//! `dag`: the graph of a file, a group or a batch, in any format of `picture`.

use crate::app::{self, EmptyDatabase};
use crate::cli::{BadInput, BatchRef, Global, VerbResult, out};
use crate::domain::id::GroupCode;
use crate::picture::{
    ArrowDirection, Collapse, DagView, Drawn, FORMATS, PictureFormat, Placing, Wishes, format,
};
use crate::view::dag::{self, DagPart, NoFocus, Reduce};
use anyhow::Result;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser as _};
use clap::{Args, ValueEnum};
use std::path::Path;

/// Arguments of `dag`.
#[derive(Args)]
pub(super) struct DagArgs {
    /// Definition file, or the code of a stored group
    what: Option<String>,
    /// Show the states of this batch
    #[arg(long, required_unless_present = "what")]
    batch: Option<String>,
    /// Group, when the file or the batch number has several
    #[arg(long)]
    group: Option<String>,
    /// Shape of the output
    #[arg(long, default_value = "native", value_parser = shapes())]
    format: &'static PictureFormat,
    /// Show only this job (CODE or group.CODE), what it waits for and what waits for it
    #[arg(long, value_name = "JOB")]
    focus: Option<String>,
    /// With --focus: how many steps towards what it waits for [default: all]
    #[arg(long, value_name = "STEPS", requires = "focus")]
    up: Option<u32>,
    /// With --focus: how many steps towards what waits for it [default: all]
    #[arg(long, value_name = "STEPS", requires = "focus")]
    down: Option<u32>,
    /// One node for all jobs of a group, or for all with the same first tag
    #[arg(long, value_enum)]
    collapse: Option<CollapseArg>,
    /// Leave out dependencies that follow from others
    #[arg(long, value_enum)]
    reduce: Option<ReductionArg>,
    /// Whether positions are worked out here or by the front end
    #[arg(long, value_enum, default_value = "layered")]
    layout: LayoutArg,
    /// Where the arrows run to
    #[arg(long, value_enum, ignore_case = true, default_value = "LR")]
    direction: DagDirectionArg,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum CollapseArg {
    /// One node per group
    Group,
    /// One node per tag; jobs without one stay
    Tag,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum ReductionArg {
    /// Without A -> C where there is A -> B -> C
    Transitive,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum LayoutArg {
    /// In layers along the arrows
    Layered,
    /// No positions; what cannot do without gets 0, 0
    None,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum DagDirectionArg {
    /// From left to right
    #[value(name = "LR")]
    Lr,
    /// From top to bottom
    #[value(name = "TB")]
    Tb,
}

fn shapes() -> impl clap::builder::TypedValueParser<Value = &'static PictureFormat> {
    let names = FORMATS.iter().map(|f| PossibleValue::new(f.name).help(f.about));
    PossibleValuesParser::new(names).try_map(|name| format(&name).ok_or("is in no list of shapes"))
}

pub(super) async fn print_dag(global: &Global, args: &DagArgs) -> Result<VerbResult> {
    if args.layout == LayoutArg::None && args.format.needs_positions() {
        let message = format!("{} needs positions; leave out --layout none", args.format.name);
        return Err(BadInput(message).into());
    }
    let part = DagPart {
        focus: args.focus.as_deref().map(|job| (job, args.up, args.down)),
        collapse: args.collapse.map(|by| match by {
            CollapseArg::Group => Collapse::Group,
            CollapseArg::Tag => Collapse::Tag,
        }),
        reduce: args.reduce.map(|ReductionArg::Transitive| Reduce::Transitive),
    };
    let view = part.select_part(whole(global, args).await?).map_err(|error| no_focus(&error))?;
    let wishes = Wishes {
        placing: match args.layout {
            LayoutArg::Layered => Placing::Layered,
            LayoutArg::None => Placing::None,
        },
        direction: match args.direction {
            DagDirectionArg::Lr => ArrowDirection::Lr,
            DagDirectionArg::Tb => ArrowDirection::Tb,
        },
        lang: global.language(),
        generated_at: None,
    };
    match args.format.draw_view(&view, wishes).drawn() {
        Drawn::Json(document) => out::document(&document)?,
        Drawn::Text(text) => out::print_line(text.trim_end()),
    }
    Ok(VerbResult::Well)
}

async fn whole(global: &Global, args: &DagArgs) -> Result<DagView> {
    let group = args.group.clone();
    match (&args.batch, &args.what) {
        (Some(no), what) => {
            let app = global.open_app(EmptyDatabase::Refuse).await?;
            let which = BatchRef { batch_no: no.clone(), group: group.or_else(|| what.clone()) };
            let jobs: Vec<String> = args.focus.clone().into_iter().collect();
            dag::of_batch(&app, &which.find_with_jobs(&app, &jobs).await?).await
        }
        (None, Some(what)) if Path::new(what).exists() => dag::of_definition(
            &app::load_definition(Path::new(what))?.definition,
            parse_group_code(group)?,
        ),
        (None, what) => {
            let app = global.open_app(EmptyDatabase::Refuse).await?;
            let defs = app.definition().await?;
            dag::of_stored(&app, &defs, parse_group_code(group.or_else(|| what.clone()))?).await
        }
    }
}

fn parse_group_code(group: Option<String>) -> Result<Option<GroupCode>> {
    Ok(group.as_deref().map(GroupCode::parse).transpose()?)
}

fn no_focus(error: &NoFocus) -> BadInput {
    BadInput(format!("--focus: {}", error.describe("list the jobs with --format native")))
}
