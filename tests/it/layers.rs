//! The rules of the house (docs/architecture.md), checked on the sources: who may name whom, which
//! words stay in which room, and what stands at each door.

mod source;

use source::{after, code_lines, code_of, first_word, use_paths, without_tests};
use std::collections::BTreeMap;
use std::path::Path;

// --- the rules -------------------------------------------------------------------------------------

/// A room: a folder in `src`, or a file there.
struct Room {
    name: &'static str,
    may_name: &'static [&'static str],
    because: &'static str,
}

const fn room(
    name: &'static str,
    may_name: &'static [&'static str],
    because: &'static str,
) -> Room {
    Room { name, may_name, because }
}

/// Who may name whom, from the ground up: a room stands below every room that names it, which also
/// makes the table free of circles. Rooms that are planned and not built have their place already.
#[rustfmt::skip]
const ROOMS: &[Room] = &[
    room("failpoint", &[], "places where a test breaks the program; every room may have one"),
    room("domain", &[], "rules that need nobody can be tested with plain values"),
    room("db", &[], "the SQL door serves any tables"),
    room("wire", &[], "message shapes of another system are plain data"),
    room("outbound", &[], "whoever calls another program over HTTP calls it in the same way"),
    room("secret_store", &["domain", "outbound"], "a secret is read in the same way, whoever asks for it"),
    room("lineage", &["domain"], "texts and a catalogue in, accesses and conflicts out"),
    room("definition", &["domain"], "text in, jobs out; a fault must be found without a database"),
    room("import", &["domain", "definition"], "text and rows of other systems in, a definition out"),
    room("picture", &["domain"], "values in, drawing out"),
    room("store", &["domain", "db"], "remembers; it decides nothing and starts nothing"),
    room("handler", &["domain", "lineage", "db", "outbound", "secret_store"], "does one job; what comes of it is not its business"),
    room("remote", &["domain", "wire", "outbound"], "asks an executor; remembers nothing"),
    room("notify", &["domain", "outbound"], "carries a notice; the outbox is somebody else's"),
    room("trace", &["domain", "outbound"], "carries spans; what becomes one is somebody else's"),
    room("engine", &["domain", "secret_store", "store", "handler", "remote", "notify", "trace"], "brings the floors together"),
    room("config", &["domain", "db", "outbound", "secret_store", "handler", "remote", "notify", "trace", "engine"], "reads the words of every room's Options"),
    room("app", &["domain", "db", "wire", "outbound", "secret_store", "lineage", "definition", "import", "picture", "store", "handler", "remote", "notify", "trace", "engine", "config"], "the one place that knows everybody"),
    room("view", &["domain", "definition", "picture", "store", "engine", "config", "app"], "what is shown is gathered once, for every front door"),
    room("api", &["domain", "wire", "definition", "picture", "store", "engine", "config", "app", "view"], "requests in, documents out; what changes, the engine and app change"),
    room("cli", &["domain", "lineage", "definition", "import", "picture", "store", "engine", "config", "app", "view", "api", "outbound"], "words in, words out"),
    room("main", &["cli"], "maps the result to an exit code"),
    room("lib", &[], "lists the rooms"),
];

/// Words with few homes.
struct Ban {
    words: &'static [&'static str],
    /// Starts of the paths that the ban covers; all of `src` when empty.
    within: &'static [&'static str],
    /// Starts of the paths that it leaves alone.
    except: &'static [&'static str],
    because: &'static str,
}

const PURE: &[&str] = &["domain/", "lineage/", "definition/", "import/", "picture/"];

const BANS: &[Ban] = &[
    Ban {
        words: &["sqlx"],
        within: &[],
        except: &["db/"],
        because: "one door to SQL keeps one text for three databases",
    },
    Ban {
        words: &["prometheus_client"],
        within: &[],
        except: &["engine/observe/metrics"],
        because: "whoever counts says plain values to the meter",
    },
    Ban {
        words: &["tokio::spawn", "task::spawn", "spawn_local", "thread::spawn", "JoinSet"],
        within: &[],
        except: &["engine/", "app", "handler/", "api/listener.rs", "secret_store/secret_file.rs"],
        because: "whoever starts a task must also wait for its end",
    },
    Ban {
        words: &["SystemTime::now", "Utc::now", "Local::now"],
        within: &[],
        except: &["engine/clock.rs", "handler/stopwatch.rs"],
        because: "one clock can be set by hand in a test, and follows the database's",
    },
    Ban {
        // A body's deadline is real time: how long a real server may take to let go of it. So is how
        // long a connection has been idle.
        words: &["Instant::now"],
        within: &[],
        except: &["engine/clock.rs", "handler/", "db/pool.rs", "api/connection"],
        because: "only deadlines of bodies and of connections are measured by the machine",
    },
    Ban {
        words: &["std::fs", "std::net", "std::env", "std::process", "tokio", "rand"],
        within: PURE,
        except: &[],
        because: "a rule gives the same answer on any machine, at any time",
    },
    Ban {
        words: &["println!", "print!", "eprintln!", "eprint!"],
        within: &[],
        except: &["cli"],
        because: "what the user reads is said in one place; all else is a log line",
    },
];

/// Longest file, without its tests.
const LINES_MAX: usize = 600;

// --- the checks ------------------------------------------------------------------------------------

/// Every fault of the sources, given as path below `src` and text.
fn faults(sources: &BTreeMap<String, String>) -> Vec<String> {
    let order_of =
        |room: &str| story_order(sources.get(&format!("{room}/mod.rs")).map_or("", String::as_str));
    let orders = STORIES.map(|room| (room, order_of(room)));
    let mut found = Vec::new();
    for (path, text) in sources {
        let everything = code_of(text);
        let code = if is_test(path) { String::new() } else { without_tests(&everything) };
        let mut faults = names(path, &everything);
        faults.extend(banned_words(path, &code));
        for (room, order) in &orders {
            faults.extend(story(path, &code, (*room, order)));
        }
        faults.extend(parts_alone(path, &code, &orders));
        faults.extend(door_plate(path, text));
        let lines = code_lines(text, &everything, &code);
        if lines > LINES_MAX && !is_test(path) {
            faults.push(format!("{lines} lines without tests; split it, {LINES_MAX} is the limit"));
        }
        found.extend(faults.into_iter().map(|fault| format!("{path}: {fault}")));
    }
    found
}

fn room_of(path: &str) -> &str {
    path.split('/').next().unwrap_or(path).trim_end_matches(".rs")
}

/// A file of tests that stands beside what it tests.
fn is_test(path: &str) -> bool {
    path.ends_with("/tests.rs") || path.ends_with("_tests.rs")
}

fn is_door(path: &str) -> bool {
    let room = room_of(path);
    !matches!(room, "main" | "lib")
        && (path == format!("{room}.rs") || path == format!("{room}/mod.rs"))
}

/// Names of rooms that this room may not name, and ways of naming that hide a room.
fn names(path: &str, code: &str) -> Vec<String> {
    let mut found = Vec::new();
    let own = room_of(path);
    let Some(room) = ROOMS.iter().find(|r| r.name == own) else {
        return vec![format!("{own} is not in the table of rooms in tests/it/layers.rs")];
    };
    if code.contains("super::super") {
        found.push("no super::super; say crate::room::file".to_owned());
    }
    let mut paths = after(code, "crate::");
    if own == "main" {
        paths.extend(after(code, "procession::"));
    }
    if is_door(path) {
        // Here `super` is the crate; in a module within the file it is the file, and names no room.
        paths.extend(after(code, "super::").into_iter().filter(|p| knows(first_word(p))));
    }
    for named in paths {
        let target = first_word(named);
        if target.is_empty() {
            found.push(
                "no crate::{…} and no crate::*; one `use crate::room::…` per line".to_owned(),
            );
        } else if !knows(target) {
            found.push(format!("crate::{target} is not a room"));
        } else if target != own && !room.may_name.contains(&target) {
            found.push(format!("{own} may not name {target} ({own}: {})", room.because));
        }
    }
    found.dedup();
    found
}

fn knows(word: &str) -> bool {
    ROOMS.iter().any(|r| r.name == word)
}

fn banned_words(path: &str, code: &str) -> Vec<String> {
    let uses = use_paths(code).join(";\n");
    let mut found = Vec::new();
    for ban in BANS {
        let starts = |list: &[&str]| list.iter().any(|start| path.starts_with(start));
        if starts(ban.except) || !(ban.within.is_empty() || starts(ban.within)) {
            continue;
        }
        for word in ban.words {
            if !after(code, word).is_empty() || !after(&uses, word).is_empty() {
                found.push(format!("{word} does not belong here: {}", ban.because));
            }
        }
    }
    found
}

/// Rooms whose files, or whose folders, stand in an order: each names only those before it. So there is no circle
/// among them either.
const STORIES: [&str; 2] = ["domain", "engine"];

/// The parts of a room, as its door names them in story order.
fn story_order(door: &str) -> Vec<String> {
    let line = door.lines().find_map(|l| l.strip_prefix("//! Story order: ")).unwrap_or("");
    line.trim_end_matches('.').split(", ").map(str::to_owned).collect()
}

/// The file or folder of such a room that a source belongs to; none for its door.
fn part_of<'a>(path: &'a str, room: &str) -> Option<&'a str> {
    let rest = path.strip_prefix(room)?.strip_prefix('/')?;
    let part = rest.split('/').next().unwrap_or(rest).trim_end_matches(".rs");
    (part != "mod").then_some(part)
}

/// Within such a room a part names only parts that stand before it in the story.
fn story(path: &str, code: &str, (room, order): (&str, &[String])) -> Vec<String> {
    let Some(part) = part_of(path, room).filter(|_| !is_test(path)) else {
        return Vec::new();
    };
    let place = |name: &str| order.iter().position(|o| o == name);
    let Some(own) = place(part) else {
        return vec![format!("{part} is not in the line `Story order:` of {room}/mod.rs")];
    };
    let mut named = after(code, &format!("crate::{room}::"));
    if path == format!("{room}/{part}.rs") || path == format!("{room}/{part}/mod.rs") {
        named.extend(after(code, "super::"));
    }
    let mut found: Vec<String> = named
        .into_iter()
        .map(first_word)
        .filter(|other| place(other).is_some_and(|at| at > own))
        .map(|other| format!("{part} may not name {other}, which comes later in the story order"))
        .collect();
    found.dedup();
    found
}

/// Within the engine whoever names something names its part: what its door hands on to other rooms would hide where
/// an arrow leads.
fn parts_alone(path: &str, code: &str, orders: &[(&str, Vec<String>)]) -> Vec<String> {
    let order = orders.iter().find(|(room, _)| *room == "engine").map(|(_, order)| order);
    let (Some(order), Some(part)) = (order, part_of(path, "engine")) else { return Vec::new() };
    let named = after(code, "crate::engine::").into_iter().map(first_word);
    let hidden = named.filter(|name| !order.iter().any(|o| o == name));
    let mut found: Vec<String> = hidden
        .map(|name| format!("{part} names crate::engine::{name}; name the part that has it"))
        .collect();
    found.dedup();
    found
}

/// What stands at the door of a room: who it is, whom it may name, and what always holds.
fn door_plate(path: &str, text: &str) -> Vec<String> {
    let own = room_of(path);
    let Some(room) = ROOMS.iter().find(|r| r.name == own && is_door(path)) else {
        return Vec::new();
    };
    let mut lines = text.lines();
    let mut line = || lines.next().unwrap_or("");
    let mut found = Vec::new();
    if !line().starts_with(&format!("//! {own}: ")) {
        found.push(format!("line 1 must be `//! {own}: what it does. In: … Out: …`"));
    }
    let listed = line().strip_prefix("//! May name: ").and_then(|l| l.split_once(". Never: "));
    match listed {
        None => found.push("line 2 must be `//! May name: … . Never: …`".to_owned()),
        Some((list, _)) if !same_rooms(list, room) => found.push(format!(
            "the door plate says `May name: {list}`, the table in tests/it/layers.rs says {:?}",
            room.may_name
        )),
        Some(_) => {}
    }
    if !line().starts_with("//! Invariant: ") {
        found.push("line 3 must be `//! Invariant: …`".to_owned());
    }
    found
}

/// A plate may leave out rooms that are not built yet; it may not list more than the table.
fn same_rooms(list: &str, room: &Room) -> bool {
    match list {
        "nothing of ours" => room.may_name.is_empty(),
        "everything" => room.name == "app",
        _ => {
            let built = |name: &&&str| !PLANNED.contains(*name);
            let listed: Vec<&str> = list.split(", ").collect();
            listed.iter().all(|name| room.may_name.contains(name))
                && room.may_name.iter().filter(built).all(|name| listed.contains(name))
        }
    }
}

/// Rooms that have a place in the table and no code yet.
const PLANNED: &[&str] = &[];

/// A name that stands below its user cannot be part of a circle.
fn table_faults(rooms: &[Room]) -> Vec<String> {
    let mut found = Vec::new();
    for (at, room) in rooms.iter().enumerate() {
        for name in room.may_name {
            if !rooms[..at].iter().any(|r| r.name == *name) {
                found.push(format!("{} names {name}, which does not stand below it", room.name));
            }
        }
    }
    found
}

// --- the tests -------------------------------------------------------------------------------------

fn read_sources(folder: &Path, below: &str, sources: &mut BTreeMap<String, String>) {
    for entry in std::fs::read_dir(folder).expect("src can be listed") {
        let path = entry.expect("src can be listed").path();
        let name = format!("{below}{}", path.file_name().expect("name").to_string_lossy());
        if path.is_dir() {
            read_sources(&path, &format!("{name}/"), sources);
        } else if name.ends_with(".rs") {
            sources.insert(name, std::fs::read_to_string(&path).expect("a source is text"));
        }
    }
}

#[test]
fn the_sources_keep_the_rules_of_the_house() {
    let mut sources = BTreeMap::new();
    // The application last: each crate has a lib.rs, and both list modules and nothing else.
    for folder in ["crates/core/src", "src"] {
        let before = sources.len();
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
        read_sources(&folder, "", &mut sources);
        assert!(sources.len() > before + 10, "the test looks at the wrong folder: {folder:?}");
    }
    let found = faults(&sources);
    assert!(found.is_empty(), "\n{}\n", found.join("\n"));
}

/// What the pure crate may depend on stands in its own manifest, so the compiler keeps the rest out.
#[test]
fn the_pure_crate_depends_on_no_runtime() {
    let manifest = concat!(env!("CARGO_MANIFEST_DIR"), "/crates/core/Cargo.toml");
    let manifest = std::fs::read_to_string(manifest).expect("the manifest of the pure crate");
    let listed = |name: &&&str| manifest.lines().any(|line| line.starts_with(**name));
    assert!(listed(&&"petgraph"), "the test reads the wrong file");
    let impure = ["tokio", "sqlx", "axum", "hyper", "reqwest", "nix", "rustix", "procession ="];
    let found: Vec<_> = impure.iter().filter(listed).collect();
    assert!(found.is_empty(), "crates/core/Cargo.toml lists {found:?}: it must stay pure");
}

#[test]
fn the_table_has_no_circle() {
    assert_eq!(table_faults(ROOMS), Vec::<String>::new());
    let circle = [room("a", &["b"], ""), room("b", &["a"], "")];
    assert_eq!(table_faults(&circle), ["a names b, which does not stand below it"]);
}

/// The faults of one file, beside a domain and an engine whose stories are short.
fn faults_of(path: &str, text: &str) -> Vec<String> {
    let door = "//! domain: decides. In: a. Out: b.\n//! May name: nothing of ours. Never: c.\n\
                //! Invariant: d.\n//! Story order: first, second.\n";
    let engine = "//! engine: a. In: a. Out: b.\n//! May name: domain, secret_store, store, handler, remote, \
                  notify, trace. Never: c.\n//! Invariant: d.\n\
                  //! Story order: clock, attempt, dispatch, trigger.\n";
    let mut sources = BTreeMap::from([
        ("domain/mod.rs".to_owned(), door.to_owned()),
        ("engine/mod.rs".to_owned(), engine.to_owned()),
    ]);
    sources.insert(path.to_owned(), text.to_owned());
    faults(&sources)
}

/// Path, text, and what must be said about it.
const FAULTY: &[(&str, &str, &str)] = &[
    (
        "engine/dispatch/dispatcher.rs",
        "use crate::api::page::Page;",
        "engine/dispatch/dispatcher.rs: engine may not name api",
    ),
    ("store/queue.rs", "fn f() { crate::engine::clock::now() }", "store may not name engine"),
    (
        "db/row.rs",
        "#[cfg(test)]\nmod tests { use crate::domain::id::X; }",
        "db may not name domain",
    ),
    ("db/mod.rs", "use super::domain::id::X;", "db may not name domain"),
    ("main.rs", "use procession::engine::Engine;", "main may not name engine"),
    ("store/job.rs", "use crate::{db, domain};", "no crate::{…}"),
    ("store/job.rs", "use super::super::domain;", "no super::super"),
    ("store/job.rs", "use crate::Thing;", "crate::Thing is not a room"),
    ("attic/mod.rs", "", "attic is not in the table of rooms"),
    ("store/job.rs", "fn f() { sqlx::query(\"x\"); }", "sqlx does not belong here"),
    ("store/job.rs", "use tokio::{sync::watch, spawn};", "tokio::spawn does not belong here"),
    (
        "engine/dispatch/beat.rs",
        "use std::time::Instant;\nfn f() { Instant::now(); }",
        "Instant::now does not belong",
    ),
    ("domain/first.rs", "use std::{collections::HashMap, fs};", "std::fs does not belong here"),
    ("picture/dot.rs", "use std::env;", "std::env does not belong here"),
    (
        "definition/mod.rs",
        "async fn f() { tokio::time::sleep(D).await }",
        "tokio does not belong here",
    ),
    ("engine/attempt/run.rs", "fn f() { println!(\"x\") }", "println! does not belong here"),
    ("domain/first.rs", "use crate::domain::second::X;", "first may not name second"),
    ("domain/first.rs", "use super::second::X;", "first may not name second"),
    ("domain/third.rs", "", "third is not in the line `Story order:`"),
    (
        "engine/attempt/run.rs",
        "use crate::engine::dispatch::claim::X;",
        "engine/attempt/run.rs: attempt may not name dispatch, which comes later",
    ),
    ("engine/clock.rs", "use super::attempt::X;", "clock may not name attempt"),
    ("engine/attempt/mod.rs", "use super::dispatch::X;", "attempt may not name dispatch"),
    (
        "engine/attempt/run.rs",
        "fn f() { crate::engine::trigger::core::g() }",
        "attempt may not name trigger",
    ),
    ("engine/dispatch/claim.rs", "use crate::engine::News;", "name the part that has it"),
    ("engine/attic/mod.rs", "", "attic is not in the line `Story order:` of engine/mod.rs"),
    ("handler/mod.rs", "//! Handlers.", "line 1 must be `//! handler: "),
    (
        "store/mod.rs",
        "//! store: x.\n//! May name: domain, api. Never: x.\n",
        "the door plate says",
    ),
    (
        "store/mod.rs",
        "//! store: x.\n//! May name: domain, db. Never: x.\n",
        "line 3 must be `//! Invariant: ",
    ),
    ("app.rs", "//! app: x.\n", "line 2 must be"),
];

/// Path and text about which nothing is to be said.
const FAULTLESS: &[(&str, &str)] = &[
    ("store/queue.rs", "use crate::domain::id::QueueId;\nuse crate::db::Tx;\nuse super::log::X;"),
    (
        "store/queue.rs",
        "// sqlx, crate::engine\n/* crate::api /* println! */ */\n/// [crate::engine]",
    ),
    (
        "store/queue.rs",
        "const A: &str = \"sqlx crate::engine\"; const B: &str = r#\"println!(\" \"#;",
    ),
    ("store/queue.rs", "fn f<'a>(x: &'a str) { x.split('\"'); x.split('\\''); } // crate::api"),
    (
        "store/queue.rs",
        "#[cfg(test)]\nmod tests { fn f() { println!(\"{:?}\", Instant::now()); } }",
    ),
    ("store/queue.rs", "pub(crate) fn operand() { my_tokio::spawner(); }"),
    ("domain/second.rs", "use crate::domain::first::X;\nuse super::first::Y;"),
    ("domain/first.rs", "#[cfg(test)]\nmod tests { use super::*; use crate::domain::second::X; }"),
    ("engine/clock.rs", "fn now() { SystemTime::now(); tokio::spawn(x); }"),
    (
        "engine/dispatch/claim.rs",
        "use crate::engine::attempt::run::X;\nuse crate::engine::dispatch::batch::Y;\nuse super::z;",
    ),
    ("engine/attempt/run.rs", "#[cfg(test)]\nmod tests { use crate::engine::dispatch::batch::X; }"),
    ("handler/proc.rs", "fn f() { tokio::spawn(x); }"),
    ("domain/second_tests.rs", "use tokio::time;"),
    ("store/queue.rs", "const A: &[u8] = br#\"sqlx\"#;"),
    ("cli/run.rs", "fn f() { println!(\"x\"); }"),
    (
        "engine/mod.rs",
        "//! engine: x.\n//! May name: domain, secret_store, store, handler, remote, notify, trace. Never: x.\n//! Invariant: x.\n",
    ),
    (
        "app.rs",
        "//! app: x.\n//! May name: everything. Never: x.\n//! Invariant: x.\nuse crate::engine::X;",
    ),
];

/// The test can fail: each kind of fault is found, and said in words that name file and rule.
#[test]
fn each_fault_is_found() {
    let long = "// x\n".repeat(LINES_MAX + 1);
    let too_long = [("store/job.rs", long.as_str(), "601 lines without tests")];
    for (path, text, said) in FAULTY.iter().chain(&too_long) {
        let found = faults_of(path, text);
        assert!(found.iter().any(|f| f.contains(said)), "{path}: {text:?} gave {found:?}");
    }
}

#[test]
fn what_is_allowed_is_left_alone() {
    let tests = "fn g() {}\n".repeat(LINES_MAX + 1);
    let tests = format!("fn f() {{}}\n#[cfg(test)]\nmod tests {{\n{tests}}}\n");
    let long = [("store/queue.rs", tests.as_str()), ("store/queue_tests.rs", tests.as_str())];
    for (path, text) in FAULTLESS.iter().chain(&long) {
        assert_eq!(faults_of(path, text), Vec::<String>::new(), "{path}: {text:?}");
    }
}
