//! Documents that a schema may refer to. Nothing is ever fetched: what is not here is not there.

use std::collections::HashSet;
use std::sync::Arc;

use jsonschema::uri;
use serde_json::Value;

use crate::bounds::{MAX_DEPTH, depth_and_size};
use crate::keywords::REFERENCES;
use crate::place::{Place, children, join};
use crate::trouble::BadSchema;

/// Other documents that a schema may refer to, each under its address.
///
/// The caller that compiles the schema gives them beforehand. Addresses are names: nothing is fetched from them.
///
/// ```
/// use haft_schema::{Checker, Documents, Options};
/// use serde_json::json;
///
/// let mut documents = Documents::new();
/// documents.add("https://example.com/name.json", json!({"type": "string", "minLength": 1}))?;
/// let options = Options { documents, ..Options::default() };
/// let checker = Checker::with_options(&json!({"items": {"$ref": "https://example.com/name.json"}}), &options)?;
/// assert_eq!(checker.check(&json!(["a", ""]))?.problems[0].pointer, "/1");
/// # Ok::<(), haft_schema::BadSchema>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct Documents(Vec<Arc<Document>>);

/// One of them, with what is known about it before it is used.
#[derive(Debug)]
pub(crate) struct Document {
    address: String,
    contents: Value,
    /// The addresses that it and its parts answer to.
    answers: HashSet<String>,
    /// The addresses that it refers to.
    refers: Vec<String>,
}

impl Documents {
    /// None.
    ///
    /// ```
    /// assert!(haft_schema::Documents::new().is_empty());
    /// ```
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds one.
    ///
    /// # Errors
    ///
    /// When the address is not absolute, or has a fragment, or is taken; or when the document is too deep. Whether it
    /// is a schema is told when one refers to it.
    ///
    /// ```
    /// let mut documents = haft_schema::Documents::new();
    /// assert!(documents.add("urn:example:name", serde_json::json!({"type": "string"})).is_ok());
    /// assert!(documents.add("name.json", serde_json::json!({})).is_err());
    /// ```
    pub fn add(&mut self, address: &str, contents: Value) -> Result<(), BadSchema> {
        let refused = |why: &str| BadSchema::new("", format!("expected {why}, got {address:?}"));
        if address.contains('#') {
            return Err(refused("an address without a fragment"));
        }
        let scheme = address.split_once(':').map_or("", |(scheme, _)| scheme);
        let absolute = scheme.starts_with(|c: char| c.is_ascii_alphabetic())
            && scheme.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c));
        if !absolute || uri::from_str(address).is_err() {
            return Err(refused("an absolute address (such as \"https://example.com/name.json\")"));
        }
        if self.0.iter().any(|known| known.address == address) {
            return Err(refused("each address once"));
        }
        if depth_and_size(&contents).0 > MAX_DEPTH {
            return Err(refused(&format!("a document at most {MAX_DEPTH} levels deep")));
        }
        let (mut answers, refers) = addresses(Place::document(&contents, address));
        answers.insert(address.to_owned());
        self.0.push(Arc::new(Document { address: address.to_owned(), contents, answers, refers }));
        Ok(())
    }

    /// How many there are.
    ///
    /// ```
    /// assert_eq!(haft_schema::Documents::new().len(), 0);
    /// ```
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    ///
    /// ```
    /// assert!(haft_schema::Documents::new().is_empty());
    /// ```
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Those that `schema` refers to, and those that they refer to.
    pub(crate) fn reached_from(&self, schema: &Value) -> Vec<Arc<Document>> {
        if self.is_empty() {
            return Vec::new();
        }
        let (_, mut open) = addresses(Place::root(schema));
        let mut left: Vec<&Arc<Document>> = self.0.iter().collect();
        let mut reached = Vec::new();
        while let Some(address) = open.pop() {
            let (found, others) = left.into_iter().partition(|document| document.answers.contains(&address));
            left = others;
            for document in Vec::from_iter(found) {
                open.extend(document.refers.iter().cloned());
                reached.push(Arc::clone(document));
            }
        }
        reached
    }
}

impl Document {
    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    pub(crate) fn contents(&self) -> &Value {
        &self.contents
    }

    /// The same document, in another draft.
    pub(crate) fn with_contents(&self, contents: Value) -> Self {
        let (mut answers, refers) = addresses(Place::document(&contents, &self.address));
        answers.insert(self.address.clone());
        Self { address: self.address.clone(), contents, answers, refers }
    }

    pub(crate) fn place(&self) -> Place<'_> {
        Place::document(&self.contents, &self.address)
    }
}

/// The addresses that a document and its parts answer to, and those that it refers to.
fn addresses(root: Place<'_>) -> (HashSet<String>, Vec<String>) {
    let (mut answers, mut refers) = (HashSet::new(), Vec::new());
    let mut open = vec![root];
    while let Some(place) = open.pop() {
        if let Value::Object(object) = place.schema {
            let base = place.address();
            for reference in REFERENCES.iter().chain(&["$schema"]).filter_map(|keyword| object.get(*keyword))
            {
                refers.extend(reference.as_str().map(|reference| join(&base, reference)));
            }
            answers.insert(base);
        }
        open.extend(children(&place));
    }
    (answers, refers)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_address_is_absolute_and_stands_for_one_document() {
        let mut documents = Documents::new();
        assert!(documents.add("http://a/b.json", json!({})).is_ok());
        for (address, why) in [
            ("http://a/b.json", "each address once"),
            ("b.json", "an absolute address"),
            ("", "an absolute address"),
            ("http://a/c#", "without a fragment"),
            ("http://a/c#/d", "without a fragment"),
        ] {
            let error = documents.add(address, json!({})).unwrap_err();
            assert!(error.message.contains(why), "{address}: {error}");
        }
        let deep = (0..200).fold(json!(1), |inner, _| json!([inner]));
        assert!(documents.add("http://a/deep", deep).unwrap_err().message.contains("levels deep"));
        assert_eq!(documents.len(), 1);
    }

    #[test]
    fn only_what_is_referred_to_is_reached() {
        let mut documents = Documents::new();
        for (address, contents) in [
            ("http://a/one", json!({"$ref": "two"})),
            ("http://a/two", json!({"$id": "http://elsewhere/two", "items": {"$ref": "three"}})),
            ("http://b/three", json!({"$id": "http://elsewhere/three"})),
            ("http://a/four", json!({"$ref": "one"})),
        ] {
            documents.add(address, contents).unwrap();
        }
        let reached = |schema: Value| -> Vec<String> {
            let mut reached: Vec<String> =
                documents.reached_from(&schema).iter().map(|document| document.address.clone()).collect();
            reached.sort();
            reached
        };
        assert_eq!(
            reached(json!({"not": {"$ref": "http://a/one#/x"}})),
            ["http://a/one", "http://a/two", "http://b/three"]
        );
        assert_eq!(reached(json!({"$id": "http://a/", "$ref": "two"})), ["http://a/two", "http://b/three"]);
        assert!(reached(json!({"type": "string"})).is_empty());
    }
}
