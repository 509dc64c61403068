//! Validates `tx` and `on_unknown` of a job: the body can be one transaction, and the policy can take effect.
//!
//! A class in the defaults applies to the types that support one. If a job of such a type has a body that is not a
//! single transaction, this is reported: readers of the defaults would otherwise believe that it runs exactly once.

use crate::definition::body::understands;
use crate::definition::fault::{FaultReport, Located, SourcePlace};
use crate::definition::job::{JobContext, given_place};
use crate::definition::raw::{RawJob, RawSql};
use crate::domain::job::{BodyPart, JobDef, JobKind, TransactionMode};
use crate::domain::source::transaction_scan::breaks_transaction;
use crate::domain::source::tx_class::{OnUnknown, TxClass};
use crate::domain::source::{DataSource, DialectName};

/// Sets the class and policy of `def`, and reports what is impossible.
pub(crate) fn read_class(
    def: &mut JobDef,
    whose: &str,
    raw: &RawJob,
    kind: &JobKind,
    around: &JobContext<'_>,
    report: &mut FaultReport,
) {
    let (own, defaults) = (&raw.settings, around.defaults);
    if understands(kind, BodyPart::Tx)
        && let Some((from, tx)) = given_place(whose, &own.tx, &defaults.tx)
    {
        def.tx = tx.value;
        if tx.value.is_recorded() {
            let of_defaults = if from == whose { None } else { Some(from) };
            TransactionalJob { def, whose, tx, of_defaults }.check(raw, around.sources, report);
        }
    }
    match (&own.on_unknown, &defaults.on_unknown) {
        (Some(policy), _) => own_policy(def, whose, policy, kind, report),
        (None, Some(policy)) => {
            // A default that the job may not have is meant for other jobs; without a policy the job is held.
            let fits = policy.value != OnUnknown::Retry || def.idempotent;
            def.on_unknown = (fits && !def.tx.is_recorded()).then_some(policy.value);
        }
        (None, None) => {}
    }
}

fn own_policy(
    def: &mut JobDef,
    whose: &str,
    policy: &Located<OnUnknown>,
    kind: &JobKind,
    report: &mut FaultReport,
) {
    def.on_unknown = Some(policy.value);
    let word = policy.value.as_str();
    if def.tx.is_recorded() {
        let what = format!(
            "{whose}: on_unknown: {word} has no effect, because it is tx: {}, whose outcome is \
             always looked up",
            def.tx.as_str()
        );
        report.add_warning(&policy.at, what, "remove on_unknown");
    } else if policy.value == OnUnknown::Retry && !def.idempotent {
        let what = format!("{whose}: on_unknown: retry could do twice what may happen only once");
        let ledger = if understands(kind, BodyPart::Tx) { "or tx: ledger, " } else { "" };
        let cure = format!(
            "add idempotent: true if a second run does no harm, {ledger}or write on_unknown: hold"
        );
        report.fault(&policy.at, what, cure);
    }
}

/// A job whose effect and its record are one transaction.
struct TransactionalJob<'a> {
    def: &'a JobDef,
    whose: &'a str,
    tx: &'a Located<TxClass>,
    /// `defaults`, if they set the class and the job does not.
    of_defaults: Option<&'a str>,
}

impl TransactionalJob<'_> {
    fn check(&self, raw: &RawJob, sources: &[DataSource], report: &mut FaultReport) {
        if self.def.transaction != TransactionMode::One {
            let mode = match self.def.transaction {
                TransactionMode::One => "one",
                TransactionMode::Each => "each",
                TransactionMode::None => "none",
            };
            let own = raw.settings.transaction.as_ref().map(|t| &t.at);
            let what = format!("transaction: {mode} makes several");
            self.refuse(own.unwrap_or(&self.tx.at), &what, "write transaction: one, or ", report);
            return;
        }
        let source = sources.iter().find(|s| Some(&s.name) == self.def.source.as_ref());
        let Some(source) = source else { return };
        let Some(dialect) = DialectName::of_url(&source.url) else { return };
        let stands = || {
            let sql = raw.sql.as_deref().map(RawSql::place);
            sql.or(raw.sql_file.as_ref().map(|file| &file.at)).unwrap_or(&raw.code.at)
        };
        if let Some(text) = self.def.sql.as_ref().and_then(|sql| sql.text_for(dialect))
            && let Some((line, said)) = breaks_transaction(text, dialect)
        {
            let what = format!("line {line} of its sql: {said}");
            self.refuse(stands(), &what, "take the statement out, or ", report);
        }
        let called = self.def.proc_name.as_ref().and_then(|name| source.procedures.get(name));
        if let Some(text) = called.filter(|_| dialect == DialectName::Sqlite)
            && let Some((line, said)) = breaks_transaction(text, dialect)
        {
            let at = raw.proc_name.as_ref().map_or(&raw.code.at, |name| &name.at);
            let what = format!("line {line} of its procedure: {said}");
            self.refuse(at, &what, "take the statement out, or ", report);
        }
    }

    fn refuse(&self, at: &SourcePlace, because: &str, cure: &str, report: &mut FaultReport) {
        let of = self.of_defaults.map_or(String::new(), |from| format!(" (from {from})"));
        let (whose, class) = (self.whose, self.tx.value.as_str());
        let what = format!(
            "{whose} is tx: {class}{of}, so its body must be one transaction, but {because}"
        );
        report.fault(at, what, format!("{cure}declare tx: none for this job"));
    }
}

#[cfg(test)]
mod tests {
    use crate::definition::{Loaded, load_definition};
    use crate::domain::job::{BodyPart, JobKind};
    use crate::domain::source::tx_class::{OnUnknown, TxClass};
    use std::path::Path;

    const KINDS: &[JobKind] = &[
        JobKind {
            name: "PROC",
            needs: &[BodyPart::Source, BodyPart::ProcName],
            may_have: &[BodyPart::Tx],
            ..JobKind::PLAIN
        },
        JobKind {
            name: "SQL",
            needs: &[BodyPart::Source, BodyPart::Sql],
            may_have: &[BodyPart::Transaction, BodyPart::Tx],
            ..JobKind::PLAIN
        },
        JobKind { name: "NOOP", ..JobKind::PLAIN },
    ];

    fn read(text: &str) -> Result<Loaded, Vec<String>> {
        let text = format!(
            "sources:\n  my: {{url: 'mysql://u@h/d'}}\n  pg: {{url: 'postgres://u@h/d'}}\n  \
             lite: {{url: 'sqlite:x', procedures: {{good: DELETE FROM t, bad: \"DELETE FROM t;\\nCOMMIT\"}}}}\n{text}"
        );
        let read = move |_: &Path| Ok(text.clone());
        load_definition(Path::new("d.yaml"), &read, KINDS)
            .map_err(|faults| faults.as_slice().iter().map(ToString::to_string).collect())
    }

    #[test]
    fn a_class_is_kept_where_the_type_has_one_and_left_out_elsewhere() {
        let loaded = read(
            "defaults: {tx: ledger, source: my}
jobs:
  A: {type: SQL, sql: 'DELETE FROM t'}
  B: {type: PROC, proc_name: p, tx: same}
  C: {type: SQL, sql: 'TRUNCATE t', tx: none}
  D: {type: NOOP}
  E: {type: NOOP, tx: none}
  F: {type: SQL, source: pg, sql: 'TRUNCATE t; CREATE INDEX i ON t (a)'}
  G: {type: PROC, source: lite, proc_name: good}
  H: {type: SQL, sql: {mysql: 'DELETE FROM t', postgres: VACUUM}}
",
        )
        .unwrap_or_else(|faults| panic!("{faults:#?}"));
        let classes: Vec<TxClass> = loaded.definition.jobs.iter().map(|j| j.tx).collect();
        use TxClass::{Ledger, None, Same};
        assert_eq!(classes, [Ledger, Same, None, None, None, Ledger, Ledger, Ledger]);
        assert!(loaded.warnings.is_empty(), "{:?}", loaded.warnings);
    }

    #[test]
    fn a_body_that_is_no_single_transaction_is_refused_with_its_line() {
        let faults = read(
            "defaults: {source: my}
jobs:
  A: {type: NOOP, tx: ledger}
  B: {type: SQL, sql: 'DELETE FROM t', tx: ledger, transaction: each}
  C: {type: SQL, sql: BEGIN; COMMIT, tx: same, transaction: none}
  D: {type: SQL, sql: \"DELETE FROM t;\\nTRUNCATE t\", tx: ledger}
  E: {type: SQL, source: pg, sql: VACUUM t, tx: ledger}
  F: {type: SQL, source: pg, sql: COMMIT, tx: ledger}
  G: {type: PROC, source: lite, proc_name: bad, tx: same}
  H: {type: SQL, sql: x, tx: both}
",
        )
        .expect_err("faults");
        for (at, wanted) in faults.iter().zip([
            "d.yaml:7: job A is of type NOOP, which has no tx; remove tx, or change the type to PROC or SQL",
            "d.yaml:8: job B is tx: ledger, so its body must be one transaction, but transaction: each makes several; write transaction: one, or declare tx: none for this job",
            "d.yaml:9: job C is tx: same, so its body must be one transaction, but transaction: none makes",
            "d.yaml:10: job D is tx: ledger, so its body must be one transaction, but line 2 of its sql: TRUNCATE T commits by itself on mysql; take the statement out, or declare tx: none",
            "d.yaml:11: job E is tx: ledger, so its body must be one transaction, but line 1 of its sql: VACUUM T cannot run in a transaction",
            "d.yaml:12: job F is tx: ledger, so its body must be one transaction, but line 1 of its sql: COMMIT opens or ends",
            "d.yaml:13: job G is tx: same, so its body must be one transaction, but line 2 of its procedure: COMMIT",
            "d.yaml:14: job H: tx is \"both\"; use one of same, ledger, none",
        ]) {
            assert!(at.starts_with(wanted), "wanted {wanted}\nfound  {at}");
        }
        assert_eq!(faults.len(), 8, "{faults:#?}");
        let faults = read(
            "defaults: {source: my, tx: ledger}\njobs:\n  A: {type: SQL, sql: x, transaction: each}\n  B: {type: SQL, sql: DROP TABLE x}\n",
        )
        .expect_err("faults");
        assert!(
            faults[0].contains("job A is tx: ledger (from defaults), so its body"),
            "{faults:?}"
        );
        assert!(
            faults[1].contains("job B is tx: ledger (from defaults), so its body"),
            "{faults:?}"
        );
    }

    #[test]
    fn a_policy_must_be_able_to_come_to_bear() {
        let loaded = read(
            "defaults: {source: my, on_unknown: retry}
jobs:
  A: {type: SQL, sql: x}
  B: {type: SQL, sql: x, idempotent: true}
  C: {type: SQL, sql: x, on_unknown: fail}
  D: {type: SQL, sql: x, tx: ledger}
  E: {type: SQL, sql: x, tx: ledger, on_unknown: retry}
  F: {type: SQL, sql: x, idempotent: true, on_unknown: hold}
",
        )
        .unwrap_or_else(|faults| panic!("{faults:#?}"));
        let policies: Vec<_> = loaded.definition.jobs.iter().map(|j| j.on_unknown).collect();
        use OnUnknown::{Fail, Hold, Retry};
        assert_eq!(policies, [None, Some(Retry), Some(Fail), None, Some(Retry), Some(Hold)]);
        let warnings: Vec<String> = loaded.warnings.iter().map(ToString::to_string).collect();
        assert_eq!(
            warnings,
            ["d.yaml:11: job E: on_unknown: retry has no effect, because it is tx: ledger, whose \
              outcome is always looked up; remove on_unknown"]
        );
        let faults = read("jobs:\n  A: {type: SQL, source: my, sql: x, on_unknown: retry}\n");
        let faults = faults.expect_err("twice");
        assert!(
            faults[0].starts_with(
                "d.yaml:6: job A: on_unknown: retry could do twice what may happen only once; add \
                 idempotent: true if a second run does no harm, or tx: ledger, or"
            ),
            "{faults:?}"
        );
        let faults = read("jobs:\n  A: {type: NOOP, on_unknown: retry}\n").expect_err("no class");
        assert!(faults[0].ends_with("if a second run does no harm, or write on_unknown: hold"));
    }
}
