//! What is set about channels, with every secret at hand and none of them shown.

use crate::domain::job::secret::SharedSecret;
use secrecy::SecretString;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

/// Everything that carriers and templates are made of.
#[derive(Clone, Debug)]
pub struct NotifyOptions {
    /// How mails go; nothing when no mail is to go.
    pub mail: Option<MailOptions>,
    /// Robots and webhooks by the name that recipients have behind `channel:`.
    pub channels: BTreeMap<String, ChannelOptions>,
    /// A folder with a team's own templates.
    pub templates: Option<PathBuf>,
    /// How long one message may take, from the first byte to the last answer.
    pub timeout: Duration,
    /// How long connecting may take, TLS included.
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

/// How mails go and whom they are from.
#[derive(Clone, Debug)]
pub struct MailOptions {
    /// `Procession <batch@bank.example>`, or the address alone.
    pub from: String,
    /// Where answers go, when not to `from`.
    pub reply_to: Option<String>,
    /// Whom or what they are given to.
    pub transport: MailTransport,
}

/// Whom or what mails are given to.
#[derive(Clone, Debug)]
pub enum MailTransport {
    /// A server.
    Smtp(SmtpOptions),
    /// A folder; each mail is a file `MESSAGE_ID.eml` in it.
    File(PathBuf),
}

/// A mail server.
#[derive(Clone, Debug)]
pub struct SmtpOptions {
    /// Its name, for which its certificate must be good.
    pub host: String,
    /// Its port; by default 587, 465 with `Tls::Implicit`, 25 without TLS.
    pub port: Option<u16>,
    /// How the way there is protected.
    pub tls: Tls,
    /// A PEM file with certificates to trust beside the machine's own.
    pub ca_file: Option<PathBuf>,
    /// Who we are to the server; nothing when it takes mails from anybody here.
    pub login: Option<Login>,
    /// What we call ourselves in EHLO; the machine's name when nothing is said.
    pub hello: Option<String>,
    /// How many connections are kept open between mails.
    pub idle: usize,
}

impl SmtpOptions {
    /// The settings of a server of which only the name is known.
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

/// How the way to a mail server is protected. Its certificate is always checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tls {
    /// Begins in clear and must go over to TLS before anything is said.
    StartTls,
    /// TLS from the first byte.
    Implicit,
    /// Not at all; only to this machine itself.
    None,
    /// Not at all, to any machine; a password is never sent that way.
    NoneAnywhere,
}

/// Who we are to a mail server.
#[derive(Clone, Debug)]
pub struct Login {
    /// The user.
    pub user: String,
    /// Its password; for XOAUTH2 the token.
    pub password: SharedSecret,
    /// How it is said.
    pub auth: Auth,
}

/// How a password is said.
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

/// A robot or webhook.
#[derive(Clone, Debug)]
pub struct ChannelOptions {
    /// `webhook`, `dingtalk`, `wecom`, `feishu` or `slack`.
    pub kind: String,
    /// Where it listens; whoever knows it can write there, so it is a secret.
    pub url: SecretString,
    /// What messages are signed with; WeCom and Slack know no signatures.
    pub secret: Option<SecretString>,
}

impl Tls {
    /// Every way.
    pub const ALL: [Self; 4] = [Self::StartTls, Self::Implicit, Self::None, Self::NoneAnywhere];

    /// Its word in settings.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::StartTls => "starttls",
            Self::Implicit => "tls",
            Self::None => "none",
            Self::NoneAnywhere => "none_anywhere",
        }
    }

    /// The way that a word means.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|tls| tls.as_str() == word)
    }

    /// The port of servers that are reached so.
    pub fn port(self) -> u16 {
        match self {
            Self::StartTls => 587,
            Self::Implicit => 465,
            Self::None | Self::NoneAnywhere => 25,
        }
    }
}

impl Auth {
    /// Every way.
    pub const ALL: [Self; 4] = [Self::Auto, Self::Plain, Self::Login, Self::Xoauth2];

    /// Its word in settings.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Plain => "plain",
            Self::Login => "login",
            Self::Xoauth2 => "xoauth2",
        }
    }

    /// The way that a word means.
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
