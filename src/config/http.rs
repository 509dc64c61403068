//! `[http]`: the HTTP server: addresses, sessions and time limits.

use super::{BadConfig, Config, SecretSetting};
use crate::domain::access::network::Network;
use crate::domain::access::{Grant, Permission, Role, Where};
use crate::domain::id::GroupCode;
use crate::outbound::is_here;
use serde::Deserialize;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;
use url::Url;

/// `[http]`
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HttpSettings {
    /// Address and port; empty or `off`: none.
    pub listen: String,
    /// Address and port of a listener for probes only; empty or `off`: none.
    pub probes: String,
    /// A PEM file; empty: no TLS.
    pub tls_cert: PathBuf,
    /// A PEM file.
    pub tls_key: PathBuf,
    /// A PEM file; empty: clients need no certificate.
    pub tls_client_ca: PathBuf,
    /// A PEM file with revocation lists; empty: none.
    pub tls_client_crl: PathBuf,
    /// executors or all.
    pub tls_client_for: String,
    /// Whether `probes` uses TLS too.
    pub probes_tls: bool,
    /// Seconds after which a loop counts as stalled.
    pub stalled_sec: u32,
    /// The URL as browsers see it; empty: as in their requests.
    pub public_url: String,
    /// Addresses, or networks such as `10.0.0.0/8`.
    pub trusted_proxies: Vec<String>,
    /// Idle time of a session in minutes.
    pub session_idle_min: u32,
    /// Maximum duration of a session in hours.
    pub session_max_hours: u32,
    /// Another login provider.
    pub oidc: Oidc,
}

/// `[http.oidc]`
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Oidc {
    /// The issuer URL; empty: none.
    pub issuer: String,
    /// The client id at the provider.
    pub client_id: String,
    /// Name of an environment variable.
    pub client_secret_env: String,
    /// A file.
    pub client_secret_file: PathBuf,
    /// A secret of `[secret_stores]`; empty: none.
    pub client_secret_name: SecretSetting,
    /// The display name.
    pub name: String,
    /// The claim with the login name.
    pub user_claim: String,
    /// The claim from which grants are derived.
    pub groups_claim: String,
    /// The requested scopes.
    pub scopes: Vec<String>,
    /// Whether a user is created at the first login.
    pub auto_create: bool,
    /// The grants for each value of the claim.
    pub grants: Vec<OidcGrant>,
}

/// `[[http.oidc.grants]]`
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OidcGrant {
    /// A value of the claim.
    pub claim: String,
    /// A group, or `*`.
    pub group: String,
    /// A role.
    pub role: String,
    /// Additional permissions.
    #[serde(default)]
    pub rights: Vec<String>,
}

/// The addresses and time limits of the listeners.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListeningOptions {
    /// The address for requests; `None`: none.
    pub listen: Option<SocketAddr>,
    /// The address for probes only; `None`: none.
    pub probes: Option<SocketAddr>,
    /// Maximum duration of one turn of a loop of this process.
    pub stalled: Duration,
}

/// The HTTP server as seen from outside.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Doorway {
    /// Scheme, host and port; `None`: as in requests.
    pub origin: Option<String>,
    /// Proxies whose forwarding headers are trusted.
    trusted: Vec<Network>,
}

impl Doorway {
    /// Whether this address is a trusted proxy.
    pub fn trusts(&self, address: IpAddr) -> bool {
        self.trusted.iter().any(|network| network.holds(address))
    }
}

impl Config {
    /// The addresses and time limits of the listeners.
    pub fn listening_options(&self) -> Result<ListeningOptions, BadConfig> {
        let listen = listen_address("listen", &self.http.listen)?;
        let probes = listen_address("probes", &self.http.probes)?;
        let stalled = Duration::from_secs(self.http.stalled_sec.into());
        Ok(ListeningOptions { listen, probes, stalled })
    }
}

impl Config {
    /// Ports on which this process listens.
    pub fn own_ports(&self) -> Result<Vec<u16>, BadConfig> {
        let http = self.listening_options()?;
        // For port 0 the address of the node contains the actual one.
        let node = self.node.address.as_deref().and_then(|url| Url::parse(url).ok());
        let node = node.and_then(|url| url.port_or_known_default());
        let listeners = http.listen.into_iter().chain(http.probes).map(|address| address.port());
        Ok(listeners.chain(node).filter(|port| *port != 0).collect())
    }
}

fn listen_address(key: &str, text: &str) -> Result<Option<SocketAddr>, BadConfig> {
    match text.trim() {
        "" | "off" => Ok(None),
        address => address.parse().map(Some).map_err(|_| {
            BadConfig(format!(
                "http.{key} is {address}; it must be an IP address and a port, such as \
                 127.0.0.1:8088 or [::1]:8088, or off"
            ))
        }),
    }
}

impl HttpSettings {
    pub(super) fn check(&self) -> Result<(), BadConfig> {
        for (key, value, most) in [
            ("session_idle_min", self.session_idle_min, 1_440),
            ("session_max_hours", self.session_max_hours, 168),
        ] {
            if !(1..=most).contains(&value) {
                return Err(BadConfig(format!("http.{key} is {value}; it may be 1 to {most}")));
            }
        }
        self.doorway()?;
        self.check_tls()?;
        self.oidc.check()
    }

    /// Maximum idle time and duration of a session, in milliseconds.
    pub fn session_ms(&self) -> (i64, i64) {
        let (idle, longest) = (self.session_idle_min, self.session_max_hours);
        (i64::from(idle) * 60_000, i64::from(longest) * 3_600_000)
    }

    /// The HTTP server as seen from outside.
    pub fn doorway(&self) -> Result<Doorway, BadConfig> {
        let origin = match self.public_url.trim() {
            "" => None,
            text => Some(origin(text).ok_or_else(|| {
                BadConfig(format!(
                    "http.public_url is {text}; it must be scheme, host and port without a path, such \
                     as https://procession.example.com"
                ))
            })?),
        };
        let read = |text: &String| {
            Network::parse(text).ok_or_else(|| {
                BadConfig(format!(
                    "http.trusted_proxies has {text:?}; write an IP address or a network such as \
                     10.1.0.0/16"
                ))
            })
        };
        let trusted = self.trusted_proxies.iter().map(read).collect::<Result<_, _>>()?;
        Ok(Doorway { origin, trusted })
    }
}

fn origin(text: &str) -> Option<String> {
    let url = Url::parse(text).ok()?;
    let plain = matches!(url.scheme(), "http" | "https")
        && url.path() == "/"
        && url.query().is_none()
        && url.fragment().is_none()
        && url.username().is_empty()
        && url.password().is_none();
    plain.then(|| url.origin().ascii_serialization())
}

impl Oidc {
    /// Whether there is another provider.
    pub fn is_on(&self) -> bool {
        !self.issuer.trim().is_empty()
    }

    fn check(&self) -> Result<(), BadConfig> {
        let bad = |key: &str, message: String| Err(BadConfig(format!("http.oidc.{key} {message}")));
        self.grants()?;
        if !self.is_on() {
            return Ok(());
        }
        let issuer = Url::parse(&self.issuer).ok();
        let is_safe = |url: &Url| match url.scheme() {
            "https" => true,
            "http" => is_here(url),
            _ => false,
        };
        if !issuer.as_ref().is_some_and(is_safe) {
            let issuer = &self.issuer;
            return bad("issuer", format!("is {issuer}; it must be https (http to this machine)"));
        }
        for (key, value) in [("client_id", &self.client_id), ("user_claim", &self.user_claim)] {
            if value.trim().is_empty() {
                return bad(key, "is empty; the provider says what it is".to_owned());
            }
        }
        Ok(())
    }

    /// The grants for each value of the claim.
    pub fn grants(&self) -> Result<Vec<(String, Grant)>, BadConfig> {
        self.grants.iter().map(|grant| Ok((grant.claim.clone(), grant.parse_grant()?))).collect()
    }
}

impl OidcGrant {
    fn parse_grant(&self) -> Result<Grant, BadConfig> {
        read_grant("http.oidc.grants", &self.group, &self.role, &self.rights)
    }
}

/// A grant in a table of the settings that maps groups of another system to roles.
pub(super) fn read_grant(
    table: &str,
    group: &str,
    role: &str,
    rights: &[String],
) -> Result<Grant, BadConfig> {
    let bad = |message: String| BadConfig(format!("{table}: {message}"));
    let place = match group {
        "*" => Where::Everywhere,
        code => Where::Group(GroupCode::parse(code).map_err(|e| bad(e.to_string()))?),
    };
    let role = Role::parse(role).ok_or_else(|| {
        bad(format!("role {role:?}; the roles are viewer, operator, author, admin"))
    })?;
    let right = |word: &String| {
        let found = Permission::parse(word);
        let fits = |p: &Permission| matches!(p, Permission::Force | Permission::Script);
        found.filter(fits).ok_or_else(|| {
            bad(format!("right {word:?}; the rights beside a role are force and script"))
        })
    };
    let rights = rights.iter().map(right).collect::<Result<_, _>>()?;
    Ok(Grant { place, role, rights })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks() {
        let http = |trusted: &[&str]| Doorway {
            origin: None,
            trusted: trusted.iter().filter_map(|t| Network::parse(t)).collect(),
        };
        let trusts =
            |list: &[&str], address: &str| http(list).trusts(address.parse().expect("an address"));
        assert!(trusts(&["10.1.0.0/16"], "10.1.255.3"));
        assert!(
            trusts(&["10.1.0.0/16"], "::ffff:10.1.255.3"),
            "as a socket of both kinds shows it"
        );
        assert!(!trusts(&["10.1.0.0/16"], "10.2.0.1"));
        assert!(trusts(&["127.0.0.1"], "127.0.0.1"));
        assert!(!trusts(&["127.0.0.1"], "127.0.0.2"));
        assert!(trusts(&["fd00::/8"], "fd12::1") && !trusts(&["fd00::/8"], "fe80::1"));
        assert!(trusts(&["0.0.0.0/0"], "8.8.8.8"));
        assert!(!trusts(&[], "127.0.0.1"));
    }

    #[test]
    fn origins_have_no_path() {
        assert_eq!(origin("https://P.example:443/").as_deref(), Some("https://p.example"));
        assert_eq!(origin("http://h:8080").as_deref(), Some("http://h:8080"));
        for odd in ["https://h/procession", "h:80", "ftp://h", "https://u@h", "https://h?x"] {
            assert_eq!(origin(odd), None, "{odd}");
        }
    }
}
