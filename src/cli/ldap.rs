//! `ldap check`: performs the steps of a login through the directory, one by one.

use crate::app::access::{DirectoryCheck, DirectoryStep, check_directory};
use crate::cli::{BadInput, Global, VerbResult, out};
use crate::domain::text::lang::Lang;
use crate::domain::time::Millis;
use crate::engine::clock::Clock;
use anyhow::{Context as _, Result};
use clap::{Args, Subcommand};
use secrecy::SecretString;
use std::io::BufRead as _;

/// Verbs of the directory.
#[derive(Subcommand)]
pub(super) enum LdapVerb {
    /// Do what a log-in does and show each step; changes nothing, and exit code 1 says that one failed
    Check(LdapCheckArgs),
}

/// Arguments of `ldap check`.
#[derive(Args)]
pub(super) struct LdapCheckArgs {
    /// Look for this user: the entry, whether the account is open, its groups and what they give
    #[arg(long, value_name = "NAME")]
    user: Option<String>,
    /// Try the user's password too, read from the first line of standard input
    #[arg(long, requires = "user")]
    password_stdin: bool,
}

pub(super) async fn run_ldap_verb(global: &Global, verb: LdapVerb) -> Result<VerbResult> {
    let LdapVerb::Check(args) = verb;
    let (config, lang) = (global.config()?, global.language());
    if !config.ldap.is_on() {
        return Err(BadInput(
            match lang {
                Lang::En => {
                    "ldap.urls is empty, so there is no directory; see [ldap] in docs/users.md"
                }
                Lang::Zh => "ldap.urls 为空，未配置目录；参见 docs/users.md 的 [ldap]",
            }
            .to_owned(),
        )
        .into());
    }
    let password = match args.password_stdin {
        true => Some(read_password()?),
        false => None,
    };
    let now: Millis = Clock::system().now();
    let check = DirectoryCheck { user: args.user, password, now };
    let steps = check_directory(&config.ldap, &check).await;
    let is_well = steps.iter().all(|step| step.ok);
    if global.json {
        out::document(&steps)?;
    } else {
        out::lines(steps.iter().map(|step| describe(step, lang)));
    }
    Ok(if is_well { VerbResult::Well } else { VerbResult::Unwell })
}

fn describe(step: &DirectoryStep, lang: Lang) -> String {
    let mark = match (step.ok, lang) {
        (true, Lang::En) => "ok",
        (true, Lang::Zh) => "正常",
        (false, Lang::En) => "FAILED",
        (false, Lang::Zh) => "失败",
    };
    let label = match (step.step, lang) {
        ("settings", Lang::Zh) => "设置",
        ("server", Lang::Zh) => "服务器",
        ("bind", Lang::Zh) => "绑定",
        ("user", Lang::Zh) => "用户",
        ("password", Lang::Zh) => "密码",
        ("account", Lang::Zh) => "账号",
        ("state", Lang::Zh) => "状态",
        ("groups", Lang::Zh) => "组",
        ("grants", Lang::Zh) => "授权",
        (step, _) => step,
    };
    format!("{mark}\t{label}\t{}", out::clean(&step.found))
}

fn read_password() -> Result<SecretString> {
    let mut line = String::new();
    let read = std::io::stdin().lock().read_line(&mut line);
    read.context("read the password from standard input")?;
    Ok(line.trim_end_matches(['\r', '\n']).into())
}
