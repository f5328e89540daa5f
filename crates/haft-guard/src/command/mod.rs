//! What a line of shell would run: read where it can be read, and said to be unread where it cannot.
//!
//! A shell is a language. A rule that allows `git status` must not be talked into allowing `git status; rm -rf .`, and
//! a rule that denies `rm` must find it there. Two readers serve that:
//!
//! | reader | for |
//! |---|---|
//! | [`words`] | one simple command and nothing else: what rules are written in, and what a grant remembers |
//! | [`line()`] | a whole line: every command in it becomes a [`Part`], each of which policy decides about by itself |
//!
//! ```text
//!  text ─► screen (length, nesting, invisible letters) ─► brush-parser ─► walk ─► parts
//!                                                                        │
//!                                       words (quotes, globs, variables) ┘  wrappers (what `timeout`, `sudo`, `sh -c` run)
//! ```
//!
//! The line is given to `/bin/sh`, which is dash on some systems and bash on others. What the two read differently is
//! unread here.

mod compiler;
mod constant;
mod git;
mod interpreter;
mod line;
mod module;
mod operand;
mod option;
mod outside;
mod package;
mod parse;
mod place;
mod program;
mod runner;
mod screen;
mod script;
mod simple;
mod variable;
mod walk;
mod word;
mod wrapper;

pub use line::{Aside, Line, Part, Unread, line, line_in};
pub use place::Folder;
pub use simple::{NotSimple, Shell, words};
pub use word::Word;

pub(crate) use interpreter::is_interpreter;
pub(crate) use line::single;
pub(crate) use program::{program_name, stem};
pub(crate) use simple::{joined, rule_words, starts_with};
pub(crate) use variable::is_tame_value;
pub(crate) use word::{Found, find_denied, is_allowed};
