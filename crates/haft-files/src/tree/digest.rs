//! Whether a tree is still as it was: by names, kinds, permissions, owners, lengths and times, not by bytes.

use super::{Known, What, enter};
use crate::folder::Folder;
use sha2::{Digest as _, Sha256};
use std::{ffi::OsStr, io, os::unix::ffi::OsStrExt as _};

/// What is added up to one value, entry by entry.
#[derive(Clone, Default)]
pub(crate) struct Digest(Sha256);

impl Digest {
    /// Adds an entry, with the target of a link. Times of folders change with what is in them, so they are left out.
    pub(crate) fn add(&mut self, name: &OsStr, known: &Known, target: Option<&OsStr>) {
        let (kind, len, modified) = match known.what {
            What::File => (1_u8, known.len, known.modified),
            What::Folder => (2, 0, (0, 0)),
            What::Link => (3, 0, known.modified),
            What::Nothing => (4, 0, (0, 0)),
            What::Special(_) => (5, 0, (0, 0)),
        };
        self.bytes(name.as_bytes());
        self.bytes(target.unwrap_or_default().as_bytes());
        self.0.update([kind]);
        for number in [known.mode, known.owner.0, known.owner.1, modified.1] {
            self.0.update(number.to_le_bytes());
        }
        self.0.update(len.to_le_bytes());
        self.0.update(modified.0.to_le_bytes());
    }

    /// Adds a text, so that its end is clear.
    pub(crate) fn bytes(&mut self, bytes: &[u8]) {
        self.0.update((bytes.len() as u64).to_le_bytes());
        self.0.update(bytes);
    }

    /// The value, in hex.
    pub(crate) fn finish(self) -> String {
        self.0.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

/// The value of what has that name, with all that is in it. Its own name does not count.
pub(crate) fn digest(folder: &Folder, name: &OsStr, known: &Known) -> io::Result<String> {
    let mut digest = Digest::default();
    add(&mut digest, folder, name, OsStr::new(""), known)?;
    Ok(digest.finish())
}

fn add(digest: &mut Digest, folder: &Folder, name: &OsStr, as_name: &OsStr, known: &Known) -> io::Result<()> {
    let target = (known.what == What::Link).then(|| folder.link_target(name)).transpose()?;
    digest.add(as_name, known, target.as_deref());
    if known.is_folder() {
        let inner = enter(folder, name)?;
        for name in inner.sorted()? {
            let known = inner.known(&name)?.ok_or(io::ErrorKind::NotFound)?;
            add(digest, &inner, &name, &name, &known)?;
        }
        digest.bytes(b"end");
    }
    Ok(())
}
