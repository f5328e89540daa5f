//! The dialects, and what each one allows.

use haft_core::{suggest, text};
use serde::{Deserialize, Serialize};
use std::{fmt, str::FromStr};

/// How a list of tools is written down.
///
/// ```
/// use haft_dialect::Dialect;
/// assert_eq!("openai-chat".parse::<Dialect>()?, Dialect::OpenAiChat);
/// assert_eq!(Dialect::Gemini.to_string(), "gemini");
///
/// let error = "antropic".parse::<Dialect>().unwrap_err();
/// assert_eq!(
///     error.to_string(),
///     "`antropic` is not a dialect; did you mean `anthropic`? \
///      There are openai-chat, openai-responses, anthropic, gemini, mcp",
/// );
/// # Ok::<(), haft_dialect::UnknownDialect>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Dialect {
    /// Chat Completions: `{"type": "function", "function": {"name": …, "parameters": …}}`.
    #[serde(rename = "openai-chat")]
    OpenAiChat,
    /// Responses: `{"type": "function", "name": …, "parameters": …, "strict": …}`.
    #[serde(rename = "openai-responses")]
    OpenAiResponses,
    /// Messages: `{"name": …, "input_schema": …}`.
    #[serde(rename = "anthropic")]
    Anthropic,
    /// Generate content: `{"functionDeclarations": [{"name": …, "parameters": …}]}`.
    #[serde(rename = "gemini")]
    Gemini,
    /// `tools/list`: `{"name": …, "inputSchema": …, "annotations": …}`.
    #[serde(rename = "mcp")]
    Mcp,
}

/// A word that names no dialect.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{typed}` is not a dialect; {hint}There are {}", Dialect::ALL.map(Dialect::name).join(", "))]
pub struct UnknownDialect {
    typed: String,
    hint: String,
}

impl Dialect {
    /// All of them.
    pub const ALL: [Dialect; 5] =
        [Dialect::OpenAiChat, Dialect::OpenAiResponses, Dialect::Anthropic, Dialect::Gemini, Dialect::Mcp];

    /// The word for it on the command line and in configuration.
    ///
    /// ```
    /// assert_eq!(haft_dialect::Dialect::OpenAiResponses.name(), "openai-responses");
    /// ```
    pub const fn name(self) -> &'static str {
        match self {
            Dialect::OpenAiChat => "openai-chat",
            Dialect::OpenAiResponses => "openai-responses",
            Dialect::Anthropic => "anthropic",
            Dialect::Gemini => "gemini",
            Dialect::Mcp => "mcp",
        }
    }

    /// Who sets the rules, for a sentence.
    pub(crate) const fn owner(self) -> &'static str {
        match self {
            Dialect::OpenAiChat | Dialect::OpenAiResponses => "OpenAI",
            Dialect::Anthropic => "Anthropic",
            Dialect::Gemini => "Gemini",
            Dialect::Mcp => "MCP",
        }
    }

    pub(crate) const fn limits(self) -> Limits {
        match self {
            Dialect::OpenAiChat | Dialect::OpenAiResponses => Limits {
                name: NameRule { longest: 64, first: NAME_DASH, rest: NAME_DASH },
                property: None,
                // Enforced by Azure and by older models; newer ones take more.
                description: Some(1024),
                tools: Some(128),
            },
            Dialect::Anthropic => Limits {
                // The page says 64; the service itself lets 128 through.
                name: NameRule { longest: 64, first: NAME_DASH, rest: NAME_DASH },
                property: Some(NameRule { longest: 64, first: NAME_DASH_DOT, rest: NAME_DASH_DOT }),
                description: None,
                tools: None,
            },
            Dialect::Gemini => Limits {
                name: NameRule { longest: 64, first: LETTER, rest: NAME_DASH_DOT },
                property: Some(NameRule { longest: 64, first: LETTER, rest: NAME }),
                description: None,
                tools: Some(512),
            },
            Dialect::Mcp => Limits {
                name: NameRule { longest: 128, first: NAME_DASH_DOT, rest: NAME_DASH_DOT },
                property: None,
                description: None,
                tools: None,
            },
        }
    }
}

impl fmt::Display for Dialect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Dialect {
    type Err = UnknownDialect;

    fn from_str(typed: &str) -> Result<Self, UnknownDialect> {
        if let Some(dialect) = Dialect::ALL.into_iter().find(|dialect| dialect.name() == typed) {
            return Ok(dialect);
        }
        let hint = match suggest::nearest(typed, Dialect::ALL.map(Dialect::name)) {
            Some(near) => format!("did you mean `{near}`? "),
            None => String::new(),
        };
        Err(UnknownDialect { typed: text::one_line(typed, 80), hint })
    }
}

/// What a dialect allows besides its schemas.
pub(crate) struct Limits {
    pub(crate) name: NameRule,
    /// For the parameters themselves; names further down are free.
    pub(crate) property: Option<NameRule>,
    /// The longest description of a tool, in characters.
    pub(crate) description: Option<usize>,
    /// The most tools in one request. Only reported: nobody but the caller knows which ones to leave out.
    pub(crate) tools: Option<usize>,
}

/// Which names are fine.
#[derive(Clone, Copy)]
pub(crate) struct NameRule {
    pub(crate) longest: usize,
    pub(crate) first: fn(u8) -> bool,
    pub(crate) rest: fn(u8) -> bool,
}

const LETTER: fn(u8) -> bool = |byte| byte.is_ascii_alphabetic() || byte == b'_';
const NAME: fn(u8) -> bool = |byte| byte.is_ascii_alphanumeric() || byte == b'_';
const NAME_DASH: fn(u8) -> bool = |byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte);
const NAME_DASH_DOT: fn(u8) -> bool = |byte| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte);
