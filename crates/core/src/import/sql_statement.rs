//! Classifies the SQL that other schedulers run: a procedure call with literal values, statements, or a text that is
//! only valid inside a routine.

use crate::domain::job::Param;
use crate::domain::source::DialectName;
use crate::domain::source::routine_name::RoutineName;
use crate::domain::source::statement::{bind_names, split, unfit, words};
use crate::domain::source::token::{SqlToken, token};
use crate::import::note::BilingualSentence;

/// The class of a SQL text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum SqlForm {
    /// `CALL name(…)` with literal values.
    Call { name: String, params: Vec<Param> },
    /// Statements that can be sent one by one.
    Statements,
    /// `BEGIN … END`, `IF …`: valid only inside a routine.
    Compound,
    /// It contains a `:name`, which would be a parameter here.
    Parameter(String),
    /// A statement that no job may run here; with the reason.
    Unfit(&'static str),
    /// It contains no statement.
    Empty,
}

/// Keywords that begin a compound statement of MySQL; each is only valid inside a routine.
const COMPOUND: [&str; 9] =
    ["BEGIN", "IF", "CASE", "WHILE", "LOOP", "REPEAT", "DECLARE", "LEAVE", "ITERATE"];

impl SqlForm {
    /// Classifies a text in a dialect.
    pub(crate) fn read(text: &str, dialect: DialectName) -> Self {
        let statements = split(text, dialect);
        let Some(first) = statements.first() else { return Self::Empty };
        let first_words = words(&first.text, dialect, 2);
        let begins = |word: &str| first_words.first().is_some_and(|w| w.eq_ignore_ascii_case(word));
        if dialect == DialectName::Mysql && (COMPOUND.iter().any(|w| begins(w)) || has_label(text))
        {
            return Self::Compound;
        }
        if let Some(why) = statements.iter().find_map(|s| unfit(s, dialect)) {
            return Self::Unfit(why);
        }
        let names = statements.iter().map(|s| bind_names(&s.text, dialect, |_| "text").names);
        if let Some(name) = names.flatten().next() {
            return Self::Parameter(name);
        }
        if begins("CALL")
            && statements.len() == 1
            && let Some((name, params)) = call(&first.text, dialect)
        {
            return Self::Call { name, params };
        }
        Self::Statements
    }
}

impl SqlForm {
    /// Why a text cannot be the body of a job; `None` if it can.
    pub(crate) fn fault(&self) -> Option<BilingualSentence> {
        match self {
            Self::Call { .. } | Self::Statements | Self::Compound => None,
            Self::Parameter(name) => Some(BilingualSentence::new(
                format!("its SQL has :{name}, which would be a parameter here"),
                format!("其 SQL 含有 :{name},在此处会被当作参数"),
            )),
            Self::Unfit(why) => {
                Some(BilingualSentence::new(*why, format!("其语句不能由作业执行:{why}")))
            }
            Self::Empty => Some(BilingualSentence::from((
                "it has no statement: its text is empty, or this user may not see it",
                "它没有语句:内容为空,或该用户无权查看",
            ))),
        }
    }
}

/// Whether the text has a label such as `label: LOOP`, which is only valid in a routine.
fn has_label(text: &str) -> bool {
    let tokens = tokens(text, DialectName::Mysql);
    matches!(&tokens[..], [(SqlToken::Word, _), (SqlToken::Mark, ":"), (SqlToken::Word, word), ..]
        if COMPOUND.iter().any(|w| word.eq_ignore_ascii_case(w)))
}

/// Whether quotes are unbalanced: MySQL 8 and later show the text of an event with `''` and `\\'` as one quote, so that
/// `'it''s'` becomes `'it's'`.
pub(crate) fn has_broken_quotes(text: &str, dialect: DialectName) -> bool {
    let (mut at, mut before) = (0, SqlToken::Blank);
    while at < text.len() {
        let (kind, end) = token(text.as_bytes(), at, dialect);
        let is_string = kind == SqlToken::Quoted && text[at..].starts_with(['\'', '"']);
        let quote = &text[at..=at];
        let is_open = is_string && (end - at < 2 || !text[at..end].ends_with(quote));
        if is_open || (before == SqlToken::Quoted && kind == SqlToken::Word) {
            return true;
        }
        before = if is_string { SqlToken::Quoted } else { kind };
        if kind == SqlToken::Quoted && !is_string {
            before = SqlToken::Mark;
        }
        at = end;
    }
    false
}

/// Tokens with their text, without whitespace.
fn tokens(text: &str, dialect: DialectName) -> Vec<(SqlToken, &str)> {
    let mut found = Vec::new();
    let mut at = 0;
    while at < text.len() {
        let (kind, end) = token(text.as_bytes(), at, dialect);
        if kind != SqlToken::Blank {
            found.push((kind, &text[at..end]));
        }
        at = end;
    }
    found
}

/// The name and the values of a CALL; `None` if a value is an expression.
fn call(text: &str, dialect: DialectName) -> Option<(String, Vec<Param>)> {
    let tokens = tokens(text, dialect);
    let open = tokens.iter().position(|(_, text)| *text == "(").unwrap_or(tokens.len());
    let name: String = tokens.get(1..open)?.iter().map(|(_, text)| *text).collect();
    if RoutineName::parse(&name).is_none_or(|name| name.types.is_some()) {
        return None;
    }
    let mut params = Vec::new();
    if open == tokens.len() {
        return Some((name, params));
    }
    let (last, inside) = tokens.get(open + 1..)?.split_last()?;
    if last.1 != ")" {
        return None;
    }
    if !inside.is_empty() {
        for value in inside.split(|(_, text)| *text == ",") {
            let value = literal(value, dialect)?;
            params.push(Param {
                name: format!("p{}", params.len() + 1),
                value,
                ..Param::default()
            });
        }
    }
    Some((name, params))
}

/// A number, a string, NULL or a boolean; `None` for anything else, and for a text that would be a reference here.
fn literal(tokens: &[(SqlToken, &str)], dialect: DialectName) -> Option<Option<String>> {
    let (sign, rest) = match tokens {
        [(SqlToken::Mark, "-"), rest @ ..] => ("-", rest),
        all => ("", all),
    };
    // 1.50 is three tokens.
    let joined: String = rest.iter().map(|(_, text)| *text).collect();
    let is_number = rest.iter().all(|(kind, text)| *kind == SqlToken::Word || *text == ".")
        && joined.starts_with(|c: char| c.is_ascii_digit())
        && joined.chars().all(|c| c.is_ascii_digit() || c == '.')
        && joined.matches('.').count() <= 1;
    if is_number {
        return Some(Some(format!("{sign}{joined}")));
    }
    if !sign.is_empty() {
        return None;
    }
    match rest {
        [(SqlToken::Word, word)] => match (word.to_ascii_lowercase().as_str(), dialect) {
            ("null", _) => Some(None),
            (word @ ("true" | "false"), DialectName::Postgres) => Some(Some(word.to_owned())),
            ("true", _) => Some(Some("1".to_owned())),
            ("false", _) => Some(Some("0".to_owned())),
            _ => None,
        },
        [(SqlToken::Quoted, text)] => {
            let inner = text.strip_prefix('\'')?.strip_suffix('\'')?;
            let has_escape = dialect == DialectName::Mysql && inner.contains('\\');
            let is_plain = !has_escape && !inner.contains("${");
            is_plain.then(|| Some(inner.replace("''", "'")))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn form(text: &str) -> SqlForm {
        SqlForm::read(text, DialectName::Mysql)
    }

    fn called(text: &str) -> Option<(String, Vec<Option<String>>)> {
        match form(text) {
            SqlForm::Call { name, params } => {
                Some((name, params.into_iter().map(|p| p.value).collect()))
            }
            _ => None,
        }
    }

    #[test]
    fn calls_with_plain_values_are_calls() {
        let some = |words: &[&str]| words.iter().map(|w| Some((*w).to_owned())).collect::<Vec<_>>();
        for (text, name, values) in [
            ("call close_day(1,'x')", "close_day", some(&["1", "x"])),
            (
                "CALL bank.close_day ( -1.50 , 'it''s' );",
                "bank.close_day",
                some(&["-1.50", "it's"]),
            ),
            ("CALL `my bank`.p(TRUE)", "`my bank`.p", some(&["1"])),
            ("CALL p", "p", some(&[])),
            ("CALL p()", "p", some(&[])),
            ("/* nightly */ CALL p('a,b(c)')", "p", some(&["a,b(c)"])),
        ] {
            assert_eq!(called(text), Some((name.to_owned(), values)), "{text}");
        }
        assert_eq!(called("CALL p(NULL)"), Some(("p".to_owned(), vec![None])));
    }

    #[test]
    fn quotes_that_a_server_dropped_are_seen() {
        for (text, is_broken) in [
            ("CALL p(1, 'it''s')", false),
            ("CALL p(1, 'it\\'s')", false),
            ("INSERT INTO `a`.b VALUES ('x', \"y\", '')", false),
            ("CALL p(1, 'it's')", true),
            ("CALL p(''')", true),
            ("CALL p('a'b','c'd')", true),
            ("SELECT ' x' '", true),
        ] {
            assert_eq!(has_broken_quotes(text, DialectName::Mysql), is_broken, "{text}");
        }
    }

    #[test]
    fn what_is_worked_out_stays_sql() {
        for text in [
            "CALL p(CURDATE() - INTERVAL 1 DAY)",
            "CALL p(@x)",
            "CALL p('a\\'b')",
            "CALL p('${x}')",
            "CALL p(1); CALL p(2)",
            "INSERT INTO t VALUES (NOW(), ':x')",
            "DELETE FROM t WHERE a < '12:30:00'",
        ] {
            assert_eq!(form(text), SqlForm::Statements, "{text}");
        }
        assert_eq!(form("SELECT :x"), SqlForm::Parameter("x".to_owned()));
        assert_eq!(form(" -- nothing\n"), SqlForm::Empty);
        for text in [
            "BEGIN DELETE FROM t; END",
            "IF 1 THEN DELETE FROM t; END IF",
            "l: LOOP LEAVE l; END LOOP",
        ] {
            assert_eq!(form(text), SqlForm::Compound, "{text}");
        }
    }
}
