//! Folders in the XML of older releases (DEFTABLE), as the map that the Automation API would write of them: one set of rules for
//! both. Attributes that have no place there are told of here.

use super::keys::{XML_FOLDER, XML_JOB};
use crate::definition::{Located, NodeValue, SourceNode, SourcePlace};
use crate::import::calendar_names::{MONTHS, WEEK};
use crate::import::columns::{RowPlace, check_pairs};
use crate::import::draft::Draft;
use crate::import::keys::KnownKey;
use crate::import::note::{ImportOrigin, Level};
use crate::import::xml::{XmlElement, read_xml};
use std::sync::Arc;

const FOLDERS: [&str; 5] = ["FOLDER", "SMART_FOLDER", "TABLE", "SMART_TABLE", "SCHED_TABLE"];
const SUB_FOLDERS: [&str; 3] = ["SUB_FOLDER", "SUB_TABLE", "SCHED_GROUP"];

/// Entries of a map in the making, all at one place.
struct MapDraft {
    at: SourcePlace,
    entries: Vec<(Located<String>, SourceNode)>,
}

impl MapDraft {
    fn new(at: &ImportOrigin) -> Self {
        let line = u32::try_from(at.line).unwrap_or(0);
        Self { at: SourcePlace::new(&Arc::from(at.file.as_str()), line), entries: Vec::new() }
    }

    fn put(&mut self, key: &str, value: NodeValue) {
        let value = SourceNode { at: self.at.clone(), value };
        self.put_node(key, value);
    }

    fn put_node(&mut self, key: &str, value: SourceNode) {
        self.entries.push((Located::new(&self.at, key.to_owned()), value));
    }

    fn put_text(&mut self, key: &str, value: Option<&str>) {
        if let Some(value) = value {
            self.put(key, NodeValue::Text(value.to_owned()));
        }
    }

    fn put_words(&mut self, key: &str, words: &[String]) {
        let item = |word: &String| SourceNode::from_text(&self.at, word.clone());
        let items = words.iter().map(item).collect();
        self.put(key, NodeValue::List(items));
    }

    fn node(self) -> SourceNode {
        SourceNode { at: self.at, value: NodeValue::Map(self.entries) }
    }

    /// A map of texts.
    fn of_texts(at: &ImportOrigin, pairs: &[(&str, Option<&str>)]) -> SourceNode {
        let mut made = Self::new(at);
        pairs.iter().for_each(|(key, value)| made.put_text(key, *value));
        made.node()
    }
}

/// Reads a file of folders; a fault of it is in the draft.
pub(super) fn read_tree(file: &str, text: &str, draft: &mut Draft) -> Option<SourceNode> {
    let root = match read_xml(file, text) {
        Ok(root) => root,
        Err(fault) => {
            let at = ImportOrigin::new(file, fault.line);
            draft.fault(
                &at,
                format!("this is not readable as XML: {}", fault.what),
                "export it again",
            );
            return None;
        }
    };
    let mut made = MapDraft::new(&root.at);
    let folders: Vec<&XmlElement> = if FOLDERS.contains(&root.name.as_str()) {
        vec![&root]
    } else {
        for other in root.children.iter().filter(|c| !FOLDERS.contains(&c.name.as_str())) {
            let said = (
                format!("element {} is left out: it is no folder", other.name),
                format!("元素 {} 未迁移:它不是文件夹", other.name),
            );
            draft.note(Level::LeftOut, &other.at, &other.name, said, ("", ""));
        }
        root.children.iter().filter(|c| FOLDERS.contains(&c.name.as_str())).collect()
    };
    for folder in folders {
        let name = first(folder, &["FOLDER_NAME", "TABLE_NAME", "JOBNAME"]).unwrap_or("folder");
        made.put_node(name, folder_map(folder, "Folder", draft));
    }
    Some(made.node())
}

fn first<'a>(element: &'a XmlElement, names: &[&str]) -> Option<&'a str> {
    names.iter().find_map(|name| element.attribute(name))
}

fn is_yes(element: &XmlElement, name: &str) -> bool {
    element.attribute(name).is_some_and(|value| matches!(value, "1" | "Y" | "YES" | "y"))
}

/// Holds attributes against a table.
fn check_attributes(element: &XmlElement, tables: &[&[KnownKey]], about: &str, draft: &mut Draft) {
    let pairs = element.attributes.iter().map(|(key, value)| (key.as_str(), value.as_str()));
    check_pairs(pairs, tables, RowPlace { at: &element.at, about }, draft);
}

fn folder_map(folder: &XmlElement, kind: &str, draft: &mut Draft) -> SourceNode {
    let name = first(folder, &["FOLDER_NAME", "TABLE_NAME", "JOBNAME"]).unwrap_or("folder");
    check_attributes(folder, XML_FOLDER, name, draft);
    let mut made = MapDraft::new(&folder.at);
    made.put_text("Type", Some(kind));
    made.put_text("Description", folder.attribute("DESCRIPTION"));
    made.put_text("Application", folder.attribute("APPLICATION"));
    made.put_text("SubApplication", folder.attribute("SUB_APPLICATION"));
    made.put_text("RunAs", first(folder, &["RUN_AS", "OWNER"]));
    made.put_text("TimeZone", folder.attribute("TIMEZONE"));
    let method = first(folder, &["FOLDER_ORDER_METHOD", "TABLE_USERDAILY"]);
    made.put_text(
        "OrderMethod",
        Some(match method {
            Some("SYSTEM") => "Automatic",
            Some(other) => other,
            None => "Manual",
        }),
    );
    if kind == "SubFolder" || has_days(folder) {
        made.put_node("When", when(folder, folder));
    }
    put_shared(folder, &mut made);
    let mut jobs = Vec::new();
    for child in &folder.children {
        match child.name.as_str() {
            "JOB" => jobs.push(job_map(child, folder, draft)),
            inner if SUB_FOLDERS.contains(&inner) => {
                let name = first(child, &["JOBNAME", "FOLDER_NAME", "TABLE_NAME"]);
                made.put_node(name.unwrap_or("folder"), folder_map(child, "SubFolder", draft));
            }
            _ => note_child(child, &[], name, draft),
        }
    }
    if !jobs.is_empty() {
        made.put("Jobs", NodeValue::List(jobs));
    }
    made.node()
}

/// Elements within a folder or job that have no place in its map.
fn note_child(child: &XmlElement, of_kind: &[&str], about: &str, draft: &mut Draft) {
    const READ: [&str; 9] = [
        "INCOND",
        "OUTCOND",
        "QUANTITATIVE",
        "CONTROL",
        "VARIABLE",
        "AUTOEDIT",
        "AUTOEDIT2",
        "RULE_BASED_CALENDARS",
        "RULE_BASED_CALENDAR",
    ];
    let name = child.name.as_str();
    if !READ.contains(&name) && !of_kind.contains(&name) {
        draft.note_unknown_key(&child.at, about, name);
    }
}

fn job_map(job: &XmlElement, folder: &XmlElement, draft: &mut Draft) -> SourceNode {
    let name = first(job, &["JOBNAME", "MEMNAME"]).unwrap_or("job");
    draft.end_item();
    check_attributes(job, XML_JOB, name, draft);
    for child in &job.children {
        note_child(child, &["ON", "SHOUT"], name, draft);
    }
    let mut made = MapDraft::new(&job.at);
    made.put_text("Name", Some(name));
    put_body(job, &mut made);
    made.put_text("Description", job.attribute("DESCRIPTION"));
    made.put_text("RunAs", first(job, &["RUN_AS", "OWNER"]));
    made.put_text("Host", job.attribute("NODEID"));
    made.put_text("Application", job.attribute("APPLICATION"));
    made.put_text("SubApplication", first(job, &["SUB_APPLICATION", "GROUP"]));
    made.put_text("Priority", job.attribute("PRIORITY"));
    made.put_text("TimeZone", job.attribute("TIMEZONE"));
    if is_yes(job, "CONFIRM") {
        made.put_text("Confirm", Some("true"));
    }
    if is_yes(job, "CRITICAL") {
        made.put_text("Critical", Some("true"));
    }
    made.put_node("When", when(job, folder));
    put_cycle(job, &mut made);
    put_shared(job, &mut made);
    for (at, on) in (1..).zip(job.named("ON")) {
        made.put_node(&format!("on {at}"), condition(on));
    }
    for (at, shout) in (1..).zip(job.named("SHOUT")) {
        let mut one = MapDraft::new(&shout.at);
        one.put_text("Type", Some("If:Shout"));
        one.put_node("shout", MapDraft::of_texts(&shout.at, &[("Type", Some("Shout"))]));
        made.put_node(&format!("shout {at}"), one.node());
    }
    made.node()
}

fn put_body(job: &XmlElement, made: &mut MapDraft) {
    let kind = job.attribute("APPL_TYPE").unwrap_or("OS");
    let task = job.attribute("TASKTYPE").unwrap_or("Job").to_ascii_lowercase();
    let is_command = task == "command" || (task == "job" && job.attribute("MEMNAME").is_none());
    match (kind, task.as_str()) {
        ("OS", "dummy") => made.put_text("Type", Some("Job:Dummy")),
        ("OS", _) if is_yes(job, "USE_INSTREAM_JCL") => {
            made.put_text("Type", Some("Job:EmbeddedScript"));
            made.put_text("Script", job.attribute("INSTREAM_JCL"));
        }
        ("OS", _) if is_command => {
            made.put_text("Type", Some("Job:Command"));
            made.put_text("Command", job.attribute("CMDLINE"));
        }
        ("OS", "job" | "detached" | "script") => {
            made.put_text("Type", Some("Job:Script"));
            made.put_text("FileName", job.attribute("MEMNAME"));
            made.put_text("FilePath", job.attribute("MEMLIB"));
        }
        (kind, task) => {
            let kind = if kind == "OS" { task } else { kind };
            made.put_text("Type", Some(&format!("Job:{kind}")));
        }
    }
}

fn has_days(element: &XmlElement) -> bool {
    ["DAYS", "WEEKDAYS", "DAYSCAL", "WEEKSCAL", "DATE"]
        .iter()
        .any(|name| element.attribute(name).is_some())
}

/// The days of a job. One that names no days is ordered by hand.
fn when(element: &XmlElement, folder: &XmlElement) -> SourceNode {
    let mut made = MapDraft::new(&element.at);
    put_days(element, &mut made);
    for (key, attribute) in [("FromTime", "TIMEFROM"), ("ToTime", "TIMETO")] {
        let time = element.attribute(attribute).map(|time| time.replace(':', ""));
        made.put_text(key, time.as_deref());
    }
    made.put_text("StartDate", element.attribute("ACTIVE_FROM"));
    made.put_text("EndDate", element.attribute("ACTIVE_TILL"));
    let mut included: Vec<String> = Vec::new();
    for name in element.named("RULE_BASED_CALENDARS").filter_map(|rule| rule.attribute("NAME")) {
        if name == "*" {
            // All of the folder's.
            let of_folder =
                folder.named("RULE_BASED_CALENDAR").chain(folder.named("RULE_BASED_CALENDARS"));
            let names = of_folder.filter_map(|rule| rule.attribute("NAME"));
            included.extend(names.filter(|name| *name != "*").map(str::to_owned));
        } else {
            included.push(name.to_owned());
        }
    }
    if included.is_empty() {
        // A job without days of its own runs on those of its folder.
        if !has_days(element) && has_days(folder) {
            put_days(folder, &mut made);
        } else if !has_days(element) {
            made.put_text("Schedule", Some("Never"));
        }
        return made.node();
    }
    let mut of_rules = MapDraft::new(&element.at);
    if has_days(element) {
        // Its own days as well, which no rule here says together.
        included.push("days of its own".to_owned());
    }
    of_rules.put_words("Included", &included);
    let defined = folder.named("RULE_BASED_CALENDAR").chain(folder.named("RULE_BASED_CALENDARS"));
    for rule in defined.filter(|rule| has_days(rule)) {
        let mut days = MapDraft::new(&rule.at);
        put_days(rule, &mut days);
        let mut one = MapDraft::new(&rule.at);
        one.put_node("When", days.node());
        of_rules.put_node(rule.attribute("NAME").unwrap_or_default(), one.node());
    }
    made.put_node("RuleBasedCalendars", of_rules.node());
    made.node()
}

fn put_days(element: &XmlElement, made: &mut MapDraft) {
    let words = |name: &str| -> Option<Vec<String>> {
        let text = element.attribute(name)?;
        Some(text.split(',').map(|word| word.trim().to_owned()).filter(|w| !w.is_empty()).collect())
    };
    if let Some(days) = words("DAYS") {
        made.put_words("MonthDays", &days);
    }
    if let Some(days) = words("WEEKDAYS") {
        // 0 is Sunday; what is no number is a counted day, which stays as it is.
        let name = |word: &String| match word.parse::<usize>() {
            Ok(day) if day < 7 => WEEK[day].1.to_owned(),
            Ok(7) => WEEK[0].1.to_owned(),
            _ => word.clone(),
        };
        made.put_words("WeekDays", &days.iter().map(name).collect::<Vec<_>>());
    }
    if let Some(dates) = words("DATE") {
        made.put_words("SpecificDates", &dates);
    }
    if element.attribute("DAYS_AND_OR").is_some_and(|word| matches!(word, "A" | "AND")) {
        made.put_text("DaysRelation", Some("AND"));
    }
    made.put_text("MonthDaysCalendar", element.attribute("DAYSCAL"));
    made.put_text("WeekDaysCalendar", element.attribute("WEEKSCAL"));
    made.put_text("ConfirmationCalendars", element.attribute("CONFCAL"));
    let has_months = MONTHS.iter().any(|month| element.attribute(month).is_some());
    let months: Vec<String> = MONTHS
        .iter()
        .filter(|month| is_yes(element, month))
        .map(|month| (*month).to_owned())
        .collect();
    if has_months && months.len() < 12 {
        if months.is_empty() {
            made.put_text("Schedule", Some("Never"));
        } else {
            made.put_words("Months", &months);
        }
    }
}

/// `00010M` as a number and a word.
fn interval(text: &str) -> Option<(String, &'static str)> {
    let number = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = match text[number.len()..].to_ascii_uppercase().as_str() {
        "S" => "Seconds",
        "M" | "" => "Minutes",
        "H" => "Hours",
        "D" => "Days",
        _ => return None,
    };
    let number: u32 = number.parse().ok()?;
    Some((number.to_string(), unit))
}

fn put_cycle(job: &XmlElement, made: &mut MapDraft) {
    let every = job.attribute("INTERVAL").and_then(interval);
    let (number, unit) = every.clone().map_or((None, None), |(n, unit)| (Some(n), Some(unit)));
    if is_yes(job, "CYCLIC") {
        if let Some(times) = job.attribute("CYCLIC_TIMES_SEQUENCE") {
            let times: Vec<String> = times.split(',').map(|t| t.trim().to_owned()).collect();
            let mut at = MapDraft::new(&job.at);
            at.put_words("At", &times);
            made.put_node("RerunSpecificTimes", at.node());
        } else if let Some(sequence) = job.attribute("CYCLIC_INTERVAL_SEQUENCE") {
            made.put_text("RerunIntervals", Some(sequence));
        } else {
            let from = match job.attribute("IND_CYCLIC").unwrap_or("S") {
                "E" | "END" => "End",
                _ => "Start",
            };
            // What is no interval is none that is known, and says so.
            let number = number.as_deref().or(Some("?"));
            let pairs = [("Every", number), ("Units", unit), ("From", Some(from))];
            made.put_node("Rerun", MapDraft::of_texts(&job.at, &pairs));
        }
        return;
    }
    if let Some(times) = job.attribute("MAXRERUN").filter(|times| *times != "0") {
        let pairs = [("Times", Some(times)), ("Every", number.as_deref()), ("Units", unit)];
        made.put_node("RerunLimit", MapDraft::of_texts(&job.at, &pairs));
    }
}

/// Conditions, resources and variables, which folders have as well.
fn put_shared(element: &XmlElement, made: &mut MapDraft) {
    let mut waits = Vec::new();
    let has_or = element.named("INCOND").any(is_or);
    for (place, one) in element.named("INCOND").enumerate() {
        if place > 0 && has_or {
            let word = if is_or(one) { "OR" } else { "AND" };
            waits.push(SourceNode::from_text(&made.at, word));
        }
        if has_or && one.attribute("OP").is_some() {
            waits.push(SourceNode::from_text(&made.at, "AND"));
        }
        waits.push(event(one));
    }
    put_events("waits", "WaitForEvents", waits, made);
    let is_removed = |one: &&XmlElement| {
        one.attribute("SIGN").is_some_and(|s| matches!(s, "-" | "DEL" | "MINUS"))
    };
    let added = element.named("OUTCOND").filter(|one| !is_removed(one)).map(event).collect();
    put_events("adds", "AddEvents", added, made);
    let removed = element.named("OUTCOND").filter(is_removed).map(event).collect();
    put_events("deletes", "DeleteEvents", removed, made);
    for one in element.named("QUANTITATIVE") {
        let pairs = [("Type", Some("Resource:Pool")), ("Quantity", one.attribute("QUANT"))];
        made.put_node(
            one.attribute("NAME").unwrap_or("resource"),
            MapDraft::of_texts(&one.at, &pairs),
        );
    }
    for one in element.named("CONTROL") {
        let is_shared = one.attribute("TYPE").is_some_and(|kind| kind.starts_with('S'));
        let kind = if is_shared { "Shared" } else { "Exclusive" };
        let pairs = [("Type", Some("Resource:Lock")), ("LockType", Some(kind))];
        made.put_node(
            one.attribute("NAME").unwrap_or("resource"),
            MapDraft::of_texts(&one.at, &pairs),
        );
    }
    let mut variables = Vec::new();
    for one in &element.children {
        let pair = match one.name.as_str() {
            "VARIABLE" | "AUTOEDIT2" => {
                one.attribute("NAME").zip(Some(one.attribute("VALUE").unwrap_or_default()))
            }
            "AUTOEDIT" => one.attribute("EXP").and_then(|text| text.split_once('=')),
            _ => None,
        };
        if let Some((name, value)) = pair {
            variables.push(MapDraft::of_texts(&one.at, &[(name.trim(), Some(value))]));
        }
    }
    if !variables.is_empty() {
        made.put("Variables", NodeValue::List(variables));
    }
}

fn is_or(one: &XmlElement) -> bool {
    one.attribute("AND_OR").is_some_and(|word| matches!(word, "O" | "OR"))
}

fn event(one: &XmlElement) -> SourceNode {
    MapDraft::of_texts(
        &one.at,
        &[("Event", one.attribute("NAME")), ("Date", one.attribute("ODATE"))],
    )
}

fn put_events(key: &str, kind: &str, events: Vec<SourceNode>, made: &mut MapDraft) {
    if events.is_empty() {
        return;
    }
    let mut map = MapDraft { at: made.at.clone(), entries: Vec::new() };
    map.put_text("Type", Some(kind));
    map.put("Events", NodeValue::List(events));
    made.put_node(&format!("its {key}"), map.node());
}

/// `ON` with its actions. One on a statement of the output is a condition of its own.
fn condition(on: &XmlElement) -> SourceNode {
    let mut made = MapDraft::new(&on.at);
    let is_whole = on.attribute("STMT").is_none_or(|text| text == "*");
    made.put_text("Type", Some(if is_whole { "If:CompletionStatus" } else { "If:Output" }));
    made.put_text("CompletionStatus", on.attribute("CODE"));
    for (at, action) in (1..).zip(&on.children) {
        let kind = match (action.name.as_str(), action.attribute("ACTION")) {
            ("DOMAIL", _) => "Mail",
            ("DOCOND", _) => match action.attribute("SIGN") {
                Some("-" | "DEL" | "MINUS") => "Event:Delete",
                _ => "Event:Add",
            },
            ("DOACTION" | "DO", Some("OK")) => "SetToOK",
            ("DOACTION" | "DO", Some("RERUN")) => "Rerun",
            ("DOACTION" | "DO", Some(other)) => other,
            (other, _) => other,
        };
        let to = action.attribute("DEST");
        let pairs = [
            ("Type", Some(kind)),
            ("To", to),
            ("Event", action.attribute("NAME")),
            ("Date", action.attribute("ODATE")),
        ];
        made.put_node(&format!("action {at}"), MapDraft::of_texts(&action.at, &pairs));
    }
    made.node()
}
