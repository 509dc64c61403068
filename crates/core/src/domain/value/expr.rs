//! Conditions: the small language of edge conditions, success rules and checks.
//!
//! A condition compares named values with literals and combines the results. It computes nothing, calls nothing and has
//! no state, so it can be checked at load and evaluated anywhere.

mod lex;
mod read;

use crate::domain::text::truncate_text;
use crate::domain::value::value_order;
use crate::domain::value::{OutputValue, ValueType};
use bigdecimal::BigDecimal;
use read::ExprParser;
use serde::{Deserialize, Serialize};
use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

/// Maximum length of a condition in characters; the longest one found in a definition had 160.
pub const LENGTH_MAX: usize = 2_000;
/// Maximum nesting of parentheses and `not`. The parser recurses once per level, and 100,000 parentheses would overflow
/// the stack without this limit.
pub const DEPTH_MAX: usize = 50;
/// Maximum length of a text that is read as a number; parsing digits takes quadratic time.
const DIGITS_MAX: usize = 1_000;

/// A condition: parsed once, then evaluated against values.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Expr {
    text: String,
    node: ExprNode,
}

/// Why a condition is invalid or cannot be evaluated; `Display` is the sentence for the user.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("condition, column {column}: {what}; {cure}")]
pub struct ExprError {
    column: usize,
    what: String,
    cure: String,
}

impl ExprError {
    fn new(column: usize, what: impl Into<String>, cure: impl Into<String>) -> Self {
        Self { column, what: what.into(), cure: cure.into() }
    }

    /// Position of the error in characters, counted from 1.
    pub fn column(&self) -> usize {
        self.column
    }

    /// The problem with its column, without the hint.
    pub fn message(&self) -> String {
        format!("condition, column {}: {}", self.column, self.what)
    }

    /// The hint.
    pub fn hint_text(&self) -> &str {
        &self.cure
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum ExprNode {
    All(Vec<ExprNode>),
    Any(Vec<ExprNode>),
    Not(Box<ExprNode>),
    /// A name or `true`/`false` without a comparison.
    Holds(ExprOperand),
    Compare(ExprOperand, CompareOperator, ExprOperand),
    In(ExprOperand, Sense, Vec<ExprOperand>),
    Between(ExprOperand, Sense, ExprOperand, ExprOperand),
    Null(ExprOperand, Sense),
}

/// `in` or `not in`: not the same as `not (… in …)`, because with NULL both are false.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sense {
    Plain,
    Negated,
}

impl Sense {
    fn apply(self, answer: bool) -> bool {
        match self {
            Self::Plain => answer,
            Self::Negated => !answer,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CompareOperator {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct ExprOperand {
    column: usize,
    kind: OperandKind,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum OperandKind {
    Name(String),
    Number(BigDecimal),
    Text(String),
    Bool(bool),
    Null,
}

/// The value of an operand. A named value is text; it also counts as a number if it reads as one, because OUT
/// parameters arrive as text whatever their type was.
#[derive(Clone, Debug)]
enum ExprValue {
    Null,
    Number(BigDecimal),
    Quoted(String),
    Bool(bool),
    Found(String, Option<BigDecimal>),
    /// A value of a type whose texts sort in another order than its values.
    Typed(ValueType, String),
}

type LookUp<'a> = &'a dyn Fn(&str) -> Option<OutputValue>;

impl Expr {
    /// Parses a condition such as `p_status == 0 and result.total between 1 and 100`.
    pub fn parse(text: &str) -> Result<Self, ExprError> {
        let node = ExprParser::new(text)?.whole()?;
        Ok(Self { text: text.to_owned(), node })
    }

    /// The names that the condition uses, each once, in the order of the text.
    pub fn names(&self) -> Vec<&str> {
        let mut found = Vec::new();
        self.node.names(&mut found);
        found
    }

    /// Evaluates the condition. `look_up` returns the value of a name; `None` means that the name does not exist. `and`
    /// and `or` stop at the first deciding operand, so `x is not null and x > 3` is safe.
    pub fn evaluate(
        &self,
        look_up: &dyn Fn(&str) -> Option<OutputValue>,
    ) -> Result<bool, ExprError> {
        self.node.evaluate(look_up)
    }
}

impl fmt::Display for Expr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.text)
    }
}

impl FromStr for Expr {
    type Err = ExprError;
    fn from_str(text: &str) -> Result<Self, ExprError> {
        Self::parse(text)
    }
}

impl TryFrom<String> for Expr {
    type Error = ExprError;
    fn try_from(text: String) -> Result<Self, ExprError> {
        Self::parse(&text)
    }
}

impl From<Expr> for String {
    fn from(expr: Expr) -> String {
        expr.text
    }
}

impl ExprNode {
    fn names<'a>(&'a self, found: &mut Vec<&'a str>) {
        let mut add = |operands: &[&'a ExprOperand]| {
            for operand in operands {
                match &operand.kind {
                    OperandKind::Name(name) if !found.contains(&name.as_str()) => found.push(name),
                    OperandKind::Name(_) | OperandKind::Number(_) | OperandKind::Text(_) => {}
                    OperandKind::Bool(_) | OperandKind::Null => {}
                }
            }
        };
        match self {
            Self::All(nodes) | Self::Any(nodes) => nodes.iter().for_each(|n| n.names(found)),
            Self::Not(node) => node.names(found),
            Self::Holds(a) | Self::Null(a, _) => add(&[a]),
            Self::Compare(a, _, b) => add(&[a, b]),
            Self::Between(a, _, low, high) => add(&[a, low, high]),
            Self::In(a, _, list) => {
                add(&[a]);
                add(&list.iter().collect::<Vec<_>>());
            }
        }
    }

    fn evaluate(&self, look_up: LookUp<'_>) -> Result<bool, ExprError> {
        match self {
            Self::All(nodes) => {
                for node in nodes {
                    if !node.evaluate(look_up)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            Self::Any(nodes) => {
                for node in nodes {
                    if node.evaluate(look_up)? {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
            Self::Not(node) => Ok(!node.evaluate(look_up)?),
            Self::Holds(operand) => operand.holds(look_up),
            Self::Null(operand, sense) => {
                Ok(sense.apply(matches!(operand.value(look_up)?, ExprValue::Null)))
            }
            Self::Compare(left, comparison, right) => {
                comparison.compare(&left.evaluate(look_up)?, &right.evaluate(look_up)?)
            }
            Self::In(operand, sense, list) => {
                let value = operand.value(look_up)?;
                let mut found = false;
                for other in list {
                    found |= equal(&value, &other.value(look_up)?);
                }
                Ok(!matches!(value, ExprValue::Null) && sense.apply(found))
            }
            Self::Between(operand, sense, low, high) => {
                let found = operand.evaluate(look_up)?;
                let (low, high) = (low.evaluate(look_up)?, high.evaluate(look_up)?);
                if found.is_null() || low.is_null() || high.is_null() {
                    return Ok(false);
                }
                let within = order(&found, &low)? != Ordering::Less
                    && order(&found, &high)? != Ordering::Greater;
                Ok(sense.apply(within))
            }
        }
    }
}

/// An operand with its value, so that a message can show both.
struct EvaluatedOperand<'e> {
    operand: &'e ExprOperand,
    value: ExprValue,
}

impl EvaluatedOperand<'_> {
    fn is_null(&self) -> bool {
        matches!(self.value, ExprValue::Null)
    }

    fn describe(&self) -> String {
        self.operand.words(&self.value)
    }
}

impl ExprOperand {
    fn evaluate(&self, look_up: LookUp<'_>) -> Result<EvaluatedOperand<'_>, ExprError> {
        Ok(EvaluatedOperand { operand: self, value: self.value(look_up)? })
    }

    fn value(&self, look_up: LookUp<'_>) -> Result<ExprValue, ExprError> {
        Ok(match &self.kind {
            OperandKind::Number(number) => ExprValue::Number(number.clone()),
            OperandKind::Text(text) => ExprValue::Quoted(text.clone()),
            OperandKind::Bool(truth) => ExprValue::Bool(*truth),
            OperandKind::Null => ExprValue::Null,
            OperandKind::Name(name) => match look_up(name) {
                Some(OutputValue::Null) => ExprValue::Null,
                Some(OutputValue::Text(text)) => found(None, text),
                Some(OutputValue::Typed(ty, text)) => found(Some(ty), text),
                Some(OutputValue::Stored(reference)) => {
                    return Err(ExprError::new(
                        self.column,
                        format!("{name} cannot be compared"),
                        format!("it is {}", reference.describe()),
                    ));
                }
                Some(OutputValue::Unusable(reason)) => {
                    return Err(ExprError::new(
                        self.column,
                        format!("{name} cannot be compared"),
                        reason,
                    ));
                }
                None => {
                    return Err(ExprError::new(
                        self.column,
                        format!("there is no value named {name}"),
                        "use a name that is handed out here, in the same spelling",
                    ));
                }
            },
        })
    }

    fn holds(&self, look_up: LookUp<'_>) -> Result<bool, ExprError> {
        let value = self.value(look_up)?;
        match (&value, truth(&value)) {
            (ExprValue::Null, _) => Ok(false),
            (_, Some(truth)) => Ok(truth),
            (_, None) => Err(ExprError::new(
                self.column,
                format!("{} is neither true nor false", self.words(&value)),
                "compare it with something, for example == 0",
            )),
        }
    }

    /// Describes the operand for a message: name, value and kind.
    fn words(&self, value: &ExprValue) -> String {
        let shown = |text: &str| truncate_text(text, 80);
        match (&self.kind, value) {
            (OperandKind::Name(name), ExprValue::Found(text, number)) => {
                let kind = if number.is_some() { "a number" } else { "text" };
                format!("{name} ('{}', {kind})", shown(text))
            }
            (_, ExprValue::Number(number)) => format!("{} (a number)", number.to_plain_string()),
            (OperandKind::Name(name), ExprValue::Typed(ty, text)) => {
                format!("{name} ('{}', {ty})", shown(text))
            }
            (
                _,
                ExprValue::Quoted(text) | ExprValue::Found(text, _) | ExprValue::Typed(_, text),
            ) => {
                format!("'{}' (text)", shown(text))
            }
            (_, ExprValue::Bool(truth)) => truth.to_string(),
            (_, ExprValue::Null) => "NULL".to_owned(),
        }
    }
}

impl CompareOperator {
    fn compare(
        self,
        left: &EvaluatedOperand<'_>,
        right: &EvaluatedOperand<'_>,
    ) -> Result<bool, ExprError> {
        if left.is_null() || right.is_null() {
            return Ok(false);
        }
        Ok(match self {
            Self::Equal => equal(&left.value, &right.value),
            Self::NotEqual => !equal(&left.value, &right.value),
            Self::Less => order(left, right)? == Ordering::Less,
            Self::LessOrEqual => order(left, right)? != Ordering::Greater,
            Self::Greater => order(left, right)? == Ordering::Greater,
            Self::GreaterOrEqual => order(left, right)? != Ordering::Less,
        })
    }
}

fn equal(left: &ExprValue, right: &ExprValue) -> bool {
    if matches!(left, ExprValue::Bool(_)) || matches!(right, ExprValue::Bool(_)) {
        return truth(left).is_some() && truth(left) == truth(right);
    }
    match (numeric(left), numeric(right), by_type(left, right)) {
        (_, _, Some(value_order::TypedOrder::Known(order))) => order == Ordering::Equal,
        (Some(left), Some(right), _) => left == right,
        _ => value_text(left).is_some() && value_text(left) == value_text(right),
    }
}

/// A named value: text in the order of text, unless its type has another order.
fn found(ty: Option<ValueType>, text: String) -> ExprValue {
    match ty {
        Some(
            ty @ (ValueType::Date
            | ValueType::Time
            | ValueType::Timestamp
            | ValueType::TimestampTz
            | ValueType::Interval
            | ValueType::Bytes
            | ValueType::Array),
        ) => ExprValue::Typed(ty, text),
        None
        | Some(
            ValueType::Text
            | ValueType::Int
            | ValueType::Decimal
            | ValueType::Bool
            | ValueType::Json,
        ) => {
            let number = number(&text);
            ExprValue::Found(text, number)
        }
    }
}

/// Compares by the type of the value, if its type has an order of its own.
fn by_type(left: &ExprValue, right: &ExprValue) -> Option<value_order::TypedOrder> {
    match (left, right) {
        (ExprValue::Typed(ty, value), other) => {
            Some(value_order::compare(*ty, value, &value_text(other).unwrap_or_default()))
        }
        (other, ExprValue::Typed(ty, value)) => {
            let reversed = value_order::compare(*ty, value, &value_text(other).unwrap_or_default());
            Some(match reversed {
                value_order::TypedOrder::Known(order) => {
                    value_order::TypedOrder::Known(order.reverse())
                }
                same => same,
            })
        }
        (_, _) => None,
    }
}

fn order(left: &EvaluatedOperand<'_>, right: &EvaluatedOperand<'_>) -> Result<Ordering, ExprError> {
    if let (Some(left), Some(right)) = (numeric(&left.value), numeric(&right.value)) {
        return Ok(left.cmp(right));
    }
    if let Some(value_order::TypedOrder::Known(order)) = by_type(&left.value, &right.value) {
        return Ok(order);
    }
    // A quoted literal is compared as text: batch_no >= '202401'.
    let quoted = |v: &ExprValue| matches!(v, ExprValue::Quoted(_));
    let as_text = |v: &ExprValue, other: &ExprValue| match v {
        ExprValue::Quoted(_) | ExprValue::Found(_, None) => true,
        ExprValue::Found(_, Some(_)) => quoted(other),
        ExprValue::Typed(..) | ExprValue::Number(_) | ExprValue::Bool(_) | ExprValue::Null => false,
    };
    if as_text(&left.value, &right.value) && as_text(&right.value, &left.value) {
        return Ok(value_text(&left.value).cmp(&value_text(&right.value)));
    }
    Err(ExprError::new(
        left.operand.column,
        format!("{} and {} have no order", left.describe(), right.describe()),
        "compare two numbers, two texts (a literal in quotes is text), or a date or time with one",
    ))
}

fn numeric(value: &ExprValue) -> Option<&BigDecimal> {
    match value {
        ExprValue::Number(number) | ExprValue::Found(_, Some(number)) => Some(number),
        ExprValue::Found(_, None) | ExprValue::Typed(..) | ExprValue::Quoted(_) => None,
        ExprValue::Bool(_) | ExprValue::Null => None,
    }
}

fn value_text(value: &ExprValue) -> Option<String> {
    match value {
        ExprValue::Quoted(text) | ExprValue::Found(text, _) | ExprValue::Typed(_, text) => {
            Some(text.clone())
        }
        ExprValue::Number(number) => Some(number.to_plain_string()),
        ExprValue::Bool(_) | ExprValue::Null => None,
    }
}

/// `true`, `false`, and the 1 and 0 that MySQL and SQLite store for them.
fn truth(value: &ExprValue) -> Option<bool> {
    match value {
        ExprValue::Bool(truth) => Some(*truth),
        ExprValue::Found(text, _) if text == "1" || text.eq_ignore_ascii_case("true") => Some(true),
        ExprValue::Found(text, _) if text == "0" || text.eq_ignore_ascii_case("false") => {
            Some(false)
        }
        ExprValue::Found(..) | ExprValue::Typed(..) | ExprValue::Number(_) => None,
        ExprValue::Quoted(_) | ExprValue::Null => None,
    }
}

/// Parses a plain decimal, `-12.50`: no exponent, separators or blanks.
pub fn number(text: &str) -> Option<BigDecimal> {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, "0"));
    let all_digits = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    let fits = text.len() <= DIGITS_MAX && all_digits(whole) && all_digits(fraction);
    fits.then(|| BigDecimal::from_str(text).ok()).flatten()
}

#[cfg(test)]
mod tests;
