//! The forms of values in a definition file, each with its JSON Schema.

use crate::domain::job::JobKind;
use crate::domain::source::DialectName;
use serde_json::{Map, Value, json};

/// A map of known keys; `name` is the name of its list in `keys.rs`, in lower case.
pub(crate) struct Section {
    pub name: &'static str,
    pub keys: &'static [SchemaKey],
}

/// A key: its name, its description in one sentence, and the form of its value.
pub(crate) struct SchemaKey(pub &'static str, pub &'static str, pub SchemaValue);

/// The form of a value.
pub(crate) enum SchemaValue {
    /// A single value.
    Text,
    /// A whole number.
    Int(i64, i64),
    /// A boolean.
    Flag,
    /// A time of day.
    Time,
    /// One of these words.
    Words(&'static [&'static str]),
    /// When an event is notified.
    Moment,
    /// When something is due.
    Due,
    /// A factor of the usual duration.
    Factor,
    /// A job type.
    JobType,
    /// A list of single values, or one of them.
    Texts,
    /// A map of names to texts.
    NamedTexts,
    /// SQL: one text, or one per dialect.
    Sql,
    /// A list of maps of this section.
    List(&'static str),
    /// A list of single values or maps of this section, or one of either.
    Mixed(&'static str),
    /// Maps of this section by name, or a list of them with their names inside, under this key.
    By(&'static str, &'static str),
    /// The same; a single value may stand for the map.
    Short(&'static str, &'static str),
    /// One map of this section.
    Map(&'static str),
    /// The inputs of a job: names with single values, or a list of names or maps of this section.
    Uses(&'static str),
    /// One map of this section, or one of these words.
    OrWord(&'static str, &'static [&'static str]),
    /// One map of this section, or a single value.
    OrText(&'static str),
    /// One map of this section, or a list of two values.
    OrPair(&'static str),
    /// One map of this section, or a list of values.
    OrTexts(&'static str),
}

/// The JSON Schema of a form; null counts as absent.
pub(crate) fn form_of(form: &SchemaValue, kinds: &[JobKind]) -> Value {
    match form {
        SchemaValue::Text => json!({"type": ["string", "number", "boolean", "null"]}),
        SchemaValue::Int(min, max) => json!({
            "type": ["integer", "string", "null"], "minimum": min, "maximum": max,
            "pattern": "^[+-]?[0-9]+$"
        }),
        SchemaValue::Flag => json!({"enum": [
            true, false, "true", "false", "yes", "no", "on", "off", "y", "n", 1, 0, "1", "0", null
        ]}),
        SchemaValue::Time => json!({
            "type": ["string", "null"], "pattern": "^[0-9]{1,2}:[0-9]{1,2}(:[0-9]{1,2})?$"
        }),
        SchemaValue::Words(words) => {
            let all: Vec<Value> =
                words.iter().map(|w| Value::from(*w)).chain([Value::Null]).collect();
            json!({"enum": all})
        }
        // YAML 1.1 parsers read `off` as a boolean.
        SchemaValue::Moment => json!({"enum": ["now", "batch", "day", "off", false, null]}),
        SchemaValue::Due => json!({
            "type": ["string", "null"],
            "pattern": "^((([+][0-9]+d|workday[(][+]?[0-9]+[)]) +)?[0-9]{1,2}:[0-9]{1,2}(:[0-9]{1,2})?\
                |[0-9]+h([0-9]+m)?([0-9]+s)?|[0-9]+m([0-9]+s)?|[0-9]+s)$"
        }),
        SchemaValue::Factor => json!({
            "type": ["number", "string", "null"], "minimum": 1.1, "maximum": 100,
            "pattern": "^[0-9]{1,3}([.][0-9]{1,2})?$"
        }),
        SchemaValue::JobType => {
            let one = |k: &JobKind| json!({"const": k.name, "description": k.about});
            let all: Vec<Value> = kinds.iter().map(one).chain([json!({"type": "null"})]).collect();
            json!({"anyOf": all})
        }
        SchemaValue::Texts => json!({
            "type": ["array", "string", "number", "null"],
            "items": {"type": ["string", "number", "boolean"]}
        }),
        SchemaValue::NamedTexts => {
            json!({"type": ["object", "null"], "additionalProperties": {"type": "string"}})
        }
        SchemaValue::Sql => {
            let texts: Map<String, Value> = DialectName::ALL
                .iter()
                .map(|d| (d.to_string(), json!({"type": ["string", "null"]})))
                .collect();
            json!({
                "type": ["string", "object", "null"], "properties": texts,
                "additionalProperties": false
            })
        }
        SchemaValue::List(_)
        | SchemaValue::Mixed(_)
        | SchemaValue::By(..)
        | SchemaValue::Short(..) => maps_of(form),
        SchemaValue::Map(_) | SchemaValue::Uses(_) | SchemaValue::OrWord(..) => maps_of(form),
        SchemaValue::OrText(_) | SchemaValue::OrPair(_) | SchemaValue::OrTexts(_) => maps_of(form),
    }
}

/// The JSON Schema of the forms that hold maps of a section.
fn maps_of(form: &SchemaValue) -> Value {
    let refer = |section: &str| json!({"$ref": format!("#/definitions/{section}")});
    match form {
        SchemaValue::Text
        | SchemaValue::Int(..)
        | SchemaValue::Flag
        | SchemaValue::Time
        | SchemaValue::Words(_) => Value::Null,
        SchemaValue::JobType | SchemaValue::Moment | SchemaValue::Due | SchemaValue::Factor => {
            Value::Null
        }
        SchemaValue::Texts | SchemaValue::NamedTexts | SchemaValue::Sql => Value::Null,
        SchemaValue::List(section) => json!({"type": ["array", "null"], "items": refer(section)}),
        SchemaValue::Mixed(section) => {
            let one = json!({"anyOf": [{"type": ["string", "number"]}, refer(section)]});
            json!({"anyOf": [{"type": "array", "items": one}, one]})
        }
        SchemaValue::By(section, key) => map_or_list(section, key, refer(section)),
        SchemaValue::Short(section, key) => {
            let short = json!({"type": ["string", "number", "boolean"]});
            map_or_list(section, key, json!({"anyOf": [short, refer(section)]}))
        }
        SchemaValue::Map(section) => json!({"anyOf": [refer(section)]}),
        SchemaValue::Uses(section) => {
            let word = json!({"type": ["string", "number"]});
            let one = json!({"anyOf": [word, refer(section)]});
            let named = json!({"type": ["string", "number", "null"]});
            json!({"anyOf": [
                {"type": ["object", "null"], "additionalProperties": named},
                {"type": "array", "items": one}, word
            ]})
        }
        SchemaValue::OrWord(section, words) => json!({"anyOf": [{"enum": words}, refer(section)]}),
        SchemaValue::OrText(section) => {
            json!({"anyOf": [{"type": ["string", "number", "null"]}, refer(section)]})
        }
        SchemaValue::OrTexts(section) => {
            let texts =
                json!({"type": "array", "items": {"type": ["string", "number", "boolean"]}});
            json!({"anyOf": [texts, refer(section)]})
        }
        SchemaValue::OrPair(section) => {
            let pair = json!({
                "type": "array", "minItems": 2, "maxItems": 2,
                "items": {"type": ["string", "number", "null"]}
            });
            json!({"anyOf": [pair, refer(section)]})
        }
    }
}

/// Maps by name, or a list of maps that contain their name.
fn map_or_list(section: &str, key: &str, entry: Value) -> Value {
    let inside = if section == "template" {
        json!({"type": "object"})
    } else {
        json!({"$ref": format!("#/definitions/{section}")})
    };
    json!({"anyOf": [
        {"type": ["object", "null"], "additionalProperties": entry},
        {"type": "array", "items": {"allOf": [inside, {"required": [key]}]}}
    ]})
}
