//! Validates pools, locks, retries and warnings: pools exist and are large enough, deadlines can be reached.

use crate::definition::fault::{FaultReport, Located};
use crate::definition::job::{JobContext, given_place};
use crate::definition::near::did_you_mean;
use crate::definition::raw::{RawGroup, RawJob, RawPool, RawUses};
use crate::domain::job::JobDef;
use crate::domain::job::pool::{LockUse, PoolUse, SlotPool};
use std::collections::HashSet;

/// Maximum length of the name of a pool or lock.
const NAME_MAX: usize = 100;

/// Builds the pools, and reports unusable names.
pub(crate) fn pools(raw: Vec<RawPool>, report: &mut FaultReport) -> Vec<SlotPool> {
    let made = |pool: RawPool| {
        usable("pool", &pool.name, report)
            .then(|| SlotPool { name: pool.name.value.clone(), slots: pool.slots })
    };
    raw.into_iter().filter_map(made).collect()
}

fn usable(kind: &str, name: &Located<String>, report: &mut FaultReport) -> bool {
    let word = &name.value;
    let fits = word.chars().all(|c| c.is_alphanumeric() || "_-.:".contains(c));
    let fits = fits && !word.is_empty() && word.chars().count() <= NAME_MAX;
    if !fits {
        let what = format!("{kind} {word:?} has a name that is not usable");
        let cure = format!("use 1 to {NAME_MAX} letters, digits, '_', '-', '.' or ':'");
        report.fault(&name.at, what, cure);
    }
    fits
}

/// Checks that the deadlines of a group are consistent.
pub(crate) fn group(whose: &str, raw: &RawGroup, report: &mut FaultReport) {
    if let (Some(warn), Some(limit)) = (&raw.warn_after_sec, &raw.batch_timeout_sec)
        && warn.value >= limit.value
    {
        never_comes(whose, warn, "batch_timeout_sec", limit.value, report);
    }
}

fn never_comes(whose: &str, warn: &Located<u32>, key: &str, limit: u32, report: &mut FaultReport) {
    let what = format!("{whose}: warn_after_sec is {}, {key} is {limit}", warn.value);
    let cure = format!("make warn_after_sec less than {key}, or nobody will ever be warned");
    report.fault(&warn.at, what, cure);
}

/// Sets the pools, locks, retry policy and warning of `def`.
pub(crate) fn set_limits(
    def: &mut JobDef,
    whose: &str,
    raw: &RawJob,
    around: &JobContext<'_>,
    report: &mut FaultReport,
) {
    let (own, defaults) = (&raw.settings, around.defaults);
    let uses = own.pools.as_ref().map(|uses| (whose, uses));
    if let Some((whose, uses)) = uses.or(defaults.pools.as_ref().map(|uses| ("defaults", uses))) {
        def.pools = pool_uses(whose, uses, around.pools, report);
    }
    let locks = own.locks.as_ref().map(|locks| (whose, locks));
    if let Some((whose, locks)) = locks.or(defaults.locks.as_ref().map(|l| ("defaults", l))) {
        let made = |(name, mode): &(Located<String>, Located<_>)| {
            usable(&format!("{whose}: lock"), name, report)
                .then(|| LockUse { lock: name.value.clone(), mode: mode.value })
        };
        def.locks = locks.iter().filter_map(made).collect();
        refuse_doubles(whose, "lock", locks, report);
    }
    if let Some((_, lineage)) = given_place(whose, &own.lineage, &defaults.lineage) {
        def.lineage = Some(Box::new(lineage.value.clone())).filter(|one| !one.is_empty());
    }
    if let Some((_, retry)) = given_place(whose, &own.retry, &defaults.retry) {
        def.retry = retry.value.clone();
    }
    if let Some(retry) = own.retry.as_ref().filter(|_| def.retry_count == 0) {
        let what = format!("{whose}: retry says how, but retry_count is 0");
        report.add_warning(&retry.at, what, "add retry_count: 3");
    } else if let Some(retry) = &own.retry
        && retry.value.backoff_percent.is_some_and(|p| p > 100)
        && def.retry_delay_sec == 0
    {
        let what = format!("{whose}: retry.backoff makes a delay grow, but retry_delay_sec is 0");
        report.add_warning(&retry.at, what, "add retry_delay_sec: 5");
    }
    if let Some((_, label)) = given_place(whose, &own.worker, &around.defaults.worker)
        && usable(&format!("{whose}: worker"), label, report)
    {
        def.worker = Some(label.value.clone());
    }
    if let Some(label) = own.worker.as_ref().filter(|_| raw.sub_batch.is_some()) {
        let what = format!("{whose}: worker has no effect, because what it runs is a batch");
        report.add_warning(&label.at, what, "give the jobs of that batch the label");
    }
    warning(def, whose, raw, around, report);
    start_before_due(def, whose, raw, report);
}

/// Warns if the start deadline comes after the end deadline, because the job would be late twice.
fn start_before_due(def: &JobDef, whose: &str, raw: &RawJob, report: &mut FaultReport) {
    let said = raw.settings.start_by.as_ref().map(|s| &s.at);
    let said = said.or(raw.settings.due.as_ref().map(|d| &d.at));
    if let (Some(start), Some(due), Some(at)) = (def.start_by, def.due, said)
        && due.is_surely_before(start)
    {
        let what = format!("{whose}: start_by is {start}, due is {due}");
        report.fault(at, what, "make start_by earlier than due");
    }
}

/// A default warning that comes later than a job's own time limit does not apply to that job.
fn warning(
    def: &mut JobDef,
    whose: &str,
    raw: &RawJob,
    around: &JobContext<'_>,
    report: &mut FaultReport,
) {
    let own = &raw.settings;
    let Some((whose, warn)) =
        given_place(whose, &own.warn_after_sec, &around.defaults.warn_after_sec)
    else {
        return;
    };
    if warn.value < def.timeout_sec {
        def.warn_after_sec = Some(warn.value);
    } else if own.warn_after_sec.is_some() || own.timeout_sec.is_none() {
        never_comes(whose, warn, "timeout_sec", def.timeout_sec, report);
    }
}

fn pool_uses(
    whose: &str,
    uses: &RawUses<u32>,
    pools: &[SlotPool],
    report: &mut FaultReport,
) -> Vec<PoolUse> {
    refuse_doubles(whose, "pool", uses, report);
    let mut made = Vec::new();
    for (name, weight) in uses {
        let (word, slots) = (&name.value, weight.value);
        let Some(pool) = pools.iter().find(|p| p.name == *word) else {
            let hint = did_you_mean(word, pools.iter().map(|p| p.name.as_str()));
            let what = format!("{whose}: pool {word} is not defined");
            report.fault(&name.at, what, format!("{hint}define it: pools: {{ {word}: 4 }}"));
            continue;
        };
        if slots > pool.slots {
            let what =
                format!("{whose}: takes {slots} slots of pool {word}, which has {}", pool.slots);
            let cure = "take fewer or make the pool larger; the job could never start";
            report.fault(&weight.at, what, cure);
        }
        made.push(PoolUse { pool: word.clone(), weight: slots });
    }
    made
}

fn refuse_doubles<T>(whose: &str, kind: &str, uses: &RawUses<T>, report: &mut FaultReport) {
    let mut seen = HashSet::new();
    for (name, _) in uses.iter().filter(|(name, _)| !seen.insert(name.value.as_str())) {
        let what = format!("{whose} lists {kind} {} twice", name.value);
        report.fault(&name.at, what, "list it once");
    }
}

#[cfg(test)]
mod tests {
    use crate::definition::{Loaded, load_definition};
    use crate::domain::job::pool::LockMode;
    use crate::domain::job::retry::ErrorClass;
    use crate::domain::job::{GroupFailurePolicy, JobKind};
    use std::path::Path;

    const NOOP: JobKind = JobKind { name: "NOOP", about: "", ..JobKind::PLAIN };

    fn read(text: &str) -> Result<Loaded, Vec<String>> {
        let text = text.to_owned();
        let read = move |_: &Path| Ok(text.clone());
        load_definition(Path::new("d.yaml"), &read, &[NOOP])
            .map_err(|faults| faults.as_slice().iter().map(ToString::to_string).collect())
    }

    fn sound(text: &str) -> Loaded {
        read(text).unwrap_or_else(|faults| panic!("{faults:#?}"))
    }

    const WHOLE: &str = "
pools: { ORA_DW: 4, LICENCE: { slots: 1 } }
groups:
  g: { on_failure: stop, batch_timeout_sec: 7200, warn_after_sec: 3600 }
defaults: { type: NOOP, warn_after_sec: 600, retry: { on: deadlock }, pools: [LICENCE] }
jobs:
  A:
    pools: { ORA_DW: 3, LICENCE: }
    locks: [GL_LEDGER]
    retry_count: 3
    retry_delay_sec: 5
    retry:
      backoff: 1.5
      max_delay_sec: 300
      jitter: 0.1
      on: [lock_wait, connection_lost]
      on_sqlstate: [40001, 08]
      never_on_sqlstate: ['23']
  B: { locks: { GL_LEDGER: shared, AP: exclusive }, timeout_sec: 60 }
  C: { pools: {}, warn_after_sec: 10 }
";

    #[test]
    fn every_form_is_read_and_what_we_write_is_read_again() {
        let loaded = sound(WHOLE);
        let defs = &loaded.definition;
        let pools: Vec<_> = defs.shared.pools.iter().map(|p| (p.name.as_str(), p.slots)).collect();
        assert_eq!(pools, [("ORA_DW", 4), ("LICENCE", 1)]);
        let group = &defs.groups[0];
        assert_eq!(group.on_failure, GroupFailurePolicy::Stop);
        assert_eq!((group.batch_timeout_sec, group.warn_after_sec), (Some(7_200), Some(3_600)));
        let uses = |i: usize| -> Vec<(String, u32)> {
            defs.jobs[i].pools.iter().map(|p| (p.pool.clone(), p.weight)).collect()
        };
        assert_eq!(uses(0), [("ORA_DW".to_owned(), 3), ("LICENCE".to_owned(), 1)]);
        assert_eq!((uses(1), uses(2)), (vec![("LICENCE".to_owned(), 1)], vec![]));
        let locks = |i: usize| -> Vec<(&str, LockMode)> {
            defs.jobs[i].locks.iter().map(|l| (l.lock.as_str(), l.mode)).collect()
        };
        assert_eq!(locks(0), [("GL_LEDGER", LockMode::Exclusive)]);
        assert_eq!(locks(1), [("GL_LEDGER", LockMode::Shared), ("AP", LockMode::Exclusive)]);
        let retry = &defs.jobs[0].retry;
        assert_eq!((retry.backoff_percent, retry.jitter_percent), (Some(150), Some(10)));
        assert_eq!(retry.on, [ErrorClass::LockWait, ErrorClass::ConnectionLost]);
        assert_eq!(
            (retry.on_sqlstate.join(" "), retry.max_delay_sec),
            ("40001 08".into(), Some(300))
        );
        assert_eq!(defs.jobs[1].retry.on, [ErrorClass::Deadlock]);
        let warned: Vec<_> = defs.jobs.iter().map(|j| j.warn_after_sec).collect();
        assert_eq!(
            warned,
            [Some(600), None, Some(10)],
            "a default that comes too late is left out"
        );
        let text = serde_json::to_string_pretty(defs).expect("json");
        assert_eq!(sound(&text).definition, *defs);
    }

    #[test]
    fn faults_name_the_line_and_the_cure() {
        let text = "
pools: { ORA_DW: 2, ZERO: 0, 'b d': 1, NONE: {} }
groups: { g: { fail_fast: true, on_failure: go_on, batch_timeout_sec: 60, warn_after_sec: 60 } }
defaults: { type: NOOP }
jobs:
  A: { pools: { ORA_DV: 1 } }
  B: { pools: { ORA_DW: 3 } }
  C: { pools: { ORA_DW: 0 } }
  D: { pools: [ORA_DW, ORA_DW], locks: [L, L] }
  E: { locks: { L: all } }
  F: { retry_count: 1, retry: { on: [deadlok], on_sqlstate: ['4001', '4000a'], backoff: 0.5 } }
  G: { retry_count: 1, retry: { backoff: 2, backoff_percent: 200, jitter: 1.5, max_delay_sec: 0 } }
  H: { timeout_sec: 60, warn_after_sec: 60 }
  I: { retry_count: 1, retry: { wait: 3 } }
  J: { pools: [{ weight: 2 }] }
";
        let faults = read(text).expect_err("faults");
        for (line, what) in [
            (2, "pool ZERO: slots is \"0\"; use a whole number from 1 to 10000"),
            (2, "pool \"b d\" has a name that is not usable"),
            (2, "pool NONE has no slots; say how many"),
            (3, "group g: fail_fast contradicts on_failure"),
            (3, "group g: warn_after_sec is 60, batch_timeout_sec is 60; make"),
            (
                6,
                "job A: pool ORA_DV is not defined; did you mean ORA_DW? otherwise define it: pools: { ORA_DV: 4 }",
            ),
            (7, "job B: takes 3 slots of pool ORA_DW, which has 2; take fewer"),
            (8, "job C: pool ORA_DW: weight is \"0\"; use a whole number"),
            (9, "job D lists pool ORA_DW twice; list it once"),
            (9, "job D lists lock L twice; list it once"),
            (10, "job E: lock L: mode is \"all\"; use exclusive or shared"),
            (11, "job F: retry: on has no class \"deadlok\"; use deadlock, lock_wait"),
            (11, "job F: retry: on_sqlstate: \"4001\" is not a SQLSTATE; write its 5"),
            (11, "job F: retry: on_sqlstate: \"4000a\" is not a SQLSTATE"),
            (11, "job F: retry: backoff is \"0.5\"; use a number from 1.0 to 10.0"),
            (12, "job G: retry has both backoff and backoff_percent; keep one"),
            (12, "job G: retry: jitter is \"1.5\"; use a number from 0.0 to 1.0"),
            (12, "job G: retry: max_delay_sec is \"0\""),
            (13, "job H: warn_after_sec is 60, timeout_sec is 60; make warn_after_sec less"),
            (14, "job I: retry has an unknown key wait"),
            (15, "job J: pools: no pool; add pool: NAME"),
        ] {
            let start = format!("d.yaml:{line}: {what}");
            assert!(faults.iter().any(|f| f.starts_with(&start)), "{start}\n{faults:#?}");
        }
        assert_eq!(faults.len(), 21, "{faults:#?}");
    }

    #[test]
    fn times_by_which_something_is_due_are_read_and_refused() {
        let text = "
groups: { g: { due: workday(3) 08:00, slow_after: 2, held_after_sec: 60 } }
templates: { t: { slow_after: 1.5 } }
defaults: { type: NOOP, due: +1d 08:00 }
jobs:
  A: { start_by: 08:00, template: t }
  B: { start_by: 2h, due: 90m, slow_after: 3 }
";
        let faults = read(text).expect_err("a start after the end");
        let said = "d.yaml:7: job B: start_by is 2h, due is 1h30m; make start_by earlier than due";
        assert_eq!(faults, [said]);
        let loaded = sound(&text.replace("90m", "3h"));
        let words = |i: usize| {
            let job = &loaded.definition.jobs[i];
            let time =
                |due: Option<crate::domain::schedule::due::DueRule>| due.map(|d| d.to_string());
            (time(job.start_by), time(job.due), job.slow_after.map(|f| f.to_string()))
        };
        let of = |word: &str| Some(word.to_owned());
        assert_eq!(words(0), (of("08:00"), of("+1d 08:00"), of("1.5")));
        assert_eq!(words(1), (of("2h"), of("3h"), of("3.0")));
        let json = serde_json::to_string(&loaded.definition).expect("json");
        assert_eq!(sound(&json).definition, loaded.definition);
        let wrong = "
groups: { g: { due: soon, slow_after: 1, held_after_sec: 0 } }
jobs: { A: { type: NOOP, start_by: workday(0) 08:00, due: [1], slow_after: fast } }
";
        let faults = read(wrong).expect_err("faults");
        for (line, what) in [
            (2, "group g: due: \"soon\" is not a time by which it can be due; write \"08:00\","),
            (2, "group g: slow_after: \"1\" is not a factor; use a number from 1.1 to 100"),
            (2, "group g: held_after_sec is \"0\"; use a whole number"),
            (3, "job A: start_by: \"workday(0) 08:00\" is not a time"),
            (3, "job A: due is a list, not a single value"),
            (3, "job A: slow_after: \"fast\" is not a factor"),
        ] {
            let start = format!("d.yaml:{line}: {what}");
            assert!(faults.iter().any(|f| f.starts_with(&start)), "{start}\n{faults:#?}");
        }
        assert_eq!(faults.len(), 6, "{faults:#?}");
    }

    #[test]
    fn what_cannot_have_an_effect_is_warned_of() {
        let text = "
defaults: { type: NOOP, retry: { on: deadlock } }
jobs:
  A: { retry: { on: deadlock } }
  B: { retry_count: 2, retry: { backoff: 2 } }
  C: {}
";
        let warnings: Vec<String> = sound(text).warnings.iter().map(ToString::to_string).collect();
        assert_eq!(
            warnings,
            [
                "d.yaml:4: job A: retry says how, but retry_count is 0; add retry_count: 3",
                "d.yaml:5: job B: retry.backoff makes a delay grow, but retry_delay_sec is 0; add \
                 retry_delay_sec: 5",
            ]
        );
    }
}
