//! haft and the Model Context Protocol.
//!
//! A face: it translates between MCP and the engine, and decides nothing. What a call may do and what it is answered
//! are the engine's words.
//!
//! [`server`] offers the tools of an engine to MCP clients, over pipes ([`server::serve_stdio`]) and over HTTP
//! (`server::http`).
#![forbid(unsafe_code)]

mod bounded;
pub mod client;
pub mod server;

/// The protocol's own types, as [`server::Extension`] and [`server::Client`] use them.
pub use rmcp;
