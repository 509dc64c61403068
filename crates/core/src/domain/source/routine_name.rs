//! The name of a procedure or function as a job gives it: parts, quotes, and types behind it.

/// A name of up to three parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoutineName<'a> {
    /// Its parts without their quotes: schema, package and name, as far as they are there.
    pub parts: Vec<String>,
    /// Whether a part is quoted, so that its case counts.
    pub is_quoted: bool,
    /// What stands between parentheses behind it: the types that choose one of several.
    pub types: Option<&'a str>,
}

/// Whether a part needs no quotes to be read.
pub fn is_plain_part(part: &str) -> bool {
    !part.is_empty() && part.chars().all(|c| c.is_alphanumeric() || "_$#".contains(c))
}

impl<'a> RoutineName<'a> {
    /// `name`, `schema.name` or `schema.package.name`, each part plain or in double quotes or backticks, in
    /// which two quotes are one.
    pub fn parse(text: &'a str) -> Option<Self> {
        let (mut parts, mut is_quoted) = (Vec::new(), false);
        let mut rest = text.trim();
        loop {
            let (part, after) = match rest.chars().next()? {
                quote @ ('"' | '`') => {
                    is_quoted = true;
                    parse_quoted(&rest[1..], quote)?
                }
                _ => {
                    let (part, after) = rest.split_at(rest.find(['.', '(']).unwrap_or(rest.len()));
                    (is_plain_part(part).then(|| part.to_owned())?, after)
                }
            };
            if part.is_empty() || parts.len() == 3 {
                return None;
            }
            parts.push(part);
            if let Some(more) = after.strip_prefix('.') {
                rest = more;
                continue;
            }
            let types = match after {
                "" => None,
                behind => Some(behind.strip_prefix('(')?.strip_suffix(')')?),
            };
            return Some(Self { parts, is_quoted, types });
        }
    }
}

/// What stands before the closing quote, and what follows it.
fn parse_quoted(text: &str, quote: char) -> Option<(String, &str)> {
    let (mut part, mut rest) = (String::new(), text);
    loop {
        let (before, after) = rest.split_once(quote)?;
        part.push_str(before);
        match after.strip_prefix(quote) {
            Some(more) => {
                part.push(quote);
                rest = more;
            }
            None => return Some((part, after)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_hold_any_character() {
        let parse = |text| {
            let name = RoutineName::parse(text)?;
            Some((name.parts.join("|"), name.is_quoted, name.types))
        };
        assert_eq!(parse("a.b"), Some(("a|b".to_owned(), false, None)));
        assert_eq!(parse("\"Odd.One\".`x(y)`"), Some(("Odd.One|x(y)".to_owned(), true, None)));
        assert_eq!(parse("\"a\"\"b\"(int)"), Some(("a\"b".to_owned(), true, Some("int"))));
        for bad in ["", ".", "a.", "a b", "`a", "\"a\"b", "\"\"", "a.b.c.d", "f(int", "f(a) b"] {
            assert_eq!(parse(bad), None, "{bad}");
        }
    }
}
