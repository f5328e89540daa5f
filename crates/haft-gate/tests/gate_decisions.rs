//! What the gate decides, without a network: names, lists, addresses.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    missing_docs,
    reason = "a test fails by panicking"
)]

#[path = "gate/spellings.rs"]
mod spellings;

use haft_gate::{HostList, HostName, Refusal, decide, forbidden_address};
use proptest::{
    prelude::*,
    sample::select,
    test_runner::{Config, RngSeed},
};
use spellings::SPELLINGS;
use std::{
    collections::HashSet,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
};

fn config() -> Config {
    Config { rng_seed: RngSeed::Fixed(5), failure_persistence: None, ..Config::with_cases(2_000) }
}

fn list(entries: &[&str]) -> HostList {
    HostList::parse(entries).unwrap()
}

#[test]
fn every_spelling_of_an_address_is_refused_for_what_it_is() {
    let different: HashSet<_> = SPELLINGS.iter().collect();
    assert!(different.len() >= 100 && different.len() == SPELLINGS.len(), "{}", different.len());
    let hosts = list(&["example.com", "*.com"]);
    for spelling in SPELLINGS {
        match decide(spelling, 443, &hosts) {
            // Not `NotListed`: no list could let it in.
            Err(Refusal::Literal { .. } | Refusal::BadName { .. }) => {}
            other => panic!("{spelling:?} is no name, but: {other:?}"),
        }
        assert!(HostList::parse(&[spelling]).is_err(), "{spelling:?} must not be in a list");
        assert!(HostList::parse(&[format!("*.{spelling}")]).is_err(), "{spelling:?} must not be in a list");
    }
}

/// The attack works where there is no gate: this machine's resolver takes many of these for private addresses.
#[test]
#[cfg(all(target_os = "linux", target_env = "gnu"))]
fn without_the_gate_such_spellings_do_reach_private_addresses() {
    use std::net::ToSocketAddrs as _;
    // Only those that a resolver reads without asking anyone.
    let numeric = |text: &&&str| {
        text.bytes().all(|byte| byte.is_ascii_hexdigit() || matches!(byte, b'x' | b'X' | b'.'))
            && !text.ends_with('.')
    };
    let reached = SPELLINGS.iter().filter(numeric).filter(|text| {
        let resolved = (**text, 80).to_socket_addrs();
        resolved.is_ok_and(|mut found| found.any(|found| forbidden_address(found.ip()).is_some()))
    });
    assert!(reached.count() >= 40);
}

#[test]
fn names_are_names() {
    let long = "a".repeat(63);
    let longest = [long.as_str(); 4].join(".")[..253].trim_end_matches('.').to_owned();
    for (text, name) in [
        ("example.com", "example.com"),
        ("EXAMPLE.Com.", "example.com"),
        ("xn--bcher-kva.example", "xn--bcher-kva.example"),
        ("a_b.example", "a_b.example"),
        ("1.2.3.example", "1.2.3.example"),
        ("0x7f.example", "0x7f.example"),
        ("127.0.0.1.nip.io", "127.0.0.1.nip.io"),
        ("3com.3com", "3com.3com"),
        ("0xyz", "0xyz"),
        (&longest, &longest),
    ] {
        assert_eq!(HostName::parse(text).unwrap().as_str(), name);
    }
    let too_long = format!("{longest}aaaaaaaaaa");
    for text in [
        "",
        ".",
        "..",
        "a..b",
        ".a",
        "a..",
        "-a.com",
        "a-.com",
        "a b.com",
        "a\tb",
        "a\0b",
        "a/b",
        "a\\b",
        "a@b.com",
        "user:pass@a.com",
        "a#b",
        "a?b",
        "a%2eb",
        "bücher.example",
        "a\u{200b}.com",
        "ａ.com",
        "a\u{3002}com",
        "*.com",
        "*",
        &too_long,
        &"a".repeat(64),
    ] {
        assert!(HostName::parse(text).is_err(), "{text:?}");
    }
}

#[test]
fn lists_allow_what_they_say() {
    let hosts =
        list(&["example.com", "*.example.org", "api.example.net:8443", "*.example.edu:22", "Upper.Example."]);
    for (host, port) in [
        ("example.com", 80),
        ("example.com", 443),
        ("EXAMPLE.com.", 443),
        ("a.example.org", 443),
        ("a.b.example.org", 80),
        ("api.example.net", 8443),
        ("git.example.edu", 22),
        ("upper.example", 80),
    ] {
        assert!(decide(host, port, &hosts).is_ok(), "{host}:{port}");
    }
    for (host, port) in [
        ("example.com", 8080),
        ("example.com", 22),
        ("www.example.com", 443),
        ("example.org", 443),
        ("badexample.org", 443),
        ("example.org.evil.test", 443),
        ("example.com.evil.test", 443),
        ("api.example.net", 443),
        ("git.example.edu", 443),
        ("example.edu", 22),
        ("localhost", 80),
    ] {
        assert!(matches!(decide(host, port, &hosts), Err(Refusal::NotListed { .. })), "{host}:{port}");
    }
    assert!(decide("example.com", 443, &HostList::default()).is_err(), "an empty list allows nothing");
    assert_eq!(
        hosts.to_string(),
        "example.com, *.example.org, api.example.net:8443, *.example.edu:22, upper.example"
    );
}

#[test]
fn what_cannot_be_in_a_list_is_named() {
    let message = |entry: &str| HostList::parse(&[entry]).unwrap_err().to_string();
    assert_eq!(
        message("https://example.com/"),
        "`https://example.com/` cannot be in a list of hosts: its port is not a number from 1 to 65535; write `host`, \
         `*.host` or `host:port`"
    );
    for (entry, part) in [
        ("", "it is empty"),
        ("*", "`*` may only stand first"),
        ("*.", "empty"),
        ("a.*.com", "`*` may only stand first"),
        ("*.*.com", "`*` may only stand first"),
        ("*a.com", "`*` may only stand first"),
        ("example.com/path", "it is a URL or has a path"),
        ("example.com:", "its port"),
        ("example.com:0", "its port"),
        ("example.com:65536", "its port"),
        ("example.com:+80", "its port"),
        ("example.com:080000", "its port"),
        ("example.com:https", "its port"),
        ("10.0.0.1", "it is an address"),
        ("10.0.0.1:80", "it is an address"),
        ("[::1]:80", "it is an address"),
        ("::1", "it is an address"),
        ("localhost", "this machine itself"),
        ("*.localhost", "this machine itself"),
        ("a.localhost:80", "this machine itself"),
        ("b\u{fc}cher.example", "`xn--` form"),
    ] {
        assert!(message(entry).contains(part), "{entry}: {}", message(entry));
    }
}

#[test]
fn subsets() {
    let cases: [(&[&str], &[&str], bool); 16] = [
        (&[], &[], true),
        (&[], &["a.com"], true),
        (&["a.com"], &[], false),
        (&["a.com"], &["a.com"], true),
        (&["a.com:443"], &["a.com"], true),
        (&["a.com"], &["a.com:443"], false),
        (&["a.com"], &["a.com:443", "a.com:80"], true),
        (&["b.a.com"], &["*.a.com"], true),
        (&["a.com"], &["*.a.com"], false),
        (&["*.a.com"], &["a.com"], false),
        (&["*.b.a.com"], &["*.a.com"], true),
        (&["*.a.com"], &["*.b.a.com"], false),
        (&["*.a.com:22"], &["*.a.com"], false),
        (&["*.a.com"], &["*.a.com:80", "*.com:443"], true),
        (&["xa.com"], &["*.a.com"], false),
        (&["A.com."], &["a.COM"], true),
    ];
    for (child, parent, expected) in cases {
        assert_eq!(list(child).is_subset_of(&list(parent)), expected, "{child:?} of {parent:?}");
        assert_eq!(list(child).outside_of(&list(parent)).is_empty(), expected);
    }
    assert_eq!(
        list(&["a.com", "B.com:8080", "*.c.com"]).outside_of(&list(&["a.com"])),
        ["b.com:8080", "*.c.com"]
    );
}

/// Each with the first and the last address of its range, and the neighbours that are public.
#[test]
fn forbidden_addresses() {
    let ranges = [
        ("0.0.0.0", "0.255.255.255"),
        ("10.0.0.0", "10.255.255.255"),
        ("100.64.0.0", "100.127.255.255"),
        ("127.0.0.0", "127.255.255.255"),
        ("168.63.129.16", "168.63.129.16"),
        ("169.254.0.0", "169.254.255.255"),
        ("172.16.0.0", "172.31.255.255"),
        ("192.0.0.0", "192.0.0.255"),
        ("192.0.2.0", "192.0.2.255"),
        ("192.31.196.0", "192.31.196.255"),
        ("192.52.193.0", "192.52.193.255"),
        ("192.88.99.0", "192.88.99.255"),
        ("192.168.0.0", "192.168.255.255"),
        ("192.175.48.0", "192.175.48.255"),
        ("198.18.0.0", "198.19.255.255"),
        ("198.51.100.0", "198.51.100.255"),
        ("203.0.113.0", "203.0.113.255"),
        ("224.0.0.0", "255.255.255.255"),
    ];
    for (first, last) in ranges {
        let bits = |text: &str| text.parse::<Ipv4Addr>().unwrap().to_bits();
        let (first, last) = (bits(first), bits(last));
        let forbids = |bits: u32| forbidden_address(IpAddr::V4(Ipv4Addr::from_bits(bits))).is_some();
        assert!(forbids(first) && forbids(last) && forbids(first + (last - first) / 2));
        for neighbour in [first.checked_sub(1), last.checked_add(1)].into_iter().flatten() {
            assert!(!forbids(neighbour), "{}", Ipv4Addr::from_bits(neighbour));
        }
    }
    for address in [
        "::",
        "::1",
        "::2",
        "::127.0.0.1",
        "::8.8.8.8",
        "::ffff:127.0.0.1",
        "::ffff:8.8.8.8",
        "::ffff:0:8.8.8.8",
        "64:ff9b::7f00:1",
        "64:ff9b::808:808",
        "64:ff9b:1::a00:1",
        "100::1",
        "100:0:0:1::1",
        "2001::1",
        "2001:0:4136:e378:8000:63bf:3fff:fdd2",
        "2001:2::1",
        "2001:10::1",
        "2001:20::1",
        "2001:1ff:ffff::1",
        "2001:db8::1",
        "2001:db8:ffff::1",
        "2002:7f00:1::1",
        "2002:808:808::1",
        "2620:4f:8000::1",
        "3ffe::1",
        "3fff::1",
        "3fff:fff::1",
        "4000::1",
        "5f00::1",
        "fc00::1",
        "fd00:ec2::254",
        "fd20:ce::254",
        "fe80::1",
        "febf::1",
        "fec0::1",
        "ff02::1",
        "ff0e::1",
        "ffff::1",
        "2606:4700::5efe:a00:1",
        "2606:4700::200:5efe:808:808",
    ] {
        assert!(forbidden_address(address.parse().unwrap()).is_some(), "{address}");
    }
    for address in [
        "1.1.1.1",
        "8.8.8.8",
        "93.184.215.14",
        "100.63.255.255",
        "172.32.0.1",
        "2606:4700:4700::1111",
        "2001:4860:4860::8888",
        "2001:200::1",
        "2620:fe::fe",
        "2a00:1450:4001::1",
        "3fff:1000::1",
        "2003::1",
    ] {
        assert_eq!(forbidden_address(address.parse().unwrap()), None, "{address}");
    }
}

fn label() -> impl Strategy<Value = String> {
    select(vec!["a", "b", "example", "www", "x1", "com", "org"]).prop_map(str::to_owned)
}

fn entry() -> impl Strategy<Value = String> {
    let name = proptest::collection::vec(label(), 1..4).prop_map(|labels| labels.join("."));
    (any::<bool>(), name, proptest::option::of(select(vec![22u16, 80, 443, 8080]))).prop_map(
        |(below, name, port)| {
            let below = if below { "*." } else { "" };
            port.map_or_else(|| format!("{below}{name}"), |port| format!("{below}{name}:{port}"))
        },
    )
}

fn entries() -> impl Strategy<Value = Vec<String>> {
    proptest::collection::vec(entry(), 0..4)
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn a_subset_allows_nothing_more_and_what_is_none_has_a_witness(child in entries(), parent in entries()) {
        let (child_list, parent_list) = (HostList::parse(&child).unwrap(), HostList::parse(&parent).unwrap());
        // The narrowest name of every entry: if any name of it is outside, this one is.
        let beyond = child.iter().any(|entry| {
            let (names, port) = entry.split_once(':').map_or((entry.as_str(), None), |(names, port)| (names, Some(port)));
            let name = HostName::parse(&names.replace('*', "no-list-has-this")).unwrap();
            let ports = port.map_or(vec![80, 443], |port| vec![port.parse().unwrap()]);
            ports.into_iter().any(|port| {
                assert!(child_list.allows(&name, port));
                !parent_list.allows(&name, port)
            })
        });
        prop_assert_eq!(child_list.is_subset_of(&parent_list), !beyond);
    }

    #[test]
    fn a_list_reads_back_as_it_is_shown(entries in entries()) {
        let parsed = HostList::parse(&entries).unwrap();
        let shown = parsed.to_string();
        let again: Vec<_> = shown.split(", ").filter(|entry| !entry.is_empty()).collect();
        prop_assert_eq!(HostList::parse(&again).unwrap(), parsed);
    }

    #[test]
    fn any_text_is_a_plain_name_or_refused(text in "\\PC{0,40}|[0-9a-fxA-FX.:%\\[\\]]{0,40}") {
        if let Ok(name) = HostName::parse(&text) {
            prop_assert!(name.as_str().bytes().all(|byte| byte.is_ascii_lowercase()
                || byte.is_ascii_digit() || matches!(byte, b'-' | b'_' | b'.')));
            prop_assert!(name.as_str().parse::<IpAddr>().is_err());
            prop_assert_eq!(HostName::parse(name.as_str()).unwrap(), name);
        }
    }

    #[test]
    fn no_address_is_a_name_however_it_is_written(bits in any::<u32>(), wide in any::<u128>()) {
        let [a, b, c, d] = bits.to_be_bytes();
        let v6 = Ipv6Addr::from_bits(wide);
        for text in [
            format!("{a}.{b}.{c}.{d}"), format!("{bits}"), format!("0x{bits:x}"), format!("0{bits:o}"),
            format!("{a}.{}", bits & 0x00ff_ffff), format!("{a}.{b}.{}", bits & 0xffff),
            format!("0x{a:X}.0{b:o}.{c}.0x{d:x}"), format!("{a}.{b}.{c}.{d}."), format!("{v6}"), format!("[{v6}]"),
            format!("{v6}%1"), format!("[{v6}%25lo]"),
        ] {
            prop_assert!(HostName::parse(&text).is_err(), "{}", text);
        }
    }

    #[test]
    fn ipv4_inside_ipv6_is_refused_whatever_it_is(bits in any::<u32>()) {
        let (high, low) = ((bits >> 16) as u16, bits as u16);
        for v6 in [
            Ipv6Addr::new(0, 0, 0, 0, 0, 0xffff, high, low),
            Ipv6Addr::new(0, 0, 0, 0, 0, 0, high, low),
            Ipv6Addr::new(0, 0, 0, 0, 0xffff, 0, high, low),
            Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, high, low),
            Ipv6Addr::new(0x2002, high, low, 0, 0, 0, 0, 1),
            Ipv6Addr::new(0x2001, 0, 1, 2, 0, 0, !high, !low),
            Ipv6Addr::new(0x2a00, 1, 2, 3, 0, 0x5efe, high, low),
        ] {
            prop_assert!(forbidden_address(IpAddr::V6(v6)).is_some(), "{}", v6);
        }
    }
}
