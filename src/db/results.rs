//! Results of statements, kept up to limits while everything is counted.

use crate::db::cell::{Cell, CellType, UnreadableValue};
use crate::db::decode::Purpose;

/// One result set.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rows {
    /// Column names.
    pub columns: Vec<String>,
    /// The server's names of their types.
    pub types: Vec<String>,
    /// The types of their values; `None` for a column in which every value is NULL.
    pub value_types: Vec<Option<CellType>>,
    /// Values as text, up to the requested number of rows.
    pub rows: Vec<Vec<Option<String>>>,
    /// Total number of rows.
    pub count: u64,
    /// Values that cannot become outputs; `rows` has a displayable text in their place.
    pub faults: Vec<CellFault>,
    /// Bytes of the kept values that are not large.
    pub(in crate::db) bytes: usize,
    /// Bytes of the kept large values.
    pub(in crate::db) large_bytes: usize,
}

/// A value that cannot become an output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CellFault {
    /// Its row, from 0.
    pub row: usize,
    /// Its column, from 0.
    pub column: usize,
    /// The reason: anything but `Null` and `Value`.
    pub cell: Cell,
}

/// A column of a result set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ResultColumn {
    pub(crate) name: String,
    /// The server's name of its type.
    pub(crate) type_name: String,
}

impl Rows {
    fn new(columns: Vec<ResultColumn>) -> Self {
        let value_types = vec![None; columns.len()];
        let (columns, types) =
            columns.into_iter().map(|column| (column.name, column.type_name)).unzip();
        Self { columns, types, value_types, ..Self::default() }
    }

    /// The value in the first row, in column `at`.
    pub fn first(&self, at: usize) -> Option<&str> {
        self.rows.first()?.get(at)?.as_deref()
    }

    /// Level, number and text of each warning in the result of `SHOW WARNINGS`.
    pub(in crate::db) fn warnings(&self) -> Vec<(String, String, String)> {
        let text =
            |row: &[Option<String>], at: usize| row.get(at).cloned().flatten().unwrap_or_default();
        self.rows.iter().map(|row| (text(row, 0), text(row, 1), text(row, 2))).collect()
    }

    /// The value in a kept row.
    pub fn cell_at(&self, row: usize, column: usize) -> Option<Cell> {
        let is_it = |fault: &&CellFault| (fault.row, fault.column) == (row, column);
        if let Some(fault) = self.faults.iter().find(is_it) {
            return Some(fault.cell.clone());
        }
        let ty = self.value_types.get(column).copied().flatten().unwrap_or(CellType::Text);
        let value = self.rows.get(row)?.get(column)?.clone();
        Some(value.map_or(Cell::Null, |text| Cell::Value(ty, text)))
    }

    /// The values of the first row; empty when there is no row.
    pub fn first_cells(&self) -> Vec<Cell> {
        (0..self.columns.len()).filter_map(|column| self.cell_at(0, column)).collect()
    }

    /// The names of PostgreSQL cursors in the rows, in order; from now on their names are their
    /// values. NULL is no cursor.
    pub(crate) fn take_cursors(&mut self) -> Vec<String> {
        let columns: Vec<usize> =
            (0..self.types.len()).filter(|at| is_cursor(&self.types[*at])).collect();
        let mut names = Vec::new();
        let faults = std::mem::take(&mut self.faults);
        for fault in faults {
            let place = self.rows.get_mut(fault.row).and_then(|row| row.get_mut(fault.column));
            match (&fault.cell, place) {
                (Cell::Unreadable(UnreadableValue { shown: Some(name), .. }), Some(place))
                    if columns.contains(&fault.column) =>
                {
                    *place = Some(name.clone());
                    names.push(name.clone());
                }
                _ => self.faults.push(fault),
            }
        }
        for column in columns {
            self.value_types[column] = Some(CellType::Text);
        }
        names
    }

    /// Keeps a row. A value that cannot become an output is stored as a fault, because a truncated
    /// value, or a remark, would be taken for the value.
    fn keep_row(&mut self, values: Vec<Cell>, limits: &ResultLimits) {
        let value_max = limits.value_bytes;
        let row = self.rows.len();
        let mut kept = Vec::with_capacity(values.len());
        for (column, value) in values.into_iter().enumerate() {
            let value = match self.checked(column, value, limits) {
                Cell::Null => None,
                Cell::Value(_, text) => Some(text),
                cell @ (Cell::Unreadable(_) | Cell::TooLong(_) | Cell::TooLongTogether(_)) => {
                    let type_name = self.types.get(column).map_or("value", String::as_str);
                    let shown = match &cell {
                        Cell::TooLong(bytes) | Cell::TooLongTogether(bytes) => {
                            format!("<{type_name} of {bytes} bytes>")
                        }
                        Cell::Unreadable(UnreadableValue { shown: Some(shown), .. })
                            if shown.len() <= value_max && !is_cursor(type_name) =>
                        {
                            shown.clone()
                        }
                        _ => format!("<{type_name}>"),
                    };
                    self.faults.push(CellFault { row, column, cell });
                    Some(shown)
                }
            };
            match value.as_ref().map_or(0, String::len) {
                large if large > limits.inline_bytes => self.large_bytes += large,
                small => self.bytes += small,
            }
            kept.push(value);
        }
        self.rows.push(kept);
    }

    /// The value, if it is not too long and its type is compatible with those above it.
    fn checked(&mut self, column: usize, value: Cell, limits: &ResultLimits) -> Cell {
        let Cell::Value(ty, text) = value else { return value };
        if text.len() > limits.value_bytes {
            return Cell::TooLong(text.len());
        }
        let is_large = text.len() > limits.inline_bytes;
        if is_large && text.len() > limits.large_bytes.saturating_sub(self.large_bytes) {
            return Cell::TooLongTogether(text.len());
        }
        let Some(known) = self.value_types.get_mut(column) else { return Cell::Value(ty, text) };
        match known.map_or(Some(ty), |before| before.joined_with(ty)) {
            Some(joined) => {
                *known = Some(joined);
                Cell::Value(ty, text)
            }
            None => Cell::Unreadable(UnreadableValue {
                shown: Some(text),
                reason:
                    "stands in a column that has bytes as well as other values; return one of them"
                        .to_owned(),
            }),
        }
    }
}

/// Whether a type is that of PostgreSQL's cursor names.
fn is_cursor(type_name: &str) -> bool {
    type_name.eq_ignore_ascii_case("refcursor")
}

/// How much of the results is kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ResultLimits {
    /// Rows of each result set.
    pub rows: usize,
    /// Result sets.
    pub sets: usize,
    /// Bytes of one value.
    pub value_bytes: usize,
    /// Size in bytes above which a value is large.
    pub inline_bytes: usize,
    /// Bytes of all values that are not large, together.
    pub total_bytes: usize,
    /// Bytes of all large values, together.
    pub large_bytes: usize,
}

impl ResultLimits {
    /// Without limits on values.
    pub(in crate::db) fn uncut() -> Self {
        Self {
            rows: usize::MAX,
            sets: usize::MAX,
            value_bytes: usize::MAX,
            inline_bytes: usize::MAX,
            total_bytes: usize::MAX,
            large_bytes: usize::MAX,
        }
    }
}

/// Which result sets are kept when there are too many.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Sets {
    /// The first ones.
    #[default]
    First,
    /// The first ones and, replacing the last of these, the very last one.
    FirstAndLast,
}

/// Whether a statement that returned no row returned a result set. sqlx does not report a set
/// without rows, not even its columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Gives {
    /// A query: exactly one set.
    OneSet,
    /// A CALL, or a block: any number of sets, and the end of the statement after them.
    Sets,
    /// None.
    NoSet,
}

/// Result sets of one or more statements.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Results {
    limits: ResultLimits,
    which: Sets,
    purpose: Purpose,
    is_without_values: bool,
    is_open: bool,
    /// A set without rows has ended, or the statement that may return several: what follows
    /// decides.
    may_be_set: bool,
    /// The name of the first column of our own first set, which follows those of a body.
    mark: Option<&'static str>,
    /// That set and the following ones.
    own: Vec<Rows>,
    /// The kept result sets, in order.
    pub sets: Vec<Rows>,
    /// Number of further ones.
    pub sets_left_out: u64,
    /// Total number of rows returned.
    pub rows_read: u64,
    /// Total number of rows changed.
    pub rows_affected: u64,
}

/// Maximum length of a value of our own statements, in bytes.
const OWN_VALUE_MAX: usize = 64 * 1024;

impl Results {
    /// Keeps this many rows per set, and this many sets: for our own statements.
    pub fn keeping(rows: usize, sets: usize) -> Self {
        let limits =
            ResultLimits { rows, sets, value_bytes: OWN_VALUE_MAX, ..ResultLimits::uncut() };
        Self { limits, ..Self::default() }
    }

    /// Keeps this many rows of one set, with complete values: for rows that we wrote ourselves.
    pub fn uncut(rows: usize) -> Self {
        let mut results = Self::keeping(rows, 1);
        results.limits.value_bytes = usize::MAX;
        results
    }

    /// Keeps what the limits allow of a body's results, always including the last set.
    pub fn of_body(limits: ResultLimits) -> Self {
        Self { limits, which: Sets::FirstAndLast, purpose: Purpose::Body, ..Self::default() }
    }

    /// For a statement that is known to return no values.
    #[must_use]
    pub fn without_values(self) -> Self {
        Self { is_without_values: true, ..self }
    }

    /// Whose statements the results belong to.
    pub(in crate::db) fn purpose(&self) -> Purpose {
        self.purpose
    }

    /// Whether values may arrive that become outputs.
    pub(in crate::db) fn expects_values(&self) -> bool {
        self.purpose == Purpose::Body && !self.is_without_values
    }

    /// Separates our own result sets from the others, whatever the limits: the one whose first
    /// column is named `mark`, and all after it.
    pub(in crate::db) fn set_apart(&mut self, mark: &'static str) {
        self.mark = Some(mark);
    }

    /// Those sets, once they have arrived; empty when the mark was not found.
    pub(in crate::db) fn take_own(&mut self) -> Vec<Rows> {
        self.mark = None;
        std::mem::take(&mut self.own)
    }

    /// Adds a row; `columns` and `values` are called only when they are kept.
    pub(crate) fn add_row(
        &mut self,
        columns: impl FnOnce() -> Vec<ResultColumn>,
        values: impl FnOnce() -> Vec<Cell>,
    ) {
        if !self.is_open {
            self.is_open = true;
            let columns = columns();
            let is_marked =
                self.mark.is_some() && columns.first().map(|c| c.name.as_str()) == self.mark;
            if is_marked || !self.own.is_empty() {
                // What ended before our own sets was the statement of the body.
                self.may_be_set = false;
                self.own.push(Rows::new(columns));
            } else {
                self.count_empty_set();
                self.open_set(Rows::new(columns));
            }
        }
        if let Some(set) = self.own.last_mut() {
            set.count += 1;
            set.keep_row(values(), &ResultLimits::uncut());
            return;
        }
        self.rows_read += 1;
        let is_shut = self.which == Sets::First && self.sets_left_out > 0;
        let others: usize = self.sets.iter().map(|set| set.bytes).sum();
        let large: usize = self.sets.iter().map(|set| set.large_bytes).sum();
        let mut limits = self.limits;
        let Some(set) = self.sets.last_mut().filter(|_| !is_shut) else { return };
        set.count += 1;
        let has_room = set.rows.len() < self.limits.rows
            && others < self.limits.total_bytes
            // Rows are kept from the first one on without gaps.
            && set.rows.len() as u64 + 1 == set.count;
        if has_room {
            // Large values are counted per set.
            limits.large_bytes = limits.large_bytes.saturating_sub(large - set.large_bytes);
            set.keep_row(values(), &limits);
        }
    }

    fn open_set(&mut self, set: Rows) {
        if self.sets.len() < self.limits.sets {
            self.sets.push(set);
            return;
        }
        self.sets_left_out += 1;
        if self.which == Sets::FirstAndLast
            && let Some(last) = self.sets.last_mut()
        {
            *last = set;
        }
    }

    /// For a body. Our own statements are identified by their sets with rows.
    fn counts_empty_sets(&self) -> bool {
        self.which == Sets::FirstAndLast
    }

    /// The end without rows was a result set, because something follows it.
    fn count_empty_set(&mut self) {
        if std::mem::take(&mut self.may_be_set) && self.counts_empty_sets() {
            self.open_set(Rows::default());
        }
    }

    /// Ends a result set, or a statement that changed `affected` rows.
    pub(crate) fn end_set(&mut self, affected: u64, gives: Gives) {
        self.rows_affected += affected;
        if std::mem::take(&mut self.is_open) || !self.own.is_empty() {
            return;
        }
        self.count_empty_set();
        match gives {
            Gives::OneSet if self.counts_empty_sets() => self.open_set(Rows::default()),
            Gives::OneSet => {}
            Gives::Sets => self.may_be_set = true,
            Gives::NoSet => {}
        }
    }

    /// Ends everything that was sent at once.
    pub(crate) fn finish(&mut self) {
        self.may_be_set = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(names: &[&str]) -> Vec<ResultColumn> {
        let column =
            |name: &&str| ResultColumn { name: (*name).to_owned(), type_name: "TEXT".to_owned() };
        names.iter().map(column).collect()
    }

    fn limits(rows: usize, sets: usize) -> ResultLimits {
        ResultLimits { rows, sets, value_bytes: 10, total_bytes: 1_000, ..ResultLimits::uncut() }
    }

    #[test]
    fn everything_is_counted_and_little_is_kept() {
        for (mut results, last) in
            [(Results::keeping(2, 1), "0.0"), (Results::of_body(limits(2, 1)), "2.0")]
        {
            for set in 0..3 {
                for row in 0..5 {
                    results.add_row(
                        || named(&["a"]),
                        || vec![Cell::from_text(format!("{set}.{row}"))],
                    );
                }
                results.end_set(0, Gives::Sets);
            }
            results.end_set(7, Gives::Sets);
            results.finish();
            assert_eq!((results.sets.len(), results.sets_left_out), (1, 2));
            assert_eq!((results.sets[0].rows.len(), results.sets[0].count), (2, 5));
            assert_eq!((results.rows_read, results.rows_affected), (15, 7));
            assert_eq!(results.sets[0].first(0), Some(last));
        }
    }

    #[test]
    fn sets_without_rows_are_counted() {
        // CALL: a set of one row, an empty one, and its own end.
        let mut results = Results::of_body(limits(2, 5));
        results.add_row(|| named(&["a"]), || vec![Cell::Null]);
        results.end_set(0, Gives::Sets);
        results.end_set(0, Gives::Sets);
        results.end_set(3, Gives::Sets);
        results.finish();
        let counts = |results: &Results| results.sets.iter().map(|s| s.count).collect::<Vec<_>>();
        assert_eq!(counts(&results), [1, 0]);
        // An UPDATE, a query without rows.
        results.end_set(1, Gives::NoSet);
        results.end_set(0, Gives::OneSet);
        assert_eq!(counts(&results), [1, 0, 0]);
        // Before our own set there is the end of the CALL.
        results.set_apart("ours");
        results.end_set(0, Gives::Sets);
        results.end_set(0, Gives::Sets);
        results.add_row(|| named(&["ours"]), || vec![Cell::Null]);
        results.end_set(0, Gives::Sets);
        results.finish();
        assert_eq!(counts(&results), [1, 0, 0, 0]);
        assert_eq!(results.take_own().len(), 1);
    }

    #[test]
    fn a_value_over_the_limit_is_no_value() {
        let mut results = Results::of_body(limits(9, 2));
        results.add_row(
            || named(&["a", "b"]),
            || vec![Cell::from_text("x".repeat(11)), Cell::from_text("x".repeat(10))],
        );
        results.end_set(0, Gives::OneSet);
        let set = &results.sets[0];
        assert_eq!(set.faults, [CellFault { row: 0, column: 0, cell: Cell::TooLong(11) }]);
        assert_eq!(set.first_cells(), [Cell::TooLong(11), Cell::from_text("x".repeat(10))]);
        assert_eq!(set.first(0), Some("<TEXT of 11 bytes>"));
        assert_eq!(set.first(1), Some("xxxxxxxxxx"));
    }

    #[test]
    fn bytes_do_not_mix_with_other_values() {
        let mut results = Results::of_body(limits(9, 2));
        for cell in [
            Cell::Value(CellType::Int, "1".into()),
            Cell::Null,
            Cell::from_text("a"),
            Cell::Value(CellType::Bytes, "0x61".into()),
        ] {
            results.add_row(|| named(&["a"]), || vec![cell]);
        }
        results.end_set(0, Gives::OneSet);
        let set = &results.sets[0];
        assert_eq!(set.value_types, [Some(CellType::Text)]);
        assert_eq!((set.faults.len(), set.faults[0].row), (1, 3));
        assert!(matches!(set.cell_at(3, 0), Some(Cell::Unreadable(_))));
        assert_eq!(set.cell_at(1, 0), Some(Cell::Null));
    }

    #[test]
    fn rows_are_kept_while_there_is_room_for_their_bytes() {
        let tight = ResultLimits { total_bytes: 15, ..limits(9, 2) };
        let mut results = Results::of_body(tight);
        for _ in 0..4 {
            results.add_row(|| named(&["a"]), || vec![Cell::from_text("x".repeat(10))]);
        }
        results.end_set(0, Gives::OneSet);
        assert_eq!((results.sets[0].rows.len(), results.sets[0].count), (2, 4));
    }

    #[test]
    fn sets_of_ours_are_set_apart_behind_whatever_came_before() {
        for kept in [0, 1, 9] {
            let mut results = Results::keeping(2, kept);
            results.set_apart("ours");
            for set in 0..3 {
                results.add_row(|| named(&["theirs", "ours"]), || vec![Cell::Null, Cell::Null]);
                results.add_row(|| named(&["ours"]), || vec![Cell::from_text(format!("{set}"))]);
                results.end_set(1, Gives::Sets);
            }
            results.add_row(|| named(&["ours", "b"]), || vec![Cell::from_text("1"), Cell::Null]);
            results.end_set(0, Gives::Sets);
            for line in ["x", "y"] {
                results.add_row(|| named(&["behind it"]), || vec![Cell::from_text(line)]);
            }
            results.end_set(0, Gives::Sets);
            let own: Vec<_> = results.take_own().into_iter().map(|set| set.rows).collect();
            let behind = ["x", "y"].map(|line| vec![Some(line.to_owned())]);
            assert_eq!(own, [vec![vec![Some("1".to_owned()), None]], behind.to_vec()]);
            assert_eq!((results.sets.len(), results.rows_read), (kept.min(3), 6));
            assert_eq!((results.sets_left_out, results.rows_affected), (3 - kept.min(3) as u64, 3));
            // Then it is an ordinary name.
            results.add_row(|| named(&["ours"]), || vec![Cell::from_text("2")]);
            assert_eq!((results.take_own().len(), results.rows_read), (0, 7));
        }
    }
    #[test]
    fn large_values_have_a_limit_of_their_own() {
        let large = ResultLimits { inline_bytes: 8, large_bytes: 25, ..limits(9, 2) };
        let mut results = Results::of_body(large);
        for set in 0..2 {
            for _ in 0..2 {
                let cells = || vec![Cell::from_text("x".repeat(9)), Cell::from_text("y".repeat(8))];
                results.add_row(|| named(&["a", "b"]), cells);
            }
            results.end_set(0, Gives::Sets);
            assert_eq!(results.sets[set].rows.len(), 2);
        }
        // 9 and 9 are kept, a third 9 and a fourth exceed 25; small values continue.
        assert_eq!(results.sets[0].faults, []);
        let cells: Vec<Cell> = results.sets[1].faults.iter().map(|f| f.cell.clone()).collect();
        assert_eq!(cells, [Cell::TooLongTogether(9), Cell::TooLongTogether(9)]);
        assert_eq!(results.sets[1].cell_at(1, 1), Some(Cell::from_text("y".repeat(8))));
    }
}
