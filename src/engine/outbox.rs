//! Sends the notifications in the outbox, independently of the dispatcher: claims those that are
//! due, sends them outside of any transaction and stores the result.
//!
//! If the process dies between sending and storing the result, the notification is sent a second
//! time with the same Message-ID.

mod delivery_attempt;
mod nodes;
mod send_loop;

use crate::domain::id::NodeId;
use crate::domain::notification::Notification;
use crate::domain::notification::outbox_schedule::{self, Snooze};
use crate::domain::time::Millis;
use crate::engine::clock::Clock;
use crate::engine::cluster::heartbeat::Heart;
use crate::engine::cluster::process::ClusterProcess;
use crate::engine::dispatch::dispatcher::QueueDispatcher;
use crate::engine::observe::metrics::Meter;
use crate::notify::{Carriers, MessageTemplates};
use crate::store::outbox::{self, ClaimedNotification, DeliveryMark, DigestCandidate};
use crate::store::{self, Db, Tx};
use anyhow::{Context as _, Result};
use chrono::NaiveTime;
use chrono_tz::Tz;
use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt as _, StreamExt as _};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

pub use crate::domain::notification::recipient::Recipient;
pub use crate::domain::text::lang::Lang;
pub use crate::store::outbox::{NotificationRow, OutboxFilter};
pub use delivery_attempt::page_link;

/// Time that a process may take beyond its sends before others take over its notifications, in
/// milliseconds: storing the results needs the database.
const MARK_MS: i64 = 60_000;
/// Poll interval while notifications are being sent and capacity is left.
const LOOK: Duration = Duration::from_secs(1);

/// Settings of the outbox, from the configuration.
#[derive(Clone, Debug)]
pub struct OutboxOptions {
    /// Maximum number of notifications being sent at once.
    pub connections: u32,
    /// Time limit of one send, in milliseconds.
    pub timeout_ms: i64,
    /// How long sending is retried before a notification is given up, in milliseconds.
    pub give_up_ms: i64,
    /// Minimum time between two notifications of the same event of the same job to the same
    /// recipient, in milliseconds.
    pub mute_ms: i64,
    /// If more notifications than this are due to one recipient at once, they are sent as one.
    pub sum_up_over: usize,
    /// Time of day of the daily digest.
    pub digest_at: NaiveTime,
    /// The time zone of `digest_at`.
    pub zone: Tz,
    /// Language of recipients for whom none is set.
    pub lang: Lang,
    /// Languages of single recipients, or of all in a domain (`@bank.example`).
    pub langs: BTreeMap<String, Lang>,
    /// The host part of a Message-ID, after the `@`.
    pub id_host: String,
    /// Number of log lines of a job at the end of a notification about it.
    pub log_lines: u32,
    /// URL templates of pages about the subject of a notification, with `{group}`, `{batch_no}` and
    /// `{job}`; the first one whose placeholders are all known is used.
    pub links: Vec<String>,
    /// Recipients of notifications about the installation itself.
    pub operators: Vec<String>,
}

impl OutboxOptions {
    fn lang_of(&self, mail: &ClaimedNotification) -> Lang {
        let of_domain = || mail.recipient.rfind('@').map(|at| &mail.recipient[at..]);
        mail.lang
            .or_else(|| self.langs.get(&mail.recipient).copied())
            .or_else(|| self.langs.get(of_domain()?).copied())
            .unwrap_or(self.lang)
    }
}

/// Parses `08:00` or `08:00:30`.
pub fn time_of_day(text: &str) -> Option<NaiveTime> {
    let text = text.trim();
    NaiveTime::parse_from_str(text, "%H:%M")
        .or_else(|_| NaiveTime::parse_from_str(text, "%H:%M:%S"))
        .ok()
}

/// The result of one pass over the outbox.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeliverySummary {
    /// Notifications accepted by their servers.
    pub sent: usize,
    /// Notifications that will be retried.
    pub again: usize,
    /// Notifications that were given up.
    pub failed: usize,
    /// When the next notification is due.
    pub next: Option<Millis>,
}

impl DeliverySummary {
    fn count(&mut self, mark: &DeliveryMark) {
        match mark {
            DeliveryMark::Sent { .. } => self.sent += 1,
            DeliveryMark::Again(..) | DeliveryMark::Wait(..) => self.again += 1,
            DeliveryMark::Failed(_) => self.failed += 1,
        }
    }
}

/// Sends the notifications of the outbox.
pub struct Sender {
    db: Db,
    clock: Clock,
    meter: Arc<Meter>,
    me: NodeId,
    heart: Option<Arc<Heart>>,
    carriers: Carriers,
    templates: MessageTemplates,
    options: OutboxOptions,
    /// Results that could not be stored: stored before anything else is sent.
    unmarked: Vec<(i64, DeliveryMark)>,
    /// When to check next for dead nodes.
    nodes_at: Millis,
}

impl QueueDispatcher {
    /// The sender of the outbox in this dispatcher's process.
    pub fn sender(
        &self,
        carriers: Carriers,
        templates: MessageTemplates,
        options: OutboxOptions,
    ) -> Sender {
        let ClusterProcess { db, clock, node, heart, meter, .. } = self.process().clone();
        let sender = Sender::new(db, clock, node.id().clone(), carriers, templates, options);
        Sender { heart: Some(heart), meter, ..sender }
    }
}

impl Sender {
    /// A sender outside of a serving process.
    pub fn new(
        db: Db,
        clock: Clock,
        me: NodeId,
        carriers: Carriers,
        templates: MessageTemplates,
        options: OutboxOptions,
    ) -> Self {
        let (meter, unmarked, nodes_at) = (Arc::default(), Vec::new(), Millis(i64::MIN));
        Self { db, clock, meter, me, heart: None, carriers, templates, options, unmarked, nodes_at }
    }

    /// Sends all due notifications. A notification whose server hangs occupies one of the
    /// `connections` and delays no other.
    pub async fn send_due(&mut self, now: Millis) -> Result<DeliverySummary> {
        self.mark_left(now).await?;
        self.tell_of_nodes(now).await?;
        let (mut all, mut unmarked, mut broken) = (DeliverySummary::default(), Vec::new(), None);
        let mut on_their_way = FuturesUnordered::new();
        loop {
            let room = self.width().saturating_sub(on_their_way.len());
            let at = self.clock.now().max(now);
            match self.take_due(at, if broken.is_some() { 0 } else { room }).await {
                Ok(taken) => {
                    all.next = taken.next;
                    let send =
                        |letter| self.send_notification(letter, taken.installation.clone(), at);
                    on_their_way.extend(taken.letters.into_iter().map(send));
                }
                // Sends under way are awaited nevertheless.
                Err(error) => broken = Some(error),
            }
            if on_their_way.is_empty() {
                break;
            }
            self.meter.loop_turned(send_loop::NAME, self.clock.uptime());
            tokio::select! {
                Some(first) = on_their_way.next() => {
                    unmarked.push(first);
                    while let Some(Some(more)) = on_their_way.next().now_or_never() {
                        unmarked.push(more);
                    }
                }
                () = tokio::time::sleep(LOOK) => {}
            }
            // A result that is stored at once cannot lead to a second send, whatever happens to the
            // others.
            if !unmarked.is_empty()
                && write(&self.db, &self.me, &unmarked, self.clock.now()).await.is_ok()
            {
                unmarked.drain(..).for_each(|(_, mark)| all.count(&mark));
            }
        }
        drop(on_their_way);
        unmarked.iter().for_each(|(_, mark)| all.count(mark));
        self.meter.mails(all.sent, all.again, all.failed);
        self.unmarked = unmarked;
        self.mark_left(self.clock.now()).await?;
        broken.map_or(Ok(all), Err)
    }

    fn width(&self) -> usize {
        usize::try_from(self.options.connections).unwrap_or(1).max(1)
    }

    /// Makes notifications due that waited for a channel, now that mail is configured.
    pub async fn begin(&self) -> Result<()> {
        if self.carriers.kind_of("somebody@example.org").is_none() {
            return Ok(());
        }
        let mut tx = self.db.begin().await?;
        outbox::carried_now(&mut tx, crate::notify::NO_MAIL, self.clock.now()).await?;
        tx.commit().await.context("take letters that waited for a mail server")
    }

    /// Releases the notifications that this process has claimed and will not send.
    async fn let_go(&self) -> Result<()> {
        let mut tx = self.db.begin().await?;
        outbox::let_go(&mut tx, &self.me, self.clock.now()).await?;
        tx.commit().await.context("give back mails")
    }

    async fn mark_left(&mut self, now: Millis) -> Result<()> {
        if !self.unmarked.is_empty() {
            write(&self.db, &self.me, &self.unmarked, now).await?;
            self.unmarked.clear();
        }
        Ok(())
    }

    /// Claims up to `room` due notifications; combines digests and leaves snoozed notifications
    /// waiting.
    async fn take_due(&self, now: Millis, room: usize) -> Result<TakenNotifications> {
        if room == 0 {
            return Ok(TakenNotifications::default());
        }
        let day = outbox_schedule::last_digest(now, self.options.digest_at, self.options.zone);
        let mut tx = self.db.begin_read().await?;
        let next = outbox::next_due(&mut tx).await?;
        let waits = outbox::waits_for_digest(&mut tx).await?;
        drop(tx);
        if !waits && next.is_none_or(|at| at > now) {
            return Ok(TakenNotifications { next, ..TakenNotifications::default() });
        }
        let until = now.plus_ms(self.options.timeout_ms + MARK_MS);
        let mut tx = self.db.begin().await?;
        for waiting in outbox::due_digests(&mut tx, day).await? {
            put_together(&mut tx, &waiting, now).await?;
        }
        for repeats in outbox::due_repeats(&mut tx, now).await? {
            put_together(&mut tx, &repeats, now).await?;
        }
        let snoozes = outbox::snoozes(&mut tx, now).await?;
        // A snoozed notification must not be sent as part of a summary.
        if snoozes.is_empty() {
            for crowd in outbox::crowds(&mut tx, self.options.sum_up_over, now).await? {
                put_together(&mut tx, &crowd, now).await?;
            }
        }
        let most = u32::try_from(room).unwrap_or(u32::MAX);
        let claimed = outbox::claim(&mut tx, &self.me, now, until, most).await?;
        let letters = self.without_snoozed(&mut tx, claimed, &snoozes).await?;
        let letters = self.without_repeats(&mut tx, letters, now).await?;
        let installation = store::installation(&mut tx).await?.unwrap_or_default();
        let next = outbox::next_due(&mut tx).await?;
        tx.commit().await.context("take mails to send")?;
        Ok(TakenNotifications { letters, installation, next })
    }

    async fn without_snoozed(
        &self,
        tx: &mut Tx,
        claimed: Vec<ClaimedNotification>,
        snoozes: &[Snooze],
    ) -> Result<Vec<ClaimedNotification>> {
        let mut rest = Vec::new();
        for mail in claimed {
            let topic = &mail.letter.topic;
            let covers =
                |s: &&Snooze| s.covers(topic.group.as_deref(), topic.job.as_deref(), mail.event);
            match snoozes.iter().filter(covers).max_by_key(|s| s.until) {
                Some(snooze) => {
                    let why = format!("snoozed by {}: {}", snooze.by, snooze.reason);
                    outbox::put_off(tx, &self.me, &[mail.id], snooze.until, &why).await?;
                }
                None => rest.push(mail),
            }
        }
        Ok(rest)
    }

    /// Holds back repeats of recently sent notifications, to be sent together later.
    async fn without_repeats(
        &self,
        tx: &mut Tx,
        letters: Vec<ClaimedNotification>,
        now: Millis,
    ) -> Result<Vec<ClaimedNotification>> {
        let mute_ms = self.options.mute_ms;
        if mute_ms == 0 {
            return Ok(letters);
        }
        let mut rest = Vec::new();
        for mail in letters {
            // A digest stands for others, and a retry is no repeat.
            let may_be = mail.event.is_of_batch() && mail.failed == 0;
            let last = match may_be {
                true => outbox::last_told(tx, &mail, now.plus_ms(-mute_ms)).await?,
                false => None,
            };
            match last {
                Some(last) => {
                    let why = format!("told at {last} already; repeats wait");
                    outbox::mute_notice(tx, &self.me, mail.id, last.plus_ms(mute_ms), &why).await?;
                }
                None => rest.push(mail),
            }
        }
        Ok(rest)
    }
}

/// The notifications to send now.
#[derive(Default)]
struct TakenNotifications {
    letters: Vec<ClaimedNotification>,
    installation: String,
    next: Option<Millis>,
}

async fn put_together(tx: &mut Tx, waiting: &DigestCandidate, now: Millis) -> Result<()> {
    let letters: Vec<&Notification> = waiting.letters.iter().map(|mail| &mail.letter).collect();
    outbox::put_together(tx, waiting, &outbox_schedule::digest(&letters), now).await
}

async fn write(db: &Db, me: &NodeId, marks: &[(i64, DeliveryMark)], now: Millis) -> Result<()> {
    let mut tx = db.begin().await?;
    for (id, mark) in marks {
        if !outbox::mark_notice(&mut tx, me, *id, mark, now).await? {
            tracing::warn!(mail = id, "a mail was taken over by another process while it was sent");
        }
    }
    tx.commit().await.context("mark mails")
}
