//! The state of an import: the definition under construction, and the notes of the report.

use crate::definition::{FaultReport, SourcePlace};
use crate::domain::access::group_access::GroupAccess;
use crate::domain::id::{GroupCode, JobCode, JobType, SourceName};
use crate::domain::job::external::ExternalDependency;
use crate::domain::job::trigger_rule::EdgeCondition;
use crate::domain::job::{Definition, Group, JobDef, JobDependency};
use crate::domain::schedule::trigger::TriggerWords;
use crate::domain::source::{DataSource, DialectName};
use crate::import::ImportRequest;
use crate::import::batch_numbers::SameMoment;
use crate::import::finish::SideFile;
use crate::import::name::NameMaker;
use crate::import::note::{BilingualSentence, ImportOrigin, Level, Note};
use crate::import::schedule::{Pending, SourceScheduleState};
use crate::import::tally::{CountedKind, ImportTally, ItemId};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

/// Maximum duration of a body; a longer limit of the source is reduced to it, with a note.
pub(crate) const LONGEST_SEC: u32 = 30 * 24 * 3_600;

/// A definition under construction. Codes are generated here, so each is unique.
#[derive(Debug)]
pub struct Draft {
    pub asked: ImportRequest,
    pub defs: Definition,
    pub notes: Vec<Note>,
    pub beside: Vec<SideFile>,
    pub report: FaultReport,
    pub pending: Vec<Pending>,
    /// Origin of each job.
    pub origins: HashMap<JobCode, ImportOrigin>,
    /// The group of each job: a draft uses no code twice.
    groups_of: HashMap<JobCode, GroupCode>,
    groups: NameMaker,
    jobs: NameMaker,
    schedules: NameMaker,
    sources: NameMaker,
    source_of: HashMap<String, SourceName>,
    edges: HashSet<(JobCode, JobCode)>,
    parents: HashMap<JobCode, i32>,
    met: HashSet<(&'static str, String)>,
    pub(super) same_moment: SameMoment,
    pub(super) tally: ImportTally,
    item_of: HashMap<JobCode, ItemId>,
    /// Per file, the keys that describe rows of the other system.
    record_keys: BTreeMap<String, BTreeSet<String>>,
}

impl Draft {
    /// An empty draft.
    pub fn new(asked: ImportRequest) -> Self {
        Self {
            asked,
            defs: Definition::default(),
            notes: Vec::new(),
            beside: Vec::new(),
            report: FaultReport::default(),
            pending: Vec::new(),
            origins: HashMap::new(),
            groups_of: HashMap::new(),
            groups: NameMaker::groups(),
            jobs: NameMaker::jobs(),
            schedules: NameMaker::schedules(),
            sources: NameMaker::sources(),
            source_of: HashMap::new(),
            edges: HashSet::new(),
            parents: HashMap::new(),
            met: HashSet::new(),
            same_moment: SameMoment::default(),
            tally: ImportTally::default(),
            item_of: HashMap::new(),
            record_keys: BTreeMap::new(),
        }
    }

    /// Reports something that cannot be read at all: nothing is imported.
    pub fn fault(&mut self, at: &ImportOrigin, what: impl Into<String>, fix: impl Into<String>) {
        let line = u32::try_from(at.line).unwrap_or(0);
        self.report.fault(&SourcePlace::new(&Arc::from(at.file.as_str()), line), what, fix);
    }

    /// Whether there is no fault so far.
    pub fn is_sound(&self) -> bool {
        self.report.is_sound()
    }

    /// Whether this kind and name occur for the first time.
    pub fn is_first(&mut self, kind: &'static str, name: &str) -> bool {
        self.met.insert((kind, name.to_owned()))
    }

    /// Whether the import found nothing: no job, and no note.
    pub fn is_empty(&self) -> bool {
        self.defs.jobs.is_empty() && self.notes.is_empty()
    }

    /// Begins an item of the source: the following notes and definitions belong to it, and the
    /// report counts it.
    pub(crate) fn begin_item(
        &mut self,
        kind: CountedKind,
        at: &ImportOrigin,
        title: &str,
    ) -> ItemId {
        self.tally.begin(kind, at, title)
    }

    /// Continues an item.
    pub(crate) fn resume_item(&mut self, item: ItemId) {
        self.tally.work_on(Some(item));
    }

    /// Continues the item of this job.
    pub(crate) fn resume_job(&mut self, code: &JobCode) {
        self.tally.work_on(self.item_of.get(code).copied());
    }

    /// Ends the item: the following notes concern a file, a group or the whole import.
    pub(crate) fn end_item(&mut self) {
        self.tally.work_on(None);
    }

    /// Runs `say` outside of any item; afterwards the importer continues its current item.
    pub(crate) fn end_item_for(&mut self, say: impl FnOnce(&mut Self)) {
        let item = self.tally.current();
        self.tally.work_on(None);
        say(self);
        self.tally.work_on(item);
    }

    /// Marks the current item as carried over, although not as a part of the definition.
    pub(crate) fn carry_item(&mut self) {
        if let Some(item) = self.tally.current() {
            self.tally.carry(item);
        }
    }

    /// Marks the current item as left out; a note gives the reason.
    pub(crate) fn leave_item_out(&mut self) {
        if let Some(item) = self.tally.current() {
            self.tally.leave_out(item);
        }
    }

    /// Records a key that describes a row of the other system, and nothing that runs.
    pub(crate) fn note_record_key(&mut self, file: &str, key: &str) {
        self.record_keys.entry(file.to_owned()).or_default().insert(key.to_owned());
    }

    /// Adds one note for all such keys of a file.
    pub(crate) fn flush_record_keys(&mut self) {
        self.end_item();
        for (file, keys) in std::mem::take(&mut self.record_keys) {
            let keys: Vec<String> = keys.into_iter().collect();
            let said = (
                format!(
                    "these keys describe rows of that system and nothing that runs, so nothing here has them: {}",
                    keys.join(", ")
                ),
                format!("以下键只描述原系统的记录,与运行无关,此处没有对应:{}", keys.join("、")),
            );
            self.note(Level::Differs, &ImportOrigin::new(file, 0), "", said, ("", ""));
        }
    }

    /// Adds a note about something that differs from the source.
    pub fn note(
        &mut self,
        level: Level,
        origin: &ImportOrigin,
        about: &str,
        message: impl Into<BilingualSentence>,
        fix: impl Into<BilingualSentence>,
    ) {
        if let Some(item) = self.tally.current() {
            self.tally.add_note(item);
        }
        self.notes.push(Note {
            level,
            origin: origin.clone(),
            about: about.to_owned(),
            message: message.into(),
            fix: fix.into(),
        });
    }

    /// The only resulting group: it has the code that the user requested.
    pub fn only_group(&mut self, title: &str) -> GroupCode {
        let code = self.asked.group.clone().unwrap_or_else(|| title.to_owned());
        self.group_as(&code, title)
    }

    /// One of several groups: its code begins with the one that the user requested.
    pub fn group(&mut self, title: &str) -> GroupCode {
        let code = match &self.asked.group {
            Some(prefix) => format!("{prefix}_{title}"),
            None => title.to_owned(),
        };
        self.group_as(&code, title)
    }

    fn group_as(&mut self, code: &str, title: &str) -> GroupCode {
        let code = GroupCode::parse(&self.groups.name(code)).expect("names are made to fit");
        let mut group = Group::with_defaults(code.clone());
        group.time_zone = self.asked.zone.map(|zone| zone.name().to_owned());
        group.name = title_or(title, code.as_str());
        self.defs.groups.push(group);
        code
    }

    /// A group of this draft, to be completed.
    pub fn group_mut(&mut self, code: &GroupCode) -> Option<&mut Group> {
        self.defs.groups.iter_mut().find(|g| g.code == *code)
    }

    /// A job to be completed and passed to [`Draft::push`]: with a unique code, and its title as name.
    pub fn job(
        &mut self,
        at: &ImportOrigin,
        group: &GroupCode,
        title: &str,
        job_type: &str,
    ) -> JobDef {
        let code = JobCode::parse(&self.jobs.name(title)).expect("names are made to fit");
        let job_type = JobType::parse(job_type).expect("importers know the job types");
        let item = self.tally.current_of(CountedKind::Job);
        let item = item.unwrap_or_else(|| self.tally.begin(CountedKind::Job, at, title));
        self.item_of.insert(code.clone(), item);
        self.origins.insert(code.clone(), at.clone());
        self.groups_of.insert(code.clone(), group.clone());
        let name = title_or(title, code.as_str());
        JobDef { name, ..JobDef::with_defaults(code, group.clone(), job_type) }
    }

    /// The group of a job of this draft.
    pub(crate) fn group_of(&self, job: &JobCode) -> Option<GroupCode> {
        self.groups_of.get(job).cloned()
    }

    /// Adds a completed job.
    pub fn push(&mut self, job: JobDef) {
        if let Some(item) = self.item_of.get(&job.code) {
            self.tally.carry(*item);
        }
        self.defs.jobs.push(job);
    }

    /// Lets `job` wait for `parent` of the same group; a repetition has no effect.
    pub fn depends(&mut self, job: &JobCode, parent: &JobCode, when: EdgeCondition) {
        if !self.edges.insert((job.clone(), parent.clone())) {
            return;
        }
        let order = self.parents.entry(job.clone()).or_default();
        *order += 1;
        let group = self.groups_of.get(job).expect("a job is made before it waits").clone();
        let (job_code, depends_on, dependency_order) = (job.clone(), parent.clone(), *order);
        let edge = JobDependency { group, job_code, depends_on, dependency_order, when };
        self.defs.dependencies.push(edge);
    }

    /// Moves the dependencies of `job` to `other`.
    pub(crate) fn hand_parents_on(&mut self, job: &JobCode, other: &JobCode) {
        for edge in self.defs.dependencies.iter_mut().filter(|edge| edge.job_code == *job) {
            self.edges.remove(&(job.clone(), edge.depends_on.clone()));
            self.edges.insert((other.clone(), edge.depends_on.clone()));
            edge.job_code = other.clone();
        }
        if let Some(order) = self.parents.remove(job) {
            self.parents.insert(other.clone(), order);
        }
        for external in self.defs.externals.iter_mut().filter(|e| e.job_code == *job) {
            external.job_code = other.clone();
        }
    }

    /// Adds a dependency on other batches.
    pub fn waits(&mut self, external: ExternalDependency) {
        self.defs.externals.push(external);
    }

    /// The data source with this title, created on first use with an address that leads nowhere: exports of other
    /// systems contain no addresses, and a note says so.
    pub fn source(&mut self, at: &ImportOrigin, title: &str, dialect: DialectName) -> SourceName {
        if let Some(known) = self.source_of.get(title) {
            return known.clone();
        }
        let name = SourceName::parse(&self.sources.name(title)).expect("names are made to fit");
        let host = name.as_str().to_lowercase().replace('_', "-");
        let host = host.trim_matches('-');
        let url = match dialect {
            DialectName::Sqlite => format!("sqlite:{host}.db"),
            DialectName::Mysql => format!("mysql://user@{host}.invalid:3306/database"),
            DialectName::Postgres => format!("postgres://user@{host}.invalid:5432/database"),
        };
        let env = {
            let source = bare_source(name.clone(), url);
            let env = source.url_env();
            self.defs.sources.push(source);
            env
        };
        let also = if title == name.as_str() { String::new() } else { format!(" ({title})") };
        let said = (
            format!("source {name}{also} comes without its address, user and password"),
            format!("数据源 {name}{also} 不含地址、用户和密码"),
        );
        let cure = (
            format!("write its url in the file, or set {env}; the password goes into password_env"),
            format!("请在文件中填写 url,或设置环境变量 {env};密码用 password_env 指定"),
        );
        // The note concerns the source, not the first job that names it.
        let item = self.tally.current();
        self.tally.work_on(None);
        self.note(Level::Look, at, name.as_str(), said, cure);
        self.tally.work_on(item);
        self.source_of.insert(title.to_owned(), name.clone());
        name
    }

    /// A data source whose address is known.
    pub fn source_at(&mut self, title: &str, url: &str) -> SourceName {
        if let Some(known) = self.source_of.get(title) {
            return known.clone();
        }
        let name = SourceName::parse(&self.sources.name(title)).expect("names are made to fit");
        self.defs.sources.push(bare_source(name.clone(), url.to_owned()));
        self.source_of.insert(title.to_owned(), name.clone());
        name
    }

    /// A source created by this import, to be completed.
    pub fn source_mut(&mut self, name: &SourceName) -> Option<&mut DataSource> {
        self.defs.sources.iter_mut().find(|s| s.name == *name)
    }

    /// Adds a schedule. Its code is derived from `words.code`, and its batch numbers are chosen
    /// when it has none. A disabled schedule is imported as disabled.
    pub fn schedule(
        &mut self,
        at: &ImportOrigin,
        mut words: TriggerWords,
        firing: SourceScheduleState,
    ) {
        words.name = words.name.map(|name| title_or(&name, &words.code));
        words.code = self.schedules.name(&words.code);
        let item = self.tally.current_of(CountedKind::Schedule);
        let item = item.unwrap_or_else(|| {
            let before = self.tally.current();
            let item = self.tally.begin(CountedKind::Schedule, at, &words.code);
            self.tally.work_on(before);
            item
        });
        self.pending.push(Pending { item, origin: at.clone(), words, firing });
    }

    /// Adds a file beside the definition; its path cannot leave the directory, whatever an archive
    /// contains.
    pub fn beside(&mut self, path: &str, bytes: Vec<u8>) {
        let parts = path.split(['/', '\\']).filter(|part| !["", ".", ".."].contains(part));
        let path = parts.collect::<Vec<_>>().join("/");
        self.beside.push(SideFile { path, bytes });
    }

    /// The seconds within the limits of a job: 0 (no limit in the source) becomes the maximum.
    pub fn timeout(&mut self, at: &ImportOrigin, about: &str, seconds: u64) -> u32 {
        match u32::try_from(seconds) {
            Ok(0) => LONGEST_SEC,
            Ok(fits) if fits <= LONGEST_SEC => fits,
            Ok(_) | Err(_) => {
                let said = (
                    format!("its time-out of {seconds} s is cut to 30 days, the longest there is"),
                    format!("超时 {seconds} 秒超过上限,改为 30 天"),
                );
                self.note(Level::Differs, at, about, said, ("", ""));
                LONGEST_SEC
            }
        }
    }
}

/// The title on one line, or the code if there is none.
fn title_or(title: &str, code: &str) -> String {
    let line = title.split_whitespace().collect::<Vec<_>>().join(" ");
    let line: String = line.chars().filter(|c| !c.is_control()).take(200).collect();
    if line.is_empty() { code.to_owned() } else { line }
}

fn bare_source(name: SourceName, url: String) -> DataSource {
    DataSource {
        name,
        url,
        password_env: None,
        password_file: None,
        password_secret: None,
        read_password: Default::default(),
        max_parallel: None,
        procedures: std::collections::BTreeMap::new(),
        access: GroupAccess::default(),
    }
}
