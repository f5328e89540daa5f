//! The schemas of what is sent and taken, for the document. Those of the engine are made of its own types, so that a
//! field that is added or renamed there shows here. Written by hand are only bounds that this server adds, events of a
//! stream, which are lines and no type, and the three forms of an answer to an approval.
#![allow(dead_code, reason = "types here are descriptions")]

use crate::{problem, requests, routes};
use haft_core::ErrorCode;
use schemars::{
    JsonSchema, SchemaGenerator,
    generate::SchemaSettings,
    transform::{RecursiveTransform, ReplaceBoolSchemas},
};
use serde::Serialize;
use serde_json::{Map, Value, json};
use std::borrow::Cow;
use utoipa::{
    PartialSchema, ToSchema,
    openapi::{ObjectBuilder, RefOr, Schema, schema::Type},
};

/// Stand for types where a route says what it takes or gives. The document gets their schemas from [`definitions`].
macro_rules! stand_for {
    ($($name:ident)*) => {
        $(
            pub(crate) struct $name;

            impl PartialSchema for $name {
                fn schema() -> RefOr<Schema> {
                    ObjectBuilder::new().into()
                }
            }

            impl ToSchema for $name {
                fn name() -> Cow<'static, str> {
                    Cow::Borrowed(stringify!($name))
                }
            }
        )*

        /// Their names.
        #[cfg(test)]
        const STANDING: &[&str] = &[$(stringify!($name)),*];
    };
}

stand_for! {
    Accepted BatchResult CallOptions FlowResult Plan Problem ResultMetadata RunningCalls Sandbox SandboxSpec
    SharedOptions Status Strategy Task TaskPage TaskState ToolResult
}

/// The schema of every type of the engine that the document names, by its name.
pub(crate) fn definitions() -> Map<String, Value> {
    let mut given = generator(SchemaSettings::draft2020_12().for_serialize());
    name::<problem::Body<'static>>(&mut given);
    name::<routes::Results>(&mut given);
    name::<routes::Running>(&mut given);
    name::<routes::TaskPage<'static>>(&mut given);
    name::<haft_core::ToolResult>(&mut given);
    name::<haft_engine::FlowResult>(&mut given);
    name::<haft_engine::Plan>(&mut given);
    name::<haft_engine::SandboxStatus>(&mut given);
    let mut taken = generator(SchemaSettings::draft2020_12().for_deserialize());
    name::<haft_core::CallOptions>(&mut taken);
    name::<haft_core::Strategy>(&mut taken);
    name::<haft_engine::SandboxSpec>(&mut taken);
    let mut all = given.take_definitions(true);
    all.extend(taken.take_definitions(true));
    unfold(&mut all);
    for (kind, member, bound) in requests::bounds() {
        narrow(&mut all, kind, member, bound);
    }
    let accepted = json!({
        "description": "What is answered before the end: a task was taken, or a person has to approve the call.",
        "oneOf": [reference("Task"), reference("ToolResult")],
    });
    all.insert(Accepted::name().into_owned(), accepted);
    let mut options = all.get("CallOptions").cloned().unwrap_or_default();
    // Several calls have several ids.
    remove(Some(&mut options), "executionId");
    // Calls that are made together cannot go on without their caller.
    remove(Some(&mut options), "detached");
    all.insert(SharedOptions::name().into_owned(), options);
    all
}

pub(crate) fn reference(name: &str) -> Value {
    json!({"$ref": format!("#/components/schemas/{name}")})
}

fn generator(mut settings: SchemaSettings) -> SchemaGenerator {
    settings.definitions_path = "/components/schemas".into();
    let mut booleans = ReplaceBoolSchemas::default();
    booleans.skip_additional_properties = true;
    settings.with_transform(booleans).with_transform(RecursiveTransform(plain)).into_generator()
}

fn name<T: JsonSchema>(generator: &mut SchemaGenerator) {
    generator.subschema_for::<T>();
}

/// Examples in Rust and defaults are for those who write Rust. A choice of words is one `enum`, with what they mean in
/// its description.
fn plain(schema: &mut schemars::Schema) {
    schema.remove("default");
    if let Some(Value::String(text)) = schema.get_mut("description") {
        let end = text.find("```").unwrap_or(text.len());
        *text = text[..end].trim_end().replace("[`", "`").replace("`]", "`");
    }
    let words: Option<Vec<(Value, Option<String>)>> = schema
        .get("oneOf")
        .and_then(Value::as_array)
        .and_then(|all| all.iter().map(word).collect::<Option<Vec<_>>>())
        .map(|all| all.into_iter().flatten().collect());
    let Some(words) = words else { return };
    let mut text = schema.get("description").and_then(Value::as_str).unwrap_or_default().to_owned();
    for (word, meaning) in &words {
        if let (Some(word), Some(meaning)) = (word.as_str(), meaning) {
            text.push_str(&format!("\n- `{word}`: {meaning}"));
        }
    }
    schema.remove("oneOf");
    schema.insert("description".to_owned(), text.into());
    schema.insert("type".to_owned(), "string".into());
    schema.insert("enum".to_owned(), words.into_iter().map(|(word, _)| word).collect());
}

/// The words of one branch of a choice, where it is nothing but words.
fn word(branch: &Value) -> Option<Vec<(Value, Option<String>)>> {
    if branch.get("type").and_then(Value::as_str) != Some("string") {
        return None;
    }
    let meaning = branch.get("description").and_then(Value::as_str).map(str::to_owned);
    match (branch.get("const"), branch.get("enum").and_then(Value::as_array)) {
        (Some(word), _) => Some(vec![(word.clone(), meaning)]),
        (None, Some(words)) => Some(words.iter().map(|word| (word.clone(), None)).collect()),
        (None, None) => None,
    }
}

/// A form that adds members to another type gets that one's members: programs that make clients see only one of the
/// two.
fn unfold(all: &mut Map<String, Value>) {
    let known = all.clone();
    let forms = all.values_mut().filter_map(|schema| schema.get_mut("oneOf")?.as_array_mut()).flatten();
    for form in forms.filter_map(Value::as_object_mut).filter(|form| form.contains_key("properties")) {
        let Some(Value::String(path)) = form.remove("$ref") else { continue };
        let Some(other) = path.rsplit('/').next().and_then(|name| known.get(name)) else { continue };
        if let (Some(Value::Object(own)), Some(Value::Object(more))) =
            (form.get_mut("properties"), other.get("properties"))
        {
            own.extend(more.clone());
        }
        if let (Some(Value::Array(own)), Some(Value::Array(more))) =
            (form.get_mut("required"), other.get("required"))
        {
            own.extend(more.iter().cloned());
        }
    }
}

/// Adds to the schema of a member, in every form of the type that has it.
fn narrow(all: &mut Map<String, Value>, kind: &str, member: &str, bound: Value) {
    let Some(schema) = all.get_mut(kind) else { return };
    let pointer = format!("/properties/{member}");
    if let Some(member) = schema.pointer_mut(&pointer) {
        join(member, bound);
    } else if let Some(Value::Array(forms)) = schema.get_mut("oneOf") {
        for member in forms.iter_mut().filter_map(|form| form.pointer_mut(&pointer)) {
            join(member, bound.clone());
        }
    }
}

fn join(schema: &mut Value, bound: Value) {
    if let (Some(schema), Value::Object(bound)) = (schema.as_object_mut(), bound) {
        schema.extend(bound);
    }
}

fn remove(schema: Option<&mut Value>, member: &str) {
    if let Some(Value::Object(members)) = schema.and_then(|schema| schema.get_mut("properties")) {
        members.remove(member);
    }
}

/// A row of the error table: every one that there is.
#[derive(Serialize)]
pub(crate) struct Code;

impl PartialSchema for Code {
    fn schema() -> RefOr<Schema> {
        let all = ErrorCode::ALL.iter().map(|code| code.as_str());
        ObjectBuilder::new().schema_type(Type::String).enum_values(Some(all)).into()
    }
}

impl ToSchema for Code {
    fn name() -> Cow<'static, str> {
        Cow::Borrowed("ErrorCode")
    }
}

/// An event of a stream (`text/event-stream`).
#[derive(Serialize, ToSchema)]
pub(crate) struct StreamEvent {
    /// What happened, such as `tool:executed`; `result` and `task` come last.
    event: Option<String>,
    /// What a client that comes back sends as `Last-Event-ID`.
    id: Option<String>,
    /// A JSON document.
    data: String,
}

/// An answer to an approval.
#[derive(Serialize, ToSchema)]
#[serde(untagged)]
pub(crate) enum Answer {
    Approve(Approve),
    Deny(Deny),
    Edit(Edit),
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ApproveWord {
    Approve,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum DenyWord {
    Deny,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum EditWord {
    Edit,
}

/// Yes, this once.
#[derive(Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Approve {
    #[schema(inline)]
    decision: ApproveWord,
    /// What is to be remembered, so that nobody is asked about it again.
    remember: Option<crate::routes::RememberBody>,
}

/// No.
#[derive(Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Deny {
    #[schema(inline)]
    decision: DenyWord,
    /// Why, in words that the model gets to read.
    #[schema(max_length = 1000)]
    reason: Option<String>,
}

/// Not like this: the call is planned with these arguments, and asked about again.
#[derive(Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Edit {
    #[schema(inline)]
    decision: EditWord,
    /// All arguments, as they should be.
    #[schema(value_type = Object)]
    arguments: Value,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_has_a_schema() {
        let all = definitions();
        for name in STANDING {
            assert!(
                all.get(*name).is_some_and(|schema| schema.get("description").is_some()),
                "{name}: {all:#?}"
            );
        }
    }

    #[test]
    fn every_bound_is_of_a_member_that_is_there() {
        let all = definitions();
        for (kind, member, bound) in requests::bounds() {
            let text = all.get(kind).map(Value::to_string).unwrap_or_default();
            assert!(text.contains(&format!("\"{member}\"")), "{kind} has no {member}");
            for key in bound.as_object().unwrap().keys() {
                assert!(text.contains(&format!("\"{key}\"")), "{kind}.{member} has no {key}");
            }
        }
    }
}
