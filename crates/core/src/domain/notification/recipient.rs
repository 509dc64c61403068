//! Parses a recipient of notifications: an e-mail address, or a channel of the settings (`channel:NAME`).

/// Prefix of the name of a channel.
pub const CHANNEL: &str = "channel:";
/// Maximum length of an address in characters, by RFC 5321.
pub const ADDRESS_MAX: usize = 254;
/// Maximum length of the name of a channel.
pub const CHANNEL_MAX: usize = 40;

/// Recipient of a notification.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recipient<'a> {
    /// An e-mail address.
    Address(&'a str),
    /// The channel with this name.
    Channel(&'a str),
}

/// Why a text is not a recipient: the problem and a hint.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what}; {cure}")]
pub struct BadRecipient {
    /// The problem.
    pub what: String,
    /// The hint.
    pub cure: String,
}

impl<'a> Recipient<'a> {
    /// Parses one entry of `notify_email` or of an owner's `email`.
    ///
    /// # Errors
    /// If the entry is neither an address nor a channel.
    pub fn parse(word: &'a str) -> Result<Self, BadRecipient> {
        let bad = |what, cure| Err(BadRecipient { what, cure });
        if let Some(name) = word.strip_prefix(CHANNEL) {
            let fits = |c: char| c.is_ascii_alphanumeric() || "_-".contains(c);
            if (1..=CHANNEL_MAX).contains(&name.chars().count()) && name.chars().all(fits) {
                return Ok(Self::Channel(name));
            }
            let cure = format!(
                "write {CHANNEL}NAME; a name is 1 to {CHANNEL_MAX} letters, digits, '_' or '-'"
            );
            return bad(format!("{word:?} names no channel"), cure);
        }
        let long = word.chars().count();
        if long > ADDRESS_MAX {
            let start: String = word.chars().take(40).collect();
            let what = format!("the address {start:?}... has {long} characters");
            return bad(what, format!("{ADDRESS_MAX} is the most"));
        }
        if word.parse::<lettre::Address>().is_err() {
            let what = format!("{word:?} is not an e-mail address");
            return bad(what, format!("write name@host.domain or {CHANNEL}NAME"));
        }
        Ok(Self::Address(word))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_and_channels_are_told_apart() {
        for (word, wanted) in [
            ("gl@bank.example", Ok(Recipient::Address("gl@bank.example"))),
            ("channel:finance-ops_2", Ok(Recipient::Channel("finance-ops_2"))),
            ("channel:", Err("\"channel:\" names no channel; write channel:NAME; a name is")),
            ("channel:a b", Err("\"channel:a b\" names no channel")),
            ("channel:群", Err("names no channel")),
            (
                "chanel:ops",
                Err("\"chanel:ops\" is not an e-mail address; write name@host.domain or"),
            ),
            ("nobody", Err("\"nobody\" is not an e-mail address")),
            ("", Err("\"\" is not an e-mail address")),
        ] {
            match (Recipient::parse(word), wanted) {
                (Ok(found), wanted) => assert_eq!(Ok(found), wanted),
                (Err(error), Err(part)) => assert!(error.to_string().contains(part), "{error}"),
                (Err(error), Ok(_)) => panic!("{word}: {error}"),
            }
        }
        let name = "n".repeat(CHANNEL_MAX);
        assert!(Recipient::parse(&format!("channel:{name}")).is_ok());
        assert!(Recipient::parse(&format!("channel:{name}x")).is_err());
        let part = "a".repeat(50);
        let host = format!("{part}.{part}.{part}.{part}");
        let long = |n: usize| format!("{}@{host}", "x".repeat(n - host.len() - 1));
        assert!(Recipient::parse(&long(ADDRESS_MAX)).is_ok());
        let error = Recipient::parse(&long(ADDRESS_MAX + 1)).expect_err("too long");
        assert!(error.to_string().ends_with("has 255 characters; 254 is the most"), "{error}");
    }
}
