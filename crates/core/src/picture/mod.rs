//! picture: draws a DAG for people and front ends. In: a snapshot, states and timings. Out: JSON or text in the requested shape.
//! May name: domain. Never: a database, a clock.
//! Invariant: the same DAG gives the same bytes, so that a diff of two pictures is a diff of two DAGs.
//! Story order: view and walk (what is drawn), external, focus, collapse, reduce (less of it), layout (where),
//! paint and facts (texts and data of a job), document and formats (every shape), then one file per shape.

mod collapse;
mod cytoscape;
mod d3;
mod d3dag;
mod dagre;
mod document;
mod dot;
mod echarts;
mod elk;
mod external;
mod facts;
mod focus;
mod formats;
mod g6;
mod jgf;
mod layout;
mod measure;
mod mermaid;
mod native;
mod paint;
mod reactflow;
mod reduce;
mod svg;
mod tree;
mod view;
mod walk;
mod x6;

pub use collapse::Collapse;
pub use document::Document;
pub use external::External;
pub use formats::ArrowDirection;
pub use formats::Drawing;
pub use formats::Drawn;
pub use formats::FORMATS;
pub use formats::PictureFormat;
pub use formats::PicturePlaces;
pub use formats::Placing;
pub use formats::Wishes;
pub use formats::format;
pub use view::DagView;
pub use view::ForecastTiming;
pub use view::JobState;

use formats::PictureScene;

#[cfg(test)]
mod tests;
