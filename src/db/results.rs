//! What statements returned, kept up to a cap while everything is counted.

/// Longest value kept of one column, in bytes.
const CELL_MAX: usize = 64 * 1024;

/// One result set.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rows {
    /// Column names.
    pub columns: Vec<String>,
    /// Values as text, at most as many rows as were asked for.
    pub rows: Vec<Vec<Option<String>>>,
    /// How many rows there were in all.
    pub count: u64,
}

impl Rows {
    /// The value in the first row, in column `at`.
    pub fn first(&self, at: usize) -> Option<&str> {
        self.rows.first()?.get(at)?.as_deref()
    }

    /// Level, number and text of each warning in what `SHOW WARNINGS` gives.
    pub(in crate::db) fn warnings(&self) -> Vec<(String, String, String)> {
        let text =
            |row: &[Option<String>], at: usize| row.get(at).cloned().flatten().unwrap_or_default();
        self.rows.iter().map(|row| (text(row, 0), text(row, 1), text(row, 2))).collect()
    }
}

/// Result sets of one or more statements.
///
/// A result set without rows is not here: sqlx tells no column names for one, so it looks like a
/// statement that returns nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Results {
    rows_kept: usize,
    sets_kept: usize,
    /// Longest value that is kept.
    cell_kept: usize,
    is_open: bool,
    /// The result sets that are kept, in their order.
    pub sets: Vec<Rows>,
    /// How many further ones there were.
    pub sets_left_out: u64,
    /// How many rows came back in all.
    pub rows_read: u64,
    /// How many rows all statements changed.
    pub rows_affected: u64,
}

impl Results {
    /// Keeps so many rows per set, and so many sets.
    pub fn keeping(rows: usize, sets: usize) -> Self {
        Self { rows_kept: rows, sets_kept: sets, cell_kept: CELL_MAX, ..Self::default() }
    }

    /// Keeps so many rows of one set, and every value to its end: for rows that we wrote ourselves.
    pub fn uncut(rows: usize) -> Self {
        Self { cell_kept: usize::MAX, ..Self::keeping(rows, 1) }
    }

    /// Takes a row; `columns` and `values` are asked for only when they are kept.
    pub(crate) fn row(
        &mut self,
        columns: impl FnOnce() -> Vec<String>,
        values: impl FnOnce() -> Vec<Option<String>>,
    ) {
        self.rows_read += 1;
        if !self.is_open {
            self.is_open = true;
            if self.sets.len() < self.sets_kept {
                self.sets.push(Rows { columns: columns(), ..Rows::default() });
            } else {
                self.sets_left_out += 1;
            }
        }
        if self.sets_left_out > 0 {
            return;
        }
        let Some(set) = self.sets.last_mut() else {
            return;
        };
        set.count += 1;
        if set.rows.len() < self.rows_kept {
            let most = self.cell_kept;
            set.rows.push(values().into_iter().map(|v| v.map(|v| clip(v, most))).collect());
        }
    }

    /// Ends a result set or a statement that changed `affected` rows.
    pub(crate) fn end(&mut self, affected: u64) {
        self.is_open = false;
        self.rows_affected += affected;
    }
}

fn clip(mut text: String, most: usize) -> String {
    if text.len() > most {
        text.truncate(text.floor_char_boundary(most));
        text.push('…');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_is_counted_and_little_is_kept() {
        let mut results = Results::keeping(2, 1);
        for set in 0..3 {
            for row in 0..5 {
                results.row(|| vec!["a".into()], || vec![Some(format!("{set}.{row}"))]);
            }
            results.end(0);
        }
        results.end(7);
        assert_eq!((results.sets.len(), results.sets_left_out), (1, 2));
        assert_eq!((results.sets[0].rows.len(), results.sets[0].count), (2, 5));
        assert_eq!((results.rows_read, results.rows_affected), (15, 7));
    }
}
