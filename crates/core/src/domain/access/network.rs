//! Networks, and membership of addresses in them.

use core::net::{IpAddr, Ipv6Addr};
use std::fmt;

/// The unit that counts as one client: the address, or the /64 of an IPv6 address, because one
/// customer has that many.
pub fn address_block(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        v4 @ IpAddr::V4(_) => v4,
        IpAddr::V6(v6) => {
            let [a, b, c, d, ..] = v6.segments();
            IpAddr::V6(Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0))
        }
    }
}

/// An address, or a network such as `10.0.0.0/8`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    address: IpAddr,
    bits: u8,
}

impl Network {
    /// Parses a network or address; none when malformed.
    pub fn parse(text: &str) -> Option<Self> {
        let (address, bits) = text.split_once('/').map_or((text, None), |(a, b)| (a, Some(b)));
        let address: IpAddr = address.trim().parse().ok()?;
        let width = if address.is_ipv4() { 32 } else { 128 };
        let bits = bits.map_or(Some(width), |b| b.trim().parse().ok().filter(|b| *b <= width))?;
        Some(Self { address, bits })
    }

    /// Whether the network contains the address.
    pub fn holds(&self, address: IpAddr) -> bool {
        let same = |a: u128, b: u128, width: u8| {
            let shift = u32::from(width.saturating_sub(self.bits));
            a.checked_shr(shift).unwrap_or(0) == b.checked_shr(shift).unwrap_or(0)
        };
        match (address.to_canonical(), self.address.to_canonical()) {
            (IpAddr::V4(a), IpAddr::V4(b)) => same(u32::from(a).into(), u32::from(b).into(), 32),
            (IpAddr::V6(a), IpAddr::V6(b)) => same(a.into(), b.into(), 128),
            (IpAddr::V4(_), IpAddr::V6(_)) | (IpAddr::V6(_), IpAddr::V4(_)) => false,
        }
    }

    /// Its address.
    pub fn address(&self) -> IpAddr {
        self.address.to_canonical()
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.bits)
    }
}

#[cfg(test)]
mod tests {
    use super::Network;

    #[test]
    fn a_network_holds_what_begins_as_it_does() {
        for (network, address, holds) in [
            ("10.1.0.0/16", "10.1.255.3", true),
            // As a dual-stack socket reports it.
            ("10.1.0.0/16", "::ffff:10.1.255.3", true),
            ("10.1.0.0/16", "10.2.0.1", false),
            ("127.0.0.1", "127.0.0.1", true),
            ("127.0.0.1", "127.0.0.2", false),
            ("fd00::/8", "fd12::1", true),
            ("fd00::/8", "fe80::1", false),
            ("0.0.0.0/0", "8.8.8.8", true),
            ("0.0.0.0/0", "::1", false),
        ] {
            let parsed = Network::parse(network).expect(network);
            assert_eq!(parsed.holds(address.parse().expect(address)), holds, "{network} {address}");
        }
        for odd in ["10.0.0.0/33", "proxy", "10.0.0/8", "::1/129", ""] {
            assert_eq!(Network::parse(odd), None, "{odd}");
        }
    }
}
