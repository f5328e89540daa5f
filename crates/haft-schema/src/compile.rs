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
use crate::dialect::{Converted, Draft, convert_as, to_2020_12};
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
    /// In 2020-12, whatever draft it came in.
    pub(crate) converted: Converted<'s>,
    /// Those that it can lead to, in 2020-12 as well.
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
        let converted = to_2020_12(schema)?;
        let documents = options.documents.reached_from(schema);
        let (documents, formats) = in_one_dialect(documents, &converted, options.formats)?;
        let measured = shape::measure(&converted.schema, documents.iter().map(|document| &**document));
        let shape = measured.map_err(|why| converted.at_source(unmeasured(why)))?;
        if shape.steps > MAX_STEPS {
            return Err(BadSchema::new("", TOO_MANY_CHECKS));
        }
        if shape.chain > MAX_CHAIN {
            return Err(BadSchema::new("", TOO_LONG_CHAIN));
        }
        Ok(Self { documents, shape, formats, converted })
    }

    /// The schema, in 2020-12.
    pub(crate) fn schema(&self) -> &Value {
        &self.converted.schema
    }

    /// What `format` does.
    pub(crate) fn formats(&self) -> Formats {
        self.formats
    }

    /// Whether the schema has no references and is not deep: then what a check costs grows with the value and no
    /// faster, and it needs no bounds.
    pub(crate) fn is_plain(&self) -> bool {
        self.shape.depth <= PLAIN_DEPTH && !has_references(self.schema())
    }

    /// Compiles it, with patterns that take one pass over a string where that is possible.
    pub(crate) fn compile<F: Json>(&self) -> Result<(Validator<F>, Patterns), BadSchema> {
        let patterns = |kind| self.build::<F>(self.schema(), kind).map(|validator| (validator, kind));
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
        with_stack(stack, work)?.map_err(|error| self.converted.at_source(uncompiled(&error)))
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

/// The documents in 2020-12, and what `format` does in all. A document that names no draft is in that of the schema
/// which leads to it.
fn in_one_dialect(
    documents: Vec<Arc<Document>>,
    schema: &Converted<'_>,
    formats: Formats,
) -> Result<(Vec<Arc<Document>>, Formats), BadSchema> {
    let checked = schema.checks_formats || formats == Formats::Checked;
    let mut converted = Vec::with_capacity(documents.len());
    for document in documents {
        let address = document.address().to_owned();
        let own = convert_as(document.contents(), schema.draft)
            .map_err(|why| BadSchema::new(format!("{address}#{}", why.pointer), why.message))?;
        if own.checks_formats && !checked && schema.draft > Draft::Seven {
            let message = format!(
                "expected a document without `format`, got one in {}, where it is checked; write it in 2020-12",
                own.draft
            );
            return Err(BadSchema::new(address, message));
        }
        let own = (own.draft != Draft::Newest).then(|| own.schema.into_owned());
        converted
            .push(own.map_or_else(|| Arc::clone(&document), |own| Arc::new(document.with_contents(own))));
    }
    Ok((converted, if checked { Formats::Checked } else { formats }))
}

/// Fetches nothing.
struct Never;

impl Retrieve for Never {
    fn retrieve(&self, uri: &Uri<String>) -> Result<Value, Box<dyn std::error::Error + Send + Sync>> {
        Err(format!("{uri} was not given, and nothing is fetched").into())
    }
}
