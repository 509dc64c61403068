//! Reads `lineage`: the declared tables that a job reads and writes.

use crate::definition::fault::Located;
use crate::definition::fields::Fields;
use crate::definition::keys::LINEAGE;
use crate::domain::job::lineage_declaration::{DeclaredRows, LineageDeclaration, OpaqueParts};

/// `lineage: {reads, writes, opaque, ignore}`.
pub(crate) fn lineage(fields: &mut Fields<'_>) -> Option<Located<LineageDeclaration>> {
    let node = fields.take_node("lineage")?;
    let at = node.at.clone();
    let whose = format!("{}: lineage", fields.whose);
    let mut own = Fields::open_fields(whose, node, LINEAGE, fields.report);
    let declaration = LineageDeclaration {
        reads: declared(&mut own, "reads"),
        writes: declared(&mut own, "writes"),
        opaque: own
            .choice("opaque", &OpaqueParts::WORDS)
            .map_or(OpaqueParts::default(), |word| word.value),
        ignore: ignored(&mut own),
    };
    Some(Located::new(&at, declaration))
}

fn declared(fields: &mut Fields<'_>, key: &str) -> Vec<DeclaredRows> {
    let mut rows = Vec::new();
    for text in fields.texts(key).unwrap_or_default() {
        match text.value.parse() {
            Ok(one) => rows.push(one),
            Err(error) => {
                let what = format!("{}: {key}: {error}", fields.whose);
                fields.report.fault(&text.at, what, "write journal_line[journal_code=AP]");
            }
        }
    }
    rows
}

fn ignored(fields: &mut Fields<'_>) -> Vec<String> {
    let mut tables = Vec::new();
    for text in fields.texts("ignore").unwrap_or_default() {
        match text.value.parse::<DeclaredRows>() {
            Ok(rows) if rows.conditions.is_empty() => tables.push(rows.table),
            Ok(_) | Err(_) => {
                let what = format!("{}: ignore has {:?}", fields.whose, text.value);
                fields.report.fault(&text.at, what, "write the name of a table");
            }
        }
    }
    tables
}

#[cfg(test)]
mod tests {
    use crate::definition::load_definition;
    use crate::domain::job::JobKind;
    use crate::domain::job::lineage_declaration::OpaqueParts;
    use std::path::Path;

    fn load_text(text: &str) -> Result<crate::definition::Loaded, String> {
        let text = text.to_owned();
        let read = move |_: &Path| Ok(text.clone());
        let kinds = [JobKind { name: "NOOP", ..JobKind::PLAIN }];
        load_definition(Path::new("a.yaml"), &read, &kinds).map_err(|faults| faults.to_string())
    }

    #[test]
    fn a_declaration_is_the_jobs_own_or_that_of_the_defaults() {
        let defs = load_text(
            "groups: { g: {} }\n\
             defaults: { group: g, type: NOOP, lineage: { ignore: [etl_log] } }\n\
             jobs:\n  A: {}\n  B: { lineage: { writes: [\"t[code=AP]\"], reads: u, opaque: accepted } }\n",
        )
        .expect("a definition")
        .definition;
        let of = |at: usize| defs.jobs[at].lineage.as_deref().expect("a declaration");
        assert_eq!(of(0).ignore, ["etl_log"]);
        assert_eq!(of(1).writes[0].to_string(), "t[code=AP]");
        assert_eq!((of(1).reads.len(), of(1).opaque), (1, OpaqueParts::Accepted));
    }

    #[test]
    fn a_declaration_that_says_no_table_is_refused_with_its_place() {
        for (bad, part) in [
            ("{ writes: [\"t[code\"] }", "is not TABLE or TABLE[COLUMN=VALUE]"),
            ("{ ignore: [\"t[a=1]\"] }", "write the name of a table"),
            ("{ opaque: yes }", "use one of told, accepted"),
            ("{ write: [t] }", "write"),
        ] {
            let text = format!(
                "groups: {{ g: {{}} }}\njobs:\n  A: {{ group: g, type: NOOP, lineage: {bad} }}\n"
            );
            let faults = load_text(&text).expect_err(bad);
            assert!(faults.contains(part) && faults.contains("a.yaml:3"), "{faults}");
        }
    }
}
