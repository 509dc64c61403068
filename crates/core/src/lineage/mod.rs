//! lineage: finds what SQL reads and writes, and conflicts of jobs. In: texts, a catalogue. Out: accesses, conflicts.
//! May name: domain. Never: a database, a clock.
//! Invariant: an access that is not certain is reported as wider, as dynamic or as unreadable; it is never omitted.
//! Story order: words, split, rewrite (text to statements), slice, flow, scope, query, expression, dml, fallback
//! (statements to accesses), reader (one body), catalogue, closure (a job), conflict (pairs of jobs), then
//! discovery (jobs of procedures): master_value, master_plan, master_calls, master_statement (a serial master),
//! draft_note, draft_outputs, draft_params, session_variables, data_order, draft_edges, draft_jobs.

mod access;
mod catalogue;
mod closure;
mod conflict;
mod create;
mod data_order;
mod discovery;
mod dml;
mod draft_edges;
mod draft_jobs;
mod draft_note;
mod draft_outputs;
mod draft_params;
mod expression;
mod fallback;
mod flow;
mod guess;
mod impact;
mod job;
mod master_calls;
mod master_plan;
mod master_statement;
mod master_value;
mod nesting;
mod query;
mod reader;
mod reading;
mod rewrite;
mod scope;
mod session_variables;
mod settle;
mod slice;
mod split;
mod words;

pub use access::{
    Access, AccessMode, Argument, BodyFacts, CallKind, CatalogueParam, ColumnSet, ConflictKey,
    DynamicStatement, ObjectName, RoutineCall, UnreadablePlace,
};
pub use catalogue::{
    BodyText, Cascade, Catalogue, CatalogueRoutine, CatalogueTrigger, RoutineLanguage, Table,
    TriggerAction, TriggerEvent,
};
pub use closure::{JobRoot, trace_job};
pub use conflict::{
    ConflictKind, ConflictReport, ConflictSide, JobConflict, JobLineage, LineageCoverage,
    OrderWithoutData, UnknownJob, collide, find_conflicts,
};
pub use create::{CreatedRoutine, language_of, parse_routine};
pub use discovery::{draft_from_master, draft_schema};
pub use draft_jobs::{DefinitionDraft, DiscoveryError, DraftPlace};
pub use draft_note::{DraftMatter, DraftNote, GateMatter};
pub use draft_params::param_type;
pub use impact::{ReachedJob, TableImpact, TableUse, find_impact};
pub use job::{LineageTarget, job_lineage};
pub use reader::{BodyKind, SourceText, read_body};
pub use reading::{JobAccess, JobReading, OpaquePart, OpaqueReason, TextPlace};
pub use slice::{Binding, Slice, SliceValue, ValueSet, bind_values};

#[cfg(test)]
mod tests;

#[cfg(test)]
mod closure_tests;
#[cfg(test)]
mod corpus_tests;
#[cfg(test)]
mod discovery_tests;
