//! The scenes that are measured.

use crate::body::Body;
use crate::shape::Shape;
use clap::ValueEnum;

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub(crate) enum Scene {
    /// A handful, to see that it works
    Smoke,
    /// 100 jobs, one after the other
    #[value(name = "chain-100")]
    Chain100,
    /// 1,000 jobs, one after the other
    #[value(name = "chain-1000")]
    Chain1000,
    /// 10,000 jobs, one after the other
    #[value(name = "chain-10000")]
    Chain10000,
    /// One, then 1,000, then one
    #[value(name = "fan-1000")]
    Fan1000,
    /// 2,000 jobs in layers, 6,000 edges
    #[value(name = "layered-2000")]
    Layered2000,
    /// 10,000 jobs that wait for nothing
    #[value(name = "flat-10000")]
    Flat10000,
    /// 10,000 jobs in layers, three edges each
    #[value(name = "layered-10000")]
    Layered10000,
    /// 100 layers of 100, each job waiting for the whole layer before: 990,000 edges
    #[value(name = "full-100x100")]
    Full100x100,
    /// 10 batches of 100 jobs at once
    #[value(name = "many-10")]
    Many10,
    /// 100 batches of 100 jobs at once
    #[value(name = "many-100")]
    Many100,
    /// 100 jobs, one after the other, dispatched by one process and run by another
    Nodes,
}

impl Scene {
    /// As one types it.
    pub(crate) fn word(self) -> String {
        self.to_possible_value().map_or_else(String::new, |v| v.get_name().to_owned())
    }

    /// One of its batches, and how many there are.
    pub(crate) fn shape(self) -> (Shape, usize) {
        match self {
            Self::Smoke => (Shape::fan(6), 2),
            Self::Chain100 | Self::Nodes => (Shape::chain(100), 1),
            Self::Chain1000 => (Shape::chain(1_000), 1),
            Self::Chain10000 => (Shape::chain(10_000), 1),
            Self::Fan1000 => (Shape::fan(1_000), 1),
            Self::Layered2000 => (Shape::layered(40, 50, 6_000), 1),
            Self::Flat10000 => (Shape { jobs: 10_000, edges: Vec::new() }, 1),
            Self::Layered10000 => (Shape::layered(100, 100, 29_700), 1),
            Self::Full100x100 => (Shape::full(100, 100), 1),
            Self::Many10 => (Shape::layered(10, 10, 270), 10),
            Self::Many100 => (Shape::layered(10, 10, 270), 100),
        }
    }

    /// With which bodies it is measured unless one says so.
    pub(crate) fn usual(self) -> &'static [Body] {
        use Body::{Call, CallWith, Noop, Script, Select};
        match self {
            Self::Smoke => &[Noop, Select, Call, CallWith, Script],
            Self::Chain100 => &[Noop, Select, Call, Script],
            Self::Chain1000 | Self::Layered2000 => &[Noop, Select, Call, CallWith],
            Self::Fan1000 | Self::Flat10000 | Self::Layered10000 => &[Noop, Call],
            Self::Many10 | Self::Many100 => &[Call],
            Self::Full100x100 | Self::Chain10000 | Self::Nodes => &[Noop],
        }
    }

    /// Whether a body of a whole process each is too much for it.
    pub(crate) fn is_small(self) -> bool {
        let (shape, batches) = self.shape();
        shape.jobs * batches <= 1_002
    }

    /// Whether no two of its jobs can run at once.
    pub(crate) fn is_chain(self) -> bool {
        matches!(self, Self::Chain100 | Self::Chain1000 | Self::Chain10000 | Self::Nodes)
    }
}
