//! What the tests of several haft crates share. A development dependency, never a normal one:
//!
//! ```toml
//! [dev-dependencies]
//! haft-testkit = { path = "../haft-testkit" }
//! ```
//!
//! A test that needs something the machine may lack (a data folder, a kernel feature) says so and returns:
//!
//! ```no_run
//! # // Not run: on a machine without the folder it would count as a test that was not run.
//! fn accepts_what_the_suite_accepts() {
//!     let Some(suite) = haft_testkit::shared_data("jsontestsuite") else {
//!         return haft_testkit::not_run(
//!             "accepts_what_the_suite_accepts",
//!             "the folder jsontestsuite is not in the test data",
//!         );
//!     };
//!     // … read the cases below `suite` …
//! }
//! # accepts_what_the_suite_accepts();
//! ```
//!
//! `cargo xtask test` lists these tests at its end with their reasons; with `--strict` one of them fails the run.
#![forbid(unsafe_code)]

mod data;
mod http_kit;
mod mcp_kit;
mod not_run;
#[cfg(feature = "postgres")]
mod postgres;

pub use data::{DATA_KIT_VAR, DATA_VAR, shared_data};
pub use http_kit::{HTTP_KIT_VAR, HttpKit, http_kit};
pub use mcp_kit::{MCP_KIT_VAR, McpKit, mcp_kit};
pub use not_run::{NOT_RUN_VAR, not_run};
#[cfg(feature = "postgres")]
pub use postgres::{Postgres, ServerCertificate};
