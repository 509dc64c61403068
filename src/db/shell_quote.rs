//! Quotes text in shell commands that are shown to users.

/// `text` as one word of a shell.
pub(crate) fn quote_word(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || ":/@._-+%=,".contains(c);
    if !text.is_empty() && text.chars().all(is_plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_word_stays_one_word() {
        for (text, word) in
            [("sqlite:a.db", "sqlite:a.db"), ("a b", "'a b'"), ("it's", r"'it'\''s'"), ("", "''")]
        {
            assert_eq!(super::quote_word(text), word, "{text}");
        }
    }
}
