//! The rules for the HTTP service behind a tool.

use super::{Found, names::shown_name};
use crate::{HttpSource, Source, ToolDefinition};
use serde_json::Value;

/// Headers that the client writes, so that none can be written twice.
const OWN_HEADERS: [&str; 7] =
    ["host", "content-length", "transfer-encoding", "connection", "upgrade", "te", "trailer"];

pub(super) fn check(definition: &ToolDefinition, found: &mut Found) {
    let Some(http) = &definition.http else { return };
    if definition.source != Source::Http {
        let problem = "only a tool that is an HTTP service has one";
        found.add("http", problem, "set source to `http`, or remove it");
    }
    reached(http, found);
    if !definition.has_side_effects() && !http.method.only_reads() {
        let problem = format!("a tool without side effects does not {}", http.method.as_str());
        let fix = "set constraints.allowSideEffects to true, or use GET";
        found.add("http.method", problem, fix);
    }
    let schema = definition.parameters.to_schema();
    let known = schema.get("properties").and_then(Value::as_object);
    let required = schema.get("required").and_then(Value::as_array);
    let is_known = |name: &str| known.is_some_and(|known| known.contains_key(name));
    let is_required = |name: &str| required.is_some_and(|names| names.iter().any(|other| other == name));
    let has_default = |name: &str| {
        known.and_then(|known| known.get(name)).is_some_and(|property| property.get("default").is_some())
    };
    for name in http.placeholders() {
        let problem = if !is_known(name) {
            format!("there is no parameter `{}`", shown_name(name))
        } else if !is_required(name) && !has_default(name) {
            format!("the parameter `{}` may be absent, and then there is no address", shown_name(name))
        } else {
            continue;
        };
        found.add("http.url", problem, "name a parameter that is required or has a default");
    }
    for (index, name) in http.query.iter().enumerate().filter(|(_, name)| !is_known(name)) {
        let problem = format!("there is no parameter `{}`", shown_name(name));
        found.add(format!("http.query[{index}]"), problem, "name a parameter of this tool");
    }
}

/// The rules for the address and the headers.
pub(super) fn reached(http: &HttpSource, found: &mut Found) {
    address(http, found);
    headers(http, found);
}

fn address(http: &HttpSource, found: &mut Found) {
    const FIX: &str = "write it like `https://api.example.com/items/{id}`";
    let mut add = |problem: &str| found.add("http.url", problem, FIX);
    let Some((_, authority)) = http.origin() else {
        return add("it does not begin with `http://` or `https://`");
    };
    if authority.is_empty() {
        add("it names no host");
    }
    // Which host is reached is the definition's to say, never a call's.
    if authority.contains(['{', '}']) {
        add("an argument cannot stand in the host");
    }
    if authority.contains('@') {
        add("a name or password cannot stand before the host; use a header");
    }
    if http.url.contains('#') {
        add("what stands after `#` is never sent");
    }
    if !http.url.bytes().all(|byte| byte.is_ascii_graphic()) {
        add("it has characters that must be written as `%` and two digits");
    }
    let (open, close) = (http.url.matches('{').count(), http.url.matches('}').count());
    if open != http.placeholders().len() || open != close {
        add("a brace is not closed");
    }
}

fn headers(http: &HttpSource, found: &mut Found) {
    for (name, value) in &http.headers {
        let place = || format!("http.headers.{}", shown_name(name));
        let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
        if name.is_empty() || !name.bytes().all(is_token) {
            found.add(place(), "it is not the name of a header", "write it like `Authorization`");
        } else if OWN_HEADERS.iter().any(|own| own.eq_ignore_ascii_case(name)) {
            found.add(place(), "haft writes this header itself", "remove it");
        }
        if value.bytes().any(|byte| byte != b'\t' && (byte < 0x20 || byte == 0x7f)) {
            found.add(place(), "its value has a control character", "remove it");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{HttpMethod, Parameters};
    use serde_json::json;

    fn places(url: &str, change: impl FnOnce(&mut ToolDefinition, &mut HttpSource)) -> Vec<String> {
        let mut definition = ToolDefinition::new("mine", "Does something");
        definition.source = Source::Http;
        let schema =
            json!({"properties": {"id": {}, "page": {}, "size": {"default": 1}}, "required": ["id"]});
        definition.parameters = Parameters::Schema(schema);
        let mut http = HttpSource::new(url);
        change(&mut definition, &mut http);
        definition.http = Some(Box::new(http));
        let mut found = Found::default();
        check(&definition, &mut found);
        found.0.into_iter().map(|problem| problem.place).collect()
    }

    #[test]
    fn addresses_are_whole_and_their_host_is_fixed() {
        let none: [&str; 0] = [];
        for url in ["https://h/", "http://h:8080/a/{id}?n={size}", "https://h"] {
            assert_eq!(places(url, |_, _| {}), none, "{url}");
        }
        let bad = [
            "ftp://h/",
            "h/x",
            "https:///x",
            "https://{id}.h/",
            "https://u:p@h/",
            "https://h/#a",
            "https://h/a b",
            "https://h/{id",
            "https://h/id}",
            "https://h/{other}",
            "https://h/{page}",
            "https://h/ü",
        ];
        for url in bad {
            assert!(places(url, |_, _| {}).iter().all(|place| place == "http.url"), "{url}");
            assert!(!places(url, |_, _| {}).is_empty(), "{url}");
        }
    }

    #[test]
    fn each_rule_has_its_place() {
        let url = "https://h/{id}";
        assert_eq!(places(url, |definition, _| definition.source = Source::Command), ["http"]);
        assert_eq!(places(url, |_, http| http.query = vec!["page".into(), "x".into()]), ["http.query[1]"]);
        let header = |name: &str, value: &str| {
            places(url, |_, http| http.headers = [(name.to_owned(), value.to_owned())].into())
        };
        assert_eq!(header("X-Key", "env:KEY"), [""; 0]);
        for (name, value) in [("a b", "x"), ("", "x"), ("Host", "x"), ("X", "a\r\nB: c")] {
            assert_eq!(header(name, value).len(), 1, "{name}: {value:?}");
        }
        let harmless = places(url, |definition, http| {
            definition.constraints.allow_side_effects = false;
            http.method = HttpMethod::Delete;
        });
        assert_eq!(harmless, ["http.method"]);
    }
}
