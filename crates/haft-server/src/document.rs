//! The OpenAPI document: from the routes themselves, so that it cannot lag behind them.

use crate::{problem, routes, schema};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use utoipa::{
    OpenApi as _, ToSchema as _,
    openapi::{
        ContentBuilder, HttpMethod, OpenApi, Ref, RefOr, ResponseBuilder, Schema,
        path::Operation,
        schema::{SchemaType, Type},
        security::{HttpAuthScheme, HttpBuilder, SecurityRequirement, SecurityScheme},
    },
};

#[derive(utoipa::OpenApi)]
#[openapi(
    info(
        title = "haft",
        version = "1",
        description = "Runs the tools of AI agents: haft checks, asks, sandboxes and records every call.",
        license(name = "MIT OR Apache-2.0", identifier = "MIT OR Apache-2.0")
    ),
    components(schemas(schema::Problem, schema::Code, routes::CategoryName))
)]
struct Frame;

/// The document of all routes, as `/v1/openapi.json` gives it.
///
/// ```
/// let document = haft_server::document();
/// assert_eq!(document["openapi"], "3.1.0");
/// assert!(document["paths"]["/v1/invoke"]["post"].is_object());
/// ```
pub fn document() -> Value {
    let mut document = serde_json::to_value(of_routes()).unwrap_or_default();
    if let Some(Value::Object(schemas)) = document.pointer_mut("/components/schemas") {
        schemas.extend(schema::definitions());
    }
    name_the_tool(&mut document);
    describe_responses(&mut document);
    document
}

/// Two routes take the same request. Where the address names no tool, the request does.
fn name_the_tool(document: &mut Value) {
    const NAMED: &str = "ToolIdInvokeRequest";
    let Some(Value::Object(schemas)) = document.pointer_mut("/components/schemas") else { return };
    let Some(mut request) = schemas.get("ToolInvokeRequest").cloned() else { return };
    request["required"] = json!(["tool_id"]);
    request["properties"]["tool_id"]["type"] = json!("string");
    schemas.insert(NAMED.to_owned(), request);
    let body = "/paths/~1v1~1tool.invoke/post/requestBody/content/application~1json/schema";
    if let Some(body) = document.pointer_mut(body) {
        *body = schema::reference(NAMED);
    }
}

/// What the routes say of themselves.
fn of_routes() -> OpenApi {
    let mut document = Frame::openapi();
    let mut known = routes::known().into_openapi();
    for (path, item) in &mut known.paths.paths {
        for (method, operation) in operations(item) {
            operation.operation_id = Some(operation_id(&method, path));
            operation.security = Some(vec![SecurityRequirement::new("bearer", Vec::<String>::new())]);
            finish(operation);
        }
    }
    let mut public = routes::public().into_openapi();
    for (path, item) in &mut public.paths.paths {
        for (method, operation) in operations(item) {
            operation.operation_id = Some(operation_id(&method, path));
            operation.security = Some(vec![SecurityRequirement::default()]);
            finish(operation);
        }
    }
    document.merge(known);
    document.merge(public);
    let bearer = HttpBuilder::new()
        .scheme(HttpAuthScheme::Bearer)
        .description(Some("An API key of `haft keys create`, or a token of the identity provider. On a unix socket the owner needs none."))
        .build();
    if let Some(components) = &mut document.components {
        components.add_security_scheme("bearer", SecurityScheme::Http(bearer));
    }
    document
}

fn operations(item: &mut utoipa::openapi::PathItem) -> impl Iterator<Item = (HttpMethod, &mut Operation)> {
    [
        (HttpMethod::Get, &mut item.get),
        (HttpMethod::Post, &mut item.post),
        (HttpMethod::Put, &mut item.put),
        (HttpMethod::Delete, &mut item.delete),
        (HttpMethod::Patch, &mut item.patch),
    ]
    .into_iter()
    .filter_map(|(method, operation)| Some((method, operation.as_mut()?)))
}

/// A name for programs that make clients of the document: `getTasksIdEvents`. By itself it would be that of a function,
/// and several have the same.
fn operation_id(method: &HttpMethod, path: &str) -> String {
    let method = match method {
        HttpMethod::Get => "get",
        HttpMethod::Post => "post",
        HttpMethod::Put => "put",
        HttpMethod::Delete => "delete",
        HttpMethod::Patch => "patch",
        _ => "other",
    };
    let words =
        path.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty() && *word != "v1");
    words.fold(method.to_owned(), |mut id, word| {
        let (first, rest) = word.split_at(1);
        id.push_str(&first.to_ascii_uppercase());
        id.push_str(rest);
        id
    })
}

/// Whatever goes wrong has one shape. A parameter is there or absent: there is no null on a line of text.
fn finish(operation: &mut Operation) {
    for parameter in operation.parameters.iter_mut().flatten() {
        if let RefOr::T(parameter) = parameter
            && let Some(RefOr::T(Schema::Object(object))) = &mut parameter.schema
            && let SchemaType::Array(types) = &object.schema_type
            && let [only] = types.iter().filter(|kind| **kind != Type::Null).collect::<Vec<_>>()[..]
        {
            object.schema_type = SchemaType::Type(only.clone());
        }
    }
    let problem = RefOr::Ref(Ref::from_schema_name(schema::Problem::name()));
    let content = ContentBuilder::new().schema(Some(problem)).build();
    let response = ResponseBuilder::new()
        .description("What went wrong, with the code of the error table")
        .content(problem::MEDIA_TYPE, content)
        .build();
    match operation.responses.responses.get_mut("default") {
        // A route with an answer of its own, that is not reached where nobody is known or nothing can be read.
        Some(RefOr::T(own)) => own.content.extend(response.content),
        _ => drop(operation.responses.responses.insert("default".to_owned(), RefOr::T(response))),
    }
}

/// The members of an object, for changes; none where it is not one.
fn members(value: &mut Value) -> impl Iterator<Item = (&String, &mut Value)> {
    value.as_object_mut().into_iter().flat_map(Map::iter_mut)
}

/// OpenAPI asks for a description of every response. Where a route has none, it is that of the type that is sent.
fn describe_responses(document: &mut Value) {
    let types = document.pointer("/components/schemas").and_then(Value::as_object).into_iter().flatten();
    let texts: BTreeMap<String, String> = types
        .filter_map(|(name, schema)| Some((name.clone(), schema.get("description")?.as_str()?.to_owned())))
        .collect();
    let paths = document.get_mut("paths").into_iter().flat_map(members);
    let operations = paths.flat_map(|(_, item)| members(item));
    let responses = operations
        .filter_map(|(_, operation)| operation.get_mut("responses"))
        .flat_map(|responses| members(responses).map(|(_, response)| response));
    for response in responses {
        if response.get("description").is_none()
            && let Some(text) = sent(response).and_then(|name| texts.get(name)).cloned()
            && let Some(response) = response.as_object_mut()
        {
            response.insert("description".to_owned(), Value::String(text));
        }
    }
}

/// The name of the type that a response sends.
fn sent(response: &Value) -> Option<&str> {
    let content = response.get("content")?.as_object()?.values().next()?;
    content.pointer("/schema/$ref")?.as_str()?.strip_prefix("#/components/schemas/")
}
