//! What of haft's environment a guest may see: next to nothing.

use std::collections::BTreeMap;

/// Names that say how to speak and where programs are, and no more.
const HARMLESS: [&str; 5] = ["PATH", "LANG", "TZ", "TERM", "COLORTERM"];

/// The environment that a guest starts with: of haft's only `PATH`, `LANG`, `LC_*`, `TZ` and `TERM`, plus what the
/// call declares. `HOME` is the jail's own, and is set by it.
///
/// ```
/// use haft_jail::guest::environment;
/// let host = [("PATH", "/bin"), ("LC_ALL", "C"), ("AWS_SECRET_ACCESS_KEY", "x")];
/// let host = host.map(|(name, value)| (name.to_owned(), value.to_owned()));
/// let guest = environment(host, [("CI".to_owned(), "1".to_owned())]);
/// assert_eq!(guest.keys().collect::<Vec<_>>(), ["CI", "LC_ALL", "PATH"]);
/// ```
pub fn environment(
    host: impl IntoIterator<Item = (String, String)>,
    declared: impl IntoIterator<Item = (String, String)>,
) -> BTreeMap<String, String> {
    let harmless = |name: &str| HARMLESS.contains(&name) || name.starts_with("LC_");
    let mut guest: BTreeMap<String, String> = host.into_iter().filter(|(name, _)| harmless(name)).collect();
    guest.extend(declared);
    guest
}

/// Where programs are looked for when nobody says.
#[cfg(target_os = "linux")]
pub(crate) const PATH: &str = "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin";
