//! Parses lists within one value: PostgreSQL arrays and JSON arrays.

use serde_json::value::RawValue;

/// The elements of an array of PostgreSQL that has one dimension; `None` among them is NULL.
pub(super) fn elements(text: &str) -> Option<Vec<Option<String>>> {
    // `[0:1]={a,b}`
    let text = if text.starts_with('[') { text.split_once('=')?.1 } else { text };
    let inside = text.strip_prefix('{')?.strip_suffix('}')?;
    let mut found = Vec::new();
    if inside.is_empty() {
        return Some(found);
    }
    let mut chars = inside.chars();
    loop {
        let (mut element, mut is_quoted) = (String::new(), false);
        let is_last = loop {
            match chars.next() {
                None => break true,
                Some(',') => break false,
                Some('{') => return None,
                Some('"') => {
                    is_quoted = true;
                    loop {
                        match chars.next()? {
                            '"' => break,
                            '\\' => element.push(chars.next()?),
                            other => element.push(other),
                        }
                    }
                }
                Some(other) => element.push(other),
            }
        };
        found.push(Some(element).filter(|element| is_quoted || element != "NULL"));
        if is_last {
            return Some(found);
        }
    }
}

/// The texts and numbers of a JSON array, with every digit; `None` among them is null.
pub(super) fn json_elements(text: &str) -> Option<Vec<Option<String>>> {
    let elements: Vec<&RawValue> = serde_json::from_str(text).ok()?;
    let mut found = Vec::new();
    for element in elements {
        match element.get() {
            "null" => found.push(None),
            text if text.starts_with('"') => found.push(Some(serde_json::from_str(text).ok()?)),
            text if text.starts_with(['[', '{']) => return None,
            plain => found.push(Some(plain.to_owned())),
        }
    }
    Some(found)
}

/// A JSON list in PostgreSQL's array syntax: `["a", 1, null]` is `{"a","1",NULL}`. `None` for a
/// text that is not a JSON list, such as an array already in that syntax.
pub fn array_of_json(text: &str) -> Option<String> {
    let elements: Vec<&RawValue> = serde_json::from_str(text).ok()?;
    let mut all = Vec::with_capacity(elements.len());
    for element in elements {
        let text = match element.get() {
            "null" => {
                all.push("NULL".to_owned());
                continue;
            }
            text if text.starts_with('"') => serde_json::from_str(text).ok()?,
            other => other.to_owned(),
        };
        all.push(format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"")));
    }
    Some(format!("{{{}}}", all.join(",")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_json_list_becomes_an_array() {
        for (json, array) in [
            ("[]", Some("{}")),
            (
                r#"["a b", 12.50, null, "NULL", true, "x\"y\\z", [1]]"#,
                Some(r#"{"a b","12.50",NULL,"NULL","true","x\"y\\z","[1]"}"#),
            ),
            ("{1,2}", None),
            ("[0:1]={1,2}", None),
            ("1", None),
        ] {
            assert_eq!(array_of_json(json).as_deref(), array, "{json}");
        }
    }
}
