//! Sends what stands in the outbox, beside everything else: takes what is due, sends it outside of any
//! transaction, marks what came of it. Nobody who dispatches waits for it.
//!
//! Whoever dies between the sending and the mark has it sent a second time, with the same Message-ID.

mod nodes;
mod turning;

use crate::domain::delivery::{self, Snooze};
use crate::domain::id::NodeId;
use crate::domain::letter::Letter;
use crate::domain::time::{Millis, span_words};
use crate::engine::clock::Clock;
use crate::engine::dispatcher::QueueDispatcher;
use crate::engine::heartbeat::Heart;
use crate::engine::meter::Meter;
use crate::notify::{Carriers, Message, NotSent, Templates};
use crate::store::outbox::{self, Claimed, Mark, Waiting};
use crate::store::{self, Db, Tx};
use anyhow::{Context as _, Result};
use chrono::NaiveTime;
use chrono_tz::Tz;
use futures_util::StreamExt as _;
use std::collections::BTreeMap;
use std::sync::Arc;

pub use crate::domain::lang::Lang;
pub use crate::domain::recipient::Recipient;
pub use crate::store::outbox::{Filter, Shown};

/// Letters taken at a time, for each connection.
const PER_CONNECTION: u32 = 4;
/// How long letters wait whose channel is not set up before it is looked again.
const NOT_CONFIGURED_MS: i64 = 600_000;
/// How long a process may take beyond its sends before others take what it has: its marks need the
/// database.
const MARK_MS: i64 = 60_000;

/// Settings of the outbox.
#[derive(Clone, Debug)]
pub struct Options {
    /// Letters that are on their way at once, at most.
    pub connections: u32,
    /// How long one may take.
    pub timeout_ms: i64,
    /// How long a letter is tried for before it is given up.
    pub give_up_ms: i64,
    /// The same event of the same job is told to the same one again only after so long.
    pub mute_ms: i64,
    /// More letters than this to one recipient, due at once, go out as one.
    pub sum_up_over: usize,
    /// When a day's digest goes out.
    pub digest_at: NaiveTime,
    /// By the clock of this zone.
    pub zone: Tz,
    /// The language of recipients for whom nobody says one.
    pub lang: Lang,
    /// Languages of single recipients, or of all in a domain (`@bank.example`).
    pub langs: BTreeMap<String, Lang>,
    /// What stands behind the `@` of a Message-ID.
    pub id_host: String,
    /// Lines of a job's log that a letter about it ends with.
    pub log_lines: u32,
    /// Address of a page about a batch, with `{group}`, `{batch_no}` and `{job}`.
    pub link: Option<String>,
    /// Who hears of the installation itself.
    pub operators: Vec<String>,
}

impl Options {
    fn lang_of(&self, mail: &Claimed) -> Lang {
        let of_domain = || mail.recipient.rfind('@').map(|at| &mail.recipient[at..]);
        mail.lang
            .or_else(|| self.langs.get(&mail.recipient).copied())
            .or_else(|| self.langs.get(of_domain()?).copied())
            .unwrap_or(self.lang)
    }

    /// Letters taken at a time, and how long they may take in all.
    fn claim(&self) -> (u32, i64) {
        let rounds = i64::from(PER_CONNECTION);
        (self.connections * PER_CONNECTION, self.timeout_ms * rounds + MARK_MS)
    }
}

/// `08:00` or `08:00:30`.
pub fn time_of_day(text: &str) -> Option<NaiveTime> {
    let text = text.trim();
    NaiveTime::parse_from_str(text, "%H:%M")
        .or_else(|_| NaiveTime::parse_from_str(text, "%H:%M:%S"))
        .ok()
}

/// What a beat came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sent {
    /// Letters that their servers took.
    pub sent: usize,
    /// Letters that are tried again.
    pub again: usize,
    /// Letters that are given up.
    pub failed: usize,
    /// Whether more may be due at once.
    pub is_more: bool,
    /// When the next is due.
    pub next: Option<Millis>,
}

/// Sends the outbox.
pub struct Sender {
    db: Db,
    clock: Clock,
    meter: Arc<Meter>,
    me: NodeId,
    heart: Option<Arc<Heart>>,
    carriers: Carriers,
    templates: Templates,
    options: Options,
    /// What came of tries whose rows could not be marked: tried again before anything else.
    unmarked: Vec<(i64, Mark)>,
    /// When it is looked again who has died.
    nodes_at: Millis,
}

impl QueueDispatcher {
    /// What sends the outbox in the process that this dispatcher is.
    pub fn sender(&self, carriers: Carriers, templates: Templates, options: Options) -> Sender {
        let place = (self.db.clone(), self.clock.clone());
        let (me, heart) = (self.node.id().clone(), Some(self.heart.clone()));
        let sender = Sender::new(place, me, carriers, templates, options);
        Sender { heart, meter: self.meter.clone(), ..sender }
    }
}

impl Sender {
    /// One that is part of no process which serves.
    pub fn new(
        (db, clock): (Db, Clock),
        me: NodeId,
        carriers: Carriers,
        templates: Templates,
        options: Options,
    ) -> Self {
        let (meter, unmarked, nodes_at) = (Arc::default(), Vec::new(), Millis(i64::MIN));
        Self { db, clock, meter, me, heart: None, carriers, templates, options, unmarked, nodes_at }
    }

    /// Sends what is due now, one round of it.
    pub async fn beat(&mut self, now: Millis) -> Result<Sent> {
        self.mark_left(now).await?;
        self.tell_of_nodes(now).await?;
        let taken = self.take(now).await?;
        let mut all = Sent { is_more: taken.is_more, next: taken.next, ..Sent::default() };
        if taken.letters.is_empty() {
            return Ok(all);
        }
        let installation = taken.installation;
        let sends = taken.letters.into_iter().map(|letter| self.send(letter, &installation, now));
        let width = usize::try_from(self.options.connections).unwrap_or(1).max(1);
        let (mut marks, meter, clock) = (Vec::new(), self.meter.clone(), self.clock.clone());
        let mut done =
            futures_util::stream::iter(sends).buffer_unordered(width).ready_chunks(width);
        while let Some(some) = done.next().await {
            // A server that hangs is no loop that is stalled.
            meter.loop_turned(turning::NAME, clock.uptime());
            for (_, mark) in &some {
                match mark {
                    Mark::Sent { .. } => all.sent += 1,
                    Mark::Again(..) | Mark::Wait(..) => all.again += 1,
                    Mark::Failed(_) => all.failed += 1,
                }
            }
            marks.extend(some);
            // What is marked at once cannot be sent twice, whatever happens to the others.
            if write(&self.db, &self.me, &marks, self.clock.now()).await.is_ok() {
                marks.clear();
            }
        }
        drop(done);
        self.meter.mails(&all);
        self.unmarked = marks;
        self.mark_left(self.clock.now()).await?;
        Ok(all)
    }

    async fn mark_left(&mut self, now: Millis) -> Result<()> {
        if !self.unmarked.is_empty() {
            write(&self.db, &self.me, &self.unmarked, now).await?;
            self.unmarked.clear();
        }
        Ok(())
    }

    /// Takes what is due: digests are put together, what is snoozed waits on.
    async fn take(&self, now: Millis) -> Result<Taken> {
        let day = delivery::last_digest(now, self.options.digest_at, self.options.zone);
        let mut tx = self.db.read().await?;
        let next = outbox::next_due(&mut tx).await?;
        let waits = outbox::waits_for_digest(&mut tx).await?;
        drop(tx);
        if !waits && next.is_none_or(|at| at > now) {
            return Ok(Taken { next, ..Taken::default() });
        }
        let (most, span) = self.options.claim();
        let mut tx = self.db.begin().await?;
        for waiting in outbox::due_digests(&mut tx, day).await? {
            put_together(&mut tx, &waiting, now).await?;
        }
        for repeats in outbox::due_repeats(&mut tx, now).await? {
            put_together(&mut tx, &repeats, now).await?;
        }
        for crowd in outbox::crowds(&mut tx, self.options.sum_up_over, now).await? {
            put_together(&mut tx, &crowd, now).await?;
        }
        let snoozes = outbox::snoozes(&mut tx, now).await?;
        let claimed = outbox::claim(&mut tx, &self.me, (now, now.plus(span)), most).await?;
        let is_more = u32::try_from(claimed.len()).unwrap_or(most) >= most;
        let letters = self.without_snoozed(&mut tx, claimed, &snoozes).await?;
        let letters = self.without_repeats(&mut tx, letters, now).await?;
        let installation = store::installation(&mut tx).await?.unwrap_or_default();
        let next = outbox::next_due(&mut tx).await?;
        tx.commit().await.context("take mails to send")?;
        Ok(Taken { letters, installation, is_more, next })
    }

    async fn without_snoozed(
        &self,
        tx: &mut Tx,
        claimed: Vec<Claimed>,
        snoozes: &[Snooze],
    ) -> Result<Vec<Claimed>> {
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

    /// Lets repeats of what was told a short while ago wait, to go out together.
    async fn without_repeats(
        &self,
        tx: &mut Tx,
        letters: Vec<Claimed>,
        now: Millis,
    ) -> Result<Vec<Claimed>> {
        let mute_ms = self.options.mute_ms;
        if mute_ms == 0 {
            return Ok(letters);
        }
        let mut rest = Vec::new();
        for mail in letters {
            // A digest stands for others, and a second try is no repeat.
            let may_be = mail.event.is_of_batch() && mail.failed == 0;
            let last = match may_be {
                true => outbox::last_told(tx, &mail, now.plus(-mute_ms)).await?,
                false => None,
            };
            match last {
                Some(last) => {
                    let why = format!("told at {last} already; repeats wait");
                    outbox::mute(tx, &self.me, mail.id, last.plus(mute_ms), &why).await?;
                }
                None => rest.push(mail),
            }
        }
        Ok(rest)
    }

    /// Draws one letter and sends it.
    async fn send(&self, mail: Claimed, installation: &str, now: Millis) -> (i64, Mark) {
        let lang = self.options.lang_of(&mail);
        let id = format!("procession-{}-{installation}@{}", mail.id, self.options.id_host);
        let letter = self.complete(&mail).await;
        let drawn = self.templates.render(&letter, lang, mail.written, &id);
        if let Some(warning) = &drawn.warning {
            tracing::warn!(mail = mail.id, warning, "a template failed; the built-in one was used");
        }
        let message = Message {
            message_id: id,
            subject: drawn.subject,
            text: drawn.text,
            html: drawn.html,
            lang,
            letter,
            at: mail.written,
            now: self.clock.now(),
        };
        failpoint!("mail.before");
        let ended = self.carriers.send(&mail.recipient, &message).await;
        failpoint!("mail.after_dot");
        (mail.id, self.judge(&mail, message, ended, now))
    }

    fn judge(
        &self,
        mail: &Claimed,
        message: Message,
        ended: Result<(), NotSent>,
        now: Millis,
    ) -> Mark {
        match ended {
            Ok(()) => Mark::Sent { subject: message.subject, body: message.text },
            Err(NotSent::Never(why)) => {
                tracing::warn!(mail = mail.id, why, "a mail is given up");
                Mark::Failed(why)
            }
            Err(NotSent::NotConfigured(why)) => Mark::Wait(now.plus(NOT_CONFIGURED_MS), why),
            Err(NotSent::Later(why)) => {
                let at = self.clock.now().max(now);
                let next =
                    delivery::next_try(mail.failed + 1, mail.written, at, self.options.give_up_ms);
                match next {
                    Some(next) => Mark::Again(next, why),
                    None => {
                        tracing::warn!(mail = mail.id, why, "a mail is given up: it is too old");
                        Mark::Failed(format!("given up after many tries; the last: {why}"))
                    }
                }
            }
        }
    }

    /// The letter with what is known only now: the end of the job's log, and where to look.
    async fn complete(&self, mail: &Claimed) -> Letter {
        let mut letter = mail.letter.clone();
        let topic = &letter.topic;
        if let Some(pattern) = &self.options.link {
            letter.link = link(pattern, topic);
        }
        let (Some(queue_id), Some(attempt)) = (mail.queue_id, letter.topic.attempt) else {
            return letter;
        };
        let known = async {
            let mut tx = self.db.read().await?;
            let lines = self.options.log_lines;
            let lines = store::log::last_lines(&mut tx, queue_id, attempt, lines).await?;
            let (group, job) = (letter.topic.group.as_deref(), letter.topic.job.as_deref());
            let usual = match group.zip(job) {
                Some((group, job)) => store::history::of_job(&mut tx, group, job).await?,
                None => None,
            };
            anyhow::Ok((lines, usual))
        };
        match known.await {
            Ok((lines, usual)) => {
                letter.log = lines;
                if let Some(usual) = usual {
                    let words = format!("{} (≤ {})", span_words(usual.p50), span_words(usual.p95));
                    letter = letter.fact("Usually", "通常耗时", words);
                }
            }
            // The letter is worth more than the end of a log.
            Err(error) => {
                let error = format!("{error:#}");
                tracing::debug!(mail = mail.id, error, "sent without the end of the log");
            }
        }
        letter
    }
}

/// What is to be sent now.
#[derive(Default)]
struct Taken {
    letters: Vec<Claimed>,
    installation: String,
    is_more: bool,
    next: Option<Millis>,
}

async fn put_together(tx: &mut Tx, waiting: &Waiting, now: Millis) -> Result<()> {
    let letters: Vec<&Letter> = waiting.letters.iter().map(|mail| &mail.letter).collect();
    outbox::put_together(tx, waiting, &delivery::digest(&letters), now).await
}

/// The address of the page about what a letter is about; none when it lacks what the pattern names.
fn link(pattern: &str, topic: &crate::domain::letter::Topic) -> Option<String> {
    use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
    let mut text = pattern.to_owned();
    for (name, value) in
        [("{group}", &topic.group), ("{batch_no}", &topic.batch_no), ("{job}", &topic.job)]
    {
        if text.contains(name) {
            let value = utf8_percent_encode(value.as_deref()?, NON_ALPHANUMERIC).to_string();
            text = text.replace(name, &value);
        }
    }
    Some(text)
}

async fn write(db: &Db, me: &NodeId, marks: &[(i64, Mark)], now: Millis) -> Result<()> {
    let mut tx = db.begin().await?;
    for (id, mark) in marks {
        if !outbox::mark(&mut tx, me, *id, mark, now).await? {
            tracing::warn!(mail = id, "a mail was taken over by another process while it was sent");
        }
    }
    tx.commit().await.context("mark mails")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::letter::Topic;

    #[test]
    fn a_link_needs_all_that_it_names() {
        let topic = Topic {
            group: Some("month end/x".to_owned()),
            batch_no: Some("202407".to_owned()),
            ..Topic::default()
        };
        let pattern = "https://p/b/{group}/{batch_no}";
        assert_eq!(link(pattern, &topic).as_deref(), Some("https://p/b/month%20end%2Fx/202407"));
        assert_eq!(link("https://p/{job}", &topic), None);
        assert_eq!(link("https://p/", &Topic::default()).as_deref(), Some("https://p/"));
    }
}
