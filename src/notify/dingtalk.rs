//! A custom chat bot of a DingTalk group: a Markdown message, signed in the URL.

use crate::notify::chat_message::{self, MessagePiece};
use crate::notify::http::{ChannelTarget, VerdictCodes};
use crate::notify::{Channel, Message, NotSent, sign};
use futures_util::future::BoxFuture;
use reqwest::header::HeaderMap;
use serde_json::json;

pub(super) const WORD: &str = "dingtalk";
/// Maximum size of the text in bytes; the whole request may have 20,000.
const TEXT_MAX: usize = 14_000;

const CODES: VerdictCodes = VerdictCodes {
    code: "errcode",
    words: "errmsg",
    // Busy; too many messages per minute (20), by the old code and by the new one.
    later: &[-1, 130_101, 410_100],
    hints: &[
        (300_001, "no such robot: look at the url"),
        (300_005, "no such robot: look at the url"),
        (
            310_000,
            "the robot's safety settings: look at secret, this machine's clock, keywords, addresses",
        ),
        (400_013, "the group was dissolved"),
        (400_101, "no such robot: look at the url"),
        (400_102, "the robot was switched off"),
        (400_106, "the robot is not in the group"),
    ],
};

struct DingTalk(ChannelTarget);

pub(super) fn open_channel(target: &ChannelTarget) -> Box<dyn Channel> {
    Box::new(DingTalk(target.clone()))
}

impl Channel for DingTalk {
    fn kind(&self) -> &'static str {
        WORD
    }

    fn send_message<'a>(
        &'a self,
        _: &'a str,
        message: &'a Message,
    ) -> BoxFuture<'a, Result<(), NotSent>> {
        Box::pin(async move {
            let mut url = self.0.base_url();
            if let Some(secret) = self.0.secret() {
                let (timestamp, sign) = signature(secret, message.now.0);
                url.query_pairs_mut()
                    .append_pair("timestamp", &timestamp)
                    .append_pair("sign", &sign);
            }
            let title = message.subject.as_str();
            let body = json!({
                "msgtype": "markdown",
                "markdown": { "title": title, "text": chat_message::clip_lines(&markdown_text(message), TEXT_MAX) },
            });
            let answer = self.0.post_json(url, HeaderMap::new(), body.to_string()).await?;
            self.0.by_code(&answer, &CODES)
        })
    }
}

/// The time in milliseconds, and its signature with the secret.
fn signature(secret: &str, now: i64) -> (String, String) {
    let signed = format!("{now}\n{secret}");
    (now.to_string(), sign::base64(secret.as_bytes(), signed.as_bytes()))
}

/// DingTalk starts a new line only after an empty one.
fn markdown_text(message: &Message) -> String {
    let title = format!(
        "#### {} {}",
        chat_message::severity_icon(&message.letter),
        escape_markdown(&message.subject)
    );
    let pieces = chat_message::pieces(message).into_iter().map(|piece| match piece {
        MessagePiece::Sentence(text) => escape_markdown(&text),
        MessagePiece::Facts(facts) => {
            let line = |(label, value): &(String, String)| {
                format!("- **{}**: {}", escape_markdown(label), escape_markdown(value))
            };
            facts.iter().map(line).collect::<Vec<_>>().join("\n")
        }
        MessagePiece::Verbatim(label, text) => {
            let lines = text.lines().map(|line| format!("> {}\n>", escape_markdown(line)));
            format!("**{}**\n\n{}", escape_markdown(&label), lines.collect::<Vec<_>>().join("\n"))
        }
        MessagePiece::Link(label, url) => {
            format!("[{}]({})", escape_markdown(&label), escape_link(&url))
        }
    });
    std::iter::once(title).chain(pieces).collect::<Vec<_>>().join("\n\n")
}

/// A text without markup. Neither DingTalk nor WeCom supports escaping, so characters that would
/// begin a link, an image, a colour or a mention are replaced by their full-width forms.
pub(super) fn escape_markdown(text: &str) -> String {
    let wide = |c: char| match c {
        '[' => '［',
        ']' => '］',
        '<' => '＜',
        '>' => '＞',
        '*' => '＊',
        '`' => '｀',
        '@' => '＠',
        c => c,
    };
    let text: String = text.chars().map(wide).collect();
    // At the start of a line it would be a heading.
    if text.starts_with('#') { text.replacen('#', "＃", 1) } else { text }
}

/// A link's URL, which must not end the link.
pub(super) fn escape_link(url: &str) -> String {
    url.replace('(', "%28").replace(')', "%29").replace(|c: char| c.is_whitespace(), "%20")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::notify::sample;

    /// From DingTalk's own example in Python, with `base64.b64encode` in place of `quote_plus`.
    #[test]
    fn it_signs_as_the_manual_does() {
        let (timestamp, sign) = signature("this is secret", 1_700_000_000_123);
        assert_eq!(timestamp, "1700000000123");
        assert_eq!(sign, "W2RNhLVXZurCuMiewxzjoEaGqxhR/FQAkLiAHZh+PWY=");
    }

    #[test]
    fn nothing_from_a_job_is_markup() {
        let mut message = sample::message();
        message.letter.error = Some("[click](http://evil.example) @all\n# big".to_owned());
        let text = markdown_text(&message);
        assert!(text.contains("> ［click］(http://evil.example) ＠all\n>\n> ＃ big"), "{text}");
    }
}
