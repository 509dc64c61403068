//! Tests against real servers and real processes, in one binary.

mod handler;
mod util;
