//! Adds comments to the exported text of a definition: at its top, and above jobs.

use crate::domain::id::JobCode;
use std::collections::BTreeMap;

/// Maximum length of a line of a comment, in characters.
const COLUMNS: usize = 100;

/// The comments to add.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Comments {
    /// Lines at the top.
    pub head: Vec<String>,
    /// Lines above jobs.
    pub jobs: BTreeMap<JobCode, Vec<String>>,
}

/// Adds comments to the YAML text that `export` generates for a definition whose jobs are a map. Comments of jobs that
/// the text does not contain go to the top, so that none is lost.
pub fn add_comments(text: &str, comments: &Comments) -> String {
    let mut left: BTreeMap<String, &Vec<String>> =
        comments.jobs.iter().map(|(code, lines)| (code.to_string(), lines)).collect();
    let (mut body, mut is_in_jobs) = (String::new(), false);
    for line in text.lines() {
        if !line.starts_with([' ', '#']) && !line.is_empty() {
            is_in_jobs = line == "jobs:";
        }
        let key = line.strip_prefix("  ").filter(|rest| is_in_jobs && !rest.starts_with(' '));
        let code = key.and_then(|key| key.split_once(':').map(|_| key)).and_then(job_of_key);
        if let Some(lines) = code.and_then(|code| left.remove(&code)) {
            for comment in lines {
                push_comment(&mut body, "  ", comment);
            }
        }
        body.push_str(line);
        body.push('\n');
    }
    let mut whole = String::new();
    for comment in &comments.head {
        push_comment(&mut whole, "", comment);
    }
    for (code, lines) in left {
        for comment in lines {
            push_comment(&mut whole, "", &format!("{code}: {comment}"));
        }
    }
    whole.push_str(&body);
    whole
}

/// The code before the colon at the end of a key, which may be quoted.
fn job_of_key(key: &str) -> Option<String> {
    let key = match key.strip_suffix(':') {
        Some(key) => key,
        // `CODE: { type: NOOP }`
        None => key.split_once(": ")?.0,
    };
    Some(key.trim_matches(['"', '\'']).to_owned())
}

/// Appends one comment, wrapped; line breaks in it become blanks.
fn push_comment(text: &mut String, indent: &str, comment: &str) {
    let mut line = format!("{indent}#");
    let is_bad = |c: char| c.is_control() || matches!(c, '\u{2028}' | '\u{2029}' | '\u{85}');
    let clean: String = comment.chars().map(|c| if is_bad(c) { ' ' } else { c }).collect();
    let mut is_empty = true;
    for word in clean.split_whitespace() {
        let width = line.chars().count() + 1 + word.chars().count();
        if width > COLUMNS && !is_empty {
            text.push_str(&line);
            text.push('\n');
            line = format!("{indent}#  ");
        }
        line.push(' ');
        line.push_str(word);
        is_empty = false;
    }
    text.push_str(&line);
    text.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(text: &str) -> JobCode {
        JobCode::parse(text).expect("a code")
    }

    #[test]
    fn comments_stand_above_their_jobs_and_none_is_lost() {
        let text = "sources:\n  A:\n    url: x\njobs:\n  A:\n    sql: |\n      B:\n  B: { type: NOOP }\n  \"C:1\":\n    \
                    type: NOOP\nschedules:\n  A:\n    cron: x\n";
        let jobs = [("A", "one"), ("B", "two\nlines"), ("C:1", "three"), ("D", "gone")];
        let jobs = jobs.map(|(job, line)| (code(job), vec![line.to_owned()]));
        let comments = Comments { head: vec!["head".to_owned()], jobs: jobs.into() };
        let made = add_comments(text, &comments);
        assert_eq!(
            made,
            "# head\n# D: gone\nsources:\n  A:\n    url: x\njobs:\n  # one\n  A:\n    sql: |\n      B:\n  # two lines\n  \
             B: { type: NOOP }\n  # three\n  \"C:1\":\n    type: NOOP\nschedules:\n  A:\n    cron: x\n"
        );
    }

    #[test]
    fn a_long_comment_is_wrapped() {
        let long = vec!["word"; 60].join(" ");
        let comments = Comments { head: vec![long], jobs: BTreeMap::new() };
        let made = add_comments("jobs: {}\n", &comments);
        assert!(made.lines().all(|line| line.chars().count() <= COLUMNS), "{made}");
        assert!(made.lines().filter(|line| line.starts_with("#   word")).count() >= 2, "{made}");
    }
}
