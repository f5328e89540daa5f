//! Programs in jails: what they may reach, enforced by the kernel where the kernel can. See [`guest`].
//!
//! A program that makes jails calls [`init`] first thing in its `main`.

pub mod guest;

pub use guest::init;
