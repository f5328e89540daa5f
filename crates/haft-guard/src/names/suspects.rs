//! Names that could be denied, told from those that cannot, without looking at whole paths.
//!
//! In a folder that is not denied, a path can only be denied by a pattern whose last part fits its name: what is
//! below a denied folder is never met, because that folder is not entered. So a walk that starts where nothing is
//! denied needs to look at the whole path of few names.

use std::path::Path;

#[derive(Clone, Debug)]
pub(super) struct Suspects {
    /// Some pattern says too little about names.
    every_name: bool,
    /// The shapes that have a beginning, by its first byte.
    by_first: Vec<Vec<Shape>>,
    /// The others, by the last byte of their end.
    by_last: Vec<Vec<Shape>>,
}

/// What the names that one pattern means look like.
#[derive(Clone, Debug)]
struct Shape {
    begins: Vec<u8>,
    ends: Vec<u8>,
    /// Nothing can be between the two.
    is_whole: bool,
}

impl Default for Suspects {
    fn default() -> Self {
        let empty = || (0..=u8::MAX).map(|_| Vec::new()).collect();
        Suspects { every_name: false, by_first: empty(), by_last: empty() }
    }
}

impl Suspects {
    /// Every name.
    pub(super) fn every_name() -> Self {
        Suspects { every_name: true, ..Suspects::default() }
    }

    /// Adds the names that a pattern, in lower case, can mean.
    pub(super) fn add_pattern(&mut self, pattern: &str) {
        // Where all that is in a folder is denied, the folder is denied, too, and is what a walk meets first.
        let pattern = pattern.strip_suffix("/**").unwrap_or(pattern);
        // Inside such brackets a slash need not be the end of a name.
        let is_plain = !pattern.contains(['{', '[', '\\', '?']);
        let name = pattern.rsplit('/').next().unwrap_or_default();
        match name.split_once('*') {
            _ if !is_plain || name.is_empty() || name.contains("**") => self.every_name = true,
            None => self.add(name, "", true),
            Some((begins, rest)) => self.add(begins, rest.rsplit('*').next().unwrap_or_default(), false),
        }
    }

    /// Adds the name of a folder that is denied.
    pub(super) fn add_folder(&mut self, folder: &Path) {
        match folder.file_name() {
            Some(name) => self.add(&name.to_string_lossy().to_ascii_lowercase(), "", true),
            None => self.every_name = true,
        }
    }

    fn add(&mut self, begins: &str, ends: &str, is_whole: bool) {
        let shape = Shape { begins: begins.into(), ends: ends.into(), is_whole };
        match (begins.bytes().next(), ends.bytes().last()) {
            (Some(first), _) => self.by_first[usize::from(first)].push(shape),
            (None, Some(last)) => self.by_last[usize::from(last)].push(shape),
            (None, None) => self.every_name = true,
        }
    }

    /// Whether a name can be one of those. A name that is not ASCII is: its case may be more than it seems.
    pub(super) fn may_fit(&self, name: &[u8]) -> bool {
        if self.every_name || !name.is_ascii() {
            return true;
        }
        let (Some(first), Some(last)) = (name.first(), name.last()) else { return true };
        let by_first = &self.by_first[usize::from(first.to_ascii_lowercase())];
        let by_last = &self.by_last[usize::from(last.to_ascii_lowercase())];
        by_first.iter().chain(by_last).any(|shape| shape.fits(name))
    }
}

impl Shape {
    fn fits(&self, name: &[u8]) -> bool {
        if name.len() < self.begins.len().max(self.ends.len())
            || (self.is_whole && name.len() != self.begins.len())
        {
            return false;
        }
        // The two may overlap in a short name: it is suspected for nothing, and that is all.
        name[..self.begins.len()].eq_ignore_ascii_case(&self.begins)
            && name[name.len() - self.ends.len()..].eq_ignore_ascii_case(&self.ends)
    }
}
