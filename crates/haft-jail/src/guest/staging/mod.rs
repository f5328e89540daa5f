//! Writes that are kept apart: every writable folder of a guest is the lower layer of an overlay, and what the guest
//! writes goes to an upper layer in haft's state, which is looked at when the guest has ended.
//!
//! ```text
//!   upper    what the guest wrote                      haft's state
//!   masks    whiteouts of what it must not see         haft's state, read-only
//!   lower    the folder that was granted               read-only
//! ```
//!
//! - Root mounts it outside of the guest's namespaces, with `trusted.overlay.*`, and hands the mount in: folders can be
//!   renamed, and files of every owner changed. Everybody else mounts it inside, with `user.overlay.*`.
//! - Masks are whiteouts and not mounts: a folder around one can be renamed, and it stays hidden.
//! - Nothing below such a folder is taken from the machine again: what stays read-only in it is mounted from the merged
//!   tree.

mod attributes;
mod bounds;
mod checks;
mod layers;
mod overlay;
mod owners;

pub(crate) use bounds::Bounds;
pub(crate) use checks::{mounts_within, probe};
pub use layers::remove_layers;
pub(crate) use layers::{MASKS, Prepared, UPPER, WORK, prepare};
pub(crate) use overlay::{Parts, mount};
pub(crate) use owners::{Writer, writer};

use super::{
    mask::{Findings, Found, folders_around, is_within},
    survey::Id,
    wire::Bind,
};
use haft_core::port::{StageSpec, Unstageable};
use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

/// What of a guest's folders is kept apart, and what stays as it is in them.
#[derive(Clone, Debug)]
pub(crate) struct Staging {
    pub(crate) spec: StageSpec,
    pub(crate) roots: Vec<Root>,
    /// Mounted from the merged trees, parents first.
    pub(crate) pins: Vec<Bind>,
}

/// A folder whose writes are kept apart.
#[derive(Clone, Debug)]
pub(crate) struct Root {
    pub(crate) path: PathBuf,
    pub(crate) id: Id,
    pub(crate) hidden: Vec<Found>,
}

impl Staging {
    /// Whether a layer hides it.
    pub(crate) fn hides(&self, path: &Path) -> bool {
        self.roots.iter().any(|root| root.hidden.iter().any(|hidden| hidden.path == path))
    }
}

/// Something that is granted.
#[derive(Clone, Copy, Debug)]
struct Grant<'a> {
    path: &'a Path,
    writable: bool,
    is_dir: bool,
}

/// What becomes of something that is granted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    /// Bound from the machine, read-only.
    Bound,
    /// The lower layer of an overlay.
    Root,
    /// A part of something else that needs nothing of its own.
    Part,
    /// A part of a merged tree that stays as it is.
    Fixed,
}

fn unstageable(path: &Path, reason: String, fix: &str) -> Unstageable {
    Unstageable { path: Some(path.to_owned()), reason, fix: fix.to_owned() }
}

/// The parts that granted paths play, which come with those around them first.
fn roles(grants: &[Grant<'_>]) -> Result<Vec<Role>, Unstageable> {
    let mut roles: Vec<Role> = Vec::new();
    for grant in grants {
        let around = grants.iter().zip(&roles).rfind(|(other, _)| {
            other.path != grant.path
                && grant.path.starts_with(other.path)
                // The nearest one: what is sorted between two need not be around the second.
                && !grants.iter().zip(&roles).any(|(nearer, _)| {
                    nearer.path != grant.path
                        && nearer.path != other.path
                        && grant.path.starts_with(nearer.path)
                        && nearer.path.starts_with(other.path)
                })
        });
        let around = around.map(|(other, role)| (other.writable, *role));
        roles.push(match (grant.writable, around) {
            (true, Some((true, _))) => Role::Part,
            (true, Some((false, Role::Fixed | Role::Part))) => {
                let shown = grant.path.display();
                let why = format!("{shown} is writable in a read-only folder of a writable one");
                return Err(unstageable(grant.path, why, "grant one folder only"));
            }
            (true, None | Some((false, _))) if grant.is_dir => Role::Root,
            (true, None | Some((false, _))) => {
                let why =
                    format!("{} is a single file, and only folders can be staged", grant.path.display());
                return Err(unstageable(grant.path, why, "grant the folder that it is in"));
            }
            (false, Some((true, _))) => Role::Fixed,
            (false, Some((false, Role::Fixed | Role::Part))) => Role::Part,
            (false, None | Some((false, _))) => Role::Bound,
        });
    }
    Ok(roles)
}

/// Decides what is kept apart and how, and looks for what cannot be. Only what is still to be bound, and the roots,
/// stay among the binds.
pub(crate) fn plan(
    spec: &StageSpec,
    binds: &mut BTreeMap<PathBuf, Bind>,
    found: &Findings,
) -> Result<Staging, Unstageable> {
    let all: Vec<Bind> = binds.values().cloned().collect();
    let grant = |bind: &'_ Bind| {
        (bind.path.clone(), bind.writable, fs::metadata(&bind.path).is_ok_and(|at| at.is_dir()))
    };
    let grants: Vec<_> = all.iter().map(grant).collect();
    let grants: Vec<_> = grants
        .iter()
        .map(|(path, writable, is_dir)| Grant { path, writable: *writable, is_dir: *is_dir })
        .collect();
    let roles = roles(&grants)?;
    let of = |role: Role| all.iter().zip(&roles).filter(move |(_, is)| **is == role).map(|(bind, _)| bind);
    // Where a hidden path is mounted from: the nearest mount around it.
    let is_mounted = |path: &Path| {
        let mounted = all.iter().zip(&roles).filter(|(_, role)| matches!(role, Role::Bound | Role::Root));
        mounted
            .filter(|(bind, _)| is_within(path, &bind.path))
            .max_by_key(|(bind, _)| bind.path.as_os_str().len())
    };
    let mut roots: Vec<Root> = of(Role::Root)
        .map(|bind| {
            let id = Id { device: bind.device, inode: bind.inode };
            Root { path: bind.path.clone(), id, hidden: Vec::new() }
        })
        .collect();
    for denied in &found.denied {
        let Some((around, Role::Root)) = is_mounted(&denied.path) else { continue };
        if denied.path == around.path {
            let why = format!("{} cannot be looked into", denied.path.display());
            return Err(unstageable(&denied.path, why, "grant a folder that you can read"));
        }
        if let Some(root) = roots.iter_mut().find(|root| root.path == around.path) {
            root.hidden.push(denied.clone());
        }
    }
    checks::check(spec, &roots, found)?;
    let is_hidden = |path: &Path| found.denied.iter().any(|denied| is_within(path, &denied.path));
    let fixed: Vec<&Bind> = of(Role::Fixed).filter(|bind| !is_hidden(&bind.path)).collect();
    let folders: Vec<PathBuf> = roots.iter().map(|root| root.path.clone()).collect();
    let around = folders_around(fixed.iter().map(|bind| &*bind.path), &folders);
    let mut pins: BTreeMap<PathBuf, Bind> = around
        .into_iter()
        .map(|path| (path.clone(), Bind { path, writable: true, device: 0, inode: 0, layers: None }))
        .collect();
    pins.extend(fixed.into_iter().map(|bind| (bind.path.clone(), bind.clone())));
    for (bind, role) in all.iter().zip(&roles) {
        if matches!(role, Role::Part | Role::Fixed) {
            binds.remove(&bind.path);
        }
    }
    Ok(Staging { spec: spec.clone(), roots, pins: pins.into_values().collect() })
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    fn of(grants: &[(&str, bool, bool)]) -> Result<Vec<Role>, String> {
        let grants: Vec<_> = grants
            .iter()
            .map(|(path, writable, is_dir)| Grant {
                path: Path::new(path),
                writable: *writable,
                is_dir: *is_dir,
            })
            .collect();
        roles(&grants).map_err(|why| why.to_string())
    }

    #[test]
    fn nothing_below_a_staged_folder_is_bound_from_the_machine() {
        use Role::{Bound, Fixed, Part, Root};
        let (write, read) = (true, false);
        for (grants, expected) in [
            (vec![("/w", write, true)], vec![Root]),
            (vec![("/r", read, true), ("/w", write, true)], vec![Bound, Root]),
            (vec![("/w", write, true), ("/w/a", read, true), ("/w/b", write, true)], vec![Root, Fixed, Part]),
            (
                vec![("/w", write, true), ("/w/a", read, true), ("/w/a/b", read, false)],
                vec![Root, Fixed, Part],
            ),
            (
                vec![("/r", read, true), ("/r/w", write, true), ("/r/w/f", read, false)],
                vec![Bound, Root, Fixed],
            ),
            (
                vec![("/r", read, true), ("/r/s", read, true), ("/r/s/w", write, true)],
                vec![Bound, Bound, Root],
            ),
            (
                vec![("/w", write, true), ("/w/b", write, true), ("/w/b/f", write, false)],
                vec![Root, Part, Part],
            ),
            // Sorted between, and not around.
            (
                vec![("/w", write, true), ("/w/a", read, true), ("/w/b/c", read, true)],
                vec![Root, Fixed, Fixed],
            ),
            (
                vec![("/w", write, true), ("/w-a", read, true), ("/w-a/w", write, true)],
                vec![Root, Bound, Root],
            ),
        ] {
            assert_eq!(of(&grants).unwrap(), expected, "{grants:?}");
        }
        let file = of(&[("/w/f", write, false)]).unwrap_err();
        assert!(file.contains("/w/f") && file.contains("folder"), "{file}");
        assert!(of(&[("/w", write, true), ("/w/r", read, true), ("/w/r/w", write, true)]).is_err());
    }
}
