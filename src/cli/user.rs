//! `user add | list | set | reset-password | token | disable | remove | sessions | setup-secret`.
//! No verb takes a password as an argument: arguments appear in process lists and in shell
//! histories.

use crate::app::access::{
    Authority, Initial, NewAccount, Porter, TokenWish, UserChange, grants_document,
};
use crate::app::{self, App, EmptyDatabase};
use crate::cli::{BadInput, Global, VerbResult, out};
use crate::domain::access::user::UserName;
use crate::domain::access::{Grant, Permission, Role, Where};
use crate::domain::id::GroupCode;
use crate::domain::text::lang::Lang;
use crate::engine::operate::operator_actions::operator_here;
use crate::store::user::User;
use anyhow::{Context as _, Result};
use clap::{Args, Subcommand};
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::json;
use std::collections::BTreeSet;
use std::io::{BufRead as _, IsTerminal as _};

/// Verbs of `user`.
#[derive(Subcommand)]
pub(super) enum UserVerb {
    /// Add a user. The first password is what PROCESSION_USER_PASSWORD holds or standard input says;
    /// without either one is made and printed. It must be changed at the first login, within 72 hours
    Add(UserAddArgs),
    /// Who there is, and may do what
    List,
    /// Change a user; what is not said stays. Grants that are said take the place of all there were
    Set(UserSetArgs),
    /// Give a user a new first password, made and printed, and end all sessions of the user
    ResetPassword {
        /// Name
        name: String,
    },
    /// Remove the second factor of a user who has lost it; all sessions of the user end
    ResetMfa {
        /// Name
        name: String,
    },
    /// Make a token for programs (Authorization: Bearer …) and print it, once
    Token(TokenArgs),
    /// Keep a user out, from this moment on
    Disable {
        /// Name
        name: String,
    },
    /// Remove a user; the audit log keeps the name
    Remove {
        /// Name
        name: String,
    },
    /// Sessions of a user: end
    #[command(subcommand)]
    Sessions(SessionsVerb),
    /// Make the secret with which the first user is made in the console; an older one works no more
    SetupSecret,
}

/// Verbs of `user sessions`.
#[derive(Subcommand)]
pub(super) enum SessionsVerb {
    /// End all of them
    End {
        /// Name
        name: String,
    },
}

/// Roles and rights.
#[derive(Args)]
pub(super) struct GrantArgs {
    /// viewer, operator, author or admin
    #[arg(long, value_name = "ROLE")]
    role: Option<String>,
    /// In which group; may be given several times, in all when it is left out
    #[arg(long = "group", value_name = "GROUP", requires = "role")]
    groups: Vec<String>,
    /// Beside the role: force, script; may be given twice
    #[arg(long = "right", value_name = "RIGHT", requires = "role")]
    rights: Vec<String>,
    /// A whole grant, ROLE@GROUP or ROLE+RIGHT@GROUP, for several roles at once
    #[arg(long = "grant", value_name = "GRANT")]
    grants: Vec<String>,
}

/// Arguments of `user add`.
#[derive(Args)]
pub(super) struct UserAddArgs {
    /// The name to log in with
    name: String,
    /// The name for people
    #[arg(long, value_name = "TEXT")]
    display_name: Option<String>,
    /// No password: the user logs in with the directory ([ldap]) or at the other provider ([http.oidc])
    #[arg(long)]
    without_password: bool,
    #[command(flatten)]
    grants: GrantArgs,
}

/// Arguments of `user set`.
#[derive(Args)]
pub(super) struct UserSetArgs {
    /// Name
    name: String,
    /// The name for people
    #[arg(long, value_name = "TEXT")]
    display_name: Option<String>,
    /// Let the user in again
    #[arg(long)]
    enable: bool,
    /// Take all grants away
    #[arg(long, conflicts_with_all = ["role", "grants"])]
    no_grants: bool,
    #[command(flatten)]
    grants: GrantArgs,
}

/// Arguments of `user token`.
#[derive(Args)]
pub(super) struct TokenArgs {
    /// Whose
    user: String,
    /// What it is for
    #[arg(long, value_name = "TEXT")]
    name: String,
    /// view, run, force, edit, script or admin; may be given several times
    #[arg(long = "permission", value_name = "PERMISSION", required = true)]
    permissions: Vec<String>,
    /// In which group; may be given several times, wherever its owner may when it is left out
    #[arg(long = "group", value_name = "GROUP")]
    groups: Vec<String>,
    /// How long it lives, 1 to 366
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=366))]
    days: u32,
}

pub(super) async fn run_user_verb(global: &Global, verb: UserVerb) -> Result<VerbResult> {
    let app = global.open_app(EmptyDatabase::Refuse).await?;
    // Times are those of the database, for all its clients.
    app.server_now().await?;
    let done = run_verb(global, &app, verb).await;
    app.close().await;
    done.map(|()| VerbResult::Well)
}

async fn run_verb(global: &Global, app: &App, verb: UserVerb) -> Result<()> {
    let (porter, lang) = (app.porter(), global.language());
    let by = Authority { operator: operator_here(&app::whoami()), user: None };
    let named = |name: &str| -> Result<UserName> { Ok(UserName::parse(name)?) };
    let note = |en: String, zh: String| out::eprint_line(lang.select(&en, &zh));
    match verb {
        UserVerb::Add(args) => add_user(app, &by, args, lang).await?,
        UserVerb::List => list_users(global, &porter).await?,
        UserVerb::Set(args) => change_user(app, &by, args, lang).await?,
        UserVerb::ResetPassword { name } => {
            let made = porter.reset_password(&by, &named(&name)?, None).await?;
            first_password(&made, lang);
        }
        UserVerb::ResetMfa { name } => match porter.reset_second_factor(&by, &named(&name)?).await?
        {
            true => note(
                format!("user {name} logs in with the password alone"),
                format!("用户 {name} 现在仅凭密码登录"),
            ),
            false => {
                let (en, zh) = ("has no second factor", "没有启用双重验证");
                return Err(BadInput(format!("user {name}: {}", lang.select(en, zh))).into());
            }
        },
        UserVerb::Token(args) => token(&porter, &by, args, lang).await?,
        UserVerb::Disable { name } => {
            let change = UserChange { is_active: Some(false), ..UserChange::default() };
            porter.change_user(&by, &named(&name)?, change).await?;
            note(format!("user {name} is kept out"), format!("已停用用户 {name}"));
        }
        UserVerb::Remove { name } => {
            porter.remove_user(&by, &named(&name)?).await?;
            note(format!("user {name} is removed"), format!("已删除用户 {name}"));
        }
        UserVerb::Sessions(SessionsVerb::End { name }) => {
            let ended = porter.end_sessions(&by, &named(&name)?, None).await?;
            let (en, zh) = (out::count(usize::try_from(ended)?, "session"), ended);
            note(format!("{en} of user {name} ended"), format!("已结束用户 {name} 的 {zh} 个会话"));
        }
        UserVerb::SetupSecret => match porter.setup_secret().await? {
            Some(made) => out::print_line(made.expose_secret()),
            None => {
                let message = "there are users already; procession user add makes another";
                return Err(BadInput(
                    lang.select(message, "已有用户；请用 procession user add 添加").to_owned(),
                )
                .into());
            }
        },
    }
    Ok(())
}

/// Explains the permission `script` where scripts are not isolated from the service.
async fn warn_of_script_right(app: &App, grants: &[Grant], lang: Lang) -> Result<()> {
    if let Some(warning) = app.warn_of_script_right(grants).await? {
        out::eprint_line(&format!(
            "{}: {}",
            lang.select("warning", "警告"),
            warning.describe(lang)
        ));
    }
    Ok(())
}

async fn add_user(app: &App, by: &Authority, args: UserAddArgs, lang: Lang) -> Result<()> {
    let porter = app.porter();
    let name = UserName::parse(&args.name)?;
    let initial = match args.without_password {
        true => Initial::Elsewhere,
        false => password()?.map_or(Initial::OneTime, Initial::Password),
    };
    let display_name = args.display_name.unwrap_or_else(|| name.to_string());
    let grants = args.grants.to_grants()?;
    let (none, granted) = (grants.is_empty(), grants.clone());
    let wanted = NewAccount { name: name.clone(), display_name, lang: None, grants, initial };
    let made = porter.add_user(by, wanted).await?;
    out::eprint_line(&match lang {
        Lang::En => format!("user {name} is added"),
        Lang::Zh => format!("已添加用户 {name}"),
    });
    if none {
        out::eprint_line(lang.select(
            "it may do nothing yet; procession user set NAME --role ROLE grants",
            "该用户尚无任何权限；请用 procession user set NAME --role ROLE 授予",
        ));
    }
    warn_of_script_right(app, &granted, lang).await?;
    if let Some(made) = made {
        first_password(&made, lang);
    }
    Ok(())
}

/// The given password, if any.
fn password() -> Result<Option<SecretString>> {
    if let Ok(password) = std::env::var("PROCESSION_USER_PASSWORD") {
        return Ok(Some(password.into()));
    }
    if std::io::stdin().is_terminal() {
        return Ok(None);
    }
    let mut line = String::new();
    let read = std::io::stdin().lock().read_line(&mut line);
    read.context("read the password from standard input")?;
    let line = line.trim_end_matches(['\r', '\n']);
    Ok((!line.is_empty()).then(|| line.into()))
}

fn first_password(made: &SecretString, lang: Lang) {
    out::eprint_line(lang.select(
        "one-time password, shown now and never again; it must be changed within 72 hours:",
        "一次性密码，只显示这一次，须在 72 小时内更改：",
    ));
    out::print_line(made.expose_secret());
}

async fn change_user(app: &App, by: &Authority, args: UserSetArgs, lang: Lang) -> Result<()> {
    let name = UserName::parse(&args.name)?;
    let grants = args.grants.to_grants()?;
    let granted = grants.clone();
    let change = UserChange {
        display_name: args.display_name,
        lang: None,
        is_active: args.enable.then_some(true),
        grants: (args.no_grants || !grants.is_empty()).then_some(grants),
    };
    app.porter().change_user(by, &name, change).await?;
    out::eprint_line(&match lang {
        Lang::En => format!("user {name} is changed"),
        Lang::Zh => format!("已更改用户 {name}"),
    });
    warn_of_script_right(app, &granted, lang).await
}

async fn token(porter: &Porter, by: &Authority, args: TokenArgs, lang: Lang) -> Result<()> {
    let wish = TokenWish {
        name: args.name,
        permissions: args.permissions.iter().map(|p| permission(p)).collect::<Result<_>>()?,
        groups: match args.groups.as_slice() {
            [] => None,
            groups => Some(codes(groups)?),
        },
        days: args.days,
    };
    let owner = UserName::parse(&args.user)?;
    let (token, made) = porter.add_token(by, &owner, wish, None).await?;
    out::eprint_line(&match lang {
        Lang::En => {
            format!("token {} until {}, shown now and never again:", token.id, token.end_time)
        }
        Lang::Zh => format!("令牌 {}，有效至 {}，只显示这一次：", token.id, token.end_time),
    });
    out::print_line(made.expose_secret());
    Ok(())
}

async fn list_users(global: &Global, porter: &Porter) -> Result<()> {
    let mut all: Vec<(User, Vec<Grant>)> = Vec::new();
    loop {
        let last = all.last().map(|(user, _)| user.name.to_string()).unwrap_or_default();
        let more = porter.users(&last, 500).await?;
        if more.is_empty() {
            break;
        }
        all.extend(more);
    }
    if global.json {
        let document = |(u, grants): &(User, Vec<Grant>)| {
            json!({
                "name": u.name, "display_name": u.display_name, "is_active": u.is_active,
                "grants": grants_document(grants), "has_password": u.password.is_some(),
                "must_change_password": u.must_change,
                "directory_closed": u.directory_closed,
                "oidc_issuer": u.oidc.as_ref().map(|(issuer, _)| issuer),
                "last_login": u.last_login.map(|at| at.to_string()),
                "create_time": u.create_time.to_string(),
            })
        };
        return out::print_json(&all.iter().map(document).collect());
    }
    let row = |(u, grants): &(User, Vec<Grant>)| {
        let may: Vec<String> = grants.iter().map(words).collect();
        let last = u.last_login.map(out::local_time).unwrap_or_default();
        let lang = global.language();
        let state = match (u.is_active, &u.directory_closed) {
            (false, _) => lang.select("disabled", "已停用"),
            (true, Some(_)) => lang.select("closed in the directory", "目录中已停用"),
            (true, None) => "",
        };
        vec![u.name.to_string(), u.display_name.clone(), may.join(" "), last, state.to_owned()]
    };
    out::print_line(&out::table(
        &["USER", "NAME", "MAY", "LAST LOGIN", ""],
        all.iter().map(row).collect(),
    ));
    Ok(())
}

/// A grant in the form of `--grant`.
fn words(grant: &Grant) -> String {
    let rights: String = grant.rights.iter().map(|right| format!("+{right}")).collect();
    format!("{}{rights}@{}", grant.role, grant.place.as_str())
}

fn codes(groups: &[String]) -> Result<BTreeSet<GroupCode>> {
    groups.iter().map(|code| Ok(GroupCode::parse(code)?)).collect()
}

fn permission(word: &str) -> Result<Permission> {
    let message = || {
        let known = Permission::ALL.map(Permission::as_str).join(", ");
        BadInput(format!("there is no permission {word}; there are: {known}"))
    };
    Ok(Permission::parse(word).ok_or_else(message)?)
}

fn parse_role(word: &str) -> Result<Role> {
    let message = || {
        let known = Role::ALL.map(Role::as_str).join(", ");
        BadInput(format!("there is no role {word}; there are: {known}"))
    };
    Ok(Role::parse(word).ok_or_else(message)?)
}

fn place(word: &str) -> Result<Where> {
    Ok(match word {
        "*" => Where::Everywhere,
        code => Where::Group(GroupCode::parse(code)?),
    })
}

impl GrantArgs {
    fn to_grants(&self) -> Result<Vec<Grant>> {
        let mut grants = Vec::new();
        if let Some(word) = &self.role {
            let role = parse_role(word)?;
            let rights: BTreeSet<_> =
                self.rights.iter().map(|r| permission(r)).collect::<Result<_>>()?;
            let places = match self.groups.as_slice() {
                [] => vec![Where::Everywhere],
                groups => groups.iter().map(|code| place(code)).collect::<Result<_>>()?,
            };
            let of = |place| Grant { place, role, rights: rights.clone() };
            grants.extend(places.into_iter().map(of));
        }
        for text in &self.grants {
            let (what, at) = text.split_once('@').unwrap_or((text.as_str(), "*"));
            let mut words = what.split('+');
            let role = parse_role(words.next().unwrap_or_default())?;
            let rights = words.map(permission).collect::<Result<_>>()?;
            grants.push(Grant { place: place(at)?, role, rights });
        }
        Ok(grants)
    }
}
