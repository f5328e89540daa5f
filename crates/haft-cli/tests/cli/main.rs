//! The command line, as a person or a shell uses it: the real program, in folders of its own.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // A test may panic: that is how it fails.

#[cfg(unix)]
mod api;
mod approvals;
#[cfg(unix)]
mod attempts;
#[cfg(unix)]
mod audit;
mod batch;
mod bounds;
mod calls;
mod config;
mod dialects;
#[cfg(target_os = "linux")]
mod exec;
mod files;
mod flow;
mod guard;
mod help;
mod hook;
mod hosts;
mod http_tools;
#[cfg(unix)]
mod l03;
mod mcp;
mod memory;
#[cfg(unix)]
mod no_way_round;
#[cfg(unix)]
mod own_files;
mod own_tools;
mod pipes;
mod postgres;
#[cfg(unix)]
mod prefixes;
mod programs;
#[cfg(unix)]
mod prompt;
#[cfg(unix)]
mod protected;
mod python_client;
#[cfg(target_os = "linux")]
mod real_hosts;
#[cfg(target_os = "linux")]
mod real_work;
#[cfg(unix)]
mod recover;
#[cfg(unix)]
mod screen;
#[cfg(target_os = "linux")]
mod scripted_model;
mod serve;
#[cfg(target_os = "linux")]
mod settle_kill;
#[cfg(target_os = "linux")]
mod settle_room;
mod signed;
#[cfg(target_os = "linux")]
mod staged;
#[cfg(unix)]
mod stop;
mod support;
#[cfg(unix)]
mod tasks;
mod tools;
#[cfg(unix)]
mod watched;
mod words;
