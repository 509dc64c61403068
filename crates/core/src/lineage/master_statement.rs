//! Converts statements of the master procedure itself to jobs of type SQL where that is equivalent.

use crate::lineage::access::ObjectName;
use crate::lineage::closure::{JobRoot, trace_job};
use crate::lineage::master_calls::{FrameKind, MasterReader};
use crate::lineage::master_plan::{GateReason, StatementValue, StepAction};
use crate::lineage::slice::Binding;
use sqlparser::tokenizer::Token;

impl MasterReader<'_> {
    /// Processes a statement of the master itself. A statement that only reads is no step: the variables that it sets
    /// are resolved where they are used.
    pub(super) fn statement(&mut self, end: usize) {
        let (at, line) = (self.at, self.words.line_at(self.at));
        let text = self.slice(at, end).to_owned();
        let root = JobRoot::Statements {
            text: text.clone(),
            label: "master".to_owned(),
            params: Binding::new(),
        };
        let reading = trace_job(&[root], self.catalogue, "");
        let changes = reading.accesses.iter().any(|one| one.access.mode.is_write());
        let is_step = changes || !reading.is_whole() || self.words.is_word(at, "CREATE");
        if is_step {
            let tables: Vec<&ObjectName> =
                reading.accesses.iter().map(|one| &one.access.table).collect();
            let action = match self.take_over(end, &tables) {
                Ok((text, values)) if changes && reading.is_whole() => {
                    StepAction::Statement { text, values }
                }
                Ok(_) => {
                    let why = "what it does is not wholly known".to_owned();
                    let text = self.excerpt(at, end);
                    StepAction::Gate { reason: GateReason::Statement { why }, text }
                }
                Err(why) => {
                    let text = self.excerpt(at, end);
                    StepAction::Gate { reason: GateReason::Statement { why }, text }
                }
            };
            self.add_step(line, action);
        }
        if !self.words.is_one_of(at, &["INSERT", "REPLACE"])
            || (at..end).any(|place| self.words.is_word(place, "RETURNING"))
        {
            let from =
                (at..end).find(|place| self.words.is_word(*place, "RETURNING")).unwrap_or(at);
            self.fill_targets(from, end);
        }
    }

    /// The statement with `:name` in place of each variable, and the values of these variables; or why it cannot be
    /// converted.
    fn take_over(
        &self,
        end: usize,
        tables: &[&ObjectName],
    ) -> Result<(String, Vec<StatementValue>), String> {
        let words = self.words;
        if self.is_in(FrameKind::Loop) {
            return Err("it stands in a loop".to_owned());
        }
        if (self.at..end).any(|at| words.is_one_of(at, &["TEMPORARY", "TEMP"])) {
            return Err("a temporary table lives in one session alone".to_owned());
        }
        let is_insert = words.is_one_of(self.at, &["INSERT", "REPLACE", "MERGE"]);
        let into = (self.at..end).filter(|at| words.is_word(*at, "INTO")).count();
        if into > usize::from(is_insert) {
            return Err("it fills variables".to_owned());
        }
        let (mut text, mut values) = (String::new(), Vec::<StatementValue>::new());
        let mut copied = self.byte_at(self.at);
        for at in self.at..end {
            let Some(name) = words.word_at(at).map(str::to_lowercase) else { continue };
            if name.starts_with('@') {
                return Err(format!("{name} lives in one session alone"));
            }
            let is_part = at > 0 && words.is_token(at - 1, &Token::Period)
                || words.is_token(at + 1, &Token::Period)
                || words.is_token(at + 1, &Token::LParen);
            if is_part || !self.variables.is_variable(&name) {
                continue;
            }
            let has_column = |table: &&ObjectName| {
                self.catalogue.columns_of(table).is_none_or(|columns| columns.contains(&name))
            };
            if tables.iter().any(has_column) {
                return Err(format!("{name} may be a variable or a column"));
            }
            let start = self.byte_at(at);
            text.push_str(&self.text[copied..start]);
            text.push(':');
            text.push_str(&name);
            copied = start + words.word_at(at).map_or(0, str::len);
            if values.iter().all(|known| known.name != name) {
                let type_name = self.variables.type_name(&name).to_owned();
                values.push(StatementValue { name, type_name, value: self.value(at, at + 1) });
            }
        }
        text.push_str(&self.text[copied..self.end_byte(end)]);
        Ok((text, values))
    }
}
