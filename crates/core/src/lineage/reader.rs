//! Analyses a body: first its pieces in order, then its variables, so that the result refers to parameters only.

use crate::domain::source::DialectName;
use crate::lineage::access::{
    Access, AccessMode, Argument, BodyFacts, CatalogueParam, ColumnSet, DynamicStatement,
    RoutineCall, UnreadablePlace,
};
use crate::lineage::catalogue::Catalogue;
use crate::lineage::fallback::{WordFacts, read_by_words, read_definition, read_name};
use crate::lineage::flow::{ValueFlow, solve, values_of};
use crate::lineage::guess::guess_from_literals;
use crate::lineage::nesting::is_shallow;
use crate::lineage::rewrite::rewrite;
use crate::lineage::scope::{
    ScopeResult, StatementContext, StatementReader, TableNode, UnsupportedSyntax,
};
use crate::lineage::slice::{Binding, Slice, SliceValue, ValueSet, bind_values};
use crate::lineage::split::{BodyPiece, split_body};
use crate::lineage::words::{TokenSlice, name_of, parser_dialect, tokenize};
use sqlparser::keywords::Keyword;
use sqlparser::parser::Parser;
use sqlparser::tokenizer::{Token, TokenWithSpan, Word};
use std::collections::{BTreeMap, BTreeSet};

/// Maximum length of a statement for the parser, in tokens; longer ones are scanned for keywords.
const STATEMENT_MAX: usize = 40_000;
/// Maximum nesting of bodies (`DO $$ … $$`).
const BODIES_MAX: usize = 2;
/// Maximum number of rounds in which variables are resolved.
const ROUNDS_MAX: usize = 8;

/// How a text is analysed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyKind {
    /// The body of a procedure, with variables.
    Procedural,
    /// Plain statements.
    Sql,
}

/// A text to analyse.
#[derive(Clone, Copy, Debug)]
pub struct SourceText<'t> {
    /// The text of the body only.
    pub text: &'t str,
    /// The line number of its first line, counted from 1.
    pub first_line: u32,
    /// How it is analysed.
    pub kind: BodyKind,
    /// Parameters of the routine.
    pub params: &'t [CatalogueParam],
    /// The search path for unqualified names.
    pub path: &'t [String],
}

/// Analyses a body. The more columns and parameters the catalogue knows, the narrower the slices. It never fails:
/// places that cannot be parsed are part of the result.
pub fn read_body(body: &SourceText<'_>, catalogue: &Catalogue) -> BodyFacts {
    let mut reader = BodyReader {
        body,
        catalogue,
        dialect: catalogue.dialect,
        variables: BTreeSet::new(),
        assigned: BTreeMap::new(),
        facts: BodyFacts::default(),
    };
    reader.read_source(body.text, body.first_line, 0);
    let bindings = reader.solve_variables();
    bind_facts(&mut reader.facts, &bindings);
    reader.facts
}

struct BodyReader<'b> {
    body: &'b SourceText<'b>,
    catalogue: &'b Catalogue,
    dialect: DialectName,
    variables: BTreeSet<String>,
    /// The values assigned to each variable; `None` means any value.
    assigned: BTreeMap<String, Vec<Option<ValueSet>>>,
    facts: BodyFacts,
}

impl BodyReader<'_> {
    fn read_source(&mut self, text: &str, first_line: u32, depth: usize) {
        let tokens = match tokenize(text, self.dialect, first_line) {
            Ok(tokens) => tokens,
            Err(none) => {
                self.facts.unreadable.push(UnreadablePlace { line: none.line, why: none.why });
                return;
            }
        };
        let pieces = split_body(&tokens, self.dialect);
        self.learn_variables(&pieces);
        for piece in pieces {
            match piece {
                BodyPiece::Statement(tokens) => self.read_statement(tokens, depth),
                BodyPiece::Expression { tokens, target } => self.read_expression(tokens, target),
                BodyPiece::Dynamic(words) => self.read_dynamic(words, &tokens),
                BodyPiece::Declared(_) => {}
                BodyPiece::Unknown(name) => self.assign(name, None),
            }
        }
    }

    fn learn_variables(&mut self, pieces: &[BodyPiece<'_>]) {
        // `#variable_conflict use_column`: an ambiguous name is the column's, so no name counts as a variable.
        if self.body.text.contains("use_column") {
            return;
        }
        let params = self.body.params.iter().filter_map(|param| param.name.as_deref());
        self.variables.extend(params.map(str::to_lowercase));
        for piece in pieces {
            let name = match piece {
                BodyPiece::Expression { target: Some(name), .. }
                | BodyPiece::Declared(name)
                | BodyPiece::Unknown(name) => name,
                BodyPiece::Statement(_)
                | BodyPiece::Expression { target: None, .. }
                | BodyPiece::Dynamic(_) => {
                    continue;
                }
            };
            if !name.starts_with('@') {
                self.variables.insert(name.clone());
            }
        }
    }

    fn assign(&mut self, name: String, values: Option<ValueSet>) {
        self.assigned.entry(name).or_default().push(values);
    }

    fn read_expression(&mut self, tokens: &[TokenWithSpan], target: Option<String>) {
        let Some(first) = tokens.first() else { return };
        let word = Word { value: "SELECT".to_owned(), quote_style: None, keyword: Keyword::SELECT };
        let mut statement = vec![TokenWithSpan { token: Token::Word(word), span: first.span }];
        statement.extend_from_slice(tokens);
        let flow = self.read_sql(&statement);
        if let Some(name) = target {
            self.assign(name, flow);
        }
    }

    fn read_statement(&mut self, tokens: &[TokenWithSpan], depth: usize) {
        let words = TokenSlice(tokens);
        let first = words.word_at(0).unwrap_or("(").to_ascii_uppercase();
        match first.as_str() {
            "SELECT" | "WITH" | "INSERT" | "UPDATE" | "DELETE" | "MERGE" | "REPLACE" | "VALUES"
            | "TABLE" | "PERFORM" | "(" => {
                self.read_sql(tokens);
            }
            "CALL" => {
                self.call_targets(tokens);
                self.read_sql(tokens);
            }
            "EXPLAIN" | "DESCRIBE" => {}
            "DO" => self.read_do(tokens, depth),
            "CREATE" if is_routine(words) => {}
            "TRUNCATE" | "DROP" | "CREATE" | "ALTER" | "RENAME" | "LOAD" | "COPY" | "REFRESH" => {
                let (found, query) = read_definition(tokens, self.dialect);
                self.add_words(found);
                if let Some(at) = query {
                    self.read_sql(&tokens[at..]);
                }
            }
            "SET" if (1..words.len()).any(|at| words.is_word(at, "SEARCH_PATH")) => {
                self.unreadable(
                    words.line_at(0),
                    "SET search_path changes where names are looked for",
                );
            }
            "USE" => self.unreadable(words.line_at(0), "USE changes where names are looked for"),
            "ANALYZE" | "VACUUM" | "OPTIMIZE" | "CHECK" | "REPAIR" | "CHECKSUM" | "GRANT"
            | "REVOKE" | "SHOW" | "FLUSH" | "KILL" | "NOTIFY" | "LISTEN" | "UNLISTEN"
            | "COMMENT" | "SET" | "RESET" | "PRAGMA" | "LOCK" | "DISCARD" | "DELIMITER"
            | "REINDEX" | "CLUSTER" | "CHECKPOINT" | "HANDLER" | "XA" | "PURGE" | "RESIGNAL"
            | "SIGNAL" | "ABORT" | "END" | "BINLOG" | "CACHE" | "DEALLOCATE" => {}
            "ATTACH" | "DETACH" => {
                self.unreadable(words.line_at(0), "ATTACH brings other databases")
            }
            _ => {
                let why = format!("a statement that begins with {first:?} is not known");
                self.unreadable(words.line_at(0), &why);
            }
        }
    }

    fn unreadable(&mut self, line: u32, why: &str) {
        self.facts.unreadable.push(UnreadablePlace { line, why: why.to_owned() });
    }

    /// `DO expression` of MySQL, and `DO $$ … $$` of PostgreSQL.
    fn read_do(&mut self, tokens: &[TokenWithSpan], depth: usize) {
        let body = tokens.iter().find_map(|one| match &one.token {
            Token::DollarQuotedString(text) => Some((text.value.clone(), one.span)),
            Token::SingleQuotedString(text) => Some((text.clone(), one.span)),
            _ => None,
        });
        let line = TokenSlice(tokens).line_at(0);
        match (self.dialect, body) {
            (DialectName::Postgres, Some((text, span))) if depth < BODIES_MAX => {
                let line = u32::try_from(span.start.line).unwrap_or(line);
                self.read_source(&text, line, depth + 1);
            }
            (DialectName::Postgres, _) => self.unreadable(line, "DO without a body that is read"),
            (DialectName::Mysql | DialectName::Sqlite, _) => {
                self.read_expression(tokens.get(1..).unwrap_or_default(), None);
            }
        }
    }

    /// Variables that a CALL sets: those passed as OUT parameters, or all if the routine is unknown.
    fn call_targets(&mut self, tokens: &[TokenWithSpan]) {
        let Some((routine, next)) = read_name(tokens, 1, self.dialect) else { return };
        let words = TokenSlice(tokens);
        if !words.is_token(next, &Token::LParen) {
            return;
        }
        let end = words.after_brackets(next).saturating_sub(1);
        let mut arguments = Vec::new();
        let mut from = next + 1;
        while from < end {
            let to =
                words.find_from(from, |w, i| i >= end || w.is_token(i, &Token::Comma)).min(end);
            let named = words.is_token(from + 1, &Token::RArrow);
            let value = if named { from + 2 } else { from };
            let is_name = value + 1 == to;
            let name = is_name.then(|| name_of(&tokens[value].token, self.dialect)).flatten();
            arguments.push((name, named));
            from = to + 1;
        }
        let outputs = self.catalogue.output_places(&routine, arguments.len(), self.body.path);
        for (at, (name, is_named)) in arguments.into_iter().enumerate() {
            let may_fill = is_named || outputs.as_ref().is_none_or(|places| places.contains(&at));
            if let (Some(name), true) = (name, may_fill) {
                self.assign(name.to_lowercase(), None);
            }
        }
    }

    /// Analyses a query or change; returns the possible values of the first column of its result.
    fn read_sql(&mut self, tokens: &[TokenWithSpan]) -> Option<ValueSet> {
        let is_procedural = self.body.kind == BodyKind::Procedural;
        let ready = rewrite(tokens, self.dialect, is_procedural);
        for name in ready.targets {
            self.assign(name, None);
        }
        match self.parse(&ready.tokens) {
            Ok(values) => values,
            Err(UnsupportedSyntax(why)) => {
                let line = TokenSlice(tokens).line_at(0);
                self.facts.read_by_words.push(UnreadablePlace { line, why });
                self.add_words(read_by_words(&ready.tokens, self.dialect));
                None
            }
        }
    }

    fn add_words(&mut self, found: WordFacts) {
        self.facts.accesses.extend(found.accesses);
        for call in found.calls {
            if crate::lineage::expression::runs_text(&call.routine.name) {
                self.facts.dynamic.push(DynamicStatement { line: call.line });
            }
            self.facts.calls.push(call);
        }
        self.facts.temporary.extend(found.temporary);
    }

    fn parse(&mut self, tokens: &[TokenWithSpan]) -> ScopeResult<Option<ValueSet>> {
        if tokens.len() > STATEMENT_MAX || !is_shallow(tokens) {
            return Err(UnsupportedSyntax("too long or too deep".to_owned()));
        }
        let mut parser =
            Parser::new(parser_dialect(self.dialect)).with_tokens_with_locations(tokens.to_vec());
        let refused = |error: sqlparser::parser::ParserError| UnsupportedSyntax(error.to_string());
        let statement = parser.parse_statement().map_err(refused)?;
        if parser.peek_token().token != Token::EOF {
            return Err(UnsupportedSyntax("words behind the statement".to_owned()));
        }
        // The reader borrows the variables while its findings are added here.
        let variables = std::mem::take(&mut self.variables);
        let context = StatementContext {
            dialect: self.dialect,
            variables: &variables,
            catalogue: self.catalogue,
            path: self.body.path,
        };
        let mut reader = StatementReader::new(context);
        let flow = match &statement {
            sqlparser::ast::Statement::Query(query) => reader.subquery(query),
            other => reader.statement(other).map(|()| ValueFlow::unknown()),
        };
        let values = flow.map(|flow| self.add_statement(reader, &flow));
        self.variables = variables;
        values
    }

    fn add_statement(&mut self, reader: StatementReader<'_>, flow: &ValueFlow) -> Option<ValueSet> {
        let solution = solve(&reader.constraints, &reader.uses);
        for (at, node) in reader.nodes.into_iter().enumerate() {
            let mut slice = Slice::default();
            for ((_, column), conditions) in solution.iter().filter(|((of, _), _)| *of == at) {
                for values in conditions {
                    slice.require(column, values.clone());
                }
            }
            let assigned: Vec<(String, Option<ValueSet>)> = node
                .assigned
                .iter()
                .map(|(column, flow)| (column.clone(), values_of(flow, &solution)))
                .collect();
            for (column, values) in assigned {
                widen(&mut slice, &column, values);
            }
            self.facts.accesses.push(access_of(node, slice));
        }
        for call in reader.calls {
            let argument = |(name, flow): &(Option<String>, ValueFlow)| Argument {
                name: name.clone(),
                values: values_of(flow, &solution),
            };
            self.facts.calls.push(RoutineCall {
                arguments: call.arguments.iter().map(argument).collect(),
                routine: call.routine,
                kind: call.kind,
                line: call.line,
            });
        }
        let dynamic = reader.dynamic.into_iter().map(|line| DynamicStatement { line });
        self.facts.dynamic.extend(dynamic);
        values_of(flow, &solution)
    }

    /// A dynamic statement, and the accesses that the literals of the body suggest.
    fn read_dynamic(&mut self, words: &[TokenWithSpan], body: &[TokenWithSpan]) {
        let line = TokenSlice(words).line_at(0);
        let is_first = self.facts.dynamic.is_empty();
        self.facts.dynamic.push(DynamicStatement { line });
        if is_first {
            self.facts.guesses = guess_from_literals(body, self.dialect);
        }
        // EXECUTE 'text' || (SELECT …) USING (SELECT …): the text's expression and the arguments are analysed like any
        // expression.
        let using = TokenSlice(words).find_from(0, |w, i| w.is_word(i, "USING"));
        if self.dialect == DialectName::Postgres {
            let end = TokenSlice(words).find_from(0, |w, i| w.is_one_of(i, &["USING", "INTO"]));
            self.read_expression(words.get(1..end).unwrap_or_default(), None);
        }
        if using < words.len() {
            for part in words[using + 1..].split(|one| one.token == Token::Comma) {
                self.read_expression(part, None);
            }
        }
    }

    /// The possible values of every parameter and variable, in terms of parameters only.
    fn solve_variables(&self) -> Binding {
        let mut inputs = BTreeMap::new();
        for (at, param) in self.body.params.iter().enumerate() {
            let place = format!("${}", at + 1);
            let name = param.name.as_ref().map_or(place.clone(), |name| name.to_lowercase());
            let value = ValueSet::from([SliceValue::Param(name.clone())]);
            if param.is_input {
                inputs.insert(place, value.clone());
                inputs.insert(name, value);
            }
        }
        let mut solved = Binding::new();
        for name in self.variables.iter().chain(inputs.keys()) {
            solved.insert(name.clone(), Some(inputs.get(name).cloned().unwrap_or_default()));
        }
        for round in 0..ROUNDS_MAX {
            let mut is_stable = true;
            for (name, assigned) in &self.assigned {
                let Some(Some(before)) = solved.get(name).cloned() else { continue };
                let mut after = Some(before.clone());
                for values in assigned {
                    let bound = values.as_ref().and_then(|values| bind_outer(values, &solved));
                    after = match (after, bound) {
                        (Some(mut all), Some(more)) => {
                            all.extend(more);
                            Some(all)
                        }
                        (None, _) | (_, None) => None,
                    };
                }
                let is_last = round + 1 == ROUNDS_MAX;
                if after.as_ref() != Some(&before) {
                    is_stable = false;
                    solved.insert(name.clone(), if is_last { None } else { after });
                }
            }
            if is_stable {
                break;
            }
        }
        // A variable without a known assignment may be set in a way that is not tracked.
        for values in solved.values_mut() {
            if values.as_ref().is_some_and(BTreeSet::is_empty) {
                *values = None;
            }
        }
        solved
    }
}

/// Replaces variables by their values; parameters of a job (`:name`) and of a trigger's row remain.
fn bind_outer(values: &ValueSet, solved: &Binding) -> Option<ValueSet> {
    let is_outer = |name: &str| [":", "new.", "old."].iter().any(|start| name.starts_with(start));
    let mut outer = ValueSet::new();
    let mut inner = ValueSet::new();
    for value in values {
        match value {
            SliceValue::Param(name) if is_outer(name) => outer.insert(value.clone()),
            _ => inner.insert(value.clone()),
        };
    }
    let mut bound = bind_values(&inner, solved)?;
    bound.extend(outer);
    Some(bound)
}

/// Replaces variables in all findings. Parameters of a job (`:name`) and of a trigger's row remain.
fn bind_facts(facts: &mut BodyFacts, solved: &Binding) {
    let with_outer = |values: &ValueSet| bind_outer(values, solved);
    for access in &mut facts.accesses {
        let mut slice = Slice::default();
        for (column, conditions) in &access.slice.columns {
            for values in conditions.iter().filter_map(with_outer) {
                slice.require(column, values);
            }
        }
        access.slice = slice;
    }
    for argument in facts.calls.iter_mut().flat_map(|call| &mut call.arguments) {
        argument.values = argument.values.as_ref().and_then(with_outer);
    }
}

/// After an assignment, a column has its old or its new value.
fn widen(slice: &mut Slice, column: &str, values: Option<ValueSet>) {
    let before = slice.columns.remove(column);
    let first = before.and_then(|conditions| conditions.into_iter().next());
    if let (Some(mut all), Some(more)) = (first, values) {
        all.extend(more);
        slice.require(column, all);
    }
}

fn access_of(node: TableNode, slice: Slice) -> Access {
    let written = match node.mode {
        AccessMode::Read => ColumnSet::no_columns(),
        AccessMode::Update => node.written,
        AccessMode::Insert | AccessMode::Upsert | AccessMode::Delete | AccessMode::Whole => {
            ColumnSet::All
        }
    };
    Access {
        table: node.name,
        mode: node.mode,
        written,
        read: node.read,
        slice,
        conflict_key: node.conflict_key,
        line: node.line,
    }
}

/// Whether a statement creates a routine, trigger or event, whose body does not run now.
fn is_routine(words: TokenSlice<'_>) -> bool {
    let kinds = ["PROCEDURE", "FUNCTION", "TRIGGER", "EVENT", "PACKAGE", "AGGREGATE", "RULE"];
    let stops = |w: TokenSlice<'_>, i: usize| {
        w.is_one_of(i, &["TABLE", "VIEW", "INDEX", "AS", "SCHEMA", "DATABASE", "SEQUENCE", "TYPE"])
    };
    let end = words.find_from(1, stops);
    (1..end).any(|at| words.is_one_of(at, &kinds))
}
