//! Analyses INSERT, UPDATE, DELETE, MERGE and CALL: the tables, columns and rows that they change.

use crate::domain::source::DialectName;
use crate::lineage::access::{AccessMode, ColumnSet, ConflictKey};
use crate::lineage::flow::{Constraint, NarrowedColumn, ValueFlow};
use crate::lineage::scope::{
    FromItem, NameScope, Relation, ScopeResult, SourceKind, StatementReader, UnsupportedSyntax,
};
use sqlparser::ast::{
    self, Assignment, AssignmentTarget, ConflictTarget, Delete, Expr, FromTable, FunctionArguments,
    Insert, Merge, MergeAction, MergeInsertKind, MergeUpdateKind, OnConflictAction, OnInsert,
    SelectItem, Statement, TableFactor, TableObject, Update, UpdateTableFromKind,
};
use std::collections::BTreeSet;

impl StatementReader<'_> {
    /// Analyses a statement.
    pub(super) fn statement(&mut self, statement: &Statement) -> ScopeResult<()> {
        match statement {
            Statement::Query(query) => self.query(query).map(|_| ()),
            Statement::Insert(insert) => self.insert(insert),
            Statement::Update(update) => self.update(update),
            Statement::Delete(delete) => self.delete(delete),
            Statement::Merge(merge) => self.merge_statement(merge),
            Statement::Call(function) => self.procedure_call(function),
            other => Err(UnsupportedSyntax(format!("the statement {other}"))),
        }
    }

    fn returning(&mut self, items: Option<&Vec<SelectItem>>) -> ScopeResult<()> {
        let mut relation = Relation::default();
        for item in items.into_iter().flatten() {
            self.projection(item, &mut relation)?;
        }
        Ok(())
    }

    fn insert(&mut self, insert: &Insert) -> ScopeResult<()> {
        let TableObject::TableName(name) = &insert.table else {
            return Err(UnsupportedSyntax("INSERT into a function".to_owned()));
        };
        if insert.multi_table_insert_type.is_some() || insert.overwrite {
            return Err(UnsupportedSyntax("an INSERT of another system".to_owned()));
        }
        let (table, line) = (self.object_name(name)?, self.line_of(name));
        let source = insert.source.as_ref().map(|source| self.query(source)).transpose()?;
        let node = self.add_node(table.clone(), line)?;
        self.nodes[node].mode = AccessMode::Insert;
        self.nodes[node].written = ColumnSet::All;
        if let Some(relation) = source {
            self.inserted(node, &insert.columns, &relation)?;
        }
        for assignment in &insert.assignments {
            let flow = self.expression(&assignment.value)?.flow;
            for column in self.assigned_columns(&assignment.target)? {
                self.require(node, &column.1, flow.clone());
            }
        }
        let is_replace =
            insert.replace_into || matches!(insert.or, Some(ast::SqliteOnConflict::Replace));
        if is_replace {
            self.nodes[node].mode = AccessMode::Upsert;
            self.nodes[node].conflict_key = Some(ConflictKey::AnyKey);
        }
        let own = insert.table_alias.as_ref().map_or(table.name.to_lowercase(), |alias| {
            self.column_name(&alias.alias).to_lowercase()
        });
        let source = FromItem { alias: own, kind: SourceKind::Table(node), is_nullable: false };
        self.scopes.push(NameScope { sources: vec![source] });
        self.conflict(node, insert.on.as_ref())?;
        self.returning(insert.returning.as_ref())?;
        self.scopes.pop();
        Ok(())
    }

    /// The values of the inserted rows in their columns.
    fn inserted(
        &mut self,
        node: usize,
        columns: &[ast::ObjectName],
        relation: &Relation,
    ) -> ScopeResult<()> {
        if !relation.stars.is_empty() {
            return Ok(());
        }
        for (at, column) in relation.columns.iter().enumerate() {
            let name = match columns.get(at) {
                Some(name) => self.object_name(name)?.name,
                // Without a column list, the columns are those of the table in order.
                None if columns.is_empty() => format!("#{}", at + 1),
                None => break,
            };
            let name = self.stored_column(&name);
            self.require(node, &name, column.operand.flow.clone());
        }
        Ok(())
    }

    fn stored_column(&self, name: &str) -> String {
        match self.context.dialect {
            DialectName::Postgres => name.to_owned(),
            DialectName::Mysql | DialectName::Sqlite => name.to_lowercase(),
        }
    }

    fn require(&mut self, node: usize, column: &str, flow: ValueFlow) {
        let target = NarrowedColumn { column: (node, column.to_owned()), guards: Vec::new() };
        if !flow.is_unknown {
            self.constraints.push(Constraint { target, flow });
        }
    }

    fn conflict(&mut self, node: usize, on: Option<&OnInsert>) -> ScopeResult<()> {
        let (assignments, selection, key) = match on {
            None => return Ok(()),
            Some(OnInsert::DuplicateKeyUpdate(assignments)) => {
                (assignments, None, ConflictKey::AnyKey)
            }
            Some(OnInsert::OnConflict(conflict)) => {
                let key = match &conflict.conflict_target {
                    Some(ConflictTarget::Columns(columns)) => {
                        let names = columns.iter().map(|column| self.column_name(column));
                        ConflictKey::Columns(names.collect())
                    }
                    Some(ConflictTarget::OnConstraint(_)) | None => ConflictKey::AnyKey,
                };
                match &conflict.action {
                    OnConflictAction::DoNothing => return Ok(()),
                    OnConflictAction::DoUpdate(update) => {
                        (&update.assignments, update.selection.as_ref(), key)
                    }
                }
            }
            Some(_) => return Err(UnsupportedSyntax("an INSERT of another system".to_owned())),
        };
        self.nodes[node].mode = AccessMode::Upsert;
        self.nodes[node].conflict_key = Some(key);
        for assignment in assignments {
            let flow = self.expression(&assignment.value)?.flow;
            for (_, column) in self.assigned_columns(&assignment.target)? {
                if !is_inserted_value(&assignment.value) {
                    self.nodes[node].assigned.insert(column, flow.clone());
                }
            }
        }
        self.read_expressions(selection)
    }

    /// The columns of an assignment, each with the table's name if it has one.
    fn assigned_columns(
        &self,
        target: &AssignmentTarget,
    ) -> ScopeResult<Vec<(Option<String>, String)>> {
        let names = match target {
            AssignmentTarget::ColumnName(name) => std::slice::from_ref(name),
            AssignmentTarget::Tuple(names) => names.as_slice(),
        };
        let mut columns = Vec::new();
        for name in names {
            let name = self.object_name(name)?;
            let alias = name.schema.map(|alias| alias.to_lowercase());
            columns.push((alias, self.stored_column(&name.name)));
        }
        Ok(columns)
    }

    fn update(&mut self, update: &Update) -> ScopeResult<()> {
        self.scopes.push(NameScope::default());
        self.table_with_joins(&update.table)?;
        let own = self.scopes.last().map_or(0, |scope| scope.sources.len());
        match &update.from {
            None => {}
            Some(
                UpdateTableFromKind::BeforeSet(tables) | UpdateTableFromKind::AfterSet(tables),
            ) => {
                for table in tables {
                    self.table_with_joins(table)?;
                }
            }
        }
        if let Some(condition) = &update.selection {
            self.condition(condition)?;
        }
        for assignment in &update.assignments {
            self.assignment(assignment, own)?;
        }
        self.read_expressions(update.order_by.iter().map(|key| &key.expr))?;
        self.read_expressions(update.limit.as_ref())?;
        self.returning(update.returning.as_ref())?;
        self.scopes.pop();
        Ok(())
    }

    /// Analyses one assignment of an UPDATE over the first `own` entries in scope.
    fn assignment(&mut self, assignment: &Assignment, own: usize) -> ScopeResult<()> {
        let flow = self.expression(&assignment.value)?.flow;
        let sources = self.scopes.last().map(|scope| scope.sources.clone()).unwrap_or_default();
        let is_one = matches!(assignment.target, AssignmentTarget::ColumnName(_));
        for (alias, column) in self.assigned_columns(&assignment.target)? {
            let of_alias = |source: &&FromItem| alias.as_ref().is_some_and(|a| *a == source.alias);
            let named: Vec<usize> =
                sources[..own].iter().filter(of_alias).filter_map(table_of).collect();
            let nodes =
                if named.is_empty() { self.owners(&sources[..own], &column) } else { named };
            for node in nodes {
                let table = &mut self.nodes[node];
                table.mode = AccessMode::Update;
                table.written.add_column(&column);
                let value = if is_one { flow.clone() } else { ValueFlow::unknown() };
                table.assigned.insert(column.clone(), value);
            }
        }
        Ok(())
    }

    /// The tables to which an unqualified column may belong: the one that has it, else all.
    fn owners(&self, sources: &[FromItem], column: &str) -> Vec<usize> {
        let nodes: Vec<usize> = sources.iter().filter_map(table_of).collect();
        let has = |node: &usize| {
            let columns = self.context.columns_of(&self.nodes[*node].name);
            columns.map(|columns: &BTreeSet<String>| columns.contains(column))
        };
        let certain: Vec<usize> =
            nodes.iter().copied().filter(|node| has(node) == Some(true)).collect();
        if certain.len() == 1 { certain } else { nodes }
    }

    fn delete(&mut self, delete: &Delete) -> ScopeResult<()> {
        let (FromTable::WithFromKeyword(from) | FromTable::WithoutKeyword(from)) = &delete.from;
        let is_mysql = self.context.dialect == DialectName::Mysql;
        self.scopes.push(NameScope::default());
        let mut wanted = Vec::new();
        if let (Some(using), true) = (&delete.using, is_mysql) {
            // DELETE FROM a, b USING a JOIN b ON …
            for table in from {
                if let TableFactor::Table { name, .. } = &table.relation {
                    wanted.push(self.object_name(name)?.name.to_lowercase());
                }
            }
            for table in using {
                self.table_with_joins(table)?;
            }
        } else {
            for name in &delete.tables {
                wanted.push(self.object_name(name)?.name.to_lowercase());
            }
            for table in from.iter() {
                self.table_with_joins(table)?;
            }
            if wanted.is_empty() {
                let first = self.scopes.last().and_then(|scope| scope.sources.first());
                wanted.extend(first.map(|source| source.alias.clone()));
            }
            for table in delete.using.iter().flatten() {
                self.table_with_joins(table)?;
            }
        }
        if let Some(condition) = &delete.selection {
            self.condition(condition)?;
        }
        let sources = self.scopes.last().map(|scope| scope.sources.clone()).unwrap_or_default();
        let mut is_found = false;
        for source in sources.iter().filter(|source| wanted.contains(&source.alias)) {
            if let Some(node) = table_of(source) {
                self.nodes[node].mode = AccessMode::Delete;
                self.nodes[node].written = ColumnSet::All;
                is_found = true;
            }
        }
        if !is_found {
            return Err(UnsupportedSyntax("which table is deleted from".to_owned()));
        }
        self.read_expressions(delete.order_by.iter().map(|key| &key.expr))?;
        self.read_expressions(delete.limit.as_ref())?;
        self.returning(delete.returning.as_ref())?;
        self.scopes.pop();
        Ok(())
    }

    fn merge_statement(&mut self, merge: &Merge) -> ScopeResult<()> {
        self.scopes.push(NameScope::default());
        self.table_factor(&merge.table)?;
        let first = self.scopes.last().and_then(|scope| scope.sources.first());
        let node = first.and_then(table_of);
        let node = node.ok_or_else(|| UnsupportedSyntax("the target of MERGE".to_owned()))?;
        self.table_factor(&merge.source)?;
        // Rows without a match are touched too, so ON narrows nothing.
        let outer = self.narrowed.replace(0..0);
        self.condition(&merge.on)?;
        self.narrowed = outer;
        for clause in &merge.clauses {
            self.read_expressions(clause.predicate.as_ref())?;
            self.merge_action(&clause.action)?;
        }
        self.nodes[node].mode = AccessMode::Upsert;
        self.nodes[node].written = ColumnSet::All;
        self.nodes[node].conflict_key = Some(ConflictKey::AnyKey);
        self.scopes.pop();
        Ok(())
    }

    fn merge_action(&mut self, action: &MergeAction) -> ScopeResult<()> {
        match action {
            MergeAction::Insert(insert) => {
                if let MergeInsertKind::Values(values) = &insert.kind {
                    self.values(values)?;
                }
                self.read_expressions(insert.insert_predicate.as_ref())
            }
            MergeAction::Update(update) => {
                if let MergeUpdateKind::Set(assignments) = &update.kind {
                    self.read_expressions(assignments.iter().map(|one| &one.value))?;
                }
                self.read_expressions(
                    update.update_predicate.iter().chain(&update.delete_predicate),
                )
            }
            MergeAction::Delete { .. } | MergeAction::DoNothing { .. } => Ok(()),
            #[expect(unreachable_patterns, reason = "the parser's list may grow")]
            _ => Err(UnsupportedSyntax("an action of MERGE".to_owned())),
        }
    }
}

fn table_of(source: &FromItem) -> Option<usize> {
    match source.kind {
        SourceKind::Table(node) => Some(node),
        SourceKind::Derived(_) | SourceKind::Opaque => None,
    }
}

/// `VALUES(col)` and `excluded.col`: the value in the row that was to be inserted.
fn is_inserted_value(expr: &Expr) -> bool {
    match expr {
        Expr::Function(function) => {
            let is_values = function.name.to_string().eq_ignore_ascii_case("values")
                || function.name.to_string().eq_ignore_ascii_case("value");
            is_values && matches!(function.args, FunctionArguments::List(_))
        }
        Expr::CompoundIdentifier(parts) => {
            parts.len() == 2 && parts[0].value.eq_ignore_ascii_case("excluded")
        }
        _ => false,
    }
}
