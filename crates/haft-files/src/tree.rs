//! Whole trees, by handles: what is in them, their extended attributes, copies, removal. Linux.

mod copy;
mod digest;
mod known;
mod remove;
mod xattrs;

pub(crate) use copy::{Copier, set_meta};
pub(crate) use digest::{Digest, digest};
pub(crate) use known::{Entered, Known, What, enter};
pub(crate) use remove::{remove_tree, size_of};
pub(crate) use xattrs::{Marks, mark_opaque, marks, others, same_others, strip_tree};
