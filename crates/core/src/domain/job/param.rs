//! Parameters as a definition declares them.

use serde::{Deserialize, Deserializer, Serialize};
use std::collections::BTreeMap;

/// Which way a parameter of a procedure travels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(rename_all = "lowercase")]
pub enum ParamMode {
    /// Handed to the body.
    #[default]
    In,
    /// Handed back by the body and kept as an output of the job.
    Out,
    /// Both.
    InOut,
}

/// The type a parameter's text is checked against before it is bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(rename_all = "lowercase")]
pub enum ParamType {
    /// Any text.
    #[default]
    Text,
    /// A whole number of 64 bits.
    Int,
    /// A decimal number, kept exact as text.
    Decimal,
    /// `YYYY-MM-DD`.
    Date,
    /// `YYYY-MM-DD HH:MM:SS`.
    Datetime,
    /// `true` or `false`.
    Bool,
    /// Bytes: `0x00ff` or `base64:AP8=`.
    Bytes,
}

impl ParamType {
    /// Its word in a definition.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Int => "int",
            Self::Decimal => "decimal",
            Self::Date => "date",
            Self::Datetime => "datetime",
            Self::Bool => "bool",
            Self::Bytes => "bytes",
        }
    }
}

/// One parameter of a job's body.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Default)]
pub struct Param {
    /// Its name: the procedure's parameter, `:name` in SQL, `PROCESSION_PARAM_NAME` in a script.
    pub name: String,
    /// Which way it travels.
    #[serde(default)]
    pub mode: ParamMode,
    /// What its text must be.
    #[serde(rename = "type", default)]
    pub ty: ParamType,
    /// Its value, in which `${…}` of a closed set of names is replaced (see `domain::params`);
    /// `None` leaves it to the layers below, and is SQL's NULL when none of them has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
    /// Whether the job is refused without it.
    #[serde(rename = "required", default, skip_serializing_if = "is_optional")]
    pub need: ParamNeed,
    /// Whether its value is never shown.
    #[serde(rename = "secret", default, skip_serializing_if = "is_open")]
    pub secrecy: Secrecy,
}

fn is_optional(need: &ParamNeed) -> bool {
    *need == ParamNeed::Optional
}

fn is_open(secrecy: &Secrecy) -> bool {
    *secrecy == Secrecy::Open
}

/// A parameter that a group, or the definition for all groups, declares.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ParamDecl {
    /// Its name.
    pub name: String,
    /// What its text must be.
    #[serde(rename = "type", default)]
    pub ty: ParamType,
    /// Its value where the batch gives none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
    /// Whether a batch without it is refused.
    #[serde(rename = "required", default, skip_serializing_if = "is_optional")]
    pub need: ParamNeed,
    /// Whether its value is never shown.
    #[serde(rename = "secret", default, skip_serializing_if = "is_open")]
    pub secrecy: Secrecy,
}

impl ParamDecl {
    /// A plain text with a value.
    pub fn plain(name: &str, value: &str) -> Self {
        Self {
            name: name.to_owned(),
            ty: ParamType::Text,
            value: Some(value.to_owned()),
            need: ParamNeed::Optional,
            secrecy: Secrecy::Open,
        }
    }
}

/// Reads declared parameters; also the map of names to values that snapshots of the first version
/// hold.
pub fn decls<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<ParamDecl>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Either {
        List(Vec<ParamDecl>),
        Map(BTreeMap<String, String>),
    }
    Ok(match Either::deserialize(deserializer)? {
        Either::List(list) => list,
        Either::Map(map) => map.iter().map(|(k, v)| ParamDecl::plain(k, v)).collect(),
    })
}

/// Whether a value must be there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(from = "bool", into = "bool")]
pub enum ParamNeed {
    /// NULL when there is none.
    #[default]
    Optional,
    /// Refused when there is none.
    Required,
}

/// Whether a value may be shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(from = "bool", into = "bool")]
pub enum Secrecy {
    /// It may.
    #[default]
    Open,
    /// Never.
    Secret,
}

impl From<bool> for ParamNeed {
    fn from(yes: bool) -> Self {
        if yes { Self::Required } else { Self::Optional }
    }
}

impl From<ParamNeed> for bool {
    fn from(need: ParamNeed) -> Self {
        need == ParamNeed::Required
    }
}

impl From<bool> for Secrecy {
    fn from(yes: bool) -> Self {
        if yes { Self::Secret } else { Self::Open }
    }
}

impl From<Secrecy> for bool {
    fn from(secrecy: Secrecy) -> Self {
        secrecy == Secrecy::Secret
    }
}
