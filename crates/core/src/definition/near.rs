//! Suggests the word that a user probably meant; the rule is in `domain`, because zones are looked
//! up there.

pub use crate::domain::text::did_you_mean::did_you_mean;
pub(crate) use crate::domain::text::did_you_mean::nearest;
