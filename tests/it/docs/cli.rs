//! What the command line itself gives: docs/cli.md, and the picture in the README.

use crate::cli::said;
use std::path::Path;

#[test]
fn reference_of_the_command_line() {
    super::check("docs/cli.md", &procession::cli::reference_page());
}

#[test]
fn picture_of_a_dag() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let args = ["dag", "dag-examples/month-end-close.yaml", "--format", "svg", "--direction", "TB"];
    let (code, picture, error) = said(root, &args);
    assert_eq!(code, 0, "{error}");
    super::check("docs/images/dag.svg", &picture);
}
