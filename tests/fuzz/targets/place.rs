//! Whether refusals say where and what.

use super::bundle::Bundle;
use procession::definition::{DefinitionFault, Faults};

/// What may be said of a file as a whole, so without a line.
const OF_WHOLE_FILES: &[&str] = &[
    "this file ",
    "there is no ",
    "reading this definition takes too long",
    "more than ",
    "the list of ",
    "the days of ",
    "templates and defaults give",
    "no job is defined",
    "no line here starts anything",
    "this zip ",
    "the directory of this zip",
    "nothing here becomes a job",
];

/// Panics unless each fault has a file, a sentence, and a line that is in the file.
pub(crate) fn assert_places(faults: &Faults, bundle: &Bundle) {
    assert!(!faults.as_slice().is_empty(), "refused without a fault");
    faults.as_slice().iter().for_each(|fault| assert_place(fault, bundle));
}

/// The same of one fault or warning.
pub(crate) fn assert_place(fault: &DefinitionFault, bundle: &Bundle) {
    assert!(!fault.file.is_empty(), "a fault names no file: {fault:?}");
    assert!(!fault.what.is_empty(), "a fault says nothing: {fault:?}");
    if fault.line == 0 {
        let is_whole = OF_WHOLE_FILES.iter().any(|start| fault.what.starts_with(start))
            || fault.what.ends_with(" has only days at its edge and is taken for complete")
            // A zip has no lines.
            || fault.what.contains(" in this zip ");
        assert!(is_whole, "a fault has no line: {fault:?}");
        return;
    }
    if let Some(lines) = bundle.line_count(&fault.file) {
        // A text that ends too early is missed on the line after its last.
        assert!(fault.line as usize <= lines + 1, "a fault is beyond the {lines} lines: {fault:?}");
    }
}
