//! J1 for schedules: what bodies wrote, and what `job_firing` says, against the planned times as the judge
//! works them out by itself.
//!
//! A body is told the planned time it is for, and writes it down: that is its label. Each planned time
//! ends in one row; one that fired has one run, not early and not too late; one that did not has a
//! reason and no run. And without any label: [`time::judge`] finds a run for each window.

use super::time::{self, Due, LATENESS, Run};
use procession::domain::schedule::firing::{FiringStatus, Source};
use std::collections::BTreeMap;
use std::fmt;

/// When a schedule fires, in UTC.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Pace {
    /// Every so many seconds, counted from 1970.
    Every(i64),
    /// At these seconds of each minute, in order.
    Seconds(Vec<i64>),
}

impl Pace {
    /// The first planned time later than `after`, in milliseconds.
    pub(crate) fn after(&self, after: i64) -> i64 {
        match self {
            Self::Every(sec) => {
                let step = sec * 1_000;
                after - after.rem_euclid(step) + step
            }
            Self::Seconds(seconds) => {
                let minute = after - after.rem_euclid(60_000);
                let of = |minute: i64| seconds.iter().map(move |sec| minute + sec * 1_000);
                let mut all = of(minute).chain(of(minute + 60_000));
                all.find(|at| *at > after).expect("a schedule has a second")
            }
        }
    }
}

/// What can be seen of a firing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Seen {
    /// Its batch has a body that writes its label.
    Body,
    /// Only its row.
    Row,
}

/// A schedule that was acknowledged; all times in milliseconds since 1970.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Schedule {
    pub(crate) code: String,
    pub(crate) pace: Pace,
    /// It was asked for then; what is planned before is nobody's.
    pub(crate) asked: i64,
    /// It was there by then; what is planned later must be.
    pub(crate) there: i64,
    /// It was taken away then; what is planned later need not be.
    pub(crate) until: Option<i64>,
    pub(crate) seen: Seen,
}

/// A row of `job_firing`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FiringRow {
    pub(crate) code: String,
    pub(crate) planned: i64,
    pub(crate) status: FiringStatus,
    pub(crate) source: Source,
    /// Of many planned times: the last that it stands for.
    pub(crate) until: Option<i64>,
    pub(crate) fired: Option<i64>,
}

/// A body that ran for a planned time of a schedule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Ran {
    pub(crate) code: String,
    pub(crate) label: i64,
    pub(crate) at: i64,
}

/// All that is left of schedules.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub(crate) struct Times {
    pub(crate) schedules: Vec<Schedule>,
    pub(crate) rows: Vec<FiringRow>,
    pub(crate) ran: Vec<Ran>,
    /// When it was looked.
    pub(crate) read_at: i64,
    /// How much earlier than planned something may seem to be: what clocks differ by.
    pub(crate) early: i64,
    /// How much later than planned something may fire, in milliseconds: on time, or by the misfire policy.
    pub(crate) late: Late,
}

/// How late what may be, in milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Late {
    /// A firing that the misfire policy had no part in.
    pub(crate) fires: i64,
    /// One that it fired after all.
    pub(crate) made_up: i64,
    /// A body after its firing: its batch may have to be taken over from a process that died.
    pub(crate) body: i64,
}

/// What is wrong with a planned time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Wrong {
    /// No row says what became of it.
    Silent,
    /// It has more rows than one.
    DoubleRow,
    /// A row of a time that nobody planned.
    Foreign,
    /// It was to run, and did not.
    Missed,
    /// It ran twice.
    Twice,
    /// It ran, and nobody planned it, or its row says that it did not.
    Extra,
    Early,
    Late,
    /// It is overdue, and nothing is decided.
    Open,
}

/// What J1 finds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Timings {
    /// Planned times that were judged.
    pub(crate) due: usize,
    pub(crate) fired: usize,
    /// Of those: by the misfire policy.
    pub(crate) made_up: usize,
    /// Let go by the misfire policy.
    pub(crate) missed: usize,
    pub(crate) skipped: usize,
    /// Bodies.
    pub(crate) ran: usize,
    pub(crate) wrong: BTreeMap<Wrong, Vec<String>>,
    /// How many fired at most so many milliseconds late.
    pub(crate) lateness: BTreeMap<i64, usize>,
    pub(crate) latest: i64,
    pub(crate) latest_made_up: i64,
    /// Of the bodies.
    pub(crate) latest_body: i64,
}

impl Timings {
    pub(crate) fn is_clean(&self) -> bool {
        self.wrong.is_empty()
    }

    pub(crate) fn count(&self, wrong: Wrong) -> usize {
        self.wrong.get(&wrong).map_or(0, Vec::len)
    }

    fn add(&mut self, wrong: Wrong, said: String) {
        self.wrong.entry(wrong).or_default().push(said);
    }
}

/// Judges all schedules.
pub(crate) fn judge(times: &Times) -> Timings {
    let mut found = Timings { ran: times.ran.len(), ..Timings::default() };
    for schedule in &times.schedules {
        OfOne::new(times, schedule).judge(&mut found);
    }
    let known = |code: &str| times.schedules.iter().any(|schedule| schedule.code == code);
    for row in times.rows.iter().filter(|row| !known(&row.code)) {
        found.add(Wrong::Foreign, format!("{} {}: a row of no schedule", row.code, row.planned));
    }
    for ran in times.ran.iter().filter(|ran| !known(&ran.code)) {
        found.add(Wrong::Extra, format!("{} {}: a run of no schedule", ran.code, ran.label));
    }
    found
}

/// One schedule and what is there of it, by planned time.
struct OfOne<'a> {
    times: &'a Times,
    schedule: &'a Schedule,
    rows: BTreeMap<i64, Vec<&'a FiringRow>>,
    ran: BTreeMap<i64, Vec<&'a Ran>>,
}

impl<'a> OfOne<'a> {
    fn new(times: &'a Times, schedule: &'a Schedule) -> Self {
        let mut rows = BTreeMap::<i64, Vec<&FiringRow>>::new();
        for row in times.rows.iter().filter(|row| row.code == schedule.code) {
            rows.entry(row.planned).or_default().push(row);
        }
        let mut ran = BTreeMap::<i64, Vec<&Ran>>::new();
        for one in times.ran.iter().filter(|ran| ran.code == schedule.code) {
            ran.entry(one.label).or_default().push(one);
        }
        Self { times, schedule, rows, ran }
    }

    fn judge(&self, found: &mut Timings) {
        let (mut windows, mut planned) = (Vec::new(), Vec::new());
        let mut at = self.schedule.pace.after(self.schedule.asked);
        while at <= self.times.read_at {
            planned.push(at);
            let is_there = self.rows.contains_key(&at) || self.ran.contains_key(&at);
            // Before it was acknowledged, and while its time may still be coming, it need not be.
            let is_due = at > self.schedule.there && self.is_decided(at);
            if is_due || is_there {
                found.due += usize::from(is_due);
                windows.extend(self.one(found, at, is_due));
            }
            at = self.schedule.pace.after(at);
        }
        for at in self.rows.keys().filter(|at| planned.binary_search(at).is_err()) {
            // What is about to come has its row a few seconds before.
            if *at <= self.times.read_at || self.schedule.pace.after(*at - 1) != *at {
                found.add(Wrong::Foreign, self.said(*at, "a row, and it was not planned"));
            }
        }
        for at in self.ran.keys().filter(|at| planned.binary_search(at).is_err()) {
            found.add(Wrong::Extra, self.said(*at, "a run, and it was not planned"));
        }
        self.by_windows(found, &windows);
    }

    /// Whether what becomes of a planned time must be known by now. When a schedule was taken away it is
    /// read once nothing was left to do.
    fn is_decided(&self, at: i64) -> bool {
        match self.schedule.until {
            Some(until) => at <= until,
            None => at + self.times.late.fires + self.times.late.body < self.times.read_at,
        }
    }

    /// One planned time; its window, when it is to have a run.
    fn one(&self, found: &mut Timings, at: i64, is_due: bool) -> Option<Due> {
        let rows = self.rows.get(&at).map_or(&[][..], Vec::as_slice);
        let ran = self.ran.get(&at).map_or(&[][..], Vec::as_slice);
        if rows.len() > 1 {
            found.add(Wrong::DoubleRow, self.said(at, &format!("{} rows", rows.len())));
        }
        if ran.len() > 1 {
            found.add(Wrong::Twice, self.said(at, &format!("{} runs", ran.len())));
        }
        let Some(row) = rows.first() else {
            let covers = |row: &&FiringRow| row.until.is_some_and(|u| row.planned <= at && at <= u);
            if self.rows.values().flatten().any(|row| covers(row) && ran.is_empty()) {
                found.missed += 1;
            } else {
                found.add(Wrong::Silent, self.said(at, "no row"));
            }
            return None;
        };
        match row.status {
            FiringStatus::Fired => return self.fired(found, row, ran, is_due),
            FiringStatus::Misfired => found.missed += 1,
            FiringStatus::Skipped => found.skipped += 1,
            FiringStatus::Failed => found.add(Wrong::Missed, self.said(at, "FAILED")),
            FiringStatus::Pending | FiringStatus::Waiting if !is_due => {}
            FiringStatus::Pending | FiringStatus::Waiting => {
                found.add(Wrong::Open, self.said(at, row.status.as_str()));
            }
        }
        if !ran.is_empty() {
            let said = format!("{}, and it ran", row.status);
            found.add(Wrong::Extra, self.said(at, &said));
        }
        None
    }

    /// A planned time whose row says that it fired.
    fn fired(
        &self,
        found: &mut Timings,
        row: &FiringRow,
        ran: &[&Ran],
        is_due: bool,
    ) -> Option<Due> {
        let (at, early, may) = (row.planned, self.times.early, self.times.late);
        let is_made_up = row.source == Source::Misfire;
        let fires = if is_made_up { may.made_up } else { may.fires };
        let window = Due { at, early, late: fires + may.body };
        found.fired += 1;
        found.made_up += usize::from(is_made_up);
        let fired = row.fired.unwrap_or(at);
        self.moment(found, at, ("fired", fired), fires);
        if !is_made_up {
            let bound = LATENESS.into_iter().find(|bound| fired - at <= *bound);
            *found.lateness.entry(bound.unwrap_or(i64::MAX)).or_default() += 1;
        }
        let latest = if is_made_up { &mut found.latest_made_up } else { &mut found.latest };
        *latest = (*latest).max(fired - at);
        if self.schedule.seen == Seen::Row {
            return None;
        }
        let Some(first) = ran.first() else {
            if is_due {
                found.add(Wrong::Missed, self.said(at, "FIRED, and nothing ran"));
            }
            return is_due.then_some(window);
        };
        found.latest_body = found.latest_body.max(first.at - at);
        self.moment(found, at, ("began", first.at), fires + may.body);
        Some(window)
    }

    /// Neither too early nor too late.
    fn moment(&self, found: &mut Timings, at: i64, (what, when): (&str, i64), late: i64) {
        if when < at - self.times.early {
            found.add(Wrong::Early, self.said(at, &format!("{what} {} ms early", at - when)));
        }
        if when > at + late {
            found.add(Wrong::Late, self.said(at, &format!("{what} {} ms late", when - at)));
        }
    }

    /// The same without labels and rows: as many runs as windows, and each in one.
    fn by_windows(&self, found: &mut Timings, windows: &[Due]) {
        if self.schedule.seen == Seen::Row {
            return;
        }
        let ran = self.ran.values().flatten();
        let runs: Vec<Run> =
            ran.map(|ran| Run { at: ran.at, ended: Some(ran.at), label: None }).collect();
        let timing = time::judge(windows, &runs, i64::MAX);
        for i in timing.missed {
            found.add(Wrong::Missed, self.said(windows[i].at, "no run in its window"));
        }
        for r in timing.extra {
            found.add(Wrong::Extra, self.said(runs[r].at, "a run at this moment, in no window"));
        }
    }

    fn said(&self, at: i64, what: &str) -> String {
        let moment = chrono::DateTime::from_timestamp_millis(at).unwrap_or_default();
        format!("{} {}: {what}", self.schedule.code, moment.format("%H:%M:%S%.3f"))
    }
}

impl fmt::Display for Timings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { due, fired, made_up, missed, skipped, ran, .. } = self;
        let (latest, latest_made_up, body) = (self.latest, self.latest_made_up, self.latest_body);
        write!(
            f,
            "J1: {due} due; {fired} fired, {made_up} of them by the misfire policy; {missed} missed by it, \
             {skipped} skipped; {ran} runs\nJ1: latest firing {latest} ms, by the policy {latest_made_up} ms, \
             latest body {body} ms; late at most"
        )?;
        for (bound, count) in &self.lateness {
            match *bound {
                i64::MAX => write!(f, " more: {count}")?,
                ms => write!(f, " {ms} ms: {count}")?,
            }
        }
        for (wrong, all) in &self.wrong {
            write!(f, "\nJ1 {wrong:?}: {}", all.len())?;
            for said in all.iter().take(20) {
                write!(f, "\n   {said}")?;
            }
        }
        Ok(())
    }
}
