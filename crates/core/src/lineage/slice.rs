//! Describes the rows that an access touches: for some columns, their possible values.
//!
//! A slice only excludes rows that are certainly not touched. Two accesses are disjoint if some column has values in
//! both and no two of these values can be equal, whatever the column's type and collation.

use bigdecimal::BigDecimal;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// Maximum number of values of one column; more count as any value.
const VALUES_MAX: usize = 256;
/// Maximum number of conditions kept per column; each alone is true, so dropping one is safe.
const CONDITIONS_MAX: usize = 4;

/// A possible value of a column, a variable or an argument.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SliceValue {
    /// A text as written.
    Text(String),
    /// A number as written.
    Number(String),
    /// NULL.
    Null,
    /// The value of a parameter or variable of the routine; its name in lower case.
    Param(String),
    /// A value that is constant within a batch and unknown here, such as `${batch_no}`.
    Symbol(String),
}

impl fmt::Display for SliceValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => write!(f, "'{text}'"),
            Self::Number(text) | Self::Param(text) | Self::Symbol(text) => f.write_str(text),
            Self::Null => f.write_str("NULL"),
        }
    }
}

/// The possible values of a column.
pub type ValueSet = BTreeSet<SliceValue>;

/// Values that replace parameters; `None` means any value.
pub type Binding = BTreeMap<String, Option<ValueSet>>;

/// The known conditions on the rows of an access. Several conditions on a column all hold.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct Slice {
    /// Conditions by column.
    pub columns: BTreeMap<String, Vec<ValueSet>>,
}

impl Slice {
    /// Adds a condition.
    pub fn require(&mut self, column: &str, values: ValueSet) {
        if values.is_empty() || values.len() > VALUES_MAX {
            return;
        }
        let conditions = self.columns.entry(column.to_owned()).or_default();
        if conditions.len() < CONDITIONS_MAX && !conditions.contains(&values) {
            conditions.push(values);
        }
    }

    /// Whether no row can be in both slices.
    pub fn is_apart_from(&self, other: &Self) -> bool {
        self.columns.iter().any(|(column, conditions)| {
            let others = other.columns.get(column).map_or(&[][..], Vec::as_slice);
            conditions.iter().any(|one| others.iter().any(|two| are_apart(one, two)))
        })
    }

    /// The slice with its parameters replaced. A condition with a parameter of any value is dropped.
    pub fn bind_params(&self, binding: &Binding) -> Self {
        let mut bound = Self::default();
        for (column, conditions) in &self.columns {
            for values in conditions.iter().filter_map(|values| bind_values(values, binding)) {
                bound.require(column, values);
            }
        }
        bound
    }

    /// Whether there are no conditions.
    pub fn is_everything(&self) -> bool {
        self.columns.is_empty()
    }
}

impl fmt::Display for Slice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts = Vec::new();
        for (column, conditions) in &self.columns {
            let texts = conditions.iter().map(|values| match values.len() {
                1 => values.iter().map(|value| format!("{column} = {value}")).collect::<String>(),
                _ => {
                    let values: Vec<String> = values.iter().map(ToString::to_string).collect();
                    format!("{column} in ({})", values.join(", "))
                }
            });
            parts.extend(texts);
        }
        f.write_str(&parts.join(", "))
    }
}

/// Values with their parameters replaced; `None` if one of them may be anything.
pub fn bind_values(values: &ValueSet, binding: &Binding) -> Option<ValueSet> {
    let mut bound = ValueSet::new();
    for value in values {
        match value {
            SliceValue::Param(name) => bound.extend(binding.get(name)?.clone()?),
            SliceValue::Text(_)
            | SliceValue::Number(_)
            | SliceValue::Null
            | SliceValue::Symbol(_) => {
                bound.insert(value.clone());
            }
        }
    }
    (bound.len() <= VALUES_MAX).then_some(bound)
}

/// Whether no value of one set can equal a value of the other.
fn are_apart(one: &ValueSet, two: &ValueSet) -> bool {
    one.iter().all(|a| two.iter().all(|b| differ(a, b)))
}

/// Whether two values differ in a column of any type, under any common collation.
fn differ(one: &SliceValue, two: &SliceValue) -> bool {
    use SliceValue::{Null, Number, Param, Symbol, Text};
    match (one, two) {
        (Param(_) | Symbol(_), _) | (_, Param(_) | Symbol(_)) => false,
        (Null, Null) => false,
        (Null, Text(_) | Number(_)) | (Text(_) | Number(_), Null) => true,
        (Number(a), Number(b)) => numbers_differ(a, b).unwrap_or(false),
        // In MySQL a text that is not a number may equal 0.
        (Number(a), Text(b)) | (Text(b), Number(a)) => numbers_differ(a, b).unwrap_or(false),
        (Text(a), Text(b)) => texts_differ(a, b),
    }
}

fn numbers_differ(one: &str, two: &str) -> Option<bool> {
    // `1e999999999` would be expanded for the comparison; such a number counts as possibly equal.
    let has_exponent = |text: &str| text.contains(['e', 'E']) && text.trim().parse::<f64>().is_ok();
    if has_exponent(one) || has_exponent(two) {
        return Some(false);
    }
    let parse = |text: &str| text.trim().parse::<BigDecimal>().ok();
    Some(parse(one)? != parse(two)?)
}

/// Collations ignore case, accents and trailing blanks; a number can be written in several ways, and so can a date.
fn texts_differ(one: &str, two: &str) -> bool {
    let (one, two) = (one.trim_end(), two.trim_end());
    if one.to_lowercase() == two.to_lowercase() {
        return false;
    }
    if let Some(differ) = numbers_differ(one, two) {
        return differ;
    }
    let is_plain = |text: &str| text.chars().all(|c| c.is_ascii() || is_ideograph(c));
    if !is_plain(one) || !is_plain(two) {
        return false;
    }
    let is_date = |text: &str| {
        text.starts_with(|c: char| c.is_ascii_digit())
            && text.len() >= 6
            && text.chars().all(|c| c.is_ascii_digit() || " -/.:TZ+".contains(c))
    };
    // Two spellings of a date can be equal: only texts of the same shape are compared.
    let shape = |text: &str| -> String {
        text.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect()
    };
    !(is_date(one) && is_date(two)) || shape(one) == shape(two)
}

/// Characters that no collation treats as equal to others.
fn is_ideograph(c: char) -> bool {
    ('\u{4e00}'..='\u{9fff}').contains(&c)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> SliceValue {
        SliceValue::Text(text.to_owned())
    }

    fn slice(column: &str, values: &[SliceValue]) -> Slice {
        let mut slice = Slice::default();
        slice.require(column, values.iter().cloned().collect());
        slice
    }

    #[test]
    fn values_that_might_be_equal_are_never_apart() {
        let number = |text: &str| SliceValue::Number(text.to_owned());
        let (param, symbol) =
            (SliceValue::Param("p".into()), SliceValue::Symbol("${batch_no}".into()));
        for (one, two, apart) in [
            (text("AP"), text("AR"), true),
            (text("AP"), text("ap"), false),
            (text("AP"), text("AP  "), false),
            (text("1"), number("1.0"), false),
            (text("01"), text("1"), false),
            (text("10"), text("AP"), true),
            (number("1"), number("2"), true),
            (number("0"), text("AP"), false),
            (text("1e999999999"), number("2"), false),
            (text("上海"), text("北京"), true),
            (text("é"), text("e"), false),
            (text("2024-01-01"), text("20240101"), false),
            (text("2024-01-01"), text("2024-01-31"), true),
            (text("202401"), text("202402"), true),
            (SliceValue::Null, text("AP"), true),
            (SliceValue::Null, SliceValue::Null, false),
            (param.clone(), text("AP"), false),
            (symbol.clone(), symbol, false),
        ] {
            let (a, b) =
                (slice("c", std::slice::from_ref(&one)), slice("c", std::slice::from_ref(&two)));
            assert_eq!(a.is_apart_from(&b), apart, "{one} / {two}");
            assert_eq!(b.is_apart_from(&a), apart, "{two} / {one}");
        }
        let (a, b) = (slice("c", &[text("AP"), text("AR")]), slice("c", &[text("AR")]));
        assert!(!a.is_apart_from(&b), "they share AR");
        assert!(!a.is_apart_from(&slice("d", &[text("X")])), "another column says nothing");
    }

    #[test]
    fn a_parameter_is_replaced_by_what_the_caller_hands_in() {
        let before = slice("code", &[SliceValue::Param("p_code".into())]);
        let given = Some(ValueSet::from([text("AP")]));
        let binding = Binding::from([("p_code".to_owned(), given)]);
        assert_eq!(before.bind_params(&binding), slice("code", &[text("AP")]));
        let anything = Binding::from([("p_code".to_owned(), None)]);
        assert!(before.bind_params(&anything).is_everything());
        assert!(before.bind_params(&Binding::new()).is_everything());
    }
}
