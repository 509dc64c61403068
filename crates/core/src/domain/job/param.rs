//! Parameters as declared in a definition.

use serde::{Deserialize, Deserializer, Serialize};
use std::collections::BTreeMap;

/// Direction of a procedure's parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(rename_all = "lowercase")]
pub enum ParamMode {
    /// Passed to the body.
    #[default]
    In,
    /// Returned by the body and kept as an output of the job.
    Out,
    /// Passed to the body and returned by it.
    InOut,
}

/// Type against which the text of a parameter is checked before it is bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(rename_all = "lowercase")]
pub enum ParamType {
    /// Any text.
    #[default]
    Text,
    /// A 64-bit integer, signed or unsigned.
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
    /// Name: the procedure's parameter, `:name` in SQL, `PROCESSION_PARAM_NAME` in a script.
    pub name: String,
    /// Direction.
    #[serde(default)]
    pub mode: ParamMode,
    /// Type of its value.
    #[serde(rename = "type", default)]
    pub ty: ParamType,
    /// Value, in which `${…}` references of a fixed set are replaced (see `domain::params`);
    /// `None`: the value comes from the layers below, and is SQL's NULL when no layer has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
    /// Whether the job is refused when there is no value.
    #[serde(rename = "required", default, skip_serializing_if = "is_optional")]
    pub need: ParamNeed,
    /// Whether the value may be shown.
    #[serde(rename = "secret", default, skip_serializing_if = "is_open")]
    pub secrecy: Secrecy,
}

fn is_optional(need: &ParamNeed) -> bool {
    *need == ParamNeed::Optional
}

fn is_open(secrecy: &Secrecy) -> bool {
    *secrecy == Secrecy::Open
}

/// A parameter declared by a group, or by the definition for all groups.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ParamDecl {
    /// Name, unique within its declaration list.
    pub name: String,
    /// Type of its value.
    #[serde(rename = "type", default)]
    pub ty: ParamType,
    /// Default value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
    /// Whether a batch without a value is refused.
    #[serde(rename = "required", default, skip_serializing_if = "is_optional")]
    pub need: ParamNeed,
    /// Whether the value may be shown.
    #[serde(rename = "secret", default, skip_serializing_if = "is_open")]
    pub secrecy: Secrecy,
}

impl ParamDecl {
    /// A text parameter with a value and defaults otherwise.
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

/// Deserializes declared parameters; also accepts the map of names to values in snapshots of the
/// first version.
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

/// Whether a value is required.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(from = "bool", into = "bool")]
pub enum ParamNeed {
    /// NULL when there is no value.
    #[default]
    Optional,
    /// Refused when there is no value.
    Required,
}

/// Whether a value may be shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(from = "bool", into = "bool")]
pub enum Secrecy {
    /// It may be shown.
    #[default]
    Open,
    /// It is never shown.
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
