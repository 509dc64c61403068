use super::*;
use crate::domain::batch::{BatchOrder, plan};
use crate::domain::id::{BatchNo, GroupCode, JobCode, JobType, SourceName};
use crate::domain::job::{Definition, JobDef, JobDependency};
use proptest::prelude::*;

const NOW: Millis = Millis(100_000);

fn code(word: &str) -> JobCode {
    JobCode::parse(word).expect("code")
}

/// A batch from `child<parent` words; jobs appear where they are first named.
fn batch(words: &str) -> (BatchPlan, Dag) {
    let group = GroupCode::parse("g").expect("group");
    let kind = JobType::parse("NOOP").expect("type");
    let mut defs = Definition::default();
    defs.groups.push(serde_json::from_str(r#"{"code":"g","name":"g"}"#).expect("group"));
    for word in words.split_whitespace() {
        let (child, parent) = word.split_once('<').map_or((word, None), |(c, p)| (c, Some(p)));
        for name in parent.into_iter().chain([child]) {
            if !defs.jobs.iter().any(|j| j.code.as_str() == name) {
                defs.jobs.push(JobDef::with_defaults(code(name), group.clone(), kind.clone()));
            }
        }
        if let Some(parent) = parent {
            let (child, parent) = (code(child), code(parent));
            defs.dependencies.push(JobDependency::plain(&group, child, parent, 0));
        }
    }
    let order = BatchOrder {
        batch_no: BatchNo::parse("202407").expect("no"),
        batch_type: None,
        group: None,
        business_date: None,
        params: Default::default(),
        free_text: false,
    };
    let plan = plan(&defs, &order, NOW).expect("plan").remove(0);
    let dag = plan.snapshot.build_dag().expect("dag");
    (plan, dag)
}

/// Each job's tries as `A=10,20`.
fn history(words: &str) -> History {
    let tries = words.split_whitespace().flat_map(|word| {
        let (name, list) = word.split_once('=').expect("A=1,2");
        list.split(',').map(|ms| (code(name), ms.parse().expect("ms"))).collect::<Vec<_>>()
    });
    History::from_tries(tries)
}

fn is(status: QueueStatus) -> JobProgress {
    JobProgress { status, start: None, end: None, not_before: None }
}

fn since(ms: i64) -> JobProgress {
    JobProgress { start: Some(NOW.plus_ms(-ms)), ..is(QueueStatus::Running) }
}

fn names(dag: &Dag, nodes: &[Node]) -> String {
    nodes.iter().map(|n| dag.job_code(*n).as_str()).collect::<Vec<_>>().join(" ")
}

/// How sure a forecast is, in words.
fn sure(plan: &BatchPlan, found: &Forecast) -> String {
    found.confidence.describe(&plan.snapshot, crate::domain::text::lang::Lang::En)
}

#[test]
fn a_job_that_overruns_is_never_about_to_end() {
    let (plan, dag) = batch("B<A");
    let history = history("A=2600,2500,2400,2600,2600 B=1000,1000,1000,1000,1000");
    let at = |elapsed| {
        let standing = [since(elapsed), is(QueueStatus::Pending)];
        let found = forecast(&plan.snapshot, &dag, &standing, &history, 8, NOW).expect("forecast");
        (found.remaining(), sure(&plan, &found))
    };
    let (left, words) = at(1_000);
    assert!((2_500..=2_700).contains(&left), "{left}");
    assert_eq!(words, "sure");
    // By little: that may be a busy machine.
    let little = "rough: A has run for 3.0 s; the longest of its 5 tries took 2.6 s";
    assert_eq!(at(3_000).1, little);
    let (minute, words) = at(62_600);
    assert_eq!(words, "unknown: A has run for 1 min 02 s; the longest of its 5 tries took 2.6 s");
    assert!(minute > 20_000, "{minute}");
    let (hour, _) = at(3_602_600);
    assert!(hour > 20 * 60_000, "{hour}");
}

#[test]
fn what_has_no_past_is_not_foretold() {
    use QueueStatus as S;
    let (mut plan, dag) = batch("B<A C<B D<C");
    let of = |plan: &BatchPlan, words: &str, standing: &[JobProgress]| {
        let found = forecast(&plan.snapshot, &dag, standing, &history(words), 8, NOW);
        sure(plan, &found.expect("forecast"))
    };
    let many = |name: &str| format!("{name}=10,10,10,10,10 ");
    let fresh = [is(S::Pending); 4];
    // A first run, in which one job has ended.
    let one = [is(S::Success), is(S::Pending), is(S::Pending), is(S::Pending)];
    assert_eq!(of(&plan, "A=2000", &one), "unknown: no history of B and 2 more");
    let three = ["A", "B", "C"].map(many).concat();
    assert_eq!(of(&plan, &three, &fresh), "rough: no history of D");
    let all = ["A", "B", "C", "D"].map(many).concat();
    assert_eq!(of(&plan, &all, &fresh), "sure");
    assert_eq!(
        of(&plan, "A=1 B=1 C=1 D=1", &fresh),
        "rough: fewer than 5 good tries of A and 3 more"
    );
    let held = [is(S::Success), is(S::Held), is(S::Pending), is(S::Pending)];
    assert_eq!(of(&plan, &all, &held), "rough: B held, nobody knows until when");
    let wide = three + "D=10,10,10,900000,900000";
    assert_eq!(of(&plan, &wide, &fresh), "rough: durations of the past lie far apart");
    let group = plan.snapshot.group.code.clone();
    let other = r#"{"job_code":"C","group":"h","batch":"202406"}"#;
    let other = serde_json::from_str::<crate::domain::job::external::ExternalDependency>(other);
    plan.snapshot.externals = other.into_iter().collect();
    plan.snapshot.externals.iter_mut().for_each(|e| e.waiting_group = group.clone());
    assert_eq!(of(&plan, &all, &fresh), "rough: other batches are waited for: C");
}

#[test]
fn the_end_of_a_batch_knows_how_far_its_past_lies_apart() {
    let (plan, dag) = batch("A B C D E F");
    let tries = "10000,11000,12000,13000,14000,15000,16000,17000,18000,60000";
    let words: Vec<String> = ["A", "B", "C", "D", "E", "F"].map(|j| format!("{j}={tries}")).into();
    let found = of_plan(&plan, &dag, &history(&words.join(" ")), 8, NOW).expect("forecast");
    // Each of them alone takes 14 s; of six beside each other one is long in four of ten cases.
    assert_eq!(found.bound.since(NOW), 14_000);
    assert!((16_000..=60_000).contains(&found.remaining()), "{}", found.remaining());
    assert!(found.bad_remaining() >= 60_000, "{}", found.bad_remaining());
}

#[test]
fn a_batch_is_forecast_as_it_stands() {
    use QueueStatus as S;
    let (plan, dag) = batch("B<A C<B D<A E");
    let history = history("A=100 B=200,200,400 C=50 D=10");
    // Before it starts: A, B, C in a row; E has no history and is taken as the median, 50.
    let fresh = of_plan(&plan, &dag, &history, 8, NOW).expect("forecast");
    assert_eq!((fresh.remaining(), fresh.bad_remaining(), fresh.open), (350, 550, 5));
    assert_eq!((fresh.end, fresh.bound), (NOW.plus_ms(350), NOW.plus_ms(350)));
    assert_eq!(names(&dag, &fresh.path), "A B C");
    assert_eq!((names(&dag, &fresh.assumed), fresh.jobs[4].estimate.p50), ("E".into(), 50));
    assert_eq!(
        fresh.jobs.iter().map(|j| j.slack).collect::<Vec<_>>(),
        [0, 0, 0, 240, 300].map(Some)
    );
    // A is over, B has run for 150 of its 200; D is held and E failed.
    let over = JobProgress {
        start: Some(NOW.plus_ms(-250)),
        end: Some(NOW.plus_ms(-150)),
        ..is(S::Success)
    };
    let standing = [over, since(150), is(S::Pending), is(S::Held), is(S::Failed)];
    let later = forecast(&plan.snapshot, &dag, &standing, &history, 8, NOW).expect("forecast");
    assert_eq!((later.remaining(), later.open), (100, 3));
    assert_eq!(later.bad_remaining(), 300);
    assert_eq!(names(&dag, &later.path), "B C");
    assert_eq!(
        (names(&dag, &later.held), names(&dag, &later.assumed)),
        ("D".into(), String::new())
    );
    let a = later.jobs[0];
    assert_eq!((a.start, a.end, a.slack, a.critical), (over.start, over.end, None, false));
    let b = later.jobs[1];
    assert_eq!(
        (b.start, b.end, b.critical),
        (Some(NOW.plus_ms(-150)), Some(NOW.plus_ms(50)), true)
    );
    // All over: it ends now, and nothing is critical.
    let all = forecast(&plan.snapshot, &dag, &[over; 5], &history, 8, NOW).expect("forecast");
    assert_eq!((all.remaining(), all.open, all.path.len()), (0, 0, 0));
    assert_eq!(forecast(&plan.snapshot, &dag, &standing, &History::default(), 8, NOW), None);
}

#[test]
fn a_retry_waits_for_its_time_and_takes_all_of_it_again() {
    let (plan, dag) = batch("A");
    let waits = JobProgress {
        not_before: Some(NOW.plus_ms(600)),
        start: Some(NOW.plus_ms(-900)),
        end: Some(NOW.plus_ms(-1)),
        ..is(QueueStatus::RetryWait)
    };
    let found = forecast(&plan.snapshot, &dag, &[waits], &history("A=100"), 8, NOW).expect("one");
    assert_eq!((found.remaining(), found.jobs[0].start), (700, Some(NOW.plus_ms(600))));
}

#[test]
fn limits_make_it_longer_and_slack_does_not_know_them() {
    let (mut plan, dag) = batch("A B C");
    let history = history("A=100 B=100 C=60");
    plan.snapshot.group.max_parallel = Some(1);
    let found = of_plan(&plan, &dag, &history, 8, NOW).expect("forecast");
    assert_eq!((found.remaining(), found.bound), (260, NOW.plus_ms(100)));
    assert_eq!(found.jobs[2].slack, Some(40));
    plan.snapshot.group.max_parallel = None;
    let found = of_plan(&plan, &dag, &history, 2, NOW).expect("forecast");
    assert_eq!(found.remaining(), 160);
    let source = SourceName::parse("s").expect("source");
    plan.snapshot.jobs.iter_mut().for_each(|j| j.source = Some(source.clone()));
    let known = r#"{"name":"s","url":"sqlite:x","max_parallel":1}"#;
    plan.snapshot.sources.push(serde_json::from_str(known).expect("source"));
    assert_eq!(of_plan(&plan, &dag, &history, 8, NOW).expect("forecast").remaining(), 260);
}

#[test]
fn what_runs_only_after_a_failure_is_not_counted() {
    use crate::domain::job::trigger_rule::{EdgeCondition, TriggerRule};
    use QueueStatus as S;
    let (mut plan, _) = batch("OK<A ALARM<A AFTER<ALARM CLEAN<OK CLEAN<ALARM");
    let at = |code: &str, plan: &BatchPlan| {
        plan.snapshot.jobs.iter().position(|j| j.code.as_str() == code).expect("job")
    };
    plan.snapshot.dependencies.iter_mut().filter(|d| d.job_code.as_str() == "ALARM").for_each(
        |d| {
            d.when = EdgeCondition::Failure;
        },
    );
    let clean = at("CLEAN", &plan);
    plan.snapshot.jobs[clean].trigger_rule = TriggerRule::AllDone;
    let dag = plan.snapshot.build_dag().expect("dag");
    let history = history("A=10 OK=20 ALARM=500 AFTER=900 CLEAN=5");
    let fresh = of_plan(&plan, &dag, &history, 8, NOW).expect("forecast");
    assert_eq!((fresh.remaining(), fresh.open), (35, 3));
    assert_eq!(names(&dag, &fresh.left_out), "ALARM AFTER");
    assert_eq!(names(&dag, &fresh.path), "A OK CLEAN");
    let alarm = fresh.jobs[at("ALARM", &plan)];
    assert_eq!((alarm.start, alarm.end, alarm.slack, alarm.critical), (None, None, None, false));
    // A has failed: now the alarm counts, and OK does not.
    let standing: Vec<JobProgress> = plan
        .snapshot
        .jobs
        .iter()
        .map(|j| is(if j.code.as_str() == "A" { S::Failed } else { S::Pending }))
        .collect();
    let later = forecast(&plan.snapshot, &dag, &standing, &history, 8, NOW).expect("forecast");
    assert_eq!((later.remaining(), names(&dag, &later.left_out)), (1_400, "OK".into()));
    assert_eq!(names(&dag, &later.path), "ALARM AFTER");
}

#[test]
fn one_parent_is_enough_where_the_rule_says_so() {
    use crate::domain::job::trigger_rule::TriggerRule;
    use QueueStatus as S;
    let (mut plan, dag) = batch("C<A C<B");
    let either = plan.snapshot.jobs.iter_mut().find(|j| j.code.as_str() == "C").expect("C");
    either.trigger_rule = TriggerRule::OneSuccess;
    let history = history("A=10 B=100 C=200");
    let fresh = of_plan(&plan, &dag, &history, 8, NOW).expect("forecast");
    assert_eq!((fresh.remaining(), names(&dag, &fresh.path)), (210, "A C".into()));
    // A is over: C could start now, whatever B does.
    let standing: Vec<JobProgress> = plan
        .snapshot
        .jobs
        .iter()
        .map(|j| is(if j.code.as_str() == "A" { S::Success } else { S::Pending }))
        .collect();
    let later = forecast(&plan.snapshot, &dag, &standing, &history, 8, NOW).expect("forecast");
    assert_eq!((later.remaining(), names(&dag, &later.path)), (200, "C".into()));
}

proptest! {
    /// Whatever has happened so far: no job is expected in the past, the end is that of the last
    /// job, and jobs that are over count for nothing.
    #[test]
    fn a_forecast_never_lies_in_the_past(
        states in prop::collection::vec(0..QueueStatus::ALL.len(), 6),
        ran in prop::collection::vec(0i64..500, 6),
        tries in prop::collection::vec(0i64..300, 6),
        total in 1u32..4,
    ) {
        let (plan, dag) = batch("B<A C<A D<B D<C E F<E");
        let history = History::from_tries(plan.snapshot.jobs.iter().map(|j| j.code.clone()).zip(tries));
        let standing: Vec<JobProgress> = states.iter().zip(&ran).map(|(s, ran)| {
            let status = QueueStatus::ALL[*s];
            JobProgress { start: Some(NOW.plus_ms(-ran)), end: Some(NOW), ..is(status) }
        }).collect();
        let found = forecast(&plan.snapshot, &dag, &standing, &history, total, NOW).expect("known");
        let mut last = NOW;
        for (job, standing) in found.jobs.iter().zip(&standing) {
            let over = job.slack.is_none();
            prop_assert!(over || !standing.status.is_final());
            prop_assert!(!(over && job.critical));
            if !over {
                let end = job.end.expect("an end");
                prop_assert!(end >= NOW && job.start.expect("a start") <= end);
                last = last.max(end);
            }
        }
        prop_assert!(found.end >= last);
        prop_assert!(found.end >= found.bound && found.bad_end >= found.end);
        for node in &found.path {
            prop_assert!(found.jobs[node.index()].critical);
        }
        let over = standing.iter().filter(|s| s.status.is_final()).count();
        prop_assert_eq!(found.open + found.left_out.len() + over, 6);
        // A job that is left out stands below one that failed; all others wait for success.
        for node in &found.left_out {
            let below = |p: Node| {
                standing[p.index()].status.blocks_children()
                    || standing[p.index()].status == QueueStatus::NotTaken
                    || found.left_out.contains(&p)
            };
            prop_assert!(dag.parents(*node).any(below));
        }
    }
}

#[test]
fn the_chain_that_decided_the_end_is_walked_back_by_last_parents() {
    // D waits for B and C; C ended later, so C made D late. E ended early and decides nothing.
    let (plan, dag) = batch("B<A C<A D<B D<C E");
    let ends = |words: &[(&str, i64)]| -> Vec<Option<Millis>> {
        let end = |name: &str| words.iter().find(|w| w.0 == name).map(|w| Millis(w.1));
        plan.snapshot.jobs.iter().map(|j| end(j.code.as_str())).collect()
    };
    let said = |ends: &[Option<Millis>]| -> String {
        decisive(&dag, ends).iter().map(|n| dag.job_code(*n).as_str()).collect::<Vec<_>>().join(" ")
    };
    let all = [("A", 10), ("B", 20), ("C", 30), ("D", 40), ("E", 5)];
    assert_eq!(said(&ends(&all)), "A C D");
    // What never ran is in no chain; nothing ran at all: no chain.
    assert_eq!(said(&ends(&[("A", 10), ("E", 15)])), "E");
    assert_eq!(said(&ends(&[])), "");
}
