//! From the arguments of a call to a request.

use haft_core::{HttpBody, HttpSource, ToolError, text};
use serde_json::{Map, Value};

/// What is sent, but for its headers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Wanted {
    pub(super) url: String,
    /// The body and its type, where there is one.
    pub(super) body: Option<(&'static str, Vec<u8>)>,
}

/// The request of a call: each argument in the address, in the query or in the body.
pub(super) fn wanted(http: &HttpSource, args: &Map<String, Value>) -> Result<Wanted, ToolError> {
    let named = http.placeholders();
    let mut url = String::new();
    for (index, piece) in http.url.split('{').enumerate() {
        match piece.split_once('}') {
            Some((name, rest)) if index > 0 => {
                url.push_str(&in_address(name, args.get(name))?);
                url.push_str(rest);
            }
            _ => url.push_str(piece),
        }
    }
    let others = args.iter().filter(|(name, _)| !named.contains(&name.as_str()));
    let (query, body): (Vec<_>, Vec<_>) =
        others.partition(|(name, _)| !http.method.has_body() || http.query.contains(name));
    let pairs = form(&query);
    if !pairs.is_empty() {
        url.push(if url.contains('?') { '&' } else { '?' });
        url.push_str(&pairs);
    }
    let body = http.method.has_body().then(|| match http.body {
        HttpBody::Json => {
            let object: Map<String, Value> =
                body.into_iter().map(|(name, value)| (name.clone(), value.clone())).collect();
            ("application/json", Value::Object(object).to_string().into_bytes())
        }
        HttpBody::Form => ("application/x-www-form-urlencoded", form(&body).into_bytes()),
    });
    Ok(Wanted { url, body })
}

/// An argument in the address. It stays one part of it: a slash in it is no slash there, and it is never a way up.
fn in_address(name: &str, value: Option<&Value>) -> Result<String, ToolError> {
    let bad = |why: &str| ToolError::bad_args(format!("Bad args: {}: {why}", text::one_line(name, 80)));
    let plain = match value {
        None | Some(Value::Null) => return Err(bad("it stands in the address, so it must be there")),
        Some(Value::Array(_) | Value::Object(_)) => {
            return Err(bad("it stands in the address, so it must be a text, a number or a boolean"));
        }
        Some(value) => one(value),
    };
    if plain.is_empty() || plain == "." || plain == ".." {
        return Err(bad("it stands in the address, so it must not be empty, `.` or `..`"));
    }
    Ok(escaped(&plain))
}

/// Arguments as pairs: a list repeats its name, null is left out.
fn form(pairs: &[(&String, &Value)]) -> String {
    let mut texts = Vec::new();
    for (name, value) in pairs {
        match value {
            Value::Null => {}
            Value::Array(items) => texts.extend(items.iter().map(|item| (name, one(item)))),
            value => texts.push((name, one(value))),
        }
    }
    let pairs: Vec<String> =
        texts.iter().map(|(name, value)| format!("{}={}", escaped(name), escaped(value))).collect();
    pairs.join("&")
}

fn one(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// Everything but what RFC 3986 calls unreserved, as `%` and two digits.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => escaped.push(byte.into()),
            byte => escaped.push_str(&format!("%{byte:02X}")),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;
    use haft_core::HttpMethod;
    use proptest::prelude::*;
    use serde_json::json;

    fn url(template: &str, args: Value) -> String {
        wanted(&HttpSource::new(template), args.as_object().unwrap()).unwrap().url
    }

    #[test]
    fn each_argument_has_its_place() {
        let cases = [
            ("https://h/a", json!({}), "https://h/a"),
            ("https://h/{id}", json!({"id": 7}), "https://h/7"),
            (
                "https://h/{id}/x?v=1",
                json!({"id": "a/b ?", "q": "ä&="}),
                "https://h/a%2Fb%20%3F/x?v=1&q=%C3%A4%26%3D",
            ),
            (
                "https://h/",
                json!({"tags": ["a", 2], "none": null, "on": true}),
                "https://h/?on=true&tags=a&tags=2",
            ),
            ("https://h/?q={q}", json!({"q": "x&y=z"}), "https://h/?q=x%26y%3Dz"),
        ];
        for (template, args, expected) in cases {
            assert_eq!(url(template, args), expected);
        }
    }

    #[test]
    fn a_body_has_what_is_left() {
        let http = HttpSource {
            method: HttpMethod::Post,
            query: vec!["dry".to_owned()],
            ..HttpSource::new("https://h/{id}")
        };
        let args = json!({"id": "a", "dry": true, "name": "x", "tags": [1]});
        let sent = wanted(&http, args.as_object().unwrap()).unwrap();
        assert_eq!(sent.url, "https://h/a?dry=true");
        assert_eq!(sent.body, Some(("application/json", br#"{"name":"x","tags":[1]}"#.to_vec())));
        let form = HttpSource { body: HttpBody::Form, ..http };
        let sent = wanted(&form, args.as_object().unwrap()).unwrap();
        assert_eq!(sent.body, Some(("application/x-www-form-urlencoded", b"name=x&tags=1".to_vec())));
    }

    #[test]
    fn what_would_change_the_address_is_refused() {
        for value in [json!(null), json!(""), json!("."), json!(".."), json!([1]), json!({})] {
            let args = json!({"id": value});
            assert!(wanted(&HttpSource::new("https://h/{id}"), args.as_object().unwrap()).is_err(), "{args}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, rng_seed: proptest::test_runner::RngSeed::Fixed(7), ..ProptestConfig::default() })]

        /// Whatever a call says, the host stays, and the path has as many parts as the definition wrote.
        #[test]
        fn no_argument_leaves_its_place(id in "\\PC{1,12}", q in "\\PC{0,12}") {
            prop_assume!(id != "." && id != "..");
            let url = url("https://h.example/v1/{id}/end", json!({"id": id, "q": q}));
            let rest = url.strip_prefix("https://h.example/v1/").unwrap();
            let (path, query) = rest.split_once('?').unwrap();
            prop_assert_eq!(path.split('/').count(), 2);
            prop_assert!(path.ends_with("/end"));
            prop_assert!(query.starts_with("q=") && !query.contains(['&', '#', ' ']));
        }
    }
}
