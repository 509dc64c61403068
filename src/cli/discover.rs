//! `discover`: drafts a definition from the procedures of a data source, for people to review.

use crate::app::discovery::{self, Discovery, DiscoveryRequest, DiscoveryScope, source_of_url};
use crate::app::{self, App};
use crate::cli::{BadInput, Global, VerbResult, export, out};
use crate::config::Config;
use crate::domain::id::{GroupCode, SourceName};
use crate::domain::job::Definition;
use crate::domain::source::DataSource;
use crate::domain::text::did_you_mean::nearest;
use crate::domain::text::lang::Lang;
use anyhow::Result;
use clap::Args;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// Arguments of `discover`.
#[derive(Args)]
pub(super) struct DiscoverArgs {
    /// The data source whose procedures are read
    #[arg(long, value_name = "NAME")]
    source: String,
    /// Take the source from this definition file [default: those that are stored]
    #[arg(long, value_name = "FILE", conflicts_with = "url")]
    file: Option<PathBuf>,
    /// Take a source that is in no definition yet: mysql://user@host:3306/db or postgres://user@host:5432/db
    #[arg(long, value_name = "URL")]
    url: Option<String>,
    /// With --url: the environment variable that holds the password
    #[arg(long, value_name = "VARIABLE", requires = "url")]
    password_env: Option<String>,
    /// The schema, on MySQL the database [default: where the source looks first]
    #[arg(long)]
    schema: Option<String>,
    /// Only procedures whose name is like this: % stands for any letters, _ for one
    #[arg(long, value_name = "PATTERN", conflicts_with = "from_master")]
    like: Option<String>,
    /// Draft the jobs that this procedure calls one after the other, and keep of its order what the data needs
    #[arg(long, value_name = "PROCEDURE")]
    from_master: Option<String>,
    /// Code of the group of the jobs [default: the master's name, else the source's]
    #[arg(long, value_name = "CODE")]
    group: Option<String>,
    /// Write to this file instead of standard output
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Replace the file of --out where there is one
    #[arg(long, requires = "out")]
    force: bool,
}

pub(super) async fn discover(global: &Global, args: &DiscoverArgs) -> Result<VerbResult> {
    let lang = global.language();
    if let Some(file) = args.out.as_ref().filter(|file| file.exists() && !args.force) {
        let file = file.display();
        return Err(BadInput(match lang {
            Lang::En => {
                format!("--out {file}: there is such a file; name a new one, or add --force")
            }
            Lang::Zh => format!("--out {file}：文件已存在；请换一个名称，或加 --force"),
        })
        .into());
    }
    let group = group_of(args)?;
    let (config, source) = find_source(global, args).await?;
    let scope = match &args.from_master {
        Some(master) => DiscoveryScope::Master(master.clone()),
        None => DiscoveryScope::Schema { like: args.like.clone() },
    };
    let request = DiscoveryRequest { source, schema: args.schema.clone(), group, scope };
    let found = discovery::discover(&config, request).await?;
    let text = found.render_text(draft_header(args, &found, lang), lang)?;
    if let Some(file) = &args.out {
        export::write(file, &text)?;
    }
    if global.json {
        out::print_json(&document(args, &found, lang)?)?;
        return Ok(VerbResult::Well);
    }
    if args.out.is_none() {
        out::print_line(text.strip_suffix('\n').unwrap_or(&text));
    }
    out::eprint_line(&summary(args, &found, lang));
    Ok(VerbResult::Well)
}

fn group_of(args: &DiscoverArgs) -> Result<GroupCode> {
    if let Some(code) = &args.group {
        return Ok(GroupCode::parse(code)?);
    }
    let stem = match &args.from_master {
        Some(master) => master.rsplit('.').next().unwrap_or(master).to_lowercase(),
        None => args.source.clone(),
    };
    let prefixes = ["usp_", "proc_", "prc_", "sp_"];
    let stem = prefixes.iter().find_map(|prefix| stem.strip_prefix(prefix)).unwrap_or(&stem);
    GroupCode::parse(stem).map_err(|_| {
        BadInput(format!("{stem:?} cannot be the code of a group; add --group CODE")).into()
    })
}

/// The source by its name: from a file, a URL, or the stored definition.
async fn find_source(global: &Global, args: &DiscoverArgs) -> Result<(Config, DataSource)> {
    let name = SourceName::parse(&args.source)?;
    if let Some(url) = &args.url {
        let source = source_of_url(&name, url, args.password_env.as_deref())?;
        return Ok((global.config()?, source));
    }
    if let Some(file) = &args.file {
        let loaded = app::load_definition(file)?;
        let source = source_in(&loaded.definition, &name, &file.display().to_string())?;
        return Ok((global.config()?, source));
    }
    let Some(app) = App::open_if_there(global.config()?).await? else {
        return Err(BadInput(format!(
            "no definition is stored that could have a source {name}: --file FILE takes it from a file, --url URL one \
             that is in no definition yet"
        ))
        .into());
    };
    let defs = app.definition().await?;
    let source = source_in(&defs, &name, "the database of Procession")?;
    let ready = app.with_password(&source).await;
    let config = global.config()?;
    app.close().await;
    Ok((config, ready.map_err(|fault| BadInput(format!("{name}: {fault}")))?))
}

fn source_in(defs: &Definition, name: &SourceName, place: &str) -> Result<DataSource> {
    if let Some(found) = defs.sources.iter().find(|source| source.name == *name) {
        return Ok(found.clone());
    }
    let names: Vec<&str> = defs.sources.iter().map(|source| source.name.as_str()).collect();
    let near = nearest(name.as_str(), names.iter().copied());
    let near = near.map_or(String::new(), |near| format!("; did you mean {near}?"));
    let known = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
    Err(BadInput(format!(
        "{place} has no source {name}{near}; those that it has: {known}; --file FILE takes one of a file, --url URL one \
         that is in no definition yet"
    ))
    .into())
}

/// The comment before the draft.
fn draft_header(args: &DiscoverArgs, found: &Discovery, lang: Lang) -> Vec<String> {
    let (source, schema) = (&args.source, &found.schema);
    let from = match (&args.from_master, lang) {
        (Some(master), Lang::En) => format!("the master procedure {master} of {source} ({schema})"),
        (Some(master), Lang::Zh) => format!("{source}（{schema}）的主过程 {master}"),
        (None, Lang::En) => format!("the procedures of {source} ({schema})"),
        (None, Lang::Zh) => format!("{source}（{schema}）的存储过程"),
    };
    let coverage = &found.coverage;
    let (whole, jobs) = (coverage.whole_jobs, coverage.jobs);
    match lang {
        Lang::En => vec![
            format!("A draft from {from}. Nothing of it is stored or run."),
            "Answer each QUESTION, then: procession check FILE --lineage; procession plan FILE; procession apply FILE."
                .to_owned(),
            format!("Read {whole} of {jobs} jobs that touch data wholly."),
        ],
        Lang::Zh => vec![
            format!("根据{from}生成的草稿，未保存，也未运行。"),
            "请先答复每一处“待定”，然后：procession check FILE --lineage;procession plan FILE;procession apply FILE。"
                .to_owned(),
            format!("访问数据的 {jobs} 个作业中完整读取 {whole} 个。"),
        ],
    }
}

fn questions(found: &Discovery) -> usize {
    found.notes.iter().filter(|note| note.matter.is_question()).count()
}

fn summary(args: &DiscoverArgs, found: &Discovery, lang: Lang) -> String {
    let (jobs, questions) = (found.definition.jobs.len(), questions(found));
    let edges = found.definition.dependencies.len();
    let what = match lang {
        Lang::En => format!(
            "{}, {}, {}",
            out::count(jobs, "job"),
            out::count(edges, "dependency"),
            out::count(questions, "open question")
        ),
        Lang::Zh => format!("{jobs} 个作业，{edges} 条依赖，{questions} 处待定"),
    };
    match &args.out {
        Some(file) => format!("{}: {what}", file.display()),
        None => what,
    }
}

fn document(args: &DiscoverArgs, found: &Discovery, lang: Lang) -> Result<Value> {
    let mut notes = Vec::new();
    for note in &found.notes {
        let mut value = serde_json::to_value(note)?;
        value["is_question"] = json!(note.matter.is_question());
        value["text"] = json!(note.matter.describe(lang));
        notes.push(value);
    }
    Ok(json!({
        "source": args.source, "schema": found.schema, "master": args.from_master,
        "out": args.out.as_deref().map(Path::display).map(|path| path.to_string()),
        "jobs": found.definition.jobs.len(), "dependencies": found.definition.dependencies.len(),
        "questions": questions(found), "coverage": found.coverage, "notes": notes,
        "definition": found.document()?,
    }))
}
