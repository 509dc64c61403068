//! Bundles the modules of the console into one script.
//!
//! A module becomes a function that is called once, in the order of imports, and its exports an
//! object. That covers what the console's own code uses: named imports and exports, no cycles, no
//! mutable exports. Anything else is refused with its position, so that a bundle is either correct
//! or not created.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt::Write as _;

/// Modules by path, such as `js/app.js`.
pub(super) type ModuleSources = BTreeMap<String, String>;

/// One script equivalent to the module `entry` with all its static and dynamic imports. Modules in
/// `apart` stay files, which are fetched on demand.
pub(super) fn bundle(
    sources: &ModuleSources,
    entry: &str,
    apart: &[&str],
) -> Result<String, String> {
    let mut bundler =
        Bundler { sources, apart, numbers: HashMap::new(), open: Vec::new(), out: String::new() };
    bundler.add_module(entry)?;
    Ok(bundler.out)
}

struct Bundler<'a> {
    sources: &'a ModuleSources,
    apart: &'a [&'a str],
    /// The numbers of the modules already written.
    numbers: HashMap<String, usize>,
    /// Modules whose imports are being written, to detect cycles.
    open: Vec<String>,
    out: String,
}

impl Bundler<'_> {
    /// Writes a module after everything that it imports.
    fn add_module(&mut self, path: &str) -> Result<usize, String> {
        if let Some(number) = self.numbers.get(path) {
            return Ok(*number);
        }
        if self.open.iter().any(|open| open == path) {
            return Err(format!("{path}: imports itself through {}", self.open.join(", ")));
        }
        let text = self.sources.get(path).ok_or_else(|| format!("{path}: no such module"))?;
        self.open.push(path.to_owned());
        let module = Module::parse_module(path, text)?;
        for import in &module.imports {
            self.add_module(import)?;
        }
        let mut body = module.body;
        for call in later(path, &body)? {
            body = body.replace(&call.text, &self.later_import(&call)?);
        }
        self.open.pop();
        let number = self.numbers.len();
        self.numbers.insert(path.to_owned(), number);
        let (mut head, mut exports) = (String::new(), module.exports);
        for (names, from) in module.bindings {
            let _ = writeln!(head, "const {{{names}}} = m{};", self.numbers[&from]);
        }
        exports.extend(module.passed_on.iter().map(|from| format!("...m{}", self.numbers[from])));
        let exports = exports.join(", ");
        let _ = writeln!(
            self.out,
            "const m{number} = (() => {{\n{head}{body}return {{ {exports} }};\n}})();"
        );
        Ok(number)
    }

    /// A dynamic import: a module in the bundle is already loaded.
    fn later_import(&mut self, call: &Later) -> Result<String, String> {
        if self.apart.iter().any(|folder| call.path.starts_with(folder)) {
            return Ok(format!("import(`./{}`)", call.path));
        }
        let Some((before, after)) = call.path.split_once("${").and_then(|(before, rest)| {
            rest.split_once('}').map(|(name, after)| ((before, name), after))
        }) else {
            let number = self.add_module(&call.path)?;
            return Ok(format!("Promise.resolve(m{number})"));
        };
        let (before, name) = before;
        let fits = |path: &&String| path.starts_with(before) && path.ends_with(after);
        let paths: Vec<String> = self.sources.keys().filter(fits).cloned().collect();
        let mut all = Vec::new();
        for path in paths {
            let number = self.add_module(&path)?;
            let key = &path[before.len()..path.len() - after.len()];
            all.push(format!("'{key}': m{number}"));
        }
        Ok(format!("Promise.resolve({{ {} }}[{name}])", all.join(", ")))
    }
}

/// An `import(…)` in a module: its text, and the path relative to the console's directory, which
/// may contain `${name}`.
struct Later {
    text: String,
    path: String,
}

fn later(path: &str, body: &str) -> Result<Vec<Later>, String> {
    let mut found = Vec::new();
    for (at, _) in body.match_indices("import(") {
        let rest = &body[at + "import(".len()..];
        let quote = rest.chars().next().filter(|c| matches!(c, '\'' | '`'));
        let quote = quote.ok_or_else(|| format!("{path}: an import of what is not a text"))?;
        let end = rest[1..].find(quote).ok_or_else(|| format!("{path}: an import without end"))?;
        let spec = &rest[1..=end];
        found.push(Later {
            text: format!("import({quote}{spec}{quote})"),
            path: resolve(path, spec)?,
        });
    }
    Ok(found)
}

/// A parsed module.
#[derive(Default)]
struct Module {
    /// Modules that must be loaded before.
    imports: Vec<String>,
    /// `a, b: c` with their module.
    bindings: Vec<(String, String)>,
    exports: Vec<String>,
    /// Modules whose exports it re-exports.
    passed_on: BTreeSet<String>,
    /// Everything else, without comments.
    body: String,
    /// Whether a template literal is open at its end.
    is_in_template: bool,
}

impl Module {
    fn parse_module(path: &str, text: &str) -> Result<Self, String> {
        let mut module = Self::default();
        let mut lines = text.lines();
        while let Some(line) = lines.next() {
            // Inside a template literal a line is text, whatever it begins with.
            if module.is_in_template {
                module.push_line(line);
                continue;
            }
            let is_list = line.starts_with("import ")
                || line.starts_with("export {")
                || line.starts_with("export *");
            if is_list {
                let mut statement = line.to_owned();
                while !statement.ends_with(';') {
                    let next = lines.next().ok_or_else(|| format!("{path}: {line}: no end"))?;
                    statement.push(' ');
                    statement.push_str(next.trim());
                }
                module.read_statement(path, &statement)?;
            } else if let Some(declared) = line.strip_prefix("export ") {
                module.exports.push(declared_name(path, declared)?);
                module.push_line(declared);
            } else if line.trim_start().starts_with("/*") {
                let mut comment = line;
                while !comment.contains("*/") {
                    comment = lines.next().ok_or_else(|| format!("{path}: {line}: no end"))?;
                }
            } else if !line.trim_start().starts_with("//") {
                module.push_line(line);
            }
        }
        if module.is_in_template {
            return Err(format!("{path}: a text between backticks has no end"));
        }
        Ok(module)
    }

    fn push_line(&mut self, line: &str) {
        if self.is_in_template || !line.is_empty() {
            self.body.push_str(line);
            self.body.push('\n');
        }
        let marks = line.matches('`').count() - line.matches("\\`").count();
        self.is_in_template ^= marks % 2 == 1;
    }

    /// Parses `import {…} from '…';`, `export {…} from '…';`, `export * from '…';`.
    fn read_statement(&mut self, path: &str, statement: &str) -> Result<(), String> {
        let refuse = || format!("{path}: {statement}: no such import or export is made here");
        let (what, from) = statement.split_once(" from '").ok_or_else(refuse)?;
        let from = resolve(path, from.strip_suffix("';").ok_or_else(refuse)?)?;
        if !self.imports.contains(&from) {
            self.imports.push(from.clone());
        }
        if what == "export *" {
            self.passed_on.insert(from);
            return Ok(());
        }
        let (verb, names) = what.split_once(" {").ok_or_else(refuse)?;
        let names = names.trim_end_matches('}').split(',').map(str::trim);
        let names: Vec<&str> = names.filter(|name| !name.is_empty()).collect();
        if verb == "export" {
            if names.iter().any(|name| name.contains(' ')) {
                return Err(refuse());
            }
            self.exports.extend(names.iter().map(|name| (*name).to_owned()));
        }
        let bound: Vec<String> = names.iter().map(|name| name.replace(" as ", ": ")).collect();
        self.bindings.push((bound.join(", "), from));
        Ok(())
    }
}

/// The name in `const x = …`, `function x(…`, `async function x(…` or `class X …`.
fn declared_name(path: &str, declared: &str) -> Result<String, String> {
    let kinds = ["const ", "async function ", "function ", "class "];
    let name = kinds.iter().find_map(|kind| declared.strip_prefix(kind)).map(|rest| {
        rest.chars().take_while(|c| c.is_alphanumeric() || matches!(c, '_' | '$')).collect()
    });
    name.filter(|name: &String| !name.is_empty())
        .ok_or_else(|| format!("{path}: export {declared}: no such export is made here"))
}

/// The path of an imported module: `js/pages/batch.js`, `../ui.js` → `js/ui.js`.
fn resolve(path: &str, spec: &str) -> Result<String, String> {
    let mut parts: Vec<&str> = path.split('/').collect();
    parts.pop();
    for part in spec.split('/') {
        match part {
            "." => {}
            ".." => {
                parts.pop().ok_or_else(|| format!("{path}: {spec}: outside of the console"))?;
            }
            _ => parts.push(part),
        }
    }
    if spec.starts_with('.') {
        Ok(parts.join("/"))
    } else {
        Err(format!("{path}: {spec}: only files of the console are imported"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sources(files: &[(&str, &str)]) -> ModuleSources {
        files.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect()
    }

    #[test]
    fn modules_come_after_what_they_import() {
        let files = sources(&[
            (
                "js/app.js",
                "// Begins.\nimport { a as b } from './ui/a.js';\nexport * from './c.js';\nb();\n",
            ),
            (
                "js/ui/a.js",
                "import {\n  c,\n} from '../c.js';\nexport function a() {\n  return c;\n}\n",
            ),
            ("js/c.js", "/** Three. */\nexport const c = 3;\n"),
        ]);
        let made = bundle(&files, "js/app.js", &["js/words/"]).expect("a bundle");
        let wanted = "const m0 = (() => {\nconst c = 3;\nreturn { c };\n})();\n\
                      const m1 = (() => {\nconst {c} = m0;\nfunction a() {\n  return c;\n}\nreturn { a };\n})();\n\
                      const m2 = (() => {\nconst {a: b} = m1;\nb();\nreturn { ...m0 };\n})();\n";
        assert_eq!(made, wanted);
    }

    #[test]
    fn nothing_is_left_out_of_a_text_between_backticks() {
        let text = "const a = `one\n// two\n\nimport three`;\n\n// a comment\nconst b = '';\n";
        let made = bundle(&sources(&[("js/app.js", text)]), "js/app.js", &["js/words/"]);
        let made = made.expect("a bundle");
        assert!(made.contains("`one\n// two\n\nimport three`;\nconst b"), "{made}");
    }

    #[test]
    fn pages_are_in_it_and_words_stay_files() {
        let files = sources(&[
            (
                "js/app.js",
                "const page = (n) => import(`./pages/${n}.js`);\nconst w = (l) => import(`./words/${l}.js`);\n",
            ),
            ("js/pages/one.js", "export const mount = () => import('../two.js');\n"),
            ("js/two.js", "export const two = 2;\n"),
            ("js/words/en.js", "export default {};\n"),
        ]);
        let made = bundle(&files, "js/app.js", &["js/words/"]).expect("a bundle");
        assert!(made.contains("Promise.resolve({ 'one': m1 }[n])"), "{made}");
        assert!(made.contains("=> Promise.resolve(m0);"), "{made}");
        assert!(made.contains("import(`./js/words/${l}.js`)"), "{made}");
    }

    #[test]
    fn what_it_cannot_do_is_refused_with_the_place() {
        let refused = |text: &str| {
            let files =
                sources(&[("js/app.js", text), ("js/b.js", "import { x } from './app.js';\n")]);
            bundle(&files, "js/app.js", &["js/words/"]).expect_err("a fault")
        };
        for (text, place) in [
            ("import { x } from './none.js';\n", "js/none.js: no such module"),
            ("import { x } from './b.js';\n", "js/app.js: imports itself"),
            ("import x from './b.js';\n", "js/app.js: import x from"),
            ("import { x } from 'left-pad';\n", "js/app.js: left-pad"),
            ("export let x = 1;\n", "js/app.js: export let x"),
            ("export default {};\n", "js/app.js: export default"),
            ("const a = import(name);\n", "js/app.js: an import of"),
            ("const a = `b;\n", "js/app.js: a text between backticks"),
        ] {
            assert!(refused(text).contains(place), "{text}: {}", refused(text));
        }
    }
}
