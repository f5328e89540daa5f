//! haft over HTTP: what the command line can do, for programs in any language.
//!
//! A face: it finds out who asks, translates, and calls the engine. It decides nothing.
//!
//! ```no_run
//! use haft_server::{Listener, Server};
//! # async fn serve(engine: haft_engine::Engine, keys: std::sync::Arc<dyn haft_core::port::KeyStore>) -> std::io::Result<()> {
//! let server = Server::builder(engine).keys(keys).build();
//! let listener = tokio::net::TcpListener::bind("127.0.0.1:8484").await?;
//! server.serve(vec![Listener::Tcp(listener)], Default::default()).await
//! # }
//! ```
//!
//! | file | what |
//! |---|---|
//! | `server`, `listen`, `tls` | what a server is made of; its listeners, with deadlines and bounds |
//! | `admission` | what a request passes before its route: identity, counts, its body as a whole; and while it is open |
//! | `identity` | who asks: the owner on a unix socket, an API key, a token of an identity provider |
//! | `backend` | what the engine does not know, from the program that puts the server together |
//! | `problem` | what went wrong, from the error table |
//! | `requests`, `extract` | what requests say, and how it is read |
//! | `routes` | one file for each kind of thing |
//! | `schema`, `document` | the OpenAPI document, from the routes themselves |
//!
//! # What always holds
//!
//! - No route but `/health`, `/ready` and the metadata of RFC 9728 answers anybody who is not known: `identity` checks
//!   all others, and requests for what is not there. A test goes through the document for that.
//! - Another tenant's resources answer 404. Every reading goes through `for_tenant`, or asks
//!   [`Engine::is_of`](haft_engine::Engine::is_of) first.
//! - Bytes of requests are bounded, each request and all together, and so is the time that one may take to say what it
//!   wants. A client that reads events slowly holds a place in the log and no copy of it; one that reads nothing is
//!   dropped.
//! - A caller whose key is no longer valid has nothing open: what was let in ends within two seconds of a revocation.

mod admission;
mod backend;
mod document;
mod extract;
mod identity;
mod listen;
mod problem;
mod requests;
mod routes;
mod schema;
mod server;
mod sse;
mod tls;

pub use backend::{NoBackend, Refused, ServerBackend};
pub use document::document;
#[cfg(fuzzing)]
pub use identity::fuzz_token;
pub use identity::{ApiSecret, JwksSource, TokenOptions, is_reserved};
pub use listen::{Listener, bind};
pub use server::{Builder, Limits, Server};
pub use tls::{TlsProblem, tls};
