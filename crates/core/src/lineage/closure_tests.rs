//! Jobs followed through calls, views, triggers, foreign keys and partitions; and pairs of jobs compared.

use crate::domain::dag::Dag;
use crate::domain::id::{GroupCode, JobCode, SourceName};
use crate::domain::job::pool::{LockMode, LockUse};
use crate::domain::job::{JobDef, JobDependency, Param};
use crate::domain::source::DialectName::{self, Mysql, Postgres};
use crate::domain::source::sql_text::SqlText;
use crate::lineage::{
    BodyText, Cascade, Catalogue, CatalogueTrigger, ConflictKind, ConflictReport, JobReading,
    LineageTarget, ObjectName, OpaqueReason, Table, TriggerAction, TriggerEvent, find_conflicts,
    find_impact, job_lineage, parse_routine,
};
use std::collections::{BTreeMap, BTreeSet};

fn name(text: &str) -> ObjectName {
    ObjectName::within("s", text)
}

fn table(columns: &[&str]) -> Table {
    Table { columns: columns.iter().map(ToString::to_string).collect(), ..Table::default() }
}

/// A catalogue of these routines and tables, all in schema `s`.
fn catalogue(dialect: DialectName, routines: &[&str], tables: Vec<(&str, Table)>) -> Catalogue {
    let mut catalogue = Catalogue::new(dialect, vec!["s".to_owned()], false);
    for (table, value) in tables {
        catalogue.add_table(name(table), value);
    }
    for text in routines {
        let mut made = parse_routine(text, dialect).expect(text).routine;
        made.name = name(&made.name.name);
        catalogue.add_routine(made);
    }
    catalogue
}

fn group() -> GroupCode {
    GroupCode::parse("g").expect("a code")
}

fn job(code: &str, sql: &str) -> JobDef {
    let code = JobCode::parse(code).expect("a code");
    let job_type = crate::domain::id::JobType::parse("SQL").expect("a type");
    let mut job = JobDef::with_defaults(code, group(), job_type);
    job.source = Some(SourceName::parse("db").expect("a name"));
    job.sql = Some(SqlText::Same(sql.to_owned()));
    job
}

fn targets(catalogue: Catalogue) -> BTreeMap<SourceName, LineageTarget> {
    let target = LineageTarget {
        server: "server".to_owned(),
        catalogue: Ok(catalogue),
        procedures: BTreeMap::new(),
    };
    BTreeMap::from([(SourceName::parse("db").expect("a name"), target)])
}

fn read(catalogue: Catalogue, sql: &str) -> JobReading {
    job_lineage(&job("J", sql), &targets(catalogue)).reading
}

/// `updates s.t[a = 'X'] at p:3`
fn lines(reading: &JobReading) -> Vec<String> {
    let one = |access: &crate::lineage::JobAccess| {
        let of = &access.access;
        format!("{} {}[{}] at {}", of.mode.as_verb(), of.table, of.slice, access.place)
    };
    reading.accesses.iter().map(one).collect()
}

/// The conflict report of jobs with these dependencies.
fn compare(jobs: &[JobDef], order: &[(&str, &str)], catalogue: Catalogue) -> ConflictReport {
    let targets = targets(catalogue);
    let lineages: Vec<_> = jobs.iter().map(|job| job_lineage(job, &targets)).collect();
    let codes: Vec<JobCode> = jobs.iter().map(|job| job.code.clone()).collect();
    let code = |text: &str| JobCode::parse(text).expect("a code");
    let dependencies: Vec<JobDependency> = order
        .iter()
        .map(|(first, then)| JobDependency::plain(&group(), code(then), code(first), 0))
        .collect();
    find_conflicts(&lineages, &Dag::build(&codes, &dependencies).expect("a DAG"))
}

#[test]
fn constants_and_job_parameters_reach_called_procedures_and_functions() {
    let routines = [
        "CREATE PROCEDURE outer_p(IN p_code VARCHAR(9), IN p_batch VARCHAR(9)) BEGIN\n\
         CALL inner_p(p_batch, p_code);\nSELECT f_rate('USD');\nEND",
        "CREATE PROCEDURE inner_p(IN b VARCHAR(9), IN c VARCHAR(9)) BEGIN\n\
         DELETE FROM journal WHERE code = c AND batch_no = b;\nCALL outer_p(c, b);\nEND",
        "CREATE FUNCTION f_rate(cur CHAR(3)) RETURNS INT RETURN (SELECT r FROM fx WHERE currency = cur)",
    ];
    let mut job = job("J", "CALL outer_p(:code, :batch_no)");
    let param = |name: &str, value: &str| Param {
        name: name.to_owned(),
        value: Some(value.to_owned()),
        ..Param::default()
    };
    job.params = vec![param("code", "AP"), param("batch_no", "${batch_no}")];
    let reading = job_lineage(&job, &targets(catalogue(Mysql, &routines, vec![]))).reading;
    assert_eq!(
        lines(&reading),
        [
            "deletes from s.journal[batch_no = ${batch_no}, code = 'AP'] at inner_p:2",
            "reads s.fx[currency = 'USD'] at f_rate:1",
        ]
    );
    assert!(reading.is_whole(), "{reading:?}");
}

#[test]
fn a_condition_on_a_view_narrows_its_tables() {
    let mut view = table(&["code", "total"]);
    let text = "SELECT j.code, sum(j.amount) AS total FROM journal j JOIN u ON u.id = j.id GROUP BY j.code;";
    view.view = Some(BodyText::Text(text.to_owned()));
    let mut upper = table(&["c"]);
    upper.view = Some(BodyText::Text("SELECT code AS c FROM v".to_owned()));
    let tables = || vec![("v", view.clone()), ("w", upper.clone()), ("journal", table(&["code"]))];
    let reading = read(catalogue(Postgres, &[], tables()), "SELECT * FROM w WHERE c = 'AP'");
    assert_eq!(lines(&reading), ["reads s.journal[code = 'AP'] at v:1", "reads s.u[] at v:1"]);
}

#[test]
fn a_trigger_sees_the_rows_of_the_statement() {
    let function = "CREATE FUNCTION t_audit() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN\n\
        INSERT INTO audit (code, old_code) VALUES (NEW.code, OLD.code); NEW.stamp := 'x'; RETURN NEW; END $$";
    let mut journal = table(&["code", "stamp"]);
    journal.triggers.push(CatalogueTrigger {
        name: "audit".to_owned(),
        events: BTreeSet::from([TriggerEvent::Insert]),
        is_before: true,
        is_instead: false,
        action: TriggerAction::Calls(name("t_audit")),
    });
    let tables = vec![("journal", journal), ("audit", table(&["code", "old_code"]))];
    let catalogue = catalogue(Postgres, &[function], tables);
    let sql = "INSERT INTO journal VALUES ('AP', 'a'); DELETE FROM journal WHERE code = 'B'";
    assert_eq!(
        lines(&read(catalogue, sql)),
        [
            // Columns that the trigger may change are not relied upon.
            "inserts into s.journal[code = 'AP'] at J:1",
            "deletes from s.journal[code = 'B'] at J:1",
            "inserts into s.audit[code = 'AP', old_code = 'AP'] at t_audit:2",
        ]
    );
}

#[test]
fn cascades_parts_and_upserts_follow_the_catalogue() {
    let mut head = table(&["id", "code"]);
    head.cascades.push(Cascade { child: name("line"), on_delete: true, on_update: false });
    let part = Table { partition_of: Some(name("posting")), ..table(&["day"]) };
    let mut keyed = table(&["batch_no", "code", "x"]);
    keyed.unique_keys.push(BTreeSet::from(["batch_no".to_owned()]));
    let tables = vec![
        ("head", head),
        ("line", table(&["id"])),
        ("posting", table(&["day"])),
        ("posting_1", part),
        ("keyed", keyed),
    ];
    let catalogue = catalogue(Postgres, &[], tables);
    let sql = "DELETE FROM head WHERE code = 'A';\nINSERT INTO posting_1 SELECT current_date;\n\
        INSERT INTO keyed (batch_no, code) VALUES ('7', 'A') ON CONFLICT (batch_no) DO UPDATE SET x = 1";
    assert_eq!(
        lines(&read(catalogue, sql)),
        [
            "deletes from s.head[code = 'A'] at J:1",
            "inserts into s.posting[(partition) = 's.posting_1'] at J:2",
            // The existing row may have another code.
            "inserts into or updates s.keyed[batch_no = '7'] at J:3",
            "deletes from s.line[] at J:1",
        ]
    );
}

#[test]
fn what_cannot_be_seen_is_opaque_and_says_how_to_show_it() {
    let mut hidden = parse_routine("CREATE PROCEDURE h() SELECT 1", Mysql).expect("h").routine;
    hidden.name = name("h");
    hidden.body = BodyText::Hidden { grant: "GRANT SHOW_ROUTINE ON *.* TO 'u'@'%'".to_owned() };
    let mut catalogue = catalogue(Mysql, &[], vec![]);
    catalogue.add_routine(hidden);
    let reading = read(catalogue, "CALL h(); CALL absent(1); SELECT other.f(1), now() FROM 'x");
    let reasons: Vec<String> = reading.opaque.iter().map(|part| part.reason.to_string()).collect();
    assert!(reasons.iter().any(|reason| reason.contains("not readable")), "{reasons:?}");

    for (sql, dialect) in [("USE other", Mysql), ("SET LOCAL search_path TO other", Postgres)] {
        let reading = read(self::catalogue(dialect, &[], vec![]), sql);
        let why = reading.opaque.first().map(|part| part.reason.to_string()).unwrap_or_default();
        assert!(why.contains("changes where names are looked for"), "{sql}: {why}");
    }
    let mut again = parse_routine("CREATE PROCEDURE h() SELECT 1", Mysql).expect("h").routine;
    again.name = name("h");
    again.body = BodyText::Hidden { grant: "GRANT SHOW_ROUTINE ON *.* TO 'u'@'%'".to_owned() };
    let mut catalogue = self::catalogue(Mysql, &[], vec![]);
    catalogue.add_routine(again);
    let reading = read(catalogue, "CALL h(); CALL absent(1); SELECT other.f(1), now()");
    assert!(
        matches!(&reading.opaque[0].reason, OpaqueReason::HiddenBody { grant, .. } if grant.contains("SHOW_ROUTINE"))
    );
    assert!(
        matches!(&reading.opaque[1].reason, OpaqueReason::MissingRoutine { name } if name == "absent")
    );
    assert!(
        matches!(&reading.opaque[2].reason, OpaqueReason::MissingRoutine { name } if name == "other.f")
    );
    assert_eq!(reading.opaque.len(), 3, "now() is the server's own");
}

#[test]
fn a_race_names_both_places_and_an_order_or_a_constant_ends_it() {
    let jobs = [
        job("LOAD", "DELETE FROM fx WHERE day = 1;\nINSERT INTO fx (day, r) VALUES (1, 2)"),
        job("USE", "SELECT r FROM fx WHERE day = 1"),
        job("OTHER", "SELECT r FROM fx WHERE day = 2"),
    ];
    let report = compare(&jobs, &[], catalogue(Postgres, &[], vec![]));
    let [race] = &report.conflicts[..] else { panic!("{:?}", report.conflicts) };
    assert_eq!((race.kind, race.table.as_str()), (ConflictKind::Race, "s.fx"));
    assert_eq!(
        (race.first.job.as_str(), race.first.place.to_string().as_str()),
        ("LOAD", "LOAD:1")
    );
    assert_eq!((race.second.job.as_str(), race.second.rows.as_str()), ("USE", "day = 1"));
    let coverage = report.coverage;
    assert_eq!((coverage.pairs, coverage.safe_pairs, coverage.conflicting_pairs), (3, 2, 1));
    let ordered = compare(&jobs, &[("LOAD", "USE")], catalogue(Postgres, &[], vec![]));
    assert_eq!((ordered.conflicts.len(), ordered.coverage.safe_pairs), (0, 2));
    assert_eq!(ordered.without_data, []);
    let gate =
        compare(&jobs, &[("LOAD", "USE"), ("LOAD", "OTHER")], catalogue(Postgres, &[], vec![]));
    assert_eq!(gate.without_data.len(), 1);
}

#[test]
fn a_change_of_a_table_reaches_those_who_read_what_its_readers_write() {
    let jobs = [
        job("LOAD", "INSERT INTO fx VALUES (1)"),
        job("AP", "INSERT INTO journal (code, x) SELECT 'AP', r FROM fx"),
        job("AR", "INSERT INTO journal (code, x) SELECT 'AR', n FROM invoice"),
        job("AP_SUM", "INSERT INTO total SELECT sum(x) FROM journal WHERE code = 'AP'"),
        job("AR_SUM", "SELECT sum(x) FROM journal WHERE code = 'AR'"),
        job("DYN", "DO $$ BEGIN EXECUTE x; END $$"),
    ];
    let targets = targets(catalogue(Postgres, &[], vec![]));
    let lineages: Vec<_> = jobs.iter().map(|job| job_lineage(job, &targets)).collect();
    let found = find_impact(&lineages, "FX");
    assert_eq!(found.writers.iter().map(|one| one.job.as_str()).collect::<Vec<_>>(), ["LOAD"]);
    let reached: Vec<_> =
        found.reached.iter().map(|one| (one.job.as_str(), one.through.as_deref())).collect();
    assert_eq!(reached, [("AP", None), ("AP_SUM", Some("AP"))], "AR has rows of its own");
    assert_eq!(found.unknown, ["DYN"]);
}

#[test]
fn accesses_whose_order_does_not_matter_are_no_conflict() {
    let tables =
        || vec![("period", table(&["batch_no", "status", "days"])), ("log", table(&["x"]))];
    for (one, two, conflicts) in [
        ("INSERT INTO log VALUES (1)", "INSERT INTO log VALUES (2)", 0),
        ("INSERT INTO log VALUES (1)", "SELECT count(*) FROM log", 1),
        ("DELETE FROM log WHERE x = 1", "DELETE FROM log", 0),
        ("UPDATE period SET status = 'LOCKED'", "SELECT days FROM period", 0),
        ("UPDATE period SET status = 'LOCKED'", "SELECT days FROM period WHERE status = 'OPEN'", 1),
        ("UPDATE period SET status = 'LOCKED'", "SELECT * FROM period", 1),
        ("UPDATE period SET status = 'LOCKED'", "UPDATE period SET days = 3 WHERE batch_no = 1", 0),
        ("UPDATE period SET status = 'LOCKED'", "UPDATE period SET days = length(status)", 1),
        ("UPDATE unknown_table SET a = 1", "SELECT b FROM unknown_table", 1),
        ("TRUNCATE log", "SELECT 1 FROM log WHERE x = 5", 1),
    ] {
        let jobs = [job("A", one), job("B", two)];
        let report = compare(&jobs, &[], catalogue(Postgres, &[], tables()));
        assert_eq!(report.conflicts.len(), conflicts, "{one} / {two}: {:?}", report.conflicts);
    }
}

#[test]
fn two_jobs_that_refill_one_table_need_a_lock_and_no_order() {
    let refill = "TRUNCATE stage; INSERT INTO stage SELECT 1; SELECT * FROM stage";
    let mut jobs = [job("A", refill), job("B", refill)];
    let report = compare(&jobs, &[], catalogue(Postgres, &[], vec![]));
    assert_eq!(report.conflicts.len(), 1);
    assert_eq!(report.conflicts[0].kind, ConflictKind::StagingTable);
    for job in &mut jobs {
        job.locks = vec![LockUse { lock: "stage".to_owned(), mode: LockMode::Exclusive }];
    }
    let locked = compare(&jobs, &[], catalogue(Postgres, &[], vec![]));
    assert_eq!((locked.conflicts.len(), locked.coverage.safe_pairs), (0, 1));
}

#[test]
fn nothing_is_safe_beside_a_job_that_is_not_wholly_known_unless_its_owner_answers() {
    let dynamic = "DO $$ BEGIN EXECUTE 'DELETE FROM fx WHERE day = 1'; END $$";
    let mut jobs = [job("DYN", dynamic), job("A", "SELECT * FROM fx"), job("B", "SELECT 1 FROM t")];
    let report = compare(&jobs, &[], catalogue(Postgres, &[], vec![]));
    assert_eq!(report.conflicts.len(), 1, "{:?}", report.conflicts);
    assert_eq!(report.conflicts[0].kind, ConflictKind::Possible);
    let coverage = report.coverage;
    assert_eq!((coverage.jobs, coverage.whole_jobs), (3, 2));
    assert_eq!((coverage.pairs, coverage.safe_pairs, coverage.unknown_pairs), (3, 1, 1));
    assert_eq!(report.unknown[0].pairs.len(), 2);
    let said = r#"{"writes": ["fx[day=1]"], "opaque": "accepted"}"#;
    jobs[0].lineage = Some(Box::new(serde_json::from_str(said).expect("a declaration")));
    let report = compare(&jobs, &[], catalogue(Postgres, &[], vec![]));
    assert_eq!(report.conflicts[0].kind, ConflictKind::Race);
    assert_eq!((report.coverage.safe_pairs, report.coverage.unknown_pairs), (2, 0));
    let said = r#"{"opaque": "accepted", "ignore": ["fx"]}"#;
    jobs[0].lineage = Some(Box::new(serde_json::from_str(said).expect("a declaration")));
    let report = compare(&jobs, &[], catalogue(Postgres, &[], vec![]));
    assert_eq!((report.conflicts.len(), report.coverage.safe_pairs), (0, 3));
}
