//! E-mail: one mail to one address, through a server or into a directory.

use crate::notify::folder::MailFolder;
use crate::notify::options::{MailOptions, MailTransport};
use crate::notify::smtp::Smtp;
use crate::notify::{Channel, Message, NotSent, mime};
use futures_util::future::BoxFuture;
use lettre::Address;
use lettre::message::Mailbox;
use std::time::Duration;

const WORD: &str = "email";

/// The configured e-mail channel.
pub(super) struct Email {
    from: Mailbox,
    reply_to: Option<Mailbox>,
    way: SmtpSecurity,
}

enum SmtpSecurity {
    Smtp(Smtp),
    Folder(MailFolder),
}

/// Checks the settings without contacting a server.
pub(super) fn open_channel(options: &MailOptions, timeout: Duration) -> Result<Email, String> {
    let mailbox = |what: &str, text: &str| {
        let parsed = text.parse::<Mailbox>();
        parsed.map_err(|error| format!("{what} {text:?} is no e-mail address: {error}"))
    };
    let way = match &options.transport {
        MailTransport::Smtp(server) => SmtpSecurity::Smtp(Smtp::new(server, timeout)?),
        MailTransport::File(path) => SmtpSecurity::Folder(MailFolder(path.clone())),
    };
    let reply_to = options.reply_to.as_deref().map(|text| mailbox("reply_to", text)).transpose()?;
    Ok(Email { from: mailbox("from", &options.from)?, reply_to, way })
}

impl Channel for Email {
    fn kind(&self) -> &'static str {
        WORD
    }

    fn send_message<'a>(
        &'a self,
        to: &'a str,
        message: &'a Message,
    ) -> BoxFuture<'a, Result<(), NotSent>> {
        Box::pin(async move {
            let to = to
                .parse::<Address>()
                .map_err(|error| NotSent::Never(format!("{to:?} is no e-mail address: {error}")))?;
            let mail = mime::build_mail(&self.from, self.reply_to.as_ref(), to, message);
            let mail = mail.map_err(|error| {
                NotSent::Never(format!("no mail can be made of this message: {error}"))
            })?;
            match &self.way {
                SmtpSecurity::Smtp(server) => {
                    server.send_mail(mail.envelope(), &mail.formatted(), message.now).await
                }
                SmtpSecurity::Folder(folder) => {
                    folder.write(&message.message_id, &mail.formatted()).await
                }
            }
        })
    }
}
