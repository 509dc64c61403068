//! Ends of runs: the rest of their logs is read, then their attempts are notified.

use super::{Effect, RunRegister};
use crate::domain::executor::LogId;
use crate::domain::job::outcome::{AttemptEnd, AttemptOutcome, Stream};
use crate::domain::time::Millis;
use crate::domain::xxl::executor_run::{RunEnd, RunEvent, UnreportedEnd, log_after_ms, outcome};
use crate::engine::xxl::admin::CallId;
use crate::remote::executors::LogPage;

/// How long the last lines of a log are requested, in milliseconds.
const LAST_LINES_MS: i64 = 20_000;
/// Pause before an empty log is requested again, in milliseconds.
const LINES_AGAIN_MS: i64 = 300;

impl RunRegister {
    pub(super) fn ask_for_lines(&mut self, run: LogId, now: Millis) {
        let Some(part) = self.parts.get_mut(&run) else { return };
        if part.lines.at.is_none_or(|at| at > now) {
            return;
        }
        part.lines.at = None;
        if part.lines.is_asking {
            return;
        }
        if let Some(to) = part.to.clone() {
            part.lines.is_asking = true;
            self.effects.push(Effect::Log(run, to, part.sent, part.lines.next));
        }
    }

    pub(super) fn logged(&mut self, run: LogId, page: Option<LogPage>, now: Millis) {
        let Some(part) = self.parts.get_mut(&run) else { return };
        part.lines.is_asking = false;
        let is_missing = page.as_ref().is_some_and(LogPage::is_file_missing);
        let is_there = page.is_some() && !is_missing;
        let text = page.map(|page| page.log_content).unwrap_or_default();
        let is_final = part.lines.until.is_some() && !part.lines.is_early;
        let (notice, text) = if is_missing { (text, String::new()) } else { (String::new(), text) };
        // While the run continues its file may still appear. Before this check 500 requests were
        // sent, each with a notice.
        if let Some(call) = self.calls.get(&part.call).filter(|_| is_missing && is_final) {
            let said = format!("its executor has no log of run {run}: {}", notice.trim());
            call.log.add_line(Stream::System, said);
        }
        // Counted from the text: clients disagree on the line numbers of a page.
        let count = i64::try_from(text.lines().count()).unwrap_or(0);
        if let Some(call) = self.calls.get(&part.call) {
            for line in text.lines() {
                match part.shard {
                    (_, 1) => call.log.add_line(Stream::Stdout, line),
                    (index, _) => {
                        call.log.add_line(Stream::Stdout, format!("[part {index}] {line}"))
                    }
                }
            }
        }
        part.lines.next += count;
        match part.lines.until {
            Some(_) if std::mem::take(&mut part.lines.is_early) => {
                part.lines.at = Some(now);
                self.ask_for_lines(run, now);
            }
            None => {
                part.lines.asked += 1;
                part.lines.at = Some(part.sent.plus_ms(log_after_ms(part.lines.asked)).max(now));
            }
            Some(until) => {
                part.lines.empty = if count == 0 { part.lines.empty + 1 } else { 0 };
                let enough = if part.lines.next > 1 { 1 } else { 2 };
                if !is_there || part.lines.empty >= enough || now >= until {
                    self.close(run);
                    return;
                }
                let pause = if count > 0 { 0 } else { LINES_AGAIN_MS };
                part.lines.at = Some(now.plus_ms(pause));
                if pause == 0 {
                    self.ask_for_lines(run, now);
                }
            }
        }
        self.schedule_run(run);
    }

    /// Handles an ended run, whose row is final. The rest of its log is read first.
    pub(in crate::engine::xxl::admin) fn finish_run(
        &mut self,
        run: LogId,
        end: RunEnd,
        give_up: i64,
        now: Millis,
    ) {
        let Some(part) = self.parts.get_mut(&run) else { return };
        if part.end.is_some() {
            return;
        }
        let has_log = part.sent > Millis(0)
            && part.to.is_some()
            && !matches!(
                end.result,
                Some(UnreportedEnd::NotReached | UnreportedEnd::Refused | UnreportedEnd::Discarded)
            );
        part.state.apply_event(&RunEvent::Told, give_up, now);
        part.end = Some(end);
        let (job_id, call) = (part.job_id, part.call);
        self.turns.insert(job_id);
        self.leave_line(job_id, call);
        if !has_log {
            self.close(run);
            return;
        }
        if let Some(part) = self.parts.get_mut(&run) {
            part.lines.is_early = part.lines.is_asking;
            part.lines.until = Some(now.plus_ms(LAST_LINES_MS));
            part.lines.at = Some(now);
        }
        self.ask_for_lines(run, now);
        self.schedule_run(run);
    }

    /// Closes a run whose log is complete; after the last run of a call the attempt is notified.
    pub(super) fn close(&mut self, run: LogId) {
        let Some(mut part) = self.parts.remove(&run) else { return };
        let Some(call) = self.calls.get_mut(&part.call) else { return };
        call.ends.extend(part.end.take());
        if call.ends.len() < call.runs.len() {
            return;
        }
        call.ends.sort_by_key(|end| end.shard);
        let outcome = outcome(&call.ends);
        self.answer(part.call, outcome);
    }

    /// Sends an attempt its outcome.
    pub(in crate::engine::xxl::admin) fn answer(&mut self, id: CallId, outcome: AttemptOutcome) {
        if let Some(answer) = self.calls.get_mut(&id).and_then(|call| call.answer.take()) {
            // A dropped receiver means that the attempt was stopped, and its row says so.
            let _ = answer.send(outcome);
        }
        self.forget(id);
    }

    /// Ends an attempt without a run.
    pub(in crate::engine::xxl::admin) fn refuse(
        &mut self,
        id: CallId,
        end: AttemptEnd,
        said: &str,
    ) {
        self.answer(id, AttemptOutcome::ended(end, said).before_it_began());
    }
}
