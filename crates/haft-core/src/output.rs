//! What a tool gives back.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A piece of content for a model or a person.
///
/// ```
/// use haft_core::ContentPart;
/// let part = ContentPart::text("hello");
/// assert_eq!(serde_json::to_string(&part).unwrap(), r#"{"type":"text","text":"hello"}"#);
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub enum ContentPart {
    /// Words.
    Text {
        /// The words.
        text: String,
    },
    /// A picture.
    Image {
        /// Base64.
        data: String,
        /// Such as `image/png`.
        mime_type: String,
    },
    /// Sound.
    Audio {
        /// Base64.
        data: String,
        /// Such as `audio/wav`.
        mime_type: String,
    },
    /// A document that stands for itself.
    Resource {
        /// Where it is from.
        uri: String,
        /// The media type of the document.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        mime_type: Option<String>,
        /// Its text, or else
        #[serde(default, skip_serializing_if = "Option::is_none")]
        text: Option<String>,
        /// its bytes in base64.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        blob: Option<String>,
    },
}

impl ContentPart {
    /// Words.
    pub fn text(text: impl Into<String>) -> Self {
        ContentPart::Text { text: text.into() }
    }
}

/// What kind of thing a call changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum SideEffectKind {
    /// Something new is there.
    Created,
    /// Something is different.
    Modified,
    /// Something is gone.
    Deleted,
    /// Somebody was told something.
    MessageSent,
    /// Another system was called.
    ExternalApiCalled,
    /// Data left the house.
    DataExported,
}

/// One change that a call made, for audit and undo.
///
/// ```
/// use haft_core::{SideEffect, SideEffectKind};
/// let effect = SideEffect::new(SideEffectKind::Created, "notes.txt", jiff::Timestamp::UNIX_EPOCH);
/// assert!(!effect.is_reversible);
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SideEffect {
    /// What kind of change.
    #[serde(rename = "type")]
    pub kind: SideEffectKind,
    /// What was changed: a path, a host, an address.
    pub resource: String,
    /// In words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// What was there, such as a hash.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub previous_value: Option<Value>,
    /// What is there now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub new_value: Option<Value>,
    /// When it happened.
    pub timestamp: Timestamp,
    /// Whether it can be undone.
    #[serde(default)]
    pub is_reversible: bool,
}

impl SideEffect {
    /// A change of `resource` that cannot be undone, without further detail.
    pub fn new(kind: SideEffectKind, resource: impl Into<String>, timestamp: Timestamp) -> Self {
        SideEffect {
            kind,
            resource: resource.into(),
            description: None,
            previous_value: None,
            new_value: None,
            timestamp,
            is_reversible: false,
        }
    }
}

/// What a tool returns: words, a structured value, other content, and what it changed.
///
/// Words and value may both be absent; then what the tool streamed is its output.
///
/// ```
/// use haft_core::ToolOutput;
/// let output = ToolOutput::text("3 files").with_structured(serde_json::json!({"files": 3}));
/// assert_eq!(output.text.as_deref(), Some("3 files"));
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ToolOutput {
    /// Words for a model.
    pub text: Option<String>,
    /// The value that the output schema describes.
    pub structured: Option<Value>,
    /// Pictures, sound, documents.
    pub parts: Vec<ContentPart>,
    /// What changed.
    pub side_effects: Vec<SideEffect>,
    /// The words must stay whole (base64, say): the tool kept them short itself.
    pub keep_whole: bool,
    /// The words say again what was streamed, so the size of the output is counted once.
    pub repeats_stream: bool,
}

impl ToolOutput {
    /// Just words.
    pub fn text(text: impl Into<String>) -> Self {
        ToolOutput { text: Some(text.into()), ..ToolOutput::default() }
    }

    /// Just a value; its JSON becomes the words.
    pub fn structured(value: Value) -> Self {
        ToolOutput { structured: Some(value), ..ToolOutput::default() }
    }

    /// This output with a structured value.
    pub fn with_structured(mut self, value: Value) -> Self {
        self.structured = Some(value);
        self
    }

    /// This output with one more side effect.
    pub fn with_side_effect(mut self, effect: SideEffect) -> Self {
        self.side_effects.push(effect);
        self
    }
}
