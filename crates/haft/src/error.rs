//! Why there is no haft.

use crate::{ErrorCode, RegisterError, config::ConfigError};

/// Why a [`Haft`](crate::Haft) could not be built.
///
/// ```
/// use haft::prelude::*;
/// let twice = || tool_fn("twice", async |_: Nothing, _: ToolCtx| Ok::<_, ToolError>("done")).read_only();
/// # /// Nothing.
/// # #[derive(Deserialize, JsonSchema)]
/// # struct Nothing {}
/// let error = Haft::builder().tool(twice()).tool(twice()).build().err().unwrap();
/// assert_eq!(error.code(), Some(ErrorCode::DuplicateTool));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// A tool could not be registered.
    #[error(transparent)]
    Register(#[from] RegisterError),
    /// The configuration cannot be used.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The rules of policy contradict each other, or are too many.
    #[error("{0}")]
    Policy(String),
    /// A role cannot be read.
    #[error("{0}")]
    Permissions(String),
    /// A secret that only the operator knows of cannot be looked for.
    #[error("{0}")]
    Redaction(String),
    /// The public key that licences are checked with cannot be read.
    #[error("{0}")]
    Licence(String),
    /// A key that signs tools cannot be read.
    #[error("{0}")]
    Signatures(String),
    /// The files that tools are to reach cannot be had.
    #[error("{0}")]
    Files(String),
    /// What is to be remembered has no place.
    #[error("{0}")]
    Store(String),
}

impl Error {
    /// The row of the error table, where there is one.
    pub fn code(&self) -> Option<ErrorCode> {
        match self {
            Error::Register(error) => Some(error.code()),
            Error::Store(_) => Some(ErrorCode::StoreUnavailable),
            Error::Config(_)
            | Error::Files(_)
            | Error::Policy(_)
            | Error::Permissions(_)
            | Error::Redaction(_)
            | Error::Licence(_)
            | Error::Signatures(_) => None,
        }
    }
}
