//! Reads a serial master procedure: its steps in execution order, and the values of its variables at each step.
//!
//! It scans the tokens once, with a stack of open blocks. A step in IF, CASE, a loop or a block with a handler may run
//! never, once or often: such steps are marked, and a variable assigned there is unknown afterwards.

use crate::domain::source::DialectName;
use crate::lineage::catalogue::{Catalogue, CatalogueRoutine};
use crate::lineage::create::byte_of;
use crate::lineage::fallback::read_name;
use crate::lineage::master_plan::{
    Barrier, GateReason, MasterArgument, MasterHabit, MasterPlan, MasterStep, StepAction, param_at,
};
use crate::lineage::master_value::{MasterValue, MasterVariables, read_value};
use crate::lineage::words::{TokenSlice, name_of, tokenize};
use sqlparser::tokenizer::{Token, TokenWithSpan};
use std::collections::BTreeSet;

/// Maximum length of an excerpt of the master's text in a message, in characters.
const EXCERPT_MAX: usize = 100;

/// Reads the body of a master; on failure, returns the reason as a sentence.
pub(super) fn read_master(
    master: &CatalogueRoutine,
    text: &str,
    catalogue: &Catalogue,
) -> Result<MasterPlan, String> {
    let tokens = tokenize(text, catalogue.dialect, 1)
        .map_err(|none| format!("line {}: {}", none.line, none.why))?;
    let path = master.search_path.clone().unwrap_or_else(|| catalogue.search_path.clone());
    // The first pass collects all assigned variables: within a loop, a later iteration may have assigned them.
    let mut assigned = BTreeSet::new();
    for _ in 0..2 {
        let variables = MasterVariables::new(&master.params, std::mem::take(&mut assigned));
        let mut reader = MasterReader {
            text,
            all: &tokens,
            words: TokenSlice(&tokens),
            at: 0,
            catalogue,
            path: &path,
            frames: Vec::new(),
            handler_end: None,
            variables,
            plan: MasterPlan::default(),
        };
        reader.read_statements();
        assigned = reader.variables.assigned().clone();
        if reader.variables.knows_assigned() || assigned.is_empty() {
            return Ok(reader.plan);
        }
    }
    Err("its variables cannot be followed".to_owned())
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FrameKind {
    Condition,
    Loop,
    Block,
}

/// An open block.
struct Frame {
    kind: FrameKind,
    line: u32,
    text: String,
    /// Number of steps before it.
    first_step: usize,
    /// Variables assigned in it.
    assigned: BTreeSet<String>,
    has_handler: bool,
    is_handler: bool,
}

/// Scans a body token by token.
pub(super) struct MasterReader<'t> {
    pub(super) text: &'t str,
    all: &'t [TokenWithSpan],
    pub(super) words: TokenSlice<'t>,
    pub(super) at: usize,
    pub(super) catalogue: &'t Catalogue,
    path: &'t [String],
    frames: Vec<Frame>,
    /// End of a handler that is a single statement.
    handler_end: Option<usize>,
    pub(super) variables: MasterVariables,
    plan: MasterPlan,
}

impl MasterReader<'_> {
    fn read_statements(&mut self) {
        while self.at < self.all.len() {
            let before = self.at;
            self.read_step();
            self.at = self.at.max(before + 1);
        }
    }

    fn dialect(&self) -> DialectName {
        self.catalogue.dialect
    }

    fn read_step(&mut self) {
        let (words, at) = (self.words, self.at);
        if words.is_token(at, &Token::SemiColon) {
            self.at += 1;
        } else if words.is_token(at, &Token::Sharp) {
            self.at += 3;
        } else if words.is_token(at, &Token::ShiftLeft) {
            self.at = words.find_from(at, |w, i| w.is_token(i, &Token::ShiftRight)) + 1;
        } else if words.is_token(at + 1, &Token::Colon) && words.word_at(at).is_some() {
            self.at += 2;
        } else {
            let word = words.word_at(at).unwrap_or_default().to_ascii_uppercase();
            if !self.frame(&word) && !self.assignment(&word) && !self.control(&word) {
                self.action(&word);
            }
        }
    }

    // --- Blocks ----------------------------------------------------------------------------------

    fn push_frame(&mut self, kind: FrameKind, text: String) {
        self.frames.push(Frame {
            kind,
            line: self.words.line_at(self.at),
            text,
            first_step: self.plan.steps.len(),
            assigned: BTreeSet::new(),
            has_handler: false,
            is_handler: false,
        });
    }

    /// Handles keywords that open, divide or close a block; returns whether it was one.
    fn frame(&mut self, word: &str) -> bool {
        let (words, at) = (self.words, self.at);
        let is_call = words.is_token(at + 1, &Token::LParen);
        match word {
            "BEGIN" => {
                self.push_frame(FrameKind::Block, String::new());
                self.at += 1;
                while words.is_one_of(self.at, &["NOT", "ATOMIC"]) {
                    self.at += 1;
                }
            }
            "END" => self.close(),
            "IF" => {
                let then = words.find_from(at + 1, |w, i| w.is_word(i, "THEN"));
                let text = self.excerpt(at, then);
                self.push_frame(FrameKind::Condition, text);
                self.at = then + 1;
            }
            "ELSEIF" | "ELSIF" => {
                let then = words.find_from(at + 1, |w, i| w.is_word(i, "THEN"));
                self.divide();
                self.at = then + 1;
            }
            "ELSE" => {
                self.divide();
                self.at += 1;
            }
            "CASE" => {
                let when = words.find_from(at + 1, |w, i| w.is_word(i, "WHEN"));
                let text = self.excerpt(at, when);
                self.push_frame(FrameKind::Condition, text);
                self.at = when;
            }
            "WHEN" => {
                self.divide();
                self.at = words.find_from(at + 1, |w, i| w.is_word(i, "THEN")) + 1;
            }
            "EXCEPTION" => {
                self.open_exception();
            }
            "LOOP" | "REPEAT" if !is_call => {
                self.push_frame(FrameKind::Loop, word.to_owned());
                self.at += 1;
            }
            "WHILE" | "FOR" | "FOREACH" => {
                let within = words.find_from(at + 1, |w, i| w.is_word(i, "IN"));
                let end = words.find_from(at + 1, |w, i| w.is_one_of(i, &["DO", "LOOP"]));
                let text = self.excerpt(at, end);
                self.push_frame(FrameKind::Loop, text);
                if word != "WHILE" {
                    self.forget_names(at + 1, within.min(end));
                }
                self.at = end + 1;
            }
            "UNTIL" => self.at = words.find_from(at + 1, |w, i| w.is_word(i, "END")),
            _ => return false,
        }
        true
    }

    /// Starts the next branch: variables assigned in the previous one are unknown in it.
    fn divide(&mut self) {
        let Some(frame) = self.frames.last() else { return };
        let (line, assigned) = (frame.line, frame.assigned.clone());
        self.variables.forget(&assigned, line);
    }

    fn close(&mut self) {
        let end = self.words.find_end(self.at);
        self.at = end + 1;
        let Some(frame) = self.frames.pop() else { return };
        let is_body = self.frames.is_empty();
        let barrier = match frame.kind {
            FrameKind::Condition => {
                Some(Barrier::Condition { text: frame.text.clone(), line: frame.line })
            }
            FrameKind::Loop => Some(Barrier::Loop { text: frame.text.clone(), line: frame.line }),
            FrameKind::Block if frame.has_handler && !is_body => {
                Some(Barrier::Handler { line: frame.line })
            }
            FrameKind::Block => None,
        };
        let Some(barrier) = barrier else { return };
        self.variables.forget(&frame.assigned, frame.line);
        for step in &mut self.plan.steps[frame.first_step..] {
            step.barriers.push(barrier.clone());
        }
    }

    pub(super) fn is_in(&self, kind: FrameKind) -> bool {
        self.frames.iter().any(|frame| frame.kind == kind)
    }

    fn is_in_handler(&self) -> bool {
        self.frames.iter().any(|frame| frame.is_handler)
            || self.handler_end.is_some_and(|end| self.at <= end)
    }

    /// `EXCEPTION WHEN … THEN`: the rest of the block runs after a failure.
    fn open_exception(&mut self) {
        let line = self.words.line_at(self.at);
        if let Some(frame) = self.frames.last_mut() {
            frame.has_handler = true;
            frame.is_handler = true;
        }
        self.plan.habits.push(MasterHabit::Handler { line, calls: Vec::new() });
        self.at += 1;
    }

    // --- Variables ---------------------------------------------------------------------------------

    fn name(&self, at: usize) -> Option<String> {
        name_of(&self.all.get(at)?.token, self.dialect()).map(|name| name.to_lowercase())
    }

    fn assign(&mut self, name: &str, value: MasterValue) {
        for frame in &mut self.frames {
            frame.assigned.insert(name.to_owned());
        }
        if self.is_in_handler() {
            self.variables.set_volatile(name);
        } else {
            self.variables.set_value(name, value);
        }
    }

    fn forget_names(&mut self, from: usize, to: usize) {
        for at in from..to {
            if let Some(name) = self.name(at) {
                let value = self.unknown(from, to);
                self.assign(&name, value);
            }
        }
    }

    fn unknown(&self, from: usize, to: usize) -> MasterValue {
        MasterValue::Unknown { text: self.excerpt(from, to), line: self.words.line_at(from) }
    }

    /// The value of an expression at this place.
    pub(super) fn value(&self, from: usize, to: usize) -> MasterValue {
        let tokens = &self.all[from.min(to)..to];
        let known = read_value(tokens, self.dialect(), |name| {
            self.variables.value(name, self.is_in(FrameKind::Loop))
        });
        known.unwrap_or_else(|| self.unknown(from, to))
    }

    /// Handles SET, DECLARE, `:=`, FETCH and other assignments; returns whether it was one.
    fn assignment(&mut self, word: &str) -> bool {
        let (words, at) = (self.words, self.at);
        let end = words.find_end(at);
        let is_postgres = self.dialect() == DialectName::Postgres;
        match word {
            "DECLARE" if is_postgres => self.declare_section(),
            "DECLARE" => self.declare(at + 1, end),
            "SET" if !is_postgres => self.read_set(end),
            "FETCH" => {
                self.fill_targets(at, end);
                self.at = end + 1;
            }
            "GET" => {
                self.forget_names(at + 1, end);
                self.at = end + 1;
            }
            _ if is_postgres && words.word_at(at).is_some() => {
                let sign = at + 1;
                let is_sign =
                    words.is_token(sign, &Token::Assignment) || words.is_token(sign, &Token::Eq);
                let is_part =
                    words.is_token(sign, &Token::LBracket) || words.is_token(sign, &Token::Period);
                let has_sign =
                    is_part && (at..end).any(|place| words.is_token(place, &Token::Assignment));
                let Some(name) = self.name(at).filter(|_| is_sign || has_sign) else {
                    return false;
                };
                let value = match is_sign {
                    true => self.value(sign + 1, end),
                    false => self.unknown(at, end),
                };
                self.assign(&name, value);
                self.at = end + 1;
            }
            _ => return false,
        }
        true
    }

    fn declare_section(&mut self) {
        self.at += 1;
        while self.at < self.all.len() && !self.words.is_word(self.at, "BEGIN") {
            let end = self.words.find_end(self.at);
            self.declared(self.at, end);
            self.at = end + 1;
            if self.words.is_word(self.at, "DECLARE") {
                self.at += 1;
            }
        }
    }

    /// A MySQL declaration: variables, a cursor, a condition or a handler.
    fn declare(&mut self, from: usize, end: usize) {
        let words = self.words;
        if !words.is_word(from + 1, "HANDLER") {
            self.declared(from, end);
            self.at = end + 1;
            return;
        }
        let body = words.find_from(from, |w, i| {
            w.is_one_of(i, &["BEGIN", "SET", "CALL", "ROLLBACK", "RESIGNAL", "INSERT", "UPDATE"])
                || w.is_one_of(i, &["SELECT", "SIGNAL", "IF", "DELETE", "LEAVE", "REPLACE"])
        });
        let only_not_found = words.is_word(from + 3, "NOT")
            && !(from + 3..body).any(|i| words.is_token(i, &Token::Comma));
        if let Some(frame) = self.frames.last_mut() {
            frame.has_handler |= !only_not_found;
        }
        if !only_not_found {
            let line = words.line_at(from);
            self.plan.habits.push(MasterHabit::Handler { line, calls: Vec::new() });
        }
        self.at = body;
        if words.is_word(body, "BEGIN") {
            self.push_frame(FrameKind::Block, String::new());
            if let Some(frame) = self.frames.last_mut() {
                frame.is_handler = true;
            }
            self.at += 1;
        } else {
            self.handler_end = Some(words.find_end(body));
        }
    }

    /// `a, b type DEFAULT e`
    fn declared(&mut self, from: usize, end: usize) {
        let words = self.words;
        let is_other =
            |w: TokenSlice<'_>, i: usize| i >= end || w.is_one_of(i, &["CURSOR", "CONDITION"]);
        if words.find_from(from, is_other) < end {
            return;
        }
        let start = words.find_from(from, |w, i| {
            i >= end
                || w.is_word(i, "DEFAULT")
                || w.is_token(i, &Token::Assignment)
                || w.is_token(i, &Token::Eq)
        });
        let value = match start < end {
            true => self.value(start + 1, end),
            false => MasterValue::Null,
        };
        let mut names = Vec::new();
        let mut at = from;
        while let Some(name) = self.name(at) {
            names.push(name);
            at += 1;
            if !words.is_token(at, &Token::Comma) {
                break;
            }
            at += 1;
        }
        let is_constant = usize::from(words.is_word(at, "CONSTANT"));
        let type_name = self.slice((at + is_constant).min(start), start.min(end)).to_owned();
        for name in names {
            self.variables.declare(&name, &type_name, value.clone());
        }
    }

    fn read_set(&mut self, end: usize) {
        let (words, mut from) = (self.words, self.at + 1);
        let plain = ["TRANSACTION", "NAMES", "CHARSET", "CHARACTER", "ROLE", "STATEMENT"];
        if words.is_one_of(from, &["AUTOCOMMIT"]) {
            let line = words.line_at(from);
            self.plan.habits.push(MasterHabit::Transaction { line });
        }
        while from < end && !words.is_one_of(from, &plain) {
            let to =
                words.find_from(from, |w, i| i >= end || w.is_token(i, &Token::Comma)).min(end);
            let sign = from + 1;
            let is_sign =
                words.is_token(sign, &Token::Eq) || words.is_token(sign, &Token::Assignment);
            if let Some(name) = self.name(from).filter(|_| is_sign) {
                let value = self.value((sign + 1).min(to), to);
                self.assign(&name, value);
            }
            from = to + 1;
        }
        self.at = end + 1;
    }

    /// The variables after INTO.
    pub(super) fn fill_targets(&mut self, from: usize, end: usize) {
        let mut at = self.words.find_from(from, |w, i| i >= end || w.is_word(i, "INTO")) + 1;
        while at < end {
            if self.words.is_word(at, "STRICT") {
                at += 1;
            }
            if let Some(name) = self.name(at) {
                let value = self.unknown(from, end);
                self.assign(&name, value);
            }
            if !self.words.is_token(at + 1, &Token::Comma) {
                break;
            }
            at += 2;
        }
    }

    // --- Steps -------------------------------------------------------------------------------------

    /// Handles keywords that end the master, a transaction or a statement without accessing tables; returns whether it
    /// was one.
    fn control(&mut self, word: &str) -> bool {
        let (words, at) = (self.words, self.at);
        let end = words.find_end(at);
        match word {
            "NULL" | "OPEN" | "CLOSE" | "MOVE" | "DEALLOCATE" => {}
            "COMMIT" | "ROLLBACK" | "SAVEPOINT" | "RELEASE" | "START" => {
                let is_known =
                    |habit: &MasterHabit| matches!(habit, MasterHabit::Transaction { .. });
                if !self.is_in_handler() && !self.plan.habits.iter().any(is_known) {
                    let line = words.line_at(at);
                    self.plan.habits.push(MasterHabit::Transaction { line });
                }
            }
            "RAISE" => {
                let quiet = ["DEBUG", "LOG", "INFO", "NOTICE", "WARNING"];
                if !words.is_one_of(at + 1, &quiet) {
                    self.add_gate(GateReason::Abort, end);
                }
            }
            "SIGNAL" | "RESIGNAL" | "ASSERT" => self.add_gate(GateReason::Abort, end),
            "RETURN" | "LEAVE" | "ITERATE" | "EXIT" | "CONTINUE" => {
                // In a loop it ends the loop, and the last word of a body ends nothing early.
                let ends_loop = word != "RETURN" && self.is_in(FrameKind::Loop);
                if !ends_loop && self.is_in(FrameKind::Condition) {
                    self.add_gate(GateReason::EarlyEnd, end);
                }
            }
            "EXECUTE" | "PREPARE" => {
                if word == "EXECUTE" {
                    self.add_gate(GateReason::Dynamic, end);
                }
                self.fill_targets(at, end);
            }
            _ => return false,
        }
        self.at = end + 1;
        true
    }

    fn add_gate(&mut self, reason: GateReason, end: usize) {
        let (line, text) = (self.words.line_at(self.at), self.excerpt(self.at, end));
        self.add_step(line, StepAction::Gate { reason, text });
    }

    pub(super) fn add_step(&mut self, line: u32, action: StepAction) {
        if !self.is_in_handler() {
            self.plan.steps.push(MasterStep { line, action, barriers: Vec::new() });
        }
    }

    /// Handles a call or a statement.
    fn action(&mut self, word: &str) {
        let (at, end) = (self.at, self.words.find_end(self.at));
        if !matches!(word, "CALL" | "PERFORM") || !self.call(end) {
            self.statement(end);
        }
        // Variables set by a handler's statement are processed where they are assigned.
        self.at = end.max(at) + 1;
    }

    /// Handles `CALL p(a, b)` and `PERFORM f(a)`; returns false if it is more than a call.
    fn call(&mut self, end: usize) -> bool {
        let (words, at) = (self.words, self.at);
        let Some((routine, next)) = read_name(self.all, at + 1, self.dialect()) else {
            return false;
        };
        let has_arguments = words.is_token(next, &Token::LParen);
        let close = if has_arguments { words.after_brackets(next) } else { next };
        if close != end {
            return false;
        }
        if self.is_in_handler() {
            if let Some(MasterHabit::Handler { calls, .. }) = self.plan.habits.last_mut() {
                calls.push(routine.to_string());
            }
            return true;
        }
        let (mut arguments, mut places) = (Vec::new(), Vec::new());
        let mut from = next + 1;
        while from + 1 < close {
            let to = words.find_from(from, |w, i| i + 1 >= close || w.is_token(i, &Token::Comma));
            let to = to.min(close - 1);
            let is_named = words.is_token(from + 1, &Token::RArrow)
                || words.is_token(from + 1, &Token::Assignment);
            let name = self.name(from).filter(|_| is_named);
            let start = if is_named { from + 2 } else { from };
            arguments.push(MasterArgument { name, value: self.value(start, to) });
            places.push(self.name(start).filter(|_| start + 1 == to));
            from = to + 1;
        }
        let found = self.catalogue.resolve_routine(&routine, arguments.len(), self.path);
        let params = found.first().map(|one| one.params.clone());
        let line = words.line_at(at);
        let step = self.plan.steps.len();
        let names: Vec<Option<String>> = arguments.iter().map(|one| one.name.clone()).collect();
        let routine = found.first().map_or(routine, |one| one.name.clone());
        self.add_step(line, StepAction::Call { routine, arguments });
        for (place, variable) in places.into_iter().enumerate() {
            let Some(variable) = variable.filter(|name| self.variables.is_variable(name)) else {
                continue;
            };
            let param = params.as_ref().map(|all| param_at(all, place, names[place].as_deref()));
            match param {
                // An unknown routine may set any of them.
                None => self.assign(&variable, MasterValue::Output { step, param: None }),
                Some(Some(param)) if param.is_output => {
                    let param = param.name.clone();
                    self.assign(&variable, MasterValue::Output { step, param });
                }
                Some(_) => {}
            }
        }
        true
    }

    // --- Texts -------------------------------------------------------------------------------------

    pub(super) fn byte_at(&self, at: usize) -> usize {
        let place = self.all.get(at).and_then(|one| byte_of(self.text, one.span.start));
        place.unwrap_or(self.text.len())
    }

    /// The byte offset where the text before a token ends.
    pub(super) fn end_byte(&self, to: usize) -> usize {
        let end = self.text[..self.byte_at(to)].trim_end().len();
        end.max(self.byte_at(to.saturating_sub(1)))
    }

    pub(super) fn slice(&self, from: usize, to: usize) -> &str {
        self.text.get(self.byte_at(from)..self.end_byte(to)).unwrap_or_default()
    }

    /// An excerpt of the text on one line.
    pub(super) fn excerpt(&self, from: usize, to: usize) -> String {
        let line = self.slice(from, to).split_whitespace().collect::<Vec<_>>().join(" ");
        match line.char_indices().nth(EXCERPT_MAX) {
            Some((end, _)) => format!("{} …", &line[..end]),
            None => line,
        }
    }
}
