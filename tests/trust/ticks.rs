//! Schedules of a test: what is asked for, how it is put into the tables, and what is left of it there.

use crate::trust::judge::fires::{
    self, FiringRow, Late, Pace, Ran, Schedule, Seen, Times, Timings,
};
use crate::trust::judge::{Answer, Class, Wanted};
use crate::trust::oracle::{Job, Keys, rows};
use chrono::DateTime;
use procession::db::{ConnectSettings, SessionTimeouts};
use procession::domain::id::TriggerCode;
use procession::domain::schedule::firing::{FiringStatus, Source, TriggerId};
use procession::domain::schedule::misfire::{Misfire, MisfirePolicy};
use procession::domain::schedule::overlap::Overlap;
use procession::domain::schedule::trigger::{NOOP, QUEUE_DISPATCHER, TriggerDef};
use procession::domain::source::DialectName;
use procession::domain::time::Millis;
use procession::store::trigger::ScheduleProgress;
use procession::store::{Db, Tx, lock, trigger};
use secrecy::SecretString;
use serde_json::json;
use std::path::Path;
use std::time::Duration;
use tokio::time::sleep;

/// What is promised where processes die: 5 s. A batch of theirs is taken over once their lease is over.
pub(crate) const LATE: Late = Late { fires: 5_000, made_up: 5_000, body: 15_000 };
/// What is promised where something stalls: 15 s.
pub(crate) const STALLED: Late = Late { fires: 15_000, made_up: 15_000, body: 20_000 };

/// The same for debug builds that share two cores with other tests: that nothing is missed, doubled or early
/// does not depend on the machine, how late it is does.
pub(crate) fn unhurried(late: Late) -> Late {
    Late { fires: late.fires + 10_000, made_up: late.made_up + 10_000, body: 45_000 }
}

/// What the clocks of one machine differ by when they are read by two programs.
const EARLY: i64 = 50;

/// A schedule in the making.
pub(crate) struct Tick {
    pub(crate) code: String,
    pub(crate) pace: Pace,
    pub(crate) seen: Seen,
    /// `queue`, `skip`, `parallel`, `replace`.
    pub(crate) overlap: &'static str,
    /// How long its body takes, in milliseconds; not on SQLite.
    pub(crate) takes_ms: u64,
}

impl Tick {
    /// One whose batches have a body.
    pub(crate) fn body(number: usize, pace: Pace) -> Self {
        let (overlap, takes_ms) = ("parallel", 0);
        Self { code: format!("S{number:02}"), pace, seen: Seen::Body, overlap, takes_ms }
    }

    /// One of rows alone.
    pub(crate) fn row(number: usize, pace: Pace) -> Self {
        let (overlap, takes_ms) = ("parallel", 0);
        Self { code: format!("R{number:04}"), pace, seen: Seen::Row, overlap, takes_ms }
    }

    fn group(&self) -> String {
        format!("g_{}", self.code)
    }

    fn job(&self) -> String {
        format!("J_{}", self.code)
    }

    fn def(&self) -> TriggerDef {
        let timing = match &self.pace {
            // On the grid of 1970, because all steps are parts of a day.
            Pace::Every(sec) => {
                json!({"every_sec": sec, "time_zone": "UTC", "start": "2024-01-01T00:00"})
            }
            Pace::Seconds(seconds) => {
                let list: Vec<String> = seconds.iter().map(i64::to_string).collect();
                json!({"cron": format!("{} * * * * ?", list.join(",")), "time_zone": "UTC"})
            }
        };
        let order = json!({
            "batchNo": "time(%Y%m%d-%H%M%S)",
            "group": self.group(),
            "params": {"schedule": "${schedule}", "planned": "${planned_at}"},
        });
        let (handler, order) = match self.seen {
            Seen::Body => {
                (QUEUE_DISPATCHER, Some(serde_json::from_value(order).expect("an order")))
            }
            Seen::Row => (NOOP, None),
        };
        let known = |overlap: &Overlap| overlap.as_str() == self.overlap;
        TriggerDef {
            code: TriggerCode::parse(&self.code).expect("a code"),
            name: self.code.clone(),
            timing: serde_json::from_value(timing).expect("a timing"),
            handler: handler.to_owned(),
            order,
            misfire: Misfire { policy: MisfirePolicy::All, window_sec: 3_600 },
            overlap: Overlap::ALL.into_iter().find(known).expect("a policy"),
            retry_count: 20,
            retry_delay_sec: 1,
            timeout_sec: 30,
            notify_email: Vec::new(),
            owner: None,
            starts_paused: false,
        }
    }
}

/// Groups and jobs for the schedules that have bodies, as lines of a definition: those of `groups:` and
/// those of `jobs:`.
pub(crate) fn yaml(ticks: &[Tick], dialect: DialectName) -> (String, String) {
    let (mut groups, mut jobs) = (String::new(), String::new());
    for tick in ticks.iter().filter(|tick| tick.seen == Seen::Body) {
        let (group, code) = (tick.group(), tick.job());
        groups.push_str(&format!(
            "  {group}: {{ notify_email: [owner@bank.example], type: adhoc }}\n"
        ));
        let (class, body, keys, parents) = (Class::Same, 1, Keys::Given, &[]);
        let (takes_ms, fx_file, code) = (tick.takes_ms, Path::new("fx"), &code);
        let job = Job { code, class, dialect, body, takes_ms, parents, fx_file, keys };
        jobs.push_str(&job.labelled_yaml());
        jobs.push_str(&format!("    group: {group}\n"));
    }
    (groups, jobs)
}

/// Schedules in the tables of one installation.
pub(crate) struct Ticks {
    home: String,
    dialect: DialectName,
    settings: ConnectSettings,
    ticks: Vec<Tick>,
    schedules: Vec<Schedule>,
    forgotten: Vec<String>,
}

impl Ticks {
    /// Those of a metadata database that has its tables; nothing is scheduled yet.
    pub(crate) fn of(dialect: DialectName, home: &str, ticks: Vec<Tick>) -> Self {
        let settings = ConnectSettings {
            url: SecretString::from(home),
            password: None,
            rotated_password: None,
            max_connections: 2,
            connect_timeout: Duration::from_secs(20),
            statement_timeout: Duration::from_secs(30),
            may_create: false,
            keeping: SessionTimeouts::Usual,
        };
        let (schedules, forgotten) = (Vec::new(), Vec::new());
        Self { home: home.to_owned(), dialect, settings, ticks, schedules, forgotten }
    }

    /// A new connection each time: servers restart in some of these tests.
    async fn db(&self) -> Db {
        Db::connect(&self.settings).await.expect("connect")
    }

    /// The database's clock.
    pub(crate) async fn now(&self) -> i64 {
        let mut tx = self.db().await.begin_read().await.expect("a reader");
        tx.server_time().await.expect("the time").timestamp_millis()
    }

    /// A transaction that no pass goes on beside.
    async fn locked(&self) -> Tx {
        for _ in 0..100 {
            let mut tx = self.db().await.begin().await.expect("a transaction");
            if let Ok(Some(_)) = lock::hold_lock(&mut tx, lock::SCHEDULE_LOCK).await {
                return tx;
            }
            drop(tx);
            sleep(Duration::from_millis(100)).await;
        }
        panic!("the schedule lock was not to be had");
    }

    /// Puts the schedules there. Whoever is asked for them from now on finds them.
    pub(crate) async fn schedule(&mut self) {
        let mut tx = self.locked().await;
        let (now, mut ids) = (Millis(self.now().await), Vec::new());
        for tick in &self.ticks {
            let id = trigger::insert(&mut tx, &tick.def(), "a test", now).await;
            ids.push(id.expect("a schedule"));
        }
        // Only now: 5,000 of them once took 43 s to write, on a machine that compiled something else beside, and the
        // second that they were for had passed.
        let asked = self.now().await;
        let of_one = |(tick, trigger_id): (&Tick, TriggerId)| {
            let next_time = Some(Millis(tick.pace.after(asked)));
            ScheduleProgress { trigger_id, revision: 1, next_time, last_time: None }
        };
        let standings: Vec<ScheduleProgress> = self.ticks.iter().zip(ids).map(of_one).collect();
        trigger::advance(&mut tx, &standings, now).await.expect("next times");
        tx.commit().await.expect("a commit");
        // What came before this moment is late by our fault.
        let there = self.now().await;
        self.schedules = self
            .ticks
            .iter()
            .map(|tick| Schedule {
                code: tick.code.clone(),
                pace: tick.pace.clone(),
                asked,
                there,
                until: None,
                seen: tick.seen,
            })
            .collect();
    }

    /// Takes all schedules off the clock once everything up to now has its row; what has a row goes on.
    pub(crate) async fn retire(&mut self) {
        for _ in 0..600 {
            let until = self.now().await;
            let mut tx = self.locked().await;
            let next = trigger::outlook(&mut tx).await.expect("an outlook").next;
            if next.is_none_or(|next| next.0 > until) {
                let sql = "UPDATE job_trigger_time SET next_time = NULL";
                tx.execute(sql, &[]).await.expect("no next times");
                tx.commit().await.expect("a commit");
                self.schedules.iter_mut().for_each(|schedule| schedule.until = Some(until));
                return;
            }
            tx.rollback().await.expect("an end");
            sleep(Duration::from_millis(100)).await;
        }
        panic!("nobody plans any more");
    }

    /// What `job_firing` says, with the batch each opened.
    pub(crate) async fn firings(&self) -> Vec<(FiringRow, Option<String>)> {
        let ms = |column: &str| match self.dialect {
            DialectName::Mysql => {
                format!("TIMESTAMPDIFF(MICROSECOND, '1970-01-01', {column}) DIV 1000")
            }
            DialectName::Postgres => format!("(extract(epoch FROM {column}) * 1000)::bigint"),
            DialectName::Sqlite => {
                format!("CAST(round(unixepoch({column}, 'subsec') * 1000) AS INTEGER)")
            }
        };
        let sql = format!(
            "SELECT t.trigger_code, {}, f.status, f.source, {}, {}, f.batch_no FROM job_firing f \
             JOIN job_trigger t ON t.trigger_id = f.trigger_id ORDER BY f.firing_id",
            ms("f.planned_at"),
            ms("f.missed_until"),
            ms("f.fired_at")
        );
        let number = |cell: &Option<String>| cell.as_ref().map(|n| n.parse().expect("a number"));
        let all = rows(&self.home, &sql).await;
        all.into_iter()
            .map(|row| {
                let word = |i: usize| row[i].clone().unwrap_or_default();
                let firing = FiringRow {
                    code: word(0),
                    planned: number(&row[1]).expect("a planned time"),
                    status: FiringStatus::parse(&word(2)).expect("a status"),
                    source: Source::parse(&word(3)).expect("a source"),
                    until: number(&row[4]),
                    fired: number(&row[5]),
                };
                (firing, row[6].clone())
            })
            .collect()
    }

    /// What bodies wrote.
    async fn ran(&self) -> Vec<Ran> {
        let all = rows(&self.home, "SELECT schedule, planned, at FROM fx_label").await;
        let of_row = |row: Vec<Option<String>>| {
            let mut cells = row.into_iter().map(Option::unwrap_or_default);
            let mut next = || cells.next().expect("three columns");
            let (code, planned, at) = (next(), next(), next());
            let label = DateTime::parse_from_rfc3339(&planned).expect("a time").timestamp_millis();
            Ran { code, label, at: at.parse::<i64>().expect("microseconds") / 1_000 }
        };
        all.into_iter().map(of_row).collect()
    }

    /// The jobs of all batches that schedules have opened, by what firings say.
    pub(crate) fn wanted(&self, firings: &[(FiringRow, Option<String>)]) -> Vec<Wanted> {
        let of_one = |(firing, number): &(FiringRow, Option<String>)| {
            let tick = self.ticks.iter().find(|tick| tick.code == firing.code)?;
            (tick.seen == Seen::Body && firing.status == FiringStatus::Fired).then(|| Wanted {
                name: (number.clone().unwrap_or_default(), tick.job()),
                class: Class::Same,
                parents: Vec::new(),
                told: 1,
                failing: 0,
                answer: Answer::Came,
            })
        };
        firings.iter().filter_map(of_one).collect()
    }

    /// Others in their place, before any is scheduled; of rows alone.
    pub(crate) fn replace(&mut self, ticks: Vec<Tick>) {
        self.ticks = ticks;
    }

    /// Leaves one to another judge.
    pub(crate) fn forget(&mut self, code: &str) {
        self.schedules.retain(|schedule| schedule.code != code);
        self.forgotten.push(code.to_owned());
    }

    /// What J1 says.
    pub(crate) async fn judged(
        &self,
        firings: Vec<(FiringRow, Option<String>)>,
        late: Late,
    ) -> Timings {
        let times = Times {
            schedules: self.schedules.clone(),
            rows: firings.into_iter().map(|(row, _)| row).collect(),
            ran: self
                .ran()
                .await
                .into_iter()
                .filter(|ran| !self.forgotten.contains(&ran.code))
                .collect(),
            read_at: self.now().await,
            early: EARLY,
            late,
        };
        fires::judge(&times)
    }
}

/// So many schedules, a third of rows alone, at paces of one to six seconds.
pub(crate) fn mixed(count: usize) -> Vec<Tick> {
    let of = |number: usize| {
        let pace = match number % 4 {
            0 => Pace::Every(2),
            1 => Pace::Seconds((0..60).step_by(3).collect()),
            2 => Pace::Every(4),
            _ => Pace::Seconds(vec![1, 8, 15, 22, 29, 36, 43, 50, 57]),
        };
        match number % 3 {
            0 => Tick::row(number, pace),
            _ => Tick::body(number, pace),
        }
    };
    (0..count).map(of).collect()
}
