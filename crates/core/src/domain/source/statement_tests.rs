use super::*;
use DialectName::{Mysql, Postgres, Sqlite};
use proptest::prelude::*;

fn texts(sql: &str, dialect: DialectName) -> Vec<String> {
    split(sql, dialect).into_iter().map(|s| s.text).collect()
}

#[test]
fn statements_end_at_semicolons_that_are_code() {
    for (dialect, sql, expected) in [
        (Mysql, "SELECT 1; SELECT 2", vec!["SELECT 1", "SELECT 2"]),
        (Mysql, " ;; \n;", vec![]),
        (
            Mysql,
            "SELECT ';'; SELECT \"a;b\"; SELECT `x;y`",
            vec!["SELECT ';'", "SELECT \"a;b\"", "SELECT `x;y`"],
        ),
        (Mysql, r"SELECT 'a\';b'; SELECT 'c'';d'", vec![r"SELECT 'a\';b'", "SELECT 'c'';d'"]),
        (Postgres, r"SELECT 'a\'; SELECT E'b\';c'", vec![r"SELECT 'a\'", r"SELECT E'b\';c'"]),
        (Postgres, r"SELECT name'a\'; x", vec![r"SELECT name'a\'", "x"]),
        (Mysql, "# a;b\nSELECT 1 -- c;d\n; -- e", vec!["SELECT 1 -- c;d"]),
        (Mysql, "SELECT 5--1;SELECT 2", vec!["SELECT 5--1", "SELECT 2"]),
        (Mysql, "/*!40101 SET a=1; */; /* no; */", vec!["/*!40101 SET a=1; */"]),
    ] {
        assert_eq!(texts(sql, dialect), expected, "{dialect}: {sql}");
    }
}

#[test]
fn comments_nest_and_dollars_quote_where_they_do() {
    for (dialect, sql, expected) in [
        (Postgres, "/* a /* b; */ c; */ SELECT 1", vec!["SELECT 1"]),
        (Sqlite, "/* a /* b; */ SELECT 1; SELECT [a;b]", vec!["SELECT 1", "SELECT [a;b]"]),
        (
            Postgres,
            "SELECT $$a;b$$, $x$;$$;$x$; SELECT $1; SELECT a$b$;",
            vec!["SELECT $$a;b$$, $x$;$$;$x$", "SELECT $1", "SELECT a$b$"],
        ),
        (
            Postgres,
            "CREATE RULE r AS ON INSERT TO t DO (SELECT 1; SELECT 2); SELECT 3",
            vec!["CREATE RULE r AS ON INSERT TO t DO (SELECT 1; SELECT 2)", "SELECT 3"],
        ),
        (Postgres, "SELECT '未；完", vec!["SELECT '未；完"]),
    ] {
        assert_eq!(texts(sql, dialect), expected, "{dialect}: {sql}");
    }
}

#[test]
fn bodies_of_routines_stay_whole() {
    for (dialect, routine) in [
        (
            Mysql,
            "CREATE DEFINER=CURRENT_USER() PROCEDURE p() BEGIN DECLARE x INT; \
          IF x THEN SET x = CASE WHEN 1 THEN 2 END; ELSE SET x = IF(1, 2, 3); END IF; \
          WHILE x < 3 DO SET x = x + 1; END WHILE; CASE x WHEN 1 THEN SELECT 1; END CASE; \
          BEGIN SELECT 2; END; END",
        ),
        (
            Mysql,
            "CREATE OR REPLACE TRIGGER t BEFORE INSERT ON a FOR EACH ROW BEGIN SET NEW.b = 1; END",
        ),
        (Mysql, "BEGIN NOT ATOMIC SELECT 1; SELECT 2; END"),
        (
            Sqlite,
            "CREATE TEMP TRIGGER t AFTER INSERT ON a BEGIN \
          UPDATE b SET c = CASE WHEN 1 THEN 2 END; DELETE FROM d; END",
        ),
        (
            Postgres,
            "CREATE FUNCTION f() RETURNS int LANGUAGE sql BEGIN ATOMIC \
          SELECT CASE WHEN true THEN 1 END; SELECT 2; END",
        ),
        (Postgres, "CREATE PROCEDURE p() AS $$ BEGIN COMMIT; END; $$ LANGUAGE plpgsql"),
    ] {
        let found = split(&format!("{routine};\nSELECT 9"), dialect);
        assert_eq!(found.len(), 2, "{dialect}: {found:#?}");
        assert_eq!(found[0].text, routine);
        assert!(found[0].is_routine || routine.starts_with("BEGIN"), "{routine}");
        assert_eq!((found[1].text.as_str(), found[1].line), ("SELECT 9", 2));
    }
    // A table called `function` or a plain BEGIN is no routine.
    assert_eq!(texts("CREATE TABLE function (a int); SELECT 1", Mysql).len(), 2);
    assert_eq!(texts("BEGIN; SELECT 1; COMMIT", Sqlite).len(), 3);
    assert_eq!(texts("BEGIN; SELECT 1; END; SELECT 2", Postgres).len(), 4);
}

#[test]
fn delimiter_lines_are_obeyed_and_not_sent() {
    let sql = "SELECT 1;\nDELIMITER //\nCREATE PROCEDURE p()\nIF 1 THEN\n SELECT 'a//b'; END IF//\n\
               SELECT 2 //\n  delimiter ;\nSELECT 3;\nDELIMITER $$\nSELECT END$$SELECT 5";
    let found = split(sql, Mysql);
    let seen: Vec<(&str, u32)> = found.iter().map(|s| (s.text.as_str(), s.line)).collect();
    assert_eq!(
        seen,
        [
            ("SELECT 1", 1),
            ("CREATE PROCEDURE p()\nIF 1 THEN\n SELECT 'a//b'; END IF", 3),
            ("SELECT 2", 6),
            ("SELECT 3", 8),
            ("SELECT END", 10),
            ("SELECT 5", 10),
        ]
    );
    assert_eq!(texts("DELIMITER //\nx", Sqlite), ["DELIMITER //\nx"]);
    assert_eq!(texts("SELECT a\n delimiter ; b", Mysql).len(), 2, "only between statements");
}

#[test]
fn lines_are_those_of_the_first_word() {
    let found = split("-- head\n\n/* two\nlines */ SELECT 1;\n\n  SELECT\n 2;", Postgres);
    assert_eq!(found.iter().map(|s| s.line).collect::<Vec<_>>(), [4, 6]);
}

#[test]
fn names_become_placeholders() {
    let cast = |name: &str| if name == "n" { "bigint" } else { "text" };
    for (dialect, sql, text, names) in [
        (Mysql, "a = :a AND b=:b OR c=:a", "a = ? AND b=? OR c=?", vec!["a", "b", "a"]),
        (
            Postgres,
            "a=:n AND b=:b OR c IN (:n)",
            "a=CAST($1::text AS bigint) AND b=CAST($2::text AS text) OR c IN (CAST($1::text AS bigint))",
            vec!["n", "b"],
        ),
        (Postgres, "x::date, y[1:2], z[a:n], ':s', \":i\", $$:d$$", "", vec![]),
        (Postgres, "ARRAY[:n]", "ARRAY[CAST($1::text AS bigint)]", vec!["n"]),
        (Mysql, "SET @a := 1, b :=:n -- :x", "SET @a := 1, b :=? -- :x", vec!["n"]),
        (Mysql, "lbl:LOOP, '12:30', \"a :b\", `:c`, :9, : n", "", vec![]),
        (Sqlite, "SELECT :名字 || [:x]", "SELECT ? || [:x]", vec!["名字"]),
    ] {
        let bound = bind_names(sql, dialect, cast);
        let expected = if text.is_empty() { sql } else { text };
        assert_eq!(
            bound,
            Bound { text: expected.into(), names: names.into_iter().map(Into::into).collect() }
        );
    }
}

#[test]
fn unfit_and_transaction_statements_are_known() {
    let one = |sql: &str, d| split(sql, d).remove(0);
    assert!(unfit(&one("copy t (a, b) from stdin with csv", Postgres), Postgres).is_some());
    assert!(unfit(&one("COPY t FROM '/tmp/stdin'", Postgres), Postgres).is_none());
    for (sql, expected) in [
        ("COMMIT", true),
        ("/* x */ begin", true),
        ("START TRANSACTION READ ONLY", true),
        ("ROLLBACK", true),
        ("ROLLBACK TO SAVEPOINT a", false),
        ("ROLLBACK WORK TO a", false),
        ("SELECT 'COMMIT'", false),
        ("SAVEPOINT a", false),
    ] {
        assert_eq!(is_transaction_word(&one(sql, Postgres), Postgres), expected, "{sql}");
    }
    assert!(!is_transaction_word(&one("BEGIN NOT ATOMIC SELECT 1; END", Mysql), Mysql));
}

/// Text made of the pieces that matter.
fn sql_like() -> impl Strategy<Value = String> {
    let word = prop::sample::select(vec![
        ";",
        "'",
        "\"",
        "`",
        "\\",
        "--",
        "-- ",
        "#",
        "/*",
        "*/",
        "/*!",
        "$$",
        "$a$",
        "\n",
        " ",
        "(",
        ")",
        "[",
        "]",
        ":",
        ":a",
        "::",
        "CREATE",
        "PROCEDURE",
        "TRIGGER",
        "BEGIN",
        "END",
        "CASE",
        "IF",
        "ATOMIC",
        "NOT",
        "\nDELIMITER //\n",
        "//",
        "é",
        "月",
        "E'",
        "1",
        "?",
    ]);
    prop::collection::vec(prop_oneof![4 => word.prop_map(str::to_owned), 1 => ".{0,3}"], 0..40)
        .prop_map(|words| words.concat())
}

fn dialect() -> impl Strategy<Value = DialectName> {
    prop::sample::select(DialectName::ALL.to_vec())
}

proptest! {
    #[test]
    fn the_pieces_are_the_whole_text(sql in sql_like(), dialect in dialect()) {
        let mut at = 0;
        for piece in pieces(&sql, dialect) {
            prop_assert_eq!(piece.start, at);
            prop_assert!(piece.end > piece.start || piece.kind == PieceKind::Between);
            at = piece.end;
        }
        prop_assert_eq!(at, sql.len());
    }

    #[test]
    fn statements_begin_with_code_and_keep_their_line(sql in sql_like(), dialect in dialect()) {
        for statement in split(&sql, dialect) {
            prop_assert!(!statement.text.is_empty());
            prop_assert!(statement.line as usize <= sql.lines().count().max(1));
            let first = statement.text.lines().next().unwrap_or_default();
            let line = sql.split('\n').nth(statement.line as usize - 1).unwrap_or_default();
            prop_assert!(line.contains(first.trim_end()), "{:?} in {:?}", first, line);
        }
    }

    #[test]
    fn binding_changes_nothing_but_names(sql in sql_like(), dialect in dialect()) {
        let bound = bind_names(&sql, dialect, |_| "text");
        if bound.names.is_empty() {
            prop_assert_eq!(bound.text, sql);
        }
    }
}

#[test]
fn a_lone_vertical_tab_is_no_statement() {
    for dialect in DialectName::ALL {
        assert_eq!(split("\u{b}", dialect), []);
        assert_eq!(split("\u{b};\nSELECT 1", dialect)[0].line, 2);
    }
}

#[test]
fn a_question_gives_rows_and_writes_nothing() {
    for (sql, asks) in [
        ("SELECT 1", true),
        ("/* why */ (select 1)", true),
        ("WITH t AS (SELECT 1) SELECT * FROM t", true),
        ("VALUES (1)", true),
        ("SHOW TABLES", true),
        ("call wr()", false),
        ("COMMIT", false),
        ("begin read write", false),
        ("INSERT INTO t VALUES (1)", false),
        ("set global max_connections = 151", false),
        ("select 1 into outfile '/tmp/x'", false),
        ("copy (select 1) to '/tmp/x'", false),
        ("attach database 'x' as y", false),
        ("pragma query_only = 0", false),
    ] {
        let statements = split(sql, DialectName::Mysql);
        assert_eq!(is_question(&statements[0], DialectName::Mysql), asks, "{sql}");
    }
}

#[test]
fn only_a_query_needs_no_transaction_around_it() {
    for (text, is_so) in [
        ("SELECT 1", true),
        ("/* why */ select f()", true),
        ("insert into t values (1)", false),
        ("UPDATE t SET a = 1", false),
        ("CALL p()", false),
        ("WITH a AS (SELECT 1) SELECT 1", false),
        ("VACUUM", false),
        ("'SELECT'", false),
    ] {
        for dialect in [Sqlite, Mysql, Postgres] {
            let statement = SqlStatement { text: text.to_owned(), line: 1, is_routine: false };
            assert_eq!(is_query_alone(&statement, dialect), is_so, "{text} {dialect:?}");
        }
    }
}

#[test]
fn on_sqlite_one_change_needs_no_transaction() {
    for (text, is_so) in [
        ("INSERT INTO t VALUES (1)", true),
        ("-- why\nupdate t SET a = 'RETURNING'", true),
        ("Delete FROM t", true),
        ("REPLACE INTO t VALUES (1)", true),
        // Its rows come before it is known to be made.
        ("INSERT INTO t VALUES (1) RETURNING a", false),
        ("WITH x AS (SELECT 1) INSERT INTO t SELECT * FROM x", false),
        ("SELECT 1", false),
        ("CREATE TABLE t (a INT)", false),
        ("PRAGMA user_version = 1", false),
        ("BEGIN", false),
    ] {
        for dialect in DialectName::ALL {
            let [statement] = &split(text, dialect)[..] else { panic!("{text}") };
            let expected = is_so && dialect == DialectName::Sqlite;
            assert_eq!(is_change_alone(statement, dialect), expected, "{text} {dialect:?}");
        }
    }
}
