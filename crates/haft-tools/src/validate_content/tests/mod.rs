//! Tests of the whole: content and schema in, report out.

mod bounds;
mod properties;
mod reports;
mod suites;
