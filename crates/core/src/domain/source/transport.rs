//! Protection of the connection to a database server: encrypted with a verified certificate unless
//! the server is on this machine or the URL says otherwise.
//!
//! The drivers' default continues unencrypted where a server offers no TLS. So a false server in
//! between received the password of a source, unnoticed.

use crate::domain::source::DialectName;
use core::net::IpAddr;
use url::Url;

/// Protection of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SourceTransport {
    /// It does not leave the machine.
    Local,
    /// Encrypted; the server's certificate is verified, including its name.
    Verified,
    /// Encrypted, but the server is not verified; with the option of the URL: `sslmode=require`.
    Unverified(String),
    /// Possibly unencrypted; with the option of the URL or the settings.
    MaybeClear(String),
}

/// The drivers' behaviour without any option.
const DRIVERS_DEFAULT: &str = "verify_tls = false";

impl SourceTransport {
    /// The protection that a URL implies; `None` for SQLite and malformed URLs.
    pub fn of_url(url: &str) -> Option<Self> {
        let server = ServerUrlFacts::parse(url)?;
        Some(match (server.mode, server.is_local) {
            (Some((key, mode)), is_local) => match Strength::of_mode(&mode) {
                Strength::Verified => Self::Verified,
                _ if is_local => Self::Local,
                Strength::Encrypted => Self::Unverified(format!("{key}={mode}")),
                Strength::MaybeClear => Self::MaybeClear(format!("{key}={mode}")),
            },
            (None, true) => Self::Local,
            (None, false) => Self::MaybeClear(DRIVERS_DEFAULT.to_owned()),
        })
    }

    /// The word in JSON.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Local => "local",
            Self::Verified => "verified",
            Self::Unverified(_) => "unverified",
            Self::MaybeClear(_) => "maybe_clear",
        }
    }

    /// What an attacker in between could do, with the option that allows it; `None` if nothing.
    pub fn weakness(&self) -> Option<String> {
        match self {
            Self::Local | Self::Verified => None,
            Self::Unverified(said) => Some(format!(
                "the connection is encrypted, but whose server it is, is not verified ({said}): one on the way could take \
                 its place and read the password"
            )),
            Self::MaybeClear(said) => Some(format!(
                "the connection may be in clear ({said}): one on the way could read the password and all data"
            )),
        }
    }
}

/// Adds the requirement of a verified certificate to `url`, where the server is on another machine
/// and the URL has no option.
pub fn with_verified_tls(url: &str) -> String {
    let (Some(server), Ok(mut parsed)) = (ServerUrlFacts::parse(url), Url::parse(url)) else {
        return url.to_owned();
    };
    if server.is_local || server.mode.is_some() {
        return url.to_owned();
    }
    let (key, mode) = match server.dialect {
        DialectName::Mysql => ("ssl-mode", "VERIFY_IDENTITY"),
        DialectName::Postgres | DialectName::Sqlite => ("sslmode", "verify-full"),
    };
    parsed.query_pairs_mut().append_pair(key, mode);
    parsed.to_string()
}

/// Facts about the server from a URL.
struct ServerUrlFacts {
    dialect: DialectName,
    is_local: bool,
    /// The TLS option and its value.
    mode: Option<(String, String)>,
}

impl ServerUrlFacts {
    fn parse(url: &str) -> Option<Self> {
        let dialect = DialectName::of_url(url).filter(|d| *d != DialectName::Sqlite)?;
        let parsed = Url::parse(url).ok()?;
        let (mut host, mut mode, mut has_socket) =
            (parsed.host_str().unwrap_or_default().to_owned(), None, false);
        for (key, value) in parsed.query_pairs() {
            match &*key {
                "sslmode" | "ssl-mode" => mode = Some((key.into_owned(), value.into_owned())),
                // Where permitted, these take precedence over the address.
                "host" | "hostaddr" => host = value.into_owned(),
                "socket" => has_socket = true,
                _ => {}
            }
        }
        Some(Self { dialect, is_local: has_socket || is_local(&host), mode })
    }
}

/// Whether a host is this machine: a loopback address, `localhost`, or a socket's directory.
fn is_local(host: &str) -> bool {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    let is_loopback = bare.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback());
    let is_socket =
        host.is_empty() || host.starts_with('/') || host.to_lowercase().starts_with("%2f");
    is_loopback || is_socket || bare.eq_ignore_ascii_case("localhost")
}

/// The protection that a driver's mode requires.
enum Strength {
    Verified,
    Encrypted,
    MaybeClear,
}

impl Strength {
    /// PostgreSQL writes `verify-full`, MySQL `VERIFY_IDENTITY`; the driver refuses an unknown
    /// mode.
    fn of_mode(mode: &str) -> Self {
        match mode.to_lowercase().replace('_', "-").as_str() {
            "verify-full" | "verify-identity" => Self::Verified,
            // The certificate authority is verified, the name is not.
            "verify-ca" | "require" | "required" => Self::Encrypted,
            _ => Self::MaybeClear,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_on_another_machine_is_verified_unless_its_url_says_otherwise() {
        for (url, asked_for) in [
            (
                "postgres://u@db.bank.example:5432/d",
                "postgres://u@db.bank.example:5432/d?sslmode=verify-full",
            ),
            ("postgresql://u@10.0.0.5/d", "postgresql://u@10.0.0.5/d?sslmode=verify-full"),
            (
                "mysql://u:p%2Fw@db/d?charset=utf8mb4",
                "mysql://u:p%2Fw@db/d?charset=utf8mb4&ssl-mode=VERIFY_IDENTITY",
            ),
            (
                "mariadb://u@[2001:db8::1]:3306/d",
                "mariadb://u@[2001:db8::1]:3306/d?ssl-mode=VERIFY_IDENTITY",
            ),
            (
                "postgres://u@localhost/d?host=db.bank.example",
                "postgres://u@localhost/d?host=db.bank.example&sslmode=verify-full",
            ),
        ] {
            assert_eq!(with_verified_tls(url), asked_for);
            assert_eq!(
                SourceTransport::of_url(&with_verified_tls(url)),
                Some(SourceTransport::Verified),
                "{url}"
            );
            assert!(
                matches!(SourceTransport::of_url(url), Some(SourceTransport::MaybeClear(_))),
                "{url}"
            );
        }
        for url in [
            "postgres://u@127.0.0.1:5432/d",
            "mysql://u@127.1.2.3/d",
            "postgres://u@[::1]:5432/d",
            "mysql://u@LOCALHOST/d",
            "postgres://u@%2Fvar%2Frun%2Fpostgresql/d",
            "postgres:///d?host=/var/run/postgresql",
            "mysql://u@db/d?socket=/run/mysqld.sock",
            "mysql://u@db/d?ssl-mode=PREFERRED",
            "sqlite:file.db",
            "no URL",
        ] {
            assert_eq!(with_verified_tls(url), url);
        }
    }

    #[test]
    fn what_a_url_asks_for_has_its_weakness() {
        for (url, transport) in [
            ("mysql://u@db/d?ssl-mode=VERIFY_IDENTITY", SourceTransport::Verified),
            (
                "postgres://u@db/d?sslmode=verify-ca",
                SourceTransport::Unverified("sslmode=verify-ca".into()),
            ),
            (
                "mysql://u@db/d?ssl-mode=REQUIRED",
                SourceTransport::Unverified("ssl-mode=REQUIRED".into()),
            ),
            (
                "postgres://u@db/d?sslmode=prefer",
                SourceTransport::MaybeClear("sslmode=prefer".into()),
            ),
            (
                "mysql://u@db/d?ssl-mode=DISABLED",
                SourceTransport::MaybeClear("ssl-mode=DISABLED".into()),
            ),
            ("postgres://u@127.0.0.1/d?sslmode=disable", SourceTransport::Local),
            ("postgres://u@127.0.0.1/d?sslmode=verify-full", SourceTransport::Verified),
        ] {
            assert_eq!(SourceTransport::of_url(url), Some(transport.clone()), "{url}");
            let is_strong = matches!(transport, SourceTransport::Local | SourceTransport::Verified);
            assert_eq!(transport.weakness().is_none(), is_strong, "{url}");
        }
        assert_eq!(SourceTransport::of_url("sqlite:x.db"), None);
    }
}
