//! Containment: what a call may reach, enforced by the kernel where the kernel can.
//!
//! - [`path`]: files below roots that cannot be left.
//! - [`guest`]: programs in jails.
//! - [`gate`]: the only way out of a jail's network.
//!
//! A program that makes jails calls [`init`] first thing in its `main`.

pub mod gate;
pub mod guest;
pub mod path;

pub use guest::init;
