//! From a schema to a validator: measured, then compiled, never completed from elsewhere.

use std::sync::Arc;

use jsonschema::error::ValidationErrorKind as Kind;
use jsonschema::json::Json;
use jsonschema::{PatternOptions, Registry, Retrieve, Uri, ValidationError, Validator};
use serde_json::Value;

use crate::bounds::{
    MAX_ALL_PATTERN_BYTES, MAX_BACKTRACKS, MAX_CHAIN, MAX_DEPTH, MAX_PATTERN_BYTES, MAX_STEPS,
    STACK_PER_LEVEL, STACK_PER_SCHEMA, count_patterns, depth_and_size, with_stack,
};
use crate::documents::Document;
use crate::keywords::has_references;
use crate::metered::Patterns;
use crate::options::{Formats, Options};
use crate::shape::{self, Shape};
use crate::trouble::{BadSchema, TOO_LONG_CHAIN, TOO_MANY_CHECKS, uncompiled, unmeasured};

/// The depth up to which a schema without references needs no bounds.
const PLAIN_DEPTH: usize = 32;

/// A schema whose cost is known and bounded, ready to be compiled.
pub(crate) struct CompilePlan<'s> {
    pub(crate) schema: &'s Value,
    /// Those that it can lead to.
    pub(crate) documents: Vec<Arc<Document>>,
    pub(crate) shape: Shape,
    formats: Formats,
}

impl<'s> CompilePlan<'s> {
    pub(crate) fn of(schema: &'s Value, options: &Options) -> Result<Self, BadSchema> {
        if depth_and_size(schema).0 > MAX_DEPTH {
            let message =
                format!("expected at most {MAX_DEPTH} arrays and objects inside each other, got more");
            return Err(BadSchema::new("", message));
        }
        let documents = options.documents.reached_from(schema);
        let shape =
            shape::measure(schema, documents.iter().map(|document| &**document)).map_err(unmeasured)?;
        if shape.steps > MAX_STEPS {
            return Err(BadSchema::new("", TOO_MANY_CHECKS));
        }
        if shape.chain > MAX_CHAIN {
            return Err(BadSchema::new("", TOO_LONG_CHAIN));
        }
        Ok(Self { schema, documents, shape, formats: options.formats })
    }

    /// Whether the schema has no references and is not deep: then what a check costs grows with the value and no
    /// faster, and it needs no bounds.
    pub(crate) fn is_plain(&self) -> bool {
        self.shape.depth <= PLAIN_DEPTH && !has_references(self.schema)
    }

    /// Compiles it, with patterns that take one pass over a string where that is possible.
    pub(crate) fn compile<F: Json>(&self) -> Result<(Validator<F>, Patterns), BadSchema> {
        let patterns = |kind| self.build::<F>(self.schema, kind).map(|validator| (validator, kind));
        self.stacked(|| {
            patterns(Patterns::Linear).or_else(|error| match error.kind() {
                // Perhaps it needs more than one pass.
                Kind::Format { format } if format == "regex" => patterns(Patterns::Backtracking),
                _ => Err(error),
            })
        })
    }

    /// Compiles what is left of the schema without its notes, with patterns that take one pass.
    pub(crate) fn compile_bare<F: Json>(&self, bare: &Value) -> Result<Validator<F>, BadSchema> {
        self.stacked(|| self.build(bare, Patterns::Linear))
    }

    fn stacked<T: Send>(
        &self,
        work: impl FnOnce() -> Result<T, ValidationError<'static>> + Send,
    ) -> Result<T, BadSchema> {
        let stack = self.shape.chain * STACK_PER_SCHEMA + self.shape.depth * STACK_PER_LEVEL;
        with_stack(stack, work)?.map_err(|error| uncompiled(&error))
    }

    fn build<F: Json>(
        &self,
        schema: &Value,
        patterns: Patterns,
    ) -> Result<Validator<F>, ValidationError<'static>> {
        let all = std::iter::once(schema).chain(self.documents.iter().map(|document| document.contents()));
        let count = all.map(count_patterns).sum::<usize>().max(1);
        let bytes = (MAX_ALL_PATTERN_BYTES / count).min(MAX_PATTERN_BYTES);
        let options = jsonschema::options_for::<F>().offline();
        let options = match patterns {
            Patterns::Linear => options.with_pattern_options(PatternOptions::regex().size_limit(bytes)),
            Patterns::Backtracking => {
                let engine = PatternOptions::fancy_regex().backtrack_limit(MAX_BACKTRACKS);
                options.with_pattern_options(engine.size_limit(bytes))
            }
        };
        let options = match self.formats {
            Formats::OfTheDraft => options,
            Formats::Checked => options.should_validate_formats(true),
        };
        if self.documents.is_empty() {
            return options.build(schema);
        }
        let documents = self.documents.iter().map(|document| (document.address(), document.contents()));
        let shelf = Registry::new().retriever(Never).extend(documents)?.prepare()?;
        options.with_registry(&shelf).build(schema)
    }
}

/// Fetches nothing.
struct Never;

impl Retrieve for Never {
    fn retrieve(&self, uri: &Uri<String>) -> Result<Value, Box<dyn std::error::Error + Send + Sync>> {
        Err(format!("{uri} was not given, and nothing is fetched").into())
    }
}
