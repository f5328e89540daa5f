//! Where a path that a tool names leads.

use super::*;

impl PathJail {
    /// What a path says, without looking: its root, and the names below it.
    pub(super) fn literal(&self, path: &str) -> Result<Spot, PathError> {
        let lexical = lexical::read(path)?;
        if !lexical.is_absolute {
            let mut below = PathBuf::with_capacity(path.len());
            below.extend(lexical.names);
            let spot = Spot { root: 0, below };
            // It may lead into another root, which has rules of its own.
            return Ok(match self.roots.len() {
                1 => spot,
                _ => self.spot_of(&self.full(&spot)).unwrap_or(spot),
            });
        }
        let mut full = PathBuf::from(format!("{}/", lexical.prefix));
        full.extend(&lexical.names);
        let spot = self.spot_of(&full);
        if self.allow_absolute {
            // It may still lead inside through a link that lies outside.
            return match spot {
                Some(spot) => Ok(spot),
                None => self.resolve_full(path, &full),
            };
        }
        let resolved = shown(&full.to_string_lossy());
        let hint = spot.map(|spot| match spot.root {
            0 => format!("Absolute paths are not allowed; this one is '{}'", self.place(&spot).shown),
            _ => "Absolute paths are not allowed; tools.files.allow_absolute = true allows those that lead into \
                  a root"
                .to_owned(),
        });
        Err(PathError::Outside { attempted: shown(path), resolved: Some(resolved), hint })
    }

    /// The checked path behind a path, following links; of what is not there, what it would be.
    pub(super) fn follow(&self, path: &str) -> Result<Spot, PathError> {
        let spot = self.literal(path)?;
        let (root, below) = self.parts(&spot);
        match root.folder.entry_below(below, self.opener) {
            Ok(entry) if entry.kind != Kind::Link => Ok(spot),
            Ok(_) => self.resolve(path, &spot),
            Err(error) if says_link(&error) => self.resolve(path, &spot),
            // Opening says better what is wrong with it.
            Err(_) => Ok(spot),
        }
    }

    /// The checked path with the last name as it is, and links before it followed.
    pub(super) fn spot_unless_link(&self, path: &str) -> Result<Spot, PathError> {
        let spot = self.literal(path)?;
        let (Some(parent), Some(name)) = (spot.below.parent(), spot.below.file_name()) else {
            return Ok(spot);
        };
        let folder = Spot { root: spot.root, below: parent.to_path_buf() };
        let (root, below) = self.parts(&folder);
        match root.folder.entry_below(below, self.opener) {
            Ok(entry) if entry.kind != Kind::Link => Ok(spot),
            Ok(_) => self.resolve(path, &folder).map(|found| found.join(name)),
            Err(error) if says_link(&error) => self.resolve(path, &folder).map(|found| found.join(name)),
            Err(_) => Ok(spot),
        }
    }

    pub(super) fn refuse_link(&self, path: &str, spot: &Spot) -> Result<(), PathError> {
        let (root, below) = self.parts(spot);
        match root.folder.entry_below(below, self.opener) {
            Ok(entry) if entry.kind == Kind::Link => {
                let target =
                    self.full(spot).canonicalize().ok().map(|target| shown(&target.to_string_lossy()));
                Err(PathError::Link { attempted: shown(path), target })
            }
            _ => Ok(()),
        }
    }

    /// Where a path with links on it really leads. What does not exist keeps its name below what does.
    pub(super) fn resolve(&self, attempted: &str, spot: &Spot) -> Result<Spot, PathError> {
        self.resolve_full(attempted, &self.full(spot))
    }

    /// Resolves a path to something that must exist: a link that leads nowhere would only be found again.
    pub(super) fn resolve_existing(&self, attempted: &str, spot: &Spot) -> Result<Spot, PathError> {
        match real_path(&self.full(spot)) {
            Ok((real, true)) => self.inside(attempted, &real),
            Ok((_, false)) => Err(PathError::NotFound { attempted: shown(attempted) }),
            Err(error) => Err(PathError::io(attempted, error)),
        }
    }

    pub(super) fn resolve_full(&self, attempted: &str, full: &Path) -> Result<Spot, PathError> {
        let (real, _) = real_path(full).map_err(|error| PathError::io(attempted, error))?;
        self.inside(attempted, &real)
    }

    pub(super) fn inside(&self, attempted: &str, real: &Path) -> Result<Spot, PathError> {
        self.spot_of(real).ok_or_else(|| PathError::outside(attempted, Some(real)))
    }

    pub(super) fn regular(&self, path: &str, file: File, spot: &Spot) -> Result<Opened, PathError> {
        let entry = entry_of_file(&file).map_err(|error| PathError::io(path, error))?;
        match entry.kind {
            Kind::File if self.is_of_the_system(&file, &entry, spot) => {
                Err(PathError::denied(path, &self.full(spot), "the kernel's own file systems"))
            }
            Kind::File => Ok(Opened { file, place: self.place(spot), len: entry.len }),
            Kind::Folder => Err(PathError::Folder { attempted: shown(path) }),
            Kind::Link | Kind::Other => Err(special(path)),
        }
    }
}

/// A path without links, and whether something is there. What is not there keeps its name below what is.
pub(super) fn real_path(full: &Path) -> io::Result<(PathBuf, bool)> {
    let mut missing = PathBuf::new();
    for existing in full.ancestors() {
        match existing.canonicalize() {
            Ok(real) if missing.as_os_str().is_empty() => return Ok((real, true)),
            Ok(real) => return Ok((real.join(missing), false)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let name = Path::new(existing.file_name().unwrap_or_default());
                // Joining nothing would add a slash.
                missing = if missing.as_os_str().is_empty() { name.into() } else { name.join(&missing) };
            }
            Err(error) => return Err(error),
        }
    }
    Err(io::ErrorKind::NotFound.into())
}
