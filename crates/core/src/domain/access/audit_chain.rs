//! The hash chain over the audit log: the hashed encoding of an entry, and how each seal includes
//! the previous one.
//!
//! The encoding is documented in docs/audit.md, because third parties verify exports by it. It
//! never changes: another encoding needs another [`VERSION`].

use crate::domain::time::Millis;
use ring::digest::{Context, SHA256};

/// Prefix of the hashed encoding.
const VERSION: &[u8] = b"procession-audit-1";

/// A SHA-256 hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AuditHash([u8; 32]);

impl AuditHash {
    /// Hash before the first seal.
    pub const ZERO: Self = Self([0; 32]);

    /// Parses 64 hexadecimal digits.
    pub fn parse(text: &str) -> Option<Self> {
        let digits = text.as_bytes();
        if digits.len() != 64 {
            return None;
        }
        let mut bytes = [0; 32];
        for (byte, pair) in bytes.iter_mut().zip(digits.chunks(2)) {
            let digit = |at: usize| char::from(pair[at]).to_digit(16);
            *byte = u8::try_from(digit(0)? * 16 + digit(1)?).ok()?;
        }
        Some(Self(bytes))
    }
}

impl std::fmt::Display for AuditHash {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// An audit entry as stored, column by column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredAct {
    /// Primary key.
    pub audit_id: i64,
    /// Who acted.
    pub actor: String,
    /// Address or host of the actor.
    pub host: String,
    /// The action.
    pub action: String,
    /// Group concerned.
    pub group_code: Option<String>,
    /// Key of the batch.
    pub batch_id: Option<i64>,
    /// Number of the batch.
    pub batch_no: Option<String>,
    /// Job concerned.
    pub job_code: Option<String>,
    /// JSON, byte for byte as stored.
    pub detail: Option<String>,
    /// Reason given.
    pub reason: Option<String>,
    /// When.
    pub create_time: Millis,
}

impl StoredAct {
    /// SHA-256 of the version and all columns in their order. A NULL column is one byte 0; any
    /// other is one byte 1, the length of its text as 8 bytes (big-endian), and its text in UTF-8.
    /// Numbers are decimal, the time is in milliseconds since 1970.
    pub fn hash(&self) -> AuditHash {
        let mut context = Context::new(&SHA256);
        context.update(VERSION);
        let (id, time) = (self.audit_id.to_string(), self.create_time.0.to_string());
        let batch_id = self.batch_id.map(|id| id.to_string());
        for column in [
            Some(id.as_str()),
            Some(&self.actor),
            Some(&self.host),
            Some(&self.action),
            self.group_code.as_deref(),
            batch_id.as_deref(),
            self.batch_no.as_deref(),
            self.job_code.as_deref(),
            self.detail.as_deref(),
            self.reason.as_deref(),
            Some(&time),
        ] {
            match column {
                None => context.update(&[0]),
                Some(text) => {
                    context.update(&[1]);
                    context.update(&(text.len() as u64).to_be_bytes());
                    context.update(text.as_bytes());
                }
            }
        }
        finish(context)
    }
}

/// A seal: the link of the chain that remains of an entry when its row is removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AuditSeal {
    /// Number, from 1 without gaps.
    pub seal_no: i64,
    /// Primary key of the entry.
    pub audit_id: i64,
    /// Time of the entry.
    pub act_time: Millis,
    /// Hash of the entry.
    pub row_hash: AuditHash,
}

impl AuditSeal {
    /// SHA-256 of the previous seal's hash, the number of this seal, the key and the time of the
    /// entry (8 bytes each, big-endian) and the hash of the entry.
    pub fn hash_after(&self, before: AuditHash) -> AuditHash {
        let mut context = Context::new(&SHA256);
        context.update(&before.0);
        for number in [self.seal_no, self.audit_id, self.act_time.0] {
            context.update(&number.to_be_bytes());
        }
        context.update(&self.row_hash.0);
        finish(context)
    }
}

fn finish(context: Context) -> AuditHash {
    let mut bytes = [0; 32];
    bytes.copy_from_slice(context.finish().as_ref());
    AuditHash(bytes)
}

/// The end of the chain, as recorded by people outside the database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AuditHead {
    /// Number of the last seal; 0 when there is none.
    pub seal_no: i64,
    /// Its hash.
    pub hash: AuditHash,
}

impl AuditHead {
    /// The head of an empty chain.
    pub const EMPTY: Self = Self { seal_no: 0, hash: AuditHash::ZERO };

    /// Parses `NUMBER:HASH`.
    pub fn parse(text: &str) -> Option<Self> {
        let (number, hash) = text.trim().split_once(':')?;
        let seal_no = number.parse().ok().filter(|number| *number >= 0)?;
        Some(Self { seal_no, hash: AuditHash::parse(hash)? })
    }
}

impl std::fmt::Display for AuditHead {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}", self.seal_no, self.hash)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn act() -> StoredAct {
        StoredAct {
            audit_id: 7,
            actor: "ann".to_owned(),
            host: "10.0.0.7".to_owned(),
            action: "force-success".to_owned(),
            group_code: Some("gl".to_owned()),
            batch_id: Some(3),
            batch_no: Some("202407".to_owned()),
            job_code: Some("A".to_owned()),
            detail: Some("{\"before\":{\"status\":\"FAILED\"}}".to_owned()),
            reason: None,
            create_time: Millis(1_722_470_400_123),
        }
    }

    /// The figures were made by Python's hashlib from the documented encoding; they must never change.
    #[test]
    fn the_encoding_stays_as_it_is_documented() {
        let hash = act().hash();
        assert_eq!(
            hash.to_string(),
            "e01fe746fb2870fe7c1c823fd8caa8c73419f1ecb330e370a5ed71b8cc591211"
        );
        let seal =
            AuditSeal { seal_no: 1, audit_id: 7, act_time: act().create_time, row_hash: hash };
        assert_eq!(
            seal.hash_after(AuditHash::ZERO).to_string(),
            "68ca58881be7bf96b8267de2eb52e13014d111744096b0188e6b99047dd74e40"
        );
    }

    #[test]
    fn every_column_counts_and_none_runs_into_the_next() {
        let first = act().hash();
        let changed = |change: fn(&mut StoredAct)| {
            let mut act = act();
            change(&mut act);
            act.hash()
        };
        let all = [
            changed(|a| a.audit_id += 1),
            changed(|a| a.actor.push('x')),
            changed(|a| a.host.push('x')),
            changed(|a| a.action.push('x')),
            changed(|a| a.group_code = None),
            changed(|a| a.batch_id = None),
            changed(|a| a.batch_no = Some("202408".to_owned())),
            changed(|a| a.job_code = Some(String::new())),
            changed(|a| a.detail = None),
            changed(|a| a.reason = Some(String::new())),
            changed(|a| a.create_time = a.create_time.plus_ms(1)),
            changed(|a| (a.actor, a.host) = ("ann1".to_owned(), "0.0.0.7".to_owned())),
        ];
        let distinct: std::collections::BTreeSet<_> = all.iter().chain([&first]).collect();
        assert_eq!(distinct.len(), all.len() + 1);
    }

    #[test]
    fn a_head_is_read_as_it_is_written() {
        let head = AuditHead { seal_no: 12, hash: act().hash() };
        assert_eq!(AuditHead::parse(&head.to_string()), Some(head));
        for odd in ["", "12", "12:abc", "-1:00", "x:00"] {
            assert_eq!(AuditHead::parse(odd), None, "{odd}");
        }
    }
}
