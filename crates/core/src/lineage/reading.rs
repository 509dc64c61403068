//! The lineage of a job: its accesses with their places, and the parts that cannot be analysed.

use crate::lineage::access::Access;
use serde::Serialize;
use std::collections::BTreeSet;

/// A place in a text.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct TextPlace {
    /// The routine, view or trigger, or what the job's own text is called.
    pub text: String,
    /// Line in it, from 1.
    pub line: u32,
}

impl std::fmt::Display for TextPlace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}", self.text, self.line)
    }
}

/// Why a part of a job is not known.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum OpaqueReason {
    /// The server hides a body from our user.
    HiddenBody {
        /// Whose.
        name: String,
        /// What the DBA may run to show it.
        grant: String,
    },
    /// There is no such routine, or our user may not see it.
    MissingRoutine {
        /// Which.
        name: String,
    },
    /// It is written in a language that is not read.
    Language {
        /// The routine.
        name: String,
        /// The language.
        language: String,
    },
    /// A place of a body could not be read.
    Unreadable {
        /// Why.
        why: String,
    },
    /// It is no SQL: a script, a call over HTTP, an executor.
    NotSql {
        /// What it is.
        what: String,
    },
    /// Its data source could not be queried.
    SourceAway {
        /// Why.
        why: String,
    },
    /// More than so many bodies and tables hang on it.
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

/// A part of a job that is not known.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct OpaquePart {
    /// Where.
    pub place: TextPlace,
    /// Why.
    pub reason: OpaqueReason,
}

/// An access of a job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct JobAccess {
    /// The access, its table with the schema, its slice in terms of the job's values.
    #[serde(flatten)]
    pub access: Access,
    /// The server and database of the table; names of different servers never meet.
    pub server: String,
    /// Where it is written.
    pub place: TextPlace,
}

/// All that is known of what a job does.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct JobReading {
    /// What it certainly may do.
    pub accesses: Vec<JobAccess>,
    /// What literals of statements that are made at run time suggest.
    pub guesses: Vec<JobAccess>,
    /// Statements that are made at run time.
    pub dynamic: Vec<TextPlace>,
    /// Parts that are not known.
    pub opaque: Vec<OpaquePart>,
    /// Statements that were read by their words alone: rows and columns of them are not known.
    pub read_by_words: Vec<TextPlace>,
    /// Routines, views and triggers that were read.
    pub bodies: BTreeSet<String>,
}

impl JobReading {
    /// Adds what another part of the job does.
    pub fn extend(&mut self, other: Self) {
        self.accesses.extend(other.accesses);
        self.guesses.extend(other.guesses);
        self.dynamic.extend(other.dynamic);
        self.opaque.extend(other.opaque);
        self.read_by_words.extend(other.read_by_words);
        self.bodies.extend(other.bodies);
    }

    /// Whether everything that it does is known.
    pub fn is_whole(&self) -> bool {
        self.dynamic.is_empty() && self.opaque.is_empty()
    }
}
