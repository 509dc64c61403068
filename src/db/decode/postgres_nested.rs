//! Decodes binary arrays, ranges and composites of PostgreSQL into the server's text form.

use super::postgres::nested;
use super::postgres_scalar::{built_in, scalar};
use sqlx::postgres::PgTypeInfo;

/// Maximum number of dimensions of an array.
const DIMENSIONS_MAX: usize = 6;

/// The undecoded rest of a value.
struct Input<'a>(&'a [u8]);

impl<'a> Input<'a> {
    fn take_bytes(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    fn read_int(&mut self) -> Option<i32> {
        Some(i32::from_be_bytes(self.take_bytes(4)?.try_into().ok()?))
    }

    /// A value with its length before it; `Some(None)` is NULL.
    fn value(&mut self) -> Option<Option<&'a [u8]>> {
        match self.read_int()? {
            -1 => Some(None),
            length => self.take_bytes(usize::try_from(length).ok()?).map(Some),
        }
    }
}

fn is_blank(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\n' | '\r' | '\u{b}' | '\u{c}')
}

/// Whether a text must be quoted where these characters have a meaning.
fn needs_quotes(text: &str, meaning: &[char]) -> bool {
    text.is_empty() || text.chars().any(|c| is_blank(c) || meaning.contains(&c))
}

/// `{1,NULL,"a b"}`, preceded by the bounds if they do not begin with 1.
pub(super) fn array(element: &PgTypeInfo, bytes: &[u8]) -> Option<String> {
    let mut input = Input(bytes);
    let dimensions =
        usize::try_from(input.read_int()?).ok().filter(|count| *count <= DIMENSIONS_MAX)?;
    let (_has_nulls, _type) = (input.read_int()?, input.read_int()?);
    if dimensions == 0 {
        return Some("{}".to_owned());
    }
    let (mut lengths, mut bounds, mut starts_at_1) = (Vec::new(), String::new(), true);
    for _ in 0..dimensions {
        let (length, first) = (input.read_int().filter(|length| *length > 0)?, input.read_int()?);
        lengths.push(length);
        starts_at_1 &= first == 1;
        bounds.push_str(&format!("[{first}:{}]", first.checked_add(length - 1)?));
    }
    let mut text = if starts_at_1 { String::new() } else { format!("{bounds}=") };
    level(&lengths, element, &mut input, &mut text)?;
    Some(text)
}

fn level(
    lengths: &[i32],
    element: &PgTypeInfo,
    input: &mut Input<'_>,
    into: &mut String,
) -> Option<()> {
    let (length, inner) = lengths.split_first()?;
    into.push('{');
    for at in 0..*length {
        if at > 0 {
            into.push(',');
        }
        if !inner.is_empty() {
            level(inner, element, input, into)?;
            continue;
        }
        match input.value()? {
            None => into.push_str("NULL"),
            Some(bytes) => push_element(&nested(element, bytes)?, into),
        }
    }
    into.push('}');
    Some(())
}

fn push_element(text: &str, into: &mut String) {
    let is_word = text.eq_ignore_ascii_case("null");
    if !is_word && !needs_quotes(text, &['"', '\\', '{', '}', ',']) {
        into.push_str(text);
        return;
    }
    into.push('"');
    for c in text.chars() {
        if matches!(c, '"' | '\\') {
            into.push('\\');
        }
        into.push(c);
    }
    into.push('"');
}

/// Within a range or a composite a quote and a backslash are doubled.
fn push_doubled(text: &str, meaning: &[char], into: &mut String) {
    if !needs_quotes(text, meaning) {
        into.push_str(text);
        return;
    }
    into.push('"');
    for c in text.chars() {
        if matches!(c, '"' | '\\') {
            into.push(c);
        }
        into.push(c);
    }
    into.push('"');
}

/// `[1,5)`, `empty`.
pub(super) fn range(element: &PgTypeInfo, bytes: &[u8]) -> Option<String> {
    const EMPTY: u8 = 1;
    const HAS_FIRST: u8 = 2;
    const HAS_LAST: u8 = 4;
    const NO_FIRST: u8 = 8;
    const NO_LAST: u8 = 16;
    let mut input = Input(bytes);
    let flags = *input.take_bytes(1)?.first()?;
    if flags & EMPTY != 0 {
        return Some("empty".to_owned());
    }
    let mut text = if flags & HAS_FIRST != 0 { "[" } else { "(" }.to_owned();
    for (has_none, behind) in [(NO_FIRST, ","), (NO_LAST, "")] {
        if flags & has_none == 0 {
            let bound = nested(element, input.value()??)?;
            push_doubled(&bound, &['"', '\\', '(', ')', '[', ']', ','], &mut text);
        }
        text.push_str(behind);
    }
    text.push(if flags & HAS_LAST != 0 { ']' } else { ')' });
    Some(text)
}

/// `(1,"a b",)`: the values of a row, by the declared types of its columns if there are any.
pub(super) fn composite(types: Option<&[&PgTypeInfo]>, bytes: &[u8]) -> Option<String> {
    let mut input = Input(bytes);
    let count = usize::try_from(input.read_int()?).ok()?;
    if types.is_some_and(|types| types.len() != count) {
        return None;
    }
    let mut text = "(".to_owned();
    for at in 0..count {
        if at > 0 {
            text.push(',');
        }
        let oid = u32::from_be_bytes(input.read_int()?.to_be_bytes());
        let Some(value) = input.value()? else { continue };
        let value = match types {
            Some(types) => nested(types.get(at)?, value)?,
            None => scalar(built_in(oid)?, value)?,
        };
        push_doubled(&value, &['"', '\\', '(', ')', ','], &mut text);
    }
    text.push(')');
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use sqlx::Postgres;

    fn text_type() -> PgTypeInfo {
        <String as sqlx::Type<Postgres>>::type_info()
    }

    fn ints(numbers: &[i32]) -> Vec<u8> {
        numbers.iter().flat_map(|n| n.to_be_bytes()).collect()
    }

    fn values(texts: &[Option<&str>]) -> Vec<u8> {
        let one = |text: &Option<&str>| match text {
            None => ints(&[-1]),
            Some(text) => {
                [&ints(&[i32::try_from(text.len()).expect("short")])[..], text.as_bytes()].concat()
            }
        };
        texts.iter().flat_map(one).collect()
    }

    #[test]
    fn arrays_are_written_as_the_server_does() {
        let texts = [Some("a"), None, Some("NULL"), Some(""), Some("b c"), Some("d\"\\")];
        let head = ints(&[1, 1, 25, 6, 1]);
        let found = array(&text_type(), &[head, values(&texts)].concat());
        assert_eq!(found.as_deref(), Some(r#"{a,NULL,"NULL","","b c","d\"\\"}"#));
        let head = ints(&[2, 0, 25, 1, 0, 2, 5]);
        let found = array(&text_type(), &[head, values(&[Some("a"), Some("b")])].concat());
        assert_eq!(found.as_deref(), Some("[0:0][5:6]={{a,b}}"));
        assert_eq!(array(&text_type(), &ints(&[0, 0, 25])).as_deref(), Some("{}"));
        assert_eq!(array(&text_type(), &ints(&[2, 0, 25, i32::MAX, 1, 0, 1])), None, "no end");
    }

    #[test]
    fn ranges_and_rows_double_their_quotes() {
        let bounds = [vec![2], values(&[Some("a"), Some("b,\"")])].concat();
        assert_eq!(range(&text_type(), &bounds).as_deref(), Some(r#"[a,"b,""")"#));
        assert_eq!(range(&text_type(), &[1]).as_deref(), Some("empty"));
        assert_eq!(range(&text_type(), &[24]).as_deref(), Some("(,)"));
        let row =
            [ints(&[3, 25]), values(&[Some("x y")]), ints(&[23, -1, 25]), values(&[Some("")])];
        assert_eq!(composite(None, &row.concat()).as_deref(), Some(r#"("x y",,"")"#));
        let unknown = [ints(&[1, 99_999]), values(&[Some("x")])].concat();
        assert_eq!(composite(None, &unknown), None);
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
            let _array = array(&text_type(), &bytes);
            let _range = range(&text_type(), &bytes);
            let _row = composite(None, &bytes);
        }
    }
}
