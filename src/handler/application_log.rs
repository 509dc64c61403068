//! Copies the log of an application on a cluster into the log of its attempt while it runs, and
//! reads its `::output name=value` lines.

use crate::domain::job::outcome::Stream;
use crate::handler::Context;
use crate::handler::child::OutputReader;
use crate::handler::cluster_api::ClusterApi;
use crate::handler::remote_engine::RemoteEngine;
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::time::{sleep, timeout};

/// Number of pieces that are read at once, so that a long log does not keep the state unread.
const PIECES: usize = 16;
/// Time limit of reading the log once.
const READING: Duration = Duration::from_secs(20);
/// Pause before the last read: the cluster may write its files after it reports the end.
const LAST_WORDS: Duration = Duration::from_millis(400);

/// The log of one application.
pub(crate) struct ApplicationLog<'a> {
    engine: &'a dyn RemoteEngine,
    ctx: &'a Context,
    id: String,
    reader: OutputReader<'a>,
    offsets: [u64; 2],
    /// The end of its standard output: `spark-submit` sends there what a Python program writes to standard error.
    output_tail: String,
    /// Why the log is not complete, as it was written to the attempt's log.
    fault: Option<String>,
}

/// Number of bytes of standard output that are kept to find the cause of a failure.
const OUTPUT_TAIL: usize = 64 * 1024;

/// What a program printed for later jobs.
pub(crate) struct PrintedOutputs {
    pub(crate) values: BTreeMap<String, Option<String>>,
    pub(crate) unusable: BTreeMap<String, String>,
}

impl<'a> ApplicationLog<'a> {
    pub(crate) fn new(engine: &'a dyn RemoteEngine, ctx: &'a Context, id: &str) -> Self {
        let reader = OutputReader::new(&ctx.log, ctx.options.outputs);
        Self {
            engine,
            ctx,
            id: id.to_owned(),
            reader,
            offsets: [0; 2],
            output_tail: String::new(),
            fault: None,
        }
    }

    /// Copies what is new. Returns whether everything was read.
    pub(crate) async fn copy_new(&mut self, api: &ClusterApi) -> bool {
        let read = timeout(READING, self.copy_streams(api)).await;
        match read.unwrap_or_else(|_| Err("it is read too slowly".to_owned())) {
            Ok(is_all) => {
                self.fault = None;
                is_all
            }
            Err(cause) => {
                if self.fault.as_ref() != Some(&cause) {
                    let line = format!("cannot read the log of {}: {cause}", self.id);
                    self.ctx.log.add_line(Stream::System, line);
                }
                self.fault = Some(cause);
                false
            }
        }
    }

    async fn copy_streams(&mut self, api: &ClusterApi) -> Result<bool, String> {
        let mut is_all = true;
        for (at, stream) in [Stream::Stdout, Stream::Stderr].into_iter().enumerate() {
            for piece_no in 0..=PIECES {
                let read = self.engine.read_log(api, &self.id, stream, self.offsets[at]).await?;
                let Some(piece) = read.filter(|piece| piece.end > self.offsets[at]) else { break };
                self.reader.feed_bytes(stream, piece.text.as_bytes());
                if stream == Stream::Stdout {
                    self.keep_output(&piece.text);
                }
                self.offsets[at] = piece.end;
                if piece.end >= piece.total {
                    break;
                }
                is_all = piece_no < PIECES;
            }
        }
        Ok(is_all)
    }

    /// Copies the rest after the end.
    pub(crate) async fn copy_rest(&mut self, api: &ClusterApi) {
        while !self.copy_new(api).await && self.fault.is_none() {}
        sleep(LAST_WORDS).await;
        while !self.copy_new(api).await && self.fault.is_none() {}
    }

    fn keep_output(&mut self, text: &str) {
        self.output_tail.push_str(text);
        let surplus = self.output_tail.len().saturating_sub(OUTPUT_TAIL);
        let cut =
            (surplus..=self.output_tail.len()).find(|at| self.output_tail.is_char_boundary(*at));
        self.output_tail.drain(..cut.unwrap_or_default());
    }

    /// The ends of its standard error and output, where the cause of a failure is looked for.
    pub(crate) fn last_lines(&self) -> String {
        format!("{}\n{}", self.reader.error_tail(), self.output_tail)
    }

    /// The outputs; an error is why they would not be complete.
    pub(crate) fn finish(mut self) -> Result<PrintedOutputs, String> {
        self.reader.finish();
        let mut printed = PrintedOutputs { values: BTreeMap::new(), unusable: BTreeMap::new() };
        for (name, value) in self.reader.outputs.finish()? {
            match value.as_deref().is_some_and(|text| text.contains('\u{fffd}')) {
                false => {
                    printed.values.insert(name, value);
                }
                true => {
                    let why = "it is not UTF-8 as the cluster hands it on; start the cluster's \
                               workers with the Java option -Dfile.encoding=UTF-8";
                    printed.unusable.insert(name, why.to_owned());
                }
            }
        }
        Ok(printed)
    }
}
