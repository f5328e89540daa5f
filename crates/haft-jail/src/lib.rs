//! Containment: what a call may reach, enforced by the kernel where the kernel can.

pub mod gate;
pub mod path;
