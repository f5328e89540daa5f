use crate::common::{House, failure, pipe, text};
use haft_core::ErrorCode;
use haft_sdk::CancelReason;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use std::fmt::Write as _;

fn read(house: &House, args: Value) -> String {
    text(house.call("read_file", args))
}

fn sha(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().fold(String::new(), |mut hex, byte| {
        write!(hex, "{byte:02x}").unwrap();
        hex
    })
}

#[test]
fn t_read_01_line_ranges() {
    let house = House::new(&[("a.txt", b"one\r\ntwo\nthree")]);
    assert_eq!(read(&house, json!({"path": "a.txt"})), "one\r\ntwo\nthree", "as it is");
    for (first, last, expected) in [
        (json!(1), json!(1), "one\r\n"),
        (json!(2), json!(3), "two\nthree"),
        (json!(2), json!(99), "two\nthree"),
        (json!(2), Value::Null, "two\nthree"),
        (Value::Null, json!(2), "one\r\ntwo\n"),
    ] {
        let args = json!({"path": "a.txt", "start_line": first, "end_line": last});
        assert_eq!(read(&house, args.clone()), expected, "{args}");
    }
    for (args, message) in [
        (json!({"path": "a.txt", "start_line": 0}), "Bad args: start_line must be >= 1"),
        (json!({"path": "a.txt", "end_line": 0}), "Bad args: end_line must be >= 1"),
        (
            json!({"path": "a.txt", "start_line": 3, "end_line": 2}),
            "Bad args: start_line must be <= end_line",
        ),
        (json!({"path": " "}), "Bad args: path must not be empty"),
    ] {
        assert_eq!(failure(house.call("read_file", args)), (ErrorCode::ValidationFailed, message.to_owned()));
    }
}

#[test]
fn t_read_02_the_scan_is_bounded_and_ends_with_the_range() {
    let mut lines = String::new();
    for number in 1..=400_000 {
        writeln!(lines, "line {number}").unwrap();
    }
    assert!(lines.len() > 4 << 20);
    let house = House::new(&[("big.txt", lines.as_bytes())]);
    let early = json!({"path": "big.txt", "start_line": 5, "end_line": 6});
    assert_eq!(read(&house, early), "line 5\nline 6\n", "what comes after the range is not scanned");
    assert_eq!(house.remembered("big.txt"), Some(sha(lines.as_bytes())), "and yet all of it is remembered");
    let (code, message) = failure(
        house.call("read_file", json!({"path": "big.txt", "start_line": 399_000, "end_line": 399_001})),
    );
    assert_eq!(code, ErrorCode::ExecutionFailed);
    assert!(message.starts_with("Scan limit exceeded; narrow the range"), "{message}");
    let (_, message) = failure(house.call("read_file", json!({"path": "big.txt"})));
    assert!(message.starts_with("File too large; use start_line/end_line"), "{message}");
    let (_, message) =
        failure(house.call("read_file", json!({"path": "big.txt", "start_line": 1, "end_line": 100_000})));
    assert!(message.contains("narrow the range"), "{message}");
}

#[test]
fn the_result_has_the_content_the_size_and_the_hash_of_the_whole() {
    let house = House::new(&[("dir/a.txt", "grüße\n".as_bytes())]);
    let output = house.call("read_file", json!({"path": "dir/a.txt"})).unwrap();
    let hash = sha("grüße\n".as_bytes());
    assert_eq!(
        output.structured.unwrap(),
        json!({"content": "grüße\n", "size": 8, "encoding": "utf-8", "sha256": hash})
    );
    assert!(output.keep_whole, "its own limit is in place of the general one");
    assert_eq!(house.remembered("dir/a.txt"), Some(hash));
    let output =
        house.call("read_file", json!({"path": "dir/a.txt", "start_line": 1, "end_line": 9})).unwrap();
    assert_eq!(output.structured.unwrap()["lines"], json!({"first": 1, "last": 1}));
}

#[test]
fn small_files_at_the_edges() {
    let house = House::new(&[("empty", b""), ("bare", b"x"), ("newline", b"\n")]);
    assert_eq!(read(&house, json!({"path": "empty"})), "");
    assert_eq!(house.remembered("empty"), Some(sha(b"")));
    assert_eq!(read(&house, json!({"path": "empty", "start_line": 1})), "[the file is empty]");
    assert_eq!(
        read(&house, json!({"path": "bare", "start_line": 2})),
        "[there is no line 2: the file has 1]"
    );
    assert_eq!(read(&house, json!({"path": "bare", "show_line_numbers": true})), "     1\tx");
    assert_eq!(read(&house, json!({"path": "newline", "show_line_numbers": true})), "     1\t\n");
    house.write("three", b"a\nb\nc\n");
    let numbered = json!({"path": "three", "start_line": 2, "show_line_numbers": true});
    assert_eq!(read(&house, numbered), "     2\tb\n     3\tc\n");
}

#[test]
fn bytes_that_are_not_text_come_in_base64_within_the_limit() {
    let bytes: Vec<u8> = (0..=255).collect();
    let mut house = House::new(&[("a.bin", &bytes)]);
    let output = house.call("read_file", json!({"path": "a.bin"})).unwrap();
    assert!(output.keep_whole);
    let text = output.text.unwrap();
    assert!(text.starts_with("[binary:base64]\nAAECAwQF"), "{text}");
    assert_eq!(output.structured.unwrap()["encoding"], "base64");

    let whole = "[binary:base64]\n".len() + 344;
    for limit in 0..=whole {
        house.output_limit = limit;
        let Ok(output) = house.call("read_file", json!({"path": "a.bin"})) else {
            assert!(limit < "[binary:base64][truncated]\n".len(), "{limit}");
            continue;
        };
        let text = output.text.unwrap();
        assert!(text.len() <= limit, "{} > {limit}", text.len());
        assert_eq!(text.starts_with("[binary:base64][truncated]\n"), limit < whole, "{limit}: {text}");
        assert_eq!(house.remembered("a.bin"), Some(sha(&bytes)), "of the whole, whatever is shown");
    }
    house.output_limit = 1000;
    let range = json!({"path": "a.bin", "start_line": 1});
    let message = "Bad args: Line ranges are not supported for binary files".to_owned();
    assert_eq!(failure(house.call("read_file", range)), (ErrorCode::ValidationFailed, message));
    let forced = read(&house, json!({"path": "a.bin", "encoding": "ascii", "start_line": 1}));
    assert!(forced.contains("ABC") && forced.contains('\u{fffd}'), "a named encoding is taken at its word");
}

#[test]
fn a_large_file_that_is_not_text_is_cut_and_yet_hashed_whole() {
    let bytes: Vec<u8> = (0..3_000_000_u32).map(|n| (n % 251) as u8).collect();
    let mut house = House::new(&[("big.bin", &bytes)]);
    house.output_limit = 1000;
    let output = house.call("read_file", json!({"path": "big.bin"})).unwrap();
    assert!(output.text.unwrap().len() <= 1000);
    let value = output.structured.unwrap();
    assert_eq!((&value["size"], &value["truncated"]), (&json!(3_000_000), &json!(true)));
    assert_eq!(house.remembered("big.bin"), Some(sha(&bytes)));
}

#[test]
fn text_at_its_start_and_not_later_is_not_text() {
    let mut bytes = vec![b'a'; 9000];
    bytes.push(0xff);
    let house = House::new(&[("late.bin", &bytes)]);
    assert!(read(&house, json!({"path": "late.bin"})).starts_with("[binary:base64]\n"));
    let lossy = house.call("read_file", json!({"path": "late.bin", "encoding": "utf-8"})).unwrap();
    assert_eq!(lossy.structured.unwrap()["lossy"], json!(true));
    // A character across the end of what is looked at is text.
    let mut text = "a".repeat(8191);
    text.push_str("üü");
    house.write("cut.txt", text.as_bytes());
    assert_eq!(read(&house, json!({"path": "cut.txt"})), text);
}

#[test]
fn utf_16_with_and_without_a_mark() {
    let little: Vec<u8> = "a\nbü\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
    let big: Vec<u8> = "\u{feff}a\nbü\n".encode_utf16().flat_map(u16::to_be_bytes).collect();
    let house = House::new(&[("le", &little), ("be", &big), ("odd", b"a\0b")]);
    for path in ["le", "be"] {
        assert_eq!(read(&house, json!({"path": path, "encoding": "utf-16"})), "a\nbü\n");
        assert_eq!(read(&house, json!({"path": path, "encoding": "utf-16", "start_line": 2})), "bü\n");
        assert!(read(&house, json!({"path": path})).starts_with("[binary:base64]"));
    }
    for args in [
        json!({"path": "odd", "encoding": "utf-16"}),
        json!({"path": "odd", "encoding": "utf-16", "end_line": 1}),
    ] {
        let (code, message) = failure(house.call("read_file", args));
        assert_eq!(code, ErrorCode::ExecutionFailed);
        assert!(message.contains("not an even number"), "{message}");
    }
    let (code, _) = failure(house.call("read_file", json!({"path": "le", "encoding": "latin-1"})));
    assert_eq!(code, ErrorCode::ValidationFailed);
}

#[test]
fn limits_of_nothing_give_errors_not_panics() {
    let mut house = House::new(&[("a.txt", b"hello"), ("empty", b"")]);
    for (limit, read_bytes, scan) in
        [(0, 200_000, 2_000_000), (1000, 0, 2_000_000), (1000, 200_000, 0), (0, 0, 0)]
    {
        house.output_limit = limit;
        house.settings.read_file.max_file_read_bytes = read_bytes;
        house.settings.read_file.max_scan_bytes = scan;
        let (code, _) = failure(house.call("read_file", json!({"path": "a.txt", "end_line": 1})));
        assert_eq!(code, ErrorCode::ExecutionFailed);
        if limit.min(read_bytes) == 0 {
            let (_, message) = failure(house.call("read_file", json!({"path": "a.txt"})));
            assert!(message.starts_with("File too large"), "{message}");
        }
        assert_eq!(read(&house, json!({"path": "empty"})), "");
    }
}

#[test]
fn a_huge_line_is_an_error_that_says_what_to_do() {
    let house = House::new(&[("line", &vec![b'x'; 3 << 20])]);
    let (_, message) = failure(house.call("read_file", json!({"path": "line", "end_line": 1})));
    assert!(message.contains("narrow the range"), "{message}");
}

#[test]
fn a_file_too_large_to_hash_is_not_remembered_and_says_so() {
    let house = House::new(&[("huge", b"first\nsecond\n")]);
    let file = std::fs::File::options().write(true).open(house.path("huge")).unwrap();
    file.set_len((64 << 20) + 1).unwrap();
    let output =
        house.call("read_file", json!({"path": "huge", "start_line": 2, "end_line": 2, "encoding": "utf-8"}));
    let output = output.unwrap();
    let text = output.text.unwrap();
    assert!(
        text.starts_with("second\n\n[the file has 67108865 bytes; above 64 MiB it cannot be edited]"),
        "{text}"
    );
    assert_eq!(output.structured.as_ref().unwrap().get("sha256"), None);
    assert_eq!(output.structured.unwrap()["size"], json!(67_108_865));
    assert_eq!(house.remembered("huge"), None);
}

#[test]
fn what_is_no_file_is_refused_without_waiting() {
    let house = House::new(&[("dir/", b"")]);
    pipe(&house.path("pipe"));
    let (_, message) = failure(house.call("read_file", json!({"path": "dir"})));
    assert!(message.starts_with("path is a directory"), "{message}");
    let (_, message) = failure(house.call("read_file", json!({"path": "pipe"})));
    assert!(message.contains("not a regular file"), "{message}");
    let (_, message) = failure(house.call("read_file", json!({"path": "missing"})));
    assert!(message.contains("does not exist"), "{message}");
    std::os::unix::net::UnixListener::bind(house.path("socket")).unwrap();
    assert!(house.call("read_file", json!({"path": "socket"})).is_err());
}

#[test]
fn links_lead_to_files_inside_and_never_outside() {
    let house = House::new(&[("real.txt", b"inside"), (".env", b"TOKEN=1")]);
    house.link("good", "real.txt");
    house.link("bad", "../outside.txt");
    house.link("secret", ".env");
    house.link("loop", "loop");
    assert_eq!(read(&house, json!({"path": "good"})), "inside");
    assert_eq!(house.remembered("real.txt"), Some(sha(b"inside")), "by where it really is");
    for path in ["bad", "secret", ".env", "../outside.txt", "/etc/hostname"] {
        let (code, message) = failure(house.call("read_file", json!({"path": path})));
        assert_eq!(code, ErrorCode::FilesystemPolicyViolation, "{path}: {message}");
    }
    assert!(house.call("read_file", json!({"path": "loop"})).is_err());
}

#[test]
fn a_call_that_was_ended_stops() {
    let house = House::new(&[("a.txt", b"hello")]);
    let host = house.host();
    host.cancel().cancel(CancelReason::User, None);
    let (code, _) = failure(house.call_on(&host, "read_file", json!({"path": "a.txt"})));
    assert_eq!(code, ErrorCode::Cancelled);
}

#[test]
fn what_it_says_about_itself() {
    let house = House::new(&[]);
    let tool = house.tool("read_file");
    let prepared = |args: Value| {
        let original = haft_core::Arguments::from(args);
        let value = original.parse().unwrap();
        let prepared = tool.prepare(&haft_sdk::Args { value, original }).unwrap();
        (prepared.summary(), serde_json::to_value(prepared.footprint()).unwrap())
    };
    let (summary, footprint) = prepared(json!({"path": "a.txt"}));
    assert_eq!(summary, "Read a.txt");
    assert_eq!(footprint["reads"], json!([{"kind": "path", "name": "a.txt"}]));
    assert_eq!(prepared(json!({"path": "a", "start_line": 2, "end_line": 5})).0, "Read a [lines 2-5]");
    assert_eq!(prepared(json!({"path": "a", "end_line": 5})).0, "Read a [lines 1-5]");
    assert_eq!(prepared(json!({"path": "a", "start_line": 5})).0, "Read a [lines 5-]");
    let definition = tool.definition();
    assert!(!definition.has_side_effects() && definition.idempotent && definition.check().is_empty());
    assert_eq!(definition.risk(), haft_core::Risk::Low);
}

/// FR-TOOL-READ-01: 200 KB, or less where the model has less room.
#[test]
fn a_file_is_read_up_to_200_kb_and_up_to_what_fits_into_the_model() {
    const MOST: usize = 200 * 1024;
    let (fits, too_large) = ("a".repeat(MOST), "a".repeat(MOST + 1));
    let mut house = House::new(&[("fits.txt", fits.as_bytes()), ("large.txt", too_large.as_bytes())]);
    assert_eq!(house.call("read_file", json!({"path": "fits.txt"})).unwrap().text.unwrap().len(), MOST);
    let (code, message) = failure(house.call("read_file", json!({"path": "large.txt"})));
    assert_eq!(code, ErrorCode::ExecutionFailed);
    assert!(message.contains("use start_line/end_line") && message.contains("204800"), "{message}");
    house.output_limit = 1000;
    let (_, message) = failure(house.call("read_file", json!({"path": "fits.txt"})));
    assert!(message.contains("at most 1000 are read at once"), "{message}");
}

/// NFR-PERF-02: the check of a path that is there takes less than a millisecond, typically.
#[test]
fn nfr_perf_02_a_path_that_is_there_is_checked_within_a_millisecond() {
    let house = House::new(&[("a/b/c.txt", b"hello")]);
    let mut times: Vec<std::time::Duration> = (0..1001)
        .map(|_| {
            let started = std::time::Instant::now();
            house.files.locate("a/b/c.txt", haft_sdk::files::Access::Read).unwrap();
            started.elapsed()
        })
        .collect();
    times.sort();
    assert!(times[500] < std::time::Duration::from_millis(1), "{:?}", times[500]);
}
