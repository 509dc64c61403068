//! Definitions as files, their versions, and the differences.

use crate::api::authorize;
use crate::api::caller::{ApiRequest, CallerNeeds};
use crate::api::page::{self, Page, PageQuery};
use crate::api::path_params::GroupPath;
use crate::api::problem::Problem;
use crate::api::route::{Nothing, Noun};
use crate::api::sources::source_for_author;
use crate::app::job_kinds;
use crate::definition::{self, DefinitionFormat};
use crate::domain::access::Permission;
use crate::domain::id::GroupCode;
use crate::domain::job::Definition;
use crate::store::version;
use crate::view::change::DefinitionChangeDetail;
use crate::view::file::{of_group, without_places};
use crate::view::version::{VersionDiff, VersionSummary};
use axum::http::header::{CONTENT_DISPOSITION, CONTENT_TYPE};
use axum::response::{IntoResponse as _, Response};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;

pub(super) fn routes() -> Noun {
    let needs = CallerNeeds::Somewhere(Permission::View);
    Noun::new("versions")
        .get(
            "listVersions",
            "/groups/{group}/versions",
            needs,
            "List the versions of a group, newest first",
            list_versions,
        )
        .expensive()
        .media(
            "getVersion",
            "/groups/{group}/versions/{no}",
            YAML,
            needs,
            "Get a version of a group as a definition file",
            get_version,
        )
        .expensive()
        .get(
            "diffVersions",
            "/groups/{group}/versions/{no}/diff/{other}",
            needs,
            "Compare two versions of a group; 0 is an empty group, `now` the stored one",
            diff_versions,
        )
        .expensive()
        .media(
            "exportDefinition",
            "/definition/export",
            YAML,
            needs,
            "Export what is stored as a definition file: a group with what it uses, a data source, \
             or everything",
            export,
        )
        .get(
            "getDefinitionSchema",
            "/definition/schema",
            needs,
            "Get the JSON Schema of definition files",
            schema,
        )
}

const YAML: &str = "application/yaml";

/// A version of a group.
#[derive(Debug, Deserialize, JsonSchema)]
struct VersionPath {
    /// The group code.
    group: String,
    /// The version number, counted from 1.
    no: u32,
}

/// Two versions of a group.
#[derive(Debug, Deserialize, JsonSchema)]
struct DiffVersionsQuery {
    /// The group code.
    group: String,
    /// From this version; 0 means empty.
    no: u32,
    /// To this version; `now` is the stored definition.
    other: String,
}

async fn list_versions(
    ask: ApiRequest,
    of: GroupPath,
    which: PageQuery,
) -> Result<Page<VersionSummary>, Problem> {
    let group = authorize::group(&ask, Permission::View, &of.group)?;
    let limit = page::limit(which.limit)?;
    let before: Option<u32> = page::read_cursor(which.cursor.as_deref())?;
    let more = u32::try_from(limit + 1).unwrap_or(u32::MAX);
    let mut tx = ask.house.app.db.begin_read().await.map_err(anyhow::Error::from)?;
    let heads = version::heads(&mut tx, &group, before, more).await?;
    Ok(Page::from_items(
        heads.iter().map(VersionSummary::from).collect(),
        limit,
        |head: &VersionSummary| head.version,
    ))
}

/// A version of a group; the present definition for `None`, empty for 0.
async fn definition_at(
    ask: &ApiRequest,
    group: &GroupCode,
    no: Option<u32>,
) -> Result<Definition, Problem> {
    let app = &ask.house.app;
    match no {
        Some(0) => Ok(Definition::default()),
        Some(no) => {
            let mut tx = app.db.begin_read().await.map_err(anyhow::Error::from)?;
            let found = version::get(&mut tx, group, no).await?;
            let missing = || Problem::not_found(format!("version {no} of group {group}"));
            Ok(found.ok_or_else(missing)?.definition)
        }
        None => {
            let stored = app.definition().await?;
            let missing = || Problem::not_found(format!("group {group}"));
            crate::domain::job::part::of_code(&stored, group).ok_or_else(missing)
        }
    }
}

async fn get_version(ask: ApiRequest, at: VersionPath, _: Nothing) -> Result<Response, Problem> {
    let group = authorize::group(&ask, Permission::View, &at.group)?;
    let defs = definition_at(&ask, &group, Some(at.no)).await?;
    if at.no == 0 {
        return Err(Problem::not_found(format!("version 0 of group {group}")));
    }
    file_response(&ask, &group, defs, DefinitionFormat::Yaml, &format!("{group}-{}", at.no))
}

async fn diff_versions(
    ask: ApiRequest,
    two: DiffVersionsQuery,
    _: Nothing,
) -> Result<VersionDiff, Problem> {
    let group = authorize::group(&ask, Permission::View, &two.group)?;
    let other = match two.other.as_str() {
        "now" => None,
        word => {
            let refused = |_| Problem::not_found(format!("version {word} of group {group}"));
            Some(word.parse::<u32>().map_err(refused)?)
        }
    };
    let (before, after) = (
        definition_at(&ask, &group, Some(two.no)).await?,
        definition_at(&ask, &group, other).await?,
    );
    let hidden = |defs: Definition| match knows_places(&ask, &group) {
        true => defs,
        false => without_places(defs),
    };
    let changes = definition::diff_definitions(&hidden(before), &hidden(after));
    Ok(VersionDiff { changes: changes.iter().map(DefinitionChangeDetail::from_change).collect() })
}

/// What to export.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ExportQuery {
    /// This group with what it names; default everything, for users who see all groups.
    group: Option<String>,
    /// This data source alone, for callers who may change a group that may use it: to copy it into
    /// a file whose jobs use it.
    source: Option<String>,
    /// yaml or json.
    format: Option<String>,
}

async fn export(ask: ApiRequest, _: Nothing, wanted: ExportQuery) -> Result<Response, Problem> {
    let format = match wanted.format.as_deref() {
        None | Some("yaml") => DefinitionFormat::Yaml,
        Some("json") => DefinitionFormat::Json,
        Some(_) => return Err(Problem::unreadable("format: write yaml or json")),
    };
    if let Some(name) = &wanted.source {
        if wanted.group.is_some() {
            return Err(Problem::unreadable("group, source: write one of them"));
        }
        let stored = ask.house.app.definition().await?;
        let source = source_for_author(&ask, &stored, name)?;
        let text = definition::export_source(source, format).map_err(anyhow::Error::from)?;
        return Ok(file_download(text, format, name));
    }
    let Some(word) = &wanted.group else {
        if !ask.caller()?.grants.allow_everywhere(Permission::View) {
            let message =
                "say which group, ?group=CODE; all of them at once need `view` in all groups";
            return Err(Problem::refused(message));
        }
        let all = ask.house.app.definition_with_schedules().await?;
        let grants = &ask.caller()?.grants;
        let knows =
            grants.allow_everywhere(Permission::Edit) || grants.allow_everywhere(Permission::Admin);
        let all = if knows { all } else { without_places(all) };
        return written(&all, format, "procession");
    };
    let group = authorize::group(&ask, Permission::View, word)?;
    let stored = ask.house.app.definition_with_schedules().await?;
    let missing = || Problem::not_found(format!("group {group}"));
    let part = of_group(&stored, &group).ok_or_else(missing)?;
    file_response(&ask, &group, part, format, group.as_str())
}

/// Whether the caller may see addresses of sources: an author needs them to write the file back.
fn knows_places(ask: &ApiRequest, group: &GroupCode) -> bool {
    let admin = ask.caller().is_ok_and(|c| c.grants.allow_everywhere(Permission::Admin));
    admin || ask.allows(Permission::Edit, group)
}

fn file_response(
    ask: &ApiRequest,
    group: &GroupCode,
    defs: Definition,
    format: DefinitionFormat,
    name: &str,
) -> Result<Response, Problem> {
    let defs = if knows_places(ask, group) { defs } else { without_places(defs) };
    written(&defs, format, name)
}

fn written(defs: &Definition, format: DefinitionFormat, name: &str) -> Result<Response, Problem> {
    if defs.jobs.is_empty() {
        return Err(Problem::refused(
            "no job is defined there; a definition file has at least one",
        ));
    }
    let text = definition::export(defs, &job_kinds(), format).map_err(anyhow::Error::from)?;
    Ok(file_download(text, format, name))
}

fn file_download(text: String, format: DefinitionFormat, name: &str) -> Response {
    let (media, end) = match format {
        DefinitionFormat::Yaml => (YAML, "yaml"),
        DefinitionFormat::Json => ("application/json", "json"),
    };
    let disposition = format!("attachment; filename=\"{name}.{end}\"");
    let headers = [(CONTENT_TYPE, media.to_owned()), (CONTENT_DISPOSITION, disposition)];
    (headers, text).into_response()
}

async fn schema(_: ApiRequest, _: Nothing, _: Nothing) -> Result<BTreeMap<String, Value>, Problem> {
    let schema = definition::schema(&job_kinds());
    let members = schema.as_object().cloned().unwrap_or_default();
    Ok(members.into_iter().collect())
}
