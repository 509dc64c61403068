//! Removes from a statement what the SQL parser refuses and no access depends on: `INTO variable`, index hints, `@v
//! :=`, partitions, modifiers. It works on tokens, so every name keeps its place in the text.

use crate::domain::source::DialectName;
use crate::lineage::words::{TokenSlice, name_of};
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan, Word};

/// A statement that is prepared for the parser.
#[derive(Clone, Debug, Default)]
pub(super) struct Rewritten {
    pub(super) tokens: Vec<TokenWithSpan>,
    /// Variables that the statement sets.
    pub(super) targets: Vec<String>,
}

/// Modifiers of MySQL after the verb, which change no access.
const MODIFIERS: [&str; 11] = [
    "SQL_CALC_FOUND_ROWS",
    "SQL_NO_CACHE",
    "SQL_CACHE",
    "SQL_BIG_RESULT",
    "SQL_SMALL_RESULT",
    "SQL_BUFFER_RESULT",
    "HIGH_PRIORITY",
    "LOW_PRIORITY",
    "DELAYED",
    "QUICK",
    "CONCURRENT",
];

/// Prepares a statement. `is_procedural` tells that `SELECT … INTO x` sets a variable instead of creating a table.
pub(super) fn rewrite(
    tokens: &[TokenWithSpan],
    dialect: DialectName,
    is_procedural: bool,
) -> Rewritten {
    let mut rewriter = Rewriter {
        words: TokenSlice(tokens),
        tokens,
        dialect,
        is_procedural,
        set_at: (0..tokens.len()).find(|at| TokenSlice(tokens).is_word(*at, "SET")),
        at: 0,
        depth: 0,
        done: Rewritten::default(),
    };
    while rewriter.at < tokens.len() {
        if !rewriter.skip_any() && !rewriter.replace_any() {
            rewriter.copy_token();
        }
    }
    rewriter.done
}

struct Rewriter<'t> {
    words: TokenSlice<'t>,
    tokens: &'t [TokenWithSpan],
    dialect: DialectName,
    is_procedural: bool,
    /// Index of the first SET.
    set_at: Option<usize>,
    at: usize,
    depth: usize,
    done: Rewritten,
}

impl Rewriter<'_> {
    fn copy_token(&mut self) {
        match self.tokens[self.at].token {
            Token::LParen => self.depth += 1,
            Token::RParen => self.depth = self.depth.saturating_sub(1),
            _ => {}
        }
        self.done.tokens.push(self.tokens[self.at].clone());
        self.at += 1;
    }

    /// Replaces `count` tokens by a keyword.
    fn put_value(&mut self, value: &str, keyword: Keyword, count: usize) {
        let span = self.tokens[self.at].span;
        let word = Word { value: value.to_owned(), quote_style: None, keyword };
        self.done.tokens.push(TokenWithSpan { token: Token::Word(word), span });
        self.at += count;
    }

    fn put_token(&mut self, token: Token) {
        let span = self.tokens[self.at].span;
        self.done.tokens.push(TokenWithSpan { token, span });
        self.at += 1;
    }

    fn put_join(&mut self) {
        let span = self.tokens[self.at].span;
        for (value, keyword) in [("CROSS", Keyword::CROSS), ("JOIN", Keyword::JOIN)] {
            let word = Word { value: value.to_owned(), quote_style: None, keyword };
            self.done.tokens.push(TokenWithSpan { token: Token::Word(word), span });
        }
        self.at += 1;
    }

    fn is_mysql(&self) -> bool {
        self.dialect == DialectName::Mysql
    }

    /// Skips ignored syntax; returns whether there was any.
    fn skip_any(&mut self) -> bool {
        let (words, at) = (self.words, self.at);
        if words.is_word(at, "INTO") && self.is_select_into() {
            self.skip_into();
            return true;
        }
        if self.is_mysql() {
            return self.skip_of_mysql();
        }
        let tables = ["FROM", "UPDATE", "INTO", "JOIN", "TABLE", "TRUNCATE"];
        let is_only = words.is_word(at, "ONLY") && words.is_one_of(at.wrapping_sub(1), &tables);
        let is_symmetric = words.is_one_of(at, &["SYMMETRIC", "ASYMMETRIC"])
            && words.is_word(at.wrapping_sub(1), "BETWEEN");
        if is_only || is_symmetric {
            self.at += 1;
        } else if words.is_word(at, "OF")
            && words.is_one_of(at.wrapping_sub(1), &["UPDATE", "SHARE"])
        {
            // FOR UPDATE OF a, b
            self.at += 2;
            while words.is_token(self.at, &Token::Comma) {
                self.at += 2;
            }
        } else if words.is_word(at, "OVERRIDING") && words.is_word(at + 2, "VALUE") {
            self.at += 3;
        } else if words.is_word(at, "WHERE")
            && words.is_word(at + 1, "CURRENT")
            && words.is_word(at + 2, "OF")
        {
            self.at += 4;
        } else if words.is_word(at, "ON") && words.is_word(at + 1, "CONFLICT") {
            return self.conflict_target();
        } else {
            return false;
        }
        true
    }

    fn skip_of_mysql(&mut self) -> bool {
        let (words, at) = (self.words, self.at);
        let is_variable =
            words.word_at(at).is_some_and(|word| word.starts_with('@') && !word.starts_with("@@"));
        if is_variable && words.is_token(at + 1, &Token::Assignment) {
            self.at += 2;
        } else if words.is_one_of(at, &MODIFIERS) && at > 0 {
            self.at += 1;
        } else if words.is_one_of(at, &["FORCE", "USE", "IGNORE"])
            && words.is_one_of(at + 1, &["INDEX", "KEY"])
        {
            let open = words.find_from(at, |w, i| w.is_token(i, &Token::LParen));
            self.at = words.after_brackets(open);
        } else if words.is_word(at, "PARTITION") && words.is_token(at + 1, &Token::LParen) {
            self.at = words.after_brackets(at + 1);
        } else if words.is_word(at, "LOCK")
            && words.is_word(at + 1, "IN")
            && words.is_word(at + 2, "SHARE")
        {
            self.at += 4;
        } else if words.is_token(at, &Token::Period)
            && words.is_token(at + 1, &Token::Mul)
            && words.is_word(0, "DELETE")
        {
            self.at += 2;
        } else if words.is_word(at, "STRAIGHT_JOIN") && words.is_word(at.wrapping_sub(1), "SELECT")
        {
            self.at += 1;
        } else {
            return false;
        }
        true
    }

    /// Replaces syntax by an equivalent that the parser supports; returns whether there was any.
    fn replace_any(&mut self) -> bool {
        let (words, at) = (self.words, self.at);
        let units = ["YEAR_MONTH", "DAY_HOUR", "DAY_MINUTE", "DAY_SECOND", "HOUR_MINUTE"];
        let more_units = ["HOUR_SECOND", "MINUTE_SECOND", "DAY_MICROSECOND"];
        if at == 0 && words.is_word(0, "PERFORM") {
            self.put_value("SELECT", Keyword::SELECT, 1);
        } else if words.is_word(at, "STRAIGHT_JOIN") {
            self.put_value("JOIN", Keyword::JOIN, 1);
        } else if self.is_mysql()
            && (words.is_one_of(at, &units) || words.is_one_of(at, &more_units))
        {
            self.put_value("DAY", Keyword::DAY, 1);
        } else if self.is_mysql()
            && words.is_word(at, "MOD")
            && !words.is_token(at + 1, &Token::LParen)
        {
            self.put_token(Token::Mod);
        } else if self.is_mysql()
            && words.is_word(at.wrapping_sub(2), "AGAINST")
            && words.is_token(at.wrapping_sub(1), &Token::LParen)
            && words.word_at(at).is_some()
        {
            // The parser accepts only a literal here.
            self.put_token(Token::SingleQuotedString(String::new()));
        } else if words.is_token(at, &Token::Colon) && words.word_at(at + 1).is_some() {
            let name = words.word_at(at + 1).unwrap_or_default();
            let span = self.tokens[at].span;
            let token = Token::Placeholder(format!(":{}", name.to_lowercase()));
            self.done.tokens.push(TokenWithSpan { token, span });
            self.at += 2;
        } else if self.is_mysql()
            && self.depth == 0
            && words.is_word(0, "UPDATE")
            && words.is_token(at, &Token::Comma)
            && self.set_at.is_none_or(|set| at < set)
        {
            // UPDATE a, b SET …
            self.put_join();
        } else {
            return false;
        }
        true
    }

    /// Whether this INTO sets variables: not INSERT INTO, REPLACE INTO or MERGE INTO.
    fn is_select_into(&self) -> bool {
        let (words, at) = (self.words, self.at);
        let before = |word: &str| at > 0 && words.is_word(at - 1, word);
        let of_insert = ["INSERT", "REPLACE", "MERGE", "IGNORE", "LOW_PRIORITY", "DELAYED"];
        if of_insert.iter().any(|word| before(word)) || before("HIGH_PRIORITY") {
            return false;
        }
        // INSERT OR REPLACE INTO of SQLite.
        if self.dialect == DialectName::Sqlite || at == 0 {
            return false;
        }
        self.is_procedural || self.is_mysql()
    }

    fn skip_into(&mut self) {
        let words = self.words;
        let mut at = self.at + 1;
        if words.is_one_of(at, &["OUTFILE", "DUMPFILE"]) {
            let goes_on = ["FROM", "FOR", "WHERE", "ORDER", "LIMIT"];
            self.at = words
                .find_from(at, |w, i| w.is_one_of(i, &goes_on) || w.is_token(i, &Token::RParen));
            return;
        }
        if words.is_word(at, "STRICT") {
            at += 1;
        }
        loop {
            let Some(name) =
                self.tokens.get(at).and_then(|token| name_of(&token.token, self.dialect))
            else {
                // `:host_variable` and other targets.
                at += 1;
                break;
            };
            self.done.targets.push(name.to_lowercase());
            at += 1;
            while words.is_token(at, &Token::Period) || words.is_token(at, &Token::LBracket) {
                at = if words.is_token(at, &Token::Period) {
                    at + 2
                } else {
                    words.find_from(at + 1, |w, i| w.is_token(i, &Token::RBracket)) + 1
                };
            }
            if !words.is_token(at, &Token::Comma) {
                break;
            }
            at += 1;
        }
        self.at = at;
    }

    /// `ON CONFLICT (lower(a)) WHERE p DO`: keeps a list of columns, drops expressions and the predicate.
    fn conflict_target(&mut self) -> bool {
        let (words, at) = (self.words, self.at);
        self.copy_token();
        self.copy_token();
        if words.is_token(at + 2, &Token::LParen) {
            let close = words.after_brackets(at + 2);
            let is_plain = (at + 3..close.saturating_sub(1)).all(|i| {
                matches!(self.tokens[i].token, Token::Word(_) | Token::Comma)
                    && !words.is_word(i, "COLLATE")
            });
            if is_plain {
                while self.at < close {
                    self.copy_token();
                }
            }
            self.at = close;
        }
        if words.is_word(self.at, "WHERE") {
            self.at = words.find_from(self.at, |w, i| w.is_word(i, "DO"));
        }
        true
    }
}
