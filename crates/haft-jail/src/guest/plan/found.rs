//! What of the granted paths is hidden, held and read-only.

use super::*;

/// What of the granted paths must be hidden or stay as it is; haft's own folders among them.
pub(super) fn find(
    spec: &GuestSpec,
    granted: &Granted,
    facts: &Facts,
    staged: bool,
) -> Result<Findings, ToolError> {
    let refused = |why: String| ToolError::new(ErrorCode::FilesystemPolicyViolation, why);
    let patterns = mask::compile(&spec.denied).map_err(refused)?;
    let found = match staged {
        // What it writes under a protected name is looked at before it is anywhere.
        true => mask::find_staged(granted, &patterns, staging::writer()),
        false => mask::find(granted, &patterns, &facts.names),
    };
    let mut found = found.map_err(refused)?;
    for path in &facts.protected {
        let Some(own) = own_folder(path, granted).map_err(refused)? else { continue };
        if let Some(inside) = granted.all().find(|granted| mask::is_within(granted, &own)) {
            return Err(refused(format!("{} is haft's own and cannot be granted", inside.display())));
        }
        if granted.all().any(|granted| mask::is_within(&own, granted)) {
            let gone = || refused(format!("{} is haft's own and cannot be hidden", own.display()));
            found.denied.push(Found::at(&own).ok_or_else(gone)?);
        }
    }
    if granted.all().next().is_some() {
        let others = quarantine::links_of_running(&facts.state);
        found.hiding.add_all(others.map_err(|error| broken("what others hide is not known", error))?);
    }
    found.denied.extend(found.hiding.targets(granted).filter_map(|target| Found::at(target)));
    // What is inside of something hidden is hidden with it.
    found.denied.sort();
    found.denied.dedup_by(|inner, outer| mask::is_within(&inner.path, &outer.path));
    found.whole = gather::whole_folders(&found.denied, granted, gather::MOST_MASKS).map_err(refused)?;
    for folder in &found.whole {
        let gone = || refused(format!("{} cannot be hidden: it is gone", folder.display()));
        found.denied.retain(|denied| !mask::is_within(&denied.path, folder));
        found.denied.push(Found::at(folder).ok_or_else(gone)?);
    }
    found.denied.sort();
    Ok(found)
}

/// The real place of something of haft's own. A folder that is not there is made where a guest could make it: what is
/// in it would be haft's next configuration.
fn own_folder(path: &Path, granted: &Granted) -> Result<Option<PathBuf>, String> {
    if let Ok(real) = fs::canonicalize(path) {
        return Ok(Some(real));
    }
    let there = path.ancestors().find_map(|folder| fs::canonicalize(folder).ok());
    let could_be_made =
        there.is_some_and(|there| granted.writable.iter().any(|root| mask::is_within(&there, root)));
    // A file of that name cannot be made ahead; a new one is noticed by its name.
    if !could_be_made || path.extension().is_some() {
        return Ok(None);
    }
    let made = fs::create_dir_all(path).and_then(|()| fs::canonicalize(path));
    made.map(Some).map_err(|error| format!("{} is haft's own and cannot be hidden: {error}", path.display()))
}

/// What is mounted on itself: what must not change, read-only; repositories; and the folders around what is hidden or
/// granted for reading only, because moving one of those takes it out of its place for the next guest.
pub(super) fn pins(found: &Findings, granted: &Granted, grants: &Grants) -> Vec<Bind> {
    let inner = granted
        .all()
        .filter(|path| granted.writable.iter().any(|root| *path != root && path.starts_with(root)));
    let stay = found.denied.iter().map(|denied| &denied.path).chain(inner).map(PathBuf::as_path);
    let stay = stay.chain(found.hiding.paths());
    let around = mask::folders_around(stay, &granted.writable);
    let around: Vec<Found> = around.iter().filter_map(|folder| Found::at(folder)).collect();
    let mut pins = BTreeMap::new();
    let writable = around.iter().chain(&found.held).map(|held| (held, true));
    for (pin, writable) in writable.chain(found.fixed.iter().map(|fixed| (fixed, false))) {
        let Id { device, inode } = pin.id;
        pins.insert(&pin.path, Bind { path: pin.path.clone(), writable, device, inode, layers: None });
    }
    pins.into_iter().filter(|(path, _)| !grants.binds.contains_key(*path)).map(|(_, pin)| pin).collect()
}
