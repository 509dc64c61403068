//! Builds the JSON Schema of definition files from the table of keys and the job types. Editors use it for completion
//! and checks.

use crate::definition::schema_form::{SchemaKey, Section, form_of};
use crate::definition::schema_table::sections;
use crate::domain::job::{BodyPart, JobKind};
use serde_json::{Map, Value, json};

/// The JSON Schema (draft 7) of a definition file.
pub fn schema(kinds: &[JobKind]) -> Value {
    let mut definitions = Map::new();
    for section in sections().filter(|s| !["top", "job"].contains(&s.name)) {
        definitions.insert(section.name.to_owned(), map_of(&[section], &[], kinds));
    }
    let of = |name: &str| sections().filter(|s| s.name == name).collect::<Vec<_>>();
    let job: Vec<&Section> = [of("job"), of("settings")].concat();
    let mut one = map_of(&job, &[], kinds);
    one["allOf"] = kinds.iter().map(body_of).collect();
    definitions.insert("job".to_owned(), one);
    // A template is an incomplete job, so it has no required keys.
    definitions.insert("template".to_owned(), map_of(&job, &["code"], kinds));
    let mut top = map_of(&of("top"), &[], kinds);
    top["$schema"] = "http://json-schema.org/draft-07/schema#".into();
    top["title"] = "Procession definition file".into();
    top["definitions"] = definitions.into();
    top
}

/// Maps with the keys of these sections; null counts as absent.
fn map_of(sections: &[&Section], without: &[&str], kinds: &[JobKind]) -> Value {
    let mut properties = Map::new();
    for SchemaKey(name, about, form) in sections.iter().flat_map(|s| s.keys) {
        if !without.contains(name) {
            let mut schema = form_of(form, kinds);
            schema["description"] = (*about).into();
            properties.insert((*name).to_owned(), schema);
        }
    }
    json!({"type": ["object", "null"], "additionalProperties": false, "properties": properties})
}

/// The keys of jobs that belong to a part of the body; a type without that part rejects them.
const PARTS: &[(BodyPart, &[&str])] = &[
    (BodyPart::Source, &["source"]),
    (BodyPart::ProcName, &["proc_name"]),
    (BodyPart::Sql, &["sql", "sql_file"]),
    (BodyPart::Script, &["script", "script_file"]),
    (BodyPart::Interpreter, &["interpreter"]),
    (BodyPart::WorkingDir, &["working_dir"]),
    (BodyPart::Params, &["params"]),
    (BodyPart::Http, &["http"]),
    (BodyPart::Sensor, &["sensor"]),
    (BodyPart::SubBatch, &["sub_batch"]),
    (BodyPart::Executor, &["executor"]),
    (BodyPart::Approval, &["approval"]),
    (BodyPart::Application, &["application"]),
];

/// The required and forbidden keys of a job type. A template may also provide the required ones.
fn body_of(kind: &JobKind) -> Value {
    let known = |part: &BodyPart| kind.needs.contains(part) || kind.may_have.contains(part);
    let mut refused = Map::new();
    let mut needed = Vec::new();
    for (part, keys) in PARTS {
        if !known(part) {
            refused.extend(keys.iter().map(|key| ((*key).to_owned(), json!({"type": "null"}))));
        }
        // A source or an interpreter may come from the defaults.
        let own = !["source", "interpreter", "working_dir"].contains(&keys[0]);
        if kind.needs.contains(part) && own {
            let any: Vec<Value> = keys.iter().map(|key| json!({"required": [key]})).collect();
            needed.push(json!({"anyOf": any}));
        }
    }
    if !known(&BodyPart::Transaction) {
        refused.insert("transaction".to_owned(), json!({"enum": ["one", null]}));
    }
    if !known(&BodyPart::Tx) {
        refused.insert("tx".to_owned(), json!({"enum": ["none", null]}));
    }
    let mut then = vec![json!({"properties": refused})];
    if !needed.is_empty() {
        let alone = json!({"not": {"required": ["template"]}});
        then.push(json!({"if": alone, "then": {"allOf": needed}}));
    }
    let is_this = json!({"properties": {"type": {"const": kind.name}}, "required": ["type"]});
    json!({"if": is_this, "then": {"allOf": then}})
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::{BTreeMap, BTreeSet};

    /// The lists of `keys.rs`, parsed from its source text, so that a new list is found too.
    fn lists() -> BTreeMap<String, BTreeSet<String>> {
        let source = include_str!("keys.rs");
        let mut found = BTreeMap::new();
        for part in source.split("pub(crate) const ").skip(1) {
            let Some((name, rest)) = part.split_once(": &[&str] =") else { continue };
            let (list, _) = rest.split_once("];").expect("a list ends");
            let keys = list.split('"').skip(1).step_by(2).map(str::to_owned).collect();
            found.insert(name.to_lowercase(), keys);
        }
        assert!(found.len() > 8, "{found:?}");
        found
    }

    #[test]
    fn every_key_that_is_read_is_in_the_schema_and_no_other() {
        let listed: BTreeMap<String, BTreeSet<String>> = sections()
            .map(|s| {
                (s.name.to_owned(), s.keys.iter().map(|SchemaKey(k, ..)| (*k).to_owned()).collect())
            })
            .collect();
        let read = lists();
        for name in read.keys().chain(listed.keys()) {
            let (read, listed) = (read.get(name), listed.get(name));
            assert_eq!(
                read, listed,
                "section {name}: left is definition/keys.rs, right is definition/schema_table.rs (and schema_parts.rs); \
                 add what is missing there"
            );
        }
    }

    #[test]
    fn every_key_has_one_sentence_and_every_name_leads_somewhere() {
        let schema = schema(&[]).to_string();
        for part in schema.split("#/definitions/").skip(1) {
            let name = part.split('"').next().unwrap_or_default();
            let there = sections().any(|s| s.name == name) || name == "template";
            assert!(there, "{name} is not a section");
        }
        for SchemaKey(name, about, _) in sections().flat_map(|s| s.keys) {
            assert!(about.ends_with('.') && about.len() > 6, "{name}: {about}");
        }
    }
}
