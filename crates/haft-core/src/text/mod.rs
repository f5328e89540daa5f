//! Text that leaves a tool: made safe to read, and made to fit.
//!
//! A tool's output is raw bytes from a program nobody vouches for. Stored bytes and structured output stay
//! raw; what is *read* passes through one of three doors, by who reads it:
//!
//! | reader | door | takes out or shows |
//! |---|---|---|
//! | a model | [`model_text`], [`ModelText`] | escape sequences, control characters, broken UTF-8 |
//! | a person | [`people_text`], [`PeopleText`], [`one_line`] | that too; invisible ones become `⟨U+202E⟩` |
//! | a person who approves | [`spelled`], [`spelled_line`] | takes out nothing: `⟨ESC⟩`, `⟨space×200⟩` |
//!
//! They differ because the dangers do. Escape sequences drive a terminal and hide words from a person
//! while a model still reads them, so nobody gets them. Invisible characters are part of ordinary writing
//! (Persian, Hindi, emoji families): a model needs them as they are to quote a file back, while a person
//! about to approve a command needs to see that it holds a right-to-left override.
//!
//! Then [`truncate`] makes it fit a budget, and says exactly what was left out.
//!
//! **Invariant.** What comes out of a door holds no ESC, no C1 control (U+0080–U+009F), no DEL and no C0
//! control but `\n`, `\t` and `\r`. It follows that no removal can build a new sequence out of what stood
//! around it, and that doing it twice is the same as doing it once.
//!
//! **Invariant.** What comes out of [`spelled`] can be read back, so no two texts look the same.
//!
//! **Invariant.** The streaming forms give the same text however the bytes are cut into chunks.
//!
//! Everything here is a pure function of its input: no I/O, no clock, no environment.

mod controls;
mod invisible;
mod model;
mod people;
mod scan;
mod spelled;
mod truncate;

pub use controls::MAX_SEQUENCE_BYTES;
pub use model::{ModelText, model_str, model_text};
pub use people::{PeopleText, one_line, people_text};
pub use spelled::{spelled, spelled_line, spelled_summary};
pub use truncate::{Truncated, truncate, truncate_chars};
