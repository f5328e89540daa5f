//! The tools of an engine, offered to MCP clients.
//!
//! ```
//! # use haft_mcp::server::{Callers, McpServer};
//! # fn offer(engine: haft_engine::Engine) -> McpServer {
//! McpServer::builder(engine, Callers::One(haft_core::CallContext::owner())).build()
//! # }
//! ```
//!
//! | file | what |
//! |---|---|
//! | `builder` | what a server is made of |
//! | `session` | one connection: the requests of the protocol, each handed on to one of the files below |
//! | `about` | what the server says of itself |
//! | `callers` | who asks |
//! | `call`, `relay`, `answer` | `tools/call`: on its way through the engine, what is told meanwhile, what comes back |
//! | `client` | the one who called, as tools and approvals reach it: questions, messages |
//! | `approval` | approvals, asked through the client |
//! | `round` | what travels with a client between two rounds of a call, under a seal |
//! | `tools`, `resources`, `page` | what is listed and read |
//! | `changes` | who is told that a list has changed |
//! | `roots` | folders that a client works in |
//! | `tasks`, `engine_tasks` | the seam for calls that go on without their client, and the engine behind it |
//! | `methods` | what there is to ask for |
//! | `extension` | what is not haft's: prompts, completion, further resources |
//! | `stdio`, `http` | the two ways in |
//! | `beginning` | what may come before a conversation has begun |
//!
//! # Revisions
//!
//! 2025-06-18 and 2025-11-25 begin with a handshake, and a server can ask its client something while a call runs. In
//! 2026-07-28 each request stands for itself: a call that needs an answer ends with `input_required`, and the client
//! sends it again with the answer and with the state it was given. [`Client::ask`] hides the difference.

mod about;
mod answer;
mod approval;
mod beginning;
mod builder;
mod call;
mod callers;
mod changes;
mod client;
mod engine_tasks;
mod extension;
#[cfg(feature = "http")]
pub mod http;
mod lists;
mod message;
mod methods;
mod page;
mod pipes;
mod refusal;
mod relay;
mod resources;
mod roots;
mod round;
mod session;
mod stdio;
mod tasks;
mod tools;

pub use approval::Approvals;
pub use builder::{Builder, McpServer};
pub use callers::{Caller, Callers};
pub use changes::Change;
pub use client::Client;
pub use engine_tasks::EngineTasks;
pub use extension::Extension;
pub use session::Session;
pub use stdio::{ServeError, serve_stdio};
pub use tasks::{TaskNow, Tasks};
