//! Settings of channels, with their secrets, none of which is shown.

use crate::domain::job::secret::SharedSecret;
use secrecy::SecretString;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

/// All settings of channels and templates.
#[derive(Clone, Debug)]
pub struct NotifyOptions {
    /// How mails are sent; `None` when mail is off.
    pub mail: Option<MailOptions>,
    /// Chat bots and webhooks by the name after `channel:`.
    pub channels: BTreeMap<String, ChannelOptions>,
    /// A directory with a team's own templates.
    pub templates: Option<PathBuf>,
    /// Time limit of one message, from the first byte to the last answer.
    pub timeout: Duration,
    /// Time limit for connecting, TLS included.
    pub connect_timeout: Duration,
}

impl Default for NotifyOptions {
    fn default() -> Self {
        Self {
            mail: None,
            channels: BTreeMap::new(),
            templates: None,
            timeout: Duration::from_secs(60),
            connect_timeout: Duration::from_secs(10),
        }
    }
}

/// How mails are sent, and the sender address.
#[derive(Clone, Debug)]
pub struct MailOptions {
    /// `Procession <batch@bank.example>`, or the address alone.
    pub from: String,
    /// The address for replies, if not `from`.
    pub reply_to: Option<String>,
    /// Where they are sent.
    pub transport: MailTransport,
}

/// Where mails are sent.
#[derive(Clone, Debug)]
pub enum MailTransport {
    /// A server.
    Smtp(SmtpOptions),
    /// A directory; each mail is a file `MESSAGE_ID.eml` in it.
    File(PathBuf),
}

/// A mail server.
#[derive(Clone, Debug)]
pub struct SmtpOptions {
    /// Its name, for which its certificate must be valid.
    pub host: String,
    /// Its port; default 587, 465 with `Tls::Implicit`, 25 without TLS.
    pub port: Option<u16>,
    /// How the connection is protected.
    pub tls: Tls,
    /// A PEM file with certificates to trust in addition to the machine's own.
    pub ca_file: Option<PathBuf>,
    /// The login; `None` when the server accepts mails from everyone here.
    pub login: Option<Login>,
    /// The name in EHLO; default the host name.
    pub hello: Option<String>,
    /// Number of connections kept open between mails.
    pub idle: usize,
}

impl SmtpOptions {
    /// The default settings of a server.
    pub fn new(host: impl Into<String>) -> Self {
        Self {
            host: host.into(),
            port: None,
            tls: Tls::StartTls,
            ca_file: None,
            login: None,
            hello: None,
            idle: 2,
        }
    }
}

/// How the connection to a mail server is protected. Its certificate is always verified.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tls {
    /// Begins without TLS and must be upgraded before anything is sent.
    StartTls,
    /// TLS from the first byte.
    Implicit,
    /// None; only to this machine itself.
    None,
    /// None, to any machine; a password is never sent in this way.
    NoneAnywhere,
}

/// A login at a mail server.
#[derive(Clone, Debug)]
pub struct Login {
    /// The user.
    pub user: String,
    /// Its password; for XOAUTH2 the token.
    pub password: SharedSecret,
    /// The authentication method.
    pub auth: Auth,
}

/// The authentication method.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Auth {
    /// PLAIN, or LOGIN where the server has no PLAIN.
    Auto,
    /// PLAIN.
    Plain,
    /// LOGIN.
    Login,
    /// XOAUTH2, with a token in place of the password.
    Xoauth2,
}

/// A chat bot or webhook.
#[derive(Clone, Debug)]
pub struct ChannelOptions {
    /// `webhook`, `dingtalk`, `wecom`, `feishu` or `slack`.
    pub kind: String,
    /// Its URL, which is a secret: it allows everyone who knows it to write there.
    pub url: SecretString,
    /// The signing secret; WeCom and Slack have no signatures.
    pub secret: Option<SecretString>,
}

impl Tls {
    pub const ALL: [Self; 4] = [Self::StartTls, Self::Implicit, Self::None, Self::NoneAnywhere];

    /// Its name in settings.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::StartTls => "starttls",
            Self::Implicit => "tls",
            Self::None => "none",
            Self::NoneAnywhere => "none_anywhere",
        }
    }

    /// Parses a name.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|tls| tls.as_str() == word)
    }

    /// The default port.
    pub fn port(self) -> u16 {
        match self {
            Self::StartTls => 587,
            Self::Implicit => 465,
            Self::None | Self::NoneAnywhere => 25,
        }
    }
}

impl Auth {
    pub const ALL: [Self; 4] = [Self::Auto, Self::Plain, Self::Login, Self::Xoauth2];

    /// Its name in settings.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Plain => "plain",
            Self::Login => "login",
            Self::Xoauth2 => "xoauth2",
        }
    }

    /// Parses a name.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|auth| auth.as_str() == word)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_come_back_and_nothing_secret_is_shown() {
        assert!(Tls::ALL.iter().all(|tls| Tls::parse(tls.as_str()) == Some(*tls)));
        assert!(Auth::ALL.iter().all(|auth| Auth::parse(auth.as_str()) == Some(*auth)));
        let login = Login { user: "u".into(), password: "geheim".into(), auth: Auth::Auto };
        let url = "https://oapi.example/robot/send?access_token=geheim".into();
        let channel = ChannelOptions { kind: "dingtalk".into(), url, secret: None };
        let shown = format!("{login:?} {channel:?}");
        assert!(!shown.contains("geheim"), "{shown}");
    }
}
