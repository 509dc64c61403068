//! Writes messages of executors: all waiting ones in one transaction, each answered after the
//! commit.

use super::registry_api::{AdminApiRefusal, ExecutorMessage, VerifiedToken};
use crate::domain::executor::LogId;
use crate::domain::xxl::xxl_run::AppName;
use crate::engine::clock::Clock;
use crate::store::executor_run::{self, KnownRun, ReportedRunEnd};
use crate::store::{self, Db, executor_group, executor_registry};
use anyhow::{Context as _, Result, anyhow};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::oneshot;
use tokio_util::task::TaskTracker;

/// Maximum number of ends and registrations per transaction, except for a single larger request, to
/// keep it short.
const AT_ONCE: usize = 5_000;
/// Pause between two attempts while the database is unavailable.
const AGAIN: Duration = Duration::from_millis(200);
/// Attempts of a transaction with a serialization conflict, before its requests wait as if the
/// database were unavailable.
const TRIES: usize = 5;

/// A message, with the receiver of the answer.
struct PendingWrite {
    digest: String,
    said: ExecutorMessage,
    answer: oneshot::Sender<Result<Result<(), AdminApiRefusal>>>,
}

impl PendingWrite {
    fn weight(&self) -> usize {
        match &self.said {
            ExecutorMessage::There(_) | ExecutorMessage::Gone(..) => 1,
            ExecutorMessage::Ends(ends, _) => ends.len().max(1),
        }
    }
}

#[derive(Default)]
struct Queue {
    waiting: Vec<PendingWrite>,
    is_written: bool,
}

/// Writes messages in groups.
pub(super) struct Batcher {
    db: Db,
    clock: Clock,
    queue: Mutex<Queue>,
    tasks: TaskTracker,
}

impl Batcher {
    pub(super) fn new(db: Db, clock: Clock) -> Self {
        Self { db, clock, queue: Mutex::default(), tasks: TaskTracker::new() }
    }

    /// Waits until nothing is being written.
    pub(super) async fn close(&self) {
        self.tasks.close();
        self.tasks.wait().await;
    }

    /// Writes a message; an error is a database error, after which the message may be written
    /// nevertheless. Cancelling the wait takes nothing back.
    pub(super) async fn write(
        self: &Arc<Self>,
        pass: &VerifiedToken,
        said: ExecutorMessage,
    ) -> Result<Result<(), AdminApiRefusal>> {
        let (answer, answered) = oneshot::channel();
        let waiting = PendingWrite { digest: pass.digest.clone(), said, answer };
        let is_first = {
            let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
            queue.waiting.push(waiting);
            !std::mem::replace(&mut queue.is_written, true)
        };
        if is_first {
            // A task of its own: the requester may be cancelled, and others wait for the same
            // transaction.
            let this = Writing(self.clone());
            self.tasks.spawn(async move { this.0.write_all().await });
        }
        answered.await.map_err(|_| anyhow!("what executors said was not written"))?
    }

    /// Writes until nothing waits.
    async fn write_all(&self) {
        loop {
            let batch = self.next();
            if batch.is_empty() {
                return;
            }
            self.write_batch(batch).await;
        }
    }

    /// The next messages to write. A requester that is gone will send its message again.
    fn next(&self) -> Vec<PendingWrite> {
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        queue.waiting.retain(|waiting| !waiting.answer.is_closed());
        let (mut weight, mut count) = (0, 0);
        for waiting in &queue.waiting {
            weight += waiting.weight();
            if count > 0 && weight > AT_ONCE {
                break;
            }
            count += 1;
        }
        let batch: Vec<PendingWrite> = queue.waiting.drain(..count).collect();
        queue.is_written = !batch.is_empty();
        batch
    }

    async fn write_batch(&self, batch: Vec<PendingWrite>) {
        let said: Vec<(&str, &ExecutorMessage)> =
            batch.iter().map(|waiting| (waiting.digest.as_str(), &waiting.said)).collect();
        match self.commit_again(&said).await {
            Ok(verdicts) => {
                for (waiting, verdict) in batch.into_iter().zip(verdicts) {
                    // A requester that is gone needs no answer.
                    let _gone = waiting.answer.send(Ok(verdict));
                }
            }
            Err(error) if store::is_transient(&error) => {
                tracing::warn!(
                    error = format!("{error:#}"),
                    "what executors say is not written yet"
                );
                self.put_back(batch);
                tokio::time::sleep(AGAIN).await;
            }
            Err(error) => self.write_each(batch, &error).await,
        }
    }

    fn put_back(&self, batch: Vec<PendingWrite>) {
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        queue.waiting.splice(0..0, batch);
    }

    /// A message that cannot be written must not block the others.
    async fn write_each(&self, batch: Vec<PendingWrite>, error: &anyhow::Error) {
        tracing::error!(error = format!("{error:#}"), "what executors say cannot be written");
        let alone = batch.len() == 1;
        for waiting in batch {
            let verdict = match alone {
                true => Err(anyhow!("{error:#}")),
                false => match self.commit_again(&[(&waiting.digest, &waiting.said)]).await {
                    Ok(mut verdicts) => verdicts.pop().context("one answer for one request"),
                    Err(error) => Err(error),
                },
            };
            let _gone = waiting.answer.send(verdict);
        }
    }

    async fn commit_again(
        &self,
        said: &[(&str, &ExecutorMessage)],
    ) -> Result<Vec<Result<(), AdminApiRefusal>>> {
        let mut tries = 0;
        loop {
            tries += 1;
            match self.commit(said).await {
                Err(error) if store::asks_again(&error) && tries < TRIES => {}
                done => return done,
            }
        }
    }

    /// One transaction; an answer for each message.
    async fn commit(
        &self,
        said: &[(&str, &ExecutorMessage)],
    ) -> Result<Vec<Result<(), AdminApiRefusal>>> {
        let now = self.clock.now();
        let mut tx = self.db.begin().await?;
        let digests: BTreeSet<String> = said.iter().map(|(d, _)| (*d).to_owned()).collect();
        // A token that was changed meanwhile is invalid.
        let tokens = executor_group::of_tokens(&mut tx, &digests).await?;
        let ids: BTreeSet<i64> = said.iter().flat_map(|(_, said)| log_ids(said)).collect();
        let ids: Vec<i64> = ids.into_iter().collect();
        let known = match ids.is_empty() {
            true => Vec::new(),
            false => executor_run::known(&mut tx, &ids).await?,
        };
        let known: BTreeMap<LogId, KnownRun> = known.into_iter().map(|k| (k.log_id, k)).collect();
        let mut all = WriteBatch::default();
        let none = BTreeSet::new();
        let verdicts = said
            .iter()
            .map(|(digest, said)| {
                all.take_message(said, tokens.get(*digest).unwrap_or(&none), &known)
            })
            .collect();
        executor_registry::note_seen(&mut tx, &all.there, now).await?;
        executor_registry::remove_gone(&mut tx, &all.gone).await?;
        executor_run::report_ends(&mut tx, &all.ends.into_values().collect::<Vec<_>>(), now)
            .await?;
        failpoint!("admin.before_commit");
        tx.commit().await.context("write what executors say")?;
        failpoint!("admin.after_commit");
        Ok(verdicts)
    }
}

/// Marks that a task is writing; however that ends, the next message starts a new one.
struct Writing(Arc<Batcher>);

impl Drop for Writing {
    fn drop(&mut self) {
        let mut queue = self.0.queue.lock().unwrap_or_else(PoisonError::into_inner);
        if std::thread::panicking() {
            (queue.is_written, queue.waiting) = (false, Vec::new());
        }
    }
}

fn log_ids(said: &ExecutorMessage) -> Vec<i64> {
    match said {
        ExecutorMessage::There(_) | ExecutorMessage::Gone(..) => Vec::new(),
        ExecutorMessage::Ends(ends, _) => ends.iter().map(|end| end.log_id.0).collect(),
    }
}

/// All writes of a transaction.
#[derive(Default)]
struct WriteBatch {
    there: BTreeSet<executor_registry::There>,
    gone: BTreeSet<(AppName, String)>,
    ends: BTreeMap<LogId, ReportedRunEnd>,
}

impl WriteBatch {
    /// Adds one message, if its token allows it.
    fn take_message(
        &mut self,
        said: &ExecutorMessage,
        token: &BTreeSet<AppName>,
        known: &BTreeMap<LogId, KnownRun>,
    ) -> Result<(), AdminApiRefusal> {
        match said {
            ExecutorMessage::There(there) => {
                holds(token, &there.app_name)?;
                // Of two messages of one executor in one transaction the later one counts.
                self.gone.remove(&(there.app_name.clone(), there.address.clone()));
                let other = executor_registry::There {
                    shows_app_name: !there.shows_app_name,
                    ..there.clone()
                };
                self.there.remove(&other);
                self.there.insert(there.clone());
            }
            ExecutorMessage::Gone(app, address) => {
                holds(token, app)?;
                self.there.retain(|there| there.app_name != *app || there.address != *address);
                self.gone.insert((app.clone(), address.clone()));
            }
            ExecutorMessage::Ends(ends, apps) => {
                let mut refused = Ok(());
                for end in ends {
                    // An unknown run was removed with its batch, or belongs to another
                    // installation.
                    let Some(run) = known.get(&end.log_id) else {
                        tracing::info!(
                            log_id = end.log_id.0,
                            "an executor told of a run that is not known"
                        );
                        continue;
                    };
                    let its = apps.contains(&run.app_name) && token.contains(&run.app_name);
                    match (its, run.was_asked) {
                        (false, _) => refused = Err(AdminApiRefusal::OtherRun(end.log_id.0)),
                        (true, false) => refused = Err(AdminApiRefusal::NotAsked(end.log_id.0)),
                        (true, true) => {
                            self.ends.entry(end.log_id).or_insert_with(|| end.clone());
                        }
                    }
                }
                return refused;
            }
        }
        Ok(())
    }
}

fn holds(token: &BTreeSet<AppName>, app: &AppName) -> Result<(), AdminApiRefusal> {
    match token.contains(app) {
        true => Ok(()),
        false => Err(AdminApiRefusal::Token),
    }
}
