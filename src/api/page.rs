//! Pagination of lists.

use crate::api::problem::Problem;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// A page of a list.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "{T}Page")]
pub struct Page<T> {
    /// The items.
    pub items: Vec<T>,
    /// Send this as `cursor` for the following items; null when there are no more.
    pub next: Option<String>,
}

impl<T> Page<T> {
    /// A page of items of which one more was read than is shown: that one only shows that there are
    /// more. `place` is the position of an item in the order of the list.
    pub fn from_items<C: Serialize>(
        mut items: Vec<T>,
        limit: usize,
        place: impl Fn(&T) -> C,
    ) -> Self {
        let more = items.len() > limit;
        items.truncate(limit);
        let next = items.last().filter(|_| more).map(|last| cursor(&place(last)));
        Self { items, next }
    }

    /// A complete list.
    pub fn whole(items: Vec<T>) -> Self {
        Self { items, next: None }
    }
}

/// Which part of a list.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PageQuery {
    /// Page size, 1 to 500; default 50.
    pub limit: Option<u32>,
    /// `next` of the previous page.
    pub cursor: Option<String>,
}

/// Encodes a position in a list for callers.
pub fn cursor<C: Serialize>(place: &C) -> String {
    URL_SAFE_NO_PAD.encode(serde_json::to_vec(place).unwrap_or_default())
}

/// Decodes the position that a caller sent back.
pub fn read_cursor<C: DeserializeOwned>(sent: Option<&str>) -> Result<Option<C>, Problem> {
    let Some(sent) = sent else { return Ok(None) };
    let read = URL_SAFE_NO_PAD.decode(sent).ok().and_then(|b| serde_json::from_slice(&b).ok());
    let refused =
        || Problem::unreadable("cursor: send the value of `next` as it was given, or none");
    read.map(Some).ok_or_else(refused)
}

/// The page size: the requested one, 1 to 500; default 50.
pub fn limit(asked: Option<u32>) -> Result<usize, Problem> {
    match asked.unwrap_or(50) {
        n @ 1..=500 => Ok(n as usize),
        n => Err(Problem::unreadable(format!("limit is {n}; it may be 1 to 500"))),
    }
}
