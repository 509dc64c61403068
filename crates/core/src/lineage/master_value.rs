//! Tracks the values of a master procedure's variables, as far as they are known without running it.

use crate::domain::source::DialectName;
use crate::lineage::access::CatalogueParam;
use crate::lineage::words::name_of;
use sqlparser::tokenizer::{Token, TokenWithSpan, Word};
use std::collections::{BTreeMap, BTreeSet};

/// The value of a variable or an argument.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum MasterValue {
    /// A literal.
    Constant(String),
    /// TRUE or FALSE.
    Boolean(bool),
    /// NULL.
    Null,
    /// A parameter of the master, by name.
    Param(String),
    /// An output of a step; without a parameter name if the routine is unknown.
    Output {
        /// Index of the step.
        step: usize,
        /// Parameter of the routine.
        param: Option<String>,
    },
    /// An unknown value, with its origin.
    Unknown {
        /// The text of its expression.
        text: String,
        /// Line of that text.
        line: u32,
    },
}

/// The variables of a master at one place in its text.
pub(super) struct MasterVariables {
    held: BTreeMap<String, MasterValue>,
    /// Declared types.
    types: BTreeMap<String, String>,
    /// Variables that an earlier pass found assigned.
    known_assigned: BTreeSet<String>,
    assigned: BTreeSet<String>,
    /// Variables assigned in a handler, at an unknown time.
    volatile: BTreeSet<String>,
}

impl MasterVariables {
    /// The parameters of the master, and the assigned variables if they are known.
    pub(super) fn new(params: &[CatalogueParam], known_assigned: BTreeSet<String>) -> Self {
        let named = params.iter().filter_map(|param| {
            let name = param.name.clone()?;
            let value = match param.is_input {
                true => MasterValue::Param(name.clone()),
                false => MasterValue::Null,
            };
            Some((name.to_lowercase(), value))
        });
        let typed = params.iter().filter_map(|param| {
            Some((param.name.as_ref()?.to_lowercase(), param.type_name.clone()))
        });
        Self {
            held: named.collect(),
            types: typed.collect(),
            known_assigned,
            assigned: BTreeSet::new(),
            volatile: BTreeSet::new(),
        }
    }

    /// Whether the set of all assigned variables is known.
    pub(super) fn knows_assigned(&self) -> bool {
        !self.known_assigned.is_empty()
    }

    /// Variables assigned so far.
    pub(super) fn assigned(&self) -> &BTreeSet<String> {
        &self.assigned
    }

    /// Whether a variable with this lower-case name exists.
    pub(super) fn is_variable(&self, name: &str) -> bool {
        name.starts_with('@') || self.held.contains_key(name)
    }

    /// Declares a variable with its type and initial value.
    pub(super) fn declare(&mut self, name: &str, type_name: &str, value: MasterValue) {
        self.held.insert(name.to_owned(), value);
        self.types.insert(name.to_owned(), type_name.to_owned());
    }

    /// The type of a variable; empty if unknown.
    pub(super) fn type_name(&self, name: &str) -> &str {
        self.types.get(name).map_or("", String::as_str)
    }

    /// Assigns a variable.
    pub(super) fn set_value(&mut self, name: &str, value: MasterValue) {
        self.assigned.insert(name.to_owned());
        self.held.insert(name.to_owned(), value);
    }

    /// Marks a variable as assigned in a handler.
    pub(super) fn set_volatile(&mut self, name: &str) {
        self.assigned.insert(name.to_owned());
        self.volatile.insert(name.to_owned());
    }

    /// Marks variables as unknown, because they depend on a branch.
    pub(super) fn forget(&mut self, names: &BTreeSet<String>, line: u32) {
        for name in names {
            let text = format!("{name} is set there under a condition or in a loop");
            self.held.insert(name.clone(), MasterValue::Unknown { text, line });
        }
    }

    /// The value of a variable; `None` if the variable or its value is unknown.
    pub(super) fn value(&self, name: &str, is_in_loop: bool) -> Option<MasterValue> {
        let may_change = is_in_loop && self.known_assigned.contains(name);
        if may_change || self.volatile.contains(name) {
            return None;
        }
        self.held.get(name).cloned()
    }
}

/// Parses a literal or the name of a variable; `None` for anything else.
pub(super) fn read_value(
    tokens: &[TokenWithSpan],
    dialect: DialectName,
    variable: impl Fn(&str) -> Option<MasterValue>,
) -> Option<MasterValue> {
    let at = |place: usize| tokens.get(place).map(|one| &one.token);
    let constant = |text: &str| Some(MasterValue::Constant(text.to_owned()));
    match (at(0)?, at(1), at(2)) {
        (Token::Minus, Some(Token::Number(number, _)), None) => constant(&format!("-{number}")),
        (Token::Plus, Some(Token::Number(number, _)), None) => constant(number),
        (Token::Word(word), Some(Token::SingleQuotedString(text)), None)
            if ["DATE", "TIMESTAMP"].iter().any(|kind| word.value.eq_ignore_ascii_case(kind)) =>
        {
            constant(text)
        }
        // 'x'::text
        (Token::SingleQuotedString(text), Some(Token::DoubleColon), Some(Token::Word(_)))
            if tokens.len() == 3 =>
        {
            constant(text)
        }
        (Token::Word(word), None, None) => read_word(word, tokens, dialect, variable),
        (Token::Number(number, _), None, None) => constant(number),
        (Token::SingleQuotedString(text) | Token::NationalStringLiteral(text), None, None) => {
            constant(text)
        }
        (Token::DoubleQuotedString(text), None, None) if dialect == DialectName::Mysql => {
            constant(text)
        }
        _ => None,
    }
}

fn read_word(
    word: &Word,
    tokens: &[TokenWithSpan],
    dialect: DialectName,
    variable: impl Fn(&str) -> Option<MasterValue>,
) -> Option<MasterValue> {
    // In MySQL double quotes delimit a text.
    if word.quote_style == Some('"') && dialect == DialectName::Mysql {
        return Some(MasterValue::Constant(word.value.clone()));
    }
    match word.value.to_ascii_uppercase().as_str() {
        "NULL" => return Some(MasterValue::Null),
        "TRUE" => return Some(MasterValue::Boolean(true)),
        "FALSE" => return Some(MasterValue::Boolean(false)),
        _ => {}
    }
    variable(&name_of(&tokens.first()?.token, dialect)?.to_lowercase())
}
