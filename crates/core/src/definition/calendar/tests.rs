use super::*;
use proptest::prelude::*;

const CN: &str = include_str!("../../../../../tests/data/calendar/07_holiday_cn_2023_2026.json");

fn read(name: &str, text: &str) -> Result<CalendarFile, String> {
    read_for(name, text, &[])
}

fn read_for(name: &str, text: &str, years: &[i32]) -> Result<CalendarFile, String> {
    let path = Path::new(name);
    let form = CalendarForm::from_path(path).expect("a known ending");
    let years = years.iter().copied().collect();
    read_calendar(path, text, form, &years).map_err(|faults| faults.to_string())
}

fn date(text: &str) -> NaiveDate {
    text.parse().expect(text)
}

/// Renders every day as `2025-10-11 work 国庆节 2025`.
fn shown(file: &CalendarFile) -> Vec<String> {
    let line = |(date, day): (&NaiveDate, &CalendarDayRule)| {
        let origin = match day.origin {
            DayOrigin::List(year) => year.to_string(),
            DayOrigin::Hand => "hand".to_owned(),
        };
        let label = day.label.as_deref().unwrap_or("-");
        format!("{date} {} {label} {origin}", day.kind.as_str())
    };
    file.days.iter().map(line).collect()
}

fn warned(file: &CalendarFile) -> Vec<String> {
    file.warnings.iter().map(ToString::to_string).collect()
}

#[test]
fn the_holidays_of_four_years_load_as_they_are() {
    let file = read("cn.json", CN).expect("loads");
    assert_eq!(file.code.as_ref().map(CalendarCode::as_str), Some("cn_statutory"));
    assert_eq!(file.years, BTreeSet::from([2023, 2024, 2025, 2026]));
    assert_eq!(file.days.len(), 142);
    let worked = file.days.values().filter(|d| d.kind == DayKind::Work).count();
    assert_eq!(worked, 26);
    assert_eq!(file.days[&date("2022-12-31")].origin, DayOrigin::List(2023));
    assert!(file.warnings.is_empty(), "{:?}", file.warnings);
}

#[test]
fn a_file_of_holiday_cn_loads_as_it_is() {
    let text = r#"{
    "$schema": "https://raw.githubusercontent.com/NateScarlet/holiday-cn/master/schema.json",
    "$id": "https://raw.githubusercontent.com/NateScarlet/holiday-cn/master/2026.json",
    "year": 2026,
    "papers": ["https://www.gov.cn/x.htm"],
    "days": [
        {"name": "元旦", "date": "2026-01-01", "isOffDay": true},
        {"name": "元旦", "date": "2026-01-04", "isOffDay": false}
    ]
}"#;
    let file = read("2026.json", text).expect("loads");
    assert_eq!(shown(&file), ["2026-01-01 off 元旦 2026", "2026-01-04 work 元旦 2026"]);
    assert_eq!((file.code.clone(), file.years.clone()), (None, BTreeSet::from([2026])));
    // Several years in one list, one of them not announced yet.
    let several = format!("[{text}, {{\"year\": 2027, \"papers\": [], \"days\": []}}]");
    let file = read("all.json", &several).expect("loads");
    assert_eq!(file.years, BTreeSet::from([2026]), "an empty list is not complete");
    assert_eq!(
        warned(&file),
        [
            "all.json:10: the list of 2027 is empty and is left out; import it again when the days are published"
        ]
    );
    let empty = read("2027.json", r#"{"year": 2027, "papers": [], "days": []}"#);
    assert!(empty.expect_err("nothing").contains("there is no day in this file"));
}

#[test]
fn csv_with_any_usual_spelling() {
    let text = "\u{FEFF}Date,kind,label\r\n2024-12-31,off,\"New Year, early\"\r\n20250101,holiday,\r\n\
                2025-01-26,workday,春节\r\n2025-01-28,休,春节\r\n2026-01-01,Off,\r\n";
    let file = read("days.csv", text).expect("reads");
    assert_eq!(
        shown(&file),
        [
            "2024-12-31 off New Year, early 2025",
            "2025-01-01 off - 2025",
            "2025-01-26 work 春节 2025",
            "2025-01-28 off 春节 2025",
            "2026-01-01 off - 2025",
        ]
    );
    assert_eq!(file.years, BTreeSet::from([2025]));
    assert_eq!(
        warned(&file),
        [
            "days.csv: the days of 2024 are taken for part of the list of 2025; say --year with 2024 in \
             it when its own list is complete",
            "days.csv: the days of 2026 are taken for part of the list of 2025; say --year with 2026 in \
             it when its own list is complete",
        ]
    );
    let alone = read("d.csv", "date,kind\n2025-01-01,off\n").expect("reads");
    assert_eq!(alone.years, BTreeSet::from([2025]), "nothing beside it");
    let file = read_for("days.csv", text, &[2024, 2025, 2026]).expect("reads");
    assert_eq!(file.years.len(), 3);
    assert_eq!(file.days[&date("2024-12-31")].origin, DayOrigin::List(2024));
    let file = read_for("days.csv", text, &[2025]).expect("reads");
    assert_eq!(file.days[&date("2026-01-01")].origin, DayOrigin::List(2025));
    assert_eq!(
        read("d.csv", "kind,date\noff,2025-12-31\n").expect("reads").years,
        BTreeSet::from([2025])
    );
}

fn feed(events: &[&str]) -> String {
    let events: Vec<String> =
        events.iter().map(|e| format!("BEGIN:VEVENT\r\nUID:1\r\n{e}\r\nEND:VEVENT\r\n")).collect();
    format!(
        "BEGIN:VCALENDAR\r\nVERSION:2.0\r\nX-WR-CALNAME:中国大陆\\, 节假日\r\n{}END:VCALENDAR\r\n",
        events.concat()
    )
}

#[test]
fn ics_of_whole_days() {
    let text = feed(&[
        "DTSTART;VALUE=DATE:20251001\r\nDTEND;VALUE=DATE:20251004\r\nSUMMARY;LANGUAGE=de-DE:Drei\r\n  T\r\n\tage\\; frei",
        "dtstart:20251225\r\nSUMMARY:Weihnachten",
        "DTSTART;VALUE=DATE:20250501\r\nDURATION:P2D\r\nSUMMARY:Mai\r\nBEGIN:VALARM\r\nDTSTART:x\r\nRRULE:x\r\nEND:VALARM",
        "DTSTART;VALUE=DATE:20250801\r\nDURATION:P1W\r\nATTENDEE;CN=\"a:b;c\":mailto:x@y.z\r\nSUMMARY:Werk",
        "DTSTART;VALUE=DATE:20250601\r\nSTATUS:CANCELLED\r\nSUMMARY:Nie",
        "DTSTART;VALUE=DATE:20251224\r\nDTEND;VALUE=DATE:20251224",
    ]);
    let file = read("de.ics", &text).expect("reads");
    let days = shown(&file);
    assert_eq!(days.len(), 3 + 1 + 2 + 7 + 1);
    for day in [
        "2025-10-01 off Drei Tage; frei 2025",
        "2025-10-03 off Drei Tage; frei 2025",
        "2025-12-25 off Weihnachten 2025",
        "2025-05-02 off Mai 2025",
        "2025-08-07 off Werk 2025",
        "2025-12-24 off - 2025",
    ] {
        assert!(days.iter().any(|d| d == day), "{day}: {days:?}");
    }
    assert_eq!(file.name.as_deref(), Some("中国大陆, 节假日"));
    let warned = warned(&file);
    assert_eq!(warned.len(), 2, "{warned:?}");
    assert!(warned[0].contains("event \"Nie\" is cancelled and left out"));
    assert!(warned[1].contains("ends where it begins and is taken for one day"));
}

#[test]
fn ics_with_marks_for_off_and_worked() {
    let text = feed(&[
        "DTSTART;VALUE=DATE:20251001\r\nDTEND;VALUE=DATE:20251009\r\nSUMMARY:国庆节（休）",
        "DTSTART;VALUE=DATE:20251011\r\nSUMMARY:国庆节(班)",
        "DTSTART;VALUE=DATE:20251001\r\nSUMMARY:国庆节",
        "DTSTART;VALUE=DATE:20250511\r\nSUMMARY:母亲节\r\nRRULE:FREQ=YEARLY;COUNT=6",
        "DTSTART;VALUE=DATE:20250928\r\nSUMMARY:中秋补班",
        "DTSTART;VALUE=DATE:20250126\r\nX-APPLE-SPECIAL-DAY:ALTERNATE-WORKDAY\r\nSUMMARY:春节",
        "DTSTART;VALUE=DATE:20250128\r\nX-APPLE-SPECIAL-DAY:WORK-HOLIDAY\r\nSUMMARY:春节",
    ]);
    let file = read("cn.ics", &text).expect("reads");
    let days = shown(&file);
    assert_eq!(days.len(), 8 + 1 + 1 + 1 + 1, "{days:?}");
    assert_eq!(days[0], "2025-01-26 work 春节 2025");
    assert_eq!(days[1], "2025-01-28 off 春节 2025");
    assert_eq!(days[2], "2025-09-28 work 中秋补班 2025");
    assert_eq!(days[3], "2025-10-01 off 国庆节 2025");
    assert_eq!(days[11], "2025-10-11 work 国庆节 2025");
    assert_eq!(
        warned(&file),
        [
            "cn.ics:15: 2 events without 休 or 班 left out, because others have such a mark; the first is \
          \"国庆节\"; mark those that are days off: (休)"
        ]
    );
}

/// The form that holiday-cn publishes: worked days have a mark, days off have none.
#[test]
fn ics_that_marks_worked_days_only() {
    let text = feed(&[
        "SUMMARY:元旦假期\r\nDTSTART;VALUE=DATE:20250101\r\nDTEND;VALUE=DATE:20250102\r\nDTSTAMP;VALUE=DATE:20250101",
        "SUMMARY:上班(补春节假期)\r\nDTSTART;VALUE=DATE:20250126\r\nDTEND;VALUE=DATE:20250127",
        "SUMMARY:春节假期\r\nDTSTART;VALUE=DATE:20250128\r\nDTEND;VALUE=DATE:20250130",
    ]);
    let zone = "BEGIN:VTIMEZONE\r\nTZID:Asia/Shanghai\r\nBEGIN:STANDARD\r\nDTSTART:19700101T000000\r\n\
                TZOFFSETFROM:+0800\r\nEND:STANDARD\r\nEND:VTIMEZONE\r\n";
    let file = read("cn.ics", &text.replacen("BEGIN:VEVENT", &format!("{zone}BEGIN:VEVENT"), 1));
    let file = file.expect("reads");
    assert_eq!(
        shown(&file),
        [
            "2025-01-01 off 元旦假期 2025",
            "2025-01-26 work 上班(补春节假期) 2025",
            "2025-01-28 off 春节假期 2025",
            "2025-01-29 off 春节假期 2025",
        ]
    );
    assert!(file.warnings.is_empty(), "{:?}", file.warnings);
}

const MANY: &str = "date,kind,label\n2025-02-30,off,x\n2025-01-01,rest,x\n2025-01-04,off,y\n2025-01-02,off\n2025-01-03,off,a\n\
                2025-01-03,work,b\n";

/// File, text, and the expected faults.
const FAULTY: &[(&str, &str, &[&str])] = &[
    (
        "a.csv",
        MANY,
        &[
            "a.csv:2: \"2025-02-30\" is no date; write one that exists, as YYYY-MM-DD",
            "a.csv:3: \"rest\" is no kind of day; write off (or holiday) or work (or workday)",
            "a.csv:5: this record has 2 cells and the header 3",
            "a.csv:7: 2025-01-03 is work here and off on line 6; keep one of the two",
        ],
    ),
    ("a.csv", "2025-01-01,off,x\n", &["a.csv:1: there is no column date", "no column kind"]),
    ("a.csv", "date,label\n2025-01-01,x\n", &["a.csv:1: there is no column kind"]),
    ("a.csv", "date,kind,color\n", &["a.csv:1: unknown column \"color\"", "no day in this file"]),
    ("a.csv", "date,kind\n+2025-01-1,off\n", &["\"+2025-01-1\" is no date"]),
    ("a.csv", "", &["there is no column date"]),
    ("a.json", "{", &["not readable as YAML or JSON"]),
    ("a.json", "[]", &["a.json: there is no day in this file"]),
    ("a.json", "hello", &["this is no list of days"]),
    ("a.json", "{\"name\": \"x\"}", &["a.json:1: there are no years in this file"]),
    (
        "a.json",
        "{\"calendar\": \"a b\", \"wekend\": \"sat\",\n\"weekend\": \"6,7\",\n\"years\": [\n\
             {\"year\": 2025, \"days\": [[\"2025-01-01\"],\n[\"2025-01-02\", \"free\"],\n\
             [\"2025-13-01\", \"off\"], 7, {\"date\": \"2025-01-05\", \"isoffday\": true},\n\
             {\"date\": \"2025-01-06\", \"isOffDay\": \"perhaps\"}, [\"2024-06-01\", \"off\"]]},\n\
             {\"year\": \"soon\", \"days\": []}, {\"year\": 2025, \"days\": [[\"2025-02-01\", \"off\"]]},\n\
             {\"days\": []}, {\"year\": 2026}]}",
        &[
            "a.json:1: calendar code 'a b' is not usable",
            "a.json:1: unknown key \"wekend\"; did you mean weekend?",
            "a.json:2: '6,7' is no weekend",
            "a.json:4: a day has 1 parts",
            "a.json:5: \"free\" is no kind of day",
            "a.json:6: \"2025-13-01\" is no date",
            "a.json:6: a day must be a list or a map, not a single value",
            "a.json:6: unknown key \"isoffday\"; did you mean isOffDay?",
            "a.json:6: this day has no isOffDay",
            "a.json:7: isOffDay \"perhaps\" is neither true nor false",
            "a.json:7: 2024-06-01 stands in the list of 2025",
            "a.json:8: \"soon\" is no year",
            "a.json:8: there are two lists of 2025",
            "a.json:9: this list has no year",
            "a.json:9: the list of 2026 has no days",
        ],
    ),
    ("a.json", "{\"combines\": {\"some_of\": []}}", &["combines has neither all_of nor any_of"]),
    ("a.ics", "hello\n", &["a.ics:1: \"hello\" is no line of iCalendar", "no BEGIN:VCALENDAR"]),
    ("a.ics", "BEGIN:VCALENDAR\nEND:VCALENDAR\n", &["there is no event in this file"]),
    (
        "a.ics",
        "BEGIN:VCALENDAR\nBEGIN:VEVENT\nDTSTART:20250101\n",
        &["a.ics:1: BEGIN:VCALENDAR has no end", "a.ics:2: BEGIN:VEVENT has no end"],
    ),
    (
        "a.ics",
        "BEGIN:VCALENDAR\nEND:VEVENT\nEND:VCALENDAR\n",
        &["a.ics:2: END:VEVENT ends nothing"],
    ),
];

#[test]
fn faults_name_their_line_and_their_cure_all_at_once() {
    for (name, text, said) in FAULTY {
        let faults = read(name, text).expect_err(name);
        for one in *said {
            assert!(faults.contains(one), "{text}\n{one}\n-- {faults}");
        }
    }
    let long = format!("date,kind,label\n2025-01-01,off,{}\n", "x".repeat(201));
    assert!(read("a.csv", &long).expect_err("long").contains("the name of 2025-01-01 is too long"));
    let years = read_for("a.csv", "date,kind\n2025-01-01,off\n", &[2025, 2026]).expect_err("years");
    assert!(years.contains("there is no day of 2026 in this file"), "{years}");
    assert!(
        read_for("a.json", CN, &[2027]).expect_err("years").contains("the list of 2027 is not in")
    );
}

#[test]
fn events_that_cannot_be_days_are_refused_by_name() {
    for (event, said) in [
        (
            "DTSTART;VALUE=DATE:20250101\r\nSUMMARY:New Year\r\nRRULE:FREQ=YEARLY",
            "a.ics:8: event \"New Year\" repeats (RRULE); holidays move from year to year",
        ),
        ("DTSTART;VALUE=DATE:20250101\r\nRDATE;VALUE=DATE:20250201", "this event repeats (RDATE)"),
        (
            "DTSTART:20250101T090000Z\r\nSUMMARY:Call",
            "a.ics:6: event \"Call\" has a time of day (DTSTART 20250101T090000Z); make it a whole-day event",
        ),
        ("SUMMARY:Nothing", "event \"Nothing\" has no DTSTART"),
        ("DTSTART;VALUE=DATE:20250230", "\"20250230\" is no date"),
        (
            "DTSTART;VALUE=DATE:20250105\r\nDTEND;VALUE=DATE:20250101",
            "has an end that cannot be used",
        ),
        ("DTSTART;VALUE=DATE:20250105\r\nDURATION:PT1H", "has an end that cannot be used"),
        (
            "DTSTART;VALUE=DATE:20250105\r\nDURATION:P99999999999999999999D",
            "has an end that cannot be",
        ),
        ("DTSTART;VALUE=DATE:20250105\r\nDTEND;VALUE=DATE:20270101", "at most 366 days"),
        (
            "DTSTART;VALUE=DATE:20250105\r\nDTEND;VALUE=DATE:20250106\r\nno colon",
            "\"no colon\" is no line",
        ),
    ] {
        let faults = read("a.ics", &feed(&[event])).expect_err(event);
        assert!(faults.contains(said), "{event}: {faults}");
    }
}

#[test]
fn what_is_written_is_read_back() {
    let file = read("cn.json", CN).expect("loads");
    let code = CalendarCode::parse("cn").expect("code");
    let mut made = file.calendar(&code, None);
    made.name = "中国 \"大陆\"".to_owned();
    let day = |kind, label: Option<&str>| CalendarDayRule {
        kind,
        label: label.map(Into::into),
        origin: DayOrigin::Hand,
    };
    made.days.insert(date("2025-12-24"), day(DayKind::Off, None));
    made.days.insert(date("2025-12-27"), day(DayKind::Work, Some("盘点")));
    let back = read("x.json", &write_calendar(&made)).expect("reads");
    assert_eq!(back.code, Some(code.clone()));
    assert_eq!(back.calendar(&code, None), made);
    let mut both = Calendar::with_defaults(CalendarCode::parse("both").expect("code"));
    both.combines =
        Some(Combine { how: crate::domain::calendar::CombinationRule::AllOf, members: vec![code] });
    for calendar in [
        both,
        Calendar {
            weekend: Weekend::NONE,
            ..Calendar::with_defaults(CalendarCode::parse("e").expect("c"))
        },
    ] {
        let back = read("x.json", &write_calendar(&calendar)).expect("reads");
        assert_eq!(back.calendar(&calendar.code, None), calendar);
    }
}

proptest! {
    #[test]
    fn any_text_is_read_or_refused(
        text in "(BEGIN:V(EVENT|CALENDAR)\n|END:V(EVENT|CALENDAR)\n|DT(START|END):[0-9T]{6,9}\n|[ -~休班\n]{0,12}){0,12}",
        name in proptest::sample::select(vec!["a.ics", "a.csv", "a.json"]),
    ) {
        let _ = read(name, &text);
    }

    #[test]
    fn days_of_a_table_come_back(
        days in proptest::collection::btree_map(0u64..3000, (proptest::bool::ANY, "[a-z ,\"']{0,8}"), 1..80),
    ) {
        let mut text = "date,kind,label\n".to_owned();
        for (i, (is_off, label)) in &days {
            let date = date("2020-01-01") + chrono::Days::new(*i);
            let kind = if *is_off { "off" } else { "work" };
            text.push_str(&format!("{date},{kind},\"{}\"\n", label.replace('"', "\"\"")));
        }
        let file = read("a.csv", &text).expect("reads");
        prop_assert_eq!(file.days.len(), days.len());
        for (i, (is_off, label)) in &days {
            let day = &file.days[&(date("2020-01-01") + chrono::Days::new(*i))];
            prop_assert_eq!(day.kind == DayKind::Off, *is_off);
            prop_assert_eq!(day.label.as_deref().unwrap_or_default(), label.trim());
        }
        // Every day with a list belongs to a complete year, and lies in it or next to it.
        for (date, day) in &file.days {
            let DayOrigin::List(year) = day.origin else { panic!("from a file") };
            prop_assert!(file.years.contains(&year) && (year - date.year()).abs() <= 1);
        }
    }
}
