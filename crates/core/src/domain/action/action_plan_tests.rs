//! Every combination of state and action, with its effect on other jobs.

use super::*;
use crate::domain::id::{BatchId, GroupCode, JobCode, JobType, QueueId};
use crate::domain::job::body::FanOut;
use crate::domain::job::trigger_rule::TriggerRule;
use crate::domain::job::{JobDef, JobDependency};
use crate::domain::time::Millis;
use proptest::prelude::*;

struct Stage {
    batch: Batch,
    dag: Dag,
    rules: Rules,
    rows: Vec<QueueEntry>,
    on_failure: GroupFailurePolicy,
}

/// Jobs J0, J1, …, with the rule and state of each, and the edges (child, parent).
fn stage(jobs: &[(TriggerRule, QueueStatus)], edges: &[(usize, usize)]) -> Stage {
    let group = GroupCode::parse("g").expect("group");
    let job = |(i, (rule, _)): (usize, &(TriggerRule, QueueStatus))| {
        let code = JobCode::parse(&format!("J{i}")).expect("code");
        let mut job =
            JobDef::with_defaults(code, group.clone(), JobType::parse("NOOP").expect("type"));
        job.trigger_rule = *rule;
        job
    };
    let defs: Vec<JobDef> = jobs.iter().enumerate().map(job).collect();
    let codes: Vec<JobCode> = defs.iter().map(|j| j.code.clone()).collect();
    let edge = |(c, p): &(usize, usize)| {
        JobDependency::plain(
            &GroupCode::parse("g").expect("group"),
            codes[*c].clone(),
            codes[*p].clone(),
            0,
        )
    };
    let edges: Vec<JobDependency> = edges.iter().map(edge).collect();
    let row = |(i, (_, status)): (usize, &(TriggerRule, QueueStatus))| QueueEntry {
        status: *status,
        not_before: Some(Millis(9)),
        ..QueueEntry::generated(QueueId(i as i64), BatchId(1), codes[i].clone())
    };
    Stage {
        batch: Batch::sample("202407", &group),
        dag: Dag::build(&codes, &edges).expect("dag"),
        rules: Rules::from_jobs(&defs, &edges),
        rows: jobs.iter().enumerate().map(row).collect(),
        on_failure: GroupFailurePolicy::GoOn,
    }
}

fn plain(states: &[QueueStatus], edges: &[(usize, usize)]) -> Stage {
    let jobs: Vec<_> = states.iter().map(|s| (TriggerRule::AllSuccess, *s)).collect();
    stage(&jobs, edges)
}

impl Stage {
    fn plan(&self, action: OperatorAction, named: &[u32]) -> Result<Vec<ActionStep>, Refusals> {
        let named: Vec<Node> = named.iter().map(|n| Node(*n)).collect();
        let scene = ActionScene {
            batch: &self.batch,
            dag: &self.dag,
            rules: &self.rules,
            rows: &self.rows,
            on_failure: self.on_failure,
            holds: &|_, _| false,
            allows: &|_| true,
            outside: &|_| EdgeTally::default(),
        };
        plan_action(action, &named, scene)
    }

    /// Renders a plan as `J1 FAILED>FORCED J2 UPSTREAM_FAILED>PENDING*`, with a star for an indirect change; or the
    /// refusal.
    fn said(&self, action: OperatorAction, named: &[u32]) -> String {
        match self.plan(action, named) {
            Err(refused) => refused.to_string(),
            Ok(steps) => {
                let words = steps.iter().map(|s| {
                    let star = if s.cause == Cause::Follows { "*" } else { "" };
                    format!("J{} {}>{}{star}", s.node.0, s.from, s.to)
                });
                words.collect::<Vec<_>>().join(" ")
            }
        }
    }
}

const RERUN: OperatorAction = OperatorAction::Rerun(RerunScope::These, UnknownJobs::Leave);

#[test]
fn every_cell_of_the_action_table() {
    use QueueStatus as S;
    let actions = [
        OperatorAction::Hold,
        OperatorAction::Release,
        OperatorAction::Skip,
        OperatorAction::Ice,
        OperatorAction::NoExec,
        OperatorAction::ForceSuccess,
        OperatorAction::ForceFailure,
        OperatorAction::Kill,
        OperatorAction::Priority(5),
        OperatorAction::StartNow(Parents::Wait),
        OperatorAction::StartNow(Parents::Ignore),
        RERUN,
        OperatorAction::Rerun(RerunScope::These, UnknownJobs::Rerun),
    ];
    // The state afterwards: P(ending) H(eld) S(kipped) F(ailed) O(forced) K(illed) k(illing),
    // = unchanged, . refused.
    #[rustfmt::skip]
    let table = [
        //                    hold rel skip ice nox okay fail kill prio now free rerun unknown
        (S::Pending,        ". H . S S = . F K = = = . ."),
        (S::Held,           ". . P S S = . F K = . . . ."),
        (S::Queued,         ". H . S S = . F K = = = . ."),
        (S::RetryWait,      ". H . S S = . F K = = = . ."),
        (S::Running,        ". . . . . . . . k . . . . ."),
        (S::Killing,        ". . . . . . . . = . . . . ."),
        (S::Success,        ". . . . . . . . . . . . P P"),
        (S::Warning,        ". . . . . . . . . . . . P P"),
        (S::Failed,         ". . . S S . O . . . . . P P"),
        (S::Timeout,        ". . . S S . O . . . . . P P"),
        (S::Killed,         ". . . S S . O . . . . . P P"),
        (S::Skipped,        ". . . . . . . . . . . . P P"),
        (S::NotTaken,       ". . . . . . . . . . . . P P"),
        (S::UpstreamFailed, ". . . S S . O . . . . P P P"),
        (S::Forced,         ". . . . . . . . . . . . P P"),
        (S::Unknown,        ". . . S S . O F . . . . . P"),
    ];
    assert_eq!(table.len(), S::ALL.len());
    for (status, cells) in table {
        let stage = plain(&[status], &[]);
        for (action, cell) in actions.iter().zip(cells.split(' ').skip(1)) {
            let found = match stage.plan(*action, &[0]) {
                Err(_) => ".",
                Ok(steps) => match (steps[0].from == steps[0].to, steps[0].to) {
                    (true, _) => "=",
                    (false, S::Pending) => "P",
                    (false, S::Held) => "H",
                    (false, S::Skipped) => "S",
                    (false, S::Failed) => "F",
                    (false, S::Forced) => "O",
                    (false, S::Killed) => "K",
                    (false, S::Killing) => "k",
                    (false, other) => panic!("{status} became {other} by {action:?}"),
                },
            };
            assert_eq!(found, cell, "{} on a job that is {status:?}", action.as_str());
        }
    }
}

#[test]
fn a_refusal_says_what_to_do() {
    use QueueStatus as S;
    let stage = plain(&[S::Running, S::Success, S::Killing, S::Unknown], &[]);
    let kill = "J0 is RUNNING; kill it first: procession job kill 202407 J0 --group g --reason WHY";
    assert_eq!(stage.said(RERUN, &[0]), kill);
    let all = stage.said(OperatorAction::Hold, &[0, 1, 2]);
    assert_eq!(
        all.lines().skip(1).collect::<Vec<_>>(),
        [
            "J1 is SUCCESS; hold is for jobs that are PENDING, QUEUED, RETRY_WAIT",
            "J2 is being stopped; wait until it is gone",
        ],
        "every reason at once"
    );
    assert!(stage.said(RERUN, &[3]).contains("its effect may be there already"));
    assert!(stage.said(OperatorAction::Thaw, &[1]).contains("thaw is for jobs that are SKIPPED"));
    let failure = OperatorAction::Rerun(RerunScope::FromFailure, UnknownJobs::Leave);
    assert!(stage.said(failure, &[]).contains("only jobs of unknown outcome (J3)"));
    let mut stopping = plain(&[S::Pending], &[]);
    assert!(stopping.said(failure, &[]).contains("nothing to start over"));
    stopping.batch.status = BatchStatus::Killing;
    assert!(stopping.said(OperatorAction::Hold, &[0]).contains("is being stopped"));
}

#[test]
fn a_kill_says_what_is_known_of_the_body() {
    use QueueStatus as S;
    let mut stage = plain(&[S::RetryWait, S::Held, S::Killing, S::Unknown, S::Unknown], &[]);
    for row in &mut stage.rows[..2] {
        row.unresolved = 1;
    }
    stage.rows[3].error_message = Some("kill unconfirmed: session 4 may still run".to_owned());
    let list = "J0 RETRY_WAIT>UNKNOWN\nJ1 HELD>UNKNOWN\nJ2 KILLING>KILLING\nJ3 UNKNOWN>KILLING";
    let steps = stage.plan(OperatorAction::Kill, &[0, 1, 2, 3]).expect("allowed");
    let words = steps.iter().map(|s| format!("J{} {}>{}", s.node.0, s.from, s.to));
    assert_eq!(words.collect::<Vec<_>>().join("\n"), list);
    assert_eq!(steps[2].changes, [RowChange::State], "who wants it is written once more");
    let refused = stage.said(OperatorAction::Kill, &[4]);
    assert!(refused.contains("nothing of it is known to run still"), "{refused}");
    // In a batch that stops at failures, a forced failure also stops the rest, and is not reported as harmless.
    let mut stops = plain(&[S::Pending, S::RetryWait], &[]);
    stops.on_failure = GroupFailurePolicy::Stop;
    stops.rows[1].unresolved = 1;
    let swept = stops.plan(OperatorAction::Kill, &[0]).expect("allowed");
    assert_eq!((swept[1].to, swept[1].cause), (S::Unknown, Cause::Follows));
}

#[test]
fn force_success_frees_only_what_waited_for_it() {
    use QueueStatus as S;
    // J0 and J1 failed; J2 depends on J0, J3 on both, J4 on J2.
    let (f, u) = (S::Failed, S::UpstreamFailed);
    let stage = plain(&[f, f, u, u, u], &[(2, 0), (3, 0), (3, 1), (4, 2)]);
    let freed = "J0 FAILED>FORCED J2 UPSTREAM_FAILED>PENDING* J4 UPSTREAM_FAILED>PENDING*";
    assert_eq!(stage.said(OperatorAction::ForceSuccess, &[0]), freed);
    assert_eq!(stage.said(OperatorAction::Skip, &[0]), freed.replace("FORCED", "SKIPPED"));
    assert_eq!(stage.said(OperatorAction::Ice, &[0]), freed.replace("FORCED", "SKIPPED"));
    assert!(
        stage.said(OperatorAction::ForceSuccess, &[0, 1]).contains("J3 UPSTREAM_FAILED>PENDING*")
    );
}

#[test]
fn a_branch_that_failure_closed_or_opened_is_decided_anew() {
    use QueueStatus as S;
    let all = TriggerRule::AllSuccess;
    // J1 runs if J0 failed and waits for a slot; J2 runs if J0 succeeded.
    let stage = stage(
        &[(all, S::Failed), (TriggerRule::OneFailed, S::Queued), (all, S::UpstreamFailed)],
        &[(1, 0), (2, 0)],
    );
    let said = stage.said(OperatorAction::ForceSuccess, &[0]);
    assert_eq!(said, "J0 FAILED>FORCED J1 QUEUED>PENDING* J2 UPSTREAM_FAILED>PENDING*");
}

#[test]
fn a_failure_that_stopped_the_whole_batch_lets_it_go_again() {
    use QueueStatus as S;
    let mut stage = plain(&[S::Failed, S::UpstreamFailed], &[]);
    assert_eq!(stage.said(OperatorAction::ForceSuccess, &[0]), "J0 FAILED>FORCED");
    stage.on_failure = GroupFailurePolicy::Stop;
    assert!(
        stage.said(OperatorAction::ForceSuccess, &[0]).ends_with("J1 UPSTREAM_FAILED>PENDING*")
    );
}

#[test]
fn a_job_that_is_made_to_fail_stops_the_rest_where_a_failure_does() {
    use QueueStatus as S;
    let states = [S::Pending, S::Queued, S::RetryWait, S::Held, S::Running, S::Success];
    let mut stage = plain(&states, &[(3, 0)]);
    assert_eq!(stage.said(OperatorAction::ForceFailure, &[0]), "J0 PENDING>FAILED");
    stage.on_failure = GroupFailurePolicy::Stop;
    let swept =
        "J1 QUEUED>UPSTREAM_FAILED* J2 RETRY_WAIT>UPSTREAM_FAILED* J3 HELD>UPSTREAM_FAILED*";
    assert_eq!(
        stage.said(OperatorAction::ForceFailure, &[0]),
        format!("J0 PENDING>FAILED {swept}")
    );
    assert_eq!(stage.said(OperatorAction::Kill, &[0]), format!("J0 PENDING>KILLED {swept}"));
    assert_eq!(stage.said(OperatorAction::Hold, &[0]), "J0 PENDING>HELD");
}

#[test]
fn a_list_is_counted_again_when_one_of_its_items_is_declared_done() {
    use QueueStatus as S;
    // J0 is an item, J1 the milestone of its list, J2 depends on J1.
    let edges = [(1, 0), (2, 1)];
    let mut stage = plain(&[S::Failed, S::Failed, S::UpstreamFailed], &edges);
    assert_eq!(
        stage.said(OperatorAction::ForceSuccess, &[0]),
        "J0 FAILED>FORCED",
        "a job of its own"
    );
    let group = GroupCode::parse("g").expect("group");
    let job = |row: &QueueEntry| {
        let kind = JobType::parse("NOOP").expect("type");
        JobDef::with_defaults(row.job_code.clone(), group.clone(), kind)
    };
    let mut jobs: Vec<JobDef> = stage.rows.iter().map(job).collect();
    jobs[1].fan_out = Some(Box::new(FanOut::Milestone { items: vec!["a".to_owned()] }));
    stage.rules = Rules::from_jobs(&jobs, &[]);
    let counted = "J0 FAILED>FORCED J1 FAILED>PENDING* J2 UPSTREAM_FAILED>PENDING*";
    assert_eq!(stage.said(OperatorAction::ForceSuccess, &[0]), counted);
}

#[test]
fn a_rerun_is_exactly_its_set() {
    use QueueStatus as S;
    // J0 → J1 → J2, J1 → J3, J4 is independent.
    let edges = [(1, 0), (2, 1), (3, 1)];
    let rerun = |scope| OperatorAction::Rerun(scope, UnknownJobs::Leave);
    let done = plain(&[S::Success, S::Success, S::Success, S::Skipped, S::Success], &edges);
    assert_eq!(done.said(rerun(RerunScope::These), &[1]), "J1 SUCCESS>PENDING");
    assert_eq!(
        done.said(rerun(RerunScope::Downstream), &[1]),
        "J1 SUCCESS>PENDING J2 SUCCESS>PENDING J3 SKIPPED>PENDING"
    );
    assert_eq!(
        done.said(rerun(RerunScope::Upstream), &[1]),
        "J0 SUCCESS>PENDING J1 SUCCESS>PENDING"
    );
    let open = plain(&[S::Success, S::Success, S::Queued, S::RetryWait, S::Queued], &edges);
    let again = "J1 SUCCESS>PENDING J2 QUEUED>PENDING* J3 RETRY_WAIT>PENDING*";
    assert_eq!(open.said(rerun(RerunScope::These), &[1]), again);
    let runs = plain(&[S::Success, S::Success, S::Running, S::Pending, S::Pending], &edges);
    assert!(
        runs.said(rerun(RerunScope::Downstream), &[0]).starts_with("J2 is RUNNING; kill it first")
    );
    let failed =
        plain(&[S::Failed, S::UpstreamFailed, S::UpstreamFailed, S::Held, S::Failed], &edges);
    assert_eq!(
        failed.said(rerun(RerunScope::These), &[0]),
        "J0 FAILED>PENDING",
        "one job is one job"
    );
    assert_eq!(
        failed.said(rerun(RerunScope::FromFailure), &[]),
        "J0 FAILED>PENDING J1 UPSTREAM_FAILED>PENDING J2 UPSTREAM_FAILED>PENDING J4 FAILED>PENDING"
    );
}

#[test]
fn ice_can_be_thawed_while_the_batch_is_open() {
    use QueueStatus as S;
    let mut stage = plain(&[S::Skipped, S::Queued, S::Success], &[(1, 0), (2, 0)]);
    assert!(stage.said(OperatorAction::Thaw, &[0]).contains("not on ice"), "skipped is not on ice");
    stage.rows[0].run_mode = Some(RunMode::Ice);
    for action in [OperatorAction::Thaw, OperatorAction::Normal] {
        assert_eq!(stage.said(action, &[0]), "J0 SKIPPED>PENDING J1 QUEUED>PENDING*");
    }
    let below = OperatorAction::Rerun(RerunScope::Upstream, UnknownJobs::Leave);
    assert_eq!(stage.said(below, &[2]), "J2 SUCCESS>PENDING", "ice is left where it is");
    assert!(stage.said(RERUN, &[0]).starts_with("J0 SKIPPED>PENDING"), "unless it is named");
    stage.batch.status = BatchStatus::Failed;
    assert!(stage.said(OperatorAction::Thaw, &[0]).contains("has ended (FAILED)"));
    stage.rows[1].run_mode = Some(RunMode::NoWait);
    assert_eq!(stage.said(OperatorAction::Normal, &[1]), "J1 QUEUED>PENDING", "it waits again");
    stage.rows[1].run_mode = Some(RunMode::NoExec);
    assert!(stage.said(OperatorAction::NoExec, &[1]).contains("no-exec already"));
    assert!(stage.said(OperatorAction::Normal, &[2]).contains("J2 is SUCCESS; normal is for"));
}

fn any_state() -> impl Strategy<Value = QueueStatus> {
    prop::sample::select(QueueStatus::ALL.to_vec())
}

fn any_action() -> impl Strategy<Value = OperatorAction> {
    prop::sample::select(vec![
        OperatorAction::Hold,
        OperatorAction::Release,
        OperatorAction::Skip,
        OperatorAction::Ice,
        OperatorAction::Thaw,
        OperatorAction::NoExec,
        OperatorAction::Normal,
        OperatorAction::ForceSuccess,
        OperatorAction::ForceFailure,
        OperatorAction::Kill,
        OperatorAction::Priority(1),
        OperatorAction::StartNow(Parents::Ignore),
        RERUN,
        OperatorAction::Rerun(RerunScope::Downstream, UnknownJobs::Rerun),
        OperatorAction::Rerun(RerunScope::Upstream, UnknownJobs::Rerun),
        OperatorAction::Rerun(RerunScope::FromFailure, UnknownJobs::Leave),
    ])
}

proptest! {
    /// For any action on any batch: each row changes at most once and only as the state machine allows. Afterwards no
    /// job waits for a slot that it can never get, which would leave the batch open forever.
    #[test]
    fn nothing_is_left_waiting_for_ever(
        jobs in prop::collection::vec(
            (prop::sample::select(TriggerRule::ALL.to_vec()), any_state()), 8),
        raw in prop::collection::btree_set((0usize..8, 0usize..8), 0..20),
        modes in prop::collection::vec(prop::sample::select(vec![
            None, None, Some(RunMode::NoExec), Some(RunMode::NoWait), Some(RunMode::Ice)]), 8),
        action in any_action(),
        named in prop::collection::btree_set(0u32..8, 1..3),
    ) {
        let edges: std::collections::BTreeSet<(usize, usize)> = raw.into_iter()
            .filter(|(a, b)| a != b).map(|(a, b)| (a.max(b), a.min(b))).collect();
        let edges: Vec<_> = edges.into_iter().collect();
        let mut stage = stage(&jobs, &edges);
        for (row, mode) in stage.rows.iter_mut().zip(modes) {
            // Exactly the jobs that were left out are on ice.
            let iced = row.status == QueueStatus::Skipped;
            row.run_mode = mode.filter(|m| (*m == RunMode::Ice) == iced);
        }
        // Rows that wait for a slot are ready; no other batch can exist.
        let rebuilt = |stage: &Stage| {
            let status: Vec<_> = stage.rows.iter().map(|r| r.status).collect();
            let modes = stage.rows.iter().map(|r| r.run_mode).collect();
            let rules = stage.rules.clone().with_modes(modes);
            let gates = Gates { dag: &stage.dag, rules: &rules, holds: &|_, _| false, allows: &|_| true };
            crate::domain::dispatch::readiness::Readiness::rebuild(gates, &status, &|_| EdgeTally::default()).1
        };
        for _ in 0..8 {
            let ready = rebuilt(&stage).ready;
            for i in 0..stage.rows.len() {
                let waits = matches!(stage.rows[i].status, QueueStatus::Queued | QueueStatus::RetryWait);
                if waits && !ready.contains(&Node(i as u32)) {
                    stage.rows[i].status = QueueStatus::Pending;
                }
            }
        }
        let named: Vec<u32> = named.into_iter().collect();
        let Ok(steps) = stage.plan(action, &named) else { return Ok(()) };
        for pair in steps.windows(2) {
            prop_assert!(pair[0].node < pair[1].node, "each row once, in order");
        }
        for step in &steps {
            let legal = QueueEvent::ALL.into_iter().any(|e| step.from.after(e) == Ok(step.to));
            prop_assert!(legal || step.from == step.to, "{step:?}");
            prop_assert!(step.to != QueueStatus::Running);
            let row = &mut stage.rows[step.node.index()];
            row.status = step.to;
            for change in &step.changes {
                match change {
                    RowChange::Mode(mode) => row.run_mode = *mode,
                    RowChange::StartOver => row.run_mode = row.run_mode.filter(|m| *m == RunMode::NoExec),
                    RowChange::State | RowChange::Priority(_) | RowChange::NoTime => {}
                }
            }
        }
        let ready = rebuilt(&stage).ready;
        for (i, row) in stage.rows.iter().enumerate() {
            let waits = matches!(row.status, QueueStatus::Queued | QueueStatus::RetryWait);
            prop_assert!(!waits || ready.contains(&Node(i as u32)), "J{i} sticks");
        }
    }
}
