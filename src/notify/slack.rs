//! An incoming webhook of Slack: blocks, and a text for clients that show none.

use crate::domain::text::truncate_text;
use crate::notify::chat_message::{self, MessagePiece};
use crate::notify::http::ChannelTarget;
use crate::notify::{Channel, Message, NotSent};
use futures_util::future::BoxFuture;
use reqwest::header::HeaderMap;
use serde_json::{Value, json};

pub(super) const WORD: &str = "slack";
/// Maximum number of characters of a section; the number of bytes is never smaller.
const SECTION_MAX: usize = 3_000;
/// Maximum number of characters of a heading.
const HEADER_MAX: usize = 150;
/// Maximum number of blocks of a message.
const BLOCKS_MAX: usize = 50;

struct Slack(ChannelTarget);

pub(super) fn open_channel(target: &ChannelTarget) -> Box<dyn Channel> {
    Box::new(Slack(target.clone()))
}

impl Channel for Slack {
    fn kind(&self) -> &'static str {
        WORD
    }

    fn send_message<'a>(
        &'a self,
        _: &'a str,
        message: &'a Message,
    ) -> BoxFuture<'a, Result<(), NotSent>> {
        Box::pin(async move {
            let answer =
                self.0.post_json(self.0.base_url(), HeaderMap::new(), build_body(message)).await?;
            self.0.by_status(&answer)
        })
    }
}

fn build_body(message: &Message) -> String {
    let line = format!("{} {}", chat_message::severity_icon(&message.letter), message.subject);
    let header = truncate_text(&line, HEADER_MAX);
    let header = json!({ "type": "header", "text": { "type": "plain_text", "text": header } });
    let pieces = chat_message::pieces(message);
    let blocks: Vec<Value> =
        std::iter::once(header).chain(pieces.into_iter().map(section)).take(BLOCKS_MAX).collect();
    json!({ "text": escape(&line), "blocks": blocks }).to_string()
}

fn section(piece: MessagePiece) -> Value {
    let text = match piece {
        MessagePiece::Sentence(text) => truncate_text(&escape(&text), SECTION_MAX),
        MessagePiece::Facts(facts) => {
            let line = |(label, value): &(String, String)| {
                format!("*{}*: {}", escape(label), escape(value))
            };
            let lines = facts.iter().map(line).collect::<Vec<_>>().join("\n");
            chat_message::clip_lines(&lines, SECTION_MAX)
        }
        MessagePiece::Verbatim(label, text) => {
            // Three backticks would end the box.
            let text = truncate_text(&escape(&text).replace("```", "'''"), SECTION_MAX - 200);
            format!("*{}*\n```{text}```", escape(&label))
        }
        MessagePiece::Link(label, url) => {
            format!("<{}|{}>", escape(&url).replace('|', "%7C"), escape(&label))
        }
    };
    json!({ "type": "section", "text": { "type": "mrkdwn", "text": text } })
}

/// Escapes the three characters with a meaning in Slack; without them no one is mentioned.
fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::notify::sample;

    #[test]
    fn nobody_is_mentioned_and_every_block_fits() {
        let mut message = sample::message();
        message.subject = "s".repeat(200);
        message.letter.error = Some(format!("<!channel>```{}", "&".repeat(9_000)));
        message.letter.notes = vec![message.letter.headline.clone(); 99];
        let text = build_body(&message);
        assert!(!text.contains("<!channel>"), "{text}");
        let body: Value = serde_json::from_str(&text).expect("json");
        let blocks = body["blocks"].as_array().expect("blocks");
        assert!(blocks.len() <= BLOCKS_MAX);
        for block in blocks {
            let text = block["text"]["text"].as_str().expect("text");
            let max = if block["type"] == "header" { HEADER_MAX } else { SECTION_MAX };
            assert!(text.chars().count() <= max && !text.is_empty(), "{text}");
        }
    }
}
