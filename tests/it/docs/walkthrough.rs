//! Pages whose commands are run as a reader types them: files are written, commands run in order, and what they
//! print is compared with what the page shows.
//!
//! A comment above a block says what is special about it, in parts between semicolons:
//!
//! | part | meaning |
//! |---|---|
//! | `mysql`, `postgres` | only on this kind of server |
//! | `file: NAME`, `append: NAME` | the block is a file, or is added to its end |
//! | `exits N` | the exit code; 0 without it |
//! | `background` | goes on until the end of the page |
//! | `until it succeeds` | is tried again for up to 20 s |
//! | `output differs: WHY` | what it prints is an example and is not compared |
//! | `contains: TEXT` | what it prints must hold this text |
//! | `not run: WHY` | is not run, for a reason that the page gives |

use super::{check, root};
use crate::util::{Scratch, with_scratch};
use procession::domain::source::DialectName;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

/// A fenced block of a page, with the marks above it.
struct Block {
    language: String,
    /// Where its lines are in the page, without the fences.
    lines: Range<usize>,
    marks: Vec<(String, String)>,
}

/// A command of a `console` block and what the page says that it prints.
struct ShownCommand {
    text: String,
    /// The lines that follow the command.
    output: Range<usize>,
}

/// What a page is walked through with.
struct Walk<'a> {
    folder: &'a Path,
    scratch: &'a Scratch,
    lang: &'static str,
    background: Vec<Background>,
}

/// A process that ends with the page, however the test ends.
struct Background(Child);

impl Drop for Background {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The fenced blocks of a page. An unknown mark is an error: a misspelt one would silently change what is tested.
fn blocks(page: &str) -> Vec<Block> {
    let lines: Vec<&str> = page.lines().collect();
    let mut blocks = Vec::new();
    let mut start: Option<(usize, &str)> = None;
    for (at, line) in lines.iter().enumerate() {
        let Some(fence) = line.strip_prefix("```") else { continue };
        match start.take() {
            None => start = Some((at, fence)),
            Some((first, language)) => blocks.push(Block {
                language: language.to_owned(),
                lines: first + 1..at,
                marks: marks(first.checked_sub(1).map_or("", |above| lines[above])),
            }),
        }
    }
    blocks
}

fn marks(line: &str) -> Vec<(String, String)> {
    const KNOWN: &[&str] = &[
        "mysql",
        "postgres",
        "file",
        "append",
        "background",
        "until it succeeds",
        "output differs",
        "contains",
        "not run",
        "exits",
    ];
    let Some(text) = line.strip_prefix("<!-- ").and_then(|l| l.strip_suffix(" -->")) else {
        return Vec::new();
    };
    let mark = |part: &str| {
        let part = part.trim();
        let (name, value) = match part.strip_prefix("exits ") {
            Some(code) => ("exits", code),
            None => part.split_once(": ").unwrap_or((part, "")),
        };
        assert!(KNOWN.contains(&name), "unknown mark {part:?} in {line:?}");
        let needs_reason = ["output differs", "not run"].contains(&name);
        assert!(!needs_reason || !value.is_empty(), "{name} needs a reason in {line:?}");
        (name.to_owned(), value.to_owned())
    };
    text.split(';').map(mark).collect()
}

impl Block {
    fn mark(&self, name: &str) -> Option<&str> {
        self.marks.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    fn is_for(&self, dialect: DialectName) -> bool {
        let other = match dialect {
            DialectName::Mysql => "postgres",
            DialectName::Postgres | DialectName::Sqlite => "mysql",
        };
        self.mark(other).is_none()
    }

    fn is_commands(&self) -> bool {
        self.language == "console"
    }

    fn text(&self, page: &[String]) -> String {
        page[self.lines.clone()].iter().map(|line| format!("{line}\n")).collect()
    }

    fn commands(&self, page: &[String]) -> Vec<ShownCommand> {
        let mut commands: Vec<ShownCommand> = Vec::new();
        for at in self.lines.clone() {
            match (page[at].strip_prefix("$ "), commands.last_mut()) {
                (Some(text), _) => {
                    commands.push(ShownCommand { text: text.to_owned(), output: at + 1..at + 1 });
                }
                (None, Some(last)) => last.output.end = at + 1,
                (None, None) => panic!("line {}: a console block begins with `$ `", at + 1),
            }
        }
        commands
    }
}

impl Walk<'_> {
    fn dialect(&self) -> DialectName {
        self.scratch.dialect
    }

    /// The command as it has to be for the test's server and database.
    fn adapted(&self, text: &str) -> String {
        let url = &self.scratch.url;
        if self.dialect() == DialectName::Postgres {
            return text.replace("postgres://postgres@127.0.0.1:5432/tutorial", url);
        }
        let (user, rest) =
            url.split_once("://").and_then(|(_, r)| r.split_once('@')).expect("a user");
        let user = user.split(':').next().expect("a name");
        let (place, name) = rest.split_once('/').expect("a database");
        let (host, port) = place.split_once(':').unwrap_or((place, "3306"));
        let here = format!("-h {host} -P {port} -u {user} {name}");
        let text = text.replace("-h 127.0.0.1 -P 3306 -u root tutorial", &here);
        match text.strip_prefix("mysql ") {
            // Newer packages of MariaDB have no program of the old name.
            Some(rest) if find_program("mysql").is_none() => format!("mariadb {rest}"),
            _ => text,
        }
    }

    fn command(&self, text: &str) -> Command {
        let bin = Path::new(env!("CARGO_BIN_EXE_procession")).parent().expect("a folder");
        let path = std::env::var("PATH").unwrap_or_default();
        let mut command = Command::new("bash");
        command.args(["-c", &self.adapted(text)]).current_dir(self.folder);
        command.env("PATH", format!("{}:{path}", bin.display())).env("LANG", "C.UTF-8");
        command.env("PROCESSION_SOURCE_BOOKS", &self.scratch.url).env("PROCESSION_LANG", self.lang);
        command.env("PROCESSION_HTTP", "127.0.0.1:0").env_remove("PROCESSION_DB");
        if let Some((_, password)) = self
            .scratch
            .url
            .split('@')
            .next()
            .and_then(|u| u.split_once("://").and_then(|(_, u)| u.split_once(':')))
        {
            command.env("MYSQL_PWD", password);
        }
        command
    }

    /// Runs a command; what it printed, when it ended as the page says.
    fn run(&self, text: &str, block: &Block, place: &str) -> String {
        let wanted: i32 = block.mark("exits").map_or(0, |code| code.parse().expect("a number"));
        let tries = if block.mark("until it succeeds").is_some() { 100 } else { 1 };
        let mut last = None;
        for _ in 0..tries {
            let Output { status, stdout, stderr } = self.command(text).output().expect("bash");
            let stdout = String::from_utf8(stdout).expect("UTF-8");
            if status.code() == Some(wanted) {
                return stdout;
            }
            last = Some((status, stdout, String::from_utf8_lossy(&stderr).into_owned()));
            std::thread::sleep(Duration::from_millis(200));
        }
        let (status, stdout, stderr) = last.expect("it was tried");
        panic!("{place}: {text}: {status}, must exit {wanted}\n{stdout}\n{stderr}");
    }

    /// Starts a command that goes on, and waits until it has said something.
    fn start(&mut self, text: &str) {
        let mut command = self.command(&format!("exec {text}"));
        let child =
            command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        self.background.push(Background(child.expect("bash")));
    }

    fn write(&self, block: &Block, page: &[String]) -> bool {
        if let Some(name) = block.mark("file") {
            std::fs::write(self.folder.join(name), block.text(page)).expect("a file");
        } else if let Some(name) = block.mark("append") {
            let path = self.folder.join(name);
            let before = std::fs::read_to_string(&path).expect("a file that was written before");
            std::fs::write(path, before + &block.text(page)).expect("a file");
        } else {
            return false;
        }
        true
    }

    /// Runs what a page tells to type. The page as it should be: outputs that are out of date are replaced.
    fn through(&mut self, name: &str, page: &str) -> String {
        let lines: Vec<String> = page.lines().map(str::to_owned).collect();
        let mut outputs: Vec<(Range<usize>, Vec<String>)> = Vec::new();
        for block in blocks(page) {
            assert!(
                name == "README.md"
                    || name == "README.zh.md"
                    || !["bash", "sh"].contains(&block.language.as_str()),
                "{name}:{}: commands are in `console` blocks, so that they are run",
                block.lines.start
            );
            let skipped = !block.is_for(self.dialect()) || block.mark("not run").is_some();
            if skipped || self.write(&block, &lines) || !block.is_commands() {
                continue;
            }
            for command in block.commands(&lines) {
                let place = format!("{name}:{}", command.output.start);
                if block.mark("background").is_some() {
                    self.start(&command.text);
                    continue;
                }
                let printed = self.run(&command.text, &block, &place);
                if let Some(text) = block.mark("contains") {
                    assert!(printed.contains(text), "{place}: {text:?} is not in\n{printed}");
                }
                let printed: Vec<String> =
                    printed.lines().map(|line| line.trim_end().to_owned()).collect();
                let shown = &lines[command.output.clone()];
                let is_example = block.mark("output differs").is_some() && !shown.is_empty();
                if !is_example && comparable(shown) != comparable(&printed) {
                    outputs.push((command.output.clone(), printed));
                }
            }
        }
        replaced(lines, outputs)
    }
}

/// The page with other lines in the place of some, from the end so that places stay what they are.
fn replaced(mut lines: Vec<String>, outputs: Vec<(Range<usize>, Vec<String>)>) -> String {
    for (place, printed) in outputs.into_iter().rev() {
        lines.splice(place, printed);
    }
    lines.into_iter().map(|line| line + "\n").collect()
}

fn find_program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(name)).find(|file| file.exists())
}

/// Lines without what differs from run to run: durations, and the widths of columns that follow from them.
fn comparable(lines: &[String]) -> Vec<String> {
    lines.iter().map(|line| without_durations(line)).collect()
}

fn without_durations(line: &str) -> String {
    let is_number = |word: &str| word.chars().all(|c| c.is_ascii_digit() || c == '.');
    let mut words: Vec<&str> = Vec::new();
    for word in line.split_whitespace().filter(|word| !word.starts_with('─')) {
        match words.last_mut() {
            Some(before) if ["ms", "s", "min"].contains(&word) && is_number(before) => {
                *before = "#"
            }
            _ => words.push(word),
        }
    }
    words.join(" ")
}

/// Walks a page on an empty database and compares it with what was printed. `make docs` writes the outputs anew,
/// those of MySQL, so that two tests do not write one file.
async fn walk(name: &'static str, lang: &'static str, dialect: DialectName) {
    with_scratch(dialect, |scratch| async move {
        let folder = tempfile::tempdir().expect("folder");
        let page = std::fs::read_to_string(root(name)).expect("the page");
        let walked = tokio::task::spawn_blocking(move || {
            let mut walk =
                Walk { folder: folder.path(), scratch: &scratch, lang, background: vec![] };
            if !name.ends_with("tutorial.md") {
                walk.prepare();
            }
            walk.through(name, &page)
        });
        let wanted = walked.await.unwrap_or_else(|e| std::panic::resume_unwind(e.into_panic()));
        if std::env::var_os("PROCESSION_UPDATE_DOCS").is_none() || dialect == DialectName::Mysql {
            check(name, &wanted);
        }
    })
    .await;
}

impl Walk<'_> {
    /// What the README takes for granted: the procedures of the tutorial, and an account for each product.
    fn prepare(&self) {
        let page = std::fs::read_to_string(root("docs/tutorial.md")).expect("the page");
        let lines: Vec<String> = page.lines().map(str::to_owned).collect();
        let wanted = |block: &&Block| {
            let is_client = block.is_commands() && {
                let text = block.text(&lines);
                text.contains("procedures.sql") || text.contains("INSERT INTO account")
            };
            let is_file = block.mark("file") == Some("procedures.sql");
            block.is_for(self.dialect()) && (is_client || is_file)
        };
        let found = blocks(&page);
        let found: Vec<&Block> = found.iter().filter(wanted).collect();
        assert_eq!(found.len(), 3, "a file and two commands");
        for block in found {
            if !self.write(block, &lines) {
                for command in block.commands(&lines) {
                    self.run(&command.text, block, "docs/tutorial.md");
                }
            }
        }
    }
}

macro_rules! walks {
    ($($name:ident: $page:literal, $lang:literal, $dialect:ident;)*) => {$(
        #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn $name() {
            walk($page, $lang, DialectName::$dialect).await;
        }
    )*};
}

walks! {
    tutorial_on_mysql: "docs/tutorial.md", "en", Mysql;
    tutorial_on_postgres: "docs/tutorial.md", "en", Postgres;
    tutorial_in_chinese_on_mysql: "docs/zh/tutorial.md", "zh", Mysql;
    tutorial_in_chinese_on_postgres: "docs/zh/tutorial.md", "zh", Postgres;
    readme_on_mysql: "README.md", "en", Mysql;
    readme_on_postgres: "README.md", "en", Postgres;
    readme_in_chinese_on_mysql: "README.zh.md", "zh", Mysql;
}

/// What a reader types and saves is the same in both languages, in the same order.
#[test]
fn both_languages_have_the_same_commands_and_files() {
    for (english, chinese) in
        [("docs/tutorial.md", "docs/zh/tutorial.md"), ("README.md", "README.zh.md")]
    {
        let [english, chinese] = [english, chinese].map(|name| {
            let page = std::fs::read_to_string(root(name)).expect("the page");
            let lines: Vec<String> = page.lines().map(str::to_owned).collect();
            blocks(&page).iter().flat_map(|block| typed(block, &lines)).collect::<Vec<_>>()
        });
        assert_eq!(english, chinese);
    }
}

/// The commands of a block, or its text without comments, which are in the reader's language.
fn typed(block: &Block, lines: &[String]) -> Vec<String> {
    match block.language.as_str() {
        "console" => block.commands(lines).into_iter().map(|command| command.text).collect(),
        "text" => Vec::new(),
        _ => {
            let text = block.text(lines);
            text.lines()
                .map(|l| l.split(" # ").next().unwrap_or_default().trim_end().to_owned())
                .collect()
        }
    }
}

#[test]
fn a_mark_that_is_misspelt_is_found() {
    let wrong = std::panic::catch_unwind(|| marks("<!-- not runs: x -->"));
    assert!(wrong.is_err());
    assert!(marks("plain text").is_empty());
    let right = marks("<!-- postgres; exits 1; contains: 2 FAILED -->");
    let right: Vec<(&str, &str)> = right.iter().map(|(n, v)| (n.as_str(), v.as_str())).collect();
    assert_eq!(right, [("postgres", ""), ("exits", "1"), ("contains", "2 FAILED")]);
}

#[test]
fn durations_are_not_compared_and_all_else_is() {
    let lines = |text: &str| comparable(&text.lines().map(str::to_owned).collect::<Vec<_>>());
    assert_eq!(lines(" LOAD   19 ms\n────\nx"), lines(" LOAD 2.5 s\n──────\nx"));
    assert_ne!(lines("p_rows=3 in 4 ms"), lines("p_rows=4 in 4 ms"));
    assert_ne!(lines("3 rows"), lines("4 rows"));
}
