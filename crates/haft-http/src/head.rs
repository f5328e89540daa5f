//! The head of a request: how large it may be.

use http::{HeaderMap, Method, Uri};
use std::fmt::{self, Write as _};

/// The most bytes of a request's head: its first line and its headers.
///
/// A parser that is given this bound keeps to it only roughly: it reads in pieces, and takes a head that ends within
/// the piece which goes beyond. So listeners ask [`head_bytes`], too.
pub const LARGEST_HEAD: usize = 64 << 10;

/// How many bytes the head of a request has, as clients write it: one blank after each colon, and none elsewhere.
///
/// ```
/// use http::Request;
/// let request = Request::get("/v1/me?x=1").header("host", "localhost").body(()).unwrap();
/// let bytes = haft_http::head_bytes(request.method(), request.uri(), request.headers());
/// assert_eq!(bytes, "GET /v1/me?x=1 HTTP/1.1\r\nhost: localhost\r\n\r\n".len());
/// ```
pub fn head_bytes(method: &Method, target: &Uri, headers: &HeaderMap) -> usize {
    let mut line = Counted(0);
    // Counting does not fail.
    let _ = write!(line, "{method} {target} HTTP/1.1\r\n");
    let each = headers.iter().map(|(name, value)| name.as_str().len() + value.len() + ": \r\n".len());
    line.0 + each.sum::<usize>() + "\r\n".len()
}

/// Text that is only counted.
struct Counted(usize);

impl fmt::Write for Counted {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0 += text.len();
        Ok(())
    }
}
