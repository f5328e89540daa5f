//! An HTTP service behind a tool: what is sent, and where each argument goes.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// How an HTTP service is asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum HttpMethod {
    /// Reads.
    #[default]
    Get,
    /// Reads the head alone.
    Head,
    /// Does something, or makes something.
    Post,
    /// Puts something in its place.
    Put,
    /// Changes a part.
    Patch,
    /// Removes.
    Delete,
}

impl HttpMethod {
    /// As it stands in a request.
    ///
    /// ```
    /// assert_eq!(haft_core::HttpMethod::Patch.as_str(), "PATCH");
    /// ```
    pub fn as_str(self) -> &'static str {
        match self {
            HttpMethod::Get => "GET",
            HttpMethod::Head => "HEAD",
            HttpMethod::Post => "POST",
            HttpMethod::Put => "PUT",
            HttpMethod::Patch => "PATCH",
            HttpMethod::Delete => "DELETE",
        }
    }

    /// Whether arguments that are not placed elsewhere go in the body, rather than in the query.
    pub fn has_body(self) -> bool {
        matches!(self, HttpMethod::Post | HttpMethod::Put | HttpMethod::Patch)
    }

    /// Whether it only reads, as the protocol has it.
    pub fn only_reads(self) -> bool {
        matches!(self, HttpMethod::Get | HttpMethod::Head)
    }
}

/// How a body is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HttpBody {
    /// One JSON object.
    #[default]
    Json,
    /// Pairs, as a web form sends them.
    Form,
}

/// The HTTP service behind a tool whose source is `http`.
///
/// An argument goes where the address names it (`{id}`), else in the query where it is listed there, else in the body
/// of a request that has one, else in the query.
///
/// ```
/// use haft_core::{HttpMethod, HttpSource};
/// let http: HttpSource = serde_json::from_str(r#"{"url": "https://api.example.com/items/{id}"}"#).unwrap();
/// assert_eq!(http.method, HttpMethod::Get);
/// assert_eq!(http.placeholders(), ["id"]);
/// assert_eq!(http.host().as_deref(), Some("api.example.com"));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct HttpSource {
    /// The address. `{name}` in its path or query stands for an argument.
    pub url: String,
    /// How it is asked.
    #[serde(default, skip_serializing_if = "is_default")]
    pub method: HttpMethod,
    /// Parameters that go in the query, whatever the method.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub query: Vec<String>,
    /// How the body is written.
    #[serde(default, skip_serializing_if = "is_default")]
    pub body: HttpBody,
    /// Headers. A value `env:NAME` is that variable of haft's, `file:PATH` the first line of that file: secrets stand
    /// where they are kept, not in a definition.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

impl HttpSource {
    /// That address, with the defaults for the rest.
    pub fn new(url: impl Into<String>) -> Self {
        HttpSource { url: url.into(), ..HttpSource::default() }
    }

    /// The arguments that the address names, in order.
    pub fn placeholders(&self) -> Vec<&str> {
        let pieces = self.url.split('{').skip(1);
        pieces.filter_map(|piece| piece.split_once('}')).map(|(name, _)| name).collect()
    }

    /// The scheme, and the host with its port where it has one: what stands before the path. `None` where the address
    /// is neither `http://` nor `https://`.
    pub fn origin(&self) -> Option<(&str, &str)> {
        let (scheme, rest) = self.url.split_once("://")?;
        let authority = rest.split(['/', '?', '#']).next()?;
        matches!(scheme, "http" | "https").then_some((scheme, authority))
    }

    /// The host that it reaches, as a list of hosts would have it: with its port, unless that is the usual one.
    pub fn host(&self) -> Option<String> {
        let (scheme, authority) = self.origin()?;
        let usual = if scheme == "https" { ":443" } else { ":80" };
        Some(authority.strip_suffix(usual).unwrap_or(authority).to_ascii_lowercase())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_host_is_what_a_list_of_hosts_would_name() {
        for (url, host) in [
            ("https://API.example.com/x", Some("api.example.com")),
            ("https://api.example.com:443", Some("api.example.com")),
            ("https://api.example.com:8443?q={q}", Some("api.example.com:8443")),
            ("http://localhost:80/", Some("localhost")),
            ("http://localhost:443/", Some("localhost:443")),
            ("ftp://example.com/", None),
            ("example.com/x", None),
        ] {
            assert_eq!(HttpSource::new(url).host().as_deref(), host, "{url}");
        }
    }

    #[test]
    fn placeholders_are_found() {
        assert_eq!(HttpSource::new("https://h/{a}/b/{c_d}?x={e}").placeholders(), ["a", "c_d", "e"]);
        assert!(HttpSource::new("https://h/{open").placeholders().is_empty());
    }
}
