use super::catalogue::{Catalogue, Segment, Template};
use super::{translate, translate_lines};
use crate::domain::text::lang::Lang;

fn zh(text: &str) -> String {
    translate(text, Lang::Zh).into_owned()
}

fn with(pairs: &'static [(&'static str, &'static str)], text: &str) -> String {
    let counts = [("job", "个作业"), ("dependency", "条依赖")];
    translate_lines(&Catalogue::new(pairs.iter().copied(), counts), text).into_owned()
}

#[test]
fn english_stays_as_it_is() {
    let text = "dag.yaml:3: job A: type PRC does not exist";
    assert_eq!(translate(text, Lang::En), text);
}

#[test]
fn a_fault_is_translated_with_its_fix() {
    for (english, chinese) in [
        (
            "bad.yaml:3: job A: type PRC does not exist; did you mean PROC? otherwise types are PROC, SQL",
            "bad.yaml:3：作业 A：类型 PRC 不存在；是否想写 PROC？否则类型有 PROC, SQL",
        ),
        (
            "dag.yaml:7: job B depends on C, which is not defined; define it or remove the dependency",
            "dag.yaml:7：作业 B 依赖 C，而它没有定义；请定义它，或删除该依赖",
        ),
        (
            "job A is of type PROC, which has no sql; remove sql",
            "作业 A 的类型为 PROC，该类型没有 sql；请删除 sql",
        ),
        (
            "these jobs wait for one another in a circle: A, B, A",
            "这些作业相互等待，构成环：A, B, A",
        ),
        (
            "there is no batch 999999; the latest are: 202407",
            "没有批次 999999；最近的批次有：202407",
        ),
    ] {
        assert_eq!(zh(english), chinese);
    }
}

#[test]
fn what_no_template_matches_stays_english() {
    for text in [
        "",
        "no such thing at all",
        "a: b; c: d",
        "12:30:00",
        "https://example.com/a: b",
        "GL_POST",
        "the quick brown fox: jumps",
    ] {
        assert_eq!(zh(text), text);
    }
}

#[test]
fn the_most_specific_template_wins() {
    const PAIRS: &[(&str, &str)] = &[
        ("group {} has no job", "作业组 {} 没有作业"),
        ("{} has no job", "{} 无作业"),
        ("group {} has no {}", "组 {} 无 {}"),
    ];
    for pairs in [PAIRS, &[PAIRS[2], PAIRS[1], PAIRS[0]]] {
        let catalogue = Catalogue::new(pairs.iter().copied(), []);
        assert_eq!(translate_lines(&catalogue, "group g has no job"), "作业组 g 没有作业");
    }
}

#[test]
fn placeholders_may_change_places_and_are_translated_in_turn() {
    const PAIRS: &[(&str, &str)] = &[
        ("{} is gone from {}", "{2} 已没有 {1}"),
        ("batch {}", "批次 {}"),
        ("the database", "数据库"),
        ("cannot start, because {}", "无法启动，因为{}"),
    ];
    assert_eq!(with(PAIRS, "batch 7 is gone from the database"), "数据库 已没有 批次 7");
    assert_eq!(
        with(PAIRS, "cannot start, because batch 7 is gone from the database"),
        "无法启动，因为数据库 已没有 批次 7"
    );
    assert_eq!(with(PAIRS, "x: batch 7: y"), "x：批次 7：y");
}

#[test]
fn little_fixed_text_takes_no_sentences() {
    const PAIRS: &[(&str, &str)] = &[("add {}", "请添加 {}"), ("no", "否"), ("a {} b", "{}")];
    assert_eq!(with(PAIRS, "add sql"), "请添加 sql");
    assert_eq!(with(PAIRS, "add the words of somebody"), "add the words of somebody");
    // Fewer than three letters of fixed text: refused.
    assert_eq!(with(PAIRS, "no"), "no");
    assert_eq!(with(PAIRS, "a c b"), "a c b");
}

#[test]
fn templates_that_cannot_be_right_are_refused() {
    for (english, chinese) in [
        ("{}", "{}"),
        ("{}: {}", "{}：{}"),
        ("job {} of {}", "作业 {}"),
        ("job {} of {}", "作业 {} {} {}"),
        ("job {} of {}", "作业 {1} {1}"),
        ("job {}{} ends", "作业 {} {}"),
    ] {
        assert!(Template::parse(english, chinese).is_none(), "{english}");
    }
    let template =
        Template::parse("write ${jobs.{}.NAME}", "请写作 ${jobs.{}.NAME}").expect("sound");
    let chinese = [Segment::Text("请写作 ${jobs."), Segment::Capture(0), Segment::Text(".NAME}")];
    assert_eq!(template.chinese(), chinese);
}

#[test]
fn quoted_text_and_the_text_of_servers_are_left_alone() {
    for text in [
        "'remove it'",
        "\"job A; remove it\"",
        "error 1146 (42S02): Table 'x.remove it' doesn't exist",
        "error 42P01: relation \"a\" does not exist: remove it",
        "error 1644 (45000): group g has no job",
        "LOAD.sh: error 7: remove it: remove it",
    ] {
        assert_eq!(zh(text), text);
    }
    assert_eq!(zh("exit code 3: remove it"), "退出码 3：remove it");
    assert_eq!(
        zh(
            "no connection to the database: error 1045 (28000): Access denied; is the server running there?"
        ),
        "无法连接数据库：error 1045 (28000): Access denied；那里的服务器是否在运行？"
    );
    assert_eq!(zh("success rule 'a: b' is given twice"), "成功规则 'a: b' 重复");
}

#[test]
fn things_are_counted() {
    for (english, chinese) in [
        ("1 job", "1 个作业"),
        ("1,200 jobs, 3 dependencies", "1,200 个作业，3 条依赖"),
        ("more: 2 jobs", "more：2 个作业"),
        ("3 apples", "3 apples"),
        ("jobs", "jobs"),
        ("3 jobs, apples", "3 jobs, apples"),
    ] {
        assert_eq!(with(&[], english), chinese);
    }
}

#[test]
fn lines_are_translated_one_by_one() {
    assert_eq!(
        zh("a.yaml:1: no job is defined; add jobs:\n\n  a.yaml:2: group g has no job\n"),
        "a.yaml:1：没有定义任何作业；请添加 jobs:\n\n  a.yaml:2：作业组 g 没有作业\n"
    );
}

#[test]
fn values_in_any_script_are_kept() {
    assert_eq!(
        zh("月末.yaml:3: group 月末结账 has no job"),
        "月末.yaml:3：作业组 月末结账 没有作业"
    );
    assert_eq!(zh("作业 A：类型 PRC 不存在"), "作业 A：类型 PRC 不存在");
    assert_eq!(zh("émile: 🎉"), "émile: 🎉");
}

/// No text makes it slow or panic; what a translation cannot reach is still there.
#[test]
fn long_texts_end() {
    for part in [
        "group g has no job; ",
        "x: ",
        "'",
        "a 'b",
        "did you mean ",
        " is ",
        "月: ",
        ". A",
        "error 1 (2): ",
    ] {
        let text = part.repeat(16_000 / part.len());
        let translated = zh(&text);
        assert!(!translated.is_empty());
    }
    let long = format!("{}: group g has no job", "x".repeat(16_000));
    assert!(zh(&long).ends_with("：作业组 g 没有作业"), "the clause behind a long one");
}
