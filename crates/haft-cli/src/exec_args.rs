//! What `haft exec` takes.

use clap::{Args, ValueHint};
use haft::config::Profile;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub(super) struct ExecArgs {
    /// Use this profile for the program: locked, read-only, careful or coding
    #[arg(long, value_name = "PROFILE")]
    pub(super) profile: Option<Profile>,
    /// Let it reach a host, such as crates.io, *.example.com or host:8080
    #[arg(long, value_name = "HOST")]
    pub(super) host: Vec<String>,
    /// Let it write another folder
    #[arg(long, value_name = "FOLDER", value_hint = ValueHint::DirPath)]
    pub(super) write: Vec<PathBuf>,
    /// Let it read another file or folder
    #[arg(long, value_name = "PATH", value_hint = ValueHint::AnyPath)]
    pub(super) read: Vec<PathBuf>,
    /// Give it a variable, yours or with a value
    #[arg(long, value_name = "NAME[=VALUE]")]
    pub(super) env: Vec<String>,
    /// Keep what it writes apart, and decide about it when it has ended
    #[arg(long)]
    pub(super) staged: bool,
    /// The most memory for it and all that it starts
    #[arg(long, value_name = "SIZE", default_value = "4G", value_parser = size)]
    pub(super) memory: u64,
    /// Grant nothing of what haft knows that an agent of this name needs
    #[arg(long)]
    pub(super) no_preset: bool,
    /// Take this ticket of `haft hook` for the command, or do not run it
    #[arg(long, value_name = "ID")]
    pub(super) ticket: Option<String>,
    /// The program and its arguments
    #[arg(trailing_var_arg = true, required = true, value_name = "PROGRAM")]
    pub(super) program: Vec<String>,
}

/// A number of bytes with a unit: 512M, 4G.
fn size(text: &str) -> Result<u64, String> {
    let (number, unit) = match text.char_indices().next_back() {
        Some((at, 'K' | 'k')) => (&text[..at], 1 << 10),
        Some((at, 'M' | 'm')) => (&text[..at], 1 << 20),
        Some((at, 'G' | 'g')) => (&text[..at], 1 << 30),
        _ => (text, 1),
    };
    let bytes = number.parse::<u64>().ok().and_then(|number| number.checked_mul(unit));
    bytes
        .filter(|bytes| *bytes >= 1 << 20)
        .ok_or_else(|| "give a size of at least 1M, such as 512M or 4G".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_units() {
        assert_eq!(size("4G"), Ok(4 << 30));
        assert_eq!(size("512m"), Ok(512 << 20));
        assert_eq!(size("1048576"), Ok(1 << 20));
        for bad in ["", "G", "-1G", "1K", "99999999999999999999G", "4T", "ö"] {
            assert!(size(bad).is_err(), "{bad}");
        }
    }
}
