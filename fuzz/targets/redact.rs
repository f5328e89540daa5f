//! Output goes through redaction in pieces of any size.
#![no_main]

use haft_core::port::Redactor;
use haft_guard::{KnownSecrets, SecretPatterns, Secrets};
use libfuzzer_sys::fuzz_target;
use std::sync::LazyLock;

static BOTH: LazyLock<[Secrets; 2]> = LazyLock::new(|| {
    let known = || KnownSecrets::new([("V", "value-of-a-variable")]);
    let patterns = || SecretPatterns::new(["acme: acme_[a-z0-9]{8}"]).expect("it is one");
    [Secrets::full(known()).with_patterns(patterns()), Secrets::results(known()).with_patterns(patterns())]
});

// The first byte chooses the size of the pieces.
fuzz_target!(|data: &[u8]| {
    let [piece, text @ ..] = data else {
        return;
    };
    for secrets in &*BOTH {
        let (mut out, mut held) = (Vec::new(), Vec::new());
        for piece in text.chunks(usize::from(*piece).max(1)) {
            held.extend_from_slice(piece);
            let (free, shown) = secrets.let_go(&held);
            out.extend_from_slice(&shown);
            held.drain(..free);
        }
        out.extend_from_slice(&secrets.redact(&held));
        assert_eq!(out, secrets.redact(text).into_owned(), "in pieces of {piece}");
    }
});
