//! notify: sends one message to one recipient. In: a message and an address. Out: sent, or why not.
//! May name: domain, outbound. Never: the outbox, a database, a clock, a task of its own, a retry.
//! Invariant: no error text and no log line contains a password, or the URL of a chat bot. A new
//! kind of channel is one file here and one line in `CHANNELS`.

mod chat_message;
mod dingtalk;
mod email;
mod feishu;
mod folder;
mod http;
mod mime;
mod options;
mod sample;
mod sign;
mod slack;
mod smtp;
mod template;
mod template_fields;
mod webhook;
mod wecom;

pub use options::{Auth, ChannelOptions, Login, MailOptions, MailTransport};
pub use options::{NotifyOptions, SmtpOptions, Tls};
pub use template::{BadTemplate, MessageTemplates, Rendered};

use crate::domain::notification::Notification;
use crate::domain::text::lang::Lang;
use crate::domain::time::Millis;
use futures_util::future::BoxFuture;
use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

/// Why notifications to addresses wait while no mail is configured.
pub const NO_MAIL: &str = "no mail server is configured; add [notify.mail]";
/// Prefix of a recipient that is no e-mail address: `channel:ops`.
pub const CHANNEL_PREFIX: &str = "channel:";

/// A kind of channel: its name, and its constructor.
struct ChannelKind {
    word: &'static str,
    open: fn(&http::ChannelTarget) -> Box<dyn Channel>,
}

/// Every kind of channel besides e-mail, in the order of the documentation.
const CHANNELS: &[ChannelKind] = &[
    ChannelKind { word: webhook::WORD, open: webhook::open_channel },
    ChannelKind { word: dingtalk::WORD, open: dingtalk::open_channel },
    ChannelKind { word: wecom::WORD, open: wecom::open_channel },
    ChannelKind { word: feishu::WORD, open: feishu::open_channel },
    ChannelKind { word: slack::WORD, open: slack::open_channel },
];

/// One rendered message; the recipient is given when it is sent.
#[derive(Clone, Debug)]
pub struct Message {
    /// `procession-17-ab12@host`, without brackets: the same for every attempt, so that a duplicate
    /// can be recognised.
    pub message_id: String,
    /// The subject line.
    pub subject: String,
    /// The plain text.
    pub text: String,
    /// The same as HTML, for e-mail.
    pub html: String,
    /// The language of all three.
    pub lang: Lang,
    /// The notification they were rendered from; chat bots build their messages from it.
    pub letter: Notification,
    /// When it was written: the date of the mail.
    pub at: Millis,
    /// When this attempt begins. Signatures are made for it, and are valid for minutes.
    pub now: Millis,
}

/// Why a message was not sent; displayed, it is the reason.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotSent {
    /// A retry may succeed.
    #[error("{0}")]
    Later(String),
    /// No retry would succeed.
    #[error("{0}")]
    Never(String),
    /// No channel is configured for it; it may wait until one is.
    #[error("{0}")]
    NotConfigured(String),
}

/// A channel that sends messages.
pub trait Channel: Send + Sync {
    /// Its name in settings.
    fn kind(&self) -> &'static str;

    /// Sends one message to one recipient; `to` is used by e-mail only.
    fn send_message<'a>(
        &'a self,
        to: &'a str,
        message: &'a Message,
    ) -> BoxFuture<'a, Result<(), NotSent>>;
}

/// Invalid settings of a channel; displayed, the fault with a hint.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct BadChannel(String);

/// All configured channels.
pub struct Carriers {
    mail: Option<email::Email>,
    channels: BTreeMap<String, Box<dyn Channel>>,
    timeout: Duration,
}

impl Carriers {
    /// Builds a channel from each setting. Reads certificates and contacts no server.
    pub fn from_options(options: &NotifyOptions) -> Result<Self, BadChannel> {
        let mail =
            options.mail.as_ref().map(|mail| email::open_channel(mail, options.connect_timeout));
        let mail = mail.transpose().map_err(|fault| BadChannel(format!("notify.mail: {fault}")))?;
        let mut channels = BTreeMap::new();
        for (name, channel) in &options.channels {
            let opened = open_channel(channel, options.connect_timeout);
            let opened =
                opened.map_err(|fault| BadChannel(format!("notify.channels.{name}: {fault}")))?;
            channels.insert(name.clone(), opened);
        }
        Ok(Self { mail, channels, timeout: options.timeout })
    }

    /// The kind of the channel for `recipient`, such as `email`; `None` when there is none.
    pub fn kind_of(&self, recipient: &str) -> Option<&'static str> {
        match recipient.strip_prefix(CHANNEL_PREFIX) {
            Some(name) => self.channels.get(name).map(|channel| channel.kind()),
            None => self.mail.as_ref().map(Channel::kind),
        }
    }

    /// The names that a recipient may have after `channel:`.
    pub fn channels(&self) -> impl Iterator<Item = &str> {
        self.channels.keys().map(String::as_str)
    }

    /// Sends a message to an e-mail address or to `channel:NAME`. Returns when the server has
    /// accepted it, refused it, or exceeded the time limit.
    pub async fn send_message(&self, recipient: &str, message: &Message) -> Result<(), NotSent> {
        let channel: &dyn Channel = match recipient.strip_prefix(CHANNEL_PREFIX) {
            Some(name) => match self.channels.get(name) {
                Some(channel) => &**channel,
                None => return Err(NotSent::Never(unknown(name))),
            },
            None => match &self.mail {
                Some(mail) => mail,
                None => {
                    return Err(NotSent::NotConfigured(NO_MAIL.to_owned()));
                }
            },
        };
        // A message that is cut off here may have arrived; the next attempt has the same id.
        let sent =
            tokio::time::timeout(self.timeout, channel.send_message(recipient, message)).await;
        sent.unwrap_or_else(|_| {
            let (kind, seconds) = (channel.kind(), self.timeout.as_secs_f64());
            Err(NotSent::Later(format!("{kind}: no answer within {seconds} s")))
        })
    }
}

impl fmt::Debug for Carriers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let channels = self.channels.iter().map(|(name, channel)| (name, channel.kind()));
        let channels: BTreeMap<_, _> = channels.collect();
        f.debug_struct("Carriers").field("channels", &channels).finish_non_exhaustive()
    }
}

fn unknown(name: &str) -> String {
    format!(
        "no channel {name} is configured; add [notify.channels.{name}], or take {CHANNEL_PREFIX}{name} \
         out of the recipients"
    )
}

fn open_channel(options: &ChannelOptions, timeout: Duration) -> Result<Box<dyn Channel>, String> {
    let Some(kind) = CHANNELS.iter().find(|kind| kind.word == options.kind) else {
        let words: Vec<&str> = CHANNELS.iter().map(|kind| kind.word).collect();
        return Err(format!("{:?} is no kind of channel; say {}", options.kind, words.join(", ")));
    };
    let target = http::ChannelTarget::new(options, timeout)?;
    Ok((kind.open)(&target))
}
