//! Flows: calls of tools that belong together, in a file. Text in, decisions out; nothing runs here.
//!
//! ```toml
//! name = "report"
//! description = "Reads a file and writes what is in it elsewhere"
//!
//! [[parameters]]
//! name = "path"
//! description = "The file"
//! type = "String"
//! required = true
//!
//! [[nodes]]
//! name = "read"
//! tool = "read_file"
//! arguments = { path = "${input.path}" }
//!
//! [[nodes]]
//! name = "write"
//! tool = "write_file"
//! arguments = { path = "copy.txt", content = "${read.output.content}" }
//! when = "read.output.total_lines > 0"
//! ```
//!
//! | file | what |
//! |---|---|
//! | `read`, `flow` | the file, with the place of every problem; what it comes to |
//! | `reference` | `${node.output.path}` |
//! | `condition` | conditions in CEL, within bounds |
//! | `graph` | who waits for whom |
//! | `check`, `schema` | whether a flow fits the tools that are there |
//! | `walk` | a flow on its way: what is next, blocked, skipped |
//! | `draw` | pictures |
#![forbid(unsafe_code)]

mod check;
mod condition;
mod draw;
mod flow;
mod graph;
mod problem;
mod read;
mod reference;
mod schema;
mod walk;

pub use check::{MOST_LEVELS, Tools, check};
pub use condition::{BadCondition, Condition, LONGEST, MOST_BYTES, MOST_NESTING, NamePath, NoAnswer};
pub use draw::{mermaid, picture};
pub use flow::{Flow, Node, Shape};
pub use graph::{cycle, order};
pub use read::{FILE_SCHEMA, MOST_NODES, read, read_within};
pub use reference::{Alternative, BadReference, Path, Piece, Reference, Step, Template};
pub use walk::{Given, Next, NodeStatus, Walk};
