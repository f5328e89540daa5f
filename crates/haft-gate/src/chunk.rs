//! Bodies in chunks. They are taken apart and written again, so that only what was understood goes on.

/// The longest line between chunks, and the most bytes of all lines behind the last.
const MAX_LINE: usize = 4096;

/// What comes next in a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Piece {
    /// More bytes are needed.
    More,
    /// So many bytes were only about the form of the body.
    Form(usize),
    /// So many bytes are content.
    Content(usize),
    /// The body is over.
    End,
}

#[derive(Debug, Default)]
enum State {
    #[default]
    Size,
    Content(u64),
    /// The line end behind a chunk.
    Behind,
    /// The lines behind the last chunk, which are left out.
    Trailer(usize),
    Over,
}

/// Reads a body in chunks.
#[derive(Debug, Default)]
pub(crate) struct Chunks {
    state: State,
}

impl Chunks {
    /// What the front of `bytes` is. The caller then takes that many bytes away.
    pub(crate) fn next(&mut self, bytes: &[u8]) -> Result<Piece, &'static str> {
        match &mut self.state {
            State::Over => Ok(Piece::End),
            State::Content(left) => {
                let there = u64::try_from(bytes.len()).unwrap_or(u64::MAX).min(*left);
                if there == 0 {
                    return Ok(Piece::More);
                }
                *left -= there;
                if *left == 0 {
                    self.state = State::Behind;
                }
                // It is at most `bytes.len()`.
                Ok(Piece::Content(usize::try_from(there).unwrap_or(usize::MAX)))
            }
            State::Behind => match bytes {
                [b'\r', b'\n', ..] => {
                    self.state = State::Size;
                    Ok(Piece::Form(2))
                }
                [] | [b'\r'] => Ok(Piece::More),
                _ => Err("a chunk does not end where it should"),
            },
            State::Size => {
                let Some(line) = line(bytes)? else { return Ok(Piece::More) };
                self.state = match chunk_size(line)? {
                    0 => State::Trailer(0),
                    size => State::Content(size),
                };
                Ok(Piece::Form(line.len() + 2))
            }
            State::Trailer(length) => {
                let Some(line) = line(bytes)? else { return Ok(Piece::More) };
                *length += line.len() + 2;
                if *length > MAX_LINE {
                    return Err("there is too much behind the last chunk");
                }
                if line.is_empty() {
                    self.state = State::Over;
                }
                Ok(Piece::Form(line.len() + 2))
            }
        }
    }
}

/// A line without its end, once it is whole. It ends with CR and LF; neither stands alone.
fn line(bytes: &[u8]) -> Result<Option<&[u8]>, &'static str> {
    match bytes.iter().position(|byte| matches!(byte, b'\r' | b'\n')) {
        None if bytes.len() > MAX_LINE => Err("a line between chunks is too long"),
        None => Ok(None),
        Some(end) => match bytes.get(end..end + 2) {
            Some(b"\r\n") => Ok(bytes.get(..end)),
            None if bytes.get(end) == Some(&b'\r') => Ok(None),
            _ => Err("a line between chunks does not end with CR and LF"),
        },
    }
}

/// Hexadecimal digits alone, or with an extension behind a semicolon, which is left out.
fn chunk_size(line: &[u8]) -> Result<u64, &'static str> {
    let digits = line.split(|byte| *byte == b';').next().unwrap_or_default();
    let printable = line.iter().all(|byte| matches!(byte, b'\t' | b' '..=b'~'));
    let hexadecimal = (1..=15).contains(&digits.len()) && digits.iter().all(u8::is_ascii_hexdigit);
    if !printable || !hexadecimal {
        return Err("the size of a chunk is not one number");
    }
    let text = std::str::from_utf8(digits).map_err(|_| "the size of a chunk is not one number")?;
    u64::from_str_radix(text, 16).map_err(|_| "the size of a chunk is not one number")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::{
        prelude::*,
        test_runner::{Config, RngSeed},
    };

    /// The content, and what is left behind the body.
    type Whole = (Vec<u8>, Vec<u8>);

    /// `None` where the body is not over.
    fn read(bytes: &[u8]) -> Result<Option<Whole>, &'static str> {
        let (mut chunks, mut rest, mut content) = (Chunks::default(), bytes, Vec::new());
        loop {
            match chunks.next(rest)? {
                Piece::More => return Ok(None),
                Piece::Form(length) => rest = &rest[length..],
                Piece::Content(length) => {
                    content.extend_from_slice(&rest[..length]);
                    rest = &rest[length..];
                }
                Piece::End => return Ok(Some((content, rest.to_vec()))),
            }
        }
    }

    #[test]
    fn bodies() {
        let whole = |content: &[u8], rest: &[u8]| Ok(Some((content.to_vec(), rest.to_vec())));
        assert_eq!(read(b"0\r\n\r\n"), whole(b"", b""));
        assert_eq!(read(b"5\r\nhello\r\n0\r\n\r\nGET"), whole(b"hello", b"GET"));
        assert_eq!(read(b"2\r\nhe\r\n00A\r\n0123456789\r\n0\r\n\r\n"), whole(b"he0123456789", b""));
        assert_eq!(read(b"1;name=value\r\nx\r\n0;x\r\nTrailer: y\r\n\r\nz"), whole(b"x", b"z"));
        for partial in [
            &b""[..],
            b"5",
            b"5\r",
            b"5\r\n",
            b"5\r\nhel",
            b"5\r\nhello",
            b"5\r\nhello\r",
            b"0\r\n",
            b"0\r\n\r",
        ] {
            assert_eq!(read(partial), Ok(None), "{}", String::from_utf8_lossy(partial));
        }
        let endless = [b"1;".as_slice(), &[b'x'; 5000]].concat();
        let trailers = [b"0\r\n".as_slice(), &b"a: b\r\n".repeat(1000)].concat();
        for broken in [
            &b"5\nhello\r\n0\r\n\r\n"[..],
            b"5\r\nhello\n0\r\n\r\n",
            b"5\r\nhelloX\r\n",
            b"5\rx",
            b"\r\n",
            b"x\r\n",
            b"0x5\r\nhello",
            b"+5\r\nhello",
            b"-1\r\n",
            b" 5\r\nhello",
            b"5 \r\nhello",
            b"5;a\0b\r\n",
            b"5;a\nb\r\n",
            b"1000000000000000\r\n",
            b"ffffffffffffffffffff\r\n",
            b"0\r\nTrailer: y\n\r\n",
            &endless,
            &trailers,
        ] {
            assert!(read(broken).is_err(), "{}", String::from_utf8_lossy(broken));
        }
    }

    proptest! {
        #![proptest_config(Config { rng_seed: RngSeed::Fixed(5), failure_persistence: None, ..Config::with_cases(2_000) })]

        #[test]
        fn what_is_cut_into_chunks_comes_back_whole(
            content in prop::collection::vec(any::<u8>(), 0..200),
            size in 1usize..50,
            packet in 1usize..20,
        ) {
            let mut wire = Vec::new();
            for part in content.chunks(size) {
                wire.extend_from_slice(format!("{:X}\r\n", part.len()).as_bytes());
                wire.extend_from_slice(part);
                wire.extend_from_slice(b"\r\n");
            }
            wire.extend_from_slice(b"0\r\n\r\n");
            let (mut chunks, mut held, mut read) = (Chunks::default(), Vec::new(), Vec::new());
            let mut packets = wire.chunks(packet);
            loop {
                match chunks.next(&held).unwrap() {
                    Piece::More => held.extend_from_slice(packets.next().unwrap()),
                    Piece::Form(length) => drop(held.drain(..length)),
                    Piece::Content(length) => read.extend(held.drain(..length)),
                    Piece::End => break,
                }
            }
            prop_assert_eq!(read, content);
            prop_assert!(held.is_empty() && packets.next().is_none());
        }

        #[test]
        fn no_bytes_make_it_panic(bytes in "[0-9a-f;\r\n x]{0,60}") {
            let _ = read(bytes.as_bytes());
        }
    }
}
