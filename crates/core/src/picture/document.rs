//! A JSON document whose long lists are generated while it is written.

use serde::ser::{Serialize, Serializer};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt;

/// A JSON document. The elements of long lists are generated one by one while it is written: 990,000 edges took 2 GiB
/// as values, for a text of 281 MB.
pub struct Document<'a>(DocumentPart<'a>);

enum DocumentPart<'a> {
    Value(Value),
    /// Sorted by key, like a `Value`.
    Object(BTreeMap<&'static str, Document<'a>>),
    Items(Vec<Document<'a>>),
    List(usize, Box<dyn Fn(usize) -> Value + 'a>),
}

impl<'a> Document<'a> {
    /// An object with exactly these keys.
    pub(super) fn object(keys: impl IntoIterator<Item = (&'static str, Self)>) -> Self {
        Self(DocumentPart::Object(keys.into_iter().collect()))
    }

    /// A short list.
    pub(super) fn items<const N: usize>(items: [Self; N]) -> Self {
        Self(DocumentPart::Items(items.into()))
    }

    /// A list of this length; `element` is called for each index whenever the document is written.
    pub(super) fn list_of(length: usize, element: impl Fn(usize) -> Value + 'a) -> Self {
        Self(DocumentPart::List(length, Box::new(element)))
    }
}

impl From<Value> for Document<'_> {
    fn from(value: Value) -> Self {
        Self(DocumentPart::Value(value))
    }
}

impl Serialize for Document<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match &self.0 {
            DocumentPart::Value(value) => value.serialize(to),
            DocumentPart::Object(keys) => to.collect_map(keys),
            DocumentPart::Items(items) => to.collect_seq(items),
            DocumentPart::List(length, element) => to.collect_seq((0..*length).map(element)),
        }
    }
}

impl fmt::Debug for Document<'_> {
    /// Omits the content, which may be millions of lines.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Document").finish_non_exhaustive()
    }
}
