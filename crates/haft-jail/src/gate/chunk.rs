//! Bodies in chunks. They are taken apart and put together anew, so that only what was understood goes on.

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
