//! A chat bot of a WeCom group: a Markdown message. Only its URL protects it; there are no
//! signatures.

use crate::domain::notification::event::Severity;
use crate::notify::chat_message::{self, MessagePiece};
use crate::notify::dingtalk::{escape_link, escape_markdown};
use crate::notify::http::{ChannelTarget, VerdictCodes};
use crate::notify::{Channel, Message, NotSent};
use futures_util::future::BoxFuture;
use reqwest::header::HeaderMap;
use serde_json::json;

pub(super) const WORD: &str = "wecom";
/// Maximum size of the text in bytes.
const TEXT_MAX: usize = 4_096;

const CODES: VerdictCodes = VerdictCodes {
    code: "errcode",
    words: "errmsg",
    // Busy; too many messages per minute (20); too many at once.
    later: &[-1, 45_009, 45_033],
    hints: &[(93_000, "no such robot: look at the url")],
};

struct WeCom(ChannelTarget);

pub(super) fn open_channel(target: &ChannelTarget) -> Box<dyn Channel> {
    Box::new(WeCom(target.clone()))
}

impl Channel for WeCom {
    fn kind(&self) -> &'static str {
        WORD
    }

    fn send_message<'a>(
        &'a self,
        _: &'a str,
        message: &'a Message,
    ) -> BoxFuture<'a, Result<(), NotSent>> {
        Box::pin(async move {
            let content = chat_message::clip_lines(&markdown_text(message), TEXT_MAX);
            let body = json!({ "msgtype": "markdown", "markdown": { "content": content } });
            let answer =
                self.0.post_json(self.0.base_url(), HeaderMap::new(), body.to_string()).await?;
            self.0.by_code(&answer, &CODES)
        })
    }
}

fn markdown_text(message: &Message) -> String {
    // The three supported colours.
    let colour = match message.letter.severity() {
        Severity::Good => "info",
        Severity::Warning | Severity::Bad => "warning",
    };
    let sign = chat_message::severity_icon(&message.letter);
    let title =
        format!("{sign} **<font color=\"{colour}\">{}</font>**", escape_markdown(&message.subject));
    let pieces = chat_message::pieces(message).into_iter().map(|piece| match piece {
        MessagePiece::Sentence(text) => escape_markdown(&text),
        MessagePiece::Facts(facts) => {
            let line = |(label, value): &(String, String)| {
                format!(
                    "<font color=\"comment\">{}:</font> {}",
                    escape_markdown(label),
                    escape_markdown(value)
                )
            };
            facts.iter().map(line).collect::<Vec<_>>().join("\n")
        }
        MessagePiece::Verbatim(label, text) => {
            let lines = text.lines().map(|line| format!("> {}", escape_markdown(line)));
            format!("**{}**\n{}", escape_markdown(&label), lines.collect::<Vec<_>>().join("\n"))
        }
        MessagePiece::Link(label, url) => {
            format!("[{}]({})", escape_markdown(&label), escape_link(&url))
        }
    });
    std::iter::once(title).chain(pieces).collect::<Vec<_>>().join("\n\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::notify::sample;

    #[test]
    fn it_fits_and_ends_with_a_whole_line() {
        let mut message = sample::message();
        message.letter.error = Some("月末结账失败\n".repeat(300));
        message.letter.log = vec!["长".repeat(3_000)];
        message.letter.notes = vec![message.letter.headline.clone(); 40];
        let whole = markdown_text(&message);
        let text = chat_message::clip_lines(&whole, TEXT_MAX);
        assert!(whole.len() > TEXT_MAX, "the test shows nothing");
        assert!(text.len() <= TEXT_MAX && text.ends_with("\n…"), "{} {text}", text.len());
        assert!(text.starts_with("🔴 **<font color=\"warning\">"), "{text}");
    }
}
