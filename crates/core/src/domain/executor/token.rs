//! Decides which access tokens may be shared with executors.

/// Minimum length in characters.
pub const SHORTEST: usize = 16;
/// Maximum length, given by XXL-JOB's column.
const LONGEST: usize = 200;

/// Tokens from manuals and samples, compared in any case: they are publicly known.
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

/// Why a token is refused; the text never contains the token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadToken {
    /// Too short, so it can be guessed.
    #[error("the token has fewer than 16 characters; use 16 to 200")]
    Short,
    /// Not possible in an HTTP header.
    #[error(
        "the token has more than 200 characters, or one that no HTTP header takes; use 16 to 200 visible ASCII characters"
    )]
    Odd,
    /// Publicly known.
    #[error("the token is one that everybody knows")]
    Known,
}

/// Validates a token.
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
