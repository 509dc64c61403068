//! Parses YAML or JSON with serde, keeping the span of each value's text.

use crate::definition::budget::Budget;
use crate::definition::fault::{Located, SourcePlace};
use crate::definition::node::{NodeValue, SourceNode};
use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_saphyr::{DuplicateKeyPolicy, Error, NonFiniteFloatPolicy, Spanned};
use std::fmt;
use std::sync::Arc;

/// Parses one document. The budget limits the cost of an alias bomb.
pub(crate) fn parse_yaml(
    text: &str,
    duplicate_keys: DuplicateKeyPolicy,
    budget: &Budget,
) -> Result<SpannedValue, Error> {
    let options = serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_depth: budget.depth,
            max_nodes: budget.nodes,
            max_events: budget.nodes.saturating_mul(2),
            max_documents: 1,
            max_merge_keys: 100_000,
            // One anchor for the parameters of 500 jobs is good style, not an attack; the number of values added by
            // aliases is limited below.
            enforce_alias_anchor_ratio: false,
        },
        alias_limits: serde_saphyr::alias_limits! { max_total_replayed_events: budget.aliases },
        duplicate_keys: duplicate_keys,
        non_finite_float_policy: NonFiniteFloatPolicy::PassThrough,
        with_snippet: false,
    };
    serde_saphyr::from_str_with_options(text, options)
}

/// The text before the line number in an error.
pub(crate) const AT_LINE: &str = " at line ";

/// Converts a line number to the type that faults use.
pub(crate) fn line_of(line: u64) -> u32 {
    u32::try_from(line).unwrap_or(u32::MAX)
}

/// A value from serde with the span of its text. It has the size of a [`SourceNode`], so that a list of a million
/// values is converted in place.
pub(crate) struct SpannedValue {
    line: u64,
    /// Start and end of its text.
    span: Option<(u32, u32)>,
    shape: YamlShape,
}

/// The key of a map entry, without the parser's metadata.
struct SpannedKey {
    line: u32,
    text: String,
}

enum YamlShape {
    Null,
    /// A number or boolean: its text is cut from the source, because serde does not keep the spelling.
    Plain(String),
    Text(String),
    List(Vec<SpannedValue>),
    Map(Vec<(SpannedKey, SpannedValue)>),
}

impl SpannedValue {
    /// The tree with the file's name and, for plain scalars, the text of `source`.
    pub(crate) fn into_node(self, file: &Arc<str>, source: &str) -> SourceNode {
        let at = SourcePlace::new(file, line_of(self.line));
        let value = match self.shape {
            YamlShape::Null => NodeValue::Null,
            YamlShape::Text(text) => NodeValue::Text(text),
            YamlShape::Plain(read) => {
                let span = self.span.map(|(from, to)| from as usize..to as usize);
                let written = span.and_then(|span| source.get(span));
                NodeValue::Text(written.map_or(read, |w| w.trim().to_owned()))
            }
            YamlShape::List(items) => {
                NodeValue::List(items.into_iter().map(|i| i.into_node(file, source)).collect())
            }
            YamlShape::Map(entries) => NodeValue::Map(
                entries
                    .into_iter()
                    .map(|(key, value)| {
                        let place = SourcePlace::new(file, key.line);
                        (Located::new(&place, key.text), value.into_node(file, source))
                    })
                    .collect(),
            ),
        };
        SourceNode { at, value }
    }
}

impl<'de> Deserialize<'de> for SpannedValue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let seen = Spanned::<YamlShape>::deserialize(deserializer)?;
        let span = seen.defined.span();
        let span = match span.byte_offset().zip(span.byte_len()) {
            Some((from, len)) => {
                let end = from.saturating_add(len);
                let (from, end) = (u32::try_from(from), u32::try_from(end));
                // Without its span, the text of a number would be lost.
                Some(from.ok().zip(end.ok()).ok_or_else(|| D::Error::custom("longer than 4 GiB"))?)
            }
            None => None,
        };
        Ok(Self { line: seen.referenced.line(), span, shape: seen.value })
    }
}

impl<'de> Deserialize<'de> for YamlShape {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ShapeVisitor)
    }
}

struct ShapeVisitor;

impl<'de> Visitor<'de> for ShapeVisitor {
    type Value = YamlShape;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value, a list or a map")
    }

    fn visit_unit<E>(self) -> Result<YamlShape, E> {
        Ok(YamlShape::Null)
    }

    fn visit_none<E>(self) -> Result<YamlShape, E> {
        Ok(YamlShape::Null)
    }

    fn visit_bool<E>(self, v: bool) -> Result<YamlShape, E> {
        Ok(YamlShape::Plain(v.to_string()))
    }

    fn visit_i64<E>(self, v: i64) -> Result<YamlShape, E> {
        Ok(YamlShape::Plain(v.to_string()))
    }

    fn visit_u64<E>(self, v: u64) -> Result<YamlShape, E> {
        Ok(YamlShape::Plain(v.to_string()))
    }

    fn visit_i128<E>(self, v: i128) -> Result<YamlShape, E> {
        Ok(YamlShape::Plain(v.to_string()))
    }

    fn visit_u128<E>(self, v: u128) -> Result<YamlShape, E> {
        Ok(YamlShape::Plain(v.to_string()))
    }

    fn visit_f64<E>(self, v: f64) -> Result<YamlShape, E> {
        Ok(YamlShape::Plain(v.to_string()))
    }

    fn visit_str<E>(self, v: &str) -> Result<YamlShape, E> {
        Ok(YamlShape::Text(v.to_owned()))
    }

    fn visit_string<E>(self, v: String) -> Result<YamlShape, E> {
        Ok(YamlShape::Text(v))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<YamlShape, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = seq.next_element()? {
            items.push(item);
        }
        items.shrink_to_fit();
        Ok(YamlShape::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<YamlShape, A::Error> {
        let mut entries = Vec::new();
        while let Some((key, value)) = map.next_entry::<Spanned<String>, SpannedValue>()? {
            let line = key.referenced.line();
            if key.value.is_empty() {
                // An error from a visitor has no location; `node` reads it from the text.
                return Err(A::Error::custom(format!("a key is empty{AT_LINE}{line}")));
            }
            entries.push((SpannedKey { line: line_of(line), text: key.value }, value));
        }
        entries.shrink_to_fit();
        Ok(YamlShape::Map(entries))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_becomes_nodes_where_it_stands() {
        assert_eq!(size_of::<SpannedValue>(), size_of::<SourceNode>());
    }
}
