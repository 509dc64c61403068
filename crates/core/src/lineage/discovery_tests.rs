//! Drafts from masters and from all procedures of a schema.

use crate::domain::id::{GroupCode, SourceName};
use crate::domain::job::{Param, ParamMode, ParamType};
use crate::domain::source::DialectName::{self, Mysql, Postgres};
use crate::lineage::{
    Catalogue, DefinitionDraft, DiscoveryError, DraftMatter, DraftPlace, GateMatter, LineageTarget,
    ObjectName, Table, draft_from_master, draft_schema, parse_routine,
};
use std::collections::BTreeMap;

/// The procedures of a small period-end close: two loads, a posting that reads both, a report of it, a log that all
/// write.
const STEPS: &[&str] = &[
    "CREATE PROCEDURE sp_load_ap(IN p_batch_no VARCHAR(9), OUT p_rows INT) BEGIN DELETE FROM line WHERE batch_no = p_batch_no AND code = 'AP'; INSERT INTO line (batch_no, code) VALUES (p_batch_no, 'AP'); SET p_rows = 1; END",
    "CREATE PROCEDURE sp_load_ar(IN p_batch_no VARCHAR(9), OUT p_rows INT) BEGIN DELETE FROM line WHERE batch_no = p_batch_no AND code = 'AR'; INSERT INTO line (batch_no, code) VALUES (p_batch_no, 'AR'); END",
    "CREATE PROCEDURE sp_post(IN p_batch_no VARCHAR(9), IN p_rate DECIMAL(9,2)) BEGIN INSERT INTO ledger (batch_no) SELECT batch_no FROM line WHERE batch_no = p_batch_no; END",
    "CREATE PROCEDURE sp_report(IN p_batch_no VARCHAR(9), IN p_rows INT) BEGIN SELECT * FROM ledger WHERE batch_no = p_batch_no; END",
    "CREATE PROCEDURE sp_mail(IN p_text VARCHAR(9)) BEGIN SET @q = CONCAT('INSERT INTO outbox VALUES (', p_text, ')'); PREPARE s FROM @q; EXECUTE s; END",
    "CREATE PROCEDURE sp_log(IN p_text VARCHAR(9)) BEGIN INSERT INTO etl_log (msg) VALUES (p_text); END",
];

fn catalogue(dialect: DialectName, routines: &[&str]) -> Catalogue {
    let mut catalogue = Catalogue::new(dialect, vec!["s".to_owned()], false);
    let tables: [(&str, &[&str]); 4] = [
        ("line", &["batch_no", "code"]),
        ("ledger", &["batch_no"]),
        ("etl_log", &["msg"]),
        ("outbox", &["msg"]),
    ];
    for (table, columns) in tables {
        let columns = columns.iter().map(ToString::to_string).collect();
        let table_of = Table { columns, ..Table::default() };
        catalogue.add_table(ObjectName::within("s", table), table_of);
    }
    for text in routines {
        let mut made = parse_routine(text, dialect).expect(text).routine;
        made.name = ObjectName::within("s", &made.name.name);
        catalogue.add_routine(made);
    }
    catalogue
}

fn with_place<T>(catalogue: Catalogue, draft: impl FnOnce(DraftPlace<'_>) -> T) -> T {
    let target = LineageTarget {
        server: "server".to_owned(),
        catalogue: Ok(catalogue),
        procedures: BTreeMap::new(),
    };
    let source = SourceName::parse("db").expect("a name");
    let group = GroupCode::parse("g").expect("a code");
    draft(DraftPlace { source: &source, group: &group, target: &target, schema: "s" })
}

/// A draft from a MySQL master with this body.
fn from_master(body: &str) -> DefinitionDraft {
    let master =
        format!("CREATE PROCEDURE sp_all(IN p_batch_no VARCHAR(9), IN p_rate INT)\n{body}");
    let routines: Vec<&str> = STEPS.iter().copied().chain([master.as_str()]).collect();
    with_place(catalogue(Mysql, &routines), |place| draft_from_master(place, "sp_all"))
        .expect("a draft")
}

/// `CHILD after A, B`, in order.
fn edges(draft: &DefinitionDraft) -> Vec<String> {
    let one = |job: &crate::domain::job::JobDef| {
        let parents = draft.dependencies.iter().filter(|one| one.job_code == job.code);
        let parents: Vec<&str> = parents.map(|one| one.depends_on.as_str()).collect();
        match parents.is_empty() {
            true => job.code.to_string(),
            false => format!("{} after {}", job.code, parents.join(", ")),
        }
    };
    draft.jobs.iter().map(one).collect()
}

fn matters<'d>(draft: &'d DefinitionDraft, job: &str) -> Vec<&'d DraftMatter> {
    let is_its = |note: &&crate::lineage::DraftNote| {
        note.job.as_ref().map(|code| code.as_str()) == Some(job)
    };
    draft.notes.iter().filter(is_its).map(|note| &note.matter).collect()
}

/// The comments on the whole draft, without those on assumed batch numbers.
fn head_matters(draft: &DefinitionDraft) -> Vec<&DraftMatter> {
    let is_other = |matter: &&DraftMatter| !matches!(matter, DraftMatter::TakenForBatchNo { .. });
    let head = draft.notes.iter().filter(|note| note.job.is_none());
    head.map(|note| &note.matter).filter(is_other).collect()
}

fn values(draft: &DefinitionDraft, job: &str) -> Vec<String> {
    let job = draft.jobs.iter().find(|one| one.code.as_str() == job).expect("the job");
    let one = |param: &Param| match param.mode {
        ParamMode::Out => format!("{} out", param.name),
        _ => format!("{} = {}", param.name, param.value.as_deref().unwrap_or("NULL")),
    };
    job.params.iter().map(one).collect()
}

#[test]
fn a_serial_master_becomes_parallel_where_no_data_is_shared() {
    let draft = from_master(
        "BEGIN
  DECLARE v_ap INT; DECLARE v_ar INT;
  CALL sp_load_ap(p_batch_no, v_ap);
  CALL sp_load_ar(p_batch_no, v_ar);
  CALL sp_post(p_batch_no, 1.5);
  CALL sp_report(p_batch_no, v_ap);
END",
    );
    assert_eq!(
        edges(&draft),
        ["LOAD_AP", "LOAD_AR", "POST after LOAD_AP, LOAD_AR", "REPORT after POST"]
    );
    assert_eq!(values(&draft, "LOAD_AP"), ["p_batch_no = ${batch_no}", "p_rows out"]);
    assert_eq!(values(&draft, "POST"), ["p_batch_no = ${batch_no}", "p_rate = 1.5"]);
    let report = ["p_batch_no = ${batch_no}", "p_rows = ${jobs.LOAD_AP.p_rows}"];
    assert_eq!(values(&draft, "REPORT"), report);
    assert_eq!(draft.coverage.safe_pairs, draft.coverage.pairs);
    assert_eq!(draft.params, []);
    let taken = DraftMatter::TakenForBatchNo { param: "p_batch_no".to_owned() };
    assert_eq!(draft.notes, [crate::lineage::DraftNote { job: None, matter: taken }]);
}

#[test]
fn a_step_that_cannot_be_read_stays_between_its_neighbours() {
    let draft = from_master(
        "BEGIN
  DECLARE v INT;
  CALL sp_load_ap(p_batch_no, v);
  CALL sp_mail('x');
  CALL sp_load_ar(p_batch_no, v);
END",
    );
    assert_eq!(edges(&draft), ["LOAD_AP", "MAIL after LOAD_AP", "LOAD_AR after MAIL"]);
    assert!(matches!(matters(&draft, "MAIL")[..], [DraftMatter::Dynamic { .. }]));
}

#[test]
fn an_output_is_handed_on_and_makes_an_order_without_shared_tables() {
    let draft = from_master(
        "BEGIN
  DECLARE v INT DEFAULT 0; DECLARE w INT;
  CALL sp_load_ap(p_batch_no, v);
  SET w = v;
  CALL sp_log(w);
END",
    );
    assert_eq!(edges(&draft), ["LOAD_AP", "LOG after LOAD_AP"]);
    assert_eq!(values(&draft, "LOG"), ["p_text = ${jobs.LOAD_AP.p_rows}"]);
}

#[test]
fn values_that_are_made_are_asked_for_and_constants_are_kept() {
    let draft = from_master(
        "BEGIN
  DECLARE v INT DEFAULT -3;
  CALL sp_log('it''s');
  CALL sp_log(v);
  CALL sp_log(NULL);
  CALL sp_log(CONCAT('a', v));
  CALL sp_log(p_rate);
  SELECT COUNT(*) INTO v FROM line;
  CALL sp_log(v);
END",
    );
    let of = |job: &str| values(&draft, job).remove(0);
    assert_eq!(of("LOG"), "p_text = it's");
    assert_eq!(of("LOG_2"), "p_text = -3");
    assert_eq!(of("LOG_3"), "p_text = NULL");
    assert!(matches!(matters(&draft, "LOG_3")[..], [DraftMatter::NullValue { .. }]));
    assert_eq!(of("LOG_4"), "p_text = ${params.log_4_p_text}");
    assert_eq!(of("LOG_5"), "p_text = ${params.p_rate}");
    assert_eq!(of("LOG_6"), "p_text = ${params.log_6_p_text}");
    let asked: Vec<&str> = draft.params.iter().map(|param| param.name.as_str()).collect();
    assert_eq!(asked, ["log_4_p_text", "log_6_p_text", "p_rate"]);
    let [DraftMatter::UnknownValue { from: Some((text, line)), .. }] = matters(&draft, "LOG_4")[..]
    else {
        panic!("{:?}", draft.notes)
    };
    assert_eq!((text.as_str(), *line), ("CONCAT('a', v)", 6));
    // Rows that are only inserted give the same result in either order.
    assert!(draft.dependencies.is_empty(), "{:?}", edges(&draft));
}

#[test]
fn what_may_happen_or_not_is_a_barrier_and_a_question() {
    let draft = from_master(
        "BEGIN
  DECLARE v INT; DECLARE i INT DEFAULT 0;
  CALL sp_load_ap(p_batch_no, v);
  IF v > 0 THEN
    SET i = 1;
    CALL sp_log(i);
  ELSE
    CALL sp_log(i);
  END IF;
  WHILE i < 3 DO
    CALL sp_log(i);
    SET i = i + 1;
  END WHILE;
  CALL sp_load_ar(p_batch_no, v);
END",
    );
    assert_eq!(
        edges(&draft),
        [
            "LOAD_AP",
            "LOG after LOAD_AP",
            "LOG_2 after LOG",
            "LOG_3 after LOG_2",
            "LOAD_AR after LOG_3"
        ]
    );
    assert_eq!(values(&draft, "LOG"), ["p_text = 1"]);
    // In the other branch, in the loop and after it, the value of `i` is unknown.
    assert_eq!(values(&draft, "LOG_2"), ["p_text = ${params.log_2_p_text}"]);
    assert_eq!(values(&draft, "LOG_3"), ["p_text = ${params.log_3_p_text}"]);
    let is_conditional = |matter: &&DraftMatter| matches!(matter, DraftMatter::Conditional { text, line: 4 } if text == "IF v > 0");
    assert!(matters(&draft, "LOG").iter().any(is_conditional), "{:?}", draft.notes);
    let loops = |matter: &&DraftMatter| matches!(matter, DraftMatter::Looped { line: 10, .. });
    assert!(matters(&draft, "LOG_3").iter().any(loops), "{:?}", draft.notes);
}

#[test]
fn a_check_of_the_master_keeps_its_place() {
    let draft = from_master(
        "BEGIN
  DECLARE v INT;
  DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN CALL sp_log('failed'); RESIGNAL; END;
  START TRANSACTION;
  CALL sp_load_ap(p_batch_no, v);
  IF v = 0 THEN SIGNAL SQLSTATE '45000'; END IF;
  CALL sp_load_ar(p_batch_no, v);
  COMMIT;
END",
    );
    assert_eq!(edges(&draft), ["LOAD_AP", "LINE_6 after LOAD_AP", "LOAD_AR after LINE_6"]);
    let gates = matters(&draft, "LINE_6");
    assert!(
        matches!(
            gates[..],
            [
                DraftMatter::Gate { what: GateMatter::Abort, line: 6, .. },
                DraftMatter::Conditional { .. }
            ]
        ),
        "{gates:?}"
    );
    let head = head_matters(&draft);
    let [DraftMatter::Handler { line: 3, calls }, DraftMatter::Transaction { line: Some(4) }] =
        head[..]
    else {
        panic!("{head:?}")
    };
    assert_eq!(calls, &["sp_log"]);
}

#[test]
fn a_block_with_a_handler_is_a_barrier() {
    let draft = from_master(
        "BEGIN
  DECLARE v INT;
  CALL sp_load_ap(p_batch_no, v);
  BEGIN
    DECLARE CONTINUE HANDLER FOR SQLEXCEPTION SET v = -1;
    CALL sp_log('x');
  END;
  CALL sp_load_ar(p_batch_no, v);
  CALL sp_log(v);
END",
    );
    assert_eq!(
        edges(&draft),
        ["LOAD_AP", "LOG after LOAD_AP", "LOAD_AR after LOG", "LOG_2 after LOG"]
    );
    assert!(matches!(matters(&draft, "LOG")[..], [DraftMatter::Guarded { line: 4 }]));
    // A handler may assign it at any time.
    assert_eq!(values(&draft, "LOG_2"), ["p_text = ${params.log_2_p_text}"]);
}

#[test]
fn a_statement_of_the_master_becomes_a_job_of_its_own() {
    let draft = from_master(
        "BEGIN
  DECLARE v INT; DECLARE v_code VARCHAR(9) DEFAULT 'AP';
  CALL sp_load_ap(p_batch_no, v);
  DELETE FROM line
    WHERE code = v_code;
  DELETE FROM line WHERE batch_no = p_batch_no;
  CREATE TEMPORARY TABLE t (a INT);
  INSERT INTO etl_log (msg) VALUES (v);
  CALL sp_load_ar(p_batch_no, v);
END",
    );
    let job = draft.jobs.iter().find(|job| job.code.as_str() == "LINE_4").expect("the job");
    let sql = job.sql.as_ref().and_then(|sql| sql.text_for(Mysql)).expect("a text");
    assert_eq!(sql, "DELETE FROM line\nWHERE code = :v_code");
    assert_eq!(values(&draft, "LINE_4"), ["v_code = AP"]);
    assert_eq!(values(&draft, "LINE_6"), ["p_batch_no = ${batch_no}"]);
    let typed = draft.jobs.iter().find(|job| job.code.as_str() == "LINE_8").expect("the job");
    assert_eq!(typed.params[0].ty, ParamType::Int, "as the variable is declared");
    assert_eq!(values(&draft, "LINE_8"), ["v = ${jobs.LOAD_AP.p_rows}"]);
    let gates = matters(&draft, "LINE_7");
    assert!(
        matches!(gates[..], [DraftMatter::Gate { what: GateMatter::Statement(_), .. }]),
        "a temporary table lives in one session: {gates:?}"
    );
    assert_eq!(
        edges(&draft),
        [
            "LOAD_AP",
            "LINE_4 after LOAD_AP",
            "LINE_6 after LOAD_AP",
            "LINE_7 after LINE_4, LINE_6",
            "LINE_8 after LINE_7",
            "LOAD_AR after LINE_7"
        ]
    );
}

#[test]
fn a_variable_that_may_be_a_column_is_not_taken_for_either() {
    let master = "CREATE PROCEDURE sp_all(IN batch_no VARCHAR(9)) BEGIN\nDELETE FROM ledger WHERE batch_no = batch_no;\nCALL sp_log('x'); END";
    let routines: Vec<&str> = STEPS.iter().copied().chain([master]).collect();
    let draft = with_place(catalogue(Mysql, &routines), |place| draft_from_master(place, "sp_all"))
        .expect("a draft");
    let gates = matters(&draft, "LINE_2");
    assert!(
        matches!(gates[..], [DraftMatter::Gate { what: GateMatter::Statement(_), .. }]),
        "{gates:?}"
    );
}

#[test]
fn a_master_of_postgres_is_read_too() {
    let routines = [
        "CREATE PROCEDURE load(IN p_batch text, INOUT n int) LANGUAGE plpgsql AS $$ BEGIN INSERT INTO line (batch_no, code) VALUES (p_batch, 'X'); END $$",
        "CREATE FUNCTION post(p_batch text) RETURNS void LANGUAGE plpgsql AS $$ BEGIN INSERT INTO ledger SELECT batch_no FROM line WHERE batch_no = p_batch; END $$",
        "CREATE PROCEDURE log(p_text text) LANGUAGE plpgsql AS $$ BEGIN INSERT INTO etl_log (msg) VALUES (p_text); END $$",
        "CREATE PROCEDURE all_steps(p_batch_no text) LANGUAGE plpgsql AS $$
DECLARE n int := 7; what text := 'done';
BEGIN
  CALL log(p_text => 'begin');
  CALL load(p_batch_no, n);
  PERFORM post(p_batch_no);
  what := 'x' || n;
  CALL log(what);
  CALL log(n::text);
EXCEPTION WHEN OTHERS THEN
  CALL log('failed');
  RAISE;
END $$",
    ];
    let draft =
        with_place(catalogue(Postgres, &routines), |place| draft_from_master(place, "all_steps"))
            .expect("a draft");
    assert_eq!(edges(&draft), ["LOG", "LOAD", "POST after LOAD", "LOG_2", "LOG_3"]);
    assert_eq!(values(&draft, "LOG"), ["p_text = begin"]);
    assert_eq!(values(&draft, "LOAD"), ["p_batch = ${batch_no}", "n = 7"]);
    assert_eq!(values(&draft, "LOG_2"), ["p_text = ${params.log_2_p_text}"]);
    let head = head_matters(&draft);
    assert!(
        matches!(head[..], [DraftMatter::Handler { .. }, DraftMatter::Transaction { line: None }]),
        "{head:?}"
    );
}

#[test]
fn a_variable_of_the_session_that_another_sets_is_a_question() {
    let reader = "CREATE PROCEDURE sp_reads() BEGIN INSERT INTO etl_log (msg) VALUES (@run); END";
    let master =
        "CREATE PROCEDURE sp_all() BEGIN\nSET @run = 5;\nCALL sp_reads();\nCALL sp_mail('x'); END";
    let routines: Vec<&str> = STEPS.iter().copied().chain([reader, master]).collect();
    let draft = with_place(catalogue(Mysql, &routines), |place| draft_from_master(place, "sp_all"))
        .expect("a draft");
    let asks = |matter: &&DraftMatter| matches!(matter, DraftMatter::SessionVariable { variable, set_by } if variable == "@run" && set_by.is_empty());
    assert!(matters(&draft, "READS").iter().any(asks), "{:?}", draft.notes);
    let of_mail = matters(&draft, "MAIL");
    assert!(
        !of_mail.iter().any(|matter| matches!(matter, DraftMatter::SessionVariable { .. })),
        "it sets its own: {of_mail:?}"
    );
}

#[test]
fn masters_that_cannot_be_read_say_why() {
    let refused = |master: &str, name: &str| {
        let routines: Vec<&str> = STEPS.iter().copied().chain([master]).collect();
        with_place(catalogue(Mysql, &routines), |place| draft_from_master(place, name))
            .expect_err("refused")
    };
    let near = refused("CREATE PROCEDURE sp_all() BEGIN END", "sp_al");
    assert!(
        matches!(&near, DiscoveryError::NoMaster(why) if why.contains("did you mean sp_all?")),
        "{near}"
    );
    let empty = refused("CREATE PROCEDURE sp_all() BEGIN DELETE FROM line; END", "sp_all");
    assert!(
        matches!(&empty, DiscoveryError::UnreadMaster(why) if why.contains("calls no procedure")),
        "{empty}"
    );
}

#[test]
fn all_procedures_are_jobs_in_the_order_of_their_data() {
    let more = [
        "CREATE PROCEDURE sp_all(IN p_batch_no VARCHAR(9)) BEGIN DECLARE v INT; CALL sp_load_ap(p_batch_no, v); CALL sp_post(p_batch_no, 1); END",
        "CREATE PROCEDURE sp_a_part(IN p VARCHAR(9)) BEGIN UPDATE line SET batch_no = p; END",
        "CREATE PROCEDURE sp_whole(IN p VARCHAR(9)) BEGIN CALL sp_a_part(p); DELETE FROM outbox; END",
        "CREATE FUNCTION f_rate(p INT) RETURNS INT RETURN 1",
    ];
    let routines: Vec<&str> = STEPS.iter().copied().chain(more).collect();
    let draft = with_place(catalogue(Mysql, &routines), |place| draft_schema(place, None))
        .expect("a draft");
    let codes: Vec<&str> = draft.jobs.iter().map(|job| job.code.as_str()).collect();
    assert_eq!(codes, ["LOAD_AP", "LOAD_AR", "LOG", "MAIL", "POST", "REPORT", "WHOLE"]);
    let head = head_matters(&draft);
    let is_part = |matter: &&DraftMatter| matches!(matter, DraftMatter::CalledByOthers { routine, callers } if routine == "sp_a_part" && callers == &["sp_whole"]);
    let is_master = |matter: &&DraftMatter| matches!(matter, DraftMatter::OnlyCalls { routine, calls: 2 } if routine == "sp_all");
    assert!(head.iter().any(is_part) && head.iter().any(is_master), "{head:?}");
    let found = edges(&draft);
    assert!(found.contains(&"REPORT after POST".to_owned()), "{found:?}");
    // A job that changes rows which others create and still others read comes between them.
    assert!(found.contains(&"POST after WHOLE".to_owned()), "{found:?}");
    assert!(found.contains(&"WHOLE after LOAD_AP, LOAD_AR, MAIL".to_owned()), "{found:?}");
    let offered = |matter: &&DraftMatter| matches!(matter, DraftMatter::UnknownValue { param, offered: None, .. } if param == "p_rows");
    assert!(
        matters(&draft, "REPORT").iter().any(offered),
        "two hand back p_rows: {:?}",
        draft.notes
    );
    assert_eq!(draft.coverage.conflicting_pairs, 0, "{:?}", draft.coverage);
    let some =
        with_place(catalogue(Mysql, &routines), |place| draft_schema(place, Some("SP\\_LOAD%")));
    assert!(some.is_err(), "a backslash is a letter like others");
    let some =
        with_place(catalogue(Mysql, &routines), |place| draft_schema(place, Some("SP_LOAD%")))
            .expect("a draft");
    assert_eq!(some.jobs.len(), 2);
    let none =
        with_place(catalogue(Mysql, &routines), |place| draft_schema(place, Some("sp_pots")))
            .expect_err("none");
    assert!(none.to_string().contains("did you mean sp_post?"), "{none}");
}
