//! Resolves the names of a statement: tables, derived tables, common table expressions, variables.

use crate::domain::source::DialectName;
use crate::lineage::access::{AccessMode, CallKind, ColumnSet, ConflictKey, ObjectName};
use crate::lineage::catalogue::Catalogue;
use crate::lineage::flow::{Constraint, FlowOperand, NarrowedColumn, ValueFlow};
use crate::lineage::slice::SliceValue;
use crate::lineage::words::{fold_name, line_of};
use sqlparser::ast;
use sqlparser::ast::{Ident, ObjectNamePart, Spanned as _};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

/// Maximum number of tables, derived columns and scopes in one statement; a larger one is scanned for keywords.
pub(super) const NODES_MAX: usize = 1_000;
/// Maximum depth of nested `SELECT *` through which a column is searched; [`STAR_WIDTH`] limits the sources per level.
const STAR_DEPTH: usize = 4;
/// See `STAR_DEPTH`.
const STAR_WIDTH: usize = 8;

/// The parser's tree contains an unsupported construct.
#[derive(Clone, Debug)]
pub(super) struct UnsupportedSyntax(pub(super) String);

pub(super) type ScopeResult<T> = Result<T, UnsupportedSyntax>;

/// Context of a statement.
#[derive(Clone, Copy)]
pub(super) struct StatementContext<'c> {
    pub(super) dialect: DialectName,
    /// Parameters and variables, in lower case.
    pub(super) variables: &'c BTreeSet<String>,
    /// The catalogue of the server.
    pub(super) catalogue: &'c Catalogue,
    /// The search path for unqualified names.
    pub(super) path: &'c [String],
}

impl<'c> StatementContext<'c> {
    /// The columns of a table, if the catalogue knows them.
    pub(super) fn columns_of(&self, name: &ObjectName) -> Option<&'c BTreeSet<String>> {
        self.catalogue.columns_of(&self.catalogue.resolve_table(name, self.path))
    }
}

/// A table that the statement accesses.
#[derive(Clone, Debug)]
pub(super) struct TableNode {
    pub(super) name: ObjectName,
    pub(super) mode: AccessMode,
    pub(super) read: ColumnSet,
    pub(super) written: ColumnSet,
    pub(super) conflict_key: Option<ConflictKey>,
    /// Assigned columns with their values.
    pub(super) assigned: BTreeMap<String, ValueFlow>,
    pub(super) line: u32,
}

/// An entry of FROM with its name.
#[derive(Clone, Debug)]
pub(super) struct FromItem {
    pub(super) alias: String,
    pub(super) kind: SourceKind,
    /// Whether an outer join may replace its columns by NULL.
    pub(super) is_nullable: bool,
}

#[derive(Clone, Debug)]
pub(super) enum SourceKind {
    /// A table, by its index in the statement.
    Table(usize),
    /// A query.
    Derived(Rc<Relation>),
    /// A function, VALUES or another entry without a table.
    Opaque,
}

/// The result of a query.
#[derive(Clone, Debug, Default)]
pub(super) struct Relation {
    pub(super) columns: Vec<OutputColumn>,
    /// Entries of `*`, all of whose columns are part of the result.
    pub(super) stars: Vec<FromItem>,
}

impl Relation {
    /// A result about which nothing is known.
    pub(super) fn opaque() -> Self {
        let source =
            FromItem { alias: String::new(), kind: SourceKind::Opaque, is_nullable: false };
        Self { columns: Vec::new(), stars: vec![source] }
    }

    /// Prevents outer conditions from narrowing its tables, because rows that are filtered out affect the others.
    pub(super) fn forget_targets(&mut self) {
        for column in &mut self.columns {
            column.operand.targets.clear();
        }
        // `*` would pass conditions on.
        if !self.stars.is_empty() {
            *self = Self::opaque();
        }
    }

    /// The same relation with unknown values in its columns.
    pub(super) fn forget_flows(&mut self) {
        self.forget_targets();
        for column in &mut self.columns {
            column.operand.flow = ValueFlow::unknown();
        }
    }
}

#[derive(Clone, Debug)]
pub(super) struct OutputColumn {
    pub(super) name: Option<String>,
    pub(super) operand: FlowOperand,
}

#[derive(Clone, Debug, Default)]
pub(super) struct NameScope {
    pub(super) sources: Vec<FromItem>,
}

/// A common table expression.
#[derive(Clone, Debug)]
pub(super) struct CommonTable {
    pub(super) name: String,
    pub(super) relation: Relation,
    pub(super) number: usize,
}

/// A call; the possible values of its arguments are known after the statement is analysed.
#[derive(Clone, Debug)]
pub(super) struct MetCall {
    pub(super) routine: ObjectName,
    pub(super) kind: CallKind,
    pub(super) arguments: Vec<(Option<String>, ValueFlow)>,
    pub(super) line: u32,
}

/// Analyses one statement.
pub(super) struct StatementReader<'c> {
    pub(super) context: StatementContext<'c>,
    pub(super) nodes: Vec<TableNode>,
    pub(super) constraints: Vec<Constraint>,
    pub(super) scopes: Vec<NameScope>,
    pub(super) common: Vec<CommonTable>,
    /// The number of uses of each common table expression.
    pub(super) uses: Vec<usize>,
    pub(super) calls: Vec<MetCall>,
    pub(super) dynamic: Vec<u32>,
    /// The only tables that conditions may narrow, inside an outer join.
    pub(super) narrowed: Option<std::ops::Range<usize>>,
}

impl<'c> StatementReader<'c> {
    pub(super) fn new(context: StatementContext<'c>) -> Self {
        Self {
            context,
            nodes: Vec::new(),
            constraints: Vec::new(),
            scopes: Vec::new(),
            common: Vec::new(),
            uses: Vec::new(),
            calls: Vec::new(),
            dynamic: Vec::new(),
            narrowed: None,
        }
    }

    /// The normalized name of a column or alias.
    pub(super) fn column_name(&self, ident: &Ident) -> String {
        match self.context.dialect {
            DialectName::Postgres => {
                fold_name(&ident.value, ident.quote_style, DialectName::Postgres)
            }
            DialectName::Mysql | DialectName::Sqlite => ident.value.to_lowercase(),
        }
    }

    /// The last two parts of a name.
    pub(super) fn object_name(&self, name: &ast::ObjectName) -> ScopeResult<ObjectName> {
        let mut parts = Vec::new();
        for part in &name.0 {
            match part {
                ObjectNamePart::Identifier(ident) => {
                    parts.push(fold_name(&ident.value, ident.quote_style, self.context.dialect));
                }
                ObjectNamePart::Function(_) => {
                    return Err(UnsupportedSyntax(format!("the name {name}")));
                }
            }
        }
        let last = parts.pop().ok_or_else(|| UnsupportedSyntax("an empty name".to_owned()))?;
        Ok(ObjectName { schema: parts.pop(), name: last })
    }

    pub(super) fn line_of(&self, name: &ast::ObjectName) -> u32 {
        line_of(name.span())
    }

    /// Adds a table with read access.
    pub(super) fn add_node(&mut self, name: ObjectName, line: u32) -> ScopeResult<usize> {
        if self.nodes.len() >= NODES_MAX {
            return Err(UnsupportedSyntax(format!("more than {NODES_MAX} tables")));
        }
        self.nodes.push(TableNode {
            name,
            mode: AccessMode::Read,
            read: ColumnSet::no_columns(),
            written: ColumnSet::no_columns(),
            conflict_key: None,
            assigned: BTreeMap::new(),
            line,
        });
        Ok(self.nodes.len() - 1)
    }

    pub(super) fn common_table(&self, name: &ObjectName) -> Option<&CommonTable> {
        if name.schema.is_some() {
            return None;
        }
        let wanted = name.name.to_lowercase();
        self.common.iter().rev().find(|one| one.name == wanted)
    }

    /// An unqualified name: a variable, or a column in scope.
    pub(super) fn resolve(&mut self, column: &str) -> FlowOperand {
        let lower = column.to_lowercase();
        if self.context.variables.contains(&lower) {
            return FlowOperand::from_flow(ValueFlow::value(SliceValue::Param(lower)));
        }
        if column.starts_with('@') {
            return FlowOperand::unknown();
        }
        for depth in (0..self.scopes.len()).rev() {
            let is_own = depth + 1 == self.scopes.len();
            let sources = self.scopes[depth].sources.clone();
            if let Some(found) = self.find_column(&sources, column, 0) {
                return if is_own { found } else { FlowOperand::from_flow(found.flow) };
            }
        }
        FlowOperand::unknown()
    }

    /// A name of two parts: of a table in scope, of the routine, or of a trigger's row.
    pub(super) fn resolve_qualified(&mut self, qualifier: &str, column: &str) -> FlowOperand {
        let alias = qualifier.to_lowercase();
        for depth in (0..self.scopes.len()).rev() {
            let is_own = depth + 1 == self.scopes.len();
            let found = self.scopes[depth].sources.iter().find(|one| one.alias == alias).cloned();
            if let Some(source) = found {
                let found = self.column_of(&source, column, 0).unwrap_or_else(FlowOperand::unknown);
                return if is_own { found } else { FlowOperand::from_flow(found.flow) };
            }
        }
        if alias == "new" || alias == "old" {
            let param = format!("{alias}.{}", column.to_lowercase());
            return FlowOperand::from_flow(ValueFlow::value(SliceValue::Param(param)));
        }
        let lower = column.to_lowercase();
        if self.context.variables.contains(&lower) && !self.context.variables.contains(&alias) {
            return FlowOperand::from_flow(ValueFlow::value(SliceValue::Param(lower)));
        }
        FlowOperand::unknown()
    }

    /// An unqualified column: of the only entry that has it; otherwise its entry is uncertain.
    fn find_column(
        &mut self,
        sources: &[FromItem],
        column: &str,
        depth: usize,
    ) -> Option<FlowOperand> {
        let has = |reader: &Self, source: &FromItem| reader.has_column(source, column, depth);
        let certain: Vec<&FromItem> =
            sources.iter().filter(|one| has(self, one) == Some(true)).collect();
        let possible: Vec<&FromItem> =
            sources.iter().filter(|one| has(self, one) != Some(false)).collect();
        match (certain.as_slice(), possible.as_slice()) {
            ([one], _) | ([], [one]) => self.column_of(one, column, depth),
            ([], []) => None,
            _ => {
                // It may belong to any of them: all count as read, and none is narrowed.
                for source in possible {
                    self.column_of(source, column, depth);
                }
                Some(FlowOperand::unknown())
            }
        }
    }

    /// Whether an entry has a column; `None` if unknown.
    fn has_column(&self, source: &FromItem, column: &str, depth: usize) -> Option<bool> {
        match &source.kind {
            SourceKind::Table(node) => {
                let columns = self.context.columns_of(&self.nodes[*node].name)?;
                Some(columns.contains(column))
            }
            SourceKind::Derived(relation) => {
                if relation.columns.iter().any(|one| one.name.as_deref() == Some(column)) {
                    return Some(true);
                }
                let is_wide = relation.stars.len() > STAR_WIDTH;
                if depth > STAR_DEPTH
                    || is_wide
                    || relation.columns.iter().any(|one| one.name.is_none())
                {
                    return None;
                }
                let mut found = Some(false);
                for star in &relation.stars {
                    match self.has_column(star, column, depth + 1) {
                        Some(true) => return Some(true),
                        Some(false) => {}
                        None => found = None,
                    }
                }
                found
            }
            SourceKind::Opaque => None,
        }
    }

    /// A column of an entry, which counts as read.
    pub(super) fn column_of(
        &mut self,
        source: &FromItem,
        column: &str,
        depth: usize,
    ) -> Option<FlowOperand> {
        let mut operand = match &source.kind {
            SourceKind::Table(node) => {
                self.nodes[*node].read.add_column(column);
                let column = (*node, column.to_owned());
                let target = NarrowedColumn { column: column.clone(), guards: Vec::new() };
                FlowOperand { flow: ValueFlow::column(column), targets: vec![target] }
            }
            SourceKind::Derived(relation) => {
                let named = |one: &&OutputColumn| one.name.as_deref() == Some(column);
                match relation.columns.iter().find(named) {
                    Some(found) => found.operand.clone(),
                    None if depth > STAR_DEPTH || relation.stars.len() > STAR_WIDTH => {
                        return None;
                    }
                    None => match relation.stars.as_slice() {
                        [] => return None,
                        [star] => self.column_of(star, column, depth + 1)?,
                        stars => {
                            let stars = stars.to_vec();
                            self.find_column(&stars, column, depth + 1)?
                        }
                    },
                }
            }
            SourceKind::Opaque => FlowOperand::unknown(),
        };
        if source.is_nullable {
            operand.flow.known.insert(SliceValue::Null);
        }
        Some(operand)
    }

    /// Marks all columns of an entry as read; those of a query are read at the query.
    pub(super) fn read_all(&mut self, source: &FromItem) {
        match &source.kind {
            SourceKind::Table(node) => self.nodes[*node].read = ColumnSet::All,
            SourceKind::Derived(_) | SourceKind::Opaque => {}
        }
    }

    /// Records that `one` equals `two`: each narrows the columns of the other.
    pub(super) fn equate(&mut self, one: &FlowOperand, two: &FlowOperand) {
        self.narrow(one, &two.flow);
        self.narrow(two, &one.flow);
    }

    /// Records that `one` is a value of `flow`.
    pub(super) fn narrow(&mut self, one: &FlowOperand, flow: &ValueFlow) {
        let narrowed = self.narrowed.clone();
        for target in &one.targets {
            let may = narrowed.as_ref().is_none_or(|nodes| nodes.contains(&target.column.0));
            if may && !flow.is_unknown {
                self.constraints.push(Constraint { target: target.clone(), flow: flow.clone() });
            }
        }
    }
}
