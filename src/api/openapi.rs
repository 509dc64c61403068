//! The OpenAPI 3.1 description of the API, generated from the routes.

use crate::api::caller::CallerNeeds;
use crate::api::route::{Noun, ResponseKind, Route};
use schemars::SchemaGenerator;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

/// Describes these routes.
pub(super) fn describe(nouns: &[Noun]) -> Value {
    let settings = SchemaSettings::draft2020_12().with(|s| {
        s.definitions_path = "/components/schemas".into();
    });
    let mut schemas = settings.into_generator();
    let mut paths: Map<String, Value> = Map::new();
    for noun in nouns {
        for route in &noun.routes {
            let described = operation(noun.name, route, &mut schemas);
            let path = paths.entry(format!("/api/v1{}", route.path)).or_insert_with(|| json!({}));
            path[route.method.as_str().to_lowercase()] = described;
        }
    }
    let shapes = schemas.take_definitions(true);
    // Several files may have routes of one noun.
    let mut names: Vec<&str> = Vec::new();
    for noun in nouns.iter().filter(|n| !n.routes.is_empty()) {
        if !names.contains(&noun.name) {
            names.push(noun.name);
        }
    }
    let tags: Vec<Value> = names.iter().map(|name| json!({ "name": name })).collect();
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Procession",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Batches of stored procedures, SQL and scripts: everything that the command line \
                            and the console do.",
            "license": { "name": "Apache-2.0", "identifier": "Apache-2.0" },
        },
        "servers": [{ "url": "/" }],
        "tags": tags,
        "security": [{ "token": [] }, { "session": [] }],
        "paths": paths,
        "components": {
            "schemas": with_problem(shapes),
            "securitySchemes": {
                "token": { "type": "http", "scheme": "bearer" },
                "session": { "type": "apiKey", "in": "cookie", "name": "procession" },
            },
        },
    })
}

fn operation(noun: &str, route: &Route, schemas: &mut SchemaGenerator) -> Value {
    let mut parameters = parameters("path", (route.place)(schemas).into(), schemas);
    if let Some(query) = route.query {
        parameters.extend(self::parameters("query", query(schemas).into(), schemas));
    }
    let answer = match &route.answer {
        ResponseKind::Json(draw) => json!({ "application/json": { "schema": draw(schemas) } }),
        // `text/csv, application/x-ndjson`: the caller chooses.
        ResponseKind::Media(media) => {
            let schema = |media: &str| match media.ends_with("json") || media.ends_with("yaml") {
                true => json!({}),
                false => json!({ "type": "string" }),
            };
            media.split(", ").map(|m| (m, json!({ "schema": schema(m) }))).collect()
        }
    };
    let problem = json!({
        "description": "Refused; `detail` says why and what to do",
        "content": { "application/problem+json": { "schema": { "$ref": "#/components/schemas/Problem" } } },
    });
    let mut described = json!({
        "tags": [noun],
        "operationId": operation_id(route),
        "summary": route.summary,
        "parameters": parameters,
        "x-needs": needs(route.needs),
        "responses": {
            "200": { "description": "Done", "content": answer },
            "4XX": problem,
            "5XX": problem,
        },
    });
    if let Some(waits) = route.waits {
        described["responses"]["202"] = json!({
            "description": "Nothing is done yet: the change waits for the approval of a second person",
            "content": { "application/json": { "schema": waits(schemas) } },
        });
    }
    if route.needs == CallerNeeds::Nothing {
        described["security"] = json!([]);
    }
    if route.body.is_none() {
        described["responses"]["304"] = json!({ "description": "As it was (If-None-Match)" });
    }
    if let Some(body) = route.body {
        described["requestBody"] =
            json!({ "content": { "application/json": { "schema": body(schemas) } } });
    }
    described
}

/// `GET /groups/{group}/batches` is `get_groups_group_batches`.
fn operation_id(route: &Route) -> String {
    let path = route.path.replace(['{', '}'], "").replace(['/', '-'], "_");
    format!("{}{path}", route.method.as_str().to_lowercase())
}

fn needs(needs: CallerNeeds) -> Value {
    match needs {
        CallerNeeds::Nothing => json!("nothing"),
        CallerNeeds::Login => json!("login"),
        CallerNeeds::Somewhere(p) => json!({ "permission": p, "of": "the group" }),
        CallerNeeds::Everywhere(p) => json!({ "permission": p, "of": "all groups" }),
    }
}

/// The fields of a struct, each as a parameter.
fn parameters(place: &str, schema: Value, schemas: &SchemaGenerator) -> Vec<Value> {
    let named = schema.get("$ref").and_then(Value::as_str).and_then(|r| r.rsplit('/').next());
    let whole = named.and_then(|name| schemas.definitions().get(name)).cloned().unwrap_or(schema);
    let required: Vec<&str> =
        whole["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let Some(fields) = whole["properties"].as_object() else { return Vec::new() };
    let parameter = |(name, schema): (&String, &Value)| {
        let mut schema = schema.clone();
        let said = schema.as_object_mut().and_then(|s| s.remove("description"));
        json!({
            "name": name, "in": place, "schema": schema, "description": said.unwrap_or_default(),
            "required": place == "path" || required.contains(&name.as_str()),
        })
    };
    fields.iter().map(parameter).collect()
}

fn with_problem(mut shapes: Map<String, Value>) -> Value {
    shapes.insert(
        "Problem".to_owned(),
        json!({
            "type": "object",
            "required": ["type", "title", "status", "detail"],
            "properties": {
                "type": { "type": "string" }, "title": { "type": "string" },
                "status": { "type": "integer" }, "detail": { "type": "string" },
            },
        }),
    );
    Value::Object(shapes)
}
