//! Addresses that are never reached, whatever name led to them.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Why an address may not be reached, as a short phrase; `None` for an address of the public internet.
///
/// The list is of what is public, as far as one can list that: for IPv6, everything outside `2000::/3` is refused,
/// known or not.
///
/// ```
/// use haft_gate::forbidden_address;
/// assert_eq!(forbidden_address("169.254.169.254".parse().unwrap()), Some("link-local, where clouds keep metadata"));
/// assert_eq!(forbidden_address("::ffff:8.8.8.8".parse().unwrap()), Some("IPv4 inside IPv6"));
/// assert_eq!(forbidden_address("8.8.8.8".parse().unwrap()), None);
/// ```
pub fn forbidden_address(address: IpAddr) -> Option<&'static str> {
    match address {
        IpAddr::V4(address) => {
            let bits = address.to_bits();
            FORBIDDEN_V4.iter().find(|range| range.has(bits)).map(|range| range.what)
        }
        IpAddr::V6(address) => forbidden_v6(address),
    }
}

struct RangeV4 {
    network: u32,
    prefix: u32,
    what: &'static str,
}

impl RangeV4 {
    fn has(&self, bits: u32) -> bool {
        (bits ^ self.network) >> (32 - self.prefix) == 0
    }
}

const fn v4(a: u8, b: u8, c: u8, d: u8, prefix: u32, what: &'static str) -> RangeV4 {
    RangeV4 { network: Ipv4Addr::new(a, b, c, d).to_bits(), prefix, what }
}

/// IANA's special-purpose registry, multicast, and addresses where clouds answer for the machine itself.
const FORBIDDEN_V4: [RangeV4; 18] = [
    v4(0, 0, 0, 0, 8, "unspecified, or this network"),
    v4(10, 0, 0, 0, 8, "private"),
    v4(100, 64, 0, 0, 10, "carrier-grade NAT"),
    v4(127, 0, 0, 0, 8, "loopback"),
    v4(168, 63, 129, 16, 32, "the metadata of a cloud"),
    v4(169, 254, 0, 0, 16, "link-local, where clouds keep metadata"),
    v4(172, 16, 0, 0, 12, "private"),
    v4(192, 0, 0, 0, 24, "reserved for protocols"),
    v4(192, 0, 2, 0, 24, "documentation"),
    v4(192, 31, 196, 0, 24, "anycast of name servers"),
    v4(192, 52, 193, 0, 24, "multicast tunnels"),
    v4(192, 88, 99, 0, 24, "a 6to4 relay"),
    v4(192, 168, 0, 0, 16, "private"),
    v4(192, 175, 48, 0, 24, "anycast of name servers"),
    v4(198, 18, 0, 0, 15, "benchmarking"),
    v4(198, 51, 100, 0, 24, "documentation"),
    v4(203, 0, 113, 0, 24, "documentation"),
    v4(224, 0, 0, 0, 3, "multicast, reserved or broadcast"),
];

struct RangeV6 {
    network: u128,
    prefix: u32,
    what: &'static str,
}

impl RangeV6 {
    fn has(&self, bits: u128) -> bool {
        (bits ^ self.network) >> (128 - self.prefix) == 0
    }
}

const fn v6(a: u16, b: u16, c: u16, prefix: u32, what: &'static str) -> RangeV6 {
    RangeV6 { network: Ipv6Addr::new(a, b, c, 0, 0, 0, 0, 0).to_bits(), prefix, what }
}

/// Inside `2000::/3`, but not of the public internet.
const FORBIDDEN_V6: [RangeV6; 7] = [
    v6(0x2001, 0, 0, 32, "Teredo, IPv4 inside IPv6"),
    v6(0x2001, 0, 0, 23, "reserved for protocols"),
    v6(0x2001, 0xdb8, 0, 32, "documentation"),
    v6(0x2002, 0, 0, 16, "6to4, IPv4 inside IPv6"),
    v6(0x2620, 0x4f, 0x8000, 48, "anycast of name servers"),
    v6(0x3ffe, 0, 0, 16, "given back"),
    v6(0x3fff, 0, 0, 20, "documentation"),
];

/// Outside `2000::/3`, so refused anyway: only for a better word.
const NAMED_V6: [RangeV6; 7] = [
    v6(0x64, 0xff9b, 0, 96, "NAT64, IPv4 inside IPv6"),
    v6(0x64, 0xff9b, 1, 48, "NAT64, IPv4 inside IPv6"),
    v6(0x100, 0, 0, 64, "discarded by definition"),
    v6(0xfc00, 0, 0, 7, "private"),
    v6(0xfe80, 0, 0, 10, "link-local"),
    v6(0xfec0, 0, 0, 10, "site-local"),
    v6(0xff00, 0, 0, 8, "multicast"),
];

fn forbidden_v6(address: Ipv6Addr) -> Option<&'static str> {
    let bits = address.to_bits();
    if bits >> 125 != 0b001 {
        let named = NAMED_V6.iter().find(|range| range.has(bits)).map(|range| range.what);
        return Some(named.unwrap_or(match bits {
            0 => "unspecified",
            1 => "loopback",
            bits if bits >> 48 == 0 => "IPv4 inside IPv6",
            _ => "reserved",
        }));
    }
    let [.., high, low, _, _] = address.segments();
    // ISATAP: the last 32 bits of an address below any prefix are an IPv4 address to tunnel to.
    if matches!(high, 0 | 0x200) && low == 0x5efe {
        return Some("ISATAP, IPv4 inside IPv6");
    }
    FORBIDDEN_V6.iter().find(|range| range.has(bits)).map(|range| range.what)
}
