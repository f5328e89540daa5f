//! Folders whose writes are kept apart, in the guest's tree.

use super::*;
use crate::guest::{
    staging::{self, MASKS, Parts, UPPER, WORK},
    wire::Layers,
};
use haft_core::port::LayerMarks;

/// Where the machine's `/proc` is while the tree is made.
const OLD_PROC: &str = "/old/proc";

impl Tree {
    /// Puts a folder with its layers where it is on the machine.
    pub(super) fn stage(&self, bind: &Bind, layers: &Layers, mounts: &[OwnedFd]) -> Result<OwnedFd, Failure> {
        let shown = bind.path.display();
        let made;
        let mount = match layers.mounted {
            Some(number) => mounts.get(number).ok_or(Errno::BADF).stage("read the request")?,
            None => {
                made = self.overlay(bind, layers)?;
                &made
            }
        };
        let target = self.target(&bind.path, true)?;
        move_onto(mount, &target).stage(format!("mount the layers of {shown}"))?;
        mount.try_clone().stage(format!("mount the layers of {shown}"))
    }

    /// Puts layers above a folder, as a user who is nobody outside.
    fn overlay(&self, bind: &Bind, layers: &Layers) -> Result<OwnedFd, Failure> {
        let shown = bind.path.display();
        let inside = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
        let open = |path: &Path| {
            open_inside(&self.old, below_root(path), inside).stage(format!("open {}", path.display()))
        };
        let lower = open(&bind.path)?;
        if !system::is_exactly(&lower, bind)? {
            return Err(Errno::STALE).stage(format!("open {shown}, which is no folder any more"));
        }
        let layer = |name: &str| open(&layers.folder.join(name));
        let masks = if layers.has_masks { Some(layer(MASKS)?) } else { None };
        let (upper, work) = (layer(UPPER)?, layer(WORK)?);
        let lowers: Vec<_> = masks.iter().chain([&lower]).map(|layer| layer.as_fd()).collect();
        let parts = Parts {
            lowers: &lowers,
            upper: upper.as_fd(),
            work: work.as_fd(),
            marks: LayerMarks::User,
            proc: OLD_PROC,
        };
        staging::mount(&parts).stage(format!("put a layer above {shown}"))
    }

    /// What layers hide is where it was when they were made: else something of it may be seen under another name.
    pub(super) fn still_hidden(&self, whiteouts: &[Mask]) -> Result<(), Failure> {
        for hidden in whiteouts {
            find(&self.old, &hidden.path, hidden.exactly)
                .stage(format!("find {} that is hidden", hidden.path.display()))?;
        }
        Ok(())
    }
}
