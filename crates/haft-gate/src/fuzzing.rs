//! What reads hostile bytes, for the fuzz targets. Built only with `--cfg fuzzing`.

#![allow(clippy::panic, reason = "a fuzz target fails by panicking")]

use super::{
    chunk::{Chunks, Piece},
    head::{HeadScanner, parse_request, parse_response},
    hello::{Hello, other_record, read_answer, read_hello},
    socks,
};

/// A greeting of TLS. More bytes never change what a whole one says.
pub fn hello(bytes: &[u8]) {
    let _ = read_answer(bytes);
    let _ = other_record(bytes);
    let read = read_hello(bytes);
    if let Hello::Complete { length, .. } = &read {
        assert!(*length <= bytes.len(), "{read:?}");
        assert_eq!(read_hello(&bytes[..*length]), read, "what follows changes nothing");
        assert_eq!(read_hello(&bytes[..*length - 1]), Hello::Partial, "all of it is needed");
    }
}

/// The head of a message, however it comes in pieces, and what is passed on of it.
pub fn head(bytes: &[u8], piece: usize) {
    let whole = HeadScanner::default().scan(bytes);
    let mut scanner = HeadScanner::default();
    let ends = (0..=bytes.len()).step_by(piece.max(1)).chain([bytes.len()]);
    let pieces = ends.map(|end| scanner.scan(&bytes[..end])).find(|found| !matches!(found, Ok(None)));
    assert_eq!(pieces.unwrap_or(Ok(None)), whole, "in pieces of {piece}");
    let Ok(Some(length)) = whole else { return };
    let head = &bytes[..length];
    // A tunnel is opened, and its head goes nowhere.
    if let Ok(request) = parse_request(head)
        && request.method != "CONNECT"
    {
        let written = request.for_server("example.com", "/x");
        let end = HeadScanner::default().scan(&written);
        assert_eq!(end, Ok(Some(written.len())), "one head goes on: {:?}", String::from_utf8_lossy(&written));
        // With haft's own headers there may be more than are read.
        match parse_request(&written) {
            Err("there are too many headers") => {}
            again => assert!(
                again.is_ok_and(|again| again.framing == request.framing),
                "its body ends where it did"
            ),
        }
    }
    if let Ok(response) = parse_response(head, "GET") {
        let written = response.for_client(response.framing, true);
        let end = HeadScanner::default().scan(&written);
        assert_eq!(end, Ok(Some(written.len())), "one head goes on: {:?}", String::from_utf8_lossy(&written));
    }
}

/// A body in chunks: no more is taken than there is.
pub fn chunks(bytes: &[u8]) {
    let (mut chunks, mut rest) = (Chunks::default(), bytes);
    loop {
        match chunks.next(rest) {
            Ok(Piece::Form(length) | Piece::Content(length)) => {
                assert!(length > 0 && length <= rest.len());
                rest = &rest[length..];
            }
            Ok(Piece::More | Piece::End) | Err(_) => return,
        }
    }
}

/// A request of SOCKS.
pub fn socks(bytes: &[u8]) {
    socks::fuzz_request(bytes);
}
