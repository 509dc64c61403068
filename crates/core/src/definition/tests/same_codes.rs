//! Two groups of one file whose jobs share a code.

use super::*;
use crate::definition::diff_definitions;
use crate::domain::job::Definition;

const FILE: &str = "
groups: { a: {}, b: {} }
defaults: { type: NOOP }
jobs:
  - { code: LOAD, group: a, aliases: [IN] }
  - { code: POST, group: a, depends_on: [IN] }
  - { code: LOAD, group: b, depends_on: [a.POST] }
  - { code: POST, group: b, depends_on: [LOAD, { job: a.LOAD, when: done }] }
  - { code: LAST, group: b, depends_on: [b.POST, far.AWAY, { job: POST, group: a, batch: prev }] }
";

fn loaded(text: &str) -> Result<Loaded, Faults> {
    let text = text.to_owned();
    load_definition(Path::new("dag.yaml"), &move |_: &Path| Ok(text.clone()), KINDS)
}

fn edges(defs: &Definition) -> Vec<String> {
    let own = defs
        .dependencies
        .iter()
        .map(|d| format!("{}: {} <- {}", d.group, d.job_code, d.depends_on));
    let others = defs.externals.iter().map(|e| {
        let parent = e.depends_on.as_ref().map_or("", |code| code.as_str());
        format!("{}.{} <- {}.{parent} {}", e.waiting_group, e.job_code, e.group, e.batch)
    });
    own.chain(others).collect()
}

#[test]
fn a_plain_code_means_the_own_group_and_a_full_one_any() {
    let defs = loaded(FILE).expect("sound").definition;
    assert_eq!(
        edges(&defs),
        [
            "a: POST <- LOAD",
            "b: POST <- LOAD",
            "b: LAST <- POST",
            "b.LOAD <- a.POST same",
            "b.POST <- a.LOAD same",
            "b.LAST <- far.AWAY same",
            "b.LAST <- a.POST prev",
        ]
    );
    for format in [DefinitionFormat::Yaml, DefinitionFormat::Json] {
        let text = export(&defs, KINDS, format).expect("text");
        let again = loaded(&text).expect("read again").definition;
        assert!(diff_definitions(&defs, &again).is_empty() && again.jobs == defs.jobs, "{text}");
    }
}

#[test]
fn a_code_that_moves_is_removed_and_added() {
    let one = "groups: {a: {}, b: {}}\ndefaults: {type: NOOP}\njobs:\n  - {code: X, group: a}\n  - {code: Y, group: b}\n";
    let old = loaded(one).expect("sound").definition;
    let moved = one.replace("X, group: a", "X, group: b").replace("Y, group: b", "Y, group: a");
    let changes = diff_definitions(&old, &loaded(&moved).expect("sound").definition);
    let words: Vec<String> = changes.iter().map(ToString::to_string).collect();
    assert_eq!(words, ["- job a.X", "+ job b.X", "+ job a.Y", "- job b.Y"]);
}

#[test]
fn what_could_mean_two_things_is_a_fault_with_its_fix() {
    let list = |more: &str| {
        "groups: {a: {}, b: {}, c: {}}\ndefaults: {type: NOOP}\njobs:\n  - {code: LOAD, group: a}\n  \
         - {code: LOAD, group: b}\n  - {code: POST, group: c}\n"
            .to_owned()
            + more
    };
    for (more, wanted) in [
        (
            "dependencies:\n  - {job_code: LOAD, depends_on: POST}\n",
            "dag.yaml:8: LOAD is in groups a and b; write a.LOAD or b.LOAD",
        ),
        (
            "  - {code: X, group: c, depends_on: [LOAD]}\n",
            "dag.yaml:7: job X of group c depends on LOAD of groups a and b; a plain code means the same group: write \
             a.LOAD or b.LOAD, or move one of the jobs",
        ),
        (
            "  - {code: X, group: c, depends_on: [a.LOD]}\n",
            "dag.yaml:7: job X depends on a.LOD, which is not defined",
        ),
        ("  - {code: LOAD, group: b}\n", "dag.yaml:7: job LOAD is defined twice, first on line 5"),
        (
            "  - {code: P.ST, group: c, depends_on: [P.STT]}\n",
            "dag.yaml:7: job P.ST depends on P.STT, which is not defined; did you mean P.ST?",
        ),
        (
            "  - {code: X, group: a, depends_on: [b.Y]}\n  - {code: Y, group: b, depends_on: [a.X]}\n",
            "these jobs of several groups wait for one another in a circle: X -> Y -> X",
        ),
    ] {
        let faults = loaded(&list(more)).map(|_| ()).expect_err(more).to_string();
        assert!(faults.contains(wanted), "{faults}\n{wanted}");
    }
    let listed = list("dependencies:\n  - {job_code: c.POST, depends_on: a.LOAD}\n");
    assert_eq!(edges(&loaded(&listed).expect("sound").definition), ["c.POST <- a.LOAD same"]);
}
