//! `node list | drain | undrain`: the processes that share a database, and whether they take new work.

use crate::app::{self, App, EmptyDatabase};
use crate::cli::batch::server_now;
use crate::cli::{BadInput, Global, VerbResult, out};
use crate::domain::job::script_isolation::ScriptIsolationReport;
use crate::domain::text::lang::Lang;
use crate::domain::text::{MESSAGE_MAX, storable};
use crate::domain::time::{Millis, span_words};
use crate::engine::operate::operator_actions::operator_here;
use crate::store::audit::AuditEntry;
use crate::store::node::{NodeMember, Stay};
use crate::store::{self, audit};
use crate::view::node::{ENDED_MS, Members, is_double, roles, short, state};
use anyhow::{Context as _, Result};
use clap::Subcommand;
use serde_json::json;
use std::collections::BTreeMap;

/// Verbs of `node`.
#[derive(Subcommand)]
pub(super) enum NodeVerb {
    /// The processes that live: what they are for, what they run
    List {
        /// Those that ended within the last day as well
        #[arg(long)]
        all: bool,
    },
    /// What scripts are kept from on a node: isolation, users, limits
    Scripts {
        /// Its name, or how its id begins; every living one without
        node: Option<String>,
    },
    /// Let a node take nothing new: no batches, no jobs; what it has goes on
    Drain {
        /// Its name, or how its id begins
        node: String,
        /// Why; kept in the audit log
        #[arg(long)]
        reason: String,
    },
    /// Let a node take new work again
    Undrain {
        /// Its name, or how its id begins
        node: String,
        /// Why; kept in the audit log
        #[arg(long)]
        reason: String,
    },
}

pub(super) async fn run_node_verb(global: &Global, verb: NodeVerb) -> Result<VerbResult> {
    let app = global.open_app(EmptyDatabase::Refuse).await?;
    match verb {
        NodeVerb::List { all } => list_nodes(global, &app, if all { ENDED_MS } else { 0 }).await?,
        NodeVerb::Scripts { node } => show_scripts(global, &app, node.as_deref()).await?,
        NodeVerb::Drain { node, reason } => {
            mark_node(global, &app, &node, Stay::Leaves, &reason).await?;
        }
        NodeVerb::Undrain { node, reason } => {
            mark_node(global, &app, &node, Stay::Stays, &reason).await?;
        }
    }
    app.close().await;
    Ok(VerbResult::Well)
}

async fn list_nodes(global: &Global, app: &App, back_ms: i64) -> Result<()> {
    let now = server_now(app).await?;
    let mut tx = app.db.begin_read().await?;
    let read = Members::read_members(&mut tx, back_ms, now).await?;
    drop(tx);
    if global.json {
        return out::document(&read.details());
    }
    let members = &read.all;
    let lang = global.language();
    if members.is_empty() {
        out::print_line(lang.select("No process lives", "没有存活的进程"));
        return Ok(());
    }
    let rows = members.iter().map(|m| render_row(m, read.batches_of(m), now)).collect();
    let header = match lang {
        Lang::En => [
            "NODE", "LIFE", "ID", "WHERE", "ROLES", "LABELS", "RUNS", "BATCHES", "HEARD", "LEASE",
            "SKEW", "STATE", "SCRIPTS", "VERSION",
        ],
        Lang::Zh => [
            "节点",
            "第几次",
            "标识",
            "位置",
            "角色",
            "标签",
            "运行",
            "批次",
            "心跳",
            "租约",
            "时差",
            "状态",
            "脚本",
            "版本",
        ],
    };
    out::print_line(&out::table(&header, rows));
    for member in members.iter().filter(|m| is_double(m, members, now)) {
        let (name, id) = (&member.offer.name, short(&member.node.node_id));
        out::eprint_line(&match lang {
            Lang::En => format!(
                "node {name} (id {id}): another living process has the same name; give each its own: \
                 serve --name NAME"
            ),
            Lang::Zh => {
                format!("节点 {name}（标识 {id}）：另有存活进程同名；请分别命名：serve --name 名称")
            }
        });
    }
    Ok(())
}

fn render_row(member: &NodeMember, batches: usize, now: Millis) -> Vec<String> {
    let left = member.node.lease_until.since(now);
    let roles = match roles(member) {
        none if none.is_empty() => "run".to_owned(),
        some => some.join(","),
    };
    vec![
        member.offer.name.clone(),
        member.offer.incarnation.to_string(),
        short(&member.node.node_id).to_owned(),
        format!("{}/{}", member.node.host, member.node.pid),
        roles,
        member.offer.labels.join(","),
        format!("{}/{}", member.said.running, member.offer.max_parallel),
        batches.to_string(),
        span_words(now.since(member.heartbeat_at).max(0)),
        if left > 0 { span_words(left) } else { "-".to_owned() },
        format!("{} ms", member.said.skew_ms),
        state(member, now).to_owned(),
        scripts_word(member),
        member.version.clone(),
    ]
}

/// The script isolation in one word.
fn scripts_word(member: &NodeMember) -> String {
    match &member.script_isolation {
        None => "-".to_owned(),
        Some(report) if report.equals_service => "service".to_owned(),
        Some(report) => report.holds.clone(),
    }
}

async fn show_scripts(global: &Global, app: &App, which: Option<&str>) -> Result<()> {
    let now = server_now(app).await?;
    let mut tx = app.db.begin_read().await?;
    let members = store::node::members_with_isolation(&mut tx, now).await?;
    drop(tx);
    let named = |m: &&NodeMember| {
        which.is_none_or(|which| m.offer.name == which || m.node.node_id.0.starts_with(which))
    };
    let found: Vec<&NodeMember> = members.iter().filter(named).collect();
    if let (Some(which), true) = (which, found.is_empty()) {
        let message = format!("no living node is called {which}, and no id begins so");
        return Err(BadInput(format!("{message}; procession node list shows them")).into());
    }
    if global.json {
        let one = |m: &&NodeMember| json!({"name": m.offer.name, "id": m.node.node_id, "scripts": m.script_isolation});
        return out::print_json(&json!(found.iter().map(one).collect::<Vec<_>>()));
    }
    for member in found {
        let name = format!("{} ({})", member.offer.name, short(&member.node.node_id));
        match &member.script_isolation {
            None => out::print_line(&match global.language() {
                Lang::En => format!("{name}: it has not tried yet, or runs no scripts"),
                Lang::Zh => format!("{name}：尚未检测，或不运行脚本"),
            }),
            Some(report) => out::print_line(&describe_scripts(&name, report, global.language())),
        }
    }
    Ok(())
}

/// All facts about script isolation, one per line.
fn describe_scripts(name: &str, report: &ScriptIsolationReport, lang: Lang) -> String {
    let holds = match (report.holds.as_str(), lang) {
        ("files", Lang::En) => "other processes and all files that are not allowed",
        ("files", Lang::Zh) => "其他进程及未允许的文件",
        ("processes", Lang::En) => "other processes and Procession's own files",
        ("processes", Lang::Zh) => "其他进程及 Procession 自身的文件",
        ("refused", Lang::En) => "nothing: every script is refused",
        ("refused", Lang::Zh) => "无：所有脚本都被拒绝",
        (_, Lang::En) => "nothing",
        (_, Lang::Zh) => "无",
    };
    let pairs = |map: &BTreeMap<String, String>| -> String {
        let all: Vec<String> = map.iter().map(|(group, what)| format!("{group}: {what}")).collect();
        if all.is_empty() { lang.select("none", "无").to_owned() } else { all.join("; ") }
    };
    let cgroups = match (&report.cgroup_obstacle, report.controllers.is_empty()) {
        (Some(why), _) => format!("{}: {why}", lang.select("none", "无")),
        (None, true) => {
            lang.select("end scripts, and limit nothing here", "仅用于终止脚本").to_owned()
        }
        (None, false) => report.controllers.join(", "),
    };
    let mut lines = vec![
        name.to_owned(),
        format!("  script.isolation = \"{}\"", report.isolation),
        format!("  {}: {holds}", lang.select("scripts are kept from", "脚本被隔离于")),
        format!("  {}: {}", lang.select("users", "运行用户"), pairs(&report.run_as)),
        format!("  {}: {}", lang.select("limits", "资源限制"), pairs(&report.limits)),
        format!("  {}: {cgroups}", lang.select("control groups", "控制组")),
    ];
    if report.controllers.is_empty() && !report.limits.is_empty() {
        let held = lang.select(
            "each process of a script is held for itself: memory, processor time in all",
            "按单个进程限制：内存、处理器总时间",
        );
        lines.push(format!("  {}: {held}", lang.select("without control groups", "无控制组时")));
    }
    let obstacle = report.obstacle.iter();
    lines
        .extend(obstacle.map(|why| {
            format!("  {}: {why}", lang.select("what stands against more", "阻碍原因"))
        }));
    if report.equals_service {
        let rights = lang.select(
            "scripts of groups without a user of their own can do what Procession can",
            "未指定用户的组，其脚本拥有 Procession 自身的权限",
        );
        lines.push(format!("  {}: {rights}", lang.select("warning", "警告")));
    }
    lines.join("\n")
}

/// Marks a node, which learns of it with its next heartbeat; others see it at once.
async fn mark_node(
    global: &Global,
    app: &App,
    which: &str,
    stay: Stay,
    reason: &str,
) -> Result<()> {
    let now = server_now(app).await?;
    let mut tx = app.db.begin().await?;
    let members = store::node::members_with_isolation(&mut tx, now).await?;
    let named = |m: &&NodeMember| m.offer.name == which || m.node.node_id.0.starts_with(which);
    let serves = |m: &&NodeMember| !m.offer.roles.is_empty();
    let found: Vec<&NodeMember> = members.iter().filter(named).filter(serves).collect();
    let [member] = found[..] else {
        let message = match found.len() {
            0 => format!("no living node that serves is called {which}, and no id begins so"),
            many => format!("{many} living nodes are called {which}; give the id of one"),
        };
        return Err(BadInput(format!("{message}; procession node list shows them")).into());
    };
    store::node::set_draining(&mut tx, &member.node.node_id, stay).await?;
    let action = match stay {
        Stay::Leaves => "node drain",
        Stay::Stays => "node undrain",
    };
    let entry = AuditEntry {
        action: action.to_owned(),
        group: None,
        batch: None,
        job: None,
        detail: Some(json!({"node": member.offer.name, "id": member.node.node_id})),
        reason: Some(storable(reason.as_bytes(), MESSAGE_MAX)),
    };
    let by = operator_here(&app::whoami());
    audit::record(&mut tx, &by, &[entry], now).await?;
    tx.commit().await.context("mark the node")?;
    let (name, id) = (&member.offer.name, short(&member.node.node_id));
    out::eprint_line(&match (stay, global.language()) {
        (Stay::Leaves, Lang::En) => {
            format!("node {name} ({id}) takes nothing new; what it has goes on")
        }
        (Stay::Leaves, Lang::Zh) => format!("节点 {name}（{id}）不再接受新工作；已有的继续"),
        (Stay::Stays, Lang::En) => format!("node {name} ({id}) takes new work again"),
        (Stay::Stays, Lang::Zh) => format!("节点 {name}（{id}）恢复接受新工作"),
    });
    Ok(())
}
