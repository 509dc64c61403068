//! Control-M, as its Automation API writes and reads it (JSON), or in the XML of older releases: a folder is a group, or one for
//! each set of days on which its jobs run, and events become dependencies.
//! Story order: keys, days (on which days), variables (`%%NAME`), body (what a job runs), actions (what follows its end), events
//! (which are added and waited for), job_flow (what runs after what), xml (older files, as the same maps).

mod actions;
mod body;
mod days;
mod events;
mod job_flow;
pub(super) mod keys;
mod variables;
mod xml;

use crate::definition::{Located, NodeValue, SourceNode};
use crate::domain::id::{GroupCode, JobCode};
use crate::domain::job::JobDef;
use crate::domain::schedule::misfire::MisfirePolicy;
use crate::domain::schedule::overlap::Overlap;
use crate::domain::schedule::read_zone;
use crate::domain::schedule::trigger::TriggerWords;
use crate::import::Given;
use crate::import::body::text;
use crate::import::draft::{Draft, LONGEST_SEC};
use crate::import::keys::{KnownKey, check_keys};
use crate::import::note::{ImportOrigin, Level};
use crate::import::schedule::SourceScheduleState;
use crate::import::tally::{CountedKind, ItemId};
use crate::import::tree::{entries, get, list, origin, tree, word};
use days::CtmDays;
use job_flow::CtmFlows;
use std::collections::BTreeMap;

/// A job with its context.
pub(super) struct CtmJob<'a> {
    node: &'a SourceNode,
    at: ImportOrigin,
    /// Name within the folder; for a job of a sub-folder, with the sub-folder's names.
    name: String,
    /// Its own map, then those of its folders from the innermost to the outermost, then the defaults.
    scopes: Vec<&'a SourceNode>,
    kind: &'a str,
    days: CtmDays,
    item: ItemId,
}

impl<'a> CtmJob<'a> {
    /// The value of a key in the job, or in the innermost scope around it that has the key.
    fn find_key(&self, key: &str) -> Option<&'a SourceNode> {
        self.scopes.iter().find_map(|scope| get(scope, key))
    }

    fn find_word(&self, key: &str) -> Option<&'a str> {
        self.find_key(key)
            .and_then(crate::import::tree::plain)
            .map(str::trim)
            .filter(|w| !w.is_empty())
    }
}

/// A folder with its jobs.
struct CtmFolder<'a> {
    node: &'a SourceNode,
    at: ImportOrigin,
    name: &'a str,
    jobs: Vec<CtmJob<'a>>,
    /// Jobs of flows, in order, by name.
    flows: Vec<(String, String)>,
}

/// The result of converting a job.
#[derive(Clone, Debug)]
struct ConvertedJob {
    code: JobCode,
    group: GroupCode,
    /// Whether its batches are numbered by time, because it runs several times a day.
    is_cyclic: bool,
}

/// Imports files of folders.
pub(crate) fn read_folders(given: &[Given], draft: &mut Draft) {
    let mut roots = Vec::new();
    for file in given {
        let Some(text) = text(file, draft) else { continue };
        if text.trim_start().starts_with('<') {
            roots.extend(xml::read_tree(&file.path, text, draft));
            continue;
        }
        roots.extend(tree(&file.path, text, draft));
    }
    let profiles = body::Profiles::read_profiles(&roots);
    let mut folders = Vec::new();
    for root in &roots {
        let defaults = get(root, "Defaults");
        for (name, node) in entries(root).filter(|(name, _)| *name != "Defaults") {
            match word(node, "Type").unwrap_or_default() {
                "Folder" | "SimpleFolder" => folders.push(folder(name, node, defaults, draft)),
                kind if kind.starts_with("ConnectionProfile") => {}
                kind => note_other(name, kind, node, draft),
            }
        }
        if let Some(defaults) = defaults {
            check_defaults(defaults, draft);
        }
    }
    if folders.is_empty() && draft.is_sound() {
        let at = given
            .first()
            .map_or_else(ImportOrigin::default, |file| ImportOrigin::new(&file.path, 0));
        draft.fault(
            &at,
            "there is no folder here",
            "give what ctm deploy jobs::get writes, or exported folders as XML",
        );
        return;
    }
    make_definitions(&folders, &profiles, draft);
}

/// Checks the keys of the defaults, and of those for a type of job.
fn check_defaults(defaults: &SourceNode, draft: &mut Draft) {
    check_untyped_keys(defaults, &[keys::INHERITED, keys::DEFAULTS], "Defaults", draft);
    for (name, node) in entries(defaults).filter(|(name, _)| name.starts_with("Job")) {
        check_keys(node, &[keys::INHERITED, keys::DEFAULTS], &format!("Defaults {name}"), draft);
    }
}

fn note_other(name: &str, kind: &str, node: &SourceNode, draft: &mut Draft) {
    let kind: String = kind.chars().take(60).collect();
    let said = if kind.starts_with("Calendar") {
        (
            format!("calendar {name} is left out: calendars are kept beside definitions"),
            format!("日历 {name} 未迁移:日历不在定义文件中"),
        )
    } else {
        (
            format!("{name} ({kind:?}) is left out: it is no folder"),
            format!("{name}({kind:?})未迁移:它不是文件夹"),
        )
    };
    let cure = if kind.starts_with("Calendar") {
        (
            "procession calendar import makes one of its days",
            "可用 procession calendar import 导入其日期",
        )
    } else {
        ("", "")
    };
    draft.note(Level::LeftOut, &origin(node), name, said, cure);
}

/// Reads a folder with the jobs in it and in its sub-folders.
fn folder<'a>(
    name: &'a str,
    node: &'a SourceNode,
    defaults: Option<&'a SourceNode>,
    draft: &mut Draft,
) -> CtmFolder<'a> {
    check_untyped_keys(node, &[keys::INHERITED, keys::ANY, keys::FOLDER], name, draft);
    let mut found = CtmFolder { node, at: origin(node), name, jobs: Vec::new(), flows: Vec::new() };
    collect(node, "", &[node], defaults, &mut found, draft);
    found
}

/// Checks keys other than jobs, events, flows, resources or actions, whose maps have a type.
pub(super) fn check_untyped_keys(
    node: &SourceNode,
    tables: &[&[KnownKey]],
    about: &str,
    draft: &mut Draft,
) {
    let own = entries(node)
        .filter(|(name, value)| get(value, "Type").is_none() && !name.starts_with("Job:"))
        .filter(|(name, value)| *name != "Job" || !matches!(value.value, NodeValue::Map(_)));
    let own =
        own.map(|(key, value)| (Located::new(&node.at, key.to_owned()), value.clone())).collect();
    check_keys(
        &SourceNode { at: node.at.clone(), value: NodeValue::Map(own) },
        tables,
        about,
        draft,
    );
}

fn collect<'a>(
    node: &'a SourceNode,
    prefix: &str,
    scopes: &[&'a SourceNode],
    defaults: Option<&'a SourceNode>,
    found: &mut CtmFolder<'a>,
    draft: &mut Draft,
) {
    for (key, value) in entries(node) {
        if key == "Jobs" {
            for one in list(value) {
                let name = word(one, "Name").unwrap_or("job");
                read_job(&format!("{prefix}{name}"), one, scopes, defaults, found, draft);
            }
            continue;
        }
        let name = format!("{prefix}{key}");
        match word(value, "Type").unwrap_or_default() {
            kind if kind.starts_with("Job") => {
                read_job(&name, value, scopes, defaults, found, draft)
            }
            "SubFolder" => {
                check_untyped_keys(
                    value,
                    &[keys::INHERITED, keys::ANY, keys::FOLDER],
                    &name,
                    draft,
                );
                let inner: Vec<&SourceNode> =
                    std::iter::once(value).chain(scopes.iter().copied()).collect();
                collect(value, &format!("{name}."), &inner, defaults, found, draft);
            }
            "Flow" => {
                let all: Vec<String> = crate::import::tree::items(value, "Sequence")
                    .iter()
                    .filter_map(crate::import::tree::plain)
                    .map(|one| format!("{prefix}{one}"))
                    .collect();
                found.flows.extend(all.windows(2).map(|pair| (pair[0].clone(), pair[1].clone())));
            }
            "" | "WaitForEvents" => {}
            "DeleteEvents" => draft.note_record_key(&found.at.file, "DeleteEvents"),
            kind => {
                let kind: String = kind.chars().take(60).collect();
                let said = (
                    format!(
                        "{kind:?} of a folder is left out: here events, resources and actions are those of jobs"
                    ),
                    format!("文件夹的 {kind:?} 未迁移:此处事件、资源和动作属于作业"),
                );
                let cure = ("write it at the jobs that it is about", "请写到相关作业上");
                draft.note(Level::LeftOut, &origin(value), &name, said, cure);
            }
        }
    }
}

fn read_job<'a>(
    name: &str,
    node: &'a SourceNode,
    scopes: &[&'a SourceNode],
    defaults: Option<&'a SourceNode>,
    found: &mut CtmFolder<'a>,
    draft: &mut Draft,
) {
    let at = origin(node);
    let kind = word(node, "Type").unwrap_or("Job");
    let mut all = vec![node];
    all.extend(scopes);
    if let Some(defaults) = defaults {
        all.extend(get(defaults, kind));
        all.extend(get(defaults, "Job"));
        all.push(defaults);
    }
    let item = draft.begin_item(CountedKind::Job, &at, name);
    let days = CtmDays::read_days(&all, name, draft);
    draft.end_item();
    found.jobs.push(CtmJob { node, at, name: name.to_owned(), scopes: all, kind, days, item });
}

/// Creates the groups, jobs, dependencies and schedules of all folders.
fn make_definitions(folders: &[CtmFolder<'_>], profiles: &body::Profiles, draft: &mut Draft) {
    let made = folders.iter().map(|folder| make_jobs(folder, profiles, draft)).collect();
    CtmFlows::read_flows(folders, made, draft).push_jobs(draft);
    note_whole(folders, draft);
}

/// Creates the jobs of a folder, each in the group for the days on which it runs; a group has one schedule.
fn make_jobs(
    folder: &CtmFolder<'_>,
    profiles: &body::Profiles,
    draft: &mut Draft,
) -> Vec<(ConvertedJob, JobDef)> {
    let mut groups: BTreeMap<String, GroupCode> = BTreeMap::new();
    let mut made = Vec::new();
    for job in &folder.jobs {
        let key = job.days.group_key(&job.name);
        let group = match groups.get(&key) {
            Some(group) => group.clone(),
            None => {
                let title = if groups.is_empty() {
                    folder.name.to_owned()
                } else {
                    format!("{}_{}", folder.name, job.days.title(&job.name))
                };
                let group = make_group(folder, job, &title, draft);
                groups.insert(key, group.clone());
                group
            }
        };
        draft.resume_item(job.item);
        let def = body::make_job(job, &group, profiles, draft);
        let is_cyclic = job.days.is_cyclic();
        made.push((ConvertedJob { code: def.code.clone(), group, is_cyclic }, def));
    }
    draft.end_item();
    if groups.len() > 1 {
        let said = (
            format!(
                "its jobs run on {} different sets of days, so it is as many groups here, each with its schedule; what waits \
                 for a job of another group waits for that group's batch of the same day",
                groups.len()
            ),
            format!(
                "其作业有 {} 种不同的运行日期,因此拆成同样多的作业组,各有调度;跨组依赖等待同一天的批次",
                groups.len()
            ),
        );
        draft.note(Level::Differs, &folder.at, folder.name, said, ("", ""));
    }
    made
}

fn make_group(
    folder: &CtmFolder<'_>,
    job: &CtmJob<'_>,
    title: &str,
    draft: &mut Draft,
) -> GroupCode {
    draft.end_item();
    let group = draft.group(title);
    let word = job.find_word("TimeZone");
    let zone = word.and_then(|word| read_zone(word).ok());
    let description = crate::import::tree::word(folder.node, "Description").unwrap_or_default();
    if let Some(made) = draft.group_mut(&group) {
        if let Some(zone) = zone {
            made.time_zone = Some(zone.name().to_owned());
        }
        let line = description.split_whitespace().collect::<Vec<_>>().join(" ");
        if !line.is_empty() {
            made.name = line.chars().filter(|c| !c.is_control()).take(200).collect();
        }
    }
    if let (Some(word), None) = (word, zone) {
        let said = (
            format!(
                "TimeZone {word} is a name that Control-M defines itself: times are in the zone of the import"
            ),
            format!("TimeZone {word} 由 Control-M 自行定义:此处按导入时的时区"),
        );
        let cure = ("write time_zone in the group", "请在作业组中填写 time_zone");
        draft.note(Level::Look, &folder.at, title, said, cure);
    }
    schedule(folder, job, &group, title, draft);
    draft.end_item();
    group
}

fn schedule(
    folder: &CtmFolder<'_>,
    job: &CtmJob<'_>,
    group: &GroupCode,
    title: &str,
    draft: &mut Draft,
) {
    draft.begin_item(CountedKind::Schedule, &folder.at, title);
    let timings = match job.days.timings() {
        Ok(timings) => timings,
        Err(why) => {
            let cure = (
                format!("procession schedule add CODE --group {group} …"),
                format!("请另行添加:procession schedule add CODE --group {group} …"),
            );
            draft.note(Level::LeftOut, &folder.at, title, why, cure);
            return;
        }
    };
    let method = crate::import::tree::word(folder.node, "OrderMethod").unwrap_or("Automatic");
    if !["Automatic", "Manual", "None"].contains(&method) {
        let said = (
            format!(
                "OrderMethod {method} (a user daily of its own) orders it at a time of its own; here it is opened at 00:00"
            ),
            format!("OrderMethod {method}(专用 User Daily)在其自定时间下单;此处 00:00 打开"),
        );
        draft.note(Level::Look, &folder.at, title, said, ("correct its cron", "请修改其 cron"));
    }
    let firing = if ["Manual", "None"].contains(&method) {
        SourceScheduleState::Off
    } else {
        SourceScheduleState::On
    };
    let is_cyclic = job.days.is_cyclic();
    for timing in timings {
        let words = TriggerWords {
            code: title.to_owned(),
            group: Some(group.clone()),
            timing,
            batch_no: (!is_cyclic).then(|| "day(0)".to_owned()),
            misfire: Some(if is_cyclic { MisfirePolicy::Skip } else { MisfirePolicy::Once }),
            overlap: Some(if is_cyclic { Overlap::Skip } else { Overlap::Parallel }),
            ..TriggerWords::default()
        };
        draft.schedule(&folder.at, words, firing);
    }
}

/// Reports what concerns all folders.
fn note_whole(folders: &[CtmFolder<'_>], draft: &mut Draft) {
    let Some(first) = folders.first() else { return };
    let at = ImportOrigin::new(&first.at.file, 0);
    draft.note(
        Level::Look,
        &at, "",
        (
            "a day of Control-M begins at the New Day time of its server, which no file says: here batches are opened at 00:00, \
             FromTime is schedule_time on that day, and a job whose FromTime is before the New Day time ran a day later",
            "Control-M 的一天从服务器的 New Day 时间开始,文件中没有写明:此处批次在 00:00 打开,FromTime 为当天的 schedule_time;\
             FromTime 早于 New Day 时间的作业原本在次日运行",
        ),
        (
            "move the cron of the schedules to the New Day time, and look at jobs that run before it",
            "请将调度的 cron 改为 New Day 时间,并检查在此之前运行的作业",
        ),
    );
    draft.note(
        Level::Differs,
        &at, "",
        (
            format!("Control-M limits no run: time-outs are {LONGEST_SEC} s (30 days) here, the longest there is"),
            "Control-M 不限制运行时长:此处超时设为上限 30 天".to_owned(),
        ),
        ("set timeout_sec to what a run may take", "请将 timeout_sec 设为合理时长"),
    );
    if draft.asked.zone.is_none() {
        draft.note(
            Level::Look,
            &at, "",
            (
                "Control-M goes by the clock of its server: times here are UTC where no TimeZone is known",
                "Control-M 使用其服务器的时区:没有可识别的 TimeZone 时,此处按 UTC 计",
            ),
            (
                "import again with --zone, such as --zone Asia/Shanghai",
                "请加 --zone 重新导入,例如 --zone Asia/Shanghai",
            ),
        );
    }
}
