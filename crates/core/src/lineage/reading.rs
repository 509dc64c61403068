//! Defines the lineage of a job: its accesses with their places, and the parts that cannot be analysed.

use crate::lineage::access::Access;
use serde::Serialize;
use std::collections::BTreeSet;

/// A place in a text.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct TextPlace {
    /// The routine, view or trigger, or the label of the job's own text.
    pub text: String,
    /// Line within the text, counted from 1.
    pub line: u32,
}

impl std::fmt::Display for TextPlace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}", self.text, self.line)
    }
}

/// Why a part of a job is unknown.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum OpaqueReason {
    /// The server hides a body from the connected user.
    HiddenBody {
        /// Name of the routine or view.
        name: String,
        /// The statement with which a DBA can grant access to it.
        grant: String,
    },
    /// The routine does not exist, or the connected user may not see it.
    MissingRoutine {
        /// Name of the routine.
        name: String,
    },
    /// The language of the routine is not supported.
    Language {
        /// Name of the routine.
        name: String,
        /// Its language.
        language: String,
    },
    /// A place in a body could not be parsed.
    Unreadable { why: String },
    /// The body is not SQL: a script, an HTTP call, an executor.
    NotSql {
        /// What it is instead.
        what: String,
    },
    /// The data source could not be queried.
    SourceAway { why: String },
    /// The job depends on more bodies and tables than the limit.
    TooLarge {
        /// The limit.
        steps: usize,
    },
}

impl std::fmt::Display for OpaqueReason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::HiddenBody { name, grant } => {
                write!(f, "the body of {name} is not visible to this user; {grant}")
            }
            Self::MissingRoutine { name } => {
                write!(f, "there is no routine {name}, or this user may not see it")
            }
            Self::Language { name, language } => {
                write!(f, "{name} is written in {language}, which is not read")
            }
            Self::Unreadable { why } => write!(f, "not readable: {why}"),
            Self::NotSql { what } => write!(f, "{what} is not read"),
            Self::SourceAway { why } => f.write_str(why),
            Self::TooLarge { steps } => write!(f, "more than {steps} bodies and tables"),
        }
    }
}

/// An unknown part of a job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct OpaquePart {
    pub place: TextPlace,
    pub reason: OpaqueReason,
}

/// An access of a job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct JobAccess {
    /// The access: its table with the schema, and its slice in terms of the job's values.
    #[serde(flatten)]
    pub access: Access,
    /// Server and database of the table; tables of different servers are always distinct.
    pub server: String,
    /// Place of the access in a text.
    pub place: TextPlace,
}

/// The complete lineage of a job.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct JobReading {
    /// Accesses that the texts contain.
    pub accesses: Vec<JobAccess>,
    /// Accesses that literals of dynamic statements suggest.
    pub guesses: Vec<JobAccess>,
    /// Places of dynamic statements.
    pub dynamic: Vec<TextPlace>,
    /// Unknown parts.
    pub opaque: Vec<OpaquePart>,
    /// Statements that were only scanned for keywords: their rows and columns are unknown.
    pub read_by_words: Vec<TextPlace>,
    /// Routines, views and triggers that were analysed.
    pub bodies: BTreeSet<String>,
}

impl JobReading {
    /// Adds the lineage of another part of the job.
    pub fn extend(&mut self, other: Self) {
        self.accesses.extend(other.accesses);
        self.guesses.extend(other.guesses);
        self.dynamic.extend(other.dynamic);
        self.opaque.extend(other.opaque);
        self.read_by_words.extend(other.read_by_words);
        self.bodies.extend(other.bodies);
    }

    /// Whether the lineage is complete.
    pub fn is_whole(&self) -> bool {
        self.dynamic.is_empty() && self.opaque.is_empty()
    }
}
