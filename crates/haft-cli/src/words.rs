//! Small things that are typed and shown.

use haft_core::{iso_duration, text};
use std::{
    io,
    path::{Path, PathBuf},
    time::Duration,
};

/// `5s`, `1m30s`, `PT5S`.
pub(super) fn time(typed: &str) -> Result<Duration, String> {
    iso_duration::parse(typed).map_err(|_| "write it like 5s, 500ms, 2m or PT5S".to_owned())
}

/// A licence tier, in any case.
pub(super) fn tier(typed: &str) -> Result<haft_core::Tier, String> {
    let named = haft_core::Tier::ALL.into_iter().find(|tier| format!("{tier:?}").eq_ignore_ascii_case(typed));
    named.ok_or_else(|| "write Core, WriterPro, Teams or Enterprise".to_owned())
}

/// How many calls at once.
pub(super) fn at_once(typed: &str) -> Result<usize, String> {
    // What is no number is none that can be asked for.
    let number = typed.parse().unwrap_or(0);
    haft::BatchOptions::check_at_once(number).map(|()| number).map_err(|bad| bad.to_string())
}

/// How many retries.
pub(super) fn retries(typed: &str) -> Result<u32, String> {
    let number = typed.parse().map_err(|_| "write a number, such as 2".to_owned())?;
    haft::Retry::times(number, Duration::ZERO).check().map(|()| number).map_err(|bad| bad.to_string())
}

/// `tools.mode=disabled`.
pub(super) fn setting(typed: &str) -> Result<(String, String), String> {
    match typed.split_once('=') {
        Some((key, value)) if !key.trim().is_empty() => Ok((key.trim().to_owned(), value.to_owned())),
        _ => Err("write it like tools.approval.mode=deny".to_owned()),
    }
}

/// A time as a person reads it: two or three digits, whatever its size.
pub(super) fn duration(time: Duration) -> String {
    let millis = time.as_secs_f64() * 1000.0;
    if millis < 9.95 {
        format!("{millis:.1} ms")
    } else if millis < 999.5 {
        format!("{millis:.0} ms")
    } else if millis < 59_950.0 {
        format!("{:.1} s", millis / 1000.0)
    } else {
        let seconds = time.as_secs() + u64::from(time.subsec_millis() >= 500);
        format!("{} min {} s", seconds / 60, seconds % 60)
    }
}

/// A name that somebody else chose, safe to show on one line.
pub(super) fn name(text: &str) -> String {
    text::one_line(text, 80)
}

/// A path, safe to show on one line.
pub(super) fn path(path: &Path) -> String {
    text::one_line(&path.to_string_lossy(), 4096)
}

/// Why something could not be read or written, without the number that only the system knows.
pub(super) fn reason(error: &io::Error) -> String {
    let text = error.to_string();
    text.split_once(" (os error").map_or(text.as_str(), |(words, _)| words).to_owned()
}

/// A path as a person finds it: relative where it is inside the working folder.
pub(super) fn relative(path: &Path, working_folder: &Path) -> PathBuf {
    path.strip_prefix(working_folder).unwrap_or(path).to_path_buf()
}

/// `1 call`, `2 calls`.
pub(super) fn count(number: usize, what: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {what}{plural}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_two_or_three_digits() {
        for (micros, shown) in [
            (0, "0.0 ms"),
            (400, "0.4 ms"),
            (9_949, "9.9 ms"),
            (9_951, "10 ms"),
            (999_400, "999 ms"),
            (999_600, "1.0 s"),
            (59_940_000, "59.9 s"),
            (59_960_000, "1 min 0 s"),
            (125_000_000, "2 min 5 s"),
        ] {
            assert_eq!(duration(Duration::from_micros(micros)), shown, "{micros} µs");
        }
    }

    #[test]
    fn times_are_typed_in_either_form() {
        for (typed, millis) in
            [("5s", 5_000), ("PT5S", 5_000), ("500ms", 500), ("1m30s", 90_000), ("2 minutes", 120_000)]
        {
            assert_eq!(time(typed), Ok(Duration::from_millis(millis)), "{typed}");
        }
        for wrong in ["", "5", "-5s", "soon", "PT"] {
            assert!(time(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_setting_has_a_key() {
        assert_eq!(setting("a.b=c=d"), Ok(("a.b".to_owned(), "c=d".to_owned())));
        assert_eq!(setting("a="), Ok(("a".to_owned(), String::new())));
        assert!(setting("=b").is_err() && setting("ab").is_err());
    }
}
