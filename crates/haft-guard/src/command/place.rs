//! Where the shell is after `cd`, as far as the line itself says.
//!
//! `cd src; ls; cd ..` stays in the working folder; `cd .. && ls` leaves it. What is followed is how deep the shell is
//! at least, on every way through the line: a `cd` that fails leaves it where it was, so `cd src; cd ..` may end
//! outside (there is no `src`), and `cd src && cd ..` cannot. Links are not followed; both shells go by names here,
//! too.

/// The folder that a call works in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Folder<'a> {
    /// Its path from the root; empty where it is not known.
    pub path: &'a str,
    /// Whether the line starts in it, and not in another one that the call names.
    pub is_start: bool,
}

impl Folder<'_> {
    /// How deep below it a path from the root leads.
    fn depth(&self, path: &str) -> Option<usize> {
        let (mut own, mut names) = (names(self.path), names(path));
        if !self.path.starts_with('/') || own.any(|name| names.next() != Some(name)) {
            return None;
        }
        names.try_fold(0_usize, |depth, name| (name != "..").then_some(depth + 1))
    }

    /// Whether a `cd` to this path, at the start of a line, leads nowhere else.
    pub(super) fn stays(&self, path: &str) -> bool {
        path == "." || (self.is_start && path.starts_with('/') && self.depth(path) == Some(0))
    }
}

fn names(path: &str) -> impl Iterator<Item = &str> {
    path.split('/').filter(|name| !matches!(*name, "" | "."))
}

/// How deep below the working folder the shell is at least; `None` where it may be outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place(Option<usize>);

impl Place {
    pub(super) const START: Place = Place(Some(0));

    pub(super) fn may_be_outside(self) -> bool {
        self.0.is_none()
    }

    /// Where a path leads from here.
    pub(super) fn to(self, path: &str, folder: &Folder<'_>) -> Place {
        if path.starts_with('/') {
            return Place(folder.depth(path));
        }
        Place(self.0.and_then(|depth| {
            names(path).try_fold(depth, |depth, name| match name {
                ".." => depth.checked_sub(1),
                _ => Some(depth + 1),
            })
        }))
    }
}

/// Where the shell is after a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct After {
    /// Where it succeeded.
    pub(super) done: Place,
    /// Where it failed.
    pub(super) failed: Place,
}

impl After {
    pub(super) fn both(place: Place) -> After {
        After { done: place, failed: place }
    }

    /// However it ended.
    pub(super) fn any(self) -> Place {
        self.done.min(self.failed)
    }
}

/// Whether the shell's own `cd` goes to a folder that the word names: not home, and not where it was before.
pub(super) fn is_named(folder: &str) -> bool {
    !folder.is_empty() && !folder.starts_with(['-', '~'])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_counted_by_names() {
        let folder = Folder { path: "/w/a", is_start: true };
        let cases = [
            ("src", Some(3)),
            ("./src//deep/", Some(4)),
            (".", Some(2)),
            ("..", Some(1)),
            ("../..", Some(0)),
            ("../../x/y", Some(2)),
            ("../../..", None),
            ("../../../w", None),
            ("/w/a", Some(0)),
            ("/w/a/", Some(0)),
            ("/w/./a/b", Some(1)),
            ("/w/ab", None),
            ("/w", None),
            ("/", None),
            ("/w/a/../a", None),
            ("/w/a/b/..", None),
        ];
        for (path, expected) in cases {
            assert_eq!(Place(Some(2)).to(path, &folder), Place(expected), "{path}");
        }
        assert_eq!(Place(None).to("src", &folder), Place(None));
        assert_eq!(Place(None).to("/w/a/b", &folder), Place(Some(1)));
        assert_eq!(Place::START.to("/w", &Folder::default()), Place(None), "no folder is known");
        assert!(Place(None) < Place::START);
    }
}
