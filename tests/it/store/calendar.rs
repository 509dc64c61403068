//! `store::calendar`: calendars with their days, written whole.

use super::{Place, later};
use chrono::NaiveDate;
use procession::domain::calendar::{
    Calendar, CalendarDayRule, CombinationRule, Combine, DayKind, DayOrigin, Weekend,
};
use procession::domain::id::CalendarCode;
use procession::store::calendar;

fn code(text: &str) -> CalendarCode {
    CalendarCode::parse(text).expect("code")
}

fn date(text: &str) -> NaiveDate {
    text.parse().expect("date")
}

fn cn() -> Calendar {
    let mut made = Calendar::with_defaults(code("中国"));
    made.name = "Statutory days 法定节假日 😀".to_owned();
    made.years.extend([2023, 2024, 2025]);
    let day = |kind, label: Option<&str>, origin| CalendarDayRule {
        kind,
        label: label.map(Into::into),
        origin,
    };
    made.days = [
        ("2022-12-31", day(DayKind::Off, Some("元旦"), DayOrigin::List(2023))),
        ("2025-10-11", day(DayKind::Work, Some("国庆节、中秋节"), DayOrigin::List(2025))),
        ("2025-12-24", day(DayKind::Off, None, DayOrigin::Hand)),
    ]
    .into_iter()
    .map(|(at, day)| (date(at), day))
    .collect();
    made
}

fn gulf() -> Calendar {
    let mut made = Calendar::with_defaults(code("gulf"));
    made.weekend = Weekend::parse("fri,sat").expect("weekend");
    made
}

fn both() -> Calendar {
    let mut made = Calendar::with_defaults(code("both"));
    made.weekend = Weekend::NONE;
    made.combines =
        Some(Combine { how: CombinationRule::AnyOf, members: vec![code("gulf"), code("中国")] });
    made
}

pub(super) async fn calendars_are_put_read_and_removed(place: Place) {
    let mut tx = place.db.begin().await.expect("begin");
    assert!(calendar::list_calendars(&mut tx).await.expect("none").is_empty());
    for made in [both(), cn(), gulf()] {
        calendar::put_calendar(&mut tx, &made, later(1)).await.expect("put");
    }
    tx.commit().await.expect("commit");
    let mut tx = place.db.begin_read().await.expect("read");
    let all = calendar::list_calendars(&mut tx).await.expect("all");
    let list: Vec<Calendar> = all.iter().cloned().collect();
    assert_eq!(list, [both(), gulf(), cn()]);
    drop(tx);
    // Again, with a day less, one changed and one more.
    let mut changed = cn();
    changed.days.remove(&date("2022-12-31"));
    changed.days.get_mut(&date("2025-10-11")).expect("day").kind = DayKind::Off;
    let day = CalendarDayRule { kind: DayKind::Off, label: None, origin: DayOrigin::List(2026) };
    changed.days.insert(date("2026-01-01"), day);
    changed.years.insert(2026);
    changed.weekend = Weekend::NONE;
    let mut tx = place.db.begin().await.expect("begin");
    calendar::put_calendar(&mut tx, &changed, later(2)).await.expect("put again");
    assert!(calendar::remove(&mut tx, &code("both")).await.expect("remove"));
    assert!(!calendar::remove(&mut tx, &code("both")).await.expect("remove"), "it is gone");
    tx.commit().await.expect("commit");
    let mut tx = place.db.begin_read().await.expect("read");
    let list: Vec<Calendar> =
        calendar::list_calendars(&mut tx).await.expect("all").iter().cloned().collect();
    assert_eq!(list, [gulf(), changed]);
}

pub(super) async fn calendars_of_a_transaction_that_fails_stay_as_they_were(place: Place) {
    let mut tx = place.db.begin().await.expect("begin");
    calendar::put_calendar(&mut tx, &cn(), later(1)).await.expect("put");
    tx.commit().await.expect("commit");
    let mut tx = place.db.begin().await.expect("begin");
    let mut changed = cn();
    changed.days.clear();
    calendar::put_calendar(&mut tx, &changed, later(2)).await.expect("put");
    drop(tx);
    let mut tx = place.db.begin_read().await.expect("read");
    let all = calendar::list_calendars(&mut tx).await.expect("all");
    assert_eq!(all.get(&code("中国")).expect("there"), &cn());
}

pub(super) async fn a_hand_in_the_tables_is_told_apart(place: Place) {
    let mut tx = place.db.begin().await.expect("begin");
    for made in [both(), cn(), gulf()] {
        calendar::put_calendar(&mut tx, &made, later(1)).await.expect("put");
    }
    tx.commit().await.expect("commit");
    for (sql, said) in [
        (
            "UPDATE calendar_day SET kind = 'rest' WHERE kind = 'work'",
            "\"rest\" is neither off nor",
        ),
        (
            "UPDATE calendar_day SET kind = 'work', calendar_date = '2025-13-01' WHERE kind = 'rest'",
            "2025-13-01",
        ),
        ("DELETE FROM calendar_day", ""),
        ("DELETE FROM calendar WHERE calendar_code = 'gulf'", "combines gulf, which is not there"),
    ] {
        place.by_hand(sql).await;
        let mut tx = place.db.begin_read().await.expect("read");
        match calendar::list_calendars(&mut tx).await {
            Err(error) => {
                let error = format!("{error:#}");
                assert!(!said.is_empty() && error.contains(said), "{sql}: {error}");
            }
            Ok(_) => assert!(said.is_empty(), "{sql}: must not be believed"),
        }
    }
}
