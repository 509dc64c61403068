//! definition: reads and writes what a user defines. In: text of a file. Out: a `Definition`, or faults with hints.
//! May name: domain. Never: a database, a clock, the network.
//! Invariant: a `Definition` that leaves this module is complete, consistent and acyclic.
//! Story order: load (which form), node or csv (the tree), include and template (one tree of many),
//! read and raw (what the user wrote), build, alias, owner, source, job, application, check (what it means), diff
//! (what changed), export, write and comments (back to a file), schema (what editors know of it); calendar (files of
//! holidays, which are no part of a `Definition`).

mod alias;
mod application;
mod beside;
mod body;
mod budget;
mod build;
mod calendar;
mod check;
mod checks;
mod classes;
mod comments;
mod csv;
mod declare;
mod diff;
mod executor;
mod export;
mod external;
mod fault;
mod fields;
mod files;
mod group_access;
mod include;
mod job;
mod job_kinds;
mod job_names;
mod keys;
mod limits;
mod load;
mod near;
mod node;
mod numbering_check;
mod owner;
mod params;
mod raw;
mod read;
mod read_audience;
mod read_checks;
mod read_kinds;
mod read_limits;
mod read_lineage;
mod read_params;
mod read_parents;
mod read_schedules;
mod runs_on;
mod schedules;
mod schema;
mod schema_form;
mod schema_parts;
mod schema_schedules;
mod schema_table;
mod shape;
mod source;
mod sqlite_bodies;
mod template;
mod workdays;
mod write;

pub use budget::Budget;
pub use calendar::CalendarFile;
pub use calendar::CalendarForm;
pub use calendar::read_calendar;
pub use calendar::write_calendar;
pub use comments::{Comments, add_comments};
pub use diff::DefinitionDifference;
pub use diff::DifferenceKind;
pub use diff::FieldChange;
pub use diff::Thing;
pub use diff::diff_definitions;
pub use diff::visit_differences;
pub use export::ExportError;
pub use export::ExportedFiles;
pub use export::export;
pub use export::export_beside;
pub use export::export_source;
pub use fault::DefinitionFault;
pub use fault::FaultReport;
pub use fault::Faults;
pub(crate) use fault::Located;
pub use fault::SourcePlace;
pub use load::Loaded;
pub use load::load_definition;
pub use load::load_within;
pub use near::did_you_mean;
pub use node::NodeValue;
pub use node::SourceNode;
pub use node::parse;
pub use schedules::ScheduleCheckContext;
pub use schema::schema;
pub use write::DefinitionFormat;

#[cfg(test)]
mod tests;
