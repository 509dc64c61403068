//! Decides whether a routine uses the input value of an INOUT parameter.
//!
//! PostgreSQL had no OUT parameters of procedures before version 14, so INOUT is often written for
//! a value that is only returned. Treating that as an input would order jobs by values that no job
//! reads.

use crate::domain::source::DialectName;
use crate::lineage::catalogue::{BodyText, CatalogueRoutine, RoutineLanguage};
use crate::lineage::words::{TokenSlice, name_of, tokenize};
use sqlparser::tokenizer::{Token, TokenWithSpan};

/// Whether the body sets a parameter before it reads it, on every path. `false` if that is uncertain.
pub(super) fn is_only_handed_back(
    routine: &CatalogueRoutine,
    name: &str,
    dialect: DialectName,
) -> bool {
    let (RoutineLanguage::Procedural, BodyText::Text(text)) = (&routine.language, &routine.body)
    else {
        return false;
    };
    let Ok(tokens) = tokenize(text, dialect, 1) else { return false };
    let name = name.to_lowercase();
    let body = ParamBody { words: TokenSlice(&tokens), all: &tokens, name: &name, dialect };
    body.fills_first()
}

struct ParamBody<'t> {
    words: TokenSlice<'t>,
    all: &'t [TokenWithSpan],
    name: &'t str,
    dialect: DialectName,
}

impl ParamBody<'_> {
    fn is_mention(&self, at: usize) -> bool {
        let found = self.all.get(at).and_then(|one| name_of(&one.token, self.dialect));
        found.is_some_and(|found| found.to_lowercase() == self.name)
    }

    fn mentions(&self, from: usize, to: usize) -> usize {
        (from..to).filter(|at| self.is_mention(*at)).count()
    }

    fn fills_first(&self) -> bool {
        // $1 and aliases also refer to it.
        let has_other_name = |at: usize| {
            matches!(self.all[at].token, Token::Placeholder(_)) || self.words.is_word(at, "ALIAS")
        };
        if (0..self.all.len()).any(has_other_name) {
            return false;
        }
        let Some(first) = (0..self.all.len()).find(|at| self.is_mention(*at)) else {
            return false;
        };
        if !self.is_always_reached(first) {
            return false;
        }
        let start = (0..first)
            .rev()
            .find(|at| {
                self.words.is_token(*at, &Token::SemiColon) || self.words.is_one_of(*at, &["BEGIN"])
            })
            .map_or(0, |at| at + 1);
        let end = self.words.find_end(first);
        self.is_target(start, first, end) && self.mentions(start, end) == 1
    }

    /// Whether no branch, loop or early exit precedes an index.
    fn is_always_reached(&self, place: usize) -> bool {
        let words = self.words;
        let mut open: Vec<bool> = Vec::new();
        let mut at = 0;
        while at < place {
            let starts = at == 0
                || words.is_token(at - 1, &Token::SemiColon)
                || words.is_one_of(at - 1, &["BEGIN", "THEN", "ELSE", "LOOP", "DO", "REPEAT"]);
            if words.is_word(at, "END") {
                open.pop();
                if words.is_one_of(at + 1, &["IF", "CASE", "LOOP", "WHILE", "REPEAT"]) {
                    at += 1;
                }
            } else if words.is_word(at, "BEGIN") {
                open.push(false);
            } else if words.is_one_of(at, &["CASE", "LOOP"])
                || starts && words.is_one_of(at, &["IF", "REPEAT"])
                || starts && words.is_word(at, "WHILE") && self.dialect == DialectName::Mysql
            {
                open.push(true);
            } else if words.is_one_of(at, &["RETURN", "LEAVE", "HANDLER", "EXCEPTION"])
                && !words.is_word(at.wrapping_sub(1), "RAISE")
            {
                return false;
            }
            at += 1;
        }
        !open.contains(&true)
    }

    /// Whether the index within a statement is an assignment target.
    fn is_target(&self, start: usize, place: usize, end: usize) -> bool {
        let words = self.words;
        let is_sign =
            words.is_token(place + 1, &Token::Assignment) || words.is_token(place + 1, &Token::Eq);
        if place == start {
            return self.dialect == DialectName::Postgres && is_sign;
        }
        if words.is_one_of(start, &["SET", "GET"]) {
            return is_sign;
        }
        let into = words.find_from(start, |w, i| i >= end || w.is_word(i, "INTO"));
        // INSERT INTO t … is not a target; its RETURNING … INTO is not examined.
        if into >= place || !words.is_one_of(start, &["SELECT", "WITH", "EXECUTE"]) {
            return false;
        }
        let is_of_list =
            |at: usize| words.word_at(at).is_some() || words.is_token(at, &Token::Comma);
        (into + 1..place).all(is_of_list)
            && !(into + 1..place).any(|at| words.is_one_of(at, &["FROM", "WHERE"]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lineage::create::parse_routine;

    fn is_handed_back(body: &str) -> bool {
        let text =
            format!("CREATE PROCEDURE p(INOUT p_rows bigint) LANGUAGE plpgsql AS $x$ {body} $x$");
        let made = parse_routine(&text, DialectName::Postgres).expect("a procedure").routine;
        is_only_handed_back(&made, "p_rows", DialectName::Postgres)
    }

    #[test]
    fn what_is_filled_first_is_only_handed_back() {
        for body in [
            "BEGIN DELETE FROM t; GET DIAGNOSTICS p_rows = ROW_COUNT; END",
            "BEGIN p_rows := 0; FOR r IN SELECT 1 LOOP p_rows := p_rows + 1; END LOOP; END",
            "DECLARE n int; BEGIN SELECT a, b INTO n, p_rows FROM t; IF n > 0 THEN p_rows := 1; END IF; END",
            "BEGIN IF true THEN PERFORM f(); END IF; SELECT count(*) INTO STRICT p_rows FROM t; END",
        ] {
            assert!(is_handed_back(body), "{body}");
        }
    }

    #[test]
    fn what_is_read_or_may_stay_as_it_is_is_an_input() {
        for body in [
            "BEGIN p_rows := p_rows + 1; END",
            "BEGIN IF a THEN p_rows := 1; END IF; END",
            "BEGIN SELECT a INTO p_rows FROM t WHERE b = p_rows; END",
            "BEGIN IF a THEN RETURN; END IF; p_rows := 1; END",
            "BEGIN FOR r IN SELECT 1 LOOP p_rows := 1; END LOOP; END",
            "BEGIN INSERT INTO t VALUES (p_rows); p_rows := 1; END",
            "BEGIN PERFORM f($1); p_rows := 1; END",
            "BEGIN CALL q(p_rows); END",
            "BEGIN NULL; END",
        ] {
            assert!(!is_handed_back(body), "{body}");
        }
    }
}
