//! Every route of the description, asked by everybody: who is let in is what the route says it needs.

use crate::api::server::Server;
use axum::http::Method;
use procession::app::access::UserChange;
use procession::domain::access::{Permission, Role};
use serde_json::Value;

const DAY: i64 = 86_400_000;

/// Somebody who asks, and what that person may do: in group `gl`, and in all groups.
struct Person {
    who: &'static str,
    token: String,
    here: &'static [Permission],
    everywhere: &'static [Permission],
}

const ALL: &[Permission] = &Permission::ALL;

async fn people(server: &Server) -> Vec<Person> {
    use Permission as P;
    let mut people = Vec::new();
    let roles: [(&str, Role, &[P]); 4] = [
        ("viewer", Role::Viewer, &[P::View]),
        ("operator", Role::Operator, &[P::View, P::Run]),
        ("author", Role::Author, &[P::View, P::Edit]),
        ("admin of the group", Role::Admin, &[P::View, P::Run, P::Force, P::Edit, P::Admin]),
    ];
    for (who, role, here) in roles {
        let token = server.token(&[("gl", role, &[])]).await;
        people.push(Person { who, token, here, everywhere: &[] });
    }
    let token = server.admin().await;
    people.push(Person { who: "admin of all groups", token, here: ALL, everywhere: ALL });
    let token = server.token(&[]).await;
    people.push(Person { who: "user without grants", token, here: &[], everywhere: &[] });
    people
}

/// Each route with its words filled in, and what it needs.
fn routes() -> Vec<(Method, String, Value)> {
    let described = procession::api::description();
    let paths = described["paths"].as_object().expect("paths").clone();
    let mut routes = Vec::new();
    for (path, methods) in paths {
        let path = path.strip_prefix("/api/v1").expect("below /api/v1");
        let filled: Vec<String> = path
            .split('/')
            .map(|word| match word {
                "{group}" => "gl".to_owned(),
                word if word.starts_with('{') => "1".to_owned(),
                word => word.to_owned(),
            })
            .collect();
        for (method, operation) in methods.as_object().expect("methods") {
            let method = Method::from_bytes(method.to_uppercase().as_bytes()).expect("a method");
            routes.push((method, filled.join("/"), operation["x-needs"].clone()));
        }
    }
    assert!(routes.len() > 40, "{} routes", routes.len());
    routes
}

fn lets_in(person: &Person, needs: &Value) -> bool {
    let word = needs["permission"].as_str().unwrap_or_default();
    let holds = |all: &[Permission]| all.iter().any(|p| p.as_str() == word);
    match needs["of"].as_str() {
        Some("the group") => holds(person.here),
        Some("all groups") => holds(person.everywhere),
        _ => true,
    }
}

const GROUPS: &str = "
groups: { gl: { name: Ledger }, ar: { name: Receivables } }
jobs:
  POST: { type: NOOP, group: gl }
  BILL: { type: NOOP, group: ar }
";

#[tokio::test]
async fn every_route_lets_in_whom_it_says_and_nobody_else() {
    let server = Server::new().await;
    server.apply(GROUPS).await;
    let strangers = {
        let expired = server.token(&[("*", Role::Admin, ALL_RIGHTS)]).await;
        server.later(2 * DAY);
        let name = server.user("gone", &[("*", Role::Admin, ALL_RIGHTS)]).await;
        let disabled = server.token_of(&name, 1).await;
        let other = server.user("boss", &[("*", Role::Admin, &[])]).await;
        assert_ne!(other, name);
        let change = UserChange { is_active: Some(false), ..UserChange::default() };
        server.house.porter.change_user(&server.owner(), &name, change).await.expect("disable");
        [("nobody", String::new()), ("expired token", expired), ("disabled user", disabled)]
    };
    let people = people(&server).await;
    let mut odd = Vec::new();
    for (method, path, needs) in routes() {
        let is_open = needs == "nothing";
        for (who, token) in &strangers {
            let status = server.status(method.clone(), &path, token).await;
            if (status == 401) == is_open || status == 403 || status >= 500 {
                odd.push(format!("{who}: {method} {path} {needs}: {status}"));
            }
        }
        for person in &people {
            let status = server.status(method.clone(), &path, &person.token).await;
            let refused = matches!(status, 401 | 403);
            if refused == lets_in(person, &needs) || status >= 500 {
                odd.push(format!("{}: {method} {path} {needs}: {status}", person.who));
            }
        }
    }
    assert!(odd.is_empty(), "\n{}\n", odd.join("\n"));
}

/// What no role holds.
const ALL_RIGHTS: &[Permission] = &[Permission::Script];

/// What belongs to a group is not there for those of another, whatever they may do in their own.
#[tokio::test]
async fn of_another_group_nothing_is_there() {
    let server = Server::new().await;
    server.apply(GROUPS).await;
    let own = server.token(&[("gl", Role::Admin, ALL_RIGHTS)]).await;
    let other = server.token(&[("ar", Role::Admin, ALL_RIGHTS)]).await;
    let mut seen = 0;
    for (method, path, needs) in routes() {
        if needs["of"] != "the group" || !path.split('/').any(|word| word == "gl") {
            continue;
        }
        let status = server.status(method.clone(), &path, &other).await;
        assert!(matches!(status, 400 | 404 | 422), "{method} {path}: {status}");
        seen += u32::from(
            method == Method::GET && { server.status(method.clone(), &path, &own).await == 200 },
        );
    }
    assert!(seen > 0, "no route of group gl answers its own people");
    assert_eq!(server.status(Method::GET, "/nothing/here", &own).await, 404);
}
