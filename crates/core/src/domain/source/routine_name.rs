//! Parses the name of a procedure or function in a job: parts, quotes, and parameter types.

/// A name of up to three parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoutineName<'a> {
    /// Its unquoted parts: schema, package and name, as far as present.
    pub parts: Vec<String>,
    /// Whether a part is quoted, so that its case counts.
    pub is_quoted: bool,
    /// The text in parentheses after it: the types that select one of several overloads.
    pub types: Option<&'a str>,
}

/// Whether a part can be written without quotes.
pub fn is_plain_part(part: &str) -> bool {
    !part.is_empty() && part.chars().all(|c| c.is_alphanumeric() || "_$#".contains(c))
}

impl<'a> RoutineName<'a> {
    /// Parses `name`, `schema.name` or `schema.package.name`, each part plain or in double quotes
    /// or backticks; a doubled quote stands for one.
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

/// Splits at the closing quote: the text before it, and the rest.
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
