//! Secrets that are known by what stands in front of them.

use super::shape::{End, Frame, Shape};

/// Names whose value is a secret, whatever it looks like. In lower case; `_`, `-` and spaces between words are tried
/// as they are written here.
const NAMES: &[&str] = &[
    "password",
    "passwd",
    "passphrase",
    "secret",
    "api_key",
    "apikey",
    "api-key",
    "access_token",
    "accesstoken",
    "auth_token",
    "authtoken",
    "refresh_token",
    "refreshtoken",
    "session_token",
    "client_secret",
    "clientsecret",
    "private_key",
    "privatekey",
    "secret_key",
    "secretkey",
    "access_key",
    "accesskey",
    "credential",
    "credentials",
];

/// Members whose value is a secret: the same names, without what stands between words.
pub(super) const MEMBERS: &[&str] = &[
    "password",
    "passwd",
    "passphrase",
    "secret",
    "apikey",
    "accesstoken",
    "authtoken",
    "refreshtoken",
    "sessiontoken",
    "clientsecret",
    "privatekey",
    "secretkey",
    "accesskey",
    "credential",
    "credentials",
    "authorization",
];

const GENERIC: &[&str] =
    &["access", "auth", "api", "credential", "creds", "key", "passwd", "password", "secret", "token"];

/// Shapes of our own, and those of the collection that need a frame of their own.
pub(super) const FRAMED: &[Shape] = &[
    Shape::framed(
        "key-name",
        "named",
        NAMES,
        Frame::Name(r#"["']?[ \t]{0,5}(?:=|:|=>|:=)[ \t]{0,5}""#),
        r#"(?:[^"\\\r\n]|\\.){3,256}"#,
        End::Byte(b'"'),
    ),
    Shape::framed(
        "key-name",
        "named",
        NAMES,
        Frame::Name(r#"["']?[ \t]{0,5}(?:=|:|=>|:=)[ \t]{0,5}'"#),
        r"(?:[^'\\\r\n]|\\.){3,256}",
        End::Byte(b'\''),
    ),
    // JSON within a string of JSON.
    Shape::framed(
        "key-name",
        "named",
        NAMES,
        Frame::Name(r#"\\["'][ \t]{0,5}:[ \t]{0,5}\\["']"#),
        r#"[^"'\\\r\n]{3,256}"#,
        End::Byte(b'\\'),
    ),
    Shape::framed(
        "key-name",
        "named",
        NAMES,
        Frame::Name(r#"["']?[ \t]{0,5}[=:][ \t]{0,5}"#),
        r"[A-Za-z0-9_\-+/=~@!#%^&*.]{6,128}",
        End::Item,
    )
    .with_digit(),
    Shape::framed(
        "generic-api-key",
        "generic-api-key",
        GENERIC,
        Frame::Assignment,
        r"[\w.=-]{10,150}|[a-z0-9][a-z0-9+/]{11,}={0,3}",
        End::Strict,
    )
    .with_digit()
    .entropy(3.5),
    Shape::framed(
        "curl-auth-header",
        "authorization",
        &["authorization"],
        Frame::Name(
            r#"["']?[ \t]{0,5}[:=][ \t]{0,5}["']?(?:(?:basic|bearer|token|digest|apikey|api-token)[ \t]+)?"#,
        ),
        r"[\w=~@.+/-]{8,}",
        End::Free,
    )
    .entropy(2.75),
    Shape::framed(
        "curl-auth-header",
        "authorization",
        &["-h", "--header"],
        Frame::After(r#"(?:=|[ \t]{0,5})["'](?:X-(?:[a-z]+-)?)?(?:Api-?)?(?:Key|Token):[ \t]{0,5}"#),
        r"[\w=~@.+/-]{8,}",
        End::Free,
    )
    .entropy(2.75),
    Shape::framed(
        "curl-auth-user",
        "authorization",
        &["curl"],
        Frame::After(r"(?s:.)*[ \t\r\n](?-i:-u|--user)[= \t]*"),
        r#""[^":]{0,100}:[^"]{0,100}"|'[^':]{3,100}:[^']{3,100}'|[\w$@.-]+:[\w${}@.-]+"#,
        End::Free,
    )
    .entropy(2.0),
    Shape::framed(
        "nuget-config-password",
        "named",
        &["<add key="],
        Frame::After(r#""(?:ClearText)?Password"\s{0,20}value=""#),
        r#"[^"\r\n]{8,256}"#,
        End::Byte(b'"'),
    ),
    Shape::framed(
        "freemius-secret-key",
        "freemius-secret-key",
        &["secret_key"],
        Frame::After(r#"["']\s{0,20}=>\s{0,20}["']"#),
        r"sk_\S{29}",
        End::Item,
    ),
    Shape::framed(
        "sidekiq-sensitive-url",
        "url-password",
        &["://"],
        Frame::After(r#"[^/\s:@"'<>]{0,64}:"#),
        r#"[^/\s@"'<>]{3,128}"#,
        End::Byte(b'@'),
    ),
];
