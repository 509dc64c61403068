//! `executor-group list | show | add | set | token | remove`. No verb takes a token as an argument:
//! arguments appear in process lists and in shell histories.

use crate::app::executor_groups::{GroupChange, GroupSeen};
use crate::app::{self, App, EmptyDatabase};
use crate::cli::group_access::AccessArgs;
use crate::cli::{BadInput, Global, VerbResult, out};
use crate::domain::executor::{Addressing, ExecutorGroup, GluePolicy};
use crate::domain::text::lang::Lang;
use crate::domain::xxl::xxl_run::AppName;
use crate::engine::operate::operator_actions::operator_here;
use crate::store::audit::Operator;
use crate::view::executor::{ExecutorGroupDocument, document};
use anyhow::Result;
use clap::{Args, Subcommand};
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::json;
use std::path::{Path, PathBuf};

/// Verbs of `executor-group`.
#[derive(Subcommand)]
pub(super) enum ExecutorGroupVerb {
    /// Which groups there are, and how many of their executors are there
    List,
    /// One group: where its executors are, and when each was heard of last
    Show {
        /// Its name
        app_name: String,
    },
    /// Add a group; its executors register under its name. A token is made and printed, once, unless a file
    /// has one
    Add(ExecutorGroupAddArgs),
    /// Change a group; what is not said stays
    Set(ExecutorGroupSetArgs),
    /// Give a group another token; the old one works no more
    Token {
        /// Its name
        app_name: String,
        /// File with the token [default: one is made and printed, once]
        #[arg(long = "from-file", value_name = "FILE")]
        file: Option<PathBuf>,
    },
    /// Remove a group; what its executors ran stays with its batches
    Remove {
        /// Its name
        app_name: String,
    },
}

/// Arguments of `executor-group add`.
#[derive(Args)]
pub(super) struct ExecutorGroupAddArgs {
    /// Its name: xxl.job.executor.appname of its executors
    app_name: String,
    /// Its name for people [default: APP_NAME]
    #[arg(long, value_name = "TEXT")]
    title: Option<String>,
    /// Where an executor is, when it does not say so itself; may be given several times
    #[arg(long = "address", value_name = "URL")]
    addresses: Vec<String>,
    /// Let jobs send scripts to its executors (GLUE), which run whatever they are sent
    #[arg(long)]
    allow_glue: bool,
    #[command(flatten)]
    access: AccessArgs,
    /// File with the token, xxl.job.accessToken of its executors [default: one is made and printed, once]
    #[arg(long = "from-file", value_name = "FILE")]
    file: Option<PathBuf>,
}

/// Arguments of `executor-group set`.
#[derive(Args)]
pub(super) struct ExecutorGroupSetArgs {
    /// Its name
    app_name: String,
    /// Its name for people
    #[arg(long, value_name = "TEXT")]
    title: Option<String>,
    /// Where an executor is; may be given several times, and takes the place of all that were said
    #[arg(long = "address", value_name = "URL", conflicts_with = "registered")]
    addresses: Vec<String>,
    /// Executors say themselves where they are
    #[arg(long)]
    registered: bool,
    /// Let jobs send scripts to its executors
    #[arg(long, conflicts_with = "refuse_glue")]
    allow_glue: bool,
    /// Let no job send a script to its executors
    #[arg(long)]
    refuse_glue: bool,
    #[command(flatten)]
    access: AccessArgs,
}

pub(super) async fn executor_group(global: &Global, verb: ExecutorGroupVerb) -> Result<VerbResult> {
    let app = global.open_app(EmptyDatabase::Refuse).await?;
    // Times are those of the database, for all its clients.
    app.server_now().await?;
    let done = run_verb(global, &app, verb).await;
    app.close().await;
    done.map(|()| VerbResult::Well)
}

async fn run_verb(global: &Global, app: &App, verb: ExecutorGroupVerb) -> Result<()> {
    let (by, lang) = (operator_here(&app::whoami()), global.language());
    match verb {
        ExecutorGroupVerb::List => list_groups(global, app).await?,
        ExecutorGroupVerb::Show { app_name } => {
            show_group(global, app, &AppName::parse(&app_name)?).await?;
        }
        ExecutorGroupVerb::Add(args) => add_group(app, &by, args, global).await?,
        ExecutorGroupVerb::Set(args) => change_group(app, &by, args, lang).await?,
        ExecutorGroupVerb::Token { app_name, file } => {
            let name = AppName::parse(&app_name)?;
            let chosen = file.as_deref().map(token).transpose()?;
            let made = app.renew_executor_token(&by, &name, chosen).await?;
            out::eprint_line(&match lang {
                Lang::En => {
                    format!("executor group {name} has another token; the old one works no more")
                }
                Lang::Zh => format!("执行器 {name} 已更换令牌，旧令牌立即失效"),
            });
            print_once(global, &name, made.as_ref())?;
        }
        ExecutorGroupVerb::Remove { app_name } => {
            let name = AppName::parse(&app_name)?;
            app.remove_executor_group(&by, &name).await?;
            out::eprint_line(&match lang {
                Lang::En => format!("executor group {name} is removed"),
                Lang::Zh => format!("已删除执行器 {name}"),
            });
        }
    }
    Ok(())
}

/// The first line of a file.
fn token(file: &Path) -> Result<SecretString> {
    let text = std::fs::read_to_string(file).map(SecretString::from);
    let text =
        text.map_err(|error| BadInput(format!("--from-file {}: {error}", file.display())))?;
    Ok(text.expose_secret().lines().next().unwrap_or_default().trim().to_owned().into())
}

/// Prints a generated token on standard output, as JSON for scripts if requested.
fn print_once(global: &Global, name: &AppName, made: Option<&SecretString>) -> Result<()> {
    let lang = global.language();
    if global.json {
        let token = made.map(|made| made.expose_secret());
        return out::print_json(&json!({ "app_name": name, "token": token }));
    }
    if let Some(made) = made {
        out::eprint_line(lang.select(
            "its token, xxl.job.accessToken of its executors, shown now and never again:",
            "令牌（执行器的 xxl.job.accessToken），只显示这一次：",
        ));
        out::print_line(made.expose_secret());
    }
    Ok(())
}

async fn add_group(
    app: &App,
    by: &Operator,
    args: ExecutorGroupAddArgs,
    global: &Global,
) -> Result<()> {
    let lang = global.language();
    let name = AppName::parse(&args.app_name)?;
    let group = ExecutorGroup {
        app_name: name.clone(),
        title: args.title.unwrap_or_else(|| name.to_string()),
        addressing: match args.addresses.is_empty() {
            true => Addressing::Registered,
            false => Addressing::Fixed(args.addresses),
        },
        glue: if args.allow_glue { GluePolicy::Allowed } else { GluePolicy::Refused },
        access: args.access.access()?.unwrap_or_default(),
    };
    let (is_open, for_groups) = (group.access.is_for_every_group(), group.access.describe());
    let chosen = args.file.as_deref().map(token).transpose()?;
    let made = app.add_executor_group(by, group, chosen).await?;
    out::eprint_line(&match lang {
        Lang::En => format!("executor group {name} is added; for {for_groups}"),
        Lang::Zh => format!("已添加执行器 {name}；可用的组：{for_groups}"),
    });
    if is_open {
        out::eprint_line(lang.select(
            "name the groups of jobs that may use it with --owner-group and --group",
            "请用 --owner-group 和 --group 指定可使用它的作业组",
        ));
    }
    print_once(global, &name, made.as_ref())
}

async fn change_group(
    app: &App,
    by: &Operator,
    args: ExecutorGroupSetArgs,
    lang: Lang,
) -> Result<()> {
    let name = AppName::parse(&args.app_name)?;
    let change = GroupChange {
        title: args.title,
        addressing: match (args.registered, args.addresses.is_empty()) {
            (true, _) => Some(Addressing::Registered),
            (false, true) => None,
            (false, false) => Some(Addressing::Fixed(args.addresses)),
        },
        glue: match (args.allow_glue, args.refuse_glue) {
            (true, _) => Some(GluePolicy::Allowed),
            (false, true) => Some(GluePolicy::Refused),
            (false, false) => None,
        },
        access: args.access.access()?,
    };
    let after = app.set_executor_group(by, &name, change).await?;
    let for_groups = after.access.describe();
    out::eprint_line(&match lang {
        Lang::En => format!("executor group {name} is changed; for {for_groups}"),
        Lang::Zh => format!("已更改执行器 {name}；可用的组：{for_groups}"),
    });
    Ok(())
}

async fn list_groups(global: &Global, app: &App) -> Result<()> {
    let (seen, now) = app.executor_groups().await?;
    let all: Vec<ExecutorGroupDocument> = seen.iter().map(|seen| document(seen, now)).collect();
    if global.json {
        return out::print_json(&json!(all));
    }
    let lang = global.language();
    let row = |(seen, group): (&GroupSeen, &ExecutorGroupDocument)| {
        let place = match &group.addresses {
            None => lang.select("registered", "自动注册").to_owned(),
            Some(all) => all.join(" "),
        };
        let there = group.addresses.as_ref().map_or(group.alive, Vec::len).to_string();
        let glue = match group.allows_glue {
            true => lang.select("allowed", "允许"),
            false => "",
        };
        vec![
            group.app_name.clone(),
            group.title.clone(),
            place,
            there,
            group.open_runs.to_string(),
            glue.to_owned(),
            seen.stored.group.access.describe(),
        ]
    };
    let head = ["EXECUTORS", "TITLE", "ADDRESSES", "THERE", "OPEN RUNS", "GLUE", "FOR"];
    out::print_line(&out::table(&head, seen.iter().zip(&all).map(row).collect()));
    Ok(())
}

async fn show_group(global: &Global, app: &App, name: &AppName) -> Result<()> {
    let (seen, now) = app.executor_group(name).await?;
    let group = document(&seen, now);
    if global.json {
        return out::print_json(&json!(group));
    }
    let lang = global.language();
    out::print_line(&format!("{} · {}", group.app_name, group.title));
    out::print_line(&match lang {
        Lang::En => format!("{} runs that are not over", group.open_runs),
        Lang::Zh => format!("未结束的运行：{}", group.open_runs),
    });
    let for_groups = seen.stored.group.access.describe();
    out::print_line(&match lang {
        Lang::En => format!("for {for_groups}"),
        Lang::Zh => format!("可用的组：{for_groups}"),
    });
    for address in group.addresses.iter().flatten() {
        out::print_line(&match lang {
            Lang::En => format!("fixed address {address}"),
            Lang::Zh => format!("手动录入地址 {address}"),
        });
    }
    let row = |r: &crate::view::executor::RegistrationDocument| {
        let there = match r.is_alive {
            true => lang.select("there", "在线"),
            false => lang.select("gone", "离线"),
        };
        vec![r.address.clone(), there.to_owned(), r.since.clone(), r.seen.clone()]
    };
    let rows = group.registrations.iter().map(row).collect();
    out::print_line(&out::table(&["ADDRESS", "", "SINCE", "LAST SEEN"], rows));
    Ok(())
}
