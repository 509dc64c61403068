//! Values that are stored aside because they are too long for the outputs in the job's row.
//!
//! The outputs keep a reference. Code that reads outputs reads references only; a consumer of the
//! value (a parameter, a condition, `for_each`, a download) loads it.

use super::outputs::{JobOutputs, UnusableCell};
use crate::domain::id::QueueId;
use crate::domain::value::{OutputValue, StoredValue, ValueType};
use std::sync::Arc;

/// The attempt whose values are stored aside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoredOutputsKey {
    /// The row.
    pub queue_id: QueueId,
    /// The attempt.
    pub attempt: u32,
}

/// A value to be stored in rows of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LargeValue {
    /// The reference that replaces it in the outputs.
    pub reference: StoredValue,
    /// Name of the output or column.
    pub name: String,
    /// The value's text.
    pub text: String,
}

/// The large values of an outcome.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LargeValues {
    values: Arc<[LargeValue]>,
    is_written: bool,
}

impl LargeValues {
    /// Values read back from the rows in which they are stored.
    pub fn read_back(values: Vec<LargeValue>) -> Self {
        Self { values: values.into(), is_written: true }
    }

    /// Values to be written together with the outcome.
    pub fn unwritten(&self) -> &[LargeValue] {
        if self.is_written { &[] } else { &self.values }
    }

    /// Text of a reference, if it is loaded.
    pub fn text_of(&self, reference: &StoredValue) -> Option<&str> {
        self.values.iter().find(|v| v.reference == *reference).map(|v| v.text.as_str())
    }
}

/// Numbers the values of one attempt as they are stored aside.
struct Divider {
    of: StoredOutputsKey,
    inline_bytes: usize,
    found: Vec<LargeValue>,
}

impl Divider {
    /// The reference that replaces a value, if the value is too long to be kept inline.
    fn divide(
        &mut self,
        name: &str,
        value_type: Option<ValueType>,
        text: &mut Option<String>,
    ) -> Option<StoredValue> {
        let text = text.take_if(|text| text.len() > self.inline_bytes)?;
        let position = u32::try_from(self.found.len()).unwrap_or(u32::MAX);
        let reference = StoredValue {
            queue_id: self.of.queue_id.0,
            attempt: self.of.attempt,
            position,
            ..StoredValue::describing(value_type, &text)
        };
        let value = LargeValue { reference: reference.clone(), name: name.to_owned(), text };
        self.found.push(value);
        Some(reference)
    }
}

impl JobOutputs {
    /// Replaces values longer than `inline_bytes` by references. Deterministic: the same outputs
    /// give the same references.
    pub fn store_aside(&mut self, of: StoredOutputsKey, inline_bytes: usize) -> LargeValues {
        let mut divider = Divider { of, inline_bytes, found: Vec::new() };
        for (name, text) in &mut self.values {
            let value_type = self.types.get(name).copied();
            if let Some(reference) = divider.divide(name, value_type, text) {
                self.stored.insert(name.clone(), reference);
            }
        }
        self.values.retain(|name, _| !self.stored.contains_key(name));
        self.types.retain(|name, _| !self.stored.contains_key(name));
        for set in &mut self.results {
            for (row, values) in set.rows.iter_mut().enumerate() {
                for (column, text) in values.iter_mut().enumerate() {
                    let is_noted = |c: &UnusableCell| (c.row, c.column) == (row, column);
                    if set.unusable.iter().any(is_noted) {
                        continue;
                    }
                    let value_type = set.value_types.get(column).copied().flatten();
                    let name = set.columns.get(column).map_or("", String::as_str);
                    if let Some(reference) = divider.divide(name, value_type, text) {
                        *text = Some(format!("<{}>", reference.describe()));
                        let reason = format!("column {name} is {}", reference.describe());
                        let stored = Some(reference);
                        set.unusable.push(UnusableCell { row, column, reason, stored });
                    }
                }
            }
        }
        LargeValues { values: divider.found.into(), is_written: false }
    }

    /// References of the values stored aside, with the name of the output or column.
    pub fn stored_values(&self) -> Vec<(&str, &StoredValue)> {
        let by_name = self.stored.iter().map(|(name, reference)| (name.as_str(), reference));
        let cells = self.results.iter().flat_map(|set| {
            set.unusable.iter().filter_map(|cell| {
                let name = set.columns.get(cell.column).map_or("", String::as_str);
                Some((name, cell.stored.as_ref()?))
            })
        });
        by_name.chain(cells).collect()
    }

    /// References that `name` means, as an output or as a list of items.
    pub fn stored_for(&self, name: &str) -> Vec<StoredValue> {
        let mut found = Vec::new();
        if let Some(OutputValue::Stored(reference)) = self.output(name) {
            found.push(reference);
        }
        let is_column = |column: &String| column == name;
        let list = self.results.last().filter(|set| set.columns.first().is_some_and(is_column));
        let items = list.into_iter().flat_map(|set| &set.unusable).filter(|cell| cell.column == 0);
        for reference in items.filter_map(|cell| cell.stored.as_ref()) {
            if !found.contains(reference) {
                found.push(reference.clone());
            }
        }
        found
    }

    /// Puts a loaded value back in the place of its reference.
    pub fn restore(&mut self, reference: &StoredValue, text: &str) {
        let named = self.stored.iter().find(|(_, stored)| *stored == reference);
        if let Some(name) = named.map(|(name, _)| name.clone()) {
            self.stored.remove(&name);
            let value = OutputValue::with_type(reference.value_type, text.to_owned());
            self.set_value(&name, value);
        }
        for set in &mut self.results {
            let is_it = |cell: &UnusableCell| cell.stored.as_ref() == Some(reference);
            let Some(at) = set.unusable.iter().position(is_it) else { continue };
            let cell = set.unusable.remove(at);
            let place = set.rows.get_mut(cell.row).and_then(|row| row.get_mut(cell.column));
            if let Some(place) = place {
                *place = Some(text.to_owned());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::job::outcome::ResultSet;
    use std::collections::BTreeMap;

    const KEY: StoredOutputsKey = StoredOutputsKey { queue_id: QueueId(7), attempt: 2 };

    fn outputs() -> JobOutputs {
        let mut outputs = JobOutputs::default();
        outputs.set_value("big", OutputValue::Typed(ValueType::Bytes, "0x00ff0000".to_owned()));
        outputs.set_value("small", OutputValue::Typed(ValueType::Int, "12345678".to_owned()));
        outputs.set_value("none", OutputValue::Null);
        outputs.results.push(ResultSet {
            columns: vec!["doc".into(), "n".into()],
            value_types: vec![Some(ValueType::Text), Some(ValueType::Int)],
            rows: vec![
                vec![Some("月月月".into()), Some("1".into())],
                vec![Some("short".into()), None],
            ],
            row_count: 2,
            ..ResultSet::default()
        });
        outputs
    }

    #[test]
    fn a_large_value_leaves_a_reference_and_comes_back_unchanged() {
        let whole = outputs();
        let mut divided = whole.clone();
        let large = divided.store_aside(KEY, 8);
        let stored: Vec<_> = divided.stored_values();
        let shown: Vec<_> = stored.iter().map(|(name, s)| (*name, s.position, s.bytes)).collect();
        assert_eq!(shown, [("big", 0, 10), ("doc", 1, 9)]);
        assert!(!divided.values.contains_key("big") && !divided.types.contains_key("big"));
        assert_eq!(divided.value("small").as_deref(), Some("12345678"));
        assert!(matches!(divided.output("big"), Some(OutputValue::Stored(_))));
        let json = serde_json::to_string(&divided).expect("JSON");
        assert!(!json.contains("0x00ff0000") && !json.contains('月'), "{json}");
        let read: JobOutputs = serde_json::from_str(&json).expect("JSON");
        assert_eq!(read, divided);
        let mut again = whole.clone();
        assert_eq!(again.store_aside(KEY, 8), large);
        assert_eq!(again, divided, "the same outputs give the same references");
        assert_eq!(divided.clone().store_aside(KEY, 8).unwritten(), [], "nothing is stored twice");
        for name in ["big", "doc"] {
            for reference in divided.stored_for(name) {
                let text = large.text_of(&reference).expect("it is there").to_owned();
                assert!(reference.matches(&text) && !reference.matches(&format!("{text}x")));
                divided.restore(&reference, &text);
            }
        }
        assert_eq!(divided, whole);
    }

    #[test]
    fn a_reference_is_never_taken_for_the_value() {
        let mut outputs = outputs();
        outputs.store_aside(KEY, 8);
        assert_eq!((outputs.value("big"), outputs.look_up("big")), (None, None));
        let said = outputs.items("doc").expect_err("it is not loaded");
        assert!(said.contains("text of 9 bytes, stored aside"), "{said}");
        // A program of an earlier version does not know references: it finds an error and no value.
        let json = serde_json::to_value(&outputs).expect("JSON");
        assert!(json["values"].get("big").is_none());
        assert_eq!(
            json["results"][0]["unusable"][0]["reason"],
            "column doc is text of 9 bytes, stored aside"
        );
        let nothing = JobOutputs { values: BTreeMap::new(), ..JobOutputs::default() };
        assert_eq!(nothing.clone().store_aside(KEY, 0), LargeValues::default());
    }
}
