//! A webhook: the complete message as signed JSON, for a team's own program.

use crate::notify::http::ChannelTarget;
use crate::notify::{Channel, Message, NotSent, sign};
use futures_util::future::BoxFuture;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use serde_json::json;

pub(super) const WORD: &str = "webhook";
/// The header with the time and the signature.
const SIGNATURE: HeaderName = HeaderName::from_static("x-procession-signature");
/// The header by which a retry is recognised.
const KEY: HeaderName = HeaderName::from_static("idempotency-key");

struct Webhook(ChannelTarget);

pub(super) fn open_channel(target: &ChannelTarget) -> Box<dyn Channel> {
    Box::new(Webhook(target.clone()))
}

impl Channel for Webhook {
    fn kind(&self) -> &'static str {
        WORD
    }

    fn send_message<'a>(
        &'a self,
        _: &'a str,
        message: &'a Message,
    ) -> BoxFuture<'a, Result<(), NotSent>> {
        Box::pin(async move {
            let body = build_body(message);
            let key = HeaderValue::from_str(&message.message_id);
            let key = key.map_err(|_| self.0.unfit("the message's id is no header"))?;
            let mut headers = HeaderMap::from_iter([(KEY, key)]);
            if let Some(secret) = self.0.secret() {
                let signature = signature(secret, message.now.0.div_euclid(1_000), &body);
                let value = HeaderValue::from_str(&signature);
                headers.insert(SIGNATURE, value.expect("digits and letters make a header"));
            }
            let answer = self.0.post_json(self.0.base_url(), headers, body).await?;
            self.0.by_status(&answer)
        })
    }
}

fn build_body(message: &Message) -> String {
    json!({
        "event": message.letter.event,
        "severity": message.letter.severity(),
        "subject": message.subject,
        "text": message.text,
        "lang": message.lang.select("en", "zh"),
        "message_id": message.message_id,
        "at": message.at.to_string(),
        "notification": message.letter,
    })
    .to_string()
}

/// The time is part of what is signed, so that an old message cannot be sent again as a new one.
fn signature(secret: &str, second: i64, body: &str) -> String {
    let signed = format!("{second}.{body}");
    format!("t={second},v1={}", sign::hmac_hex(secret.as_bytes(), signed.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::signature;

    /// `printf '1700000000.{"a":1}' | openssl dgst -sha256 -hmac geheim`
    #[test]
    fn it_signs_what_openssl_signs() {
        let wanted =
            "t=1700000000,v1=c2f0a59f12d0bcd3933234d85083c03b99e970604203fd059a320436bb602adf";
        assert_eq!(signature("geheim", 1_700_000_000, r#"{"a":1}"#), wanted);
    }
}
