//! The grammar of batch numbers.

use serde::{Deserialize, Serialize};

/// An expression that gives batch numbers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct BatchExpr(String);
