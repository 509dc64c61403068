//! Bodies in both dialects, with their expected accesses.

use crate::domain::source::DialectName::{self, Mysql, Postgres};
use crate::lineage::{
    AccessMode, BodyFacts, BodyKind, BodyText, Catalogue, ColumnSet, SourceText, parse_routine,
    read_body,
};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

fn read(text: &str, dialect: DialectName) -> BodyFacts {
    let catalogue = Catalogue::new(dialect, vec!["db".to_owned()], false);
    let made = parse_routine(text, dialect).expect("a routine");
    let BodyText::Text(body) = &made.routine.body else { panic!("a text") };
    let params = &made.routine.params;
    read_body(
        &SourceText {
            text: body,
            first_line: 1,
            kind: BodyKind::Procedural,
            params,
            path: &catalogue.search_path,
        },
        &catalogue,
    )
}

fn read_sql(text: &str, dialect: DialectName) -> BodyFacts {
    let catalogue = Catalogue::new(dialect, vec!["db".to_owned()], false);
    let body = SourceText {
        text,
        first_line: 1,
        kind: BodyKind::Sql,
        params: &[],
        path: &catalogue.search_path,
    };
    read_body(&body, &catalogue)
}

/// `reads t[a = 'X']@line`, in the order of the text.
fn lines(facts: &BodyFacts) -> Vec<String> {
    facts
        .accesses
        .iter()
        .map(|one| format!("{} {}[{}]@{}", one.mode.as_verb(), one.table, one.slice, one.line))
        .collect()
}

#[test]
fn constants_are_followed_through_insert_and_where() {
    let facts = read(
        "CREATE PROCEDURE p(IN p_batch VARCHAR(50), OUT p_rows INT)
BEGIN
  DECLARE v_code VARCHAR(10) DEFAULT 'AP';
  DELETE FROM journal WHERE batch_no = p_batch AND code = v_code;
  INSERT INTO journal (batch_no, code, amount)
  WITH v AS (SELECT i.net, r.rate FROM invoice i JOIN rate r ON r.batch_no = i.batch_no
              WHERE i.batch_no = p_batch)
  SELECT p_batch, 'AP', net FROM v UNION ALL SELECT p_batch, 'AP', rate FROM v;
  SELECT COUNT(*) INTO p_rows FROM journal WHERE batch_no = p_batch AND code IN ('AP', 'AR');
END",
        Mysql,
    );
    assert_eq!(facts.unreadable, []);
    assert_eq!(facts.read_by_words, []);
    assert_eq!(
        lines(&facts),
        [
            "deletes from journal[batch_no = p_batch, code = 'AP']@3",
            "reads invoice[batch_no = p_batch]@5",
            "reads rate[batch_no = p_batch]@5",
            "inserts into journal[batch_no = p_batch, code = 'AP']@4",
            "reads journal[batch_no = p_batch, code in ('AP', 'AR')]@8",
        ]
    );
}

#[test]
fn what_an_outer_join_or_a_negation_says_narrows_nothing_it_should_not() {
    for (sql, expected) in [
        (
            "SELECT a.x FROM a LEFT JOIN b ON b.id = a.id AND a.code = 'A' AND b.code = 'B'",
            ["reads a[]@1", "reads b[code = 'B']@1"],
        ),
        (
            "SELECT a.x FROM a WHERE NOT EXISTS (SELECT 1 FROM b WHERE b.k = 1 AND a.code = 'A')",
            ["reads a[]@1", "reads b[k = 1]@1"],
        ),
        (
            "SELECT a.x FROM a JOIN b ON a.id = b.id WHERE a.code = 'A' OR b.code = 'B'",
            ["reads a[]@1", "reads b[]@1"],
        ),
        (
            "SELECT x FROM (SELECT x, code FROM a) s JOIN b ON s.code = b.code WHERE b.code = 'B'",
            ["reads a[code = 'B']@1", "reads b[code = 'B']@1"],
        ),
        (
            "SELECT x FROM (SELECT x, code FROM a LIMIT 5) s, b WHERE s.code = 'A' AND b.code <> 'B'",
            ["reads a[]@1", "reads b[]@1"],
        ),
        (
            "SELECT 1 FROM a WHERE a.code = 'A' AND a.id IN (SELECT b.id FROM b WHERE b.id = 7)",
            ["reads a[code = 'A', id = 7]@1", "reads b[id = 7]@1"],
        ),
        (
            "SELECT 1 FROM a WHERE a.code = 'A' AND (a.k = 1 OR a.k IN (2, 3)) AND a.x = (SELECT max(y) FROM b)",
            ["reads a[code = 'A', k in (1, 2, 3)]@1", "reads b[]@1"],
        ),
    ] {
        for dialect in [Mysql, Postgres, DialectName::Sqlite] {
            assert_eq!(lines(&read_sql(sql, dialect)), expected, "{dialect}: {sql}");
        }
    }
}

#[test]
fn pl_pgsql_is_split_into_its_statements() {
    let facts = read(
        "CREATE OR REPLACE PROCEDURE p(p_batch text, INOUT p_rows bigint) LANGUAGE plpgsql AS $$
DECLARE
  v_code text := 'AP';
  r record;
  c CURSOR (k int) FOR SELECT * FROM cur_src WHERE code = 'C';
BEGIN
  <<outer>>
  FOR r IN SELECT id, code FROM src WHERE batch_no = p_batch LOOP
    CONTINUE outer WHEN r.id IS NULL OR EXISTS (SELECT 1 FROM skip_list);
    IF (SELECT count(*) FROM chk) > 0 THEN
      INSERT INTO tgt (batch_no, code) VALUES (p_batch, v_code) RETURNING 1 INTO p_rows;
    ELSIF r.id = 2 THEN
      PERFORM f_log(p_batch, 'x');
    END IF;
  END LOOP;
  p_rows := (SELECT count(*) FROM tgt WHERE code = 'AP');
  UPDATE tgt SET amount = 0 WHERE code = v_code AND batch_no = p_batch;
EXCEPTION WHEN no_data_found OR SQLSTATE '23505' THEN
  INSERT INTO err_log VALUES (now(), SQLERRM);
  RAISE NOTICE 'failed %', (SELECT count(*) FROM err_log);
END $$;",
        Postgres,
    );
    assert_eq!((facts.unreadable.len(), facts.read_by_words.len()), (0, 0), "{facts:?}");
    assert_eq!(
        lines(&facts),
        [
            "reads cur_src[code = 'C']@5",
            "reads src[batch_no = p_batch]@8",
            "reads skip_list[]@9",
            "reads chk[]@10",
            "inserts into tgt[batch_no = p_batch, code = 'AP']@11",
            "reads tgt[code = 'AP']@16",
            "updates tgt[batch_no = p_batch, code = 'AP']@17",
            "inserts into err_log[]@19",
            "reads err_log[]@20",
        ]
    );
    assert!(facts.calls.iter().any(|call| call.routine.name == "f_log" && call.line == 13));
}

#[test]
fn a_variable_that_is_assigned_elsewhere_narrows_nothing() {
    let facts = read(
        "CREATE PROCEDURE p(IN p_code VARCHAR(10))
BEGIN
  DECLARE v, w VARCHAR(10) DEFAULT 'A';
  SELECT code INTO v FROM setting WHERE id = 1;
  IF v = 'B' THEN SET w = 'B'; END IF;
  UPDATE t SET x = 1 WHERE code = v;
  UPDATE t SET x = 1 WHERE code = w;
  CALL other(p_code);
  UPDATE t SET x = 1 WHERE code = p_code;
END",
        Mysql,
    );
    let written: Vec<String> = lines(&facts).into_iter().filter(|l| l.starts_with("upd")).collect();
    // `other` is unknown: it may return something in its parameter.
    assert_eq!(written, ["updates t[]@5", "updates t[code in ('A', 'B')]@6", "updates t[]@8"]);
}

#[test]
fn an_update_holds_the_rows_before_and_after() {
    let facts = read_sql(
        "UPDATE t SET status = 'DONE', x = x + 1 WHERE status = 'NEW' AND batch_no = :b;\n\
         UPDATE t SET batch_no = 'Z' WHERE code = 'A'",
        Mysql,
    );
    assert_eq!(
        lines(&facts),
        ["updates t[batch_no = :b, status in ('DONE', 'NEW')]@1", "updates t[code = 'A']@2"]
    );
    let columns = ["status", "x"].map(str::to_owned).into();
    assert_eq!(facts.accesses[0].written, ColumnSet::Only(columns));
}

#[test]
fn dynamic_sql_is_always_told_with_what_its_literals_say() {
    for (text, dialect) in [
        (
            "CREATE PROCEDURE p() BEGIN SET @q = CONCAT('DELETE FROM stage_', 'x WHERE ', 1);\
             PREPARE s FROM @q; EXECUTE s; DEALLOCATE PREPARE s; END",
            Mysql,
        ),
        ("CREATE PROCEDURE p() EXECUTE IMMEDIATE 'TRUNCATE TABLE whole'", Mysql),
        (
            "CREATE FUNCTION p() RETURNS void LANGUAGE plpgsql AS $$ BEGIN \
             EXECUTE format('INSERT INTO log_a SELECT * FROM %I', 'x') USING (SELECT 1 FROM u); END $$",
            Postgres,
        ),
        (
            "CREATE FUNCTION p() RETURNS setof int LANGUAGE plpgsql AS $$ BEGIN \
             RETURN QUERY EXECUTE 'SELECT a FROM b'; END $$",
            Postgres,
        ),
        (
            "CREATE FUNCTION p() RETURNS int LANGUAGE plpgsql AS $$ DECLARE r record; BEGIN \
             FOR r IN EXECUTE 'SELECT a FROM b' LOOP RETURN 1; END LOOP; END $$",
            Postgres,
        ),
    ] {
        let facts = read(text, dialect);
        assert!(!facts.dynamic.is_empty(), "{text}");
        assert_eq!(facts.unreadable, [], "{text}");
    }
    let facts = read("CREATE PROCEDURE p() EXECUTE IMMEDIATE 'TRUNCATE TABLE whole'", Mysql);
    assert_eq!(facts.guesses.len(), 1);
    assert_eq!(
        (facts.guesses[0].table.name.as_str(), facts.guesses[0].mode),
        ("whole", AccessMode::Whole)
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// Random sequences of words never cause a panic.
    #[test]
    fn words_in_any_order_are_read(words in vec(select(WORDS.to_vec()), 0..60)) {
        let text = words.join(" ");
        for dialect in DialectName::ALL {
            read_sql(&text, dialect);
            let made = parse_routine(&format!("CREATE PROCEDURE p(IN a INT) {text}"), dialect);
            if let Some(BodyText::Text(body)) = made.map(|made| made.routine.body) {
                read_sql(&body, dialect);
            }
        }
    }
}

const WORDS: [&str; 64] = [
    "BEGIN",
    "END",
    "IF",
    "THEN",
    "ELSE",
    "ELSIF",
    "CASE",
    "WHEN",
    "LOOP",
    "WHILE",
    "DO",
    "FOR",
    "IN",
    "REPEAT",
    "UNTIL",
    "DECLARE",
    "CURSOR",
    "HANDLER",
    "CONTINUE",
    "EXIT",
    "SET",
    "x",
    "t",
    "u",
    "@v",
    ":=",
    "=",
    ";",
    ",",
    "(",
    ")",
    "SELECT",
    "INTO",
    "FROM",
    "JOIN",
    "ON",
    "WHERE",
    "WITH",
    "AS",
    "INSERT",
    "VALUES",
    "UPDATE",
    "DELETE",
    "MERGE",
    "CONFLICT",
    "CALL",
    "EXECUTE",
    "PREPARE",
    "FETCH",
    "OPEN",
    "RETURN",
    "QUERY",
    "RAISE",
    "PERFORM",
    "CREATE",
    "TABLE",
    "TEMPORARY",
    "LIKE",
    "PARTITION",
    "'a'",
    "1",
    "..",
    ":p",
    "*",
];

#[test]
fn a_result_that_doubles_at_each_step_is_read_in_no_time() {
    let mut common = vec!["c0 AS (SELECT a.x FROM a)".to_owned()];
    for step in 1..60 {
        let before = step - 1;
        common.push(format!(
            "c{step} AS (SELECT x FROM c{before} UNION ALL SELECT x FROM c{before})"
        ));
        common.push(format!("s{step} AS (SELECT * FROM c{before} p, c{before} q, c{before} r)"));
    }
    let text = format!("WITH {} SELECT x FROM c59 WHERE x = 1", common.join(", "));
    for dialect in DialectName::ALL {
        assert_eq!(read_sql(&text, dialect).accesses.len(), 1);
    }
}

#[test]
fn no_text_takes_long_or_overflows_the_stack() {
    let deep = |open: &str, close: &str, n: usize| {
        format!("SELECT 1 FROM t WHERE x = {}1{}", open.repeat(n), close.repeat(n))
    };
    let texts = [
        deep("(", ")", 20_000),
        deep("(SELECT ", ")", 10_000),
        deep("CASE WHEN 1 THEN ", " END", 5_000),
        format!("SELECT {} FROM t", vec!["1"; 10_000].join(" + ")),
        format!("SELECT {} FROM t", vec!["NOT"; 10_000].join(" ")),
        vec!["SELECT 1 FROM t"; 4_000].join(" UNION ALL "),
        format!("SELECT * FROM {}t{}", "(".repeat(20), ")".repeat(20)),
        format!("SELECT * FROM {}t", "(".repeat(20_000)),
        "BEGIN ".repeat(20_000),
        "IF 1 THEN ".repeat(10_000),
        "DECLARE ".repeat(20_000),
        format!("SELECT {}x{}", "f(".repeat(8_000), ")".repeat(8_000)),
        "x".repeat(2_000_000),
        "'".to_owned(),
        "/*".to_owned(),
    ];
    for (at, text) in texts.iter().enumerate() {
        for dialect in DialectName::ALL {
            let facts = read_sql(text, dialect);
            let told = !facts.unreadable.is_empty() || !facts.accesses.is_empty();
            assert!(told || (8..12).contains(&at), "{at} on {dialect} is silent");
        }
    }
}
