//! What befalls a chaos run, by seed: processes die, stall and leave, connections break, servers end.

use crate::trust::dice::Dice;
use crate::trust::nodes::Worker;
use crate::trust::proxy::{End, Moment, Orders, Proxy, Way};
use crate::trust::servers::{Server, Stop};
use nix::sys::signal::Signal;
use procession::domain::source::DialectName;
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// One kind of trouble.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Trouble {
    Kill,
    /// SIGSTOP for twice the lease.
    Stall,
    /// SIGTERM, and another life.
    Leave,
    /// All connections to the target end at once.
    CutAll,
    /// The next COMMIT is lost on its way to the target.
    CommitLost,
    /// The next COMMIT arrives, and its answer is lost.
    AnswerLost,
    /// The next CALL arrives, and its connection ends.
    CallCut,
    /// Nothing passes to or from the target for a while, and nobody is told.
    BlackHole,
    /// The same one way.
    OneWay,
    Slow,
    /// The database server ends at once and is started again.
    Restart,
}

/// How hard it is.
#[derive(Clone, Debug)]
pub(crate) struct Temper {
    /// Milliseconds between two troubles, from and to.
    pub(crate) every_ms: (u64, u64),
    pub(crate) lease: Duration,
    /// The server restarts about so often.
    pub(crate) restart_every: Duration,
    /// Whether a worker that leaves may be started again: its work is not tied to it.
    pub(crate) leaves: bool,
}

/// Does trouble until it is stopped.
pub(crate) struct Nemesis<'a> {
    pub(crate) dice: Dice,
    pub(crate) temper: Temper,
    pub(crate) workers: &'a [Worker],
    pub(crate) proxy: &'a Proxy,
    pub(crate) server: &'a mut Server,
    pub(crate) counts: BTreeMap<Trouble, usize>,
}

impl Nemesis<'_> {
    /// Does trouble for as long as `is_on`; leaves everything healed.
    pub(crate) async fn rage(&mut self, mut is_on: impl FnMut() -> bool) {
        let mut restarted = Instant::now();
        while is_on() {
            let (low, high) = self.temper.every_ms;
            let pause = Duration::from_millis(self.dice.between(low, high));
            let until = Instant::now() + pause;
            while is_on() && Instant::now() < until {
                sleep(Duration::from_millis(50)).await;
            }
            let trouble = match self.dice.pick(&self.table()) {
                _ if restarted.elapsed() > self.temper.restart_every => Trouble::Restart,
                other => other,
            };
            if trouble == Trouble::Restart {
                restarted = Instant::now();
            }
            if is_on() {
                self.make(trouble).await;
                *self.counts.entry(trouble).or_default() += 1;
            }
        }
        self.proxy.heal();
    }

    fn table(&self) -> Vec<(u64, Trouble)> {
        use Trouble as T;
        let mut table = vec![
            (20, T::Kill),
            (4, T::Stall),
            (3, T::CutAll),
            (2, T::CommitLost),
            (3, T::AnswerLost),
            (2, T::CallCut),
            (1, T::BlackHole),
            (1, T::OneWay),
            (1, T::Slow),
        ];
        if self.temper.leaves {
            table.push((4, T::Leave));
        }
        table
    }

    async fn make(&mut self, trouble: Trouble) {
        let worker = &self.workers[self.dice.between(0, self.workers.len() as u64) as usize];
        let lease = self.temper.lease;
        match trouble {
            Trouble::Kill => drop(worker.signal(Signal::SIGKILL)),
            Trouble::Leave => drop(worker.signal(Signal::SIGTERM)),
            Trouble::Stall => {
                worker.signal(Signal::SIGSTOP);
                sleep(lease * 2).await;
                worker.signal(Signal::SIGCONT);
            }
            Trouble::CutAll => {
                let end = self.dice.pick(&[(1, End::Reset), (1, End::Close)]);
                self.proxy.cut_all(end);
            }
            Trouble::CommitLost => self.cut(self.commit(), Moment::Before).await,
            Trouble::AnswerLost => self.cut(self.commit(), Moment::Answered).await,
            Trouble::CallCut => self.cut("call", Moment::Forwarded).await,
            Trouble::BlackHole => self.while_healed_later(Orders::black_hole()).await,
            Trouble::OneWay => {
                self.while_healed_later(Orders { silent: vec![Way::ToClient], ..Orders::pass() })
                    .await;
            }
            Trouble::Slow => {
                let latency = Duration::from_millis(200);
                self.while_healed_later(Orders { latency, ..Orders::pass() }).await;
            }
            Trouble::Restart => {
                self.server.stop(Stop::AtOnce).await;
                sleep(Duration::from_millis(self.dice.between(0, 2_000))).await;
                self.server.start_again().await;
            }
        }
    }

    /// A COMMIT as it goes over the line; the word alone is also met in `SET autocommit`, with which
    /// every recorded body begins on MySQL.
    fn commit(&self) -> &'static str {
        match self.server.dialect {
            DialectName::Postgres => "commit\0",
            _ => "\u{3}commit",
        }
    }

    /// Stays ordered until it is met or replaced; not waited for, because that may take long.
    async fn cut(&mut self, text: &str, moment: Moment) {
        let end = self.dice.pick(&[(2, End::Reset), (1, End::Close)]);
        self.proxy.order(Orders::cut(text, moment, end));
    }

    async fn while_healed_later(&mut self, orders: Orders) {
        self.proxy.order(orders);
        sleep(self.temper.lease * 2).await;
        self.proxy.heal();
    }
}
