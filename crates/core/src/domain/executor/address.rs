//! Validates the address that an executor registers. Procession calls registered addresses, so a registration must not
//! direct it to another machine, to Procession itself, or to a cloud's metadata service.

use crate::domain::access::network::Network;
use core::net::IpAddr;
use std::fmt;
use url::{Host, Url};

/// Maximum length of an address, given by its column.
const LONGEST: usize = 255;

/// A URL of an executor: `http` or `https`, a host, perhaps a port and a path; no slash at its end.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ExecutorUrl(String);

/// Why an address is refused; the text names the reason and a fix.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadAddress {
    /// Not a URL of an executor. The text does not repeat it, because it may contain a password.
    #[error(
        "the address {0}; an executor's is http://HOST:PORT or https://HOST:PORT, perhaps with a path"
    )]
    Unreadable(&'static str),
    /// The name of the host does not resolve.
    #[error("the name {0} of the address cannot be found")]
    Nowhere(String),
    /// A host name where only an IP address is allowed.
    #[error(
        "{0} is a name, and what it leads to can change; let the executor say its IP address, or have an \
         administrator allow its network with executors.networks in the settings"
    )]
    NoNames(String),
    /// The address of another machine.
    #[error(
        "{address} is not where the executor asks from ({peer}); an administrator can allow its network \
         with executors.networks in the settings"
    )]
    Elsewhere {
        /// The address that the URL leads to.
        address: IpAddr,
        /// The address that the request comes from.
        peer: IpAddr,
    },
    /// One of our own listeners.
    #[error(
        "port {0} of this machine is Procession itself; give the address at which the executor answers"
    )]
    OurOwn(u16),
    /// Not the address of a single machine.
    #[error("{0} is no address of a machine")]
    Nobody(IpAddr),
}

/// The host part of the URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HostPattern {
    /// An IP address.
    At(IpAddr),
    /// A host name and port that must be resolved.
    Named(String, u16),
}

impl ExecutorUrl {
    /// Parses a URL and normalizes it to what is actually called: `http://0x7f.1` becomes `http://127.0.0.1`.
    pub fn parse(text: &str) -> Result<Self, BadAddress> {
        let text = text.trim();
        if text.len() > LONGEST {
            return Err(BadAddress::Unreadable("has more than 255 bytes"));
        }
        if text.contains(|c: char| c.is_control() || c.is_whitespace() || c == '\\' || c == ',') {
            return Err(BadAddress::Unreadable("has a blank, a comma or a backslash in it"));
        }
        let url =
            Url::parse(text).map_err(|_| BadAddress::Unreadable("cannot be read as a URL"))?;
        let fault = if !matches!(url.scheme(), "http" | "https") {
            "does not begin with http:// or https://"
        } else if url.host_str().is_none_or(str::is_empty) {
            "names no host"
        } else if !url.username().is_empty() || url.password().is_some() || text.contains('@') {
            "holds a user or a password"
        } else if text.contains(['?', '#']) {
            "holds a '?' or a '#'"
        } else {
            let plain = url.as_str().trim_end_matches('/');
            return match plain.len() {
                0..=LONGEST => Ok(Self(plain.to_owned())),
                _ => Err(BadAddress::Unreadable("has more than 255 bytes")),
            };
        };
        Err(BadAddress::Unreadable(fault))
    }

    /// The port.
    pub fn port(&self) -> u16 {
        let url = Url::parse(&self.0).expect("it was read when it was made");
        url.port_or_known_default().unwrap_or(80)
    }

    /// The address as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The URL with its host name replaced by the resolved address. The name may resolve differently by the time of the
    /// call, so over plain HTTP the address is used; over TLS the certificate proves the identity, and the name stays.
    #[must_use]
    pub fn found_at(self, address: IpAddr) -> Self {
        let mut url = Url::parse(&self.0).expect("it was read when it was made");
        if url.scheme() == "https" || url.set_ip_host(address.to_canonical()).is_err() {
            return self;
        }
        Self(url.as_str().trim_end_matches('/').to_owned())
    }

    /// The host part.
    pub fn place(&self) -> HostPattern {
        let url = Url::parse(&self.0).expect("it was read when it was made");
        let port = url.port_or_known_default().unwrap_or(80);
        match url.host() {
            Some(Host::Ipv4(ip)) => HostPattern::At(ip.into()),
            Some(Host::Ipv6(ip)) => HostPattern::At(IpAddr::from(ip).to_canonical()),
            Some(Host::Domain(name)) => HostPattern::Named(name.to_owned(), port),
            None => HostPattern::Named(String::new(), port),
        }
    }
}

impl fmt::Display for ExecutorUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl From<ExecutorUrl> for String {
    fn from(url: ExecutorUrl) -> Self {
        url.0
    }
}

/// Whether an executor that sends from `peer` may register this address.
pub fn own_or_allowed(
    address: IpAddr,
    peer: IpAddr,
    networks: &[Network],
) -> Result<(), BadAddress> {
    let (address, peer) = (address.to_canonical(), peer.to_canonical());
    machine(address)?;
    match address == peer || is_allowed(address, networks) {
        true => Ok(()),
        false => Err(BadAddress::Elsewhere { address, peer }),
    }
}

/// Whether a host name that resolves to these addresses may be registered. All of them must be allowed, whatever
/// address the request comes from.
pub fn name_allowed(
    name: &str,
    found: &[IpAddr],
    peer: IpAddr,
    networks: &[Network],
) -> Result<(), BadAddress> {
    if found.is_empty() {
        return Err(BadAddress::Nowhere(name.to_owned()));
    }
    for address in found.iter().map(IpAddr::to_canonical) {
        machine(address)?;
        if !is_allowed(address, networks) {
            return Err(BadAddress::Elsewhere { address, peer: peer.to_canonical() });
        }
    }
    Ok(())
}

/// Whether an allowed network contains the address. A network that covers half the address space does not include
/// 169.254.169.254, where clouds serve credentials, unless it is itself a link-local network.
pub fn is_allowed(address: IpAddr, networks: &[Network]) -> bool {
    let address = address.to_canonical();
    let meant = |network: &&Network| !is_link(address) || is_link(network.address());
    machine(address).is_ok() && networks.iter().filter(meant).any(|network| network.holds(address))
}

fn is_link(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(ip) => ip.is_link_local(),
        IpAddr::V6(ip) => ip.is_unicast_link_local(),
    }
}

fn machine(address: IpAddr) -> Result<(), BadAddress> {
    let broadcast = matches!(address, IpAddr::V4(ip) if ip.is_broadcast());
    match address.is_unspecified() || address.is_multicast() || broadcast {
        true => Err(BadAddress::Nobody(address)),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_read_as_it_is_called() {
        for (text, is) in [
            ("http://10.0.0.5:9999", "http://10.0.0.5:9999"),
            ("http://10.0.0.5:9999/", "http://10.0.0.5:9999"),
            ("http://10.0.0.5:9999/job/", "http://10.0.0.5:9999/job"),
            ("HTTP://Host.Example:80/", "http://host.example"),
            ("https://[::1]:9999/", "https://[::1]:9999"),
            // Other ways to write 127.0.0.1.
            ("http://2130706433:9999", "http://127.0.0.1:9999"),
            ("http://0x7f.1:9999", "http://127.0.0.1:9999"),
            ("http://0177.0.0.1:9999", "http://127.0.0.1:9999"),
            (" http://10.0.0.5:9999 ", "http://10.0.0.5:9999"),
        ] {
            assert_eq!(ExecutorUrl::parse(text).expect(text).as_str(), is);
        }
    }

    #[test]
    fn what_leads_elsewhere_is_no_address_and_is_not_repeated() {
        for text in [
            "",
            "10.0.0.5:9999",
            "file:///etc/passwd",
            "gopher://10.0.0.5:9999",
            "ftp://10.0.0.5/",
            "http://",
            "http://user:hunter22@10.0.0.5:9999",
            "http://@10.0.0.5:9999",
            "http://10.0.0.5:9999/?a=hunter22",
            "http://10.0.0.5:9999/#hunter22",
            "http://10.0.0.5:9999,http://10.0.0.6:9999",
            "http://10.0.0.5\\@169.254.169.254/",
            "http://10.0.0.5:9999/a b",
            "http://10.0.0.5:9999/\r\nX: y",
            &format!("http://10.0.0.5/{}", "a".repeat(255)),
        ] {
            let said = ExecutorUrl::parse(text).expect_err(text).to_string();
            assert!(said.starts_with("the address "), "{said}");
            assert!(!said.contains("hunter22"), "{said}");
        }
    }

    fn ip(text: &str) -> IpAddr {
        text.parse().expect(text)
    }

    #[test]
    fn a_name_becomes_where_it_was_found_unless_a_certificate_proves_it() {
        for (text, address, is) in [
            ("http://pay.example:9999/job", "10.0.0.5", "http://10.0.0.5:9999/job"),
            ("http://pay.example/", "::ffff:10.0.0.5", "http://10.0.0.5"),
            ("http://pay.example:9999", "fd00::5", "http://[fd00::5]:9999"),
            ("https://pay.example:9999/", "10.0.0.5", "https://pay.example:9999"),
        ] {
            let url = ExecutorUrl::parse(text).expect(text);
            assert_eq!(url.found_at(ip(address)).as_str(), is);
        }
    }

    #[test]
    fn an_executor_says_its_own_address_or_one_that_is_allowed() {
        let lan = [Network::parse("10.0.0.0/8").expect("network")];
        let world = [Network::parse("0.0.0.0/0").expect("network")];
        let link = [Network::parse("169.254.0.0/16").expect("network")];
        for (address, peer, networks, is) in [
            ("10.0.0.5", "10.0.0.5", &[][..], true),
            ("10.0.0.5", "::ffff:10.0.0.5", &[], true),
            ("127.0.0.1", "127.0.0.1", &[], true),
            ("127.0.0.1", "10.0.0.5", &[], false),
            ("::1", "127.0.0.1", &[], false),
            ("10.0.0.6", "10.0.0.5", &[], false),
            ("10.0.0.6", "10.0.0.5", &lan, true),
            ("11.0.0.6", "10.0.0.5", &lan, false),
            ("127.0.0.1", "10.0.0.5", &lan, false),
            ("169.254.169.254", "10.0.0.5", &[], false),
            ("169.254.169.254", "10.0.0.5", &world, false),
            ("169.254.169.254", "10.0.0.5", &link, true),
            ("0.0.0.0", "10.0.0.5", &world, false),
            ("0.0.0.0", "0.0.0.0", &[], false),
            ("224.0.0.1", "10.0.0.5", &world, false),
            ("255.255.255.255", "10.0.0.5", &world, false),
        ] {
            let found = own_or_allowed(ip(address), ip(peer), networks);
            assert_eq!(found.is_ok(), is, "{address} from {peer}: {found:?}");
        }
    }

    #[test]
    fn every_address_of_a_name_has_to_be_allowed() {
        let lan = [Network::parse("10.0.0.0/8").expect("network")];
        let found = |all: &[&str], networks: &[Network]| {
            let all: Vec<IpAddr> = all.iter().map(|text| ip(text)).collect();
            name_allowed("pay.example", &all, ip("10.0.0.5"), networks)
        };
        assert_eq!(found(&["10.0.0.5", "10.0.0.6"], &lan), Ok(()));
        assert!(found(&["10.0.0.5", "127.0.0.1"], &lan).is_err(), "one of them is our own");
        assert!(found(&["10.0.0.5"], &[]).is_err(), "it can be somebody else's tomorrow");
        let nowhere = found(&[], &lan).expect_err("nowhere").to_string();
        assert_eq!(nowhere, "the name pay.example of the address cannot be found");
    }
}
