//! What a body hands on, and the one place where an output's name is resolved.

use super::list;
use crate::domain::job::body::Items;
use crate::domain::job::check::CheckFinding;
use crate::domain::value::{OutputValue, StoredValue, ValueType};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// One result set, of which so many rows are kept as the limits of `[outputs]` allow.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResultSet {
    /// Column names; none of a set without rows, for which the drivers tell no names.
    pub columns: Vec<String>,
    /// The server's names of the columns' types; older rows have none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub types: Vec<String>,
    /// The types of their values; none of a column of NULLs, and of rows that an older version stored.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub value_types: Vec<Option<ValueType>>,
    /// Values as text, `null` for NULL.
    pub rows: Vec<Vec<Option<String>>>,
    /// How many rows there were in all.
    pub row_count: u64,
    /// Values that cannot be handed on, or are stored aside; `rows` has a remark in their place.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unusable: Vec<UnusableCell>,
}

/// A value of a result set that cannot be handed on, or is stored aside.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnusableCell {
    /// Its row, from 0.
    pub row: usize,
    /// Its column, from 0.
    pub column: usize,
    /// Why, with the column, its type and what to do.
    pub reason: String,
    /// Where it is stored. A program that does not know this finds the reason, and no value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stored: Option<StoredValue>,
}

impl ResultSet {
    fn column(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|column| column == name)
    }

    /// Why the first row cannot be compared with anything.
    pub fn unusable_first_row(&self) -> Option<&str> {
        self.unusable.iter().find(|cell| cell.row == 0).map(|cell| cell.reason.as_str())
    }

    /// The value in a row that is kept.
    fn value_at(&self, row: usize, column: usize) -> OutputValue {
        let is_it = |cell: &&UnusableCell| (cell.row, cell.column) == (row, column);
        if let Some(cell) = self.unusable.iter().find(is_it) {
            let unusable = || OutputValue::Unusable(cell.reason.clone());
            return cell.stored.clone().map_or_else(unusable, OutputValue::Stored);
        }
        match self.rows.get(row).and_then(|values| values.get(column)) {
            Some(Some(text)) => {
                let ty = self.value_types.get(column).copied().flatten();
                OutputValue::with_type(ty, text.clone())
            }
            Some(None) => OutputValue::Null,
            None => OutputValue::Unusable(format!(
                "its row was not kept, because all values together are over the limit; raise \
                 outputs.max_total_bytes, or return less (column {})",
                self.columns.get(column).map_or("?", String::as_str)
            )),
        }
    }
}

/// What a body hands on: stored as JSON, shown to the user, read by its children.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobOutputs {
    /// OUT and INOUT values, by parameter name; a script's `name=value` lines.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub values: BTreeMap<String, Option<String>>,
    /// The types of those that have one.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub types: BTreeMap<String, ValueType>,
    /// Outputs by name that are stored aside.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub stored: BTreeMap<String, StoredValue>,
    /// Outputs by name that cannot be handed on, with the reason; `values` may have what is shown of them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub unusable: BTreeMap<String, String>,
    /// Result sets in the order they came, the last one among them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub results: Vec<ResultSet>,
    /// How many result sets before the last one are not kept.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub sets_left_out: u64,
    /// Rows changed by all statements together, where the database says.
    #[serde(default)]
    pub rows_affected: u64,
    /// How a script ended by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// What its success rules found, by rule.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub rules: BTreeMap<String, CheckFinding>,
    /// What its checks found, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub checks: BTreeMap<String, CheckFinding>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl JobOutputs {
    /// The value a child means by `${jobs.CODE.NAME}`: a script's `exit_code`, else an OUT value,
    /// else `rows_affected` or `result_rows` (rows of the last result set), else a column of a
    /// result set of one row (see `column`). `None` when there is no output of that name.
    pub fn output(&self, name: &str) -> Option<OutputValue> {
        // Before the values: a script must not hide how it ended by printing another code.
        if let Some(code) = self.exit_code.filter(|_| name == "exit_code") {
            return Some(OutputValue::Typed(ValueType::Int, code.to_string()));
        }
        if let Some(reason) = self.unusable.get(name) {
            return Some(OutputValue::Unusable(reason.clone()));
        }
        if let Some(value) = self.values.get(name) {
            let ty = self.types.get(name).copied();
            return Some(
                value.clone().map_or(OutputValue::Null, |text| OutputValue::with_type(ty, text)),
            );
        }
        if let Some(reference) = self.stored.get(name) {
            return Some(OutputValue::Stored(reference.clone()));
        }
        if name == "rows_affected" {
            return Some(OutputValue::Typed(ValueType::Int, self.rows_affected.to_string()));
        }
        if name == "result_rows" {
            let count = self.results.last().map_or(0, |set| set.row_count);
            return Some(OutputValue::Typed(ValueType::Int, count.to_string()));
        }
        self.column(name.strip_prefix("result.").unwrap_or(name))
    }

    /// The column of that name in the last result set that has it, when that set has one row.
    ///
    /// An earlier set never stands in for a later one: a set without rows may be the one that was
    /// meant, because its column names are not known, and so may one that was not kept.
    fn column(&self, name: &str) -> Option<OutputValue> {
        for (behind, set) in self.results.iter().rev().enumerate() {
            let may_be_hidden = set.row_count == 0 || (behind > 0 && self.sets_left_out > 0);
            if may_be_hidden {
                return None;
            }
            if let Some(column) = set.column(name) {
                return (set.row_count == 1).then(|| set.value_at(0, column));
            }
        }
        None
    }

    /// Adds a value by name.
    pub fn set_value(&mut self, name: &str, value: OutputValue) {
        let (ty, text) = match value {
            OutputValue::Null => (None, None),
            OutputValue::Text(text) => (None, Some(text)),
            OutputValue::Typed(ty, text) => (Some(ty), Some(text)),
            OutputValue::Stored(reference) => {
                self.stored.insert(name.to_owned(), reference);
                return;
            }
            OutputValue::Unusable(reason) => {
                self.unusable.insert(name.to_owned(), reason);
                return;
            }
        };
        self.values.insert(name.to_owned(), text);
        match ty {
            Some(ty) => self.types.insert(name.to_owned(), ty),
            None => self.types.remove(name),
        };
    }

    /// The text of an output; `None` when it is NULL, not there, or cannot be handed on.
    pub fn value(&self, name: &str) -> Option<String> {
        self.look_up(name).flatten()
    }

    /// As `value`, telling a name without a usable value (`None`) from one that is NULL
    /// (`Some(None)`).
    pub fn look_up(&self, name: &str) -> Option<Option<String>> {
        self.output(name)?.into_text()
    }

    /// The items that `for_each: {output: JOB.name}` means: the first column of the last result set,
    /// when it has that name, an item per row; else the value of that name, its items separated by
    /// commas. NULL, and a query without rows, make no items. A row or an element that is NULL or empty is
    /// refused: it stands for something, and no job could be named after it.
    pub fn items(&self, name: &str) -> Result<Vec<String>, String> {
        let is_value = self.values.contains_key(name)
            || self.stored.contains_key(name)
            || self.unusable.contains_key(name);
        if !is_value && let Some((last, before)) = self.results.split_last() {
            if last.columns.first().is_some_and(|column| column == name) {
                return items_of(last, name);
            }
            let is_unclear =
                self.sets_left_out > 0 || before.iter().any(|set| set.column(name).is_some());
            if last.row_count == 0 && !is_unclear {
                return Ok(Vec::new());
            }
        }
        match self.output(name) {
            Some(OutputValue::Null) => Ok(Vec::new()),
            Some(OutputValue::Text(text)) => Ok(Items::split(&text)),
            Some(OutputValue::Typed(ty, text)) => items_of_value(ty, &text)
                .ok_or_else(|| format!("{name} is no list ({ty}); return a row for each item"))?
                .into_iter()
                .zip(1..)
                .map(|(item, at)| item_of(name, item, &format!("element {at}")))
                .collect(),
            Some(OutputValue::Stored(reference)) => Err(reference.describe()),
            Some(OutputValue::Unusable(reason)) => Err(reason),
            // Rows stored by an earlier version have no result set without rows, so its column has
            // no name any more. A script, which has an exit code, was to say the name.
            None if self.results.is_empty()
                && self.values.is_empty()
                && self.exit_code.is_none() =>
            {
                Ok(Vec::new())
            }
            None => Err(format!("there is no output named {name}")),
        }
    }

    /// Nothing to hand on.
    pub fn is_empty(&self) -> bool {
        self == &Self::default()
    }
}

/// The items of one value: an array's elements, else what stands between commas. `None` of arrays within
/// arrays, and of JSON that is no list of texts and numbers.
fn items_of_value(ty: ValueType, text: &str) -> Option<Vec<Option<String>>> {
    let split = || Items::split(text).into_iter().map(Some).collect();
    match ty {
        ValueType::Array => list::elements(text),
        ValueType::Json => list::json_elements(text),
        ValueType::Text | ValueType::Int | ValueType::Decimal | ValueType::Bool => Some(split()),
        ValueType::Date | ValueType::Time | ValueType::Timestamp | ValueType::TimestampTz => {
            Some(split())
        }
        ValueType::Interval | ValueType::Bytes => Some(vec![Some(text.to_owned())]),
    }
}

/// An item, unless it is nothing.
fn item_of(name: &str, item: Option<String>, place: &str) -> Result<String, String> {
    let is = match item.as_deref() {
        None => "NULL",
        Some("") => "empty",
        Some(_) => return Ok(item.unwrap_or_default()),
    };
    Err(format!(
        "{place} of {name} is {is}, and no job can be made of it; leave it out of the list (WHERE {name} <> ''), or \
         give it a name"
    ))
}

fn items_of(set: &ResultSet, name: &str) -> Result<Vec<String>, String> {
    let kept = set.rows.len();
    if set.row_count > kept as u64 {
        return Err(format!(
            "{name} has {} rows, of which {kept} are kept; raise outputs.max_rows (or \
             outputs.max_total_bytes), or return fewer columns and rows",
            set.row_count
        ));
    }
    let mut items = Vec::with_capacity(kept);
    for row in 0..kept {
        match set.value_at(row, 0) {
            OutputValue::Null => items.push(item_of(name, None, &format!("row {}", row + 1))?),
            OutputValue::Text(text) | OutputValue::Typed(_, text) => {
                items.push(item_of(name, Some(text), &format!("row {}", row + 1))?);
            }
            OutputValue::Stored(reference) => {
                return Err(format!("row {}: {}", row + 1, reference.describe()));
            }
            OutputValue::Unusable(reason) => return Err(format!("row {}: {reason}", row + 1)),
        }
    }
    Ok(items)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn children_find_values_by_name() {
        let outputs = JobOutputs {
            values: BTreeMap::from([("p_rows".into(), Some("3".into())), ("gone".into(), None)]),
            results: vec![ResultSet {
                columns: vec!["total".into()],
                rows: vec![vec![Some("9.50".into())]],
                row_count: 1,
                ..ResultSet::default()
            }],
            rows_affected: 7,
            ..JobOutputs::default()
        };
        assert_eq!(outputs.value("p_rows").as_deref(), Some("3"));
        assert_eq!(outputs.value("gone"), None);
        assert_eq!(outputs.value("rows_affected").as_deref(), Some("7"));
        assert_eq!(outputs.value("total").as_deref(), Some("9.50"));
        assert_eq!(outputs.value("other"), None);
        assert_eq!(outputs.value("result_rows").as_deref(), Some("1"));
        assert_eq!(outputs.look_up("exit_code"), None);
    }

    #[test]
    fn a_script_cannot_hide_its_exit_code() {
        let outputs = JobOutputs {
            values: BTreeMap::from([("exit_code".into(), Some("0".into()))]),
            exit_code: Some(3),
            ..JobOutputs::default()
        };
        assert_eq!(outputs.value("exit_code").as_deref(), Some("3"));
        assert_eq!(outputs.value("result_rows").as_deref(), Some("0"));
    }

    #[test]
    fn lists_of_items() {
        let set = |rows: &[&str], count| JobOutputs {
            results: vec![ResultSet {
                columns: vec!["branch".into(), "n".into()],
                rows: rows.iter().map(|r| vec![Some((*r).to_owned()), None]).collect(),
                row_count: count,
                ..ResultSet::default()
            }],
            ..JobOutputs::default()
        };
        let text = |value: Option<&str>| JobOutputs {
            values: BTreeMap::from([("branch".to_owned(), value.map(str::to_owned))]),
            ..JobOutputs::default()
        };
        let mut null = set(&["SH"], 1);
        null.results[0].rows[0][0] = None;
        let many: &[&str] = &["x"; 100];
        for (outputs, items) in [
            (set(&["SH", "BJ"], 2), Ok(vec!["SH", "BJ"])),
            (set(&["S,H"], 1), Ok(vec!["S,H"])),
            (set(&["SH", ""], 2), Err("row 2 of branch is empty, and no job can be made of it")),
            (null, Err("row 1 of branch is NULL, and no job can be made of it")),
            (text(Some(" SH, BJ,,")), Ok(vec!["SH", "BJ"])),
            (text(Some("")), Ok(vec![])),
            (text(None), Ok(vec![])),
            (JobOutputs::default(), Ok(vec![])),
            (set(many, 250), Err("branch has 250 rows, of which 100 are kept")),
        ] {
            match (outputs.items("branch"), items) {
                (Ok(found), Ok(wanted)) => assert_eq!(found, wanted),
                (Err(said), Err(wanted)) => assert!(said.starts_with(wanted), "{said}"),
                (found, wanted) => panic!("{found:?}, not {wanted:?}"),
            }
        }
        assert_eq!(
            set(&["SH"], 1).items("other"),
            Err("there is no output named other".to_owned())
        );
    }

    fn set(columns: &[&str], rows: &[&[&str]]) -> ResultSet {
        let row = |row: &&[&str]| row.iter().map(|v| Some((*v).to_owned())).collect();
        ResultSet {
            columns: columns.iter().map(|c| (*c).to_owned()).collect(),
            rows: rows.iter().map(row).collect(),
            row_count: rows.len() as u64,
            ..ResultSet::default()
        }
    }

    #[test]
    fn an_earlier_result_set_never_stands_in_for_a_later_one() {
        let one = set(&["bad", "day"], &[&["0", "2024-07-31"]]);
        let of = |results: Vec<ResultSet>, sets_left_out| JobOutputs {
            results,
            sets_left_out,
            ..JobOutputs::default()
        };
        let bad = |outputs: &JobOutputs| outputs.value("bad");
        let other = set(&["n"], &[&["1"], &["2"]]);
        assert_eq!(bad(&of(vec![one.clone(), other.clone()], 0)).as_deref(), Some("0"));
        let last = set(&["bad"], &[&["17"]]);
        assert_eq!(bad(&of(vec![one.clone(), last.clone()], 30)).as_deref(), Some("17"));
        for hides in [
            of(vec![one.clone(), ResultSet::default()], 0),
            of(vec![one.clone(), other], 3),
            of(vec![one.clone(), set(&["bad"], &[&["1"], &["2"]])], 0),
        ] {
            assert_eq!(hides.output("bad"), None, "{hides:?}");
        }
        let empty_last = of(vec![one, ResultSet::default()], 0);
        assert_eq!(empty_last.value("result_rows").as_deref(), Some("0"));
        assert_eq!(of(vec![ResultSet::default()], 0).items("branch"), Ok(Vec::new()));
        assert!(empty_last.items("bad").is_err(), "nobody knows which of the two is meant");
        let list = of(vec![ResultSet::default(), set(&["b"], &[&["SH"], &["BJ"]])], 9);
        assert_eq!(list.items("b"), Ok(vec!["SH".to_owned(), "BJ".to_owned()]));
    }

    #[test]
    fn a_typed_value_is_a_list_by_its_type() {
        let items = |ty, text: &str| {
            let mut outputs = JobOutputs::default();
            outputs.set_value("b", OutputValue::Typed(ty, text.to_owned()));
            outputs.items("b")
        };
        let all = |items: &[&str]| Ok(items.iter().map(|i| (*i).to_owned()).collect::<Vec<_>>());
        assert_eq!(items(ValueType::Text, "SH, BJ"), all(&["SH", "BJ"]));
        assert_eq!(
            items(ValueType::Array, r#"{SH,"NULL","a, b","x\"y"}"#),
            all(&["SH", "NULL", "a, b", "x\"y"])
        );
        assert_eq!(
            items(ValueType::Json, r#"["SH", 12.50, "null", "a, b"]"#),
            all(&["SH", "12.50", "null", "a, b"])
        );
        for (ty, text, said) in [
            (ValueType::Array, "{SH,NULL}", "element 2 of b is NULL"),
            (ValueType::Array, r#"{"",SH}"#, "element 1 of b is empty"),
            (ValueType::Json, r#"["SH", null]"#, "element 2 of b is NULL"),
            (ValueType::Json, r#"["SH", ""]"#, "element 2 of b is empty"),
        ] {
            let found = items(ty, text).expect_err(text);
            assert!(found.starts_with(said) && found.contains("leave it out"), "{found}");
        }
        for (ty, text) in [(ValueType::Json, r#"{"a": 1}"#), (ValueType::Array, "{{1},{2}}")] {
            let said = items(ty, text).expect_err(text);
            assert!(said.starts_with("b is no list ("), "{said}");
        }
    }

    #[test]
    fn types_go_with_their_values() {
        let mut outputs = JobOutputs::default();
        outputs.set_value("b", OutputValue::Typed(ValueType::Bytes, "0x00".to_owned()));
        outputs.set_value("n", OutputValue::Null);
        outputs.results.push(ResultSet {
            value_types: vec![Some(ValueType::TimestampTz), None],
            ..set(&["at", "x"], &[&["2024-02-29 00:00:00+00", "y"]])
        });
        let stored = serde_json::to_string(&outputs).expect("JSON");
        assert!(stored.contains(r#""types":{"b":"bytes"}"#), "{stored}");
        let read: JobOutputs = serde_json::from_str(&stored).expect("JSON");
        for outputs in [outputs, read] {
            let bytes = OutputValue::Typed(ValueType::Bytes, "0x00".to_owned());
            assert_eq!(outputs.output("b"), Some(bytes));
            assert_eq!(outputs.output("n"), Some(OutputValue::Null));
            assert!(matches!(
                outputs.output("at"),
                Some(OutputValue::Typed(ValueType::TimestampTz, _))
            ));
            assert_eq!(outputs.output("x"), Some(OutputValue::Text("y".to_owned())));
        }
        let old =
            r#"{"values":{"b":"0x00"},"results":[{"columns":["a"],"rows":[["1"]],"row_count":1}]}"#;
        let old: JobOutputs = serde_json::from_str(old).expect("an older version's");
        assert_eq!(old.output("b"), Some(OutputValue::Text("0x00".to_owned())));
        assert_eq!(old.output("a"), Some(OutputValue::Text("1".to_owned())));
    }

    #[test]
    fn what_cannot_be_handed_on_is_never_a_value() {
        let reason = "column doc (LONGTEXT) has 9 bytes".to_owned();
        let mut big = set(&["doc", "n"], &[&["<remark>", "1"]]);
        big.unusable.push(UnusableCell { reason: reason.clone(), ..UnusableCell::default() });
        let outputs = JobOutputs {
            unusable: BTreeMap::from([("body".to_owned(), "too long".to_owned())]),
            results: vec![big],
            ..JobOutputs::default()
        };
        assert_eq!(outputs.output("doc"), Some(OutputValue::Unusable(reason.clone())));
        assert_eq!((outputs.look_up("doc"), outputs.value("n").as_deref()), (None, Some("1")));
        assert_eq!(outputs.items("doc"), Err(format!("row 1: {reason}")));
        assert_eq!(outputs.items("body"), Err("too long".to_owned()));
        let stored = serde_json::to_string(&outputs).expect("JSON");
        assert_eq!(serde_json::from_str::<JobOutputs>(&stored).expect("JSON"), outputs);
        let not_kept = ResultSet { rows: Vec::new(), ..set(&["n"], &[&["1"]]) };
        let outputs = JobOutputs { results: vec![not_kept], ..JobOutputs::default() };
        assert!(matches!(outputs.output("n"), Some(OutputValue::Unusable(_))));
    }
}
