//! `[notify]`: notifications and their channels.

use super::{BadConfig, Config, SecretSetting};
use crate::domain::job::secret::SharedSecret;
use crate::engine::outbox;
use crate::notify::{
    Auth, ChannelOptions, Login, MailOptions, MailTransport, NotifyOptions, SmtpOptions, Tls,
};
use crate::secret_store::secret_file::SecretFile;
use secrecy::{ExposeSecret as _, SecretString};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// `[notify]`
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Notify {
    /// Maximum number of notifications sent at once.
    pub connections: u32,
    /// Time limit of one send, in seconds.
    pub timeout_sec: u32,
    /// Time limit for connecting, in seconds.
    pub connect_timeout_sec: u32,
    /// Hours after which a notification is given up.
    pub give_up_hours: u32,
    /// Minimum interval of repeats in seconds; 0: no muting.
    pub mute_repeats_sec: u32,
    /// Number of notifications to one recipient above which they are combined.
    pub sum_up_over: u32,
    /// Time of day of the daily digest.
    pub digest_at: String,
    /// The time zone of `digest_at`.
    pub time_zone: String,
    /// en or zh.
    pub lang: String,
    /// Log lines at the end of a notification.
    pub log_lines: u32,
    /// URL of a page; empty: none.
    pub link: String,
    /// A directory; empty: none.
    pub templates: PathBuf,
    /// Addresses of operators.
    pub operators: Vec<String>,
    /// Language by address, or by `@domain`.
    pub langs: BTreeMap<String, String>,
    /// E-mail.
    pub mail: MailSettings,
    /// Chat bots and webhooks, by name.
    pub channels: BTreeMap<String, ChannelSettings>,
}

/// `[notify.mail]`
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MailSettings {
    /// off, smtp or file.
    pub transport: String,
    /// The sender address.
    pub from: String,
    /// The address for replies; empty: `from`.
    pub reply_to: String,
    /// The directory of `file`.
    pub folder: PathBuf,
    /// The server of `smtp`.
    pub host: String,
    /// Its port; 0: the default.
    pub port: u16,
    /// starttls, tls, none or none_anywhere.
    pub tls: String,
    /// A PEM file; empty: none.
    pub ca_file: PathBuf,
    /// The login name; empty: no login.
    pub user: String,
    /// auto, plain, login or xoauth2.
    pub auth: String,
    /// The file with the password; empty: the environment.
    pub password_file: PathBuf,
    /// A secret of `[secret_stores]`; empty: none.
    pub password_secret: SecretSetting,
    /// The name in EHLO; empty: the host name.
    pub hello: String,
}

/// `[notify.channels.NAME]`
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ChannelSettings {
    /// webhook, dingtalk, wecom, feishu or slack.
    #[serde(rename = "type")]
    pub kind: String,
    /// The file with its URL; empty: the environment.
    #[serde(default)]
    pub url_file: PathBuf,
    /// The file with its secret; empty: the environment.
    #[serde(default)]
    pub secret_file: PathBuf,
}

/// The environment variable with the password of the mail server.
const MAIL_PASSWORD: &str = "PROCESSION_MAIL_PASSWORD";
/// Kinds of channels.
const KINDS: [&str; 5] = ["webhook", "dingtalk", "wecom", "feishu", "slack"];

fn bad_setting(text: impl Into<String>) -> BadConfig {
    BadConfig(text.into())
}

fn given_path(path: &Path) -> Option<&Path> {
    Some(path).filter(|path| !path.as_os_str().is_empty())
}

/// The environment variable of a channel: `PROCESSION_CHANNEL_OPS`, `…_OPS_SECRET`.
fn channel_env(name: &str, what: &str) -> String {
    let upper = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' };
    format!("PROCESSION_CHANNEL_{}{what}", name.chars().map(upper).collect::<String>())
}

/// The first line of a file, or an environment variable; `None` when neither is set.
pub(super) fn secret(
    key: &str,
    file: &Path,
    variable: &str,
) -> Result<Option<SecretString>, BadConfig> {
    let text = match given_path(file) {
        Some(path) => {
            let file = SecretFile::read_file(path)
                .map_err(|error| bad_setting(format!("{key}: {error}")))?;
            Some(SecretString::from(file.first_line().expose_secret().trim()))
        }
        None => std::env::var(variable).ok().map(SecretString::from),
    };
    Ok(text.filter(|text| !text.expose_secret().is_empty()))
}

impl Notify {
    /// Refuses what is wrong independently of secrets.
    pub(super) fn check(&self) -> Result<(), BadConfig> {
        self.outbox()?;
        for (name, channel) in &self.channels {
            let fits = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
            if name.is_empty() || name.len() > 40 || !name.chars().all(fits) {
                let sentence = "use 1 to 40 letters, digits, '_' or '-'";
                return Err(bad_setting(format!("notify.channels has {name:?}; {sentence}")));
            }
            if !KINDS.contains(&channel.kind.as_str()) {
                let (kind, kinds) = (&channel.kind, KINDS.join(", "));
                return Err(bad_setting(format!(
                    "notify.channels.{name}.type is {kind:?}; the types are {kinds}"
                )));
            }
        }
        self.mail.check()
    }

    /// Whether any channel is configured.
    pub fn is_on(&self) -> bool {
        self.mail.transport != "off" || !self.channels.is_empty()
    }

    /// The settings of the outbox sender.
    fn outbox(&self) -> Result<outbox::OutboxOptions, BadConfig> {
        let lang = |key: &str, word: &str| {
            outbox::Lang::from_code(word).ok_or_else(|| {
                bad_setting(format!("{key} is {word:?}; the languages are en and zh"))
            })
        };
        for (key, n) in [
            ("notify.connections", self.connections),
            ("notify.timeout_sec", self.timeout_sec),
            ("notify.connect_timeout_sec", self.connect_timeout_sec),
            ("notify.give_up_hours", self.give_up_hours),
            ("notify.sum_up_over", self.sum_up_over),
        ] {
            if n == 0 {
                return Err(bad_setting(format!("{key} is 0; it must be 1 or more")));
            }
        }
        if self.connections > 64 {
            let n = self.connections;
            return Err(bad_setting(format!("notify.connections is {n}; 64 is the most")));
        }
        let at = outbox::time_of_day(&self.digest_at).ok_or_else(|| {
            bad_setting(format!("notify.digest_at is {:?}; write HH:MM", self.digest_at))
        })?;
        let zone = self.time_zone.parse();
        let zone = zone.map_err(|_| {
            let zone = &self.time_zone;
            bad_setting(format!("notify.time_zone is {zone:?}; write one such as Asia/Shanghai"))
        })?;
        let mut langs = BTreeMap::new();
        for (whose, word) in &self.langs {
            langs.insert(whose.clone(), lang(&format!("notify.langs.{whose:?}"), word)?);
        }
        for to in &self.operators {
            outbox::Recipient::parse(to)
                .map_err(|fault| bad_setting(format!("notify.operators: {fault}")))?;
        }
        let host = self.mail.from.rsplit('@').next().unwrap_or_default();
        let host = host.trim_end_matches('>').trim();
        Ok(outbox::OutboxOptions {
            connections: self.connections,
            timeout_ms: i64::from(self.timeout_sec) * 1_000,
            give_up_ms: i64::from(self.give_up_hours) * 3_600_000,
            mute_ms: i64::from(self.mute_repeats_sec) * 1_000,
            sum_up_over: usize::try_from(self.sum_up_over).unwrap_or(usize::MAX),
            digest_at: at,
            zone,
            lang: lang("notify.lang", &self.lang)?,
            langs,
            id_host: if host.is_empty() { "procession" } else { host }.to_owned(),
            log_lines: self.log_lines,
            links: Some(self.link.clone()).filter(|link| !link.is_empty()).into_iter().collect(),
            operators: self.operators.clone(),
        })
    }

    fn channels(&self) -> Result<BTreeMap<String, ChannelOptions>, BadConfig> {
        let mut all = BTreeMap::new();
        for (name, channel) in &self.channels {
            let (env, key) = (channel_env(name, ""), format!("notify.channels.{name}"));
            let url = secret(&key, &channel.url_file, &env)?.ok_or_else(|| {
                bad_setting(format!(
                    "{key} has no URL; put it into {env}, or into a file and name url_file"
                ))
            })?;
            let secret = secret(&key, &channel.secret_file, &channel_env(name, "_SECRET"))?;
            all.insert(name.clone(), ChannelOptions { kind: channel.kind.clone(), url, secret });
        }
        Ok(all)
    }
}

impl MailSettings {
    fn check(&self) -> Result<(), BadConfig> {
        let (transport, host) = (&self.transport, &self.host);
        match transport.as_str() {
            "off" => return Ok(()),
            "smtp" if host.is_empty() => {
                return Err(bad_setting("notify.mail.host is empty; name the mail server"));
            }
            "smtp" | "file" => {}
            _ => {
                let sentence = "write smtp, file or off";
                return Err(bad_setting(format!(
                    "notify.mail.transport is {transport:?}; {sentence}"
                )));
            }
        }
        if self.from.parse::<lettre::message::Mailbox>().is_err() {
            let (from, sentence) =
                (&self.from, "write batch@bank.example or Batch <batch@bank.example>");
            return Err(bad_setting(format!("notify.mail.from is {from:?}; {sentence}")));
        }
        if Tls::parse(&self.tls).is_none() {
            let sentence = "write starttls, tls, none or none_anywhere";
            return Err(bad_setting(format!("notify.mail.tls is {:?}; {sentence}", self.tls)));
        }
        if Auth::parse(&self.auth).is_none() {
            let sentence = "write auto, plain, login or xoauth2";
            return Err(bad_setting(format!("notify.mail.auth is {:?}; {sentence}", self.auth)));
        }
        Ok(())
    }

    fn options(&self) -> Result<Option<MailOptions>, BadConfig> {
        self.check()?;
        let transport = match self.transport.as_str() {
            "off" => return Ok(None),
            "file" => MailTransport::File(self.folder.clone()),
            _ => MailTransport::Smtp(self.smtp_options()?),
        };
        Ok(Some(MailOptions {
            from: self.from.clone(),
            reply_to: Some(self.reply_to.clone()).filter(|to| !to.is_empty()),
            transport,
        }))
    }

    fn smtp_options(&self) -> Result<SmtpOptions, BadConfig> {
        let login = match self.user.as_str() {
            "" => None,
            user => {
                let password = match self.password_secret.require("notify.mail.password_secret")? {
                    Some(shared) => Some(shared),
                    None => {
                        secret("notify.mail.password_file", &self.password_file, MAIL_PASSWORD)?
                            .map(SharedSecret::new)
                    }
                };
                let password = password.ok_or_else(|| {
                    bad_setting(format!(
                        "notify.mail.user is {user} and there is no password; put it into \
                         {MAIL_PASSWORD}, or into a file and name password_file"
                    ))
                })?;
                let auth = Auth::parse(&self.auth).unwrap_or(Auth::Auto);
                Some(Login { user: user.to_owned(), password, auth })
            }
        };
        Ok(SmtpOptions {
            port: Some(self.port).filter(|port| *port > 0),
            tls: Tls::parse(&self.tls).unwrap_or(Tls::StartTls),
            ca_file: given_path(&self.ca_file).map(Path::to_path_buf),
            login,
            hello: Some(self.hello.clone()).filter(|name| !name.is_empty()),
            ..SmtpOptions::new(self.host.clone())
        })
    }
}

impl Config {
    /// Settings of the outbox sender.
    pub fn outbox(&self) -> Result<outbox::OutboxOptions, BadConfig> {
        let mut options = self.notify.outbox()?;
        if let (true, Some(console)) = (options.links.is_empty(), self.http.doorway()?.origin) {
            let pages =
                ["/#/batches/{group}/{batch_no}?job={job}", "/#/batches/{group}/{batch_no}", "/"];
            options.links = pages.map(|page| format!("{console}{page}")).to_vec();
        }
        Ok(options)
    }

    /// Settings of the channels, secrets included; the error names a missing one.
    pub fn carriers(&self) -> Result<NotifyOptions, BadConfig> {
        Ok(NotifyOptions {
            mail: self.notify.mail.options()?,
            channels: self.notify.channels()?,
            templates: given_path(&self.notify.templates).map(Path::to_path_buf),
            timeout: Duration::from_secs(self.notify.timeout_sec.into()),
            connect_timeout: Duration::from_secs(self.notify.connect_timeout_sec.into()),
        })
    }
}
