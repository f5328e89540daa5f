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
