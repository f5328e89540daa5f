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
use serde_json::{Value, value::RawValue};

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
pub(crate) struct QueryParams<T>(pub(crate) T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for QueryParams<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        match Query::<T>::from_request_parts(parts, state).await {
            Ok(Query(asked)) => Ok(QueryParams(asked)),
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

/// Who asks. A caller that is not known never gets this far.
pub(crate) struct Who(pub(crate) Identity);

impl<S: Send + Sync> FromRequestParts<S> for Who {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Problem> {
        let identity = parts.extensions.get::<Identity>().cloned();
        // A route that identity does not check answers nobody.
        identity
            .map(Who)
            .ok_or_else(|| Problem::new(ErrorCode::Unauthenticated, "The request has no valid key or token"))
    }
}

/// A member that is a JSON object. By itself serde would take a list of the members' values, too.
pub(crate) fn object<'de, T: DeserializeOwned, D: Deserializer<'de>>(deserializer: D) -> Result<T, D::Error> {
    read_object(&Box::<RawValue>::deserialize(deserializer)?).map_err(D::Error::custom)
}

/// Reads an object that may be null.
pub(crate) fn some_object<'de, T: DeserializeOwned, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    let raw = Option::<Box<RawValue>>::deserialize(deserializer)?;
    raw.map(|raw| read_object(&raw).map_err(D::Error::custom)).transpose()
}

fn read_object<T: DeserializeOwned>(raw: &RawValue) -> Result<T, serde_json::Error> {
    if !raw.get().starts_with('{') {
        return Err(serde_json::Error::custom("it must be a JSON object"));
    }
    serde_json::from_str(raw.get()).or_else(|error| {
        // JSON knows one kind of number, and JSON Schema calls 5.0 an integer.
        let mut value: Value = serde_json::from_str(raw.get())?;
        match make_integers(&mut value) {
            true => serde_json::from_value(value),
            false => Err(error),
        }
    })
}

/// Writes numbers without a fraction as integers. Whether there were any.
fn make_integers(value: &mut Value) -> bool {
    match value {
        Value::Number(number) => match number.as_f64().filter(|_| number.is_f64()).and_then(whole) {
            Some(whole) => {
                *value = whole.into();
                true
            }
            None => false,
        },
        Value::Array(values) => values.iter_mut().fold(false, |any, value| make_integers(value) | any),
        Value::Object(members) => members.values_mut().fold(false, |any, value| make_integers(value) | any),
        Value::Null | Value::Bool(_) | Value::String(_) => false,
    }
}

/// The integer that a number is, where it can be told exactly.
fn whole(number: f64) -> Option<u64> {
    const EXACT: f64 = 9_007_199_254_740_991.0;
    (number.fract() == 0.0 && (0.0..=EXACT).contains(&number)).then_some(number as u64)
}

/// A member that is an integer, which may be written as `5.0`.
pub(crate) fn integer<'de, T: TryFrom<u64>, D: Deserializer<'de>>(deserializer: D) -> Result<T, D::Error> {
    some_integer(deserializer)?.ok_or_else(|| D::Error::custom("it must be a number"))
}

/// Reads an integer that may be null.
pub(crate) fn some_integer<'de, T: TryFrom<u64>, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    let Some(number) = Option::<serde_json::Number>::deserialize(deserializer)? else { return Ok(None) };
    let whole = number.as_u64().or_else(|| number.as_f64().and_then(whole));
    let wrong = || D::Error::custom(format!("{number} is not an integer that is taken here"));
    whole.and_then(|whole| T::try_from(whole).ok()).map(Some).ok_or_else(wrong)
}

/// An object whose members are objects, too, where they are these.
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
    let raw = Box::<RawValue>::deserialize(deserializer)?;
    if raw.get().starts_with('{') {
        let nested: Nested<'_> = serde_json::from_str(raw.get()).map_err(D::Error::custom)?;
        let is_list = |raw: &&RawValue| raw.get().starts_with('[');
        if [nested.limits, nested.retry, nested.model].iter().flatten().any(is_list) {
            return Err(D::Error::custom("`limits`, `retry` and `model` must be JSON objects"));
        }
    }
    read_object(&raw).map_err(D::Error::custom)
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
