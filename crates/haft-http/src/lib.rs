//! What haft's HTTP listeners share: bounds for bodies, counts for callers, patience with slow readers.
//!
//! | file | what | I/O |
//! |---|---|---|
//! | `slots` | how much each of many may have at once, and all together | none |
//! | `body` | a request's body as a whole: bounded in bytes, in time, and over all requests | reads a body |
//! | `head` | how large the head of a request may be, and is | none |
//! | `patient` | a connection that ends where its client takes nothing | wraps a stream |
//!
//! The attacker is anybody who can connect, or who has a key: one who sends a byte at a time, sends nothing, reads
//! nothing, or comes a thousand times. What is defended is the memory of the process, and room for everybody else.

mod body;
mod head;
mod patient;
mod slots;

pub use body::{Bodies, BodyLimits, BodyProblem, WholeBody};
pub use head::{LARGEST_HEAD, head_bytes};
pub use patient::Patient;
pub use slots::{Full, Slot, Slots};
