//! What a schema's error means, in words.

use crate::BadSchema;
use haft_core::Problem;

/// The words for one problem.
pub fn describe(error: &jsonschema::ValidationError<'_>) -> Problem {
    Problem::new(error.instance_path().as_str(), error.kind().keyword(), error.to_string())
}

/// The words for a schema that cannot be used.
pub fn bad_schema(error: &jsonschema::ValidationError<'_>) -> BadSchema {
    BadSchema { pointer: error.instance_path().as_str().to_owned(), message: error.to_string() }
}
