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
    /// What the first column of the first set of our own is called, which comes behind those of a body.
    mark: Option<&'static str>,
    /// That set and those behind it.
    own: Vec<Rows>,
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

    /// Sets result sets of our own apart, whatever there is room for: the one whose first column is called
    /// `mark`, and all that follow it.
    pub(in crate::db) fn set_apart(&mut self, mark: &'static str) {
        self.mark = Some(mark);
    }

    /// Those sets, once they have come; empty when the mark was not seen.
    pub(in crate::db) fn take_own(&mut self) -> Vec<Rows> {
        self.mark = None;
        std::mem::take(&mut self.own)
    }

    /// Takes a row; `columns` and `values` are asked for only when they are kept.
    pub(crate) fn row(
        &mut self,
        columns: impl FnOnce() -> Vec<String>,
        values: impl FnOnce() -> Vec<Option<String>>,
    ) {
        let (is_first, is_kept) = (!self.is_open, self.sets.len() < self.sets_kept);
        let asks = is_first && (is_kept || self.mark.is_some());
        let columns = if asks { columns() } else { Vec::new() };
        let most = self.cell_kept;
        let clipped = |value: Option<String>| value.map(|text| clip(text, most));
        let is_marked = self.mark.is_some() && columns.first().map(String::as_str) == self.mark;
        if is_marked && is_first || !self.own.is_empty() {
            if is_first {
                self.is_open = true;
                self.own.push(Rows { columns, ..Rows::default() });
            }
            if let Some(set) = self.own.last_mut() {
                set.count += 1;
                set.rows.push(values().into_iter().map(clipped).collect());
            }
            return;
        }
        self.rows_read += 1;
        if is_first {
            self.is_open = true;
            if is_kept {
                self.sets.push(Rows { columns, ..Rows::default() });
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
            set.rows.push(values().into_iter().map(clipped).collect());
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

    #[test]
    fn sets_of_ours_are_set_apart_behind_whatever_came_before() {
        for kept in [0, 1, 9] {
            let mut results = Results::keeping(2, kept);
            results.set_apart("ours");
            for set in 0..3 {
                results.row(|| vec!["theirs".into(), "ours".into()], || vec![None, None]);
                results.row(|| vec!["ours".into()], || vec![Some(format!("{set}"))]);
                results.end(1);
            }
            results.row(|| vec!["ours".into(), "b".into()], || vec![Some("1".into()), None]);
            results.end(0);
            for line in ["x", "y"] {
                results.row(|| vec!["behind it".into()], || vec![Some(line.into())]);
            }
            results.end(0);
            let own: Vec<_> = results.take_own().into_iter().map(|set| set.rows).collect();
            let behind = ["x", "y"].map(|line| vec![Some(line.to_owned())]);
            assert_eq!(own, [vec![vec![Some("1".to_owned()), None]], behind.to_vec()]);
            assert_eq!((results.sets.len(), results.rows_read), (kept.min(3), 6));
            assert_eq!((results.sets_left_out, results.rows_affected), (3 - kept.min(3) as u64, 3));
            // Then it is a name like others.
            results.row(|| vec!["ours".into()], || vec![Some("2".into())]);
            assert_eq!((results.take_own().len(), results.rows_read), (0, 7));
        }
    }
}
