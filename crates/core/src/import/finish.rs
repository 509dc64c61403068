//! Finishes an import: checks the whole definition, and writes it as the text of a file. Output: the definition, its
//! files and the report.

use crate::definition::{DefinitionFormat, ExportError, Faults, export_beside};
use crate::domain::dag::{Dag, DagError};
use crate::domain::id::{JobCode, TriggerCode};
use crate::domain::job::{Definition, JobKind};
use crate::domain::schedule::FiringRule;
use crate::domain::schedule::trigger::TriggerDef;
use crate::import::ImportedFiring;
use crate::import::batch_numbers::{BatchNumberCount, choose_rules};
use crate::import::draft::Draft;
use crate::import::note::{BilingualSentence, ImportOrigin, Level, Note};
use crate::import::schedule::settled;
use crate::import::tally::{ItemCount, ReadItem};

/// Maximum number of lines of a script inside the definition; a longer script becomes a separate file.
const LINES_INSIDE: usize = 30;

/// A file that accompanies the definition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SideFile {
    /// Path relative to the definition.
    pub path: String,
    /// Content.
    pub bytes: Vec<u8>,
}

/// The result of an import.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Imported {
    /// The definition with its schedules; valid.
    pub definition: Definition,
    /// The definition as the text of a file.
    pub text: String,
    /// Files that accompany it.
    pub files: Vec<SideFile>,
    /// Notes about what differs, the most serious first.
    pub notes: Vec<Note>,
    /// Everything that was read, in the order of the source, with its outcome.
    pub items: Vec<ReadItem>,
}

impl Imported {
    /// The number of items read, by kind and outcome.
    pub fn item_counts(&self) -> Vec<ItemCount> {
        ItemCount::of_all(&self.items)
    }

    /// How the schedules number their batches.
    pub fn batch_numbers(&self) -> Vec<BatchNumberCount> {
        BatchNumberCount::of_all(&self.definition.schedules)
    }

    /// Codes of the schedules that are created paused.
    pub fn paused(&self) -> impl Iterator<Item = &TriggerCode> {
        self.definition.schedules.iter().filter(|one| one.starts_paused).map(|one| &one.code)
    }

    /// The number of notes of a level.
    pub fn count(&self, level: Level) -> usize {
        self.notes.iter().filter(|n| n.level == level).count()
    }
}

/// Why nothing was imported; `Display` is the sentence for the user.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// The files cannot be read.
    #[error(transparent)]
    Unreadable(#[from] Faults),
    /// The result cannot be written as a definition.
    #[error(transparent)]
    Unwritable(#[from] ExportError),
}

impl Draft {
    /// Checks the draft and writes its files.
    ///
    /// # Errors
    /// What cannot be parsed, cycles, and what no definition file can express.
    pub fn finish(mut self, kinds: &[JobKind]) -> Result<Imported, ImportError> {
        self.flush_record_keys();
        self.circles();
        self.refuse_without_job();
        if !self.report.is_sound() {
            self.report.finish()?;
            return Err(ExportError::Unwritable("the report is empty".to_owned()).into());
        }
        let pending = std::mem::take(&mut self.pending);
        let rules = choose_rules(&pending, self.same_moment, &self.defs, self.asked.now);
        for (pending, rules) in pending.into_iter().zip(rules) {
            let item = pending.item;
            let (made, notes) = settled(pending, &rules, &self.defs, self.asked.now);
            if made.is_some() {
                self.tally.carry(item);
            }
            if !notes.is_empty() {
                self.tally.add_note(item);
            }
            let pauses = self.asked.firing == ImportedFiring::Paused;
            self.defs.schedules.extend(made.map(|made| {
                let fires = !matches!(made.timing.schedule, FiringRule::Manual);
                TriggerDef { starts_paused: pauses && fires, ..made }
            }));
            self.notes.extend(notes);
        }
        let written = export_beside(&self.defs, kinds, DefinitionFormat::Yaml, LINES_INSIDE)?;
        for warning in written.warnings {
            let origin = ImportOrigin::new(warning.file, u64::from(warning.line));
            self.notes.push(Note {
                level: Level::Look,
                origin,
                about: String::new(),
                message: BilingualSentence::new(warning.what.clone(), warning.what),
                fix: BilingualSentence::new(warning.cure.clone(), warning.cure),
            });
        }
        let scripts = written.scripts.into_iter();
        let mut files = self.beside;
        files.extend(scripts.map(|(path, text)| SideFile { path, bytes: text.into_bytes() }));
        let (items, missing) = self.tally.settle();
        self.notes.extend(missing);
        self.notes.sort();
        self.notes.dedup();
        Ok(Imported { definition: self.defs, text: written.text, files, notes: self.notes, items })
    }

    /// Refuses files without any job, because a definition needs one.
    fn refuse_without_job(&mut self) {
        if !self.defs.jobs.is_empty() || !self.report.is_sound() {
            return;
        }
        self.notes.sort();
        let (at, why, fix) = match self.notes.first() {
            Some(note) => {
                (note.origin.clone(), format!(": {}", note.message.en), note.fix.en.clone())
            }
            None => (ImportOrigin::default(), String::new(), String::new()),
        };
        let fix = if fix.is_empty() { "give files with jobs in them".to_owned() } else { fix };
        self.fault(&at, format!("nothing here becomes a job{why}"), fix);
    }

    /// Reports jobs that wait for each other.
    fn circles(&mut self) {
        let codes: Vec<JobCode> = self.defs.jobs.iter().map(|j| j.code.clone()).collect();
        let Err(error) = Dag::build(&codes, &self.defs.dependencies) else { return };
        let (first, cure) = match &error {
            DagError::Cycle(ring) => (
                ring.first().cloned(),
                "take one of these dependencies out, there, and import again",
            ),
            DagError::DuplicateJob(code) => (Some(code.clone()), ""),
            DagError::DuplicateDependency { job, .. } | DagError::Dangling { job, .. } => {
                (Some(job.clone()), "")
            }
            DagError::SelfDependency(job) => {
                (Some(job.clone()), "take that dependency out, there, and import again")
            }
        };
        let origin = first.and_then(|code| self.origins.get(&code).cloned()).unwrap_or_default();
        self.fault(&origin, error.to_string(), cure);
    }
}
