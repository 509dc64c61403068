//! The OpenAPI 3.1 description of the API, generated from the routes.

use crate::api::caller::CallerNeeds;
use crate::api::route::{Noun, Operation, ResponseKind, Route};
use axum::http::{Method, StatusCode};
use schemars::SchemaGenerator;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

/// By operation: `path`, `query`, `body` and `answer` of one request.
const EXAMPLES: &str = include_str!("examples.json");

/// Describes these routes.
pub(super) fn describe(nouns: &[Noun]) -> Value {
    let settings = SchemaSettings::draft2020_12().with(|s| {
        s.definitions_path = "/components/schemas".into();
    });
    let mut schemas = settings.into_generator();
    let mut paths: Map<String, Value> = Map::new();
    let examples: Value = serde_json::from_str(EXAMPLES).expect("examples.json is JSON");
    for noun in nouns {
        for route in &noun.routes {
            let Operation { path, method, .. } = &route.operation;
            let described = describe_operation(noun.name, route, &examples, &mut schemas);
            let path = paths.entry(format!("/api/v1{path}")).or_insert_with(|| json!({}));
            path[method.as_str().to_lowercase()] = described;
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
            "responses": error_responses(),
            "securitySchemes": {
                "token": { "type": "http", "scheme": "bearer" },
                "session": { "type": "apiKey", "in": "cookie", "name": "procession" },
            },
        },
    })
}

fn describe_operation(
    noun: &str,
    route: &Route,
    examples: &Value,
    schemas: &mut SchemaGenerator,
) -> Value {
    let operation = &route.operation;
    let example = &examples[operation.id];
    let mut parameters = parameters("path", (route.place)(schemas).into(), schemas);
    if let Some(query) = route.query {
        parameters.extend(self::parameters("query", query(schemas).into(), schemas));
    }
    add_parameter_examples(&mut parameters, example);
    let mut described = json!({
        "tags": [noun],
        "operationId": operation.id,
        "summary": operation.summary,
        "parameters": parameters,
        "x-needs": needs(operation.needs),
        "responses": { "200": { "description": "Done", "content": content(&route.answer, example, schemas) } },
    });
    for status in error_statuses(route) {
        let name = error_name(status);
        described["responses"][status.as_str()] =
            json!({ "$ref": format!("#/components/responses/{name}") });
    }
    if let Some(waits) = route.waits {
        described["responses"]["202"] = json!({
            "description": "Nothing is done yet: the change waits for the approval of a second person",
            "content": { "application/json": { "schema": waits(schemas) } },
        });
    }
    if operation.needs == CallerNeeds::Nothing {
        described["security"] = json!([]);
    }
    if route.body.is_none() {
        described["responses"]["304"] = json!({ "description": "As it was (If-None-Match)" });
    }
    if let Some(body) = route.body {
        let mut content = json!({ "schema": body(schemas) });
        if let Some(example) = example.get("body") {
            content["example"] = example.clone();
        }
        described["requestBody"] = json!({ "content": { "application/json": content } });
    }
    described
}

/// What is answered with 200, by media type.
fn content(answer: &ResponseKind, example: &Value, schemas: &mut SchemaGenerator) -> Value {
    let mut content = match answer {
        ResponseKind::Json(draw) => json!({ "application/json": { "schema": draw(schemas) } }),
        // `text/csv, application/x-ndjson`: the caller chooses.
        ResponseKind::Media(media) => {
            let schema = |media: &str| match media {
                // A front end's format of a DAG: a document, or a list of elements.
                "application/json" => json!({ "anyOf": [
                    { "type": "object" }, { "type": "array", "items": { "type": "object" } },
                ] }),
                "application/yaml" => json!({ "type": "object" }),
                _ => json!({ "type": "string" }),
            };
            media.split(", ").map(|m| (m, json!({ "schema": schema(m) }))).collect()
        }
    };
    // The first media type is the one that is answered where the caller does not choose.
    if let (Some(answer), Some(first)) =
        (example.get("answer"), content.as_object_mut().and_then(|c| c.values_mut().next()))
    {
        first["example"] = answer.clone();
    }
    content
}

fn add_parameter_examples(parameters: &mut [Value], example: &Value) {
    for parameter in parameters {
        let place = parameter["in"].as_str().unwrap_or_default();
        let name = parameter["name"].as_str().unwrap_or_default();
        if let Some(value) = example.get(place).and_then(|values| values.get(name)).cloned() {
            parameter["example"] = value;
        }
    }
}

/// The statuses that a refused or failed request of this route has. Schemathesis holds answers against the list.
fn error_statuses(route: &Route) -> Vec<StatusCode> {
    let is_change = route.operation.method != Method::GET;
    let mut all = vec![StatusCode::BAD_REQUEST];
    // Without a login nothing is read; a wrong password is 401 as well.
    if is_change || route.operation.needs != CallerNeeds::Nothing {
        all.push(StatusCode::UNAUTHORIZED);
    }
    all.extend([StatusCode::FORBIDDEN, StatusCode::NOT_FOUND]);
    if is_change {
        all.extend([
            StatusCode::REQUEST_TIMEOUT,
            StatusCode::CONFLICT,
            StatusCode::PRECONDITION_FAILED,
            StatusCode::PAYLOAD_TOO_LARGE,
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
        ]);
    }
    all.extend([
        StatusCode::UNPROCESSABLE_ENTITY,
        StatusCode::TOO_MANY_REQUESTS,
        StatusCode::INTERNAL_SERVER_ERROR,
        StatusCode::SERVICE_UNAVAILABLE,
    ]);
    all
}

/// `TooManyRequests`.
fn error_name(status: StatusCode) -> String {
    status.canonical_reason().unwrap_or("Error").replace([' ', '-'], "")
}

/// What a status means, whatever was asked.
const ERRORS: [(StatusCode, &str); 13] = [
    (
        StatusCode::BAD_REQUEST,
        "The request cannot be read: an unknown member, a wrong type, broken JSON",
    ),
    (StatusCode::UNAUTHORIZED, "No valid token or session"),
    (StatusCode::FORBIDDEN, "The caller may not do this; `permission` names what is missing"),
    (StatusCode::NOT_FOUND, "It does not exist, or the caller may not see it"),
    (StatusCode::REQUEST_TIMEOUT, "The body did not arrive in time"),
    (StatusCode::CONFLICT, "It is not in the state that the request assumes; nothing was changed"),
    (StatusCode::PRECONDITION_FAILED, "It was changed since it was read; read it again"),
    (StatusCode::PAYLOAD_TOO_LARGE, "The body is longer than allowed"),
    (StatusCode::UNSUPPORTED_MEDIA_TYPE, "The body is not JSON"),
    (
        StatusCode::UNPROCESSABLE_ENTITY,
        "The request is understood and refused; `detail` says why and what to do",
    ),
    (StatusCode::TOO_MANY_REQUESTS, "Too many requests; `Retry-After` says when to come back"),
    (StatusCode::INTERNAL_SERVER_ERROR, "Procession failed; its log has the cause"),
    (StatusCode::SERVICE_UNAVAILABLE, "The database is away, or this server shuts down; try again"),
];

/// The refusals and failures, by name.
fn error_responses() -> Value {
    let mut all = Map::new();
    for (status, description) in ERRORS {
        let example = json!({
            "type": "urn:procession:problem:refused",
            "title": status.canonical_reason(),
            "status": status.as_u16(),
            "detail": description,
        });
        let content =
            json!({ "schema": { "$ref": "#/components/schemas/Problem" }, "example": example });
        let response = json!({
            "description": description,
            "content": { "application/problem+json": content },
        });
        all.insert(error_name(status), response);
    }
    Value::Object(all)
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
        let description = schema.as_object_mut().and_then(|s| s.remove("description"));
        json!({
            "name": name, "in": place, "schema": schema, "description": description.unwrap_or_default(),
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
