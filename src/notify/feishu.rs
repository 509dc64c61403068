//! A custom chat bot of a Feishu group: a card, signed in its body.

use crate::domain::notification::event::Severity;
use crate::notify::chat_message::{self, MessagePiece};
use crate::notify::http::{ChannelTarget, VerdictCodes};
use crate::notify::{Channel, Message, NotSent, sign};
use futures_util::future::BoxFuture;
use reqwest::header::HeaderMap;
use serde_json::{Value, json};

pub(super) const WORD: &str = "feishu";
/// Maximum size of a request in bytes.
const BODY_MAX: usize = 20_000;

const CODES: VerdictCodes = VerdictCodes {
    code: "code",
    words: "msg",
    // Too many messages (5 per second, 100 per minute), by the bot and by the platform.
    later: &[11_232, 99_991_400],
    hints: &[
        (9_499, "the request was not understood"),
        (19_001, "no such robot: look at the url"),
        (19_021, "look at secret and at this machine's clock"),
        (19_022, "this machine's address is not on the robot's list"),
        (19_024, "none of the robot's keywords is in the message"),
    ],
};

struct Feishu(ChannelTarget);

pub(super) fn open_channel(target: &ChannelTarget) -> Box<dyn Channel> {
    Box::new(Feishu(target.clone()))
}

impl Channel for Feishu {
    fn kind(&self) -> &'static str {
        WORD
    }

    fn send_message<'a>(
        &'a self,
        _: &'a str,
        message: &'a Message,
    ) -> BoxFuture<'a, Result<(), NotSent>> {
        Box::pin(async move {
            let body = build_body(message, self.0.secret());
            let answer = self.0.post_json(self.0.base_url(), HeaderMap::new(), body).await?;
            self.0.by_code(&answer, &CODES)
        })
    }
}

fn build_body(message: &Message, secret: Option<&str>) -> String {
    let mut elements = elements(message);
    loop {
        let mut body = json!({ "msg_type": "interactive", "card": build_card(message, &elements) });
        if let Some(secret) = secret {
            let (timestamp, sign) = signature(secret, message.now.0.div_euclid(1_000));
            body["timestamp"] = timestamp.into();
            body["sign"] = sign.into();
        }
        let text = body.to_string();
        // The last parts matter least; escaping may make the parts longer than they were.
        if text.len() <= BODY_MAX || elements.pop().is_none() {
            return text;
        }
    }
}

/// The time in seconds, and the signature of an empty text: the secret is part of the key.
fn signature(secret: &str, second: i64) -> (String, String) {
    let key = format!("{second}\n{secret}");
    (second.to_string(), sign::base64(key.as_bytes(), b""))
}

fn build_card(message: &Message, elements: &[Value]) -> Value {
    let template = match message.letter.severity() {
        Severity::Good => "green",
        Severity::Warning => "orange",
        Severity::Bad => "red",
    };
    json!({
        "config": { "wide_screen_mode": true },
        "header": {
            "template": template,
            "title": { "tag": "plain_text", "content": message.subject },
        },
        "elements": elements,
    })
}

fn elements(message: &Message) -> Vec<Value> {
    let plain =
        |text: &str| json!({ "tag": "div", "text": { "tag": "plain_text", "content": text } });
    let marked =
        |text: &str| json!({ "tag": "div", "text": { "tag": "lark_md", "content": text } });
    let mut elements = Vec::new();
    for piece in chat_message::pieces(message) {
        match piece {
            MessagePiece::Sentence(text) => elements.push(plain(&text)),
            MessagePiece::Facts(facts) => {
                let line = |(label, value): &(String, String)| {
                    format!("**{}**: {}", escape(label), escape(value))
                };
                elements.push(marked(&facts.iter().map(line).collect::<Vec<_>>().join("\n")));
            }
            MessagePiece::Verbatim(label, text) => {
                elements.push(marked(&format!("**{}**", escape(&label))));
                elements.push(plain(&text));
            }
            MessagePiece::Link(label, url) => elements.push(json!({
                "tag": "action",
                "actions": [{
                    "tag": "button",
                    "type": "primary",
                    "text": { "tag": "plain_text", "content": label },
                    "url": url,
                }],
            })),
        }
    }
    elements
}

/// A text without markup and mentions; Feishu interprets entities.
fn escape(text: &str) -> String {
    text.chars().fold(String::new(), |mut out, c| {
        match c {
            '<' | '>' | '*' | '_' | '~' | '[' | ']' | '(' | ')' | '`' | '#' | '&' | '!' | '@' => {
                out.push_str(&format!("&#{};", u32::from(c)));
            }
            c => out.push(c),
        }
        out
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::notify::sample;

    /// From Feishu's own example in Python.
    #[test]
    fn it_signs_as_the_manual_does() {
        let wanted =
            ("1700000000".to_owned(), "8oT2n3SMKFfEnDoiwer8BUM/SjKLwe9SqoEIHlhDTKo=".to_owned());
        assert_eq!(signature("demo", 1_700_000_000), wanted);
    }

    #[test]
    fn nobody_is_mentioned_and_it_fits() {
        let mut message = sample::message();
        message.letter.facts[0].value = "<at id=all></at>".to_owned();
        message.letter.error = Some("\"\\\n".repeat(5_000));
        message.letter.log = vec!["\u{1}".repeat(9_000)];
        let text = build_body(&message, Some("demo"));
        assert!(text.len() <= BODY_MAX && !text.contains("<at"), "{text}");
        let body: Value = serde_json::from_str(&text).expect("json");
        assert_eq!(body["card"]["header"]["template"], "red");
    }
}
