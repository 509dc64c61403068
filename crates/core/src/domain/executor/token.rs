//! Which tokens executors may share with us.

/// Fewest characters.
pub const SHORTEST: usize = 16;
/// Most; XXL-JOB's own column takes no more.
const LONGEST: usize = 200;

/// Words that stand in manuals and samples, so that everybody knows them; in any case.
const KNOWN: [&str; 8] = [
    "default_token",
    "xxl-job-access-token",
    "xxl-job-accesstoken",
    "xxl_job_access_token",
    "xxl-job-token-default",
    "your-access-token",
    "defaultaccesstoken",
    "changemechangeme",
];

/// A token that is not taken; nothing of it is in the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadToken {
    /// Anybody can guess it.
    #[error("the token has fewer than 16 characters; use 16 to 200")]
    Short,
    /// It fits in no header.
    #[error(
        "the token has more than 200 characters, or one that no HTTP header takes; use 16 to 200 visible ASCII characters"
    )]
    Odd,
    /// Everybody knows it.
    #[error("the token is one that everybody knows")]
    Known,
}

/// Whether a token can be one.
pub fn validate_token(token: &str) -> Result<(), BadToken> {
    if token.len() < SHORTEST {
        return Err(BadToken::Short);
    }
    if token.len() > LONGEST || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(BadToken::Odd);
    }
    let small = token.to_ascii_lowercase();
    let few = small.bytes().collect::<std::collections::BTreeSet<u8>>().len() < 5;
    match few || KNOWN.contains(&small.as_str()) {
        true => Err(BadToken::Known),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_that_can_be_guessed_is_none() {
        for (token, is) in [
            ("", Err(BadToken::Short)),
            ("default_token", Err(BadToken::Short)),
            ("fifteen-letters", Err(BadToken::Short)),
            ("XXL-JOB-access-token", Err(BadToken::Known)),
            ("aaaaaaaaaaaaaaaaaaaa", Err(BadToken::Known)),
            ("1212121212121212", Err(BadToken::Known)),
            ("a token with blanks", Err(BadToken::Odd)),
            ("令牌令牌令牌令牌令牌", Err(BadToken::Odd)),
            ("sixteen-letters!", Ok(())),
        ] {
            assert_eq!(validate_token(token), is, "{token}");
        }
        assert_eq!(validate_token(&"ab3$x".repeat(40)), Ok(()));
        assert_eq!(validate_token(&"ab3$x".repeat(41)), Err(BadToken::Odd));
    }
}
