//! The rules of the architecture (docs/architecture.md), checked on the sources: which module may name which, which
//! words are allowed in which module, and what each module header says.

mod source;

use source::{after, code_lines, code_of, first_word, use_paths, without_tests};
use std::collections::BTreeMap;
use std::path::Path;

// --- the rules -------------------------------------------------------------------------------------

/// A module at the top: a folder in `src`, or a file there.
struct Module {
    name: &'static str,
    may_name: &'static [&'static str],
    because: &'static str,
}

const fn module(
    name: &'static str,
    may_name: &'static [&'static str],
    because: &'static str,
) -> Module {
    Module { name, may_name, because }
}

/// Which may name which, from the ground up: a module stands below every module that names it, which also
/// makes the table free of cycles. Modules that are planned and not built have their place already.
#[rustfmt::skip]
const MODULES: &[Module] = &[
    module("failpoint", &[], "places where a test breaks the program; every module may have one"),
    module("domain", &[], "rules that need nobody can be tested with plain values"),
    module("db", &[], "access to SQL serves any tables"),
    module("wire", &[], "message shapes of another system are plain data"),
    module("outbound", &[], "whoever calls another program over HTTP calls it in the same way"),
    module("secret_store", &["domain", "outbound"], "a secret is read in the same way, whoever asks for it"),
    module("lineage", &["domain"], "texts and a catalogue in, accesses and conflicts out"),
    module("definition", &["domain"], "text in, jobs out; a fault must be found without a database"),
    module("import", &["domain", "definition"], "text and rows of other systems in, a definition out"),
    module("picture", &["domain"], "values in, drawing out"),
    module("store", &["domain", "db"], "remembers; it decides nothing and starts nothing"),
    module("handler", &["domain", "lineage", "db", "outbound", "secret_store"], "does one job; what comes of it is not its business"),
    module("remote", &["domain", "wire", "outbound"], "asks an executor; remembers nothing"),
    module("notify", &["domain", "outbound"], "carries a notice; the outbox is somebody else's"),
    module("trace", &["domain", "outbound"], "carries spans; what becomes one is somebody else's"),
    module("engine", &["domain", "secret_store", "store", "handler", "remote", "notify", "trace"], "brings the layers together"),
    module("config", &["domain", "db", "outbound", "secret_store", "handler", "remote", "notify", "trace", "engine"], "reads the words of every module's Options"),
    module("app", &["domain", "db", "wire", "outbound", "secret_store", "lineage", "definition", "import", "picture", "store", "handler", "remote", "notify", "trace", "engine", "config"], "the one place that knows everybody"),
    module("view", &["domain", "definition", "picture", "store", "engine", "config", "app"], "what is shown is gathered once, for API and command line"),
    module("api", &["domain", "wire", "definition", "picture", "store", "engine", "config", "app", "view"], "requests in, documents out; what changes, the engine and app change"),
    module("cli", &["domain", "lineage", "definition", "import", "picture", "store", "engine", "config", "app", "view", "api", "outbound"], "words in, words out"),
    module("main", &["cli"], "maps the result to an exit code"),
    module("lib", &[], "lists the modules"),
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
        because: "one way to SQL keeps one text for three databases",
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
    let order_of = |module: &str| {
        story_order(sources.get(&format!("{module}/mod.rs")).map_or("", String::as_str))
    };
    let orders = STORIES.map(|module| (module, order_of(module)));
    let inner_orders = inner_orders(sources.get("domain/mod.rs").map_or("", String::as_str));
    let mut found = Vec::new();
    for (path, text) in sources {
        let everything = code_of(text);
        let code = if is_test(path) { String::new() } else { without_tests(&everything) };
        let mut faults = names(path, &everything);
        faults.extend(banned_words(path, &code));
        for (module, order) in &orders {
            faults.extend(story(path, &code, (*module, order)));
        }
        faults.extend(parts_alone(path, &code, &orders));
        faults.extend(order_in_part(path, &code, &inner_orders));
        faults.extend(module_header(path, text));
        let lines = code_lines(text, &everything, &code);
        if lines > LINES_MAX && !is_test(path) {
            faults.push(format!("{lines} lines without tests; split it, {LINES_MAX} is the limit"));
        }
        found.extend(faults.into_iter().map(|fault| format!("{path}: {fault}")));
    }
    found
}

fn module_of(path: &str) -> &str {
    path.split('/').next().unwrap_or(path).trim_end_matches(".rs")
}

/// A file of tests that stands beside what it tests.
fn is_test(path: &str) -> bool {
    path.ends_with("/tests.rs") || path.ends_with("_tests.rs")
}

fn is_module_root(path: &str) -> bool {
    let module = module_of(path);
    !matches!(module, "main" | "lib")
        && (path == format!("{module}.rs") || path == format!("{module}/mod.rs"))
}

/// Names of modules that this one may not name, and ways of naming that hide one.
fn names(path: &str, code: &str) -> Vec<String> {
    let mut found = Vec::new();
    let own = module_of(path);
    let Some(module) = MODULES.iter().find(|r| r.name == own) else {
        return vec![format!("{own} is not in the table of modules in tests/it/layers.rs")];
    };
    if code.contains("super::super") {
        found.push("no super::super; say crate::module::file".to_owned());
    }
    let mut paths = after(code, "crate::");
    if own == "main" {
        paths.extend(after(code, "procession::"));
    }
    if is_module_root(path) {
        // Here `super` is the crate; in a module within the file it is the file, and names no other module.
        paths.extend(after(code, "super::").into_iter().filter(|p| knows(first_word(p))));
    }
    for named in paths {
        let target = first_word(named);
        if target.is_empty() {
            found.push(
                "no crate::{…} and no crate::*; one `use crate::module::…` per line".to_owned(),
            );
        } else if !knows(target) {
            found.push(format!("crate::{target} is not a module"));
        } else if target != own && !module.may_name.contains(&target) {
            found.push(format!("{own} may not name {target} ({own}: {})", module.because));
        }
    }
    found.dedup();
    found
}

fn knows(word: &str) -> bool {
    MODULES.iter().any(|r| r.name == word)
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

/// Modules whose files, or whose folders, stand in an order: each names only those before it. So there is no circle
/// among them either.
const STORIES: [&str; 2] = ["domain", "engine"];

/// The parts of a module in the order that its header gives.
fn story_order(header: &str) -> Vec<String> {
    let line = header.lines().find_map(|l| l.strip_prefix("//! Story order: ")).unwrap_or("");
    line.trim_end_matches('.').split(", ").map(str::to_owned).collect()
}

/// The file or folder of such a module that a source belongs to; none for its `mod.rs`.
fn part_of<'a>(path: &'a str, module: &str) -> Option<&'a str> {
    let rest = path.strip_prefix(module)?.strip_prefix('/')?;
    let part = rest.split('/').next().unwrap_or(rest).trim_end_matches(".rs");
    (part != "mod").then_some(part)
}

/// Within such a module a part names only parts that stand before it.
fn story(path: &str, code: &str, (module, order): (&str, &[String])) -> Vec<String> {
    let Some(part) = part_of(path, module).filter(|_| !is_test(path)) else {
        return Vec::new();
    };
    let place = |name: &str| order.iter().position(|o| o == name);
    let Some(own) = place(part) else {
        return vec![format!("{part} is not in the line `Story order:` of {module}/mod.rs")];
    };
    let mut named = after(code, &format!("crate::{module}::"));
    if path == format!("{module}/{part}.rs") || path == format!("{module}/{part}/mod.rs") {
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

/// The files of each folder of the domain in their order, from lines such as `//! - time: time, local_time`.
fn inner_orders(header: &str) -> BTreeMap<String, Vec<String>> {
    let lines = header.lines().filter_map(|line| line.strip_prefix("//! - ")?.split_once(": "));
    lines
        .map(|(part, files)| (part.to_owned(), files.split(", ").map(str::to_owned).collect()))
        .collect()
}

/// Within a folder of the domain a file names only files that stand before it.
fn order_in_part(path: &str, code: &str, orders: &BTreeMap<String, Vec<String>>) -> Vec<String> {
    let Some(part) = part_of(path, "domain").filter(|_| !is_test(path)) else { return Vec::new() };
    let inside = path.strip_prefix(&format!("domain/{part}/")).unwrap_or(part);
    let file = inside.split('/').next().unwrap_or(inside).trim_end_matches(".rs");
    let Some(order) = orders.get(part) else { return Vec::new() };
    let place = |name: &str| order.iter().position(|o| o == name);
    // What is no file of the list belongs to the file that has the folder's name.
    let own = place(file).or_else(|| place(part)).unwrap_or(0);
    let named = after(code, &format!("crate::domain::{part}::")).into_iter().map(first_word);
    let later = named.filter(|other| place(other).is_some_and(|at| at > own));
    let mut found: Vec<String> = later
        .map(|other| format!("{part}/{file} may not name {other}, which comes later in its folder"))
        .collect();
    found.dedup();
    found
}

/// Within the engine whoever names something names its part: what its `mod.rs` re-exports for other modules would hide where
/// an arrow leads.
fn parts_alone(path: &str, code: &str, orders: &[(&str, Vec<String>)]) -> Vec<String> {
    let order = orders.iter().find(|(module, _)| *module == "engine").map(|(_, order)| order);
    let (Some(order), Some(part)) = (order, part_of(path, "engine")) else { return Vec::new() };
    let named = after(code, "crate::engine::").into_iter().map(first_word);
    let hidden = named.filter(|name| !order.iter().any(|o| o == name));
    let mut found: Vec<String> = hidden
        .map(|name| format!("{part} names crate::engine::{name}; name the part that has it"))
        .collect();
    found.dedup();
    found
}

/// The header of a module: what it does, what it may name, and what always holds.
fn module_header(path: &str, text: &str) -> Vec<String> {
    let own = module_of(path);
    let Some(module) = MODULES.iter().find(|r| r.name == own && is_module_root(path)) else {
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
        Some((list, _)) if !same_modules(list, module) => found.push(format!(
            "the module header says `May name: {list}`, the table in tests/it/layers.rs says {:?}",
            module.may_name
        )),
        Some(_) => {}
    }
    if !line().starts_with("//! Invariant: ") {
        found.push("line 3 must be `//! Invariant: …`".to_owned());
    }
    found
}

/// A header may leave out modules that are not built yet; it may not list more than the table.
fn same_modules(list: &str, module: &Module) -> bool {
    match list {
        "nothing of ours" => module.may_name.is_empty(),
        "everything" => module.name == "app",
        _ => {
            let built = |name: &&&str| !PLANNED.contains(*name);
            let listed: Vec<&str> = list.split(", ").collect();
            listed.iter().all(|name| module.may_name.contains(name))
                && module.may_name.iter().filter(built).all(|name| listed.contains(name))
        }
    }
}

/// Modules that have a place in the table and no code yet.
const PLANNED: &[&str] = &[];

/// A name that stands below its user cannot be part of a circle.
fn table_faults(modules: &[Module]) -> Vec<String> {
    let mut found = Vec::new();
    for (at, module) in modules.iter().enumerate() {
        for name in module.may_name {
            if !modules[..at].iter().any(|r| r.name == *name) {
                found.push(format!("{} names {name}, which does not stand below it", module.name));
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
fn the_sources_keep_the_rules_of_the_architecture() {
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
fn the_table_has_no_cycle() {
    assert_eq!(table_faults(MODULES), Vec::<String>::new());
    let cycle = [module("a", &["b"], ""), module("b", &["a"], "")];
    assert_eq!(table_faults(&cycle), ["a names b, which does not stand below it"]);
}

/// The faults of one file, beside a domain and an engine whose stories are short.
fn faults_of(path: &str, text: &str) -> Vec<String> {
    let header = "//! domain: decides. In: a. Out: b.\n//! May name: nothing of ours. Never: c.\n\
                //! Invariant: d.\n//! Story order: first, second, folder.\n//!\n\
                //! - folder: low, high\n";
    let engine = "//! engine: a. In: a. Out: b.\n//! May name: domain, secret_store, store, handler, remote, \
                  notify, trace. Never: c.\n//! Invariant: d.\n\
                  //! Story order: clock, attempt, dispatch, trigger.\n";
    let mut sources = BTreeMap::from([
        ("domain/mod.rs".to_owned(), header.to_owned()),
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
    ("store/job.rs", "use crate::Thing;", "crate::Thing is not a module"),
    ("attic/mod.rs", "", "attic is not in the table of modules"),
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
    ("domain/folder/low.rs", "use crate::domain::folder::high::X;", "folder/low may not name high"),
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
        "the module header says",
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
    ("domain/folder/high.rs", "use crate::domain::folder::low::X;\nuse crate::domain::second::Y;"),
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
