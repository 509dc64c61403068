//! Lists, a page at a time.

use crate::api::problem::Problem;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// Items of a list, and where it goes on.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "{T}Page")]
pub struct Page<T> {
    /// The items.
    pub items: Vec<T>,
    /// To be sent as `cursor` for the items after these; none when there are no more.
    pub next: Option<String>,
}

impl<T> Page<T> {
    /// Of items of which one more was read than is shown: that one only says that there are more. `place`
    /// is where an item stands in the order of the list.
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

    /// Everything there is.
    pub fn whole(items: Vec<T>) -> Self {
        Self { items, next: None }
    }
}

/// Which part of a list.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PageQuery {
    /// How many, 1 to 500; 50 when it is left out.
    pub limit: Option<u32>,
    /// Where to go on: `next` of the page before.
    pub cursor: Option<String>,
}

/// A place in a list, as callers carry it.
pub fn cursor<C: Serialize>(place: &C) -> String {
    URL_SAFE_NO_PAD.encode(serde_json::to_vec(place).unwrap_or_default())
}

/// The place that a caller sent back.
pub fn read_cursor<C: DeserializeOwned>(sent: Option<&str>) -> Result<Option<C>, Problem> {
    let Some(sent) = sent else { return Ok(None) };
    let read = URL_SAFE_NO_PAD.decode(sent).ok().and_then(|b| serde_json::from_slice(&b).ok());
    let refused =
        || Problem::unreadable("cursor: send the value of `next` as it was given, or none");
    read.map(Some).ok_or_else(refused)
}

/// How many items a page has: what was asked for, 1 to 500; 50 when nothing was.
pub fn limit(asked: Option<u32>) -> Result<usize, Problem> {
    match asked.unwrap_or(50) {
        n @ 1..=500 => Ok(n as usize),
        n => Err(Problem::unreadable(format!("limit is {n}; it may be 1 to 500"))),
    }
}
