//! The first message of TLS, of which only the name of the host is read.

/// The most bytes of a greeting that are held: several times what the largest key shares need.
pub(crate) const MAX_HELLO: usize = 32 * 1024;

/// What the bytes so far are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Hello {
    /// The start of a greeting.
    Partial,
    /// A whole greeting, and the host that it names.
    Complete {
        server_name: Option<String>,
        /// How many bytes it and its records take.
        length: usize,
    },
    /// No greeting of TLS, or one that readers could read in two ways.
    Broken(&'static str),
}

const RECORD_HANDSHAKE: u8 = 22;
const MESSAGE_CLIENT_HELLO: u8 = 1;
const MESSAGE_SERVER_HELLO: u8 = 2;
const EXTENSION_SERVER_NAME: u16 = 0;

/// Reads a greeting, however many records and packets it is spread over.
pub(crate) fn read_hello(bytes: &[u8]) -> Hello {
    let mut message = Vec::new();
    let mut rest = bytes;
    loop {
        let [kind, major, _, high, low, body @ ..] = rest else {
            return match rest.first() {
                Some(kind) if *kind != RECORD_HANDSHAKE => {
                    Hello::Broken("does not begin with a TLS greeting")
                }
                _ => Hello::Partial,
            };
        };
        if *kind != RECORD_HANDSHAKE || *major != 3 {
            return Hello::Broken("does not begin with a TLS greeting");
        }
        let length = usize::from(u16::from_be_bytes([*high, *low]));
        // A record may hold 2^14 bytes; an empty one of this kind is forbidden, and would let a greeting go on forever.
        if length == 0 || length > 1 << 14 {
            return Hello::Broken("has a TLS greeting with a record of a forbidden size");
        }
        message.extend_from_slice(body.get(..length).unwrap_or(body));
        match message_length(&message) {
            Err(problem) => return Hello::Broken(problem),
            Ok(Some(needed)) if message.len() >= needed => {
                // The greeting is the last thing that a client says until it is answered.
                if message.len() > needed || body.len() < length {
                    return Hello::Broken("has something behind its TLS greeting in the same record");
                }
                let length = bytes.len() - (body.len() - length);
                return match server_name(message.get(4..).unwrap_or_default()) {
                    Ok(server_name) => Hello::Complete { server_name, length },
                    Err(problem) => Hello::Broken(problem),
                };
            }
            Ok(_) => {}
        }
        match body.get(length..) {
            Some(next) => rest = next,
            None => return Hello::Partial,
        }
    }
}

/// How long the message is, its header included, once that is known.
fn message_length(message: &[u8]) -> Result<Option<usize>, &'static str> {
    match message {
        [kind, ..] if *kind != MESSAGE_CLIENT_HELLO => Err("does not begin with a TLS greeting"),
        [_, a, b, c, ..] => {
            let length = 4 + (usize::from(*a) << 16 | usize::from(*b) << 8 | usize::from(*c));
            if length > MAX_HELLO { Err("has a TLS greeting that is too long") } else { Ok(Some(length)) }
        }
        _ => Ok(None),
    }
}

/// Takes bytes from the front; every length is checked against what is there.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }

    fn number(&mut self, bytes: usize) -> Option<usize> {
        Some(self.take(bytes)?.iter().fold(0, |number, byte| number << 8 | usize::from(*byte)))
    }

    /// A vector with its length in front, in so many bytes.
    fn vector(&mut self, length_bytes: usize) -> Option<Reader<'a>> {
        let length = self.number(length_bytes)?;
        self.take(length).map(Reader)
    }

    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// The one name in the body of a greeting.
fn server_name(body: &[u8]) -> Result<Option<String>, &'static str> {
    const CUT: &str = "has a TLS greeting whose lengths do not add up";
    let mut body = Reader(body);
    body.take(2 + 32).ok_or(CUT)?; // version, random
    body.vector(1).ok_or(CUT)?; // session
    body.vector(2).ok_or(CUT)?; // cipher suites
    body.vector(1).ok_or(CUT)?; // compression
    if body.is_empty() {
        return Ok(None); // before extensions there were no names
    }
    let mut extensions = body.vector(2).ok_or(CUT)?;
    if !body.is_empty() {
        return Err(CUT);
    }
    let mut name = None;
    while !extensions.is_empty() {
        let kind = extensions.number(2).ok_or(CUT)?;
        let mut value = extensions.vector(2).ok_or(CUT)?;
        if kind != usize::from(EXTENSION_SERVER_NAME) {
            continue;
        }
        if name.is_some() {
            return Err("has a TLS greeting that names hosts twice");
        }
        let mut list = value.vector(2).ok_or(CUT)?;
        if list.number(1).ok_or(CUT)? != 0 {
            return Err("has a TLS greeting with a name of an unknown kind");
        }
        let host = list.vector(2).ok_or(CUT)?.0;
        if !list.is_empty() || !value.is_empty() {
            return Err("has a TLS greeting that names several hosts");
        }
        name = Some(String::from_utf8_lossy(host).into_owned());
    }
    Ok(name)
}

/// What a server's first bytes say about a second greeting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// Too few bytes to tell.
    Partial,
    /// The client shall greet again: RFC 8446 wants the same name in it, and not every server looks.
    Retry,
    /// Anything else.
    Other,
}

/// The random of a ServerHello that is a HelloRetryRequest (RFC 8446, 4.1.3).
const RETRY_RANDOM: [u8; 32] = [
    0xcf, 0x21, 0xad, 0x74, 0xe5, 0x9a, 0x61, 0x11, 0xbe, 0x1d, 0x8c, 0x02, 0x1e, 0x65, 0xb8, 0x91, 0xc2,
    0xa2, 0x11, 0x16, 0x7a, 0xbb, 0x8c, 0x5e, 0x07, 0x9e, 0x09, 0xe2, 0xc8, 0xa8, 0x33, 0x9c,
];

/// Reads the head of a server's first record.
pub(crate) fn read_answer(bytes: &[u8]) -> Answer {
    // Record (5), message (4), version (2), random (32).
    if bytes.first().is_some_and(|kind| *kind != RECORD_HANDSHAKE)
        || bytes.get(5).is_some_and(|kind| *kind != MESSAGE_SERVER_HELLO)
    {
        return Answer::Other;
    }
    match bytes.get(11..43) {
        None => Answer::Partial,
        Some(random) if random == RETRY_RANDOM => Answer::Retry,
        Some(_) => Answer::Other,
    }
}

/// What stands before a second greeting: the length of a record that is not a handshake, once it is known.
pub(crate) fn other_record(bytes: &[u8]) -> Option<usize> {
    match bytes {
        [kind, _, _, high, low, ..] if *kind != RECORD_HANDSHAKE => {
            Some(5 + usize::from(u16::from_be_bytes([*high, *low])))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::{
        prelude::*,
        test_runner::{Config, RngSeed},
    };

    fn with_length(bytes: usize, content: &[u8]) -> Vec<u8> {
        let length = content.len().to_be_bytes();
        [&length[length.len() - bytes..], content].concat()
    }

    fn name_extension(names: &[(u8, &[u8])]) -> Vec<u8> {
        let list: Vec<u8> =
            names.iter().flat_map(|(kind, name)| [&[*kind][..], &with_length(2, name)].concat()).collect();
        [&[0, 0][..], &with_length(2, &with_length(2, &list))].concat()
    }

    /// A greeting with these extensions, as one message.
    fn message(extensions: &[u8]) -> Vec<u8> {
        let body = [
            &[3, 3][..],
            &[7; 32],
            &with_length(1, &[9; 32]),
            &with_length(2, &[0x13, 1]),
            &with_length(1, &[0]),
            &with_length(2, extensions),
        ]
        .concat();
        [&[1][..], &with_length(3, &body)].concat()
    }

    /// As records with so many bytes each.
    fn records(message: &[u8], size: usize) -> Vec<u8> {
        message.chunks(size).flat_map(|part| [&[22, 3, 1][..], &with_length(2, part)].concat()).collect()
    }

    fn named(name: &str) -> Vec<u8> {
        message(&name_extension(&[(0, name.as_bytes())]))
    }

    fn complete(name: Option<&str>, length: usize) -> Hello {
        Hello::Complete { server_name: name.map(str::to_owned), length }
    }

    #[test]
    fn a_greeting_is_read_however_it_is_cut() {
        let message = named("example.com");
        for size in [1, 2, 3, 5, 40, 1000] {
            let bytes = records(&message, size);
            for length in 0..bytes.len() {
                assert_eq!(
                    read_hello(&bytes[..length]),
                    Hello::Partial,
                    "{length} bytes of records of {size}"
                );
            }
            assert_eq!(read_hello(&bytes), complete(Some("example.com"), bytes.len()));
            let with_more = [&bytes[..], &[23, 3, 3, 0, 1, 0]].concat();
            assert_eq!(read_hello(&with_more), complete(Some("example.com"), bytes.len()));
        }
    }

    #[test]
    fn a_greeting_without_a_name_has_none() {
        let bytes = records(&message(&[]), 1000);
        assert_eq!(read_hello(&bytes), complete(None, bytes.len()));
        let other = records(&message(&[0, 10, 0, 2, 0, 29]), 1000);
        assert_eq!(read_hello(&other), complete(None, other.len()));
        // As of SSL 3, before extensions.
        let mut old = message(&[]);
        old.truncate(old.len() - 2);
        old[3] -= 2;
        assert_eq!(read_hello(&records(&old, 1000)), complete(None, old.len() + 5));
    }

    #[test]
    fn greetings_that_can_be_read_in_two_ways_are_broken() {
        let twice = [name_extension(&[(0, b"a.com")]), name_extension(&[(0, b"b.com")])].concat();
        let mut long = named("a.com");
        long[1] = 1;
        let mut behind = named("a.com");
        behind.extend_from_slice(&[1, 0, 0, 0]);
        let mut short_body = named("a.com");
        short_body[3] -= 1;
        for (bytes, why) in [
            (records(&message(&twice), 1000), "two extensions"),
            (records(&message(&name_extension(&[(0, b"a.com"), (0, b"b.com")])), 1000), "two names"),
            (records(&message(&name_extension(&[(1, b"a.com")])), 1000), "an unknown kind of name"),
            (records(&long, 1000), "too long"),
            (records(&behind, 1000), "something behind"),
            (records(&short_body, 1000), "lengths"),
            (vec![22, 3, 1, 0, 0], "an empty record"),
            (vec![22, 3, 1, 0x40, 1, 1], "a record that is too large"),
            (vec![22, 2, 1, 0, 5, 1], "a version that is none"),
            (vec![22, 3, 1, 0, 5, 2], "a message of a server"),
            (vec![23], "another record"),
            (b"GET / HTTP/1.1\r\n".to_vec(), "no TLS"),
            (vec![0x80, 0x2e, 1, 3, 1, 0, 0], "SSL 2"),
        ] {
            assert!(matches!(read_hello(&bytes), Hello::Broken(_)), "{why}: {:?}", read_hello(&bytes));
        }
    }

    #[test]
    fn a_server_that_asks_for_another_greeting_is_noticed() {
        let hello = |random: &[u8; 32]| [&[22, 3, 3, 0, 90, 2, 0, 0, 86, 3, 3][..], random, &[0; 8]].concat();
        let (retry, plain) = (hello(&RETRY_RANDOM), hello(&[1; 32]));
        for length in 0..43 {
            assert_eq!(read_answer(&retry[..length]), Answer::Partial);
        }
        assert_eq!(read_answer(&retry), Answer::Retry);
        assert_eq!(read_answer(&plain), Answer::Other);
        assert_eq!(read_answer(&[21, 3, 3, 0, 2, 2, 40]), Answer::Other);
        assert_eq!(other_record(&[20, 3, 3, 0, 1, 1]), Some(6));
        assert_eq!(other_record(&[20, 3, 3, 0]), None);
        assert_eq!(other_record(&[22, 3, 3, 0, 1, 1]), None);
    }

    proptest! {
        #![proptest_config(Config { rng_seed: RngSeed::Fixed(5), failure_persistence: None, ..Config::with_cases(2_000) })]

        #[test]
        fn no_bytes_make_it_panic_and_a_verdict_stays(
            bytes in prop::collection::vec(any::<u8>(), 0..300),
            flips in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
            cut in any::<prop::sample::Index>(),
            size in 1usize..200,
        ) {
            read_hello(&bytes);
            read_answer(&bytes);
            let mut hello = records(&named("example.com"), size);
            for (place, byte) in flips {
                let place = place.index(hello.len());
                hello[place] = byte;
            }
            // What was decided on a part must hold for the whole: the rest is sent without another look.
            let part = &hello[..cut.index(hello.len())];
            match read_hello(part) {
                Hello::Partial => {}
                verdict => prop_assert_eq!(read_hello(&hello), verdict),
            }
        }
    }
}
