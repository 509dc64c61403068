//! Analyses expressions and conditions: columns read, functions called, possible values.

use crate::lineage::access::CallKind;
use crate::lineage::flow::{FlowOperand, ValueFlow};
use crate::lineage::scope::{MetCall, ScopeResult, StatementReader, UnsupportedSyntax};
use crate::lineage::slice::SliceValue;
use sqlparser::ast::{
    self, BinaryOperator, CaseWhen, CharacterLength, DataType, Expr, Function, FunctionArg,
    FunctionArgExpr, FunctionArguments, Query, UnaryOperator, Value, WindowSpec, WindowType,
};

/// Functions that execute the text that they receive, possibly on another server.
const RUNS_TEXT: [&str; 12] = [
    "dblink",
    "dblink_exec",
    "dblink_send_query",
    "dblink_open",
    "query_to_xml",
    "query_to_xml_and_xmlschema",
    "query_to_xmlschema",
    "cursor_to_xml",
    "table_to_xml",
    "crosstab",
    "connectby",
    "ts_stat",
];

/// Whether a function executes the text that it receives.
pub(super) fn runs_text(name: &str) -> bool {
    RUNS_TEXT.contains(&name.to_ascii_lowercase().as_str())
}

impl StatementReader<'_> {
    /// Analyses a condition that all relevant rows fulfil.
    pub(super) fn condition(&mut self, expr: &Expr) -> ScopeResult<()> {
        match expr {
            Expr::Nested(inner) => self.condition(inner),
            Expr::BinaryOp { left, op: BinaryOperator::And, right } => {
                self.condition(left)?;
                self.condition(right)
            }
            Expr::BinaryOp { left, op: BinaryOperator::Or, .. }
                if !matches!(**left, Expr::Value(_)) =>
            {
                self.alternatives(expr)
            }
            Expr::BinaryOp { left, op: BinaryOperator::Eq | BinaryOperator::Spaceship, right } => {
                self.equality(left, right)
            }
            Expr::IsNotDistinctFrom(left, right) => self.equality(left, right),
            Expr::InList { expr, list, negated: false } => {
                if let Expr::Tuple(columns) = &**expr {
                    return self.tuples_in(columns, list);
                }
                let one = self.expression(expr)?;
                let mut flow = ValueFlow::default();
                for value in list {
                    flow = flow.either(self.expression(value)?.flow);
                }
                self.narrow(&one, &flow);
                Ok(())
            }
            Expr::InSubquery { expr, subquery, negated: false } => {
                let one = self.expression(expr)?;
                let flow = self.subquery(subquery)?;
                self.narrow(&one, &flow);
                Ok(())
            }
            Expr::AnyOp { left, compare_op: BinaryOperator::Eq, right, .. } => {
                let one = self.expression(left)?;
                match &**right {
                    Expr::Array(array) => {
                        let mut flow = ValueFlow::default();
                        for value in &array.elem {
                            flow = flow.either(self.expression(value)?.flow);
                        }
                        self.narrow(&one, &flow);
                    }
                    other => {
                        self.expression(other)?;
                    }
                }
                Ok(())
            }
            Expr::IsNull(inner) => {
                let one = self.expression(inner)?;
                self.narrow(&one, &ValueFlow::value(SliceValue::Null));
                Ok(())
            }
            other => self.expression(other).map(|_| ()),
        }
    }

    fn equality(&mut self, left: &Expr, right: &Expr) -> ScopeResult<()> {
        if let (Expr::Tuple(left), Expr::Tuple(right)) = (left, right)
            && left.len() == right.len()
        {
            for (left, right) in left.iter().zip(right) {
                self.equality(left, right)?;
            }
            return Ok(());
        }
        let (left, right) = (self.expression(left)?, self.expression(right)?);
        self.equate(&left, &right);
        Ok(())
    }

    /// `(a, b) IN ((1, 2), (3, 4))`
    fn tuples_in(&mut self, columns: &[Expr], list: &[Expr]) -> ScopeResult<()> {
        let mut flows = vec![ValueFlow::default(); columns.len()];
        for row in list {
            match row {
                Expr::Tuple(values) if values.len() == columns.len() => {
                    for (flow, value) in flows.iter_mut().zip(values) {
                        *flow = std::mem::take(flow).either(self.expression(value)?.flow);
                    }
                }
                other => {
                    self.expression(other)?;
                    flows.fill(ValueFlow::unknown());
                }
            }
        }
        for (column, flow) in columns.iter().zip(&flows) {
            let one = self.expression(column)?;
            self.narrow(&one, flow);
        }
        Ok(())
    }

    /// `a OR b`: a column is narrowed if every branch narrows it.
    fn alternatives(&mut self, expr: &Expr) -> ScopeResult<()> {
        let mut branches = Vec::new();
        let mut open = vec![expr];
        while let Some(one) = open.pop() {
            match one {
                Expr::Nested(inner) => open.push(inner),
                Expr::BinaryOp { left, op: BinaryOperator::Or, right } => {
                    open.push(left);
                    open.push(right);
                }
                other => branches.push(other),
            }
        }
        let start = self.constraints.len();
        let mut common: Option<Vec<(crate::lineage::flow::NarrowedColumn, ValueFlow)>> = None;
        for branch in branches {
            let before = self.constraints.len();
            self.condition(branch)?;
            let own = self.constraints.split_off(before);
            common = Some(match common {
                None => own.into_iter().map(|one| (one.target, one.flow)).collect(),
                Some(common) => common
                    .into_iter()
                    .filter_map(|(target, flow)| {
                        let same = own.iter().find(|one| one.target == target)?;
                        Some((target, flow.either(same.flow.clone())))
                    })
                    .collect(),
            });
        }
        self.constraints.truncate(start);
        for (target, flow) in common.unwrap_or_default() {
            self.constraints.push(crate::lineage::flow::Constraint { target, flow });
        }
        Ok(())
    }

    /// Analyses a scalar subquery; returns the possible values of its first column.
    pub(super) fn subquery(&mut self, query: &Query) -> ScopeResult<ValueFlow> {
        // The limit of an outer join concerns its own tables; the tables of a subquery are separate.
        let narrowed = self.narrowed.take();
        let relation = self.query(query);
        self.narrowed = narrowed;
        let relation = relation?;
        Ok(match (relation.columns.first(), relation.stars.is_empty()) {
            (Some(column), true) => column.operand.flow.clone(),
            _ => ValueFlow::unknown(),
        })
    }

    /// Analyses any expression.
    pub(super) fn expression(&mut self, expr: &Expr) -> ScopeResult<FlowOperand> {
        match expr {
            Expr::Identifier(ident) => {
                let name = self.column_name(ident);
                Ok(self.resolve(&name))
            }
            Expr::CompoundIdentifier(parts) => match parts.as_slice() {
                [.., qualifier, column] => {
                    let qualifier = self.column_name(qualifier);
                    let column = self.column_name(column);
                    Ok(self.resolve_qualified(&qualifier, &column))
                }
                _ => Ok(FlowOperand::unknown()),
            },
            Expr::Value(value) => Ok(FlowOperand::from_flow(literal(&value.value))),
            Expr::TypedString(typed) => Ok(FlowOperand::from_flow(literal(&typed.value.value))),
            Expr::Nested(inner) => self.expression(inner),
            Expr::Collate { expr, .. } => self.expression(expr),
            Expr::Cast { expr, data_type, .. } => {
                let operand = self.expression(expr)?;
                Ok(FlowOperand::from_flow(cast_flow(operand.flow, data_type)))
            }
            Expr::Convert { expr, styles, data_type, .. } => {
                let operand = self.expression(expr)?;
                self.read_expressions(styles)?;
                Ok(FlowOperand::from_flow(match data_type {
                    Some(data_type) => cast_flow(operand.flow, data_type),
                    None => operand.flow,
                }))
            }
            Expr::UnaryOp { op, expr } => {
                let operand = self.expression(expr)?;
                Ok(FlowOperand::from_flow(signed(*op, operand.flow)))
            }
            Expr::Case { operand, conditions, else_result, .. } => {
                self.read_case(operand.as_deref(), conditions, else_result.as_deref())
            }
            Expr::Function(function) => self.function(function),
            Expr::Subquery(query) => {
                let flow = self.subquery(query)?;
                Ok(FlowOperand::from_flow(flow.either(ValueFlow::value(SliceValue::Null))))
            }
            Expr::Exists { subquery, .. } | Expr::InSubquery { subquery, .. } => {
                if let Expr::InSubquery { expr, .. } = expr {
                    self.expression(expr)?;
                }
                self.subquery(subquery)?;
                Ok(FlowOperand::unknown())
            }
            other => {
                self.parts(other)?;
                Ok(FlowOperand::unknown())
            }
        }
    }

    pub(super) fn read_expressions<'e>(
        &mut self,
        exprs: impl IntoIterator<Item = &'e Expr>,
    ) -> ScopeResult<()> {
        for expr in exprs {
            self.expression(expr)?;
        }
        Ok(())
    }

    fn read_case(
        &mut self,
        operand: Option<&Expr>,
        conditions: &[CaseWhen],
        otherwise: Option<&Expr>,
    ) -> ScopeResult<FlowOperand> {
        self.read_expressions(operand)?;
        let mut flow = match otherwise {
            Some(expr) => self.expression(expr)?.flow,
            None => ValueFlow::value(SliceValue::Null),
        };
        for when in conditions {
            self.expression(&when.condition)?;
            flow = flow.either(self.expression(&when.result)?.flow);
        }
        Ok(FlowOperand::from_flow(flow))
    }

    /// Analyses the parts of an expression whose value is not tracked.
    fn parts(&mut self, expr: &Expr) -> ScopeResult<()> {
        if let Some(operands) = operands(expr) {
            return self.read_expressions(operands);
        }
        match expr {
            Expr::Like { expr, pattern, escape_char, .. }
            | Expr::ILike { expr, pattern, escape_char, .. }
            | Expr::SimilarTo { expr, pattern, escape_char, .. } => {
                self.read_expressions([&**expr, &**pattern])?;
                self.read_expressions(escape_char.as_deref())
            }
            Expr::Between { expr, low, high, .. } => {
                self.read_expressions([&**expr, &**low, &**high])
            }
            Expr::InList { expr, list, .. } => {
                self.read_expressions([&**expr])?;
                self.read_expressions(list)
            }
            Expr::Substring { expr, substring_from, substring_for, .. } => {
                self.read_expressions([&**expr])?;
                self.read_expressions(substring_from.as_deref())?;
                self.read_expressions(substring_for.as_deref())
            }
            Expr::Trim { expr, trim_what, trim_characters, .. } => {
                self.read_expressions([&**expr])?;
                self.read_expressions(trim_what.as_deref())?;
                self.read_expressions(trim_characters.iter().flatten())
            }
            Expr::Overlay { expr, overlay_what, overlay_from, overlay_for } => {
                self.read_expressions([&**expr, &**overlay_what, &**overlay_from])?;
                self.read_expressions(overlay_for.as_deref())
            }
            Expr::GroupingSets(sets) | Expr::Cube(sets) | Expr::Rollup(sets) => {
                self.read_expressions(sets.iter().flatten())
            }
            Expr::Tuple(values) => self.read_expressions(values),
            Expr::Array(array) => self.read_expressions(&array.elem),
            Expr::Interval(interval) => self.read_expressions([&*interval.value]),
            Expr::MatchAgainst { columns, .. } => {
                for column in columns {
                    let name = self.object_name(column)?.name;
                    self.resolve(&name);
                }
                Ok(())
            }
            Expr::MemberOf(member) => self.read_expressions([&*member.value, &*member.array]),
            Expr::Wildcard(_) | Expr::QualifiedWildcard(..) => Ok(()),
            other => Err(UnsupportedSyntax(format!("an expression: {other}"))),
        }
    }

    pub(super) fn window(&mut self, spec: &WindowSpec) -> ScopeResult<()> {
        self.read_expressions(&spec.partition_by)?;
        self.read_expressions(spec.order_by.iter().map(|key| &key.expr))
    }

    fn function(&mut self, function: &Function) -> ScopeResult<FlowOperand> {
        let name = self.object_name(&function.name)?;
        let lower = name.name.to_lowercase();
        let mut arguments = Vec::new();
        match &function.args {
            FunctionArguments::None => {}
            FunctionArguments::Subquery(query) => {
                self.subquery(query)?;
            }
            FunctionArguments::List(list) => {
                for argument in &list.args {
                    arguments.push(self.argument(argument)?);
                }
                for clause in &list.clauses {
                    if let ast::FunctionArgumentClause::OrderBy(keys) = clause {
                        self.read_expressions(keys.iter().map(|key| &key.expr))?;
                    }
                }
            }
        }
        self.read_expressions(function.filter.as_deref())?;
        self.read_expressions(function.within_group.iter().map(|key| &key.expr))?;
        if let Some(WindowType::WindowSpec(spec)) = &function.over {
            self.window(spec)?;
        }
        let flow = match (lower.as_str(), arguments.as_slice()) {
            ("coalesce" | "ifnull" | "nvl", values) if name.schema.is_none() => {
                ValueFlow::any_of(values.iter().map(|(_, flow)| flow.clone()))
            }
            ("if", [_, one, two]) => one.1.clone().either(two.1.clone()),
            _ => ValueFlow::unknown(),
        };
        let line = self.line_of(&function.name);
        if runs_text(&lower) {
            self.dynamic.push(line);
        }
        self.calls.push(MetCall { routine: name, kind: CallKind::Function, arguments, line });
        Ok(FlowOperand::from_flow(flow))
    }

    fn argument(&mut self, argument: &FunctionArg) -> ScopeResult<(Option<String>, ValueFlow)> {
        let (name, value) = match argument {
            FunctionArg::Named { name, arg, .. } => (Some(self.column_name(name)), arg),
            FunctionArg::ExprNamed { name, arg, .. } => {
                let name = match name {
                    Expr::Identifier(ident) => Some(self.column_name(ident)),
                    _ => None,
                };
                (name, arg)
            }
            FunctionArg::Unnamed(arg) => (None, arg),
        };
        let flow = match value {
            FunctionArgExpr::Expr(expr) => self.expression(expr)?.flow,
            FunctionArgExpr::QualifiedWildcard(_)
            | FunctionArgExpr::Wildcard
            | FunctionArgExpr::WildcardWithOptions(_) => ValueFlow::unknown(),
        };
        Ok((name, flow))
    }

    /// `FROM f(a, b)`
    pub(super) fn call_in_from(
        &mut self,
        name: &ast::ObjectName,
        args: &[FunctionArg],
    ) -> ScopeResult<()> {
        let mut arguments = Vec::new();
        for argument in args {
            arguments.push(self.argument(argument)?);
        }
        let (routine, line) = (self.object_name(name)?, self.line_of(name));
        if runs_text(&routine.name) {
            self.dynamic.push(line);
        }
        self.calls.push(MetCall { routine, kind: CallKind::Function, arguments, line });
        Ok(())
    }

    /// `CALL p(a, b)`
    pub(super) fn procedure_call(&mut self, function: &Function) -> ScopeResult<()> {
        let before = self.calls.len();
        self.function(function)?;
        // Arguments are analysed first, so the call itself is the last one.
        if self.calls.len() > before
            && let Some(call) = self.calls.last_mut()
        {
            call.kind = CallKind::Procedure;
        }
        Ok(())
    }
}

/// The operands of an expression that consists of one or two operands only.
fn operands(expr: &Expr) -> Option<Vec<&Expr>> {
    match expr {
        Expr::IsFalse(one)
        | Expr::IsNotFalse(one)
        | Expr::IsTrue(one)
        | Expr::IsNotTrue(one)
        | Expr::IsNull(one)
        | Expr::IsNotNull(one)
        | Expr::IsUnknown(one)
        | Expr::IsNotUnknown(one)
        | Expr::IsJson { expr: one, .. }
        | Expr::IsNormalized { expr: one, .. }
        | Expr::JsonAccess { value: one, .. }
        | Expr::Extract { expr: one, .. }
        | Expr::Ceil { expr: one, .. }
        | Expr::Floor { expr: one, .. }
        | Expr::Prefixed { value: one, .. }
        | Expr::Named { expr: one, .. }
        | Expr::CompoundFieldAccess { root: one, .. }
        | Expr::OuterJoin(one) => Some(vec![one]),
        Expr::IsDistinctFrom(one, two)
        | Expr::IsNotDistinctFrom(one, two)
        | Expr::BinaryOp { left: one, right: two, .. }
        | Expr::AnyOp { left: one, right: two, .. }
        | Expr::AllOp { left: one, right: two, .. }
        | Expr::InUnnest { expr: one, array_expr: two, .. }
        | Expr::AtTimeZone { timestamp: one, time_zone: two }
        | Expr::Position { expr: one, r#in: two }
        | Expr::RLike { expr: one, pattern: two, .. } => Some(vec![one, two]),
        _ => None,
    }
}

/// The value of a literal; a placeholder is a parameter of the job.
fn literal(value: &Value) -> ValueFlow {
    match value {
        Value::Number(number, _) => ValueFlow::value(SliceValue::Number(number.clone())),
        Value::Boolean(yes) => {
            ValueFlow::value(SliceValue::Number(if *yes { "1" } else { "0" }.to_owned()))
        }
        Value::Null => ValueFlow::value(SliceValue::Null),
        Value::Placeholder(name) => ValueFlow::value(SliceValue::Param(name.to_lowercase())),
        Value::SingleQuotedString(text)
        | Value::DoubleQuotedString(text)
        | Value::EscapedStringLiteral(text)
        | Value::NationalStringLiteral(text) => ValueFlow::value(SliceValue::Text(text.clone())),
        Value::DollarQuotedString(text) => ValueFlow::value(SliceValue::Text(text.value.clone())),
        _ => ValueFlow::unknown(),
    }
}

/// A cast keeps a value if the type can represent it unchanged: a truncated text, a rounded number and the date of a
/// timestamp are different values.
fn cast_flow(flow: ValueFlow, data_type: &DataType) -> ValueFlow {
    // A cast column may hold values that a comparison of texts cannot decide.
    if !flow.from.is_empty() {
        return ValueFlow::unknown();
    }
    let keeps = |value: &SliceValue| match (data_type, value) {
        (_, SliceValue::Null) => true,
        (DataType::Text | DataType::Char(None) | DataType::Varchar(None), _) => true,
        (
            DataType::Char(Some(CharacterLength::IntegerLength { length, .. }))
            | DataType::Varchar(Some(CharacterLength::IntegerLength { length, .. })),
            SliceValue::Text(text) | SliceValue::Number(text),
        ) => text.chars().count() as u64 <= *length,
        (DataType::Date, SliceValue::Text(text)) => text.len() <= 10,
        (
            DataType::Integer(_)
            | DataType::Int(_)
            | DataType::BigInt(_)
            | DataType::SmallInt(_)
            | DataType::Numeric(_)
            | DataType::Decimal(_)
            | DataType::Unsigned
            | DataType::Signed,
            SliceValue::Text(text) | SliceValue::Number(text),
        ) => text.parse::<i64>().is_ok(),
        _ => false,
    };
    if flow.known.iter().all(keeps) { flow } else { ValueFlow::unknown() }
}

fn signed(op: UnaryOperator, flow: ValueFlow) -> ValueFlow {
    let is_number = |value: &SliceValue| matches!(value, SliceValue::Number(_));
    if !flow.from.is_empty() || flow.is_unknown || !flow.known.iter().all(is_number) {
        return ValueFlow::unknown();
    }
    match op {
        UnaryOperator::Plus => flow,
        UnaryOperator::Minus => ValueFlow::any_of(flow.known.into_iter().map(|value| {
            let SliceValue::Number(number) = value else { return ValueFlow::unknown() };
            let negated = number.strip_prefix('-').map_or(format!("-{number}"), ToOwned::to_owned);
            ValueFlow::value(SliceValue::Number(negated))
        })),
        _ => ValueFlow::unknown(),
    }
}
