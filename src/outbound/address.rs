//! Which addresses a request with a secret may go to. Pure: it looks no name up.
//!
//! The ranges are those of the IANA registries for special purposes
//! (<https://www.iana.org/assignments/iana-ipv4-special-registry>, <https://www.iana.org/assignments/iana-ipv6-special-registry>),
//! and the addresses at which clouds hand out credentials.

use ipnet::{Ipv4Net, Ipv6Net};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Whose an address is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// Anybody's.
    Public,
    /// This machine's, or a private network's: only where a grant says so.
    Private,
    /// Nobody's to send a secret to: link-local, a cloud's metadata, multicast, reserved.
    Never,
}

const fn v4(a: u8, b: u8, c: u8, d: u8, prefix: u8) -> Ipv4Net {
    Ipv4Net::new_assert(Ipv4Addr::new(a, b, c, d), prefix)
}

const fn v6(a: u16, b: u16, c: u16, d: u16, h: u16, prefix: u8) -> Ipv6Net {
    Ipv6Net::new_assert(Ipv6Addr::new(a, b, c, d, 0, 0, 0, h), prefix)
}

const NEVER_V4: &[Ipv4Net] = &[
    v4(0, 0, 0, 0, 8),
    // Alibaba Cloud's metadata, in a range that is private otherwise; Azure's, in one that is public.
    v4(100, 100, 100, 200, 32),
    v4(168, 63, 129, 16, 32),
    // Link-local, with the metadata of most clouds.
    v4(169, 254, 0, 0, 16),
    v4(192, 0, 0, 0, 24),
    v4(192, 0, 2, 0, 24),
    v4(192, 88, 99, 0, 24),
    v4(198, 18, 0, 0, 15),
    v4(198, 51, 100, 0, 24),
    v4(203, 0, 113, 0, 24),
    v4(224, 0, 0, 0, 4),
    v4(240, 0, 0, 0, 4),
];

const PRIVATE_V4: &[Ipv4Net] = &[
    v4(10, 0, 0, 0, 8),
    v4(100, 64, 0, 0, 10),
    v4(127, 0, 0, 0, 8),
    v4(172, 16, 0, 0, 12),
    v4(192, 168, 0, 0, 16),
];

/// Of those that are public or private otherwise.
const NEVER_V6: &[Ipv6Net] = &[
    // Protocol assignments, Teredo among them; documentation; 6to4; documentation.
    v6(0x2001, 0, 0, 0, 0, 23),
    v6(0x2001, 0xdb8, 0, 0, 0, 32),
    v6(0x2002, 0, 0, 0, 0, 16),
    v6(0x3fff, 0, 0, 0, 0, 20),
    // Metadata of Amazon's cloud and of Google's.
    v6(0xfd00, 0xec2, 0, 0, 0, 32),
    v6(0xfd20, 0xce, 0, 0, 0x254, 128),
];

const PRIVATE_V6: &[Ipv6Net] = &[v6(0, 0, 0, 0, 1, 128), v6(0xfc00, 0, 0, 0, 0, 7)];

/// All that is given out to be reached from everywhere.
const GLOBAL_V6: Ipv6Net = v6(0x2000, 0, 0, 0, 0, 3);

/// IPv4 addresses as networks without IPv4 see them.
const NAT64: Ipv6Net = v6(0x64, 0xff9b, 0, 0, 0, 96);

/// Whose the address is. IPv4 in an IPv6 address counts as the IPv4 address.
#[must_use]
pub fn reach(address: IpAddr) -> Reach {
    let address = match address {
        IpAddr::V4(address) => return reach_v4(address),
        IpAddr::V6(address) => address,
    };
    let embedded = address.to_ipv4_mapped().or_else(|| {
        let [.., a, b, c, d] = address.octets();
        NAT64.contains(&address).then(|| Ipv4Addr::new(a, b, c, d))
    });
    if let Some(embedded) = embedded {
        return reach_v4(embedded);
    }
    let within = |nets: &[Ipv6Net]| nets.iter().any(|net| net.contains(&address));
    if within(NEVER_V6) {
        Reach::Never
    } else if within(PRIVATE_V6) {
        Reach::Private
    } else if GLOBAL_V6.contains(&address) {
        Reach::Public
    } else {
        Reach::Never
    }
}

fn reach_v4(address: Ipv4Addr) -> Reach {
    let within = |nets: &[Ipv4Net]| nets.iter().any(|net| net.contains(&address));
    if within(NEVER_V4) {
        Reach::Never
    } else if within(PRIVATE_V4) {
        Reach::Private
    } else {
        Reach::Public
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_public_private_or_nobody_s() {
        let rows = [
            (Reach::Public, "1.1.1.1 8.8.8.8 9.255.255.255 11.0.0.0 100.63.255.255 100.128.0.0 128.0.0.1"),
            (Reach::Public, "172.15.255.255 172.32.0.0 192.167.255.255 192.169.0.0 169.253.0.1 169.255.0.1"),
            (Reach::Public, "198.17.0.1 198.20.0.0 223.255.255.255 168.63.129.17"),
            (Reach::Private, "10.0.0.0 10.255.255.255 127.0.0.1 127.255.255.254 172.16.0.1 172.31.255.255"),
            (Reach::Private, "192.168.0.1 100.64.0.1 100.127.255.255"),
            (
                Reach::Never,
                "0.0.0.0 0.1.2.3 169.254.169.254 169.254.0.1 169.254.170.2 100.100.100.200 168.63.129.16",
            ),
            (
                Reach::Never,
                "192.0.0.1 192.0.2.1 192.88.99.1 198.18.0.1 198.19.255.255 198.51.100.1 203.0.113.1",
            ),
            (Reach::Never, "224.0.0.1 239.255.255.255 240.0.0.1 255.255.255.255"),
            (Reach::Public, "2606:4700:4700::1111 2001:4860:4860::8888 2a00::1 3ffe::1"),
            (Reach::Private, "::1 fc00::1 fd12:3456::1"),
            (
                Reach::Never,
                ":: ::2 ::127.0.0.1 ::8.8.8.8 fe80::1 febf::1 fec0::1 ff02::1 100::1 64:ff9b:1::1 4000::1",
            ),
            (Reach::Never, "2001::1 2001:db8::1 2002:7f00:1::1 3fff::1 fd00:ec2::254 fd20:ce::254"),
            (Reach::Public, "::ffff:8.8.8.8 64:ff9b::8.8.8.8"),
            (Reach::Private, "::ffff:127.0.0.1 ::ffff:10.0.0.1 64:ff9b::127.0.0.1 64:ff9b::192.168.1.1"),
            (Reach::Never, "::ffff:169.254.169.254 64:ff9b::169.254.169.254 ::ffff:0.0.0.0"),
        ];
        for (expected, addresses) in rows {
            for address in addresses.split(' ') {
                assert_eq!(reach(address.parse().unwrap()), expected, "{address}");
            }
        }
    }
}
