//! Suggests the word that a user probably meant; the algorithm is in `domain`, which also uses it to look up time
//! zones.

pub use crate::domain::text::did_you_mean::did_you_mean;
pub(crate) use crate::domain::text::did_you_mean::nearest;
