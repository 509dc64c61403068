//! Answers of a Vault server: their documents, and the meaning of a status.

use secrecy::SecretString;
use serde::Deserialize;
use serde_json::{Map, Value};

/// Maximum length of the server's own text in a message, in characters.
const WORDS_MAX: usize = 300;

/// An answer of any status.
pub(super) struct VaultAnswer {
    pub(super) status: u16,
    pub(super) body: Vec<u8>,
}

/// The meaning of a status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum VaultVerdict {
    /// The answer is in the body.
    Well,
    /// The login is invalid, or lacks the permission: the server does not distinguish.
    Denied,
    /// Nothing is stored there.
    Absent,
    /// The request is invalid.
    Refused,
    /// The server cannot answer now: it is sealed, not initialised, a standby, overloaded.
    Away,
}

/// The answer to a login.
#[derive(Deserialize)]
pub(super) struct VaultLogin {
    pub(super) client_token: SecretString,
    /// Seconds; 0 means unlimited.
    #[serde(default)]
    pub(super) lease_duration: i64,
    #[serde(default)]
    pub(super) renewable: bool,
}

/// The answer to a token's lookup of itself.
#[derive(Deserialize)]
pub(super) struct TokenState {
    /// Seconds; 0 means unlimited.
    #[serde(default)]
    pub(super) ttl: i64,
    #[serde(default)]
    pub(super) renewable: bool,
}

/// One version of a secret of KV version 2.
#[derive(Deserialize)]
pub(super) struct KvSecret {
    /// Its fields; `None` when this version is deleted.
    pub(super) data: Option<Map<String, Value>>,
    pub(super) metadata: Option<KvMetadata>,
}

/// The metadata of a version.
#[derive(Deserialize)]
pub(super) struct KvMetadata {
    #[serde(default)]
    pub(super) version: u64,
    #[serde(default)]
    pub(super) deletion_time: String,
    #[serde(default)]
    pub(super) destroyed: bool,
}

#[derive(Deserialize)]
struct AuthDocument {
    auth: VaultLogin,
}

#[derive(Deserialize)]
struct DataDocument<T> {
    data: T,
}

#[derive(Default, Deserialize)]
struct ErrorDocument {
    #[serde(default)]
    errors: Vec<String>,
    #[serde(default)]
    warnings: Option<Vec<String>>,
}

impl VaultAnswer {
    /// The meaning of the status, from the list in Vault's API documentation.
    pub(super) fn verdict(&self) -> VaultVerdict {
        match self.status {
            200..=299 => VaultVerdict::Well,
            403 => VaultVerdict::Denied,
            404 => VaultVerdict::Absent,
            // A standby that does not forward answers with a redirect; 472 and 473 are standbys of
            // another cluster, 412 is a node that has not yet replicated an earlier write.
            300..=399 | 408 | 412 | 425 | 429 | 472 | 473 | 500.. => VaultVerdict::Away,
            _ => VaultVerdict::Refused,
        }
    }

    /// The login in the answer.
    pub(super) fn login(&self) -> Option<VaultLogin> {
        serde_json::from_slice::<AuthDocument>(&self.body).ok().map(|found| found.auth)
    }

    /// The token state in the answer.
    pub(super) fn token_state(&self) -> Option<TokenState> {
        serde_json::from_slice::<DataDocument<_>>(&self.body).ok().map(|found| found.data)
    }

    /// The version in the answer; a deleted one comes with the status 404.
    pub(super) fn secret(&self) -> Option<KvSecret> {
        serde_json::from_slice::<DataDocument<_>>(&self.body).ok().map(|found| found.data)
    }

    /// The status with the server's own text: `403: permission denied`.
    pub(super) fn words(&self) -> String {
        let found: ErrorDocument = serde_json::from_slice(&self.body).unwrap_or_default();
        let all = found.errors.into_iter().chain(found.warnings.unwrap_or_default());
        let words: Vec<String> = all.collect();
        let words = words.join("; ");
        let plain: Vec<&str> = words.split_whitespace().collect();
        let plain: String = plain.join(" ").chars().take(WORDS_MAX).collect();
        let plain = plain.strip_prefix("1 error occurred: * ").unwrap_or(&plain).to_owned();
        match plain.is_empty() {
            true => self.status.to_string(),
            false => format!("{}: {plain}", self.status),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(status: u16, body: &str) -> VaultAnswer {
        VaultAnswer { status, body: body.as_bytes().to_vec() }
    }

    /// The bodies are those of OpenBao 2.7.2.
    #[test]
    fn answers_of_a_real_server_are_understood() {
        for (status, body, verdict, words) in [
            (
                403,
                "{\"errors\":[\"1 error occurred:\\n\\t* permission denied\\n\\n\"]}",
                VaultVerdict::Denied,
                "403: permission denied",
            ),
            (404, "{\"errors\":[]}", VaultVerdict::Absent, "404"),
            (
                400,
                "{\"errors\":[\"invalid role or secret ID\"]}",
                VaultVerdict::Refused,
                "400: invalid role or secret ID",
            ),
            (503, "{\"errors\":[\"Vault is sealed\"]}", VaultVerdict::Away, "503: Vault is sealed"),
            (502, "<html>Bad Gateway</html>", VaultVerdict::Away, "502"),
            (307, "", VaultVerdict::Away, "307"),
            (429, "", VaultVerdict::Away, "429"),
        ] {
            let answer = answer(status, body);
            assert_eq!((answer.verdict(), answer.words().as_str()), (verdict, words));
        }
        let deleted = answer(
            404,
            "{\"data\":{\"data\":null,\"metadata\":{\"deletion_time\":\"2026-11-26T19:17:08Z\",\
             \"destroyed\":false,\"version\":1}}}",
        );
        let found = deleted.secret().expect("a version");
        let metadata = found.metadata.expect("metadata");
        assert!(found.data.is_none() && !metadata.deletion_time.is_empty());
        assert!(answer(404, "{\"errors\":[]}").secret().is_none());
        let login = "{\"data\":null,\"auth\":{\"client_token\":\"s.x\",\"lease_duration\":20,\"renewable\":true}}";
        let login = answer(200, login).login().expect("a login");
        assert_eq!((login.lease_duration, login.renewable), (20, true));
        let state = answer(200, "{\"data\":{\"ttl\":19,\"renewable\":true}}").token_state();
        assert_eq!(state.expect("a state").ttl, 19);
    }
}
