//! Containment: what a call may reach, enforced by the kernel where the kernel can.
//!
//! - [`guest`]: programs in jails.
//!
//! A program that makes jails calls [`init`] first thing in its `main`.

pub mod guest;

pub use guest::init;
