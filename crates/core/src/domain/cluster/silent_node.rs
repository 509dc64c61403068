//! An attempt on a node that has stopped sending heartbeats, while its session still holds the lock
//! of the job on the data source.

use crate::domain::text::lang::Lang;
use std::fmt;

/// What such a job waits for. The row holds it in English, as `Display` writes it; for other
/// languages it is parsed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SilentNode {
    /// Name of the node, or the beginning of its id.
    pub node: String,
    /// Id of the session on the data source.
    pub session: i64,
}

/// English and Chinese; `{node}` and `{session}` are replaced.
const WORDS: (&str, &str) = (
    "node {node} is not heard of; session {session} on the server still holds the lock of this job, so it may still run",
    "节点 {node} 失去联系；服务器上的会话 {session} 仍持有本作业的锁，作业可能仍在运行",
);

impl SilentNode {
    /// Parses the text of the row.
    pub fn parse(text: &str) -> Option<Self> {
        let (head, rest) = WORDS.0.split_once("{node}")?;
        let (middle, tail) = rest.split_once("{session}")?;
        let (node, session) = text.strip_prefix(head)?.strip_suffix(tail)?.rsplit_once(middle)?;
        Some(Self { node: node.to_owned(), session: session.parse().ok()? })
    }

    /// The same as a sentence in `lang`.
    pub fn words(&self, lang: Lang) -> String {
        let words = lang.select(WORDS.0, WORDS.1).replace("{session}", &self.session.to_string());
        words.replace("{node}", &self.node)
    }
}

impl fmt::Display for SilentNode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.words(Lang::En))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_row_says_is_read_back() {
        for node in ["1a2b", "节点 7", "is not heard of; session 3"] {
            let silent = SilentNode { node: node.to_owned(), session: 42 };
            assert_eq!(SilentNode::parse(&silent.to_string()), Some(silent.clone()));
            assert!(silent.words(Lang::Zh).contains("会话 42"), "{}", silent.words(Lang::Zh));
        }
        for other in
            ["", "session 7 on the server", "node 1 is not heard of; session x on the server"]
        {
            assert_eq!(SilentNode::parse(other), None, "{other}");
        }
    }
}
