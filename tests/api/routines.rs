//! The routines that a source's server knows, as jobs call them, and the source as a file needs it.

use crate::api::server::Server;
use crate::util::{Scratch, with_scratch};
use procession::domain::access::Role;
use procession::domain::source::DialectName;
use serde_json::{Value, json};

const MYSQL: [&str; 2] = [
    "CREATE PROCEDURE sp_close (IN p_batch_no VARCHAR(50), IN p_rate DECIMAL(9,6), OUT o_rows BIGINT, \
     INOUT p_day DATE) BEGIN SET o_rows = 3; SET p_day = p_day + INTERVAL 1 DAY; END",
    "CREATE FUNCTION f_rate (p_no INT) RETURNS INT DETERMINISTIC RETURN p_no * 2",
];
const POSTGRES: [&str; 5] = [
    "CREATE SCHEMA fin",
    "CREATE PROCEDURE sp_close (p_batch_no text, p_rate numeric, OUT o_rows bigint, INOUT p_day date, \
     p_note text DEFAULT '') LANGUAGE plpgsql AS $$ BEGIN o_rows := 3; p_day := p_day + 1; END $$",
    "CREATE PROCEDURE fin.sp_unnamed (text, int, OUT text) LANGUAGE plpgsql \
     AS $$ BEGIN $3 := $1 || $2; END $$",
    "CREATE PROCEDURE sp_last (text, int DEFAULT 7) LANGUAGE plpgsql AS $$ BEGIN PERFORM $2; END $$",
    "CREATE FUNCTION f_two (int, OUT int, OUT p_twice int) LANGUAGE sql AS 'SELECT $1, $1 * 2'",
];

fn param(name: &str, mode: &str, ty: &str) -> Value {
    json!({ "name": name, "mode": mode, "type": ty, "has_default": false })
}

fn routine(name: &str, params: &[Value]) -> Value {
    let is_function = name.starts_with("f_");
    json!({ "name": name, "is_function": is_function, "params": params, "has_outputs": true })
}

fn expected(dialect: DialectName) -> Value {
    let close = vec![
        param("p_batch_no", "in", "text"),
        param("p_rate", "in", "decimal"),
        param("o_rows", "out", "int"),
        param("p_day", "inout", "date"),
    ];
    if dialect == DialectName::Mysql {
        let rate = routine("f_rate", &[param("p_no", "in", "int")]);
        return json!([rate, routine("sp_close", &close)]);
    }
    let mut note = param("p_note", "in", "text");
    note["has_default"] = json!(true);
    let mut last = param("arg_2", "in", "int");
    last["has_default"] = json!(true);
    // The columns that a function returns are outputs that nobody declares.
    let two = [param("arg_1", "in", "int")];
    let unnamed =
        [param("arg_1", "in", "text"), param("arg_2", "in", "int"), param("arg_3", "out", "text")];
    json!([
        routine("f_two", &two),
        routine("sp_close", &[close, vec![note]].concat()),
        routine("sp_last", &[param("arg_1", "in", "text"), last]),
        routine("fin.sp_unnamed", &unnamed),
    ])
}

/// A job for each routine, with its parameters as they were listed; those with a default are left out.
fn jobs_that_call(routines: &Value) -> String {
    let value = |ty: &Value| match ty.as_str() {
        Some("int") => "21",
        Some("decimal") => "0.25",
        Some("date") => "2024-07-31",
        _ => "a",
    };
    let mut text = String::new();
    for (at, routine) in routines.as_array().expect("a list").iter().enumerate() {
        let params = routine["params"].as_array().expect("a list").iter();
        let params = params.filter(|param| param["has_default"] == false).map(|param| {
            let value = match param["mode"] == "out" {
                true => String::new(),
                false => format!(", value: {}", value(&param["type"])),
            };
            let (name, mode, ty) = (&param["name"], &param["mode"], &param["type"]);
            format!("{{name: {name}, mode: {mode}, type: {ty}{value}}}")
        });
        let params = params.collect::<Vec<_>>().join(", ");
        text += &format!("  J{at}: {{proc_name: {}, params: [{params}]}}\n", routine["name"]);
    }
    text
}

async fn routines_are_listed_as_jobs_call_them(db: &Scratch) {
    let statements: &[&str] = match db.dialect {
        DialectName::Postgres => &POSTGRES,
        DialectName::Mysql | DialectName::Sqlite => &MYSQL,
    };
    db.setup(statements).await;
    let server = Server::new().await;
    let head = format!(
        "sources: {{s: {{url: '{}', owner_group: gl}}}}\ngroups: {{gl: {{}}, other: {{}}}}\n\
         defaults: {{group: gl, type: PROC, source: s}}\n",
        db.url
    );
    server
        .apply(&format!("{head}jobs: {{A: {{type: NOOP}}, B: {{group: other, type: NOOP}}}}\n"))
        .await;
    let author = server.token(&[("gl", Role::Author, &[])]).await;
    let stranger = server.token(&[("other", Role::Author, &[])]).await;
    let found = server.get("/sources/s/routines", &author).await.is(200);
    assert_eq!(found["items"], expected(db.dialect), "{found}");
    // Whoever may not use it is not told what it has, nor where it is.
    server.get("/sources/s/routines", &stranger).await.is(404);
    server.get("/definition/export?source=s&format=json", &stranger).await.is(404);
    let alone = server.get("/definition/export?source=s&format=json", &author).await.is(200);
    assert_eq!(alone, json!({"sources": {"s": {"url": db.url, "owner_group": "gl"}}}));
    server.get("/definition/export?source=s&group=gl", &author).await.is(400);

    server.apply(&format!("{head}jobs:\n{}", jobs_that_call(&found["items"]))).await;
    server.run(&json!({"batchNo": "1", "group": "gl"}).to_string()).await;
    let admin = server.admin().await;
    let batch = server.get("/groups/gl/batches/1", &admin).await.is(200);
    assert_eq!(batch["status"], "SUCCESS", "{batch}");
}

#[tokio::test]
async fn mariadb_routines_are_listed_as_jobs_call_them() {
    with_scratch(DialectName::Mysql, |db| async move {
        routines_are_listed_as_jobs_call_them(&db).await;
    })
    .await;
}

#[tokio::test]
async fn postgres_routines_are_listed_as_jobs_call_them() {
    with_scratch(DialectName::Postgres, |db| async move {
        routines_are_listed_as_jobs_call_them(&db).await;
    })
    .await;
}
