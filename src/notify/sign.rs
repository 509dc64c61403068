//! Signatures, as verified by the receivers of messages.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ring::hmac;
use std::fmt::Write as _;

/// HMAC-SHA256 in base64, for chat bots.
pub(super) fn base64(key: &[u8], message: &[u8]) -> String {
    STANDARD.encode(hmac_tag(key, message))
}

/// HMAC-SHA256 in hexadecimal digits.
pub(super) fn hmac_hex(key: &[u8], message: &[u8]) -> String {
    hmac_tag(key, message).as_ref().iter().fold(String::new(), |mut text, byte| {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn hmac_tag(key: &[u8], message: &[u8]) -> hmac::Tag {
    hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key), message)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 4231, test case 2, and the same in base64 by `openssl dgst -binary | base64`.
    #[test]
    fn a_known_answer() {
        let (key, message) = (b"Jefe", b"what do ya want for nothing?");
        let wanted = "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843";
        assert_eq!(hmac_hex(key, message), wanted);
        assert_eq!(base64(key, message), "W9zBRr9gdU5qBCQmCJV1x1oAPwidJzmDnexYuWTsOEM=");
    }
}
