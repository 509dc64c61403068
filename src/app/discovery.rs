//! Drafts a definition from the procedures of a data source. The draft is neither stored nor run.

use crate::app::sources::place;
use crate::app::{job_kinds, lineage::use_stand_ins};
use crate::config::Config;
use crate::definition::{self, Comments, DefinitionFormat, Loaded, add_comments};
use crate::domain::id::{GroupCode, SourceName};
use crate::domain::job::{Definition, Group};
use crate::domain::source::{DataSource, DialectName};
use crate::domain::text::lang::Lang;
use crate::handler::lineage::{read_catalogue, server_of};
use crate::lineage::{
    DefinitionDraft, DiscoveryError, DraftNote, DraftPlace, LineageCoverage, LineageTarget,
    draft_from_master, draft_schema,
};
use anyhow::{Context as _, Result, anyhow};
use std::path::Path;

/// What to draft from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DiscoveryScope {
    /// The procedures of a schema, all or those that match a LIKE pattern.
    Schema {
        /// The LIKE pattern.
        like: Option<String>,
    },
    /// The procedures that a serial master procedure calls.
    Master(String),
}

/// A request to draft a definition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiscoveryRequest {
    pub source: DataSource,
    /// The schema; `None`: the first of the search path.
    pub schema: Option<String>,
    /// The group of the jobs.
    pub group: GroupCode,
    /// What to draft from.
    pub scope: DiscoveryScope,
}

/// A draft.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Discovery {
    /// The schema that was read.
    pub schema: String,
    pub definition: Definition,
    /// What people must decide or should know.
    pub notes: Vec<DraftNote>,
    /// How much of the jobs' effects is known.
    pub coverage: LineageCoverage,
}

/// Why a source cannot be read; the message is for the user.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct NotDiscovered(pub String);

/// Reads the procedures of a source and drafts jobs from them. Changes nothing there.
pub async fn discover(config: &Config, request: DiscoveryRequest) -> Result<Discovery> {
    let DiscoveryRequest { source, schema, group, scope } = request;
    let name = source.name.clone();
    if place(&source).dialect == Some(DialectName::Sqlite) {
        return Err(NotDiscovered(format!(
            "{name} is a SQLite file, and SQLite has no procedures; name a source on MySQL, MariaDB or PostgreSQL"
        ))
        .into());
    }
    let of_master = match &scope {
        DiscoveryScope::Master(master) => master.split_once('.').map(|(schema, _)| schema),
        DiscoveryScope::Schema { .. } => None,
    };
    let wanted = schema.or(of_master.map(str::to_owned));
    // On MySQL the databases named in texts are read.
    let texts: Vec<String> = wanted.iter().map(|schema| format!("{schema}.")).collect();
    let catalogue = read_catalogue(&source, &config.handlers(), &texts).await;
    let catalogue = catalogue.map_err(|why| anyhow!("{name}: {why}"))?;
    let first = catalogue.search_path.first().cloned();
    let Some(schema) = wanted.or(first) else {
        return Err(NotDiscovered(format!(
            "{name} names no database: add --schema NAME, or one to its url"
        ))
        .into());
    };
    let mut target = LineageTarget {
        server: server_of(&source),
        catalogue: Ok(catalogue),
        procedures: source.procedures.clone(),
    };
    use_stand_ins(&mut target);
    let at = DraftPlace { source: &name, group: &group, target: &target, schema: &schema };
    let draft = match &scope {
        DiscoveryScope::Schema { like } => draft_schema(at, like.as_deref())?,
        DiscoveryScope::Master(master) => draft_from_master(at, master)?,
    };
    let DefinitionDraft { jobs, dependencies, params, notes, coverage } = draft;
    let group = Group { params, ..Group::with_defaults(group) };
    let definition = Definition {
        sources: vec![source],
        groups: vec![group],
        jobs,
        dependencies,
        ..Definition::default()
    };
    Ok(Discovery { schema, definition, notes, coverage })
}

/// Whether an error is for the user to fix.
pub(super) fn is_users(error: &(dyn std::error::Error + 'static)) -> bool {
    error.is::<NotDiscovered>()
        || error
            .downcast_ref::<DiscoveryError>()
            .is_some_and(|error| !matches!(error, DiscoveryError::SourceAway(_)))
}

impl Discovery {
    /// The definition as a commented file, which was parsed again and has the same meaning.
    pub fn render_text(&self, head: Vec<String>, lang: Lang) -> Result<String> {
        let mut comments = Comments { head, ..Comments::default() };
        for note in &self.notes {
            let word = match (note.matter.is_question(), lang) {
                (true, Lang::En) => "QUESTION: ",
                (true, Lang::Zh) => "待定：",
                (false, Lang::En) => "NOTE: ",
                (false, Lang::Zh) => "说明：",
            };
            let line = format!("{word}{}", note.matter.describe(lang));
            match &note.job {
                Some(job) => comments.jobs.entry(job.clone()).or_default().push(line),
                None => comments.head.push(line),
            }
        }
        let kinds = job_kinds();
        let bare = definition::export(&self.definition, &kinds, DefinitionFormat::Yaml)?;
        let text = add_comments(&bare, &comments);
        let again = load_text(&text).context("read the draft again")?;
        let changes = definition::diff_definitions(&self.definition, &again.definition);
        match changes.is_empty() {
            true => Ok(text),
            false => Err(anyhow!("the draft reads differently with its comments: a fault of ours")),
        }
    }

    /// The definition as JSON.
    pub fn document(&self) -> Result<serde_json::Value> {
        let text = definition::export(&self.definition, &job_kinds(), DefinitionFormat::Json)?;
        Ok(serde_json::from_str(&text)?)
    }
}

fn load_text(text: &str) -> Result<Loaded> {
    let read = |_: &Path| Ok(text.to_owned());
    Ok(definition::load_definition(Path::new("draft.yaml"), &read, &job_kinds())?)
}

/// A source that no definition contains yet, with the checks of a definition.
pub fn source_of_url(
    name: &SourceName,
    url: &str,
    password_env: Option<&str>,
) -> Result<DataSource> {
    let mut source = serde_json::json!({ "url": url });
    if let Some(variable) = password_env {
        source["password_env"] = variable.into();
    }
    let text = serde_json::json!({
        "sources": { name.as_str(): source },
        "jobs": { "NONE": { "type": "NOOP" } },
    });
    let loaded = load_text(&text.to_string())?;
    let found = loaded.definition.sources.into_iter().next();
    found.context("a definition of one source has none")
}
