//! Passes PostgreSQL's notices (NOTICE, WARNING, INFO) to the code that runs the statement.
//!
//! sqlx publishes these only as `tracing` events with target `sqlx::postgres::notice`, as they
//! arrive. A layer with its own filter receives them, so they also arrive when the console shows
//! errors only, and a task-local assigns them, so that parallel bodies do not mix.

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::filter::filter_fn;
use tracing_subscriber::layer::Context;
use tracing_subscriber::registry::LookupSpan;

const TARGET: &str = "sqlx::postgres::notice";

/// Receives a severity word and a message.
pub type NoticeSink = Arc<dyn Fn(&str, &str) + Send + Sync>;

tokio::task_local! {
    static SINK: NoticeSink;
}

/// Runs `work`; notices of its statements go to `sink`.
pub async fn scope<F: Future>(sink: NoticeSink, work: F) -> F::Output {
    SINK.scope(sink, work).await
}

/// The layer that the program installs once, beside the one that writes to the console.
pub fn layer<S>() -> impl Layer<S>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
{
    Notices.with_filter(filter_fn(|event| event.target() == TARGET))
}

struct Notices;

impl<S: Subscriber> Layer<S> for Notices {
    fn on_event(&self, event: &Event<'_>, _ctx: Context<'_, S>) {
        let _outside_a_scope = SINK.try_with(|sink| {
            let mut text = NoticeText(String::new());
            event.record(&mut text);
            sink(level_word(*event.metadata().level()), &text.0);
        });
    }
}

/// sqlx maps PostgreSQL's severities to levels; this is the inverse.
fn level_word(level: Level) -> &'static str {
    match level {
        Level::ERROR => "ERROR",
        Level::WARN => "WARNING",
        Level::INFO => "NOTICE",
        Level::DEBUG => "DEBUG",
        Level::TRACE => "INFO",
    }
}

struct NoticeText(String);

impl Visit for NoticeText {
    fn record_str(&mut self, field: &Field, value: &str) {
        if field.name() == "message" {
            value.clone_into(&mut self.0);
        }
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        if field.name() == "message" {
            self.0 = format!("{value:?}");
        }
    }
}
