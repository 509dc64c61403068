//! Imports Azkaban: a flow becomes a group. Reads projects of Flow 1.0 (`.job` and `.properties`) and 2.0 (`.flow`), as
//! zip, directory or single files.

mod condition;
pub(super) mod config;
mod flow1;
pub(super) mod flow2;
mod job;
mod passwords;
pub(super) mod properties;
pub(super) mod trigger;

use crate::domain::id::{GroupCode, JobCode};
use crate::domain::job::trigger_rule::EdgeCondition;
use crate::import::Given;
use crate::import::draft::Draft;
use crate::import::note::{ImportOrigin, Level};
use crate::import::tally::CountedKind;
use crate::import::unzip::{is_zip, unzip};
use std::collections::{BTreeSet, HashMap};

/// A node of a flow: a job, or a nested flow.
#[derive(Clone, Debug)]
pub(crate) struct FlowNode {
    at: ImportOrigin,
    name: String,
    kind: String,
    /// Its own properties, in order.
    config: Vec<(String, String)>,
    parents: Vec<(ImportOrigin, String)>,
    condition: Option<(ImportOrigin, String)>,
    nodes: Vec<FlowNode>,
    /// Flow 1.0: whether Azkaban reads the e-mail settings of the flow from this job.
    is_last: bool,
}

/// A flow, with the properties for all its nodes.
#[derive(Clone, Debug)]
pub(crate) struct AzkabanFlow {
    at: ImportOrigin,
    name: String,
    config: Vec<(String, String)>,
    nodes: Vec<FlowNode>,
    /// Only Flow 2.0 has one.
    trigger: Option<trigger::FlowTrigger>,
}

/// The flow to which a node belongs.
pub(crate) struct FlowContext<'a> {
    group: &'a GroupCode,
    flow: &'a AzkabanFlow,
    /// Groups by the names of their flows.
    groups: &'a HashMap<String, GroupCode>,
    /// Whether the project has files that commands may use.
    files: ProjectFiles,
}

/// Whether a project contains more than definitions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ProjectFiles {
    None,
    Some,
}

/// Reads projects.
pub(crate) fn read_projects(given: &[Given], draft: &mut Draft) {
    let files = without_mac_metadata(unpacked(given, draft), draft);
    let is = |file: &Given, end: &str| file.path.to_ascii_lowercase().ends_with(end);
    let mut flows = Vec::new();
    for file in files.iter().filter(|f| is(f, ".flow")) {
        flows.extend(flow2::read_flow(file, draft));
    }
    let (jobs, others): (Vec<&Given>, Vec<&Given>) =
        files.iter().filter(|f| !is(f, ".flow")).partition(|f| is(f, ".job"));
    let (shared, others): (Vec<&Given>, Vec<&Given>) =
        others.into_iter().partition(|f| is(f, ".properties"));
    flows.extend(flow1::flows(&jobs, &shared, draft));
    passwords::take_out(&mut flows, draft);
    if flows.is_empty() && draft.is_sound() {
        let at = ImportOrigin::new(given.first().map_or("", |g| &g.path), 0);
        draft.fault(&at, "there is no .job and no .flow with nodes in it", "give a project's zip");
        return;
    }
    let (projects, others): (Vec<&Given>, Vec<&Given>) =
        others.into_iter().partition(|f| is(f, ".project"));
    for file in projects {
        // It states the version of the flows, which their files show as well.
        draft.note_record_key(&file.path, "azkaban-flow-version");
    }
    for file in &others {
        draft.beside(&format!("files/{}", inside(&file.path, given)), file.bytes.clone());
    }
    let has = if others.is_empty() { ProjectFiles::None } else { ProjectFiles::Some };
    let groups: HashMap<String, GroupCode> = match &flows[..] {
        [only] => [(only.name.clone(), draft.only_group(&only.name))].into(),
        all => all.iter().map(|flow| (flow.name.clone(), draft.group(&flow.name))).collect(),
    };
    for flow in &flows {
        let Some(group) = groups.get(&flow.name) else { continue };
        job::of_group(flow, group, has, draft);
        config::check_flow(flow, draft);
        let around = FlowContext { group, flow, groups: &groups, files: has };
        let waits = trigger::add_waits(flow, group, draft);
        let inside = Inside { prefix: "", above: &waits, rule: None };
        level(&flow.nodes, &inside, &around, draft);
        trigger::add_schedule(flow, group, draft);
    }
    of_the_whole(&flows, draft);
}

fn of_the_whole(flows: &[AzkabanFlow], draft: &mut Draft) {
    let Some(first) = flows.first() else { return };
    let at = ImportOrigin::new(&first.at.file, 0);
    let unscheduled: Vec<&str> =
        flows.iter().filter(|f| f.trigger.is_none()).map(|f| f.name.as_str()).collect();
    if !unscheduled.is_empty() {
        draft.note(
            Level::Look,
            &at, "",
            (
                format!(
                    "no trigger in these files starts {}; schedules that were set in Azkaban's console are in its \
                     database",
                    unscheduled.join(", ")
                ),
                format!(
                    "文件中没有触发器启动 {};在 Azkaban 页面设置的调度保存在其数据库中",
                    unscheduled.join("、")
                ),
            ),
            (
                "add schedules: to the file, or procession schedule add",
                "请在文件中添加 schedules:,或使用 procession schedule add",
            ),
        );
    }
    draft.note(
        Level::Differs,
        &at, "",
        ("Azkaban starts commands without a shell; here sh runs them, to which * > | and $ mean something",
         "Azkaban 直接启动命令,不经过 shell;此处由 sh 执行,* > | $ 等字符有特殊含义"),
        ("", ""),
    );
}

/// The files of all archives, and those given individually.
fn unpacked(given: &[Given], draft: &mut Draft) -> Vec<Given> {
    let mut files = Vec::new();
    for file in given {
        if !is_zip(&file.bytes) || file.path.to_ascii_lowercase().ends_with(".jar") {
            files.push(file.clone());
            continue;
        }
        match unzip(&file.bytes) {
            Ok(inside) => files.extend(
                inside
                    .into_iter()
                    .map(|(name, bytes)| Given { path: format!("{}/{name}", file.path), bytes }),
            ),
            Err(why) => draft.fault(&ImportOrigin::new(&file.path, 0), why, "make the zip anew"),
        }
    }
    files
}

/// Removes the metadata that macOS adds to archives and directories.
fn without_mac_metadata(files: Vec<Given>, draft: &mut Draft) -> Vec<Given> {
    let (metadata, files): (Vec<Given>, Vec<Given>) =
        files.into_iter().partition(|file| is_mac_metadata(&file.path));
    if let Some(first) = metadata.first() {
        let count = metadata.len();
        draft.note(
            Level::LeftOut,
            &ImportOrigin::new(&first.path, 0),
            "",
            (
                format!("{count} entries that macOS adds are left out: __MACOSX/, ._*, .DS_Store"),
                format!("未迁移 macOS 附加的 {count} 个条目:__MACOSX/、._*、.DS_Store"),
            ),
            ("", ""),
        );
    }
    files
}

fn is_mac_metadata(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    name.starts_with("._") || name == ".DS_Store" || path.split('/').any(|part| part == "__MACOSX")
}

/// A path relative to the input: the archive, or the common directory of all files.
fn inside<'a>(path: &'a str, given: &[Given]) -> &'a str {
    let archives = given.iter().filter(|g| is_zip(&g.bytes));
    let cut = archives.filter_map(|g| path.strip_prefix(g.path.as_str())).next();
    if let Some(below) = cut {
        return below.trim_start_matches('/');
    }
    let mut folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
    while !given.iter().all(|g| g.path.starts_with(folder)) {
        folder = folder.rsplit_once('/').map_or("", |(above, _)| above);
    }
    path.strip_prefix(folder).unwrap_or(path).trim_start_matches('/')
}

/// A nested flow whose nodes are being built.
struct Inside<'a> {
    prefix: &'a str,
    /// The jobs that its first nodes wait for.
    above: &'a [JobCode],
    /// The condition of the flow, which applies to its first nodes.
    rule: Option<condition::ConditionRule>,
}

/// Builds the nodes of one level; those without a parent wait for `above`. Returns the codes of each node by name: for
/// a nested flow, those of its last jobs.
fn level(
    nodes: &[FlowNode],
    inside: &Inside<'_>,
    around: &FlowContext<'_>,
    draft: &mut Draft,
) -> HashMap<String, Vec<JobCode>> {
    let mut seen: HashMap<&str, &ImportOrigin> = HashMap::new();
    for node in nodes {
        if let Some(first) = seen.insert(&node.name, &node.at) {
            let what = format!("node {} is there twice, first at {first}", node.name);
            draft.fault(&node.at, what, "rename one of the two");
            return HashMap::new();
        }
    }
    for (node, (at, parent)) in nodes.iter().flat_map(|n| n.parents.iter().map(move |p| (n, p))) {
        if !seen.contains_key(parent.as_str()) {
            let what = format!("{} depends on {parent}, which is not defined", node.name);
            draft.fault(at, what, "define it, or take the dependency out");
            return HashMap::new();
        }
        if node.name == *parent {
            draft.fault(at, format!("{parent} depends on itself"), "take the dependency out");
            return HashMap::new();
        }
    }
    let mut last: HashMap<String, Vec<JobCode>> = HashMap::new();
    let order = in_order(nodes).unwrap_or_else(|ring| {
        let names: Vec<&str> = ring.iter().map(|n| n.name.as_str()).collect();
        let names = names.join(" -> ");
        let what =
            format!("these nodes wait for one another in a circle: {names} -> {}", ring[0].name);
        draft.fault(&ring[0].at, what, "take one of these dependencies out");
        Vec::new()
    });
    for node in order {
        let own = node.parents.iter().filter_map(|(_, p)| last.get(p)).flatten();
        let mut waits: Vec<JobCode> = own.cloned().collect();
        if node.parents.is_empty() {
            waits.extend_from_slice(inside.above);
        }
        let title = format!("{}{}", inside.prefix, node.name);
        let outer = inside.rule.clone().filter(|_| node.parents.is_empty());
        if node.nodes.is_empty() {
            draft.begin_item(CountedKind::Job, &node.at, &title);
            let rule =
                outer.unwrap_or_else(|| condition::read_condition(node, nodes, &last, draft));
            config::check_node(node, around, draft);
            let made = job::make_job(node, &title, rule, around, draft);
            waits.iter().for_each(|parent| draft.depends(&made, parent, EdgeCondition::Success));
            draft.end_item();
            last.insert(node.name.clone(), vec![made]);
            continue;
        }
        let own =
            node.condition.as_ref().map(|_| condition::read_condition(node, nodes, &last, draft));
        let prefix = format!("{title}.");
        let within = Inside { prefix: &prefix, above: &waits, rule: outer.or(own) };
        let inner = level(&node.nodes, &within, around, draft);
        let waited: BTreeSet<&str> =
            node.nodes.iter().flat_map(|n| n.parents.iter().map(|(_, p)| p.as_str())).collect();
        let ends = node.nodes.iter().filter(|n| !waited.contains(n.name.as_str()));
        let ends = ends.filter_map(|n| inner.get(&n.name)).flatten().cloned().collect();
        last.insert(node.name.clone(), ends);
    }
    last
}

/// Sorts parents first; returns nodes that wait for each other, in that order, if there is a cycle.
fn in_order(nodes: &[FlowNode]) -> Result<Vec<&FlowNode>, Vec<&FlowNode>> {
    let mut made: BTreeSet<&str> = BTreeSet::new();
    let mut order: Vec<&FlowNode> = Vec::with_capacity(nodes.len());
    let mut left: Vec<&FlowNode> = nodes.iter().collect();
    while !left.is_empty() {
        let (ready, wait): (Vec<&FlowNode>, Vec<&FlowNode>) =
            left.iter().partition(|n| n.parents.iter().all(|(_, p)| made.contains(p.as_str())));
        if ready.is_empty() {
            return Err(find_ring(&wait));
        }
        made.extend(ready.iter().map(|n| n.name.as_str()));
        order.extend(ready);
        left = wait;
    }
    Ok(order)
}

/// A cycle among nodes of which each waits for another.
fn find_ring<'a>(nodes: &[&'a FlowNode]) -> Vec<&'a FlowNode> {
    let by_name: HashMap<&str, &FlowNode> = nodes.iter().map(|n| (n.name.as_str(), *n)).collect();
    let mut path: Vec<&FlowNode> = vec![nodes[0]];
    loop {
        let last = path[path.len() - 1];
        let mut parents = last.parents.iter().filter_map(|(_, p)| by_name.get(p.as_str()));
        let Some(next) = parents.next() else { return path };
        if let Some(start) = path.iter().position(|n| n.name == next.name) {
            let mut found = path.split_off(start);
            found.reverse();
            return found;
        }
        path.push(next);
    }
}
