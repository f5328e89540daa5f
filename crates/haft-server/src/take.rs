//! How requests are read: everything that is wrong with one is a problem with words.

use crate::{identity::Identity, problem::Problem};
use axum::{
    body::Bytes,
    extract::{FromRequest, FromRequestParts, Path, Query, Request, rejection::BytesRejection},
    http::{HeaderMap, StatusCode, header, request::Parts},
};
use haft_core::ErrorCode;
use serde::{
    Deserialize, Deserializer,
    de::{DeserializeOwned, Error as _},
};
use serde_json::value::RawValue;

/// A JSON document in the body.
pub(crate) struct Json<T>(pub(crate) T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for Json<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Self, Problem> {
        if !is_json(request.headers()) {
            let problem = Problem::bad_request("Send the body as Content-Type: application/json");
            return Err(problem.with_status(StatusCode::UNSUPPORTED_MEDIA_TYPE));
        }
        let body =
            Bytes::from_request(request, state).await.map_err(|rejection: BytesRejection| match rejection
                .status()
            {
                StatusCode::PAYLOAD_TOO_LARGE => {
                    Problem::new(ErrorCode::LimitExceeded, "The body is longer than this server takes")
                }
                _ => Problem::bad_request("The body could not be read"),
            })?;
        if body.trim_ascii_start().first() != Some(&b'{') {
            return Err(Problem::bad_request("The body must be a JSON object"));
        }
        serde_json::from_slice(&body)
            .map(Json)
            .map_err(|error| Problem::bad_request(format!("The body is not what is expected here: {error}")))
    }
}

fn is_json(headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let essence = kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    essence == "application/json" || (essence.starts_with("application/") && essence.ends_with("+json"))
}

/// What stands after the question mark.
pub(crate) struct Asked<T>(pub(crate) T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for Asked<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        match Query::<T>::from_request_parts(parts, state).await {
            Ok(Query(asked)) => Ok(Asked(asked)),
            Err(rejection) => Err(Problem::bad_request(rejection.body_text())),
        }
    }
}

/// A name or an id in the path.
pub(crate) struct Named(pub(crate) String);

impl<S: Send + Sync> FromRequestParts<S> for Named {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        match Path::<String>::from_request_parts(parts, state).await {
            Ok(Path(name)) if name.len() <= 255 && !name.contains('\0') => Ok(Named(name)),
            _ => Err(Problem::not_found("thing")),
        }
    }
}

/// Who asks. Whoever is not known never gets this far.
pub(crate) struct Who(pub(crate) Identity);

impl<S: Send + Sync> FromRequestParts<S> for Who {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Problem> {
        let identity = parts.extensions.get::<Identity>().cloned();
        // A route that is outside of what identity stands around answers nobody.
        identity.map(Who).ok_or_else(|| Problem::new(ErrorCode::Unauthenticated, "Nobody is known who asks"))
    }
}

/// A member that is a JSON object. By itself serde would take a list of the members' values, too.
pub(crate) fn object<'de, T: DeserializeOwned, D: Deserializer<'de>>(deserializer: D) -> Result<T, D::Error> {
    let raw = Box::<RawValue>::deserialize(deserializer)?;
    match raw.get().starts_with('{') {
        true => serde_json::from_str(raw.get()).map_err(D::Error::custom),
        false => Err(D::Error::custom("it must be a JSON object")),
    }
}

/// The same, with these members objects, too.
pub(crate) fn object_of_objects<'de, T: DeserializeOwned, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<T, D::Error> {
    #[derive(Deserialize)]
    struct Nested<'a> {
        #[serde(borrow)]
        limits: Option<&'a RawValue>,
        #[serde(borrow)]
        retry: Option<&'a RawValue>,
        #[serde(borrow)]
        model: Option<&'a RawValue>,
    }
    let raw: Box<RawValue> = object(deserializer)?;
    let Nested { limits, retry, model } = serde_json::from_str(raw.get()).map_err(D::Error::custom)?;
    let is_list = |raw: &&RawValue| raw.get().starts_with('[');
    if [limits, retry, model].iter().flatten().any(is_list) {
        return Err(D::Error::custom("`limits`, `retry` and `model` must be JSON objects"));
    }
    serde_json::from_str(raw.get()).map_err(D::Error::custom)
}

/// The header `Idempotency-Key`.
pub(crate) fn idempotency_key(headers: &HeaderMap) -> Result<Option<String>, Problem> {
    let mut keys = headers.get_all("idempotency-key").iter();
    match (keys.next(), keys.next()) {
        (None, _) => Ok(None),
        (Some(only), None) => {
            let key = only.to_str().ok().map(str::trim).filter(|key| !key.is_empty() && key.len() <= 255);
            let wrong = || Problem::bad_request("Idempotency-Key must be 1 to 255 visible characters");
            key.map(|key| Some(key.to_owned())).ok_or_else(wrong)
        }
        (Some(_), Some(_)) => Err(Problem::bad_request("Send Idempotency-Key once")),
    }
}
