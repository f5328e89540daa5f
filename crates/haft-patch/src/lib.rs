//! Text edits for haft: patches in three formats, and the diff of two texts.
//!
//! | format | looks like | good for |
//! |---|---|---|
//! | [`lp1`] | `LP1` … `END` | exact edits by whole lines, final newline included |
//! | [`envelope`] | `*** Begin Patch` … `*** End Patch` | edits by context, new, deleted and moved files |
//! | [`unified`] | `--- a/x`, `+++ b/x`, `@@ -1,3 +1,4 @@` | what `diff` and `git` write |
//!
//! [`parse`] recognises the format. [`Patch::paths`] says what would be touched, before anything is read. [`apply`]
//! works on copies in memory and gives back every changed file, or an error and nothing.
//!
//! ```
//! let patch = haft_patch::parse("LP1\nF greeting.txt\nR\nhello\n.\ngood morning\n.\nEND\n")?;
//! let changes = haft_patch::apply(&patch, &mut |path: &str| match path {
//!     "greeting.txt" => Ok(Some(b"hello\nworld\n".to_vec())),
//!     _ => Err("no such file"),
//! })?;
//! assert_eq!(changes[0].after.as_deref(), Some(&b"good morning\nworld\n"[..]));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! **Architecture Invariant:** text in, text out. This crate opens no file and knows no folder: whether a path may be
//! touched is for the caller to decide, who hands the content in and writes the changes.
#![forbid(unsafe_code)]

mod diff;
pub mod envelope;
mod error;
mod lines;
pub mod lp1;
mod nearest;
mod patch;
mod stage;
pub mod unified;

pub use diff::{MAX_DIFF_BYTES, diff};
pub use error::{ApplyError, PatchError, PatchErrorKind};
pub use nearest::{Nearest, Why, nearest};
pub use patch::{Format, Patch, PathAction, PathUse, Remark, parse, recognise};
pub use stage::{ChangeKind, FileChange, ReadFile, apply, inverse};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
