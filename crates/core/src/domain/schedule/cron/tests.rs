use super::*;

fn at(text: &str) -> Millis {
    text.parse::<chrono::DateTime<chrono::Utc>>().expect("RFC 3339").into()
}

fn next(cron: &str, zone: &str, after: &str, n: usize) -> Vec<String> {
    let cron = Cron::parse(cron).expect(cron);
    let zone: Tz = zone.parse().expect("zone");
    let fires = |from: &Millis| cron.next_after(*from, zone);
    let all = std::iter::successors(fires(&at(after)), fires).take(n);
    all.map(|at| wall_at(at, zone).to_string()).collect()
}

// Quartz 2.3.2 gives the same results; tests/it/cron compares the whole grammar.
#[test]
fn a_firing_is_strictly_later_and_a_whole_second() {
    let noon = "2026-11-21T04:00:00Z";
    for (cron, after, first) in [
        ("0 0 12 * * ?", "2026-11-21T03:59:59.999Z", "2026-11-21 12:00:00"),
        ("0 0 12 * * ?", noon, "2026-11-22 12:00:00"),
        ("* * * * * ?", "2026-11-21T04:00:00.001Z", "2026-11-21 12:00:01"),
        ("0 0 0 L * ?", noon, "2026-11-30 00:00:00"),
        ("0 0 0 LW 10 ?", noon, "2027-10-29 00:00:00"),
        ("0 0 0 ? * FRI#5", noon, "2027-01-29 00:00:00"),
        ("0 0 12 13 * FRI", noon, ""),
        ("0 12 13 * FRI", noon, "2026-11-27 12:00:00"),
    ] {
        if first.is_empty() {
            assert!(Cron::parse(cron).is_err(), "{cron}");
        } else {
            assert_eq!(next(cron, "Asia/Shanghai", after, 1), [first], "{cron}");
        }
    }
}

#[test]
fn changes_of_the_clock_lose_nothing_and_double_nothing() {
    let york = "America/New_York";
    let gap = "2026-03-08T06:59:59Z";
    // 02:30 does not exist; the first moment after is 03:00, which fires once for all of these.
    assert_eq!(next("0 30 2 * * ?", york, gap, 2), ["2026-03-08 03:00:00", "2026-03-09 02:30:00"]);
    assert_eq!(
        next("0 0/30 2,3 * * ?", york, gap, 2),
        ["2026-03-08 03:00:00", "2026-03-08 03:30:00"]
    );
    assert_eq!(next("0 30 * * * ?", york, gap, 1), ["2026-03-08 03:30:00"]);
    let overlap = "2026-11-01T05:00:00Z";
    assert_eq!(
        next("0 30 1 * * ?", york, overlap, 2),
        ["2026-11-01 01:30:00", "2026-11-02 01:30:00"]
    );
    let twice = ["2026-11-01 01:30:00", "2026-11-01 01:30:00", "2026-11-01 02:30:00"];
    assert_eq!(next("0 30 * * * ?", york, overlap, 3), twice);
    // Samoa's missing day.
    assert_eq!(
        next("0 0 9 30 12 ?", "Pacific/Apia", "2011-06-01T00:00:00Z", 1),
        ["2011-12-31 00:00:00"]
    );
}

#[test]
fn the_ends_of_time_have_no_firings() {
    let cron = Cron::parse("* * * * * ?").expect("read");
    for zone in [Tz::UTC, Tz::Pacific__Kiritimati, Tz::Pacific__Pago_Pago] {
        assert_eq!(cron.next_after(Millis(i64::MAX), zone), None);
        let last = at("2199-12-31T10:00:00Z");
        assert!(cron.next_after(last.plus_ms(2 * 86_400_000), zone).is_none());
        let first = cron.next_after(Millis(i64::MIN), zone).expect("1970");
        assert_eq!(wall_at(first, zone).to_string(), "1970-01-01 00:00:00");
    }
}

#[test]
fn the_text_is_kept_and_comes_back() {
    let cron = Cron::parse("  0 0  2 lw * ?").expect("read");
    assert_eq!(cron.to_string(), "0 0  2 lw * ?");
    assert_eq!(cron.dialect(), CronDialect::Quartz);
    assert_eq!(Cron::parse("0 2 * * 7").expect("read").dialect(), CronDialect::Classic);
    let json = serde_json::to_string(&cron).expect("JSON");
    assert_eq!(serde_json::from_str::<Cron>(&json).expect("JSON"), cron);
    let error = serde_json::from_str::<Cron>("\"0 0 25 * * ?\"").expect_err("hour 25");
    assert!(error.to_string().contains("hour '25'"), "{error}");
}

#[test]
fn the_shortest_gap_is_found() {
    let gap = |cron: &str, from: &str| {
        Cron::parse(cron).expect(cron).shortest_gap_sec(Tz::America__New_York, at(from))
    };
    assert_eq!(gap("*/5 * * * * ?", "2026-06-01T00:00:00Z"), Some(5));
    assert_eq!(gap("0 0,50 2 * * ?", "2026-06-01T00:00:00Z"), Some(3_000));
    assert_eq!(gap("0 0 2 * * ?", "2026-06-01T00:00:00Z"), Some(86_400));
    assert_eq!(gap("0 0 2 * * ?", "2026-03-01T00:00:00Z"), Some(23 * 3_600));
    assert_eq!(gap("0 0 2 1 1 ? 2027", "2026-06-01T00:00:00Z"), None);
}
