//! One job of a batch: all its data, and its output.

use crate::api::authorize;
use crate::api::caller::{ApiRequest, CallerNeeds};
use crate::api::problem::Problem;
use crate::api::route::{Nothing, Noun};
use crate::domain::access::Permission;
use crate::domain::batch::Batch;
use crate::domain::id::QueueId;
use crate::domain::job::job_key::{find_named, parse_code_within};
use crate::domain::job::outcome::{JobOutputs, StoredValue};
use crate::domain::job::queue::QueueEntry;
use crate::store;
use crate::store::log::{LogLine, LogPosition};
use crate::view::batch::BatchView;
use crate::view::job_of_batch::BatchJobDetail;
use crate::view::log::{self, LogLineDetail, LogSelection};
use anyhow::Context as _;
use axum::body::{Body, Bytes};
use axum::http::header::{CONTENT_DISPOSITION, CONTENT_LENGTH, CONTENT_TYPE};
use axum::response::{IntoResponse as _, Response};
use futures_util::stream;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt::Write as _;

/// Maximum number of lines per answer.
const LINES_MAX: u32 = 5_000;
/// Lines of a file that are read at a time.
const PIECE: u32 = 2_000;

pub(super) fn routes() -> Noun {
    let needs = CallerNeeds::Somewhere(Permission::View);
    Noun::new("batch jobs")
        .expensive()
        .get(
            "getBatchJob",
            "/groups/{group}/batches/{batch_no}/jobs/{job}",
            needs,
            "Get a job of a batch: attempts, parameters, outputs, why it does not run, who runs it",
            get_job,
        )
        .get(
            "listLogLines",
            "/groups/{group}/batches/{batch_no}/jobs/{job}/log",
            needs,
            "List log lines of a job, a page at a time; `after` follows a running job",
            lines,
        )
        .media(
            "downloadLog",
            "/groups/{group}/batches/{batch_no}/jobs/{job}/log.txt",
            "text/plain; charset=utf-8",
            needs,
            "Download all log lines of a job as a text file",
            download_log,
        )
        .media(
            "downloadStoredValue",
            "/groups/{group}/batches/{batch_no}/jobs/{job}/values/{position}",
            "text/plain; charset=utf-8",
            needs,
            "Download a large value that a job returned and that is stored aside",
            stored_value,
        )
}

/// A job of a batch.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct BatchJobPath {
    /// The group code.
    pub(super) group: String,
    /// The batch number.
    pub(super) batch_no: String,
    /// The job's code or alias.
    pub(super) job: String,
}

impl BatchJobPath {
    async fn batch(&self, ask: &ApiRequest) -> Result<Batch, Problem> {
        authorize::batch(ask, Permission::View, &self.group, &self.batch_no).await
    }

    fn missing(&self) -> Problem {
        let Self { group, batch_no, job } = self;
        Problem::not_found(format!("job {job} in batch {batch_no} of group {group}"))
    }

    /// The batch and the job's row, by the job's code or alias.
    pub(super) async fn find_row(&self, ask: &ApiRequest) -> Result<(Batch, QueueEntry), Problem> {
        let batch = self.batch(ask).await?;
        let code = parse_code_within(&batch.values.group, &self.job).map_err(|_| self.missing())?;
        let of = batch.batch_id;
        let mut tx = ask.house.app.db.begin_read().await.map_err(anyhow::Error::from)?;
        if let Some(row) = store::queue::of_job(&mut tx, of, &code).await? {
            return Ok((batch, row));
        }
        let snapshot = store::batch::snapshot(&mut tx, batch.batch_id).await?;
        let job = find_named(&snapshot.jobs, &self.job).map_err(|_| self.missing())?;
        let code = &job.code;
        let row = store::queue::of_job(&mut tx, of, code).await?;
        drop(tx);
        Ok((batch, row.ok_or_else(|| self.missing())?))
    }
}

async fn get_job(ask: ApiRequest, of: BatchJobPath, _: Nothing) -> Result<BatchJobDetail, Problem> {
    let batch = of.batch(&ask).await?;
    let view = BatchView::without_outputs(&ask.house.app, batch.batch_id).await?;
    let job = find_named(&view.snapshot.jobs, &of.job).map_err(|_| of.missing())?;
    let at = view.snapshot.jobs.iter().position(|j| j.code == job.code);
    let at = at.filter(|at| *at < view.rows.len()).ok_or_else(|| of.missing())?;
    Ok(BatchJobDetail::read_panel(&ask.house.app, view, at, ask.lang).await?)
}

/// Which lines.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
struct ListLogLinesQuery {
    /// Only of this attempt.
    attempt: Option<u32>,
    /// After this line, `ATTEMPT:LINE_NO`: newer lines.
    after: Option<String>,
    /// Before this line, `ATTEMPT:LINE_NO`: the last ones of that attempt, for paging backwards.
    before: Option<String>,
    /// Number of lines, 1 to 5000; default 1000.
    limit: Option<u32>,
    /// `next` of the previous page.
    cursor: Option<String>,
}

/// Lines printed by a job.
#[derive(Debug, Serialize, JsonSchema)]
struct LogLinesPage {
    /// The lines, oldest first.
    items: Vec<LogLineDetail>,
    /// Send this as `cursor` (or `after`) for the following lines; null when there are no more at
    /// present.
    next: Option<String>,
    /// Send this as `after` for later lines; null while there are none.
    last: Option<String>,
    /// The state of the job.
    status: String,
    /// The last attempt.
    attempt: u32,
    /// No further line will arrive unless the job is rerun.
    is_over: bool,
    /// When the lines of this batch were removed by retention.
    removed: Option<String>,
}

/// `2:117`: a start and a line of it.
fn parse_position(name: &str, message: &str) -> Result<LogPosition, Problem> {
    let read = message.split_once(':').and_then(|(attempt, line)| {
        Some(LogPosition { attempt: attempt.parse().ok()?, line_no: line.parse().ok()? })
    });
    let refused = || {
        Problem::unreadable(format!("{name}: {message} is no line; write ATTEMPT:LINE_NO, 1:250"))
    };
    read.ok_or_else(refused)
}

impl ListLogLinesQuery {
    fn wanted(&self) -> Result<(LogSelection, usize), Problem> {
        let limit = match self.limit.unwrap_or(1_000) {
            n @ 1..=LINES_MAX => n as usize,
            n => {
                return Err(Problem::unreadable(format!(
                    "limit is {n}; it may be 1 to {LINES_MAX}"
                )));
            }
        };
        let begin = LogPosition::start_of(self.attempt.unwrap_or(0));
        let after = match self.cursor.as_deref().or(self.after.as_deref()) {
            Some(position) => parse_position("after", position)?.max(begin),
            None => begin,
        };
        let wanted = match self.before.as_deref() {
            Some(position) => LogSelection::Before(parse_position("before", position)?),
            None => LogSelection::After(after),
        };
        Ok((wanted, limit))
    }
}

async fn lines(
    ask: ApiRequest,
    of: BatchJobPath,
    which: ListLogLinesQuery,
) -> Result<LogLinesPage, Problem> {
    let (wanted, limit) = which.wanted()?;
    // The state is read before the lines: when it is final, no line arrives later.
    let (batch, row) = of.find_row(&ask).await?;
    let app = &ask.house.app;
    let most = u32::try_from(limit + 1).unwrap_or(u32::MAX);
    let mut found = log::lines(app, row.queue_id, wanted, most).await?;
    found.retain(|line| which.attempt.is_none_or(|only| only == line.attempt));
    let more = found.len() > limit && matches!(wanted, LogSelection::After(..));
    match wanted {
        LogSelection::After(..) => found.truncate(limit),
        LogSelection::Before(..) => drop(found.drain(..found.len().saturating_sub(limit))),
    }
    let last = found.last().map(|line| format!("{}:{}", line.attempt, line.line_no));
    let mut tx = app.db.begin_read().await.map_err(anyhow::Error::from)?;
    let removed = store::retention::lines_gone(&mut tx, batch.batch_id).await?;
    Ok(LogLinesPage {
        items: found.iter().map(LogLineDetail::from).collect(),
        next: last.clone().filter(|_| more),
        last: last.or(which.after.clone()),
        status: row.status.as_str().to_owned(),
        attempt: row.attempt,
        is_over: row.status.is_final(),
        removed: removed.map(|at| at.to_string()),
    })
}

/// Which attempt.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
struct AttemptQuery {
    /// Only of this attempt.
    attempt: Option<u32>,
}

async fn download_log(
    ask: ApiRequest,
    of: BatchJobPath,
    only: AttemptQuery,
) -> Result<Response, Problem> {
    let (_, row) = of.find_row(&ask).await?;
    let name = format!("{}-{}-{}.log.txt", of.group, of.batch_no, row.job_code);
    let begin = LogPosition::start_of(only.attempt.unwrap_or(0));
    let pieces = stream::unfold(Some(begin), move |after| {
        let ask = ask.clone();
        async move { piece(&ask, row.queue_id, after?, only.attempt).await }
    });
    let headers = [
        (CONTENT_TYPE, "text/plain; charset=utf-8".to_owned()),
        (CONTENT_DISPOSITION, format!("attachment; filename*=UTF-8''{}", percent(&name))),
    ];
    Ok((headers, Body::from_stream(pieces)).into_response())
}

/// A large value of a job, which is stored separately.
#[derive(Debug, Deserialize, JsonSchema)]
struct StoredValuePath {
    /// The group code.
    group: String,
    /// The batch number.
    batch_no: String,
    /// The job's code or alias.
    job: String,
    /// The `position` of the value in the outputs of the job.
    position: u32,
}

/// The value in the form of docs/values.md, sent in chunks, one of which is held in memory at a
/// time.
async fn stored_value(
    ask: ApiRequest,
    path: StoredValuePath,
    _: Nothing,
) -> Result<Response, Problem> {
    let StoredValuePath { group, batch_no, job, position } = path;
    let of = BatchJobPath { group, batch_no, job };
    let (_, row) = of.find_row(&ask).await?;
    let mut tx = ask.house.app.db.begin_read().await.map_err(anyhow::Error::from)?;
    let found = store::queue::outputs(&mut tx, &[row.queue_id]).await?;
    drop(tx);
    let outputs = found.first().map(|(_, text)| serde_json::from_str::<JobOutputs>(text));
    let outputs = outputs.transpose().map_err(anyhow::Error::from)?.unwrap_or_default();
    let stored = outputs.stored_values().into_iter().find(|(_, of)| of.position == position);
    let Some((name, reference)) = stored.map(|(name, of)| (name.to_owned(), of.clone())) else {
        let what = format!("stored value {position} of job {}", row.job_code);
        return Err(Problem::not_found(what));
    };
    let name = format!("{}-{}-{}-{name}.txt", of.group, of.batch_no, row.job_code);
    let length = reference.bytes.to_string();
    let begin = ChunkCursor { chunk_no: 0, left: reference.bytes };
    let pieces = stream::unfold(Some(begin), move |cursor| {
        let (ask, reference) = (ask.clone(), reference.clone());
        async move { next_chunk(&ask, &reference, cursor?).await }
    });
    let headers = [
        (CONTENT_TYPE, "text/plain; charset=utf-8".to_owned()),
        (CONTENT_LENGTH, length),
        (CONTENT_DISPOSITION, format!("attachment; filename*=UTF-8''{}", percent(&name))),
    ];
    Ok((headers, Body::from_stream(pieces)).into_response())
}

/// The progress of a download.
#[derive(Clone, Copy, Debug)]
struct ChunkCursor {
    chunk_no: u32,
    /// Bytes still to be sent.
    left: u64,
}

/// The next chunk of a stored value, and the new position. If the value is removed meanwhile, the
/// body is aborted.
async fn next_chunk(
    ask: &ApiRequest,
    reference: &StoredValue,
    at: ChunkCursor,
) -> Option<(anyhow::Result<Bytes>, Option<ChunkCursor>)> {
    if at.left == 0 {
        return None;
    }
    let read = async {
        let mut tx = ask.house.app.db.begin_read().await?;
        let chunk = store::output_value::chunk(&mut tx, reference, at.chunk_no).await?;
        chunk.context("the value has been removed")
    };
    match read.await {
        Ok(chunk) => {
            let left = at.left.saturating_sub(chunk.len() as u64);
            let next = ChunkCursor { chunk_no: at.chunk_no + 1, left };
            Some((Ok(Bytes::from(chunk)), Some(next)))
        }
        Err(error) => Some((Err(error), None)),
    }
}

type LogPiece = (anyhow::Result<Bytes>, Option<LogPosition>);

/// The next lines of a file, and where to continue; `None` at its end.
async fn piece(
    ask: &ApiRequest,
    row: QueueId,
    after: LogPosition,
    only: Option<u32>,
) -> Option<LogPiece> {
    let found = log::lines(&ask.house.app, row, LogSelection::After(after), PIECE).await;
    let found = match found {
        Ok(found) => found,
        // The body is aborted, so that the reader notices that the file is incomplete.
        Err(error) => return Some((Err(error), None)),
    };
    let last = found.last().map(LogLine::position);
    let more = found.len() == PIECE as usize;
    let wanted: Vec<LogLine> =
        found.into_iter().filter(|line| only.is_none_or(|only| only == line.attempt)).collect();
    if wanted.is_empty() {
        return None;
    }
    Some((Ok(Bytes::from(lines_as_text(&wanted, after.attempt))), last.filter(|_| more)))
}

/// Lines as in a file; each attempt after the attempt `before` has a heading.
fn lines_as_text(lines: &[LogLine], mut before: u32) -> String {
    let mut text = String::new();
    for line in lines {
        if line.attempt != before {
            before = line.attempt;
            let _never_fails = writeln!(text, "-- start {before}");
        }
        let _never_fails = writeln!(text, "{} {:>8} | {}", line.at, line.stream, line.text);
    }
    text
}

/// A name in a header: everything except ASCII letters, digits and `-._` as `%XX`.
fn percent(name: &str) -> String {
    let mut text = String::new();
    for byte in name.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' => text.push(byte.into()),
            other => drop(write!(text, "%{other:02X}")),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_named_by_its_start_and_number() {
        assert_eq!(
            parse_position("after", "2:117").expect("a line"),
            LogPosition { attempt: 2, line_no: 117 }
        );
        for message in ["", "2", "2:", ":7", "-1:7", "2:x"] {
            assert!(parse_position("after", message).is_err(), "{message}");
        }
        assert_eq!(percent("月-1.log"), "%E6%9C%88-1.log");
    }
}
