//! Licences: the authority and the file that a configuration names.

use crate::{Error, config::Config};
use haft_guard::{LicenceProblem, Licensing, PublicKey, TrustedKeys};
use std::{io, path::Path};

/// A licence is a few lines.
const LARGEST: u64 = 64 << 10;

/// How tiers are given. `beside` is the folder of the user's own configuration, where paths start.
///
/// A file that cannot be read is like one that does not count: the tier is Core, and the reason is known.
pub fn licensing(config: &Config, beside: Option<&Path>) -> Result<Licensing, Error> {
    let license = &config.license;
    if license.authority.is_empty() {
        return Ok(Licensing::Unlimited);
    }
    let authority: PublicKey = license
        .authority
        .parse()
        .map_err(|problem| Error::Licence(format!("license.authority: {problem}")))?;
    let authority = TrustedKeys::new([authority]);
    let path = license.path(beside.unwrap_or(Path::new("")));
    Ok(match read(&path) {
        Ok(text) => Licensing::new(&authority, Some(&text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound && license.file.is_empty() => {
            Licensing::new(&authority, None)
        }
        Err(error) => {
            Licensing::ByLicence(Err(LicenceProblem::Unreadable(format!("{}: {error}", path.display()))))
        }
    })
}

fn read(path: &Path) -> io::Result<String> {
    if std::fs::metadata(path)?.len() > LARGEST {
        return Err(io::Error::other("it is too large to be a licence"));
    }
    std::fs::read_to_string(path)
}
