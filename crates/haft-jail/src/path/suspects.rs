//! Names that could be denied, told from those that cannot, without looking at whole paths.
//!
//! In a folder that is not denied, a path can only be denied by a pattern whose last part fits its name: what is
//! below a denied folder is never met, because that folder is not entered. So a walk that starts where nothing is
//! denied needs to look at the whole path of few names.

use std::path::Path;

/// The longest name that is looked at; a longer one is suspected.
const LONGEST: usize = 256;

#[derive(Debug)]
pub(super) struct Suspects {
    /// Some pattern says too little about names.
    every_name: bool,
    shapes: Vec<Shape>,
    /// The first bytes of shapes that have a beginning, and the last bytes of the others.
    first: [bool; 256],
    last: [bool; 256],
}

/// What the names that one pattern means look like.
#[derive(Debug)]
struct Shape {
    begins: Vec<u8>,
    ends: Vec<u8>,
    /// Nothing can be between the two.
    is_whole: bool,
}

impl Default for Suspects {
    fn default() -> Self {
        Suspects { every_name: false, shapes: Vec::new(), first: [false; 256], last: [false; 256] }
    }
}

impl Suspects {
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
        match (begins.bytes().next(), ends.bytes().last()) {
            (Some(first), _) => self.first[usize::from(first)] = true,
            (None, Some(last)) => self.last[usize::from(last)] = true,
            (None, None) => self.every_name = true,
        }
        self.shapes.push(Shape { begins: begins.into(), ends: ends.into(), is_whole });
    }

    /// Whether a name can be denied. A name that is not ASCII is: its case may be more than it seems.
    pub(super) fn may_be_denied(&self, name: &[u8]) -> bool {
        if self.every_name || !name.is_ascii() || name.len() > LONGEST {
            return true;
        }
        let (Some(first), Some(last)) = (name.first(), name.last()) else { return true };
        let first = self.first[usize::from(first.to_ascii_lowercase())];
        if !first && !self.last[usize::from(last.to_ascii_lowercase())] {
            return false;
        }
        let mut lower = [0; LONGEST];
        let lower = &mut lower[..name.len()];
        lower.copy_from_slice(name);
        lower.make_ascii_lowercase();
        self.shapes.iter().any(|shape| shape.fits(lower))
    }
}

impl Shape {
    fn fits(&self, name: &[u8]) -> bool {
        match self.is_whole {
            true => name == self.begins,
            // They may overlap in a name that is too short: such a name is suspected for nothing, and that is all.
            false => name.starts_with(&self.begins) && name.ends_with(&self.ends),
        }
    }
}
