//! The OpenAPI document: from the routes themselves, so that it cannot lag behind them.

use crate::{problem, routes, schema};
use utoipa::{
    OpenApi as _, ToSchema as _,
    openapi::{
        ContentBuilder, HttpMethod, OpenApi, Ref, RefOr, ResponseBuilder,
        path::Operation,
        security::{HttpAuthScheme, HttpBuilder, SecurityRequirement, SecurityScheme},
    },
};

#[derive(utoipa::OpenApi)]
#[openapi(
    info(
        title = "haft",
        version = "1",
        description = "Runs the tools that an AI agent asks for: checked, approved, contained, recorded.",
        license(name = "MIT OR Apache-2.0", identifier = "MIT OR Apache-2.0")
    ),
    components(schemas(schema::Problem, routes::CategoryName))
)]
struct Frame;

/// The document of all routes, as `/v1/openapi.json` gives it.
///
/// ```
/// let document = serde_json::to_value(haft_server::document()).unwrap();
/// assert_eq!(document["openapi"], "3.1.0");
/// assert!(document["paths"]["/v1/invoke"]["post"].is_object());
/// ```
pub fn document() -> OpenApi {
    let mut document = Frame::openapi();
    let mut known = routes::known().into_openapi();
    for item in known.paths.paths.values_mut() {
        for (_, operation) in operations(item) {
            operation.security = Some(vec![SecurityRequirement::new("bearer", Vec::<String>::new())]);
            finish(operation);
        }
    }
    let mut public = routes::public().into_openapi();
    for item in public.paths.paths.values_mut() {
        for (_, operation) in operations(item) {
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

/// Whatever goes wrong has one shape.
fn finish(operation: &mut Operation) {
    let problem = RefOr::Ref(Ref::from_schema_name(schema::Problem::name()));
    let content = ContentBuilder::new().schema(Some(problem)).build();
    let response = ResponseBuilder::new()
        .description("What went wrong, with the code of the error table")
        .content(problem::MEDIA_TYPE, content)
        .build();
    operation.responses.responses.insert("default".to_owned(), RefOr::T(response));
}
