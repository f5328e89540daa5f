//! MCP servers as a source of tools.
//!
//! A server is somebody else's program. It runs in a jail like every command, or is reached through the gate like every
//! HTTP service; what it says about its tools is shown and never believed; its tools pass the same stages as all
//! others. Nothing here decides whether a call may run.
//!
//! | file | what it does | I/O |
//! |---|---|---|
//! | `listing` | a server's list as definitions; what was accepted beside what is said now | none |
//! | `answer` | an answer as a tool's output | none |
//! | `backoff` | how long a server that failed is left alone | none |
//! | `program` | what a server that is a program is granted | looks whether files are there |
//! | `pipes`, `web` | the two ways to a server | yes |
//! | `handler`, `connection` | one conversation: what is asked, answered, told | yes |
//! | `instance`, `upstreams` | which server serves which calls; begin, end, begin again | yes |
//! | `tool` | one tool | yes |
//!
//! **Architecture Invariant:** a call reaches a server only if the server's words about that tool are those that a
//! person accepted. The list is asked for at every connection, and again before the next call once the server says that
//! it changed.
//!
//! **Architecture Invariant:** tenants share no server, and neither do calls that would run it differently.

mod answer;
mod backoff;
mod connection;
mod handler;
mod instance;
mod listing;
mod pipes;
mod program;
mod tool;
mod upstreams;
#[cfg(feature = "http")]
mod web;

pub use backoff::backoff_delay;
pub use listing::{Compared, Listing, compare, tool_name};
pub use tool::McpTool;
pub use upstreams::{Notice, Observer, Reach, Secret, UpstreamSettings, Upstreams, Variable};
