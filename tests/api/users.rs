//! Users and tokens: who may make whom into what.

use crate::api::server::{Server, grants};
use axum::http::Method;
use procession::app::access::{Authority, TokenWish};
use procession::domain::access::{Permission, Role};
use secrecy::ExposeSecret as _;
use serde_json::{Value, json};

const DAY: i64 = 86_400_000;

#[tokio::test]
async fn a_token_opens_the_door_and_its_end_shuts_it() {
    let server = Server::new().await;
    let token = server.token(&[("*", Role::Viewer, &[])]).await;
    server.get("/batches", &token).await.is(200);
    server.get("/batches", "").await.is(401);
    server.get("/batches", "pcs_nonsense").await.is(401);
    server.later(DAY);
    server.get("/batches", &token).await.is(401);
}

#[tokio::test]
async fn who_administers_a_group_grants_there_and_no_more() {
    let server = Server::new().await;
    let root = server.admin().await;
    let boss = server.token(&[("gl", Role::Admin, &[])]).await;
    server.user("bob", &[("ar", Role::Viewer, &[])]).await;
    let patch = async |token: &str, name: &str, body: Value| {
        server.send(Method::PATCH, &format!("/users/{name}"), token, &body).await
    };
    let given = json!({ "grants": [{ "group": "gl", "role": "operator", "rights": ["force"] }] });
    let seen = patch(&boss, "bob", given).await.is(200);
    assert_eq!(seen["grants"], json!([{ "group": "gl", "role": "operator", "rights": ["force"] }]));
    assert_eq!(seen["account"], Value::Null, "what is no group's is not shown");
    let whole = server.get("/users/bob", &root).await.is(200);
    assert_eq!(whole["grants"].as_array().expect("grants").len(), 2, "the other group's stays");
    for (grant, why) in [
        (json!({ "group": "ar", "role": "viewer" }), "another group"),
        (json!({ "group": "*", "role": "viewer" }), "all groups"),
        (json!({ "group": "gl", "role": "author", "rights": ["script"] }), "a right he lacks"),
    ] {
        let said = patch(&boss, "bob", json!({ "grants": [grant] })).await.is(403);
        assert_eq!(said["type"], "urn:procession:problem:not-yours-to-give", "{why}");
    }
    patch(&boss, "bob", json!({ "is_active": false })).await.is(403);
    patch(
        &boss,
        "user1",
        json!({ "grants": [{ "group": "gl", "role": "admin", "rights": ["force"] }] }),
    )
    .await
    .is(403);
    for (method, path) in [
        (Method::POST, "/users"),
        (Method::DELETE, "/users/bob"),
        (Method::POST, "/users/bob/password-reset"),
        (Method::DELETE, "/users/bob/sessions"),
        (Method::GET, "/users/bob/tokens"),
    ] {
        server.send(method, path, &boss, &json!({})).await.is(403);
    }
    let acts = server.audit().await;
    let (_, who, detail) = acts.iter().rfind(|(act, ..)| act == "user grant").expect("on record");
    assert_eq!(who, "user1");
    let detail: Value = serde_json::from_str(detail).expect("JSON");
    assert_eq!(detail["before"], json!([{ "group": "ar", "role": "viewer", "rights": [] }]));
    assert_eq!(detail["after"].as_array().expect("after").len(), 2);
}

#[tokio::test]
async fn one_administrator_is_always_left() {
    let server = Server::new().await;
    let root = server.admin().await;
    let patch = async |token: &str, name: &str, body: Value| {
        server.send(Method::PATCH, &format!("/users/{name}"), token, &body).await
    };
    patch(&root, "user0", json!({ "grants": [] })).await.is(403);
    let last = patch(&root, "user0", json!({ "is_active": false })).await.is(409);
    assert_eq!(last["type"], "urn:procession:problem:last-admin");
    server.send(Method::DELETE, "/users/user0", &root, &json!({})).await.is(409);
    let second = server.admin().await;
    patch(&second, "user0", json!({ "grants": [] })).await.is(200);
    server.get("/users", &root).await.is(403);
    server.send(Method::DELETE, "/users/user0", &second, &json!({})).await.is(200);
    server.get("/users/user0", &second).await.is(404);
}

#[tokio::test]
async fn only_what_may_be_said_is_read() {
    let server = Server::new().await;
    let root = server.admin().await;
    let post = async |body: Value| server.send(Method::POST, "/users", &root, &body).await;
    for body in [
        json!({ "name": "bob", "user_id": 7 }),
        json!({ "name": "bob", "password_hash": "x" }),
        json!({ "name": "bob", "must_change": false }),
        json!({ "name": "bob", "grants": [{ "group": "*", "role": "root" }] }),
        json!({ "name": "bob", "grants": [{ "group": "*", "role": "viewer", "origin": "claim" }] }),
    ] {
        post(body).await.is(400);
    }
    for body in [
        json!({ "name": "李娜" }),
        json!({ "name": "a b" }),
        json!({ "name": "bob", "password": "short" }),
        json!({ "name": "bob", "password": "tuN9-glaze-orbit", "without_password": true }),
        json!({ "name": "bob", "grants": [{ "group": "a b", "role": "viewer" }] }),
        json!({ "name": "bob", "grants": [{ "group": "*", "role": "viewer", "rights": ["run"] }] }),
        json!({ "name": "bob", "display_name": "a\nb" }),
        json!({ "name": "bob", "lang": "fr" }),
    ] {
        post(body).await.is(422);
    }
    post(json!({ "name": "bob" })).await.is(200);
    assert_eq!(
        post(json!({ "name": "BOB" })).await.is(409)["type"],
        "urn:procession:problem:taken"
    );
    let patch = json!({ "last_login": "2024-01-01T00:00:00Z" });
    server.send(Method::PATCH, "/users/bob", &root, &patch).await.is(400);
    let list = server.get("/users?limit=1", &root).await.is(200);
    assert_eq!(list["items"][0]["name"], "bob");
    let next = list["next"].as_str().expect("there is another");
    let list = server.get(&format!("/users?limit=1&cursor={next}"), &root).await.is(200);
    assert_eq!((&list["items"][0]["name"], &list["next"]), (&json!("user0"), &Value::Null));
}

#[tokio::test]
async fn no_token_can_do_more_than_who_makes_it() {
    let server = Server::new().await;
    let name = server.user("bob", &[("gl", Role::Operator, &[]), ("ar", Role::Viewer, &[])]).await;
    let porter = &server.house.porter;
    let groups = grants(&[("gl", Role::Viewer, &[])]);
    let only = groups.iter().filter_map(|g| match &g.place {
        procession::domain::access::Where::Group(code) => Some(code.clone()),
        procession::domain::access::Where::Everywhere => None,
    });
    let wish = TokenWish {
        name: "ci".to_owned(),
        permissions: [Permission::View, Permission::Run].into(),
        groups: Some(only.collect()),
        days: 10,
    };
    let by: Authority = server.owner();
    let (made, token) = porter.add_token(&by, &name, wish, None).await.expect("a token");
    let token = token.expose_secret();
    let add = async |body: Value| server.send(Method::POST, "/session/tokens", token, &body).await;
    let of = |permissions: Value, groups: Value, days: u32| json!({ "name": "more", "permissions": permissions, "groups": groups, "days": days });
    for (wish, status) in [
        (of(json!(["edit"]), json!(["gl"]), 1), 403),
        (of(json!(["view"]), Value::Null, 1), 403),
        (of(json!(["view"]), json!(["ar"]), 1), 403),
        (of(json!(["view"]), json!(["gl"]), 11), 422),
        (of(json!(["view"]), json!(["gl"]), 367), 422),
        (of(json!([]), json!(["gl"]), 1), 422),
        (of(json!(["everything"]), json!(["gl"]), 1), 400),
        (of(json!(["view"]), json!(["gl"]), 9), 200),
    ] {
        assert_eq!(add(wish.clone()).await.status.as_u16(), status, "{wish}");
    }
    let session = server.get("/session", token).await.is(200);
    assert_eq!(
        session["permissions"],
        json!({ "everywhere": [], "groups": { "gl": ["view", "run"] } })
    );
    assert_eq!(session["csrf"], Value::Null);
    let list = server.get("/session/tokens", token).await.is(200);
    assert_eq!(list["items"].as_array().expect("tokens").len(), 2);
    assert_eq!(list["items"][1]["used_time"], "2024-08-01T00:00:00.000Z");
    // Somebody else's token is not there; an administrator's eyes see it.
    let other = server.token(&[("gl", Role::Admin, &[])]).await;
    let path = format!("/tokens/{}", made.id);
    server.send(Method::DELETE, &path, &other, &json!({})).await.is(404);
    let root = server.admin().await;
    server.send(Method::DELETE, &path, &root, &json!({})).await.is(200);
    server.get("/session", token).await.is(401);
}
