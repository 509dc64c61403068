//! The pages of the documentation site: each is in its list, and every link leads somewhere.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The Markdown files under a folder of the repository, as paths from its root.
pub(super) fn markdown_under(folder: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut folders = vec![root().join(folder)];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|e| e == "md") {
                let path = path.strip_prefix(root()).expect("in the repository");
                found.push(path.to_string_lossy().into_owned());
            }
        }
    }
    found.sort();
    found
}

/// Every page that a reader may come to, on the site or on the web page of the repository.
fn pages() -> Vec<String> {
    let mut pages = markdown_under("docs");
    pages.extend(markdown_under(".github"));
    let others = [
        "README.md",
        "README.zh.md",
        "CHANGELOG.md",
        "CODE_OF_CONDUCT.md",
        "CONTRIBUTING.md",
        "SECURITY.md",
        "dag-examples/README.md",
        "migrations/README.md",
    ];
    pages.extend(others.map(str::to_owned));
    pages
}

pub(super) fn read(page: &str) -> String {
    std::fs::read_to_string(root().join(page)).unwrap_or_else(|e| panic!("{page}: {e}"))
}

/// The lines of a page outside of fenced blocks, without what is between back-ticks.
pub(super) fn prose(text: &str) -> String {
    let mut fenced = false;
    let mut prose = String::new();
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        } else if !fenced {
            let plain = line.split('`').step_by(2);
            prose.push_str(&plain.collect::<Vec<_>>().join("`"));
            prose.push('\n');
        }
    }
    prose
}

/// The targets of the links of a page that do not lead to another site.
pub(super) fn links(text: &str) -> Vec<String> {
    let prose = prose(text);
    let ends = prose.match_indices("](").map(|(at, _)| &prose[at + 2..]);
    ends.filter_map(|rest| rest.split_once(')'))
        .map(|(target, _)| target.split(' ').next().unwrap_or_default().to_owned())
        .filter(|target| !target.contains("://") && !target.starts_with("mailto:"))
        .collect()
}

/// A path without `..`, from the root of the repository.
pub(super) fn resolve(page: &str, target: &str) -> String {
    let mut path = PathBuf::new();
    let from = Path::new(page).parent().expect("a folder").join(target);
    for part in from.components() {
        match part {
            Component::ParentDir => {
                assert!(path.pop(), "{page}: {target} leaves the repository");
            }
            Component::CurDir => {}
            other => path.push(other),
        }
    }
    path.to_string_lossy().into_owned()
}

/// The names by which a page's headings can be linked, as GitHub and mdBook make them, in the page's order.
pub(super) fn anchors(text: &str) -> Vec<String> {
    let mut fenced = false;
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let mut anchors = Vec::new();
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        }
        let heading = line.trim_start_matches('#');
        if fenced || heading.len() == line.len() || !heading.starts_with(' ') {
            continue;
        }
        let slug: String = heading
            .trim()
            .to_lowercase()
            .chars()
            .filter_map(|c| match c {
                ' ' => Some('-'),
                c if c.is_alphanumeric() || c == '-' || c == '_' => Some(c),
                _ => None,
            })
            .collect();
        let times = seen.entry(slug.clone()).or_default();
        anchors.push(if *times == 0 { slug } else { format!("{slug}-{times}") });
        *times += 1;
    }
    anchors
}

#[test]
fn every_page_is_in_the_summary_once() {
    let summary = read("docs/SUMMARY.md");
    // A heading of pages has no page of its own.
    let targets = links(&summary).into_iter().filter(|target| !target.is_empty());
    let listed: Vec<String> = targets.map(|target| resolve("docs/SUMMARY.md", &target)).collect();
    let once: BTreeSet<&String> = listed.iter().collect();
    assert_eq!(once.len(), listed.len(), "a page is listed twice");
    for page in markdown_under("docs") {
        assert!(
            page == "docs/SUMMARY.md" || listed.contains(&page),
            "{page} is not in docs/SUMMARY.md; add it under the need that it serves"
        );
    }
    for page in &listed {
        assert!(root().join(page).is_file(), "docs/SUMMARY.md lists {page}, which is not there");
    }
}

#[test]
fn every_relative_link_leads_somewhere() {
    let mut wrong = Vec::new();
    let mut looked_at = 0;
    for page in pages() {
        for link in links(&read(&page)) {
            looked_at += 1;
            let (target, anchor) = link.split_once('#').unwrap_or((&link, ""));
            let file = if target.is_empty() { page.clone() } else { resolve(&page, target) };
            if !root().join(&file).exists() {
                wrong.push(format!("{page}: no {link}"));
            } else if !anchor.is_empty()
                && file.ends_with(".md")
                && !anchors(&read(&file)).iter().any(|found| found == anchor)
            {
                wrong.push(format!("{page}: no heading #{anchor} in {file}"));
            }
        }
    }
    assert!(looked_at > 300, "only {looked_at} links were found");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Where a message is explained, it is the program's own: all its fixed words are in the sources, in order.
#[test]
fn the_messages_of_troubleshooting_are_those_of_the_program() {
    let sources = sources();
    for page in ["docs/troubleshooting.md", "docs/zh/troubleshooting.md"] {
        let text = read(page);
        let messages: Vec<&str> =
            text.lines().filter_map(|l| l.strip_prefix("### `")?.strip_suffix('`')).collect();
        assert!(messages.len() > 15, "{page}: {}", messages.len());
        for message in messages {
            let words: Vec<String> = message.split('…').map(plain).collect();
            let found = words.iter().all(|part| sources.contains(part.as_str()));
            assert!(found, "{page}: the program does not say `{message}`");
        }
    }
}

/// The texts of the program on one line each way: broken literals are joined.
fn sources() -> String {
    let mut all = String::new();
    let mut folders = vec![root().join("src"), root().join("crates/core/src")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|e| e == "rs") {
                all.push_str(&std::fs::read_to_string(&path).expect("a source"));
            }
        }
    }
    plain(&all)
}

/// Without line breaks in literals and runs of spaces.
fn plain(text: &str) -> String {
    text.replace("\\\n", " ").split_whitespace().collect::<Vec<_>>().join(" ")
}
