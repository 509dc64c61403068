//! A mail server: a few pooled connections, and the meaning of its replies.
//!
//! lettre's own transport is not used: its pool starts tasks, and it does not distinguish a server
//! that refuses us from one that refuses a mail. The first must not park every mail, the second
//! must.

use crate::domain::text::truncate_text;
use crate::domain::time::Millis;
use crate::notify::NotSent;
use crate::notify::options::{Auth, Login, SmtpOptions, Tls};
use lettre::Address;
use lettre::address::Envelope;
use lettre::transport::smtp::Error;
use lettre::transport::smtp::authentication::{Credentials, Mechanism};
use lettre::transport::smtp::client::{AsyncSmtpConnection, Certificate, TlsParameters};
use lettre::transport::smtp::commands::{Data, Mail, Rcpt};
use lettre::transport::smtp::extension::{ClientId, Extension, MailBodyParameter, MailParameter};
use secrecy::ExposeSecret;
use std::error::Error as _;
use std::net::IpAddr;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// How long a connection may wait for the next mail, in milliseconds; servers close theirs after
/// some minutes.
const IDLE_MS: i64 = 30_000;
/// Time limit for the check of an idle connection.
const ALIVE: Duration = Duration::from_secs(5);
/// Replies to a mail that concern our login: missing, too weak, wrong, or without TLS.
const ABOUT_US: [&str; 4] = ["530", "534", "535", "538"];

/// The configured mail server.
pub(super) struct Smtp {
    host: String,
    port: u16,
    tls: Tls,
    parameters: Option<TlsParameters>,
    hello: ClientId,
    login: Option<Login>,
    timeout: Duration,
    idle_max: usize,
    idle: Mutex<Vec<IdleSmtpConnection>>,
}

struct IdleSmtpConnection {
    connection: AsyncSmtpConnection,
    since: Millis,
}

impl Smtp {
    /// Checks the settings and reads the certificates.
    pub(super) fn new(options: &SmtpOptions, timeout: Duration) -> Result<Self, String> {
        let host = options.host.trim().to_owned();
        if host.is_empty() {
            return Err("host is empty; name the mail server".to_owned());
        }
        if options.hello.as_ref().is_some_and(|name| !name.bytes().all(|b| b.is_ascii_graphic())) {
            return Err("hello holds signs that no name of a machine has".to_owned());
        }
        let is_away = !is_here(&host);
        if is_away && options.tls == Tls::None {
            return Err(format!(
                "tls = \"none\" sends mails in clear, and {host} is not this machine; say \
                 \"starttls\" or \"tls\", or \"none_anywhere\" if that is meant"
            ));
        }
        if is_away && options.tls == Tls::NoneAnywhere && options.login.is_some() {
            return Err(format!("a password is not sent in clear to {host}; use TLS, or no user"));
        }
        let parameters = match options.tls {
            Tls::StartTls | Tls::Implicit => Some(parameters(&host, options.ca_file.as_deref())?),
            Tls::None | Tls::NoneAnywhere => None,
        };
        Ok(Self {
            port: options.port.unwrap_or(options.tls.port()),
            tls: options.tls,
            parameters,
            hello: options.hello.clone().map_or_else(ClientId::default, ClientId::Domain),
            login: options.login.clone(),
            timeout,
            idle_max: options.idle,
            idle: Mutex::default(),
            host,
        })
    }

    /// Sends one mail. The server has accepted it when this returns.
    pub(super) async fn send_mail(
        &self,
        envelope: &Envelope,
        mail: &[u8],
        now: Millis,
    ) -> Result<(), NotSent> {
        let mut connection = match self.waiting(now).await {
            Some(connection) => connection,
            None => self.connect().await.map_err(NotSent::Later)?,
        };
        // A connection that is dropped in the middle, by a timeout, is never reused.
        let given = self.transmit_mail(&mut connection, envelope, mail).await;
        match given {
            Ok(()) => self.store_idle(connection, now),
            Err(_) => connection.abort().await,
        }
        given
    }

    /// Sends the commands of one mail, one by one, because the first concerns us and the others the
    /// mail.
    async fn transmit_mail(
        &self,
        connection: &mut AsyncSmtpConnection,
        envelope: &Envelope,
        mail: &[u8],
    ) -> Result<(), NotSent> {
        let mut options = Vec::new();
        let is_ascii = |address: &Address| AsRef::<str>::as_ref(address).is_ascii();
        if !envelope.to().iter().chain(envelope.from()).all(is_ascii) {
            if !connection.server_info().supports_feature(Extension::SmtpUtfEight) {
                let message = "takes no address with other letters than ASCII (SMTPUTF8)";
                return Err(NotSent::Never(format!("email: {} {message}", self.host)));
            }
            options.push(MailParameter::SmtpUtfEight);
            options.push(MailParameter::Body(MailBodyParameter::EightBitMime));
        }
        let from = connection.command(Mail::new(envelope.from().cloned(), options)).await;
        from.map_err(|error| match self.refused(&error) {
            // Many servers accept mails only with the address of the login.
            NotSent::Never(message) => NotSent::Later(format!("{message}; look at from and user")),
            passing => passing,
        })?;
        for to in envelope.to() {
            let taken = connection.command(Rcpt::new(to.clone(), Vec::new())).await;
            taken.map_err(|error| self.refused(&error))?;
        }
        connection.command(Data).await.map_err(|error| self.refused(&error))?;
        connection.message(mail).await.map_err(|error| self.refused(&error))?;
        Ok(())
    }

    /// An idle connection that still answers.
    async fn waiting(&self, now: Millis) -> Option<AsyncSmtpConnection> {
        loop {
            let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
            let IdleSmtpConnection { mut connection, since } = idle?;
            let is_fresh = (0..IDLE_MS).contains(&now.since(since));
            let alive = tokio::time::timeout(ALIVE, connection.test_connected());
            if is_fresh && alive.await.unwrap_or(false) {
                return Some(connection);
            }
        }
    }

    fn store_idle(&self, connection: AsyncSmtpConnection, since: Millis) {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() < self.idle_max {
            idle.push(IdleSmtpConnection { connection, since });
        }
    }

    /// A connection ready for mails. An error here concerns us and not a mail.
    async fn connect(&self) -> Result<AsyncSmtpConnection, String> {
        let (host, port) = (self.host.as_str(), self.port);
        let at_once = self.parameters.clone().filter(|_| self.tls == Tls::Implicit);
        let connected = AsyncSmtpConnection::connect_tokio1(
            (host, port),
            Some(self.timeout),
            &self.hello,
            at_once,
            None,
        );
        let failed = |what: &str, error: &Error| {
            format!("email: {what} {host}:{port}: {}{}", words(error), error_hint(error))
        };
        let mut connection = connected.await.map_err(|e| failed("cannot connect to", &e))?;
        if let Some(parameters) = self.parameters.clone().filter(|_| self.tls == Tls::StartTls) {
            if !connection.can_starttls() {
                connection.abort().await;
                return Err(format!(
                    "email: {host}:{port} offers no STARTTLS, so nothing was sent; if it speaks \
                     TLS from the first byte, say tls = \"tls\""
                ));
            }
            let upgraded = connection.starttls(parameters, &self.hello).await;
            upgraded.map_err(|error| failed("no TLS with", &error))?;
        }
        if let Some(login) = &self.login {
            // Each time, because the password may have been replaced.
            let (credentials, mechanisms) = credentials(login);
            let welcome = connection.auth(&mechanisms, &credentials).await;
            welcome.map_err(|error| failed("cannot log in to", &error) + &login_hint(&error))?;
        }
        Ok(connection)
    }

    fn refused(&self, error: &Error) -> NotSent {
        let message = |what: &str| format!("email: {} {what}: {}", self.host, words(error));
        let Some(code) = error.status().map(|code| code.to_string()) else {
            return NotSent::Later(message("was lost before it had taken the mail"));
        };
        if error.is_permanent() && !ABOUT_US.contains(&code.as_str()) {
            return NotSent::Never(message("refused the mail"));
        }
        NotSent::Later(message("does not take the mail now"))
    }
}

/// Whether a mail to `host` stays on this machine.
fn is_here(host: &str) -> bool {
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

fn parameters(host: &str, ca_file: Option<&Path>) -> Result<TlsParameters, String> {
    let mut builder = TlsParameters::builder(host.to_owned());
    if let Some(path) = ca_file {
        let shown = path.display();
        let pem = std::fs::read(path).map_err(|e| format!("cannot read ca_file {shown}: {e}"))?;
        if !pem.windows(27).any(|part| part == b"-----BEGIN CERTIFICATE-----") {
            return Err(format!("ca_file {shown} holds no certificate in PEM"));
        }
        let certificate = Certificate::from_pem(&pem);
        let certificate = certificate.map_err(|e| format!("ca_file {shown}: {}", words(&e)))?;
        builder = builder.add_root_certificate(certificate);
    }
    builder.build().map_err(|error| format!("cannot prepare TLS: {}", words(&error)))
}

fn credentials(login: &Login) -> (Credentials, Vec<Mechanism>) {
    let password = login.password.get().expose_secret().to_owned();
    let mechanisms = match login.auth {
        Auth::Auto => vec![Mechanism::Plain, Mechanism::Login],
        Auth::Plain => vec![Mechanism::Plain],
        Auth::Login => vec![Mechanism::Login],
        Auth::Xoauth2 => vec![Mechanism::Xoauth2],
    };
    (Credentials::new(login.user.clone(), password), mechanisms)
}

/// `550 no such user`, or the local error, on one line.
fn words(error: &Error) -> String {
    let mut words = error.status().map(|code| code.to_string()).unwrap_or_default();
    let mut cause = error.source();
    while let Some(error) = cause {
        let message = error.to_string();
        // Some errors include their cause themselves.
        if !words.contains(&message) {
            words = format!("{words} {message}");
        }
        cause = error.source();
    }
    if words.trim().is_empty() {
        words = error.to_string();
    }
    truncate_text(&words.split_whitespace().collect::<Vec<_>>().join(" "), 300)
}

fn error_hint(error: &Error) -> &'static str {
    let message = words(error);
    if message.contains("UnknownIssuer") {
        return "; if its authority is the bank's own, name that certificate in ca_file";
    }
    if message.contains("not valid for name") {
        return "; its certificate is for another name: say that name in host";
    }
    if message.contains("InvalidContentType") || message.contains("InvalidMessage") {
        return "; it does not speak TLS from the first byte: say tls = \"starttls\"";
    }
    ""
}

fn login_hint(error: &Error) -> String {
    if error.is_permanent() {
        return "; look at user and password".to_owned();
    }
    let message = words(error);
    if message.contains("No compatible") {
        return "; say in auth what it offers".to_owned();
    }
    // With XOAUTH2 a server refuses by sending a challenge.
    if message.contains("does not expect a challenge") {
        return "; the token was not accepted".to_owned();
    }
    String::new()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(change: impl Fn(&mut SmtpOptions)) -> Option<String> {
        let mut options = SmtpOptions::new("mail.bank.example");
        change(&mut options);
        Smtp::new(&options, ALIVE).err()
    }

    #[test]
    fn nothing_goes_out_in_clear_by_mistake() {
        let login =
            || Some(Login { user: "u".into(), password: "geheim".into(), auth: Auth::Auto });
        assert_eq!(fault(|_| ()), None);
        assert!(fault(|o| o.tls = Tls::None).expect("a fault").contains("is not this machine"));
        assert_eq!(fault(|o| (o.tls, o.host) = (Tls::None, "127.0.0.1".to_owned())), None);
        assert_eq!(fault(|o| o.tls = Tls::NoneAnywhere), None);
        let message = fault(|o| (o.tls, o.login) = (Tls::NoneAnywhere, login())).expect("a fault");
        assert!(message.contains("not sent in clear") && !message.contains("geheim"), "{message}");
        assert!(fault(|o| o.hello = Some("a\r\nMAIL".to_owned())).is_some());
        let message = fault(|o| o.ca_file = Some("/no/such.pem".into())).expect("a fault");
        assert!(message.contains("cannot read ca_file /no/such.pem"), "{message}");
        let message = fault(|o| o.ca_file = Some("Cargo.toml".into())).expect("a fault");
        assert!(message.contains("holds no certificate"), "{message}");
    }

    #[test]
    fn ports_follow_the_way() {
        let port = |tls, port| {
            let options = SmtpOptions { tls, port, ..SmtpOptions::new("localhost") };
            Smtp::new(&options, ALIVE).map(|smtp| smtp.port).expect("a server")
        };
        assert_eq!(port(Tls::StartTls, None), 587);
        assert_eq!(port(Tls::Implicit, None), 465);
        assert_eq!(port(Tls::None, None), 25);
        assert_eq!(port(Tls::Implicit, Some(9)), 9);
    }
}
