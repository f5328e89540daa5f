//! Secrets of every kind that people paste: none reaches a model, none is kept.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    missing_docs,
    reason = "a test fails by panicking"
)]

use fastrand::Rng;
use haft_core::port::Redactor;
use haft_guard::{KnownSecrets, Secrets};

const ALNUM: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
const HEX: &str = "0123456789abcdef";
const UPPER: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
const LOWER: &str = "abcdefghijklmnopqrstuvwxyz0123456789";
const DIGITS: &str = "123456789";
const BASE64: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const BASE32: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";

/// Made from a pattern in which `{a36}` is 36 letters and digits, `{h…}` hexadecimal, `{u…}` upper case, `{l…}` lower
/// case, `{d…}` digits, `{b…}` base64, `{r…}` base32. What stands between `‹` and `›` is the secret.
fn made(pattern: &str, rng: &mut Rng) -> (String, Vec<String>) {
    let (mut text, mut secrets, mut rest) = (String::new(), Vec::new(), pattern);
    let mut open = None;
    while let Some(letter) = rest.chars().next() {
        rest = &rest[letter.len_utf8()..];
        match letter {
            '{' if rest.find('}').is_some_and(|end| rest[1..end].parse::<usize>().is_ok()) => {
                let end = rest.find('}').unwrap();
                let count: usize = rest[1..end].parse().unwrap();
                let letters: Vec<char> = match &rest[..1] {
                    "a" => ALNUM,
                    "h" => HEX,
                    "u" => UPPER,
                    "l" => LOWER,
                    "d" => DIGITS,
                    "b" => BASE64,
                    "r" => BASE32,
                    other => panic!("{other}"),
                }
                .chars()
                .collect();
                let from = text.len();
                text.extend((0..count).map(|_| letters[rng.usize(..letters.len())]));
                // A long run without a digit is rare enough to be a flaky test.
                if count >= 8
                    && !text[from..].bytes().any(|byte| byte.is_ascii_digit())
                    && !letters.contains(&'7')
                {
                    continue;
                }
                if count >= 8 && letters.contains(&'7') {
                    text.replace_range(text.len() - 1.., "7");
                }
                rest = &rest[end + 1..];
            }
            '‹' => open = Some(text.len()),
            '›' => secrets.push(text[open.take().unwrap()..].to_owned()),
            _ => text.push(letter),
        }
    }
    if secrets.is_empty() {
        secrets.push(text.clone());
    }
    (text, secrets)
}

fn shown(redactor: &dyn Redactor, text: &str) -> String {
    String::from_utf8_lossy(&redactor.redact(text.as_bytes())).into_owned()
}

#[test]
fn no_kind_of_secret_reaches_a_model_or_a_file() {
    let kinds: &[(&str, &str)] = &include!("kinds/kinds.in");
    assert!(kinds.len() >= 160, "{}", kinds.len());
    let (results, full) = (Secrets::results(KnownSecrets::default()), Secrets::full(KnownSecrets::default()));
    let mut rng = Rng::with_seed(15);
    let (mut reach, mut kept) = (Vec::new(), Vec::new());
    for (name, pattern) in kinds {
        for round in 0..8 {
            let (text, secrets) = made(pattern, &mut rng);
            for (place, around) in
                [format!("{text}\n"), format!("It said: {text}\nand no more"), format!("a\n{text}")]
                    .into_iter()
                    .enumerate()
            {
                let gone = |out: &str| secrets.iter().all(|secret| !out.contains(secret.as_str()));
                if !gone(&shown(&results, &around)) {
                    reach.push(format!("{name}: {around:?}"));
                }
                if !gone(&shown(&full, &around)) {
                    kept.push(format!("{name}: {around:?}"));
                }
                // Wherever it is cut.
                if round == 0 && place == 1 {
                    let whole = shown(&results, &around);
                    for cut in 0..=around.len() {
                        let bytes = around.as_bytes();
                        let mut held = bytes[..cut].to_vec();
                        let (free, out) = results.let_go(&held);
                        let mut out = out.into_owned();
                        held.drain(..free);
                        held.extend_from_slice(&bytes[cut..]);
                        out.extend_from_slice(&results.redact(&held));
                        assert_eq!(String::from_utf8_lossy(&out), whole, "{name} cut at {cut}");
                    }
                }
            }
        }
    }
    for list in [&mut reach, &mut kept] {
        list.dedup_by_key(|line| line.split(':').next().unwrap().to_owned());
    }
    assert!(reach.is_empty(), "{} reach a model:\n{}", reach.len(), reach.join("\n"));
    assert!(kept.is_empty(), "{} are kept:\n{}", kept.len(), kept.join("\n"));
    println!("{} kinds of secrets: none in results, none kept", kinds.len());
}

/// What is clean to the full strength is not looked at again for a result.
#[test]
fn the_full_strength_finds_something_wherever_that_of_results_does() {
    let kinds: &[(&str, &str)] = &include!("kinds/kinds.in");
    let known = || KnownSecrets::new([("API_TOKEN", "hunter2-hunter2")]);
    let (results, full) = (Secrets::results(known()), Secrets::full(known()));
    assert!(full.finds_all_of(&results) && full.finds_all_of(&full) && !results.finds_all_of(&full));
    assert!(!Secrets::full(KnownSecrets::default()).finds_all_of(&results), "one more is known to results");
    assert!(!full.finds_all_of(&haft_core::port::NoRedaction), "nothing is known about another redactor");
    let patterns = haft_guard::SecretPatterns::new(["acme: acme_[a-z0-9]{8}"]).unwrap();
    assert!(!full.finds_all_of(&Secrets::results(known()).with_patterns(patterns.clone())));
    let with_patterns = Secrets::full(known()).with_patterns(patterns.clone());
    assert!(with_patterns.finds_all_of(&Secrets::results(known()).with_patterns(patterns)));
    let mut rng = Rng::with_seed(21);
    let mut found = 0;
    for _ in 0..4 {
        for (name, pattern) in kinds {
            let (other, _) = made(kinds[rng.usize(..kinds.len())].1, &mut rng);
            let (text, _) = made(pattern, &mut rng);
            // In each other's way, and cut anywhere.
            let text =
                format!("{}{text}{}", &other[..other.floor_char_boundary(rng.usize(..=other.len()))], other);
            let end = text.floor_char_boundary(rng.usize(..=text.len()));
            for text in [&text[..end], &text[end..], &text[..]] {
                if shown(&results, text) != text {
                    found += 1;
                    assert_ne!(shown(&full, text), text, "{name}: {text:?}");
                }
            }
        }
    }
    assert!(found > 500, "{found}");
}

/// Placeholders, and what has no more than a part of a look.
#[test]
fn what_only_looks_like_a_secret_stays() {
    let results = Secrets::results(KnownSecrets::default());
    let texts = [
        "curl -u user:password https://x",
        "curl -u \"$USER:$PASS\" https://x",
        "curl -u ada https://x:8080/a",
        "curl --user-agent a:bcd https://x",
        "curl https://x -o out:put.txt",
        "sshpass -p \"$PASS\" ssh h",
        "sshpass -e ssh h",
        "https://x/?api_key=YOUR_API_KEY&n=1",
        "https://x/?access_token=${TOKEN}&token={token}",
        "https://x/?token=abc",
        "jdbc:postgresql://db:5432/app?user=ada&password=${DB_PASSWORD}",
        "jdbc:postgresql://db:5432/app?user=ada&ssl=true",
        "jdbc:oracle:thin:@db:1521:x",
        "hostname:5432:database:username:password",
        "ports: [\"127.0.0.1:5432:5432\", \"0.0.0.0:5433:5432/tcp\"]",
        "tls.crt: LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCk1JSURCVENDQWUyZ0F3SUJBZ0lJ",
        "client-key: /home/ada/.kube/key.pem",
        "Private-Lines: 14",
        "PrivateKey = <key>",
        "locale en-us12 722a00ff048f377272db1de46e2315a7-usual 722a00ff048f3772-us12",
        "the SSWS scheme, SSWS token",
        "sk-hynix sk-lf-key nfp_ sntrys_ GOOG1E AKCp",
    ];
    for text in texts {
        assert_eq!(shown(&results, text), text);
    }
}
