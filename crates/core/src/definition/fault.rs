//! A fault: the place, the problem and a hint.

use crate::definition::budget::Budget;
use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

/// A fault of a definition, or, as a warning, something to check.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct DefinitionFault {
    /// The file, by the given or derived path.
    pub file: String,
    /// The line, counted from 1; 0 for the whole file.
    pub line: u32,
    /// The problem, naming the element.
    pub what: String,
    /// A hint.
    pub cure: String,
}

impl fmt::Display for DefinitionFault {
    /// `dag.yaml:14: what is wrong; what to do`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.file)?;
        if self.line > 0 {
            write!(f, ":{}", self.line)?;
        }
        write!(f, ": {}", self.what)?;
        if self.cure.is_empty() { Ok(()) } else { write!(f, "; {}", self.cure) }
    }
}

/// All faults of a definition, by file and line; never empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Faults(Vec<DefinitionFault>);

impl Faults {
    /// The faults, by file and line.
    pub fn as_slice(&self) -> &[DefinitionFault] {
        &self.0
    }
}

impl fmt::Display for Faults {
    /// One fault per line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, fault) in self.0.iter().enumerate() {
            let end = if i + 1 < self.0.len() { "\n" } else { "" };
            write!(f, "{fault}{end}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Faults {}

/// A line of a file; cheap to clone, because every value has one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourcePlace {
    pub file: Arc<str>,
    pub line: u32,
}

impl SourcePlace {
    pub fn new(file: &Arc<str>, line: u32) -> Self {
        Self { file: Arc::clone(file), line }
    }
}

/// A value and its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Located<T> {
    pub at: SourcePlace,
    pub value: T,
}

impl<T> Located<T> {
    pub fn new(at: &SourcePlace, value: T) -> Self {
        Self { at: at.clone(), value }
    }

    pub fn with_value<U>(&self, value: U) -> Located<U> {
        Located { at: self.at.clone(), value }
    }
}

/// Collects faults and warnings while a definition is read, so that the user sees all of them at once.
#[derive(Debug, Default)]
pub struct FaultReport {
    faults: Vec<DefinitionFault>,
    warnings: Vec<DefinitionFault>,
    budget: Budget,
    bytes: usize,
    copied: usize,
}

impl FaultReport {
    /// A report with a budget.
    pub fn within(budget: Budget) -> Self {
        Self { budget, ..Self::default() }
    }

    /// The budget.
    pub fn budget(&self) -> &Budget {
        &self.budget
    }

    /// Counts values that a template adds to a job; returns the sum.
    pub fn add_copied(&mut self, values: usize) -> usize {
        self.copied = self.copied.saturating_add(values);
        self.copied
    }

    /// Counts the bytes of another file; returns the sum.
    pub fn add_bytes(&mut self, bytes: usize) -> usize {
        self.bytes = self.bytes.saturating_add(bytes);
        self.bytes
    }

    pub fn fault(&mut self, at: &SourcePlace, what: impl Into<String>, cure: impl Into<String>) {
        self.faults.push(fault(at, what.into(), cure.into()));
    }

    pub fn add_warning(
        &mut self,
        at: &SourcePlace,
        what: impl Into<String>,
        cure: impl Into<String>,
    ) {
        self.warnings.push(fault(at, what.into(), cure.into()));
    }

    /// Whether there is no fault so far.
    pub fn is_sound(&self) -> bool {
        self.faults.is_empty()
    }

    /// Adds the faults and warnings of another report; returns whether it had no fault.
    pub fn absorb(&mut self, other: Self) -> bool {
        let sound = other.faults.is_empty();
        self.faults.extend(other.faults);
        self.warnings.extend(other.warnings);
        sound
    }

    /// `Ok` with the warnings if there is no fault.
    pub fn finish(mut self) -> Result<Vec<DefinitionFault>, Faults> {
        let by_place =
            |a: &DefinitionFault, b: &DefinitionFault| (&a.file, a.line).cmp(&(&b.file, b.line));
        self.faults.sort_by(by_place);
        self.warnings.sort_by(by_place);
        // A wrong default is found again in every job that uses it.
        for list in [&mut self.faults, &mut self.warnings] {
            let mut seen = HashSet::new();
            list.retain(|fault| seen.insert(fault.clone()));
        }
        if self.faults.is_empty() { Ok(self.warnings) } else { Err(Faults(self.faults)) }
    }
}

fn fault(at: &SourcePlace, what: String, cure: String) -> DefinitionFault {
    DefinitionFault { file: at.file.to_string(), line: at.line, what, cure }
}
