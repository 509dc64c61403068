//! Analyses SELECT: FROM, joins, derived tables, common table expressions, set operations.

use crate::lineage::access::{AccessMode, ColumnSet, ObjectName};
use crate::lineage::flow::{FlowOperand, ValueFlow};
use crate::lineage::scope::{
    CommonTable, FromItem, NameScope, OutputColumn, Relation, ScopeResult, SourceKind,
    StatementReader, UnsupportedSyntax,
};
use sqlparser::ast::{
    Cte, Distinct, Expr, GroupByExpr, Join, JoinConstraint, JoinOperator, LimitClause, OrderBy,
    OrderByKind, Query, Select, SelectItem, SelectItemQualifiedWildcardKind, SetExpr, SetOperator,
    TableAlias, TableFactor, TableWithJoins, Values,
};
use std::rc::Rc;

/// Maximum number of columns that one condition may narrow; a condition with more narrows none.
const TARGETS_MAX: usize = 256;

/// How a join treats rows without a match.
#[derive(Clone, Copy, PartialEq, Eq)]
enum JoinSide {
    Inner,
    Left,
    Right,
    Full,
}

impl StatementReader<'_> {
    /// Analyses a query: adds its tables, and returns its columns.
    pub(super) fn query(&mut self, query: &Query) -> ScopeResult<Relation> {
        let visible = self.common.len();
        if let Some(with) = &query.with {
            for table in &with.cte_tables {
                self.common_table_expression(table, with.recursive)?;
            }
        }
        let order = query.order_by.as_ref();
        let mut relation = self.set_expression(&query.body, order)?;
        self.limit(query.limit_clause.as_ref())?;
        if query.limit_clause.is_some() || query.fetch.is_some() {
            relation.forget_targets();
        }
        if !query.pipe_operators.is_empty() || query.settings.is_some() {
            return Err(UnsupportedSyntax("pipe operators".to_owned()));
        }
        self.common.truncate(visible);
        Ok(relation)
    }

    fn common_table_expression(&mut self, table: &Cte, is_recursive: bool) -> ScopeResult<()> {
        let name = self.column_name(&table.alias.name).to_lowercase();
        let number = self.uses.len();
        self.uses.push(0);
        let visible = self.common.len();
        if is_recursive {
            let relation = Relation::opaque();
            self.common.push(CommonTable { name: name.clone(), relation, number });
        }
        let mut relation = self.query(&table.query)?;
        self.common.truncate(visible);
        self.rename(&mut relation, &table.alias);
        if is_recursive && self.uses[number] > 0 {
            // Each iteration reads the rows of the previous one.
            relation.forget_flows();
        }
        // Recursive uses do not count.
        self.uses[number] = 0;
        for column in &mut relation.columns {
            for target in &mut column.operand.targets {
                target.guards.push(number);
            }
        }
        if !relation.stars.is_empty() {
            // Columns passed on by `*` are not narrowed from outside.
            self.uses[number] = 2;
        }
        self.common.push(CommonTable { name, relation, number });
        Ok(())
    }

    fn limit(&mut self, limit: Option<&LimitClause>) -> ScopeResult<()> {
        match limit {
            None => {}
            Some(LimitClause::LimitOffset { limit, offset, limit_by }) => {
                let offset = offset.as_ref().map(|offset| &offset.value);
                for one in limit.iter().chain(offset).chain(limit_by) {
                    self.expression(one)?;
                }
            }
            Some(LimitClause::OffsetCommaLimit { offset, limit }) => {
                self.expression(offset)?;
                self.expression(limit)?;
            }
        }
        Ok(())
    }

    fn set_expression(&mut self, body: &SetExpr, order: Option<&OrderBy>) -> ScopeResult<Relation> {
        match body {
            SetExpr::Select(select) => self.select(select, order),
            SetExpr::Query(query) => self.query(query),
            SetExpr::SetOperation { left, op, right, .. } => {
                let left = self.set_expression(left, None)?;
                let right = self.set_expression(right, None)?;
                Ok(self.merge(left, right, *op))
            }
            SetExpr::Values(values) => self.values(values),
            SetExpr::Insert(statement)
            | SetExpr::Update(statement)
            | SetExpr::Delete(statement)
            | SetExpr::Merge(statement) => {
                self.statement(statement)?;
                Ok(Relation::opaque())
            }
            SetExpr::Table(table) => {
                let name = table
                    .table_name
                    .clone()
                    .ok_or_else(|| UnsupportedSyntax("TABLE".to_owned()))?;
                let name = ObjectName { schema: table.schema_name.clone(), name };
                let node = self.add_node(name, 1)?;
                self.nodes[node].read = ColumnSet::All;
                Ok(Relation::opaque())
            }
        }
    }

    fn merge(&mut self, left: Relation, right: Relation, op: SetOperator) -> Relation {
        let is_known = left.stars.is_empty()
            && right.stars.is_empty()
            && left.columns.len() == right.columns.len();
        if !is_known {
            for star in left.stars.iter().chain(&right.stars) {
                self.read_all(star);
            }
            return Relation::opaque();
        }
        let mut merged = left;
        for (column, other) in merged.columns.iter_mut().zip(right.columns) {
            match op {
                SetOperator::Union => {
                    let flow = std::mem::take(&mut column.operand.flow);
                    column.operand.flow = flow.either(other.operand.flow);
                    let all = &mut column.operand.targets;
                    if all.len() + other.operand.targets.len() <= TARGETS_MAX {
                        all.extend(other.operand.targets);
                    } else {
                        all.clear();
                    }
                }
                SetOperator::Except | SetOperator::Intersect | SetOperator::Minus => {
                    column.operand.targets.clear();
                }
            }
        }
        merged
    }

    pub(super) fn values(&mut self, values: &Values) -> ScopeResult<Relation> {
        let mut columns: Vec<ValueFlow> = Vec::new();
        for (number, row) in values.rows.iter().enumerate() {
            for (at, value) in row.content.iter().enumerate() {
                let flow = self.expression(value)?.flow;
                match columns.get_mut(at) {
                    Some(column) => *column = std::mem::take(column).either(flow),
                    None if number == 0 => columns.push(flow),
                    None => return Err(UnsupportedSyntax("rows of different lengths".to_owned())),
                }
            }
        }
        let columns = columns.into_iter().enumerate().map(|(at, flow)| OutputColumn {
            name: Some(format!("column{}", at + 1)),
            operand: FlowOperand::from_flow(flow),
        });
        Ok(Relation { columns: columns.collect(), stars: Vec::new() })
    }

    fn select(&mut self, select: &Select, order: Option<&OrderBy>) -> ScopeResult<Relation> {
        if !select.lateral_views.is_empty()
            || !select.connect_by.is_empty()
            || select.prewhere.is_some()
        {
            return Err(UnsupportedSyntax("LATERAL VIEW or CONNECT BY".to_owned()));
        }
        self.scopes.push(NameScope::default());
        for from in &select.from {
            self.table_with_joins(from)?;
        }
        if let Some(condition) = &select.selection {
            self.condition(condition)?;
        }
        let mut relation = Relation::default();
        for item in &select.projection {
            self.projection(item, &mut relation)?;
        }
        let mut is_mixed = self.select_tail(select)?;
        self.order_by(order)?;
        if let Some(Distinct::On(keys)) = &select.distinct {
            is_mixed = true;
            for key in keys {
                self.expression(key)?;
            }
        }
        let text_has_window = select.projection.iter().any(has_window);
        if is_mixed || text_has_window || select.top.is_some() {
            relation.forget_targets();
        }
        self.scopes.pop();
        if let Some(into) = &select.into {
            self.select_into(into)?;
        }
        Ok(relation)
    }

    /// Analyses GROUP BY, HAVING and windows; returns whether other rows affect a row of the result.
    fn select_tail(&mut self, select: &Select) -> ScopeResult<bool> {
        match &select.group_by {
            GroupByExpr::All(_) => {}
            GroupByExpr::Expressions(keys, _) => {
                for key in keys {
                    self.expression(key)?;
                }
            }
        }
        for condition in select.having.iter().chain(&select.qualify) {
            self.expression(condition)?;
        }
        for window in &select.named_window {
            if let sqlparser::ast::NamedWindowExpr::WindowSpec(spec) = &window.1 {
                self.window(spec)?;
            }
        }
        Ok(!select.named_window.is_empty() || select.qualify.is_some())
    }

    pub(super) fn order_by(&mut self, order: Option<&OrderBy>) -> ScopeResult<()> {
        let Some(OrderBy { kind: OrderByKind::Expressions(keys), .. }) = order else {
            return Ok(());
        };
        for key in keys {
            self.expression(&key.expr)?;
        }
        Ok(())
    }

    fn select_into(&mut self, into: &sqlparser::ast::SelectInto) -> ScopeResult<()> {
        for target in &into.targets {
            let name = match target {
                Expr::Identifier(ident) => ObjectName::bare(&self.column_name(ident)),
                Expr::CompoundIdentifier(parts) if parts.len() == 2 => {
                    ObjectName::within(&self.column_name(&parts[0]), &self.column_name(&parts[1]))
                }
                _ => return Err(UnsupportedSyntax("the target of INTO".to_owned())),
            };
            let node = self.add_node(name, 1)?;
            self.nodes[node].mode = AccessMode::Whole;
        }
        Ok(())
    }

    pub(super) fn projection(&mut self, item: &SelectItem, into: &mut Relation) -> ScopeResult<()> {
        let sources = self.scopes.last().map(|scope| scope.sources.clone()).unwrap_or_default();
        match item {
            SelectItem::UnnamedExpr(expr) => {
                let name = match expr {
                    Expr::Identifier(ident) => Some(self.column_name(ident)),
                    Expr::CompoundIdentifier(parts) => {
                        parts.last().map(|ident| self.column_name(ident))
                    }
                    _ => None,
                };
                let operand = self.expression(expr)?;
                // No query can refer to an unnamed column, unless the server invents a name.
                let name = name.or_else(|| Some(format!("?column {}", into.columns.len())));
                into.columns.push(OutputColumn { name, operand });
            }
            SelectItem::ExprWithAlias { expr, alias } => {
                let operand = self.expression(expr)?;
                into.columns.push(OutputColumn { name: Some(self.column_name(alias)), operand });
            }
            SelectItem::ExprWithAliases { .. } => {
                return Err(UnsupportedSyntax("several aliases".to_owned()));
            }
            SelectItem::Wildcard(_) => {
                for source in &sources {
                    self.read_all(source);
                }
                into.stars.extend(sources);
            }
            SelectItem::QualifiedWildcard(kind, _) => {
                let SelectItemQualifiedWildcardKind::ObjectName(name) = kind else {
                    return Err(UnsupportedSyntax("a field of an expression".to_owned()));
                };
                let alias = self.object_name(name)?.name.to_lowercase();
                let found = sources.into_iter().filter(|source| source.alias == alias);
                let mut found: Vec<FromItem> = found.collect();
                if found.is_empty() {
                    let outer = self.scopes.iter().flat_map(|scope| scope.sources.clone());
                    found = outer.filter(|source| source.alias == alias).collect();
                }
                for source in &found {
                    self.read_all(source);
                }
                into.stars.extend(found);
            }
        }
        Ok(())
    }

    pub(super) fn table_with_joins(&mut self, table: &TableWithJoins) -> ScopeResult<()> {
        let first = self.sources().len();
        self.table_factor(&table.relation)?;
        for join in &table.joins {
            self.read_join(join, first)?;
        }
        Ok(())
    }

    fn sources(&mut self) -> &mut Vec<FromItem> {
        if self.scopes.is_empty() {
            self.scopes.push(NameScope::default());
        }
        let last = self.scopes.len() - 1;
        &mut self.scopes[last].sources
    }

    fn read_join(&mut self, join: &Join, first: usize) -> ScopeResult<()> {
        let (nodes_before, left_end) = (self.nodes.len(), self.sources().len());
        self.table_factor(&join.relation)?;
        let right_nodes = nodes_before..self.nodes.len();
        use JoinOperator as J;
        let (side, constraint) = match &join.join_operator {
            J::Join(on) | J::Inner(on) | J::CrossJoin(on) | J::StraightJoin(on) => {
                (JoinSide::Inner, Some(on))
            }
            J::Left(on) | J::LeftOuter(on) => (JoinSide::Left, Some(on)),
            J::Right(on) | J::RightOuter(on) => (JoinSide::Right, Some(on)),
            J::FullOuter(on) => (JoinSide::Full, Some(on)),
            J::CrossApply => (JoinSide::Inner, None),
            J::OuterApply => (JoinSide::Left, None),
            _ => return Err(UnsupportedSyntax("a join of another system".to_owned())),
        };
        let outer = self.narrowed.clone();
        self.narrowed = match side {
            JoinSide::Inner => outer.clone(),
            JoinSide::Left => Some(right_nodes),
            JoinSide::Right => Some(0..nodes_before),
            JoinSide::Full => Some(0..0),
        };
        if let Some(constraint) = constraint {
            self.join_constraint(constraint, first, left_end)?;
        }
        self.narrowed = outer;
        for (at, source) in self.sources().iter_mut().enumerate().skip(first) {
            source.is_nullable |= match side {
                JoinSide::Inner => false,
                JoinSide::Left => at >= left_end,
                JoinSide::Right => at < left_end,
                JoinSide::Full => true,
            };
        }
        Ok(())
    }

    fn join_constraint(
        &mut self,
        constraint: &JoinConstraint,
        first: usize,
        left_end: usize,
    ) -> ScopeResult<()> {
        match constraint {
            JoinConstraint::On(on) => self.condition(on),
            JoinConstraint::Using(columns) => {
                for column in columns {
                    let column = self.object_name(column)?.name;
                    let sources = self.sources().clone();
                    let Some(right) = sources.get(left_end) else { continue };
                    let right = self.column_of(right, &column, 0);
                    for left in &sources[first..left_end] {
                        let left = self.column_of(left, &column, 0);
                        if let (Some(left), Some(right), true) =
                            (left, &right, left_end == first + 1)
                        {
                            self.equate(&left, right);
                        }
                    }
                }
                Ok(())
            }
            JoinConstraint::Natural => {
                for source in self.sources().clone() {
                    self.read_all(&source);
                }
                Ok(())
            }
            JoinConstraint::None => Ok(()),
        }
    }

    pub(super) fn table_factor(&mut self, factor: &TableFactor) -> ScopeResult<()> {
        let (alias, kind) = match factor {
            TableFactor::Table { name, alias, args, with_hints, .. } => {
                for hint in with_hints {
                    self.expression(hint)?;
                }
                let written = self.object_name(name)?;
                let own = written.name.to_lowercase();
                let kind = if let Some(args) = args {
                    self.call_in_from(name, &args.args)?;
                    SourceKind::Opaque
                } else if let Some(common) = self.common_table(&written) {
                    let (relation, number) = (common.relation.clone(), common.number);
                    self.uses[number] += 1;
                    SourceKind::Derived(Rc::new(relation))
                } else {
                    SourceKind::Table(self.add_node(written, self.line_of(name))?)
                };
                (alias.as_ref().map_or(own, |alias| self.alias_of(alias)), kind)
            }
            TableFactor::Derived { subquery, alias, .. } => {
                let mut relation = self.query(subquery)?;
                if let Some(alias) = alias {
                    self.rename(&mut relation, alias);
                }
                let name = alias.as_ref().map_or(String::new(), |alias| self.alias_of(alias));
                (name, SourceKind::Derived(Rc::new(relation)))
            }
            TableFactor::Function { name, args, alias, .. } => {
                self.call_in_from(name, args)?;
                let own = self.object_name(name)?.name.to_lowercase();
                (alias.as_ref().map_or(own, |alias| self.alias_of(alias)), SourceKind::Opaque)
            }
            TableFactor::TableFunction { expr, alias } => {
                self.expression(expr)?;
                let name = alias.as_ref().map_or(String::new(), |alias| self.alias_of(alias));
                (name, SourceKind::Opaque)
            }
            TableFactor::UNNEST { alias, array_exprs, .. } => {
                for one in array_exprs {
                    self.expression(one)?;
                }
                let name = alias.as_ref().map_or(String::new(), |alias| self.alias_of(alias));
                (name, SourceKind::Opaque)
            }
            TableFactor::JsonTable { json_expr, alias, .. } => {
                self.expression(json_expr)?;
                let name = alias.as_ref().map_or(String::new(), |alias| self.alias_of(alias));
                (name, SourceKind::Opaque)
            }
            TableFactor::NestedJoin { table_with_joins, alias: None } => {
                return self.table_with_joins(table_with_joins);
            }
            _ => return Err(UnsupportedSyntax("a table of another system".to_owned())),
        };
        self.sources().push(FromItem { alias, kind, is_nullable: false });
        Ok(())
    }

    fn alias_of(&self, alias: &TableAlias) -> String {
        self.column_name(&alias.name).to_lowercase()
    }

    /// `AS t (a, b)` renames the columns.
    fn rename(&self, relation: &mut Relation, alias: &TableAlias) {
        if alias.columns.is_empty() {
            return;
        }
        if !relation.stars.is_empty() {
            *relation = Relation::opaque();
            return;
        }
        for (column, named) in relation.columns.iter_mut().zip(&alias.columns) {
            column.name = Some(self.column_name(&named.name));
        }
    }
}

/// Whether a column is computed by a window function.
fn has_window(item: &SelectItem) -> bool {
    match item {
        SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => {
            expr.to_string().to_ascii_uppercase().contains(" OVER ")
        }
        SelectItem::ExprWithAliases { .. }
        | SelectItem::QualifiedWildcard(..)
        | SelectItem::Wildcard(_) => false,
    }
}
